"""Distinct values of the columns of a Spark DataFrame by any counters: one pass, states merged on the executors.

Every partition feeds its rows to counters of its own; one exchange brings the states of a column and a counter
together, where they are merged and read. The driver receives one estimate a column and counter, never a state.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakescope.build.shipping import Shipped, ship_package
from lakescope.errors import NotFound
from lakescope.sketches import codec
from lakescope.sketches.counter import Counter
from lakescope.sketches.design import Design, counter_kind
from lakescope.sketches.reading import ReadColumn, Reading
from lakescope.values.arrays import arrays_of
from lakescope.values.hashed import hash_array

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SCHEMA = pa.schema([("column", pa.int32()), ("counter", pa.int32()), ("state", pa.binary())])
_DDL = "column int, counter int, state binary"
_READING_SCHEMA = pa.schema([("column", pa.int32()), ("counter", pa.int32()), ("reading", pa.string())])
_READING_DDL = "column int, counter int, reading string"
_STATE = "count"

Arrow = Iterator[pa.RecordBatch]


def count_frame(frame: DataFrame, columns: Sequence[str] | None, designs: Sequence[Design]) -> list[ReadColumn]:
    """Count columns of a frame (all if none is named) with counters of these designs."""
    names = list(columns) if columns is not None else list(frame.columns)
    for name in names:
        if name not in frame.columns:
            raise NotFound.among("column", name, frame.columns)
    places = [frame.columns.index(name) for name in names]
    ship_package(frame.sparkSession)
    plain = frame.toDF(*(f"c{number}" for number in range(len(frame.columns))))
    chosen = plain.select(*(f"c{place}" for place in places))
    kinds = tuple((made.name, json.dumps(made.parameters)) for made in designs)
    merged = (
        chosen.mapInArrow(Shipped.of(UpdateCounters(kinds)), _DDL)
        .repartition("column", "counter")
        .mapInArrow(Shipped.of(MergeCounters(kinds)), _READING_DDL)
    )
    found = {(row["column"], row["counter"]): json.loads(row["reading"]) for row in merged.collect()}
    return [_read(name, place, found, designs) for place, name in enumerate(names)]


def _read(name: str, place: int, found: dict[tuple[int, int], Any], designs: Sequence[Design]) -> ReadColumn:
    readings = []
    rows = nulls = 0
    for number, made in enumerate(designs):
        if (place, number) in found:
            rows, nulls, reading = found[place, number]
            readings.append(Reading(*reading))
        else:  # a frame without rows may have no partition
            readings.append(Reading.of(made.make(), 0.0))
    return ReadColumn("frame", name, rows, nulls, readings)


@dataclass(slots=True)
class _Tally:
    """A counter with what it was fed."""

    counter: Counter
    rows: int = 0
    nulls: int = 0
    seconds: float = 0.0

    def pack(self) -> bytes:
        return codec.pack(
            *(_STATE, 1),
            {"rows": self.rows, "nulls": self.nulls, "seconds": self.seconds, "counter": self.counter.to_bytes()},
        )


Kinds = tuple[tuple[str, str], ...]


def _make(kinds: Kinds) -> list[Counter]:
    return [counter_kind(name)(**json.loads(parameters)) for name, parameters in kinds]


@dataclass(frozen=True, slots=True)
class UpdateCounters:
    """Task: feed the rows of a partition to the counters of every column, each value hashed once."""

    kinds: Kinds

    def __call__(self, batches: Arrow) -> Arrow:
        tallies: dict[tuple[int, int], _Tally] = {}
        for batch in batches:
            for place, column in enumerate(batch.columns):
                if (place, 0) not in tallies:
                    made = _make(self.kinds)
                    tallies |= {(place, number): _Tally(counter) for number, counter in enumerate(made)}
                self._add(column, [tallies[place, number] for number in range(len(self.kinds))])
        for (column, number), tally in tallies.items():
            yield pa.record_batch([[column], [number], [tally.pack()]], schema=_SCHEMA)

    def _add(self, column: Any, tallies: list[_Tally]) -> None:
        for array in arrays_of(column):
            hashes, valid = hash_array(array)
            seen = hashes[valid]
            for tally in tallies:
                began = time.process_time()
                tally.counter.update_hashes(seen)
                tally.seconds += time.process_time() - began
                tally.rows += hashes.size
                tally.nulls += hashes.size - seen.size


@dataclass(frozen=True, slots=True)
class MergeCounters:
    """Task: merge the states of a column and a counter."""

    kinds: Kinds

    def __call__(self, batches: Arrow) -> Arrow:
        tallies: dict[tuple[int, int], _Tally] = {}
        for batch in batches:
            for column, number, state in zip(*(part.to_pylist() for part in batch.columns), strict=True):
                fields = codec.unpack(state, _STATE, 1)
                counter = counter_kind(self.kinds[number][0]).from_bytes(fields["counter"])
                tally = tallies.get((column, number))
                if tally is None:
                    tallies[column, number] = _Tally(counter, fields["rows"], fields["nulls"], fields["seconds"])
                else:
                    began = time.process_time()
                    tally.counter.merge(counter)
                    tally.rows += fields["rows"]
                    tally.nulls += fields["nulls"]
                    tally.seconds += fields["seconds"] + time.process_time() - began
        for (column, number), tally in tallies.items():
            reading = json.dumps([tally.rows, tally.nulls, Reading.of(tally.counter, tally.seconds)])
            yield pa.record_batch([[column], [number], [reading]], schema=_READING_SCHEMA)
