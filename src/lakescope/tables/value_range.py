"""The whole numbers or days that a column holds, as a range that it fills."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from lakescope.array_types import F64


@dataclass(frozen=True, slots=True)
class ValueRange:
    """Whole numbers (or days) that a set holds: how many between which.

    ``cuts`` part the rows that hold them into parts of equal size, if that is known.
    """

    low: float
    high: float
    distinct: int
    counts: bool = False
    cuts: tuple[float, ...] = ()

    @property
    def density(self) -> float:
        """Share of the numbers of the range that are there."""
        return min(1.0, self.distinct / max(1.0, self.high - self.low + 1))

    def chances(self, numbers: F64) -> F64:
        """The chance that each of some numbers is there, if which are is a matter of chance."""
        inside = (numbers >= self.low) & (numbers <= self.high)
        chances = np.full(numbers.size, self.density)
        if self.counts:
            chances = np.maximum(chances, np.minimum(1.0, self._scale() / (np.abs(numbers) + 1)))
        found: F64 = np.where(inside, chances, 0.0)
        return found

    def _scale(self) -> float:
        """The ``c`` for which ``min(1, c / |v|)`` adds up to the numbers that are there."""
        sides = [(max(0.0, self.low), self.high)] if self.high >= 0 else []
        if self.low < 0:
            sides.append((max(1.0, -self.high), -self.low))

        def total(c: float) -> float:
            found = 0.0
            for least, most in sides:
                full = min(max(c, least), most + 1)
                found += full - least + (c * math.log((most + 1) / full) if full > 0 else 0.0)
            return found

        low, high = 1e-9, max(self.high, -self.low) + 1
        for _ in range(60):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if total(middle) < self.distinct else (low, middle)
        return high

    @lru_cache(maxsize=16)  # noqa: B019 - a range is small, and few are asked about at a time
    def middles(self) -> F64:
        """Numbers that stand for those of the range, spread like them."""
        number = max(1, min(1000, self.distinct))
        if not self.cuts:
            return np.floor(np.linspace(self.low, self.high, number))
        reached = np.concatenate([[0.0], np.cumsum(self._shares())])
        points: F64 = np.interp((np.arange(number) + 0.5) * reached[-1] / number, reached, self.cuts)
        return np.floor(points)

    def _shares(self) -> F64:
        """Different numbers between each two cuts: as many everywhere, but no more than there are."""
        room = np.maximum(np.diff(self.cuts), 1e-9)
        low, high = 0.0, float(self.distinct)
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if np.minimum(room, middle).sum() < self.distinct else (low, middle)
        shares: F64 = np.minimum(room, high)
        return shares
