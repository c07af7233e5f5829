"""Reading a table that is not in the lake as a query: the same cells, kinds and hashes as the scan's."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from lakescope import sources
from lakescope.array_types import F64, I64, U32, U64
from lakescope.errors import BadRequest, NotFound
from lakescope.sketches.minhash import MinHash
from lakescope.sources.discover import discover
from lakescope.sources.frames import as_batches
from lakescope.sources.io.files import display
from lakescope.sources.io.locations import MARK, TableLocation, catalogue_uri, readings
from lakescope.sources.io.locations import located as located
from lakescope.sources.model import Batch, Unit
from lakescope.sources.names import unique_names
from lakescope.sources.source_table import SourceTable
from lakescope.tables.query import QueryColumn
from lakescope.tables.typed import kind_counts
from lakescope.values.canonical import Kind
from lakescope.values.cells import Cells, understand

if TYPE_CHECKING:
    from lakescope.engines.joins.inverted import InvertedIndex
    from lakescope.engines.joins.overlaps import OverlapSearch


@dataclass(frozen=True, slots=True)
class ReadingTuning:
    """What is remembered of a table that is read as a query."""

    #: Distinct values of a column whose text is remembered, to show which match and which do not. Not measured: a bound
    #: of memory.
    texts: int = 10_000


READING = ReadingTuning()


#: A size that no file reaches: files are read whole.
_WHOLE = 1 << 62
#: Seconds of a day.
_DAY = 86_400.0


@dataclass(slots=True)
class _Growing:
    """A column while it is read."""

    rows: int = 0
    nulls: int = 0
    kinds: I64 = field(default_factory=lambda: np.zeros(len(Kind), np.int64))
    tokens: list[U64] = field(default_factory=list)
    counts: list[I64] = field(default_factory=list)
    numbers: list[F64] = field(default_factory=list)
    texts: dict[int, str] = field(default_factory=dict)

    def add(self, cells: Cells) -> None:
        self.rows += cells.rows
        self.nulls += cells.rows - int(cells.counts.sum())
        self.kinds += kind_counts(cells)
        tokens = np.maximum(cells.hashes, np.uint64(1))
        self.tokens.append(tokens)
        self.counts.append(cells.counts.copy())
        self.numbers.append(_whole_numbers(cells))
        for place in range(min(tokens.size, READING.texts - len(self.texts))):
            self.texts.setdefault(int(tokens[place]), cells.canonical_at(place).decode("utf-8", "replace"))

    def finished(self, name: str, rows: int, search: OverlapSearch, index: InvertedIndex) -> QueryColumn:
        every = np.concatenate([np.empty(0, np.uint64), *self.tokens])
        tokens, first, place = np.unique(every, return_index=True, return_inverse=True)
        counts = np.bincount(place, np.concatenate([np.empty(0), *self.counts]), tokens.size)
        numbers = np.concatenate([np.empty(0), *self.numbers])[first]
        groups = search.query(tokens)
        whole = np.sort(numbers[~np.isnan(numbers)])
        kind = Kind(int(np.argmax(self.kinds))).name.lower() if self.kinds.any() else "empty"
        return QueryColumn(
            name=name,
            kind=kind,
            rows=rows,
            nulls=self.nulls + rows - self.rows,
            groups=groups,
            group_rows=index.rows_of_groups(groups, tokens, counts),
            whole=whole if whole.size == tokens.size else None,
            popularity=index.popularity(groups),
            sample=cache(
                lambda: (list(self.texts.values()), index.token_lookup(np.array(list(self.texts), np.uint64)))
            ),
            sign=lambda: _signed(tokens),
        )


def _signed(tokens: U64) -> U32:
    signature = MinHash()
    signature.update_hashes(tokens)
    return signature.values


def _whole_numbers(cells: Cells) -> F64:
    """Integers as they are, dates as days; NaN for the rest."""
    numbers = np.full(cells.kinds.size, np.nan)
    whole = cells.kinds == Kind.INTEGER
    numbers[whole] = cells.numbers[whole]
    days = cells.kinds == Kind.DATE
    numbers[days] = np.floor(cells.numbers[days] / _DAY)
    return numbers


def read_query(query: Any, search: OverlapSearch, index: InvertedIndex) -> list[QueryColumn]:
    """The columns of a table that is not in the lake: a path or URI of one table, or a frame."""
    columns: dict[str, _Growing] = {}
    rows = 0
    for batch in batches_of(query):
        for column in batch.columns:
            columns.setdefault(column.name, _Growing()).add(understand(column, batch.fallback))
        rows += batch.rows
    if not columns:
        raise BadRequest("the query has no columns", hint="give a table with a header, or a frame with columns")
    return [column.finished(name, rows, search, index) for name, column in columns.items()]


@contextmanager
def opened(query: Any) -> Iterator[Iterator[Batch]]:
    """A table in bounded pieces, of which not all may be wanted: what was opened for them is closed at the end."""
    batches = batches_of(query)
    try:
        yield batches
    finally:
        batches.close()


def batches_of(query: Any) -> Generator[Batch]:
    """A table in bounded pieces: of a path or URI of one table, or of a frame."""
    if isinstance(query, str):
        return _batches_of_path(query)
    return _batches_of_path(str(query)) if hasattr(query, "__fspath__") else _batches_of_frame(query)


def units_of(location: str, size: int = _WHOLE) -> list[Unit]:
    """The pieces of the one table at a path or URI; ``::name`` after it chooses a sheet or a database's table."""
    found, wanted = _found_at(location)
    units = _numbered([unit for each in found for unit in sources.plan(each, size)])
    tables = list(dict.fromkeys(unit.table for unit in units))
    if wanted:
        names = {f"{each.table}{MARK}{wanted}" for each in found}
        units = [unit for unit in units if unit.table in names]
        if not units:
            known = [table.removeprefix(f"{each.table}{MARK}") for each in found for table in tables]
            raise NotFound.among("table", wanted, known)
    elif len(tables) != 1:
        shown = ", ".join(tables[:5])
        raise BadRequest(f"{_name(location)} holds {len(tables)} tables: {shown}", hint="give one of them: path::name")
    return units


def _found_at(location: str) -> tuple[list[SourceTable], str]:
    """The file or directory at a location, and the part of it that is wanted, if any."""
    said: list[str] = []
    for place, part in readings(location):
        found, problems = discover([place])
        if found:
            # A directory that is one table may hold files that are none of its parts.
            own = [each for each in found if catalogue_uri(each.uri) == catalogue_uri(place)]
            return own or found, part
        said = said or [problem.detail for problem in problems]
    if isinstance(location, TableLocation):
        if location.startswith(("frame:", "spark:")):
            raise BadRequest(
                f"{location.table} was indexed from a frame, which the index does not hold",
                hint="give the frame itself",
            )
        raise BadRequest(
            f"{location.table} is not there any more, or cannot be read", hint="update the index: lakescope update"
        )
    detail = "; ".join(said) or f"found no table at {display(location)}"
    raise BadRequest(detail, hint="give the path of one table, or the name of a table of the lake")


def _name(location: str) -> str:
    return location.table if isinstance(location, TableLocation) else display(location)


def _numbered(units: list[Unit]) -> list[Unit]:
    """Units whose tables have names of their own, numbered as in a lake where names in one file are alike."""
    parts = {sources.part_of(unit): unit.table for unit in units}
    names = dict(zip(parts, unique_names([*parts.values()], mark="~")[0], strict=True))
    return [replace(unit, table=names[sources.part_of(unit)]) for unit in units]


def _batches_of_path(location: str) -> Generator[Batch]:
    for unit in units_of(location):
        yield from sources.read(unit, lambda problem: None)


def _batches_of_frame(frame: Any) -> Generator[Batch]:
    from lakescope.sources.formats.arrow_batches import text_batches

    if type(frame).__module__.startswith("pyspark.sql"):
        frame = frame.toArrow()
    batches = list(as_batches(frame))
    yield from text_batches(batches, batches[0].schema, "query", lambda problem: None)
