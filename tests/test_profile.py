"""Profiles equal a plain computation, whatever the batches, the order and the partitioning."""

from __future__ import annotations

import math
import random
import statistics
from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.cells import text_column
from lakescope.profile.column import ColumnState
from lakescope.profile.summary import BENFORD, summarise
from lakescope.profile.types import data_class, infer_type
from lakescope.profile.view import column_view
from lakescope.values.canonical import Kind, canonical
from lakescope.values.cells import understand
from lakescope.values.moments import moment_text


def state_of(cells: list[str | None], batches: int = 1) -> ColumnState:
    state = ColumnState(0)
    size = max(1, -(-len(cells) // batches))
    for at in range(0, len(cells), size):
        state.update(understand(text_column(cells[at : at + size])))
    return state


def profile_of(cells: list[str | None], batches: int = 1) -> dict[str, Any]:
    return summarise("t", "c", state_of(cells, batches), len(cells))


def shape(text: str) -> str:
    if len(text) > 32:
        return "…"
    return "".join(
        ("A" if char.isupper() else "a") if char.isalpha() else ("9" if char.isdigit() else char) for char in text
    )


cells = st.one_of(
    st.none(),
    st.sampled_from(["", "NA", "true", "00501", "2021-03-04", "2021-03-04 05:06:07", "05:06", "x", "é", "Ab 9"]),
    st.integers(-(10**6), 10**6).map(str),
    st.decimals(-1000, 1000, places=2).map(str),
    st.text("abcXYZ019 -é中", max_size=40),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(cells, max_size=120), st.integers(1, 5))
def test_counts_equal_a_plain_computation(column: list[str | None], batches: int) -> None:
    found = profile_of(column, batches)
    values = [canonical(cell) for cell in column if cell is not None]
    written = [cell.strip() for cell in column if cell is not None and canonical(cell).kind is not Kind.NULL]
    filled = [value for value in values if value.kind is not Kind.NULL]
    assert found["rows"] == len(column)
    assert found["nulls"] == len(column) - len(filled)
    assert found["empty"] == sum(cell is not None and not cell.strip() for cell in column)
    counts = Counter(value.text for value in filled)
    assert found["distinct_exact"]
    assert found["distinct"] == found["distinct_low"] == found["distinct_high"] == len(counts)
    top = sorted(counts.values(), reverse=True)[:10]
    assert [entry["count"] for entry in found["top"]] == top
    assert all(counts[entry["value"]] == entry["count"] for entry in found["top"])
    shapes = Counter(map(shape, written))
    assert [entry["count"] for entry in found["patterns"]] == sorted(shapes.values(), reverse=True)[:10]
    assert all(shapes[entry["value"]] == entry["count"] for entry in found["patterns"])
    if written:
        lengths = sorted(map(len, written))
        assert found["length_min"] == lengths[0]
        assert found["length_max"] == lengths[-1]
        assert found["length_mean"] == pytest.approx(statistics.mean(lengths))
        assert found["length_median"] == statistics.median(lengths)
    assert found["kinds"] == {kind.name.lower(): n for kind, n in Counter(v.kind for v in filled).items()}
    if found["type"] == "text" and counts:
        assert found["minimum"] == min(counts)
        assert found["maximum"] == max(counts)
    key = len(column) > 0 and len(counts) == len(column)
    assert found["key"] == ("yes" if key else "no")


numbers = st.one_of(st.integers(-(10**9), 10**9).map(float), st.floats(-1e6, 1e6).map(lambda x: round(x, 3)))


@settings(max_examples=150, deadline=None)
@given(st.lists(numbers, min_size=1, max_size=200), st.integers(1, 5))
def test_numbers_equal_a_plain_computation(values: list[float], batches: int) -> None:
    found = profile_of([repr(value) for value in values], batches)
    assert found["type"] == "decimal"
    data = np.array(values)
    assert float(found["minimum"]) == data.min()
    assert float(found["maximum"]) == data.max()
    assert found["mean"] == pytest.approx(math.fsum(values) / len(values), rel=1e-9, abs=1e-6)
    if len(values) > 1:
        assert found["std"] == pytest.approx(data.std(ddof=1), rel=1e-9, abs=1e-6)
    quartiles = np.quantile(data, [0.25, 0.5, 0.75], method="averaged_inverted_cdf")
    assert found["quartiles"] == pytest.approx(quartiles.tolist())
    assert found["quantile_error"] == 0
    reach = 1.5 * (quartiles[2] - quartiles[0])
    outside = ((data < quartiles[0] - reach) | (data > quartiles[2] + reach)).sum()
    assert found["outliers"] == outside
    assert sum(bin_["count"] for bin_ in found["histogram"]) == len(values)
    for bin_ in found["histogram"][:-1]:
        assert bin_["count"] == ((data >= bin_["low"]) & (data < bin_["high"])).sum()
    assert found["zeros"] == (data == 0).sum()
    assert found["negatives"] == (data < 0).sum()
    digits = Counter(repr(abs(v)).split("e")[0].replace(".", "").lstrip("0")[0] for v in values if v)
    if digits:
        total = sum(digits.values())
        assert found["first_digits"] == pytest.approx([digits[str(d)] / total for d in range(1, 10)])


@settings(max_examples=80, deadline=None)
@given(st.lists(cells, max_size=200), st.lists(st.integers(0, 200), max_size=4), st.randoms(use_true_random=False))
def test_order_and_partitioning_do_not_matter(column: list[str | None], cuts: list[int], chance: random.Random) -> None:
    whole = profile_of(column)
    shuffled = column.copy()
    chance.shuffle(shuffled)
    edges = [0, *sorted(min(cut, len(column)) for cut in cuts), len(column)]
    merged = ColumnState(0)
    for low, high in pairwise(edges):
        merged.merge(ColumnState.from_bytes(state_of(shuffled[low:high]).to_bytes()))
    parts = summarise("t", "c", merged, len(column))
    assert parts.keys() == whole.keys()
    for name, value in whole.items():
        if isinstance(value, float):
            assert parts[name] == pytest.approx(value, rel=1e-9, abs=1e-9), name
        elif name in ("quartiles", "quantiles", "histogram", "first_digits"):
            assert str(parts[name]) == str(value), name
        else:
            assert parts[name] == value, name
    assert merged.distinct.to_bytes() == state_of(column).distinct.to_bytes()


def test_deviation_far_from_zero_survives_merging() -> None:
    """Narrow values far from zero, as epoch milliseconds are, in many pieces."""
    column: list[str | None] = [str(10**12 + i * 7919 % 126) for i in range(4000)]
    merged = ColumnState(0)
    for low in range(0, 4000, 250):
        merged.merge(ColumnState.from_bytes(state_of(column[low : low + 250]).to_bytes()))
    exact = float(np.std([int(cell) - 10**12 for cell in column if cell], ddof=1))
    assert summarise("t", "c", merged, 4000)["std"] == pytest.approx(exact, rel=1e-9)


def test_saturated_columns_say_so() -> None:
    column: list[str | None] = [str(i * 7919 % 1_000_003) for i in range(30_000)]
    found = profile_of(column, 3)
    assert not found["distinct_exact"]
    assert found["distinct_low"] <= 30_000 <= found["distinct_high"]
    assert found["key"] == "likely"
    assert 0 < found["quantile_error"] < 0.01
    data = np.sort(np.array([float(cell) for cell in column if cell]))
    for quartile, share in zip(found["quartiles"], (0.25, 0.5, 0.75), strict=True):
        assert abs(np.searchsorted(data, quartile) / data.size - share) <= found["quantile_error"]
    repeated = profile_of([*column, column[0], column[0]], 3)
    assert repeated["key"] in ("no", "likely")


def test_a_column_that_is_known_to_repeat_a_value_is_no_likely_key() -> None:
    column: list[str | None] = [str(i * 7919 % 1_000_003) for i in range(30_000)]
    alone = column_view({**profile_of(column, 3), "undecodable": 0})
    assert (alone["key"], alone["unique"]) == ("likely", None)
    assert "likely key" in alone["alerts"]
    top = [{"value": "5", "count": 2}, {"value": "7", "count": 1}]
    repeated = column_view({**profile_of(column, 3), "undecodable": 0, "top": top})
    assert (repeated["key"], repeated["unique"]) == ("no", False)
    assert "likely key" not in repeated["alerts"]


def test_the_interval_of_a_count_just_beyond_the_exact_limit_is_one() -> None:
    for seed in range(40):
        state = ColumnState(0, "text", 64)
        state.update(understand(text_column([f"{seed}-{i}" for i in range(65)])))
        record = summarise("t", "c", state, 65)
        assert record["distinct_low"] <= record["distinct"] <= record["distinct_high"]


def test_the_smallest_limit_holds_in_any_order() -> None:
    """Pieces of one column may be of different widths; how exact the count is depends on them, not on their order."""
    wide, narrow = [f"a{i}" for i in range(80)], [f"b{i}" for i in range(10)]
    for first, second in ((wide, narrow), (narrow, wide)):
        limits = {id(wide): 100, id(narrow): 60}
        one = ColumnState(0, "text", limits[id(first)])
        one.update(understand(text_column(first)))
        one.meet("text", limits[id(second)])
        one.update(understand(text_column(second)))
        parts = [ColumnState(0, "text", limits[id(part)]) for part in (first, second)]
        for state, part in zip(parts, (first, second), strict=True):
            state.update(understand(text_column(part)))
        parts[0].merge(parts[1])
        for state in (one, parts[0]):
            assert state.values.limit == 60
            assert state.values.distinct is None
            assert state.values.used <= 60


@pytest.mark.parametrize(
    "order", [("null", "int64", "double"), ("double", "null", "int64"), ("int64", "double", "null")]
)
def test_the_type_of_a_source_does_not_depend_on_the_order_of_pieces(order: tuple[str, ...]) -> None:
    state = ColumnState(0, order[0])
    for kind in order[1:]:
        state.meet(kind, 8192)
    assert state.source_type == "double"


@pytest.mark.parametrize(
    ("seconds", "kind", "expected"),
    [
        (-43_200.0, "time", None),
        (129_600.0, "time", None),
        (86_399.9999999, "time", "23:59:59.999999"),
        (45_000.5, "time", "12:30:00.5"),
        (253_402_214_400.0, "date", "9999-12-31"),
        (631_139_040_000.0, "date", "21970-01-01"),
        (-377_705_116_800.0, "timestamp", "-9999-01-01T00:00:00"),
    ],
)
def test_moments_no_calendar_page_shows(seconds: float, kind: str, expected: str | None) -> None:
    assert moment_text(seconds, kind) == expected


def test_temporal_columns() -> None:
    dates = profile_of(["2021-01-01", "2021-01-03", "2021-01-02", None])
    assert (dates["type"], dates["minimum"], dates["maximum"]) == ("date", "2021-01-01", "2021-01-03")
    assert dates["quartiles"][1] == canonical("2021-01-02").number
    stamps = profile_of(["2021-01-01 10:00:00", "2021-01-01T10:00:00.25"])
    assert (stamps["type"], stamps["maximum"]) == ("timestamp", "2021-01-01T10:00:00.25")
    times = profile_of(["10:00", "9:30"])
    assert (times["type"], times["minimum"]) == ("time", "09:30:00")
    local = profile_of(["3/4/2021", "12/31/2020"])
    assert (local["type"], local["minimum"]) == ("date", None)


def test_empty_and_all_null_columns() -> None:
    nothing = profile_of([])
    assert (nothing["type"], nothing["rows"], nothing["distinct"], nothing["key"]) == ("null", 0, 0, "no")
    nulls = profile_of([None, "", "NA"])
    assert (nulls["type"], nulls["nulls"], nulls["distinct"], nulls["data_class"]) == ("null", 3, 0, "empty")


def test_infinities_are_counted_and_left_out() -> None:
    found = profile_of(["1", "2", "inf", "-inf"])
    assert (found["infinite"], found["minimum"], found["maximum"], found["mean"]) == (2, "1", "2", 1.5)


def test_benford() -> None:
    assert BENFORD[0] == pytest.approx(0.30103, abs=1e-5)
    assert sum(BENFORD) == pytest.approx(1)
    powers = profile_of([repr(1.07**i) for i in range(1000)])
    assert powers["benford"] is True
    uniform = profile_of([str(i) for i in range(100, 1000)])
    assert uniform["benford"] is False


def test_very_long_values() -> None:
    found = profile_of(["x" * 300, "y" * 5000, "z"])
    assert (found["length_max"], found["length_median"]) == (5000, 256.0)
    assert found["patterns"][0] == {"value": "…", "count": 2}
    assert len(found["maximum"]) <= 200


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ({Kind.INTEGER: 10}, "integer"),
        ({Kind.INTEGER: 9, Kind.DECIMAL: 1}, "decimal"),
        ({Kind.INTEGER: 99, Kind.CODE: 1}, "code"),
        ({Kind.INTEGER: 99, Kind.TEXT: 1}, "integer"),
        ({Kind.INTEGER: 9, Kind.TEXT: 1}, "text"),
        ({Kind.DATE: 9, Kind.TIMESTAMP: 1}, "timestamp"),
        ({Kind.TIME: 3}, "time"),
        ({Kind.BOOLEAN: 3}, "boolean"),
        ({}, "null"),
    ],
)
def test_types(kinds: dict[Kind, int], expected: str) -> None:
    assert infer_type({kind: kinds.get(kind, 0) for kind in Kind if kind is not Kind.NULL})[0] == expected


@pytest.mark.parametrize(
    ("kind", "distinct", "key", "length", "expected"),
    [
        ("integer", 1000, "yes", 4, "identifier"),
        ("integer", 5, "no", 1, "code"),
        ("decimal", 900, "no", 5, "quantity"),
        ("text", 2, "no", 3, "indicator"),
        ("text", 40, "no", 8, "code"),
        ("text", 900, "no", 80, "text"),
        ("date", 900, "no", 10, "date/time"),
    ],
)
def test_data_classes(kind: str, distinct: int, key: str, length: float, expected: str) -> None:
    assert data_class(kind, rows=1000, distinct=distinct, key=key, median_length=length) == expected
