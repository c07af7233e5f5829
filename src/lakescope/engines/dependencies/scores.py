"""How much a dependency is worth believing: its degree, PerValue and PerTuple (Berti-Equille et al. 2018; spec 4.7).

*Degree* is the least number of rows without which it would hold (G3). *PT* is the share of rows that have the most
frequent right side of their group, which is 1 - degree / rows. *PV* is the mean of that share over the groups, large
and small alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from threading import get_ident
from typing import NamedTuple

import numpy as np

from lakescope.array_types import I32
from lakescope.engines.dependencies import kernels
from lakescope.threads import in_parts


class Likelihood(NamedTuple):
    """Degree, PV and PT of a dependency under one semantics; ``groups`` is how many different left sides there are.

    ``pdep`` is the chance that two rows with the same left side, drawn with replacement, have the same right side
    (Piatetsky-Shapiro and Matheus 1993). PV, PT and pdep of no rows are not defined: NaN.
    """

    degree: int
    pv: float
    pt: float
    pdep: float
    groups: int


class RowGroups(NamedTuple):
    """Rows by the values of some columns, without those that share them with no other: the groups lie together.

    ``order`` are the rows, ``bounds`` where each group begins and the last ends; ``alone`` rows are in none.
    """

    order: I32
    bounds: I32
    alone: int

    @property
    def groups(self) -> int:
        """Different left sides."""
        return self.bounds.size - 1 + self.alone

    def rows_of(self, group: int) -> I32:
        """The rows of a group, in order."""
        return self.order[self.bounds[group] : self.bounds[group + 1]]


class _Prefix(NamedTuple):
    """The first columns of a left side: the last of them, the rows by all, and the scores known so far."""

    column: int
    by: RowGroups
    scores: dict[int, Likelihood]


#: Parts of the candidates for each core: some take far longer than others.
_PARTS = 8
#: Rows from which on a column of few values is kept in two bytes a row: groups of rows jump about in it, and what lies
#: closer is met in a cache more often. Of fewer rows, all columns fit there; other types would be compiled for nothing.
_NARROWED = 1 << 19


class Scorer:
    """Scores dependencies of one table under one semantics of missing values."""

    def __init__(self, codes: I32) -> None:
        self.codes = np.ascontiguousarray(codes)
        self.rows = int(codes.shape[1])
        self._domains = [int(each.max(initial=-1)) + 1 for each in self.codes]
        self._columns = [
            each.astype(np.int16) if self.rows >= _NARROWED and domain <= 1 << 15 else each
            for each, domain in zip(self.codes, self._domains, strict=True)
        ]
        self._prepare()

    def _prepare(self) -> None:
        """Memory to count in, and nothing known."""
        self._counts, self._places, self._more = (np.zeros(max(1, *self._domains), np.int32) for _ in range(3))
        self._met = np.empty(self.rows, np.int32)
        whole = np.array([0, self.rows] if self.rows > 1 else [0], np.int32)
        everything = RowGroups(np.arange(self.rows, dtype=np.int32), whole, self.rows if self.rows < 2 else 0)
        # Of the last left side, from no columns to all: the next one often begins alike.
        self._prefixes = [_Prefix(-1, everything, {})]

    def beside(self) -> Scorer:
        """Another of the same table, for another thread."""
        other = copy(self)
        other._prepare()
        return other

    def partition(self, lhs: Sequence[int]) -> RowGroups:
        """Rows by some columns."""
        return self._prefix(lhs).by

    def _prefix(self, lhs: Sequence[int]) -> _Prefix:
        shared = 0
        while shared < min(len(lhs), len(self._prefixes) - 1) and self._prefixes[shared + 1].column == lhs[shared]:
            shared += 1
        del self._prefixes[shared + 1 :]
        for column in lhs[shared:]:
            self._prefixes.append(_Prefix(column, self._refined(self._prefixes[-1], column), {}))
        return self._prefixes[-1]

    def _refined(self, given: _Prefix, column: int) -> RowGroups:
        """Rows by one more column; what the columns before tell about it is known by the way."""
        by = given.by
        order = np.empty(by.order.size, np.int32)
        bounds = np.empty(by.order.size // 2 + 2, np.int32)
        groups, alone, *sums = kernels.refined(
            *(by.order, by.bounds, by.bounds.size - 1, self._columns[column]),
            *(self._counts, self._places, self._met, order, bounds),
        )
        given.scores[column] = self._likelihood(by, *sums)
        end = int(bounds[groups])
        # What is kept is as large as it must be: a table of a hundred columns has long left sides.
        return RowGroups(order[:end].copy(), bounds[: groups + 1].copy(), by.alone + alone)

    def score(self, lhs: Sequence[int], rhs: int) -> Likelihood:
        """Degree, PV and PT of ``lhs -> rhs``."""
        known = self._prefix(lhs)
        if rhs not in known.scores:
            by = known.by
            sums = kernels.likelihoods(
                *(by.order, by.bounds, by.bounds.size - 1, self._columns[rhs], self._domains[rhs]),
                *(self._counts, self._more),
            )
            known.scores[rhs] = self._likelihood(by, *sums)
        return known.scores[rhs]

    def _likelihood(self, by: RowGroups, kept: int, shares: float, concentrated: float) -> Likelihood:
        """Scores from the sums over groups; a row that shares its left side with none agrees with itself."""
        if not self.rows:
            return Likelihood(0, float("nan"), float("nan"), float("nan"), 0)
        return Likelihood(
            degree=self.rows - kept - by.alone,
            pv=(shares + by.alone) / by.groups,
            pt=(kept + by.alone) / self.rows,
            pdep=(concentrated + by.alone) / self.rows,
            groups=by.groups,
        )

    def knows(self, lhs: Sequence[int], rhs: int) -> bool:
        """Whether a score can be told: all can."""
        return True

    def different_rows(self) -> int:
        """How many rows there are without repetitions."""
        return self.beside().partition(range(self.codes.shape[0])).groups

    def beyond_chance(self, score: Likelihood, rhs: int) -> float:
        """What a left side tells about a column beyond chance."""
        return beyond_chance(score, self.score((), rhs), self.rows)


def is_key(groups: int, lhs: int, rows: int, different: int, columns: int) -> bool:
    """Whether a left side of so many columns tells all rows apart, repeated ones aside.

    Not so if only one more column is there: then what it tells apart is what the dependency says.
    """
    return groups >= (rows if lhs + 1 == columns else different)


def trivial(scorer: Scorer, different: int, lhs: Sequence[int], rhs: int) -> tuple[str, ...]:
    """Why a dependency says nothing: too few rows, a key of ``different`` rows on the left, a constant on the right."""
    if scorer.rows < 2:
        return ("vacuous",)
    found = []
    if is_key(scorer.partition(lhs).groups, len(lhs), scorer.rows, different, scorer.codes.shape[0]):
        found.append("key")
    if scorer.score((), rhs).pt == 1:
        found.append("constant")
    return tuple(found)


def score_all(codes: I32, candidates: Sequence[tuple[Sequence[int], int]]) -> list[Likelihood]:
    """Scores of many dependencies, on all cores."""
    found: list[Likelihood | None] = [None] * len(candidates)
    # Backwards, longer left sides come before those they begin with: what is known by the way is not worked out again.
    order = sorted(range(len(candidates)), key=candidates.__getitem__, reverse=True)

    first = Scorer(codes)
    scorers: dict[int, Scorer] = {}

    def part(begin: int, end: int) -> None:
        # The next part of a thread often begins with the columns of its last one.
        scorer = scorers.get(get_ident()) or scorers.setdefault(get_ident(), first.beside())
        for place in order[begin:end]:
            found[place] = scorer.score(*candidates[place])

    in_parts(part, np.full(len(candidates), codes.shape[1], np.int64), each=_PARTS)
    return [each for each in found if each is not None]


def beyond_chance(score: Likelihood, alone: Likelihood, rows: int) -> float:
    """How much a left side tells beyond what any of as many groups would: 0 for nothing, 1 for all.

    ``alone`` is the score of the empty left side. The measure mu of Piatetsky-Shapiro and Matheus, times what different
    left sides leave of the rows: a key tells everything, but nothing that one could use.
    """
    if rows < 2 or score.groups >= rows or alone.pdep >= 1:
        return 0.0
    mu = 1 - (1 - score.pdep) / (1 - alone.pdep) * (rows - 1) / (rows - score.groups)
    return max(0.0, mu) * (1 - score.groups / rows)
