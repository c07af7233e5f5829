"""The columns of a lake as sketches of their values, laid out for loops over all pairs.

Columns are in order of their number of values. Of a column with few values the list of its HyperLogLog++ is kept and
the registers it fills, of one with many all registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from lakescope.array_types import F64, I32, I64, U8, U32
from lakescope.sketches.hyperloglog import HyperLogLogPlusPlus
from lakescope.sketches.kernels import hll_sparse_to_dense
from lakescope.sketches.loglog import fold_registers
from lakescope.store.index import Index

#: Precision of the sketches of an index: part of the format.
PRECISION = 14
#: Precision to which registers are folded for a first look: 1 KB a column. Not measured.
_FEW = 10
#: Values that a register may have.
_LEVELS = 66 - PRECISION
#: Families of types: values of different ones are written differently, text may be anything.
_FAMILIES = {
    "integer": 1,
    "decimal": 1,
    "boolean": 2,
    "date": 4,
    "timestamp": 4,
    "time": 8,
}
#: All families: text.
_ANY = 15


@dataclass(slots=True)
class SketchedColumns:
    """Arrays with an entry for each column, in order of ``sizes``; ``numbers`` says which column of the lake it is."""

    numbers: I64
    sizes: F64
    exact_sizes: bool
    families: U8
    lows: F64
    highs: F64
    starts: I64
    places: I32
    runs: U8
    entry_starts: I64
    entries: U32
    dense_rows: I64
    dense: U8
    few: U8
    histograms: I32
    _place_of: dict[int, int] = field(default_factory=dict)

    @property
    def count(self) -> int:
        return int(self.numbers.size)

    def place_of(self, number: int) -> int | None:
        """Where a column of the lake is, if it has values."""
        if not self._place_of:
            self._place_of = {each: place for place, each in enumerate(self.numbers.tolist())}
        return self._place_of.get(number)

    def registers(self, place: int) -> U8:
        """All registers of a column."""
        if self.dense_rows[place] >= 0:
            found: U8 = self.dense[self.dense_rows[place]]
            return found
        registers = np.zeros(1 << PRECISION, np.uint8)
        part = slice(self.starts[place], self.starts[place + 1])
        registers[self.places[part]] = self.runs[part]
        return registers

    @classmethod
    def of_index(cls, index: Index, sizes: F64, exact_sizes: bool) -> SketchedColumns:
        """All columns of an index; ``sizes`` are their numbers of distinct values, by number of the column."""
        catalog = index.fields("columns", ("table", "column", "type", "type_share", "minimum", "maximum"))
        numbers = {
            key: number
            for number, key in enumerate(zip(catalog["table"].to_pylist(), catalog["column"].to_pylist(), strict=True))
        }
        sketches: dict[int, HyperLogLogPlusPlus] = {}
        for batch, live in index.batches("sketches"):
            blobs = batch.column("distinct")
            tables, columns = batch.column("table").to_pylist(), batch.column("column").to_pylist()
            for row in live.tolist():
                number = numbers[tables[row], columns[row]]
                sketches[number] = HyperLogLogPlusPlus.from_bytes(blobs[row].as_buffer())
        types = zip(catalog["type"].to_pylist(), catalog["type_share"].to_pylist(), strict=True)
        # A few cells of another type than the column's may be most of its values.
        families = np.array([_FAMILIES.get(type, _ANY) if share == 1.0 else _ANY for type, share in types], np.uint8)
        lows, highs = (_numbers(catalog[name].to_pylist(), families) for name in ("minimum", "maximum"))
        return cls.of(sketches, sizes, families, lows, highs, exact_sizes=exact_sizes)

    @classmethod
    def of(
        cls,
        sketches: dict[int, HyperLogLogPlusPlus],
        sizes: F64,
        families: U8,
        lows: F64,
        highs: F64,
        *,
        exact_sizes: bool,
    ) -> SketchedColumns:
        """Columns by number; those without values are left out."""
        numbers = np.array([each for each in sorted(sketches) if sizes[each] > 0], np.int64)
        numbers = numbers[np.argsort(sizes[numbers], kind="stable")]
        places: list[I32] = []
        runs: list[U8] = []
        entries: list[U32] = []
        dense: list[U8] = []
        dense_rows = np.full(numbers.size, -1, np.int64)
        histograms = np.zeros((numbers.size, _LEVELS), np.int32)
        for at, number in enumerate(numbers.tolist()):
            sketch = sketches[number]
            registers = registers_of(sketch)
            histograms[at] = np.bincount(registers, minlength=_LEVELS)
            if sketch.registers is None:
                filled = np.flatnonzero(registers).astype(np.int32)
                places.append(filled)
                runs.append(registers[filled])
                entries.append(sketch.entries)
            else:
                dense_rows[at] = len(dense)
                dense.append(registers)
                places.append(np.empty(0, np.int32))
                runs.append(np.empty(0, np.uint8))
                entries.append(np.empty(0, np.uint32))
        return cls(
            numbers=numbers,
            sizes=sizes[numbers],
            exact_sizes=exact_sizes,
            families=families[numbers],
            lows=lows[numbers],
            highs=highs[numbers],
            starts=_starts(places),
            places=np.concatenate([np.empty(0, np.int32), *places]),
            runs=np.concatenate([np.empty(0, np.uint8), *runs]),
            entry_starts=_starts(entries),
            entries=np.concatenate([np.empty(0, np.uint32), *entries]),
            dense_rows=dense_rows,
            dense=np.array(dense, np.uint8).reshape(-1, 1 << PRECISION),
            few=np.array([fold_registers(each, PRECISION, _FEW) for each in dense], np.uint8).reshape(-1, 1 << _FEW),
            histograms=histograms,
        )


def registers_of(sketch: HyperLogLogPlusPlus, precision: int = PRECISION) -> U8:
    """All registers of a sketch, at its precision or a smaller one."""
    entries = sketch.settled()
    if sketch.registers is not None:
        return fold_registers(sketch.registers, sketch.precision, precision)
    registers = np.zeros(1 << precision, np.uint8)
    hll_sparse_to_dense(registers, entries, precision)
    return registers


def fold_to_precision(registers: U8, precision: int) -> U8:
    """Registers of the index at a smaller precision."""
    return fold_registers(registers, PRECISION, precision)


def _starts(parts: Sequence[npt.NDArray[np.generic]]) -> I64:
    return np.concatenate([[0], np.cumsum([part.size for part in parts])]).astype(np.int64)


def _numbers(texts: Sequence[str | None], families: U8) -> F64:
    """Extremes of columns of numbers; NaN of others, whose order is another one: "11" comes before "4" among texts."""
    found = np.full(len(texts), np.nan)
    for place in np.flatnonzero(families == _FAMILIES["integer"]).tolist():
        text = texts[place]
        found[place] = float(text) if text is not None else np.nan
    return found
