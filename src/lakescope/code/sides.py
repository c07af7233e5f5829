"""Columns of tables as code sees them: where they lie, how their values are written, and what they need to meet."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from lakescope.errors import LakescopeError
from lakescope.sketches.aggregates import Aggregate
from lakescope.sources.databases.postgres_uri import Address, table_name
from lakescope.sources.io.files import display, local_path
from lakescope.sources.io.locations import MARK, catalogue_uri, readings
from lakescope.values.canonical import Kind
from lakescope.values.cells import Cells, understand

#: What a table in memory goes by.
FRAME = "query"
#: Told among the kinds of a column that has infinite numbers, which take part in no coefficient.
INFINITE = "infinite"
#: Cells of a query that are looked at to see how its values are written.
_LOOKED_AT = 1000
#: How Arrow, Parquet and databases call columns of floating-point numbers.
_FLOATS = ("double", "float", "real", "halffloat", "decimal", "numeric")
#: Records within a file that name columns with a point, a path of fields.
NESTED = ("json", "jsonl")


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a join: where its table lies, in which format, and the column.

    ``kinds`` are those its values have, ``source_type`` what the file says it is, ``patterns`` how values are written,
    as far as known; ``empty`` says that some stand for nothing, ``wide`` that some have letters beyond ASCII; ``odd``
    that the index found rows or cells which other readers would read otherwise.
    """

    location: str
    format: str
    column: str
    kinds: tuple[str, ...] = ()
    source_type: str = ""
    patterns: tuple[str, ...] = ()
    empty: bool = False
    wide: bool = False
    odd: bool | None = None

    @property
    def part(self) -> str:
        """Sheet or table within the file, if the location names one."""
        return self._parts[1]

    @property
    def path(self) -> str:
        """The file, without its part."""
        return self._parts[0]

    @property
    def fields(self) -> tuple[str, ...]:
        """The column as a path of fields: more than one where it lies within others (``user.id`` of JSON)."""
        names = self.column.split(".")
        return tuple(names) if self.format in NESTED and len(names) > 1 and all(names) else (self.column,)

    @property
    def _parts(self) -> tuple[str, str]:
        if self.format == "postgresql":
            address = Address.of(self.location)
            return str(replace(address, table=None)), table_name(*(address.table or ("", "")))
        path, _, part = self.location.partition("::")
        return path, part

    @property
    def is_doubtful(self) -> bool:
        """Whether a column of numbers has texts that other systems would take for numbers, too."""
        return self.empty or "code" in self.kinds or INFINITE in self.kinds

    @property
    def database_table(self) -> tuple[str, str]:
        """Schema and name of a table of PostgreSQL."""
        return Address.of(self.location).table or ("", "")


@dataclass(frozen=True, slots=True)
class KeyedSide:
    """One side of a join by key: a column of numbers, how those of a repeated key are aggregated, and the key."""

    side: Side
    keys: tuple[Side, ...]
    aggregate: Aggregate


@dataclass(frozen=True, slots=True)
class KeyForm:
    """What two columns need to meet: keys as numbers, as moments, as text in one form; codes stay as they are.

    ``text`` says that letters may be composed in several ways, ``zoned`` that moments may have time zones, ``words``
    that texts are among the values, ``empty`` that both have cells that stand for nothing, which are no keys.
    """

    number: bool = False
    words: bool = False
    moment: bool = False
    text: bool = False
    codes: bool = False
    empty: bool = False
    boolean: bool = False
    zoned: bool = False

    @classmethod
    def of(cls, left: Side, right: Side) -> KeyForm:
        both = {*left.kinds, *right.kinds}
        numbers = all({"integer", "decimal"} & {*side.kinds} for side in (left, right))
        floats = any(side.source_type.lower().startswith(_FLOATS) for side in (left, right))
        moments = all({"date", "time", "timestamp"} & {*side.kinds} for side in (left, right))
        written = {side.patterns for side in (left, right)}
        plain = len(written) == 1 and all(len(patterns) == 1 for patterns in written)
        return cls(
            number=numbers and (floats or "decimal" in both or _signed(left) or _signed(right)),
            words="text" in both,
            moment=moments and not (plain and left.source_type == right.source_type == "text"),
            text=left.wide or right.wide,
            codes="code" in both,
            empty=left.empty and right.empty,
            zoned=moments and "timestamp" in left.kinds and "timestamp" in right.kinds,
            boolean="boolean" in left.kinds and "boolean" in right.kinds,
        )


def _signed(side: Side) -> bool:
    return any(pattern.startswith("+") for pattern in side.patterns)


def side_of(query: object, column: str) -> Side:
    """A query from outside the lake: a path, or a frame that goes by the name of ``query``."""
    if isinstance(query, str) or hasattr(query, "__fspath__"):
        from lakescope.sources.discover import discover

        for place, part in readings(str(query)):
            found, _ = discover([place])
            if found:
                location = catalogue_uri(place) if local_path(place) is not None else display(place)
                return Side(f"{location}{MARK}{part}" if part else location, found[0].format, column)
    return Side(FRAME, FRAME, column)


def side_of_query(query: Any, column: str) -> Side:
    """A query from outside the lake, with what its first cells tell of how its values are written."""
    from lakescope.tables.reading import opened

    side = side_of(query, column)
    with suppress(LakescopeError), opened(query) as batches:
        for batch in islice(batches, 1):
            for each in batch.columns:
                if each.name == column:
                    return _looked_at(side, understand(each, batch.fallback), _type_of(query, side))
    return side


def _type_of(query: Any, side: Side) -> str:
    if side.format in ("csv", "json", "jsonl"):
        return "text"
    return "text" if isinstance(query, str) and side.format == "excel" else "typed"


def _looked_at(side: Side, cells: Cells, source_type: str) -> Side:
    texts = [
        cells.written[start:end].tobytes().decode("utf-8", "replace")
        for start, end in islice(zip(cells.wstarts.tolist(), cells.wends.tolist(), strict=True), _LOOKED_AT)
    ]
    kinds = tuple(Kind(int(kind)).name.lower() for kind in np.unique(cells.kinds))
    if any(text.lstrip("+-").lower().startswith("inf") for text in texts):
        kinds = (*kinds, INFINITE)
    patterns = tuple(sorted({"".join("9" if c.isdigit() else "A" if c.isalpha() else c for c in t) for t in texts}))
    if source_type == "typed" and "decimal" not in kinds:
        # Floating-point numbers that are whole are written without a point here, with one elsewhere.
        source_type = "double" if "integer" in kinds else "typed"
    return replace(
        side,
        kinds=kinds,
        source_type=source_type,
        patterns=patterns[:2],
        empty=bool(cells.empty or cells.markers),
        wide=any(not text.isascii() for text in texts),
    )
