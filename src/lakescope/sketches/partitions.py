"""Sets partitioned by size with the fewest expected false positives (LSH Ensemble; spec-search-and-join 2.4, 2.5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lakescope.array_types import F64, I64

#: Partitions of an index. From the thesis, 2.4.6.
PARTITIONS = 32


@dataclass(frozen=True, slots=True)
class Partition:
    """Sets of similar size: from ``lower`` to ``upper`` distinct values, so many of them."""

    lower: int
    upper: int
    sets: int


def partition(sizes: I64, partitions: int = PARTITIONS) -> list[Partition]:
    """Cut sizes into intervals with the fewest expected false positives (spec 2.5). Empty sets belong to none."""
    distinct, counts = np.unique(sizes[sizes > 0], return_counts=True)
    if not distinct.size:
        return []
    ends = _best_ends(distinct, counts, min(partitions, distinct.size))
    begins = [0, *(end + 1 for end in ends[:-1])]
    return [
        Partition(int(distinct[begin]), int(distinct[end]), int(counts[begin : end + 1].sum()))
        for begin, end in zip(begins, ends, strict=True)
    ]


def _best_ends(distinct: I64, counts: I64, partitions: int) -> list[int]:
    """Index of the last size of each partition, by dynamic programming.

    The cost of cutting after ``i`` is a line in ``1 / size`` of the last size, so the best cut of every layer is read
    off the lower hull of those lines, which both sizes and slopes walk through in order.
    """
    total = np.concatenate([[0.0], np.cumsum(counts, dtype=np.float64)])
    weight = np.concatenate([[0.0], np.cumsum(counts * distinct, dtype=np.float64)])
    at = 1.0 / distinct
    own = total[1:] - weight[1:] * at
    best = own.copy()
    cuts = []
    for layer in range(1, partitions):
        best, cut = _cut_once_more(best, own, total, weight, at, layer)
        cuts.append(cut)
    ends = [distinct.size - 1]
    for cut in reversed(cuts):
        ends.append(int(cut[ends[-1]]))
    return ends[::-1]


def _cut_once_more(best: F64, own: F64, total: F64, weight: F64, at: F64, layer: int) -> tuple[F64, I64]:
    """Costs with one more partition, and after which size the last one begins."""
    n = best.size
    found = np.full(n, np.inf)
    cut = np.full(n, -1, np.int64)
    intercepts = (best - total[1:]).tolist()
    slopes = weight[1:].tolist()
    hull: list[int] = []
    first = 0
    places = at.tolist()
    base = own.tolist()
    for j in range(layer, n):
        new = j - 1
        while len(hull) - first >= 2 and _is_above(hull[-2], hull[-1], new, intercepts, slopes):
            hull.pop()
        hull.append(new)
        x = places[j]
        while first + 1 < len(hull) and _value(hull[first + 1], x, intercepts, slopes) <= _value(
            hull[first], x, intercepts, slopes
        ):
            first += 1
        found[j] = base[j] + _value(hull[first], x, intercepts, slopes)
        cut[j] = hull[first]
    return found, cut


def _value(line: int, x: float, intercepts: list[float], slopes: list[float]) -> float:
    return intercepts[line] + slopes[line] * x


def _is_above(one: int, middle: int, other: int, intercepts: list[float], slopes: list[float]) -> bool:
    """Whether a line lies nowhere below the two around it."""
    left = (intercepts[other] - intercepts[one]) * (slopes[middle] - slopes[one])
    right = (intercepts[middle] - intercepts[one]) * (slopes[other] - slopes[one])
    return left <= right
