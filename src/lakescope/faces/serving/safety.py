"""What every request passes before anybody answers it, and what every answer gets.

- Who names another host than this one is a page that made the browser believe it is us (DNS rebinding): refused.
- Whoever asks from elsewhere than this machine must know the token; the browser then keeps a cookie.
- What comes from another site is refused: browsers say where a request comes from, others have no cookies. A link that
  somebody follows is served, but starts nothing.
- A body is read up to a size, in bounded time; large ones that are on their way at once have so many bytes together.
- Who asks is known by a cookie, and by the address: of the connection, or what a proxy says that was named.
- Answers tell the browser to run and load nothing but ours, to show us in no frame, and to guess no types.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from lakescope.errors import LakescopeError
from lakescope.faces.serving.refusals import Refused, busy, too_large
from lakescope.faces.serving.visitors import Claim, Owner, Visitor, address_group, giving_way, plain_address
from lakescope.show.text import size_text

VISITOR, TOKEN = "lakescope_visitor", "lakescope_token"
_LOOPBACK = frozenset(("localhost", "127.0.0.1", "[::1]"))
_SECRET = re.compile(r"[A-Za-z0-9_-]{43}")
_SAFE = frozenset(("GET", "HEAD", "OPTIONS"))
#: Seconds that a browser may take between two pieces of a body, and for all of it.
_BETWEEN, _WHOLE = 30.0, 600.0
#: What is around a file in a form, and bytes of a body that is no file.
_AROUND, _SMALL = 64 * 1024, 256 * 1024
#: Where files are sent to. Any other body is a question.
_FILES = frozenset(("/api/v1/uploads", "/search/upload"))
#: Bytes of files that are on their way at once, of all and of an address, in sizes of the largest one.
_UNDER_WAY, _UNDER_WAY_EACH = 8, 4

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
    """How careful a server is.

    ``token`` is there if others than this machine may ask; ``proxy`` is the address of a proxy in front, which is
    believed where requests come from.
    """

    token: str | None = None
    largest: int = 50_000_000
    proxy: str | None = None


@dataclass(eq=False, slots=True)
class _Body:
    """The body of a request: of whom, the bytes that it may have, and those that it says to have (else the most)."""

    owner: Owner
    for_file: bool
    most: int
    size: int
    #: The time that its next piece has, while it is waited for.
    patience: asyncio.Timeout | None = None
    displaced: bool = False

    def too_large(self) -> Refused:
        """What is told who sends more than that."""
        if self.for_file:
            return too_large(size_text(self.most - _AROUND))
        message = f"the body is larger than {size_text(self.most)}"
        return Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too-large", message, hint="a question is shorter")


class _Bodies:
    """Files that are on their way at once, which lie on the disk before anybody looks at them."""

    def __init__(self, largest: int) -> None:
        self._room, self._each = _UNDER_WAY * largest, _UNDER_WAY_EACH * largest
        self._bodies: list[_Body] = []

    def admit(self, body: _Body) -> None:
        """Make room for one; what is sent by who sends most gives way, the latest first."""
        claims = [Claim((each.owner,), each.size, each) for each in reversed(self._bodies)]
        going = giving_way(claims, Claim((body.owner,), body.size, None), room=self._room, each=self._each)
        if going is None:
            raise busy("too many files are being sent at this moment")
        for each in going:
            self.forget(each)
            each.displaced = True
            if each.patience is not None:
                each.patience.reschedule(asyncio.get_running_loop().time())
        self._bodies.append(body)

    def forget(self, body: _Body) -> None:
        """One has come, or will not."""
        if body in self._bodies:
            self._bodies.remove(body)


class Guard:
    """Stands before an ASGI application."""

    def __init__(self, app: Any, rules: Rules, refuse: Any) -> None:
        self._app, self._rules, self._refuse = app, rules, refuse
        self._bodies = _Bodies(rules.largest)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request, or have it answered."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": "not served here"})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        cookies = _cookies(headers.get("cookie", ""))
        secret = cookies.get(VISITOR, "")
        fresh = _SECRET.fullmatch(secret) is None
        visitor = Visitor(secrets.token_urlsafe(32) if fresh else secret, self._address(scope, headers), fresh=fresh)
        scope.setdefault("state", {})["visitor"] = visitor
        added = [*HEADERS.items()]
        if fresh:
            added.append(("set-cookie", _cookie(VISITOR, visitor, scope)))
        send = _with_headers(send, added)
        try:
            self._check_host(headers.get("host", ""))
            visitor.foreign = _is_foreign(scope["method"], headers)
            if headers.get("upgrade", "").lower() == "websocket":
                raise Refused(HTTPStatus.NOT_IMPLEMENTED, "no-websockets", "there are no WebSockets here")
            # What every page looks like is no secret, and the page that asks for the token looks like the others.
            if (
                self._rules.token is not None
                and not _is_ours(scope)
                and await self._ask_token(scope, headers, cookies, send)
            ):
                return
            body = self._body(scope, headers, visitor.owner)
            receive = self._bounded(receive, scope["state"], body)
        except LakescopeError as error:
            await self._refuse(scope, error)(scope, receive, send)
            return
        try:
            await self._app(scope, receive, send)
        finally:
            self._bodies.forget(body)

    def _address(self, scope: Any, headers: dict[str, str]) -> str:
        """Where a request comes from: what a proxy says last that is known, else the other end of the connection."""
        peer = scope["client"][0] if scope.get("client") else ""
        if self._rules.proxy is None or plain_address(peer) != plain_address(self._rules.proxy):
            return address_group(peer)
        if headers.get("x-forwarded-proto", "").lower() == "https":
            scope["scheme"] = "https"
        # What stands before the last comma was said by whoever asked the proxy.
        said = plain_address(headers.get("x-forwarded-for", "").rpartition(",")[2].strip())
        return address_group(said or peer)

    def _check_host(self, host: str) -> None:
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        if self._rules.token is None and name.lower() not in _LOOPBACK:
            message, hint = f"this is not {host or 'a host without a name'}", "open it as http://127.0.0.1 or localhost"
            raise Refused(421, "wrong-host", message, hint=hint)

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
        # One slash, and nothing that a browser leaves out before another one: two would name another host.
        place = "/" + quote(scope["path"].lstrip("/")) + (f"?{rest}" if rest else "")
        sent = [("location", place), ("set-cookie", _cookie(TOKEN, kept, scope))]
        raw = [(name.encode(), value.encode("latin-1")) for name, value in sent]
        await send({"type": "http.response.start", "status": 303, "headers": raw})
        await send({"type": "http.response.body", "body": b""})
        return True

    def _body(self, scope: Any, headers: dict[str, str], owner: Owner) -> _Body:
        """What is to be said about the body of a request before it comes."""
        for_file = scope["method"] == "POST" and scope["path"] in _FILES
        most = self._rules.largest + _AROUND if for_file else _SMALL
        said = headers.get("content-length", "0")
        body = _Body(owner, for_file, most, most)
        if "transfer-encoding" not in headers:
            if re.fullmatch("[0-9]{1,18}", said) is None or int(said) > most:
                raise body.too_large()
            body.size = int(said)
        if body.size > _SMALL:
            self._bodies.admit(body)
        return body

    def _bounded(self, receive: Any, state: dict[str, Any], body: _Body) -> Any:
        """The body, up to a size; what is wrong is kept, since a framework may take it for a body that is odd."""
        loop = asyncio.get_running_loop()
        seen, deadline = 0, loop.time() + _WHOLE
        ended = False

        def refused(error: Refused) -> Refused:
            self._bodies.forget(body)
            state["refused"] = error
            return error

        async def bounded() -> Any:
            nonlocal seen, ended
            if ended:
                return await receive()
            message: Any = None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(min(deadline, loop.time() + _BETWEEN)) as body.patience:
                    message = await receive()
            body.patience = None
            if body.displaced:
                raise refused(busy("the file gave way to one of somebody who sends less"))
            if message is None:
                raise refused(
                    Refused(HTTPStatus.REQUEST_TIMEOUT, "slow", "the body took too long to come", hint="send it again")
                )
            seen += len(message.get("body", b""))
            ended = message["type"] != "http.request" or not message.get("more_body", False)
            if seen > body.most:
                raise refused(body.too_large())
            if ended:
                self._bodies.forget(body)
            return message

        return bounded


def _is_foreign(method: str, headers: dict[str, str]) -> bool:
    """Whether a link of another site led here. Whatever else comes from another site is refused.

    Browsers say so themselves, to servers that they trust: on this machine, or over TLS.
    """
    host, origin = headers.get("host", ""), headers.get("origin")
    # Not parsed: it is one of two texts, or not ours.
    strange = origin is not None and origin.lower() not in (f"http://{host}".lower(), f"https://{host}".lower())
    if not strange and headers.get("sec-fetch-site", "same-origin") in ("same-origin", "none"):
        return False
    followed = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    if not strange and followed and method in _SAFE:
        return True
    raise Refused(
        HTTPStatus.FORBIDDEN, "foreign-origin", "this comes from another site", hint="send it from a page of ours"
    )


def _is_ours(scope: Any) -> bool:
    """Whether a request is for a file of the package: styles, scripts, the logo."""
    return scope["method"] in _SAFE and (scope["path"].startswith("/static/") or scope["path"] == "/favicon.ico")


def _cookies(text: str) -> dict[str, str]:
    """The cookies of a request: ours need no quotes, so nothing is unquoted."""
    pairs = (each.strip().partition("=") for each in text.split(";"))
    return {name: value for name, _, value in pairs if name in (VISITOR, TOKEN)}


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
