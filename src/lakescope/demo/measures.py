"""Correlation measures, plainly written: the judge for what was planted, not an estimator."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def pearson(left: npt.NDArray[np.float64], right: npt.NDArray[np.float64]) -> float | None:
    """Pearson's correlation, or None where it is not defined."""
    if len(left) < 2 or left.std() == 0.0 or right.std() == 0.0:
        return None
    a, b = left - left.mean(), right - right.mean()
    return float((a @ b) / np.sqrt((a @ a) * (b @ b)))


def ranks(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Average ranks, ties sharing theirs."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts).astype(np.float64)
    averages: npt.NDArray[np.float64] = (last - (counts - 1) / 2.0)[inverse]
    return averages


def without_trend(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """What is left of values in key order once a straight line through them is taken away."""
    x = np.arange(len(values), dtype=np.float64)
    x -= x.mean()
    residue: npt.NDArray[np.float64] = values - values.mean() - x * ((x @ values) / max(float(x @ x), 1e-300))
    return residue
