"""The `fds` command: parse, call, print."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakescope.cli.output import Format, print_results, say
from lakescope.cli.progress import ShareLine

if TYPE_CHECKING:
    from lakescope.lake import Lake


#: Degrees from which on they are counted together, as in the thesis.
_MANY = 5


#: What each question goes by, besides what all do: how much is printed, and how.
_PRINTED = {"limit", "form", "quiet"}
USED = {
    question: _PRINTED | asked
    for question, asked in {
        "": {"nulls", "max_lhs", "error", "missing", "by", "master", "budget"},
        "--compare": {"compare", "nulls", "max_lhs", "missing", "budget"},
        "--violations": {"violations", "nulls", "missing"},
        "--split": {"split", "nulls", "max_lhs", "error", "missing", "budget"},
        "--all": {"every", "nulls", "max_lhs", "error", "missing", "master", "budget", "out"},
        "--study": {"study", "max_lhs", "missing", "pattern", "target", "unit", "versions", "seed", "out"},
        "--reference": {"reference", "max_lhs", "missing", "budget", "bins", "seed"},
    }.items()
}


def parse_missing(text: str | None) -> tuple[str, ...]:
    """``?,unknown,999`` as texts."""
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def print_dependencies(table: str, options: dict[str, Any], *, master: str | None, limit: int, form: Format) -> None:
    """Print the dependencies of a table; of one that no memory holds, or if a master is given, by Spark."""
    import lakescope

    results = lakescope.dependencies(table, **options, master=master)
    print_results(results[:limit] if limit else results, form, empty="no dependency was found")


def print_compared(table: str, clean: str, options: dict[str, Any], *, limit: int, form: Format) -> None:
    """Print what became of dependencies beside a clean version of a table."""
    from lakescope.fds.compare import compare

    most = options["max_lhs"]
    found = compare(
        table,
        clean,
        options["nulls"],
        1_000 if most is None else most,
        missing=options["missing"],
        budget=options["budget"],
    )
    noted = found.with_note(", ".join(f"{found.info[word]:,} {word}" for word in ("same", "ghost", "fake", "genuine")))
    for line in _by_degree(found.info["degrees"]):
        noted = noted.with_note(line)
    print_results(noted[:limit] if limit else noted, form, empty="no dependency holds in either")


def _by_degree(counts: list[tuple[str, int, int]]) -> list[str]:
    """How many of each label there are of each degree, those of five and more together."""
    found: dict[int, dict[str, int]] = {}
    for label, degree, count in counts:
        beside = found.setdefault(min(degree, _MANY), {})
        beside[label] = beside.get(label, 0) + count
    return [
        f"degree {degree}{' and more' if degree == _MANY else ''}: "
        + ", ".join(f"{each[label]:,} {label}" for label in ("same", "ghost", "fake") if label in each)
        for degree, each in sorted(found.items())
    ]


def print_violations(table: str, broken: str, options: dict[str, Any], *, limit: int, form: Format) -> None:
    """Print the rows that break a dependency."""
    from lakescope.fds.violations import parse, violations

    lhs, rhs = parse(broken)
    found = violations(table, lhs, rhs, options["nulls"], options["missing"])
    print_results(found[:limit] if limit else found, form, empty="no row breaks it")


def print_splits(table: str, options: dict[str, Any], *, form: Format) -> None:
    """Print what to split off a table."""
    from lakescope.fds.split import splits

    name = Path(table.partition("::")[0]).stem or "this_table"
    chosen = {key: options[key] for key in ("nulls", "max_lhs", "error", "missing", "budget")}
    print_results(splits(table, **chosen, name=name), form, empty="nothing to split off")


def print_reference(table: str, options: dict[str, Any], *, bins: int, seed: int, limit: int, form: Format) -> None:
    """Print what holds however missing values are filled in."""
    from lakescope.fds.reference import reference

    chosen = {key: options[key] for key in ("max_lhs", "missing", "budget")}
    found = reference(table, **chosen, bins=bins, seed=seed)
    print_results(found[:limit] if limit else found, form, empty="no dependency was found")


def print_study(
    table: str, missing: str | None, options: dict[str, Any], *, out: str | None, quiet: bool, form: Format
) -> None:
    """Print what missing values do to the dependencies of a table; write a report if asked to."""
    from lakescope.fds.study import study, write_report

    shares, texts = _shares(parse_missing(missing))
    if shares:
        options["shares"] = shares
    line = ShareLine("studying", quiet=quiet)
    try:
        effects = study(table, missing=texts, progress=line, **options)
    finally:
        line.close()
    print_results(effects, form, empty="")
    if out is not None:
        say(f"report: {write_report(out, effects)}")


def _shares(parts: Sequence[str]) -> tuple[list[float], list[str]]:
    """Shares of missing values, and texts that stand for one."""
    shares, texts = [], []
    for part in parts:
        try:
            shares.append(float(part))
        except ValueError:
            texts.append(part)
    return shares, texts


def print_all(
    lake: Lake, options: dict[str, Any], *, master: str | None, out: str | None, limit: int, quiet: bool, form: Format
) -> None:
    """Print the best dependencies of all tables of a lake, found by one Spark job; write them all if asked to."""
    if not quiet:
        say("starting Spark ...")
    asked = {key: value for key, value in options.items() if key != "by"}
    found = lake.dependencies(**asked, limit=limit or None, out=out, master=master)
    print_results(found, form, empty="no dependency was found")
    if out is not None:
        say(f"all of them: {out}")
