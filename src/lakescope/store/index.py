"""Reading an index: no Spark, nothing loaded before it is asked for."""

from __future__ import annotations

import contextlib
import json
import mmap
import os
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import xxhash

from lakescope.errors import BadRequest, IndexDamaged, NotFound
from lakescope.store.arrays import Arrays, read_arrays
from lakescope.store.manifest import Manifest, SegmentFile
from lakescope.store.segment import SCHEMAS, ordered, read_catalog, rows_of

_TRIES = 5
#: Files of arrays up to this size are read whole when they are first used.
CHECKED_BYTES = 32 * 1024 * 1024


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
        hint = "restore the file, or build the index again"
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

    def catalog(self, kind: str) -> pa.Table:
        """Everything of one kind (``tables``, ``columns``, ``problems``), ordered by table."""
        if kind not in self._cache:
            table = self._read(kind)
            keys = {"tables": ["table"], "columns": ["table", "position"], "problems": ["table", "code"]}[kind]
            self._cache[kind] = ordered(table, keys)
        return self._cache[kind]

    def columns_of(self, table: str) -> pa.Table:
        """The column records of one table, in column order."""
        if "columns" in self._cache:
            return rows_of(self._cache["columns"], table)
        return ordered(self._read("columns", table), ["position"])

    def _read(self, kind: str, table: str | None = None) -> pa.Table:
        """All records of one kind, or those of one table."""
        found = []
        for file in self.manifest.of_kind(kind):
            try:
                found.append(read_catalog(self._mapped[file.path], file, table=table))
            except (OSError, pa.ArrowException, UnicodeError, KeyError, ValueError) as error:
                raise IndexDamaged(
                    f"{self.path / file.path} is damaged: {error}",
                    hint="run `lakescope verify`, then build the index again",
                ) from error
        return pa.concat_tables(found) if found else SCHEMAS[kind].empty_table()

    def table(self, name: str) -> dict[str, Any]:
        """The record of one table."""
        tables = self.catalog("tables")
        found = rows_of(tables, name)
        if found.num_rows == 0:
            raise NotFound.among("table", name, tables["table"].to_pylist())
        return dict(found.to_pylist()[0])

    def batches(self, kind: str) -> list[pa.RecordBatch]:
        """All records of a kind whose files are mapped, as they lie in memory."""
        found = []
        for file in self.manifest.of_kind(kind):
            self._check_moderate(file)
            try:
                source = pa.ipc.open_file(self._mapped[file.path])
                found += [source.get_batch(number) for number in range(source.num_record_batches)]
            except (OSError, pa.ArrowException) as error:
                hint = "run `lakescope verify`, then build the index again"
                raise IndexDamaged(f"{self.path / file.path} is damaged: {error}", hint=hint) from error
        return found

    def sketch(self, table: str, column: str) -> dict[str, Any]:
        """The sketches of one column, mapped: HyperLogLog++ (``distinct``) and MinHash (``signature``)."""
        for first, last, batch in self._sketches:
            if first <= table <= last:
                for sketch in rows_of(batch, table).to_pylist():
                    if sketch["column"] == column:
                        return dict(sketch)
        raise NotFound.among("column", column, self.columns_of(table)["column"].to_pylist())

    @cached_property
    def _sketches(self) -> list[tuple[str, str, pa.RecordBatch]]:
        """The sketches as they lie in memory, with the first and the last table of each piece."""
        found = []
        for file in self.manifest.of_kind("sketches"):
            source = pa.ipc.open_file(self._mapped[file.path])
            for number in range(source.num_record_batches):
                batch = source.get_batch(number)
                if batch.num_rows:
                    found.append((str(batch["table"][0]), str(batch["table"][batch.num_rows - 1]), batch))
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
                hint = "restore the file, or build the index again"
                raise IndexDamaged(f"{self.path / file.path} is damaged: its checksum does not match", hint=hint)

    def remember(self, name: str, what: dict[str, Any]) -> None:
        """Keep something small beside the segment that was found out about it; it goes when the segment goes.

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

    def _beside(self, name: str) -> Path:
        return self.path.joinpath(*(file.path for file in self.manifest.files[:1])).parent / f"{name}.json"

    def _problem(self, file: SegmentFile) -> str | None:
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
            problem = self._problem(file)
            if problem is not None:
                wrong.append(f"{self.path / file.path} {problem}")
        return wrong
