"""LogLog, SuperLogLog and HyperLogLog: registers that keep the longest run of leading zeros (spec 2.4.5 to 2.4.7).

The first bits of a hash choose a register, one plus the leading zeros of the others is what it keeps the largest of; 0
means never hit. The three differ in how they average. Registers fold down losslessly to a smaller precision.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from lakescope.array_types import I64, U64
from lakescope.errors import BadRequest
from lakescope.sketches import codec
from lakescope.sketches.counter import N_MAX, Counter, Traits, check_between, check_positive
from lakescope.sketches.ertl import improved_estimate, ml_estimate
from lakescope.sketches.kernels import hll_dense_update

Registers = npt.NDArray[np.uint8]

#: Bits that hold the longest run of a 64-bit hash.
REGISTER_BITS = 6


class _LogLogFamily(Counter):
    """Registers and all that does not depend on how they are averaged."""

    #: Relative standard error times the root of the number of registers.
    spread: float

    def __init__(self, precision: int) -> None:
        check_between("precision", precision, 4, 20)
        self.precision = precision
        self.registers: Registers = np.zeros(1 << precision, np.uint8)

    def update_hashes(self, hashes: U64, counts: I64 | None = None) -> None:
        hll_dense_update(self.registers, hashes, self.precision)

    def _merge(self, other: Self) -> None:
        np.maximum(self.registers, other.registers, out=self.registers)

    def parameters(self) -> dict[str, Any]:
        return {"precision": self.precision}

    def estimate(self) -> float:
        return self._average() if self.registers.any() else 0.0

    @abstractmethod
    def _average(self) -> float: ...

    def standard_error(self) -> float:
        return self.spread / math.sqrt(self.registers.size) if self.registers.any() else 0.0

    def at_least(self) -> float:
        return float(np.count_nonzero(self.registers))

    @property
    def memory_bits(self) -> int:
        return REGISTER_BITS * self.registers.size

    def _content(self) -> codec.Fields:
        return {"registers": self.registers}

    def _restore(self, fields: codec.Fields) -> None:
        self.registers = fields["registers"].copy()


class LogLog(_LogLogFamily):
    """The geometric mean of the registers (Durand and Flajolet). Far too high below a few values a register."""

    name = "loglog"
    spread = 1.3
    traits = Traits("bit pattern", "logarithmic hashing", "leading 0s", low_range=False)

    def __init__(self, precision: int = 15) -> None:
        super().__init__(precision)

    def _average(self) -> float:
        m = self.registers.size
        return float(loglog_alpha(m) * m * 2 ** self.registers.mean())

    @property
    def below_range(self) -> bool:
        return 0 < self.estimate() < 6 * self.registers.size


class SuperLogLog(_LogLogFamily):
    """The geometric mean of the 70% smallest registers, none of which may exceed what ``n_max`` values would need."""

    name = "superloglog"
    spread = 1.05
    traits = Traits("bit pattern", "logarithmic hashing", "leading 0s", low_range=False)

    def __init__(self, precision: int = 14, n_max: float = N_MAX) -> None:
        super().__init__(precision)
        check_positive("n_max", n_max)
        self.n_max = n_max

    @property
    def highest(self) -> int:
        """What a register may hold at most (the restriction rule)."""
        return max(1, min(64, math.ceil(math.log2(max(2.0, self.n_max / self.registers.size)) + 3)))

    def update_hashes(self, hashes: U64, counts: I64 | None = None) -> None:
        super().update_hashes(hashes)
        np.minimum(self.registers, self.highest, out=self.registers)

    def parameters(self) -> dict[str, Any]:
        return {"precision": self.precision, "n_max": self.n_max}

    def _average(self) -> float:
        kept = np.sort(self.registers)[: int(0.7 * self.registers.size)]
        return float(1.09295 * kept.size * 2 ** kept.mean())

    @property
    def below_range(self) -> bool:
        return 0 < self.estimate() < 6 * self.registers.size

    @property
    def memory_bits(self) -> int:
        return math.ceil(math.log2(self.highest + 1)) * self.registers.size


class HyperLogLog(_LogLogFamily):
    """The harmonic mean of the registers, linear counting while many are empty (Flajolet et al.).

    ``estimator``: ``classic`` as published, ``improved`` or ``ml`` by Ertl (2017), without its bump between the ranges.
    """

    name = "hll"
    spread = 1.04
    traits = Traits("bit pattern", "logarithmic hashing", "leading 0s", set_operations=True)

    def __init__(self, precision: int = 14, estimator: Literal["classic", "improved", "ml"] = "classic") -> None:
        super().__init__(precision)
        if estimator not in ("classic", "improved", "ml"):
            raise BadRequest(f"no estimator {estimator!r} for HyperLogLog", hint="use classic, improved or ml")
        self.estimator = estimator

    def parameters(self) -> dict[str, Any]:
        return {"precision": self.precision, "estimator": self.estimator}

    def _average(self) -> float:
        if self.estimator == "classic":
            return classic_estimate(self.registers)
        histogram = register_histogram(self.registers, self.precision)
        estimate = improved_estimate if self.estimator == "improved" else ml_estimate
        return estimate(histogram, self.precision)

    def folded(self, precision: int) -> HyperLogLog:
        """The counter that would have been made of the same values with a smaller precision."""
        check_between("precision", precision, 4, self.precision)
        made = HyperLogLog(precision, self.estimator)
        made.registers = fold_registers(self.registers, self.precision, precision)
        return made


def loglog_alpha(m: int) -> float:
    """LogLog's correction of the bias: 0.39701, and its exact value where registers are few."""
    if m >= 64:
        return 0.39701
    return float((math.gamma(-1 / m) * (1 - 2 ** (1 / m)) / math.log(2)) ** -m)


def hyperloglog_alpha(m: int) -> float:
    """HyperLogLog's correction of the bias."""
    return {16: 0.673, 32: 0.697, 64: 0.709}.get(m, 0.7213 / (1 + 1.079 / m))


def raw_estimate(registers: Registers) -> float:
    """HyperLogLog's harmonic mean without any correction of ranges."""
    m = registers.size
    counts = np.bincount(registers)
    return float(hyperloglog_alpha(m) * m * m / (counts * np.exp2(-np.arange(counts.size))).sum())


def classic_estimate(registers: Registers) -> float:
    """As published; a 64-bit hash needs no correction of the large range."""
    m = registers.size
    raw, empty = raw_estimate(registers), m - int(np.count_nonzero(registers))
    return m * math.log(m / empty) if raw <= 2.5 * m and empty else raw


def register_histogram(registers: Registers, precision: int) -> npt.NDArray[np.float64]:
    """How many registers hold each value from 0 to 65 - precision."""
    return np.bincount(registers, minlength=66 - precision).astype(np.float64)


def fold_registers(registers: Registers, precision: int, smaller: int) -> Registers:
    """Registers at a smaller precision: bits that chose a register now are part of the run."""
    step = precision - smaller
    grouped = registers.reshape(-1, 1 << step)
    # Within a group, register i was chosen by these bits: their leading zeros, and for i = 0 all of them and the run.
    lead = np.array([step - i.bit_length() + 1 for i in range(1 << step)], np.uint8)
    runs = np.where(grouped == 0, 0, lead)
    runs[:, 0] = np.where(grouped[:, 0] == 0, 0, grouped[:, 0] + step)
    return runs.max(axis=1).astype(np.uint8)  # type: ignore[no-any-return]
