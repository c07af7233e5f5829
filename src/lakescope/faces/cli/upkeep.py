"""What ``lakescope verify --deep`` and ``lakescope repair`` print."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

import lakescope
from lakescope.faces.cli.output import Format, print_results, say

if TYPE_CHECKING:
    from lakescope.lake import Lake


def print_findings(lake: Lake, form: Format) -> None:
    """Print what is wrong with an index; it is a failure if anything is."""
    living = sys.stderr.isatty()

    def progress(done: int, files: int) -> None:
        if living:
            sys.stderr.write(f"\rfile {done:,} of {files:,}" + "\n" * (done == files))

    found = lake.verify(deep=True, progress=progress)
    print_results(found, form, empty=f"{lake.path}: every file is whole, and all of them agree")
    if found:
        say("hint: lakescope repair takes out what is damaged; else build the index again")
        raise typer.Exit(1)


def print_repairs(path: str, form: Format, *, dry_run: bool) -> None:
    """Print what was done to an index, or would be."""
    found = lakescope.repair(path, dry_run=dry_run)
    print_results(found, form, empty=f"{path}: nothing to repair")
