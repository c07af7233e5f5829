"""Processes that search one index together. Each maps the same files; none holds more than its share of a search.

A question goes to all of them, and the answers come back in the order of the processes. One that dies takes its
question with it, which fails with a reason; the next question starts all of them anew, so that no answer is ever taken
for that of another question.
"""

from __future__ import annotations

import contextlib
import subprocess
import threading
from collections.abc import Sequence
from typing import Any

from lakescope import errors
from lakescope.engines.shards import messages
from lakescope.engines.shards.messages import Arrays, Message
from lakescope.errors import BadRequest, LakescopeError
from lakescope.processes import start

#: Processes of a pool, at most. Not measured: a guard against a number that was meant otherwise.
MOST = 256


class Pool:
    """So many processes for one generation of an index."""

    def __init__(self, location: str, generation: int, processes: int) -> None:
        if not 1 <= processes <= MOST:
            raise BadRequest(
                f"processes must be 1 to {MOST}, not {processes}", hint="one for each core is a good start"
            )
        self.size = processes
        self._opening = {"location": location, "generation": generation, "shards": processes}
        self._lock = threading.Lock()
        self._processes: list[subprocess.Popen[bytes]] = []
        self._closed = False

    def ask(self, question: str, fields: dict[str, Any], arrays: Sequence[Arrays] | Arrays) -> list[Message]:
        """Ask all processes, and get the answer of each; ``arrays`` are one dictionary for all, or one for each."""
        each = [arrays] * self.size if isinstance(arrays, dict) else arrays
        with self._lock:
            try:
                self._start()
                for process, some in zip(self._processes, each, strict=True):
                    messages.write(_pipe(process.stdin), {"question": question, **fields}, some)
                return [self._answer(number, process) for number, process in enumerate(self._processes)]
            except BaseException as error:
                # Whoever has not answered yet would answer the next question.
                self._end()
                if isinstance(error, OSError):
                    raise _died() from error
                raise

    def processes(self) -> list[int]:
        """Ids of the processes that are there."""
        return [process.pid for process in self._processes]

    def start(self) -> None:
        """Begin to load what every question needs."""
        with self._lock:
            self._start()

    def close(self) -> None:
        """End the processes for good."""
        with self._lock:
            self._closed = True
            self._end()

    def _start(self) -> None:
        if self._closed:
            raise LakescopeError("the search processes of this lake were ended", hint="open it again")
        if self._processes:
            return
        for number in range(self.size):
            # Ctrl-C is for whoever asks: these end when nobody is left to ask.
            process = start("lakescope.engines.shards.worker", start_new_session=True)
            self._processes.append(process)
            messages.write(_pipe(process.stdin), {**self._opening, "shard": number})

    def _answer(self, number: int, process: subprocess.Popen[bytes]) -> Message:
        said = messages.read(_pipe(process.stdout))
        if said is None:
            raise _died(number, process.wait())
        if "error" in said.fields:
            kind = getattr(errors, said.fields["error"], LakescopeError)
            raise kind(said.fields["message"], hint=said.fields["hint"])
        return said

    def _end(self) -> None:
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait()
            for pipe in (process.stdin, process.stdout):
                # What was not sent is for nobody.
                with contextlib.suppress(OSError):
                    _pipe(pipe).close()
        self._processes = []


def _pipe(pipe: Any) -> Any:
    assert pipe is not None
    return pipe


def _died(number: int | None = None, code: int | None = None) -> LakescopeError:
    which = "a search process" if number is None else f"search process {number}"
    how = "" if code is None else f" (ended by signal {-code})" if code < 0 else f" (code {code})"
    return LakescopeError(f"{which} died{how}: the question has no answer", hint="ask again: it is started anew")
