"""An inverted index of plain Python sets, built by the tasks of a build without Spark."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lakescope.build.inverted import build_inverted, local_exchange
from lakescope.build.tokens import RawTokens, TokenBuffer, TokenCut
from lakescope.engines.joins.inverted import InvertedIndex
from lakescope.sketches.minhash import MinHash
from lakescope.store.index import Index
from lakescope.store.manifest import SegmentFile
from lakescope.store.segment import ShardWriter
from lakescope.store.writer import IndexWriter

Sets = Sequence[Sequence[int]]


def token(number: int) -> int:
    """Tokens all over the range of hashes."""
    return (number * 0x9E3779B97F4A7C15 + 1) % 2**64 or 1


def skewed(dice: random.Random, count: int, universe: int) -> Sets:
    """Sets as lakes have them: few popular tokens, copies, subsets, and sizes from nothing to almost everything."""
    tokens = [token(x) for x in range(universe)]
    popular = [1 / (i + 1) for i in range(universe)]
    sets: list[list[int]] = []
    for _ in range(count):
        size = int(universe ** dice.random()) - 1
        if sets and dice.random() < 0.2:
            sets.append(list(dice.choice(sets)))
        elif sets and dice.random() < 0.2:
            sets.append([t for t in dice.choice(sets) if dice.random() < 0.7])
        elif dice.random() < 0.5:
            sets.append(list({*dice.choices(tokens, popular, k=size)}))
        else:
            sets.append(dice.sample(tokens, size))
    return sets


def index_of_sets(path: Path, sets: Sequence[Sequence[int]], *, bits: int = 2, pieces: int = 2) -> InvertedIndex:
    """The index of sets of tokens, each column ``c`` of a table of its own, scanned in some pieces."""
    cut = TokenCut(bits, min(4, 1 << bits))
    with IndexWriter(path) as writer:
        raw, pairs = _raw_tokens(writer.staging, sets, cut, pieces)
        sketches = ShardWriter(writer.staging, "sketches")
        for number, tokens in enumerate(sets):
            signature = MinHash()
            signature.update_hashes(np.array(sorted(tokens), np.uint64))
            sketches.add(
                {
                    "table": f"{number:07d}",
                    "column": "c",
                    "position": 0,
                    "distinct": b"",
                    "signature": signature.values.tobytes(),
                    "key": cut.set_key(f"{number:07d}", "c"),
                }
            )
        file = sketches.close()
        assert file is not None
        built = build_inverted(local_exchange, writer.staging, raw, [file], cut, pairs)
        writer.publish([file, *built.files], version="test", sources=[], summary={"join": built.figures})
    return InvertedIndex(Index(path))


def _raw_tokens(
    staging: Path, sets: Sequence[Sequence[int]], cut: TokenCut, pieces: int
) -> tuple[list[SegmentFile], int]:
    found: dict[int, list[bytes]] = {}
    for piece in range(pieces):
        buffer = TokenBuffer(cut)
        for number, tokens in enumerate(sets):
            # Pieces overlap: what is found twice must count once.
            mine = [t for i, t in enumerate(tokens) if pieces == 1 or i % (pieces + 1) in (piece, pieces)]
            buffer.add(cut.set_key(f"{number:07d}", "c"), np.array(mine, np.uint64))
        for bucket, payload in buffer.take():
            found.setdefault(bucket, []).append(payload)
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
