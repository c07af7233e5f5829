"""A log that a stranger cannot fill: what is said again and again is said now and then, with how often it was left out.

A server logs what clients do wrong (bytes that are no HTTP, connections it has no descriptors for), and clients can do
it wrong as often as they like.
"""

from __future__ import annotations

import logging
import threading
import time

#: Seconds in which a line is logged once, and different lines that are remembered.
_SECONDS, _REMEMBERED = 60.0, 100


class Sparing(logging.Filter):
    """Lets a line of a kind through once in a while. A kind is its text before figures and names are filled in."""

    def __init__(self, seconds: float = _SECONDS) -> None:
        super().__init__()
        self._seconds = seconds
        self._lock = threading.Lock()
        self._seen: dict[tuple[str, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a line is logged; it says how many like it were not."""
        kind = record.name, str(record.msg).partition("\n")[0]
        now = time.monotonic()
        with self._lock:
            since, left_out = self._seen.pop(kind, (float("-inf"), 0))
            if now - since < self._seconds:
                self._seen[kind] = since, left_out + 1
                return False
            if len(self._seen) >= _REMEMBERED:
                del self._seen[next(iter(self._seen))]
            self._seen[kind] = now, 0
        if left_out:
            record.msg = f"{record.msg} ({left_out:,} more like it since the last one)"
        return True


def be_sparing() -> None:
    """Have what the server and its loop say about clients logged sparingly."""
    for name in ("asyncio", "uvicorn.error"):
        logger = logging.getLogger(name)
        if not any(isinstance(each, Sparing) for each in logger.filters):
            logger.addFilter(Sparing())
