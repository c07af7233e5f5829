"""The facade: a lake that has been indexed, with one method per question."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from lakescope.errors import IndexDamaged, NotFound
from lakescope.profile.view import column_view
from lakescope.report.text import profile_text
from lakescope.store.index import Index
from lakescope.store.segment import rows_of


@dataclass(frozen=True, slots=True)
class TableProfile:
    """One table: its record, its columns, its problems. ``.to_dict()`` is the whole of it as plain data."""

    table: dict[str, Any]
    columns: list[dict[str, Any]]
    problems: list[dict[str, Any]]

    @property
    def name(self) -> str:
        """Name of the table in the lake."""
        return str(self.table["table"])

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.table["rows"])

    def column(self, name: str) -> dict[str, Any]:
        """The profile of one column by name."""
        for column in self.columns:
            if column["name"] == name:
                return column
        raise NotFound.among("column", name, [column["name"] for column in self.columns])

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain Python data (JSON-ready)."""
        problems = [{key: problem[key] for key in ("severity", "code", "detail", "count")} for problem in self.problems]
        return {**self.table, "columns": self.columns, "problems": problems}

    def __repr__(self) -> str:
        return profile_text(self.to_dict())

    def _repr_html_(self) -> str:
        from lakescope.report.html import profile_html

        return profile_html(self.to_dict())


class Lake:
    """An indexed lake. Open one with :func:`lakescope.open` or build one with :func:`lakescope.index`."""

    def __init__(self, index: Index) -> None:
        self._index = index

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Lake:
        """Open an index directory."""
        return cls(Index(path))

    @property
    def path(self) -> str:
        """Where the index lies."""
        return str(self._index.path)

    def info(self) -> dict[str, Any]:
        """The lake at a glance: sizes, sources, problems, when and by which version it was indexed."""
        manifest = self._index.manifest
        counts = {"error": 0, "warning": 0, "info": 0}
        for severity in self.problems()["severity"].to_pylist():
            counts[severity] += 1
        return {
            "path": self.path,
            **{name: manifest.summary[name] for name in ("tables", "columns", "rows", "bytes")},
            "errors": counts["error"],
            "warnings": counts["warning"],
            "notes": counts["info"],
            "sources": manifest.sources,
            "created": manifest.created,
            "generation": manifest.generation,
            "version": manifest.version,
            "seconds": manifest.summary["seconds"],
            "index_bytes": sum(file.size for file in manifest.files),
        }

    def tables(self) -> pa.Table:
        """One row per table: name, location, format, size, rows, columns, number of problems."""
        tables = self._index.catalog("tables")
        found = Counter(self.problems()["table"].to_pylist())
        counts = np.array([found[name] for name in tables["table"].to_pylist()], np.int64)
        # Not pa.array, which would import pandas.
        column = pa.Array.from_buffers(pa.int64(), counts.size, [None, pa.py_buffer(counts)])
        return tables.append_column("problems", column)

    def columns(self) -> pa.Table:
        """One row per column of every table, with its whole profile."""
        return self._index.catalog("columns")

    def problems(self) -> pa.Table:
        """What could not be read (error), was odd (warning) or is worth knowing (info), by table."""
        return self._index.catalog("problems")

    def profile(self, table: str) -> TableProfile:
        """The profile of one table."""
        record = self._index.table(table)
        columns = [column_view(column) for column in self._index.columns_of(table)]
        return TableProfile(record, columns, rows_of(self.problems(), table).to_pylist())

    def verify(self) -> None:
        """Read every byte of the index and compare checksums.

        Raises :class:`IndexDamaged` naming every damaged file.
        """
        wrong = self._index.verify()
        if wrong:
            raise IndexDamaged("\n".join(wrong), hint="restore the files, or build the index again")

    def __repr__(self) -> str:
        summary = self._index.manifest.summary
        sizes = ", ".join(f"{summary[name]:,} {name}" for name in ("tables", "columns", "rows"))
        return f"Lake({self.path!r}: {sizes})"

    def _repr_html_(self) -> str:
        from lakescope.report.html import lake_html

        return lake_html(self.info())
