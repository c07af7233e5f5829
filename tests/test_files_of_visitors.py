"""Files that visitors bring: searches with them, joins, downloads, bounds, and whose they are."""

from __future__ import annotations

import io
import json
import re
import time
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlencode

import duckdb
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from markupsafe import escape
from starlette.testclient import TestClient

import lakescope
from helpers.visitors import API, BASE, LARGEST, MEMORY, RIDES, data, sent
from lakescope.code.dialects import DIALECTS
from lakescope.errors import LakescopeError
from lakescope.faces.serving import uploads
from lakescope.faces.serving.app import create_app
from lakescope.faces.serving.downloads import plain_name
from lakescope.faces.serving.safety import Rules
from lakescope.lake import Lake

pytest_plugins = ["helpers.visitors"]


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
