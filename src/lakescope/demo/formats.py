"""Writers: each takes a table in chunks and streams it into one file format. Memory stays at one chunk.

A sink is chosen by the end of the file's name, as a reader of the lake would: ``x.csv.gz``, ``x.tsv``, ``x.parquet``.
"""

from __future__ import annotations

import gzip
import json
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq

from lakescope.demo import text

#: Rows per chunk the table generators aim at.
CHUNK = 50_000


@dataclass(frozen=True, slots=True)
class Style:
    """How a delimited file is written, and what its reader will see as names."""

    delimiter: str | None = None  #: None: tab for .tsv, comma otherwise
    header: bool = True  #: False: the file starts with data
    shown: tuple[str, ...] | None = None  #: names written instead of the true ones (``col1``, ``Unnamed: 0``)
    above: tuple[str, ...] = ()  #: lines above the header: a preamble, or a first header row
    null: str = ""  #: what a missing cell reads
    bom: bool = False
    rows_per_part: int = 0  #: for a directory of part files


class Sink(Protocol):
    """An open table: chunks go in, ``close`` finishes the file."""

    def write(self, chunk: pa.Table) -> None: ...

    def close(self) -> None: ...


class CsvSink:
    """Delimited text, plain or compressed (.gz, .zst, .bz2) by the file's name."""

    def __init__(self, path: Path, style: Style) -> None:
        self._style = style
        self._delimiter = style.delimiter or ("\t" if ".tsv" in path.suffixes else ",")
        self._raw: IO[bytes] | None = None
        self._file = self._open(path)
        self._started = False

    def _open(self, path: Path) -> Any:
        if path.suffix == ".gz":
            self._raw = path.open("wb")
            return gzip.GzipFile(filename="", mode="wb", fileobj=self._raw, mtime=0, compresslevel=4)
        kind = {".zst": "zstd", ".bz2": "bz2"}.get(path.suffix)
        return path.open("wb") if kind is None else pa.output_stream(str(path), compression=kind)

    def write(self, chunk: pa.Table) -> None:
        if not self._started:
            self._started = True
            self._file.write(self._head(chunk.column_names))
        for batch in chunk.combine_chunks().to_batches():
            self._file.write(text.content(text.lines(batch.columns, self._delimiter, self._style.null)))

    def _head(self, names: list[str]) -> bytes:
        head = "".join(line + "\n" for line in self._style.above)
        if self._style.header:
            shown = [pa.array([name]) for name in self._style.shown or names]
            head += text.lines(shown, self._delimiter)[0].as_py()
        return (b"\xef\xbb\xbf" if self._style.bom else b"") + head.encode()

    def close(self) -> None:
        self._file.close()
        if self._raw is not None:
            self._raw.close()


class JsonLinesSink:
    """One JSON object per row. A column called ``a.b`` becomes a nested object; missing cells leave their key out."""

    def __init__(self, path: Path, style: Style) -> None:
        self._file = path.open("w", encoding="utf-8", newline="\n")

    def write(self, chunk: pa.Table) -> None:
        paths = [name.split(".") for name in chunk.column_names]
        columns = [_json_values(column) for column in chunk.columns]
        for row in zip(*columns, strict=True):
            record: dict[str, Any] = {}
            for path, value in zip(paths, row, strict=True):
                if value is None:
                    continue
                at = record
                for step in path[:-1]:
                    at = at.setdefault(step, {})
                at[path[-1]] = value
            self._file.write(json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n")

    def close(self) -> None:
        self._file.close()


def _json_values(column: pa.ChunkedArray) -> list[Any]:
    plain = pa.types.is_temporal(column.type)
    values: list[Any] = (text.cells(column.combine_chunks()) if plain else column).to_pylist()
    return values


class ParquetSink:
    """Parquet, one row group per chunk."""

    def __init__(self, path: Path, style: Style) -> None:
        self._path, self._shown = path, style.shown
        self._writer: pq.ParquetWriter | None = None

    def write(self, chunk: pa.Table) -> None:
        chunk = chunk.rename_columns(list(self._shown)) if self._shown else chunk
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._path, chunk.schema, compression="zstd")
        self._writer.write_table(chunk)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


class PartsSink:
    """A directory of Parquet part files that is one table, as Spark leaves it, ``_SUCCESS`` included."""

    def __init__(self, path: Path, style: Style) -> None:
        path.mkdir(parents=True, exist_ok=True)
        self._path, self._rows = path, style.rows_per_part or CHUNK
        self._count = 0
        self._waiting: pa.Table | None = None

    def write(self, chunk: pa.Table) -> None:
        held = chunk if self._waiting is None else pa.concat_tables([self._waiting, chunk])
        while held.num_rows >= self._rows:
            self._part(held.slice(0, self._rows))
            held = held.slice(self._rows)
        self._waiting = held

    def _part(self, rows: pa.Table) -> None:
        pq.write_table(rows, self._path / f"part-{self._count:05d}.parquet", compression="snappy")
        self._count += 1

    def close(self) -> None:
        if self._waiting is not None and (self._waiting.num_rows or not self._count):
            self._part(self._waiting)
        (self._path / "_SUCCESS").write_bytes(b"")


class ArrowSink:
    """Arrow IPC file, which is what Feather version 2 is."""

    def __init__(self, path: Path, style: Style) -> None:
        self._path = path
        self._writer: Any = None

    def write(self, chunk: pa.Table) -> None:
        if self._writer is None:
            self._writer = pa.ipc.new_file(str(self._path), chunk.schema)
        self._writer.write_table(chunk)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


class OrcSink:
    """ORC, one or more stripes per chunk."""

    def __init__(self, path: Path, style: Style) -> None:
        self._writer = orc.ORCWriter(str(path), compression="zstd")

    def write(self, chunk: pa.Table) -> None:
        self._writer.write(chunk)

    def close(self) -> None:
        self._writer.close()


class SqliteSink:
    """One table of a SQLite file. Keys are not declared: finding them is what the demo is for."""

    def __init__(self, path: Path, table: str) -> None:
        self._table = table
        self._db = sqlite3.connect(path)
        self._db.execute("pragma journal_mode = memory")
        self._insert = ""

    def write(self, chunk: pa.Table) -> None:
        if not self._insert:
            names = [f'"{field.name}" {_sqlite_type(field.type)}' for field in chunk.schema]
            self._db.execute(f'create table "{self._table}" ({", ".join(names)})')
            self._insert = f'insert into "{self._table}" values ({", ".join("?" * len(names))})'
        columns = [_json_values(column) for column in chunk.columns]
        self._db.executemany(self._insert, zip(*columns, strict=True))

    def close(self) -> None:
        self._db.commit()
        self._db.close()


def _sqlite_type(kind: pa.DataType) -> str:
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return "INTEGER"
    return "REAL" if pa.types.is_floating(kind) else "TEXT"


def open_sink(path: Path, part: str, style: Style) -> Sink:
    """The sink for ``path``; ``part`` is the table's name inside a database file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    name = path.name
    if name.endswith((".csv", ".tsv", ".csv.gz", ".csv.zst", ".csv.bz2", ".tsv.gz")):
        return CsvSink(path, style)
    if name.endswith(".jsonl"):
        return JsonLinesSink(path, style)
    if name.endswith(".parquet"):
        return PartsSink(path, style) if style.rows_per_part else ParquetSink(path, style)
    if name.endswith((".arrow", ".feather")):
        return ArrowSink(path, style)
    if name.endswith(".orc"):
        return OrcSink(path, style)
    if name.endswith(".sqlite"):
        return SqliteSink(path, part)
    raise ValueError(f"no writer for {name}")
