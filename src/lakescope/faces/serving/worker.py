"""A process of its own for work that reads tables: it can be ended at any time, and what it uses is bounded.

Python's threads cannot be stopped, a C++ reader that trusts a hostile file may end its process, and a small file may
ask for all of the memory. So whatever reads a file is done by a worker: a process that is asked one question at a time
over its pipes, like the helper of :mod:`lakescope.sources.io.isolated`. When time is up, or nobody wants the answer any
more, it is killed, and the next question starts another. A question is a line of JSON; lines of progress come back,
then one answer. Nothing but plain data comes from it: what a hostile file could make of the worker stays there.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
from collections.abc import Callable
from typing import Any

from lakescope import processes
from lakescope.errors import LakescopeError, SourceError
from lakescope.faces.serving.refusals import cancelled, late, untold

#: Told now and then by what takes long: in a few words, and the share that is done if it is known.
Progress = Callable[[str, float | None], None]
#: Answers a question in the worker: its name, its parameters, whom to tell.
Answerer = Callable[[str, dict[str, Any], Progress], dict[str, Any]]

#: The variable by which a worker is told of its index.
GIVEN = "LAKESCOPE_WORKER"
OUT_OF_MEMORY = "needs more memory than a question may use"


class Worker:
    """Asks a process of its own; one question at a time."""

    def __init__(self, index: str, memory: int) -> None:
        self._arguments = json.dumps({"index": index, "memory": memory})
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._ended: list[LakescopeError] = []
        self._asking = False
        #: Whether somebody is about to ask, too.
        self._busy = False
        self._closed = False
        self._old = False

    def start(self) -> None:
        """Begin to load what every question needs, if it has not begun."""
        with self._lock:
            if self._process is not None or self._closed:
                return
            self._process = processes.start(
                "lakescope.faces.serving.worker_process",
                environment={GIVEN: self._arguments},
                stderr=subprocess.DEVNULL,
            )

    @property
    def pid(self) -> int | None:
        """Its number, while it runs."""
        process = self._process
        return process.pid if process is not None else None

    def ask(self, question: str, parameters: dict[str, Any], seconds: float, progress: Progress) -> dict[str, Any]:
        """The answer, within so many seconds; refuses with the reason if there is none."""
        with self._lock:
            self._busy = True
        try:
            return self._ask(question, parameters, seconds, progress)
        finally:
            with self._lock:
                self._busy = False

    def _ask(self, question: str, parameters: dict[str, Any], seconds: float, progress: Progress) -> dict[str, Any]:
        if self._old:
            self._old = False
            self.end()
        self._ended.clear()
        self.start()
        with self._lock:
            process, self._asking = self._process, self._process is not None
        if process is None:  # ended before it could be asked
            raise cancelled()
        assert process.stdin is not None
        assert process.stdout is not None
        clock = threading.Timer(seconds, self.end, [late(seconds), process])
        clock.daemon = True
        clock.start()
        try:
            with contextlib.suppress(BrokenPipeError, ValueError):
                process.stdin.write(json.dumps({"question": question, "parameters": parameters}).encode() + b"\n")
                process.stdin.flush()
                for line in process.stdout:
                    said = json.loads(line)
                    if "progress" in said:
                        progress(*said["progress"])
                    elif "error" in said:
                        raise untold(said["error"], said["status"])
                    else:
                        answer: dict[str, Any] = said["answer"]
                        return answer
        finally:
            clock.cancel()
            with self._lock:
                self._asking = False
                if self._process is not process:
                    process.stdout.close()
        reason = (
            self._ended[0]
            if self._ended
            else SourceError(
                "the file makes its reader crash, or " + OUT_OF_MEMORY,
                hint="try a smaller or a repaired file",
                code="crashed",
            )
        )
        self.end(reason)
        raise reason

    def renew(self) -> None:
        """Open the index anew before the next question; who has none lets go of files that may be removed by now."""
        with self._lock:
            self._old = True
            idle = None if self._busy else self._process
        if idle is not None:
            self.end(only=idle)

    def close(self) -> None:
        """End the process for good: none is started any more."""
        with self._lock:
            self._closed = True
        self.end()

    def end(self, reason: LakescopeError | None = None, only: subprocess.Popen[bytes] | None = None) -> None:
        """End the process (``only`` if it is still that one); whoever waits for its answer is told the reason."""
        with self._lock:
            process = self._process
            if process is None or only not in (None, process):
                return
            self._process = None
            self._ended = [reason or cancelled()]
            process.kill()
            process.wait()
            # What it said last is read by whoever waits, who closes the other pipe.
            if process.stdin is not None:
                with contextlib.suppress(BrokenPipeError):
                    process.stdin.close()
            if process.stdout is not None and not self._asking:
                process.stdout.close()
