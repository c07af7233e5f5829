"""Which columns hold what mine holds, written differently? Rare q-grams in common, found by look-up (Auto-Join, 4.2).

Of every column of letters or whole numbers the index has the q-grams with the smallest hashes, as far as one value
alone holds them. Those that one value of the query holds, too, are counted; what counts is how many more they are than
an unrelated column of this size would share, which is what the median column of the lake does.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lakescope.array_types import I64, U64
from lakescope.engines.joins.inverted import InvertedIndex, Part
from lakescope.errors import BadRequest
from lakescope.once import once
from lakescope.sketches.grams import GramSketch
from lakescope.store.arrays import Arrays
from lakescope.store.index import Index
from lakescope.store.inverted import ranges
from lakescope.tables.reading import batches_of
from lakescope.values.cells import understand


@dataclass(frozen=True, slots=True)
class GramTuning:
    """Which q-grams of a query are looked up, and how many in common say something."""

    #: Q-grams of a query's column that are looked up: the smallest hashes. Not measured: a bound of memory and time.
    looked_up: int = 1 << 20
    #: Fewest q-grams in common that say anything. Not measured.
    fewest: int = 3
    #: Share of a column's q-grams in common that needs no comparison with others. Not measured: set for lakes of
    #: versions of one table, where the median column shares most of them.
    plenty: float = 0.2
    #: Chance of so many in common, among as many columns as the lake has, above which they say nothing. Not measured:
    #: a level of significance by convention.
    level: float = 0.01


GRAMS = GramTuning()


@dataclass(frozen=True, slots=True)
class GramHit:
    """A column of the lake, by its number, that shares rare q-grams with a column of the query.

    ``expected`` of the ``shared`` ones are due to chance. ``values`` are those of the query that hold them.
    """

    number: int
    query_column: str
    shared: int
    expected: float
    values: U64

    @property
    def score(self) -> float:
        """How little chance explains it: its probability is at most ``exp(-score)`` (Chernoff's bound of a Poisson)."""
        if self.shared <= self.expected:
            return 0.0
        return self.shared * math.log(self.shared / self.expected) - self.shared + self.expected


class GramSearch:
    """Answers which columns share rare q-grams with those of a query, for one opened index."""

    def __init__(self, index: Index, inverted: InvertedIndex) -> None:
        if not index.manifest.of_kind("grams"):
            hint = "build it again with this version: lakescope index DATA --out INDEX"
            raise BadRequest(f"the index {index.path} has no q-grams, by which such tables are found", hint=hint)
        self._inverted = inverted
        self._files: list[tuple[Part, Arrays]] = [
            (part, file) for part in inverted.parts for file in part.segment.part("grams")
        ]

    @once
    def _sizes(self) -> I64:
        """Rare q-grams of every column."""
        sizes = np.zeros(self._inverted.count, np.int64)
        for part, file in self._files:
            known = int(part.segment.set_bounds[-1])
            if file["sets"].size and not 0 <= int(file["sets"].min()) <= int(file["sets"].max()) < known:
                raise self._inverted.damaged()
            sizes[part.in_lake(part.live.astype(np.int32))] += np.bincount(file["sets"], minlength=known)[part.live]
        return sizes

    def search(self, columns: Mapping[str, GramSketch], excluded: range = range(0)) -> list[GramHit]:
        """Columns that share q-grams with some of the query's, the most telling first; ``excluded`` are not asked."""
        found = [hit for name, sketch in columns.items() for hit in self._of_column(name, sketch, excluded)]
        least = math.log(max(1, int(np.count_nonzero(self._sizes))) / GRAMS.level)
        found = [hit for hit in found if hit.score >= least or hit.shared >= GRAMS.plenty * self._sizes[hit.number]]
        return sorted(found, key=lambda hit: (-hit.score, -hit.shared, hit.number, hit.query_column))

    def _of_column(self, name: str, sketch: GramSketch, excluded: range) -> list[GramHit]:
        grams, values = sketch.rare
        places, sets = self._columns_holding(grams)
        order = np.argsort(sets, kind="stable")
        places, sets = places[order], sets[order]
        counts = np.bincount(sets, minlength=self._sizes.size)
        counts[excluded.start : excluded.stop] = 0
        others = np.flatnonzero(self._sizes)
        others = others[(others < excluded.start) | (others >= excluded.stop)]
        # What half of the columns share at most is due to chance; few of them have to do with the query.
        usual = float(np.median(counts[others] / self._sizes[others])) if others.size else 0.0
        found = []
        for number in np.flatnonzero(counts >= GRAMS.fewest).tolist():
            begin, end = np.searchsorted(sets, [number, number + 1])
            # One q-gram in common is always possible.
            expected = max(1.0, usual * int(self._sizes[number]))
            found.append(GramHit(number, name, int(counts[number]), expected, np.unique(values[places[begin:end]])))
        return found

    def _columns_holding(self, grams: U64) -> tuple[I64, I64]:
        """Pairs of a q-gram, by its place, and a column that has it."""
        places, sets = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for part, file in self._files:
            begins, ends = (np.searchsorted(file["hashes"], grams, side) for side in ("left", "right"))
            counts = ends - begins
            at = ranges(begins, counts)
            numbers = part.in_lake(file["sets"][at]).astype(np.int64)
            there = numbers >= 0
            places.append(np.repeat(np.arange(grams.size), counts)[there])
            sets.append(numbers[there])
        return np.concatenate(places), np.concatenate(sets)

    def equal_share(self, hit: GramHit) -> float:
        """The share of the query's values behind a hit that the column holds as they are."""
        held = self._inverted.holds_tokens(self._inverted.token_lookup(hit.values), hit.number)
        return float(held.sum()) / hit.values.size


def cut_query(query: Any) -> dict[str, GramSketch]:
    """The q-grams of the columns of a table: a path or URI, or a frame."""
    columns: dict[str, GramSketch] = {}
    for batch in batches_of(query):
        for column in batch.columns:
            columns.setdefault(column.name, GramSketch(GRAMS.looked_up)).update(understand(column, batch.fallback))
    return columns
