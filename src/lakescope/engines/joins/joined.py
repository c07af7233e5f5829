"""The rows behind an answer: the head of a table, what a table's columns are to the lake, two tables joined.

Values meet as they meet in the index, by the hash of their canonical text. The other table is read in bounded pieces,
and of each only the rows that find a partner are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa

from lakescope.array_types import I64, U64
from lakescope.engines.joins.answers import Described
from lakescope.errors import NotFound
from lakescope.tables.query import QueryColumn
from lakescope.tables.reading import opened
from lakescope.tables.typed import free_name, row_hashes, typed
from lakescope.values.canonical import Kind, decode
from lakescope.values.cells import Cells, understand
from lakescope.values.text import MISSING, TextColumn

#: How well kinds of values do as keys, and as something to explain. Not measured: guesses that a person may overrule.
_AS_KEY = {"text": 1.0, "date": 1.0, "code": 1.0, "integer": 0.8, "timestamp": 0.7}
_AS_TARGET = {"decimal": 1.0, "integer": 0.8}


@dataclass(frozen=True, slots=True)
class RowsTuning:
    """What is guessed of a table's columns, and how much of a join is made."""

    #: Weight as a key of a column of any other kind. Not measured.
    other_key: float = 0.1
    #: Weight as a target of a column of whole numbers that never repeat, or are years: an id, most likely. Not
    #: measured.
    id: float = 0.2
    #: Whole numbers that look like years. Not measured.
    years: tuple[int, int] = (1500, 2100)


ROWS = RowsTuning()


def head(query: Any, rows: int) -> pa.Table:
    """The first rows of a table, cells as they are written."""
    columns: dict[str, list[str | None]] = {}
    read = 0
    with opened(query) as batches:
        for batch in batches:
            for column in batch.columns:
                cells = columns.setdefault(column.name, [None] * read)
                cells += _cells(column, batch.fallback, rows - read)
            read = min(rows, read + batch.rows)
            for cells in columns.values():
                cells += [None] * (read - len(cells))
            if read >= rows:
                break
    return pa.table({name: pa.array(cells, pa.string()) for name, cells in columns.items()})


def _cells(column: TextColumn, fallback: str, most: int) -> list[str | None]:
    bounds = islice(zip(column.starts.tolist(), column.ends.tolist(), strict=True), most)
    return [None if end == MISSING else decode(column.data[start:end].tobytes(), fallback) for start, end in bounds]


def described(columns: Sequence[QueryColumn]) -> list[Described]:
    """The columns of a query, and which of them are guessed to be its key and its target."""
    key = max((each for each in columns if key_score(each) > 0), key=key_score, default=None)
    others = [each for each in columns if each is not key and target_score(each) > 0]
    target = max(others, key=target_score, default=None)
    return [
        Described(
            *(each.name, each.kind, each.rows, each.nulls, each.size, each.unique, _known(each), each.plausible),
            "key" if each is key else "target" if each is target else "",
        )
        for each in columns
    ]


def _known(column: QueryColumn) -> float:
    return column.known / column.size if column.size else 0.0


def key_score(column: QueryColumn) -> float:
    """How well a column would serve as the key; 0 if it would not."""
    if not column.plausible:
        return 0.0
    apart = column.size / max(1, column.rows - column.nulls)
    return _AS_KEY.get(column.kind, ROWS.other_key) * (0.1 + _known(column)) * (0.3 + 0.7 * apart)


def target_score(column: QueryColumn) -> float:
    """How well a column would serve as the number to explain; 0 if it would not."""
    score = _AS_TARGET.get(column.kind, 0.0) * (column.size > 2)
    if column.kind == "integer" and (column.unique or _are_years(column)):
        score *= ROWS.id
    return score * (0.5 + 0.5 * column.size / max(1, column.rows))


def _are_years(column: QueryColumn) -> bool:
    """Whether whole numbers look like years, which one explains by rather than explains."""
    whole = column.whole
    if whole is None or (isinstance(whole, np.ndarray) and not whole.size):
        return False
    low, high = (whole[0], whole[-1]) if isinstance(whole, np.ndarray) else (whole.low, whole.high)
    return bool(ROWS.years[0] <= low and high <= ROWS.years[1])


@dataclass(frozen=True, slots=True)
class JoinedRows:
    """A join: the table, how many of the query's rows found a partner, and whether it was cut.

    ``names`` are the columns of the other table, and what they are called in this one.
    """

    table: pa.Table
    query_rows: int
    matched: int
    cut: bool
    names: tuple[tuple[str, str], ...] = ()


def joined(
    query: Any, on: str, other: Any, column: str, name: str, *, query_rows: int | None = None, most: int
) -> JoinedRows:
    """All rows of the query (or the first ``query_rows``) beside the rows of another table with the same value.

    A row that finds several partners appears with each, one that finds none with empty cells; ``most`` rows are made.
    """
    mine, keys = _read_rows(query, on, None, query_rows)
    theirs, their_keys = _read_rows(other, column, np.unique(keys[keys > 0]), None)
    order = np.argsort(their_keys, kind="stable")
    sorted_keys = their_keys[order]
    begin = np.searchsorted(sorted_keys, keys, "left")
    count = np.where(keys > 0, np.searchsorted(sorted_keys, keys, "right") - begin, 0)
    width = np.maximum(count, 1)
    cut = int(width.sum()) > most
    left = np.repeat(np.arange(keys.size), width)[:most]
    within = (np.arange(int(width.sum())) - np.repeat(np.cumsum(width) - width, width))[:most]
    there = count[left] > 0
    places = np.where(there, begin[left] + within, 0)
    right = order[places] if order.size else places
    table = mine.take(pa.array(left))
    partners = pa.array(right, mask=~there)
    stem = PurePosixPath(name.partition("::")[0]).name.split(".")[0]
    names = []
    for each in theirs.column_names:
        free = each if each not in table.column_names else free_name(f"{stem}.{each}", table.column_names)
        table = table.append_column(free, theirs[each].take(partners))
        names.append((each, free))
    return JoinedRows(table, int(keys.size), int((count > 0).sum()), cut, tuple(names))


def _read_rows(query: Any, key: str, wanted: U64 | None, most: int | None) -> tuple[pa.Table, U64]:
    """Rows of a table with plain types, and the hash of the key of each: those of wanted keys, or the first ones."""
    texts: dict[str, list[str | None]] = {}
    kinds: dict[str, I64] = {}
    hashes: list[U64] = [np.empty(0, np.uint64)]
    rows = 0
    with opened(query) as batches:
        for batch in batches:
            cells = {each.name: understand(each, batch.fallback) for each in batch.columns}
            if key not in cells:
                if not rows:
                    raise NotFound.among("column", key, list(cells))
                keys = np.zeros(batch.rows, np.uint64)
            else:
                keys = row_hashes(cells[key])
            chosen = np.arange(batch.rows) if wanted is None else np.flatnonzero(np.isin(keys, wanted) & (keys > 0))
            chosen = chosen if most is None else chosen[: most - rows]
            for name, each in cells.items():
                column = texts.setdefault(name, [None] * rows)
                column += _written(each, chosen)
                places = each.places[chosen]
                counted = np.bincount(each.kinds[places[places >= 0]], minlength=len(Kind)).astype(np.int64)
                kinds[name] = kinds.get(name, np.zeros(len(Kind), np.int64)) + counted
            hashes.append(keys[chosen])
            rows += int(chosen.size)
            for column in texts.values():
                column += [None] * (rows - len(column))
            if most is not None and rows >= most:
                break
    return pa.table({name: typed(cells, kinds[name]) for name, cells in texts.items()}), np.concatenate(hashes)


def _written(cells: Cells, rows: I64) -> list[str | None]:
    """The cells of some rows as they are written, trimmed."""
    places = cells.places[rows]
    texts = {
        place: cells.written[cells.wstarts[place] : cells.wends[place]].tobytes().decode("utf-8", "replace")
        for place in np.unique(places[places >= 0]).tolist()
    }
    return [texts.get(place) for place in places.tolist()]
