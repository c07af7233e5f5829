"""Joining what was found into the user's table: the table as it is, new columns beside it, and what each adds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lakescope.array_types import F64, U64
from lakescope.tables.keyed import KeyedQuery, read_keyed
from lakescope.tables.typed import free_name, read_table

if TYPE_CHECKING:
    import pyarrow as pa

    from lakescope.engines.correlations.answers import Correlated


@dataclass(frozen=True, slots=True)
class Added:
    """A column that was joined in.

    ``filled`` is the share of the table's rows that got a number, ``explains`` the share of the target's variance that
    the columns added so far explain together in a straight line, ``adds`` what this one added to it.
    """

    name: str
    table: str
    column: str
    key: str
    aggregate: str
    correlation: float
    filled: float
    explains: float
    adds: float


def augmented(
    query: Any, key: Sequence[str], target: str, found: Sequence[Correlated], places: Sequence[str], aggregate: str
) -> tuple[pa.Table, list[Added]]:
    """The table with the columns that were found, each after a real join, and what each adds."""
    import pyarrow as pa

    table, orders = read_table(query, key)
    wanted = np.array([np.nan if value is None else value for value in table[target].to_pylist()], np.float64)
    added: list[Added] = []
    features: list[F64] = []
    explained = 0.0
    for each, place in zip(found, places, strict=True):
        theirs = read_keyed(place, each.key_columns, each.column, aggregate)
        values = max((_numbers_by_key(theirs, hashes) for hashes in orders), key=lambda some: np.isfinite(some).sum())
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


def _numbers_by_key(theirs: KeyedQuery, hashes: U64) -> F64:
    """The number of each row's key; NaN where there is none."""
    if not theirs.size:
        return np.full(hashes.size, np.nan)
    at = np.minimum(np.searchsorted(theirs.hashes, hashes), theirs.size - 1)
    return np.where((theirs.hashes[at] == hashes) & (hashes > 0), theirs.values[at], np.nan)


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
