"""Properties that are computed once, whoever asks first, and however many threads ask at the same time."""

from __future__ import annotations

import threading
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

T = TypeVar("T")

if TYPE_CHECKING:
    once = cached_property
else:

    class once(cached_property[T]):  # noqa: N801 - used as cached_property is
        """A property that is computed once for each object: threads that ask meanwhile wait for it.

        Each property of each object has a lock of its own while it is computed, so that what needs what in any order
        cannot end with two that wait for each other. ``functools.cached_property`` computes it in every thread that
        asks, or, before Python 3.12, for one object at a time.
        """

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            known, name = instance.__dict__, self.attrname
            lock = known.setdefault(f"{name} lock", threading.RLock())
            with lock:
                if name not in known:
                    known[name] = self.func(instance)
            known.pop(f"{name} lock", None)
            return known[name]
