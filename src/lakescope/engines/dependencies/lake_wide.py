"""The dependencies of a whole lake: one Spark job for all tables a worker holds, one search for each larger one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakescope.build.dependencies import best_of
from lakescope.build.session import spark_session
from lakescope.engines.dependencies.answers import LakeDependency
from lakescope.engines.dependencies.batch import from_row, of_table
from lakescope.engines.dependencies.distributed import dependencies_on
from lakescope.errors import BadRequest
from lakescope.results import Results

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Records, if as many as there are were asked for: the driver holds no lake.
_MOST = 100_000
_SHOWN = ("table", "lhs", "rhs", "degree", "score", "pv", "gs", "holds", "reasons")


def lake_dependencies(
    batch: Callable[[SparkSession], DataFrame],
    locate: Callable[[str], str],
    options: dict[str, Any],
    budget: float | None,
    limit: int | None,
    out: str | Path | None,
    spark: SparkSession | None,
    master: str | None,
) -> Results[LakeDependency]:
    """The most telling dependencies of all tables, which ``batch`` finds and ``locate`` knows the place of."""
    if out is not None and Path(out).exists():
        raise BadRequest(f"{out} is there already", hint="give a path that is not, or remove it")
    most = _MOST if limit is None else limit
    with spark_session(spark, master) as session:
        told = best_of(batch(session), ("unread", "large", "incomplete"), most, None if out is None else str(out))
        records = [from_row(row) for row in told.best]
        notes = [f"{told.dependencies:,} in {told.tables:,} tables, with those that follow from keys and constants"]
        for each in map(from_row, told.unknown):
            if "large" in each.flags:
                found = dependencies_on(session, locate(each.table), **options, budget=budget)
                records += [one for one in of_table(each.table, found) if not one.flags]
                notes.append(
                    f"{each.table} is too large for a worker: found by all of them, and not in what was written"
                )
            elif "unread" in each.flags:
                notes.append(f"{each.table} could not be read: {each.reasons[0]}")
            else:
                notes.append(f"{each.table}: {each.reasons[0]}")
    records.sort(key=lambda each: (-(each.score or 0.0), each.table, each.lhs, each.rhs))
    return Results(LakeDependency, records[:most], shown=_SHOWN, notes=notes)
