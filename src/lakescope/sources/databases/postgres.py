"""PostgreSQL through ADBC: every table and view is a table; big ones are read in ranges of pages.

The server writes every value as text, as ``COPY`` would write it into a CSV file, and ADBC carries the text. Typed
transport would cost the reader more, and loses: an infinite date becomes a number without meaning, an array of two
dimensions one of one. Arrays and composites are asked for as JSON, bytes as they are.

A connection reads in one transaction that may not write, at the snapshot the driver holds, if it holds one
(:mod:`lakescope.sources.databases.snapshots`), and waits for nothing longer than its limits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakescope.errors import LakescopeError, SourceError
from lakescope.sources.databases import database, secrets
from lakescope.sources.databases.connections import borrowed
from lakescope.sources.databases.database import quoted
from lakescope.sources.databases.postgres_uri import Address, pair
from lakescope.sources.formats import arrow_batches
from lakescope.sources.io import files
from lakescope.sources.model import Batch, Problem, Report, Unit

if TYPE_CHECKING:
    from lakescope.sources.source_table import SourceTable

#: Seconds until a statement that reads a piece of a table is given up, unless the address says ``statement_timeout``.
STATEMENT_SECONDS = 3600.0
#: Seconds to wait for somebody who changes a table's definition.
_LOCK_SECONDS = 60
_INSTALL = "pip install 'lakescope[databases]'"
_BYTEA = 17
#: Categories of types: arrays, composites.
_NESTED = ("A", "C")
#: Text must not depend on who asks: on this hang dates, times, intervals, floats, money and bytes inside arrays.
_SETTINGS = {
    "search_path": "pg_catalog",
    "datestyle": "ISO, MDY",
    "intervalstyle": "postgres",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "lc_monetary": "C",
    "timezone": "UTC",
    "standard_conforming_strings": "on",
    "default_transaction_read_only": "on",
    # Rows that a policy hides must not be missing silently: the table is refused instead.
    "row_security": "off",
    "lock_timeout": f"{_LOCK_SECONDS}s",
    # The transaction that holds the snapshot has nothing to do while workers read.
    "idle_in_transaction_session_timeout": "0",
}
_PREFIX = re.compile(
    r"([A-Z_]+: )?(\[libpq\] )?(Failed to \w+( query)?( '.*')?: |Execution error \[\w+\]: )?"
    r"(could not begin COPY: )?(ERROR:  )?"
)
_SNAPSHOT = re.compile(r"[0-9A-Fa-f]+(-[0-9A-Fa-f]+)*")
_COLUMNS = """
    SELECT a.attname::text AS name, format_type(a.atttypid, a.atttypmod) AS type, t.typcategory::text AS category,
      b.oid::int8 AS base,
      EXISTS (SELECT FROM pg_cast c WHERE c.castsource = b.oid AND c.casttarget = 'text'::regtype AND c.castfunc <> 0
        AND b.typname NOT IN ('bool', 'bpchar', 'char', 'name')) AS converted
    FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
      JOIN LATERAL (
        WITH RECURSIVE below(type, base) AS (
          SELECT t.oid, t.typbasetype UNION ALL SELECT p.oid, p.typbasetype FROM below JOIN pg_type p ON p.oid = base
        ) SELECT type FROM below WHERE base = 0
      ) d ON true JOIN pg_type b ON b.oid = d.type
    WHERE a.attrelid = {relation}::regclass AND a.attnum > 0 AND NOT a.attisdropped
    ORDER BY a.attnum
"""


def plan(found: SourceTable, target_bytes: int) -> list[Unit]:
    """Ranges of pages of a table and of its partitions; a view or a table that lies elsewhere is one unit."""
    units: list[Unit] = []
    for uri, size in found.parts:
        address = Address.of(uri)
        assert address.table is not None
        schema, name = address.table
        leaf = pair(address.options["leaf"]) if "leaf" in address.options else (schema, name)
        options = {"schema": schema, "name": name, "leaf": leaf, "read": address.options.get("read", "pages")}
        pages = int(address.options.get("pages", 0))
        count = max(1, min(pages, -(-size // target_bytes)))
        for number in range(count):
            # The last range is open: pages that came since are not of the snapshot, but without one they count.
            first, last = pages * number // count, pages * (number + 1) // count if number + 1 < count else None
            extra = {"pages": [first, last]} if count > 1 else {}
            share = size * (number + 1) // count - size * number // count
            units.append(Unit(found.table, "postgresql", uri, max(1, share), options={**options, **extra}))
    return units


def read(unit: Unit, report: Report) -> Iterator[Batch]:
    """Read a table, a range of its pages, or a view."""
    address = Address.of(unit.uri)
    limit = database.VIEW_SECONDS if unit.options["read"] == "view" else STATEMENT_SECONDS
    snapshot = address.options.get("snapshot")
    key = (address.conninfo(), address.options.get("statement_timeout"), limit, snapshot)
    try:
        with borrowed(key, partial(_begun, address, limit, snapshot)) as connection:
            yield from _read(connection, unit, report)
    except (LakescopeError, MemoryError):
        raise
    except Exception as error:
        # An OSError once rows are streamed, ADBC's own before.
        if "statement timeout" in str(error):
            raise _given_up(unit, address) from error
        raise explained(unit.table, error) from error


def _begun(address: Address, limit: float, snapshot: str | None) -> PostgresConnection:
    """A connection in its transaction."""
    connection = connected(address, limit)
    try:
        connection.begin(snapshot)
    except BaseException:
        connection.close()
        raise
    return connection


def _read(connection: PostgresConnection, unit: Unit, report: Report) -> Iterator[Batch]:
    columns = _columns(connection, unit)
    for column in columns:
        if column.nested:
            detail = f"column {column.shown!r} holds values of type {column.type}: kept as JSON text"
            report(Problem(unit.table, "info", "nested", detail))
    schema, name = unit.options["leaf"]
    wanted = ", ".join(column.selected for column in columns)
    # What inherits from a table is a table of its own.
    only = "ONLY " if unit.options["read"] == "pages" else ""
    query = f"SELECT {wanted} FROM {only}{quoted(schema)}.{quoted(name)}"
    if "pages" in unit.options:
        first, last = unit.options["pages"]
        query += f" WHERE ctid >= '({first},0)'::tid" + (f" AND ctid < '({last},0)'::tid" if last is not None else "")
    with connection.stream(query) as reader:
        for batch in arrow_batches.text_batches(reader, reader.schema, unit.table, report):
            for made, column in zip(batch.columns, columns, strict=True):
                made.name, made.source_type = column.shown, column.type
            yield batch


@dataclass(frozen=True, slots=True)
class _PostgresColumn:
    """A column as the catalog of the database describes it.

    ``converted`` if a value that is cast to text is not what the server would write: ``::1`` of type inet becomes
    ``::1/128``.
    """

    name: str
    type: str
    category: str
    base: int
    converted: bool

    @property
    def shown(self) -> str:
        return files.readable(self.name)

    @property
    def nested(self) -> bool:
        return self.category in _NESTED

    @property
    def selected(self) -> str:
        """What to ask for: bytes as they are, arrays and composites as JSON, everything else as its text."""
        name = quoted(self.name)
        if self.base == _BYTEA:
            return name
        if self.nested:
            return f"to_json({name})::text AS {name}"
        text = f"CASE WHEN {name} IS NOT NULL THEN format('%s', {name}) END" if self.converted else f"{name}::text"
        return f"{text} AS {name}"


def _columns(connection: PostgresConnection, unit: Unit) -> list[_PostgresColumn]:
    """Columns in the order of the table that a piece belongs to: a partition may have its own."""
    relation = database.literal(f"{quoted(unit.options['schema'])}.{quoted(unit.options['name'])}")
    columns = [_PostgresColumn(**row) for row in connection.rows(_COLUMNS.format(relation=relation))]
    if not columns:
        raise SourceError(f"{unit.table} has no columns: it holds no table", code="empty-file")
    return columns


class PostgresConnection:
    """An open connection to a database that can only read; statements one after the other."""

    def __init__(self, address: Address, seconds: float) -> None:
        from adbc_driver_manager import AdbcConnection
        from adbc_driver_postgresql import connect

        self._database = connect(address.conninfo(application_name="lakescope"))
        try:
            self._connection = AdbcConnection(self._database)
        except BaseException:
            self._database.close()
            raise
        timeout = address.options.get("statement_timeout", f"{seconds:.0f}s")
        settings = {**_SETTINGS, "statement_timeout": timeout}
        try:
            # What has no encoding may hold any bytes; asked for as UTF-8 it would be refused.
            encoding = "CASE current_setting('server_encoding') WHEN 'SQL_ASCII' THEN 'SQL_ASCII' ELSE 'UTF8' END"
            calls = (f"set_config('{name}', {database.literal(value)}, false)" for name, value in settings.items())
            self._execute(f"SELECT {', '.join(calls)}, set_config('client_encoding', {encoding}, false)")
        except BaseException:
            self.close()
            raise

    def begin(self, snapshot: str | None = None) -> None:
        """Start the transaction that reads, at a snapshot that somebody else holds if one is given."""
        self._execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        if snapshot is not None:
            if not _SNAPSHOT.fullmatch(snapshot):
                raise ValueError("not a snapshot")
            self._execute(f"SET TRANSACTION SNAPSHOT '{snapshot}'")

    def rows(self, query: str) -> list[dict[str, Any]]:
        """The rows of a small answer. Names that are not UTF-8 keep their bytes."""
        with self.stream(query) as reader:
            table = reader.read_all()
        columns = [_decoded(column) for column in table.columns]
        return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]

    @contextmanager
    def stream(self, query: str) -> Iterator[Any]:
        """Record batches of an answer of any length, as they come."""
        from adbc_driver_manager import AdbcStatement

        with AdbcStatement(self._connection) as statement:
            statement.set_options(**{"adbc.postgresql.batch_size_hint_bytes": str(arrow_batches.MAX_BYTES)})
            statement.set_sql_query(query)
            handle, _ = statement.execute_query()
            with pa.RecordBatchReader.from_stream(handle) as reader:
                yield reader

    def _execute(self, command: str) -> None:
        from adbc_driver_manager import AdbcStatement

        with AdbcStatement(self._connection) as statement:
            statement.set_sql_query(command)
            statement.execute_update()

    def close(self) -> None:
        self._connection.close()
        self._database.close()

    def __enter__(self) -> PostgresConnection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def connected(address: Address, seconds: float) -> PostgresConnection:
    """Connect, with a limit to the seconds of each statement."""
    try:
        return PostgresConnection(address, seconds)
    except ImportError as error:
        raise SourceError("reading PostgreSQL needs the package adbc-driver-postgresql", hint=_INSTALL) from error


def explained(name: str, error: BaseException) -> SourceError:
    """What PostgreSQL, libpq or ADBC says, in one line and without a password."""
    said = secrets.hide(files.reason_of(error))
    said = _PREFIX.sub("", said).removesuffix(".")
    hint = "check that the server runs, the address, and the rights of the user"
    return SourceError(f"{name} cannot be read: {said}", hint=hint, code="unreadable")


def _given_up(unit: Unit, address: Address) -> SourceError:
    if unit.options["read"] == "view":
        return database.given_up(unit.table, address.options.get("statement_timeout", ""))
    limit = address.options.get("statement_timeout", f"{STATEMENT_SECONDS:g} seconds")
    return SourceError(
        f"a piece of {unit.table} was given up: it takes more than {limit}",
        hint="add ?statement_timeout=2h to the address to wait longer",
        code="unreadable",
    )


def _decoded(column: Any) -> list[Any]:
    if not pa.types.is_string(column.type):
        return column.to_pylist()  # type: ignore[no-any-return]
    values = [value for chunk in column.chunks for value in chunk.view(pa.binary()).to_pylist()]
    return [None if value is None else value.decode("utf-8", "surrogateescape") for value in values]
