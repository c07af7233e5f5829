"""Plain-text faces: numbers a person can read, one line per column."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Sequence
from datetime import datetime
from typing import Any

#: Characters that move a cursor, ring, colour or erase (C0, C1), end a line elsewhere, or set the direction of others;
#: and halves of surrogate pairs, which are none.
#: Characters that steer a terminal, turn the order of others, or are halves of one.
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_BARS = " ▁▂▃▄▅▆▇█"


def percent(share: float) -> str:
    """A share as a short percentage; never 0% or 100% when it is not."""
    if share == 0 or share == 1:
        return f"{share:.0%}"
    return "<0.1%" if share < 0.001 else (">99.9%" if share > 0.999 else f"{share:.1%}")


def sparkline(counts: Sequence[int]) -> str:
    """A histogram in one line of block characters."""
    peak = max(counts, default=0)
    return "".join(_BARS[0 if not count else max(1, round(8 * count / peak))] for count in counts) if peak else ""


def printable(text: str) -> str:
    """Text that stays on its line and moves no cursor.

    White space is no damage and does not look like it: line breaks and tabs are signs, other spaces are spaces.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _seen(char) for char in text.replace("\r\n", "\n"))


def visible(text: str) -> str:
    r"""Lines of text without characters that steer a terminal or turn the order of others: escapes stand for them.

    Line breaks and tabs stay. What is data for programs keeps all it says (``\x1b``), unlike what :func:`printable`
    makes of a cell that a person reads.
    """
    return STEERING.sub(lambda found: ascii(found[0])[1:-1], text)


def json_text(value: Any, **options: Any) -> str:
    """JSON in letters that can be read; characters that steer a terminal are its escapes, so that nothing is lost."""
    return STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False, **options))


def _seen(char: str) -> str:
    if char in "\n\r\x85\u2028\u2029":
        return "↵"
    if char == "\t":
        return "⇥"
    return " " if unicodedata.category(char) == "Zs" else "\N{REPLACEMENT CHARACTER}"


def shorten(text: str, width: int) -> str:
    """Printable text cut to a width."""
    flat = printable(text[: 2 * width])
    return flat if len(flat) <= width else flat[: width - 1] + "…"


def shorten_inside(text: str, width: int) -> str:
    """Printable text cut to a width in its middle: names of tables begin alike more often than they end alike."""
    flat = printable(text[:width] + text[width:][-width:])
    if len(text) <= width:
        return flat
    end = (width - 1) * 3 // 5
    return f"{flat[: width - 1 - end]}…{flat[-end:]}"


def columns_of(text: str) -> int:
    """Columns a text takes on a terminal: ideographs take two, combining marks none."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(unicodedata.combining(char) > 0 for char in text)


def size_text(size: float) -> str:
    """Bytes in a readable unit."""
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def rows_range(low: int, high: int) -> str:
    """How many rows tables have, from a number to the one before another: 10 to 100, 1k to 10k."""
    return f"{_short(low)} to {_short(high)}"


def _short(number: int) -> str:
    for size, unit in ((10**9, "B"), (10**6, "M"), (10**3, "k")):
        if number >= size:
            return f"{number // size}{unit}"
    return str(number)


def cell_text(value: Any, width: int = 80) -> str:
    """A value of a record as a person reads it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:.4g}"
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="seconds")[:19]
    if isinstance(value, dict):
        if value.keys() == {"value", "count"}:
            return f"{cell_text(value['value'], 40)} ({value['count']:,})"
        if value.keys() == {"low", "high", "count"}:
            return f"{cell_text(value['low'])} to {cell_text(value['high'])} ({value['count']:,})"
        return shorten(", ".join(f"{name} {cell_text(item)}" for name, item in value.items()), width)
    if isinstance(value, list | tuple):
        return shorten(", ".join(cell_text(item) for item in value), width)
    return shorten(str(value), width)


def aligned(names: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A header and rows as columns of even width."""
    table = [names, *rows]
    widths = [max(columns_of(row[i]) for row in table) for i in range(len(names))]
    return [
        "  ".join(cell + " " * (width - columns_of(cell)) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in table
    ]
