"""Compiled loops of dependency discovery: agreeing columns of pairs of rows, minimal hitting sets, validation.

Sets of columns are bits of 64-bit words; a table is ``codes[column, row]``: -1 where a value is missing and equal to
none, a code of its own where missing values are equal.
"""

from __future__ import annotations

import numpy as np
from numba import njit

_ONE = np.uint64(1)
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


@njit(nogil=True, inline="always", cache=True)
def _has(mask, column):
    return (mask[column >> 6] >> np.uint64(column & 63)) & _ONE != np.uint64(0)


@njit(nogil=True, cache=True)
def agreement(codes, one, other, out):
    """The columns in which two rows agree."""
    out[:] = 0
    for column in range(codes.shape[0]):
        a = codes[column, one]
        if a >= 0 and a == codes[column, other]:
            out[column >> 6] |= _ONE << np.uint64(column & 63)


@njit(nogil=True, cache=True)
def neighbours(codes, order, sorted_codes, distance, masks):
    """Agreements of rows that lie a distance apart in an order and share its code; returns how many."""
    n = 0
    for i in range(order.size - distance):
        if sorted_codes[i] >= 0 and sorted_codes[i] == sorted_codes[i + distance]:
            agreement(codes, order[i], order[i + distance], masks[n])
            n += 1
    return n


@njit(nogil=True, cache=True)
def all_agreements(codes, begin, end, masks):
    """Agreements of rows from ``begin`` up to ``end`` with all before them; returns how many.

    Column by column, so that compilers compare many rows at once.
    """
    n = 0
    for i in range(begin, end):
        masks[n : n + i] = 0
        for c in range(codes.shape[0]):
            code = codes[c, i]
            if code >= 0:
                bit = np.uint64(c & 63)
                agreed = masks[n : n + i, c >> 6]
                for j in range(i):
                    agreed[j] |= np.uint64(codes[c, j] == code) << bit
        n += i
    return n


@njit(nogil=True, inline="always", cache=True)
def _ones(word):
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@njit(nogil=True, cache=True)
def sizes(masks):
    """How many columns each set has."""
    found = np.zeros(masks.shape[0], np.int64)
    for i in range(masks.shape[0]):
        for w in range(masks.shape[1]):
            found[i] += _ones(masks[i, w])
    return found


@njit(nogil=True, cache=True)
def differences(masks, column, everything, out):
    """For pairs of rows that differ in a column: the other columns in which they differ. Returns how many."""
    n = 0
    for i in range(masks.shape[0]):
        if not _has(masks[i], column):
            for w in range(masks.shape[1]):
                out[n, w] = everything[w] & ~masks[i, w]
            out[n, column >> 6] &= ~(_ONE << np.uint64(column & 63))
            n += 1
    return n


@njit(nogil=True, cache=True)
def minimal(masks, out):
    """Of sets in order of their size those that hold no other; returns how many."""
    n = 0
    words = masks.shape[1]
    for i in range(masks.shape[0]):
        holds = False
        for j in range(n):
            inside = True
            for w in range(words):
                if out[j, w] & ~masks[i, w]:
                    inside = False
                    break
            if inside:
                holds = True
                break
        if not holds:
            for w in range(words):
                out[n, w] = masks[i, w]
            n += 1
    return n


@njit(nogil=True, inline="always", cache=True)
def _taken_out(c, starts, incident, hits, hitter, critical):
    """Take a column out of the set; returns how many edges no other column hits."""
    uncovered = 0
    for k in range(starts[c], starts[c + 1]):
        e = incident[k]
        hits[e] -= 1
        hitter[e] ^= c
        if hits[e] == 0:
            uncovered += 1
            critical[c] -= 1
        elif hits[e] == 1:
            critical[hitter[e]] += 1
    return uncovered


@njit(nogil=True, inline="always", cache=True)
def _choose(edges, hits, candidates, last, branch):
    """The columns to try next: those of the edge that leaves the fewest; for the last one, those in every edge."""
    words = edges.shape[1]
    best, fewest = -1, 1 << 60
    branch[:] = candidates
    for e in range(edges.shape[0]):
        if hits[e] == 0:
            left = 0
            if last:
                for w in range(words):
                    branch[w] &= edges[e, w]
                    left += _ones(branch[w])
            else:
                for w in range(words):
                    left += _ones(edges[e, w] & candidates[w])
            if left < fewest:
                best, fewest = e, left
            if left == 0 or (left == 1 and not last):
                break
    if not last:
        for w in range(words):
            branch[w] = edges[best, w] & candidates[w]


@njit(nogil=True, cache=True)
def hitting_sets(edges, columns, most, room, late):
    """All minimal sets of at most ``most`` columns that share one with each edge (MMCS; Murakami and Uno 2014).

    A column may join as long as every column before it still hits an edge alone. Returns the sets, or fewer than there
    are if ``room`` is not enough or the flag ``late`` is raised meanwhile: then the second value is False.
    """
    words = edges.shape[1]
    count = edges.shape[0]
    found = np.zeros((64, words), np.uint64)
    n = 0
    starts = np.zeros(columns + 1, np.int64)
    for e in range(count):
        for c in range(columns):
            if _has(edges[e], c):
                starts[c + 1] += 1
    for c in range(columns):
        starts[c + 1] += starts[c]
    incident = np.empty(starts[columns], np.int32)
    at = starts.copy()
    for e in range(count):
        for c in range(columns):
            if _has(edges[e], c):
                incident[at[c]] = e
                at[c] += 1
    hits = np.zeros(count, np.int32)
    hitter = np.zeros(count, np.int64)  # the one column that hits an edge, where just one does
    critical = np.zeros(columns, np.int64)
    uncovered = count
    depth = 0
    chosen = np.full(columns + 1, -1, np.int64)
    candidates = np.zeros((columns + 2, words), np.uint64)
    branch = np.zeros((columns + 2, words), np.uint64)
    current = np.zeros(words, np.uint64)
    for c in range(columns):
        candidates[0, c >> 6] |= _ONE << np.uint64(c & 63)
    entering = True
    while True:
        if late[0]:
            return found[:n], False
        if entering:
            if uncovered == 0:
                if n >= room:
                    return found[:n], False
                if n == found.shape[0]:
                    larger = np.zeros((2 * n, words), np.uint64)
                    larger[:n] = found
                    found = larger
                found[n] = current
                n += 1
                entering = False
            elif depth >= most:
                entering = False
            else:
                _choose(edges, hits, candidates[depth], depth == most - 1, branch[depth])
                for w in range(words):
                    candidates[depth, w] &= ~branch[depth, w]
        # Take the next choice of this level, or go back.
        advanced = False
        if not entering:
            # Undo the column that led here.
            if depth == 0:
                break
            depth -= 1
            c = chosen[depth]
            uncovered += _taken_out(c, starts, incident, hits, hitter, critical)
            current[c >> 6] &= ~(_ONE << np.uint64(c & 63))
            candidates[depth, c >> 6] |= _ONE << np.uint64(c & 63)
        while not advanced:
            c = chosen[columns]  # -1: none
            for w in range(words):
                if branch[depth, w]:
                    low = branch[depth, w] & (~branch[depth, w] + _ONE)
                    branch[depth, w] &= ~low
                    c = np.int64(64 * w) + _ones(low - _ONE)
                    break
            if c < 0:
                break
            ok = True
            for k in range(starts[c], starts[c + 1]):
                e = incident[k]
                if hits[e] == 0:
                    uncovered -= 1
                    critical[c] += 1
                elif hits[e] == 1:
                    critical[hitter[e]] -= 1
                    if critical[hitter[e]] == 0:
                        ok = False
                hits[e] += 1
                hitter[e] ^= c
            if ok:
                chosen[depth] = c
                depth += 1
                current[c >> 6] |= _ONE << np.uint64(c & 63)
                for w in range(words):
                    candidates[depth, w] = candidates[depth - 1, w]
                advanced = True
            else:
                uncovered += _taken_out(c, starts, incident, hits, hitter, critical)
                candidates[depth, c >> 6] |= _ONE << np.uint64(c & 63)
        entering = advanced
        if not advanced and depth == 0:
            break
    return found[:n], True


@njit(nogil=True, cache=True)
def violations(codes, single, lhs, rhs, slots, most, pairs):
    """Pairs of rows that agree on some columns and differ on others, up to ``most`` of them for each of the latter.

    ``single[column, row]`` says that a row's value occurs once in the column. ``pairs`` is filled with rows and the
    place of the column in ``rhs``; returns how many.
    """
    rows = codes.shape[1]
    slots[:] = -1
    last = np.uint64(slots.size - 1)
    met = np.zeros(rhs.size, np.int64)
    open_ = rhs.size
    n = 0
    for row in range(rows):
        if not open_:
            break
        skip = False
        h = np.uint64(0)
        for k in range(lhs.size):
            code = codes[lhs[k], row]
            if code < 0 or single[lhs[k], row]:
                skip = True
                break
            h = (h ^ np.uint64(code)) * _MULTIPLIER
            h ^= h >> np.uint64(29)
        if skip:
            continue
        slot = h & last
        other = np.int64(slots[slot])
        while other >= 0:
            same = True
            for k in range(lhs.size):
                if codes[lhs[k], row] != codes[lhs[k], other]:
                    same = False
                    break
            if same:
                break
            slot = (slot + _ONE) & last
            other = np.int64(slots[slot])
        if other < 0:
            slots[slot] = row
            continue
        for k in range(rhs.size):
            a = codes[rhs[k], row]
            if met[k] < most and (a < 0 or a != codes[rhs[k], other]):
                pairs[n, 0] = row
                pairs[n, 1] = other
                pairs[n, 2] = k
                n += 1
                met[k] += 1
                open_ -= met[k] == most
    return n


@njit(nogil=True, cache=True)
def refined(order, bounds, groups, values, counts, places, met, out, out_bounds):
    """Groups of rows cut by the values of a column; what becomes alone leaves (a stripped partition; TANE, 1999).

    Rows of a group lie together in ``order``, from one of ``bounds`` to the next. ``counts`` has room for every value
    and is zero, ``places`` has as much, ``met`` for every row. Returns how many groups there are then, and how many
    rows became alone, because nobody shares their value or because they lack one; and what ``likelihoods`` tells of
    the column, which is known by the way.
    """
    n = end = alone = kept = 0
    shares = concentrated = 0.0
    out_bounds[0] = 0
    for group in range(groups):
        begin, stop = bounds[group], bounds[group + 1]
        if stop - begin == 2:
            # Most groups of long left sides: no need to count.
            one, other = order[begin], order[begin + 1]
            if values[one] >= 0 and values[one] == values[other]:
                out[end], out[end + 1] = one, other
                end += 2
                n += 1
                out_bounds[n] = end
                kept += 2
                shares += 1.0
                concentrated += 2.0
            else:
                alone += 2
                kept += 1
                shares += 0.5
                concentrated += 1.0
            continue
        most = squares = np.int64(0)
        for i in range(begin, stop):
            value = values[order[i]]
            met[i - begin] = value
            if value >= 0:
                counts[value] += 1
        for i in range(begin, stop):
            value = met[i - begin]
            if value < 0:
                alone += 1
                squares += 1
                most = max(most, np.int64(1))
                continue
            if counts[value] > 0:  # met first
                count = np.int64(counts[value])
                squares += count * count
                most = max(most, count)
                if count == 1:
                    alone += 1
                    counts[value] = 0
                    places[value] = -1
                    continue
                places[value] = end
                end += counts[value]
                n += 1
                out_bounds[n] = end
                counts[value] = -counts[value]
            elif counts[value] == 0:  # alone
                continue
            out[places[value]] = order[i]
            places[value] += 1
        for i in range(stop - begin):
            if met[i] >= 0:
                counts[met[i]] = 0
        kept += int(most)
        share, concentration = _shares(most, squares, stop - begin)
        shares += share
        concentrated += concentration
    return n, alone, kept, shares, concentrated


@njit(nogil=True, cache=True)
def likelihoods(order, bounds, groups, values, domain, counts, more):
    """Sums over groups of the rows that share the most frequent value, of their share, and of the squares' share.

    A missing value is shared by none. ``counts`` and ``more`` have room for every value and are zero.
    """
    kept = 0
    shares = concentrated = 0.0
    for group in range(groups):
        begin, stop = bounds[group], bounds[group + 1]
        size = stop - begin
        if size <= 4:
            most, squares = _paired(order, begin, stop, values)
        elif size > 4 * domain:
            most, squares = _tallied(order, begin, stop, values, domain, counts, more)
        else:
            most, squares = _counted(order, begin, stop, values, counts)
        kept += most
        share, concentration = _shares(most, squares, size)
        shares += share
        concentrated += concentration
    return kept, shares, concentrated


@njit(nogil=True, inline="always", cache=True)
def _shares(most, squares, size):
    """The share of a group's rows that have its most frequent value, and of the squares in their number."""
    if most == size:
        return 1.0, float(size)
    return most / size, squares / size


@njit(nogil=True, inline="always", cache=True)
def _paired(order, begin, stop, values):
    """The largest count of a value, and the sum of squares of the counts, of four rows at most: by equal pairs."""
    pairs = 0
    for i in range(begin, stop):
        value = values[order[i]]
        for j in range(begin, i):
            pairs += (value >= 0) & (value == values[order[j]])
    # 0, 1, 2 (two twos), 3 and 6 are all that is possible.
    most = 1 if pairs == 0 else 2 if pairs < 3 else 3 if pairs == 3 else 4
    return most, stop - begin + 2 * pairs


@njit(nogil=True, inline="always", cache=True)
def _counted(order, begin, stop, values, counts):
    """The largest count of a value, and the sum of squares of the counts, of rows that are counted one by one."""
    most = 0
    squares = 0
    for i in range(begin, stop):
        value = values[order[i]]
        if value < 0:
            most = max(most, 1)
            squares += 1
            continue
        counts[value] += 1
        most = max(most, counts[value])
        squares += 2 * counts[value] - 1
    if most == stop - begin:
        counts[values[order[begin]]] = 0  # one value only
    else:
        for i in range(begin, stop):
            value = values[order[i]]
            if value >= 0:
                counts[value] = 0
    return most, squares


@njit(nogil=True, inline="always", cache=True)
def _tallied(order, begin, stop, values, domain, counts, more):
    """The largest count of a value, and the sum of squares of the counts, of many more rows than values.

    Values are gone through once, at the end. Two rows are counted at a time, apart, so that the second need not wait
    for the first.
    """
    lacking = 0
    i = begin
    while i + 1 < stop:
        one, other = values[order[i]], values[order[i + 1]]
        if one >= 0:
            counts[one] += 1
        else:
            lacking += 1
        if other >= 0:
            more[other] += 1
        else:
            lacking += 1
        i += 2
    if i < stop:
        one = values[order[i]]
        if one >= 0:
            counts[one] += 1
        else:
            lacking += 1
    most = min(1, lacking)
    squares = lacking
    for value in range(domain):
        count = np.int64(counts[value]) + more[value]
        counts[value] = 0
        more[value] = 0
        most = max(most, count)
        squares += count * count
    return most, squares


@njit(nogil=True, cache=True)
def worlds_that_hold(certain, worlds):
    """In how many worlds a dependency holds: ``worlds[world, column, row]`` are the rows that were filled in.

    The last column is the right side. The certain rows do not contradict each other.
    """
    sides = certain.shape[0] - 1
    rows = worlds.shape[2]
    size = 16
    while size < 2 * (certain.shape[1] + rows):
        size *= 2
    last = np.uint64(size - 1)
    fixed = np.full(size, -1, np.int32)
    for row in range(certain.shape[1]):
        slot = _slot_of(certain, sides, row, last)
        while fixed[slot] >= 0 and not _same(certain, fixed[slot], certain, row, sides):
            slot = (slot + _ONE) & last
        fixed[slot] = row
    given = np.full(size, -1, np.int32)
    used = np.empty(rows, np.uint64)
    held = 0
    for world in range(worlds.shape[0]):
        codes = worlds[world]
        n = 0
        good = True
        for row in range(rows):
            slot = _slot_of(codes, sides, row, last)
            at = slot
            while fixed[at] >= 0 and not _same(certain, fixed[at], codes, row, sides):
                at = (at + _ONE) & last
            if fixed[at] >= 0:
                if certain[sides, fixed[at]] != codes[sides, row]:
                    good = False
                    break
                continue
            at = slot
            while given[at] >= 0 and not _same(codes, given[at], codes, row, sides):
                at = (at + _ONE) & last
            if given[at] < 0:
                given[at] = row
                used[n] = at
                n += 1
            elif codes[sides, given[at]] != codes[sides, row]:
                good = False
                break
        for k in range(n):
            given[used[k]] = -1
        held += good
    return held


@njit(nogil=True, inline="always", cache=True)
def _slot_of(codes, sides, row, last):
    h = np.uint64(0)
    for k in range(sides):
        h = (h ^ np.uint64(codes[k, row])) * _MULTIPLIER
        h ^= h >> np.uint64(29)
    return h & last


@njit(nogil=True, inline="always", cache=True)
def _same(one, i, other, j, sides):
    for k in range(sides):
        if one[k, i] != other[k, j]:
            return False
    return True
