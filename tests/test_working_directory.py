"""No code that lies in the working directory runs, whoever starts which process."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest
import typer.main

import lakescope
from helpers.planted import MODULES, PlantedPlace, plant
from lakescope import processes
from lakescope.engines.shards.pool import Pool
from lakescope.faces.cli.app import app
from lakescope.faces.serving.worker import Worker
from lakescope.questions import COMMANDS
from lakescope.sources.io.isolated import Helper

if TYPE_CHECKING:
    from typing import Any

    from helpers.cluster import Driver

pytest_plugins = ["helpers.cluster"]

#: One run of each command, in this order; ``{index}`` was made by the first. Commands that go on are ended.
RUNS = {
    "index": "index . --out {index} --quiet",
    "info": "info {index}",
    "timings": "timings {index}",
    "find": "find {index} name",
    "map": "map {index}",
    "head": "head {index} ./people.csv",
    "describe": "describe {index} ./members.csv",
    "shared": "shared {index} ./people.csv ./names.csv",
    "tables": "tables {index}",
    "columns": "columns {index}",
    "profile": "profile {index} people.csv",
    "problems": "problems {index}",
    "verify": "verify {index} --deep",
    "repair": "repair {index} --dry-run",
    "history": "history {index} people.csv",
    "drift": "drift {index}",
    "join": "join {index} ./members.csv --on member",
    "paths": "paths {index} ./members.csv --on member",
    "correlate": "correlate {index} ./members.csv --key member --target fee",
    "augment": "augment {index} ./members.csv --key member --target fee --out ../augmented.csv",
    "joined": "joined {index} ./members.csv people.csv --on member --column id --out ../joined.csv",
    "inclusions": "inclusions {index}",
    "keys": "keys {index}",
    "keys primary": "keys primary {index}",
    "keys diagram": "keys diagram {index} --form mermaid",
    "headers": "headers --help",
    "headers suggest": "headers suggest {index} ./plain.csv",
    "headers write": "headers write {index} ./plain.csv --out ../named.csv",
    "headers check": "headers check {index}",
    "headers learn": "headers learn {index}",
    "headers evaluate": "headers evaluate {index}",
    "headers detect": "headers detect ./plain.csv",
    "fds": "fds ./weights.orc",
    "fds compare": "fds compare ./weights.orc ./weights.orc",
    "fds violations": "fds violations ./people.csv id->name",
    "fds split": "fds split ./weights.orc",
    "fds reference": "fds reference ./weights.orc",
    "fds study": "fds study ./people.csv --shares 0.1 --versions 1 --quiet",
    "fds lake": "fds lake {index} --quiet",
    "autojoin": "autojoin ./names.csv ./people.csv --budget 5s",
    "autojoin lake": "autojoin lake {index} ./names.csv --budget 5s",
    "fuzzyjoin": "fuzzyjoin ./names.csv ./people.csv --on person=name",
    "count": "count ./weights.orc:id --exact",
    "count stored": "count stored ./weights.orc",
    "count advise": "count advise",
    "count study": "count study --max 1000 --seeds 1 --with hll++ --quiet",
    "report": "report {index} --out ../site --quiet",
    "push": "push {index} memory://elsewhere/lake.idx --quiet",
    "mcp": "mcp {index} --allow-files .",
    "serve": "serve {index} --port 0",
    "add": "add {index} ../more.csv",
    "update": "update {index}",
    "remove": "remove {index} names.csv",
    "compact": "compact {index}",
    "watch": "watch {index} --once",
    "demo": "demo ../demo --scale 0.1",
}
#: Runs that look at the file and refuse it: it is none of the kind that they are about.
REFUSED = {RUNS["count stored"]}


@pytest.fixture
def place(tmp_path: Path) -> Iterator[PlantedPlace]:
    """A planted lake; in the end nothing of it was run."""
    made = plant(tmp_path / "place")
    yield made
    assert made.markers == []


@pytest.fixture(scope="module")
def planted_index(tmp_path_factory: pytest.TempPathFactory) -> tuple[PlantedPlace, str]:
    """An index that a command made of a planted lake."""
    place = plant(tmp_path_factory.mktemp("planted") / "place")
    index = str(place.root / "lake.idx")
    run(place, RUNS["index"], index)
    return place, index


def run(place: PlantedPlace, line: str, index: str) -> str:
    command = place.command(*(each.format(index=index) for each in line.split()))
    ran = subprocess.run(
        command,
        cwd=place.lake,
        env=place.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    expected = 2 if line in REFUSED else 0
    assert ran.returncode == expected, f"{line}\n{ran.stdout[-500:]}{ran.stderr[-3000:]}"
    return ran.stdout


def test_a_trap_that_is_imported_is_seen(tmp_path: Path) -> None:
    made = plant(tmp_path / "place")
    for module in MODULES:
        name = module.partition("/")[0].removesuffix(".py")
        subprocess.run([sys.executable, "-S", "-c", f"import {name}"], cwd=made.lake, capture_output=True, check=False)
    assert len(made.markers) == len(MODULES)


def test_every_command_has_a_run() -> None:
    listed = typer.main.get_command(app).list_commands(None)  # type: ignore[attr-defined, arg-type]
    assert {*listed, *COMMANDS} == set(RUNS)


@pytest.mark.parametrize("name", [name for name in RUNS if name not in ("serve", "index", "demo")])
def test_no_command_runs_code_of_the_lake(name: str, planted_index: tuple[PlantedPlace, str]) -> None:
    place, index = planted_index
    (place.root / "more.csv").write_text("id,more\n1,2\n")
    run(place, RUNS[name], index)
    assert place.markers == []


@pytest.mark.slow
def test_the_demo_runs_no_code_of_the_lake(place: PlantedPlace) -> None:
    """On Spark, which also looks for itself above the working directory."""
    run(place, RUNS["demo"], "")


def test_a_server_that_answers_about_files_runs_no_code_of_the_lake(planted_index: tuple[PlantedPlace, str]) -> None:
    place, index = planted_index
    process = subprocess.Popen(
        place.command(*(each.format(index=index) for each in RUNS["serve"].split())),
        cwd=place.lake,
        env=place.environment(),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        address = re.search(r"http://\S+", process.stderr.readline())
        assert address is not None
        with httpx.Client(base_url=f"{address[0]}api/v1", timeout=120) as client:
            content = (place.lake / "members.csv").read_bytes()
            file = client.post("/uploads", files={"file": ("members.csv", content)}).json()["data"]["query"]
            assert list((place.root / "uploads").glob("lakescope-*/*/table.csv"))
            for path, options in (("joinable", {"on": "member"}), ("correlated", {"key": "member", "target": "fee"})):
                asked = client.get(f"/{path}", params={"query": file, "wait": 60, **options})
                assert asked.json()["data"]["records"], asked.text
            asked = client.get("/head", params={"query": "table:weights.orc", "wait": 60})
            assert asked.status_code == 200, asked.text
    finally:
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[1]
    assert "Traceback" not in said
    assert place.markers == []


@pytest.fixture
def in_the_lake(
    planted_index: tuple[PlantedPlace, str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[PlantedPlace, str]]:
    """This process works in the lake and has it on its path, as ``python -m`` would."""
    place, _ = planted_index
    monkeypatch.chdir(place.lake)
    monkeypatch.setattr(sys, "path", ["", str(place.lake), *sys.path])
    yield planted_index
    assert place.markers == []


def test_a_helper_finds_nothing_in_the_working_directory(in_the_lake: tuple[PlantedPlace, str]) -> None:
    helper = Helper("lakescope.sources.formats.orc", "answer_questions")
    about, _ = helper.ask("t", {"uri": str(in_the_lake[0].lake / "weights.orc"), "compression": None})
    helper.close()
    assert about["stripes"] == 1


def test_search_processes_find_nothing_in_the_working_directory(in_the_lake: tuple[PlantedPlace, str]) -> None:
    lake = lakescope.open(in_the_lake[1])
    pool = Pool(lake.path, lake._index.manifest.generation, 2)
    assert len(pool.ask("warm", {}, {})) == 2
    pool.close()


def test_a_worker_of_the_server_finds_nothing_in_the_working_directory(in_the_lake: tuple[PlantedPlace, str]) -> None:
    worker = Worker(in_the_lake[1], 4 << 30)
    answer = worker.ask("head", {"asked": {"query": "people.csv"}}, 60, lambda *_: None)
    worker.close()
    assert answer["columns"]


def test_the_path_of_a_child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "link").symlink_to("here")
    monkeypatch.chdir(tmp_path / "here")
    here = [str(tmp_path / "here"), str(tmp_path / "link"), "", ".", "../here", f"{tmp_path}/a:b"]
    assert processes.search_path([*here, "/usr/lib", "below"]) == f"/usr/lib:{tmp_path}/here/below"
    own = str(Path(lakescope.__file__).resolve().parents[1])
    monkeypatch.chdir(own)
    assert processes.search_path([*here[2:4], own]) == f"{own}:{own}:{own}"
    monkeypatch.chdir(tmp_path / "here")
    (tmp_path / "here").rmdir()
    assert processes.search_path(["/usr/lib"]) == "/usr/lib"


_SCRIPT = """
import os, sys
import lakescope
PYSPARKS_OWN = {"SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE"}
before = dict(os.environ)
lake = lakescope.index(sys.argv[1], sys.argv[2])
print(lake.tables().num_rows, *{name for name, _ in os.environ.items() ^ before.items()} - PYSPARKS_OWN)
"""


def test_a_script_that_builds_in_a_lake_keeps_its_environment(place: PlantedPlace) -> None:
    (place.root / "build.py").write_text(_SCRIPT)
    command = [sys.executable, str(place.root / "build.py"), str(place.lake), str(place.root / "lake.idx")]
    # A process of its own looks for settings of numba itself: nobody but its owner may change that.
    environment = {**place.environment(), "NUMBA_CACHE_DIR": ""}
    ran = subprocess.run(
        command, cwd=place.lake, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert ran.stdout.split() == ["5"], ran.stderr[-3000:]


def _safe_workers(spark: Any) -> Any:
    def look(batches: Any) -> Any:
        import sys

        import pyarrow

        for _ in batches:
            yield pyarrow.record_batch([[sys.flags.safe_path]], names=["safe"])

    return [row.safe for row in spark.range(0, 2, 1, 2).mapInArrow(look, "safe boolean").collect()]


@pytest.mark.cluster
def test_workers_of_a_cluster_start_without_their_working_directory(cluster_driver: Driver) -> None:
    """Executors work in folders of their own, in which lies what was sent to them."""
    assert cluster_driver.call(_safe_workers) == [True, True]
