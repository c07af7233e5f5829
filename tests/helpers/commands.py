"""Running the command line in this process, and judging how a command ended."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from lakescope.faces.cli import main


class Ran(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


Run = Callable[..., Ran]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command line in this process."""

    def call(*arguments: str) -> Ran:
        monkeypatch.setattr(sys, "argv", ["lakescope", *arguments])
        try:
            main()
            code = 0
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
        return Ran(code, *capsys.readouterr())

    return call


def from_json(text: str) -> Any:
    """Parse JSON as the standard has it, which knows no NaN and no Infinity."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(text, parse_constant=refuse)


def assert_refused(ran: Ran | subprocess.CompletedProcess[str], code: int, *words: str) -> None:
    """It ended with this code, a message that holds these words, and nothing on standard output."""
    ended, out, err = (ran.code, ran.out, ran.err) if isinstance(ran, Ran) else (ran.returncode, ran.stdout, ran.stderr)
    assert ended == code, err
    assert out == ""
    assert "Traceback" not in err
    for word in words:
        assert word in err, err
