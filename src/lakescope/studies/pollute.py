"""Values taken out of a table by chance, to see what that does to its dependencies (spec 4.8)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lakescope.engines.dependencies.answers import PATTERNS, Pattern, Unit
from lakescope.engines.dependencies.table import CodedTable
from lakescope.errors import BadRequest

#: Pareto: four fifths of what is missing is missing in a fifth of the columns.
_MOST, _FEW = 0.8, 0.2


def polluted(
    table: CodedTable,
    share: float,
    pattern: Pattern = "uniform",
    *,
    unit: Unit = "cells",
    target: Sequence[int] = (),
    seed: int = 1,
) -> CodedTable:
    """A table of which so many values are missing: evenly, mostly in few columns, or in ``target`` columns only.

    ``share`` is one of all cells, or of all rows (``tuples``), of which each then lacks one value on average.
    """
    if pattern not in PATTERNS:
        raise BadRequest(f"no pattern {pattern!r} of missing values", hint="use uniform, pareto or target")
    if unit not in ("cells", "tuples"):
        raise BadRequest(f"no unit {unit!r} of missing values", hint="use cells or tuples")
    if not 0 <= share <= 1:
        raise BadRequest(f"the share of missing values must be between 0 and 1, not {share}", hint="0.05")
    if pattern == "target" and not target:
        raise BadRequest("no column to take values out of", hint="name target columns")
    dice = np.random.default_rng(seed)
    wanted = round(share * table.rows * (table.columns if unit == "cells" else 1))
    codes = table.codes.copy()
    for columns, count in _allotted(table, pattern, wanted, target, dice):
        cells = np.array([(c, r) for c in columns for r in np.flatnonzero(codes[c] >= 0)], np.int64).reshape(-1, 2)
        if count > cells.shape[0]:
            raise BadRequest(
                f"{count:,} values cannot be missing in {len(columns)} columns that have {cells.shape[0]:,}",
                hint="ask for fewer, or count them by rows: unit tuples",
            )
        gone = cells[dice.choice(cells.shape[0], count, replace=False)]
        codes[gone[:, 0], gone[:, 1]] = -1
    return CodedTable(table.names, codes)


def _allotted(
    table: CodedTable, pattern: Pattern, wanted: int, target: Sequence[int], dice: np.random.Generator
) -> list[tuple[list[int], int]]:
    """How many values are taken out of which columns."""
    if pattern == "uniform":
        return [(list(range(table.columns)), wanted)]
    if pattern == "target":
        return [(list(target), wanted)]
    order = dice.permutation(table.columns).tolist()
    few = max(1, round(_FEW * table.columns))
    most = round(_MOST * wanted)
    return [(order[:few], most), (order[few:], wanted - most)] if few < table.columns else [(order, wanted)]
