"""BJKST: a sample of the distinct values that halves itself when it is full (Bar-Yossef et al., spec 2.4.4).

The fingerprint of a value is its hash; its level, the trailing zeros of another hash of it, follows from the
fingerprint and need not be stored.
"""

from __future__ import annotations

import math
from typing import Any

from lakescope.array_types import I64, U64
from lakescope.sketches import codec
from lakescope.sketches.counter import Counter, Traits, check_between
from lakescope.sketches.hashset import HashSet

#: Fingerprint and level, as the literature counts them.
_ENTRY_BITS = 64 + 6


class BJKST(Counter):
    """Exact while it holds all values (5.76 million at 1%), then a sample of one in 2, 4, 8, ... of them."""

    name = "bjkst"
    traits = Traits("order statistics", "bucket based", "leading 0s", slow=True)

    def __init__(self, limit: int = 5_760_000) -> None:
        check_between("limit", limit, 1, 1 << 40)
        self.limit = limit
        self.level = 0
        self._set = HashSet()

    @property
    def used(self) -> int:
        """Number of values that are kept."""
        return self._set.used

    @property
    def sample(self) -> U64:
        """Hashes of the values that are kept, in order: the same of any data that holds the same values."""
        return self._set.sorted()

    def update_hashes(self, hashes: U64, counts: I64 | None = None) -> None:
        at = 0
        while (at := at + self._set.add(hashes[at:], self.level, self.limit)) < hashes.size:
            self._raise(self.level + 1)

    def _raise(self, level: int) -> None:
        self.level = level
        self._set.keep(level)

    def _merge(self, other: BJKST) -> None:
        if other.level > self.level:
            self._raise(other.level)
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
