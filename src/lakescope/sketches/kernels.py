"""Compiled inner loops of the sketches. Pure functions over arrays; each has a plain oracle in the tests."""

from __future__ import annotations

import numpy as np
from numba import njit

_ONE = np.uint64(1)


@njit(inline="always", cache=True)
def _leading_zeros(x):
    """Leading zero bits of a 64-bit word, 64 for zero."""
    n = 64
    step = 32
    while step > 0:
        y = x >> np.uint64(step)
        if y != 0:
            n -= step
            x = y
        step >>= 1
    return n - np.int64(x)


@njit(cache=True)
def hll_dense_update(registers, hashes, precision):
    """Raise registers: first ``precision`` bits choose one, rho is one plus the leading zeros of the rest."""
    shift = np.uint64(64 - precision)
    guard = _ONE << np.uint64(precision - 1)
    for h in hashes:
        index = np.int64(h >> shift)
        rho = _leading_zeros((h << np.uint64(precision)) | guard) + 1
        if rho > registers[index]:
            registers[index] = rho


@njit(cache=True)
def hll_sparse_entries(hashes):
    """Encode hashes as (25-bit index, rho of the other 39 bits) in 32 bits, rho in the low 7."""
    out = np.empty(hashes.size, np.uint32)
    guard = _ONE << np.uint64(24)
    for i in range(hashes.size):
        h = hashes[i]
        rho = _leading_zeros((h << np.uint64(25)) | guard) + 1
        out[i] = np.uint32((h >> np.uint64(39)) << np.uint64(7)) | np.uint32(rho)
    return out


@njit(cache=True)
def hll_sparse_to_dense(registers, entries, precision):
    """Fold sparse entries into registers, losslessly."""
    middle = 25 - precision
    for entry in entries:
        index25 = np.int64(entry >> np.uint32(7))
        rho = np.int64(entry & np.uint32(127))
        index = index25 >> middle
        bits = index25 & ((1 << middle) - 1)
        if bits != 0:
            width = 0
            while bits >> width != 0:
                width += 1
            rho = middle - width + 1
        else:
            rho += middle
        if rho > registers[index]:
            registers[index] = rho


@njit(cache=True)
def frequent_add(
    begin,
    hashes,
    counts,
    plain,
    other,
    chosen,
    starts,
    ends,
    limit,
    keys,
    tallies,
    places,
    lengths,
    slots,
    used,
    arena,
    filled,
):
    """Add weighted hashes to an open-addressing table, keeping the text of each new key.

    The text of value ``i`` is ``other[starts[i]:ends[i]]`` where ``chosen[i]``, else that slice of ``plain``.

    Returns (next index to add, keys used, bytes used): stops early when the table or the arena is full.
    """
    mask = np.uint64(slots.size - 1)
    room = keys.size
    i = begin
    while i < hashes.size:
        h = hashes[i]
        slot = (h * np.uint64(0x9E3779B97F4A7C15)) & mask
        while True:
            at = slots[slot]
            if at < 0:
                length = min(ends[i] - starts[i], limit)
                if used >= room or filled + length > arena.size:
                    return i, used, filled
                slots[slot] = used
                keys[used] = h
                tallies[used] = counts[i]
                places[used] = filled
                lengths[used] = length
                if chosen[i]:
                    for j in range(length):
                        arena[filled + j] = other[starts[i] + j]
                else:
                    for j in range(length):
                        arena[filled + j] = plain[starts[i] + j]
                filled += length
                used += 1
                break
            if keys[at] == h:
                tallies[at] += counts[i]
                break
            slot = (slot + _ONE) & mask
        i += 1
    return i, used, filled


@njit(cache=True)
def frequent_combine(hashes, counts):
    """Sum the counts of equal hashes: (index of the first of each, totals)."""
    n = hashes.size
    size = 64
    while size < 2 * n:
        size *= 2
    mask = np.uint64(size - 1)
    slots = np.full(size, -1, np.int32)
    first = np.empty(n, np.int64)
    totals = np.empty(n, np.int64)
    found = 0
    for i in range(n):
        slot = hashes[i] & mask
        while True:
            at = slots[slot]
            if at < 0:
                slots[slot] = found
                first[found] = i
                totals[found] = counts[i]
                found += 1
                break
            if hashes[first[at]] == hashes[i]:
                totals[at] += counts[i]
                break
            slot = (slot + _ONE) & mask
    return first[:found], totals[:found]


@njit(cache=True)
def frequent_rebuild(slots, keys, used):
    """Fill an empty slot table from the keys."""
    mask = np.uint64(slots.size - 1)
    slots[:] = -1
    for i in range(used):
        slot = (keys[i] * np.uint64(0x9E3779B97F4A7C15)) & mask
        while slots[slot] >= 0:
            slot = (slot + _ONE) & mask
        slots[slot] = i


@njit(cache=True)
def frequent_largest(keys, tallies, used, k):
    """Positions of the ``k`` largest counts in order, equal ones by key."""
    order = np.empty(min(k, used), np.int64)
    found = 0
    for i in range(used):
        at = found
        while at > 0:
            j = order[at - 1]
            if tallies[j] > tallies[i] or (tallies[j] == tallies[i] and keys[j] < keys[i]):
                break
            at -= 1
        if at == order.size:
            continue
        found = min(found + 1, order.size)
        order[at + 1 : found] = order[at : found - 1].copy()
        order[at] = i
    return order


@njit(cache=True)
def smallest_keys(keys, used, k):
    """Positions of the ``k`` smallest keys, in order."""
    order = np.empty(min(k, used), np.int64)
    found = 0
    for i in range(used):
        at = found
        while at > 0 and keys[order[at - 1]] > keys[i]:
            at -= 1
        if at == order.size:
            continue
        found = min(found + 1, order.size)
        order[at + 1 : found] = order[at : found - 1].copy()
        order[at] = i
    return order


@njit(cache=True)
def gather_text(arena, places, lengths, order, out):
    """Copy the chosen texts one after the other."""
    at = 0
    for i in order:
        for j in range(lengths[i]):
            out[at + j] = arena[places[i] + j]
        at += lengths[i]
    return at
