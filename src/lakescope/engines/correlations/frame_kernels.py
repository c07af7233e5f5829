"""Compiled first stage of a correlation search: sketches by frames, quadrants by words (QCR, 3; spec 3.9).

A frame is a list of hashes in order that the sketches of many keys lie on: a bit for each place says what a sketch has
there. A query is laid over a frame once, and then compared with every sketch of it word by word.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from lakescope.engines.joins.kernels import _prefetch, _u64
from lakescope.sketches.quadrants import ABOVE, PRESENT


@dataclass(frozen=True, slots=True)
class FrameTuning:
    """Which sketches lie on one frame, and how words of pairs lie in memory. Answers do not depend on it.

    ``benchmarks/results/correlations.md`` has how long questions take with all of it; no record compares other values.
    """

    #: Smallest hashes of a key by which its frame is found. Not measured by itself.
    votes: int = 32
    #: One of so many of these hashes must be on the frame. Not measured by itself.
    agree: int = 8
    #: Places of a frame that a sketch may need for each of its hashes: it is as long in memory. Not measured by itself.
    room: int = 4
    #: Places of a frame that a sketch may need beyond these. Not measured by itself.
    more: int = 64
    #: Pairs whose words lie side by side, at most: those that are compared at once. Not measured by itself.
    block: int = 256


FRAMES = FrameTuning()

# Kernels take numbers of their module for constants, which they are compiled with; the fields above say what each is.
_VOTES, _AGREE, _ROOM, _MORE, BLOCK = FRAMES.votes, FRAMES.agree, FRAMES.room, FRAMES.more, FRAMES.block


#: A key whose sketch is on no frame (yet).
NOWHERE = -1


def _counting() -> Any:
    """Counts the bits that are set in a word: one instruction, or one for many words."""

    @intrinsic
    def ones(typing_context, word):
        def codegen(context, builder, signature, arguments):
            count = builder.module.declare_intrinsic("llvm.ctpop", [ir.IntType(64)])
            return builder.call(count, arguments)

        return types.int64(types.uint64), codegen

    return ones


_ones = _counting()


@njit(nogil=True, cache=True)
def assign(keys, numbers, starts, claimed, frame_of, made):
    """Put keys on frames: that which most of the smallest hashes of a key belong to, or a new one. How many there are.

    ``claimed`` says which frame each numbered hash belongs to, ``made`` how many frames there are already.
    """
    seen, votes = np.empty(_VOTES, np.int32), np.empty(_VOTES, np.int32)
    for key in keys:
        mine = numbers[starts[key] : min(starts[key + 1], starts[key] + _VOTES)]
        met = 0
        for number in mine:
            frame = claimed[number]
            if frame == NOWHERE:
                continue
            at = 0
            while at < met and seen[at] != frame:
                at += 1
            if at == met:
                seen[at], votes[at] = frame, 0
                met += 1
            votes[at] += 1
        best = 0
        for at in range(1, met):
            if votes[at] > votes[best]:
                best = at
        frame = made
        if met and votes[best] * _AGREE >= mine.size:
            frame = seen[best]
        else:
            made += 1
        frame_of[key] = frame
        for number in mine:
            if claimed[number] == NOWHERE:
                claimed[number] = frame
    return made


@njit(nogil=True, cache=True)
def _united(keys, numbers, starts, places, room):
    """The hashes of some keys in order, in ``room``, and in ``places`` where each is; how many there are.

    ``places`` must be -1 of all numbers, and is not made so again.
    """
    n = 0
    for key in keys:
        for number in numbers[starts[key] : starts[key + 1]]:
            if places[number] < 0:
                places[number] = 0
                room[n] = number
                n += 1
    room[:n].sort()
    for at in range(n):
        places[room[at]] = at
    return n


@njit(nogil=True, cache=True)
def evict(members, ends, numbers, starts, places, room, frame_of):
    """Take keys off frames that are much longer than their sketches.

    ``members`` are the keys of one frame after the other, ``ends`` where those of each end.
    """
    begin = 0
    for end in ends:
        keys = members[begin:end]
        begin = end
        if keys.size > 1:
            n = _united(keys, numbers, starts, places, room)
            for key in keys:
                size = starts[key + 1] - starts[key]
                if places[numbers[starts[key + 1] - 1]] + 1 > _ROOM * size + _MORE:
                    frame_of[key] = NOWHERE
            for at in range(n):
                places[room[at]] = -1


@njit(nogil=True, cache=True)
def measure(members, ends, numbers, starts, places, room, used, lengths, widths):
    """How many places each frame has, how many frames each hash is on (``used``), how many words each sketch needs."""
    begin = 0
    for frame in range(ends.size):
        keys = members[begin : ends[frame]]
        begin = ends[frame]
        n = _united(keys, numbers, starts, places, room)
        lengths[frame] = n
        for key in keys:
            widths[key] = (places[numbers[starts[key + 1] - 1]] >> 6) + 1
        for at in range(n):
            used[room[at]] += 1
            places[room[at]] = -1


@njit(nogil=True, cache=True)
def lay_out(members, ends, numbers, starts, places, room, filled, frames, spots, pairs, sides, slots, blocks, words):
    """Where on which frame every hash is, and the words of all sketches that share a frame with others.

    ``filled`` is where the next entry of each hash goes, ``slots`` the slot of the first pair of every key, -1 if it is
    alone on its frame. ``blocks`` are the block of every slot, and of every block its first slot, its number of slots
    and where its words begin: of each word of the frame first where the pairs of all slots have a number, then where
    these are above their cut.
    """
    begin = 0
    for frame in range(ends.size):
        keys = members[begin : ends[frame]]
        begin = ends[frame]
        n = _united(keys, numbers, starts, places, room)
        for at in range(n):
            entry = filled[room[at]]
            filled[room[at]] = entry + 1
            frames[entry], spots[entry] = frame, at
        for key in keys:
            if slots[key] != NOWHERE:
                _lay_key(key, numbers, starts, places, pairs, sides, slots, blocks, words)
        for at in range(n):
            places[room[at]] = -1


@njit(nogil=True, cache=True)
def _lay_key(key, numbers, starts, places, pairs, sides, slots, blocks, words):
    of_slot, firsts, counts, begins = blocks
    mine = numbers[starts[key] : starts[key + 1]]
    own = (mine.size + 63) >> 6
    for pair in range(pairs[key], pairs[key + 1]):
        slot = slots[key] + pair - pairs[key]
        block = of_slot[slot]
        count = counts[block]
        at = begins[block] + slot - firsts[block]
        for i in range(mine.size):
            place = np.int64(places[mine[i]])
            word, bit = at + (place >> 6) * 2 * count, np.uint64(place & 63)
            there = (_u64(sides[pair], PRESENT * own + (i >> 6)) >> np.uint64(i & 63)) & np.uint64(1)
            above = (_u64(sides[pair], ABOVE * own + (i >> 6)) >> np.uint64(i & 63)) & np.uint64(1)
            words[word] |= there << bit
            words[word + count] |= above << bit


@njit(nogil=True, cache=True)
def meet(probes, signs, directory, shift, hashes, frames, spots, lengths, least):
    """Lay a query over all frames that hold at least ``least`` of its values.

    ``signs`` says of every value of the query whether it is above its cut (1), below (2) or neither. Returns the
    frames, where the words of each begin, how many it needs, and the words: above the cut, and above or below.
    """
    counts = np.zeros(lengths.size, np.int32)
    begins, ends = np.zeros(probes.size, np.int64), np.zeros(probes.size, np.int64)
    met, n = np.empty(min(lengths.size, 1 << 10), np.int32), 0
    for i in range(probes.size):
        place = directory[probes[i] >> shift]
        _prefetch(np.uint64(hashes.ctypes.data) + np.uint64(8 * place))
        _prefetch(np.uint64(frames.ctypes.data) + np.uint64(4 * place))
    for i in range(probes.size):
        if signs[i] == 0:
            continue
        h = probes[i]
        at, end = np.int64(directory[h >> shift]), np.int64(directory[(h >> shift) + np.uint64(1)])
        while at < end and hashes[at] < h:
            at += 1
        begins[i] = at
        while at < end and hashes[at] == h:
            frame = frames[at]
            counts[frame] += 1
            if counts[frame] == least:
                if n == met.size:
                    more = np.empty(2 * n, np.int32)
                    more[:n] = met
                    met = more
                met[n] = frame
                n += 1
            at += 1
        ends[i] = at
    met = np.sort(met[:n])
    offsets, used = np.zeros(n + 1, np.int64), np.zeros(n, np.int64)
    for slot in range(n):
        counts[met[slot]] = -1 - slot
        offsets[slot + 1] = offsets[slot] + ((lengths[met[slot]] + 63) >> 6)
    above, there = np.zeros(offsets[n], np.uint64), np.zeros(offsets[n], np.uint64)
    for i in range(probes.size):
        for entry in range(begins[i], ends[i]):
            slot = -1 - counts[frames[entry]]
            if slot >= 0:
                word, bit = np.int64(spots[entry] >> 6), np.uint64(1) << np.uint64(spots[entry] & 63)
                used[slot] = max(used[slot], word + 1)
                there[offsets[slot] + word] |= bit
                if signs[i] == 1:
                    above[offsets[slot] + word] |= bit
    return met, offsets, used, above, there


@njit(nogil=True, cache=True)
def list_blocks(met, bounds, alone, counts, widths, used, pairs):
    """The blocks of some frames, the place of the frame of each among these, and how many words it will look at.

    A frame with one key has no block: that key ``k`` is listed as ``-1 - k``. Returns where the pairs of each begin,
    too, counted over all that are listed.
    """
    most = met.size
    for frame in met:
        most += bounds[frame + 1] - bounds[frame]
    blocks, slots, work = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    firsts = np.zeros(most + 1, np.int64)
    n = 0
    for slot in range(met.size):
        frame = met[slot]
        for block in range(bounds[frame], bounds[frame + 1]):
            blocks[n], slots[n], work[n] = block, slot, counts[block] * min(widths[block], used[slot])
            firsts[n + 1] = firsts[n] + counts[block]
            n += 1
        key = alone[frame]
        if key != NOWHERE:
            blocks[n], slots[n], work[n] = -1 - key, slot, (pairs[key + 1] - pairs[key]) * used[slot]
            firsts[n + 1] = firsts[n] + pairs[key + 1] - pairs[key]
            n += 1
    return blocks[:n], slots[:n], firsts[: n + 1], work[:n]


@njit(nogil=True, cache=True)
def compare(begin, end, listed, laid, stored, sketched, allowed, least, out):
    """Pairs of some listed blocks that have at least so many values on a side where a query has one.

    ``listed`` are blocks, the frame of each and its first pair, ``laid`` a query as :func:`meet` laid it, ``stored``
    the blocks, ``sketched`` what sketches say of their keys and pairs. ``out`` gets their numbers, how often each is on
    the same side as the query and how often not, from where the first of these blocks begins; how many is returned.
    """
    blocks, slots, firsts = listed
    offsets, used, above, there = laid
    slot_pairs, slot_keys, slot_firsts, counts, begins, widths, words = stored
    shared, differ = np.empty(BLOCK, np.int64), np.empty(BLOCK, np.int64)
    n = firsts[begin]
    for job in range(begin, end):
        block, slot = blocks[job], slots[job]
        offset = np.uint64(offsets[slot])
        if block < 0:
            if allowed[-1 - block]:
                n = _compare_alone(-1 - block, offset, used[slot], above, there, sketched, least, out, n)
            continue
        count = np.uint64(counts[block])
        _count(
            *(np.uint64(begins[block]), count, np.uint64(min(widths[block], used[slot])), words),
            *(offset, above, there, shared, differ),
        )
        first = np.uint64(slot_firsts[block])
        for lane in range(count):
            out[0][n], out[1][n], out[2][n] = slot_pairs[first + lane], shared[lane] - differ[lane], differ[lane]
            n += np.int64(shared[lane] >= least) & np.int64(allowed[slot_keys[first + lane]])
    return n - firsts[begin]


@njit(nogil=True, cache=True)
def _count(at, count, width, words, offset, above, there, shared, differ):
    """Of the pairs of a block, all at once, values where a query has one, and those on the other side of their cut."""
    for lane in range(count):
        shared[lane] = differ[lane] = 0
    for w in range(width):
        mine, up = there[offset + w], above[offset + w]
        if mine:
            for lane in range(count):
                known = words[at + lane] & mine
                shared[lane] += _ones(known)
                differ[lane] += _ones((words[at + count + lane] ^ up) & known)
        at += np.uint64(2) * count


@njit(nogil=True, cache=True)
def _compare_alone(key, offset, used, above, there, sketched, least, out, n):
    """Compare a query with a key that is alone on its frame: the places of the frame are those of the sketch."""
    pairs, sides, sizes = sketched
    own = (sizes[key] + 63) >> 6
    for pair in range(pairs[key], pairs[key + 1]):
        differ = shared = np.int64(0)
        for w in range(min(own, used)):
            known = _u64(sides[pair], PRESENT * own + w) & there[offset + np.uint64(w)]
            shared += _ones(known)
            differ += _ones((_u64(sides[pair], ABOVE * own + w) ^ above[offset + np.uint64(w)]) & known)
        if shared >= least:
            out[0][n], out[1][n], out[2][n] = pair, shared - differ, differ
            n += 1
    return n


@njit(nogil=True, cache=True, error_model="numpy")
def z_scores(same, other):
    """How surely pairs go together: the difference of both counts in units of its standard deviation (spec 3.9)."""
    found = np.empty(same.size)
    for at in range(same.size):
        found[at] = np.float64(abs(same[at] - other[at])) / np.sqrt(np.float64(same[at] + other[at] + 1))
    return found
