"""The catalog of an index: its tables, columns and problems, searched by name, filtered, sorted and counted.

What is counted or put together for it is kept, since an index does not change: a server asks again and again.
"""

from __future__ import annotations

import bisect
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from sys import intern
from typing import Any

import numpy as np
import pyarrow as pa

from lakescope.array_types import I64
from lakescope.errors import NotFound
from lakescope.once import once
from lakescope.store.index import Index
from lakescope.store.segment import COLUMN_SCHEMA, chosen

Record = dict[str, Any]

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
#: How bad problems are, the worst first.
_SEVERITIES = {"error": 0, "warning": 1, "info": 2}


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
    """Tables, columns and problems of one index."""

    def __init__(self, index: Index) -> None:
        self._index = index

    def warm(self) -> None:
        """Make once what questions need: many that come at the same time would have to wait for it."""
        _ = self.counts, self._table_names, self._column_names, self._types, self._sizes, self._formats, self._weights

    # --- tables -------------------------------------------------------------------------------------------------------

    @once
    def _tables(self) -> pa.Table:
        """One row per table, with the number of its problems."""
        tables = self._index.catalog("tables")
        found = Counter(self._problems["table"].to_pylist())
        return tables.append_column("problems", _numbers([found[name] for name in tables["table"].to_pylist()]))

    def tables(
        self,
        *,
        like: str | None = None,
        format: str | None = None,
        folder: str | None = None,
        type: str | None = None,
        problems: bool = False,
        sort: str = "name",
    ) -> pa.Table:
        """The tables that fit; sorted by anything but their name, the largest first."""
        if sort == "name" and not (like or format or folder or type or problems):
            return self._tables
        numbers = self._fitting(like=like, format=format, folder=folder, type=type, problems=problems)
        if sort != "name":
            numbers = numbers[np.argsort(-self._sizes[sort][numbers], kind="stable")]
        return chosen(self._tables, numbers)

    def _fitting(
        self,
        *,
        like: str | None = None,
        format: str | None = None,
        folder: str | None = None,
        type: str | None = None,
        problems: bool = False,
    ) -> I64:
        """Numbers of the tables that fit."""
        numbers = np.array(list(self._table_names.holding(like)) if like else range(len(self.names)), np.int64)
        if format:
            numbers = numbers[[self._formats[number] == format for number in numbers.tolist()]]
        if folder:
            numbers = numbers[[(self._folders[number] or ".") == folder for number in numbers.tolist()]]
        if type:
            numbers = numbers[[type in self._types_of_tables[number] for number in numbers.tolist()]]
        if problems:
            numbers = numbers[self._sizes["problems"][numbers] > 0]
        return numbers

    @once
    def names(self) -> list[str]:
        """Names of the tables, in order."""
        return list(self._index.catalog("tables")["table"].to_pylist())

    def holds(self, table: str) -> bool:
        """Whether there is a table of this name."""
        place = bisect.bisect_left(self.names, table)
        return place < len(self.names) and self.names[place] == table

    @once
    def _table_names(self) -> Names:
        return Names(self.names)

    @once
    def _folders(self) -> list[str]:
        return [name.rpartition("/")[0].partition("/")[0] for name in self.names]

    @once
    def _formats(self) -> list[str]:
        return list(self._index.catalog("tables")["format"].to_pylist())

    @once
    def _sizes(self) -> dict[str, I64]:
        return {
            name: np.array(self._tables[name].to_pylist(), np.int64)
            for name in ("rows", "bytes", "columns", "problems")
        }

    # --- columns ------------------------------------------------------------------------------------------------------

    def columns(
        self,
        table: str | None = None,
        *,
        like: str | None = None,
        type: str | None = None,
        fields: Sequence[str] | None = None,
    ) -> pa.Table:
        """The columns of all tables, or of one, that fit, with all fields or some: no others are read."""
        wanted = list(COLUMN_SCHEMA.names if fields is None else fields)
        if unknown := [name for name in wanted if name not in COLUMN_SCHEMA.names]:
            raise NotFound.among("field", unknown[0], COLUMN_SCHEMA.names)
        if table is not None:
            every = self._index.columns_of(table)
            names, types = every["column"].to_pylist(), every["type"].to_pylist()
            part = (like or "").lower()
            rows = [row for row, name in enumerate(names) if part in name.lower() and type in (None, types[row])]
            return (chosen(every, rows) if like or type else every).select(wanted)
        chosen_by = ["table", "column", "type"] if like or type else []
        every = self._index.catalog("columns") if fields is None else self._read([*chosen_by, *wanted])
        if not (like or type):
            return every.select(wanted)
        found: Iterable[int] = self._column_names.holding(like) if like else range(len(self._types))
        return chosen(every, [row for row in found if type in (None, self._types[row])]).select(wanted)

    def _read(self, fields: Sequence[str]) -> pa.Table:
        return self._index.fields("columns", list(dict.fromkeys(fields)))

    @once
    def _few_fields(self) -> pa.Table:
        return self._read(["table", "column", "type"])

    @once
    def _column_names(self) -> Names:
        return Names(self._few_fields["column"].to_pylist())

    @once
    def _types(self) -> list[str]:
        return [intern(kind) for kind in self._few_fields["type"].to_pylist()]

    @once
    def _owners(self) -> list[str]:
        return list(self._few_fields["table"].to_pylist())

    @once
    def _types_of_tables(self) -> list[set[str]]:
        """The types that columns of each table have."""
        number = {name: place for place, name in enumerate(self.names)}
        types: list[set[str]] = [set() for _ in self.names]
        for owner, kind in zip(self._owners, self._types, strict=True):
            types[number[owner]].add(kind)
        return types

    @once
    def _number_columns(self) -> set[str]:
        columns = zip(self._owners, self._few_fields["column"].to_pylist(), self._types, strict=True)
        return {f"{owner}.{column}" for owner, column, kind in columns if kind in ("integer", "decimal")}

    def joins_numbers(self, join: str) -> bool:
        """Whether a join of a path (``TABLE.COLUMN = TABLE.COLUMN``) is of columns of numbers."""
        parts = join.split(" = ")
        sides = ((" = ".join(parts[:at]), " = ".join(parts[at:])) for at in range(1, len(parts)))
        return any(left in self._number_columns and right in self._number_columns for left, right in sides)

    # --- problems -----------------------------------------------------------------------------------------------------

    @property
    def _problems(self) -> pa.Table:
        return self._index.catalog("problems")

    def problems(self, severity: str | None = None, *, sort: str = "table") -> pa.Table:
        """The problems, or those of a severity: by table, or the worst first."""
        if severity is None and sort == "table":
            return self._problems
        kinds = self._problems["severity"].to_pylist()
        numbers = [number for number, kind in enumerate(kinds) if severity in (None, kind)]
        if sort == "severity":
            codes = self._problems["code"].to_pylist()
            tables = self._problems["table"].to_pylist()
            numbers.sort(key=lambda number: (_SEVERITIES[kinds[number]], tables[number], codes[number]))
        return chosen(self._problems, numbers)

    @once
    def severities(self) -> dict[str, int]:
        """How many problems there are of each severity."""
        counted = Counter(self._problems["severity"].to_pylist())
        return {name: counted[name] for name in _SEVERITIES}

    # --- counts -------------------------------------------------------------------------------------------------------

    @once
    def counts(self) -> Record:
        """How many tables there are by format, folder, type of a column and rows, and what is wrong how often."""
        columns = zip(self._problems["severity"].to_pylist(), self._problems["code"].to_pylist(), strict=True)
        codes: Counter[tuple[str, str]] = Counter(columns)
        facets = {
            "format": Counter(self._formats),
            "folder": Counter(folder or "." for folder in self._folders),
            "type": Counter(kind for types in self._types_of_tables for kind in types),
        }
        return {
            "facets": {name: _counted(counter) for name, counter in facets.items()},
            "facets_left_off": {name: max(0, len(counter) - _FACETS) for name, counter in facets.items()},
            "distribution": self._distribution(),
            "severities": self.severities,
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

    def facets(self, **wanted: Any) -> Record:
        """Values of each facet among the tables that fit what is wanted of the others, with how many have each."""
        return self._facets(tuple(sorted((name, value) for name, value in wanted.items() if value)))

    @once
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

    @once
    def _names_of(self) -> tuple[dict[str, list[int]], list[list[str]]]:
        """The tables that have a column of a name, and the names of each table's columns."""
        number = {name: place for place, name in enumerate(self.names)}
        tables: dict[str, list[int]] = {}
        columns: list[list[str]] = [[] for _ in self.names]
        for owner, column in zip(self._owners, self._few_fields["column"].to_pylist(), strict=True):
            name = column.strip().lower()
            tables.setdefault(name, []).append(number[owner])
            columns[number[owner]].append(name)
        return tables, columns

    @once
    def _weights(self) -> tuple[dict[str, float], list[float]]:
        """What a name of a column says about which tables are alike, and the sum of it for each table."""
        tables, columns = self._names_of
        count = len(self.names)
        weights = {
            name: math.log(count / len(some)) for name, some in tables.items() if len(some) <= max(3, _COMMON * count)
        }
        return weights, [sum(weights.get(name, 0.0) for name in set(names)) for names in columns]

    def like(self, table: str, most: int = 8) -> list[Record]:
        """Tables whose columns are called the same: names count the more, the fewer tables have them."""
        tables, columns = self._names_of
        weights, sums = self._weights
        mine = bisect.bisect_left(self.names, table)
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
            {"table": self.names[other], "likeness": round(scores[other], 4), "shared": sorted(shared[other])}
            for other in best
            if scores[other] > _UNLIKE
        ]


def _counted(counter: Counter[str]) -> list[Record]:
    # In an order of their own where counts are equal, not in that of a set.
    most = sorted(counter.items(), key=lambda each: (-each[1], each[0]))[:_FACETS]
    return [{"value": value, "count": count} for value, count in most]


def _numbers(values: list[int]) -> pa.Array:
    """Whole numbers as a column (not by pa.array, which would import pandas)."""
    numbers = np.array(values, np.int64)
    return pa.Array.from_buffers(pa.int64(), numbers.size, [None, pa.py_buffer(numbers)])
