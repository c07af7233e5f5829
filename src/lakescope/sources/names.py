"""Names of columns and tables: none blank, no two alike, not too many of them, and which of them mean nothing."""

from __future__ import annotations

import re
from functools import lru_cache

from lakescope.errors import SourceError

#: Columns of one table. The states of a column take 12 to 40 KB while its table is scanned: this many, up to 800 MB.
MOST_COLUMNS = 20_000

#: What tools call columns that have no name: pandas, Spark, R, SAS, spreadsheets, this package.
_GENERIC = re.compile(
    r"""(unnamed|untitled|no\ name|column|col|field|attribute|attr|att|variable|var|feature|feat|header|item|value|data)
        [\s_:.\-\#]*\d*(_level_\d+)?(_\d+)?
      | _c\d+ | _col\d+ | [cfvx]_?\d+ | \.\.\.\d+ | \(no\ column\ name\) | expr\d+ | exp_\d+ | \?column\?""",
    re.VERBOSE,
)
#: Words that by themselves name a column although a number behind them would not.
_NAMES_ALONE = {"value", "item", "data", "feature", "attribute", "variable", "field", "column", "header"}
_NOTHING = {"", "-", "--", "—", "–", "?", "n/a", "na", "nan", "null", "none", "nil", "undefined", "_", ".", "x"}


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


@lru_cache(maxsize=1 << 16)
def meaningless(header: str) -> bool:
    """Whether a header says nothing about its column: blank, a placeholder, or numbered by some tool."""
    text = " ".join(header.split()).lower()
    if text in _NOTHING:
        return True
    return text not in _NAMES_ALONE and _GENERIC.fullmatch(text) is not None
