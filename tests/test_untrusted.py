"""JSON of others that is nested deeper than Python follows: refused like any other that is damaged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import lakescope
from lakescope.engines.transforms.plan import Plan
from lakescope.engines.transforms.program import Program
from lakescope.errors import BadRequest, IndexDamaged
from lakescope.show.site import MARKER, is_report
from lakescope.sources.discover import discover
from lakescope.store.manifest import FORMAT_VERSION, MANIFEST, Manifest
from lakescope.untrusted import parsed
from lakescope.values.canonical import VALUES_VERSION

DEEP = "[" * 100_000


@pytest.mark.parametrize("text", [DEEP, b'{"a":' * 100_000, "", "{", '"\ud800'])
def test_what_is_no_json_is_one_error(text: str | bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        parsed(text)
    assert parsed("[1]") == [1]


@pytest.mark.parametrize("depth", [500, 900, 990, 100_000])
def test_a_manifest_of_any_depth_is_refused_by_name(tmp_path: Path, depth: int) -> None:
    """Some can be read and not be written again, which their checksum needs."""
    known = {"format": FORMAT_VERSION, "values": VALUES_VERSION, "checksum": "0"}
    text = json.dumps(known)[:-1] + ', "files": ' + "[" * depth + "]" * depth + "}"
    with pytest.raises(IndexDamaged, match="nowhere"):
        Manifest.parse("nowhere", text)
    (tmp_path / MANIFEST).write_text(text)
    with pytest.raises(IndexDamaged, match="repair"):
        lakescope.open(tmp_path)


def test_plans_and_programs_are_refused(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(DEEP)
    with pytest.raises(BadRequest, match=r"plan\.json is no saved plan"):
        Plan.load(tmp_path / "plan.json")
    with pytest.raises(BadRequest, match="no program: it is nested too deep"):
        Program.from_json(DEEP)


def test_a_folder_with_such_a_marker_is_no_report(tmp_path: Path) -> None:
    (tmp_path / MARKER).write_text(DEEP)
    assert not is_report(tmp_path)


@pytest.mark.parametrize("name", ["v1.metadata.json", "00000-0c4d.metadata.json"])
def test_metadata_of_iceberg_is_a_problem_of_its_table_only(tmp_path: Path, name: str) -> None:
    (tmp_path / "t" / "metadata").mkdir(parents=True)
    (tmp_path / "t" / "metadata" / name).write_text(DEEP)
    (tmp_path / "a.csv").write_text("a,b\n1,2\n3,4\n")
    found, problems = discover([str(tmp_path)])
    assert [each.table for each in found] == ["a.csv"]
    (problem,) = problems
    assert (problem.table, problem.code, problem.severity) == ("t", "table-format", "error")
