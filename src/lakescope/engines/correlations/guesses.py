"""Guessing the key and the target of a query: only what a search would take, by the rules by which it refuses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from lakescope.engines.correlations.keysketches import KeySketches
from lakescope.engines.joins.answers import Described
from lakescope.engines.joins.joined import described, key_score, target_score
from lakescope.errors import LakescopeError
from lakescope.tables.keyed import check_columns
from lakescope.tables.query import QueryColumn
from lakescope.tables.reading import batches_of
from lakescope.values.cells import kind_counts, understand

#: The numbers that a search by a key would take as its target; None if it would not take the key.
Taken = Callable[[str], set[str] | None]


def guessed(columns: Sequence[QueryColumn], taken: Taken) -> list[Described]:
    """The columns of a query, with the best key and the best number that a search takes.

    Without a key that goes with numbers it is the one that is best to join on.
    """
    keys = [each for each in columns if key_score(each) > 0]
    numbers = {each.name: taken(each.name) for each in keys}
    key = max([each for each in keys if numbers[each.name] is not None] or keys, key=key_score, default=None)
    beside = (numbers[key.name] if key is not None else None) or set[str]()
    others = [each for each in columns if each is not key and each.name in beside and target_score(each) > 0]
    target = max(others, key=target_score, default=None)
    return [
        replace(each, known=_known(column), role="key" if column is key else "target" if column is target else "")
        for each, column in zip(described(columns), columns, strict=True)
    ]


def _known(column: QueryColumn) -> float:
    """The share of the values that another column of the lake holds."""
    least = 1 if column.number is None else 2  # a column of the lake holds its own
    frequencies, counts = column.popularity
    return float(counts[frequencies >= least].sum() / column.size) if column.size else 0.0


def taken_of_table(sketches: KeySketches, table: str) -> Taken:
    """What a search with a table of the lake takes: the keys that were sketched, with the numbers beside each."""
    numbers = {}
    for each in sketches.keys_of_table.get(table, []):
        if len(sketches.columns[each]) == 1:
            pairs = range(int(sketches.pair_starts[each]), int(sketches.pair_starts[each + 1]))
            numbers[sketches.columns[each][0]] = {str(sketches.pair(pair)["column"]) for pair in pairs}
    return numbers.get


def taken_of_file(query: Any) -> Taken:
    """What a search with another table takes: columns that are mostly numbers, by any key."""
    seen: dict[str, Any] = {}
    for batch in batches_of(query):
        for column in batch.columns:
            cells = understand(column, batch.fallback)
            seen[column.name] = seen.get(column.name, 0) + kind_counts(cells)

    def takes(key: Sequence[str], target: str) -> bool:
        try:
            check_columns(key, target, (), seen)
        except LakescopeError:
            return False
        return True

    numbers = {name for name in seen if takes((), name)}
    return lambda key: {name for name in numbers if name != key and takes((key,), name)} or None
