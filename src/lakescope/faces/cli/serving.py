"""The `serve` command: parse, start, say where."""

from __future__ import annotations

import ipaddress
import os
import secrets
import socket
import threading
import webbrowser
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

from lakescope.errors import BadRequest
from lakescope.faces.cli.output import say
from lakescope.faces.cli.sizes import bytes_of
from lakescope.faces.serving.visitors import plain_address
from lakescope.lake import Lake

_NEEDED = ("fastapi", "uvicorn", "jinja2", "multipart")


#: Signs of a token.
_SHORTEST = 12
#: Where the token comes from that nobody else on this machine reads: arguments are everybody's.
TOKEN = "LAKESCOPE_TOKEN"


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says about a server."""

    host: str
    port: int
    token: str | None
    token_file: str | None
    proxy: str | None
    largest: str
    browser: bool


def serve(lake: Lake, options: Options) -> None:
    """Serve the web app and the REST interface until Ctrl-C."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise BadRequest(
            f"serving needs packages that are not here: {', '.join(missing)}", hint="pip install 'lakescope[web]'"
        )
    token = given_token(options.token, options.token_file)
    if token is None and (options.proxy is not None or not is_loopback(options.host)):
        token = secrets.token_urlsafe(24)
    if options.proxy is not None and not plain_address(options.proxy):
        raise BadRequest(f"--behind-proxy {options.proxy} is no address", hint="give that of the proxy: 127.0.0.1")
    largest = int(bytes_of(options.largest, "--max-upload"))
    listening = _listen(options.host, options.port)

    from lakescope.faces.serving.app import create_app
    from lakescope.faces.serving.connections import Connections, limits_for, open_descriptors, raise_descriptors
    from lakescope.faces.serving.running import server_of
    from lakescope.faces.serving.safety import Rules

    # Through a proxy all connections come from one address.
    limits = limits_for(raise_descriptors(), open_descriptors(), by_address=options.proxy is None)
    connections = Connections(limits)
    path = lake.path
    app = create_app(lake, Rules(token, largest, options.proxy), connections=connections)
    # When an update replaces it nobody may hold it, this function neither.
    del lake
    address = _address(options.host, listening.getsockname()[1], token)
    say(f"{path} is at {address}  (Ctrl-C ends it)")
    if options.browser:
        threading.Timer(0.5, webbrowser.open, [address]).start()
    server_of(app, connections).run(sockets=[listening])


def given_token(argument: str | None, file: str | None) -> str | None:
    """The token that somebody chose, by a file or by the environment, from which it is taken: workers need none."""
    if argument is not None:
        message = "a token among the arguments can be read by everybody on this machine"
        raise BadRequest(message, hint=f"write it to a file and give --token-file, or set {TOKEN}")
    token = os.environ.pop(TOKEN, None) or None
    if file is not None:
        try:
            token = Path(file).read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise BadRequest(f"cannot read the token: {error}", hint="--token-file names a file of one line") from error
    if token is not None and len(token) < _SHORTEST:
        hint = f"give at least {_SHORTEST} signs, or none: one is made"
        raise BadRequest("the token is too short to be a secret", hint=hint)
    return token


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
