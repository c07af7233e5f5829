"""What is told of inclusions: the record and the choices, light to import."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

#: How shares are estimated.
Estimator = Literal["hybrid", "mle", "bml", "bottomk", "exact"]
ESTIMATORS: tuple[Estimator, ...] = get_args(Estimator)


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
