"""Frames of odd cells, types and names: each is read as the CSV of the same text is, or refused in words of ours."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lakescope
from lakescope.errors import BadRequest, LakescopeError, SourceError
from lakescope.sources.model import MISSING, Batch
from lakescope.tables.reading import batches_of
from lakescope.values.cells import understand

HUGE = 10**30


class Nameless:
    """A class that says nothing of its values but where they lie."""


class Broken:
    def __str__(self) -> str:
        raise RuntimeError("no text today")


def texts(frame: Any) -> dict[str, list[str | None]]:
    """The cells of a frame as text."""
    found: dict[str, list[str | None]] = {}
    for batch in batches_of(frame):
        for column in batch.columns:
            bounds = zip(column.starts.tolist(), column.ends.tolist(), strict=True)
            cells = [None if end == MISSING else column.data[start:end].tobytes().decode() for start, end in bounds]
            found.setdefault(column.name, []).extend(cells)
    return found


def understood(batches: list[Batch]) -> list[bytes | None]:
    """The canonical values of the only column, row by row."""
    values: list[bytes | None] = []
    for batch in batches:
        cells = understand(batch.columns[0], batch.fallback)
        values += [None if place < 0 else bytes(cells.canonical_at(place)) for place in cells.places.tolist()]
    return values


SHOWN: list[tuple[Callable[[], Any], dict[str, list[str | None]]]] = [
    (lambda: {"a": [HUGE, 1]}, {"a": [str(HUGE), "1"]}),
    (lambda: [{"a": HUGE}, {"a": None}], {"a": [str(HUGE), None]}),
    (lambda: {"a": [10**5000]}, {"a": ["1" + "0" * 5000]}),
    (lambda: pd.DataFrame({"a": [HUGE, 1]}), {"a": [str(HUGE), "1"]}),
    (lambda: pd.DataFrame({"a": [2**64 - 1, -1]}, dtype=object), {"a": [str(2**64 - 1), "-1"]}),
    (
        lambda: pd.DataFrame({"a": [1, 2]}, index=pd.Index([HUGE, 1], name="k")),
        {"a": ["1", "2"], "k": [str(HUGE), "1"]},
    ),
    (lambda: pd.DataFrame({"a": pd.Categorical([HUGE, 1])}), {"a": [str(HUGE), "1"]}),
    (lambda: pd.Series([HUGE, 2], name="s"), {"s": [str(HUGE), "2"]}),
    (lambda: pl.DataFrame({"a": pl.Series([HUGE], dtype=pl.Int128)}), {"a": [str(HUGE)]}),
    (
        lambda: duckdb.sql(f"SELECT {2**128 - 1}::UHUGEINT AS a, '101'::BIT AS b"),
        {"a": [str(2**128 - 1)], "b": ["101"]},
    ),
    (lambda: {"a": [{"é": HUGE}, [1, None], "s"]}, {"a": [f'{{"é":{HUGE}}}', "[1,null]", "s"]}),
    (
        lambda: {"a": [Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"), Decimal("-Infinity"), Decimal("1.5")]},
        {"a": [None, None, "Infinity", "-Infinity", "1.5"]},
    ),
    (lambda: {"a": ["\ud800", "x"]}, {"a": ["\\ud800", "x"]}),
    (lambda: pd.DataFrame({"\ud800": ["\udce9"]}), {"\\ud800": ["\\udce9"]}),
    (lambda: pd.DataFrame({"a": [1 + 2j]}), {"a": ["(1+2j)"]}),
    (lambda: pd.DataFrame({"a": np.array([1.5], np.longdouble)}), {"a": ["1.5"]}),
    (lambda: pd.DataFrame({"a": pd.arrays.SparseArray([1, 0])}), {"a": ["1", "0"]}),
    (lambda: pd.DataFrame({"a": pd.PeriodIndex(["2020", None], freq="Y")}), {"a": ["2020", None]}),
    (lambda: {"a": [dt.date(2020, 1, 2), 1]}, {"a": ["2020-01-02", "1"]}),
    (lambda: {"a": np.array([[1, 2], [3, 4]])}, {"a": ["[1,2]", "[3,4]"]}),
    (lambda: {"a": [dt.timedelta.max, dt.timedelta(1)]}, {"a": [str(dt.timedelta.max), "1 day, 0:00:00"]}),
    (lambda: {"a": [b"\xff", bytearray(b"x"), "t"]}, {"a": ["0xff", "x", "t"]}),
    (
        lambda: {"a": [uuid.UUID(int=5), Fraction(1, 3), Path("/x"), True, pd.NA]},
        {"a": [str(uuid.UUID(int=5)), "1/3", "/x", "true", None]},
    ),
    (lambda: {1: [1], "1": [2], None: [3]}, {"1": ["1"], "1_2": ["2"], "None": ["3"]}),
    (lambda: pd.DataFrame([[1, 2]], columns=["a", "a"]), {"a": ["1"], "a_2": ["2"]}),
    (
        lambda: pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("a", 1), ("b", 2)])),
        {"('a', 1)": ["1"], "('b', 2)": ["2"]},
    ),
]


@pytest.mark.parametrize(("make", "wanted"), SHOWN, ids=[str(number) for number in range(len(SHOWN))])
def test_cells_are_the_text_a_person_would_write(make: Callable[[], Any], wanted: dict[str, list[str | None]]) -> None:
    assert texts(make()) == wanted


REFUSED: list[tuple[Callable[[], Any], type[LakescopeError], str]] = [
    (lambda: {"a": [1, Nameless()]}, BadRequest, r"column 'a': row 1 holds a Nameless that has no text"),
    (lambda: pd.DataFrame({"a": [Broken(), 1]}), BadRequest, "column 'a': row 0 holds a Broken .*: no text"),
    (lambda: pl.DataFrame({"a": pl.Series([Nameless()], dtype=pl.Object)}), BadRequest, "column 'a': row 0"),
    (lambda: {"a": np.array(5)}, BadRequest, "column 'a' is a ndarray, not a list of values"),
    (lambda: pl.LazyFrame({"a": [1]}).select("b"), SourceError, r"LazyFrame cannot be read: .*\"b\""),
    (lambda: duckdb.sql("SELECT error('boom') AS a FROM range(5)"), SourceError, "boom"),
]


@pytest.mark.parametrize(("make", "kind", "said"), REFUSED, ids=[str(number) for number in range(len(REFUSED))])
def test_what_has_no_text_is_refused_by_column_row_and_type(
    make: Callable[[], Any], kind: type[LakescopeError], said: str
) -> None:
    with pytest.raises(kind, match=said) as caught:
        texts(make())
    assert caught.value.hint


CELLS = st.one_of(
    st.none(),
    st.integers(),
    st.integers(min_value=2**62, max_value=2**70),
    st.integers(min_value=10**40).map(lambda number: -number),
    st.decimals(),
    st.floats(),
    st.text(),
    st.characters(categories=["Cs"]),
    st.binary(),
    st.booleans(),
    st.complex_numbers(),
    st.dates(),
    st.datetimes(timezones=st.none() | st.just(dt.UTC)),
    st.times(),
    st.timedeltas(),
    st.uuids(),
    st.fractions(),
    st.lists(st.integers() | st.text() | st.none(), max_size=3),
    st.dictionaries(st.text(max_size=3), st.integers() | st.characters(categories=["Cs"]), max_size=2),
    st.just(pd.NaT),
    st.just(np.float32(0.5)),
)
NAMES = st.one_of(st.text(max_size=5), st.characters(categories=["Cs"]), st.integers(), st.none(), st.tuples(st.text()))


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(NAMES, st.lists(CELLS, min_size=3, max_size=3), min_size=1, max_size=3))
def test_any_cells_under_any_names_are_read(columns: dict[Any, list[Any]]) -> None:
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    frame = pd.DataFrame(list(zip(*columns.values(), strict=True)), dtype=object)
    frame.columns = pd.Index(list(columns), dtype=object, tupleize_cols=False)
    for given_frame in (columns, rows, frame):
        found = texts(given_frame)
        assert len(found) >= 1
        assert all(len(cells) == 3 for cells in found.values())


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers() | st.integers(10**18, 10**60) | st.decimals(allow_nan=False, places=3), min_size=1))
def test_numbers_are_understood_as_in_a_csv_file_of_their_text(values: list[int | Decimal]) -> None:
    written = understood(list(batches_of({"name": [str(value) for value in values]})))
    for frame in ({"name": values}, pd.DataFrame({"name": pd.Series(values, dtype=object)})):
        assert understood(list(batches_of(frame))) == written


@pytest.mark.parametrize("make", [make for make, _ in SHOWN], ids=[str(number) for number in range(len(SHOWN))])
def test_questions_about_two_frames_take_any_cells(make: Callable[[], Any]) -> None:
    other = pa.table({"k": ["x", "y", "Anna B"], "v": [1, 2, 3]})
    assert lakescope.dependencies(make()) is not None
    assert lakescope.autojoin(make(), other) is not None
    assert lakescope.autojoin(other, make()) is not None
