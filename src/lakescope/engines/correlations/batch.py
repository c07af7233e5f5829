"""Correlations of many keys and numbers at once: a task that answers on some executor."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields

import pyarrow as pa

from lakescope.engines.correlations.correlated import CorrelationCriteria, CorrelationSearch
from lakescope.engines.joins.batch import opened
from lakescope.engines.joins.joinable import JoinSearch
from lakescope.results import arrow_schema
from lakescope.store.index import Index
from lakescope.tables.keyed import query_of_pair


@dataclass(frozen=True, slots=True)
class BatchCorrelation:
    """A record of a batch: a column of the lake by one of its keys, and one that correlates with it."""

    query_table: str
    query_key: str
    query_column: str
    table: str
    key: str
    column: str
    correlation: float
    low: float
    high: float
    p: float
    q: float
    sample: int
    joined_rows: float
    joined_rows_low: float
    joined_rows_high: float
    containment: float
    containment_low: float
    containment_high: float
    coefficient: str


_SHARED = [field.name for field in fields(BatchCorrelation) if not field.name.startswith("query_")]


@dataclass(frozen=True, slots=True)
class SearchCorrelations:
    """Task: each input row is the number of a key and a numeric column of the lake."""

    path: str
    generation: int
    criteria: CorrelationCriteria
    own: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        joins = opened(self.path, self.generation)
        search = _correlations(self.path, self.generation, joins)
        schema = arrow_schema(BatchCorrelation)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield pa.RecordBatch.from_pylist([asdict(each) for each in self._answer(search, number)], schema=schema)

    def _answer(self, search: CorrelationSearch, number: int) -> Iterator[BatchCorrelation]:
        query = query_of_pair(search.sketches, number, self.criteria.aggregate)
        for each in search.search(query, self.criteria, None if self.own else query.name):
            shared = {name: getattr(each, name) for name in _SHARED}
            yield BatchCorrelation(query.name, ", ".join(query.key), query.target, **shared)


@functools.lru_cache(maxsize=2)
def _correlations(path: str, generation: int, joins: JoinSearch) -> CorrelationSearch:
    return CorrelationSearch(Index(path), joins.inverted, joins.overlaps)
