"""SQLite databases: every table and view is a table; big ones are read in ranges of row ids.

SQLite does not hold a column to its type, so every cell is written as what it is.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from lakescope.errors import SourceError
from lakescope.sources import planning
from lakescope.sources.databases import database
from lakescope.sources.databases.database import quoted
from lakescope.sources.databases.journals import journals_of
from lakescope.sources.formats import arrow_batches
from lakescope.sources.io import files
from lakescope.sources.io.limits import LONGEST
from lakescope.sources.model import Batch, Report, TextColumn, Unit
from lakescope.sources.names import check_width
from lakescope.values.typed import from_texts, text_or_hex

if TYPE_CHECKING:
    from lakescope.sources.source_table import SourceTable

#: Instructions of SQLite between two looks at the clock.
_INSTRUCTIONS = 100_000
#: Memory of SQLite in this process: a view that sorts or gathers may want any amount.
_HEAP = 1 << 30
#: Seconds to wait for somebody who is writing.
_LOCK_SECONDS = 5.0
_ROW_IDS = ("rowid", "_rowid_", "oid")
_TABLES = (
    "SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
)


def plan(found: SourceTable, target_bytes: int) -> list[Unit]:
    """One unit per table or view, or several ranges of row ids if the database is local and big."""
    units: list[Unit] = []
    for uri, size in found.parts:
        _check_copied(uri, found.compression)
        with _connected(uri, found.compression) as connection:
            tables = connection.execute(_TABLES + " ORDER BY name").fetchall()
            if not tables:
                raise SourceError(f"{found.table} holds no table", code="empty-file")
            divisible = found.compression is None and files.local_path(uri) is not None and size > target_bytes
            bounds = [_row_ids(connection, name) if divisible and kind == "table" else None for name, kind in tables]
        spans = [bound[2] - bound[1] + 1 if bound else 1 for bound in bounds]
        for (name, kind), bound, span in zip(tables, bounds, spans, strict=True):
            table = f"{found.table}::{files.readable(name)}"
            options = {**planning.options_of(found, uri), "name": name, "view": kind == "view"}
            share = max(1, size * span // sum(spans))
            ranges = _ranges(bound, -(-share // target_bytes))
            for extra in ranges:
                units.append(Unit(table, "sqlite", uri, max(1, share // len(ranges)), options={**options, **extra}))
    return units


def read(unit: Unit, report: Report) -> Iterator[Batch]:
    """Read a table, a view, or a range of row ids of a table."""
    with _connected(unit.uri, unit.options.get("compression")) as connection:
        name = quoted(unit.options["name"])
        types = {row[1]: row[2] for row in connection.execute(f"PRAGMA table_info({name})")}
        if "rows" in unit.options:
            row_id, low, high = unit.options["rows"]
            cursor = connection.execute(f"SELECT * FROM {name} WHERE {row_id} BETWEEN ? AND ?", (low, high))
            yield from _batches(cursor, types, unit.table)
        elif unit.options["view"]:
            yield from _read_view(connection, name, types, unit.table)
        else:
            yield from _batches(connection.execute(f"SELECT * FROM {name}"), types, unit.table)


def _read_view(connection: sqlite3.Connection, name: str, types: dict[str, str], table: str) -> Iterator[Batch]:
    """The rows of a view, until there are no more or it is given up."""
    end = time.monotonic() + database.VIEW_SECONDS
    connection.set_progress_handler(lambda: time.monotonic() > end, _INSTRUCTIONS)
    try:
        yield from _batches(_select_view(connection, name), types, table)
    except sqlite3.OperationalError as error:
        if time.monotonic() > end:
            raise database.given_up(table) from error
        raise


def _select_view(connection: sqlite3.Connection, name: str) -> sqlite3.Cursor:
    """Start to read a view, which may only call functions without side effects."""
    connection.execute("PRAGMA trusted_schema=OFF")
    try:
        return connection.execute(f"SELECT * FROM {name}")
    except sqlite3.OperationalError as error:
        if "unsafe use of json" not in str(error):
            raise
        # Some versions of SQLite, 3.40 for one, take their own JSON functions for unsafe.
        connection.execute("PRAGMA trusted_schema=ON")
        return connection.execute(f"SELECT * FROM {name}")


@contextmanager
def _connected(uri: str, compression: str | None) -> Iterator[sqlite3.Connection]:
    with files.as_local(uri, compression, beside=("-wal", "-journal", "-shm")) as path:
        # A database that nobody is writing is declared immutable: opening it then leaves no trace beside it.
        idle = not journals_of(path)
        address = f"file:{quote(os.fsencode(Path(path).resolve()))}?mode=ro{'&immutable=1' if idle else ''}"
        with closing(sqlite3.connect(address, uri=True, timeout=_LOCK_SECONDS)) as connection, _waiting(uri):
            # Text that is not UTF-8 must not stop the table.
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST)
            connection.execute(f"PRAGMA hard_heap_limit={_HEAP}")
            connection.text_factory = partial(str, encoding="utf-8", errors="surrogateescape")
            yield connection


@contextmanager
def _waiting(uri: str) -> Iterator[None]:
    """Explain what SQLite says of a database that is not at rest."""
    try:
        yield
    except sqlite3.OperationalError as error:
        name, kind = files.display(uri), getattr(error, "sqlite_errorcode", 0) & 0xFF
        if kind == sqlite3.SQLITE_BUSY:
            message, hint = f"{name} is being written", "index it again once its writer is done"
        elif kind == sqlite3.SQLITE_READONLY:
            message = f"{name} cannot be read: a program that wrote it was interrupted"
            hint = "open it once with a program that may write it, which undoes the rest"
        else:
            raise
        raise SourceError(message, hint=hint) from error


def _check_copied(uri: str, compression: str | None) -> None:
    """Refuse a database elsewhere that is not at rest: a copy of the file alone lacks rows, or has some too many."""
    if files.local_path(uri) is None and compression is None and journals_of(uri):
        raise SourceError(
            f"{files.display(uri)} has a log beside it: not all of its rows are in the file",
            hint="close it in the program that writes it (PRAGMA wal_checkpoint(TRUNCATE)) and copy it again",
        )


def _row_ids(connection: sqlite3.Connection, name: str) -> tuple[str, int, int] | None:
    """Name of the row id and its extremes; None for tables that have none."""
    columns = {row[1].lower() for row in connection.execute(f"PRAGMA table_info({quoted(name)})")}
    for row_id in _ROW_IDS:
        if row_id in columns:
            continue
        try:
            low, high = connection.execute(f"SELECT min({row_id}), max({row_id}) FROM {quoted(name)}").fetchone()
        except sqlite3.OperationalError:
            return None
        return None if low is None else (row_id, low, high)
    return None


def _ranges(bounds: tuple[str, int, int] | None, count: int) -> list[dict[str, Any]]:
    """Options of the units of one table: ranges of row ids, none of them for less than a batch."""
    if bounds is None:
        return [{}]
    row_id, low, high = bounds
    step = max(arrow_batches.MAX_ROWS, -(-(high - low + 1) // count))
    return [{"rows": [row_id, start, min(start + step - 1, high)]} for start in range(low, high + 1, step)]


def _batches(cursor: sqlite3.Cursor, types: dict[str, str], table: str) -> Iterator[Batch]:
    """Rows in bounded batches; at least one batch, so that a table without rows shows its columns."""
    columns = [description[0] for description in cursor.description]
    check_width(table, len(columns))
    kinds = [files.readable(types.get(column, "")).lower() or "any" for column in columns]
    limit = arrow_batches.rows_per_batch(len(columns))
    pending: list[Sequence[Any]] = []
    size = 0
    first = True
    try:
        for row in cursor:
            pending.append(row)
            size += sum(len(cell) for cell in row if isinstance(cell, str | bytes))
            if len(pending) >= limit or size >= arrow_batches.MAX_BYTES:
                yield _batch(pending, columns, kinds)
                pending, size, first = [], 0, False
    except sqlite3.Error:
        if pending:
            yield _batch(pending, columns, kinds)
        raise
    if pending or first:
        yield _batch(pending, columns, kinds)


def _batch(rows: list[Sequence[Any]], columns: list[str], kinds: list[str]) -> Batch:
    made = []
    for place, (name, kind) in enumerate(zip(columns, kinds, strict=True)):
        texts = [_text(row[place]) for row in rows]
        made.append(TextColumn(files.readable(name), *from_texts(texts), kind))
    return Batch(len(rows), made)


def _text(cell: object) -> bytes | None:
    """One cell as text: SQLite knows integers, floats, texts and blobs."""
    if cell is None:
        return None
    if isinstance(cell, str):
        return cell.encode("utf-8", "surrogateescape")
    return text_or_hex(cell) if isinstance(cell, bytes) else repr(cell).encode()
