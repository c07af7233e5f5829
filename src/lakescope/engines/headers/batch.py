"""Headers for many tables at once, on Spark: blocks of tables times parts of the corpus (spec-profiling 3.5).

Three tasks. The first reads each table that is not in the lake, once. The second takes some tables and a part of the
corpus and finds what the columns of that part say of theirs, summed up by header. The third brings together what all
parts say of a table, and names its columns. Since the best of two parts is the best of both, and counts add up, the
answers are those of one process. By the thesis' method the second returns bounded queues and the third merges them.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import pyarrow as pa

from lakescope.engines.headers.answers import BatchHeader
from lakescope.engines.headers.corpus import CorpusPart
from lakescope.engines.headers.model import Clues, Model
from lakescope.engines.headers.similar import NamelessColumn, NamelessTable, Weighted, best_weighted
from lakescope.engines.headers.suggest import HeaderCriteria, HeaderSearch
from lakescope.engines.joins.inverted import InvertedIndex
from lakescope.results import arrow_schema
from lakescope.sketches import codec
from lakescope.store.index import Index
from lakescope.store.inverted import QueryGroups

#: Columns of the corpus that a task searches, about.
_PART = 25_000
_VERSION = 1
#: Rows between the tasks.
ASKED = pa.schema([("query", pa.int64()), ("payload", pa.binary())])
FOUND = pa.schema([("query", pa.int64()), ("part", pa.int64()), ("payload", pa.binary())])
#: The part that stands for the table in question itself, before all others.
_ITSELF = -1


def parts_of(columns: int) -> int:
    """Into how many parts a corpus of so many columns is cut."""
    return max(1, -(-columns // _PART))


@functools.lru_cache(maxsize=1)
def _opened(path: str, generation: int) -> HeaderSearch:
    """The index as a worker has it: opened once, whatever number of tables."""
    index = Index(path)
    return HeaderSearch(index, InvertedIndex(index))


@functools.lru_cache(maxsize=1)
def _part(path: str, generation: int, number: int, parts: int) -> CorpusPart:
    return _opened(path, generation).corpus.part(number, parts)


@dataclass(frozen=True, slots=True)
class HeaderBatch:
    """What all tasks know: the index, the tables, what is asked for, and the weights, which were learnt before."""

    path: str
    generation: int
    tables: tuple[str, ...]
    parts: int
    criteria: HeaderCriteria
    model: dict[str, Any] | None

    def search(self) -> HeaderSearch:
        """The opened index with the weights of the batch."""
        search = _opened(self.path, self.generation)
        model = None if self.model is None else Model.from_dict(self.model)
        if model is not None:
            search.model = model
        return search

    def table(self, search: HeaderSearch, query: int, payload: bytes) -> NamelessTable:
        """A table as a question: from the index, or as the first task has read it."""
        if payload:
            return _unpacked(payload, search.values.inverted)
        return search.table(search.columns.number_of_table[self.tables[query]])


@dataclass(frozen=True, slots=True)
class ReadTables:
    """Task: each input row is the number of a table; those that the index does not know are read."""

    batch: HeaderBatch

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        search = self.batch.search()
        for batch in batches:
            for query in batch.column(0).to_pylist():
                name = self.batch.tables[query]
                payload = b"" if name in search.columns.number_of_table else _packed(search.read(name))
                yield _rows(ASKED, [(query, payload)])


@dataclass(frozen=True, slots=True)
class SearchPart:
    """Task: each input row is a table and the number of a part of the corpus; rows of a part come together."""

    batch: HeaderBatch

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        search = self.batch.search()
        for query, payload, number in _read(batches):
            table = self.batch.table(search, query, payload)
            part = _part(self.batch.path, self.batch.generation, number, self.batch.parts)
            rows = [(query, _ITSELF, payload)] if number == 0 else []
            yield _rows(FOUND, [*rows, (query, number, self._said(search, table, part))])

    def _said(self, search: HeaderSearch, table: NamelessTable, part: CorpusPart) -> bytes:
        if self.batch.criteria.method == "thesis":
            similar = search.values.similar(table, part)
            proposed = search.proposed(similar, self.batch.criteria, search.statistics_without(table))
            return json.dumps([[asdict(one) for one in some] for some in proposed]).encode()
        clues, _ = search.judge.clues(table, part)
        named = {
            f"{place}.{field.name}": getattr(each, field.name)
            for place, each in enumerate(clues)
            for field in fields(Clues)
        }
        return codec.pack("clues", _VERSION, {**named, "columns": len(clues)})


@dataclass(frozen=True, slots=True)
class NameColumns:
    """Task: rows of a table come one after the other, itself first, then what each part of the corpus says of it."""

    batch: HeaderBatch

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        search = self.batch.search()
        table: NamelessTable | None = None
        asked, said = -1, None
        for query, number, payload in _read(batches):
            if number == _ITSELF:
                if table is not None:
                    yield self._answer(search, asked, table, said)
                table, asked, said = self.batch.table(search, query, payload), query, None
            elif table is not None:
                said = self._merged(search, table, said, payload)
        if table is not None:
            yield self._answer(search, asked, table, said)

    def _merged(self, search: HeaderSearch, table: NamelessTable, said: Any, payload: bytes) -> Any:
        if self.batch.criteria.method == "thesis":
            more = [[Weighted(**one) for one in some] for some in json.loads(payload)]
            if said is None:
                return more
            k, order = self.batch.criteria.k, search.popularity(search.statistics_without(table))
            return [
                best_weighted([*mine, *some], order, search.columns.headers)[:k]
                for mine, some in zip(said, more, strict=True)
            ]
        kept = codec.unpack(payload, "clues", _VERSION)
        clues = [
            Clues(**{field.name: kept[f"{place}.{field.name}"] for field in fields(Clues)})
            for place in range(kept["columns"])
        ]
        return clues if said is None else [mine.merged(each) for mine, each in zip(said, clues, strict=True)]

    def _answer(self, search: HeaderSearch, query: int, table: NamelessTable, said: Any) -> pa.RecordBatch:
        found = search.suggest(table, self.batch.criteria, said=said)
        ranks: dict[int, int] = {}
        records = []
        for each in found.by_column():
            rank = ranks[each.position] = ranks.get(each.position, 0) + 1
            named = self.batch.tables[query], each.position, each.column
            records.append(asdict(BatchHeader(*named, rank, each.header, each.weight, each.chosen)))
        return pa.RecordBatch.from_pylist(records, schema=arrow_schema(BatchHeader))


def _rows(schema: pa.Schema, rows: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
    arrays = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _read(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[Any, ...]]:
    """Rows of batches, one at a time: payloads are not small."""
    for batch in batches:
        for row in range(batch.num_rows):
            yield tuple(column[row].as_py() for column in batch.columns)


def _packed(table: NamelessTable) -> bytes:
    """A table as a question, as it travels."""
    arrays: dict[str, Any] = {"records": json.dumps([column.record for column in table.columns])}
    for place, groups in enumerate([table.groups, *(column.groups for column in table.columns)]):
        arrays |= {f"{place}.groups": groups.groups, f"{place}.weights": groups.weights, f"{place}.size": groups.size}
        if groups.tokens is not None:
            # Groups over several segments are numbered by each process as it meets them.
            arrays[f"{place}.tokens"] = groups.tokens
    return codec.pack("nameless", _VERSION, arrays)


def _unpacked(payload: bytes, inverted: InvertedIndex) -> NamelessTable:
    kept = codec.unpack(payload, "nameless", _VERSION)
    records = json.loads(kept["records"])
    groups = [
        inverted.values(kept[f"{place}.tokens"])
        if f"{place}.tokens" in kept
        else QueryGroups(kept[f"{place}.groups"], kept[f"{place}.weights"], kept[f"{place}.size"])
        for place in range(len(records) + 1)
    ]
    columns = [NamelessColumn(record, mine) for record, mine in zip(records, groups[1:], strict=True)]
    return NamelessTable(columns, groups[0])
