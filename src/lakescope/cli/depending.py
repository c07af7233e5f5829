"""The `fds` command: parse, call, print."""

from __future__ import annotations

from typing import Any

from lakescope.cli.output import Format, print_results
from lakescope.errors import BadRequest


def parse_missing(text: str | None) -> tuple[str, ...]:
    """``?,unknown,999`` as texts."""
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def print_dependencies(
    table: str, options: dict[str, Any], *, compare: str | None, broken: str | None, limit: int, form: Format
) -> None:
    """Print the dependencies of a table, what became of them beside a clean one, or the rows that break one."""
    if compare is not None and broken is not None:
        raise BadRequest("either --compare or --violations", hint="ask twice")
    results: Any
    if compare is not None:
        results = _compared(table, compare, options)
        empty = "no dependency holds in either"
    elif broken is not None:
        from lakescope.fds.violations import parse, violations

        lhs, rhs = parse(broken)
        results = violations(table, lhs, rhs, options["nulls"], options["missing"])
        empty = "no row breaks it"
    else:
        import lakescope

        results = lakescope.dependencies(table, **options)
        empty = "no dependency was found"
    print_results(results[:limit] if limit else results, form, empty=empty)


def _compared(table: str, clean: str, options: dict[str, Any]) -> Any:
    from lakescope.fds.compare import compare

    most = options["max_lhs"]
    found = compare(table, clean, options["nulls"], 1_000 if most is None else most, missing=tuple(options["missing"]))
    counts = ", ".join(f"{found.info[word]:,} {word}" for word in ("same", "ghost", "fake", "genuine"))
    return found.with_note(counts)
