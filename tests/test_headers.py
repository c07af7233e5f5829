"""Names for columns that have none: the two phases, the probability, detection of headers, the lake, the CLI."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lakescope
from helpers.commands import Run, assert_refused
from lakescope.engines.headers import corpus as corpus_module
from lakescope.engines.headers import suggest
from lakescope.engines.headers.answers import CONFIRMATIONS, SEGMENTATIONS, Candidate
from lakescope.engines.headers.coherence import (
    SchemaStatistics,
    best_combinations,
    coherence,
    confirm,
    pair_scores,
)
from lakescope.engines.headers.corpus import HeadedColumns, HeaderCorpus
from lakescope.engines.headers.detect import opinion_of
from lakescope.engines.headers.evidence import FIELDS, terms_of
from lakescope.engines.headers.model import FIRST, SECOND, Clues, Model
from lakescope.engines.headers.names import as_written, match, normalised, schema_form
from lakescope.engines.headers.similar import propose
from lakescope.engines.headers.suggest import HeaderCriteria, HeaderSearch, combined
from lakescope.errors import BadRequest
from lakescope.lake import Lake
from lakescope.questions.headers import known_pairs, known_texts
from lakescope.sketches.hyperloglog import HyperLogLogPlusPlus
from lakescope.sources.formats.csv_dialect import Dialect, detect_dialect
from lakescope.sources.io.encoding import Encoding
from lakescope.sources.names import meaningless
from lakescope.studies.headers import HiddenTables, Rediscovered, measured, precision_recall, split_tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# --- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        "Unnamed: 3",
        "unnamed",
        "_c0",
        "col1",
        "Column 12",
        "column_3",
        "V7",
        "x1",
        "...4",
        "field-2",
        "n/a",
        "?",
    ],
)
def test_names_that_say_nothing(name: str) -> None:
    assert meaningless(name)


@pytest.mark.parametrize(
    "name", ["#", "id", "value", "Year", "columns sold", "X-ray", "c", "2001", "field", "colour", "no."]
)
def test_names_that_say_something(name: str) -> None:
    assert not meaningless(name)


def test_forms_of_headers() -> None:
    assert normalised("  Directed \n by: ") == "directed by:"
    assert schema_form("  Directed by: ") == "directed by"
    assert schema_form("?") == ""
    assert schema_form("#") == "#"
    assert as_written(["total", "total_2", "part_2"]) == ["total", "total", "part_2"]


@pytest.mark.parametrize(
    ("found", "true", "wanted"),
    [
        ("Year", "year", "exact"),
        ("Birth-date", "birth date", "spacing"),
        ("player", "Players", "word form"),
        ("Pos.", "Position", "shorter form"),
        ("dob", "date of birth", "shorter form"),
        ("population", "village population", "granularity"),
        ("nation", "country", "synonym"),
        ("gold", "silver", "incorrect"),
    ],
)
def test_how_headers_relate(found: str, true: str, wanted: str) -> None:
    assert match(found, true) == wanted


# --- metrics ----------------------------------------------------------------------------------------------------------


def test_the_example_of_the_thesis() -> None:
    truth, found = ["year", "population", "growth"], ["year", "village population", None]
    assert precision_recall(truth, found) == (1, 2, 3)
    told = measured("x", [Rediscovered(truth, [found])], corpus_tables=1, ceiling=1.0)
    assert (told.precision, told.recall) == (1 / 2, 1 / 3)
    assert told.f1 == pytest.approx(0.4)
    assert told.granularity == 0.5


def test_exact_and_complete_by_depth() -> None:
    truth = ["a", "b"]
    tables = [
        Rediscovered(truth, [["a", None], ["a", "b"]]),
        Rediscovered(truth, [["a", "c"], ["a", "c"], ["a", "B"]]),
        Rediscovered(truth, []),
        Rediscovered(["a", None], [["a", "whatever"]]),
    ]
    told = measured("x", tables, corpus_tables=1, ceiling=1.0)
    assert told.tables_suggested == 3 / 4
    assert (told.exact_1, told.exact_5) == (2 / 3, 1.0)
    assert (told.complete_1, told.complete_5, told.all_5) == (1 / 3, 1.0, 3 / 4)
    assert told.columns == 7


# --- coherence --------------------------------------------------------------------------------------------------------

SCHEMATA = [
    (["Year", "Title", "Role"], 6.0),
    (["Year:", "title"], 2.0),
    (["Rank", "Name"], 3.0),
    (["name", "Year", "name"], 1.0),
]


def test_statistics_of_schemata() -> None:
    statistics = SchemaStatistics(SCHEMATA)
    assert statistics.total == 12
    assert statistics.occurrences(["year", "TITLE", "name", "nobody"]).tolist() == [9, 8, 4, 0]
    together = statistics.together(["year", "title", "nobody"])
    assert together.tolist() == [[9, 8, 0], [8, 8, 0], [0, 0, 0]]
    less = SchemaStatistics([*SCHEMATA, (["year", "name"], 1.0)]).without(["Year", "Name"])
    assert less.total == 12
    assert less.together(["year", "name"]).tolist() == SchemaStatistics(SCHEMATA).together(["year", "name"]).tolist()


def _plainly(measure: str, p: float, q: float, both: float) -> float:
    """The confirmation measures as printed, for headers that occur."""
    if measure == "c":
        return both / q
    if measure == "d":
        return both / q - p
    without = (p - both) / (1 - q)
    if measure == "f":
        return (both / q - without) / (both / q + without)
    ratio = np.log(both / (p * q))
    return float(ratio if measure == "lr" else ratio / -np.log(both))


@pytest.mark.parametrize("measure", CONFIRMATIONS)
def test_confirmations_are_those_printed(measure: Any) -> None:
    for p, q, both in [(0.5, 0.25, 0.2), (0.1, 0.4, 0.05), (0.3, 0.3, 0.01)]:
        found = confirm(measure, np.array(p), np.array(q), np.array(both))
        assert float(found) == pytest.approx(_plainly(measure, p, q, both), abs=1e-9)


@pytest.mark.parametrize("segmentation", SEGMENTATIONS)
def test_segmentations_take_all_pairs(segmentation: Any) -> None:
    statistics = SchemaStatistics(SCHEMATA)
    schema = ["role", "year", "title"]
    one = pair_scores(statistics, schema, "suc", "c")
    pairs = {
        "suc": [(i, j) for i in range(3) for j in range(3) if j > i],
        "pre": [(i, j) for i in range(3) for j in range(3) if j < i],
        "one": [(i, j) for i in range(3) for j in range(3) if j != i],
    }[segmentation]
    wanted = np.mean([one[i, j] for i, j in pairs])
    assert coherence(statistics, schema, segmentation) == pytest.approx(float(wanted))


def test_order_matters() -> None:
    statistics = SchemaStatistics(SCHEMATA)
    assert coherence(statistics, ["year", "role"]) == pytest.approx(1.0)
    assert coherence(statistics, ["role", "year"]) == pytest.approx(6 / 9)


@pytest.mark.parametrize("measure", ["c", "d", "f"])
def test_unseen_headers_confirm_nothing(measure: Any) -> None:
    statistics = SchemaStatistics(SCHEMATA)
    assert coherence(statistics, ["unheard", "unseen"], "suc", measure) == 0
    assert coherence(statistics, ["year", "unseen"], "suc", measure) == 0


def _candidates(*columns: dict[str, float]) -> list[list[Candidate]]:
    return [[Candidate(header, weight, (), weight, ()) for header, weight in some.items()] for some in columns]


def _headers(found: Any) -> list[tuple[str | None, ...]]:
    return [each.headers for each in found]


def test_duplicates_and_unseen_headers_never_win() -> None:
    statistics = SchemaStatistics(SCHEMATA)
    both = {"year": 0.9, "title": 0.5, "unseen": 0.99}
    for segmentation, measure in itertools.product(SEGMENTATIONS, ("c", "d", "f")):
        request = HeaderCriteria(segmentation=segmentation, confirmation=measure)
        found = combined(_candidates(both, both), statistics, request)
        assert set(found[0].headers) == {"year", "title"}
        assert all(len(set(each.headers)) == 2 for each in found)


def test_equal_headers_where_there_is_nothing_else() -> None:
    found = combined(_candidates({"year": 1.0}, {"Year": 0.5}), SchemaStatistics(SCHEMATA), HeaderCriteria())
    assert _headers(found) == [("year", "Year")]
    assert found[0].coherence == 0


def test_columns_without_candidates_are_left_out_of_the_mean() -> None:
    statistics = SchemaStatistics(SCHEMATA)
    found = combined(_candidates({"year": 1.0}, {}, {"title": 1.0}), statistics, HeaderCriteria())
    assert found[0].headers == ("year", None, "title")
    assert found[0].coherence == pytest.approx(1.0)
    alone = combined(_candidates({"year": 0.2, "role": 0.7}, {}), statistics, HeaderCriteria())
    assert _headers(alone) == [("role", None), ("year", None)]
    assert alone[0].coherence is None
    assert combined(_candidates({}, {}), statistics, HeaderCriteria()) == []


def test_ties_go_to_the_heavier() -> None:
    found = combined(_candidates({"x": 0.2, "y": 0.7}, {"z": 0.1}), SchemaStatistics(SCHEMATA), HeaderCriteria())
    assert _headers(found) == [("y", "z"), ("x", "z")]


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10_000), st.integers(1, 5), st.integers(1, 12))
def test_combinations_are_the_best_of_all(seed: int, columns: int, m: int) -> None:
    dice = np.random.default_rng(seed)
    sizes = dice.integers(1, 4, columns).tolist()
    single = [dice.normal(size=size) for size in sizes]
    pairs = {}
    for i, j in itertools.combinations(range(columns), 2):
        block = dice.normal(size=(sizes[i], sizes[j]))
        block[dice.random(block.shape) < 0.2] = -np.inf
        pairs[i, j] = block
    every = []
    for places in itertools.product(*map(range, sizes)):
        total = sum(single[i][a] for i, a in enumerate(places))
        total += sum(pairs[i, j][places[i], places[j]] for i, j in pairs)
        if total > -np.inf:
            every.append((total, places))
    every.sort(key=lambda one: -one[0])
    found = best_combinations(single, pairs, m)
    assert found.exact
    assert [choice.places for choice in found.choices] == [places for _, places in every[:m]]


def test_branch_and_bound_beyond_the_beam_and_the_beam_beyond_that() -> None:
    dice = np.random.default_rng(3)
    columns, size = 9, 4
    single = [dice.normal(size=size) for _ in range(columns)]
    pairs = {(i, j): dice.normal(size=(size, size)) for i, j in itertools.combinations(range(columns), 2)}
    found = best_combinations(single, pairs, 3)
    assert found.exact
    grid = np.array(list(itertools.product(range(size), repeat=columns)))
    totals = sum(single[i][grid[:, i]] for i in range(columns))
    totals = totals + sum(pairs[i, j][grid[:, i], grid[:, j]] for i, j in pairs)
    order = np.argsort(-totals)[:3]
    assert [choice.places for choice in found.choices] == [tuple(grid[at].tolist()) for at in order]
    wide = {(i, j): dice.normal(size=(5, 5)) for i, j in itertools.combinations(range(40), 2)}
    beam = best_combinations([np.zeros(5)] * 40, wide, 2)
    assert not beam.exact
    assert len(beam.choices) == 2


def test_a_file_of_schemata(tmp_path: Path) -> None:
    path = tmp_path / "schemata.jsonl"
    path.write_text('{"header": ["Year", "Title"], "count": 17}\n\n{"header": ["rank"]}\n')
    statistics = SchemaStatistics.of_file(path)
    assert (len(statistics), statistics.total) == (2, 18)
    path.write_text('{"header": ["a"]}\nnonsense\n')
    with pytest.raises(BadRequest, match="line 2"):
        SchemaStatistics.of_file(path)


# --- a small lake -----------------------------------------------------------------------------------------------------

NATIONS = ["France", "Kenya", "Japan", "Brazil", "Norway", "Chile", "Ghana", "India", "Italy", "Spain", "Peru", "Cuba"]
CITIES = [
    f"{first}{last}" for first in ("North", "South", "East", "West", "New") for last in ("ham", "ford", "port", "ton")
]
WORDS = ["Storm", "River", "Light", "Song", "Road", "Winter", "Stone", "Garden", "Night", "Letter"]


def _medals(dice: np.random.Generator) -> list[str]:
    chosen = dice.permutation(NATIONS)[:8]
    rows = [f"{i + 1},{nation},{40 - 3 * i + dice.integers(3)},{30 - i},{20 + i}" for i, nation in enumerate(chosen)]
    return ["Rank,Nation,Gold,Silver,Bronze", *rows]


def _films(dice: np.random.Generator) -> list[str]:
    rows = []
    for year in sorted(dice.integers(1960, 2020, 10).tolist()):
        a, b = dice.permutation(WORDS)[:2]
        rows.append(f"{year},The {a} of the {b},{dice.permutation(['Lead', 'Guest', 'Voice'])[0]},")
    return ["Year,Title,Role,Notes", *rows]


def _towns(dice: np.random.Generator) -> list[str]:
    rows = [
        f"{city},{int(dice.lognormal(10, 1))},{dice.integers(1, 900)}.{dice.integers(9)}"
        for city in dice.permutation(CITIES)[:12]
    ]
    return ["City,Population,Area", *rows]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Lake:
    """Medals, films and towns, several tables of each; one without usable names, one whose names contradict it."""
    root = tmp_path_factory.mktemp("headers") / "lake"
    root.mkdir()
    dice = np.random.default_rng(17)
    for number in range(10):
        for name, make in (("medals", _medals), ("films", _films), ("towns", _towns)):
            root.joinpath(f"{name}{number}.csv").write_text("\n".join(make(dice)) + "\n")
    root.joinpath("nameless.csv").write_text("\n".join(["col1,col2,col3,col4,col5", *_medals(dice)[1:]]) + "\n")
    partly = [line.replace("Title", "", 1) for line in _films(dice)]
    root.joinpath("partly.csv").write_text("\n".join(partly) + "\n")
    root.joinpath("swapped.csv").write_text("\n".join(["City,Title,Gold,Silver,Bronze", *_medals(dice)[1:]]) + "\n")
    return lakescope.index(root, root.with_suffix(".idx"), spark=spark)


@pytest.fixture(scope="module")
def search(lake: Lake) -> HeaderSearch:
    return lake._headers


@pytest.fixture
def films(tmp_path: Path) -> Path:
    path = tmp_path / "mine.csv"
    lines = "\n".join(_films(np.random.default_rng(99))[1:]) + "\n"
    for number, word in enumerate(WORDS):
        lines = lines.replace(word, f"{word[::-1].capitalize()}{'abcdefghij'[number]}")
    path.write_text(lines)
    return path


def test_the_corpus_knows_what_means_something(search: HeaderSearch) -> None:
    corpus = search.corpus
    assert "col1" not in corpus.columns.headers
    assert corpus.frequency[corpus.columns.number_of["rank"]] == 10
    assert corpus.columns.forms[corpus.columns.number_of["rank"]] == "Rank"
    assert HeaderCorpus(corpus.columns, range(len(corpus.columns.tables))).tables == 0


def test_similarities_are_those_of_the_sets(search: HeaderSearch, lake: Lake) -> None:
    import csv

    values: dict[str, list[set[str]]] = {}
    for record in lake.tables().to_pylist():
        rows = list(csv.reader(Path(record["uri"]).read_text().splitlines()))[1:]
        values[record["table"]] = [{cell for cell in column if cell} for column in zip(*rows, strict=True)]
    number = search.columns.number_of_table["medals3.csv"]
    table = search.table(number)
    found = search.values.similar(table, search.corpus.whole)
    mine = values["medals3.csv"]
    whole = set().union(*mine)
    for other, columns in values.items():
        if other == "medals3.csv":
            continue
        there = search.columns.columns_of(search.columns.number_of_table[other])
        held = zip(there, columns, strict=True)
        usable = [column for number, column in held if search.columns.header_of[number] >= 0]
        theirs = set().union(*usable)
        wanted = len(whole & theirs) / len(whole | theirs)
        if (search.corpus.own(search.columns.number_of_table[other])).size:
            assert found.tables[search.columns.number_of_table[other]] == pytest.approx(wanted), other
    for place, sharing in enumerate(found.sharing):
        for column, overlap in zip(sharing.numbers.tolist(), sharing.overlaps.tolist(), strict=True):
            other = int(search.columns.table_of[column])
            theirs = values[search.columns.tables[other]][column - search.columns.columns_of(other).start]
            assert overlap == len(mine[place] & theirs) > 0


@pytest.mark.parametrize("threshold", [None, 0.0, 0.1, 0.3])
def test_sketches_and_lists_agree(search: HeaderSearch, threshold: float | None) -> None:
    for name in ("medals1.csv", "films2.csv", "towns5.csv", "nameless.csv"):
        table = search.table(search.columns.number_of_table[name])
        exact = propose(search.values.similar(table, search.corpus.whole), search.corpus, threshold=threshold)
        request = HeaderCriteria(method="thesis", engine="hll", threshold=threshold, unfiltered=threshold is None)
        sketched = propose(search.similar(table, request), search.corpus, threshold=threshold)
        assert [[(one.header, one.weight) for one in some] for some in exact] == [
            [(one.header, one.weight) for one in some] for some in sketched
        ]


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 1_000_000), st.integers(0, 100))
def test_rounded_sketches_count_small_sets(seed: int, size: int) -> None:
    sketch = HyperLogLogPlusPlus()
    sketch.update_hashes(np.unique(np.random.default_rng(seed).integers(1, 2**63, size, dtype=np.uint64)))
    assert round(sketch.estimate()) == size


def test_weights_are_containment_times_jaccard(search: HeaderSearch) -> None:
    table = search.table(search.columns.number_of_table["nameless.csv"])
    similar = search.values.similar(table, search.corpus.whole)
    for some in propose(similar, search.corpus, threshold=0.0, k=3):
        for one in some:
            assert one.weight == pytest.approx(one.containment * one.table_similarity)
    for weighted, unweighted in zip(
        propose(similar, search.corpus, threshold=0.1),
        propose(similar, search.corpus, threshold=0.1, weighted=False),
        strict=True,
    ):
        assert {one.header for one in weighted} == {one.header for one in unweighted} or len(unweighted) == 5
        assert all(one.weight == one.containment for one in unweighted)


# --- suggestions ------------------------------------------------------------------------------------------------------


def test_a_nameless_table_of_the_lake_gets_its_headers(lake: Lake) -> None:
    found = lake.suggest_headers("nameless.csv")
    best = found[0]
    assert best.headers == ("Rank", "Nation", "Gold", "Silver", "Bronze")
    assert best.exact
    assert best.coherence is not None
    assert best.coherence > 0.8
    assert 0.3 < best.score <= 1
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
    nation = found.candidates[1][0]
    assert nation.header == "Nation"
    assert nation.weight > 0.7
    assert nation.evidence[0].column == "Nation"
    assert nation.evidence[0].overlap >= 4
    assert set(nation.evidence[0].values) <= set(NATIONS)
    assert [each.weight for each in found.candidates[1]] == sorted(
        (c.weight for c in found.candidates[1]), reverse=True
    )
    assert sum(each.weight for each in found.candidates[1]) <= 1 + 1e-9
    assert found.info["learnt_from"] > 20


def test_numbers_that_nobody_shares_are_named_by_their_looks(lake: Lake, films: Path) -> None:
    found = lake.suggest_headers(films)
    assert found[0].headers[:3] == ("Year", "Title", "Role")
    title = found.candidates[1][0]
    assert title.similarity == 0
    assert title.evidence[0].overlap == 0
    assert found[0].headers[3] is None or found[0].headers[3] == "Notes"


def test_a_file_without_header_keeps_its_first_row(lake: Lake, films: Path) -> None:
    frame = pa.table({name: [None, "x"] for name in ("a", "b")})
    assert lake.suggest_headers(frame).columns == ("a", "b")
    nameless = lake._headers.read(films)
    assert nameless.columns[0].record["rows"] == 10


def test_own_table_is_left_out(lake: Lake, search: HeaderSearch) -> None:
    table = search.table(search.columns.number_of_table["towns3.csv"])
    similar = search.values.similar(table, search.corpus.whole)
    assert similar.tables[table.number] == 0
    assert all(table.number not in search.columns.table_of[each.numbers] for each in similar.sharing)
    path = Path(lake.profile("towns3.csv").table["uri"])
    assert lake.suggest_headers(path) == lake.suggest_headers("towns3.csv")


def test_known_headers_stay(lake: Lake) -> None:
    found = lake.suggest_headers("nameless.csv", known={1: "Land", "col3": "Gold"})
    assert all(each.headers[1] == "Land" and each.headers[2] == "Gold" for each in found)
    assert found.candidates[1][0].reasons == ("given",)
    twice = lake.suggest_headers("nameless.csv", known={0: "Gold", 2: "Gold"})
    assert twice[0].headers[:3:2] == ("Gold", "Gold")
    kept = lake.suggest_headers("swapped.csv", keep=True)
    assert kept[0].headers == ("City", "Title", "Gold", "Silver", "Bronze")
    with pytest.raises(BadRequest, match="no column"):
        lake.suggest_headers("nameless.csv", known={9: "x"})
    with pytest.raises(BadRequest, match="blank"):
        lake.suggest_headers("nameless.csv", known={0: " "})


def test_modes_ask_for_more_or_less(lake: Lake, tmp_path: Path) -> None:
    path = tmp_path / "odd.csv"
    path.write_text("\n".join(f"{i * 7919 % 104729}-{i},zz{i}" for i in range(30)))
    given_headers = {
        mode: sum(header is not None for header in lake.suggest_headers(path, mode=mode)[0].headers)
        for mode in ("reliable", "balanced", "coverage")
    }
    assert given_headers["reliable"] <= given_headers["balanced"] <= given_headers["coverage"] == 2
    assert given_headers["reliable"] == 0


def test_an_empty_column_gets_no_header(lake: Lake) -> None:
    found = lake.suggest_headers(pa.table({"a": pa.array(NATIONS), "b": pa.nulls(12, pa.string())}), mode="coverage")
    assert found[0].headers[1] is None
    assert any("without values" in note for note in found.notes)


def test_the_method_of_the_thesis(lake: Lake) -> None:
    found = lake.suggest_headers("nameless.csv", method="thesis", mode="coverage")
    assert "Nation" in found[0].headers
    assert found[0].score == found[0].coherence
    sketched = lake.suggest_headers("nameless.csv", method="thesis", mode="coverage", engine="hll")
    assert sketched == found
    for segmentation, confirmation in itertools.product(SEGMENTATIONS, CONFIRMATIONS):
        other = lake.suggest_headers(
            "nameless.csv", method="thesis", mode="coverage", segmentation=segmentation, confirmation=confirmation
        )
        assert len(set(other[0].headers)) == 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "brave"}, "mode cannot be"),
        ({"method": "guess"}, "method cannot be"),
        ({"k": 0}, "k must be"),
        ({"threshold": 2.0}, "threshold"),
        ({"segmentation": "all"}, "segmentation cannot be"),
        ({"confirmation": "z"}, "confirmation cannot be"),
        ({"engine": "hll"}, "thesis"),
    ],
)
def test_what_cannot_be_asked(lake: Lake, options: dict[str, Any], message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        lake.suggest_headers("nameless.csv", **options)


def test_records_travel(lake: Lake) -> None:
    found = lake.suggest_headers("nameless.csv")
    assert found.to_arrow()["headers"][0].as_py()[1] == "Nation"
    told = found.by_column()
    assert told.to_arrow().num_rows == len(told) == 25
    assert sum(each.chosen for each in told) == 5
    assert "Nation" in repr(found)


def test_looks_are_the_same_with_and_without_kernels(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = HeaderCorpus(HeadedColumns(lake._index))
    own = np.empty(0, np.int64)
    records = [lake._index.column(number, FIELDS) for number in range(min(40, len(corpus.columns)))]
    for record in records:
        terms = terms_of(record, 4)
        told = []
        for loaded in (True, False):
            monkeypatch.setattr(corpus_module, "kernels_are_loaded", lambda loaded=loaded: loaded)
            told.append(corpus.whole.alike(terms, own))
        assert told[0].tobytes() == told[1].tobytes()
        assert told[0].max() > 0


def test_no_kernels_for_tables_of_the_lake(lake: Lake) -> None:
    """Who asks about a table of the lake waits for no compiler."""
    program = f"""
import sys
import lakescope
found = lakescope.open({lake.path!r}).suggest_headers("nameless.csv")
print("|".join(str(header) for header in found[0].headers))
assert not {{"numba", "pandas", "pyspark"}} & set(sys.modules), "loaded for a question about the lake itself"
"""
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    assert told.stdout.strip() == "Rank|Nation|Gold|Silver|Bronze"


# --- learning ---------------------------------------------------------------------------------------------------------


def test_what_was_learnt_is_kept_and_hidden_tables_teach_nothing(lake: Lake, search: HeaderSearch) -> None:
    kept = search._index.recall(suggest._KEPT)
    assert kept is not None
    again = Model.from_dict(kept)
    assert again is not None
    assert np.array_equal(again.third, search.model.third)
    assert Model.from_dict({"first": [1.0], "tables": 1}) is None
    hidden = HeaderSearch(search._index, search.values.inverted, hidden=range(5), headed=search.columns)
    assert hidden.model.tables == search.model.tables - 5
    assert len(Model.beginning().first) == len(FIRST)
    assert len(Model.beginning().second) == len(SECOND)


def test_the_answer_does_not_depend_on_its_own_header(lake: Lake, tmp_path: Path) -> None:
    """A table of the lake is judged as if it were not there: so is a copy of it outside a lake without it."""
    headed = HeadedColumns(lake._index)
    number = headed.number_of_table["towns7.csv"]
    inverted = lake._joins.inverted
    hidden = HeaderSearch(lake._index, inverted, hidden=[number], headed=headed)
    hidden.model = lake._headers.model
    inside = lake._headers.suggest(lake._headers.table(number), HeaderCriteria())
    outside = hidden.suggest(hidden.table(number), HeaderCriteria())
    assert [each.headers for each in inside] == [each.headers for each in outside]
    assert [each.score for each in inside] == pytest.approx([each.score for each in outside])


def test_evaluation_hides_and_rediscovers(lake: Lake) -> None:
    found = lake.evaluate_headers(0.1, seed=3, m=5)
    by = {each.method: each for each in found}
    assert by["balanced"].tables == 3
    assert by["balanced"].ceiling == 1.0
    assert by["balanced"].f1 > by["largest containment"].f1
    assert by["reliable"].precision >= 0.8
    assert by["coverage"].columns_suggested >= by["balanced"].columns_suggested >= by["reliable"].columns_suggested
    assert lake.evaluate_headers(0.1, seed=3, m=5)[0].precision == found[0].precision
    with pytest.raises(BadRequest, match="split"):
        lake.evaluate_headers(1.5)
    headed = HeadedColumns(lake._index)
    hidden = HiddenTables(lake._index, lake._joins.inverted, split_tables(headed, 0.1, 3), headed=headed)
    assert hidden.search.corpus.own(hidden.tables[0]).size == 0


# --- headers in doubt, tables written anew ----------------------------------------------------------------------------


def test_headers_in_doubt(lake: Lake) -> None:
    found = {(each.table, each.column): each for each in lake.check_headers()}
    assert found["nameless.csv", "col2"].doubt == "meaningless"
    assert found["nameless.csv", "col2"].suggestion == "Nation"
    assert found["swapped.csv", "Title"].doubt == "contradicts"
    assert found["swapped.csv", "Title"].suggestion == "Nation"
    assert found["partly.csv", "column_2"].doubt == "missing"
    assert found["partly.csv", "column_2"].suggestion == "Title"
    assert {table for table, _ in found} == {"nameless.csv", "swapped.csv", "partly.csv"}


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow"])
def test_a_table_is_written_under_its_headers(lake: Lake, films: Path, suffix: str) -> None:
    out = films.with_name(f"named{suffix}")
    names = lake.name_columns(films, out)
    assert names[:3] == ["Year", "Title", "Role"]
    if suffix == ".csv":
        assert out.read_text().splitlines()[1:] == films.read_text().splitlines()
    else:
        table = pq.read_table(out) if suffix == ".parquet" else pa.ipc.open_file(out).read_all()
        assert table.column_names == names
        assert table.num_rows == 10
    lake.name_columns(films, out, ["a", None, "a", "b"])
    with pytest.raises(BadRequest, match="2 headers for 4"):
        lake.name_columns(films, out, ["a", "b"])
    with pytest.raises(BadRequest, match="cannot write"):
        lake.name_columns(films, films.with_suffix(".doc"))


@pytest.mark.parametrize("method", ["ours", "thesis"])
def test_many_tables_on_spark(lake: Lake, spark: SparkSession, films: Path, method: str) -> None:
    """Blocks of tables by parts of the corpus: the very answers of one process."""
    queries = [str(films), "nameless.csv", "towns3.csv"]
    options: dict[str, Any] = {"method": method, "mode": "coverage"}
    rows = lake.suggest_headers_batch(queries, spark=spark, parts=4, **options).collect()
    told = {
        query: sorted(
            (row["position"], row["rank"], row["header"], row["weight"], row["chosen"])
            for row in rows
            if row["query_table"] == query
        )
        for query in queries
    }
    for query in queries:
        found = lake.suggest_headers(query, **options)
        wanted = [
            (place, rank, each.header, each.weight, each.header == found[0].headers[place])
            for place, some in enumerate(found.candidates)
            for rank, each in enumerate(some, start=1)
        ]
        assert told[query] == wanted


def test_all_nameless_tables_on_spark(lake: Lake, spark: SparkSession) -> None:
    every = lake.suggest_headers_batch(spark=spark, k=1).select("query_table").distinct().collect()
    assert {row["query_table"] for row in every} == {"nameless.csv", "partly.csv"}
    with pytest.raises(BadRequest, match="parts"):
        lake.suggest_headers_batch(spark=spark, parts=0)


@settings(deadline=None, max_examples=10)
@given(number=st.integers(0, 32), parts=st.integers(1, 40))
def test_parts_of_the_corpus_say_what_the_whole_says(search: HeaderSearch, number: int, parts: int) -> None:
    table = search.table(number)
    whole, _ = search.judge.clues(table, search.corpus.whole)
    pieces = [search.corpus.part(part, parts) for part in range(parts)]
    assert [table for piece in pieces for table in piece.tables] == list(range(len(search.columns.tables)))
    merged = search.judge.clues(table, pieces[0])[0]
    for piece in pieces[1:]:
        more, _ = search.judge.clues(table, piece)
        merged = [mine.merged(each) for mine, each in zip(merged, more, strict=True)]
    for one, other in zip(whole, merged, strict=True):
        for field in fields(Clues):
            assert np.array_equal(getattr(one, field.name), getattr(other, field.name)), field.name


def test_terms_are_kept_beside_the_index(lake: Lake, search: HeaderSearch, monkeypatch: pytest.MonkeyPatch) -> None:
    made = search.columns._made_terms(lake._index.catalog("columns").select(list(FIELDS)))
    monkeypatch.setattr(HeadedColumns, "_made_terms", lambda *_: pytest.fail("terms were made again"))
    again = HeadedColumns(lake._index)
    for family, terms in again.terms.items():
        assert np.array_equal(terms.items, made[f"{family}.items"])
        assert np.array_equal(terms.hashes, made[f"{family}.hashes"])
    # A file that was cut off is made anew; it is replaced, since others have it mapped.
    monkeypatch.undo()
    kept = next(Path(lake.path).rglob("headers-terms-*.bin"))
    whole = kept.read_bytes()
    kept.unlink()
    kept.write_bytes(whole[:100])
    HeadedColumns(lake._index)
    assert kept.read_bytes() == whole


# --- detection --------------------------------------------------------------------------------------------------------

DATA = [
    "Anna Berg,Oslo,34,1990-01-02",
    "Bo Dahl,Bergen,29,1995-05-07",
    "Cy Eng,Oslo,41,1983-11-30",
    "Di Foss,Moss,38,1986-02-14",
]
TEXT = ["red,Oslo,good", "blue,Bergen,bad", "red,Moss,good", "green,Oslo,bad", "blue,Oslo,good", "red,Bergen,good"]


def _opinion(*lines: str) -> Dialect:
    text = np.frombuffer("\n".join(lines).encode(), np.uint8)
    return detect_dialect(text, whole=True, encoding=Encoding())


def test_a_header_over_other_types() -> None:
    found = _opinion("name,city,age,born", *DATA)
    assert (found.header_rows, found.data_start) == (1, 19)
    assert found.names == ["name", "city", "age", "born"]
    assert not _opinion(*DATA).header


def test_text_over_text() -> None:
    assert _opinion("colour,town,state", *TEXT).header
    assert not _opinion(*TEXT).header
    assert _opinion("Farbe,Ort,Zustand", *TEXT).header


def test_years_as_headers() -> None:
    assert _opinion("Country,2019,2020,2021", "France,12.5,13.1,9.9", "Kenya,4.4,4.9,5.3", "Peru,3.3,2.9,3.1").header


@pytest.mark.parametrize(
    "preamble",
    [
        ["Report of sales"],
        ["Report of sales,,,", "Created by the office,,,"],
        ["# comment", "# another"],
        ["Report of sales in all regions", "", "Source: the office"],
        ["Report,Sales,,", ",,,"],
    ],
)
def test_a_preamble_is_passed_over(preamble: list[str]) -> None:
    lines = [*preamble, "name,city,age,born", *DATA]
    found = _opinion(*lines)
    assert (found.header_rows, found.preamble) == (1, sum(bool(line) for line in preamble))
    assert "\n".join(lines)[found.data_start :] == "\n".join(DATA)
    assert found.names[1] == "city"
    assert not _opinion(*preamble, *DATA).header


def test_headers_of_two_rows() -> None:
    found = _opinion(
        "Region,2019,,2020,", ",Q1,Q2,Q1,Q2", "North,1.5,2.5,3.5,4.5", "South,2.1,2.2,2.3,2.4", "West,5.5,1.2,0.3,4.4"
    )
    assert (found.header_rows, found.data_start) == (2, 32)
    assert found.names == ["Region", "2019 Q1", "2019 Q2", "2020 Q1", "2020 Q2"]
    units = _opinion("name,length,weight", ",(m),(kg)", "pike,0.8,5.5", "perch,0.3,1.1", "bream,0.4,2.2", "eel,0.9,2.0")
    assert units.header_rows == 2


def test_opinions_of_files(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("\n".join(["name;city;age", "Änne;Oslo;3", "Bo;Moss;4", "Cy;Rome;5"]), encoding="utf-16")
    found = opinion_of(str(path))
    assert found is not None
    assert found.names == ("name", "city", "age")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "x.parquet")
    assert opinion_of(str(tmp_path / "x.parquet")) is None
    with pytest.raises(BadRequest):
        opinion_of(str(tmp_path / "none.csv"))


# --- the command ------------------------------------------------------------------------------------------------------


def test_headers_on_the_command_line(lake: Lake, run: Run, films: Path) -> None:
    suggest = partial(run, "headers", "suggest", lake.path)
    told = suggest(str(films), "-k", "2", "-m", "3")
    assert "Year, Title, Role" in told.out
    assert "no header" in told.err
    records = json.loads(suggest(str(films), "--format", "json", "-m", "2").out)
    assert len(records) == 2
    assert records[0]["headers"][0] == "Year"
    columns = json.loads(suggest(str(films), "--show", "columns", "--format", "json").out)
    assert columns[0]["header"] == "Year"
    assert "Land" in suggest("nameless.csv", "--known", "1=Land", "--show", "schemata").out
    out = films.with_name("named.csv")
    assert "Year" in run("headers", "write", lake.path, str(films), "--out", str(out)).err
    assert out.read_text().startswith("Year,Title,Role")
    assert "a, Title" in run("headers", "write", lake.path, str(films), "-o", str(out), "--headers", "a,Title,c,d").err


def test_opinions_doubts_and_evaluation_on_the_command_line(lake: Lake, run: Run, films: Path) -> None:
    opinion = json.loads(run("headers", "detect", str(films), "--format", "json").out)
    assert opinion["table"] == str(films)
    assert opinion["header"] is False
    assert opinion["data_line"] == 0
    doubts = json.loads(run("headers", "check", lake.path, "--format", "json").out)
    assert {each["table"] for each in doubts} == {"nameless.csv", "swapped.csv", "partly.csv"}
    assert "learnt from 31 tables" in run("headers", "learn", lake.path).err
    told = run("headers", "evaluate", lake.path, "--split", "0.1")
    assert "balanced" in told.out
    assert "synonym" in told.out
    assert "hidden" in told.err


def test_bad_requests_on_the_command_line(lake: Lake, run: Run, films: Path) -> None:
    suggest = partial(run, "headers", "suggest", lake.path, str(films))
    assert_refused(suggest("--mode", "brave"), 2, "mode cannot be")
    assert_refused(suggest("--known", "1:x"), 2, "cannot read")
    assert_refused(suggest("--known", "1="), 2, "blank")
    assert_refused(suggest("--show", "me"), 2, "cannot be 'me'")
    assert_refused(run("headers", "detect", lake.path), 2, f"lakescope headers suggest {lake.path}")


@pytest.mark.parametrize(
    ("words", "now"),
    [
        (["nameless.csv", "--from", "lake.idx"], "lakescope headers suggest INDEX QUERY"),
        (["nameless.csv", "--from=lake.idx", "--write", "x.csv"], "lakescope headers write INDEX QUERY --out"),
        (["--check", "lake.idx"], "lakescope headers check INDEX"),
        (["--evaluate", "lake.idx", "--split", "0.1"], "lakescope headers evaluate INDEX"),
        (["nameless.csv"], "headers detect"),
    ],
)
def test_old_spellings_are_answered_with_the_new_ones(run: Run, words: list[str], now: str) -> None:
    assert_refused(run("headers", *words), 2, now)


@pytest.mark.parametrize("known", [{1: "a=b"}, {"1": "x"}, {"a=b": "x", "c": "y"}, {'"': "x", " d ": "z"}])
def test_known_headers_are_the_same_as_texts(known: dict[int | str, str]) -> None:
    assert known_pairs(known_texts(known) or ()) == known
