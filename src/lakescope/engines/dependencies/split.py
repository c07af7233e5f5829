"""What to split off: columns that a left side determines belong into a table of their own, with it as the key.

Where `zip -> city, state` holds, city and state are written once for every row instead of once for every zip code.
Splitting them off saves cells, and makes contradictions impossible: the third normal form, one step at a time, the step
that saves most first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lakescope.engines.dependencies.answers import Dependency, Nulls, Split
from lakescope.engines.dependencies.find import dependencies
from lakescope.engines.dependencies.scores import Scorer
from lakescope.engines.dependencies.table import CodedTable, read
from lakescope.results import Results

#: How much a dependency must tell for columns to be split off by it.
TELLING = 0.5


def splits(
    query: Any,
    nulls: Nulls = "equal",
    max_lhs: int | None = 3,
    *,
    error: float = 0.0,
    missing: Sequence[str] = (),
    budget: float | None = 60.0,
    name: str = "this_table",
) -> Results[Split]:
    """Which columns of a table to split off; ``name`` is what the table is called in the SQL."""
    table = read(query, missing, texts=True)
    found = dependencies(table, nulls, max_lhs, error=error, scored=0, budget=budget)
    telling = [each for each in found if not each.flags and (each.score or 0.0) >= TELLING]
    records = _Splitter(table, Scorer(table.under(nulls)), telling, name).run()
    notes = [note for note in found.notes if "not complete" in note or "missing values" in note]
    return Results(Split, records, shown=("key", "columns", "rows", "saved", "conflicts", "within"), notes=notes)


class _Splitter:
    def __init__(self, table: CodedTable, scorer: Scorer, telling: list[Dependency], name: str) -> None:
        self.table, self.scorer, self.name = table, scorer, name
        self.determined: dict[tuple[str, ...], set[str]] = {}
        for each in telling:
            self.determined.setdefault(each.lhs, set()).add(each.rhs)
        # Where each column lies: in the table itself, or in the one that was split off with this key.
        self.home: dict[str, tuple[str, ...]] = dict.fromkeys(table.names, ())
        self.rows: dict[tuple[str, ...], int] = {(): table.rows}

    def run(self) -> list[Split]:
        found: list[Split] = []
        while best := max(self._possible(), key=lambda each: (each.saved, each.key), default=None):
            found.append(best)
            self.rows[best.key] = best.rows
            for column in best.columns:
                self.home[column] = best.key
            self.determined.pop(best.key)
        return found

    def _possible(self) -> list[Split]:
        """Splits that would save something."""
        made = []
        for key, columns in self.determined.items():
            within = self._shared_home(key)
            movable = [name for name in self.table.names if name in columns and self.home[name] == within]
            if within is None or not movable:
                continue
            rows = self.scorer.partition([self.table.names.index(each) for each in key]).groups
            saved = self.rows[within] * len(movable) - rows * (len(movable) + len(key))
            if saved > 0:
                made.append(self._split(key, movable, rows, saved, within))
        return made

    def _shared_home(self, key: tuple[str, ...]) -> tuple[str, ...] | None:
        """The table that all columns of a key lie in, if it is one."""
        homes = {self.home[each] for each in key}
        return homes.pop() if len(homes) == 1 else None

    def _split(self, key: tuple[str, ...], columns: list[str], rows: int, saved: int, within: tuple[str, ...]) -> Split:
        places = [self.table.names.index(each) for each in key]
        degrees = [self.scorer.score(places, self.table.names.index(each)).degree for each in columns]
        return Split(key, tuple(columns), rows, saved, max(degrees), within, self._sql(key, columns, within))

    def _sql(self, key: tuple[str, ...], columns: list[str], within: tuple[str, ...]) -> str:
        source = _quoted("_".join((self.name, *within)))
        made = _quoted("_".join((self.name, *key)))
        chosen = ", ".join(map(_quoted, (*key, *columns)))
        dropped = "; ".join(f"ALTER TABLE {source} DROP COLUMN {_quoted(each)}" for each in columns)
        return f"CREATE TABLE {made} AS SELECT DISTINCT {chosen} FROM {source}; {dropped};"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
