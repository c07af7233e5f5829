"""The command that serves: how it starts, ends, and refuses."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from lakescope.faces.cli.serving import _listen
from lakescope.lake import Lake


def started(*arguments: str) -> tuple[subprocess.Popen[str], str]:
    program = [sys.executable, "-c", "from lakescope.faces.cli import main; main()", "serve", *arguments]
    process = subprocess.Popen(program, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    line = process.stderr.readline()
    found = re.search(r"http://\S+", line)
    assert found is not None, line
    return process, found[0]


def test_serving_and_ending(demo_index: Lake) -> None:
    process, address = started(demo_index.path, "--port", "0")
    try:
        for _ in range(100):
            try:
                with urllib.request.urlopen(address + "healthz") as response:
                    assert json.load(response)["ok"]
                break
            except OSError:
                time.sleep(0.1)
        with urllib.request.urlopen(address) as response:
            assert b"Look into your lake" in response.read()
    finally:
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=20)
    assert "Traceback" not in said
    assert process.returncode in (0, 130)


def test_elsewhere_a_token_is_made(demo_index: Lake) -> None:
    process, address = started(demo_index.path, "--port", "0", "--host", "0.0.0.0")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    assert re.search(r"\?token=[\w-]{32}$", address)


def test_an_address_can_be_opened_as_soon_as_it_is_told() -> None:
    with _listen("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname(), timeout=5):
        pass


def test_serving_what_cannot_be_served(demo_index: Lake, tmp_path: Path) -> None:
    program = [sys.executable, "-c", "from lakescope.faces.cli import main; main()", "serve"]
    short = tmp_path / "short"
    short.write_text("short\n")
    for arguments, word in (
        ([str(tmp_path)], "not a Lakescope index"),
        ([demo_index.path, "--token", "a secret of some length"], "can be read by everybody"),
        ([demo_index.path, "--token-file", str(short)], "too short"),
        ([demo_index.path, "--token-file", str(tmp_path / "nothing")], "cannot read the token"),
        ([demo_index.path, "--behind-proxy", "lake.example"], "no address"),
        ([demo_index.path, "--host", "256.1.1.1"], "cannot listen"),
        ([demo_index.path, "--max-upload", "much"], "--max-upload"),
    ):
        ran = subprocess.run([*program, *arguments], capture_output=True, text=True, timeout=60, check=False)
        assert ran.returncode == 2, ran.stderr
        assert word in ran.stderr


def test_serving_imports_neither_spark_nor_pandas() -> None:
    code = (
        "import sys; from lakescope.faces.serving.app import create_app\n"
        "assert not {'pyspark', 'pandas'} & set(sys.modules), sorted(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
