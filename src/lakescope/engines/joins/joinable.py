"""Which columns of the lake join with mine? Engines, the choice between them, and the records of the answer."""

from __future__ import annotations

import math
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from lakescope.array_types import F64, I32, U32
from lakescope.engines.joins.answers import Engine, Joinable, JoinRank
from lakescope.engines.joins.costs import measure_costs, stored_costs
from lakescope.engines.joins.inverted import InvertedIndex
from lakescope.engines.joins.lsh_ensemble import Ensemble, Hits
from lakescope.engines.joins.overlaps import OverlapSearch
from lakescope.engines.joins.significance import (
    SIGNIFICANCE,
    chance,
    expected_by_density,
    expected_by_popularity,
    is_beyond_chance,
    quality,
)
from lakescope.errors import BadRequest
from lakescope.once import once
from lakescope.results import Results
from lakescope.sketches.partitions import Partition, partition
from lakescope.store.index import Index
from lakescope.tables.key_names import same_key
from lakescope.tables.query import QueryColumn, is_plausible, lake_column, range_of


@dataclass(frozen=True, slots=True)
class JoinTuning:
    """How candidates are searched for and judged, and when an estimate is preferred to the exact answer."""

    #: Thresholds that are tried one after the other by signatures when the best are wanted, not all above one (spec
    #: 2.8). Not measured.
    lowered: tuple[float, ...] = (0.9, 0.7, 0.5, 0.3, 0.2, 0.1, 0.05)
    #: Entries of lists that are read in milliseconds: for so long nobody would rather have an estimate. Not measured
    #: costs, on purpose: whether an answer is exact must not depend on the machine, nor on how tables lie in segments.
    soon_read: int = 8_000_000
    #: Candidates that are judged when the most significant ones are wanted, for each of those. Not measured.
    judged: int = 20
    #: Values that are shown of a join, matching and missing ones each. Not measured: what fits a line.
    samples: int = 5
    #: Share of an overlap that is worth telling to be expected. Not measured.
    telling: float = 0.1


JOINS = JoinTuning()


#: What an entry of a list takes in the index.
_ENTRY_BYTES = 4
#: Fields of a column's record that are needed to judge it, or to search with it.
_JUDGED_BY = ("table", "column", "type", "type_share", "rows", "nulls", "minimum", "maximum")
#: Fields of its record that are needed where a column of the lake is the query.
_ASKED_BY = (*_JUDGED_BY, "quantiles")
_SHOWN = (
    *("table", "column", "overlap", "containment", "reverse", "query_size", "size", "cardinality", "quality"),
    *("matches", "missing", "reasons"),
)


@dataclass(frozen=True, slots=True)
class JoinCriteria:
    """What a search for joins must know of a question."""

    k: int | None = None
    threshold: float | None = None
    verify: bool = False
    engine: Engine = "auto"
    rank: JoinRank = "overlap"


@dataclass(frozen=True, slots=True)
class _JoinableSets:
    """Sets with overlaps or estimates of containment."""

    sets: I32
    containments: F64
    lows: F64
    highs: F64
    exact: npt.NDArray[np.bool_]

    @classmethod
    def exactly(cls, sets: I32, overlaps: I32, size: int) -> _JoinableSets:
        share = overlaps / max(1, size)
        return cls(sets, share, share, share, np.ones(sets.size, np.bool_))

    @classmethod
    def estimated(cls, hits: Hits) -> _JoinableSets:
        return cls(hits.sets, hits.containments, hits.lows, hits.highs, np.zeros(hits.sets.size, np.bool_))

    def take(self, chosen: npt.NDArray[np.intp]) -> _JoinableSets:
        return _JoinableSets(*(getattr(self, each.name)[chosen] for each in fields(self)))

    def and_also(self, other: _JoinableSets) -> _JoinableSets:
        return _JoinableSets(
            *(np.concatenate([getattr(self, each.name), getattr(other, each.name)]) for each in fields(self))
        )

    def candidates(self, query: QueryColumn) -> list[_JoinCandidate]:
        """Every set as a candidate for a query."""
        columns = (getattr(self, each.name).tolist() for each in fields(self))
        return [_JoinCandidate(query, *values) for values in zip(*columns, strict=True)]


@dataclass(frozen=True, slots=True)
class _Verdict:
    """What chance would do: the record of the column, the overlap to expect, how likely it is, and why.

    ``doubtful`` is what chance explains, unless names say that both are keys of the same thing: running numbers
    overlap with all others, and yet most references are of them.
    """

    record: dict[str, Any]
    expected: float
    p: float
    reasons: tuple[str, ...]
    doubtful: bool


@dataclass(slots=True)
class _JoinCandidate:
    """A set that may join with a query; whether chance explains it is found out when asked."""

    query: QueryColumn
    number: int
    containment: float
    low: float
    high: float
    exact: bool
    verdict: _Verdict | None = None

    @property
    def overlap(self) -> int:
        """Values in common, or how many they are by estimate."""
        return round(self.containment * self.query.size)


class JoinSearch:
    """Answers which columns join, for one opened index."""

    def __init__(self, index: Index, overlaps: Callable[..., OverlapSearch] = OverlapSearch) -> None:
        self._index = index
        if index.manifest.summary["join"] is None:
            raise BadRequest(f"{index.path} holds profiles only", hint="index again without --no-joins")
        self.inverted = InvertedIndex(index)
        self.overlaps = overlaps(self.inverted, costs=stored_costs(index))

    @once
    def ensemble(self) -> Ensemble:
        """The signatures, in partitions of the sets by size: as they were built, or anew of those that are there."""
        built: list[list[int]] = self._index.manifest.summary["join"]["partitions"]
        alone = self.inverted.alone is not None
        return Ensemble(
            self.inverted, [Partition(*each) for each in built] if alone else partition(self.inverted.sizes)
        )

    @once
    def _pairs(self) -> int:
        """Pairs of a value and a column that holds it."""
        return int(self.inverted.sizes.sum())

    def warm(self) -> None:
        """Get ready for many questions: compiled kernels are loaded, and what reading costs here is known."""
        self.overlaps.warm()
        self._index.prepare(_ASKED_BY)
        _ = self._names, self.ensemble
        # Of what lies elsewhere it would measure the network.
        if self._index.traffic is None and stored_costs(self._index) is None:
            measure_costs(self._index, self.overlaps)

    @property
    def _names(self) -> tuple[list[str], list[str]]:
        return self._index.column_names

    def columns_of(self, table: str) -> range:
        """Numbers of the columns of a table."""
        tables = self._names[0]
        return range(bisect_left(tables, table), bisect_right(tables, table))

    def name_of(self, number: int) -> str:
        """Name of a column."""
        return self._names[1][number]

    def table_of(self, number: int) -> str:
        """Name of the table of a column."""
        return self._names[0][number]

    def plausible(self, numbers: Iterable[int]) -> list[int]:
        """Which of some columns of the lake it makes sense to join on."""
        kinds = self._index.fields("columns", ("type",))["type"]
        return [number for number in numbers if is_plausible(int(self.inverted.sizes[number]), kinds[number].as_py())]

    def lake_column(self, number: int) -> QueryColumn:
        """A column of the lake as a query."""
        record = self._index.column(number, _ASKED_BY)

        def values() -> list[str]:
            known = self._index.column(number, ("sample", "top"))
            return [*(known["sample"] or ()), *(entry["value"] for entry in known["top"] or ())]

        def sign() -> U32:
            return np.frombuffer(self._index.sketch(record["table"], record["column"])["signature"], np.uint32)

        return lake_column(self.inverted, number, record, values, sign)

    def missing(self, number: int, other: int) -> tuple[str, ...]:
        """Examples of values of a column of the lake that another does not hold."""
        return self._samples(self.lake_column(number), other)[1]

    def missing_of(self, location: str, column: str, other: int) -> tuple[str, ...]:
        """Examples of values of a column of a table that is read, which a column of the lake does not hold."""
        from lakescope.tables.reading import read_query

        for each in read_query(location, self.overlaps, self.inverted):
            if each.name == column:
                return self._samples(each, other)[1]
        return ()

    def search(
        self,
        query: QueryColumn,
        criteria: JoinCriteria,
        exclude: Sequence[int] = (),
    ) -> Results[Joinable]:
        """Columns that join with one column of a query: the ``k`` best, or all above a containment ``threshold``."""
        began = time.perf_counter()
        candidates, info = self._candidates(query, criteria, exclude)
        records = [self._record_of(candidate) for candidate in candidates[: criteria.k]]
        return self._answer(query, records, info, began)

    def search_tables(
        self,
        queries: Sequence[tuple[QueryColumn, Sequence[int]]],
        criteria: JoinCriteria,
    ) -> Results[Joinable]:
        """The best pair of columns of each table, best tables first; a query comes with what it must not find.

        Best is what chance does not explain, or names do, and then what holds most of the query's values. The latter is
        known of all candidates; the former is found out in this order, and only until there are enough. Columns of
        which chance would explain whatever they find are searched for only if the others do not find enough.
        """
        k = criteria.k
        sure = criteria.threshold is not None or criteria.engine == "lsh"
        hopes = [sure or self._is_hopeful(query) for query, _ in queries]
        candidates: list[_JoinCandidate] = []
        best: dict[str, _JoinCandidate] = {}
        searched: dict[str, dict[str, Any]] = {}
        for hopeful in (True, False):
            some = [each for each, hope in zip(queries, hopes, strict=True) if hope == hopeful]
            if len(best) == k and not any(self._verdict(each).doubtful for each in best.values()):
                searched |= {
                    query.name: {"engine": "none", "why": "chance explains what it may find"} for query, _ in some
                }
                break
            for query, exclude in some:
                began = time.perf_counter()
                found, info = self._candidates(query, criteria, exclude)
                candidates += found[:k]
                if found:
                    searched[query.name] = {**info, "milliseconds": _milliseconds(began)}
            best = self._best_of_tables(candidates, k)
        records = [self._record_of(candidate) for candidate in best.values()]
        notes = [] if queries else ["no column of the query is worth trying: name one"]
        if queries and not any(query.groups.groups.size for query, _ in queries):
            notes.append(
                f"no column of the lake holds any value of {', '.join(repr(each.name) for each, _ in queries)}"
            )
        info = {
            "columns": [
                {"column": query.name, **searched[query.name]} for query, _ in queries if query.name in searched
            ]
        }
        return Results(Joinable, records, shown=("query_column", *_shown(records)), notes=notes, info=info)

    def _is_hopeful(self, query: QueryColumn) -> bool:
        """Whether a column may find what chance, or what names say, does not put in doubt."""
        return same_key(query.name, query.name) or is_beyond_chance(
            *query.popularity, self._pairs, SIGNIFICANCE.level / max(1, self.inverted.count)
        )

    def _best_of_tables(self, candidates: Sequence[_JoinCandidate], k: int | None) -> dict[str, _JoinCandidate]:
        """The best candidate of each of the best tables, these in order."""
        best: dict[str, _JoinCandidate] = {}
        doubtful: list[tuple[str, _JoinCandidate]] = []
        for candidate in sorted(candidates, key=self._containment_first):
            if len(best) == k:
                return best
            table = self.table_of(candidate.number)
            if table not in best:
                if self._verdict(candidate).doubtful:
                    doubtful.append((table, candidate))
                else:
                    best[table] = candidate
        for table, candidate in doubtful:
            best.setdefault(table, candidate)
        return dict(list(best.items())[:k])

    def _candidates(
        self,
        query: QueryColumn,
        criteria: JoinCriteria,
        exclude: Sequence[int],
    ) -> tuple[list[_JoinCandidate], dict[str, Any]]:
        """What may join with a query, in order, and how it was found."""
        k, threshold, verify, engine = criteria.k, criteria.threshold, criteria.verify, criteria.engine
        wanted = k if criteria.rank == "overlap" or k is None else JOINS.judged * k
        if not query.size:
            return [], {"engine": "none", "why": "the query column holds no values"}
        if threshold is None:
            wanted = wanted or len(self._names[0])
            found, info = (
                self._approximate_top(query, wanted, verify, exclude)
                if engine == "lsh"
                else self._top(query, wanted, exclude)
            )
        else:
            found, info = self._containing(query, threshold, verify, engine, exclude)
            order = np.lexsort((found.sets, -found.containments))
            found = found.take(order if wanted is None else order[:wanted])
        candidates = found.candidates(query)
        if criteria.rank == "significance":
            candidates.sort(key=self._significance_first)
        return candidates, info

    def _containment_first(self, each: _JoinCandidate) -> tuple[Any, ...]:
        table, column = self.table_of(each.number), self.name_of(each.number)
        return -each.containment, -each.overlap, table, column, each.query.name

    def _significance_first(self, each: _JoinCandidate) -> tuple[Any, ...]:
        verdict = self._verdict(each)
        return verdict.doubtful, verdict.p, -each.overlap, self.table_of(each.number), self.name_of(each.number)

    def _answer(
        self, query: QueryColumn, records: list[Joinable], info: dict[str, Any], began: float
    ) -> Results[Joinable]:
        notes = []
        if query.size and not query.groups.groups.size:
            notes.append(f"no column of the lake holds any of the {query.size:,} values of {query.name!r}")
        elif not query.size:
            notes.append(f"{query.name!r} holds no values")
        if info.get("not_looked_at") and query.groups.groups.size:
            notes.append(
                f"{info['not_looked_at']:,} columns may be missed, too large for signatures: --engine exact sees all"
            )
        unsure = sum(not each.exact and each.containment < info["threshold"] for each in records)
        if unsure:
            notes.append(f"{unsure:,} are below {info['threshold']:g} by estimate, not by their interval: verify tells")
        info = {**info, "milliseconds": _milliseconds(began)}
        return Results(Joinable, records, shown=_shown(records), notes=notes, info=info)

    # --- engines ------------------------------------------------------------------------------------------------------

    def _top(self, query: QueryColumn, k: int, exclude: Sequence[int]) -> tuple[_JoinableSets, dict[str, Any]]:
        top = self.overlaps.top(query.groups, k, exclude)
        info = {
            "engine": top.algorithm,
            "why": f"exact top {k}",
            "groups": int(query.groups.groups.size),
            "lists": top.lists,
            "entries": top.entries,
            "bytes_of_lists": _ENTRY_BYTES * top.entries,
            "sets": top.sets_read,
            "decisions": top.decisions,
        }
        return _JoinableSets.exactly(top.sets, top.overlaps, query.size), info

    def _approximate_top(
        self, query: QueryColumn, k: int, verify: bool, exclude: Sequence[int]
    ) -> tuple[_JoinableSets, dict[str, Any]]:
        """The best by signatures alone: the threshold is lowered until there are enough (spec 2.8).

        Sets that are too large for signatures are not read, which would take its time, but counted.
        """
        found, info = _JoinableSets.exactly(np.empty(0, np.int32), np.empty(0, np.int32), 1), dict[str, Any]()
        for threshold in JOINS.lowered:
            hits = self.ensemble.search(query.signature, query.size, threshold)
            kept = np.flatnonzero(~np.isin(hits.sets, np.array(exclude, np.int32)))
            found = _JoinableSets.estimated(hits).take(kept)
            unseen = sum(part.sets for part in self.ensemble.out_of_reach(query.size, threshold))
            info = {"engine": "lsh ensemble", "why": "asked for", "threshold": threshold, "candidates": kept.size}
            info |= {"not_looked_at": unseen} if unseen else {}
            if kept.size >= k:
                break
        if verify:
            found = self._verified(query, found.sets, 0.0)
            info["verified"] = True
        return found.take(np.lexsort((found.sets, -found.containments))[:k]), info

    def _containing(
        self, query: QueryColumn, threshold: float, verify: bool, engine: Engine, exclude: Sequence[int]
    ) -> tuple[_JoinableSets, dict[str, Any]]:
        beyond = self.ensemble.out_of_reach(query.size, threshold)
        # Signatures cannot tell of some sets: each of these is looked at once for every value.
        probes = query.size * sum(part.sets for part in beyond)
        if engine == "exact" or (engine == "auto" and _entries(query) <= max(probes, JOINS.soon_read)):
            why = "asked for" if engine == "exact" else "the lists of the query's values are soon read"
            least = math.ceil(threshold * query.size - 1e-9)
            every = self.overlaps.at_least(query.groups, least, exclude)
            info: dict[str, Any] = {
                "engine": every.algorithm,
                "why": why,
                "lists": every.lists,
                "entries": every.entries,
            }
            info["bytes_of_lists"] = _ENTRY_BYTES * every.entries
            return _JoinableSets.exactly(every.sets, every.overlaps, query.size), info
        hits = self.ensemble.search(query.signature, query.size, threshold)
        sizes = self.inverted.sizes
        found = _JoinableSets.estimated(hits).take(np.flatnonzero(~np.isin(hits.sets, np.array(exclude, np.int32))))
        why = "asked for" if engine == "lsh" else f"the lists of its values have {_entries(query):,} entries"
        info = {"engine": "lsh ensemble", "why": why, "candidates": int(found.sets.size)}
        info["threshold"] = threshold
        if beyond:
            # Signatures cannot tell: these are read.
            least = min(part.lower for part in beyond)
            numbers = np.setdiff1d(np.flatnonzero(sizes >= least), np.array(exclude, np.int64)).astype(np.int32)
            read = self._verified(query, numbers, threshold)
            found = found.take(np.flatnonzero(sizes[found.sets] < least)).and_also(read)
            info["out_of_reach"] = int(numbers.size)
        if verify:
            found = self._verified(query, found.sets, threshold)
            info["verified"] = True
        return found, info

    def _verified(self, query: QueryColumn, sets: I32, threshold: float) -> _JoinableSets:
        """Exact containments of some sets, of which those above the threshold remain."""
        overlaps = self.overlaps.overlaps_of(query.groups, sets, math.ceil(threshold * query.size - 1e-9))
        found = _JoinableSets.exactly(sets, overlaps, query.size)
        return found.take(np.flatnonzero(found.containments >= threshold - 1e-12))

    # --- records ------------------------------------------------------------------------------------------------------

    def _verdict(self, candidate: _JoinCandidate) -> _Verdict:
        """Whether chance explains a candidate; found out once."""
        if candidate.verdict is None:
            query, number = candidate.query, candidate.number
            record = self._index.column(number, _JUDGED_BY)
            expected, reasons = self._expected(query, record, int(self.inverted.sizes[number]), candidate.overlap)
            p = min(1.0, chance(candidate.overlap, expected) * max(1, self.inverted.count))
            named = same_key(query.name, record["column"])
            if p > SIGNIFICANCE.level:
                reasons.insert(0, "no more than chance explains" + (", but keys of the same thing by name" * named))
            candidate.verdict = _Verdict(record, expected, p, tuple(reasons), p > SIGNIFICANCE.level and not named)
        return candidate.verdict

    def _record_of(self, candidate: _JoinCandidate) -> Joinable:
        query, number, overlap = candidate.query, candidate.number, candidate.overlap
        verdict = self._verdict(candidate)
        size = int(self.inverted.sizes[number])
        matches, missing = self._samples(query, number)
        return Joinable(
            table=verdict.record["table"],
            column=verdict.record["column"],
            overlap=overlap,
            containment=candidate.containment,
            low=candidate.low,
            high=candidate.high,
            exact=candidate.exact,
            query_column=query.name,
            query_size=query.size,
            size=size,
            reverse=overlap / max(1, size),
            coverage=self._coverage(query, number),
            cardinality=_cardinality(query, verdict.record, size),
            type=verdict.record["type"],
            expected=verdict.expected,
            p=verdict.p,
            quality=quality(candidate.containment, query.size, size),
            reasons=verdict.reasons,
            matches=matches,
            missing=missing,
        )

    def _samples(self, query: QueryColumn, number: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Some values of the query that a set holds, and some that it does not."""
        texts, groups = query.sample()
        held = self.inverted.holds_tokens(groups, number)
        matches = [texts[i] for i in np.flatnonzero(held)[: JOINS.samples].tolist()]
        missing = [texts[i] for i in np.flatnonzero(~held)[: JOINS.samples].tolist()]
        return tuple(matches), tuple(missing)

    def _coverage(self, query: QueryColumn, number: int) -> float | None:
        """Share of the query's rows with a value that find a partner."""
        filled = query.rows - query.nulls
        if query.group_rows is None or not filled:
            return None
        return float(query.group_rows[self.inverted.holds_groups(query.groups.groups, number)].sum() / filled)

    def _expected(self, query: QueryColumn, record: dict[str, Any], size: int, overlap: int) -> tuple[float, list[str]]:
        """The overlap with an unrelated column, and why it is expected if it is a good part of the one there is."""
        popular = float(expected_by_popularity(*query.popularity, np.array([size]), self._pairs)[0])
        least = JOINS.telling * overlap
        reasons = [f"{_values(popular)} expected by their popularity"] if popular >= least else []
        theirs = range_of(record, size)
        dense = expected_by_density(query.whole, theirs) if theirs and query.whole is not None else 0.0
        if dense >= least and dense > popular:
            reasons = [f"both are ranges of {query.kind}s: {_values(dense)} expected"]
        if query.size < SIGNIFICANCE.fewest:
            reasons.append(f"the query has only {query.size} different values")
        return max(popular, dense), reasons


def _entries(query: QueryColumn) -> int:
    """How often the lake holds the values of a query."""
    held, tokens = query.popularity
    return int(held.astype(np.int64) @ tokens.astype(np.int64))


def _shown(records: Sequence[Joinable]) -> tuple[str, ...]:
    """Fields to show: where something is estimated, the interval beside it."""
    if all(each.exact for each in records):
        return _SHOWN
    place = _SHOWN.index("containment") + 1
    return (*_SHOWN[:place], "low", "high", *_SHOWN[place:])


def _cardinality(query: QueryColumn, record: dict[str, Any], size: int) -> str:
    """How rows meet: ``1:1``, ``1:n`` (a row of the query meets several), ``n:1`` or ``n:m``."""
    unique = size == record["rows"] - record["nulls"]
    if query.unique:
        return "1:1" if unique else "1:n"
    return "n:1" if unique else "n:m"


def _values(expected: float) -> str:
    """``3 common values are``, in the number that fits."""
    number = round(expected)
    return "1 common value is" if number == 1 else f"{number:,} common values are"


def _milliseconds(began: float) -> float:
    return round(1e3 * (time.perf_counter() - began), 3)
