"""What holds however missing values are filled in: a set to measure by where no clean version is (spec 4.9)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lakescope.engines.dependencies.answers import Imputed
from lakescope.engines.dependencies.budget import Budget
from lakescope.engines.dependencies.discover import discover
from lakescope.engines.dependencies.find import notes_on_missing
from lakescope.engines.dependencies.scores import Scorer, trivial
from lakescope.engines.dependencies.table import read
from lakescope.results import Results
from lakescope.studies.impute import METHODS, Method, imputed


def reference(
    query: Any,
    methods: Sequence[Method] = METHODS,
    max_lhs: int | None = 3,
    *,
    missing: Sequence[str] | str = (),
    bins: int = 0,
    seed: int = 1,
    budget: float | None = 60.0,
) -> Results[Imputed]:
    """Minimal dependencies of a table after each imputation; those that hold after all are the reference set.

    ``bins`` cuts numbers into intervals of equal width, as the thesis did: of measurements nearly all are different.
    """
    table = read(query, missing, texts=True)
    time = Budget(budget)
    scorers: dict[str, Scorer] = {}
    found: list[set[tuple[tuple[int, ...], int]]] = []
    complete = True
    for place, method in enumerate(methods):
        scorers[method] = Scorer(imputed(table, method, seed=seed, bins=bins).under("equal"))
        made = discover(scorers[method].codes, max_lhs, time.part(1 / (len(methods) - place)))
        complete = complete and made.complete
        found.append({(lhs, rhs) for rhs, sides in enumerate(made.left_sides) for lhs in sides})
    first = next(iter(scorers.values()))
    different = first.different_rows()
    records = []
    for lhs, rhs in sorted(set().union(*found), key=lambda each: (len(each[0]), each)):
        # Counted, not looked up: what one search had no time for may hold.
        held = tuple(name for name, scorer in scorers.items() if not scorer.score(lhs, rhs).degree)
        names = tuple(table.names[each] for each in lhs)
        flags = trivial(first, different, lhs, rhs)
        records.append(Imputed(names, table.names[rhs], held, len(held) == len(scorers), flags))
    records.sort(key=lambda each: (bool(each.flags), -len(each.methods)))
    notes = [] if complete else ["not complete: time was up; give it a larger budget"]
    filled = int(table.missing().sum())
    notes.append(f"{filled:,} missing values were filled in" if filled else "no value is missing")
    notes += notes_on_missing(table)
    return Results(Imputed, records, notes=notes, info={"jaccard": _jaccard(found)})


def _jaccard(sets: list[set[tuple[tuple[int, ...], int]]]) -> float | None:
    """Of all that hold minimally after some imputation, the share that do after each."""
    union = set().union(*sets)
    return len(set.intersection(*sets)) / len(union) if union else None
