"""Counting tables that are not indexed: files, frames and Spark, the command line, the study."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import lakescope
from lakescope.errors import BadRequest, NotFound
from lakescope.show.charts import line_chart
from lakescope.sketches.design import BY_NAME
from lakescope.studies.counters import _Run, gee_errors, study, write_report

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 12_000
ALL = [name for name in BY_NAME if name not in ("gee", "fm")]


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return pa.table(
        {
            "id": list(range(ROWS)),
            "city": [f"city {i % 37}" if i % 5 else None for i in range(ROWS)],
            "price": [i % 900 / 4 for i in range(ROWS)],
            "empty": pa.nulls(ROWS, pa.string()),
        }
    )


TRUTH = {"id": ROWS, "city": 37, "price": 900, "empty": 0}


@pytest.fixture(scope="module")
def folder(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("counting")
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    frame.write_csv(place / "sales.csv")
    (place / "sales.csv.gz").write_bytes(gzip.compress((place / "sales.csv").read_bytes()))
    frame.write_parquet(place / "sales.parquet")
    return place


def test_files_and_frames_count_alike(folder: Path, table: pa.Table) -> None:
    queries: list[Any] = [folder / name for name in ("sales.csv", "sales.csv.gz", "sales.parquet")]
    queries += [table, table.to_pandas(), pl.from_arrow(table)]
    for query in queries:
        found = lakescope.count(query, counters=["bjkst", "akmv"], exact=True)
        assert [record.column for record in found] == [name for name in TRUTH for _ in range(3)]
        for record in found:
            assert record.truth == TRUTH[record.column]
            assert record.rows == ROWS
            assert record.nulls == {"city": ROWS // 5, "empty": ROWS}.get(record.column, 0)
            if record.counter != "akmv" or record.truth < 6369:
                assert record.estimate == record.truth
                assert record.exact


def test_one_column_and_several_counters(folder: Path) -> None:
    assert lakescope.count(folder / "sales.csv", ["city"])[0].truth is None
    found = lakescope.count(folder / "sales.csv", ["city"], counters=ALL)
    assert [record.counter for record in found] == ALL
    assert {record.column for record in found} == {"city"}
    assert all(record.low <= 37 <= record.high for record in found)
    assert {record.counter for record in found if record.warning} == {"pcsa", "loglog", "superloglog"}
    with pytest.raises(NotFound, match="'town'") as caught:
        lakescope.count(folder / "sales.csv", ["town"])
    assert "city" in str(caught.value.hint)


def test_results_travel(folder: Path) -> None:
    found = lakescope.count(folder / "sales.csv", exact=True)
    assert found.to_arrow().column_names == list(found.to_dicts()[0])
    assert found.to_arrow().schema == found[:0].to_arrow().schema
    assert isinstance(found.to_pandas(), pd.DataFrame)
    assert "12,000" in repr(found)
    assert "<table" in found._repr_html_()
    assert found == lakescope.count(folder / "sales.csv", exact=True)[:] or found[0].column == "id"
    assert repr(found[:0]) == "nothing found"


def test_what_cannot_be_read_is_said(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "good.csv").write_text("a,b\n1,2\n3,4\n")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 nothing more PAR1")
    found = lakescope.count(tmp_path)
    assert {record.table for record in found} == {"good.csv"}
    assert any("bad.parquet" in note for note in found.notes)
    with pytest.raises(BadRequest):
        lakescope.count(tmp_path / "nowhere.csv")
    with pytest.raises(BadRequest, match="no counter"):
        lakescope.count(folder / "sales.csv", counters=[])


@pytest.mark.parametrize("partitions", [1, 7])
def test_spark_counts_like_one_machine(spark: SparkSession, table: pa.Table, partitions: int) -> None:
    """For any partitioning: estimates and intervals to the last bit, in one job with one exchange."""
    frame = spark.createDataFrame(table.to_pandas()).repartition(partitions)
    columns = ["id", "city", "price"]
    there = lakescope.count(frame, columns, counters=ALL, n_max=ROWS, exact=True)
    here = lakescope.count(table, columns, counters=ALL, n_max=ROWS, exact=True)
    fields = ("column", "counter", "estimate", "low", "high", "truth", "rows", "nulls", "bytes", "parameters")
    assert [[getattr(record, name) for name in fields] for record in there] == [
        [getattr(record, name) for name in fields] for record in here
    ]
    with pytest.raises(NotFound, match="town"):
        lakescope.count(frame, ["town"])


def test_a_spark_frame_without_rows(spark: SparkSession) -> None:
    found = lakescope.count(spark.sql("SELECT 1 AS x WHERE false"), counters=["hll++", "lc"], n_max=10)
    assert [(record.estimate, record.rows) for record in found] == [(0, 0), (0, 0)]


def test_the_study(tmp_path: Path) -> None:
    trials = study(1000, seeds=2)
    assert {trial.counter for trial in trials} == set(BY_NAME)
    assert {trial.values for trial in trials} == {10, 100, 1000}
    by = {(trial.counter, trial.values): trial for trial in trials}
    assert by["hll++", 1000].error < 0.001  # type: ignore[operator]
    assert by["loglog", 10].error == pytest.approx(1300, rel=0.1)
    assert by["exact", 1000].error == 0
    page = write_report(tmp_path / "report", trials, lakescope.count(pa.table({"<b>": [1, 2]}), exact=True))
    text = page.read_text()
    assert "<script" not in text
    assert "&lt;b&gt;" in text
    charts = text.split("<svg")[1:]
    assert len(charts) == 7
    for chart in charts:
        ElementTree.fromstring("<svg" + chart.split("</svg>")[0] + "</svg>")
    with (tmp_path / "report" / "study.csv").open(newline="") as stream:
        assert len(list(csv.DictReader(stream))) == len(trials)
    assert len(json.loads((tmp_path / "report" / "study.json").read_text())) == len(trials)


@pytest.mark.parametrize("name", ["fm", "exact", "gee"])
def test_what_would_take_too_long_or_too_much_is_left_out(name: str) -> None:
    run = _Run(name, 10**8, 0.01)
    run.count(np.arange(10, dtype=np.uint64), 0)
    trial = run.trial()
    assert (trial.seeds, trial.error) == (0, None)
    assert "left out" in trial.note


def test_gee_by_rate() -> None:
    for each in gee_errors(20_000, seeds=2):
        assert each.error == pytest.approx(each.expected, abs=0.001)


def test_charts_without_points() -> None:
    assert line_chart({}, title="t", x="x", y="y") == ""
    ElementTree.fromstring(line_chart({"a & b": [(10, 0.0), (100, 5.0)]}, title="<t>", x="x", y="y", log_y=False))
