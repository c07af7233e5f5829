"""Distinct values of columns by any counters, in one pass over a file, a folder or a frame."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from lakescope import sources
from lakescope.build.plan import make_plan
from lakescope.engines.counting.answers import Count
from lakescope.errors import BadRequest, NotFound, SourceError
from lakescope.results import Results
from lakescope.sketches.counter import Counter
from lakescope.sketches.design import Design, design
from lakescope.sketches.exact import Exact
from lakescope.sketches.reading import ReadColumn, Reading
from lakescope.sources.discover import discover
from lakescope.sources.frames import as_batches
from lakescope.sources.io.files import display
from lakescope.sources.model import Batch, Problem
from lakescope.values.hashed import hash_cells
from lakescope.values.typed import CellSlices

#: Files are read from end to end by one process: never cut.
_WHOLE = 1 << 62
#: A row of a file takes at least two bytes: so many values there can be at most.
_BYTES_PER_ROW = 2
#: How much larger the text of a compressed or binary file may be.
_INFLATION = 20
#: Counters are sized for at least so many values.
_FEWEST = 1000
_SHOWN = ("table", "column", "counter", "estimate", "low", "high", "truth", "error", "bytes", "seconds", "warning")

Listener = Callable[[int, int], None]


@dataclass(slots=True)
class _Column:
    """One column on its way through the counters."""

    counters: list[Counter]
    rows: int = 0
    nulls: int = 0
    seconds: list[float] = field(default_factory=list)

    def add(self, cells: CellSlices, fallback: str) -> None:
        hashes, valid = hash_cells(cells, fallback)
        self.rows += hashes.size
        self.nulls += hashes.size - int(valid.sum())
        hashes = hashes[valid]
        self.seconds = self.seconds or [0.0] * len(self.counters)
        for place, counter in enumerate(self.counters):
            began = time.process_time()
            counter.update_hashes(hashes)
            self.seconds[place] += time.process_time() - began

    def pad(self, rows: int) -> None:
        """Rows of the table that lack this column hold nulls."""
        self.nulls += rows - self.rows
        self.rows = rows


def count(
    query: Any,
    columns: Sequence[str] | None = None,
    *,
    counters: Sequence[str] = ("hll++",),
    error: float = 0.01,
    memory: float | None = None,
    n_max: float | None = None,
    exact: bool = False,
    progress: Listener | None = None,
) -> Results[Count]:
    """Count the distinct values of columns with any of the counters, in one pass.

    ``query`` is a path, glob or URI, a frame, or a Spark DataFrame, which is counted on its cluster. Counters are sized
    for a relative ``error`` or for ``memory`` bytes; those that must know ``n_max``, the largest number of values, take
    the number of rows of a frame, or for files what their size allows at most.
    """
    if _is_spark(query):
        from lakescope.build.counting import count_frame

        made = _designs(counters, error, memory, n_max, exact)
        return _results(count_frame(query, columns, made), exact)
    tables = _Tables(columns, counters, error, memory, n_max, exact)
    if isinstance(query, str) or hasattr(query, "__fspath__"):
        tables.read_files(str(query), progress)
    else:
        tables.read_frame(query)
    return _results(tables.read(), exact, tables.notes)


def _is_spark(query: Any) -> bool:
    return type(query).__module__.startswith("pyspark.sql")


def _designs(
    counters: Sequence[str], error: float, memory: float | None, n_max: float | None, exact: bool
) -> list[Design]:
    if not counters:
        raise BadRequest("no counter was named", hint="name one, such as hll++")
    sized = {"memory": memory} if memory is not None else {"error": error}
    names = [*dict.fromkeys(counters)]
    made = [design(name, n_max=n_max, **sized) for name in names]
    return [*made, Design(Exact, {}, 0.0, 0)] if exact and Exact.name not in names else made


@dataclass(slots=True)
class _Tables:
    """All columns of all tables of a query, each with its counters."""

    wanted: Sequence[str] | None
    names: Sequence[str]
    error: float
    memory: float | None
    n_max: float | None
    exact: bool
    columns: dict[tuple[str, str], _Column] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    limits: dict[str, float] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)

    def read_files(self, location: str, progress: Listener | None) -> None:
        found, problems = discover([location])
        self._note(problems)
        if not found:
            raise BadRequest(
                "; ".join(problem.detail for problem in problems) or f"found no table in {display(location)}"
            )
        plan = make_plan(found, _WHOLE)
        self._note(plan.problems)
        units = [unit for units in plan.bins for unit in units]
        for unit in units:
            grown = unit.size * (_INFLATION if unit.reader != "csv" or unit.options.get("compression") else 1)
            self.limits[unit.table] = self.limits.get(unit.table, _FEWEST) + grown / _BYTES_PER_ROW
        total = sum(unit.size for unit in units)
        done = 0
        for unit in units:
            try:
                for batch in sources.read(unit, lambda problem: None):
                    self._add(unit.table, batch)
            except SourceError as error:
                self.notes.append(f"{error.message}: counts are of what could be read")
            done += unit.size
            if progress is not None:
                progress(done, total)

    def read_frame(self, frame: Any) -> None:
        from lakescope.sources.formats.arrow_batches import text_batches

        batches = list(as_batches(frame))
        self.limits["frame"] = max(_FEWEST, sum(batch.num_rows for batch in batches))
        for batch in text_batches(batches, batches[0].schema, "frame", lambda problem: None):
            self._add("frame", batch)

    def _counters(self, table: str) -> list[Counter]:
        n_max = self.n_max or self.limits[table]
        return [each.make() for each in _designs(self.names, self.error, self.memory, n_max, self.exact)]

    def _add(self, table: str, batch: Batch) -> None:
        for column in batch.columns:
            self.seen.add(column.name)
            if self.wanted is not None and column.name not in self.wanted:
                continue
            known = self.columns.get((table, column.name))
            if known is None:
                known = self.columns[table, column.name] = _Column(self._counters(table))
            known.pad(self.rows.get(table, 0))
            known.add(CellSlices(column.data, column.starts, column.ends), batch.fallback)
        self.rows[table] = self.rows.get(table, 0) + batch.rows

    def _note(self, problems: Sequence[Problem]) -> None:
        self.notes += [problem.detail for problem in problems if problem.severity == "error"]

    def read(self) -> Iterator[ReadColumn]:
        for name in self.wanted or ():
            if name not in self.seen:
                raise NotFound.among("column", name, self.seen)
        for (table, name), column in self.columns.items():
            column.pad(self.rows[table])
            seconds = column.seconds or [0.0] * len(column.counters)
            readings = [Reading.of(*each) for each in zip(column.counters, seconds, strict=True)]
            yield ReadColumn(table, name, column.rows, column.nulls, readings)


def _results(columns: Iterable[ReadColumn], exact: bool, notes: Sequence[str] = ()) -> Results[Count]:
    records = [record for column in columns for record in _records(column)]
    shown = _SHOWN if exact else tuple(name for name in _SHOWN if name not in ("truth", "error"))
    return Results(Count, records, shown=shown, notes=notes)


def _records(column: ReadColumn) -> Iterator[Count]:
    truth = next((round(each.estimate) for each in column.readings if each.counter == Exact.name), None)
    for each in column.readings:
        yield Count(
            *(column.table, column.column, each.counter, each.estimate, each.low, each.high, each.low == each.high),
            *(truth, abs(each.estimate - truth) / truth if truth else None, column.rows, column.nulls),
            *(each.bytes, each.seconds, each.parameters, each.warning),
        )
