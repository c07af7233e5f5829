"""The rows that decide about a dependency: those that share a left side and not the right one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from lakescope.array_types import I32
from lakescope.engines.dependencies.answers import Nulls, Violation
from lakescope.engines.dependencies.scores import RowGroups, Scorer
from lakescope.engines.dependencies.table import CodedTable, check_nulls, read
from lakescope.errors import BadRequest, NotFound
from lakescope.results import Results

#: Rows of a group that are told. A matter of room, not measured.
_ROWS = 10
_MISSING = "(missing)"


def parse(text: str) -> tuple[tuple[str, ...], str]:
    """``zip, state -> city`` as columns."""
    left, arrow, right = text.rpartition("->")
    if not arrow or not right.strip():
        raise BadRequest(f"cannot read the dependency {text!r}", hint="write it as 'zip, state -> city'")
    return tuple(part.strip() for part in left.split(",") if part.strip()), right.strip()


def violations(
    query: Any, lhs: Sequence[str], rhs: str, nulls: Nulls = "equal", missing: Sequence[str] | str = ()
) -> Results[Violation]:
    """Groups of rows that break ``lhs -> rhs``, those with the most rows first."""
    check_nulls(nulls)
    table = read(query, missing, texts=True)
    for name in (*lhs, rhs):
        if name not in table.names:
            raise NotFound.among("column", name, list(table.names))
    columns = [table.names.index(name) for name in lhs]
    right = table.names.index(rhs)
    kept = np.arange(table.rows)
    if nulls == "skip":
        kept = np.flatnonzero((table.codes >= 0).all(axis=0))
    scorer = Scorer(table.under(nulls))
    score = scorer.score(columns, right)
    by = scorer.partition(columns)
    found = []
    for group in _broken(by, scorer.codes[right]):
        rows = np.sort(kept[by.rows_of(group)])
        texts = [_text(table, right, row) for row in rows.tolist()]
        values = Counter(texts).most_common()
        there = [(text, number) for text, number in values if text != _MISSING]
        known = sum(number for _, number in there)
        majority = there[0][0] if there and 2 * there[0][1] > known else None
        found.append(
            Violation(
                lhs=tuple(_text(table, column, int(rows[0])) for column in columns),
                values=tuple(text for text, _ in values),
                counts=tuple(number for _, number in values),
                rows=tuple(rows[:_ROWS].tolist()),
                repair=majority,
                doubtful=tuple(row for row, text in zip(rows.tolist(), texts, strict=True) if text != majority),
            )
        )
    found.sort(key=lambda each: (-sum(each.counts), each.lhs))
    info = {"degree": score.degree, "rows": scorer.rows, "groups": score.groups, "broken": len(found)}
    notes = [] if found else [f"{', '.join(lhs)} -> {rhs} holds"]
    return Results(Violation, found, notes=notes, info=info)


def _broken(by: RowGroups, values: I32) -> list[int]:
    """Groups of which not all rows have the same value; a missing one is the same as none."""
    held = values[by.order]
    begins = by.bounds[:-1]
    if not begins.size:
        return []
    differs = (held != np.repeat(held[begins], np.diff(by.bounds))) | (held < 0)
    return np.flatnonzero(np.logical_or.reduceat(differs, begins)).tolist()


def _text(table: CodedTable, column: int, row: int) -> str:
    code = int(table.codes[column, row])
    return table.texts[column][code] if code >= 0 else _MISSING
