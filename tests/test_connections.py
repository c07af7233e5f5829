"""Connections that do nothing, or too slowly, take nothing from others: over real sockets, with short deadlines."""

from __future__ import annotations

import contextlib
import logging
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn")

from helpers.connections import PATIENT, Address, connected, serving, until
from lakescope.errors import BadRequest
from lakescope.faces.serving.connections import Limits, limits_for
from lakescope.faces.serving.quiet import Sparing
from lakescope.lake import Lake

#: Deadlines that a test need not wait for, and those that none meets.
SHORT = Limits(first=0.3, header=0.3, idle=0.3, stalled=0.3, closing=0.3, look=0.05)
HALF = b"GET /2 HTTP/1.1\r\nhost: x\r\n"
WHOLE = HALF + b"\r\n"


def rest_of(client: socket.socket) -> bytes:
    """What comes until the server closes."""
    found = b""
    with client, contextlib.suppress(ConnectionError):
        while piece := client.recv(1 << 20):
            found += piece
    return found


# Deadlines ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sent", "told", "reason"),
    [
        (b"", b"", "first"),
        (b"G", b"HTTP/1.1 408 ", "header"),
        (HALF, b"HTTP/1.1 408 ", "header"),
        (WHOLE, b"HTTP/1.1 200 ", "idle"),
        (WHOLE + HALF, b"HTTP/1.1 200 ", "idle"),
        (b"POST /2 HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nabc", b"HTTP/1.1 200 ", "idle"),
    ],
)
def test_a_connection_that_does_nothing_ends(sent: bytes, told: bytes, reason: Any) -> None:
    with serving(SHORT) as (table, address):
        answer = rest_of(connected(address, sent))
        assert answer.startswith(told)
        assert bool(answer) == bool(told)
        assert dict(table.ended) == {reason: 1}
        until(lambda: not table.open)


@pytest.mark.parametrize("begun", [b"", WHOLE, b"POST /2 HTTP/1.1\r\nhost: x\r\ncontent-length: 99999\r\n\r\n"])
def test_a_byte_now_and_then_is_not_a_request(begun: bytes) -> None:
    with serving(SHORT) as (table, address):
        client = connected(address, begun)
        with contextlib.suppress(ConnectionError):
            for _ in range(1_000):
                client.sendall(b"x")
                time.sleep(0.02)
            raise AssertionError("it stays for ever")
        client.close()
        assert dict(table.ended) == {"header": 1}


@pytest.mark.parametrize("sent", [b"GET /90000000 HTTP/1.1\r\nhost: x\r\n\r\n", WHOLE.replace(b"2", b"60000") * 500])
def test_who_does_not_take_an_answer_is_not_waited_for(sent: bytes) -> None:
    with serving(SHORT) as (table, address):
        client = connected(address)
        client.settimeout(5)
        with contextlib.suppress(TimeoutError):  # requests that nobody reads wait with us
            client.sendall(sent)
        until(lambda: sum(table.ended.values()) == 1)
        assert {*table.ended} <= {"stalled", "idle", "header"}
        until(lambda: not table.open)
        client.close()


def test_who_takes_an_answer_slowly_gets_it() -> None:
    limits = Limits(stalled=0.3, look=0.05)
    with serving(limits) as (table, address):
        client = connected(address, b"GET /9000000 HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        found = 0
        while piece := client.recv(150_000):
            found += len(piece)
            time.sleep(0.02)
        assert found > 9_000_000
        assert not table.ended
        client.close()


def test_a_request_may_take_longer_than_its_header() -> None:
    with serving(SHORT) as (table, address):
        waiting = connected(address, b"GET /wait HTTP/1.1\r\nhost: x\r\n\r\n")
        assert not rest_of(connected(address))  # which has waited longer
        assert len(table.open) == 1
        assert dict(table.ended) == {"first": 1}
        waiting.close()


# How many -------------------------------------------------------------------------------------------------------------


def test_beyond_the_cap_who_waited_longest_for_nothing_gives_way() -> None:
    limits = Limits(**{**fields_of(PATIENT), "most": 6, "each": 4})
    with serving(limits) as (table, address):
        idle = [connected(address, HALF, "127.0.0.2") for _ in range(4)]
        until(lambda: len(table.open) == 4)
        more = connected(address, HALF, "127.0.0.2")
        assert rest_of(idle[0]) == b"", "an address makes room itself"
        others = [connected(address, WHOLE, f"127.0.0.{n}") for n in (3, 4, 5)]
        assert all(each.recv(15) == b"HTTP/1.1 200 OK" for each in others)
        assert rest_of(idle[1]) == b"", "the address with the most makes room for another one"
        assert len(table.open) == 6
        assert (dict(table.ended), table.refused) == ({"displaced": 2}, 0)
        for each in (*idle[2:], more, *others):
            each.close()


def test_where_all_are_answered_a_new_one_is_told_to_come_back() -> None:
    limits = Limits(**{**fields_of(PATIENT), "most": 4, "each": 3})
    wait = b"GET /wait HTTP/1.1\r\nhost: x\r\n\r\n"
    with serving(limits) as (table, address):
        busy = [connected(address, wait, "127.0.0.2") for _ in range(3)]
        until(lambda: sum(each.is_busy for each in table.open) == 3)
        assert rest_of(connected(address, b"", "127.0.0.2")).startswith(b"HTTP/1.1 503 ")
        stranger = connected(address, WHOLE)
        assert stranger.recv(15) == b"HTTP/1.1 200 OK"
        assert (table.refused, dict(table.ended)) == (1, {})
        for each in (stranger, *busy):
            each.close()


def fields_of(limits: Limits) -> dict[str, Any]:
    return {name: getattr(limits, name) for name in Limits.__slots__}


def test_connections_leave_room_for_files() -> None:
    for descriptors in (256, 1_024, 4_096, 65_536):
        limits = limits_for(descriptors, used=20)
        assert 8 <= limits.each <= limits.most <= 1_000
        # Each with a file that is sent over it, those that come at once, and the files of the index twice.
        assert 2 * limits.most + 64 + 2 * 20 < descriptors
    assert limits_for(4_096, 20, by_address=False).each == limits_for(4_096, 20).most
    with pytest.raises(BadRequest, match="too few to serve"):
        limits_for(128, used=20)


# The whole server -----------------------------------------------------------------------------------------------------


def open_files(soft: int, hard: int) -> Callable[[], None]:
    """What a child does first: let itself open so many files."""
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextmanager
def command(index: str, said: Path, soft: int, hard: int) -> Iterator[tuple[int, Address]]:
    """The command in a process that may open so many files: its number and address."""
    program = [sys.executable, "-c", "from lakescope.faces.cli import main; main()", "serve", index, "--port", "0"]
    with said.open("w") as out:
        process = subprocess.Popen(program, stderr=out, preexec_fn=open_files(soft, hard))
    try:
        until(lambda: "http://" in said.read_text() and "Ctrl-C" in said.read_text())
        port = int(said.read_text().partition("http://127.0.0.1:")[2].partition("/")[0])
        yield process.pid, ("127.0.0.1", port)
    finally:
        process.kill()
        process.wait(20)


def test_hundreds_of_idle_connections_stop_nothing(demo_index: Lake, tmp_path: Path) -> None:
    said = tmp_path / "said"
    with command(demo_index.path, said, 256, 256) as (pid, address):
        client = connected(address, b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        assert rest_of(client).startswith(b"HTTP/1.1 200 ")
        idle = [connected(address, HALF) for _ in range(300)]
        for path in (b"/healthz", b"/", b"/api/v1/tables", b"/static/style.css") * 3:
            client = connected(address, b"GET " + path + b" HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
            assert rest_of(client).startswith(b"HTTP/1.1 200 ")
            idle += [connected(address, HALF) for _ in range(10)]
        assert len(list(Path(f"/proc/{pid}/fd").iterdir())) < 200
        client = connected(address, b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        told = dict(line.rsplit(" ", 1) for line in rest_of(client).decode().splitlines() if line.startswith("lakes"))
        most = int(told["lakescope_connections_most"])
        assert 0 < int(told["lakescope_connections"]) <= most
        assert int(told['lakescope_connections_ended_total{reason="displaced"}']) >= 300 - most
        assert told["lakescope_connections_refused_total"] == "0"
        for each in idle:
            each.close()
    assert "Traceback" not in said.read_text()
    assert len(said.read_text()) < 5_000


def test_a_server_may_open_as_many_files_as_the_system_lets_it(demo_index: Lake, tmp_path: Path) -> None:
    with command(demo_index.path, tmp_path / "said", 200, 2_000) as (pid, address):
        assert rest_of(connected(address, b"GET /healthz HTTP/1.0\r\nhost: localhost\r\n\r\n"))
        (line,) = [each for each in Path(f"/proc/{pid}/limits").read_text().splitlines() if "open files" in each]
        assert line.split()[3] == "2000"


OUT_OF_DESCRIPTORS = """
import resource, socket, threading, time
from helpers.connections import PATIENT, serving
with serving(PATIENT) as (table, address):
    resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
    print(address[1], flush=True)
    input()
"""


def test_no_descriptors_are_logged_once_and_got_over(tmp_path: Path) -> None:
    """A cap that lies too high: that it is met is told once, and the server answers when there are some again."""
    program = [sys.executable, "-c", OUT_OF_DESCRIPTORS]
    with (tmp_path / "said").open("w") as out:
        process = subprocess.Popen(
            program, stderr=out, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parent
        )
    assert process.stdout is not None
    address = ("127.0.0.1", int(process.stdout.readline()))
    idle = [connected(address, HALF) for _ in range(100)]
    until(lambda: "out of system resource" in (tmp_path / "said").read_text())
    for each in idle:
        each.close()
    client = connected(address, WHOLE)
    assert client.recv(15) == b"HTTP/1.1 200 OK"
    client.close()
    process.communicate("\n", timeout=30)
    assert (tmp_path / "said").read_text().count("out of system resource") == 1


# The log --------------------------------------------------------------------------------------------------------------


def test_a_line_is_logged_now_and_then_with_how_many_were_left_out(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("some.server")
    sparing = Sparing(60)
    logger.addFilter(sparing)
    try:
        for n in range(1_000):
            logger.error("cannot %s", n)
            logger.error("another\nline %s", n)
        assert [each.getMessage() for each in caplog.records] == ["cannot 0", "another\nline 0"]
        sparing._seen = {kind: (since - 60, left_out) for kind, (since, left_out) in sparing._seen.items()}
        logger.error("cannot %s", "100%")
        assert caplog.records[-1].getMessage() == "cannot 100% (999 more like it since the last one)"
    finally:
        logger.removeFilter(sparing)
