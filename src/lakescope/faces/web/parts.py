"""Parts of pages: a question, the template that shows its answer, and what else that template is told.

A part is an address of its own (``/table/joins?name=...``): fetched by the script it is a piece of HTML, opened by hand
a whole page. If its job is still at work it shows how far it is, and how to cancel it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from fastapi import Request as HttpRequest
from fastapi.responses import HTMLResponse, Response
from starlette.concurrency import run_in_threadpool

from lakescope.errors import LakescopeError
from lakescope.faces.rest.api import PREFIX, Served, Text, Visitor, finished, job_record
from lakescope.faces.rest.asking import json_address
from lakescope.faces.serving.jobs import Job
from lakescope.faces.serving.service import FEW_COLUMNS, Asked, Service
from lakescope.faces.web.forms import address, asked_by, chosen, option_form, pairs
from lakescope.faces.web.rendering import environment, link, render
from lakescope.faces.web.searches import search_address
from lakescope.faces.web.trust import References
from lakescope.questions.augment import AugmentRequest
from lakescope.questions.autojoin import AutojoinRequest
from lakescope.questions.catalog import ProfileRequest
from lakescope.questions.correlated import CorrelatedRequest
from lakescope.questions.dependencies import DependenciesRequest
from lakescope.questions.headers import CheckHeadersRequest, SuggestHeadersRequest
from lakescope.questions.history import DriftRequest, HistoryRequest
from lakescope.questions.inclusions import InclusionsRequest
from lakescope.questions.joinable import JoinableRequest
from lakescope.questions.map import MapRequest
from lakescope.questions.model import Request, options_of
from lakescope.questions.paths import JoinPathsRequest
from lakescope.questions.rows import DescribeRequest, HeadRequest
from lakescope.questions.signing import parameter, signed

#: Seconds that a part is waited for before it shows how far it is, and those of somebody who runs no scripts.
PATIENCE, _PATIENCE_BY_HAND = 0.6, 20.0
#: Seconds that what is already there waits for what says more about it.
_MOMENT = 1.5


@dataclass(frozen=True, slots=True)
class PartCall:
    """A part that is fetched: by whom, its question, and what was searched with, to go on with."""

    service: Service
    visitor: str
    asked: Any
    search: str

    @property
    def table(self) -> str:
        """The table of the lake that the question is about; empty if it is a file, or the whole lake."""
        if hasattr(self.asked, "table"):
            return self.asked.table or ""
        query = str(getattr(self.asked, "query", ""))
        return query.removeprefix("table:") if query.startswith("table:") else ""

    def answer(self) -> Asked:
        """The answer, or the job that will have it."""
        return self.service.ask(self.visitor, self.asked)


Context = Mapping[str, Any]


async def _nothing(call: PartCall) -> Context:
    return {}


@dataclass(frozen=True, slots=True)
class PagePart:
    """A part: its question, its template and title, and what leads to it. ``more`` says what else is shown.

    Without an ``address`` it is that of the question; ``values`` are what the question has otherwise there.
    """

    kind: type[Request[Any]]
    template: str
    title: str
    crumbs: tuple[tuple[str, str], ...] = ()
    more: Callable[[PartCall], Awaitable[Context]] = _nothing
    ask: Callable[[PartCall], Any] = PartCall.answer
    address: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)


async def show_part(
    request: HttpRequest,
    service: Service,
    visitor: str,
    ask: Callable[[], Asked],
    template: str,
    title: str,
    **context: Any,
) -> Response:
    """A part: its answer, or how far its job is."""
    piece = "x-part" in request.headers
    asked = await run_in_threadpool(ask)
    there = await finished(asked, PATIENCE if piece else _PATIENCE_BY_HAND)
    shown = f"part_{template}.html" if there else "part_progress.html"
    if there:
        context["answer"] = asked.result() if isinstance(asked, Job) else asked
    else:
        assert isinstance(asked, Job)
        context["job"] = job_record(service, visitor, asked)
    context["address"] = address_of(request)
    if piece:
        return HTMLResponse(environment().get_template(shown).render(**context), 200 if there else 202)
    return render(request, "whole_part.html", part=shown, title=title, **context)


def address_of(request: HttpRequest) -> str:
    """The address that was asked for, without the name of the server."""
    return str(request.url.path) + (f"?{request.url.query}" if request.url.query else "")


def add_parts(router: APIRouter) -> None:
    """Add the addresses of all parts."""
    for part in _PARTS:
        _add(router, part)
    for template, (title, ask) in _OF_A_TABLE.items():
        _add_of_table(router, template, title, ask)


def _add_of_table(router: APIRouter, template: str, title: str, ask: Callable[[Service, str, str], Asked]) -> None:
    """Add a part that is no question, but what a page about a table tells besides."""

    @router.get(f"/table/{template}")
    async def show(request: HttpRequest, service: Served, visitor: Visitor, name: Text = "") -> Response:
        service.lake.location(name)  # refuses what is not there
        shown = {"name": name, "json": link(f"{PREFIX}/table/{template}", name=name)}
        return await show_part(request, service, visitor, lambda: ask(service, visitor, name), template, title, **shown)


def _add(router: APIRouter, part: PagePart) -> None:
    path = part.address or part.kind.about.page

    async def show(request: HttpRequest, service: Any, visitor: str, asked: Any, search: str) -> Response:
        call = PartCall(service, visitor, asked, search)
        context = {
            **{"asked": asked, "search": search, "crumbs": part.crumbs, "json": json_address(asked)},
            **{"name": "" if path.startswith(("/search", "/pair")) else call.table},
            **{"options": option_form(asked, {"search": search} if search else None), **await part.more(call)},
        }
        return await show_part(request, service, visitor, lambda: part.ask(call), part.template, part.title, **context)

    asked = Annotated[Any, Depends(asked_by(part.kind, path, part.values))]
    common = (parameter("request", HttpRequest), parameter("service", Served), parameter("visitor", Visitor))
    own = (parameter("asked", asked), parameter("search", Text, ""))
    router.add_api_route(path, signed(show, part.template, part.title, [*common, *own], Response))


# --- what else is shown -----------------------------------------------------------------------------------------------


def is_small(service: Service) -> bool:
    """Whether the lake is so small that all its columns are compared without being asked to."""
    return bool(service.lake.info()["columns"] <= FEW_COLUMNS)


async def _foreign_keys(call: PartCall) -> list[dict[str, Any]]:
    """References of one column in the lake, if they are known or known in a moment."""
    if not is_small(call.service):
        return []
    try:
        job = await run_in_threadpool(call.service.keys, call.visitor)
        found = job.result()["records"] if await finished(job, _MOMENT) else []
    except LakescopeError:  # told where the keys are shown
        return []
    return [each for each in found if len(each["child_columns"]) == 1]


async def _references(call: PartCall) -> Context:
    """How likely columns of a table refer to others, or others to them."""
    references: References = {
        (each[f"{mine}_columns"][0], each[f"{other}_table"], each[f"{other}_columns"][0]): each["score"]
        for each in (await _foreign_keys(call) if call.table else ())
        for mine, other in (("child", "parent"), ("parent", "child"))
        if each[f"{mine}_table"] == call.table
    }
    return {"references": references}


async def _of_numbers(call: PartCall) -> Context:
    """What tells joins of a path that are of numbers, unless one is known to refer to the other."""
    ends = [
        [f"{each[f'{side}_table']}.{each[f'{side}_columns'][0]}" for side in ("child", "parent")]
        for each in await _foreign_keys(call)
    ]
    known = {" = ".join(some) for one in ends for some in (one, one[::-1])}
    return {"of_numbers": lambda join: join not in known and call.service.catalog.joins_numbers(join)}


async def _searched(call: PartCall) -> Context:
    return {"crumbs": [(search_address(call.asked.query, call.search), "Search")]}


async def _searched_joins(call: PartCall) -> Context:
    return {**await _references(call), **await _searched(call)}


async def _correlated(call: PartCall) -> Context:
    asked, known = call.asked, options_of(AugmentRequest, "web")
    values = chosen(asked)
    kept = list(pairs({name: value for name, value in values.items() if name in known and name != "k"}))
    return {"kept": kept, "crumbs": [(address("/search", values), "Search")]}


async def _pair(call: PartCall) -> Context:
    asked = call.asked
    return {
        "kept": list(pairs(chosen(asked))),
        "crumbs": [(link("/pair", left=asked.left, right=asked.right), "Join two")],
    }


async def _profiles(call: PartCall) -> Context:
    profile = await run_in_threadpool(call.service.known, ProfileRequest(table=call.table))
    return {"columns": {column["name"]: column for column in profile["columns"]}}


def _joins(call: PartCall) -> Asked:
    return call.service.joins(call.visitor, replace(call.asked, query=call.table))


def _history(call: PartCall) -> Asked:
    versions = HistoryRequest(table=call.table)
    return {"versions": call.service.ask(call.visitor, versions), "drift": call.answer()}


_MAP, _PROBLEMS = (("/map", "Map"),), (("/problems", "Problems"),)
_PARTS = (
    PagePart(MapRequest, "links", "Links between tables", _MAP),
    PagePart(InclusionsRequest, "inclusions", "Columns that are in others", _MAP),
    PagePart(CheckHeadersRequest, "check_headers", "Headers in doubt", _PROBLEMS),
    PagePart(HeadRequest, "head", "Sample rows", more=_profiles, address="/table/head"),
    PagePart(ProfileRequest, "details", "Everything about every column", address="/table/details"),
    PagePart(JoinableRequest, "table_joins", "Joins", (), _references, _joins, "/table/joins", {"k": 8}),
    PagePart(DependenciesRequest, "dependencies", "Dependencies"),
    PagePart(JoinPathsRequest, "paths", "Where one can get from here", more=_of_numbers),
    PagePart(DriftRequest, "history", "History", ask=_history),
    PagePart(JoinableRequest, "joins", "Joinable tables", more=_searched_joins),
    PagePart(SuggestHeadersRequest, "suggest_headers", "Names for its columns", more=_searched),
    PagePart(CorrelatedRequest, "correlated", "Correlated columns", more=_correlated),
    PagePart(DescribeRequest, "rows", "First rows", address="/pair/side"),
    PagePart(AutojoinRequest, "plan", "How they join", more=_pair),
)
#: Parts of the page of a table that are no questions.
_OF_A_TABLE: dict[str, tuple[str, Callable[[Service, str, str], Asked]]] = {
    "like": ("Tables like it", lambda service, visitor, name: service.like(name)),
    "keys": ("Keys", lambda service, visitor, name: service.keys(visitor)),
}
