"""How much a file may ask for. Whoever wrote it is not trusted, and honest data stays far below.

Reading is streamed, so most of what is large is merely slow. What is bounded here is what a small file can make out of
nothing: bytes by compression, rows by run lengths, memory by a cell, a nesting or a lie about a size. What goes beyond
a limit becomes a problem of its table; those that an honest file could meet can be set in the environment.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final, TypeVar

from lakescope.errors import BadRequest, SourceError

Given = TypeVar("Given")

_UNITS: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}

#: Bytes that any compressed file may unpack to, and above that, bytes per byte.
FREE_UNPACKED, MOST_RATIO = 1 << 30, 250
#: Bytes that a compressed file may unpack to at most: as a stream, and where it has to lie on the disk.
MOST_UNPACKED, MOST_UNPACKED_ON_DISK = 1 << 40, 1 << 36
#: Rows that any file of a columnar format may have, and above that, rows per byte.
FREE_ROWS, ROWS_PER_BYTE = 1 << 28, 1000
#: Cells (rows times columns) that any file of a columnar format may have, and above that, cells per byte: where all are
#: missing, a million take a hundred bytes.
FREE_CELLS, CELLS_PER_BYTE = 1 << 32, 10_000
#: Values in lists and maps that any file of a columnar format may have, and above that, values per byte: each is
#: written as JSON, one at a time.
FREE_VALUES, VALUES_PER_BYTE = 1 << 24, 1000
#: Bytes of text that any file of a columnar format may hold, and above that, bytes per byte: a value that repeats is
#: written once.
FREE_TEXT, TEXT_RATIO = 1 << 36, 1000
#: Bytes of one cell, one record or one JSON value.
LONGEST = 64 << 20
#: Bytes of memory on top of what a process has already: of a worker that scans, and of a helper.
MEMORY = 4 << 30
#: Seconds of processor that a helper may take to answer a question about any file, and bytes that it reads in one more:
#: honest files are read many times as fast.
FREE_SECONDS, BYTES_A_SECOND = 20, 1 << 20


#: Bytes of one file of a table's log or metadata, which is read whole.
METADATA = 1 << 30
#: Seconds that a library may take to read what belongs to one table and it opens by itself.
LIBRARY_SECONDS = 600.0


class Unbelievable(OSError):
    """A compressed file gives more than is believed. An error of reading: what came before is kept."""


def setting(name: str, default: int) -> int:
    """A limit as the environment sets it, in bytes or with K, M, G or T behind the number; 0 takes it away."""
    text = os.environ.get(f"LAKESCOPE_{name}", "").strip().lower().removesuffix("b")
    number = text.rstrip("kmgt")
    try:
        value = int(float(number) * _UNITS[text[len(number) :]]) if text else default
    except (ValueError, KeyError, OverflowError):
        value = -1
    if value < 0:
        raise BadRequest(
            f"LAKESCOPE_{name}={text} is no size", hint="write a number, or one with K, M, G or T behind it"
        )
    return value


@dataclass(slots=True)
class Unpacking:
    """Counts what a compressed file of ``size`` bytes gives; ``most`` is believed at most."""

    most: int
    unpacked: int = 0

    @classmethod
    def of(cls, size: int, *, on_disk: bool = False) -> Unpacking:
        most = setting("MOST_UNPACKED", MOST_UNPACKED_ON_DISK if on_disk else MOST_UNPACKED) or 1 << 62
        free = setting("FREE_UNPACKED", FREE_UNPACKED)
        return cls(min(most, max(free, MOST_RATIO * size) if free else most))

    def add(self, size: int) -> None:
        """Count bytes; raises once they are too many."""
        self.unpacked += size
        if self.unpacked > self.most:
            raise Unbelievable(f"it unpacks to more than {self.most:,} bytes, as no honest file of its size does")


def _dishonest(claim: str, size: int, *, code: str) -> SourceError:
    """The error for what a file of ``size`` bytes claims or holds and no honest one does."""
    return SourceError(
        f"{claim} in {size:,} bytes", hint="no honest file holds so much: write it again if it is yours", code=code
    )


def check_rows(table: str, rows: int, size: int) -> None:
    """Refuse a number of rows that a file of ``size`` bytes can only claim."""
    if rows > max(FREE_ROWS, ROWS_PER_BYTE * size):
        raise _dishonest(f"{table} claims {rows:,} rows", size, code="too-many-rows")


def check_cells(table: str, cells: int, size: int) -> None:
    """Refuse a number of cells that a file of ``size`` bytes can only claim."""
    if cells > max(FREE_CELLS, CELLS_PER_BYTE * size):
        raise _dishonest(f"{table} claims {cells:,} cells", size, code="too-many-rows")


def check_values(table: str, values: int, size: int) -> None:
    """Refuse a number of values in lists that a file of ``size`` bytes can only claim."""
    if values > max(FREE_VALUES, VALUES_PER_BYTE * size):
        raise _dishonest(f"{table} claims {values:,} values in lists", size, code="too-large")


def check_cell(table: str, column: str, size: int) -> None:
    """Refuse cells that take more bytes than one may, before any of them is decoded."""
    if size > LONGEST:
        raise SourceError(
            f"{table} has cells of {size:,} bytes in column {column!r}: one may have {LONGEST:,}",
            hint="split what is large in it into rows",
            code="too-large",
        )


def check_metadata(name: str, size: int) -> None:
    """Refuse a file of a table's log or metadata too large to be read whole; one without blocks has any size."""
    if size > METADATA:
        raise SourceError(
            f"{name} has {size:,} bytes, which no honest log or metadata file has",
            hint=f"it may have {METADATA >> 30} GB: write the table again if it is yours",
            code="table-format",
        )


def check_text(table: str, text: int, size: int) -> None:
    """Refuse more text than a file of ``size`` bytes can honestly hold."""
    if text > max(FREE_TEXT, TEXT_RATIO * size):
        raise _dishonest(f"{table} holds more than {text:,} bytes of text", size, code="archive-bomb")


def too_large(table: str = "") -> SourceError:
    """The error for what needs more memory than one file may take."""
    return SourceError(
        f"{table} cannot be read: it needs more memory than a file may take".lstrip(),
        hint="split what is large in it, or allow more: LAKESCOPE_MEMORY=16G",
        code="too-large",
    )


def bound_time(size: int) -> None:
    """Let this process take as much of the processor from now on as a file of ``size`` bytes may; then it is ended."""
    try:
        import resource
    except ImportError:  # a system without such limits
        return
    usage = resource.getrusage(resource.RUSAGE_SELF)
    more = FREE_SECONDS + size // BYTES_A_SECOND
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    most = int(usage.ru_utime + usage.ru_stime) + 1 + more
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CPU, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def within(seconds: float, work: Callable[[], Given]) -> Given:
    """What some work gives that a library does by itself; TimeoutError if it takes longer.

    It cannot be stopped: what waits for a pipe waits on, in a thread that goes with the process.
    """
    done: Future[Given] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:  # a library written in Rust panics with something that is no Exception
            done.set_exception(error)

    threading.Thread(target=run, name="lakescope-limited", daemon=True).start()
    return done.result(seconds)


@contextmanager
def bounded_memory() -> Iterator[None]:
    """Bound what this process may allocate until the end; where it asks for more, that fails instead of the machine.

    Not its address space: mapped files may be of any size.
    """
    try:
        import resource

        with open("/proc/self/statm") as status:  # noqa: PTH123
            used = int(status.read().split()[5]) * resource.getpagesize()
    except (ImportError, OSError):  # a system without such limits
        yield
        return
    more = setting("MEMORY", MEMORY)
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = min(each for each in (used + more, soft, hard) if each != resource.RLIM_INFINITY)
    if not more:
        yield
        return
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
    try:
        yield
    finally:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
