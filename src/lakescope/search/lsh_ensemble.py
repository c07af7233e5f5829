"""LSH Ensemble: containment search by MinHash, with sets partitioned by size (Zhu et al.; spec-search-and-join 2).

A containment threshold means another Jaccard threshold for every size of set, so sets are partitioned by size, each
partition translating by its upper bound, and each is searched with the number of bands and rows that suits its bound,
the query and the threshold.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from lakescope.sketches.minhash import PERMUTATIONS

I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]
Objective = Literal["recall", "paper"]

PARTITIONS = 32
#: Rows of a band, at most.
MOST_ROWS = 8
#: Mean recall that bands and rows are chosen for, over the containments a hit may have.
RECALL = 0.97
#: Ratios of the sizes of sets and query for which bands and rows are computed; others take the next larger one.
_RATIOS_PER_OCTAVE = 4
_POINTS = 200


@dataclass(frozen=True, slots=True)
class Partition:
    """Sets of similar size: from ``lower`` to ``upper`` distinct values, so many of them."""

    lower: int
    upper: int
    sets: int


def partition(sizes: I64, partitions: int = PARTITIONS) -> list[Partition]:
    """Cut sizes into intervals with the fewest expected false positives (spec 2.5). Empty sets belong to none."""
    distinct, counts = np.unique(sizes[sizes > 0], return_counts=True)
    ends = _best_ends(distinct, counts, min(partitions, distinct.size))
    begins = [0, *(end + 1 for end in ends[:-1])]
    return [
        Partition(int(distinct[begin]), int(distinct[end]), int(counts[begin : end + 1].sum()))
        for begin, end in zip(begins, ends, strict=True)
    ]


def expected_false_positives(distinct: I64, counts: I64) -> float:
    """Bound of the false positives of one partition of these sizes: each set's distance to the upper bound (2.4)."""
    return float((counts * (1 - distinct / distinct[-1])).sum())


def _best_ends(distinct: I64, counts: I64, partitions: int) -> list[int]:
    """Index of the last size of each partition, by dynamic programming.

    The cost of cutting after ``i`` is a line in ``1 / size`` of the last size, so the best cut of every layer is read
    off the lower hull of those lines, which both sizes and slopes walk through in order.
    """
    if not distinct.size:
        return []
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


def jaccard_of(containment: F64 | float, ratio: float) -> F64 | float:
    """The Jaccard similarity that means a containment, for a set ``ratio`` times as large as the query (2.3)."""
    return containment / (ratio + 1 - containment)


def containment_of(jaccard: F64, ratio: F64) -> F64:
    """The containment that a Jaccard similarity means (2.3)."""
    return np.minimum(1.0, np.minimum(ratio, (ratio + 1) * jaccard / (1 + jaccard)))


def reach(permutations: int = PERMUTATIONS) -> float:
    """Largest ratio of set to query at which even a wholly contained query is found nine times in ten (2.6)."""
    return permutations / 2.3


@functools.lru_cache(maxsize=8192)
def bands_and_rows(
    step: int, threshold: float, permutations: int = PERMUTATIONS, objective: Objective = "recall"
) -> tuple[int, int]:
    """Bands and rows for sets ``ratio_of(step)`` times as large as the query (spec 2.6).

    ``paper`` minimises the sum of both errors as printed, which finds nothing at high thresholds. ``recall`` takes the
    fewest false positives that keep the mean recall of hits, or the highest recall there is.
    """
    ratio = ratio_of(step)
    top = min(1.0, ratio)
    below = _middles(0.0, min(threshold, top))
    above = _middles(threshold, top) if top > threshold else np.array([top])
    choices = [(b, r) for r in range(1, MOST_ROWS + 1) for b in range(1, permutations // r + 1)]
    bands = np.array([b for b, _ in choices], np.float64)[:, None]
    rows = np.array([r for _, r in choices], np.float64)[:, None]

    def chance(containments: F64) -> F64:
        similarity = np.asarray(jaccard_of(containments, ratio))[None, :]
        found: F64 = (1 - (1 - similarity**rows) ** bands).mean(axis=1)
        return found

    false, missed = chance(below), 1 - chance(above)
    if objective == "paper":
        cost = false * min(threshold, top) + missed * max(0.0, top - threshold)
    else:
        kept = 1 - missed >= RECALL
        cost = np.where(kept, false, 2.0) if kept.any() else missed
    least = cost.min()
    return max((choice for choice, each in zip(choices, cost, strict=True) if each <= least + 1e-12), key=_order)


def _order(choice: tuple[int, int]) -> tuple[int, int]:
    return choice[0], -choice[1]


def _middles(low: float, high: float) -> F64:
    return low + (high - low) * (np.arange(_POINTS) + 0.5) / _POINTS


def step_of(ratio: float) -> int:
    """The number of the next larger ratio of the grid."""
    return math.ceil(_RATIOS_PER_OCTAVE * math.log2(ratio) - 1e-9)


def ratio_of(step: int) -> float:
    """A ratio of the grid by its number."""
    return float(2 ** (step / _RATIOS_PER_OCTAVE))
