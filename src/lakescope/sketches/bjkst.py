"""BJKST: a sample of the distinct values that halves itself when it is full (Bar-Yossef et al., spec 2.4.4).

The fingerprint of a value is its hash; its level, the trailing zeros of another hash of it, follows from the
fingerprint and need not be stored.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lakescope.sketches import codec
from lakescope.sketches.counter import I64, U64, Counter, Traits, check_between
from lakescope.sketches.kernels import set_add

#: Fingerprint and level, as the literature counts them.
_ENTRY_BITS = 64 + 6
_FIRST_SLOTS = 1024


class BJKST(Counter):
    """Exact while it holds all values (5.76 million at 1%), then a sample of one in 2, 4, 8, ... of them."""

    name = "bjkst"
    traits = Traits("order statistics", "bucket based", "leading 0s", slow=True)

    def __init__(self, limit: int = 5_760_000) -> None:
        check_between("limit", limit, 1, 1 << 40)
        self.limit = limit
        self.level = 0
        self.used = 0
        self._slots: U64 = np.zeros(_FIRST_SLOTS, np.uint64)

    @property
    def sample(self) -> U64:
        """Hashes of the values that are kept, in order: the same of any data that holds the same values."""
        return np.sort(self._slots[self._slots != 0])

    def update_hashes(self, hashes: U64, counts: I64 | None = None) -> None:
        at = 0
        while True:
            room = min(self.limit, self._slots.size // 2)
            at, self.used = set_add(self._slots, self.used, hashes, at, self.level, room)
            if at >= hashes.size:
                return
            if self.used < self.limit:
                self._refill(4 * self._slots.size)
            else:
                self.level += 1
                self._refill(self._slots.size)

    def _refill(self, size: int) -> None:
        """Move the values of the present level and above to a set of another size."""
        kept = self._slots[self._slots != 0]
        self._slots = np.zeros(size, np.uint64)
        _, self.used = set_add(self._slots, 0, kept, 0, self.level, size)

    def _merge(self, other: BJKST) -> None:
        if other.level > self.level:
            self.level = other.level
            self._refill(self._slots.size)
        self.update_hashes(other.sample)

    def parameters(self) -> dict[str, Any]:
        return {"limit": self.limit}

    def estimate(self) -> float:
        return float(self.used) * 2.0**self.level

    def standard_error(self) -> float:
        """Of a binomial sample: each value is kept with probability 2**-level."""
        return math.sqrt((1 - 0.5**self.level) / max(1, self.used))

    def at_least(self) -> float:
        return float(self.limit + 1 if self.level else self.used)

    @property
    def memory_bits(self) -> int:
        return _ENTRY_BITS * self.used

    def _content(self) -> codec.Fields:
        return {"level": self.level, "sample": self.sample}

    def _restore(self, fields: codec.Fields) -> None:
        self.level = fields["level"]
        self.update_hashes(fields["sample"])
