"""Compiled loops over the distinct cells of a batch: counts, lengths, sums, first digits, extremes and shapes."""

from __future__ import annotations

import numpy as np
from numba import njit

from lakescope.values.kernels import pointer

#: Layout of the integer statistics. KIND_0 onwards: one count per kind; DIGIT_1 onwards: leading digits 1 to 9.
KIND_0 = 0
#: PLACED and the two after it: cells with a finite number, with a moment in time, with a time of day (the families).
LENGTH_MIN, LENGTH_MAX, LENGTH_SUM, DIGITS_MAX, DECIMALS_MAX, ZEROS, NEGATIVES, INFINITE, UNPLACED, PLACED = range(
    9, 19
)
DIGIT_1 = 21
N_INTEGERS = 30

#: Layout of the float statistics of a family: extremes, mean, second central moment, what rounding took off the mean.
MINIMUM, MAXIMUM, MEAN, M2, MEAN_REST = range(5)
N_FLOATS = 5
NUMBERS, MOMENTS, CLOCKS = range(3)
N_FAMILIES = 3

#: Lengths up to this are counted one by one, longer ones by powers of two.
LENGTHS_EXACT = 256
N_LENGTHS = LENGTHS_EXACT + 32

#: Longest value, in characters, that is given a shape.
SHAPE_LIMIT = 32


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
def measure(kinds, numbers, counts, lengths, leading, digits, decimals, ints, floats, histogram):
    """Add the distinct cells, each ``counts`` times, to the statistics of their column.

    Numbers are those of integer and decimal cells, moments the epoch seconds of dates and timestamps, clocks the
    seconds of times of day. A cell whose moment only its column could tell (``3/4/2021``) counts as UNPLACED.
    """
    placed = np.zeros(N_FAMILIES, np.int64)
    totals = np.zeros(N_FAMILIES)
    for i in range(kinds.size):
        count = counts[i]
        kind = kinds[i]
        ints[KIND_0 + kind] += count
        length = lengths[i]
        ints[LENGTH_MIN] = min(ints[LENGTH_MIN], length)
        ints[LENGTH_MAX] = max(ints[LENGTH_MAX], length)
        ints[LENGTH_SUM] += length * count
        histogram[length_bin(length)] += count
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
            if leading[i] == 0:
                ints[ZEROS] += count
            else:
                ints[DIGIT_1 + leading[i] - 1] += count
                if x < 0.0:
                    ints[NEGATIVES] += count
        elif np.isnan(x):
            ints[UNPLACED] += count
            continue
        at = N_FLOATS * family
        floats[at + MINIMUM] = min(floats[at + MINIMUM], x)
        floats[at + MAXIMUM] = max(floats[at + MAXIMUM], x)
        placed[family] += count
        totals[family] += x * count
    if placed.sum() == 0:
        return
    means = totals / np.maximum(placed, 1)
    squares = np.zeros(N_FAMILIES)
    shifts = np.zeros(N_FAMILIES)
    for i in range(kinds.size):
        family = family_of(kinds[i])
        x = numbers[i]
        if family < 0 or np.isnan(x) or np.isinf(x):
            continue
        d = x - means[family]
        squares[family] += d * d * counts[i]
        shifts[family] += d * counts[i]
    for family in range(N_FAMILIES):
        n = placed[family]
        if n > 0:
            shift = shifts[family] / n
            combine_moments(ints, floats, family, n, means[family], shift, squares[family] - shift * shifts[family])


@njit(inline="always", cache=True)
def family_of(kind):
    """NUMBERS for integers and decimals, MOMENTS for dates and timestamps, CLOCKS for times, -1 for the rest."""
    if kind == 1 or kind == 2:
        return NUMBERS
    if kind == 5:
        return CLOCKS
    return MOMENTS if kind == 4 or kind == 6 else -1


@njit(cache=True)
def numbers_of(kinds, numbers, counts, family):
    """The finite numbers of a family of cells, each as often as it occurs."""
    n = 0
    for i in range(kinds.size):
        if family_of(kinds[i]) == family and np.isfinite(numbers[i]):
            n += counts[i]
    out = np.empty(n)
    at = 0
    for i in range(kinds.size):
        if n > 0 and family_of(kinds[i]) == family and np.isfinite(numbers[i]):
            out[at : at + counts[i]] = numbers[i]
            at += counts[i]
    return out


@njit(cache=True)
def combine_moments(ints, floats, family, n, mean, rest, m2):
    """Chan's formula: add ``n`` values of mean ``mean + rest`` and the given second central moment to a family.

    Means are kept in two parts, so that the difference of two means far from zero keeps its digits.
    """
    before = ints[PLACED + family]
    both = before + n
    at = N_FLOATS * family
    ints[PLACED + family] = both
    if before == 0:
        floats[at + MEAN] = mean
        floats[at + MEAN_REST] = rest
        floats[at + M2] = m2
        return
    delta = (mean - floats[at + MEAN]) + (rest - floats[at + MEAN_REST])
    step = floats[at + MEAN_REST] + delta * (n / both)
    moved = floats[at + MEAN] + step
    floats[at + MEAN_REST] = step - (moved - floats[at + MEAN])
    floats[at + MEAN] = moved
    floats[at + M2] += m2 + delta * delta * (before * (n / both))


@njit(inline="always", cache=True)
def _prefix(data, start, end):
    """The first eight bytes as a number that sorts like them."""
    value = np.uint64(0)
    n = min(8, end - start)
    for i in range(n):
        value = (value << np.uint64(8)) | np.uint64(data[start + i])
    return value << np.uint64(8 * (8 - n)) if n < 8 else value


@njit(cache=True)
def _less(x, x_start, x_end, y, y_start, y_end):
    """Whether text ``x[x_start:x_end]`` sorts before text ``y[y_start:y_end]``."""
    size_x = x_end - x_start
    size_y = y_end - y_start
    for i in range(min(size_x, size_y)):
        if x[x_start + i] != y[y_start + i]:
            return x[x_start + i] < y[y_start + i]
    return size_x < size_y


@njit(cache=True)
def extremes(plain, other, chosen, starts, ends):
    """Indices of the lexicographically smallest and largest text (byte order, which in UTF-8 is code point order).

    Text ``i`` is a slice of ``other`` where ``chosen[i]``, else of ``plain``.
    """
    written, rewritten = pointer(plain), pointer(other)
    low = 0
    high = 0
    low_prefix = high_prefix = np.uint64(0)
    for i in range(starts.size):
        text = rewritten if chosen[i] else written
        prefix = _prefix(text, starts[i], ends[i])
        if i == 0:
            low_prefix = high_prefix = prefix
        if prefix <= low_prefix:
            least = rewritten if chosen[low] else written
            if prefix < low_prefix or _less(text, starts[i], ends[i], least, starts[low], ends[low]):
                low = i
                low_prefix = prefix
        if prefix >= high_prefix:
            most = rewritten if chosen[high] else written
            if prefix > high_prefix or _less(most, starts[high], ends[high], text, starts[i], ends[i]):
                high = i
                high_prefix = prefix
    return low, high


@njit(cache=True)
def shapes(data, starts, ends, lengths, counts, table, out, ostarts, oends, ocounts):
    """Aa9 shapes of cells: upper case A, lower case (or letters without case) a, digits 9, the rest as it is.

    Cells longer than SHAPE_LIMIT characters all have the shape of an ellipsis. ``table`` is ``character_table()``. A
    shape like the one before only adds to its count. Returns how many differ.
    """
    at = 0
    found = 0
    for i in range(starts.size):
        j = starts[i]
        end = ends[i]
        begin = at
        if lengths[i] > SHAPE_LIMIT:
            out[at] = 0xE2
            out[at + 1] = 0x80
            out[at + 2] = 0xA6
            at += 3
            j = end
        while j < end:
            c = data[j]
            if c < 0x80:
                kind = table[c] & 3
                out[at] = c if kind == 0 else (65 if kind == 1 else (97 if kind == 2 else 57))
                at += 1
                j += 1
            else:
                size = 4 if c >= 0xF0 else (3 if c >= 0xE0 else 2)
                point = np.int64(0x10000)
                if size == 3 and j + 2 < end:
                    point = ((c & 0x0F) << 12) | ((data[j + 1] & 0x3F) << 6) | (data[j + 2] & 0x3F)
                elif size == 2 and j + 1 < end:
                    point = ((c & 0x1F) << 6) | (data[j + 1] & 0x3F)
                kind = table[point] & 3 if point < 65536 else 0
                if kind == 0:
                    for k in range(j, min(end, j + size)):
                        out[at] = data[k]
                        at += 1
                else:
                    out[at] = 65 if kind == 1 else (97 if kind == 2 else 57)
                    at += 1
                j += size
        same = found > 0 and at - begin == oends[found - 1] - ostarts[found - 1]
        if same:
            before = ostarts[found - 1]
            for k in range(at - begin):
                if out[begin + k] != out[before + k]:
                    same = False
                    break
        if same:
            ocounts[found - 1] += counts[i]
            at = begin
        else:
            ostarts[found] = begin
            oends[found] = at
            ocounts[found] = counts[i]
            found += 1
    return found
