"""Finding tables and reading them in bounded pieces, whatever their format.

``discover`` finds tables, ``plan`` cuts one into work units, ``read`` reads a unit. Each format is a module with its
own ``plan`` and ``read``, imported when first needed. Whatever goes wrong in there becomes a ``SourceError``: one bad
table never stops a lake.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from lakescope.errors import LakescopeError, SourceError
from lakescope.sources.model import Batch, Report, Unit

if TYPE_CHECKING:
    from lakescope.sources.source_table import SourceTable

#: What tells apart the tables that one file holds, even those of the same name.
Part = tuple[str, int | None, str | None, str | None]

_MODULES = {
    "csv": "formats.csv_file",
    "json": "formats.json_lines",
    "jsonl": "formats.json_lines",
    "parquet": "formats.parquet",
    "arrow": "formats.arrow_ipc",
    "orc": "formats.orc",
    "excel": "formats.excel",
    "sqlite": "databases.sqlite",
    "duckdb": "databases.duckdb_file",
    "postgresql": "databases.postgres",
    "delta": "lakehouses.delta",
    "iceberg": "lakehouses.iceberg",
}


def plan(found: SourceTable, target_bytes: int) -> list[Unit]:
    """Cut a table that was found into units of about ``target_bytes``; a workbook or database gives several tables.

    Two of those may have the same name: :func:`part_of` tells units of one from units of the other.
    """
    try:
        units: list[Unit] = _module(found.format).plan(found, target_bytes)
    except BaseException as error:
        told = _explained(error, found.table, found.uri)
        if told is error:
            raise
        raise told from error
    counts = Counter(map(part_of, units))
    seen: Counter[Part] = Counter()
    numbered = []
    for unit in units:
        part = part_of(unit)
        numbered.append(replace(unit, ordinal=seen[part], count=counts[part]))
        seen[part] += 1
    return numbered


def part_of(unit: Unit) -> Part:
    """The sheet of a workbook or the table of a database that a unit belongs to, among those in the same file."""
    return unit.table, unit.options.get("sheet"), unit.options.get("schema"), unit.options.get("name")


def read(unit: Unit, report: Report) -> Iterator[Batch]:
    """Read a unit in bounded batches; columns that the path spells (``year=2021/``) are added to every batch."""
    from lakescope.sources.constants import add_constants

    try:
        # Closed here: whoever reads the first rows alone leaves no temporary copy behind.
        with closing(_module(unit.reader).read(unit, report)) as batches:
            # The rows of JSON have their own keys each: its reader fills in what a row lacks.
            yield from batches if unit.reader == "json" else add_constants(batches, unit, report)
    except BaseException as error:
        told = _explained(error, unit.table, unit.uri)
        if told is error:
            raise
        raise told from error


def _module(name: str) -> Any:
    return import_module(f"lakescope.sources.{_MODULES[name]}")


def _passes(error: BaseException) -> bool:
    """Whether an exception is none of the file's doing, or says all there is to say already."""
    if isinstance(error, MemoryError):
        return False  # a damaged file may ask for absurd amounts of memory
    if type(error).__name__ == "PanicException":
        return False  # a library written in Rust panics with something that is no Exception
    return isinstance(error, LakescopeError) or not isinstance(error, Exception)


def _explained(error: BaseException, table: str, uri: str) -> BaseException:
    """An error of ours as it is; one of a library as one that names the table and says what to do.

    A local file is named by its path within the lake: where the lake lies is no business of who only asks.
    """
    from lakescope.sources.io.files import display, reason_of
    from lakescope.sources.io.limits import too_large

    place, name = display(uri), _within(table, uri)
    if isinstance(error, SourceError) and place != name and place in error.message:
        return SourceError(error.message.replace(place, name), hint=error.hint, code=error.code)
    if _passes(error):
        return error
    if isinstance(error, MemoryError):  # pyarrow's own is one, too
        return too_large(table)
    hint, code = _advice(error)
    file = f" (file {name})" if name != table.partition("::")[0] else ""
    return SourceError(f"{table} cannot be read: {reason_of(error).replace(place, name)}{file}", hint=hint, code=code)


def _within(table: str, uri: str) -> str:
    """The file of a table as a path within the lake; one that is elsewhere by its URI."""
    from lakescope.sources.io.files import display, local_path

    place = display(uri)
    if local_path(uri) is None:
        return place
    start = f"{place}/".rfind(f"/{table.partition('::')[0]}/")
    return place[start + 1 :] if start >= 0 else place.rpartition("/")[2]


def _advice(error: BaseException) -> tuple[str, str]:
    """A hint, and the code the problem is filed under."""
    from lakescope.sources.io.files import NotRegular
    from lakescope.sources.io.limits import Unbelievable

    if isinstance(error, NotRegular):
        return "it took the place of a file that was found there: put the file back and index again", "special-file"
    if isinstance(error, FileNotFoundError):
        return "the file was moved or removed after it was found: index again", "unreadable"
    if isinstance(error, PermissionError):
        return "give this user the right to read it", "unreadable"
    if isinstance(error, ImportError):
        return "install the package that is named", "unreadable"
    if isinstance(error, Unbelievable):
        return (
            "it is no honest archive; if it is, unpack it first, or allow more: LAKESCOPE_FREE_UNPACKED",
            "archive-bomb",
        )
    if "string or blob too big" in str(error):
        return "the rows before are kept; a cell may have 64 MB", "giant-cell"
    if "runcated" in str(error):
        return "the file was cut off: copy it again from where it came", "truncated"
    return "open it with the program that wrote it to see whether it is damaged", "damaged"
