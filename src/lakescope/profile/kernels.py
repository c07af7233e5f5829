"""Compiled loops over the distinct cells of a batch: counts, lengths, sums, first digits, extremes and shapes."""

from __future__ import annotations

import numpy as np
from numba import njit

#: Layout of the integer statistics. KIND_0 onwards: one count per kind; DIGIT_1 onwards: leading digits 1 to 9.
KIND_0 = 0
#: PLACED and the one after it: cells with a finite number, and with a moment in time (the two families).
LENGTH_MIN, LENGTH_MAX, LENGTH_SUM, DIGITS_MAX, DECIMALS_MAX, ZEROS, NEGATIVES, INFINITE, UNPLACED, PLACED = range(9, 19)
DIGIT_1 = 20
N_INTEGERS = 29

#: Layout of the float statistics of a family: extremes, mean, second central moment. Numbers first, then moments in time.
MINIMUM, MAXIMUM, MEAN, M2 = range(4)
N_FLOATS = 8
NUMBERS, MOMENTS = 0, 1

#: Lengths up to this are counted one by one, longer ones by powers of two.
LENGTHS_EXACT = 256
N_LENGTHS = LENGTHS_EXACT + 32

#: Longest value, in characters, that is given a shape.
SHAPE_LIMIT = 32


@njit(cache=True)
def _characters(data, start, end):
    n = 0
    for i in range(start, end):
        n += (data[i] & 0xC0) != 0x80
    return n


@njit(cache=True)
def length_bin(length):
    """Bin of the length histogram."""
    if length < LENGTHS_EXACT:
        return length
    bin_ = LENGTHS_EXACT
    length >>= 9
    while length > 0:
        length >>= 1
        bin_ += 1
    return bin_


@njit(cache=True)
def _first_digit(x):
    x = abs(x)
    if x >= 1e18 or x < 1e-6:
        exponent = np.floor(np.log10(x))
        x = x / 10.0**exponent
    while x >= 10.0:
        x = x / 10.0
    while x < 1.0:
        x = x * 10.0
    return min(9, max(1, np.int64(x)))


@njit(cache=True)
def measure(kinds, numbers, counts, digits, decimals, written, starts, ends, ints, floats, lengths):
    """Add the distinct cells, each ``counts`` times, to the statistics of their column.

    Numbers are those of integer and decimal cells, moments the epoch seconds of dates and times. A cell whose moment only
    its column could tell (``3/4/2021``) counts as UNPLACED.
    """
    placed = np.zeros(2, np.int64)
    totals = np.zeros(2)
    for i in range(kinds.size):
        count = counts[i]
        kind = kinds[i]
        ints[KIND_0 + kind] += count
        length = _characters(written, starts[i], ends[i])
        ints[LENGTH_MIN] = min(ints[LENGTH_MIN], length)
        ints[LENGTH_MAX] = max(ints[LENGTH_MAX], length)
        ints[LENGTH_SUM] += length * count
        lengths[length_bin(length)] += count
        if kind == 7:
            ints[DIGITS_MAX] = max(ints[DIGITS_MAX], digits[i])
        family = family_of(kind)
        if family < 0:
            continue
        x = numbers[i]
        if family == NUMBERS:
            ints[DIGITS_MAX] = max(ints[DIGITS_MAX], digits[i])
            ints[DECIMALS_MAX] = max(ints[DECIMALS_MAX], decimals[i])
            if np.isinf(x):
                ints[INFINITE] += count
                continue
            if x == 0.0:
                ints[ZEROS] += count
            else:
                ints[DIGIT_1 + _first_digit(x) - 1] += count
                if x < 0.0:
                    ints[NEGATIVES] += count
        elif np.isnan(x):
            ints[UNPLACED] += count
            continue
        at = 4 * family
        floats[at + MINIMUM] = min(floats[at + MINIMUM], x)
        floats[at + MAXIMUM] = max(floats[at + MAXIMUM], x)
        placed[family] += count
        totals[family] += x * count
    if placed[0] + placed[1] == 0:
        return
    means = totals / np.maximum(placed, 1)
    squares = np.zeros(2)
    shifts = np.zeros(2)
    for i in range(kinds.size):
        family = family_of(kinds[i])
        x = numbers[i]
        if family < 0 or np.isnan(x) or np.isinf(x):
            continue
        d = x - means[family]
        squares[family] += d * d * counts[i]
        shifts[family] += d * counts[i]
    for family in range(2):
        n = placed[family]
        if n > 0:
            shift = shifts[family] / n
            combine_moments(ints, floats, family, n, means[family] + shift, squares[family] - shift * shifts[family])


@njit(inline="always", cache=True)
def family_of(kind):
    """NUMBERS for integers and decimals, MOMENTS for dates and times, -1 for the rest."""
    if kind == 1 or kind == 2:
        return NUMBERS
    return MOMENTS if 4 <= kind <= 6 else -1


@njit(cache=True)
def combine_moments(ints, floats, family, n, mean, m2):
    """Chan's formula: add ``n`` values of the given mean and second central moment to a family."""
    before = ints[PLACED + family]
    both = before + n
    at = 4 * family
    delta = mean - floats[at + MEAN]
    floats[at + MEAN] += delta * (n / both)
    floats[at + M2] += m2 + delta * delta * (before * (n / both))
    ints[PLACED + family] = both


@njit(cache=True)
def _less(data, a0, a1, b0, b1):
    n = min(a1 - a0, b1 - b0)
    for i in range(n):
        x = data[a0 + i]
        y = data[b0 + i]
        if x != y:
            return x < y
    return a1 - a0 < b1 - b0


@njit(cache=True)
def extremes(data, starts, ends):
    """Indices of the lexicographically smallest and largest text (byte order, which in UTF-8 is code point order)."""
    low = 0
    high = 0
    for i in range(1, starts.size):
        if _less(data, starts[i], ends[i], starts[low], ends[low]):
            low = i
        elif _less(data, starts[high], ends[high], starts[i], ends[i]):
            high = i
    return low, high


@njit(cache=True)
def shapes(data, starts, ends, classes, out, ostarts, oends):
    """Aa9 shapes of cells: upper case A, lower case (or letters without case) a, digits 9, the rest as it is.

    Cells longer than SHAPE_LIMIT characters all have the shape of an ellipsis. ``classes`` holds for each code point below
    65,536: 0 other, 1 upper, 2 lower, 3 digit. Returns the bytes used in ``out``.
    """
    at = 0
    for i in range(starts.size):
        ostarts[i] = at
        n = 0
        j = starts[i]
        end = ends[i]
        begin = at
        while j < end and n <= SHAPE_LIMIT:
            c = data[j]
            size = 1
            point = np.int64(c)
            if c >= 0xF0:
                size = 4
                point = 0x10000
            elif c >= 0xE0 and j + 2 < end:
                size = 3
                point = ((c & 0x0F) << 12) | ((data[j + 1] & 0x3F) << 6) | (data[j + 2] & 0x3F)
            elif c >= 0xC0 and j + 1 < end:
                size = 2
                point = ((c & 0x1F) << 6) | (data[j + 1] & 0x3F)
            kind = classes[point] if point < 65536 else 0
            if kind == 0:
                for k in range(j, min(end, j + size)):
                    out[at] = data[k]
                    at += 1
            else:
                out[at] = 65 if kind == 1 else (97 if kind == 2 else 57)
                at += 1
            n += 1
            j += size
        if n > SHAPE_LIMIT:
            out[begin] = 0xE2
            out[begin + 1] = 0x80
            out[begin + 2] = 0xA6
            at = begin + 3
        oends[i] = at
    return at
