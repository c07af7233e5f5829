"""Typed cells as text: what a person would have written into a CSV file for the same value.

A typed source and a text source must meet in one canonical value, so an Arrow column is turned into text cells first
and understood by the same code as a CSV cell. Text columns are not copied: a cell points into Arrow's own buffer, and a
dictionary-encoded cell into the dictionary. Everything common is vectorised; only nested values are put together in
Python. Neither ``pa.array`` nor ``pa.scalar`` is used, nor are Python values handed to ``pyarrow.compute``: each of
them imports pandas.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lakescope.values.text import MISSING

_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
#: From here on Arrow writes doubles with an exponent, though people do not.
_PLAIN_FROM, _EXACT_TO = 1e10, float(2**53)
_INTERVAL = np.dtype([("months", "<i4"), ("days", "<i4"), ("nanoseconds", "<i8")])
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
_UUID_PLACES = np.array([i for i in range(36) if i not in (8, 13, 18, 23)])
_TOO_LONG = "more than 2 GB of text in one cell"


class CellSlices(NamedTuple):
    """Cells as slices of one buffer, as in :class:`TextColumn`."""

    data: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int32]
    ends: npt.NDArray[np.int32]


def cells(array: Any) -> CellSlices:
    """Text cells of one array."""
    kind = array.type
    if pt.is_null(kind):
        return _all_missing(len(array))
    if pt.is_dictionary(kind):
        return _looked_up(cells(array.dictionary), array.indices)
    if pt.is_run_end_encoded(kind):
        return cells(pc.run_end_decode(array))
    if isinstance(kind, pa.BaseExtensionType):
        return _extension_cells(array)
    if pt.is_nested(kind):
        return from_texts([None if text is None else text.encode("utf-8", "replace") for text in _json_texts(array)])
    return _slices(_plain_text(array))


def integers(array: Any) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]] | None:
    """The numbers of an array of integers and which of them are there; None for anything else."""
    kind = array.type
    if not pt.is_integer(kind) or pt.is_uint64(kind):
        return None
    return _fixed(array, kind.to_pandas_dtype()).astype(np.int64), _valid(array)


def from_texts(texts: Sequence[bytes | None]) -> CellSlices:
    """Cells from byte strings, where None is missing."""
    return _slices(_string_array(texts))


def text_bytes(array: Any) -> int:
    """About how many bytes the text cells of an array take; never counts what a slice leaves out."""
    kind = array.type
    if pt.is_dictionary(kind) or pt.is_run_end_encoded(kind):
        return 16 * len(array)
    if pt.is_string_view(kind) or pt.is_binary_view(kind):
        views = np.frombuffer(array.buffers()[1], np.int32)
        return int(views[4 * array.offset : 4 * (array.offset + len(array)) : 4].sum(dtype=np.int64))
    if pt.is_struct(kind):
        return sum(text_bytes(child) for child in array.flatten()) + len(array)
    if _is_list(kind):
        return text_bytes(array.flatten()) + len(array)
    return int(array.nbytes)


def _is_list(kind: Any) -> bool:
    tests = (pt.is_list, pt.is_large_list, pt.is_fixed_size_list, pt.is_list_view, pt.is_large_list_view)
    return any(test(kind) for test in tests)


def _all_missing(rows: int) -> CellSlices:
    return CellSlices(np.empty(0, np.uint8), np.zeros(rows, np.int32), np.full(rows, MISSING, np.int32))


def _valid(array: Any) -> npt.NDArray[np.bool_]:
    """Which rows hold a value."""
    bitmap = array.buffers()[0]
    if bitmap is None or array.null_count == 0:
        return np.ones(len(array), np.bool_)
    first = array.offset // 8
    bits = np.frombuffer(bitmap, np.uint8)[first : (array.offset + len(array) + 7) // 8]
    return np.unpackbits(bits, bitorder="little")[array.offset - 8 * first :][: len(array)].astype(np.bool_)


def _string_array(texts: Sequence[bytes | None]) -> Any:
    """A large string array; what is not UTF-8 is let through."""
    lengths = np.fromiter((-1 if text is None else len(text) for text in texts), np.int64, len(texts))
    offsets = np.zeros(len(texts) + 1, np.int64)
    np.cumsum(np.maximum(lengths, 0), out=offsets[1:])
    bitmap = pa.py_buffer(np.packbits(lengths >= 0, bitorder="little"))
    data = pa.py_buffer(b"".join(text for text in texts if text is not None))
    return pa.Array.from_buffers(pa.large_string(), len(texts), [bitmap, pa.py_buffer(offsets), data])


def _fixed(array: Any, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """The values of a fixed-width array, whatever stands where it is null."""
    kind = np.dtype(dtype)
    buffer = array.buffers()[1]
    if buffer is None:
        return np.zeros(len(array), kind)
    return np.frombuffer(buffer, kind, count=len(array), offset=array.offset * kind.itemsize)


def _slices(array: Any) -> CellSlices:
    """Cells of a string or binary array, pointing into its own buffer."""
    rows = len(array)
    wide = pt.is_large_string(array.type) or pt.is_large_binary(array.type)
    _, offset_buffer, data_buffer = array.buffers()
    if rows == 0 or offset_buffer is None:
        return _all_missing(rows)
    width = np.dtype(np.int64 if wide else np.int32)
    offsets = np.frombuffer(offset_buffer, width, count=rows + 1, offset=array.offset * width.itemsize)
    first, last = int(offsets[0]), int(offsets[-1])
    if last - first > np.iinfo(np.int32).max:
        raise ValueError(_TOO_LONG)
    data = np.frombuffer(data_buffer, np.uint8)[first:last] if last > first else np.empty(0, np.uint8)
    places = (offsets - first).astype(np.int32)
    ends = places[1:] if array.null_count == 0 else np.where(_valid(array), places[1:], np.int32(MISSING))
    return CellSlices(data, places[:-1], ends)


def _looked_up(values: CellSlices, indices: Any) -> CellSlices:
    """Cells that point into the cells of a dictionary."""
    if len(values.starts) == 0:
        return _all_missing(len(indices))
    valid = _valid(indices)
    places = np.where(valid, _fixed(indices, indices.type.to_pandas_dtype()), 0).astype(np.int64)
    ends = values.ends[places]
    ends[~valid] = MISSING
    return CellSlices(values.data, values.starts[places], ends)


def _extension_cells(array: Any) -> CellSlices:
    name = array.type.extension_name
    if name == "arrow.uuid":
        return _slices(_uuid_text(array.storage))
    if name == "arrow.bool8":
        return _slices(pc.cast(pc.cast(array.storage, pa.bool_()), pa.string()))
    return cells(array.storage)


def _plain_text(array: Any) -> Any:
    """A string (or binary, where bytes are not UTF-8) array with the text of every value of a simple type."""
    kind = array.type
    if pt.is_string(kind) or pt.is_large_string(kind):
        return array
    if pt.is_string_view(kind):
        return pc.cast(array, pa.large_string())
    if pt.is_floating(kind):
        return _float_text(array)
    if pt.is_decimal(kind):
        return _decimal_text(array)
    if pt.is_timestamp(kind):
        return _timestamp_text(array)
    if pt.is_time(kind):
        return _in_range(_trimmed(pc.cast(array, pa.string()), kind.unit), array)
    if pt.is_date(kind):
        return _in_range(pc.cast(array, pa.string()), array)
    if pt.is_duration(kind):
        return _duration_text(array)
    if pt.is_interval(kind):
        return _interval_text(array)
    if pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_binary_view(kind) or pt.is_fixed_size_binary(kind):
        return _binary_text(array)
    return pc.cast(array, pa.string())


def _float_text(array: Any) -> Any:
    if pt.is_float16(array.type):
        return _half_text(array)
    text = pc.cast(array, pa.string())
    nan = pc.is_nan(array)
    if pc.any(nan).as_py():
        text = pc.if_else(nan, _constant("NaN"), text)
    return _without_exponent(text, array) if pt.is_float64(array.type) else text


def _without_exponent(text: Any, array: Any) -> Any:
    """Write doubles between 1e10 and 2**53 in plain digits, as people and other programs do."""
    size = pc.abs(array)
    large = pc.and_(pc.greater_equal(size, _constant(_PLAIN_FROM)), pc.less(size, _constant(_EXACT_TO)))
    if not pc.any(large).as_py():
        return text
    whole = pc.and_(large, pc.equal(array, pc.trunc(array)))
    digits = pc.cast(pc.cast(pc.if_else(whole, array, _constant(0.0)), pa.int64()), pa.string())
    text = pc.if_else(whole, digits, text)
    broken = pc.and_not(large, whole)
    if not pc.any(broken).as_py():
        return text
    # Few numbers are that large and have decimals: epoch milliseconds with a fraction, for one.
    written = _string_array([repr(value).encode() for value in pc.filter(array, broken).to_pylist()])
    return pc.replace_with_mask(pc.cast(text, pa.large_string()), broken, written)


def _half_text(array: Any) -> Any:
    """Shortest text of half floats: there are only 65536 of them, so the distinct ones are written once."""
    bits, places = np.unique(_fixed(array, np.uint16), return_inverse=True)
    texts = [_half(value).encode() for value in bits.view(np.float16)]
    return _string_array([texts[place] if valid else None for place, valid in zip(places, _valid(array), strict=True)])


def _half(value: np.float16) -> str:
    if np.isnan(value):
        return "NaN"
    return str(value) if np.isinf(value) else np.format_float_positional(value, unique=True, trim="-")


def _decimal_text(array: Any) -> Any:
    text = pc.cast(array, pa.string())
    if not pc.any(pc.match_substring(text, "E")).as_py():
        return text
    # Arrow writes small fractions and negative scales with an exponent; the unscaled integer is always plain.
    kind = array.type
    unscaled = pa.Array.from_buffers(_at_scale_zero(kind), len(array), array.buffers(), offset=array.offset)
    return _scaled(pc.cast(unscaled, pa.string()), kind.scale)


def _at_scale_zero(kind: Any) -> Any:
    makers = {32: "decimal32", 64: "decimal64", 128: "decimal128", 256: "decimal256"}
    return getattr(pa, makers[kind.bit_width])(kind.precision, 0)


def _scaled(digits: Any, scale: int) -> Any:
    """Text of ``integer / 10**scale`` from the text of the integer."""
    if scale <= 0:
        return pc.if_else(pc.equal(digits, _constant("0")), digits, _joined(digits, "0" * -scale))
    negative = pc.starts_with(digits, "-")
    bare = pc.utf8_lpad(pc.utf8_ltrim(digits, "-"), scale + 1, "0")
    whole, fraction = pc.utf8_slice_codeunits(bare, 0, -scale), pc.utf8_slice_codeunits(bare, -scale)
    pointed = _joined(whole, ".", fraction)
    return pc.if_else(negative, _joined("-", pointed), pointed)


def _joined(*parts: Any) -> Any:
    """Element-wise concatenation; plain strings among the parts are the same for every element."""
    elements = (_constant(part) if isinstance(part, str) else part for part in parts)
    return pc.binary_join_element_wise(*elements, _constant(""))


@lru_cache(maxsize=256)
def _constant(value: str | float) -> Any:
    """An Arrow scalar."""
    if isinstance(value, str):
        return _string_array([value.encode()]).cast(pa.string())[0]
    return pa.Array.from_buffers(pa.float64(), 1, [None, pa.py_buffer(np.array([value]))])[0]


def _timestamp_text(array: Any) -> Any:
    kind = array.type
    naive = pc.cast(array, pa.timestamp(kind.unit))
    text = _trimmed(pc.cast(naive, pa.string()), kind.unit)
    return _in_range(text if kind.tz is None else _joined(text, "Z"), naive)


def _trimmed(text: Any, unit: str) -> Any:
    """Without the zeros that end a fraction of a second."""
    return text if unit == "s" else pc.utf8_rtrim(pc.utf8_rtrim(text, "0"), ".")


def _in_range(text: Any, array: Any) -> Any:
    """Text of moments; those no calendar reaches (often a stand-in for infinity) are written as their number."""
    beyond = pc.starts_with(text, "<value out of range")
    if not pc.any(beyond).as_py():
        return text
    numbers = pc.cast(array.view(pa.int32() if array.type.bit_width == 32 else pa.int64()), pa.string())
    return pc.if_else(beyond, numbers, text)


def _duration_text(array: Any) -> Any:
    unit = array.type.unit
    seconds = _scaled(pc.cast(array.view(pa.int64()), pa.string()), _DIGITS[unit])
    return _joined("PT", _trimmed(seconds, unit), "S")


def _interval_text(array: Any) -> Any:
    """Calendar intervals as ISO 8601 durations."""
    rows = zip(_fixed(array, _INTERVAL), _valid(array), strict=True)
    return _string_array([_interval(row).encode() if valid else None for row, valid in rows])


def _interval(row: Any) -> str:
    months, days, nanoseconds = int(row["months"]), int(row["days"]), int(row["nanoseconds"])
    date = (f"{months}M" if months else "") + (f"{days}D" if days else "")
    sign = "-" if nanoseconds < 0 else ""
    whole, fraction = divmod(abs(nanoseconds), 10**9)
    seconds = f"{sign}{whole}.{fraction:09d}".rstrip("0").rstrip(".")
    return f"P{date}T{seconds}S" if nanoseconds or not date else f"P{date}"


def _binary_text(array: Any) -> Any:
    """Bytes as the text they are; those that are no UTF-8 as hexadecimal digits."""
    if pt.is_binary_view(array.type) or pt.is_fixed_size_binary(array.type):
        array = pc.cast(array, pa.large_binary())
    try:
        return pc.cast(array, pa.large_string() if pt.is_large_binary(array.type) else pa.string())
    except pa.ArrowInvalid:
        return _string_array([text_or_hex(value) for value in array.to_pylist()])


def text_or_hex(value: bytes | None) -> bytes | None:
    """Bytes that are UTF-8 as they are, others as hexadecimal digits."""
    if value is None:
        return None
    try:
        value.decode()
    except UnicodeDecodeError:
        return b"0x" + value.hex().encode()
    return value


def _uuid_text(storage: Any) -> Any:
    raw = _fixed(storage, np.dtype((np.void, 16))).view(np.uint8).reshape(-1, 16)
    nibbles = np.stack([raw >> 4, raw & 15], axis=2).reshape(-1, 32)
    text = np.full((len(storage), 36), ord("-"), np.uint8)
    text[:, _UUID_PLACES] = _HEX[nibbles]
    offsets = pa.py_buffer(np.arange(0, 36 * (len(storage) + 1), 36, dtype=np.int64))
    validity = pa.py_buffer(np.packbits(_valid(storage), bitorder="little"))
    return pa.Array.from_buffers(pa.large_string(), len(storage), [validity, offsets, pa.py_buffer(text.reshape(-1))])


def _json_texts(array: Any) -> list[str | None]:
    """Every value of an array as compact JSON; null is None."""
    kind = array.type
    if pt.is_null(kind):
        return [None] * len(array)
    if pt.is_run_end_encoded(kind):
        return _json_texts(pc.run_end_decode(array))
    if pt.is_dictionary(kind):
        return _json_texts(array.dictionary_decode())
    if isinstance(kind, pa.BaseExtensionType) and pt.is_nested(kind.storage_type):
        return _json_texts(array.storage)
    if pt.is_struct(kind):
        return _json_structs(array)
    if pt.is_map(kind):
        return _json_maps(array)
    if _is_list(kind):
        return _json_lists(array)
    if pt.is_union(kind):
        return _json_unions(array)
    return _json_leaves(array)


def _json_leaves(array: Any) -> list[str | None]:
    kind = array.type
    bare = pt.is_integer(kind) or pt.is_floating(kind) or pt.is_decimal(kind) or pt.is_boolean(kind)
    found = cells(array)
    raw = found.data.tobytes()
    texts: list[str | None] = []
    for start, end in zip(found.starts.tolist(), found.ends.tolist(), strict=True):
        if end == MISSING:
            texts.append(None)
            continue
        text = raw[start:end].decode("utf-8", "backslashreplace")
        quoted = not bare or text in ("NaN", "inf", "-inf")
        texts.append(json.dumps(text, ensure_ascii=False) if quoted else text)
    return texts


def _json_structs(array: Any) -> list[str | None]:
    keys = [json.dumps(field.name, ensure_ascii=False) for field in array.type]
    children = [_json_texts(child) for child in array.flatten()]
    texts: list[str | None] = []
    for row, valid in enumerate(_valid(array).tolist()):
        members = ",".join(f"{key}:{_or_null(child[row])}" for key, child in zip(keys, children, strict=True))
        texts.append(f"{{{members}}}" if valid else None)
    return texts


def _json_lists(array: Any) -> list[str | None]:
    items = _json_texts(array.flatten())
    texts: list[str | None] = []
    place = 0
    for length in pc.list_value_length(array).to_pylist():
        if length is None:
            texts.append(None)
            continue
        texts.append(f"[{','.join(map(_or_null, items[place : place + length]))}]")
        place += length
    return texts


def _json_maps(array: Any) -> list[str | None]:
    keys = [text if text and text[0] == '"' else json.dumps(text) for text in _json_texts(array.keys)]
    items = _json_texts(array.items)
    texts: list[str | None] = []
    offsets = array.offsets.to_pylist()
    for row, valid in enumerate(_valid(array).tolist()):
        entries = range(offsets[row], offsets[row + 1]) if valid else range(0)
        members = ",".join(f"{keys[entry]}:{_or_null(items[entry])}" for entry in entries)
        texts.append(f"{{{members}}}" if valid else None)
    return texts


def _json_unions(array: Any) -> list[str | None]:
    children = {code: _json_texts(array.field(place)) for place, code in enumerate(array.type.type_codes)}
    # Not array.type_codes and array.offsets: they forget where a slice starts.
    count, start = len(array), array.offset
    codes = np.frombuffer(array.buffers()[1], np.int8, count, start).tolist() if count else []
    rows: Iterable[int] = range(count)
    if array.type.mode == "dense" and count:
        rows = np.frombuffer(array.buffers()[2], np.int32, count, 4 * start).tolist()
    return [children[code][row] for code, row in zip(codes, rows, strict=True)]


def _or_null(text: str | None) -> str:
    return "null" if text is None else text
