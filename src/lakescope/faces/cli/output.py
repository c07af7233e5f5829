"""Printing records: the same fields as a table for people, JSON or CSV for programs."""

from __future__ import annotations

import csv
import io
import os
import sys
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

import typer

from lakescope.results import Results
from lakescope.show.formulas import guarded_text
from lakescope.show.text import aligned, cell_text, json_text, visible

Record = dict[str, Any]

#: The exit code when nobody reads on, as a shell tells it of other tools: 128 and the number of SIGPIPE.
READER_GONE = 141


class Format(StrEnum):
    """How answers are printed."""

    table = "table"
    json = "json"
    csv = "csv"


class ReportFormat(StrEnum):
    """How a report is written."""

    html = "html"
    md = "md"
    json = "json"


def print_records(records: Sequence[Record], fields: Sequence[str], form: Format, *, empty: str) -> None:
    """Print records: the chosen fields as a table, or everything as JSON or CSV."""
    if form is Format.json:
        write(json_text(list(records), indent=1, default=_plain))
    elif form is Format.csv:
        write(_csv(records, fields).rstrip("\n"))
    elif not records:
        write(empty)
    else:
        rows = [[cell_text(record.get(field)) for field in fields] for record in records]
        write("\n".join(aligned(list(fields), rows)))


def print_record(record: Record, form: Format) -> None:
    """Print one record: name and value lines, or JSON or CSV."""
    if form is Format.table:
        width = max(len(name) for name in record)
        write("\n".join(f"{name.ljust(width)}  {cell_text(value, 200)}" for name, value in record.items()))
    elif form is Format.json:
        write(json_text(record, indent=1, default=_plain))
    else:
        write(_csv([record]).rstrip("\n"))


def _csv(records: Sequence[Record], fields: Sequence[str] = ()) -> str:
    """Records with all their fields; only the header of ``fields`` if there are none."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(records[0]) if records else list(fields), lineterminator="\n")
    writer.writeheader()
    for record in records:
        writer.writerow({name: _flat(value) for name, value in record.items()})
    return out.getvalue()


def _flat(value: Any) -> Any:
    if isinstance(value, list | dict | tuple):
        return json_text(value, default=_plain)
    return _plain(value) if isinstance(value, datetime) else guarded_text(value) if isinstance(value, str) else value


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def write(text: str) -> None:
    """Print an answer, with escapes for what steers a terminal, wherever it goes: a pipe may end in one.

    Where the reader goes away, as `| head` does, end like any other tool: silently.
    Not by the default action of SIGPIPE: that would be the end, too, when an object store or a database hangs up.
    """
    try:
        sys.stdout.write(visible(text) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        _write_to_nobody()
        sys.exit(READER_GONE)


def _write_to_nobody() -> None:
    """Let what standard output still holds go nowhere, for the interpreter writes it when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def say(text: str) -> None:
    """Say something beside the answer, on standard error."""
    typer.echo(visible(text), err=True)


def print_results(results: Results[Any], form: Format, *, empty: str) -> None:
    """Print an answer, its notes on standard error."""
    print_records(results.to_dicts(), results.shown, form, empty=empty)
    for note in results.notes:
        say(f"note: {note}")
