"""Does a file have a header at all, how many rows of it, and where does the data start?

The first rows of a text table are cut into preamble, header and data. Each way to cut them is weighed by how likely
its rows are: a row of data is like the rows below it, cell by cell (kind, shape, length, values that come back); a row
of a header is short distinct words, whatever stands below; a row of a preamble fills few cells. So text over text
is told apart, too: by lengths, shapes and whether its values ever return, not only by types.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from lakescope.errors import BadRequest
from lakescope.headers.names import meaningless, normalised
from lakescope.values.canonical import Kind, Value, canonical

#: Rows looked at, and rows that may come before the data.
_ROWS, _AHEAD = 200, 20
_HEADER_ROWS = 3
_BODY = 60

#: How likely a cell of a header is of a kind.
_HEADER_KINDS = {Kind.TEXT: 0.9, Kind.NULL: 0.04, Kind.INTEGER: 0.03, Kind.CODE: 0.01, Kind.DATE: 0.01}
_PREAMBLE_KINDS = {Kind.TEXT: 0.8, Kind.DATE: 0.07, Kind.INTEGER: 0.06}
_RARE, _HEADER_YEAR = 0.003, 0.06
#: Log length of words of headers and of lines of preambles: mean and deviation.
_HEADER_LENGTH, _PREAMBLE_LENGTH = (2.1, 0.6), (3.2, 0.9)
#: How much all columns together may say about one thing, so that none decides alone.
_MOST = 4.0
#: What header rows, and the first row of a preamble, cost before anything is seen.
_COST = {0: 0.0, 1: -0.4, 2: 3.0, 3: 6.0}
_PREAMBLE_COST, _PREAMBLE_ROW = 2.0, 0.5
_RUN = re.compile(r"[^\W\d_]+")
_NUMBER = re.compile(r"\d+")
_IDENTIFIER = re.compile(
    r"[a-z]+(_[a-z0-9]+)+|[a-z]+[A-Z][A-Za-z0-9]*|[A-Z][a-z]+[A-Z][A-Za-z0-9]*|[A-Z]+(_[A-Z0-9]+)+"
)
#: Headers that anybody uses.
COMMON = frozenset(
    """id ids key code name names title type kind class category group status state city county country region province
    address street zip zipcode postcode postal_code phone telephone email url website link date time datetime
    timestamp year month day week quarter hour start end begin from to first_name last_name firstname lastname
    surname age sex gender number no no. # nr num count total sum amount quantity qty price cost value values
    rate ratio percent percentage % share rank position pos pos. place order index line row source target notes
    note comment comments remarks description desc text label result results score points team club player
    athlete nation nationality opponent venue location site stadium season round event competition date_of_birth
    born died party votes candidate district population area height weight length width depth size speed
    distance duration lat latitude lon lng longitude x y z version currency unit units product item model brand
    make company customer client user username account department job occupation salary income gold silver
    bronze wins losses draws goals attendance album artist single song film role director genre rating reference
    flag color colour weekday level grade test species sample region_code country_code iso iso_code variable
    temperature mean min max std average median low high open close volume language school university degree
    station route""".split()
)


@dataclass(frozen=True, slots=True)
class HeaderOpinion:
    """What a file begins with.

    ``probability`` is that of there being a header. ``preamble`` counts rows before it, ``header_rows`` its own; the
    data starts at row ``data_row``, counted from 0. ``names`` are the headers, of several rows joined.
    """

    header: bool
    probability: float
    preamble: int
    header_rows: int
    data_row: int
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Cell:
    """A cell: what it is, and how it is written."""

    text: str
    value: Value
    outline: str

    @classmethod
    def of(cls, text: str) -> _Cell:
        flat = text.strip()
        return cls(flat, canonical(flat), _outline(flat))

    @property
    def kind(self) -> Kind:
        return self.value.kind


def _outline(text: str) -> str:
    """Words and numbers as one letter each, everything else as it stands."""
    short = _NUMBER.sub("9", _RUN.sub("w", text[:60]))
    return re.sub(r"w( w)+", "w w", short)


class _Below:
    """The cells of a column below a row: what one more of them would look like."""

    def __init__(self, cells: Sequence[_Cell]) -> None:
        filled = [cell for cell in cells if cell.kind is not Kind.NULL]
        self.count = len(cells)
        self.kinds = Counter(cell.kind for cell in cells)
        texts = [cell for cell in filled if cell.kind is Kind.TEXT]
        self.outlines = Counter(cell.outline for cell in texts)
        self.texts = len(texts)
        lengths = [math.log(1 + len(cell.text)) for cell in texts]
        self.length = (float(np.mean(lengths)), max(0.35, float(np.std(lengths)))) if lengths else None
        self.values = Counter(cell.value.text for cell in filled)
        once = sum(count == 1 for count in self.values.values())
        # Good and Turing: how likely the next value is a new one.
        self.novelty = (once + 0.5) / (len(filled) + 1) if filled else 1.0
        # Years name columns and are values of them: how likely one more cell is a year.
        self.year = (sum(map(_is_year, cells)) + 0.3) / (self.count + 1)

    def kind(self, kind: Kind) -> float:
        """How likely a cell is of a kind."""
        usual = 0.6 if kind is Kind.TEXT else 0.08
        return (self.kinds[kind] + usual) / (self.count + 1.2)

    def outline(self, outline: str) -> float:
        return (self.outlines[outline] + 0.3) / (self.texts + 0.3 * (len(self.outlines) + 3))


def _is_year(cell: _Cell) -> bool:
    return cell.kind is Kind.INTEGER and 1800 <= cell.value.number <= 2100


def _density(length: int, usual: tuple[float, float]) -> float:
    """Log density of the logarithm of a length."""
    away = (math.log(1 + length) - usual[0]) / usual[1]
    return -0.5 * away * away - math.log(usual[1])


def _bounded(evidence: float, most: float) -> float:
    return max(-most, min(most, evidence))


def _header_evidence(cell: _Cell, below: _Below, vocabulary: Collection[str]) -> float:
    """How much more likely a cell is one of a header than one more of those below it, as a logarithm."""
    if _is_year(cell):
        found = _bounded(math.log(_HEADER_YEAR / below.year), 3.5)
    else:
        found = _bounded(math.log(_HEADER_KINDS.get(cell.kind, _RARE) / below.kind(cell.kind)), 3.5)
    if cell.kind is Kind.NULL:
        return found
    name = normalised(cell.text)
    if name in COMMON or name in vocabulary:
        found += 2.0
    elif meaningless(cell.text):
        found += 1.5
    elif _IDENTIFIER.fullmatch(cell.text):
        found += 1.0
    times = below.values[cell.value.text]
    if times:
        found -= 1.0 + 1.5 * min(1.0, times / max(1, below.count) * 5)
    else:
        found += _bounded(-math.log(max(below.novelty, 1 / (below.count + 2))), 2.0)
    if cell.kind is Kind.TEXT and below.texts and below.length is not None:
        usual = 0.45 if cell.outline == "w" else 0.25 if cell.outline == "w w" else 0.03
        found += _bounded(math.log(usual / below.outline(cell.outline)), 1.5)
        length = len(cell.text)
        found += _bounded(_density(length, _HEADER_LENGTH) - _density(length, below.length), 1.5)
    return _bounded(found, _MOST)


def _preamble_evidence(cell: _Cell, below: _Below) -> float:
    """The same for a line before the header, of a cell that is filled."""
    found = _bounded(math.log(_PREAMBLE_KINDS.get(cell.kind, 0.02) / below.kind(cell.kind)), 2.5)
    if cell.kind is Kind.TEXT and below.length is not None:
        found += _bounded(_density(len(cell.text), _PREAMBLE_LENGTH) - _density(len(cell.text), below.length), 1.0)
    if below.values[cell.value.text]:
        found -= 2.0
    return found


class _Head:
    """The first rows of a table, padded to one width."""

    def __init__(self, rows: Sequence[Sequence[str]], vocabulary: Collection[str]) -> None:
        widths = Counter(len(row) for row in rows if any(cell.strip() for cell in row))
        most = max(widths.values(), default=0)
        self.width = max((width for width, count in widths.items() if count == most), default=0)
        self.written = [len(row) for row in rows]
        self.rows = [[_Cell.of(cell) for cell in [*row[: self.width], *[""] * (self.width - len(row))]] for row in rows]
        self.filled = [sum(cell.kind is not Kind.NULL for cell in row) for row in self.rows]
        self.blank = [not any(cell.text for cell in row) for row in self.rows]
        self._vocabulary = vocabulary

    def weighed(self, at: int) -> tuple[float, float]:
        """How much more likely a row is one of a preamble, and one of a header, than one more like those below."""
        if self.blank[at]:
            return 0.5, -6.0
        below = [row for row, blank in zip(self.rows[at + 1 :], self.blank[at + 1 :], strict=True) if not blank][:_BODY]
        if not below:
            return -2.0, 0.0
        columns = [_Below([row[place] for row in below]) for place in range(self.width)]
        row = self.rows[at]
        header = sum(
            _header_evidence(cell, column, self._vocabulary) for cell, column in zip(row, columns, strict=True)
        )
        header *= min(1.0, 3.0 / math.sqrt(max(1, self.width)))
        names = [cell.text.lower() for cell in row if cell.text]
        header -= 1.5 * (len(names) - len(set(names)))
        filled = [(cell, column) for cell, column in zip(row, columns, strict=True) if cell.kind is not Kind.NULL]
        preamble = sum(_preamble_evidence(cell, column) for cell, column in filled) / max(1.0, math.sqrt(len(filled)))
        fills = Counter(sum(cell.kind is not Kind.NULL for cell in some) for some in below)
        usual = (fills[self.filled[at]] + 0.3) / (len(below) + 2)
        share = self.filled[at] / max(1, self.width)
        header += _bounded(math.log(_header_fill(share) / usual), 2.5)
        preamble += _bounded(math.log(_preamble_fill(share, self.width) / usual), 3.5)
        if row[0].text.startswith(("#", "//", "%")) and self.filled[at] <= 2:
            preamble += 2.0
        if self.written[at] == 1 and self.width > 2:
            preamble += 1.5
        return preamble, header


def _header_fill(share: float) -> float:
    return 0.75 if share == 1 else 0.15 if share >= 0.8 else 0.06 if share >= 0.5 else 0.03


def _preamble_fill(share: float, width: int) -> float:
    if width == 1:
        return 0.05
    return 0.6 if share <= 0.25 else 0.35 if share <= 0.5 else 0.05 if share < 1 else 0.01


def header_opinion(rows: Sequence[Sequence[str]], vocabulary: Collection[str] = ()) -> HeaderOpinion:
    """What some rows begin with; ``vocabulary`` are headers that are known, in lower case."""
    head = _Head(rows[:_ROWS], vocabulary)
    if not head.rows or not head.width:
        return HeaderOpinion(False, 0.0, 0, 0, 0, ())
    ahead = min(_AHEAD, len(head.rows) - 1) if len(head.rows) > 1 else 1
    weighed = [head.weighed(at) for at in range(min(len(head.rows), ahead + _HEADER_ROWS))]
    best: dict[bool, tuple[float, int, int]] = {}
    preamble = 0.0
    for start in range(ahead + 1):
        if start:
            preamble += weighed[start - 1][0] - _PREAMBLE_ROW * (not head.blank[start - 1])
        if start and start < len(head.rows) and head.blank[start]:
            continue  # blank lines before the header belong to the preamble
        for count in range(_HEADER_ROWS + 1):
            if start + count > len(weighed) or start + count > len(head.rows):
                break
            total = preamble - (_PREAMBLE_COST if start else 0.0) - _COST[count]
            total += sum(weighed[at][1] for at in range(start, start + count))
            if count > 1 and not _builds_up(head, start, count):
                continue
            if total > best.get(count > 0, (-math.inf, 0, 0))[0]:
                best[count > 0] = total, start, count
    with_one, without = best.get(True, (-math.inf, 0, 0)), best.get(False, (0.0, 0, 0))
    header = with_one[0] > without[0]
    _, start, count = with_one if header else without
    probability = 1 / (1 + math.exp(_bounded(without[0] - with_one[0], 50.0)))
    names = _joined(head.rows[start : start + count], head.width) if header else ()
    return HeaderOpinion(header, probability, start, count, start + count, names)


def _builds_up(head: _Head, start: int, count: int) -> bool:
    """Whether several rows make one header: upper ones group columns or the last tells units, none is data."""
    upper = head.filled[start : start + count - 1]
    last = head.rows[start + count - 1]
    units = sum(cell.text.startswith(("(", "[")) or cell.text in ("%", "$", "€") for cell in last) >= 0.5 * head.width
    repeats = any(
        len({cell.text for cell in row if cell.text}) < sum(bool(cell.text) for cell in row)
        for row in head.rows[start : start + count - 1]
    )
    return units or repeats or all(filled < head.filled[start + count - 1] for filled in upper)


def _joined(rows: Sequence[Sequence[_Cell]], width: int) -> tuple[str, ...]:
    """Names of several rows: a group's name stands over its first column and goes for those beside it."""
    names = [""] * width
    for number, row in enumerate(rows):
        last = ""
        for place in range(width):
            text = row[place].text
            if number < len(rows) - 1:
                last = text or last
                text = last
            if text and text != names[place]:
                names[place] = f"{names[place]} {text}".strip()
    return tuple(names)


def head_rows(location: str) -> list[list[str]] | None:
    """The first rows of a CSV file as they stand, with whatever comes before the data; None of other formats."""
    from lakescope.sources import files
    from lakescope.sources.csv_dialect import HEAD_BYTES, detect_dialect
    from lakescope.sources.discover import discover
    from lakescope.sources.encoding import detect_encoding

    found, problems = discover([location])
    if not found:
        detail = "; ".join(problem.detail for problem in problems) or f"found no table at {location}"
        raise BadRequest(detail, hint="give the path of one table")
    if found[0].format != "csv":
        return None
    with files.open_stream(found[0].parts[0][0], found[0].compression) as stream:
        head = stream.read(HEAD_BYTES)
    encoding = detect_encoding(head)
    if encoding.transcode:
        head = head.decode(encoding.transcode, "ignore").lstrip("\ufeff").encode()
        encoding = detect_encoding(head)
    text = head[encoding.bom :]
    whole = len(head) < HEAD_BYTES
    dialect = detect_dialect(np.frombuffer(text, np.uint8), whole=whole, encoding=encoding, table=location)
    try:
        decoded = text.decode("utf-8") if whole else text[: text.rfind(b"\n") + 1 or None].decode("utf-8")
    except UnicodeDecodeError:
        decoded = text.decode(encoding.fallback, "replace")
    return cut_rows(decoded, chr(dialect.delimiter), chr(dialect.quote) if dialect.quote else None)


def cut_rows(text: str, delimiter: str, quote: str | None = '"') -> list[list[str]]:
    """The first rows of a text, blank lines as rows of nothing."""
    lines = io.StringIO(text, newline="")
    if quote:
        reader = csv.reader(lines, delimiter=delimiter, quotechar=quote)
    else:
        reader = csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE)
    rows: list[list[str]] = []
    try:
        for row in reader:
            rows.append(row)
            if len(rows) == _ROWS:
                break
    except csv.Error:
        pass  # an odd line: what came before it is enough
    return rows


def opinion_of(location: str, vocabulary: Collection[str] = ()) -> HeaderOpinion | None:
    """What a CSV file begins with; None of files of other formats, which say it themselves."""
    rows = head_rows(location)
    return None if rows is None else header_opinion(rows, vocabulary)
