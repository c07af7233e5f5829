"""Which dependencies does a table have, under which semantics of missing values, and which are worth believing?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lakescope.errors import BadRequest
from lakescope.fds.approximate import discover_approximate
from lakescope.fds.budget import Budget
from lakescope.fds.discover import Discovered, discover
from lakescope.fds.disguised import disguised_in
from lakescope.fds.genuineness import Custom, GenuinenessScorer, Model
from lakescope.fds.scores import Likelihood, Scorer
from lakescope.fds.table import NULLS, CodedTable, Nulls, check_nulls, read
from lakescope.results import Results

#: Share of rows with a left side of their own from which on it is nearly a key, and of rows that share a right side.
_NEARLY = 0.9
#: Dependencies whose genuineness is worked out unless more is asked for.
_SCORED = 200
#: Shares of the time: for finding, of what is left then for scoring, and of the rest for genuineness.
_FINDING, _SCORING = 0.6, 0.6
#: Values that may stand for missing ones that are told.
_SUSPECTS = 5
_SHOWN = ("lhs", "rhs", "degree", "score", "pv", "pt", "gs", "strength", "holds", "flags", "reasons")


@dataclass(frozen=True, slots=True)
class Dependency:
    """X -> A: rows that agree on the left side agree on the right one.

    ``degree`` is the number of rows that would have to go for it to hold, under the semantics that was asked for;
    ``holds`` names the semantics under which none have to. ``pv`` and ``pt`` are the likelihoods per value and per
    row where missing values count as one value, ``gs`` the chance that it holds if they are filled in at random
    (between ``gs_low`` and ``gs_high``), ``strength`` the word for it: strong, weak or none. ``score`` is how much it
    tells beyond chance: what answers are in order of. ``flags``: ``key`` if no two rows share a left side,
    ``constant`` if the right side never changes, ``vacuous`` if there were no two rows to compare, ``unscored`` if time
    was up before its scores were known.
    """

    lhs: tuple[str, ...]
    rhs: str
    degree: int
    score: float | None
    pv: float | None
    pt: float | None
    gs: float | None
    gs_low: float | None
    gs_high: float | None
    strength: str
    holds: tuple[str, ...]
    flags: tuple[str, ...]
    reasons: tuple[str, ...]


def dependencies(
    query: Any,
    nulls: Nulls = "equal",
    max_lhs: int | None = 3,
    *,
    error: float = 0.0,
    missing: Sequence[str] = (),
    model: Model | Custom = "frequency",
    scored: int = _SCORED,
    budget: float | None = 60.0,
) -> Results[Dependency]:
    """Minimal dependencies of a table: a path, a URI or a frame; the most telling first.

    ``nulls`` says what a missing value equals: every other (``equal``), none (``distinct``), or that rows with one do
    not count (``skip``). ``max_lhs`` bounds the left side (None: any). ``error`` is the share of rows that may break a
    dependency. ``missing`` are texts that stand for no value. ``model`` says how missing values are filled in for the
    genuineness of the first ``scored`` answers. After ``budget`` seconds what was found so far is told.
    """
    check_nulls(nulls)
    if not 0 <= error < 1:
        raise BadRequest(f"the error must be at least 0 and below 1, not {error}", hint="0.01: one row in a hundred")
    if max_lhs is not None and max_lhs < 0:
        raise BadRequest(f"max_lhs must be at least 0, not {max_lhs}", hint="3 is a good one; None: any number")
    return _Finder(read(query, missing, texts=True), nulls, model).find(max_lhs, error, scored, budget)


Judged = tuple[Dependency, tuple[int, ...], int]


class _Finder:
    def __init__(self, table: CodedTable, nulls: Nulls, model: Model | Custom) -> None:
        self.table = table
        self.nulls = nulls
        self.scorers = {each: Scorer(table.under(each)) for each in NULLS}  # type: ignore[arg-type]
        self.genuineness = GenuinenessScorer(table, model)
        self.missing = table.missing()

    def find(self, most: int | None, error: float, scored: int, seconds: float | None) -> Results[Dependency]:
        budget = Budget(seconds)
        scorer = self.scorers[self.nulls]
        if error:
            bound = self.table.columns if most is None else most
            found = discover_approximate(scorer, self.table.columns, bound, error, budget.part(_FINDING))
        else:
            found = discover(scorer.codes, most, budget.part(_FINDING))
        judged = self._all_judged(found, budget.part(_SCORING))
        records = [
            self._with_genuineness(record, lhs, rhs) if place < scored and not budget.late else record
            for place, (record, lhs, rhs) in enumerate(judged)
        ]
        return Results(Dependency, records, shown=_SHOWN, notes=self._notes(records, found), info=self._info(found))

    def _all_judged(self, found: Discovered, budget: Budget) -> list[Judged]:
        """What was found with its scores, in order; what time does not suffice for comes last."""
        # In order of left sides: rows are grouped by each once.
        sides = sorted((lhs, rhs) for rhs, each in enumerate(found.found) for lhs in each)
        judged = [self._unscored(lhs, rhs) if budget.late else self._judged(lhs, rhs) for lhs, rhs in sides]

        def order(each: Judged) -> tuple[object, ...]:
            record, lhs, rhs = each
            return bool(record.flags), -(record.score or 0.0), -(record.pv or 0.0), len(lhs), lhs, rhs

        return sorted(judged, key=order)

    def _unscored(self, lhs: tuple[int, ...], rhs: int) -> Judged:
        names = self.table.names
        left = tuple(names[each] for each in lhs)
        unknown = (None, None, None, None, None, None)
        return Dependency(left, names[rhs], 0, *unknown, "unknown", (self.nulls,), ("unscored",), ()), lhs, rhs

    def _judged(self, lhs: tuple[int, ...], rhs: int) -> Judged:
        scores = {each: self.scorers[each].score(lhs, rhs) for each in NULLS}
        asked, equal = scores[self.nulls], scores["equal"]
        holds = tuple(each for each in NULLS if not scores[each].degree and self.scorers[each].rows > 1)
        flags, reasons = self._doubts(lhs, rhs, asked, holds)
        names = self.table.names
        record = Dependency(
            lhs=tuple(names[each] for each in lhs),
            rhs=names[rhs],
            degree=asked.degree,
            score=self.scorers["equal"].beyond_chance(equal, rhs),
            pv=equal.pv,
            pt=equal.pt,
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
        rows = self.scorers[self.nulls].rows
        flags, reasons = [], []
        if rows < 2:
            flags.append("vacuous")
            reasons.append(f"{rows} rows were left to compare")
        elif score.groups >= rows:
            flags.append("key")
        elif score.groups > _NEARLY * rows:
            reasons.append(f"nearly a key: {score.groups:,} different left sides in {rows:,} rows")
        values = self.scorers[self.nulls].codes[rhs]
        if rows and (values == values[0]).all() and values[0] >= 0:
            flags.append("constant")
        elif rows and np.bincount(np.maximum(values, 0)).max() > _NEARLY * rows:
            reasons.append("the right side hardly changes")
        lacking = int(self.missing[[*lhs, rhs]].sum())
        if lacking:
            reasons.append(f"{lacking:,} cells are missing")
            if holds and len(holds) < len(NULLS):
                reasons.append(f"holds only if missing values are taken as {' or '.join(holds)}")
        return tuple(flags), tuple(reasons)

    def _with_genuineness(self, record: Dependency, lhs: tuple[int, ...], rhs: int) -> Dependency:
        from dataclasses import replace

        found = self.genuineness.score(lhs, rhs)
        sure = found.exact and found.value == 1.0
        strength = "strong" if sure else "weak" if found.low > 0 else "none" if found.high == 0 else "unknown"
        return replace(record, gs=found.value, gs_low=found.low, gs_high=found.high, strength=strength)

    def _notes(self, records: list[Dependency], found: Discovered) -> list[str]:
        notes = []
        suspects = disguised_in(self.table)
        if suspects:
            shown = ", ".join(f"{each.value!r} in {each.column} ({each.count:,} rows)" for each in suspects[:_SUSPECTS])
            notes.append(f"may stand for missing values: {shown}; if so, name them as missing")
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
        rows = self.scorers[self.nulls].rows
        if self.nulls == "skip" and rows < self.table.rows:
            notes.append(f"{self.table.rows - rows:,} of {self.table.rows:,} rows lack a value and were left out")
        return notes

    def _info(self, found: Discovered) -> dict[str, Any]:
        return {
            "rows": self.table.rows,
            "columns": self.table.columns,
            "complete": found.complete,
            "complete_up_to": found.whole,
            "rounds": found.rounds,
            "validated": found.validated,
        }
