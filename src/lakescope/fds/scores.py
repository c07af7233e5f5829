"""How much a dependency is worth believing: its degree, PerValue and PerTuple (Berti-Equille et al. 2018; spec 4.7).

*Degree* is the least number of rows without which it would hold (G3). *PT* is the share of rows that have the most
frequent right side of their group, which is 1 - degree / rows. *PV* is the mean of that share over the groups, large
and small alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lakescope.fds import kernels

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]


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


#: Pairs of a group and a value that are counted in a table of their own, for each row.
_ROOM = 4


class Scorer:
    """Scores dependencies of one table under one semantics of missing values."""

    def __init__(self, codes: I32) -> None:
        self.codes = np.ascontiguousarray(codes)
        self.rows = int(codes.shape[1])
        self._domains = [int(each.max(initial=-1)) + 1 for each in self.codes]
        size = 16
        while size < 2 * self.rows:
            size *= 2
        self._slots = np.empty(size, np.int32)
        self._tallies = np.empty(max(size, _ROOM * self.rows), np.int32)
        self._sizes, self._parts = (np.empty(max(1, self.rows), np.int32) for _ in range(2))
        self._squares = np.empty(max(1, self.rows), np.int64)
        # Groups by the first columns of the last left side: the next one often begins alike.
        self._prefixes: list[tuple[int, I32, int]] = []

    def _fits(self, count: int, column: int) -> bool:
        return count * self._domains[column] <= _ROOM * self.rows

    def group(self, lhs: Sequence[int]) -> tuple[I32, int, int]:
        """Rows by some columns: the group of each (-1 where it lacks a value), how many there are, and rows in none."""
        shared = 0
        while shared < min(len(lhs), len(self._prefixes)) and self._prefixes[shared][0] == lhs[shared]:
            shared += 1
        del self._prefixes[shared:]
        groups = self._prefixes[-1][1] if self._prefixes else np.zeros(self.rows, np.int32)
        count = self._prefixes[-1][2] if self._prefixes else min(1, self.rows)
        for column in lhs[shared:]:
            out = np.empty(self.rows, np.int32)
            if self._fits(count, column):
                count = kernels.refined(groups, count, self.codes[column], self._domains[column], self._tallies, out)
            else:
                count = kernels.refined_hashed(groups, self.codes[column], self._slots, out)
            groups = out
            self._prefixes.append((column, groups, count))
        return groups, count, int((groups < 0).sum())

    def score(self, lhs: Sequence[int], rhs: int) -> Likelihood:
        """Degree, PV and PT of ``lhs -> rhs``."""
        if not self.rows:
            return Likelihood(0, float("nan"), float("nan"), float("nan"), 0)
        groups, count, alone = self.group(lhs)
        room = (self._sizes, self._parts, self._squares)
        if self._fits(count, rhs):
            found = kernels.likelihoods(groups, count, self.codes[rhs], self._domains[rhs], *room, self._tallies)
        else:
            found = kernels.likelihoods_hashed(groups, count, self.codes[rhs], *room, self._slots, self._tallies)
        # A row that lacks a value on the left is a group of its own, which agrees with itself.
        kept, shares, concentrated = (each + alone for each in found)
        return Likelihood(
            degree=self.rows - kept,
            pv=shares / (count + alone),
            pt=kept / self.rows,
            pdep=concentrated / self.rows,
            groups=count + alone,
        )

    def beyond_chance(self, score: Likelihood, rhs: int) -> float:
        """What a left side tells about a column beyond chance."""
        return beyond_chance(score, self.score((), rhs), self.rows)


def beyond_chance(score: Likelihood, alone: Likelihood, rows: int) -> float:
    """How much a left side tells beyond what any of as many groups would: 0 for nothing, 1 for all.

    ``alone`` is the score of the empty left side. The measure mu of Piatetsky-Shapiro and Matheus, less the share of
    rows whose group is their own: a key tells everything, but nothing that one could use.
    """
    if rows < 2 or score.groups >= rows or alone.pdep >= 1:
        return 0.0
    mu = 1 - (1 - score.pdep) / (1 - alone.pdep) * (rows - 1) / (rows - score.groups)
    return max(0.0, mu) * (1 - score.groups / rows)
