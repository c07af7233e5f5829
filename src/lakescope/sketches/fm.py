"""Probabilistic counting by bit patterns: FM (direct averaging) and PCSA (stochastic averaging), Flajolet and Martin.

The position of the lowest bit that no hash has set estimates log2(0.77351 F0) (spec 2.4.1 and 2.4.2).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lakescope.array_types import I64, U64
from lakescope.sketches import codec
from lakescope.sketches.counter import Counter, Traits, check_between
from lakescope.sketches.kernels import fm_update, mix, pcsa_update, trailing_ones

#: Correction of the mean of the runs (Flajolet and Martin).
PHI = 0.77351
#: Relative standard error times the root of the number of bitmaps.
SPREAD = 0.78
_BITMAP = 64


class FM(Counter):
    """Flajolet-Martin with one hash function a bitmap: accurate at any size and slow: a value meets them all."""

    name = "fm"
    traits = Traits("bit pattern", "logarithmic hashing", "trailing 1s", slow=True)

    def __init__(self, functions: int = 10_000) -> None:
        check_between("functions", functions, 1, 1 << 20)
        self.functions = functions
        self.bitmaps: U64 = np.zeros(functions, np.uint64)
        self._seeds: U64 = mix(np.arange(1, functions + 1, dtype=np.uint64))

    @classmethod
    def for_error(cls, error: float) -> FM:
        return cls(math.ceil(1 / error**2))

    def update_hashes(self, hashes: U64, counts: I64 | None = None) -> None:
        fm_update(self.bitmaps, self._seeds, hashes)

    def _merge(self, other: FM) -> None:
        self.bitmaps |= other.bitmaps

    def parameters(self) -> dict[str, Any]:
        return {"functions": self.functions}

    def estimate(self) -> float:
        # The mean position over many functions stands for n + 1/2, as its exact expectation for small n shows.
        mean = trailing_ones(self.bitmaps) / self.functions
        return float(2**mean / PHI - 0.5) if self.bitmaps.any() else 0.0

    def standard_error(self) -> float:
        return SPREAD / math.sqrt(self.functions) if self.bitmaps.any() else 0.0

    @property
    def memory_bits(self) -> int:
        return _BITMAP * self.functions

    def _content(self) -> codec.Fields:
        return {"bitmaps": self.bitmaps}

    def _restore(self, fields: codec.Fields) -> None:
        self.bitmaps = fields["bitmaps"].copy()


class PCSA(Counter):
    """Probabilistic counting with stochastic averaging: one hash, whose low bits choose the bitmap.

    ``small_range`` applies the correction of Scheuermann and Mauve, which the study did not.
    """

    name = "pcsa"
    traits = Traits("bit pattern", "logarithmic hashing", "trailing 1s", low_range=False)

    def __init__(self, precision: int = 13, *, small_range: bool = False) -> None:
        check_between("precision", precision, 1, 24)
        self.precision = precision
        self.small_range = small_range
        self.bitmaps: U64 = np.zeros(1 << precision, np.uint64)

    def update_hashes(self, hashes: U64, counts: I64 | None = None) -> None:
        pcsa_update(self.bitmaps, hashes, self.precision)

    def _merge(self, other: PCSA) -> None:
        self.bitmaps |= other.bitmaps

    def parameters(self) -> dict[str, Any]:
        return {"precision": self.precision, "small_range": self.small_range}

    def estimate(self) -> float:
        if not self.bitmaps.any():
            return 0.0
        m = self.bitmaps.size
        mean = trailing_ones(self.bitmaps) / m
        correction = 2 ** (-1.75 * mean) if self.small_range else 0.0
        return float(m / PHI * (2**mean - correction))

    def standard_error(self) -> float:
        return SPREAD / math.sqrt(self.bitmaps.size) if self.bitmaps.any() else 0.0

    def at_least(self) -> float:
        return float(np.count_nonzero(self.bitmaps))

    @property
    def below_range(self) -> bool:
        return 0 < self.estimate() < 8 * self.bitmaps.size

    @property
    def memory_bits(self) -> int:
        return _BITMAP * self.bitmaps.size

    def _content(self) -> codec.Fields:
        return {"bitmaps": self.bitmaps}

    def _restore(self, fields: codec.Fields) -> None:
        self.bitmaps = fields["bitmaps"].copy()
