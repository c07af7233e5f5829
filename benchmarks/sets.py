"""Collections of sets for the benchmarks of join search, and an index of them built without Spark."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from common import Json
from lakescope.array_types import U64
from lakescope.build.inverted import build_inverted, local_exchange
from lakescope.build.tokens import RawTokens, TokenBuffer, TokenCut
from lakescope.engines.joins.inverted import InvertedIndex
from lakescope.sketches.kernels import mix
from lakescope.sketches.minhash import MinHash
from lakescope.store.index import Index
from lakescope.store.manifest import SegmentFile
from lakescope.store.segment import ShardWriter
from lakescope.store.writer import IndexWriter


@dataclass(slots=True)
class Collection:
    """Sets of tokens one after the other."""

    tokens: U64
    ends: npt.NDArray[np.int64]

    def __getitem__(self, number: int) -> U64:
        return self.tokens[self.ends[number] : self.ends[number + 1]]

    def __len__(self) -> int:
        return self.ends.size - 1

    @property
    def sizes(self) -> npt.NDArray[np.int64]:
        return np.diff(self.ends)


def lake_like(count: int, seed: int = 1) -> Collection:
    """Columns as open data has them: numbers, ranges of days, and text in versions of the same column."""
    dice = np.random.default_rng(seed)
    numbers, days, common = np.uint64(1 << 50), np.uint64(1 << 51), np.uint64(1 << 52)
    texts: list[U64] = []
    sets: list[U64] = []
    fresh = 1
    for _ in range(count):
        kind = dice.random()
        if kind < 0.10:  # row numbers
            taken = np.arange(int(min(50_000, 8 * (dice.pareto(0.9) + 1))), dtype=np.uint64) + numbers
        elif kind < 0.40:  # counts, codes, amounts: small ones are everywhere
            top = 10 ** dice.uniform(0.7, 5)
            drawn = (top * dice.random(int(min(30_000, 12 * (dice.pareto(0.8) + 1)))) ** 2).astype(np.uint64)
            taken = np.unique(drawn) + numbers
        elif kind < 0.50:  # a stretch of days, every one or one a month
            first, length = int(dice.integers(0, 20_000)), int(min(9_000, 20 * (dice.pareto(0.9) + 1)))
            taken = np.arange(first, first + length, int(dice.choice([1, 7, 30])), dtype=np.uint64) + days
        elif texts and kind < 0.90:  # another version of a column of text: most of its values, some new ones
            other = texts[int(dice.integers(len(texts)))]
            kept = other[dice.random(other.size) < dice.uniform(0.6, 1.0)]
            new = int(other.size * dice.choice([0.0, 0.05, 0.3]))
            taken = np.concatenate([kept, np.arange(fresh, fresh + new, dtype=np.uint64)])
            fresh += new
        else:  # text of its own
            size = int(min(300_000, 10 * (dice.pareto(0.75) + 1)))
            taken = np.arange(fresh, fresh + size, dtype=np.uint64)
            fresh += size
        if kind >= 0.50:
            texts.append(taken)
        if dice.random() < 0.2:  # "other", "total", "unknown"
            taken = np.concatenate([taken, dice.integers(0, 30, int(dice.integers(1, 4))).astype(np.uint64) + common])
        sets.append(np.unique(mix(taken)))
    return together(sets)


def dense(count: int, seed: int = 1) -> Collection:
    """The hardest of collections: thousands of random samples of the same few domains, all overlapping alike."""
    dice = np.random.default_rng(seed)
    domains = max(10, count // 10)
    size_of = np.minimum(300_000, 6 + 12 * (dice.pareto(0.85, domains) + 1)).astype(np.int64)
    base = np.concatenate([[0], np.cumsum(size_of)])
    sets: list[U64] = []
    for _ in range(count):
        domain = int(dice.zipf(1.2)) % domains
        taken = max(2, int(size_of[domain] * dice.beta(0.6, 1.2)))
        skew = dice.choice([1.0, 1.5, 2.5])
        numbers = base[domain] + (size_of[domain] * dice.random(taken) ** skew).astype(np.int64)
        sets.append(np.unique(mix(numbers.astype(np.uint64))))
    return together(sets)


def crowded(count: int, seed: int = 1, largest: int = 4_000) -> Collection:
    """The same where the domains that most sets are of are the large ones: long queries, and long lists for each."""
    dice = np.random.default_rng(seed)
    domains = max(10, count // 10)
    size_of = np.sort(np.minimum(largest, 6 + 12 * (dice.pareto(0.85, domains) + 1)).astype(np.int64))[::-1]
    base = np.concatenate([[0], np.cumsum(size_of)])
    sets: list[U64] = []
    for _ in range(count):
        domain = (int(dice.zipf(1.2)) - 1) % domains
        taken = max(2, int(size_of[domain] * dice.beta(0.6, 1.2)))
        numbers = (
            1 + base[domain] + (size_of[domain] * dice.random(taken) ** dice.choice([1.0, 1.5, 2.5])).astype(np.int64)
        )
        sets.append(np.unique(mix(numbers.astype(np.uint64))))
    return together(sets)


def together(sets: list[U64]) -> Collection:
    """Sets one after the other; empty ones are left out."""
    kept = [each for each in sets if each.size]
    return Collection(np.concatenate(kept), np.concatenate([[0], np.cumsum([each.size for each in kept])]))


def build(path: Path, sets: Collection) -> tuple[InvertedIndex, Json]:
    """Index the sets, and what it took."""
    cut = TokenCut(6, 8)
    shutil.rmtree(path, ignore_errors=True)
    spent: Json = {}
    began = time.process_time()
    with IndexWriter(path) as writer:
        raw, pairs = _raw(writer.staging, sets, cut)
        sketches = ShardWriter(writer.staging, "sketches")
        signed = time.process_time()
        for number in range(len(sets)):
            signature = MinHash()
            signature.update_hashes(sets[number])
            name = f"{number:08d}"
            row = {"table": name, "column": "c", "position": 0, "distinct": b"", "key": cut.set_key(name, "c")}
            sketches.add({**row, "signature": signature.values.tobytes()})
        file = sketches.close()
        assert file is not None
        spent["signatures"] = time.process_time() - signed
        built = build_inverted(local_exchange, writer.staging, raw, [file], cut, pairs)
        writer.publish([file, *built.files], version="benchmark", sources=[], summary={"join": built.figures})
    spent["cpu_s"] = time.process_time() - began
    spent["figures"] = {name: value for name, value in built.figures.items() if name != "partitions"}
    spent["bytes"] = {part.kind: 0 for part in built.files}
    for part in built.files:
        spent["bytes"][part.kind] += part.size
    return InvertedIndex(Index(path)), spent


def _raw(staging: Path, sets: Collection, cut: TokenCut) -> tuple[list[SegmentFile], int]:
    found: dict[int, list[bytes]] = {}
    buffer = TokenBuffer(cut)
    for number in range(len(sets)):
        buffer.add(cut.set_key(f"{number:08d}", "c"), sets[number])
        if buffer.full or number == len(sets) - 1:
            for bucket, payload in buffer.take():
                found.setdefault(bucket, []).append(payload)
    return write_raw(staging, found, cut)


def write_raw(staging: Path, found: dict[int, list[bytes]], cut: TokenCut) -> tuple[list[SegmentFile], int]:
    """Files of raw tokens by bucket, as merge tasks write them, and the pairs they hold."""
    files, pairs = [], 0
    for target in range(cut.targets):
        out = RawTokens(staging)
        for bucket in sorted(found):
            if cut.target_of(bucket) == target:
                out.add(bucket, iter(found[bucket]))
        closed = out.close()
        if closed:
            files.append(closed[0])
            pairs += closed[1]
    return files, pairs
