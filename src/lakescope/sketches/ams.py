"""AMS: the largest number of trailing zeros of any hash (Alon, Matias, Szegedy; spec 2.4.3)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lakescope.array_types import I64, U64
from lakescope.sketches import codec
from lakescope.sketches.counter import Counter, Traits, check_between
from lakescope.sketches.kernels import ams_update, mix

#: Bits that hold a number of trailing zeros of a 64-bit hash.
_LEVEL = 6


class AMS(Counter):
    """Six bits that know the order of magnitude: the estimate is a power of two, off by more than c with chance 2/c.

    ``copies`` with hash functions of their own are combined by their median.
    """

    name = "ams"
    traits = Traits("bit pattern", "logarithmic hashing", "leading 0s", low_range=False)

    def __init__(self, copies: int = 1) -> None:
        check_between("copies", copies, 1, 1 << 16)
        self.copies = copies
        self.levels: npt.NDArray[np.int8] = np.full(copies, -1, np.int8)
        self._seeds: U64 = mix(np.arange(1, copies + 1, dtype=np.uint64))

    def update_hashes(self, hashes: U64, counts: I64 | None = None) -> None:
        ams_update(self.levels, self._seeds, hashes)

    def _merge(self, other: AMS) -> None:
        np.maximum(self.levels, other.levels, out=self.levels)

    def parameters(self) -> dict[str, Any]:
        return {"copies": self.copies}

    def estimate(self) -> float:
        return float(np.median(np.exp2(self.levels.astype(np.float64)))) if self.levels[0] >= 0 else 0.0

    def standard_error(self) -> float:
        """A factor of two, roughly; not a normal spread (see :meth:`interval`)."""
        return 1.0 if self.levels[0] >= 0 else 0.0

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """The guarantee of the paper: within a factor c with probability 1 - 2/c, for one copy."""
        factor = 2 / (1 - confidence)
        return max(self.at_least(), self.estimate() / factor), self.estimate() * factor

    def at_least(self) -> float:
        return float(self.levels[0] >= 0)

    @property
    def memory_bits(self) -> int:
        return _LEVEL * self.copies

    def _content(self) -> codec.Fields:
        return {"levels": self.levels}

    def _restore(self, fields: codec.Fields) -> None:
        self.levels = fields["levels"].copy()
