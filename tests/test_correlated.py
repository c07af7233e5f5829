"""Correlated columns: planted ones are found and told truly, both first stages agree, bad requests are refused."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest

import lakescope
from helpers.commands import Run, assert_refused
from lakescope.build.build import build
from lakescope.engines.correlations.answers import Correlated
from lakescope.errors import BadRequest, IndexDamaged, NotFound
from lakescope.lake import Lake
from lakescope.questions.correlated import CorrelatedRequest
from lakescope.results import Results
from lakescope.tables.keyed import read_keyed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIELDS = ["table", "key", "column", "correlation", "low", "high", "p", "q", "sample", "joined_rows", "containment"]


@pytest.fixture(scope="module")
def planted(demo_lake: Path) -> list[dict[str, Any]]:
    truth = json.loads(demo_lake.with_name("lake.truth.json").read_text())
    return [each for each in truth["correlations"] if len(each["left"]["columns"]) <= 2]


def find(found: Results[Correlated], planted: dict[str, Any]) -> Correlated:
    right = planted["right"]
    for each in found:
        if (each.table, each.key, each.column) == (right["table"], ", ".join(right["columns"]), right["value"]):
            return each
    raise AssertionError(f"not found: {right}")


def joined_rows(lake: Path, planted: dict[str, Any]) -> int:
    """How many rows the join of two tables has."""
    left, right = (
        read_keyed(str(lake / each["table"]), tuple(each["columns"]), each["value"], "mean")
        for each in (planted["left"], planted["right"])
    )
    _, mine, theirs = np.intersect1d(left.hashes, right.hashes, assume_unique=True, return_indices=True)
    return int((left.rows[mine] * right.rows[theirs]).sum())


def test_planted_correlations_are_found_and_told_truly(
    demo_index: Lake, demo_lake: Path, planted: list[dict[str, Any]]
) -> None:
    held, held_sizes = [], []
    for each in planted:
        left = each["left"]
        for query in (left["table"], str(demo_lake / left["table"])):
            found = demo_index.correlated(query, left["columns"], left["value"], k=100, agg=each["aggregate"])
            hit = find(found, each)
            truth = each[hit.coefficient]
            held.append(hit.low - 1e-9 <= truth <= hit.high + 1e-9)
            assert hit.correlation == pytest.approx(truth, abs=0.12 if hit.sample > 200 else 0.3)
            assert hit.containment == pytest.approx(each["containment"], abs=0.12)
            held_sizes.append(hit.containment_low - 1e-9 <= each["containment"] <= hit.containment_high + 1e-9)
            held_sizes.append(hit.joined_rows_low <= joined_rows(demo_lake, each) <= hit.joined_rows_high)
            assert list(FIELDS) == [name for name in FIELDS if hasattr(hit, name)]
    assert len(held) > 20
    assert np.mean(held) >= 0.9
    assert np.mean(held_sizes) >= 0.9


def test_exact_where_all_keys_were_seen(demo_index: Lake, planted: list[dict[str, Any]]) -> None:
    seen = 0
    for each in planted:
        left = each["left"]
        hit = find(
            demo_index.correlated(left["table"], left["columns"], left["value"], k=100, agg=each["aggregate"]), each
        )
        if hit.exact:
            seen += 1
            assert hit.correlation == pytest.approx(each[hit.coefficient], abs=1e-9)
            assert hit.low == pytest.approx(hit.high)
    assert seen >= 3


def test_verify_does_the_real_join(demo_index: Lake, demo_lake: Path, planted: list[dict[str, Any]]) -> None:
    for each in planted[:4]:
        left = each["left"]
        found = demo_index.correlated(
            str(demo_lake / left["table"]), left["columns"], left["value"], k=100, agg=each["aggregate"], verify=True
        )
        hit = find(found, each)
        assert hit.verified == pytest.approx(each[hit.coefficient], abs=1e-6)
        assert hit.verified_rows == joined_rows(demo_lake, each)
        assert {"verified", "verified_rows"} <= set(found.shown)


def test_a_shared_trend_is_told(demo_index: Lake, demo_lake: Path) -> None:
    query = str(demo_lake / "economy/streaming_subscribers.csv")
    hit = demo_index.correlated(query, "month", "subscribers_thousand")[0]
    assert hit.column == "tonnes"
    assert hit.correlation > 0.9
    assert hit.partial is not None
    assert abs(hit.partial) < 0.3
    assert "trend" in hit.reasons[0]


def test_the_own_table_counts_only_if_asked(demo_index: Lake, demo_lake: Path) -> None:
    for query in ("mobility/bike_rides_daily.csv", str(demo_lake / "mobility/bike_rides_daily.csv")):
        assert all(
            each.table != "mobility/bike_rides_daily.csv" for each in demo_index.correlated(query, "date", "rides")
        )
        own = demo_index.correlated(query, "date", "rides", own=True)
        assert any(each.table == "mobility/bike_rides_daily.csv" for each in own)


def test_keys_in_another_order_join(demo_index: Lake, demo_lake: Path) -> None:
    query = str(demo_lake / "world/gdp_growth.csv")
    one = demo_index.correlated(query, ["country", "year"], "gdp_growth_pct")
    other = demo_index.correlated(query, ["year", "country"], "gdp_growth_pct")
    assert len(one) >= 3
    assert [(each.table, each.column, each.correlation) for each in one] == [
        (each.table, each.column, each.correlation) for each in other
    ]


@pytest.mark.parametrize("agg", ["mean", "count"])
def test_code_joins_keys_as_they_were_found(demo_index: Lake, demo_lake: Path, agg: str) -> None:
    """Columns of a key in another order meet those that they were found to meet; the query has its own aggregate."""
    query, key = str(demo_lake / "world/gdp_growth.csv"), ["year", "country"]
    found = demo_index.correlated(query, key, "gdp_growth_pct", k=3, agg="mean", verify=True)
    assert found
    for each in found:
        told = replace(each, aggregate=agg)
        code = demo_index.correlation_code(query, key, told, "duckdb", target="gdp_growth_pct")
        row = duckdb.connect().execute(code).fetchone()
        assert row is not None
        assert row[1] > 1000
        if agg == each.aggregate and each.coefficient == "pearson":
            assert row[0] == pytest.approx(each.verified, abs=1e-6)
        assert ("COUNT(TRY" in code) == (agg == "count")
        assert 'AVG(TRY_CAST("gdp_growth_pct"' in code
        summed = demo_index.correlation_code(query, key, told, "duckdb", target="gdp_growth_pct", query_agg="sum")
        assert 'SUM(TRY_CAST("gdp_growth_pct"' in summed


def test_tables_of_the_lake_know_the_trend_of_their_keys_too(demo_index: Lake, demo_lake: Path) -> None:
    """Days and years are told by their hashes: what is left without a trend is what reading the table says."""
    for table, key, target in (
        ("mobility/bike_rides_daily.csv", "date", "rides"),
        ("world/gdp_growth.csv", "year", "gdp_growth_pct"),
    ):
        named = {(each.table, each.key, each.column): each for each in demo_index.correlated(table, key, target, k=100)}
        read = demo_index.correlated(str(demo_lake / table), key, target, k=100)
        same = [each for each in read if (each.table, each.key, each.column) in named]
        assert len(same) >= 3
        for each in same:
            other = named[each.table, each.key, each.column]
            if other.sample == each.sample:
                assert other.partial == pytest.approx(each.partial, abs=1e-9)
    swapped = demo_index.correlated("world/gdp_growth.csv", ["year", "country"], "gdp_growth_pct", k=3)
    assert swapped == demo_index.correlated("world/gdp_growth.csv", ["country", "year"], "gdp_growth_pct", k=3)


@pytest.mark.parametrize("retrieval", ["z", "qcr", "csk"])
def test_compiled_and_plain_first_stages_agree(
    demo_index: Lake, demo_lake: Path, retrieval: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    demo_index.warm()
    search = demo_index._correlations
    for query, key, target in (
        ("mobility/bike_rides_daily.csv", ["date"], "rides"),
        ("world/gdp_growth.csv", ["country", "year"], "gdp_growth_pct"),
        ("schools/staffing.csv", ["school"], "pupils_per_teacher"),
    ):
        keyed = read_keyed(str(demo_lake / query), key, target, "mean")
        met = 0
        for variant, keys in search._candidates(keyed):
            probes = variant.hashes[:1024], variant.values[:1024]
            fast = search.quadrants(*probes, keys, retrieval)  # type: ignore[arg-type]
            with monkeypatch.context() as patched:
                patched.setattr("lakescope.engines.correlations.correlated.kernels_are_loaded", lambda: False)
                slow = search.quadrants(*probes, keys, retrieval)  # type: ignore[arg-type]
            ways = []
            for which in (keys, None) if len(key) == 1 else (keys,):
                ways.append(search.count_pairs(*probes, which, retrieval, query))  # type: ignore[arg-type]
                with monkeypatch.context() as patched:
                    patched.setattr("lakescope.engines.correlations.correlated.kernels_are_loaded", lambda: False)
                    ways.append(search.count_pairs(*probes, which, retrieval, query))  # type: ignore[arg-type]
            tables = {search.sketches.tables[search.sketches.owners[pair]] for pair in ways[0][0].tolist()}
            assert query not in tables
            listed = [sorted(zip(*(each.tolist() for each in way), strict=True)) for way in ways]
            assert all(each == listed[0] for each in listed)
            pairs = np.flatnonzero(fast[0] + fast[1])
            joined = search.join(variant, pairs, "sum")
            with monkeypatch.context() as patched:
                patched.setattr("lakescope.engines.correlations.correlated.kernels_are_loaded", lambda: False)
                plain = search.join(variant, pairs, "sum")
            for name in ("keys", "containment"):
                assert getattr(joined, name).tolist() == getattr(plain, name).tolist()
            assert [each.tolist() for each in joined.rows] == [each.tolist() for each in plain.rows]
            assert np.array_equal(joined.samples.x, plain.samples.x)
            assert np.array_equal(joined.samples.y, plain.samples.y)
            assert fast[0].tolist() == slow[0].tolist()
            assert fast[1].tolist() == slow[1].tolist()
            met += int(fast[0].sum())
        assert met


@pytest.mark.parametrize("measure", ["pearson", "spearman", "rin", "qn", "pm1", "kendall", "qcr"])
@pytest.mark.parametrize("rank", ["lower", "s1", "s2", "s3", "s4"])
def test_every_measure_and_rank_answers(demo_index: Lake, measure: str, rank: str) -> None:
    found = demo_index.correlated("mobility/bike_rides_daily.csv", "date", "rides", k=3, measure=measure, rank=rank)  # type: ignore[arg-type]
    assert len(found) == 3
    assert all(-1 <= each.low <= each.correlation + 1e-9 <= each.high + 2e-9 <= 1 + 2e-9 for each in found)
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)


@pytest.mark.parametrize("agg", ["mean", "sum", "min", "max", "count", "first", "last"])
def test_every_aggregate_is_that_of_a_real_join(demo_index: Lake, demo_lake: Path, agg: str) -> None:
    query = str(demo_lake / "schools/staffing.csv")
    found = demo_index.correlated(query, "school", "pupils_per_teacher", k=50, agg=agg, verify=True)
    assert any(each.table == "schools/test_scores.parquet" for each in found)
    for each in found:
        if each.exact and each.verified is not None and not np.isnan(each.verified):
            assert each.correlation == pytest.approx(each.verified, abs=1e-9)


def test_weights_trade_correlation_for_joinability(demo_index: Lake) -> None:
    ask = ("mobility/bike_rides_daily.csv", "date", "rides")
    joins = demo_index.correlated(*ask, k=5, weight_join=1, weight_corr=0)
    assert [each.containment for each in joins] == sorted((each.containment for each in joins), reverse=True)
    for mean in ("arithmetic", "geometric", "harmonic"):
        both = demo_index.correlated(*ask, k=5, weight_join=1, mean=mean)  # type: ignore[arg-type]
        assert len(both) == 5


def test_pictures_code_and_augmented_tables(demo_index: Lake, demo_lake: Path, tmp_path: Path) -> None:
    query = str(demo_lake / "mobility/bike_rides_daily.csv")
    found = demo_index.correlated(query, "date", "rides")
    best = next(each for each in found if each.table == "retail/ice_cream_sales.csv")
    picture = demo_index.scatter(query, "date", "rides", best)
    assert picture.count('h0"><title>') == best.sample
    code = demo_index.correlation_code(query, "date", best, "duckdb", target="rides")
    row = duckdb.connect().execute(code).fetchone()
    assert row is not None
    polars_code = demo_index.correlation_code(query, "date", best, "polars", target="rides")
    scope: dict[str, Any] = {}
    exec(polars_code, scope)
    assert scope["coefficient"] == pytest.approx(row[0])
    assert scope["joined"].height == row[1]
    out = tmp_path / "more.parquet"
    added = demo_index.augment(query, "date", "rides", out, k=3)
    table = pq.read_table(out)
    assert table.num_rows == pl.read_csv(query).height
    assert table.column_names[-3:] == [each.name for each in added]
    assert [each.explains for each in added] == sorted(each.explains for each in added)
    assert 0.7 < added[-1].explains <= 1
    values = np.array(table[added[0].name].to_pylist(), float)
    rides = np.array(table["rides"].to_pylist(), float)
    kept = np.isfinite(values) & np.isfinite(rides)
    assert abs(np.corrcoef(values[kept], rides[kept])[0, 1]) > 0.7


def test_nothing_is_said_with_a_reason(demo_index: Lake, tmp_path: Path) -> None:
    cases = {
        "constant": ("date,x\n" + "".join(f"2024-01-{d:02d},5\n" for d in range(1, 29)), "the same for every key"),
        "few": ("date,x\n2024-01-01,1\n2024-01-02,2\n", "2 keys only"),
        "one key": ("date,x\n" + "2024-01-01,1\n2024-01-01,2\n" * 10, "1 keys only"),
        "unknown": ("date,x\n" + "".join(f"nowhere {d},{d}\n" for d in range(40)), "shares 5 keys"),
    }
    for name, (text, why) in cases.items():
        path = tmp_path / f"{name}.csv"
        path.write_text(text)
        found = demo_index.correlated(str(path), "date", "x")
        assert not found
        assert why in found.notes[0]


def test_huge_and_tiny_numbers(demo_index: Lake, demo_lake: Path, tmp_path: Path) -> None:
    frame = pl.read_csv(demo_lake / "mobility/bike_rides_daily.csv")
    plain = demo_index.correlated(frame, "date", "rides", k=3)
    for scale in (1e-250, 1e250):
        scaled = frame.with_columns((pl.col("rides").cast(pl.Float64) * scale).alias("rides"))
        found = demo_index.correlated(scaled, "date", "rides", k=3)
        assert [each.correlation for each in found] == pytest.approx([each.correlation for each in plain], abs=1e-6)
        out = tmp_path / f"{scale}.parquet"
        added = demo_index.augment(scaled, "date", "rides", out, 2)
        assert [each.explains for each in added] == pytest.approx(
            [each.explains for each in demo_index.augment(frame, "date", "rides", out, 2)], abs=1e-6
        )


@pytest.mark.parametrize("measure", ["qn", "kendall"])
def test_differences_of_the_largest_numbers_are_numbers(demo_index: Lake, demo_lake: Path, measure: str) -> None:
    frame = pl.read_csv(demo_lake / "mobility/bike_rides_daily.csv")
    middle = pl.col("rides").cast(pl.Float64) - frame["rides"].mean()
    scaled = frame.with_columns((middle / middle.abs().max() * 1.7e308).alias("rides"))
    plain, found = (demo_index.correlated(each, "date", "rides", k=3, measure=measure) for each in (frame, scaled))
    assert [each.correlation for each in found] == pytest.approx([each.correlation for each in plain], abs=1e-6)


def test_what_is_told_of_a_coefficient(demo_index: Lake, demo_lake: Path) -> None:
    """No end of an interval is on the wrong side by rounding; Pearson's is there where ranks are told."""
    path = demo_lake / "mobility/bike_rides_daily.csv"
    found = demo_index.correlated(pl.read_csv(path).head(40), "date", "rides", k=20, own=True)
    assert any(abs(each.correlation) == pytest.approx(1) for each in found)
    assert all(each.low <= each.correlation <= each.high for each in found)
    ranks = [each for each in demo_index.correlated(str(path), "date", "rides", k=30) if each.coefficient == "spearman"]
    assert ranks
    assert any(abs(each.pearson - each.correlation) > 0.05 for each in ranks)
    for each in ranks:
        assert each.correlation == each.spearman
    best = next(each for each in ranks if each.exact)
    theirs = read_keyed(str(demo_lake / best.table), best.key_columns, best.column, "mean")
    mine = read_keyed(str(path), ["date"], "rides", "mean")
    _, left, right = np.intersect1d(mine.hashes, theirs.hashes, return_indices=True)
    both = np.isfinite(mine.values[left]) & np.isfinite(theirs.values[right])
    truth = np.corrcoef(mine.values[left][both], theirs.values[right][both])[0, 1]
    assert best.pearson == pytest.approx(truth, abs=1e-6)
    assert {"coefficient", "p", "aggregate"} <= set(demo_index.correlated(str(path), "date", "rides").shown)
    left = demo_index.correlated(str(path), "date", "rides", given="member_rides")
    assert "partial" in left.shown


def test_bad_requests_are_refused(demo_index: Lake, demo_lake: Path, run: Run) -> None:
    query = str(demo_lake / "shop/orders.csv")
    with pytest.raises(NotFound, match="no column named 'customer'"):
        demo_index.correlated(query, "customer", "total")
    with pytest.raises(BadRequest, match="not a column of numbers") as refused:
        demo_index.correlated(query, "customer_id", "status")
    assert "total" in str(refused.value.hint)
    with pytest.raises(BadRequest, match="both key and target"):
        demo_index.correlated(query, "order_id", "order_id")
    with pytest.raises(BadRequest, match="both key and target"):
        demo_index.correlated("shop/orders.csv", "order_id", "order_id")
    with pytest.raises(BadRequest, match="explains all of itself"):
        demo_index.correlated(query, "customer_id", "total", given="total")
    with pytest.raises(BadRequest, match="holds decimals"):
        demo_index.correlated(query, "total", "order_id")
    with pytest.raises(BadRequest, match="one column or two"):
        demo_index.correlated(query, ["a", "b", "c"], "total")
    with pytest.raises(BadRequest, match="'a' twice"):
        demo_index.correlated(query, ["a", "a"], "total")
    with pytest.raises(NotFound, match="key") as refused:
        demo_index.correlated("shop/orders.csv", "total", "order_id")
    assert "path of the file" in str(refused.value.hint)
    for wrong in ({"k": 0}, {"measure": "x"}, {"agg": "x"}, {"rank": "x"}, {"retrieval": "x"}, {"mean": "x"}):
        with pytest.raises(BadRequest):
            demo_index.correlated(query, "customer_id", "total", **wrong)  # type: ignore[arg-type]
    for none in ("0", "-3"):
        told = run("correlate", demo_index.path, query, "--key", "customer_id", "--target", "total", "-k", none)
        assert_refused(told, 2, f"k must be at least 1, not {none}")
    for weight in (0.0, float("nan"), float("inf"), -1.0):
        with pytest.raises(BadRequest, match="weight"):
            CorrelatedRequest(query=query, weight_join=weight, weight_corr=0)
    with pytest.raises(BadRequest, match="cannot write"):
        demo_index.augment(query, "customer_id", "total", "out.xyz")
    ask = ["correlate", demo_index.path, query, "--key", "customer_id", "--target"]
    assert_refused(run(*ask, "status"), 2, "not a column of numbers")
    assert_refused(run(*ask, "total", "--weight", "join=1"), 2, "--weight is now two options: --weight-join 1")
    assert_refused(run(*ask, "total", "--plot", "nowhere/best.svg"), 2, "cannot write nowhere/best.svg")
    assert_refused(run(*ask, "total", "--plot", "best.png"), 2, "cannot write best.png")


def test_the_command_line(demo_index: Lake, demo_lake: Path, run: Run, tmp_path: Path) -> None:
    query = str(demo_lake / "mobility/bike_rides_daily.csv")
    ask = ["correlate", demo_index.path, query, "--key", "date", "--target", "rides", "-k", "3"]
    records = json.loads(run(*ask, "--format", "json").out)
    assert [each["column"] for each in records] == [
        each.column for each in demo_index.correlated(query, "date", "rides", k=3)
    ]
    picture = tmp_path / "best.svg"
    shown = run(*ask, "--plot", str(picture), "--explain")
    assert "looked_at" in shown.err
    assert picture.read_text().startswith("<svg")
    assert "CORR" in run(*ask, "--code", "duckdb").out
    out = tmp_path / "more.csv"
    added = run("augment", demo_index.path, query, "--key", "date", "--target", "rides", "--out", str(out), "-k", "2")
    assert added.code == 0
    swapped = run("augment", query, demo_index.path, "--key", "date", "--target", "rides")
    assert_refused(swapped, 2, f"the index comes first: {demo_index.path}")
    assert f"lakescope augment {demo_index.path} {query}" in swapped.err
    told = run("augment", demo_index.path, query, "-k", "2", "--format", "json")
    assert [each["column"] for each in json.loads(told.out)] == [each["column"] for each in records[:2]]
    assert "asked about 'rides' by the key 'date'" in told.err
    assert len(pl.read_csv(out, infer_schema=False).columns) == len(pl.read_csv(query).columns) + 2


def test_an_index_without_joins_says_so(tmp_path: Path, spark: SparkSession) -> None:
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "a.csv").write_text("k,x\n" + "".join(f"k{i},{i}\n" for i in range(20)))
    lake = lakescope.index(tmp_path / "lake", tmp_path / "i", spark=spark, joins=False)
    with pytest.raises(BadRequest, match="profiles only"):
        lake.correlated("a.csv", "k", "x")


def test_all_pairs_of_the_lake_on_spark(demo_index: Lake, spark: SparkSession) -> None:
    rows = demo_index.correlated_batch(spark=spark, k=3).collect()
    assert len({(row.query_table, row.query_key, row.query_column) for row in rows}) > 100
    mine = [row for row in rows if (row.query_table, row.query_column) == ("mobility/bike_rides_daily.csv", "rides")]
    by_date = [row for row in mine if row.query_key == "date"]
    one = demo_index.correlated("mobility/bike_rides_daily.csv", "date", "rides", k=3)
    assert [(row.table, row.column) for row in by_date] == [(each.table, each.column) for each in one]
    # Workers add up by kernels, a process that asks one question by numpy.
    assert [row.correlation for row in by_date] == pytest.approx([each.correlation for each in one], rel=1e-12)


@pytest.mark.parametrize("kind", ["keys", "pairs"])
def test_damaged_sketches_are_refused_by_name(demo_index: Lake, tmp_path: Path, kind: str) -> None:
    shutil.copytree(demo_index.path, tmp_path / "i")
    path = next((tmp_path / "i" / "segments").rglob(f"{kind}-*.arrow"))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(IndexDamaged, match=path.name):
        lakescope.open(tmp_path / "i").correlated("mobility/bike_rides_daily.csv", "date", "rides")


def test_names_with_separators_are_names(tmp_path: Path, spark: SparkSession) -> None:
    """Columns whose names hold commas or control characters, in tables read whole and in pieces."""
    (tmp_path / "lake").mkdir()
    for name, sign in (("a", 1), ("b", -1)):
        rows = "".join(f"key {i},{i % 7},{sign * i}.5\n" for i in range(400))
        (tmp_path / "lake" / f"{name}.csv").write_text('"k, e\x1fy",n,"v, 1"\n' + rows)
    for unit_bytes in (1 << 26, 2000):
        build([str(tmp_path / "lake")], tmp_path / "i", spark=spark, unit_bytes=unit_bytes)
        lake = lakescope.open(tmp_path / "i")
        query = str(tmp_path / "lake" / "a.csv")
        found = lake.correlated(query, "k, e\x1fy", "v, 1", verify=True)
        assert (found[0].table, found[0].key_columns) == ("b.csv", ("k, e\x1fy",))
        assert found[0].verified == pytest.approx(-1, abs=1e-5)
        assert lake.scatter(query, "k, e\x1fy", "v, 1", found[0]).count('h0"><title>') == 400
