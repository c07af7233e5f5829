"""Values that may stand for a missing one: 999, "unknown", 1900-01-01 (what the thesis left for later; spec 4.11).

A value is suspicious if it is one people write for "nothing", or if it lies far beyond all others of its column and yet
occurs again and again. Whoever agrees names it as missing before asking for dependencies.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from lakescope.array_types import F64, I64
from lakescope.engines.dependencies.table import CodedTable, read
from lakescope.results import Results
from lakescope.values.standins import (
    is_code_for_nothing,
    is_day_for_nothing,
    is_number_for_nothing,
    is_word_for_nothing,
)


@dataclass(frozen=True, slots=True)
class DisguiseTuning:
    """When a value may stand for a missing one."""

    #: Rows that must share a value, at least. Not measured: fewer say nothing.
    fewest: int = 3
    #: How often it must occur, as a multiple of its like. Not measured: a guess.
    often: float = 3.0
    #: How far beyond all others a number must lie, in spans of them. Not measured: a half.
    beyond: float = 0.5
    #: Share of the cells that must be numbers for a column to be numeric. Not measured: nearly all.
    mostly: float = 0.9


DISGUISES = DisguiseTuning()


@dataclass(frozen=True, slots=True)
class Disguised:
    """A value that may stand for a missing one: in how many rows, which share of them, and why."""

    column: str
    value: str
    count: int
    share: float
    reason: str


def disguised(query: Any, missing: tuple[str, ...] = ()) -> Results[Disguised]:
    """Values of a table that may stand for missing ones, the most frequent first."""
    return Results(Disguised, disguised_in(read(query, missing, texts=True)))


def disguised_in(table: CodedTable) -> list[Disguised]:
    """Values that may stand for missing ones, the most frequent first, of a table that was read with its texts."""
    found = [each for column in range(table.columns) for each in _of_column(table, column)]
    return sorted(found, key=lambda each: (-each.count, each.column, each.value))


def _of_column(table: CodedTable, column: int) -> list[Disguised]:
    texts = table.texts[column]
    codes = table.codes[column]
    counts: I64 = np.bincount(codes[codes >= 0], minlength=len(texts)).astype(np.int64)
    if counts.size < 2:
        return []
    numbers = np.array([_number(text) for text in texts], np.float64)
    numeric = counts[~np.isnan(numbers)].sum() >= DISGUISES.mostly * counts.sum()
    reasons = {code: "a word for nothing" for code, text in enumerate(texts) if is_word_for_nothing(text)}
    reasons = {code: why for code, why in reasons.items() if counts[code] > 1}
    for code, why in _extremes(texts, numbers) if numeric else _days_and_codes(texts):
        # More often than its like.
        if counts[code] >= max(DISGUISES.fewest, DISGUISES.often * float(np.median(np.delete(counts, code)))):
            reasons.setdefault(code, why)
    return [
        Disguised(table.names[column], texts[code], int(counts[code]), int(counts[code]) / table.rows, why)
        for code, why in reasons.items()
    ]


def _extremes(texts: list[str], numbers: F64) -> Iterator[tuple[int, str]]:
    """The least and the largest number, if they lie beyond all others as ordinary ones do not."""
    known = np.flatnonzero(~np.isnan(numbers))
    order = known[np.argsort(numbers[known], kind="stable")]
    if order.size < 3:
        return
    for code, rest in ((int(order[0]), order[1:]), (int(order[-1]), order[:-1])):
        low, high = float(numbers[rest[0]]), float(numbers[rest[-1]])
        beyond = max(low - numbers[code], numbers[code] - high)
        if is_number_for_nothing(texts[code]):
            yield code, "a number people write for nothing, beyond all others"
        elif beyond > DISGUISES.beyond * (high - low) > 0:
            yield code, "beyond all others, and again and again"


def _days_and_codes(texts: list[str]) -> Iterator[tuple[int, str]]:
    ends = min(texts), max(texts)
    for code, text in enumerate(texts):
        if is_day_for_nothing(text) and text in ends:
            yield code, "a day that stands for none"
        elif is_code_for_nothing(text):
            yield code, "a code that stands for none"


def _number(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        return float("nan")
    return found if np.isfinite(found) else float("nan")
