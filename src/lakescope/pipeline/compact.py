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
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakescope._version import __version__
from lakescope.pipeline.build import collect, few_rows_per_batch
from lakescope.pipeline.inverted import build_inverted, spark_exchange
from lakescope.pipeline.session import spark_session
from lakescope.pipeline.shipping import Shipped, ship_package
from lakescope.pipeline.tasks import RESULT_DDL, RESULT_SCHEMA
from lakescope.pipeline.tokens import RAW, RAW_GRAMS, RawTokens, TokenCut
from lakescope.store.index import Index
from lakescope.store.inverted import InvertedSegment
from lakescope.store.manifest import Manifest, SegmentFile
from lakescope.store.segment import ShardWriter
from lakescope.store.writer import IndexWriter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

I32 = npt.NDArray[np.int32]
U64 = npt.NDArray[np.uint64]
Arrow = Iterator[pa.RecordBatch]

#: Bytes of files that are made one.
_TOGETHER = 32 * 1024 * 1024
_COPIED = ("tables", "failures", "columns", "problems", "notices", "sketches", "keys", "pairs")


def compact(path: str | Path, *, spark: SparkSession | None = None, master: str | None = None) -> Manifest:
    """Make one segment of an index; what is published already answers until then."""
    began = time.monotonic()
    with IndexWriter(path) as writer:
        index = Index(path)
        before = index.manifest
        if len(before.segments) == 1 and not before.of_kind("tombstones"):
            return before
        works = _works(before)
        cut = TokenCut.for_bytes(int(before.summary["bytes"]))
        task = CopyLive(str(Path(path).absolute()), str(writer.staging.absolute()), works, cut)
        with spark_session(spark, master) as session:
            ship_package(session)
            with few_rows_per_batch(session):
                frame = session.range(0, len(works), 1, len(works)).mapInArrow(Shipped.of(task), RESULT_DDL)
                made = [_Copied(**json.loads(row.result)) for row in collect(session, frame)]
                copied = [SegmentFile(**each.file) for each in made if each.file]
                raw, grams, sketches = (
                    [file for file in copied if file.kind == kind] for kind in (RAW, RAW_GRAMS, "sketches")
                )
                figures = None
                if before.summary["join"] is not None:
                    exchange = spark_exchange(session, lambda frame: collect(session, frame))
                    pairs = sum(each.pairs for each in made)
                    built = build_inverted(exchange, writer.staging, raw, sketches, cut, pairs, grams)
                    copied = [file for file in copied if file.kind not in (RAW, RAW_GRAMS)] + built.files
                    figures = built.figures
        summary = {**before.summary, "join": figures, "seconds": round(time.monotonic() - began, 3)}
        return writer.publish(copied, version=__version__, sources=before.sources, summary=summary, given=before.given)


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

    def __call__(self, batches: Arrow) -> Arrow:
        index = Index(self.path)
        by_path = {file.path: file for file in index.manifest.files}
        for batch in batches:
            for number in batch.column(0).to_pylist():
                files = [by_path[path] for path in self.files[number]]
                arrays = {"tokens": self._tokens, "grams": self._grams}.get(files[0].kind)
                made = self._records(index, files) if arrays is None else arrays(index, files[0])
                yield pa.record_batch([[json.dumps(asdict(made))]], schema=RESULT_SCHEMA)

    def _records(self, index: Index, files: list[SegmentFile]) -> _Copied:
        out = ShardWriter(self.staging, files[0].kind)
        for batch in index.live_records(files):
            out.add_batch(batch)
        made = out.close()
        return _Copied(asdict(made) if made else None)

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
