"""CSV files as work units: a small or compressed file whole, a big one as byte ranges that prove that they met.

Where a range starts inside a file nobody can know locally whether it lies inside quotes. Each range therefore guesses
(speculative parsing: both suppositions are tried, the likelier kept), records where it began and where it ended, and
the merge demands that every end meets the next beginning. If one does not, the table is scanned again in one piece.
So the result is exact, and the file is read once unless the guess was wrong.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from lakescope.errors import SourceError
from lakescope.sources.file_types import Name
from lakescope.sources.formats import arrow_batches, csv_kernel
from lakescope.sources.formats.csv_dialect import HEAD_BYTES, Dialect, detect_dialect
from lakescope.sources.io import files
from lakescope.sources.io.encoding import Encoding, detect_encoding
from lakescope.sources.io.files import Stream
from lakescope.sources.io.limits import LONGEST
from lakescope.sources.model import Batch, Problem, Report, TextColumn, Unit
from lakescope.sources.names import unique_names
from lakescope.values import jit

if TYPE_CHECKING:
    from lakescope.sources.source_table import SourceTable

#: Bytes read at a time; a batch never holds more text than this unless one record is longer.
CHUNK = 4 * 1024 * 1024
#: Longest record: a quote still open after this many bytes is taken literally, a longer record is left out.
LONGEST_RECORD = LONGEST
#: Longest header: that of as many columns as a table may have, with long names.
LONGEST_HEADER = 16 * 1024 * 1024
#: Bytes and records by which a piece of a file is told where a record starts, and bytes before it. Not measured.
_SYNC_WINDOW = 256 * 1024
_SYNC_RECORDS = 64
_LOOK_BACK = 256

#: Column that keeps what long rows have beyond the header.
SURPLUS = "_surplus"


def plan(found: SourceTable, target_bytes: int) -> list[Unit]:
    """Units of a CSV table: one per part, or byte ranges of about ``target_bytes`` for a big uncompressed file."""
    units: list[Unit] = []
    for uri, size in found.parts:
        base = {**found.options(uri), "compression": found.compression}
        if found.compression or size <= target_bytes:
            units.append(Unit(found.table, "csv", uri, size, options=base))
            continue
        sniffed = _sniff(uri)
        if sniffed is None:
            units.append(Unit(found.table, "csv", uri, size, options=base))
            continue
        begin, dialect = sniffed
        cuts = np.linspace(begin, size, -(-size // target_bytes) + 1).astype(np.int64).tolist()
        for low, high in pairwise(cuts):
            options = {**base, "range": [low, high], "dialect": dialect.to_options(), "begin": begin}
            units.append(Unit(found.table, "csv", uri, high - low, options=options))
    return units


def read(unit: Unit, report: Report) -> Iterator[Batch]:
    """Read a unit in bounded batches."""
    dialect_options = unit.options.get("dialect")
    with files.open_stream(unit.uri, unit.options.get("compression")) as stream:
        if dialect_options is None:
            yield from _read_whole(unit, stream, report)
        else:
            yield from _read_range(unit, stream, Dialect(**dialect_options), report)


def _sniff(uri: str) -> tuple[int, Dialect] | None:
    """Where the data of a file begins, and its dialect; None if it has to be read, or refused, in one piece."""
    with files.open_stream(uri) as stream:
        head, whole = _read_head(stream)
    encoding = detect_encoding(head)
    if encoding.transcode or _binary(head):
        return None
    try:
        dialect = _understand(uri, head, whole, encoding, files.display(uri))
    except SourceError:
        return None
    return None if dialect.data_start >= len(head) else (encoding.bom + dialect.data_start, dialect)


def _understand(uri: str, head: bytes, whole: bool, encoding: Encoding, table: str) -> Dialect:
    text = np.frombuffer(head, np.uint8)[encoding.bom :]
    tabs = Name.of(PurePosixPath(files.path_of(uri)).name).extension in ("tsv", "tab")
    return detect_dialect(text, whole=whole, encoding=encoding, tabs=tabs, table=table)


def head_of(uri: str, compression: str | None) -> tuple[Dialect, bytes]:
    """What a file begins with as whoever reads it understands it, and the bytes before its data."""
    with files.open_stream(uri, compression) as opened:
        _, head, whole, encoding, _ = _text_head(opened)
    dialect = _understand(uri, head, whole, encoding, files.display(uri))
    return dialect, head[encoding.bom :][: dialect.data_start]


class FileStart(NamedTuple):
    """What a file begins with: its dialect, its head, the length of its byte order mark, what it was converted from."""

    dialect: Dialect
    head: bytes
    bom: int
    converted: str | None


def first_of(uri: str, compression: str | None) -> FileStart:
    """What a file begins with as whoever reads it understands it."""
    with files.open_stream(uri, compression) as opened:
        _, head, whole, encoding, converted = _text_head(opened)
    return FileStart(_understand(uri, head, whole, encoding, files.display(uri)), head, encoding.bom, converted)


def _text_head(stream: Stream) -> tuple[Stream, bytes, bool, Encoding, str | None]:
    """The head of a file as UTF-8: (stream, head, whether that is all, encoding, what it was converted from)."""
    head, whole = _read_head(stream)
    encoding = detect_encoding(head)
    if not encoding.transcode:
        return stream, head, whole, encoding, None
    stream = Stream(_Utf8(head[encoding.bom :], stream, encoding.transcode))
    return stream, *_read_head(stream), Encoding(), encoding.transcode


def _read_whole(unit: Unit, stream: Stream, report: Report) -> Iterator[Batch]:
    try:
        stream, head, whole, encoding, converted = _text_head(stream)
    except (OSError, EOFError) as error:
        raise files.cut_off(unit.table, error, 0) from error
    if converted:
        _tell(unit, report, "info", "encoding", f"{converted} text, read as such")
    if whole and not (np.frombuffer(head, np.uint8)[encoding.bom :] > 32).any():
        raise SourceError(f"{unit.table} is empty: it holds no cell", code="empty-file")
    if _binary(head):
        raise SourceError(f"{unit.table} is not text but binary data of unknown format", code="unknown-format")
    # The head is looked at twice before it is read: for its dialect, and for its header.
    jit.expect(unit.size + 2 * len(head))
    dialect = _understand(unit.uri, head, whole, encoding, unit.table)
    _tell_dialect(unit, dialect, head, encoding, report)
    window = _Window(stream, head[encoding.bom :], dialect.data_start, final=whole)
    if not whole:
        # One batch for a small file instead of one for its head and one for the rest.
        window.read_on()
    yield from _records(unit, window, dialect, None, report)


def _read_range(unit: Unit, stream: Stream, dialect: Dialect, report: Report) -> Iterator[Batch]:
    low, high = unit.options["range"]
    if low == unit.options["begin"]:
        stream.seek(0)
        head = stream.read(low)
        encoding = detect_encoding(head)
        _tell_dialect(unit, dialect, head, encoding, report)
        start = low
    else:
        start = _sync(stream, low, dialect)
    if start >= high:
        yield Batch(0, [], dialect.fallback, (start, start))
        return
    stream.seek(start)
    window = _Window(stream, b"", 0, base=start)
    yield from _records(unit, window, dialect, high, report)


def _sync(stream: Stream, low: int, dialect: Dialect) -> int:
    """First record start at or after ``low``, by the likeliest of the suppositions."""
    size = _SYNC_WINDOW
    marks = (dialect.delimiter, dialect.quote, dialect.escape, dialect.newline)
    while True:
        before = min(low - 1, _LOOK_BACK)
        stream.seek(low - 1 - before)
        data = np.frombuffer(stream.read(before + size), np.uint8)
        # Not to begin in the middle of a doubled quote, go back over the quotes before.
        begin = before
        while begin > 0 and data[begin - 1] == dialect.quote:
            begin -= 1
        data = data[begin:]
        origin = low - 1 - before + begin
        guesses = []
        for place in (csv_kernel.INSIDE, csv_kernel.MIDDLE, csv_kernel.BEGINNING):
            start, fitting, seen, stray = csv_kernel.resync(
                data, data.size, place, *marks, len(dialect.names), _SYNC_RECORDS
            )
            if start >= 0:
                guesses.append(((fitting - stray) / seen if seen else 0.0, place, origin + start))
        at_end = data.size < before - begin + size
        if guesses and (at_end or max(guesses)[0] > 0.5 or size >= LONGEST_RECORD):
            return int(max(guesses)[2])
        if at_end or size >= LONGEST_RECORD:
            return origin + data.size
        size *= 8


class _Window:
    """A growing view on the stream: holds the bytes of unfinished records and reads on when told to."""

    def __init__(self, stream: Stream, head: bytes, skip: int, base: int = 0, *, final: bool = False) -> None:
        self.stream = stream
        self.data = np.empty(len(head) if final else max(CHUNK, len(head)), np.uint8)
        self.data[: len(head)] = np.frombuffer(head, np.uint8)
        self.fill = len(head)
        self.position = skip
        self.base = base
        self.final = final
        self.failure: Exception | None = None

    def read_on(self) -> None:
        """Drop what was consumed and read the next piece; doubles the buffer when a record does not fit."""
        left = self.fill - self.position
        if left > self.data.size // 2:
            grown = np.empty(self.data.size * 2, np.uint8)
            grown[:left] = self.data[self.position : self.fill]
            self.data = grown
        else:
            self.data[:left] = self.data[self.position : self.fill].copy()
        self.base += self.position
        self.position, self.fill = 0, left
        with suppress(OSError, EOFError):
            self.fill += self.stream.readinto(memoryview(self.data)[left:])  # type: ignore[arg-type]
        self.failure = self.stream.failure
        self.final = self.fill < self.data.size and self.failure is None

    def skip_line(self, newline: int) -> None:
        """Go behind the next end of a line, keeping nothing of what is before it."""
        while True:
            ends = np.flatnonzero(self.data[self.position : self.fill] == newline)
            if ends.size:
                self.position += int(ends[0]) + 1
                return
            self.position = self.fill
            if self.final or self.failure is not None:
                return
            self.read_on()

    def at_end(self) -> bool:
        """Whether nothing comes after what was consumed."""
        if self.position >= self.fill and not self.final and self.failure is None:
            self.read_on()
        return self.final and self.position >= self.fill


def _records(unit: Unit, window: _Window, dialect: Dialect, stop: int | None, report: Report) -> Iterator[Batch]:
    columns = len(dialect.names)
    capacity = arrow_batches.rows_per_batch(columns + 1)
    if window.final:
        # About as many as there can be; were there more, they would come in another batch.
        capacity = min(capacity, 2 + (window.fill - window.position) // max(1, columns))
    starts, ends = np.empty((columns + 1, capacity), np.int32), np.empty((columns + 1, capacity), np.int32)
    counters = np.zeros(csv_kernel.N_COUNTERS, np.int64)
    surplus = unique_names([*dialect.names, SURPLUS])[0][-1]
    counted = window.base + window.position
    blank_end = -1
    total = 0
    while True:
        limit = window.fill if stop is None else max(0, min(window.fill, stop - window.base))
        long_before = counters[csv_kernel.LONG]
        counters[csv_kernel.BLANK_END] = -1
        jit.expect(window.fill - window.position)
        rows, position, starved = csv_kernel.tokenise(
            *(window.data, window.position, window.fill, limit, window.final),
            *(dialect.delimiter, dialect.quote, dialect.escape, dialect.newline, LONGEST_RECORD),
            *(starts, ends, counters),
        )
        total += rows
        moved = position > window.position
        span = (window.base + window.position, window.base + position)
        nul_from, nul_to = max(window.position, counted - window.base), position
        counters[csv_kernel.NUL] += _nuls(window.data[nul_from:nul_to])
        counted = window.base + position
        if counters[csv_kernel.BLANK_END] >= 0:
            blank_end = window.base + int(counters[csv_kernel.BLANK_END])
        window.position = position
        # Ranges meet although there are only blank lines between them.
        if rows or (stop is not None and moved):
            made = [
                TextColumn(name, window.data, starts[c, :rows], ends[c, :rows]) for c, name in enumerate(dialect.names)
            ]
            if counters[csv_kernel.LONG] > long_before:
                made.append(TextColumn(surplus, window.data, starts[columns, :rows], ends[columns, :rows]))
            yield Batch(rows, made, dialect.fallback, None if stop is None else span)
        done = stop is not None and window.base + position >= stop
        exhausted = window.final and position >= window.fill
        # Where reading failed, the record that was cut is not a record.
        cut = window.failure is not None and (starved or position >= window.fill)
        if done or exhausted or cut:
            break
        if starved and window.fill - position > LONGEST_RECORD:
            begin = window.base + position
            window.position += LONGEST_RECORD
            window.skip_line(dialect.newline)
            counters[csv_kernel.GIANT] += 1
            counted = window.base + window.position
            if stop is not None:
                yield Batch(0, [], dialect.fallback, (begin, counted))
        elif starved or position >= window.fill:
            window.read_on()
    if total == 0 and stop is None and window.failure is None:
        # A header without rows is a table of no rows, not a broken file.
        empty = np.empty(0, np.int32)
        yield Batch(0, [TextColumn(name, window.data, empty, empty) for name in dialect.names], dialect.fallback)
    if blank_end == window.base + window.position and window.at_end():
        # Many a file ends in a blank line, which is not worth telling.
        counters[csv_kernel.BLANK] -= 1
    _tell_counters(unit, counters, surplus, report)
    if window.failure is not None:
        raise files.cut_off(unit.table, window.failure, total) from window.failure


def _nuls(data: npt.NDArray[np.uint8]) -> int:
    return int(data.size - np.count_nonzero(data))


def _binary(head: bytes) -> bool:
    """Whether the head is binary data: many control characters, which no encoding of text has."""
    sample = np.frombuffer(head[:4096], np.uint8)
    control = (sample < 9) | ((sample > 13) & (sample < 32) & (sample != 27))
    return bool(control.mean() > 0.1)


def _read_head(stream: Stream) -> tuple[bytes, bool]:
    """The bytes that decide the dialect, and whether they are the whole file.

    As many as ``HEAD_BYTES``, or more where a header is longer than that.
    """
    head = b""
    wanted = HEAD_BYTES
    while True:
        try:
            head += stream.read(wanted - len(head))
        except (OSError, EOFError):
            if not head:
                raise
        if len(head) < wanted:
            return head, stream.failure is None
        lines = head.count(b"\n") + head.count(b"\r")
        if lines > 1 or (len(head) >= LONGEST_HEADER and (lines or _binary(head))):
            return head, False
        if len(head) >= LONGEST_HEADER:
            raise SourceError(
                f"the first line is longer than {LONGEST_HEADER >> 20} MB",
                hint="is it a table? A record may have 64 MB, a header less",
                code="giant-cell",
            )
        wanted = min(8 * wanted, LONGEST_HEADER)


class _Utf8:
    """Text in UTF-16 or UTF-32, as a source of UTF-8 bytes."""

    def __init__(self, head: bytes, stream: Stream, encoding: str) -> None:
        self._decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
        self._stream = stream
        self._ready = self._decoder.decode(head).encode("utf-8", "replace")
        self._ended = False

    def readinto(self, room: memoryview) -> int:
        while not self._ready and not self._ended:
            piece = self._stream.read(CHUNK // 4)
            self._ended = not piece
            self._ready = self._decoder.decode(piece, final=self._ended).encode("utf-8", "replace")
        given, self._ready = self._ready[: len(room)], self._ready[len(room) :]
        room[: len(given)] = given
        return len(given)


def _tell(unit: Unit, report: Report, severity: str, code: str, detail: str, count: int = 1) -> None:
    report(Problem(unit.table, severity, code, detail, count))  # type: ignore[arg-type]


def _tell_dialect(unit: Unit, dialect: Dialect, head: bytes, encoding: Encoding, report: Report) -> None:
    if dialect.preamble:
        lines = head[encoding.bom :].splitlines()[: dialect.preamble]
        text = " / ".join(line.decode("utf-8", "replace").strip(" ,;\t") for line in lines)
        _tell(
            unit,
            report,
            "info",
            "preamble",
            f"text before the header was passed over: {text[:200]!r}",
            dialect.preamble,
        )
    if not dialect.header:
        _tell(
            unit,
            report,
            "info",
            "no-header",
            f"no header found; columns are called column_1 to column_{len(dialect.names)}",
        )
    if dialect.renamed:
        detail = "blank or repeated column names were replaced or numbered"
        _tell(unit, report, "warning", "renamed-columns", detail, dialect.renamed)


def _tell_counters(unit: Unit, counters: npt.NDArray[np.int64], surplus: str, report: Report) -> None:
    said = [
        (
            csv_kernel.SHORT,
            "warning",
            "short-rows",
            "rows with fewer cells than there are columns; what they lack counts as missing",
        ),
        (
            csv_kernel.LONG,
            "warning",
            "long-rows",
            f"rows with more cells than there are columns; the rest is kept in column {surplus}",
        ),
        (csv_kernel.STRAY, "warning", "stray-quotes", "cells with text after their closing quote; kept as written"),
        (csv_kernel.UNCLOSED, "warning", "unclosed-quote", "quotes that are never closed; taken literally"),
        (csv_kernel.GIANT, "warning", "giant-cell", f"records longer than {LONGEST_RECORD >> 20} MB were left out"),
        (csv_kernel.NUL, "warning", "nul-bytes", "NUL bytes in the text; kept"),
        (csv_kernel.BLANK, "info", "blank-lines", "blank lines were passed over"),
    ]
    for index, severity, code, text in said:
        count = int(counters[index])
        if count:
            _tell(unit, report, severity, code, text, count)
