"""HyperLogLog++: distinct counts in at most 16 KiB, near exact for small sets.

Structure and sparse mode as in spec section 2.4.8 (p = 14, p' = 25): while small, a sorted list of 32-bit entries
(25-bit index, 6-bit rho) counts almost exactly; beyond 12 KiB the list folds losslessly into 2**14 registers. The
estimate is Ertl's improved raw estimator (2017), which needs no empirical bias tables and no switch between ranges.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from lakescope.errors import BadRequest
from lakescope.sketches import codec
from lakescope.sketches.kernels import hll_dense_update, hll_sparse_entries, hll_sparse_to_dense

SPARSE_PRECISION = 25
_SPARSE_BUCKETS = 1 << SPARSE_PRECISION
_ALPHA_INFINITY = 0.5 / math.log(2.0)
_NAME, _VERSION = "hll++", 1

U32 = npt.NDArray[np.uint32]
U64 = npt.NDArray[np.uint64]
U8 = npt.NDArray[np.uint8]


def _no_entries() -> U32:
    return np.empty(0, np.uint32)


@dataclass(slots=True)
class HyperLogLogPlusPlus:
    """A mergeable set-size counter over 64-bit hashes."""

    precision: int = 14
    entries: U32 = field(default_factory=_no_entries)
    registers: U8 | None = None
    _pending: list[U32] = field(default_factory=list)
    _pending_size: int = 0

    @property
    def sparse_limit(self) -> int:
        """Entries the list may hold before registers of 6 bits each would be smaller."""
        return 6 * (1 << self.precision) // 32

    def update_hashes(self, hashes: U64) -> None:
        """Add values by their hashes."""
        if self.registers is not None:
            hll_dense_update(self.registers, hashes, self.precision)
            return
        self._pending.append(hll_sparse_entries(hashes))
        self._pending_size += hashes.size
        if self._pending_size > self.sparse_limit:
            self._settle()

    def _settle(self) -> None:
        """Fold pending entries into the sorted list, one entry (the largest rho) per index."""
        if not self._pending:
            return
        merged = np.sort(np.concatenate([self.entries, *self._pending]))
        self._pending, self._pending_size = [], 0
        index = merged >> np.uint32(7)
        last = np.ones(merged.size, bool)
        last[:-1] = index[1:] != index[:-1]
        self.entries = merged[last]
        if self.entries.size > self.sparse_limit:
            self._densify()

    def _densify(self) -> None:
        registers = np.zeros(1 << self.precision, np.uint8)
        hll_sparse_to_dense(registers, self.entries, self.precision)
        self.registers, self.entries = registers, _no_entries()

    def merge(self, other: HyperLogLogPlusPlus) -> None:
        """Add everything ``other`` has seen: bit-identical to one pass over both."""
        if self.precision != other.precision:
            raise BadRequest(f"cannot merge HyperLogLog++ of precision {self.precision} and {other.precision}")
        other._settle()
        if other.registers is None:
            if self.registers is None:
                self._pending.append(other.entries)
                self._pending_size += other.entries.size
                self._settle()
            else:
                hll_sparse_to_dense(self.registers, other.entries, self.precision)
            return
        self._settle()
        if self.registers is None:
            self._densify()
        assert self.registers is not None
        np.maximum(self.registers, other.registers, out=self.registers)

    def estimate(self) -> float:
        """Estimated number of distinct values."""
        self._settle()
        if self.registers is None:
            n = self.entries.size
            return _SPARSE_BUCKETS * -math.log1p(-n / _SPARSE_BUCKETS)
        q = 64 - self.precision
        counts = np.bincount(self.registers, minlength=q + 2).astype(np.float64)
        return improved_estimate(counts, self.precision)

    def standard_error(self) -> float:
        """Relative standard error of :meth:`estimate`."""
        self._settle()
        if self.registers is None:
            t = self.entries.size / _SPARSE_BUCKETS
            return math.sqrt(max(0.0, math.expm1(t) - t) * _SPARSE_BUCKETS) / max(1, self.entries.size)
        return 1.04 / math.sqrt(1 << self.precision)

    def interval(self, z: float = 1.96) -> tuple[float, float]:
        """Interval that holds the true count with the confidence of ``z`` standard errors."""
        estimate, error = self.estimate(), self.standard_error()
        if self.registers is None:
            # Collisions in 2**25 buckets only ever hide values.
            return float(self.entries.size), estimate * (1 + z * error)
        return estimate * (1 - z * error), estimate * (1 + z * error)

    def fields(self) -> codec.Fields:
        self._settle()
        return {"precision": self.precision, "entries": self.entries, "registers": self.registers}

    @classmethod
    def from_fields(cls, fields: codec.Fields) -> HyperLogLogPlusPlus:
        registers = fields["registers"]
        return cls(fields["precision"], fields["entries"], None if registers is None else registers.copy())

    def to_bytes(self) -> bytes:
        return codec.pack(_NAME, _VERSION, self.fields())

    @classmethod
    def from_bytes(cls, data: bytes | memoryview) -> HyperLogLogPlusPlus:
        return cls.from_fields(codec.unpack(data, _NAME, _VERSION))


def improved_estimate(counts: npt.NDArray[np.float64], precision: int) -> float:
    """Ertl's improved raw estimator from the histogram of register values (2017, algorithm 6)."""
    m = float(1 << precision)
    q = 64 - precision
    if counts[0] == m:
        return 0.0
    z = m * _tau(1.0 - counts[q + 1] / m)
    for k in range(q, 0, -1):
        z = 0.5 * (z + counts[k])
    z += m * _sigma(counts[0] / m)
    return _ALPHA_INFINITY * m * m / z


def _sigma(x: float) -> float:
    y, z = 1.0, x
    while True:
        x *= x
        before = z
        z += x * y
        y += y
        if z == before:
            return z


def _tau(x: float) -> float:
    if x in (0.0, 1.0):
        return 0.0
    y, z = 1.0, 1.0 - x
    while True:
        x = math.sqrt(x)
        before = z
        y *= 0.5
        z -= (1.0 - x) ** 2 * y
        if z == before:
            return z / 3.0
