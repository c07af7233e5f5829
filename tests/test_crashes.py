"""An operation that is killed at any write, or that a disk refuses at any write: the old index or the new one."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lakescope
from helpers import crashes
from helpers.crashes import FAULTS, OPERATIONS
from lakescope.errors import IndexLocked


def run(folder: Path, fault: str, *operations: str) -> dict[str, dict[str, Any]]:
    """Run operations in a process of their own, stopping them everywhere."""
    command = [sys.executable, str(Path(crashes.__file__)), str(folder), fault, *operations]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told: dict[str, dict[str, Any]] = json.loads(done.stdout)
    for operation, report in told.items():
        print(f"{operation}: {report['points']} writes, {report['kinds']}, {report['states']}")
        assert not report["wrong"], f"{operation}: {report['wrong'][:5]}"
        assert report["points"] > 20
    return told


def test_killed_at_any_write(tmp_path: Path) -> None:
    told = run(tmp_path, "killed", *(each for each in OPERATIONS if each != "first"))
    assert sum(report["points"] for report in told.values()) > 1000
    for report in told.values():
        assert report["states"].keys() == {"old", "new"}
        assert report["different"] > 10
    kinds = {kind for report in told.values() for kind in report["kinds"]}
    assert kinds >= {"create", "write", "torn", "sync", "os.rename", "os.remove", "os.mkdir", "os.rmdir"}


def test_refused_at_any_write(tmp_path: Path) -> None:
    for report in run(tmp_path, ",".join(FAULTS), "remove").values():
        assert report["messages"]


@pytest.mark.slow
def test_killed_at_any_write_thoroughly(tmp_path: Path) -> None:
    """Every write, also those that differ in the staging area alone."""
    for report in run(tmp_path, "killed-thoroughly", *OPERATIONS).values():
        assert report["different"] == report["points"]


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_every_operation_refused_at_any_write(tmp_path: Path, fault: str) -> None:
    run(tmp_path, fault, *OPERATIONS)


# --- several at once --------------------------------------------------------------------------------------------------


def test_readers_and_two_writers_at_once(tmp_path: Path) -> None:
    """Two writers update and compact; a reader opens what is there meanwhile: whole, and one or the other."""
    for number in range(3):
        crashes.write_table(tmp_path / "lake" / f"t{number}.csv", number)
    index = tmp_path / "lake.idx"
    with crashes.without_spark():
        lakescope.index(tmp_path / "lake", index)
    ended = threading.Event()
    wrong: list[str] = []
    done: Counter[str] = Counter()

    def work(what: str, step: Callable[[int], None], rounds: int) -> None:
        for turn in range(rounds):
            try:
                step(turn)
                done[what] += 1
            except IndexLocked:
                done["locked"] += 1
                time.sleep(0.002)
            except Exception as error:
                wrong.append(f"{what}: {type(error).__name__}: {error}")
            if ended.is_set():
                return

    def update(turn: int) -> None:
        crashes.write_table(tmp_path / "lake" / "t0.csv", 100 + turn)
        lakescope.open(index).update()

    def read(_: int) -> None:
        lake = lakescope.open(index)
        rows = dict(zip(*(lake.tables()[name].to_pylist() for name in ("table", "rows")), strict=True))
        assert all(each["rows"] == rows[each["table"]] for each in lake.columns().to_pylist()), "two generations mixed"
        assert sorted(rows) == ["t0.csv", "t1.csv", "t2.csv"]
        assert lake.joinable("t2.csv", on="key", own=True)
        lake.verify()

    threads = [
        threading.Thread(target=work, args=("update", update, 12)),
        threading.Thread(target=work, args=("compact", lambda _: lakescope.open(index).compact(), 10**6)),
        threading.Thread(target=work, args=("read", read, 10**6)),
    ]
    for thread in threads:
        thread.start()
    threads[0].join()
    ended.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert done["read"] > 1
    assert done["compact"]
    lake = lakescope.open(index)
    lake.update()
    assert list(lake.verify(deep=True)) == []
    assert crashes.leftovers(index) == []


# --- real disks -------------------------------------------------------------------------------------------------------

#: A disk of the size that is given, with the index on it; then a command. Own mounts, gone with the process.
FULL = "mount -t tmpfs -o size=$1 none $2 && cp -r $3 $2/lake.idx && shift 3 && exec $@"
#: The index on a disk that is read-only.
READ_ONLY = "mount --bind $2 $2 && mount -o remount,bind,ro $2 && shift 3 && exec $@"


def on_a_disk(script: str, folder: Path, index: Path, size: int, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command with a disk of its own."""
    unshared = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    if not shutil.which("unshare") or subprocess.run([*unshared, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this system lets nobody mount a disk of his own")
    arguments = [*unshared, script, "sh", str(size), str(folder), str(index)]
    called = [sys.executable, "-m", "lakescope", *command]
    return subprocess.run([*arguments, *called], capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["full", "read-only"])
def test_a_real_disk_that_refuses(tmp_path: Path, how: str) -> None:
    for number in range(3):
        crashes.write_table(tmp_path / "lake" / f"t{number}.csv", number)
    index, folder = tmp_path / "lake.idx", tmp_path / "disk"
    folder.mkdir()
    with crashes.without_spark():
        lakescope.index(tmp_path / "lake", index)
    crashes.write_table(tmp_path / "lake" / "t1.csv", 11)
    before = crashes.answers(index)
    if how == "full":
        size = sum(-(-path.stat().st_size // 4096) * 4096 + 4096 for path in index.rglob("*")) + 8 * 4096
        done = on_a_disk(FULL, folder, index, size, "update", str(folder / "lake.idx"), "-q")
        reason, code = "No space left on device", 1
    else:
        done = on_a_disk(READ_ONLY, index, index, 0, "update", str(index), "-q")
        reason, code = "Read-only file system", 2
        assert crashes.answers(index) == before
    assert done.returncode == code, done.stderr
    assert reason in done.stderr
    assert "cannot write" in done.stderr
    assert "hint:" in done.stderr
    assert "Traceback" not in done.stderr
