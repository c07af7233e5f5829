"""From evidence to a probability: which header a column most likely has, and how likely none that the lake knows.

A conditional logit, as for foreign keys: the candidates of a column compete with each other and with "none of these",
and the weights of what speaks for a candidate are learnt. They are learnt from the lake itself, whose tables with
headers are asked for one after the other as if they had none and were not in the lake. Nothing is learnt from the
table in question, nor from hidden ones. Where a lake is small, weights stay near those it starts from.

There are three rounds. The first judges each column alone: by values it shares, by what its values look like, by how
common the header is. The second adds what the other columns seem to be called by the first, the third does so again
by the second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from lakescope.array_types import F64, I64
from lakescope.engines.headers.corpus import CorpusPart, HeaderCorpus, likelihood
from lakescope.engines.headers.evidence import FAMILIES
from lakescope.engines.headers.similar import NamelessColumn, NamelessTable, Similar, ValueSearch

#: What speaks for a header of a column by itself, with the weight it starts from; the last is that of no header.
FIRST: dict[str, float] = {
    "common": 0.6,
    **{"shapes": 0.2, "outlines": 0.15, "lengths": 0.1, "repeats": 0.2, "range": 0.1, "middle": 0.05, "place": 0.1},
    **{"words": 0.1, "nearest": 0.5, "twin": 8.0},
    **{"values": 0.1, "similar": 2.0, "contained": 0.0, "votes": 2.5, "unshared": -0.5},
    "none": 0.0,
}
#: What neighbours add: the same for less, and what the other columns seem to be called.
SECOND: dict[str, float] = {
    **{name: 0.7 * weight for name, weight in FIRST.items() if name != "none"},
    **{"nearest": 0.8, "twin": 0.0},
    **{"alone": 0.3, "schema": 5.0, "schemata": 0.2, "before": 0.2, "behind": 0.2, "taken": -4.0},
    "none": -0.3,
}
#: The same, seen from where the others have been named once.
THIRD: dict[str, float] = {
    **{name: 0.6 * weight for name, weight in FIRST.items() if name != "none"},
    **{"nearest": 0.8, "twin": 1.5},
    **{"alone": 0.3, "schema": 3.5, "schemata": 0.15, "before": 0.1, "behind": 0.1, "taken": -3.0},
    "none": 0.0,
}
#: Candidates of a column that are judged: the best by a rough sum, and the best by shared values.
_ROUGH, _SHARED = 40, 8
#: Tables learnt from, at most, and how many columns' worth of evidence holds weights near their beginning.
LEARNT_FROM = 400
_INERTIA = 20.0
_STEPS, _ENOUGH = 40, 1e-6
_LITTLE = 1e-4
#: Columns that tell how often what is called so likely is right.
_TOLD = 40


@dataclass(slots=True)
class Judged:
    """The candidates of one column: header numbers, what speaks for each, and, once judged, how likely each is.

    ``none`` is how likely it is that no candidate is right.
    """

    headers: I64
    features: F64
    shares: F64
    probabilities: F64
    none: float = 1.0

    @property
    def ranked(self) -> list[int]:
        """Places of the candidates, the likeliest first."""
        order: list[int] = np.lexsort((self.headers, -self.probabilities)).tolist()
        return order


@dataclass(frozen=True, slots=True)
class Clues:
    """What some columns of the corpus say of one column: by header the best of them, and which values they hold.

    ``nearest`` and ``twin`` compare looks of columns and of tables, ``similar`` and ``contained`` shared values.
    ``counts`` columns hold a value and bear a header, by ``held``: the value's place times the number of headers, plus
    the header. Of two parts of the corpus the larger and the sum are those of both.
    """

    headers: I64
    nearest: F64
    twin: F64
    similar: F64
    contained: F64
    held: I64
    counts: I64

    def by_header(self, size: int) -> F64:
        """The best of each header, a row each; 0 of those that nothing speaks for."""
        found = np.zeros((4, size))
        found[:, self.headers] = self.nearest, self.twin, self.similar, self.contained
        return found

    def merged(self, other: Clues) -> Clues:
        """What the columns behind both say."""
        headers = np.union1d(self.headers, other.headers)
        best = np.zeros((4, headers.size))
        for each in (self, other):
            at = np.searchsorted(headers, each.headers)
            best[:, at] = np.maximum(best[:, at], (each.nearest, each.twin, each.similar, each.contained))
        held, where = np.unique(np.concatenate([self.held, other.held]), return_inverse=True)
        counts = np.zeros(held.size, np.int64)
        np.add.at(counts, where, np.concatenate([self.counts, other.counts]))
        nearest, twin, similar, contained = best
        return Clues(headers, nearest, twin, similar, contained, held, counts)


@dataclass(frozen=True, slots=True)
class Model:
    """Weights of the rounds, how many tables they were learnt from, and how often they were right about others.

    Of headers that were called likely as ``said`` a share ``right`` was.
    """

    first: F64
    second: F64
    third: F64
    tables: int = 0
    said: F64 = field(default_factory=lambda: np.array([0.0, 1.0]))
    right: F64 = field(default_factory=lambda: np.array([0.0, 1.0]))

    @classmethod
    def beginning(cls) -> Model:
        """The weights before anything was learnt: set by hand, as round numbers."""
        first, second, third = (np.array(list(weights.values())) for weights in (FIRST, SECOND, THIRD))
        return cls(first, second, third)

    def to_dict(self) -> dict[str, Any]:
        weights = {name: getattr(self, name) for name in ("first", "second", "third", "said", "right")}
        return {**{name: each.tolist() for name, each in weights.items()}, "tables": self.tables}

    @classmethod
    def from_dict(cls, kept: Mapping[str, Any]) -> Model | None:
        """What was kept, unless by a version that knew other features."""
        first, second, third = (np.array(kept.get(name, ()), np.float64) for name in ("first", "second", "third"))
        if (first.size, second.size, third.size) != (len(FIRST), len(SECOND), len(THIRD)):
            return None
        said, right = (np.array(kept[name], np.float64) for name in ("said", "right"))
        return cls(first, second, third, int(kept["tables"]), said, right)


class Judge:
    """Judges the columns of tables by what a corpus knows."""

    def __init__(self, corpus: HeaderCorpus, values: ValueSearch) -> None:
        self.corpus = corpus
        self.values = values

    def judged(
        self, table: NamelessTable, model: Model, known: Mapping[int, int], clues: Sequence[Clues] | None = None
    ) -> tuple[list[Judged], Similar | None]:
        """Candidates of all columns with probabilities; ``known`` are headers that are given, by column.

        What shares values is told as well, unless ``clues`` were found before.
        """
        similar = None
        if clues is None:
            clues, similar = self.clues(table, self.corpus.whole)
        judged = self.weighed(table, clues)
        _judge(judged, model.first)
        for weights in (model.second, model.third):
            judged = self.with_neighbours(table, judged, known)
            _judge(judged, weights)
        for each in judged:
            _calibrate(each, model)
        return judged, similar

    # --- first round --------------------------------------------------------------------------------------------------

    def clues(self, table: NamelessTable, part: CorpusPart) -> tuple[list[Clues], Similar]:
        """What the columns of a part of the corpus say of each column of a table."""
        corpus = self.corpus
        lists = self.values.lists(table, part)
        similar = self.values.similar(table, part, lists)
        near = _near(part, [column.terms_in(table.width) for column in table.columns], corpus.own(table.number))
        size = max(1, corpus.frequency.size)
        found = []
        for column, sharing, (nearest, twin) in zip(table.columns, similar.sharing, near, strict=True):
            mine = corpus.columns.header_of[sharing.numbers]
            weight, contained = np.zeros(size), np.zeros(size)
            near_tables = similar.tables[corpus.columns.table_of[sharing.numbers]]
            np.maximum.at(weight, mine, sharing.containment * near_tables)
            np.maximum.at(contained, mine, sharing.containment)
            numbers, place = lists.of(column.groups.groups)
            held, counts = np.unique(place * size + corpus.columns.header_of[numbers], return_counts=True)
            headers = np.flatnonzero((nearest > 0) | (twin > 0) | (contained > 0))
            best = (nearest[headers], twin[headers], weight[headers], contained[headers])
            found.append(Clues(headers, *best, held, counts.astype(np.int64)))
        return found, similar

    def weighed(self, table: NamelessTable, clues: Sequence[Clues]) -> list[Judged]:
        """Candidates from what all parts of the corpus say: the best by a rough sum, and the best by shared values."""
        corpus = self.corpus
        own = corpus.own(table.number)
        frequency = corpus.frequency_without(own)
        common = np.log(np.maximum(frequency, 0.1) / max(1.0, float(frequency.sum())))
        found = []
        for column, clue in zip(table.columns, clues, strict=True):
            terms = column.terms_in(table.width)
            looks = [
                corpus.looks(family, terms[family], frequency, own) / _norm(family, len(terms[family]))
                for family in FAMILIES
            ]
            nearest, twin, weight, contained = clue.by_header(frequency.size)
            tokens, votes = _tokens(column, clue, frequency)
            unshared = (contained == 0).astype(np.float64)
            every = np.column_stack(
                [common, *looks, nearest, twin, tokens, np.sqrt(weight), contained, votes, unshared]
            )
            rough = every @ np.array(list(FIRST.values()))[:-1]
            rough[frequency <= 0] = -np.inf
            chosen = _largest(rough, _ROUGH)
            chosen = np.unique(np.concatenate([chosen, _largest(np.where(weight > 0, weight, -np.inf), _SHARED)]))
            found.append(Judged(chosen, every[chosen], weight[chosen], np.zeros(chosen.size)))
        return found

    # --- second round -------------------------------------------------------------------------------------------------

    def with_neighbours(
        self, table: NamelessTable, judged: Sequence[Judged], known: Mapping[int, int] | None = None
    ) -> list[Judged]:
        """Candidates of columns with what the other columns add, by the probabilities of the round before.

        ``schema`` is how much the most similar schema that holds a header has of the other columns; ``schemata`` how
        much commoner a header is among similar schemata; ``before`` and ``behind`` how often it stands next to what
        the neighbour seems to be; ``taken`` how likely it belongs to another column.
        """
        corpus, headed = self.corpus, self.corpus.columns
        union = np.unique(np.concatenate([np.empty(0, np.int64), *(each.headers for each in judged)]))
        if known:
            union = np.unique(np.concatenate([union, np.array(list(known.values()), np.int64)]))
        likely = np.zeros((len(judged), union.size))
        for place, each in enumerate(judged):
            likely[place, np.searchsorted(union, each.headers)] = each.probabilities
        for place, header in (known or {}).items():
            likely[place] = union == header
        numbers = corpus.bearing(union)
        if table.number is not None:
            numbers = numbers[headed.table_of[numbers] != table.number]
        scene = _Scene(self.corpus, union, likely, numbers, corpus.own(table.number).size)
        return [
            Judged(
                each.headers,
                np.column_stack(
                    [each.features[:, : len(FIRST) - 1], *scene.of(place, np.searchsorted(union, each.headers), each)]
                ),
                each.shares,
                np.zeros(each.headers.size),
            )
            for place, each in enumerate(judged)
        ]

    # --- learning -----------------------------------------------------------------------------------------------------

    def learnt(self, tables: Sequence[tuple[NamelessTable, Sequence[int]]], progress: Callable[[int], None]) -> Model:
        """Weights learnt from tables whose headers are known (-1: not usable), each as if it were not in the corpus."""
        beginning = Model.beginning()
        if not tables:
            return beginning
        some = [table for table, _ in tables]
        truths = [truth for _, truth in tables]
        rounds = []
        for number, table in enumerate(some):
            rounds.append(self.weighed(table, self.clues(table, self.corpus.whole)[0]))
            progress(number)
        weights = [_fitted(rounds, truths, beginning.first)]
        for begin in (beginning.second, beginning.third):
            start = beginning.first if len(weights) == 1 else beginning.second
            # What a round builds on is judged by weights that have not seen the table.
            halves = [_fitted(rounds[1 - half :: 2], truths[1 - half :: 2], start) for half in (0, 1)]
            for number, judged in enumerate(rounds):
                _judge(judged, halves[number % 2])
            rounds = [self.with_neighbours(table, judged) for table, judged in zip(some, rounds, strict=True)]
            weights.append(_fitted(rounds, truths, begin))
        first, second, third = weights
        return Model(first, second, third, len(tables), *_found_right(rounds, truths, beginning.third))


def _near(part: CorpusPart, terms: Sequence[Mapping[str, Sequence[str]]], own: I64) -> list[tuple[F64, F64]]:
    """For every column and header, how alike the most similar column of that name is; and the table most alike.

    Tables are compared column by column from the first, and only one that has the header at that place counts: a
    table made like another has the headers of the other.
    """
    headers = part.corpus.frequency.size
    alike = [part.alike(some, own) for some in terms]
    twins = np.zeros(len(part.tables))
    for place, each in enumerate(alike):
        there = np.flatnonzero(part.widths > place)
        twins[there] += each[part.first[there] + place]
    twins /= np.maximum(part.widths, len(alike))
    found = []
    for place, each in enumerate(alike):
        nearest, twin = np.zeros(headers), np.zeros(headers)
        some = np.flatnonzero(each)
        np.maximum.at(nearest, part.header_of[some], each[some])
        here = np.flatnonzero(part.widths > place)
        columns = part.first[here] + place
        kept = each[columns] > 0
        np.maximum.at(twin, part.header_of[columns[kept]], twins[here[kept]])
        found.append((nearest, twin))
    return found


def _tokens(column: NamelessColumn, clues: Clues, frequency: F64) -> tuple[F64, F64]:
    """Log likelihood ratios of headers by the values themselves; and the mean vote of values.

    A value votes for the headers of the columns that hold it, one vote in all.
    """
    headers = frequency.size
    groups = column.groups
    if not clues.held.size:
        return np.zeros(headers), np.zeros(headers)
    at, header = np.divmod(clues.held, max(1, headers))
    counts = clues.counts.astype(np.float64)
    totals = np.bincount(at, counts, groups.groups.size).astype(np.float64)
    weights = groups.weights.astype(np.float64)
    known = float(weights[totals > 0].sum())
    ratio = likelihood(header, counts, at, totals, round(known), frequency, weights)
    votes = np.bincount(header, weights[at] * counts / totals[at], minlength=headers) / max(1, groups.size)
    return ratio / np.sqrt(max(1.0, known)), votes


class _Scene:
    """The columns of the corpus whose headers are candidates somewhere in a table, seen from that table."""

    def __init__(self, corpus: HeaderCorpus, union: I64, likely: F64, numbers: I64, own: int) -> None:
        headed = corpus.columns
        width = len(likely)
        self._likely = likely
        self._width = width
        self._header = np.searchsorted(union, headed.header_of[numbers])
        self._frequency = np.bincount(self._header, minlength=union.size).astype(np.float64)
        table = headed.table_of[numbers]
        starts = np.flatnonzero(np.concatenate([[True], table[1:] != table[:-1]])) if numbers.size else np.empty(0, int)
        lengths = np.diff(np.concatenate([starts, [numbers.size]])).astype(np.int64)
        # Columns by header: the place of the table of each, and where the next header that occurs begins.
        order = np.argsort(self._header, kind="stable")
        self._owner = np.repeat(np.arange(starts.size), lengths)[order]
        self._held = np.flatnonzero(self._frequency)
        self._bounds = np.searchsorted(self._header[order], self._held)
        empty = np.zeros((width, 0))
        self._named = np.maximum.reduceat(likely[:, self._header], starts, axis=1) if numbers.size else empty
        self._all_named = self._named.sum(axis=0)
        self._widths = corpus.widths[table[starts]]
        self._tables = max(1, corpus.tables - (own > 0))
        self._columns = max(1, len(corpus) - own)
        place = np.full(len(headed) + 2, -1, np.int64)
        place[numbers + 1] = self._header
        tables = np.concatenate([[-1], headed.table_of, [-1]])
        #: The candidate that the neighbour of each column bears, -1 if none, by side.
        self._beside = {
            side: np.where(tables[numbers + 1 + side] == table, place[numbers + 1 + side], -1) for side in (-1, 1)
        }
        usable = np.concatenate([[False], corpus.usable, [False]])
        self._has_neighbour = {
            side: (tables[numbers + 1 + side] == table) & usable[numbers + 1 + side] for side in (-1, 1)
        }

    def of(self, place: int, at: I64, judged: Judged) -> list[F64]:
        """What the rest of the table adds for the candidates ``at`` places of the union, for one column."""
        size = self._frequency.size
        rest = self._all_named - self._named[place]
        scale = np.sqrt(max(1, self._width - 1) * np.maximum(1, self._widths - 1))
        tables = rest / scale
        alike = tables[self._owner]
        schema, votes = np.zeros(size), np.zeros(size)
        if self._held.size:
            schema[self._held] = np.maximum.reduceat(alike, self._bounds)
            votes[self._held] = np.add.reduceat(alike * alike, self._bounds)
        votes /= float(np.square(tables).sum()) + 1e-9
        schemata = np.log((votes + _LITTLE) / (self._frequency / self._tables + _LITTLE))
        others = np.delete(self._likely, place, axis=0)
        taken = others.max(axis=0) if others.shape[0] else np.zeros(size)
        before, behind = self._beside_of(place, -1), self._beside_of(place, 1)
        alone = np.log(judged.probabilities + 1e-9)
        return [alone, schema[at], schemata[at], before[at], behind[at], taken[at]]

    def _beside_of(self, place: int, side: int) -> F64:
        """How much more often than not a header stands beside what the neighbour on one side seems to be."""
        size = self._frequency.size
        if not 0 <= place + side < self._width:
            return np.zeros(size)
        likely = self._likely[place + side]
        beside = self._beside[side]
        weight = np.where(beside >= 0, likely[np.maximum(beside, 0)], 0.0) if size else np.zeros(0)
        # All columns that the neighbour could be beside: those it is the neighbour of, seen from its side.
        base = float(likely[self._header[self._has_neighbour[-side]]].sum()) / self._columns
        if base <= 0:
            return np.zeros(size)
        together = np.bincount(self._header, weight, minlength=size)
        found: F64 = np.log((together + 0.5 * base) / ((self._frequency + 0.5) * base) + 1e-12)
        return found


def _norm(family: str, terms: int) -> float:
    """What a sum over terms is divided by: words are many and repeat each other."""
    return float(np.sqrt(terms)) if family == "words" else float(terms)


def _largest(scores: F64, count: int) -> I64:
    """Places of the largest scores that are finite."""
    if scores.size > count:
        some = np.argpartition(-scores, count)[:count]
    else:
        some = np.arange(scores.size)
    return some[np.isfinite(scores[some])].astype(np.int64)


def _judge(columns: Sequence[Judged], weights: F64) -> None:
    """Tell how likely each candidate of each column is."""
    for judged in columns:
        scores = np.append(judged.features @ weights[:-1], weights[-1])
        shares = np.exp(scores - scores.max())
        shares /= shares.sum()
        judged.probabilities, judged.none = shares[:-1], float(shares[-1])


def _calibrate(judged: Judged, model: Model) -> None:
    """Call the likeliest header as likely as such headers were right; others lose or win with it, none passes it."""
    if not judged.headers.size:
        return
    best = min(float(judged.probabilities.max()), 1 - 1e-9)
    likely = min(float(np.interp(best, model.said, model.right)), 1 - 1e-9)
    at = int(judged.probabilities.argmax())
    judged.probabilities = judged.probabilities * min(likely / max(best, 1e-12), (1 - likely) / (1 - best))
    judged.probabilities[at] = likely
    judged.none = max(0.0, 1 - float(judged.probabilities.sum()))


def _found_right(
    rounds: Sequence[Sequence[Judged]], truths: Sequence[Sequence[int]], beginning: F64
) -> tuple[F64, F64]:
    """How often the likeliest header is right, by how likely it is called by weights that have not seen its table.

    The shares never fall (isotonic regression); each is that of ``_TOLD`` columns and more.
    """
    said, right = [], []
    for half in (0, 1):
        weights = _fitted(rounds[1 - half :: 2], truths[1 - half :: 2], beginning)
        _judge([each for columns in rounds[half::2] for each in columns], weights)
        for judged, truth in _labelled(rounds[half::2], truths[half::2]):
            at = judged.ranked[0]
            said.append(float(judged.probabilities[at]))
            right.append(float(judged.headers[at] == truth))
    if len(said) < 2 * _TOLD:
        return np.array([0.0, 1.0]), np.array([0.0, 1.0])
    order = np.argsort(said, kind="stable")
    blocks: list[tuple[int, float, float]] = []
    for some in np.array_split(order, len(said) // _TOLD):
        blocks.append((some.size, float(np.array(said)[some].sum()), float(np.array(right)[some].sum())))
        while len(blocks) > 1 and blocks[-2][2] * blocks[-1][0] >= blocks[-1][2] * blocks[-2][0]:
            last = blocks.pop()
            blocks[-1] = (blocks[-1][0] + last[0], blocks[-1][1] + last[1], blocks[-1][2] + last[2])
    counts, sums, hits = (np.array(each, np.float64) for each in zip(*blocks, strict=True))
    # As if one column more had been right and one more wrong, so that nothing is certain.
    shares = (hits + 0.5) / (counts + 1)
    return np.concatenate([[0.0], sums / counts, [1.0]]), np.concatenate([[0.0], shares, [max(shares[-1], 0.999)]])


def _fitted(rounds: Sequence[Sequence[Judged]], truths: Sequence[Sequence[int]], beginning: F64) -> F64:
    """Weights of a conditional logit by Newton's method, held near where they begin."""
    features, answers, lengths = [], [], []
    for judged, truth in _labelled(rounds, truths):
        count = judged.headers.size
        block = np.zeros((count + 1, beginning.size))
        block[:count, :-1] = judged.features
        block[count, -1] = 1.0
        answer = np.append((judged.headers == truth).astype(np.float64), 0.0)
        answer[-1] = 1.0 - answer.sum()
        features.append(block)
        answers.append(answer)
        lengths.append(count + 1)
    if not lengths:
        return beginning
    x, y = np.concatenate(features), np.concatenate(answers)
    starts = np.cumsum([0, *lengths[:-1]])
    owner = np.repeat(np.arange(len(lengths)), lengths)
    scale = np.maximum(x.std(axis=0), 1e-6)
    found: F64 = _newton(x / scale, y, starts, owner, beginning * scale) / scale
    return found


def _labelled(rounds: Sequence[Sequence[Judged]], truths: Sequence[Sequence[int]]) -> Iterator[tuple[Judged, int]]:
    for columns, headers in zip(rounds, truths, strict=True):
        for judged, header in zip(columns, headers, strict=True):
            if header >= 0 and judged.headers.size:
                yield judged, header


def _newton(x: F64, y: F64, starts: I64, owner: npt.NDArray[np.intp], beginning: F64) -> F64:
    weights = beginning.copy()

    def loss(some: F64) -> tuple[float, F64]:
        scores = x @ some
        scores = np.exp(scores - np.maximum.reduceat(scores, starts)[owner])
        shares = scores / np.add.reduceat(scores, starts)[owner]
        away = some - beginning
        return float(-(y * np.log(np.maximum(shares, 1e-300))).sum() + 0.5 * _INERTIA * (away @ away)), shares

    value, shares = loss(weights)
    for _ in range(_STEPS):
        slope = x.T @ (shares - y) + _INERTIA * (weights - beginning)
        means = np.add.reduceat(shares[:, None] * x, starts)
        curve = (x * shares[:, None]).T @ x - means.T @ means + _INERTIA * np.eye(weights.size)
        step = np.linalg.solve(curve, slope)
        length = 1.0
        while True:
            tried, tried_shares = loss(weights - length * step)
            if tried <= value or length < 1e-3:
                break
            length /= 2
        if value - tried < _ENOUGH * abs(value):
            break
        weights, value, shares = weights - length * step, tried, tried_shares
    return weights
