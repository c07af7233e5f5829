"""What a diagram shows: tables with their columns, and the foreign keys between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_TYPES = frozenset("boolean code date datetime decimal integer mixed null text time timestamp".split())


@dataclass(frozen=True, slots=True)
class Column:
    """A column: whether it is part of the primary key, and of a foreign key."""

    name: str
    type: str
    key: bool
    foreign: bool


@dataclass(frozen=True, slots=True)
class Box:
    """A table."""

    table: str
    columns: tuple[Column, ...]
    rows: int
    #: Why its key cannot be declared as it is, if it cannot.
    doubt: str = ""


@dataclass(frozen=True, slots=True)
class Edge:
    """A foreign key: the share of the child's values that the parent holds, and examples of those it does not."""

    child_table: str
    child_columns: tuple[str, ...]
    parent_table: str
    parent_columns: tuple[str, ...]
    inclusion: float
    verified: bool
    orphans: tuple[str, ...]


def edges_between(boxes: Sequence[Box], edges: Sequence[Edge]) -> list[Edge]:
    """The edges whose tables are both there."""
    tables = {box.table for box in boxes}
    return [edge for edge in edges if edge.child_table in tables and edge.parent_table in tables]


def type_word(column: Column) -> str:
    """The type of a column as a word of ours; text for any other."""
    return column.type if column.type in _TYPES else "text"
