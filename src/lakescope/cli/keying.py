"""The `inclusions` and `keys` commands: parse, call, print."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lakescope.cli.output import Format, print_results, say, write
from lakescope.errors import BadRequest
from lakescope.lake import Lake

SHOWN = ("all", "primary", "foreign", "withheld")


def print_inclusions(lake: Lake, minimum: float, options: dict[str, Any], *, explain: bool, form: Format) -> None:
    """Print pairs of columns of which one is included in the other."""
    results = lake.inclusions(minimum, **options)
    print_results(results, form, empty=f"no column is included in another to {minimum:.0%}")
    if explain:
        say("; ".join(f"{name}: {value:,}" for name, value in results.info.items()))


def print_keys(lake: Lake, options: dict[str, Any], *, diagram: str | None, sql: bool, show: str, form: Format) -> None:
    """Print primary and foreign keys and what was withheld, or draw them."""
    if show not in SHOWN:
        raise BadRequest(f"cannot show {show!r}", hint=f"use {', '.join(SHOWN)}")
    if sql and diagram is not None:
        raise BadRequest("either --sql or --diagram", hint="ask twice")
    if sql:
        write(lake.key_diagram("sql", **options))
        return
    if diagram == "mermaid":
        write(lake.key_diagram("mermaid", **options))
        return
    if diagram is not None:
        path = Path(diagram)
        if path.suffix.lower() != ".svg":
            raise BadRequest(f"cannot draw into {diagram}", hint="name a file that ends in .svg, or say mermaid")
        if path.is_dir() or not path.absolute().parent.is_dir():
            raise BadRequest(f"cannot write {diagram}", hint="name a file in a directory that is there")
        path.write_text(lake.key_diagram("svg", **options), "utf-8")
        say(f"{diagram}: drawn")
        return
    if form is not Format.table or show != "all":
        _print_one(lake, options, "foreign" if show == "all" else show, form)
        return
    lake.foreign_keys(**options)  # refuses what cannot be asked before anything is printed
    for title, part in (("Primary keys", "primary"), ("Foreign keys", "foreign"), ("Withheld", "withheld")):
        write(title if part == "primary" else f"\n{title}")
        _print_one(lake, options, part, form)


def _print_one(lake: Lake, options: dict[str, Any], part: str, form: Format) -> None:
    if part == "primary":
        print_results(lake.primary_keys(**options), form, empty="no table has a column that tells its rows apart")
    elif part == "foreign":
        print_results(lake.foreign_keys(**options), form, empty="no column refers to the key of another table")
    else:
        print_results(lake.foreign_keys(**options, withheld=True), form, empty="nothing was withheld")
