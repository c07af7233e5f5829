"""AKMV: the k smallest hashes, each with how often it occurred (Beyer et al.; spec 2.4.10).

Whatever belongs to the k smallest of a stream was among them from its first occurrence on, so the multiplicities are
exact. They allow deletions, and unions, intersections and differences of multisets.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lakescope.array_types import I64, U64
from lakescope.errors import BadRequest
from lakescope.sketches import codec
from lakescope.sketches.counter import Counter, Interval, Traits, check_between, z_score
from lakescope.sketches.kernels import frequent_combine


class AKMV(Counter):
    """A coordinated sample of the distinct values: exact while it holds them all."""

    name = "akmv"
    traits = Traits("order statistics", "interval based", "k-th minimum", set_operations=True, deletions=True)

    def __init__(self, k: int = 6369) -> None:
        check_between("k", k, 3, 1 << 30)
        self.k = k
        self.keys: U64 = np.empty(0, np.uint64)
        self.counts: I64 = np.empty(0, np.int64)
        #: Whether hashes were dropped, so that the largest kept one tells the density.
        self.full = False

    def update_hashes(self, hashes: U64, counts: I64 | None = None) -> None:
        counts = np.ones(hashes.size, np.int64) if counts is None else counts
        if self.full:
            near = hashes <= self.keys[-1]
            hashes, counts = hashes[near], counts[near]
        first, totals = frequent_combine(hashes, counts)
        self._add(hashes[first], totals)

    def _add(self, keys: U64, counts: I64) -> None:
        """Add distinct hashes with their counts."""
        if not keys.size:
            return
        both = np.concatenate([self.keys, keys])
        order = np.argsort(both, kind="stable")
        both = both[order]
        starts = np.flatnonzero(np.concatenate([[True], both[1:] != both[:-1]]))
        totals = np.add.reduceat(np.concatenate([self.counts, counts])[order], starts)
        self.full = self.full or starts.size > self.k
        self.keys, self.counts = both[starts][: self.k], totals[: self.k]

    def remove(self, values: Any) -> None:
        """Take values out again that were added before; a value taken out as often as added no longer counts."""
        from lakescope.values.hashed import hashes_of

        for hashes in hashes_of(values):
            first, totals = frequent_combine(hashes, np.ones(hashes.size, np.int64))
            at = np.minimum(np.searchsorted(self.keys, hashes[first]), max(0, self.keys.size - 1))
            known = self.keys[at] == hashes[first] if self.keys.size else np.zeros(first.size, bool)
            if not known.all() and not self.full:
                raise BadRequest("cannot remove a value that was never added")
            self.counts[at[known]] -= totals[known]
        if (self.counts < 0).any():
            raise BadRequest("cannot remove a value more often than it was added")

    def _merge(self, other: AKMV) -> None:
        # The k smallest of both are among the k smallest of either, so nothing that was dropped is missed.
        self._add(other.keys, other.counts)
        self.full = self.full or other.full

    def parameters(self) -> dict[str, Any]:
        return {"k": self.k}

    def estimate(self) -> float:
        present = int((self.counts > 0).sum())
        return present / self.keys.size * self._density(self.keys) if self.keys.size else 0.0

    def _density(self, keys: U64) -> float:
        """Values behind a sample of the smallest hashes: their number, or (k - 1) over the largest as a fraction."""
        if not self.full:
            return float(keys.size)
        return (keys.size - 1) / ((float(keys[-1]) + 1.0) / 2.0**64)

    def standard_error(self) -> float:
        return 1 / math.sqrt(max(1, self.keys.size - 2)) if self.full else 0.0

    def at_least(self) -> float:
        return float((self.counts > 0).sum())

    @property
    def rows(self) -> float:
        """Estimated number of values with repetitions (F1)."""
        return float(self.counts.sum()) / max(1, self.keys.size) * self._density(self.keys) if self.keys.size else 0.0

    @property
    def memory_bits(self) -> int:
        return 2 * 64 * self.k

    # --- sets: K of the k smallest hashes of the union satisfy the expression, hence K/k of the union does ------------

    def union(self, other: AKMV, confidence: float = 0.95) -> Interval:
        both = self | other
        return Interval(both.estimate(), *both.interval(confidence))

    def intersection(self, other: AKMV, confidence: float = 0.95) -> Interval:
        both, mine, theirs = self._aligned(other)
        return both._share((mine > 0) & (theirs > 0), confidence)

    def difference(self, other: AKMV, confidence: float = 0.95) -> Interval:
        """Values that are here and not there."""
        both, mine, theirs = self._aligned(other)
        return both._share((mine > 0) & (theirs == 0), confidence)

    def jaccard(self, other: AKMV, confidence: float = 0.95) -> Interval:
        both, mine, theirs = self._aligned(other)
        return _proportion((mine > 0) & (theirs > 0), (mine > 0) | (theirs > 0), both.full, confidence)

    def containment(self, other: AKMV, confidence: float = 0.95) -> Interval:
        """The share of the values here that are also there."""
        both, mine, theirs = self._aligned(other)
        return _proportion((mine > 0) & (theirs > 0), mine > 0, both.full, confidence)

    def _aligned(self, other: AKMV) -> tuple[AKMV, I64, I64]:
        """The union's sample, and how often each of its values occurs on either side."""
        both = self | other
        return both, self._counts_of(both.keys), other._counts_of(both.keys)

    def _counts_of(self, keys: U64) -> I64:
        if not self.keys.size:
            return np.zeros(keys.size, np.int64)
        at = np.minimum(np.searchsorted(self.keys, keys), self.keys.size - 1)
        return np.where(self.keys[at] == keys, self.counts[at], 0)

    def _share(self, chosen: np.ndarray, confidence: float) -> Interval:
        """Number of values behind those of the sample that were chosen."""
        if not self.full:
            found = float(chosen.sum())
            return Interval(found, found, found)
        density = self._density(self.keys)
        share = _proportion(chosen, np.ones(chosen.size, bool), True, confidence)
        spread = z_score(confidence) * self.standard_error()
        around = math.hypot(spread * share.value, share.high - share.value) * density
        low = math.hypot(spread * share.value, share.value - share.low) * density
        return Interval(share.value * density, max(0.0, share.value * density - low), share.value * density + around)

    def _content(self) -> codec.Fields:
        return {"full": self.full, "keys": self.keys, "counts": self.counts}

    def _restore(self, fields: codec.Fields) -> None:
        self.full, self.keys, self.counts = fields["full"], fields["keys"].copy(), fields["counts"].copy()


def _proportion(chosen: np.ndarray, among: np.ndarray, sampled: bool, confidence: float) -> Interval:
    """A share of a sample with its Wilson interval; exact where the sample is everything."""
    n, hits = int(among.sum()), int(chosen.sum())
    if not n:
        return Interval(0.0, 0.0, 1.0 if sampled else 0.0)
    share = hits / n
    if not sampled:
        return Interval(share, share, share)
    z = z_score(confidence)
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return Interval(share, max(0.0, centre - half), min(1.0, centre + half))
