"""A whole table with plain types, and the hash of the key of each of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from lakescope.array_types import U64
from lakescope.values.canonical import Kind

if TYPE_CHECKING:
    import pyarrow as pa

    from lakescope.values.cells import Cells


def read_table(query: Any, key: Sequence[str]) -> tuple[pa.Table, list[U64]]:
    """A table with plain types, and the hash of each row's key, for each order of its columns; 0 where none is."""
    import pyarrow as pa

    from lakescope.sketches.correlation_kernels import pair_hash
    from lakescope.tables.reading import batches_of
    from lakescope.values.cells import understand

    texts: dict[str, list[str | None]] = {}
    kinds: dict[str, npt.NDArray[np.int64]] = {}
    hashes: list[list[U64]] = [[] for _ in key]
    rows = 0
    for batch in batches_of(query):
        cells = {column.name: understand(column, batch.fallback) for column in batch.columns}
        for name, each in cells.items():
            written = [
                each.written[start:end].tobytes().decode("utf-8", "replace")
                for start, end in zip(each.wstarts.tolist(), each.wends.tolist(), strict=True)
            ]
            column = texts.setdefault(name, [None] * rows)
            column += [written[place] if place >= 0 else None for place in each.places.tolist()]
            kinds[name] = kinds.get(name, 0) + kind_counts(each)
        rows += batch.rows
        for column in texts.values():
            column += [None] * (rows - len(column))
        per_row = [row_hashes(cells[name]) for name in key]
        if len(key) == 1:
            hashes[0].append(per_row[0])
        else:
            for into, (a, b) in zip(hashes, (per_row, per_row[::-1]), strict=True):
                both = (a > 0) & (b > 0)
                mixed = [int(pair_hash(x, y)) if ok else 0 for x, y, ok in zip(a, b, both, strict=True)]
                into.append(np.array(mixed, np.uint64))
    columns = {name: typed(column, kinds[name]) for name, column in texts.items()}
    return pa.table(columns), [np.concatenate([np.empty(0, np.uint64), *each]) for each in hashes]


def kind_counts(cells: Cells) -> npt.NDArray[np.int64]:
    """How many rows of a column hold values of each kind."""
    return np.bincount(cells.kinds, cells.counts, len(Kind)).astype(np.int64)


def row_hashes(cells: Any) -> U64:
    """The hash of the value of each row; 0 where there is none."""
    if not cells.hashes.size:
        return np.zeros(cells.places.size, np.uint64)
    found = np.maximum(cells.hashes, np.uint64(1))[np.maximum(cells.places, 0)]
    return np.where(cells.places >= 0, found, np.uint64(0))


def typed(texts: list[str | None], kinds: npt.NDArray[np.int64]) -> pa.Array:
    """A column of texts as numbers if all of them are."""
    import pyarrow as pa

    numbers = int(kinds[Kind.INTEGER] + kinds[Kind.DECIMAL])
    if numbers and numbers == int(kinds.sum()):
        try:
            if not kinds[Kind.DECIMAL]:
                return pa.array([None if text is None else int(text) for text in texts], pa.int64())
            return pa.array([None if text is None else float(text) for text in texts], pa.float64())
        except (ValueError, OverflowError):
            pass
    return pa.array(texts, pa.string())


def free_name(name: str, taken: Sequence[str]) -> str:
    """A name, with a number if it is taken."""
    number, free = 2, name
    while free in taken:
        free, number = f"{name}.{number}", number + 1
    return free
