"""DuckDB databases: every table and view is a table, streamed as Arrow."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakescope.errors import SourceError
from lakescope.sources import arrow_batches, files, planning
from lakescope.sources.model import Batch, Report, Unit

if TYPE_CHECKING:
    from lakescope.sources.discover import Found

_TABLES = """
    SELECT schema_name, table_name FROM duckdb_tables() WHERE NOT internal AND NOT temporary
    UNION ALL SELECT schema_name, view_name FROM duckdb_views() WHERE NOT internal AND NOT temporary
    ORDER BY ALL
"""
#: Types that arrive in Arrow as they are. Others (BIT, TIMETZ, 128-bit integers) lose something, so DuckDB writes them.
_FAITHFUL = re.compile(
    r"BOOLEAN|U?(TINYINT|SMALLINT|INTEGER|BIGINT)|FLOAT|DOUBLE|DECIMAL\(.*|VARCHAR|DATE|TIME|TIMESTAMP(_\w+)?"
    r"|TIMESTAMP WITH TIME ZONE|UUID|BLOB|INTERVAL|ENUM\(.*|.*\]|STRUCT\(.*|MAP\(.*|UNION\(.*|\"NULL\"",
    re.DOTALL,
)


def plan(found: Found, target_bytes: int) -> list[Unit]:
    """One unit per table or view."""
    units: list[Unit] = []
    for uri, size in found.parts:
        with _connected(uri, found.compression) as connection:
            tables = connection.execute(_TABLES).fetchall()
        if not tables:
            raise SourceError(f"{found.table} holds no table", code="empty-file")
        for schema, name in tables:
            table = f"{found.table}::{name if schema == 'main' else f'{schema}.{name}'}"
            options = {**planning.options_of(found, uri), "schema": schema, "name": name}
            units.append(Unit(table, "duckdb", uri, max(1, size // len(tables)), options=options))
    return units


def read(unit: Unit, report: Report) -> Iterator[Batch]:
    """Read one table or view as a stream of record batches."""
    place = f"{_quoted(unit.options['schema'])}.{_quoted(unit.options['name'])}"
    with _connected(unit.uri, unit.options.get("compression")) as connection:
        described = connection.execute(f"DESCRIBE SELECT * FROM {place}").fetchall()
        wanted = ", ".join(_selected(name, kind) for name, kind, *_ in described)
        reader = pa.RecordBatchReader.from_stream(connection.sql(f"SELECT {wanted} FROM {place}"))
        with reader:
            yield from arrow_batches.text_batches(reader, reader.schema, unit.table, report)


@contextmanager
def _connected(uri: str, compression: str | None) -> Iterator[Any]:
    """Open a database for reading. A view in it may not reach for other files: whoever made it is not trusted."""
    try:
        import duckdb
    except ImportError as error:
        raise SourceError("reading DuckDB files needs the package duckdb", hint="pip install duckdb") from error
    config: Any = {"enable_external_access": "false", "threads": "1"}
    with files.as_local(uri, compression) as path, duckdb.connect(path, read_only=True, config=config) as connection:
        yield connection


def _selected(name: str, kind: str) -> str:
    quoted = _quoted(name)
    return quoted if _FAITHFUL.fullmatch(kind) else f"CAST({quoted} AS VARCHAR) AS {quoted}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
