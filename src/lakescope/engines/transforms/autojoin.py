"""Join two tables whose keys are written differently: both directions, then split keys, then what is nearly equal."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lakescope.engines.transforms.clock import Clock
from lakescope.engines.transforms.evaluate import derived
from lakescope.engines.transforms.find import Doubt, Finder, LearnedJoin
from lakescope.engines.transforms.fuzzy import FUZZY, find_fuzzy
from lakescope.engines.transforms.keys import Key, keys_of, split_keys_of
from lakescope.engines.transforms.pairs import TokenIndex
from lakescope.engines.transforms.plan import Direction, Plan, join, rereadable
from lakescope.engines.transforms.program import Expression, Piece, Program
from lakescope.engines.transforms.texts import TextTable, read
from lakescope.engines.transforms.union import Joined


@dataclass(frozen=True, slots=True)
class AutojoinTuning:
    """What a plan must join where programs are not enough, and how much is told of what was not believed."""

    #: Estimated share of fuzzy joins that must be right after programs. Measured: 0.999 of the pairs of 12 real cases
    #: are right with them, 1.000 without (benchmarks/results/autojoin.md).
    fuzzy_precision: float = 0.95
    #: Source rows that may be left for a fuzzy join. Not measured: a bound on time; 10,000 rows took 4.7 s of CPU in
    #: all.
    left_over: int = 5_000
    #: Columns that are looked at without a program. Not measured: a bound on time.
    columns: int = 8
    #: Keys that are looked at without a program. Not measured: a bound on time.
    keys: int = 4
    #: Rows that must join by distance without a program. Not measured: as many as shares say something of.
    fewest_near: int = 30
    #: Share of a side that must join by distance without a program; one that would join such a share, too, must not
    #: have been refused. Not measured: a half, which company names with short and long endings reach.
    most: float = 0.5
    #: Rows of a table that programs are learnt from, at least: one row shows no rule. Not measured: it cannot be less.
    fewest: int = 2
    #: Programs that were not believed, told as the reason for an empty plan. Not measured: a matter of room.
    doubts: int = 3
    #: Share of the rows that such a program must join to be told. Not measured: smaller ones are chance.
    worth_telling: float = 0.02
    #: What it must join of what the best of them joins. Not measured: a matter of taste.
    beside_the_best: float = 0.3


AUTOJOIN = AutojoinTuning()

_NOTHING = (
    "no program makes the keys of one table out of the other: if rows belong together, the link is knowledge,"
    " or spelling that programs do not follow"
)


def autojoin(left: Any, right: Any, clock: Clock, *, fuzzy: bool = True) -> Plan:
    """The plan that joins most rows of two tables: paths, URIs or frames; an empty one if none is believed.

    ``fuzzy`` joins rows that programs leave where they are nearly equal to one key. Time counts once both are read;
    when it is late, what was found so far is told.
    """
    left, right = rereadable(left), rereadable(right)
    texts = read(left), read(right)
    clock.begin()
    return learnt(*texts, clock, fuzzy=fuzzy).of(left, right)


def learnt(
    left: TextTable,
    right: TextTable,
    clock: Clock,
    *,
    fuzzy: bool,
    led: tuple[frozenset[str], frozenset[str]] | None = None,
) -> Plan:
    """The plan that joins most rows of two tables that were read; if ``led``, by keys of these columns of either."""
    search = _Search((left, right), clock, led)
    search.run()
    plan = replace(search.plan(fuzzy), left=left, right=right, left_names=left.names, right_names=right.names)
    return plan.of(left, right, search.joined)


class _Search:
    """Both directions over the keys of either table, and over pieces of their columns if that finds nothing."""

    def __init__(
        self,
        tables: tuple[TextTable, TextTable],
        clock: Clock,
        led: tuple[frozenset[str], frozenset[str]] | None = None,
    ) -> None:
        self.tables = tables
        self.led = led
        self.clock = clock
        self.began = time.monotonic()
        self.spent = time.process_time()
        self.indexing = 0.0
        self.direction: Direction | None = None
        self.best: LearnedJoin | None = None
        self.joined: Joined | None = None
        self.doubts: list[Doubt] = []
        self.keyless: list[str] = []
        self.complete = True

    def run(self) -> None:
        for keys in (keys_of, split_keys_of):
            directions: tuple[Direction, ...] = ("left->right", "right->left")
            for direction in directions:
                source, target = self._sides(direction)
                began, spent = time.monotonic(), time.process_time()
                known = keys(target)
                self.indexing += time.monotonic() - began
                self.spent += time.process_time() - spent
                if not known:
                    self.keyless.append("right" if direction == "left->right" else "left")
                if self.led is not None:
                    wanted = self.led[1 if direction == "left->right" else 0]
                    known = [key for key in known if any(piece.column in wanted for piece in key.pieces)]
                if not known:
                    continue
                self.clock.tell(f"{direction}: looking for pairs of rows")
                found = Finder(source, target, known, self.clock).find()
                self.doubts += found.doubts if not found.programs else []
                self.complete = self.complete and found.complete
                if found.programs and (self.best is None or _better(found, source, self.best, self.tables)):
                    self.direction, self.best = direction, found
            if self.best is not None:
                break

    def _sides(self, direction: Direction) -> tuple[TextTable, TextTable]:
        return self.tables if direction == "left->right" else (self.tables[1], self.tables[0])

    def plan(self, fuzzy: bool) -> Plan:
        """The plan of what was found, measured on the whole tables."""
        learning = time.monotonic() - self.began - self.indexing
        learning_cpu = time.process_time() - self.spent
        if fuzzy and self.direction is None and not self.clock.late:
            nearly = self._nearly()
            if nearly is not None:
                return nearly
        if self.direction is None or self.best is None:
            return Plan(None, reason=self._reason(), info={"learning": learning, "complete": self.complete})
        return self._plan_of(self.best, self.direction, fuzzy, learning, learning_cpu)

    def _nearly(self) -> Plan | None:
        """What joins by distance alone, on the columns that share most words; None if that is not most of one side.

        Not where a program that would join most rows by these columns was refused: what holds against it holds here.
        """
        refused = [each.columns[0] | each.columns[1] for each in self.doubts if each.share >= AUTOJOIN.most]
        best = self._alike()
        if best is None or {best[1], best[2].pieces[0].column} in refused:
            return None
        direction, name, key = best
        source, target = self._sides(direction)
        program = Program((Expression((Piece(name),)),), key.pieces)
        found = LearnedJoin(programs=[program], keys={key.pieces: key}, measured=np.arange(source.rows))
        self.direction, self.best = direction, found
        plan = self._plan_of(found, direction, True, 0.0, 0.0)
        wanted = max(AUTOJOIN.fewest_near, AUTOJOIN.most * min(source.rows, target.rows))
        if plan.fuzzy is not None and self.joined is not None and self.joined.pairs >= wanted:
            return replace(plan, notes=(*plan.notes, "no program joins these: they are nearly equal as they are"))
        self.direction, self.best, self.joined = None, None, None
        return None

    def _alike(self) -> tuple[Direction, str, Key] | None:
        """The column of a source and the key of a target that have most rows in common by their rare words."""
        best: tuple[int, Direction, str, Key] | None = None
        directions: tuple[Direction, ...] = ("left->right", "right->left")
        for direction in directions:
            source, target = self._sides(direction)
            if _too_many(max(source.rows, target.rows), target.rows):
                return None
            cells = {name: source.column(name).to_pylist() for name in source.names[: AUTOJOIN.columns]}
            words = {name: TokenIndex([[text or ""] for text in texts]) for name, texts in cells.items()}
            for key in (
                each for each in keys_of(target)[: AUTOJOIN.keys] if len(each.pieces) == 1 and not each.running
            ):
                texts = target.column(key.pieces[0].column).to_pylist()
                for name, index in words.items():
                    if self.clock.late:
                        return None
                    shared = len(index.pairs(texts))
                    if best is None or shared > best[0]:
                        best = shared, direction, name, key
        return None if best is None or best[0] < AUTOJOIN.fewest_near else best[1:]

    def _plan_of(
        self, found: LearnedJoin, direction: Direction, fuzzy: bool, learning: float, learning_cpu: float
    ) -> Plan:
        """The plan of programs in one direction, measured on the whole tables."""
        source, target = self._sides(direction)
        evidence = tuple(found.evidence)
        plan = Plan(direction, tuple(found.programs), found.single, evidence=evidence)
        joined = join(plan, source, target)
        if fuzzy:
            self.clock.tell("joining what is nearly equal")
            plan = replace(plan, fuzzy=self._fuzzy(joined))
            joined = join(plan, source, target) if plan.fuzzy is not None else joined
        self.joined = joined
        info = {
            "indexing": self.indexing,
            "learning": learning,
            "learning_cpu": learning_cpu,
            "joining": time.monotonic() - self.began - self.indexing - learning,
            "trials": found.trials,
            "complete": self.complete,
            "sampled": found.sampled is not None and min(found.sampled.source, found.sampled.target) < 1,
            "failure": None if found.sampled is None else found.sampled.failure,
            "rows": joined.rows(len(found.programs)),
        }
        return replace(
            plan,
            coverage=joined.keys / max(1, target.rows),
            source_coverage=joined.pairs / max(1, source.rows),
            notes=self._notes(joined, fuzzy),
            info=info,
        )

    def _fuzzy(self, joined: Joined) -> Any:
        assert self.direction is not None
        assert self.best is not None
        source, target = self._sides(self.direction)
        if _too_many(source.rows - joined.pairs, target.rows):
            return None
        texts = [derived(program.outputs, source).to_pylist() for program in self.best.programs]
        key = self.best.keys[self.best.programs[0].keys]
        fuzzy = find_fuzzy(texts, key, target, joined, self.best.single, AUTOJOIN.fuzzy_precision, self.clock)
        self.complete = self.complete and not self.clock.late
        return fuzzy

    def _notes(self, joined: Joined, fuzzy: bool) -> tuple[str, ...]:
        assert self.direction is not None
        assert self.best is not None
        source, target = self._sides(self.direction)
        notes = []
        sampled = self.best.sampled
        if sampled is not None and min(sampled.source, sampled.target) < 1:
            notes.append(
                f"learnt from {sampled.source:.1%} of the source and {sampled.target:.1%} of the target rows"
                f" (too few pairs with a chance of {sampled.failure:.2g}); joined on all rows"
            )
        notes += joined.notes()
        if fuzzy and (_too_many(source.rows - joined.pairs, target.rows)):
            left = source.rows - joined.pairs
            notes.append(f"{left:,} source rows are left beside {target.rows:,} keys: too many for a fuzzy join")
        if not self.complete:
            notes.append(f"{self.clock.why_late}: there may be better programs")
        return tuple(notes)

    def _reason(self) -> str:
        if not self.complete:
            return f"{self.clock.why_late}, before a program was found"
        if not self.tables[0].rows or not self.tables[1].rows:
            return "a table without rows joins nothing"
        for side, table in zip(("left", "right"), self.tables, strict=True):
            if all(table.column(name).null_count == table.rows for name in table.names):
                return f"no cell of the {side} table holds anything"
        if min(table.rows for table in self.tables) < AUTOJOIN.fewest:
            return "a table of one row shows no rule: there is nothing to compare it with"
        if len(self.keyless) == 4:
            return "neither table has a key, not even one of three columns"
        told = [
            each
            for each in {each.program: each for each in self.doubts}.values()
            if each.share >= AUTOJOIN.worth_telling
        ]
        if not told:
            return _NOTHING
        told.sort(key=lambda each: -each.share)
        worth = [each for each in told[: AUTOJOIN.doubts] if each.share >= AUTOJOIN.beside_the_best * told[0].share]
        return "what was found is not believed. " + "; ".join(each.words() for each in worth)


def _too_many(left_over: int, keys: int) -> bool:
    return left_over > AUTOJOIN.left_over or keys > FUZZY.most_rows


def _better(found: LearnedJoin, source: TextTable, than: LearnedJoin, tables: tuple[TextTable, TextTable]) -> bool:
    """More rows joined, else simpler programs. Rows that were only measured on a sample count for all."""

    def weight(each: LearnedJoin, rows: int) -> tuple[float, tuple[int, ...]]:
        joined = each.pairs * rows / max(1, each.measured.size)
        ranks = [program.rank for program in each.programs]
        return -joined, (len(ranks), *ranks[0])

    other = tables[1] if source is tables[0] else tables[0]
    return weight(found, source.rows) < weight(than, other.rows)
