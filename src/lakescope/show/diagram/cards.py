"""What a table shows in a diagram: which columns, in which order, and how much room they take."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from lakescope.show.diagram.schema import Box, Column, Edge, type_word
from lakescope.show.text import columns_of, printable

#: Columns shown beside those of keys.
_OTHERS = 6
HEADER_HEIGHT, ROW_HEIGHT = 27.0, 18.0
_NARROWEST, WIDEST = 140.0, 272.0
#: Widths of a character: of a column's name, of a table's name, of small print.
CHARACTER, BOLD_CHARACTER, SMALL_CHARACTER = 6.95, 7.25, 5.6
#: Where names start: right of one mark of keys, or of two.
_INDENTS = (28.0, 42.0)


@dataclass(frozen=True, slots=True)
class TableCard:
    """The columns of a table that are drawn, the others, and how wide it must be."""

    box: Box
    rows: tuple[Column, ...]
    more: tuple[Column, ...]
    indent: float
    width: float

    @property
    def height(self) -> float:
        return HEADER_HEIGHT + ROW_HEIGHT * (len(self.rows) + bool(self.more)) + 4

    def row(self, columns: tuple[str, ...]) -> int:
        """The row where a foreign key of these columns meets the table; -1, its header, if there is none."""
        rows = {column.name: i for i, column in enumerate(self.rows)}
        return min((rows[name] for name in columns if name in rows), default=-1)


def table_cards(boxes: Sequence[Box], edges: Sequence[Edge]) -> list[TableCard]:
    """The card of each table; columns that a foreign key uses are among those that it shows."""
    used: dict[str, set[str]] = defaultdict(set)
    for edge in edges:
        used[edge.child_table].update(edge.child_columns)
        used[edge.parent_table].update(edge.parent_columns)
    return [_card(box, used[box.table]) for box in boxes]


def _card(box: Box, used: set[str]) -> TableCard:
    """Keys come first, then foreign keys and what is referred to, then some others."""
    keys = [column for column in box.columns if column.key]
    foreign = [column for column in box.columns if not column.key and (column.foreign or column.name in used)]
    others = [column for column in box.columns if not column.key and not column.foreign and column.name not in used]
    # A line that says that there is one more takes the place of that one.
    shown = len(others) if len(others) <= _OTHERS + 1 else _OTHERS
    rows = (*keys, *foreign, *others[:shown])
    indent = _INDENTS[any(column.key and column.foreign for column in rows)]
    widths = [
        indent + CHARACTER * columns_of(column.name) + 12 + SMALL_CHARACTER * len(type_word(column)) + 9
        for column in rows
    ]
    head = 12 + BOLD_CHARACTER * columns_of(box.table) + 14 + SMALL_CHARACTER * len(rows_text(box)) + 9
    width = min(WIDEST, max(_NARROWEST, head, *widths) if widths else max(_NARROWEST, head))
    return TableCard(box, rows, tuple(others[shown:]), indent, math.ceil(width))


def rows_text(box: Box) -> str:
    """A number of rows in few characters."""
    for unit, word in ((1e9, "G"), (1e6, "M")):
        if box.rows >= unit:
            return f"{box.rows / unit:.1f}{word} rows"
    return counted(box.rows, "row")


def counted(number: int, word: str) -> str:
    """A number with its word, in the plural where there are several."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def fitted(text: str, cells: int) -> str:
    """Printable text, its middle left out where it is too long: names differ at their ends, most at the last."""
    flat = printable(text)
    if columns_of(flat) <= cells:
        return flat
    head, tail = flat[:cells], flat[-cells:]
    while columns_of(head) + columns_of(tail) >= cells:
        if 3 * columns_of(head) > 2 * columns_of(tail):
            head = head[:-1]
        else:
            tail = tail[1:]
    return f"{head}…{tail}"
