"""A server follows its index: it answers from what is published, without being started again."""

from __future__ import annotations

import os
import random
import socket
import threading
import time
import weakref
from pathlib import Path

import pytest
import uvicorn
from typer.testing import CliRunner

import lakescope
from helpers.histories import history, write_table
from lakescope.errors import IndexDamaged
from lakescope.faces.cli.app import app
from lakescope.faces.serving import service as service_module
from lakescope.faces.serving.service import Service
from lakescope.questions.catalog import TablesRequest
from lakescope.questions.joinable import JoinableRequest
from lakescope.store import mapped
from lakescope.store.manifest import Manifest


@pytest.fixture
def service(tmp_path: Path) -> Service:
    index = history(tmp_path, seed=8, tables=3, steps=0)
    return Service(lakescope.open(index), largest=1_000, memory=1 << 30)


def test_what_is_published_is_answered_from(service: Service, tmp_path: Path) -> None:
    before = service.joins("", JoinableRequest(query="t1.csv", on="key"))
    names = {each["table"] for each in service.known(TablesRequest())}
    assert not service.look()
    (tmp_path / "lake/copy.csv").write_bytes((tmp_path / "lake/t1.csv").read_bytes())
    lakescope.open(service.lake.path).update()
    assert service.joins("", JoinableRequest(query="t1.csv", on="key")) == before, "nobody has looked yet"
    old = service.lake
    with service._lane() as lane:
        assert service.look()
        assert lane.info()["generation"] == old.info()["generation"], "who is being answered goes on"
    assert {each["table"] for each in service.known(TablesRequest())} == {*names, "copy.csv"}
    assert service.joins("", JoinableRequest(query="t1.csv", on="key"))["records"][0]["table"] == "copy.csv"
    assert not service.look()
    service.close()


def test_an_index_that_was_damaged_and_repaired_is_followed(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the server looks first or somebody asks: the catalog is that of the index that answers."""
    write_table(tmp_path / "lake/new.csv", random.Random(3))
    lakescope.open(service.lake.path).update()
    monkeypatch.setattr(mapped, "SMALL", 0)
    assert service.look()
    assert "new.csv" in {each["table"] for each in service.known(TablesRequest())}
    service.joins("", JoinableRequest(query="t1.csv", on="key"))
    index = Path(service.lake.path)
    newest = [file for file in Manifest.load(index).files if file.kind == "sets"][-1]
    os.truncate(index / newest.path, newest.size - 1)
    with pytest.raises(IndexDamaged, match=newest.path):
        service.joins("", JoinableRequest(query="t2.csv", on="key"))
    lakescope.repair(index)
    found = service.joins("", JoinableRequest(query="t2.csv", on="key"))["records"]
    assert "new.csv" not in {each["table"] for each in found}
    assert "new.csv" not in {each["table"] for each in service.known(TablesRequest())}, "the catalog went along"
    assert service.look(), "the question opened it anew: jobs and workers do not know yet"
    assert "new.csv" not in {each["table"] for each in service.known(TablesRequest())}
    service.close()


def test_lakes_that_were_replaced_are_let_go(service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where one follows the other before the first is gone: memory and open files of an index go with it."""
    monkeypatch.setattr(service_module, "QUICK", 0.5)
    replaced = []
    for number in range(2):
        service.joins("", JoinableRequest(query="t1.csv", on="key"))
        write_table(tmp_path / f"lake/new{number}.csv", random.Random(number))
        lakescope.open(service.lake.path).update()
        replaced.append(weakref.ref(service.lake._index))
        assert service.look()
    ends = time.monotonic() + 60
    while any(each() for each in replaced) and time.monotonic() < ends:
        time.sleep(0.1)
    assert [each() for each in replaced] == [None, None]
    service.close()


def test_the_command_holds_no_lake_that_was_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first lake comes from the command line, whose functions run as long as the server does."""
    monkeypatch.setattr(service_module, "QUICK", 0.1)
    index = history(tmp_path, seed=8, tables=3, steps=0)
    gone: list[bool] = []

    def run(server: uvicorn.Server, sockets: list[socket.socket]) -> None:
        service = server.config.app._app._app._app.state.service
        first = weakref.ref(service.lake._index)
        write_table(tmp_path / "lake/new.csv", random.Random(1))
        lakescope.open(index).update()
        assert service.look()
        ends = time.monotonic() + 60
        while first() is not None and time.monotonic() < ends:
            time.sleep(0.1)
        gone.append(first() is None)
        service.close()
        sockets[0].close()

    monkeypatch.setattr(uvicorn.Server, "run", run)
    result = CliRunner().invoke(app, ["serve", str(index), "--port", "0"])
    assert result.exit_code == 0, result.output
    assert gone == [True]


def test_garbage_is_collected_by_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A collector that is at work does nothing for the next one, who would then leave alone what was to go."""
    done: list[str] = []

    def collect() -> int:
        done.append("begins")
        time.sleep(0.05)
        done.append("ends")
        return 0

    monkeypatch.setattr(service_module.gc, "collect", collect)
    threads = [threading.Thread(target=service_module._collect) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    service_module.gc.unfreeze()
    assert done == ["begins", "ends"] * 3


def test_workers_open_it_anew(service: Service, tmp_path: Path) -> None:
    write_table(tmp_path / "lake/new.csv", random.Random(9))
    lakescope.open(service.lake.path).update()
    worker = service.jobs._workers["quick"]
    worker.start()
    first = worker._process
    assert first is not None
    assert service.look()
    assert first.poll() is not None, "one that nobody asks would keep files that are removed"
    answer = worker.ask("head", {"asked": {"query": "new.csv"}}, 60.0, lambda *_: None)
    assert answer["disguised"] == []
    assert worker._process is not first
    service.close()
