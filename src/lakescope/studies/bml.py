"""BML, the estimator of inclusion from HyperLogLog of Nazi et al. (2018), and Bottom-k, which it was measured against.

Kept as published, errata mended (spec-correlation-and-inclusion 4.3 to 4.7): what an answer rests on is in
``engines.keys.inclusion``, which is better by a factor of two to four at equal memory. ``Phi`` is the share of X's
values that are in Y.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from lakescope.array_types import F64, U64
from lakescope.sketches.ertl import improved_estimate
from lakescope.sketches.loglog import Registers, fold_registers, register_histogram

Load = Literal["average", "exact"]

_BITS = 64
#: The bisection ends when it knows the share this closely.
_WIDTH = 1e-5


def not_above(phi: float, n_x: float, n_y: float, precision: int, load: Load = "exact") -> float:
    """The chance that a register of X is not above the one of Y (4.3): 1 exactly if X is included in Y.

    All cases of the paper are one: only the values of X that are not in Y can be above. ``load`` says how values fall
    into registers: ``average``, as printed, as many into each, or ``exact``, by chance, which leaves some empty.
    """
    k = np.arange(_BITS - precision + 2, dtype=np.float64)
    alone, below = _at_most(n_x * (1 - phi), k, precision, load), _at_most(n_y, k, precision, load)
    return float((alone * np.diff(below, prepend=0.0)).sum())


def _at_most(n: float, k: F64, precision: int, load: Load) -> F64:
    """The chance that a register holds at most ``k`` after ``n`` values."""
    if n <= 0:
        return np.ones(k.size)
    with np.errstate(divide="ignore"):
        if load == "exact":
            return np.exp(n * np.log1p(-np.exp2(-(precision + k))))
        return np.exp(n / 2.0**precision * np.log1p(-np.exp2(-k)))


def solved(share: float, n_x: float, n_y: float, precision: int, load: Load = "average") -> float:
    """The inclusion at which so many registers of X are not above those of Y, by bisection (algorithm 2, put right)."""
    most = min(1.0, n_y / n_x)
    low, high = 0.0, most
    if share <= not_above(0.0, n_x, n_y, precision, load):
        return 0.0
    if share >= not_above(most, n_x, n_y, precision, load):
        return most
    while high - low > _WIDTH:
        middle = (low + high) / 2
        if not_above(middle, n_x, n_y, precision, load) > share:
            high = middle
        else:
            low = middle
    return (low + high) / 2


def bml(x: Registers, y: Registers) -> float:
    """The paper's estimate: registers folded to the size of equation 12, average load."""
    precision = x.size.bit_length() - 1
    n_x, n_y = (max(1.0, improved_estimate(register_histogram(each, precision), precision)) for each in (x, y))
    fewer = max(0, min(precision, round(math.log2(max(n_x, n_y)) / 2)))
    x, y = (fold_registers(each, precision, fewer) for each in (x, y))
    return solved(float(np.mean(x <= y)), n_x, n_y, fewer)


def error_bound(phi: float, n_x: float, n_y: float, precision: int, confidence: float = 0.95) -> float:
    """How far BML may be off at most, with this confidence (4.5; the constant is that of the inequality)."""
    spread = math.sqrt(math.log(2 / (1 - confidence)) / 2.0 ** (precision + 1))
    slope = _slope(phi, n_x, n_y, precision)
    return min(1.0, spread / slope) if slope > 0 else 1.0


def _slope(phi: float, n_x: float, n_y: float, precision: int) -> float:
    step = 1e-4
    low, high = max(0.0, phi - step), min(1.0, phi + step)
    difference = not_above(high, n_x, n_y, precision, "average") - not_above(low, n_x, n_y, precision, "average")
    return difference / (high - low)


def bottom_k(x: U64, y: U64, k: int) -> float | None:
    """Zhang's estimate from the ``k`` smallest hashes of each, in order; None if none of X's is among the union's."""
    smallest = np.union1d(x, y)[:k]
    mine = np.isin(smallest, x, assume_unique=True)
    if not mine.any():
        return None
    return float(np.isin(smallest[mine], y, assume_unique=True).mean())
