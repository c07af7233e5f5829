"""Columns of two tables that hold the same values as they are written: joins that need no key and no rewriting."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from lakescope.array_types import U64
from lakescope.engines.joins.answers import SharedColumns
from lakescope.tables.query import is_plausible
from lakescope.tables.reading import batches_of
from lakescope.values.canonical import Kind
from lakescope.values.cells import understand


@dataclass(frozen=True, slots=True)
class SharedColumnsTuning:
    """Which pairs of columns of two tables are told."""

    #: Share of the values of the smaller column that the other must hold. Not measured.
    share: float = 0.5


SHARED = SharedColumnsTuning()


def shared_columns(left: Any, right: Any) -> list[SharedColumns]:
    """Pairs of columns of two tables with most values in common, the most alike first."""
    ours, theirs = _values_of(left), _values_of(right)
    found = [_compared(*one, *other) for one in ours.items() for other in theirs.items()]
    alike = [each for each in found if max(each.of_left, each.of_right) >= SHARED.share]
    alike.sort(key=lambda each: (-each.of_left * each.of_right, -each.shared, each.left, each.right))
    return alike


def _values_of(table: Any) -> dict[str, U64]:
    """The hashes of the values of each column that it makes sense to join on, sorted."""
    hashes: dict[str, list[U64]] = {}
    kinds: dict[str, Counter[int]] = {}
    for batch in batches_of(table):
        for column in batch.columns:
            cells = understand(column, batch.fallback)
            hashes.setdefault(column.name, []).append(np.unique(cells.hashes))
            counted = np.bincount(cells.kinds, cells.counts, len(Kind)).astype(int)
            kinds.setdefault(column.name, Counter()).update(dict(enumerate(counted.tolist())))
    values = {name: np.unique(np.concatenate(some)) for name, some in hashes.items()}
    return {
        name: some
        for name, some in values.items()
        if is_plausible(some.size, Kind(kinds[name].most_common(1)[0][0]).name.lower())
    }


def _compared(left: str, ours: U64, right: str, theirs: U64) -> SharedColumns:
    """How much two columns have in common."""
    shared = int(np.intersect1d(ours, theirs, assume_unique=True).size)
    return SharedColumns(left, right, shared, shared / ours.size, shared / theirs.size)
