"""Phase 1: columns of the lake that share values with those of a table, tables alike first (spec-profiling 3.4, 3.5).

Two engines find the same. This one reads the lists of the inverted index for the values of the table, once for all its
columns. The thesis' own is in ``sketched``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from lakescope.array_types import F64, I32, I64
from lakescope.engines.headers.corpus import CorpusPart, HeadedColumns, HeaderCorpus
from lakescope.engines.headers.evidence import terms_of
from lakescope.engines.joins.inverted import InvertedIndex, TokenLookup
from lakescope.store.inverted import QueryGroups, ranges

if TYPE_CHECKING:
    from lakescope.sketches.hyperloglog import HyperLogLogPlusPlus

Record = dict[str, Any]


@dataclass(slots=True)
class NamelessColumn:
    """A column to be named: its profile, its values as the inverted index sees them, its sketch if there is one.

    ``shown`` are the values that its profile remembers, looked up once they are asked for; ``terms`` its looks.
    """

    record: Record
    groups: QueryGroups
    sketch: HyperLogLogPlusPlus | None = None
    shown: tuple[list[str], TokenLookup] | None = None
    terms: dict[str, list[str]] | None = None

    def terms_in(self, width: int) -> dict[str, list[str]]:
        """What it looks like in a table of so many columns; found out once."""
        if self.terms is None:
            self.terms = terms_of(self.record, width)
        return self.terms


@dataclass(slots=True)
class NamelessTable:
    """A table whose columns are to be named; ``number`` is there if it is one of the lake, which is then left out.

    ``groups`` are its values over all columns.
    """

    columns: list[NamelessColumn]
    groups: QueryGroups
    number: int | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def width(self) -> int:
        return len(self.columns)


@dataclass(frozen=True, slots=True)
class Sharing:
    """The columns of the lake that share values with one column: how many, and what share of its values that is."""

    numbers: I64
    overlaps: I64
    containment: F64


@dataclass(frozen=True, slots=True)
class Similar:
    """What shares values with a table: ``sharing`` for each of its columns, and the Jaccard similarity of tables."""

    sharing: list[Sharing]
    tables: F64


@dataclass(frozen=True, slots=True)
class Lists:
    """The columns of the corpus that hold each group of a table's values.

    ``numbers[starts[g]:starts[g + 1]]`` hold the group at place g of ``groups``.
    """

    groups: I32
    starts: I64
    numbers: I64

    def of(self, groups: I32) -> tuple[I64, I64]:
        """Columns that hold some of the groups, and the place among these groups of each."""
        at = np.searchsorted(self.groups, groups)
        starts = self.starts[at]
        lengths = self.starts[at + 1] - starts
        return self.numbers[ranges(starts, lengths)], np.repeat(np.arange(groups.size), lengths)


class ValueSearch:
    """Finds columns that share values with a table. It remembers sizes of tables."""

    def __init__(self, inverted: InvertedIndex, headed: HeadedColumns) -> None:
        self.inverted = inverted
        self._headed = headed
        self._sizes = np.full(len(headed.tables), -1, np.int64)

    def _sizes_of(self, tables: npt.NDArray[np.intp]) -> I64:
        """Distinct values of tables of the corpus: over their columns that have a header (3.3)."""
        for table in tables[self._sizes[tables] < 0].tolist():
            columns = [column for column in self._headed.columns_of(table) if self._headed.header_of[column] >= 0]
            self._sizes[table] = self.inverted.values_of_sets(columns).size
        return self._sizes[tables]

    def groups_of(self, table: int) -> QueryGroups:
        """The values of a table of the lake over all its columns, as those of a table to be named."""
        return self.inverted.values_of_sets(self._headed.columns_of(table))

    def lists(self, table: NamelessTable, part: CorpusPart) -> Lists:
        """Which columns of a part of the corpus hold the values of a table; its own columns are left out."""
        groups = table.groups.groups
        corpus = part.corpus
        starts, sets = self.inverted.lists(groups, part.columns)
        numbers = sets.astype(np.int64)
        kept = corpus.usable[numbers]
        if table.number is not None:
            kept &= corpus.columns.table_of[numbers] != table.number
        bounds = np.concatenate([[0], np.cumsum(kept)])[starts]
        return Lists(groups, bounds.astype(np.int64), numbers[kept])

    def similar(self, table: NamelessTable, part: CorpusPart, lists: Lists | None = None) -> Similar:
        """Exact overlaps with columns of a part of the corpus, and exact Jaccard similarities of its tables."""
        lists = lists or self.lists(table, part)
        sharing = []
        for column in table.columns:
            numbers, place = lists.of(column.groups.groups)
            found, where = np.unique(numbers, return_inverse=True)
            weights = column.groups.weights[place].astype(np.float64)
            overlaps = np.bincount(where, weights, found.size).astype(np.int64)
            sharing.append(Sharing(found, overlaps, overlaps / max(1, column.groups.size)))
        return Similar(sharing, self._tables(table, part.corpus, lists))

    def _tables(self, table: NamelessTable, corpus: HeaderCorpus, lists: Lists) -> F64:
        """Jaccard similarity of every table of the lake with the one in question; 0 of those that share nothing."""
        tables = len(self._headed.tables)
        place = np.repeat(np.arange(lists.groups.size), np.diff(lists.starts))
        pairs = np.unique(place * tables + corpus.columns.table_of[lists.numbers])
        group, owner = np.divmod(pairs, max(1, tables))
        common = np.bincount(owner, table.groups.weights[group].astype(np.float64), tables)
        found = np.zeros(tables)
        there = np.flatnonzero(common)
        found[there] = common[there] / (table.groups.size + self._sizes_of(there) - common[there])
        return found


@dataclass(frozen=True, slots=True)
class Weighted:
    """A header that columns sharing values propose: its number, its weight, and the column that weighs most."""

    header: int
    weight: float
    column: int
    overlap: int
    containment: float
    table_similarity: float


def propose(
    similar: Similar,
    corpus: HeaderCorpus,
    *,
    threshold: float | None = 0.4,
    k: int = 5,
    weighted: bool = True,
    popularity: F64 | None = None,
) -> list[list[Weighted]]:
    """Algorithm 1: per column the ``k`` headers of the columns that hold most of its values.

    Only tables whose similarity reaches the ``threshold`` count (0: that share a value); their columns' containments
    are multiplied by it if ``weighted``. No threshold (None): no filter and no weight, "no filtering" of the thesis. A
    header counts with its best column; ties go to the more popular, then to the first by name.
    """
    order = corpus.frequency if popularity is None else popularity
    found = []
    for each in similar.sharing:
        table = similar.tables[corpus.columns.table_of[each.numbers]]
        weight = each.containment * table if weighted and threshold is not None else each.containment
        kept = (weight > 0) & (True if threshold is None else (table >= threshold) & (table > 0))
        best: dict[int, Weighted] = {}
        for at in np.flatnonzero(kept)[np.argsort(-weight[kept], kind="stable")].tolist():
            number = int(each.numbers[at])
            header = int(corpus.columns.header_of[number])
            if header not in best:
                facts = int(each.overlaps[at]), float(each.containment[at]), float(table[at])
                best[header] = Weighted(header, float(weight[at]), number, *facts)
        found.append(best_weighted(best.values(), order, corpus.columns.headers)[:k])
    return found


def best_weighted(some: Iterable[Weighted], popularity: F64, names: Sequence[str]) -> list[Weighted]:
    """Headers in order of their weight, each once; ties go to the more popular, then to the first by name."""
    ranked = sorted(some, key=lambda one: (-one.weight, -popularity[one.header], names[one.header], one.column))
    return list({one.header: one for one in reversed(ranked)}.values())[::-1]
