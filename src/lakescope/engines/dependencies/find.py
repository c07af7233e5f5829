"""Which dependencies does a table have, under which semantics of missing values, and which are worth believing?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import isnan
from typing import Any, Protocol

import numpy as np

from lakescope.engines.dependencies.answers import NULLS, Dependency, Model, Nulls, Order
from lakescope.engines.dependencies.approximate import discover_approximate
from lakescope.engines.dependencies.budget import Budget
from lakescope.engines.dependencies.discover import Discovered, discover
from lakescope.engines.dependencies.disguised import disguised_in
from lakescope.engines.dependencies.genuineness import Custom, GenuinenessScorer
from lakescope.engines.dependencies.scores import Likelihood, Scorer, beyond_chance, is_key
from lakescope.engines.dependencies.table import CodedTable, read
from lakescope.results import Results


@dataclass(frozen=True, slots=True)
class RankingTuning:
    """How answers are put in order, and how time is shared."""

    #: Share of rows with a left side of their own from which on it is nearly a key, and of rows that share a right side
    #: from which on that hardly changes. Not measured: nearly all.
    nearly: float = 0.9
    #: Dependencies whose genuineness is worked out unless more is asked for. Not measured: more than a page shows; a
    #: bound on time.
    scored: int = 200
    #: Share of the time that is for finding. Not measured: a guess.
    finding: float = 0.6
    #: Share of what is left then that is for scoring; the rest is for genuineness. Not measured: a guess.
    scoring: float = 0.6
    #: Values that may stand for missing ones that a note names. Not measured: a matter of room.
    suspects: int = 5


RANKING = RankingTuning()

_SHOWN = ("lhs", "rhs", "degree", "score", "pv", "pt", "gs", "strength", "holds", "flags", "reasons")


def dependencies(
    query: Any,
    nulls: Nulls = "equal",
    max_lhs: int | None = 3,
    *,
    error: float = 0.0,
    missing: Sequence[str] | str = (),
    model: Model | Custom = "frequency",
    scored: int = RANKING.scored,
    budget: float | None = 60.0,
    by: Order = "score",
) -> Results[Dependency]:
    """Minimal dependencies of a table: a path, a URI or a frame; in order ``by`` how much they tell, PV, PT or GS.

    ``nulls`` says what a missing value equals: every other (``equal``), none (``distinct``), or that rows with one do
    not count (``skip``). ``max_lhs`` bounds the left side (None: any). ``error`` is the share of rows that may break a
    dependency. ``missing`` are texts that stand for no value. ``model`` says how missing values are filled in for the
    genuineness of the first ``scored`` answers. After ``budget`` seconds what was found so far is told.
    """
    table = query if isinstance(query, CodedTable) else read(query, missing, texts=True)
    if budget is not None:
        _ready()
    time = Budget(budget)
    scorers = {each: Scorer(table.under(each)) for each in NULLS}
    found = _discovered(scorers[nulls], table.columns, max_lhs, error, time.part(RANKING.finding))
    different = scorers[nulls].different_rows()
    genuineness = GenuinenessScorer(table, model)
    genuineness.budget = time
    judge = DependencyRanker(table.names, nulls, scorers, table.missing().tolist(), different, genuineness)
    return judge.results(found, by, scored, time, notes_on_missing(table))


@cache
def _ready() -> None:
    """Have the kernels compiled, which the first time on a machine takes seconds that are nobody's budget."""
    codes = np.array([[0, 0, 1, 1, 2, 2], [0, 1, 1, 1, 0, 1], [0, 0, 1, 2, 1, 0], [0, 1, 2, 3, 4, 5]], np.int32)
    discover(codes)
    scorer = Scorer(codes)
    scorer.score((1,), 0)


def _discovered(scorer: Scorer, columns: int, most: int | None, error: float, budget: Budget) -> Discovered:
    if error:
        return discover_approximate(scorer, columns, columns if most is None else most, error, budget)
    return discover(scorer.codes, most, budget)


def _unmet(table: CodedTable) -> list[str]:
    return (
        [f"no cell reads {', '.join(map(repr, table.unmet))}, which was to stand for no value"] if table.unmet else []
    )


def notes_on_missing(table: CodedTable) -> list[str]:
    """Texts that were to stand for no value and do not occur, and values that may stand for none."""
    return [*_unmet(table), *_suspicions(table)]


def _suspicions(table: CodedTable) -> list[str]:
    suspects = disguised_in(table)
    if not suspects:
        return []
    shown = ", ".join(f"{each.value!r} in {each.column} ({each.count:,} rows)" for each in suspects[: RANKING.suspects])
    return [f"may stand for missing values: {shown}; if so, name them as missing"]


Judged = tuple[Dependency, tuple[int, ...], int]


class Scores(Protocol):
    """Likelihoods of a table under one semantics."""

    rows: int

    def score(self, lhs: Sequence[int], rhs: int) -> Likelihood:
        """Degree, PV and PT of ``lhs -> rhs``."""

    def knows(self, lhs: Sequence[int], rhs: int) -> bool:
        """Whether the score can be told."""


class DependencyRanker:
    """Puts what was found in order, with scores and doubts."""

    def __init__(
        self,
        names: Sequence[str],
        nulls: Nulls,
        scores: Mapping[Nulls, Scores],
        missing: Sequence[int],
        different: int,
        genuineness: GenuinenessScorer | None = None,
    ) -> None:
        self.names, self.nulls, self.scores, self.missing = names, nulls, scores, missing
        self.different = different
        self.genuineness = genuineness
        self.rows = scores[nulls].rows

    def results(
        self, found: Discovered, by: Order, scored: int, budget: Budget, notes: Sequence[str] = ()
    ) -> Results[Dependency]:
        """What was found as records."""
        judged = self._all_judged(found, budget.part(RANKING.scoring), by)
        scored = len(judged) if by == "gs" else scored
        records = [
            self._with_genuineness(record, lhs, rhs) if place < scored and not budget.late else record
            for place, (record, lhs, rhs) in enumerate(judged)
        ]
        if by == "gs":
            records.sort(key=lambda each: (bool(each.flags), each.gs is None, -(each.gs or 0.0)))
        told = [*notes, *self._notes(records, found)]
        return Results(Dependency, records, shown=_SHOWN, notes=told, info=self._info(found))

    def _all_judged(self, found: Discovered, budget: Budget, by: Order) -> list[Judged]:
        """What was found with its scores, in order; what time does not suffice for comes last."""
        # In order of left sides: rows are grouped by each once.
        sides = sorted((lhs, rhs) for rhs, each in enumerate(found.left_sides) for lhs in each)
        judged = [
            self._unscored(lhs, rhs, found) if budget.late or not self._has_scores(lhs, rhs) else self._judged(lhs, rhs)
            for lhs, rhs in sides
        ]

        def order(each: Judged) -> tuple[object, ...]:
            record, lhs, rhs = each
            first = {"pv": record.pv, "pt": record.pt}.get(by, record.score)
            return bool(record.flags), -(first or 0.0), -(record.score or 0.0), -(record.pv or 0.0), len(lhs), lhs, rhs

        return sorted(judged, key=order)

    def _has_scores(self, lhs: tuple[int, ...], rhs: int) -> bool:
        return all(each.knows(lhs, rhs) for each in self.scores.values())

    def _unscored(self, lhs: tuple[int, ...], rhs: int, found: Discovered) -> Judged:
        left = tuple(self.names[each] for each in lhs)
        degree, holds = (0, (self.nulls,)) if found.exact else (None, ())
        unknown = (None, None, None, None, None, None)
        return Dependency(left, self.names[rhs], degree, *unknown, "unknown", holds, ("unscored",), ()), lhs, rhs

    def _judged(self, lhs: tuple[int, ...], rhs: int) -> Judged:
        scores = {each: self.scores[each].score(lhs, rhs) for each in NULLS}
        asked, equal = scores[self.nulls], scores["equal"]
        holds = tuple(each for each in NULLS if not scores[each].degree and self.scores[each].rows > 1)
        flags, reasons = self._doubts(lhs, rhs, asked, holds)
        all_rows = self.scores["equal"]
        record = Dependency(
            lhs=tuple(self.names[each] for each in lhs),
            rhs=self.names[rhs],
            degree=asked.degree,
            score=beyond_chance(equal, all_rows.score((), rhs), all_rows.rows),
            pv=None if isnan(equal.pv) else equal.pv,
            pt=None if isnan(equal.pt) else equal.pt,
            gs=None,
            gs_low=None,
            gs_high=None,
            strength="unknown",
            holds=holds,
            flags=flags,
            reasons=reasons,
        )
        return record, lhs, rhs

    def _doubts(
        self, lhs: tuple[int, ...], rhs: int, score: Likelihood, holds: tuple[str, ...]
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What makes a dependency trivial, and what makes it doubtful."""
        rows = self.rows
        flags, reasons = [], []
        if rows < 2:
            flags.append("vacuous")
            reasons.append(f"{rows} rows were left to compare")
        elif is_key(score.groups, len(lhs), rows, self.different, len(self.names)):
            flags.append("key")
        elif score.groups > RANKING.nearly * rows:
            reasons.append(f"nearly a key: {score.groups:,} different left sides in {rows:,} rows")
        most = self.scores[self.nulls].score((), rhs).pt
        if rows and most == 1:
            flags.append("constant")
        elif rows and most > RANKING.nearly:
            reasons.append("the right side hardly changes")
        lacking = sum(int(self.missing[each]) for each in (*lhs, rhs))
        if lacking:
            reasons.append(f"{lacking:,} cells are missing")
            if holds and len(holds) < len(NULLS):
                reasons.append(f"holds only if missing values are taken as {' or '.join(holds)}")
        return tuple(flags), tuple(reasons)

    def _with_genuineness(self, record: Dependency, lhs: tuple[int, ...], rhs: int) -> Dependency:
        if self.genuineness is None:
            return record
        found = self.genuineness.score(lhs, rhs)
        if found.exact and found.value == 1.0:
            strength = "strong"
        else:
            strength = {True: "weak", False: "none", None: "unknown"}[found.possible]
        return replace(record, gs=found.value, gs_low=found.low, gs_high=found.high, strength=strength)

    def _notes(self, records: list[Dependency], found: Discovered) -> list[str]:
        notes = []
        if not found.complete:
            why = "there are too many to keep" if found.full else "time was up; give it a larger budget"
            sure = f"all left sides of up to {found.whole} columns" if found.whole > 0 else "those that were met"
            notes.append(f"not complete: {sure} are told, {why}")
        unscored = sum("unscored" in each.flags for each in records)
        if unscored:
            notes.append(f"{unscored:,} are without scores, last in order: time was up")
        trivial = sum(bool(each.flags) for each in records) - unscored
        if trivial:
            notes.append(f"{trivial:,} follow from keys, constants or too few rows: flagged, and last in order")
        if self.rows > self.different > 0:
            notes.append(
                f"{self.rows - self.different:,} of {self.rows:,} rows repeat others: keys are those of the rest"
            )
        every = self.scores["equal"].rows
        if self.rows < every:
            notes.append(f"{every - self.rows:,} of {every:,} rows lack a value and were left out")
        return notes

    def _info(self, found: Discovered) -> dict[str, Any]:
        return {
            "rows": self.scores["equal"].rows,
            "columns": len(self.names),
            "complete": found.complete,
            "complete_up_to": found.whole,
            "rounds": found.rounds,
            "validated": found.validated,
        }
