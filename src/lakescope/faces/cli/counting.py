"""The `count` command: parse, call, print."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from lakescope.errors import BadRequest
from lakescope.faces.cli.output import Format, print_records, print_results, say, write
from lakescope.faces.cli.progress import ShareLine

_UNITS = {"": 1, "b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}
_ADVICE = ["counter", "fits", "error", "bytes", "parameters", "reasons"]


def number(text: str, option: str) -> float:
    """A number such as 1e9."""
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found < float("inf"):
        raise BadRequest(f"{option} must be a positive number, not {text!r}", hint="write 1000000 or 1e6")
    return found


def size(text: str, option: str = "--memory") -> float:
    """Bytes such as 16KB."""
    found = re.fullmatch(r"\s*([0-9.]+)\s*([a-zA-Z]*)\s*", text)
    if not found or found[2].lower() not in _UNITS:
        raise BadRequest(f"{option} must be a size, not {text!r}", hint="write 16KB, 2MB or 16384")
    return number(found[1], option) * _UNITS[found[2].lower()]


def named(text: str, *, everything: bool) -> list[str]:
    """Names of counters, separated by commas."""
    from lakescope.sketches.design import BY_NAME

    if everything or text.strip() == "all":
        return [name for name in BY_NAME if everything or name not in ("exact", "gee")]
    return [name.strip().lower() for name in text.split(",") if name.strip()]


def split_column(path: str) -> tuple[str, str | None]:
    """``data/x.csv:city`` as path and column; a colon of a URI, of ``::sheet`` or of a file name is none of these."""
    if Path(path).exists():
        return path, None
    location, colon, column = path.rpartition(":")
    if not colon or not column or "/" in column or location.endswith(":"):
        return path, None
    return location, column


def print_counts(
    path: str,
    names: Sequence[str],
    *,
    error: float,
    memory: float | None,
    n_max: float | None,
    exact: bool,
    quiet: bool,
    form: Format,
) -> None:
    """Count the columns of a location."""
    from lakescope.engines.counting.count import count

    location, column = split_column(path)
    line = ShareLine("counting", quiet=quiet)
    try:
        results = count(
            location,
            None if column is None else [column],
            counters=names,
            error=error,
            memory=memory,
            n_max=n_max,
            exact=exact,
            progress=line,
        )
    finally:
        line.close()
    print_results(results, form, empty="no column")


def print_stored(path: str, form: Format) -> None:
    """Print what the writers of tables have counted."""
    from lakescope.engines.counting.stored import stored_counts

    location, column = split_column(path)
    print_results(stored_counts(location, None if column is None else [column]), form, empty="no counts are stored")


def print_advice(error: float, memory: float | None, n_max: float | None, needs: dict[str, bool], form: Format) -> None:
    """Say which counter suits, best first."""
    from lakescope.sketches.design import Needs, advise

    found = advise(Needs(error=error, memory=memory, n_max=n_max, **needs))
    records = [
        {
            "counter": advice.design.name,
            "fits": advice.fits,
            "error": advice.design.error,
            "bytes": advice.design.bytes,
            "parameters": ", ".join(f"{name}={value}" for name, value in advice.design.parameters.items()),
            "reasons": "; ".join(advice.reasons),
        }
        for advice in found
    ]
    print_records(records, _ADVICE, form, empty="")


def run_study(
    path: str | None,
    largest: float,
    names: Sequence[str],
    *,
    error: float,
    seeds: int,
    out: str | None,
    quiet: bool,
    form: Format,
) -> None:
    """Compare counters, on tables of one's own, too, if a path is given; write a report if asked to."""
    from lakescope.engines.counting.count import count
    from lakescope.studies.counters import study, write_report

    line = ShareLine("studying", quiet=quiet)
    try:
        trials = study(largest, counters=names, error=error, seeds=seeds, progress=line)
        sketches = [name for name in names if name != "exact"]
        own = count(path, counters=sketches, error=error, exact=True, progress=line) if path else None
    finally:
        line.close()
    print_results(trials, form, empty="")
    if own is not None and out is None:
        write("")
        print_results(own, form, empty="no column")
    if out is not None:
        say(f"report: {write_report(out, trials, own)}")
