"""The catalog of a lake as pages need it: counted once, searched by name, filtered and sorted without being copied."""

from __future__ import annotations

import bisect
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, lru_cache
from typing import Any, Literal

import numpy as np

from lakescope.array_types import I64
from lakescope.lake import Lake
from lakescope.store.records import records_of
from lakescope.store.segment import chosen

Record = dict[str, Any]
Sort = Literal["name", "rows", "bytes", "columns", "problems"]
SORTS: tuple[Sort, ...] = ("name", "rows", "bytes", "columns", "problems")

#: Stands between names that are searched as one text; no name of a table holds it.
_BETWEEN = "\0"
#: Choices of facets whose counts are kept.
_KEPT = 256
#: Values of a facet that are told; codes of problems.
_FACETS, _CODES = 100, 12
#: Share of all tables from which on a column's name says nothing about which are alike.
_COMMON = 0.2
#: Likeness up to which tables are not alike.
_UNLIKE = 0.1


class Names:
    """Names that are searched for a part of them, in any case."""

    def __init__(self, names: list[str]) -> None:
        folded = [name.replace(_BETWEEN, " ").lower() for name in names]
        self._text = _BETWEEN.join(folded)
        self._starts = [0, *np.cumsum([len(name) + 1 for name in folded]).tolist()] if names else [0]

    def holding(self, part: str) -> Iterator[int]:
        """Numbers of the names that hold a part, in order."""
        part = part.replace(_BETWEEN, " ").lower()
        at = self._text.find(part)
        while at >= 0 and part:
            number = bisect.bisect_right(self._starts, at) - 1
            yield number
            at = self._text.find(part, self._starts[number + 1])


class Catalog:
    """Tables and columns of one opened index."""

    def __init__(self, lake: Lake) -> None:
        self._tables = lake.tables()
        self._columns = lake.columns(fields=["table", "column", "type", "rows", "nulls", "distinct", "distinct_exact"])
        self._problems = lake.problems()
        self.info = lake.info()

    def warm(self) -> None:
        """Make once what questions need: many that come at the same time would each make it for themselves."""
        _ = self.overview, self._table_names, self._column_names, self._types, self._sizes, self._formats, self._weights

    @cached_property
    def tables(self) -> list[str]:
        """Names of the tables, in order."""
        return list(self._tables["table"].to_pylist())

    def holds(self, table: str) -> bool:
        """Whether there is a table of this name."""
        place = bisect.bisect_left(self.tables, table)
        return place < len(self.tables) and self.tables[place] == table

    @cached_property
    def _folders(self) -> list[str]:
        return [name.rpartition("/")[0].partition("/")[0] for name in self.tables]

    @cached_property
    def _formats(self) -> list[str]:
        return list(self._tables["format"].to_pylist())

    @cached_property
    def _sizes(self) -> dict[str, I64]:
        return {
            name: np.array(self._tables[name].to_pylist(), np.int64)
            for name in ("rows", "bytes", "columns", "problems")
        }

    @cached_property
    def _table_names(self) -> Names:
        return Names(self.tables)

    @cached_property
    def _column_names(self) -> Names:
        return Names(self._columns["column"].to_pylist())

    @cached_property
    def _types(self) -> list[str]:
        return list(self._columns["type"].to_pylist())

    @cached_property
    def _owners(self) -> list[str]:
        return list(self._columns["table"].to_pylist())

    @cached_property
    def _number_columns(self) -> set[str]:
        columns = zip(self._owners, self._columns["column"].to_pylist(), self._types, strict=True)
        return {f"{owner}.{column}" for owner, column, kind in columns if kind in ("integer", "decimal")}

    def joins_numbers(self, join: str) -> bool:
        """Whether a join of a path (``TABLE.COLUMN = TABLE.COLUMN``) is of columns of numbers."""
        parts = join.split(" = ")
        sides = ((" = ".join(parts[:at]), " = ".join(parts[at:])) for at in range(1, len(parts)))
        return any(left in self._number_columns and right in self._number_columns for left, right in sides)

    @cached_property
    def overview(self) -> Record:
        """The lake at a glance: sizes, facets, how tables are distributed, what is wrong."""
        severity = Counter(self._problems["severity"].to_pylist())
        codes: Counter[tuple[str, str]] = Counter(
            zip(self._problems["severity"].to_pylist(), self._problems["code"].to_pylist(), strict=True)
        )
        info = {name: value for name, value in self.info.items() if name not in ("path", "sources")}
        facets = {
            "format": Counter(self._formats),
            "folder": Counter(folder or "." for folder in self._folders),
            "type": Counter(kind for _, kind in set(zip(self._owners, self._types, strict=True))),
        }
        return {
            **info,
            "facets": {name: _counted(counter) for name, counter in facets.items()},
            "facets_left_off": {name: max(0, len(counter) - _FACETS) for name, counter in facets.items()},
            "distribution": self._distribution(),
            "severities": {name: severity[name] for name in ("error", "warning", "info")},
            "codes": [
                {"severity": kind, "code": code, "count": count} for (kind, code), count in codes.most_common(_CODES)
            ],
        }

    def _distribution(self) -> list[Record]:
        """How many tables have how many rows, by powers of ten."""
        powers = np.floor(np.log10(np.maximum(1, self._sizes["rows"]))).astype(int)
        top = int(powers.max(initial=0))
        return [
            {"low": 0 if power == 0 else 10**power, "high": 10 ** (power + 1), "tables": int((powers == power).sum())}
            for power in range(top + 1)
        ]

    def select(
        self,
        *,
        like: str = "",
        format: str = "",
        folder: str = "",
        type: str = "",
        problems: bool = False,
        sort: Sort = "name",
        limit: int = 50,
        offset: int = 0,
    ) -> tuple[list[Record], int]:
        """A page of the tables that fit, and how many fit."""
        numbers = self._fitting(like=like, format=format, folder=folder, type=type, problems=problems)
        if sort != "name":
            numbers = numbers[np.argsort(-self._sizes[sort][numbers], kind="stable")]
        page = numbers[offset : offset + limit].tolist()
        return [_table_record(record) for record in records_of(chosen(self._tables, page))], int(numbers.size)

    def facets(self, **wanted: Any) -> Record:
        """Values of each facet among the tables that fit what is wanted of the others, with how many have each."""
        return self._facets(tuple(sorted((name, value) for name, value in wanted.items() if value)))

    @cached_property
    def _facets(self) -> Callable[[tuple[tuple[str, Any], ...]], Record]:
        """What :meth:`facets` told lately, and what tells more."""
        return lru_cache(_KEPT)(lambda wanted: self._count_facets(dict(wanted)))

    def _count_facets(self, wanted: Record) -> Record:
        values: dict[str, Callable[[int], Iterable[str]]] = {
            "format": lambda number: (self._formats[number],),
            "folder": lambda number: (self._folders[number] or ".",),
            "type": lambda number: self._types_of_tables[number],
        }
        counters = {}
        for facet, of_table in values.items():
            others = {name: value for name, value in wanted.items() if name != facet}
            counters[facet] = Counter(
                value for number in self._fitting(**others).tolist() for value in of_table(number)
            )
        others = {name: value for name, value in wanted.items() if name != "problems"}
        return {
            "facets": {name: _counted(counter) for name, counter in counters.items()},
            "facets_left_off": {name: max(0, len(counter) - _FACETS) for name, counter in counters.items()},
            "with_problems": int(self._fitting(**others, problems=True).size),
        }

    @cached_property
    def _types_of_tables(self) -> list[set[str]]:
        """The types that columns of each table have."""
        number = {name: place for place, name in enumerate(self.tables)}
        types: list[set[str]] = [set() for _ in self.tables]
        for owner, kind in zip(self._owners, self._types, strict=True):
            types[number[owner]].add(kind)
        return types

    def _fitting(
        self, *, like: str = "", format: str = "", folder: str = "", type: str = "", problems: bool = False
    ) -> I64:
        """Numbers of the tables that fit."""
        numbers = np.array(list(self._table_names.holding(like)) if like else range(len(self.tables)), np.int64)
        if format:
            numbers = numbers[[self._formats[number] == format for number in numbers.tolist()]]
        if folder:
            numbers = numbers[[(self._folders[number] or ".") == folder for number in numbers.tolist()]]
        if type:
            numbers = numbers[[type in self._types_of_tables[number] for number in numbers.tolist()]]
        if problems:
            numbers = numbers[self._sizes["problems"][numbers] > 0]
        return numbers

    def select_columns(
        self, *, like: str = "", type: str = "", limit: int = 50, offset: int = 0
    ) -> tuple[list[Record], int]:
        """A page of the columns that fit, and how many fit."""
        found: list[int] | range = list(self._column_names.holding(like)) if like else range(len(self._types))
        if type:
            found = [number for number in found if self._types[number] == type]
        return records_of(chosen(self._columns, found[offset : offset + limit])), len(found)

    def select_problems(self, severity: str = "", limit: int = 50, offset: int = 0) -> tuple[list[Record], int]:
        """A page of the problems, the worst first."""
        order = {"error": 0, "warning": 1, "info": 2}
        kinds = self._problems["severity"].to_pylist()
        numbers = [number for number, kind in enumerate(kinds) if severity in ("", kind)]
        numbers.sort(key=lambda number: order[kinds[number]])
        return records_of(chosen(self._problems, numbers[offset : offset + limit])), len(numbers)

    @cached_property
    def _names_of(self) -> tuple[dict[str, list[int]], list[list[str]]]:
        """The tables that have a column of a name, and the names of each table's columns."""
        number = {name: place for place, name in enumerate(self.tables)}
        tables: dict[str, list[int]] = {}
        columns: list[list[str]] = [[] for _ in self.tables]
        for owner, column in zip(self._owners, self._columns["column"].to_pylist(), strict=True):
            name = column.strip().lower()
            tables.setdefault(name, []).append(number[owner])
            columns[number[owner]].append(name)
        return tables, columns

    @cached_property
    def _weights(self) -> tuple[dict[str, float], list[float]]:
        """What a name of a column says about which tables are alike, and the sum of it for each table."""
        tables, columns = self._names_of
        count = len(self.tables)
        weights = {
            name: math.log(count / len(some)) for name, some in tables.items() if len(some) <= max(3, _COMMON * count)
        }
        return weights, [sum(weights.get(name, 0.0) for name in set(names)) for names in columns]

    def like(self, table: str, most: int = 8) -> list[Record]:
        """Tables whose columns are called the same: names count the more, the fewer tables have them."""
        tables, columns = self._names_of
        weights, sums = self._weights
        mine = bisect.bisect_left(self.tables, table)
        shared: dict[int, set[str]] = {}
        for name in set(columns[mine]) & weights.keys():
            for other in tables[name]:
                shared.setdefault(other, set()).add(name)
        shared.pop(mine, None)
        scores = {
            other: sum(weights[name] for name in names) / max(1e-9, sums[mine], sums[other])
            for other, names in shared.items()
        }
        best = sorted(scores, key=lambda other: (-scores[other], other))[:most]
        return [
            {"table": self.tables[other], "likeness": round(scores[other], 4), "shared": sorted(shared[other])}
            for other in best
            if scores[other] > _UNLIKE
        ]


def _counted(counter: Counter[str]) -> list[Record]:
    return [{"value": value, "count": count} for value, count in counter.most_common(_FACETS)]


def _table_record(record: Record) -> Record:
    """A table without where it lies."""
    return {name: value for name, value in record.items() if name not in ("uri", "id", "units")}
