"""Sketches by frames: keys that share many values are laid over the same places, so that words are compared (QCR, 3).

Tables of a lake share keys: days, countries, customers. The sketches of such keys hold mostly the same hashes, those
of a *frame*, and what each has there is a bit a place. A query is laid over the frame once; whether it goes with a
column is then a matter of a few words, and no hash is looked at again. A key that is like no other has a frame of its
own: the words of its sketch as they are on disk.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lakescope.array_types import I32, I64, U8, U32, U64
from lakescope.once import once
from lakescope.store.inverted import ranges
from lakescope.threads import in_parts

if TYPE_CHECKING:
    from lakescope.engines.correlations.keysketches import KeySketches, NumberedHashes


@dataclass(frozen=True, slots=True)
class FrameAssignment:
    """How keys are put on frames."""

    #: How often keys that do not fit on a frame are put on others; what is left then is alone. Not measured: answers do
    #: not depend on it.
    rounds: int = 3


ASSIGNMENT = FrameAssignment()


class PairCounts(NamedTuple):
    """Pairs by number, how often each is on the same side as a query, and how often on the other."""

    pairs: I64
    same: npt.NDArray[np.signedinteger[Any]]
    other: npt.NDArray[np.signedinteger[Any]]


class Frames:
    """The frames of all sketches, and which hashes are where on which of them."""

    def __init__(self, sketches: KeySketches, numbered: NumberedHashes) -> None:
        from lakescope.engines.correlations import frame_kernels as kernels

        numbers, starts, known = numbered.numbers, numbered.starts, numbered.known.size
        places, room = np.full(known, -1, np.int32), np.empty(known, np.uint32)
        frame_of = _assigned(numbers, starts, places, room)
        members = np.argsort(frame_of, kind="stable")[int((frame_of < 0).sum()) :]
        counts = np.bincount(frame_of[members])
        of_keys = members, np.cumsum(counts), numbers, starts, places, room
        used, self._lengths, widths = np.zeros(known, np.int64), counts.copy(), np.zeros(sketches.count, np.int64)
        kernels.measure(*of_keys, used, self._lengths, widths)
        self._alone = np.full(counts.size, kernels.NOWHERE, np.int64)
        single = members[counts[frame_of[members]] == 1]
        self._alone[frame_of[single]] = single
        self._sketched = sketches.pair_starts, sketches.sides, sketches.sizes
        self._blocks = _FrameBlocks(sketches, frame_of, widths, counts)
        self._hashes: U64 = np.repeat(numbered.known, used)
        entries = np.cumsum(used) - used
        self._frames, self._spots = np.empty(self._hashes.size, np.int32), np.empty(self._hashes.size, np.int32)
        kernels.lay_out(
            *(*of_keys, entries, self._frames, self._spots, sketches.pair_starts, sketches.sides),
            *self._blocks.arrays_to_fill(),
        )
        # A few hashes for each place of the directory, so that it is small: memory is what looking up waits for.
        bits = max(1, self._hashes.size.bit_length() - 2)
        self._shift = np.uint64(64 - bits)
        begins = np.searchsorted(self._hashes, np.arange(1 << bits, dtype=np.uint64) << self._shift)
        self._directory: U32 = np.append(begins, self._hashes.size).astype(np.uint32)

    @property
    def count(self) -> int:
        """How many frames there are."""
        return int(self._lengths.size)

    @property
    def nbytes(self) -> int:
        """Memory that the frames take."""
        every = *vars(self).values(), *vars(self._blocks).values()
        return sum(each.nbytes for each in every if isinstance(each, np.ndarray))

    def count_pairs(self, hashes: U64, signs: U8, allowed: U8, least: int) -> PairCounts:
        """Pairs with enough values on a side where a query has one, and how often they are on the same.

        ``signs`` says of every value of the query whether it is above its cut (1), below (2) or neither. Only keys
        that are ``allowed`` are looked at.
        """
        from lakescope.engines.correlations import frame_kernels as kernels

        stored = self._blocks
        index = self._directory, self._shift, self._hashes, self._frames, self._spots
        met, *laid = kernels.meet(np.array(hashes), signs, *index, self._lengths, least)
        sizes = stored.counts, stored.widths, laid[1], self._sketched[0]
        *listed, work = kernels.list_blocks(met, stored.bounds, self._alone, *sizes)
        firsts = listed[2]
        room = int(firsts[-1])
        out = np.empty(room, np.int64), np.empty(room, np.int32), np.empty(room, np.int32)
        found: dict[int, int] = {}

        def compare(begin: int, end: int) -> None:
            given = tuple(listed), tuple(laid), stored.arrays_to_compare, self._sketched, allowed, least, out
            found[begin] = kernels.compare(begin, end, *given)

        # Eight words take about a step's time.
        in_parts(compare, work >> 3)
        parts = [(int(firsts[begin]), n) for begin, n in sorted(found.items())]
        if len(parts) == 1:
            begin, n = parts[0]
            some: slice | I64 = slice(begin, begin + n)
        else:
            some = np.concatenate([np.empty(0, np.int64), *(begin + np.arange(n) for begin, n in parts)])
        return PairCounts(out[0][some], out[1][some], out[2][some])


class _FrameBlocks:
    """Pairs whose words lie side by side: those on the same frame, as long as each other, a block for so many.

    A pair has a slot. ``bounds`` says which blocks are each frame's.
    """

    def __init__(self, sketches: KeySketches, frame_of: I64, widths: I64, counts: I64) -> None:
        from lakescope.engines.correlations import frame_kernels as kernels

        keys = np.lexsort((widths, frame_of))
        keys = keys[(frame_of[keys] >= 0) & (np.append(counts, 0)[frame_of[keys]] > 1)]
        starts = sketches.pair_starts[keys]
        pairs = sketches.pair_starts[keys + 1] - starts
        self.pairs, self.keys = ranges(starts, pairs).astype(np.int32), np.repeat(keys, pairs).astype(np.int32)
        frames = frame_of[self.keys]
        # Every frame begins a block.
        within = np.arange(frames.size) - np.searchsorted(frames, frames)
        self.firsts: I64 = np.flatnonzero(within % kernels.BLOCK == 0)
        self.counts: I64 = np.diff(np.append(self.firsts, frames.size))
        self.widths: I64 = np.maximum.reduceat(widths[self.keys], self.firsts) if frames.size else self.firsts
        sizes = 2 * self.widths * self.counts
        self.begins: I64 = np.cumsum(sizes) - sizes
        self.bounds: I64 = np.searchsorted(frames[self.firsts], np.arange(counts.size + 1))
        self.words: U64 = np.zeros(int(sizes.sum()), np.uint64)
        self._slots: I64 = np.full(sketches.count, kernels.NOWHERE, np.int64)
        self._slots[keys] = np.cumsum(pairs) - pairs

    def arrays_to_fill(self) -> tuple[I64, tuple[I64, I64, I64, I64], U64]:
        """The arrays that filling the blocks takes, once: each key's first slot, each slot's block, the blocks."""
        slots, self._slots = self._slots, np.empty(0, np.int64)
        of_slot = np.repeat(np.arange(self.counts.size), self.counts)
        return slots, (of_slot, self.firsts, self.counts, self.begins), self.words

    @once
    def arrays_to_compare(self) -> tuple[I32, I32, I64, I64, I64, I64, U64]:
        """The arrays that comparing the blocks with a query takes."""
        return self.pairs, self.keys, self.firsts, self.counts, self.begins, self.widths, self.words


def _assigned(numbers: U32, starts: I64, places: I32, room: U32) -> I64:
    """The frame of every key, numbered from 0 on; -1 of keys without hashes."""
    from lakescope.engines.correlations import frame_kernels as kernels

    frame_of = np.full(starts.size - 1, kernels.NOWHERE, np.int64)
    claimed = np.empty(places.size, np.int32)
    left = np.flatnonzero(np.diff(starts) > 0)
    made = 0
    for _ in range(ASSIGNMENT.rounds):
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
