"""One declaration a question: every face takes every option as it is declared, and an answer heeds it.

Every face is really asked, with a value of each option that is allowed and not the default. What arrives must be the
request that the declaration makes of it; nothing is searched.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, get_type_hints

import anyio
import numpy as np
import pyarrow as pa
import pytest
from fastapi.responses import Response
from fastapi.testclient import TestClient
from mcp import Client

import lakescope
from lakescope.engines.correlations.answers import Find
from lakescope.engines.dependencies.table import TooLarge
from lakescope.engines.headers.answers import Schemata
from lakescope.engines.joins.answers import Joinable
from lakescope.engines.joins.joined import JoinedRows
from lakescope.engines.transforms.fuzzyjoin import FuzzyJoin
from lakescope.engines.transforms.plan import Plan
from lakescope.errors import BadRequest
from lakescope.faces.cli import main
from lakescope.faces.cli.asking import command, flags
from lakescope.faces.cli.output import Format
from lakescope.faces.cli.printings import printing_of
from lakescope.faces.mcp.asking import SUBJECT_HELP
from lakescope.faces.mcp.server import server
from lakescope.faces.mcp.tools import _ALONE
from lakescope.faces.rest.asking import QUERY_HELP, json_address, route_of
from lakescope.faces.serving.app import create_app
from lakescope.faces.serving.service import Service
from lakescope.faces.web import pages, parts
from lakescope.faces.web.forms import OptionForm, page_address
from lakescope.lake import Lake
from lakescope.questions import COMMANDS, QUESTIONS, declared, summary
from lakescope.questions.batches import SparkBatch
from lakescope.questions.model import (
    UNSET,
    Face,
    Meaning,
    Option,
    Range,
    Request,
    options_of,
)
from lakescope.results import Results, TableProfile
from lakescope.show.lake_map import LakeMap

Kind = type[Request[Any]]
#: A table of the demo lake with a column that is a key, and one of numbers.
TABLE, OTHER, KEY, TARGET = "mobility/bike_rides_daily.csv", "shop/orders.csv", "date", "rides"
FIND = Find("weather/daily_weather.parquet", "date", "mean_temp_c")
PAIRS = [(name, option) for name in QUESTIONS for option in options_of(declared(name), "python")]


def offered(face: Face) -> list[Any]:
    """Questions and options that a face offers, as parameters of a test."""
    return [
        pytest.param(name, option, id=f"{name}-{option}")
        for name, option in PAIRS
        if options_of(declared(name), face)[option].offered and declared(name).about.is_on(face)
    ]


def sample(option: Option) -> Any:
    """A value that is allowed, and not what is taken anyway."""
    if option.meaning in (Meaning.TABLE, Meaning.LAKE_TABLE):
        return TABLE if option.required else OTHER
    if option.meaning is Meaning.COLUMN:
        return TARGET if option.name == "target" else KEY
    if option.meaning in (Meaning.COLUMNS, Meaning.SIDES):
        return (KEY, TARGET)
    if option.meaning is Meaning.FINDS:
        return (FIND,)
    if option.choices and option.type is tuple:
        return (*option.choices[:1], option.choices[-1])
    if option.choices:
        return next(choice for choice in reversed(option.choices) if choice != option.default)
    if option.type is bool:
        return not option.default
    if option.name == "out":
        return "made.csv"
    if option.type is str:
        return "1"
    if option.name == "known":
        return ("1=x", "a=y")
    if option.name == "out":
        return "written.csv"
    if option.type is tuple:
        return ("0.5", "x")
    numbers: list[Any] = [7, 3, 2] if option.type is int else [0.5, 0.25, 2.0]
    within = option.range or Range()
    return next(number for number in numbers if within.holds(number) and number != option.default)


def given_to(kind: Kind, face: Face, option: str) -> dict[str, Any]:
    """Values that a face is given: what it requires, and one option."""
    options = options_of(kind, face)
    required = {name: sample(each) for name, each in options.items() if each.required and each.offered}
    if option == "engine" and "hll" in options[option].choices:
        required["method"] = "thesis"  # the only one that has it
    return {**required, option: sample(options[option])}


def method_of(kind: Kind, lake: Any = Lake) -> Any:
    """What Python calls a question by."""
    return getattr(lake if kind.about.indexed else lakescope, kind.about.method or kind.about.name)


def nothing(request: Request[Any]) -> Any:
    """An answer of no records, as a question gives it."""
    about = request.about
    if about.name == "suggest_headers":
        return Schemata([], [], [])
    if about.gives == "rows":
        return pa.table({name: pa.array([], pa.string()) for name in about.shown})
    if about.name == "profile":
        column = dict.fromkeys(_ALONE)
        return TableProfile(dict.fromkeys(("table", "format", "bytes", "rows", "complete")), [column], [])
    if about.name == "map":
        return LakeMap([], [], [], 0, 0)
    if about.gives == "record":
        return dict.fromkeys(("tables", "columns", "rows", "errors", "warnings"))
    if about.record is None:
        return NOTHING.get(about.name, "")
    info = {"same": 0, "ghost": 0, "fake": 0, "genuine": 0, "degrees": []}
    return Results(about.record, [], info=info)


@pytest.fixture
def arrived(monkeypatch: pytest.MonkeyPatch) -> list[Request[Any]]:
    """The requests that are asked; each is answered by nothing."""
    found: list[Request[Any]] = []

    def ask(request: Request[Any], *_: object) -> Any:
        found.append(request)
        return nothing(request)

    monkeypatch.setattr(Request, "ask", ask)
    return found


#: Answers that are no records, of nothing.
NOTHING: dict[str, Any] = {
    "joined": JoinedRows(pa.table({}), 0, 0, cut=False),
    "autojoin": Plan(None, reason="nothing was looked for", left={"a": ["x"]}, right={"a": ["y"]}),
    "fuzzyjoin": FuzzyJoin(("a", "a"), "left", None, 0.0, left={"a": ["x"]}, right={"a": ["y"]}),
}


#: Types of signatures that are imported for type checkers only.
def names_for_types(module: Any) -> dict[str, Any]:
    """Names that a module imports for its annotations alone; those of Spark stay unknown, for no test needs it."""
    found: dict[str, Any] = {}
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for each in (each for each in node.body if isinstance(each, ast.ImportFrom)):
                known = None if str(each.module).startswith("pyspark") else importlib.import_module(str(each.module))
                found |= {alias.name: getattr(known, alias.name, Any) for alias in each.names}
    return found


# What arrives ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "option"), offered("python"))
def test_the_method_passes_every_option_on(
    demo_index: Lake, arrived: list[Request[Any]], name: str, option: str
) -> None:
    kind = declared(name)
    given = given_to(kind, "python", option)
    method_of(kind, demo_index)(**given)
    assert arrived == [kind.of(given)]


@pytest.mark.parametrize(("name", "option"), offered("cli"))
def test_the_command_passes_every_option_on(
    demo_index: Lake, arrived: list[Request[Any]], monkeypatch: pytest.MonkeyPatch, name: str, option: str
) -> None:
    kind = declared(name)
    # What is not named is guessed first, and then asked about.
    named = {"key": (KEY, TARGET), "target": TARGET} if name == "correlated" else {}
    given = {**given_to(kind, "cli", option), **named}
    words = [*next(each for each, asked in COMMANDS.items() if asked == name).split()]
    words += [demo_index.path] if kind.about.indexed else []
    for each, value in given.items():
        words += words_of(options_of(kind, "cli")[each], value)
    # A table for people needs fewer fields than are there: those that it shows are asked for.
    words += ["--format", "json"] if kind.about.gives in ("rows", "record") else []
    monkeypatch.setattr(sys, "argv", ["lakescope", *words])
    main()
    assert arrived == [kind.of(given, "cli")]


def words_of(option: Option, value: Any) -> list[str]:
    """An option as it is typed."""
    names = option.names or flags(option)
    if isinstance(value, bool):
        return [names[0].split("/")[0 if value else 1]] if "/" in names[0] else [names[0]]
    between = "=" if option.meaning is Meaning.SIDES else ","
    typed = between.join(value) if isinstance(value, tuple) else str(value)
    return [typed] if names[0].isupper() else [names[0], typed]


PRINTED = [(command, option) for command in COMMANDS for option in options_of(printing_of(command), "cli")]  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "option"), PRINTED)
def test_the_command_prints_as_it_is_asked_to(
    demo_index: Lake, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, option: str
) -> None:
    kind, printing = declared(COMMANDS[name]), printing_of(name)
    found: list[tuple[Any, Format]] = []
    monkeypatch.setattr(printing, "show", lambda self, lake, asked, form: found.append((self, form)))
    monkeypatch.setattr(printing, "check", lambda self: None)  # what goes with what else is tested elsewhere
    added = options_of(printing, "cli")[option]  # type: ignore[arg-type]
    given = {each: sample(one) for each, one in options_of(kind, "cli").items() if one.required and one.offered}
    words = [*name.split(), *([demo_index.path] if kind.about.indexed else [])]
    for each, value in given.items():
        words += words_of(options_of(kind, "cli")[each], value)
    words += words_of(added, sample(added))
    words += ["--format", "json"] if printing.formatted else []
    monkeypatch.setattr(sys, "argv", ["lakescope", *words])
    main()
    ((shown, form),) = found
    assert shown == printing(**{option: sample(added)})
    assert form is (Format.json if printing.formatted else Format.table)


@pytest.mark.parametrize(("name", "option"), offered("agents"))
def test_the_tool_passes_every_option_on(demo_index: Lake, arrived: list[Request[Any]], name: str, option: str) -> None:
    kind = declared(name)
    given = given_to(kind, "agents", option)
    arguments = {
        each: {"table": value} if options_of(kind, "agents")[each].meaning is Meaning.TABLE else value
        for each, value in given.items()
    }

    async def call() -> Any:
        async with Client(server(demo_index)) as client:
            return await client.call_tool(kind.about.tool or name, arguments)

    answer = anyio.run(call)
    assert not answer.is_error, answer.content
    for each, one in options_of(kind, "agents").items():
        if not kind.about.indexed and one.meaning is Meaning.TABLE:  # what is read without an index is a file
            given[each] = demo_index.location(given[each])
    assert arrived[:1] == [kind.of(given, "agents")]


@pytest.fixture(scope="module")
def client(demo_index: Lake) -> Iterator[TestClient]:
    with TestClient(create_app(demo_index), base_url="http://127.0.0.1") as made:
        # While it gets ready it asks questions of its own.
        while not made.get("/api/v1/lake").json()["data"]["ready"]:
            time.sleep(0.1)
        yield made


@pytest.fixture
def served(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> list[Request[Any]]:
    """The requests that a server is asked; each is answered by nothing."""
    found: list[Request[Any]] = []

    def ask(_: Service, visitor: str, request: Request[Any], *__: object) -> Any:
        found.append(request)
        return {"records": [], "notes": []}

    monkeypatch.setattr(Service, "ask", ask)
    monkeypatch.setattr(Service, "make", ask)
    return found


@pytest.mark.parametrize(("name", "option"), offered("rest"))
def test_the_route_passes_every_option_on(
    client: TestClient, served: list[Request[Any]], name: str, option: str
) -> None:
    kind = declared(name)
    given = given_to(kind, "rest", option)
    route = f"/api/v1{route_of(kind)}"
    if kind.about.makes:
        sent = {each: [one._asdict() for one in value] if each == "finds" else value for each, value in given.items()}
        response = client.post(route, json=sent)
        assert response.status_code == 200, response.text
        assert served == [kind.of(given, "rest")]
        served.clear()
    if "GET" in kind.about.verbs:
        response = client.get(route, params=given)
        assert response.status_code == 200, response.text
        assert served == [kind.of(given, "rest")]
        # A page's link to its answer as JSON asks the same.
        assert client.get(json_address(served[0])).status_code == 200
        assert served[0] == served[1]


def fields_of(values: dict[str, Any], kind: Kind) -> dict[str, Any]:
    """Values as a form of the web app has them."""
    found = {each: list(value) if isinstance(value, tuple) else value for each, value in values.items()}
    if "finds" in found:
        found["finds"] = [json.dumps(each) for each in found["finds"]]
    if kind.about.page.startswith("/table/"):
        about = "query" if "query" in found else "table"
        return {"name": found.pop(about), **found}
    return found


def on_a_page(kind: Kind, option: str) -> dict[str, Any]:
    """What is asked on a page: about a table of the lake, with one option."""
    given = given_to(kind, "web", option)
    options = options_of(kind, "web")
    if kind.about.page.startswith("/table/") and "table" in options:
        given["table"] = TABLE
    return given


def referred(values: dict[str, Any], kind: Kind) -> dict[str, Any]:
    """Values as a service is given them, which is told what kind a table is."""
    options = options_of(kind, "web")
    prefix = "table:" if kind.about.page.startswith("/table/") else ""
    return {
        each: f"{prefix}{value}" if options[each].meaning is Meaning.TABLE else value for each, value in values.items()
    }


@pytest.mark.parametrize(("name", "option"), offered("web"))
def test_the_page_passes_every_option_on(
    client: TestClient, served: list[Request[Any]], monkeypatch: pytest.MonkeyPatch, name: str, option: str
) -> None:
    kind = declared(name)
    forms: list[OptionForm] = []
    monkeypatch.setattr(parts, "show_part", partial(asked_at_once, forms))
    monkeypatch.setattr(pages, "link", lambda *_, **__: "/healthz")
    monkeypatch.setattr(Service, "known", lambda _, asked: served.append(asked) or [])
    monkeypatch.setattr(pages, "render", lambda *_, **__: Response("shown"))
    monkeypatch.setattr(pages.RedirectResponse, "__init__", lambda self, *_, **__: Response.__init__(self, "made"))
    given = on_a_page(kind, option)
    expected = kind.of(referred(given, kind), "web")
    if kind.about.form:
        monkeypatch.setattr(Service, "make", lambda _, visitor, asked, *__: served.append(asked) or Made())
        if "finds" in options_of(kind, "web"):
            given["finds"] = (FIND,)
            expected = kind.of(given, "web")
        response = client.post(kind.about.form, data=fields_of(given, kind))
        assert response.status_code == 200, response.text
        assert served == [expected]
        served.clear()
    if kind.about.page:
        response = client.get(kind.about.page, params=fields_of(given, kind))
        assert response.status_code == 200, response.text
        assert expected in served
        served.clear()
        # The address of the page, as other pages link to it, asks the same.
        assert client.get(page_address(expected)).status_code == 200
        assert expected in served
        served.clear()
        if kind.about.lane == "catalog":  # lists of the catalog have forms of their own, beside what they show
            return
        # Its form, sent as it is, asks the same again.
        assert client.get(forms[-1].action, params=sent(forms[-1])).status_code == 200
        assert expected in served


class Made:
    """A table that is being made."""

    id = "made"


async def asked_at_once(
    forms: list[OptionForm], request: Any, service: Any, visitor: str, ask: Any, *_: Any, **context: Any
) -> Response:
    """A part that is asked, and not shown."""
    ask()
    assert context["json"].startswith("/api/v1/")
    forms.append(context["options"])
    return Response("shown")


def sent(form: OptionForm) -> dict[str, Any]:
    """What a browser sends of a form: what nobody sees, and its fields, of those that are ticked only if they are."""
    values: dict[str, list[str]] = {}
    for name, value in form.hidden:
        values.setdefault(name, []).append(str(value))
    names = {each.name for each in form.fields}
    assert not names & set(values)
    shown = {each.name: each.value for each in form.fields if each.kind != "flag" or each.value == "true"}
    return {**values, **shown}


BATCHES = [each for each in offered("batch") if hasattr(declared(each.values[0]), "batch")]


@pytest.mark.parametrize(("name", "option"), BATCHES)
def test_the_batch_passes_every_option_on(
    demo_index: Lake, monkeypatch: pytest.MonkeyPatch, name: str, option: str
) -> None:
    kind = declared(name)
    found: list[Request[Any]] = []

    def batch(request: Request[Any], *_: object) -> SparkBatch:
        found.append(request)
        return SparkBatch(0, None, Joinable)

    monkeypatch.setattr(kind, "batch", batch)
    monkeypatch.setattr("lakescope.build.batch.over_numbers", lambda *_: None)
    given = {option: sample(options_of(kind, "batch")[option])}
    getattr(demo_index, f"{kind.about.method or name}_batch")(spark=None, **given)
    absent = {each: None for each, option in options_of(kind, "python").items() if option.required}
    assert found == [kind(**absent, **given)]


# What a face says -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in QUESTIONS if declared(name).about.is_on("python")])
def test_methods_have_the_options_with_their_defaults_and_types(name: str) -> None:
    kind = declared(name)
    method, options = method_of(kind), options_of(kind, "python")
    found = inspect.signature(method).parameters
    parameters = [each for name, each in found.items() if name not in ("self", "spark", "watch")]
    assert {each.name for each in parameters} == set(options)
    assert len(parameters) == len(options)
    module = inspect.getmodule(method)
    hints = get_type_hints(method, {**vars(module), **names_for_types(module)})
    for each in parameters:
        option = options[each.name]
        assert (UNSET if each.default is inspect.Parameter.empty else each.default) == option.default, each.name
        assert all(choice in str(hints[each.name]) for choice in option.choices), each.name


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_have_what_is_declared_and_no_more(name: str) -> None:
    kind, printing = declared(COMMANDS[name]), printing_of(name)
    declarations = {**options_of(kind, "cli"), **options_of(printing, "cli")}
    shown = {each.name: each for each in command(name).params if not getattr(each, "hidden", False)}
    assert set(shown) - {"index", "printed_as", "help"} == {
        each for each, option in declarations.items() if option.offered
    }
    for each, option in declarations.items():
        if option.offered:
            assert shown[each].help == option.help
            assert shown[each].required == option.required


def test_tools_have_what_is_declared_and_no_more(demo_index: Lake) -> None:
    async def look() -> Any:
        async with Client(server(demo_index)) as client:
            return await client.list_tools()

    tools = {tool.name: tool.input_schema for tool in anyio.run(look).tools}
    for kind in (declared(name) for name in QUESTIONS if declared(name).about.is_on("agents")):
        name, schema = kind.about.name, tools[kind.about.tool or kind.about.name]
        options = {each: option for each, option in options_of(kind, "agents").items() if option.offered}
        pages = {"limit", "offset"} if kind.about.pages_on("agents") else set()
        assert set(schema["properties"]) - pages == set(options)
        assert set(schema.get("required", ())) == {each for each, option in options.items() if option.required}
        for each, option in options.items():
            said = schema["properties"][each]
            assert said["description"] == (SUBJECT_HELP if option.meaning is Meaning.TABLE else option.help)
            assert all(choice in str(said) for choice in option.choices), (name, each)
            assert ("null" in str(said.get("anyOf"))) == option.nullable, (name, each)
            check_bounds(said, option)


def check_bounds(schema: dict[str, Any], option: Option) -> None:
    """A schema has the bounds of an option, and no others."""
    kinds = [schema, *schema.get("anyOf", ())]
    found = [
        next((each[name] for each in kinds if name in each), None)
        for name in ("minimum", "maximum", "exclusiveMinimum")
    ]
    within = option.range or Range()
    assert found == [within.least, within.most, within.above], option.name


def test_routes_have_what_is_declared_and_no_more(client: TestClient) -> None:
    paths = client.get("/api/v1/openapi.json").json()["paths"]
    for kind in (declared(name) for name in QUESTIONS if declared(name).about.is_on("rest")):
        if "GET" not in kind.about.verbs:
            continue
        shown = {each["name"]: each for each in paths[f"/api/v1{route_of(kind)}"]["get"]["parameters"]}
        options = {each: option for each, option in options_of(kind, "rest").items() if option.offered}
        assert set(shown) == {*options, "wait", *(("limit", "offset") if kind.about.pages_on("rest") else ())}
        for each, option in options.items():
            assert shown[each]["description"] == (QUERY_HELP if option.meaning is Meaning.TABLE else option.help)
            assert shown[each].get("required", False) == option.required
            assert all(choice in str(shown[each]["schema"]) for choice in option.choices)
            check_bounds(shown[each]["schema"], option)


def test_bodies_have_what_is_declared_and_no_more(client: TestClient) -> None:
    schemas = client.get("/api/v1/openapi.json").json()["components"]["schemas"]
    for kind in (each for each in map(declared, QUESTIONS) if each.about.makes and each.about.is_on("rest")):
        schema = schemas[kind.__name__]
        options = {each: option for each, option in options_of(kind, "rest").items() if option.offered}
        assert set(schema["properties"]) == set(options)
        assert set(schema.get("required", ())) == {each for each, option in options.items() if option.required}
        assert schema["additionalProperties"] is False
        for each, option in options.items():
            said = schema["properties"][each]
            assert said["description"] == (QUERY_HELP if option.meaning is Meaning.TABLE else option.help)
            assert all(choice in str(said) for choice in option.choices)
            check_bounds(said, option)


def test_routes_refuse_parameters_that_nothing_reads(client: TestClient) -> None:
    refused = client.get("/api/v1/joinable", params={"query": f"table:{TABLE}", "treshold": 0.95})
    assert refused.status_code == 422
    assert refused.json()["error"]["message"] == "treshold: there is no such parameter"
    assert "threshold" in refused.json()["error"]["hint"]


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_registry_says_what_the_declaration_says(name: str) -> None:
    assert (declared(name).__doc__ or "").startswith(summary(name))


@pytest.mark.parametrize("name", QUESTIONS)
def test_no_option_hides_a_method_and_no_help_is_missing(name: str) -> None:
    for option in options_of(declared(name), "python").values():
        assert not hasattr(Request, option.name)
        assert option.help.endswith(".")


# What a request is ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "option"), offered("python"))
def test_plain_parameters_make_the_request_again(name: str, option: str) -> None:
    kind = declared(name)
    request = kind.of(given_to(kind, "python", option))
    assert kind.of(request.parameters()) == request
    assert hash(request) == hash(kind.of(request.parameters()))


def heeding(kind: Kind, read: set[str]) -> Kind:
    """A question that notes which of its options are looked at."""
    names = {each.name for each in fields(kind)}  # type: ignore[arg-type]

    def look(request: Any, name: str) -> Any:
        if name in names:
            read.add(name)
        return object.__getattribute__(request, name)

    return type(kind.__name__, (kind,), {"__getattribute__": look, "__slots__": ()})


@pytest.mark.parametrize("name", [name for name in QUESTIONS if name != "lake_dependencies"])
def test_an_answer_heeds_every_option(
    demo_index: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    # No table of the demo lake has statistics.
    monkeypatch.setattr("lakescope.engines.counting.stored.stored_counts", lambda *_: None)
    read: set[str] = set()
    kind = declared(name)
    given = {each: sample(option) for each, option in options_of(kind, "python").items() if option.required}
    named: dict[str, Any] = {"key": (KEY,), "target": TARGET} if name in ("correlated", "augment") else {}
    named = {"on": KEY, "column": KEY, "query_rows": 5} if name == "joined" else named
    named = {"candidates": 1, "budget": 5.0} if name == "lake_autojoin" else named
    request = heeding(kind, read)(**{**given, **named, **_asked_about(kind, tmp_path)})
    read.clear()
    request.answer(demo_index, Silent())
    assert read == set(options_of(kind, "python"))


def _asked_about(kind: Kind, folder: Path) -> dict[str, Any]:
    """A small file, for questions that read what they are asked about."""
    if kind.about.name == "name_columns":
        return {"out": str(folder / "written.csv")}
    if kind.about.indexed:
        return {}
    place = folder / "small.csv"
    place.write_text("zip,city\n" + "".join(f"{n % 5},{'abcde'[n % 5]}\n" for n in range(20)))
    given: dict[str, Any] = {"left": str(place), "right": str(place), "on": ("city",)}
    given |= {"query": str(place), "clean": str(place), "dependency": "zip -> city", "shares": ("0.1",)}
    given: dict[str, Any] = {"query": str(place), "clean": str(place), "dependency": "zip -> city", "shares": ("0.1",)}
    given |= {"largest": 10, "seeds": 1}
    return {name: value for name, value in given.items() if name in options_of(kind, "python")}


class Silent:
    """Nobody who waits."""

    stopped = False

    def tell(self, doing: str, share: float | None = None) -> None:
        assert doing


# What is refused ------------------------------------------------------------------------------------------------------


def beyond(name: str, face: Face) -> Iterator[tuple[str, Any]]:
    """Options of a question with values just outside of their bounds."""
    for option in options_of(declared(name), face).values():
        within = option.range
        if within is not None and option.offered:
            for bound, step in ((within.least, -1), (within.most, 1), (within.above, 0)):
                if bound is not None:
                    yield option.name, option.type(bound + step)


@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.parametrize("face", ["python", "rest", "agents"])
def test_what_lies_outside_of_bounds_is_refused_with_a_hint(name: str, face: Face) -> None:
    kind = declared(name)
    required = {each: sample(option) for each, option in options_of(kind, face).items() if option.required}
    for option, value in beyond(name, face):
        with pytest.raises(BadRequest, match=f"{option} must be") as refused:
            kind.of({**required, option: value}, face)
        assert refused.value.hint


@pytest.mark.parametrize("name", ["joinable", "inclusions", "dependencies"])
def test_tools_and_routes_refuse_what_lies_outside_of_bounds(client: TestClient, demo_index: Lake, name: str) -> None:
    kind = declared(name)

    async def call(arguments: dict[str, Any]) -> Any:
        async with Client(server(demo_index)) as asking:
            return await asking.call_tool(name, arguments)

    for option, value in beyond(name, "agents"):
        subject = {"query": {"table": TABLE}} if "query" in options_of(kind, "agents") else {}
        assert anyio.run(call, {**subject, option: value}).is_error, option
    for option, value in beyond(name, "rest"):
        subject = {"query": f"table:{TABLE}"} if "query" in options_of(kind, "rest") else {}
        refused = client.get(f"/api/v1{route_of(kind)}", params={**subject, option: value})
        assert refused.status_code == 422, (option, value)


@pytest.mark.parametrize("face", ["rest", "web", "agents"])
@pytest.mark.parametrize("option", ["k", "max_lhs", "budget"])
def test_no_value_lifts_no_bound_of_a_face(option: str, face: Face) -> None:
    kind = declared("joinable" if option == "k" else "dependencies")
    with pytest.raises(BadRequest, match=f"{option} must be"):
        kind.of({"query": TABLE, option: None}, face)
    assert getattr(kind(query=TABLE, **{option: None}), option) is None


def test_nobody_who_asks_a_lake_has_spark_started(demo_index: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_large(*_: object, **__: object) -> None:
        raise TooLarge("too large", hint="ask Spark")

    monkeypatch.setattr("lakescope.engines.dependencies.find.dependencies", too_large)
    monkeypatch.setattr("lakescope.build.session.spark_session", lambda *_: pytest.fail("Spark was started"))
    with pytest.raises(TooLarge):
        declared("dependencies").of({"query": TABLE}, "rest").ask(demo_index)


def test_numbers_of_numpy_are_numbers() -> None:
    asked = declared("joinable")(query="t", k=np.int64(3), threshold=np.float32(0.5), verify=np.True_)
    assert asked == declared("joinable")(query="t", k=3, threshold=0.5, verify=True)
    assert [type(each) for each in (asked.k, asked.threshold, asked.verify)] == [int, float, bool]


@pytest.mark.parametrize(
    ("name", "option"), [pair for pair in PAIRS if options_of(declared(pair[0]), "python")[pair[1]].choices]
)
def test_an_unknown_choice_is_refused_with_those_there_are(name: str, option: str) -> None:
    kind = declared(name)
    given = {each: sample(one) for each, one in options_of(kind, "python").items() if one.required}
    with pytest.raises(BadRequest, match=f"{option} cannot be 'nothing'") as refused:
        kind(**given, **{option: "nothing"})
    assert all(choice in (refused.value.hint or "") for choice in options_of(kind, "python")[option].choices)


@pytest.mark.parametrize("value", ["7", None, True, 7.5, [7]])
def test_a_value_of_another_type_is_refused(value: Any) -> None:
    with pytest.raises(BadRequest, match="least must be a whole number"):
        declared("inclusions")(least=value)


def test_an_option_that_is_not_there_is_refused() -> None:
    with pytest.raises(BadRequest, match="no option 'treshold' here"):
        declared("joinable").of({"query": TABLE, "treshold": 0.9})
