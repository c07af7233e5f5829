"""Systems that code is written for, and who writes it: light to import, for every face that lists them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

from lakescope.errors import BadRequest

if TYPE_CHECKING:
    from lakescope.code.writer import PlanWriter, Writer

#: Systems that code of joins and correlations is written for.
Dialect = Literal["duckdb", "pandas", "polars", "spark", "sql"]
#: Systems that code of learned joins is written for: Python without libraries, too.
PlanDialect = Literal[Dialect, "python"]

DIALECTS: tuple[Dialect, ...] = get_args(Dialect)
PLAN_DIALECTS: tuple[PlanDialect, ...] = get_args(PlanDialect)


def writer(dialect: str) -> Writer:
    """Who writes code of joins and correlations in a dialect."""
    from lakescope.code.writers import WRITERS

    _check(dialect, DIALECTS)
    return WRITERS[dialect]


def plan_writer(dialect: str) -> PlanWriter:
    """Who writes code of learned joins in a dialect."""
    from lakescope.code.writers import PLAN_WRITERS

    _check(dialect, PLAN_DIALECTS)
    return PLAN_WRITERS[dialect]


def _check(dialect: str, among: tuple[str, ...]) -> None:
    if dialect not in among:
        raise BadRequest(f"no dialect {dialect!r}", hint=f"use {', '.join(among)}")
