"""Packing units into bins: tiny files together, giants first, big tables cut, nothing lost."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakescope import sources
from lakescope.build.plan import PLANNING, UNIT_BYTES, make_plan, pack, read_bin, work, write_plan
from lakescope.build.tasks import ScanBins
from lakescope.sources.discover import discover
from lakescope.sources.model import Unit
from lakescope.sources.source_table import SourceTable


def unit(number: int, size: int, count: int = 1) -> Unit:
    return Unit(f"t{number}", "csv", f"/data/t{number}", size, count=count)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 10**9), max_size=200))
def test_nothing_is_lost_and_bins_are_bounded(sizes: list[int]) -> None:
    units = [unit(i, size) for i, size in enumerate(sizes)]
    bins = pack(units)
    assert sorted(u.table for b in bins for u in b) == sorted(u.table for u in units)
    assert all(bins)
    if units:
        room = max(UNIT_BYTES, max(work(u) for u in units))
        assert max(sum(work(u) for u in b) for b in bins) <= 2 * room


def test_ten_thousand_tiny_files_spread_well() -> None:
    bins = pack([unit(i, 1000) for i in range(10_000)])
    loads = [sum(work(u) for u in b) for b in bins]
    assert 8 <= len(bins) <= 40
    assert max(loads) < 1.2 * min(loads[:-1])


def test_one_huge_table_spreads_too() -> None:
    pieces = [Unit("big", "csv", "/data/big", UNIT_BYTES, i, 320) for i in range(320)]
    bins = pack(pieces)
    assert len(bins) >= 300
    assert [u.ordinal for b in bins for u in b] == list(range(320))


def test_giants_that_cannot_be_cut_go_first() -> None:
    bins = pack([unit(0, 10), unit(1, 20 * UNIT_BYTES), unit(2, 10)])
    assert [u.table for u in bins[0]] == ["t1"]


def test_compressed_bytes_weigh_more() -> None:
    plain, packed = unit(0, 1000), Unit("t", "csv", "/t", 1000, options={"compression": "gzip"})
    assert work(packed) - PLANNING.file_cost == 4 * (work(plain) - PLANNING.file_cost)


def test_the_plan_survives_the_trip_to_a_worker(tmp_path: Path) -> None:
    odd = Unit('a "b"\nc', "csv", "/x\udcff", 5, 1, 2, {"range": [0, 10], "names": ["ä", "\u0000"]})
    bins = [[odd], [unit(1, 2), unit(2, 3)]]
    secrets = write_plan(bins, tmp_path)
    assert [read_bin(str(tmp_path), number, secrets) for number in range(2)] == bins


def test_the_plan_on_disk_holds_no_secrets(tmp_path: Path) -> None:
    addresses = ["s3://KEY:SEKRET@bucket/a.csv?scheme=http", "https://host/b.csv?sig=SEKRET", "/c.csv"]
    bins = [[Unit("t", "csv", uri, 5) for uri in addresses] for _ in range(2)]
    table, deleted = "s3://KEY:SEKRET@bucket/t?scheme=http", "s3://KEY:SEKRET@bucket/t/d.parquet?session=SEKRET"
    options = {"table": table, "path": "s3://K:SEKRET@bucket/x", "deletes": [["parquet", deleted], ["puffin", "/d"]]}
    bins.append([Unit("t", "delta", "s3://KEY:SEKRET@bucket/t/x.parquet?scheme=http", 1, options=options)])
    secrets = write_plan(bins, tmp_path)
    assert len(secrets) == 5
    assert [read_bin(str(tmp_path), number, secrets) for number in range(3)] == bins
    (written,) = tmp_path.iterdir()
    assert b"SEKRET" not in written.read_bytes()
    assert "SEKRET" not in repr(ScanBins(str(tmp_path), 1, None, secrets))


@pytest.mark.parametrize("target", [1000, 7777, 1 << 30])
def test_byte_ranges_cover_a_file_without_gaps(tmp_path: Path, target: int) -> None:
    path = tmp_path / "big.csv"
    path.write_text("id,name\n" + "".join(f"{i},name {i}\n" for i in range(5000)))
    found, _ = discover([str(path)])
    units = [u for b in make_plan(found, target).bins for u in b]
    if target > path.stat().st_size:
        assert len(units) == 1
        assert "range" not in units[0].options
        return
    ranges = [tuple(u.options["range"]) for u in units]
    assert ranges[0][0] == len("id,name\n")
    assert ranges[-1][1] == path.stat().st_size
    assert all(a[1] == b[0] for a, b in pairwise(ranges))
    assert max(high - low for low, high in ranges) <= target + 1


# Tables of the same name ----------------------------------------------------------------------------------------------


def found_at(path: Path) -> list[SourceTable]:
    return discover([str(path)])[0]


def cells_of(unit: Unit) -> list[str]:
    """Everything a unit holds, in one list."""
    return [
        column.data[start:end].tobytes().decode()
        for batch in sources.read(unit, lambda problem: None)
        for column in batch.columns
        for start, end in zip(column.starts, column.ends, strict=True)
    ]


def assert_told_apart(path: Path, expected: dict[str, list[str]], renamed: str) -> None:
    plan = make_plan(found_at(path))
    units = [unit for units in plan.bins for unit in units]
    assert {unit.table: cells_of(unit) for unit in units} == expected
    assert [(unit.ordinal, unit.count) for unit in units] == [(0, 1)] * len(expected)
    assert sorted(plan.tables) == sorted(expected)
    told = [(problem.table, problem.severity, problem.code, problem.count) for problem in plan.problems]
    assert told == [(renamed, "info", "name-collision", 1)]


def test_a_table_called_like_a_schema_and_its_table(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "d.duckdb")) as connection:
        connection.execute('CREATE SCHEMA s; CREATE TABLE s.t AS SELECT 1 AS a; CREATE TABLE "s.t" AS SELECT 2 AS b')
    assert_told_apart(tmp_path, {"d.duckdb::s.t": ["2"], "d.duckdb::s.t~2": ["1"]}, "d.duckdb::s.t~2")


def test_sheets_of_the_same_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lakescope.demo.xlsx import write_xlsx
    from lakescope.sources.formats import excel

    write_xlsx(tmp_path / "b.xlsx", {name: pa.table({"a": [name]}) for name in ("x", "y", "z")})
    ask = excel._HELPER.ask

    def renamed(name: str, question: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        answer, payload = ask(name, question)
        return ({**answer, "sheets": ["x", "x", "x~2"]} if "sheets" in answer else answer), payload

    monkeypatch.setattr(excel._HELPER, "ask", renamed)
    expected = {"b.xlsx::x": ["x"], "b.xlsx::x~3": ["y"], "b.xlsx::x~2": ["z"]}
    assert_told_apart(tmp_path, expected, "b.xlsx::x~3")


def test_a_file_called_like_a_sheet(tmp_path: Path) -> None:
    from lakescope.demo.xlsx import write_xlsx

    write_xlsx(tmp_path / "people.xlsx", {"Training": pa.table({"a": ["sheet"]})})
    (tmp_path / "people.xlsx::Training").write_text("name,size\nfile,1\n")
    expected = {"people.xlsx::Training": ["sheet"], "people.xlsx::Training~2": ["file", "1"]}
    assert_told_apart(tmp_path, expected, "people.xlsx::Training~2")
    # A CSV file whose ranges did not meet is planned again, by the name it was given.
    again = make_plan([make_plan(found_at(tmp_path)).tables["people.xlsx::Training~2"]], 1 << 62)
    assert [unit.table for units in again.bins for unit in units] == ["people.xlsx::Training~2"]
    assert not again.problems


def test_units_of_one_table_keep_its_name(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,name\n" + "".join(f"{i},x\n" for i in range(1000)))
    plan = make_plan(found_at(tmp_path), 1000)
    assert {unit.table for units in plan.bins for unit in units} == {"t.csv"}
    assert plan.problems == []
