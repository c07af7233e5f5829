"""Joinable columns: planted joins are found, engines agree, chance is told from relation, bad requests are refused."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lakescope
from helpers.commands import Run, assert_refused, from_json
from helpers.inverted import index_of_sets
from lakescope.engines.joins import joinable as joinable_module
from lakescope.engines.joins.answers import Joinable
from lakescope.engines.joins.costs import Costs, measure_costs, stored_costs
from lakescope.engines.joins.inverted import InvertedIndex
from lakescope.engines.joins.joinable import JoinCriteria
from lakescope.engines.joins.overlaps import OverlapSearch
from lakescope.engines.joins.significance import (
    SIGNIFICANCE,
    chance,
    expected_by_density,
    expected_by_popularity,
    is_beyond_chance,
    quality,
)
from lakescope.errors import BadRequest, NotFound
from lakescope.lake import Lake
from lakescope.results import Results
from lakescope.store.index import Index
from lakescope.store.segment import rows_of
from lakescope.tables.key_names import same_key
from lakescope.tables.value_range import ValueRange

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIELDS = ["table", "column", "overlap", "containment", "low", "high", "exact", "query_size", "size"]


@pytest.fixture(scope="module")
def truth(demo_lake: Path) -> dict[str, Any]:
    return dict(json.loads(demo_lake.with_name("lake.truth.json").read_text()))


def names(found: Results[Joinable]) -> list[tuple[str, str]]:
    return [(each.table, each.column) for each in found]


def place_of(lake: Lake, truth: dict[str, Any], planted: dict[str, Any]) -> tuple[str, str]:
    """Table and column of something planted; a column without a header goes by its place."""
    table, name = planted["table"], planted["columns"][0]
    shown = lake.columns(table)["column"].to_pylist()
    hidden = {each["table"]: each["true"] for each in truth["headers"]}
    return table, name if name in shown else shown[hidden[table].index(name)]


# --- planted joins ----------------------------------------------------------------------------------------------------


def test_planted_joins_are_found_with_their_overlap(demo_index: Lake, truth: dict[str, Any]) -> None:
    seen = 0
    for join in truth["joins"]:
        for mine, theirs, containment in (("left", "right", "left_in_right"), ("right", "left", "right_in_left")):
            query, wanted = join[mine], join[theirs]
            if len(query["columns"]) > 1:
                continue
            table, column = place_of(demo_index, truth, query)
            found = demo_index.joinable(table, column, k=1000)
            (hit,) = [each for each in found if (each.table, each.column) == place_of(demo_index, truth, wanted)]
            assert hit.overlap == join["overlap"]
            assert hit.containment == pytest.approx(join[containment])
            assert hit.low == hit.containment == hit.high
            assert hit.exact
            assert (hit.query_size, hit.size) == (join[f"{mine}_distinct"], join[f"{theirs}_distinct"])
            assert hit.reverse == pytest.approx(join["overlap"] / hit.size)
            seen += 1
    assert seen >= 20


def test_records_have_the_fields_of_the_contract(demo_index: Lake) -> None:
    found = demo_index.joinable("world/gdp_growth.csv", on="country", k=3)
    assert len(found) == 3
    assert set(FIELDS) <= set(found.to_dicts()[0])
    assert set(FIELDS) <= set(found.to_arrow().column_names)
    assert found.info["engine"]
    assert "countries.csv" in repr(found)


# --- one query in many guises -----------------------------------------------------------------------------------------


def test_a_path_a_frame_and_the_lake_itself_answer_alike(demo_index: Lake, demo_lake: Path) -> None:
    table = "world/gdp_growth.csv"
    path = demo_lake / table
    frame = pd.read_csv(path)
    guises = [str(path), path, frame, pl.read_csv(path), pa.Table.from_pandas(frame), frame.to_dict("list")]
    inside = demo_index.joinable(table, "country", k=20)
    assert len(inside) == 20
    for query in guises:
        outside = demo_index.joinable(query, "country", k=21)
        rest = [each for each in outside if each.table != table][:20]
        assert [(each.table, each.column, each.overlap) for each in rest] == [
            (each.table, each.column, each.overlap) for each in inside
        ]
        assert rest[0].coverage == pytest.approx(1.0)
        assert rest[0].cardinality == inside[0].cardinality


def test_own_columns_count_only_if_asked_for(demo_index: Lake) -> None:
    table = "world/countries.csv"
    assert all(each.table != table for each in demo_index.joinable(table, "iso2", k=500))
    own = demo_index.joinable(table, "iso2", k=500, own=True)
    assert all((each.table, each.column) != (table, "iso2") for each in own)


def test_compiled_kernels_and_numpy_answer_alike(demo_index: Lake) -> None:
    """A process that never loads numba gives the same answers."""
    script = """
import json, sys, lakescope
lake = lakescope.open(sys.argv[1])
found = [lake.joinable(*query).to_dicts() for query in json.loads(sys.argv[2])]
found.append(lake.joinable("shop/orders.csv", "customer_id", threshold=0.5, engine="lsh").to_dicts())
assert "numba" not in sys.modules, "numba was loaded for a question about the lake itself"
assert "pandas" not in sys.modules
print(json.dumps(found))
"""
    columns = demo_index.columns()
    pairs = list(zip(columns["table"].to_pylist(), columns["column"].to_pylist(), strict=True))[::29]
    ran = subprocess.run(
        [sys.executable, "-c", script, demo_index.path, json.dumps(pairs)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    plain = json.loads(ran.stdout)
    demo_index.warm()
    compiled = [demo_index.joinable(*pair) for pair in pairs]
    assert {each.info["engine"] for each in compiled} <= {"josie", "mergelist", "none"}
    compiled.append(demo_index.joinable("shop/orders.csv", "customer_id", threshold=0.5, engine="lsh"))
    assert json.loads(json.dumps([each.to_dicts() for each in compiled])) == plain


# --- thresholds -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threshold", [0.1, 0.5, 0.9, 1.0])
def test_threshold_search_finds_what_brute_force_finds(demo_index: Lake, threshold: float) -> None:
    columns = demo_index.columns()
    pairs = list(zip(columns["table"].to_pylist(), columns["column"].to_pylist(), strict=True))[::17]
    relevant = found = 0
    for table, column in pairs:
        every = demo_index.joinable(table, column, k=100_000)
        wanted = {(each.table, each.column) for each in every if each.containment >= threshold}
        exact = demo_index.joinable(table, column, threshold=threshold, engine="exact")
        assert set(names(exact)) == wanted
        verified = demo_index.joinable(table, column, threshold=threshold, engine="lsh", verify=True)
        assert set(names(verified)) <= wanted
        assert all(each.exact for each in verified)
        relevant += len(wanted)
        found += len(wanted & set(names(demo_index.joinable(table, column, threshold=threshold, engine="lsh"))))
    assert relevant > 30
    assert found / relevant >= 0.95


def test_estimates_carry_intervals(demo_index: Lake) -> None:
    held = total = 0
    for table, column in [("world/gdp_growth.csv", "country"), ("shop/orders.csv", "customer_id")]:
        truth = {name: each for each in demo_index.joinable(table, column, k=100_000) for name in names([each])}  # type: ignore[arg-type]
        for each in demo_index.joinable(table, column, threshold=0.2, engine="lsh"):
            if each.exact:
                continue
            assert each.low <= each.containment <= each.high
            total += 1
            known = truth.get((each.table, each.column))
            held += each.low - 1e-9 <= (known.containment if known else 0.0) <= each.high + 1e-9
    assert total > 10
    assert held / total >= 0.85


def test_much_larger_sets_are_never_missed(tmp_path: Path, spark: Any) -> None:
    """A query of four values in a column of 20,000: out of reach of any signature, so the column is read."""
    lake = tmp_path / "lake"
    lake.mkdir()
    (lake / "large.csv").write_text("code\n" + "".join(f"c{i:06d}\n" for i in range(20_000)))
    (lake / "small.csv").write_text("code\nc000001\nc019999\nother\n")
    built = lakescope.index(lake, tmp_path / "lake.idx", spark=spark)
    query = {"mine": ["c000001", "c000500", "c010000", "c019999"]}
    found = built.joinable(query, "mine", threshold=0.9, engine="lsh")
    assert names(found) == [("large.csv", "code")]
    assert found[0].exact
    assert found.info["out_of_reach"] == 1


def test_stages_estimate_at_once_then_tell_exactly(demo_index: Lake) -> None:
    for options in ({"k": 5}, {"threshold": 0.5}):
        first, second = demo_index.joinable_stages("shop/orders.csv", "customer_id", **options)
        assert first.info["engine"] == "lsh ensemble"
        assert all(each.exact for each in second)
        exact = demo_index.joinable("shop/orders.csv", "customer_id", engine="exact", **options)
        assert second.to_dicts() == exact.to_dicts()
        assert set(names(first)[:1]) <= set(names(second))


def test_approximate_top_is_near_the_exact_one(demo_index: Lake) -> None:
    estimated = demo_index.joinable("shop/orders.csv", "customer_id", k=3, engine="lsh")
    exact = {(each.table, each.column): each for each in demo_index.joinable("shop/orders.csv", "customer_id", k=400)}
    assert len(estimated) == 3
    for each in estimated:
        truth = exact[each.table, each.column].containment
        assert each.exact or each.low - 0.1 <= truth <= each.high + 0.1


def test_hybrid_on_the_command_line(demo_index: Lake, run: Run) -> None:
    ask = ["join", demo_index.path, "shop/orders.csv", "--on", "customer_id", "-k", "2"]
    shown = run(*ask, "--engine", "hybrid")
    assert "exactly" in shown.err
    assert shown.out.count("customer_id") > run(*ask).out.count("customer_id")
    assert run(*ask, "--engine", "hybrid", "--format", "json").out == run(*ask, "--format", "json").out


def test_costs_are_measured_once_and_kept_with_the_index(tmp_path: Path) -> None:
    dice = np.random.default_rng(1)
    sets = [[int(token) for token in dice.integers(1, 3000, 300)] for _ in range(200)]
    search = OverlapSearch(index_of_sets(tmp_path / "i", sets))
    index = Index(tmp_path / "i")
    assert stored_costs(index) is None
    costs = measure_costs(index, search)
    assert costs != Costs()
    assert min(costs.as_array()) > 0
    assert stored_costs(Index(tmp_path / "i")) == costs
    kept = next((tmp_path / "i" / "segments").rglob("costs-*.json"))
    assert not Index(tmp_path / "i").verify()
    for damage in (
        "",
        "[]",
        "{}",
        '{"per_list": -1}',
        kept.read_text().replace('"machine": "', '"machine": "another '),
    ):
        kept.write_text(damage)
        assert stored_costs(index) is None


def test_costs_of_an_index_that_may_not_be_written(tmp_path: Path) -> None:
    index_of_sets(tmp_path / "i", [[1, 2], [2, 3]])
    index = Index(tmp_path / "i")
    index.path = tmp_path / "gone"
    assert measure_costs(index, OverlapSearch(InvertedIndex(Index(tmp_path / "i")))) == Costs()
    assert stored_costs(index) is None


def test_the_engine_is_chosen_and_told(demo_index: Lake) -> None:
    few = demo_index.joinable({"x": ["France", "Italy", "Spain"]}, "x", threshold=0.5)
    assert "soon read" in few.info["why"]
    assert few[0].exact
    for engine, told in (("exact", ("mergelist",)), ("lsh", ("lsh ensemble",))):
        info = demo_index.joinable("world/gdp_growth.csv", "country", threshold=0.5, engine=engine).info
        assert info["engine"] in told
        assert info["why"] == "asked for"
        assert info["milliseconds"] > 0


def test_many_entries_are_estimated_whatever_was_measured(demo_index: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The choice rests on how often the lake holds the values: not on clocks, and not on segments."""
    asked = {"query": "world/gdp_growth.csv", "on": "country", "threshold": 0.9}
    lake = Lake.open(demo_index.path)
    joins = lake._joins
    numbers = {joins.name_of(number): number for number in joins.columns_of("world/gdp_growth.csv")}
    held, tokens = joins.lake_column(numbers["country"]).popularity
    for limit, engine in ((int(held @ tokens), "mergelist"), (int(held @ tokens) - 1, "lsh ensemble")):
        monkeypatch.setattr(joinable_module, "JOINS", replace(joinable_module.JOINS, soon_read=limit))
        for costs in (Costs(), Costs(per_list=1e9, per_entry=1e9), Costs(per_list=1e-9, per_entry=1e-9)):
            lake._joins.overlaps.set_costs(costs)
            assert lake.joinable(**asked).info["engine"] == engine


# --- no column named --------------------------------------------------------------------------------------------------


def test_without_a_column_all_plausible_ones_are_tried(demo_index: Lake) -> None:
    found = demo_index.joinable("shop/orders.csv", k=8)
    tables = [each.table for each in found]
    assert len(set(tables)) == len(tables) == 8, "one record a table"
    assert "shop/customers.csv" in tables
    assert found[0].query_column in {"customer_id", "order_id"}


@pytest.mark.parametrize("options", [{}, {"rank": "significance"}, {"engine": "lsh"}, {"threshold": 0.4}])
def test_what_is_judged_late_or_not_at_all_would_not_be_among_the_best(
    options: dict[str, Any], demo_index: Lake
) -> None:
    """The best pair of columns of each table, as if every candidate of every column had been judged."""

    def goodness(each: Joinable) -> tuple[Any, ...]:
        doubtful = each.p > SIGNIFICANCE.level and not same_key(each.query_column, each.column)
        return doubtful, -each.containment, -each.overlap, each.table, each.column, each.query_column

    for table in demo_index.tables()["table"].to_pylist()[::3]:
        best: dict[str, Joinable] = {}
        columns = [each["column"] for each in rows_of(demo_index.columns(), table).to_pylist()]
        answers = [demo_index.joinable(table, on=column, k=4, **options) for column in columns]
        plausible = {each.name for each in demo_index._query(table, None, plausible=True)[0]}
        every = [each for found in answers for each in found if each.query_column in plausible]
        for each in sorted(every, key=goodness):
            best.setdefault(each.table, each)
        found = demo_index.joinable(table, k=4, **options)
        assert list(found) == list(best.values())[:4], table
        assert {each.query_column for each in found} <= {each["column"] for each in found.info["columns"]} <= plausible


# --- chance -----------------------------------------------------------------------------------------------------------


def test_sequential_ids_are_no_surprise_and_names_are(demo_index: Lake, truth: dict[str, Any]) -> None:
    for pair in truth["chance_inclusions"]:
        found = demo_index.joinable(pair["child_table"], pair["child_columns"][0], k=100_000)
        (hit,) = [
            each for each in found if (each.table, each.column) == (pair["parent_table"], pair["parent_columns"][0])
        ]
        assert hit.p > 0.01, pair
        assert "no more than chance explains" in hit.reasons
    countries = demo_index.joinable("world/gdp_growth.csv", "country", k=1)[0]
    assert countries.p < 1e-6
    assert "no more than chance explains" not in countries.reasons


def test_significance_ranks_relations_above_coincidences(tmp_path: Path, spark: Any) -> None:
    """Row numbers overlap more than the true partner does; ranked by significance they come last."""
    lake = tmp_path / "lake"
    lake.mkdir()
    numbers = "".join(f"{i}\n" for i in range(1, 400))
    for table in "abcdef":
        (lake / f"{table}.csv").write_text("row\n" + numbers)
    skus = [str(7919 * i % 9973) for i in range(1, 200)]
    (lake / "products.csv").write_text("sku\n" + "\n".join(skus) + "\n")
    built = lakescope.index(lake, tmp_path / "lake.idx", spark=spark)
    query = {"x": [*skus[:40], *map(str, range(1, 60))]}
    assert built.joinable(query, "x", k=1)[0].table != "products.csv"
    assert built.joinable(query, "x", k=1, rank="significance")[0].table == "products.csv"


@pytest.mark.parametrize(
    ("containment", "query_size", "size", "word"),
    [
        *[(0.8, 100, 100, "high"), (0.8, 100, 500, "good"), (0.8, 100, 1000, "moderate"), (0.8, 100, 10_000, "poor")],
        *[(0.6, 100, 100, "good"), (0.3, 100, 100, "moderate"), (0.12, 100, 100, "poor"), (0.05, 100, 100, "none")],
    ],
)
def test_quality_is_a_word(containment: float, query_size: int, size: int, word: str) -> None:
    assert quality(containment, query_size, size) == word


def test_chance_judges_a_column_alike_by_its_name_and_by_its_path(demo_index: Lake, demo_lake: Path) -> None:
    """Calling codes crowd among small numbers: row numbers hold most of them, though not most of their range."""
    named, read = (
        {(each.table, each.column): each for each in demo_index.joinable(query, "calling_code", k=30)}
        for query in ("world/countries.csv", str(demo_lake / "world/countries.csv"))
    )
    assert named.keys() == read.keys(), "its own table is no find, however it is named"
    rows = ("broken/bare_cr.csv", "id")
    assert named[rows].expected == pytest.approx(read[rows].expected, rel=0.1)
    for found in (named, read):
        assert all(each.p > SIGNIFICANCE.level for each in found.values() if each.column == "id")
        assert found[rows].reasons[0] == "no more than chance explains", "what is first is never cut off"


def test_the_own_table_counts_only_if_asked(demo_index: Lake, demo_lake: Path) -> None:
    for query in ("shop/staff.csv", str(demo_lake / "shop/staff.csv")):
        assert all(each.table != "shop/staff.csv" for each in demo_index.joinable(query, "badge", k=1000))
        own = demo_index.joinable(query, "badge", k=1000, own=True)
        assert all(each.column != "badge" for each in own if each.table == "shop/staff.csv")


def test_chance_is_the_upper_tail_of_poisson() -> None:
    assert chance(0, 5.0) == 1.0
    assert chance(1, 0.0) == 0.0
    assert chance(1, 1.0) == pytest.approx(1 - np.exp(-1))
    assert chance(3, 2.0) == pytest.approx(1 - np.exp(-2) * (1 + 2 + 2))
    assert chance(100, 100.0) == pytest.approx(0.513, abs=0.01)
    assert chance(200, 10.0) < 1e-100
    assert [chance(k, 50.0) for k in range(1, 200)] == sorted((chance(k, 50.0) for k in range(1, 200)), reverse=True)


def test_null_models() -> None:
    dense = ValueRange(1, 1000, 1000)
    assert expected_by_density(np.arange(1.0, 501.0), dense) == 500
    assert expected_by_density(np.arange(2000.0, 2500.0), dense) == 0
    assert expected_by_density(ValueRange(1, 500, 500), dense) == pytest.approx(500)
    crowded = ValueRange(1, 1000, 100, cuts=(1.0, 51.0, 1000.0))
    assert expected_by_density(crowded, ValueRange(1, 50, 50)) == pytest.approx(50, abs=1)
    assert expected_by_density(
        ValueRange(1, 1000, 60, cuts=(1.0, 11.0, 1000.0)), ValueRange(1, 10, 10)
    ) == pytest.approx(10, abs=1)
    counts = ValueRange(0, 1_000_000, 200, counts=True)
    assert expected_by_density(np.arange(0.0, 10.0), counts) > 5, "small counts are expected among counts"
    assert expected_by_density(np.arange(900_000.0, 900_010.0), counts) < 0.1
    assert 200 <= counts.chances(np.arange(0.0, 1_000_001.0)).sum() <= 400
    changes = ValueRange(-1_000, 1_000_000, 2_000, counts=True)
    assert expected_by_density(np.arange(0.0, 100.0), changes) > 95, "a few losses change nothing about small gains"
    assert expected_by_density(np.arange(-10.0, 0.0), changes) > 9
    assert expected_by_density(np.arange(900_000.0, 900_010.0), changes) < 0.1
    assert 2_000 <= changes.chances(np.arange(-1_000.0, 1_000_001.0)).sum() <= 4_000
    losses = ValueRange(-1_000_000, -1, 200, counts=True)
    mirrored = ValueRange(1, 1_000_000, 200, counts=True)
    numbers = np.arange(1.0, 1_000.0)
    assert losses.chances(-numbers) == pytest.approx(mirrored.chances(numbers))
    rare = expected_by_popularity(np.array([1]), np.array([100]), np.array([50]), 1_000_000)
    common = expected_by_popularity(np.array([20_000]), np.array([100]), np.array([50]), 1_000_000)
    assert rare[0] == pytest.approx(0.005, rel=0.01)
    assert common[0] == pytest.approx(100 * (1 - 0.98**50), rel=0.01)


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 10_000), st.integers(1, 40)), min_size=1, max_size=8),
    st.integers(10_000, 10_000_000),
)
def test_a_smaller_overlap_is_never_less_likely_than_the_largest(popular: list[tuple[int, int]], pairs: int) -> None:
    frequencies, weights = (np.array(each, np.int32) for each in zip(*popular, strict=True))
    known = int(weights.sum())
    sizes = np.arange(1, known + 1)
    chances = [
        chance(size, expected)
        for size, expected in zip(
            sizes.tolist(), expected_by_popularity(frequencies, weights, sizes, pairs).tolist(), strict=True
        )
    ]
    assert min(chances) >= min(chances[-1], 0.4) * (1 - 1e-9)
    assert is_beyond_chance(frequencies, weights, pairs, chances[-1])
    assert chances[-1] == 0 or not is_beyond_chance(frequencies, weights, pairs, chances[-1] * 0.99)


# --- bad requests -----------------------------------------------------------------------------------------------------


def test_bad_requests_say_what_is_wrong(demo_index: Lake, tmp_path: Path) -> None:
    table = "world/gdp_growth.csv"
    with pytest.raises(NotFound, match="'contry'") as caught:
        demo_index.joinable(table, "contry")
    assert "'country'" in str(caught.value)
    for k in (0, -3):
        with pytest.raises(BadRequest, match="k must be at least 1"):
            demo_index.joinable(table, "country", k=k)
    for threshold in (0.0, -0.1, 1.01, float("nan")):
        with pytest.raises(BadRequest, match="threshold"):
            demo_index.joinable(table, "country", threshold=threshold)
    with pytest.raises(BadRequest, match="engine cannot be"):
        demo_index.joinable(table, "country", engine="fast")  # type: ignore[arg-type]
    with pytest.raises(BadRequest, match="rank cannot be"):
        demo_index.joinable(table, "country", rank="luck")  # type: ignore[arg-type]
    with pytest.raises(BadRequest, match="nothing at"):
        demo_index.joinable("no such table.csv", "country")
    with pytest.raises(BadRequest):
        demo_index.joinable(42, "country")
    (tmp_path / "a.csv").write_text("x\n1\n")
    (tmp_path / "b.csv").write_text("x\n1\n")
    with pytest.raises(BadRequest, match="2 tables"):
        demo_index.joinable(tmp_path, "x")


def test_queries_without_an_answer_say_so(demo_index: Lake) -> None:
    unknown = demo_index.joinable({"x": ["zzz-1", "zzz-2", "zzz-3"]}, "x")
    assert len(unknown) == 0
    assert "no column of the lake holds any of the 3 values" in unknown.notes[0]
    assert "nothing found" in repr(unknown)
    for empty in ({"x": [None, None]}, {"x": ["", "NA"]}, {"x": []}):
        found = demo_index.joinable(empty, "x")
        assert len(found) == 0
        assert "holds no values" in found.notes[0]
        assert len(demo_index.joinable(empty, "x", threshold=0.5)) == 0
    nothing = demo_index.joinable({"x": [1.5, 2.5]})
    assert "no column of the query is worth trying" in nothing.notes[0]


def test_an_index_of_profiles_only(tmp_path: Path, spark: SparkSession, run: Run) -> None:
    (tmp_path / "a.csv").write_text("x,y\n" + "".join(f"{i},v{i % 7}\n" for i in range(20_000)))
    whole = lakescope.index(tmp_path / "a.csv", tmp_path / "whole.idx", spark=spark)
    bare = lakescope.index(tmp_path / "a.csv", tmp_path / "bare.idx", spark=spark, joins=False)
    assert bare.columns().to_pylist() == whole.columns().to_pylist()
    assert bare._index.manifest.summary["jobs"] == 1
    assert {file.kind for file in bare._index.manifest.files} == {"tables", "columns", "sketches"}
    assert bare.info()["index_bytes"] < whole.info()["index_bytes"] / 4
    with pytest.raises(BadRequest, match="profiles only"):
        bare.joinable("a.csv", "x")
    assert_refused(run("join", bare.path, "a.csv"), 2, "profiles only", "--no-joins")


def test_k_beyond_the_lake_gives_all_that_overlap(demo_index: Lake) -> None:
    found = demo_index.joinable("world/gdp_growth.csv", "country", k=10**9)
    assert 0 < len(found) < demo_index.columns().num_rows
    assert all(each.overlap > 0 for each in found)


# --- many at once, further, and code ----------------------------------------------------------------------------------


def test_a_batch_on_spark_answers_like_one_by_one(
    demo_index: Lake, demo_lake: Path, spark: SparkSession, tmp_path: Path
) -> None:
    queries: list[str | tuple[str, str]] = [
        ("world/gdp_growth.csv", "country"),
        "shop/orders.csv",
        (str(demo_lake / "world/heritage_sites.csv"), "country"),
    ]
    rows = demo_index.joinable_batch(queries, spark=spark, k=5).collect()
    one = [(row.table, row.column, row.overlap) for row in rows if row.query_table == "world/gdp_growth.csv"]
    assert one == [
        (each.table, each.column, each.overlap) for each in demo_index.joinable("world/gdp_growth.csv", "country", k=5)
    ]
    assert len({row.query_column for row in rows if row.query_table == "shop/orders.csv"}) > 3
    outside = [row for row in rows if row.query_table.endswith("heritage_sites.csv")]
    assert len(outside) == 5
    with pytest.raises(NotFound, match="contry"):
        demo_index.joinable_batch([("world/gdp_growth.csv", "contry")], spark=spark)


def test_a_batch_may_be_listed_by_a_frame(demo_index: Lake, spark: SparkSession) -> None:
    listed = [("shop/orders.csv", "customer_id"), ("world/gdp_growth.csv", None)]
    wanted = demo_index.joinable_batch(listed, spark=spark, k=3).collect()
    frame = spark.createDataFrame(listed, "table string, column string")
    assert demo_index.joinable_batch(frame, spark=spark, k=3).collect() == wanted
    assert (
        demo_index.joinable_batch(pl.DataFrame(listed, ["table", "column"], orient="row"), spark=spark, k=3).collect()
        == wanted
    )
    with pytest.raises(BadRequest, match="no column 'table'"):
        demo_index.joinable_batch(pa.table({"name": ["x"]}), spark=spark)


def test_all_pairs_of_the_lake(demo_index: Lake, spark: SparkSession) -> None:
    """Above a threshold: the same pairs as brute force over the whole lake."""
    rows = demo_index.joinable_batch(spark=spark, threshold=0.9).collect()
    pairs = {(row.query_table, row.query_column, row.table, row.column) for row in rows if row.exact}
    assert len(pairs) > 200
    joins = demo_index._joins
    for number in range(0, demo_index.columns().num_rows, 13):
        query = joins.lake_column(number)
        table = joins._names[0][number]
        if query.plausible:
            wanted = {
                (table, query.name, each.table, each.column)
                for each in joins.search(query, JoinCriteria(threshold=0.9), joins.columns_of(table))
            }
            assert wanted == {pair for pair in pairs if pair[:2] == (table, query.name)}


def test_paths_lead_from_join_to_join(demo_index: Lake) -> None:
    found = demo_index.join_paths("shop/order_lines.parquet", "order_id", depth=2, threshold=0.8)
    by_table = {path.table: path for path in found}
    assert by_table["shop/orders.csv"].hops == 1
    far = by_table["shop/staff.csv"]
    assert far.joins == (
        "shop/order_lines.parquet.order_id = shop/orders.csv.order_id",
        "shop/orders.csv.taken_by = shop/staff.csv.badge",
    )
    assert far.containment == pytest.approx(1.0)
    assert "shop/order_lines.parquet" not in by_table
    assert {path.table for path in demo_index.join_paths("shop/order_lines.parquet", "order_id", depth=1)} < set(
        by_table
    )
    with pytest.raises(BadRequest, match="depth"):
        demo_index.join_paths("shop/orders.csv", depth=0)
    assert list(demo_index.join_paths(pa.table({"x": ["7"]}))) == [], "nothing that others could hold"


def test_keys_of_the_same_thing_by_name_are_believed_though_chance_explains_them(demo_index: Lake) -> None:
    """Running numbers overlap with all others; most references are of them all the same."""
    by_table = {path.table: path for path in demo_index.join_paths("shop/orders.csv", "customer_id", depth=1)}
    assert by_table["shop/customers.csv"].joins == ("shop/orders.csv.customer_id = shop/customers.csv.customer_id",)
    assert "web/page_views.jsonl" not in by_table, "user.id says nothing of customers"
    found = demo_index.join_paths("shop/orders.csv", "customer_id", depth=1)
    assert any("chance explains" in note for note in found.notes)
    ranked = demo_index.joinable("shop/orders.csv", "customer_id", k=20, rank="significance")
    places = {(each.table, each.column): place for place, each in enumerate(ranked)}
    customers = ranked[places["shop/customers.csv", "customer_id"]]
    assert customers.p > 0.01
    assert customers.reasons[0] == "no more than chance explains, but keys of the same thing by name"
    assert places["shop/customers.csv", "customer_id"] < places["web/page_views.jsonl", "user.id"]
    assert "shop/customers.csv" in {each.table for each in demo_index.joinable("shop/orders.csv", k=4)}


@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("world/heritage_sites.csv", "country"),
        ("shop/order_lines.parquet", "order_id"),
        ("crm/crm.sqlite::deals", None),
    ],
)
def test_code_for_a_join_runs(demo_index: Lake, spark: SparkSession, table: str, column: str | None) -> None:
    """DuckDB, polars and Spark keep all rows of the query, and those with a partner find it."""
    found = next(each for each in demo_index.joinable(table, column, k=20) if each.table.endswith((".csv", ".parquet")))
    rows = demo_index.profile(table).rows
    if "::" not in table:
        joined = duckdb.sql(demo_index.join_code(table, found, "duckdb")).fetchall()
        assert len(joined) >= rows
        names: dict[str, Any] = {"spark": spark}
        exec(demo_index.join_code(table, found, "spark"), names)
        assert names["joined"].count() == len(joined)
    names = {}
    exec(demo_index.join_code(table, found, "polars"), names)
    assert len(names["joined"]) >= rows
    assert f'"{found.column}"' in demo_index.join_code(table, found, "sql")
    with pytest.raises(BadRequest, match="no dialect"):
        demo_index.join_code(table, found, "cobol")


def test_code_quotes_hostile_names(tmp_path: Path, spark: SparkSession) -> None:
    lake = tmp_path / "la'ke"
    lake.mkdir()
    pl.DataFrame({"co\"l'umn": ["a", "b", "c"], "x": [1, 2, 3]}).write_parquet(lake / 'we"ird.parquet')
    built = lakescope.index(lake, tmp_path / "i.idx", spark=spark)
    query = {'my "key"': ["a", "b", "zzz"]}
    (found,) = built.joinable(query, 'my "key"')
    frame = pl.DataFrame(query)
    sql = built.join_code(frame, found, "duckdb")
    assert sorted(row[0] for row in duckdb.sql(sql.replace('"query"', "frame")).fetchall()) == ["a", "b", "zzz"]
    names: dict[str, Any] = {"query": frame}
    exec(built.join_code(frame, found, "polars"), names)
    assert len(names["joined"]) == 3


# --- the command line -------------------------------------------------------------------------------------------------


def test_the_command_prints_what_the_api_says(run: Run, demo_index: Lake, demo_lake: Path) -> None:
    known = demo_index.joinable("world/gdp_growth.csv", "country", k=4)
    wanted = json.loads(json.dumps(known.to_dicts()))
    for query in (["world/gdp_growth.csv", "--on", "country"], ["world/gdp_growth.csv.country"]):
        assert from_json(run("join", demo_index.path, *query, "-k", "4", "-f", "json").out) == wanted
    shown = run("join", demo_index.path, "world/gdp_growth.csv", "--on", "country", "-k", "4", "--explain")
    assert len(shown.out.splitlines()) == 5
    assert "engine: " in shown.err
    outside = run("join", demo_index.path, str(demo_lake / "world/gdp_growth.csv"), "--threshold", "0.9", "-f", "json")
    assert {each["query_column"] for each in from_json(outside.out)} >= {"country"}


def test_what_is_estimated_is_shown_with_its_interval(run: Run, demo_index: Lake) -> None:
    query = ("join", demo_index.path, "world/gdp_growth.csv", "--on", "country", "--engine", "lsh")
    assert {"low", "high"} <= set(run(*query, "--threshold", "0.3").out.splitlines()[0].split())
    guessed = run(*query, "-k", "12")
    assert {"low", "high"} <= set(guessed.out.splitlines()[0].split())
    assert "too large for signatures" in guessed.err
    unknown = demo_index.joinable({"zip": ["qqqx1", "qqqx2", "qqqx3"]}, "zip", engine="lsh")
    assert unknown.notes == ("no column of the lake holds any of the 3 values of 'zip'",), "nothing can be missed"
    exact = run(*query, "-k", "12", "--verify")
    assert "low" not in exact.out.splitlines()[0].split()
    known = {(each.table, each.column): each.overlap for each in demo_index.joinable(query[2], "country", k=1000)}
    for each in from_json(run(*query, "-k", "12", "--verify", "-f", "json").out):
        assert each["exact"]
        assert each["overlap"] == known[each["table"], each["column"]]


def test_paths_are_shown_whole(run: Run, demo_index: Lake) -> None:
    query = ("paths", demo_index.path, "shop/order_lines.parquet.order_id", "--depth", "2")
    shown = run(*query).out
    far = {path.table: path for path in demo_index.join_paths("shop/order_lines.parquet", "order_id", depth=2)}
    assert ", ".join(far["shop/staff.csv"].joins) in shown
    assert len(run(*query, "-k", "2").out.splitlines()) == 3
    assert_refused(run(*query, "-k", "0"), 2, "k must be")
    assert_refused(run("join", *query[1:3], "--paths", "2"), 2, "--paths is now a command: lakescope paths")


def test_nothing_in_common_is_said_without_a_column_too(run: Run, demo_index: Lake, tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("a\nzzq1\nzzq2\nzzq3\n")
    ran = run("join", demo_index.path, str(tmp_path / "mine.csv"))
    assert (ran.code, ran.out) == (0, "no column joins\n")
    assert "no column of the lake holds any value of 'a'" in ran.err


def test_the_command_refuses_what_the_api_refuses(run: Run, demo_index: Lake) -> None:
    table = "world/gdp_growth.csv"
    assert_refused(run("join", demo_index.path, table, "--on", "contry"), 2, "no column named", "'country'")
    assert_refused(run("join", demo_index.path, table, "--on", "country", "--threshold", "2"), 2, "threshold")
    assert_refused(run("join", demo_index.path, table, "--on", "country", "-k", "0"), 2, "k must be")
    assert_refused(run("join", demo_index.path, "nowhere.csv", "--on", "country"), 2, "nowhere.csv", "hint: ")
