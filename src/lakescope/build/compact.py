"""Make one segment of many, without what is gone: the index of a fresh build, and no raw data is read for it.

First job: files of the catalog and of sketches are copied without the tables that are gone, small ones into one, and
every file of tokens is turned back into the raw pairs of token and set that a scan would hand over. Then the inverted
index is built from these as in any build, which restores the global order of tokens and the groups of those that the
same columns hold.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from lakescope._version import __version__
from lakescope.array_types import I32, U64
from lakescope.build.build import HERE_BYTES, INVERTING, collect, few_rows_per_batch, log_published, started
from lakescope.build.inverted import Exchange, build_inverted, local_exchange, spark_exchange
from lakescope.build.shipping import Shipped, spent
from lakescope.build.tasks import RESULT_DDL, RESULT_SCHEMA
from lakescope.build.tokens import RAW, RAW_GRAMS, RawTokens, TokenCut
from lakescope.errors import BadRequest
from lakescope.stages import Stages
from lakescope.store.index import Index
from lakescope.store.inverted import InvertedSegment
from lakescope.store.manifest import Manifest, SegmentFile
from lakescope.store.segment import PAST, ShardWriter
from lakescope.store.writer import IndexWriter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Arrow = Iterator[pa.RecordBatch]
#: Runs the task over numbers; returns its results.
Run = Callable[[int, "CopyLive"], list[str]]
#: Runs a job of Spark as a stage of this name; returns its rows.
Step = Callable[["DataFrame", str], list[Any]]

#: Bytes of files that are made one.
_TOGETHER = 32 * 1024 * 1024
_COPIED = ("tables", "failures", "columns", "problems", "notices", "sketches", "keys", "pairs", *PAST)


#: Versions of a table that are no more of which the profile is kept.
KEEP_HISTORY = 10


def compact(
    path: str | Path,
    *,
    keep_history: int = KEEP_HISTORY,
    spark: SparkSession | None = None,
    master: str | None = None,
) -> Manifest:
    """Make one segment of an index; what is published already answers until then.

    Of each table the profiles of the newest ``keep_history`` versions are kept that are no more.
    """
    if keep_history < 0:
        raise BadRequest(f"cannot keep {keep_history} versions", hint="0 keeps none")
    began = time.monotonic()
    stages = Stages("compact")
    with IndexWriter(path) as writer:
        index = Index(path)
        before = index.manifest
        if len(before.segments) == 1 and not before.of_kind("tombstones"):
            return before
        if spark is None and master is None and int(before.summary["bytes"]) <= HERE_BYTES:
            with stages.measure("compact here"), index.question():
                files, figures = _rewritten(index, keep_history, writer.staging, _run_here, local_exchange)
        else:
            with started(spark, master, stages) as session, few_rows_per_batch(session):
                step = _steps(session, writer.staging, stages)
                names = iter(INVERTING)
                exchange = spark_exchange(session, lambda frame: step(frame, next(names)))
                with index.question():
                    files, figures = _rewritten(index, keep_history, writer.staging, _run_on(session, step), exchange)
        seconds = round(time.monotonic() - began, 3)
        summary = {**before.summary, "join": figures, "seconds": seconds, "stages": stages.records()}
        asked: dict[str, Any] = {"sources": before.sources, "summary": summary, "given": before.given}
        manifest = writer.publish(files, version=__version__, **asked)
    log_published(stages, manifest, [])
    return manifest


def _steps(session: SparkSession, staging: Path, stages: Stages) -> Step:
    """Runs jobs of Spark, each a stage that is measured."""

    def step(frame: DataFrame, name: str) -> list[Any]:
        with stages.measure(name) as stage:
            rows = collect(session, frame, f"{name} (compaction)")
            stage.workers = spent(staging)
        return rows

    return step


def _rewritten(
    index: Index, keep_history: int, staging: Path, run: Run, exchange: Exchange
) -> tuple[list[SegmentFile], dict[str, Any] | None]:
    """All files of the one segment, and the figures of its inverted index, if it has one."""
    before = index.manifest
    works = _works(before)
    cut = TokenCut.for_bytes(int(before.summary["bytes"]))
    task = CopyLive(index.location, str(staging.absolute()), works, cut, _forgotten(index, keep_history))
    made = [_Copied(**json.loads(result)) for result in run(len(works), task)]
    copied = [SegmentFile(**each.file) for each in made if each.file]
    if before.summary["join"] is None:
        return copied, None
    raw, grams, sketches = ([file for file in copied if file.kind == kind] for kind in (RAW, RAW_GRAMS, "sketches"))
    built = build_inverted(exchange, staging, raw, sketches, cut, sum(each.pairs for each in made), grams)
    return [file for file in copied if file.kind not in (RAW, RAW_GRAMS)] + built.files, built.figures


def _forgotten(index: Index, keep: int) -> dict[str, int]:
    """Tables with more versions than are kept: the last generation that is not."""
    found: dict[str, list[int]] = {}
    for file in index.manifest.of_kind("past"):
        rows = index.rows_of_file(file, ["table", "generation"])
        for table, generation in zip(rows["table"].to_pylist(), rows["generation"].to_pylist(), strict=True):
            found.setdefault(table, []).append(generation)
    return {table: sorted(found[table])[-keep - 1] for table in found if len(found[table]) > keep}


def _run_here(numbers: int, task: CopyLive) -> list[str]:
    """Run a task over numbers in this process."""
    batches = task(iter([pa.record_batch([pa.array(np.arange(numbers))], ["id"])]))
    return [result for batch in batches for result in batch.column(0).to_pylist()]


def _run_on(session: SparkSession, step: Step) -> Run:
    """Run a task over numbers as a job of Spark."""

    def run(numbers: int, task: CopyLive) -> list[str]:
        frame = session.range(0, numbers, 1, numbers).mapInArrow(Shipped.of(task), RESULT_DDL)
        return [row.result for row in step(frame, "copy what is left")]

    return run


def _works(manifest: Manifest) -> tuple[tuple[str, ...], ...]:
    """Files that become one: those of a kind, up to what a worker holds at ease; files of arrays each by itself."""
    works: list[tuple[str, ...]] = []
    for kind in _COPIED:
        some: list[str] = []
        size = 0
        for file in manifest.of_kind(kind):
            if some and size + file.size > _TOGETHER:
                works.append(tuple(some))
                some, size = [], 0
            some.append(file.path)
            size += file.size
        works += [tuple(some)] if some else []
    return (*works, *((file.path,) for kind in ("tokens", "grams") for file in manifest.of_kind(kind)))


@dataclass(frozen=True, slots=True)
class _Copied:
    """What became of a file: the new one, if anything was left, and the pairs of token and set in it."""

    file: dict[str, Any] | None
    pairs: int = 0


@dataclass(frozen=True)
class CopyLive:
    """Task: each input row is the number of some files of the index to copy without what is gone."""

    path: str
    staging: str
    files: tuple[tuple[str, ...], ...]
    cut: TokenCut
    forgotten: dict[str, int]

    def __call__(self, batches: Arrow) -> Arrow:
        index = Index(self.path)
        by_path = {file.path: file for file in index.manifest.files}
        for batch in batches:
            for number in batch.column(0).to_pylist():
                files = [by_path[path] for path in self.files[number]]
                arrays = {"tokens": self._tokens, "grams": self._grams}.get(files[0].kind)
                with index.question():  # zeros in place of what was cut off must not be copied
                    made = self._records(index, files) if arrays is None else arrays(index, files[0])
                yield pa.record_batch([[json.dumps(asdict(made))]], schema=RESULT_SCHEMA)

    def _records(self, index: Index, files: list[SegmentFile]) -> _Copied:
        kind = files[0].kind
        out = ShardWriter(self.staging, kind)
        for batch in index.live_records(files):
            kept = self._remembered(batch) if kind in PAST else batch
            if kept.num_rows:
                out.add_batch(kept)
        made = out.close()
        return _Copied(asdict(made) if made else None)

    def _remembered(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Versions that are kept."""
        versions = zip(batch["table"].to_pylist(), batch["generation"].to_pylist(), strict=True)
        kept = [row for row, (table, generation) in enumerate(versions) if generation > self.forgotten.get(table, -1)]
        return batch if len(kept) == batch.num_rows else batch.take(pa.array(kept, pa.int64()))

    def _tokens(self, index: Index, file: SegmentFile) -> _Copied:
        segment = _Keyed(index, file.segment)
        arrays = index.arrays(file)
        out = RawTokens(self.staging)
        hashes, groups = arrays["hashes"], arrays["groups"]
        buckets = hashes >> np.uint64(64 - self.cut.bits)
        edges = np.flatnonzero(np.diff(buckets)) + 1
        for begin, end in itertools.pairwise(np.unique([0, *edges.tolist(), hashes.size]).tolist()):
            lengths, owners = segment.owners(groups[begin:end])
            out.add_lists(int(buckets[begin]), hashes[begin:end], lengths, owners, segment.keys)
        made = out.close()
        return _Copied(asdict(made[0]), made[1]) if made else _Copied(None)

    def _grams(self, index: Index, file: SegmentFile) -> _Copied:
        """The q-grams of each column again, as a scan hands them over."""
        segment = _Keyed(index, file.segment)
        arrays = index.arrays(file)
        order = np.argsort(arrays["sets"], kind="stable")
        hashes, sets = arrays["hashes"][order], arrays["sets"][order]
        out = ShardWriter(self.staging, RAW_GRAMS)
        edges = np.flatnonzero(np.diff(sets)) + 1
        for begin, end in itertools.pairwise(np.unique([0, *edges.tolist(), sets.size]).tolist()):
            if segment.live[sets[begin]]:
                key = int(segment.keys[sets[begin]])
                out.add({"table": "", "column": "", "key": key, "grams": hashes[begin:end].tobytes()})
        made = out.close()
        return _Copied(asdict(made) if made else None)


class _Keyed:
    """A segment whose sets are known by the keys of their columns."""

    def __init__(self, index: Index, name: str) -> None:
        self._index = index
        self._name = name
        self._segment = InvertedSegment(index, name)
        numbers = index.numbers[name]
        sets = int(self._segment.set_bounds[-1])
        self.live = np.ones(sets, np.bool_) if numbers is None else numbers >= 0

    @cached_property
    def keys(self) -> U64:
        """The key of every set."""
        found: list[tuple[str, int, int]] = []
        for file in self._index.manifest.of_kind("sketches", self._name):
            for batch in self._index.records(file):
                columns = (batch.column(name).to_pylist() for name in ("table", "position", "key"))
                found += zip(*columns, strict=True)
        return np.array([key for _, _, key in sorted(found)], np.uint64)

    def owners(self, groups: I32) -> tuple[I32, I32]:
        """The sets that are there which hold some groups: how many hold each, and which."""
        starts, sets = self._segment.lists(groups)
        live = self.live[sets]
        ends = np.concatenate([[0], np.cumsum(live)])[starts]
        return np.diff(ends).astype(np.int32), sets[live]
