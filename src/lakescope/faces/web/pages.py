"""The web pages: rendered here, complete without scripts; what takes long is a part that a little script fetches.

A part is an address of its own (``/table/joins?name=...``): fetched by the script it is a piece of HTML, opened by hand
a whole page. If its job is still at work it shows how far it is, and how to cancel it.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, cast
from urllib.parse import parse_qsl, quote, urlencode

from fastapi import APIRouter, Depends, FastAPI, File, Form, Query, Request, UploadFile
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from fastapi.staticfiles import StaticFiles
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup, escape
from starlette.concurrency import run_in_threadpool

from lakescope._version import __version__
from lakescope.code.dialects import CALLED
from lakescope.errors import LakescopeError
from lakescope.faces.rest.api import PREFIX, Served, ShortForms, Visitor, finished, job_record, take
from lakescope.faces.rest.asking import json_address
from lakescope.faces.serving.jobs import Job
from lakescope.faces.serving.refusals import FromElsewhere, status_of, told
from lakescope.faces.serving.service import FEW_COLUMNS, Asked, Service, keys_of
from lakescope.faces.serving.service import Query as Asking
from lakescope.faces.serving.tasks import search_of
from lakescope.faces.serving.uploads import MOST, SUFFIXES, Upload
from lakescope.faces.web.forms import (
    address,
    asked_by,
    chosen,
    given_by,
    option_form,
    page_address,
    pairs,
    searched,
    sent_by,
)
from lakescope.lake import CHANCE, meaningless
from lakescope.questions.augment import AugmentRequest, JoinedRequest
from lakescope.questions.autojoin import AutojoinRequest
from lakescope.questions.catalog import InfoRequest, ProblemsRequest, ProfileRequest, TablesRequest
from lakescope.questions.correlated import CorrelatedRequest
from lakescope.questions.dependencies import DependenciesRequest
from lakescope.questions.find import FindRequest
from lakescope.questions.headers import CheckHeadersRequest, SuggestHeadersRequest
from lakescope.questions.history import DriftRequest, HistoryRequest
from lakescope.questions.inclusions import InclusionsRequest
from lakescope.questions.joinable import JoinableRequest
from lakescope.questions.map import MapRequest
from lakescope.questions.model import Request as Question
from lakescope.questions.model import options_of
from lakescope.questions.paths import JoinPathsRequest
from lakescope.questions.rows import DescribeRequest, HeadRequest
from lakescope.show.charts import Svg, column_chart, scatter_chart, share_bar
from lakescope.show.text import percent, printable, rows_range, shorten, shorten_inside, size_text
from lakescope.sketches.aggregates import AGGREGATES

_STATIC = Path(__file__).parent / "static"
_PAGE = 50
#: Seconds that a part is waited for before it shows how far it is.
_PATIENCE = 0.6
#: Seconds that what is already there waits for what says more about it.
_MOMENT = 1.5
#: Seconds that somebody waits who runs no scripts.
_PATIENCE_BY_HAND = 20.0
#: Share of false finds from which on a find may be chance.
_FALSE = 0.05
#: Options of a search that its form has fields for.
_SEARCH_FIELDS = ("query", "key", "target", "agg")

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse, route_class=ShortForms)
Text = Annotated[str, Query(max_length=5_000)]
FormText = Annotated[str, Form(max_length=5_000)]


# --- rendering --------------------------------------------------------------------------------------------------------


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("lakescope.faces.web"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": lambda value: "" if value is None else f"{value:,}",
        "compact": _compact,
        "percent": lambda share: "" if share is None else percent(share),
        "size": size_text,
        "short": lambda text, width=60: shorten(str(text), width),
        "parts": lambda name, width=100: _parts(shorten_inside(str(name), width)),
        "sides": _sides,
        "signed": _signed,
        "shown": lambda text: printable(str(text)),
        "figure": _figure,
        "histogram": _histogram,
        "rows_range": rows_range,
        "bar": share_bar,
        "scatter": _scatter,
        "day": lambda text: str(text)[:10],
    }
    environment.tests["nameless"] = lambda name: meaningless(name)
    environment.tests["of_numbers"] = lambda joins, are: any(are(each) for each in joins)
    environment.globals |= {
        "version": __version__,
        "link": link,
        "static": _static,
        "api": PREFIX,
        "aggregates": AGGREGATES,
        "dialects": CALLED,
        "chance": CHANCE,
        "cautions": cautions,
    }
    return environment


def link(path: str, **parameters: Any) -> str:
    """An address with its parameters; those that are empty are left out."""
    pairs = [(name, value) for name, value in parameters.items() if value not in (None, "", False, [])]
    return f"{path}?{urlencode(pairs, doseq=True)}" if pairs else path


@cache
def _static(name: str) -> str:
    """The address of a file of ours, which changes when the file does."""
    return f"/static/{name}?v={hashlib.sha256((_STATIC / name).read_bytes()).hexdigest()[:10]}"


def _compact(value: float) -> str:
    """A large number in few signs."""
    for size, unit in ((1e9, "B"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1e3 if unit == 'k' else size):.3g} {unit}"
    return f"{value:,.0f}"


def _figure(value: Any) -> str:
    """A number as a person reads it; texts as they are."""
    if isinstance(value, bool) or value is None:
        return "" if value is None else "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:.4g}"
    return printable(str(value))


def _histogram(column: dict[str, Any]) -> Markup:
    """A column at a glance, or why there is nothing to see."""
    if drawn := column_chart(column):
        return Markup(drawn)
    return Markup('<span class="nobars">all different</span>' if column["distinct"] > 1 else "")


def _scatter(found: dict[str, Any], target: str) -> Svg:
    """The sample behind a correlation, as small as a card: one point a key."""
    title = f"{found['column']} against {target}, {len(found['points'])} keys"
    return scatter_chart(found["points"], title=title, x=target, y=found["column"], heading=False, small=True)


def _signed(number: float, *others: float | None) -> str:
    """A coefficient with its sign; digits enough to tell it from 1, and from others beside it."""
    near = [other for other in (*others, math.copysign(1.0, number)) if other is not None and other != number]
    digits = next((each for each in range(2, 6) if all(f"{number:.{each}f}" != f"{it:.{each}f}" for it in near)), 5)
    return f"{number:+.{digits}f}".replace("-", "\N{MINUS SIGN}")


def _parts(name: str) -> Markup:
    """A name that breaks where a person would break it: after a folder or a word, before an ending."""
    pieces = re.split(r"(?<=[/_-])(?=[^/_-])|(?=\.)", name)
    return Markup("<wbr>").join(escape(piece) for piece in pieces)


def _sides(join: str, width: int = 78) -> Markup:
    """A join of a path, each side cut for itself: cut as a whole, long names would swallow what stands between them."""
    left, between, right = join.partition(" = ")
    return _parts(shorten_inside(left, width)) + between + _parts(shorten_inside(right, width))


def render(request: Request, template: str, status: int = 200, **context: Any) -> HTMLResponse:
    """A page."""
    shown = {"path": request.url.path, "q": "", "json": "", **context}
    return HTMLResponse(_environment().get_template(template).render(**shown), status)


def refusal(error: LakescopeError, scope: Any) -> HTMLResponse:
    """An error as a page, or as a piece of one; where a link of another site led, a page that asks."""
    if isinstance(error, FromElsewhere):
        address = quote("/" + scope["path"].lstrip("/\\")) + "?" + scope["query_string"].decode("latin-1")
        text = _environment().get_template("elsewhere.html")
        return HTMLResponse(text.render(path=scope["path"], q="", json="", address=address))
    piece = any(name == b"x-part" for name, _ in scope["headers"])
    text = _environment().get_template("part_error.html" if piece else "error.html")
    status = int(status_of(error))
    shown = {"error": told(error), "status": status, "path": scope["path"], "q": "", "json": "", **_asking(scope)}
    return HTMLResponse(text.render(**shown), status)


def _asking(scope: Any) -> dict[str, Any]:
    """Where the page goes on that asks for the token: to what was asked for."""
    if scope["method"] != "GET":
        return {"rest": [], "onwards": "/"}
    pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    return {"rest": [pair for pair in pairs if pair[0] != "token"], "onwards": quote("/" + scope["path"].lstrip("/\\"))}


async def _part(
    request: Request,
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
    there = await finished(asked, _PATIENCE if piece else _PATIENCE_BY_HAND)
    shown = "part_progress.html"
    if there:
        shown = template
        context["answer"] = asked.result() if isinstance(asked, Job) else asked
    else:
        assert isinstance(asked, Job)
        context["job"] = job_record(service, visitor, asked)
    address = str(request.url.path) + (f"?{request.url.query}" if request.url.query else "")
    if piece:
        text = _environment().get_template(shown).render(address=address, **context)
        return HTMLResponse(text, 200 if there else 202)
    return render(request, "whole_part.html", part=shown, title=title, address=address, **context)


async def _question(
    request: Request,
    service: Service,
    visitor: str,
    asked: Question[Any],
    template: str,
    title: str,
    beside: Mapping[str, Any] | None = None,
    **context: Any,
) -> Response:
    """A part that answers a question, with its options, and a link to the answer as JSON.

    ``beside`` is what its form carries along.
    """
    context = {"json": json_address(asked), "options": option_form(asked, beside), **context}
    return await _part(request, service, visitor, lambda: service.ask(visitor, asked), template, title, **context)


# --- the lake ---------------------------------------------------------------------------------------------------------


@router.get("/")
async def home(
    request: Request,
    service: Served,
    asked: Annotated[TablesRequest, Depends(asked_by(TablesRequest))],
    page: Annotated[int, Query(ge=1, le=10_000_000)] = 1,
) -> Response:
    """The lake at a glance, and its tables."""
    wanted = {name: value or "" for name, value in asdict(asked).items()}
    facets = {name: value for name, value in wanted.items() if name != "sort"}
    found, overview, counted = await run_in_threadpool(
        lambda: (service.known(asked), service.known(InfoRequest(counts=True)), service.facets(**facets))
    )
    page, records = _page_of(page, found)
    filters = {name: value for name, value in wanted.items() if value and (name, value) != ("sort", "rows")}
    return render(
        request,
        "home.html",
        overview=overview,
        facets=counted,
        tables=records,
        total=len(found),
        page=page,
        pages=-(-len(found) // _PAGE),
        filters=filters,
        wanted=wanted,
        largest=size_text(service.uploads.largest),
        suffixes=",".join(SUFFIXES),
        json=json_address(asked, limit=_PAGE, offset=(page - 1) * _PAGE),
    )


def _page_of(page: int, found: Sequence[Any]) -> tuple[int, Sequence[Any]]:
    """A page of a list, or its last one if it is beyond that: its number, and what is on it."""
    page = min(page, max(1, -(-len(found) // _PAGE)))
    return page, found[(page - 1) * _PAGE : page * _PAGE]


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
    page: Annotated[int, Query(ge=1, le=10_000_000)] = 1,
) -> Response:
    """What could not be read, and what was odd."""
    found, overview = await run_in_threadpool(lambda: (service.known(asked), service.known(InfoRequest(counts=True))))
    page, records = _page_of(page, found)
    return render(
        request,
        "problems.html",
        problems=records,
        total=len(found),
        page=page,
        pages=-(-len(found) // _PAGE),
        severity=asked.severity or "",
        overview=overview,
        tables={each["table"] for each in records if service.catalog.holds(each["table"])},
        json=json_address(asked, limit=_PAGE, offset=(page - 1) * _PAGE),
    )


@router.get("/map")
async def lake_map(request: Request, service: Served) -> Response:
    """The lake's map."""
    return render(request, "map.html", json=f"{PREFIX}/map")


@router.get("/map/links")
async def map_links(
    request: Request,
    service: Served,
    visitor: Visitor,
    asked: Annotated[MapRequest, Depends(asked_by(MapRequest))],
) -> Response:
    """The links of the map as a list."""
    return await _question(
        request, service, visitor, asked, "part_links.html", "Links between tables", crumbs=[("/map", "Map")]
    )


@router.get("/map/inclusions")
async def map_inclusions(
    request: Request,
    service: Served,
    visitor: Visitor,
    asked: Annotated[InclusionsRequest, Depends(asked_by(InclusionsRequest))],
) -> Response:
    """Columns whose values are in others."""
    return await _question(
        request,
        service,
        visitor,
        asked,
        "part_inclusions.html",
        "Columns that are in others",
        minimum=asked.minimum,
        name=asked.table or "",
        crumbs=[] if asked.table else [("/map", "Map")],
    )


@router.get("/problems/headers")
async def check_headers(request: Request, service: Served, visitor: Visitor) -> Response:
    """Headers that are in doubt."""
    asked = CheckHeadersRequest()
    return await _part(
        request,
        service,
        visitor,
        lambda: service.ask(visitor, asked),
        "part_check_headers.html",
        "Headers in doubt",
        json=json_address(asked),
        crumbs=[("/problems", "Problems")],
    )


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
        few=_is_small(service),
        versions=versions,
        nameless=any(meaningless(column["name"]) for column in profile["columns"]),
        json=json_address(asked),
    )


def _is_small(service: Service) -> bool:
    """Whether the lake is so small that all its columns are compared without being asked to."""
    return bool(service.lake.info()["columns"] <= FEW_COLUMNS)


#: What tells a reference from columns that merely overlap: the column here, the table there, its column.
References = dict[tuple[str, str, str], float]


async def _foreign_keys(service: Service, visitor: str) -> list[dict[str, Any]]:
    """References of one column in the lake, if they are known or known in a moment."""
    if not _is_small(service):
        return []
    try:
        job = await run_in_threadpool(service.keys, visitor)
        found = job.result()["records"] if await finished(job, _MOMENT) else []
    except LakescopeError:  # told where the keys are shown
        return []
    return [each for each in found if len(each["child_columns"]) == 1]


async def _references(service: Service, visitor: str, name: str) -> References:
    """How likely columns of a table refer to others, or others to them."""
    found = await _foreign_keys(service, visitor)
    return {
        (each[f"{mine}_columns"][0], each[f"{other}_table"], each[f"{other}_columns"][0]): each["score"]
        for each in found
        for mine, other in (("child", "parent"), ("parent", "child"))
        if each[f"{mine}_table"] == name
    }


async def _of_numbers(service: Service, visitor: str) -> Callable[[str], bool]:
    """Tells joins of a path that are of numbers, unless one is known to refer to the other."""
    ends = [
        [f"{each[f'{side}_table']}.{each[f'{side}_columns'][0]}" for side in ("child", "parent")]
        for each in await _foreign_keys(service, visitor)
    ]
    known = {" = ".join(some) for one in ends for some in (one, one[::-1])}
    return lambda join: join not in known and service.catalog.joins_numbers(join)


def cautions(join: dict[str, Any], reference: float | None = None) -> list[str]:
    """Why to be careful with a join. An overlap of running numbers neither speaks for a reference nor against it."""
    reasons = list(join["reasons"])
    if join["p"] <= CHANCE or not reasons:
        return reasons
    running = next((each for each in reasons if each.startswith("both are ranges of ")), None)
    what = f": {running.partition(':')[0]}" if running else ""
    if reference is not None:
        return [f"overlap alone cannot tell{what}. But all that is known of the two makes a reference likely"]
    if running is None:
        return reasons
    others = [each for each in reasons[1:] if each != running]
    return [f"no more than chance explains, and overlap alone cannot tell{what}", *others]


@router.get("/table/head")
async def table_head(request: Request, service: Served, visitor: Visitor, name: Text = "") -> Response:
    """The first rows of a table, each column with its histogram."""
    profile = await run_in_threadpool(service.known, ProfileRequest.of({"table": name}, "web"))
    columns = {column["name"]: column for column in profile["columns"]}
    asked = HeadRequest.of({"query": f"table:{name}"}, "web")
    return await _part(
        request,
        service,
        visitor,
        lambda: service.ask(visitor, asked),
        "part_head.html",
        "Sample rows",
        columns=columns,
        name=name,
        json=json_address(asked),
    )


@router.get("/table/details")
async def table_details(request: Request, service: Served, visitor: Visitor, name: Text = "") -> Response:
    """Everything about the columns of a table."""
    asked = ProfileRequest.of({"table": name}, "web")
    return await _part(
        request,
        service,
        visitor,
        lambda: service.ask(visitor, asked),
        "part_details.html",
        "Everything about every column",
        name=name,
        json=json_address(asked),
    )


@router.get("/table/joins")
async def table_joins(request: Request, service: Served, visitor: Visitor, name: Text = "") -> Response:
    """Tables that join with one."""
    asked = JoinableRequest.of({"query": f"table:{name}", "k": 8}, "web")
    return await _part(
        request,
        service,
        visitor,
        lambda: service.joins(visitor, replace(asked, query=name)),
        "part_table_joins.html",
        "Joins",
        name=name,
        telling_joins=telling_joins,
        references=await _references(service, visitor, name),
        json=json_address(asked),
    )


def telling_joins(records: list[dict[str, Any]], references: References) -> list[dict[str, Any]]:
    """Joins that share more than few values, or are known to be references."""
    return [
        each
        for each in records
        if each["quality"] != "none" or (each["query_column"], each["table"], each["column"]) in references
    ]


@router.get("/table/like")
async def table_like(request: Request, service: Served, visitor: Visitor, name: Text = "") -> Response:
    """Tables like one."""
    return await _part(
        request,
        service,
        visitor,
        lambda: service.like(name),
        "part_like.html",
        "Tables like it",
        name=name,
        json=link(f"{PREFIX}/table/like", name=name),
    )


@router.get("/table/keys")
async def table_keys(request: Request, service: Served, visitor: Visitor, name: Text = "") -> Response:
    """The keys of a table."""
    service.lake.location(name)
    return await _part(
        request,
        service,
        visitor,
        lambda: service.keys(visitor),
        "part_keys.html",
        "Keys",
        name=name,
        keys_of=keys_of,
        json=link(f"{PREFIX}/table/keys", name=name),
    )


@router.get("/table/dependencies")
async def table_dependencies(
    request: Request,
    service: Served,
    visitor: Visitor,
    asked: Annotated[DependenciesRequest, Depends(asked_by(DependenciesRequest))],
) -> Response:
    """The dependencies of a table."""
    name = _name_of(asked.query)
    return await _question(request, service, visitor, asked, "part_dependencies.html", "Dependencies", name=name)


@router.get("/table/paths")
async def table_paths(
    request: Request,
    service: Served,
    visitor: Visitor,
    asked: Annotated[JoinPathsRequest, Depends(asked_by(JoinPathsRequest))],
) -> Response:
    """Tables that can be reached from one, join after join."""
    return await _question(
        request,
        service,
        visitor,
        asked,
        "part_paths.html",
        "Where one can get from here",
        name=_name_of(asked.query),
        of_numbers=await _of_numbers(service, visitor),
    )


def _name_of(reference: str) -> str:
    """The name of a table of the lake that is referred to; empty if it is a file."""
    return reference.removeprefix("table:") if reference.startswith("table:") else ""


@router.get("/table/history")
async def table_history(
    request: Request,
    service: Served,
    visitor: Visitor,
    drift: Annotated[DriftRequest, Depends(asked_by(DriftRequest))],
) -> Response:
    """The versions of a table, and what drifted since one of them."""
    versions = HistoryRequest.of({"table": drift.table or ""}, "web")
    return await _part(
        request,
        service,
        visitor,
        lambda: {"versions": service.ask(visitor, versions), "drift": service.ask(visitor, drift)},
        "part_history.html",
        "History",
        name=drift.table,
        since=drift.since or "",
        json=json_address(drift),
        options=option_form(drift),
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
    answer = described.result() if await finished(described, _PATIENCE) else None
    columns = answer["records"] if answer else []
    # Who named a key, and no target, wants joins alone.
    named = asked.key is not None
    asked = asked if named else _guessed(asked, columns)
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
        joins=_joins_address(asked, is_named=named) if asked.key else "",
        guessed=set() if named else {each["name"] for each in columns if each["role"]},
        nameless=any(meaningless(each["name"]) for each in columns),
        few=_is_small(service),
        job=job_record(service, visitor, described),
        address=str(request.url.path) + f"?{request.url.query}",
        json=json_address(question),
        **shown,
    )


def _guessed(asked: CorrelatedRequest, columns: list[dict[str, Any]]) -> CorrelatedRequest:
    """What is asked unless a key is named: by the likeliest one, about the likeliest number."""
    roles = {each["role"]: each["name"] for each in columns if each["role"]}
    return replace(asked, key=(roles["key"],) if "key" in roles else None, target=asked.target or roles.get("target"))


def _joins_address(asked: CorrelatedRequest, *, is_named: bool) -> str:
    """The part that tells of joins on a key; with it goes what was searched with, if it was chosen or can be."""
    assert asked.key is not None
    values: dict[str, Any] = {"query": asked.query, "on": asked.key[0]}
    return address(JoinableRequest.about.page, values | _beside(asked if is_named or asked.target else None))


def _beside(asked: CorrelatedRequest | None) -> dict[str, str]:
    """What was searched with, as one text that pages pass on: the options of a search, as its address has them."""
    if asked is None:
        return {}
    return {"search": urlencode({name: each for name, each in chosen(asked).items() if name != "query"}, doseq=True)}


def _search(query: str, text: str) -> CorrelatedRequest | None:
    """What was searched with, from the text that pages pass on; None if there is none, or it is no search."""
    given: dict[str, Any] = {}
    known = options_of(CorrelatedRequest, "web")
    for name, value in parse_qsl(text):
        if name in known:
            given[name] = [*given.get(name, []), value] if known[name].type is tuple else value
    try:
        return searched(CorrelatedRequest, {"query": query, **given}) if given else None
    except (LakescopeError, ValueError):
        return None


@router.get("/search/joins")
async def search_joins(
    request: Request,
    service: Served,
    visitor: Visitor,
    asked: Annotated[JoinableRequest, Depends(asked_by(JoinableRequest))],
    search: Text = "",
) -> Response:
    """Tables that join with a query; ``search`` is what else was asked for, to go on with."""
    name = _name_of(asked.query)
    searching = _search(asked.query, search)
    return await _question(
        request,
        service,
        visitor,
        asked,
        "part_joins.html",
        "Joinable tables",
        {"search": search} if search else None,
        query=asked.query,
        search=search,
        references=await _references(service, visitor, name) if name else {},
        crumbs=[(_search_address(asked.query, searching), "Search")],
    )


def _search_address(query: str, asked: CorrelatedRequest | None) -> str:
    """The address of the page that searches with a table."""
    return address("/search", {"query": query} if asked is None else chosen(asked))


@router.get("/search/headers")
async def suggest_headers(
    request: Request,
    service: Served,
    visitor: Visitor,
    asked: Annotated[SuggestHeadersRequest, Depends(asked_by(SuggestHeadersRequest))],
) -> Response:
    """Names for the columns of a query that have none."""
    return await _question(
        request,
        service,
        visitor,
        asked,
        "part_suggest_headers.html",
        "Names for its columns",
        crumbs=[(link("/search", query=asked.query), "Search")],
    )


@router.get("/search/correlated")
async def search_correlated(
    request: Request,
    service: Served,
    visitor: Visitor,
    asked: Annotated[CorrelatedRequest, Depends(asked_by(CorrelatedRequest))],
) -> Response:
    """Columns that correlate with a query's target."""
    known = options_of(AugmentRequest, "web")
    return await _question(
        request,
        service,
        visitor,
        asked,
        "part_correlated.html",
        "Correlated columns",
        kept=list(pairs({name: value for name, value in chosen(asked).items() if name in known and name != "k"})),
        target=asked.target or "",
        strength=strength,
        doubtful_last=doubtful_last,
        crumbs=[(_search_address(asked.query, asked), "Search")],
    )


def strength(record: dict[str, Any]) -> str:
    """A word for how strongly two columns go together: by the end of the interval that is nearer to none.

    None for what may as well be a false find.
    """
    if _is_doubtful(record):
        return "may be chance"
    low, high = record["low"], record["high"]
    least = 0.0 if low is None or high is None or low <= 0 <= high else min(abs(low), abs(high))
    return (
        "strong"
        if least >= 0.7
        else "good"
        if least >= 0.5
        else "moderate"
        if least >= 0.3
        else "weak"
        if least
        else "none"
    )


def _is_doubtful(record: dict[str, Any]) -> bool:
    """Whether more finds are false down to here than one would put up with."""
    return bool(record["q"] is not None and record["q"] > _FALSE)


def doubtful_last(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Finds in their order, those that may be chance after the others."""
    return sorted(records, key=_is_doubtful)


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


@router.post("/search/join")
async def join(
    service: Served,
    visitor: Visitor,
    given: Annotated[dict[str, Any], Depends(sent_by(JoinedRequest))],
    search: FormText = "",
) -> Response:
    """Join a query with a table of the lake; ``search`` is what else was asked for, to go on with."""
    asked = JoinedRequest.of(given, "web")
    searching = _search(asked.query, search)
    onwards = search_of(searching) if searching is not None and searching.key else None
    job = await run_in_threadpool(service.make, visitor, asked, onwards)
    return RedirectResponse(link("/result", job=job.id), 303)


@router.post("/search/augment")
async def augment(
    service: Served, visitor: Visitor, given: Annotated[dict[str, Any], Depends(sent_by(AugmentRequest))]
) -> Response:
    """Join chosen columns into a query."""
    if "finds" not in given:  # told where the finds are
        return RedirectResponse(f"{address('/search', {**given, 'chosen': 'none'})}#correlated", 303)
    asked = AugmentRequest.of(given, "web")
    job = await run_in_threadpool(service.make, visitor, asked)
    return RedirectResponse(link("/result", job=job.id), 303)


@router.get("/result")
async def result(request: Request, service: Served, visitor: Visitor, job: Text = "") -> Response:
    """The result of a join."""
    found = service.jobs.find(visitor, job)
    if not await finished(found, _PATIENCE):
        return render(
            request,
            "result.html",
            answer=None,
            job=job_record(service, visitor, found),
            address=link("/result", job=job),
        )
    return render(
        request,
        "result.html",
        answer=found.result(),
        job=None,
        address="",
        json=f"{PREFIX}/jobs/{found.id}/answer",
    )


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
    sides: dict[str, Any] = {}
    wrong = {}
    mine = service.uploads.of_visitor(visitor)
    called = _called(service, mine)
    for side, reference in (("left", left), ("right", right)):
        sides[side] = None
        if reference and ":" not in reference.partition("/")[0]:
            file = called.get(reference)
            reference = f"upload:{file.id}" if file else f"table:{reference}"
        try:
            sides[side] = await run_in_threadpool(service.query, visitor, reference) if reference else None
        except LakescopeError as error:  # what was written stays, to be corrected
            wrong[side] = error
    names = service.catalog.names
    few = names if len(names) <= 2_000 else []
    both = {side: query.reference for side, query in sides.items() if query}
    json = link(f"{PREFIX}/autojoins", **both) if len(both) == 2 else f"{PREFIX}/tables"
    return render(
        request,
        "pair.html",
        int(status_of(next(iter(wrong.values())))) if wrong else 200,
        written={
            side: _written(sides[side], called) if sides[side] else given
            for side, given in (("left", left), ("right", right))
        },
        called=called,
        wrong={side: told(service.places.without(error)) for side, error in wrong.items()},
        left=sides["left"],
        right=sides["right"],
        mine=mine,
        names=few,
        json=json,
    )


@router.get("/pair/side")
async def pair_side(request: Request, service: Served, visitor: Visitor, query: Text) -> Response:
    """The first rows of one of two tables."""
    asked = DescribeRequest.of({"query": query}, "web")
    return await _part(request, service, visitor, lambda: service.ask(visitor, asked), "part_rows.html", "First rows")


@router.get("/pair/plan")
async def pair_plan(
    request: Request,
    service: Served,
    visitor: Visitor,
    asked: Annotated[AutojoinRequest, Depends(asked_by(AutojoinRequest))],
) -> Response:
    """How two tables join."""
    return await _question(
        request,
        service,
        visitor,
        asked,
        "part_plan.html",
        "How they join",
        left=asked.left,
        right=asked.right,
        kept=list(pairs(chosen(asked))),
        crumbs=[(link("/pair", left=asked.left, right=asked.right), "Join two")],
    )


@router.post("/pair/join")
async def pair_join(
    service: Served, visitor: Visitor, given: Annotated[dict[str, Any], Depends(sent_by(AutojoinRequest))]
) -> Response:
    """Join two tables, and keep the result."""
    job = await run_in_threadpool(service.make, visitor, AutojoinRequest.of(given, "web"))
    return RedirectResponse(link("/result", job=job.id), 303)


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
    return RedirectResponse(_static("logo.svg"), 308)


@router.get("/healthz")
async def health(service: Served) -> Response:
    """Whether the server answers, and whether it is warm."""
    return Response(
        json.dumps({"ok": True, "ready": service.ready.is_set(), "time": time.time()}), media_type="application/json"
    )


def add_pages(app: FastAPI) -> None:
    """Add all pages to an application."""
    app.include_router(router)
    app.mount("/static", _Files(directory=_STATIC), name="static")
