"""Dependencies of every table of a lake on Spark: a task that reads tables and finds theirs."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from lakescope.engines.dependencies.answers import Dependency, LakeDependency
from lakescope.engines.dependencies.find import dependencies
from lakescope.engines.dependencies.table import TooLarge, read
from lakescope.errors import LakescopeError
from lakescope.results import arrow_schema
from lakescope.store.index import Index
from lakescope.tables.reading import located


@dataclass(frozen=True, slots=True)
class BatchTuning:
    """What a worker does for a table of a lake."""

    #: Cells of a table that a worker holds; larger ones are flagged, to be asked for alone. Not measured: 360 MB of
    #: codes.
    cells: int = 30_000_000
    #: Dependencies of a table whose genuineness is worked out. Not measured: a bound on time.
    scored: int = 20


BATCH = BatchTuning()


def of_table(table: str, found: Sequence[Dependency]) -> list[LakeDependency]:
    """Dependencies as those of a table of the lake."""
    return [LakeDependency(**asdict(each), table=table) for each in found]


def unknown(table: str, flag: str, why: str) -> LakeDependency:
    """The record of a table whose dependencies are not known."""
    numbers = (None, None, None, None, None, None, None)
    return LakeDependency((), "", *numbers, "unknown", (), (flag,), (why,), table)


def from_row(row: list[Any]) -> LakeDependency:
    """A record as Spark returns it."""
    values: list[Any] = [tuple(each) if isinstance(each, list) else each for each in row]
    return LakeDependency(*values)


@functools.lru_cache(maxsize=2)
def _tables(path: str, generation: int) -> list[tuple[str, str]]:
    """Tables of an index and where they lie, as a worker knows them."""
    tables = Index(path).catalog("tables")
    pairs = zip(tables["table"].to_pylist(), tables["uri"].to_pylist(), strict=True)
    return [(table, located(table, uri)) for table, uri in pairs]


@dataclass(frozen=True, slots=True)
class FindDependencies:
    """Task: each input row is the number of a table."""

    path: str
    generation: int
    options: dict[str, Any]
    missing: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tables = _tables(self.path, self.generation)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                records = [asdict(each) for each in self._dependencies_of(*tables[number])]
                yield pa.RecordBatch.from_pylist(records, schema=arrow_schema(LakeDependency))

    def _dependencies_of(self, table: str, location: str) -> list[LakeDependency]:
        try:
            coded = read(location, self.missing, texts=True, most_cells=BATCH.cells)
            found = dependencies(coded, scored=BATCH.scored, **self.options)
            cut = [note for note in found.notes if note.startswith("not complete") or "without scores" in note]
            return of_table(table, found) + [unknown(table, "incomplete", note) for note in cut]
        except TooLarge as error:
            return [unknown(table, "large", error.message)]
        except (LakescopeError, OSError) as error:
            return [unknown(table, "unread", getattr(error, "message", str(error)))]
