"""Columns that the path of a file spells (``year=2021/``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from lakescope.sources.model import MISSING, Batch, Problem, Report, TextColumn, Unit


def add_constants(batches: Iterable[Batch], unit: Unit, report: Report) -> Iterator[Batch]:
    """Add what the path of a unit spells to all of its batches, except columns that the file holds itself."""
    constants: dict[str, str | None] = unit.options.get("constants", {})
    for number, batch in enumerate(batches):
        present = {column.name for column in batch.columns} & constants.keys()
        if number == 0:
            tell_doubled(unit, present, report)
        batch.columns += [constant(name, constants[name], batch.rows) for name in constants if name not in present]
        yield batch


def tell_doubled(unit: Unit, names: Iterable[str], report: Report) -> None:
    """Tell of columns that both the path and the file spell."""
    for name in sorted(names):
        detail = f"column {name!r} is also spelt by the path; the values in the file count"
        report(Problem(unit.table, "info", "partition-column", detail))


def constant(name: str, value: str | None, rows: int) -> TextColumn:
    """A column of one value: every cell is the same slice."""
    data = np.frombuffer((value or "").encode("utf-8", "replace"), np.uint8)
    end = MISSING if value is None else data.size
    return TextColumn(name, data, np.zeros(rows, np.int32), np.full(rows, end, np.int32), "partition")
