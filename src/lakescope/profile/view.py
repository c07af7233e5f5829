"""A column record for people: derived shares added, times as ISO text, alerts listed."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Any

from lakescope.profile.types import NUMERIC_TYPES, TEMPORAL_TYPES
from lakescope.values.moments import moment_text
from lakescope.values.standins import (
    is_code_for_nothing,
    is_day_for_nothing,
    is_number_for_nothing,
    is_word_for_nothing,
)

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class SuspectTuning:
    """When a value among the most frequent ones is suspicious."""

    #: How often it occurs at least. Not measured: fewer say nothing.
    fewest: int = 3
    #: How much more often than its like it occurs. Not measured: a guess.
    often: float = 3.0


SUSPECTS = SuspectTuning()


def column_view(record: Record) -> Record:
    """A column record for people: derived shares added, times as ISO text, alerts listed."""
    if record["key"] == "likely" and _repeats(record):
        record = {**record, "key": "no"}
    view = {key: value for key, value in record.items() if key not in ("table", "column")}
    rows, filled = record["rows"], record["rows"] - record["nulls"]
    view = {"name": record["column"], **view}
    view["completeness"] = filled / rows if rows else None
    view["unique"] = _unique(record, filled)
    if record["type"] in TEMPORAL_TYPES:
        _moments_as_text(view, record["type"])
    view["disguised"] = strange = disguised(record)
    view["alerts"] = _alerts(record, strange)
    return view


def _unique(record: Record, filled: int) -> bool | None:
    """Whether no value repeats; None when the sketch cannot tell."""
    if record["distinct_exact"]:
        return bool(record["distinct"] == filled)
    if _repeats(record):
        return False
    return None if record["distinct_high"] >= filled else False


def _repeats(record: Record) -> bool:
    """Whether a value is known to repeat: counts of the most frequent ones are lower bounds."""
    return bool(record["top"]) and bool(record["top"][0]["count"] > 1)


def _moments_as_text(view: Record, kind: str) -> None:
    def text(seconds: float | None) -> str | None:
        return None if seconds is None else moment_text(seconds, kind)

    for name in ("quartiles", "quantiles"):
        view[name] = [text(value) for value in view[name]] if view[name] else view[name]
    for name in ("mean", "fence_low", "fence_high"):
        view[name] = text(view[name])
    if view["histogram"]:
        view["histogram"] = [
            {**bin_, "low": text(bin_["low"]), "high": text(bin_["high"])} for bin_ in view["histogram"]
        ]


def _alerts(record: Record, strange: list[str]) -> list[str]:
    """What a reader should look at first."""
    found = []
    rows, nulls = record["rows"], record["nulls"]
    if rows and nulls == rows:
        return ["empty"]
    if rows and nulls / rows > 0.5:
        found.append("mostly missing")
    if record["key"] != "no":
        found.append("key" if record["key"] == "yes" else "likely key")
    if rows > 1 and record["distinct"] == 1 and record["distinct_exact"]:
        found.append("constant")
    elif record["constancy"] is not None and rows >= 20 and record["constancy"] > 0.9:
        found.append("nearly constant")
    if strange:
        found.append("disguised missing")
    if record["type"] != "text" and record["type_share"] < 1:
        found.append("mixed types")
    if record["outliers"] and rows and record["outliers"] / rows > 0.01:
        found.append("outliers")
    if record["undecodable"]:
        found.append("encoding")
    return found


def disguised(record: Record) -> list[str]:
    """Frequent values that may stand for a missing one, as far as the most frequent values tell.

    A word for nothing that repeats; a number, day or code people write for nothing, at an end of its column where that
    has an order, and far more frequent than the others.
    ``lakescope.engines.dependencies.disguised`` reads the table and finds more.
    """
    top = record["top"] or []
    return [
        each["value"]
        for place, each in enumerate(top)
        if (is_word_for_nothing(each["value"]) and each["count"] > 1 and len(top) > 1)
        or (_is_strange(each["value"], record) and _is_frequent(place, top))
    ]


def _is_strange(value: str, record: Record) -> bool:
    at_the_end = value in (record["minimum"], record["maximum"])
    if record["type"] in NUMERIC_TYPES:
        return at_the_end and is_number_for_nothing(value)
    if record["type"] in TEMPORAL_TYPES:
        return at_the_end and is_day_for_nothing(value)
    return is_code_for_nothing(value)


def _is_frequent(place: int, top: list[Record]) -> bool:
    """More frequent than the other frequent values, which are all the more frequent than the rest."""
    others = [each["count"] for number, each in enumerate(top) if number != place]
    return len(others) > 1 and top[place]["count"] >= max(SUSPECTS.fewest, SUSPECTS.often * median(others))
