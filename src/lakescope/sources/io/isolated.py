"""A helper process for readers that crash on damaged files.

A C++ library that trusts its file may end the whole process, and with it the Spark worker and, after some retries, the
build. Such a library runs in a helper instead: one per process, started when first needed, asked one question at a time
over its pipes. When a file kills it, that file is damaged; the next question starts another helper. Its memory and time
are bounded: a few bytes can ask for a terabyte or for hours, and such a library does not take no for an answer.

A question is a line of JSON, an answer a line of JSON, followed by as many bytes as its ``bytes`` says.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

from lakescope import processes
from lakescope.errors import SourceError
from lakescope.sources.io.limits import Unbelievable, bound_time, bounded_memory, too_large

#: Answers one question inside the helper: the fields of the answer and the bytes that follow it.
Answerer = Callable[[dict[str, Any]], tuple[dict[str, Any], bytes]]


#: Bytes that a file on another machine is taken to have.
_ELSEWHERE = 1 << 30


class Helper:
    """Asks questions to ``module.function()`` in a process of its own; that function must call :func:`serve`."""

    def __init__(self, module: str, function: str) -> None:
        self._module = module
        self._function = function
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0
        atexit.register(self.close)

    def ask(self, name: str, question: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        """Ask about the table ``name``; raises SourceError with what the helper says, or because it died."""
        with self._lock:
            process = self._running()
            assert process.stdin is not None
            assert process.stdout is not None
            answer, payload = None, b""
            try:
                process.stdin.write(json.dumps(question).encode() + b"\n")
                process.stdin.flush()
                answer = json.loads(process.stdout.readline() or b"null")
                payload = process.stdout.read(answer["bytes"]) if answer else b""
            except (BrokenPipeError, ValueError):
                pass  # it died while it was asked, or in the middle of its answer
            if answer is None or len(payload) < answer["bytes"]:
                self.close()
                raise SourceError(
                    f"{name} cannot be read: it makes its reader crash, or take more memory or time than a file may",
                    hint="the file is damaged or made to do harm: write or copy it again",
                    code="damaged",
                )
        if "error" in answer:
            raise SourceError(f"{name} {answer['error']}", hint=answer["hint"], code=answer["code"])
        return answer, payload

    def close(self) -> None:
        """End the helper; another one is started when it is needed."""
        process, self._process = self._process, None
        if process is None or self._owner != os.getpid():
            return
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        process.wait()

    def _running(self) -> subprocess.Popen[bytes]:
        # A forked child must not talk over its parent's pipes.
        if self._process is None or self._owner != os.getpid():
            self._process = processes.start(self._module, self._function, stderr=subprocess.DEVNULL)
            self._owner = os.getpid()
        return self._process


def serve(answer: Answerer, hint: str) -> None:
    """Answer questions until nobody is left to ask; what goes wrong is explained, not raised."""
    with bounded_memory(), os.fdopen(os.dup(1), "wb") as out:
        os.dup2(2, 1)  # what a library prints must not get between the answers
        for line in sys.stdin.buffer:
            try:
                question = json.loads(line)
                bound_time(_size(question["uri"]))
                fields, payload = answer(question)
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:  # a library written in Rust panics with something that is no Exception
                told = _explained(error, hint)
                fields, payload = {"error": told.message, "hint": told.hint, "code": told.code}, b""
            out.write(json.dumps({**fields, "bytes": len(payload)}).encode() + b"\n" + payload)
            out.flush()


def _size(uri: str) -> int:
    """The bytes of a file; of one that lies elsewhere many, since asking takes longer than it is worth."""
    from lakescope.sources.io import files

    path = files.local_path(uri)
    if path is None:
        return _ELSEWHERE
    with files.open_local(path) as file:
        return os.fstat(file.fileno()).st_size


def _explained(error: BaseException, hint: str) -> SourceError:
    """What went wrong, to be read behind the name of a table."""
    from lakescope.sources.io import files

    if isinstance(error, SourceError):
        return error
    if isinstance(error, MemoryError):
        return too_large()
    if isinstance(error, files.NotRegular):
        return SourceError(f"cannot be read: {error}", hint="put the file back and index again", code="special-file")
    code = "archive-bomb" if isinstance(error, Unbelievable) else "damaged"
    if isinstance(error, FileNotFoundError | PermissionError):
        code = "unreadable"
    return SourceError(f"cannot be read: {files.reason_of(error)}", hint=hint, code=code)
