"""The description of the interface, and requests made from it at random."""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import urlencode

import pytest
from starlette.testclient import TestClient

from helpers.visitors import API, BASE, LARGEST, MEMORY, RIDES
from lakescope.faces.serving.app import create_app
from lakescope.faces.serving.safety import Rules
from lakescope.lake import Lake

pytest_plugins = ["helpers.visitors"]


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
