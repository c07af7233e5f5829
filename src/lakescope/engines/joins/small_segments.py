"""Overlaps with the sets of several small segments at once.

To search a segment by itself takes some preparation, whatever it holds. An update brings a segment of a few tables, so
that after twenty of them preparing would take longer than searching: their lists are merged in one go instead, as
MergeList does (spec-search-and-join 3.4), unless a query has so many entries there that it is worth skipping some.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lakescope.array_types import I32, I64
from lakescope.engines.joins.inverted import Part
from lakescope.engines.joins.josie import Overlaps
from lakescope.engines.joins.scratch import Scratch
from lakescope.store.inverted import QueryGroups


@dataclass(frozen=True, slots=True)
class SmallSegmentsTuning:
    """How much is merged at once of small segments. Answers do not depend on it."""

    #: Entries of lists that are read in the time it takes to get ready for searching one segment: so many for each
    #: segment are merged, else each is searched by itself. Not measured by itself: ``benchmarks/results/updates.md``
    #: has questions to lakes of many segments.
    prepared: int = 50_000


SMALL_SEGMENTS = SmallSegmentsTuning()


class SmallSegments:
    """Merges the lists of some segments, whose sets are numbered as in the lake."""

    def __init__(self, parts: Sequence[Part], sets: int) -> None:
        at = [part.addresses for part in parts]
        files = [(each, number) for each, addresses in enumerate(at) for number in range(addresses.list_starts.size)]
        self._first = np.array([part.first_group for part in parts], np.int64)
        self._end = self._first + [int(part.segment.group_bounds[-1]) for part in parts]
        #: Sets of the lake by the sets of each segment; -1 of those that are gone.
        self._numbers = [
            np.arange(int(part.segment.set_bounds[-1]), dtype=np.int32) if part.numbers is None else part.numbers
            for part in parts
        ]
        self._bounds = np.array([[at[each].group_bounds[n], at[each].group_bounds[n + 1]] for each, n in files])
        self._bounds += self._first[[each for each, _ in files]][:, None]
        self._files = np.array(
            [
                [
                    *(at[each].list_starts[n], at[each].list_items[n], at[each].list_sizes[n]),
                    *(self._numbers[each].__array_interface__["data"][0], self._numbers[each].size),
                ]
                for each, n in files
            ],
            np.uint64,
        )
        self._parts = list(parts)
        #: The overlap of every set, 0 before and after a question, and those it met.
        self._scratch = Scratch(lambda: (np.zeros(sets, np.int32), np.empty(sets, np.int32)))

    def top(self, query: QueryGroups, k: int, exclude: I64, least: int) -> Overlaps | None:
        """The ``k`` best sets of these segments; some may lack below ``least``. None if lists are too long for it."""
        from lakescope.engines.joins import kernels

        groups, weights = self._known(query, least)
        read = np.zeros(4, np.int64)
        with self._scratch.borrow() as (counts, met):
            counts[exclude] = kernels.EXCLUDED
            n = kernels.merge_files(
                *(groups, weights, self._bounds, self._files, SMALL_SEGMENTS.prepared * len(self._parts)),
                *(counts, met, read),
            )
            counts[exclude] = 0
            if n == kernels.DAMAGED:
                raise self._parts[0].segment.damaged()
            found = met[: max(n, 0)].copy()
            overlaps = counts[found]
            counts[found] = 0
        if n == kernels.TOO_MANY:
            return None
        good = np.flatnonzero(overlaps >= max(least, 1))
        sets, overlaps = kernels.largest(found[good], overlaps[good], k)
        return Overlaps(sets, overlaps, "mergelist", *read.tolist())

    def _known(self, query: QueryGroups, least: int) -> tuple[I32, I32]:
        """The groups among those of a query of segments that know enough of it for a set with so much."""
        begins, ends = np.searchsorted(query.groups, self._first), np.searchsorted(query.groups, self._end)
        weights = np.concatenate([np.zeros(1, np.int64), np.cumsum(query.weights)])
        enough = np.flatnonzero(weights[ends] - weights[begins] >= max(least, 1))
        mine = np.concatenate([begins[:0], *(np.arange(begins[each], ends[each]) for each in enough)])
        return query.groups[mine], query.weights[mine]
