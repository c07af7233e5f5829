"""Joining what is nearly equal: distances, thresholds that keep a key a key, and an estimate of what is right (4.7).

The optimiser of the thesis takes, for every distance, the largest threshold at which no value joins two keys and no key
two values: the answer is just below the smallest distance that breaks this, found exactly (:func:`constrained`).
One pair of alike keys stops it early. The other (:func:`expected`) asks how many keys lie around the one that was met:
if there are ``n`` keys within twice the distance, one in ``n`` such meetings is meant (Li et al., Auto-FuzzyJoin,
2021); the threshold is the largest at which the average stays above the precision that was asked for.

Both must hold for values without a partner, too. Each key is one: how many keys have another within the threshold is
how many such values would meet one (:func:`strangers`), and what they would is taken off what is met.
"""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Callable, MutableMapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from math import fsum
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from lakescope.array_types import F64, I64
from lakescope.engines.transforms.chance import precision_of
from lakescope.engines.transforms.clock import Clock
from lakescope.errors import BadRequest
from lakescope.values.alphabet import PUNCTUATION, TO_BARE, TO_SMALL

if TYPE_CHECKING:
    from lakescope.engines.transforms.keys import Key
    from lakescope.engines.transforms.texts import TextTable
    from lakescope.engines.transforms.union import Joined

Method = Literal["expected", "constrained"]


@dataclass(frozen=True, slots=True)
class FuzzyTuning:
    """How nearly equal texts are compared (benchmarks/results/autojoin.md, fuzzy joins)."""

    #: Keys that a text is compared with: those that share most of its rare 3-grams. Not measured: a bound on time.
    candidates: int = 24
    #: 3-grams of a text that keys are looked up by. Not measured: a bound on time.
    rarest: int = 24
    #: Keys of one 3-gram, at most: more common ones tell nothing. Not measured: a bound on time.
    longest_list: int = 3000
    #: Keys and values that are compared at all. Not measured: a bound on time and memory.
    most_rows: int = 50_000
    #: Share of a rule's pairs that must be meant, however sure those of the rules before are. Not measured by itself:
    #: set by joins of one to four rows of a hundred, which were all wrong.
    likely: float = 0.75
    #: Keys whose nearest other key tells how near values without a partner are. Not measured: a share of 5% is known to
    #: half a point.
    strangers: int = 2000
    #: Texts whose plain form, words and 3-grams are remembered. Not measured: a bound on memory; more than
    #: ``most_rows``.
    remembered: int = 1 << 16


FUZZY = FuzzyTuning()

#: A distance beyond all there are: those lie between 0 and 1.
_FOREVER = 9.0
_NUMBER = re.compile(r"[0-9]+")
_TO_SPACES = str.maketrans(PUNCTUATION, " " * len(PUNCTUATION))


@dataclass(frozen=True, slots=True)
class Rule:
    """A distance and the largest value of it that joins."""

    distance: str
    threshold: float

    def words(self) -> str:
        return f"the nearest key by {DISTANCES[self.distance].words}, at most {self.threshold:.3f} away"


@dataclass(frozen=True, slots=True)
class Fuzzy:
    """Rules in order: a value goes by the first that joins it.

    ``joined`` is the number of rows that it joined when it was found, ``precision`` the estimated share of them that is
    right.
    """

    rules: tuple[Rule, ...]
    method: Method
    joined: int
    precision: float
    one_to_one: bool = True

    def words(self) -> str:
        told = " or ".join(rule.words() for rule in self.rules)
        rows = "1 row" if self.joined == 1 else f"{self.joined:,} rows"
        return f"{told} ({rows}, of which {self.precision:.0%} are estimated to be right)"

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "rules": [asdict(rule) for rule in self.rules]}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Fuzzy:
        return cls(**{**data, "rules": tuple(Rule(**rule) for rule in data["rules"])})


# --- distances --------------------------------------------------------------------------------------------------------


@lru_cache(FUZZY.remembered)
def plain(text: str) -> str:
    """Text for comparing: small letters, no accents, words between single spaces."""
    return " ".join(text.translate(TO_BARE).translate(TO_SMALL).translate(_TO_SPACES).split())


@lru_cache(FUZZY.remembered)
def grams(text: str, q: int = 3) -> frozenset[str]:
    """The q-grams of a text; the text itself if it is shorter."""
    return frozenset(text[at : at + q] for at in range(max(1, len(text) - q + 1)))


@lru_cache(FUZZY.remembered)
def words_of(text: str) -> frozenset[str]:
    """The words of a text, for comparing."""
    return frozenset(plain(text).split())


@lru_cache(FUZZY.remembered)
def _sorted_words(text: str) -> str:
    return " ".join(sorted(plain(text).split()))


@lru_cache(FUZZY.remembered)
def _numbers(text: str) -> frozenset[str]:
    """The numbers of a text, without leading zeros."""
    return frozenset(number.lstrip("0") or "0" for number in _NUMBER.findall(text))


def contradict(a: str, b: str) -> bool:
    """Whether each of two texts has a number that the other lacks: then they tell of two things, however alike."""
    one, other = _numbers(a), _numbers(b)
    return not (one <= other or other <= one)


class Distances:
    """Distances between texts, in a collection whose frequent words weigh little."""

    def __init__(self, keys: Sequence[str]) -> None:
        counts: dict[str, int] = {}
        for key in keys:
            for word in words_of(key):
                counts[word] = counts.get(word, 0) + 1
        self._rows = max(1, len(keys))
        self._counts = counts
        self._weights: MutableMapping[str, float] = {word: self._weight_of(count) for word, count in counts.items()}
        self._rare = self._weight_of(1)

    def _weight_of(self, count: int) -> float:
        return float(np.log(1 + self._rows / count))

    def without(self, key: str) -> Distances:
        """Distances in the collection without one key: a word that it shares with one other key is rarer there."""
        other = copy(self)
        fewer = {word: self._weight_of(max(1, self._counts[word] - 1)) for word in words_of(key)}
        other._weights = ChainMap(fewer, self._weights)
        return other

    def grams(self, a: str, b: str) -> float:
        """Jaccard distance of 3-grams."""
        one, other = grams(a), grams(b)
        return 1 - len(one & other) / len(one | other)

    def words(self, a: str, b: str) -> float:
        """Jaccard distance of words, rare ones weighing more."""
        one, other = words_of(a), words_of(b)
        every, common = self._weight(one | other), self._weight(one & other)
        return 1 - common / every if every else 1.0

    def contained(self, a: str, b: str) -> float:
        """The share of the words of the shorter text that the longer lacks, rare ones weighing more."""
        one, other = words_of(a), words_of(b)
        fewer = min(self._weight(one), self._weight(other))
        return 1 - self._weight(one & other) / fewer if fewer else 1.0

    def _weight(self, words: frozenset[str]) -> float:
        """What words weigh together, to the last bit whatever their order: a tie must be one in every process."""
        return fsum(self._weights.get(word, self._rare) for word in words)

    def edits(self, a: str, b: str) -> float:
        """Share of characters to insert or delete."""
        from rapidfuzz.distance import Indel

        return float(Indel.normalized_distance(plain(a), plain(b)))

    def sorted_edits(self, a: str, b: str) -> float:
        """Share of characters to insert or delete, with the words of both texts in alphabetical order."""
        from rapidfuzz.distance import Indel

        return float(Indel.normalized_distance(_sorted_words(a), _sorted_words(b)))

    def jaro(self, a: str, b: str) -> float:
        """Jaro and Winkler's distance."""
        from rapidfuzz.distance import JaroWinkler

        return float(JaroWinkler.normalized_distance(plain(a), plain(b)))


@dataclass(frozen=True, slots=True)
class NamedDistance:
    """A distance by name."""

    words: str
    of: Callable[[Distances], Callable[[str, str], float]]


DISTANCES = {
    "grams": NamedDistance("the share of 3-grams not in common", lambda each: each.grams),
    "words": NamedDistance("the share of words not in common, rare ones weighing more", lambda each: each.words),
    "contained": NamedDistance(
        "the share of words of the shorter text not in the longer, rare ones weighing more", lambda each: each.contained
    ),
    "edits": NamedDistance("the share of characters to change", lambda each: each.edits),
    "sorted edits": NamedDistance("the share of characters to change, words sorted", lambda each: each.sorted_edits),
    "jaro": NamedDistance("Jaro and Winkler's distance", lambda each: each.jaro),
}


# --- nearest keys -----------------------------------------------------------------------------------------------------


class Neighbours:
    """Keys that share rare 3-grams with a text: the only ones that it is compared with."""

    def __init__(self, keys: Sequence[str]) -> None:
        self.keys = list(keys)
        self.distances = Distances(self.keys)
        postings: dict[str, list[int]] = {}
        for place, key in enumerate(self.keys):
            for gram in grams(plain(key)):
                postings.setdefault(gram, []).append(place)
        self._lists = {gram: np.array(held) for gram, held in postings.items() if len(held) <= FUZZY.longest_list}
        rows = max(1, len(self.keys))
        self._weights = {gram: float(np.log(1 + rows / held.size)) for gram, held in self._lists.items()}
        self._balls: dict[tuple[str, int], F64] = {}
        self._near: dict[str, I64] = {}
        self._strangers: dict[str, F64] = {}

    def of(self, text: str) -> I64:
        """Places of the keys to compare a text with."""
        if text not in self._near:
            self._near[text] = self._looked_up(text)
        return self._near[text]

    def _looked_up(self, text: str) -> I64:
        known = sorted(
            (gram for gram in grams(plain(text)) if gram in self._lists),
            key=lambda gram: (self._lists[gram].size, gram),
        )
        if not known:
            return np.empty(0, np.int64)
        chosen = known[: FUZZY.rarest]
        places = np.concatenate([self._lists[gram] for gram in chosen])
        weights = np.concatenate([np.full(self._lists[gram].size, self._weights[gram]) for gram in chosen])
        found, at = np.unique(places, return_inverse=True)
        order = np.argsort(-np.bincount(at, weights), kind="stable")[: FUZZY.candidates]
        return found[order]

    def around(self, distance: str, place: int) -> F64:
        """Distances from a key to the keys near it, itself left out; in order."""
        if (distance, place) not in self._balls:
            measure = DISTANCES[distance].of(self.distances)
            near = [measure(self.keys[place], self.keys[each]) for each in self.of(self.keys[place]) if each != place]
            self._balls[distance, place] = np.sort(np.array(near, np.float64))
        return self._balls[distance, place]

    def strangers(self, distance: str, clock: Clock) -> F64:
        """How far keys are from the nearest other key, in order: as far as values without a partner are from any.

        Each is measured as such a value would be, which makes no word of its own more frequent. Of many keys some are
        looked at. Where two are as near as each other a value would not join.
        """
        if distance not in self._strangers:
            every = np.linspace(0, len(self.keys) - 1, min(len(self.keys), FUZZY.strangers)).astype(np.int64).tolist()
            found = []
            for place in every:
                if clock.late:
                    break
                key = self.keys[place]
                measure = DISTANCES[distance].of(self.distances.without(key))
                away = sorted(
                    measure(key, self.keys[each])
                    for each in self.of(key).tolist()
                    if each != place and not contradict(key, self.keys[each])
                )
                tied = len(away) > 1 and away[0] == away[1]
                found.append(_FOREVER if tied or not away else away[0])
            self._strangers[distance] = np.sort(np.array(found, np.float64))
        return self._strangers[distance]


@dataclass
class Nearest:
    """For each value the nearest key (-1: none), how far it is, and how far the second nearest."""

    place: I64
    first: F64
    second: F64
    all_pairs: list[tuple[float, int, int]] = field(default_factory=list)


def nearest(
    values: Sequence[Sequence[str]], neighbours: Neighbours, distance: str, clock: Clock | None = None
) -> Nearest:
    """The nearest keys of values; a value may be written in several ways, of which the nearest counts.

    When it is late, values that were not looked at have no key.
    """
    measure = DISTANCES[distance].of(neighbours.distances)
    found = Nearest(*(np.full(len(values), fill) for fill in (-1, _FOREVER, _FOREVER)))  # type: ignore[arg-type]
    found.place = found.place.astype(np.int64)
    for number, ways in enumerate(values):
        if clock is not None and clock.late:
            break
        best: dict[int, float] = {}
        for text in ways:
            for place in neighbours.of(text).tolist():
                key = neighbours.keys[place]
                away = _FOREVER if contradict(text, key) else measure(text, key)
                best[place] = min(away, best.get(place, _FOREVER))
        ranked = sorted((away, place) for place, away in best.items())
        if ranked:
            found.first[number], found.place[number] = ranked[0]
            found.second[number] = ranked[1][0] if len(ranked) > 1 else _FOREVER
        found.all_pairs += [(away, number, place) for away, place in ranked]
    return found


# --- thresholds -------------------------------------------------------------------------------------------------------


def constrained(near: Nearest, *, one_to_one: bool = True) -> float:
    """The largest distance below the first at which a value joins two keys, or a key two values; -1 if none is."""
    violation = _FOREVER
    of_value: dict[int, int] = {}
    of_key: dict[int, int] = {}
    pairs = sorted(near.all_pairs)
    for away, value, key in pairs:
        if value in of_value or (one_to_one and key in of_key):
            violation = away
            break
        of_value[value], of_key[key] = key, value
    return max((away for away, _, _ in pairs if away < violation), default=-1.0)


def expected(right: F64, away: F64, before: tuple[float, int]) -> tuple[F64, I64, F64]:
    """Thresholds that there are, in order; how many meet within each, and the expected share of them that is right.

    ``right`` are the chances that meetings at the distances ``away`` are meant; ``before`` is the sum of the chances of
    what is joined already, and its number: it counts in the share.
    """
    order = np.argsort(away, kind="stable")
    numbers = np.arange(1, right.size + 1)
    mean = (before[0] + np.cumsum(right[order])) / (before[1] + numbers)
    ranked = away[order]
    ends = np.append(ranked[1:] > ranked[:-1], True)[: ranked.size]  # equal distances go together
    return ranked[ends], numbers[ends], mean[ends]


def _right(near: Nearest, neighbours: Neighbours, distance: str, row: int) -> float:
    around = neighbours.around(distance, int(near.place[row]))
    return 1.0 / (1 + int(np.searchsorted(around, 2 * near.first[row], side="right")))


def mutual(near: Nearest, usable: npt.NDArray[np.bool_], threshold: float, *, one_to_one: bool) -> I64:
    """The key of each value that joins (-1: none): near enough, nearer than any other, and best for its key, too."""
    joins = usable & (near.place >= 0) & (near.first <= threshold) & (near.first < near.second)
    found = np.where(joins, near.place, -1)
    if one_to_one:
        best: dict[int, tuple[float, int]] = {}
        tied: set[int] = set()
        for row in np.flatnonzero(joins).tolist():
            key, away = int(found[row]), float(near.first[row])
            held = best.get(key)
            if held is None or away < held[0]:
                best[key] = (away, row)
                tied.discard(key)
            elif away == held[0]:
                tied.add(key)
        for row in np.flatnonzero(joins).tolist():
            key = int(found[row])
            if best[key][1] != row or key in tied:
                found[row] = -1
    return found


class _Optimiser:
    """Adds rules one by one, each the one that joins most of what is left."""

    def __init__(
        self,
        values: Sequence[Sequence[str]],
        keys: Sequence[str],
        distances: Sequence[str],
        clock: Clock | None = None,
    ) -> None:
        self.clock = clock or Clock()
        self.neighbours = Neighbours([] if self.clock.late else keys)
        self.near: dict[str, Nearest] = {}
        for number, name in enumerate(distances, start=1):
            self.clock.tell(f"comparing what is nearly equal, distance {number} of {len(distances)}")
            near = nearest(values, self.neighbours, name, self.clock)
            if not self.clock.late:  # one that is not done knows no second nearest key
                self.near[name] = near
        self.places = np.full(len(values), -1)
        self.right = np.zeros(len(values))
        self.rules: list[Rule] = []
        #: The estimated share of what is joined that is meant, since so few values without a partner would be.
        self.precision = 1.0

    def usable(self, name: str, taken: frozenset[int], one_to_one: bool) -> npt.NDArray[np.bool_]:
        """Values whose nearest key is clear and free."""
        near = self.near[name]
        held = taken | frozenset(self.places[self.places >= 0].tolist()) if one_to_one else taken
        free = np.array([place >= 0 and int(place) not in held for place in near.place.tolist()], bool)
        return free & (self.places < 0) & (near.first < near.second) & (near.first < 1)

    def farthest(self, name: str, away: F64, right: F64, taken: frozenset[int], precision: float) -> float:
        """The largest distance at which both estimates are at least ``precision``; -1 if there is none.

        ``away`` are the distances of those that may join by this rule, ``right`` the chances that they are meant; the
        other estimate is how many of all that are open meet a key, beside what strangers would.
        """
        before = int((self.places >= 0).sum())
        ranked, joined, mean = expected(right, away, (float(self.right.sum()), before))
        meant = np.array(
            [
                self.meant_within(name, limit, number, taken)
                for limit, number in zip(ranked.tolist(), joined.tolist(), strict=True)
            ]
        )
        together = (self.precision * before + meant * joined) / (before + joined)
        good = np.flatnonzero((mean >= precision) & (together >= precision) & (meant >= FUZZY.likely))
        return float(ranked[good[-1]]) if good.size else -1.0

    def meant_within(self, name: str, limit: float, joined: int, taken: frozenset[int]) -> float:
        """The share of values that join within a distance which is meant, as :func:`precision_of` has it.

        Of few keys one more than there were is taken to have another so near.
        """
        open_values = int((self.places < 0).sum())
        strangers = self.neighbours.strangers(name, self.clock)
        near = int(np.searchsorted(strangers, limit, side="right"))
        free = 1 - len(taken) / max(1, len(self.neighbours.keys))
        by_chance = min(1.0, free * (near + 1) / (strangers.size + 2))
        return precision_of(joined / max(1, open_values), by_chance)

    def best(
        self, threshold_of: Callable[[str, npt.NDArray[np.bool_]], float], taken: frozenset[int], one_to_one: bool
    ) -> bool:
        """Add the rule that brings most; whether there is one."""
        best: tuple[float, Rule, I64, F64, int] | None = None
        for name, near in self.near.items():
            usable = self.usable(name, taken, one_to_one)
            threshold = threshold_of(name, usable)
            places = mutual(near, usable, threshold, one_to_one=one_to_one)
            rows = np.flatnonzero(places >= 0)
            right = np.zeros(places.size)
            right[rows] = [_right(near, self.neighbours, name, row) for row in rows.tolist()]
            if rows.size and (best is None or right.sum() > best[0]):
                within = int((near.first[usable] <= threshold).sum())
                best = (float(right.sum()), Rule(name, threshold), places, right, within)
        if best is None or best[0] < min(1.0, 0.01 * self.places.size):
            return False
        rule, joined = best[1], int((best[2] >= 0).sum())
        before = int((self.places >= 0).sum())
        # Values that leave a key to a nearer one count, as strangers do that would: what is left is meant rather more.
        meant = self.meant_within(rule.distance, rule.threshold, best[4], taken)
        self.precision = (self.precision * before + meant * joined) / (before + joined)
        self.rules.append(rule)
        self.places = np.where(self.places >= 0, self.places, best[2])
        self.right += best[3]
        return True


def optimise(
    values: Sequence[Sequence[str]],
    keys: Sequence[str],
    *,
    method: Method = "expected",
    precision: float = 0.9,
    one_to_one: bool = True,
    taken: frozenset[int] = frozenset(),
    distances: Sequence[str] | None = None,
    clock: Clock | None = None,
) -> tuple[Fuzzy | None, I64]:
    """The distances and thresholds that join most, and the key of each value (-1: none).

    Keys that are ``taken`` are compared with, so that values which belong to them stay away from others. When it
    is late no further distance is tried.
    """
    if method not in ("expected", "constrained"):
        raise BadRequest(f"no method {method!r}", hint="use expected or constrained")
    if not 0 < precision <= 1:
        raise BadRequest(f"the precision must be above 0 and at most 1, not {precision}", hint="0.9 is a good one")
    work = _Optimiser(values, keys, list(DISTANCES) if distances is None else distances, clock)

    def by_constraint(name: str, usable: npt.NDArray[np.bool_]) -> float:
        return constrained(work.near[name], one_to_one=one_to_one)

    def by_expectation(name: str, usable: npt.NDArray[np.bool_]) -> float:
        rows = np.flatnonzero(usable)
        right = np.array([_right(work.near[name], work.neighbours, name, row) for row in rows.tolist()], np.float64)
        return work.farthest(name, work.near[name].first[rows], right, taken, precision)

    if method == "constrained":
        work.best(by_constraint, taken, one_to_one)
    else:
        while len(work.rules) < len(work.near) and not work.clock.late:
            if not work.best(by_expectation, taken, one_to_one):
                break
    joined = int((work.places >= 0).sum())
    if not joined:
        return None, work.places
    right = min(float(work.right.sum()) / joined, work.precision)
    return Fuzzy(tuple(work.rules), method, joined, right, one_to_one), work.places


def applied(
    rules: Sequence[Rule], values: Sequence[Sequence[str]], keys: Sequence[str], one_to_one: bool, taken: frozenset[int]
) -> I64:
    """The key of each value (-1: none) by rules that were found before."""
    work = _Optimiser(values, keys, [rule.distance for rule in rules])
    for rule in rules:
        places = mutual(
            work.near[rule.distance],
            work.usable(rule.distance, taken, one_to_one),
            rule.threshold,
            one_to_one=one_to_one,
        )
        work.places = np.where(work.places >= 0, work.places, places)
    return work.places


# --- after programs ---------------------------------------------------------------------------------------------------


def _open(texts: Sequence[Sequence[str | None]], joined: Joined) -> tuple[I64, list[list[str]]]:
    """Source rows that are not joined, and what programs make of them."""
    rows = np.flatnonzero(joined.targets < 0)
    ways = [[text for each in texts if (text := each[row])] for row in rows.tolist()]
    kept = [place for place, way in enumerate(ways) if way]
    return rows[kept], [ways[place] for place in kept]


def _keys(key: Key, target: TextTable) -> tuple[I64, list[str]]:
    from lakescope.engines.transforms.evaluate import derived
    from lakescope.engines.transforms.program import Expression

    rows = np.sort(key.rows)
    texts = derived([Expression((piece,)) for piece in key.pieces], target.at(rows)).to_pylist()
    return rows, [str(text) for text in texts]


def find_fuzzy(
    texts: Sequence[Sequence[str | None]],
    key: Key,
    target: TextTable,
    joined: Joined,
    single: bool,
    precision: float,
    clock: Clock | None = None,
) -> Fuzzy | None:
    """The distance and threshold for rows that programs leave; None if nothing is near enough."""
    rows, ways = _open(texts, joined)
    if not rows.size or rows.size > FUZZY.most_rows or key.rows.size > FUZZY.most_rows:
        return None
    key_rows, keys = _keys(key, target)
    taken = frozenset(np.flatnonzero(np.isin(key_rows, joined.targets)).tolist()) if single else frozenset()
    return optimise(ways, keys, precision=precision, one_to_one=single, taken=taken, clock=clock)[0]


def fuzzy_targets(
    fuzzy: Fuzzy, texts: Sequence[Sequence[str | None]], key: Key, target: TextTable, joined: Joined, single: bool
) -> I64:
    """The target rows that a distance joins, of rows that programs leave; -1 for all others."""
    found = np.full(joined.targets.size, -1)
    rows, ways = _open(texts, joined)
    if not rows.size:
        return found
    key_rows, keys = _keys(key, target)
    taken = frozenset(np.flatnonzero(np.isin(key_rows, joined.targets)).tolist()) if single else frozenset()
    places = applied(fuzzy.rules, ways, keys, single, taken)
    found[rows[places >= 0]] = key_rows[places[places >= 0]]
    return found
