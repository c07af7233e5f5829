"""Exact overlaps with the sets of a lake: each segment is searched by itself, what is found is put together.

A set lies in one segment, so that the best of all are among the best of each.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lakescope.array_types import I32, I64, U64
from lakescope.engines.joins.costs import Costs
from lakescope.engines.joins.inverted import InvertedIndex, Part
from lakescope.engines.joins.josie import Algorithm, Overlaps, SegmentOverlaps, kernels_are_loaded
from lakescope.engines.joins.small_segments import SmallSegments
from lakescope.once import once
from lakescope.store.inverted import QueryGroups

#: A segment, its search, and what a query has there.
_SegmentQuery = tuple[Part, SegmentOverlaps, QueryGroups]


class OverlapSearch:
    """Answers exact questions about overlaps."""

    def __init__(self, index: InvertedIndex, costs: Costs | None = None, within: range | None = None) -> None:
        self.index = index
        self._within = within
        self._searches = [
            SegmentOverlaps(part.segment, costs, None if within is None else part.local_range(within))
            for part in index.parts
        ]

    @once
    def largest(self) -> SegmentOverlaps:
        """The search of the segment that holds most."""
        return max(self._searches, key=lambda search: int(search.index.sizes.sum()))

    @once
    def _small(self) -> SmallSegments | None:
        """All segments but the largest, if they can be searched at once."""
        if self._within is not None or len(self._searches) < 2 or any(each.index.partly for each in self._searches):
            return None
        others = [part for part, each in zip(self.index.parts, self._searches, strict=True) if each is not self.largest]
        return SmallSegments(others, self.index.count)

    @property
    def costs(self) -> Costs:
        return self._searches[0].costs

    def set_costs(self, costs: Costs) -> None:
        """Decide by these costs from now on."""
        for search in self._searches:
            search.set_costs(costs)

    def load(self) -> None:
        """Load the kernels: for questions that would not wait for less."""
        for search in self._searches:
            search.load()

    def warm(self) -> None:
        """Load the kernels and run each of them once."""
        for search in self._searches:
            search.warm()
        self.index.prepare()
        self.query(np.zeros(1, np.uint64))
        if self.index.count:
            self.top(self.index.query_of_set(0), 1)

    def query(self, tokens: U64) -> QueryGroups:
        """A query of distinct tokens."""
        return self._searches[0].query(tokens) if len(self._searches) == 1 else self.index.query(tokens)

    def top(
        self, query: QueryGroups, k: int, exclude: Sequence[int] = (), algorithm: Algorithm | None = None
    ) -> Overlaps:
        """The ``k`` sets with the largest overlap, without those to be left out."""
        if self.index.alone is not None:
            return self._searches[0].top(query, k, np.array(exclude, np.int64), algorithm)
        best = _BestSets(k)
        at_once = self._small if algorithm in (None, "josie") and kernels_are_loaded() and k > 0 else None
        if at_once is not None:
            number = self._searches.index(self.largest)
            part, local = self.index.parts[number], self.index.parts[number].local(query)
            best.add(self._searches[number].top(local, k, self._left_out(part, exclude), algorithm), part)
            if (others := at_once.top(query, k, np.array(exclude, np.int64), best.least)) is not None:
                best.add(others)
                return best.answer()
        # Where most of the query is known first: few segments can then do better than what is found already.
        known = [
            (int(local.weights.sum()), part, search, local) for part, search, local in self._segments_knowing(query)
        ]
        for weight, part, search, local in sorted(known, key=lambda each: -each[0]):
            if weight < best.least:
                break
            if part not in best.searched:
                best.add(search.top(local, k, self._left_out(part, exclude), algorithm, best.least), part)
        return best.answer()

    def at_least(self, query: QueryGroups, minimum: int, exclude: Sequence[int] = ()) -> Overlaps:
        """All sets with at least this overlap, in order of the sets: every list is read."""
        if self.index.alone is not None:
            return self._searches[0].at_least(query, minimum, np.array(exclude, np.int64))
        asked = self._segments_knowing(query)
        found = [search.at_least(local, minimum, self._left_out(part, exclude)) for part, search, local in asked]
        sets, overlaps = self._in_lake(asked, found)
        order = np.argsort(sets)
        return _summed(found, sets[order], overlaps[order])

    def overlaps_of(self, query: QueryGroups, sets: I32, least: int = 0) -> I32:
        """The overlap of each of some sets; what is less than ``least`` need not be exact."""
        if self.index.alone is not None:
            return self._searches[0].overlaps_of(query, sets, least)
        found = np.zeros(sets.size, np.int32)
        numbers, locals_ = self.index.places
        for number, (part, search) in enumerate(zip(self.index.parts, self._searches, strict=True)):
            mine = np.flatnonzero(numbers[sets] == number)
            if mine.size:
                found[mine] = search.overlaps_of(part.local(query), locals_[sets[mine]], least)
        return found

    def _segments_knowing(self, query: QueryGroups) -> list[_SegmentQuery]:
        """The segments that know something of a query, the first one at least, and what each knows."""
        starts = [part.first_group for part in self.index.parts]
        bounds = [*np.searchsorted(query.groups, starts).tolist(), int(query.groups.size)]
        known = [number for number in range(len(starts)) if bounds[number] < bounds[number + 1]] or [0]
        return [(self.index.parts[at], self._searches[at], self.index.parts[at].local(query)) for at in known]

    def _left_out(self, part: Part, exclude: Sequence[int]) -> I64:
        """Sets of a segment that must not be found: those that are gone, and those to be left out."""
        if not len(exclude):
            return part.gone
        numbers, locals_ = self.index.places
        wanted = np.array(exclude, np.int64)
        mine = wanted[numbers[wanted] == self.index.parts.index(part)]
        return np.concatenate([part.gone, locals_[mine]]) if mine.size else part.gone

    @staticmethod
    def _in_lake(asked: list[_SegmentQuery], found: list[Overlaps]) -> tuple[I32, I32]:
        sets = np.concatenate([part.in_lake(each.sets) for (part, *_), each in zip(asked, found, strict=True)])
        return sets, np.concatenate([each.overlaps for each in found])


class _BestSets:
    """The best sets of the lake so far."""

    def __init__(self, k: int) -> None:
        self._k = k
        self._answers: list[Overlaps] = []
        self._sets, self._overlaps = np.empty(0, np.int32), np.empty(0, np.int32)
        #: The segments that were searched by themselves.
        self.searched: list[Part] = []

    @property
    def least(self) -> int:
        """The least overlap with which a set is still among the best."""
        return int(self._overlaps[-1]) if self._overlaps.size >= self._k > 0 else 0

    def add(self, here: Overlaps, part: Part | None = None) -> None:
        """Add the best sets of a segment, which have its numbers, or of several, which have those of the lake."""
        self._answers.append(here)
        if part is not None:
            self.searched.append(part)
        if here.overlaps.size and here.overlaps[0] >= self.least:
            sets = np.concatenate([self._sets, here.sets if part is None else part.in_lake(here.sets)])
            overlaps = np.concatenate([self._overlaps, here.overlaps])
            order = np.lexsort((sets, -overlaps))[: self._k]
            self._sets, self._overlaps = sets[order], overlaps[order]

    def answer(self) -> Overlaps:
        return _summed(self._answers, self._sets, self._overlaps)


def _summed(found: list[Overlaps], sets: I32, overlaps: I32) -> Overlaps:
    """Sets of several segments, and what was read in all."""
    read = (sum(getattr(each, name) for each in found) for name in ("lists", "entries", "sets_read", "decisions"))
    return Overlaps(sets, overlaps, found[0].algorithm, *read)
