"""Many questions at once: a task that answers, on some executor, which columns join with each of many."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from lakescope.engines.joins.answers import Joinable
from lakescope.engines.joins.joinable import JoinCriteria, JoinSearch
from lakescope.errors import BadRequest, NotFound
from lakescope.results import arrow_schema
from lakescope.store.index import Index

#: The number of a query column that is not in the lake.
_OUTSIDE = -1


class BatchQuestion(NamedTuple):
    """One query column: the number of a column of the lake, or the location of a table and a column of it."""

    number: int
    table: str
    column: str


@dataclass(frozen=True, slots=True)
class BatchJoin:
    """A record of a batch: which table was asked about, and a column that joins with it."""

    query_table: str
    query_column: str
    table: str
    column: str
    overlap: int
    containment: float
    low: float
    high: float
    exact: bool
    query_size: int
    size: int
    p: float
    quality: str


@functools.lru_cache(maxsize=2)
def opened(path: str, generation: int) -> JoinSearch:
    """The index as a worker has it: opened once, whatever number of questions."""
    search = JoinSearch(Index(path))
    search.warm()
    return search


@dataclass(frozen=True, slots=True)
class SearchColumns:
    """Task: each input row is the number of a question."""

    path: str
    generation: int
    questions: tuple[BatchQuestion, ...]
    criteria: JoinCriteria
    own: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        search = opened(self.path, self.generation)
        schema = arrow_schema(BatchJoin)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                records = [asdict(record) for record in self._answer(search, self.questions[number])]
                yield pa.RecordBatch.from_pylist(records, schema=schema)

    def _answer(self, search: JoinSearch, question: BatchQuestion) -> Iterator[BatchJoin]:
        number, table, name = question
        if number == _OUTSIDE:
            from lakescope.tables.reading import read_query

            for column in read_query(table, search.overlaps, search.inverted):
                if column.name == name or (not name and column.plausible):
                    yield from _records(table, search.search(column, self.criteria))
        else:
            exclude = [number] if self.own else search.columns_of(table)
            yield from _records(table, search.search(search.lake_column(number), self.criteria, exclude))


def _records(table: str, found: Any) -> Iterator[BatchJoin]:
    each: Joinable
    for each in found:
        yield BatchJoin(
            *(table, each.query_column, each.table, each.column, each.overlap, each.containment, each.low, each.high),
            *(each.exact, each.query_size, each.size, each.p, each.quality),
        )


def listed_queries(frame: Any) -> list[tuple[str, str | None]]:
    """The questions a frame lists: one row a table, or a column of it."""
    from lakescope.sources.frames import as_batches

    if type(frame).__module__.startswith("pyspark.sql"):
        frame = frame.toArrow()
    listed = pa.Table.from_batches(list(as_batches(frame)))
    if "table" not in listed.column_names:
        raise BadRequest(
            "the frame of queries has no column 'table'", hint="name tables there, and columns in 'column'"
        )
    columns = listed["column"].to_pylist() if "column" in listed.column_names else [None] * listed.num_rows
    return [(str(table), column) for table, column in zip(listed["table"].to_pylist(), columns, strict=True)]


def batch_questions(
    joins: JoinSearch, tables: Sequence[str], queries: Sequence[str | tuple[str, str | None]] | None
) -> Iterator[BatchQuestion]:
    """The questions of a batch: about tables that are named, or columns of them, or all tables of the lake."""
    known = set(tables)
    for query in tables if queries is None else queries:
        table, column = (query, None) if isinstance(query, str) else query
        if table not in known:
            yield _question_outside(table, column)
            continue
        numbers = {joins.name_of(number): number for number in joins.columns_of(table)}
        if column is not None and column not in numbers:
            raise NotFound.among("column", column, numbers)
        chosen = joins.plausible(numbers.values()) if column is None else [numbers[column]]
        yield from (BatchQuestion(number, table, "") for number in chosen)


def _question_outside(location: str, column: str | None) -> BatchQuestion:
    """A question about a table that is not in the lake."""
    return BatchQuestion(_OUTSIDE, location, column or "")
