"""An operation that is killed at any write, or that a disk refuses at any write: the old index or the new one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from crashes import FAULTS, OPERATIONS


def run(folder: Path, fault: str, *operations: str) -> dict[str, dict[str, Any]]:
    """Run operations in a process of their own, stopping them everywhere."""
    program = Path(__file__).with_name("crashes.py")
    command = [sys.executable, str(program), str(folder), fault, *operations]
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
        assert {"create", "write", "torn", "sync", "os.rename", "os.remove", "os.mkdir"} <= report["kinds"].keys()


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
