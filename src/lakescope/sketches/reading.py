"""What a counter says once it has seen everything: small, whatever the counter."""

from __future__ import annotations

import time
from typing import NamedTuple

from lakescope.sketches.counter import Counter


class Reading(NamedTuple):
    """Estimate, 95% interval, size and cost of one counter."""

    counter: str
    estimate: float
    low: float
    high: float
    bytes: int
    seconds: float
    parameters: str
    warning: str | None

    @classmethod
    def of(cls, counter: Counter, seconds: float) -> Reading:
        """Read a counter that took so many CPU-seconds to update."""
        began = time.process_time()
        estimate, (low, high) = counter.estimate(), counter.interval()
        seconds += time.process_time() - began
        parameters = ", ".join(f"{name}={value}" for name, value in counter.parameters().items())
        return cls(
            *(counter.name, estimate, low, high, -(-counter.memory_bits // 8), seconds, parameters, counter.warning())
        )


class ReadColumn(NamedTuple):
    """One column, read by several counters."""

    table: str
    column: str
    rows: int
    nulls: int
    readings: list[Reading]
