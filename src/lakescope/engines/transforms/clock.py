"""Time that may be spent on learning, and who is told how far it is."""

from __future__ import annotations

import time

from lakescope.watch import NOBODY, Watch


class Clock:
    """Seconds from now on (None: as many as it takes); whoever watches is told what is done, and may end them."""

    def __init__(self, seconds: float | None = None, watch: Watch = NOBODY) -> None:
        self._seconds = seconds
        self._watch = watch
        self._whole: Clock | None = None
        self.begin()

    def begin(self) -> None:
        """Count from now on: what was loaded and read before takes nothing of the time."""
        self._ends = None if self._seconds is None else time.monotonic() + self._seconds

    @property
    def stopped(self) -> bool:
        """Whether somebody ended the time."""
        return self._watch.stopped

    @property
    def late(self) -> bool:
        """Whether the time is up, or somebody ended it."""
        if self.stopped or (self._ends is not None and time.monotonic() > self._ends):
            return True
        return self._whole is not None and self._whole.late

    @property
    def why_late(self) -> str:
        """Why there was no more time, in words."""
        return "it was interrupted" if self.stopped else "time was up (a larger budget gives more)"

    def part(self, seconds: float) -> Clock:
        """At most so many seconds of what is left; nobody is told of them."""
        part = Clock(seconds)
        part._whole = self
        return part

    def tell(self, what: str) -> None:
        """Say what is done."""
        self._watch.tell(what)
