"""The `join` command: parse, call, print."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from lakescope.cli.output import Format, print_results, say, write
from lakescope.errors import BadRequest, NotFound
from lakescope.lake import Lake
from lakescope.report.text import aligned, cell_text, printable
from lakescope.search.joinable import check_request

Hit = TypeVar("Hit")
#: How many are found unless more are asked for.
_SHOWN = 10


def print_joins(
    lake: Lake, query: str, on: str | None, options: dict[str, Any], *, explain: bool, form: Format
) -> None:
    """Print the columns that join with a query."""
    table, column = split_query(lake, query, on)
    if options["engine"] == "hybrid":
        stages = lake.joinable_stages(table, column, **{name: options[name] for name in options if name != "engine"})
        first = next(stages)
        if form is Format.table:
            print_results(first, form, empty="nothing found at first sight")
            say("estimated; exactly:")
        results = next(stages)
    else:
        results = lake.joinable(table, column, **options)
    print_results(results, form, empty="no column joins")
    if explain:
        for told in results.info.get("columns", [results.info]):
            say("; ".join(f"{name}: {value}" for name, value in told.items()))
        if "columns" in results.info and "fetched_bytes" in results.info:
            say(f"fetched_bytes: {results.info['fetched_bytes']}")


def print_paths(
    lake: Lake, query: str, on: str | None, depth: int, threshold: float | None, k: int | None, form: Format
) -> None:
    """Print the tables that can be reached from a query: all of them, or the ``k`` that come first."""
    table, column = split_query(lake, query, on)
    limits = {} if threshold is None else {"threshold": threshold}
    check_request(k, threshold, "auto", "overlap")
    found = lake.join_paths(table, column, depth=depth, **limits)[:k]
    if form is Format.table and found:
        # A path is the answer: it is told whole, however long it is.
        rows = [
            [*map(cell_text, (each.table, each.hops, each.containment)), printable(", ".join(each.joins))]
            for each in found
        ]
        write("\n".join(aligned(found.shown, rows)))
    else:
        print_results(found, form, empty="no table can be reached")


def refuse_with_paths(**given: object) -> None:
    """Refuse options that say nothing about paths."""
    for name, value in given.items():
        if value:
            raise BadRequest(f"--{name} does not go with --paths", hint="leave one of them out")


def print_code(lake: Lake, query: str, on: str | None, options: dict[str, Any], dialect: str, hit: int) -> None:
    """Print code for one of the joins that are found: the best one is number 1."""
    table, column = split_query(lake, query, on)
    if options["k"] is None and options["threshold"] is None:
        options = {**options, "k": max(hit, _SHOWN)}
    results = lake.joinable(table, column, **options)
    if not results:
        raise NotFound("no column joins: there is no code to write", hint="ask without --code to see why")
    write(lake.join_code(table, chosen(results, hit), dialect))


def print_path_code(
    lake: Lake, query: str, on: str | None, depth: int, threshold: float | None, dialect: str, hit: int
) -> None:
    """Print code for all joins of one of the paths that are found: the first one is number 1."""
    table, column = split_query(lake, query, on)
    limits = {} if threshold is None else {"threshold": threshold}
    results = lake.join_paths(table, column, depth=depth, **limits)
    if not results:
        raise NotFound("no table can be reached: there is no code to write", hint="ask with a lower --threshold")
    write(lake.path_code(table, chosen(results, hit), dialect))


def chosen(results: Sequence[Hit], hit: int) -> Hit:
    """One of the results, counted from 1 as they are printed."""
    if hit < 1:
        raise BadRequest(f"there is no hit {hit}", hint="the best one is --hit 1")
    if hit > len(results):
        raise NotFound(f"there is no hit {hit}: {len(results)} were found", hint="ask without --code to see them")
    return results[hit - 1]


def split_query(lake: Lake, query: str, on: str | None) -> tuple[str, str | None]:
    """``TABLE.COLUMN`` of the lake as table and column; anything else is a table."""
    names = set(lake.tables()["table"].to_pylist())
    if on is not None or query in names:
        return query, on
    for place in range(len(query) - 1, 0, -1):
        if query[place] in ".:" and query[:place] in names:
            return query[:place], query[place + 1 :]
    return query, None
