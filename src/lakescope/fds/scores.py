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


class Scorer:
    """Scores dependencies of one table under one semantics of missing values."""

    def __init__(self, codes: I32) -> None:
        self.codes = np.ascontiguousarray(codes)
        self.rows = int(codes.shape[1])
        size = 16
        while size < 2 * self.rows:
            size *= 2
        self._slots = np.empty(size, np.int32)
        self._tallies = np.empty(size, np.int32)
        self._groups = np.empty(self.rows, np.int64)
        self._sizes, self._parts, self._squares = (np.empty(self.rows, np.int64) for _ in range(3))
        self._grouped_by: tuple[int, ...] | None = None
        self._count = 0

    def group(self, lhs: Sequence[int]) -> int:
        """Group rows by some columns; returns how many groups there are."""
        wanted = tuple(lhs)
        if wanted != self._grouped_by:
            _, self._count = kernels.grouped(self.codes, np.array(wanted, np.int64), self._slots, self._groups)
            self._grouped_by = wanted
        return self._count

    def score(self, lhs: Sequence[int], rhs: int) -> Likelihood:
        """Degree, PV and PT of ``lhs -> rhs``."""
        count = self.group(lhs)
        if not self.rows:
            return Likelihood(0, float("nan"), float("nan"), float("nan"), 0)
        kernels.largest_parts(
            *(self._groups, count, self.codes[rhs], self._sizes, self._parts, self._squares),
            *(self._slots, self._tallies),
        )
        parts, sizes = self._parts[:count], self._sizes[:count]
        kept = int(parts.sum())
        pdep = float((self._squares[:count] / sizes).sum()) / self.rows
        return Likelihood(self.rows - kept, float((parts / sizes).mean()), kept / self.rows, pdep, count)

    def beyond_chance(self, score: Likelihood, rhs: int) -> float:
        """How much a left side tells beyond what any of as many groups would: 0 for nothing, 1 for all.

        The measure mu of Piatetsky-Shapiro and Matheus, less the share of rows whose group is their own: a key tells
        everything, but nothing that one could use.
        """
        if self.rows < 2 or score.groups >= self.rows:
            return 0.0
        alone = self.score((), rhs).pdep
        if alone >= 1:
            return 0.0
        mu = 1 - (1 - score.pdep) / (1 - alone) * (self.rows - 1) / (self.rows - score.groups)
        return max(0.0, mu) * (1 - score.groups / self.rows)
