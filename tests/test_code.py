"""Printed code runs as it is and gives what was told: joins, coefficients, learned joins, in every format of tables."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import re
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

import lakescope
from helpers.commands import Run, assert_refused
from lakescope.engines.joins.answers import Joinable
from lakescope.engines.joins.paths import split_join
from lakescope.errors import BadRequest
from lakescope.lake import Lake
from lakescope.search.code import Side, join_code, renamed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def executed(code: str, **names: Any) -> dict[str, Any]:
    """What code of Python leaves behind; what it prints is nobody's business."""
    with contextlib.redirect_stdout(io.StringIO()):
        exec(code, names)
    return names


def rows_of_sql(code: str, name: str = "joined") -> list[tuple[Any, ...]]:
    """Rows of code for DuckDB, which is SQL, or Python where SQL alone cannot read the tables."""
    if "import duckdb" in code:
        return list(executed(code)[name].fetchall())
    return list(duckdb.connect().execute(code).fetchall())


def matches_in_duckdb(code: str) -> int:
    """How many keys find a partner."""
    (key,) = re.findall(r"  ON (.*?) = ", code)
    counted = code.replace("LEFT JOIN", "JOIN").replace("mine.*, found.*", f"COUNT(DISTINCT {key})")
    return int(rows_of_sql(counted)[0][0])


def matches_in_polars(code: str) -> int:
    (key,) = re.findall(r"left_on=(.*), right_on=", code)
    names = executed(code.replace("how='left'", "how='inner'"))
    return int(names["joined"].select(eval(key, names).n_unique()).item())


def matches_in_spark(code: str, spark: SparkSession) -> int:
    names = executed(code.replace("'left')", "'inner')"), spark=spark)
    (key,) = re.findall(r"joined = mine.join\(found, \(?(.*?) == ", code)
    return int(names["joined"].select(eval(key, names)).distinct().count())


DEMO = [
    ("schools/test_scores.parquet", "school_id"),  # floating-point numbers
    ("schools/schools.csv", "school_id"),
    ("weather/sensor_readings.csv.zst", "read_at"),
    ("web/events.parquet", "happened_at"),  # a directory
    ("misc/lottery_draws.tsv", "draw_date"),
    ("mobility/parking_daily.feather", "date"),
    ("energy/solar_output.orc", "date"),
    ("crm/crm.sqlite::accounts", "country"),
    ("hr/people.xlsx::Training", "employee_id"),
    ("web/page_views.jsonl", "user.country"),
    ("legacy/city_census.csv", "Place city"),
    ("legacy/geo.tsv", None),
    ("legacy/cust_dump.csv", "column_6"),
    ("mobility/bike_trips.csv.gz", None),
    ("broken/utf16.csv", None),
    ("broken/latin1.csv", None),
    ("broken/ragged_rows.csv", None),
    ("broken/mixed_line_ends.csv", None),
]


@pytest.mark.parametrize(("table", "column"), DEMO)
def test_every_format_joins_as_the_index_told(demo_index: Lake, table: str, column: str | None) -> None:
    found = [each for each in demo_index.joinable(table, column, k=3) if "truncated" not in each.table]
    assert found
    for each in found:
        assert matches_in_duckdb(demo_index.join_code(table, each, "duckdb")) == each.overlap, each
        assert matches_in_polars(demo_index.join_code(table, each, "polars")) == each.overlap, each


@pytest.mark.parametrize(
    ("table", "column"),
    [*DEMO[:3], *DEMO[4:10], ("legacy/cust_dump.csv", "column_6")],
)
def test_spark_joins_as_the_index_told(demo_index: Lake, spark: SparkSession, table: str, column: str | None) -> None:
    (found,) = demo_index.joinable(table, column, k=1)
    assert matches_in_spark(demo_index.join_code(table, found, "spark"), spark) == found.overlap


WORDS = [f"{word} {n}" for n, word in enumerate(["Köln", "Åre", "Łódź", "Zürich", "Oslo", "Rom", "Bonn", "Genf"] * 5)]


def text_of(rows: list[list[str]], delimiter: str = ",") -> str:
    return "".join(delimiter.join(row) + "\n" for row in rows)


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Lake:
    """A lake whose tables hold the same keys, each in a way of its own."""
    at = tmp_path_factory.mktemp("odd")
    rows = [[word, str(n)] for n, word in enumerate(WORDS)]
    named = [["place", "amount"], *rows]
    (at / "plain.csv").write_text(text_of(named))
    (at / "tab.tsv").write_text(text_of(named, "\t"))
    (at / "semicolon.csv").write_text(text_of(named, ";"))
    (at / "pipe.txt").write_text(text_of(named, "|"))
    (at / "bare.csv").write_text(text_of(rows))
    (at / "titled.csv").write_text("A report of places\n\n" + text_of(named))
    (at / "decomposed.csv").write_text(unicodedata.normalize("NFD", text_of(named)))
    (at / "blanks.csv").write_text(text_of([["place", "amount"], *([f"  {a}\u00a0", b] for a, b in rows)]))
    (at / "windows.csv").write_bytes(text_of(named).replace("Łódź", "Lodz").encode("cp1252"))
    (at / "wide.csv").write_text(text_of(named), "utf-16")
    (at / "single.csv").write_text(text_of([["place", "amount"], *([f"'{a}'", f"'{b}'"] for a, b in rows)]))
    (at / "quoted.csv").write_text(text_of([['"full ""place"""', "c'd"], *rows]))
    (at / "twice.csv").write_text(text_of([["place", "place"], *rows]))
    (at / "packed.csv.gz").write_bytes(gzip.compress(text_of(named).encode()))
    (at / "la'ke.csv").write_text(text_of(named))
    records = ",\n".join(f'{{"of": {{"place": "{a}"}}, "amount": {b}}}' for a, b in rows)
    (at / "nested.jsonl").write_text(records.replace(",\n", "\n"))
    (at / "array.json").write_text(json.dumps([{"place": a, "amount": int(b)} for a, b in rows], ensure_ascii=False))
    table = pa.table({"place": WORDS, "amount": [float(n) for n in range(len(WORDS))]})
    pq.write_table(table, at / "typed.parquet")
    feather.write_feather(table, at / "typed.feather")
    orc.write_table(table, at / "typed.orc")
    pq.write_table(pa.table({"of": [{"place": word} for word in WORDS]}), at / "inner.parquet")
    return lakescope.index(at, at.with_name("odd.idx"), spark=spark)


def joins_of(lake: Lake, table: str, column: str) -> list[Joinable]:
    found = list(lake.joinable(table, column, k=100))
    assert len(found) > 15, [each.table for each in found]
    return found


@pytest.mark.parametrize("dialect", ["duckdb", "polars"])
def test_files_written_otherwise_meet(odd: Lake, dialect: str) -> None:
    count = {"duckdb": matches_in_duckdb, "polars": matches_in_polars}[dialect]
    for each in joins_of(odd, "plain.csv", "place"):
        code = odd.join_code("plain.csv", each, dialect)
        assert count(code) == each.overlap, (each.table, code)


@pytest.mark.parametrize("dialect", ["duckdb", "polars"])
def test_files_from_outside_of_the_lake_meet_it(odd: Lake, dialect: str) -> None:
    count = {"duckdb": matches_in_duckdb, "polars": matches_in_polars}[dialect]
    columns = {"bare.csv": "column_1", "nested.jsonl": "of.place", "quoted.csv": 'full "place"'}
    for name in sorted({*odd.tables()["table"].to_pylist()} - {"plain.csv"}):
        at = odd.location(name)
        column = columns.get(name, "of.place" if name == "inner.parquet" else "place")
        (each,) = (each for each in odd.joinable(at, column, k=100) if each.table == "plain.csv")
        code = odd.join_code(at, each, dialect)
        assert count(code) == each.overlap, (name, code)


def test_files_written_otherwise_meet_in_spark(odd: Lake, spark: SparkSession) -> None:
    left_alone = {"decomposed.csv"}  # Spark does not compose letters, and the code says so
    for each in joins_of(odd, "plain.csv", "place"):
        code = odd.join_code("plain.csv", each, "spark")
        if each.table in left_alone:
            assert "NFC" in code
        else:
            assert matches_in_spark(code, spark) == each.overlap, (each.table, code)


def test_numbers_meet_however_they_are_written(tmp_path: Path) -> None:
    """Floating-point numbers meet text; codes with a leading zero meet themselves alone; nothing meets nothing."""
    pq.write_table(pa.table({"a": [7.0, 12.0, 1.5, 1e7]}), tmp_path / "a.parquet")
    (tmp_path / "b.csv").write_text("a,b\n7,x\n007,y\n12.0,z\n1.50,v\n10000000,w\nNA,u\n")
    left = Side(str(tmp_path / "a.parquet"), "parquet", "a", ("integer", "decimal"), "double")
    right = Side(str(tmp_path / "b.csv"), "csv", "a", ("integer", "decimal", "code"), "text", empty=True)
    assert matches_in_duckdb(join_code(left, right, "duckdb")) == 4
    assert matches_in_polars(join_code(left, right, "polars")) == 4
    right = Side(str(tmp_path / "b.csv"), "csv", "a", ("integer", "code"), "text", ("9", "999"), empty=True)
    itself = join_code(right, right, "duckdb")
    assert "DOUBLE" not in itself
    assert matches_in_duckdb(itself) == 5, "007 is not 7, and NA is no value"
    assert matches_in_polars(join_code(right, right, "polars")) == 5


def test_keys_of_one_form_stay_readable(demo_index: Lake) -> None:
    (found,) = demo_index.joinable("weather/sensor_readings.csv.zst", "sensor", k=1)
    code = demo_index.join_code("weather/sensor_readings.csv.zst", found, "duckdb")
    assert 'ON TRIM(CAST(mine."sensor" AS VARCHAR)) = TRIM(CAST(found."sensor_id" AS VARCHAR));' in code


@pytest.mark.parametrize("measure", ["pearson", "spearman", "rin", "kendall", "qn", "pm1", "qcr"])
@pytest.mark.parametrize("dialect", ["duckdb", "polars"])
def test_code_computes_the_coefficient_that_was_told(demo_index: Lake, measure: str, dialect: str) -> None:
    ask = ("mobility/bike_rides_daily.csv", "date", "rides")
    told = set()
    for each in demo_index.correlated(
        *ask, k=4 if measure in ("pearson", "spearman") else 1, measure=measure, verify=True
    ):
        code = demo_index.correlation_code(*ask[:2], each, dialect, target=ask[2])
        computed = executed(code)["coefficient"] if dialect == "polars" else rows_of_sql(code, "found")[0][0]
        offered = each.coefficient in ("pearson", "spearman", "kendall", *(("rin",) if dialect == "polars" else ()))
        assert (f"{each.coefficient}, which was told, is not offered here" in code) == (not offered)
        if offered:  # means of many numbers may differ by their last digit
            assert computed == pytest.approx(each.verified, abs=1e-5), (
                "means of many numbers differ by their last digit"
            )
        else:
            assert computed == pytest.approx(each.verified, abs=0.15)
        told.add(each.coefficient)
    if measure == "pearson":
        assert told == {"pearson", "spearman"}, "ranks where tails are heavy"


@pytest.mark.parametrize("measure", ["pearson", "spearman", "kendall"])
def test_spark_computes_the_coefficient_that_was_told(demo_index: Lake, spark: SparkSession, measure: str) -> None:
    ask = ("world/gdp_growth.csv", ["country"], "gdp_growth_pct")
    (found,) = demo_index.correlated(*ask, k=1, measure=measure, verify=True)
    code = demo_index.correlation_code(*ask[:2], found, "spark", target=ask[2])
    assert executed(code, spark=spark)["found"].first()[0] == pytest.approx(found.verified, abs=1e-6)


@pytest.mark.parametrize("agg", ["mean", "sum", "count", "min", "max"])
def test_what_is_no_number_to_the_index_is_none_in_code(
    demo_index: Lake, spark: SparkSession, tmp_path: Path, agg: str
) -> None:
    """Codes, infinities and words for nothing take part in no coefficient; nor do keys without any number."""
    days = pl.read_csv(demo_index.location("mobility/bike_rides_daily.csv"))
    cells = [str(number) for number in days["rides"]]
    cells[1::10] = ["007"] * len(cells[1::10])
    cells[2::10] = ["NaN"] * len(cells[2::10])
    cells[3::10] = ["-inf"] * len(cells[3::10])
    mine = str(tmp_path / "mine.csv")
    twice = pl.concat([days.select("date"), days.select("date")[::2]])
    twice.with_columns(mine=pl.Series([*cells, *cells[::2]])).write_csv(mine)
    found = demo_index.correlated(mine, "date", "mine", k=20, verify=True, agg=agg)
    each = next(each for each in found if each.coefficient in ("pearson", "spearman"))
    wanted = pytest.approx(each.verified, abs=1e-5)
    code = {d: demo_index.correlation_code(mine, "date", each, d, target="mine") for d in ("duckdb", "polars", "spark")}
    assert rows_of_sql(code["duckdb"], "found")[0][0] == wanted
    assert executed(code["polars"])["coefficient"] == wanted
    assert executed(code["spark"], spark=spark)["found"].first()[0] == wanted


def plainly(rows: Any) -> list[tuple[str, ...]]:
    """Rows in order, cells as texts: numbers may be written as texts, and differ by their last digits.

    What stands for nothing is nothing in a table that was made, and stays as it is written elsewhere.
    """

    def told(cell: Any) -> str:
        with contextlib.suppress(TypeError, ValueError):
            return f"{float(cell):.9g}"
        return "None" if cell == "N/A" else str(cell)

    return sorted(tuple(told(cell) for cell in row) for row in rows)


@pytest.mark.parametrize(
    ("key", "agg"),
    [("date", "mean"), ("date", "sum"), ("date", "count"), (["country", "year"], "mean"), (["year", "country"], "sum")],
)
def test_code_joins_columns_in_as_they_were_joined(
    demo_index: Lake, spark: SparkSession, tmp_path: Path, key: Any, agg: str
) -> None:
    """Columns of other tables beside each row, by keys some of which are nothing, in every system alike."""
    one = key == "date"
    table, target = ("mobility/bike_rides_daily.csv", "rides") if one else ("world/gdp_growth.csv", "gdp_growth_pct")
    mine = str(tmp_path / "mine.csv")
    whole = pl.read_csv(demo_index.location(table), infer_schema=False)
    first = "date" if one else "country"
    marked = pl.when(pl.int_range(pl.len()) % 50 == 7).then(pl.lit("N/A")).otherwise(pl.col(first)).alias(first)
    pl.concat([whole.with_columns(marked), whole[:9]]).write_csv(mine)
    found = demo_index.correlated(mine, key, target, k=8, agg=agg)
    chosen = list({each.table: each for each in found if each.table != table}.values())[:3]
    assert len(chosen) > 1
    joined, added = demo_index.augmented(mine, key, target, chosen, agg=agg)
    wanted, names = plainly(zip(*joined.to_pydict().values(), strict=True)), [each.name for each in added]
    assert any(row[-1] == "None" for row in wanted)
    code = {d: demo_index.augment_code(mine, key, target, chosen, names, d) for d in ("duckdb", "polars", "spark")}
    assert plainly(rows_of_sql(code["duckdb"])) == wanted
    frame = executed(code["polars"])["joined"]
    assert frame.columns == joined.column_names
    assert plainly(frame.rows()) == wanted
    frame = executed(code["spark"], spark=spark)["joined"]
    assert frame.columns == joined.column_names
    assert plainly(frame.collect()) == wanted
    assert demo_index.augment_code(mine, key, target, chosen, names, "sql").count("LEFT JOIN") == len(chosen)


def test_no_code_for_what_depends_on_the_order_of_rows(demo_index: Lake) -> None:
    ask = ("mobility/bike_rides_daily.csv", "date", "rides")
    found = demo_index.correlated(*ask, k=1, agg="first")
    with pytest.raises(BadRequest, match="no code for the aggregate 'first'"):
        demo_index.augment_code(*ask, found, ["new"], "polars")


# --- paths, and which hit ---------------------------------------------------------------------------------------------


def test_code_follows_a_path(demo_index: Lake, spark: SparkSession) -> None:
    table, column = "shop/order_lines.parquet", "order_id"
    paths = demo_index.join_paths(table, column, depth=2, threshold=0.8)
    path = next(each for each in paths if each.table == "shop/staff.csv")
    sql = demo_index.path_code(table, path, "duckdb").replace(
        "mine.*, found1.*, found2.*", "COUNT(found2.badge), COUNT(*)"
    )
    matched, rows = duckdb.connect().execute(sql).fetchall()[0]
    assert matched == rows == demo_index.profile(table).rows
    joined = executed(demo_index.path_code(table, path, "polars"))["joined"]
    assert joined.height == rows
    assert executed(demo_index.path_code(table, path, "spark"), spark=spark)["joined"].count() == rows
    assert demo_index.path_code(table, path, "sql").count("LEFT JOIN") == 2


def test_joins_of_paths_are_split_where_the_lake_knows_both_sides() -> None:
    known = {("b = c.csv", "x.y")}
    assert split_join("a.csv.k = b = c.csv.x.y", "a.csv", lambda *pair: pair in known) == ("k", ("b = c.csv", "x.y"))
    with pytest.raises(BadRequest, match="no join of this lake"):
        split_join("a.csv.k = z.csv.x", "a.csv", lambda *pair: pair in known)


def test_any_hit_has_code(run: Run, demo_index: Lake, tmp_path: Path) -> None:
    query = ("join", demo_index.path, "shop/order_lines.parquet", "--on", "order_id")
    third = demo_index.joinable("shop/order_lines.parquet", "order_id", k=3)[2]
    code = run(*query, "--code", "duckdb", "--hit", "3").out
    assert code.strip() == demo_index.join_code("shop/order_lines.parquet", third, "duckdb")
    assert_refused(run(*query, "--code", "duckdb", "--hit", "3000"), 2, "there is no hit 3000")
    assert_refused(run(*query, "--code", "duckdb", "--hit", "0"), 2, "hit must be at least 1, not 0")
    assert_refused(run(*query, "--hit", "2"), 2, "--hit does nothing here")
    path = demo_index.join_paths("shop/order_lines.parquet", "order_id", depth=2)[4]
    code = run("paths", *query[1:], "--depth", "2", "--code", "polars", "--hit", "5").out
    assert code.strip() == demo_index.path_code("shop/order_lines.parquet", path, "polars")

    ask = ("mobility/bike_rides_daily.csv", "date", "rides")
    query = ("correlate", demo_index.path, ask[0], "--key", ask[1], "--target", ask[2])
    second = demo_index.correlated(*ask)[1]
    picture = tmp_path / "second.svg"
    drawn = run(*query, "--hit", "2", "--plot", str(picture))
    assert f"{second.table} {second.column} against rides" in drawn.err
    assert picture.read_text().count("<circle") == second.sample
    code = run(*query, "--hit", "2", "--code", "sql").out
    assert code.strip() == demo_index.correlation_code(ask[0], ask[1], second, "sql", target=ask[2])
    assert_refused(run(*query, "--hit", "3000", "--code", "sql"), 2, "there is no hit 3000")
    assert_refused(run(*query, "--hit", "2"), 2, "--hit does nothing here")


def test_uploads_go_by_their_own_name() -> None:
    side = Side("/srv/u1/table.csv", "parquet", "a")
    code = renamed(join_code(side, Side("/lake/b.csv", "csv", "table"), "sql"), "/srv/u1/table.csv", "o'my.csv")
    assert 'FROM "o\'my" AS mine' in code
    assert 'found."table"' in code
    literal = renamed("SELECT * FROM read_parquet('/srv/u1/table.csv')", "/srv/u1/table.csv", "o'my.csv")
    assert literal == "SELECT * FROM read_parquet('o''my.csv')"


# --- learned joins ----------------------------------------------------------------------------------------------------

PEOPLE = [
    f"{first} {last}"
    for first in ("Ada", "Alan", "Grace", "Edsger", "Barbara")
    for last in "Ash Birk Cole Dorn Elm".split()
]
LOGINS = [name.lower().replace(" ", ".") for name in PEOPLE]
LEFT = [[f"  {name} ", f" {n} "] for n, name in enumerate(PEOPLE)]
RIGHT = [[login, f"x{n}"] for n, login in enumerate(LOGINS)]


def written_people(at: Path, form: str) -> tuple[Path, Path]:
    left, right = [["name", "note"], *LEFT], [["login", "group"], *RIGHT]
    if form in ("tsv", "semicolon"):
        delimiter, ending = {"tsv": ("\t", "tsv"), "semicolon": (";", "csv")}[form]
        paths = at / f"a.{ending}", at / f"b.{ending}"
        for path, rows in zip(paths, (left, right), strict=True):
            path.write_text(text_of(rows, delimiter))
        return paths
    paths = at / "a.csv", at / "b.csv"
    paths[0].write_text(text_of(left if form != "headerless" else LEFT))
    paths[1].write_text(text_of(right if form != "headerless" else RIGHT))
    if form == "titled":
        paths[0].write_text("Names of people\n\n" + text_of(left))
    if form == "quoted":
        paths[0].write_text(text_of([['"c""d"', "ti'tle"], *LEFT]))
    if form == "latin":
        paths[0].write_bytes(text_of([["name", "Größe"], *LEFT]).encode("cp1252"))
    if form == "gzip":
        paths = paths[0], at / "b.csv.gz"
        paths[1].write_bytes(gzip.compress(text_of(right).encode()))
    if form == "parquet":
        paths = at / "a.parquet", at / "b.parquet"
        pl.DataFrame(LEFT, schema=["name", "note"], orient="row").write_parquet(paths[0])
        pl.DataFrame({"login": LOGINS, "number": [n / 2 for n in range(len(LOGINS))]}).write_parquet(paths[1])
    if form in ("json", "jsonl"):
        paths = paths[0], at / f"b.{form}"
        frame = pl.DataFrame(RIGHT, schema=["login", "group"], orient="row")
        (frame.write_json if form == "json" else frame.write_ndjson)(paths[1])
    return paths


FORMS = ["csv", "tsv", "semicolon", "headerless", "titled", "quoted", "latin", "gzip", "parquet", "json", "jsonl"]


def ordered(rows: Any) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in rows), key=repr)


@pytest.mark.parametrize("form", FORMS)
def test_code_of_learned_joins_gives_the_cells_of_the_table(tmp_path: Path, form: str) -> None:
    plan = lakescope.autojoin(*map(str, written_people(tmp_path, form)), budget=20)
    table = plan.table()
    wanted = ordered(row.values() for row in table.to_pylist())
    assert len(wanted) == len(PEOPLE)
    joined = executed(plan.code("python"))["joined"]
    assert ordered((*left.values(), *right.values()) for left, right in joined) == wanted
    assert ordered(rows_of_sql(plan.code("duckdb"))) == wanted
    assert ordered(executed(plan.code("polars"))["joined"].rows()) == wanted


def test_code_of_learned_joins_gives_the_cells_of_the_table_in_spark(tmp_path: Path, spark: SparkSession) -> None:
    for form in ("csv", "tsv", "headerless", "titled", "parquet", "json"):
        (tmp_path / form).mkdir()
        plan = lakescope.autojoin(*map(str, written_people(tmp_path / form, form)), budget=20)
        wanted = ordered(row.values() for row in plan.table().to_pylist())
        assert ordered(executed(plan.code("spark"), spark=spark)["joined"].collect()) == wanted, form


def test_read_gives_cells_as_text_and_keeps_the_rows_before_a_cut(demo_lake: Path) -> None:
    table = lakescope.read(demo_lake / "hr/people.xlsx::Training")
    assert set(map(str, table.schema.types)) == {"string"}
    with pytest.warns(UserWarning, match="cannot be read beyond row"):
        kept = lakescope.read(demo_lake / "broken/truncated.csv.gz")
    assert kept.num_rows > 100
