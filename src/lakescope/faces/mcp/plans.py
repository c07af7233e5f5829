"""Joins of two tables as agents are told of them: how, how much, and some of the rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lakescope.faces.mcp.bounds import Answer, bounded, plain, short

if TYPE_CHECKING:
    from lakescope.engines.transforms.fuzzyjoin import FuzzyJoin
    from lakescope.engines.transforms.plan import Plan

#: Joined rows that are told, rows of each side that do not join, and characters of a program in words.
_ROWS, _UNMATCHED, _PROGRAM = 5, 3, 600


def _plan_of(plan: Plan) -> Answer:
    """The programs in words, what they cover, some joined and unmatched rows."""
    unmatched = {side: plan.unmatched(side, _UNMATCHED).to_pylist() for side in ("left", "right")} if plan else {}
    about: dict[str, Any] = {
        "found": bool(plan),
        "direction": plan.direction,
        "columns": list(plan.columns),
        "keys": list(plan.keys),
        "fuzzy": None if plan.fuzzy is None else plan.fuzzy.words(),
        "coverage": plan.coverage,
        "source_coverage": plan.source_coverage,
        "reason": plan.reason,
        "unmatched": {side: [plain(row) for row in rows] for side, rows in unmatched.items()},
    }
    answer = bounded("rows", _first_rows(plan), limit=_ROWS, notes=plan.notes, **about)
    total = plan.pairs().num_rows if plan else 0
    return {**answer, "programs": [short(each.words(), _PROGRAM) for each in plan.programs], "total": total}


def _fuzzy_join(found: FuzzyJoin) -> Answer:
    """The distances in words, what they cover, some joined rows."""
    about: dict[str, Any] = {
        "found": bool(found),
        "on": list(found.on),
        "reference": found.reference,
        "coverage": found.coverage,
    }
    words = None if found.fuzzy is None else short(found.fuzzy.words(), _PROGRAM)
    answer = bounded("rows", _first_rows(found), limit=_ROWS, notes=found.notes, fuzzy=words, **about)
    return {**answer, "total": found.pairs().num_rows}


def _first_rows(found: Plan | FuzzyJoin) -> list[Any]:
    return [plain(row) for row in found.table().slice(0, _ROWS).to_pylist()] if found else []


#: How answers are told that are no records.
TOLD: dict[str, Callable[[Any], Answer]] = {"autojoin": _plan_of, "fuzzyjoin": _fuzzy_join}
