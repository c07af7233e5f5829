"""Exact overlap search: the top k sets, or all above a threshold (JOSIE; spec-search-and-join 3).

Three algorithms give the same answer: JOSIE, which reads lists or sets by what each is worth, MergeList, which reads
all lists, and ProbeSet, which reads every set it meets. The first two are for users: JOSIE, unless merging was found
to be quicker for queries of this size (``costs``). The third is what the others are measured against. Compiled kernels
do the work once they are loaded; before that, a plain numpy merge of the lists gives the same answer sooner than they
load.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from lakescope.array_types import I32, I64, U64
from lakescope.engines.joins.costs import Costs
from lakescope.engines.joins.scratch import Scratch
from lakescope.errors import IndexDamaged
from lakescope.once import once
from lakescope.store.arrays import Array, Arrays, lazily
from lakescope.store.inverted import PAGE_WORDS, InvertedSegment, QueryGroups

Algorithm = Literal["josie", "mergelist", "probeset", "numpy"]

_KERNELS = "lakescope.engines.joins.kernels"


@dataclass(frozen=True, slots=True)
class Overlaps:
    """Sets in order of their overlap with a query, equal ones by number, and what was read to find them."""

    sets: I32
    overlaps: I32
    algorithm: str
    lists: int
    entries: int
    sets_read: int
    decisions: int


class Addresses:
    """Where in memory the files of the index lie, for kernels."""

    def __init__(self, index: InvertedSegment) -> None:
        self.group_bounds, self.set_bounds = index.group_bounds, index.set_bounds
        self.list_starts = _places(index.postings, "starts")
        self.list_items = _places(index.postings, "sets")
        self.list_sizes = _sizes(index.postings, "sets")
        self.set_files = np.array([_of_sets(file, index.partly) for file in index.sets], np.uint64)
        #: What it takes to look tokens up: bits of the directory, its bounds by file, and where everything lies.
        self.of_tokens = (
            int(index.tokens[0]["range"][0]),
            np.array([0, *(int(file["range"][2]) for file in index.tokens)], np.int64),
            _places(index.tokens, "directory"),
            _places(index.tokens, "hashes"),
            _places(index.tokens, "groups"),
            _sizes(index.tokens, "hashes"),
        )


def _of_sets(file: Arrays, partly: bool) -> list[int]:
    """The entry of a file of sets for kernels: addresses and sizes; 0 for bitmaps that are not here or not made yet."""
    starts, groups = lazily(file, "starts"), lazily(file, "groups")
    found = [_address(starts), _address(groups), groups.size]
    if partly or "bits" not in file:
        return [*found, 0, 0, 0, 0]
    starts, pages, bits = file["page_starts"], file["pages"], file["bits"]
    count = bits.size // PAGE_WORDS
    if starts.size != lazily(file, "starts").size or pages.size != 3 * count:
        return [*found, 0, 0, 0, 0]
    return [*found, _address(starts), _address(pages), count, _address(bits)]


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


def addresses(files: list[Arrays], name: str) -> U64:
    """Where in memory an array of each file lies."""
    return np.array([_address(file[name]) for file in files], np.uint64)


def _places(files: list[Arrays], name: str) -> U64:
    """Where in memory an array of each file lies, all here or not: what is looked at is fetched before."""
    return np.array([_address(lazily(file, name)) for file in files], np.uint64)


def _sizes(files: list[Arrays], name: str) -> I64:
    return np.array([lazily(file, name).size for file in files], np.int64)


def kernels_are_loaded() -> bool:
    """Whether compiled kernels are at hand; loading them takes a second or two."""
    return _KERNELS in sys.modules


class _QuestionMemory(NamedTuple):
    """Memory that a question writes to: the overlap of every set, 0 before and after it, those it met, and marks."""

    counts: I32
    touched: I32
    marks: tuple[Array, ...]


class SegmentOverlaps:
    """Answers exact questions about overlaps with the sets of a segment."""

    def __init__(self, index: InvertedSegment, costs: Costs | None = None, within: range | None = None) -> None:
        self.index = index
        #: The sets that are searched; None: all.
        self._within = within
        self.set_costs(costs or Costs())
        self._sets = int(index.set_bounds[-1])
        self._scratch = Scratch(self._question_memory)

    def set_costs(self, costs: Costs) -> None:
        """Decide by these costs from now on."""
        self.costs, self._cost_array = costs, costs.as_array()

    @once
    def _at(self) -> Addresses:
        return Addresses(self.index)

    @once
    def _sizes(self) -> I32:
        return self.index.sizes.astype(np.int32)

    def _question_memory(self) -> _QuestionMemory:
        """Memory of one question."""
        from lakescope.engines.joins import kernels

        marks = kernels.room_for_marks(int(self.index.group_bounds[-1]))
        return _QuestionMemory(np.zeros(self._sets, np.int32), np.empty(self._sets, np.int32), marks)

    def _prepare(self) -> Any:
        """Load the kernels, and what they need."""
        from lakescope.engines.joins import kernels

        _ = self._at, self._sizes
        return kernels

    def load(self) -> None:
        """Load the kernels: for questions that would not wait for less."""
        self._prepare()

    def warm(self) -> None:
        """Load the kernels and run each of them once."""
        self._prepare()
        if self._sets:
            query = self.index.query_of_set(int(self.index.sizes.argmax()))
            for algorithm in ("josie", "mergelist"):
                self.top(query, 1, algorithm=algorithm)

    def query(self, tokens: U64) -> QueryGroups:
        """A query of distinct tokens."""
        if not kernels_are_loaded():
            return self.index.query(tokens)
        kernels = self._prepare()
        self.index.fetch_tokens(tokens)
        groups, weights, _ = kernels.find_groups(tokens, *self._at.of_tokens)
        return QueryGroups(groups, weights, tokens.size)

    def top(
        self,
        query: QueryGroups,
        k: int,
        exclude: Sequence[int] | I64 = (),
        algorithm: Algorithm | None = None,
        least: int = 0,
    ) -> Overlaps:
        """The ``k`` sets with the largest overlap, without those to be left out; some may lack below ``least``."""
        k = min(k, self._sets)
        if algorithm is None and not kernels_are_loaded():
            algorithm = "numpy"
        if self.index.partly and algorithm != "numpy":
            # Which lists a question reads is known beforehand, which sets is not.
            algorithm = "mergelist"
        if k < 1 or not query.groups.size:
            return Overlaps(np.empty(0, np.int32), np.empty(0, np.int32), algorithm or "josie", 0, 0, 0, 0)
        if algorithm == "numpy":
            return self._merge_plainly(query, k, exclude)
        kernels = self._prepare()
        places, lengths, entries = self._locate_lists(query)
        if algorithm is None:
            algorithm = "mergelist" if not least and self.costs.merges(places.size, entries, k) else "josie"
        sets = self._stored()
        read = np.zeros(4, np.int64)
        left_out = np.array(exclude, np.int64)
        with self._scratch.borrow() as mine:
            mine.counts[left_out] = kernels.EXCLUDED
            if algorithm == "josie":
                found, overlaps = kernels.josie(
                    *(_read_only(query.groups), query.weights, places, lengths, *sets, mine.marks, self._sizes),
                    *(mine.counts, mine.touched, k, least, self._cost_array, read),
                )
            elif algorithm == "probeset":
                found, overlaps = kernels.probe_sets(
                    _read_only(query.groups), query.weights, places, lengths, *sets, mine.counts, k, read
                )
            else:
                read[:2] = places.size, entries
                found, overlaps = self._merge(kernels, mine, places, lengths, query.weights, k, read)
            if read[kernels.LISTS] < 0:
                raise self._damaged()
            mine.counts[left_out] = 0
        found, overlaps = kernels.largest(found, overlaps, k)
        return Overlaps(found, overlaps, algorithm, *read.tolist())

    def at_least(self, query: QueryGroups, minimum: int, exclude: Sequence[int] | I64 = ()) -> Overlaps:
        """All sets with at least this overlap, in order of the sets: every list is read."""
        if not query.groups.size:
            return Overlaps(np.empty(0, np.int32), np.empty(0, np.int32), "mergelist", 0, 0, 0, 0)
        if not kernels_are_loaded():
            counts, entries = self._counts_plainly(query)
        else:
            kernels = self._prepare()
            places, lengths, entries = self._locate_lists(query)
            with self._scratch.borrow() as mine:
                if not kernels.merge_lists(places, lengths, query.weights, 0, places.size, mine.counts):
                    raise self._damaged()
                counts = mine.counts.copy()
                mine.counts[:] = 0
        counts[np.array(exclude, np.int64)] = 0
        found = np.flatnonzero(counts >= max(1, minimum)).astype(np.int32)
        return Overlaps(found, counts[found], "mergelist", query.groups.size, entries, 0, 0)

    def overlaps_of(self, query: QueryGroups, sets: I32, least: int = 0) -> I32:
        """The overlap of each of some sets; what is less than ``least`` need not be exact."""
        if not query.groups.size:
            return np.zeros(sets.size, np.int32)
        if not kernels_are_loaded():
            return np.array([self._overlap_plainly(query, number) for number in sets.tolist()], np.int32)
        kernels = self._prepare()
        self.index.fetch_sets(sets)
        found = np.empty(sets.size, np.int32)
        with self._scratch.borrow() as mine:
            if not kernels.overlaps_of(sets, query.groups, query.weights, *self._stored(), mine.marks, least, found):
                raise self._damaged()
        return found

    def _stored(self) -> tuple[I64, U64]:
        """Where the sets lie, for kernels."""
        return self._at.set_bounds, self._at.set_files

    def _overlap_plainly(self, query: QueryGroups, number: int) -> int:
        return int(query.weights[self.index.holds_groups(query.groups, number)].sum())

    def time_lists(self, groups: I32) -> None:
        """Read lists as a search does, for the sake of knowing how long it takes."""
        kernels = self._prepare()
        places, lengths, _ = self._locate_lists(QueryGroups(groups, groups, 0))
        with self._scratch.borrow() as mine:
            kernels.merge_lists(places, lengths, np.zeros(groups.size, np.int32), 0, groups.size, mine.counts)

    def time_sets(self, groups: I32, sets: I32, marked: bool = False) -> None:
        """Read sets as a search does: looking for groups one by one, or beside marks if they can be marked."""
        kernels = self._prepare()
        weights, found = np.ones(groups.size, np.int32), np.empty(sets.size, np.int32)
        with self._scratch.borrow() as mine:
            marks = mine.marks if marked else kernels.room_for_marks(0)
            kernels.overlaps_of(sets, groups, weights, *self._stored(), marks, 0, found)

    def time_counts(self) -> None:
        """Look at the counts of all sets as a decision does."""
        kernels = self._prepare()
        with self._scratch.borrow() as mine:
            kernels.look_at(mine.counts, mine.touched)

    def _locate_lists(self, query: QueryGroups) -> tuple[U64, I64, int]:
        """Where the lists of a query lie, how long they are, and their entries in all."""
        kernels = self._prepare()
        at = self._at
        self.index.fetch_lists(query.groups)
        groups = _read_only(query.groups)
        places, lengths, entries = kernels.locate(groups, at.group_bounds, at.list_starts, at.list_items, at.list_sizes)
        if self._within is not None:
            entries = kernels.narrow(places, lengths, self._within.start, self._within.stop)
        return places, lengths, entries

    def _merge(
        self, kernels: Any, mine: _QuestionMemory, places: U64, lengths: I64, weights: I32, k: int, read: I64
    ) -> tuple[I32, I32]:
        counts, touched, _ = mine
        if read[kernels.ENTRIES] < kernels.FEW * self._sets:
            n = kernels.note_lists(places, lengths, weights, 0, places.size, counts, touched, 0)
            read[0] = read[0] if n >= 0 else n
            found = touched[: max(n, 0)].copy()
            overlaps = counts[found]
            counts[found] = 0
            return found, overlaps
        if not kernels.merge_lists(places, lengths, weights, 0, places.size, counts):
            read[0] = kernels.DAMAGED
        return tuple(kernels.take_largest(counts, touched, k))

    def _merge_plainly(self, query: QueryGroups, k: int, exclude: Sequence[int] | I64) -> Overlaps:
        """MergeList by numpy alone."""
        counts, entries = self._counts_plainly(query)
        counts[np.array(exclude, np.int64)] = 0
        found = np.flatnonzero(counts).astype(np.int32)
        order = np.lexsort((found, -counts[found]))[:k]
        best = found[order]
        return Overlaps(best, counts[best], "numpy", query.groups.size, entries, 0, 0)

    def _counts_plainly(self, query: QueryGroups) -> tuple[I32, int]:
        """The overlap of every set, and the entries of all lists."""
        ends, sets = self.index.lists(query.groups)
        if sets.size and (int(sets.min()) < 0 or int(sets.max()) >= self._sets):
            raise self._damaged()
        weights = np.repeat(query.weights, np.diff(ends))
        counts = np.bincount(sets, weights, self._sets).astype(np.int32)
        if self._within is not None:
            counts[: self._within.start] = counts[self._within.stop :] = 0
        return counts, int(sets.size)

    def _damaged(self) -> IndexDamaged:
        return self.index.damaged()


def _read_only(groups: I32) -> I32:
    """A view of groups that cannot be written: kernels are compiled for that kind, which a set of the lake is of."""
    view = groups.view()
    view.flags.writeable = False
    return view
