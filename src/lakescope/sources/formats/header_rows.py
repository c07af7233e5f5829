"""Does a table have a header at all, how many rows of it, and where does the data start?

The first rows are cut into preamble, header and data. Each way to cut them is weighed by how likely its rows are: a row
of data is like the rows below it, cell by cell (kind, shape, length, values that come back); a row of a header is short
distinct words, whatever stands below; a row of a preamble fills few cells. So text over text is told apart, too: by
lengths, shapes and whether its values ever return, not only by types. Numbers here are round ones, set by hand.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lakescope.array_types import F64
from lakescope.sources.formats import header_kernel
from lakescope.sources.names import meaningless
from lakescope.values.canonical import Kind, decode
from lakescope.values.cells import understand
from lakescope.values.text import MISSING, TextColumn, read_only

#: Rows that may come before the data, and rows of a header.
AHEAD, HEADER_ROWS = 20, 3


@dataclass(frozen=True, slots=True)
class HeaderRowTuning:
    """What says where the header of a file is."""

    #: Rows that a row is compared with. Not measured: more say little more.
    body: int = 60
    #: Columns that are looked at. Not measured: more say little more.
    columns: int = 64
    #: What the first row of a preamble costs before anything is seen, as a logarithm. Not measured: most files have
    #: none.
    preamble_cost: float = 2.0
    #: What each further row of it costs. Not measured: a guess.
    preamble_row: float = 0.5
    #: What a blank line says for what stands above it being a preamble. Not measured: a guess.
    blank: float = 2.0
    #: What few rows say for the first row, over the number of rows: they say little, and most tables have a header. Not
    #: measured: a guess.
    unseen: float = 2.0
    #: How far behind the best way another one is given up. Not measured: one in 22,000.
    hopeless: float = 10.0
    #: Rows that are looked at first. Not measured: a bound on time.
    few: int = 8
    #: Characters of the longest cell that may be a name. Not measured: a line of text.
    longest: int = 80


HEADER = HeaderRowTuning()

SAMPLED = AHEAD + HEADER_ROWS + HEADER.body
#: What header rows, and the first row of a preamble, cost before anything is seen.
_COST = {1: -0.4, 2: 3.0, 3: 6.0}
_IDENTIFIER = re.compile(
    r"[a-z]+(_[a-z0-9]+)+|[a-z]+[A-Z][A-Za-z0-9]*|[A-Z][a-z]+[A-Z][A-Za-z0-9]*|[A-Z]+(_[A-Z0-9]+)+"
)
#: Headers that anybody uses.
_COMMON = frozenset(
    """id ids key code name names title type kind class category group status state city county country region province
    address street zip zipcode postcode postal_code phone telephone email url website link date time datetime
    timestamp year month day week quarter hour start end begin from to first last first_name last_name firstname
    lastname surname age sex gender number no no. # nr num count total sum amount quantity qty price cost value values
    rate ratio percent percentage % share rank position pos pos. place order index line row source target notes
    note comment comments remarks description desc text label result results score points team club player
    athlete nation nationality opponent venue location site stadium season round event competition date_of_birth
    born died party votes candidate district population area height weight length width depth size speed
    distance duration lat latitude lon lng longitude version currency unit units product item model brand
    make company customer client user username account department job occupation salary income gold silver
    bronze wins losses draws goals attendance album artist single song film role director genre rating reference
    flag color colour weekday level grade test species sample region_code country_code iso iso_code variable
    temperature mean min max std average median low high open close volume language school university degree
    station route""".split()
)
_UNITS = ("%", "$", "€")

#: How likely a way to cut the rows is, as a logarithm; where its header starts, and how many rows it has.
_Way = tuple[float, int, int]


@dataclass(frozen=True, slots=True)
class HeaderRows:
    """What a table begins with: rows of ``preamble``, then rows of a ``header``, if any.

    ``probability`` is that of there being a header.
    """

    preamble: int
    header: int
    probability: float


class _Head:
    """The first rows of a table: what each cell is, and how it is written."""

    def __init__(
        self, columns: Sequence[TextColumn], written: Sequence[int] | None, after_blank: Collection[int], fallback: str
    ) -> None:
        data, starts, ends = _one_buffer(columns[: HEADER.columns])
        self._data, self._starts, self._ends, self._fallback = data, starts, ends, fallback
        self.width, self.rows = starts.shape
        self.written = [len(columns)] * self.rows if written is None else written
        self.after_blank = after_blank
        self.cells = understand(TextColumn("", data, starts.ravel(), ends.ravel()), fallback)
        self.places = self.cells.places.reshape(starts.shape)
        there = self.places >= 0
        self.kinds = np.where(there, self._spread(self.cells.kinds), np.uint8(Kind.NULL))
        self.filled: list[int] = there.sum(axis=0).tolist()

    def text(self, column: int, row: int) -> str:
        """A cell as it is written."""
        start, end = int(self._starts[column, row]), int(self._ends[column, row])
        return decode(self._data[start:end].tobytes(), self._fallback).strip() if end > start else ""

    def texts(self, row: int) -> list[str]:
        return [self.text(column, row) for column in range(self.width)]

    def distinct(self, row: int) -> int:
        """How many different values a row has."""
        return len({place for place in self.places[:, row].tolist() if place >= 0})

    def is_title(self, row: int) -> bool:
        """Whether only the first cells of a row are filled, as a title does and names of columns do not."""
        return self.filled[row] < self.width and bool((self.places[: self.filled[row], row] >= 0).all())

    def weighed(self, ahead: int) -> tuple[F64, F64]:
        """How much more likely the first rows are of a preamble, and of a header, than one more like those below."""
        header, preamble = self.weights_of_cells(ahead, self._lexical(ahead))
        fills = Counter(self.filled[1 : HEADER.body + 1])
        for row in range(ahead):
            self._weigh_row(row, header, preamble, fills)
            if row + 1 < self.rows:
                fills[self.filled[row + 1]] -= 1
            if row + 1 + HEADER.body < self.rows:
                fills[self.filled[row + 1 + HEADER.body]] += 1
        return preamble, header

    def weights_of_cells(self, ahead: int, lexical: F64) -> tuple[F64, F64]:
        """What the cells of the first rows say for a header, and for a preamble, summed by row."""
        shapes = np.empty(self.cells.kinds.size, np.uint64)
        header_kernel.outlines(self.cells.written, self.cells.wstarts, self.cells.wends, shapes)
        integers = self.cells.kinds == Kind.INTEGER
        years = integers & (self.cells.numbers >= 1800) & (self.cells.numbers <= 2100)
        is_year = self._spread(years).astype(np.uint8) * (self.places >= 0)
        header, preamble = np.zeros(ahead), np.zeros(ahead)
        header_kernel.weigh_rows(
            *(self.kinds, self._spread(self.cells.hashes), self._spread(shapes), self._spread(self.cells.lengths)),
            *(is_year, lexical, HEADER.body, ahead, header, preamble),
        )
        return header, preamble

    def _spread(self, each: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        """What is known of distinct cells, by column and row; of cells that are not there it says nothing."""
        if not each.size:
            return np.zeros(self.places.shape, each.dtype)
        found: npt.NDArray[np.generic] = each[self.places]
        return found

    def _lexical(self, ahead: int) -> F64:
        """What the words of the first rows say for a header: names that anybody uses, that tools give, identifiers."""
        some = np.unique(self.places[:, :ahead][self.kinds[:, :ahead] == Kind.TEXT])
        said = np.zeros(self.cells.kinds.size + 1)
        bounds = zip(self.cells.wstarts[some].tolist(), self.cells.wends[some].tolist(), strict=True)
        said[some] = [
            _speaks(decode(self.cells.written[start:end].tobytes(), self._fallback))
            if end - start <= HEADER.longest
            else 0.0
            for start, end in bounds
        ]
        # A cell that is not there has the place -1, and the last entry is that of no cell.
        found: F64 = said[self.places]
        return found

    def _weigh_row(self, row: int, header: F64, preamble: F64, fills: Counter[int]) -> None:
        """Add what a row as a whole says: how many cells it fills, whether names repeat, marks of comments."""
        below = min(HEADER.body, self.rows - row - 1)
        filled = self.filled[row]
        held = self.places[:, row]
        if not filled:
            header[row], preamble[row] = -6.0, 0.5
            return
        if not below:
            named = bool((self.kinds[held >= 0, row] == Kind.TEXT).all())
            header[row], preamble[row] = (1.0 if named else -4.0), -2.0
            return
        header[row] *= min(1.0, 3.0 / math.sqrt(max(1, self.width)))
        header[row] -= 1.5 * (filled - self.distinct(row))
        preamble[row] /= max(1.0, math.sqrt(filled))
        usual = (fills[filled] + 0.3) / (below + 2)
        share = filled / max(1, self.width)
        header[row] += _bounded(math.log(_header_fill(share) / usual), 2.5)
        preamble[row] += _bounded(math.log(_preamble_fill(share, self.width) / usual), 3.5)
        if filled <= 2 and self.text(0, row).startswith(("#", "//", "%")):
            preamble[row] += 2.0
        if self.written[row] == 1 and self.width > 2:
            preamble[row] += 1.5


def _speaks(text: str) -> float:
    if " ".join(text.lower().split()) in _COMMON:
        return 2.0
    if meaningless(text):
        return 1.5
    return 1.0 if _IDENTIFIER.fullmatch(text) else 0.0


def _bounded(evidence: float, most: float) -> float:
    return max(-most, min(most, evidence))


def _header_fill(share: float) -> float:
    return 0.75 if share == 1 else 0.15 if share >= 0.8 else 0.06 if share >= 0.5 else 0.03


def _preamble_fill(share: float, width: int) -> float:
    if width == 1:
        return 0.05
    return 0.6 if share <= 0.25 else 0.35 if share <= 0.5 else 0.05 if share < 1 else 0.01


def _one_buffer(
    columns: Sequence[TextColumn],
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """The cells of some columns as slices of one buffer: (data, starts, ends), a row a column."""
    starts, ends = np.stack([each.starts for each in columns]), np.stack([each.ends for each in columns])
    if all(each.data is columns[0].data for each in columns):
        return read_only(columns[0].data), starts, ends
    pieces, at = [], 0
    for number, each in enumerate(columns):
        there = each.ends > MISSING
        starts[number] = np.where(there, each.starts + at, 0)
        ends[number] = np.where(there, each.ends + at, MISSING)
        pieces.append(each.data[: each.ends.max(initial=0)])
        at += pieces[-1].size
    return read_only(np.concatenate(pieces)), starts, ends


def find_header(
    columns: Sequence[TextColumn],
    written: Sequence[int] | None = None,
    after_blank: Collection[int] = (),
    fallback: str = "cp1252",
) -> HeaderRows:
    """What some rows begin with.

    ``written`` tells how many cells each row has, if fewer than there are columns; ``after_blank`` are rows that
    follow a blank line, which is none of the rows.
    """
    if not columns or not columns[0].starts.size:
        return HeaderRows(0, 0, 0.0)
    head = _Head(columns, written, after_blank, fallback)
    # Most tables show within some rows where their data starts.
    found = _cut(head, min(head.rows, HEADER.few)) or _cut(head, min(head.rows, AHEAD + HEADER_ROWS))
    with_one, without = found or ((-math.inf, 0, 0), (0.0, 0, 0))
    probability = 1 / (1 + math.exp(_bounded(without[0] - with_one[0], 50.0)))
    _, start, count = max(without, with_one, key=lambda way: way[0])
    return HeaderRows(start, count, probability)


def _cut(head: _Head, ahead: int) -> tuple[_Way, _Way] | None:
    """The best ways to cut the rows with a header and without; None if more rows would have to be looked at."""
    before, names = head.weighed(ahead)
    names[:1] += HEADER.unseen / head.rows
    with_one: _Way = (-math.inf, 0, 0)
    without: _Way = (0.0, 0, 0)
    preamble = ended = 0.0
    for start in range(max(1, min(AHEAD, head.rows - 1)) + 1):
        if start:
            preamble += float(before[start - 1]) - HEADER.preamble_row - (HEADER.preamble_cost if start == 1 else 0.0)
            if preamble < max(with_one[0], without[0]) - HEADER.hopeless:
                break
            ended = preamble + HEADER.blank * (start in head.after_blank)
            without = max(without, (ended, start, 0), key=lambda way: way[0])
        if start + HEADER_ROWS > ahead < head.rows and ahead < AHEAD + HEADER_ROWS:
            return None
        for count in range(1, min(HEADER_ROWS, ahead - start) + 1):
            total = ended - _COST[count] + float(names[start : start + count].sum())
            if total > with_one[0] and _names_columns(head, start, count):
                with_one = total, start, count
    return with_one, without


def _names_columns(head: _Head, start: int, count: int) -> bool:
    """Whether some rows make one header: the last names most columns, upper ones group them or it tells units."""
    last = start + count - 1
    if 2 * head.filled[last] <= head.width and head.is_title(last):
        return False
    if any(head.filled[row] == 1 and head.is_title(row) for row in range(start, last)):
        return False
    if any(row in head.after_blank for row in range(start + 1, last + 1)):
        return False
    if count == 1 or all(head.filled[row] < head.filled[last] for row in range(start, last)):
        return True
    units = sum(text.startswith(("(", "[")) or text in _UNITS for text in head.texts(last))
    if 2 * units >= head.width:
        return True
    return any(head.distinct(row) < head.filled[row] for row in range(start, last))


def joined_names(rows: Sequence[Sequence[str]]) -> list[str]:
    """Names of columns from several rows: a group's name stands over its first column and goes for those beside it."""
    names = list(rows[0]) if len(rows) == 1 else [""] * len(rows[0])
    for number, row in enumerate(rows if len(rows) > 1 else ()):
        last = ""
        for place, cell in enumerate(row):
            last = cell or last
            text = last if number < len(rows) - 1 else cell
            if text and text != names[place]:
                names[place] = f"{names[place]} {text}".strip()
    return names
