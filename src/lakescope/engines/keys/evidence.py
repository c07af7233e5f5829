"""What speaks for one column referring to another: facts of both, and numbers that a model weighs.

An inclusion alone says little: the numbers from 1 to 5 are in every table with five rows. What counts is whether it
could be chance, whether the child's values spread over the whole of the parent's as references do, what the names say,
and whether another parent explains the column better (Chen et al. 2014, Rostin et al. 2009, Zhang et al. 2010).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from lakescope.tables.key_names import common_prefix_word, marks_key, similarity, table_words, telling

#: Words of columns that hold measures, not references.
_MEASURES = frozenset(
    "amount quantity qty price cost total sum count cnt score points age year month day week hour minute second "
    "rank position pos level size length width height weight depth area duration distance speed rate ratio percent "
    "pct share discount tax balance salary income budget capacity population votes stars rating temperature "
    "latitude longitude lat lon lng date time value min max avg mean std version priority goals minutes gdp "
    "description note comment text title address street phone fax email url name".split()
)
#: How names of measures end that are written in one word with another: availqty, totalamt.
_MEASURE_ENDINGS = ("qty", "amt", "cnt", "pct", "price", "cost", "count", "date", "time", "quantity", "amount")


@dataclass(frozen=True, slots=True)
class EvidenceTuning:
    """When a column may be a key or refer to one, and when names say so.

    ``benchmarks/train_keys.py`` learns the weights of evidence given these values, and ``benchmarks/inclusions.py``
    measures what is found with both (``benchmarks/results/inclusions.md``). No record compares other values.
    """

    #: Similarity from which on names say clearly that one column refers to another. Not measured by itself.
    strong: float = 0.65
    #: Mean length of values from which on a column is text that nothing refers to. Not measured by itself.
    long_text: int = 40
    #: Share of the filled rows that must differ for a column to be unique: next to no value repeats. Not measured by
    #: itself.
    unique: float = 0.99
    #: Share of the rows in which a key must be there. Not measured by itself.
    filled: float = 0.95


KEY_EVIDENCE = EvidenceTuning()


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """What the catalog knows of a column that may be a key or refer to one."""

    number: int
    table: str
    column: str
    position: int
    type: str
    rows: int
    filled: int
    distinct: int
    low: float
    high: float
    length: float
    telling: tuple[str, ...]
    table_words: tuple[str, ...]

    @property
    def unique(self) -> bool:
        """Whether no value occurs twice, or next to none do."""
        return self.distinct >= 2 and self.distinct >= KEY_EVIDENCE.unique * self.filled

    @property
    def key_like(self) -> bool:
        """Whether rows could be told apart by it: unique, and there in all of them but a few."""
        return self.unique and self.filled >= KEY_EVIDENCE.filled * self.rows and self.fit

    @property
    def whole(self) -> bool:
        """Whether it holds whole numbers, or days, which are numbered as well."""
        return not math.isnan(self.low)

    @property
    def fit(self) -> bool:
        """Whether values of this type refer to anything at all."""
        return (
            self.type not in ("decimal", "boolean", "time", "timestamp", "null")
            and self.length <= KEY_EVIDENCE.long_text
        )

    @property
    def density(self) -> float:
        """Share of the whole numbers of its range that it holds."""
        return min(1.0, self.distinct / (self.high - self.low + 1)) if self.whole else 0.0

    @property
    def folder(self) -> str:
        return folder_of(self.table)


def names_measure(facts: ColumnFacts) -> bool:
    """Whether a column's name says that it holds a measure, not a reference."""
    if marks_key(facts.column):
        return False
    return any(word in _MEASURES or word.endswith(_MEASURE_ENDINGS) for word in facts.telling)


def folder_of(table: str) -> str:
    """Where a table lies: its folder, or the file of a database."""
    return table.rsplit("::", 1)[0] if "::" in table else table.rpartition("/")[0]


def facts_of(records: Sequence[Mapping[str, Any]], sizes: Sequence[int] | None = None) -> list[ColumnFacts]:
    """Facts of all columns of a lake, in the order of the catalog; ``sizes`` are exact numbers of values."""
    by_table: dict[str, list[str]] = {}
    for record in records:
        by_table.setdefault(record["table"], []).append(record["column"])
    prefixes = {table: common_prefix_word(columns) for table, columns in by_table.items()}
    return [
        _facts(number, record, prefixes[record["table"]], sizes[number] if sizes is not None else _distinct(record))
        for number, record in enumerate(records)
    ]


def _distinct(record: Mapping[str, Any]) -> int:
    """Different values of a column by its profile; all of its cells if the estimate allows that."""
    filled = int(record["rows"] - record["nulls"])
    if not record["distinct_exact"] and record["distinct_high"] >= filled:
        return filled
    return int(record["distinct"])


def _facts(number: int, record: Mapping[str, Any], prefix: str | None, distinct: int) -> ColumnFacts:
    found = telling(record["column"], prefix)
    low, high = (_number(record[name], record["type"]) for name in ("minimum", "maximum"))
    return ColumnFacts(
        number=number,
        table=record["table"],
        column=record["column"],
        position=record["position"],
        type=record["type"],
        rows=record["rows"],
        filled=record["rows"] - record["nulls"],
        distinct=int(distinct),
        low=low,
        high=high,
        length=record["length_mean"] or 0.0,
        telling=found,
        table_words=table_words(record["table"]),
    )


def _number(text: str | None, kind: str) -> float:
    """A whole number, or a day as one; NaN of anything else."""
    try:
        if kind == "integer" and text is not None:
            return float(text)
        if kind == "date" and text is not None:
            return float(date.fromisoformat(text).toordinal())
    except ValueError:
        pass
    return math.nan


# --- primary keys -----------------------------------------------------------------------------------------------------


def key_score(facts: ColumnFacts) -> float:
    """How much a column that could be the key of its table looks like it: by its place, its name and its type."""
    name = similarity(facts.telling, facts.table_words) if facts.telling else 0.0
    score = 2.0 if facts.position == 0 else 1.0 / (1 + facts.position)
    score += 1.0 if marks_key(facts.column) else 0.0
    score += name
    score += 0.5 if facts.type == "integer" else 0.25 if facts.type == "code" else 0.0
    score -= 1.0 if names_measure(facts) else 0.0
    return score


def primary_keys(facts: Sequence[ColumnFacts]) -> dict[str, list[ColumnFacts]]:
    """The columns of each table that could be its key, the best first."""
    found: dict[str, list[ColumnFacts]] = {}
    for each in facts:
        if each.key_like:
            found.setdefault(each.table, []).append(each)
    for keys in found.values():
        keys.sort(key=lambda each: (-key_score(each), each.position))
    return found


# --- candidates -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KeyCandidate:
    """A column that may refer to a key, and how much of it is included there."""

    child: ColumnFacts
    parent: ColumnFacts
    inclusion: float
    low: float
    high: float
    exact: bool

    @property
    def coverage(self) -> float:
        """The share of the parent's values that the child holds."""
        return min(1.0, self.inclusion * self.child.distinct / max(1, self.parent.distinct))


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What else could be said of a candidate's columns: its name beside others', how many parents fit.

    ``named`` is how far tables of its folder are referred to by name, ``marked`` how many keys are marked as such;
    ``derived`` whether the parent is itself named after another key that it is included in.
    """

    other_name: float
    parents: int
    primary: bool
    child_primary: bool
    named: float
    marked: float
    derived: bool


def name_score(child: ColumnFacts, parent: ColumnFacts) -> float:
    """How much the names say that one column refers to the other: by the table's name, the key's, or both."""
    by_table = similarity(child.telling, parent.table_words)
    if not parent.telling:
        return by_table
    by_key = similarity(child.telling, parent.telling)
    together = similarity(child.telling, (*parent.table_words, *parent.telling))
    best = max(by_table, by_key, together)
    return 0.7 * best + 0.3 * min(best, by_table, by_key)


FEATURES = (
    *("bias", "strong", "name", "name_lead", "generic", "child_primary", "coverage", "reach_named", "reach_unnamed"),
    *("surprise_named", "surprise_unnamed", "values", "unfit", "measure", "child_marked", "primary", "parent_marked"),
    *("ratio", "missing", "parents_named", "parents_unnamed", "same_set_named", "same_set_unnamed", "same_table"),
    *(
        "apart_named",
        "apart_unnamed",
        "few_unnamed",
        "text",
        "unique_named",
        "unique_unnamed",
        "unlike_named",
        "unlike_marked",
    ),
    *("constant_unnamed", "derived", "unmarked_unnamed", "date", "own", "years"),
)


def features(candidate: KeyCandidate, around: Surroundings) -> list[float]:
    """The numbers a model weighs, in the order of ``FEATURES``."""
    child, parent = candidate.child, candidate.parent
    name = name_score(child, parent)
    strong = float(name >= KEY_EVIDENCE.strong)
    weak = 1 - strong
    unique = float(child.unique and child.filled >= 3)
    coverage = candidate.coverage
    same_set = float(coverage >= 0.999 and candidate.inclusion >= 0.999) * math.log10(max(1, parent.distinct)) / 3
    marked = float(marks_key(child.column))
    reach, surprise = _reach(child, parent), _surprise(child, parent)
    parents = math.log2(max(1, around.parents)) / 4
    apart = float(child.folder != parent.folder)
    return [
        1.0,
        strong,
        name,
        max(-1.0, min(1.0, 4 * (name - around.other_name))),
        float(not child.telling),
        float(around.child_primary),
        coverage,
        strong * reach,
        weak * reach,
        strong * surprise,
        weak * surprise,
        min(1.0, math.log10(max(1, child.distinct)) / 3),
        float(not child.fit),
        float(names_measure(child)),
        marked,
        float(around.primary),
        float(marks_key(parent.column)),
        max(-1.0, min(1.0, math.log10(max(1, child.filled) / max(1, parent.rows)) / 3)),
        min(1.0, 20 * (1 - candidate.inclusion)),
        strong * parents,
        weak * parents,
        strong * same_set,
        weak * same_set,
        float(child.table == parent.table),
        strong * apart,
        weak * apart,
        weak * float(child.distinct <= 2),
        float(not (child.whole and parent.whole)),
        strong * unique,
        weak * unique,
        weak * around.named,
        weak * (1 - marked) * around.marked,
        weak * float(child.distinct <= 1),
        float(around.derived),
        weak * (1 - marked),
        float(child.type == "date"),
        float(around.child_primary) * (similarity(child.telling, child.table_words) if child.telling else 1.0),
        weak * float(child.type == "integer" and child.low >= 1700 and child.high <= 2100),
    ]


def _reach(child: ColumnFacts, parent: ColumnFacts) -> float:
    """How well the child's largest value fits that of references drawn from all of the parent's, in powers of e."""
    if not (child.whole and parent.whole) or child.type != parent.type:
        return 0.0
    share = (child.high - parent.low + 1) / (parent.high - parent.low + 1)
    share = min(1.0, max(share, 1e-9))
    fits = math.log(max(1, child.distinct)) + (child.distinct - 1) * math.log(share)
    return max(-1.0, min(1.0, fits / 5))


def _surprise(child: ColumnFacts, parent: ColumnFacts) -> float:
    """How unlikely the inclusion would be by chance, from 0 to 1."""
    if not (child.whole and parent.whole):
        return min(1.0, child.distinct / 4)
    width = parent.high - parent.low + 1
    if width <= 0 or parent.density >= 1:
        return 0.0
    return min(1.0, -child.distinct * math.log10(max(1e-12, parent.density)) / 6)
