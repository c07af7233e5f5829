"""Compiled loops of the q-gram sketch: cells without case, accents and punctuation, cut into hashed q-grams."""

from __future__ import annotations

import numpy as np
from numba import njit

from lakescope.values.alphabet import DROPPED
from lakescope.values.canonical import Kind
from lakescope.values.kernels import pointer, xxh64

#: Characters of a q-gram; a text that has fewer, but not fewer than the shortest, is one.
Q, SHORTEST = 5, 3
#: Characters of a cell that are looked at.
LONGEST = 512
#: What an owner is if there are several.
SEVERAL = np.uint64(0)

_ONE = np.uint64(1)
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_INTEGER, _CODE, _TEXT = int(Kind.INTEGER), int(Kind.CODE), int(Kind.TEXT)


@njit(inline="always", cache=True)
def _bare(data, start, end, table, out, bounds):
    """Write a cell's letters and digits, small and without accents, as UTF-8; returns how many, with their bounds."""
    characters = at = count = 0
    i = start
    while i < end and characters < LONGEST:
        byte = np.uint32(data[i])
        width = 1 if byte < 0x80 else (2 if byte < 0xE0 else (3 if byte < 0xF0 else 4))
        point = byte
        if width == 2:
            point = (byte & 0x1F) << 6 | (np.uint32(data[i + 1]) & 0x3F)
        elif width == 3:
            point = (byte & 0x0F) << 12 | (np.uint32(data[i + 1]) & 0x3F) << 6 | (np.uint32(data[i + 2]) & 0x3F)
        characters += 1
        if width == 4 or point >= table.size:
            bounds[count] = at
            for j in range(width):
                out[at + j] = data[i + j]
            at += width
            count += 1
        elif table[point] != DROPPED:
            bounds[count] = at
            at = _encode(np.uint32(table[point]), out, at)
            count += 1
        i += width
    bounds[count] = at
    return count


@njit(inline="always", cache=True)
def _encode(point, out, at):
    """Write a code point of at most three bytes; returns where the next begins."""
    if point < 0x80:
        out[at] = point
        return at + 1
    if point < 0x800:
        out[at] = 0xC0 | point >> 6
        out[at + 1] = 0x80 | point & 0x3F
        return at + 2
    out[at] = 0xE0 | point >> 12
    out[at + 1] = 0x80 | (point >> 6) & 0x3F
    out[at + 2] = 0x80 | point & 0x3F
    return at + 3


@njit(inline="always", cache=True)
def _put(slots, owners, used, gram, owner):
    """Note that a value holds a q-gram; returns how many q-grams are known. There must be room."""
    mask = np.uint64(slots.size - 1)
    slot = (gram * _MULTIPLIER) >> np.uint64(20) & mask
    while slots[slot] != 0 and slots[slot] != gram:
        slot = (slot + _ONE) & mask
    if slots[slot] == 0:
        slots[slot] = gram
        owners[slot] = owner
        return used + 1
    if owners[slot] != owner:
        owners[slot] = SEVERAL
    return used


@njit(nogil=True, cache=True)
def put_grams(slots, owners, used, grams, whose, begin, threshold):
    """Note q-grams up to a threshold, until half of the slots are taken; returns (next to note, q-grams known)."""
    i = begin
    while i < grams.size:
        if grams[i] <= threshold:
            if used >= slots.size // 2:
                return i, used
            used = _put(slots, owners, used, grams[i], whose[i])
        i += 1
    return i, used


@njit(nogil=True, cache=True)
def cut_cells(data, starts, ends, kinds, hashes, table, slots, owners, used, begin, threshold):
    """Note the q-grams of cells up to a threshold, as long as there is room; returns (next cell, q-grams known).

    A cell that finds no room for all of its q-grams is to be cut again: noting one twice changes nothing.
    """
    out = np.empty(4 * LONGEST, np.uint8)
    bounds = np.empty(LONGEST + 1, np.int64)
    text, made = pointer(data), pointer(out)
    i = begin
    while i < starts.size:
        kind = kinds[i]
        if kind in (_TEXT, _CODE, _INTEGER):
            count = _bare(text, starts[i], ends[i], table, made, bounds)
            shortest = Q if kind == _INTEGER else SHORTEST
            owner = max(hashes[i], _ONE)
            for first in range(max(1, count - Q + 1) if count >= shortest else 0):
                gram = max(xxh64(made, bounds[first], bounds[min(first + Q, count)]), _ONE)
                if gram <= threshold:
                    if used >= slots.size // 2:
                        return i, used
                    used = _put(slots, owners, used, gram, owner)
        i += 1
    return i, used
