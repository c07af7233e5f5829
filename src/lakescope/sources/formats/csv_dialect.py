"""What kind of CSV is this? Delimiter, quotes, line ends, preamble and header, from the head of the file.

Everything is decided from the same first bytes whoever asks, so that a file read whole and a file cut into ranges are
understood alike.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lakescope.sources.formats import csv_kernel
from lakescope.sources.formats.header_rows import AHEAD, SAMPLED, find_header, joined_names
from lakescope.sources.io.encoding import Encoding
from lakescope.sources.names import check_width, unique_names
from lakescope.values import jit
from lakescope.values.canonical import decode
from lakescope.values.text import TextColumn

#: Bytes of a file that decide its dialect.
HEAD_BYTES = 64 * 1024

_DELIMITERS = (ord(","), ord(";"), ord("\t"), ord("|"))
#: Records of the head that are looked at. Not measured: a bound on time.
_RECORDS = 200
#: Bytes before a record that tell whether a blank line is there.
_BLANKS = 8
_QUOTE, _APOSTROPHE, _BACKSLASH, _LF, _CR = 34, 39, 92, 10, 13
#: What quotes enclose.
_QUOTED = re.compile(rb'"[^"]*"')
#: A quote escaped by a backslash, which the last quote of a field is not.
_ESCAPED = re.compile(rb'\\"(?![,;|\t\r\n]|$)')
#: How Excel is told the delimiter.
_TOLD = re.compile(rb'"?sep=([,;|\t])"?\r?\n')
#: A quote escaped by doubling it, which an empty quoted field is not.
_DOUBLED = re.compile(rb'(?<![\\,;|\t\n])""(?![,;|\t\r\n])')


@dataclass(frozen=True, slots=True)
class Dialect:
    """Everything needed to cut the file into cells and name its columns."""

    delimiter: int
    quote: int
    escape: int
    newline: int
    names: list[str]
    data_start: int
    preamble: int
    header_rows: int
    #: How likely there is a header.
    probability: float
    renamed: int
    fallback: str

    @property
    def header(self) -> bool:
        """Whether names of columns were found."""
        return self.header_rows > 0

    def to_options(self) -> dict[str, Any]:
        return asdict(self)


def detect_dialect(
    head: npt.NDArray[np.uint8], *, whole: bool, encoding: Encoding, tabs: bool = False, table: str = "the table"
) -> Dialect:
    """Understand the head of a file (without its byte order mark). ``whole``: the head is the entire file.

    Raises ``SourceError``, which names the ``table``, if there are too many columns.
    """
    jit.spend(head.size)
    text = head.tobytes()
    newline = _line_end(text)
    quote, escape = _quoting(text)
    told = _TOLD.match(text)
    widths, starts = np.empty(_RECORDS, np.int32), np.empty(_RECORDS, np.int32)
    best_score, delimiter = -1.0, ord("\t") if tabs else ord(",")
    for candidate in _DELIMITERS:
        if candidate not in text:
            continue
        n, stray, unclean = csv_kernel.record_widths(
            head, head.size, whole, candidate, quote, escape, newline, widths, starts
        )
        score = _delimiter_score(widths[:n], stray, unclean)
        if (tabs and candidate == ord("\t")) or (told and candidate == told[1][0]):
            score *= 4
        if score > best_score:
            best_score, delimiter = score, candidate
    n, _, _ = csv_kernel.record_widths(head, head.size, whole, delimiter, quote, escape, newline, widths, starts)
    if n == 0:
        n, _, _ = csv_kernel.record_widths(head, head.size, True, delimiter, 0, 0, newline, widths, starts)
    return _frame(head, widths[:n], starts[:n], (delimiter, quote, escape, newline), encoding, table)


def _line_end(head: bytes) -> int:
    """The byte that ends records: a bare carriage return only where those outnumber line feeds outside quotes."""
    if b"\r" not in head:
        return _LF
    plain = _QUOTED.sub(b"", head)
    return _CR if plain.count(b"\r") - plain.count(b"\r\n") > plain.count(b"\n") else _LF


def _quoting(head: bytes) -> tuple[int, int]:
    """Quote and escape characters in use."""
    if b'"' not in head and b"'" in head and _encloses(head, _APOSTROPHE):
        return _APOSTROPHE, 0
    return _QUOTE, (_BACKSLASH if b'\\"' in head and _ESCAPED.search(head) and not _DOUBLED.search(head) else 0)


def _encloses(head: bytes, mark: int) -> bool:
    """Whether a character stands after and before delimiters, at least twice each."""
    text = np.frombuffer(head, np.uint8)
    places = np.flatnonzero(text == mark)
    after, before = text[places[places > 0] - 1], text[places[places < text.size - 1] + 1]
    return all(int(np.isin(beside, _DELIMITERS).sum()) >= 2 for beside in (after, before))


def _delimiter_score(widths: npt.NDArray[np.int32], stray: int, unclean: int) -> float:
    if widths.size == 0:
        return 0.0
    found, counts = np.unique(widths, return_counts=True)
    mode = int(found[counts.argmax()])
    if mode < 2:
        return 0.0
    share = float((widths == mode).mean())
    cells = int(widths.sum())
    return float(share * (1 - unclean / cells) * (1 - min(1.0, stray / cells)) * (1 - 1 / mode) ** 0.25)


def _frame(
    head: npt.NDArray[np.uint8],
    widths: npt.NDArray[np.int32],
    starts: npt.NDArray[np.int32],
    marks: tuple[int, int, int, int],
    encoding: Encoding,
    table: str,
) -> Dialect:
    """Find preamble and header, and name the columns."""
    if widths.size == 0:
        return Dialect(*marks, [], 0, 0, 0, 0.0, 0, encoding.fallback)
    mode = _main_width(widths)
    titles = _titles(head, widths, starts, mode)
    check_width(table, max(mode, int(widths[titles])))
    rows = min(SAMPLED, int(widths.size - titles))
    sample = _records(head[starts[titles] :].copy(), marks, mode, rows)
    blank = _after_blank(head, starts[titles : titles + min(rows, AHEAD + 1)], marks[3])
    found = find_header(sample, widths[titles : titles + rows].tolist(), blank, encoding.fallback)
    skipped = titles + found.preamble
    width = max(mode, int(widths[skipped]))
    check_width(table, width)
    names: list[str] = [""] * width
    if found.header:
        rows = min(SAMPLED, int(widths.size - skipped))
        sample = _records(head[starts[skipped] :].copy(), marks, width, rows)
        cells = joined_names(
            [[_cell_text(column, row, encoding.fallback) for column in sample] for row in range(found.header)]
        )
        width = _declared_width(cells, widths, skipped, mode)
        names = _place_names(cells, int(widths[skipped]), width, found.header, sample)
    unique, renamed = unique_names(names)
    first = skipped + found.header
    if first < widths.size:
        data_start = int(starts[first])
    else:
        data_start = _after_record(head, int(starts[first - 1]), marks)
    told = skipped, found.header, found.probability, renamed if found.header else 0
    return Dialect(*marks, unique, data_start, *told, encoding.fallback)


def _main_width(widths: npt.NDArray[np.int32]) -> int:
    """The commonest width; the wider one when two are equally common."""
    found, counts = np.unique(widths, return_counts=True)
    return int(found[counts == counts.max()][-1])


def _titles(
    head: npt.NDArray[np.uint8], widths: npt.NDArray[np.int32], starts: npt.NDArray[np.int32], mode: int
) -> int:
    """Number of leading records that are titles or comments by their width: neither header nor data."""
    skipped = 0
    while skipped < min(20, widths.size - 1):
        line = head[starts[skipped] : starts[skipped] + 5].tobytes().lstrip(b'"')
        comment = (line.startswith(b"#") and widths[skipped] != mode) or (skipped == 0 and line.startswith(b"sep="))
        title = (mode >= 2 and widths[skipped] == 1) or (mode >= 4 and widths[skipped] * 2 < mode)
        if not (comment or title):
            break
        skipped += 1
    return skipped if widths[skipped] > 1 or mode == 1 else 0


def _after_blank(head: npt.NDArray[np.uint8], starts: npt.NDArray[np.int32], newline: int) -> set[int]:
    """Which records follow a blank line."""
    found = set()
    for number, start in enumerate(starts.tolist()):
        before = head[max(0, start - _BLANKS) : start].tobytes()
        if before[len(before.rstrip()) :].count(newline) > 1:
            found.add(number)
    return found


def _records(data: npt.NDArray[np.uint8], marks: tuple[int, int, int, int], width: int, rows: int) -> list[TextColumn]:
    starts, ends = np.empty((width + 1, rows), np.int32), np.empty((width + 1, rows), np.int32)
    counters = np.zeros(csv_kernel.N_COUNTERS, np.int64)
    n, _, _ = csv_kernel.tokenise(*(data, 0, data.size, data.size, True, *marks, data.size, starts, ends, counters))
    return [TextColumn("", data, starts[c, :n], ends[c, :n]) for c in range(width)]


def _after_record(head: npt.NDArray[np.uint8], start: int, marks: tuple[int, int, int, int]) -> int:
    starts, ends = np.empty((2, 1), np.int32), np.empty((2, 1), np.int32)
    counters = np.zeros(csv_kernel.N_COUNTERS, np.int64)
    _, after, _ = csv_kernel.tokenise(
        *(head.copy(), start, head.size, head.size, True, *marks, head.size, starts, ends, counters)
    )
    return int(after)


def _cell_text(column: TextColumn, row: int, fallback: str) -> str:
    if column.starts.size <= row or column.ends[row] < 0:
        return ""
    return decode(column.data[column.starts[row] : column.ends[row]].tobytes(), fallback).strip()


def _declared_width(cells: list[str], widths: npt.NDArray[np.int32], skipped: int, mode: int) -> int:
    """How many columns the table has.

    A header wider than every row ends in stray delimiters, a narrower one lacks names.
    """
    written = int(widths[skipped])
    while written > max(mode, 1) and not cells[written - 1]:
        written -= 1
    return max(written, mode)


def _place_names(cells: list[str], written: int, width: int, rows: int, sample: list[TextColumn]) -> list[str]:
    """Names by column.

    A header one short of its rows (as R writes them) lacks the first name, unless the rows below it end in nothing.
    """
    names = cells[:width]
    if written == width - 1 and width > 1:
        last = sample[width - 1] if len(sample) >= width else None
        trailing = last is None or not bool((last.ends[rows:] > last.starts[rows:]).any())
        if not trailing:
            names = ["", *cells[: width - 1]]
    return names + [""] * (width - len(names))
