"""A query column: distinct values ready to be looked up, and what it takes to judge and show what they match.

A query is a column of a table of the user's (see ``reading``), or one of the lake, which the index knows already.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from lakescope.array_types import F64, I32, I64, U32
from lakescope.store.inverted import QueryGroups
from lakescope.tables.value_range import ValueRange
from lakescope.values.hashing import hash_text

if TYPE_CHECKING:
    from lakescope.engines.joins.inverted import InvertedIndex, TokenLookup

#: Kinds of values that join by accident at best.
_MEASURES = ("decimal",)


@dataclass(frozen=True, slots=True)
class QueryTuning:
    """Which columns are worth joining on, and by what they are judged."""

    #: A column of fewer different values is no key to anything. Not measured.
    fewest: int = 3
    #: Share of its values that must be of a column's type to be judged by it. Not measured.
    mostly: float = 0.9


QUERIES = QueryTuning()


#: Some values of a column, and these to ask which sets hold them.
Sample: TypeAlias = "tuple[list[str], TokenLookup]"


@dataclass(slots=True)
class QueryColumn:
    """One column of a query.

    ``groups`` is the column as the inverted index sees it, with the rows of each group in ``group_rows`` if they are
    known. ``whole`` are its whole numbers or days, sorted, or the range they fill. ``popularity`` says how many columns
    of the lake hold its values, and how many of these are held by so many. ``sample`` tells some of its values, and
    ``sign`` makes its MinHash signature: few searches need them. ``number`` is there if it is a column of the lake.
    """

    name: str
    kind: str
    rows: int
    nulls: int
    groups: QueryGroups
    group_rows: I64 | None
    whole: F64 | ValueRange | None
    popularity: tuple[I32, I32]
    sample: Callable[[], Sample]
    sign: Callable[[], U32]
    number: int | None = None

    @property
    def signature(self) -> U32:
        """Its MinHash signature."""
        return self.sign()

    @property
    def size(self) -> int:
        """Number of distinct values."""
        return self.groups.size

    @property
    def known(self) -> int:
        """Number of distinct values that some column of the lake holds."""
        return int(self.popularity[1].sum())

    @property
    def unique(self) -> bool:
        """Whether no value repeats."""
        return self.size == self.rows - self.nulls

    @property
    def plausible(self) -> bool:
        """Whether it makes sense to join on it."""
        return is_plausible(self.size, self.kind)


def is_plausible(size: int, kind: str) -> bool:
    """Whether it makes sense to join on a column of so many values of a kind: some, and no measurements."""
    return size >= QUERIES.fewest and kind not in _MEASURES


def lake_column(
    index: InvertedIndex, number: int, record: dict[str, Any], values: Callable[[], list[str]], sign: Callable[[], U32]
) -> QueryColumn:
    """A column of the lake as a query: its catalog record, and what tells some of its values."""
    groups = index.query_of_set(number)

    @cache
    def sample() -> Sample:
        texts = list(dict.fromkeys(values()))
        return texts, index.token_lookup(np.array([max(1, hash_text(text)) for text in texts], np.uint64))

    return QueryColumn(
        *(record["column"], record["type"], record["rows"], record["nulls"], groups, None),
        *(range_of(record, groups.size), index.popularity(groups), sample, sign, number),
    )


def range_of(record: dict[str, Any], distinct: int) -> ValueRange | None:
    """The whole numbers or days that a column of the lake fills; None for other kinds."""
    low, high = record["minimum"], record["maximum"]
    if record["type_share"] < QUERIES.mostly or low is None or high is None:
        return None
    try:
        # Among decimals whole numbers are no rarer than elsewhere: as if all of them were.
        if record["type"] in ("integer", "decimal"):
            cuts = tuple(record.get("quantiles") or ())
            return ValueRange(float(low), float(high), distinct, True, cuts if np.isfinite(cuts).all() else ())
        if record["type"] == "date":
            begin, end = (np.datetime64(text, "D").astype(int) for text in (low, high))
            return ValueRange(float(begin), float(end), distinct)
    except ValueError:
        return None
    return None
