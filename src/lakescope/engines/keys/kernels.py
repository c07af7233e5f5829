"""Compiled loops over HyperLogLog registers: how two columns' registers compare, and the likelihood of an inclusion.

With ``n_x`` and ``n_y`` values, ``x`` of them common, in ``m`` registers (Ertl 2017; spec 4.8): a register holds the
largest of the runs that values throw into it, so the likelihood of all registers depends on counts only: how many are
larger in Y, larger in X, or equal, by what they hold. ``counts`` has a row for each of the three.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

#: Rows of ``counts``: what the larger register of Y holds, that of X, what equal ones hold.
Y_LARGER, X_LARGER, EQUAL = range(3)
#: Half of the 95% point of the chi-square law: how much less likely the ends of an interval are.
_LESS_LIKELY = 1.920729
#: The point of the normal distribution for intervals of 95%.
_Z = 1.959964


@dataclass(frozen=True, slots=True)
class RegisterTuning:
    """How an inclusion is estimated from registers.

    ``benchmarks/results/inclusions.md`` has the error of the estimates and how often intervals cover with all of it;
    "not measured" means that no record compares other values of that field.
    """

    #: Standard errors to both ends of the possible from which on an estimate is well inside, so that its interval is
    #: that of a normal law. Not measured.
    inside: float = 5.0
    #: Steps of a bisection: more than a double can tell apart. Not measured.
    steps: int = 60
    #: Points by which the middle of what is plausible is found. Not measured.
    grid: int = 64
    #: Intervals wider than this are weak evidence: the middle of what is plausible is told. Not measured.
    weak: float = 0.5
    #: Fewest values of X, in registers a value of Y, that say anything (spec 4.2). Not measured: of the spec.
    telling: float = 3.0


REGISTER_TUNING = RegisterTuning()

# Kernels take numbers of their module for constants, which they are compiled with; the fields above say what each is.
_INSIDE, _STEPS, _GRID = REGISTER_TUNING.inside, REGISTER_TUNING.steps, REGISTER_TUNING.grid
_WEAK, _TELLING = REGISTER_TUNING.weak, REGISTER_TUNING.telling


@njit(nogil=True, cache=True)
def compare(x, y, counts):
    """Count registers by which of the two is larger and what it holds."""
    counts[:] = 0
    for i in range(x.size):
        a, b = x[i], y[i]
        if a < b:
            counts[Y_LARGER, b] += 1
        elif a > b:
            counts[X_LARGER, a] += 1
        else:
            counts[EQUAL, a] += 1


@njit(nogil=True, cache=True)
def compare_few(places, held, y, y_counts, counts):
    """Count registers by which is larger, for a column X that fills few: ``places`` of them, and what each holds.

    ``y_counts`` is how many registers of Y hold what.
    """
    counts[:] = 0
    counts[Y_LARGER, :] = y_counts
    for i in range(places.size):
        a, b = held[i], y[places[i]]
        if a >= b:
            counts[Y_LARGER, b] -= 1
            if a > b:
                counts[X_LARGER, a] += 1
            else:
                counts[EQUAL, a] += 1
    # Where Y holds nothing and X does not either.
    counts[EQUAL, 0] = counts[Y_LARGER, 0]
    counts[Y_LARGER, 0] = 0


@njit(nogil=True, cache=True)
def log_likelihood(x, n_x, n_y, counts, m):
    """The logarithm of the likelihood of ``x`` common values, up to what does not depend on it."""
    total = 0.0
    for k in range(counts.shape[1]):
        if counts[Y_LARGER, k] + counts[X_LARGER, k] + counts[EQUAL, k] == 0:
            continue
        t = 2.0**-k / m
        if counts[Y_LARGER, k]:
            total += counts[Y_LARGER, k] * _log_held((n_y - x) * t)
        if counts[X_LARGER, k]:
            total += counts[X_LARGER, k] * _log_held((n_x - x) * t)
        if counts[EQUAL, k]:
            total += counts[EQUAL, k] * (x * t - (n_x + n_y) * t)
            if k:
                total += counts[EQUAL, k] * np.log(_both((n_x - x) * t, (n_y - x) * t, x * t))
    return total


@njit(nogil=True, inline="always", cache=True)
def _log_held(y):
    """The logarithm of the chance that the largest run is just this one: e^-y (1 - e^-y)."""
    if y <= 0:
        return -np.inf
    return -y + np.log(-np.expm1(-y))


@njit(nogil=True, inline="always", cache=True)
def _both(a, b, x):
    """The chance that both registers hold this run, given that neither holds a longer one; no term is negative."""
    return -np.expm1(-x) + np.exp(-x) * np.expm1(-a) * np.expm1(-b)


@njit(nogil=True, cache=True)
def _score(x, n_x, n_y, counts, m):
    """First and second derivative of the logarithm of the likelihood."""
    first = second = 0.0
    for k in range(counts.shape[1]):
        n_yl, n_xl, n_eq = counts[Y_LARGER, k], counts[X_LARGER, k], counts[EQUAL, k]
        if n_yl + n_xl + n_eq == 0:
            continue
        t = 2.0**-k / m
        if n_yl:
            grown = np.expm1((n_y - x) * t)
            first += n_yl * t * (1 - 1 / grown)
            second -= n_yl * t * t * (grown + 1) / (grown * grown)
        if n_xl:
            grown = np.expm1((n_x - x) * t)
            first += n_xl * t * (1 - 1 / grown)
            second -= n_xl * t * t * (grown + 1) / (grown * grown)
        if n_eq:
            first += n_eq * t
            if k:
                both = _both((n_x - x) * t, (n_y - x) * t, x * t)
                grown = np.exp(x * t - (n_x + n_y) * t) / both
                first += n_eq * t * grown
                second += n_eq * t * t * grown * (1 - grown)
    return first, second


@njit(nogil=True, cache=True)
def most_likely(n_x, n_y, counts, m):
    """The most likely number of common values: Newton's steps within a bracket."""
    low, high = 0.0, min(n_x, n_y)
    beyond = False
    for k in range(counts.shape[1]):
        beyond = beyond or (counts[X_LARGER, k] > 0 and n_x <= n_y) or (counts[Y_LARGER, k] > 0 and n_y <= n_x)
    if not beyond and _score(high, n_x, n_y, counts, m)[0] >= 0:
        return high
    if _score(low, n_x, n_y, counts, m)[0] <= 0:
        return low
    x = (low + high) / 2
    for _ in range(_STEPS):
        first, second = _score(x, n_x, n_y, counts, m)
        if abs(first) <= -1e-7 * second * n_x or high - low <= 1e-7 * n_x:
            break
        if first > 0:
            low = x
        else:
            high = x
        x = x - first / second if second < 0 else low
        if not low < x < high:
            x = (low + high) / 2
    return x


@njit(nogil=True, cache=True)
def interval(x, n_x, n_y, counts, m):
    """Numbers of common values that are not much less likely than the likeliest: the ends of the interval.

    Well inside what is possible the likelihood is as good as normal, and its curvature tells them at once.
    """
    curvature = -_score(x, n_x, n_y, counts, m)[1]
    if curvature > 0:
        error = 1 / np.sqrt(curvature)
        if x > _INSIDE * error and min(n_x, n_y) - x > _INSIDE * error:
            return x - _Z * error, x + _Z * error
    floor = log_likelihood(x, n_x, n_y, counts, m) - _LESS_LIKELY
    return (
        _edge(x, 0.0, floor, n_x, n_y, counts, m),
        _edge(x, min(n_x, n_y), floor, n_x, n_y, counts, m),
    )


@njit(nogil=True, cache=True)
def _edge(inside, outside, floor, n_x, n_y, counts, m):
    """Where between two numbers the likelihood falls below a floor."""
    if log_likelihood(outside, n_x, n_y, counts, m) >= floor:
        return outside
    for _ in range(_STEPS):
        if abs(outside - inside) <= 1e-5 * n_x:
            break
        middle = (inside + outside) / 2
        if log_likelihood(middle, n_x, n_y, counts, m) >= floor:
            inside = middle
        else:
            outside = middle
    return (inside + outside) / 2


@njit(nogil=True, cache=True)
def median(n_x, n_y, counts, m):
    """The number of common values that is as likely too large as too small, if any is as good before looking."""
    most = min(n_x, n_y)
    logs = np.empty(_GRID)
    for i in range(_GRID):
        logs[i] = log_likelihood(most * (i + 0.5) / _GRID, n_x, n_y, counts, m)
    weights = np.exp(logs - logs.max())
    half = weights.sum() / 2
    for i in range(_GRID):
        if weights[i] >= half:
            return most * (i + half / weights[i]) / _GRID
        half -= weights[i]
    return most


@njit(nogil=True, cache=True)
def estimate(n_x, n_y, counts, m):
    """The share of X in Y with its interval: the likeliest, or the middle where the interval says little."""
    x = most_likely(n_x, n_y, counts, m)
    low, high = interval(x, n_x, n_y, counts, m)
    if high - low > _WEAK * n_x:
        x = median(n_x, n_y, counts, m)
    return x / n_x, low / n_x, high / n_x


@njit(nogil=True, cache=True)
def _contradictions_expected(n_x, n_y, missing, m):
    """The chance that a register of X is above Y's, if so many of X's values are missing there (exact occupancy)."""
    total = 0.0
    below = 0.0
    for k in range(64):
        p = 2.0**-k / m
        reached = np.exp(n_y * np.log1p(-p)) if p < 1 else 0.0
        if reached > below:
            total += (reached - below) * (np.exp(missing * np.log1p(-p)) if p < 1 else 0.0)
        below = reached
        if reached > 1 - 1e-12:
            break
    return 1 - total


@njit(nogil=True, cache=True)
def _too_many(few_x, few_y, most):
    """Whether more than ``most`` registers of X are above those of Y; both are folded to few."""
    above = 0
    for i in range(few_x.size):
        above += few_x[i] > few_y[i]
    return above > most


@njit(nogil=True, cache=True)
def common_entries(x, y):
    """Entries that two sorted lists share."""
    i = j = n = 0
    while i < x.size and j < y.size:
        if x[i] < y[j]:
            i += 1
        elif x[i] > y[j]:
            j += 1
        else:
            n += 1
            i += 1
            j += 1
    return n


@njit(nogil=True, cache=True)
def screen(
    parents,
    sizes,
    families,
    lows,
    highs,
    exact_sizes,
    starts,
    places,
    held,
    dense_rows,
    dense,
    few,
    minimum,
    least,
    pairs,
):
    """Pairs that registers do not rule out: X may be included in Y to at least the minimum.

    ``parents`` are the columns Y to look at; columns are in order of their size. ``pairs`` is filled from its
    beginning with X and Y; returns how many were found and how many were looked at. Stops at the end of ``pairs``:
    then the first is -1, and there must be more room.
    """
    found = looked = np.int64(0)
    registers = np.zeros(dense.shape[1], np.uint8)
    for y in parents:
        row_y = dense_rows[y]
        if row_y < 0:
            registers[:] = 0
            for e in range(starts[y], starts[y + 1]):
                registers[places[e]] = held[e]
        else:
            registers[:] = dense[row_y]
        for x in range(sizes.size):
            if sizes[x] * minimum > sizes[y] * (1.0 if exact_sizes else 1.1):
                break
            if x == y or sizes[x] < least or not (families[x] & families[y]):
                continue
            looked += 1
            allowed = np.floor((1 - minimum) * sizes[x] + 1e-6)
            if not exact_sizes:
                allowed = np.floor(1.1 * allowed + 2)
            outside = np.int64(lows[x] < lows[y]) + np.int64(highs[x] > highs[y])
            if outside > allowed:
                continue
            if dense_rows[x] < 0:
                above = 0
                for e in range(starts[x], starts[x + 1]):
                    above += held[e] > registers[places[e]]
                    if above > allowed:
                        break
                if above > allowed:
                    continue
            elif row_y >= 0:
                expected = few.shape[1] * _contradictions_expected(sizes[x], sizes[y], allowed, few.shape[1])
                if _too_many(few[dense_rows[x]], few[row_y], expected + 6 * np.sqrt(expected) + 3):
                    continue
            if found == pairs.shape[0]:
                return np.int64(-1), looked
            pairs[found, 0] = x
            pairs[found, 1] = y
            found += 1
    return found, looked


#: What an estimate rests on: lists of both, registers, or nothing that could tell.
BY_LISTS, BY_REGISTERS, UNKNOWN = range(3)
#: Two values share an entry of a list by chance: one in 2 ** 25 has the index, a third of those the run.
_FALSE_ENTRY = 1.0 / (3 << 25)


@njit(nogil=True, cache=True)
def false_entries(mine, theirs):
    """So many entries at most do two lists share by chance, 39 times of 40."""
    chance = mine * theirs * _FALSE_ENTRY
    return 0 if chance < 0.025 else 1 if chance < 0.24 else 2 if chance < 0.62 else 1 + int(4 * chance)


@njit(nogil=True, cache=True)
def can_tell(n_x, n_y, m):
    """Whether registers say anything about the share of X in Y (4.2)."""
    return n_x * m >= _TELLING * n_y


@njit(nogil=True, cache=True)
def judge(
    pairs,
    sizes,
    starts,
    places,
    held,
    entry_starts,
    entries,
    dense_rows,
    dense,
    histograms,
    lists,
    minimum,
    out,
    evidence,
):
    """The share of X in Y of each pair, with its interval, and what it rests on.

    ``lists`` says whether lists may be used where both columns have one. Of pairs that cannot reach the ``minimum``
    only the share is told: their interval is empty. Pairs of the same Y should follow each other.
    """
    registers = np.zeros(dense.shape[1], np.uint8)
    counts = np.zeros((3, histograms.shape[1]), np.int64)
    m = float(dense.shape[1])
    filled = -1
    for i in range(pairs.shape[0]):
        x, y = pairs[i, 0], pairs[i, 1]
        n_x, n_y = max(1.0, sizes[x]), max(1.0, sizes[y])
        if lists and dense_rows[x] < 0 and dense_rows[y] < 0:
            mine = entries[entry_starts[x] : entry_starts[x + 1]]
            theirs = entries[entry_starts[y] : entry_starts[y + 1]]
            common, all_of_x = common_entries(mine, theirs), max(1, mine.size)
            out[i, 0] = out[i, 2] = common / all_of_x
            out[i, 1] = max(0, common - false_entries(mine.size, theirs.size)) / all_of_x
            evidence[i] = BY_LISTS
            continue
        if filled != y:
            filled = y
            if dense_rows[y] >= 0:
                registers[:] = dense[dense_rows[y]]
            else:
                registers[:] = 0
                for e in range(starts[y], starts[y + 1]):
                    registers[places[e]] = held[e]
        if dense_rows[x] < 0:
            begin, end = starts[x], starts[x + 1]
            compare_few(places[begin:end], held[begin:end], registers, histograms[y], counts)
        else:
            compare(dense[dense_rows[x]], registers, counts)
        if not can_tell(n_x, n_y, m):
            out[i, 0], out[i, 1], out[i, 2] = median(n_x, n_y, counts, m) / n_x, 0.0, 1.0
            evidence[i] = UNKNOWN
            continue
        evidence[i] = BY_REGISTERS
        likeliest = most_likely(n_x, n_y, counts, m)
        if likeliest < minimum * n_x and not _plausible(minimum * n_x, likeliest, n_x, n_y, counts, m):
            out[i, :] = likeliest / n_x
            continue
        low, high = interval(likeliest, n_x, n_y, counts, m)
        if high - low > _WEAK * n_x:
            likeliest = median(n_x, n_y, counts, m)
        out[i, 0], out[i, 1], out[i, 2] = likeliest / n_x, low / n_x, high / n_x


@njit(nogil=True, inline="always", cache=True)
def _plausible(x, likeliest, n_x, n_y, counts, m):
    """Whether so many common values are within the interval."""
    if x > min(n_x, n_y):
        return False
    gap = log_likelihood(likeliest, n_x, n_y, counts, m) - log_likelihood(x, n_x, n_y, counts, m)
    return gap <= _LESS_LIKELY


@njit(nogil=True, cache=True)
def bml_pairs(pairs, sizes, pyramids, out):
    """The paper's estimate of each pair (4.4). ``pyramids``: registers folded to every precision, 2^p from 2^p on."""
    most = 0
    while 2 << (most + 1) <= pyramids.shape[1]:
        most += 1
    levels = 66
    logs = np.empty(levels)
    for k in range(1, levels):
        logs[k] = np.log1p(-(2.0**-k))
    steps = np.empty(levels)
    for i in range(pairs.shape[0]):
        x, y = pairs[i, 0], pairs[i, 1]
        n_x, n_y = max(1.0, sizes[x]), max(1.0, sizes[y])
        p = min(most, max(0, int(np.rint(np.log2(max(n_x, n_y)) / 2))))
        m = 1 << p
        level = 0
        for j in range(m, 2 * m):
            level += pyramids[x, j] <= pyramids[y, j]
        # Only levels that Y's largest run may well have.
        first = max(1, int(np.log2(n_y / m)) - 4)
        below = np.exp(n_y / m * logs[first - 1]) if first > 1 else 0.0
        used = first
        while used < levels and below < 1 - 1e-7:
            reached = np.exp(n_y / m * logs[used])
            steps[used] = reached - below
            below = reached
            used += 1
        out[i] = _solved(level / m, n_x / m, min(1.0, n_y / n_x), logs[first:used], steps[first:used])


@njit(nogil=True, inline="always", cache=True)
def _not_above(phi, load, logs, steps):
    """The chance that a register of X is not above the one of Y, and how fast it grows with the share."""
    chance = slope = 0.0
    for k in range(steps.size):
        term = steps[k] * np.exp(load * (1 - phi) * logs[k])
        chance += term
        slope -= term * load * logs[k]
    return chance, slope


@njit(nogil=True, cache=True)
def _solved(share, load, most, logs, steps):
    """Where the chance of not being above is ``share``: Newton's steps within a bracket."""
    if share >= (1.0 if most == 1.0 else _not_above(most, load, logs, steps)[0]):
        return most
    low, high = 0.0, most
    phi = most / 2
    for _ in range(40):
        chance, slope = _not_above(phi, load, logs, steps)
        if chance > share:
            high = phi
        else:
            low = phi
        moved = phi + (share - chance) / slope if slope > 0 else low
        if moved <= 0 and low == 0 and share <= _not_above(0.0, load, logs, steps)[0]:
            return 0.0
        if abs(moved - phi) < 1e-5 or high - low < 1e-5:
            return phi
        phi = moved if low < moved < high else (low + high) / 2
    return phi


@njit(nogil=True, cache=True)
def bottom_k_pairs(pairs, smallest, sizes, k, out):
    """Zhang's estimate of each pair from the smallest hashes of every column, in order; -1 where it cannot tell."""
    for i in range(pairs.shape[0]):
        x, y = pairs[i, 0], pairs[i, 1]
        a = b = seen = mine = both = 0
        while seen < k and (a < sizes[x] or b < sizes[y]):
            if b >= sizes[y] or (a < sizes[x] and smallest[x, a] < smallest[y, b]):
                mine += 1
                a += 1
            elif a >= sizes[x] or smallest[x, a] > smallest[y, b]:
                b += 1
            else:
                mine += 1
                both += 1
                a += 1
                b += 1
            seen += 1
        out[i] = both / mine if mine else -1.0


@njit(nogil=True, cache=True)
def smallest_of_sets(hashes, groups, starts, sets, k, smallest, filled):
    """Hand tokens, in order of their hashes, to the sets that hold them, to each the first ``k``."""
    for i in range(hashes.size):
        group = groups[i]
        for j in range(starts[group], starts[group + 1]):
            s = sets[j]
            if filled[s] < k:
                smallest[s, filled[s]] = hashes[i]
                filled[s] += 1
