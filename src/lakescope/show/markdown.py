"""The pages of a report as Markdown: the same summaries, for repositories, wikis and whoever reads text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lakescope.show.text import cell_text, percent, shorten, size_text

Summary = Mapping[str, Any]
Link = Callable[[str], str | None]

#: What Markdown would take for its own, or HTML for a tag.
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#~&$!])")
_WIDTH = 80


def plain(text: object, width: int = _WIDTH) -> str:
    """Text that Markdown leaves as it is."""
    return _SPECIAL.sub(r"\\\1", shorten(str(text), width))


def lake_markdown(lake: Summary, link: Link) -> str:
    """The lake at a glance, its tables, references and problems."""
    info = lake["info"]
    facts = [
        ("tables", f"{info['tables']:,}"),
        ("columns", f"{info['columns']:,}"),
        ("rows", f"{info['rows']:,}"),
        ("data", size_text(info["bytes"])),
        ("errors, warnings", f"{info['errors']:,}, {info['warnings']:,}"),
        ("indexed", info["created"]),
    ]
    tables = [
        [
            _linked(line["table"], link),
            *(line["format"], f"{line['rows']:,}", f"{line['columns']:,}", size_text(line["bytes"])),
            percent(line["missing"]),
            plain(", ".join(line["key"])),
            plain(", ".join(f"{count} {alert}" for alert, count in line["alerts"].items())),
        ]
        for line in lake["tables"]
    ]
    parts = [
        f"# {plain(lake['lake'])}",
        _table(("fact", "value"), [[name, plain(value)] for name, value in facts]),
        "## Tables",
        _table(("table", "format", "rows", "columns", "size", "missing", "key", "alerts"), tables),
    ]
    if lake["references"]:
        parts += ["## References", _references(lake["references"], link)]
    if lake["problems"]:
        parts += ["## Problems", _problems(lake["problems"], link)]
    return _text([*parts, *_notes(lake["notes"])])


def table_markdown(table: Summary, link: Link) -> str:
    """A table: alerts first, then its columns, keys, joins and problems."""
    about = f"{table['rows']:,} rows, {len(table['columns']):,} columns, {table['format']}, {size_text(table['bytes'])}"
    parts = [f"# {plain(table['table'], 200)}", about, f"[All tables]({_UP})"]
    if table["alerts"]:
        alerts = [
            [each["alert"], plain(some["column"]), plain(some["detail"])]
            for each in table["alerts"]
            for some in each["columns"]
        ]
        parts += ["## Alerts", _table(("alert", "column", "detail"), alerts)]
    parts += ["## Columns", _columns(table["columns"])]
    if table["key"]:
        parts += ["## Key", plain(", ".join(table["key"]["columns"]))]
    for title, references in (("Refers to", table["refers_to"]), ("Is referred to by", table["referred_by"])):
        if references:
            parts += [f"## {title}", _references(references, link)]
    if table["joins"]:
        joins = [
            [
                plain(each["query_column"]),
                _linked(each["table"], link),
                plain(each["column"]),
                _share(each, "containment"),
                f"{each['overlap']:,}",
                each["quality"] + (", may be chance" if each["by_chance"] else ""),
            ]
            for each in table["joins"]
        ]
        head = ("column", "table", "its column", "of its values", "common", "fit")
        parts += ["## Tables that join with it", _table(head, joins)]
    if table["problems"]:
        parts += ["## Problems", _problems(table["problems"], None)]
    return _text([*parts, *_notes(table["notes"])])


_UP = "../index.md"


def _columns(columns: Sequence[Summary]) -> str:
    rows = []
    for column in columns:
        missing = 0.0 if column["completeness"] is None else 1 - column["completeness"]
        quartiles = ", ".join(cell_text(value) for value in column["quartiles"] or ())
        top = ", ".join(f"{each['value']} ({each['count']:,})" for each in (column["top"] or ())[:3])
        rows.append(
            [
                *(plain(column["name"]), column["type"], percent(missing)),
                ("" if column["distinct_exact"] else "≈ ") + f"{column['distinct']:,}",
                *(plain(column["minimum"] or "", 30), plain(column["maximum"] or "", 30)),
                *(plain(quartiles), plain(top), ", ".join(column["alerts"])),
            ]
        )
    head = ("column", "type", "missing", "distinct", "minimum", "maximum", "quartiles", "most frequent", "alerts")
    return _table(head, rows)


def _references(references: Sequence[Summary], link: Link) -> str:
    rows = [
        [
            _linked(each["child_table"], link),
            plain(", ".join(each["child_columns"])),
            _linked(each["parent_table"], link),
            plain(", ".join(each["parent_columns"])),
            _share(each, "inclusion"),
            f"{each['score']:.2f}",
        ]
        for each in references
    ]
    return _table(("table", "columns", "refers to", "columns", "values found", "score"), rows)


def _share(record: Summary, name: str) -> str:
    if record["exact"] or record["low"] == record["high"]:
        return percent(record[name])
    return f"≈ {percent(record[name])} ({percent(record['low'])} to {percent(record['high'])})"


def _problems(problems: Sequence[Summary], link: Link | None) -> str:
    rows = [
        [
            each["severity"],
            *([_linked(each["table"], link)] if link else []),
            *(each["code"], plain(each["detail"], 200), f"{each['count']:,}"),
        ]
        for each in problems
    ]
    return _table(("severity", *(("table",) if link else ()), "problem", "what happened", "times"), rows)


def _linked(table: str, link: Link) -> str:
    address = link(table)
    return f"[{plain(table)}]({address})" if address else plain(table)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def _notes(notes: Sequence[str]) -> list[str]:
    return ["\n".join(f"- {plain(note, 300)}" for note in notes)] if notes else []


def _text(parts: Sequence[str]) -> str:
    return "\n\n".join(parts) + "\n"
