"""Finding the programs that join a source table to a target one: pairs, subsets, programs, coverage (Algorithm 5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from lakescope.array_types import I64
from lakescope.engines.transforms.chance import Met
from lakescope.engines.transforms.clock import Clock
from lakescope.engines.transforms.evaluate import BETWEEN, derived, hashes_of
from lakescope.engines.transforms.guard import doubt, doubt_of_addition
from lakescope.engines.transforms.keys import Key
from lakescope.engines.transforms.learn import Example, Learner
from lakescope.engines.transforms.literals import memorised
from lakescope.engines.transforms.pairs import GramColumn, Group, Pair, TokenIndex, folded, gram_pairs, run_together
from lakescope.engines.transforms.plan import ExamplePair
from lakescope.engines.transforms.program import Constant, Expression, Operator, Piece, Program
from lakescope.engines.transforms.sampling import Rates, rates
from lakescope.engines.transforms.texts import TextTable
from lakescope.engines.transforms.union import Joined, joined, one_to_one


@dataclass(frozen=True, slots=True)
class FinderTuning:
    """How much is tried to find programs."""

    #: Examples of a set. From the thesis, 4.4: three or four, since one wrong pair makes a set useless.
    examples: int = 3
    #: Sets of a group. Not measured: the thesis gives none; with ``trials``, four groups are tried whole.
    sets: int = 32
    #: Sets in all, for each program of the union. From the thesis, appendix: around 128.
    trials: int = 128
    #: Sets in a row that bring nothing new before learning ends. Not measured: a guess that saves time.
    idle: int = 10
    #: Share of pairs that a program must fit for learning to end. Not measured: nearly all.
    enough: float = 0.95
    #: Share of the smaller side from which on columns that join as they are leave nothing to learn. Not measured:
    #: nearly all.
    equal: float = 0.98
    #: Kinds of pairs that are alike which sets are drawn from. Not measured: a guess.
    clusters: int = 6
    #: Pairs of a group that sets are drawn from. Not measured: twice what the specification of section 4.4 of the
    #: thesis proposes.
    drawn: int = 64
    #: Groups that are looked at. Not measured: a bound on time.
    groups: int = 8
    #: Programs whose coverage is measured. Not measured: a bound on time.
    measured: int = 12
    #: Programs of a union. Not measured: a bound on time.
    programs: int = 8
    #: Share of the smaller side that each further program must add. Not measured: a guess.
    added: float = 0.004
    #: Rows that each further program must add: those that it is learnt from. Not measured: as many as ``examples``.
    added_least: int = 3
    #: Rows that coverage is measured on: all, or this many drawn by chance. Not measured: a share of one half is known
    #: to a third of a point.
    rows: int = 20_000
    #: Rows that what chance would join is measured on. Not measured: as many as texts are made anew.
    chance: int = 400
    #: Keys that are looked at for what all have in common. Not measured: a bound on time.
    key_rows: int = 2000
    #: Shares of target rows that join which samples are made for: at first, and when nothing was found. From the
    #: thesis, 4.6: 10% in its example, 1% as the low end.
    participation: tuple[float, ...] = (0.1, 0.01)
    #: Tables of so few rows are not sampled. Measured with benchmarks/autojoin.py: learning at 1,000 rows takes 0.7 s
    #: of CPU.
    small: int = 4000
    #: Columns of a source that programs may use. Not measured: a bound on time for wide tables.
    columns: int = 24
    #: Seed of all that is drawn, so that a plan is the same each time. Not measured: any number would do.
    seed: int = 5


FINDER = FinderTuning()


@dataclass(frozen=True, slots=True)
class Doubt:
    """A program in words, the share of the smaller side's rows that it would join, and why it is not believed.

    ``columns`` are those that it takes and those of the key.
    """

    program: str
    share: float
    why: str
    columns: tuple[frozenset[str], frozenset[str]]

    def words(self) -> str:
        return f"{self.program} would join {self.share:.0%} of the rows, but {self.why}"


@dataclass
class LearnedJoin:
    """Programs of one direction in order, the key of each, what they join of the rows measured, and why not more."""

    programs: list[Program] = field(default_factory=list)
    keys: dict[tuple[Piece, ...], Key] = field(default_factory=dict)
    joined: Joined | None = None
    measured: I64 = field(default_factory=lambda: np.empty(0, np.int64))
    single: bool = True
    evidence: list[ExamplePair] = field(default_factory=list)
    sampled: Rates | None = None
    doubts: list[Doubt] = field(default_factory=list)
    trials: int = 0
    complete: bool = True

    @property
    def pairs(self) -> int:
        return 0 if self.joined is None else self.joined.pairs


class Finder:
    """Finds programs from one table to the keys of another."""

    def __init__(self, source: TextTable, target: TextTable, keys: Sequence[Key], clock: Clock) -> None:
        self.source, self.target, self.clock = source, target, clock
        self.keys = list(keys)
        self.rng = np.random.default_rng(FINDER.seed)
        self.result = LearnedJoin(keys={key.pieces: key for key in keys})
        every = np.arange(source.rows)
        drawn = every if source.rows <= FINDER.rows else np.sort(self.rng.choice(every, FINDER.rows, replace=False))
        self.result.measured = drawn
        self.rows = source.at(drawn) if source.rows > FINDER.rows else source
        #: Rows that chance is tried on.
        self.some = self.rows.records(np.sort(self.rng.permutation(self.rows.rows)[: FINDER.chance]))
        self._met: dict[Program, Met] = {}
        self._texts: dict[Piece, list[str | None]] = {}
        self._key_rows = np.sort(self.rng.permutation(target.rows)[: FINDER.key_rows])

    def find(self) -> LearnedJoin:
        """The best program, then what adds to it; nothing if no program is believed."""
        for participation in FINDER.participation:
            self._first(participation)
            whole = self.result.sampled is None or min(self.result.sampled.source, self.result.sampled.target) >= 1
            if self.result.programs or whole or self.clock.late:
                break
        while self.result.programs and len(self.result.programs) < FINDER.programs and not self.clock.late:
            if not self._more():
                break
        self.result.complete = not self.clock.late
        return self.result

    # --- the first program, and more ---------------------------------------------------------------------------------

    def _first(self, participation: float) -> None:
        drawn = self._rates(self.source.rows, self.target.rows, participation)
        self.result.sampled = drawn
        source = self._sample(np.arange(self.source.rows), drawn.source)
        target = self._sample(np.arange(self.target.rows), drawn.target)
        candidates = self._equal()
        most = FINDER.equal * min(self.rows.rows, self.target.rows)
        if not any(self._coverage(each) >= most and self._doubt(each) is None for each in candidates):
            candidates += self._learnt(source, target)
        ranked = sorted(dict.fromkeys(candidates), key=lambda each: (-self._coverage(each), each.rank))
        for program in ranked:
            why = self._doubt(program)
            if why is None:
                self.result.programs.append(program)
                self.result.single = one_to_one(self._meet(program).targets)
                self._settle()
                break
            self._refuse(program, why)
        if self.result.programs:
            self._add(ranked)

    def _doubt(self, program: Program) -> str | None:
        why = doubt(self._meet(program), self.result.keys[program.keys], program, self.some, self.rows.rows)
        return why or self._memory(program)

    def _refuse(self, program: Program, why: str) -> None:
        share = self._coverage(program) / max(1, min(self.rows.rows, self.target.rows))
        columns = frozenset(program.columns), frozenset(piece.column for piece in program.keys)
        self.result.doubts.append(Doubt(program.words(), share, why, columns))

    def _memory(self, program: Program) -> str | None:
        """Whether a program knows by heart what varies among the keys."""
        value = memorised(program, self.some, [self._key_texts(piece) for piece in program.keys])
        return None if value is None else f"{value!r} is one of many that keys have in its place"

    def _key_texts(self, piece: Piece) -> list[str | None]:
        if piece not in self._texts:
            some = self.target.chosen([piece.column]).at(self._key_rows)
            self._texts[piece] = derived([Expression((piece,))], some).to_pylist()
        return self._texts[piece]

    def _more(self) -> bool:
        """Learn from rows that are not joined yet; whether that added anything."""
        assert self.result.joined is not None
        open_rows = self.result.measured[self.result.joined.targets < 0]
        taken = np.zeros(self.target.rows, bool)
        if self.result.single:
            taken[self.result.joined.targets[self.result.joined.targets >= 0]] = True
        open_targets = np.flatnonzero(~taken)
        if open_rows.size < FINDER.added_least or open_targets.size < FINDER.added_least:
            return False
        drawn = self._rates(open_rows.size, open_targets.size, FINDER.participation[0])
        learnt = self._learnt(self._sample(open_rows, drawn.source), self._sample(open_targets, drawn.target))
        return self._add(learnt)

    def _add(self, candidates: Sequence[Program]) -> bool:
        """Add the programs that add most, as long as they are believed."""
        added = False
        known, keys = set(self.result.programs), self.result.programs[0].keys
        waiting = [each for each in dict.fromkeys(candidates) if each not in known and each.keys == keys]
        least = max(FINDER.added_least, FINDER.added * min(self.rows.rows, self.target.rows))
        while waiting and len(self.result.programs) < FINDER.programs and not self.clock.late:
            assert self.result.joined is not None
            before = self.result.joined
            gains = {each: self._union([*self.result.programs, each]).pairs - before.pairs for each in waiting}
            best = min(waiting, key=lambda each: (-gains[each], each.rank))
            if gains[best] < least:
                break
            waiting.remove(best)
            if gains[best] < best.size:
                self._refuse(best, "it says more than it joins")
                continue
            key = self.result.keys[best.keys]
            why = doubt_of_addition(self._meet(best), key, best, self.some, before.targets) or self._memory(best)
            if why is None:
                self.result.programs.append(best)
                self._settle()
                added = True
            else:
                self._refuse(best, why)
        return added

    def _settle(self) -> None:
        self.result.joined = self._union(self.result.programs)

    def _union(self, programs: Sequence[Program]) -> Joined:
        return joined([self._meet(each).targets for each in programs], self.result.single)

    def _meet(self, program: Program) -> Met:
        if program not in self._met:
            texts = derived(program.outputs, self.rows)
            targets = self.result.keys[program.keys].look_up(hashes_of(texts))
            self._met[program] = Met(texts.to_pylist(), targets)
        return self._met[program]

    def _coverage(self, program: Program) -> int:
        """Target keys that a program meets; rows that lay claim to the same key count once."""
        targets = self._meet(program).targets
        return int(np.unique(targets[targets >= 0]).size)

    # --- candidates --------------------------------------------------------------------------------------------------

    def _rates(self, source: int, target: int, participation: float) -> Rates:
        if max(source, target) <= FINDER.small:
            return Rates(1.0, 1.0, 0.0)
        return rates(source, target, participation)

    def _sample(self, rows: I64, rate: float) -> I64:
        wanted = max(FINDER.examples, round(rate * rows.size))
        return rows if wanted >= rows.size else np.sort(self.rng.choice(rows, wanted, replace=False))

    def _equal(self) -> list[Program]:
        """Programs that take columns as they are (4.10, 7): any for keys of one, those of the same names for others."""
        found = []
        names = {name.casefold(): name for name in self.source.names[: FINDER.columns]}
        for key in self.keys:
            if len(key.pieces) == 1:
                found += [Program((Expression((Piece(name),)),), key.pieces) for name in names.values()]
            elif all(piece.column.casefold() in names for piece in key.pieces):
                same = [Piece(names[piece.column.casefold()], piece.steps) for piece in key.pieces]
                found.append(Program(tuple(Expression((piece,)) for piece in same), key.pieces))
        return [program for program in found if self._coverage(program) >= FINDER.added_least]

    def _learnt(self, source: I64, target: I64) -> list[Program]:
        """Programs learnt from pairs of sampled rows, those that fit most pairs first."""
        names = self.source.names[: FINDER.columns]
        rows = self.source.chosen(names).records(source)
        cells = {name: [row.get(name) for row in rows] for name in names}
        columns = {name: GramColumn(column) for name, column in cells.items()}
        together = [GramColumn(column) for column in run_together(cells)]
        target_rows = self.target.at(target)
        ranked: list[tuple[float, int, Group, Key, list[str | None]]] = []
        made = [derived([Expression((piece,)) for piece in key.pieces], target_rows).to_pylist() for key in self.keys]
        targets = [GramColumn(texts) for texts in made]
        grams = gram_pairs(columns, targets, self.clock)
        tokens = TokenIndex([list(row.values()) for row in rows])
        others = [gram_pairs({"": each}, targets, self.clock) for each in together]
        for number, (key, texts) in enumerate(zip(self.keys, made, strict=True)):
            if self.clock.late:
                break
            groups = [*grams[number], Group.of(None, tokens.pairs(texts))]
            groups += [replace(group, column=None) for each in others for group in each[number]]
            for group in groups:
                if len(group) >= 2:
                    ranked.append((group.mean * min(len(group), FINDER.drawn), len(ranked), group, key, texts))
        ranked.sort(key=lambda each: (-each[0], each[1]))
        programs: dict[Program, int] = {}
        for _, _, group, key, texts in ranked[: FINDER.groups]:
            for program, fits in self._of_group(group, key, rows, texts).items():
                programs[program] = max(fits, programs.get(program, 0))
        best = sorted(programs, key=lambda each: (-programs[each], each.rank))
        return best[: FINDER.measured]

    def _of_group(
        self, group: Group, key: Key, rows: Sequence[dict[str, str]], texts: Sequence[str | None]
    ) -> dict[Program, int]:
        pairs = self._best_pairs(group)
        pool = [Example(rows[each.source], str(texts[each.target])) for each in pairs]
        learner = Learner(self.source.names[: FINDER.columns], pool, self.clock)
        found: dict[Program, int] = {}
        idle = 0
        missed = np.ones(len(pool), bool)
        for chosen in self._sets(pairs, pool, missed):
            if (
                self.clock.late
                or idle >= FINDER.idle
                or self.result.trials > FINDER.trials * (len(self.result.programs) + 1)
            ):
                break
            self.result.trials += 1
            self.clock.tell(f"{key.name}, sets of examples tried: {self.result.trials}")
            idle += 1
            expression = learner.learn([pool[place] for place in chosen])
            program = None if expression is None else program_of(expression, key.pieces)
            if program is None or program in found:
                continue
            assert expression is not None
            fits = np.array([expression.apply(each.row) == each.key for each in pool], bool)
            found[program] = int(fits.sum())
            missed &= ~fits
            if found[program] > FINDER.examples:
                idle = 0
            if len(self.result.evidence) < 2 * FINDER.examples:
                self.result.evidence += [ExamplePair(pool[p].row, pool[p].key, pairs[p].evidence) for p in chosen]
            if found[program] >= FINDER.enough * len(pool):
                break
        return found

    def _sets(
        self, pairs: Sequence[Pair], pool: Sequence[Example], missed: npt.NDArray[np.bool_]
    ) -> Iterator[list[int]]:
        """Sets of examples, by turns drawn from all pairs and from pairs that are alike.

        Pairs are alike if the same text stands around what they share: where keys are written in several ways, a set
        drawn from all of them rarely follows one. One in four sets has an example that programs so far have
        ``missed``: it may be an exception to what they say, and not another way.
        """
        alike: dict[tuple[str, str], list[int]] = {}
        for place, (pair, example) in enumerate(zip(pairs, pool, strict=True)):
            before, shared, after = surroundings(example.row.values(), example.key, pair.evidence)
            if shared:
                alike.setdefault((before, after), []).append(place)
        clusters = sorted((each for each in alike.values() if len(each) >= 2), key=lambda each: -len(each))
        for turn in range(FINDER.sets):
            cluster = (
                clusters[turn // 2 % min(len(clusters), FINDER.clusters)] if clusters and turn % 2 else range(len(pool))
            )
            size = min(FINDER.examples, len(cluster))
            if turn % 4 == 2 and not missed.all() and missed.any():
                odd = int(self.rng.choice(np.flatnonzero(missed)))
                others = self.rng.choice(len(pool), size, replace=False).tolist()
                yield sorted([odd, *[place for place in others if place != odd][: size - 1]])
                continue
            yield sorted(cluster[place] for place in self.rng.choice(len(cluster), size, replace=False).tolist())

    def _best_pairs(self, group: Group) -> list[Pair]:
        """Pairs to draw examples from: of the best score, in an order of chance.

        Most rows of a sample have lost their partner and meet a stranger: there the pairs that share most come first.
        """
        shuffled = self.rng.permutation(len(group))
        drawn = self.result.sampled
        sampled = drawn is not None and min(drawn.source, drawn.target) < 1
        weights = group.weights[shuffled] if sampled else np.zeros(len(group))
        order = np.lexsort((-weights, -group.scores[shuffled]))
        return group.at(shuffled[order[: FINDER.drawn]].tolist())


def surroundings(cells: Iterable[str], key: str, gram: str) -> tuple[str, str, str]:
    """What stands before and after the text that a key shares with a row, and the text: a q-gram made longer."""
    folded_key = folded(key)
    best = ("", "", "")
    for cell in map(folded, cells):
        at, there = folded_key.find(gram), cell.find(gram)
        if at < 0 or there < 0 or len(folded_key) != len(key):
            continue
        start, end = at, at + len(gram)
        while start > 0 and there > at - start and folded_key[start - 1] == cell[there - (at - start) - 1]:
            start -= 1
        while end < len(key) and there + end - at < len(cell) and folded_key[end] == cell[there + end - at]:
            end += 1
        if end - start > len(best[1]):
            best = (key[:start], key[start:end], key[end:])
    return best


def program_of(expression: Expression, keys: tuple[Piece, ...]) -> Program | None:
    """A program of an expression for a key of several columns, cut where these meet; None if it cannot be cut."""
    outputs: list[list[Operator]] = [[]]
    for operator in expression.operators:
        if isinstance(operator, Constant) and BETWEEN in operator.text:
            first, *others = operator.text.split(BETWEEN)
            outputs[-1] += [Constant(first)] if first else []
            for text in others:
                outputs.append([Constant(text)] if text else [])
        else:
            outputs[-1].append(operator)
    if len(outputs) != len(keys) or not all(any(isinstance(each, Piece) for each in output) for output in outputs):
        return None
    return Program(tuple(Expression(tuple(output)) for output in outputs), keys)
