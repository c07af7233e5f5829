"""The public face: what goes in, what comes out under which names, what is refused, and how the house is built."""

from __future__ import annotations

import datetime as dt
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakescope
from lakescope import sources
from lakescope.build.plan import write_plan
from lakescope.build.tokens import TokenCut
from lakescope.errors import BadRequest, IndexDamaged, IndexLocked, LakescopeError, NotFound
from lakescope.lake import Lake, TableProfile
from lakescope.results import Results
from lakescope.sources.discover import discover
from lakescope.store.writer import IndexWriter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Record = dict[str, Any]

ROOT = Path(lakescope.__file__).parent


# What goes in ---------------------------------------------------------------------------------------------------------

ROWS: list[Record] = [
    {
        "id": i,
        "name": f"n{i % 3}" if i else None,
        "amount": i / 4,
        "day": dt.date(2024, 2, 27) + dt.timedelta(i),
        "flag": i % 2 == 0,
    }
    for i in range(4)
]
ARROW = pa.Table.from_pylist(ROWS)


def as_spark(spark: SparkSession, rows: list[Record], partitions: int = 2) -> Any:
    schema = "id long, name string, amount double, day date, flag boolean"
    return spark.createDataFrame([tuple(row.values()) for row in rows], schema).repartition(partitions)


@pytest.fixture(scope="module")
def frames(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Lake:
    """One table in every form that a table in memory has."""
    given = {
        "arrow": ARROW,
        "batch": ARROW.to_batches()[0],
        "reader": ARROW.to_reader(),
        "pandas": pd.DataFrame(ROWS),
        "polars": pl.DataFrame(ROWS),
        "lazy": pl.LazyFrame(ROWS),
        "duckdb": duckdb.connect().from_arrow(ARROW),
        "rows": ROWS,
        "columns": {name: [row[name] for row in ROWS] for name in ROWS[0]},
        "spark": as_spark(spark, ROWS),
    }
    return lakescope.index(given, tmp_path_factory.mktemp("frames") / "x.idx", spark=spark)


FORMS = ["arrow", "batch", "reader", "pandas", "polars", "lazy", "duckdb", "rows", "columns", "spark"]


def test_every_frame_is_a_table(frames: Lake) -> None:
    assert frames.tables()["table"].to_pylist() == sorted(FORMS)
    assert set(frames.tables()["rows"].to_pylist()) == {4}
    assert frames.problems().num_rows == 0


@pytest.mark.parametrize("form", FORMS)
def test_a_frame_is_the_same_whoever_made_it(form: str, frames: Lake) -> None:
    shown = ["name", "type", "rows", "nulls", "distinct", "unique", "minimum", "maximum", "mean"]
    assert [[column[field] for field in shown] for column in frames.profile(form).columns] == [
        ["id", "integer", 4, 0, 4, True, "0", "3", 1.5],
        ["name", "text", 4, 1, 3, True, "n0", "n2", None],
        ["amount", "decimal", 4, 0, 4, True, "0", "0.75", 0.375],
        ["day", "date", 4, 0, 4, True, "2024-02-27", "2024-03-01", "2024-02-28"],
        ["flag", "boolean", 4, 0, 2, False, "false", "true", None],
    ]


def test_a_frame_says_where_it_came_from(frames: Lake) -> None:
    assert frames.profile("polars").table["uri"] == "frame:polars"
    assert "frame:spark" in frames.info()["sources"]


def _csv(path: Path, rows: int = 3) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("id,name\n" + "".join(f"{i},n{i}\n" for i in range(rows)))
    return path


def test_paths_in_every_form(tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _csv(tmp_path / "a" / "one.csv")
    _csv(tmp_path / "b" / "two.csv", 5)
    _csv(tmp_path / "b" / "three.tsv", 7)
    _csv(tmp_path / "c.csv", 9)
    given: list[str | Path] = ["a", Path("b"), str(tmp_path / "c.csv"), "b/*.csv"]
    lake = lakescope.index(given, "new/x.idx", spark=spark)
    tables = dict(zip(lake.tables()["table"].to_pylist(), lake.tables()["rows"].to_pylist(), strict=True))
    assert tables == {"one.csv": 3, "two.csv": 5, "three.tsv": 7, "c.csv": 9}
    assert lake.problems()["code"].to_pylist() == ["found-twice"]
    monkeypatch.chdir("/")
    assert lakescope.open(tmp_path / "new" / "x.idx").tables().num_rows == 4


def test_frames_and_paths_of_one_name_stay_apart(tmp_path: Path, spark: SparkSession) -> None:
    given = {"x.csv": pa.table({"id": [7]}), "files": _csv(tmp_path / "lake" / "x.csv").parent}
    try:
        lake = lakescope.index(given, tmp_path / "x.idx", spark=spark)
    except BadRequest:
        return
    assert sorted(lake.tables()["rows"].to_pylist()) == [1, 3]


@pytest.fixture
def catalog(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    """A table of Spark's catalog, and one whose file is damaged."""
    as_spark(spark, ROWS).write.parquet(str(tmp_path / "facade_good"))
    as_spark(spark, ROWS, 1).write.parquet(str(tmp_path / "facade_bad"))
    for part in (tmp_path / "facade_bad").glob("part-*"):
        part.write_bytes(part.read_bytes()[:-30])
    spark.sql(f"CREATE DATABASE facade LOCATION '{tmp_path / 'facade.db'}'")
    for name in ("facade_good", "facade_bad"):
        columns = "id long, name string, amount double, day date, flag boolean"
        spark.sql(f"CREATE TABLE facade.{name} ({columns}) USING parquet LOCATION '{tmp_path / name}'")
    yield "facade"
    spark.sql("DROP DATABASE facade CASCADE")


def test_tables_of_the_catalog(catalog: str, tmp_path: Path, spark: SparkSession, frames: Lake) -> None:
    as_spark(spark, ROWS).createOrReplaceTempView("facade_view")
    try:
        names = [f"spark:{catalog}.facade_good", "spark:facade_view"]
        lake = lakescope.index(names, tmp_path / "x.idx", spark=spark)
        of_database = lakescope.index(f"spark:{catalog}.*", tmp_path / "y.idx", spark=spark)
        of_session = lakescope.index("spark:facade_v*", tmp_path / "z.idx", spark=spark)
    finally:
        spark.catalog.dropTempView("facade_view")
    assert lake.tables()["table"].to_pylist() == ["facade.facade_good", "facade_view"]
    assert lake.tables()["uri"].to_pylist() == ["spark:facade.facade_good", "spark:facade_view"]
    assert of_database.tables()["table"].to_pylist() == ["facade.facade_good"]
    assert of_session.tables()["table"].to_pylist() == ["facade_view"]
    for table in lake.tables()["table"].to_pylist():
        assert lake.profile(table).columns == frames.profile("spark").columns


def test_a_damaged_table_of_the_catalog_stops_no_other(catalog: str, tmp_path: Path, spark: SparkSession) -> None:
    lake = lakescope.index(f"spark:{catalog}.*", tmp_path / "x.idx", spark=spark)
    assert lake.tables()["table"].to_pylist() == ["facade.facade_good"]
    assert [(p["table"], p["severity"]) for p in lake.problems().to_pylist()] == [("facade.facade_bad", "error")]


def test_a_view_of_what_is_gone_stops_no_other(catalog: str, tmp_path: Path, spark: SparkSession) -> None:
    spark.sql(f"CREATE TABLE {catalog}.short (x int) USING parquet LOCATION '{tmp_path / 'short'}'")
    spark.sql(f"CREATE VIEW {catalog}.gone AS SELECT x FROM {catalog}.short")
    spark.sql(f"DROP TABLE {catalog}.short")
    names = [f"spark:{catalog}.{name}" for name in ("facade_good", "gone")]
    lake = lakescope.index(names, tmp_path / "x.idx", spark=spark)
    assert lake.tables()["table"].to_pylist() == ["facade.facade_good"]
    (problem,) = lake.problems().to_pylist()
    assert (problem["table"], problem["code"]) == ("facade.gone", "unreadable")
    assert "\n" not in problem["detail"]


def test_structs_of_a_spark_frame_are_flattened(tmp_path: Path, spark: SparkSession) -> None:
    frame = spark.sql("SELECT id, named_struct('a', id % 3, 'b', struct('x' AS c)) AS s FROM range(40)")
    lake = lakescope.index({"nested": frame, "empty": frame.limit(0)}, tmp_path / "x.idx", spark=spark)
    for table, distinct in (("nested", [40, 3, 1]), ("empty", [0, 0, 0])):
        columns = lake.profile(table).columns
        assert [column["name"] for column in columns] == ["id", "s.a", "s.b.c"]
        assert [column["distinct"] for column in columns] == distinct


def test_a_categorical_column_in_pieces(tmp_path: Path, spark: SparkSession) -> None:
    """Every piece brings categories of its own."""
    pieces = [pa.array(texts).dictionary_encode() for texts in (["a", "b", "a"], ["c", None], ["b", "d"])]
    frame = pa.table({"kind": pa.chunked_array(pieces)})
    lake = lakescope.index({"pieces": frame}, tmp_path / "x.idx", spark=spark)
    column = lake.profile("pieces").column("kind")
    assert (column["rows"], column["nulls"], column["distinct"]) == (7, 1, 4)


def test_a_column_that_cannot_be_profiled_stops_nothing(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lakescope.build import tasks

    def fail(table: str, column: str, state: Any, rows: int) -> Record:
        if column == "bad":
            raise ZeroDivisionError("of course")
        return summarise(table, column, state, rows)

    summarise = tasks.summarise
    monkeypatch.setattr(tasks, "summarise", fail)
    (tmp_path / "whole.csv").write_text("bad,good\n1,2\n")
    (tmp_path / "parts").mkdir()
    parts = [tmp_path / "parts" / f"{number}.csv" for number in range(2)]
    for part in parts:
        part.write_text("bad,good\n1,2\n")
    units = [sources.plan(found, 1 << 20) for found in discover([str(tmp_path / "whole.csv"), str(parts[0])])[0]]
    secrets = write_plan([[unit] for (unit,) in units], tmp_path)
    rows = list(
        tasks.ScanBins(str(tmp_path), 1, TokenCut(1, 1), secrets)(iter([pa.record_batch([[0, 1]], names=["id"])]))
    )
    list(tasks.MergeStates(str(tmp_path), 1, TokenCut(1, 1))(iter(rows)))
    kept = [pq.read_table(path).column("column").to_pylist() for path in tmp_path.glob("columns-*.parquet")]
    assert kept == [["good", "good"]]
    told = [row for path in tmp_path.glob("problems-*") for row in pq.read_table(path).to_pylist()]
    assert {row["code"] for row in told} == {"unprofiled"}
    assert all("'bad'" in row["detail"] for row in told)


def test_no_such_table_in_the_catalog(tmp_path: Path, spark: SparkSession) -> None:
    with pytest.raises(BadRequest, match=r"default\.nothing"):
        lakescope.index("spark:default.nothing", tmp_path / "x.idx", spark=spark)
    assert not (tmp_path / "x.idx").exists()


def test_a_spark_frame_without_rows_has_its_columns(tmp_path: Path, spark: SparkSession) -> None:
    given = {"spark": as_spark(spark, []), "arrow": ARROW.slice(0, 0)}
    lake = lakescope.index(given, tmp_path / "x.idx", spark=spark)
    assert {record["table"]: record["rows"] for record in lake.tables().to_pylist()} == {"spark": 0, "arrow": 0}
    for table in given:
        assert [column["name"] for column in lake.profile(table).columns] == list(ROWS[0])


def test_columns_of_one_name_stay_apart(tmp_path: Path, spark: SparkSession) -> None:
    twice = pa.Table.from_arrays([pa.array([1, 2]), pa.array(["x", "x"])], names=["a", "a"])
    given = {"spark": spark.sql("SELECT id AS a, 'x' AS a FROM range(1, 3)"), "arrow": twice}
    lake = lakescope.index(given, tmp_path / "x.idx", spark=spark)
    for table in given:
        columns = lake.profile(table).columns
        assert [(column["name"], column["distinct"]) for column in columns] == [("a", 2), ("a_2", 1)], table
        assert "renamed-columns" in {problem["code"] for problem in lake.profile(table).problems}


# What comes out -------------------------------------------------------------------------------------------------------

PROFILE_FIELDS = {
    *["name", "type", "rows", "nulls", "distinct", "unique", "minimum", "maximum", "mean", "quartiles"],
    *["histogram", "top", "patterns"],
}


def test_catalogs_are_arrow_tables_under_documented_names(demo_index: Lake) -> None:
    expected = {
        "tables": {"table", "uri", "format", "bytes", "modified", "rows", "columns", "complete"},
        "columns": {"table", "column", "position", *PROFILE_FIELDS} - {"name", "unique"},
        "problems": {"table", "severity", "code", "detail", "count"},
    }
    for method, names in expected.items():
        answer = getattr(demo_index, method)()
        assert isinstance(answer, pa.Table), method
        assert names <= set(answer.column_names), method
        assert answer.num_rows > 10, method


def test_catalogs_are_in_order(demo_index: Lake) -> None:
    tables = demo_index.tables()["table"].to_pylist()
    assert tables == sorted(set(tables))
    columns = demo_index.columns().select(["table", "position"]).to_pylist()
    places = [(record["table"], record["position"]) for record in columns]
    assert places == sorted(set(places))
    for record in demo_index.tables().to_pylist():
        assert sum(place[0] == record["table"] for place in places) == record["columns"]


def test_opened_again_it_says_the_same(demo_index: Lake) -> None:
    again = lakescope.open(Path(demo_index.path))
    for method in ("tables", "columns", "problems"):
        assert getattr(again, method)().equals(getattr(demo_index, method)())
    assert again.info() == demo_index.info()
    # One table is read by itself when nothing was read before.
    first = demo_index.tables()["table"][0].as_py()
    assert lakescope.open(demo_index.path).profile(first).to_dict() == demo_index.profile(first).to_dict()


def test_profiles_are_plain_data(demo_index: Lake) -> None:
    types = set()
    for table in demo_index.tables()["table"].to_pylist():
        profile = demo_index.profile(table)
        assert isinstance(profile, TableProfile)
        data = profile.to_dict()
        assert json.loads(json.dumps(data, allow_nan=False)) == data, table
        assert data["table"] == table
        for column in data["columns"]:
            assert set(column) >= PROFILE_FIELDS, table
            types.add(column["type"])
    assert types >= {"integer", "decimal", "text", "date", "boolean", "code"}


def test_columns_of_a_table_have_the_same_fields(demo_index: Lake) -> None:
    for table in demo_index.tables()["table"].to_pylist():
        fields = {frozenset(column) for column in demo_index.profile(table).columns}
        assert len(fields) == 1, table


def test_infinite_numbers_are_plain_data(tmp_path: Path, spark: SparkSession) -> None:
    numbers = [1.0, 2.0, float("inf"), float("-inf"), float("nan"), None, 1e308, -1e308]
    lake = lakescope.index({"x": pa.table({"x": numbers})}, tmp_path / "x.idx", spark=spark)
    column = lake.profile("x").to_dict()["columns"][0]
    json.dumps(column, allow_nan=False)
    assert (column["nulls"], column["infinite"], column["distinct"]) == (2, 2, 6)


def test_histogram_and_top_add_up(demo_index: Lake) -> None:
    drawn = 0
    for column in demo_index.columns().to_pylist():
        if column["histogram"]:
            drawn += 1
            counted = sum(entry["count"] for entry in column["histogram"])
            assert counted <= column["rows"] - column["nulls"], (column["table"], column["column"])
            assert counted > 0
        if column["top"]:
            assert sum(entry["count"] for entry in column["top"]) <= column["rows"] - column["nulls"]
    assert drawn > 20


HOSTILE = "<script>alert('x')</script><img src=x onerror=alert(1)>\x1b[31m\n&amp;"


class _Tags(HTMLParser):
    """The tags and attributes of a piece of HTML."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.text += data


def test_hostile_text_is_shown_not_obeyed(tmp_path: Path, spark: SparkSession) -> None:
    table = pa.table({HOSTILE: [HOSTILE, HOSTILE, "z"], "n": [1, 2, 3]})
    place = tmp_path / "<script>alert(2)<.idx"
    lake = lakescope.index({HOSTILE: table}, place, spark=spark)
    profile = lake.profile(HOSTILE)
    for html in (lake._repr_html_(), profile._repr_html_()):
        found = _Tags(html)
        assert not found.tags & {"script", "img"}
        assert not {name for name in found.attributes if name.startswith("on")}
        assert "<script>alert" in found.text
    for text in (repr(lake), repr(profile)):
        assert all(char.isprintable() for line in text.split("\n") for char in line)
    assert len(repr(profile).split("\n")) == 3 + 2


@dataclass(frozen=True, slots=True)
class Hit:
    table: str
    share: float


def test_records_in_a_notebook(demo_index: Lake) -> None:
    found = demo_index.correlated("mobility/bike_rides_daily.csv", "date", "rides", 3)
    one = found[0]._repr_html_()  # type: ignore[attr-defined]
    assert ">weather/daily_weather.parquet</td>" in one
    assert "Correlated" in one
    for html in (one, found._repr_html_()):
        # Chances of many zeros are told by their magnitude, none to more digits.
        assert re.search(r"\b\de-\d+\b", html)
        assert not re.search(r"\d\.\d+e-\d+", html)
    assert "weather/<wbr>daily_<wbr>weather<wbr>.parquet" in found._repr_html_()
    hostile = Results(Hit, [Hit("<script>/alert_1", 0.5)])
    for html in (hostile._repr_html_(), hostile[0]._repr_html_()):  # type: ignore[attr-defined]
        assert "<script" not in html


def test_what_a_lake_says_of_itself(demo_index: Lake) -> None:
    text = repr(demo_index)
    assert demo_index.path in text
    assert f"{demo_index.tables().num_rows:,} tables" in text
    assert "tables" in demo_index._repr_html_()


def test_public_names() -> None:
    for name in lakescope.__all__:
        assert getattr(lakescope, name) is not None
    assert lakescope.Lake is Lake
    assert lakescope.TableProfile is TableProfile
    with pytest.raises(AttributeError, match="nothing_here"):
        _ = lakescope.nothing_here
    for error in ("BadRequest", "NotFound", "SourceError", "IndexDamaged", "IndexLocked", "BuildFailed"):
        assert issubclass(getattr(lakescope, error), LakescopeError)


# What is refused ------------------------------------------------------------------------------------------------------


def _refused(given: Any, out: Path, match: str, **options: Any) -> None:
    with pytest.raises(BadRequest, match=match) as caught:
        lakescope.index(given, out, **options)
    assert caught.value.hint


def test_requests_that_cannot_be(tmp_path: Path, spark: SparkSession) -> None:
    source, out = _csv(tmp_path / "lake" / "x.csv"), tmp_path / "x.idx"
    (tmp_path / "empty").mkdir()
    _refused(source, out, "not both", spark=spark, master="local[1]")
    _refused([], out, "nothing to index", spark=spark)
    _refused({}, out, "nothing to index", spark=spark)
    _refused(tmp_path / "empty", out, "found no table", spark=spark)
    _refused(tmp_path / "nowhere", out, "nowhere", spark=spark)
    _refused([source, tmp_path / "nowhere.csv"], out, r"nowhere\.csv", spark=spark)
    _refused(str(tmp_path / "*.parquet"), out, r"\*\.parquet", spark=spark)
    _refused([ARROW], out, "without a name", spark=spark)
    _refused(ARROW, out, "without a name", spark=spark)
    _refused(pd.DataFrame({"x": [1]}), out, "without a name", spark=spark)
    _refused(None, out, "without a name", spark=spark)
    _refused("", out, "path is empty", spark=spark)
    _refused([source, " "], out, "path is empty", spark=spark)
    _refused({1: ARROW}, out, "no name of a table", spark=spark)
    _refused({"x": object()}, out, "object", spark=spark)
    _refused({"x": [1, 2]}, out, "dictionaries", spark=spark)
    assert not out.exists()


def test_what_is_not_an_index_is_spared(tmp_path: Path, spark: SparkSession) -> None:
    source = _csv(tmp_path / "lake" / "x.csv")
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "notes.txt").write_text("mine")
    _refused(source, tmp_path / "file", "is a file", spark=spark)
    _refused(source, tmp_path / "folder", "not empty", spark=spark)
    assert (tmp_path / "file").read_text() == "mine"
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["notes.txt"]


def test_an_empty_directory_may_become_an_index(tmp_path: Path, spark: SparkSession) -> None:
    (tmp_path / "x.idx").mkdir()
    assert lakescope.index(_csv(tmp_path / "x.csv"), tmp_path / "x.idx", spark=spark).tables().num_rows == 1


def test_two_writers_at_once(tmp_path: Path, spark: SparkSession) -> None:
    source, out = _csv(tmp_path / "x.csv"), tmp_path / "x.idx"
    lakescope.index(source, out, spark=spark)
    with IndexWriter(out), pytest.raises(IndexLocked, match=r"x\.idx") as caught:
        lakescope.index(source, out, spark=spark)
    assert caught.value.hint
    assert lakescope.open(out).info()["generation"] == 1
    assert lakescope.index(source, out, spark=spark).info()["generation"] == 2


def test_unknown_names_are_answered_with_near_ones(demo_index: Lake) -> None:
    known = demo_index.tables()["table"][3].as_py()
    with pytest.raises(NotFound, match="no table named") as caught:
        demo_index.profile(known + "x")
    assert known in (caught.value.hint or "")
    with pytest.raises(NotFound, match="no column named"):
        demo_index.profile(known).column("no such column")


def test_opening_what_is_no_index(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "nowhere", tmp_path, tmp_path / "file"):
        with pytest.raises(BadRequest, match=path.name) as caught:
            lakescope.open(path)
        assert caught.value.hint


# Replacing an index ---------------------------------------------------------------------------------------------------


def test_a_new_index_replaces_the_old_one(tmp_path: Path, spark: SparkSession) -> None:
    source, out = tmp_path / "lake", tmp_path / "x.idx"
    _csv(source / "x.csv", 3)
    asked, unasked = lakescope.index(source, out, spark=spark), lakescope.open(out)
    assert asked.tables()["rows"].to_pylist() == [3]
    _csv(source / "x.csv", 8)
    _csv(source / "y.csv", 2)
    new = lakescope.index(source, out, spark=spark)
    assert new.tables()["rows"].to_pylist() == [8, 2]
    assert (asked.info()["generation"], new.info()["generation"]) == (1, 2)
    assert lakescope.open(out).tables()["rows"].to_pylist() == [8, 2]
    new.verify()
    # Whoever still holds the old one gets its answer, or is told; never a mixture, never a bare traceback.
    assert asked.tables()["rows"].to_pylist() == [3]
    for lake in (asked, unasked):
        for ask in (_rows_of_tables, _rows_of_columns, _rows_of_profile):
            assert _answer_or_word(ask, lake) in ({3}, None)


def _rows_of_tables(lake: Lake) -> set[int]:
    return set(lake.tables()["rows"].to_pylist())


def _rows_of_columns(lake: Lake) -> set[int]:
    return set(lake.columns()["rows"].to_pylist())


def _rows_of_profile(lake: Lake) -> set[int]:
    return {lake.profile("x.csv").rows}


def _answer_or_word(ask: Callable[[Lake], set[int]], lake: Lake) -> set[int] | None:
    """An answer, or None if the lake says in its own words that it cannot give one."""
    try:
        return ask(lake)
    except LakescopeError:
        return None


def test_a_build_that_fails_leaves_the_old_index(tmp_path: Path, spark: SparkSession) -> None:
    out = tmp_path / "x.idx"
    lakescope.index(_csv(tmp_path / "x.csv"), out, spark=spark)
    before = sorted(path.relative_to(out) for path in out.rglob("*"))
    with pytest.raises(BadRequest):
        lakescope.index(tmp_path / "nowhere", out, spark=spark)
    with pytest.raises(LakescopeError):
        lakescope.index({"x": spark.sql("SELECT raise_error('broken') AS a")}, out, spark=spark)
    assert sorted(path.relative_to(out) for path in out.rglob("*")) == before
    lake = lakescope.open(out)
    lake.verify()
    assert lake.tables()["table"].to_pylist() == ["x.csv"]


def test_a_damaged_index_can_be_built_again(tmp_path: Path, spark: SparkSession) -> None:
    source, out = _csv(tmp_path / "x.csv"), tmp_path / "x.idx"
    lakescope.index(source, out, spark=spark)
    (out / "manifest.json").write_bytes(b"\xff")
    with pytest.raises(IndexDamaged, match=r"manifest\.json"):
        lakescope.open(out)
    lakescope.index(source, out, spark=spark).verify()


@pytest.mark.parametrize("kind", ["tables", "columns"])
def test_flipped_bits_never_give_a_wrong_answer(kind: str, tmp_path: Path, frames: Lake) -> None:
    """Whichever bit of the catalog flips: it is found out, or it does not matter."""
    place = Path(shutil.copytree(frames.path, tmp_path / "x.idx"))
    path = min((place / "segments").rglob(f"{kind}-*"))
    content = path.read_bytes()
    table = pq.read_table(path)["table"][0].as_py()
    expected = frames.profile(table).to_dict(), getattr(frames, kind)().to_pylist()
    wrong, found = [], 0
    for spot in range(0, len(content), max(1, len(content) // 300)):
        path.write_bytes(content[:spot] + bytes([content[spot] ^ 1 << spot % 8]) + content[spot + 1 :])
        try:
            lake = lakescope.open(place)
            same = (lake.profile(table).to_dict(), getattr(lake, kind)().to_pylist()) == expected
            told = "" if same else "another answer"
        except IndexDamaged as error:
            found += 1
            told = "" if path.name in str(error) else "the file is not named"
        except Exception as error:
            told = repr(error)[:100]
        if told:
            wrong.append(f"byte {spot} of {len(content)}: {told}")
    assert found > 100
    assert not wrong


# A session of the user's own ------------------------------------------------------------------------------------------

_OWN_SESSION = """
import sys
from lakescope.build.session import spark_session
import lakescope
with spark_session(master="local[1]") as mine:
    lake = lakescope.index(sys.argv[1], sys.argv[2])
    assert lake.tables().num_rows == 1
    print("still there:", mine.range(3).count())
"""


def test_a_session_that_was_there_before_is_not_stopped(tmp_path: Path) -> None:
    program = [sys.executable, "-c", _OWN_SESSION, str(_csv(tmp_path / "x.csv")), str(tmp_path / "x.idx")]
    ran = subprocess.run(program, capture_output=True, text=True, timeout=600, check=False)
    assert "still there: 3" in ran.stdout, ran.stderr[-2000:]
