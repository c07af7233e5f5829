"""What a server must not do, whoever asks it what: other sites, tokens, hostile names and cells."""

from __future__ import annotations

import io
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from starlette.testclient import TestClient

import lakescope
from helpers.visitors import API, BASE, LARGEST, MEMORY, PAGES, Document, clean, data, sent
from lakescope.faces.serving.app import create_app
from lakescope.faces.serving.downloads import csv_pieces, guarded
from lakescope.faces.serving.safety import HEADERS, Rules
from lakescope.lake import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


pytest_plugins = ["helpers.visitors"]


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
