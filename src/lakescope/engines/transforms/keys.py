"""Columns of a table that a join may lead to: its keys, exactly or nearly, of one column or of several (4.10, 2)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakescope.array_types import I64, U64
from lakescope.engines.transforms.evaluate import derived, hashes_of
from lakescope.engines.transforms.program import Expression, Piece
from lakescope.engines.transforms.steps import SplitPiece
from lakescope.engines.transforms.texts import TextTable


@dataclass(frozen=True, slots=True)
class KeyTuning:
    """What is taken for the key of a table that is joined."""

    #: Share of values that must be different in a column that is nearly a key. From the thesis, 4.10 (2).
    nearly: float = 0.95
    #: Share of rows that must have a value at all. Not measured: a half.
    filled: float = 0.5
    #: Columns of a key, at most. From the thesis, 4.10 (2).
    widest: int = 3
    #: Columns that are combined. Not measured: a bound on time.
    combined: int = 8
    #: Keys of several columns that are kept. Not measured: a bound on time.
    composite: int = 3
    #: A column of whole numbers that fill more than this share of their range only counts rows. Not measured: a guess.
    dense: float = 0.3
    #: Share of rows that must have a separator, all in the same number, for a column to be split. From the
    #: specification of section 4.5 of the thesis.
    regular: float = 0.9


KEYS = KeyTuning()

_SEPARATORS = (", ", " - ", ": ", "; ", "/", "|", "-", "_", ":", ";", ",", ".", " ")


@dataclass(frozen=True)
class Key:
    """A key of a table: its columns (or pieces of them), its values as sorted hashes, and the row of each.

    Values that occur more than once lead nowhere: ``repeated`` counts them. ``running`` is a key that only counts rows.
    """

    pieces: tuple[Piece, ...]
    hashes: U64
    rows: I64
    repeated: int
    running: bool

    @property
    def name(self) -> str:
        return ", ".join(piece.words() for piece in self.pieces)

    def look_up(self, hashes: U64) -> I64:
        """The row of each hash; -1 where there is none."""
        if not self.hashes.size:
            return np.full(hashes.size, -1)
        at = np.minimum(np.searchsorted(self.hashes, hashes), self.hashes.size - 1)
        return np.where((self.hashes[at] == hashes) & (hashes > 0), self.rows[at], -1)


def key_of(table: TextTable, pieces: Iterable[Piece], texts: pa.ChunkedArray | None = None) -> Key:
    """The values of columns as a key, whether they are one or not."""
    pieces = tuple(pieces)
    if texts is None:
        texts = derived([Expression((piece,)) for piece in pieces], table)
    hashes = hashes_of(texts)
    distinct, first, counts = np.unique(hashes, return_index=True, return_counts=True)
    once = (counts == 1) & (distinct > 0)
    repeated = int(((counts > 1) & (distinct > 0)).sum())
    running = len(pieces) == 1 and _running(texts)
    return Key(pieces, distinct[once], first[once].astype(np.int64), repeated, running)


def _running(texts: pa.ChunkedArray) -> bool:
    """Whether a column holds whole numbers that fill their range: a number of the row, whatever the row."""
    present = texts.drop_null()
    if not len(present) or not pc.all(pc.match_substring_regex(present, "^[0-9]{1,15}$")).as_py():
        return False
    numbers = pc.cast(present, pa.int64())
    smallest, largest = pc.min(numbers).as_py(), pc.max(numbers).as_py()
    return bool(len(pc.unique(numbers)) >= KEYS.dense * (largest - smallest + 1))


def keys_of(table: TextTable) -> list[Key]:
    """Keys of a table: single columns that are unique or nearly; where there are none, of two or three columns."""
    singles = [key_of(table, [Piece(name)]) for name in table.names]
    found = [key for key in singles if _unique(key.hashes.size, key.repeated, table.rows)]
    return found or _composite(table)


def _unique(once: int, repeated: int, rows: int) -> bool:
    return once + repeated >= KEYS.filled * rows and once >= KEYS.nearly * (once + repeated) and once > 1


def _composite(table: TextTable) -> list[Key]:
    """Minimal keys of two columns, or of three; the columns with most values first."""
    sizes = {name: pc.count_distinct(table.column(name)).as_py() for name in table.names}
    ranked = sorted((name for name in table.names if sizes[name] > 1), key=lambda name: -sizes[name])[: KEYS.combined]
    for width in range(2, KEYS.widest + 1):
        found = []
        for names in combinations(ranked, width):
            key = key_of(table, [Piece(name) for name in sorted(names, key=table.names.index)])
            if key.hashes.size + key.repeated and _unique(key.hashes.size, key.repeated, table.rows):
                found.append(key)
            if len(found) == KEYS.composite:
                break
        if found:
            return found
    return []


def split_keys_of(table: TextTable) -> list[Key]:
    """Pieces of columns that hold several, split where all rows have the same separators (4.5), that are keys."""
    found = []
    for name in table.names:
        column = table.column(name).drop_null()
        for separator in _SEPARATORS:
            counts = pc.count_substring(column, separator)
            if not len(counts):
                break
            usual, times = _most_frequent(counts)
            if usual and times >= KEYS.regular * len(counts):
                pieces = [
                    Piece(name, (SplitPiece(separator, index),)) for index in range(min(usual + 1, KEYS.combined))
                ]
                keys = [key_of(table, [piece]) for piece in pieces]
                found += [key for key in keys if _unique(key.hashes.size, key.repeated, table.rows)]
                break
    return found


def _most_frequent(counts: pa.ChunkedArray) -> tuple[int, int]:
    tally = pc.value_counts(counts).to_pylist()
    best = max(tally, key=lambda each: each["counts"])
    return int(best["values"]), int(best["counts"])
