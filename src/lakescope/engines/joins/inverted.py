"""The inverted index of a lake: that of each segment, seen as one.

Sets are numbered as their columns are in the catalog, whatever segment they lie in; tables that were removed or
replaced are not there. Groups of a later segment are numbered after those of all before it: a value that two segments
know is in a group of each. A set lies in one segment, so that what it shares with a query is what it shares there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from lakescope.array_types import I32, I64, U64, Bools
from lakescope.engines.joins.dictionary import DICTIONARY, Dictionary
from lakescope.engines.joins.josie import Addresses, kernels_are_loaded
from lakescope.errors import BadRequest, IndexDamaged
from lakescope.once import once
from lakescope.store.index import Index
from lakescope.store.inverted import InvertedSegment, QueryGroups

Numbers = TypeVar("Numbers", I64, U64)

#: Groups are numbered by 32 bits, in files and in memory.
_MOST_GROUPS = 2**31 - 1


class TokenMatch(NamedTuple):
    """What a part knows of some tokens: groups in order, how many of the tokens each holds, and the group of each.

    ``group_of`` is -1 for a token that the part does not know.
    """

    groups: I32
    weights: I32
    group_of: I32


@dataclass(frozen=True, eq=False)
class Part:
    """A segment within the lake: where its groups begin, and which set of the lake each of its sets is.

    ``numbers`` are -1 for sets that are gone; None if they are the same.
    """

    segment: InvertedSegment
    first_group: int
    numbers: I32 | None

    @once
    def gone(self) -> I64:
        """Sets that are gone, by their number in the segment."""
        return np.empty(0, np.int64) if self.numbers is None else np.flatnonzero(self.numbers < 0)

    @once
    def live(self) -> I64:
        """The sets of the segment that are there."""
        numbers = self.numbers
        return np.arange(int(self.segment.set_bounds[-1])) if numbers is None else np.flatnonzero(numbers >= 0)

    def in_lake(self, sets: I32) -> I32:
        """Numbers in the lake of sets of the segment; -1 of those that are gone."""
        return sets if self.numbers is None else self.numbers[sets]

    @once
    def addresses(self) -> Addresses:
        """Where its files lie, for kernels."""
        return Addresses(self.segment)

    def look_up(self, tokens: U64) -> I32 | None:
        """The groups of some tokens, -1 of those that the segment does not know; None if it knows none."""
        if not kernels_are_loaded():
            found = self.segment.groups_of_tokens(np.maximum(tokens, np.uint64(1)))
            return found if (found >= 0).any() else None
        from lakescope.engines.joins import kernels

        self.segment.fetch_tokens(tokens)
        found, known = kernels.look_up(tokens, *self.addresses.of_tokens)
        return found if known else None

    def find(self, tokens: U64) -> TokenMatch | None:
        """The groups of some tokens; None if it knows none."""
        if not kernels_are_loaded():
            found = self.look_up(tokens)
            return None if found is None else TokenMatch(*_counted(found), found)
        from lakescope.engines.joins import kernels

        self.segment.fetch_tokens(tokens)
        groups, weights, found = kernels.find_groups(tokens, *self.addresses.of_tokens)
        return TokenMatch(groups, weights, found) if groups.size else None

    def tokens_of_set(self, number: int) -> U64:
        """The tokens of a set of the segment, in order: the next one is looked up near the last."""
        if self.segment.partly or not kernels_are_loaded():
            return np.sort(self.segment.tokens_of_set(number))
        from lakescope.engines.joins import kernels

        groups = self.segment.groups_of_set(number)
        found = [np.empty(0, np.uint64)]
        for file in self.segment.tokens:
            tokens, sound = kernels.tokens_of_groups(groups, file["by_group"], file["groups"], file["hashes"])
            if not sound:
                raise self.segment.damaged()
            found.append(tokens)
        return np.sort(np.concatenate(found))

    def local_range(self, sets: range) -> range:
        """The sets of the segment that are within a range of the lake's; those that are gone may be among them."""
        if self.numbers is None:
            return sets
        # Both are in order of their tables.
        first, last = np.searchsorted(self.numbers[self.live], [sets.start, sets.stop]).tolist()
        return range(int(self.live[first]), int(self.live[last - 1]) + 1) if first < last else range(0)

    def local(self, query: QueryGroups) -> QueryGroups:
        """The groups of a query that this segment knows, by their numbers here."""
        end = self.first_group + int(self.segment.group_bounds[-1])
        first, last = np.searchsorted(query.groups, [self.first_group, end]).tolist()
        if last - first == query.groups.size and not self.first_group:
            return query
        groups = (query.groups[first:last] - self.first_group).astype(np.int32)
        return QueryGroups(groups, query.weights[first:last], query.size)

    @once
    def _lost(self) -> tuple[I32, I64]:
        """Groups that sets hold which are gone, and how many of these each."""
        held = [np.empty(0, np.int32), *(self.segment.groups_of_set(number) for number in self.gone.tolist())]
        groups, counts = np.unique(np.concatenate(held), return_counts=True)
        return groups, counts

    def frequencies(self, groups: I32) -> I32:
        """How many sets that are there hold each of some groups of the segment."""
        found = self.segment.frequencies(groups)
        lost, counts = self._lost
        if lost.size:
            at = np.minimum(np.searchsorted(lost, groups), lost.size - 1)
            found -= np.where(lost[at] == groups, counts[at], 0).astype(np.int32)
        return found

    def count_sets(self, groups: I32, held: I32) -> None:
        """Add to ``held`` how many sets that are there hold each of some groups, those of -1 none."""
        if self.segment.partly or not kernels_are_loaded():
            known = groups >= 0
            held[known] += self.frequencies(groups[known])
            return
        from lakescope.engines.joins import kernels

        at = self.addresses
        if not kernels.count_sets(groups, at.group_bounds, at.list_starts, *self._lost, held):
            raise self.segment.damaged()

    def lists(self, groups: I32) -> tuple[I64, I32]:
        """The sets of the lake that hold each group of the segment: (beginnings, sets)."""
        starts, sets = self.segment.lists(groups)
        if self.numbers is None:
            return starts, sets
        numbers = self.numbers[sets]
        kept = numbers >= 0
        return np.concatenate([[0], np.cumsum(kept)])[starts], numbers[kept]


def _counted(groups: I32) -> tuple[I32, I32]:
    """Groups in order, but for those of -1, and how often each is there."""
    every = np.sort(groups)
    every = every[np.searchsorted(every, 0) :]
    ends = np.concatenate([np.flatnonzero(every[1:] != every[:-1]) + 1, [every.size]]) if every.size else every
    begins = np.concatenate([[0], ends[:-1]]) if every.size else every
    return every[begins], (ends - begins).astype(np.int32)


class TokenLookup:
    """Some tokens: their groups in a part of the index are looked up when it is asked for, and once."""

    def __init__(self, parts: Sequence[Part], tokens: U64) -> None:
        self._parts = parts
        self._tokens = tokens
        self._groups_in: dict[int, I32] = {}

    def within(self, number: int) -> I32:
        """The groups in the part of this number; -1 of tokens that it does not know."""
        if number not in self._groups_in:
            found = self._parts[number].look_up(self._tokens)
            self._groups_in[number] = np.full(self._tokens.size, -1, np.int32) if found is None else found
        return self._groups_in[number]


class InvertedIndex:
    """Reads the inverted index of a lake."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self.parts: list[Part] = []
        reached = 0
        for name in index.manifest.segments:
            if index.manifest.of_kind("tokens", name):
                segment = InvertedSegment(index, name)
                self.parts.append(Part(segment, reached, index.numbers[name]))
                reached += int(segment.group_bounds[-1])
        if reached > _MOST_GROUPS:
            raise BadRequest(f"{reached:,} groups of values are more than can be searched", hint="lakescope compact")
        if not self.parts:
            raise self.damaged()
        self._groups = reached
        self._dictionary: Dictionary | None = None
        #: Groups over all segments: those of each that such a group is made of, and the number by these.
        self._members: list[tuple[int, ...]] = []
        self._united: dict[tuple[int, ...], int] = {}
        self._uniting = threading.Lock()

    def damaged(self) -> IndexDamaged:
        """The error to raise when numbers are met that no index holds: it says which files are damaged, if any."""
        return self.parts[0].segment.damaged() if self.parts else InvertedSegment.contradiction(self._index)

    @property
    def alone(self) -> InvertedSegment | None:
        """The one segment that is the whole lake, if it is."""
        return self.parts[0].segment if len(self.parts) == 1 and self.parts[0].numbers is None else None

    @once
    def count(self) -> int:
        """Number of sets."""
        return sum(part.live.size for part in self.parts)

    @property
    def group_count(self) -> int:
        """Number of groups."""
        return self._groups

    @once
    def sizes(self) -> I64:
        """Number of tokens of every set."""
        return self._of_sets("sizes", np.empty(0, np.int64))

    @once
    def ids(self) -> U64:
        """The id of the column of every set, by which other parts of the index know it."""
        return self._of_sets("ids", np.empty(0, np.uint64))

    def _of_sets(self, name: str, none: Numbers) -> Numbers:
        """A number of every set."""
        found: Numbers = none
        if self.alone is not None:
            found = getattr(self.alone, name)
            return found
        found = np.empty(self.count, none.dtype)
        for part in self.parts:
            found[part.in_lake(part.live.astype(np.int32))] = getattr(part.segment, name)[part.live]
        return found

    @once
    def places(self) -> tuple[I32, I32]:
        """Of every set: its part, and its number there."""
        parts, locals_ = np.empty(self.count, np.int32), np.empty(self.count, np.int32)
        for number, part in enumerate(self.parts):
            at = part.in_lake(part.live.astype(np.int32))
            parts[at], locals_[at] = number, part.live
        return parts, locals_

    def place_of(self, number: int) -> tuple[Part, int]:
        """The part that holds a set, and its number there."""
        if self.alone is not None:
            return self.parts[0], number
        parts, locals_ = self.places
        return self.parts[int(parts[number])], int(locals_[number])

    # --- queries ------------------------------------------------------------------------------------------------------

    def query(self, tokens: U64) -> QueryGroups:
        """A query of distinct tokens."""
        if len(self.parts) == 1:
            return self.parts[0].segment.query(tokens)
        if self._dictionary is not None:
            return self._query_at_once(tokens, self._dictionary)
        groups, weights = [np.empty(0, np.int32)], [np.empty(0, np.int32)]
        # Most segments know none of a query's tokens: that is all that is asked of them.
        found: list[I32 | None] = []
        for part in self.parts:
            here = part.find(tokens)
            found.append(None if here is None else here.group_of)
            if here is not None:
                groups.append(here.groups + np.int32(part.first_group))
                weights.append(here.weights)
        return QueryGroups(np.concatenate(groups), np.concatenate(weights), tokens.size, tokens, tuple(found))

    def _query_at_once(self, tokens: U64, dictionary: Dictionary) -> QueryGroups:
        """A query of distinct tokens, where all segments but the largest have a dictionary in common."""
        known = dictionary.find(tokens)
        groups, weights = known.groups, known.weights
        found: list[I32 | None] = [None] * len(self.parts)
        part = self.parts[self._largest]
        here = part.find(tokens)
        if here is not None:
            found[self._largest] = here.group_of
            at = int(np.searchsorted(groups, part.first_group))
            groups = np.concatenate([groups[:at], here.groups + np.int32(part.first_group), groups[at:]])
            weights = np.concatenate([weights[:at], here.weights, weights[at:]])
        return QueryGroups(groups, weights, tokens.size, tokens, tuple(found), known.set_counts)

    def prepare(self) -> None:
        """Get ready for many questions: small segments get a dictionary in common, unless they are too large for it."""
        small = [part for number, part in enumerate(self.parts) if number != self._largest]
        sizes = [file["hashes"].size for part in small if not part.segment.partly for file in part.segment.tokens]
        if (
            len(small) > 1
            and sum(sizes) <= DICTIONARY.most_entries
            and not any(part.segment.partly for part in self.parts)
        ):
            self._dictionary = Dictionary(small)

    @once
    def _largest(self) -> int:
        """The part with the most groups."""
        return max(range(len(self.parts)), key=lambda number: int(self.parts[number].segment.group_bounds[-1]))

    def popularity(self, query: QueryGroups) -> tuple[I32, I32]:
        """How many sets hold the tokens of a query, and how many tokens are held by so many."""
        if query.tokens is None:
            held, weights = self.frequencies(query.groups), query.weights
        else:
            held = np.zeros(query.size, np.int32) if query.sets_by_token is None else query.sets_by_token.copy()
            weights = np.ones(query.size, np.int32)
            for part, groups in zip(self.parts, query.groups_by_segment, strict=True):
                if groups is not None:
                    part.count_sets(groups, held)
        # In order: what is summed up of them must not depend on segments.
        found, place = np.unique(held, return_inverse=True)
        counts = np.bincount(place, weights, found.size).astype(np.int32)
        return found[found > 0], counts[found > 0]

    def query_of_set(self, number: int) -> QueryGroups:
        """A set of the lake as a query."""
        part, local = self.place_of(number)
        if len(self.parts) == 1:
            return part.segment.query_of_set(local)
        return self.query(part.tokens_of_set(local))

    def values(self, tokens: U64) -> QueryGroups:
        """A query whose groups are of tokens that the very same sets hold, over all segments.

        Where there are several, these groups are made as they are met, and numbered after all others.
        """
        if len(self.parts) == 1:
            return self.query(tokens)
        found = tuple(part.look_up(tokens) for part in self.parts)
        nowhere = np.full(tokens.size, -1, np.int32)
        places = [
            nowhere if groups is None else np.where(groups >= 0, groups + part.first_group, -1)
            for part, groups in zip(self.parts, found, strict=True)
        ]
        table = np.stack(places, axis=1)
        rows, weights = np.unique(table[table.max(axis=1) >= 0], axis=0, return_counts=True)
        numbers = np.array([self._number_of(tuple(row)) for row in rows.tolist()], np.int64)
        order = np.argsort(numbers)
        groups = (numbers[order] + self._groups).astype(np.int32)
        return QueryGroups(groups, weights[order].astype(np.int32), tokens.size, tokens, found)

    def _number_of(self, members: tuple[int, ...]) -> int:
        with self._uniting:
            number = self._united.setdefault(members, len(self._members))
            if number == len(self._members):
                self._members.append(members)
            return number

    def values_of_sets(self, numbers: Sequence[int]) -> QueryGroups:
        """A query of the tokens of some sets of the lake, whose groups are of tokens that the very same sets hold."""
        places = [self.place_of(number) for number in numbers]
        if len(self.parts) > 1:
            tokens = [np.empty(0, np.uint64), *(part.tokens_of_set(local) for part, local in places)]
            return self.values(np.unique(np.concatenate(tokens)))
        held = [np.empty(0, np.int32), *(part.segment.groups_of_set(local) for part, local in places)]
        groups = np.unique(np.concatenate(held))
        widths = self.widths(groups)
        return QueryGroups(groups, widths, int(widths.sum(dtype=np.int64)))

    def rows_of_groups(self, query: QueryGroups, tokens: U64, rows: npt.NDArray[Any]) -> I64:
        """Rows of the groups of a query, of whose distinct tokens the rows are given."""
        found = np.zeros(query.groups.size, np.int64)
        for part in self.parts:
            groups = part.segment.groups_of_tokens(tokens)
            known = groups >= 0
            at = np.searchsorted(query.groups, groups[known] + np.int32(part.first_group))
            found += np.bincount(at, rows[known], query.groups.size).astype(np.int64)
        return found

    # --- sets and groups ----------------------------------------------------------------------------------------------

    def groups_of_set(self, number: int) -> I32:
        """The groups of a set, in order."""
        part, local = self.place_of(number)
        groups = part.segment.groups_of_set(local)
        return groups + np.int32(part.first_group) if part.first_group else groups

    def holds_groups(self, groups: I32, number: int) -> Bools:
        """Which of some groups a set holds."""
        part, local = self.place_of(number)
        return part.segment.holds_groups(groups - np.int32(part.first_group), local)

    def token_lookup(self, tokens: U64) -> TokenLookup:
        """Some tokens, to ask which sets hold them."""
        return TokenLookup(self.parts, tokens)

    def holds_tokens(self, tokens: TokenLookup, number: int) -> Bools:
        """Which of some tokens a set holds."""
        part, local = self.place_of(number)
        groups = tokens.within(self.parts.index(part))
        return (groups >= 0) & part.segment.holds_groups(groups, local)

    def widths(self, groups: I32) -> I32:
        """Number of tokens of each group."""
        return self._of_groups(groups, lambda part, local: part.segment.widths(local))

    def frequencies(self, groups: I32) -> I32:
        """Number of sets that hold each group."""
        return self._of_groups(groups, lambda part, local: part.frequencies(local))

    def _split(self, groups: I32) -> Iterator[tuple[Part, I64, I32]]:
        """Groups by part: (part, their places, their numbers there)."""
        starts = np.array([part.first_group for part in self.parts], np.int64)
        place = np.searchsorted(starts, groups, "right") - 1
        for number in np.unique(place).tolist():
            mine = np.flatnonzero(place == number)
            yield self.parts[number], mine, groups[mine] - np.int32(starts[number])

    def _of_groups(self, groups: I32, read: Callable[[Part, I32], I32]) -> I32:
        if len(self.parts) == 1:
            return read(self.parts[0], groups)
        found = np.empty(groups.size, np.int32)
        for part, mine, local in self._split(groups):
            found[mine] = read(part, local)
        return found

    def lists(self, groups: I32, within: range | None = None) -> tuple[I64, I32]:
        """The sets that hold each of some groups, which are in order, or those in a range: (beginnings, sets)."""
        starts, sets = self._lists(groups)
        if within is None:
            return starts, sets
        kept = (sets >= within.start) & (sets < within.stop)
        return np.concatenate([[0], np.cumsum(kept)])[starts], sets[kept]

    def _lists(self, groups: I32) -> tuple[I64, I32]:
        if len(self.parts) == 1:
            return self.parts[0].lists(groups)
        if groups.size and groups[0] >= self._groups:
            return self._lists_of_united(groups - self._groups)
        ends, sets = [np.zeros(1, np.int64)], [np.empty(0, np.int32)]
        for part, _, local in self._split(groups):
            starts, found = part.lists(local)
            ends.append(starts[1:] + ends[-1][-1])
            sets.append(found)
        return np.concatenate(ends), np.concatenate(sets)

    def _lists_of_united(self, numbers: I32) -> tuple[I64, I32]:
        """The sets that hold each of some groups over all segments: (beginnings, sets)."""
        table = np.array([self._members[number] for number in numbers.tolist()], np.int64)
        # Row by row the members of a group are in order, as segments are; all of them together need not be.
        owner, _ = np.nonzero(table >= 0)
        members = table[table >= 0]
        order = np.argsort(members, kind="stable")
        starts, sets = self._lists(members[order].astype(np.int32))
        lengths = np.diff(starts)
        of = np.repeat(owner[order], lengths)
        return np.concatenate([[0], np.cumsum(np.bincount(of, minlength=numbers.size))]), sets[np.lexsort((sets, of))]
