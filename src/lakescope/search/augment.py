"""Joining what was found into the user's table: the table as it is, new columns beside it, and what each adds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from lakescope.search.answers import Added, Correlated
from lakescope.search.keyed import KeyedQuery, read_keyed
from lakescope.values.canonical import Kind

if TYPE_CHECKING:
    import pyarrow as pa

F64 = npt.NDArray[np.float64]
U64 = npt.NDArray[np.uint64]


def read_table(query: Any, key: Sequence[str]) -> tuple[pa.Table, U64, list[U64]]:
    """A table with plain types, and the hash of the key of each row, in both orders of its columns; 0 where none is."""
    import pyarrow as pa

    from lakescope.search.reading import batches_of
    from lakescope.sketches.correlation_kernels import pair_hash
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
            counted = np.bincount(each.kinds, each.counts, len(Kind)).astype(np.int64)
            kinds[name] = kinds.get(name, np.zeros(len(Kind), np.int64)) + counted
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
    joined = [np.concatenate([np.empty(0, np.uint64), *each]) for each in hashes]
    return pa.table(columns), joined[0], joined


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


def augmented(
    query: Any, key: Sequence[str], target: str, found: Sequence[Correlated], places: Sequence[str], aggregate: str
) -> tuple[pa.Table, list[Added]]:
    """The table with the columns that were found, each after a real join, and what each adds."""
    import pyarrow as pa

    table, _, orders = read_table(query, key)
    wanted = np.array([np.nan if value is None else value for value in table[target].to_pylist()], np.float64)
    added: list[Added] = []
    features: list[F64] = []
    explained = 0.0
    for each, place in zip(found, places, strict=True):
        theirs = read_keyed(place, each.key_columns, each.column, aggregate)
        values = max((_looked_up(theirs, hashes) for hashes in orders), key=lambda some: np.isfinite(some).sum())
        name = free_name(f"{Path(each.table).name.split('.')[0]}.{each.column}", table.column_names)
        table = table.append_column(name, pa.array([None if np.isnan(x) else x for x in values.tolist()], pa.float64()))
        features.append(values)
        now = _explained(wanted, features)
        filled = float(np.isfinite(values).mean()) if values.size else 0.0
        added.append(
            Added(
                *(name, each.table, each.column, each.key, aggregate, each.correlation, filled),
                *(now, max(0.0, now - explained)),
            )
        )
        explained = max(now, explained)
    return table, added


def _looked_up(theirs: KeyedQuery, hashes: U64) -> F64:
    """The number of each row's key; NaN where there is none."""
    if not theirs.size:
        return np.full(hashes.size, np.nan)
    at = np.minimum(np.searchsorted(theirs.hashes, hashes), theirs.size - 1)
    return np.where((theirs.hashes[at] == hashes) & (hashes > 0), theirs.values[at], np.nan)


def free_name(name: str, taken: Sequence[str]) -> str:
    """A name, with a number if it is taken."""
    number, free = 2, name
    while free in taken:
        free, number = f"{name}.{number}", number + 1
    return free


def _explained(target: F64, features: Sequence[F64]) -> float:
    """The share of a column's variance that others explain in a straight line; missing numbers count as the mean."""
    rows = np.isfinite(target)
    y = _scaled(target[rows])
    if y.size < 3 or y.min() == y.max():
        return 0.0
    columns = []
    for each in features:
        some = _scaled(each[rows])
        present = np.isfinite(some)
        middle = some[present].mean() if present.any() else 0.0
        columns.append(np.where(present, some, middle) - middle)
    x = np.column_stack([np.ones(y.size), *columns])
    scale = np.maximum(np.abs(x).max(axis=0), 1e-300)
    fitted = (x / scale) @ np.linalg.lstsq(x / scale, y, rcond=None)[0]
    return float(np.clip(1 - ((y - fitted) ** 2).sum() / ((y - y.mean()) ** 2).sum(), 0.0, 1.0))


def _scaled(numbers: F64) -> F64:
    """Numbers divided by the largest: squares of huge and of tiny ones are none."""
    largest = np.abs(numbers[np.isfinite(numbers)]).max(initial=0.0)
    return numbers / largest if largest else numbers
