"""Ertl's estimators of the number of values behind HyperLogLog registers (2017): no tables, no ranges, no bump.

Both take the histogram of register values: ``counts[k]`` registers hold ``k``, from 0 to ``q + 1`` with ``q = 64 - p``.
"""

from __future__ import annotations

import math

import numpy as np

from lakescope.array_types import F64

#: What alpha of HyperLogLog tends to.
_ALPHA_INFINITY = 0.5 / math.log(2.0)


def improved_estimate(counts: F64, precision: int) -> float:
    """The improved raw estimator (algorithm 6): HyperLogLog's harmonic mean with both ends of the range put right."""
    m = float(1 << precision)
    q = 64 - precision
    if counts[0] == m:
        return 0.0
    z = m * _tau(1.0 - counts[q + 1] / m)
    for k in range(q, 0, -1):
        z = 0.5 * (z + counts[k])
    z += m * _sigma(counts[0] / m)
    return float(_ALPHA_INFINITY * m * m / z)


def _sigma(x: float) -> float:
    y, z = 1.0, x
    while True:
        x *= x
        before = z
        z += x * y
        y += y
        if z == before:
            return z


def _tau(x: float) -> float:
    if x in (0.0, 1.0):
        return 0.0
    y, z = 1.0, 1.0 - x
    while True:
        x = math.sqrt(x)
        before = z
        y *= 0.5
        z -= (1.0 - x) ** 2 * y
        if z == before:
            return z / 3.0


def ml_estimate(counts: F64, precision: int, tolerance: float = 1e-4) -> float:
    """The maximum of the Poisson likelihood of the registers, found by Newton steps on its derivative.

    With rate x = n / m, a register holds at most k with probability exp(-x / 2**k) for k below q + 1. The derivative of
    the log-likelihood is a decreasing function of x, so a bracketed Newton iteration always ends at its one root.
    """
    m = float(1 << precision)
    q = 64 - precision
    if counts[0] == m:
        return 0.0
    if counts[q + 1] == m:
        return math.inf
    levels = np.arange(1, q + 2)
    # A register that holds k: all its values gave at most k, one gave k. At q + 1 the run ended with the bits.
    scale = np.exp2(-np.minimum(levels, q).astype(np.float64))
    hit, held = counts[1:], counts[1 : q + 1]
    pull = counts[0] + float((held * np.exp2(-levels[:-1].astype(np.float64))).sum())
    x = improved_estimate(counts, precision) / m
    low, high = 0.0, math.inf
    bound = tolerance / math.sqrt(m)
    for _ in range(100):
        # d/dx log P = -pull + sum over hit registers of scale / (exp(x scale) - 1).
        grown = np.expm1(np.minimum(x * scale, 700.0))
        slope = float((hit * scale / grown).sum()) - pull
        curve = -float((hit * scale * scale * (grown + 1.0) / (grown * grown)).sum())
        low, high = (x, high) if slope > 0 else (low, x)
        step = x - slope / curve
        if not low < step < high:
            step = (low + high) / 2 if math.isfinite(high) else 2 * x
        done = abs(step - x) <= bound * x
        x = step
        if done:
            break
    return float(m * x)
