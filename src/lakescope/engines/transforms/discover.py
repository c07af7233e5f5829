"""Which tables of a lake join with mine after a transformation? Candidates by rare q-grams, programs for the best.

What the index knows finds the candidates; the few best of them are read, and a plan is learnt for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from lakescope.engines.joins.grams import GramHit, GramSearch, cut_query
from lakescope.engines.transforms.autojoin import learnt
from lakescope.engines.transforms.clock import Clock
from lakescope.engines.transforms.plan import Plan
from lakescope.engines.transforms.texts import TextTable, read
from lakescope.errors import BadRequest, LakescopeError
from lakescope.results import Results


@dataclass(frozen=True, slots=True)
class TransformSearchTuning:
    """How much is looked at to find tables of a lake that join after a transformation."""

    #: Seconds for one candidate, at most. Measured: a query with 10 candidates takes 3.9 s of CPU
    #: (benchmarks/results/autojoin.md).
    seconds: float = 10.0
    #: Share of the values behind a hit that are equal from which on no transformation is needed. Not measured: nearly
    #: all.
    equal: float = 0.9
    #: Bytes of a table that is read to learn a plan for it. Not measured: a bound on time.
    largest: int = 1 << 30
    #: Tables that a note names. Not measured: a matter of room.
    named: int = 3


DISCOVERY = TransformSearchTuning()

_SHOWN = ("table", "columns", "keys", "program", "coverage", "table_coverage", "pairs")


@dataclass(frozen=True, slots=True)
class TransformJoin:
    """A table of the lake that joins with the query after a transformation.

    ``columns`` are rewritten to meet ``keys``: those of the query if the direction is ``query->table``. ``program`` is
    the first of ``programs`` in plain words. ``coverage`` is the share of the query's rows that join, and
    ``table_coverage`` that of the table's, both counted on all rows. The table was found by ``shared`` rare q-grams, of
    which ``expected`` are due to chance. ``location`` is what to give to ``lakescope.autojoin`` to do the join.
    """

    table: str
    direction: str
    columns: tuple[str, ...]
    keys: tuple[str, ...]
    program: str
    programs: int
    coverage: float
    table_coverage: float
    pairs: int
    shared: int
    expected: float
    location: str


@dataclass(frozen=True, slots=True)
class TransformCandidate:
    """A table that may join: where it lies, its size, its columns that were found, and by which hits, best first."""

    table: str
    location: str
    size: int
    columns: tuple[str, ...]
    hits: tuple[GramHit, ...]

    @property
    def hit(self) -> GramHit:
        return self.hits[0]


@dataclass(frozen=True, slots=True)
class TransformRequest:
    """How many tables are told, and how many are looked at."""

    k: int = 10
    candidates: int = 20

    def check(self) -> None:
        """Refuse what cannot be asked."""
        if min(self.k, self.candidates) < 1:
            raise BadRequest("k and candidates must be at least 1", hint="10 and 20 are good ones")


def transform_joins(
    query: Any,
    request: TransformRequest,
    search: GramSearch,
    described: Callable[[str, Sequence[GramHit]], TransformCandidate],
    table_of: Callable[[GramHit], str],
    own: range,
    clock: Clock,
) -> Results[TransformJoin]:
    """Tables of the lake that join with a query (a path or a frame) after a transformation, best first.

    ``table_of`` says which table a hit is in, ``described`` what there is to know of that table; columns of the query's
    own table (``own``) are left out.
    """
    request.check()
    hits = search.search(cut_query(query), own)
    tables: dict[str, list[GramHit]] = {}
    for hit in hits:
        tables.setdefault(table_of(hit), []).append(hit)
    ranked = (described(table, of_table) for table, of_table in tables.items())
    equal, candidates = _sorted_out(ranked, search, request.candidates)
    found, refused = _learnt(query, candidates, clock)
    looked = len(found) + len(refused)
    info = {"columns": len(hits), "equal": len(equal), "looked": looked, "joined": len(found), "refused": refused}
    notes = _notes(equal, refused)
    if looked < len(candidates):
        left = f"{len(candidates) - looked:,} candidates were not looked at"
        notes.append(f"it was interrupted: {left}" if clock.stopped else f"time was up: {left}; a larger budget helps")
    more = len(tables) - len(equal) - len(candidates)
    if more:
        notes.append(f"{more:,} more tables share rare q-grams, less clearly; with more candidates they are looked at")
    return Results(TransformJoin, found[: request.k], shown=_SHOWN, notes=notes, info=info)


def _learnt(
    query: Any, candidates: Sequence[TransformCandidate], clock: Clock
) -> tuple[list[TransformJoin], dict[str, str]]:
    """Candidates for which there is a plan, most rows of the query first, and why there is none for others."""
    mine = read(query)
    found: list[TransformJoin] = []
    refused: dict[str, str] = {}
    for number, candidate in enumerate(candidates, start=1):
        if clock.late:
            break
        clock.tell(f"{number} of {len(candidates)} candidates: {candidate.table}")
        plan = _plan(mine, candidate, clock)
        if isinstance(plan, Plan) and plan:
            found.append(_record(candidate, plan))
        else:
            refused[candidate.table] = plan if isinstance(plan, str) else plan.reason
    found.sort(key=lambda each: (-each.coverage, -each.table_coverage, each.table))
    return found, refused


def _sorted_out(
    candidates: Iterable[TransformCandidate], search: GramSearch, most: int
) -> tuple[list[TransformCandidate], list[TransformCandidate]]:
    """Tables that join as they are, among those before the last one looked at, and tables to look at."""
    equal: list[TransformCandidate] = []
    chosen: list[TransformCandidate] = []
    for candidate in candidates:
        (equal if search.equal_share(candidate.hit) >= DISCOVERY.equal else chosen).append(candidate)
        if len(chosen) == most:
            break
    return equal, chosen


def _plan(mine: TextTable, candidate: TransformCandidate, clock: Clock) -> Plan | str:
    """What joins a candidate, or why it cannot be told."""
    if candidate.size > DISCOVERY.largest:
        return "too large to be read here: give it to lakescope.autojoin by itself"
    try:
        theirs = read(candidate.location)
    except LakescopeError as error:
        return error.message
    led = frozenset(hit.query_column for hit in candidate.hits), frozenset(candidate.columns)
    return learnt(mine, theirs, clock.part(DISCOVERY.seconds), fuzzy=False, led=led)


def _record(candidate: TransformCandidate, plan: Plan) -> TransformJoin:
    forward = plan.direction == "left->right"
    mine, theirs = (plan.source_coverage, plan.coverage) if forward else (plan.coverage, plan.source_coverage)
    return TransformJoin(
        table=candidate.table,
        direction="query->table" if forward else "table->query",
        columns=plan.columns,
        keys=plan.keys,
        program=str(plan.program),
        programs=len(plan.programs),
        coverage=mine,
        table_coverage=theirs,
        pairs=plan.pairs().num_rows,
        shared=candidate.hit.shared,
        expected=candidate.hit.expected,
        location=str(candidate.location),
    )


def _notes(equal: list[TransformCandidate], refused: dict[str, str]) -> list[str]:
    notes = []
    if equal:
        some = ", ".join(each.table for each in equal[: DISCOVERY.named])
        notes.append(f"{len(equal):,} tables share values as they are (lakescope join finds these): {some}")
    if refused:
        some = ", ".join(list(refused)[: DISCOVERY.named])
        notes.append(f"{len(refused):,} tables share rare q-grams, but no program is believed: {some}")
    return notes
