"""What missing values did to dependencies, beside a clean version of the table: same, ghost or fake (spec 4.3).

A dependency keeps its degree (*same*), needs more rows to go than before (*ghost*: it is there, but hidden) or fewer
(*fake*: it only seems to be there). Same and ghost ones are *genuine*.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from lakescope.engines.dependencies.answers import Compared, Nulls
from lakescope.engines.dependencies.budget import Budget
from lakescope.engines.dependencies.discover import discover
from lakescope.engines.dependencies.scores import Scorer, trivial
from lakescope.engines.dependencies.table import CodedTable, check_nulls, read
from lakescope.errors import BadRequest
from lakescope.results import Results

Label = Literal["same", "ghost", "fake"]
Universe = Literal["all", "minimal"]
#: As many columns of a left side as any table has.
EVERY = 1_000


def label(clean: int, degree: int) -> Label:
    """What became of a dependency, by its degrees before and after."""
    return "same" if degree == clean else "ghost" if degree > clean else "fake"


def compare(
    query: Any,
    clean: Any,
    nulls: Nulls = "equal",
    max_lhs: int = 3,
    *,
    universe: Universe = "minimal",
    missing: Sequence[str] | str = (),
    budget: float | None = None,
) -> Results[Compared]:
    """Dependencies of a table beside those of its clean version, what changed first; both have the same columns.

    ``universe``: ``minimal`` compares what holds minimally in either, ``all`` every candidate, as the thesis counts.
    ``info["degrees"]`` tells how many of each label there are by degree in the damaged table.
    """
    check_nulls(nulls)
    damaged, whole = read(query, missing), read(clean, missing)
    if damaged.columns != whole.columns:
        raise BadRequest(
            f"the tables have {damaged.columns} and {whole.columns} columns", hint="compare versions of the same table"
        )
    if universe not in ("all", "minimal"):
        raise BadRequest(f"no universe {universe!r}", hint="use all or minimal")
    damaged, notes = _aligned(damaged, whole)
    before, after = Scorer(whole.under(nulls)), Scorer(damaged.under(nulls))
    different = after.different_rows()
    time = Budget(budget)
    candidates, complete = _candidates(before, after, whole.columns, max_lhs, universe, time.part(0.8))
    records = []
    for lhs, rhs in candidates:
        if time.late:
            complete = False
            break
        degrees = before.score(lhs, rhs).degree, after.score(lhs, rhs).degree
        names = tuple(whole.names[each] for each in lhs)
        flags = trivial(after, different, lhs, rhs)
        records.append(Compared(names, whole.names[rhs], *degrees, label(*degrees), flags))
    if not complete:
        notes.append("not complete: time was up; give it a larger budget")
    if min(before.rows, after.rows) < 2:
        notes.append(f"{before.rows:,} and {after.rows:,} rows were left to compare: nothing can be told from that")
    elif trivials := sum(bool(each.flags) for each in records):
        notes.append(f"{trivials:,} follow from keys or constants of the damaged table: flagged")
    # What changed first; short left sides before long ones, as they are.
    records.sort(key=lambda each: ("fake", "ghost", "same").index(each.label))
    counts = Counter(each.label for each in records)
    degrees_of = Counter((each.label, each.degree) for each in records)
    info = {
        **{each: counts[each] for each in ("same", "ghost", "fake")},
        "genuine": counts["same"] + counts["ghost"],
        "degrees": [[word, degree, count] for (word, degree), count in sorted(degrees_of.items())],
    }
    return Results(Compared, records, notes=notes, info=info)


def _aligned(damaged: CodedTable, whole: CodedTable) -> tuple[CodedTable, list[str]]:
    """The damaged table with its columns in the order of the clean one's, by name, or else as they are."""
    notes = []
    if damaged.rows != whole.rows:
        notes.append(f"the tables have {damaged.rows:,} and {whole.rows:,} rows")
    if len(set(whole.names)) == whole.columns and set(damaged.names) == set(whole.names):
        return damaged.chosen(whole.names), notes
    return damaged, [
        *notes,
        "their columns have different names: they are taken in order, under those of the clean one",
    ]


def _candidates(
    before: Scorer, after: Scorer, columns: int, most: int, universe: Universe, budget: Budget
) -> tuple[list[tuple[tuple[int, ...], int]], bool]:
    """What is compared, and whether that is all there is."""
    if universe == "all":
        return sorted(candidates_of(columns, most), key=lambda each: len(each[0])), True
    found: set[tuple[tuple[int, ...], int]] = set()
    complete = True
    for scorer, share in ((before, 0.5), (after, 1.0)):
        made = discover(scorer.codes, most, budget.part(share))
        complete = complete and made.complete
        found |= {(lhs, rhs) for rhs, sides in enumerate(made.left_sides) for lhs in sides}
    return sorted(found, key=lambda each: (len(each[0]), each)), complete


def candidates_of(columns: int, most: int) -> Iterator[tuple[tuple[int, ...], int]]:
    """Every left side of at most so many columns, with every column that is not in it.

    In order of their columns: rows are grouped by the first ones once.
    """
    sizes = range(1, min(most, columns - 1) + 1)
    for lhs in sorted(lhs for size in sizes for lhs in itertools.combinations(range(columns), size)):
        yield from ((lhs, rhs) for rhs in range(columns) if rhs not in lhs)


def degrees(table: CodedTable, nulls: Nulls, *, empty: bool = False) -> Counter[int]:
    """How many candidates have each degree: all left sides, with the empty one if wanted (Table 4.2 of the thesis)."""
    scorer = Scorer(table.under(nulls))
    found: Counter[int] = Counter()
    for size in range(0 if empty else 1, table.columns):
        for lhs in itertools.combinations(range(table.columns), size):
            found.update(scorer.score(lhs, rhs).degree for rhs in range(table.columns) if rhs not in lhs)
    return found
