"""The facade: a lake that has been indexed, with one method per question."""

from __future__ import annotations

import os
from typing import Any

import pyarrow as pa

from lakescope.errors import IndexDamaged
from lakescope.report.profile import TableProfile
from lakescope.store.index import Index


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
        """One row per table: name, location, format, size, rows, columns."""
        return self._index.catalog("tables")

    def columns(self) -> pa.Table:
        """One row per column of every table, with its whole profile."""
        return self._index.catalog("columns")

    def problems(self) -> pa.Table:
        """What could not be read (error), was odd (warning) or is worth knowing (info), by table."""
        return self._index.catalog("problems")

    def profile(self, table: str) -> TableProfile:
        """The profile of one table."""
        record = self._index.table(table)
        problems = self.problems()
        mine = [problem for problem in problems.to_pylist() if problem["table"] == table]
        return TableProfile(record, self._index.columns_of(table), mine)

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
