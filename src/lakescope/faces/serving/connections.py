"""Connections of the server: how many there are, of whom, and how long each may stay without anything being done.

A connection costs its client nothing and the server a file descriptor, of which there are few; where none is left,
nobody is answered and no file is opened. So connections are counted, all of them and those of each address, and there
are always descriptors for files and workers. Where there is no room, those that wait for a request give way, the
longest waiting one of the address with the most first; where all are being answered, the new one is told to come back.
What a client owes has a deadline: its first request, the header of a request, the next request, taking what it is sent.
(The body of a request has one in :mod:`lakescope.faces.serving.safety`.)
"""

from __future__ import annotations

import asyncio
import contextlib
import resource
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from lakescope.errors import BadRequest
from lakescope.faces.serving.visitors import address_group

#: Connections that are taken over from the system in one go. They are there before they can be counted, and are closed
#: some turns of the loop later: so many turns of them are beyond what is counted.
AT_ONCE, _TURNS = 16, 4
#: Descriptors for files of the index, workers and uploads, beside twice those that are open before anybody asks.
_RESERVE = 64
#: Descriptors that are wanted, connections that are counted at most, and without which no server starts.
_DESCRIPTORS, _MOST, _LEAST = 65_536, 1_000, 8
#: Bytes of an answer that somebody who takes it slowly must take between two looks at it.
_TAKEN = 32 * 1024

#: Why a connection is ended: a deadline, or another one that needs its place.
Reason = Literal["first", "header", "idle", "stalled", "request", "closing", "displaced"]

_TRY_AGAIN = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain; charset=utf-8\r\nretry-after: 5\r\n"
    b"connection: close\r\ncontent-length: 34\r\n\r\ntoo many connections: try it again"
)
_TOO_SLOW = (
    b"HTTP/1.1 408 Request Timeout\r\ncontent-type: text/plain; charset=utf-8\r\nconnection: close\r\n"
    b"content-length: 47\r\n\r\nthe request took too long to come: send it anew"
)


@dataclass(frozen=True, slots=True)
class Limits:
    """How many connections there may be, of all and of one address, and how many seconds each may take for what."""

    most: int = _MOST
    each: int = _MOST // 2
    #: Until the first byte of the first request, and of the next one after an answer.
    first: float = 20.0
    idle: float = 60.0
    #: From the first byte of a request to the end of its header.
    header: float = 15.0
    #: Between two looks whether somebody who takes an answer slowly has taken some of it.
    stalled: float = 30.0
    #: For a request with its answer.
    request: float = 3_600.0
    #: For taking what was sent last.
    closing: float = 10.0
    #: Between two looks at all connections.
    look: float = 1.0


def raise_descriptors() -> int:
    """Have as many files open as the system lets us, if it is not more than enough already; how many that is."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _DESCRIPTORS if soft == resource.RLIM_INFINITY else soft


def open_descriptors() -> int:
    """How many files are open; on a system that does not tell, as many as a server usually has."""
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.exists() else _RESERVE


def limits_for(descriptors: int, used: int, *, by_address: bool = True) -> Limits:
    """How many connections fit into so many descriptors, of which some are used before anybody asks.

    A connection may need a second one, for a file that is sent over it.
    """
    room = (descriptors - _RESERVE - 2 * used - AT_ONCE * _TURNS) // 2
    if room < _LEAST:
        message = f"only {descriptors} files may be open, which are too few to serve"
        raise BadRequest(message, hint=f"ulimit -n {descriptors + 2 * (_LEAST - room)} or more")
    most = min(_MOST, room)
    return Limits(most=most, each=most // 2 if by_address else most)


class Connections:
    """All connections of a server, looked at now and then."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.open: set[Connection] = set()
        self.refused = 0
        self.ended: Counter[Reason] = Counter()
        self._addresses: Counter[str] = Counter()
        self._next_look: asyncio.TimerHandle | None = None

    def admit(self, new: Connection) -> bool:
        """Whether there is room for a new connection; one that waits for a request may have to make it."""
        if self._addresses[new.address] >= self.limits.each:
            room = self._make_room([each for each in self.open if each.address == new.address])
        else:
            room = len(self.open) < self.limits.most or self._make_room(list(self.open))
        if not room:
            self.refused += 1
            return False
        self.open.add(new)
        self._addresses[new.address] += 1
        if self._next_look is None:
            self._next_look = new.loop.call_later(self.limits.look, self._look, new.loop)
        return True

    def forget(self, gone: Connection) -> None:
        """A connection is closed, or about to be."""
        if gone in self.open:
            self.open.remove(gone)
            self._addresses[gone.address] -= 1
            if not self._addresses[gone.address]:
                del self._addresses[gone.address]

    def _make_room(self, among: list[Connection]) -> bool:
        waiting = [each for each in among if not each.is_busy]
        if not waiting:
            return False
        self._end(max(waiting, key=lambda each: (self._addresses[each.address], -each.since)), "displaced")
        return True

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        for each in list(self.open):
            reason = each.overdue(now)
            if reason is not None:
                self._end(each, reason)
        self._next_look = loop.call_later(self.limits.look, self._look, loop) if self.open else None

    def _end(self, connection: Connection, reason: Reason) -> None:
        self.ended[reason] += 1
        self.forget(connection)
        connection.end(reason)


class Connection(H11Protocol):
    """A connection that is counted, and ends when its client does not do in time what it owes."""

    def __init__(self, *args: Any, table: Connections, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._table = table
        self.address = ""
        #: When the last thing was done: it was opened, or a request was answered.
        self.since = 0.0
        self._answered = False
        self._header_since: float | None = None
        self._busy_since: float | None = None
        #: When somebody who takes an answer slowly was looked at, and what was still to be taken.
        self._left: tuple[float, int] | None = None

    @property
    def is_busy(self) -> bool:
        """Whether a request is being answered."""
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count it, or tell the client to come back later."""
        super().connection_made(transport)
        self.address = address_group(self.client[0] if self.client else "")
        self.since = self.loop.time()
        if not self._table.admit(self):
            transport.write(_TRY_AGAIN)
            self._close()

    def _should_upgrade(self) -> bool:
        """Never: who asks for WebSockets is answered by the guard, over HTTP."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Count it no more."""
        self._table.forget(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Note when a request begins."""
        if self._header_since is None and not self.is_busy:
            self._header_since = self.loop.time()
        super().data_received(data)

    def on_response_complete(self) -> None:
        """Note when it was answered."""
        self.since, self._answered = self.loop.time(), True
        self._header_since = self._busy_since = self._left = None
        super().on_response_complete()

    def resume_writing(self) -> None:
        """Note that an answer is being taken."""
        self._left = None
        super().resume_writing()

    def overdue(self, now: float) -> Reason | None:
        """What its client should have done by now, if anything."""
        limits = self._table.limits
        if self.is_busy:
            return self._overdue_answer(now)
        if self.transport.is_closing():  # while it is not lost there is something left to be taken
            return "closing" if now - self.since > limits.closing else None
        if self._header_since is not None:
            # What comes after an answer may be the rest of a body that nobody wanted.
            limit = limits.header if self.conn.their_state is h11.IDLE else limits.idle
            return "header" if now - self._header_since > limit else None
        if self._answered:
            return "idle" if now - self.since > limits.idle else None
        return "first" if now - self.since > limits.first else None

    def _overdue_answer(self, now: float) -> Reason | None:
        limits = self._table.limits
        if self._busy_since is None:
            self._busy_since = now
        if now - self._busy_since > limits.request:
            return "request"
        if not self.flow.write_paused:
            return None
        left = self.transport.get_write_buffer_size()
        if self._left is None:
            self._left = now, left
        elif now - self._left[0] > limits.stalled:
            if self._left[1] - left < _TAKEN:
                return "stalled"
            self._left = now, left
        return None

    def end(self, reason: Reason) -> None:
        """Close it, and tell the client why if a request was coming."""
        if reason == "header" and self.conn.their_state is h11.IDLE:
            self.transport.write(_TOO_SLOW)
        self._close()

    def _close(self) -> None:
        """Close it at once: what was sent and is not taken by now is not waited for."""
        self.transport.close()
        if self.transport.get_write_buffer_size():
            self.transport.abort()
