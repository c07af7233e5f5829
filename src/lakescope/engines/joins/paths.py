"""Join paths: which tables can be reached from mine, join after join (Figure 1.3 of the thesis)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lakescope.engines.joins.answers import Joinable, JoinPath
from lakescope.engines.joins.joinable import JoinCriteria, JoinSearch
from lakescope.engines.joins.significance import SIGNIFICANCE
from lakescope.errors import BadRequest
from lakescope.results import Results
from lakescope.tables.key_names import same_key
from lakescope.tables.query import QueryColumn


@dataclass(frozen=True, slots=True)
class PathTuning:
    """How broadly joins are followed."""

    #: Best joins that are followed from each column. Not measured: a bound of time, which grows by it with each join.
    width: int = 20


PATHS = PathTuning()


def join_paths(
    search: JoinSearch, table: str, columns: list[QueryColumn], depth: int, least: float
) -> Results[JoinPath]:
    """The best path to every table that can be reached in at most ``depth`` joins of at least this containment.

    Fewer joins are better, then a larger containment. Joins that chance explains are not followed, unless names say
    that both columns are keys of the same thing.
    """
    found: dict[str, JoinPath] = {table: JoinPath(table, 0, 1.0, ())}
    edge = [(found[table], columns)]
    chance: set[str] = set()
    for hops in range(1, depth + 1):
        reached: dict[str, JoinPath] = {}
        for path, starts in edge:
            for step in _steps(search, path, starts, least, chance):
                known = reached.get(step.table)
                if step.table not in found and (known is None or step.containment > known.containment):
                    reached[step.table] = step
        found |= reached
        if hops < depth:
            edge = [(path, _columns(search, path.table)) for path in reached.values()]
    del found[table]
    paths = sorted(found.values(), key=lambda path: (path.hops, -path.containment, path.table))
    left = len(chance - found.keys())
    notes = [f"not followed: joins that chance explains, to {left:,} more tables"] if left else []
    return Results(JoinPath, paths, notes=notes)


def _columns(search: JoinSearch, table: str) -> list[QueryColumn]:
    columns = [search.lake_column(number) for number in search.columns_of(table)]
    return [column for column in columns if column.plausible]


def _steps(
    search: JoinSearch, path: JoinPath, columns: list[QueryColumn], least: float, chance: set[str]
) -> Iterator[JoinPath]:
    """The joins from a table that are worth following; notes tables that only chance leads to."""
    own = search.columns_of(path.table) if path.hops or columns[0].number is not None else range(0)
    for column in columns:
        for hit in search.search(column, JoinCriteria(PATHS.width), own):
            if hit.containment < least:
                continue
            if hit.p <= SIGNIFICANCE.level or same_key(column.name, hit.column):
                yield _longer(path, column, hit)
            else:
                chance.add(hit.table)


def _longer(path: JoinPath, column: QueryColumn, hit: Joinable) -> JoinPath:
    join = f"{path.table}.{column.name} = {hit.table}.{hit.column}"
    return JoinPath(hit.table, path.hops + 1, path.containment * hit.containment, (*path.joins, join))


def split_join(join: str, table: str, has: Callable[[str, str], bool]) -> tuple[str, tuple[str, str]]:
    """A join of a path as the column of its first table, and the other table and column that ``has`` knows.

    Names may hold all that stands between them: what the lake knows decides.
    """
    for place in (place for place in range(len(table) + 1, len(join)) if join.startswith(" = ", place)):
        left, right = join[len(table) + 1 : place], join[place + 3 :]
        for dot in (dot for dot in range(len(right) - 1, 0, -1) if right[dot] == "."):
            if has(right[:dot], right[dot + 1 :]):
                return left, (right[:dot], right[dot + 1 :])
    raise BadRequest(f"no join of this lake: {join!r}", hint="give a path as join_paths tells it")
