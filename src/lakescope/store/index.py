"""Reading an index: no Spark, nothing loaded before it is asked for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakescope.errors import IndexDamaged, NotFound
from lakescope.store.manifest import Manifest, SegmentFile, file_checksum
from lakescope.store.segment import ordered, read_catalog, rows_of

_TRIES = 5


class Index:
    """One generation of an index, as its manifest named it when it was opened."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.manifest = self._open()
        self._cache: dict[str, pa.Table] = {}

    def _open(self) -> Manifest:
        """Read a manifest whose files are all there; a build published meanwhile means reading the newer one."""
        for _ in range(_TRIES):
            manifest = Manifest.load(self.path)
            wrong = [problem for file in manifest.files if (problem := self._size_problem(file))]
            if not wrong:
                return manifest
            if Manifest.load(self.path).generation == manifest.generation:
                raise IndexDamaged(wrong[0], hint="restore the file, or build the index again")
        raise IndexDamaged(f"{self.path} changes faster than it can be opened", hint="try again")

    def _size_problem(self, file: SegmentFile) -> str | None:
        path = self.path / file.path
        try:
            size = path.stat().st_size
        except FileNotFoundError:
            return f"{path} is missing"
        return None if size == file.size else f"{path} is damaged: {size} bytes instead of {file.size}"

    def catalog(self, kind: str) -> pa.Table:
        """Everything of one kind (``tables``, ``columns``, ``problems``), ordered by table."""
        if kind not in self._cache:
            table = read_catalog(self.path, self.manifest.of_kind(kind), kind)
            keys = {"tables": ["table"], "columns": ["table", "position"], "problems": ["table", "code"]}[kind]
            self._cache[kind] = ordered(table, keys)
        return self._cache[kind]

    def columns_of(self, table: str) -> list[dict[str, Any]]:
        """The column records of one table, in column order."""
        if "columns" in self._cache:
            found = rows_of(self._cache["columns"], table)
        else:
            files = self.manifest.of_kind("columns")
            found = ordered(read_catalog(self.path, files, "columns", table=table), ["position"])
        return list(found.to_pylist(maps_as_pydicts="strict"))

    def table(self, name: str) -> dict[str, Any]:
        """The record of one table."""
        tables = self.catalog("tables")
        found = rows_of(tables, name)
        if found.num_rows == 0:
            raise NotFound.among("table", name, tables["table"].to_pylist())
        return dict(found.to_pylist()[0])

    def distinct_sketch(self, table: str, column: str) -> bytes:
        """Bytes of the HyperLogLog++ sketch of one column, from memory-mapped files."""
        for file in self.manifest.of_kind("sketches"):
            with pa.memory_map(str(self.path / file.path)) as source:
                batches = pa.ipc.open_file(source)
                for number in range(batches.num_record_batches):
                    for sketch in rows_of(batches.get_batch(number), table).to_pylist():
                        if sketch["column"] == column:
                            return bytes(sketch["distinct"])
        columns = [record["column"] for record in self.columns_of(table)]
        raise NotFound.among("column", column, columns)

    def verify(self) -> list[str]:
        """Read every byte and compare checksums; returns what is wrong, in words."""
        wrong = []
        for file in self.manifest.files:
            problem = self._size_problem(file)
            if problem is None and file_checksum(self.path / file.path) != file.checksum:
                problem = f"{self.path / file.path} is damaged: its checksum does not match"
            if problem is not None:
                wrong.append(problem)
        return wrong
