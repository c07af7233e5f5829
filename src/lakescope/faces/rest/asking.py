"""Routes that follow from the declarations of questions, and addresses and requests of pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import Parameter, cleandoc
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Query
from fastapi import Request as HttpRequest
from fastapi.responses import RedirectResponse, Response

from lakescope.faces.rest import api
from lakescope.faces.serving.refusals import Refused
from lakescope.questions import QUESTIONS, declared
from lakescope.questions.model import Meaning, Option, Range, Request, options_of
from lakescope.questions.signing import parameter, signed

#: Texts of one option at most.
_MOST_TEXTS = 50
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

    async def ask(
        request: HttpRequest, service: Any, visitor: str, wait: float, page: Any = None, **given: Any
    ) -> Response:
        _refuse_unknown(request, known)
        asked = kind.of({name: value for name, value in given.items() if value is not None}, "rest")
        return await api.answer_of(service, visitor, lambda: service.ask(visitor, asked), wait, page=page)

    paged = about.pages_on("rest")
    options = [option for option in options_of(kind, "rest").values() if option.offered]
    common = [parameter("request", HttpRequest), _SERVICE, _VISITOR, *([_PAGE] if paged else []), _WAIT]
    known = {"wait", "token", *(option.name for option in options), *(("limit", "offset") if paged else ())}
    router.add_api_route(
        route_of(kind),
        signed(ask, about.name, cleandoc(kind.__doc__ or ""), [*map(_parameter, options), *common], Response),
        response_model=api.Envelope,
        tags=[about.group],
        responses=api.responses(_example(kind), job=True),
    )


def _example(kind: type[Request[Any]]) -> Any:
    """What an answer looks like, for its description."""
    about = kind.about
    forms = {"records": {"records": [about.example]}, "rows": [about.example], "record": about.example}
    return forms.get(about.gives, {about.records: "..."})


def _refuse_unknown(request: HttpRequest, known: set[str]) -> None:
    """Refuse parameters that nothing reads: a slip of the pen would change the answer without a word."""
    for name in request.query_params:
        if name not in known:
            hint = f"there are {', '.join(sorted(known - {'token'}))}"
            raise Refused(422, "invalid", f"{name}: there is no such parameter", hint=hint)


def _parameter(option: Option) -> Parameter:
    """An option as the description of the interface has it."""
    default: Any = list(option.default) if isinstance(option.default, tuple) else option.default
    return parameter(option.name, _annotated(option), Parameter.empty if option.required else default)


def _annotated(option: Option) -> Any:
    single: Any = Literal[option.choices] if option.choices else api.Text
    kind: Any = single if option.choices else option.type
    within, said = option.range or Range(), option.help
    if option.meaning is Meaning.TABLE:
        about: Any = Query(max_length=api.MOST_TEXT, openapi_examples=api.QUERIES, description=QUERY_HELP)
        kind = str
    elif option.meaning is Meaning.LAKE_TABLE:
        about = Query(max_length=api.MOST_TEXT, openapi_examples=api.TABLES, description=said)
    elif option.type is tuple:
        kind, about = list[single], Query(max_length=_MOST_TEXTS, description=said)
    elif option.type is str and not option.choices:
        about = Query(max_length=api.MOST_TEXT, description=said)
    else:
        about = Query(ge=within.least, le=within.most, gt=within.above, description=said)
    return Annotated[kind | None if option.nullable else kind, about]


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


def asked_by(kind: type[Request[Any]], *names: str) -> Callable[..., Request[Any]]:
    """What makes the question of a page from some of its options, as fields of a form give them."""
    options = options_of(kind, "web")

    def made(**given: Any) -> Request[Any]:
        return kind.of(_filled(given), "web")

    return signed(made, kind.about.name, "", [_parameter(options[name]) for name in names], kind)


def _filled(given: Mapping[str, Any]) -> dict[str, Any]:
    """Fields that were filled in: an empty one is one that was left out."""
    return {name: value for name, value in given.items() if value not in (None, "", [])}
