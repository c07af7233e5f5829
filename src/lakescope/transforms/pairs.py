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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lakescope.transforms.clock import Clock
from lakescope.values.alphabet import TO_BARE, TO_SMALL

I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]
F64 = npt.NDArray[np.float64]

#: Lengths of q-grams that are looked up; 3 is the shortest that says anything.
LADDER = (3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 28, 40)
#: The same for columns of at most so many characters.
_LADDERS = ((200_000, LADDER), (800_000, (4, 6, 10, 20, 40)), (1 << 62, (6, 12, 30)))
#: Characters of a cell that are looked at.
_LONGEST = 512
#: Largest n times m of a match that is kept.
_PRODUCT = 100
#: Target values that are paired by tokens.
_TARGETS = 1500
#: Tokens of more than this share of rows tell nothing.
_COMMON = 0.34
#: Mean length of cells that are too short for q-grams of their own.
_SHORT = 4
_TOKEN = re.compile(r"[0-9]+|[^\W\d_]+")
_BASE = 0x9E3779B97F4A7C15 | 1
#: Bits of a number that hold the value, and the rest, which hold the hash of a q-gram.
_BITS = np.uint64(20)
_OWNER = np.uint64((1 << 20) - 1)
_HASH = np.uint64((1 << 44) - 1)
#: Distinct values of a column that are looked at: as many as have a number.
MOST_VALUES = 1 << 20
_INVERSE = pow(_BASE, -1, 1 << 64)


class Pair(NamedTuple):
    """A source row, a target row, how sure (1 / (n * m)), and the characters they were found by.

    ``weight`` tells pairs of one score apart: by the length of the q-gram, or by the share of tokens in common.
    """

    source: int
    target: int
    score: float
    evidence: str
    weight: float


@dataclass(frozen=True, slots=True)
class Group:
    """Pairs found between one column (or None: the whole row) and one key; the best first."""

    column: str | None
    pairs: tuple[Pair, ...]

    @property
    def mean(self) -> float:
        return sum(each.score for each in self.pairs) / len(self.pairs) if self.pairs else 0.0


def folded(text: str) -> str:
    """Text for comparing: small letters without accents."""
    text = text[:_LONGEST]
    return text.lower() if text.isascii() else text.translate(TO_BARE).translate(TO_SMALL)


@dataclass(frozen=True, slots=True)
class Grams:
    """The q-grams of a column for one q: by place, and the values that hold each."""

    hashes: U64
    starts: I64
    distinct: U64
    begins: I64
    owners: I64

    def counts(self, at: I64) -> I64:
        """How many values hold the distinct q-grams at these places."""
        return self.begins[at + 1] - self.begins[at]


class Column:
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

    def grams(self, q: int) -> Grams:
        """All q-grams of one length: a window's hash is a difference of two sums, moved to the origin."""
        windows = max(0, self.size - q + 1)
        starts = np.flatnonzero(self.owner[:windows] == self.owner[q - 1 :])
        sums = (self._sums[q:] - self._sums[:windows])[starts] if windows else self._sums[:0]
        hashes = _mixed(sums * self._inverses[starts]) & _HASH
        # Hash and value in one number: a plain sort brings equal q-grams together, their values in order.
        keyed = np.sort((hashes << _BITS) | self.owner[starts].astype(np.uint64))
        keyed = keyed[_changes(keyed)]
        ranked = keyed >> _BITS
        begins = np.flatnonzero(_changes(ranked))
        owners = (keyed & _OWNER).astype(np.int64)
        return Grams(hashes, starts, ranked[begins], np.append(begins, ranked.size), owners)

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
    factors = np.full(count, base, np.uint64)
    factors[:1] = 1
    return np.cumprod(factors)


def _mixed(hashes: U64) -> U64:
    """The bits of numbers spread over all places."""
    mixed = (hashes ^ (hashes >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    return (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xC4CEB9FE1A85EC53) + np.uint64(1)


class _Best:
    """The rarest q-gram of each value of one column that occurs in another: its score, its length and its place."""

    def __init__(self, source: Column) -> None:
        self.source = source
        self.score = np.zeros(len(source.values))
        self.place = np.full(len(source.values), -1)
        self.q = np.zeros(len(source.values), np.int64)
        #: Where among the owners of the target's q-grams of that length those of this one are.
        self.begin = np.zeros(len(source.values), np.int64)
        self.end = np.zeros(len(source.values), np.int64)
        #: Places whose longest q-gram that the target has is known.
        self.settled = np.zeros(source.size, bool)

    def look_up(self, q: int, mine: Grams, theirs: Grams) -> None:
        if not theirs.distinct.size or not mine.starts.size:
            return
        open_ = ~self.settled[mine.starts]
        hashes, starts = mine.hashes[open_], mine.starts[open_]
        order = np.argsort(hashes)  # looked up in order, they find what they look for in the cache
        hashes, starts = hashes[order], starts[order]
        at = np.minimum(np.searchsorted(theirs.distinct, hashes), theirs.distinct.size - 1)
        met = theirs.distinct[at] == hashes
        hashes, starts, at = hashes[met], starts[met], at[met]
        self.settled[starts] = True
        product = mine.counts(np.searchsorted(mine.distinct, hashes)) * theirs.counts(at)
        few = product <= _PRODUCT
        at, starts, scores = at[few], starts[few], 1.0 / product[few]
        owners = self.source.owner[starts]
        order = np.lexsort((-scores, owners))
        at, owners, starts, scores = at[order], owners[order], starts[order], scores[order]
        first = np.ones(owners.size, bool)
        first[1:] = owners[1:] != owners[:-1]
        better = first & (scores > self.score[owners])  # of equal scores the longest stays: it came first
        owners = owners[better]
        self.score[owners], self.place[owners], self.q[owners] = scores[better], starts[better], q
        self.begin[owners], self.end[owners] = theirs.begins[at[better]], theirs.begins[at[better] + 1]

    def pairs(self, q: int, target: Column, theirs: I64) -> list[Pair]:
        """The pairs of values whose best q-gram has this length; ``theirs`` are the owners of the target's."""
        found = []
        values = np.flatnonzero((self.q == q) & (self.place >= 0))
        fields = (self.source.rows, self.score, self.place, self.begin, self.end)
        for row, score, place, begin, end in zip(*(each[values].tolist() for each in fields), strict=True):
            gram = self.source.gram(place, q)
            for met in target.rows[theirs[begin:end]].tolist():
                found.append(Pair(row, met, score, gram, float(q)))
        return found


def gram_pairs(
    sources: Mapping[str, Column], targets: Sequence[Column], clock: Clock | None = None
) -> list[list[Group]]:
    """Pairs by the rarest q-gram of each source value, the longest that a target has; for each target a group a column.

    The score of a q-gram never falls as it grows, as long as the target has it: hence the longest first. The q-grams
    of one length are in memory at a time, of those before only who holds them in the targets. When it is late, those
    that were not looked at yet are left out.
    """
    bests = [{name: _Best(column) for name, column in sources.items()} for _ in targets]
    ladder = _ladder(max((column.size for column in [*sources.values(), *targets]), default=0))
    owners: dict[int, list[I64]] = {}
    for q in reversed(ladder):
        theirs = [target.grams(q) for target in targets]
        owners[q] = [grams.owners for grams in theirs]
        for name, column in sources.items():
            if clock is not None and clock.late:
                break
            mine = column.grams(q)
            for best, grams in zip(bests, theirs, strict=True):
                best[name].look_up(q, mine, grams)
    pairs: list[dict[str, list[Pair]]] = [{name: [] for name in sources} for _ in targets]
    for q in ladder:
        for target, held, best, found in zip(targets, owners[q], bests, pairs, strict=True):
            for name in sources:
                found[name] += best[name].pairs(q, target, held)
    return [
        [Group(name, tuple(sorted(found, key=lambda each: -each.score))) for name, found in each.items() if found]
        for each in pairs
    ]


def _ladder(size: int) -> tuple[int, ...]:
    """The lengths of q-grams to look up: fewer and longer ones where there is much text."""
    return next(ladder for most, ladder in _LADDERS if size <= most)


def run_together(columns: Mapping[str, Sequence[str | None]]) -> list[list[str | None]]:
    """Columns of short cells as one, in their order and backwards: a time of hours, minutes and seconds (4.10, 1)."""
    short = [cells for cells in columns.values() if _mean_length(cells) <= _SHORT]
    if len(short) < 2:
        return []
    return [
        ["".join(cell or "" for cell in row) or None for row in zip(*order, strict=True)]
        for order in (short, short[::-1])
    ]


def _mean_length(cells: Sequence[str | None]) -> float:
    lengths = [len(cell) for cell in cells if cell]
    return sum(lengths) / len(lengths) if lengths else _SHORT + 1.0


def tokens_of(texts: Sequence[str]) -> set[str]:
    """Words and numbers of some cells, in small letters, without accents and leading zeros."""
    return {token.lstrip("0") or "0" for text in texts for token in _TOKEN.findall(folded(text))}


class TokenIndex:
    """Rows of a table by their tokens, weighed by how rare these are; rows are given as their cells."""

    def __init__(self, rows: Sequence[Sequence[str]]) -> None:
        postings: dict[str, list[int]] = {}
        for row, cells in enumerate(rows):
            for token in tokens_of(cells):
                postings.setdefault(token, []).append(row)
        count = max(len(rows), 1)
        self._rarest = math.log(count)
        most = max(3, _COMMON * count)
        self._postings = {token: held for token, held in postings.items() if len(held) <= most}
        #: Rows and weight of the tokens that were asked for.
        self._lists: dict[str, tuple[I64, float]] = {}

    def _list(self, token: str) -> tuple[I64, float]:
        if token not in self._lists:
            held = self._postings[token]
            self._lists[token] = np.array(held), self._rarest - math.log(len(held))
        return self._lists[token]

    def pairs(self, target: Sequence[str | None], most: int = _TARGETS) -> list[Pair]:
        """Pairs of rows that are each other's best: what counts is how much of the target's weight the row holds."""
        best_of_source: dict[int, tuple[float, int]] = {}
        found: list[tuple[float, int, int, str, float]] = []
        for place, value in enumerate(target[:most]):
            every = tokens_of([value or ""])
            tokens = [token for token in every if token in self._postings]
            if not tokens:
                continue
            lists = [self._list(token) for token in tokens]
            held = np.concatenate([rows for rows, _ in lists])
            weights = np.repeat([weight for _, weight in lists], [rows.size for rows, _ in lists])
            sums = np.bincount(held, weights)
            top = float(sums.max())
            # Where there is one row only, tokens weigh nothing.
            winners = np.flatnonzero(sums >= top - 1e-9) if top > 1e-9 else np.unique(held)
            for row in winners.tolist():
                if top > best_of_source.get(row, (0.0, 0))[0]:
                    best_of_source[row] = (top, place)
            if winners.size == 1:
                share = top / (sum(weight for _, weight in lists) + self._rarest * (len(every) - len(tokens)))
                found.append((top, int(winners[0]), place, " ".join(sorted(tokens)), share))
        return [
            Pair(row, place, 1.0, evidence, share)
            for top, row, place, evidence, share in found
            if best_of_source[row] == (top, place)
        ]
