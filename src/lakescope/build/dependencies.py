"""Dependencies of tables that no memory holds: rows as hashes, a sample, and one aggregation for a round of candidates.

A row is packed as the eight bytes of each column's hash, zero where the value is missing. The driver receives a sample
of bounded size, a few pairs of rows for each candidate that is broken, and one line of sums for each that is scored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from lakescope import sources
from lakescope.array_types import U64
from lakescope.build.plan import UNIT_BYTES
from lakescope.build.shipping import Shipped, ship_package
from lakescope.errors import BadRequest
from lakescope.sources.formats.arrow_batches import text_batches
from lakescope.sources.model import Batch, Unit
from lakescope.values.cells import understand

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Arrow = Iterator[pa.RecordBatch]
Side = tuple[int, ...]

_ROW = pa.schema([("row", pa.binary()), ("unit", pa.int64()), ("first", pa.int64()), ("next", pa.int64())])
_ROW_DDL = "row binary, unit bigint, first bigint, next bigint"
_SIDE = pa.schema([("side", pa.int64()), ("x", pa.int64()), ("values", pa.binary())])
_SIDE_DDL = "side bigint, x bigint, values binary"
_COUNT = pa.schema([("fd", pa.int64()), ("x", pa.int64()), ("a", pa.int64()), ("rows", pa.int64())])
_COUNT_DDL = "fd bigint, x bigint, a bigint, rows bigint"
_WHOLE = 1 << 62
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
#: Pairs of rows that are learnt from, for each left side that is broken.
_PAIRS = 16


@dataclass(frozen=True, slots=True)
class HashedRows:
    """The rows of a table on Spark: names of its columns, and a frame of packed rows; how many there are."""

    names: tuple[str, ...]
    frame: DataFrame
    rows: int
    missing: tuple[int, ...]


def rows_of_frame(frame: DataFrame, missing: Sequence[int]) -> HashedRows:
    """A Spark frame as packed rows."""
    ship_package(frame.sparkSession)
    names = tuple(frame.columns)
    plain = frame.toDF(*(f"c{number}" for number in range(len(names))))
    return _counted(names, plain.mapInArrow(Shipped.of(RowsOfFrame(names, tuple(missing))), _ROW_DDL))[0]


def rows_of_table(session: SparkSession, plan: Callable[[int], list[Unit]], missing: Sequence[int]) -> HashedRows:
    """A table as packed rows; ``plan`` cuts it into pieces of about so many bytes, which executors read."""
    ship_package(session)
    found, met = _rows_of_units(session, plan(UNIT_BYTES), tuple(missing))
    if not met:
        # Quotes misled the cutting of the file into ranges: it is read as a whole.
        found, _ = _rows_of_units(session, plan(_WHOLE), tuple(missing))
    return found


def _names_of(units: Sequence[Unit]) -> tuple[str, ...]:
    for unit in units:
        for batch in sources.read(unit, lambda problem: None):
            return tuple(column.name for column in batch.columns)
    raise BadRequest("the table has no rows", hint="give a table with a header and rows")


def _rows_of_units(session: SparkSession, units: list[Unit], missing: tuple[int, ...]) -> tuple[HashedRows, bool]:
    names = _names_of(units)
    task = RowsOfUnits(tuple(unit.to_json() for unit in units), names, missing)
    return _counted(names, session.range(0, len(units), 1, len(units)).mapInArrow(Shipped.of(task), _ROW_DDL))


def _counted(names: tuple[str, ...], frame: DataFrame) -> tuple[HashedRows, bool]:
    """Rows and missing values are counted; whether the pieces of a file met."""
    from pyspark.sql import functions as f

    lacking = [
        f.sum((f.substring("row", 8 * place + 1, 8) == f.lit(bytes(8))).cast("long")).alias(f"m{place}")
        for place in range(len(names))
    ]
    counted = frame.groupBy("unit").agg(f.count("*").alias("rows"), f.min("first"), f.max("next"), *lacking).collect()
    spans = [(row[2], row[3]) for row in sorted(counted, key=lambda row: row[0]) if row[2] >= 0]
    met = all(before[1] == after[0] for before, after in pairwise(spans))
    missing = tuple(sum(int(row[4 + place]) for row in counted) for place in range(len(names)))
    return HashedRows(names, frame.select("row"), sum(row["rows"] for row in counted), missing), met


@dataclass(frozen=True, slots=True)
class RowsOfUnits:
    """Task: each input row is the number of a unit, whose rows are packed."""

    units: tuple[str, ...]
    names: tuple[str, ...]
    missing: tuple[int, ...]

    def __call__(self, batches: Arrow) -> Arrow:
        for numbers in batches:
            for number in numbers.column(0).to_pylist():
                for batch in sources.read(Unit.from_json(self.units[number]), lambda problem: None):
                    yield _packed(batch, self.names, self.missing, number)


@dataclass(frozen=True, slots=True)
class RowsOfFrame:
    """Task: the rows of a frame's partition, packed."""

    names: tuple[str, ...]
    missing: tuple[int, ...]

    def __call__(self, batches: Arrow) -> Arrow:
        for given in batches:
            named = given.rename_columns(list(self.names))
            for batch in text_batches([named], named.schema, "query", lambda problem: None):
                yield _packed(batch, self.names, self.missing, 0)


def _packed(batch: Batch, names: tuple[str, ...], missing: tuple[int, ...], unit: int) -> pa.RecordBatch:
    """Rows of a batch as the bytes of their hashes."""
    rows = np.zeros((batch.rows, len(names)), np.uint64)
    for column in batch.columns:
        if column.name not in names:
            raise BadRequest(
                f"column {column.name!r} is not in the first rows of the table",
                hint="tables whose columns change on the way are read in memory only: leave spark out",
            )
        cells = understand(column, batch.fallback)
        hashes = np.maximum(cells.hashes, np.uint64(1))
        if missing:
            hashes[np.isin(hashes, np.array(missing, np.uint64))] = 0
        rows[:, names.index(column.name)] = np.append(hashes, np.uint64(0))[cells.places]
    first, following = batch.span or (-1, -1)
    count = np.full(batch.rows, unit, np.int64)
    ends = [np.full(batch.rows, end, np.int64) for end in (first, following)]
    return pa.record_batch([_binary(rows), *map(pa.array, (count, *ends))], schema=_ROW)


def _binary(rows: U64) -> pa.Array:
    """Rows of numbers as cells of bytes."""
    offsets = np.arange(rows.shape[0] + 1, dtype=np.int32) * np.int32(8 * rows.shape[1])
    return pa.Array.from_buffers(
        pa.binary(), rows.shape[0], [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(rows))]
    )


def _numbers(cells: pa.Array, columns: int) -> U64:
    """Cells of bytes as rows of numbers."""
    if not len(cells):
        return np.zeros((0, columns), np.uint64)
    offsets = np.frombuffer(cells.buffers()[1], np.int32)
    begin = int(offsets[cells.offset])
    data = np.frombuffer(cells.buffers()[2], np.uint8)[begin : begin + 8 * columns * len(cells)]
    return data.view(np.uint64).reshape(-1, columns)


def sample(table: HashedRows, count: int) -> U64:
    """Rows whose hashes are the smallest: by chance, and the same whatever the partitions."""
    from pyspark.sql import functions as f

    chosen = table.frame.select("row", f.xxhash64("row").alias("h")).orderBy("h", "row").limit(count).select("row")
    found = [np.frombuffer(row["row"], np.uint64) for row in chosen.collect()]
    return np.array(found, np.uint64).reshape(-1, len(table.names))


def different_rows(table: HashedRows, nulls: str) -> int:
    """How many rows there are without repetitions; a row that lacks a value is like no other if none equals another."""
    from pyspark.sql import functions as f

    whole = f.lit(True)
    for place in range(len(table.names)):
        whole = whole & (f.substring("row", 8 * place + 1, 8) != f.lit(bytes(8)))
    named = table.frame.select(f.xxhash64("row").alias("h"), whole.alias("whole"))
    if nulls == "equal":
        return int(named.select("h").distinct().count())
    complete = int(named.where("whole").select("h").distinct().count())
    return complete if nulls == "skip" else complete + int(named.where("not whole").count())


# --- validation -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CutRows:
    """Task: for every left side, the hash of a row's values there, its values on the right, and the whole row.

    Missing values are one value (``equal``), none equals another (``distinct``), or their rows do not count (``skip``).
    """

    columns: int
    sides: tuple[tuple[Side, Side], ...]
    nulls: str

    def __call__(self, batches: Arrow) -> Arrow:
        for batch in batches:
            rows = _counting(_numbers(batch.column(0), self.columns), self.nulls)
            for number, (lhs, rhs) in enumerate(self.sides):
                yield self._cut(rows, number, lhs, rhs)

    def _cut(self, rows: U64, number: int, lhs: Side, rhs: Side) -> pa.RecordBatch:
        if self.nulls == "distinct":
            rows = rows[(rows[:, lhs] != 0).all(axis=1)]
        values = _unlike(rows[:, rhs]) if self.nulls == "distinct" else rows[:, rhs]
        x = _mixed(rows[:, lhs])
        both = np.ascontiguousarray(np.concatenate([values, rows], axis=1))
        # Of rows that are alike on both sides one is enough.
        order = np.lexsort((*values.T, x))
        new = np.ones(order.size, np.bool_)
        new[1:] = (x[order[1:]] != x[order[:-1]]) | (values[order[1:]] != values[order[:-1]]).any(axis=1)
        kept = order[new]
        side = np.full(kept.size, number, np.int64)
        return pa.record_batch([pa.array(side), pa.array(x[kept].view(np.int64)), _binary(both[kept])], schema=_SIDE)


def _counting(rows: U64, nulls: str) -> U64:
    return rows[(rows != 0).all(axis=1)] if nulls == "skip" else rows


def _unlike(values: U64) -> U64:
    """Missing values as numbers of their own."""
    found = values.copy()
    gone = found == 0
    found[gone] = np.random.default_rng().integers(1, 1 << 63, int(gone.sum()), np.uint64)
    return found


def _mixed(values: U64) -> U64:
    """One hash of several columns."""
    h = np.zeros(values.shape[0], np.uint64)
    for column in values.T:
        h = (h ^ column) * _MULTIPLIER
        h ^= h >> np.uint64(29)
    return h


def broken(table: HashedRows, sides: Sequence[tuple[Side, Side]], nulls: str) -> list[list[tuple[U64, U64]]]:
    """For every left side with several right ones: pairs of rows that agree on the first and differ on those.

    One aggregation for all of them: the smallest and the largest of a group, right sides first, are different rows if
    the right sides are.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    task = CutRows(len(table.names), tuple(sides), nulls)
    cut = table.frame.mapInArrow(Shipped.of(task), _SIDE_DDL)
    ends = cut.groupBy("side", "x").agg(f.min("values").alias("low"), f.max("values").alias("high"))
    widths = f.element_at(f.array(*(f.lit(8 * len(rhs)) for _, rhs in sides)), (f.col("side") + 1).cast("int"))
    left = [f.substring(f.col(name), f.lit(1), widths) for name in ("low", "high")]
    rank = f.row_number().over(Window.partitionBy("side").orderBy("x"))
    few = ends.where(left[0] != left[1]).withColumn("rank", rank).where(f.col("rank") <= _PAIRS)
    found: list[list[tuple[U64, U64]]] = [[] for _ in sides]
    for row in few.select("side", "low", "high").collect():
        skipped = len(sides[row["side"]][1])
        low, high = (np.frombuffer(row[name], np.uint64)[skipped:] for name in ("low", "high"))
        found[row["side"]].append((low, high))
    return found


# --- scores -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CountRows:
    """Task: for every dependency, rows by the values of its left side and of its right one."""

    columns: int
    fds: tuple[tuple[Side, int, str], ...]

    def __call__(self, batches: Arrow) -> Arrow:
        for batch in batches:
            rows = _numbers(batch.column(0), self.columns)
            for number, (lhs, rhs, nulls) in enumerate(self.fds):
                yield self._counted(_counting(rows, nulls), number, lhs, rhs, nulls)

    def _counted(self, rows: U64, number: int, lhs: Side, rhs: int, nulls: str) -> pa.RecordBatch:
        alone = 0
        if nulls == "distinct":
            whole = (rows[:, lhs] != 0).all(axis=1)
            alone = int(whole.size - whole.sum())
            rows = rows[whole]
        a = _unlike(rows[:, rhs]) if nulls == "distinct" else rows[:, rhs]
        both = np.stack([_mixed(rows[:, lhs]), a], axis=1)
        order = np.lexsort(both.T)
        new = np.ones(order.size, np.bool_)
        new[1:] = (both[order[1:]] != both[order[:-1]]).any(axis=1)
        places = np.flatnonzero(new)
        counts = np.diff(np.append(places, order.size)).astype(np.int64)
        x, a = both[order[places]].T
        fields = [
            pa.array(np.full(counts.size, number, np.int64)),
            *(pa.array(each.view(np.int64).copy()) for each in (x, a)),
            pa.array(counts),
        ]
        if alone:  # rows that lack a value on the left are groups of their own
            ends = [pa.array(last, pa.int64()) for last in ([number], [None], [None], [alone])]
            fields = [pa.concat_arrays(parts) for parts in zip(fields, ends, strict=True)]
        return pa.record_batch(fields, schema=_COUNT)


class GroupSums(NamedTuple):
    """Of a dependency under a semantics: rows kept, sums of their shares and of squares' shares, groups, rows."""

    kept: int = 0
    shares: float = 0.0
    concentrated: float = 0.0
    groups: int = 0
    rows: int = 0


def likelihoods(table: HashedRows, fds: Sequence[tuple[Side, int, str]]) -> list[GroupSums]:
    """The sums over the groups of every dependency under a semantics."""
    from pyspark.sql import functions as f

    task = CountRows(len(table.names), tuple(fds))
    counted = table.frame.mapInArrow(Shipped.of(task), _COUNT_DDL)
    values = counted.groupBy("fd", "x", "a").agg(f.sum("rows").alias("c"))
    groups = values.groupBy("fd", "x").agg(
        f.max("c").alias("most"),
        f.sum("c").alias("all"),
        f.sum(f.col("c").cast("double") * f.col("c")).alias("squares"),
    )
    single = f.col("x").isNull()

    def of(inside: Any) -> Any:
        return f.sum(f.when(single, f.col("all")).otherwise(inside))

    sums = groups.groupBy("fd").agg(
        of(f.col("most")),
        of(f.col("most") / f.col("all")),
        of(f.col("squares") / f.col("all")),
        of(f.lit(1)),
        f.sum("all"),
    )
    found = {
        row[0]: GroupSums(int(row[1]), float(row[2]), float(row[3]), int(row[4]), int(row[5])) for row in sums.collect()
    }
    return [found.get(number, GroupSums()) for number in range(len(fds))]


# --- every table of a lake --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DependencySummary:
    """What is told of the dependencies of many tables: the best rows, rows of tables that have none, and how many."""

    best: list[list[Any]]
    unknown: list[list[Any]]
    dependencies: int
    tables: int


def best_of(frame: DataFrame, unknown: Sequence[str], limit: int, out: str | None) -> DependencySummary:
    """The rows with the highest scores and no flag, and those with a flag of these; all are written to ``out``."""
    from pyspark.sql import functions as f

    kept = frame.cache()
    try:
        if out is not None:
            kept.write.parquet(out)
        first = kept.where(f.size("flags") == 0).orderBy(f.desc("score"), "table", "lhs", "rhs").limit(limit)
        strange = kept.where(f.arrays_overlap("flags", f.array(*map(f.lit, unknown)))).orderBy("table")
        counts = kept.agg(f.count("*"), f.countDistinct("table")).collect()[0]
        best, rest = ([list(row) for row in part.collect()] for part in (first, strange))
        return DependencySummary(best, rest, counts[0], counts[1])
    finally:
        kept.unpersist()
