"""Compiled first stage of a correlation search: sketches by frames, quadrants by words (QCR, 3; spec 3.9).

A frame is a list of hashes in order that the sketches of many keys lie on: a bit for each place says what a sketch has
there. A query is laid over a frame once, and then compared with every sketch of it word by word.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from lakescope.search.kernels import _u64
from lakescope.sketches.quadrants import ABOVE, PRESENT

#: Smallest hashes of a key by which its frame is found, and one of how many of them must be there.
_VOTES, _AGREE = 32, 8
#: Places of a frame that a sketch may need for each of its hashes, and some more: it is as long in memory.
_ROOM, _MORE = 4, 64
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
def lay_out(members, ends, numbers, starts, places, room, filled, frames, spots, pairs, sides, blocks, words, partial):
    """Where on which frame every hash is, and the words of all sketches that share a frame with others.

    ``filled`` is where the next entry of each hash goes. A block is the words of a key, where it has hashes, and of
    each of its pairs, where it is above its cut; before these, if a number is missing, where it has numbers.
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
        if keys.size > 1:
            for key in keys:
                _lay_key(key, numbers, starts, places, pairs, sides, blocks, words, partial)
        for at in range(n):
            places[room[at]] = -1


@njit(nogil=True, cache=True)
def _lay_key(key, numbers, starts, places, pairs, sides, blocks, words, partial):
    mine = numbers[starts[key] : starts[key + 1]]
    width, own = (places[mine[mine.size - 1]] >> 6) + 1, (mine.size + 63) >> 6
    at = blocks[key]
    for number in mine:
        words[at + (places[number] >> 6)] |= np.uint64(1) << np.uint64(places[number] & 63)
    at += width
    for pair in range(pairs[key], pairs[key + 1]):
        for row in (PRESENT, ABOVE):
            if row == PRESENT and not partial[pair]:
                continue
            for i in range(mine.size):
                bit = (_u64(sides[pair], row * own + (i >> 6)) >> np.uint64(i & 63)) & np.uint64(1)
                words[at + (places[mine[i]] >> 6)] |= bit << np.uint64(places[mine[i]] & 63)
            at += width


@njit(nogil=True, cache=True)
def missing(starts, pairs, sides, partial):
    """Which pairs lack a number for some hash of their key."""
    for key in range(starts.size - 1):
        size = starts[key + 1] - starts[key]
        own = (size + 63) >> 6
        for pair in range(pairs[key], pairs[key + 1]):
            there = np.int64(0)
            for w in range(own):
                there += _ones(_u64(sides[pair], PRESENT * own + w))
            partial[pair] = there < size


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
        if signs[i] == 0:
            continue
        h = probes[i]
        at, end = directory[h >> shift], directory[(h >> shift) + np.uint64(1)]
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
        for at in range(begins[i], ends[i]):
            slot = -1 - counts[frames[at]]
            if slot >= 0:
                word, bit = np.int64(spots[at] >> 6), np.uint64(1) << np.uint64(spots[at] & 63)
                used[slot] = max(used[slot], word + 1)
                there[offsets[slot] + word] |= bit
                if signs[i] == 1:
                    above[offsets[slot] + word] |= bit
    return met, offsets, used, above, there


@njit(nogil=True, cache=True)
def list_keys(met, bounds, members, allowed, tables, own, pairs):
    """The keys of some frames that may be looked at, the frame of each as its place among these, and its first pair.

    Pairs are counted from 0 on over all keys listed.
    """
    most = 0
    for frame in met:
        most += bounds[frame + 1] - bounds[frame]
    keys, slots, firsts = np.empty(most, np.int64), np.empty(most, np.int64), np.zeros(most + 1, np.int64)
    n = 0
    for slot in range(met.size):
        for at in range(bounds[met[slot]], bounds[met[slot] + 1]):
            key = members[at]
            if allowed[key] and tables[key] != own:
                keys[n], slots[n] = key, slot
                firsts[n + 1] = firsts[n] + pairs[key + 1] - pairs[key]
                n += 1
    return keys[:n], slots[:n], firsts[: n + 1]


@njit(nogil=True, cache=True)
def compare(begin, end, listed, laid, stored, least, same, other):
    """How often the pairs of some listed keys are on the same side of their cut as a query, and how often not.

    None of a key that shares fewer than ``least`` values with it. ``listed`` are keys, the frame of each and its first
    pair, ``laid`` a query as :func:`meet` laid it, ``stored`` where pairs and their words are.
    """
    keys, slots, firsts = listed
    offsets, used, above, there = laid
    pairs, sides, sizes, blocks, widths, words, partial = stored
    both = np.empty(max(np.int64(1), used.max() if used.size else np.int64(0)), np.uint64)
    for job in range(begin, end):
        key, slot, place = keys[job], slots[job], firsts[job]
        offset = np.uint64(offsets[slot])
        if blocks[key] == NOWHERE:
            _compare_alone(key, offset, used[slot], above, there, pairs, sides, sizes, place, same, other)
            continue
        width = widths[key]
        n = min(width, used[slot])
        at = np.uint64(blocks[key])
        common = np.int64(0)
        for w in range(n):
            both[np.uint64(w)] = words[at + np.uint64(w)] & there[offset + np.uint64(w)]
            common += _ones(both[np.uint64(w)])
        at += np.uint64(width)
        for pair in range(pairs[key], pairs[key + 1]):
            differ, shared = np.int64(0), common
            if partial[pair]:
                here = at
                at += np.uint64(width)
                shared = np.int64(0)
                for w in range(n):
                    known = words[here + np.uint64(w)] & there[offset + np.uint64(w)]
                    shared += _ones(known)
                    differ += _ones((words[at + np.uint64(w)] ^ above[offset + np.uint64(w)]) & known)
            elif common >= least:
                for w in range(n):
                    differ += _ones((words[at + np.uint64(w)] ^ above[offset + np.uint64(w)]) & both[np.uint64(w)])
            at += np.uint64(width)
            if common >= least:
                same[place], other[place] = shared - differ, differ
            place += 1


@njit(nogil=True, cache=True)
def _compare_alone(key, offset, used, above, there, pairs, sides, sizes, place, same, other):
    """The same of a key that is alone on its frame: the places of the frame are those of the sketch."""
    own = (sizes[key] + 63) >> 6
    for pair in range(pairs[key], pairs[key + 1]):
        differ = shared = np.int64(0)
        for w in range(min(own, used)):
            known = _u64(sides[pair], PRESENT * own + w) & there[offset + np.uint64(w)]
            shared += _ones(known)
            differ += _ones((_u64(sides[pair], ABOVE * own + w) ^ above[offset + np.uint64(w)]) & known)
        same[place], other[place] = shared - differ, differ
        place += 1


@njit(nogil=True, cache=True)
def enough(keys, firsts, pairs, same, other, least):
    """Of the pairs of listed keys those with at least so many values on a side: their numbers, and both counts."""
    found = np.empty(same.size, np.int64)
    n = 0
    for job in range(keys.size):
        first = pairs[keys[job]] - firsts[job]
        for at in range(firsts[job], firsts[job + 1]):
            if same[at] + other[at] >= least:
                found[n], same[n], other[n] = first + at, same[at], other[at]
                n += 1
    return found[:n], same[:n], other[:n]


@njit(nogil=True, cache=True)
def z_scores(same, other):
    """How surely pairs go together: the difference of both counts in units of its standard deviation (spec 3.9)."""
    found = np.empty(same.size)
    for at in range(same.size):
        found[at] = np.float64(abs(same[at] - other[at])) / np.sqrt(np.float64(same[at] + other[at] + 1))
    return found
