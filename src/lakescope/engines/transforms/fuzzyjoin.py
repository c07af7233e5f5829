"""The optimiser of fuzzy joins on its own: two columns that hold the same things in slightly different words (4.7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from lakescope.array_types import I64
from lakescope.engines.transforms.clock import Clock
from lakescope.engines.transforms.fuzzy import FUZZY, Fuzzy, Method, optimise
from lakescope.engines.transforms.keys import KEYS
from lakescope.engines.transforms.plan import beside, rereadable, rows_of
from lakescope.engines.transforms.texts import TextTable, read
from lakescope.errors import BadRequest

Reference = Literal["left", "right"]


@dataclass(frozen=True)
class FuzzyJoin:
    """What joins on two columns that are nearly equal.

    ``reference`` is the side whose column is the key: a row of the other side joins at most one of its values.
    ``coverage`` is the share of the other side's rows that join. ``fuzzy`` are the distances and thresholds, with the
    estimated share of pairs that is right; None if nothing joins.
    """

    on: tuple[str, str]
    reference: Reference
    fuzzy: Fuzzy | None
    coverage: float
    notes: tuple[str, ...] = ()
    left: Any = field(default=None, repr=False, compare=False)
    right: Any = field(default=None, repr=False, compare=False)
    left_rows: I64 = field(default_factory=lambda: np.empty(0, np.int64), repr=False, compare=False)
    right_rows: I64 = field(default_factory=lambda: np.empty(0, np.int64), repr=False, compare=False)

    def __bool__(self) -> bool:
        return self.fuzzy is not None

    def pairs(self) -> pa.Table:
        """The rows that join, by their numbers from 0: ``left_row``, ``right_row``."""
        return pa.table({"left_row": self.left_rows, "right_row": self.right_rows})

    def table(self) -> pa.Table:
        """The joined table: columns of the left one, then of the right one (``_right`` added to names taken)."""
        left, right = rows_of(self.left, read(self.left)), rows_of(self.right, read(self.right))
        return beside(left.take(pa.array(self.left_rows)), right.take(pa.array(self.right_rows)))

    def words(self) -> str:
        """The join in plain words."""
        if self.fuzzy is None:
            return "\n".join(["nothing is near enough to be joined", *self.notes])
        other = "right" if self.reference == "left" else "left"
        head = f"{self.on[0]} (left) = {self.on[1]} (right), a key of the {self.reference} table"
        tail = f"joins {self.coverage:.1%} of the {other} rows"
        return "\n".join([head, f"  {self.fuzzy.words()}", tail, *self.notes])

    def __str__(self) -> str:
        return self.words()

    def _repr_html_(self) -> str:
        from lakescope.show.notebook import words_html

        return words_html(self.words())

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        fuzzy = None if self.fuzzy is None else self.fuzzy.to_dict()
        told = {"on": list(self.on), "reference": self.reference, "coverage": self.coverage}
        return {**told, "pairs": int(self.left_rows.size), "fuzzy": fuzzy, "notes": list(self.notes)}


def fuzzyjoin(
    left: Any,
    right: Any,
    on: str | tuple[str, str],
    *,
    precision: float = 0.9,
    method: Method = "expected",
    one_to_one: bool = False,
    reference: Reference | None = None,
    budget: float | Clock | None = None,
) -> FuzzyJoin:
    """Join two tables on columns that are nearly equal; distances and thresholds are found from the columns alone.

    ``on`` is the name of the column, or its names on either side. ``precision`` is the estimated share of pairs that
    must be right; ``method="constrained"`` takes the largest threshold at which no value has two keys instead.
    ``reference`` is the side whose column is a key; by default the one with fewer repeated values, then the larger.
    After ``budget`` seconds (None: as many as it takes), what was found so far is told; or the clock that it goes by.
    """
    clock = Clock.of(budget)
    names = (on, on) if isinstance(on, str) else (on[0], on[1])
    sides = rereadable(left), rereadable(right)
    columns = [_values(read(side), name) for side, name in zip(sides, names, strict=True)]
    reference = reference or _reference(columns)
    if reference not in ("left", "right"):
        raise BadRequest(f"no side {reference!r}", hint="the reference is left or right")
    known, asked = columns if reference == "left" else columns[::-1]
    keys = [text for text, rows in known.items() if len(rows) == 1]
    if max(len(keys), len(asked)) > FUZZY.most_rows:
        hint = "join by a program first (lakescope.autojoin), and only what is left by distance"
        raise BadRequest(f"more than {FUZZY.most_rows:,} different values are too many to compare", hint=hint)
    clock.begin()
    fuzzy, places = optimise(
        [[text] for text in asked], keys, method=method, precision=precision, one_to_one=one_to_one, clock=clock
    )
    late = (f"{clock.why_late}: not all distances were tried",) if clock.late else ()
    pairs = sorted(
        (known[keys[place]][0], row)
        for rows, place in zip(asked.values(), places.tolist(), strict=True)
        if place >= 0
        for row in rows
    )
    first, second = (np.array([pair[n] for pair in pairs], np.int64) for n in (0, 1))
    left_rows, right_rows = (first, second) if reference == "left" else (second, first)
    order = np.lexsort((right_rows, left_rows))
    total = sum(map(len, asked.values()))
    return FuzzyJoin(
        on=names,
        reference=reference,
        fuzzy=fuzzy,
        coverage=len(pairs) / total if total else 0.0,
        notes=(*_notes(len(known) - len(keys), reference), *late),
        left=sides[0],
        right=sides[1],
        left_rows=left_rows[order],
        right_rows=right_rows[order],
    )


def _values(table: TextTable, name: str) -> dict[str, list[int]]:
    """The different values of a column, and their rows."""
    rows: dict[str, list[int]] = {}
    for row, text in enumerate(table.column(name).to_pylist()):
        if text is not None:
            rows.setdefault(text, []).append(row)
    return rows


def _reference(columns: Sequence[dict[str, list[int]]]) -> Reference:
    def rank(values: dict[str, list[int]]) -> tuple[bool, int]:
        once = sum(len(rows) == 1 for rows in values.values())
        return once >= KEYS.nearly * max(1, len(values)), len(values)

    return "left" if rank(columns[0]) >= rank(columns[1]) else "right"


def _notes(repeated: int, reference: str) -> tuple[str, ...]:
    if not repeated:
        return ()
    return (f"{repeated:,} values of the {reference} column occur more than once and join nothing",)
