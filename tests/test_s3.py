"""Buckets, through a real S3 server in this process."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from helpers.buckets import BUCKET
from lakescope import sources
from lakescope.sources.discover import discover
from lakescope.sources.io import files
from lakescope.sources.model import Problem, Unit

pytest_plugins = ["helpers.buckets"]

CSV = b"id,name\n1,a\n2,b\n"


def _parquet(rows: int, **options: Any) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.table({"id": range(rows), "name": [f"n{i}" for i in range(rows)]}), buffer, **options)
    return buffer.getvalue()


def _cells(units: list[Unit], column: str) -> list[str]:
    cells = []
    for unit in units:
        for batch in sources.read(Unit.from_json(unit.to_json()), lambda problem: None):
            (found,) = (c for c in batch.columns if c.name == column)
            cells += [found.data[s:e].tobytes().decode() for s, e in zip(found.starts, found.ends, strict=True)]
    return cells


def _codes(problems: list[Problem]) -> list[str]:
    return sorted(problem.code for problem in problems)


def test_a_bucket_is_a_lake(bucket: Any) -> None:
    for key, body in {
        "data/a b?x#1%41.csv": CSV,
        "data/sub/z.csv.gz": gzip.compress(CSV),
        "data/t.parquet": _parquet(10),
        "data/lies.csv": _parquet(3),
        "data/README.md": b"# about",
        "data/.hidden/x.csv": CSV,
        "data/sales/year=2021/part-0.parquet": _parquet(2),
        "data/sales/year=2022/part-0.parquet": _parquet(3),
        "elsewhere/y.csv": CSV,
    }.items():
        bucket.put_object(Bucket=BUCKET, Key=key, Body=body)
    found, problems = discover([f"s3://{BUCKET}/data"])
    tables = {f.table: f for f in found}
    assert sorted(tables) == ["a b?x#1%41.csv", "lies.csv", "sales", "sub/z.csv.gz", "t.parquet"]
    assert tables["lies.csv"].format == "parquet"
    assert tables["sub/z.csv.gz"].compression == "gzip"
    assert tables["t.parquet"].modified > 1e9
    assert _codes(problems) == ["hidden-files", "not-a-table", "wrong-extension"]
    with files.open_stream(tables["a b?x#1%41.csv"].uri) as stream:
        assert stream.read(1000) == CSV
        stream.seek(3)
        assert stream.read(4) == b"name"
    with files.open_stream(tables["sub/z.csv.gz"].uri, "gzip") as stream:
        assert stream.read(1000) == CSV
    units = sources.plan(tables["sales"], 1 << 20)
    assert [unit.options["constants"] for unit in units] == [{"year": "2021"}, {"year": "2022"}]
    assert _cells(units, "id") == ["0", "1", "0", "1", "2"]
    everything, _ = discover([f"s3://{BUCKET}"])
    assert "elsewhere/y.csv" in {f.table for f in everything}


def test_csv_through_s3(bucket: Any) -> None:
    lines = b"".join(b"%d,x%d\n" % (i, i) for i in range(2000))
    bucket.put_object(Bucket=BUCKET, Key="c.csv", Body=b"id,name\n" + lines)
    (found,), _ = discover([f"s3://{BUCKET}/c.csv"])
    assert found.table == "c.csv"
    assert _cells(sources.plan(found, 1 << 20), "id") == [str(i) for i in range(2000)]


def test_a_big_parquet_is_cut_into_units(bucket: Any) -> None:
    body = _parquet(20_000, row_group_size=1000)
    bucket.put_object(Bucket=BUCKET, Key="big.parquet", Body=body)
    (found,), _ = discover([f"s3://{BUCKET}/big.parquet"])
    units = sources.plan(found, len(body) // 5)
    assert 3 < len(units) < 12
    assert sum(unit.size for unit in units) == len(body)
    assert _cells(units, "id") == [str(i) for i in range(20_000)]


def test_json_lines_ranges_through_s3(bucket: Any) -> None:
    body = b"".join(b'{"i":%d}\n' % i for i in range(1000))
    bucket.put_object(Bucket=BUCKET, Key="j.jsonl", Body=body)
    (found,), _ = discover([f"s3a://{BUCKET}/*.jsonl"])
    units = sources.plan(found, 1000)
    assert len(units) > 5
    assert _cells(units, "i") == [str(i) for i in range(1000)]


def test_databases_are_copied_to_be_read(bucket: Any, tmp_path: Any) -> None:
    import contextlib
    import sqlite3

    with contextlib.closing(sqlite3.connect(tmp_path / "d.db")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS a")
        connection.commit()
    bucket.put_object(Bucket=BUCKET, Key="d.db", Body=(tmp_path / "d.db").read_bytes())
    (found,), _ = discover([f"s3://{BUCKET}/d.db"])
    units = sources.plan(found, 1)
    assert [unit.table for unit in units] == ["d.db::t"]
    assert _cells(units, "a") == ["1"]


def test_options_in_the_uri_reach_the_worker(bucket: Any, endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither environment nor profile: the URI alone opens the object, and is never shown."""
    bucket.put_object(Bucket=BUCKET, Key="q/c.csv", Body=CSV)
    for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    host = endpoint.removeprefix("http://")
    query = f"endpoint_override={host}&scheme=http&region=us-east-1"
    (found,), problems = discover([f"s3://AKEY:se/cret@{BUCKET}/q?{query}"])
    assert not problems
    assert found.table == "c.csv"
    assert files.read_head(found.uri, 100) == CSV
    assert files.display(found.uri) == f"s3://{BUCKET}/q/c.csv"


def test_what_is_not_there(bucket: Any) -> None:
    for location in (f"s3://{BUCKET}/nothing", "s3://no-such-bucket/x", f"s3://{BUCKET}/*.csv"):
        found, problems = discover([location])
        assert not found
        assert [problem.severity for problem in problems] == ["error"]


def test_an_object_that_went_away(bucket: Any) -> None:
    bucket.put_object(Bucket=BUCKET, Key="gone.parquet", Body=_parquet(3))
    (found,), _ = discover([f"s3://{BUCKET}/gone.parquet"])
    (unit,) = sources.plan(found, 1 << 20)
    bucket.delete_object(Bucket=BUCKET, Key="gone.parquet")
    with pytest.raises(sources.SourceError, match=r"gone\.parquet cannot be read"):
        list(sources.read(unit, lambda problem: None))


def test_tables_of_delta_and_iceberg_in_a_bucket(
    bucket: Any, endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deltalake = pytest.importorskip("deltalake")
    catalogs = pytest.importorskip("pyiceberg.catalog.sql")
    deltalake.write_deltalake(tmp_path / "d", pa.table({"id": [1, 2], "p": ["x", "y z"]}), partition_by=["p"])
    for path in (tmp_path / "d").rglob("*.*"):
        bucket.put_object(Bucket=BUCKET, Key=f"lake/{path.relative_to(tmp_path)}", Body=path.read_bytes())
    store = {"s3.endpoint": endpoint, "s3.region": "us-east-1"}
    catalog = catalogs.SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.sqlite", warehouse=f"s3://{BUCKET}/lake", **store)
    catalog.create_namespace("n")
    catalog.create_table("n.t", schema=pa.schema([("id", pa.int64())])).append(pa.table({"id": [3]}))
    catalog.close()
    host = endpoint.removeprefix("http://")
    for location in (f"s3://{BUCKET}/lake", f"s3://{BUCKET}/lake?endpoint_override={host}&scheme=http"):
        found, problems = discover([location])
        assert problems == []
        assert [(f.table, f.format) for f in found] == [("d", "delta"), ("n/t", "iceberg")]
        assert sorted(_cells(sources.plan(found[0], 1 << 20), "p")) == ["x", "y z"]
        assert _cells(sources.plan(found[1], 1 << 20), "id") == ["3"]
        monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
