"""Correlation sketches as queries see them: keys and the numeric columns beside them, mapped, none loaded."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakescope.array_types import F64, I64, U64
from lakescope.engines.correlations.frames import Frames
from lakescope.engines.joins.scratch import Scratch
from lakescope.errors import IndexDamaged
from lakescope.once import once
from lakescope.sketches.aggregates import AGGREGATES
from lakescope.sketches.quadrants import ROWS
from lakescope.store.index import Index, LiveRecords
from lakescope.store.inverted import ranges
from lakescope.values.hashing import LAST_HASH


@dataclass(frozen=True, slots=True)
class SketchTuning:
    """What is read of sketches before it is needed."""

    #: Bytes of sketches that are read beforehand, at most: 1 GB. Not measured: a bound of memory and of time.
    touched: int = 1 << 30


SKETCHES = SketchTuning()


@dataclass(frozen=True, slots=True)
class _BinaryField:
    """A binary field of every record: where in memory it lies, and how long it is."""

    places: U64
    sizes: I64

    @classmethod
    def of(cls, batches: list[LiveRecords], name: str) -> _BinaryField:
        places, sizes = [np.empty(0, np.uint64)], [np.empty(0, np.int64)]
        for batch, live in batches:
            column = batch.column(name)
            _, offsets, data = column.buffers()
            ends = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1].astype(np.int64)
            base = data.address if data is not None else 0
            places.append((ends[:-1] + base).astype(np.uint64)[live])
            sizes.append(np.diff(ends)[live])
        return cls(np.concatenate(places), np.concatenate(sizes))


class NumberedHashes:
    """The hashes of all sketches as numbers: what a query has of each is one look into a table.

    ``known`` are all hashes in order, ``numbers`` the place there of every hash of every sketch: of key ``i`` from
    ``starts[i]`` up to ``starts[i + 1]``.
    """

    def __init__(self, places: U64, sizes: I64) -> None:
        from lakescope.engines.joins import kernels

        self.starts: I64 = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        hashes = np.empty(int(self.starts[-1]), np.uint64)
        kernels.gather(places, sizes, hashes)
        self.known: U64 = np.unique(hashes)
        bits = max(1, self.known.size.bit_length())
        shift = np.uint64(64 - bits)
        directory = np.searchsorted(self.known, np.arange(1 << bits, dtype=np.uint64) << shift)
        self.numbers = np.empty(hashes.size, np.uint32)
        kernels.number(hashes, self.known, np.append(directory, self.known.size), shift, self.numbers)
        self._tables = Scratch(lambda: np.zeros(max(1, self.known.size), np.uint8))

    @contextmanager
    def table_of(self, hashes: U64, sides: npt.NDArray[np.uint8]) -> Iterator[npt.NDArray[np.uint8]]:
        """A table of a query's sides by number, 0 where it has none."""
        at = np.minimum(np.searchsorted(self.known, hashes), max(0, self.known.size - 1))
        found = self.known[at] == hashes if self.known.size else np.zeros(hashes.size, np.bool_)
        with self._tables.borrow() as table:
            table[at[found]] = sides[found]
            yield table
            table[at[found]] = 0


class KeySketches:
    """All correlation sketches of an index: keys by number, pairs of a key and a numeric column by number.

    Pairs are in order of their keys: those of key ``i`` are ``pair_starts[i]`` up to ``pair_starts[i + 1]``.
    """

    def __init__(self, index: Index) -> None:
        #: The keys whose hashes are numbered; None: all.
        self.within: range | None = None
        self._keys = _RecordBatches(index.batches("keys"))
        self._pairs = _RecordBatches(index.batches("pairs"))
        self.hashes = _BinaryField.of(self._keys.batches, "hashes")
        self._rows = _BinaryField.of(self._keys.batches, "rows")
        self._values = _BinaryField.of(self._pairs.batches, "values")
        self._sides = _BinaryField.of(self._pairs.batches, "sides")
        self.count = int(self.hashes.sizes.size)
        self.sizes = self.hashes.sizes // 8
        #: Keys of which it is known that each of their values has one row.
        self.once = np.zeros(self.count, np.uint8)
        ids = _numbers(self._keys.batches, "key")
        order = np.argsort(ids)
        owners = _numbers(self._pairs.batches, "key")
        at = np.minimum(np.searchsorted(ids[order], owners), max(0, self.count - 1))
        # A pair without its key, which only a damaged file has, is nobody's.
        whose = np.full(owners.size, self.count)
        if self.count:
            whose = np.where(ids[order][at] == owners, order[at], whose)
        self._check(index, whose)
        self._order = np.argsort(whose, kind="stable")
        self.owners = whose[self._order]
        self.pair_starts = np.searchsorted(self.owners, np.arange(self.count + 1))

    @once
    def keys_of_table(self) -> dict[str, list[int]]:
        """Numbers of the keys of each table."""
        found: dict[str, list[int]] = {}
        for number, table in enumerate(self.tables):
            found.setdefault(table, []).append(number)
        return found

    def _check(self, index: Index, owners: I64) -> None:
        """Refuse blocks that are not as long as their keys say: kernels read them by their place in memory."""
        known = owners < self.count
        sizes = np.append(self.sizes, 0)[owners]
        lengths = self._values.sizes
        right = (lengths == 8 * sizes) | (lengths == 8 * len(AGGREGATES) * sizes)
        right &= self._sides.sizes == 8 * ROWS * ((sizes + 63) // 64)
        if not (known & right).all() or not np.array_equal(self._rows.sizes, self.hashes.sizes):
            wrong = index.verify()
            told = "\n".join(wrong) or f"the correlation sketches of {index.path} contradict themselves"
            raise IndexDamaged(told, hint="restore the files, or build the index again")

    @property
    def pairs(self) -> int:
        return int(self.owners.size)

    @once
    def frames(self) -> Frames:
        """The sketches by frames, by which questions are answered."""
        return Frames(self, self.__dict__.get("numbered") or self._numbered())

    @once
    def numbered(self) -> NumberedHashes:
        """The hashes as numbers: 4 bytes of memory for each, for the papers' ways to find."""
        return self._numbered()

    def _numbered(self) -> NumberedHashes:
        sizes = self.sizes
        if self.within is not None:
            sizes = np.zeros_like(sizes)
            sizes[self.within.start : self.within.stop] = self.sizes[self.within.start : self.within.stop]
        return NumberedHashes(self.hashes.places, sizes)

    @once
    def sides(self) -> U64:
        """Where the words of every pair lie."""
        return self._sides.places[self._order]

    @once
    def numbers(self) -> U64:
        """Where the numbers of every pair lie."""
        return self._values.places[self._order]

    @once
    def aggregates(self) -> I64:
        """How many kinds of numbers every pair has: one, or one for each aggregate."""
        sizes = self.sizes[np.minimum(self.owners, max(0, self.count - 1))]
        found: I64 = self._values.sizes[self._order] // (8 * np.maximum(1, sizes))
        return found

    def touch(self) -> None:
        """Have the numbers and rows of all sketches mapped, unless they are many: who reads a page first must wait."""
        from lakescope.engines.correlations import sample_kernels

        blocks = self._rows, self._values
        if sum(int(each.sizes.sum()) for each in blocks) <= SKETCHES.touched:
            for each in blocks:
                sample_kernels.touch(each.places, each.sizes)
            self.once = sample_kernels.all_ones(self._rows.places, self._rows.sizes)

    @property
    def rows(self) -> U64:
        """Where the numbers of rows of every key lie."""
        return self._rows.places

    @once
    def sets(self) -> list[tuple[int, ...]]:
        """The ids of the columns of every key."""
        return [tuple(each) for each in self._keys.all_of("sets")]

    @once
    def tables(self) -> list[str]:
        """The table of every key."""
        return self._keys.all_of("table")

    @once
    def _number_of_table(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(sorted(set(self.tables)))}

    @once
    def table_numbers(self) -> I64:
        """The table of every key as a number, in order of their names, in which segments do not lie."""
        return np.array([self._number_of_table[name] for name in self.tables], np.int64)

    def table_number(self, name: str | None) -> int:
        """The number of a table; -1 of one that has no keys."""
        return self._number_of_table.get(name, -1) if name is not None else -1

    def pairs_of(self, keys: I64) -> I64:
        """The pairs of some keys, one after the other."""
        starts = self.pair_starts[keys]
        return ranges(starts, self.pair_starts[keys + 1] - starts)

    @once
    def columns(self) -> list[tuple[str, ...]]:
        """The columns of every key."""
        return [tuple(each) for each in self._keys.all_of("columns")]

    @once
    def names(self) -> list[str]:
        """The columns of every key as they are told."""
        return [", ".join(each) for each in self.columns]

    @once
    def saturated(self) -> npt.NDArray[np.bool_]:
        """Which tables have more keys than their sketch."""
        return np.array(self._keys.all_of("saturated"), np.bool_)

    @once
    def thresholds(self) -> U64:
        """Keys up to this hash are all in the sketch."""
        last = np.full(self.count, LAST_HASH)
        for number in np.flatnonzero(self.saturated & (self.sizes > 0)).tolist():
            last[number] = self.hashes_of(number)[-1]
        return last

    def hashes_of(self, number: int) -> U64:
        """The hashes of a key's values, in order."""
        return np.frombuffer(self._block(self._keys, number, "hashes"), np.uint64)

    def rows_of(self, number: int) -> I64:
        """The rows of each of a key's values."""
        return np.frombuffer(self._block(self._keys, number, "rows"), np.int64)

    def key(self, number: int) -> dict[str, Any]:
        """The record of a key, without its hashes."""
        batch, row = self._keys.locate(number)
        return {name: batch.column(name)[row].as_py() for name in ("table", "columns", "filled", "distinct")}

    def pair(self, number: int) -> dict[str, Any]:
        """The record of a pair, without its numbers."""
        batch, row = self._pairs.locate(int(self._order[number]))
        return {name: batch.column(name)[row].as_py() for name in ("table", "column", "position", "cells", "numbers")}

    @once
    def _columns_at(self) -> Callable[[list[int]], list[str]]:
        return self._pairs.texts("column")

    def column_of(self, number: int) -> str:
        """The numeric column of a pair."""
        return self._columns_at([int(self._order[number])])[0]

    def columns_of(self, pairs: I64) -> list[str]:
        """The numeric columns of some pairs."""
        if "_coded_columns" not in self.__dict__:
            return self._columns_at(self._order[pairs].tolist())
        names, codes = self._coded_columns
        return [names[code] for code in codes[pairs].tolist()]

    @once
    def _coded_columns(self) -> tuple[list[str], npt.NDArray[np.int32]]:
        """The names of all numeric columns, and which of them every pair has."""
        columns = [batch.records.column("column").take(pa.array(batch.live)) for batch in self._pairs.batches]
        coded = pa.chunked_array(columns, pa.string()).combine_chunks().dictionary_encode()
        return coded.dictionary.to_pylist(), coded.indices.to_numpy().astype(np.int32)[self._order]

    def name_all(self) -> None:
        """Know the names of all keys and columns: for who tells many."""
        _ = self.table_numbers, self.names, self._coded_columns

    def values_of(self, number: int, aggregate: str) -> F64:
        """One number for each value of the pair's key; NaN where there is none."""
        batch, row = self._pairs.locate(int(self._order[number]))
        values = np.frombuffer(batch.column("values")[row].as_buffer(), np.float64)
        if batch.column("repeated")[row].as_py():
            found: F64 = values.reshape(len(AGGREGATES), -1)[AGGREGATES.index(aggregate)]
            return found
        return np.where(np.isnan(values), np.nan, 1.0) if aggregate == "count" else values

    def sides_of(self, number: int) -> npt.NDArray[np.uint64]:
        """The words of a pair."""
        batch, row = self._pairs.locate(int(self._order[number]))
        return np.frombuffer(batch.column("sides")[row].as_buffer(), np.uint64).reshape(ROWS, -1)

    @staticmethod
    def _block(batches: _RecordBatches, number: int, name: str) -> pa.Buffer:
        batch, row = batches.locate(number)
        return batch.column(name)[row].as_buffer()


class _RecordBatches:
    """Record batches one after the other, read by the number of a record."""

    def __init__(self, batches: list[LiveRecords]) -> None:
        self.batches = batches
        self._starts = [0, *itertools.accumulate(batch.live.size for batch in batches)]

    def all_of(self, name: str) -> list[Any]:
        """A field of all records."""
        found: list[Any] = []
        for batch in self.batches:
            values = batch.records.column(name).to_pylist()
            found += values if len(values) == batch.live.size else [values[row] for row in batch.live.tolist()]
        return found

    def texts(self, name: str) -> Callable[[list[int]], list[str]]:
        """A reader of a field of text, by the numbers of records: read in place, since an answer has many."""
        found = []
        for batch in self.batches:
            column = batch.records.column(name)
            _, offsets, data = column.buffers()
            ends = memoryview(offsets).cast("i")[column.offset :] if offsets else memoryview(b"").cast("i")
            whole = batch.live.size == len(column)
            found.append((ends, memoryview(data or b""), None if whole else batch.live))
        starts = self._starts

        def texts(numbers: list[int]) -> list[str]:
            told = []
            for number in numbers:
                at = bisect_right(starts, number) - 1
                ends, data, live = found[at]
                row = number - starts[at]
                if live is not None:
                    row = int(live[row])
                told.append(str(data[ends[row] : ends[row + 1]], "utf-8"))
            return told

        return texts

    def locate(self, number: int) -> tuple[pa.RecordBatch, int]:
        at = bisect_right(self._starts, number) - 1
        return self.batches[at].records, int(self.batches[at].live[number - self._starts[at]])


def _numbers(batches: list[LiveRecords], name: str) -> U64:
    found = [np.empty(0, np.uint64)]
    for batch, live in batches:
        column = batch.column(name)
        found.append(np.frombuffer(column.buffers()[1], np.uint64)[column.offset : column.offset + len(column)][live])
    return np.concatenate(found)
