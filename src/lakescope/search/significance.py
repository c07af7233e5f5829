"""Is an overlap more than chance? Expected overlaps under a null model, and a word for the quality of a join.

Values that occur everywhere (small numbers, yes and no, years) overlap without any relation. Two null models say how
much overlap there would be if columns had nothing to do with each other, and the larger one counts:

*Popularity.* A set of the same size that takes tokens as often as the lake's sets do: token ``t``, held by ``f`` of the
lake's sets, is in a set of size ``s`` with chance ``1 - (1 - f / M) ** s``, where ``M`` counts all pairs of token and
set. Frequent values are expected, rare ones are not.

*Density.* Integers and days fill ranges. If a set holds a share ``d`` of the whole numbers between its least and its
largest value, it holds each of the query's values within that range with chance ``d``. Counts and amounts fill theirs
unevenly, small ones first: those hold the number ``v`` with chance ``min(1, c / |v|)``, where ``c`` follows from how
many they hold in all, on both sides of 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]

#: Chance of an overlap below which it is called significant, before correcting for the number of columns looked at.
LEVEL = 0.01
#: A query of fewer distinct values says too little, whatever it overlaps with.
FEWEST = 3

#: NextiaJD's quality classes: least containment and least ratio of the smaller to the larger number of distinct values.
QUALITIES = (("high", 3 / 4, 1 / 4), ("good", 1 / 2, 1 / 8), ("moderate", 1 / 4, 1 / 12), ("poor", 1 / 10, 0.0))


def quality(containment: float, query_size: int, size: int) -> str:
    """A word for how well a column joins: from ``high`` to ``none``."""
    ratio = min(query_size, size) / max(query_size, size, 1)
    for word, least, proportion in QUALITIES:
        if containment >= least and ratio >= proportion:
            return word
    return "none"


@dataclass(frozen=True, slots=True)
class Range:
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


def expected_by_popularity(frequencies: I32, weights: I32, sizes: I64, pairs: int) -> F64:
    """Expected overlap with an unrelated set of each size, for a query of groups with these frequencies and weights."""
    rates = np.log1p(-np.minimum(frequencies / max(1, pairs), 1 - 1e-12))
    return np.array([float((weights * -np.expm1(size * rates)).sum()) for size in sizes.tolist()])


def is_beyond_chance(frequencies: I32, weights: I32, pairs: int, level: float) -> bool:
    """Whether a set could overlap so much with a query that popularity explains it with less than such a chance.

    It could at best hold all of the query's values that are known, and nothing else. A smaller overlap is no better:
    what is expected grows slower than the set (it is concave in its size), and of two overlaps in the same proportion
    to what is expected the larger is the less likely.
    """
    known = int(weights.sum())
    expected = float(expected_by_popularity(frequencies, weights, np.array([known]), pairs)[0])
    return chance(known, expected) <= level


def expected_by_density(mine: F64 | Range, theirs: Range) -> float:
    """Expected overlap of whole numbers, or of a range of them, with a range that holds a share of its numbers."""
    if isinstance(mine, Range):
        points = mine.middles()
        return float(theirs.chances(points).sum() * mine.distinct / points.size)
    return float(theirs.chances(mine).sum())


def chance(overlap: int, expected: float) -> float:
    """Chance of at least such an overlap if the expected one is due to chance: the upper tail of a Poisson law."""
    if overlap <= 0:
        return 1.0
    if expected <= 0:
        return 0.0
    # The side with the smaller sum, whose terms fall from the overlap on.
    if overlap > expected:
        return min(1.0, _sum_from(overlap, expected, upwards=True))
    return max(0.0, 1.0 - _sum_from(overlap - 1, expected, upwards=False))


def _sum_from(k: int, mean: float, *, upwards: bool) -> float:
    """Sum of the terms of a Poisson law from ``k`` on, away from the mean."""
    term = math.exp(k * math.log(mean) - mean - math.lgamma(k + 1))
    total = 0.0
    while k >= 0 and term > 1e-17 * total:
        total += term
        term *= mean / (k + 1) if upwards else k / mean
        k += 1 if upwards else -1
    return total
