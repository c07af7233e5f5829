"""Collections of values, whoever made them, as Arrow arrays in pieces of bounded size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import pyarrow as pa

from lakescope.errors import BadRequest
from lakescope.values.typed import text_bytes

#: Bounds of a piece: values, and bytes of text.
_VALUES = 65536
_BYTES = 64 * 1024 * 1024

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
    """An array of the values; as text if they mix types that Arrow does not."""
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        return pa.array([_text(value) for value in values], pa.string())


def _text(value: Any) -> str | None:
    if value is None or value != value:  # NaN and NaT differ from themselves
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
