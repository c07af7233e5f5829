"""Intervals of a coefficient that papers and benchmarks compare, each by itself: questions choose among them."""

from __future__ import annotations

import math

import numpy as np

from lakescope.array_types import F64, I64
from lakescope.engines.correlations.estimators import Samples
from lakescope.engines.correlations.intervals import (
    ALPHA,
    fisher_error,
    limits,
    rank_error,
    shrinkage,
    unit_moments,
    z_error,
)


def fisher_interval(r: F64, n: I64, rows: F64) -> tuple[F64, F64]:
    """Fisher's interval of Pearson's r."""
    return limits(r, fisher_error(n) * shrinkage(n, rows))


def pearson_interval(samples: Samples, r: F64, rows: F64) -> tuple[F64, F64]:
    """The interval shown with Pearson's r."""
    return limits(r, z_error(samples, r) * shrinkage(samples.n, rows))


def spearman_interval(samples: Samples, r: F64, rows: F64) -> tuple[F64, F64]:
    """The interval shown with Spearman's coefficient."""
    return limits(r, rank_error(samples, r) * shrinkage(samples.n, rows))


def hoeffding_interval(samples: Samples, low: F64, high: F64) -> tuple[F64, F64]:
    """The distribution-free interval of the paper; ``low`` and ``high`` bound both columns (2.6)."""
    mean_a, mean_b, square_a, square_b, product = unit_moments(samples, low, high)
    with np.errstate(invalid="ignore", divide="ignore"):
        t = np.sqrt(math.log(10 / ALPHA) / (2 * np.maximum(samples.n, 1)))
        tops = product + t - (mean_a - t) * (mean_b - t)
        bottoms = product - t - (mean_a + t) * (mean_b + t)
        least = np.sqrt(
            np.maximum(0, square_a - t - (mean_a + t) ** 2) * np.maximum(0, square_b - t - (mean_b + t) ** 2)
        )
        most = np.sqrt(
            np.maximum(0, square_a + t - (mean_a - t) ** 2) * np.maximum(0, square_b + t - (mean_b - t) ** 2)
        )
        below = np.where(bottoms >= 0, bottoms / most, bottoms / least)
        above = np.where(tops >= 0, tops / least, tops / most)
    return (
        np.clip(np.nan_to_num(below, nan=-1.0, neginf=-1.0, posinf=1.0), -1, 1),
        np.clip(np.nan_to_num(above, nan=1.0, neginf=-1.0, posinf=1.0), -1, 1),
    )
