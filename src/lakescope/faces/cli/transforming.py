"""The `autojoin` and `fuzzyjoin` commands: parse, call, print."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakescope.engines.transforms.clock import Clock
from lakescope.errors import BadRequest, NotFound
from lakescope.faces.cli.output import Format, print_record, print_records, print_results, say, write
from lakescope.faces.cli.progress import TextLine
from lakescope.show.text import aligned, shorten

if TYPE_CHECKING:
    from lakescope.lake import Lake

#: Rows of the joined table, of evidence and of what is left that are shown.
_SHOWN = 5
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


def seconds(text: str) -> float:
    """``30s``, ``2m`` or plain seconds."""
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([smh]?)", text.strip())
    if found is None:
        raise BadRequest(f"{text!r} is no time", hint="write 30s, 2m or 1h")
    return float(found[1]) * _UNITS[found[2]]


def columns_of(on: str) -> str | tuple[str, str]:
    """``name``, or ``title=name`` where the columns differ."""
    left, equals, right = on.partition("=")
    return (left.strip(), right.strip()) if equals else on


def is_index(path: str) -> bool:
    """Whether a path is that of an index, and not of a table."""
    return Path(path, "manifest.json").exists()


@contextmanager
def _learning(budget: str | None, default: str | None, *, quiet: bool, what: str = "learning") -> Iterator[Clock]:
    """Time to learn in, shown on a line; Ctrl-C ends it, and what was found so far is told."""
    line, limit = TextLine(what, quiet=quiet), budget or default
    clock = Clock(None if limit is None else seconds(limit), line)

    def stop(signum: int, frame: object) -> None:
        if clock.stopped:
            raise KeyboardInterrupt
        clock.stop()

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield clock
    finally:
        signal.signal(signal.SIGINT, before)
        line.close()


def print_lake_autojoin(
    query: str,
    lake: Lake,
    wanted: dict[str, int],
    budget: str | None,
    *,
    explain: bool,
    quiet: bool,
    form: Format,
) -> None:
    """Print the tables of an index that join with a table after a transformation."""
    with _learning(budget, "60s", quiet=quiet) as clock:
        results = lake.autojoin(query, **wanted, budget=clock)
    print_results(results, form, empty="no table of the index would join after a transformation")
    if explain:
        for table, why in results.info["refused"].items():
            say(f"{table}: {why}")


def print_autojoin(
    left: str,
    right: str,
    budget: str | None,
    faces: dict[str, Any],
    *,
    fuzzy: bool,
    explain: bool,
    quiet: bool,
    form: Format,
) -> None:
    """Find a plan, or take a saved one; print it, its code or its parts; write the joined table."""
    import lakescope
    from lakescope.engines.transforms.plan import Plan
    from lakescope.tables.writing import check_folder, check_output
    from lakescope.transforms.code import checked_dialect

    if is_index(left):
        raise BadRequest(f"{left} is an index, not a table", hint=f"lakescope autojoin {right} {left}")
    if faces["out"] is not None:
        check_output(faces["out"])
    if faces["save"] is not None:
        check_folder(faces["save"])
    if faces["code"] is not None:
        checked_dialect(faces["code"])
    if faces["plan"] is None:
        with _learning(budget, "30s", quiet=quiet) as clock:
            plan = lakescope.autojoin(left, right, fuzzy=fuzzy, budget=clock)
    else:
        plan = Plan.load(faces["plan"])
        plan = (plan if fuzzy else replace(plan, fuzzy=None)).apply(left, right)
    if faces["code"] is not None:
        if not plan:
            raise NotFound(plan.words(), hint="ask without --code and with --explain to see what was tried")
        write(plan.code(faces["code"]))
    elif form is Format.json:
        print_record({**plan.to_dict(), "pairs": plan.pairs().num_rows, "info": plan.info}, form)
    elif form is Format.csv:
        fields = ["order", "direction", "columns", "key", "program", "rows"]
        print_records(_records(plan), fields, form, empty="")
    else:
        _print_plan(plan, explain=explain)
    if faces["save"] is not None:
        if not plan:
            raise NotFound(f"nothing joins: {faces['save']} was not written", hint="ask without --save to see why")
        plan.save(faces["save"])
    if faces["out"] is not None:
        _write_joined(plan, faces["out"])


def _records(plan: Any) -> list[dict[str, Any]]:
    rows = plan.info.get("rows", [])
    return [
        {
            "order": number,
            "direction": plan.direction,
            "columns": list(program.columns),
            "key": [piece.words() for piece in program.keys],
            "program": program.words(),
            "rows": rows[number] if rows else None,
        }
        for number, program in enumerate(plan.programs)
    ]


def _print_plan(plan: Any, *, explain: bool) -> None:
    write(plan.words())
    if plan:
        _print_sample("joined", plan.table().slice(0, _SHOWN))
        for side in ("left", "right"):
            _print_sample(f"{side} rows that do not join", plan.unmatched(side, _SHOWN))
    if explain:
        _print_evidence(plan)


def _print_sample(title: str, table: Any) -> None:
    if table.num_rows:
        cells = [[shorten(str(cell), 28) for cell in row.values()] for row in table.to_pylist()]
        write("\n".join(["", f"{title}:", *aligned([shorten(name, 28) for name in table.column_names], cells)]))


def _print_evidence(plan: Any) -> None:
    if plan.evidence:
        rows = [[shorten(" | ".join(e.row.values()), 60), shorten(e.key, 40), e.shared] for e in plan.evidence]
        write("\n".join(["", "learnt from, among others:", *aligned(["row", "key", "shared"], rows)]))
    told = {name: value for name, value in plan.info.items() if value is not None}
    if told:
        say("; ".join(f"{name}: {_short(value)}" for name, value in told.items()))


def _short(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def print_fuzzyjoin(
    left: str,
    right: str,
    on: str,
    options: dict[str, Any],
    budget: str | None,
    out: str | None,
    *,
    quiet: bool,
    form: Format,
) -> None:
    """Join two columns that are nearly equal, and print how."""
    import lakescope
    from lakescope.tables.writing import check_output

    if out is not None:
        check_output(out)
    with _learning(budget, None, quiet=quiet, what="joining") as clock:
        joined = lakescope.fuzzyjoin(left, right, columns_of(on), **options, budget=clock)
    if form is Format.table:
        write(joined.words())
        _print_sample("joined", joined.table().slice(0, _SHOWN))
    else:
        print_record(joined.to_dict(), form)
    if out is not None:
        _write_joined(joined, out)


def _write_joined(found: Any, out: str) -> None:
    """Write what joins; where nothing does, whoever waits for the file is told that there is none."""
    from lakescope.tables.writing import write_table

    if not found:
        raise NotFound(f"nothing joins: {out} was not written", hint="ask without --out to see why")
    write_table(found.table(), out)
    say(f"wrote {found.pairs().num_rows:,} rows to {out}")
