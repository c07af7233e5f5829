"""Tables of a lake that join after a transformation: asked about one table here, or about every table on Spark."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from lakescope.engines.joins.grams import GramHit, GramSearch
from lakescope.engines.joins.joinable import JoinSearch
from lakescope.engines.transforms.clock import Clock
from lakescope.engines.transforms.discover import TransformCandidate, TransformJoin, TransformRequest, transform_joins
from lakescope.errors import LakescopeError
from lakescope.results import Results, arrow_schema
from lakescope.store.index import Index
from lakescope.tables.reading import located


class TransformSearch:
    """Answers which tables join after a transformation, for one opened index."""

    def __init__(self, index: Index, joins: JoinSearch) -> None:
        self._index, self._joins = index, joins
        self.grams = GramSearch(index, joins.inverted)

    def search(self, query: Any, table: str | None, request: TransformRequest, clock: Clock) -> Results[TransformJoin]:
        """Tables that join with a query, which is ``table`` if it is one of the lake."""
        own = range(0) if table is None else self._joins.columns_of(table)
        return transform_joins(query, request, self.grams, self._candidate, self._table_of, own, clock)

    def _table_of(self, hit: GramHit) -> str:
        return self._joins.table_of(hit.number)

    def _candidate(self, table: str, hits: Sequence[GramHit]) -> TransformCandidate:
        columns = tuple(dict.fromkeys(self._joins.name_of(hit.number) for hit in hits))
        record = self._index.table(table)
        return TransformCandidate(table, located(table, str(record["uri"])), int(record["bytes"]), columns, tuple(hits))


@dataclass(frozen=True, slots=True)
class BatchTransform:
    """A record of a batch: which table was asked about, and one that joins with it after a transformation.

    A table about which nothing can be told has one record without a ``table``; ``note`` says why, and what was left
    out because time was up.
    """

    query_table: str
    table: str
    direction: str
    columns: tuple[str, ...]
    keys: tuple[str, ...]
    program: str
    programs: int
    coverage: float
    table_coverage: float
    pairs: int
    shared: int
    expected: float
    location: str
    note: str


@functools.lru_cache(maxsize=1)
def _opened(path: str, generation: int) -> tuple[list[tuple[str, str]], TransformSearch]:
    """The index as a worker has it: its tables and where they lie, and the search."""
    index = Index(path)
    tables = index.catalog("tables")
    pairs = zip(tables["table"].to_pylist(), tables["uri"].to_pylist(), strict=True)
    return [(table, located(table, uri)) for table, uri in pairs], TransformSearch(index, JoinSearch(index))


@dataclass(frozen=True, slots=True)
class SearchTransforms:
    """Task: each input row is the number of a table of the lake."""

    path: str
    generation: int
    request: TransformRequest
    budget: float | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tables, search = _opened(self.path, self.generation)
        schema = arrow_schema(BatchTransform)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                records = [asdict(each) for each in self._answer(search, *tables[number])]
                yield pa.RecordBatch.from_pylist(records, schema=schema)

    def _answer(self, search: TransformSearch, table: str, place: str) -> list[BatchTransform]:
        try:
            found = search.search(place, table, self.request, Clock.of(self.budget))
        except LakescopeError as error:
            return [_nothing(table, error.message)]
        late = "; ".join(note for note in found.notes if "not looked at" in note)
        told = [BatchTransform(table, **asdict(each), note=late) for each in found]
        return told or ([_nothing(table, late)] if late else [])


def _nothing(table: str, why: str) -> BatchTransform:
    return BatchTransform(table, "", "", (), (), "", 0, 0.0, 0.0, 0, 0, 0.0, "", why)
