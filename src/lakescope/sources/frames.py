"""Frames in memory, whoever made them, as record batches."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence, Sized
from typing import Any

import pyarrow as pa

from lakescope.errors import BadRequest, LakescopeError, SourceError
from lakescope.sources.io.files import reason_of
from lakescope.values.arrays import column_of, valid

#: Name of the column when a bare array or series is passed.
VALUE = "value"


def as_batches(obj: Any) -> Iterator[Any]:
    """Record batches of a table in memory; at least one, so that a frame without rows shows its columns.

    Takes pyarrow, pandas, polars and DuckDB objects, anything that speaks Arrow's C interface, a list of dictionaries
    and a dictionary of lists. What Arrow has no type for becomes the text that a CSV file would have of it; errors of
    whoever made the frame become ours.
    """
    try:
        reader = _reader(obj)
        empty = True
        for batch in reader:
            empty = False
            yield batch
        if empty:
            from lakescope.sources.formats.arrow_batches import empty_batch

            yield empty_batch(reader.schema)
    except LakescopeError:
        raise
    except Exception as error:  # a lazy frame whose query fails, a type that Arrow lacks: each in words of its own
        raise SourceError(
            f"the {_kind(obj)} cannot be read: {reason_of(error)}",
            hint="turn the columns it names into text or numbers first, or see that the query behind it works",
        ) from error


def _reader(obj: Any) -> Any:
    """A reader with a schema."""
    maker = type(obj).__module__.split(".")[0].lstrip("_")
    if isinstance(obj, pa.RecordBatchReader):
        return obj
    if isinstance(obj, pa.RecordBatch):
        return pa.RecordBatchReader.from_batches(obj.schema, [obj])
    if isinstance(obj, pa.Table):
        return obj.to_reader()
    if hasattr(obj, "scanner") and hasattr(obj, "schema"):  # a pyarrow Dataset
        return obj.scanner(use_threads=False).to_reader()
    if maker == "polars":
        return _from_polars(obj)
    if maker == "pandas" and (hasattr(obj, "columns") or hasattr(obj, "to_frame")):
        return _from_pandas(obj)
    if maker == "duckdb" and hasattr(obj, "project"):
        return _from_stream(_faithful(obj))
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
    hint = "pass a pyarrow, pandas, polars or DuckDB frame, a list of dictionaries or a dictionary of lists"
    if isinstance(obj, str | os.PathLike):
        hint = f"{os.fspath(obj)!r} is not a table in memory; {hint}"
    return BadRequest(f"cannot read a table from an object of type {_kind(obj)}", hint=hint)


def _kind(obj: Any) -> str:
    return f"{type(obj).__module__}.{type(obj).__qualname__}".removeprefix("builtins.")


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
    return valid(str(name)) if name is not None and name != "" else VALUE


def _from_polars(obj: Any) -> Any:
    """A frame or series of polars; its types that Arrow lacks become text."""
    if hasattr(obj, "collect"):
        obj = obj.collect()
    frame = obj.to_frame(_name_of(obj)) if hasattr(obj, "to_frame") else obj
    arrays = []
    for series in frame.get_columns():
        kind = str(series.dtype)
        if kind in ("Int128", "UInt128"):
            arrays.append(series.cast(str).to_arrow())
        elif kind == "Object":  # what Arrow would be given are addresses in memory
            arrays.append(_column(series.name, series.to_list()))
        else:
            arrays.append(series.to_arrow())
    return pa.Table.from_arrays(arrays, names=[valid(name) for name in frame.columns]).to_reader()


def _from_pandas(obj: Any) -> Any:
    """A frame or series of pandas, with its index unless that only counts; what Arrow does not take becomes text."""
    frame = obj if hasattr(obj, "columns") else obj.to_frame(_name_of(obj))
    names = [valid(str(name)) for name in frame.columns]
    columns = [frame.iloc[:, place] for place in range(frame.shape[1])]
    if type(frame.index).__name__ != "RangeIndex":
        for level, name in enumerate(frame.index.names):
            free = name is not None and str(name) not in names
            names.append(valid(str(name)) if free else f"__index_level_{level}__")
            columns.append(frame.index.get_level_values(level).to_series())
    arrays = [_from_series(name, series) for name, series in zip(names, columns, strict=True)]
    return pa.Table.from_arrays(arrays, names=names).to_reader()


def _from_series(name: str, series: Any) -> Any:
    kind = str(series.dtype)
    if kind == "object":
        return _column(name, series.to_numpy())
    try:
        if not kind.startswith("period"):  # Arrow would be given how many there are since 1970
            return pa.Array.from_pandas(series)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        pass
    return _column(name, series.tolist())


def _faithful(relation: Any) -> Any:
    """A relation of DuckDB; its types that lose something in Arrow are written by DuckDB."""
    from lakescope.sources.databases.duckdb_file import selected

    kinds = [str(kind) for kind in relation.types]
    wanted = [selected(name, kind) for name, kind in zip(relation.columns, kinds, strict=True)]
    if not any(each.startswith("CAST") for each in wanted):
        return relation
    return relation.project(", ".join(wanted))


def _column(name: str, values: Any) -> Any:
    """An array of the values of a column; an error names the column."""
    try:
        return column_of(values)
    except BadRequest as error:
        raise BadRequest(f"column {name!r}: {error.message}", hint=error.hint) from error


def _from_columns(columns: Mapping[Any, Any]) -> Any:
    for name, values in columns.items():
        if isinstance(values, str | bytes | Mapping) or not isinstance(values, Sized) or _is_scalar(values):
            raise BadRequest(
                f"column {name!r} is a {type(values).__name__}, not a list of values",
                hint="pass a dictionary that maps column names to lists of equal length",
            )
    names = [valid(str(name)) for name in columns]
    arrays = [_column(name, values) for name, values in zip(names, columns.values(), strict=True)]
    if len({len(array) for array in arrays}) > 1:
        listed = ", ".join(f"{name!r}: {len(array)}" for name, array in zip(names, arrays, strict=True))
        raise BadRequest(
            f"the columns differ in length ({listed})", hint="every column needs as many values as the others"
        )
    return pa.Table.from_arrays(arrays, names=names).to_reader()


def _is_scalar(values: Any) -> bool:
    """Whether an array of numpy has no length."""
    return getattr(values, "shape", None) == ()


def _from_rows(rows: Sequence[Any]) -> Any:
    if not all(isinstance(row, Mapping) for row in rows):
        stranger = next(row for row in rows if not isinstance(row, Mapping))
        raise BadRequest(
            f"a list of rows must hold dictionaries, not {type(stranger).__name__}",
            hint='write [{"name": "Ada", "age": 36}, ...]',
        )
    names = list(dict.fromkeys(name for row in rows for name in row))
    shown = [valid(str(name)) for name in names]
    arrays = [_column(text, [row.get(name) for row in rows]) for name, text in zip(names, shown, strict=True)]
    return pa.Table.from_arrays(arrays, names=shown).to_reader()
