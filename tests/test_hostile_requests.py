"""Requests that were made to mislead: from other sites, with headers of all kinds, for what nobody may know."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

import pytest

pytest.importorskip("fastapi")
from starlette.testclient import TestClient

import lakescope
from lakescope.errors import BadRequest, LakescopeError
from lakescope.faces.cli.serving import given_token
from lakescope.faces.serving.app import create_app
from lakescope.faces.serving.folders import OwnFolder
from lakescope.faces.serving.places import Places
from lakescope.faces.serving.safety import Rules
from lakescope.faces.serving.service import Service
from lakescope.lake import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

API = "/api/v1"
BASE = "http://127.0.0.1"
LARGEST = 500_000
TOKEN = "a secret of some length"
#: What browsers say of a picture, a script's request, a frame and a link of another site.
PICTURE = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"}
SCRIPT = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "cors", "sec-fetch-dest": "empty", "origin": "https://e.x"}
FRAME = {"sec-fetch-site": "same-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"}
LINK = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
OURS = {"sec-fetch-site": "same-origin", "sec-fetch-mode": "cors", "sec-fetch-dest": "empty"}


@pytest.fixture(scope="module")
def client(demo_index: Lake) -> Iterator[TestClient]:
    app = create_app(demo_index, Rules(largest=LARGEST), memory=2_000_000_000)
    with TestClient(app, BASE) as client:
        yield client


def service_of(client: TestClient) -> Service:
    service: Service = client.app._app._app._app.state.service  # type: ignore[attr-defined]
    return service


def work_of(client: TestClient) -> tuple[set[str], int]:
    """What jobs and files there are, but for what a server does when it starts."""
    service = service_of(client)
    return {job.id for job in list(service.jobs._jobs.values()) if job.question != "warm"}, service.uploads.held()[0]


# Other sites ----------------------------------------------------------------------------------------------------------

PAIR = "left=table:shop/orders.csv&right=table:hr/payroll.csv"
#: Addresses that begin work when they are asked for.
WORK = [
    f"{API}/inclusions?minimum=0.613&wait=0", f"{API}/foreign_keys?wait=0", f"{API}/map?minimum=0.613&wait=0",
    f"{API}/dependencies?query=table:hr/payroll.csv&nulls=skip&wait=0", f"{API}/autojoins?{PAIR}&wait=0",
    f"{API}/describe?query=table:hr/payroll.csv&wait=0", "/map/inclusions?minimum=0.617", f"/pair/plan?{PAIR}",
    "/search?query=table:hr/payroll.csv", "/table/paths?name=hr/payroll.csv", "/pair/side?query=table:hr/payroll.csv",
]  # fmt: skip


@pytest.mark.parametrize("headers", [PICTURE, SCRIPT, FRAME], ids=["picture", "script", "frame"])
@pytest.mark.parametrize("path", [*WORK, "/", "/find?q=x", f"{API}/find?text=x", "/table?name=shop/orders.csv"])
def test_another_site_is_answered_nothing(path: str, headers: dict[str, str], client: TestClient) -> None:
    before = work_of(client)
    response = client.get(path, headers=headers)
    assert response.status_code == 403
    assert work_of(client) == before


@pytest.mark.parametrize("path", WORK)
def test_a_link_of_another_site_starts_nothing(path: str, client: TestClient) -> None:
    before = work_of(client)
    for ask in (client.get, client.head):
        response = ask(path, headers=LINK)
        assert response.status_code == (403 if path.startswith(API) else 200), response.text
        assert work_of(client) == before
    if not path.startswith(API):
        text = client.get(path, headers=LINK).text
        assert f'href="{path.replace("&", "&amp;")}" data-go' in text, "a link to ask oneself"


@pytest.mark.parametrize(
    "path", ["/", "/find?q=Berlin", "/table?name=shop/orders.csv", "/pair?" + PAIR, "/map", "/api"]
)
def test_a_link_of_another_site_shows_a_page(path: str, client: TestClient) -> None:
    before = work_of(client)
    response = client.get(path, headers=LINK)
    assert response.status_code == 200
    assert "data-go" not in response.text
    assert work_of(client) == before


def test_what_is_answered_already_is_shown_to_who_follows_a_link(client: TestClient) -> None:
    path = "/map/inclusions?minimum=0.93"
    assert "data-go" in client.get(path, headers=LINK).text
    ours = client.get(path, headers=OURS)
    assert ours.status_code == 200
    assert "data-go" not in client.get(path, headers=LINK).text


def test_looking_at_how_two_join_makes_no_file(client: TestClient) -> None:
    both = {"left": "table:hr/employees.csv", "right": "table:hr/payroll.csv"}
    files = service_of(client).uploads.held()
    plan = client.get(f"{API}/autojoins", params={**both, "wait": 90}).json()["data"]
    assert plan["plan"]["found"]
    assert plan["upload"] is None
    assert 'action="/pair/join" method="post"' in client.get("/pair/plan", params=both).text
    assert service_of(client).uploads.held() == files
    made = client.post("/pair/join", data=both, headers=OURS)
    assert made.status_code == 200
    assert client.get("/pair/join", params=both).status_code == 405
    assert client.post("/pair/join", data=both, headers=LINK).status_code in (200, 403)


# Headers --------------------------------------------------------------------------------------------------------------

VALUES = [
    "", "http://[", "http://[::1", "https://", "//", "null", "[", "]", ":", ":99999", "[::1", "127.0.0.1:x", "%", "%zz",
    '"', '"\\', "a=" + "\\" * 4_000, ";" * 4_000, "=;=;=", "\xb2", "\xff\xfe", "-1", "+1", "1e9", "9" * 5_000, "0x10",
    "bytes=", "bytes=-", "bytes=1-0", "bytes=" + "0-," * 2_000, "bytes=9999999999999999999999-", "*", 'W/"', ",",
    "multipart/form-data", "multipart/form-data; boundary=", 'multipart/form-data; boundary="' + "x" * 500,
    "application/json; charset=\xff", "application/json; charset=nothing", "text/html;q=", "text/html;q=nan",
    "Bearer", "Bearer \xff", "Basic ???", "websocket", "1.2.3.4, 5.6.7.8", "::ffff:1.2.3.4%x", "http", "\t",
]  # fmt: skip
NAMES = [
    "origin", "host", "cookie", "range", "if-range", "if-none-match", "if-modified-since", "content-length",
    "content-type", "accept", "accept-encoding", "authorization", "upgrade", "sec-fetch-site", "x-part",
    "x-forwarded-for", "x-forwarded-proto", "transfer-encoding", "referer", "user-agent", "expect",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_no_header_makes_the_server_fail(name: str, client: TestClient) -> None:
    for value in VALUES:
        header: Any = {name: value.encode("latin-1")}
        for path in ("/", f"{API}/lake", "/static/style.css"):
            assert client.get(path, headers=header).status_code < 500 or value == "websocket", (path, value)
        response = client.post(f"{API}/joins", content=b"{}", headers=header)
        assert response.status_code < 500 or value == "websocket", value
        assert client.post(f"{API}/uploads", content=b"--x\r\n", headers=header).status_code < 500 or name == "upgrade"


@pytest.mark.parametrize("origin", ["http://[", "http://127.0.0.1.evil.example", "http://evil.example@127.0.0.1"])
def test_an_odd_origin_is_another_one(origin: str, client: TestClient) -> None:
    assert client.post(f"{API}/joins", json={}, headers={"origin": origin}).status_code == 403
    assert client.get(f"{API}/lake", headers={"origin": origin}).status_code == 403


def test_websockets_are_refused(client: TestClient) -> None:
    headers = {"connection": "upgrade", "upgrade": "websocket", "sec-websocket-key": "x", "sec-websocket-version": "13"}
    assert client.get("/", headers=headers).status_code == 501
    from starlette.websockets import WebSocketDisconnect

    with pytest.raises(WebSocketDisconnect), client.websocket_connect("/"):
        pass


def test_only_files_are_large(client: TestClient) -> None:
    large = b"[" * 300_000
    json_type = {"content-type": "application/json"}
    assert client.post(f"{API}/joins", content=large, headers=json_type).status_code == 413
    assert client.post(f"{API}/joins", content=iter([large]), headers=json_type).status_code == 413
    assert client.post("/search/forget", content=large, headers=json_type).status_code == 413
    two = [("file", ("a.csv", b"a\n1\n")), ("file", ("b.csv", b"a\n1\n"))]
    assert client.post(f"{API}/uploads", files=two).status_code == 400


@pytest.mark.parametrize(
    "path",
    [
        "//evil.example/", "/%09/evil.example/", "/%0a/evil.example", "/%0d%0a/evil.example", "/%5cevil.example",
        "/%5c%5cevil.example", "/%09%5c%09/evil.example", "/%20//evil.example", "/%2f%2fevil.example",
        "/.//evil.example", "/%e2%80%a8//evil.example", "/%00/evil.example", "/\\evil.example",
        "/;@evil.example", "/@evil.example",
    ],
)  # fmt: skip
def test_who_comes_with_the_token_stays_here(path: str, demo_index: Lake) -> None:
    client = TestClient(create_app(demo_index, Rules(token=TOKEN)), BASE, follow_redirects=False)
    response = client.get(BASE + path, params={"token": TOKEN, "q": "a b"})
    assert response.status_code == 303
    location = response.headers["location"]
    assert location.isascii()
    assert location.isprintable()
    # As browsers read it: without white space, and with a slash for a backslash.
    followed = urljoin(BASE + "/", "".join(location.split()).replace("\\", "/"))
    assert urlsplit(followed)[:2] == ("http", "127.0.0.1")
    assert location.endswith("?q=a+b")


# Proxies --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("proxy", "peer", "said", "address"),
    [
        (None, "10.0.0.9", "1.2.3.4", "10.0.0.9"),
        (None, "127.0.0.1", "1.2.3.4", "127.0.0.1"),
        ("127.0.0.1", "127.0.0.1", "1.2.3.4", "1.2.3.4"),
        ("127.0.0.1", "127.0.0.1", "6.6.6.6, 1.2.3.4", "1.2.3.4"),
        ("127.0.0.1", "127.0.0.1", "6.6.6.6,[2001:db8::1]:443", "2001:db8::/64"),
        ("127.0.0.1", "10.0.0.9", "1.2.3.4", "10.0.0.9"),
        ("127.0.0.1", "127.0.0.1", "nobody", "127.0.0.1"),
        ("127.0.0.1", "127.0.0.1", "", "127.0.0.1"),
        ("::1", "::1", "1.2.3.4", "1.2.3.4"),
    ],
)
def test_only_the_proxy_that_was_named_says_who_asks(
    proxy: str | None, peer: str, said: str, address: str, demo_index: Lake
) -> None:
    app = create_app(demo_index, Rules(largest=LARGEST, proxy=proxy), memory=1 << 30)
    client = TestClient(app, BASE, client=(peer, 1))
    sent = client.post(f"{API}/uploads", files={"file": ("a.csv", b"a\n1\n")}, headers={"x-forwarded-for": said})
    assert sent.status_code == 201
    service = service_of(client)
    (upload,) = service.uploads._files.values()
    service.close()
    assert upload.owner.address == address


# What is nobody's business --------------------------------------------------------------------------------------------


def test_no_error_says_where_things_lie(tmp_path: Path, spark: SparkSession) -> None:
    lake_folder, index = tmp_path / "secret place" / "lake", tmp_path / "another place" / "x.idx"
    lake_folder.mkdir(parents=True)
    for name in ("a.csv", "b.csv"):
        (lake_folder / name).write_text("id,n\n" + "".join(f"{n},{n * n}\n" for n in range(50)))
    lake = lakescope.index(str(lake_folder), str(index), spark=spark)
    with TestClient(create_app(lake, Rules(largest=LARGEST), memory=1 << 30), BASE) as client:
        query = client.post(f"{API}/uploads", files={"file": ("mine.csv", b"id\n1\n2\n")}).json()["data"]["query"]
        upload = service_of(client).uploads.find(client.cookies["lakescope_visitor"], query.partition(":")[2])
        for folder in ("a.csv", "b.csv"):
            (lake_folder / folder).unlink()
        upload.path.unlink()
        for path in index.rglob("*"):
            if path.is_file() and path.name != "manifest.json":
                path.unlink()  # what is open already stays whole
                path.write_bytes(b"")
        answers = [
            client.get(path, params={"wait": 60, **asked})
            for path, asked in (
                (f"{API}/head", {"query": "table:a.csv"}),
                (f"{API}/dependencies", {"query": "table:a.csv"}),
                (f"{API}/describe", {"query": query}),
                (f"{API}/joinable", {"query": "table:a.csv", "on": "id"}),
                (f"{API}/inclusions", {}),
                (f"{API}/map", {}),
                ("/table/head", {"name": "a.csv"}),
                ("/table/paths", {"name": "a.csv"}),
                ("/search", {"query": query}),
            )
        ]
    errors = [each for each in answers if each.status_code >= 400]
    assert {*answers[:3]} <= {*errors}, "of the others a worker may have read what it needs before"
    for each in errors:
        for secret in (str(tmp_path), "secret place", "another place", tempfile.gettempdir() + "/", "Traceback"):
            assert secret not in each.text, (each.url, each.text)


def test_places_are_called_by_their_names(tmp_path: Path) -> None:
    link = tmp_path / "link.idx"
    link.symlink_to(tmp_path / "real.idx")
    places = Places([str(link), "s3://bucket/deep/lake", "/", "."])
    assert places.hide(f"{link} is damaged") == "link.idx is damaged"
    assert (
        places.hide(f"cannot read {tmp_path / 'real.idx'}/a/b.parquet: gone")
        == "cannot read real.idx/a/b.parquet: gone"
    )
    assert places.hide("no s3://bucket/deep/lake/x.csv") == "no lake/x.csv"
    assert places.hide("see /api/v1/openapi.json") == "see /api/v1/openapi.json"
    error = places.without(BadRequest(f"no {link}", hint=f"build {link}"))
    assert (error.message, error.hint) == ("no link.idx", "build link.idx")


def test_the_token_comes_from_where_nobody_else_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    assert given_token(None, None) is None
    assert given_token(None, str(tmp_path / "token")) == TOKEN
    monkeypatch.setenv("LAKESCOPE_TOKEN", TOKEN)
    assert given_token(None, None) == TOKEN
    assert "LAKESCOPE_TOKEN" not in os.environ, "workers need none"
    with pytest.raises(LakescopeError, match="can be read by everybody"):
        given_token(TOKEN, None)


# Folders that are left behind -----------------------------------------------------------------------------------------

LIVES = """
import sys, time
from lakescope.faces.serving.folders import OwnFolder
print(OwnFolder("lakescope-test-").path, flush=True)
sys.stdin.readline()
"""


def test_folders_of_servers_that_are_no_more_are_swept_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    processes = [
        subprocess.Popen([sys.executable, "-c", LIVES], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    folders = [Path(each.stdout.readline().strip()) for each in processes if each.stdout is not None]
    for each in folders:
        (each / "upload").mkdir()
        (each / "upload" / "table.csv").write_text("a\n1\n")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "lock").write_text("")
    (tmp_path / "lakescope-test-link").symlink_to(elsewhere)
    odd = tmp_path / "lakescope-test-odd"
    odd.mkdir()
    (odd / "lock").symlink_to(elsewhere / "lock")
    (tmp_path / "lakescope-test-none").mkdir()
    os.mkfifo(tmp_path / "lakescope-test-none" / "fifo")
    processes[0].send_signal(signal.SIGKILL)
    processes[0].communicate(timeout=20)
    own = OwnFolder("lakescope-test-")
    assert not folders[0].exists(), "its process was killed"
    assert (folders[1] / "upload" / "table.csv").exists(), "its process lives"
    assert (elsewhere / "lock").exists()
    assert odd.exists()
    assert (tmp_path / "lakescope-test-none").exists(), "somebody else's"
    processes[1].communicate("\n", timeout=20)
    again = OwnFolder("lakescope-test-")
    assert not folders[1].exists()
    assert own.path.exists()
    for each in (own, again):
        each.remove()
        assert not each.path.exists()
    shutil.rmtree(odd)


def test_files_of_a_killed_server_go_with_the_next_one(tmp_path: Path) -> None:
    code = (
        "import io, os, signal; from lakescope.faces.serving.uploads import Uploads\n"
        "Uploads(1000).add('me', 'a.csv', io.BytesIO(b'a\\n1\\n')); os.kill(os.getpid(), signal.SIGKILL)"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], env=environment, check=False, timeout=60)
    assert list(tmp_path.rglob("table.csv"))
    code = "from lakescope.faces.serving.uploads import Uploads; Uploads(1000).close()"
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=60)
    assert not list(tmp_path.iterdir())


# Names are not paths --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["{file}", "file://{file}", "http://127.0.0.1:9/x.csv", "{folder}/no.csv", "x.db::t"])
def test_a_name_is_not_taken_for_a_path(client: TestClient, tmp_path: Path, name: str) -> None:
    """A page of joins was asked about any path, and read it here."""
    (tmp_path / "mine.csv").write_text("secret_name,b\n1,2\n2,3\n")
    name = name.format(file=tmp_path / "mine.csv", folder=tmp_path)
    for path in ("/table/joins", "/table/head"):
        found = client.get(path, params={"name": name})
        assert found.status_code == 404
        assert "secret_name" not in found.text
    assert client.get(f"{API}/profile", params={"table": name}).status_code == 404
    assert client.get(f"{API}/head", params={"query": f"table:{name}"}).status_code == 404
    for path in ("joinable", "correlated", "paths", "dependencies"):
        found = client.get(f"{API}/{path}", params={"query": f"table:{name}"})
        assert found.status_code == 404
