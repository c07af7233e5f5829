"""Which columns are foreign keys? Inclusions of columns in keys, weighed, and one explanation chosen for each column.

For every column the keys it is included in compete with each other and with "refers to nothing" (a conditional logit
over :mod:`lakescope.engines.keys.evidence`, its weights learnt from generated databases). All references to a table go
to one of its keys, no two columns refer to each other, and what was refused is told with the reason.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lakescope.array_types import F64
from lakescope.engines.keys.answers import ForeignKey, Method, PrimaryKey
from lakescope.engines.keys.evidence import (
    KEY_EVIDENCE,
    ColumnFacts,
    KeyCandidate,
    Surroundings,
    features,
    name_score,
    primary_keys,
)
from lakescope.engines.keys.model import OURS, ROSTIN
from lakescope.tables.key_names import marks_key, similarity


@dataclass(frozen=True, slots=True)
class ForeignKeyTuning:
    """What is believed, what is told, and in which words.

    ``benchmarks/results/inclusions.md`` has precision and recall of foreign keys with all of it; "not measured" means
    that no record compares other values of that field.
    """

    #: Chance from which on a reference is believed: more likely than not.
    accepted: float = 0.5
    #: Chance from which on a refused reference is worth telling. Not measured.
    worth_telling: float = 0.1
    #: Different whole numbers, up to so many, that are in many columns of codes by chance ... Not measured.
    few: int = 5
    #: ... if the range they lie in is narrower than this. Not measured.
    narrow: int = 10
    #: The least similarity of names in the way of Chen. Not measured: the paper leaves it open.
    chen: float = 0.6
    #: Shares of the keys that are referred to: "nearly all", and a share worth telling. Not measured.
    nearly_all: float = 0.995
    half: float = 0.5
    #: Share of its range that a key fills, so that it is told as a row of numbers. Not measured.
    row_of_numbers: float = 0.95


FOREIGN_KEYS = ForeignKeyTuning()


@dataclass(frozen=True, slots=True)
class Schema:
    """What was found: keys of tables, references, and references that were refused."""

    primary: list[PrimaryKey]
    foreign: list[ForeignKey]
    withheld: list[ForeignKey]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _WeighedCandidates:
    """Candidates with the chance of each, in order; ``copies`` were left out before, with what they repeat."""

    candidates: list[KeyCandidate]
    chances: F64
    copies: tuple[tuple[KeyCandidate, float], ...] = ()


def detect(
    facts: Sequence[ColumnFacts],
    candidates: Sequence[KeyCandidate],
    method: Method = "ours",
    orphans: Callable[[int, int], tuple[str, ...]] | None = None,
) -> Schema:
    """Primary and foreign keys among candidates; ``orphans`` gives examples of a child's values without a key."""
    possible = [each for each in candidates if not _pointless(each)]
    judge = {"ours": weigh_by_logit, "chen": weigh_by_chen, "rostin": weigh_by_rostin}[method]
    judged = judge(facts, possible)
    chosen = _best_of_columns(judged)
    around = _Context(facts, possible)
    accepted = {
        each.child.number: (each, chance)
        for each, chance in chosen
        if chance >= FOREIGN_KEYS.accepted and not (method == "ours" and around.are_few_numbers(each))
    }
    accepted = _without_circles(accepted)
    chosen = sorted(accepted.values(), key=lambda item: item[0].child.number)
    foreign = []
    for each, chance in chosen:
        record = _record(each, chance, around.reasons_of(each))
        if record.inclusion < 1 and orphans is not None:
            record = replace(record, orphans=orphans(each.child.number, each.parent.number))
        foreign.append(record)
    withheld = _withheld(judged, accepted, around, method)
    return Schema(_primary(facts, [each for each, _ in chosen]), foreign, withheld)


def _pointless(candidate: KeyCandidate) -> bool:
    """A column of unique values does not refer to its own table."""
    return candidate.child.table == candidate.parent.table and candidate.child.unique


# --- the three ways of judging ----------------------------------------------------------------------------------------


def weigh_by_logit(facts: Sequence[ColumnFacts], candidates: list[KeyCandidate]) -> _WeighedCandidates:
    """Conditional logit over all evidence; then again without copies of what a table could look up."""
    if not candidates:
        return _WeighedCandidates([], np.empty(0))
    weighed = np.array(features_of(facts, candidates)) @ OURS
    chances = softmax(weighed, candidates)
    kept = _without_copies(candidates, chances)
    some = [candidates[place] for place in kept]
    copies = [(candidates[place], float(chances[place])) for place in sorted(set(range(chances.size)) - set(kept))]
    return _WeighedCandidates(some, softmax(weighed[kept], some), tuple(copies))


def _without_copies(candidates: Sequence[KeyCandidate], chances: F64) -> list[int]:
    """Candidates but those to another key of a table than most refer to, from a table that refers to that one, too.

    Such columns repeat what the reference leads to: a name beside the number it belongs to.
    """
    support: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for each, chance in zip(candidates, chances.tolist(), strict=True):
        support[each.parent.table][each.parent.number] += chance
    key = {table: min(found, key=lambda number: (-found[number], number)) for table, found in support.items()}
    led = {
        (each.child.table, each.parent.table)
        for each, chance in zip(candidates, chances.tolist(), strict=True)
        if key[each.parent.table] == each.parent.number and chance >= FOREIGN_KEYS.accepted
    }
    return [
        place
        for place, each in enumerate(candidates)
        if key[each.parent.table] == each.parent.number or (each.child.table, each.parent.table) not in led
    ]


def softmax(weighed: F64, candidates: Sequence[KeyCandidate]) -> F64:
    """The chance of each candidate beside the others of its column and beside none at all."""
    numbers: dict[int, int] = {}
    group = np.array([numbers.setdefault(each.child.number, len(numbers)) for each in candidates])
    odds = np.exp(np.clip(weighed, -30, 30))
    found: F64 = odds / (1 + np.bincount(group, odds))[group]
    return found


def features_of(facts: Sequence[ColumnFacts], candidates: Sequence[KeyCandidate]) -> list[list[float]]:
    """The features of candidates, each beside the others."""
    around = _Context(facts, candidates)
    return [features(each, around.of(each)) for each in candidates]


def weigh_by_chen(facts: Sequence[ColumnFacts], candidates: list[KeyCandidate]) -> _WeighedCandidates:
    """Chen et al. (2014): by the similarity of names, the best first, as long as none contradicts an earlier one."""
    chances = np.zeros(len(candidates))
    scores = [name_score(each.child, each.parent) for each in candidates]
    taken: set[int] = set()
    between: set[tuple[str, str]] = set()
    for place in sorted(range(len(candidates)), key=lambda each: (-scores[each], candidates[each].child.number)):
        each = candidates[place]
        tables = each.child.table, each.parent.table
        if (
            scores[place] < FOREIGN_KEYS.chen
            or each.child.number in taken
            or tables[::-1] in between
            or not _within(each)
        ):
            continue
        taken.add(each.child.number)
        between.add(tables)
        chances[place] = scores[place]
    return _WeighedCandidates(candidates, chances)


def _within(candidate: KeyCandidate) -> bool:
    """Whether the child's range lies in the parent's."""
    child, parent = candidate.child, candidate.parent
    return not (child.low < parent.low or child.high > parent.high)


def weigh_by_rostin(facts: Sequence[ColumnFacts], candidates: list[KeyCandidate]) -> _WeighedCandidates:
    """Rostin et al. (2009): ten features of an inclusion, each judged alone by a classifier."""
    if not candidates:
        return _WeighedCandidates([], np.empty(0))
    weighed = np.array(rostin_features(candidates)) @ ROSTIN
    return _WeighedCandidates(candidates, 1 / (1 + np.exp(-np.clip(weighed, -30, 30))))


def rostin_features(candidates: Sequence[KeyCandidate]) -> list[list[float]]:
    """The ten features of the paper, and a constant."""
    by_child = Counter(each.child.number for each in candidates)
    by_parent = Counter(each.parent.number for each in candidates)
    parents = {each.parent.number for each in candidates}
    found = []
    for each in candidates:
        child, parent = each.child, each.parent
        own = "".join(child.telling)
        theirs = "".join(parent.table_words) + "".join(parent.telling)
        outside = 0.0
        if child.whole and parent.whole and parent.high > parent.low:
            outside = 1 - min(1.0, max(0.0, (child.high - child.low) / (parent.high - parent.low)))
        found.append(
            [
                1.0,
                min(1.0, math.log10(max(1, child.distinct)) / 4),
                each.coverage,
                float(child.number in parents),
                math.log2(by_child[child.number]) / 4,
                math.log2(by_parent[parent.number]) / 4,
                float(bool(own) and (own in theirs or theirs in own)),
                min(1.0, abs(child.length - parent.length) / 10),
                outside,
                float(marks_key(child.column)),
                max(-1.0, min(1.0, math.log10(max(1, child.rows) / max(1, parent.rows)) / 3)),
            ]
        )
    return found


# --- what stands around a candidate -----------------------------------------------------------------------------------


class _Context:
    """Everything that is said of a candidate by the others and by the names of its folder."""

    def __init__(self, facts: Sequence[ColumnFacts], candidates: Sequence[KeyCandidate]) -> None:
        keys = primary_keys(facts)
        self._first = {table: found[0].number for table, found in keys.items()}
        self._names = {
            (each.child.number, each.parent.number): name_score(each.child, each.parent) for each in candidates
        }
        self._of_child: dict[int, list[KeyCandidate]] = defaultdict(list)
        named: dict[str, set[int]] = defaultdict(set)
        self._derived: set[int] = set()
        #: Of every column: how many keys it is in by folder, and the best name among the first keys of each table.
        self._folders: dict[int, Counter[str]] = defaultdict(Counter)
        named_first: dict[int, dict[str, float]] = defaultdict(dict)
        for each in candidates:
            self._of_child[each.child.number].append(each)
            self._folders[each.child.number][each.parent.folder] += 1
            if self.is_first(each.parent):
                best = named_first[each.child.number]
                best[each.parent.table] = max(self.name(each), best.get(each.parent.table, 0.0))
            if (
                self.name(each) >= KEY_EVIDENCE.strong
                and each.child.table != each.parent.table
                and self.is_first(each.parent)
            ):
                named[each.child.folder].add(each.child.number)
                by_other = similarity(each.child.telling, each.parent.table_words)
                if by_other > similarity(each.child.telling, each.child.table_words):
                    self._derived.add(each.child.number)
        # Of a candidate's rivals only the best of another table counts: two tables are enough to remember.
        self._best_named = {
            number: sorted(best.items(), key=lambda item: -item[1])[:2] for number, best in named_first.items()
        }
        tables: dict[str, set[str]] = defaultdict(set)
        for fact in facts:
            tables[fact.folder].add(fact.table)
        marked: dict[str, list[bool]] = defaultdict(list)
        for found in keys.values():
            marked[found[0].folder].append(marks_key(found[0].column))
        self._named = {folder: min(1.0, len(named[folder]) / len(some)) for folder, some in tables.items()}
        self._marked = {folder: sum(some) / len(some) for folder, some in marked.items()}

    def name(self, candidate: KeyCandidate) -> float:
        return self._names[candidate.child.number, candidate.parent.number]

    def is_first(self, column: ColumnFacts) -> bool:
        """Whether a column looks most like the key of its table."""
        return self._first.get(column.table) == column.number

    def are_few_numbers(self, candidate: KeyCandidate) -> bool:
        """Whether the child is a few small numbers in a key of texts, named otherwise: codes share such by chance.

        The model was taught by keys of numbers, among which they count for nothing, and takes texts for telling.
        """
        child, parent = candidate.child, candidate.parent
        few = (
            child.type == "integer"
            and child.distinct <= FOREIGN_KEYS.few
            and child.high - child.low < FOREIGN_KEYS.narrow
        )
        return few and not parent.whole and self.name(candidate) < KEY_EVIDENCE.strong

    def of(self, candidate: KeyCandidate) -> Surroundings:
        """What the other candidates, and the names of its folder, say about a candidate."""
        child, parent = candidate.child, candidate.parent
        folders = self._folders[child.number]
        rivals = self._best_named.get(child.number, ())
        return Surroundings(
            other_name=next((name for table, name in rivals if table != parent.table), 0.0),
            parents=sum(folders[folder] for folder in {child.folder, parent.folder}),
            primary=self.is_first(parent),
            child_primary=self.is_first(child),
            named=self._named.get(child.folder, 0.0),
            marked=self._marked.get(child.folder, 0.0),
            derived=parent.number in self._derived,
        )

    def reasons_of(self, candidate: KeyCandidate) -> list[str]:
        """Why a candidate is believed, in words."""
        child, parent = candidate.child, candidate.parent
        reasons = []
        if self.name(candidate) >= KEY_EVIDENCE.strong:
            reasons.append("named after it")
        if candidate.coverage >= 1 - 1e-9:
            reasons.append("all keys are referred to")
        elif candidate.coverage >= FOREIGN_KEYS.nearly_all:
            reasons.append("nearly all keys are referred to")
        elif candidate.coverage >= FOREIGN_KEYS.half:
            reasons.append(f"{candidate.coverage:.0%} of the keys are referred to")
        parents = len(self._of_child[child.number])
        reasons.append(
            "no other key holds its values" if parents == 1 else f"in {_counted(parents - 1, 'other key')}, too"
        )
        if self.are_few_numbers(candidate):
            reasons.append("a few numbers among texts")
        elif not (child.whole and parent.whole):
            reasons.append("text: hardly by chance")
        elif parent.density >= FOREIGN_KEYS.row_of_numbers:
            reasons.append("the keys are a row of days" if parent.type == "date" else "the keys are a row of numbers")
        if child.distinct <= 2:
            reasons.append(f"only {child.distinct} different values")
        return reasons


# --- choosing ---------------------------------------------------------------------------------------------------------


def _best_of_columns(judged: _WeighedCandidates) -> list[tuple[KeyCandidate, float]]:
    """The best candidate of each column."""
    best: dict[int, tuple[KeyCandidate, float]] = {}
    for each, chance in zip(judged.candidates, judged.chances.tolist(), strict=True):
        known = best.get(each.child.number)
        if known is None or (chance, -each.parent.number) > (known[1], -known[0].parent.number):
            best[each.child.number] = each, chance
    return list(best.values())


def _without_circles(accepted: dict[int, tuple[KeyCandidate, float]]) -> dict[int, tuple[KeyCandidate, float]]:
    """Of two columns that refer to each other the more likely one does."""
    kept = dict(accepted)
    for number, (each, chance) in accepted.items():
        back = accepted.get(each.parent.number)
        if back is not None and back[0].parent.number == number:
            loser = number if (chance, -number) < (back[1], -each.parent.number) else each.parent.number
            kept.pop(loser, None)
    return kept


def _withheld(
    judged: _WeighedCandidates, accepted: dict[int, tuple[KeyCandidate, float]], around: _Context, method: Method
) -> list[ForeignKey]:
    """Refused candidates that a person might have expected, with the reason; the likeliest first."""
    found = []
    for each, chance in zip(judged.candidates, judged.chances.tolist(), strict=True):
        winner = accepted.get(each.child.number)
        if winner is not None and winner[0] is each:
            continue
        if chance < FOREIGN_KEYS.worth_telling and around.name(each) < KEY_EVIDENCE.strong:
            continue
        found.append(_record(each, chance, [_why_not(each, chance, winner, around, method), *around.reasons_of(each)]))
    for each, chance in judged.copies:
        if chance >= FOREIGN_KEYS.worth_telling and each.child.number not in accepted:
            why = f"withheld: repeats what another column's reference to {each.parent.table} leads to"
            found.append(_record(each, chance, [why, *around.reasons_of(each)]))
    return sorted(found, key=lambda each: (-each.score, each.child_table, each.child_columns, each.parent_table))


def _why_not(
    candidate: KeyCandidate, chance: float, winner: tuple[KeyCandidate, float] | None, around: _Context, method: Method
) -> str:
    if winner is not None:
        return f"withheld: {winner[0].parent.table} fits better"
    if chance >= FOREIGN_KEYS.accepted and method == "ours" and around.are_few_numbers(candidate):
        return "withheld: so few numbers are in many keys by chance"
    if chance >= FOREIGN_KEYS.accepted:
        return "withheld: that column refers to this one"
    if method == "chen":
        return "withheld: the names are not alike enough, or another reference contradicts it"
    if method == "rostin":
        return "withheld: the classifier does not take it for one"
    if candidate.child.distinct <= 2:
        return "withheld: so few values are in many keys by chance"
    if candidate.child.whole and candidate.parent.whole:
        return "withheld: such numbers are in many keys by chance"
    return "withheld: more likely a coincidence than a reference"


def _record(candidate: KeyCandidate, chance: float, reasons: list[str]) -> ForeignKey:
    return ForeignKey(
        child_table=candidate.child.table,
        child_columns=(candidate.child.column,),
        parent_table=candidate.parent.table,
        parent_columns=(candidate.parent.column,),
        inclusion=candidate.inclusion,
        low=candidate.low,
        high=candidate.high,
        exact=candidate.exact,
        coverage=candidate.coverage,
        score=chance,
        orphans=(),
        reasons=tuple(reasons),
    )


def _primary(facts: Sequence[ColumnFacts], accepted: Sequence[KeyCandidate]) -> list[PrimaryKey]:
    """The key of each table that has one: what others refer to, else what looks most like one."""
    references = Counter(each.parent.number for each in accepted)
    found = []
    for table, keys in primary_keys(facts).items():
        best = min(keys, key=lambda each: (-references[each.number], keys.index(each)))
        reasons = []
        if references[best.number]:
            reasons.append(f"referred to by {_counted(references[best.number], 'column')}")
        if best.position == 0:
            reasons.append("first column")
        if marks_key(best.column):
            reasons.append("named as a key")
        doubts = []
        if best.distinct < best.filled:
            doubts.append(f"{_counted(best.filled - best.distinct, 'row')} repeat a value")
        if best.filled < best.rows:
            doubts.append(f"missing in {_counted(best.rows - best.filled, 'row')}")
        others = tuple(each.column for each in keys if each is not best and each.distinct == each.filled == each.rows)
        count = references[best.number]
        found.append(PrimaryKey(table, (best.column,), best.rows, count, others, tuple(reasons), tuple(doubts)))
    return found


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
