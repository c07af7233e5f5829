"""Typed cells as text, against a plain Python reading of the same values."""

from __future__ import annotations

import datetime as dt
import json
import math
import subprocess
import sys
import uuid
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakescope.sources.formats.arrow_batches import MAX_BYTES, bounded, text_batches
from lakescope.sources.formats.flatten import text_columns
from lakescope.sources.model import Problem, TextColumn
from lakescope.values.typed import text_bytes

_EPOCH = dt.datetime(1970, 1, 1)


def _texts(column: TextColumn) -> list[str | None]:
    cells = zip(column.starts.tolist(), column.ends.tolist(), strict=True)
    return [None if end < 0 else column.data[start:end].tobytes().decode() for start, end in cells]


def _columns(array: Any, name: str = "c") -> dict[str, list[str | None]]:
    batch = pa.RecordBatch.from_arrays([array], names=[name])
    return {column.name: _texts(column) for column in text_columns(batch)}


def _check(values: list[Any], kind: pa.DataType, oracle: Any) -> None:
    """Whole arrays, slices that do not start at a byte of the bitmap, and dictionaries all give the oracle's text."""
    expected = [None if value is None else oracle(value) for value in values]
    array = pa.array(values, kind)
    assert _columns(array)["c"] == expected
    assert _columns(pa.concat_arrays([array, array]).slice(1, len(values)))["c"] == (expected * 2)[1 : len(values) + 1]


def _lists(values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.none() | values, max_size=20)


@pytest.mark.parametrize("kind", [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint64()], ids=str)
@given(data=st.data())
@settings(max_examples=30, deadline=None)
def test_integers_are_plain_digits(kind: pa.DataType, data: st.DataObject) -> None:
    signed = pa.types.is_signed_integer(kind)
    low, high = (-(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1) if signed else (0, 2**kind.bit_width - 1)
    _check(data.draw(_lists(st.integers(low, high))), kind, str)


def _shortest_digits(text: str) -> str:
    return text.lower().split("e")[0].lstrip("-").replace(".", "").strip("0")


@pytest.mark.parametrize(
    ("kind", "width"), [(pa.float64(), np.float64), (pa.float32(), np.float32), (pa.float16(), np.float16)]
)
@given(data=st.data())
@settings(max_examples=100, deadline=None)
def test_floats_are_the_shortest_text_of_their_width(kind: pa.DataType, width: Any, data: st.DataObject) -> None:
    bits = np.dtype(width).itemsize * 8
    values = data.draw(_lists(st.floats(width=bits)))
    array = pa.array([None if v is None else width(v) for v in values], kind)
    for value, text in zip(values, _columns(array)["c"], strict=True):
        if value is None:
            assert text is None
        elif math.isnan(value):
            assert text == "NaN"
        else:
            assert text is not None
            assert width(text) == width(value)
            assert _shortest_digits(text) == _shortest_digits(str(width(value)))


def test_floats_look_as_people_write_them() -> None:
    doubles = [0.1, 1.0, -2.5, 1617181723123.0, 1617181723123.25, 1e9, math.inf, -math.inf, 9007199254740991.0]
    written = ["0.1", "1", "-2.5", "1617181723123", "1617181723123.25", "1000000000", "inf", "-inf", "9007199254740991"]
    assert _columns(pa.array(doubles))["c"] == written
    assert _columns(pa.array([0.1, 16777216.0], pa.float32()))["c"] == ["0.1", "16777216"]
    assert _columns(pa.array(np.array([0.1, 1.5], np.float16)))["c"] == ["0.1", "1.5"]


@pytest.mark.parametrize("kind", [pa.decimal128(30, 9), pa.decimal256(60, 20), pa.decimal128(10, 0)], ids=str)
@given(data=st.data())
@settings(max_examples=50, deadline=None)
def test_decimals_have_all_digits_and_no_exponent(kind: Any, data: st.DataObject) -> None:
    numbers = st.integers(-(10**9), 10**9).map(lambda n: Decimal(n).scaleb(-kind.scale))
    _check(data.draw(_lists(numbers)), kind, lambda value: format(value.quantize(Decimal(1).scaleb(-kind.scale)), "f"))


def test_decimals_of_negative_scale_and_of_few_bits() -> None:
    assert _columns(pa.array([Decimal(1200), Decimal(-100), Decimal(0), None], pa.decimal128(20, -2)))["c"] == [
        *("1200", "-100", "0", None),
    ]
    assert _columns(pa.array([Decimal("0.00001")], pa.decimal32(9, 8)))["c"] == ["0.00001000"]
    assert _columns(pa.array([Decimal("-0.0000001")], pa.decimal64(18, 7)))["c"] == ["-0.0000001"]


@given(_lists(st.booleans()))
@settings(deadline=None)
def test_booleans(values: list[bool | None]) -> None:
    _check(values, pa.bool_(), lambda value: "true" if value else "false")


@given(_lists(st.dates()))
@settings(deadline=None)
def test_dates(values: list[dt.date | None]) -> None:
    _check(values, pa.date32(), dt.date.isoformat)
    _check(values, pa.date64(), dt.date.isoformat)


def _moment(value: dt.datetime) -> str:
    text = value.isoformat(" ")
    return text.rstrip("0") if "." in text else text


@given(_lists(st.datetimes()))
@settings(deadline=None)
def test_timestamps(values: list[dt.datetime | None]) -> None:
    _check(values, pa.timestamp("us"), _moment)
    aware = [None if value is None else value.replace(tzinfo=dt.UTC) for value in values]
    _check(aware, pa.timestamp("us", "Europe/Paris"), lambda value: _moment(value.replace(tzinfo=None)) + "Z")


@pytest.mark.parametrize("unit", ["s", "ms", "ns"])
def test_timestamps_of_other_units(unit: str) -> None:
    per_second = {"s": 1, "ms": 10**3, "ns": 10**9}[unit]
    array = pa.array([0, per_second * 90, None], pa.int64()).view(pa.timestamp(unit))
    assert _columns(array)["c"] == ["1970-01-01 00:00:00", "1970-01-01 00:01:30", None]


def test_moments_no_calendar_reaches_are_numbers() -> None:
    far = pa.array([2**62, 0], pa.int64())
    assert _columns(far.view(pa.timestamp("us")))["c"] == [str(2**62), "1970-01-01 00:00:00"]
    assert _columns(far.view(pa.timestamp("us", "UTC")))["c"] == [str(2**62), "1970-01-01 00:00:00Z"]
    assert _columns(pa.array([2**31 - 1], pa.int32()).view(pa.date32()))["c"] == [str(2**31 - 1)]


@given(_lists(st.times()))
@settings(deadline=None)
def test_times(values: list[dt.time | None]) -> None:
    _check(values, pa.time64("us"), lambda value: _moment(dt.datetime.combine(_EPOCH, value))[11:])


def _duration(value: dt.timedelta) -> str:
    number = Decimal(value // dt.timedelta(microseconds=1)).scaleb(-6)
    text = format(number, "f")
    return f"PT{text.rstrip('0').rstrip('.') if '.' in text else text}S"


@given(_lists(st.timedeltas(dt.timedelta(days=-9999), dt.timedelta(days=9999))))
@settings(deadline=None)
def test_durations(values: list[dt.timedelta | None]) -> None:
    _check(values, pa.duration("us"), _duration)


def test_intervals() -> None:
    array = pa.array([(14, 3, 1_500_000_000), (0, 0, 0), (1, 0, 0), None], pa.month_day_nano_interval())
    assert _columns(array)["c"] == ["P14M3DT1.5S", "PT0S", "P1M", None]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
@given(values=_lists(st.text()))
@settings(deadline=None)
def test_strings_are_passed_on(kind: pa.DataType, values: list[str | None]) -> None:
    _check(values, kind, str)


def test_strings_are_not_copied() -> None:
    array = pa.array(["ab", None, "", "cde"] * 10).slice(3, 9)
    column = text_columns(pa.RecordBatch.from_arrays([array], names=["c"]))[0]
    address = array.buffers()[2].address
    assert address <= column.data.ctypes.data < address + array.buffers()[2].size
    assert _texts(column) == array.to_pylist()


def _text_or_hex(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return "0x" + value.hex()


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary_view()], ids=str)
@given(values=_lists(st.binary(max_size=6) | st.text(max_size=3).map(str.encode)))
@settings(deadline=None)
def test_binary_is_text_or_hexadecimal(kind: pa.DataType, values: list[bytes | None]) -> None:
    _check(values, kind, _text_or_hex)


@given(_lists(st.binary(min_size=3, max_size=3)))
@settings(deadline=None)
def test_fixed_size_binary(values: list[bytes | None]) -> None:
    _check(values, pa.binary(3), _text_or_hex)


@given(_lists(st.uuids()))
@settings(deadline=None)
def test_uuids(values: list[uuid.UUID | None]) -> None:
    storage = pa.array([None if value is None else value.bytes for value in values], pa.binary(16))
    assert _columns(pa.ExtensionArray.from_storage(pa.uuid(), storage))["c"] == [
        None if value is None else str(value) for value in values
    ]


@given(_lists(st.text(max_size=4)), st.integers(0, 5))
@settings(deadline=None)
def test_dictionaries_are_decoded(values: list[str | None], start: int) -> None:
    encoded = pa.array(values, pa.string()).dictionary_encode()
    assert _columns(encoded)["c"] == values
    assert _columns(encoded.slice(start))["c"] == values[start:]
    runs = pc.run_end_encode(pa.array(values, pa.string()))
    assert _columns(runs)["c"] == values


def test_dictionary_of_numbers_and_null_in_the_dictionary() -> None:
    array = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 2], pa.int8()), pa.array([1.5, None, 2.0]))
    assert _columns(array)["c"] == ["1.5", None, None, "2"]
    column = text_columns(pa.RecordBatch.from_arrays([array], names=["c"]))[0]
    assert column.source_type == "double"


def test_null_type_is_all_missing() -> None:
    assert _columns(pa.nulls(3))["c"] == [None] * 3


def test_structs_are_flattened_by_path() -> None:
    rows = [{"a": 1, "b": {"c": "x"}}, None, {"a": None, "b": None}]
    array = pa.array(rows, pa.struct([("a", pa.int64()), ("b", pa.struct([("c", pa.string())]))]))
    assert _columns(array, "s") == {"s.a": ["1", None, None], "s.b.c": ["x", None, None]}
    assert _columns(array.slice(1), "s") == {"s.a": [None, None], "s.b.c": [None, None]}


def test_deep_structs_end_as_json() -> None:
    kind: pa.DataType = pa.int64()
    value: Any = 7
    for _ in range(12):
        kind, value = pa.struct([("x", kind)]), {"x": value}
    found = _columns(pa.array([value], kind), "x")
    assert list(found) == [".".join("x" * 8)]
    assert found[".".join("x" * 8)] == ['{"x":{"x":{"x":{"x":{"x":7}}}}}']


@pytest.mark.parametrize(
    "kind",
    [pa.list_(pa.int64()), pa.large_list(pa.int64()), pa.list_view(pa.int64()), pa.list_(pa.list_(pa.string()))],
    ids=str,
)
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_lists_are_compact_json(kind: Any, data: st.DataObject) -> None:
    leaf = st.text(max_size=3) if pa.types.is_list(kind.value_type) else st.integers(-9, 9)
    items = _lists(leaf) if pa.types.is_list(kind.value_type) else leaf
    values = data.draw(_lists(_lists(items)))
    _check(values, kind, lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def test_other_nested_types() -> None:
    pairs = pa.array([[("a", 1), ("b", None)], None, []], pa.map_(pa.string(), pa.int64()))
    assert _columns(pairs)["c"] == ['{"a":1,"b":null}', None, "{}"]
    assert _columns(pairs.slice(1))["c"] == [None, "{}"]
    numbered = pa.array([[(1, dt.date(2021, 1, 2))]], pa.map_(pa.int64(), pa.date32()))
    assert _columns(numbered)["c"] == ['{"1":"2021-01-02"}']
    fixed = pa.array([[1.5, math.nan], None], pa.list_(pa.float64(), 2))
    assert _columns(fixed)["c"] == ['[1.5,"NaN"]', None]
    inner = pa.array([[{"k": "ü", "n": None}]], pa.list_(pa.struct([("k", pa.string()), ("n", pa.bool_())])))
    assert _columns(inner)["c"] == ['[{"k":"ü","n":null}]']
    assert _columns(pa.array([{}], pa.struct([])))["c"] == ["{}"]


def test_unions() -> None:
    codes = pa.array([0, 1, 0], pa.int8())
    sparse = pa.UnionArray.from_sparse(codes, [pa.array([1, 2, 3]), pa.array(["a", "b", "c"])])
    dense = pa.UnionArray.from_dense(codes, pa.array([0, 0, 1], pa.int32()), [pa.array([1, 3]), pa.array(["b"])])
    for array in (sparse, dense):
        assert _columns(array)["c"] == ["1", '"b"', "3"]
        assert _columns(array.slice(1))["c"] == ['"b"', "3"]


def test_extension_types() -> None:
    bool8 = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0, None], pa.int8()))
    assert _columns(bool8)["c"] == ["true", "false", None]
    document = pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a":1}', None]))
    assert _columns(document)["c"] == ['{"a":1}', None]
    tensor = pa.fixed_shape_tensor(pa.int32(), [2])
    array = pa.ExtensionArray.from_storage(tensor, pa.array([[1, 2]], pa.list_(pa.int32(), 2)))
    assert _columns(array)["c"] == ["[1,2]"]


def test_nested_columns_are_told_once() -> None:
    table = pa.table({"a": [[1]] * 200_000, "b": ["x"] * 200_000, "c": [{"d": [1]}] * 200_000})
    told: list[Problem] = []
    batches = list(text_batches(table.to_batches(), table.schema, "t", told.append))
    assert sum(batch.rows for batch in batches) == 200_000
    assert [(problem.code, problem.table) for problem in told] == [("nested", "t"), ("nested", "t")]
    assert "'a'" in told[0].detail
    assert "'c.d'" in told[1].detail


def test_blank_and_repeated_names_are_made_unique_and_told() -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([1])] * 3, names=["a", "a", ""])
    told: list[Problem] = []
    (made,) = text_batches([batch], batch.schema, "t", told.append)
    assert [column.name for column in made.columns] == ["a", "a_2", "column_3"]
    assert [problem.code for problem in told] == ["renamed-columns"]


@pytest.mark.parametrize("kind", [pa.string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())], ids=str)
def test_batches_are_bounded_in_rows_and_bytes(kind: pa.DataType) -> None:
    texts = ["x" * 100, "y" * 100_000, "z"] * 300
    batch = pa.RecordBatch.from_arrays([pa.array(texts, pa.string()).cast(kind)], names=["c"])
    pieces = list(bounded(batch))
    assert pa.Table.from_batches(pieces)["c"].to_pylist() == texts
    for piece in pieces:
        assert text_bytes(piece.column(0)) <= MAX_BYTES or piece.num_rows == 1
    many = pa.RecordBatch.from_arrays([pa.array(range(200_000))], names=["c"])
    assert max(piece.num_rows for piece in bounded(many)) <= 65536


def test_a_wide_table_has_short_batches() -> None:
    wide = pa.RecordBatch.from_arrays([pa.nulls(5000, pa.int8())] * 2000, names=[str(i) for i in range(2000)])
    assert max(piece.num_rows for piece in bounded(wide)) <= 524


def test_invalid_text_in_nested_values_does_not_stop_the_table() -> None:
    raw = pa.array([b"\xff"], pa.binary()).view(pa.string())
    array = pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), raw)
    assert _columns(array)["c"] == ['["\\\\xff"]']


def test_pandas_is_not_imported() -> None:
    code = """
import sys
import numpy as np, pyarrow as pa
from lakescope.sources.formats.flatten import text_columns
def column(kind, values): return pa.Array.from_buffers(kind, 4, [None, pa.py_buffer(values)])
arrays = [
    column(pa.float64(), np.array([1.5, np.nan, 1e12, 1e12 + 0.5])),
    column(pa.timestamp("us", "UTC"), np.array([1, 2**62, 3, 4])),
    column(pa.duration("ms"), np.array([1, 2, 3, 4])),
    column(pa.decimal128(20, 9), np.array([1, 0, 2, 0, 3, 0, 4, 0])),
]
text_columns(pa.RecordBatch.from_arrays(arrays, names=list("abcd")))
sys.exit("pandas" in sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
