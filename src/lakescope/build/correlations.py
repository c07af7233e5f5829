"""Correlation sketches of a table while it is scanned: which columns are keys, which are numbers.

What counts as a key must not depend on how a table is cut, so a column is refused by single cells, never by shares:
decimals are no keys, and whole numbers are only in the first columns of a table, where its keys stand, or if all have
the same number of digits, as codes and years do. A piece that meets no such cell sketches in vain, and the merge
throws it away. Pairs of the first columns are sketched as one key each (country and year); they are kept if together
they come near a key which neither is alone.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from lakescope.array_types import F64, I32, U64
from lakescope.sketches import codec
from lakescope.sketches.aggregates import AGGREGATES
from lakescope.sketches.correlation import KEYS, KeySketch, ValueStates, key_rows
from lakescope.sketches.quadrants import sides
from lakescope.store.ids import column_id
from lakescope.values.canonical import Kind
from lakescope.values.cells import Cells

Key = tuple[str, ...]
Record = dict[str, Any]

_NAME, _VERSION = "key", 1


@dataclass(frozen=True, slots=True)
class SketchChoiceTuning:
    """Which keys and numbers of a table are sketched."""

    #: First columns of a table in which whole numbers of any length may be keys. Not measured: identifiers come first.
    leading: int = 3
    #: First columns of a table of which pairs may be keys. Not measured: a bound on time: 15 pairs.
    paired: int = 6
    #: Columns from which on only the first columns are keys, and sketches are smaller. Not measured: a bound on the
    #: size of the index.
    wide: int = 64
    #: Columns that may be keys in such a table. Not measured: a bound on the size of the index.
    wide_keys: int = 16
    #: Columns from which on sketches are smaller still. Not measured: a bound on the size of the index.
    very_wide: int = 512
    #: Share of the cells of a column that must be numbers to be sketched beside a key. Not measured: nearly all.
    mostly: float = 0.9
    #: Fewest different keys that are worth a sketch. Not measured: no coefficient of fewer pairs says anything.
    fewest_keys: int = 5
    #: Share of rows that a pair of columns must tell apart to be near a key. Not measured: nearly all.
    near_key: float = 0.8
    #: Share of rows that one column of such a pair tells apart alone, at most. Not measured: else the column does as
    #: well.
    no_key: float = 0.8
    #: Hashes by which the different values of each of a pair are counted. Not measured: an error of one in eight.
    counted: int = 64


SKETCHED = SketchChoiceTuning()

#: What a span of digits is before any number is seen.
_NO_DIGITS = (1 << 30, 0)


@dataclass(slots=True)
class BuiltSketch:
    """The sketch of one key while pieces of the table come in.

    Of each of its columns: whether it leads the table, the fewest and the most digits of its whole numbers. ``sides``
    sketch the columns of a pair by themselves, only to count their values.
    """

    sketch: KeySketch
    leading: list[bool]
    digits: list[tuple[int, int]]
    sides: list[KeySketch] = field(default_factory=list)

    def judge(self, columns: Sequence[KeyColumn]) -> None:
        """Refuse the key if a cell says that it is none."""
        self.digits = [_span(mine, each.digits) for mine, each in zip(self.digits, columns, strict=True)]
        if any(each.has_decimals for each in columns):
            self.sketch.refuse()
        self._judge_digits()

    def _judge_digits(self) -> None:
        for (fewest, most), leading in zip(self.digits, self.leading, strict=True):
            if most and not leading and (fewest != most or most == 1):
                self.sketch.refuse()

    def merge(self, other: BuiltSketch) -> None:
        self.digits = [_span(mine, theirs) for mine, theirs in zip(self.digits, other.digits, strict=True)]
        self.leading = [mine and theirs for mine, theirs in zip(self.leading, other.leading, strict=True)]
        self.sketch.merge(other.sketch)
        for mine, theirs in zip(self.sides, other.sides, strict=True):
            mine.merge(theirs)
        self._judge_digits()

    @property
    def worth_keeping(self) -> bool:
        """Whether it is a key of enough different values; of a pair, one that neither of its columns is alone."""
        if self.sketch.refused or self.sketch.size < SKETCHED.fewest_keys:
            return False
        if not self.sides:
            return True
        filled = self.sketch.filled
        near = self.sketch.distinct >= SKETCHED.near_key * filled
        return near and not hopeless([side.distinct for side in self.sides], filled)

    def to_bytes(self) -> bytes:
        fields: codec.Fields = {"leading": self.leading, "digits": self.digits, "sides": len(self.sides)}
        for number, sketch in enumerate([self.sketch, *self.sides]):
            fields[f"s{number}"] = sketch.to_bytes()
        return codec.pack(_NAME, _VERSION, fields)

    @classmethod
    def from_bytes(cls, data: bytes | memoryview) -> BuiltSketch:
        fields = codec.unpack(data, _NAME, _VERSION)
        sketches = [KeySketch.from_bytes(fields[f"s{number}"]) for number in range(fields["sides"] + 1)]
        return cls(sketches[0], fields["leading"], [tuple(each) for each in fields["digits"]], sketches[1:])


def _span(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    return min(a[0], b[0]), max(a[1], b[1])


def hopeless(alone: Sequence[float], filled: int) -> bool:
    """Whether a pair is no key of its own: one of its columns is one already, or they have too few values together."""
    return max(alone) > SKETCHED.no_key * filled or min(alone) <= 1 or math.prod(alone) < SKETCHED.near_key / 2 * filled


@dataclass
class KeyColumn:
    """A column of a batch, as keys and numbers see it."""

    name: str
    cells: Cells
    leading: bool

    @cached_property
    def kinds(self) -> npt.NDArray[np.int64]:
        """Cells of each kind, different ones."""
        return np.bincount(self.cells.kinds, minlength=len(Kind))

    @property
    def has_decimals(self) -> bool:
        return bool(self.kinds[Kind.DECIMAL])

    @property
    def has_numbers(self) -> bool:
        return bool(self.kinds[Kind.INTEGER] + self.kinds[Kind.DECIMAL])

    @cached_property
    def digits(self) -> tuple[int, int]:
        """Fewest and most digits of whole numbers."""
        if not self.kinds[Kind.INTEGER]:
            return _NO_DIGITS
        digits = self.cells.digits[self.cells.kinds == Kind.INTEGER]
        return int(digits.min()), int(digits.max())

    @property
    def may_be_key(self) -> bool:
        fewest, most = self.digits
        return not self.has_decimals and (self.leading or not most or (fewest == most and most > 1))

    @cached_property
    def hashes(self) -> U64:
        return np.maximum(self.cells.hashes, np.uint64(1))

    @cached_property
    def numbers(self) -> tuple[I32, F64]:
        """The place of each row, and the numbers at the places; NaN for what is none."""
        kinds, numbers = self.cells.kinds, self.cells.numbers
        if self.kinds[Kind.INTEGER] + self.kinds[Kind.DECIMAL] == kinds.size:
            return self.cells.places, numbers
        return self.cells.places, np.where((kinds == Kind.INTEGER) | (kinds == Kind.DECIMAL), numbers, np.nan)

    @cached_property
    def totals(self) -> tuple[int, int]:
        """Cells that are not null, and those of them that are numbers."""
        kinds, counts = self.cells.kinds, self.cells.counts
        numeric = (kinds == Kind.INTEGER) | (kinds == Kind.DECIMAL)
        return int(counts.sum()), int(counts[numeric].sum())

    @cached_property
    def filled(self) -> int:
        return int(self.cells.counts.sum())

    @cached_property
    def counted(self) -> KeySketch:
        """A sketch that only counts the different values."""
        return KeySketch.counting(self.hashes, SKETCHED.counted)


@dataclass(slots=True)
class _Batch:
    """Some rows of a table; ``positioned`` if the order of its columns is that of the table."""

    columns: list[KeyColumn]
    order: int
    positioned: bool

    @property
    def limit(self) -> int:
        """Keys of a sketch, by the width of the table; what JSON brings next nobody knows."""
        width = len(self.columns) if self.positioned else SKETCHED.very_wide
        return KEYS if width <= SKETCHED.wide else (KEYS // 4 if width <= SKETCHED.very_wide else KEYS // 8)

    def candidates(self) -> Iterator[tuple[KeyColumn, ...]]:
        """Columns, and pairs of the first ones, that may be keys."""
        wide = self.positioned and is_wide(len(self.columns))
        able = self.columns[: SKETCHED.wide_keys] if wide else self.columns
        yield from ((column,) for column in able)
        if self.positioned:
            yield from itertools.combinations(able[: SKETCHED.paired], 2)


def is_wide(columns: int) -> bool:
    """Whether a table has so many columns that not all of them can be keys."""
    return columns > SKETCHED.wide


class TableSketches:
    """All correlation sketches of some pieces of a table.

    The first batch waits until there is a second: if there is none, it is known at once which pairs are no keys.
    """

    def __init__(self) -> None:
        self.keys: dict[Key, BuiltSketch] = {}
        self._waiting: _Batch | None = None
        self._batches = 0

    def add(self, columns: Sequence[tuple[str, Cells]], order: int, *, positioned: bool = True) -> None:
        """Add a batch of rows. Without ``positioned`` the order of columns says nothing (JSON)."""
        seen = [KeyColumn(name, cells, positioned and i < SKETCHED.leading) for i, (name, cells) in enumerate(columns)]
        batch = _Batch(seen, order, positioned)
        if self._waiting is not None:
            self._sketch(self._waiting, alone=False)
            self._waiting = None
        self._batches += 1
        if self._batches == 1:
            self._waiting = batch
        else:
            self._sketch(batch, alone=False)

    def finish(self, *, whole: bool) -> dict[Key, BuiltSketch]:
        """The sketches of all that was added; of a ``whole`` table that was one batch, those that may be worth it."""
        if self._waiting is not None:
            self._sketch(self._waiting, alone=whole)
            self._waiting = None
        return self.keys

    def _sketch(self, batch: _Batch, *, alone: bool) -> None:
        values = [column for column in batch.columns if column.has_numbers]
        for key in batch.candidates():
            if not alone or self._worth_it(key):
                self._add(key, batch.limit, values, batch.order)

    @staticmethod
    def _worth_it(key: Sequence[KeyColumn]) -> bool:
        """Whether a key of a whole table might be kept."""
        if not all(column.may_be_key for column in key):
            return False
        filled = min(column.filled for column in key)
        return len(key) == 1 or not hopeless([column.counted.distinct for column in key], filled)

    def _add(self, columns: Sequence[KeyColumn], limit: int, values: list[KeyColumn], order: int) -> None:
        key = tuple(column.name for column in columns)
        keyed = self.keys.get(key)
        if keyed is None:
            leading = [column.leading for column in columns]
            keyed = self.keys[key] = BuiltSketch(KeySketch(limit), leading, [_NO_DIGITS for _ in columns])
            keyed.sides = [KeySketch(SKETCHED.counted) for _ in columns] if len(columns) > 1 else []
        keyed.judge(columns)
        if keyed.sketch.refused:
            return
        keyed.sketch.limit = min(keyed.sketch.limit, limit)
        others = [column for column in values if column.name not in key]
        placed, hashed = [column.cells.places for column in columns], [column.hashes for column in columns]
        places, hashes = key_rows(placed, hashed, keyed.sketch.threshold)
        keyed.sketch.update(places, hashes, {column.name: column.numbers for column in others}, order)
        for column in others:
            states = keyed.sketch.values[column.name]
            states.cells += column.totals[0]
            states.numbers += column.totals[1]
        for side, column in zip(keyed.sides, columns, strict=False):
            side.merge(column.counted)


def records(
    table: str, key: Key, keyed: BuiltSketch, positions: Mapping[str, int]
) -> tuple[Record, list[Record]] | None:
    """The record of a key and those of its numeric columns; None if it is not worth keeping."""
    if not keyed.worth_keeping:
        return None
    sketch = keyed.sketch
    number = column_id(table, *key)
    pairs = [
        {"table": table, "key": number, "column": column, "position": positions[column], **described}
        for column, states in sketch.values.items()
        if (described := _described(states)) is not None
    ]
    if not pairs:
        return None
    record = {
        "table": table,
        "key": number,
        "columns": list(key),
        "sets": [column_id(table, column) for column in key],
        "filled": sketch.filled,
        "distinct": sketch.distinct,
        "saturated": sketch.saturated,
        "hashes": sketch.hashes.tobytes(),
        "rows": sketch.rows.tobytes(),
    }
    return record, pairs


def _described(states: ValueStates) -> Record | None:
    """What is kept of a numeric column of a sketch; None if it is no column of numbers, or all of them are equal."""
    mean = states.aggregate("mean")
    filled = mean[np.isfinite(mean)]
    if (
        states.numbers < SKETCHED.mostly * states.cells
        or filled.size < SKETCHED.fewest_keys
        or filled.min() == filled.max()
    ):
        return None
    kept = [states.aggregate(name) for name in AGGREGATES] if states.repeated else [mean]
    return {
        "cells": states.cells,
        "numbers": states.numbers,
        "repeated": states.repeated,
        "values": np.concatenate(kept).tobytes(),
        "sides": sides(np.where(np.isfinite(mean), mean, np.nan)).tobytes(),
    }
