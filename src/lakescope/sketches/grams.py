"""The q-grams of a column with the smallest hashes, and which of them only one value holds (Auto-Join, 4.2).

A q-gram that one value of either side holds is strong evidence that both belong together, however they are written.
Cells are compared without case, accents and punctuation. Which q-grams a sketch keeps follows from their hashes alone,
so sketches of parts of a column add up to the sketch of the column, and what a query holds of a sketch's q-grams is a
fair sample of what it holds of the column's.
"""

from __future__ import annotations

import numpy as np

from lakescope.array_types import U64
from lakescope.sketches import codec
from lakescope.sketches.gram_kernels import SEVERAL, cut_cells, put_grams
from lakescope.values.alphabet import bare_table
from lakescope.values.cells import Cells
from lakescope.values.hashing import LAST_HASH

#: Q-grams of a sketch, if nothing else is said.
GRAMS = 1024
#: Room that a table of hashes begins with; it grows.
_FIRST_SLOTS = 256


class GramSketch:
    """The ``limit`` q-grams of the smallest hashes, and of each the value that holds it, or that several do."""

    def __init__(self, limit: int = GRAMS) -> None:
        self.limit = limit
        self._used = 0
        self._threshold = LAST_HASH
        self._slots: U64 = np.zeros(_FIRST_SLOTS, np.uint64)
        self._owners: U64 = np.zeros(_FIRST_SLOTS, np.uint64)

    def update(self, cells: Cells) -> None:
        """Add the q-grams of different cells of a column; numbers with decimals, dates and times have none."""
        at = 0
        while at < cells.kinds.size:
            at, self._used = cut_cells(
                *(cells.written, cells.wstarts, cells.wends, cells.kinds, cells.hashes, bare_table()),
                *(self._slots, self._owners, self._used, at, self._threshold),
            )
            if at < cells.kinds.size:
                self._make_room()

    def _make_room(self) -> None:
        """Forget what is not among the smallest, once there is twice as much; else take more slots."""
        if self._used >= 2 * self.limit:
            self._refill(self._slots.size, *self.sorted())
        else:
            self._refill(4 * self._slots.size, *self._entries())

    def _entries(self) -> tuple[U64, U64]:
        held = np.flatnonzero(self._slots)
        return self._slots[held], self._owners[held]

    def _refill(self, size: int, grams: U64, owners: U64) -> None:
        if grams.size == self.limit:
            self._threshold = min(self._threshold, grams.max())
        self._slots, self._owners = np.zeros(size, np.uint64), np.zeros(size, np.uint64)
        _, self._used = put_grams(self._slots, self._owners, 0, grams, owners, 0, LAST_HASH)

    def lower(self, limit: int) -> None:
        """Keep at most ``limit`` q-grams; the smallest limit that was ever asked for holds."""
        self.limit = min(self.limit, limit)

    def merge(self, other: GramSketch) -> None:
        """Become the sketch of both parts of the column."""
        self.lower(other.limit)
        grams, owners = other.sorted()
        at = 0
        while at < grams.size:
            at, self._used = put_grams(self._slots, self._owners, self._used, grams, owners, at, self._threshold)
            if at < grams.size:
                self._make_room()

    def sorted(self) -> tuple[U64, U64]:
        """The smallest hashes in order, and the owner of each: 0 where there are several."""
        grams, owners = self._entries()
        order = np.argsort(grams)[: self.limit]
        return grams[order], owners[order]

    @property
    def rare(self) -> tuple[U64, U64]:
        """Q-grams that one value holds, in order, and the hashes of the values."""
        grams, owners = self.sorted()
        alone = owners != SEVERAL
        return grams[alone], owners[alone]

    def fields(self) -> codec.Fields:
        grams, owners = self.sorted()
        return {"limit": self.limit, "grams": grams, "owners": owners}

    @classmethod
    def from_fields(cls, fields: codec.Fields) -> GramSketch:
        sketch = cls(fields["limit"])
        grams, owners = fields["grams"], fields["owners"]
        size = _FIRST_SLOTS
        while size < 4 * grams.size:
            size *= 4
        sketch._refill(size, grams.copy(), owners.copy())
        return sketch
