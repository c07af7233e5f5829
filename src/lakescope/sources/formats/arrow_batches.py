"""Record batches of any size and type as bounded batches of text cells."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from lakescope.sources.formats.flatten import text_columns, width
from lakescope.sources.io.limits import check_text
from lakescope.sources.model import Batch, Problem, Report
from lakescope.sources.names import check_width, unique_names
from lakescope.values.typed import text_bytes

#: Bounds of one batch: rows, bytes of text, and cells (a very wide table has short batches).
MAX_ROWS = 65536
MAX_BYTES = 8 * 1024 * 1024
MAX_CELLS = 1 << 20


def text_batches(
    batches: Iterable[Any], schema: Any, table: str, report: Report, size: int | None = None
) -> Iterator[Batch]:
    """Turn record batches into bounded batches of text; a table without rows gives one batch that shows its columns.

    ``size`` is that of the file they come from, if whoever wrote it is not trusted.
    """
    told: set[Problem] = set()

    def tell_once(problem: Problem) -> None:
        if problem not in told:
            told.add(problem)
            report(problem)

    check_width(table, width(schema))
    rows = text = 0
    for batch in batches:
        for piece in bounded(batch):
            rows += piece.num_rows
            made = _text_batch(piece, table, tell_once)
            if size is not None:
                text += sum(int((column.ends - column.starts).sum(dtype=np.int64)) for column in made.columns)
                check_text(table, text, size)
            yield made
    if rows == 0:
        yield _text_batch(empty_batch(schema), table, tell_once)


def rows_per_batch(columns: int) -> int:
    """How many rows of so many columns to read at a time."""
    return max(1, min(MAX_ROWS, MAX_CELLS // max(1, columns)))


def bounded(batch: Any) -> Iterator[Any]:
    """Cut a record batch until every piece is within the bounds; a single row is never cut."""
    rows = batch.num_rows
    if rows == 0:
        return
    size = sum(text_bytes(column) for column in batch.columns)
    pieces = max(-(-rows // rows_per_batch(batch.num_columns)), -(-size // MAX_BYTES))
    if pieces <= 1 or rows == 1:
        yield batch
        return
    step = max(1, rows // pieces)
    for start in range(0, rows, step):
        yield from bounded(batch.slice(start, step))


def check(batch: Any) -> None:
    """Refuse a record batch whose parts do not fit together: whatever reads it would leave its memory.

    Text is checked as bytes, because cells that are not UTF-8 are no damage.
    """
    columns = [_as_bytes(column) for column in batch.columns]
    pa.RecordBatch.from_arrays(columns, names=[""] * len(columns)).validate(full=True)


def _as_bytes(column: Any) -> Any:
    if pa.types.is_string(column.type):
        return column.view(pa.binary())
    return column.view(pa.large_binary()) if pa.types.is_large_string(column.type) else column


def empty_batch(schema: Any) -> Any:
    """A record batch without rows."""
    return pa.RecordBatch.from_arrays(
        [column.combine_chunks() for column in schema.empty_table().columns], schema=schema
    )


def _text_batch(batch: Any, table: str, report: Report) -> Batch:
    columns = text_columns(batch, table, report)
    check_width(table, len(columns))
    names = [column.name for column in columns]
    if "" in names or len(set(names)) < len(names):
        unique, changed = unique_names(names)
        for column, name in zip(columns, unique, strict=True):
            column.name = name
        detail = "blank or repeated column names were replaced or numbered"
        report(Problem(table, "warning", "renamed-columns", detail, changed))
    return Batch(batch.num_rows, columns)
