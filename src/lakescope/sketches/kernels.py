"""Compiled inner loops of the sketches. Pure functions over arrays; each has a plain oracle in the tests."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

_ONE = np.uint64(1)


def _count_zeros(instruction: str) -> Any:
    """An intrinsic that counts the leading or trailing zeros of a 64-bit word in one instruction; 64 for zero."""

    @intrinsic
    def count(typing_context, word):
        def codegen(context, builder, signature, arguments):
            return getattr(builder, instruction)(arguments[0], ir.Constant(ir.IntType(1), 0))

        return types.int64(types.uint64), codegen

    return count


_leading_zeros = _count_zeros("ctlz")
_trailing_zeros = _count_zeros("cttz")


@njit(inline="always", cache=True)
def _mix(x):
    """Scramble a word (the finaliser of splitmix64): another hash function for every number added before."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(cache=True)
def mix(words):
    """Every word scrambled."""
    out = np.empty(words.size, np.uint64)
    for i in range(words.size):
        out[i] = _mix(words[i])
    return out


@njit(cache=True)
def fm_update(bitmaps, seeds, hashes):
    """In bitmap ``j`` set the bit of the lowest 1 of the ``j``-th hash of every value."""
    for i in range(hashes.size):
        h = hashes[i]
        for j in range(bitmaps.size):
            x = _mix(h + seeds[j])
            bitmaps[j] |= x & (~x + _ONE)


@njit(cache=True)
def pcsa_update(bitmaps, hashes, bits):
    """The low bits choose a bitmap, the lowest 1 of the others its bit."""
    mask = (_ONE << np.uint64(bits)) - _ONE
    for i in range(hashes.size):
        x = hashes[i] >> np.uint64(bits)
        bitmaps[np.int64(hashes[i] & mask)] |= x & (~x + _ONE)


@njit(cache=True)
def trailing_ones(bitmaps):
    """Sum over the bitmaps of the position of the lowest 0."""
    total = 0
    for bitmap in bitmaps:
        total += _trailing_zeros(~bitmap)
    return total


@njit(cache=True)
def ams_update(levels, seeds, hashes):
    """Largest number of trailing zeros of every hash function."""
    for i in range(hashes.size):
        for j in range(levels.size):
            r = _trailing_zeros(_mix(hashes[i] + seeds[j]))
            if r > levels[j]:
                levels[j] = r


@njit(cache=True)
def set_add(slots, used, hashes, begin, level, room):
    """Add hashes whose level is high enough to an open-addressing set; an empty slot holds 0, so 0 is kept as 1.

    The level of a hash is the number of trailing zeros of another hash of it. Returns (next index to add, used): stops
    when ``room`` are in.
    """
    mask = np.uint64(slots.size - 1)
    i = begin
    while i < hashes.size:
        h = max(hashes[i], _ONE)
        if _trailing_zeros(_mix(h)) >= level:
            slot = (h * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20) & mask
            while slots[slot] != 0 and slots[slot] != h:
                slot = (slot + _ONE) & mask
            if slots[slot] == 0:
                if used >= room:
                    return i, used
                slots[slot] = h
                used += 1
        i += 1
    return i, used


@njit(cache=True)
def set_values(slots, used):
    """What an open-addressing set holds, in the order of its slots."""
    out = np.empty(used, np.uint64)
    n = 0
    for value in slots:
        if value != 0:
            out[n] = value
            n += 1
    return out


@njit(cache=True)
def mincount_update(smallest, counts, hashes, bits):
    """Keep the smallest distinct values of every bucket, in order: high bits choose it, the others are the value."""
    k = smallest.shape[1]
    for i in range(hashes.size):
        bucket = np.int64(hashes[i] >> np.uint64(64 - bits))
        value = hashes[i] << np.uint64(bits)
        n = np.int64(counts[bucket])
        if n == k and value >= smallest[bucket, k - 1]:
            continue
        at = 0
        while at < n and smallest[bucket, at] < value:
            at += 1
        if at < n and smallest[bucket, at] == value:
            continue
        last = min(n, k - 1)
        for j in range(last, at, -1):
            smallest[bucket, j] = smallest[bucket, j - 1]
        smallest[bucket, at] = value
        counts[bucket] = last + 1


@njit(cache=True)
def bits_update(bits, size, hashes, functions):
    """Set ``functions`` bits a value by double hashing; returns how many were not set before."""
    fresh = 0
    for i in range(hashes.size):
        h = hashes[i]
        step = _mix(h) | _ONE
        for _ in range(functions):
            place = np.int64(h % size)
            mark = np.uint8(1 << (place & 7))
            if bits[place >> 3] & mark == 0:
                bits[place >> 3] |= mark
                fresh += 1
            h += step
    return fresh


@njit(cache=True)
def bits_contain(bits, size, hashes, functions):
    """For every value whether all its bits are set."""
    out = np.ones(hashes.size, np.bool_)
    for i in range(hashes.size):
        h = hashes[i]
        step = _mix(h) | _ONE
        for _ in range(functions):
            place = np.int64(h % size)
            if bits[place >> 3] & np.uint8(1 << (place & 7)) == 0:
                out[i] = False
                break
            h += step
    return out


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
def hll_runs(hashes, precision):
    """The register each hash chooses, and its rho."""
    places, runs = np.empty(hashes.size, np.int64), np.empty(hashes.size, np.int64)
    shift = np.uint64(64 - precision)
    guard = _ONE << np.uint64(precision - 1)
    for i in range(hashes.size):
        places[i] = np.int64(hashes[i] >> shift)
        runs[i] = _leading_zeros((hashes[i] << np.uint64(precision)) | guard) + 1
    return places, runs


@njit(cache=True)
def hll_sparse_entries(hashes):
    """Encode hashes as (25-bit index, rho of the other 39 bits) in 32 bits, rho in the low 7.

    Entries just met are left out: of a column with few values hardly any is left.
    """
    out = np.empty(hashes.size, np.uint32)
    met = np.zeros(min(4096, max(16, hashes.size // 4)), np.uint32)
    guard = _ONE << np.uint64(24)
    n = 0
    for h in hashes:
        rho = _leading_zeros((h << np.uint64(25)) | guard) + 1
        entry = np.uint32((h >> np.uint64(39)) << np.uint64(7)) | np.uint32(rho)
        place = np.uint64(np.uint32(h)) * np.uint64(met.size) >> np.uint64(32)
        if met[place] != entry:
            met[place] = entry
            out[n] = entry
            n += 1
    return out[:n]


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
def gather_text(arena, places, lengths, order, out):
    """Copy the chosen texts one after the other."""
    at = 0
    for i in order:
        for j in range(lengths[i]):
            out[at + j] = arena[places[i] + j]
        at += lengths[i]
    return at


@njit(inline="always", cache=True)
def _minhash(first, second, h):
    low, high = np.uint32(h), np.uint32(h >> np.uint64(32))
    return np.uint32(np.uint32(first * low) + np.uint32(second * high))


@njit(cache=True)
def minhash_update(signature, first, second, hashes):
    """Lower every position to the least ``first * low + second * high`` (modulo 2**32) of the hashes."""
    n = hashes.size
    for i in range(0, n, 4):
        one, two = hashes[i], hashes[min(i + 1, n - 1)]
        three, four = hashes[min(i + 2, n - 1)], hashes[min(i + 3, n - 1)]
        for j in range(signature.size):
            a, b = first[j], second[j]
            w, x, y, z = _minhash(a, b, one), _minhash(a, b, two), _minhash(a, b, three), _minhash(a, b, four)
            # Comparisons, not min(): these become vector instructions.
            w = w if w < x else x
            y = y if y < z else z
            w = w if w < y else y
            known = signature[j]
            signature[j] = w if w < known else known
