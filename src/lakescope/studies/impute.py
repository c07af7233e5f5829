"""Missing numbers filled in by what the other columns say: PMM, RI and QUAD (van Buuren 2012; spec 4.9).

*PMM*, predictive mean matching: the value of a row whose prediction is near. *RI*, random indicator: predictions,
shifted by what rows that might as well be missing differ in. *QUAD*: the value whose line and square together fit
what another column says. Three ways that err differently, so what holds after all three is likely to hold at all.
Columns that are not numbers get values as frequent as there are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from lakescope.array_types import F64, I64, Bools
from lakescope.engines.dependencies.table import CodedTable
from lakescope.errors import BadRequest

Method = Literal["pmm", "ri", "quad"]
Fill = Callable[[F64, F64, Bools, np.random.Generator], F64]

METHODS: tuple[Method, ...] = ("pmm", "ri", "quad")


@dataclass(frozen=True, slots=True)
class ImputationTuning:
    """How many steps the ways to fill in values take."""

    #: Rounds in which every column is filled in anew from the others. Not measured: van Buuren (2012) finds five to ten
    #: enough.
    rounds: int = 5
    #: Rows that a value may be taken from. Not measured: the usual five (van Buuren 2012).
    donors: int = 5
    #: Steps of the missingness model, in each of which it is fitted and the shift found anew. Not measured: a guess.
    steps: int = 5
    #: Steps of Newton's method that fit it. Not measured: a guess.
    newton: int = 5
    #: What is added to the diagonal of a regression so that it can be solved. Not measured: small.
    ridge: float = 1e-6
    #: What is added to the diagonal of the missingness model. Not measured: small.
    flat: float = 1e-3


IMPUTING = ImputationTuning()


def imputed(table: CodedTable, method: Method, *, seed: int = 1, bins: int = 0) -> CodedTable:
    """A table without missing values; numbers are cut into so many intervals of equal width, if wanted.

    Without intervals a number that was filled in is the nearest of those that are there. A column without any value
    stays as it is. The table must have its texts.
    """
    if method not in METHODS:
        raise BadRequest(f"no imputation {method!r}", hint=f"use {', '.join(METHODS)}")
    dice = np.random.default_rng(seed)
    values = [_numbers(table, column) for column in range(table.columns)]
    numeric = [column for column, each in enumerate(values) if each is not None]
    filled = _chained([values[column] for column in numeric], _FILLS[method], dice)  # type: ignore[misc]
    codes = table.codes.copy()
    for column in range(table.columns):
        gone = codes[column] < 0
        if column in numeric:
            known = values[column]
            assert known is not None
            codes[column] = _recoded(codes[column], known, filled[numeric.index(column)], bins)
        elif gone.any() and not gone.all():
            codes[column, gone] = dice.choice(codes[column, ~gone], int(gone.sum()))
    return CodedTable(table.names, codes)


def _numbers(table: CodedTable, column: int) -> F64 | None:
    """A column's numbers, NaN where one is missing; None if it has other values or fewer than three."""
    try:
        values = np.array([float(text) for text in table.texts[column]], np.float64)
    except ValueError:
        return None
    if values.size < 3 or not np.isfinite(values).all():
        return None
    found: F64 = np.append(values, np.nan)[table.codes[column]]
    return found


def _recoded(codes: npt.NDArray[np.int32], known: F64, filled: F64, bins: int) -> npt.NDArray[np.int32]:
    if bins:
        low, high = float(filled.min()), float(filled.max())
        width = (high - low) / bins or 1.0
        return np.minimum((filled - low) / width, bins - 1).astype(np.int32)
    there = ~np.isnan(known)
    values, first = np.unique(known[there], return_index=True)
    found = codes.copy()
    found[~there] = codes[there][first[_nearest(values, filled[~there])]]
    return found


def _nearest(ordered: F64, wanted: F64) -> I64:
    """Where in some ordered numbers the one nearest to each of others is."""
    right = np.clip(np.searchsorted(ordered, wanted), 1, max(1, ordered.size - 1))
    left = right - 1
    right = np.minimum(right, ordered.size - 1)
    found: I64 = np.where(wanted - ordered[left] <= ordered[right] - wanted, left, right)
    return found


def _chained(columns: list[F64], fill: Fill, dice: np.random.Generator) -> list[F64]:
    """Every column filled in from all others, several times (chained equations)."""
    lacking = [np.isnan(each) for each in columns]
    filled = [each.copy() for each in columns]
    for each, gone in zip(filled, lacking, strict=True):
        each[gone] = dice.choice(each[~gone], int(gone.sum()))
    for _ in range(IMPUTING.rounds):
        for place, gone in enumerate(lacking):
            if gone.any():
                others = _design([each for at, each in enumerate(filled) if at != place], gone.size)
                filled[place] = fill(filled[place], others, gone, dice)
    return filled


def _design(columns: list[F64], rows: int) -> F64:
    """Other columns as predictors: centred and scaled, beside a constant."""
    parts = [np.ones(rows)]
    for each in columns:
        spread = float(each.std())
        parts.append((each - each.mean()) / spread if spread else np.zeros(rows))
    return np.stack(parts, axis=1)


def _regression(x: F64, y: F64, dice: np.random.Generator) -> tuple[F64, F64, float]:
    """Coefficients by least squares, coefficients drawn by chance around them, and the spread that goes with those."""
    inverse = np.linalg.inv(x.T @ x + IMPUTING.ridge * np.eye(x.shape[1]))
    best = inverse @ x.T @ y
    free = max(1, y.size - x.shape[1])
    spread = float(np.sqrt(max(0.0, float(((y - x @ best) ** 2).sum())) / dice.chisquare(free)))
    drawn = best + spread * np.linalg.cholesky(inverse) @ dice.standard_normal(best.size)
    return best, drawn, spread


def _matched(observed: F64, wanted: F64, values: F64, dice: np.random.Generator) -> F64:
    """For each prediction the value of one of the rows whose own are nearest."""
    order = np.argsort(observed, kind="stable")
    donors = min(IMPUTING.donors, order.size)
    middle = _nearest(observed[order], wanted)
    begin = np.clip(middle - donors // 2, 0, order.size - donors)
    found: F64 = values[order[begin + dice.integers(0, donors, wanted.size)]]
    return found


def _pmm(y: F64, x: F64, gone: Bools, dice: np.random.Generator) -> F64:
    best, drawn, _ = _regression(x[~gone], y[~gone], dice)
    filled = y.copy()
    filled[gone] = _matched(x[~gone] @ best, x[gone] @ drawn, y[~gone], dice)
    return filled


def _ri(y: F64, x: F64, gone: Bools, dice: np.random.Generator) -> F64:
    """A model of missingness and one of values take turns: each sees what the other made of it."""
    filled = _pmm(y, x, gone, dice)
    for _ in range(IMPUTING.steps):
        spread = float(filled.std()) or 1.0
        seen = np.column_stack([x, (filled - filled.mean()) / spread])
        chances = _logistic(seen, gone, seen)
        # Rows that are there, but might as well not be, tell how those that are not differ.
        alike = dice.random(y.size) < chances
        beside = np.column_stack([x, alike])
        _, drawn, noise = _regression(beside[~gone], y[~gone], dice)
        shifted = np.column_stack([x[gone], np.ones(int(gone.sum()))]) @ drawn
        filled[gone] = shifted + noise * dice.standard_normal(shifted.size)
    return filled


def _logistic(x: F64, labels: Bools, wanted: F64) -> F64:
    """The chance of rows to have a label, by a logistic model of others (Newton's steps on a ridge)."""
    weights = np.zeros(x.shape[1])
    for _ in range(IMPUTING.newton):
        chances = _chance(x @ weights)
        curvature = (x * (chances * (1 - chances))[:, None]).T @ x + IMPUTING.flat * np.eye(x.shape[1])
        weights += np.linalg.solve(curvature, x.T @ (labels - chances) - IMPUTING.flat * weights)
    return _chance(wanted @ weights)


def _chance(odds: F64) -> F64:
    found: F64 = 1 / (1 + np.exp(-np.clip(odds, -30, 30)))
    return found


def _quad(y: F64, x: F64, gone: Bools, dice: np.random.Generator) -> F64:
    """Line and square of a column together fit another one; that sum is matched, and the value taken out of it."""
    there = ~gone
    middle, spread = float(y[there].mean()), float(y[there].std()) or 1.0
    scaled = (y - middle) / spread
    other = _best_fitted(scaled[there], x[there])
    if other is None:
        return _pmm(y, x, gone, dice)
    line = np.column_stack([np.ones(int(there.sum())), scaled[there], scaled[there] ** 2])
    _, slope, bend = np.linalg.lstsq(line, x[there, other], rcond=None)[0]
    if abs(bend) < 1e-6:
        return _pmm(y, x, gone, dice)
    sums = slope * scaled + bend * scaled**2
    best, drawn, _ = _regression(x[there], sums[there], dice)
    wanted = _matched(x[there] @ best, x[gone] @ drawn, sums[there], dice)
    top = -slope / (2 * bend)
    root = np.sqrt(np.maximum(0.0, slope**2 + 4 * bend * wanted)) / (2 * abs(bend))
    # On which side of the parabola's axis a value lies is as likely as the other columns say.
    above = scaled[there] > top
    side = dice.random(wanted.size) < _logistic(x[there], above, x[gone])
    filled = y.copy()
    filled[gone] = (top + np.where(side, root, -root)) * spread + middle
    return filled


def _best_fitted(y: F64, x: F64) -> int | None:
    """The other column that a parabola over this one fits best."""
    line = np.column_stack([np.ones(y.size), y, y**2])
    left = [
        float(((x[:, at] - line @ np.linalg.lstsq(line, x[:, at], rcond=None)[0]) ** 2).sum())
        for at in range(1, x.shape[1])
    ]
    return 1 + int(np.argmin(left)) if left else None


_FILLS: dict[str, Fill] = {"pmm": _pmm, "ri": _ri, "quad": _quad}
