"""Segment files: Parquet for the catalog, Arrow files for the states that queries map into memory.

Written by workers into the staging area under names of their own, so that a task tried twice never collides; only the
files of the attempt that succeeded are named in the manifest.
"""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakescope.errors import IndexDamaged
from lakescope.store.manifest import SegmentFile, file_checksum

_COUNTED = pa.list_(pa.struct([("value", pa.string()), ("count", pa.int64())]))
_BIN = pa.list_(pa.struct([("low", pa.float64()), ("high", pa.float64()), ("count", pa.int64())]))
_F, _I, _S, _B = pa.float64(), pa.int64(), pa.string(), pa.bool_()

#: Schema of the column catalog; docs/catalog.md explains every field.
COLUMN_SCHEMA = pa.schema(
    [
        *[("table", _S), ("position", pa.int32()), ("column", _S), ("source_type", _S), ("type", _S), ("type_share", _F)],
        *[("data_class", _S), ("rows", _I), ("nulls", _I), ("empty", _I), ("markers", _I), ("undecodable", _I)],
        *[("distinct", _I), ("distinct_low", _I), ("distinct_high", _I), ("distinct_exact", _B), ("uniqueness", _F)],
        *[("key", _S), ("constancy", _F), ("minimum", _S), ("maximum", _S)],
        *[("mean", _F), ("std", _F), ("zeros", _I), ("negatives", _I), ("infinite", _I)],
        *[("quartiles", pa.list_(_F)), ("quantiles", pa.list_(_F)), ("quantile_error", _F), ("histogram", _BIN)],
        *[("outliers", _I), ("fence_low", _F), ("fence_high", _F)],
        *[("first_digits", pa.list_(_F)), ("benford_deviation", _F), ("benford", _B)],
        *[("length_min", _I), ("length_max", _I), ("length_mean", _F), ("length_median", _F)],
        *[("digits_max", _I), ("decimals_max", _I)],
        *[("top", _COUNTED), ("top_error", _I), ("patterns", _COUNTED), ("patterns_error", _I)],
        *[("sample", pa.list_(_S)), ("kinds", pa.map_(_S, _I))],
    ]
)
TABLE_SCHEMA = pa.schema(
    [
        *[("table", pa.string()), ("id", pa.string()), ("uri", pa.string()), ("format", pa.string())],
        *[("bytes", pa.int64()), ("modified", pa.timestamp("ms", tz="UTC")), ("rows", pa.int64()), ("columns", pa.int32())],
        *[("units", pa.int32()), ("complete", pa.bool_()), ("problems", pa.int32())],
    ]
)
PROBLEM_SCHEMA = pa.schema(
    [(name, pa.string()) for name in ("table", "severity", "code", "detail")] + [("count", pa.int64())]
)
SKETCH_SCHEMA = pa.schema(
    [("table", pa.string()), ("column", pa.string()), ("position", pa.int32()), ("distinct", pa.binary())]
)
SCHEMAS = {"tables": TABLE_SCHEMA, "columns": COLUMN_SCHEMA, "problems": PROBLEM_SCHEMA, "sketches": SKETCH_SCHEMA}

_ROWS_PER_WRITE = 512


class ShardWriter:
    """Appends records of one kind to one new file, in bounded memory."""

    def __init__(self, staging: str | os.PathLike[str], kind: str) -> None:
        self.kind = kind
        self.schema = SCHEMAS[kind]
        self.name = f"{kind}-{uuid.uuid4().hex[:16]}.{'arrow' if kind == 'sketches' else 'parquet'}"
        self._path = Path(staging) / self.name
        self._rows = 0
        self._waiting: list[dict[str, Any]] = []
        self._writer: pq.ParquetWriter | pa.ipc.RecordBatchFileWriter | None = None

    def add(self, record: dict[str, Any]) -> None:
        self._waiting.append(record)
        if len(self._waiting) >= _ROWS_PER_WRITE:
            self._flush()

    def _flush(self) -> None:
        if not self._waiting:
            return
        if self._writer is None:
            self._writer = self._open()
        self._writer.write_batch(pa.RecordBatch.from_pylist(self._waiting, self.schema))
        self._rows += len(self._waiting)
        self._waiting = []

    def _open(self) -> pq.ParquetWriter | pa.ipc.RecordBatchFileWriter:
        if self.kind == "sketches":
            return pa.ipc.new_file(str(self._path), self.schema)
        return pq.ParquetWriter(self._path, self.schema, compression="zstd", write_page_checksum=True)

    def close(self) -> SegmentFile | None:
        """Finish the file and make it durable; None if nothing was added."""
        self._flush()
        if self._writer is None:
            return None
        self._writer.close()
        with open(self._path, "rb") as stream:
            os.fsync(stream.fileno())
        return SegmentFile(self.name, self.kind, self._rows, self._path.stat().st_size, file_checksum(self._path))


def read_catalog(index: Path, files: list[SegmentFile], kind: str, **options: Any) -> pa.Table:
    """Read the Parquet files of one kind; a damaged one is refused by name."""
    tables = []
    for file in files:
        try:
            tables.append(pq.read_table(index / file.path, page_checksum_verification=True, partitioning=None, **options))
        except FileNotFoundError:
            raise
        except (OSError, pa.ArrowException) as error:
            raise IndexDamaged(
                f"{index / file.path} is damaged: {error}", hint="run `lakescope verify`, then build the index again"
            ) from error
    return pa.concat_tables(tables) if tables else SCHEMAS[kind].empty_table()
