"""Frames in memory, whoever made them, as record batches."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from lakescope.errors import BadRequest
from lakescope.values.arrays import column_of

#: Name of the column when a bare array or series is passed.
VALUE = "value"


def as_batches(obj: Any) -> Iterator[Any]:
    """Record batches of a table in memory; at least one, so that a frame without rows shows its columns.

    Takes pyarrow, pandas, polars and DuckDB objects, anything that speaks Arrow's C interface, a list of dictionaries
    and a dictionary of lists.
    """
    reader = _reader(obj)
    empty = True
    for batch in reader:
        empty = False
        yield batch
    if empty:
        from lakescope.sources.arrow_batches import empty_batch

        yield empty_batch(reader.schema)


def _reader(obj: Any) -> Any:
    """A reader with a schema."""
    if isinstance(obj, pa.RecordBatchReader):
        return obj
    if isinstance(obj, pa.RecordBatch):
        return pa.RecordBatchReader.from_batches(obj.schema, [obj])
    if isinstance(obj, pa.Table):
        return obj.to_reader()
    if hasattr(obj, "scanner") and hasattr(obj, "schema"):  # a pyarrow Dataset
        return obj.scanner(use_threads=False).to_reader()
    if type(obj).__module__.split(".")[0] == "polars" and hasattr(obj, "collect"):
        obj = obj.collect()
    if type(obj).__module__.split(".")[0] == "pandas" and hasattr(obj, "columns"):
        return _from_pandas(obj)
    if isinstance(obj, Mapping):
        return _from_columns(obj)
    if isinstance(obj, Sequence) and not isinstance(obj, str | bytes):
        return _from_rows(obj)
    if hasattr(obj, "__arrow_c_stream__"):
        return _from_stream(obj)
    if hasattr(obj, "__arrow_c_array__"):
        return _from_array(obj)
    if hasattr(obj, "to_reader"):  # a pyarrow Scanner
        return obj.to_reader()
    raise _refusal(obj)


def _refusal(obj: Any) -> BadRequest:
    kind = f"{type(obj).__module__}.{type(obj).__qualname__}".removeprefix("builtins.")
    hint = "pass a pyarrow, pandas, polars or DuckDB frame, a list of dictionaries or a dictionary of lists"
    if isinstance(obj, str | os.PathLike):
        hint = f"{os.fspath(obj)!r} is not a table in memory; {hint}"
    return BadRequest(f"cannot read a table from an object of type {kind}", hint=hint)


def _from_stream(obj: Any) -> Any:
    try:
        return pa.RecordBatchReader.from_stream(obj)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        # A stream of plain values, such as a series.
        return pa.table({_name_of(obj): pa.chunked_array(obj)}).to_reader()


def _from_array(obj: Any) -> Any:
    array = pa.array(obj)
    if pa.types.is_struct(array.type):
        return _reader(pa.RecordBatch.from_struct_array(array))
    return pa.table({_name_of(obj): array}).to_reader()


def _name_of(obj: Any) -> str:
    name = getattr(obj, "name", None)
    return name if isinstance(name, str) and name else VALUE


def _from_pandas(frame: Any) -> Any:
    """A pandas frame; an object column that mixes types is taken as text."""
    if not frame.columns.is_unique or not all(isinstance(name, str) for name in frame.columns):
        frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
    try:
        return pa.Table.from_pandas(frame, preserve_index=None).to_reader()
    except (pa.ArrowInvalid, pa.ArrowTypeError, ValueError):
        arrays = [column_of(frame.iloc[:, place].tolist()) for place in range(frame.shape[1])]
        return pa.Table.from_arrays(arrays, names=list(frame.columns)).to_reader()


def _from_columns(columns: Mapping[Any, Any]) -> Any:
    arrays: dict[str, Any] = {}
    for name, values in columns.items():
        if isinstance(values, str | bytes | Mapping) or not hasattr(values, "__len__"):
            raise BadRequest(
                f"column {name!r} is a {type(values).__name__}, not a list of values",
                hint="pass a dictionary that maps column names to lists of equal length",
            )
        arrays[str(name)] = column_of(values)
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name!r}: {length}" for name, length in lengths.items())
        raise BadRequest(
            f"the columns differ in length ({listed})", hint="every column needs as many values as the others"
        )
    return pa.table(arrays).to_reader()


def _from_rows(rows: Sequence[Any]) -> Any:
    if not all(isinstance(row, Mapping) for row in rows):
        stranger = next(row for row in rows if not isinstance(row, Mapping))
        raise BadRequest(
            f"a list of rows must hold dictionaries, not {type(stranger).__name__}",
            hint='write [{"name": "Ada", "age": 36}, ...]',
        )
    names = list(dict.fromkeys(name for row in rows for name in row))
    return pa.table({str(name): column_of([row.get(name) for row in rows]) for name in names}).to_reader()
