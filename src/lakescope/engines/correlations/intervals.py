"""Intervals of a coefficient of correlation that keep what they promise (spec 2.6).

Every interval is one of the coefficient of the whole join, of which the sample is a part: ``share`` of the rows were
seen, and nothing is uncertain about a join that was seen whole.
"""

from __future__ import annotations

import math

import numpy as np

from lakescope.array_types import F64, I64
from lakescope.engines.correlations.estimators import ESTIMATION, Samples, bootstrap, normal_cdf, normal_scores

#: Level of all intervals: 95%, by convention.
ALPHA = 0.05
#: The point of the normal distribution that belongs to it.
Z = 1.959963984540054
#: Order statistics of 599 re-samples that bound the interval, by size of the sample (Wilcox 1996).
_PM1 = ((40, 7, 593), (80, 8, 592), (180, 11, 588), (250, 14, 585), (1 << 60, 15, 584))


def shrinkage(n: I64, rows: F64) -> F64:
    """The factor by which sampling without replacement shrinks a standard error: 0 if all rows were seen."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.sqrt(np.clip(1 - n / np.maximum(rows, 1.0), 0.0, 1.0))


def limits(r: F64, error: F64) -> tuple[F64, F64]:
    """Limits by Fisher's z for a standard error of z."""
    z = np.arctanh(np.clip(r, -1 + 1e-15, 1 - 1e-15))
    return np.tanh(z - Z * error), np.tanh(z + Z * error)


def fisher_error(n: I64) -> F64:
    """The standard error of z of normal data; infinite below four rows."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(n > 3, 1 / np.sqrt(np.maximum(n - 3, 1e-9)), np.inf)


def adf_error(samples: Samples, r: F64) -> F64:
    """The standard error of z from the sample's own fourth moments: asymptotically free of a distribution."""
    n = samples.n
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.sqrt(samples.moments.influence / n)
        return np.where(n > 3, error / np.maximum(1 - r**2, 1e-12) * np.sqrt(n / np.maximum(n - 3, 1e-9)), np.inf)


def z_error(samples: Samples, r: F64) -> F64:
    """The default for Pearson's r: the larger of Fisher's error and the distribution-free one."""
    return np.fmax(fisher_error(samples.n), adf_error(samples, r))


def bonett_wright_error(r: F64, n: I64) -> F64:
    """The standard error of z of Spearman's coefficient."""
    return np.sqrt(1 + r**2 / 2) * fisher_error(n)


def rank_error(samples: Samples, r: F64) -> F64:
    """The default for Spearman's coefficient: the larger of that error and the distribution-free one of the ranks.

    Bonett and Wright's alone covers 82% where both columns have the same heavy noise, this 91% (of 95%).
    """
    return np.fmax(bonett_wright_error(r, samples.n), adf_error(samples.ranked, r))


def score_error(samples: Samples, r: F64) -> F64:
    """The default standard error of z of the coefficient of normal scores: the larger of Fisher's and the free one."""
    return np.fmax(fisher_error(samples.n), adf_error(normal_scores(samples), r))


def kendall_error(samples: Samples) -> F64:
    """The standard error of z of Kendall's tau (Fieller, Hartley and Pearson)."""
    n = samples.n
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(n > 4, np.sqrt(0.437 / np.maximum(n - 4, 1e-9)), np.inf)


def share_limits(hits: I64, n: I64, seen: F64) -> tuple[F64, F64]:
    """Limits of the share of hits among all, of which ``n`` are a sample, ``seen`` of them (Wilson's, exact of all)."""
    trials = n / np.maximum(1 - seen, 1e-15)
    share = hits / np.maximum(n, 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        square = Z * Z / trials
        middle = (share + square / 2) / (1 + square)
        half = np.sqrt(square * (share * (1 - share) + square / 4)) / (1 + square)
        # What was seen is there, whatever the rest is like.
        low = np.maximum(middle - half, hits * seen / np.maximum(n, 1))
        high = np.minimum(middle + half, 1 - (n - hits) * seen / np.maximum(n, 1))
    whole = seen >= 1
    return np.where(whole, share, np.minimum(low, share)), np.where(whole, share, np.maximum(high, share))


def total_limits(total: I64, squares: F64, most: I64, seen: F64) -> tuple[F64, F64]:
    """Limits of a sum of which terms were seen with the chance ``seen``: their sum, that of their squares, the largest.

    A weighted sum of Poisson counts (Fay and Feuer 1997): the lower limit takes the sum as it was seen, the upper one
    adds a term as large as the largest, which may have been missed. Skewed sums have skewed intervals.
    """
    rest = np.maximum(1 - seen, 1e-15)
    with np.errstate(invalid="ignore", divide="ignore"):
        low = _gamma(total / seen, squares * rest / seen**2, -Z)
        high = _gamma((total + most * rest) / seen, (squares + most.astype(np.float64) ** 2) * rest / seen**2, Z)
    whole = (seen >= 1) | (total == 0)
    exact = total / seen
    return np.where(whole, exact, np.maximum(low, total)), np.where(whole, exact, np.maximum(high, exact))


def _gamma(mean: F64, variance: F64, z: float) -> F64:
    """A quantile of the gamma distribution of a mean and variance (Wilson and Hilferty 1931)."""
    ninth = variance / (9 * mean**2)
    root: F64 = np.maximum(1 - ninth + z * np.sqrt(ninth), 0.0)
    return mean * root**3


def pm1(samples: Samples) -> tuple[F64, F64]:
    """The bootstrap interval modified for small samples."""
    return pm1_of(bootstrap(samples), samples.n)


def pm1_of(resampled: F64, n: I64) -> tuple[F64, F64]:
    """The bootstrap interval modified for small samples, from re-samples that are there already, in order."""
    count = resampled.shape[1]
    low, high = np.empty(n.size), np.empty(n.size)
    for row, size in enumerate(n.tolist()):
        _, first, last = next(each for each in _PM1 if size < each[0])
        low[row], high[row] = (
            resampled[row, min(count, math.ceil(count / ESTIMATION.resamples * at)) - 1] for at in (first, last)
        )
    return low, high


def hfd_length(samples: Samples, low: F64, high: F64) -> F64:
    """The length of the paper's small-sample variant of Hoeffding's interval: a risk, not a probability (2.6)."""
    mean_a, mean_b, square_a, square_b, _ = unit_moments(samples, low, high)
    with np.errstate(invalid="ignore", divide="ignore"):
        t = np.sqrt(math.log(10 / ALPHA) / (2 * np.maximum(samples.n, 1)))
        spread = np.sqrt(np.maximum(0, square_a - mean_a**2) * np.maximum(0, square_b - mean_b**2))
        return np.where(spread > 0, 2 * t * (1 + mean_a + mean_b) / spread, np.inf)


def unit_moments(samples: Samples, low: F64, high: F64) -> tuple[F64, ...]:
    """Moments of both columns moved and scaled into [0, 1]."""
    width = np.where(high > low, high - low, 1.0)[:, None]
    count = np.maximum(samples.n, 1)
    with np.errstate(invalid="ignore", over="ignore"):
        a = np.where(samples.present, (samples.x - low[:, None]) / width, 0.0)
        b = np.where(samples.present, (samples.y - low[:, None]) / width, 0.0)
    return tuple(each.sum(axis=1) / count for each in (a, b, a * a, b * b, a * b))


def clopper_pearson(hits: I64, n: I64) -> tuple[F64, F64]:
    """The exact interval of a share, by bisection of the binomial distribution."""
    low, high = np.zeros(n.size), np.ones(n.size)
    for row, (k, size) in enumerate(zip(hits.tolist(), n.tolist(), strict=True)):
        if size:
            low[row] = _share_where(lambda p, k=k, size=size: 1 - _binomial_cdf(k - 1, size, p), rising=True)
            high[row] = _share_where(lambda p, k=k, size=size: _binomial_cdf(k, size, p), rising=False)
            low[row], high[row] = (low[row] if k else 0.0), (high[row] if k < size else 1.0)
    return low, high


def _share_where(chance, *, rising: bool) -> float:  # type: ignore[no-untyped-def]
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if (chance(middle) < ALPHA / 2) == rising:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _binomial_cdf(k: int, n: int, p: float) -> float:
    """The chance of at most ``k`` hits of ``n``."""
    if k < 0:
        return 0.0
    if k >= n or p <= 0:
        return 1.0
    if p >= 1:
        return 0.0
    hits = np.arange(k + 1)
    logs = _log_choose(n)[: k + 1] + hits * math.log(p) + (n - hits) * math.log1p(-p)
    largest = logs.max()
    return float(min(1.0, math.exp(largest) * np.exp(logs - largest).sum()))


def _log_choose(n: int) -> F64:
    ratios = np.log(np.arange(n, 0, -1)) - np.log(np.arange(1, n + 1))
    return np.concatenate([[0.0], np.cumsum(ratios)])


def qcr(r: F64, n: I64) -> tuple[F64, F64]:
    """The interval of the quadrant count ratio: that of the share of points on the same side."""
    hits = np.rint(np.nan_to_num((r + 1) / 2) * n).astype(np.int64)
    low, high = clopper_pearson(hits, n)
    return 2 * low - 1, 2 * high - 1


def p_value(r: F64, error: F64) -> F64:
    """The chance of a coefficient at least this far from 0 if there is none; ``error`` is that of z."""
    with np.errstate(invalid="ignore", divide="ignore"):
        z = np.abs(np.arctanh(np.clip(r, -1 + 1e-15, 1 - 1e-15))) / error
    return np.where(np.isfinite(z), 2 * normal_cdf(-np.nan_to_num(z)), 1.0)


def q_values(p: F64, looked_at: int) -> F64:
    """Benjamini-Hochberg: the share of false finds among those at least as good, of everything that was looked at."""
    order = np.argsort(p)
    found = np.empty(p.size)
    scaled = p[order] * max(looked_at, p.size) / np.arange(1, p.size + 1)
    found[order] = np.minimum(1.0, np.minimum.accumulate(scaled[::-1])[::-1])
    return found
