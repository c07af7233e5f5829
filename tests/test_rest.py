"""The REST interface: envelopes, pages of answers, and that they are those of the facade."""

from __future__ import annotations

import csv
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from helpers.histories import three_versions
from helpers.visitors import API, BASE, LARGEST, MEMORY, RIDES, check_map, clean, data, link_to, paged, refused, sent
from lakescope.code.dialects import DIALECTS
from lakescope.faces.serving.app import create_app
from lakescope.faces.serving.plain import plain
from lakescope.faces.serving.safety import Rules
from lakescope.lake import Lake

pytest_plugins = ["helpers.visitors"]


def test_the_lake_at_a_glance(client: TestClient, demo_index: Lake) -> None:
    found, info = data(client, "/lake"), demo_index.info()
    assert [found[name] for name in ("tables", "columns", "rows", "errors")] == [
        info[name] for name in ("tables", "columns", "rows", "errors")
    ]
    assert sum(each["tables"] for each in found["distribution"]) == info["tables"]
    assert {each["value"] for each in found["facets"]["format"]} >= {"csv", "parquet"}
    assert "path" not in found


def test_pages_of_tables_hold_each_once(client: TestClient, demo_index: Lake) -> None:
    seen: list[str] = []
    address: str | None = f"{API}/tables?limit=17"
    while address:
        body = client.get(address).json()
        seen += [each["table"] for each in body["data"]]
        address = body["meta"].get("next")
    assert seen == demo_index.tables()["table"].to_pylist()


@pytest.mark.parametrize(
    ("wanted", "fits"),
    [
        ({"like": "SHOP/"}, lambda record: "shop/" in record["table"]),
        ({"format": "parquet"}, lambda record: record["format"] == "parquet"),
        ({"folder": "shop"}, lambda record: record["table"].startswith("shop/")),
        ({"problems": "true"}, lambda record: record["problems"] > 0),
    ],
)
def test_tables_that_fit(wanted: dict[str, str], fits: Any, client: TestClient, demo_index: Lake) -> None:
    found = [record["table"] for record in data(client, "/tables", **wanted, limit=1000)]
    assert found == [record["table"] for record in demo_index.tables().to_pylist() if fits(record)]


def test_tables_by_the_type_of_a_column_and_by_rows(client: TestClient, demo_index: Lake) -> None:
    found = data(client, "/tables", type="date", sort="rows", limit=1000)
    columns = demo_index.columns(type="date")["table"].to_pylist()
    assert {record["table"] for record in found} == set(columns)
    rows = [record["rows"] for record in found]
    assert rows == sorted(rows, reverse=True)


def test_columns_and_problems(client: TestClient, demo_index: Lake) -> None:
    found = data(client, "/columns", like="date", limit=1000)
    assert [each["column"] for each in found] == demo_index.columns(like="date")["column"].to_pylist()
    errors = data(client, "/problems", severity="error", limit=1000)
    assert len(errors) == demo_index.info()["errors"]
    refused(client, 422, "invalid", f"{API}/problems", severity="fatal")


def test_facets_count_tables(client: TestClient) -> None:
    for facet, counts in data(client, "/lake")["facets"].items():
        for each in counts:
            listed = client.get(f"{API}/tables", params={facet: each["value"], "limit": 1}).json()["meta"]["total"]
            assert listed == each["count"], (facet, each)


def finds(client: TestClient, text: str, kind: str) -> list[dict[str, Any]]:
    return [each for each in data(client, "/find", text=text)["records"] if each["kind"] == kind]


def test_find_by_name_and_by_value(client: TestClient) -> None:
    found = finds(client, "Berlin", "value")
    assert {"table": "world/capital_cities.csv", "column": "city"}.items() <= found[0].items()
    assert any(each["column"] == "customer_id" for each in finds(client, "Customer_I", "column"))
    refused(client, 400, "bad-request", f"{API}/find", text="  ")


def test_values_are_found_in_other_cases_and_the_page_says_which(client: TestClient) -> None:
    exact = {(each["table"], each["column"]) for each in finds(client, "Berlin", "value")}
    found = finds(client, "berlin", "value")
    assert {(each["table"], each["column"]) for each in found if each["matched"] == "Berlin"} >= exact > set()
    text = client.get("/find", params={"q": "berlin"}).text
    assert "No column holds it as you wrote it" in text
    assert ">written Berlin<" in text
    assert "written" not in re.sub(r"(?s)<head>.*?</head>", "", client.get("/find", params={"q": "Rheinland"}).text)


def test_a_profile_is_the_facades(client: TestClient, demo_index: Lake) -> None:
    found = data(client, "/profile", table="shop/orders.csv")
    assert found["columns"] == demo_index.profile("shop/orders.csv").to_dict()["columns"]
    error = refused(client, 404, "not-found", f"{API}/profile", table="shop/order.csv")
    assert "shop/orders.csv" in error["hint"]


def test_joins_are_the_facades(client: TestClient, demo_index: Lake) -> None:
    found = data(client, "/joinable", query="table:shop/orders.csv", on="customer_id", k=5)
    expected = plain(demo_index.joinable("shop/orders.csv", on="customer_id", k=5).to_dicts())
    assert [{name: each[name] for name in expected[0]} for each in found["records"]] == expected
    assert set(found["records"][0]["code"]) == {*DIALECTS}


def test_correlations_are_the_facades_with_their_samples(client: TestClient, demo_index: Lake) -> None:
    found = data(client, "/correlated", query=f"table:{RIDES}", key="date", target="rides", k=4)["records"]
    expected = demo_index.correlated(RIDES, "date", "rides", 4)
    assert [(each["table"], each["column"]) for each in found] == [(each.table, each.column) for each in expected]
    assert len(found[0]["points"]) == min(400, expected[0].sample)
    points = demo_index.scatter_points(RIDES, "date", "rides", expected[0]).to_pylist()
    assert found[0]["points"][0] == [points[0]["x"], points[0]["y"]]


def test_tables_like_one(client: TestClient) -> None:
    found = data(client, "/table/like", name="shop/orders.csv")["records"]
    assert all(0 < each["likeness"] <= 1 and each["shared"] for each in found)
    assert "shop/orders.csv" not in [each["table"] for each in found]


def test_first_rows_are_as_written(client: TestClient, demo_lake: Path) -> None:
    found = data(client, "/head", query="table:shop/orders.csv", wait=60)
    lines = (demo_lake / "shop/orders.csv").read_text("utf-8").splitlines()
    assert found["columns"] == lines[0].split(",")
    assert found["records"][0][:3] == lines[1].split(",")[:3]


def test_keys_of_a_table(client: TestClient) -> None:
    found = data(client, "/table/keys", name="shop/orders.csv", wait=120)
    assert found["primary"][0]["columns"] == ["order_id"]
    assert "shop/customers.csv" in [each["parent_table"] for each in found["refers"]]


def test_the_map_links_tables(client: TestClient) -> None:
    found = data(client, "/map", wait=120)
    names = {node["table"] for node in found["nodes"]}
    assert all(edge["child"] in names and edge["parent"] in names for edge in found["edges"])
    check_map(found)
    assert {edge["kind"] for edge in found["edges"]} == {"foreign key", "joinable"}


def test_inclusions_are_the_facades_in_pages(client: TestClient, demo_index: Lake) -> None:
    for table in (None, "shop/orders.csv"):
        of_table = {} if table is None else {"table": table}
        found, _ = paged(client, "/inclusions", minimum=0.9, limit=1000, **of_table)
        assert found == plain(demo_index.inclusions(0.9, table=table).to_dicts())
    refused(client, 404, "not-found", f"{API}/inclusions", table="shop/order.csv")


def test_keys_are_the_facades_in_pages(client: TestClient, demo_index: Lake) -> None:
    foreign, body = paged(client, "/foreign_keys", limit=7)
    assert foreign == plain(demo_index.foreign_keys().to_dicts())
    assert body["meta"]["notes"] == list(demo_index.foreign_keys().notes)
    primary, _ = paged(client, "/primary_keys", limit=40)
    assert primary == plain(demo_index.primary_keys().to_dicts())


def test_join_paths_are_the_facades(client: TestClient, demo_index: Lake) -> None:
    found, _ = paged(client, "/paths", query="table:shop/orders.csv", limit=5)
    assert found == plain(demo_index.join_paths("shop/orders.csv").to_dicts())
    near, _ = paged(client, "/paths", query="table:shop/orders.csv", on="customer_id", depth=1, threshold=0.9)
    assert near == plain(demo_index.join_paths("shop/orders.csv", "customer_id", depth=1, threshold=0.9).to_dicts())
    text = client.get("/table/paths", params={"name": "shop/orders.csv"}).text
    far = [each for each in found if each["hops"] > 1]
    assert far
    # Those over plain numbers come last.
    assert sum(link_to(each["table"]) in text for each in far) >= min(10, len(far))
    assert f"{len(found) - len(far)} tables are one join away" in text


def test_names_for_columns_of_a_table_and_of_a_file(client: TestClient, demo_index: Lake, demo_lake: Path) -> None:
    found, body = paged(client, "/headers/suggest", query="table:legacy/cust_dump.csv")
    best = {each["column"]: each["header"] for each in body["data"]["schema"]}
    assert (best["column_1"], best["column_4"]) == ("customer_id", "city")
    assert {each["column"]: each["header"] for each in found if each["chosen"]} == best
    assert all(each["tables"] and each["reasons"] for each in found if each["chosen"])
    assert 'data-part="/search/headers' in client.get("/table?name=legacy/cust_dump.csv").text
    assert 'data-part="/search/headers' not in client.get("/table?name=shop/orders.csv").text

    with (demo_lake / "shop/customers.csv").open(encoding="utf-8", newline="") as file:
        rows = [f"{row[0]},{row[3]}" for row in list(csv.reader(file))[1:400]]
    query = sent(client, "mine.csv", "\n".join(["Unnamed: 0,Unnamed: 1", *rows]).encode())
    mine, _ = paged(client, "/headers/suggest", query=query, mode="coverage")
    assert {each["header"] for each in mine if each["chosen"]} == {"customer_id", "city"}
    text = client.get("/search/headers", params={"query": query}).text
    assert "customer_id" in text
    assert 'data-part="/search/headers' in client.get("/search", params={"query": query}).text


@pytest.mark.parametrize("moved", ["headers/suggested?query=table:legacy/cust_dump.csv", "headers/doubtful?limit=1"])
def test_addresses_that_routes_had_lead_to_those_they_have(client: TestClient, moved: str) -> None:
    answer = client.get(f"{API}/{moved}", follow_redirects=False)
    assert answer.status_code == 308
    now = moved.replace("suggested", "suggest").replace("doubtful", "check")
    assert answer.headers["location"] == f"{API}/{now}"
    assert client.get(f"{API}/{moved}").status_code in (200, 202)


def test_counts_and_headers_of_a_file_tell_nothing_of_where_it_lies(client: TestClient) -> None:
    query = sent(client, "mine.csv", b"id,city\n" + b"".join(b"%d,town %d\n" % (n, n % 7) for n in range(50)))
    found, body = paged(client, "/count", query=query)
    assert [(each["column"], round(each["estimate"])) for each in found] == [("id", 50), ("city", 7)]
    detected = client.get(f"{API}/headers/detect", params={"query": query, "wait": 60}).json()
    (opinion,) = detected["data"]["records"]
    assert opinion["names"] == ["id", "city"]
    refused = client.get(f"{API}/count/stored", params={"query": query, "wait": 60})
    assert refused.status_code == 400
    advice = client.get(f"{API}/count/advise", params={"memory": 16_000}).json()["data"]["records"]
    assert advice[0]["fits"]
    for text in (str(body), str(detected), refused.text):
        assert tempfile.gettempdir() not in text


def test_headers_in_doubt(client: TestClient, demo_index: Lake) -> None:
    found, body = paged(client, "/headers/check", limit=7)
    assert found == plain(demo_index.check_headers().to_dicts())
    assert any("in doubt" in note for note in body["meta"]["notes"])
    text = client.get("/problems/headers").text
    assert all(link_to(each["table"]) in text for each in found)


@pytest.fixture(scope="module")
def versioned(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A lake with a table of three versions."""
    return three_versions(tmp_path_factory.mktemp("versions"))


@pytest.fixture(scope="module")
def versions(versioned: Lake) -> Iterator[TestClient]:
    with TestClient(create_app(versioned, Rules(largest=LARGEST), memory=MEMORY), BASE) as client:
        yield client


def test_versions_and_drift_of_a_table(versions: TestClient, versioned: Lake) -> None:
    assert paged(versions, "/history", table="t.csv", limit=2)[0] == plain(versioned.history("t.csv").to_dicts())
    assert data(versions, "/drift", table="t.csv")["records"] == []
    drifted = plain(versioned.drift("t.csv", since=1).to_dicts())
    assert paged(versions, "/drift", table="t.csv", since="1", limit=2)[0] == drifted
    assert paged(versions, "/drift", since="1")[0] == drifted
    for name in ("t.csv", "other.csv"):
        refused(versions, 400, "bad-request", f"{API}/drift", table=name, since="yesterday")
    refused(versions, 400, "bad-request", f"{API}/drift", since="yesterday")
    refused(versions, 400, "bad-request", f"{API}/drift", table="t.csv", since="9")
    refused(versions, 404, "not-found", f"{API}/history", table="nothing.csv")


def test_a_table_of_several_versions_shows_them(versions: TestClient) -> None:
    assert "History: 3 versions" in versions.get("/table?name=t.csv").text
    assert "/history" not in versions.get("/table?name=other.csv").text
    assert "Nothing beyond what chance explains" in clean(versions.get("/table/history?name=t.csv"))
    compared = clean(versions.get("/table/history?name=t.csv&since=1"))
    assert "no longer a key" in compared
    assert "since version 1" in compared


@pytest.mark.parametrize(
    ("status", "code", "path"),
    [
        (404, "not-found", f"{API}/paths?query=table:/etc/passwd"),
        (422, "invalid", f"{API}/paths?query=table:shop/orders.csv&depth=9"),
        (404, "not-found", f"{API}/headers/suggest?query=upload:../x"),
        (422, "invalid", f"{API}/tables?limit=0"),
        (422, "invalid", f"{API}/tables?sort=colour"),
        (422, "invalid", f"{API}/correlated?query=table:x&target=y&k=0"),
        (404, "not-found", f"{API}/nothing"),
        (404, "not-found", f"{API}/uploads/abc"),
        (404, "not-found", f"{API}/jobs/abc"),
        (400, "bad-request", f"{API}/joinable?query=/etc/passwd"),
        (404, "not-found", f"{API}/joinable?query=table:/etc/passwd"),
        (404, "not-found", f"{API}/joinable?query=upload:../../../etc/passwd"),
        (404, "not-found", f"{API}/head?query=table:../../../../etc/passwd"),
        (404, "not-found", "/static/../app.py".replace("..", "%2e%2e")),
    ],
)
def test_refusals(status: int, code: str, path: str, client: TestClient) -> None:
    response = client.get(path)
    assert response.status_code == status, response.text
    if path.startswith(API):
        assert response.json()["error"]["code"] == code


def test_other_methods_are_refused_in_the_envelope(client: TestClient) -> None:
    response = client.put(f"{API}/tables")
    assert response.status_code == 405
    assert response.json()["error"]["code"] == "not-allowed"


@pytest.mark.parametrize("path", ["/", f"{API}/lake", "/static/style.css", f"{API}/nothing", f"{API}/joins"])
def test_heads_are_those_of_answers_without_a_body(path: str, client: TestClient) -> None:
    whole, head = client.get(path), client.head(path)
    assert head.status_code == whole.status_code
    assert head.headers["content-type"] == whole.headers["content-type"]
    assert head.content == b""
    assert whole.content
