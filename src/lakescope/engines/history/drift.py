"""What drifted between two versions of a table, told by their profiles: no raw data of either is needed.

Distributions are compared by the largest difference of their distribution functions (Kolmogorov and Smirnov) where
values have an order, else by the share of rows that would have to change (total variation). Profiles do not know a
distribution whole: quantiles fix the function at 21 points within the error of their sketch, and of values only the
most frequent are counted. The interval holds whatever the rest is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lakescope.array_types import F64
from lakescope.engines.history.answers import Drift
from lakescope.engines.history.versions import (
    Record,
    VersionState,
    check_since,
    number_of,
    past_names,
    states_of,
    version_since,
)
from lakescope.results import Results
from lakescope.store.index import Index


@dataclass(frozen=True, slots=True)
class DriftTuning:
    """What counts as a change of a column."""

    #: Least change of the share of missing cells that counts. Not measured: a guess.
    nulls: float = 0.05
    #: Chance of a difference between two samples of one population above which it says nothing. Not measured: low,
    #: since a lake has many columns.
    level: float = 0.001
    #: Values that a change names. Not measured: a matter of room.
    named: int = 3


DRIFT = DriftTuning()

_FACTOR = math.sqrt(-math.log(DRIFT.level / 2) / 2)


@dataclass(frozen=True, slots=True)
class DriftDistance:
    """How far two distributions are apart."""

    measure: str
    value: float
    low: float
    high: float


def drift(
    index: Index, table: str | None = None, *, since: str | int | None = None, minimum: float = 0.1
) -> Results[Drift]:
    """Columns that drifted: of one table, or of all that were changed."""
    check_since(since)
    names = [table] if table is not None else sorted(past_names(index))
    found: list[Drift] = []
    notes, compared = [], 0
    for name in names:
        states = states_of(index, name)
        if states[-1].record.get("until") is not None:
            if table is not None:
                notes.append(f"{name} is not in the lake any more: its last version is compared")
            else:
                notes.append(f"{name} was removed")
                continue
        if len(states) < 2:
            notes.append(f"{name} has no earlier version")
            continue
        number = number_of(since)
        if table is None and number is not None and number >= len(states):
            notes.append(f"{name} has no earlier version {number}: there are versions 1 to {len(states) - 1}")
            continue
        before = version_since(states, since)
        if before is states[-1]:
            continue
        compared += 1
        found += _drifted(name, before, states[-1], minimum)
    found.sort(key=lambda each: (-(each.distance or 0.0), each.table, each.column))
    shown = ("table", "column", "changes", "measure", "distance", "low", "high")
    return Results(Drift, found, shown=shown, notes=notes, info={"tables": len(names), "compared": compared})


def _drifted(table: str, before: VersionState, after: VersionState, minimum: float) -> Iterator[Drift]:
    times = before.record["scanned"], after.record["scanned"]
    for name in dict.fromkeys([*before.columns, *after.columns]):
        old, new = before.columns.get(name), after.columns.get(name)
        if old is None or new is None:
            yield _record(table, name, ("removed" if new is None else "added",), times, old, new, None, None)
            continue
        far = distance(old, new)
        chance = _chance(_filled(old), _filled(new))
        changes = tuple(_changes(old, new, far, chance, minimum))
        if changes or not minimum:
            yield _record(table, name, changes, times, old, new, far, chance)


def _record(
    table: str,
    column: str,
    changes: tuple[str, ...],
    times: tuple[str, str],
    old: Record | None,
    new: Record | None,
    far: DriftDistance | None,
    chance: float | None,
) -> Drift:
    return Drift(
        *(table, column, changes, *times),
        type_before=old["type"] if old else None,
        type_after=new["type"] if new else None,
        nulls_before=_missing(old) if old else None,
        nulls_after=_missing(new) if new else None,
        distinct_before=old["distinct"] if old else None,
        distinct_after=new["distinct"] if new else None,
        measure=far.measure if far else None,
        distance=round(far.value, 4) if far else None,
        low=round(far.low, 4) if far else None,
        high=round(far.high, 4) if far else None,
        exact=far.low == far.high if far else None,
        chance=round(chance, 4) if far and chance is not None else None,
    )


def _changes(
    old: Record, new: Record, far: DriftDistance | None, chance: float | None, minimum: float
) -> Iterator[str]:
    """What is worth a word, in words."""
    if old["type"] != new["type"]:
        yield f"type {old['type']} to {new['type']}"
    missing = _missing(old), _missing(new)
    if abs(missing[0] - missing[1]) >= DRIFT.nulls:
        yield f"missing {missing[0]:.0%} to {missing[1]:.0%}"
    if old["key"] != "no" and new["key"] == "no" and new["rows"]:
        yield "no longer a key" if old["key"] == "yes" else "no longer a likely key"
    if far is not None and far.low >= minimum and far.value > (chance or 0.0):
        yield f"distribution by {far.value:.2f}"
        fresh = _newcomers(old, new)
        if fresh and far.measure == "total variation":
            more = f" and {len(fresh) - DRIFT.named} more" if len(fresh) > DRIFT.named else ""
            yield f"new at the top: {', '.join(fresh[: DRIFT.named])}{more}"
    if far is not None and far.measure == "kolmogorov-smirnov" and far.low >= minimum:
        ranges = [f"{each['minimum']} .. {each['maximum']}" for each in (old, new)]
        if ranges[0] != ranges[1]:
            yield f"range {ranges[0]} to {ranges[1]}"


def _newcomers(old: Record, new: Record) -> list[str]:
    """Frequent values that were not among the frequent ones."""
    known = {each["value"] for each in old["top"] or ()}
    return [each["value"] for each in new["top"] or () if each["value"] not in known]


def _filled(record: Record) -> int:
    return int(record["rows"] - record["nulls"])


def _missing(record: Record) -> float:
    return record["nulls"] / record["rows"] if record["rows"] else 0.0


def _chance(first: int, second: int) -> float | None:
    """The largest difference that two samples of one population have, but for one in a thousand."""
    return min(1.0, _FACTOR * math.sqrt(1 / first + 1 / second)) if first and second else None


# --- distances --------------------------------------------------------------------------------------------------------


def distance(old: Record, new: Record) -> DriftDistance | None:
    """How far the values of two versions of a column are apart; None where one has none."""
    if not _filled(old) or not _filled(new):
        return None
    if old["quantiles"] and new["quantiles"]:
        return _ordered(old, new)
    return _counted(old, new)


def _ordered(old: Record, new: Record) -> DriftDistance:
    """The largest difference of two distribution functions that are known at their quantiles."""
    quantiles = [np.array(each["quantiles"], np.float64) for each in (old, new)]
    points = np.unique(np.concatenate(quantiles))
    errors = [each["quantile_error"] + 1 / _filled(each) for each in (old, new)]
    (low_a, high_a), (low_b, high_b) = (
        _bounds(each, points, error) for each, error in zip(quantiles, errors, strict=True)
    )
    low = float(np.maximum(low_a - high_b, low_b - high_a).max(initial=0.0))
    high = float(np.maximum(high_a - low_b, high_b - low_a).max(initial=0.0))
    shares = [_interpolated(each, points) for each in quantiles]
    value = float(np.abs(shares[0] - shares[1]).max(initial=0.0))
    return DriftDistance("kolmogorov-smirnov", min(max(value, low), high), low, high)


def _bounds(quantiles: F64, points: F64, error: float) -> tuple[F64, F64]:
    """Bounds of a distribution function at some points, and up to the next of them."""
    steps = quantiles.size - 1
    at = np.searchsorted(quantiles, points, "right") - 1
    low = np.clip(at / steps - error, 0, 1)
    high = np.clip((at + 1) / steps + error, 0, 1)
    # Below the least value there is nothing, and nothing is above the largest; both are exact.
    low, high = np.where(at >= steps, 1.0, low), np.where(at < 0, 0.0, high)
    return np.where(at < 0, 0.0, low), high


def _interpolated(quantiles: F64, points: F64) -> F64:
    steps = quantiles.size - 1
    last = np.searchsorted(quantiles, points, "right") - 1
    inner = np.clip(last, 0, steps - 1)
    width = quantiles[inner + 1] - quantiles[inner]
    part = np.where(width > 0, (points - quantiles[inner]) / np.where(width > 0, width, 1), 0.0)
    shares: F64 = np.where(last < 0, 0.0, np.where(last >= steps, 1.0, (inner + part) / steps))
    return shares


def _counted(old: Record, new: Record) -> DriftDistance:
    """The share of rows by which the counts of values differ; of values that are not frequent little is known."""
    (low_a, high_a, rest_a), (low_b, high_b, rest_b) = _shares(old), _shares(new)
    values = {*low_a, *low_b}
    common_least = sum(min(low_a.get(value, 0.0), low_b.get(value, 0.0)) for value in values)
    common_most = sum(min(high_a.get(value, rest_a), high_b.get(value, rest_b)) for value in values)
    # What is left of both beside these values may be the same, or not.
    left = min(1 - sum(low_a.values()), 1 - sum(low_b.values()))
    low, high = max(0.0, 1 - common_most - left), min(1.0, 1 - common_least)
    if _is_complete(old) and _is_complete(new):
        low = high
    return DriftDistance("total variation", (low + high) / 2, min(low, high), high)


def _shares(record: Record) -> tuple[dict[str, float], dict[str, float], float]:
    """Of the frequent values the least and the largest share, and the largest of any other value."""
    filled, top, error = _filled(record), record["top"] or [], record["top_error"] or 0
    low = {each["value"]: each["count"] / filled for each in top}
    high = {each["value"]: min(1.0, (each["count"] + error) / filled) for each in top}
    if _is_complete(record):
        return low, high, 0.0
    least = min((each["count"] for each in top), default=filled)
    return low, high, min(1.0, (least + error) / filled)


def _is_complete(record: Record) -> bool:
    """Whether all values are among the frequent ones."""
    return bool(record["distinct_exact"] and record["distinct"] == len(record["top"] or ()))
