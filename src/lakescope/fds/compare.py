"""What missing values did to dependencies, beside a clean version of the table: same, ghost or fake (spec 4.3).

A dependency keeps its degree (*same*), needs more rows to go than before (*ghost*: it is there, but hidden) or fewer
(*fake*: it only seems to be there). Same and ghost ones are *genuine*.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from lakescope.errors import BadRequest
from lakescope.fds.discover import discover
from lakescope.fds.scores import Scorer
from lakescope.fds.table import CodedTable, Nulls, check_nulls, read
from lakescope.results import Results

Label = Literal["same", "ghost", "fake"]
Universe = Literal["all", "minimal"]


@dataclass(frozen=True, slots=True)
class Compared:
    """A dependency with its degree in the clean and in the damaged table, and what became of it."""

    lhs: tuple[str, ...]
    rhs: str
    clean_degree: int
    degree: int
    label: str


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
    missing: tuple[str, ...] = (),
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
    before, after = Scorer(whole.under(nulls)), Scorer(damaged.under(nulls))
    records = []
    for lhs, rhs in _candidates(before, after, whole.columns, max_lhs, universe):
        degrees = before.score(lhs, rhs).degree, after.score(lhs, rhs).degree
        names = tuple(whole.names[each] for each in lhs)
        records.append(Compared(names, whole.names[rhs], *degrees, label(*degrees)))
    # What changed first; short left sides before long ones, as they are.
    records.sort(key=lambda each: ("fake", "ghost", "same").index(each.label))
    counts = Counter(each.label for each in records)
    degrees_of = Counter((each.label, each.degree) for each in records)
    info = {
        **{each: counts[each] for each in ("same", "ghost", "fake")},
        "genuine": counts["same"] + counts["ghost"],
        "degrees": [[word, degree, count] for (word, degree), count in sorted(degrees_of.items())],
    }
    return Results(Compared, records, info=info)


def _candidates(
    before: Scorer, after: Scorer, columns: int, most: int, universe: Universe
) -> Iterator[tuple[tuple[int, ...], int]]:
    if universe == "all":
        for size in range(1, min(most, columns - 1) + 1):
            for lhs in itertools.combinations(range(columns), size):
                yield from ((lhs, rhs) for rhs in range(columns) if rhs not in lhs)
        return
    found = {
        (lhs, rhs)
        for scorer in (before, after)
        for rhs, sides in enumerate(discover(scorer.codes, most).found)
        for lhs in sides
    }
    yield from sorted(found, key=lambda each: (len(each[0]), each))


def degrees(table: CodedTable, nulls: Nulls, *, empty: bool = False) -> Counter[int]:
    """How many candidates have each degree: all left sides, with the empty one if wanted (Table 4.2 of the thesis)."""
    scorer = Scorer(table.under(nulls))
    found: Counter[int] = Counter()
    for size in range(0 if empty else 1, table.columns):
        for lhs in itertools.combinations(range(table.columns), size):
            found.update(scorer.score(lhs, rhs).degree for rhs in range(table.columns) if rhs not in lhs)
    return found
