"""Distinct values that the writer of a table has counted already: Iceberg's statistics, read without a scan."""

from __future__ import annotations

from lakescope.engines.counting.answers import StoredCount
from lakescope.errors import BadRequest, SourceError
from lakescope.results import Results
from lakescope.sketches.theta import CompactTheta
from lakescope.sources.discover import discover
from lakescope.sources.io.files import display, reason_of
from lakescope.sources.lakehouses.puffin import stored_sketches
from lakescope.sources.source_table import SourceTable

_SHOWN = ("table", "column", "estimate", "low", "high", "exact", "current", "writer")


def stored_counts(location: str, columns: list[str] | None = None) -> Results[StoredCount]:
    """What the statistics of Iceberg tables say about their columns; no data file is opened."""
    found, problems = discover([location])
    tables = [each for each in found if each.format == "iceberg"]
    if not tables:
        detail = "; ".join(problem.detail for problem in problems if problem.severity == "error")
        hint = "only Iceberg keeps such counts: `lakescope count` counts"
        raise BadRequest(detail or f"there is no Iceberg table at {display(location)}", hint=hint)
    records: list[StoredCount] = []
    notes: list[str] = []
    failures: list[Exception] = []
    for each in tables:
        try:
            made = _counts(each, columns, notes)
        except Exception as error:  # whatever a damaged file makes of a library: of this table nothing is known
            failures.append(error)
            notes.append(f"{each.table}: its statistics cannot be read: {reason_of(error)}")
            continue
        if not made:
            notes.append(f"{each.table} holds no statistics of its columns: its writer made none (ANALYZE)")
        elif not all(record.current for record in made):
            notes.append(f"{each.table} has changed since its statistics were made")
        records += made
    if len(failures) == len(tables):
        hint = "`lakescope count` counts, or let its writer make them again (ANALYZE)"
        raise SourceError("; ".join(notes), hint=hint, code="damaged") from failures[0]
    return Results(StoredCount, records, shown=_SHOWN, notes=notes)


def _counts(found: SourceTable, columns: list[str] | None, notes: list[str]) -> list[StoredCount]:
    """The counts of one table; what cannot be read of it is noted."""
    made = []
    for sketch in stored_sketches(found.uri, columns):
        try:
            theta = CompactTheta.of(sketch.data)
        except ValueError as error:
            notes.append(f"{found.table}: the sketch of column {sketch.column!r} cannot be read: {error}")
            continue
        low, high = theta.interval
        about = (sketch.ndv, theta.retained, len(sketch.data), sketch.snapshot, sketch.current, sketch.writer)
        made.append(StoredCount(found.table, sketch.column, theta.estimate, low, high, theta.exact, *about))
    return made
