"""What a tool is asked about: a table of the lake, rows given as CSV text, or a file below a folder that was allowed.

Nothing else is opened. A name is never taken for a path: a table must be one of the lake's.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from lakescope.errors import BadRequest

if TYPE_CHECKING:
    from lakescope.lake import Lake

#: Most bytes of rows given as text, and of a file that is read.
CSV_BYTES = 1_000_000
FILE_BYTES = 1_000_000_000
#: Characters that would make a path stand for several.
_GLOB = frozenset("*?[]{}")


class Queries:
    """Turns what was asked about into something a lake reads."""

    def __init__(self, lake: Lake, allowed: Path | None) -> None:
        self._lake = lake
        self._allowed = None if allowed is None else allowed.resolve(strict=True)

    @contextmanager
    def opened(self, table: str | None, csv: str | None, file: str | None, *, located: bool = False) -> Iterator[str]:
        """A name or path to ask with; ``located``: the place of a table of the lake instead of its name."""
        given = [name for name, value in (("table", table), ("csv", csv), ("file", file)) if value is not None]
        if len(given) != 1:
            hint = "name a table of the lake, or give rows as CSV text, or a file"
            raise BadRequest(f"exactly one of table, csv and file, not {' and '.join(given) or 'none'}", hint=hint)
        if table is not None:
            place = self._lake.location(table)  # refuses what is no table of the lake
            yield place if located else table
        elif csv is not None:
            with self._written(csv) as path:
                yield path
        else:
            yield self._checked(str(file))

    @contextmanager
    def _written(self, text: str) -> Iterator[str]:
        """Rows as a file of its own for as long as they are asked about, read like any other CSV."""
        content = text.encode("utf-8", "replace")
        if len(content) > CSV_BYTES:
            hint = f"give at most {CSV_BYTES:,} bytes, or have the server started with --allow-files"
            raise BadRequest(f"{len(content):,} bytes of CSV are too many", hint=hint)
        with tempfile.TemporaryDirectory(prefix="lakescope-") as folder:
            path = Path(folder) / "query.csv"
            path.write_bytes(content)
            yield str(path)

    def _checked(self, file: str) -> str:
        """A file below the allowed folder, wherever links in its path lead."""
        if self._allowed is None:
            hint = "give rows as CSV text, or have the server started with --allow-files DIR"
            raise BadRequest("files are not allowed here", hint=hint)
        name, colons, part = file.partition("::")
        hint = "name a file below the folder that was allowed, by its path within it"
        if "\0" in file or _GLOB & set(name):
            raise BadRequest("a file is named by one plain path", hint=hint)
        path = self._allowed / name
        try:
            path = path.resolve()
            size = path.stat().st_size if path.is_relative_to(self._allowed) and path.is_file() else None
        except (OSError, RuntimeError):
            size = None
        if size is None:
            raise BadRequest("there is no such file below the folder that was allowed", hint=hint)
        if size > FILE_BYTES:
            raise BadRequest(f"the file has more than {FILE_BYTES:,} bytes", hint="index it with `lakescope index`")
        return f"{path}{colons}{part}"
