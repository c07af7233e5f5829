"""A table written anew under other headers, a bounded piece at a time, its cells as they stand."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakescope.sources.model import Batch
from lakescope.sources.names import unique_names
from lakescope.tables.reading import batches_of
from lakescope.tables.writing import check_output
from lakescope.values.canonical import decode


def named(headers: Sequence[str | None], written: Sequence[str]) -> list[str]:
    """Headers that were chosen; a column without one keeps its name. No two alike."""
    return unique_names([header or name for header, name in zip(headers, written, strict=True)])[0]


def write_named(query: Any, names: Sequence[str], out: str | os.PathLike[str]) -> int:
    """Write a table under these names, whole or not at all; how many rows that were."""
    check_output(out)
    path = Path(out)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    schema = pa.schema([(name, pa.string()) for name in names])
    rows = 0
    try:
        with ExitStack() as stack:
            writer = stack.enter_context(_writer(path, draft, schema))
            for batch in _text(query, schema):
                writer.write_batch(batch)
                rows += batch.num_rows
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    return rows


def _writer(path: Path, draft: Path, schema: pa.Schema) -> Any:
    if path.suffix.lower() == ".parquet":
        import pyarrow.parquet as pq

        return pq.ParquetWriter(draft, schema)
    if path.suffix.lower() == ".csv":
        return _CsvFile(draft, schema.names)
    return pa.ipc.new_file(str(draft), schema)


class _CsvFile:
    """Writes batches as CSV, quotes only where they are needed."""

    def __init__(self, path: Path, names: Sequence[str]) -> None:
        self._path, self._names = path, names

    def __enter__(self) -> _CsvFile:
        self._file = self._path.open("w", encoding="utf-8", newline="")
        self._writer = csv.writer(self._file, lineterminator="\n")
        self._writer.writerow(self._names)
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write_batch(self, batch: pa.RecordBatch) -> None:
        columns = [column.to_pylist() for column in batch.columns]
        self._writer.writerows(zip(*columns, strict=True))


def _text(query: Any, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The cells of a table as texts."""
    order: dict[str, int] = {}
    for batch in batches_of(query):
        for column in batch.columns:
            order.setdefault(column.name, len(order))
        yield _batch(batch, order, schema)


def _batch(batch: Batch, order: dict[str, int], schema: pa.Schema) -> pa.RecordBatch:
    columns: list[pa.Array] = [pa.nulls(batch.rows, pa.string()) for _ in schema]
    for column in batch.columns:
        place = order[column.name]
        if place < len(columns):
            cells = zip(column.starts.tolist(), column.ends.tolist(), strict=True)
            texts = [
                decode(column.data[start:end].tobytes(), batch.fallback).strip() if end > start else None
                for start, end in cells
            ]
            columns[place] = pa.array(texts, pa.string())
    return pa.record_batch(columns, schema=schema)
