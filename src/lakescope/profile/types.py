"""From counts of cell kinds to the type and class of a column (thesis chapter 1, table 1.1)."""

from __future__ import annotations

from collections.abc import Mapping

from lakescope.values.canonical import Kind

#: Share of the non-null cells a type must cover; a little dirt does not make a number column a text column.
TYPE_SHARE = 0.98

#: Types whose values have a number: statistics such as mean and quartiles apply.
NUMERIC_TYPES = ("integer", "decimal")
TEMPORAL_TYPES = ("date", "time", "timestamp")


def infer_type(kinds: Mapping[Kind, int]) -> tuple[str, float]:
    """Most specific type that covers the column, and the share of the non-null cells that have it.

    Integer before decimal before text, date before timestamp. Codes win over integers: one ``00501`` among zip codes
    says that the digits are names, not numbers.
    """
    total = sum(kinds.values())
    if total == 0:
        return "null", 1.0
    integer, decimal, code = kinds[Kind.INTEGER], kinds[Kind.DECIMAL], kinds[Kind.CODE]
    ladder = [
        ("boolean", kinds[Kind.BOOLEAN]),
        ("integer", integer),
        ("decimal", integer + decimal if decimal else 0),
        ("code", integer + code if code else 0),
        ("date", kinds[Kind.DATE]),
        ("timestamp", kinds[Kind.DATE] + kinds[Kind.TIMESTAMP] if kinds[Kind.TIMESTAMP] else 0),
        ("time", kinds[Kind.TIME]),
    ]
    for name, count in ladder:
        if count == total:
            return name, 1.0
    best, count = max(ladder, key=lambda rung: rung[1])
    if count >= TYPE_SHARE * total:
        return ("code" if code and best == "integer" else best), count / total
    return "text", kinds[Kind.TEXT] / total


def data_class(kind: str, *, rows: int, distinct: float, key: str, median_length: float) -> str:
    """What the column is for: code, indicator, text, date/time, quantity or identifier."""
    if kind == "null":
        return "empty"
    if kind in TEMPORAL_TYPES:
        return "date/time"
    if kind == "boolean" or distinct <= 2:
        return "indicator"
    if key != "no" and kind in ("integer", "code", "text") and median_length <= 40:
        return "identifier"
    if kind == "code":
        return "code"
    if kind in NUMERIC_TYPES:
        few = kind == "integer" and distinct <= 20 and distinct <= 0.05 * rows
        return "code" if few else "quantity"
    return "code" if median_length <= 30 and distinct <= 0.5 * rows else "text"
