"""How many rows to draw of two large tables so that enough of them join (section 4.6, with its errata).

Keys are not known, so rows are drawn independently. With ``N_s`` and ``N_t`` rows, rates ``p_s`` and ``p_t`` and a
share ``r`` of target rows that join, ``mu = N_t p_t p_s r`` pairs are expected. By Chernoff's bound, if ``mu`` is at
least ``T / (1 - delta)``, fewer than ``T`` pairs are drawn with a chance of at most ``exp(-delta**2 mu / 2)``. Both
samples are smallest when they have ``sqrt(A N_s)`` rows each, ``A = T / ((1 - delta) r)``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SamplingTuning:
    """How many pairs a sample must hold."""

    #: Pairs that learning needs. From the thesis, 4.6.
    pairs: int = 4
    #: How far below its mean the number of pairs may fall. From the thesis, 4.6: with both, a sample fails with a
    #: chance of 0.0017.
    delta: float = 0.8


SAMPLING = SamplingTuning()


@dataclass(frozen=True, slots=True)
class Rates:
    """Shares of the rows to draw, and the chance of getting too few pairs."""

    source: float
    target: float
    failure: float


def rates(
    source_rows: int, target_rows: int, participation: float, pairs: int = SAMPLING.pairs, delta: float = SAMPLING.delta
) -> Rates:
    """The rates with the fewest rows that give enough pairs; 1 where whole tables are needed."""
    if not source_rows or not target_rows:
        return Rates(1.0, 1.0, 1.0)
    needed = pairs / ((1 - delta) * participation)
    source, target = math.sqrt(needed / source_rows), math.sqrt(needed * source_rows) / target_rows
    if source > 1:
        source, target = 1.0, needed / target_rows
    elif target > 1:
        source, target = needed / target_rows, 1.0
    source, target = min(1.0, source), min(1.0, target)
    expected = target_rows * target * source * participation
    return Rates(source, target, math.exp(-(delta**2) * expected / 2))
