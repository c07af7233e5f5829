"""Values that may stand for a missing one: 999, "unknown", 1900-01-01 (what the thesis left for later; spec 4.11).

A value is suspicious if it is one people write for "nothing", or if it lies far beyond all others of its column and yet
occurs again and again. Whoever agrees names it as missing before asking for dependencies.
"""

from __future__ import annotations

import re
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
        "no value;none given;missing;undefined;tbd;to be determined;to be announced;tba;?;??;???;-;--;---;.;..;x;xx;"
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
    filled = int(counts.sum())
    numbers = np.array([_number(text) for text in texts], np.float64)
    numeric = filled and counts[~np.isnan(numbers)].sum() >= _MOSTLY * filled
    found = []
    for code, text in enumerate(texts):
        reason = _word(text, counts, code) or (_number_reason(text, numbers, counts, code) if numeric else "")
        reason = reason or ("" if numeric else _day_or_code(text, texts, counts, code))
        if reason:
            share = int(counts[code]) / table.rows
            found.append(Disguised(table.names[column], text, int(counts[code]), share, reason))
    return found


def _number(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        return float("nan")
    return found if np.isfinite(found) else float("nan")


def _word(text: str, counts: I64, code: int) -> str:
    return "a word for nothing" if text.lower() in _WORDS and counts.size > 1 and counts[code] > 1 else ""


def _often(counts: I64, code: int) -> bool:
    """Whether a value occurs more often than its like."""
    others = np.delete(counts, code)
    return bool(counts[code] >= _FEWEST and others.size and counts[code] >= _OFTEN * np.median(others))


def _number_reason(text: str, numbers: F64, counts: I64, code: int) -> str:
    value = numbers[code]
    others = np.delete(numbers, code)
    others = others[~np.isnan(others)]
    if np.isnan(value) or others.size < 2 or not _often(counts, code):
        return ""
    low, high = float(others.min()), float(others.max())
    beyond = max(low - value, value - high)
    if _NUMBER.fullmatch(text) and beyond > 0:
        return "a number people write for nothing, beyond all others"
    return "beyond all others, and again and again" if beyond > _BEYOND * (high - low) > 0 else ""


def _day_or_code(text: str, texts: list[str], counts: I64, code: int) -> str:
    if not _often(counts, code):
        return ""
    if text[:10] in _DAYS and text in (min(texts), max(texts)):
        return "a day that stands for none"
    return "a code that stands for none" if _CODE.fullmatch(text) else ""
