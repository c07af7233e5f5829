"""DuckDB databases: every table and view is a table, streamed as Arrow."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakescope.errors import SourceError
from lakescope.sources import planning
from lakescope.sources.databases import database
from lakescope.sources.databases.database import quoted
from lakescope.sources.formats import arrow_batches
from lakescope.sources.io import files
from lakescope.sources.model import Batch, Report, Unit

if TYPE_CHECKING:
    from lakescope.sources.source_table import SourceTable

#: Memory of a worker for DuckDB. Reading a table takes far less; a view that sorts or joins may want any amount.
MEMORY = "1GB"
_TABLES = """
    SELECT schema_name, table_name, false FROM duckdb_tables() WHERE NOT internal AND NOT temporary
    UNION ALL SELECT schema_name, view_name, true FROM duckdb_views() WHERE NOT internal AND NOT temporary
    ORDER BY ALL
"""
#: Types that arrive in Arrow as they are. Others (BIT, TIMETZ, 128-bit integers) lose something, so DuckDB writes them.
_FAITHFUL = re.compile(
    r"BOOLEAN|U?(TINYINT|SMALLINT|INTEGER|BIGINT)|FLOAT|DOUBLE|DECIMAL\(.*|VARCHAR|DATE|TIME|TIMESTAMP(_\w+)?"
    r"|TIMESTAMP WITH TIME ZONE|UUID|BLOB|INTERVAL|ENUM\(.*|.*\]|STRUCT\(.*|MAP\(.*|UNION\(.*|\"NULL\"",
    re.DOTALL,
)


def plan(found: SourceTable, target_bytes: int) -> list[Unit]:
    """One unit per table or view."""
    units: list[Unit] = []
    for uri, size in found.parts:
        with _connected(uri, found.compression) as connection:
            tables = connection.execute(_TABLES).fetchall()
        if not tables:
            raise SourceError(f"{found.table} holds no table", code="empty-file")
        for schema, name, view in tables:
            table = f"{found.table}::{name if schema == 'main' else f'{schema}.{name}'}"
            options = {**planning.options_of(found, uri), "schema": schema, "name": name, "view": view}
            units.append(Unit(table, "duckdb", uri, max(1, size // len(tables)), options=options))
    return units


def read(unit: Unit, report: Report) -> Iterator[Batch]:
    """Read one table or view as a stream of record batches."""
    place = f"{quoted(unit.options['schema'])}.{quoted(unit.options['name'])}"
    with _connected(unit.uri, unit.options.get("compression")) as connection:
        described = connection.execute(f"DESCRIBE SELECT * FROM {place}").fetchall()
        wanted = ", ".join(selected(name, kind) for name, kind, *_ in described)
        read_query = _read_view if unit.options["view"] else _read_query
        yield from read_query(connection, f"SELECT {wanted} FROM {place}", unit, report)


def _read_query(connection: Any, query: str, unit: Unit, report: Report) -> Iterator[Batch]:
    with pa.RecordBatchReader.from_stream(connection.sql(query)) as reader:
        yield from arrow_batches.text_batches(reader, reader.schema, unit.table, report, unit.size)


def _read_view(connection: Any, query: str, unit: Unit, report: Report) -> Iterator[Batch]:
    """The rows of a view, until there are no more or it is given up."""
    end = time.monotonic() + database.VIEW_SECONDS
    alarm = threading.Timer(database.VIEW_SECONDS, connection.interrupt)
    alarm.daemon = True
    alarm.start()
    try:
        yield from _read_query(connection, query, unit, report)
    except Exception as error:  # duckdb's own while the query starts, an OSError once rows are streamed
        if time.monotonic() > end:
            raise database.given_up(unit.table) from error
        if "Out of Memory" in str(error):
            raise database.given_up(unit.table, f"{MEMORY} of memory") from error
        raise
    finally:
        alarm.cancel()


@contextmanager
def _connected(uri: str, compression: str | None) -> Iterator[Any]:
    """Open a database for reading. A view in it may not reach for other files: whoever made it is not trusted."""
    try:
        import duckdb
    except ImportError as error:
        raise SourceError("reading DuckDB files needs the package duckdb", hint="pip install duckdb") from error
    # Nothing is written to a disk: it would be written beside the database.
    config: Any = {"enable_external_access": "false", "threads": "1", "memory_limit": MEMORY, "temp_directory": ""}
    with (
        files.as_local(uri, compression, beside=(".wal",)) as path,
        duckdb.connect(path, read_only=True, config=config) as connection,
    ):
        yield connection


def selected(name: str, kind: str) -> str:
    """A column as SQL selects it, of a type that arrives in Arrow as it is."""
    written = quoted(name)
    return written if _FAITHFUL.fullmatch(kind) else f"CAST({written} AS VARCHAR) AS {written}"
