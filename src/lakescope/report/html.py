"""Notebook faces: small, self-contained HTML with everything escaped and no script."""

from __future__ import annotations

from html import escape
from typing import Any

from lakescope.report.text import percent, shorten, size_text

_CELL = "padding:2px 10px 2px 0;text-align:left;vertical-align:middle"


def lake_html(info: dict[str, Any]) -> str:
    """A lake at a glance."""
    facts = [
        ("tables", f"{info['tables']:,}"),
        ("columns", f"{info['columns']:,}"),
        ("rows", f"{info['rows']:,}"),
        ("data", size_text(info["bytes"])),
        ("errors, warnings", f"{info['errors']:,}, {info['warnings']:,}"),
        ("indexed", info["created"]),
    ]
    cells = "".join(
        f"<tr><th style='{_CELL}'>{escape(name)}</th><td style='{_CELL}'>{escape(value)}</td></tr>"
        for name, value in facts
    )
    return f"<div><b>Lake</b> {escape(info['path'])}<table>{cells}</table></div>"


def profile_html(profile: dict[str, Any]) -> str:
    """A table's profile: one row per column, a small histogram and the missing share in each."""
    names = ["column", "type", "missing", "distinct", "minimum", "maximum", "distribution", "top", "note"]
    head = "".join(f"<th style='{_CELL}'>{name}</th>" for name in names)
    body = "".join(_column_row(column) for column in profile["columns"])
    problems = "".join(
        f"<li>{escape(problem['severity'])}: {escape(problem['code'])} (&times;{problem['count']}): "
        f"{escape(problem['detail'])}</li>"
        for problem in profile["problems"]
    )
    return (
        f"<div><b>{escape(profile['table'])}</b>: {profile['rows']:,} rows, {len(profile['columns'])} columns"
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        + (f"<ul>{problems}</ul>" if problems else "")
        + "</div>"
    )


def _column_row(column: dict[str, Any]) -> str:
    missing = 0.0 if column["completeness"] is None else 1 - column["completeness"]
    top = column["top"][0] if column["top"] and column["top"][0]["count"] > 1 else None
    cells = [
        f"<b>{escape(shorten(column['name'], 60))}</b>",
        escape(column["type"]),
        escape(percent(missing)),
        ("" if column["distinct_exact"] else "&asymp;") + f"{column['distinct']:,}",
        escape(shorten(column["minimum"] or "", 24)),
        escape(shorten(column["maximum"] or "", 24)),
        _bars(column["histogram"] or []),
        f"{escape(shorten(top['value'], 24))} ({escape(percent(top['count'] / column['rows']))})" if top else "",
        escape(", ".join(column["alerts"])),
    ]
    return "<tr>" + "".join(f"<td style='{_CELL}'>{cell}</td>" for cell in cells) + "</tr>"


def _bars(histogram: list[dict[str, Any]]) -> str:
    peak = max((bin_["count"] for bin_ in histogram), default=0)
    if not peak:
        return ""
    heights = [20 * bin_["count"] / peak for bin_ in histogram]
    bars = "".join(
        f"<rect x='{5 * i}' y='{20 - heights[i]:.1f}' width='4' height='{heights[i]:.1f}'>"
        f"<title>{escape(str(bin_['low']))} to {escape(str(bin_['high']))}: {bin_['count']:,}</title></rect>"
        for i, bin_ in enumerate(histogram)
    )
    return f"<svg width='{5 * len(histogram)}' height='20' fill='#4c78a8' role='img'>{bars}</svg>"
