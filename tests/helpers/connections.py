"""A server of plain bytes over real sockets, whose deadlines a test chooses."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from lakescope.faces.serving.connections import Connections, Limits
from lakescope.faces.serving.running import server_of

PATIENT = Limits(first=60, header=60, idle=60, stalled=60, closing=60, look=0.05)

Address = tuple[str, int]


async def answer_bytes(scope: Any, receive: Any, send: Any) -> None:
    """An application that answers ``/N`` by N bytes, and ``/wait`` when its client has gone."""
    if scope["type"] == "lifespan":
        while (message := await receive())["type"] != "lifespan.shutdown":
            await send({"type": f"{message['type']}.complete"})
        await send({"type": "lifespan.shutdown.complete"})
        return
    if scope["path"] == "/wait":
        while (await receive())["type"] != "http.disconnect":
            pass
        return
    size = int(scope["path"].strip("/"))
    head = [(b"content-length", str(size).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    for at in range(0, size, 1 << 16):
        body = b"x" * min(1 << 16, size - at)
        await send({"type": "http.response.body", "body": body, "more_body": at + len(body) < size})


@contextmanager
def serving(limits: Limits) -> Iterator[tuple[Connections, Address]]:
    """A server in a thread: its connections, and its address."""
    table = Connections(limits)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = server_of(answer_bytes, table)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        until(lambda: server.started)
        try:
            yield table, listening.getsockname()
        finally:
            server.should_exit = True
            thread.join(20)


def until(there: Callable[[], bool]) -> None:
    """Wait for something that will come."""
    for _ in range(2_000):
        if there():
            return
        time.sleep(0.01)
    raise AssertionError("it never came")


def connected(address: Address, sent: bytes = b"", source: str = "127.0.0.1") -> socket.socket:
    client = socket.create_connection(address, timeout=30, source_address=(source, 0))
    client.sendall(sent)
    return client
