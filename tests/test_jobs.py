"""What takes long on a server: jobs, their workers, queues and what they may take."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import lakescope
from helpers.visitors import API, LARGEST, MEMORY, RIDES, data, ended
from lakescope.errors import LakescopeError
from lakescope.faces.serving.jobs import Jobs
from lakescope.faces.serving.service import Service
from lakescope.faces.serving.worker import Worker
from lakescope.lake import Lake
from lakescope.questions.find import FindRequest

pytest_plugins = ["helpers.visitors"]


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
            found = asking.submit(service.at_once, "", FindRequest(text="Berlin")).result(timeout=30)
            compiled.set()
    finally:
        compiled.set()
        warming.join(60)
    assert any(each["kind"] == "value" for each in found["records"])
