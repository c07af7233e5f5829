"""The tokens of several small segments in one: each is looked up once, whatever the number of segments.

Every segment knows its tokens by groups of its own, so a query's tokens are looked up in each of them. Looking up waits
for memory and does little else: after twenty updates it takes longer than all that follows. Where many questions come,
the small segments' tokens are therefore put together, each with its groups in all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lakescope.array_types import I32, I64, U64

if TYPE_CHECKING:
    from lakescope.engines.joins.inverted import Part


@dataclass(frozen=True, slots=True)
class DictionaryTuning:
    """How large a dictionary in common may be, and how it is put together. Answers do not depend on it."""

    #: Entries that are kept in memory, at most, a token of a segment each: about 200 MB. Not measured:
    #: a bound of memory.
    most_entries: int = 12_000_000
    #: Pieces in which tokens are put together, so that little more memory is needed than for what is made. Not
    #: measured.
    pieces: int = 64


DICTIONARY = DictionaryTuning()


class DictionaryMatch(NamedTuple):
    """What a dictionary knows of some tokens: groups in order, how many of the tokens each holds, and the sets of each.

    ``set_counts`` says of every token how many sets hold it.
    """

    groups: I32
    weights: I32
    set_counts: I32


class Dictionary:
    """The tokens of some segments, their groups as the lake numbers them, and how many sets hold each token."""

    def __init__(self, parts: Sequence[Part]) -> None:
        files = [(part, file, _counts(part)) for part in parts for file in part.segment.tokens]
        tokens, sizes, groups, held = [], [np.zeros(1, np.int64)], [np.empty(0, np.int32)], [np.empty(0, np.int32)]
        for piece in range(DICTIONARY.pieces):
            low = np.uint64(piece * 2**64 // DICTIONARY.pieces)
            high = np.uint64((piece + 1) * 2**64 // DICTIONARY.pieces - 1)
            hashes, places, counts = [np.empty(0, np.uint64)], [np.empty(0, np.int32)], [np.empty(0, np.int32)]
            for part, file, sets in files:
                begin = int(np.searchsorted(file["hashes"], low))
                some = slice(begin, int(np.searchsorted(file["hashes"], high, side="right")))
                local = file["groups"][some]
                if local.size and not 0 <= local.min() <= local.max() < sets.size:
                    raise part.segment.damaged()
                hashes.append(file["hashes"][some])
                places.append(local + np.int32(part.first_group))
                counts.append(sets[local])
            every = np.concatenate(hashes)
            order = np.argsort(every, kind="stable")
            every = every[order]
            firsts = np.flatnonzero(np.append(True, every[1:] != every[:-1])) if every.size else order
            tokens.append(every[firsts])
            sizes.append(np.diff(np.append(firsts, every.size)))
            groups.append(np.concatenate(places)[order])
            if every.size:
                held.append(np.add.reduceat(np.concatenate(counts)[order], firsts).astype(np.int32))
        self._tokens: U64 = np.concatenate(tokens)
        self._starts: I64 = np.cumsum(np.concatenate(sizes))
        self._groups: I32 = np.concatenate(groups)
        self._set_counts: I32 = np.concatenate(held)
        # About a token for each place of the directory.
        bits = max(1, self._tokens.size.bit_length())
        self._shift = np.uint64(64 - bits)
        begins = np.searchsorted(self._tokens, np.arange(1 << bits, dtype=np.uint64) << self._shift)
        self._directory: I64 = np.append(begins, self._tokens.size)

    def find(self, tokens: U64) -> DictionaryMatch:
        """Look some tokens up."""
        from lakescope.engines.joins import kernels

        known = self._directory, self._shift, self._tokens, self._starts, self._groups, self._set_counts
        found, held = kernels.look_up_once(tokens, *known)
        groups, weights = np.unique(found, return_counts=True)
        return DictionaryMatch(groups, weights.astype(np.int32), held)


def _counts(part: Part) -> I32:
    """How many sets that are there hold each group of a segment."""
    return part.frequencies(np.arange(int(part.segment.group_bounds[-1]), dtype=np.int32))
