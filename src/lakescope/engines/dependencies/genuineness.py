"""GS: the chance that a dependency holds if missing values are filled in by chance (spec-profiling 4.6).

Every way to fill them in is a possible world; GS is the probability of those worlds in which the dependency holds
(Berti-Equille et al. 2018). It is 1 for a *strong* dependency, which holds whatever is filled in, and above 0 for a
*weak* one. Rows without missing values are certain: they fix what most others must be, and what is left falls into
parts that have nothing to do with each other, so that the sum over worlds becomes a product of small sums. Where a part
stays too large, worlds are drawn.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lakescope.array_types import F64, I32, I64
from lakescope.engines.dependencies import kernels
from lakescope.engines.dependencies.answers import MODELS, Model
from lakescope.engines.dependencies.budget import Budget
from lakescope.engines.dependencies.scores import Scorer
from lakescope.engines.dependencies.table import CodedTable
from lakescope.errors import BadRequest

#: The chance of every value of a column (by its code) for a row that lacks it.
Custom = Callable[[int, int], F64]


@dataclass(frozen=True, slots=True)
class GenuinenessTuning:
    """When genuineness is worked out exactly, and how it is drawn else."""

    #: Ways to fill in one row that are gone through one by one: beyond, drawing is sooner done. Not measured: a bound
    #: on time.
    options: int = 500
    #: States of a part that are gone through one by one. Not measured: a bound on time.
    states: int = 400
    #: Cells that are drawn at a time, about. Not measured: 8 MB of codes.
    drawn: int = 2_000_000
    #: Worlds of a first look. Not measured: a bound on time; what holds in none of them holds in less than 2%.
    screening: int = 256
    #: Incomplete rows of a first look, if there are more. Not measured: a bound on time.
    screened: int = 1_000
    #: Chance that an interval is wrong: one in twenty, divided among a first look at some rows, one at all, and the
    #: rest. A matter of mathematics, not measured.
    risk: float = 0.05 / 3
    #: What a value never seen beside a predictor weighs, in rows. Not measured: the usual half.
    smoothing: float = 0.5
    #: Rows after which it is asked whether time is up. Not measured: some milliseconds.
    look: int = 256


GENUINENESS = GenuinenessTuning()


class Row(NamedTuple):
    """Ways to fill a row in that certain rows leave: left side, right side, chance; and if they refused others."""

    options: list[tuple[tuple[int, ...], int, float]]
    refused: bool


class Genuineness(NamedTuple):
    """GS between ``low`` and ``high``, which are equal if it is exact, else hold it with a chance of 95%.

    ``possible`` is whether there is a world at all in which it holds, however unlikely; None if that is not known.
    """

    value: float
    low: float
    high: float
    possible: bool | None

    @property
    def exact(self) -> bool:
        return self.low == self.high


class Imputation:
    """How likely every value is for a missing cell: alike, by its frequency, or by that beside another's value."""

    def __init__(self, table: CodedTable, model: Model | Custom = "frequency") -> None:
        if not callable(model) and model not in MODELS:
            raise BadRequest(f"no imputation {model!r}", hint="use uniform, frequency, conditional, or a function")
        self.table = table
        self.model = model
        self._domains: dict[int, int] = {}
        self._frequencies: dict[int, F64] = {}
        self._predictors: dict[int, int | None] = {}
        self._beside: dict[tuple[int, int, int], F64] = {}

    def domain(self, column: int) -> int:
        """Different values of a column; one, which nobody knows, if it has none."""
        if column not in self._domains:
            self._domains[column] = max(1, int(self.table.codes[column].max(initial=-1)) + 1)
        return self._domains[column]

    def distribution(self, column: int, row: int) -> F64:
        """The chances of the values of a column in a row."""
        if callable(self.model):
            return _checked(self.model(column, row), self.domain(column))
        if self.model == "conditional":
            predictor = self._predictor(column)
            if predictor is not None and self.table.codes[predictor, row] >= 0:
                return self._conditional(column, predictor, int(self.table.codes[predictor, row]))
        return self._frequency(column)

    @property
    def same_for_all_rows(self) -> bool:
        return self.model in ("uniform", "frequency")

    def _frequency(self, column: int) -> F64:
        if column not in self._frequencies:
            codes = self.table.codes[column]
            counts = np.bincount(codes[codes >= 0], minlength=self.domain(column)).astype(np.float64)
            if self.model == "uniform" or not counts.sum():
                counts = np.ones(counts.size)
            self._frequencies[column] = counts / counts.sum()
        return self._frequencies[column]

    def _predictor(self, column: int) -> int | None:
        """The other column that tells most about one, if any tells more than its most frequent value does."""
        if column not in self._predictors:
            codes = self.table.codes
            known = np.ascontiguousarray(codes[:, codes[column] >= 0])
            scorer = Scorer(known)
            gains: list[tuple[float, int]] = []
            if known.shape[1]:
                most = float(self._frequency(column).max())
                for other in range(self.table.columns):
                    score = scorer.score((other,), column)
                    # Groups of one row predict nothing.
                    if other != column and score.groups <= known.shape[1] / 2 and score.pt > most:
                        gains.append((score.pt, -other))
            self._predictors[column] = -max(gains)[1] if gains else None
        return self._predictors[column]

    def _conditional(self, column: int, predictor: int, value: int) -> F64:
        wanted = column, predictor, value
        if wanted not in self._beside:
            codes = self.table.codes
            beside = codes[column][(codes[predictor] == value) & (codes[column] >= 0)]
            counts = np.bincount(beside, minlength=self.domain(column)) + GENUINENESS.smoothing * self._frequency(
                column
            )
            self._beside[wanted] = counts / counts.sum()
        return self._beside[wanted]


def _checked(chances: F64, size: int) -> F64:
    found = np.asarray(chances, np.float64)
    if found.size != size or (found < 0).any() or not math.isclose(float(found.sum()), 1.0, rel_tol=1e-6):
        raise BadRequest(
            f"an imputation gave {found.size} chances that add up to {found.sum():g}",
            hint=f"give {size} chances, one for each value of the column, that add up to 1",
        )
    return found


def hoeffding_worlds(error: float, confidence: float = 0.95) -> int:
    """Worlds that must be drawn to know a share this closely, whatever the number of rows."""
    return math.ceil(math.log(2 / (1 - confidence)) / (2 * error * error))


class GenuinenessScorer:
    """GS of dependencies of one table."""

    def __init__(
        self, table: CodedTable, model: Model | Custom = "frequency", error: float = 0.02, seed: int = 1
    ) -> None:
        self.table = table
        self.imputation = Imputation(table, model)
        self.error = error
        self.seed = seed
        #: When it is late, fewer worlds are drawn.
        self.budget = Budget(None)

    def score(self, lhs: Sequence[int], rhs: int) -> Genuineness:
        """GS of ``lhs -> rhs``: exact where that is feasible, else from worlds that are drawn."""
        sides = [*lhs, rhs]
        codes = np.ascontiguousarray(self.table.codes[sides])
        lacking = np.flatnonzero((codes < 0).any(axis=0))
        certain = np.ascontiguousarray(codes[:, (codes >= 0).all(axis=0)])
        if _contradicts(certain):
            return Genuineness(0.0, 0.0, 0.0, possible=False)
        if not lacking.size:
            return Genuineness(1.0, 1.0, 1.0, possible=True)
        if lacking.size > GENUINENESS.screened:
            few = np.sort(np.random.default_rng(self.seed).choice(lacking, GENUINENESS.screened, replace=False))
            held, drawn = self._count_holding(sides, codes[:, few], few, certain, GENUINENESS.screening)
            if not held:
                # What breaks with some of the rows filled in breaks with all.
                return Genuineness(0.0, 0.0, 1 - GENUINENESS.risk ** (1 / drawn), possible=None)
        found, possible = self._exactly(sides, codes[:, lacking], lacking, _fixed(certain, codes[:, lacking]))
        if found is not None:
            value = min(1.0, found)
            return Genuineness(value, value, value, possible)
        return self._drawn(sides, codes[:, lacking], lacking, certain)

    # --- exactly ------------------------------------------------------------------------------------------------------

    def _exactly(
        self, sides: list[int], rows: I32, numbers: I64, fixed: dict[tuple[int, ...], int]
    ) -> tuple[float | None, bool]:
        """The product over independent parts, None where one is too large; and whether it can hold at all."""
        total = 1.0
        left: list[Row] = []
        for at, number in enumerate(numbers.tolist()):
            if at % GENUINENESS.look == 0 and self.budget.late:
                return None, True
            options = self._options(sides, rows[:, at].tolist(), number)
            if options is None:
                return None, True
            implied, free, refused = 0.0, [], False
            for side, value, chance in options:
                if side not in fixed:
                    free.append((side, value, chance))
                elif fixed[side] == value:
                    implied += chance
                else:
                    refused = True
            if not free:
                if not implied:
                    return 0.0, False
                total *= implied if refused else 1.0
            else:
                if implied:
                    free.append(((), -1, implied))
                left.append(Row(free, refused))
        for part in _parts(left):
            found = _sum_over_worlds(part)
            if found is None or self.budget.late:
                return None, True
            if not found:
                return 0.0, False
            total *= found
        return total, True

    def _options(
        self, sides: list[int], row: list[int], number: int
    ) -> Iterator[tuple[tuple[int, ...], int, float]] | None:
        """All ways to fill in a row, with their chances."""
        missing = [place for place, code in enumerate(row) if code < 0]
        if math.prod(self.imputation.domain(sides[place]) for place in missing) > GENUINENESS.options:
            return None
        chances = [self.imputation.distribution(sides[place], number).tolist() for place in missing]

        def ways() -> Iterator[tuple[tuple[int, ...], int, float]]:
            filled = list(row)
            for values in itertools.product(*(range(len(each)) for each in chances)):
                chance = math.prod(each[value] for each, value in zip(chances, values, strict=True))
                if chance:
                    for place, value in zip(missing, values, strict=True):
                        filled[place] = value
                    yield tuple(filled[:-1]), filled[-1], chance

        return ways()

    # --- by drawing ---------------------------------------------------------------------------------------------------

    def _drawn(self, sides: list[int], rows: I32, numbers: I64, certain: I32) -> Genuineness:
        """The share of worlds in which it holds, with Hoeffding's bound, after a first look whether it ever does."""
        held, drawn = self._count_holding(sides, rows, numbers, certain, GENUINENESS.screening)
        if held in (0, drawn):
            bound = 1 - GENUINENESS.risk ** (1 / drawn)
            return Genuineness(float(held > 0), 1 - bound if held else 0.0, 1.0 if held else bound, bool(held) or None)
        held, drawn = self._count_holding(
            sides, rows, numbers, certain, hoeffding_worlds(self.error, 1 - GENUINENESS.risk)
        )
        share = held / drawn
        bound = math.sqrt(math.log(2 / GENUINENESS.risk) / (2 * drawn))
        return Genuineness(share, max(0.0, share - bound), min(1.0, share + bound), bool(held) or None)

    def _count_holding(self, sides: list[int], rows: I32, numbers: I64, certain: I32, wanted: int) -> tuple[int, int]:
        """In how many worlds it holds, of how many that were drawn."""
        dice = np.random.default_rng([self.seed, wanted, *sides])
        batch = max(1, min(wanted, GENUINENESS.drawn // max(1, rows.size)))
        held = drawn = 0
        while drawn < wanted:
            worlds = np.repeat(rows[None, :, :], batch, axis=0)
            for place, column in enumerate(sides):
                lacking = np.flatnonzero(rows[place] < 0)
                if not lacking.size:
                    continue
                if self.imputation.same_for_all_rows:
                    chances = self.imputation.distribution(column, 0)
                    worlds[:, place, lacking] = dice.choice(chances.size, (batch, lacking.size), p=chances)
                else:
                    for at in lacking.tolist():
                        chances = self.imputation.distribution(column, int(numbers[at]))
                        worlds[:, place, at] = dice.choice(chances.size, batch, p=chances)
            held += kernels.worlds_that_hold(certain, worlds)
            drawn += batch
            if self.budget.late:
                break
        return held, drawn


def _fixed(certain: I32, lacking: I32) -> dict[tuple[int, ...], int]:
    """What certain rows say of left sides that incomplete ones may have."""
    kept = np.ones(certain.shape[1], np.bool_)
    for known, wanted in zip(certain[:-1], lacking[:-1], strict=True):
        if (wanted >= 0).all():
            kept &= np.isin(known, wanted)
    return {tuple(each[:-1]): each[-1] for each in certain[:, kept].T.tolist()}


def _contradicts(certain: I32) -> bool:
    """Whether rows without missing values break a dependency; its right side is the last of the columns."""
    rows = certain.shape[1]
    if rows < 2:
        return False
    size = 16
    while size < 2 * rows:
        size *= 2
    single = np.zeros(certain.shape, np.bool_)
    lhs, rhs = np.arange(certain.shape[0] - 1), np.array([certain.shape[0] - 1])
    pairs = np.empty((1, 3), np.int64)
    return bool(kernels.violations(certain, single, lhs, rhs, np.empty(size, np.int32), 1, pairs))


def _parts(rows: list[Row]) -> list[list[Row]]:
    """Rows that may meet in a left side that no certain row has, together."""
    parent = list(range(len(rows)))

    def root(at: int) -> int:
        while parent[at] != at:
            parent[at] = parent[parent[at]]
            at = parent[at]
        return at

    first: dict[tuple[int, ...], int] = {}
    for at, row in enumerate(rows):
        for side, value, _ in row.options:
            if value >= 0:
                parent[root(at)] = root(first.setdefault(side, at))
    found: dict[int, list[Row]] = {}
    for at, row in enumerate(rows):
        found.setdefault(root(at), []).append(row)
    return list(found.values())


def _sum_over_worlds(rows: list[Row]) -> float | None:
    """The chance that rows agree where they meet: states are what left sides have been given; None if too many."""
    states: dict[frozenset[tuple[tuple[int, ...], int]], float] = {frozenset(): 1.0}
    last: dict[tuple[int, ...], int] = {}
    refused = any(row.refused for row in rows)
    for at, row in enumerate(rows):
        for side, _, _ in row.options:
            last[side] = at
    for at, row in enumerate(rows):
        reached: dict[frozenset[tuple[tuple[int, ...], int]], float] = {}
        for state, chance in states.items():
            given = dict(state)
            for side, value, option in row.options:
                if value >= 0 and given.get(side, value) != value:
                    refused = True
                    continue
                # A left side that no later row can have need not be remembered.
                kept = state if value < 0 or side in given else state | {(side, value)}
                kept = frozenset(each for each in kept if last[each[0]] > at)
                reached[kept] = reached.get(kept, 0.0) + chance * option
        if len(reached) > GENUINENESS.states:
            return None
        states = reached
    # Where nothing was refused, everything holds, whatever the chances add up to by rounding.
    return sum(states.values()) if refused else 1.0
