"""The documentation is tested: what it lists is complete, what it shows is what happens, what it links to is there."""

from __future__ import annotations

import ast
import importlib.util
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard
from urllib.parse import unquote

import pytest

import lakescope
from lakescope.faces.cli.asking import Family
from lakescope.lake import Lake, TableProfile
from lakescope.questions import COMMANDS, QUESTIONS, declared
from lakescope.store.segment import PAST, SCHEMAS, STAGED
from lakescope.values.canonical import NULL_MARKERS, VALUES_VERSION, canonical, decode
from lakescope.values.hashing import hash_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
PACKAGE = ROOT / "src" / "lakescope"

_FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the documentation, taken apart."""

    path: Path
    text: str

    @classmethod
    def of(cls, name: str | Path) -> Page:
        path = ROOT / name
        return cls(path, path.read_text("utf-8"))

    @property
    def prose(self) -> str:
        """The text without its code blocks."""
        return _FENCE.sub("", self.text)

    def blocks(self, kind: str) -> list[str]:
        """Code blocks of one kind."""
        return [body for info, body in _FENCE.findall(self.text) if info.strip() == kind]

    def section(self, title: str) -> str:
        """What stands under a heading of the second level."""
        parts = re.split(r"^## (.+)$", self.text, flags=re.MULTILINE)
        return dict(zip(parts[1::2], parts[2::2], strict=True))[title]

    def anchors(self) -> set[str]:
        """The names headings get on the web: lower case, no punctuation, hyphens for spaces."""
        titles = (re.sub(r"[^\w\- ]", "", title.lower()) for title in _HEADING.findall(self.prose))
        return {title.strip().replace(" ", "-") for title in titles}


def rows_of(text: str, head: str) -> list[list[str]]:
    """Rows of every table whose first column has this head; cells without their spaces."""
    rows: list[list[str]] = []
    wanted = False
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []
        if not cells:
            wanted = False
        elif wanted and not set(line) <= set("|- "):
            rows.append(cells)
        elif cells[0] == head:
            wanted = True
    return rows


def code_of(cell: str) -> str:
    """The text of a cell that is one piece of code."""
    assert cell.startswith("`"), cell
    return cell.strip("`")


def literal(cell: str) -> Any:
    return ast.literal_eval(code_of(cell))


# Links ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    page = Page.of(path)
    for link in _LINK.findall(page.prose):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = unquote(link).partition("#")
        target = (path.parent / name).resolve() if name else path
        assert target.exists(), f"{path.name} links to {link}"
        if anchor:
            assert anchor in Page.of(target).anchors(), f"{path.name} links to {link}"


def test_every_page_is_in_the_table_of_contents() -> None:
    contents = Page.of("docs/index.md").text
    assert [path.name for path in ROOT.glob("docs/*.md") if path.name != "index.md" and path.name not in contents] == []


def test_the_readme_names_every_command_and_page() -> None:
    text = Page.of("README.md").text
    first = {name.split()[0] for name in commands() if name}
    assert sorted(name for name in first if f"`{name}`" not in text) == []
    pages = [path.name for path in ROOT.glob("docs/*.md") if path.name != "index.md"]
    assert [name for name in pages if f"(docs/{name})" not in text] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_prose_is_wrapped(page: Path) -> None:
    """At 100 characters, so that another sentence is another line or two; tables are as wide as they are."""
    if "results" in page.parts:
        return
    wide = [
        line
        for line in Page.of(page).prose.splitlines()
        if len(line) > 100 and line.lstrip()[:1] not in ("|", "<", "!")
    ]
    assert wide == []


def test_changelog_names_this_version() -> None:
    versions = re.findall(r"^## (\S+?),? ", Page.of("CHANGELOG.md").text, re.MULTILINE)
    assert versions[0] == lakescope.__version__


# Values ---------------------------------------------------------------------------------------------------------------


def test_examples_of_values() -> None:
    rows = rows_of(Page.of("docs/values.md").section("Examples"), "cell")
    assert len(rows) > 50
    for cell, kind, text in rows:
        value = canonical(literal(cell))
        assert (value.kind.name.lower(), value.text) == (kind, literal(text)), cell


def test_null_markers_are_listed() -> None:
    listed = re.search(r"^Markers: (.+?)\n\n", Page.of("docs/values.md").text, re.MULTILINE | re.DOTALL)
    assert listed is not None
    assert set(re.findall(r"`([^`]+)`", listed[1])) == NULL_MARKERS - {""}


def test_kinds_are_listed() -> None:
    from lakescope.values.canonical import Kind

    listed = [code_of(row[0]) for row in rows_of(Page.of("docs/values.md").section("Kinds"), "kind")]
    assert sorted(listed) == sorted(kind.name.lower() for kind in Kind)


def test_examples_of_encodings() -> None:
    for cell, fallback, text in rows_of(Page.of("docs/values.md").section("Encodings"), "bytes"):
        assert decode(literal(cell), fallback) == literal(text), cell


def test_examples_of_hashes() -> None:
    rows = rows_of(Page.of("docs/values.md").section("The hash"), "canonical text")
    assert rows
    for cell, hexadecimal, signed in rows:
        found = hash_text(literal(cell))
        assert f"{found:016x}" == code_of(hexadecimal), cell
        assert (found ^ (1 << 63)) - (1 << 63) == int(signed), cell


def test_versions_are_told() -> None:
    from lakescope.store.manifest import FORMAT_VERSION

    assert f"Version **{VALUES_VERSION}** of values" in Page.of("docs/values.md").text
    assert f"**format {FORMAT_VERSION}**" in Page.of("docs/catalog.md").text


# Catalog --------------------------------------------------------------------------------------------------------------


def plain_type(kind: object) -> str:
    """An Arrow type as the pages write it: without the names of list elements."""
    return re.sub(r"\b(item|element): ", "", str(kind))


@pytest.mark.parametrize("kind", sorted(set(SCHEMAS) - set(STAGED)))
def test_every_field_is_explained(kind: str) -> None:
    text = Page.of("docs/profile.md").text if kind == "columns" else Page.of("docs/catalog.md").section(kind)
    told = {code_of(row[0]): row[1] for row in rows_of(text, "field") if len(row) == 3}
    # Records of the past have the fields of the present, and some more.
    known = SCHEMAS[PAST[kind]].names if kind in PAST else []
    assert told == {field.name: plain_type(field.type) for field in SCHEMAS[kind] if field.name not in known}


def test_derived_fields_and_alerts_are_explained(demo_index: Lake) -> None:
    text = Page.of("docs/profile.md").text
    told = {code_of(row[0]) for row in rows_of(text, "field")} | {"name"}
    named = {alert for row in rows_of(text, "alert") for alert in re.findall(r"`([^`]+)`", row[0])}
    for table in demo_index.tables()["table"].to_pylist():
        for column in demo_index.profile(table).columns:
            assert set(column) <= told
            assert set(column["alerts"]) <= named


def test_manifest_is_explained(demo_index: Lake) -> None:
    import json

    manifest = json.loads(Path(demo_index.path, "manifest.json").read_text("utf-8"))
    section = Page.of("docs/catalog.md").section("manifest.json")
    assert {code_of(row[0]) for row in rows_of(section, "entry")} == set(manifest)
    inner = {*manifest["summary"], *(name for file in manifest["files"] for name in file)}
    assert [name for name in sorted(inner) if f"`{name}`" not in section] == []


@pytest.mark.parametrize("number", range(len(Page.of("docs/catalog.md").blocks("sql"))))
def test_queries_run(number: int, demo_folder: Path) -> None:
    import duckdb

    with duckdb.connect() as connection:
        assert connection.execute(Page.of("docs/catalog.md").blocks("sql")[number]).fetchall()


@pytest.fixture
def demo_folder(demo_index: Lake, demo_lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory the pages speak from: it holds ``lake.idx`` and ``lakescope-demo``."""
    tmp_path.joinpath("lake.idx").symlink_to(demo_index.path)
    tmp_path.joinpath("lakescope-demo").symlink_to(demo_lake.parent)
    monkeypatch.chdir(tmp_path)
    return tmp_path


# Problems -------------------------------------------------------------------------------------------------------------

_SEVERITIES = ("error", "warning", "info")
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(slots=True)
class ProblemCodes:
    """Every problem code the package can report, found in its syntax trees.

    A code is what reaches a parameter or field called ``code``: of :class:`Problem`, of ``SourceError``, of any helper.
    It may take a way there: a conditional, a variable, the rows of a list that is looped over, the tuple a function
    returns. What is passed on from something called ``code`` was found where that was made. Anything else is
    ``unclear``, and the test says so instead of missing it.
    """

    trees: dict[str, ast.Module]
    found: dict[str, str] = field(default_factory=dict)
    unclear: list[str] = field(default_factory=list)
    _takers: dict[str, list[tuple[str, int | None]]] = field(default_factory=dict)

    @classmethod
    def of(cls, paths: Sequence[Path]) -> ProblemCodes:
        codes = cls({str(path.relative_to(PACKAGE)): ast.parse(path.read_text("utf-8")) for path in paths})
        for module, tree in codes.trees.items():
            codes._learn(module, tree)
        for module, tree in codes.trees.items():
            codes._visit(module, tree, tree, None)
        return codes

    def _learn(self, module: str, tree: ast.Module) -> None:
        """Note every function and class that takes a code, and at which place."""
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                fields = _fields(node)
                makers = [item for item in node.body if isinstance(item, _Function) and item.name == "__init__"]
                if "code" in fields:
                    self._takers.setdefault(node.name, []).append((module, fields.index("code")))
                for maker in makers:
                    self._learn_function(module, node.name, maker)
            elif isinstance(node, _Function):
                self._learn_function(module, node.name, node)

    def _learn_function(self, module: str, name: str, node: _Function) -> None:
        given = [argument.arg for argument in [*node.args.posonlyargs, *node.args.args]]
        given = given[1:] if given[:1] in (["self"], ["cls"]) else given
        if "code" in given:
            self._takers.setdefault(name, []).append((module, given.index("code")))
        elif "code" in [argument.arg for argument in node.args.kwonlyargs]:
            self._takers.setdefault(name, []).append((module, None))

    def _visit(self, module: str, tree: ast.Module, node: ast.AST, function: _Function | None) -> None:
        if isinstance(node, _Function):
            function = node
            self._defaults(node)
        elif isinstance(node, ast.Call):
            for value in self._codes_given(module, node):
                self._resolve(module, tree, value, function)
        for child in ast.iter_child_nodes(node):
            self._visit(module, tree, child, function)

    def _defaults(self, node: _Function) -> None:
        named = [*node.args.posonlyargs, *node.args.args]
        pairs = [
            *zip(reversed(named), reversed(node.args.defaults), strict=False),
            *zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True),
        ]
        for argument, default in pairs:
            if argument.arg == "code" and isinstance(default, ast.Constant) and isinstance(default.value, str):
                self.found.setdefault(default.value, node.name)

    def _codes_given(self, module: str, call: ast.Call) -> Iterator[ast.expr]:
        """The expressions a call gives as code."""
        name = str(getattr(call.func, "id", None) or getattr(call.func, "attr", ""))
        takers = self._takers.get(name, [])
        here = [place for where, place in takers if where == module] or [place for _, place in takers]
        if not here:
            return
        named = [keyword.value for keyword in call.keywords if keyword.arg == "code"]
        yield from named
        places = {place for place in here if place is not None and place < len(call.args)}
        if not named:
            for place in places:
                value = call.args[place]
                # Two helpers of one name may take it at different places: a severity is none.
                if not (isinstance(value, ast.Constant) and value.value in _SEVERITIES):
                    yield value

    def _resolve(self, module: str, tree: ast.Module, value: ast.expr, function: _Function | None) -> None:
        where = f"{module}:{value.lineno}"
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            self.found.setdefault(value.value, where)
        elif isinstance(value, ast.IfExp):
            self._resolve(module, tree, value.body, function)
            self._resolve(module, tree, value.orelse, function)
        elif isinstance(value, ast.Attribute) and value.attr == "code":
            pass  # found where that object was made
        elif isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Constant) and value.slice.value == "code":
            pass
        elif isinstance(value, ast.Name) and function is not None:
            arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
            bound = list(_bindings(tree, function, value.id))
            if not bound and not (value.id == "code" and any(argument.arg == "code" for argument in arguments)):
                self.unclear.append(f"{where}: {ast.unparse(value)}")
            for expression in bound:
                self._resolve(module, tree, expression, function)
        else:
            self.unclear.append(f"{where}: {ast.unparse(value)}")


def _fields(node: ast.ClassDef) -> list[str]:
    """Names of the annotated fields of a class, in order."""
    targets = [item.target for item in node.body if isinstance(item, ast.AnnAssign)]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _bindings(tree: ast.Module, function: _Function, name: str) -> Iterator[ast.expr]:
    """What a function binds a name to: by assignment, or by looping over a list it has written out."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _matched(tree, target, node.value, name)
        elif isinstance(node, ast.For) and name in {item.id for item in ast.walk(node.target) if _is_name(item)}:
            written: list[ast.expr] = [node.iter]
            if isinstance(node.iter, ast.Name) and node.iter.id != name:
                written = list(_bindings(tree, function, node.iter.id))
            rows = [row for values in written if isinstance(values, ast.List | ast.Tuple) for row in values.elts]
            for row in rows:
                yield from _matched(tree, node.target, row, name)


def _is_name(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name)


def _matched(tree: ast.Module, target: ast.expr, value: ast.expr, name: str) -> Iterator[ast.expr]:
    """The part of a value that lands in a name of the target."""
    if isinstance(target, ast.Name) and target.id == name:
        yield value
    if not isinstance(target, ast.Tuple):
        return
    places = [place for place, item in enumerate(target.elts) if _is_name(item) and item.id == name]
    tuples = [value]
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
        makers = [node for node in tree.body if isinstance(node, _Function) and node.name == value.func.id]
        returns = [node for maker in makers for node in ast.walk(maker) if isinstance(node, ast.Return)]
        tuples = [node.value for node in returns if node.value is not None]
    yield from (made.elts[place] for made in tuples if isinstance(made, ast.Tuple) for place in places)


def test_every_problem_code_is_explained() -> None:
    paths = [path for room in ("sources", "build") for path in sorted((PACKAGE / room).rglob("*.py"))]
    codes = ProblemCodes.of([PACKAGE / "errors.py", *paths])
    assert codes.unclear == [], "cannot tell which code this is: write it where it can be found"
    told = [code_of(row[0]) for row in rows_of(Page.of("docs/problems.md").text, "code")]
    assert len(told) == len(set(told)), "a code is explained twice"
    assert {code: place for code, place in codes.found.items() if code not in told} == {}, (
        "docs/problems.md lacks these"
    )
    assert set(told) - set(codes.found) == set(), "docs/problems.md explains what nobody reports"


def test_codes_are_found_whichever_way_they_go() -> None:
    """The collector itself: every form in use is seen, an unknown one is not passed over in silence."""
    source = """
class Problem:
    table: str
    severity: str
    code: str
def _tell(unit, severity, code, text="x"): report(Problem(unit, severity, code))
def advice(error):
    if error: return "hint", "from-return"
    return "hint", "from-other-return"
class Refused(Exception):
    def __init__(self, message, *, code="from-default"): self.code = code
def f(unit, error, table):
    for severity, code in [("info", "from-loop"), ("error", "from-loop-too")]:
        _tell(unit, severity, code)
    said = [("info", "from-list")]
    for severity, code in said: _tell(unit, severity, code)
    hint, code = advice(error)
    raise Refused(hint, code=code) from Refused("", code=error.code)
def g(unit, damaged):
    _tell(unit, "error", "from-branch" if damaged else "from-other-branch")
    code = "from-variable"
    report(Problem(unit, "info", code=code))
def h(unit, parts): _tell(unit, "info", "-".join(parts))
"""
    codes = ProblemCodes({"m": ast.parse(source)})
    codes._learn("m", codes.trees["m"])
    codes._visit("m", codes.trees["m"], codes.trees["m"], None)
    loops = {"from-loop", "from-loop-too", "from-list"}
    others = {"from-return", "from-other-return", "from-default", "from-branch", "from-other-branch", "from-variable"}
    assert set(codes.found) == loops | others
    assert len(codes.unclear) == 1


# Command line ---------------------------------------------------------------------------------------------------------


def commands() -> dict[str, Any]:
    import typer.main

    from lakescope.faces.cli.app import app

    group: Any = typer.main.get_command(app)
    found: dict[str, Any] = {"": group}
    for name in group.list_commands(None):
        found[name] = group.get_command(None, name)
        if isinstance(found[name], Family):
            family = found[name]
            found[name] = family.own or family
            found |= {f"{name} {each}": family.get_command(None, each) for each in family.list_commands(None)}
    return found


def options_of(command: Any, *, hidden: bool = False) -> set[str]:
    shown = [each for each in command.params if hidden or not getattr(each, "hidden", False)]
    names = [name for parameter in shown for name in [*parameter.opts, *parameter.secondary_opts]]
    return {name for name in names if name.startswith("-")}


@pytest.mark.parametrize("name", commands())
def test_every_command_and_option_is_explained(name: str) -> None:
    page = Page.of("docs/cli.md")
    section = page.section(f"lakescope {name}" if name else "For all commands")
    told = {option for row in rows_of(section, "argument, option" if name else "option") for option in _codes(row[0])}
    wanted = options_of(commands()[name])
    arguments = {p.name.upper() for p in commands()[name].params if p.param_type_name == "argument"}
    shared = {"--help", "--format", "-f"} if not name else options_of(commands()[name], hidden=True)
    assert wanted - told == set(), "docs/cli.md lacks these"
    assert {option for option in told if option.startswith("-")} - wanted - shared == set(), "there is no such option"
    assert len(told) - len([option for option in told if option.startswith("-")]) == len(arguments)


def test_tables_of_options_are_those_that_are_declared() -> None:
    """Generated: `python docs/make_tables.py` writes them anew."""
    tables = load_tables()
    pages = sorted(ROOT.glob("docs/*.md"))
    assert [page.name for page in pages if tables.renewed(page.read_text("utf-8")) != page.read_text("utf-8")] == []
    marks = {name for page in pages for name in tables.TABLE.findall(page.read_text("utf-8"))}
    kinds = {name: declared(name).about for name in QUESTIONS}
    wanted = {("differences", ""), *(("command", name) for name in COMMANDS)}
    wanted |= {("method", name) for name, about in kinds.items() if about.is_on("python") and _has_options(name)}
    wanted |= {("tool", name) for name, about in kinds.items() if about.is_on("agents") and _has_options(name)}
    assert wanted - marks == set()


def _has_options(name: str) -> bool:
    return bool(fields(declared(name)))  # type: ignore[arg-type]


def load_tables() -> Any:
    """The script that writes the tables, as a module."""
    spec = importlib.util.spec_from_file_location("make_tables", ROOT / "docs/make_tables.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_command_has_a_section() -> None:
    sections = re.findall(r"^## lakescope ([\w ]+)$", Page.of("docs/cli.md").text, re.MULTILINE)
    assert sorted(sections) == sorted(name for name in commands() if name)


def _codes(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


@dataclass(frozen=True, slots=True)
class Shown:
    """A command as a page shows it, and the output it shows."""

    page: str
    command: str
    output: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.page}: {self.command}"

    @property
    def arguments(self) -> list[str]:
        """Arguments of the ``lakescope`` command; none for other commands."""
        words = shlex.split(self.command, comments=True)
        words = words[1:] if words[:2] == ["./run", "lakescope"] else words
        return words[1:] if words[:1] == ["lakescope"] else []

    @property
    def asks(self) -> bool:
        """Whether the command only asks the demo index."""
        return "lakescope-demo/lake.idx" in self.arguments and self.arguments[0] not in ("index", "demo")


def shown() -> Iterator[Shown]:
    """Every command in the console blocks of all pages."""
    for path in PAGES:
        for block in Page.of(path).blocks("console"):
            for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                command, *output = part.rstrip("\n").split("\n")
                yield Shown(path.name, command, tuple(output))


def test_commands_on_the_pages_exist() -> None:
    run = (ROOT / "run").read_text("utf-8")
    known = set(re.findall(r"^\./run (\w+)", run, re.MULTILINE))
    named = {(path.name, name) for path in PAGES for name in re.findall(r"\./run (\w+)", Page.of(path).text)}
    assert {"demo", "test", "lakescope"} <= known
    assert {(page, name) for page, name in named if name not in known} == set()
    assert {name for page, name in named if page == "README.md"} >= {"demo", "test"}
    for each in shown():
        if each.arguments:
            options = {word for word in each.arguments[1:] if word.startswith("-")}
            name = " ".join(each.arguments[:2])
            name = name if name in commands() else each.arguments[0]
            assert name in commands(), str(each)
            assert options <= options_of(commands()[name]), str(each)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[[list[str]], list[str]]:
    """Run the command line in this process: the lines it prints, those on standard error last."""
    from lakescope.faces.cli import main

    def call(arguments: list[str]) -> list[str]:
        monkeypatch.setattr(sys, "argv", ["lakescope", *arguments])
        capsys.readouterr()
        with suppress(SystemExit):
            main()
        out, err = capsys.readouterr()
        return [line.rstrip() for line in (out + err).splitlines()]

    return call


@pytest.mark.parametrize("each", [each for each in shown() if each.asks], ids=str)
def test_transcripts_are_what_happens(each: Shown, demo_folder: Path, run: Callable[[list[str]], list[str]]) -> None:
    missing = first_missing(each.output, run(each.arguments))
    assert missing is None, f"{each.page} shows a line that `{each.command}` does not print (in this place)"


def first_missing(expected: Sequence[str], printed: Sequence[str]) -> str | None:
    """The first line of a transcript that was not printed. ``...`` stands for any lines, or for the end of a line."""
    at, free = 0, False
    for line in (line.rstrip() for line in expected):
        if line == "...":
            free = True
            continue
        start, cut = line.removesuffix(" ..."), line.endswith(" ...")
        while at < len(printed) and free and not _shows(printed[at], start, cut):
            at += 1
        if at >= len(printed) or not _shows(printed[at], start, cut):
            return line
        at, free = at + 1, False
    return None if free or at == len(printed) else printed[at]


def _shows(printed: str, start: str, cut: bool) -> bool:
    return printed.startswith(start) if cut else printed == start


def test_transcripts_of_the_demo_are_what_it_finds(demo_index: Lake) -> None:
    info = demo_index.info()
    sizes = f"{info['tables']:,} tables, {info['columns']:,} columns, {info['rows']:,} rows,"
    tours = [each for each in shown() if each.command.split("#")[0].split()[-1] == "demo" and each.output]
    assert tours
    for each in tours:
        assert any(line.startswith(sizes) for line in each.output), f"{each.page}: {sizes}"
    errors = [p for p in demo_index.problems().to_pylist() if p["severity"] == "error"]
    told = [line for each in tours for line in each.output if "could not be read" in line]
    assert all(line.startswith(f"{len(errors)} files") for line in told)


# Python ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["README.md", "docs/api.md"])
def test_python_on_the_pages_runs(
    name: str, demo_folder: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lakescope, "index", partial(lakescope.index, spark=spark))  # the session of the tests
    names: dict[str, Any] = {}
    for number, block in enumerate(Page.of(name).blocks("python"), start=1):
        exec(compile(block, f"{name}, block {number}", "exec"), names)
    assert isinstance(names["lake"], Lake)


def test_public_names_are_explained() -> None:
    text = Page.of("docs/api.md").text
    names = [*lakescope.__all__, *_public(Lake), *_public(TableProfile)]
    assert [name for name in names if not re.search(rf"\b{re.escape(name)}\b", text)] == []


def _public(kind: type) -> list[str]:
    return [name for name in dir(kind) if not name.startswith("_")]
