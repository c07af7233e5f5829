"""Finding tables and reading them in bounded pieces, whatever their format.

``discover`` finds tables, ``plan`` cuts one into work units, ``read`` reads a unit. Each format is a module with its
own ``plan`` and ``read``, imported when first needed. Whatever goes wrong in there becomes a ``SourceError``: one bad
table never stops a lake.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from lakescope.errors import LakescopeError, SourceError
from lakescope.sources.model import MISSING, Batch, Problem, Report, TextColumn, Unit

if TYPE_CHECKING:
    from lakescope.sources.discover import Found

_MODULES = {
    "csv": "csv_file",
    "json": "json_lines",
    "jsonl": "json_lines",
    "parquet": "parquet",
    "arrow": "arrow_ipc",
    "orc": "orc",
    "excel": "excel",
    "sqlite": "sqlite",
    "duckdb": "duckdb_file",
}


def plan(found: Found, target_bytes: int) -> list[Unit]:
    """Cut a table that was found into units of about ``target_bytes``; a workbook or database gives several tables."""
    try:
        units: list[Unit] = _module(found.format).plan(found, target_bytes)
    except BaseException as error:
        if _passes(error):
            raise
        raise _explained(error, found.table, found.uri) from error
    counts = Counter(unit.table for unit in units)
    seen: Counter[str] = Counter()
    numbered = []
    for unit in units:
        numbered.append(replace(unit, ordinal=seen[unit.table], count=counts[unit.table]))
        seen[unit.table] += 1
    return numbered


def read(unit: Unit, report: Report) -> Iterator[Batch]:
    """Read a unit in bounded batches; columns that the path spells (``year=2021/``) are added to every batch."""
    constants: dict[str, str | None] = unit.options.get("constants", {})
    told = False
    try:
        for batch in _module(unit.reader).read(unit, report):
            present = {column.name for column in batch.columns}
            doubled = [name for name in constants if name in present]
            if doubled and not told:
                told = True
                detail = f"column {doubled[0]!r} is also spelt by the path; the values in the file count"
                report(Problem(unit.table, "info", "partition-column", detail, len(doubled)))
            batch.columns += [_constant(name, constants[name], batch.rows) for name in constants if name not in present]
            yield batch
    except BaseException as error:
        if _passes(error):
            raise
        raise _explained(error, unit.table, unit.uri) from error


def _constant(name: str, value: str | None, rows: int) -> TextColumn:
    """A column of one value: every cell is the same slice."""
    import numpy as np

    data = np.frombuffer((value or "").encode("utf-8", "replace"), np.uint8)
    end = MISSING if value is None else data.size
    return TextColumn(name, data, np.zeros(rows, np.int32), np.full(rows, end, np.int32), "partition")


def _module(name: str) -> Any:
    return import_module(f"lakescope.sources.{_MODULES[name]}")


def _passes(error: BaseException) -> bool:
    """Whether an exception is none of the file's doing, or says all there is to say already."""
    import pyarrow as pa

    if isinstance(error, pa.ArrowMemoryError):
        return False  # a damaged file may ask for absurd amounts of memory
    if type(error).__name__ == "PanicException":
        return False  # a library written in Rust panics with something that is no Exception
    return isinstance(error, LakescopeError | MemoryError) or not isinstance(error, Exception)


def _explained(error: BaseException, table: str, uri: str) -> SourceError:
    """What a library says, as an error that names the table and says what to do."""
    from lakescope.sources.files import display, scrub

    lines = scrub(str(error)).strip().splitlines()
    reason = lines[0][:300] if lines else type(error).__name__
    hint, code = _advice(error)
    return SourceError(f"{table} cannot be read: {reason} (file {display(uri)})", hint=hint, code=code)


def _advice(error: BaseException) -> tuple[str, str]:
    """A hint, and the code the problem is filed under."""
    if isinstance(error, FileNotFoundError):
        return "the file was moved or removed after it was found: index again", "unreadable"
    if isinstance(error, PermissionError):
        return "give this user the right to read it", "unreadable"
    if isinstance(error, ImportError):
        return "install the package that is named", "unreadable"
    if "runcated" in str(error):
        return "the file was cut off: copy it again from where it came", "truncated"
    return "open it with the program that wrote it to see whether it is damaged", "damaged"
