"""What readers of databases share: names in SQL, and limited patience with views.

A table ends where its file ends. A view may be recursive or a product of tables and never end, and whoever made the
database is not trusted: a view that takes too long is given up, with the rows it gave until then.
"""

from __future__ import annotations

from lakescope.errors import SourceError

#: Seconds until a view is given up.
VIEW_SECONDS = 600.0


def quoted(name: str) -> str:
    """A name as it is written in SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text as it is written in SQL."""
    return "'" + text.replace("'", "''") + "'"


def given_up(table: str, limit: str = "") -> SourceError:
    """The error for a view that went beyond a limit, that of time if no other is named."""
    return SourceError(
        f"{table} was given up: it is a view that takes more than {limit or f'{VIEW_SECONDS:g} seconds'}",
        hint="the rows before are kept; store the view as a table to index all of it",
        code="costly-view",
    )
