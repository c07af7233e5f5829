"""Row pairs that probably join, without examples: from rare q-grams and from rare sets of tokens (section 4.2).

Operators keep neighbouring characters together, so a q-gram that occurs in one value on either side is strong
evidence. The thesis looks for the best q of every suffix in suffix arrays; here every q of a ladder is looked up by
the hashes of all q-grams at once, the longest first, which finds the same pairs in a few sorts.

Keys made of short parts (hours, minutes and seconds; a state and a district) share no long q-gram but a set of
tokens that no other row has (4.10, 1): numbers are compared without leading zeros there.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lakescope.array_types import F64, I64, U64
from lakescope.engines.transforms.clock import Clock
from lakescope.values.alphabet import MONTHS, TO_BARE, TO_SMALL


@dataclass(frozen=True, slots=True)
class PairTuning:
    """How pairs of rows are found by what they share."""

    #: Lengths of q-grams that are looked up. From the thesis, 4.2: three is the shortest that says anything; it looks
    #: for the best length of every suffix, which the ladder stands for.
    ladder: tuple[int, ...] = (3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 28, 40)
    #: What the ladder is for columns of at most so many characters. Measured with benchmarks/autojoin.py: learning at a
    #: million rows takes 2.0 s of CPU.
    ladders: tuple[tuple[int, tuple[int, ...]], ...] = (
        (200_000, ladder),
        (800_000, (4, 6, 10, 20, 40)),
        (1 << 62, (6, 12, 30)),
    )
    #: Characters of a cell that are looked at. From the specification of section 4.10 (6) of the thesis.
    longest: int = 512
    #: Largest n times m of a match that is kept. From the specification of section 4.2 of the thesis.
    product: int = 100
    #: Target values that are paired by tokens. Not measured: a bound on time.
    targets: int = 1500
    #: Tokens of more than this share of rows tell nothing. Not measured: set where months and sequences of numbers
    #: began to pair rows.
    common: float = 0.6
    #: Mean length of cells that are too short for q-grams of their own. Not measured: one more than the shortest
    #: q-gram.
    short: int = 4


PAIRING = PairTuning()

#: Weights of tokens that are no further apart are the same.
_NOTHING = 1e-9
_TOKEN = re.compile(r"[0-9]+|[^\W\d_]+")
_NUMBER = re.compile(r"[0-9]+")
_DIGIT = re.compile(r"[0-9]")
_MONTHS = {written.lower(): str(n) for n, name in enumerate(MONTHS, start=1) for written in (name, name[:3])}
_BASE = 0x9E3779B97F4A7C15 | 1
#: Bits of a number that hold the value, and the rest, which hold the hash of a q-gram.
_BITS = np.uint64(20)
_OWNER = np.uint64((1 << 20) - 1)
_HASH = np.uint64((1 << 44) - 1)
#: Distinct values of a column that are looked at: as many as have a number.
MOST_VALUES = 1 << 20
_INVERSE = pow(_BASE, -1, 1 << 64)
#: Bits of a hash.
_HASHED = 44
#: Bits of a number that hold a place, and those that hold a product of counts.
_PLACES = np.uint64(36)
_PLACE = np.uint64((1 << 36) - 1)
_OF_VALUE = np.uint64(44)
#: Bits of a number that hold a row; the rest hold a token.
_ROWS = np.uint64(32)
_ROW = np.uint64((1 << 32) - 1)


class Pair(NamedTuple):
    """A source row, a target row, how sure (1 / (n * m)), and the characters they were found by.

    ``weight`` tells pairs of one score apart: by the length of the q-gram, or by the share of tokens in common.
    """

    source: int
    target: int
    score: float
    evidence: str
    weight: float


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Pairs found between one column (or None: the whole row) and one key; the best first.

    There are many and few are looked at, so they are kept as columns; ``evidence`` gives the characters of one.
    """

    column: str | None
    sources: I64
    targets: I64
    scores: F64
    weights: F64
    evidence: Callable[[int], str]

    @classmethod
    def of(cls, column: str | None, pairs: Sequence[Pair]) -> Group:
        sources, targets = (np.array([each[field] for each in pairs], np.int64) for field in (0, 1))
        scores, weights = (np.array([each[field] for each in pairs], np.float64) for field in (2, 4))
        return cls(column, sources, targets, scores, weights, lambda place: pairs[place].evidence)

    def __len__(self) -> int:
        return self.sources.size

    def at(self, places: Sequence[int]) -> list[Pair]:
        """The pairs at some places."""
        fields = (self.sources, self.targets, self.scores, self.weights)
        return [
            Pair(source, target, score, self.evidence(place), weight)
            for place, source, target, score, weight in zip(
                places, *(each[np.array(places, np.int64)].tolist() for each in fields), strict=True
            )
        ]

    @property
    def pairs(self) -> list[Pair]:
        return self.at(range(len(self)))

    @property
    def mean(self) -> float:
        return sum(self.scores.tolist()) / len(self) if len(self) else 0.0


def folded(text: str) -> str:
    """Text for comparing: small letters without accents."""
    text = text[: PAIRING.longest]
    return text.lower() if text.isascii() else text.translate(TO_BARE).translate(TO_SMALL)


class Windows(NamedTuple):
    """The q-grams of a column for one q, by place: their hashes, and where they start."""

    hashes: U64
    starts: I64


class Grams:
    """The distinct q-grams of a column for one q, in the order of their hashes, and the values that hold each."""

    def __init__(self, hashes: U64, owners: I64) -> None:
        # Hash and value in one number: a plain sort brings equal q-grams together, their values in order.
        keyed = np.sort((hashes << _BITS) | owners.view(np.uint64))
        keyed = keyed[_changes(keyed)]
        ranked = keyed >> _BITS
        begins = np.flatnonzero(_changes(ranked))
        self.distinct = ranked[begins]
        self.begins: I64 = np.append(begins, ranked.size)
        self.owners = (keyed & _OWNER).view(np.int64)

    def counts(self, at: I64) -> I64:
        """How many values hold the distinct q-grams at these places."""
        return self.begins[at + 1] - self.begins[at]


class _Sieve:
    """Tells hashes that are not among some at once, and lets few others pass: a bit for the first bits of each."""

    def __init__(self, distinct: U64) -> None:
        bits = min(_HASHED, max(10, int(distinct.size).bit_length() + 3))
        self.shift = np.uint64(_HASHED - bits)
        self.there = np.zeros(1 << bits, bool)
        self.there[(distinct >> self.shift).view(np.int64)] = True

    def passed(self, hashes: U64) -> npt.NDArray[np.bool_]:
        return self.there[(hashes >> self.shift).view(np.int64)]


class GramColumn:
    """The distinct values of a column, folded, as one text whose q-grams can be hashed at once."""

    def __init__(self, values: Sequence[str | None]) -> None:
        first: dict[str, int] = {}
        for row, value in enumerate(values):
            if value and len(first) < MOST_VALUES:
                first.setdefault(folded(value), row)
        self.values = list(first)
        #: The first row of each distinct value.
        self.rows = np.fromiter(first.values(), np.int64, len(first))
        lengths = np.array([len(value) for value in self.values], np.int64)
        self.begins = np.cumsum(lengths) - lengths
        #: The value that each character belongs to.
        self.owner = np.repeat(np.arange(len(self.values)), lengths)
        text = "".join(self.values).encode("utf-32-le", "surrogatepass")
        codes = np.frombuffer(text, np.uint32).astype(np.uint64)
        self.size = codes.size
        self._inverses = _powers(_INVERSE, codes.size)
        sums = np.cumsum(_mixed(codes) * _powers(_BASE, codes.size), dtype=np.uint64)
        self._sums = np.concatenate([np.zeros(1, np.uint64), sums])

    def windows(self, q: int) -> Windows:
        """All q-grams of one length: a window's hash is a difference of two sums, moved to the origin."""
        windows = max(0, self.size - q + 1)
        starts = np.flatnonzero(self.owner[:windows] == self.owner[q - 1 :])
        sums = (self._sums[q:] - self._sums[:windows])[starts] if windows else self._sums[:0]
        return Windows(_mixed(sums * self._inverses[starts]) & _HASH, starts)

    def grams(self, q: int) -> Grams:
        """The distinct q-grams of one length."""
        hashes, starts = self.windows(q)
        return Grams(hashes, self.owner[starts])

    def gram(self, place: int, q: int) -> str:
        owner = int(self.owner[place])
        start = place - int(self.begins[owner])
        return self.values[owner][start : start + q]


def _changes(ranked: U64) -> npt.NDArray[np.bool_]:
    """Where a sorted array has another number than before."""
    fresh = np.ones(ranked.size, bool)
    fresh[1:] = ranked[1:] != ranked[:-1]
    return fresh


def _powers(base: int, count: int) -> U64:
    """The powers of a number, from the one of zero on; each round makes twice as many."""
    powers = np.ones(count, np.uint64)
    done = 1
    while done < count:
        fresh = powers[done : 2 * done]
        np.multiply(powers[: fresh.size], np.uint64(pow(base, done, 1 << 64)), out=fresh)
        done *= 2
    return powers


def _mixed(hashes: U64) -> U64:
    """The bits of numbers spread over all places."""
    mixed = (hashes ^ (hashes >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    return (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xC4CEB9FE1A85EC53) + np.uint64(1)


class _RarestGrams:
    """The rarest q-gram of each value of one column that occurs in another: its score, its length and its place."""

    def __init__(self, source: GramColumn) -> None:
        self.source = source
        self.score = np.zeros(len(source.values))
        self.place = np.full(len(source.values), -1)
        self.q = np.zeros(len(source.values), np.int64)
        #: Where among the owners of the target's q-grams of that length those of this one are.
        self.begin = np.zeros(len(source.values), np.int64)
        self.end = np.zeros(len(source.values), np.int64)
        #: Places whose longest q-gram that the target has is known.
        self.settled = np.zeros(source.size, bool)

    def look_up(self, q: int, mine: Windows, theirs: Grams, sieve: _Sieve) -> None:
        if not theirs.distinct.size or not mine.starts.size:
            return
        passed = np.flatnonzero(sieve.passed(mine.hashes))
        hashes = mine.hashes[passed]
        order = np.argsort(hashes)  # looked up in order, they find what they look for in the cache
        hashes, starts = hashes[order], mine.starts[passed[order]]
        at = np.minimum(np.searchsorted(theirs.distinct, hashes), theirs.distinct.size - 1)
        met = np.flatnonzero(theirs.distinct[at] == hashes)
        hashes, starts, at = hashes[met], starts[met], at[met]
        held = Grams(hashes, self.source.owner[starts])
        open_ = np.flatnonzero(~self.settled[starts])
        hashes, starts, at = hashes[open_], starts[open_], at[open_]
        self.settled[starts] = True
        product = held.counts(np.searchsorted(held.distinct, hashes)) * theirs.counts(at)
        few = np.flatnonzero(product <= PAIRING.product)
        at, starts, product = at[few], starts[few], product[few]
        best = _smallest(self.source.owner[starts], product)
        at, starts, scores = at[best], starts[best], 1.0 / product[best]
        owners = self.source.owner[starts]
        better = scores > self.score[owners]  # of equal scores the longest stays: it came first
        owners = owners[better]
        self.score[owners], self.place[owners], self.q[owners] = scores[better], starts[better], q
        self.begin[owners], self.end[owners] = theirs.begins[at[better]], theirs.begins[at[better] + 1]

    def pairs(self, q: int, target: GramColumn, theirs: I64) -> _GramPairs:
        """The pairs of values whose best q-gram has this length; ``theirs`` are the owners of the target's."""
        values = np.flatnonzero((self.q == q) & (self.place >= 0))
        begins = self.begin[values]
        counts = self.end[values] - begins
        ends = np.cumsum(counts)
        every = np.repeat(values, counts)
        met = theirs[np.arange(every.size) + np.repeat(begins - ends + counts, counts)]
        return _GramPairs(
            self.source.rows[every], target.rows[met], self.score[every], self.place[every], self.q[every]
        )


class _GramPairs(NamedTuple):
    """Pairs of rows by column: their scores, and the place and the length of their q-grams in the source."""

    sources: I64
    targets: I64
    scores: F64
    places: I64
    lengths: I64


def _smallest(owners: I64, products: I64) -> I64:
    """The place of the smallest product of each owner, the first of equal ones; in the order of owners."""
    keyed = owners.view(np.uint64) << _OF_VALUE | products.astype(np.uint64) << _PLACES
    keyed = np.sort(keyed | np.arange(owners.size, dtype=np.uint64))
    return (keyed[_changes(keyed >> _OF_VALUE)] & _PLACE).view(np.int64)


def gram_pairs(
    sources: Mapping[str, GramColumn], targets: Sequence[GramColumn], clock: Clock | None = None
) -> list[list[Group]]:
    """Pairs by the rarest q-gram of each source value, the longest that a target has; for each target a group a column.

    The score of a q-gram never falls as it grows, as long as the target has it: hence the longest first. The q-grams
    of one length are in memory at a time, of those before only who holds them in the targets. When it is late, those
    that were not looked at yet are left out.
    """
    bests = [{name: _RarestGrams(column) for name, column in sources.items()} for _ in targets]
    ladder = _ladder(max((column.size for column in [*sources.values(), *targets]), default=0))
    owners: dict[int, list[I64]] = {}
    for q in reversed(ladder):
        theirs = [target.grams(q) for target in targets]
        sieves = [_Sieve(grams.distinct) for grams in theirs]
        owners[q] = [grams.owners for grams in theirs]
        for name, column in sources.items():
            if clock is not None and clock.late:
                break
            mine = column.windows(q)
            for best, grams, sieve in zip(bests, theirs, sieves, strict=True):
                best[name].look_up(q, mine, grams, sieve)
    found: list[list[Group]] = []
    for number, (target, best) in enumerate(zip(targets, bests, strict=True)):
        groups = {name: [best[name].pairs(q, target, owners[q][number]) for q in ladder] for name in sources}
        found.append([_group(name, sources[name], parts) for name, parts in groups.items() if any(map(_any, parts))])
    return found


def _any(found: _GramPairs) -> bool:
    return found.sources.size > 0


def _group(name: str, source: GramColumn, parts: Sequence[_GramPairs]) -> Group:
    """Pairs of q-grams of all lengths as a group."""
    scores = np.concatenate([part.scores for part in parts])
    order = np.argsort(-scores, kind="stable")
    sources, targets, places, lengths = (
        np.concatenate(each)[order]
        for each in zip(*((part.sources, part.targets, part.places, part.lengths) for part in parts), strict=True)
    )

    def evidence(place: int) -> str:
        return source.gram(int(places[place]), int(lengths[place]))

    return Group(name, sources, targets, scores[order], lengths.astype(np.float64), evidence)


def _ladder(size: int) -> tuple[int, ...]:
    """The lengths of q-grams to look up: fewer and longer ones where there is much text."""
    return next(ladder for most, ladder in PAIRING.ladders if size <= most)


def run_together(columns: Mapping[str, Sequence[str | None]]) -> list[list[str | None]]:
    """Columns of short cells as one, in their order and backwards: a time of hours, minutes and seconds (4.10, 1)."""
    short = [cells for cells in columns.values() if _mean_length(cells) <= PAIRING.short]
    if len(short) < 2:
        return []
    return [
        ["".join(cell or "" for cell in row) or None for row in zip(*order, strict=True)]
        for order in (short, short[::-1])
    ]


def _mean_length(cells: Sequence[str | None]) -> float:
    lengths = [len(cell) for cell in cells if cell]
    return sum(lengths) / len(lengths) if lengths else PAIRING.short + 1.0


def tokens_of(texts: Sequence[str]) -> set[str]:
    """Words and numbers of some cells, in small letters, without accents and leading zeros; months as numbers.

    A word that is written like a month is one beside numbers only. Several numbers of a cell are a token together, too:
    each of a version's is in many versions.
    """
    return set(_tokens(texts))


def _tokens(texts: Sequence[str]) -> list[str]:
    """Words and numbers of some cells as :func:`tokens_of` writes them, in order, repeated as often as they occur."""
    text = " ".join(map(folded, texts))
    tokens = _TOKEN.findall(text)
    if _DIGIT.search(text):
        tokens = [_MONTHS.get(token, token) for token in tokens]
        tokens += [order for cell in texts if (order := _in_order(cell))]
    return [token.lstrip("0") or "0" for token in tokens] if "0" in text else tokens


def _in_order(cell: str) -> str:
    """The numbers of a cell in order; empty if there is one at most."""
    numbers = _NUMBER.findall(cell)
    return ".".join(number.lstrip("0") or "0" for number in numbers) if len(numbers) > 1 else ""


class TokenIndex:
    """Rows of a table by their tokens, weighed by how rare these are; rows are given as their cells."""

    def __init__(self, rows: Sequence[Sequence[str]]) -> None:
        tokens = list(map(_tokens, rows))
        numbers: defaultdict[str, int] = defaultdict(count().__next__)
        held = np.fromiter(map(numbers.__getitem__, chain.from_iterable(tokens)), np.uint64)
        lengths = np.fromiter(map(len, tokens), np.int64, len(tokens))
        # Token and row in one number, as above.
        keyed = np.sort(held << _ROWS | np.repeat(np.arange(len(tokens), dtype=np.uint64), lengths))
        keyed = keyed[_changes(keyed)]
        self._numbers = dict(numbers)
        self._rows = (keyed & _ROW).view(np.int64)
        self._begins = np.searchsorted(keyed >> _ROWS, np.arange(len(numbers) + 1, dtype=np.uint64)).tolist()
        self._rarest = math.log(max(len(rows), 1))
        self._most = max(3, PAIRING.common * len(rows))
        #: Of each row the weight of the tokens it shares with the value that is looked at.
        self._sums = np.zeros(len(rows))

    def _list(self, token: str) -> tuple[I64, float] | None:
        """The rows that hold a token, and its weight; None if no row does or too many."""
        number = self._numbers.get(token)
        if number is None:
            return None
        held = self._rows[self._begins[number] : self._begins[number + 1]]
        return (held, self._rarest - math.log(held.size)) if held.size <= self._most else None

    def pairs(self, target: Sequence[str | None], most: int = PAIRING.targets) -> list[Pair]:
        """Pairs of rows that are each other's best: what counts is how much of the target's weight the row holds."""
        best_of_source: dict[int, tuple[float, int]] = {}
        found: list[tuple[float, int, int, str, float]] = []
        for place, value in enumerate(target[:most]):
            every = sorted(tokens_of([value or ""]))  # sums are the same in any run only if their order is
            lists = {token: held for token in every if (held := self._list(token)) is not None}
            if not lists:
                continue
            top, winners = self._nearest(list(lists.values()))
            if top <= _NOTHING:  # all rows hold them, as where there is one row only: they tell nothing
                continue
            for row in winners:
                if top > best_of_source.get(row, (0.0, 0))[0]:
                    best_of_source[row] = (top, place)
            if len(winners) == 1:
                known = sum(weight for _, weight in lists.values())
                share = top / (known + self._rarest * (len(every) - len(lists)))
                found.append((top, winners[0], place, " ".join(lists), share))
        return [
            Pair(row, place, 1.0, evidence, share)
            for top, row, place, evidence, share in found
            if best_of_source[row] == (top, place)
        ]

    def _nearest(self, lists: Sequence[tuple[I64, float]]) -> tuple[float, list[int]]:
        """The largest sum of weights that a row has, and the rows that have it."""
        for rows, weight in lists:
            self._sums[rows] += weight
        held = np.concatenate([rows for rows, _ in lists])
        sums = self._sums[held]
        self._sums[held] = 0.0
        top = float(sums.max())
        return top, sorted(set(held[sums >= top - _NOTHING].tolist()))
