"""The exact count by a set of hashes: the baseline, whose memory grows with the number of values."""

from __future__ import annotations

from typing import Any

import numpy as np

from lakescope.array_types import I64, U64
from lakescope.sketches import codec
from lakescope.sketches.counter import Counter, Traits
from lakescope.sketches.kernels import frequent_combine

#: Hashes that wait to be sorted. Not measured: 8 MB.
_PENDING = 1 << 20


class Exact(Counter):
    """Every distinct hash with its count. Two values among n share a hash with chance n**2 / 2**65."""

    name = "exact"
    traits = Traits("none", "hash table", "exact", set_operations=True, membership=True, deletions=True)

    def __init__(self) -> None:
        self._keys: U64 = np.empty(0, np.uint64)
        self._counts: I64 = np.empty(0, np.int64)
        self._pending: list[tuple[U64, I64]] = []
        self._waiting = 0

    def update_hashes(self, hashes: U64, counts: I64 | None = None) -> None:
        first, totals = frequent_combine(hashes, np.ones(hashes.size, np.int64) if counts is None else counts)
        self._pending.append((hashes[first], totals))
        self._waiting += first.size
        if self._waiting > max(_PENDING, self._keys.size // 2):
            self._settle()

    def _settle(self) -> None:
        if self._pending:
            keys = np.concatenate([self._keys, *(keys for keys, _ in self._pending)])
            counts = np.concatenate([self._counts, *(counts for _, counts in self._pending)])
            first, totals = frequent_combine(keys, counts)
            order = np.argsort(keys[first])
            self._keys, self._counts = keys[first][order], totals[order]
            self._pending, self._waiting = [], 0

    def values(self) -> tuple[U64, I64]:
        """The distinct hashes in order, and how often each occurred."""
        self._settle()
        return self._keys, self._counts

    def _merge(self, other: Exact) -> None:
        self.update_hashes(*other.values())

    def parameters(self) -> dict[str, Any]:
        return {}

    def estimate(self) -> float:
        self._settle()
        return float(self._keys.size)

    def standard_error(self) -> float:
        return 0.0

    @property
    def rows(self) -> int:
        """Number of values with repetitions (F1)."""
        self._settle()
        return int(self._counts.sum())

    @property
    def self_join(self) -> int:
        """Sum of the squared counts (F2): rows of the join of the values with themselves."""
        self._settle()
        return int((self._counts**2).sum())

    @property
    def memory_bits(self) -> int:
        self._settle()
        return 64 * self._keys.size

    def _content(self) -> codec.Fields:
        keys, counts = self.values()
        return {"keys": keys, "counts": counts}

    def _restore(self, fields: codec.Fields) -> None:
        self._keys, self._counts = fields["keys"].copy(), fields["counts"].copy()
