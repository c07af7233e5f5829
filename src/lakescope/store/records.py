"""Rows of a catalog as dictionaries: what Arrow's ``to_pylist`` gives, column by column.

Arrow makes an object for each value, and for each of the values within it; the profile of a table of thirty columns
takes it five milliseconds, here one. Lists are unpacked once for all rows, and numbers come as numpy's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from typing import Any, overload

import numpy as np
import pyarrow as pa
from pyarrow import types

Record = dict[str, Any]


class Rows(Sequence[Record]):
    """The rows of a table as dictionaries, made when they are looked at: of many rows a face shows a page."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __len__(self) -> int:
        return int(self._table.num_rows)

    @overload
    def __getitem__(self, place: int) -> Record: ...
    @overload
    def __getitem__(self, place: slice) -> list[Record]: ...
    def __getitem__(self, place: int | slice) -> Record | list[Record]:
        if isinstance(place, int):
            return self[place : place + 1 or None][0]
        first, end, step = place.indices(len(self))
        return records_of(self._table.slice(first, max(0, end - first)))[::step]


def records_of(table: pa.Table) -> list[Record]:
    """The rows of a table; maps become dictionaries."""
    names = table.column_names
    columns = [list(chain.from_iterable(_values(chunk) for chunk in column.chunks)) for column in table.columns]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _values(array: pa.Array) -> Sequence[Any]:
    kind = array.type
    if types.is_list(kind):
        return list(_lists(array))
    if types.is_map(kind):
        return list(_maps(array))
    if types.is_struct(kind) and not array.null_count:
        names = [kind.field(number).name for number in range(kind.num_fields)]
        children = [_values(child) for child in array.flatten()]
        return [dict(zip(names, row, strict=True)) for row in zip(*children, strict=True)]
    if (types.is_floating(kind) or types.is_integer(kind)) and not array.null_count:
        # Not to_numpy: it imports pandas where there is one.
        numbers: list[Any] = np.from_dlpack(array).tolist()
        return numbers
    values: list[Any] = array.to_pylist()
    return values


def _lists(array: pa.ListArray) -> Iterator[Sequence[Any] | None]:
    flat, at = _values(array.flatten()), 0
    for length in array.value_lengths().to_pylist():
        if length is None:
            yield None
        else:
            yield flat[at : at + length]
            at += length


def _maps(array: pa.MapArray) -> Iterator[Record | None]:
    ends = array.offsets.to_pylist()
    # Of a slice, offsets are the slice's, keys and items those of the whole array.
    first, length = ends[0], ends[-1] - ends[0]
    keys, items = (_values(each.slice(first, length)) for each in (array.keys, array.items))
    for there, (start, end) in zip(array.is_valid().to_pylist(), pairwise(ends), strict=True):
        some = slice(start - first, end - first)
        yield dict(zip(keys[some], items[some], strict=True)) if there else None
