"""Answers about inclusions and keys: their records, and the choices of a question. Light to import."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

#: How shares are estimated.
Estimator = Literal["hybrid", "mle", "bml", "bottomk", "exact"]
#: Who decides what a foreign key is: ours, or the papers' by names (chen) and by features (rostin).
Method = Literal["ours", "chen", "rostin"]
#: How tables and keys are told as a whole.
DiagramForm = Literal["svg", "mermaid", "sql"]

ESTIMATORS: tuple[Estimator, ...] = get_args(Estimator)
METHODS: tuple[Method, ...] = get_args(Method)


@dataclass(frozen=True, slots=True)
class Inclusion:
    """An ordered pair of columns: the share of the child's values that the parent holds.

    It lies between ``low`` and ``high``, which are equal if it is ``exact``. ``evidence`` says what it rests on:
    ``lists`` of hashes of both, ``registers``, ``hashes`` (the smallest), or ``exact``: counted.
    """

    child_table: str
    child_column: str
    parent_table: str
    parent_column: str
    inclusion: float
    low: float
    high: float
    exact: bool
    child_size: int
    parent_size: int
    evidence: str


@dataclass(frozen=True, slots=True)
class PrimaryKey:
    """The key of a table: the columns that tell its rows apart.

    ``references`` counts the columns that refer to it, ``others`` are columns that would do as well; ``doubts`` say
    what keeps it from being one: rows that repeat a value, or lack one.
    """

    table: str
    columns: tuple[str, ...]
    rows: int
    references: int
    others: tuple[str, ...]
    reasons: tuple[str, ...]
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """Columns of a table that refer to the key of another.

    ``inclusion`` is the share of their values that are keys there, between ``low`` and ``high``, which are equal if
    it was ``exact``; ``coverage`` the share of the keys that are referred to; ``score`` the chance that this is meant.
    ``orphans`` are examples of values without a key.
    """

    child_table: str
    child_columns: tuple[str, ...]
    parent_table: str
    parent_columns: tuple[str, ...]
    inclusion: float
    low: float
    high: float
    exact: bool
    coverage: float
    score: float
    orphans: tuple[str, ...]
    reasons: tuple[str, ...]
