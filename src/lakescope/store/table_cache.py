"""Tables that were read lately, as long as they are not too large together."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable

import pyarrow as pa


class TableCache:
    """At most so many bytes of tables; what was asked for longest ago goes first. For any number of threads."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._bytes = 0
        self._tables: OrderedDict[Hashable, pa.Table] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, read: Callable[[], pa.Table]) -> pa.Table:
        """The table of a key, read if it is not here."""
        with self._lock:
            if key in self._tables:
                self._tables.move_to_end(key)
                return self._tables[key]
        table = read()
        with self._lock:
            if key not in self._tables:
                self._tables[key] = table
                self._bytes += table.nbytes
            while self._bytes > self._most:
                self._bytes -= self._tables.popitem(last=False)[1].nbytes
        return table
