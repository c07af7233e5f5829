"""Moments in time as numbers and back: epoch seconds in, ISO text out."""

from __future__ import annotations

import numpy as np

#: Microseconds of a day.
_DAY = 86_400_000_000


def moment_text(seconds: float, kind: str) -> str | None:
    """Epoch seconds as ISO text for a date, time or timestamp column; None for a time that no clock shows."""
    micros = round(seconds * 1e6)
    if micros == _DAY and seconds < 86_400:
        micros -= 1
    if kind == "time" and not 0 <= micros < _DAY:
        return None
    date, _, clock = str(np.datetime64(micros, "us")).partition("T")
    if kind == "date":
        return date
    clock = clock[:8] if micros % 1_000_000 == 0 else clock.rstrip("0")
    return clock if kind == "time" else f"{date}T{clock}"
