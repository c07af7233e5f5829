"""Inclusions and keys of one opened index: sketches, catalog and inverted index brought together."""

from __future__ import annotations

import contextlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lakescope.array_types import F64
from lakescope.engines.joins.joinable import JoinSearch
from lakescope.engines.keys.answers import Estimator, ForeignKey, Inclusion, Method, PrimaryKey
from lakescope.engines.keys.composite import PAIRS, PairReader, keys_of_links, may_be_part, references
from lakescope.engines.keys.evidence import ColumnFacts, KeyCandidate, facts_of
from lakescope.engines.keys.foreign import Schema, detect
from lakescope.engines.keys.inclusion import EVIDENCE, EXACT, REGISTERS, UNKNOWN, IncludedPairs, InclusionSearch
from lakescope.engines.keys.sketched import SketchedColumns
from lakescope.errors import LakescopeError
from lakescope.once import once
from lakescope.results import Results
from lakescope.show.diagram import Box, Column, Edge
from lakescope.store.index import Index

_INCLUSION_SHOWN = (
    *("child_table", "child_column", "parent_table", "parent_column", "inclusion", "low", "high"),
    *("child_size", "parent_size", "evidence"),
)
_FOREIGN_SHOWN = (
    *("child_table", "child_columns", "parent_table", "parent_columns", "inclusion", "coverage", "score", "reasons"),
)
_REINDEX = "an index with joins (built without --no-joins) can count them"


@dataclass(frozen=True, slots=True)
class KeySearchTuning:
    """Which estimates are good enough to look for keys by."""

    #: Intervals wider than this say too little to build on: values are counted. Not measured.
    wide: float = 0.2


KEY_SEARCH = KeySearchTuning()


_PRIMARY_SHOWN = ("table", "columns", "rows", "references", "others", "doubts", "reasons")


class KeySearch:
    """Answers about inclusions and keys, for one opened index."""

    def __init__(self, index: Index, joins: JoinSearch | None) -> None:
        self._index = index
        self._joins = joins
        self._schemas: dict[tuple[object, ...], Schema] = {}

    @once
    def records(self) -> list[dict[str, Any]]:
        """The catalog of columns."""
        return list(self._index.catalog("columns").to_pylist(maps_as_pydicts="strict"))

    @once
    def _sizes(self) -> F64:
        if self._joins is not None:
            return self._joins.inverted.sizes.astype(np.float64)
        return np.array([record["distinct"] for record in self.records], np.float64)

    @once
    def pairs(self) -> InclusionSearch:
        """All columns, ready for loops over pairs of them."""
        if self._joins is not None:
            self._joins.overlaps.load()
        columns = SketchedColumns.of_index(self._index, self._sizes, self._joins is not None)
        return InclusionSearch(columns, self._joins.overlaps if self._joins is not None else None)

    def inclusions(
        self,
        minimum: float,
        estimator: Estimator,
        *,
        verify: bool,
        least: int,
        limit: int | None,
        table: str | None = None,
    ) -> Results[Inclusion]:
        """Pairs of columns of which the first is included in the second to at least the minimum: all, or of a table."""
        found = self.all_pairs(minimum=minimum, estimator=estimator, verify=verify, least=least)
        if table is not None:
            found = self._of_table(found, table)
        unknown = int((found.evidence == UNKNOWN).sum())
        shown = self._ordered(found, minimum)
        notes = []
        if unknown:
            notes.append(
                f"{unknown:,} pairs of a small and a very large column cannot be told by sketches: "
                f"{'verify=True (--verify) counts them' if self._joins is not None else _REINDEX}"
            )
        count = int(shown.shares.size)
        if limit is not None and count > limit:
            notes.append(f"{count:,} pairs were found, the first {limit:,} are shown")
        info = {"looked_at": found.looked_at, "found": count, "unknown": unknown}
        records = list(self.records_of(shown.take(np.arange(min(count, count if limit is None else limit)))))
        return Results(Inclusion, records, shown=_INCLUSION_SHOWN, notes=notes, info=info)

    def _of_table(self, found: IncludedPairs, table: str) -> IncludedPairs:
        """Pairs of which one column at least is a table's."""
        tables = self._index.column_names[0]
        first, behind = bisect_left(tables, table), bisect_right(tables, table)
        sides = [(first <= each) & (each < behind) for each in (found.children, found.parents)]
        return found.take(sides[0] | sides[1])

    def all_pairs(self, **options: Any) -> IncludedPairs:
        """All pairs of the lake of which one column may be included in the other."""
        return self.pairs.search(**options)

    def children_of(
        self, minimum: float, estimator: Estimator, *, verify: bool, least: int, parents: Sequence[int]
    ) -> tuple[IncludedPairs, IncludedPairs]:
        """Children of some columns, in order, and those of which sketches cannot tell."""
        found = self.pairs.search(minimum, estimator=estimator, verify=verify, least=least, parents=parents)
        return self._ordered(found, minimum), self._undecided(found)

    def _undecided(self, found: IncludedPairs) -> IncludedPairs:
        """Pairs that sketches cannot tell: anything is possible."""
        unknown = found.take(found.evidence == UNKNOWN)
        return replace(unknown, lows=np.zeros_like(unknown.lows), highs=np.ones_like(unknown.highs))

    def _ordered(self, found: IncludedPairs, minimum: float) -> IncludedPairs:
        """Pairs that reach the minimum, the largest shares first, then the largest children."""
        shown = found.take((found.evidence != UNKNOWN) & (found.shares >= minimum - 1e-9))
        return shown.take(np.lexsort((shown.parents, shown.children, -self._sizes[shown.children], -shown.shares)))

    def records_of(self, found: IncludedPairs) -> Iterator[Inclusion]:
        """Records of pairs."""
        for at in range(found.shares.size):
            child, parent = (self.records[int(each[at])] for each in (found.children, found.parents))
            yield Inclusion(
                child_table=child["table"],
                child_column=child["column"],
                parent_table=parent["table"],
                parent_column=parent["column"],
                inclusion=float(found.shares[at]),
                low=float(found.lows[at]),
                high=float(found.highs[at]),
                exact=bool(found.evidence[at] == EXACT),
                child_size=int(self._sizes[found.children[at]]),
                parent_size=int(self._sizes[found.parents[at]]),
                evidence=EVIDENCE[int(found.evidence[at])],
            )

    # --- keys ---------------------------------------------------------------------------------------------------------

    @once
    def facts(self) -> list[ColumnFacts]:
        return facts_of(self.records, self._sizes.tolist() if self._joins is not None else None)

    def candidates(self, estimator: Estimator, *, verify: bool, minimum: float) -> tuple[list[KeyCandidate], int]:
        """Columns that are included in a key; where sketches cannot tell, values are counted.

        And how many pairs could neither be told nor counted.
        """
        parents = [each.number for each in self.facts if each.key_like]
        found = self.pairs.search(minimum, estimator=estimator, verify=verify, parents=parents)
        # An interval that reaches the minimum is no more than a reason to count (4.9).
        wide = (found.evidence == REGISTERS) & (found.highs - found.lows > KEY_SEARCH.wide)
        unsure = (found.shares < minimum) | wide | (found.evidence == UNKNOWN)
        if self._joins is None:
            return self._as_candidates(found.take(~unsure)), int(unsure.sum())
        return self._as_candidates(self.pairs.count_common(found, minimum, unsure)), 0

    def _as_candidates(self, found: IncludedPairs) -> list[KeyCandidate]:
        facts = self.facts
        return [
            KeyCandidate(
                facts[child], facts[parent], float(share), float(low), float(high), exact=bool(evidence == EXACT)
            )
            for child, parent, share, low, high, evidence in zip(
                found.children.tolist(),
                found.parents.tolist(),
                found.shares,
                found.lows,
                found.highs,
                found.evidence,
                strict=True,
            )
        ]

    def schema(self, method: Method, estimator: Estimator, *, verify: bool, minimum: float) -> Schema:
        """Primary and foreign keys, and what was withheld.

        If values are to be counted, keys of two columns are looked for, too: tables are read for that.
        """
        asked = method, estimator, verify, minimum
        if asked not in self._schemas:
            candidates, left_out = self.candidates(estimator, verify=verify, minimum=minimum)
            orphans = None if self._joins is None else self._orphans_read if verify else self._orphans
            found = detect(self.facts, candidates, method, orphans)
            if left_out:
                told = f"{left_out:,} pairs cannot be told by sketches and were left out: {_REINDEX}"
                found = replace(found, notes=(told,))
            self._schemas[asked] = self._with_pairs(found, minimum) if verify else found
        return self._schemas[asked]

    def _with_pairs(self, found: Schema, minimum: float) -> Schema:
        """A schema with keys of two columns added, for which tables are read."""
        reader = PairReader(self._places.__getitem__)
        parts = [each.number for each in self.facts if may_be_part(each) and each.position < PAIRS.columns]
        pairs = self.pairs.search(minimum, verify=True, parents=parts)
        candidates = self._as_candidates(pairs)
        foreign = [*found.foreign, *references(candidates, reader, minimum)]
        known = {each.table for each in found.primary}
        primary = [*found.primary, *keys_of_links(self.facts, foreign, known, reader)]
        notes = [f"not read for keys of two columns: {each}" for each in reader.unread]
        if reader.left_out:
            notes.append(f"{reader.left_out:,} more pairs of columns might be keys: they were not read")
        return Schema(sorted(primary, key=lambda each: each.table), foreign, found.withheld, (*found.notes, *notes))

    @once
    def _places(self) -> dict[str, str]:
        from lakescope.tables.reading import located

        tables = self._index.catalog("tables")
        pairs = zip(tables["table"].to_pylist(), tables["uri"].to_pylist(), strict=True)
        return {table: located(table, uri) for table, uri in pairs}

    def _orphans(self, child: int, parent: int) -> tuple[str, ...]:
        """Examples of values of a column that another does not hold."""
        return self._joins.missing(child, parent) if self._joins is not None else ()

    def _orphans_read(self, child: int, parent: int) -> tuple[str, ...]:
        """Examples of values of a column that another lacks, read from the table itself if the index knows none."""
        known = self._orphans(child, parent)
        if known or self._joins is None:
            return known
        facts = self.facts[child]
        with contextlib.suppress(LakescopeError, OSError):
            return self._joins.missing_of(self._places[facts.table], facts.column, parent)
        return ()

    def drawn(self, schema: Schema) -> tuple[list[Box], list[Edge]]:
        """A schema as boxes and edges of a picture."""
        keys = {each.table: set(each.columns) for each in schema.primary}
        referring: dict[str, set[str]] = {}
        for each in schema.foreign:
            referring.setdefault(each.child_table, set()).update(each.child_columns)
        columns: dict[str, list[Column]] = {}
        rows: dict[str, int] = {}
        for record in self.records:
            table, name = record["table"], record["column"]
            made = Column(name, record["type"], name in keys.get(table, ()), name in referring.get(table, ()))
            columns.setdefault(table, []).append(made)
            rows[table] = record["rows"]
        doubts = {each.table: "; ".join(each.doubts) for each in schema.primary}
        boxes = [Box(table, tuple(some), rows[table], doubts.get(table, "")) for table, some in columns.items()]
        return boxes, [_edge(each) for each in schema.foreign]


def _edge(found: ForeignKey) -> Edge:
    return Edge(
        *(found.child_table, found.child_columns, found.parent_table, found.parent_columns),
        *(found.inclusion, found.exact, found.orphans),
    )


def primary_results(schema: Schema) -> Results[PrimaryKey]:
    """The keys of tables as an answer."""
    return Results(PrimaryKey, schema.primary, shown=_PRIMARY_SHOWN)


def foreign_results(records: list[ForeignKey], notes: list[str], info: dict[str, Any]) -> Results[ForeignKey]:
    """References as an answer."""
    return Results(ForeignKey, records, shown=_FOREIGN_SHOWN, notes=notes, info=info)
