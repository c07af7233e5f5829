"""A table and a column in one word, as the command line lets one write it: ``shop/orders.csv.customer_id``."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from lakescope.questions.model import Request, options_of


def of_column(lake: Any, asked: Any) -> Any:
    """A question about ``TABLE.COLUMN`` as one about a table and a column; any other as it is."""
    kind: type[Request[Any]] = type(asked)
    if not kind.about.column:
        return asked
    values = {name: getattr(asked, name) for name in ("query", kind.about.column)}
    found = with_column(kind, values, lake._catalog.names)
    return asked if found == values else replace(asked, **found)


def with_column(kind: type[Request[Any]], values: dict[str, Any], tables: Collection[str]) -> dict[str, Any]:
    """Values of options, of which a query ``TABLE.COLUMN`` becomes a table and a column, unless one is named."""
    option = kind.about.column
    if not option or values[option] is not None:
        return values
    query, column = split(values["query"], set(tables), of_lake=kind.about.indexed)
    if column is None:
        return values
    several = options_of(kind, "cli")[option].type is tuple
    return {**values, "query": query, option: (column,) if several else column}


def split(query: str, tables: Collection[str], *, of_lake: bool = False) -> tuple[str, str | None]:
    """A table and the column that is named with it: after a dot or a colon; None if there is none.

    What is a table as it stands has none. A table is one of the lake, or a file; of what only another system can tell,
    such as a URI, it is what stands before the last colon.
    """
    if query in tables or Path(query).exists():
        return query, None
    for place in range(len(query) - 1, 0, -1):
        if query[place] in ".:" and query[place + 1 :]:
            table = query[:place]
            if table in tables or Path(table).is_file():
                return table, query[place + 1 :]
    location, colon, column = query.rpartition(":")
    if of_lake or not colon or not column or "/" in column or location.endswith(":"):
        return query, None
    return location, column
