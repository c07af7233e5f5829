"""Correlation sketches: the keys of a table with the smallest hashes, and beside each what its rows hold (CS, 2).

Two tables keep the smallest values of the same hash, so the keys that both sketches hold are a uniform sample of the
rows of their join (Theorem 1): any statistic of the join can be estimated from them. One sketch serves all numeric
columns of its table, and every aggregate of repeated keys (spec 2.2, 2.3). Sketches of parts of a table add up to the
sketch of the table: a key of the final sketch is among the smallest of every part it occurs in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from lakescope.array_types import F64, I32, I64, U64
from lakescope.sketches import codec
from lakescope.sketches import correlation_kernels as k
from lakescope.values.hashing import LAST_HASH

#: Keys of a sketch, if nothing else is said.
KEYS = 512
_NAME, _VERSION = "correlation", 1


@dataclass(slots=True)
class ValueStates:
    """What the rows of each key hold in one numeric column.

    ``cells`` and ``numbers`` count all cells of the column that are not null, and those of them that are numbers.
    """

    counts: I64
    floats: F64
    orders: I64
    cells: int = 0
    numbers: int = 0

    @classmethod
    def of(cls, keys: int) -> ValueStates:
        return cls(np.zeros(keys, np.int64), np.zeros((k.STATES, keys)), np.zeros((2, keys), np.int64))

    def moved(self, to: I32, keys: int) -> ValueStates:
        """These states in new places: ``to`` has the new place of each entry, a negative one if it is gone."""
        made = ValueStates.of(keys)
        made.cells, made.numbers = self.cells, self.numbers
        k.combine(made.counts, made.floats, made.orders, to, self.counts, self.floats, self.orders)
        return made

    def aggregate(self, name: str) -> F64:
        """One number a key; NaN where there is none."""
        floats = self.floats
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            if name == "mean":
                found = (floats[k.SUM] + floats[k.REST]) / self.counts
            elif name == "sum":
                found = floats[k.SUM] + floats[k.REST]
            elif name == "count":
                found = self.counts.astype(np.float64)
            else:
                found = floats[{"min": k.MINIMUM, "max": k.MAXIMUM, "first": k.FIRST, "last": k.LAST}[name]]
        return np.where(self.counts > 0, found, np.nan)

    @property
    def repeated(self) -> bool:
        """Whether some key has several numbers: aggregates differ then."""
        return bool((self.counts > 1).any())


@dataclass(slots=True)
class KeySketch:
    """The smallest keys of a table, in order of their hashes, with the states of its numeric columns.

    ``rows`` counts the rows of each key, ``filled`` those with any key. ``saturated`` says that there are more keys
    than it holds. ``refused`` is set if the column turned out to be no key: it then holds nothing.
    """

    limit: int = KEYS
    hashes: U64 = field(default_factory=lambda: np.empty(0, np.uint64))
    rows: I64 = field(default_factory=lambda: np.empty(0, np.int64))
    filled: int = 0
    saturated: bool = False
    refused: bool = False
    values: dict[str, ValueStates] = field(default_factory=dict)

    @classmethod
    def counting(cls, hashes: U64, limit: int) -> KeySketch:
        """A sketch of keys alone, to count them."""
        kept, _, dropped = _smallest(hashes, limit, LAST_HASH)
        return cls(limit, kept, np.zeros(kept.size, np.int64), saturated=dropped)

    @property
    def size(self) -> int:
        return int(self.hashes.size)

    @property
    def threshold(self) -> np.uint64:
        """Keys up to this hash are all there."""
        return self.hashes[-1] if self.saturated and self.size else LAST_HASH

    @property
    def distinct(self) -> float:
        """Number of keys: exact, or estimated from how small the smallest are (2.4)."""
        if not self.saturated:
            return float(self.size)
        return (self.size - 1) / max(1e-300, float(self.threshold) / 2.0**64)

    def refuse(self) -> None:
        """The column is no key."""
        self.hashes, self.rows, self.values = np.empty(0, np.uint64), np.empty(0, np.int64), {}
        self.filled, self.saturated, self.refused = 0, False, True

    def update(self, places: I32, hashes: U64, numbers: dict[str, tuple[I32, F64]], order: int) -> None:
        """Add rows: which of some keys each has, and the numbers of other columns in the same way."""
        if self.refused:
            return
        made = _sketch_of(self.limit, places, hashes, numbers, order, self.threshold)
        if not self.size and not self.filled:
            self.hashes, self.rows, self.filled, self.values = made.hashes, made.rows, made.filled, made.values
            self.saturated = made.saturated
        else:
            self.merge(made)

    def merge(self, other: KeySketch) -> None:
        """Add all that another sketch of the same table has seen."""
        self.limit = min(self.limit, other.limit)
        if self.refused or other.refused:
            self.refuse()
            return
        threshold = min(self.threshold, other.threshold)
        every = np.union1d(self.hashes, other.hashes)
        every = every[every <= threshold]
        self.saturated = self.saturated or other.saturated or every.size > self.limit
        every = every[: self.limit]
        mine, theirs = _moves(self.hashes, every), _moves(other.hashes, every)
        rows = np.zeros(every.size, np.int64)
        for to, sketch in ((mine, self), (theirs, other)):
            rows[to[to >= 0]] += sketch.rows[to >= 0]
        values = {}
        for name in dict.fromkeys([*self.values, *other.values]):
            states = self.values[name].moved(mine, every.size) if name in self.values else ValueStates.of(every.size)
            if name in other.values:
                more = other.values[name]
                k.combine(states.counts, states.floats, states.orders, theirs, more.counts, more.floats, more.orders)
                states.cells += more.cells
                states.numbers += more.numbers
            values[name] = states
        self.hashes, self.rows, self.values = every, rows, values
        self.filled += other.filled

    def to_bytes(self) -> bytes:
        fields: codec.Fields = {
            "limit": self.limit,
            "filled": self.filled,
            "saturated": self.saturated,
            "refused": self.refused,
            "hashes": self.hashes,
            "rows": self.rows,
            "names": list(self.values),
            "totals": [[each.cells, each.numbers] for each in self.values.values()],
        }
        for number, states in enumerate(self.values.values()):
            fields |= {f"c{number}": states.counts, f"f{number}": states.floats, f"o{number}": states.orders}
        return codec.pack(_NAME, _VERSION, fields)

    @classmethod
    def from_bytes(cls, data: bytes | memoryview) -> KeySketch:
        fields = codec.unpack(data, _NAME, _VERSION)
        sketch = cls(fields["limit"], fields["hashes"].copy(), fields["rows"].copy(), fields["filled"])
        sketch.saturated, sketch.refused = fields["saturated"], fields["refused"]
        for number, (name, totals) in enumerate(zip(fields["names"], fields["totals"], strict=True)):
            sketch.values[name] = ValueStates(
                fields[f"c{number}"].copy(),
                fields[f"f{number}"].reshape(k.STATES, -1).copy(),
                fields[f"o{number}"].reshape(2, -1).copy(),
                *totals,
            )
        return sketch


def _sketch_of(
    limit: int, places: I32, hashes: U64, numbers: dict[str, tuple[I32, F64]], order: int, threshold: np.uint64
) -> KeySketch:
    """The sketch of some rows; keys above the threshold of what is known already do not matter."""
    kept, entries, dropped = _smallest(hashes, limit, threshold)
    rows = np.zeros(kept.size, np.int64)
    chosen, chosen_entries = np.empty(places.size, np.int32), np.empty(places.size, np.int32)
    n, filled = k.rows_of_entries(places, entries, rows, chosen, chosen_entries)
    made = KeySketch(limit, kept, rows, filled, dropped)
    for name, (value_places, cells) in numbers.items():
        states = ValueStates.of(kept.size)
        k.accumulate(
            chosen[:n], chosen_entries[:n], value_places, cells, order, states.counts, states.floats, states.orders
        )
        made.values[name] = states
    return made


def _smallest(hashes: U64, limit: int, threshold: np.uint64) -> tuple[U64, I32, bool]:
    """The smallest different hashes up to a threshold, which of them each one is, and whether there were more."""
    kept, entries = np.empty(min(limit, hashes.size), np.uint64), np.empty(hashes.size, np.int32)
    found, dropped = k.smallest(hashes, threshold, kept, entries)
    return kept[:found], entries, dropped


def _moves(hashes: U64, kept: U64) -> I32:
    """Where each hash is among those kept, which are in order; -1 for those that are not."""
    if not kept.size:
        return np.full(hashes.size, -1, np.int32)
    at = np.minimum(np.searchsorted(kept, hashes), kept.size - 1)
    return np.where(kept[at] == hashes, at, -1).astype(np.int32)


def key_rows(places: Sequence[I32], hashes: Sequence[U64], threshold: np.uint64 = LAST_HASH) -> tuple[I32, U64]:
    """Which key each row has, and the hashes of the keys: of one column, or of two together up to a threshold."""
    if len(places) == 1:
        return places[0], hashes[0]
    rows = places[0].size
    found_places, found = np.empty(rows, np.int32), np.empty(rows, np.uint64)
    count = k.pair_places(places[0], places[1], hashes[0], hashes[1], threshold, found_places, found)
    return found_places, found[:count]
