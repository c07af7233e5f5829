"""Names of columns and tables: none blank, no two alike, and not too many of them."""

from __future__ import annotations

from lakescope.errors import SourceError

#: Columns of one table. The states of a column take 12 to 40 KB while its table is scanned: this many, up to 800 MB.
MOST_COLUMNS = 20_000


def unique_names(names: list[str], mark: str = "_") -> tuple[list[str], int]:
    """Give blank columns a name and duplicate names a number behind a mark; also how many were changed."""
    taken: set[str] = set()
    numbers: dict[str, int] = {}
    given = {name for name in names if name}
    result: list[str] = []
    changed = 0
    for position, name in enumerate(names, start=1):
        wanted = name or f"column_{position}"
        unique = wanted
        while unique in taken or (unique != name and unique in given):
            numbers[wanted] = numbers.get(wanted, 1) + 1
            unique = f"{wanted}{mark}{numbers[wanted]}"
        changed += unique != name
        taken.add(unique)
        result.append(unique)
    return result, changed


def check_width(table: str, columns: int) -> None:
    """Refuse a table that is too wide to be scanned."""
    if columns > MOST_COLUMNS:
        raise SourceError(
            f"{table} has more than {MOST_COLUMNS} columns: what is spread over columns seems to be data",
            hint="turn the columns into rows",
            code="too-many-columns",
        )
