"""The server without a browser: envelopes, pages, jobs, files, and everything that must not happen."""

from __future__ import annotations

import csv
import io
import json
import math
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from html import unescape
from html.parser import HTMLParser
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote, urlencode

import duckdb
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from markupsafe import escape
from starlette.testclient import TestClient

import lakescope
from helpers.histories import three_versions
from lakescope.code.dialects import DIALECTS
from lakescope.engines.keys.answers import ForeignKey
from lakescope.errors import LakescopeError
from lakescope.faces.cli.serving import _listen
from lakescope.faces.serving import uploads
from lakescope.faces.serving.app import create_app
from lakescope.faces.serving.downloads import csv_pieces, guarded, plain_name
from lakescope.faces.serving.jobs import Jobs
from lakescope.faces.serving.plain import plain
from lakescope.faces.serving.safety import HEADERS, Rules
from lakescope.faces.serving.service import Service
from lakescope.faces.serving.worker import Worker
from lakescope.faces.web import pages
from lakescope.lake import CHANCE, Lake
from lakescope.show.charts import scatter_chart
from lakescope.show.lake_map import lake_map, short_names
from lakescope.show.text import printable, shorten_inside
from lakescope.store.catalog import Names

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RIDES = "mobility/bike_rides_daily.csv"
API = "/api/v1"
BASE = "http://127.0.0.1"
LARGEST = 2_000_000
MEMORY = 2_000_000_000


@pytest.fixture(scope="module")
def client(demo_index: Lake) -> Iterator[TestClient]:
    with TestClient(create_app(demo_index, Rules(largest=LARGEST), memory=MEMORY), BASE) as client:
        yield client


def data(client: TestClient, path: str, **parameters: Any) -> Any:
    response = client.get(f"{API}{path}", params=parameters)
    assert response.status_code == 200, response.text
    body = response.json()
    assert set(body) == {"data", "meta"}
    assert body["meta"]["seconds"] >= 0
    return body["data"]


def refused(client: TestClient, status: int, code: str, path: str, **parameters: Any) -> dict[str, Any]:
    response = client.get(path, params=parameters)
    assert response.status_code == status, response.text
    error = response.json()["error"]
    assert set(error) == {"code", "message", "hint"}
    assert error["code"] == code
    return dict(error)


def sent(client: TestClient, name: str, content: bytes) -> str:
    response = client.post(f"{API}/uploads", files={"file": (name, content)})
    assert response.status_code == 201, response.text
    return str(response.json()["data"]["query"])


# The REST interface ---------------------------------------------------------------------------------------------------


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


def paged(client: TestClient, path: str, **parameters: Any) -> tuple[list[Any], dict[str, Any]]:
    """All records of an answer that comes in pages, and what the last page says."""
    records: list[Any] = []
    address: str | None = f"{API}{path}?{urlencode({**parameters, 'wait': 120})}"
    while address:
        response = client.get(address)
        assert response.status_code == 200, response.text
        body = response.json()
        records += body["data"]["records"]
        address = body["meta"].get("next")
    assert len(records) == body["meta"]["total"]
    return records, body


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


def test_a_pair_that_is_not_there_can_be_corrected(client: TestClient) -> None:
    response = client.get("/pair", params={"left": "shop/orders.csv", "right": "shop/customer.csv"})
    assert response.status_code == 404
    assert 'value="shop/customer.csv"' in response.text
    assert "did you mean" in response.text
    assert 'value="shop/orders.csv"' in response.text


@pytest.mark.parametrize(
    ("name", "called"),
    [
        ("mine-joined.parquet", "mine-joined"),
        ('a"b\r\nset-cookie: x.parquet', "a-b-set-cookie-x"),
        ("../../x.csv", "x"),
        ("漢字.csv", "joined"),
        ("x" * 500, "x" * 80),
    ],
)
def test_downloads_have_plain_names(name: str, called: str) -> None:
    assert plain_name(name) == called


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


def link_to(table: str) -> str:
    return f'href="/table?{urlencode({"name": table})}"'


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


# Jobs -----------------------------------------------------------------------------------------------------------------


def ended(client: TestClient, number: str) -> dict[str, Any]:
    for _ in range(600):
        job = data(client, f"/jobs/{number}")
        if job["state"] not in ("queued", "running"):
            return dict(job)
        time.sleep(0.1)
    raise AssertionError("the job never ends")


def test_what_takes_long_is_a_job(client: TestClient) -> None:
    asked = client.get(f"{API}/dependencies", params={"query": "table:shop/staff.csv", "wait": 0})
    assert asked.status_code == 202
    number = asked.json()["data"]["id"]
    assert asked.headers["location"] == f"{API}/jobs/{number}"
    again = client.get(f"{API}/dependencies", params={"query": "table:shop/staff.csv", "wait": 0})
    assert again.json()["data"].get("id", number) == number
    assert ended(client, number)["state"] == "done"
    assert data(client, f"/jobs/{number}/answer")["records"]


def test_a_job_is_cancelled_and_the_next_one_is_done(client: TestClient) -> None:
    asked = client.get(f"{API}/dependencies", params={"query": "table:mobility/bike_trips.csv.gz", "wait": 0})
    number = asked.json()["data"]["id"]
    assert client.delete(f"{API}/jobs/{number}").status_code == 200
    assert ended(client, number)["state"] == "cancelled"
    response = client.get(f"{API}/jobs/{number}/answer")
    assert (response.status_code, response.json()["error"]["code"]) == (409, "cancelled")
    assert data(client, "/dependencies", query="table:shop/categories.csv", wait=120)["records"] is not None


def test_time_is_up_and_the_worker_answers_again(demo_index: Lake, demo_lake: Path) -> None:
    worker = Worker(demo_index.path, MEMORY)
    try:
        with pytest.raises(LakescopeError, match=r"within 0\.05 seconds"):
            worker.ask("map", {"asked": {"minimum": 0.5}}, 0.05, lambda *_: None)
        answer = worker.ask("head", {"asked": {"query": str(demo_lake / RIDES)}}, 60, lambda *_: None)
        assert answer["columns"][0] == "date"
    finally:
        worker.close()


def test_a_worker_that_was_closed_is_not_started_again(demo_index: Lake) -> None:
    worker = Worker(demo_index.path, MEMORY)
    worker.close()
    with pytest.raises(LakescopeError, match="cancelled"):
        worker.ask("keys", {}, 60, lambda *_: None)
    assert worker._process is None


def test_a_question_that_wants_all_memory_is_refused(demo_index: Lake, tmp_path: Path) -> None:
    """Some megabytes of different values take more than the worker may have."""
    path = tmp_path / "many.csv"
    path.write_text("a,b\n" + "".join(f"{n:x}-{n * 7919:x},{n}\n" for n in range(1_200_000)))
    worker = Worker(demo_index.path, 500_000_000)
    try:
        with pytest.raises(LakescopeError) as refusal:
            worker.ask("describe", {"asked": {"query": str(path)}}, 60, lambda *_: None)
        assert getattr(refusal.value, "code", "") in ("too-large", "crashed", "failure")
        small = tmp_path / "few.csv"
        small.write_text("a\nx\n")
        assert worker.ask("head", {"asked": {"query": str(small)}}, 60, lambda *_: None)["records"] == [["x"]]
    finally:
        worker.close()


# Files ----------------------------------------------------------------------------------------------------------------


def test_search_with_a_file_join_download_and_search_again(
    client: TestClient, demo_lake: Path, demo_index: Lake
) -> None:
    query = sent(client, "C:\\my files\\rides.csv", (demo_lake / RIDES).read_bytes())
    described = data(client, "/describe", query=query, wait=60)["records"]
    assert {each["name"]: each["role"] for each in described} == {"date": "key", "rides": "target", "member_rides": ""}
    found = data(client, "/correlated", query=query, key="date", target="rides", wait=60)["records"]
    own = next(each for each in found if each["table"] != RIDES)
    assert (own["table"], own["column"]) == ("weather/daily_weather.parquet", "mean_temp_c")
    assert "rides.csv" in own["code"]["duckdb"]
    assert "lakescope-" not in own["code"]["duckdb"]  # where files lie is not told
    joins = data(client, "/joinable", query=query, on="date", wait=60)["records"]
    assert joins[0]["containment"] == 1
    asked = {"query": query, "on": "date", "table": own["table"], "column": "date"}
    made = client.post(f"{API}/joins", json=asked, params={"wait": 60}).json()["data"]
    assert "mean_temp_c" in made["columns"]
    kept = pq.read_table(
        io.BytesIO(client.get(f"{API}/uploads/{made['upload']}/download", params={"format": "parquet"}).content)
    )
    expected = duckdb.sql(
        f"SELECT count(*) FROM '{demo_lake / RIDES}' r LEFT JOIN '{demo_lake / own['table']}' w ON r.date = w.date"
    ).fetchall()
    assert kept.num_rows == made["rows"] == expected[0][0]
    as_csv = pc.read_csv(io.BytesIO(client.get(f"{API}/uploads/{made['upload']}/download").content))
    assert as_csv.column_names == kept.column_names
    assert as_csv.num_rows == kept.num_rows
    again = data(client, "/describe", query=f"upload:{made['upload']}", wait=60)["records"]
    assert "mean_temp_c" in [each["name"] for each in again]
    finds = [{name: own[name] for name in ("table", "key", "column")}]
    asked = {"query": query, "key": ["date"], "target": "rides", "finds": finds}
    more = client.post(f"{API}/augmentations", json=asked, params={"wait": 60}).json()["data"]
    assert more["added"][0]["column"] == "mean_temp_c"
    assert more["rows"] == 730
    assert more["asked"] == {"key": ["date"], "target": "rides", "agg": "mean"}


def test_the_next_query_explains_the_same_number(client: TestClient, demo_lake: Path) -> None:
    query = sent(client, "rides.csv", (demo_lake / RIDES).read_bytes())
    asked = {"query": query, "key": "date", "target": "member_rides", "agg": "max"}
    found = data(client, "/correlated", **asked, k=12, wait=60)["records"]
    find = json.dumps([found[0][name] for name in ("table", "key", "column")])
    result = client.post("/search/augment", data={**asked, "finds": find})
    for _ in range(100):
        page = client.get(result.url)
        if "Search with this table" in page.text:
            break
        time.sleep(0.1)
    assert re.search(
        'href="/search[?]query=upload%3A[^"]+&amp;key=date&amp;target=member_rides&amp;agg=max"', page.text
    )


@pytest.fixture
def newcomer(client: TestClient) -> Iterator[TestClient]:
    """A visitor without files, who leaves none behind."""
    before = dict(client.cookies)
    client.cookies.clear()
    yield client
    for each in data(client, "/uploads"):
        client.delete(f"{API}/uploads/{each['id']}")
    client.cookies.clear()
    client.cookies.update(before)


def waited_for(client: TestClient, made: Any) -> str:
    """The page of a result, once it is there."""
    for _ in range(200):
        page = client.get(made.url)
        if "Search with this table" in page.text:
            break
        time.sleep(0.1)
    return page.text


def next_query(page: str) -> dict[str, list[str]]:
    """What the page of a result goes on with."""
    (address,) = re.findall('href="/search[?]([^"]+)">Search with this table', page)
    return parse_qs(unescape(address))


def test_columns_that_were_added_are_not_found_again(newcomer: TestClient, demo_lake: Path) -> None:
    client = newcomer
    query = sent(client, "rides.csv", (demo_lake / RIDES).read_bytes())
    asked = {"key": "date", "target": "rides"}
    found = data(client, "/correlated", query=query, **asked, k=12, wait=60)
    places = [tuple(each[name] for name in ("table", "key", "column")) for each in found["records"]]
    finds = [json.dumps(place) for place in places[:2]]
    page = waited_for(client, client.post("/search/augment", data={"query": query, **asked, "finds": finds}))
    (query,) = next_query(page)["query"]
    again = client.get(f"{API}/correlated", params={"query": query, **asked, "k": 12, "wait": 60}).json()
    now = [tuple(each[name] for name in ("table", "key", "column")) for each in again["data"]["records"]]
    assert now[:10] == places[2:], "the next best"
    assert len(now) == 12
    (note,) = [each for each in again["meta"]["notes"] if "your table has it already" in each]
    assert all(f"{column} of {table}" in note for table, _, column in places[:2])
    assert "your table has it already" in client.get("/search/correlated", params={"query": query, **asked}).text
    # What is added to the result is left out with what it had.
    more = {"query": query, **asked, "finds": json.dumps(now[0])}
    (query,) = next_query(waited_for(client, client.post("/search/augment", data=more)))["query"]
    third = data(client, "/correlated", query=query, **asked, k=12, wait=60)["records"]
    assert not {*places[:3]} & {tuple(each[name] for name in ("table", "key", "column")) for each in third}
    other = data(client, "/joinable", query=query, on="date", k=12, wait=60)
    assert places[0][0] in [each["table"] for each in other["records"]], "of a table one column is not all"


def test_a_table_that_was_joined_is_not_found_again_and_key_and_target_stay(
    newcomer: TestClient, demo_lake: Path
) -> None:
    client = newcomer
    weather = "weather/daily_weather.parquet"
    query = sent(client, "rides.csv", (demo_lake / RIDES).read_bytes())
    asked = {"key": "date", "target": "member_rides", "agg": "max"}
    searched = {"search": urlencode(asked)}
    kept = f'name="search" value="{escape(searched["search"])}"'
    assert kept in client.get("/search/joins", params={"query": query, **searched}).text
    data(client, "/describe", query=query, wait=60)
    part = client.get("/search", params={"query": query, **asked}).text
    (address,) = re.findall(r'data-part="(/search/joins[?][^"]*)"', part)
    assert parse_qs(unescape(address).partition("?")[2])["search"] == [searched["search"]]
    chosen = {"query": query, "on": "date", "table": weather, "column": "date"}
    page = waited_for(client, client.post("/search/join", data={**chosen, **searched}))
    onwards = next_query(page)
    (joined,) = onwards.pop("query")
    assert onwards == {name: [value] for name, value in asked.items()}
    for on in ("date", f"{weather[8:-8]}.date"):
        joins = client.get(f"{API}/joinable", params={"query": joined, "on": on, "k": 12, "wait": 60}).json()
        assert (weather, "date") not in [(each["table"], each["column"]) for each in joins["data"]["records"]]
        assert any(f"already: date of {weather}" in note for note in joins["meta"]["notes"])
    found = data(client, "/correlated", query=joined, key="date", target="member_rides", wait=60)["records"]
    assert found
    assert weather not in [each["table"] for each in found]
    # A column that is not there any more is not asked for; without a choice there is none to keep.
    page = waited_for(
        client, client.post("/search/join", data={**chosen, "search": urlencode({**asked, "target": "gone"})})
    )
    assert [*next_query(page)] == ["query"]
    assert [*next_query(waited_for(client, client.post("/search/join", data=chosen)))] == ["query"]
    # A table that was made from one of the lake finds neither.
    made = client.post("/search/join", data={**chosen, "query": f"table:{RIDES}"})
    (joined,) = next_query(waited_for(client, made))["query"]
    joins = data(client, "/joinable", query=joined, on="date", k=12, wait=60)["records"]
    assert joins
    assert not {RIDES, weather} & {each["table"] for each in joins}


def test_a_pair_that_was_joined_is_not_found_again(newcomer: TestClient, demo_lake: Path) -> None:
    client = newcomer
    weather = "weather/daily_weather.parquet"
    query = sent(client, "rides.csv", (demo_lake / RIDES).read_bytes())
    sides = {"left": query, "right": f"table:{weather}"}
    made = client.post(f"{API}/autojoins", json=sides, params={"wait": 90}).json()["data"]
    assert made["plan"]["as_they_are"], made["plan"]["words"]
    assert "the tables join as they are, on date of the left and date of the right one" in made["plan"]["words"]
    assert "names" not in made
    page = client.get("/pair/plan", params=sides).text
    assert "rewrite" not in page
    joins = data(client, "/joinable", query=f"upload:{made['upload']}", on="date", k=12, wait=60)["records"]
    assert joins
    assert (weather, "date") not in [(each["table"], each["column"]) for each in joins]


def test_the_join_of_added_columns_has_code_that_gives_the_same_rows(newcomer: TestClient, demo_lake: Path) -> None:
    client = newcomer
    content = (demo_lake / RIDES).read_bytes()
    query = sent(client, "rides.csv", content)
    asked: dict[str, Any] = {"query": query, "key": ["date"], "target": "rides"}
    found = data(client, "/correlated", **asked, k=12, wait=60)["records"]
    finds = [{name: each[name] for name in ("table", "key", "column")} for each in found[:2]]
    made = client.post(f"{API}/augmentations", json={**asked, "finds": finds}, params={"wait": 60}).json()["data"]
    assert [*made["join_code"]] == [*DIALECTS]
    address = f"{API}/uploads/{made['upload']}/download"
    kept = pq.read_table(io.BytesIO(client.get(address, params={"format": "parquet"}).content)).to_pandas()
    code = made["join_code"]["duckdb"]
    assert "lakescope-" not in code  # where files lie is not told
    rows = duckdb.sql(code.replace("rides.csv", str(demo_lake / RIDES))).df().astype(dict(kept.dtypes))
    assert rows.columns.tolist() == kept.columns.tolist()
    both = [each.sort_values("date", ignore_index=True) for each in (rows, kept)]
    assert ((both[0].iloc[:, 1:] - both[1].iloc[:, 1:]).abs().max() < 1e-9).all()
    assert both[0].isna().equals(both[1].isna())
    chosen = [json.dumps([*each.values()]) for each in finds]
    page = waited_for(client, client.post("/search/augment", data={**asked, "finds": chosen}))
    assert "The join elsewhere" in page
    assert "The coefficients elsewhere" in page


def test_two_tables_whose_keys_are_written_differently(client: TestClient) -> None:
    left = b"name,born\nAda Lovelace,1815\nAlan Turing,1912\nGrace Hopper,1906\nEdsger Dijkstra,1930\nTony Hoare,1934\n"
    right = (
        b'author,prize\n"Turing, Alan",a\n"Hopper, Grace",b\n"Lovelace, Ada",c\n"Dijkstra, Edsger",d\n"Hoare, Tony",e\n'
    )
    asked = {"left": sent(client, "l.csv", left), "right": sent(client, "r.csv", right)}
    made = client.post(f"{API}/autojoins", json=asked, params={"wait": 90}).json()["data"]
    assert made["plan"]["found"], made
    assert made["rows"] == 5
    assert "author" in made["plan"]["words"]
    assert made["upload"]


def test_two_tables_without_a_key_join_on_what_they_share(client: TestClient) -> None:
    """Visits to countries in years: no columns are a key, so nothing is rewritten, but the values are the same."""
    visits = [(each, year) for each in ("Chile", "Ghana", "Nepal", "Samoa") for year in range(2001, 2007)] * 3
    panels = {
        name: f"{key},year,{name}\n" + "".join(f"{each},{year},{7 * year % 97}.5\n" for each, year in visits)
        for name, key in (("cost", "country"), ("days", "nation"))
    }
    left, right = (sent(client, f"{name}.csv", panel.encode()) for name, panel in panels.items())
    made = data(client, "/autojoins", left=left, right=right, wait=90)
    assert not made["plan"]["found"], made
    shared = {(each["left"], each["right"]): each for each in made["shared"]}
    assert set(shared) == {("country", "nation"), ("year", "year")}
    assert shared["country", "nation"] == {
        **{"left": "country", "right": "nation", "shared": 4, "of_left": 1.0, "of_right": 1.0},
        **{"p": None, "quality": None, "reasons": []},
    }
    text = client.get("/pair/plan", params={"left": left, "right": right}).text
    assert "hold the same values" in text
    assert "They do not join" not in text


def test_files_are_their_owners_alone(client: TestClient, demo_index: Lake) -> None:
    query = sent(client, "mine.csv", b"a\n1\n2\n3\n")
    number = query.partition(":")[2]
    assert data(client, f"/uploads/{number}")["name"] == "mine.csv"
    mine = dict(client.cookies)
    client.cookies.clear()
    try:
        for path in (f"/uploads/{number}", f"/uploads/{number}/download", f"/describe?query={query}"):
            assert client.get(f"{API}{path}").status_code == 404
            client.cookies.clear()
        assert client.delete(f"{API}/uploads/{number}").status_code == 404
    finally:
        client.cookies.clear()
        client.cookies.update(mine)
    assert client.delete(f"{API}/uploads/{number}").status_code == 200
    assert client.get(f"{API}/uploads/{number}").status_code == 404


def test_files_are_called_by_their_name_where_two_are_joined(demo_index: Lake) -> None:
    with TestClient(create_app(demo_index, Rules(largest=LARGEST), memory=MEMORY), BASE) as client:
        query = sent(client, "mine.csv", b"name,n\nBerlin,1\nParis,2\n")
        for left in (query, "mine.csv"):
            text = client.get("/pair", params={"left": left, "right": "shop/orders.csv"}).text
            assert 'name="left" list="names" value="mine.csv"' in text
            assert 'name="right" list="names" value="shop/orders.csv"' in text
            assert quote(query) in text
        again = sent(client, "mine.csv", b"name,n\nRome,1\nParis,2\n")
        assert f'value="{again}"' in client.get("/pair", params={"left": again, "right": "shop/orders.csv"}).text
        assert client.get("/pair", params={"left": "mine.csv"}).status_code == 404
        sent(client, "orders.csv", b"name\nRome\n")
        assert 'value="nobody.csv"' in client.get("/pair", params={"left": "nobody.csv"}).text


def test_files_are_forgotten_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    files = uploads.Uploads(1_000)
    try:
        kept = files.add("me", "a.csv", io.BytesIO(b"a\n1\n"))
        assert files.find("me", kept.id) == kept
        now = time.time()
        monkeypatch.setattr(uploads.time, "time", lambda: now + uploads.KEPT + 60)
        with pytest.raises(lakescope.NotFound):
            files.find("me", kept.id)
        assert not kept.path.exists()
    finally:
        files.close()


def test_a_visitor_has_so_many_files_and_all_have_so_many_bytes() -> None:
    files = uploads.Uploads(100)
    try:
        sent_in = [files.add("me", f"{n}.csv", io.BytesIO(b"a\n1\n")) for n in range(19)]
        made = []
        for n in range(2):  # the results of joins make room among themselves first, and say so
            place = files.place()
            place.write_bytes(b"x")
            made.append(files.keep("me", f"{n}.parquet", place, "joined"))
        assert [gone and gone.name for _, gone in made] == [None, "0.parquet"]
        with pytest.raises(LakescopeError, match="as many as one may have"):
            files.add("me", "one too many.csv", io.BytesIO(b"a\n1\n"))
        assert len(files.of_visitor("me")) == 20
        assert all(each.path.exists() for each in sent_in)
        for n in range(19):
            files.add(f"visitor {n}", "b.csv", io.BytesIO(b"x" * 100))
        with pytest.raises(LakescopeError, match="as many files"):
            files.add("one more", "b.csv", io.BytesIO(b"x" * 100))
    finally:
        files.close()


def test_a_join_that_fails_leaves_nothing(client: TestClient) -> None:
    service = client.app._app._app._app.state.service  # type: ignore[attr-defined]
    folder = service.uploads._folder
    before = sorted(folder.iterdir())
    asked = {"query": "table:shop/orders.csv", "on": "customer_id", "table": "shop/customers.csv", "column": "nothing"}
    assert client.post(f"{API}/joins", json=asked, params={"wait": 60}).status_code == 404
    assert sorted(folder.iterdir()) == before


def test_queues_are_bounded(monkeypatch: pytest.MonkeyPatch, demo_index: Lake) -> None:
    done = threading.Event()
    monkeypatch.setattr(Worker, "ask", lambda *_: {"waited": done.wait(30)})
    jobs = Jobs(demo_index.path, MEMORY)
    try:
        asked = [jobs.submit("me", "head", {"n": 0}, lane="quick", limit=1)]
        while asked[0].state == "queued":
            time.sleep(0.01)
        asked += [jobs.submit("me", "head", {"n": n}, lane="quick", limit=1) for n in range(1, 7)]
        with pytest.raises(LakescopeError, match="6 of your questions"):
            jobs.submit("me", "head", {"n": 7}, lane="quick", limit=1)
        assert jobs.submit("me", "head", {"n": 3}, lane="quick", limit=1) is asked[3]
        jobs.cancel(asked[4], "me")
        with pytest.raises(LakescopeError, match="cancelled"):
            asked[4].result()
        with pytest.raises(lakescope.NotFound):
            jobs.find("you", asked[0].id)
    finally:
        done.set()
        jobs.close()


def test_work_for_everybody_goes_on_while_somebody_waits(monkeypatch: pytest.MonkeyPatch, demo_index: Lake) -> None:
    begun, done = threading.Event(), threading.Event()

    def ask(_: Worker, question: str, *__: Any) -> dict[str, Any]:
        if question == "held up":  # workers of other tests are asked as well
            begun.set()
        return {"waited": done.wait(30)}

    monkeypatch.setattr(Worker, "ask", ask)
    ended: list[str] = []
    monkeypatch.setattr(Worker, "end", lambda self, *_: ended.append("worker"))
    jobs = Jobs(demo_index.path, MEMORY)
    shared: dict[str, Any] = {"lane": "long", "limit": 30}
    try:
        first = jobs.submit("", "held up", {}, asker="me", **shared)
        assert jobs.submit("", "held up", {}, asker="you", **shared) is first
        assert begun.wait(10)
        jobs.cancel(first, "me")
        assert (first.state, first.state_for("me"), first.state_for("you")) == ("running", "cancelled", "running")
        assert jobs.find("me", first.id).state_for("me") == "cancelled", "to look at it is not to wait for it"
        assert jobs.submit("", "held up", {}, asker="me", **shared).state_for("me") == "running", "asked again"
        jobs.cancel(first, "you")
        assert ended == []
        now = time.monotonic()
        monkeypatch.setattr(time, "monotonic", lambda: now + 60)
        jobs.cancel(first, "you")
        assert (first.state, ended) == ("cancelled", ["worker"]), "who asked no more has gone"
    finally:
        done.set()
        jobs.close()


@pytest.mark.parametrize(
    ("name", "content", "status", "code"),
    [
        ("big.csv", b"a\n" + b"1234567\n" * (LARGEST // 8), 413, "too-large"),
        ("x.exe", b"MZ", 400, "bad-request"),
        ("x.xlsx", b"PK", 400, "bad-request"),
        ("../../x", b"a\n1\n", 400, "bad-request"),
        ("empty.csv", b"", 400, "bad-request"),
        ("header.csv", b"a,b\n", 400, "bad-request"),
        ("binary.csv", bytes(range(256)) * 8, 400, "bad-request"),
        ("cut.parquet", b"PAR1" + b"x" * 500, 422, "truncated"),
    ],
)
def test_files_that_are_not_taken(name: str, content: bytes, status: int, code: str, client: TestClient) -> None:
    response = client.post(f"{API}/uploads", files={"file": (name, content)})
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)
    if name not in ("big.csv", "../../x"):
        assert name in response.json()["error"]["message"]
        assert "table." not in response.json()["error"]["message"]
    assert all(each["name"] != name for each in data(client, "/uploads"))


def test_text_in_sixteen_bits_is_text(client: TestClient) -> None:
    query = sent(client, "wide.csv", "a,b\n1,2\n".encode("utf-16"))
    assert [each["name"] for each in data(client, "/describe", query=query)["records"]] == ["a", "b"]


def test_a_body_without_a_length_is_bounded_too(client: TestClient) -> None:
    def pieces() -> Iterator[bytes]:
        yield b'--b\r\ncontent-disposition: form-data; name="file"; filename="a.csv"\r\n\r\n'
        for _ in range(LARGEST // 50_000 + 10):
            yield b"x" * 50_000

    headers = {"content-type": "multipart/form-data; boundary=b"}
    assert client.post(f"{API}/uploads", content=pieces(), headers=headers).status_code == 413


@pytest.mark.parametrize(
    "content",
    [
        b"PAR1" + b"\xff" * 200 + b"PAR1",
        b"PAR1\x15\x04" * 50,
        bytes(range(256)) * 40,
    ],
)
@pytest.mark.parametrize("name", ["x.parquet", "x.arrow", "x.csv", "x.jsonl"])
def test_hostile_files_are_refused_or_read_but_stop_nothing(name: str, content: bytes, client: TestClient) -> None:
    response = client.post(f"{API}/uploads", files={"file": (name, content)})
    assert response.status_code in (201, 400, 422), response.text
    if response.status_code == 201:
        query = response.json()["data"]["query"]
        response = client.get(f"{API}/describe", params={"query": query, "wait": 60})
        assert response.status_code in (200, 400, 422), response.text
    assert client.get(f"{API}/lake").status_code == 200


def test_formulas_do_not_leave_as_formulas() -> None:
    cells = [
        "=1+1",
        "+cmd|' /C calc'!A0",
        "-2+3",
        "@SUM(A1)",
        "\t=1",
        "-5",
        "-5.5e3",
        "+49",
        "plain",
        "a=b",
        None,
        "|x",
        "%0",
    ]
    found = guarded(pa.array(cells)).to_pylist()
    expected = ["'=1+1", "'+cmd|' /C calc'!A0", "'-2+3", "'@SUM(A1)", "'\t=1", "-5", "-5.5e3", "+49", "plain", "a=b"]
    assert found == [*expected, None, "'|x", "'%0"]


def test_formulas_in_headers_and_cells_of_a_download(tmp_path: Path) -> None:
    pq.write_table(pa.table({"=HYPERLINK()": ["=1", None, 'a"b,c'], "n": [1, 2, 3]}), tmp_path / "t.parquet")
    text = b"".join(csv_pieces(tmp_path / "t.parquet")).decode()
    rows = pc.read_csv(io.BytesIO(text.encode())).to_pylist()
    assert rows[0] == {"'=HYPERLINK()": "'=1", "n": 1}
    assert rows[2]["'=HYPERLINK()"] == 'a"b,c'


# Safety ---------------------------------------------------------------------------------------------------------------

PAGES = [
    "/", "/?like=shop&sort=name&page=1", "/find?q=Berlin", "/problems", "/search", "/pair", "/map", "/api",
    "/table?name=shop/orders.csv", "/nothing", f"/search?query=table:{RIDES}",
]  # fmt: skip


@pytest.mark.parametrize("path", [*PAGES, f"{API}/lake", f"{API}/nothing", "/static/style.css", "/static/nothing.css"])
def test_every_answer_has_its_headers(path: str, client: TestClient) -> None:
    headers = client.get(path).headers
    for name, value in HEADERS.items():
        assert headers[name] == value, name
    assert "unsafe" not in headers["content-security-policy"]


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "", "localhost.evil"])
def test_another_host_is_refused(host: str, client: TestClient) -> None:
    assert client.get(f"{API}/lake", headers={"host": host}).status_code == 421
    assert client.get("/", headers={"host": host}).status_code == 421


@pytest.mark.parametrize("host", ["localhost", "localhost:8080", "127.0.0.1:1", "[::1]:8080"])
def test_this_host_is_served(host: str, client: TestClient) -> None:
    assert client.get(f"{API}/lake", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": "http://127.0.0.1:1"},
    ],
)
def test_what_comes_from_another_site_changes_nothing(headers: dict[str, str], client: TestClient) -> None:
    response = client.post(f"{API}/uploads", files={"file": ("a.csv", b"a\n1\n")}, headers=headers)
    assert response.status_code == 403
    assert client.post("/search/forget", data={"number": "x"}, headers=headers).status_code == 403
    assert client.delete(f"{API}/jobs/x", headers=headers).status_code == 403


def test_what_comes_from_our_own_pages_is_served(client: TestClient) -> None:
    headers = {"origin": BASE, "sec-fetch-site": "same-origin"}
    assert client.post(f"{API}/uploads", files={"file": ("a.csv", b"a\n1\n")}, headers=headers).status_code == 201


def test_a_token_is_asked_for(demo_index: Lake) -> None:
    token = "a secret of some length"
    client = TestClient(create_app(demo_index, Rules(token=token)), BASE, follow_redirects=False)
    assert client.get("/").status_code == 401
    assert client.get(f"{API}/lake").json()["error"]["code"] == "no-token"
    assert client.get("/", params={"token": token + "x"}).status_code == 401
    asked = client.get("/find", params={"q": "a b", "token": token + "x"})
    assert '<input id="token" name="token" type="password"' in asked.text
    assert '<form class="token" action="/find"' in asked.text
    assert '<input type="hidden" name="q" value="a b">' in asked.text
    assert token not in asked.text
    # What the page looks like is open, what is in the lake is not.
    for path in ("/static/style.css", "/static/app.js", "/static/theme.js", "/static/logo.svg"):
        assert client.get(path).status_code == 200, path
    for path in ("/static/../api/v1/lake", "/static/%2e%2e/api/v1/lake", "/staticx", "//static/style.css"):
        assert client.get(BASE + path).status_code in (401, 404), path
    assert client.get(f"{API}/lake", headers={"authorization": f"Bearer {token}"}).status_code == 200
    opened = client.get("/find", params={"q": "a b", "token": token})
    assert (opened.status_code, opened.headers["location"]) == (303, "/find?q=a+b")
    assert token not in opened.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=Lax"} <= {part.strip() for part in opened.headers["set-cookie"].split(";")}
    assert client.get("/").status_code == 200
    assert client.get(f"{API}/lake", headers={"host": "lake.example"}).status_code == 200
    elsewhere = TestClient(create_app(demo_index, Rules(token=token)), BASE, follow_redirects=False)
    assert elsewhere.get(BASE + "//evil.example/", params={"token": token}).headers["location"] == "/evil.example/"


class Document(HTMLParser):
    """Finds what a page must not have: scripts, styles and handlers in the page itself, links that run code."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.wrong: list[str] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.finds: list[list[str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        # What breaks out of its quotes becomes an attribute of an odd name.
        self.wrong += [
            f"{name} of {tag}" for name in given if not re.fullmatch(r"[a-z][a-z0-9:-]*", name, re.IGNORECASE)
        ]
        if tag == "input" and given.get("name") == "finds":
            self.finds.append(json.loads(given.get("value") or ""))
        self.tags.append(tag)
        self.ids += [given["id"]] if given.get("id") else []
        if tag == "script" and "src" not in given and given.get("type") != "application/json":
            self.wrong.append("a script in the page")
        if tag == "style" or "style" in given:
            self.wrong.append(f"a style in {tag}")
        self.wrong += [f"{name} of {tag}" for name in given if name.startswith("on")]
        for name in ("href", "src", "action"):
            if (given.get(name) or "").strip().lower().startswith(("javascript:", "data:", "//", "http:", "https:")):
                self.wrong.append(f"{name}={given[name]}")


@pytest.mark.parametrize("path", PAGES)
def test_pages_are_clean(path: str, client: TestClient) -> None:
    response = client.get(path)
    assert response.status_code == (404 if path == "/nothing" else 200)
    document = Document(response.text)
    assert document.wrong == []
    assert document.tags.count("h1") == 1
    assert len(document.ids) == len(set(document.ids))


def test_every_page_has_its_json(client: TestClient) -> None:
    both = "left=table:shop/orders.csv&right=table:shop/customers.csv"
    pages = ("/", "/find?q=Berlin", "/problems", "/map", "/table?name=shop/orders.csv", "/search", "/pair", "/api")
    parts = ("head", "details", "joins", "like", "keys", "dependencies", "paths")
    of_table = [f"/table/{part}?name=shop/orders.csv" for part in parts]
    of_lake = ("/map/links", "/map/inclusions", "/map/inclusions?table=shop/orders.csv", "/problems/headers")
    by_query = ("/search/joins?query=table:shop/orders.csv&on=customer_id", f"/pair/plan?{both}")
    for path in (*of_table, *of_lake, *by_query):
        text = client.get(path).text
        assert 'aria-label="Breadcrumb"' in text, path
        assert "This page as JSON" in text, path
        assert path not in of_table or "<title>" in text.split("shop/orders.csv")[0], path
    for path in (*pages, *of_table, *of_lake, *by_query, "/search?query=table:shop/orders.csv", f"/pair?{both}"):
        found = re.search(r'rel="alternate" type="application/json" href="([^"]+)"', client.get(path).text)
        assert found is not None, path
        address = found[1].replace("&amp;", "&")
        assert client.get(address).status_code in (200, 202), address


EVIL = "<script>alert(1)</script>"
HOSTILE = [
    EVIL, "\"><img src=x onerror=alert(1)>", "' OR 1=1 --", "../../etc/passwd", "a/b//c", "%2e%2e%2f", "line\nbreak",
    "tab\tand\rreturn", "?name=x&y=1#z", "{{ 7 * 7 }}", "{% raw %}", "long" * 60, "=cmd()", "ÜñÏ漢字🦆",
    "\u202eright-to-left", " spaces ", "javascript:alert(1)", "table:x", "a::b",
]  # fmt: skip


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[TestClient]:
    """A lake whose tables, columns and cells are called what they must not be taken for."""
    cells = [*HOSTILE, *(f"value {n}" for n in range(9))]
    frames = {
        name: pa.table(
            {EVIL: cells, name + " ": list(range(len(cells))), "{{ 1 }}": [f"=1+{n}" for n in range(len(cells))]}
        )
        for name in HOSTILE
    }
    lake = lakescope.index(frames, tmp_path_factory.mktemp("hostile") / "x.idx", spark=spark)
    with TestClient(create_app(lake, Rules(largest=LARGEST), memory=MEMORY), BASE) as client:
        yield client


def clean(response: Any, status: int = 200) -> str:
    assert response.status_code == status, response.text
    document = Document(response.text)
    assert document.wrong == []
    assert document.tags.count("script") == response.text.count("</script>")
    assert "<script>alert" not in response.text
    assert "<img src=x" not in response.text
    assert "49" not in re.findall(r"<h1[^>]*>([^<]*)", response.text)
    return str(response.text)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_have_their_pages(name: str, hostile: TestClient) -> None:
    known = hostile.get(f"{API}/tables", params={"limit": 100}).json()["data"]
    stored = next(each["table"] for each in known if each["table"] == name or each["table"].split() == name.split())
    assert data(hostile, "/profile", table=stored)["table"] == stored
    clean(hostile.get("/table", params={"name": stored}))
    clean(hostile.get(f"/table?name={quote(stored, safe='')}"))
    for part in ("joins", "like", "details", "history"):
        clean(hostile.get(f"/table/{part}", params={"name": stored}, headers={"x-part": "1"}))
    clean(hostile.get("/find", params={"q": name.strip() or "x"}))
    clean(hostile.get("/", params={"like": name}))
    clean(hostile.get("/pair", params={"left": f"table:{stored}"}))
    clean(hostile.get("/table", params={"name": name + "x"}), 404)


def test_hostile_cells_on_pages_of_a_search(hostile: TestClient) -> None:
    cells = ["<script>alert(2)</script>", *HOSTILE[2:6], "value 1", "value 2"]
    rows = "".join(f'"{cell}",{n},{n * n}\n' for n, cell in enumerate(cells))
    query = sent(hostile, '"><script>alert(3)</script>.csv', f'"{EVIL}",n,"=m()"\n{rows}'.encode())
    for _ in range(100):
        page = hostile.get("/search", params={"query": query})
        if "What do you want" in page.text:
            break
        time.sleep(0.2)
    text = clean(page)
    assert "&lt;script&gt;alert(2)" in text
    clean(hostile.get("/search/joins", params={"query": query, "on": EVIL}))
    clean(hostile.get("/map/inclusions"))
    clean(hostile.get("/problems/headers"))
    clean(hostile.get("/table/paths", params={"name": EVIL}))
    clean(hostile.get("/search/headers", params={"query": query}))


def test_hostile_names_among_the_finds(hostile: TestClient) -> None:
    asked = {"query": f"table:{EVIL}", "key": EVIL, "target": EVIL + " "}
    text = clean(hostile.get("/search/correlated", params=asked))
    found = data(hostile, "/correlated", **asked, k=12)["records"]
    assert len(found) == 12
    assert Document(text).finds == [[each["table"], each["key"], each["column"]] for each in found]
    clean(hostile.get("/search/joins", params={"query": f"table:{EVIL}", "on": EVIL}))


# The parts of it ------------------------------------------------------------------------------------------------------


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


def test_joined_rows_are_those_of_a_left_join(demo_index: Lake, demo_lake: Path) -> None:
    made = demo_index.joined("shop/orders.csv", "customer_id", "shop/customers.csv", "customer_id")
    orders, customers = demo_lake / "shop/orders.csv", demo_lake / "shop/customers.csv"
    expected = duckdb.sql(
        f"SELECT o.order_id, c.city FROM read_csv('{orders}') o LEFT JOIN read_csv('{customers}') c USING (customer_id)"
        " ORDER BY 1"
    ).fetchall()
    rows = zip(made.table["order_id"].to_pylist(), made.table["city"].to_pylist(), strict=True)
    assert sorted(rows) == [tuple(row) for row in expected]
    back = demo_index.joined("shop/customers.csv", "customer_id", "shop/orders.csv", "customer_id")
    pairs = duckdb.sql(
        f"SELECT count(*), count(DISTINCT c.customer_id) FILTER (o.order_id IS NOT NULL) FROM read_csv('{customers}') c"
        f" LEFT JOIN read_csv('{orders}') o USING (customer_id)"
    ).fetchall()
    assert (back.table.num_rows, back.matched) == pairs[0]
    cut = demo_index.joined("shop/customers.csv", "customer_id", "shop/orders.csv", "customer_id", most=10)
    assert (cut.cut, cut.table.num_rows) == (True, 10)
    few = demo_index.joined("shop/orders.csv", "customer_id", "shop/customers.csv", "customer_id", query_rows=3)
    assert few.table.to_pylist() == made.table.slice(0, 3).to_pylist()


def test_a_join_of_missing_and_repeated_keys(demo_index: Lake) -> None:
    mine = {"city": ["Berlin", None, "Atlantis", "Berlin"], "n": [1, 2, 3, 4]}
    made = demo_index.joined(mine, "city", "world/capital_cities.csv", "city")
    assert (made.query_rows, made.matched, made.table.num_rows) == (4, 2, 4)
    assert made.table["n"].to_pylist() == [1, 2, 3, 4]
    with pytest.raises(lakescope.NotFound, match="citty"):
        demo_index.joined(mine, "citty", "world/capital_cities.csv", "city")


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


def check_map(found: dict[str, Any]) -> None:
    """No circle lies on another, or beyond the picture."""
    width, height = found["size"]
    circles = [(each["x"], each["y"], each["radius"]) for each in found["nodes"]]
    assert all(radius <= x <= width - radius and radius <= y <= height - radius for x, y, radius in circles)
    for (x, y, radius), (u, v, other) in combinations(circles, 2):
        assert math.hypot(x - u, y - v) >= radius + other, "one circle on another"


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
    shown = pages._sides(join, 40).replace("<wbr>", "")
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
    assert pages.telling_joins([only], {}) == []
    assert pages.telling_joins([only], {("a", "t", "b"): 0.9}) == [only]


def find_of(**fields: Any) -> dict[str, Any]:
    return {"low": 0.8, "high": 0.9, "q": 0.001, **fields}


def test_finds_that_may_be_chance_are_grey_and_last() -> None:
    assert pages.strength(find_of()) == "strong"
    assert pages.strength(find_of(q=0.4)) == "may be chance"
    assert pages.strength(find_of(low=-0.1)) == "none"
    finds = [find_of(q=0.94, at=0), find_of(at=1), find_of(q=0.06, at=2), find_of(q=0.05, at=3)]
    assert [each["at"] for each in pages.doubtful_last(finds)] == [1, 3, 0, 2]


@pytest.mark.parametrize(
    ("number", "others", "shown"),
    [(0.5, (), "+0.50"), (-1.0, (), "\N{MINUS SIGN}1.00"), (0.9996, (1.0,), "+0.9996"), (0.9961, (0.9968,), "+0.996")],
)
def test_coefficients_have_digits_enough(number: float, others: tuple[float, ...], shown: str) -> None:
    assert pages._signed(number, *others) == shown


def test_a_lake_answers_in_several_threads(demo_index: Lake) -> None:
    from concurrent.futures import ThreadPoolExecutor

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


# The command ----------------------------------------------------------------------------------------------------------


def started(*arguments: str) -> tuple[subprocess.Popen[str], str]:
    program = [sys.executable, "-c", "from lakescope.faces.cli import main; main()", "serve", *arguments]
    process = subprocess.Popen(program, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    line = process.stderr.readline()
    found = re.search(r"http://\S+", line)
    assert found is not None, line
    return process, found[0]


def test_serving_and_ending(demo_index: Lake) -> None:
    process, address = started(demo_index.path, "--port", "0")
    try:
        for _ in range(100):
            try:
                with urllib.request.urlopen(address + "healthz") as response:
                    assert json.load(response)["ok"]
                break
            except OSError:
                time.sleep(0.1)
        with urllib.request.urlopen(address) as response:
            assert b"Look into your lake" in response.read()
    finally:
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=20)
    assert "Traceback" not in said
    assert process.returncode in (0, 130)


def test_elsewhere_a_token_is_made(demo_index: Lake) -> None:
    process, address = started(demo_index.path, "--port", "0", "--host", "0.0.0.0")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    assert re.search(r"\?token=[\w-]{32}$", address)


def test_an_address_can_be_opened_as_soon_as_it_is_told() -> None:
    with _listen("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname(), timeout=5):
        pass


def test_serving_what_cannot_be_served(demo_index: Lake, tmp_path: Path) -> None:
    program = [sys.executable, "-c", "from lakescope.faces.cli import main; main()", "serve"]
    short = tmp_path / "short"
    short.write_text("short\n")
    for arguments, word in (
        ([str(tmp_path)], "not a Lakescope index"),
        ([demo_index.path, "--token", "a secret of some length"], "can be read by everybody"),
        ([demo_index.path, "--token-file", str(short)], "too short"),
        ([demo_index.path, "--token-file", str(tmp_path / "nothing")], "cannot read the token"),
        ([demo_index.path, "--behind-proxy", "lake.example"], "no address"),
        ([demo_index.path, "--host", "256.1.1.1"], "cannot listen"),
        ([demo_index.path, "--max-upload", "much"], "--max-upload"),
    ):
        ran = subprocess.run([*program, *arguments], capture_output=True, text=True, timeout=60, check=False)
        assert ran.returncode == 2, ran.stderr
        assert word in ran.stderr


def test_serving_imports_neither_spark_nor_pandas() -> None:
    code = (
        "import sys; from lakescope.faces.serving.app import create_app\n"
        "assert not {'pyspark', 'pandas'} & set(sys.modules), sorted(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


# The description of the interface -------------------------------------------------------------------------------------


def test_every_operation_is_described(client: TestClient) -> None:
    described = client.get(f"{API}/openapi.json").json()
    for path, methods in described["paths"].items():
        assert path.startswith(API)
        for method, about in methods.items():
            assert about["description"], (method, path)
            for status, response in about["responses"].items():
                for form, content in response["content"].items():
                    assert form == "application/octet-stream" or "example" in content, (method, path, status)
            if path.endswith("/download"):
                continue
            good = about["responses"].get("200") or about["responses"]["201"]
            assert "application/json" in good["content"], (method, path)


#: What a question may be about, so that it is answered and not only refused.
KNOWN: dict[str, list[Any]] = {
    "name": ["shop/orders.csv", "broken/blank_headers.csv", "world/capital_cities.csv"],
    "query": ["table:shop/orders.csv", f"table:{RIDES}", "upload:nothing"],
    "left": ["table:shop/orders.csv"],
    "right": ["table:shop/customers.csv"],
    "q": ["Berlin", "shop", "2024-01-01"],
    "like": ["shop", ""],
    "on": ["customer_id", "date", "order_id"],
    "key": [["date"], ["customer_id"], ["date", "rides"]],
    "target": ["rides", "total", "status"],
    "agg": ["mean", "count", "sum"],
    "measure": ["pearson", "spearman"],
    "table": ["shop/customers.csv", "weather/daily_weather.parquet"],
    "column": ["customer_id", "mean_temp_c"],
    "finds": [[{"table": "weather/daily_weather.parquet", "key": "date", "column": "mean_temp_c"}]],
    "since": ["1", "2024-01-01", "yesterday"],
    "wait": [0, 0.2, 3.0],
}


def asked_at_random(index: Lake, examples: int, seconds: float) -> set[str]:
    """Ask every operation what its description allows, and what it does not; which of them were answered."""
    import schemathesis

    answered: set[str] = set()
    with TestClient(create_app(index, Rules(largest=LARGEST), memory=MEMORY), BASE) as client:
        schema = schemathesis.openapi.from_dict(client.get(f"{API}/openapi.json").json())
        operations = [found.ok() for found in schema.get_all_operations()]
        for operation in operations:
            end = time.monotonic() + seconds / len(operations)
            if ask_at_random(client, operation, examples, end):
                answered.add(f"{operation.method.upper()} {operation.path}")
    return answered


def ask_at_random(client: TestClient, operation: Any, examples: int, end: float) -> bool:
    """Ask one operation, until time is up; whether it was answered at all."""
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import strategies as st

    answers: list[int] = []
    bounded = "wait" in {each.name for each in operation.query}

    @given(case=operation.as_strategy(), pick=st.data())
    @settings(
        max_examples=examples,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
        database=None,
        derandomize=True,
    )
    def ask(case: Any, pick: Any) -> None:
        def real(given: Any) -> Any:
            """What there is in the place of what does not exist, most of the time."""
            if not isinstance(given, dict) or not pick.draw(st.integers(0, 3)):
                return given
            return {**given, **{name: pick.draw(st.sampled_from(KNOWN[name])) for name in given if name in KNOWN}}

        parameters, body = real(dict(case.query or {})), real(case.body)
        if bounded:
            parameters["wait"] = pick.draw(st.sampled_from(KNOWN["wait"]))
        if time.monotonic() > end:
            return
        path = case.formatted_path + (f"?{urlencode(parameters, doseq=True)}" if parameters else "")
        response = client.request(case.method, path, json=body if isinstance(body, dict | list) else None)
        assert response.status_code < 500 or response.status_code == 504, f"{path} {body} {response.text[:200]}"
        answers.append(response.status_code)
        if response.status_code >= 400 and response.headers["content-type"] == "application/json":
            assert set(response.json()) == {"error"}

    ask()
    return any(status < 400 for status in answers)


def test_no_request_makes_the_server_fail(demo_index: Lake) -> None:
    answered = asked_at_random(demo_index, examples=4, seconds=15)
    assert f"GET {API}/lake" in answered


@pytest.mark.slow
def test_no_question_makes_the_server_fail(demo_index: Lake) -> None:
    answered = asked_at_random(demo_index, examples=100, seconds=300)
    asked = ("profile", "head", "table/like", "table/keys", "find", "describe", "joinable", "correlated", "map")
    assert {f"GET {API}/{each}" for each in asked} <= answered
    assert {f"POST {API}/{each}" for each in ("joins", "autojoins")} <= answered


# What people see ------------------------------------------------------------------------------------------------------


def test_questions_are_answered_while_kernels_are_compiled(demo_index: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled, begun = threading.Event(), threading.Event()

    def warm(lake: Lake) -> None:
        begun.set()
        compiled.wait(60)

    monkeypatch.setattr(Lake, "warm", warm)
    service = Service(demo_index, largest=LARGEST, memory=MEMORY)
    warming = threading.Thread(target=service._warm_lanes, daemon=True)
    try:
        warming.start()
        assert begun.wait(60)
        with ThreadPoolExecutor(1) as asking:
            found = asking.submit(service.find, "Berlin").result(timeout=30)
            compiled.set()
    finally:
        compiled.set()
        warming.join(60)
    assert found["values"]


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
    found = pages._parts(name)
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
