"""Coefficients of correlation, many samples at a time (Santos et al.; spec-correlation-and-inclusion 2.5).

A sample is a row of two padded arrays. Every coefficient is that of the rows present in both; where it is not defined
(a constant column, too few rows) it is NaN, never 0 by accident.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lakescope.array_types import F64, I32, I64, Bools
from lakescope.engines.correlations.answers import Measure
from lakescope.engines.joins.josie import kernels_are_loaded
from lakescope.sketches.quadrants import balanced_cut


@dataclass(frozen=True, slots=True)
class EstimatorTuning:
    """How coefficients are computed."""

    #: Re-samples of the bootstrap: those of the paper, by which the order statistics of its interval are given.
    resamples: int = 599
    #: Seed of the bootstrap: the same question gets the same answer. Any number would do.
    seed: int = 599
    #: A column whose spread is this small beside its size is constant. Not measured: some thousand roundings of a
    #: double.
    constant: float = 1e-12
    #: Values of a sample up to which ranks are counted rather than sorted. Not measured: answers do not depend on it.
    counted: int = 48


ESTIMATION = EstimatorTuning()


@dataclass(frozen=True)
class Samples:
    """Pairs of numbers, one sample a row, of which the first ``n`` places are filled.

    If all take their x from the same numbers, ``places`` says from which, and ``codes`` are these numbers by their
    order: from 0 on, equal ones with equal codes.
    """

    x: F64
    y: F64
    n: I64
    places: I32 | None = None
    codes: I32 | None = None

    @classmethod
    def of(cls, pairs: Sequence[tuple[F64, F64]]) -> Samples:
        """Samples of different sizes; pairs with a number missing are left out."""
        kept = [np.isfinite(x) & np.isfinite(y) for x, y in pairs]
        n = np.array([int(each.sum()) for each in kept], np.int64)
        width = int(n.max(initial=0))
        filled = np.zeros((2, len(pairs), width))
        for row, ((x, y), each) in enumerate(zip(pairs, kept, strict=True)):
            filled[0, row, : n[row]], filled[1, row, : n[row]] = x[each], y[each]
        return cls(filled[0], filled[1], n)

    def take(self, rows: npt.NDArray[np.intp]) -> Samples:
        width = int(self.n[rows].max(initial=0))
        places = None if self.places is None else self.places[rows, :width]
        return Samples(self.x[rows, :width], self.y[rows, :width], self.n[rows], places, self.codes)

    @functools.cached_property
    def present(self) -> Bools:
        """Which places are filled."""
        return np.arange(self.x.shape[1]) < self.n[:, None]

    @functools.cached_property
    def standard(self) -> tuple[F64, F64]:
        """Both columns with mean 0 and variance 1; NaN rows where one is constant, 0 where nothing is."""
        return _standardised(self.x, self.present, self.n), _standardised(self.y, self.present, self.n)

    @functools.cached_property
    def ranked(self) -> Samples:
        """These samples with ranks for values."""
        if self.codes is None or self.places is None or not kernels_are_loaded():
            return _transformed(self, lambda values: ranks(values, self.n))
        from lakescope.engines.correlations import sample_kernels

        x = np.empty(self.x.shape)
        sample_kernels.coded_ranks(np.ascontiguousarray(self.places), self.codes, self.n, x)
        return Samples(x, ranks(self.y, self.n), self.n)

    @property
    def r(self) -> F64:
        """Pearson's coefficient alone, which takes less than all moments, unless these are known."""
        if "moments" in self.__dict__ or not kernels_are_loaded():
            return self.moments.r
        from lakescope.engines.correlations import sample_kernels

        found = np.empty(self.n.size)
        sample_kernels.pearson(
            np.ascontiguousarray(self.x), np.ascontiguousarray(self.y), self.n, ESTIMATION.constant, found
        )
        return found

    @functools.cached_property
    def moments(self) -> Moments:
        """The moments that coefficients, their errors and their doubts rest on."""
        if not kernels_are_loaded():
            return _moments_plainly(self)
        from lakescope.engines.correlations import sample_kernels

        found = np.empty((self.n.size, 4))
        sample_kernels.moments(
            np.ascontiguousarray(self.x), np.ascontiguousarray(self.y), self.n, ESTIMATION.constant, found
        )
        return Moments(*found.T)


@dataclass(frozen=True)
class Moments:
    """Moments of samples; NaN where a column is constant.

    ``r`` is Pearson's coefficient, ``influence`` the mean square of its influence function, ``fourth`` the larger of
    the fourth standard moments, ``most`` the largest share of a column's squares in one point.
    """

    r: F64
    influence: F64
    fourth: F64
    most: F64


def _moments_plainly(samples: Samples) -> Moments:
    """Moments of samples by numpy alone: what the kernel answers before it is loaded."""
    x, y = samples.standard
    n = samples.n
    with np.errstate(invalid="ignore", divide="ignore"):
        r = np.clip((x * y).sum(axis=1) / n, -1.0, 1.0)
        influence = np.where(samples.present, x * y - r[:, None] * (x**2 + y**2) / 2, 0.0)
        fourth = np.maximum((x**4).sum(axis=1), (y**4).sum(axis=1)) / n
        most = np.maximum((x**2).max(axis=1, initial=0.0), (y**2).max(axis=1, initial=0.0)) / n
        # A constant column makes all of them unknown.
        return Moments(r, (influence**2).sum(axis=1) / n + 0 * r, fourth + 0 * r, most + 0 * r)


def _standardised(values: F64, present: Bools, n: I64) -> F64:
    count = np.maximum(n, 1)[:, None]
    with np.errstate(invalid="ignore", divide="ignore", over="ignore", under="ignore"):
        # Scaled first: squares of very large and very small numbers stay within range.
        largest = np.abs(np.where(present, values, 0.0)).max(axis=1, initial=0.0)[:, None]
        scaled = np.where(present, values / np.where(largest > 0, largest, 1.0), 0.0)
        centred = np.where(present, scaled - scaled.sum(axis=1, keepdims=True) / count, 0.0)
        spread = np.sqrt((centred**2).sum(axis=1, keepdims=True) / count)
        return np.where(spread > ESTIMATION.constant, centred / spread, np.nan * centred)


def pearson(samples: Samples) -> F64:
    """Pearson's r."""
    return np.where(samples.n > 1, samples.moments.r, np.nan)


def ranks(values: F64, n: I64) -> F64:
    """Ranks from 1, equal values sharing the middle of theirs; 0 beyond the end of a sample."""
    rows, width = values.shape
    if not width:
        return values
    if kernels_are_loaded():
        return _ranks_compiled(np.ascontiguousarray(values), n)
    present = np.arange(width) < n[:, None]
    filled = np.where(present, values, np.inf)
    order = np.argsort(filled, axis=1)
    found = np.zeros((rows, width))
    sorted_values = np.take_along_axis(filled, order, axis=1)
    places = np.broadcast_to(np.arange(width), (rows, width))
    differs = sorted_values[:, 1:] != sorted_values[:, :-1]
    begins = np.maximum.accumulate(np.where(np.pad(differs, ((0, 0), (1, 0)), constant_values=True), places, 0), axis=1)
    last = np.where(np.pad(differs, ((0, 0), (0, 1)), constant_values=True), places, width)
    ends = np.minimum.accumulate(last[:, ::-1], axis=1)[:, ::-1]
    np.put_along_axis(found, order, (begins + ends) / 2 + 1, axis=1)
    return np.where(present, found, 0.0)


def _ranks_compiled(values: F64, n: I64) -> F64:
    from lakescope.engines.correlations import sample_kernels

    found = np.empty(values.shape)
    sample_kernels.counted_ranks(values, n, ESTIMATION.counted, found)
    rows = np.flatnonzero(n > ESTIMATION.counted)
    if rows.size:
        keys, low = sample_kernels.sort_keys(values, n, rows)
        keys.sort(axis=1)
        sample_kernels.sorted_ranks(values, n, rows, keys, low, found)
    return found


def _transformed(samples: Samples, change: Callable[[F64], F64]) -> Samples:
    x, y = change(samples.x), change(samples.y)
    return Samples(x, y, samples.n)


def spearman(samples: Samples) -> F64:
    """Spearman's coefficient: that of the ranks."""
    return np.where(samples.n > 1, samples.ranked.r, np.nan)


def normal_scores(samples: Samples) -> Samples:
    """Samples with normal scores (rankit) for values."""
    n = np.maximum(samples.n, 1)[:, None]

    def scores(values: F64) -> F64:
        share = np.where(samples.present, (ranks(values, samples.n) - 0.5) / n, 0.5)
        return np.where(samples.present, normal_quantile(share), 0.0)

    return _transformed(samples, scores)


def rin(samples: Samples) -> F64:
    """The coefficient of rank-based normal scores."""
    return pearson(normal_scores(samples))


def qn(samples: Samples) -> F64:
    """The robust coefficient of Gnanadesikan and Kettenring with the scale Qn of Rousseeuw and Croux."""
    found = np.full(samples.n.size, np.nan)
    for row, n in enumerate(samples.n.tolist()):
        # Scaled: differences of huge numbers are none.
        x, y = _scaled(samples.x[row, :n]), _scaled(samples.y[row, :n])
        scales = qn_scale(x), qn_scale(y)
        if n > 1 and min(scales) > 0:
            plus, minus = qn_scale(x / scales[0] + y / scales[1]), qn_scale(x / scales[0] - y / scales[1])
            if plus or minus:
                found[row] = (plus**2 - minus**2) / (plus**2 + minus**2)
    return found


def _scaled(values: F64) -> F64:
    """Values divided by twice the largest, so that none of their differences is too large."""
    largest = np.abs(values).max(initial=0.0)
    scaled: F64 = values / largest / 2 if largest else values
    return scaled


def qn_scale(values: F64) -> float:
    """The C(h, 2)-th smallest of all differences, h being just over half of the values; without constants."""
    n = values.size
    if n < 2:
        return 0.0
    h = n // 2 + 1
    differences = np.abs(values[:, None] - values[None, :])[np.triu_indices(n, 1)]
    wanted = h * (h - 1) // 2 - 1
    return float(np.partition(differences, wanted)[wanted])


@functools.lru_cache(maxsize=64)
def _resample_weights(n: int, resamples: int) -> F64:
    """How often each of ``n`` rows is drawn in each re-sample: the same for all samples of this size."""
    dice = np.random.default_rng([ESTIMATION.seed, n])
    return dice.multinomial(n, np.full(n, 1 / n), resamples).astype(np.float64)


def bootstrap(samples: Samples, resamples: int = ESTIMATION.resamples) -> F64:
    """Pearson's r of re-samples, in order; a constant re-sample counts as 0 (PM1)."""
    found = np.zeros((samples.n.size, resamples))
    x, y = samples.standard
    for row, n in enumerate(samples.n.tolist()):
        if n < 2 or np.isnan(x[row, 0]) or np.isnan(y[row, 0]):
            found[row] = np.nan
            continue
        a, b = x[row, :n], y[row, :n]
        sums = _resample_weights(n, resamples) @ np.stack([a, b, a * a, b * b, a * b], axis=1) / n
        with np.errstate(invalid="ignore", divide="ignore"):
            r = (sums[:, 4] - sums[:, 0] * sums[:, 1]) / np.sqrt(
                np.maximum(0, sums[:, 2] - sums[:, 0] ** 2) * np.maximum(0, sums[:, 3] - sums[:, 1] ** 2)
            )
        found[row] = np.sort(np.where(np.isfinite(r), np.clip(r, -1, 1), 0.0))
    return found


def pm1(samples: Samples) -> F64:
    """The mean of Pearson's r over re-samples."""
    found: F64 = bootstrap(samples).mean(axis=1)
    return found


def kendall(samples: Samples) -> F64:
    """Kendall's tau-b."""
    found = np.full(samples.n.size, np.nan)
    for row, n in enumerate(samples.n.tolist()):
        x, y = _scaled(samples.x[row, :n]), _scaled(samples.y[row, :n])
        dx, dy = (np.sign(values[:, None] - values[None, :]).astype(np.int8) for values in (x, y))
        moved = np.sqrt(float(np.count_nonzero(dx)) * float(np.count_nonzero(dy)))
        if moved:
            found[row] = float((dx * dy).sum(dtype=np.int64)) / moved
    return found


def qcr(samples: Samples) -> F64:
    """The quadrant count ratio about the cuts that halve the sample."""
    found = np.full(samples.n.size, np.nan)
    for row, n in enumerate(samples.n.tolist()):
        x, y = samples.x[row, :n], samples.y[row, :n]
        if n and x.min() < x.max() and y.min() < y.max():
            agree = (x > balanced_cut(x)) == (y > balanced_cut(y))
            found[row] = 2 * agree.mean() - 1
    return found


_ESTIMATORS: dict[Measure, Callable[[Samples], F64]] = {
    "pearson": pearson,
    "spearman": spearman,
    "rin": rin,
    "qn": qn,
    "pm1": pm1,
    "kendall": kendall,
    "qcr": qcr,
}


def estimate(measure: Measure, samples: Samples) -> F64:
    """A coefficient by its name."""
    return _ESTIMATORS[measure](samples)


def partial(samples: Samples, given: F64) -> F64:
    """Pearson's r of what is left of both columns when a straight line in a third one is taken out."""
    x, y = samples.standard
    z = _standardised(given, samples.present, samples.n)
    with np.errstate(invalid="ignore", divide="ignore"):
        xy, xz, yz = ((a * b).sum(axis=1) / samples.n for a, b in ((x, y), (x, z), (y, z)))
        left = (1 - xz**2) * (1 - yz**2)
        found = (xy - xz * yz) / np.sqrt(left)
    return np.where(left > 1e-12, np.clip(found, -1, 1), np.where(np.isnan(left), np.nan, 0.0))


def normal_quantile(share: F64) -> F64:
    """The inverse of the normal distribution function (Acklam's rational approximation, one step of refinement)."""
    p = np.clip(np.asarray(share, np.float64), 1e-300, 1 - 1e-16)
    tail = np.sqrt(-2 * np.log(np.minimum(p, 1 - p)))
    far = np.polyval(_C, tail) / np.polyval([*_D, 1.0], tail) * np.where(p < 0.5, 1.0, -1.0)
    q = p - 0.5
    near = np.polyval(_A, q * q) * q / np.polyval([*_B, 1.0], q * q)
    x = np.where(np.minimum(p, 1 - p) < 0.02425, far, near)
    error = normal_cdf(x) - p
    step = error * np.sqrt(2 * np.pi) * np.exp(np.minimum(x * x / 2, 700.0))
    return np.asarray(x - step / (1 + x * step / 2))


_A = (
    -39.69683028665376,
    220.9460984245205,
    -275.9285104469687,
    138.3577518672690,
    -30.66479806614716,
    2.506628277459239,
)
_B = (-54.47609879822406, 161.5858368580409, -155.6989798598866, 66.80131188771972, -13.28068155288572)
_C = (
    -0.007784894002430293,
    -0.3223964580411365,
    -2.400758277161838,
    -2.549732539343734,
    4.374664141464968,
    2.938163982698783,
)
_D = (0.007784695709041462, 0.3224671290700398, 2.445134137142996, 3.754408661907416)


def normal_cdf(x: F64) -> F64:
    """The normal distribution function."""
    scaled = -np.asarray(x, np.float64) / math.sqrt(2.0)
    if kernels_are_loaded():
        from lakescope.engines.correlations import sample_kernels

        tails = np.empty(scaled.size)
        sample_kernels.tails(scaled.ravel(), tails)
        return 0.5 * tails.reshape(scaled.shape)
    found = np.array([math.erfc(each) for each in scaled.ravel().tolist()], np.float64)
    return 0.5 * found.reshape(scaled.shape)
