"""Values that may stand for a missing one: 999, "unknown", 1900-01-01 (what the thesis left for later; spec 4.11).

A value is suspicious if it is one people write for "nothing", or if it lies far beyond all others of its column and yet
occurs again and again. Whoever agrees names it as missing before asking for dependencies.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lakescope.fds.table import CodedTable, read
from lakescope.results import Results

I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]

_WORDS = frozenset(
    (
        "unknown;not known;unspecified;not specified;not available;not applicable;not given;not provided;no data;"
        "no value;none given;missing;undefined;tbd;to be determined;to be announced;tba;?;??;???;-;--;---;.;..;"
        "xxx;xxxx;unbekannt;inconnu;desconocido;sconosciuto;onbekend;empty;blank;dummy;default"
    ).split(";")
)
_DAYS = ("1900-01-01", "1899-12-30", "1899-12-31", "1970-01-01", "1753-01-01", "0001-01-01", "9999-12-31", "2999-12-31")
#: Numbers that stand for nothing: nines, and negative ones, ones and eights.
_NUMBER = re.compile(r"-?9{2,}(\.9+)?|-1|-9|-8{2,}|-7{2,}")
#: Codes of one digit, or of all of them in order.
_CODE = re.compile(r"(\d)\1{3,}|0123456789|123456789|12345|1234")
#: Rows that must share a value, at least, and how often an ordinary one occurs at most, in comparison.
_FEWEST, _OFTEN = 3, 3.0
#: How far beyond all others a number lies, in spans of them.
_BEYOND = 0.5
_MOSTLY = 0.9


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
    """The same of a table that has been read, with its texts."""
    found = [each for column in range(table.columns) for each in _of_column(table, column)]
    return sorted(found, key=lambda each: (-each.count, each.column, each.value))


def _of_column(table: CodedTable, column: int) -> list[Disguised]:
    texts = table.texts[column]
    codes = table.codes[column]
    counts: I64 = np.bincount(codes[codes >= 0], minlength=len(texts)).astype(np.int64)
    if counts.size < 2:
        return []
    numbers = np.array([_number(text) for text in texts], np.float64)
    numeric = counts[~np.isnan(numbers)].sum() >= _MOSTLY * counts.sum()
    reasons = {code: "a word for nothing" for code, text in enumerate(texts) if text.lower() in _WORDS}
    reasons = {code: why for code, why in reasons.items() if counts[code] > 1}
    for code, why in _extremes(texts, numbers) if numeric else _days_and_codes(texts):
        # More often than its like.
        if counts[code] >= max(_FEWEST, _OFTEN * float(np.median(np.delete(counts, code)))):
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
        if _NUMBER.fullmatch(texts[code]):
            yield code, "a number people write for nothing, beyond all others"
        elif beyond > _BEYOND * (high - low) > 0:
            yield code, "beyond all others, and again and again"


def _days_and_codes(texts: list[str]) -> Iterator[tuple[int, str]]:
    ends = min(texts), max(texts)
    for code, text in enumerate(texts):
        if text[:10] in _DAYS and text in ends:
            yield code, "a day that stands for none"
        elif _CODE.fullmatch(text):
            yield code, "a code that stands for none"


def _number(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        return float("nan")
    return found if np.isfinite(found) else float("nan")
