"""What tests share lies in ``helpers/``; a test module stands alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).resolve().parent
MODULES = sorted(TESTS.rglob("*.py"))


def imported(path: Path) -> Iterator[str]:
    """Names of modules that a file imports anywhere; those in programs that it gives to other processes, too."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from re.findall(r"\b(?:import|from) ([\w.]+)", node.value)


def test_no_test_module_is_imported() -> None:
    tests = {path.stem for path in TESTS.glob("test_*.py")} | {"conftest"}
    found = [(path.name, name) for path in MODULES for name in imported(path) if tests & {*name.split(".")}]
    assert found == []


def test_helpers_hold_no_tests_and_all_are_used() -> None:
    helpers = {path.stem for path in (TESTS / "helpers").glob("*.py")} - {"__init__"}
    assert {path.stem for path in TESTS.glob("*.py") if not path.stem.startswith("test_")} == {"conftest"}
    assert [name for name in helpers if name.startswith("test_")] == []
    texts = {path: path.read_text("utf-8") for path in MODULES}
    for name in helpers:
        use = re.compile(rf"helpers(\.| import .*\b){name}\b")
        assert any(path.stem != name and use.search(text) for path, text in texts.items()), f"nobody uses {name}.py"
