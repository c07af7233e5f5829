"""GEE, the guaranteed-error estimator from a sample of rows (Charikar et al.; spec 2.5).

A sample says little about values it does not hold: a 1% error needs almost all rows. It is here for comparison.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lakescope.array_types import I64, U64
from lakescope.errors import BadRequest
from lakescope.sketches import codec
from lakescope.sketches.counter import Counter, Traits
from lakescope.sketches.exact import Exact


class GEE(Counter):
    """A sample of a fixed share of the rows without replacement: sqrt(n / r) times the values seen once, plus the rest.

    Every batch gives the share of its rows that keeps the whole sample at ``round(rate * rows)``, drawn by ``seed``.
    Unlike a sketch, the sample depends on how rows come in batches; merging asks for equal rates.
    """

    name = "gee"
    traits = Traits("none", "sampling", "sampling", slow=True)

    def __init__(self, rate: float = 0.1, seed: int = 0) -> None:
        if not 0 < rate <= 1:
            raise BadRequest(f"rate must lie between 0 and 1, not {rate}")
        self.rate = rate
        self.seed = seed
        self.rows = 0
        self.sampled = 0
        self._sample = Exact()

    def update_hashes(self, hashes: U64, counts: I64 | None = None) -> None:
        rows = hashes if counts is None else np.repeat(hashes, counts)
        wanted = round(self.rate * (self.rows + rows.size)) - self.sampled
        chance = np.random.default_rng([self.seed, self.rows])
        taken = rows[chance.choice(rows.size, min(max(0, wanted), rows.size), replace=False)]
        self.rows += rows.size
        self.sampled += taken.size
        self._sample.update_hashes(taken)

    def _merge(self, other: GEE) -> None:
        self._sample.merge(other._sample)
        self.rows += other.rows
        self.sampled += other.sampled

    def _sample_counts(self) -> tuple[int, int]:
        """Distinct values of the sample, and how many of them were seen once."""
        keys, counts = self._sample.values()
        return int(keys.size), int((counts == 1).sum())

    def parameters(self) -> dict[str, Any]:
        return {"rate": self.rate, "seed": self.seed}

    def estimate(self) -> float:
        if not self.sampled:
            return 0.0
        seen, once = self._sample_counts()
        return math.sqrt(self.rows / self.sampled) * once + (seen - once)

    def standard_error(self) -> float:
        """No normal spread: see :meth:`interval`."""
        return math.sqrt(1 / self.rate) - 1

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Between what was seen and all that values seen once may stand for (Charikar's bounds)."""
        if not self.sampled:
            return 0.0, float(self.rows)
        seen, once = self._sample_counts()
        return float(seen), self.rows * once / self.sampled + (seen - once)

    def at_least(self) -> float:
        return self._sample.estimate()

    @property
    def memory_bits(self) -> int:
        return 2 * self._sample.memory_bits

    def _content(self) -> codec.Fields:
        keys, counts = self._sample.values()
        return {"rows": self.rows, "sampled": self.sampled, "keys": keys, "counts": counts}

    def _restore(self, fields: codec.Fields) -> None:
        self.rows, self.sampled = fields["rows"], fields["sampled"]
        self._sample.update_hashes(fields["keys"], fields["counts"])
