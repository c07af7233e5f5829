"""Equal posting lists find each other: by length and hash first, by content always (spec-search-and-join 3.3).

Tokens with the same list form a *group*. Most tokens of a lake do (98% in the thesis' open data): those that only one
column holds, those that two copies of a table share. The index knows groups only: a list is kept once, and a set is a
list of groups.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lakescope.pipeline.kernels import compare_neighbours, gather_lists, hash_lists

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]

_OTHER_CONTENT = 2


@dataclass(slots=True)
class Lists:
    """Lists of set numbers one after the other, with the hash of each."""

    starts: I64
    sets: I32
    hashes: U64

    @classmethod
    def of(cls, starts: I64, sets: I32) -> Lists:
        return cls(starts, sets, hash_lists(starts, sets))

    @property
    def lengths(self) -> I64:
        return np.diff(self.starts)

    def take(self, chosen: I64) -> Lists:
        """Some of the lists."""
        starts, sets = gather_lists(chosen, self.starts, self.sets)
        return Lists(starts, sets, self.hashes[chosen])

    @classmethod
    def concatenate(cls, parts: list[Lists]) -> Lists:
        ends = np.cumsum([0, *(part.sets.size for part in parts)])
        starts = [part.starts[:-1] + end for part, end in zip(parts, ends, strict=False)]
        return cls(
            np.concatenate([*starts, ends[-1:]]),
            np.concatenate([part.sets for part in parts]),
            np.concatenate([part.hashes for part in parts]),
        )


def group(lists: Lists) -> tuple[I64, I64]:
    """The group of every list, and the first list of every group.

    Groups are numbered by length, then hash, then content of their list: the same whatever order the lists came in.
    """
    order = np.lexsort((lists.hashes, lists.lengths))
    differs = compare_neighbours(order, lists.starts, lists.sets, lists.hashes)
    if (differs == _OTHER_CONTENT).any():
        order = _by_content(lists, order, differs)
        differs = compare_neighbours(order, lists.starts, lists.sets, lists.hashes)
    begins = differs != 0
    groups = np.empty(order.size, np.int64)
    groups[order] = np.cumsum(begins) - 1
    return groups, order[begins]


def _by_content(lists: Lists, order: I64, differs: npt.NDArray[np.uint8]) -> I64:
    """Order by content where different lists of one length share a hash."""
    runs = np.flatnonzero(differs == 1).tolist()
    for begin, end in zip(runs, [*runs[1:], order.size], strict=True):
        if (differs[begin:end] == _OTHER_CONTENT).any():
            content = {i: lists.sets[lists.starts[i] : lists.starts[i + 1]].tolist() for i in order[begin:end].tolist()}
            order[begin:end] = sorted(content, key=lambda i: content[i])
    return order
