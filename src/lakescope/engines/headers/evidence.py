"""What the values of a column look like, as terms: the second evidence, for columns that share no values (3.9).

Numbers and dates rarely repeat between tables, but they are written alike, lie in like ranges, stand at like places. A
profile is turned into a few *terms* in *families*: shapes of cells, lengths, how values repeat, range, middle, place in
the table, words. A header is then as likely as its columns have these terms more often than others have.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import lru_cache
from typing import Any

Record = dict[str, Any]

#: Families of terms; ``tokens`` are the values themselves, which the inverted index knows.
FAMILIES = ("shapes", "outlines", "lengths", "repeats", "range", "middle", "place", "words")
#: Fields of the catalog that terms are made of.
FIELDS = (
    *("table", "position", "column", "type", "type_share", "rows", "nulls", "distinct", "minimum", "maximum", "mean"),
    *("quartiles", "length_min", "length_max", "length_mean", "length_median", "top", "patterns", "sample"),
)

_WORDS = 100
_SHAPES, _OUTLINES = 4, 2
#: Seconds of ten years: dates are told apart by decade.
_DECADE = 10 * 365.25 * 86_400
_CAPITALISED, _CAPITALS, _LONG_NUMBER = re.compile(r"A?a+"), re.compile(r"A+"), re.compile(r"9{5,}")
_LETTERS, _DIGITS, _MANY_WORDS = re.compile(r"[Aa]+"), re.compile(r"9+"), re.compile(r"w( w)+")
_WORD = re.compile(r"[^\W\d_]+|\d+|[^\w\s]")


def terms_of(record: Record, width: int) -> dict[str, list[str]]:
    """The terms of a column of a table of ``width`` columns, by family, from its profile."""
    filled = max(1, record["rows"] - record["nulls"])
    shapes: Counter[str] = Counter()
    outlines: Counter[str] = Counter()
    for pattern in record["patterns"] or ():
        shapes[_shape(pattern["value"])] += pattern["count"]
        outlines[_outline(pattern["value"])] += pattern["count"]
    share = record["distinct"] / filled
    missing = record["nulls"] / max(1, record["rows"])
    repeats = f"{'all' if share == 1 else int(5 * share)}/{min(record['distinct'], 3)}/{math.ceil(2 * missing)}"
    return {
        "shapes": [shape for shape, _ in shapes.most_common(_SHAPES)] or ["none"],
        "outlines": [outline for outline, _ in outlines.most_common(_OUTLINES)] or ["none"],
        "lengths": [f"{_magnitude(record['length_median'] or 0)}/{_magnitude(record['length_max'] or 0)}"],
        "repeats": [repeats],
        "range": [_range(record)],
        "middle": [_middle(record)],
        "place": [f"{record['position']}", f"{width - record['position']} of {min(width, 8)}"],
        "words": _words(record) or ["none"],
    }


@lru_cache(maxsize=1 << 14)
def _shape(pattern: str) -> str:
    """A pattern of the profile with runs of letters as one word; digits count up to four."""
    words = _CAPITALS.sub("W", _CAPITALISED.sub("w", pattern))
    return _LONG_NUMBER.sub("9+", words)


@lru_cache(maxsize=1 << 14)
def _outline(pattern: str) -> str:
    """The pattern with all runs as one."""
    return _MANY_WORDS.sub("w w", _DIGITS.sub("9", _LETTERS.sub("w", pattern)))


def _magnitude(number: float) -> int:
    """0 below 1, then the power of two."""
    return 0 if abs(number) < 1 else 1 + int(math.log2(min(abs(number), 1e300)))


def _number(text: str | None) -> float | None:
    try:
        return float(text) if text is not None else None
    except ValueError:
        return None


def _range(record: Record) -> str:
    """Type and order of magnitude of the extremes; numbers counted through from 0 or 1 are told."""
    kind = record["type"]
    low, high = _number(record["minimum"]), _number(record["maximum"])
    if kind in ("integer", "decimal") and low is not None and high is not None:
        counted = kind == "integer" and low in (0, 1) and high - low + 1 == record["distinct"]
        sign = "-" if low < 0 else ""
        return f"{kind} {sign}{_magnitude(low)}..{_magnitude(high)}{' counted' if counted else ''}"
    mixed = "" if record["type_share"] == 1 else " mixed"
    return f"{kind}{mixed} {_magnitude(record['length_min'] or 0)}"


def _middle(record: Record) -> str:
    """Where the middle lies: of numbers the median by half powers of two, of times the decade, of text its length."""
    kind = record["type"]
    if kind in ("integer", "decimal") and record["quartiles"]:
        median = record["quartiles"][1]
        return f"{kind} {'-' if median < 0 else ''}{int(2 * math.log2(min(abs(median), 1e300) + 1))}"
    if record["mean"] is not None:
        return f"{kind} {int(record['mean'] // _DECADE)}"
    return f"{kind} {int(4 * math.log2((record['length_mean'] or 0) + 1))}"


def _words(record: Record) -> list[str]:
    """Words, numbers and marks in the values that the profile remembers."""
    found: dict[str, None] = {}
    values = [*(record["sample"] or ()), *(entry["value"] for entry in record["top"] or ())]
    for value in dict.fromkeys(values):
        found.update(dict.fromkeys(_WORD.findall(value.lower())))
    return list(found)[:_WORDS]
