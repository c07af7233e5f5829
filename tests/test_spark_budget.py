"""What a build may cost: a fixed number of Spark jobs and stages, one reading of the data, no data on the driver."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakescope import sources
from lakescope.build.build import build
from lakescope.build.plan import make_plan
from lakescope.sources import file_types as formats
from lakescope.sources.discover import discover
from lakescope.sources.formats.csv_dialect import HEAD_BYTES
from lakescope.sources.io import files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Stages of a build: scan and merge, list and group tokens, number and write them, an exchange between each two. With
#: adaptive execution each is a job to Spark.
JOBS, STAGES = 6, 6


@dataclass(slots=True)
class Spent:
    """What Spark did meanwhile."""

    jobs: int = 0
    stages: int = 0
    tasks: int = 0
    attempts: int = 0
    #: Bytes that tasks sent to the driver.
    collected: int = 0
    #: Bytes that tasks sent to each other.
    shuffled: int = 0
    summary: dict[str, Any] = field(default_factory=dict)


@contextmanager
def spending(spark: SparkSession) -> Iterator[Spent]:
    """Count what Spark does, by its own books."""
    store = spark.sparkContext._jsc.sc().statusStore()
    bus = spark.sparkContext._jsc.sc().listenerBus()

    def jobs() -> set[int]:
        bus.waitUntilEmpty()
        listed = store.jobsList(None)
        return {listed.apply(i).jobId() for i in range(listed.size())}

    before = jobs()
    spent = Spent()
    yield spent
    new = jobs() - before
    spent.jobs = len(new)
    stages: set[int] = set()
    for job in new:
        ids = store.job(job).stageIds()
        stages |= {ids.apply(i) for i in range(ids.size())}
    for stage in stages:
        data = store.lastStageAttempt(stage)
        if data.status().name() == "SKIPPED":
            continue
        spent.stages += 1
        spent.tasks += data.numCompleteTasks()
        spent.attempts += data.attemptId() + 1
        spent.collected += data.resultSize()
        spent.shuffled += data.shuffleWriteBytes()


def build_and_count(spark: SparkSession, lake: Path, **options: Any) -> Spent:
    with spending(spark) as spent:
        spent.summary = build(lake, lake.with_suffix(".idx"), spark=spark, **options).summary
    return spent


def write_tables(lake: Path, tables: int, rows: int = 20) -> Path:
    lake.mkdir(parents=True)
    for number in range(tables):
        lines = [f"{i},{number}-{i % 7},{i / 7:.3f}" for i in range(rows)]
        (lake / f"{number}.csv").write_text("\n".join([f"id,name{number},size", *lines, ""]))
    return lake


def test_the_number_of_jobs_does_not_grow_with_the_number_of_tables(tmp_path: Path, spark: SparkSession) -> None:
    few = build_and_count(spark, write_tables(tmp_path / "few", 10))
    many = build_and_count(spark, write_tables(tmp_path / "many", 300))
    assert (few.summary["tables"], many.summary["tables"]) == (10, 300)
    assert (few.jobs, few.stages) == (many.jobs, many.stages) == (JOBS, STAGES)
    assert few.summary["jobs"] == many.summary["jobs"] == 3


def test_the_number_of_jobs_does_not_grow_with_the_kinds_of_sources(tmp_path: Path, spark: SparkSession) -> None:
    lake = write_tables(tmp_path / "lake", 5, rows=3_000)
    pq.write_table(pa.table({"id": range(5_000)}), lake / "typed.parquet", row_group_size=500)
    (lake / "broken.parquet").write_bytes(b"PAR1 nothing PAR1")
    frames = {"arrow": pa.table({"a": [1, 2, 3]}), "spark": spark.range(100, numPartitions=3)}
    with spending(spark) as spent:
        built = build([lake, frames], tmp_path / "mixed.idx", spark=spark, unit_bytes=1 << 14)
    assert built.summary["tables"] == 8
    assert (spent.jobs, spent.stages) == (JOBS, STAGES)


def test_every_piece_is_scanned_by_one_task_once(tmp_path: Path, spark: SparkSession) -> None:
    lake = write_tables(tmp_path / "lake", 12, rows=4_000)
    found, _ = discover([str(lake)])
    bins = len(make_plan(found, 1 << 15).bins)
    spent = build_and_count(spark, lake, unit_bytes=1 << 15)
    assert bins > 30
    assert spent.attempts == spent.stages, "a stage ran more than once"
    shards = bins // 4 + 1
    lists, parts = 8, 5
    assert bins < spent.tasks <= bins + 3 * shards + lists + parts, "tasks other than one per bin, shard and part"


@dataclass(slots=True)
class Meter:
    """Counts the bytes that are read from each file, through the one seam to file systems."""

    opened: Counter[str] = field(default_factory=Counter)
    read: Counter[str] = field(default_factory=Counter)

    def open_stream(self, location: str, compression: str | None = None) -> Any:
        self.opened[location] += 1
        return _Metered(_open_stream(location, compression), self, location)

    def open_random(self, location: str, compression: str | None = None, *, mapped: bool = False) -> Any:
        self.opened[location] += 1
        return pa.PythonFile(_Metered(Path(location).open("rb"), self, location), mode="r")


_open_stream = files.open_stream


class _Metered:
    """A file that reports what is read from it."""

    def __init__(self, stream: Any, meter: Meter, location: str) -> None:
        self._stream, self._meter, self._location = stream, meter, location

    def read(self, size: int = -1) -> bytes:
        data: bytes = self._stream.read(size)
        self._meter.read[self._location] += len(data)
        return data

    def readinto(self, target: Any) -> int:
        size = self._stream.readinto(target) or 0
        self._meter.read[self._location] += size
        return size

    def __enter__(self) -> _Metered:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def test_the_data_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Discovery and planning may look at the head of a file; the scan reads every byte once.

    A byte range looks a little around its start to find a record, and reads on a little to finish its last record.
    """
    dice = random.Random(5)
    lake = write_tables(tmp_path / "lake", 20, rows=300)
    big = lake / "big.csv"
    lines = [f"{i},{dice.random()},name {dice.randrange(1000)}" for i in range(700_000)]
    big.write_text("\n".join(["id,share,name", *lines, ""]))
    typed = lake / "typed.parquet"
    ids = pa.array(dice.choices(range(10**9), k=400_000))
    pq.write_table(pa.table({"id": ids}), typed, row_group_size=50_000)
    meter = Meter()
    monkeypatch.setattr(files, "open_stream", meter.open_stream)
    monkeypatch.setattr(files, "open_random", meter.open_random)
    unit_bytes = 8 << 20
    found, _ = discover([str(lake)])
    plan = make_plan(found, unit_bytes)
    heads = Counter(meter.read)
    for units in plan.bins:
        for unit in units:
            assert sum(batch.rows for batch in sources.read(unit, lambda problem: None))
    ranges = sum(unit.uri == str(big) for units in plan.bins for unit in units)
    assert ranges > 2
    sizes = {str(path): path.stat().st_size for path in lake.iterdir()}
    assert set(meter.read) == set(sizes)
    around = {str(big): ranges << 20, str(typed): 1 << 20}
    for path, size in sizes.items():
        assert heads[path] <= HEAD_BYTES + formats.HEAD_BYTES + (1 << 17), "planning reads more than heads"
        scanned = meter.read[path] - heads[path]
        assert size <= scanned + (1 << 10), f"{path} was not read to its end"
        assert scanned <= size + around.get(path, 0), f"{path} was read more than once"


def test_what_the_driver_collects_does_not_grow_with_rows(tmp_path: Path, spark: SparkSession) -> None:
    """States of columns travel between workers; the driver gets names of files."""
    dice = random.Random(6)

    def lake(name: str, rows: int) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        for number in range(6):
            lines = [f"{dice.randrange(10**9)},{dice.random()},text {dice.randrange(10**6)}" for _ in range(rows)]
            (folder / f"{number}.csv").write_text("\n".join(["id,share,words", *lines, ""]))
        return folder

    short = build_and_count(spark, lake("short", 2_000), unit_bytes=1 << 17)
    long = build_and_count(spark, lake("long", 20_000), unit_bytes=1 << 17)
    assert long.summary["rows"] == 10 * short.summary["rows"]
    assert long.shuffled > 20 * short.collected, "the states are too small to tell"
    per_task = short.collected / short.tasks
    assert long.collected < 2 * per_task * long.tasks
