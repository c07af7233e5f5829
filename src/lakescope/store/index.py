"""Reading an index: no Spark, nothing loaded before it is asked for."""

from __future__ import annotations

import contextlib
import json
import mmap
import os
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from lakescope.errors import BadRequest, IndexDamaged, NotFound
from lakescope.store.arrays import ArrayFile, Arrays, read_arrays
from lakescope.store.manifest import Manifest, SegmentFile
from lakescope.store.segment import (
    MAPPED,
    OF_THE_SCAN,
    PAST,
    ROWS_PER_WRITE,
    SCHEMAS,
    chosen,
    ordered,
    read_catalog,
    rows_of,
)

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]

_TRIES = 5
#: What columns are in order of, and all parts of the catalog.
_ORDER = ("table", "position")
_ORDERS = {
    "tables": ("table",),
    "columns": _ORDER,
    "problems": ("table", "code"),
    "notices": ("table", "code"),
    "failures": ("table",),
    "past": ("table", "generation"),
    "past-columns": ("table", "generation", "position"),
}
#: Files of arrays up to this size are read whole when they are first used.
CHECKED_BYTES = 32 * 1024 * 1024


class Batch(NamedTuple):
    """Records as they lie in memory, and the numbers of those whose table is still there."""

    records: pa.RecordBatch
    live: I64


class Index:
    """One generation of an index, as its manifest named it when it was opened."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._cache: dict[str, pa.Table] = {}
        self.manifest, self._mapped = self._open()

    def _open(self) -> tuple[Manifest, dict[str, pa.Buffer]]:
        """Map all files of a manifest; a build published meanwhile means mapping those of the newer one.

        What is mapped stays readable when a later build has replaced and removed it.
        """
        for _ in range(_TRIES):
            manifest = Manifest.load(self.path)
            try:
                return manifest, {file.path: self._map(file) for file in manifest.files}
            except IndexDamaged:
                if Manifest.load(self.path).generation == manifest.generation:
                    raise
        raise IndexDamaged(f"{self.path} changes faster than it can be opened", hint="try again")

    def _map(self, file: SegmentFile) -> pa.Buffer:
        path = self.path / file.path
        hint = "restore the file, or run `lakescope repair`"
        try:
            with path.open("rb") as stream:
                size = os.fstat(stream.fileno()).st_size
                if size != file.size:
                    raise IndexDamaged(f"{path} is damaged: {size} bytes instead of {file.size}", hint=hint)
                return pa.py_buffer(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))
        except FileNotFoundError:
            raise IndexDamaged(f"{path} is missing", hint=hint) from None
        except PermissionError as error:
            raise BadRequest(f"cannot read {path}: {error.strerror}", hint="ask for the right to read it") from error
        except (OSError, ValueError) as error:
            raise IndexDamaged(f"cannot read {path}: {error}", hint=hint) from error

    @cached_property
    def _dead(self) -> dict[str, frozenset[str]]:
        """Tables of each segment that were removed or replaced since."""
        found: dict[str, set[str]] = {}
        for file in self.manifest.of_kind("tombstones"):
            rows = self._checked(file)
            for segment, table in zip(rows["segment"].to_pylist(), rows["table"].to_pylist(), strict=True):
                found.setdefault(segment, set()).add(table)
        return {segment: frozenset(tables) for segment, tables in found.items()}

    def _live(self, file: SegmentFile, tables: pa.ChunkedArray | pa.Array) -> I64 | None:
        """Which rows of a file are of tables that are still there; None: all."""
        dead = self._dead.get(file.segment)
        if not dead or file.kind in PAST:
            return None
        kept = [row for row, table in enumerate(tables.to_pylist()) if table not in dead]
        return None if len(kept) == len(tables) else np.array(kept, np.int64)

    @cached_property
    def numbers(self) -> dict[str, I32 | None]:
        """Of every segment: the row in the catalog of each of its columns, -1 of those that are gone.

        None where these are the very same: as long as there is one segment with nothing gone.
        """
        if len(self.manifest.segments) == 1 and not self._dead:
            return dict.fromkeys(self.manifest.segments)
        parts = {segment: self._columns_of_segment(segment) for segment in self.manifest.segments}
        every = pa.concat_tables(parts.values())
        dead = [self._dead.get(segment, frozenset()) for segment, part in parts.items() for _ in range(part.num_rows)]
        alive = np.array([table not in gone for table, gone in zip(every["table"].to_pylist(), dead, strict=True)])
        indices = pc.sort_indices(every, [(name, "ascending") for name in _ORDER])
        order = np.frombuffer(indices.buffers()[1], np.uint64, len(indices)).astype(np.int64)
        order = order[alive[order]]
        found = np.full(every.num_rows, -1, np.int32)
        found[order] = np.arange(order.size, dtype=np.int32)
        ends = np.cumsum([part.num_rows for part in parts.values()])
        return dict(zip(parts, np.split(found, ends[:-1]), strict=True))

    def _columns_of_segment(self, segment: str) -> pa.Table:
        """Tables and positions of all columns of a segment, gone ones too, in order."""
        files = self.manifest.of_kind("columns", segment)
        parts = [self._checked(file, fields=_ORDER) for file in files]
        schema = pa.schema([SCHEMAS["columns"].field(name) for name in _ORDER])
        return ordered(pa.concat_tables(parts), list(_ORDER)) if parts else schema.empty_table()

    def names_in(self, segment: str) -> set[str]:
        """Tables that a segment tells of, gone ones too."""
        files = [*self.manifest.of_kind("tables", segment), *self.manifest.of_kind("problems", segment)]
        return {name for file in files for name in self._checked(file, fields=["table"])["table"].to_pylist()}

    def dead_in(self, segment: str) -> frozenset[str]:
        """Tables of a segment that were removed or replaced since."""
        return self._dead.get(segment, frozenset())

    def catalog(self, kind: str) -> pa.Table:
        """Everything of one kind (``tables``, ``columns``, ``problems``), ordered by table."""
        if kind not in self._cache:
            table = self._read(kind)
            if kind == "tables":
                table = table.drop_columns(list(OF_THE_SCAN))
            if kind == "problems":
                table = pa.concat_tables([table, self._read("notices")])
            self._cache[kind] = ordered(table, list(_ORDERS[kind]))
        return self._cache[kind]

    def states(self, kind: str) -> list[dict[str, Any]]:
        """Tables, or failures, with what tells a later state of their files, and when they were scanned."""
        return list(self._read(kind).to_pylist())

    def state(self, table: str) -> dict[str, Any] | None:
        """The same of one table that is there."""
        found = self._read("tables", table).to_pylist()
        return dict(found[0]) if found else None

    def past(self, kind: str, table: str | None = None) -> pa.Table:
        """Records of versions that are no more (``past``, ``past-columns``): all, or those of one table, in order."""
        found = [self._checked(file, table=table) for file in self.manifest.of_kind(kind)]
        return ordered(pa.concat_tables(found) if found else SCHEMAS[kind].empty_table(), list(_ORDERS[kind]))

    def columns_of(self, table: str) -> pa.Table:
        """The column records of one table, in column order."""
        if "columns" in self._cache:
            return rows_of(self._cache["columns"], table)
        return ordered(self._read("columns", table), ["position"])

    def _read(self, kind: str, table: str | None = None) -> pa.Table:
        """All records of one kind, or those of one table."""
        found = []
        for file in self.manifest.of_kind(kind):
            rows = self._checked(file, table=table)
            live = self._live(file, rows["table"])
            found.append(rows if live is None else chosen(rows, live))
        return pa.concat_tables(found) if found else SCHEMAS[kind].empty_table()

    def rows_of_file(self, file: SegmentFile, fields: Sequence[str] | None = None) -> pa.Table:
        """All records of a file of the catalog, gone ones too, or some fields of them."""
        return self._checked(file, fields=fields)

    def rows_of_tables(self, file: SegmentFile, tables: Collection[str] | None = None) -> pa.Table:
        """The records of some tables in a file of the catalog, or all, gone ones too, in order."""
        return ordered(self._checked(file, tables=tables), list(_ORDERS[file.kind]))

    def _checked(self, file: SegmentFile, **which: Any) -> pa.Table:
        """Records of a file of the catalog, gone ones too."""
        try:
            return read_catalog(self._mapped[file.path], file, **which)
        except (OSError, pa.ArrowException, UnicodeError, KeyError, ValueError) as error:
            raise IndexDamaged(
                f"{self.path / file.path} is damaged: {error}",
                hint="run `lakescope verify`, then `lakescope repair`",
            ) from error

    def table(self, name: str) -> dict[str, Any]:
        """The record of one table."""
        tables = self.catalog("tables")
        found = rows_of(tables, name)
        if found.num_rows == 0:
            raise NotFound.among("table", name, tables["table"].to_pylist())
        return dict(found.to_pylist()[0])

    def batches(self, kind: str) -> list[Batch]:
        """All records of a kind whose files are mapped, as they lie in memory."""
        found = []
        for file in self.manifest.of_kind(kind):
            for batch in self.records(file):
                live = self._live(file, batch.column("table"))
                found.append(Batch(batch, np.arange(batch.num_rows) if live is None else live))
        return found

    def records(self, file: SegmentFile) -> list[pa.RecordBatch]:
        """The records of a file that is mapped, gone ones too."""
        self._check_moderate(file)
        try:
            source = pa.ipc.open_file(self._mapped[file.path])
            if not source.schema.equals(SCHEMAS[file.kind]):
                raise pa.ArrowInvalid("it has other fields")
            batches = [source.get_batch(number) for number in range(source.num_record_batches)]
            for batch in batches:
                batch.validate()
                # Names are what readers go by; their text is looked at, too.
                batch.column("table").validate(full=True)
            return batches
        except (OSError, pa.ArrowException, LookupError) as error:
            hint = "run `lakescope verify`, then `lakescope repair`"
            raise IndexDamaged(f"{self.path / file.path} is damaged: {error}", hint=hint) from error

    def live_records(self, file: SegmentFile) -> Iterator[pa.RecordBatch]:
        """The records of a file whose table is still there."""
        if file.kind in MAPPED:
            tables = [pa.Table.from_batches([batch]) for batch in self.records(file)]
        else:
            # In order: a table is found by bisection of each piece that is written.
            tables = [ordered(self._checked(file), list(_ORDERS[file.kind]))]
        for table in tables:
            live = self._live(file, table["table"])
            kept = table if live is None else chosen(table, live).combine_chunks()
            yield from kept.to_batches(max_chunksize=ROWS_PER_WRITE)

    def sketch(self, table: str, column: str) -> dict[str, Any]:
        """The sketches of one column, mapped: HyperLogLog++ (``distinct``) and MinHash (``signature``)."""
        for dead, first, last, batch in self._sketched:
            if first <= table <= last and table not in dead:
                found = rows_of(batch, table)
                names = found["column"].to_pylist()
                if column in names:
                    return dict(found.slice(names.index(column), 1).to_pylist()[0])
        raise NotFound.among("column", column, self.columns_of(table)["column"].to_pylist())

    @cached_property
    def _sketched(self) -> list[tuple[frozenset[str], str, str, pa.RecordBatch]]:
        """The batches of sketches, mapped, with the tables that are gone, the first and the last table of each."""
        found = []
        for file in self.manifest.of_kind("sketches"):
            dead = self.dead_in(file.segment)
            for batch in self.records(file):
                if batch.num_rows:
                    first, last = (str(batch["table"][row].as_py()) for row in (0, -1))
                    found.append((dead, first, last, batch))
        return found

    def arrays(self, file: SegmentFile) -> Arrays:
        """The flat arrays of a file, as they lie in memory. Files of moderate size are checked first.

        Reading all of a large one would take longer than any question: what is wrong in there is met by chance, or by
        ``verify``.
        """
        self._check_moderate(file)
        return read_arrays(self._mapped[file.path], str(self.path / file.path))

    def _check_moderate(self, file: SegmentFile) -> None:
        """Compare the checksum of a file that is not too large to be read whole."""
        if file.size <= CHECKED_BYTES:
            found = xxhash.xxh64_hexdigest(memoryview(self._mapped[file.path]))
            if found != file.checksum:
                hint = "restore the file, or run `lakescope repair`"
                raise IndexDamaged(f"{self.path / file.path} is damaged: its checksum does not match", hint=hint)

    def remember(self, name: str, what: dict[str, Any]) -> None:
        """Keep something small beside the index that was found out about it; it goes when the next build comes.

        Not part of the index: whoever may not write does without.
        """
        target = self._beside(name)
        draft = target.with_name(f"{target.name}.{os.getpid()}")
        try:
            draft.write_text(json.dumps(what), "utf-8")
            draft.replace(target)
        except OSError:
            with contextlib.suppress(OSError):
                draft.unlink(missing_ok=True)

    def recall(self, name: str) -> dict[str, Any] | None:
        """What was kept beside the segment, if it is there and whole."""
        try:
            kept = json.loads(self._beside(name).read_text("utf-8"))
        except (OSError, ValueError):
            return None
        return kept if isinstance(kept, dict) else None

    def remember_arrays(self, name: str, arrays: Arrays) -> None:
        """The same for flat arrays, which are mapped when they are recalled."""
        target = self._beside(name, "bin")
        file = ArrayFile(target.parent, name, {field: array.dtype for field, array in arrays.items()})
        draft = target.with_name(file.name)
        try:
            file.append(**arrays)
            file.close()
            draft.replace(target)
        except OSError:
            with contextlib.suppress(OSError):
                file.discard()
                draft.unlink(missing_ok=True)

    def recall_arrays(self, name: str) -> Arrays | None:
        """Arrays that were kept beside the segment, as they lie in memory, if they are there and whole."""
        target = self._beside(name, "bin")
        try:
            with target.open("rb") as stream:
                return read_arrays(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ), str(target))
        except (OSError, ValueError, IndexDamaged):
            return None

    def _beside(self, name: str, suffix: str = "json") -> Path:
        """In the newest segment, by generation: what was found out about another is not about this one."""
        newest = self.path.joinpath(*(file.path for file in self.manifest.files[-1:])).parent
        return newest / f"{name}-{self.manifest.generation}.{suffix}"

    def problem(self, file: SegmentFile) -> str | None:
        """What is wrong with a file; of a generation that was replaced, with what is mapped of it."""
        try:
            size = (self.path / file.path).stat().st_size
        except FileNotFoundError:
            if Manifest.load(self.path).generation == self.manifest.generation:
                return "is missing"
            size = file.size
        if size != file.size:
            return f"is damaged: {size} bytes instead of {file.size}"
        mapped = memoryview(self._mapped[file.path])
        return None if xxhash.xxh64_hexdigest(mapped) == file.checksum else "is damaged: its checksum does not match"

    def verify(self) -> list[str]:
        """Read every byte and compare checksums; returns what is wrong, in words."""
        wrong = []
        for file in self.manifest.files:
            problem = self.problem(file)
            if problem is not None:
                wrong.append(f"{self.path / file.path} {problem}")
        return wrong
