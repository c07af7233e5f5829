"""LSH Ensemble: containment search by MinHash, with sets partitioned by size (Zhu et al.; spec-search-and-join 2).

A containment threshold means another Jaccard threshold for every size of set, so sets are partitioned by size, each
partition translating by its upper bound, and each is searched with the number of bands and rows that suits its bound,
the query and the threshold.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from lakescope.array_types import F64, I32, I64, U32, U64
from lakescope.engines.joins.inverted import InvertedIndex
from lakescope.engines.joins.josie import addresses, kernels_are_loaded
from lakescope.engines.joins.scratch import Scratch
from lakescope.sketches.minhash import PERMUTATIONS
from lakescope.sketches.partitions import Partition
from lakescope.store.inverted import InvertedSegment

Objective = Literal["recall", "paper"]


@dataclass(frozen=True, slots=True)
class EnsembleTuning:
    """How bands and rows are chosen, and when a candidate is dropped (spec 2.6).

    ``benchmarks/joins.py`` measures recall and precision for thresholds from 0.1 to 1 with these values
    ("Containment thresholds by signatures" in ``benchmarks/results/joins.md``).
    """

    #: Rows of a band, at most. Not measured.
    most_rows: int = 8
    #: Chance to find a set that just reaches the threshold, which bands and rows are chosen for. Measured: at most one
    #: in twenty is missed at any threshold (aims "missed within reach").
    recall: float = 0.95
    #: Ratios of the sizes of sets and query, for each doubling, for which bands and rows are computed; others take the
    #: next larger one. Not measured.
    ratios_per_octave: int = 4
    #: Points by which a chance is integrated. Not measured.
    points: int = 200
    #: Standard deviations by which a candidate must be below the threshold to be dropped: one-sided 99.9%. Measured
    #: with the recall above, which counts what is dropped as missed.
    sure: float = 3.0902


ENSEMBLE = EnsembleTuning()


def jaccard_of(containment: F64 | float, ratio: float) -> F64 | float:
    """The Jaccard similarity that means a containment, for a set ``ratio`` times as large as the query (2.3)."""
    return containment / (ratio + 1 - containment)


def containment_of(jaccard: F64, ratio: F64) -> F64:
    """The containment that a Jaccard similarity means (2.3)."""
    return np.minimum(1.0, np.minimum(ratio, (ratio + 1) * jaccard / (1 + jaccard)))


def reach(threshold: float, permutations: int = PERMUTATIONS) -> float:
    """Largest ratio of set to query at which a set that just reaches the threshold is found as often as wanted (2.6).

    Even if every position is a band of its own.
    """
    similarity = -math.expm1(math.log1p(-ENSEMBLE.recall) / permutations)
    return threshold / similarity + threshold - 1


@functools.lru_cache(maxsize=8192)
def bands_and_rows(
    step: int, threshold: float, permutations: int = PERMUTATIONS, objective: Objective = "recall"
) -> tuple[int, int]:
    """Bands and rows for sets ``ratio_of(step)`` times as large as the query (spec 2.6).

    ``paper`` minimises the sum of both errors as printed, which finds nothing at high thresholds. ``recall`` takes the
    fewest false positives that keep the recall at the threshold itself, where the columns of small queries are, or the
    highest recall there is.
    """
    ratio = ratio_of(step)
    top = min(1.0, ratio)
    below = _middles(0.0, min(threshold, top))
    above = _middles(threshold, top) if top > threshold else np.array([top])
    choices = [(b, r) for r in range(1, ENSEMBLE.most_rows + 1) for b in range(1, permutations // r + 1)]
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
        least = chance(np.array([min(threshold, top)]))
        kept = least >= ENSEMBLE.recall
        cost = np.where(kept, false, 2.0) if kept.any() else 1 - least
    least = cost.min()
    return max((choice for choice, each in zip(choices, cost, strict=True) if each <= least + 1e-12), key=_order)


def _order(choice: tuple[int, int]) -> tuple[int, int]:
    return choice[0], -choice[1]


def _middles(low: float, high: float) -> F64:
    return low + (high - low) * (np.arange(ENSEMBLE.points) + 0.5) / ENSEMBLE.points


def step_of(ratio: float) -> int:
    """The number of the next larger ratio of the grid."""
    return math.ceil(ENSEMBLE.ratios_per_octave * math.log2(ratio) - 1e-9)


def ratio_of(step: int) -> float:
    """A ratio of the grid by its number."""
    return float(2 ** (step / ENSEMBLE.ratios_per_octave))


@dataclass(frozen=True, slots=True)
class Hits:
    """Sets that may contain a query: estimated containments with 95% intervals, in order of the sets."""

    sets: I32
    containments: F64
    lows: F64
    highs: F64


class Ensemble:
    """Answers approximate questions about containment from signatures alone."""

    def __init__(self, index: InvertedIndex, partitions: Sequence[Partition]) -> None:
        self._index = index
        self.partitions = tuple(partitions)
        self._uppers = np.array([each.upper for each in partitions], np.int64)
        self._forests = [_Forest(part.segment) for part in index.parts]

    def plan(self, size: int, threshold: float, objective: Objective = "recall") -> list[tuple[int, int]]:
        """Bands and rows of every partition; (0, 0) for those whose sets are too small to reach the threshold."""
        chosen = []
        for each in self.partitions:
            ratio = each.upper / size
            fits = ratio >= threshold
            chosen.append(bands_and_rows(step_of(ratio), threshold, objective=objective) if fits else (0, 0))
        return chosen

    def out_of_reach(self, size: int, threshold: float) -> list[Partition]:
        """Partitions of sets so much larger than the query that signatures cannot tell (2.6)."""
        return [each for each in self.partitions if each.upper / size > reach(threshold)]

    def search(
        self, signature: U32, size: int, threshold: float, objective: Objective = "recall", *, screen: bool = True
    ) -> Hits:
        """Sets that share a band with the query, and how much of it they seem to contain.

        Bands let many sets pass; how many positions agree tells most of the wrong ones. With ``screen`` those are left
        out whose containment is below the threshold with a confidence of 99.9%.
        """
        found, masks = self._agreements(signature)
        sizes = self._index.sizes[found]
        agreeing = np.bitwise_count(masks).sum(axis=1, dtype=np.int64)
        if screen:
            _, highest = _wilson(agreeing / PERMUTATIONS, z=ENSEMBLE.sure)
            passed = np.flatnonzero(containment_of(highest, sizes / size) >= threshold - 1e-9)
            found, masks, sizes, agreeing = found[passed], masks[passed], sizes[passed], agreeing[passed]
        place = np.searchsorted(self._uppers, sizes)
        chosen = np.array(self.plan(size, threshold, objective), np.int64).reshape(-1, 2)
        kept = np.zeros(found.size, np.bool_)
        bits = np.unpackbits(masks.view(np.uint8), axis=1, bitorder="little")
        for number in np.unique(place).tolist():
            bands, rows = chosen[number].tolist()
            mine = np.flatnonzero(place == number)
            if bands:
                banded = bits[mine, : bands * rows].reshape(mine.size, bands, rows)
                kept[mine[banded.min(axis=2).max(axis=1) == 1]] = True
        order = np.flatnonzero(kept)
        order = order[np.argsort(found[order])]
        return self._hits(found[order], agreeing[order], sizes[order] / size)

    def _hits(self, sets: I32, agreeing: I64, ratios: F64) -> Hits:
        low, high = _wilson(agreeing / PERMUTATIONS)
        estimates = (containment_of(jaccard, ratios) for jaccard in (agreeing / PERMUTATIONS, low, high))
        return Hits(sets, *estimates)

    def _agreements(self, signature: U32) -> tuple[I32, U64]:
        """Sets that agree with a signature somewhere, and in which positions, a bit each."""
        found = []
        for part, forest in zip(self._index.parts, self._forests, strict=True):
            sets, masks = forest.agreements(signature)
            numbers = part.in_lake(sets)
            there = numbers >= 0
            found.append((numbers, masks) if there.all() else (numbers[there], masks[there]))
        if len(found) == 1:
            return found[0]
        return np.concatenate([sets for sets, _ in found]), np.concatenate([masks for _, masks in found])


class _Forest:
    """The signatures of a segment, position by position in order of their values."""

    def __init__(self, segment: InvertedSegment) -> None:
        self._segment = segment
        self._sets = int(segment.set_bounds[-1])
        self._scratch = Scratch(self._workspace)

    def agreements(self, signature: U32) -> tuple[I32, U64]:
        """Sets of the segment that agree with a signature somewhere, and in which positions, a bit each."""
        if not kernels_are_loaded():
            return self._agreements_plainly(signature)
        from lakescope.engines.joins import kernels

        forest = self._segment.forest
        bounds = np.array([0, *(int(file["range"][1]) for file in forest)], np.int64)
        with self._scratch.borrow() as (slots, found, masks):
            n = kernels.agreements(
                *(signature, bounds, addresses(forest, "values"), addresses(forest, "sets"), self._sets),
                *(slots, found, masks),
            )
            if n < 0:
                raise self._segment.damaged()
            return found[:n].copy(), masks[:n].copy()

    def _workspace(self) -> tuple[I32, I32, U64]:
        """Memory of one question: the slot of every set that agrees somewhere, these sets, and where they do."""
        masks = np.empty((self._sets, PERMUTATIONS // 64), np.uint64)
        return np.full(self._sets, -1, np.int32), np.empty(self._sets, np.int32), masks

    def _agreements_plainly(self, signature: U32) -> tuple[I32, U64]:
        """The sets that agree with a signature somewhere, and where, by numpy alone."""
        sets: list[I32] = [np.empty(0, np.int32)]
        positions: list[I64] = [np.empty(0, np.int64)]
        for file in self._segment.forest:
            first, last = file["range"].tolist()
            values = file["values"].reshape(last - first, -1)
            numbers = file["sets"].reshape(last - first, -1)
            for position in range(first, last):
                row = values[position - first]
                begin, end = (
                    np.searchsorted(row, signature[position : position + 1], "left"),
                    np.searchsorted(row, signature[position : position + 1], "right"),
                )
                sets.append(numbers[position - first, int(begin[0]) : int(end[0])])
                positions.append(np.full(int(end[0] - begin[0]), position))
        every, place = np.unique(np.concatenate(sets), return_inverse=True)
        bits = np.zeros((every.size, PERMUTATIONS), np.uint8)
        bits[place, np.concatenate(positions)] = 1
        return every, np.packbits(bits, axis=1, bitorder="little").view(np.uint64)


def _wilson(share: F64, z: float = 1.959964) -> tuple[F64, F64]:
    """Interval of a share of the positions, by default of 95%."""
    n = PERMUTATIONS
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return np.maximum(0.0, middle - half), np.minimum(1.0, middle + half)
