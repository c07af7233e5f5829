"""JSON: one value per line, or a document that is streamed value by value. Keys are columns, inner keys paths ``a.b``.

Numbers keep the text they were written with. Lines are owned by the byte range in which they start, so a big file can
be cut anywhere.
"""

from __future__ import annotations

import codecs
import json
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from lakescope.errors import SourceError
from lakescope.sources import planning
from lakescope.sources.constants import tell_doubled
from lakescope.sources.formats import arrow_batches
from lakescope.sources.formats.flatten import MAX_DEPTH
from lakescope.sources.io import files
from lakescope.sources.io.encoding import detect_wide
from lakescope.sources.io.files import Stream
from lakescope.sources.io.limits import LONGEST
from lakescope.sources.model import Batch, Problem, Report, Severity, TextColumn, Unit
from lakescope.sources.names import check_width
from lakescope.untrusted import parsed
from lakescope.values.canonical import decode
from lakescope.values.typed import from_texts

if TYPE_CHECKING:
    from lakescope.sources.source_table import SourceTable

#: Bytes that are read at a time, and those that tell what a file is. Not measured: bounds on memory.
_CHUNK = 4 * 1024 * 1024
_HEAD = 64 * 1024
#: Rows of a batch: few enough that they stay in the processor's cache while they are Python objects.
_ROWS = 8192
#: A line, or one value of a document, longer than this is not read.
_LONGEST = LONGEST
#: Parts of one value, counted if it is long: each is an object of a hundred bytes until the row is made.
_LONG, _MOST_PARTS = 8 * 1024 * 1024, 2_000_000
#: The column of values that are not objects.
VALUE = "value"

#: What may stand around a line: a byte order mark at the start of the file, NULs where a disk was full.
_IGNORED = " \t\r\n\x00\ufeff"
_BLANK = re.compile(r"[ \t\r\n]*")
_BETWEEN = re.compile(r"[ \t\r\n,]*")
#: Lines that decide whether a file is one of lines.
_JUDGED = 10


def plan(found: SourceTable, target_bytes: int) -> list[Unit]:
    """One unit per part, or byte ranges of a big file of lines. Documents and compressed files are read in one go."""
    units: list[Unit] = []
    for uri, size in found.parts:
        options = planning.options_of(found, uri)
        if found.format == "jsonl":
            options["lines"] = True
        if found.compression or size <= target_bytes or not _divisible(uri, options):
            units.append(Unit(found.table, "json", uri, size, options=options))
            continue
        count = -(-size // target_bytes)
        cuts = [size * place // count for place in range(count + 1)]
        for low, high in pairwise(cuts):
            ranged = {**options, "lines": True, "range": [low, high]}
            units.append(Unit(found.table, "json", uri, high - low, options=ranged))
    return units


def read(unit: Unit, report: Report) -> Iterator[Batch]:
    """Read lines or a document; broken lines are counted and told, the others kept."""
    rows = _JsonRows(unit, report)
    with files.open_stream(unit.uri, unit.options.get("compression")) as stream:
        try:
            yield from _read_values(rows, stream)
        except (OSError, EOFError) as error:
            yield from rows.cut_off(error)
        else:
            yield from rows.finish()


def _read_values(rows: _JsonRows, stream: Stream) -> Iterator[Batch]:
    if "range" in rows.unit.options:
        return _read_lines(rows, stream, b"")
    head = stream.read(_HEAD)
    bom, wide = detect_wide(head)
    if wide is None and (rows.unit.options.get("lines") or _is_lines(head)):
        return _read_lines(rows, stream, head)
    return _read_document(rows, stream, head[bom:], wide)


def _divisible(uri: str, options: dict[str, Any]) -> bool:
    head = files.read_head(uri, _HEAD)
    return detect_wide(head)[1] is None and (bool(options.get("lines")) or _is_lines(head))


def _is_lines(head: bytes) -> bool:
    """Whether every line is a value of its own. A document starts with an array, or with an object over many lines.

    Broken lines are no reason to read the others as a document; a few whole lines inside of one are no proof.
    """
    lines = [line for line in head.removeprefix(codecs.BOM_UTF8).split(b"\n") if line.strip()]
    if not lines:
        return True
    first = lines[0].lstrip()[:1]
    if first == b"[":
        return len(lines) > 1 and lines[1].lstrip()[:1] == b"[" and _is_whole(lines[0], list)
    if first != b"{" or len(lines) == 1:
        return True
    judged = lines[:-1][:_JUDGED] if len(head) >= _HEAD else lines[:_JUDGED]
    return 2 * sum(_is_whole(line, dict) for line in judged) >= len(judged)


def _is_whole(line: bytes, kind: type) -> bool:
    try:
        return isinstance(parsed(line), kind)
    except ValueError:
        return False


#: An object as it was parsed.
_Pairs = tuple[tuple[str, Any], ...]


class _Number(str):
    """A number as it was written, so that it can be told from a string."""

    __slots__ = ()


class _JsonRows:
    """Collects rows into batches, and what there is to tell about them."""

    def __init__(self, unit: Unit, report: Report) -> None:
        self.unit = unit
        self.report = report
        self.total = 0
        self.repeated = 0
        self._broken: Counter[str] = Counter()
        self._where: dict[str, str] = {}
        self._constants: dict[str, str | None] = unit.options.get("constants", {})
        self._doubled: set[str] = set()
        self._nested: set[str] = set()
        self._names: set[str] = set()
        # An object becomes a tuple of pairs: cheaper than a dictionary, told from a list, repeated keys included.
        self._decoder = json.JSONDecoder(
            object_pairs_hook=tuple, parse_int=_Number, parse_float=_Number, parse_constant=_Number
        )
        self._clear()

    def parse(self, text: str, start: int = 0) -> tuple[Any, int]:
        """The value that starts at a place, and where it ends."""
        if len(text) - start > _LONG and sum(text.count(mark, start) for mark in ",[{") > _MOST_PARTS:
            raise ValueError(f"a value of more than {_MOST_PARTS:,} parts")
        return self._decoder.raw_decode(text, start)

    def add(self, value: Any, size: int) -> Iterator[Batch]:
        """Add a value, written with ``size`` characters, as a row; yields a batch when one is full."""
        cells: dict[str, str | None] = {}
        self._flatten(value if isinstance(value, tuple) else ((VALUE, value),), "", 1, cells)
        if not cells.keys() <= self._columns.keys():
            self._add_columns(cells)
        self._rows.append(cells)
        self._size += size
        self.total += 1
        if len(self._rows) >= self._limit or self._size >= arrow_batches.MAX_BYTES:
            yield self._batch()

    def break_off(self, reason: str, where: str = "") -> None:
        """Count something that could not be read; ``where`` only if it does not depend on how the file is cut."""
        self._broken[reason] += 1
        self._where.setdefault(reason, where)

    def finish(self) -> Iterator[Batch]:
        """The rows that are left, then everything there is to tell."""
        yield from self._flush()
        if self.total == 0 and "range" not in self.unit.options:
            if not self._broken:
                raise SourceError(f"{self.unit.table} is empty: it holds no value", code="empty-file")
            raise SourceError(f"{self.unit.table} cannot be read as JSON: {self._reasons()[0]}", code="broken-json")
        self._tell_counts()

    def cut_off(self, error: Exception) -> Iterator[Batch]:
        """The rows that are left, then why there are no more."""
        yield from self._flush()
        self._tell_counts()
        raise files.cut_off(self.unit.table, error, self.total) from error

    def _flush(self) -> Iterator[Batch]:
        if self._rows:
            yield self._batch()

    def _reasons(self) -> list[str]:
        """Why values could not be read, each reason with its place if that is known."""
        return [f"{reason} {where}".rstrip() for reason, where in self._where.items()]

    def _tell_counts(self) -> None:
        for reason, count in zip(self._reasons(), self._broken.values(), strict=True):
            self._tell("warning", "broken-json", f"values were left out: {reason}", count)
        if self.repeated:
            detail = "keys that stand twice in their object; the last one counts"
            self._tell("warning", "duplicate-keys", detail, self.repeated)

    def _clear(self) -> None:
        self._columns: dict[str, None] = {}
        self._rows: list[dict[str, str | None]] = []
        self._size = 0
        self._limit = _ROWS

    def _flatten(self, pairs: _Pairs, above: str, depth: int, cells: dict[str, str | None]) -> None:
        """The cells of an object by path. This runs for every cell: the common kinds come first."""
        check_width(self.unit.table, len(pairs))
        for key, inner in pairs:
            path = above + key
            kind = type(inner)
            if kind is str or kind is _Number or inner is None:
                text = inner
            elif kind is bool:
                text = "true" if inner else "false"
            elif kind is tuple and inner and depth < MAX_DEPTH:
                self._flatten(inner, path + ".", depth + 1, cells)
                continue
            else:
                self._note_nested(path)
                text = self._compact(inner)
            if path in cells:
                self.repeated += 1
            cells[path] = text

    def _add_columns(self, cells: dict[str, str | None]) -> None:
        self._columns |= dict.fromkeys(cells)
        self._names |= cells.keys()
        self._limit = min(_ROWS, arrow_batches.rows_per_batch(len(self._columns)))
        check_width(self.unit.table, len(self._names))

    def _batch(self) -> Batch:
        """The rows so far. What the path spells is filled in row by row: which rows share a batch must not matter."""
        doubled = self._constants.keys() & self._columns.keys()
        tell_doubled(self.unit, doubled - self._doubled, self.report)
        self._doubled |= doubled
        columns = []
        for name in self._columns | self._constants:
            constant = self._constants.get(name)
            cells = from_texts(_all_encoded([row.get(name, constant) for row in self._rows]))
            columns.append(TextColumn(decode(_encoded(name)), *cells, "json"))
        batch = Batch(len(self._rows), columns)
        self._clear()
        return batch

    def _tell(self, severity: Severity, code: str, detail: str, count: int = 1) -> None:
        self.report(Problem(self.unit.table, severity, code, detail, count))

    def _compact(self, value: Any) -> str:
        """JSON without spaces, numbers as they were written."""
        if isinstance(value, tuple):
            members = dict(value)
            self.repeated += len(value) - len(members)
            return "{" + ",".join(f"{_quoted(key)}:{self._compact(inner)}" for key, inner in members.items()) + "}"
        if isinstance(value, list):
            return "[" + ",".join(map(self._compact, value)) + "]"
        return str(value) if isinstance(value, _Number) else _quoted(value)

    def _note_nested(self, path: str) -> None:
        if path not in self._nested:
            self._nested.add(path)
            self._tell("info", "nested", f"column {path!r} holds lists or deep objects: kept as JSON text")


def _quoted(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _all_encoded(texts: list[str | None]) -> list[bytes | None]:
    try:
        return [None if text is None else text.encode() for text in texts]
    except UnicodeEncodeError:
        return [None if text is None else _encoded(text) for text in texts]


def _encoded(text: str) -> bytes:
    """The bytes a text was read from. Half a surrogate pair, which JSON can spell, stays what it is: no valid UTF-8."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def _read_lines(rows: _JsonRows, stream: Stream, head: bytes) -> Iterator[Batch]:
    low, high = rows.unit.options.get("range", (0, None))
    for line in _lines(stream, head, low, high):
        if line is None:
            rows.break_off(f"a line longer than {_LONGEST >> 20} MB")
            continue
        text = line.decode("utf-8", "surrogateescape").strip(_IGNORED)
        if not text:
            continue
        try:
            value, end = rows.parse(text)
            if end < len(text):
                raise json.JSONDecodeError("Extra data", text, end)
            yield from rows.add(value, end)
        except ValueError as error:
            rows.break_off(_reason(error))
        except RecursionError:
            rows.break_off("nested too deeply")


def _reason(error: ValueError) -> str:
    return error.msg.lower() if isinstance(error, json.JSONDecodeError) else str(error)


def _lines(stream: Stream, head: bytes, low: int, high: int | None) -> Iterator[bytes | None]:
    """Lines that start in the range; None stands for one that is too long.

    A range that does not start the file begins one byte early: only a line feed right there makes its first byte the
    start of a line.
    """
    offset = max(low - 1, 0)
    if low:
        stream.seek(offset)
    skipping = low > 0
    pending = b""
    chunk = head or stream.read(_CHUNK)
    while chunk:
        *lines, pending = (pending + chunk).split(b"\n")
        for line in lines:
            if skipping:
                skipping = False
            elif high is not None and offset >= high:
                return
            else:
                yield line
            offset += len(line) + 1
        if len(pending) > _LONGEST or (skipping and pending):
            if not skipping and (high is None or offset < high):
                yield None
            offset, pending, skipping = offset + len(pending), b"", True
        chunk = stream.read(_CHUNK)
    if pending and (high is None or offset < high):
        yield pending


def _read_document(rows: _JsonRows, stream: Stream, head: bytes, wide: str | None) -> Iterator[Batch]:
    """Values of a document one after the other; a top-level array stands for its elements."""
    text = _Text(stream, head, wide)
    inside = False
    while text.skip(_BETWEEN if inside else _BLANK):
        char = text.char()
        if (char == "]" and inside) or (char == "[" and not inside):
            inside = not inside
            text.place += 1
            continue
        where = f"near character {text.dropped + text.place}"
        try:
            yield from rows.add(*text.value(rows))
        except ValueError as error:
            rows.break_off(f"{_reason(error)}, reading stopped", where)
            return
        except RecursionError:
            rows.break_off("nested too deeply, reading stopped", where)
            return
    if inside:
        rows.break_off("the document is cut off", "at its end")


class _Text:
    """The text of a document, decoded piece by piece and forgotten once it was read."""

    def __init__(self, stream: Stream, head: bytes, wide: str | None) -> None:
        self._stream = stream
        # Bytes that are no text are kept for those who know the table's encoding; there are none in wide characters.
        self._decoder = codecs.getincrementaldecoder(wide or "utf-8")("replace" if wide else "surrogateescape")
        self._ended = not head
        self.text = self._decoder.decode(head)
        self.place = 0
        self.dropped = 0

    def skip(self, blank: re.Pattern[str]) -> bool:
        """Go to the next character that is not blank; False at the end."""
        while True:
            match = blank.match(self.text, self.place)
            self.place = match.end() if match else self.place
            if self.place < len(self.text):
                return True
            if not self._more(_CHUNK):
                return False

    def char(self) -> str:
        """The character here."""
        return self.text[self.place]

    def value(self, rows: _JsonRows) -> tuple[Any, int]:
        """The value that starts here, and its length. What the end of the text cuts off is tried with more text."""
        while True:
            start = self.place
            try:
                value, end = rows.parse(self.text, start)
                if end < len(self.text) or not self._more(_CHUNK):
                    self.place += end - start
                    return value, end - start
            except json.JSONDecodeError as error:
                cut_off = error.pos >= len(self.text) - 16 or error.msg.startswith("Unterminated string")
                length = len(self.text) - start
                if cut_off and length > _LONGEST:
                    raise ValueError(f"a value longer than {_LONGEST >> 20} MB") from error
                if not cut_off or not self._more(max(_CHUNK, length)):
                    raise

    def _more(self, size: int) -> bool:
        """Read on, dropping what lies behind."""
        if self._ended:
            return False
        piece = self._stream.read(size)
        self._ended = not piece
        self.dropped += self.place
        self.text = self.text[self.place :] + self._decoder.decode(piece, self._ended)
        self.place = 0
        return bool(piece)
