"""Minimal approximate dependencies, level by level: those that hold without a share of the rows (spec 4.5)."""

from __future__ import annotations

import itertools

from lakescope.engines.dependencies.budget import Budget
from lakescope.engines.dependencies.discover import Discovered
from lakescope.engines.dependencies.scores import Scorer


def discover_approximate(scorer: Scorer, columns: int, most: int, error: float, budget: Budget) -> Discovered:
    """All minimal dependencies of at most ``most`` columns whose degree is at most ``error`` of the rows."""
    allowed = int(error * scorer.rows + 1e-9)
    found: list[list[tuple[int, ...]]] = [[] for _ in range(columns)]
    validated = 0
    for size in range(min(most, columns - 1) + 1):
        for lhs in itertools.combinations(range(columns), size):
            if budget.late:
                return Discovered(found, False, size - 1, False, size, validated, exact=False)
            inside = set(lhs)
            for rhs in range(columns):
                if rhs in inside or any(inside.issuperset(known) for known in found[rhs]):
                    continue
                validated += 1
                if scorer.score(lhs, rhs).degree <= allowed:
                    found[rhs].append(lhs)
    return Discovered(found, True, most, False, most, validated, exact=False)
