"""The inverted index of one segment: tokens to groups, groups to sets, sets to groups, all mapped, none loaded.

A *set* is the distinct values of a column, known by the number of the column among those of its segment. A *token* is
the hash of a value. Tokens that the very same sets hold form a *group*; groups are numbered by how many sets hold them,
rare ones first, which is the global order of the thesis (spec-search-and-join 3.2). A segment written by several tasks
has several files of each part, each a contiguous range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lakescope.array_types import I32, I64, U64
from lakescope.errors import IndexDamaged
from lakescope.once import once
from lakescope.store.arrays import Array, Arrays, PartArrays, lazily, need
from lakescope.store.index import Index


@dataclass(frozen=True, slots=True)
class QueryGroups:
    """A query as the index sees it: groups in order, with how many of the query's tokens each holds.

    ``size`` counts all of the query's distinct values. ``tokens`` are these where several segments know them, each in
    groups of its own; ``groups_by_segment`` are the groups of each token in every segment, None where it knows none of
    them or was not asked: ``sets_by_token`` then says how many sets of such segments hold each token.
    """

    groups: I32
    weights: I32
    size: int
    tokens: U64 | None = None
    groups_by_segment: tuple[I32 | None, ...] = ()
    sets_by_token: I32 | None = None


#: A page is a range of so many groups (as a power of two). A set that holds enough groups of one has a bitmap of it,
#: so that 64 groups are compared at once.
PAGE_BITS = 12
PAGE_WORDS = (1 << PAGE_BITS) // 64
PAGE_LEAST = (1 << PAGE_BITS) // 16
#: Arrays that have an entry for every number of their file's range, and one more.
_RULED = {"tokens": ["directory"], "postings": ["starts"], "sets": ["starts"], "forest": [], "grams": []}


class InvertedSegment:
    """Reads the parts of the inverted index of a segment."""

    def __init__(self, index: Index, name: str) -> None:
        self._index = index
        self._name = name
        self.tokens = self.part("tokens")
        self.postings = self.part("postings")
        self.sets = self.part("sets")

    def part(self, kind: str) -> list[Arrays]:
        """The files of a part, in order of what they hold."""
        files = [self._index.arrays(file, partly=True) for file in self._index.manifest.of_kind(kind, self._name)]
        files.sort(key=lambda file: file["range"][-2:].tolist())
        reached = 0
        for file in files:
            begin, end = file["range"][-2:].tolist()
            if (
                begin != reached
                or end < begin
                or any(lazily(file, name).size != end - begin + 1 for name in _RULED[kind])
            ):
                raise self.damaged()
            reached = end
        bits = {int(file["range"][0]) for file in files} if kind == "tokens" else {1}
        if not files or len(bits) > 1 or not 0 < min(bits) < 64:
            raise self.damaged()
        return files

    def damaged(self) -> IndexDamaged:
        """What to raise when numbers are met that no index holds: which files are damaged, if any."""
        return self.contradiction(self._index)

    @staticmethod
    def contradiction(index: Index) -> IndexDamaged:
        """What to raise when the inverted index of an index contradicts itself: which files are damaged, if any."""
        wrong = index.verify()
        return IndexDamaged(
            "\n".join(wrong) or f"the inverted index of {index.path} contradicts itself",
            hint="restore the files, or run `lakescope repair`",
        )

    @once
    def forest(self) -> list[Arrays]:
        return self.part("forest")

    @once
    def sizes(self) -> I64:
        """Number of tokens of every set."""
        parts = [file["sizes"] for file in self.sets]
        return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, np.int64), *parts])

    @once
    def ids(self) -> U64:
        """What the column of every set is known by in other parts of the index."""
        return np.concatenate([np.empty(0, np.uint64), *(file["ids"] for file in self.sets)])

    @once
    def group_bounds(self) -> I64:
        """First group of every file of postings, and the number of all groups."""
        return _bounds(self.postings)

    @once
    def set_bounds(self) -> I64:
        """First set of every file of sets, and the number of all sets."""
        return _bounds(self.sets)

    # --- what lies elsewhere --------------------------------------------------------------------------------------

    @property
    def partly(self) -> bool:
        """Whether only parts of the index are here: then what is looked at must be fetched before."""
        return isinstance(self.sets[0], PartArrays)

    def fetch_tokens(self, tokens: U64) -> None:
        """Have at hand what it takes to look tokens up."""
        for file, slots, _ in self._slots(tokens) if self.partly else ():
            need(file, "directory", slots, slots + 2)
            directory = lazily(file, "directory")
            for name in ("hashes", "groups"):
                need(file, name, directory[slots], directory[slots + 1])

    def fetch_lists(self, groups: I32) -> None:
        """Have at hand the lists of some groups."""
        for file, local in self._files_of(self.postings, self.group_bounds, groups) if self.partly else ():
            need(file, "starts", local, local + 2)
            starts = lazily(file, "starts")
            need(file, "sets", starts[local], starts[local + 1])

    def fetch_sets(self, numbers: I32) -> None:
        """Have at hand the groups of some sets."""
        for file, local in self._files_of(self.sets, self.set_bounds, numbers) if self.partly else ():
            need(file, "starts", local, local + 2)
            starts = lazily(file, "starts")
            need(file, "groups", starts[local], starts[local + 1])

    @staticmethod
    def _files_of(files: list[Arrays], bounds: I64, numbers: I32) -> Iterator[tuple[Arrays, I64]]:
        """Files, and the numbers within each of those in its range."""
        inside = numbers[(numbers >= 0) & (numbers < bounds[-1])]
        place = np.searchsorted(bounds, inside, "right") - 1
        for at in np.unique(place).tolist():
            yield files[at], inside[place == at].astype(np.int64) - bounds[at]

    def _slots(self, tokens: U64) -> Iterator[tuple[Arrays, I64, I64]]:
        """Files of tokens, the slots of their directory that some tokens are in, and which tokens these are."""
        for file in self.tokens:
            bits, first, last = file["range"].tolist()
            slots = (np.maximum(tokens, np.uint64(1)) >> np.uint64(64 - bits)).astype(np.int64)
            mine = np.flatnonzero((slots >= first) & (slots < last))
            yield file, slots[mine] - first, mine

    def _by_directory(self, tokens: U64) -> I32:
        """The group of each token, looking at no more than its slot."""
        found = np.full(tokens.size, -1, np.int32)
        self.fetch_tokens(tokens)
        for file, slots, mine in self._slots(tokens):
            directory, hashes, groups = (lazily(file, name) for name in ("directory", "hashes", "groups"))
            begins, lengths = directory[slots], directory[slots + 1] - directory[slots]
            if lengths.size and (lengths.min() < 0 or (begins + lengths).max() > hashes.size):
                raise self.damaged()
            at, whose = ranges(begins, lengths), np.repeat(mine, lengths)
            hit = hashes[at] == tokens[whose]
            found[whose[hit]] = groups[at[hit]]
        return found

    # --- tokens, sets, groups -----------------------------------------------------------------------------------------

    def groups_of_tokens(self, tokens: U64) -> I32:
        """The group of each token; -1 of those that no set holds."""
        if self.partly:
            return self._by_directory(tokens)
        found = np.full(tokens.size, -1, np.int32)
        for file in self.tokens:
            bits, first, last = file["range"].tolist()
            slots = (tokens >> np.uint64(64 - bits)).astype(np.int64)
            mine = np.flatnonzero((slots >= first) & (slots < last))
            hashes = file["hashes"]
            if mine.size and hashes.size:
                at = np.minimum(np.searchsorted(hashes, tokens[mine]), hashes.size - 1)
                hit = hashes[at] == tokens[mine]
                found[mine[hit]] = file["groups"][at[hit]]
        return found

    def query(self, tokens: U64) -> QueryGroups:
        """A query of distinct tokens."""
        # The hash 0 is kept as 1, in the index as in the sets that build it.
        groups = self.groups_of_tokens(np.maximum(tokens, np.uint64(1)))
        known, weights = np.unique(groups[groups >= 0], return_counts=True)
        return QueryGroups(known, weights.astype(np.int32), tokens.size)

    def query_of_set(self, number: int) -> QueryGroups:
        """A set of the lake as a query: all the tokens of its groups."""
        groups = self.groups_of_set(number)
        return QueryGroups(groups, self.widths(groups), int(self.sizes[number]))

    def groups_of_set(self, number: int) -> I32:
        """The groups of a set, in order."""
        place = int(np.searchsorted(self.set_bounds, number, "right")) - 1
        file, local = self.sets[place], number - int(self.set_bounds[place])
        self.fetch_sets(np.array([number], np.int32))
        starts = lazily(file, "starts")
        groups: I32 = lazily(file, "groups")[starts[local] : starts[local + 1]]
        return groups

    def tokens_of_set(self, number: int) -> U64:
        """The tokens of a set, in no order."""
        groups = self.groups_of_set(number)
        found = [np.empty(0, np.uint64)]
        for file in self.tokens:
            order, of = file["by_group"], file["groups"]
            try:
                begins, ends = np.split(_bisected(of, order, np.concatenate([groups, groups + 1])), 2)
                found.append(file["hashes"][order[ranges(begins, ends - begins)]])
            except (IndexError, ValueError):  # an order that leads out of its file
                raise self.damaged() from None
        return np.concatenate(found)

    def holds_groups(self, groups: I32, number: int) -> npt.NDArray[np.bool_]:
        """Which of some groups a set holds."""
        mine = self.groups_of_set(number)
        if not mine.size:
            return np.zeros(groups.size, np.bool_)
        at = np.minimum(np.searchsorted(mine, groups), mine.size - 1)
        found: npt.NDArray[np.bool_] = mine[at] == groups
        return found

    def widths(self, groups: I32) -> I32:
        """Number of tokens of each group."""

        def read(file: Arrays, local: I64) -> Array:
            need(file, "widths", local, local + 1)
            found: Array = lazily(file, "widths")[local]
            return found

        return self._of_groups(groups, read)

    def frequencies(self, groups: I32) -> I32:
        """Number of sets that hold each group."""

        def read(file: Arrays, local: I64) -> Array:
            need(file, "starts", local, local + 2)
            starts = lazily(file, "starts")
            found: Array = starts[local + 1] - starts[local]
            return found

        return self._of_groups(groups, read)

    def _of_groups(self, groups: I32, read: Callable[[Arrays, I64], Array]) -> I32:
        self._check_groups(groups)
        found = np.empty(groups.size, np.int32)
        place = np.searchsorted(self.group_bounds, groups, "right") - 1
        for number in np.unique(place).tolist():
            mine = np.flatnonzero(place == number)
            local = groups[mine].astype(np.int64) - self.group_bounds[number]
            found[mine] = read(self.postings[number], local)
        return found

    def _check_groups(self, groups: I32) -> None:
        """Refuse numbers of groups that there are not, which only a damaged file has."""
        if groups.size and not 0 <= int(groups.min()) <= int(groups.max()) < self.group_bounds[-1]:
            raise self.damaged()

    def lists(self, groups: I32) -> tuple[I64, I32]:
        """The sets that hold each group: (beginnings, sets)."""
        self._check_groups(groups)
        place = np.searchsorted(self.group_bounds, groups, "right") - 1
        lengths = self.frequencies(groups).astype(np.int64)
        if lengths.size and lengths.min() < 0:
            raise self.damaged()
        starts: I64 = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        found = np.empty(int(starts[-1]), np.int32)
        for number in np.unique(place).tolist():
            mine = np.flatnonzero(place == number)
            file = self.postings[number]
            sets = lazily(file, "sets")
            begins = lazily(file, "starts")[groups[mine].astype(np.int64) - self.group_bounds[number]]
            if mine.size and not (begins.min() >= 0 and (begins + lengths[mine]).max() <= sets.size):
                raise self.damaged()
            need(file, "sets", begins, begins + lengths[mine])
            found[ranges(starts[mine], lengths[mine])] = sets[ranges(begins, lengths[mine])]
        return starts, found


def _bisected(values: I32, order: I32, wanted: I32) -> I64:
    """Where in an order that sorts some values the first lies that is not below each of those wanted."""
    low, high = np.zeros(wanted.size, np.int64), np.full(wanted.size, order.size, np.int64)
    while (low < high).any():
        middle = (low + high) >> 1
        below = np.zeros(wanted.size, np.bool_)
        inside = low < high
        below[inside] = values[order[middle[inside]]] < wanted[inside]
        low, high = np.where(below, middle + 1, low), np.where(inside & ~below, middle, high)
    return low


def ranges(starts: I64, lengths: I64) -> I64:
    """All numbers of ranges, one after the other."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if ends.size else 0
    found: I64 = np.arange(total, dtype=np.int64) + np.repeat(starts - (ends - lengths), lengths)
    return found


def _bounds(files: list[Arrays]) -> I64:
    return np.array([0, *(int(file["range"][1]) for file in files)], np.int64)
