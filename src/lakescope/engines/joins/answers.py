"""Answers about joins: their records, and the choices that a question may make. Light to import."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

#: How joins are searched: by costs, exactly, or by estimates alone.
Engine = Literal["auto", "exact", "lsh"]
#: What comes first among joins.
JoinRank = Literal["overlap", "significance"]

#: What a column is guessed to be to a question about correlations.
Role = Literal["key", "target", ""]

ENGINES: tuple[Engine, ...] = get_args(Engine)
JOIN_RANKS: tuple[JoinRank, ...] = get_args(JoinRank)


@dataclass(frozen=True, slots=True)
class Joinable:
    """A column of the lake that joins with a column of the query.

    ``containment`` is the share of the query's distinct values that it holds, between ``low`` and ``high``, which
    are equal if the answer is ``exact``; ``reverse`` the share of its own values that the query holds, ``coverage``
    the share of the query's rows that find a partner. ``expected`` is the overlap that unrelated columns would have,
    ``p`` the chance of such an overlap among as many columns as the lake has, ``reasons`` say why. ``quality`` is a
    word for how well the columns fit: high, good, moderate, poor or none.
    """

    table: str
    column: str
    overlap: int
    containment: float
    low: float
    high: float
    exact: bool
    query_column: str
    query_size: int
    size: int
    reverse: float
    coverage: float | None
    cardinality: str
    type: str
    expected: float
    p: float
    quality: str
    reasons: tuple[str, ...]
    matches: tuple[str, ...]
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JoinPath:
    """A way to a table: the joins that lead there, and the share of values that survive them all.

    A join reads ``TABLE.COLUMN = TABLE.COLUMN``; ``containment`` is the product of the containments on the way.
    """

    table: str
    hops: int
    containment: float
    joins: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Added:
    """A column that was joined in.

    ``filled`` is the share of the table's rows that got a number, ``explains`` the share of the target's variance that
    the columns added so far explain together in a straight line, ``adds`` what this one added to it.
    """

    name: str
    table: str
    column: str
    key: str
    aggregate: str
    correlation: float
    filled: float
    explains: float
    adds: float


@dataclass(frozen=True, slots=True)
class Described:
    """A column of a query as the lake sees it.

    ``known`` is the share of its distinct values that some column of the lake holds; ``plausible`` says whether it
    makes sense to join on it; ``role`` is what it is guessed to be to a question about correlations.
    """

    name: str
    type: str
    rows: int
    nulls: int
    distinct: int
    unique: bool
    known: float
    plausible: bool
    role: Role


@dataclass(frozen=True, slots=True)
class SharedColumns:
    """A column of each of two tables, the values they have in common, and which share of each column's that is."""

    left: str
    right: str
    shared: int
    of_left: float
    of_right: float
