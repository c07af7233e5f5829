"""What should columns be called, which headers are in doubt, and has a file a header at all?"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from lakescope.engines.headers.answers import (
    BatchHeader,
    Confirmation,
    Evaluation,
    HeaderDoubt,
    HeaderEngine,
    HeaderMethod,
    HeaderMode,
    HeaderOpinion,
    Schemata,
    Segmentation,
    SuggestedSchema,
)
from lakescope.errors import BadRequest
from lakescope.questions.model import NotOn, On, Range, Request, Table, Watch, located, progress_of, question
from lakescope.results import Results

if TYPE_CHECKING:
    from lakescope.engines.headers.suggest import HeaderCriteria
    from lakescope.lake import Lake
    from lakescope.questions.batches import SparkBatch

_LEARNING = "learning what speaks for a header"
_KNOWN_HINT = "2=country,name=city: a position, counted from 0, or a name, and the header"
_CANDIDATES_HINT, _SCHEMATA_HINT = "5 candidates of each column", "10 schemata"


def known_texts(known: Mapping[int | str, str] | Sequence[str] | None) -> tuple[str, ...] | None:
    """Known headers by position or name as texts, each of which is read as one pair again."""
    if known is None:
        return None
    if not isinstance(known, Mapping):
        return tuple(known)
    names = {key: key if isinstance(key, str) and _is_plain(key) else json.dumps(key) for key in known}
    return tuple(f"{names[key]}={header}" for key, header in known.items())


def _is_plain(name: str) -> bool:
    return bool(name) and not (name.isdecimal() or "=" in name or name.startswith('"') or name != name.strip())


def known_pairs(texts: Sequence[str]) -> dict[int | str, str]:
    """Known headers from texts such as ``2=country``, ``name=city`` or ``"2"=country``, which names a column."""
    found: dict[int | str, str] = {}
    for text in filter(None, texts):
        key, header = _pair(text)
        if not header.strip():
            raise BadRequest(f"the header of column {key!r} is blank", hint="leave it out to have one suggested")
        found[key] = header.strip()
    return found


def _pair(text: str) -> tuple[int | str, str]:
    key: int | str
    if text.startswith('"'):
        try:
            key, end = json.JSONDecoder().raw_decode(text)
        except ValueError:
            raise BadRequest(f"cannot read {text!r}", hint=_KNOWN_HINT) from None
        equals, header = text[end : end + 1], text[end + 1 :]
    else:
        name, equals, header = text.partition("=")
        key = int(name) if name.strip().isdecimal() else name.strip()
    if equals != "=" or key == "":
        raise BadRequest(f"cannot read {text!r}", hint=_KNOWN_HINT)
    return key, header


def learn(lake: Lake, watch: Watch) -> int:
    """Learn from the tables of a lake what speaks for a header, unless it is known; from how many it was learnt."""
    with lake._headers.telling(progress_of(watch, _LEARNING)):
        return lake._headers.model.tables


@dataclass(frozen=True, kw_only=True, slots=True)
class HeaderOptions:
    """How headers are found: what all questions about those of one table have in common."""

    query: Annotated[
        Table,
        "A table: its path, or the name of one of the lake, which is then left out.",
        On("cli", names=("QUERY",)),
        NotOn("batch", why="a batch has many"),
    ]
    mode: Annotated[
        HeaderMode,
        "reliable (few headers, but right), balanced, or coverage (any is better than none).",
    ] = "balanced"
    k: Annotated[
        int,
        "Candidates of each column.",
        Range(1, hint=_CANDIDATES_HINT),
        On("cli", names=("-k",)),
        On("rest", "agents", range=Range(1, 20, hint=_CANDIDATES_HINT), why="an answer is read"),
        On("web", default=3, range=Range(1, 20, hint=_CANDIDATES_HINT), why="so many fit on a line"),
    ] = 5
    known: Annotated[
        tuple[str, ...] | None,
        "Headers that are known, by position from 0 or by name: 2=country.",
        On("cli", help="Headers that are known, by position from 0 or by name: 2=country,5=year."),
        NotOn("batch", why="each table has other columns"),
    ] = None
    keep: Annotated[
        bool,
        "Keep the headers it has that mean something.",
        On("web", default=True, why="the page tells of columns without a name"),
        NotOn("batch", why="tables without names are asked about"),
    ] = False
    threshold: Annotated[
        float | None,
        "How likely a header must be, instead of a mode; by the thesis' method how alike tables must be.",
        Range(0, 1, hint="0.7 is reliable; by the thesis' method 0.4"),
    ] = None
    method: Annotated[HeaderMethod, "Who names columns: ours (learnt from the lake), or the thesis' method."] = "ours"
    engine: Annotated[
        HeaderEngine,
        "Where the thesis' method has similarities from: exact lists, or hll sketches.",
        NotOn("batch", why="a batch goes by lists"),
    ] = "exact"
    weighted: Annotated[bool, "Whether the thesis' method weighs shared values by how alike the tables are."] = True
    unfiltered: Annotated[bool, "Let the thesis' method look at all tables, however little they are alike."] = False
    segmentation: Annotated[Segmentation, "Pairs that coherence is taken over."] = "suc"
    confirmation: Annotated[Confirmation, "What a pair is worth to coherence."] = "c"
    schemata: Annotated[
        str | None,
        "File of JSON lines with other schemata to judge coherence by.",
        NotOn("rest", "web", "agents", why="no file of the server is read for a visitor"),
        NotOn("batch", why="coherence is judged by the lake"),
    ] = None

    def check(self) -> None:
        if self.method == "ours" and self.engine == "hll":
            raise BadRequest("the engine hll is the thesis'", hint="use the method thesis")
        known_pairs(self.known or ())

    def criteria(self, m: int) -> HeaderCriteria:
        """What the search must know."""
        from lakescope.engines.headers.suggest import HeaderCriteria

        return HeaderCriteria(
            *(self.mode, self.k, m, self.method, self.engine, self.threshold, self.weighted),
            *(self.segmentation, self.confirmation, self.unfiltered),
        )

    def suggested(self, lake: Lake, watch: Watch, m: int) -> Schemata:
        """The ``m`` best schemata."""
        from lakescope.engines.headers.coherence import SchemaStatistics
        from lakescope.engines.headers.suggest import known_headers

        search = lake._headers
        statistics = None if self.schemata is None else SchemaStatistics.of_file(self.schemata)
        table = lake._table_of(self.query)
        if table is None:
            nameless = search.read(self.query)
        else:
            lake._table(table)
            nameless = search.table(search.columns.number_of_table[table])
        given = known_headers(nameless, known_pairs(self.known or ()), keep=self.keep)
        if self.method == "ours":
            learn(lake, watch)
        return search.suggest(nameless, self.criteria(m), known=given, statistics=statistics)


@question(
    "suggest_headers",
    path="headers/suggest",
    page="/search/headers",
    record=SuggestedSchema,
    records="columns",
    brief=("header", "weight", "reasons"),
    lane="long",
    group="search",
    paged=True,
    doing="looking for columns with the same values",
    examples=(
        "lakescope headers suggest lake.idx nameless.csv",
        "lakescope headers suggest lake.idx nameless.csv --mode reliable --known 2=country",
    ),
    example={"position": 3, "column": "column_4", "header": "city", "weight": 0.87, "chosen": True},
)
@dataclass(frozen=True, kw_only=True, slots=True)
class SuggestHeadersRequest(HeaderOptions, Request[Schemata]):
    """What the columns of a table may be called: headers borrowed from the tables of the lake that have them.

    weight is the probability that a header is right. What speaks for one is learnt from the lake first, once, which
    takes seconds.
    """

    m: Annotated[
        int,
        "Schemata.",
        Range(1, hint=_SCHEMATA_HINT),
        On("cli", names=("-m",)),
        On("rest", "web", "agents", fixed=1, why="candidates are told, with those that the best one has"),
        NotOn("batch", why="candidates are told, with those that the best one has"),
    ] = 10

    def answer(self, lake: Lake, watch: Watch) -> Schemata:
        return self.suggested(lake, watch, self.m)

    def batch(self, lake: Lake, queries: Sequence[str] | None = None, parts: int | None = None) -> SparkBatch:
        """The columns of many tables, by default of all that have one whose name means nothing."""
        from lakescope.engines.headers import batch
        from lakescope.questions.batches import Parts, SparkBatch

        if parts is not None and parts < 1:
            raise BadRequest(f"parts must be at least 1, not {parts}", hint="leave it out to have it chosen")
        search = lake._headers
        tables = search.nameless_tables() if queries is None else [str(query) for query in queries]
        model = search.model.to_dict() if self.method == "ours" else None
        count = min(parts or batch.parts_of(len(search.columns)), max(1, len(search.columns.tables)))
        asked = batch.HeaderBatch(*lake._published_as, tuple(tables), count, self.criteria(1), model)
        steps = batch.SearchPart(asked), batch.ASKED, batch.NameColumns(asked), batch.FOUND
        return SparkBatch(len(tables), batch.ReadTables(asked), BatchHeader, Parts(count, *steps))


@question(
    "name_columns",
    gives="text",
    records="names",
    lane="long",
    group="search",
    doing="looking for columns with the same values",
    examples=(
        "lakescope headers write lake.idx nameless.csv --out named.csv",
        "lakescope headers write lake.idx nameless.csv --out named.csv --headers id,,city",
    ),
    absent=(NotOn("rest", "web", "agents", why="it writes a file where it is asked"),),
)
@dataclass(frozen=True, kw_only=True, slots=True)
class NameColumnsRequest(HeaderOptions, Request[list[str]]):
    """Write a table under other headers: those that are given, or the best that are suggested for it."""

    out: Annotated[str, "File to write: .csv, .parquet or .arrow.", On("cli", names=("--out", "-o"))]
    headers: Annotated[
        tuple[str, ...] | None,
        "Headers of all columns in their order; of an empty one the column keeps its name. Without it: the best.",
    ] = None

    def answer(self, lake: Lake, watch: Watch) -> list[str]:
        from lakescope.engines.headers.export import named, write_named
        from lakescope.tables.writing import check_output

        check_output(self.out)
        place = lake._place(self.query)
        written = [column.record["column"] for column in lake._headers.read(place).columns]
        chosen: Sequence[str | None] | None = self.headers
        if chosen is None:
            found = self.suggested(lake, watch, 1)
            chosen = found[0].headers if len(found) else [None] * len(written)
        if len(chosen) != len(written):
            raise BadRequest(f"{len(chosen)} headers for {len(written)} columns", hint="leave those empty that stay")
        names = named(chosen, written)
        watch.tell("writing")
        write_named(place, names, self.out)
        return names


@question(
    "check_headers",
    path="headers/check",
    page="/problems/headers",
    record=HeaderDoubt,
    records="headers",
    lane="long",
    group="lake",
    paged=True,
    doing="looking at headers",
    examples=("lakescope headers check lake.idx",),
    example={"table": "legacy/cust_dump.csv", "column": "column_4", "doubt": "missing", "suggestion": "city"},
)
@dataclass(frozen=True, kw_only=True, slots=True)
class CheckHeadersRequest(Request[Results[HeaderDoubt]]):
    """Which headers of the lake are in doubt: missing, meaning nothing, a value, or contradicted by their values."""

    def answer(self, lake: Lake, watch: Watch) -> Results[HeaderDoubt]:
        from lakescope.engines.headers.check import check_headers

        learn(lake, watch)
        return check_headers(lake._index, lake._headers, progress_of(watch, "looking at headers"))


@question(
    "learn_headers",
    record=None,
    records="tables",
    lane="long",
    group="lake",
    doing=_LEARNING,
    examples=("lakescope headers learn lake.idx",),
    absent=(NotOn("rest", "web", "agents", why="it is done by itself when headers are asked for"),),
)
@dataclass(frozen=True, kw_only=True, slots=True)
class LearnHeadersRequest(Request[int]):
    """Learn from the tables of the lake what speaks for a header, before anybody asks; kept beside the index."""

    def answer(self, lake: Lake, watch: Watch) -> int:
        return learn(lake, watch)


@question(
    "evaluate_headers",
    record=Evaluation,
    records="evaluations",
    lane="long",
    group="lake",
    doing="hiding headers and rediscovering them",
    examples=("lakescope headers evaluate lake.idx --split 0.05",),
    absent=(NotOn("rest", "web", "agents", why="it is for whoever keeps the lake: it learns anew for each split"),),
)
@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluateHeadersRequest(Request[Results[Evaluation]]):
    """How well headers of this lake are found: some tables are hidden, and their headers are asked for."""

    split: Annotated[float, "Share of the tables to hide.", Range(above=0, most=1, hint="0.05: one in twenty")] = 0.05
    seed: Annotated[int, "Another seed, other tables.", Range(0)] = 0
    k: Annotated[int, "Candidates of each column.", Range(1, hint=_CANDIDATES_HINT), On("cli", names=("-k",))] = 5
    m: Annotated[int, "Schemata.", Range(1, hint=_SCHEMATA_HINT), On("cli", names=("-m",))] = 10

    def answer(self, lake: Lake, watch: Watch) -> Results[Evaluation]:
        from lakescope.engines.headers.suggest import HeaderCriteria
        from lakescope.studies.headers import evaluate

        criteria = HeaderCriteria(k=self.k, m=self.m)
        return evaluate(
            lake._index, lake._joins.inverted, self.split, self.seed, criteria, progress_of(watch, _LEARNING)
        )


@question(
    "detect_header",
    path="headers/detect",
    record=HeaderOpinion,
    records="opinions",
    lane="long",
    group="table",
    indexed=False,
    doing="reading the first rows",
    examples=("lakescope headers detect table.csv",),
    example={"header": True, "probability": 1.0, "preamble": 0, "header_rows": 1, "data_line": 1, "names": ["id"]},
    absent=(NotOn("python", "web", why="the module that is named after it is asked directly"),),
)
@dataclass(frozen=True, kw_only=True, slots=True)
class DetectHeaderRequest(Request[Results[HeaderOpinion]]):
    """Has a text file a header, where is it, and where does the data start."""

    query: Annotated[Table, "A table: its path or URI.", On("cli", names=("TABLE",))]

    def answer(self, lake: Lake | None, watch: Watch) -> Results[HeaderOpinion]:
        from lakescope.engines.headers.detect import opinion_of

        opinion = opinion_of(str(located(lake, self.query)))
        if opinion is None:
            raise BadRequest("this is no text table: its format names its columns", hint="ask about a CSV file")
        return Results(HeaderOpinion, [opinion])
