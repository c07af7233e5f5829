"""A server at work: the application behind connections that are counted, over HTTP/1.1 and nothing else."""

from __future__ import annotations

import socket
from functools import partial
from typing import Any

import uvicorn

from lakescope.faces.serving.connections import AT_ONCE, Connection, Connections
from lakescope.faces.serving.quiet import be_sparing

#: Connections that the system keeps until they are taken over: they use no descriptors of ours.
_WAITING = 256
#: Seconds that requests have to be answered once the server is told to end.
_GOODBYE = 3


class _Server(uvicorn.Server):
    """Takes few connections over in one go, while many may wait for it: both are one number elsewhere."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        for each in sockets or []:
            each.listen(_WAITING)


def server_of(app: Any, connections: Connections) -> uvicorn.Server:
    """A server that is ready to run."""
    config = uvicorn.Config(
        app,
        http=partial(Connection, table=connections),  # type: ignore[arg-type]
        ws="none",
        # Addresses that clients name are not believed: the guard knows whom to believe.
        proxy_headers=False,
        backlog=AT_ONCE,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_GOODBYE,
        # What is idle is ended by the table of connections, which counts it.
        timeout_keep_alive=2 * int(connections.limits.idle + 1),
    )
    be_sparing()
    return _Server(config)
