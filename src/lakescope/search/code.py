"""Ready code for a join that was found, in the dialect of one's choice.

Values meet in the index trimmed and in canonical form; the code compares them as trimmed text, which is as near as one
line comes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

from lakescope.errors import BadRequest
from lakescope.sources.discover import discover
from lakescope.sources.files import display
from lakescope.sources.postgres_uri import Address, table_name

DIALECTS = ("spark", "sql", "duckdb", "polars")
#: What a table in memory goes by.
FRAME = "query"


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a join: where its table lies, in which format, and the column."""

    location: str
    format: str
    column: str

    @property
    def part(self) -> str:
        """Sheet or table within the file, if the location names one."""
        return self._parts[1]

    @property
    def path(self) -> str:
        return self._parts[0]

    @property
    def _parts(self) -> tuple[str, str]:
        if self.format == "postgresql":
            address = Address.of(self.location)
            return str(replace(address, table=None)), table_name(*(address.table or ("", "")))
        path, _, part = self.location.partition("::")
        return path, part

    @property
    def database_table(self) -> tuple[str, str]:
        """Schema and name of a table of PostgreSQL."""
        return Address.of(self.location).table or ("", "")


def side_of(query: Any, column: str) -> Side:
    """A query from outside the lake: a path, or a frame that goes by the name of ``query``."""
    if isinstance(query, str) or hasattr(query, "__fspath__"):
        found, _ = discover([str(query)])
        if found:
            return Side(display(str(query)), found[0].format, column)
    return Side(FRAME, FRAME, column)


def join_code(left: Side, right: Side, dialect: str) -> str:
    """Code that joins two tables, keeping all rows of the left one."""
    if dialect not in _WRITERS:
        raise BadRequest(f"no dialect {dialect!r}", hint=f"use {', '.join(DIALECTS)}")
    return _WRITERS[dialect](left, right)


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _table_name(side: Side) -> str:
    """A name for a table in SQL: that of its file, or of its part."""
    return _identifier(side.part or PurePosixPath(side.path).name.split(".")[0] or "query")


def _sql(left: Side, right: Side) -> str:
    return _select(_table_name(left), _table_name(right), left, right)


def _select(one: str, other: str, left: Side, right: Side) -> str:
    def key(alias: str, side: Side) -> str:
        return f"TRIM(CAST({alias}.{_identifier(side.column)} AS VARCHAR))"

    return (
        f"SELECT mine.*, found.*\nFROM {one} AS mine\nLEFT JOIN {other} AS found\n"
        f"  ON {key('mine', left)} = {key('found', right)};"
    )


def _duckdb(left: Side, right: Side) -> str:
    return _select(_duckdb_source(left), _duckdb_source(right), left, right)


def _duckdb_source(side: Side) -> str:
    path = _literal(side.path)
    if side.format == "sqlite":
        return f"sqlite_scan({path}, {_literal(side.part)})"
    if side.format == "postgresql":
        schema, name = side.database_table
        return f"postgres_scan({path}, {_literal(schema)}, {_literal(name)})"
    if side.format in ("delta", "iceberg"):
        return f"{side.format}_scan({path})"
    if side.format == "excel":
        return f"read_xlsx({path}, sheet = {_literal(side.part)}, all_varchar = true)"
    if side.format in ("json", "jsonl"):
        return f"read_json({path})"
    if side.format == "csv":
        return f"read_csv({path}, all_varchar = true)"
    return f"read_parquet({path})" if side.format == "parquet" else _table_name(side)


def _polars(left: Side, right: Side) -> str:
    def key(side: Side) -> str:
        return f"pl.col({side.column!r}).cast(pl.String).str.strip_chars()"

    extra = "import sqlite3\n\n" if "sqlite" in (left.format, right.format) else ""
    return (
        f"{extra}import polars as pl\n\n"
        f"mine = {_polars_source(left)}\nfound = {_polars_source(right)}\n"
        f"joined = mine.join(found, left_on={key(left)}, right_on={key(right)}, how='left')"
    )


def _polars_source(side: Side) -> str:
    if side.format == FRAME:
        return f"pl.DataFrame({FRAME})"
    if side.format == "csv":
        return f"pl.read_csv({side.path!r}, infer_schema=False)"
    if side.format == "excel":
        return f"pl.read_excel({side.path!r}, sheet_name={side.part!r})"
    if side.format == "sqlite":
        query = f"SELECT * FROM {_identifier(side.part)}"
        return f"pl.read_database({query!r}, sqlite3.connect({side.path!r}))"
    if side.format == "postgresql":
        query = "SELECT * FROM " + ".".join(map(_identifier, side.database_table))
        return f"pl.read_database_uri({query!r}, {side.path!r}, engine='adbc')"
    if side.format in ("delta", "iceberg"):
        return f"pl.scan_{side.format}({side.path!r}).collect()"
    if side.format in ("json", "jsonl"):
        return f"pl.read_ndjson({side.path!r})"
    return f"pl.read_parquet({side.path!r})" if side.format == "parquet" else f"pl.read_ipc({side.path!r})"


def _spark(left: Side, right: Side) -> str:
    def key(name: str, side: Side) -> str:
        column = "`" + side.column.replace("`", "``") + "`"
        return f"F.trim({name}[{column!r}].cast('string'))"

    return (
        "from pyspark.sql import functions as F\n\n"
        f"mine = {_spark_source(left)}\nfound = {_spark_source(right)}\n"
        f"joined = mine.join(found, {key('mine', left)} == {key('found', right)}, 'left')"
    )


def _spark_source(side: Side) -> str:
    if side.format == FRAME:
        return f"spark.createDataFrame({FRAME})"
    if side.format == "csv":
        return f"spark.read.csv({side.path!r}, header=True)"
    if side.format in ("json", "jsonl"):
        return f"spark.read.json({side.path!r})"
    if side.format in ("parquet", "orc"):
        return f"spark.read.{side.format}({side.path!r})"
    if side.format in ("delta", "iceberg"):
        return f"spark.read.format({side.format!r}).load({side.path!r})"
    if side.format == "postgresql":
        address = Address.of(side.location)
        url = f"jdbc:postgresql://{address.hosts}/{address.database}"
        place = ".".join(map(_identifier, side.database_table))
        return f"spark.read.jdbc({url!r}, {place!r}, properties={{'user': {address.user!r}}})"
    return f"spark.table({side.location!r})"


_WRITERS: dict[str, Callable[[Side, Side], str]] = {
    "spark": _spark,
    "sql": _sql,
    "duckdb": _duckdb,
    "polars": _polars,
}


def source_code(side: Side, dialect: str) -> str:
    """How a dialect reads the table of one side."""
    readers = {"spark": _spark_source, "duckdb": _duckdb_source, "polars": _polars_source, "sql": _table_name}
    return readers[dialect](side)


# --- joins by key, for correlations -----------------------------------------------------------------------------------

_SQL_AGGREGATES = {"mean": "AVG", "sum": "SUM", "min": "MIN", "max": "MAX", "count": "COUNT"}
_FRAME_AGGREGATES = {"mean": "mean", "sum": "sum", "min": "min", "max": "max", "count": "count"}


@dataclass(frozen=True, slots=True)
class Keyed:
    """One side of a join by key: a table, the columns of its key, and how its column of numbers is aggregated."""

    side: Side
    key: tuple[str, ...]
    aggregate: str

    @property
    def column(self) -> str:
        return self.side.column


def correlation_code(left: Keyed, right: Keyed, dialect: str) -> str:
    """Code that aggregates two tables by key, joins them, and computes Pearson's coefficient."""
    if dialect not in _WRITERS:
        raise BadRequest(f"no dialect {dialect!r}", hint=f"use {', '.join(DIALECTS)}")
    for each in (left, right):
        if each.aggregate not in _SQL_AGGREGATES:
            hint = "first and last depend on an order of rows that other systems do not keep"
            raise BadRequest(f"no code for the aggregate {each.aggregate!r}", hint=hint)
    if dialect in ("sql", "duckdb"):
        source = _table_name if dialect == "sql" else _duckdb_source
        return _correlation_sql(left, right, source)
    return _correlation_polars(left, right) if dialect == "polars" else _correlation_spark(left, right)


def _correlation_sql(left: Keyed, right: Keyed, source: Callable[[Side], str]) -> str:
    def grouped(each: Keyed) -> str:
        keys = [f"TRIM(CAST({_identifier(name)} AS VARCHAR)) AS k{i}" for i, name in enumerate(each.key)]
        number = f"{_SQL_AGGREGATES[each.aggregate]}(TRY_CAST({_identifier(each.column)} AS DOUBLE)) AS v"
        places = ", ".join(str(i + 1) for i in range(len(keys)))
        return f"(SELECT {', '.join(keys)}, {number} FROM {source(each.side)} GROUP BY {places})"

    on = " AND ".join(f"mine.k{i} = found.k{i}" for i in range(len(left.key)))
    tables = f"FROM {grouped(left)} AS mine\nJOIN {grouped(right)} AS found"
    return f"SELECT CORR(mine.v, found.v), COUNT(*)\n{tables}\n  ON {on};"


def _correlation_polars(left: Keyed, right: Keyed) -> str:
    def grouped(name: str, each: Keyed) -> str:
        keys = ", ".join(
            f"pl.col({column!r}).cast(pl.String).str.strip_chars().alias('k{i}')" for i, column in enumerate(each.key)
        )
        number = f"pl.col({each.column!r}).cast(pl.Float64, strict=False).{_FRAME_AGGREGATES[each.aggregate]}()"
        return f"{name} = {_polars_source(each.side)}.group_by({keys}).agg({number}.alias('{name}'))"

    extra = "import sqlite3\n\n" if "sqlite" in (left.side.format, right.side.format) else ""
    on = [f"k{i}" for i in range(len(left.key))]
    return (
        f"{extra}import polars as pl\n\n{grouped('mine', left)}\n{grouped('found', right)}\n"
        f"joined = mine.join(found, on={on!r})\nprint(joined.select(pl.corr('mine', 'found'), pl.len()))"
    )


def _correlation_spark(left: Keyed, right: Keyed) -> str:
    def column(name: str) -> str:
        return repr("`" + name.replace("`", "``") + "`")

    def grouped(name: str, each: Keyed) -> str:
        keys = ", ".join(f"F.trim(F.col({column(key)}).cast('string')).alias('k{i}')" for i, key in enumerate(each.key))
        number = (
            f"F.{_FRAME_AGGREGATES[each.aggregate]}(F.expr({f'TRY_CAST({column(each.column)[1:-1]} AS DOUBLE)'!r}))"
        )
        return f"{name} = {_spark_source(each.side)}.groupBy({keys}).agg({number}.alias('{name}'))"

    on = [f"k{i}" for i in range(len(left.key))]
    return (
        "from pyspark.sql import functions as F\n\n"
        f"{grouped('mine', left)}\n{grouped('found', right)}\n"
        f"mine.join(found, {on!r}).select(F.corr('mine', 'found'), F.count('*')).show()"
    )
