"""MinHash: the smallest hash of a set under each of many hash functions (Broder; spec-search-and-join 2.2).

Two sets agree in a position with the chance of their Jaccard similarity. A position holds the minimum of
``a * low + b * high`` modulo 2**32 over the halves of the values' hashes, so that a value costs two 32-bit
multiplications a position, eight positions at a time.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from lakescope.array_types import U32, U64
from lakescope.errors import BadRequest
from lakescope.sketches import codec
from lakescope.values import jit

#: Positions of the signatures of an index.
PERMUTATIONS = 256
#: What a position of the empty set holds.
EMPTY = np.uint32(0xFFFFFFFF)
_NAME, _VERSION = "minhash", 1
#: Hashes that numpy looks at together: as many as fit beside the positions in a cache.
_AT_ONCE = 512
_SEED = 0x6C616B6573636F70


@functools.cache
def functions(permutations: int) -> tuple[U32, U32]:
    """Multipliers of the hash functions; those of fewer permutations are the first of those of more."""
    state = np.arange(1, 2 * permutations + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(_SEED)
    state ^= state >> np.uint64(30)
    state *= np.uint64(0xBF58476D1CE4E5B9)
    state ^= state >> np.uint64(27)
    state *= np.uint64(0x94D049BB133111EB)
    odd = (state >> np.uint64(32)).astype(np.uint32) | np.uint32(1)
    return odd[::2].copy(), odd[1::2].copy()


class MinHash:
    """A signature of a set of values: mergeable, of fixed size."""

    def __init__(self, permutations: int = PERMUTATIONS) -> None:
        if not 1 <= permutations <= 1 << 16:
            raise BadRequest(f"permutations must be between 1 and {1 << 16}, not {permutations}")
        self.permutations = permutations
        self.values: U32 = np.full(permutations, EMPTY, np.uint32)

    def update(self, values: Any) -> None:
        """Add values: an array, a series, an iterable, or a frame of one column. Nulls are left out."""
        from lakescope.values.hashed import hashes_of

        for hashes in hashes_of(values):
            self.update_hashes(hashes)

    def update_hashes(self, hashes: U64) -> None:
        """Add values by their hashes."""
        if not jit.loaded():
            jit.spend(hashes.nbytes)
        if jit.loaded():
            from lakescope.sketches.kernels import minhash_update

            minhash_update(self.values, *functions(self.permutations), hashes)
        else:
            self._update_plainly(hashes)

    def _update_plainly(self, hashes: U64) -> None:
        """Add hashes to a signature by numpy, some at a time: without compiled kernels."""
        first, second = (factors[:, None] for factors in functions(self.permutations))
        for begin in range(0, hashes.size, _AT_ONCE):
            some = hashes[begin : begin + _AT_ONCE]
            low, high = some.astype(np.uint32), (some >> np.uint64(32)).astype(np.uint32)
            np.minimum(self.values, (first * low + second * high).min(axis=1), out=self.values)

    def merge(self, other: MinHash) -> None:
        """Become the signature of the union."""
        self._check(other)
        np.minimum(self.values, other.values, out=self.values)

    def _check(self, other: MinHash) -> None:
        if self.permutations != other.permutations:
            raise BadRequest(
                f"signatures differ in permutations: {self.permutations} and {other.permutations}",
                hint="compare signatures that were made alike",
            )

    @property
    def empty(self) -> bool:
        return bool((self.values == EMPTY).all())

    def jaccard(self, other: MinHash) -> float:
        """Share of positions that agree: the estimated Jaccard similarity, 0 if both sets are empty."""
        self._check(other)
        return 0.0 if self.empty else float(np.count_nonzero(self.values == other.values) / self.permutations)

    def standard_error(self, jaccard: float) -> float:
        """Standard error of an estimate of this Jaccard similarity."""
        return math.sqrt(jaccard * (1 - jaccard) / self.permutations)

    def to_bytes(self) -> bytes:
        return codec.pack(_NAME, _VERSION, {"values": self.values})

    @classmethod
    def from_bytes(cls, data: bytes | memoryview) -> MinHash:
        values = codec.unpack(data, _NAME, _VERSION)["values"]
        signature = cls(values.size)
        signature.values = values.copy()
        return signature
