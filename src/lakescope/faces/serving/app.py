"""The application: service, REST interface and pages behind one guard."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from lakescope._version import __version__
from lakescope.errors import LakescopeError
from lakescope.faces.rest import api, asking
from lakescope.faces.serving.connections import Connections
from lakescope.faces.serving.metrics import CONTENT_TYPE, Metrics, Observed, route_of
from lakescope.faces.serving.refusals import Refused
from lakescope.faces.serving.safety import Guard, Rules
from lakescope.faces.serving.service import Service
from lakescope.faces.web import pages, rendering
from lakescope.lake import Lake
from lakescope.logs import log

#: Bytes that a worker may allocate.
MEMORY = 3_000_000_000

_ABOUT = """Every question of a lake as JSON.

Answers are `{"data": ..., "meta": {...}}`, errors `{"error": {"code", "message", "hint"}}`. Lists come in pages: follow
`meta.next`. What takes longer than `wait` seconds is answered by 202 and a job."""


def create_app(
    lake: Lake, rules: Rules | None = None, *, memory: int = MEMORY, connections: Connections | None = None
) -> Any:
    """The application for one lake, ready for any ASGI server; ``connections`` are those that its metrics tell of."""
    rules = rules or Rules()
    service = Service(lake, largest=rules.largest, memory=memory)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.start()
        yield
        service.close()

    app = FastAPI(
        title="Lakescope",
        version=__version__,
        description=_ABOUT,
        lifespan=lifespan,
        openapi_url=f"{api.PREFIX}/openapi.json",
        docs_url=None,
        redoc_url=None,
    )
    app.state.service = service
    app.include_router(api.router)
    asked = APIRouter(prefix=api.PREFIX)
    asking.add_routes(asked)
    app.include_router(asked)
    pages.add_pages(app)
    metrics = Metrics()

    @app.get("/metrics", include_in_schema=False)
    def tell_metrics() -> Response:
        return Response(metrics.text(service, connections), media_type=CONTENT_TYPE)

    app.add_exception_handler(LakescopeError, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _failed)
    return Observed(Guard(Heads(app), rules, _refusal), metrics)


class Heads:
    """Answers HEAD as the application answers GET, but without a body: its routes know GET alone."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return

        async def sending(message: Any) -> None:
            await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

        asked = {**scope, "method": "GET"}
        await self._app(asked, receive, sending)
        if "route" in asked:
            scope["route"] = asked["route"]  # what is counted by


def _refusal(scope: Any, error: LakescopeError) -> Response:
    """An error as whoever asks wants to see it: as data, or as a page."""
    return api.refusal(error) if str(scope["path"]).startswith("/api/") else rendering.refusal(error, scope)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, LakescopeError)
    return _refusal(request.scope, api.service_of(request).places.without(error))


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"][1:]) or str(first["loc"][0])
    return _refusal(request.scope, Refused(422, "invalid", f"{place}: {first['msg']}", hint="see /api/v1/openapi.json"))


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    kept = getattr(request.state, "refused", None)
    if kept is not None:
        return _refusal(request.scope, kept)
    codes = {404: "not-found", 405: "not-allowed"}
    hint = "begin at /" if error.status_code == 404 else None
    refused = Refused(error.status_code, codes.get(error.status_code, "bad-request"), str(error.detail), hint=hint)
    response = _refusal(request.scope, refused)
    response.headers.update(error.headers or {})
    return response


async def _failed(request: Request, error: Exception) -> Response:
    log("failed", level=logging.ERROR, error=error, method=request.method, route=route_of(request.scope))
    return _refusal(request.scope, LakescopeError("something went wrong here", hint="the server's log says what"))
