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

import numpy as np

from lakescope.array_types import F64, I32, I64
from lakescope.tables.value_range import ValueRange


@dataclass(frozen=True, slots=True)
class SignificanceTuning:
    """When an overlap is taken for more than chance."""

    #: Chance of an overlap below which it is called significant, before correcting for the number of columns looked at.
    #: Not measured: a level by convention.
    level: float = 0.01
    #: A query of fewer distinct values says too little, whatever it overlaps with. Not measured.
    fewest: int = 3


SIGNIFICANCE = SignificanceTuning()


#: NextiaJD's quality classes: least containment and least ratio of the smaller to the larger number of distinct values.
QUALITIES = (("high", 3 / 4, 1 / 4), ("good", 1 / 2, 1 / 8), ("moderate", 1 / 4, 1 / 12), ("poor", 1 / 10, 0.0))


def quality(containment: float, query_size: int, size: int) -> str:
    """A word for how well a column joins: from ``high`` to ``none``."""
    ratio = min(query_size, size) / max(query_size, size, 1)
    for word, least, proportion in QUALITIES:
        if containment >= least and ratio >= proportion:
            return word
    return "none"


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


def expected_by_density(mine: F64 | ValueRange, theirs: ValueRange) -> float:
    """Expected overlap of whole numbers, or of a range of them, with a range that holds a share of its numbers."""
    if isinstance(mine, ValueRange):
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
