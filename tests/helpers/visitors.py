"""A visitor of a server of the demo lake, without a browser: asking it, sending files, and judging pages."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import combinations
from typing import Any
from urllib.parse import urlencode

import pytest
from starlette.testclient import TestClient

from lakescope.faces.serving.app import create_app
from lakescope.faces.serving.safety import Rules
from lakescope.lake import Lake

RIDES = "mobility/bike_rides_daily.csv"
API = "/api/v1"
BASE = "http://127.0.0.1"
LARGEST = 2_000_000
MEMORY = 2_000_000_000


@pytest.fixture(scope="session")
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


def link_to(table: str) -> str:
    return f'href="/table?{urlencode({"name": table})}"'


def ended(client: TestClient, number: str) -> dict[str, Any]:
    for _ in range(600):
        job = data(client, f"/jobs/{number}")
        if job["state"] not in ("queued", "running"):
            return dict(job)
        time.sleep(0.1)
    raise AssertionError("the job never ends")


PAGES = [
    "/", "/?like=shop&sort=name&page=1", "/find?q=Berlin", "/problems", "/search", "/pair", "/map", "/api",
    "/table?name=shop/orders.csv", "/nothing", f"/search?query=table:{RIDES}",
]  # fmt: skip


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


def clean(response: Any, status: int = 200) -> str:
    assert response.status_code == status, response.text
    document = Document(response.text)
    assert document.wrong == []
    assert document.tags.count("script") == response.text.count("</script>")
    assert "<script>alert" not in response.text
    assert "<img src=x" not in response.text
    assert "49" not in re.findall(r"<h1[^>]*>([^<]*)", response.text)
    return str(response.text)


def check_map(found: dict[str, Any]) -> None:
    """No circle lies on another, or beyond the picture."""
    width, height = found["size"]
    circles = [(each["x"], each["y"], each["radius"]) for each in found["nodes"]]
    assert all(radius <= x <= width - radius and radius <= y <= height - radius for x, y, radius in circles)
    for (x, y, radius), (u, v, other) in combinations(circles, 2):
        assert math.hypot(x - u, y - v) >= radius + other, "one circle on another"
