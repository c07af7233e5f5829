"""Dependencies on Spark, of whole lakes, and what is done with them: the study, imputations, splitting tables."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lakescope
from helpers.commands import Run, assert_refused, from_json
from lakescope.engines.dependencies import batch, distributed, find, table
from lakescope.engines.dependencies.answers import ORDERS
from lakescope.engines.dependencies.compare import compare
from lakescope.engines.dependencies.split import splits
from lakescope.engines.dependencies.table import read
from lakescope.engines.dependencies.violations import violations
from lakescope.errors import BadRequest, NotFound
from lakescope.studies.impute import METHODS, imputed
from lakescope.studies.missing_values import auc, precision, study, write_report
from lakescope.studies.reference import reference

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakescope.lake import Lake

TABLES = Path(__file__).parent / "tables"


def told(found: Any) -> dict[Any, Any]:
    return {
        (each.lhs, each.rhs): (
            *(each.degree, each.holds, each.flags, each.reasons),
            *(None if each.score is None else round(value, 9) for value in (each.score, each.pv, each.pt)),
        )
        for each in found
    }


def damaged(rows: int, seed: int = 1) -> pa.Table:
    """Columns with planted dependencies and missing values."""
    dice = np.random.default_rng(seed)
    a, b, c = (dice.integers(0, size, rows) for size in (40, 12, 5))
    made = {"a": a, "b": b, "ab": a * 12 + b, "a2": a // 2, "c": c, "bc": (b + c) % 7, "d": dice.integers(0, 9, rows)}
    lacking = ("c", "d", "bc")
    return pa.table(
        {name: pa.array(values, mask=(dice.random(rows) < 0.02) & (name in lacking)) for name, values in made.items()}
    )


# --- on Spark ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nulls", ["equal", "distinct", "skip"])
def test_spark_finds_what_memory_does(
    nulls: Any, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a sample so small that most candidates fail on the table first."""
    monkeypatch.setattr(distributed, "SPARK", replace(distributed.SPARK, rows=25))
    made = damaged(900)
    path = tmp_path / "t.csv"
    pyarrow.csv.write_csv(made, path)
    wanted = lakescope.dependencies(made, nulls, 3, scored=0)
    found = lakescope.dependencies(str(path), nulls, 3, spark=spark)
    assert told(found) == told(wanted)
    assert len(found) > 5
    assert found.info["rounds"] > 1
    assert any("of 900 rows" in note for note in found.notes)


def test_spark_finds_approximate_ones_and_reads_frames(spark: SparkSession) -> None:
    made = damaged(600)
    frame = spark.createDataFrame(made.to_pylist(), ", ".join(f"{name} bigint" for name in made.column_names))
    wanted = lakescope.dependencies(made, max_lhs=2, error=0.06, scored=0)
    found = lakescope.dependencies(frame, max_lhs=2, error=0.06, spark=spark)
    assert told(found) == told(wanted)
    assert any(each.degree for each in found)


def test_a_file_in_pieces_is_the_same_as_whole(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.csv"
    pyarrow.csv.write_csv(damaged(2_000), path)
    wanted = told(lakescope.dependencies(str(path), spark=spark))
    monkeypatch.setattr("lakescope.build.dependencies.UNIT_BYTES", 8_192)
    assert told(lakescope.dependencies(str(path), spark=spark)) == wanted


def test_pieces_that_do_not_meet_are_read_as_a_whole(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A quote in the middle of cells misleads the cutting of a file into ranges."""
    lines = ["a,b,c", *(f'{i % 7},"x\n5"" inch, {i % 7}",{i}' for i in range(3_000))]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(lines) + "\n")
    wanted = told(lakescope.dependencies(str(path), scored=0))
    monkeypatch.setattr("lakescope.build.dependencies.UNIT_BYTES", 1_111)
    assert told(lakescope.dependencies(str(path), spark=spark)) == wanted


def test_one_job_for_a_round_and_one_for_scores(spark: SparkSession, tmp_path: Path) -> None:
    """The number of Spark jobs follows from rounds, not from candidates or rows."""
    jobs = []
    for rows in (300, 3_000):
        path = tmp_path / f"{rows}.csv"
        pyarrow.csv.write_csv(damaged(rows).select(["a", "a2", "b"]), path)
        group = f"dependencies-{rows}"
        spark.sparkContext.setJobGroup(group, group)
        try:
            found = lakescope.dependencies(str(path), spark=spark)
        finally:
            spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
        assert found.info["rounds"] <= 3
        jobs.append(len(spark.sparkContext.statusTracker().getJobIdsForGroup(group)))
    assert jobs[0] == jobs[1]
    assert jobs[0] <= 12


def test_what_spark_cannot_be_asked(spark: SparkSession) -> None:
    with pytest.raises(BadRequest, match="lies in this process"):
        lakescope.dependencies(damaged(5), spark=spark)
    with pytest.raises(BadRequest, match="nulls cannot be"):
        lakescope.dependencies(damaged(5), "no", spark=spark)  # type: ignore[arg-type]


def test_tables_too_large_for_memory_go_to_spark(
    run: Run, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.csv"
    pyarrow.csv.write_csv(damaged(100), path)
    monkeypatch.setattr(table.read, "__kwdefaults__", {"texts": False, "most_cells": 500})
    with pytest.raises(table.TooLarge, match="more than 500 cells"):
        lakescope.dependencies(damaged(100))
    ran = run("fds", str(path), "--format", "json", "--limit", "0")
    assert "on Spark" in ran.err
    assert any(each["rhs"] == "a2" for each in from_json(ran.out))


def test_every_table_of_a_lake(
    run: Run, demo_index: Lake, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = demo_index.dependencies_batch(max_lhs=2, spark=spark).collect()
    tables = demo_index.tables()["table"].to_pylist()
    assert {row["table"] for row in found} <= set(tables)
    assert len({row["table"] for row in found}) > 0.9 * len(tables)  # few have none at all
    alone = lakescope.dependencies(demo_index.location("quality/addresses_clean.csv"), max_lhs=2)
    mine = [row for row in found if row["table"] == "quality/addresses_clean.csv"]
    assert {(tuple(row["lhs"]), row["rhs"], row["degree"]) for row in mine} == {
        (each.lhs, each.rhs, each.degree) for each in alone
    }
    unread = [row for row in found if "unread" in row["flags"]]
    assert any("truncated" in row["table"] for row in unread)
    out = tmp_path / "all.parquet"
    ran = run("fds", "lake", demo_index.path, "--max-lhs", "1", "--limit", "5", "--out", str(out), "--format", "json")
    records = from_json(ran.out)
    assert len(records) == 5
    assert records == sorted(records, key=lambda each: -each["score"])
    assert "could not be read" in ran.err
    assert pyarrow.parquet.read_table(out).num_rows > 100
    assert_refused(run("fds", "lake", demo_index.path, "--out", str(out)), 2, "is there already")


def test_tables_too_large_for_a_worker_are_asked_for_alone(
    run: Run, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lake").mkdir()
    pyarrow.csv.write_csv(damaged(400), tmp_path / "lake" / "t.csv")
    lake = lakescope.index(tmp_path / "lake", tmp_path / "l.idx", spark=spark, joins=False)
    monkeypatch.setattr(
        batch, "BATCH", replace(batch.BATCH, cells=1_000)
    )  # the driver's own; workers are told by the task
    task = batch.FindDependencies(lake.path, 1, {"max_lhs": 1}, ())
    (flagged,) = next(task(iter([pa.record_batch({"id": [0]})]))).to_pylist()
    assert flagged["flags"] == ["large"]
    assert "1,000 cells" in flagged["reasons"][0]


# --- tables within files ----------------------------------------------------------------------------------------------


def test_one_table_of_a_file_that_holds_several(tmp_path: Path) -> None:
    import sqlite3

    path = tmp_path / "shop.sqlite"
    with sqlite3.connect(path) as made:
        made.execute("create table orders (id integer, zip text, city text)")
        made.executemany("insert into orders values (?, ?, ?)", [(i, str(i % 3), f"c{i % 3}") for i in range(9)])
        made.execute("create table empty (x integer)")
    made.close()
    found = lakescope.dependencies(f"{path}::orders")
    assert {(each.lhs, each.rhs) for each in found if not each.flags} == {(("zip",), "city"), (("city",), "zip")}
    with pytest.raises(BadRequest, match=r"holds 2 tables: .*::orders"):
        lakescope.dependencies(str(path))
    with pytest.raises(NotFound, match="'order'"):
        lakescope.dependencies(f"{path}::order")


# --- bad input --------------------------------------------------------------------------------------------------------


def test_duplicate_rows_break_nothing() -> None:
    made = damaged(50)
    twice = pa.concat_tables([made, made])
    once = {(each.lhs, each.rhs): each.flags for each in lakescope.dependencies(made, max_lhs=2)}
    found = lakescope.dependencies(twice, max_lhs=2)
    # Keys stay keys: that a row is there twice says nothing about what determines what.
    assert {(each.lhs, each.rhs): each.flags for each in found} == once
    assert any("key" in flags for flags in once.values())
    assert any("50 of 100 rows repeat others" in note for note in found.notes)


def test_mixed_types_in_a_column_are_values_like_any(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,x\n1.0,x\none,y\n2020-01-01,z\none,y\n2020-01-01,z\n")
    found = {(each.lhs, each.rhs): each for each in lakescope.dependencies(str(path))}
    assert not found[("a",), "b"].flags


@pytest.mark.parametrize("rows", [[], [(1, 2)], [(None, None), (None, None), (None, None)]])
def test_nothing_holds_vacuously_without_a_flag(rows: list[tuple[int | None, int | None]]) -> None:
    made = pa.table({"a": pa.array([a for a, _ in rows], pa.int64()), "b": pa.array([b for _, b in rows], pa.int64())})
    for nulls in ("equal", "distinct", "skip"):
        found = lakescope.dependencies(made, nulls)  # type: ignore[arg-type]
        assert all(each.flags for each in found), (nulls, found)


def test_texts_for_no_value_are_values_like_any() -> None:
    made = pa.table({"a": ["999.0", "1", "2"], "b": ["x", "unknown", "y"]})
    coded = read(made, ["999", "unknown", "never"])
    assert coded.missing().tolist() == [1, 1]
    assert coded.unmet == ("never",)
    assert read(made, "unknown").missing().tolist() == [0, 1]
    noted = lakescope.dependencies(made, missing=["never"])
    assert any("no cell reads 'never'" in note for note in noted.notes)


def test_approximate_ones_without_scores_are_not_called_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find, "RANKING", replace(find.RANKING, scoring=0.0))
    found = lakescope.dependencies(damaged(200), error=0.3, max_lhs=1, budget=60.0)
    assert {(each.degree, each.holds) for each in found} == {(None, ())}
    assert found.to_arrow().num_rows == len(found)


def test_no_rows_are_no_numbers(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n")
    assert "NaN" not in run("fds", str(path), "--format", "json").out


# --- order ------------------------------------------------------------------------------------------------------------


def test_answers_in_the_order_that_is_asked_for() -> None:
    made = damaged(300)
    for by in ORDERS:
        found = [each for each in lakescope.dependencies(made, error=0.1, max_lhs=2, by=by) if not each.flags]
        values = [getattr(each, by) for each in found]
        assert values == sorted(values, reverse=True)
        assert len(values) > 3
    with pytest.raises(BadRequest, match="by cannot be"):
        lakescope.dependencies(made, by="luck")  # type: ignore[arg-type]


# --- the study --------------------------------------------------------------------------------------------------------


def test_the_study_tells_what_missing_values_do(tmp_path: Path) -> None:
    found = study(str(TABLES / "iris.csv"), (0.0, 0.1, 0.3), versions=4)
    effects = {(each.missing, each.nulls): each for each in found}
    assert found.info["candidates"] == 75
    for nulls in ("equal", "distinct", "skip"):
        assert (effects[0.0, nulls].same, effects[0.0, nulls].jaccard, effects[0.0, nulls].exact) == (1.0, 1.0, 5.0)
        assert effects[0.3, nulls].same < effects[0.1, nulls].same < 1
        assert math.isclose(sum(getattr(effects[0.3, nulls], each) for each in ("same", "ghost", "fake")), 1.0)
    # Section 4.10: rows that are left out hide what breaks a dependency, so nothing becomes a ghost.
    assert effects[0.3, "skip"].ghost == 0
    assert effects[0.3, "skip"].rows < 60
    scored = effects[0.3, "equal"]
    assert scored.pv_auc is not None
    assert 0.7 < scored.pv_auc <= 1
    assert effects[0.3, "skip"].pv_auc is None
    assert study(str(TABLES / "iris.csv"), (0.3,), versions=2) == study(str(TABLES / "iris.csv"), (0.3,), versions=2)
    page = write_report(tmp_path / "report", found).read_text()
    assert page.count("<svg") == 6
    assert len(json.loads((tmp_path / "report" / "study.json").read_text())) == len(found)


def test_missing_values_on_the_left_and_on_the_right() -> None:
    """Section 4.10: on the right they raise degrees under null ≠ null (ghosts), and lower them under null = null."""
    made = pa.table({"x": [i % 10 for i in range(200)], "y": [i % 5 if i % 9 else 7 for i in range(200)]})
    right = {each.nulls: each for each in study(made, (0.4,), "target", target=["y"], versions=5)}
    left = {each.nulls: each for each in study(made, (0.4,), "target", target=["x"], versions=5)}
    assert right["distinct"].ghost > 0
    assert left["distinct"].fake > 0


def test_what_cannot_be_studied() -> None:
    made = damaged(20)
    with pytest.raises(NotFound, match="'nowhere'"):
        study(made, (0.1,), "target", target=["nowhere"])
    with pytest.raises(BadRequest, match="one version"):
        study(made, (0.1,), versions=0)
    with pytest.raises(BadRequest, match="one column"):
        study(made.select(["a"]), (0.1,))
    noted = study(damaged(80), (0.1,), versions=1, rows=50)
    assert any("50 of 80 rows" in note for note in noted.notes)


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=30))
@settings(deadline=None)
def test_area_under_the_curve_is_the_share_of_pairs_in_order(cases: list[tuple[int, bool]]) -> None:
    values, labels = np.array([each for each, _ in cases], float), np.array([each for _, each in cases], bool)
    pairs = [(a, b) for a, b in itertools.product(values[labels], values[~labels])]
    found = auc(values, labels)
    if pairs:
        assert math.isclose(found, sum((a > b) + (a == b) / 2 for a, b in pairs) / len(pairs))
    else:
        assert math.isnan(found)
    assert math.isclose(precision(values, labels, 1.0), labels.mean())


def test_ties_in_the_top_count_by_their_share() -> None:
    values, labels = np.array([3.0, 2, 2, 2, 1]), np.array([True, True, False, False, True])
    assert math.isclose(precision(values, labels, 0.4), (1 + 1 / 3) / 2)


# --- imputations ------------------------------------------------------------------------------------------------------


def linear(rows: int, share: float) -> tuple[pa.Table, np.ndarray]:
    dice = np.random.default_rng(5)
    x = dice.normal(0, 1, rows)
    y = np.round(3 * x + x**2 / 2 + dice.normal(0, 0.1, rows), 2)
    gone = dice.random(rows) < share
    made = pa.table({"x": np.round(x, 2), "y": pa.array([None if g else v for v, g in zip(y, gone, strict=True)])})
    return made.append_column("word", pa.array(["a" if v > 0 else None for v in x])), y


@pytest.mark.parametrize("method", METHODS)
def test_imputed_values_are_near_what_was_there(method: Any) -> None:
    made, truth = linear(600, 0.3)
    coded = read(made, texts=True)
    found = imputed(coded, method, seed=3)
    assert (found.codes >= 0).all()
    there = coded.codes >= 0
    assert (found.codes[there] == coded.codes[there]).all()
    values = np.array([float(each) for each in coded.texts[1]])
    gone = coded.codes[1] < 0
    chance = np.abs(np.random.default_rng(1).permutation(truth)[gone] - truth[gone]).mean()
    assert np.abs(values[found.codes[1][gone]] - truth[gone]).mean() < 0.5 * chance
    assert (imputed(coded, method, seed=3).codes == found.codes).all()
    assert imputed(coded, method, bins=10).codes[1].max() == 9


def test_a_reference_tells_of_values_that_may_stand_for_none() -> None:
    made = pa.table({"a": ["1", "?", "2", "?"], "b": ["x", "y", "x", "z"]})
    assert any("'?' in a (2 rows)" in note for note in reference(made).notes)
    assert reference(made, missing="?").notes == ("2 missing values were filled in",)


def test_a_reference_is_what_holds_after_every_imputation() -> None:
    dice = np.random.default_rng(2)
    zips = dice.integers(0, 12, 300)
    made = pa.table(
        {
            "zip": [f"z{each}" for each in zips],
            "state": [f"s{each // 3}" for each in zips],
            "n": [None if dice.random() < 0.2 else int(each) for each in dice.integers(0, 6, 300)],
        }
    )
    found = reference(made, bins=3)
    assert {(each.lhs, each.rhs) for each in found if each.reference} >= {(("zip",), "state")}
    assert all(each.reference == (len(each.methods) == 3) for each in found)
    assert any("were filled in" in note for note in found.notes)
    with pytest.raises(BadRequest, match="no imputation"):
        imputed(read(made, texts=True), "luck")  # type: ignore[arg-type]


def test_columns_without_values_are_left_as_they_are() -> None:
    made = read(pa.table({"a": [1.0, 2.0, 3.0, None], "b": pa.array([None] * 4, pa.float64())}), texts=True)
    for method in METHODS:
        found = imputed(made, method).codes
        assert (found[0] >= 0).all()
        assert (found[1] < 0).all()


# --- splitting --------------------------------------------------------------------------------------------------------


def test_what_to_split_off() -> None:
    rows = [(order, order % 12) for order in range(96)]
    made = pa.table(
        {
            "order": [order for order, _ in rows],
            "zip": [f"z{each}" for _, each in rows],
            "city": [f"c{each}" for _, each in rows],
            "state": [f"s{each // 4}" for _, each in rows],
            "capital": [f"k{each // 4}" for _, each in rows],
            "free": [order * 7 % 11 for order, _ in rows],
        }
    )
    found = splits(made, name="orders")
    assert len(found) == 2
    first, second = found
    assert set(first.key) | set(first.columns) == {"zip", "city", "state", "capital"}
    assert (first.rows, first.conflicts, first.within) == (12, 0, ())
    assert set(second.key) | set(second.columns) == {"state", "capital"}
    assert second.within == first.key
    assert first.saved == 96 * 3 - 12 * 4
    import duckdb

    with duckdb.connect() as base:
        base.register("given", made)
        base.execute("create table orders as select * from given")
        for each in found:
            base.execute(each.sql)
        names = {row[0] for row in base.execute("select column_name from (describe orders)").fetchall()}
        assert names == {"order", "free", *first.key}
        (count,) = base.execute(f'select count(*) from "orders_{first.key[0]}"').fetchone() or (0,)
        assert count == 12


# --- rounding, order, what is missing ---------------------------------------------------------------------------------


def test_strength_does_not_depend_on_rounding() -> None:
    rows = 1_000
    unlikely = pa.table(
        {"a": [i // 2 for i in range(rows)], "b": [f"y{i // 2 % 400}" if i % 2 == 0 else None for i in range(rows)]}
    )
    (found,) = [each for each in lakescope.dependencies(unlikely, "skip") if each.lhs == ("a",)]
    assert (found.gs, found.strength) == (0.0, "weak")
    sure = pa.table(
        {
            "a": ["p1", None, None, "p0", "p1", "p1", "p1", "p2"],
            "c": ["k0", "k0", "k1", "k1", "k2", "k2", "k3", "k3"],
            "b": ["q0", "q0", "q1", "q1", "q0", "q0", "q1", "q1"],
        }
    )
    (found,) = [each for each in lakescope.dependencies(sure) if each.rhs == "b" and "c" in each.lhs]
    assert (found.gs, found.strength) == (1.0, "strong")


def test_versions_are_compared_by_the_names_of_their_columns() -> None:
    one = pa.table({"x": [1, 2, 3, 3], "y": ["a", "a", "b", "b"]})
    assert {each.label for each in compare(one.select(["y", "x"]), one)} == {"same"}
    other = compare(one.rename_columns(["u", "v"]), one)
    assert any("taken in order" in note for note in other.notes)
    nothing = pa.table({"x": pa.array([None, 1], pa.int64()), "y": pa.array([1, None], pa.int64())})
    found = compare(nothing, nothing, "skip")
    assert all(each.flags == ("vacuous",) for each in found)
    assert any("nothing can be told" in note for note in found.notes)


def test_repairs_are_values() -> None:
    made = pa.table({"a": [1, 1, 1, 1, 2, 2], "b": [5, None, None, None, 6, 7]})
    assert {each.lhs: each.repair for each in violations(made, ["a"], "b")} == {("1",): "5", ("2",): None}


def test_a_study_of_too_few_rows_says_nothing() -> None:
    made = pa.table({f"c{i}": [i * j % 5 for j in range(8)] for i in range(30)})
    found = study(made, (0.4,), versions=2, max_lhs=6)
    assert any("at most" in note for note in found.notes)  # not 6: too many candidates
    assert [each.exact for each in found if each.nulls == "skip"] == [None]


# --- the command line -------------------------------------------------------------------------------------------------


def test_the_other_questions_on_the_command_line(run: Run, tmp_path: Path) -> None:
    iris = str(TABLES / "iris.csv")
    out = tmp_path / "report"
    ran = run(
        *("fds", "study", iris, "--shares", "0.1", "--missing", "?", "--versions", "2", "--out", str(out)),
        *("--format", "json"),
    )
    assert [each["missing"] for each in from_json(ran.out)] == [0.1] * 3
    assert (out / "study.html").exists()
    pareto = run("fds", "study", iris, "--pattern", "pareto", "--versions", "1", "--format", "json")
    assert len(from_json(pareto.out)) == 18
    held = from_json(run("fds", "reference", iris, "--max-lhs", "4", "--format", "json").out)
    assert held
    assert all(each["reference"] for each in held)  # nothing is missing
    computer = str(TABLES / "computer.csv")
    assert "nothing to split off" in run("fds", "split", iris).out
    assert from_json(run("fds", computer, "--by", "pv", "--format", "json").out)[0]["pv"] == 1
    assert_refused(run("fds", iris, "--split"), 2, "lakescope fds split TABLE")
    assert_refused(run("fds", iris, "--by", "luck"), 2, "hint: ")
    assert run("fds", iris, "--bins", "3").code == 2
    assert_refused(run("fds", iris, "--budget", "-5"), 2, "budget")
    assert_refused(run("fds", "study", iris, "--unit", "foo"), 2, "unit cannot be 'foo'")
