"""Answers about correlations: their record, and the choices that a question may make. Light to import."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from lakescope.results import Find as Find
from lakescope.sketches.aggregates import Aggregate

#: Coefficients of correlation.
Measure = Literal["pearson", "spearman", "rin", "qn", "pm1", "kendall", "qcr"]


#: What comes first among correlations: the end of the interval that is nearer to 0, or a score of the papers.
CorrelationRank = Literal["lower", "s1", "s2", "s3", "s4"]


#: The first stage of a search for correlations: ours, or the papers'.
Retrieval = Literal["z", "qcr", "csk"]


#: Means of the weights of joinability and correlation.
Mean = Literal["geometric", "arithmetic", "harmonic"]


MEASURES: tuple[Measure, ...] = get_args(Measure)


CORRELATION_RANKS: tuple[CorrelationRank, ...] = get_args(CorrelationRank)


RETRIEVALS: tuple[Retrieval, ...] = get_args(Retrieval)


MEANS: tuple[Mean, ...] = get_args(Mean)


@dataclass(frozen=True, slots=True)
class Correlated:
    """A column of the lake that correlates with the query's after a join on the key.

    ``correlation`` is the ``coefficient`` (pearson, spearman, ...) of the join, estimated from ``sample`` of its keys,
    between ``low`` and ``high``; ``exact`` if all keys were seen. ``p`` is the chance of such a coefficient without
    any relation, ``q`` the share of false finds to expect down to here, of all ``looked_at``. ``joined_rows`` is the
    number of rows of the join, ``containment`` the share of the query's keys that find a partner, each between its
    ``_low`` and ``_high``. ``partial`` is what is left if the trend of the key, or a column that was named, is taken
    out. ``spearman`` and ``pearson`` are there whichever is told. ``verified`` is the coefficient of the real join and
    ``verified_rows`` its rows, if it was done.
    """

    table: str
    key: str
    column: str
    correlation: float
    low: float
    high: float
    p: float
    q: float
    sample: int
    joined_rows: float
    joined_rows_low: float
    joined_rows_high: float
    containment: float
    containment_low: float
    containment_high: float
    coefficient: Measure
    aggregate: Aggregate
    exact: bool
    spearman: float
    pearson: float
    partial: float | None
    score: float
    verified: float | None
    verified_rows: int | None
    key_columns: tuple[str, ...]
    reasons: tuple[str, ...]
