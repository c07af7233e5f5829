"""Routes that follow from the declarations of questions, and addresses and requests of pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, cleandoc
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Body, Query
from fastapi import Request as HttpRequest
from fastapi.responses import RedirectResponse, Response
from pydantic import BaseModel, ConfigDict, Field, create_model

from lakescope.faces.rest import api
from lakescope.faces.serving.refusals import Refused
from lakescope.questions import QUESTIONS, declared
from lakescope.questions.model import Meaning, Option, Range, Request, Verb, options_of
from lakescope.questions.signing import parameter, signed

#: Finds that are joined in at most.
_MOST_FINDS = 20
#: What a table is called over REST.
QUERY_HELP = "`table:NAME` of the lake, or `upload:NUMBER`: a file that was sent."
_SERVICE = parameter("service", api.Served)
_VISITOR = parameter("visitor", api.Visitor)
_PAGE = parameter("page", api.Paged)
_WAIT = parameter("wait", api.Wait, 10.0)


def route_of(kind: type[Request[Any]]) -> str:
    """The path of a question below the prefix."""
    return f"/{kind.about.path or kind.about.name}"


def add_routes(router: APIRouter) -> None:
    """Add a route for every question that is asked over REST."""
    for kind in map(declared, QUESTIONS):
        if kind.about.is_on("rest"):
            _add_route(router, kind)
    for former, now in _MOVED.items():
        _add_moved(router, former, now)


#: Addresses that routes had before.
_MOVED = {"/headers/suggested": "/headers/suggest", "/headers/doubtful": "/headers/check"}


def _add_moved(router: APIRouter, former: str, now: str) -> None:
    """Answer at an address that a route had with the one that it has."""

    async def moved(request: HttpRequest) -> Response:
        return RedirectResponse(f"{api.PREFIX}{now}" + (f"?{request.url.query}" if request.url.query else ""), 308)

    router.add_api_route(former, moved, include_in_schema=False)


def _add_route(router: APIRouter, kind: type[Request[Any]]) -> None:
    about = kind.about
    paged = about.pages_on("rest")
    options = [option for option in options_of(kind, "rest").values() if option.offered]
    known = {"wait", "token", *(option.name for option in options), *(("limit", "offset") if paged else ())}
    common = [parameter("request", HttpRequest), _SERVICE, _VISITOR, *([_PAGE] if paged else []), _WAIT]

    async def ask(
        request: HttpRequest, service: Any, visitor: str, wait: float, page: Any = None, **given: Any
    ) -> Response:
        _refuse_unknown(request, known)
        asked = kind.of(_without_none(given), "rest")
        return await api.answer_of(service, visitor, lambda: service.ask(visitor, asked), wait, page=page)

    async def make(request: HttpRequest, service: Any, visitor: str, wait: float, body: BaseModel) -> Response:
        _refuse_unknown(request, {"wait", "token"})
        asked = kind.of(_without_none(body.model_dump(exclude_unset=True)), "rest")
        return await api.answer_of(service, visitor, lambda: service.make(visitor, asked), wait)

    if "GET" in about.verbs:
        _add(router, kind, signed(ask, about.name, _doc(kind), [*map(_parameter, options), *common], Response), "GET")
    if about.makes:
        body = parameter("body", Annotated[_body_of(kind, options), Body()])
        _add(router, kind, signed(make, f"make_{about.name}", _doc(kind), [body, *common], Response), "POST")


def _doc(kind: type[Request[Any]]) -> str:
    return cleandoc(kind.__doc__ or "")


def _add(router: APIRouter, kind: type[Request[Any]], function: Callable[..., Any], verb: Verb) -> None:
    about = kind.about
    router.add_api_route(
        route_of(kind),
        function,
        methods=[verb],
        response_model=api.Envelope,
        tags=[about.group],
        responses=api.responses(_example(kind), job=True),
    )


def _example(kind: type[Request[Any]]) -> Any:
    """What an answer looks like, for its description."""
    about = kind.about
    if about.makes:
        return about.example
    forms = {"records": {"records": [about.example]}, "rows": [about.example], "record": about.example}
    return forms.get(about.gives, about.example or {about.records: "..."})


def _without_none(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}


def _body_of(kind: type[Request[Any]], options: Sequence[Option]) -> type[BaseModel]:
    """What is sent to have a table made: the options, and nothing else."""
    fields: dict[str, Any] = {
        option.name: (annotated(option, Field), ... if option.required else _default(option)) for option in options
    }
    made: type[BaseModel] = create_model(
        kind.__name__, __config__=ConfigDict(extra="forbid"), __doc__=_doc(kind).partition("\n")[0], **fields
    )
    return made


class FoundColumn(BaseModel):
    """A column that correlates."""

    model_config = ConfigDict(extra="forbid")

    table: str = Field(max_length=api.MOST_TEXT, examples=["weather/daily_weather.parquet"])
    key: str = Field(max_length=api.MOST_TEXT, examples=["date"])
    column: str = Field(max_length=api.MOST_TEXT, examples=["mean_temp_c"])


def _refuse_unknown(request: HttpRequest, known: set[str]) -> None:
    """Refuse parameters that nothing reads: a slip of the pen would change the answer without a word."""
    for name in request.query_params:
        if name not in known:
            hint = f"there are {', '.join(sorted(known - {'token'}))}"
            raise Refused(422, "invalid", f"{name}: there is no such parameter", hint=hint)


def _parameter(option: Option) -> Parameter:
    """An option as the description of the interface has it."""
    return parameter(option.name, annotated(option, Query), Parameter.empty if option.required else _default(option))


def _default(option: Option) -> Any:
    return list(option.default) if isinstance(option.default, tuple) else option.default


def annotated(option: Option, place: Callable[..., Any]) -> Any:
    """The type of an option, described by what says where it is given: a query, a form, a field of a body."""
    single: Any = Literal[option.choices] if option.choices else api.Text
    kind: Any = single if option.choices else option.type
    within, said = option.range or Range(), option.help
    if option.meaning is Meaning.TABLE:
        kind, about = str, place(max_length=api.MOST_TEXT, description=QUERY_HELP, **_shown(place, api.QUERIES))
    elif option.meaning is Meaning.LAKE_TABLE:
        about = place(max_length=api.MOST_TEXT, description=said, **_shown(place, api.TABLES))
    elif option.meaning is Meaning.FINDS:
        kind, about = list[FoundColumn], place(min_length=1, max_length=_MOST_FINDS, description=said)
    elif option.type is tuple:
        kind, about = list[single], place(max_length=api.MOST_TEXTS, description=said)
    elif option.type is str and not option.choices:
        about = place(max_length=api.MOST_TEXT, description=said)
    else:
        about = place(ge=within.least, le=within.most, gt=within.above, description=said)
    return Annotated[kind | None if option.nullable else kind, about]


def _shown(place: Callable[..., Any], examples: Mapping[str, Any]) -> dict[str, Any]:
    """Examples, as the place of an option takes them."""
    if place is Field:
        return {"examples": [each["value"] for each in examples.values()]}
    return {"openapi_examples": examples}


# --- pages ------------------------------------------------------------------------------------------------------------


def json_address(asked: Request[Any], **page: int) -> str:
    """The address of an answer as JSON, or of a page of it: what is as REST has it anyway is left out."""
    options = options_of(type(asked), "rest")
    given = {
        name: getattr(asked, name)
        for name, option in options.items()
        if option.offered and getattr(asked, name) is not None and getattr(asked, name) != option.default
    }
    given |= {name: value for name, value in page.items() if value}
    text = urlencode({name: _plain(value) for name, value in given.items()}, doseq=True)
    return f"{api.PREFIX}{route_of(type(asked))}" + (f"?{text}" if text else "")


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else str(value).lower() if isinstance(value, bool) else value
