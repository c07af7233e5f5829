"""Columns of the lake that a file of a visitor's holds already: a search with it leaves them out, and says so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Any

from lakescope.results import Results
from lakescope.show.text import shorten

if TYPE_CHECKING:
    from lakescope.engines.correlations.answers import Correlated
    from lakescope.engines.joins.answers import Joinable

#: Columns that are named of those left out, and finds that are asked for in their place at first.
_NAMED, _MORE = 4, 24
#: As plain data.
Told = Sequence[Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Held:
    """What was joined in: a column of a table, or all of them, by its key, which is in these columns of the file.

    Without a key the whole table is held: the file was made from it.
    """

    table: str
    key: str = ""
    column: str = ""
    by: tuple[str, ...] = ()

    @classmethod
    def of(cls, told: Told) -> list[Held]:
        """What was told as plain data."""
        return [cls(table, key, column, tuple(by)) for table, key, column, by in told]

    def told(self) -> list[Any]:
        """As plain data."""
        return list(astuple(self))

    def has_number(self, found: Correlated, by: Sequence[str]) -> bool:
        """Whether a column that correlates, joined by these columns of the file, is held."""
        if self.table != found.table:
            return False
        return not self.key or (self.key == found.key and self.column in ("", found.column) and {*self.by} == {*by})

    def has_join(self, found: Joinable) -> bool:
        """Whether joining again would add nothing: the rows that find a partner have it beside them."""
        if self.table != found.table:
            return False
        return not self.key or (not self.column and (self.key, self.by) == (found.column, (found.query_column,)))


def others(
    ask: Callable[[int | None], Results[Any]],
    k: int | None,
    held: Sequence[Held],
    is_held: Callable[[Held, Any], bool],
) -> Results[Any]:
    """The best ``k`` of an answer, or all of it, without what is held."""
    if not held:
        return ask(k)
    wanted = None if k is None else k + min(len(held), _MORE)
    while True:
        found = ask(wanted)
        left = [each for each in found if not any(is_held(some, each) for some in held)][:k]
        if k is None or wanted is None or len(left) == k or len(found) < wanted:
            break
        wanted *= 2
    # What comes after the last that is told would not have been told either.
    before = list(found)[: found.index(left[-1])] if left and len(left) == k else list(found)
    passed = [each for each in before if each not in left]
    answer = Results(found.kind, left, shown=found.shown, notes=found.notes, info=found.info)
    return answer.with_note(_said(passed)) if passed else answer


def _said(held: Sequence[Any]) -> str:
    """What is left out."""
    names = list(dict.fromkeys(f"{each.column} of {each.table}" for each in held))
    named = ", ".join(shorten(name, 80) for name in names[:_NAMED])
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return f"left out, because your table has it already: {named}{more}"
