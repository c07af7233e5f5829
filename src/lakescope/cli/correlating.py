"""The `correlate` and `augment` commands: parse, call, print."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lakescope.cli.joining import chosen
from lakescope.cli.output import Format, print_results, say, write
from lakescope.errors import BadRequest, NotFound
from lakescope.lake import Lake


def parse_weights(text: str | None) -> dict[str, float] | None:
    """``join=1,corr=2`` as a dictionary."""
    if text is None:
        return None
    weights = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        try:
            weights[name.strip()] = float(value)
        except ValueError:
            equals = ""
        if not equals:
            raise BadRequest(f"cannot read the weights {text!r}", hint="write join=1,corr=1")
    return weights


def parse_key(text: str) -> list[str]:
    """``country,year`` as columns."""
    return [part.strip() for part in text.split(",") if part.strip()]


def print_correlations(
    lake: Lake,
    query: str,
    key: str,
    target: str,
    options: dict[str, Any],
    *,
    plot: str | None,
    code: str | None,
    hit: int,
    explain: bool,
    form: Format,
) -> None:
    """Print the columns that correlate with a query's target; draw or write code for one of them if asked.

    ``hit`` is the number of that one, from 1.
    """
    if plot is not None and (Path(plot).is_dir() or not Path(plot).absolute().parent.is_dir()):
        raise BadRequest(f"cannot write {plot}", hint="name a file in a directory that is there")
    if plot is not None and Path(plot).suffix.lower() != ".svg":
        raise BadRequest(f"cannot write {plot}: pictures are SVG", hint="name a file that ends in .svg")
    if hit != 1 and not (plot or code):
        raise BadRequest("--hit chooses what --plot or --code are about", hint="name one of them, too")
    columns = _columns(lake, query, key)
    # Too small a number is refused, not raised to that of the hit.
    wanted = max(options["k"], hit) if options["k"] > 0 else options["k"]
    results = lake.correlated(query, columns, target, **{**options, "k": wanted})
    if (plot or code) and not results:
        raise NotFound("no column correlates: there is nothing to draw", hint="ask without --plot and --code")
    picked = chosen(results, hit) if plot or code else None
    if code is not None and picked is not None:
        told = {"target": target, "query_agg": options["query_agg"]}
        write(lake.correlation_code(query, columns, picked, code, **told))
        return
    print_results(results, form, empty="no column correlates")
    if plot is not None and picked is not None:
        picture = lake.scatter(query, columns, target, picked, query_agg=options["query_agg"])
        Path(plot).write_text(picture, "utf-8")
        say(f"{plot}: {picked.table} {picked.column} against {target}")
    if explain:
        say("; ".join(f"{name}: {value}" for name, value in results.info.items()))


def print_augmented(
    lake: Lake, query: str, key: str, target: str, out: str, options: dict[str, Any], form: Format
) -> None:
    """Join the best columns into a table, write it, print what each adds."""
    results = lake.augment(query, _columns(lake, query, key), target, out, **options)
    print_results(results, form, empty="no column correlates: nothing was added")
    if results:
        say(f"{out}: {len(results)} columns added")


def _columns(lake: Lake, query: str, key: str) -> list[str]:
    """A key as it was typed: one column if there is one of that name, else several."""
    parts = parse_key(key)
    if not parts:
        raise BadRequest("no key was named", hint="name a column: --key date")
    return [key] if len(parts) == 1 else parts
