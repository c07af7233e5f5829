"""Reading one table from a file and from databases: the same values, and what they cost.

A table of seven types is read as text cells from a CSV file that PostgreSQL wrote, from PostgreSQL (ours: values as the
server writes them; beside it ADBC's typed columns, written as text here) and from SQLite (ours: the standard library;
beside it ADBC's driver, typed, and asked in a way that keeps every cell's own type). CPU-seconds of this process, and
of the server, for a million rows; nothing is hashed or sketched. Then the distinct values of every column are
compared, by their hashes, between file, PostgreSQL and SQLite.

Needs the packages of the development environment, and adbc-driver-sqlite for the peers of SQLite.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import common
from common import HERE, Aim, Json, Spread
from lakescope import sources
from lakescope.sources.discover import discover
from lakescope.sources.formats import arrow_batches
from lakescope.sources.io import files
from lakescope.sources.model import Batch
from lakescope.values.hashed import hash_cells
from lakescope.values.typed import CellSlices

sys.path.insert(0, str(HERE.parent / "tests"))
from helpers.postgres import Server, programs, running

MILLION = 1_000_000
_TABLE = """
    CREATE TABLE t AS SELECT i::bigint AS id, i / 7.0::float8 AS ratio, (i / 100.0)::numeric(12, 2) AS price,
      'name ' || i % 1000 AS name, date '2020-01-01' + i % 3000 AS day, timestamp '2020-01-01' + i * interval '1 second'
      AS moment, (i % 2 = 0)::text AS flag
    FROM generate_series(1, {rows}) i
"""
_COLUMNS = ("id", "ratio", "price", "name", "day", "moment", "flag")

Read = Callable[[], Iterator[Batch]]


def main() -> None:
    parser = common.arguments(__doc__)
    parser.add_argument("--rows", type=lambda text: int(float(text)), default=MILLION, help="rows of the table")
    options = parser.parse_args()
    place = programs()
    if place is None:
        raise SystemExit("there is no PostgreSQL: pip install pgserver, or apt install postgresql")
    folder = common.data_folder("databases", keep=options.keep)
    with running(place) as server:
        os.environ["PGPASSWORD"] = server.password
        server.run(_TABLE.format(rows=options.rows), "ANALYZE t")
        _write_files(server, folder)
        ways = _ways(server, folder)
        costs = _measured(ways, server, options.rows, options.repeats)
        same = _compared({name: ways[name] for name in ("CSV file", "PostgreSQL, ours", "SQLite, ours")})
    headers = ["read from", "CPU-s a million rows", "of the server", "times ours"]
    lines = []
    for name, (own, theirs) in costs.items():
        ours = costs.get(f"{name.partition(',')[0]}, ours", costs[name])[0]
        lines.append([name, own, theirs if theirs.median else "-", common.ratios(own.rounds, ours.rounds)])
    sections = [f"{options.rows:,} rows, {options.repeats} rounds.", common.table(headers, lines)]
    sections.append(" ".join((__doc__ or "").split("\n\n", 1)[1].split()))
    aims = [Aim("columns with the same distinct values everywhere", "7", str(same), same == len(_COLUMNS))]
    body: Json = {"costs": {name: {"own": own, "server": their} for name, (own, their) in costs.items()}, "same": same}
    names = ("adbc-driver-postgresql", "adbc-driver-sqlite", "lakescope", "numpy", "pyarrow")
    versions = {name: version(name) for name in names if _there(name)}
    versions |= {"sqlite": sqlite3.sqlite_version}
    common.publish("databases", "Tables of files and of databases", body, sections, aims, versions, options.out)


def _there(name: str) -> bool:
    try:
        version(name)
    except ImportError:
        return False
    return True


# --- the same table in three places -----------------------------------------------------------------------------------


def _write_files(server: Server, folder: Path) -> None:
    """The table as CSV, as the server writes it, and as SQLite with a type for each cell."""
    server.copy("SELECT * FROM t", folder / "t.csv")
    path = folder / "t.sqlite"
    path.unlink(missing_ok=True)
    with contextlib.closing(sqlite3.connect(path)) as connection, (folder / "t.csv").open(encoding="utf-8") as lines:
        connection.execute(
            "CREATE TABLE t (id INTEGER, ratio REAL, price TEXT, name TEXT, day TEXT, moment TEXT, flag TEXT)"
        )
        next(lines)
        rows = (line.rstrip("\n").split(",") for line in lines)
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        connection.commit()


# --- ways to read it --------------------------------------------------------------------------------------------------


def _ways(server: Server, folder: Path) -> dict[str, Read]:
    ways: dict[str, Read] = {
        "CSV file": lambda: _ours(str(folder / "t.csv")),
        "PostgreSQL, ours": lambda: _ours(server.uri),
        "PostgreSQL, ADBC typed": lambda: _postgres_typed(server),
        "SQLite, ours": lambda: _ours(str(folder / "t.sqlite")),
    }
    if _there("adbc-driver-sqlite"):
        path = str(folder / "t.sqlite")
        ways["SQLite, ADBC typed (wrong where types mix)"] = lambda: _sqlite(path, "SELECT * FROM t")
        ways["SQLite, ADBC exact"] = lambda: _sqlite_exact(path)
    return ways


def _ours(location: str) -> Iterator[Batch]:
    (found,), _ = discover([location])
    for unit in sources.plan(found, 1 << 62):
        yield from sources.read(unit, lambda problem: None)


def _postgres_typed(server: Server) -> Iterator[Batch]:
    from adbc_driver_manager import AdbcStatement

    with AdbcStatement(server.connection) as statement:
        yield from _streamed(statement, "SELECT * FROM t")


def _sqlite(path: str, query: str) -> Iterator[Batch]:
    from adbc_driver_manager import AdbcConnection, AdbcStatement
    from adbc_driver_sqlite import connect

    with (
        connect(f"file:{path}?mode=ro&immutable=1") as database,
        AdbcConnection(database) as connection,
        AdbcStatement(connection) as statement,
    ):
        statement.set_options(**{"adbc.sqlite.query.batch_rows": "65536"})
        yield from _streamed(statement, query)


def _sqlite_exact(path: str) -> Iterator[Batch]:
    """Texts, floats and blobs of every column apart; a first row fixes the types. Joining them is not timed."""
    first = ", ".join("'', 0.0, x'00'" for _ in _COLUMNS)
    rest = ", ".join(
        f"CASE WHEN typeof({name}) IN ('real', 'blob') THEN NULL ELSE CAST({name} AS TEXT) END, "
        f"CASE typeof({name}) WHEN 'real' THEN {name} END, CASE typeof({name}) WHEN 'blob' THEN {name} END"
        for name in _COLUMNS
    )
    yield from _sqlite(path, f"SELECT {first} UNION ALL SELECT {rest} FROM t")


def _streamed(statement: Any, query: str) -> Iterator[Batch]:
    statement.set_sql_query(query)
    handle, _ = statement.execute_query()
    with pa.RecordBatchReader.from_stream(handle) as reader:
        yield from arrow_batches.text_batches(reader, reader.schema, "t", lambda problem: None)


# --- measuring --------------------------------------------------------------------------------------------------------


def _measured(ways: dict[str, Read], server: Server, rows: int, repeats: int) -> dict[str, tuple[Spread, Spread]]:
    costs: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for name in ways:  # what is loaded on first use is nobody's cost
        next(ways[name]())
    for number in range(repeats):
        for name in common.alternated(list(ways), number):
            server_before, before = common.tree_cpu(server.process), time.process_time()
            counted = sum(batch.rows for batch in ways[name]())
            own, theirs = time.process_time() - before, common.tree_cpu(server.process) - server_before
            assert counted in (rows, rows + 1), f"{name}: {counted} rows"
            theirs = theirs if name.startswith("PostgreSQL") else 0.0
            costs[name].append((own * MILLION / rows, theirs * MILLION / rows))
            common.say(f"{name}: {own:.2f} CPU-s, server {theirs:.2f}")
    return {name: (Spread.of([a for a, _ in each]), Spread.of([b for _, b in each])) for name, each in costs.items()}


def _compared(ways: dict[str, Read]) -> int:
    """How many columns have the same distinct values wherever they are read from."""
    seen = [_distinct(read) for read in ways.values()]
    return sum(all(np.array_equal(seen[0][name], other[name]) for other in seen[1:]) for name in _COLUMNS)


def _distinct(read: Read) -> dict[str, Any]:
    found: dict[str, Any] = {name: np.empty(0, np.uint64) for name in _COLUMNS}
    for batch in read():
        for column in batch.columns:
            hashes, valid = hash_cells(CellSlices(column.data, column.starts, column.ends), batch.fallback)
            name = files.readable(column.name)
            found[name] = np.union1d(found[name], hashes[valid])
    return found


if __name__ == "__main__":
    main()
