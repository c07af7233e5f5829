"""Dependencies of tables larger than memory: candidates from a sample, validated and scored on Spark.

What holds in the table holds in a sample of it, so what a sample leaves possible holds all there is, in a form that
may be too short. One aggregation checks all candidates of a round; rows that break some are learnt from like rows of
the sample (:mod:`lakescope.engines.dependencies.discover`), until nothing is broken.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from lakescope.array_types import I32, U64
from lakescope.build.dependencies import (
    GroupSums,
    HashedRows,
    broken,
    different_rows,
    likelihoods,
    rows_of_frame,
    rows_of_table,
    sample,
)
from lakescope.engines.dependencies.answers import NULLS, Dependency, Nulls, Order
from lakescope.engines.dependencies.budget import Budget
from lakescope.engines.dependencies.discover import Discovered, Discovery, Side
from lakescope.engines.dependencies.find import DependencyRanker
from lakescope.engines.dependencies.scores import Likelihood, Scorer
from lakescope.engines.dependencies.table import CodedTable, marked
from lakescope.errors import BadRequest
from lakescope.results import Results
from lakescope.tables.reading import units_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class SparkSearchTuning:
    """How a table that is larger than memory is looked at."""

    #: Cells of the sample that the driver holds. Not measured: a bound on its memory: 16 MB of codes under each
    #: semantics.
    cells: int = 4_000_000
    #: Rows of the sample, at most. Not measured: more break few candidates more.
    rows: int = 200_000
    #: Candidates that are checked or scored by one aggregation. Not measured: a job costs about as much as these.
    per_aggregation: int = 200
    #: Chance of dropping an approximate dependency by its degree in the sample alone. Not measured: far below one in
    #: the number of candidates.
    risk: float = 1e-9


SPARK = SparkSearchTuning()


def dependencies_on(
    spark: SparkSession,
    query: Any,
    nulls: Nulls = "equal",
    max_lhs: int | None = 3,
    *,
    error: float = 0.0,
    missing: Sequence[str] | str = (),
    budget: float | None = None,
    by: Order = "score",
) -> Results[Dependency]:
    """Minimal dependencies of a table of any size, as :func:`lakescope.dependencies` finds them in memory."""
    time = Budget(budget)
    table = _hashed(spark, query, tuple(marked(missing)))
    sampled = _coded(sample(table, min(SPARK.rows, max(1, SPARK.cells // len(table.names)))), table.names).under(nulls)
    most = len(table.names) - 1 if max_lhs is None else max_lhs
    if error:
        found = _approximate(table, sampled, most, error, nulls, time)
    else:
        found = _OnSpark(table, sampled, most, nulls, time).run()
    scores = _scores(table, found, time)
    different = different_rows(table, nulls)
    notes = [f"on Spark, with a sample of {sampled.shape[1]:,} of {table.rows:,} rows; genuineness is not worked out"]
    return DependencyRanker(table.names, nulls, scores, table.missing, different).results(
        found, by, 0, Budget(None), notes
    )


def _hashed(spark: SparkSession, query: Any, missing: Sequence[int]) -> HashedRows:
    if isinstance(query, str) or hasattr(query, "__fspath__"):
        return rows_of_table(spark, lambda size: units_of(str(query), size), missing)
    if not type(query).__module__.startswith("pyspark.sql"):
        raise BadRequest(
            f"a {type(query).__name__} lies in this process, not on Spark", hint="give a path or a Spark DataFrame"
        )
    return rows_of_frame(query, missing)


def _coded(rows: U64, names: tuple[str, ...]) -> CodedTable:
    """Packed rows as a table of codes."""
    codes = np.empty((len(names), rows.shape[0]), np.int32)
    for place in range(len(names)):
        values, codes[place] = np.unique(rows[:, place], return_inverse=True)
        if values.size and values[0] == 0:
            codes[place] -= 1
    return CodedTable(names, codes)


def _in_batches(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """Items, as many at a time as one aggregation serves."""
    return (items[begin : begin + SPARK.per_aggregation] for begin in range(0, len(items), SPARK.per_aggregation))


class _OnSpark(Discovery):
    """Discovery whose sample lies here and whose validation is done by executors."""

    whole_table = False

    def __init__(self, table: HashedRows, sampled: I32, most: int, nulls: Nulls, budget: Budget) -> None:
        super().__init__(sampled, most, budget)
        self.table, self.nulls = table, nulls

    def _checked(self, wanted: dict[Side, list[int]]) -> Iterator[tuple[Side, list[int], U64]]:
        # What the sample breaks need not be asked of the table.
        left = {}
        for side, held, masks in super()._checked(wanted):
            if held == wanted[side]:
                left[side] = held
            else:
                yield side, [], masks
        for sides in _in_batches(sorted(left)):
            asked = [(side, tuple(left[side])) for side in sides]
            for (side, columns), pairs in zip(asked, broken(self.table, asked, self.nulls), strict=True):
                # A column that no pair shows broken may still be: it is asked again, without those that are.
                yield side, [] if pairs else list(columns), self._agreements(pairs)
            if self.budget.late:
                break

    def _agreements(self, pairs: list[tuple[U64, U64]]) -> U64:
        masks = np.zeros((len(pairs), self.words), np.uint64)
        for mask, (one, other) in zip(masks, pairs, strict=True):
            agree = (one == other) & ((one != 0) | (self.nulls == "equal"))
            mask[:] = self._mask(np.flatnonzero(agree).tolist())
        return masks


def _approximate(table: HashedRows, sampled: I32, most: int, error: float, nulls: Nulls, budget: Budget) -> Discovered:
    """Level by level: candidates whose degree in the sample is not too large to be chance are counted in the table."""
    columns = len(table.names)
    scorer = Scorer(sampled)
    slack = math.sqrt(math.log(1 / SPARK.risk) / (2 * max(1, scorer.rows))) if scorer.rows < table.rows else 0.0
    found: list[list[Side]] = [[] for _ in range(columns)]
    validated = 0
    for size in range(min(most, columns - 1) + 1):
        asked = [
            (lhs, rhs, nulls)
            for lhs in itertools.combinations(range(columns), size)
            for rhs in range(columns)
            if rhs not in lhs
            and not any(set(lhs).issuperset(known) for known in found[rhs])
            and scorer.score(lhs, rhs).degree <= (error + slack) * scorer.rows + 1e-9
        ]
        for batch in _in_batches(asked):
            if budget.late:
                return Discovered(found, False, size - 1, False, size, validated, exact=False)
            for (lhs, rhs, _), sums in zip(batch, likelihoods(table, batch), strict=True):
                validated += 1
                if sums.rows - sums.kept <= int(error * sums.rows + 1e-9):
                    found[rhs].append(lhs)
    return Discovered(found, True, most, False, most, validated, exact=False)


class _SparkScores:
    """Likelihoods that were worked out on Spark."""

    def __init__(self, rows: int, likelihoods: dict[tuple[Side, int], Likelihood]) -> None:
        self.rows, self._likelihoods = rows, likelihoods

    def score(self, lhs: Sequence[int], rhs: int) -> Likelihood:
        """Degree, PV and PT of ``lhs -> rhs``."""
        return self._likelihoods[tuple(lhs), rhs]

    def knows(self, lhs: Sequence[int], rhs: int) -> bool:
        """Whether it was worked out before time was up."""
        return (tuple(lhs), rhs) in self._likelihoods


def _scores(table: HashedRows, found: Discovered, budget: Budget) -> dict[Nulls, _SparkScores]:
    """Scores of what was found, and of empty left sides, under every semantics; those that are the same once."""
    fds: list[tuple[Side, int]] = [((), rhs) for rhs in range(len(table.names))]
    fds += [(lhs, rhs) for rhs, sides in enumerate(found.left_sides) for lhs in sides]
    different = NULLS if any(table.missing) else ("equal",)
    # Empty left sides first: without them nothing else can be told.
    asked = [(lhs, rhs, each) for lhs, rhs in dict.fromkeys(fds) for each in different]
    known: dict[str, dict[tuple[Side, int], Likelihood]] = {each: {} for each in different}
    rows = dict.fromkeys(different, 0)
    for batch in _in_batches(asked):
        if budget.late and all(rows.values()):
            break
        for (lhs, rhs, each), sums in zip(batch, likelihoods(table, batch), strict=True):
            known[each][lhs, rhs] = _likelihood(sums)
            rows[each] = max(rows[each], sums.rows)
    made = {each: _SparkScores(rows[each], known[each]) for each in different}
    return {each: made.get(each, made["equal"]) for each in NULLS}


def _likelihood(sums: GroupSums) -> Likelihood:
    rows, kept, groups = sums.rows, sums.kept, sums.groups
    if not rows:
        return Likelihood(0, math.nan, math.nan, math.nan, 0)
    return Likelihood(rows - kept, sums.shares / groups, kept / rows, sums.concentrated / rows, groups)
