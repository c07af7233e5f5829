"""Versions of a table that updates replaced, and what drifted between them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import lakescope
from helpers import crashes
from helpers.histories import three_versions, write_rows
from lakescope.engines.history.drift import DriftDistance, distance
from lakescope.errors import BadRequest, NotFound
from lakescope.faces.cli.app import app
from lakescope.lake import Lake


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """One to change."""
    return three_versions(tmp_path)


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """One that is only asked."""
    return three_versions(tmp_path_factory.mktemp("history"))


def test_versions(asked: Lake) -> None:
    versions = asked.history("t.csv")
    assert [each.rows for each in versions] == [1000, 1000, 1001]
    assert [each.version for each in versions] == [1, 2, 3]
    assert (versions[1].added, versions[1].removed) == (("extra",), ("note",))
    assert (versions[2].added, versions[2].removed) == ((), ())
    assert versions[-1].until is None
    assert all(one.until is not None and one.scanned <= one.until for one in versions[:-1])
    assert len(asked.history("other.csv")) == 1
    assert (asked.versions("t.csv"), asked.versions("other.csv")) == (3, 1)
    with pytest.raises(NotFound, match="no table named"):
        asked.history("nothing.csv")


def test_the_profile_of_an_earlier_version(asked: Lake) -> None:
    first = asked.profile("t.csv", version=1)
    assert [column["name"] for column in first.columns] == ["id", "color", "size", "note"]
    assert first.column("id")["unique"] is True
    assert first.column("id")["maximum"] == "999"
    assert asked.profile("t.csv", version=3).columns == asked.profile("t.csv").columns
    with pytest.raises(BadRequest, match="has no version 4"):
        asked.profile("t.csv", version=4)


def test_what_drifted(asked: Lake) -> None:
    assert list(asked.drift("t.csv")) == [], "one row more is no drift"
    found = {each.column: each for each in asked.drift("t.csv", since=1)}
    assert set(found) == {"id", "color", "size", "note", "extra"}
    assert found["note"].changes == ("removed",)
    assert found["extra"].changes == ("added",)
    assert "no longer a key" in found["id"].changes
    assert any("missing 0% to 50%" in change for change in found["color"].changes)
    assert any("new at the top: green" in change for change in found["color"].changes)
    assert found["color"].exact
    assert found["color"].distance == 1
    size = found["size"]
    assert size.measure == "kolmogorov-smirnov"
    assert size.low is not None
    assert size.high is not None
    assert size.low <= 0.5 <= size.high, "half of the values moved out of the old range"
    assert list(asked.drift(since=1)) == list(asked.drift("t.csv", since=1))


def test_tables_with_fewer_versions_are_told_and_stop_nothing(lake: Lake, tmp_path: Path) -> None:
    write_rows(tmp_path / "lake" / "other.csv", "a", [(i,) for i in range(99)], 4)
    lake.update()
    found = lake.drift(since=2, minimum=0)
    assert list(found) == list(lake.drift("t.csv", since=2, minimum=0))
    assert found.notes == ("other.csv has no earlier version 2: there are versions 1 to 1",)
    with pytest.raises(BadRequest, match="no earlier version 2"):
        lake.drift("other.csv", since=2)
    with pytest.raises(BadRequest, match="no earlier version 0"):
        lake.drift(since=0)
    with pytest.raises(BadRequest, match="no time"):
        lake.drift("other.csv", since="yesterday")


def test_every_column_is_told_if_asked(asked: Lake) -> None:
    assert {each.column for each in asked.drift("t.csv", minimum=0)} == {"id", "color", "size", "extra"}
    assert list(asked.drift("other.csv")) == []
    assert asked.drift("other.csv").notes
    with pytest.raises(BadRequest, match="no time"):
        asked.drift("t.csv", since="yesterday")
    with pytest.raises(BadRequest, match="no earlier version"):
        asked.drift("t.csv", since="9")
    assert list(asked.drift("t.csv", since="2001-01-01")) == list(asked.drift("t.csv", since=1))
    assert list(asked.drift("t.csv", since="2999-01-01")) == []


def test_history_outlives_compaction_as_far_as_is_wanted(lake: Lake, tmp_path: Path) -> None:
    before = lake.history("t.csv"), lake.drift("t.csv", since=1)
    lake.compact()
    assert len(lake._index.manifest.segments) == 1
    assert (lake.history("t.csv"), lake.drift("t.csv", since=1)) == before
    write_rows(tmp_path / "lake" / "t.csv", "id", [(1,)], 4)
    lake.update()
    lake.compact(keep_history=2)
    assert [each.rows for each in lake.history("t.csv")] == [1000, 1001, 1]
    write_rows(tmp_path / "lake" / "t.csv", "id", [(2,)], 5)
    lake.update()
    lake.compact(keep_history=0)
    assert [each.rows for each in lake.history("t.csv")] == [1]
    assert list(lake.verify(deep=True)) == []
    with pytest.raises(BadRequest, match="cannot keep"):
        lake.compact(keep_history=-1)


def test_a_table_that_is_gone_has_a_history(lake: Lake, tmp_path: Path) -> None:
    (tmp_path / "lake" / "t.csv").unlink()
    (tmp_path / "lake" / "other.csv").unlink()
    write_rows(tmp_path / "lake" / "z.csv", "a", [(1,)], 6)
    lake.update()
    assert len(lake._index.manifest.segments) == 1, "segments of which all is gone go; their history does not"
    versions = lake.history("t.csv")
    assert [each.rows for each in versions] == [1000, 1000, 1001]
    assert versions[-1].until is not None
    assert any("not in the lake" in note for note in versions.notes)


def test_many_tables_have_each_its_history(tmp_path: Path) -> None:
    """Tables that were written in several segments, in one update replaced, and in the next their segments dropped."""
    names = ["b", "z", "a", "m", "k"]
    for when, name in enumerate(names[:3]):
        write_rows(tmp_path / "lake" / f"{name}.csv", "n,o", [(1, 2)], when)
    with crashes.without_spark():
        lake = lakescope.index(tmp_path / "lake", tmp_path / "lake.idx")
    for when, name in enumerate(names[3:]):
        write_rows(tmp_path / "lake" / f"{name}.csv", "n,o", [(1, 2)], when)
    lake.update()
    for rows in (2, 3):
        for name in names:
            write_rows(tmp_path / "lake" / f"{name}.csv", "n,o", [(1, 2)] * rows, 10 * rows)
        lake.update()
    for name in names:
        assert [each.rows for each in lake.history(f"{name}.csv")] == [1, 2, 3], name
        assert [each["name"] for each in lake.profile(f"{name}.csv", version=1).columns] == ["n", "o"]
    assert len(lake._index.manifest.segments) == 1
    assert list(lake.verify(deep=True)) == []


def test_on_the_command_line(lake: Lake) -> None:
    def run(*arguments: str) -> str:
        result = CliRunner().invoke(app, list(arguments))
        assert result.exit_code == 0, result.output
        return result.stdout

    assert "extra" in run("history", lake.path, "t.csv")
    assert len(json.loads(run("history", lake.path, "t.csv", "--format", "json"))) == 3
    assert "no longer a key" in run("drift", lake.path, "t.csv", "--since", "1")
    assert "nothing drifted" in run("drift", lake.path)
    assert "note" in run("profile", lake.path, "t.csv", "--at", "1")
    assert "nothing has changed" in run("update", lake.path, "--retry")
    run("compact", lake.path, "--keep-history", "1")
    assert len(lakescope.open(lake.path).history("t.csv")) == 2


# --- updates that look closer -----------------------------------------------------------------------------------------


def test_a_file_that_was_touched_is_not_scanned_again(lake: Lake, tmp_path: Path) -> None:
    path = tmp_path / "lake" / "t.csv"
    os.utime(path, (1.7e9, 1.7e9))
    assert lake.update().nothing
    data = path.read_bytes()
    path.write_bytes(data[:-3] + b"0\n" + data[-1:])
    os.utime(path, (1.7e9 + 1, 1.7e9 + 1))
    assert path.stat().st_size == len(data)
    assert lake.update().changed == ("t.csv",)


def test_what_could_not_be_read_is_tried_again_if_asked(lake: Lake, tmp_path: Path) -> None:
    broken = tmp_path / "lake" / "b.parquet"
    broken.write_bytes(b"PAR1 no")
    lake.update()
    assert lake.update().nothing
    assert lake.update(retry=True).changed == ("b.parquet",)
    assert lake.info()["errors"] == 1


# --- distances --------------------------------------------------------------------------------------------------------


def profile(values: list[Any], *, numeric: bool) -> dict[str, Any]:
    """The fields of a profile that distances need, exactly."""
    counts: dict[str, int] = {}
    for value in values:
        counts[str(value)] = counts.get(str(value), 0) + 1
    top = sorted(counts.items(), key=lambda item: -item[1])[:10]
    quantiles = None
    if numeric:
        from lakescope.sketches.quantiles import RankedItems

        items = np.sort(np.array(values, float))
        inner = RankedItems(items, np.arange(1, items.size + 1)).quantiles([i / 20 for i in range(1, 20)])
        quantiles = [float(items[0]), *inner, float(items[-1])]
    return {
        **{"rows": len(values), "nulls": 0, "quantiles": quantiles, "quantile_error": 0.0, "top_error": 0},
        **{"top": [{"value": value, "count": count} for value, count in top]},
        **{"distinct": len(counts), "distinct_exact": True},
    }


def true_distance(one: list[Any], other: list[Any], *, numeric: bool) -> float:
    points = sorted({*one, *other})
    if numeric:
        shares = [[sum(v <= x for v in values) / len(values) for x in points] for values in (one, other)]
        return max(abs(a - b) for a, b in zip(*shares, strict=True))
    return sum(abs(one.count(x) / len(one) - other.count(x) / len(other)) for x in points) / 2


@settings(deadline=None, max_examples=60)
@given(st.data(), st.booleans())
def test_the_true_distance_lies_in_its_interval(data: st.DataObject, numeric: bool) -> None:
    numbers = st.lists(st.integers(0, data.draw(st.sampled_from([3, 12, 1000]))), min_size=1, max_size=80)
    one, other = data.draw(numbers), data.draw(numbers)
    found = distance(profile(one, numeric=numeric), profile(other, numeric=numeric))
    assert isinstance(found, DriftDistance)
    truth = true_distance(one, other, numeric=numeric)
    assert found.low - 1e-9 <= truth <= found.high + 1e-9
    assert found.low <= found.value <= found.high


def test_equal_versions_are_at_no_distance() -> None:
    same = profile(list(range(100)), numeric=True)
    found = distance(same, same)
    assert found is not None
    assert found.low == found.value == 0
    assert distance(profile(["a"], numeric=False), profile(["b"], numeric=False)) == DriftDistance(
        "total variation", 1, 1, 1
    )
