"""What is told of headers: the records and the choices, light to import."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from lakescope.results import Results

#: Few headers that are right, or any rather than none.
HeaderMode = Literal["reliable", "balanced", "coverage"]
#: Who names columns: a model that each lake learns, or the thesis' two phases.
HeaderMethod = Literal["ours", "thesis"]
#: What the thesis' method compares: lists of the inverted index, or sketches.
HeaderEngine = Literal["exact", "hll"]
#: Pairs of headers that coherence is taken over.
Segmentation = Literal["suc", "pre", "one"]
#: What a pair of headers is worth.
Confirmation = Literal["c", "d", "f", "lr", "nlr"]

MODES: tuple[HeaderMode, ...] = get_args(HeaderMode)
SEGMENTATIONS: tuple[Segmentation, ...] = get_args(Segmentation)
CONFIRMATIONS: tuple[Confirmation, ...] = get_args(Confirmation)
#: Values of a column that are told as evidence.
VALUES_TOLD = 5


@dataclass(frozen=True, slots=True)
class Evidence:
    """A column of the lake that bears a header: how many of the nameless column's values it holds, and some of them."""

    table: str
    column: str
    overlap: int
    containment: float
    table_similarity: float
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A header that a column may have.

    ``weight`` is what candidates are ranked by: how likely it is, or, by the thesis' method, the similarity.
    ``similarity`` is the thesis' weight: the containment in the best column of this name times the similarity of its
    table. ``evidence`` are such columns, ``reasons`` say what spoke for it.
    """

    header: str
    weight: float
    evidence: tuple[Evidence, ...]
    similarity: float
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SuggestedSchema:
    """A schema: one header a column, or None.

    ``score`` is what schemata are ranked by: the geometric mean of how likely its headers are, where a column without
    one counts as the least that its mode gives headers for; by the thesis' method the coherence. ``coherence`` says how
    well the headers go together in other tables, None if there are fewer than two. ``exact``: no other combination of
    the candidates can be better. ``weights`` are those of its headers.
    """

    headers: tuple[str | None, ...]
    coherence: float | None
    score: float
    exact: bool
    weights: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class ColumnCandidate:
    """A candidate of one column, flat: what is printed. ``chosen``: the best schema has it."""

    position: int
    column: str
    header: str
    weight: float
    chosen: bool
    similarity: float
    tables: tuple[str, ...]
    values: tuple[str, ...]
    reasons: tuple[str, ...]


class Schemata(Results[SuggestedSchema]):
    """The best schemata; ``candidates[i]`` are those of column i, ranked."""

    def __init__(
        self,
        records: Sequence[SuggestedSchema],
        candidates: Sequence[Sequence[Candidate]],
        columns: Sequence[str],
        *,
        notes: Sequence[str] = (),
        info: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(SuggestedSchema, records, shown=("headers", "score", "coherence"), notes=notes, info=info)
        self.candidates = tuple(tuple(some) for some in candidates)
        self.columns = tuple(columns)

    def without_notes(self) -> Results[SuggestedSchema]:
        """The schemata alone, where the notes have been told."""
        return Results(SuggestedSchema, list(self), shown=self.shown, info=self.info)

    def by_column(self) -> Results[ColumnCandidate]:
        """All candidates of all columns, one record each."""
        best = self[0].headers if len(self) else (None,) * len(self.columns)
        records = [
            ColumnCandidate(
                *(place, column, each.header, each.weight, each.header == best[place], each.similarity),
                *(tuple(f"{e.table}: {e.column}" for e in each.evidence), _values(each), each.reasons),
            )
            for place, (column, some) in enumerate(zip(self.columns, self.candidates, strict=True))
            for each in some
        ]
        shown = ("position", "column", "header", "weight", "chosen", "tables", "values", "reasons")
        return Results(ColumnCandidate, records, shown=shown, notes=self.notes, info=self.info)


def _values(candidate: Candidate) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for each in candidate.evidence for value in each.values))[:VALUES_TOLD]


@dataclass(frozen=True, slots=True)
class HeaderDoubt:
    """A column whose header is in doubt.

    ``doubt`` is ``missing`` (none was found, the name is this package's), ``meaningless`` (``col1``), ``value`` (it
    looks like one of its values: the first row may be data), ``repeated`` (it stands among the values once more) or
    ``contradicts`` (its values look like something else). ``suggestion`` is the likeliest header and ``weight`` how
    likely, if any is likely enough.
    """

    table: str
    position: int
    column: str
    doubt: str
    suggestion: str | None
    weight: float | None
    detail: str


@dataclass(frozen=True, slots=True)
class Evaluation:
    """How well one method rediscovers headers.

    ``precision`` counts headers that were suggested, ``recall`` all columns that have one. ``columns_suggested`` and
    ``tables_suggested`` are the shares that got any. ``exact_m``: of the tables with a suggestion, those of which one
    of the first m schemata has no wrong header; ``complete_m``: nor a missing one; ``all_m``: these as a share of all
    tables. ``ceiling`` is the share of columns whose header the rest of the lake has at all. The last fields are the
    shares of suggested headers by how they relate to the true one.
    """

    method: str
    tables: int
    columns: int
    corpus_tables: int
    ceiling: float
    precision: float
    recall: float
    f1: float
    columns_suggested: float
    tables_suggested: float
    exact_1: float
    exact_5: float
    exact_10: float
    complete_1: float
    complete_5: float
    complete_10: float
    all_1: float
    all_5: float
    all_10: float
    exact: float
    spacing: float
    word_form: float
    shorter_form: float
    granularity: float
    synonym: float
    incorrect: float
    milliseconds: float


@dataclass(frozen=True, slots=True)
class HeaderOpinion:
    """What a file begins with.

    ``probability`` is that of there being a header. ``preamble`` counts rows before it, ``header_rows`` its own; the
    data starts at line ``data_line``, counted from 0. ``names`` are those of the columns, numbered ones without header.
    """

    header: bool
    probability: float
    preamble: int
    header_rows: int
    data_line: int
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BatchHeader:
    """A record of a batch: a column of a table, and a header it may have.

    ``rank`` counts its candidates from 1; ``chosen``: the best schema of the table has it.
    """

    query_table: str
    position: int
    column: str
    rank: int
    header: str
    weight: float
    chosen: bool
