"""Compiled second stage of a correlation search: sketches joined with a query; moments and ranks (spec 2.5)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numba import njit

from lakescope.engines.joins.kernels import _f64, _i64, _prefetch, _u64


@dataclass(frozen=True, slots=True)
class SampleTuning:
    """How sketches are fetched and looked up. Answers do not depend on it.

    ``benchmarks/results/correlations.md`` has how long questions take with all of it; no record compares other values.
    """

    #: Sketches that are fetched ahead. Not measured by itself.
    ahead: int = 2
    #: Places to look a hash up for each hash of a query ... Not measured by itself.
    buckets: int = 8
    #: ... of so many hashes at most. Not measured by itself.
    small: int = 4096


SAMPLES = SampleTuning()

# Kernels take numbers of their module for constants, which they are compiled with; the fields above say what each is.
_AHEAD, _BUCKETS, _SMALL = SAMPLES.ahead, SAMPLES.buckets, SAMPLES.small
#: Bytes that come from memory at a time, and bytes of a page: those of the machine.
_LINE, _PAGE = 64, 4096


@njit(nogil=True, cache=True)
def touch(places, sizes):
    """Read a number of every page of some blocks of at least eight bytes: pages that were read once are mapped."""
    found = np.uint64(0)
    for block in range(places.size):
        for at in range(0, sizes[block] - 7, _PAGE):
            found ^= _u64(places[block] + np.uint64(at), 0)
        if sizes[block] >= 8:
            found ^= _u64(places[block] + np.uint64(sizes[block] - 8), 0)
    return found


@njit(nogil=True, cache=True)
def all_ones(places, sizes):
    """Which blocks of eight-byte numbers hold nothing but ones; reads all of them, unless there is another number."""
    found = np.zeros(places.size, np.uint8)
    for block in range(places.size):
        at, size = 0, sizes[block] >> 3
        while at < size and _i64(places[block], at) == 1:
            at += 1
        found[block] = at == size
    return found


@njit(nogil=True, cache=True)
def _directory(query):
    """Where in a query, whose hashes are in order, those with the same highest bits begin, and how far to shift.

    There are several times as many beginnings as hashes, however close to 0 these all are: most have one or none.
    """
    last = query[query.size - 1] if query.size else np.uint64(0)
    shift, buckets = np.uint64(0), np.uint64(max(query.size, _BUCKETS * min(query.size, _SMALL)))
    while (last >> shift) > buckets:
        shift += np.uint64(1)
    begins = np.empty(np.int64(last >> shift) + 2, np.int32)
    at = 0
    for bucket in range(begins.size):
        while at < query.size and np.int64(query[at] >> shift) < bucket:
            at += 1
        begins[bucket] = at
    return begins, shift


@njit(nogil=True, cache=True)
def _meet(query, begins, shift, place, size, bound, mine, theirs):
    """Common hashes of a query and a sketch up to a bound, by their places in both; how many there are.

    Without branches where it can be: whether a hash is found cannot be foretold, and to be wrong takes longer.
    """
    if not query.size:
        return np.int64(0)
    bound = min(bound, query[query.size - 1])
    n = np.int64(0)
    for j in range(size):
        h = _u64(place, j)
        if h > bound:
            break
        i = np.uint64(begins[h >> shift])
        i += np.uint64(query[i] < h)
        while query[i] < h:
            i += np.uint64(1)
        mine[n], theirs[n] = i, j
        n += np.int64(query[i] == h)
    return n


@njit(nogil=True, cache=True)
def _fetch(place, size):
    """Have the first eight-byte numbers of a block fetched: it is short, and memory answers later than it is read."""
    for line in range(0, 8 * size, _LINE):
        _prefetch(place + np.uint64(line))


@njit(nogil=True, cache=True)
def join(query, values, rows, bounds, pairs, owners, hashes, sizes, counts, once, numbers, aggregates, aggregate):
    """Join the sketches of some pairs with a query: common keys up to a bound, with the numbers of both sides.

    ``bounds`` is the largest hash that counts of each pair; ``counts`` says where the rows of each key's values lie,
    ``once`` of which keys it is known that all have one row; ``numbers`` where the numbers of each pair lie,
    ``aggregates`` how many kinds of them there are: 1, or all, of which ``aggregate`` is wanted. Returns (x, y, place
    in the query), 0 beyond the end of a sample, the size of each, its common keys, and rows of their join, the sum of
    the squares of a key's rows, and the most rows of a key; keys without a number on both sides are in no sample.
    """
    most_keys = 0
    for pair in pairs:
        most_keys = max(most_keys, sizes[owners[pair]])
    begins, shift = _directory(query)
    mine, theirs = np.empty(most_keys + 1, np.int32), np.empty(most_keys + 1, np.int32)
    sizes_of, common = np.zeros(pairs.size, np.int64), np.zeros(pairs.size, np.int64)
    joined, squares, most = np.zeros(pairs.size, np.int64), np.zeros(pairs.size), np.zeros(pairs.size, np.int64)
    flat_x, flat_y = np.empty(pairs.size * most_keys), np.empty(pairs.size * most_keys)
    flat_places = np.empty(pairs.size * most_keys, np.int32)
    filled = met = 0
    before, before_bound = np.int64(-1), np.uint64(0)
    for at in range(pairs.size):
        if at + _AHEAD < pairs.size:
            later = pairs[at + _AHEAD]
            size = sizes[owners[later]]
            _fetch(hashes[owners[later]], size)
            if not once[owners[later]]:
                _fetch(counts[owners[later]], size)
            _fetch(numbers[later] + np.uint64(8 * size * (aggregate if aggregates[later] > 1 else 0)), size)
        pair = pairs[at]
        owner = owners[pair]
        if owner != before or bounds[at] != before_bound:
            met = _meet(query, begins, shift, hashes[owner], sizes[owner], bounds[at], mine, theirs)
            before, before_bound = owner, bounds[at]
        first = aggregate * sizes[owner] if aggregates[pair] > 1 else 0
        common[at] = met
        single = once[owner] > 0
        begin, total, square, largest = filled, np.int64(0), 0.0, np.int64(0)
        for k in range(met):
            i, j = np.int64(mine[k]), np.int64(theirs[k])
            product = rows[i]
            if not single:
                product *= _i64(counts[owner], j)
            total += product
            square += float(product) * product
            largest = max(largest, product)
            a, b = values[i], _f64(numbers[pair], first + j)
            flat_x[filled], flat_y[filled], flat_places[filled] = a, b, i
            # Less itself it is 0, if it is a number.
            filled += a - a == b - b
        sizes_of[at], joined[at], squares[at], most[at] = filled - begin, total, square, largest
    width = sizes_of.max() if sizes_of.size else 0
    x, y = np.empty((pairs.size, width)), np.empty((pairs.size, width))
    places = np.empty((pairs.size, width), np.int32)
    begin = 0
    for at in range(pairs.size):
        n = sizes_of[at]
        for k in range(n):
            x[at, k], y[at, k], places[at, k] = flat_x[begin + k], flat_y[begin + k], flat_places[begin + k]
        for k in range(n, width):
            x[at, k], y[at, k], places[at, k] = 0.0, 0.0, 0
        begin += n
    return x, y, places, sizes_of, common, joined, squares, most


@njit(nogil=True, cache=True, error_model="numpy")
def moments(x, y, n, constant, out):
    """The moments that coefficients, their errors and doubts rest on, of samples that are rows of padded arrays.

    Fills a row of ``out`` for each: Pearson's r; the mean square of its influence function; the larger of the fourth
    moments; the largest share of a column's squares in one point. NaN where a column is constant. Sums are made in
    order, so that samples of the same numbers are equal to the last bit; what can be done to many numbers at once is.
    """
    a, b = np.empty(x.shape[1]), np.empty(x.shape[1])
    for row in range(n.size):
        size = n[row]
        a_spread, b_spread = _centre(x[row], y[row], size, a, b)
        if not (a_spread > constant and b_spread > constant):
            out[row, :] = np.nan
            continue
        for i in range(size):
            a[i] /= a_spread
            b[i] /= b_spread
        product = fourth_a = fourth_b = 0.0
        for i in range(size):
            product += a[i] * b[i]
            fourth_a += a[i] * a[i] * a[i] * a[i]
            fourth_b += b[i] * b[i] * b[i] * b[i]
        r = max(-1.0, min(1.0, product / size))
        influence = 0.0
        for i in range(size):
            moved = a[i] * b[i] - r * (a[i] * a[i] + b[i] * b[i]) / 2
            influence += moved * moved
        most = max(_largest(a, size), _largest(b, size))
        out[row, 0] = r
        out[row, 1] = influence / size
        out[row, 2] = max(fourth_a, fourth_b) / size
        out[row, 3] = most * most / size


@njit(nogil=True, cache=True, error_model="numpy")
def pearson(x, y, n, constant, out):
    """Pearson's r alone, the same to the last bit."""
    a, b = np.empty(x.shape[1]), np.empty(x.shape[1])
    for row in range(n.size):
        size = n[row]
        a_spread, b_spread = _centre(x[row], y[row], size, a, b)
        out[row] = np.nan
        if a_spread > constant and b_spread > constant:
            for i in range(size):
                a[i] = (a[i] / a_spread) * (b[i] / b_spread)
            product = 0.0
            for i in range(size):
                product += a[i]
            out[row] = max(-1.0, min(1.0, product / size))


@njit(nogil=True, cache=True, error_model="numpy")
def _centre(x, y, size, a, b):
    """Two columns as shares of their largest value, about their means, and the standard deviation of each."""
    a_scale, b_scale = _largest(x, size), _largest(y, size)
    if a_scale == 0 or b_scale == 0:
        return 0.0, 0.0
    for i in range(size):
        a[i] = x[i] / a_scale
        b[i] = y[i] / b_scale
    a_mean = b_mean = 0.0
    for i in range(size):
        a_mean += a[i]
        b_mean += b[i]
    a_mean, b_mean = a_mean / size, b_mean / size
    for i in range(size):
        a[i] -= a_mean
        b[i] -= b_mean
    a_square = b_square = 0.0
    for i in range(size):
        a_square += a[i] * a[i]
        b_square += b[i] * b[i]
    return np.sqrt(a_square / size), np.sqrt(b_square / size)


@njit(nogil=True, cache=True, fastmath={"nnan", "nsz", "reassoc"})
def _largest(values, size):
    """The largest absolute value; of finite numbers, in whatever order."""
    found = 0.0
    for i in range(size):
        found = max(found, abs(values[i]))
    return found


@njit(nogil=True, cache=True)
def sort_keys(values, n, rows):
    """Samples as rows of whole numbers that are in the same order as the values, but for the lowest bits.

    These are the place of a value in its sample, so that sorting tells where each was. Numbers are sorted in a third of
    the time that an order of values takes.
    """
    width = np.int64(1)
    for row in rows:
        width = max(width, n[row])
    low = np.uint64(1)
    while low < width:
        low <<= np.uint64(1)
    low -= np.uint64(1)
    keys = np.empty((rows.size, width), np.uint64)
    for at in range(rows.size):
        bits = values[rows[at]].view(np.uint64)
        size = n[rows[at]]
        for i in range(size):
            word = bits[i]
            # Negative numbers are in the order of their size, and come before the others.
            word = ~word if word >> np.uint64(63) else word | np.uint64(1 << 63)
            keys[at, i] = (word & ~low) | np.uint64(i)
        for i in range(size, width):
            keys[at, i] = ~np.uint64(0)
    return keys, low


@njit(nogil=True, cache=True)
def sorted_ranks(values, n, rows, keys, low, out):
    """Ranks from 1 of samples by their sorted keys, equal values sharing the middle of theirs; 0 beyond a sample."""
    order = np.empty(keys.shape[1], np.int64)
    for at in range(rows.size):
        row, size = rows[at], n[rows[at]]
        for i in range(size):
            place = np.int64(keys[at, i] & low)
            value = values[row, place]
            # Those whose keys differ in the lowest bits alone are put in order here.
            j = i
            while j > 0 and keys[at, j - 1] | low == keys[at, i] | low and values[row, order[j - 1]] > value:
                order[j] = order[j - 1]
                j -= 1
            order[j] = place
        begin = 0
        while begin < size:
            value = values[row, order[begin]]
            end = begin + 1
            while end < size and values[row, order[end]] == value:
                end += 1
            for i in range(begin, end):
                out[row, order[i]] = (begin + end + 1) / 2
            begin = end
        for i in range(size, out.shape[1]):
            out[row, i] = 0.0


@njit(nogil=True, cache=True)
def counted_ranks(values, n, most, out):
    """Ranks of samples of at most so many values, each compared with all others."""
    for row in range(n.size):
        size = n[row]
        if size > most:
            continue
        for i in range(size):
            value, below = values[row, i], np.int64(0)
            for j in range(size):
                below += np.int64(values[row, j] < value) + np.int64(values[row, j] <= value)
            out[row, i] = (below + 1) / 2
        for i in range(size, out.shape[1]):
            out[row, i] = 0.0


@njit(nogil=True, cache=True)
def coded_ranks(places, codes, n, out):
    """Ranks of samples that take their values from the same numbers, of which the order is known: they are counted.

    ``places`` says which of the numbers are in each sample, ``codes`` what each number is in their order, from 0 on.
    """
    kinds = np.int64(0)
    for code in codes:
        kinds = max(kinds, np.int64(code) + 1)
    counts, ranks = np.zeros(kinds, np.int64), np.empty(kinds)
    for row in range(n.size):
        size = n[row]
        for i in range(size):
            counts[codes[places[row, i]]] += 1
        before = np.int64(0)
        for code in range(kinds):
            ranks[code] = (2 * before + counts[code] + 1) / 2
            before += counts[code]
            counts[code] = 0
        for i in range(size):
            out[row, i] = ranks[codes[places[row, i]]]
        for i in range(size, out.shape[1]):
            out[row, i] = 0.0


@njit(nogil=True, cache=True)
def coded(values, order, out):
    """Some numbers by their order, from 0 on, equal ones with equal codes."""
    code = np.int32(0)
    for i in range(order.size):
        if i and values[order[i]] != values[order[i - 1]]:
            code += np.int32(1)
        out[order[i]] = code


@njit(nogil=True, cache=True)
def tails(values, out):
    """The complementary error function of some numbers."""
    for i in range(values.size):
        out[i] = math.erfc(values[i])


@njit(nogil=True, cache=True, error_model="numpy")
def join_sizes(total, squares, most, common, counted, seen, z):
    """Rows of joins and the share of a query's keys in them, each with its limits: six rows.

    They are those of ``intervals.total_limits`` and ``share_limits``. Of each join ``total`` rows were seen,
    ``squares`` is the sum of the squares of a key's and ``most`` the largest; ``common`` of ``counted`` keys were
    found; ``seen`` of all hashes were compared.
    """
    out = np.empty((6, total.size))
    for at in range(total.size):
        share, rows = seen[at], float(total[at])
        rest = max(1 - share, 1e-15)
        exact = rows / share
        low = high = exact
        if share < 1 and rows:
            low = max(_gamma(exact, squares[at] * rest / (share * share), -z), rows)
            more = float(most[at])
            spread = (squares[at] + more * more) * rest / (share * share)
            high = max(_gamma((rows + more * rest) / share, spread, z), exact)
        out[0, at], out[1, at], out[2, at] = np.rint(exact), np.floor(low), np.ceil(high)
        hits, keys = float(common[at]), float(max(counted[at], 1))
        held = least = largest = hits / keys
        if share < 1:
            square = z * z / (counted[at] / rest)
            middle = (held + square / 2) / (1 + square)
            half = np.sqrt(square * (held * (1 - held) + square / 4)) / (1 + square)
            # What was seen is there, whatever the rest is like.
            least = min(max(middle - half, hits * share / keys), held)
            largest = max(min(middle + half, 1 - (counted[at] - hits) * share / keys), held)
        out[3, at], out[4, at], out[5, at] = held, least, largest
    return out


@njit(nogil=True, cache=True, error_model="numpy")
def _gamma(mean, variance, z):
    """A quantile of the gamma distribution of a mean and variance (Wilson and Hilferty 1931)."""
    ninth = variance / (9 * mean**2)
    root = max(1 - ninth + z * np.sqrt(ninth), 0.0)
    return mean * root**3
