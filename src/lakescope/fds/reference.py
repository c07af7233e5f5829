"""What holds however missing values are filled in: a set to measure by where no clean version is (spec 4.9)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lakescope.fds.budget import Budget
from lakescope.fds.discover import discover
from lakescope.fds.impute import METHODS, Method, imputed
from lakescope.fds.table import read
from lakescope.results import Results


@dataclass(frozen=True, slots=True)
class Imputed:
    """A dependency that holds minimally after some imputation, by which of them, and whether after all of them.

    It holds after an imputation, too, if a shorter left side does.
    """

    lhs: tuple[str, ...]
    rhs: str
    methods: tuple[str, ...]
    reference: bool


def reference(
    query: Any,
    methods: Sequence[Method] = METHODS,
    max_lhs: int | None = 3,
    *,
    missing: Sequence[str] = (),
    bins: int = 0,
    seed: int = 1,
    budget: float | None = 60.0,
) -> Results[Imputed]:
    """Minimal dependencies of a table after each imputation; those that hold after all are the reference set.

    ``bins`` cuts numbers into intervals of equal width, as the thesis did: of measurements nearly all are different.
    """
    table = read(query, missing, texts=True)
    time = Budget(budget)
    found: dict[str, list[set[tuple[int, ...]]]] = {}
    complete = True
    for method in methods:
        made = discover(imputed(table, method, seed=seed, bins=bins).under("equal"), max_lhs, time)
        complete = complete and made.complete
        found[method] = [set(sides) for sides in made.found]
    every = {(lhs, rhs) for each in found.values() for rhs, sides in enumerate(each) for lhs in sides}
    records = []
    for lhs, rhs in sorted(every, key=lambda each: (len(each[0]), each)):
        held = tuple(name for name in found if any(set(lhs).issuperset(side) for side in found[name][rhs]))
        names = tuple(table.names[each] for each in lhs)
        records.append(Imputed(names, table.names[rhs], held, len(held) == len(found)))
    records.sort(key=lambda each: -len(each.methods))
    notes = [] if complete else ["not complete: time was up; give it a larger budget"]
    filled = int(table.missing().sum())
    notes.append(f"{filled:,} missing values were filled in" if filled else "no value is missing")
    return Results(Imputed, records, notes=notes, info={"jaccard": _jaccard(list(found.values()))})


def _jaccard(sets: list[list[set[tuple[int, ...]]]]) -> float:
    """Of all that hold minimally after some imputation, the share that do after each."""
    plain = [{(lhs, rhs) for rhs, sides in enumerate(each) for lhs in sides} for each in sets]
    union = set().union(*plain)
    return len(set.intersection(*plain)) / len(union) if union else math.nan
