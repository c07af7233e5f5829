"""From a finished column state to its profile: one flat record, the same in the catalog, the API and the CLI.

Every number is exact or carries its error: ``distinct_low/high`` with ``distinct_exact``, ``quantile_error`` as a
share of ranks, ``top_error`` and ``patterns_error`` as counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from lakescope.profile import kernels as k
from lakescope.profile.column import ColumnState
from lakescope.profile.types import NUMERIC_TYPES, TEMPORAL_TYPES, data_class, infer_type
from lakescope.sketches.quantiles import Quantiles, RankedItems
from lakescope.values.canonical import Kind
from lakescope.values.moments import moment_text

BENFORD = [math.log10(1 + 1 / digit) for digit in range(1, 10)]


@dataclass(frozen=True, slots=True)
class SummaryTuning:
    """How much of a column its profile shows."""

    #: Most frequent values. Not measured: a matter of room.
    top: int = 10
    #: Most frequent patterns. Not measured: a matter of room.
    patterns: int = 10
    #: Bins of a histogram. Not measured: a matter of room.
    bins: int = 20
    #: Parts of equal depth that quantiles cut the values into; a multiple of four, for quartiles. Not measured: a
    #: matter of room.
    depths: int = 20
    #: Numbers needed before first digits say anything. Not measured: a rule of thumb.
    benford_least: int = 300
    #: Mean deviation up to which first digits follow Benford. Measured by Nigrini (Benford's Law, 2012): above, they do
    #: not conform.
    benford_mad: float = 0.015


SUMMARY = SummaryTuning()


_KIND_NAMES = {kind: kind.name.lower() for kind in Kind}

Record = dict[str, Any]


def summarise(table: str, column: str, state: ColumnState, rows: int) -> Record:
    """The profile of one column of a table of ``rows`` rows."""
    filled = state.filled
    kinds = state.kinds
    kind, share = infer_type(kinds)
    record: Record = {
        "table": table,
        "position": state.position,
        "column": column,
        "source_type": state.source_type,
        "type": kind,
        "type_share": share,
        "rows": rows,
        "nulls": rows - filled,
        "empty": state.empty,
        "markers": state.markers,
        "undecodable": state.undecodable,
        "kinds": {_KIND_NAMES[name]: count for name, count in kinds.items() if count},
        "sample": state.values.sample(),
    }
    record |= _distinct(state, rows, filled)
    record |= _frequent(state, rows)
    record |= _lengths(state, filled)
    record |= _extremes(state, kind)
    if kind in NUMERIC_TYPES:
        record |= _numeric(state)
    if kind in NUMERIC_TYPES and state.ints[k.PLACED]:
        record |= _distribution(state, state.numbers, k.NUMBERS)
    elif kind in TEMPORAL_TYPES and not state.ints[k.UNPLACED]:
        family, sketch = (k.CLOCKS, state.clocks) if kind == "time" else (k.MOMENTS, state.moments)
        record |= _distribution(state, sketch, family)
    record["data_class"] = data_class(
        kind, rows=rows, distinct=record["distinct"], key=record["key"], median_length=record["length_median"] or 0.0
    )
    return record


def _distinct(state: ColumnState, rows: int, filled: int) -> Record:
    exact = state.values.distinct
    if exact is not None:
        low = high = estimate = exact
    else:
        bounds = state.distinct.interval()
        floor = state.values.limit + 1
        low = min(filled, max(floor, math.floor(bounds[0])))
        high = min(filled, max(low, math.ceil(bounds[1])))
        estimate = min(filled, max(floor, round(state.distinct.estimate())))
    if rows == 0 or filled < rows or (exact is not None and exact < rows):
        key = "no"
    else:
        key = "yes" if exact is not None else ("likely" if high >= rows else "no")
    return {
        "distinct": estimate,
        "distinct_low": low,
        "distinct_high": high,
        "distinct_exact": exact is not None,
        "uniqueness": estimate / rows if rows else None,
        "key": key,
    }


def _frequent(state: ColumnState, rows: int) -> Record:
    top = state.values.top(SUMMARY.top)
    patterns = state.shapes.top(SUMMARY.patterns)
    return {
        "top": [{"value": value.text, "count": value.low} for value in top],
        "top_error": state.values.error,
        "constancy": top[0].low / rows if top and rows else None,
        "patterns": [{"value": value.text, "count": value.low} for value in patterns],
        "patterns_error": state.shapes.error,
    }


def _lengths(state: ColumnState, filled: int) -> Record:
    if not filled:
        return dict.fromkeys(("length_min", "length_max", "length_mean", "length_median"))
    return {
        "length_min": int(state.ints[k.LENGTH_MIN]),
        "length_max": int(state.ints[k.LENGTH_MAX]),
        "length_mean": int(state.ints[k.LENGTH_SUM]) / filled,
        "length_median": _median_length(state.lengths, filled),
    }


def _median_length(bins: np.ndarray, filled: int) -> float:
    """Median from the length histogram; beyond 255 characters the lower end of its power-of-two bin."""
    low, high = bins.cumsum().searchsorted([(filled + 1) // 2, filled // 2 + 1]).tolist()
    return (_bin_length(low) + _bin_length(high)) / 2


def _bin_length(bin_: int) -> float:
    return float(bin_ if bin_ < k.LENGTHS_EXACT else k.LENGTHS_EXACT << (bin_ - k.LENGTHS_EXACT))


def _extremes(state: ColumnState, kind: str) -> Record:
    """Smallest and largest value as canonical text: by number for numbers, by moment for times, else by code point."""
    if kind in NUMERIC_TYPES and state.ints[k.PLACED]:
        low, high = state.floats[k.MINIMUM], state.floats[k.MAXIMUM]
        return {"minimum": _number_text(float(low)), "maximum": _number_text(float(high))}
    if kind in TEMPORAL_TYPES:
        if state.ints[k.UNPLACED]:
            return {"minimum": None, "maximum": None}
        at = k.N_FLOATS * (k.CLOCKS if kind == "time" else k.MOMENTS)
        low, high = state.floats[at + k.MINIMUM], state.floats[at + k.MAXIMUM]
        return {"minimum": moment_text(float(low), kind), "maximum": moment_text(float(high), kind)}
    if state.low is None or state.high is None:
        return {"minimum": None, "maximum": None}
    return {"minimum": state.low.decode("utf-8", "ignore"), "maximum": state.high.decode("utf-8", "ignore")}


def _number_text(x: float) -> str:
    return str(int(x)) if x.is_integer() and abs(x) < 1e22 else repr(x)


def _distribution(state: ColumnState, sketch: Quantiles, family: int) -> Record:
    ranked = RankedItems.of(sketch)
    at = k.N_FLOATS * family
    n = int(state.ints[k.PLACED + family])
    low, high = float(state.floats[at + k.MINIMUM]), float(state.floats[at + k.MAXIMUM])
    inner = ranked.quantiles([i / SUMMARY.depths for i in range(1, SUMMARY.depths)])
    quartiles = [inner[SUMMARY.depths * i // 4 - 1] for i in (1, 2, 3)]
    reach = 1.5 * (quartiles[2] - quartiles[0])
    fences = quartiles[0] - reach, quartiles[2] + reach
    histogram, below = _histogram(ranked, low, high, fences[0])
    outside = below + n - ranked.counts_below([fences[1]], inclusive=True)[0]
    variance = float(state.floats[at + k.M2]) / (n - 1) if n > 1 else None
    return {
        "mean": _finite(float(state.floats[at + k.MEAN])),
        "std": _finite(math.sqrt(max(0.0, variance))) if variance is not None else None,
        "quartiles": quartiles,
        "quantiles": [low, *inner, high],
        "quantile_error": sketch.rank_error,
        "histogram": histogram,
        "outliers": outside,
        "fence_low": _finite(fences[0]),
        "fence_high": _finite(fences[1]),
    }


def _finite(x: float) -> float | None:
    """A number, or None where numbers near the limit of floats made it overflow."""
    return x if math.isfinite(x) else None


def _histogram(ranked: RankedItems, low: float, high: float, fence: float) -> tuple[list[Record], int]:
    """Equal-width bins; each holds its lower edge, the last also its upper. Also the number of values below a fence."""
    width = (high - low) / SUMMARY.bins
    if not math.isfinite(width) or width == 0 or low + width == low:
        return [{"low": low, "high": high, "count": int(ranked.cumulative[-1])}], ranked.counts_below([fence])[0]
    edges = [low + width * i for i in range(SUMMARY.bins)] + [high]
    *inner, outside = ranked.counts_below([*edges[1:-1], fence])
    below = [0, *inner, int(ranked.cumulative[-1])]
    bins = [{"low": edges[i], "high": edges[i + 1], "count": below[i + 1] - below[i]} for i in range(SUMMARY.bins)]
    return bins, outside


def _numeric(state: ColumnState) -> Record:
    first = state.ints[k.DIGIT_1 : k.DIGIT_1 + 9]
    total = int(first.sum())
    record: Record = {
        "zeros": int(state.ints[k.ZEROS]),
        "negatives": int(state.ints[k.NEGATIVES]),
        "infinite": int(state.ints[k.INFINITE]),
        "digits_max": int(state.ints[k.DIGITS_MAX]),
        "decimals_max": int(state.ints[k.DECIMALS_MAX]),
    }
    if total:
        shares = (first / total).tolist()
        record["first_digits"] = shares
        if total >= SUMMARY.benford_least:
            deviation = sum(abs(a - b) for a, b in zip(shares, BENFORD, strict=True)) / 9
            record["benford_deviation"] = deviation
            record["benford"] = deviation <= SUMMARY.benford_mad
    return record
