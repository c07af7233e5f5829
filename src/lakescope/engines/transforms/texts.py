"""A table as programs see it: cells as they are written, without the space around them.

Nothing is understood here: ``007`` stays ``007``, and ``NA`` may be Namibia. Only empty cells are missing.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakescope.array_types import I64
from lakescope.errors import BadRequest, NotFound, SourceError
from lakescope.sources.model import Batch
from lakescope.values.alphabet import SPACES
from lakescope.values.canonical import decode
from lakescope.values.text import TextColumn

#: Rows that are taken out of Arrow at a time.
PIECE = 65_536


@dataclass(frozen=True)
class TextTable:
    """Columns by name, as Arrow text; null where a cell is missing."""

    columns: dict[str, pa.ChunkedArray]
    rows: int

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.columns)

    def column(self, name: str) -> pa.ChunkedArray:
        if name not in self.columns:
            raise NotFound.among("column", name, self.columns)
        return self.columns[name]

    def records(self, rows: I64) -> list[dict[str, str]]:
        """Some rows as dictionaries of the cells that are there."""
        columns = {name: _take(column, rows).to_pylist() for name, column in self.columns.items()}
        return [
            {name: cells[place] for name, cells in columns.items() if cells[place] is not None}
            for place in range(len(rows))
        ]

    def chosen(self, names: Sequence[str]) -> TextTable:
        return TextTable({name: self.column(name) for name in names}, self.rows)

    def at(self, rows: I64) -> TextTable:
        """Some rows as a table."""
        return TextTable({name: _take(column, rows) for name, column in self.columns.items()}, len(rows))

    def pieces(self) -> Iterator[TextTable]:
        """The table in pieces of bounded size."""
        for start in range(0, self.rows, PIECE):
            count = min(PIECE, self.rows - start)
            yield TextTable({name: column.slice(start, count) for name, column in self.columns.items()}, count)


def _take(column: pa.ChunkedArray, rows: I64) -> pa.ChunkedArray:
    """Cells of some rows; if these are in order, from each chunk its own, since Arrow would put all chunks together."""
    if column.num_chunks < 2 or (np.diff(rows) < 0).any():
        return column.take(pa.array(rows))
    sizes = np.array([len(chunk) for chunk in column.chunks])
    ends = np.cumsum(sizes)
    parts = np.split(rows, np.searchsorted(rows, ends[:-1]))
    taken = [
        chunk.take(pa.array(part - start))
        for chunk, part, start in zip(column.chunks, parts, ends - sizes, strict=True)
        if part.size
    ]
    return pa.chunked_array(taken, column.type)


def read(query: Any) -> TextTable:
    """A table by its path or URI, or a frame."""
    from lakescope.tables.reading import batches_of

    return _gathered(batches_of(query))


def read_kept(query: Any) -> TextTable:
    """A table by its path or URI, or a frame; of one that is cut off the rows before it, with a warning."""
    from lakescope.tables.reading import batches_of

    def until_cut() -> Iterator[Batch]:
        try:
            yield from batches_of(query)
        except SourceError as error:
            if error.code != "truncated":
                raise
            warnings.warn(error.message, stacklevel=2)

    return _gathered(until_cut())


def _gathered(batches: Iterable[Batch]) -> TextTable:
    parts: dict[str, list[pa.Array]] = {}
    rows = 0
    for batch in batches:
        for column in batch.columns:
            held = parts.setdefault(column.name, [pa.nulls(rows, pa.large_string())] if rows else [])
            held.append(_cells(column, batch.fallback))
        rows += batch.rows
        for held in parts.values():
            lacking = rows - sum(len(part) for part in held)
            if lacking:
                held.append(pa.nulls(lacking, pa.large_string()))
    if not parts:
        raise BadRequest("the table has no columns", hint="give a table with a header and rows")
    return TextTable({name: pa.chunked_array(held, pa.large_string()) for name, held in parts.items()}, rows)


def _cells(column: TextColumn, fallback: str) -> pa.Array:
    """The cells of a column, trimmed; null where they are missing or empty."""
    starts = column.starts.astype(np.int64)
    missing = column.ends < 0
    lengths = np.where(missing, 0, column.ends - starts)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    places = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(column.data[places])]
    raw = pa.Array.from_buffers(pa.large_binary(), starts.size, buffers)
    try:
        texts = raw.cast(pa.large_string())
    except pa.ArrowInvalid:  # not UTF-8 throughout: cell by cell
        texts = pa.array([decode(cell, fallback) for cell in raw.to_pylist()], pa.large_string())
    texts = pc.utf8_trim(texts, SPACES)
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, texts.type), texts)
