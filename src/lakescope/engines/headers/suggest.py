"""Which headers should the columns of a table have? Everything brought together for one opened index."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lakescope.array_types import F64
from lakescope.engines.headers.answers import (
    VALUES_TOLD,
    Candidate,
    Confirmation,
    Evidence,
    HeaderEngine,
    HeaderMethod,
    HeaderMode,
    Schemata,
    Segmentation,
    SuggestedSchema,
)
from lakescope.engines.headers.coherence import (
    SchemaStatistics,
    best_combinations,
    coherence,
    pair_scores,
)
from lakescope.engines.headers.corpus import HeadedColumns, HeaderCorpus
from lakescope.engines.headers.model import FIRST, LEARNT_FROM, SECOND, Clues, Judge, Judged, Model
from lakescope.engines.headers.names import normalised, schema_form
from lakescope.engines.headers.reading import lake_table, read_table
from lakescope.engines.headers.similar import NamelessTable, Similar, ValueSearch, Weighted, propose
from lakescope.engines.joins.inverted import InvertedIndex
from lakescope.errors import BadRequest
from lakescope.once import once
from lakescope.sources.names import meaningless
from lakescope.store.index import Index
from lakescope.values.hashing import hash_text

if TYPE_CHECKING:
    from lakescope.engines.headers.sketched import SketchSearch

#: What all parts of the corpus say of the columns of a table: clues, or, by the thesis' method, headers with weights.
Said = Sequence[Clues] | Sequence[Sequence[Weighted]]

#: How likely a header must be to be given; without one a column counts as if its header were that likely.
LEAST = {"reliable": 0.7, "balanced": 0.3, "coverage": 1e-6}
#: Least similarity of tables, after the thesis: reliable headers from 0.4, any header is better than none at 0.
THRESHOLDS = {"reliable": 0.4, "balanced": 0.1, "coverage": 0.0}
_KEPT = "headers-model-4"
_EXAMPLES = 3
#: Equal coherence is decided by weights, which must not decide anything else.
_TIE = 1e-9
#: Families of evidence as a person would say them, and how much one must speak for a candidate to be told.
_REASONS = {
    "shares values with columns of this name": ("values", "similar", "contained", "votes", "unshared"),
    "written like columns of this name": ("shapes", "outlines", "lengths", "words", "nearest"),
    "in the range of columns of this name": ("range", "middle", "repeats"),
    "goes with the other headers": ("schema", "schemata", "before", "behind"),
    "a table that looks alike has it there": ("twin", "place"),
    "a common header": ("common",),
}
_TELLING = 0.5


@dataclass(frozen=True, slots=True)
class HeaderCriteria:
    """What the search must know: see :meth:`lakescope.lake.Lake.suggest_headers`."""

    mode: HeaderMode = "balanced"
    k: int = 5
    m: int = 10
    method: HeaderMethod = "ours"
    engine: HeaderEngine = "exact"
    threshold: float | None = None
    weighted: bool = True
    segmentation: Segmentation = "suc"
    confirmation: Confirmation = "c"
    unfiltered: bool = False

    @property
    def least_similarity(self) -> float | None:
        """The threshold of tables of the thesis' method; None: no filter at all."""
        if self.unfiltered:
            return None
        return THRESHOLDS[self.mode] if self.threshold is None else self.threshold

    @property
    def least_likely(self) -> float:
        """How likely a header must be."""
        return max(1e-6, LEAST[self.mode] if self.threshold is None else self.threshold)


class HeaderSearch:
    """Suggests headers, for one opened index.

    ``hidden`` tables are treated as if they were not in the lake: neither their headers nor their values are used.
    """

    def __init__(
        self,
        index: Index,
        inverted: InvertedIndex,
        *,
        hidden: Collection[int] = (),
        headed: HeadedColumns | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        #: Whoever wants to be told how far learning is.
        self._listeners = [progress] if progress else []
        self._index = index
        self._hidden = frozenset(hidden)
        self.columns = headed or HeadedColumns(index)
        self.values = ValueSearch(inverted, self.columns)
        self.corpus = HeaderCorpus(self.columns, self._hidden)
        self.judge = Judge(self.corpus, self.values)

    @once
    def statistics(self) -> SchemaStatistics:
        """Schemata of the tables of the lake."""
        return SchemaStatistics.of_corpus(self.corpus)

    @once
    def sketches(self) -> SketchSearch:
        """The thesis' engine."""
        # Sketches are merged by kernels that take a while to load: only for who asks.
        from lakescope.engines.headers.sketched import SketchSearch

        return SketchSearch(self._index, self.columns)

    @once
    def model(self) -> Model:
        """Weights learnt from this lake: those kept beside it, else learnt now and kept."""
        kept = None if self._hidden else self._index.recall(_KEPT)
        model = Model.from_dict(kept) if kept is not None else None
        if model is None:
            model = self.learn()
            if not self._hidden:
                self._index.remember(_KEPT, model.to_dict())
        return model

    def learn(self, most: int = LEARNT_FROM) -> Model:
        """Ask for tables of the corpus as if they had no headers, and learn what evidence is worth."""
        tables = np.unique(self.corpus.table)
        chosen = np.sort(np.random.default_rng(11).permutation(tables)[:most])
        known = []
        for number in chosen.tolist():
            columns = self.columns.columns_of(number)
            headers = np.where(self.corpus.usable, self.columns.header_of, -1)[columns.start : columns.stop]
            known.append((self.table(number), headers.tolist()))

        def tell(done: int) -> None:
            for listener in tuple(self._listeners):
                listener(done, len(known))

        return self.judge.learnt(known, tell)

    @contextmanager
    def telling(self, progress: Callable[[int, int], None] | None) -> Iterator[None]:
        """Tell somebody how far learning is, if it is going on meanwhile."""
        if progress is None:
            yield
            return
        self._listeners.append(progress)
        try:
            yield
        finally:
            self._listeners.remove(progress)

    def table(self, number: int) -> NamelessTable:
        """A table of the lake as if it had no headers."""
        return lake_table(self._index, self.columns, self.values, number)

    def read(self, query: Any) -> NamelessTable:
        """A table that is not in the lake: a path or URI, or a frame."""
        return read_table(query, self.values.inverted)

    def nameless_tables(self) -> list[str]:
        """Tables of the lake that have a column whose name means nothing."""
        some = np.unique(self.columns.table_of[self.columns.header_of < 0])
        return [self.columns.tables[number] for number in some.tolist()]

    def suggest(
        self,
        table: NamelessTable,
        request: HeaderCriteria,
        *,
        known: Mapping[int, str] | None = None,
        statistics: SchemaStatistics | None = None,
        said: Said | None = None,
    ) -> Schemata:
        """The best schemata of a table and the candidates of its columns; ``known`` are headers that stay.

        ``said`` is what all parts of the corpus say, if they were asked apart; evidence is not told then.
        """
        began = time.perf_counter()
        given = dict(known or {})
        schemata = statistics or self.statistics_without(table)
        if request.method == "thesis":
            candidates, found = self._by_thesis(table, request, given, schemata, said)
        else:
            candidates, found = self._by_model(table, request, given, schemata, said)
        info: dict[str, Any] = {
            "method": request.method,
            "mode": request.mode,
            "corpus_tables": self.corpus.tables,
            "corpus_columns": len(self.corpus),
            "corpus_headers": int((self.corpus.frequency > 0).sum()),
            "schemata": len(schemata),
            "milliseconds": round(1e3 * (time.perf_counter() - began), 3),
        }
        if request.method == "ours":
            info["learnt_from"] = self.model.tables
        names = [column.record["column"] for column in table.columns]
        return Schemata(found, candidates, names, notes=self._notes(table, found, candidates), info=info)

    def _notes(
        self, table: NamelessTable, found: Sequence[SuggestedSchema], candidates: Sequence[Sequence[Candidate]]
    ) -> list[str]:
        notes = list(table.notes)
        if not len(self.corpus):
            notes.append("no table of the lake has headers to borrow")
        empty = [str(place) for place, each in enumerate(table.columns) if not each.groups.size]
        if empty:
            notes.append(f"columns without values get no header: {', '.join(empty)}")
        if found and not found[0].exact:
            notes.append(
                "too many combinations to try all: the schemata are the best of a beam, not for certain the best"
            )
        return notes

    def statistics_without(self, table: NamelessTable) -> SchemaStatistics:
        """Statistics of the lake without the table in question."""
        if table.number is None:
            return self.statistics
        own = self.corpus.own(table.number)
        return self.statistics.without(self.columns.headers[header] for header in self.columns.header_of[own].tolist())

    # --- ours ---------------------------------------------------------------------------------------------------------

    def _by_model(
        self,
        table: NamelessTable,
        request: HeaderCriteria,
        known: Mapping[int, str],
        statistics: SchemaStatistics,
        said: Any,
    ) -> tuple[list[list[Candidate]], list[SuggestedSchema]]:
        numbers = {
            place: self.columns.number_of[normalised(header)]
            for place, header in known.items()
            if normalised(header) in self.columns.number_of
        }
        judged, similar = self.judge.judged(table, self.model, numbers, said)
        candidates: list[list[Candidate]] = []
        for place, each in enumerate(judged):
            if place in known:
                candidates.append([_trusted(known[place])])
            elif not table.columns[place].groups.size:
                candidates.append([])
            else:
                candidates.append([self._candidate(table, similar, place, each, at) for at in each.ranked[: request.k]])
        least = request.least_likely
        single = [np.log([*(max(one.weight, 1e-12) for one in some), least]) for some in candidates]
        for place in known:
            single[place] = np.zeros(1)
        options: list[list[str | None]] = [
            [one.header for one in some] + ([] if place in known else [None]) for place, some in enumerate(candidates)
        ]
        # What is given is given, even twice.
        apart = {pair: block for pair, block in _distinct(options).items() if not set(pair) <= known.keys()}
        found = best_combinations(single, apart, request.m)
        schemata = []
        for choice in found.choices:
            headers = tuple(options[place][at] for place, at in enumerate(choice.places))
            weights = tuple(
                candidates[place][at].weight if headers[place] is not None else None
                for place, at in enumerate(choice.places)
            )
            told = coherence(statistics, headers, request.segmentation, request.confirmation)
            score = float(np.exp(choice.total / max(1, len(headers))))
            schemata.append(SuggestedSchema(headers, told, score, found.exact, weights))
        return candidates, schemata

    def _candidate(
        self, table: NamelessTable, similar: Similar | None, place: int, judged: Judged, at: int
    ) -> Candidate:
        header = int(judged.headers[at])
        return Candidate(
            self.columns.forms[header],
            float(judged.probabilities[at]),
            () if similar is None else self._evidence(table, similar, place, header),
            float(judged.shares[at]),
            _reasons(judged, at, self.model),
        )

    def _evidence(self, table: NamelessTable, similar: Similar, place: int, header: int) -> tuple[Evidence, ...]:
        """The columns of a name that share most, else some of those there are."""
        sharing = similar.sharing[place]
        mine = np.flatnonzero(self.columns.header_of[sharing.numbers] == header)
        nearness = similar.tables[self.columns.table_of[sharing.numbers[mine]]]
        order = np.lexsort((sharing.numbers[mine], -sharing.containment[mine] * nearness))[:_EXAMPLES]
        shared = mine[order]
        if shared.size:
            return tuple(
                self._told(
                    *(table, place, int(sharing.numbers[one]), int(sharing.overlaps[one])),
                    *(float(sharing.containment[one]), similar),
                )
                for one in shared.tolist()
            )
        others = self.corpus.bearing(np.array([header], np.int64))
        if table.number is not None:
            others = others[self.columns.table_of[others] != table.number]
        return tuple(self._told(table, place, number, 0, 0.0, similar) for number in others[:_EXAMPLES].tolist())

    def _told(
        self, table: NamelessTable, place: int, number: int, overlap: int, containment: float, similar: Similar
    ) -> Evidence:
        owner = int(self.columns.table_of[number])
        values = self._shared_values(table, place, number) if overlap else ()
        return Evidence(
            *(self.columns.tables[owner], self.columns.written[number], overlap, containment),
            *(float(similar.tables[owner]), values),
        )

    def _shared_values(self, table: NamelessTable, place: int, number: int) -> tuple[str, ...]:
        """Some values of a column that another holds, of those its profile remembers."""
        column, inverted = table.columns[place], self.values.inverted
        if column.shown is None:
            top, sample = (column.record[name] or () for name in ("top", "sample"))
            texts = list(dict.fromkeys([*(entry["value"] for entry in top), *sample]))
            tokens = np.array([max(1, hash_text(text)) for text in texts], np.uint64)
            column.shown = texts, inverted.token_lookup(tokens)
        texts, looked_up = column.shown
        held = inverted.holds_tokens(looked_up, number)
        return tuple(text for text, there in zip(texts, held.tolist(), strict=True) if there)[:VALUES_TOLD]

    # --- the thesis' --------------------------------------------------------------------------------------------------

    def similar(self, table: NamelessTable, request: HeaderCriteria) -> Similar:
        """Phase 1 by the engine that was asked for."""
        if request.engine == "exact":
            return self.values.similar(table, self.corpus.whole)
        for place, column in enumerate(table.columns):
            if column.sketch is None and table.number is not None:
                column.sketch = self.sketches.sketch_of(self.columns.columns_of(table.number)[place])
        return self.sketches.similar(table, self.corpus, request.least_similarity)

    def popularity(self, statistics: SchemaStatistics) -> F64:
        """Weight of the schemata that hold each header: what ties are decided by."""
        return statistics.occurrences(self.columns.headers)

    def proposed(self, similar: Similar, request: HeaderCriteria, statistics: SchemaStatistics) -> list[list[Weighted]]:
        """The headers that columns sharing values propose."""
        options: dict[str, Any] = {"threshold": request.least_similarity, "weighted": request.weighted}
        return propose(similar, self.corpus, k=request.k, popularity=self.popularity(statistics), **options)

    def _by_thesis(
        self,
        table: NamelessTable,
        request: HeaderCriteria,
        known: Mapping[int, str],
        statistics: SchemaStatistics,
        said: Any,
    ) -> tuple[list[list[Candidate]], list[SuggestedSchema]]:
        similar = self.similar(table, request) if said is None else None
        proposed = said if similar is None else self.proposed(similar, request, statistics)
        candidates = [
            [_trusted(known[place])] if place in known else [self._weighed(table, similar, place, one) for one in some]
            for place, some in enumerate(proposed)
        ]
        return candidates, combined(candidates, statistics, request)

    def _weighed(self, table: NamelessTable, similar: Similar | None, place: int, one: Weighted) -> Candidate:
        evidence: tuple[Evidence, ...] = ()
        if similar is not None:
            evidence = (self._told(table, place, one.column, one.overlap, one.containment, similar),)
        told = f"{one.containment:.0%} of the values, tables alike to {one.table_similarity:.0%}"
        return Candidate(self.columns.forms[one.header], one.weight, evidence, one.weight, (told,))


def combined(
    candidates: Sequence[Sequence[Candidate]], statistics: SchemaStatistics, request: HeaderCriteria
) -> list[SuggestedSchema]:
    """Phase 2: the most coherent schemata of candidates (Algorithm 2 with the guards of 3.6)."""
    headed = [place for place, some in enumerate(candidates) if some]
    if not headed:
        return []
    headers = [one.header for place in headed for one in candidates[place]]
    bounds = np.cumsum([0, *(len(candidates[place]) for place in headed)])
    single = [_TIE * np.array([one.weight for one in candidates[place]]) for place in headed]
    count = len(headed) * (len(headed) - 1) // 2
    if not count:
        single = [np.array([one.weight for one in candidates[headed[0]]])]
    scores = pair_scores(statistics, headers, request.segmentation, request.confirmation) / max(1, count)
    pairs = {
        (i, j): scores[bounds[i] : bounds[i + 1], bounds[j] : bounds[j + 1]]
        for i in range(len(headed))
        for j in range(i + 1, len(headed))
    }
    forbidden = _distinct([[one.header for one in candidates[place]] for place in headed])
    strict = {pair: block + forbidden[pair] if pair in forbidden else block for pair, block in pairs.items()}
    found = best_combinations(single, strict, request.m)
    if not found.choices:
        found = best_combinations(single, pairs, request.m)
    schemata = []
    for choice in found.choices:
        chosen = {place: candidates[place][at] for place, at in zip(headed, choice.places, strict=True)}
        weights = tuple(chosen[place].weight if place in chosen else None for place in range(len(candidates)))
        told = None
        if count:
            told = choice.total - sum(float(some[at]) for some, at in zip(single, choice.places, strict=True))
        names = tuple(chosen[place].header if place in chosen else None for place in range(len(candidates)))
        score = chosen[headed[0]].weight if told is None else told
        schemata.append(SuggestedSchema(names, told, score, found.exact, weights))
    return schemata


def _distinct(options: Sequence[Sequence[str | None]]) -> dict[tuple[int, int], F64]:
    """Minus infinity for two columns of one header; only of columns that could be called the same."""
    holders: dict[str, list[tuple[int, int]]] = {}
    for place, some in enumerate(options):
        for at, header in enumerate(some):
            if header is not None:
                holders.setdefault(schema_form(header) or header, []).append((place, at))
    found: dict[tuple[int, int], F64] = {}
    for places in holders.values():
        for first, (i, a) in enumerate(places):
            for j, b in places[first + 1 :]:
                if i < j:
                    block = found.setdefault((i, j), np.zeros((len(options[i]), len(options[j]))))
                    block[a, b] = -np.inf
    return found


def _trusted(header: str) -> Candidate:
    return Candidate(header, 1.0, (), 1.0, ("given",))


def _reasons(judged: Judged, at: int, model: Model) -> tuple[str, ...]:
    """What spoke for a candidate more than for the others, in the order of how much."""
    names = [name for name in SECOND if name != "none"]
    rest = judged.features - np.average(judged.features, axis=0)
    parts = dict(zip(names, (rest[at] * model.third[:-1]).tolist(), strict=True))
    # What the first round found is part of the last by how likely it called the candidate.
    firsts = [name for name in FIRST if name != "none"]
    alone = dict(zip(firsts, (rest[at, : len(firsts)] * model.first[:-1]).tolist(), strict=True))
    share = float(model.third[names.index("alone")])
    told = []
    for reason, family in _REASONS.items():
        speaks = sum(parts.get(name, 0.0) + share * alone.get(name, 0.0) for name in family)
        if speaks > _TELLING:
            told.append((speaks, reason))
    return tuple(reason for _, reason in sorted(told, reverse=True))


def known_headers(table: NamelessTable, known: Mapping[int | str, str] | None, *, keep: bool) -> dict[int, str]:
    """Headers that are given, by the position or name of their columns; those there, too, if they are to be kept."""
    names = [column.record["column"] for column in table.columns]
    found = {place: name for place, name in enumerate(names) if keep and not meaningless(name)}
    for key, header in (known or {}).items():
        place = names.index(key) if isinstance(key, str) and key in names else key
        if not isinstance(place, int) or not 0 <= place < len(names):
            hint = f"columns are counted from 0 to {len(names) - 1}, or named"
            raise BadRequest(f"no column {key!r} to give a header to", hint=hint)
        if not header.strip():
            raise BadRequest(f"the header of column {key!r} is blank", hint="leave it out to have one suggested")
        found[place] = header
    return found
