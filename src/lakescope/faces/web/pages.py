"""The web pages: rendered here, complete without scripts; what takes long is a part that a little script fetches.

A part is an address of its own (``/table/joins?name=...``): fetched by the script it is a piece of HTML, opened by hand
a whole page. If its job is still at work it shows how far it is, and how to cancel it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any, cast

from fastapi import APIRouter, Depends, FastAPI, File, Form, Query, Request, UploadFile
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.concurrency import run_in_threadpool

from lakescope.errors import LakescopeError
from lakescope.faces.rest.api import MOST_TEXT, PREFIX, Served, ShortForms, Text, Visitor, finished, job_record, take
from lakescope.faces.rest.asking import json_address
from lakescope.faces.serving.jobs import Job
from lakescope.faces.serving.refusals import status_of, told
from lakescope.faces.serving.service import Query as Asking
from lakescope.faces.serving.service import Service
from lakescope.faces.serving.tasks import search_of
from lakescope.faces.serving.uploads import MOST, SUFFIXES, Upload
from lakescope.faces.web.forms import address, asked_by, chosen, given_by, page_address, pairs, sent_by
from lakescope.faces.web.parts import PATIENCE, add_parts, address_of, is_small
from lakescope.faces.web.rendering import STATIC, link, render, static
from lakescope.faces.web.searches import guessed, joins_address, search_from
from lakescope.lake import meaningless
from lakescope.questions import QUESTIONS, declared
from lakescope.questions.augment import AugmentRequest
from lakescope.questions.autojoin import AutojoinRequest
from lakescope.questions.catalog import InfoRequest, ProblemsRequest, ProfileRequest, TablesRequest
from lakescope.questions.correlated import CorrelatedRequest
from lakescope.questions.find import FindRequest
from lakescope.questions.model import Request as Question
from lakescope.questions.rows import DescribeRequest
from lakescope.questions.signing import parameter, signed
from lakescope.show.text import size_text

_PAGE = 50
#: Names of tables that a field completes at most.
_LISTED = 2_000
#: Options of a search that its form has fields for.
_SEARCH_FIELDS = ("query", "key", "target", "agg")

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse, route_class=ShortForms)
PageNumber = Annotated[int, Query(ge=1, le=10_000_000)]
FormText = Annotated[str, Form(max_length=MOST_TEXT)]


# --- the lake ---------------------------------------------------------------------------------------------------------


@router.get("/")
async def home(
    request: Request,
    service: Served,
    asked: Annotated[TablesRequest, Depends(asked_by(TablesRequest))],
    page: PageNumber = 1,
) -> Response:
    """The lake at a glance, and its tables."""
    wanted = {name: value or "" for name, value in asdict(asked).items()}
    facets = {name: value for name, value in wanted.items() if name != "sort"}
    found, overview, counted = await run_in_threadpool(
        lambda: (service.known(asked), service.known(InfoRequest(counts=True)), service.facets(**facets))
    )
    records, about = _page_of(page, asked, found)
    filters = {name: value for name, value in wanted.items() if value and (name, value) != ("sort", "rows")}
    return render(
        request,
        "home.html",
        overview=overview,
        facets=counted,
        tables=records,
        filters=filters,
        wanted=wanted,
        largest=size_text(service.uploads.largest),
        suffixes=",".join(SUFFIXES),
        **about,
    )


def _page_of(page: int, asked: Question[Any], found: Sequence[Any]) -> tuple[Sequence[Any], dict[str, Any]]:
    """What is on a page of a list, or on its last one if it is beyond that, and what is told about it."""
    pages = -(-len(found) // _PAGE)
    page = min(page, max(1, pages))
    first = (page - 1) * _PAGE
    about = {"page": page, "pages": pages, "total": len(found)}
    return found[first : first + _PAGE], {**about, "json": json_address(asked, limit=_PAGE, offset=first)}


@router.get("/find")
async def find(request: Request, service: Served, visitor: Visitor, q: Text = "") -> Response:
    """Search by name and by value."""
    if not q.strip():
        return RedirectResponse("/", 303)
    asked = FindRequest.of({"text": q}, "web")
    found = await run_in_threadpool(service.at_once, visitor, asked)
    return render(request, "find.html", q=q, found=found, json=json_address(asked))


@router.get("/problems")
async def problems(
    request: Request,
    service: Served,
    asked: Annotated[ProblemsRequest, Depends(asked_by(ProblemsRequest))],
    page: PageNumber = 1,
) -> Response:
    """What could not be read, and what was odd."""
    found, overview = await run_in_threadpool(lambda: (service.known(asked), service.known(InfoRequest(counts=True))))
    records, about = _page_of(page, asked, found)
    return render(
        request,
        "problems.html",
        problems=records,
        severity=asked.severity or "",
        overview=overview,
        tables={each["table"] for each in records if service.catalog.holds(each["table"])},
        **about,
    )


@router.get("/map")
async def lake_map(request: Request, service: Served) -> Response:
    """The lake's map."""
    return render(request, "map.html", json=f"{PREFIX}/map")


@router.get("/api")
async def interface(request: Request) -> Response:
    """The REST interface on a page."""
    described = request.app.openapi()
    operations = [
        {"method": method.upper(), "path": path, "about": about["summary"], "told": about.get("description", "")}
        for path, methods in described["paths"].items()
        for method, about in methods.items()
    ]
    return render(request, "api.html", operations=operations, json=f"{PREFIX}/openapi.json")


# --- one table --------------------------------------------------------------------------------------------------------


@router.get("/table")
async def table(request: Request, service: Served, name: Text = "") -> Response:
    """One table."""
    asked = ProfileRequest.of({"table": name}, "web")
    profile = await run_in_threadpool(service.known, asked)
    alerts = [(at, column["name"], word) for at, column in enumerate(profile["columns"]) for word in column["alerts"]]
    versions = await run_in_threadpool(service.lake.versions, name)
    return render(
        request,
        "table.html",
        profile=profile,
        alerts=alerts,
        few=is_small(service),
        versions=versions,
        nameless=any(meaningless(column["name"]) for column in profile["columns"]),
        json=json_address(asked),
    )


# --- search with your own file ----------------------------------------------------------------------------------------


@router.get("/search")
async def search(
    request: Request,
    service: Served,
    visitor: Visitor,
    given: Annotated[dict[str, Any], Depends(given_by(CorrelatedRequest))],
    chosen_none: Annotated[Text, Query(alias="chosen")] = "",
) -> Response:
    """Search with a file, or with a table of the lake."""
    mine = service.uploads.of_visitor(visitor)
    shown: dict[str, Any] = {
        "mine": mine,
        "most_files": MOST,
        "largest": size_text(service.uploads.largest),
        "suffixes": ",".join(SUFFIXES),
    }
    if "query" not in given:
        return render(request, "search_start.html", json=f"{PREFIX}/uploads", **shown)
    asked = CorrelatedRequest.of(given, "web")
    query = await run_in_threadpool(service.query, visitor, asked.query)
    question = DescribeRequest.of({"query": asked.query}, "web")
    described = cast("Job", await run_in_threadpool(service.ask, visitor, question))
    answer = described.result() if await finished(described, PATIENCE) else None
    columns = answer["records"] if answer else []
    # Who named a key, and no target, wants joins alone.
    named = asked.key is not None
    asked = asked if named else guessed(asked, columns)
    return render(
        request,
        "search.html",
        query=query,
        answer=answer,
        nothing_chosen=chosen_none == "none",
        columns=columns,
        asked=asked,
        kept=list(pairs({name: value for name, value in chosen(asked).items() if name not in _SEARCH_FIELDS})),
        correlated=page_address(asked) if asked.key and asked.target else "",
        joins=joins_address(asked, is_named=named) if asked.key else "",
        guessed=set() if named else {each["name"] for each in columns if each["role"]},
        nameless=any(meaningless(each["name"]) for each in columns),
        few=is_small(service),
        job=job_record(service, visitor, described),
        address=address_of(request),
        json=json_address(question),
        **shown,
    )


@router.post("/search/upload")
async def send(service: Served, visitor: Visitor, file: Annotated[UploadFile, File()]) -> Response:
    """Take a file from a form."""
    upload = await take(service, visitor, file)
    return RedirectResponse(link("/search", query=f"upload:{upload.id}"), 303)


@router.post("/search/forget")
async def forget(service: Served, visitor: Visitor, number: Annotated[str, Form(max_length=64)]) -> Response:
    """Forget a file."""
    await run_in_threadpool(service.uploads.remove, visitor, number)
    return RedirectResponse("/search", 303)


def _add_form(kind: type[Question[Any]]) -> None:
    """Take the form of a question that has a table made; ``search`` is what else was asked for, to go on with."""

    async def make(service: Any, visitor: str, given: dict[str, Any], search: str) -> Response:
        if kind is AugmentRequest and "finds" not in given:  # told where the finds are
            return RedirectResponse(f"{address('/search', {**given, 'chosen': 'none'})}#correlated", 303)
        asked = kind.of(given, "web")
        searching = search_from(given.get("query", ""), search)
        onwards = search_of(searching) if searching is not None and searching.key else None
        job = await run_in_threadpool(service.make, visitor, asked, onwards)
        return RedirectResponse(link("/result", job=job.id), 303)

    common = (parameter("service", Served), parameter("visitor", Visitor))
    given = Annotated[dict[str, Any], Depends(sent_by(kind))]
    own = (parameter("given", given), parameter("search", FormText, ""))
    router.add_api_route(
        kind.about.form, signed(make, kind.about.name, "", [*common, *own], Response), methods=["POST"]
    )


@router.get("/result")
async def result(request: Request, service: Served, visitor: Visitor, job: Text = "") -> Response:
    """The result of a join."""
    found = service.jobs.find(visitor, job)
    if await finished(found, PATIENCE):
        json = f"{PREFIX}/jobs/{found.id}/answer"
        return render(request, "result.html", answer=found.result(), job=None, address="", json=json)
    record, again = job_record(service, visitor, found), link("/result", job=job)
    return render(request, "result.html", answer=None, job=record, address=again)


@router.post("/cancel")
async def cancel(service: Served, visitor: Visitor, job: FormText, back: FormText = "/") -> Response:
    """Cancel a job, for who runs no scripts."""
    await run_in_threadpool(service.jobs.cancel, service.jobs.find(visitor, job), visitor)
    return RedirectResponse("/" + back.lstrip("/\\"), 303)


# --- two tables -------------------------------------------------------------------------------------------------------


def _called(service: Service, files: list[Upload]) -> dict[str, Upload]:
    """Files of a visitor's by name, of those whose name is enough to tell them from others and from tables."""
    names = Counter(each.name for each in files)
    return {
        each.name: each
        for each in files
        if names[each.name] == 1 and ":" not in each.name and not service.catalog.holds(each.name)
    }


def _written(query: Asking, called: dict[str, Upload]) -> str:
    """What one writes to ask about a query: its name if that is enough."""
    by_name = ":" not in query.name if query.in_lake else query.name in called
    return query.name if by_name else query.reference


@router.get("/pair")
async def pair(request: Request, service: Served, visitor: Visitor, left: Text = "", right: Text = "") -> Response:
    """Two tables side by side."""
    given, sides, wrong = {"left": left, "right": right}, dict[str, Any](), {}
    mine = service.uploads.of_visitor(visitor)
    called = _called(service, mine)
    for side, reference in given.items():
        sides[side] = None
        if reference and ":" not in reference.partition("/")[0]:
            file = called.get(reference)
            reference = f"upload:{file.id}" if file else f"table:{reference}"
        try:
            sides[side] = await run_in_threadpool(service.query, visitor, reference) if reference else None
        except LakescopeError as error:  # what was written stays, to be corrected
            wrong[side] = error
    names = service.catalog.names
    both = {side: query.reference for side, query in sides.items() if query}
    json = json_address(AutojoinRequest.of(both, "web")) if len(both) == 2 else f"{PREFIX}/tables"
    return render(
        request,
        "pair.html",
        int(status_of(next(iter(wrong.values())))) if wrong else 200,
        written={side: _written(query, called) if query else given[side] for side, query in sides.items()},
        called=called,
        wrong={side: told(service.places.without(error)) for side, error in wrong.items()},
        **sides,
        mine=mine,
        names=names if len(names) <= _LISTED else [],
        json=json,
    )


# --- files of ours ----------------------------------------------------------------------------------------------------


class _Files(StaticFiles):
    """Our own files; their addresses change when they do, so browsers may keep them."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        response = super().file_response(*args, **kwargs)
        response.headers["cache-control"] = "public, max-age=31536000, immutable"
        return response


@router.get("/favicon.ico")
async def favicon() -> Response:
    """The sign in the browser's tab."""
    return RedirectResponse(static("logo.svg"), 308)


@router.get("/healthz")
async def health(service: Served) -> Response:
    """Whether the server answers, and whether it is warm."""
    return JSONResponse({"ok": True, "ready": service.ready.is_set(), "time": time.time()})


add_parts(router)
for _kind in map(declared, QUESTIONS):
    if _kind.about.form:
        _add_form(_kind)


def add_pages(app: FastAPI) -> None:
    """Add all pages to an application."""
    app.include_router(router)
    app.mount("/static", _Files(directory=STATIC), name="static")
