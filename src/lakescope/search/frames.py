"""Sketches by frames: keys that share many values are laid over the same places, so that words are compared (QCR, 3).

Tables of a lake share keys: days, countries, customers. The sketches of such keys hold mostly the same hashes, those
of a *frame*, and what each has there is a bit a place. A query is laid over the frame once; whether it goes with a
column is then a matter of a few words, and no hash is looked at again. A key that is like no other has a frame of its
own: the words of its sketch as they are on disk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from lakescope.search.threads import in_parts

if TYPE_CHECKING:
    from lakescope.search.keysketches import KeySketches, NumberedHashes

U8 = npt.NDArray[np.uint8]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]

#: How often keys that do not fit on a frame are put on others; what is left then is alone.
_ROUNDS = 3


class Frames:
    """The frames of all sketches, and which hashes are where on which of them."""

    def __init__(self, sketches: KeySketches, numbered: NumberedHashes) -> None:
        from lakescope.search import frame_kernels as kernels

        self._sketches = sketches
        numbers, starts = numbered.numbers, numbered.starts
        known = numbered.known.size
        places, room = np.full(known, -1, np.int32), np.empty(known, np.uint32)
        frame_of = _assigned(numbers, starts, places, room)
        self._members = np.argsort(frame_of, kind="stable")[int((frame_of < 0).sum()) :]
        counts = np.bincount(frame_of[self._members])
        self._bounds: I64 = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        of_keys = self._members, self._bounds[1:], numbers, starts, places, room
        used, self._lengths, self._widths = np.zeros(known, np.int64), counts.copy(), np.zeros(sketches.count, np.int64)
        kernels.measure(*of_keys, used, self._lengths, self._widths)
        self._partial = np.zeros(sketches.pairs, np.uint8)
        self._hashes: U64 = np.repeat(numbered.known, used)
        pairs = sketches.pair_starts
        kernels.missing(starts, pairs, sketches.sides, self._partial)
        self._blocks, total = self._planned(frame_of, counts)
        self._words = np.zeros(total, np.uint64)
        entries = np.cumsum(used) - used
        self._frames, self._spots = np.empty(self._hashes.size, np.int32), np.empty(self._hashes.size, np.int32)
        kernels.lay_out(
            *(*of_keys, entries, self._frames, self._spots, pairs, sketches.sides),
            *(self._blocks, self._words, self._partial),
        )
        bits = max(1, self._hashes.size.bit_length())
        self._shift = np.uint64(64 - bits)
        self._directory = np.searchsorted(self._hashes, np.arange(1 << bits, dtype=np.uint64) << self._shift)
        self._directory = np.append(self._directory, self._hashes.size)

    def _planned(self, frame_of: I64, counts: I64) -> tuple[I64, int]:
        """Where the words of every key begin, -1 of those that are alone or nowhere, and how many there are."""
        sketches = self._sketches
        partial = np.concatenate([np.zeros(1, np.int64), np.cumsum(self._partial, dtype=np.int64)])
        begin, end = sketches.pair_starts[:-1], sketches.pair_starts[1:]
        rows = 1 + (end - begin) + partial[end] - partial[begin]
        shared = (frame_of >= 0) & (np.append(counts, 0)[frame_of] > 1)
        sizes = np.where(shared, rows * self._widths, 0)
        return np.where(shared, np.cumsum(sizes) - sizes, -1), int(sizes.sum())

    @property
    def count(self) -> int:
        """How many frames there are."""
        return int(self._lengths.size)

    @property
    def nbytes(self) -> int:
        """Memory that the frames take."""
        return sum(each.nbytes for each in vars(self).values() if isinstance(each, np.ndarray))

    def counted(self, hashes: U64, signs: U8, allowed: U8, own: int, least: int) -> tuple[I64, I32, I32]:
        """Pairs with enough values on a side where a query has one: their numbers, how often the same, how often not.

        ``signs`` says of every value of the query whether it is above its cut (1), below (2) or neither. Only keys
        that are ``allowed`` and not of the table ``own`` are looked at.
        """
        from lakescope.search import frame_kernels as kernels

        sketches = self._sketches
        pairs = sketches.pair_starts
        index = self._directory, self._shift, self._hashes, self._frames, self._spots
        met, *laid = kernels.meet(np.array(hashes), signs, *index, self._lengths, least)
        members = self._bounds, self._members, allowed, sketches.table_numbers
        listed = kernels.list_keys(met, *members, own, pairs)
        keys, _, firsts = listed
        same, other = np.zeros(int(firsts[-1]), np.int32), np.zeros(int(firsts[-1]), np.int32)
        stored = pairs, sketches.sides, sketches.sizes, self._blocks, self._widths, self._words, self._partial

        def compare(begin: int, end: int) -> None:
            kernels.compare(begin, end, listed, tuple(laid), stored, least, same, other)

        in_parts(compare, self._widths[keys])
        found: tuple[I64, I32, I32] = kernels.enough(keys, firsts, pairs, same, other, least)
        return found


def _assigned(numbers: npt.NDArray[np.uint32], starts: I64, places: I32, room: npt.NDArray[np.uint32]) -> I64:
    """The frame of every key, numbered from 0 on; -1 of keys without hashes."""
    from lakescope.search import frame_kernels as kernels

    frame_of = np.full(starts.size - 1, kernels.NOWHERE, np.int64)
    claimed = np.empty(places.size, np.int32)
    left = np.flatnonzero(np.diff(starts) > 0)
    made = 0
    for _ in range(_ROUNDS):
        claimed[:] = kernels.NOWHERE
        before = made
        made = int(kernels.assign(left, numbers, starts, claimed, frame_of, made))
        members = left[np.argsort(frame_of[left], kind="stable")]
        ends = np.cumsum(np.bincount(frame_of[left] - before)) if left.size else left
        kernels.evict(members, ends, numbers, starts, places, room, frame_of)
        left = left[frame_of[left] < 0]
    frame_of[left] = made + np.arange(left.size)
    # Frames that all keys were taken off are not there.
    on = frame_of >= 0
    frame_of[on] = np.unique(frame_of[on], return_inverse=True)[1]
    return frame_of
