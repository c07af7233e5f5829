"""What share of a column's values is in another? From sketches alone, for one pair or all of a lake (spec part C).

Lists tell it almost exactly while both columns are small; registers by maximum likelihood, given how many values each
column has. Where a small column meets one so large that their registers say nothing, the answer is unknown, and the
inverted index, which holds the very values, can be asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lakescope.array_types import F64, I64, U8, U64, Bools
from lakescope.engines.joins.inverted import InvertedIndex
from lakescope.engines.joins.overlaps import OverlapSearch
from lakescope.engines.keys.answers import Estimator
from lakescope.engines.keys.joint import joint
from lakescope.engines.keys.sketched import PRECISION, SketchedColumns, fold_to_precision, registers_of
from lakescope.errors import BadRequest
from lakescope.once import once
from lakescope.sketches.hyperloglog import HyperLogLogPlusPlus
from lakescope.store.inverted import InvertedSegment
from lakescope.threads import in_parts

#: What an estimate rests on, by the codes of the kernels, and what they do not know.
EVIDENCE = ("lists", "registers", "unknown", "exact", "hashes", "bml")
_LISTS, REGISTERS, UNKNOWN, EXACT, _HASHES, _BML = range(6)

#: Smallest hashes of a column that take as much room as its registers (spec 4.7).
_BOTTOM_K = 6 * (1 << PRECISION) // 64
#: Precision up to which the paper's estimator folds.
_PYRAMID = 10


@dataclass(frozen=True, slots=True)
class InclusionTuning:
    """How pairs are looked at. Answers do not depend on it."""

    #: Pairs that are kept room for at first, a thread; more room is made when it is full. Not measured.
    room: int = 1 << 16


INCLUSIONS = InclusionTuning()


class Share(NamedTuple):
    """An estimated share with its interval, and what it rests on: ``lists``, ``registers`` or ``unknown``."""

    value: float
    low: float
    high: float
    evidence: str


def included(
    x: HyperLogLogPlusPlus, y: HyperLogLogPlusPlus, n_x: float | None = None, n_y: float | None = None
) -> Share:
    """The share of the values behind one sketch that are behind another, by the default estimator.

    ``n_x`` and ``n_y`` are the numbers of values, if they are known exactly.
    """
    from lakescope.engines.keys import kernels

    if x.precision != y.precision:
        raise BadRequest(
            f"sketches of precision {x.precision} and {y.precision} cannot be compared", hint="fold the larger one"
        )
    mine, theirs = registers_of(x, x.precision), registers_of(y, y.precision)
    counts = np.zeros((3, 66), np.int64)
    kernels.compare(mine, theirs, counts)
    if not mine.any():
        return Share(0.0, 0.0, 1.0, "unknown")
    if x.registers is None and y.registers is None:
        common = kernels.common_entries(x.entries, y.entries)
        false = kernels.false_entries(x.entries.size, y.entries.size)
        return Share(common / x.entries.size, max(0, common - false) / x.entries.size, common / x.entries.size, "lists")
    sizes = max(1.0, x.estimate() if n_x is None else n_x), max(1.0, y.estimate() if n_y is None else n_y)
    value, low, high = kernels.estimate(*sizes, counts, float(mine.size))
    if not kernels.can_tell(*sizes, float(mine.size)):
        return Share(value, 0.0, 1.0, "unknown")
    if n_x is None or n_y is None:
        # Sizes that are estimates themselves: the interval must know.
        both = joint(mine, theirs, *sizes)
        low, high = min(low, both.low), max(high, both.high)
    return Share(value, low, high, "registers")


@dataclass(frozen=True, slots=True)
class IncludedPairs:
    """Pairs of columns by their numbers in the lake, with the share of each child that is in the parent."""

    children: I64
    parents: I64
    shares: F64
    lows: F64
    highs: F64
    evidence: U8
    looked_at: int

    def take(self, rows: I64 | Bools) -> IncludedPairs:
        """Some of these pairs."""
        return IncludedPairs(
            children=self.children[rows],
            parents=self.parents[rows],
            shares=self.shares[rows],
            lows=self.lows[rows],
            highs=self.highs[rows],
            evidence=self.evidence[rows],
            looked_at=self.looked_at,
        )


class InclusionSearch:
    """All pairs of a lake of which one column may be included in the other."""

    def __init__(self, columns: SketchedColumns, overlaps: OverlapSearch | None) -> None:
        self.columns = columns
        self._overlaps = overlaps

    def search(
        self,
        minimum: float,
        *,
        estimator: Estimator = "hybrid",
        verify: bool = False,
        least: int = 1,
        parents: Sequence[int] | None = None,
    ) -> IncludedPairs:
        """Pairs of which the share may reach the minimum: its interval does, or the estimate of a way without one.

        ``parents`` are the columns to look for children of; ``least`` is the fewest values of a child. ``verify``
        counts common values by the inverted index, and so does the estimator ``exact``.
        """
        wanted = None if parents is None else self._places(parents)
        pairs, looked_at = self._candidates(minimum, least, wanted)
        # Whoever counts trusts no estimate: every pair that is not ruled out is counted.
        shares, evidence = self._estimated(pairs, minimum, "exact" if verify else estimator)
        bound = shares[:, 0] if estimator in ("bml", "bottomk") and not verify else shares[:, 2]
        hopeful = (bound >= minimum - 1e-9) | (evidence == UNKNOWN)
        pairs, shares, evidence = pairs[hopeful], shares[hopeful], evidence[hopeful]
        found = IncludedPairs(
            children=self.columns.numbers[pairs[:, 0]],
            parents=self.columns.numbers[pairs[:, 1]],
            shares=shares[:, 0],
            lows=shares[:, 1],
            highs=shares[:, 2],
            evidence=evidence,
            looked_at=looked_at,
        )
        return self.count_common(found, minimum) if verify or estimator == "exact" else found

    def count_common(self, found: IncludedPairs, minimum: float, rows: Bools | None = None) -> IncludedPairs:
        """Pairs with their common values counted, all or some, of which those below the minimum are dropped."""
        if self._overlaps is None:
            raise BadRequest(
                "this index holds profiles only: values cannot be counted", hint="index again without --no-joins"
            )
        inverted = self._overlaps.index
        shares, lows, highs = found.shares.copy(), found.lows.copy(), found.highs.copy()
        evidence = found.evidence.copy()
        chosen = np.arange(shares.size) if rows is None else np.flatnonzero(rows)
        order = chosen[np.argsort(found.children[chosen], kind="stable")]
        for part in np.split(order, np.flatnonzero(np.diff(found.children[order])) + 1):
            if part.size:
                query = inverted.query_of_set(int(found.children[part[0]]))
                common = self._overlaps.overlaps_of(query, found.parents[part].astype(np.int32))
                shares[part] = lows[part] = highs[part] = common / max(1, query.size)
                evidence[part] = EXACT
        kept = np.ones(shares.size, np.bool_)
        kept[chosen] = shares[chosen] >= minimum - 1e-9
        whole = IncludedPairs(found.children, found.parents, shares, lows, highs, evidence, found.looked_at)
        return whole.take(kept)

    def _places(self, numbers: Sequence[int]) -> I64:
        places = [self.columns.place_of(number) for number in numbers]
        return np.array(sorted(each for each in places if each is not None), np.int64)

    def _candidates(self, minimum: float, least: int, parents: I64 | None) -> tuple[I64, int]:
        """Pairs that sizes, ranges and a look at registers leave, and how many were looked at."""
        from lakescope.engines.keys import kernels

        columns = self.columns
        wanted = np.arange(columns.count) if parents is None else parents
        found: dict[int, I64] = {}
        looked: dict[int, int] = {}

        def part(begin: int, end: int) -> None:
            room = INCLUSIONS.room
            while True:
                pairs = np.empty((room, 2), np.int64)
                n, seen = kernels.screen(
                    *(wanted[begin:end], columns.sizes, columns.families, columns.lows, columns.highs),
                    *(columns.exact_sizes, columns.starts, columns.places, columns.runs, columns.dense_rows),
                    *(columns.dense, columns.few, minimum, least, pairs),
                )
                if n >= 0:
                    found[begin], looked[begin] = pairs[:n].copy(), int(seen)
                    return
                room *= 4

        # Columns are in order of their size: each is looked at beside all smaller ones.
        in_parts(part, (wanted + 1) * 20)
        ordered = [found[begin] for begin in sorted(found)]
        return np.concatenate([np.empty((0, 2), np.int64), *ordered]), sum(looked.values())

    def _estimated(self, pairs: I64, minimum: float, estimator: Estimator) -> tuple[F64, U8]:
        """Share, low and high of pairs, and what each rests on."""
        from lakescope.engines.keys import kernels

        shares, evidence = np.ones((pairs.shape[0], 3)), np.full(pairs.shape[0], REGISTERS, np.uint8)
        columns = self.columns
        if estimator == "exact":
            return shares, evidence
        if estimator == "bml":
            estimates = np.empty(pairs.shape[0])
            n_x, n_y = columns.sizes[pairs[:, 0]], columns.sizes[pairs[:, 1]]
            in_parts(
                lambda begin, end: kernels.bml_pairs(
                    pairs[begin:end], columns.sizes, self._pyramids, estimates[begin:end]
                ),
                np.full(pairs.shape[0], 200),
            )
            is_known = n_x * (1 << PRECISION) >= kernels.REGISTER_TUNING.telling * n_y
            return _without_interval(estimates), np.where(is_known, _BML, UNKNOWN).astype(np.uint8)
        if estimator == "bottomk":
            return self._by_hashes(pairs)

        def part(begin: int, end: int) -> None:
            kernels.judge(
                *(pairs[begin:end], columns.sizes, columns.starts, columns.places, columns.runs),
                *(columns.entry_starts, columns.entries, columns.dense_rows, columns.dense, columns.histograms),
                *(estimator == "hybrid", minimum, shares[begin:end], evidence[begin:end]),
            )

        in_parts(part, np.full(pairs.shape[0], 2_000))
        return shares, evidence

    @once
    def _pyramids(self) -> U8:
        """Registers of every column, folded to each precision up to the paper's largest."""
        made = np.zeros((self.columns.count, 2 << _PYRAMID), np.uint8)
        for place in range(self.columns.count):
            registers = self.columns.registers(place)
            for precision in range(_PYRAMID + 1):
                made[place, 1 << precision : 2 << precision] = fold_to_precision(registers, precision)
        return made

    def _by_hashes(self, pairs: I64) -> tuple[F64, U8]:
        from lakescope.engines.keys import kernels

        if self._overlaps is None:
            raise BadRequest("this index holds no hashes of values", hint="use another estimator: hybrid, mle or bml")
        smallest, filled = smallest_hashes(self._overlaps.index, _BOTTOM_K)
        estimates = np.empty(pairs.shape[0])
        numbers = self.columns.numbers[pairs]
        kernels.bottom_k_pairs(numbers, smallest, filled, _BOTTOM_K, estimates)
        evidence = np.where(estimates < 0, UNKNOWN, _HASHES).astype(np.uint8)
        return _without_interval(np.maximum(estimates, 0.0)), evidence


def _without_interval(estimates: F64) -> F64:
    """Estimates of ways that tell no interval: anything is possible."""
    found = np.empty((estimates.size, 3))
    found[:, 0], found[:, 1], found[:, 2] = estimates, 0.0, 1.0
    return found


def smallest_hashes(inverted: InvertedIndex, k: int) -> tuple[U64, I64]:
    """The ``k`` smallest hashes of every set, in order, and how many there are: one pass over tokens in their order."""
    smallest, filled = np.zeros((inverted.count, k), np.uint64), np.zeros(inverted.count, np.int64)
    for part in inverted.parts:
        numbers = part.in_lake(part.live.astype(np.int32))
        hashes, counts = _smallest_of_segment(part.segment, k)
        smallest[numbers], filled[numbers] = hashes[part.live], counts[part.live]
    return smallest, filled


def _smallest_of_segment(inverted: InvertedSegment, k: int) -> tuple[U64, I64]:
    from lakescope.engines.keys import kernels

    count = int(inverted.set_bounds[-1])
    smallest, filled = np.zeros((count, k), np.uint64), np.zeros(count, np.int64)
    if len(inverted.postings) > 1:
        starts = (
            np.concatenate([[0], *(np.diff(file["starts"]) for file in inverted.postings)]).cumsum().astype(np.int64)
        )
        sets = np.concatenate([file["sets"] for file in inverted.postings])
    else:
        starts, sets = np.array(inverted.postings[0]["starts"]), np.array(inverted.postings[0]["sets"])
    for file in inverted.tokens:
        kernels.smallest_of_sets(np.array(file["hashes"]), np.array(file["groups"]), starts, sets, k, smallest, filled)
    return smallest, filled
