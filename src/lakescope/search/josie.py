"""Exact overlap search: the top k sets, or all above a threshold (JOSIE; spec-search-and-join 3).

Three algorithms give the same answer: JOSIE, which reads lists or sets by what each is worth, MergeList, which reads
all lists, and ProbeSet, which reads every set it meets. The first two are for users, the third is what the others are
measured against. Compiled kernels do the work once they are loaded; before that, a plain numpy merge of the lists
gives the same answer sooner than they load.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from lakescope.errors import IndexDamaged
from lakescope.search.inverted import InvertedIndex, QueryGroups
from lakescope.store.arrays import Arrays

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]
Algorithm = Literal["josie", "mergelist", "probeset", "numpy"]

_KERNELS = "lakescope.search.kernels"
#: Entries of lists a set below which it does not pay to look at all sets: they are merged as they are.
_FEW = 0.125


@dataclass(frozen=True, slots=True)
class Costs:
    """What reading costs, in nanoseconds: a list and an entry of it, a set and a group looked up in it (spec 3.5).

    ``per_count`` is what it costs to look at the count of a set.
    """

    per_list: float = 40.0
    per_entry: float = 1.2
    per_set: float = 150.0
    per_group: float = 8.0
    per_count: float = 1.3

    def as_array(self) -> npt.NDArray[np.float64]:
        return np.array([self.per_list, self.per_entry, self.per_set, self.per_group, self.per_count])


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


class _Addresses:
    """Where in memory the files of the index lie, for kernels."""

    def __init__(self, index: InvertedIndex) -> None:
        self.group_bounds, self.set_bounds = index.group_bounds, index.set_bounds
        self.list_starts = addresses(index.postings, "starts")
        self.list_items = addresses(index.postings, "sets")
        self.list_sizes = _sizes(index.postings, "sets")
        self.set_starts = addresses(index.sets, "starts")
        self.set_items = addresses(index.sets, "groups")
        self.set_sizes = _sizes(index.sets, "groups")
        self.token_bits = int(index.tokens[0]["range"][0])
        self.token_bounds = np.array([0, *(int(file["range"][2]) for file in index.tokens)], np.int64)
        self.token_directories = addresses(index.tokens, "directory")
        self.token_hashes = addresses(index.tokens, "hashes")
        self.token_groups = addresses(index.tokens, "groups")
        self.token_sizes = _sizes(index.tokens, "hashes")


def addresses(files: list[Arrays], name: str) -> U64:
    """Where in memory an array of each file lies."""
    return np.array([file[name].__array_interface__["data"][0] for file in files], np.uint64)


def _sizes(files: list[Arrays], name: str) -> I64:
    return np.array([file[name].size for file in files], np.int64)


def kernels_are_loaded() -> bool:
    """Whether compiled kernels are at hand; loading them takes a second or two."""
    return _KERNELS in sys.modules


class OverlapSearch:
    """Answers exact questions about overlaps. Not for several threads at once: it counts in memory of its own."""

    def __init__(self, index: InvertedIndex, costs: Costs | None = None) -> None:
        self._index = index
        self.costs = costs or Costs()
        self._sets = int(index.set_bounds[-1])
        self._at: _Addresses | None = None
        self._counts = np.empty(0, np.int32)
        self._touched = np.empty(0, np.int32)

    def _prepare(self) -> Any:
        """Load the kernels, and what they need."""
        from lakescope.search import kernels

        if self._at is None:
            self._at = _Addresses(self._index)
            self._counts = np.zeros(self._sets, np.int32)
            self._touched = np.empty(self._sets, np.int32)
        return kernels

    def warm(self) -> None:
        """Load the kernels and run each of them once."""
        self._prepare()
        if self._sets:
            query = self._index.query_of_set(int(self._index.sizes.argmax()))
            for algorithm in ("josie", "mergelist"):
                self.top(query, 1, algorithm=algorithm)

    def query(self, tokens: U64) -> QueryGroups:
        """A query of distinct tokens."""
        if not kernels_are_loaded():
            return self._index.query(tokens)
        kernels = self._prepare()
        at = self._at
        assert at is not None
        groups, weights = kernels.find_groups(
            *(tokens, at.token_bits, at.token_bounds, at.token_directories),
            *(at.token_hashes, at.token_groups, at.token_sizes),
        )
        return QueryGroups(groups, weights, tokens.size)

    def top(
        self, query: QueryGroups, k: int, exclude: Sequence[int] = (), algorithm: Algorithm | None = None
    ) -> Overlaps:
        """The ``k`` sets with the largest overlap, without those to be left out."""
        k = min(k, self._sets)
        algorithm = algorithm or ("josie" if kernels_are_loaded() else "numpy")
        if k < 1 or not query.groups.size:
            return Overlaps(np.empty(0, np.int32), np.empty(0, np.int32), algorithm, 0, 0, 0, 0)
        if algorithm == "numpy":
            return self._merge_plainly(query, k, exclude)
        kernels = self._prepare()
        at = self._at
        assert at is not None
        places, lengths = self._located(query)
        sets = (at.set_bounds, at.set_starts, at.set_items, at.set_sizes)
        read = np.zeros(4, np.int64)
        left_out = np.array(exclude, np.int64)
        self._counts[left_out] = kernels.EXCLUDED
        try:
            if algorithm == "josie" and int(lengths.sum()) >= _FEW * self._sets:
                found, overlaps = kernels.josie(
                    *(query.groups, query.weights, places, lengths, *sets),
                    *(self._counts, k, self.costs.as_array(), read),
                )
            elif algorithm == "probeset":
                found, overlaps = kernels.probe_sets(
                    query.groups, query.weights, places, lengths, *sets, self._counts, k, read
                )
            else:
                found, overlaps = self._merge(kernels, places, lengths, query.weights, k, read)
        finally:
            self._counts[left_out] = 0
        if read[kernels.LISTS] < 0:
            self._counts[:] = 0
            raise self._damaged()
        found, overlaps = kernels.largest(found, overlaps, k)
        return Overlaps(found, overlaps, algorithm, *read.tolist())

    def at_least(self, query: QueryGroups, minimum: int, exclude: Sequence[int] = ()) -> Overlaps:
        """All sets with at least this overlap, in order of the sets: every list is read."""
        if not query.groups.size:
            return Overlaps(np.empty(0, np.int32), np.empty(0, np.int32), "mergelist", 0, 0, 0, 0)
        if not kernels_are_loaded():
            counts, entries = self._counts_plainly(query)
        else:
            kernels = self._prepare()
            places, lengths = self._located(query)
            entries = int(lengths.sum())
            if not kernels.merge_lists(places, lengths, query.weights, self._counts):
                self._counts[:] = 0
                raise self._damaged()
            counts = self._counts.copy()
            self._counts[:] = 0
        counts[np.array(exclude, np.int64)] = 0
        found = np.flatnonzero(counts >= max(1, minimum)).astype(np.int32)
        return Overlaps(found, counts[found], "mergelist", query.groups.size, entries, 0, 0)

    def _located(self, query: QueryGroups) -> tuple[U64, I64]:
        """Where the lists of a query lie, and how long they are."""
        kernels = self._prepare()
        at = self._at
        assert at is not None
        places, lengths = kernels.locate(query.groups, at.group_bounds, at.list_starts, at.list_items, at.list_sizes)
        return places, lengths

    def _merge(self, kernels: Any, places: U64, lengths: I64, weights: I32, k: int, read: I64) -> tuple[I32, I32]:
        read[:2] = places.size, lengths.sum()
        if read[1] < _FEW * self._sets:
            n = kernels.merge_few(places, lengths, weights, self._counts, self._touched)
            read[0] = read[0] if n >= 0 else n
            found = self._touched[: max(n, 0)].copy()
            overlaps = self._counts[found]
            self._counts[found] = 0
            return found, overlaps
        if not kernels.merge_lists(places, lengths, weights, self._counts):
            read[0] = kernels.DAMAGED
        sets, counts = kernels.take_largest(self._counts, k)
        return sets, counts

    def _merge_plainly(self, query: QueryGroups, k: int, exclude: Sequence[int]) -> Overlaps:
        """MergeList by numpy alone."""
        counts, entries = self._counts_plainly(query)
        counts[np.array(exclude, np.int64)] = 0
        found = np.flatnonzero(counts).astype(np.int32)
        order = np.lexsort((found, -counts[found]))[:k]
        best = found[order]
        return Overlaps(best, counts[best], "numpy", query.groups.size, entries, 0, 0)

    def _counts_plainly(self, query: QueryGroups) -> tuple[I32, int]:
        """The overlap of every set, and the entries of all lists."""
        ends, sets = self._index.lists(query.groups)
        if sets.size and (int(sets.min()) < 0 or int(sets.max()) >= self._sets):
            raise self._damaged()
        weights = np.repeat(query.weights, np.diff(ends))
        return np.bincount(sets, weights, self._sets).astype(np.int32), int(sets.size)

    def _damaged(self) -> IndexDamaged:
        return self._index.damaged()
