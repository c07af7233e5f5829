"""The `serve` command: parse, start, say where."""

from __future__ import annotations

import ipaddress
import secrets
import socket
import threading
import webbrowser
from importlib.util import find_spec
from urllib.parse import quote

from lakescope.cli.counting import size
from lakescope.cli.output import say
from lakescope.errors import BadRequest
from lakescope.lake import Lake

_NEEDED = ("fastapi", "uvicorn", "jinja2", "multipart", "altair", "vl_convert")


def serve(lake: Lake, *, host: str, port: int, token: str | None, largest: str, browser: bool) -> None:
    """Serve the web app and the REST interface until Ctrl-C."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise BadRequest(
            f"serving needs packages that are not here: {', '.join(missing)}", hint="pip install 'lakescope[web]'"
        )
    if token is not None and len(token) < 12:
        raise BadRequest("the token is too short to be a secret", hint="give at least 12 signs, or none: one is made")
    token = token or (None if is_loopback(host) else secrets.token_urlsafe(24))
    listening = _listen(host, port)

    import uvicorn

    from lakescope.server.app import create_app
    from lakescope.server.safety import Rules

    path = lake.path
    app = create_app(lake, Rules(token, int(size(largest, "--max-upload"))))
    # When an update replaces it nobody may hold it, this function neither.
    del lake
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=3,
        timeout_keep_alive=60,
    )
    address = _address(host, listening.getsockname()[1], token)
    say(f"{path} is at {address}  (Ctrl-C ends it)")
    if browser:
        threading.Timer(0.5, webbrowser.open, [address]).start()
    uvicorn.Server(config).run(sockets=[listening])


def is_loopback(host: str) -> bool:
    """Whether a host is this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _listen(host: str, port: int) -> socket.socket:
    """A socket that listens, before anything slow is done."""
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(where)
        # Whoever opens the address as soon as it is told waits instead of being refused.
        listening.listen()
    except OSError as error:
        reason = error.strerror or str(error)
        raise BadRequest(
            f"cannot listen at {host}, port {port}: {reason}", hint="choose another --port or --host"
        ) from error
    return listening


def _address(host: str, port: int, token: str | None) -> str:
    name = socket.gethostname() if host in ("0.0.0.0", "::") else f"[{host}]" if ":" in host else host
    return f"http://{name}:{port}/" + (f"?token={quote(token)}" if token else "")
