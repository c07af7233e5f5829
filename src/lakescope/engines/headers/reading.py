"""A table to be named: one of the lake, which the index knows already, or one that is read, as the scan would."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from lakescope.array_types import U64
from lakescope.engines.headers.corpus import HeadedColumns
from lakescope.engines.headers.evidence import FIELDS
from lakescope.engines.headers.similar import NamelessColumn, NamelessTable, ValueSearch
from lakescope.engines.joins.inverted import InvertedIndex
from lakescope.errors import BadRequest
from lakescope.store.index import Index

#: Batches whose values are kept before those that repeat are dropped.
_PARTS = 16


def lake_table(index: Index, headed: HeadedColumns, values: ValueSearch, number: int) -> NamelessTable:
    """A table of the lake as if its columns had no names."""
    columns = headed.columns_of(number)
    records = index.fields("columns", FIELDS).slice(columns.start, len(columns)).to_pylist()
    found = [
        NamelessColumn(record, values.inverted.values_of_sets([column]))
        for record, column in zip(records, columns, strict=True)
    ]
    return NamelessTable(found, values.groups_of(number), number)


def read_table(query: Any, inverted: InvertedIndex) -> NamelessTable:
    """A table that is not in the lake: a path or URI, or a frame."""
    from lakescope.profile.column import ColumnState, values_limit
    from lakescope.profile.summary import summarise
    from lakescope.tables.reading import batches_of
    from lakescope.values.cells import understand

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
    known = {name: np.unique(np.concatenate([np.empty(0, np.uint64), *parts])) for name, parts in tokens.items()}
    columns = [
        NamelessColumn(_whole(summarise("", name, state, rows)), inverted.values(known[name]), state.distinct)
        for name, state in states.items()
    ]
    every = np.unique(np.concatenate(list(known.values())))
    notes = ["it has no header"] if _numbered(states) else []
    return NamelessTable(columns, inverted.values(every), notes=notes)


def _whole(record: dict[str, Any]) -> dict[str, Any]:
    """A profile with all fields, as the catalog has it."""
    return {**dict.fromkeys(FIELDS), **record}


def _numbered(names: Iterable[str]) -> bool:
    """Whether a reader has found no header: it numbers columns then."""
    return all(name == f"column_{place}" for place, name in enumerate(names, start=1))
