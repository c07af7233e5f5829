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

from lakescope.sources import csv_kernel
from lakescope.sources.encoding import Encoding
from lakescope.sources.names import check_width, unique_names
from lakescope.values.canonical import Kind, Value, decode
from lakescope.values.cells import understand_each
from lakescope.values.text import TextColumn

#: Bytes of a file that decide its dialect.
HEAD_BYTES = 64 * 1024

_DELIMITERS = (ord(","), ord(";"), ord("\t"), ord("|"))
_RECORDS = 200
_SAMPLED = 12
_QUOTE, _APOSTROPHE, _BACKSLASH, _LF, _CR = 34, 39, 92, 10, 13
#: What quotes enclose.
_QUOTED = re.compile(rb'"[^"]*"')
#: A quote escaped by a backslash, which the last quote of a field is not.
_ESCAPED = re.compile(rb'\\"(?![,;|\t\r\n]|$)')
#: How Excel is told the delimiter.
_TOLD = re.compile(rb'"?sep=([,;|\t])"?\r?\n')
#: A quote escaped by doubling it, which an empty quoted field is not.
_DOUBLED = re.compile(rb'(?<![\\,;|\t\n])""(?![,;|\t\r\n])')
_VALUE_KINDS = (Kind.INTEGER, Kind.DECIMAL, Kind.BOOLEAN, Kind.DATE, Kind.TIME, Kind.TIMESTAMP)


@dataclass(frozen=True, slots=True)
class Dialect:
    """Everything needed to cut the file into cells and name its columns."""

    delimiter: int
    quote: int
    escape: int
    newline: int
    names: list[str]
    header: bool
    data_start: int
    preamble: int
    renamed: int
    fallback: str

    def to_options(self) -> dict[str, Any]:
        return asdict(self)


def detect_dialect(
    head: npt.NDArray[np.uint8], *, whole: bool, encoding: Encoding, tabs: bool = False, table: str = "the table"
) -> Dialect:
    """Understand the head of a file (without its byte order mark). ``whole``: the head is the entire file.

    Raises ``SourceError``, which names the ``table``, if there are too many columns.
    """
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
        return Dialect(*marks, [], False, 0, 0, 0, encoding.fallback)
    mode = _main_width(widths)
    skipped = _preamble(head, widths, starts, mode)
    width = max(mode, int(widths[skipped]))
    check_width(table, width)
    sample = _records(head[starts[skipped] :].copy(), marks, width, min(_SAMPLED, int(widths.size - skipped)))
    header = has_header(sample)
    names: list[str] = []
    if header:
        cells = [_cell_text(column, 0, encoding.fallback) for column in sample]
        width = _declared_width(cells, widths, skipped, mode)
        names = _place_names(cells, int(widths[skipped]), width, sample)
    unique, renamed = unique_names(names if header else [""] * width)
    data_start = int(starts[skipped])
    if header:
        data_start = int(starts[skipped + 1]) if widths.size > skipped + 1 else _after_record(head, data_start, marks)
    return Dialect(*marks, unique, header, data_start, skipped, renamed if header else 0, encoding.fallback)


def _main_width(widths: npt.NDArray[np.int32]) -> int:
    """The commonest width; the wider one when two are equally common."""
    found, counts = np.unique(widths, return_counts=True)
    return int(found[counts == counts.max()][-1])


def _preamble(
    head: npt.NDArray[np.uint8], widths: npt.NDArray[np.int32], starts: npt.NDArray[np.int32], mode: int
) -> int:
    """Number of leading records that are titles or comments, not header or data."""
    skipped = 0
    while skipped < min(20, widths.size - 1):
        line = head[starts[skipped] : starts[skipped] + 5].tobytes().lstrip(b'"')
        comment = (line.startswith(b"#") and widths[skipped] != mode) or (skipped == 0 and line.startswith(b"sep="))
        title = (mode >= 2 and widths[skipped] == 1) or (mode >= 4 and widths[skipped] * 2 < mode)
        if not (comment or title):
            break
        skipped += 1
    return skipped if widths[skipped] > 1 or mode == 1 else 0


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


def has_header(sample: list[TextColumn]) -> bool:
    """Whether the first record names the columns.

    A name above values of another kind (text over numbers) says yes. Failing that, a first record that itself holds
    values says no, unless they stand over text (numbers over formatted figures) or are years over what are no years;
    and text over text says yes, unless names reappear as values below in most columns.
    """
    named = values = opposite = years = repeats = 0
    for column in sample:
        cells = understand_each(column)
        if not cells or cells[0].kind is Kind.NULL:
            continue
        head, body = cells[0], [cell for cell in cells[1:] if cell.kind is not Kind.NULL]
        named += 1
        is_value = head.kind in _VALUE_KINDS
        values += is_value
        valued = sum(cell.kind in _VALUE_KINDS for cell in body) > 0.5 * len(body)
        if valued and not is_value:
            return True
        opposite += is_value and bool(body) and not valued
        years += is_value and _is_year(head) and not (body and all(map(_is_year, body)))
        repeats += any(cell.text == head.text for cell in body)
    if not named:
        return False
    if values:
        return repeats == 0 and (opposite == values or (years + opposite >= values and values < named))
    return 2 * repeats <= named


def _is_year(cell: Value) -> bool:
    return cell.kind is Kind.INTEGER and 1800 <= cell.number <= 2100


def _declared_width(cells: list[str], widths: npt.NDArray[np.int32], skipped: int, mode: int) -> int:
    """How many columns the table has.

    A header wider than every row ends in stray delimiters, a narrower one lacks names.
    """
    written = int(widths[skipped])
    while written > max(mode, 1) and not cells[written - 1]:
        written -= 1
    return max(written, mode)


def _place_names(cells: list[str], written: int, width: int, sample: list[TextColumn]) -> list[str]:
    """Names by column.

    A header one short of its rows (as R writes them) lacks the first name, unless the rows end in nothing.
    """
    names = cells[:width]
    if written == width - 1 and width > 1:
        last = sample[width - 1] if len(sample) >= width else None
        trailing = last is None or not bool((last.ends[1:] > last.starts[1:]).any())
        if not trailing:
            names = ["", *cells[: width - 1]]
    return names + [""] * (width - len(names))
