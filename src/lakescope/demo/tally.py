"""Counting what is written, while it is written: rows, missing cells, exact distinct values, values per key.

Truth is never taken from what the generator intended; it is counted from the very chunks handed to the file writer.
Memory is bounded: beyond :data:`CAP` different values a column is no longer counted, unless it is sorted, which needs
no memory at all. ``None`` then says "not counted", never a guess.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import pyarrow as pa
import pyarrow.compute as pc

from lakescope.demo import text

#: Most different values kept in memory for one column.
CAP = 1_000_000
#: Joins the cells of a composite key; occurs in no generated value.
GLUE = "\x1f"
#: Cells that are values here but that many a reader takes for missing (Namibia's country code is NA).
LOOKS_NULL = pa.array(["NA", "N/A", "n/a", "null", "NULL", "None", "NaN", "nan", "-", "?", "unknown"])


def canonical(column: pa.Array) -> pa.Array:
    """The column's cells as they count for equality: text trimmed and in Unicode form NFC, nulls kept."""
    cells = text.cells(column)
    if pa.types.is_string(column.type):
        cells = pc.utf8_trim_whitespace(pc.utf8_normalize(cells, form="NFC"))
    return cells


def composite(columns: Iterable[pa.Array]) -> pa.Array:
    """Several columns as one key; null where any part is."""
    parts = [canonical(column) for column in columns]
    return parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, GLUE)


class ValueSet:
    """The different values of a column, exact up to :data:`CAP`."""

    def __init__(self) -> None:
        self._parts: list[pa.Array] = []
        self._pending = 0
        self._merged = 0
        self.full = False

    def add(self, values: pa.Array) -> None:
        if self.full:
            return
        fresh = pc.unique(values.drop_null())
        self._parts.append(fresh)
        self._pending += len(fresh)
        if self._pending > 2 * max(self._merged, 50_000):
            self._merge()

    def _merge(self) -> None:
        merged = pc.unique(pa.concat_arrays(self._parts)) if self._parts else pa.array([], pa.string())
        self._parts, self._pending, self._merged = [merged], len(merged), len(merged)
        if self._merged > CAP:
            self.full, self._parts = True, []

    def values(self) -> pa.Array | None:
        """All values, or None when there were too many to keep."""
        if not self.full:
            self._merge()
        return None if self.full else self._parts[0]


class SortedCount:
    """Distinct values of a column that turns out to be sorted, counted in constant memory."""

    def __init__(self) -> None:
        self.count: int | None = 0
        self._last: pa.Scalar | None = None

    def add(self, column: pa.Array) -> None:
        column = column.drop_null()
        if self.count is None or len(column) == 0:
            return
        if not _ordered(column.type):
            self.count = None
            return
        if self._last is not None:
            column = pa.concat_arrays([pa.array([self._last.as_py()], column.type), column])
        left, right = column[:-1], column[1:]
        if len(left) and pc.any(pc.less(right, left)).as_py():
            self.count = None
            return
        steps = (pc.sum(pc.greater(right, left)).as_py() or 0) if len(left) else 0
        self.count += steps + (self._last is None)
        self._last = column[-1]


def _ordered(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_temporal(kind) or pa.types.is_string(kind))


class ColumnTally:
    """Nulls and distinct values of one column."""

    def __init__(self) -> None:
        self.nulls = 0
        self.set = ValueSet()
        self._sorted = SortedCount()

    def add(self, column: pa.Array) -> None:
        self.nulls += column.null_count
        self.set.add(canonical(pc.unique(column)))
        self._sorted.add(column)

    @property
    def distinct(self) -> int | None:
        values = self.set.values()
        return self._sorted.count if values is None else len(values)

    @property
    def looks_null(self) -> int:
        """How many of the different values look like a marker of missing values."""
        values = self.set.values()
        return 0 if values is None else int(pc.sum(pc.is_in(values, value_set=LOOKS_NULL)).as_py() or 0)


class Series:
    """Mean of a numeric column per key, over all rows of the key."""

    def __init__(self) -> None:
        self._sums: dict[str, float] = {}
        self._counts: dict[str, int] = {}

    def add(self, key: pa.Array, value: pa.Array) -> None:
        pairs = pa.table({"k": key, "v": pc.cast(value, pa.float64())}).drop_null()
        grouped = pairs.group_by("k", use_threads=False).aggregate([("v", "sum"), ("v", "count")])
        for name, total, count in zip(*(grouped[c].to_pylist() for c in ("k", "v_sum", "v_count")), strict=True):
            self._sums[name] = self._sums.get(name, 0.0) + total
            self._counts[name] = self._counts.get(name, 0) + count

    def means(self) -> dict[str, float]:
        return {key: total / self._counts[key] for key, total in self._sums.items()}

    def repeated(self) -> bool:
        """Whether some key has more than one row, so that joining needs an aggregate."""
        return any(count > 1 for count in self._counts.values())


class TableTally:
    """Everything counted about one table; ``sets``, ``series`` and ``whole`` only as far as some fact needs them."""

    def __init__(
        self, sets: Collection[tuple[str, ...]], series: Collection[tuple[tuple[str, ...], str]], whole: bool
    ) -> None:
        self.rows = 0
        self.columns: dict[str, ColumnTally] = {}
        self.sets = {columns: ValueSet() for columns in sets}
        self.series = {wanted: Series() for wanted in series}
        self.whole: list[pa.Table] | None = [] if whole else None

    def add(self, chunk: pa.Table) -> None:
        chunk = chunk.combine_chunks()
        self.rows += chunk.num_rows
        arrays = {name: _single(chunk[name]) for name in chunk.column_names}
        for name, array in arrays.items():
            self.columns.setdefault(name, ColumnTally()).add(array)
        for columns, values in self.sets.items():
            values.add(composite(arrays[name] for name in columns))
        for (key, value), series in self.series.items():
            series.add(composite(arrays[name] for name in key), arrays[value])
        if self.whole is not None:
            self.whole.append(chunk)

    def record(self) -> list[dict[str, object]]:
        """The columns for the truth file; afterwards the per-column sets are released."""
        found: list[dict[str, object]] = []
        for name, column in self.columns.items():
            entry: dict[str, object] = {"name": name, "nulls": column.nulls, "distinct": column.distinct}
            if column.looks_null:
                entry["looks_null"] = column.looks_null
            found.append(entry)
        self.columns = {}
        return found

    def table(self) -> pa.Table:
        """All rows, kept only for small tables a fact examines as a whole."""
        if self.whole is None:
            raise KeyError("this table was not kept: no fact asked for it")
        return pa.concat_tables(self.whole)


def _single(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    if not isinstance(combined, pa.ChunkedArray):
        return combined
    return combined.chunk(0) if combined.num_chunks else pa.array([], column.type)
