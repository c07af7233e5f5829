"""Linear Counting and Bloom filter: bitmaps as large as a share of the values (spec 2.4.11 and 2.4.12).

Both need to know beforehand about how many values there will be, and tell from the share of bits that stay empty how
many there were. Linear Counting sets one bit a value, the Bloom filter several and can be asked for membership.
"""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from lakescope.array_types import I64, U64
from lakescope.sketches import codec
from lakescope.sketches.counter import Counter, Traits, check_between, check_positive
from lakescope.sketches.kernels import bits_contain, bits_update

#: Empty bits that must be expected at the largest count, so that the map does not fill up by chance.
_LEAST_EMPTY = 5
#: Values a bit of which no float holds the error any more; every bit is set long before.
_MOST_LOAD = 700.0


class _Bitmap(Counter):
    """Bits set by hashes, and the estimate from those that are not."""

    functions = 1

    def __init__(self, bits: int) -> None:
        check_between("bits", bits, 8, 1 << 40)
        self.size = bits
        self.bits: npt.NDArray[np.uint8] = np.zeros(-(-bits // 8), np.uint8)
        self.set_bits = 0

    def update_hashes(self, hashes: U64, counts: I64 | None = None) -> None:
        self.set_bits += bits_update(self.bits, np.uint64(self.size), hashes, self.functions)

    def _merge(self, other: Self) -> None:
        self.bits |= other.bits
        self.set_bits = int(np.bitwise_count(self.bits).sum(dtype=np.int64))

    @property
    def saturated(self) -> bool:
        return self.set_bits >= self.size

    @property
    def empty_share(self) -> float:
        """Share of bits that are not set; of a full map, what it would be with half a bit left."""
        return (self.size - self.set_bits) / self.size

    def standard_error(self) -> float:
        """Whang's, for several bits a value: sqrt(b (e^c - 1 - c)) / (m n) with c = m n / b."""
        load = self.functions * self.estimate() / self.size
        if not load:
            return 0.0
        return math.sqrt(max(0.0, math.expm1(load) - load) / self.size) / load

    def at_least(self) -> float:
        return math.ceil(self.set_bits / self.functions)

    @property
    def memory_bits(self) -> int:
        return self.size

    def _content(self) -> codec.Fields:
        return {"map": self.bits}

    def _restore(self, fields: codec.Fields) -> None:
        self.bits = fields["map"].copy()
        self.set_bits = int(np.bitwise_count(self.bits).sum(dtype=np.int64))


class LinearCounting(_Bitmap):
    """One bit a value (Whang et al.): estimate b ln(b / empty)."""

    name = "lc"
    traits = Traits("none", "bucket based", "linear synopsis", needs_n_max=True)

    def __init__(self, bits: int = 1_096_582) -> None:
        super().__init__(bits)

    @classmethod
    def for_error(cls, error: float, n_max: float) -> LinearCounting:
        """As many bits as the error at ``n_max`` values asks for."""
        check_positive("n_max", n_max)
        return cls(math.ceil(n_max / load_factor(error, n_max)))

    def parameters(self) -> dict[str, Any]:
        return {"bits": self.size}

    def estimate(self) -> float:
        if self.saturated:
            return self.size * math.log(self.size)
        return -self.size * math.log(self.empty_share)


class BloomFilter(_Bitmap):
    """Several bits a value: also answers whether a value was added (never wrong in saying no).

    ``estimator``: ``exact`` inverts the expected number of set bits, ``limit`` is its limit for large maps.
    """

    name = "bf"
    traits = Traits("none", "bucket based", "linear synopsis", needs_n_max=True, membership=True)

    def __init__(self, bits: int = 40_000_000, functions: int = 3, estimator: str = "exact") -> None:
        super().__init__(bits)
        check_between("functions", functions, 1, 64)
        self.functions = functions
        self.estimator = estimator

    @classmethod
    def for_values(cls, n_max: float, bits_per_value: float = 4.0, functions: int = 3) -> BloomFilter:
        """The study's size: four bits a value."""
        check_positive("n_max", n_max)
        return cls(max(64, math.ceil(bits_per_value * n_max)), functions)

    def parameters(self) -> dict[str, Any]:
        return {"bits": self.size, "functions": self.functions, "estimator": self.estimator}

    def estimate(self) -> float:
        if self.saturated:
            return self.size * math.log(self.size) / self.functions
        if not self.set_bits:
            return 0.0
        base = -1 / self.size if self.estimator == "limit" else math.log1p(-1 / self.size)
        return max(self.at_least(), math.log(self.empty_share) / (self.functions * base))

    def contains(self, values: Any) -> npt.NDArray[np.bool_]:
        """For every value whether it may have been added (True) or certainly was not (False, and for nulls)."""
        from lakescope.values.hashed import hash_each

        hashes, valid = hash_each(values)
        found: npt.NDArray[np.bool_] = bits_contain(self.bits, np.uint64(self.size), hashes, self.functions)
        return valid & found

    @property
    def false_positive_rate(self) -> float:
        """Chance that a value that was not added is said to be there."""
        return (self.set_bits / self.size) ** self.functions


def load_factor(error: float, n_max: float) -> float:
    """Values a bit at which Linear Counting has this standard error at ``n_max`` values, by bisection.

    Also leaves some bits empty at ``n_max``, so that the map does not fill up.
    """
    check_positive("error", error)
    low, high = 1e-9, 1.0
    while _error_at(high, n_max) < error:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        if _error_at(middle, n_max) < error and n_max / middle * math.exp(-middle) >= _LEAST_EMPTY:
            low = middle
        else:
            high = middle
    return low


def _error_at(load: float, n_max: float) -> float:
    if load > _MOST_LOAD:
        return math.inf
    return math.sqrt((math.expm1(load) - load) / (load * n_max))
