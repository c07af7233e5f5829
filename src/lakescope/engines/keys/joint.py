"""Inclusion by joint maximum likelihood: both sizes and what is common estimated together from registers (4.8).

Where the numbers of values are not known, plugging in their estimates makes intervals too short; this does not. It
costs some ten milliseconds a pair, so it is for single pairs of sketches, not for all of a lake.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lakescope.array_types import F64, I64

#: The point of the normal distribution for intervals of 95%.
_Z = 1.959963984540054


@dataclass(frozen=True, slots=True)
class JointTuning:
    """How the likelihood of two columns is climbed."""

    #: Step of the differences by which slopes are taken, on the scale of logarithms. Not measured.
    step: float = 1e-3
    #: Steps of Newton's, at most: it ends sooner when next to nothing is gained. Not measured.
    rounds: int = 60


JOINT = JointTuning()


def five_counts(x: npt.NDArray[np.uint8], y: npt.NDArray[np.uint8]) -> I64:
    """How many registers of X hold what where it is smaller and where larger, of Y likewise, and equal ones."""
    levels = 66
    less, more, equal = x < y, x > y, x == y
    parts = (x[less], y[less], x[more], y[more], x[equal])
    return np.array([np.bincount(part, minlength=levels) for part in parts], np.int64)


def _log_likelihood(logs: F64, counts: I64, m: float) -> float:
    """Of (log a, log b, log x): values only in X, only in Y, in both."""
    a, b, x = np.exp(logs)
    t = np.exp2(-np.arange(counts.shape[1], dtype=np.float64)) / m
    with np.errstate(divide="ignore"):
        total = counts[0] @ _log_chances((a + x) * t) + counts[1] @ _log_chances(b * t, positive=True)
        total += counts[2] @ _log_chances(a * t, positive=True) + counts[3] @ _log_chances((b + x) * t)
        both = -np.expm1(-x * t) + np.exp(-x * t) * np.expm1(-a * t) * np.expm1(-b * t)
        both[0] = 1.0
        total += counts[4] @ (np.log(np.maximum(both, 1e-300)) - (a + b + x) * t)
    return float(total)


def _log_chances(y: F64, *, positive: bool = False) -> F64:
    """The logarithm of the chance that a register holds each run; the first of ``y`` is that of holding none."""
    found = -y + np.log(np.maximum(-np.expm1(-y), 1e-300))
    if not positive:
        found[0] = -y[0]
    return found


class JointEstimate(NamedTuple):
    """A share with its interval of 95%."""

    value: float
    low: float
    high: float


def joint(x: npt.NDArray[np.uint8], y: npt.NDArray[np.uint8], n_x: float, n_y: float) -> JointEstimate:
    """The share of X in Y with a Wald interval on the logit scale; ``n_x`` and ``n_y`` are where to begin."""
    counts, m = five_counts(x, y), float(x.size)
    common = max(1.0, min(n_x, n_y) / 2)
    logs = np.log([max(1.0, n_x - common), max(1.0, n_y - common), common])
    best = _log_likelihood(logs, counts, m)
    for _ in range(JOINT.rounds):
        slope, curve = _derivatives(logs, counts, m)
        step = np.linalg.solve(_positive(-curve), slope)
        step *= min(1.0, 2.0 / max(1e-12, float(np.abs(step).max())))
        for _ in range(30):
            found = _log_likelihood(logs + step, counts, m)
            if found >= best:
                break
            step /= 2
        else:
            break
        logs, gained, best = logs + step, found - best, found
        logs = np.clip(logs, -8.0, 60.0)
        if gained < 1e-9:
            break
    a, _, both = np.exp(logs)
    share = both / (a + both)
    variance = np.linalg.pinv(_positive(-_derivatives(logs, counts, m)[1]))
    error = math.sqrt(max(0.0, variance[0, 0] + variance[2, 2] - 2 * variance[0, 2]))
    logit = logs[2] - logs[0]
    low, high = (1 / (1 + math.exp(-max(-700.0, min(700.0, logit + side * _Z * error)))) for side in (-1, 1))
    return JointEstimate(float(share), float(low), float(high))


def _derivatives(logs: F64, counts: I64, m: float) -> tuple[F64, F64]:
    """Gradient and Hessian by differences."""
    steps = np.eye(3) * JOINT.step
    centre = _log_likelihood(logs, counts, m)
    ups = np.array([_log_likelihood(logs + each, counts, m) for each in steps])
    downs = np.array([_log_likelihood(logs - each, counts, m) for each in steps])
    curve = np.diag((ups - 2 * centre + downs) / JOINT.step**2)
    for i, j in ((0, 1), (0, 2), (1, 2)):
        corners = [
            _log_likelihood(logs + a * steps[i] + b * steps[j], counts, m) * a * b for a in (-1, 1) for b in (-1, 1)
        ]
        curve[i, j] = curve[j, i] = sum(corners) / (4 * JOINT.step**2)
    return (ups - downs) / (2 * JOINT.step), curve


def _positive(matrix: F64) -> F64:
    """A matrix made positive definite: flat and saddle directions get a little curvature."""
    values, vectors = np.linalg.eigh(matrix)
    found: F64 = vectors @ np.diag(np.maximum(values, 1e-6)) @ vectors.T
    return found
