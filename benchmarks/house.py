"""How much is written twice, how far one change reaches, and what it costs to start: this tree beside an earlier one.

Counted from the source of both trees, with the same rules: lines of the faces (without blank ones), lines and files
that name one option outside the engine that heeds it, types that say nothing, modules that need each other, imports
inside functions, names that stand for several classes, docstrings that lean on the one above, and places that repeat
each other. Then commands are started in turns from both trees: CPU time of their processes, medians.
"""

from __future__ import annotations

import ast
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path

from common import Json, alternated, arguments, at_most, publish, ratios, say, table

ROOT = Path(__file__).resolve().parents[1]
#: The last revision before questions were declared.
_BEFORE = "3cc17ee"
_FACES = ("cli", "server", "mcp", "faces")
#: Rooms where an option's own logic is: what is left are the places that only hand it on.
_ENGINES = (
    "search",
    "engines",
    "sketches",
    "pipeline",
    "build",
    "keys",
    "fds",
    "tables",
    "code",
    "show",
    "studies",
    "demo",
)
_OPTION = "agg"
#: Lines in a row that make two places a pair.
_RUN = 6
_COMMANDS = {
    "import lakescope": ["-c", "import lakescope"],
    "--help": ["-m", "lakescope", "--help"],
    "join --help": ["-m", "lakescope", "join", "--help"],
    "inclusions --help": ["-m", "lakescope", "inclusions", "--help"],
    "tables INDEX": ["-m", "lakescope", "tables", "{index}"],
    "join INDEX TABLE": ["-m", "lakescope", "join", "{index}", "shop/orders.csv", "--on", "customer_id"],
    "join INDEX FILE": ["-m", "lakescope", "join", "{index}", "{file}", "--on", "customer_id"],
    "correlate INDEX TABLE": [
        *(
            "-m",
            "lakescope",
            "correlate",
            "{index}",
            "mobility/bike_rides_daily.csv",
            "--key",
            "date",
            "--target",
            "rides",
        ),
    ],
}


@dataclass(frozen=True)
class Module:
    """One module of a tree."""

    name: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @property
    def room(self) -> str:
        """The room below the package it lies in; a module of its own by its name."""
        return self.name.split(".")[1] if "." in self.name else self.name

    @property
    def lines(self) -> int:
        """Lines that are not blank."""
        return sum(1 for line in self.text.splitlines() if line.strip())


def modules_of(package: Path) -> dict[str, Module]:
    """All modules of a package by their dotted names."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        name = ".".join(path.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__")
        found[name] = Module(name, path.read_text("utf-8"))
    return found


def imports_of(module: Module, known: dict[str, Module]) -> tuple[set[str], int]:
    """Modules of the tree that one needs when it runs, and how many of these imports stand inside functions."""
    needs: set[str] = set()
    inside = 0

    def visit(node: ast.AST, depth: int) -> None:
        nonlocal inside
        for each in ast.iter_child_nodes(node):
            if isinstance(each, ast.If) and "TYPE_CHECKING" in ast.dump(each.test):
                continue
            wanted = []
            if isinstance(each, ast.Import):
                wanted = [alias.name for alias in each.names]
            elif isinstance(each, ast.ImportFrom):
                wanted = [_of_known(f"{each.module}.{alias.name}", str(each.module), known) for alias in each.names]
            wanted = [name for name in wanted if name in known and name != module.name]
            needs.update(wanted)
            inside += len(set(wanted)) if depth else 0
            visit(each, depth + isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))

    visit(module.tree, 0)
    return needs, inside


def _of_known(inner: str, outer: str, known: dict[str, Module]) -> str:
    return inner if inner in known else outer


def knots_of(needs: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules that all need each other (Tarjan 1972)."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        order[name] = lowest[name] = len(order)
        stack.append(name)
        for other in needs[name]:
            if other not in order:
                visit(other)
                lowest[name] = min(lowest[name], lowest[other])
            elif other in stack:
                lowest[name] = min(lowest[name], order[other])
        if lowest[name] == order[name]:
            at = stack.index(name)
            group, stack[at:] = stack[at:], []
            if len(group) > 1:
                found.append(group)

    sys.setrecursionlimit(10_000)
    for name in needs:
        if name not in order:
            visit(name)
    return found


def repeated(modules: dict[str, Module]) -> tuple[int, int]:
    """Pairs of places that share six lines or more: the very lines, and lines of one shape (other names and values).

    Imports, docstrings and bare fields of records do not count: they are declarations, and belong where they stand.
    """
    exact, shapes = (defaultdict(set) for _ in range(2))
    for module in modules.values():
        for start, run in _runs(module):
            exact["\n".join(run)].add((module.name, start // _RUN))
            shapes["\n".join(map(_shape, run))].add((module.name, start // _RUN))
    return _pairs(exact), _pairs(shapes)


def _runs(module: Module) -> Iterator[tuple[int, list[str]]]:
    declared = {
        line
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Import | ast.ImportFrom | ast.AnnAssign) or _is_text(node)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    lines = [
        (number, line.strip())
        for number, line in enumerate(module.text.splitlines(), 1)
        if line.strip() and number not in declared and not line.strip().startswith("#")
    ]
    for at in range(len(lines) - _RUN + 1):
        run = [line for _, line in lines[at : at + _RUN]]
        if sum(len(line) for line in run) > 20 * _RUN:
            yield lines[at][0], run


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _shape(line: str) -> str:
    return re.sub(r"\b[A-Za-z_]\w*\b|\d+|\"[^\"]*\"|'[^']*'", "x", line)


def _pairs(places: dict[str, set[tuple[str, int]]]) -> int:
    """Pairs of places, each counted once however many runs they share."""
    found = {pair for each in places.values() if 1 < len(each) <= 8 for pair in combinations(sorted(each), 2)}
    files = Counter((a[0], b[0]) for a, b in found)
    return len(files)


def figures(package: Path) -> Json:
    """What can be counted in a tree."""
    modules = modules_of(package)
    faces = [each for each in modules.values() if each.room in _FACES]
    outside = [each for each in modules.values() if each.room not in _ENGINES]
    named = [
        (each.name, line)
        for each in outside
        for line in each.text.splitlines()
        if re.search(rf"\b{_OPTION}\b", line.split("#")[0])
    ]
    imports = {name: imports_of(each, modules) for name, each in modules.items()}
    knots = knots_of({name: needs for name, (needs, _) in imports.items()})
    nodes = [node for each in modules.values() for node in ast.walk(each.tree)]
    classes = Counter(node.name for node in nodes if isinstance(node, ast.ClassDef))
    kinds = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    texts = [ast.get_docstring(node) or "" for node in nodes if isinstance(node, kinds)]
    same, alike = repeated(modules)
    return {
        "modules": len(modules),
        "lines": sum(each.lines for each in modules.values()),
        "lines of the faces": sum(each.lines for each in faces),
        "of these, what serves and guards": sum(each.lines for each in faces if _serves(each.name)),
        "lines of questions": sum(each.lines for each in modules.values() if each.room == "questions"),
        "lines of templates": sum(
            sum(1 for line in path.read_text("utf-8").splitlines() if line.strip()) for path in package.rglob("*.html")
        ),
        f"lines that name the option `{_OPTION}`": len(named),
        "files with these lines": len({name for name, _ in named}),
        "`dict[str, Any]` in faces": sum(each.text.count("dict[str, Any]") for each in faces),
        "`dict[str, Any]` in all": sum(each.text.count("dict[str, Any]") for each in modules.values()),
        "imports inside functions": sum(inside for _, inside in imports.values()),
        "knots": len(knots),
        "modules in the largest knot": max(map(len, knots), default=0),
        "names of several classes": sum(count > 1 for count in classes.values()),
        "docstrings that begin with The same": sum(text.startswith("The same") for text in texts),
        "largest room without rooms in it (modules)": max(
            Counter(name.rpartition(".")[0] for name in modules if name.count(".") > 1).values()
        ),
        "pairs of files that repeat six lines": same,
        "pairs of files that repeat six lines by shape": alike,
    }


def _serves(name: str) -> bool:
    """Connections, jobs, uploads, guards: what a server is, whatever it is asked."""
    own = ("api", "asking", "pages", "tasks", "service", "charts", "graph", "catalog")
    parts = name.split(".")
    return (parts[1:2] == ["server"] and parts[-1] not in own) or (
        parts[1:3] == ["faces", "serving"] and parts[-1] not in own
    )


def started(source: Path, words: list[str]) -> float:
    """CPU-seconds of a command from a tree."""
    before = os.times()
    environment = {**os.environ, "PYTHONPATH": str(source)}
    subprocess.run([sys.executable, "-P", *words], env=environment, check=True, capture_output=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def start_times(trees: dict[str, Path], rounds: int, folder: Path) -> dict[str, dict[str, list[float]]]:
    """CPU-seconds of commands from both trees, which take turns."""
    index, file = folder / "demo.idx", folder / "demo" / "shop" / "orders.csv"
    say("indexing the demo lake")
    program = "import sys; from lakescope.demo import write_demo_lake; write_demo_lake(sys.argv[1])"
    subprocess.run([sys.executable, "-c", program, str(folder / "demo")], check=True)
    words = ["-m", "lakescope", "index", str(folder / "demo"), "--out", str(index), "--quiet"]
    subprocess.run([sys.executable, *words], check=True, capture_output=True)
    found: dict[str, dict[str, list[float]]] = {}
    for name, words in _COMMANDS.items():
        filled = [word.format(index=index, file=file) for word in words]
        times: dict[str, list[float]] = {tree: [] for tree in trees}
        for round_ in range(-1, rounds):  # one to warm up
            for tree in alternated(list(trees), max(0, round_)):
                seconds = started(trees[tree], filled)
                if round_ >= 0:
                    times[tree].append(seconds)
        found[name] = times
        say(f"{name} done")
    return found


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--before", default=_BEFORE, help="the revision to compare with")
    parser.add_argument("--no-times", action="store_true", help="count only")
    options = parser.parse_args()
    rounds = max(options.repeats, 9)
    with tempfile.TemporaryDirectory() as folder:
        before = Path(folder, "before")
        before.mkdir()
        archive = subprocess.run(
            ["git", "-C", str(ROOT), "archive", options.before, "src"], check=True, capture_output=True
        ).stdout
        subprocess.run(["tar", "-x", "-C", str(before)], input=archive, check=True)
        then, now = figures(before / "src" / "lakescope"), figures(ROOT / "src" / "lakescope")
        sections = ["## Counted", table(["", options.before, "now"], [[name, then[name], now[name]] for name in now])]
        body: Json = {"before": then, "now": now}
        aims = [
            at_most("lines of the faces", 4_500, now["lines of the faces"]),
            at_most(f"files that name the option `{_OPTION}`", 3, now["files with these lines"]),
            at_most("knots", 0, now["knots"]),
        ]
        if not options.no_times:
            trees = {"before": before / "src", "now": ROOT / "src"}
            times = start_times(trees, rounds, Path(folder))
            rows = []
            for name, of in times.items():
                spread = ratios(of["now"], of["before"])
                rows.append([name, *(f"{1e3 * statistics.median(of[tree]):.0f}" for tree in trees), spread])
                aims.append(at_most(f"`{name}`, now by before", 1.1, spread))
            sections += ["## CPU-ms of a command, medians", table(["", *trees, "now / before"], rows)]
            body["times"] = times
        sections.append(" ".join((__doc__ or "").split("\n\n", 1)[1].split()))
        versions = {"python": sys.version.split()[0]}
        publish("house", "The house, before and after", body, sections, aims, versions, options.out)


if __name__ == "__main__":
    main()
