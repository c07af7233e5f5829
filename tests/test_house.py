"""How the house is built: which room uses which, no arrow back, no knot, and what a room may stand on."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import lakescope

ROOT = Path(lakescope.__file__).parent

#: The rooms, in the order in which data flows. A room uses rooms above it, and none below.
ROOMS = (
    *("values", "sketches", "profile", "sources", "show", "results", "store", "build", "tables"),
    *("engines", "studies", "code", "questions", "lake", "demo", "faces"),
)
#: The fields of the engines: each uses only those that are named, whatever rooms above it has.
FIELDS: dict[str, set[str]] = {
    "joins": set(),
    "correlations": {"joins"},
    "keys": {"joins"},
    "headers": {"joins"},
    "transforms": {"joins"},
    "dependencies": set(),
    "counting": set(),
    "history": set(),
    "shards": {"joins", "correlations", "keys"},
}
#: What a room does without though it lies above: the narrower promise.
WITHOUT = {
    "sketches": {"results"},
    "profile": {"sources"},
    "demo": set(ROOMS) - {"sources", "demo"},
}
#: The one arrow back: a plan gives its own code, by a writer that is loaded when it is asked for.
BACK = {"engines": ("engines/transforms/plan.py", "lakescope.code")}
#: What belongs to everybody: errors, logs, timings, JSON of others, child processes, threads, types of arrays.
EVERYBODY = {
    *("_version", "array_types", "errors", "logs", "once", "processes", "stages", "threads", "untrusted", "watch"),
}
#: Modules for everybody that import a room, and why.
ERRORS_TELL = {"errors": {"sources"}, "logs": {"sources"}}  # one module knows what a secret looks like


@cache
def _imports(path: Path) -> tuple[tuple[str, str], ...]:
    """Modules that a file imports when it runs, with where; what only a type checker sees does not count."""
    return tuple(_imported(path))


def _imported(path: Path) -> Iterator[tuple[str, str]]:
    tree = ast.parse(path.read_text("utf-8"))
    hidden = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for statement in node.body
        for inner in ast.walk(statement)
    }
    for node in ast.walk(tree):
        if id(node) in hidden:
            continue
        where = f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Import):
            yield from ((alias.name, where) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"relative import in {where}"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield (inner if _is_module(inner) else str(node.module)), where
        elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ("import_module", "__import__"):
            yield ast.unparse(node.args[0]).strip("f'\""), where


@cache
def _is_module(name: str) -> bool:
    place = ROOT.parent.joinpath(*name.split("."))
    return place.with_suffix(".py").exists() or (place / "__init__.py").exists()


def _name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__")


def _files(room: str) -> list[Path]:
    return [ROOT / f"{room}.py"] if (ROOT / f"{room}.py").exists() else sorted((ROOT / room).rglob("*.py"))


def _strangers(files: list[Path], allowed: set[str], depth: int) -> list[str]:
    """What files import of this package below the rooms (depth 1) or fields (depth 2) that are allowed."""
    found = []
    for path in files:
        for module, where in _imports(path):
            parts = module.split(".")
            if parts[0] == "lakescope" and len(parts) > depth and parts[depth] not in allowed:
                found.append(f"{where} imports {module}")
    return found


def test_only_the_build_imports_spark() -> None:
    strangers = [
        where
        for path in sorted(ROOT.rglob("*.py"))
        for module, where in _imports(path)
        if module.split(".")[0] in ("pyspark", "py4j") and path.relative_to(ROOT).parts[0] != "build"
    ]
    assert strangers == []


def test_every_room_is_in_the_plan() -> None:
    there = {path.relative_to(ROOT).parts[0].removesuffix(".py") for path in ROOT.rglob("*.py")}
    assert there - EVERYBODY - {"__init__", "__main__"} == set(ROOMS)
    assert {path.name for path in (ROOT / "engines").iterdir() if (path / "__init__.py").exists()} == set(FIELDS)


def test_contributing_lists_the_rooms_in_their_order() -> None:
    page = (ROOT.parents[1] / "CONTRIBUTING.md").read_text("utf-8")
    assert tuple(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == ROOMS


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_uses_only_rooms_above_it(room: str) -> None:
    above = set(ROOMS[: ROOMS.index(room) + 1]) - WITHOUT.get(room, set())
    place, module = BACK.get(room, ("no file", ""))
    strangers = _strangers(_files(room), above | EVERYBODY, 1)
    assert [each for each in strangers if not (each.startswith(place) and each.endswith(f" {module}"))] == []


@pytest.mark.parametrize("module", sorted(EVERYBODY))
def test_what_is_for_everybody_stands_on_no_room(module: str) -> None:
    assert _strangers([ROOT / f"{module}.py"], EVERYBODY | ERRORS_TELL.get(module, set()), 1) == []


@pytest.mark.parametrize("field", FIELDS)
def test_a_field_of_the_engines_uses_only_fields_that_are_named(field: str) -> None:
    files = sorted((ROOT / "engines" / field).rglob("*.py"))
    strangers = [each for each in _strangers(files, FIELDS[field] | {field}, 2) if ".engines." in each]
    assert strangers == []


def test_there_is_no_knot() -> None:
    """No two modules need each other, wherever in them the import stands."""
    needs = {
        _name(path): {module for module, _ in _imports(path) if module.startswith("lakescope.")} - {_name(path)}
        for path in ROOT.rglob("*.py")
    }
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        pytest.fail(f"modules that need each other: {' -> '.join(error.args[1])}")


#: Imports that stand inside functions, by why: from which modules to which others. A trailing star stands for any end.
LATE = {
    "compiled loops: numba takes half a second to load": [
        *(("*", "*kernels"), ("*", "sketches.correlation"), ("build.warmup", "*"), ("engines.headers.*", "*.sketched")),
    ],
    "Spark is loaded by whoever builds, or asks many questions at once": [("*", "build.*")],
    "a question is declared without its engine: a command that lists commands loads none": [
        *(
            ("questions.*", "engines.*"),
            ("questions.*", "studies.*"),
            ("questions.*", "show.*"),
            ("questions.*", "code.*"),
        ),
        *(("questions.*", "tables.*"), ("questions.*", "questions.batches"), ("questions.*", "sources.*")),
        *(("questions.*", "store.*"), ("questions.*", "profile.*")),
        ("questions.*", "sketches.*"),
    ],
    "the facade loads what a question needs when it is asked": [("lake", "*"), ("lakescope", "*")],
    "a command loads what it needs when it is called": [("faces.cli*", "*")],
    "reading a table loads the readers, which a table of the lake does not need": [
        *(("*", "tables.reading"), ("*", "tables.writing"), ("*", "sources.*"), ("tables.*", "values.*")),
        *(("tables.*", "sketches.*"), ("engines.*", "values.*"), ("engines.*", "profile.*")),
    ],
    "an answer shows itself only to who looks at it": [("*", "show.*"), ("*", "code*")],
    "packages that are not always there, or an index that lies elsewhere": [("store.index", "store.remote")],
    "a tool, or a task of a worker, loads what it needs when it is asked for": [
        *(("faces.mcp.tools", "*"), ("faces.serving.tasks", "*"), ("code.reading", "sources")),
    ],
    "sketches are named without the hash that fills them": [("sketches.*", "values.hashed")],
}


def test_imports_inside_functions_save_time() -> None:
    """Every other import stands at the head of its module."""
    unexplained = []
    for path in sorted(ROOT.rglob("*.py")):
        source = _short(_name(path))
        for module, where in _late(path):
            pairs = [pair for rules in LATE.values() for pair in rules]
            if not any(fnmatch(source, start) and fnmatch(_short(module), end) for start, end in pairs):
                unexplained.append(f"{where} imports {module}")
    assert unexplained == []


def _short(name: str) -> str:
    return name.removeprefix("lakescope.")


def _late(path: Path) -> Iterator[tuple[str, str]]:
    """Modules of this package that are imported inside functions of a file."""
    functions = [
        node
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    spans = [(node.lineno, node.end_lineno or node.lineno) for node in functions]
    for module, where in _imports(path):
        line = int(where.rpartition(":")[2])
        if module.startswith("lakescope") and "{" not in module and any(start < line <= end for start, end in spans):
            yield module, where


def _loads(code: str) -> set[str]:
    """Modules that a fresh interpreter has loaded after a piece of code."""
    shown = f"{code}\nimport sys\nprint(*sys.modules)"
    ended = subprocess.run([sys.executable, "-c", shown], check=True, capture_output=True, text=True)
    return set(ended.stdout.split())


def test_declarations_of_questions_load_no_engine() -> None:
    loaded = _loads("from lakescope.questions import QUESTIONS, declared\nfor name in QUESTIONS: declared(name)")
    assert not {"numpy", "pyarrow", "numba", "pandas", "pyspark", "lakescope.lake"} & loaded
    engines = [name.split(".")[2:] for name in loaded if name.startswith("lakescope.engines.")]
    assert sorted(each for each in engines if each[1:] not in ([], ["answers"])) == []


def test_the_facade_loads_no_question() -> None:
    assert not {name for name in _loads("import lakescope.lake") if name.startswith("lakescope.questions.")}


@pytest.mark.parametrize(
    ("command", "questions", "printings"),
    [("tables", {"catalog"}, {"catalog"}), ("join", {"joinable"}, {"joins"}), ("inclusions", {"inclusions"}, {"keys"})],
)
def test_a_command_loads_its_question_and_its_printing(command: str, questions: set[str], printings: set[str]) -> None:
    loaded = _loads(f"from lakescope.faces.cli.asking import command\ncommand({command!r})")
    rooms = ("lakescope.questions.", "lakescope.faces.cli.printings.")
    found = [{name.removeprefix(room) for name in loaded if name.startswith(room)} for room in rooms]
    assert found == [questions | {"model", "signing"}, printings]


def test_values_stand_on_arrays_alone() -> None:
    # llvmlite is the half of numba that speaks to the machine.
    allowed = {"numpy", "pyarrow", "numba", "llvmlite", "xxhash", "lakescope", *sys.stdlib_module_names}
    strangers = [
        f"{where} imports {module}"
        for path in _files("values")
        for module, where in _imports(path)
        if module.split(".")[0] not in allowed
    ]
    assert strangers == []


def test_no_room_touches_the_rdd() -> None:
    """DataFrames only: Spark Connect has nothing else."""
    strangers = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in _files("build")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in ("rdd", "sparkContext", "_jvm", "_jsc", "_sc")
    ]
    assert strangers == []


#: Words of which a comment on a tuning constant has one.
ORIGINS = ("measured", "thesis", "paper", "specification", "any number", "set by", "set when")


def test_a_class_name_stands_once() -> None:
    """Whoever reads a name of a class knows which one it is, or finds the one place where it is."""
    places: dict[str, list[str]] = {}
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(f"{path.relative_to(ROOT)}:{node.lineno}")
    several = {name: there for name, there in places.items() if len(there) > 1}
    assert several == {}


def test_a_docstring_can_be_read_alone() -> None:
    """None begins with what another one said: nobody reads a file from its beginning."""
    leaning = []
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = ast.get_docstring(node) or ""
                if text.lower().startswith(("the same", "same ")):
                    leaning.append(f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}: {text.splitlines()[0]}")
    assert leaning == []


def test_tuning_says_where_it_was_measured() -> None:
    """Each field of a dataclass that tunes an engine says whence its value comes, or that nobody measured it."""
    silent = []
    for path in sorted(ROOT.rglob("*.py")):
        lines = path.read_text("utf-8").splitlines()
        for node in ast.walk(ast.parse("\n".join(lines))):
            if not isinstance(node, ast.ClassDef) or not node.name.endswith("Tuning"):
                continue
            where = f"{path.relative_to(ROOT)} {node.name}"
            decorators = [ast.unparse(each) for each in node.decorator_list]
            assert decorators == ["dataclass(frozen=True, slots=True)"], where
            for field in (each for each in node.body if isinstance(each, ast.AnnAssign)):
                at, words = field.lineno - 2, ""
                while lines[at].strip().startswith("#:"):
                    at, words = at - 1, f"{lines[at].strip()[3:]} {words}"
                if not any(each in words.lower() for each in ORIGINS):
                    silent.append(f"{where}.{ast.unparse(field.target)}")
    assert silent == []
