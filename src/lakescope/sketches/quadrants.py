"""Sides of a cut: which values of a sketch are above it, a bit each, so that quadrants are counted by words (QCR, 3).

Two sketches that share keys agree on the side of a key, or they do not; a correlation shows in how often they agree.
The cut is the one that comes nearest to halving the values (spec 3.9): unlike the mean of the paper it does not put
most of a skewed column on one side, and unlike the median it survives columns that are mostly zero.
"""

from __future__ import annotations

import numpy as np

from lakescope.array_types import F64, U64, Bools

#: Rows of the words of a column: above the balanced cut, present, above the mean, below the mean.
ABOVE, PRESENT, OVER, UNDER = range(4)
ROWS = 4


def balanced_cut(values: F64) -> float:
    """The value at which a cut comes nearest to halving the values: those above it are on one side."""
    ordered = np.sort(values)
    last = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True))
    at = last[np.argmin(np.abs((last + 1) / ordered.size - 0.5))]
    return float(ordered[at])


def sides(values: F64) -> U64:
    """The words of a column's values, one a key; NaN is on no side."""
    present = ~np.isnan(values)
    filled = values[present]
    bits = np.zeros((ROWS, values.size), np.bool_)
    bits[PRESENT] = present
    if filled.size:
        scale = float(np.abs(filled).max()) or 1.0
        mean = float((filled / scale).mean()) * scale
        with np.errstate(invalid="ignore"):
            bits[ABOVE] = values > balanced_cut(filled)
            bits[OVER], bits[UNDER] = values > mean, values < mean
    return packed(bits)


def packed(bits: Bools) -> U64:
    """Rows of bits as words."""
    rows, n = bits.shape
    words = np.zeros((rows, -(-n // 64) * 8), np.uint8)
    found = np.packbits(bits, axis=1, bitorder="little")
    words[:, : found.shape[1]] = found
    return words.view(np.uint64)
