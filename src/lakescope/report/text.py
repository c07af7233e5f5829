"""Plain-text faces: numbers a person can read, one line per column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lakescope.report.profile import TableProfile

_BARS = " ▁▂▃▄▅▆▇█"


def profile_text(profile: TableProfile) -> str:
    """A table's profile as aligned text."""
    head = f"{profile.name}: {profile.rows:,} rows, {len(profile.columns)} columns"
    rows = [column_line(column) for column in profile.columns]
    names = ["column", "type", "missing", "distinct", "minimum", "maximum", "distribution", "top", "note"]
    lines = [head, "", *aligned(names, rows)]
    for problem in profile.problems:
        lines.append(f"{problem['severity']}: {problem['code']} (x{problem['count']}): {problem['detail']}")
    return "\n".join(lines)


def column_line(column: dict[str, Any]) -> list[str]:
    """The short form of a column: what fits on one line."""
    missing = 0.0 if column["completeness"] is None else 1 - column["completeness"]
    top = column["top"][0] if column["top"] and column["top"][0]["count"] > 1 else None
    return [
        shorten(column["name"], 28),
        column["type"],
        percent(missing),
        ("" if column["distinct_exact"] else "~") + f"{column['distinct']:,}",
        shorten(column["minimum"] or "", 16),
        shorten(column["maximum"] or "", 16),
        sparkline([bin_["count"] for bin_ in column["histogram"]] if column["histogram"] else []),
        f"{shorten(top['value'], 16)} ({percent(top['count'] / column['rows'])})" if top else "",
        ", ".join(column["alerts"]),
    ]


def percent(share: float) -> str:
    """A share as a short percentage; never 0% or 100% when it is not."""
    if share == 0 or share == 1:
        return f"{share:.0%}"
    return "<0.1%" if share < 0.001 else (">99.9%" if share > 0.999 else f"{share:.1%}")


def sparkline(counts: Sequence[int]) -> str:
    """A histogram in one line of block characters."""
    peak = max(counts, default=0)
    return "".join(_BARS[0 if not count else max(1, round(8 * count / peak))] for count in counts) if peak else ""


def shorten(text: str, width: int) -> str:
    """Text on one line, cut to a width."""
    flat = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
    return flat if len(flat) <= width else flat[: width - 1] + "…"


def size_text(size: float) -> str:
    """Bytes in a readable unit."""
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def aligned(names: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A header and rows as columns of even width."""
    widths = [max(len(name), *(len(row[i]) for row in rows)) if rows else len(name) for i, name in enumerate(names)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in [names, *rows]
    ]
