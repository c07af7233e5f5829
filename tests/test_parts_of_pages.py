"""What pages are made of: names, maps, charts, finds and what is said about them."""

from __future__ import annotations

import json
import random
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pytest
from markupsafe import escape
from starlette.testclient import TestClient

from helpers.visitors import API, check_map, data, sent
from lakescope.engines.keys.answers import ForeignKey
from lakescope.faces.serving.plain import plain
from lakescope.faces.web import rendering, trust
from lakescope.lake import CHANCE, Lake
from lakescope.show.charts import scatter_chart
from lakescope.show.lake_map import lake_map, short_names
from lakescope.show.text import printable, shorten_inside
from lakescope.store.catalog import Names

pytest_plugins = ["helpers.visitors"]


def test_a_pair_that_is_not_there_can_be_corrected(client: TestClient) -> None:
    response = client.get("/pair", params={"left": "shop/orders.csv", "right": "shop/customer.csv"})
    assert response.status_code == 404
    assert 'value="shop/customer.csv"' in response.text
    assert "did you mean" in response.text
    assert 'value="shop/orders.csv"' in response.text


def test_names_are_found_by_any_part_of_them() -> None:
    names = Names(["Alpha", "beta", "alphabet", "", "ALPHA", "x\0y"])
    assert list(names.holding("alpha")) == [0, 2, 4]
    assert list(names.holding("bet")) == [1, 2]
    assert list(names.holding("zz")) == []
    assert list(names.holding("a\0b")) == []
    assert list(Names([]).holding("a")) == []


def test_numbers_that_json_lacks() -> None:
    import numpy as np

    given = {"a": float("nan"), "b": (1, float("inf")), 3: np.float64(2.5), "c": np.int64(7), "d": "\ud800"}
    assert json.dumps(plain(given), allow_nan=False) == '{"a": null, "b": [1, null], "3": 2.5, "c": 7, "d": "?"}'


def test_shares_of_a_table_of_the_lake_are_of_other_columns(client: TestClient, demo_index: Lake) -> None:
    known = {each.name: each.known for each in demo_index.describe("shop/orders.csv")}
    assert known["order_id"] > 0.9
    assert known["note"] < 1
    page = client.get("/search", params={"query": "table:shop/orders.csv"}).text
    keys = re.search(r'<select id="key".*?</select>', page, re.DOTALL)
    assert keys is not None
    assert "% " not in keys[0].replace("</option>", " ").split("customer_id", 1)[1].split("taken_by")[0]
    assert re.search(r"note · \d", keys[0])


def test_what_is_guessed_is_taken(demo_index: Lake) -> None:
    mixed = {"city": ["Berlin", "Paris", "Rome", "London"], "val": ["1", "2", "3", "=SUM(A1)"]}
    roles = {each.name: each.role for each in demo_index.describe(mixed)}
    assert roles == {"city": "key", "val": ""}
    roles = {each.name: each.role for each in demo_index.describe({**mixed, "n": ["4", "2", "5", "9"]})}
    assert roles == {"city": "key", "val": "", "n": "target"}
    for table in demo_index.tables()["table"].to_pylist():
        guessed = {each.role: each.name for each in demo_index.describe(table)}
        if "key" in guessed and "target" in guessed:
            demo_index.correlated(table, guessed["key"], guessed["target"], 1)


def test_numbers_to_explain_are_those_that_can_be(client: TestClient) -> None:
    query = sent(client, "mixed.csv", b"city,val,n\nBerlin,1,4\nParis,2,2\nRome,3,5\nLondon,=SUM(A1),9\n")
    assert data(client, "/describe", query=query)["info"]["numbers"] == ["n"]
    page = client.get("/search", params={"query": query}).text
    offered = re.search(r'<select id="target".*?</select>', page, re.DOTALL)
    assert offered is not None
    assert re.findall(r'value="([^"]+)"', offered[0]) == ["n"]


def test_evidence_of_a_plan_is_what_it_joins(client: TestClient) -> None:
    asked = {"left": "table:hr/employees.csv", "right": "table:hr/payroll.csv"}
    plan = client.post(f"{API}/autojoins", json=asked, params={"wait": 90}).json()["data"]["plan"]
    assert plan["evidence"]
    for each in plan["evidence"]:
        first, last = each["row"]["full_name"].split(" ")[:2]
        assert each["key"] == f"{last}, {first}"


def test_columns_of_a_query_are_described(demo_index: Lake) -> None:
    found = {
        each.name: each for each in demo_index.describe({"city": ["Berlin", "Paris", "Nowhere"], "x": [1.5, 2.5, 9.0]})
    }
    assert (found["city"].role, found["x"].role) == ("key", "target")
    assert found["city"].known == pytest.approx(2 / 3)
    years = {"city": ["Berlin", "Paris", "Rome", "Oslo"], "year": [1999, 2001, 2001, 2003], "n": [7, 7, 9, 8]}
    assert {each.name: each.role for each in demo_index.describe(years)} == {"city": "key", "year": "", "n": "target"}


def test_the_head_of_a_table(demo_index: Lake) -> None:
    frame = pa.table({"a": [str(n) for n in range(50)], "b": [None if n % 2 else "x" for n in range(50)]})
    found = demo_index.head(frame, 5)
    assert found.to_pylist()[:2] == [{"a": "0", "b": "x"}, {"a": "1", "b": None}]
    assert demo_index.head("shop/orders.csv", 7).num_rows == 7


def test_a_map_is_drawn_the_same_and_nothing_lies_on_something_else(demo_index: Lake) -> None:
    tables = {record["table"]: record for record in demo_index.tables().to_pylist()}
    foreign, pairs = list(demo_index.foreign_keys()), list(demo_index.inclusions(0.8, least=12, limit=500))
    found = lake_map(tables, foreign, pairs)
    assert found == lake_map(tables, foreign, pairs)
    assert found["alone"] + len(found["nodes"]) == len(tables)
    assert lake_map(tables, [], [])["nodes"] == []
    check_map(found)


@pytest.mark.parametrize(("tables", "links"), [(2, 1), (60, 40), (300, 250)])
def test_maps_of_all_kinds_have_room(tables: int, links: int) -> None:
    dice = random.Random(tables + links)
    names = {f"f{n % 9}/table_{n}_{'x' * (n % 20)}.csv": {"rows": 10 ** (n % 8), "columns": 3} for n in range(tables)}
    pairs = [tuple(dice.sample(sorted(names), 2)) for _ in range(links)]
    found = lake_map(names, [reference(child, parent) for child, parent in pairs], [])
    assert len(found["nodes"]) == min(250, len({name for pair in pairs for name in pair}))
    check_map(found)


def reference(child: str, parent: str) -> ForeignKey:
    known: dict[str, Any] = {
        **{"child_table": child, "parent_table": parent, "child_columns": ("a",), "parent_columns": ("b",)},
        **{"inclusion": 1.0, "score": 1.0, "exact": True, "reasons": ()},
    }
    empty = {field.name: None for field in fields(ForeignKey)}
    return ForeignKey(**{**empty, **known})


def test_names_on_the_map_are_what_tells_tables_apart() -> None:
    alike = [f"g/ddf--datapoints--{name}--by--geo--time.csv" for name in ("gdp", "oil_use", "births", "snow", "gas")]
    assert short_names([*alike, "g/ddf--entities.csv"])[:5] == ["gdp", "oil_use", "births", "snow", "gas"]
    plain_names = ["shop/orders.csv", "shop/customers.csv", "a/b.csv", "top.csv"]
    assert short_names(plain_names) == ["orders.csv", "customers.csv", "b.csv", "top.csv"]
    same = ["d/long_begin_x_end.csv", "d/long_begin_x.csv", *(f"d/long_begin_{n}_end.csv" for n in range(5))]
    assert len(set(short_names(same))) == len(same), "no two are called the same"
    assert short_names([]) == []


def test_white_space_does_not_look_like_damage() -> None:
    assert printable("two\r\nlines\nand\ta\xa0tab\r") == "two↵lines↵and⇥a tab↵"
    assert printable("\x1b[2J\u202e\x00") == "�[2J��"


def test_names_are_cut_inside() -> None:
    assert shorten_inside("short.csv", 20) == "short.csv"
    cut = shorten_inside("fivethirtyeight/trump-world-trust__issue-1.csv", 30)
    assert len(cut) == 30
    assert cut.startswith("fivethirty")
    assert cut.endswith("issue-1.csv")
    assert shorten_inside("x" * 9 + "\u202e" * 99, 10).isprintable()


def test_a_join_that_chance_explains_is_not_green(client: TestClient) -> None:
    good = client.get("/search/joins", params={"query": "table:shop/orders.csv", "on": "customer_id"}).text
    coloured = re.compile('class="chip (good|info|warn)">fit ')
    assert coloured.search(good)
    found = sent(client, "ids.csv", "\n".join(["id", *(str(n) for n in range(1, 41))]).encode())
    text = client.get("/search/joins", params={"query": found, "on": "id"}).text
    assert "no more than chance" in text
    assert ">fit " in text
    assert not coloured.search(text)


def test_values_in_common_by_chance_are_told_as_such(client: TestClient) -> None:
    both = {"left": "table:shop/stock.tsv", "right": "table:weather/daily_weather.parquet"}
    (shared,) = data(client, "/autojoins", **both, wait=90)["shared"]
    assert shared["p"] > CHANCE
    for first, second in (("left", "right"), ("right", "left")):
        text = client.get("/pair/plan", params={"left": both[first], "right": both[second]}).text
        assert "no more than chance explains, and overlap alone cannot tell: both are ranges" in text
        assert 'class="chip good"' not in text


def test_a_reference_of_running_numbers_is_told_as_such(client: TestClient) -> None:
    data(client, "/foreign_keys", wait=90)
    for path, asked in (
        ("/search/joins", {"query": "table:shop/orders.csv", "on": "customer_id"}),
        ("/table/joins", {"name": "shop/orders.csv"}),
    ):
        text = client.get(path, params=asked).text
        assert len(re.findall(">likely reference<", text)) == 1
        assert "overlap alone cannot tell: both are ranges of integers. But all that is known" in text


def test_paths_over_plain_numbers_come_last_and_say_so(client: TestClient, demo_index: Lake) -> None:
    catalog = demo_index._catalog
    assert catalog.joins_numbers("shop/stock.tsv.wh = weather/daily_weather.parquet.rain_mm")
    assert not catalog.joins_numbers("shop/stock.tsv.wh = world/countries.csv.name")
    data(client, "/foreign_keys", wait=90)
    text = client.get("/table/paths", params={"name": "shop/orders.csv"}).text
    # taken_by refers to badge: numbers, but known ones.
    assert "shop/<wbr>orders<wbr>.csv<wbr>.taken_<wbr>by = shop/<wbr>staff<wbr>.csv<wbr>.badge" in text
    careful = [("joins numbers with numbers" in each) for each in text.split('<div class="find-head">')[1:]]
    assert careful == sorted(careful)
    assert not careful[0]


def test_what_stands_between_long_names_is_not_cut_out() -> None:
    join = f"{'a' * 90}.x = {'b' * 90}.y"
    shown = rendering.sides(join, 40).replace("<wbr>", "")
    assert [(len(side), side[-1]) for side in shown.split(" = ")] == [(40, "x"), (40, "y")]


def test_joins_of_few_values_are_left_out_and_counted(client: TestClient) -> None:
    name = "weather/sensor_readings.csv.zst"
    found = data(client, "/joinable", query=f"table:{name}", k=8)["records"]
    few = [each["table"] for each in found if each["quality"] == "none"]
    assert len(few) > 1
    text = client.get("/table/joins", params={"name": name}).text
    assert f"{len(few)} joins of few values are left out" in text
    assert text.count('class="find-head"') == len(found) - len(few)
    only = {"query_column": "a", "table": "t", "column": "b", "quality": "none"}
    assert trust.telling_joins([only], {}) == []
    assert trust.telling_joins([only], {("a", "t", "b"): 0.9}) == [only]


def find_of(**fields: Any) -> dict[str, Any]:
    return {"low": 0.8, "high": 0.9, "q": 0.001, **fields}


def test_finds_that_may_be_chance_are_grey_and_last() -> None:
    assert trust.strength(find_of()) == "strong"
    assert trust.strength(find_of(q=0.4)) == "may be chance"
    assert trust.strength(find_of(low=-0.1)) == "none"
    finds = [find_of(q=0.94, at=0), find_of(at=1), find_of(q=0.06, at=2), find_of(q=0.05, at=3)]
    assert [each["at"] for each in trust.doubtful_last(finds)] == [1, 3, 0, 2]


@pytest.mark.parametrize(
    ("number", "others", "shown"),
    [(0.5, (), "+0.50"), (-1.0, (), "\N{MINUS SIGN}1.00"), (0.9996, (1.0,), "+0.9996"), (0.9961, (0.9968,), "+0.996")],
)
def test_coefficients_have_digits_enough(number: float, others: tuple[float, ...], shown: str) -> None:
    assert rendering.signed(number, *others) == shown


def test_a_lake_answers_in_several_threads(demo_index: Lake) -> None:

    alone = demo_index.joinable("shop/orders.csv", on="customer_id", k=5)

    def asked(_: int) -> list[Any]:
        return [demo_index.joinable("shop/orders.csv", on="customer_id", k=5) for _ in range(3)]

    with ThreadPoolExecutor(3) as pool:
        for found in pool.map(asked, range(3)):
            assert found == [alone] * 3


def test_likeness_counts_rare_names(demo_index: Lake) -> None:
    catalog = demo_index._catalog
    found = catalog.like("shop/order_lines.parquet")
    assert found == sorted(found, key=lambda each: -each["likeness"])


def _texts(drawn: str, kind: str) -> list[str]:
    """What stands at a plot: the numbers at its axes ("ticks"), or what they are of ("titles")."""
    found = re.search(rf'<g class="{kind}">(.*?)</g>', drawn)
    assert found is not None
    return re.findall(r"<text[^>]*>([^<]*)</text>", found[1])


def test_charts_of_heavy_tails_are_drawn_by_magnitude() -> None:
    drawn = scatter_chart([(10.0**power, power) for power in range(13)], title="", x="gdp", y="rank")
    assert _texts(drawn, "titles") == ["gdp (log)", "rank"]
    assert _texts(drawn, "ticks") == ["1", "1,000", "1M", "1B", "1,000B", "0", "2", "4", "6", "8", "10", "12"]
    for values in ([(0.0, 1.0), (1e9, 2.0)], [(-1.0, 1.0), (1e9, 2.0)]):
        assert _texts(scatter_chart(values, title="", x="x", y="y"), "titles") == ["x", "y"]
    assert scatter_chart([], title="", x="x", y="y") == ""


def test_titles_are_no_longer_than_their_axes() -> None:
    name = "diarrhoeal_deaths_in_children_1_59_months_per_1000_births"
    points = [(1.0, 10.0**power) for power in range(13)]
    across, up = _texts(scatter_chart(points, title="", x=name, y=name, small=True), "titles")
    assert up.endswith("births (log)")
    assert len(up) < len(across) < len(name)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("shop/order_lines.parquet", "shop/<wbr>order_<wbr>lines<wbr>.parquet"),
        ("a__b--c.csv.gz", "a__<wbr>b--<wbr>c<wbr>.csv<wbr>.gz"),
        ("<b>/x", "&lt;b&gt;/<wbr>x"),
        ("", ""),
    ],
)
def test_names_break_where_people_would_break_them(name: str, shown: str) -> None:
    found = rendering.parts(name)
    assert found == shown
    assert found.replace("<wbr>", "") == escape(name)


def test_facets_count_what_fits_the_others(client: TestClient, demo_index: Lake) -> None:
    catalog = demo_index._catalog
    assert catalog.facets()["facets"] == catalog.counts["facets"]
    wanted: dict[str, Any] = {"folder": "shop", "type": "date"}
    found = catalog.facets(**wanted)
    for facet, counts in found["facets"].items():
        assert counts
        for each in counts:
            listed = data(client, "/tables", **{**wanted, facet: each["value"]}, limit=100)
            assert len(listed) == each["count"] > 0, (facet, each)
    assert found["with_problems"] == len(data(client, "/tables", **wanted, problems=True, limit=100))
    page = client.get("/", params=wanted).text
    assert "legacy" in page  # another folder that could be chosen instead
    assert "sqlite" not in page.partition('<section class="list"')[0]


def test_a_page_beyond_the_last_is_the_last(client: TestClient) -> None:
    assert "Page 3 of 3" in client.get("/", params={"page": 999}).text
    assert client.get("/problems", params={"page": 999, "severity": "error"}).status_code == 200
    assert "No table fits" in client.get("/", params={"page": 7, "like": "nothing is called this"}).text


def test_every_value_of_a_facet_can_be_chosen(client: TestClient, demo_index: Lake) -> None:
    folders = {name.rpartition("/")[0].partition("/")[0] or "." for name in demo_index.tables()["table"].to_pylist()}
    assert len(folders) > 12
    assert {each["value"] for each in data(client, "/lake")["facets"]["folder"]} == folders
    page = client.get("/").text
    assert all(f"folder={quote(each, safe='')}" in page for each in folders)
    assert f"{len(folders) - 12} more" in page


def test_problems_lead_to_their_tables(client: TestClient) -> None:
    page = client.get("/problems").text
    assert 'href="/table?name=legacy%2Fgeo.tsv"' in page
    assert "name=broken%2Fempty.csv" not in page, "it could not be read: there is no such table"
    assert f"{API}/problems?limit=50" in page
