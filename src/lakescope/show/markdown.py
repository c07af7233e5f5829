"""The pages of a report as Markdown: the same summaries, for repositories, wikis and whoever reads text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from lakescope.show.fields import (
    Fields,
    Link,
    Summary,
    Value,
    alert_fields,
    chosen,
    column_fields,
    join_fields,
    lake_facts,
    problem_fields,
    reference_fields,
    table_fields,
)
from lakescope.show.text import shorten, size_text

#: What Markdown would take for its own, or HTML for a tag.
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#~&$!])")
_WIDTH = 80


def plain(text: object, width: int = _WIDTH) -> str:
    """Text that Markdown leaves as it is."""
    return _SPECIAL.sub(r"\\\1", shorten(str(text), width))


def lake_markdown(lake: Summary, link: Link) -> str:
    """The lake at a glance, its tables, references and problems."""
    facts = [*lake_facts(lake["info"]), ("indexed", lake["info"]["created"])]
    parts = [
        f"# {plain(lake['lake'])}",
        _lines(("fact", "value"), [[name, plain(value)] for name, value in facts]),
        "## Tables",
        _grid(_TABLE, map(table_fields, lake["tables"]), link),
    ]
    if lake["references"]:
        parts += ["## References", _grid(_REFERENCE, map(reference_fields, lake["references"]), link)]
    if lake["problems"]:
        parts += ["## Problems", _grid(_PROBLEM, map(problem_fields, lake["problems"]), link)]
    return _text([*parts, *_notes(lake["notes"])])


def table_markdown(table: Summary, link: Link) -> str:
    """A table: alerts first, then its columns, keys, joins and problems."""
    about = f"{table['rows']:,} rows, {len(table['columns']):,} columns, {table['format']}, {size_text(table['bytes'])}"
    parts = [f"# {plain(table['table'], 200)}", about, f"[All tables]({_UP})"]
    if table["alerts"]:
        alerts = (alert_fields(each["alert"], some) for each in table["alerts"] for some in each["columns"])
        parts += ["## Alerts", _grid(("alert", "column", "detail"), alerts, link)]
    parts += ["## Columns", _grid(_COLUMN, map(column_fields, table["columns"]), link)]
    if table["key"]:
        parts += ["## Key", plain(", ".join(table["key"]["columns"]))]
    for title, references in (("Refers to", table["refers_to"]), ("Is referred to by", table["referred_by"])):
        if references:
            parts += [f"## {title}", _grid(_REFERENCE, map(reference_fields, references), link)]
    if table["joins"]:
        parts += ["## Tables that join with it", _grid(_JOIN, map(join_fields, table["joins"]), link)]
    if table["problems"]:
        names = [name for name in _PROBLEM if name != "table"]
        parts += ["## Problems", _grid(names, map(problem_fields, table["problems"]), link)]
    return _text([*parts, *_notes(table["notes"])])


_UP = "../index.md"


#: What is said of a column, of a table on one line, of a reference, a join and a problem.
_COLUMN = (
    *("column", "type", "missing", "distinct", "minimum", "maximum", "distribution"),
    *("quartiles", "most frequent", "note"),
)
_TABLE = ("table", "format", "rows", "columns", "size", "missing", "key", "links", "alerts")
_REFERENCE = ("table", "columns", "refers to", "key", "values found", "keys used", "score", "why")
_JOIN = ("column", "table", "its column", "fit", "of its values", "of theirs", "common", "rows", "such as")
_PROBLEM = ("severity", "table", "problem", "what happened", "times")


def _grid(names: Sequence[str], things: Iterable[Fields], link: Link) -> str:
    return _lines(names, [[_cell(value, link) for value in row] for row in chosen(things, names)])


def _cell(value: Value, link: Link) -> str:
    text = plain(value.shown(), value.width + len(value.after))
    address = link(value.text) if value.kind == "table" else None
    return f"[{text}]({address})" if address else text


def _lines(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def _notes(notes: Sequence[str]) -> list[str]:
    return ["\n".join(f"- {plain(note, 300)}" for note in notes)] if notes else []


def _text(parts: Sequence[str]) -> str:
    return "\n\n".join(parts) + "\n"
