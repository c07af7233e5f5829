"""Progress on the terminal: one living line for a person, a plain line now and then for a log."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lakescope.show.text import printable, size_text

if TYPE_CHECKING:
    from lakescope.build.progress import Progress

_LOG_EVERY = 10.0


class ProgressLine:
    """Listener of a build that writes to standard error."""

    def __init__(self) -> None:
        self._living = sys.stderr.isatty()
        self._last = time.monotonic()
        self._finished = False
        self._width = 0

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        finished = progress.units == progress.units_total and not progress.step
        done = self._finished and not progress.step
        if not self._living and (done or (not finished and now - self._last < _LOG_EVERY)):
            return
        self._last, self._finished = now, finished or self._finished
        text = progress_text(progress)
        if self._living:
            sys.stderr.write("\r" + text.ljust(self._width))
            self._width = len(text)
        else:
            sys.stderr.write(text + "\n")
        sys.stderr.flush()

    def close(self) -> None:
        """End the living line."""
        if self._living and self._width:
            sys.stderr.write("\n")
            sys.stderr.flush()


def progress_text(progress: Progress) -> str:
    """One line: how much is done, how fast, how long still."""
    if progress.step:
        steps = f"step {progress.step} of {progress.steps}"
        return f"inverting the values of {progress.tables:,} tables, {steps}, {duration(progress.seconds)}"
    share = progress.bytes / progress.bytes_total if progress.bytes_total else 1.0
    left = progress.seconds_left
    ahead = "" if left is None or progress.units == progress.units_total else f", about {duration(left)} left"
    return (
        f"scanning {share:4.0%} of {progress.tables:,} tables  {progress.units:,} of {progress.units_total:,} pieces, "
        f"{size_text(progress.bytes)} of {size_text(progress.bytes_total)}, {duration(progress.seconds)}{ahead}"
    )


def duration(seconds: float) -> str:
    """Seconds in words."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


class _LivingLine:
    """A line on a terminal that is written anew as work goes on, and wiped at its end."""

    def __init__(self, verb: str, *, quiet: bool) -> None:
        self._verb = verb
        self._shown = sys.stderr.isatty() and not quiet
        self._began = time.monotonic()
        self._width = 0

    def _write(self, text: str) -> None:
        if self._shown:
            sys.stderr.write("\r" + text.ljust(self._width))
            sys.stderr.flush()
            self._width = len(text)

    def close(self) -> None:
        """Wipe the line."""
        self._write("")
        if self._shown:
            sys.stderr.write("\r")


class ShareLine(_LivingLine):
    """How much of some work is done, with the time left."""

    def begin(self, verb: str) -> None:
        """Say what is done from now on; the time left is that of it alone."""
        if verb != self._verb:
            self._verb, self._began = verb, time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        if total:
            spent = time.monotonic() - self._began
            left = spent * (total - done) / done if done else 0.0
            self._write(f"{self._verb} {done / total:4.0%}, about {duration(left)} left")


class _Watch:
    """Shows on a line what a question does, and how much of it is done."""

    stopped = False

    def __init__(self, line: ShareLine) -> None:
        self._line = line

    def tell(self, doing: str, share: float | None = None) -> None:
        self._line.begin(doing)
        if share is not None:
            self._line(round(share * 1_000), 1_000)


@contextmanager
def watching(verb: str, *, quiet: bool) -> Iterator[_Watch]:
    """Whoever waits at a terminal for a question."""
    line = ShareLine(verb, quiet=quiet)
    try:
        yield _Watch(line)
    finally:
        line.close()


class TextLine(_LivingLine):
    """What is done of work whose end nobody knows, with the time spent."""

    def __call__(self, what: str) -> None:
        text = f"{self._verb}, {duration(time.monotonic() - self._began)}: {what}"
        self._write(printable(text)[: shutil.get_terminal_size().columns - 1])
