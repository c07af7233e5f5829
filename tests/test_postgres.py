"""PostgreSQL as a source, against a real server."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lakescope
from lakescope import sources
from lakescope.build.build import build
from lakescope.build.shipping import Shipped
from lakescope.build.update import update
from lakescope.errors import BadRequest, SourceError
from lakescope.sources.databases import secrets, snapshots
from lakescope.sources.databases.postgres import connected
from lakescope.sources.databases.postgres_uri import Address
from lakescope.sources.discover import discover
from lakescope.sources.io import files
from lakescope.sources.model import Problem, Unit
from lakescope.sources.source_table import SourceTable
from lakescope.tables.reading import batches_of, located

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from helpers.postgres import Server

pytest_plugins = ["helpers.postgres"]


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    """What a test gives in an address is not known to the next one."""
    yield
    secrets._known.clear()


def tables(uri: str) -> dict[str, SourceTable]:
    found, problems = discover([uri])
    assert problems == []
    return {each.table: each for each in found}


def rows(units: list[Unit], heard: list[Problem] | None = None) -> list[dict[str, str | None]]:
    """What readers read: text cells by column."""
    result = []
    for unit in units:
        for batch in sources.read(Unit.from_json(unit.to_json()), ([] if heard is None else heard).append):
            columns = {
                column.name: [
                    None if end < 0 else column.data[start:end].tobytes().decode("utf-8", "replace")
                    for start, end in zip(column.starts.tolist(), column.ends.tolist(), strict=True)
                ]
                for column in batch.columns
            }
            result += [{name: cells[row] for name, cells in columns.items()} for row in range(batch.rows)]
    return result


def all_rows(found: SourceTable, size: int = 1 << 40) -> list[dict[str, str | None]]:
    return rows(sources.plan(found, size))


# --- equal to files ---------------------------------------------------------------------------------------------------

#: Columns with two values each, in SQL.
TYPES: dict[str, list[str]] = {
    "small smallint": ["1", "-32768"],
    "whole bigint": ["9223372036854775807", "-7"],
    "exact numeric": ["123456789012345678901234567890.1234500", "'NaN'"],
    "fixed numeric(12,2)": ["1.50", "-0.10"],
    "real real": ["0.1", "'Infinity'"],
    "double double precision": ["0.1", "1e300"],
    "day date": ["'2021-03-04'", "'infinity'"],
    "moment timestamp": ["'2021-03-04 05:06:07.5'", "'-infinity'"],
    "zoned timestamptz": ["'2021-03-04 05:06:07+02'", "'1999-12-31 23:59:59.999999-08'"],
    "clock time": ["'05:06'", "'23:59:59.25'"],
    "clock_zone timetz": ["'05:06+01'", "'23:59:59-03'"],
    "span interval": ["'1 year 2 days 03:04:05'", "'-1 day'"],
    "flag boolean": ["true", "false"],
    "note text": ["'  café'", "'a,\"b\"\nc'"],
    "padded char(8)": ["'ab'", "''"],
    "short varchar(5)": ["'NA'", "'na'"],
    "document json": ["'{\"a\" : 1}'", "'[1, 2]'"],
    "tree jsonb": ["'{\"a\" : 1}'", "'null'"],
    "id uuid": ["'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "gen_random_uuid()"],
    "colour colour": ["'red'", "'green'"],
    "address inet": ["'10.0.0.1/8'", "'::1'"],
    "bits bit(3)": ["B'101'", "B'000'"],
    "span4 int4range": ["'[1,5)'", "'empty'"],
    "cash positive": ["5", "7"],
}
#: Fields of a profile that say where a column came from, what only a file tells apart (an empty cell and none), and
#: what depends on the order of rows or is a floating sum.
OWN = {"table", "source_type", "empty", "mean", "std", "quartiles", "quantiles", "histogram", "patterns_error"}

#: Fields of a profile that are about cells as they are written.
WRITTEN = {"patterns", "length_min", "length_max", "length_mean", "length_median", "digits_max", "decimals_max"}


#: Columns with more than two values.
MANY = {"whole": "i", "double": "i / 7.0", "note": "'n' || i % 97"}


def make_types(server: Server) -> None:
    kinds = {name.split()[0]: name.split(maxsplit=1)[1] for name in TYPES}
    values = {name.split()[0]: pair for name, pair in TYPES.items()}
    chosen = [
        f"CASE i % 5 WHEN 1 THEN ({values[name][1]})::{kinds[name]} "
        f"ELSE ({MANY.get(name, values[name][0])})::{kinds[name]} END"
        for name in kinds
    ]
    server.run(
        "CREATE TYPE colour AS ENUM ('red', 'green')",
        "CREATE DOMAIN positive AS integer CHECK (VALUE > 0)",
        f"CREATE TABLE types ({', '.join(TYPES)})",
        *[f"INSERT INTO types VALUES ({', '.join(pair[row] for pair in TYPES.values())})" for row in (0, 1)],
        f"INSERT INTO types SELECT {', '.join(chosen)} FROM generate_series(1, 3000) i WHERE i % 5 > 0",
        # Rows that hold only some values; one that holds none would be a blank line in a file.
        "INSERT INTO types (whole, double) SELECT i, i / 9.0 FROM generate_series(1, 600) i",
        # The file is written in another time zone, and tells it.
        "ALTER DATABASE lake SET timezone = 'America/New_York'",
    )


def test_a_table_gives_the_same_sketches_as_a_file_and_from_the_database(
    postgres: Server, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_types(postgres)
    columns = ", ".join("flag::text" if name.startswith("flag ") else name.split()[0] for name in TYPES)
    postgres.copy(f"SELECT {columns} FROM types", tmp_path / "types.csv")
    out = tmp_path / "lake.idx"
    # Ranges of pages, several of them, against one file; the password comes with the address.
    monkeypatch.delenv("PGPASSWORD")
    address = postgres.uri.replace("@", f":{quote(postgres.password, safe='')}@", 1)
    build([str(tmp_path / "types.csv"), address], out, spark=spark, unit_bytes=100_000)
    lake = lakescope.open(out)
    assert lake.tables()["table"].to_pylist() == ["lake::types", "types.csv"]
    assert lake.tables()["units"].to_pylist()[0] > 3
    assert lake.tables()["rows"].to_pylist() == [3002, 3002]
    file, base = (
        {each["column"]: each for each in lake.columns(name).to_pylist()} for name in ("types.csv", "lake::types")
    )
    assert len(base) == len(TYPES)
    for name, record in base.items():
        # The file tells the same moments in another time zone: cells are of another length and pattern.
        same = [field for field in record if field not in OWN and (name != "zoned" or field not in WRITTEN)]
        assert {field: record[field] for field in same} == {field: file[name][field] for field in same}, name
    for name in base:
        one, other = (lake._index.sketch(table, name) for table in ("lake::types", "types.csv"))
        assert one["distinct"] == other["distinct"], name
        assert one["signature"] == other["signature"], name
    written = b"".join(path.read_bytes() for path in out.rglob("*") if path.is_file())
    assert postgres.user.encode() in written
    assert not any(hidden in written for hidden in (b"pa55", b"w0rd"))


def test_arrays_composites_and_bytes_are_those_of_parquet(postgres: Server, tmp_path: Path) -> None:
    postgres.run(
        "CREATE TYPE place AS (street text, number int)",
        "CREATE TABLE nested (list int[], square int[][], words text[], address place, raw bytea)",
        """INSERT INTO nested VALUES ('{1,NULL,3}', '{{1,2},{3,4}}', '{"a b",NULL,é}', ('Main', 5), 'text'),
           ('{}', NULL, '{}', NULL, '\\xff00')""",
    )
    heard: list[Problem] = []
    got = rows(sources.plan(tables(postgres.uri)["lake::nested"], 1 << 40), heard)
    table = pa.table(
        {
            "list": pa.array([[1, None, 3], []], pa.list_(pa.int32())),
            "square": pa.array([[[1, 2], [3, 4]], None], pa.list_(pa.list_(pa.int32()))),
            "words": pa.array([["a b", None, "é"], []], pa.list_(pa.string())),
            "raw": pa.array([b"text", b"\xff\0"], pa.binary()),
        }
    )
    pq.write_table(table, tmp_path / "nested.parquet")
    (file,), _ = discover([str(tmp_path / "nested.parquet")])
    # No file has a twin of a composite: a struct is a column for each field.
    assert [row.pop("address") for row in got] == ['{"street":"Main","number":5}', None]
    assert got == all_rows(file)
    assert got[1]["raw"] == "0xff00"
    assert [(problem.code, problem.severity) for problem in heard] == [("nested", "info")] * 4


def test_values_do_not_depend_on_settings_of_the_database(postgres: Server) -> None:
    settings = {"extra_float_digits": "-5", "bytea_output": "escape", "lc_monetary": "POSIX"}
    postgres.run(
        "CREATE TABLE t (f double precision, b bytea[], m money)",
        "INSERT INTO t VALUES (0.1::float8 + 0.2::float8, ARRAY['\\x00ff'::bytea], 5)",
        *(f"ALTER DATABASE lake SET {name} = '{value}'" for name, value in settings.items()),
    )
    try:
        found = tables(postgres.uri)["lake::t"]
        assert all_rows(found) == [{"f": "0.30000000000000004", "b": '["\\\\x00ff"]', "m": "$5.00"}]
        with connected(Address.of(postgres.uri), 60) as connection:
            assert connection.rows("SELECT current_setting('lc_monetary') AS lc") == [{"lc": "C"}]
    finally:
        postgres.run(*(f"ALTER DATABASE lake RESET {name}" for name in settings))


def test_domains_of_domains_are_read_as_what_is_below(postgres: Server) -> None:
    postgres.run(
        "CREATE DOMAIN raw AS bytea",
        "CREATE DOMAIN rawer AS raw",
        "CREATE DOMAIN host AS inet",
        "CREATE DOMAIN router AS host",
        "CREATE DOMAIN gateway AS router",
        "CREATE TABLE t (a rawer, b gateway)",
        "INSERT INTO t VALUES ('text', '::1')",
    )
    assert all_rows(tables(postgres.uri)["lake::t"]) == [{"a": "text", "b": "::1"}]


@pytest.mark.parametrize(("encoding", "sent"), [("LATIN1", "é"), ("SQL_ASCII", "é")])
def test_encodings(postgres: Server, encoding: str, sent: str) -> None:
    name = encoding.lower()
    postgres.run(f"CREATE DATABASE {name} ENCODING '{encoding}' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    other = postgres.database(name)
    try:
        other.run("SET client_encoding = 'UTF8'", 'CREATE TABLE "caf\u00e9" ("na\u00efve" text)')
        other.run(f"INSERT INTO \"caf\u00e9\" VALUES ('{sent}')")
        if encoding == "SQL_ASCII":
            # Any bytes at all, as old databases have them: read like a file that is not UTF-8.
            other.run("INSERT INTO \"caf\u00e9\" VALUES (E'caf\\xe9')")
        (found,) = tables(postgres.uri.replace("/lake", f"/{name}")).values()
        assert found.table == f"{name}::caf\u00e9"
        cells = [row["na\u00efve"] for row in all_rows(found)]
        assert cells == ["é", "caf\ufffd"][: len(cells)]
    finally:
        other.connection.close()
        postgres.run(f"DROP DATABASE {name}")


# --- pieces and moments -----------------------------------------------------------------------------------------------


def test_ranges_of_pages_are_the_table(postgres: Server) -> None:
    postgres.run("CREATE TABLE big AS SELECT i AS id, repeat('x', 100) AS text FROM generate_series(1, 8000) i")
    found = tables(postgres.uri)["lake::big"]
    units = sources.plan(found, 100_000)
    assert 8 < len(units) < 24
    assert sum(unit.size for unit in units) == found.size
    assert [unit.ordinal for unit in units] == list(range(len(units)))
    each = [rows([unit]) for unit in units]
    assert max(map(len, each)) < 2000
    assert [row["id"] for part in each for row in part] == [str(i) for i in range(1, 8001)]


def test_all_pieces_see_one_moment(postgres: Server) -> None:
    postgres.run("CREATE TABLE accounts AS SELECT i AS id, 100 AS balance FROM generate_series(1, 5000) i")
    with snapshots.scope():
        found = tables(postgres.uri)["lake::accounts"]
        units = sources.plan(found, 20_000)
        before = rows(units[:1])
        postgres.run(
            "UPDATE accounts SET balance = balance - 1 WHERE id <= 2500",
            "DELETE FROM accounts WHERE id = 5000",
            "INSERT INTO accounts SELECT i, 0 FROM generate_series(5001, 9000) i",
        )
        after = rows(units[1:])
    assert len(units) > 5
    assert sum(int(row["balance"] or 0) for row in before + after) == 500_000
    # Once the build has ended, so has its moment: a piece is refused, not read as of another one.
    with pytest.raises(SourceError, match="snapshot"):
        rows(units[:1])


def test_units_that_follow_each_other_share_a_connection(postgres: Server) -> None:
    from lakescope.sources.databases import connections

    def open_here() -> int:
        query = "SELECT count(*)::int8 AS n FROM pg_stat_activity WHERE application_name = 'lakescope'"
        with watcher.stream(query) as reader:
            return int(reader.read_all()["n"][0].as_py()) - 1

    postgres.run(*[f"CREATE TABLE t{number} AS SELECT {number} AS a" for number in range(4)])
    postgres.run("CREATE VIEW broken AS SELECT 1 / 0 AS a")
    with connected(Address.of(postgres.uri), 60) as watcher, snapshots.scope():
        there = tables(postgres.uri)
        before = open_here()
        with connections.reused():
            processes = set()
            for name in ("lake::t0", "lake::t1", "lake::broken", "lake::t2", "lake::t3"):
                try:
                    all_rows(there[name])
                except SourceError:
                    assert name == "lake::broken"
                processes.add(open_here() - before)
            # One for tables; another one for views, which have less time, and that one broke.
            assert processes == {0, 1}
        # The server takes a moment to see that a connection has ended.
        assert any(open_here() == before or time.sleep(0.05) for _ in range(200))


def test_partitions_are_one_table_and_children_are_others(postgres: Server) -> None:
    postgres.run(
        "CREATE TABLE sales (year int, note text) PARTITION BY LIST (year)",
        "CREATE TABLE sales_2020 PARTITION OF sales FOR VALUES IN (2020)",
        # Columns of a partition may lie in another order.
        "CREATE TABLE sales_2021 (note text, year int)",
        "ALTER TABLE sales ATTACH PARTITION sales_2021 FOR VALUES IN (2021)",
        "INSERT INTO sales SELECT 2020 + i % 2, 'n' || i FROM generate_series(1, 6) i",
        "CREATE TABLE nothing (year int) PARTITION BY LIST (year)",
        "CREATE TABLE parent (a int)",
        "CREATE TABLE child (b int) INHERITS (parent)",
        "INSERT INTO parent VALUES (1)",
        "INSERT INTO child VALUES (2, 3)",
        "CREATE MATERIALIZED VIEW kept AS SELECT 7 AS a",
        "CREATE TEMPORARY TABLE passing (a int)",
    )
    there = tables(postgres.uri)
    assert list(there) == ["lake::child", "lake::kept", "lake::nothing", "lake::parent", "lake::sales"]
    assert sorted(str(row) for row in all_rows(there["lake::sales"], 1)) == sorted(
        str({"year": str(2020 + i % 2), "note": f"n{i}"}) for i in range(1, 7)
    )
    assert all_rows(there["lake::nothing"]) == []
    assert all_rows(there["lake::parent"]) == [{"a": "1"}]
    assert all_rows(there["lake::child"]) == [{"a": "2", "b": "3"}]
    assert all_rows(there["lake::kept"]) == [{"a": "7"}]


# --- bad tables, and those that are no business of ours ---------------------------------------------------------------


def test_what_cannot_be_read_is_told_and_stops_nothing_else(postgres: Server) -> None:
    postgres.run(
        "CREATE ROLE reader LOGIN PASSWORD 'r'",
        "GRANT USAGE ON SCHEMA public TO reader",
        "CREATE TABLE good (a int)",
        "CREATE TABLE secret (a int)",
        "CREATE TABLE rows_apart (a int)",
        "ALTER TABLE rows_apart ENABLE ROW LEVEL SECURITY",
        "CREATE POLICY mine ON rows_apart USING (a = 1)",
        "GRANT SELECT ON good, rows_apart TO reader",
        "CREATE TABLE bare ()",
        "GRANT SELECT ON bare TO reader",
        "CREATE VIEW broken AS SELECT a / 0 AS a FROM good",
        "GRANT SELECT ON broken TO reader",
        "INSERT INTO good VALUES (1)",
    )
    try:
        found, problems = discover([postgres.uri.replace(f"{postgres.user}@", "reader:r@")])
        assert [(each.table, each.code) for each in problems] == [("lake::secret", "unreadable")]
        assert "no right to SELECT" in problems[0].detail
        said = {}
        for each in found:
            try:
                said[each.table] = str(all_rows(each))
            except SourceError as error:
                said[each.table] = f"{error.code}: {error.message}"
        assert said["lake::good"] == "[{'a': '1'}]"
        assert "row-level security" in said["lake::rows_apart"]
        assert said["lake::bare"] == "empty-file: lake::bare has no columns: it holds no table"
        assert said["lake::broken"] == "unreadable: lake::broken cannot be read: division by zero"
    finally:
        postgres.run("DROP OWNED BY reader CASCADE", "DROP ROLE reader")


def test_row_level_security_of_a_partitioned_table_counts_for_its_partitions(postgres: Server) -> None:
    postgres.run(
        "CREATE ROLE reader LOGIN PASSWORD 'r'",
        "GRANT USAGE ON SCHEMA public TO reader",
        "CREATE TABLE apart (a int) PARTITION BY LIST (a)",
        "CREATE TABLE apart_1 PARTITION OF apart FOR VALUES IN (1)",
        "CREATE TABLE below (a int) PARTITION BY LIST (a)",
        "CREATE TABLE below_1 PARTITION OF below FOR VALUES IN (1)",
        "INSERT INTO apart VALUES (1)",
        "INSERT INTO below VALUES (1)",
        "ALTER TABLE apart ENABLE ROW LEVEL SECURITY",
        "CREATE POLICY mine ON apart USING (a = 2)",
        "ALTER TABLE below_1 ENABLE ROW LEVEL SECURITY",
        "GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader",
    )
    try:
        there = tables(postgres.uri.replace(f"{postgres.user}@", "reader:r@"))
        with pytest.raises(SourceError, match="row-level security"):
            all_rows(there["lake::apart"])
        # Policies of a partition are not asked by who reads the whole table.
        assert all_rows(there["lake::below"]) == [{"a": "1"}]
        # They are none of its owner's business.
        assert all_rows(tables(postgres.uri)["lake::apart"]) == [{"a": "1"}]
    finally:
        postgres.run("DROP OWNED BY reader CASCADE", "DROP ROLE reader")


def test_nothing_is_written_and_nothing_goes_on_forever(postgres: Server) -> None:
    postgres.run(
        "CREATE TABLE victims (a int)",
        "CREATE FUNCTION harm() RETURNS int LANGUAGE sql AS 'INSERT INTO public.victims VALUES (1) RETURNING a'",
        "CREATE VIEW harmful AS SELECT public.harm() AS a",
        "CREATE VIEW endless AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT i FROM n",
        "CREATE TABLE slow AS SELECT 1 AS a",
    )
    there = tables(postgres.uri + "?statement_timeout=300ms")
    with pytest.raises(SourceError, match="read-only transaction"):
        all_rows(there["lake::harmful"])
    with pytest.raises(SourceError, match="it is a view that takes more than 300ms") as caught:
        all_rows(there["lake::endless"])
    assert caught.value.code == "costly-view"
    assert all_rows(there["lake::victims"]) == []


def test_who_waits_for_a_lock_gives_up(postgres: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    from lakescope.sources.databases import postgres as reader

    monkeypatch.setitem(reader._SETTINGS, "lock_timeout", "200ms")
    postgres.run("CREATE TABLE busy AS SELECT 1 AS a", "CREATE TABLE free AS SELECT 2 AS a")
    other = postgres.database("lake")
    try:
        other.run("BEGIN", "LOCK TABLE busy IN ACCESS EXCLUSIVE MODE")
        there = tables(postgres.uri)
        assert all_rows(there["lake::free"]) == [{"a": "2"}]
        with pytest.raises(SourceError, match="lock timeout"):
            all_rows(there["lake::busy"])
    finally:
        other.run("ROLLBACK")
        other.connection.close()


def test_names_of_any_kind(postgres: Server) -> None:
    odd = 'Aa."/?%@::é'
    quoted = '"' + odd.replace('"', '""') + '"'
    postgres.run(
        f"CREATE SCHEMA {quoted}",
        f"CREATE TABLE {quoted}.{quoted} ({quoted} int)",
        f"INSERT INTO {quoted}.{quoted} VALUES (1)",
        f"CREATE TABLE {quoted} (b int)",
    )
    try:
        there = tables(postgres.uri)
        assert set(there) == {f"lake::{odd}", f"lake::{odd}.{odd}"}
        found = there[f"lake::{odd}.{odd}"]
        assert all_rows(found) == [{odd: "1"}]
        # What is stored leads back to the table.
        place = located(found.table, files.display(found.uri))
        assert [batch.rows for batch in batches_of(place)] == [1]
        assert list(tables(f"{postgres.uri}?schema={quote(odd, safe='')}")) == [found.table]
    finally:
        postgres.run(f"DROP SCHEMA {quoted} CASCADE")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("/lake::ordrs", "no table named 'ordrs': did you mean 'orders'?"),
        ("/lake?schema=publik", "no schema with tables named 'publik'"),
        ("/moon", 'database "moon" does not exist'),
        ("/lake?colour=red", "not understood"),
    ],
)
def test_an_address_that_leads_nowhere_says_so(postgres: Server, change: str, said: str) -> None:
    postgres.run("CREATE TABLE orders (a int)")
    found, (problem,) = discover([postgres.uri.replace("/lake", change)])
    assert (found, problem.code) == ([], "not-found")
    assert said in problem.detail


def test_without_the_driver_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "adbc_driver_postgresql", None)
    _, (problem,) = discover(["postgresql://u@localhost/db"])
    assert problem.detail == (
        "reading PostgreSQL needs the package adbc-driver-postgresql: pip install 'lakescope[databases]'"
    )


# --- updates ----------------------------------------------------------------------------------------------------------


def test_an_update_scans_what_the_server_counted_as_changed(
    postgres: Server, spark: SparkSession, tmp_path: Path
) -> None:
    flush = "SELECT pg_stat_force_next_flush()"
    postgres.run(
        *[
            f"CREATE TABLE {name} AS SELECT i AS a FROM generate_series(1, 9) i"
            for name in ("kept", "grown", "emptied")
        ],
        *["CREATE TABLE widened (a int)", "CREATE TABLE dropped (a int)", "CREATE VIEW seen AS SELECT 1 AS a", flush],
    )
    out = tmp_path / "lake.idx"
    lakescope.index(postgres.uri, out, spark=spark)
    done = update(out)
    # Nobody counts what a view shows: it is always scanned again.
    assert (done.added, done.changed, done.removed) == ((), ("lake::seen",), ())
    postgres.run(
        *["INSERT INTO grown VALUES (10)", "TRUNCATE emptied", "ALTER TABLE widened ADD b int DEFAULT 1"],
        *["DROP TABLE dropped", "CREATE TABLE fresh AS SELECT 1 AS a", "DROP VIEW seen", flush],
    )
    done = update(out)
    assert done.added == ("lake::fresh",)
    assert done.changed == ("lake::emptied", "lake::grown", "lake::widened")
    assert done.removed == ("lake::dropped", "lake::seen")
    lake = lakescope.open(out)
    counted = dict(zip(lake.tables()["table"].to_pylist(), lake.tables()["rows"].to_pylist(), strict=True))
    assert counted == {"lake::emptied": 0, "lake::fresh": 1, "lake::grown": 10, "lake::kept": 9, "lake::widened": 0}
    assert update(out).nothing
    # A server that does not answer is no reason to forget its tables.
    with pytest.raises(BadRequest, match="does not exist"):
        update(out, add=[postgres.uri.replace("/lake", "/moon")])
    assert len(lakescope.open(out).tables()) == 5


# --- passwords --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_password_is_written_and_shown_nowhere(
    postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    postgres.run("CREATE TABLE orders AS SELECT i AS id FROM generate_series(1, 100) i")
    monkeypatch.delenv("PGPASSWORD")
    user, password = postgres.user, postgres.password
    address = postgres.uri.replace("@", f":{quote(password, safe='')}@", 1)
    out = tmp_path / "lake.idx"
    spark_folder = tmp_path / "spark"
    spark_folder.mkdir()

    def cli(*arguments: str, **more: str) -> str:
        environment = {**os.environ, "SPARK_LOCAL_DIRS": str(spark_folder), "TMPDIR": str(spark_folder), **more}
        program = [sys.executable, "-m", "lakescope", "--debug", *arguments]
        done = subprocess.run(program, capture_output=True, text=True, env=environment, timeout=300)
        return f"{done.returncode}\n{done.stdout}\n{done.stderr}"

    said = [
        cli("index", address, "--out", str(out)),
        cli("tables", str(out)),
        cli("update", str(out)),
        cli("update", str(out), PGPASSWORD=password),
        cli("add", str(out), f"{address}?schema=public"),
        cli("index", f"{address}-wrong", "--out", str(tmp_path / "other")),
        cli("index", address.replace(f"{postgres.port}", "1"), "--out", str(tmp_path / "other")),
        cli("index", f"postgresql://{user}:{password}%@127.0.0.1:{postgres.port}/lake", "--out", str(tmp_path / "o")),
        cli("index", f"{postgres.uri}?password={password}&x=1", "--out", str(tmp_path / "o")),
    ]
    assert said[0].startswith("0\n"), said[0]
    assert "lake::orders" in said[1]
    # The index knows the user, not the password: an update asks the environment.
    assert said[2].startswith("2\n")
    assert "no password supplied" in said[2]
    assert said[3].startswith("0\n"), said[3]
    assert said[4].startswith("0\n"), said[4]
    for text in said[5:]:
        assert text.startswith("2\n"), text
    files_written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files_written) > 5
    everything = b"\n".join([path.read_bytes() for path in files_written] + [text.encode() for text in said])
    for hidden in (password, quote(password, safe=""), "pa55", "w0rd"):
        assert hidden.encode() not in everything


def test_passwords_travel_in_tasks_alone(postgres: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    postgres.run("CREATE TABLE orders AS SELECT 1 AS id")
    monkeypatch.delenv("PGPASSWORD")
    (found,) = tables(postgres.uri.replace("@", f":{quote(postgres.password, safe='')}@", 1)).values()
    (unit,) = sources.plan(found, 1 << 30)
    shipped = Shipped.of(list)
    for text in (unit.to_json(), repr(found), repr(shipped), files.display(unit.uri)):
        assert not any(part in text for part in ("pa55", "w0rd"))
    secrets._known.clear()
    with pytest.raises(SourceError, match="no password supplied"):
        rows([unit])
    # What a worker does first.
    assert list(shipped(iter([1]))) == [1]
    assert rows([unit]) == [{"id": "1"}]


NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12)


@given(user=NAMES, password=NAMES, database=NAMES, schema=NAMES, table=NAMES)
@settings(deadline=None)
def test_an_address_is_read_back_without_its_password(
    user: str, password: str, database: str, schema: str, table: str
) -> None:
    one, two, three = (quote(text, safe="") for text in (user, password, database))
    address = Address.of(f"postgres://{one}:{two}@host:5433/{three}?sslmode=require")
    assert (address.user, address.database) == (user, database)
    assert secrets.of(address.place) == password
    at = address.at(schema, table)
    assert Address.of(str(at)) == at
    assert files.display(str(at)) == str(at)
    assert "password" in at.conninfo()
    assert files.display(f"postgres://{one}:{two}@host:5433/{three}") == f"postgresql://{one}@host:5433/{three}"


@pytest.mark.parametrize(
    "location",
    [
        *("postgresql://u:hid/den@host/db", "postgresql://u:hid?den@host/db", "postgresql://u:hid#den@host:5432/db"),
        *("postgresql://u:hid@den@host/db", "postgresql://host/db?password=hidden", "postgresql://u:hid den@host/db"),
        *("postgresql://u:hid%den@host/db", "postgresql://u:hid'den@host/db", "postgresql://u:[hid]den@h/db"),
    ],
)
def test_an_address_that_is_written_badly_shows_nothing_of_its_password(location: str) -> None:
    shown = files.display(location)
    try:
        shown += str(Address.of(location))
    except BadRequest as error:
        shown += str(error)
    assert "hid" not in shown
    assert "den" not in shown


def test_code_for_a_table_of_a_database_has_no_password() -> None:
    from lakescope.search.code import DIALECTS, Side, join_code

    left = Side(files.display("postgresql://ann:hidden@[::1]:5433/shop::sales.orders"), "postgresql", "id")
    right = Side("/lake/customers", "delta", "id")
    code = {dialect: join_code(left, right, dialect) for dialect in DIALECTS}
    assert "postgres_scan('postgresql://ann@[::1]:5433/shop', 'sales', 'orders')" in code["duckdb"]
    assert "delta_scan('/lake/customers')" in code["duckdb"]
    assert "jdbc:postgresql://[::1]:5433/shop" in code["spark"]
    assert 'FROM "sales"."orders"' in code["polars"]
    assert not any("hidden" in text for text in code.values())


def test_an_address_is_completed_as_libpq_would() -> None:
    def said(location: str, **environment: str) -> dict[str, str]:
        address = Address.as_written(location).completed(environment)
        words = re.findall(r"(\w+)='([^']*)'", address.conninfo())
        return {name: value for name, value in words if name != "password"}

    here = {"PGHOST": "h", "PGPORT": "1", "PGUSER": "u", "PGDATABASE": "d", "PGSSLMODE": "require"}
    every = {"host": "h", "port": "1", "user": "u", "dbname": "d", "sslmode": "require"}
    assert said("postgresql://", **here) == every
    assert said("postgresql://o@a,b/e", **here) == {**every, "host": "a,b", "user": "o", "dbname": "e"}
    assert said("postgresql://a:2/", **here) == {**every, "host": "a", "port": "2"}
    assert said("postgresql://[::1]:2/?sslmode=disable", **here) == {
        **every,
        "host": "::1",
        "port": "2",
        "sslmode": "disable",
    }
    assert said("postgresql://%2Frun%2Fpg/d?user=it%27s", PGUSER="u") == {
        "host": "/run/pg",
        "user": "it\\",
        "dbname": "d",
    }
    # What a service says is not known here, and must not be overruled by the environment.
    assert said("postgresql://", PGSERVICE="shop", **here) == {"service": "shop"}
