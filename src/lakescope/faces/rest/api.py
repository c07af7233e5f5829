"""The REST interface: every question under ``/api/v1``, one envelope for answers and one for errors.

An answer is ``{"data": ..., "meta": {...}}``, an error ``{"error": {"code", "message", "hint"}}``. Lists come in pages
(``limit``, ``offset``; ``meta.next`` is the address of the next one). What takes longer than ``wait`` seconds is
answered by 202 and a job, which is asked about, and cancelled, under ``/api/v1/jobs``. Routes of questions that are
declared follow from their declarations (:mod:`lakescope.faces.rest.asking`); here are the others, and what all share.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, File, Path, Query, Request, UploadFile
from fastapi.responses import FileResponse, JSONResponse, Response, StreamingResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from lakescope.errors import LakescopeError, NotFound
from lakescope.faces.serving.downloads import csv_pieces, plain_name
from lakescope.faces.serving.jobs import Job
from lakescope.faces.serving.plain import plain
from lakescope.faces.serving.refusals import status_of, told
from lakescope.faces.serving.service import CHECKED, Asked, Service, keys_of
from lakescope.faces.serving.uploads import KEPT, Upload

PREFIX = "/api/v1"
#: Seconds between two looks at a job that somebody waits for.
_LOOK = 0.01
#: Seconds after which who waits says so again.
_HEARD = 5.0
_MOST = 1_000
#: Characters of a text at most.
MOST_TEXT = 5_000
#: Texts of one option at most.
MOST_TEXTS = 50
#: Numbers that an index has room for.
_FAR = 2**31


class Meta(BaseModel):
    """What is to say about an answer."""

    seconds: float = Field(description="Time that the answer took.", examples=[0.004])
    total: int | None = Field(None, description="How many records there are, in pages.", examples=[103])
    limit: int | None = Field(None, examples=[50])
    offset: int | None = Field(None, examples=[0])
    next: str | None = Field(None, description="Address of the next page.", examples=["/api/v1/tables?offset=50"])
    notes: list[str] = Field(default_factory=list, description="What the records cannot say.")


class Envelope(BaseModel):
    """An answer."""

    data: Any
    meta: Meta


class Told(BaseModel):
    """What is wrong, and what to do."""

    code: str = Field(examples=["not-found"])
    message: str = Field(examples=["no table named 'shop/order.csv'"])
    hint: str | None = Field(examples=["did you mean 'shop/orders.csv'?"])


class ErrorEnvelope(BaseModel):
    """An error."""

    error: Told


def responses(example: Any, *, job: bool = False) -> dict[int | str, dict[str, Any]]:
    """What an operation answers, for its description."""
    answer = {"data": example, "meta": {"seconds": 0.004, "notes": []}}
    found: dict[int | str, dict[str, Any]] = {200: {"content": {"application/json": {"example": answer}}}}
    found |= {status: _error(status) for status in (400, 404, 422)}
    if job:
        told = {"data": _JOB, "meta": {"seconds": 10.002, "notes": []}}
        found[202] = {
            **{"model": Envelope, "description": "It takes longer: here is the job."},
            "content": {"application/json": {"example": told}},
        }
        found |= {status: _error(status) for status in (409, 429, 504)}
    return found


def _error(status: int) -> dict[str, Any]:
    """What an error looks like, for the description of an operation."""
    about, *told = _ERRORS[status]
    example = {"error": dict(zip(("code", "message", "hint"), told, strict=True))}
    return {"model": ErrorEnvelope, "description": about, "content": {"application/json": {"example": example}}}


#: Errors as they are told: about, code, message, hint.
_ERRORS: dict[int, tuple[str, str, str, str | None]] = {
    400: ("The question makes no sense.", "bad-request", "no column named 'date'", "did you mean 'day'?"),
    404: ("What is asked about is not there.", "not-found", "no table named 'a.csv'", "did you mean 'b.csv'?"),
    409: ("The work was cancelled, or there are too many files.", "cancelled", "the work was cancelled", "ask again"),
    413: ("The file is too large.", "too-large", "the file is larger than 50.0 MB", "send a part of it"),
    422: ("A parameter is not valid.", "invalid", "limit: Input should be a valid integer", "see /api/v1/openapi.json"),
    429: ("Too much is going on.", "busy", "too many questions are waiting", "try again in a moment"),
    504: ("There was no answer in time.", "late", "no answer within 180 seconds", "ask for less"),
}
_FILE = {"id": "Zk1xkY5r0c0", "query": "upload:Zk1xkY5r0c0", "name": "mine.csv", "bytes": 4096}
_JOB = {
    **{"id": "Zk1xkY5r0c0", "question": "keys", "state": "running", "doing": "looking for keys", "share": 0.4},
    **{"seconds": 10.0, "limit": 180.0, "before": 0, "error": None},
}


#: Tables and queries, for the description.
TABLES: Any = {"one": {"value": "shop/orders.csv"}}
QUERIES: Any = {
    "table of the lake": {"value": "table:mobility/bike_rides_daily.csv"},
    "file that was sent": {"value": "upload:Zk1xkY5r0c0"},
}
Limit = Annotated[int, Query(ge=1, le=_MOST, description="Records of a page.")]
Offset = Annotated[int, Query(ge=0, le=_FAR, description="Records to leave out before.")]
Name = Annotated[
    str,
    Query(
        max_length=MOST_TEXT,
        description="Name of a table of the lake.",
        openapi_examples=TABLES,
    ),
]
Text = Annotated[str, Query(max_length=MOST_TEXT)]
Wait = Annotated[float, Query(ge=0, le=120, description="Seconds to wait for the answer before a job is told instead.")]
Number = Annotated[str, Path(max_length=64, pattern=r"^[A-Za-z0-9_-]+$", examples=["Zk1xkY5r0c0"])]


def service_of(request: Request) -> Service:
    """The service that a request is answered by."""
    service: Service = request.app.state.service
    return service


def visitor_of(request: Request) -> str:
    """Who asks."""
    visitor: str = request.state.visitor
    return visitor


@dataclass(frozen=True, slots=True)
class Page:
    """Which records are wanted."""

    request: Request
    limit: Limit = 50
    offset: Offset = 0

    def meta(self, total: int) -> dict[str, Any]:
        """What is to say about a page of so many records."""
        following = None
        if self.offset + self.limit < total:
            given = self.request.query_params.multi_items()
            asked = [(name, value) for name, value in given if name not in ("limit", "offset", "token")]
            asked += [("limit", str(self.limit)), ("offset", str(self.offset + self.limit))]
            following = f"{self.request.url.path}?{urlencode(asked)}"
        return {"total": total, "limit": self.limit, "offset": self.offset, "next": following}

    def of(self, records: Sequence[Any]) -> list[Any]:
        """The records that are wanted."""
        found: list[Any] = plain(records[self.offset : self.offset + self.limit])
        return found


Served = Annotated[Service, Depends(service_of)]
Paged = Annotated[Page, Depends()]
Visitor = Annotated[str, Depends(visitor_of)]


class _ShortForm(Request):
    """A request whose form has one file and few fields: each file takes a descriptor."""

    def form(self, **_: Any) -> Any:
        """The form, up to a size."""
        return super().form(max_files=1, max_fields=100)


class ShortForms(APIRoute):
    """A route that takes short forms alone."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """What answers a request."""
        handle = super().get_route_handler()

        async def handler(request: Request) -> Response:
            return await handle(_ShortForm(request.scope, request.receive))

        return handler


router = APIRouter(prefix=PREFIX, route_class=ShortForms)
_Answering = TypeVar("_Answering", bound=Callable[..., Any])


def _route(
    verb: str, path: str, tag: str, example: Any, *, job: bool = False, **about: Any
) -> Callable[[_Answering], _Answering]:
    """Add an operation that answers in an envelope."""
    described = {**responses(example, job=job), **about.pop("responses", {})}
    return router.api_route(path, methods=[verb], response_model=Envelope, tags=[tag], responses=described, **about)


# --- envelopes --------------------------------------------------------------------------------------------------------


def enveloped(data: Any, began: float, status: int = 200, **meta: Any) -> JSONResponse:
    """An answer in its envelope."""
    known = {name: value for name, value in meta.items() if value is not None}
    return JSONResponse(
        {"data": data, "meta": {"seconds": round(time.perf_counter() - began, 4), "notes": [], **known}}, status
    )


def refusal(error: LakescopeError) -> JSONResponse:
    """An error in its envelope."""
    return JSONResponse({"error": told(error)}, int(status_of(error)))


async def finished(asked: Asked, seconds: float, visitor: str = "") -> bool:
    """Whether there is an answer, after waiting for it: the ``visitor`` is there as long."""
    if not isinstance(asked, Job):
        return True
    now = time.monotonic()
    deadline, pause, heard = now + seconds, _LOOK, now
    while not asked.finished.is_set() and (now := time.monotonic()) < deadline:
        if visitor and now - heard > _HEARD:
            asked.meet(visitor)
            heard = now
        await asyncio.sleep(pause)
        pause = min(0.2, pause * 1.3)
    return asked.finished.is_set()


async def answer_of(
    service: Service,
    visitor: str,
    ask: Callable[[], Asked],
    wait: float,
    change: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
    page: Page | None = None,
) -> JSONResponse:
    """An answer in its envelope, or after so many seconds the job that will have it."""
    began = time.perf_counter()
    asked = await run_in_threadpool(ask)
    if not await finished(asked, wait, visitor):
        assert isinstance(asked, Job)
        response = enveloped(job_record(service, visitor, asked), began, 202)
        response.headers["location"] = f"{PREFIX}/jobs/{asked.id}"
        return response
    answer = asked.result() if isinstance(asked, Job) else asked
    answer = answer if change is None else change(answer)
    meta = {"notes": answer.get("notes", [])}
    data = answer.get("data", {name: value for name, value in answer.items() if name != "notes"})
    if page is not None:
        records = data["records"] if isinstance(data, dict) else data
        meta |= page.meta(len(records))
        data = {**data, "records": page.of(records)} if isinstance(data, dict) else page.of(records)
    return enveloped(data, began, **meta)


def job_record(service: Service, visitor: str, job: Job) -> dict[str, Any]:
    """A job as plain data, as it stands for who asks."""
    return {
        "id": job.id,
        "question": job.question,
        "state": job.state_for(visitor),
        "doing": job.doing,
        "share": job.share,
        "seconds": round(job.seconds, 2),
        "limit": job.limit,
        "before": service.jobs.before(job) if job.state == "queued" else 0,
        "error": told(job.error) if job.error is not None else None,
    }


def upload_record(upload: Upload) -> dict[str, Any]:
    """A file as plain data."""
    return {
        **{"id": upload.id, "query": f"upload:{upload.id}", "name": upload.name, "bytes": upload.size},
        **{"made": upload.made, "kept_seconds": KEPT},
    }


# --- one table --------------------------------------------------------------------------------------------------------


@_route(
    "GET",
    "/table/like",
    "table",
    {"records": [{"table": "shop/returns.jsonl", "likeness": 0.4, "shared": ["order_id"]}]},
)
async def like(service: Served, visitor: Visitor, name: Name) -> Response:
    """Tables whose columns are called the same; rare names count more."""
    return await answer_of(service, visitor, lambda: service.like(name), 60)


@_route("GET", "/table/keys", "table", {"primary": [], "refers": [], "referred": []}, job=True)
async def table_keys(service: Served, visitor: Visitor, name: Name, wait: Wait = 10.0) -> Response:
    """The key of a table, what it refers to, and what refers to it."""
    await run_in_threadpool(service.lake.location, name)
    return await answer_of(service, visitor, lambda: service.keys(visitor), wait, lambda answer: keys_of(answer, name))


# --- files and jobs ---------------------------------------------------------------------------------------------------


@_route(
    "POST",
    "/uploads",
    "files",
    {"id": "Zk1xkY5r0c0", "query": "upload:Zk1xkY5r0c0"},
    status_code=201,
    responses={
        201: {
            **{"model": Envelope, "description": "The file was taken."},
            "content": {"application/json": {"example": {"data": _FILE, "meta": {"seconds": 0.004, "notes": []}}}},
        },
        **{status: _error(status) for status in (409, 413, 429)},
    },
)
async def send(
    service: Served,
    visitor: Visitor,
    file: Annotated[UploadFile, File(description="CSV, Parquet, JSON lines or Arrow.")],
) -> Response:
    """Send a file to ask about. It is yours alone (a cookie says who you are), and forgotten after some hours."""
    began = time.perf_counter()
    return enveloped(upload_record(await take(service, visitor, file)), began, 201)


async def take(service: Service, visitor: str, file: UploadFile) -> Upload:
    """Take a file that is sent. No thread waits until its first rows are read: there are few."""
    upload, job = await run_in_threadpool(service.upload, visitor, file.filename or "", file.file)
    if job is not None:
        await finished(job, CHECKED)
    await run_in_threadpool(service.check_readable, upload, job)
    return upload


@_route("GET", "/uploads", "files", [])
async def uploads(service: Served, visitor: Visitor) -> Response:
    """Your files, the latest first."""
    began = time.perf_counter()
    return enveloped([upload_record(each) for each in service.uploads.of_visitor(visitor)], began)


@_route("GET", "/uploads/{number}", "files", {"id": "Zk1xkY5r0c0"})
async def upload(service: Served, visitor: Visitor, number: Number) -> Response:
    """One of your files."""
    began = time.perf_counter()
    return enveloped(upload_record(service.uploads.find(visitor, number)), began)


@_route("DELETE", "/uploads/{number}", "files", {"id": "Zk1xkY5r0c0"})
async def forget(service: Served, visitor: Visitor, number: Number) -> Response:
    """Forget one of your files."""
    began = time.perf_counter()
    await run_in_threadpool(service.uploads.remove, visitor, number)
    return enveloped({"id": number}, began)


@router.get(
    "/uploads/{number}/download",
    tags=["files"],
    response_class=Response,
    responses={
        404: _error(404),
        422: _error(422),
        200: {
            "description": "The file.",
            "content": {
                "text/csv": {"example": '"day","rides"\r\n"2024-01-01",812\r\n'},
                "application/octet-stream": {},
            },
        },
    },
)
async def download(
    service: Served, visitor: Visitor, number: Number, format: Literal["csv", "parquet"] = "csv"
) -> Response:
    """The result of a join. In CSV, cells that a spreadsheet would take for formulas begin with an apostrophe."""
    found = service.uploads.find(visitor, number)
    if not found.made:
        raise NotFound("only results of joins are given back", hint="you have the file that you sent")
    name = f"{plain_name(found.name)}.{format}"
    if format == "parquet":
        return FileResponse(found.path, filename=name, media_type="application/octet-stream")
    return StreamingResponse(
        csv_pieces(found.path), media_type="text/csv", headers={"content-disposition": f'attachment; filename="{name}"'}
    )


@_route("GET", "/jobs", "jobs", [])
async def jobs(service: Served, visitor: Visitor) -> Response:
    """Your jobs, the latest first."""
    began = time.perf_counter()
    return enveloped([job_record(service, visitor, each) for each in service.jobs.of_visitor(visitor)], began)


@_route("GET", "/jobs/{number}", "jobs", {"id": "Zk1xkY5r0c0", "state": "running"})
async def job(service: Served, visitor: Visitor, number: Number) -> Response:
    """How far a job is: queued, running, done, failed or cancelled."""
    began = time.perf_counter()
    return enveloped(job_record(service, visitor, service.jobs.find(visitor, number)), began)


@_route("GET", "/jobs/{number}/answer", "jobs", {}, job=True)
async def job_answer(service: Served, visitor: Visitor, number: Number, wait: Wait = 10.0) -> Response:
    """The answer of a job, or how far it is."""
    found = service.jobs.find(visitor, number)
    return await answer_of(service, visitor, lambda: found, wait)


@_route("DELETE", "/jobs/{number}", "jobs", {"id": "Zk1xkY5r0c0", "state": "cancelled"})
async def cancel(service: Served, visitor: Visitor, number: Number) -> Response:
    """Cancel a job. One that others wait for as well goes on for them."""
    began = time.perf_counter()
    found = service.jobs.find(visitor, number)
    await run_in_threadpool(service.jobs.cancel, found, visitor)
    return enveloped(job_record(service, visitor, found), began)
