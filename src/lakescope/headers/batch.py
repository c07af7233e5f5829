"""Headers for many tables at once: a task that names, on some executor, the columns of some of them."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import pyarrow as pa

from lakescope.headers.model import Model
from lakescope.headers.suggest import HeaderRequest, HeaderSearch
from lakescope.results import arrow_schema
from lakescope.search.inverted import InvertedIndex
from lakescope.store.index import Index


@dataclass(frozen=True, slots=True)
class BatchHeader:
    """A record of a batch: a column of a table, and a header it may have.

    ``rank`` counts its candidates from 1; ``chosen``: the best schema of the table has it.
    """

    query_table: str
    position: int
    column: str
    rank: int
    header: str
    weight: float
    chosen: bool


@functools.lru_cache(maxsize=2)
def _opened(path: str, generation: int) -> HeaderSearch:
    """The index as a worker has it: opened once, whatever number of tables."""
    index = Index(path)
    return HeaderSearch(index, InvertedIndex(index))


@dataclass(frozen=True, slots=True)
class SuggestHeaders:
    """Task: each input row is the number of a table; the weights were learnt before and travel with the task."""

    path: str
    generation: int
    tables: tuple[str, ...]
    request: HeaderRequest
    rounds: tuple[tuple[float, ...], ...]
    learnt_from: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        search = _opened(self.path, self.generation)
        names = ("first", "second", "third")
        model = Model.from_dict({**dict(zip(names, self.rounds, strict=True)), "tables": self.learnt_from})
        if model is not None:
            search.model = model
        schema = arrow_schema(BatchHeader)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                records = [asdict(record) for record in self._answer(search, self.tables[number])]
                yield pa.RecordBatch.from_pylist(records, schema=schema)

    def _answer(self, search: HeaderSearch, table: str) -> Iterator[BatchHeader]:
        number = search.columns.number_of_table.get(table)
        nameless = search.read(table) if number is None else search.table(number)
        ranks: dict[int, int] = {}
        for each in search.suggest(nameless, self.request).by_column():
            rank = ranks[each.position] = ranks.get(each.position, 0) + 1
            yield BatchHeader(table, each.position, each.column, rank, each.header, each.weight, each.chosen)
