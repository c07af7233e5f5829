"""Keys of two columns, and references to them: which no column alone tells, so tables are read to be sure.

Columns that are included, each by itself, in two columns of another table and are named like them may refer to that
table's rows by both together. Both tables are read: the pair must be unique there, and here included.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from lakescope.array_types import U64
from lakescope.engines.keys.answers import ForeignKey, PrimaryKey
from lakescope.engines.keys.evidence import ColumnFacts, KeyCandidate, names_measure
from lakescope.errors import LakescopeError, NotFound
from lakescope.tables.key_names import similarity


@dataclass(frozen=True, slots=True)
class KeyPairTuning:
    """Which pairs of columns are tried as a key, and how many are read for it."""

    #: First columns of a table of which pairs may be its key. Not measured: a bound of time.
    columns: int = 6
    #: Pairs of columns that are read, at most. Not measured: a bound of time.
    most_read: int = 200
    #: Names of columns that refer to each other are at least so alike. Not measured.
    alike: float = 0.7
    #: Share of the rows in which a part of a key must be there. Not measured.
    filled: float = 0.95
    #: How sure a reference by two columns is whose values were all looked at. Not measured: no model was taught it.
    sure: float = 0.95


PAIRS = KeyPairTuning()


def may_be_part(facts: ColumnFacts) -> bool:
    """Whether a column may be one of two that are a key together: no key alone, and hardly ever missing."""
    return (
        not facts.unique
        and facts.fit
        and facts.distinct >= 2
        and facts.filled >= PAIRS.filled * facts.rows
        and not names_measure(facts)
    )


@dataclass(slots=True)
class PairReader:
    """Reads pairs of columns of tables, each pair once; ``locate`` says where a table lies.

    ``unread`` says which tables could not be read, ``left_out`` counts pairs beyond those that are read at most.
    """

    locate: Callable[[str], str]
    unread: list[str] = field(default_factory=list)
    left_out: int = 0
    _read: dict[tuple[str, tuple[str, str]], tuple[U64, int] | None] = field(default_factory=dict)

    def keys(self, table: str, columns: tuple[str, str]) -> tuple[U64, int] | None:
        """Hashes of the different pairs of a table, and the rows that have both; None if it cannot be read."""
        wanted = table, columns
        if wanted not in self._read:
            if len(self._read) >= PAIRS.most_read:
                self.left_out += 1
                return None
            try:
                self._read[wanted] = _pairs_of(self.locate(table), columns)
            except (LakescopeError, OSError) as error:
                self.unread.append(f"{table}: {error}")
                self._read[wanted] = None
        return self._read[wanted]

    def is_key(self, table: str, columns: tuple[str, str]) -> bool:
        """Whether a pair of columns tells the rows of a table apart."""
        found = self.keys(table, columns)
        return found is not None and found[1] >= 2 and found[0].size == found[1]


def _pairs_of(location: str, columns: tuple[str, str]) -> tuple[U64, int]:
    from lakescope.sketches.correlation import key_rows
    from lakescope.tables.reading import batches_of
    from lakescope.values.cells import understand

    parts, rows = [np.empty(0, np.uint64)], 0
    for batch in batches_of(location):
        known = {column.name: column for column in batch.columns}
        if lost := [name for name in columns if name not in known]:
            raise NotFound.among("column", lost[0], list(known))
        cells = [understand(known[name], batch.fallback) for name in columns]
        places, hashes = key_rows(
            [each.places for each in cells], [np.maximum(each.hashes, np.uint64(1)) for each in cells]
        )
        rows += int((places >= 0).sum())
        parts.append(np.unique(hashes))
    return np.unique(np.concatenate(parts)), rows


def references(candidates: Sequence[KeyCandidate], reader: PairReader, minimum: float) -> Iterator[ForeignKey]:
    """References by two columns, of columns that are each included in one that may be part of a key."""
    between: dict[tuple[str, str], list[KeyCandidate]] = defaultdict(list)
    for each in candidates:
        if each.child.table != each.parent.table and _named_alike(each):
            between[each.child.table, each.parent.table].append(each)
    for (child, parent), some in sorted(between.items()):
        for first, second in itertools.combinations(sorted(some, key=lambda each: each.parent.position), 2):
            if first.child.number == second.child.number or first.parent.number == second.parent.number:
                continue
            theirs = first.parent.column, second.parent.column
            if first.parent.distinct * second.parent.distinct < first.parent.rows or not reader.is_key(parent, theirs):
                continue
            mine = first.child.column, second.child.column
            found, there = reader.keys(child, mine), reader.keys(parent, theirs)
            if found is None or there is None or not found[0].size:
                continue
            common = int(np.isin(found[0], there[0], assume_unique=True).sum())
            share = common / found[0].size
            if share >= minimum:
                yield ForeignKey(
                    child_table=child,
                    child_columns=mine,
                    parent_table=parent,
                    parent_columns=theirs,
                    inclusion=share,
                    low=share,
                    high=share,
                    exact=True,
                    coverage=common / max(1, there[0].size),
                    score=PAIRS.sure,
                    orphans=(),
                    reasons=("named after them", "both together are the key: the tables were read"),
                )


def _named_alike(candidate: KeyCandidate) -> bool:
    child, parent = candidate.child, candidate.parent
    return child.column.lower() == parent.column.lower() or similarity(child.telling, parent.telling) >= PAIRS.alike


def keys_of_links(
    facts: Sequence[ColumnFacts], foreign: Sequence[ForeignKey], known: set[str], reader: PairReader
) -> Iterator[PrimaryKey]:
    """Keys of tables that have none of one column: two columns that others refer to, or that refer to others."""
    rows = {each.table: each.rows for each in facts}
    pairs: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for each in foreign:
        if len(each.parent_columns) == 2:
            pairs[each.parent_table].append((each.parent_columns[0], each.parent_columns[1]))
    referring: dict[str, list[str]] = defaultdict(list)
    for each in foreign:
        if len(each.child_columns) == 1:
            referring[each.child_table].append(each.child_columns[0])
    for table, columns in referring.items():
        pairs[table] += list(itertools.combinations(columns[: PAIRS.columns], 2))
    for table in sorted(set(pairs) - known):
        for pair in pairs[table]:
            if reader.is_key(table, pair):
                count = sum(each.parent_table == table and each.parent_columns == pair for each in foreign)
                yield PrimaryKey(table, pair, rows[table], count, (), ("the two together: the table was read",))
                break
