"""A growing set of 64-bit hashes: distinct values, exactly, for as long as memory lasts. The hash 0 is kept as 1."""

from __future__ import annotations

import numpy as np

from lakescope.array_types import U64
from lakescope.sketches.kernels import set_add, set_values

#: Room that a table of hashes begins with; it grows.
_FIRST_SLOTS = 256
_NO_LIMIT = 1 << 62


class HashSet:
    """Distinct hashes; with a level only those with so many trailing zeros in another hash of theirs (BJKST)."""

    def __init__(self) -> None:
        self.used = 0
        self._slots: U64 = np.zeros(_FIRST_SLOTS, np.uint64)

    def add(self, hashes: U64, level: int = 0, limit: int = _NO_LIMIT) -> int:
        """Add hashes until the set holds ``limit``; returns how many were looked at."""
        at: int = 0
        while True:
            room = min(limit, self._slots.size // 2)
            at, self.used = set_add(self._slots, self.used, hashes, at, level, room)
            if at >= hashes.size or self.used >= limit:
                return at
            self._refill(4 * self._slots.size, level)

    def keep(self, level: int) -> None:
        """Drop the hashes below a level."""
        self._refill(self._slots.size, level)

    def _refill(self, size: int, level: int) -> None:
        kept = self.unordered()
        self._slots = np.zeros(size, np.uint64)
        _, self.used = set_add(self._slots, 0, kept, 0, level, size)

    def unordered(self) -> U64:
        """The hashes, in an order of no meaning."""
        kept: U64 = set_values(self._slots, self.used)
        return kept

    def sorted(self) -> U64:
        """The hashes in order: the same of any data that holds the same values."""
        return np.sort(self.unordered())
