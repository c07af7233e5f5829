"""Packing units into bins: tiny files together, giants first, big tables cut, nothing lost."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakescope.pipeline.plan import FILE_COST, UNIT_BYTES, make_plan, pack, read_bin, work, write_plan
from lakescope.sources.discover import discover
from lakescope.sources.model import Unit


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
    assert work(packed) - FILE_COST == 4 * (work(plain) - FILE_COST)


def test_the_plan_survives_the_trip_to_a_worker(tmp_path: Path) -> None:
    odd = Unit('a "b"\nc', "csv", "/x\udcff", 5, 1, 2, {"range": [0, 10], "names": ["ä", "\u0000"]})
    bins = [[odd], [unit(1, 2), unit(2, 3)]]
    write_plan(bins, tmp_path)
    assert [read_bin(str(tmp_path), number) for number in range(2)] == bins


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
