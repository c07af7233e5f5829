"""Equal posting lists find each other: by length and hash first, by content always (spec-search-and-join 3.3).

Tokens with the same list form a *group*. Most tokens of a lake do (98% in the thesis' open data): those that only one
column holds, those that two copies of a table share. The index knows groups only: a list is kept once, and a set is a
list of groups.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lakescope.array_types import I32, I64, U64
from lakescope.build.kernels import find_equal, gather_lists, hash_lists


@dataclass(slots=True)
class SetLists:
    """Lists of set numbers one after the other, with the hash of each."""

    starts: I64
    sets: I32
    hashes: U64

    @classmethod
    def of(cls, starts: I64, sets: I32) -> SetLists:
        return cls(starts, sets, hash_lists(starts, sets))

    @property
    def lengths(self) -> I64:
        return np.diff(self.starts)

    def take(self, chosen: I64) -> SetLists:
        """Some of the lists."""
        starts, sets = gather_lists(chosen, self.starts, self.sets)
        return SetLists(starts, sets, self.hashes[chosen])

    @classmethod
    def concatenate(cls, parts: list[SetLists]) -> SetLists:
        ends = np.cumsum([0, *(part.sets.size for part in parts)])
        starts = [part.starts[:-1] + end for part, end in zip(parts, ends, strict=False)]
        return cls(
            np.concatenate([*starts, ends[-1:]]),
            np.concatenate([part.sets for part in parts]),
            np.concatenate([part.hashes for part in parts]),
        )


def group(lists: SetLists) -> tuple[I64, I64]:
    """The group of every list, and the first list of every group.

    Groups are numbered by length, then hash, then content of their list: the same whatever order the lists came in.
    """
    groups, first = find_equal(lists.starts, lists.sets, lists.hashes)
    order = _canonical(lists, first)
    number = np.empty(order.size, np.int64)
    number[order] = np.arange(order.size)
    return number[groups], first[order]


def _canonical(lists: SetLists, first: I64) -> I64:
    """An order of different lists by length, hash and content."""
    lengths, hashes = lists.lengths[first], lists.hashes[first]
    order = np.lexsort((hashes, lengths))
    same = (np.diff(lengths[order]) == 0) & (hashes[order][1:] == hashes[order][:-1])
    if same.any():
        content = [tuple(lists.sets[lists.starts[i] : lists.starts[i + 1]].tolist()) for i in first.tolist()]
        keys = list(zip(lengths.tolist(), hashes.tolist(), content, strict=True))
        order = np.array(sorted(range(order.size), key=lambda i: keys[i]), np.int64)
    return order
