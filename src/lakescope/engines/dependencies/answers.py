"""What is told of dependencies: the records and the choices, light to import."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

#: What a missing value equals: every other one, none, or that rows with one do not count.
Nulls = Literal["equal", "distinct", "skip"]
#: What dependencies are in order of.
Order = Literal["score", "pv", "pt", "gs"]
#: How missing values are filled in when genuineness is worked out.
Model = Literal["uniform", "frequency", "conditional"]
#: Where values are taken out of a table in a study.
Pattern = Literal["uniform", "pareto", "target"]
#: What shares of missing values are of.
Unit = Literal["cells", "tuples"]

NULLS: tuple[Nulls, ...] = get_args(Nulls)
ORDERS: tuple[Order, ...] = get_args(Order)
MODELS: tuple[Model, ...] = get_args(Model)
PATTERNS: tuple[Pattern, ...] = get_args(Pattern)


@dataclass(frozen=True, slots=True)
class Dependency:
    """X -> A: rows that agree on the left side agree on the right one.

    ``degree`` is the number of rows that would have to go for it to hold, under the semantics that was asked for;
    ``holds`` names the semantics under which none have to. ``pv`` and ``pt`` are the likelihoods per value and per
    row where missing values count as one value, ``gs`` the chance that it holds if they are filled in at random
    (between ``gs_low`` and ``gs_high``), ``strength`` the word for it: strong, weak, none or unknown. ``score`` is how
    much it tells beyond chance: what answers are in order of. ``flags``: ``key`` if no two rows share a left side,
    ``constant`` if the right side never changes, ``vacuous`` if there were no two rows to compare, ``unscored`` if time
    was up before its scores were known.
    """

    lhs: tuple[str, ...]
    rhs: str
    degree: int | None
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


@dataclass(frozen=True, slots=True)
class LakeDependency(Dependency):
    """A dependency of a table of the lake.

    A table whose dependencies are not known has one record without sides and with a flag: ``unread``, and why,
    ``large`` if it is too large for a worker, ``incomplete`` if time was up.
    """

    table: str


@dataclass(frozen=True, slots=True)
class Compared:
    """A dependency with its degree in the clean and in the damaged table, and what became of it.

    ``flags`` say why it tells nothing in the damaged table: ``key``, ``constant``, ``vacuous``.
    """

    lhs: tuple[str, ...]
    rhs: str
    clean_degree: int
    degree: int
    label: str
    flags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Violation:
    """A left side with several right ones: which, how often each, and in which rows (from 0; the first ten).

    ``repair`` is the right side of more than half of the rows that have one: what the others might be meant to be.
    ``doubtful`` are these others, all of them; every row of the group if there is nothing to repair them with.
    """

    lhs: tuple[str, ...]
    values: tuple[str, ...]
    counts: tuple[int, ...]
    rows: tuple[int, ...]
    repair: str | None
    doubtful: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Split:
    """Columns to split off: a table of ``key`` and ``columns`` with so many rows; ``saved`` cells less in all.

    ``conflicts`` is the number of rows that contradict it and must be settled before (``fds violations`` shows them).
    ``within`` is the key of the split-off table it is taken out of, empty for the table itself.
    """

    key: tuple[str, ...]
    columns: tuple[str, ...]
    rows: int
    saved: int
    conflicts: int
    within: tuple[str, ...]
    sql: str


@dataclass(frozen=True, slots=True)
class Imputed:
    """A dependency that holds minimally after some imputation, by which of them, and whether after all of them.

    ``flags`` as of any dependency, by the first imputation.
    """

    lhs: tuple[str, ...]
    rhs: str
    methods: tuple[str, ...]
    reference: bool
    flags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Effect:
    """A share of missing values under one semantics: means over the versions.

    ``same``, ``ghost`` and ``fake`` are shares of all candidates; ``jaccard`` compares those that hold with those that
    held. ``base`` is the share of what holds without incomplete rows that held before; for these ``pv_auc``, ``pt_auc``
    and ``score_auc`` say how well a score puts what held first (0.5: not at all), ``pv_top``, ``pt_top`` and
    ``score_top`` how much of its best tenth held. None where nothing can be told apart.
    """

    missing: float
    nulls: str
    versions: int
    rows: float
    exact: float | None
    same: float | None
    ghost: float | None
    fake: float | None
    jaccard: float | None
    base: float | None
    pv_auc: float | None
    pt_auc: float | None
    score_auc: float | None
    pv_top: float | None
    pt_top: float | None
    score_top: float | None
