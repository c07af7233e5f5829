"""Compiled loops of the build of the inverted index: cutting by hash, uniting lists, finding equal ones."""

from __future__ import annotations

import numpy as np
from numba import njit

#: Owners of a token up to which they are sorted by insertion.
_SHORT = 24


@njit(cache=True)
def cut_by_top_bits(hashes, bits):
    """A stable order of hashes by their first bits, and where each of the parts begins."""
    parts = 1 << bits
    shift = np.uint64(64 - bits)
    bounds = np.zeros(parts + 1, np.int64)
    for h in hashes:
        bounds[np.int64(h >> shift if bits else 0) + 1] += 1
    for i in range(parts):
        bounds[i + 1] += bounds[i]
    place = bounds[:parts].copy()
    order = np.empty(hashes.size, np.int64)
    for i in range(hashes.size):
        part = np.int64(hashes[i] >> shift if bits else 0)
        order[place[part]] = i
        place[part] += 1
    return order, bounds


@njit(cache=True)
def _sort(items, begin, end):
    """Sort a part of an array, short ones by insertion."""
    if end - begin > _SHORT:
        items[begin:end].sort()
        return
    for t in range(begin + 1, end):
        item = items[t]
        place = t
        while place > begin and items[place - 1] > item:
            items[place] = items[place - 1]
            place -= 1
        items[place] = item


@njit(cache=True)
def sort_lists(starts, items):
    """Sort every list in place."""
    for i in range(starts.size - 1):
        _sort(items, starts[i], starts[i + 1])


@njit(cache=True)
def unite_pairs(hashes, owners):
    """Pairs sorted by hash as lists: distinct hashes, where the list of each begins, owners in order without repeats.

    Works in place; returns (number of hashes, number of owners kept, beginnings).
    """
    n = hashes.size
    starts = np.empty(n + 1, np.int64)
    tokens = kept = 0
    i = 0
    while i < n:
        j = i + 1
        while j < n and hashes[j] == hashes[i]:
            j += 1
        _sort(owners, i, j)
        starts[tokens] = kept
        hashes[tokens] = hashes[i]
        tokens += 1
        for t in range(i, j):
            if t == i or owners[t] != owners[t - 1]:
                # What lies before t was read already, so that writing there is safe.
                owners[kept] = owners[t]
                kept += 1
        i = j
    starts[tokens] = kept
    return tokens, kept, starts[: tokens + 1]


@njit(cache=True)
def hash_lists(starts, items):
    """A 64-bit hash of each list."""
    n = starts.size - 1
    found = np.empty(n, np.uint64)
    for i in range(n):
        h = np.uint64(starts[i + 1] - starts[i]) * np.uint64(0x9E3779B97F4A7C15)
        for j in range(starts[i], starts[i + 1]):
            h = (h ^ np.uint64(items[j])) * np.uint64(0xBF58476D1CE4E5B9)
            h ^= h >> np.uint64(29)
        h *= np.uint64(0x94D049BB133111EB)
        found[i] = h ^ (h >> np.uint64(32))
    return found


@njit(cache=True)
def find_equal(starts, items, hashes):
    """The number of the first list equal to each, counted by first appearance, and those first ones.

    Lists are looked up by hash and compared by content.
    """
    n = hashes.size
    size = 64
    while size < 2 * n:
        size *= 2
    mask = np.uint64(size - 1)
    slots = np.full(size, -1, np.int32)
    groups = np.empty(n, np.int64)
    first = np.empty(n, np.int64)
    found = 0
    for i in range(n):
        length = starts[i + 1] - starts[i]
        slot = hashes[i] & mask
        while True:
            group = slots[slot]
            if group < 0:
                slots[slot] = found
                first[found] = i
                groups[i] = found
                found += 1
                break
            j = first[group]
            same = hashes[j] == hashes[i] and starts[j + 1] - starts[j] == length
            t = 0
            while same and t < length:
                same = items[starts[i] + t] == items[starts[j] + t]
                t += 1
            if same:
                groups[i] = group
                break
            slot = (slot + np.uint64(1)) & mask
    return groups, first[:found]


@njit(cache=True)
def gather_lists(chosen, starts, items):
    """Chosen lists one after the other: (beginnings, items)."""
    bounds = np.empty(chosen.size + 1, np.int64)
    bounds[0] = 0
    for at in range(chosen.size):
        i = chosen[at]
        bounds[at + 1] = bounds[at] + starts[i + 1] - starts[i]
    out = np.empty(bounds[-1], items.dtype)
    for at in range(chosen.size):
        i = chosen[at]
        for t in range(starts[i + 1] - starts[i]):
            out[bounds[at] + t] = items[starts[i] + t]
    return bounds, out


@njit(cache=True)
def sort_rows(rows, items, weights, count):
    """Entries by row, in order of their items within each: (beginnings, items, sums of the weights)."""
    bounds = np.zeros(count + 1, np.int64)
    for row in rows:
        bounds[row + 1] += 1
    for i in range(count):
        bounds[i + 1] += bounds[i]
    place = bounds[:count].copy()
    out = np.empty(items.size, items.dtype)
    sums = np.zeros(count, np.int64)
    for i in range(rows.size):
        out[place[rows[i]]] = items[i]
        place[rows[i]] += 1
        sums[rows[i]] += weights[i]
    for i in range(count):
        _sort(out, bounds[i], bounds[i + 1])
    return bounds, out, sums


@njit(cache=True)
def bitmaps_of(starts, items, page_bits, least):
    """The pages of which rows hold at least so many items: (beginnings by row, pages, bitmaps).

    A page is told by its number and by where its items begin and end within the row. Items are in order.
    """
    words = 1 << (page_bits - 6)
    begins = np.zeros(starts.size, np.int64)
    pages = np.empty((items.size // least, 3), np.int32)
    n = 0
    for row in range(starts.size - 1):
        at = starts[row]
        while at < starts[row + 1]:
            page, first = items[at] >> page_bits, at
            while at < starts[row + 1] and items[at] >> page_bits == page:
                at += 1
            if at - first >= least:
                pages[n, 0], pages[n, 1], pages[n, 2] = page, first - starts[row], at - starts[row]
                n += 1
        begins[row + 1] = n
    bits = np.zeros((n, words), np.uint64)
    for row in range(starts.size - 1):
        for i in range(begins[row], begins[row + 1]):
            for at in range(starts[row] + pages[i, 1], starts[row] + pages[i, 2]):
                inside = items[at] - (pages[i, 0] << page_bits)
                bits[i, inside >> 6] |= np.uint64(1) << np.uint64(inside & 63)
    return begins, pages[:n], bits


@njit(cache=True)
def directory_of(hashes, shift, low, count):
    """Where the hashes of each of ``count`` equal ranges from ``low`` on begin, among sorted hashes."""
    begins = np.empty(count + 1, np.int64)
    at = 0
    for i in range(count):
        bound = low + (np.uint64(i) << np.uint64(shift))
        while at < hashes.size and hashes[at] < bound:
            at += 1
        begins[i] = at
    begins[count] = hashes.size
    return begins
