"""Which tables hold a column that correlates with mine after the join? Without doing the join (CS, QCR).

First stage: frames, or the inverted index, tell which keys share values with the query, the sides of the sketched
values how often each numeric column goes with the query's or against it. Second stage: the sketches of the best are
joined, which gives a uniform sample of the real join, and every number is told with its interval. What is shown is
corrected for having looked at much.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lakescope.array_types import F64, I32, I64, U64
from lakescope.engines.correlations import estimators, intervals
from lakescope.engines.correlations.answers import Correlated, CorrelationRank, Mean, Measure, Retrieval
from lakescope.engines.correlations.estimators import Samples
from lakescope.engines.correlations.frames import PairCounts
from lakescope.engines.correlations.keysketches import KeySketches
from lakescope.engines.joins.inverted import InvertedIndex
from lakescope.engines.joins.josie import kernels_are_loaded
from lakescope.engines.joins.overlaps import OverlapSearch
from lakescope.errors import BadRequest
from lakescope.once import once
from lakescope.results import Results, maker
from lakescope.sketches.aggregates import AGGREGATES, Aggregate
from lakescope.sketches.quadrants import ABOVE, OVER, PRESENT, UNDER, balanced_cut
from lakescope.store.index import Index
from lakescope.tables.keyed import KEY_ITSELF, KeyedQuery, query_of_pair
from lakescope.threads import in_parts
from lakescope.values.hashing import LAST_HASH

Counts = npt.NDArray[np.signedinteger[Any]]


@dataclass(frozen=True, slots=True)
class CorrelationTuning:
    """How many sketches are looked at and joined, and what is said of a coefficient."""

    #: Fewest joined keys that are told of. Not measured.
    fewest: int = 5
    #: Joined keys from which on a coefficient is worth believing: fewer are told as a doubt. Not measured.
    reliable: int = 20
    #: Pairs whose sketches are joined, at least. Not measured by itself:
    #: ``benchmarks/results/correlations.md`` has what is found, and how long it takes, with this many.
    joined: int = 100
    #: Pairs whose sketches are joined, for each one that is wanted. Not measured by itself.
    joined_per_hit: int = 2
    #: Smallest hashes of the query that find keys of the lake: as many as a sketch holds. Not measured.
    probes: int = 1024
    #: Keys of a query up to which its numbers are put in order once, and not in each sample again. Not measured:
    #: answers do not depend on it.
    coded: int = 4096
    #: Excess kurtosis from which on a tail is heavy, so that the coefficient of ranks stands for Pearson's. Not
    #: measured by itself: ``benchmarks/correlations.py`` measures how often intervals cover with it.
    kurtosis: float = 10.0
    #: Share of the squares in one point from which on that point makes most of the spread. Not measured by itself: the
    #: coverage of intervals is measured with it, as above.
    one_point: float = 0.2
    #: Fewest joined keys of which it is said that one point makes most of the spread. Not measured.
    fewest_for_points: int = 10
    #: A correlation of which so much is left when a third column is taken out is not explained by it. Not measured.
    left: float = 0.5
    #: Weaker correlations need no explanation. Not measured.
    weak: float = 0.2


CORRELATIONS = CorrelationTuning()


_SHOWN = (
    "table",
    "key",
    "column",
    "correlation",
    "low",
    "high",
    "coefficient",
    "p",
    "q",
    "sample",
    "joined_rows",
    "containment",
    "aggregate",
    "reasons",
)


_correlated = maker(Correlated)


class ScreenedPairs(NamedTuple):
    """What the first stage leaves for one order of a query's key: pairs by number, and the score of each."""

    query: KeyedQuery
    pairs: I64
    scores: F64


class JoinRows(NamedTuple):
    """Rows of the joins of the keys that were seen: all, the sum of the squares of each key's, and the most of one."""

    total: I64
    squares: F64
    most: I64

    @classmethod
    def of(cls, joins: int) -> JoinRows:
        """None yet, of so many joins."""
        return cls(np.zeros(joins, np.int64), np.zeros(joins), np.zeros(joins, np.int64))

    def take(self, some: npt.NDArray[np.intp]) -> JoinRows:
        """The rows of some of the joins."""
        return JoinRows(self.total[some], self.squares[some], self.most[some])


@dataclass(slots=True)
class _JoinedSketches:
    """Sketches joined with the query: numbers of the pairs, their samples, what is known of each join.

    ``share`` of all hashes were compared: of the query's keys ``counted``, of which ``common`` were found.
    """

    pairs: I64
    samples: Samples
    given: dict[str, F64]
    share: F64
    counted: I64
    common: I64
    rows: JoinRows

    @property
    def keys(self) -> F64:
        """How many keys with a number on both sides the whole join has."""
        return self.samples.n / self.share

    @property
    def containment(self) -> F64:
        """The share of the query's keys that find a partner."""
        return self.common / np.maximum(1, self.counted)


@dataclass(frozen=True, slots=True)
class CorrelationCriteria:
    """What a search for correlations must know of a question."""

    k: int = 10
    measure: Measure = "pearson"
    aggregate: Aggregate = "mean"
    rank: CorrelationRank = "lower"
    retrieval: Retrieval = "z"
    weight_join: float = 0.0
    weight_corr: float = 1.0
    mean: Mean = "geometric"
    given: str | None = None


class CorrelationSearch:
    """Answers which columns correlate, for one opened index."""

    def __init__(
        self, index: Index, inverted: InvertedIndex, overlaps: OverlapSearch, sketches: KeySketches | None = None
    ) -> None:
        self.sketches = sketches or KeySketches(index)
        self._inverted = inverted
        self._overlaps = overlaps

    def warm(self) -> None:
        """Make ready what many questions share, and ask one: its kernels are loaded then."""
        if self.sketches.pairs:
            _ = self.sketches.frames, self._single
            self.sketches.name_all()
            self.sketches.touch()
            self.search(query_of_pair(self.sketches, 0, "mean"), CorrelationCriteria())

    @once
    def _single(self) -> npt.NDArray[np.uint8]:
        """Which keys consist of a set alone."""
        found = np.zeros(self.sketches.count, np.uint8)
        found[self._key_of_set[self._key_of_set >= 0]] = 1
        return found

    @once
    def _key_of_set(self) -> npt.NDArray[np.int64]:
        """The key that consists of a set alone; -1 for sets that are none."""
        found = np.full(self._inverted.count, -1, np.int64)
        for number, (first, *more) in enumerate(self._sets_of_keys):
            if not more and first >= 0:
                found[first] = number
        return found

    @once
    def _sets_of_keys(self) -> list[tuple[int, ...]]:
        """The numbers of the sets of every key's columns."""
        ids = self._inverted.ids
        order = np.argsort(ids)
        ordered = ids[order]
        flat = np.array([each for sets in self.sketches.sets for each in sets], np.uint64)
        at = np.minimum(np.searchsorted(ordered, flat), max(0, ordered.size - 1))
        numbers = np.where(ordered[at] == flat, order[at], -1).tolist() if flat.size else []
        found, reached = [], 0
        for sets in self.sketches.sets:
            found.append(tuple(numbers[reached : reached + len(sets)]))
            reached += len(sets)
        return found

    @once
    def _pairs_of_columns(self) -> npt.NDArray[np.int64]:
        """Keys of two columns: number of the key, number of the first set, number of the second."""
        rows = [(number, *sets) for number, sets in enumerate(self._sets_of_keys) if len(sets) == 2 and min(sets) >= 0]
        return np.array(rows, np.int64).reshape(-1, 3)

    # --- first stage --------------------------------------------------------------------------------------------------

    def _hits(self, hashes: U64, least: int) -> npt.NDArray[np.bool_]:
        """Which sets hold so many of the smallest hashes: no fewer than their sketches do."""
        found = np.zeros(self._inverted.count, np.bool_)
        found[self._overlaps.at_least(self._overlaps.query(np.sort(hashes)[: CORRELATIONS.probes]), least).sets] = True
        return found

    def _counts_by_frames(self, retrieval: Retrieval) -> bool:
        """Whether pairs are counted by frames, which need not be told the keys that share values with a query."""
        return retrieval == "z" and kernels_are_loaded()

    def _candidates(self, query: KeyedQuery, *, framed: bool = False) -> list[tuple[KeyedQuery, I64 | None]]:
        """Keys of the lake that share values with the query's, by the order of its columns that fits.

        None stands for all keys of one column.
        """
        if len(query.key) == 1:
            if framed:
                return [(query, None)]
            keys = self._key_of_set[self._hits(query.hashes, CORRELATIONS.fewest)]
            return [(query, np.sort(keys[keys >= 0]))]
        pairs = self._pairs_of_columns
        if not query.parts:
            return [(query, pairs[:, 0])]
        left, right = (self._hits(part, 1) for part in query.parts)
        found: list[tuple[KeyedQuery, I64 | None]] = [(query, pairs[left[pairs[:, 1]] & right[pairs[:, 2]], 0])]
        if query.swapped is not None:
            found.append((query.swapped, pairs[right[pairs[:, 1]] & left[pairs[:, 2]], 0]))
        return found

    def count_pairs(
        self, hashes: U64, values: F64, keys: I64 | None, retrieval: Retrieval, excluded_table: str | None = None
    ) -> PairCounts:
        """The pairs of some keys that share enough with a query, and how often each goes with it.

        Those of the table ``excluded_table`` are left out. No keys stand for all of one column, if frames count them.
        """
        number = self.sketches.table_number(excluded_table)
        if self._counts_by_frames(retrieval):
            allowed = self._single
            if keys is not None:
                allowed = np.zeros(self.sketches.count, np.uint8)
                allowed[keys] = 1
            if number >= 0:
                allowed = allowed * (self.sketches.table_numbers != number)
            above, below = _query_sides(values, retrieval)
            signs = above + 2 * below.astype(np.uint8)
            return self.sketches.frames.count_pairs(hashes, signs, allowed, CORRELATIONS.fewest)
        if keys is None:
            keys = np.flatnonzero(self._single)
        keys = keys[self.sketches.table_numbers[keys] != number]
        same, other = self.quadrants(hashes, values, keys, retrieval)
        enough = same + other >= CORRELATIONS.fewest
        return PairCounts(self.sketches.pairs_of(keys)[enough], same[enough], other[enough])

    def quadrants(self, hashes: U64, values: F64, keys: I64, retrieval: Retrieval) -> tuple[I64, I64]:
        """How often every pair of some keys, which are in order, goes with a query and how often against it."""
        above, below = _query_sides(values, retrieval)
        counts = self.sketches.pair_starts[keys + 1] - self.sketches.pair_starts[keys]
        same, other = np.zeros(int(counts.sum()), np.int64), np.zeros(int(counts.sum()), np.int64)
        rows = np.array([ABOVE, PRESENT, 1] if retrieval == "z" else [OVER, UNDER, 0], np.int64)
        ends = np.cumsum(counts)
        if kernels_are_loaded():
            from lakescope.engines.joins import kernels

            sketches = self.sketches
            numbered = sketches.numbered
            limit = int(np.searchsorted(numbered.known, hashes[-1:].max(initial=0), "right")) - 1

            def count(begin: int, end: int) -> None:
                at = slice(int(ends[begin] - counts[begin]), int(ends[end - 1]))
                kernels.quadrants(
                    *(side_of, limit, keys[begin:end], numbered.numbers, numbered.starts),
                    *(sketches.pair_starts, sketches.sides, rows, same[at], other[at]),
                )

            with numbered.table_of(hashes, above + 2 * below.astype(np.uint8)) as side_of:
                in_parts(count, sketches.sizes[keys])
            return same, other
        for key, begin, end in zip(keys.tolist(), (ends - counts).tolist(), ends.tolist(), strict=True):
            self._quadrants_plainly(key, hashes, above, below, rows, same[begin:end], other[begin:end])
        return same, other

    def _quadrants_plainly(
        self,
        key: int,
        hashes: U64,
        above: npt.NDArray[np.bool_],
        below: npt.NDArray[np.bool_],
        rows: I64,
        same: I64,
        other: I64,
    ) -> None:
        """Count, by numpy alone, how often the pairs of a key go with a query and how often against it."""
        theirs = self.sketches.hashes_of(key)
        common, mine, at = np.intersect1d(hashes, theirs, assume_unique=True, return_indices=True)
        if not common.size:
            return
        pairs = range(int(self.sketches.pair_starts[key]), int(self.sketches.pair_starts[key + 1]))
        for place, pair in enumerate(pairs):
            bits = np.unpackbits(self.sketches.sides_of(pair).view(np.uint8), axis=1, bitorder="little")[:, at] > 0
            up, down = bits[rows[0]], bits[rows[1]]
            if rows[2]:
                down = down & ~up
            same[place] = int((above[mine] & up).sum() + (below[mine] & down).sum())
            other[place] = int((above[mine] & down).sum() + (below[mine] & up).sum())

    def screen(
        self, query: KeyedQuery, criteria: CorrelationCriteria, excluded_table: str | None = None
    ) -> list[ScreenedPairs]:
        """The first stage: pairs that share enough keys with the query (or with its key swapped), and their scores."""
        found: list[ScreenedPairs] = []
        for variant, keys in self._candidates(query, framed=self._counts_by_frames(criteria.retrieval)):
            probes = variant.hashes[: CORRELATIONS.probes], variant.values[: CORRELATIONS.probes]
            counts = self.count_pairs(*probes, keys, criteria.retrieval, excluded_table)
            scores = _first_score(counts.same, counts.other, criteria, variant)
            found.append(ScreenedPairs(variant, counts.pairs, scores))
        return found

    # --- second stage -------------------------------------------------------------------------------------------------

    def join(self, query: KeyedQuery, pairs: I64, aggregate: str) -> _JoinedSketches:
        """Join the sketches of some pairs with the query."""
        owners = self.sketches.owners[pairs]
        bounds = np.minimum(query.threshold, self.sketches.thresholds[owners])
        share = np.where(bounds < LAST_HASH, bounds / 2.0**64, 1.0)
        join = self._join_compiled if kernels_are_loaded() else self._join_plainly
        samples, places, common, rows = join(query, pairs, bounds, aggregate)
        counted = np.searchsorted(query.hashes, bounds, "right")
        given = {name: np.where(samples.present, numbers[places], np.nan) for name, numbers in query.given.items()}
        return _JoinedSketches(pairs, samples, given, share, counted, common, rows)

    def _join_compiled(
        self, query: KeyedQuery, pairs: I64, bounds: U64, aggregate: str
    ) -> tuple[Samples, I32, I64, JoinRows]:
        from lakescope.engines.correlations import sample_kernels

        sketches = self.sketches
        # Copies: kernels are compiled for arrays that may be written to, as those of other queries are.
        within = int(np.searchsorted(query.hashes, bounds.max(initial=0), "right"))
        asked = [np.array(each[:within]) for each in (query.hashes, query.values, query.rows)]
        joined: Any = sample_kernels.join
        x, y, places, n, common, *rows = joined(
            *(*asked, bounds, pairs, sketches.owners, sketches.hashes.places, sketches.sizes, sketches.rows),
            *(sketches.once, sketches.numbers, sketches.aggregates, AGGREGATES.index(aggregate)),
        )
        samples = Samples(x, y, n)
        if aggregate == "count":
            y[samples.present & (sketches.aggregates[pairs] == 1)[:, None]] = 1.0
        if within <= CORRELATIONS.coded:
            codes = np.empty(within, np.int32)
            sample_kernels.coded(asked[1], np.argsort(asked[1]), codes)
            samples = Samples(x, y, n, places, codes)
        return samples, places, common, JoinRows(*rows)

    def _join_plainly(
        self, query: KeyedQuery, pairs: I64, bounds: U64, aggregate: str
    ) -> tuple[Samples, I32, I64, JoinRows]:
        """Join the sketches of some pairs with a query by numpy alone."""
        met: dict[int, tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]] = {}
        samples, chosen = [], []
        common, rows = np.zeros(pairs.size, np.int64), JoinRows.of(pairs.size)
        for at, pair in enumerate(pairs.tolist()):
            owner = int(self.sketches.owners[pair])
            if owner not in met:
                theirs = self.sketches.hashes_of(owner)
                found, mine, their = np.intersect1d(query.hashes, theirs, assume_unique=True, return_indices=True)
                within = found <= bounds[at]
                met[owner] = mine[within], their[within]
            mine, their = met[owner]
            x, y = query.values[mine], self.sketches.values_of(pair, aggregate)[their]
            samples.append((x, y))
            chosen.append(mine[np.isfinite(x) & np.isfinite(y)])
            common[at] = mine.size
            products = query.rows[mine] * self.sketches.rows_of(owner)[their]
            rows.total[at], rows.squares[at] = products.sum(), (products.astype(np.float64) ** 2).sum()
            rows.most[at] = products.max(initial=0)
        made = Samples.of(samples)
        places = np.zeros(made.x.shape, np.int32)
        for at, mine in enumerate(chosen):
            places[at, : mine.size] = mine
        return made, places, common, rows

    def sample(self, query: KeyedQuery, found: Correlated) -> tuple[F64, F64]:
        """The pairs of numbers that a find rests on."""
        samples = self._fitting(query, found)[1]
        return samples.x[0, : samples.n[0]], samples.y[0, : samples.n[0]]

    def order_of_key(self, query: KeyedQuery, found: Correlated) -> tuple[str, ...]:
        """The columns of a query's key in the order of those that they were found to meet."""
        return self._fitting(query, found)[0].key

    def _fitting(self, query: KeyedQuery, found: Correlated) -> tuple[KeyedQuery, Samples]:
        """The order of the query's key by which a find was made, and its sample."""
        sketches = self.sketches
        for number in sketches.keys_of_table.get(found.table, []):
            if sketches.columns[number] == found.key_columns:
                for pair in range(int(sketches.pair_starts[number]), int(sketches.pair_starts[number + 1])):
                    if sketches.pair(pair)["column"] == found.column:
                        variants = [each for each in (query, query.swapped) if each is not None]
                        joined = [self.join(each, np.array([pair]), found.aggregate).samples for each in variants]
                        return max(zip(variants, joined, strict=True), key=lambda each: int(each[1].n[0]))
        raise BadRequest(f"{found.table} has no sketch of {found.column!r} by {found.key!r}", hint="ask again")

    def search(
        self, query: KeyedQuery, criteria: CorrelationCriteria, excluded_table: str | None = None
    ) -> Results[Correlated]:
        """The columns that correlate best with the query."""
        usable = np.isfinite(query.values)
        if usable.sum() < CORRELATIONS.fewest or query.values[usable].min() == query.values[usable].max():
            return self._nothing(_why_nothing(query))
        found = self.screen(query, criteria, excluded_table)
        looked_at = sum(int(each.pairs.size) for each in found)
        chosen = _best_pairs(found, max(CORRELATIONS.joined, CORRELATIONS.joined_per_hit * criteria.k))
        records: list[Correlated] = []
        for variant, pairs in chosen:
            if pairs.size:
                records += self._records_of(variant, self.join(variant, pairs, criteria.aggregate), criteria, looked_at)
        if any(one.score <= next_one.score for one, next_one in pairwise(records)):
            records.sort(key=lambda each: (-each.score, -abs(each.correlation), -each.sample, each.table, each.column))
        # What is left without a column that was named is what was asked for.
        shown = _SHOWN if criteria.given is None else (*_SHOWN[:6], "partial", *_SHOWN[6:])
        info = {"looked_at": looked_at, "joined": sum(int(pairs.size) for _, pairs in chosen)}
        if not looked_at:
            note = f"no sketch of the lake shares {CORRELATIONS.fewest} keys with {' and '.join(query.key)!r}"
            return Results(Correlated, [], shown=_SHOWN, notes=[note], info=info)
        notes = []
        false = sum(each.q for each in records[: criteria.k])
        if records and false >= 1:
            notes.append(f"{looked_at:,} columns were looked at: about {false:.0f} of these may be chance")
        return Results(Correlated, records[: criteria.k], shown=shown, notes=notes, info=info)

    def _nothing(self, why: str) -> Results[Correlated]:
        return Results(Correlated, [], shown=_SHOWN, notes=[why], info={"looked_at": 0, "joined": 0})

    def _records_of(
        self, query: KeyedQuery, joined: _JoinedSketches, criteria: CorrelationCriteria, looked_at: int
    ) -> list[Correlated]:
        """Records of the best of the pairs that were joined."""
        samples = joined.samples
        estimates = _estimated(samples, joined.keys, criteria.measure)
        r, low, high = estimates.r, estimates.low, estimates.high
        p = np.where(samples.n >= 4, intervals.p_value(r, estimates.error), 1.0)
        q = intervals.q_values(p, looked_at)
        risk = _scores(samples, estimates, criteria.rank)
        weighted = _weighted(joined.containment, risk, criteria)
        known = np.flatnonzero((samples.n >= CORRELATIONS.fewest) & ~np.isnan(r))
        # Of equal ones the first by name, whichever segments they lie in.
        tables = self.sketches.table_numbers[self.sketches.owners[joined.pairs[known]]]
        order = np.lexsort((tables, -samples.n[known], -np.abs(r[known]), -weighted[known]))
        shown = known[order[: criteria.k]]
        of_ranks = r[shown]
        rest = np.flatnonzero(~estimates.of_ranks[shown])
        of_ranks[rest] = estimators.spearman(samples.take(shown[rest]))
        partials = self._partials(joined, shown, criteria)
        what = repr(criteria.given) if criteria.given else f"a trend in {query.key[0]!r}"
        told = [
            (*reasons, f"{what} explains most of it: {left:+.2f} is left")
            if left is not None
            and abs(left) < CORRELATIONS.left * abs(coefficient)
            and abs(coefficient) > CORRELATIONS.weak
            else reasons
            for reasons, coefficient, left in zip(estimates.reasons_of(shown), r[shown].tolist(), partials, strict=True)
        ]
        sketches = self.sketches
        owners = sketches.owners[joined.pairs[shown]].tolist()
        # In the order of the fields.
        fields = (
            [sketches.tables[owner] for owner in owners],
            [sketches.names[owner] for owner in owners],
            sketches.columns_of(joined.pairs[shown]),
            *(each[shown].tolist() for each in (r, low, high, p, q, samples.n)),
            *(each.tolist() for each in _sizes(joined, shown)),
            ["spearman" if of_ranks else criteria.measure for of_ranks in estimates.of_ranks[shown].tolist()],
            [criteria.aggregate] * shown.size,
            (joined.keys <= samples.n)[shown].tolist(),
            of_ranks.tolist(),
            samples.take(shown).moments.r.tolist(),
            partials,
            weighted[shown].tolist(),
            *([None] * shown.size, [None] * shown.size),
            [sketches.columns[owner] for owner in owners],
            told,
        )
        return list(map(_correlated, *fields))

    @staticmethod
    def _partials(
        joined: _JoinedSketches, rows: npt.NDArray[np.intp], criteria: CorrelationCriteria
    ) -> Sequence[float | None]:
        """Partial correlations: without a column that was named, or without the trend of the key."""
        numbers = joined.given.get(KEY_ITSELF if criteria.given is None else criteria.given)
        if numbers is None:
            return [None] * rows.size
        samples = joined.samples.take(rows)
        found = estimators.partial(samples, numbers[rows, : samples.x.shape[1]])
        return [None if np.isnan(each) else float(each) for each in found.tolist()]


def _sizes(joined: _JoinedSketches, shown: npt.NDArray[np.intp]) -> tuple[F64, ...]:
    """Rows of some joins and the share of the query's keys in them, each with its limits."""
    share = joined.share[shown]
    rows = joined.rows.take(shown)
    if kernels_are_loaded():
        from lakescope.engines.correlations import sample_kernels

        found = sample_kernels.join_sizes(*rows, joined.common[shown], joined.counted[shown], share, intervals.Z)
        return tuple(found)
    few, many = intervals.total_limits(*rows, share)
    least, most = intervals.share_limits(joined.common[shown], joined.counted[shown], share)
    return np.round(rows.total / share), np.floor(few), np.ceil(many), joined.containment[shown], least, most


def _best_pairs(found: Sequence[ScreenedPairs], wanted: int) -> list[tuple[KeyedQuery, I64]]:
    """The most promising pairs of all variants together, in order."""
    every = np.concatenate([each.scores for each in found])
    least = np.partition(every, every.size - wanted)[every.size - wanted] if every.size > wanted else -np.inf
    return [(each.query, np.sort(each.pairs[each.scores >= least])) for each in found]


def verify_by_join(query: KeyedQuery, place: str, found: Correlated) -> Correlated:
    """A find with the coefficient and the rows of the real join of a query with its table, which is read."""
    from lakescope.tables.keyed import read_keyed

    theirs = read_keyed(place, found.key_columns, found.column, found.aggregate)
    for variant in (query, query.swapped):
        if variant is not None:
            common, mine, at = np.intersect1d(variant.hashes, theirs.hashes, assume_unique=True, return_indices=True)
            if common.size:
                samples = Samples.of([(variant.values[mine], theirs.values[at])])
                coefficient = float(estimators.estimate(found.coefficient, samples)[0])
                rows = int((variant.rows[mine] * theirs.rows[at]).sum())
                return replace(found, verified=coefficient, verified_rows=rows)
    return replace(found, verified_rows=0)


def _why_nothing(query: KeyedQuery) -> str:
    filled = query.values[np.isfinite(query.values)]
    if filled.size < CORRELATIONS.fewest:
        return f"{query.target!r} has a number for {filled.size} keys only: at least {CORRELATIONS.fewest} are needed"
    return f"{query.target!r} is the same for every key: nothing can correlate with it"


def _query_sides(values: F64, retrieval: Retrieval) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Which of the query's values are above its cut, and which below."""
    present = np.isfinite(values)
    filled = values[present]
    if not filled.size:
        return present, present
    with np.errstate(invalid="ignore"):
        if retrieval == "z":
            above = values > balanced_cut(filled)
            return above & present, ~above & present
        return values > filled.mean(), values < filled.mean()


def _first_score(same: Counts, other: Counts, criteria: CorrelationCriteria, query: KeyedQuery) -> F64:
    """The score that pairs are chosen by: how surely they go together, the larger side (QCR), or overlap (CSK)."""
    if criteria.retrieval == "z" and not criteria.weight_join and kernels_are_loaded():
        from lakescope.engines.correlations import frame_kernels

        scores: F64 = frame_kernels.z_scores(same, other)
        return scores
    together = (same + other).astype(np.float64)
    if criteria.retrieval == "csk":
        return together
    if criteria.retrieval == "qcr":
        return np.maximum(same, other).astype(np.float64)
    z: F64 = np.abs(same - other) / np.sqrt(together + 1)
    if not criteria.weight_join:
        return z
    # Agreement of signs as a coefficient of normal data: r = sin(pi / 2 * qcr).
    r = np.sin(np.pi / 2 * np.abs(same - other) / np.maximum(together, 1))
    return _weighted(together / max(1, min(query.size, CORRELATIONS.probes)), r * z / (1 + z), criteria)


def heavy_tailed(samples: Samples) -> npt.NDArray[np.bool_]:
    """Samples of which the coefficient of ranks is shown instead of Pearson's."""
    tails, points = _heavy(samples)
    return tails | points


def scores(samples: Samples, keys: F64, rank: CorrelationRank) -> F64:
    """The scores samples are ranked by; ``keys`` are those of their whole joins."""
    return _scores(samples, _estimated(samples, keys, "pearson"), rank)


def _heavy(samples: Samples) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Samples of which a column has a heavy tail, and those in which one point makes a fifth of the spread."""
    n = np.maximum(samples.n, 1)
    with np.errstate(invalid="ignore"):
        tails = samples.moments.fourth - 3 > CORRELATIONS.kurtosis
        points = samples.moments.most > np.maximum(CORRELATIONS.one_point, 5 / n)
    return tails & (samples.n >= CORRELATIONS.reliable), points & (samples.n >= CORRELATIONS.fewest_for_points)


@dataclass(frozen=True, slots=True)
class _Estimates:
    """Coefficients of samples of ``n`` pairs, their intervals and standard errors of z.

    Where a tail is heavy (``tails``), or one point makes most of the spread (``points``), the coefficient of ranks
    stands for that of the ``measure``. ``floor`` is how strong a correlation is at least: the end of the interval that
    is nearer to 0. Where the coefficient of ranks stands for Pearson's it is the weaker of both.
    """

    r: F64
    low: F64
    high: F64
    error: F64
    floor: F64
    n: I64
    measure: str
    tails: npt.NDArray[np.bool_]
    points: npt.NDArray[np.bool_]

    @property
    def of_ranks(self) -> npt.NDArray[np.bool_]:
        """Where the coefficient is that of ranks."""
        return (self.tails | self.points) | (self.measure == "spearman")

    def reasons_of(self, shown: npt.NDArray[np.intp]) -> list[tuple[str, ...]]:
        """Reasons to doubt some coefficients, or to take another one."""
        found = []
        for tail, point, n in zip(*(each[shown].tolist() for each in (self.tails, self.points, self.n)), strict=True):
            reasons: tuple[str, ...] = ()
            if tail or point:
                what = "a heavy tail" if tail else "one point makes most of the spread"
                reasons = (f"{what}: the coefficient is that of ranks",)
            found.append((*reasons, f"only {n} keys in common") if n < CORRELATIONS.reliable else reasons)
        return found


def _floor(low: F64, high: F64) -> F64:
    return np.nan_to_num(np.maximum(0.0, np.maximum(low, -high)))


def _estimated(samples: Samples, keys: F64, measure: Measure) -> _Estimates:
    r = estimators.estimate(measure, samples)
    n = samples.n
    tails = points = np.zeros(n.size, np.bool_)
    if measure in ("pearson", "pm1"):
        error = intervals.z_error(samples, r)
    elif measure == "kendall":
        error = intervals.kendall_error(samples)
    elif measure == "rin":
        error = intervals.score_error(samples, r)
    elif measure == "qcr":
        error = 1 / np.sqrt(np.maximum(n, 1))
    else:
        error = intervals.rank_error(samples, r)
    shrunk = intervals.shrinkage(n, keys)
    asked = np.full(n.size, np.inf)
    if measure == "pearson":
        tails, points = _heavy(samples)
        heavy = np.flatnonzero(tails | points)
        if heavy.size:
            asked[heavy] = _floor(*intervals.limits(r[heavy], error[heavy] * shrunk[heavy]))
            some = samples.take(heavy)
            r[heavy] = np.where(some.n > 1, some.ranked.moments.r, np.nan)
            error[heavy] = intervals.rank_error(some, r[heavy])
    if measure == "pm1":
        low, high = intervals.pm1(samples)
    elif measure == "qcr":
        low, high = intervals.qcr(r, n)
    else:
        low, high = intervals.limits(r, error * shrunk)
    # Where nearly nothing is left to chance, rounding must not put the coefficient outside.
    low, high = (np.where(np.isnan(end), end, side(end, r)) for end, side in ((low, np.fmin), (high, np.fmax)))
    return _Estimates(r, low, high, error, np.minimum(asked, _floor(low, high)), n, measure, tails, points)


def _scores(samples: Samples, estimates: _Estimates, rank: CorrelationRank) -> F64:
    """The scores candidates are ranked by: the paper's, or how strong a correlation is at least (2.7)."""
    size = np.abs(np.nan_to_num(estimates.r))
    if rank == "lower":
        return estimates.floor + 1e-6 * size
    if rank == "s2":
        size = size * (1 - 1 / np.sqrt(np.maximum(4, samples.n) - 3))
    elif rank == "s3":
        resampled = estimators.bootstrap(samples)
        below, above = intervals.pm1_of(resampled, samples.n)
        size = np.nan_to_num(np.abs(resampled.mean(axis=1)) * (1 - (above - below) / 2))
    elif rank == "s4":
        size = size * _hoeffding_factor(samples)
    return size


def _hoeffding_factor(samples: Samples) -> F64:
    """1 for the shortest of the paper's small-sample intervals in the list, 0 for the longest (2.7)."""
    both = np.concatenate([samples.x, samples.y], axis=1)
    there = np.concatenate([samples.present, samples.present], axis=1)
    least = np.where(there, both, np.inf).min(axis=1, initial=np.inf)
    most = np.where(there, both, -np.inf).max(axis=1, initial=-np.inf)
    length = intervals.hfd_length(samples, least, most)
    finite = length[np.isfinite(length)]
    if not finite.size or finite.max() == finite.min():
        return np.where(np.isfinite(length), 1.0, 0.0)
    return np.where(np.isfinite(length), 1 - (length - finite.min()) / (finite.max() - finite.min()), 0.0)


def _weighted(joinability: F64, correlation: F64, criteria: CorrelationCriteria) -> F64:
    """A mean of how well tables join and how well columns correlate (QCR, 3.7)."""
    a, b = criteria.weight_join, criteria.weight_corr
    if not a:
        return correlation
    if not b:
        return joinability
    with np.errstate(divide="ignore", invalid="ignore"):
        if criteria.mean == "arithmetic":
            found = (a * joinability + b * correlation) / (a + b)
        elif criteria.mean == "geometric":
            found = (joinability**a * correlation**b) ** (1 / (a + b))
        else:
            found = (a + b) / (a / joinability + b / correlation)
    return np.where((joinability > 0) & np.isfinite(found), found, 0.0)
