"""Moments in time as numbers and back: epoch seconds in, ISO text out."""

from __future__ import annotations

import numpy as np


def moment_text(seconds: float, kind: str) -> str:
    """Epoch seconds as ISO text for a date, time or timestamp column."""
    micros = round(seconds * 1e6)
    if kind == "time":
        moment = np.datetime64(micros % 86_400_000_000, "us")
        return str(moment).split("T")[1].rstrip("0").rstrip(".") if micros % 1_000_000 else str(moment)[11:19]
    moment = np.datetime64(micros, "us")
    text = str(moment)
    if kind == "date":
        return text[:10]
    return text[:19] if micros % 1_000_000 == 0 else text.rstrip("0")
