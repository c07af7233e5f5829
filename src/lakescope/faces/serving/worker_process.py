"""The process that a :class:`lakescope.faces.serving.worker.Worker` asks: it reads questions and writes answers.

A question is a line of JSON on standard input; lines of progress and then one answer go to standard output.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import sys
import threading
from typing import Any

from lakescope.errors import LakescopeError, SourceError
from lakescope.faces.serving.refusals import Refused, status_of, told
from lakescope.faces.serving.tasks import answerer
from lakescope.faces.serving.worker import GIVEN, OUT_OF_MEMORY


def main() -> None:
    """Answer questions until nobody is left to ask."""
    given = json.loads(os.environ.pop(GIVEN))
    _bound_memory(given["memory"])
    questions: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=[questions], daemon=True).start()
    with os.fdopen(os.dup(1), "wb") as out:
        os.dup2(2, 1)  # what a library prints must not get between the answers

        def say(**fields: Any) -> None:
            out.write(json.dumps(fields).encode() + b"\n")
            out.flush()

        answer = answerer(given["index"])
        while True:
            asked = json.loads(questions.get())
            try:
                say(answer=answer(asked["question"], asked["parameters"], lambda *what: say(progress=what)))
            except Exception as error:
                explained = _explained(error)
                say(error=told(explained), status=int(status_of(explained)))


def _listen(questions: queue.SimpleQueue[bytes]) -> None:
    """Take questions; without anybody left to ask them, end at once, whatever is going on."""
    for line in sys.stdin.buffer:
        questions.put(line)
    os._exit(0)


def _bound_memory(size: int) -> None:
    """Bound what the process may allocate. Not its address space: the files of an index are mapped, however large."""
    try:
        import resource
    except ImportError:  # a system without such limits
        return
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_DATA, (size, size))


def _explained(error: Exception) -> LakescopeError:
    if isinstance(error, LakescopeError):
        return error
    if isinstance(error, MemoryError) or "malloc" in str(error) or "out of memory" in str(error).lower():
        return SourceError(f"the table {OUT_OF_MEMORY}", hint="try a part of it", code="too-large")
    return Refused(status_of(LakescopeError("")), "failure", f"unexpected {type(error).__name__}", hint="report it")
