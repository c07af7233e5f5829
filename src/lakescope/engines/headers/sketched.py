"""Phase 1 as the thesis has it: a HyperLogLog++ of every column, every table of the lake visited (spec-profiling 3.5).

Intersections are taken by inclusion and exclusion. For sets as small as those of web tables the counts are exact, and
so is what is found: the same as by lists. It is here to be compared with.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lakescope.engines.headers.corpus import HeadedColumns, HeaderCorpus
from lakescope.engines.headers.similar import NamelessTable, Sharing, Similar
from lakescope.sketches.hyperloglog import HyperLogLogPlusPlus
from lakescope.store.index import Index


class SketchSearch:
    """The sketches of a lake, ready for Algorithm 1."""

    def __init__(self, index: Index, headed: HeadedColumns) -> None:
        order: dict[tuple[str, int], bytes] = {}
        for batch, live in index.batches("sketches"):
            rows = batch.select(["table", "position", "distinct"]).to_pylist()
            for row in (rows[number] for number in live.tolist()):
                order[row["table"], row["position"]] = row["distinct"]
        self._columns = [HyperLogLogPlusPlus.from_bytes(order[key]) for key in sorted(order)]
        self.sizes = np.array([_count(each) for each in self._columns], np.int64)
        usable = headed.header_of >= 0
        self._tables = [
            _union([self._columns[column] for column in headed.columns_of(table) if usable[column]])
            for table in range(len(headed.tables))
        ]
        self.table_sizes = np.array([_count(each) for each in self._tables], np.int64)

    def sketch_of(self, number: int) -> HyperLogLogPlusPlus:
        """The sketch of a column of the lake."""
        return self._columns[number]

    def similar(self, table: NamelessTable, corpus: HeaderCorpus, threshold: float | None = 0.0) -> Similar:
        """Columns as the exact engine finds them, of tables that reach the threshold (None: of all)."""
        sketches = [column.sketch or HyperLogLogPlusPlus() for column in table.columns]
        sizes = [_count(sketch) for sketch in sketches]
        whole = _union(sketches)
        size = _count(whole)
        tables = np.zeros(len(self._tables))
        found: list[list[tuple[int, int]]] = [[] for _ in sketches]
        for number in np.unique(corpus.table).tolist():
            if number == table.number:
                continue
            there = int(self.table_sizes[number])
            # Jaccard cannot be more than the ratio of sizes.
            if threshold is not None and min(there, size) < threshold * max(there, size):
                continue
            common = _common(whole, size, self._tables[number], there)
            tables[number] = common / max(1, size + there - common)
            if threshold is not None and (tables[number] < threshold or not common):
                continue
            for column in corpus.own(number).tolist():
                for place, sketch in enumerate(sketches):
                    overlap = _common(sketch, sizes[place], self._columns[column], int(self.sizes[column]))
                    if overlap:
                        found[place].append((column, overlap))
        sharing = []
        for each, count in zip(found, sizes, strict=True):
            pairs = np.array(each, np.int64).reshape(-1, 2)
            sharing.append(Sharing(pairs[:, 0], pairs[:, 1], pairs[:, 1] / max(1, count)))
        return Similar(sharing, tables)


def _count(sketch: HyperLogLogPlusPlus) -> int:
    return round(sketch.estimate())


def _union(sketches: Sequence[HyperLogLogPlusPlus]) -> HyperLogLogPlusPlus:
    whole = HyperLogLogPlusPlus()
    for sketch in sketches:
        whole.merge(sketch)
    return whole


def _common(a: HyperLogLogPlusPlus, size_a: int, b: HyperLogLogPlusPlus, size_b: int) -> int:
    """Values in common by inclusion and exclusion, as many as there can be (3.4)."""
    return min(max(0, size_a + size_b - _count(_union([a, b]))), size_a, size_b)
