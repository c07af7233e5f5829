"""Small helpers that put numpy arrays together into Arrow tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakescope.demo.chance import Rng
from lakescope.demo.formats import CHUNK


def frame(**columns: Any) -> pa.Table:
    """A table from arrays; numpy strings become Arrow strings, days become dates."""
    return pa.table({name: _column(values) for name, values in columns.items()})


def _column(values: Any) -> Any:
    if isinstance(values, np.ndarray) and values.dtype.kind in "OU":
        return pa.array(values.tolist(), pa.string())
    return values if isinstance(values, pa.Array) else pa.array(values)


def holes(rng: Rng, values: Any, share: float) -> pa.Array:
    """The values with a random ``share`` of them missing."""
    array = _column(values)
    mask: npt.NDArray[np.bool_] = rng.random(len(array)) < share
    return _masked(array, mask)


def _masked(array: pa.Array, mask: npt.NDArray[np.bool_]) -> pa.Array:
    return array.take(pa.array(np.where(mask, 0, np.arange(len(array))), mask=mask))


def blank(values: Any, mask: npt.NDArray[np.bool_]) -> pa.Array:
    """The values with the marked ones missing."""
    return _masked(_column(values), mask)


def chunks(rows: int, size: int = CHUNK) -> Iterator[tuple[int, int]]:
    """(first row, number of rows) of the pieces a table of ``rows`` rows is written in."""
    for first in range(0, rows, size):
        yield first, min(size, rows - first)


def joined(*parts: Any) -> npt.NDArray[np.object_]:
    """Arrays and constants glued together as text, element by element."""
    length = next(len(part) for part in parts if isinstance(part, np.ndarray))
    columns = [part.tolist() if isinstance(part, np.ndarray) else [part] * length for part in parts]
    return np.array(["".join(map(str, row)) for row in zip(*columns, strict=True)], dtype=object)
