"""What every request passes before anybody answers it, and what every answer gets.

- Who names another host than this one is a page that made the browser believe it is us (DNS rebinding): refused.
- Whoever asks from elsewhere than this machine must know the token; the browser then keeps a cookie.
- What changes something must come from our own pages: browsers say where a request comes from, others have no cookies.
- A body is read up to a size, in bounded time.
- Answers tell the browser to run and load nothing but ours, to show us in no frame, and to guess no types.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from lakescope.errors import LakescopeError
from lakescope.report.text import size_text
from lakescope.server.refusals import Refused, too_large

VISITOR, TOKEN = "lakescope_visitor", "lakescope_token"
_LOOPBACK = frozenset(("localhost", "127.0.0.1", "[::1]"))
_SECRET = re.compile(r"[A-Za-z0-9_-]{43}")
_SAFE = frozenset(("GET", "HEAD", "OPTIONS"))
#: Seconds that a browser may take between two pieces of a body, and for all of it.
_BETWEEN, _WHOLE = 30.0, 600.0
#: What is around a file in a form.
_AROUND = 64 * 1024

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), usb=()",
}


@dataclass(frozen=True, slots=True)
class Rules:
    """How careful a server is. ``token`` is there if others than this machine may ask."""

    token: str | None = None
    largest: int = 50_000_000


class Guard:
    """Stands before an ASGI application."""

    def __init__(self, app: Any, rules: Rules, refuse: Any) -> None:
        self._app, self._rules, self._refuse = app, rules, refuse

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request, or have it answered."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        cookies = _cookies(headers.get("cookie", ""))
        visitor = cookies.get(VISITOR, "")
        fresh = _SECRET.fullmatch(visitor) is None
        scope.setdefault("state", {})["visitor"] = visitor = secrets.token_urlsafe(32) if fresh else visitor
        added = [*HEADERS.items()]
        if fresh:
            added.append(("set-cookie", _cookie(VISITOR, visitor, scope)))
        send = _with_headers(send, added)
        try:
            self._check_host(headers.get("host", ""))
            self._check_origin(scope["method"], headers)
            # What every page looks like is no secret, and the page that asks for the token looks like the others.
            if (
                self._rules.token is not None
                and not _is_ours(scope)
                and await self._ask_token(scope, headers, cookies, send)
            ):
                return
            receive = self._bounded(headers, receive, scope["state"])
        except LakescopeError as error:
            await self._refuse(scope, error)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _check_host(self, host: str) -> None:
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        if self._rules.token is None and name.lower() not in _LOOPBACK:
            message, hint = f"this is not {host or 'a host without a name'}", "open it as http://127.0.0.1 or localhost"
            raise Refused(421, "wrong-host", message, hint=hint)

    def _check_origin(self, method: str, headers: dict[str, str]) -> None:
        if method in _SAFE:
            return
        origin = headers.get("origin")
        strange = origin is not None and urlsplit(origin).netloc != headers.get("host")
        if strange or headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            raise Refused(403, "foreign-origin", "this comes from another site", hint="send it from a page of ours")

    async def _ask_token(self, scope: Any, headers: dict[str, str], cookies: dict[str, str], send: Any) -> bool:
        """Whether the request was answered here: by a page without the token in its address."""
        assert self._rules.token is not None
        kept = hashlib.sha256(self._rules.token.encode()).hexdigest()
        if hmac.compare_digest(cookies.get(TOKEN, "").encode(), kept.encode()):
            return False
        said = headers.get("authorization", "")
        if said.startswith("Bearer ") and hmac.compare_digest(said[7:].encode(), self._rules.token.encode()):
            return False
        pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = next((value for name, value in pairs if name == "token"), "")
        if not hmac.compare_digest(given.encode(), self._rules.token.encode()):
            if given:
                hint = "it is in the address that `lakescope serve` printed"
                raise Refused(401, "wrong-token", "this is not the token", hint=hint)
            hint = "open the address that `lakescope serve` printed, or send it as Authorization: Bearer"
            raise Refused(401, "no-token", "this server wants to know the token", hint=hint)
        rest = urlencode([(name, value) for name, value in pairs if name != "token"])
        # One slash: two would name another host.
        place = "/" + scope["path"].lstrip("/") + (f"?{rest}" if rest else "")
        location = place.encode("ascii", "ignore").decode()
        sent = [("location", re.sub(r"[\r\n\\]", "", location)), ("set-cookie", _cookie(TOKEN, kept, scope))]
        raw = [(name.encode(), value.encode("latin-1")) for name, value in sent]
        await send({"type": "http.response.start", "status": 303, "headers": raw})
        await send({"type": "http.response.body", "body": b""})
        return True

    def _bounded(self, headers: dict[str, str], receive: Any, state: dict[str, Any]) -> Any:
        """The body, up to a size; what is wrong is kept, since a framework may take it for a body that is odd."""
        most = self._rules.largest + _AROUND
        told = headers.get("content-length", "0")
        if not told.isdigit() or int(told) > most:
            raise too_large(size_text(self._rules.largest))
        seen, deadline = 0, asyncio.get_running_loop().time() + _WHOLE
        ended = False

        async def bounded() -> Any:
            nonlocal seen, ended
            if ended:
                return await receive()
            left = deadline - asyncio.get_running_loop().time()
            try:
                message = await asyncio.wait_for(receive(), max(0.0, min(_BETWEEN, left)))
            except TimeoutError:
                state["refused"] = Refused(408, "slow", "the body took too long to come", hint="send it again")
                raise state["refused"] from None
            seen += len(message.get("body", b""))
            ended = message["type"] != "http.request" or not message.get("more_body", False)
            if seen > most:
                state["refused"] = too_large(size_text(self._rules.largest))
                raise state["refused"]
            return message

        return bounded


def _is_ours(scope: Any) -> bool:
    """Whether a request is for a file of the package: styles, scripts, the logo."""
    return scope["method"] in _SAFE and (scope["path"].startswith("/static/") or scope["path"] == "/favicon.ico")


def _cookies(text: str) -> dict[str, str]:
    jar: SimpleCookie = SimpleCookie()
    try:
        jar.load(text)
    except CookieError:
        return {}
    return {name: morsel.value for name, morsel in jar.items()}


def _cookie(name: str, value: str, scope: Any) -> str:
    secure = "; Secure" if scope.get("scheme") == "https" else ""
    return f"{name}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age=2592000{secure}"


def _with_headers(send: Any, added: Iterable[tuple[str, str]]) -> Any:
    raw = [(name.encode(), value.encode("latin-1")) for name, value in added]

    async def sending(message: Any) -> None:
        if message["type"] == "http.response.start":
            there = {name.lower() for name, _ in message.get("headers", [])}
            message = {
                **message,
                "headers": [*message.get("headers", []), *(each for each in raw if each[0] not in there)],
            }
        await send(message)

    return sending
