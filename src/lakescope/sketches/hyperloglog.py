"""HyperLogLog++: distinct counts in at most 12 KiB, near exact for small sets (Heule et al.; spec 2.4.8).

While small, a sorted list of 32-bit entries (25-bit index, 6-bit rho) counts almost exactly; when the list would
outgrow the registers it folds losslessly into 2**precision of them.
"""

from __future__ import annotations

import math
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from lakescope.array_types import I64, U32, U64
from lakescope.errors import BadRequest
from lakescope.sketches import codec
from lakescope.sketches.counter import Counter, Interval, Traits, check_between, z_score
from lakescope.sketches.ertl import improved_estimate, ml_estimate
from lakescope.sketches.kernels import hll_dense_update, hll_sparse_entries, hll_sparse_to_dense
from lakescope.sketches.loglog import REGISTER_BITS, Registers, raw_estimate, register_histogram

SPARSE_PRECISION = 25
_SPARSE_BUCKETS = 1 << SPARSE_PRECISION
#: Relative standard error times the root of the number of registers (Flajolet et al.).
_SPREAD = 1.04
#: Linear counting is trusted up to here, by precision from 4 to 18 (Heule et al.).
_THRESHOLDS = (
    *(10, 20, 40, 80, 220, 400, 900, 1800, 3100),
    *(6500, 11500, 20000, 50000, 120000, 350000),
)
#: Points of the table of biases that are averaged (Heule et al.).
_NEIGHBOURS = 6

Estimator = Literal["improved", "ml", "bias"]


class HyperLogLogPlusPlus(Counter):
    """HyperLogLog with a sparse beginning; the index keeps one for every column.

    ``estimator``: ``improved`` and ``ml`` by Ertl (2017) need no tables; ``bias`` is the published one, by tables of
    the bias that ``benchmarks/hll_bias.py`` measures.
    """

    name = "hll++"
    traits = Traits("bit pattern", "logarithmic hashing", "leading 0s", set_operations=True)

    def __init__(self, precision: int = 14, estimator: Estimator = "improved") -> None:
        check_between("precision", precision, 4, 18)
        if estimator not in ("improved", "ml", "bias"):
            raise BadRequest(f"no estimator {estimator!r} for HyperLogLog++", hint="use improved, ml or bias")
        self.precision = precision
        self.estimator = estimator
        self.entries: U32 = np.empty(0, np.uint32)
        self.registers: Registers | None = None
        self._pending: list[U32] = []
        self._waiting = 0

    @property
    def sparse_limit(self) -> int:
        """Entries the list may hold before the registers would be smaller."""
        return REGISTER_BITS * (1 << self.precision) // 32

    def update_hashes(self, hashes: U64, counts: I64 | None = None) -> None:
        if self.registers is not None:
            hll_dense_update(self.registers, hashes, self.precision)
            return
        entries = hll_sparse_entries(hashes)
        self._pending.append(entries)
        self._waiting += entries.size
        if self._waiting > self.sparse_limit:
            self._settle()

    def settled(self) -> U32:
        """The sorted list of entries; empty once there are registers."""
        self._settle()
        return self.entries

    def _settle(self) -> None:
        """Fold pending entries into the sorted list, one entry (the largest rho) per index."""
        if not self._pending:
            return
        merged = np.sort(np.concatenate([self.entries, *self._pending]))
        self._pending, self._waiting = [], 0
        index = merged >> np.uint32(7)
        last = np.ones(merged.size, bool)
        last[:-1] = index[1:] != index[:-1]
        self.entries = merged[last]
        if self.entries.size > self.sparse_limit:
            self._densify()

    def _densify(self) -> None:
        registers = np.zeros(1 << self.precision, np.uint8)
        hll_sparse_to_dense(registers, self.entries, self.precision)
        self.registers, self.entries = registers, np.empty(0, np.uint32)

    def _merge(self, other: HyperLogLogPlusPlus) -> None:
        other._settle()
        if other.registers is None:
            if self.registers is None:
                self._pending.append(other.entries)
                self._waiting += other.entries.size
                self._settle()
            else:
                hll_sparse_to_dense(self.registers, other.entries, self.precision)
            return
        self._settle()
        if self.registers is None:
            self._densify()
        assert self.registers is not None
        np.maximum(self.registers, other.registers, out=self.registers)

    def parameters(self) -> dict[str, Any]:
        return {"precision": self.precision, "estimator": self.estimator}

    def estimate(self) -> float:
        self._settle()
        if self.registers is None:
            return _SPARSE_BUCKETS * -math.log1p(-self.entries.size / _SPARSE_BUCKETS)
        if self.estimator == "bias":
            return _bias_corrected(self.registers, self.precision)
        histogram = register_histogram(self.registers, self.precision)
        estimate = ml_estimate if self.estimator == "ml" else improved_estimate
        return estimate(histogram, self.precision)

    def standard_error(self) -> float:
        self._settle()
        if self.registers is None:
            t = self.entries.size / _SPARSE_BUCKETS
            return math.sqrt(max(0.0, math.expm1(t) - t) * _SPARSE_BUCKETS) / max(1, self.entries.size)
        return _SPREAD / math.sqrt(1 << self.precision)

    def at_least(self) -> float:
        self._settle()
        # Two values that share a place only ever hide one another.
        return float(self.entries.size if self.registers is None else np.count_nonzero(self.registers))

    @property
    def memory_bits(self) -> int:
        self._settle()
        return 32 * self.entries.size if self.registers is None else REGISTER_BITS << self.precision

    # --- sets: by inclusion and exclusion, so errors are those of the larger counts -----------------------------------

    def union(self, other: HyperLogLogPlusPlus, confidence: float = 0.95) -> Interval:
        both = self | other
        return Interval(both.estimate(), *both.interval(confidence))

    def intersection(self, other: HyperLogLogPlusPlus, confidence: float = 0.95) -> Interval:
        mine, theirs, both = self.estimate(), other.estimate(), (self | other).estimate()
        return self._around(mine + theirs - both, other, confidence, at_most=min(mine, theirs))

    def difference(self, other: HyperLogLogPlusPlus, confidence: float = 0.95) -> Interval:
        """Values that are here and not there."""
        both = self | other
        return self._around(both.estimate() - other.estimate(), other, confidence, at_most=self.estimate())

    def jaccard(self, other: HyperLogLogPlusPlus, confidence: float = 0.95) -> Interval:
        return self._share((self | other).estimate(), other, confidence)

    def containment(self, other: HyperLogLogPlusPlus, confidence: float = 0.95) -> Interval:
        """The share of the values here that are also there."""
        return self._share(self.estimate(), other, confidence)

    def _share(self, of: float, other: HyperLogLogPlusPlus, confidence: float) -> Interval:
        found = self.intersection(other, confidence)
        return Interval(*(min(1.0, part / of) for part in found)) if of else Interval(0.0, 0.0, 0.0)

    def _around(self, value: float, other: HyperLogLogPlusPlus, confidence: float, at_most: float) -> Interval:
        """What three estimates with errors of their own leave open."""
        errors = [each.estimate() * each.standard_error() for each in (self, other, self | other)]
        spread = z_score(confidence) * math.hypot(*errors)
        value = min(max(0.0, value), at_most)
        return Interval(value, max(0.0, value - spread), min(at_most, value + spread))

    def _content(self) -> codec.Fields:
        self._settle()
        return {"entries": self.entries, "registers": self.registers}

    def _restore(self, fields: codec.Fields) -> None:
        registers = fields["registers"]
        self.entries = fields["entries"]
        self.registers = None if registers is None else registers.copy()


def _bias_corrected(registers: Registers, precision: int) -> float:
    """The published estimate: linear counting below a threshold, above it the raw one less its measured bias."""
    m = registers.size
    raw, empty = raw_estimate(registers), m - int(np.count_nonzero(registers))
    corrected = raw - _bias(raw, precision) if raw <= 5 * m else raw
    counted = m * math.log(m / empty) if empty else corrected
    return counted if counted <= _THRESHOLDS[precision - 4] else corrected


def _bias(raw: float, precision: int) -> float:
    """Mean bias of the raw estimates nearest to this one."""
    raws, biases = bias_table(precision)
    nearest = np.argsort(np.abs(raws - raw), kind="stable")[:_NEIGHBOURS]
    return float(biases[nearest].mean())


@cache
def bias_table(precision: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Raw estimates and their bias, as measured."""
    stored = np.frombuffer(files("lakescope.sketches").joinpath("hll_bias.f32").read_bytes(), "<f4")
    table = stored.reshape(len(_THRESHOLDS), 2, -1).astype(np.float64)[precision - 4]
    return table[0], table[1]
