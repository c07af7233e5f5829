"""Whatever happens to a build: the old index answers until the new one is complete, and the new one is right."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import lakescope
from lakescope.build import build as build_module
from lakescope.build.build import build
from lakescope.errors import BuildFailed
from lakescope.store.writer import IndexWriter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from helpers.cluster import Driver, Place

pytest_plugins = ["helpers.cluster"]

#: Small, so that even this lake makes more pieces than there are cores.
UNIT_BYTES = 1 << 16

Contents = dict[str, Any]


# --- a lake with an index, and what it becomes ----------------------------------------------------------------------


class Scene:
    """A lake that has changed since it was indexed, its old index, and what the indexes before and after say."""

    def __init__(self, folder: Path, spark: SparkSession) -> None:
        self.lake = folder / "lake"
        self.old_index = folder / "old.idx"
        _write_lake(self.lake, range(6))
        build(self.lake, self.old_index, spark=spark, unit_bytes=UNIT_BYTES)
        _write_lake(self.lake, range(3, 12))
        build(self.lake, folder / "new.idx", spark=spark, unit_bytes=UNIT_BYTES)
        self.old, self.new = _contents(self.old_index), _contents(folder / "new.idx")
        assert self.old != self.new

    def copy(self, folder: Path) -> Path:
        """The old index at a place of its own."""
        return Path(shutil.copytree(self.old_index, folder / "lake.idx"))

    def state(self, index: Path) -> str:
        """Which of the two a whole index is: ``old`` or ``new``."""
        found = _contents(index)
        assert found in (self.old, self.new), "neither the old index nor the new one"
        return "old" if found == self.old else "new"


def _write_lake(lake: Path, numbers: range) -> None:
    shutil.rmtree(lake, ignore_errors=True)
    lake.mkdir()
    for number in numbers:
        lines = [f"{i},{i * number % 101},name {i % 13},{i / (number + 1):.4f}" for i in range(900 + 300 * number)]
        (lake / f"table-{number}.csv").write_text("\n".join([f"id,n{number},name,share", *lines, ""]))


def _contents(index: Path) -> Contents:
    from helpers.cluster import contents

    lake = lakescope.open(index)
    lake.verify()
    return contents(lake)


def _leftovers(index: Path) -> list[str]:
    """Files below an index that its manifest does not name."""
    manifest = lakescope.open(index)._index.manifest
    copies = {f"{segment}/manifest.json" for segment in manifest.segments}
    named = {file.path for file in manifest.files} | copies | {"manifest.json", ".lock"}
    found = {str(path.relative_to(index)) for path in index.rglob("*") if path.is_file()}
    folders = {str(path.relative_to(index)) for path in index.iterdir() if path.is_dir()} - {"segments"}
    return sorted((found - named) | folders)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Scene:
    return Scene(tmp_path_factory.mktemp("faults"), spark)


def _wait_for(condition: Callable[[], bool], seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.02)


# --- killed at any write --------------------------------------------------------------------------------------------


def _die_at_write(which: int, index: Path) -> None:
    """Make this process kill itself just before its n-th write below an index: whatever changes a file or directory."""
    writing = os.O_WRONLY | os.O_RDWR | os.O_CREAT
    sync = os.fsync
    count = 0

    def step() -> None:
        nonlocal count
        count += 1
        if count == which:
            os.kill(os.getpid(), signal.SIGKILL)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        changes = event in ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.link", "os.symlink")
        if event == "open" and isinstance(arguments[2], int):
            changes = bool(arguments[2] & writing)
        if changes and any(isinstance(a, str | os.PathLike) and str(a).startswith(str(index)) for a in arguments):
            step()

    def counted_sync(handle: int) -> None:
        step()
        sync(handle)

    os.fsync = counted_sync
    sys.addaudithook(hook)


def test_a_build_killed_at_any_write_of_its_publishing_loses_nothing(
    tmp_path: Path, scene: Scene, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The build is real; it is stopped before it publishes, copied and killed at the first write, the second, ..."""
    publish = IndexWriter.publish
    cases: list[Path] = []

    def publish_often(self: IndexWriter, *arguments: Any, **more: Any) -> Any:
        while True:
            case = tmp_path / f"case-{len(cases) + 1}"
            shutil.copytree(self.path, case)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # other threads: the child needs none of them
                child = os.fork()
            if child == 0:
                try:
                    self.staging = case / self.staging.relative_to(self.path)
                    self.path = case
                    _die_at_write(len(cases) + 1, case)
                    publish(self, *arguments, **more)
                finally:
                    os._exit(0)
            status = os.waitpid(child, 0)[1]
            cases.append(case)
            if not os.WIFSIGNALED(status):
                return publish(self, *arguments, **more)

    monkeypatch.setattr(IndexWriter, "publish", publish_often)
    index = scene.copy(tmp_path)
    build(scene.lake, index, spark=spark, unit_bytes=UNIT_BYTES)
    monkeypatch.undo()
    assert scene.state(index) == "new"
    states = [scene.state(case) for case in cases]
    assert len(cases) > 10, "too few writes were seen"
    assert states == sorted(states, reverse=True), "once new, it stays new"
    assert {"old", "new"} == set(states)
    last_old = states.count("old") - 1
    for case in (cases[0], cases[last_old], cases[last_old + 1]):
        assert _leftovers(case), "a build that died here left nothing to clean up"
        build(scene.lake, case, spark=spark, unit_bytes=UNIT_BYTES)
        assert scene.state(case) == "new"
        assert _leftovers(case) == []


def build_at(lake: str, out: str, master: str, unit_bytes: int) -> dict[str, Any]:
    from lakescope.build.build import build

    return build(lake, out, master=master, unit_bytes=unit_bytes).summary


@pytest.mark.cluster
def test_a_build_killed_at_ten_moments_loses_nothing(tmp_path: Path, scene: Scene, connect: Place) -> None:
    from helpers.cluster import end, run_driver, start_driver

    def arguments(index: Path) -> tuple[object, ...]:
        return build_at, scene.lake, index, connect.master, UNIT_BYTES

    began = time.monotonic()
    run_driver(*arguments(scene.copy(tmp_path / "first")), environment=connect.environment)
    began = time.monotonic()
    run_driver(*arguments(scene.copy(tmp_path / "undisturbed")), environment=connect.environment)
    whole = time.monotonic() - began
    staged, states = [], []
    for moment in range(10):
        index = scene.copy(tmp_path / str(moment))
        process = start_driver(*arguments(index), environment=connect.environment)
        try:
            time.sleep(whole * (moment + 0.5) / 10)
            process.kill()
            process.communicate(timeout=30)
        finally:
            end(process)
        states.append(scene.state(index))
        if (index / "staging").exists():
            staged.append(index)
    assert "old" in states
    assert staged, "no build was killed while it worked"
    for index in (staged[0], staged[-1]):
        run_driver(*arguments(index), environment=connect.environment)
        assert scene.state(index) == "new"
        assert _leftovers(index) == []


# --- interrupted ----------------------------------------------------------------------------------------------------


def waiting_cli(lake: str, out: str, started: str, *options: str) -> None:
    """The command line, with a scan that takes its time."""
    import sys

    from lakescope.build import build
    from lakescope.faces.cli import main

    shipped = build.Shipped

    class Slow:
        @staticmethod
        def of(task: Any) -> Any:
            inner = shipped.of(task)

            def run(batches: Any) -> Any:
                import pathlib
                import time

                pathlib.Path(started).touch()
                time.sleep(60)
                yield from inner(batches)

            return run

    build.Shipped = Slow  # type: ignore[misc, assignment]
    sys.argv = ["lakescope", "index", lake, "--out", out, *options]
    main()


def _strike(
    scene: Scene, index: Path, strike: Callable[[int], None], environment: dict[str, str] | None, *options: str
) -> tuple[subprocess.Popen[str], str]:
    """Do something to a build while it scans; returns its process and what it wrote to standard error."""
    from helpers.cluster import end, start_driver

    started = index.with_name("started")
    process = start_driver(waiting_cli, scene.lake, index, started, *options, environment=environment)
    try:
        _wait_for(lambda: started.exists() or process.poll() is not None)
        strike(process.pid)
        _, errors = process.communicate(timeout=60)
        _wait_for(lambda: not _alive(process.pid), 30)
    finally:
        end(process)
    return process, errors


def _press_ctrl_c(pid: int) -> None:
    """What a terminal does: every process of its foreground group gets the signal."""
    os.killpg(pid, signal.SIGINT)


def _kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


def _alive(group: int) -> bool:
    """Whether a process of a group still runs: Spark's JVM, for one. What only waits to be reaped does not count."""
    listed = subprocess.run(["ps", "-axo", "pgid=,stat="], capture_output=True, text=True, check=True).stdout
    processes = [line.split() for line in listed.splitlines()]
    return any(int(owner) == group and not state.startswith("Z") for owner, state in processes)


def _assert_untouched(scene: Scene, index: Path) -> None:
    assert scene.state(index) == "old"
    assert _leftovers(index) == []
    with IndexWriter(index):
        pass  # The lock is free.


def test_ctrl_c_leaves_the_old_index_and_nothing_else(tmp_path: Path, scene: Scene) -> None:
    index = scene.copy(tmp_path)
    process, errors = _strike(scene, index, _press_ctrl_c, None, "--master", "local[2]")
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    _assert_untouched(scene, index)


def test_a_local_build_that_is_killed_takes_spark_along_and_loses_nothing(
    tmp_path: Path, scene: Scene, spark: SparkSession
) -> None:
    index = scene.copy(tmp_path)
    process, errors = _strike(scene, index, _kill, None, "--master", "local[2]")
    assert process.returncode == -signal.SIGKILL, errors
    assert scene.state(index) == "old"
    assert _leftovers(index)
    build(scene.lake, index, spark=spark, unit_bytes=UNIT_BYTES)
    assert scene.state(index) == "new"
    assert _leftovers(index) == []


@pytest.mark.cluster
def test_ctrl_c_on_spark_connect_leaves_the_old_index_and_nothing_else(
    tmp_path: Path, scene: Scene, connect: Place
) -> None:
    index = scene.copy(tmp_path)
    process, errors = _strike(scene, index, _press_ctrl_c, connect.environment, "--master", connect.master)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    _assert_untouched(scene, index)


# --- tasks that fail ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["raise", "exit"])
def test_a_task_that_always_fails_ends_the_build_and_leaves_the_old_index(
    tmp_path: Path, scene: Scene, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    class Failing:
        @staticmethod
        def of(task: Any) -> Any:
            def run(batches: Any) -> Any:
                import os

                if how == "exit":
                    os._exit(1)
                raise RuntimeError("the disk is on fire")

            return run

    monkeypatch.setattr(build_module, "Shipped", Failing)
    index = scene.copy(tmp_path)
    with pytest.raises(BuildFailed, match="the disk is on fire" if how == "raise" else "the Spark job failed") as told:
        build(scene.lake, index, spark=spark, unit_bytes=UNIT_BYTES)
    assert "\n" not in told.value.message
    _assert_untouched(scene, index)


def faulty_build(
    spark: SparkSession, lake: str, out: str, unit_bytes: int, folder: str, task: str, how: str
) -> dict[str, Any] | str:
    """Build with a task whose first attempt, or first attempts, go wrong; says what went wrong if the build fails.

    ``raise`` and ``exit`` let one attempt fail after it has done its work; ``wait`` holds every attempt until ``go``;
    a number lets one attempt die when it opens its n-th file to write.
    """
    from lakescope.build import build
    from lakescope.errors import BuildFailed

    shipped = build.Shipped

    class Faulty:
        @staticmethod
        def of(work: Any) -> Any:
            inner = shipped.of(work)

            def run(batches: Any) -> Any:
                import os
                import pathlib
                import time
                import uuid

                place = pathlib.Path(folder)
                if how == "wait":
                    (place / f"waits-{uuid.uuid4().hex}").touch()
                    deadline = time.monotonic() + 60
                    while not (place / "go").exists() and time.monotonic() < deadline:
                        time.sleep(0.05)
                    yield from inner(batches)
                    return
                try:
                    (place / "failed").touch(exist_ok=False)
                    first = True
                except FileExistsError:
                    first = False
                if first and how.isdecimal():
                    import sys

                    seen = [0]

                    def die(event: str, arguments: Any) -> None:
                        if event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR) and out in str(arguments[0]):
                            seen[0] += 1
                            if seen[0] == int(how):
                                (place / "died").touch()
                                os._exit(1)

                    sys.addaudithook(die)
                    yield from inner(batches)
                    seen[0] = -(10**9)
                    return
                yield from inner(batches)
                if first and how == "exit":
                    os._exit(1)
                if first:
                    raise RuntimeError("this attempt fails")

            return run if type(work).__name__ == task else inner

    build.Shipped = Faulty  # type: ignore[misc, assignment]
    try:
        return build.build(lake, out, spark=spark, unit_bytes=unit_bytes).summary
    except BuildFailed as error:
        return str(error)
    finally:
        build.Shipped = shipped  # type: ignore[misc]


@pytest.mark.cluster
@pytest.mark.parametrize("how", ["raise", "exit"])
@pytest.mark.parametrize("task", ["ScanBins", "MergeStates"])
def test_a_task_that_fails_once_is_tried_again_and_counts_once(
    tmp_path: Path, scene: Scene, cluster_driver: Driver, task: str, how: str
) -> None:
    index = scene.copy(tmp_path)
    summary = cluster_driver.call(faulty_build, scene.lake, index, UNIT_BYTES, tmp_path, task, how)
    assert (tmp_path / "failed").exists()
    assert isinstance(summary, dict), summary
    assert scene.state(index) == "new"
    assert _leftovers(index) == []


@pytest.mark.slow
@pytest.mark.cluster
@pytest.mark.parametrize("task", ["ScanBins", "MergeStates"])
def test_a_worker_that_dies_at_any_file_it_writes_costs_time_only(
    tmp_path: Path, scene: Scene, cluster_driver: Driver, task: str
) -> None:
    number = 1
    while True:
        folder = tmp_path / str(number)
        folder.mkdir()
        index = scene.copy(folder)
        summary = cluster_driver.call(faulty_build, scene.lake, index, UNIT_BYTES, folder, task, str(number))
        assert isinstance(summary, dict), summary
        assert scene.state(index) == "new"
        assert _leftovers(index) == []
        if not (folder / "died").exists():
            break
        number += 1
    assert number > 3, "too few files were seen"


@pytest.mark.cluster
@pytest.mark.parametrize("task", ["ScanBins", "MergeStates"])
def test_a_lost_executor_costs_time_only(
    tmp_path: Path, scene: Scene, cluster: Place, cluster_driver: Driver, task: str
) -> None:
    """Killed while it scans, or after it scanned: then what it had scanned is gone with it."""
    index = scene.copy(tmp_path)
    _wait_for(lambda: len(cluster.executors()) == 2)
    cluster_driver.send(faulty_build, scene.lake, index, UNIT_BYTES, tmp_path, task, "wait")
    _wait_for(lambda: len(list(tmp_path.glob("waits-*"))) >= 2)
    os.kill(cluster.executors()[0], signal.SIGKILL)
    (tmp_path / "go").touch()
    answer = cluster_driver.answer()
    if isinstance(answer, dict):
        assert scene.state(index) == "new"
    else:
        assert "executor" in answer.lower(), "the reason is not told"
        assert scene.state(index) == "old"
    assert _leftovers(index) == []
