"""Collections of values, whoever made them, as Arrow arrays in pieces of bounded size."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sized
from decimal import Decimal
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from lakescope.errors import BadRequest
from lakescope.values.typed import text_bytes

#: Bounds of a piece: values, and bytes of text.
_VALUES = 65536
_BYTES = 64 * 1024 * 1024

#: Bits of an integer that Python writes without a limit having to be raised.
_LONG = 10_000

_HINT = "pass an array, a series, a list or a frame of one column"


def arrays_of(values: Any) -> Iterator[pa.Array]:
    """Pieces of a collection of values: an array, series, iterable, or a frame of one column."""
    for array in _arrays(values):
        for start in range(0, len(array), _VALUES):
            yield from _bounded(array.slice(start, _VALUES))


def _bounded(array: pa.Array) -> Iterator[pa.Array]:
    if len(array) > 1 and text_bytes(array) > _BYTES:
        half = len(array) // 2
        yield from _bounded(array.slice(0, half))
        yield from _bounded(array.slice(half))
    else:
        yield array


def _arrays(values: Any) -> Iterator[pa.Array]:
    if isinstance(values, pa.Array):
        yield values
    elif isinstance(values, pa.ChunkedArray):
        yield from values.chunks
    elif hasattr(values, "column_names") or (hasattr(values, "columns") and hasattr(values, "shape")):
        yield from _arrays(_only_column(values))
    elif isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise BadRequest(f"a {type(values).__name__} is no collection of values", hint=_HINT)
    elif hasattr(values, "__arrow_c_stream__"):
        yield from pa.chunked_array(values).chunks
    elif hasattr(values, "__len__"):
        yield _flat(column_of(values))
    else:
        stream = iter(values)
        while piece := list(islice(stream, _VALUES)):
            yield column_of(piece)


def _flat(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _only_column(frame: Any) -> Any:
    names = [str(name) for name in getattr(frame, "column_names", None) or list(frame.columns)]
    if len(names) != 1:
        raise BadRequest(f"the frame has {len(names)} columns, not one: {', '.join(names[:5])}", hint=_HINT)
    if isinstance(frame, pa.Table | pa.RecordBatch):
        return frame.column(0)
    return frame.iloc[:, 0] if hasattr(frame, "iloc") else frame[names[0]]


def column_of(values: Any) -> pa.Array:
    """An array of the values; as text if they mix types, or are of some, that Arrow does not take as they are."""
    try:
        array = pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return texts_of(values)
    # Arrow takes the number beside a date for one, counted from 1970.
    return texts_of(values) if pt.is_temporal(array.type) and _mixes_numbers(values) else array


def _mixes_numbers(values: Any) -> bool:
    """Whether values, some of which are dates or times, are numbers as well; what is missing may be NaN."""
    if str(getattr(values, "dtype", "object")) != "object":
        return False
    return any(isinstance(value, int | float) and value == value for value in values)


def texts_of(values: Iterable[Any]) -> pa.Array:
    """The values as text, each as it would be written into a CSV file; one that has no text is refused with its row."""
    texts = []
    for row, value in enumerate(values):
        try:
            texts.append(_text(value))
        except Exception as error:  # whatever a class of somebody else raises
            raise BadRequest(
                f"row {row} holds a {type(value).__name__} that has no text: {error}",
                hint="turn these values into text or numbers first",
            ) from error
    return pa.array(texts, pa.string())


def _text(value: Any) -> str | None:
    if value is None or _is_missing(value):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes | bytearray):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, int):
        return _digits(value)
    if isinstance(value, str):
        return valid(value)
    if isinstance(value, Mapping | list | tuple) or _is_array(value):
        return json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":"))
    if not any(vars(kind).keys() & {"__str__", "__repr__"} for kind in type(value).__mro__[:-1]):
        raise TypeError("its class has no __str__")
    return valid(str(value))


def valid(text: str) -> str:
    r"""Text that Arrow takes: halves of surrogate pairs become escapes (``\ud800``)."""
    return text.encode("utf-8", "backslashreplace").decode()


def _is_missing(value: Any) -> bool:
    """Whether a value stands for none: NaN and NaT differ from themselves."""
    if isinstance(value, Decimal):  # one that signals does not let itself be compared
        return value.is_nan()
    if isinstance(value, Sized) and not isinstance(value, str | bytes):
        return False
    return type(value).__name__ == "NAType" or bool(value != value)


def _is_array(value: Any) -> bool:
    return hasattr(value, "tolist") and bool(getattr(value, "shape", ()))


def _digits(number: int) -> str:
    """An integer of any length; Python refuses to write long ones by itself."""
    return str(number) if number.bit_length() < _LONG else str(Decimal(number))


def _plain(value: Any) -> Any:
    """A nested value as JSON has it."""
    if _is_array(value):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {valid(str(key)): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, bool | float) or (isinstance(value, int) and value.bit_length() < _LONG):
        return value
    return _text(value)
