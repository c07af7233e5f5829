"""Compiled loops of the correlation sketch: rows to entries, cells into the states of entries."""

from __future__ import annotations

import numpy as np
from numba import njit

#: Rows of the array of states of a value column: what is known of the values of each key.
SUM, REST, MINIMUM, MAXIMUM, FIRST, LAST = range(6)
STATES = 6


@njit(cache=True)
def smallest(hashes, threshold, kept, entries):
    """The smallest different hashes up to a threshold, as many as ``kept`` holds; which of them each hash is, or -1.

    Returns (how many, whether any hash was left out).
    """
    limit = kept.size
    some = hashes
    if hashes.size > 4 * limit:
        some = hashes[hashes <= threshold]
        while some.size > 4 * limit:
            # Two written forms may share a hash, so more than enough are looked at.
            fewer = some[some <= np.partition(some, 2 * limit)[2 * limit]]
            if fewer.size == some.size:
                break
            some = fewer
    found = 0
    for h in np.sort(some):
        if h <= threshold and found < limit and (found == 0 or kept[found - 1] != h):
            kept[found] = h
            found += 1
    dropped = False
    for i in range(hashes.size):
        h = hashes[i]
        if found == 0 or h > kept[found - 1]:
            entries[i] = -1
            dropped = True
            continue
        low, high = -1, found - 1
        while high - low > 1:
            middle = (low + high) >> 1
            if kept[middle] < h:
                low = middle
            else:
                high = middle
        entries[i] = high
    return found, dropped


@njit(cache=True)
def rows_of_entries(places, entries, rows, kept, kept_entries):
    """Rows whose key is kept, and the entry of each; counts them by entry. Returns (how many, rows with any key).

    A place of -1 is no key, of -2 one that does not matter.
    """
    n = 0
    filled = 0
    for row in range(places.size):
        place = places[row]
        filled += place != -1
        if place < 0:
            continue
        entry = entries[place]
        if entry >= 0:
            kept[n] = row
            kept_entries[n] = entry
            rows[entry] += 1
            n += 1
    return n, filled


@njit(cache=True)
def accumulate(kept, kept_entries, places, numbers, order, counts, floats, orders):
    """Add the numbers of a column to the states of the entries its rows belong to; what is not finite is left out.

    ``order`` is that of the first row; entries know the first and the last of their rows.
    """
    for i in range(kept.size):
        row = kept[i]
        place = places[row]
        if place < 0:
            continue
        x = numbers[place]
        if not np.isfinite(x):
            continue
        e = kept_entries[i]
        at = order + row
        if counts[e] == 0:
            floats[SUM, e] = floats[MINIMUM, e] = floats[MAXIMUM, e] = floats[FIRST, e] = floats[LAST, e] = x
            floats[REST, e] = 0.0
            orders[0, e] = orders[1, e] = at
        else:
            total = floats[SUM, e] + x
            # What adding lost, kept apart (Neumaier): sums do not depend on how rows were cut.
            if abs(floats[SUM, e]) >= abs(x):
                floats[REST, e] += (floats[SUM, e] - total) + x
            else:
                floats[REST, e] += (x - total) + floats[SUM, e]
            floats[SUM, e] = total
            floats[MINIMUM, e] = min(floats[MINIMUM, e], x)
            floats[MAXIMUM, e] = max(floats[MAXIMUM, e], x)
            if at < orders[0, e]:
                orders[0, e] = at
                floats[FIRST, e] = x
            if at > orders[1, e]:
                orders[1, e] = at
                floats[LAST, e] = x
        counts[e] += 1


@njit(cache=True)
def combine(counts, floats, orders, to, other_counts, other_floats, other_orders):
    """Add the states of other entries: the i-th of them to the entry ``to[i]``, nowhere if that is negative."""
    for i in range(to.size):
        e = to[i]
        n = other_counts[i]
        if e < 0 or n == 0:
            continue
        if counts[e] == 0:
            for s in range(STATES):
                floats[s, e] = other_floats[s, i]
            orders[0, e], orders[1, e] = other_orders[0, i], other_orders[1, i]
        else:
            x = other_floats[SUM, i]
            total = floats[SUM, e] + x
            lost = (floats[SUM, e] - total) + x if abs(floats[SUM, e]) >= abs(x) else (x - total) + floats[SUM, e]
            floats[REST, e] += lost + other_floats[REST, i]
            floats[SUM, e] = total
            floats[MINIMUM, e] = min(floats[MINIMUM, e], other_floats[MINIMUM, i])
            floats[MAXIMUM, e] = max(floats[MAXIMUM, e], other_floats[MAXIMUM, i])
            if other_orders[0, i] < orders[0, e]:
                orders[0, e] = other_orders[0, i]
                floats[FIRST, e] = other_floats[FIRST, i]
            if other_orders[1, i] > orders[1, e]:
                orders[1, e] = other_orders[1, i]
                floats[LAST, e] = other_floats[LAST, i]
        counts[e] += n


@njit(cache=True)
def pair_places(left, right, left_hashes, right_hashes, threshold, places, hashes):
    """Distinct pairs of cells of two columns: their place of each row (-1 if one is missing), their hashes.

    The hash of a pair is that of both hashes one after the other, mixed until it looks like any other. Pairs with a
    hash above the threshold have the place -2. Returns how many.
    """
    size = 64
    while size < 2 * left.size:
        size *= 2
    mask = np.uint64(size - 1)
    slots = np.full(size, -1, np.int32)
    found = 0
    for row in range(left.size):
        if left[row] < 0 or right[row] < 0:
            places[row] = -1
            continue
        h = pair_hash(left_hashes[left[row]], right_hashes[right[row]])
        if h > threshold:
            places[row] = -2
            continue
        slot = h & mask
        while True:
            at = slots[slot]
            if at < 0:
                slots[slot] = found
                hashes[found] = h
                places[row] = found
                found += 1
                break
            if hashes[at] == h:
                places[row] = at
                break
            slot = (slot + np.uint64(1)) & mask
    return found


@njit(inline="always", cache=True)
def _scramble(x):
    """A bijection of 64 bits that leaves no trace of order (the finaliser of splitmix64)."""
    x ^= x >> np.uint64(30)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return x


@njit(cache=True)
def pair_hash(left, right):
    """The hash of a pair of values by their hashes; another one if they change places."""
    return max(np.uint64(1), _scramble(_scramble(left + np.uint64(0x9E3779B97F4A7C15)) + right))
