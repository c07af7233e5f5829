"""Progress of a build, told through small files so that it works the same on a laptop, a cluster and Spark Connect.

Each task appends one line per finished unit to a file of its own in the staging area; the driver adds them up.
"""

from __future__ import annotations

import json
import shutil
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lakescope.sources.model import Unit
from lakescope.store import disk

_FOLDER = "progress"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a build is."""

    tables: int
    units: int
    units_total: int
    bytes: int
    bytes_total: int
    seconds: float
    seconds_left: float | None = None
    """Time left if work goes on as it did since the first piece was done; None before that."""
    step: int = 0
    """0 while data is scanned, then the step of inverting its values."""
    steps: int = 2


Listener = Callable[[Progress], None]


class ProgressLog:
    """The worker's side: appends finished units."""

    def __init__(self, staging: str) -> None:
        folder = Path(staging) / _FOLDER
        folder.mkdir(exist_ok=True)
        self._path = folder / f"{uuid.uuid4().hex}.log"

    def done(self, unit: Unit, rows: int, seconds: float, *, failed: bool) -> None:
        about = {"table": unit.table, "unit": unit.ordinal, "units": unit.count, "bytes": unit.size, "rows": rows}
        text = json.dumps({**about, "seconds": round(seconds, 4), "failed": failed})
        disk.append(self._path, f"{unit.size}\t{text}\n".encode("ascii"))


def finished_units(staging: Path) -> Iterator[dict[str, Any]]:
    """What tasks told of the units they finished; twice of a unit whose task was tried twice."""
    for path in (staging / _FOLDER).glob("*.log"):
        for line in path.read_text("ascii").split("\n")[:-1]:
            yield json.loads(line.partition("\t")[2])


class ProgressWatch(threading.Thread):
    """The driver's side: adds up the logs a few times a second and tells the listener.

    A task tried again counts its units twice; the sums are capped at the totals.
    """

    def __init__(
        self, staging: Path, tables: int, units: int, size: int, listener: Listener, *, every: float = 0.25
    ) -> None:
        super().__init__(name="lakescope-progress", daemon=True)
        self._folder = staging / _FOLDER
        shutil.rmtree(self._folder, ignore_errors=True)  # what a job before told
        self._tables, self._units, self._bytes = tables, units, size
        self._listener = listener
        self._every = every
        self._ended = threading.Event()
        self._began = time.monotonic()
        self._first: tuple[float, int] | None = None

    def run(self) -> None:
        pause = self._every
        while not self._ended.wait(pause):
            began = time.monotonic()
            self.tell()
            # Thousands of logs take a while to read: never more than a twentieth of the time.
            pause = max(self._every, 20 * (time.monotonic() - began))

    def tell(self) -> None:
        """Report the present state."""
        sizes = [
            int(line.partition("\t")[0])
            for log in self._folder.glob("*.log")
            for line in log.read_text("ascii").split("\n")[:-1]
        ]
        units, done = min(len(sizes), self._units), min(sum(sizes), self._bytes)
        now = time.monotonic()
        # Not counted from the start: before the first piece is done, workers start and kernels may be compiled.
        if done and self._first is None:
            self._first = now, done
        left = None
        if self._first is not None and done > self._first[1]:
            left = (self._bytes - done) * (now - self._first[0]) / (done - self._first[1])
        self._listener(Progress(self._tables, units, self._units, done, self._bytes, now - self._began, left))

    def end(self) -> None:
        self._ended.set()
        self.join()
        self.tell()
