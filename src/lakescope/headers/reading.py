"""A table to be named: one of the lake, which the index knows already, or one that is read, as the scan would."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from lakescope.errors import BadRequest
from lakescope.headers.corpus import HeadedColumns
from lakescope.headers.evidence import FIELDS
from lakescope.headers.similar import NamelessColumn, NamelessTable, ValueSearch
from lakescope.search.inverted import InvertedIndex
from lakescope.search.reading import batches_of
from lakescope.store.index import Index

U64 = npt.NDArray[np.uint64]

#: Batches whose values are kept before those that repeat are dropped.
_PARTS = 16


def lake_table(index: Index, headed: HeadedColumns, values: ValueSearch, number: int) -> NamelessTable:
    """A table of the lake as if its columns had no names."""
    columns = headed.columns_of(number)
    records = index.catalog("columns").slice(columns.start, len(columns)).select(list(FIELDS)).to_pylist()
    found = [
        NamelessColumn(record, values.inverted.query_of_set(column))
        for record, column in zip(records, columns, strict=True)
    ]
    return NamelessTable(found, values.groups_of(number), number)


def read_table(query: Any, inverted: InvertedIndex, first_row: Sequence[str] | None = None) -> NamelessTable:
    """A table that is not in the lake: a path or URI, or a frame.

    ``first_row`` are the names that a reader took for a header although they are values: they count as one more row.
    """
    from lakescope.profile.column import ColumnState, values_limit
    from lakescope.profile.summary import summarise
    from lakescope.values.cells import understand
    from lakescope.values.text import TextColumn

    states: dict[str, ColumnState] = {}
    tokens: dict[str, list[U64]] = {}
    rows = 0

    def add(column: Any, fallback: str, width: int) -> None:
        state = states.get(column.name)
        if state is None:
            state = states[column.name] = ColumnState(len(states), column.source_type, values_limit(width))
            tokens[column.name] = []
        cells = understand(column, fallback)
        state.update(cells)
        parts = tokens[column.name]
        parts.append(np.maximum(cells.hashes, np.uint64(1)))
        if len(parts) > _PARTS:
            tokens[column.name] = [np.unique(np.concatenate(parts))]

    for batch in batches_of(query):
        for column in batch.columns:
            add(column, batch.fallback, len(batch.columns))
        rows += batch.rows
    if not states:
        raise BadRequest("the table has no columns", hint="give a table with at least one column")
    if first_row is not None:
        for name, value in zip(list(states), first_row, strict=False):
            cell = np.frombuffer(value.encode("utf-8", "replace"), np.uint8)
            bounds = np.array([0], np.int32), np.array([cell.size], np.int32)
            add(TextColumn(name, cell, *bounds), "utf-8", len(states))
        rows += 1
    known = {name: np.unique(np.concatenate([np.empty(0, np.uint64), *parts])) for name, parts in tokens.items()}
    columns = [
        NamelessColumn(summarise("", name, state, rows), inverted.query(known[name]), state.distinct)
        for name, state in states.items()
    ]
    every = np.unique(np.concatenate(list(known.values())))
    return NamelessTable(columns, inverted.query(every))
