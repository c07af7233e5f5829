"""What a value is: the reference definition of nulls, kinds and canonical text.

This module is the format promise in code (``docs/values.md`` is the same in words): every index ever written depends
on it, so any change here is a new ``VALUES_VERSION``. It favours being read over being fast; ``values.kernels`` is
the fast twin for the common cases and hands every cell it is not certain about back to :func:`canonical`.

The canonical form is a function of the single value, never of its column (Law 1): that is what lets a value be hashed
where it is read, before anybody knows the column's type.
"""

from __future__ import annotations

import math
import re
import unicodedata
from datetime import date, datetime, timedelta
from enum import IntEnum
from typing import NamedTuple

#: Version of everything in this module and of the hash; stored in every index, compared before anything is combined.
VALUES_VERSION = 1

#: Cells that mean "no value", compared after trimming, case-sensitively ("NA" is missing, "na" is the language Nauru).
#: The widely known list of pandas, plus the dashes of published tables and the \\N of database dumps.
NULL_MARKERS = frozenset(
    [
        *["", "-", "--", "\\N", "NA", "N/A", "n/a", "#NA", "#N/A", "#N/A N/A", "<NA>"],
        *["NULL", "null", "None", "NaN", "nan", "-NaN", "-nan"],
        *["1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"],
    ]
)

#: Longest text, in characters, that is brought to NFC: normalising takes quadratic time on hostile input.
NORMALISED_LENGTH = 16_384

#: Longest plain (exponent-free) notation: numbers of more integer digits are written in scientific form.
PLAIN_DIGITS = 40


class Kind(IntEnum):
    """What one cell is, judged alone."""

    NULL = 0
    INTEGER = 1
    DECIMAL = 2
    BOOLEAN = 3
    DATE = 4
    TIME = 5
    TIMESTAMP = 6
    CODE = 7
    """Number-shaped with a leading zero (``00501``): a code, never the number 501."""
    TEXT = 8


class Value(NamedTuple):
    """One cell understood: its kind, canonical text, number (or epoch seconds) and written precision."""

    kind: Kind
    text: str
    number: float = math.nan
    digits: int = 0
    decimals: int = 0
    leading: int = 0
    """First digit that is not zero, for Benford's law."""


NULL_VALUE = Value(Kind.NULL, "")

_NUMBER = re.compile(r"([+-]?)(?:([0-9]+)(?:\.([0-9]+))?|\.([0-9]+))(?:[eE]([+-]?[0-9]{1,6}))?")
_INFINITE = re.compile(r"([+-]?)(?:inf|Inf|Infinity)")
_ISO = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
    r"(?:[T ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?(Z|[+-][0-9]{2}(?::?[0-9]{2})?)?)?"
)
_CLOCK = re.compile(r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?( ?[AaPp][Mm])?")
_YEAR_FIRST = re.compile(r"([0-9]{4})([-/.])([0-9]{1,2})\2([0-9]{1,2})")
_YEAR_LAST = re.compile(r"([0-9]{1,2})([-/.])([0-9]{1,2})\2([0-9]{4}|[0-9]{2})")
_MONTH = (
    r"(jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)"
)
_DAY_MONTH = re.compile(r"([0-9]{1,2})([ -])" + _MONTH + r"\2([0-9]{4}|[0-9]{2})", re.IGNORECASE | re.ASCII)
_MONTH_DAY = re.compile(_MONTH + r"\.? ([0-9]{1,2}),? ([0-9]{4})", re.IGNORECASE | re.ASCII)
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_EPOCH = date(1970, 1, 1)
#: Characters of the longest text that may be a date or a time.
_LONGEST_MOMENT = 48


def canonical(raw: str) -> Value:
    """Understand one cell: trim, drop null markers, recognise its kind and bring it to canonical text."""
    text = raw.strip()
    if len(text) <= NORMALISED_LENGTH:
        text = unicodedata.normalize("NFC", text)
    if text in NULL_MARKERS:
        return NULL_VALUE
    return _number(text) or _moment(text) or _word(text)


def decode(cell: bytes, fallback: str = "cp1252") -> str:
    """Decode a cell: UTF-8 where it is valid, else the table's fallback encoding, else Latin-1. Never fails.

    Deciding per cell and not per file keeps the answer independent of where a big file was cut.
    """
    try:
        return cell.decode("utf-8")
    except UnicodeDecodeError:
        pass
    try:
        return cell.decode(fallback)
    except (UnicodeDecodeError, LookupError):
        return cell.decode("latin-1")


def _number(text: str) -> Value | None:
    match = _NUMBER.fullmatch(text)
    if match is None:
        return _infinite(text)
    sign, whole, fraction, bare_fraction, exponent = match.groups()
    fraction = fraction or bare_fraction or ""
    whole = whole or ""
    number = float(text)
    if len(whole) > 1 and whole[0] == "0":
        return Value(Kind.CODE, text, number, len(whole) + len(fraction), len(fraction))
    kind = Kind.INTEGER if not fraction and exponent is None else Kind.DECIMAL
    form = plain_number(sign == "-", whole + fraction, int(exponent or 0) - len(fraction))
    leading = int((whole + fraction).lstrip("0")[:1] or 0)
    return Value(kind, form, number, len(whole) + len(fraction), len(fraction), leading)


def plain_number(negative: bool, digits: str, exponent: int) -> str:
    """Write ``digits * 10**exponent`` in its one canonical form: exact, no exponent unless very large or small."""
    digits = digits.lstrip("0")
    if not digits:
        return "0"
    point = len(digits) + exponent
    digits = digits.rstrip("0")
    if 0 < point <= PLAIN_DIGITS:
        form = digits.ljust(point, "0")
        form = form if len(form) == point else f"{form[:point]}.{form[point:]}"
    elif -6 < point <= 0:
        form = "0." + "0" * -point + digits
    else:
        mantissa = digits if len(digits) == 1 else f"{digits[0]}.{digits[1:]}"
        form = f"{mantissa}e{point - 1:+d}"
    return "-" + form if negative else form


def _infinite(text: str) -> Value | None:
    match = _INFINITE.fullmatch(text)
    if match is None:
        return None
    return Value(Kind.DECIMAL, "-inf", -math.inf) if match[1] == "-" else Value(Kind.DECIMAL, "inf", math.inf)


def _moment(text: str) -> Value | None:
    if len(text) > _LONGEST_MOMENT:
        return None
    if not (text[0].isascii() and text[0].isalnum() and text[-1].isascii() and text[-1].isalnum()):
        return None
    return _iso(text) or _clock(text) or _local_date(text) or _local_timestamp(text)


def _iso(text: str) -> Value | None:
    match = _ISO.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    days = _days(int(year), int(month), int(day))
    if days is None:
        return None
    if hour is None:
        return Value(Kind.DATE, text, days * 86400.0)
    clock = _seconds(int(hour), int(minute), int(second or 0))
    shift = _zone_seconds(zone)
    if clock is None or shift is None:
        return None
    fraction = (fraction or "").rstrip("0")
    number = days * 86400.0 + clock - shift + (float("0." + fraction) if fraction else 0.0)
    if shift:
        moment = datetime(int(year), int(month), int(day), int(hour), int(minute), int(second or 0))
        try:
            form = (moment - timedelta(seconds=shift)).isoformat()
        except OverflowError:
            return None
    elif zone is None and clock == 0 and not fraction:
        return Value(Kind.TIMESTAMP, f"{year}-{month}-{day}", number)
    else:
        form = f"{year}-{month}-{day}T{hour}:{minute}:{second or '00'}"
    return Value(Kind.TIMESTAMP, form + (f".{fraction}" if fraction else "") + ("Z" if zone else ""), number)


def _clock(text: str) -> Value | None:
    match = _CLOCK.fullmatch(text)
    if match is None:
        return None
    hour, minute, second, fraction, half = match.groups()
    clock = _seconds(int(hour), int(minute), int(second or 0))
    if clock is None:
        return None
    if half:
        if not 1 <= int(hour) <= 12:
            return None
        clock = clock % 43200 + (43200 if half.strip().lower() == "pm" else 0)
        return Value(Kind.TIME, text, float(clock))
    kept = (fraction or "").rstrip("0")
    form = text
    if len(hour) == 2:
        form = f"{hour}:{minute}:{second or '00'}" + (f".{kept}" if kept else "")
    return Value(Kind.TIME, form, clock + (float("0." + kept) if kept else 0.0))


def _local_date(text: str) -> Value | None:
    """Dates as people write them: recognised, kept as written, because only their column could tell day from month."""
    if match := _YEAR_FIRST.fullmatch(text):
        days = _days(int(match[1]), int(match[3]), int(match[4]))
        return None if days is None else Value(Kind.DATE, text, days * 86400.0)
    if match := _YEAR_LAST.fullmatch(text):
        first, second = int(match[1]), int(match[3])
        short_year = len(match[4]) == 2
        possible = 1 <= min(first, second) <= 12 and max(first, second) <= 31
        return Value(Kind.DATE, text) if possible and not (short_year and match[2] != "/") else None
    if match := _DAY_MONTH.fullmatch(text):
        return _named_month(text, match[4], match[3], match[1])
    if match := _MONTH_DAY.fullmatch(text):
        return _named_month(text, match[3], match[1], match[2])
    return None


def _named_month(text: str, year: str, month: str, day: str) -> Value | None:
    number = _MONTHS.index(month[:3].lower()) + 1
    if len(year) == 2:
        return Value(Kind.DATE, text) if 1 <= int(day) <= 31 else None
    days = _days(int(year), number, int(day))
    return None if days is None else Value(Kind.DATE, text, days * 86400.0)


def _local_timestamp(text: str) -> Value | None:
    for cut in (i for i, char in enumerate(text) if char in " T"):
        clock = _clock(text[cut + 1 :])
        day = _local_date(text[:cut]) if clock else None
        if clock and day:
            return Value(Kind.TIMESTAMP, text, day.number + clock.number)
    return None


def _word(text: str) -> Value:
    lower = text.lower()
    if lower in ("true", "false"):
        return Value(Kind.BOOLEAN, lower)
    return Value(Kind.TEXT, text)


def _days(year: int, month: int, day: int) -> int | None:
    try:
        return (date(year, month, day) - _EPOCH).days
    except ValueError:
        return None


def _seconds(hour: int, minute: int, second: int) -> int | None:
    return hour * 3600 + minute * 60 + second if hour < 24 and minute < 60 and second < 60 else None


def _zone_seconds(zone: str | None) -> int | None:
    if zone is None or zone == "Z":
        return 0
    hours, minutes = int(zone[1:3]), int(zone[3:].replace(":", "") or 0)
    if hours > 15 or minutes > 59:
        return None
    return (hours * 3600 + minutes * 60) * (-1 if zone[0] == "-" else 1)
