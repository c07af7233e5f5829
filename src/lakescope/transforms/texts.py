"""A table as programs see it: cells as they are written, without the space around them.

Nothing is understood here: ``007`` stays ``007``, and ``NA`` may be Namibia. Only empty cells are missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakescope.errors import BadRequest, NotFound
from lakescope.transforms.alphabet import SPACES
from lakescope.values.canonical import decode
from lakescope.values.text import TextColumn

I64 = npt.NDArray[np.int64]

#: Rows that are taken out of Arrow at a time.
PIECE = 65_536


@dataclass(frozen=True)
class Texts:
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

    def taken(self, rows: I64) -> list[dict[str, str]]:
        """Some rows as dictionaries of the cells that are there."""
        places = pa.array(rows)
        columns = {name: column.take(places).to_pylist() for name, column in self.columns.items()}
        return [
            {name: cells[place] for name, cells in columns.items() if cells[place] is not None}
            for place in range(len(rows))
        ]

    def chosen(self, names: Sequence[str]) -> Texts:
        return Texts({name: self.column(name) for name in names}, self.rows)

    def at(self, rows: I64) -> Texts:
        """Some rows as a table."""
        places = pa.array(rows)
        return Texts({name: column.take(places) for name, column in self.columns.items()}, len(rows))

    def pieces(self) -> Iterator[Texts]:
        """The table in pieces of bounded size."""
        for start in range(0, self.rows, PIECE):
            count = min(PIECE, self.rows - start)
            yield Texts({name: column.slice(start, count) for name, column in self.columns.items()}, count)


def read(query: Any) -> Texts:
    """A table by its path or URI, or a frame."""
    from lakescope.search.reading import batches_of

    parts: dict[str, list[pa.Array]] = {}
    rows = 0
    for batch in batches_of(query):
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
    return Texts({name: pa.chunked_array(held, pa.large_string()) for name, held in parts.items()}, rows)


def _cells(column: TextColumn, fallback: str) -> pa.Array:
    data = column.data.tobytes()
    cells = []
    for start, end in zip(column.starts.tolist(), column.ends.tolist(), strict=True):
        text = decode(data[start:end], fallback) if end >= 0 else ""
        cells.append(text.strip(SPACES) or None)
    return pa.array(cells, pa.large_string())
