"""HyperLogLog from which values can be taken out again: a counter for every run of every register (Nazi et al. 4).

A register holds the longest run that is left. Rows are counted, not values: a value that occurs twice must be taken
out twice. Memory is fixed, whatever is added; sketches merge by adding their counters.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lakescope.array_types import I64, U64
from lakescope.errors import BadRequest
from lakescope.sketches import codec
from lakescope.sketches.counter import Counter, Traits, check_between
from lakescope.sketches.ertl import improved_estimate
from lakescope.sketches.kernels import hll_runs
from lakescope.sketches.loglog import Registers, register_histogram

#: Relative standard error times the root of the number of registers (Flajolet et al.).
_SPREAD = 1.04
_COUNTER_BITS = 32


class DeletableHyperLogLog(Counter):
    """Counts distinct values under insertions and deletions; always equal to one built from the rows that are left."""

    name = "hll-deletable"
    traits = Traits("bit pattern", "logarithmic hashing", "leading 0s", deletions=True)

    def __init__(self, precision: int = 10) -> None:
        check_between("precision", precision, 4, 16)
        self.precision = precision
        #: How many rows threw each run (1 to 65 - precision; the first entry is not used) into each register.
        self.counters: npt.NDArray[np.int32] = np.zeros((1 << precision, 66 - precision), np.int32)

    def update_hashes(self, hashes: U64, counts: I64 | None = None) -> None:
        places, runs = hll_runs(hashes, self.precision)
        np.add.at(self.counters, (places, runs), 1 if counts is None else counts.astype(np.int32))

    def remove(self, values: Any) -> None:
        """Take rows out again that were added before."""
        from lakescope.values.hashed import hashes_of

        for hashes in hashes_of(values):
            self.remove_hashes(hashes)

    def remove_hashes(self, hashes: U64) -> None:
        """Take values out by their hashes; nothing is taken out if one was never there."""
        places, runs = hll_runs(hashes, self.precision)
        taken = np.zeros_like(self.counters)
        np.add.at(taken, (places, runs), 1)
        if (taken > self.counters).any():
            raise BadRequest(
                "cannot remove rows that were never added", hint="remove each row as often as it was added"
            )
        self.counters -= taken

    @property
    def registers(self) -> Registers:
        """What an ordinary HyperLogLog of the rows that are left would hold."""
        levels = np.arange(self.counters.shape[1], dtype=np.uint8)
        found: Registers = np.where(self.counters > 0, levels, np.uint8(0)).max(axis=1)
        return found

    def _merge(self, other: DeletableHyperLogLog) -> None:
        self.counters += other.counters

    def parameters(self) -> dict[str, Any]:
        return {"precision": self.precision}

    def estimate(self) -> float:
        return improved_estimate(register_histogram(self.registers, self.precision), self.precision)

    def standard_error(self) -> float:
        return float(_SPREAD / np.sqrt(1 << self.precision)) if self.counters.any() else 0.0

    def at_least(self) -> float:
        return float(np.count_nonzero(self.counters))

    @property
    def memory_bits(self) -> int:
        return _COUNTER_BITS * self.counters.size

    def _content(self) -> codec.Fields:
        return {"counters": self.counters}

    def _restore(self, fields: codec.Fields) -> None:
        self.counters = fields["counters"].reshape(1 << self.precision, -1).copy()
