"""Functional dependencies by brute force, on small tables: the judge for what was planted, not a discovery engine.

The degree of X -> A is G3: the least number of rows to delete so that it holds. Nulls are read in three ways: all
nulls of a column equal (``equal``), every null a value of its own (``distinct``), rows with any null left out
(``skip``).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakescope.demo.tally import canonical

Side = tuple[str, ...]
#: Largest left side that is tried.
MAX_LHS = 3


class Relation:
    """A table under one reading of nulls, with the grouping of its rows by any set of columns."""

    def __init__(self, table: pa.Table, nulls: str = "equal") -> None:
        if nulls == "skip":
            table = table.drop_null()
        self.names: list[str] = table.column_names
        self.rows = table.num_rows
        self._groups: dict[Side, npt.NDArray[np.int64]] = {}
        for name in self.names:
            self._groups[(name,)] = _codes(table[name].combine_chunks(), nulls)

    def groups(self, columns: Iterable[str]) -> npt.NDArray[np.int64]:
        """For each row the number of its group: rows equal on ``columns`` share one; numbers have no gaps."""
        key = tuple(sorted(columns))
        if key not in self._groups:
            self._groups[key] = _pair(self.groups(key[:-1]), self._groups[key[-1:]])
        return self._groups[key]

    def degree(self, lhs: Side, rhs: str) -> int:
        """G3 of ``lhs -> rhs``."""
        pairs = self.groups((*lhs, rhs))
        size = np.bincount(pairs)
        left = np.empty(len(size), dtype=np.int64)
        left[pairs] = self.groups(lhs)
        largest = np.zeros(int(left.max(initial=-1)) + 1, dtype=np.int64)
        np.maximum.at(largest, left, size)
        return int(self.rows - largest.sum())

    def holds(self, lhs: Side, rhs: str) -> bool:
        """X -> A holds exactly when adding A to X makes no new group."""
        return int(self.groups(lhs).max(initial=-1)) == int(self.groups((*lhs, rhs)).max(initial=-1))

    def minimal(self, max_lhs: int = MAX_LHS) -> list[tuple[Side, str]]:
        """All minimal non-trivial dependencies with at most ``max_lhs`` columns on the left."""
        found: list[tuple[Side, str]] = []
        for rhs in self.names:
            known: list[set[str]] = []
            others = [name for name in self.names if name != rhs]
            for lhs in (side for size in range(1, max_lhs + 1) for side in combinations(others, size)):
                if not any(smaller <= set(lhs) for smaller in known) and self.holds(lhs, rhs):
                    known.append(set(lhs))
                    found.append((lhs, rhs))
        return found


def _codes(column: pa.Array, nulls: str) -> npt.NDArray[np.int64]:
    cells = canonical(column)
    missing = cells.is_null().to_numpy(zero_copy_only=False)
    found = pc.fill_null(cells.dictionary_encode().indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    if nulls == "distinct":
        found[missing] = found.max(initial=-1) + 1 + np.arange(missing.sum())
    return _dense(found)


def _pair(left: npt.NDArray[np.int64], right: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return _dense(left * (int(right.max(initial=-1)) + 1) + right)


def _dense(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def compare(clean: pa.Table, damaged: pa.Table, planted: Iterable[tuple[Side, str]]) -> dict[str, Any]:
    """Degrees of the planted dependencies and all minimal ones, on the clean table and under each reading of nulls."""
    readings = {"clean": Relation(clean), **{how: Relation(damaged, how) for how in ("equal", "distinct", "skip")}}
    return {
        "rows": clean.num_rows,
        "nulls": {name: damaged[name].null_count for name in damaged.column_names},
        "max_lhs": MAX_LHS,
        "planted": [
            {
                "lhs": list(lhs),
                "rhs": rhs,
                "degree": {how: relation.degree(lhs, rhs) for how, relation in readings.items()},
            }
            for lhs, rhs in planted
        ],
        "minimal": {
            how: [{"lhs": list(lhs), "rhs": rhs} for lhs, rhs in relation.minimal()]
            for how, relation in readings.items()
        },
    }
