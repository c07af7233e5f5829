"""Segment files: Parquet for the catalog, Arrow files for the states that queries map into memory.

Written by workers into the staging area under names of their own, so that a task tried twice never collides; only the
files of the attempt that succeeded are named in the manifest.
"""

from __future__ import annotations

import bisect
import contextlib
import os
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import xxhash

from lakescope.store import disk
from lakescope.store.manifest import SegmentFile, file_checksum

_COUNTED = pa.list_(pa.struct([("value", pa.string()), ("count", pa.int64())]))
_BIN = pa.list_(pa.struct([("low", pa.float64()), ("high", pa.float64()), ("count", pa.int64())]))
_F, _I, _S, _B = pa.float64(), pa.int64(), pa.string(), pa.bool_()

#: Schema of the column catalog; docs/catalog.md explains every field.
COLUMN_SCHEMA = pa.schema(
    [
        *[
            ("table", _S),
            ("position", pa.int32()),
            ("column", _S),
            ("source_type", _S),
            ("type", _S),
            ("type_share", _F),
        ],
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
        *[("bytes", pa.int64()), ("modified", pa.string()), ("rows", pa.int64()), ("columns", pa.int32())],
        *[("units", pa.int32()), ("complete", pa.bool_()), ("version", pa.string())],
        *[("content", pa.string()), ("scanned", pa.string())],
    ]
)
#: Fields of a table that say when it was looked at, not what it is: a build later on would write others.
OF_THE_SCAN = ("content", "scanned")
PROBLEM_SCHEMA = pa.schema(
    [(name, pa.string()) for name in ("table", "severity", "code", "detail")] + [("count", pa.int64())]
)
SKETCH_SCHEMA = pa.schema(
    [
        *[("table", pa.string()), ("column", pa.string()), ("position", pa.int32()), ("distinct", pa.binary())],
        *[("signature", pa.binary()), ("key", pa.uint64())],
    ]
)
#: Correlation sketches: a key of a table with its smallest hashes, and the numeric columns beside it.
KEY_SCHEMA = pa.schema(
    [
        *[
            ("table", _S),
            ("key", pa.uint64()),
            ("columns", pa.list_(_S)),
            ("sets", pa.list_(pa.uint64())),
            ("filled", _I),
        ],
        *[("distinct", _F), ("saturated", _B), ("hashes", pa.binary()), ("rows", pa.binary())],
    ]
)
PAIR_SCHEMA = pa.schema(
    [
        *[
            ("table", _S),
            ("key", pa.uint64()),
            ("column", _S),
            ("position", pa.int32()),
            ("cells", _I),
            ("numbers", _I),
        ],
        *[("repeated", _B), ("values", pa.binary()), ("sides", pa.binary())],
    ]
)
#: Tables of earlier segments that were removed or replaced since.
TOMBSTONE_SCHEMA = pa.schema([("segment", _S), ("table", _S)])
#: Tables that could not be read, and in which state they were then.
FAILURE_SCHEMA = pa.schema([("table", _S), ("uri", _S), ("version", _S), ("content", _S)])
#: Versions of tables that were replaced or removed: up to when, and in which generation they were there last.
_PAST = [pa.field("until", _S), pa.field("generation", _I)]
PAST_SCHEMA = pa.schema([*TABLE_SCHEMA, *_PAST])
PAST_COLUMN_SCHEMA = pa.schema([*COLUMN_SCHEMA, *_PAST])
#: Q-grams of a column that one of its values holds; they go into the inverted index.
GRAM_SCHEMA = pa.schema([("table", _S), ("column", _S), ("key", pa.uint64()), ("grams", pa.binary())])
SCHEMAS = {
    "failures": FAILURE_SCHEMA,
    "tombstones": TOMBSTONE_SCHEMA,
    "tables": TABLE_SCHEMA,
    "columns": COLUMN_SCHEMA,
    "past": PAST_SCHEMA,
    "past-columns": PAST_COLUMN_SCHEMA,
    "problems": PROBLEM_SCHEMA,
    "notices": PROBLEM_SCHEMA,
    "sketches": SKETCH_SCHEMA,
    "keys": KEY_SCHEMA,
    "pairs": PAIR_SCHEMA,
    "raw-grams": GRAM_SCHEMA,
}
#: Kinds whose files are Arrow, mapped by queries; the others are Parquet.
MAPPED = ("sketches", "keys", "pairs", "raw-grams")
#: Kinds that tell of versions that are no more, each with its fields of the present.
PAST = {"past": "tables", "past-columns": "columns"}
#: Kinds that only lie in the staging area.
STAGED = ("raw-grams",)

#: Records written at a time: a row group of Parquet, a batch of Arrow.
ROWS_PER_WRITE = 512


def record_batch(records: list[dict[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Records as Arrow, a field at a time; several times faster on nested fields than ``RecordBatch.from_pylist``."""
    arrays = [_array([record.get(field.name) for record in records], field.type) for field in schema]
    return pa.record_batch(arrays, schema=schema)


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_map(kind):
        offsets, items = _flatten([value and list(value.items()) for value in values])
        keys = pa.array([key for key, _ in items], kind.key_type)
        return pa.MapArray.from_arrays(offsets, keys, pa.array([item for _, item in items], kind.item_type))
    if pa.types.is_list(kind):
        offsets, items = _flatten(values)
        return pa.ListArray.from_arrays(offsets, _array(items, kind.value_type))
    if pa.types.is_struct(kind):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        return pa.StructArray.from_arrays(
            [pa.array([value[field.name] for value in values], field.type) for field in fields], fields=fields
        )
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:
        # Names with lone surrogates, which no UTF-8 has.
        return pa.array([value and value.encode("utf-8", "replace").decode() for value in values], kind)


def _flatten(lists: list[list[Any] | None]) -> tuple[pa.Array, list[Any]]:
    """Offsets of the lists, null where there is none, and their items one after the other."""
    items: list[Any] = []
    offsets: list[int | None] = []
    for each in lists:
        offsets.append(None if each is None else len(items))
        items.extend(each or [])
    return pa.array([*offsets, len(items)], pa.int32()), items


class ShardWriter:
    """Appends records of one kind to one new file, in bounded memory."""

    def __init__(self, staging: str | os.PathLike[str], kind: str) -> None:
        self.kind = kind
        self.schema = SCHEMAS[kind]
        self.name = f"{kind}-{uuid.uuid4().hex[:16]}.{'arrow' if kind in MAPPED else 'parquet'}"
        self._path = Path(staging) / self.name
        self._rows = 0
        self._records: list[dict[str, Any]] = []
        self._batches: list[pa.RecordBatch] = []
        self._stream: IO[bytes] | None = None
        self._writer: pq.ParquetWriter | pa.ipc.RecordBatchFileWriter | None = None

    def add(self, record: dict[str, Any]) -> None:
        """Append one record."""
        self._records.append(record)
        if len(self._records) >= ROWS_PER_WRITE:
            self._gather()

    def add_batch(self, batch: pa.RecordBatch) -> None:
        """Append records that are an Arrow batch already."""
        self._gather()
        self._batches.append(batch)
        if self.kind in MAPPED or sum(each.num_rows for each in self._batches) >= ROWS_PER_WRITE:
            self._flush()

    def _gather(self) -> None:
        records, self._records = self._records, []
        if records:
            self.add_batch(record_batch(records, self.schema))

    def _flush(self) -> None:
        """Write what waits: small row groups would take more room, and several times as long to read."""
        batches, self._batches = self._batches, []
        if not batches:
            return
        if self._writer is None:
            self._writer = self._open()
        # A table is found by bisection of a row group.
        concatenated = ordered(pa.Table.from_batches(batches), ["table"]).to_batches() if len(batches) > 1 else batches
        for batch in concatenated:
            self._writer.write_batch(batch)
            self._rows += batch.num_rows

    def _open(self) -> pq.ParquetWriter | pa.ipc.RecordBatchFileWriter:
        self._stream = disk.create(self._path)
        if self.kind in MAPPED:
            return pa.ipc.new_file(self._stream, self.schema)
        # Not zstd: making ready for it takes longer than reading pages as small as these.
        return pq.ParquetWriter(self._stream, self.schema, compression="snappy", use_dictionary=False)

    def close(self) -> SegmentFile | None:
        """Finish the file and make it durable; None if nothing was added."""
        self._gather()
        self._flush()
        if self._writer is None or self._stream is None:
            return None
        with self._stream as stream:
            self._writer.close()
            disk.sync(stream)
        return SegmentFile(self.name, self.kind, self._rows, self._path.stat().st_size, file_checksum(self._path))


def write_records(staging: str | os.PathLike[str], kind: str, records: Iterable[dict[str, Any]]) -> list[SegmentFile]:
    """Write records of one kind to one new file; none if there are no records."""
    shard = ShardWriter(staging, kind)
    for record in records:
        shard.add(record)
    file = shard.close()
    return [file] if file else []


def write_tombstones(dead: Mapping[str, Collection[str]], staging: str | os.PathLike[str]) -> list[SegmentFile]:
    """Write which tables of each segment are gone."""
    gone = ({"segment": segment, "table": table} for segment in sorted(dead) for table in sorted(dead[segment]))
    return write_records(staging, "tombstones", gone)


def read_catalog(
    mapped: pa.Buffer,
    file: SegmentFile,
    *,
    table: str | None = None,
    tables: Collection[str] | None = None,
    fields: Sequence[str] | None = None,
) -> pa.Table:
    """Read a Parquet file whose bytes are those that were written: all of it, some fields, or the rows of tables."""
    if xxhash.xxh64_hexdigest(memoryview(mapped)) != file.checksum:
        raise ValueError("its checksum does not match")
    return read_parts(pa.BufferReader(mapped), table=table, tables=tables, fields=fields)


def read_parts(
    opened: Any,
    *,
    table: str | None = None,
    tables: Collection[str] | None = None,
    fields: Sequence[str] | None = None,
) -> pa.Table:
    """Read what is wanted of a Parquet file, and nothing else of it."""
    # Not pq.read_table: its dataset layer imports pandas, a second of start-up.
    with _system_memory(), pq.ParquetFile(opened, pre_buffer=False) as source:
        if tables is not None:
            return _rows_of_tables(source, tables)
        if table is None:
            return source.read(None if fields is None else list(fields), use_threads=False)
        groups = [
            rows_of(source.read_row_group(number, use_threads=False), table) for number in _groups_with(source, table)
        ]
        return concatenated(groups, source.schema_arrow)


def read_group(opened: Any, metadata: pq.FileMetaData, group: int, fields: Sequence[str]) -> pa.Table:
    """Some fields of a row group of a Parquet file whose metadata are known."""
    with _system_memory(), pq.ParquetFile(opened, metadata=metadata, pre_buffer=False) as source:
        return source.read_row_group(group, list(fields), use_threads=False)


@contextlib.contextmanager
def _system_memory() -> Iterator[None]:
    """Take memory from the system: Arrow's own allocator gives pages back at once, only to have them faulted in again.

    A catalog of 300,000 columns is read in a seventh of the time. Two threads may leave it so: it does no harm.
    """
    before = pa.default_memory_pool()
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        pa.set_memory_pool(before)


def _rows_of_tables(source: pq.ParquetFile, tables: Collection[str]) -> pa.Table:
    """The rows of some tables: row groups that hold none of them are passed over."""
    found = []
    for number in range(source.num_row_groups):
        names = source.read_row_group(number, ["table"], use_threads=False)["table"].to_pylist()
        rows = [row for row, name in enumerate(names) if name in tables]
        if rows:
            found.append(chosen(source.read_row_group(number, use_threads=False), rows))
    return concatenated(found, source.schema_arrow)


def _groups_with(source: pq.ParquetFile, table: str) -> list[int]:
    """Row groups whose range of table names holds a name: each is sorted by table."""
    groups = []
    for number in range(source.num_row_groups):
        statistics = source.metadata.row_group(number).column(0).statistics
        exact = statistics is not None and statistics.has_min_max
        if not exact or statistics.min <= table <= statistics.max:
            groups.append(number)
    return groups


Rows = TypeVar("Rows", pa.Table, pa.RecordBatch)


def rows_of(catalog: Rows, table: str) -> Rows:
    """The rows of one table in a catalog sorted by table."""
    first, end = rows_range(catalog, table)
    return catalog.slice(first, end - first)


def rows_range(catalog: Rows, table: str) -> tuple[int, int]:
    """Where the rows of one table begin and end, found by bisection (Arrow's filter would import pandas)."""
    names, rows = catalog["table"], range(catalog.num_rows)

    def name_at(row: int) -> str:
        return str(names[row].as_py())

    first = bisect.bisect_left(rows, table, key=name_at)
    return first, bisect.bisect_right(rows, table, lo=first, key=name_at)


def concatenated(parts: Sequence[pa.Table], schema: pa.Schema) -> pa.Table:
    """Records that were read from several places, or none (not by Schema.empty_table, which would import pandas)."""
    return pa.concat_tables(parts) if parts else pa.Table.from_batches([], schema)


def chosen(catalog: pa.Table, rows: Sequence[int] | npt.NDArray[np.int64]) -> pa.Table:
    """Some rows of a catalog, by their numbers (not by pa.array, which would import pandas)."""
    numbers = np.array(rows, np.int64)
    return catalog.take(pa.Array.from_buffers(pa.int64(), numbers.size, [None, pa.py_buffer(numbers)]))


def ordered(catalog: pa.Table, keys: Sequence[str]) -> pa.Table:
    """A catalog sorted by some of its fields, in one chunk."""
    order = order_of(catalog, keys)
    if (order[1:] > order[:-1]).all():
        return catalog.combine_chunks()
    return chosen(catalog, order).combine_chunks()


def order_of(catalog: pa.Table, keys: Sequence[str]) -> npt.NDArray[np.int64]:
    """The rows of a catalog in the order of some of its fields."""
    rows = pc.sort_indices(catalog, [(key, "ascending") for key in keys])
    return np.frombuffer(rows.buffers()[1], np.uint64, len(rows)).astype(np.int64)
