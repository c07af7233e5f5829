"""A column record for people: derived shares added, times as ISO text, alerts listed."""

from __future__ import annotations

from typing import Any

from lakescope.profile.types import TEMPORAL_TYPES
from lakescope.values.moments import moment_text

Record = dict[str, Any]


def column_view(record: Record) -> Record:
    """A column record for people: derived shares added, times as ISO text, alerts listed."""
    view = {key: value for key, value in record.items() if key not in ("table", "column")}
    rows, filled = record["rows"], record["rows"] - record["nulls"]
    view = {"name": record["column"], **view}
    view["completeness"] = filled / rows if rows else None
    view["unique"] = _unique(record, filled)
    if record["type"] in TEMPORAL_TYPES:
        _moments_as_text(view, record["type"])
    view["alerts"] = alerts(record)
    return view


def _unique(record: Record, filled: int) -> bool | None:
    """Whether no value repeats; None when the sketch cannot tell."""
    if record["distinct_exact"]:
        return bool(record["distinct"] == filled)
    return None if record["distinct_high"] >= filled else False


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


def alerts(record: Record) -> list[str]:
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
    if record["type"] != "text" and record["type_share"] < 1:
        found.append("mixed types")
    if record["outliers"] and rows and record["outliers"] / rows > 0.01:
        found.append("outliers")
    if record["undecodable"]:
        found.append("encoding")
    return found
