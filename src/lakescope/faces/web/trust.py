"""How far finds can be trusted: what pages say about joins and correlations that may be chance."""

from __future__ import annotations

from typing import Any

from lakescope.lake import CHANCE

#: Share of false finds from which on a find may be chance.
_FALSE = 0.05
#: Words for how strongly two columns go together, each from a coefficient on.
_STRENGTHS = ((0.7, "strong"), (0.5, "good"), (0.3, "moderate"))
#: What tells a reference from columns that merely overlap: the column here, the table there, its column.
References = dict[tuple[str, str, str], float]


def cautions(join: dict[str, Any], reference: float | None = None) -> list[str]:
    """Why to be careful with a join. An overlap of running numbers neither speaks for a reference nor against it."""
    reasons = list(join["reasons"])
    if join["p"] <= CHANCE or not reasons:
        return reasons
    running = next((each for each in reasons if each.startswith("both are ranges of ")), None)
    what = f": {running.partition(':')[0]}" if running else ""
    if reference is not None:
        return [f"overlap alone cannot tell{what}. But all that is known of the two makes a reference likely"]
    if running is None:
        return reasons
    others = [each for each in reasons[1:] if each != running]
    return [f"no more than chance explains, and overlap alone cannot tell{what}", *others]


def telling_joins(records: list[dict[str, Any]], references: References) -> list[dict[str, Any]]:
    """Joins that share more than few values, or are known to be references."""
    return [
        each
        for each in records
        if each["quality"] != "none" or (each["query_column"], each["table"], each["column"]) in references
    ]


def strength(record: dict[str, Any]) -> str:
    """A word for how strongly two columns go together: by the end of the interval that is nearer to none.

    None for what may as well be a false find.
    """
    if _is_doubtful(record):
        return "may be chance"
    low, high = record["low"], record["high"]
    least = 0.0 if low is None or high is None or low <= 0 <= high else min(abs(low), abs(high))
    return next((word for share, word in _STRENGTHS if least >= share), "weak" if least else "none")


def _is_doubtful(record: dict[str, Any]) -> bool:
    """Whether more finds are false down to here than one would put up with."""
    return bool(record["q"] is not None and record["q"] > _FALSE)


def doubtful_last(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Finds in their order, those that may be chance after the others."""
    return sorted(records, key=_is_doubtful)
