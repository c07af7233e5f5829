"""The distinct values of every column on their way from the scan to the inverted index.

A *token* is the hash of a value, a *set* the tokens of one column. The scan hands over tokens in bounded pieces, cut by
the first bits of the hash into buckets; one exchange brings a bucket together, where the sets that hold a token become
its list. What is written is raw: sets are known by keys that only the catalog will number.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import xxhash

from lakescope.array_types import U64
from lakescope.build.kernels import cut_by_top_bits, unite_pairs
from lakescope.sketches import codec
from lakescope.store.arrays import ArrayFile, Arrays
from lakescope.store.manifest import SegmentFile


@dataclass(frozen=True, slots=True)
class TokenTuning:
    """How tokens travel from the scan to the tasks that group them."""

    #: Tokens a task collects before it hands them over. Measured with the others: a worker takes less than 0.5 GB
    #: (benchmarks/results/joins_build.md).
    pending: int = 2_000_000
    #: Bytes of a lake whose tokens make up a bucket, about. Not measured: a guess.
    bucket_bytes: int = 16 * 1024 * 1024
    #: Bits of a hash that name a bucket, at most. Not measured: 4,096 buckets.
    most_bits: int = 12
    #: Tasks that take buckets, at most. Not measured: many more than cores.
    most_targets: int = 64


TOKENS_CUT = TokenTuning()

_NAME, _VERSION = "tokens", 1
RAW = "raw-tokens"
RAW_GRAMS = "raw-grams"
_RAW_FIELDS = {
    "buckets": np.int32,
    "counts": np.int64,
    "keyed": np.int64,
    "keys": np.uint64,
    "hashes": np.uint64,
    "lengths": np.int32,
    "owners": np.int32,
}


@dataclass(frozen=True, slots=True)
class TokenCut:
    """How tokens are spread: ``2**bits`` buckets over ``targets`` merge tasks.

    ``attempt`` tells the sets of a table that is scanned again from those of the scan that failed.
    """

    bits: int
    targets: int
    attempt: int = 0

    @classmethod
    def for_bytes(cls, size: int) -> TokenCut:
        """A cut that keeps buckets small."""
        bits = min(TOKENS_CUT.most_bits, max(1, (size // TOKENS_CUT.bucket_bytes).bit_length()))
        return cls(bits, min(TOKENS_CUT.most_targets, 1 << bits))

    def target_of(self, bucket: int) -> int:
        """The task that merges a bucket; tasks take neighbouring ones."""
        return bucket * self.targets >> self.bits

    def set_key(self, table: str, column: str) -> int:
        """What a column is known by until it has a number."""
        name = f"{self.attempt}\0{table}\0{column}".encode("utf-8", "surrogatepass")
        return int(xxhash.xxh64_intdigest(name))


class TokenBuffer:
    """Tokens of the columns of a task, handed over bucket by bucket."""

    def __init__(self, cut: TokenCut) -> None:
        self._cut = cut
        self._keys: list[int] = []
        self._hashes: list[U64] = []
        self._pending = 0

    def add(self, key: int, hashes: U64) -> None:
        """Add tokens of a set."""
        if hashes.size:
            self._keys.append(key)
            self._hashes.append(hashes)
            self._pending += hashes.size

    @property
    def full(self) -> bool:
        return self._pending >= TOKENS_CUT.pending

    def take(self) -> Iterator[tuple[int, bytes]]:
        """(bucket, tokens of it) of everything added so far, which is then forgotten."""
        if not self._keys:
            return
        hashes = np.concatenate(self._hashes)
        owners = np.repeat(np.arange(len(self._keys)), [each.size for each in self._hashes])
        keys = np.array(self._keys, np.uint64)
        self._keys, self._hashes, self._pending = [], [], 0
        order, bounds = cut_by_top_bits(hashes, self._cut.bits)
        for bucket in np.flatnonzero(np.diff(bounds)).tolist():
            part = order[bounds[bucket] : bounds[bucket + 1]]
            counts = np.bincount(owners[part], minlength=keys.size)
            present = np.flatnonzero(counts)
            fields = {"keys": keys[present], "counts": counts[present], "hashes": hashes[part]}
            yield bucket, codec.pack(_NAME, _VERSION, fields)


class RawTokens:
    """The file of a merge task: bucket after bucket, sorted tokens with the keys of the sets that hold them."""

    def __init__(self, staging: str | os.PathLike[str]) -> None:
        self._file = ArrayFile(staging, RAW, _RAW_FIELDS)

    def add(self, bucket: int, payloads: Iterator[bytes]) -> None:
        """Add a bucket: all that any task found of it."""
        parts = [codec.unpack(payload, _NAME, _VERSION) for payload in payloads]
        hashes = np.concatenate([part["hashes"] for part in parts])
        keys, places = np.unique(np.concatenate([part["keys"] for part in parts]), return_inverse=True)
        owners = np.repeat(places.astype(np.int32), np.concatenate([part["counts"] for part in parts]))
        order = np.argsort(hashes)
        hashes, owners = hashes[order], owners[order]
        tokens, kept, starts = unite_pairs(hashes, owners)
        self._file.append(
            buckets=np.array([bucket]),
            counts=np.array([tokens]),
            keyed=np.array([keys.size]),
            keys=keys,
            hashes=hashes[:tokens],
            lengths=np.diff(starts),
            owners=owners[:kept],
        )

    def add_lists(
        self, bucket: int, hashes: U64, lengths: npt.NDArray[np.int32], sets: npt.NDArray[np.int32], keys: U64
    ) -> None:
        """Add a bucket of tokens in order, with the sets that hold each; those that none holds are left out."""
        held = lengths > 0
        present, places = np.unique(sets, return_inverse=True)
        self._file.append(
            buckets=np.array([bucket]),
            counts=np.array([int(held.sum())]),
            keyed=np.array([present.size]),
            keys=keys[present],
            hashes=hashes[held],
            lengths=lengths[held],
            owners=places,
        )

    def close(self) -> tuple[SegmentFile, int] | None:
        """The file and how many pairs of token and set it holds; None if there are none."""
        pairs = self._file.count("owners")
        return (self._file.close(), pairs) if pairs else None


@dataclass(frozen=True, slots=True)
class RawBucket:
    """A bucket as a merge task wrote it: tokens in order, each with the places of its owners among the keys."""

    keys: U64
    hashes: U64
    lengths: npt.NDArray[np.int32]
    owners: npt.NDArray[np.int32]


def raw_buckets(file: Arrays, bucket: int) -> Iterator[RawBucket]:
    """The pieces of a file of raw tokens that hold a bucket."""
    for at in np.flatnonzero(file["buckets"] == bucket).tolist():
        tokens, keys = int(file["counts"][:at].sum()), int(file["keyed"][:at].sum())
        end = tokens + int(file["counts"][at])
        owners = int(file["lengths"][:tokens].sum(dtype=np.int64))
        lengths = file["lengths"][tokens:end]
        yield RawBucket(
            file["keys"][keys : keys + int(file["keyed"][at])],
            file["hashes"][tokens:end],
            lengths,
            file["owners"][owners : owners + int(lengths.sum(dtype=np.int64))],
        )
