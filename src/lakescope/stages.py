"""Where the time goes: wall and CPU seconds of each stage of a build or a question.

Stages are measured always, since that costs nothing, logged if somebody listens, kept in the manifest of a build, and
shown by ``lakescope --profile`` and ``lakescope timings``. CPU seconds are those of this process with all of its
threads; those of Spark's Python workers are added up by the tasks themselves (``workers``), those of its JVM are not.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from lakescope.logs import log

#: Stages that are kept of one piece of work.
_MOST = 1000


@dataclass(slots=True)
class Stage:
    """One stage: what it took, and how much it worked on as far as that is known."""

    stage: str
    wall: float = 0.0
    cpu: float = 0.0
    workers: float | None = None
    rows: int | None = None
    bytes: int | None = None


@dataclass(slots=True)
class Stages:
    """The stages of one piece of work, in the order in which they ended."""

    what: str
    done: list[Stage] = field(default_factory=list)

    @contextmanager
    def measure(self, name: str) -> Iterator[Stage]:
        """Measure what is done inside; a stage that fails is measured, too."""
        stage = Stage(name)
        wall, cpu = time.monotonic(), time.process_time()
        try:
            yield stage
        finally:
            stage.wall = round(time.monotonic() - wall, 4)
            stage.cpu = round(time.process_time() - cpu, 4)
            self.add([stage])
            told = {name: value for name, value in asdict(stage).items() if value is not None}
            log("stage", work=self.what, **told)

    def add(self, stages: Sequence[Stage]) -> None:
        """Keep stages that were measured; of a process that runs for long, the first ones."""
        self.done += stages[: max(0, _MOST - len(self.done))]

    def records(self) -> list[dict[str, Any]]:
        """The stages as plain data."""
        return [asdict(stage) for stage in self.done]


#: Stages of what this process was asked on the command line.
COMMAND = Stages("command")
