"""A study as a page with charts, and its numbers as CSV and JSON beside it."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lakescope._version import __version__
from lakescope.show.formulas import guarded_text
from lakescope.show.markup import text as html_text

_STYLE = (
    "body{font:15px/1.5 sans-serif;max-width:1000px;margin:2em auto;padding:0 1em}"
    "figure{display:inline-block;width:480px;margin:0}svg{width:100%}"
    "table{border-collapse:collapse;font-size:13px}td,th{padding:2px 10px 2px 0;text-align:left}"
    "@media(prefers-color-scheme:dark){body{background:#111;color:#ddd}}"
)


def write_study(
    folder: str | Path,
    rows: Sequence[Mapping[str, Any]],
    *,
    title: str,
    about: str,
    charts: Iterable[str],
    shown: Sequence[str],
    sections: Mapping[str, str] | None = None,
) -> Path:
    """Write ``study.html``, ``study.csv`` and ``study.json``; ``sections`` are headings and HTML. Returns the page."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    (target / "study.json").write_text(json.dumps(list(rows), indent=1), "utf-8")
    (target / "study.csv").write_text(_csv(rows), "utf-8")
    figures = "".join(f"<figure>{chart}</figure>" for chart in charts if chart)
    parts = {**(sections or {}), "Numbers": html_table(shown, ([row[name] for name in shown] for row in rows))}
    body = "".join(f"<h2>{html_text(heading)}</h2>{part}" for heading, part in parts.items())
    page = target / "study.html"
    page.write_text(
        f"<!doctype html><html lang='en'><head><meta charset='utf-8'><title>{html_text(title)}</title>"
        f"<style>{_STYLE}</style></head><body><h1>{html_text(title)}</h1>"
        f"<p>lakescope {html_text(__version__)}: {html_text(about)}</p>{figures}{body}</body></html>",
        "utf-8",
    )
    return page


def html_table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Rows as an HTML table."""
    names = "".join(f"<th>{html_text(name)}</th>" for name in head)
    body = "".join("<tr>" + "".join(f"<td>{html_text(_cell(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{names}</tr>{body}</table>"


def _csv(rows: Sequence[Mapping[str, Any]]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: guarded_text(cell) if isinstance(cell, str) else cell for name, cell in row.items()})
    return out.getvalue()


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.4g}"
    return f"{value:,}" if isinstance(value, int) else ("" if value is None else str(value))
