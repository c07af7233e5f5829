"""The `report` command: parse, call, print."""

from __future__ import annotations

from lakescope.faces.cli.output import ReportFormat, write
from lakescope.faces.cli.progress import ShareLine
from lakescope.lake import Lake
from lakescope.show.text import size_text


def print_report(lake: Lake, out: str, form: ReportFormat, *, quiet: bool) -> None:
    """Write a report of a lake, and print where it begins."""
    line = ShareLine("writing", quiet=quiet)
    try:
        written = lake.report(out, form.value, progress=line)
    finally:
        line.close()
    write(f"{written.tables:,} tables on {written.pages:,} pages, {size_text(written.bytes)}: {written.start}")
