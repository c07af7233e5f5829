"""Time that may be spent, and a flag that compiled loops look at."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from lakescope.array_types import I8


class Budget:
    """Seconds from now on; None: as many as it takes."""

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds
        self._ends = None if seconds is None else time.monotonic() + seconds

    @property
    def late(self) -> bool:
        """Whether the time is up."""
        return self._ends is not None and time.monotonic() > self._ends

    def part(self, share: float) -> Budget:
        """A share of what is left."""
        return Budget(None if self._ends is None else share * max(0.0, self._ends - time.monotonic()))

    @contextmanager
    def flag(self) -> Iterator[I8]:
        """A flag that is raised when the time is up, for loops that hold no lock of the interpreter."""
        raised = np.full(1, self.late, np.int8)
        if self._ends is None or raised[0]:
            yield raised
            return
        timer = threading.Timer(max(0.0, self._ends - time.monotonic()), raised.fill, (1,))
        timer.daemon = True
        timer.start()
        try:
            yield raised
        finally:
            timer.cancel()
