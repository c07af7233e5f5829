"""MinCount: the k smallest values of every bucket of hashes (Giroire; spec 2.4.9)."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from lakescope.array_types import I64, U64
from lakescope.errors import BadRequest
from lakescope.sketches import codec
from lakescope.sketches.counter import Counter, Traits, check_between
from lakescope.sketches.kernels import mincount_update


class MinCount(Counter):
    """Buckets of hashes seen as numbers between 0 and 1; the fuller a bucket, the closer to 0 its smallest ones.

    ``estimator``: ``ml`` is the maximum likelihood of a Poisson process cut off where buckets are full, right at any
    size; ``log`` is the paper's mean of logarithms, which counts a bucket that is not full as if its value were 1.
    """

    name = "mincount"
    traits = Traits("order statistics", "interval based", "k-th minimum")

    def __init__(self, precision: int = 12, k: int = 3, estimator: Literal["ml", "log"] = "ml") -> None:
        check_between("precision", precision, 1, 24)
        check_between("k", k, 2, 255)
        if estimator not in ("ml", "log"):
            raise BadRequest(f"no estimator {estimator!r} for MinCount", hint="use ml or log")
        self.precision = precision
        self.k = k
        self.estimator = estimator
        self.smallest: U64 = np.zeros((1 << precision, k), np.uint64)
        self.counts: npt.NDArray[np.uint8] = np.zeros(1 << precision, np.uint8)

    def update_hashes(self, hashes: U64, counts: I64 | None = None) -> None:
        mincount_update(self.smallest, self.counts, hashes, self.precision)

    def _merge(self, other: MinCount) -> None:
        self.update_hashes(other._hashes())

    def _hashes(self) -> U64:
        """The hashes that are kept."""
        buckets = np.arange(self.counts.size, dtype=np.uint64)[:, None] << np.uint64(64 - self.precision)
        kept = np.arange(self.k) < self.counts[:, None]
        return (buckets | self.smallest >> np.uint64(self.precision))[kept]

    def parameters(self) -> dict[str, Any]:
        return {"precision": self.precision, "k": self.k, "estimator": self.estimator}

    def estimate(self) -> float:
        seen = int(self.counts.sum(dtype=np.int64))
        if not seen:
            return 0.0
        m, full = self.counts.size, self.counts == self.k
        # Values have 64 - precision bits: the middle of what they stand for is never 0.
        reach = (self.smallest[:, -1].astype(np.float64) + 2.0 ** (self.precision - 1)) / 2.0**64
        reach[~full] = 1.0
        if self.estimator == "ml":
            return float(m * (seen - bool(full.any())) / reach.sum())
        gamma = math.exp(-m * (math.lgamma(self.k - 1 / m) - math.lgamma(self.k)))
        return float(m * gamma * math.exp(-np.log(reach).mean()))

    def standard_error(self) -> float:
        """Of a Poisson process: what lies behind the values that are kept is told from how densely they lie."""
        seen, estimate = self.at_least(), self.estimate()
        if not seen or estimate <= seen:
            return 0.0
        factor = 1.0 if self.estimator == "ml" else 1.09
        return factor * math.sqrt((1 - seen / estimate) / seen)

    def at_least(self) -> float:
        return float(self.counts.sum(dtype=np.int64))

    @property
    def below_range(self) -> bool:
        return self.estimator == "log" and bool(self.counts.any()) and bool((self.counts < self.k).mean() > 0.01)

    @property
    def memory_bits(self) -> int:
        return 64 * self.smallest.size

    def _content(self) -> codec.Fields:
        return {"hashes": self._hashes()}

    def _restore(self, fields: codec.Fields) -> None:
        self.update_hashes(fields["hashes"])
