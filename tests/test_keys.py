"""Primary and foreign keys: names, evidence, the planted ones of the demo lake, what is withheld, pictures, the CLI."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import lakescope
from helpers.commands import Run, assert_refused
from lakescope.errors import BadRequest
from lakescope.lake import Lake
from lakescope.tables.key_names import alike, common_prefix_word, marks_key, similarity, table_words, telling, words

# --- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("OrderID", ("order", "id")),
        ("order_id", ("order", "id")),
        ("ORDER-ID", ("order", "id")),
        ("DimDateKey", ("dim", "date", "key")),
        ("größe", ("gr", "öß", "e")),
        ("", ()),
    ],
)
def test_words(name: str, wanted: tuple[str, ...]) -> None:
    assert words(name) == wanted


@pytest.mark.parametrize(
    ("name", "wanted"),
    [("o_custkey", ("cust",)), ("CustomerIds", ("customer",)), ("id", ()), ("c3", ()), ("fk_city", ("city",))],
)
def test_words_that_tell(name: str, wanted: tuple[str, ...]) -> None:
    assert telling(name) == wanted


def test_names_of_tables() -> None:
    assert table_words("shop/order_lines.csv.gz") == ("order", "line")
    assert table_words("crm.sqlite::dim_categories") == ("category",)
    assert table_words("data.xlsx::Sheet1") == ("sheet", "1")


def test_names_that_mark_a_key() -> None:
    assert all(marks_key(name) for name in ("id", "CustomerId", "custkey", "id_city", "ORDER_NO", "iso_code"))
    assert not any(marks_key(name) for name in ("DayNumberOfWeek", "NumberEmployees", "price", "", "paid"))


def test_abbreviations_are_alike() -> None:
    assert alike("customer", "customer") == 1.0
    assert alike("cust", "customer") > alike("cu", "customer") > 0
    assert alike("dept", "department") > 0.5
    assert alike("city", "country") == 0.0
    assert similarity(("order", "line"), ("orderline",)) == 1.0
    assert similarity((), ("a",)) == 0.0


def test_a_prefix_all_columns_share_belongs_to_the_table() -> None:
    assert common_prefix_word(["o_orderkey", "o_custkey", "o_date"]) == "o"
    assert common_prefix_word(["id", "name", "city"]) is None


# --- a small database -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Lake:
    """Cities, customers that live in them, orders with lines, some without a customer; notes and numbers beside."""
    root = tmp_path_factory.mktemp("shop")
    tables = {
        "city.csv": ["city_id,name", *(f"{i},Town {i}" for i in range(1, 41))],
        "customer.csv": [
            "customer_id,full_name,city_id,stars",
            *(f"{1000 + i},Person {i},{i * 7 % 40 + 1},{i % 5 + 1}" for i in range(300)),
        ],
        "orders.csv": [
            "order_no,customer,amount",
            *(f"A{i:05d},{1000 + (i * 13 % 300 if i % 100 else 9_000 + i)},{i % 90}.5" for i in range(900)),
        ],
        "lines.csv": ["order_no,line,qty", *(f"A{i // 3:05d},{i % 3 + 1},{i % 7}" for i in range(1800))],
        "shipment.csv": ["parcel,order_no,line", *(f"P{i},A{i // 2:05d},{i % 2 + 1}" for i in range(600))],
    }
    (root / "lake").mkdir()
    for name, lines in tables.items():
        (root / "lake" / name).write_text("\n".join(lines) + "\n")
    return lakescope.index(root / "lake", root / "shop.idx", spark=spark)


def edges(found: Any) -> set[tuple[str, tuple[str, ...], str, tuple[str, ...]]]:
    return {(each.child_table, each.child_columns, each.parent_table, each.parent_columns) for each in found}


SINGLE = {
    ("customer.csv", ("city_id",), "city.csv", ("city_id",)),
    ("orders.csv", ("customer",), "customer.csv", ("customer_id",)),
    ("lines.csv", ("order_no",), "orders.csv", ("order_no",)),
    ("shipment.csv", ("order_no",), "orders.csv", ("order_no",)),
}
DOUBLE = {("shipment.csv", ("order_no", "line"), "lines.csv", ("order_no", "line"))}


def test_foreign_keys_of_a_small_database(shop: Lake) -> None:
    found = shop.foreign_keys()
    assert edges(found) == SINGLE
    assert all(each.low <= each.inclusion <= each.high and not each.exact for each in found)
    partial = next(each for each in found if each.child_columns == ("customer",))
    assert 0.95 < partial.inclusion < 1
    assert partial.orphans
    assert set(partial.orphans) <= {str(10_000 + i) for i in range(0, 900, 100)}
    assert "named after it" in partial.reasons


def test_counting_gives_the_same_and_keys_of_two_columns(shop: Lake) -> None:
    found = shop.foreign_keys(verify=True)
    assert edges(found) == SINGLE | DOUBLE
    assert all(each.exact for each in found)
    assert next(each for each in found if each.child_columns == ("customer",)).inclusion == 297 / 306
    primary = {each.table: each.columns for each in shop.primary_keys(verify=True)}
    assert primary["lines.csv"] == ("order_no", "line")
    assert primary["orders.csv"] == ("order_no",)


def test_what_is_withheld_says_why(shop: Lake) -> None:
    """Stars are numbers from 1 to 5, which are keys of cities, too."""
    assert not any("stars" in each.child_columns for each in shop.foreign_keys())
    withheld = shop.foreign_keys(withheld=True)
    assert all(each.reasons[0].startswith("withheld: ") for each in withheld)
    assert not edges(withheld) & edges(shop.foreign_keys())


@pytest.mark.parametrize("method", ["chen", "rostin"])
def test_the_papers_detectors_answer(shop: Lake, method: str) -> None:
    assert len(edges(shop.foreign_keys(method=method)) & SINGLE) >= 3  # type: ignore[arg-type]


@pytest.mark.parametrize("estimator", ["exact", "bml", "bottomk", "mle"])
def test_detection_with_other_estimators(shop: Lake, estimator: str) -> None:
    assert len(edges(shop.foreign_keys(estimator=estimator)) & SINGLE) >= 3  # type: ignore[arg-type]


def test_a_table_that_went_away_is_told(shop: Lake, tmp_path: Path, spark: SparkSession) -> None:
    (tmp_path / "lake").mkdir()
    rows = "".join(f"{i // 3},{i % 3}\n" for i in range(30))
    (tmp_path / "lake" / "a.csv").write_text("order,line\n" + rows)
    (tmp_path / "lake" / "b.csv").write_text("order,line\n" + rows[:40] + "1,1\n")
    lake = lakescope.index(tmp_path / "lake", tmp_path / "i", spark=spark)
    (tmp_path / "lake" / "a.csv").unlink()
    assert any("not read for keys of two columns: a.csv" in note for note in lake.foreign_keys(verify=True).notes)


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Lake:
    """Keys with a flaw: codes in order of text, repeated and missing keys, a copy beside a reference."""
    root = tmp_path_factory.mktemp("odd")
    tables = {
        "zone.csv": ["zone,name", *(f"{code},Z {code}" for code in ("01", "02", "03", "10", "11", "2", "4"))],
        "place.csv": ["place,zone", *(f"p{i},{('01', '02', '03', '10', '11')[i % 5]}" for i in range(60))],
        "person.csv": ["person_id,alias", *(f"{i},a{i}" for i in range(1, 401)), "400,b", "400,c"],
        "badge.csv": ["badge_id,person_id,alias", *(f"{5000 + i},{i},a{i}" for i in range(1, 380, 2))],
    }
    (root / "lake").mkdir()
    for name, lines in tables.items():
        (root / "lake" / name).write_text("\n".join(lines) + "\n")
    return lakescope.index(root / "lake", root / "odd.idx", spark=spark)


@pytest.mark.parametrize("verify", [False, True])
def test_codes_are_not_ruled_out_by_their_order(odd: Lake, verify: bool) -> None:
    """Among texts 4 is the largest of all zones, among numbers 11."""
    pairs = {(each.child_table, each.parent_table) for each in odd.inclusions(1.0, verify=verify)}
    assert ("place.csv", "zone.csv") in pairs
    assert ("place.csv", ("zone",), "zone.csv", ("zone",)) in edges(odd.foreign_keys(verify=verify))


def test_keys_that_cannot_be_declared_are_comments(odd: Lake) -> None:
    person = next(each for each in odd.primary_keys() if each.table == "person.csv")
    assert (person.columns, person.doubts) == (("person_id",), ("2 rows repeat a value",))
    lines = odd.key_diagram("sql").splitlines()
    assert '-- 2 rows repeat a value: ALTER TABLE "person.csv" ADD PRIMARY KEY ("person_id");' in lines


def test_copies_beside_a_reference_are_withheld(odd: Lake) -> None:
    assert ("badge.csv", ("person_id",), "person.csv", ("person_id",)) in edges(odd.foreign_keys())
    copied = [each for each in odd.foreign_keys(withheld=True) if each.child_columns == ("alias",)]
    assert copied
    assert "repeats what another column's reference" in copied[0].reasons[0]


def test_a_few_small_numbers_do_not_refer_to_codes(tmp_path: Path, spark: SparkSession) -> None:
    """Digits of a currency are not codes of a function, though every one of them is among these."""
    codes = ["code,what", *(f"{code},what {code} is" for code in "0123456789B")]
    money = ["currency,minor_unit", *(f"C{i},{(2, 2, 0, 3, 4)[i % 5]}" for i in range(200))]
    (tmp_path / "lake").mkdir()
    for name, lines in {"function.csv": codes, "money.csv": money}.items():
        (tmp_path / "lake" / name).write_text("\n".join(lines) + "\n")
    lake = lakescope.index(tmp_path / "lake", tmp_path / "lake.idx", spark=spark)
    assert [each for each in lake.foreign_keys() if each.child_columns == ("minor_unit",)] == []
    withheld = [each for each in lake.foreign_keys(withheld=True) if each.child_columns == ("minor_unit",)]
    assert [each.reasons[0] for each in withheld] == ["withheld: so few numbers are in many keys by chance"]


def test_a_column_that_went_away_is_told(tmp_path: Path, spark: SparkSession) -> None:
    (tmp_path / "lake").mkdir()
    for name, count in (("a", 30), ("b", 20)):
        rows = "".join(f"{i // 3},{i % 3}\n" for i in range(count))
        (tmp_path / "lake" / f"{name}.csv").write_text("order,line\n" + rows + ("" if name == "a" else "1,1\n"))
    lake = lakescope.index(tmp_path / "lake", tmp_path / "i", spark=spark)
    (tmp_path / "lake" / "a.csv").write_text("order\n" + "".join(f"{i}\n" for i in range(9)))
    assert any("a.csv" in note and "'line'" in note for note in lake.foreign_keys(verify=True).notes)


def test_ways_without_intervals_say_so(shop: Lake) -> None:
    found = shop.inclusions(0.95, estimator="bml")
    assert {(each.low, each.high, each.evidence) for each in found} == {(0.0, 1.0, "bml")}


def test_an_index_of_profiles_only_finds_keys_too_many_to_count(tmp_path: Path, spark: SparkSession) -> None:
    """The number of values is an estimate there: a column may be a key if the estimate allows it."""
    (tmp_path / "lake").mkdir()
    for number in range(6):
        rows = "".join(f"k{number}-{i}\n" for i in range(9_000 + 500 * number))
        (tmp_path / "lake" / f"t{number}.csv").write_text("code\n" + rows)
    lake = lakescope.index(tmp_path / "lake", tmp_path / "i", spark=spark, joins=False)
    found = lake.primary_keys()
    assert [each.table for each in found] == [f"t{number}.csv" for number in range(6)]
    assert not any(each.doubts for each in found)


def test_bad_requests(shop: Lake) -> None:
    with pytest.raises(BadRequest, match="method cannot be"):
        shop.foreign_keys(method="best")  # type: ignore[arg-type]
    with pytest.raises(BadRequest, match="minimum must be"):
        shop.foreign_keys(minimum=0)
    with pytest.raises(BadRequest, match="form cannot be"):
        shop.key_diagram("png")  # type: ignore[arg-type]


def test_tables_without_keys(tmp_path: Path, spark: SparkSession) -> None:
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "a.csv").write_text("x,y\n1,1\n1,1\n1,2\n")
    (tmp_path / "lake" / "empty.csv").write_text("x,y\n")
    lake = lakescope.index(tmp_path / "lake", tmp_path / "i", spark=spark)
    assert not lake.foreign_keys()
    assert not lake.primary_keys(verify=True)
    assert not lake.inclusions()
    ET.fromstring(lake.key_diagram())


# --- the demo lake ----------------------------------------------------------------------------------------------------


def test_planted_keys_of_the_demo_lake(demo_lake: Path, demo_index: Lake) -> None:
    truth = json.loads(demo_lake.with_name(demo_lake.name + ".truth.json").read_text())
    planted = {
        (each["child_table"], tuple(each["child_columns"]), each["parent_table"], tuple(each["parent_columns"]))
        for each in truth["foreign_keys"]
        if len(each["child_columns"]) == 1 and each["inclusion"] >= 0.95
    }
    found = edges(demo_index.foreign_keys())
    assert len(planted & found) >= 0.8 * len(planted)
    by_chance = {
        (each["child_table"], tuple(each["child_columns"]), each["parent_table"], tuple(each["parent_columns"]))
        for each in truth["chance_inclusions"]
    }
    assert not by_chance & found


# --- faces ------------------------------------------------------------------------------------------------------------


def test_pictures(shop: Lake) -> None:
    root = ET.fromstring(shop.key_diagram())
    tables = [each.get("data-table") for each in root.iter() if each.get("data-table")]
    assert sorted(set(tables)) == ["city.csv", "customer.csv", "lines.csv", "orders.csv", "shipment.csv"]
    assert shop.key_diagram("mermaid").startswith("erDiagram")
    sql = shop.key_diagram("sql", verify=True)
    assert 'ALTER TABLE "lines.csv" ADD PRIMARY KEY ("order_no", "line");' in sql
    assert "-- 97.1% only" in sql


def test_keys_on_the_command_line(run: Run, shop: Lake, tmp_path: Path) -> None:
    shown = run("keys", shop.path)
    assert shown.code == 0
    assert "reasons" in run("keys", shop.path, "--withheld").out
    records = json.loads(run("keys", shop.path, "--format", "json").out)
    assert {(each["child_table"], each["child_columns"][0]) for each in records} == {
        each[:1] + each[1] for each in SINGLE
    }
    assert json.loads(run("keys", "primary", shop.path, "--format", "json").out)[0]["table"]
    drawn = tmp_path / "schema.svg"
    assert run("keys", "diagram", shop.path, "--out", str(drawn)).code == 0
    ET.fromstring(drawn.read_text())
    assert "erDiagram" in run("keys", "diagram", shop.path, "--form", "mermaid").out
    assert "ADD FOREIGN KEY" in run("keys", "diagram", shop.path, "--form", "sql", "--verify").out


def test_inclusions_on_the_command_line(run: Run, shop: Lake) -> None:
    records = json.loads(run("inclusions", shop.path, "--min", "0.95", "--format", "json", "--limit", "0").out)
    assert {"child_table", "child_column", "parent_table", "parent_column", "inclusion", "low", "high", "exact"} <= set(
        records[0]
    )
    explained = run("inclusions", shop.path, "--explain", "--verify")
    assert "looked_at" in explained.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("inclusions", "--min", "2"),
        ("inclusions", "--estimator", "best"),
        ("keys", "--method", "best"),
        ("keys", "--show", "all"),
        ("keys", "--diagram", "schema.svg"),
        ("keys", "--sql"),
        ("keys", "--table", "none.csv"),
        ("keys diagram", "--form", "best"),
        ("keys diagram", "--out", "schema.png"),
        ("keys diagram", "--out", "/no/such/place/schema.svg"),
        ("keys primary", "--method", "best"),
        ("inclusions", "--least", "0"),
    ],
)
def test_bad_requests_on_the_command_line(run: Run, shop: Lake, arguments: tuple[str, ...]) -> None:
    assert_refused(run(*arguments[0].split(), shop.path, *arguments[1:]), 2, "hint: ")
