"""Time that may be spent on learning, and who is told how far it is."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from lakescope.errors import BadRequest

Listener = Callable[[str], None]


def _check(seconds: Any) -> None:
    hint = "give a number of seconds above 0; in Python, None is no limit"
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise BadRequest(f"the budget is a number of seconds, not {seconds!r}", hint=hint)
    if not seconds > 0:
        raise BadRequest(f"a budget of {seconds} seconds leaves no time", hint=hint)


class Clock:
    """Seconds from now on (None: as many as it takes), which may be ended before; a listener is told what is done."""

    def __init__(self, seconds: float | None = None, listener: Listener | None = None) -> None:
        if seconds is not None:
            _check(seconds)
        self.stopped = False
        self._seconds = seconds
        self._listener = listener
        self._whole: Clock | None = None
        self.begin()

    def begin(self) -> None:
        """Count from now on: what was loaded and read before takes nothing of the time."""
        self._ends = None if self._seconds is None else time.monotonic() + self._seconds

    @classmethod
    def of(cls, budget: float | Clock | None) -> Clock:
        """A clock of so many seconds, or the one that is given."""
        return budget if isinstance(budget, Clock) else cls(budget)

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

    def stop(self) -> None:
        """End the time now: what was found so far is told."""
        self.stopped = True

    def part(self, seconds: float) -> Clock:
        """At most so many seconds of what is left, without a listener."""
        part = Clock(seconds)
        part._whole = self
        return part

    def tell(self, what: str) -> None:
        """Say what is done."""
        if self._listener is not None:
            self._listener(what)
