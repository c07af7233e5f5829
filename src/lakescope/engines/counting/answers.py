"""What is told of counts: the records, and the names of counters, light to import."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

#: The twelve estimators in the order of the study, and what they are compared with.
CounterName = Literal[
    "fm",
    "pcsa",
    "ams",
    "bjkst",
    "loglog",
    "superloglog",
    "hll",
    "hll++",
    "mincount",
    "akmv",
    "lc",
    "bf",
    "exact",
    "gee",
]
#: One of them, or the word for all twelve.
CounterChoice = Literal[CounterName, "all"]

COUNTERS: tuple[CounterName, ...] = get_args(CounterName)
#: What the twelve are compared with.
COMPARED = ("exact", "gee")


def counters_of(choices: Sequence[str]) -> list[str]:
    """The counters that were chosen; ``all`` are the twelve."""
    twelve = [name for name in COUNTERS if name not in COMPARED]
    named = [name for choice in choices for name in (twelve if choice == "all" else [choice])]
    return list(dict.fromkeys(named))


@dataclass(frozen=True, slots=True)
class Count:
    """How many distinct values a column holds, by one counter.

    ``low`` and ``high`` hold the truth with 95% confidence; ``truth`` and ``error`` (relative) are there if the exact
    count was asked for. ``bytes`` is the synopsis, ``seconds`` the CPU time of updating and estimating, hashing apart.
    """

    table: str
    column: str
    counter: str
    estimate: float
    low: float
    high: float
    exact: bool
    truth: int | None
    error: float | None
    rows: int
    nulls: int
    bytes: int
    seconds: float
    parameters: str
    warning: str | None


@dataclass(frozen=True, slots=True)
class StoredCount:
    """How many distinct values a column held at a snapshot, by the Theta sketch its writer has left.

    ``low`` and ``high`` hold the truth with 95% confidence; ``exact`` if the sketch kept every value. ``ndv`` is the
    figure the writer noted beside it. ``current`` says whether the snapshot is the table's current one. Values are
    those of the writer: typed, neither trimmed nor rid of null markers.
    """

    table: str
    column: str
    estimate: float
    low: float
    high: float
    exact: bool
    ndv: int | None
    retained: int
    bytes: int
    snapshot: int
    current: bool
    writer: str | None


@dataclass(frozen=True, slots=True)
class Trial:
    """An estimator on columns of one size: mean and largest relative error, mean signed error, and what it cost.

    ``coverage`` is the share of 95% intervals that held the truth, ``nanoseconds`` the CPU time a value, hashing apart.
    """

    counter: str
    values: int
    seeds: int
    error: float | None
    worst: float | None
    bias: float | None
    coverage: float | None
    nanoseconds: float | None
    bytes: int
    parameters: str
    note: str


@dataclass(frozen=True, slots=True)
class CounterAdvice:
    """A counter that may suit, with the error and the bytes that it would have.

    ``fits`` if nothing forbids it; ``reasons`` say what speaks for and against it.
    """

    counter: str
    fits: bool
    error: float
    bytes: int
    parameters: str
    reasons: str
