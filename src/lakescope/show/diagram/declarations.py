"""A schema as SQL: statements that declare its keys, and queries for the values that no key holds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from lakescope.show.diagram.schema import Box, Edge, edges_between
from lakescope.show.text import percent


def _commented(doubt: str, statement: str) -> str:
    """A statement, or a comment of it; a name may hold line ends."""
    return doubt + statement.replace("\n", "\n-- ") if doubt else statement


def sql(boxes: Sequence[Box], edges: Sequence[Edge]) -> str:
    """The schema's keys as SQL; what cannot be declared is a comment, for orphans with a query that lists them."""
    edges = edges_between(boxes, edges)
    keys = {box.table: tuple(column.name for column in box.columns if column.key) for box in boxes}
    doubts = {box.table: f"-- {box.doubt}: " if box.doubt else "" for box in boxes}
    statements = [
        _commented(doubts[table], f"ALTER TABLE {_identifier(table)} ADD PRIMARY KEY ({_identifiers(key)});")
        for table, key in keys.items()
        if key
    ]
    whole = [edge for edge in edges if edge.inclusion >= 1]
    referred = {(edge.parent_table, edge.parent_columns): None for edge in whole}
    statements += [
        f"ALTER TABLE {_identifier(table)} ADD UNIQUE ({_identifiers(columns)});"
        for table, columns in referred
        if set(columns) != set(keys[table])
    ]
    statements += [_foreign_key(edge) + ("" if edge.verified else "  -- inferred, not verified") for edge in whole]
    statements += [_orphans(edge) for edge in edges if edge.inclusion < 1]
    return "".join(statement + "\n" for statement in statements)


#: No SQL text holds a NUL, and no UTF-8 a lone surrogate (which names of files may).
_UNWRITABLE = re.compile("[\0\ud800-\udfff]")


def _identifier(name: str) -> str:
    return '"' + _UNWRITABLE.sub("\N{REPLACEMENT CHARACTER}", name).replace('"', '""') + '"'


def _identifiers(names: Iterable[str]) -> str:
    return ", ".join(_identifier(name) for name in names)


def _foreign_key(edge: Edge) -> str:
    return (
        f"ALTER TABLE {_identifier(edge.child_table)} ADD FOREIGN KEY ({_identifiers(edge.child_columns)}) "
        f"REFERENCES {_identifier(edge.parent_table)} ({_identifiers(edge.parent_columns)});"
    )


def _orphans(edge: Edge) -> str:
    """A foreign key that does not hold, and the query for the values it fails on, both commented out.

    Each line of the comment starts with the dashes, those within a name too: taking them off gives the statement back.
    """
    mine = [f"c.{_identifier(name)}" for name in edge.child_columns]
    theirs = [f"p.{_identifier(name)}" for name in edge.parent_columns]
    on = " AND ".join(f"{one} = {other}" for one, other in zip(mine, theirs, strict=True))
    there = " AND ".join(f"{one} IS NOT NULL" for one in mine)
    text = (
        f"{percent(edge.inclusion)} only: {_foreign_key(edge)}\n"
        f"SELECT DISTINCT {', '.join(mine)} FROM {_identifier(edge.child_table)} AS c "
        f"LEFT JOIN {_identifier(edge.parent_table)} AS p ON {on} WHERE {theirs[0]} IS NULL AND {there};"
    )
    return "".join("-- " + line for line in text.splitlines(keepends=True))
