"""Facts planted in the lake, as declarations: each says where it is, and how its truth is measured from the tallies.

Declaring facts before writing lets the tallies keep only what some fact will ask for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakescope.demo import dependencies as fd
from lakescope.demo.measures import pearson, ranks, without_trend
from lakescope.demo.tally import TableTally, canonical

Record = dict[str, Any]
Tallies = Mapping[str, TableTally]


@dataclass(frozen=True, slots=True)
class Ref:
    """One or more columns of a table."""

    table: str
    columns: tuple[str, ...]

    def record(self) -> Record:
        return {"table": self.table, "columns": list(self.columns)}


def ref(table: str, *columns: str) -> Ref:
    """Short for a :class:`Ref`, so that the declarations read easily."""
    return Ref(table, columns)


def _values(tallies: Tallies, where: Ref) -> pa.Array | None:
    return tallies[where.table].sets[where.columns].values()


def _overlap(tallies: Tallies, left: Ref, right: Ref) -> tuple[int | None, int | None, int | None]:
    """Sizes of both value sets and of what they share; None where too large to count."""
    a, b = _values(tallies, left), _values(tallies, right)
    if a is None or b is None:
        return None, None, None
    return len(a), len(b), int(pc.sum(pc.is_in(a, value_set=b)).as_py() or 0)


def _share(part: int | None, whole: int | None) -> float | None:
    return None if part is None or not whole else part / whole


@dataclass(frozen=True, slots=True)
class Join:
    """Two key columns that share values as they are written."""

    left: Ref
    right: Ref
    kind: str  #: "exact": every left value is on the right; "partial": a known share is
    planned: tuple[float, float] | None = None  #: containment the generator aimed at, both directions
    note: str = ""

    def truth(self, tallies: Tallies) -> Record:
        left, right, both = _overlap(tallies, self.left, self.right)
        return {
            "kind": self.kind,
            "left": self.left.record(),
            "right": self.right.record(),
            "left_distinct": left,
            "right_distinct": right,
            "overlap": both,
            "left_in_right": _share(both, left),
            "right_in_left": _share(both, right),
            "planned": list(self.planned) if self.planned else None,
            "note": self.note,
        }


@dataclass(frozen=True, slots=True)
class PlantedInclusion:
    """Child values found in a unique parent column: a foreign key, or a coincidence that must not be taken for one."""

    child: Ref
    parent: Ref
    database: str
    genuine: bool = True
    implied: bool = False  #: follows from another key (a part of a composite one); finding it is no mistake
    note: str = ""

    def truth(self, tallies: Tallies) -> Record:
        child, parent, both = _overlap(tallies, self.child, self.parent)
        orphans: list[str] | None = None
        values, known = _values(tallies, self.child), _values(tallies, self.parent)
        if values is not None and known is not None:
            orphans = sorted(values.filter(pc.invert(pc.is_in(values, value_set=known))).to_pylist())[:5]
        return {
            "database": self.database,
            "child_table": self.child.table,
            "child_columns": list(self.child.columns),
            "parent_table": self.parent.table,
            "parent_columns": list(self.parent.columns),
            "child_distinct": child,
            "parent_distinct": parent,
            "parent_unique": None if parent is None else parent == tallies[self.parent.table].rows,
            "inclusion": _share(both, child),
            "orphans": None if both is None or child is None else child - both,
            "orphan_examples": orphans,
            "implied": self.implied,
            "note": self.note,
        }


@dataclass(frozen=True, slots=True)
class Correlation:
    """Two numeric columns that go together (or do not) once their tables are joined on a key, mean per key."""

    left: Ref
    left_value: str
    right: Ref
    right_value: str
    shape: str  #: "linear", "monotone", "negative", "weak", "none", "trend"
    note: str = ""

    def truth(self, tallies: Tallies) -> Record:
        left = tallies[self.left.table].series[(self.left.columns, self.left_value)]
        right = tallies[self.right.table].series[(self.right.columns, self.right_value)]
        a, b = left.means(), right.means()
        keys = sorted(a.keys() & b.keys())
        x: npt.NDArray[np.float64] = np.array([a[k] for k in keys], dtype=np.float64)
        y: npt.NDArray[np.float64] = np.array([b[k] for k in keys], dtype=np.float64)
        single = len(self.left.columns) == 1
        return {
            "shape": self.shape,
            "left": {**self.left.record(), "value": self.left_value},
            "right": {**self.right.record(), "value": self.right_value},
            "aggregate": "mean",
            "left_repeats": left.repeated(),
            "right_repeats": right.repeated(),
            "left_keys": len(a),
            "right_keys": len(b),
            "joined_keys": len(keys),
            "containment": _share(len(keys), len(a)),
            "pearson": pearson(x, y),
            "spearman": pearson(ranks(x), ranks(y)) if len(keys) else None,
            "detrended": pearson(without_trend(x), without_trend(y)) if single and len(keys) else None,
            "note": self.note,
        }


@dataclass(frozen=True, slots=True)
class Transform:
    """Two key columns naming the same things in different spellings; ``how`` is the rule from left to right."""

    left: Ref
    right: Ref
    kind: str
    how: str

    def truth(self, entities: Mapping[str, npt.NDArray[np.int64]], tallies: Tallies) -> Record:
        pairs = _pairs(entities[self.left.table], entities[self.right.table])
        return {
            "kind": self.kind,
            "how": self.how,
            "left": self.left.record(),
            "right": self.right.record(),
            "left_rows": len(entities[self.left.table]),
            "right_rows": len(entities[self.right.table]),
            "matched": len(pairs),
            "examples": _examples(self.left, self.right, pairs, tallies),
            "pairs": pairs,
        }


@dataclass(frozen=True, slots=True)
class Lookup:
    """Two key columns linked by knowledge, not spelling: no transformation may be found. ``equal`` counts flukes."""

    left: Ref
    right: Ref
    relation: str

    def truth(self, entities: Mapping[str, npt.NDArray[np.int64]], tallies: Tallies) -> Record:
        pairs = _pairs(entities[self.left.table], entities[self.right.table])
        examples = _examples(self.left, self.right, pairs, tallies, limit=len(pairs))
        return {
            "relation": self.relation,
            "left": self.left.record(),
            "right": self.right.record(),
            "matched": len(pairs),
            "equal": sum(a == b for a, b in examples),
            "examples": examples[:5],
            "pairs": pairs,
        }


def _pairs(left: npt.NDArray[np.int64], right: npt.NDArray[np.int64]) -> list[list[int]]:
    """Row numbers (0-based) of rows about the same entity; -1 marks a row that has no partner."""
    where: dict[int, list[int]] = {}
    for row, entity in enumerate(right.tolist()):
        where.setdefault(entity, []).append(row)
    return [[row, other] for row, entity in enumerate(left.tolist()) if entity >= 0 for other in where.get(entity, ())]


def _examples(left: Ref, right: Ref, pairs: list[list[int]], tallies: Tallies, limit: int = 5) -> list[list[str]]:
    def keys(where: Ref) -> list[str]:
        table = tallies[where.table].table()
        columns = [canonical(table[name].combine_chunks()).to_pylist() for name in where.columns]
        return [" | ".join(map(str, row)) for row in zip(*columns, strict=True)]

    a, b = keys(left), keys(right)
    return [[a[i], b[j]] for i, j in pairs[:limit]]


@dataclass(frozen=True, slots=True)
class PlantedDependency:
    """A table with functional dependencies, the same table damaged by nulls, and the dependencies planted in it."""

    clean: str
    damaged: str
    planted: tuple[tuple[tuple[str, ...], str], ...]
    pattern: str  #: how the nulls were spread

    def truth(self, tallies: Tallies) -> Record:
        clean, damaged = tallies[self.clean].table(), tallies[self.damaged].table()
        return {
            "clean": self.clean,
            "damaged": self.damaged,
            "pattern": self.pattern,
            **fd.compare(clean, damaged, self.planted),
        }


@dataclass(frozen=True, slots=True)
class PlantedDisguise:
    """A value that stands for a missing one."""

    where: Ref
    marker: str
    note: str

    def truth(self, tallies: Tallies) -> Record:
        (column,) = self.where.columns
        cells = canonical(tallies[self.where.table].table()[column].combine_chunks())
        count = int(pc.sum(pc.equal(cells, self.marker)).as_py() or 0)
        return {"table": self.where.table, "column": column, "marker": self.marker, "count": count, "note": self.note}


Fact = Join | PlantedInclusion | Correlation | Transform | Lookup | PlantedDependency | PlantedDisguise


@dataclass(slots=True)
class TallyNeeds:
    """What the tally of one table has to keep."""

    sets: set[tuple[str, ...]]
    series: set[tuple[tuple[str, ...], str]]
    whole: bool = False


def needs(facts: tuple[Fact, ...]) -> dict[str, TallyNeeds]:
    """Per table, what the facts will ask its tally for."""
    found: dict[str, TallyNeeds] = {}

    def at(table: str) -> TallyNeeds:
        return found.setdefault(table, TallyNeeds(set(), set()))

    for fact in facts:
        match fact:
            case Join(left=a, right=b) | PlantedInclusion(child=a, parent=b):
                at(a.table).sets.add(a.columns)
                at(b.table).sets.add(b.columns)
            case Correlation():
                at(fact.left.table).series.add((fact.left.columns, fact.left_value))
                at(fact.right.table).series.add((fact.right.columns, fact.right_value))
            case Transform(left=a, right=b) | Lookup(left=a, right=b):
                at(a.table).whole = at(b.table).whole = True
            case PlantedDependency():
                at(fact.clean).whole = at(fact.damaged).whole = True
            case PlantedDisguise():
                at(fact.where.table).whole = True
    return found
