"""The scan of one work unit: every batch of cells through every state, once. No Spark here.

A :class:`TablePart` is what is known of a table after some of its units. Parts of one table add up in any order of
work; the order of units only decides the order of columns that a source discovers as it goes (JSON keys).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from lakescope import sources
from lakescope.array_types import U64
from lakescope.build.correlations import SKETCHED, TableSketches, is_wide
from lakescope.build.tokens import TOKENS_CUT
from lakescope.errors import LakescopeError, SourceError
from lakescope.profile.column import ColumnState, values_limit
from lakescope.sketches.hashset import HashSet
from lakescope.sources.io.limits import too_large
from lakescope.sources.io.redact import scrub, without_secrets
from lakescope.sources.model import Batch, Problem, TextColumn, Unit
from lakescope.values.cells import Cells, understand

#: Different problems told of one table; more are counted.
_PROBLEM_KINDS = 200
_JSON_LIMIT = 2048
#: Rows of a table are ordered by the piece they are in, then by their number in it.
_ROW_BITS = 40
#: From so many units on a table is merged by several tasks; a Spark frame always is.
MANY_UNITS = 8
#: Facts about a table that every piece of it may tell again; the others are events that add up.
_FACTS = frozenset(["nested", "no-header", "preamble", "renamed-columns", "partition-column", "wide-table"])


class Span(NamedTuple):
    """The bytes of a file that a unit has read: where its first record starts, and where the next after it does."""

    ordinal: int
    uri: str
    start: int
    end: int


@dataclass(slots=True)
class TablePart:
    """What some units of one table contributed, apart from the states of its columns."""

    table: str
    ordinal: int
    rows: int = 0
    size: int = 0
    units: int = 0
    failed: int = 0
    source: dict[str, Any] = field(default_factory=dict)
    columns: list[str] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def report(self, problem: Problem) -> None:
        """Note a problem; repeated ones add up."""
        for index, known in enumerate(self.problems):
            if (known.code, known.severity) == (problem.code, problem.severity) and known.detail == problem.detail:
                each_piece = problem.code in _FACTS
                count = max(known.count, problem.count) if each_piece else known.count + problem.count
                self.problems[index] = replace(known, count=count)
                return
        if len(self.problems) < _PROBLEM_KINDS:
            self.problems.append(problem)
        elif problem.code != "more-problems":
            self.report(Problem(self.table, "warning", "more-problems", "further problems are counted, not listed"))
        else:
            self.problems.append(problem)

    def to_json(self) -> bytes:
        return json.dumps(asdict(self), separators=(",", ":"), ensure_ascii=True).encode()

    @classmethod
    def from_json(cls, data: bytes) -> TablePart:
        body: dict[str, Any] = json.loads(data)
        body["problems"] = [Problem(**problem) for problem in body["problems"]]
        body["spans"] = [Span(*span) for span in body["spans"]]
        return cls(**body)


class TableScan:
    """Scans units of one table into one part, one state and, if wanted, the distinct tokens of each column."""

    def __init__(self, table: str, ordinal: int, *, tokens: bool = True) -> None:
        self.part = TablePart(table, ordinal)
        self._wants_tokens = tokens
        self.states: dict[str, ColumnState] = {}
        #: Distinct tokens of columns that have more than their frequent values hold.
        self._tokens: dict[str, HashSet] = {}
        self.sketches = TableSketches()

    def scan(self, unit: Unit) -> Iterator[None]:
        """Read a unit a batch at a time; what cannot be read becomes a problem of the table, never an exception."""
        # A unit that only declares the columns of a Spark frame is no piece of it.
        self.part.units += unit.ordinal >= 0
        self.part.size += unit.size
        self.part.source = self.part.source or unit.options.get("source", {})
        try:
            for batch in sources.read(unit, self.part.report):
                self.add(batch, unit)
                yield
        except SourceError as error:
            self._fail(unit, error.code, error.message)
        except LakescopeError as error:
            self._fail(unit, "unreadable", error.message)
        except MemoryError:
            self._fail(unit, "too-large", too_large(unit.table).message)
        except (RecursionError, ArithmeticError, ValueError, LookupError, TypeError, OSError) as error:
            self._fail(unit, "unreadable", f"{type(error).__name__}: {error}")

    def _fail(self, unit: Unit, code: str, message: str) -> None:
        self.part.failed += 1
        self.part.report(Problem(unit.table, "error", code, scrub(message)))

    def add(self, batch: Batch, unit: Unit | None = None) -> None:
        """Add one batch of rows."""
        understood = [(column, understand(column, batch.fallback)) for column in batch.columns]
        for column, cells in understood:
            self._add_column(column, cells, len(batch.columns))
        undecodable = sum(cells.undecodable for _, cells in understood)
        if self._wants_tokens:
            positioned = all(column.source_type != "json" for column in batch.columns)
            named = [(column.name, cells) for column, cells in understood]
            if positioned and is_wide(len(named)):
                detail = (
                    f"only its first {SKETCHED.wide_keys} columns are keys of correlation sketches, which are smaller"
                )
                self.part.report(Problem(self.part.table, "info", "wide-table", detail))
            ordinal = max(0, self.part.ordinal if unit is None else unit.ordinal)
            self.sketches.add(named, (ordinal << _ROW_BITS) + self.part.rows, positioned=positioned)
        self.part.rows += batch.rows
        if unit is not None and batch.span is not None:
            self._add_span(unit, batch.span)
        if undecodable:
            detail = f"cells that are not UTF-8 were read as {batch.fallback}"
            self.part.report(Problem(self.part.table, "warning", "encoding", detail, undecodable))

    def _add_column(self, column: TextColumn, cells: Cells, width: int) -> None:
        # The keys of JSON come and go: their number says nothing that another cut of the file would say, too.
        limit = _JSON_LIMIT if column.source_type == "json" else values_limit(width)
        state = self.states.get(column.name)
        if state is None:
            state = ColumnState(len(self.states), column.source_type, limit)
            self.states[column.name] = state
            self.part.columns.append(column.name)
        tokens = self._tokens.get(column.name)
        many = state.values.used + cells.hashes.size > min(state.limit, limit)
        if many and tokens is None and self._wants_tokens:
            tokens = self._tokens[column.name] = HashSet()
            tokens.add(state.values.keys[: state.values.used])
        state.meet(column.source_type, limit)
        state.update(cells)
        if self._wants_tokens:
            state.grams.update(cells)
        if tokens is not None:
            tokens.add(cells.hashes)

    @property
    def full(self) -> bool:
        """Whether it is time to take the tokens."""
        return sum(tokens.used for tokens in self._tokens.values()) >= TOKENS_CUT.pending

    def take_tokens(self) -> Iterator[tuple[str, U64]]:
        """(column, its distinct tokens) since the last time; the columns' signatures learn of them."""
        for name, state in self.states.items():
            tokens = self._tokens.get(name)
            known = state.values.keys[: state.values.used] if tokens is None else tokens.unordered()
            hashes = np.maximum(known, np.uint64(1))
            state.signature.update_hashes(hashes)
            self._tokens[name] = HashSet()
            yield name, hashes

    def _add_span(self, unit: Unit, span: tuple[int, int]) -> None:
        spans = self.part.spans
        if spans and spans[-1].ordinal == unit.ordinal:
            spans[-1] = spans[-1]._replace(end=span[1])
        else:
            spans.append(Span(unit.ordinal, without_secrets(unit.uri), *span))


def broken_spans(parts: list[TablePart]) -> bool:
    """Whether two neighbouring byte ranges of a file disagree on where a record starts."""
    spans = sorted(span for part in parts for span in part.spans)
    return any(one.uri == other.uri and one.end != other.start for one, other in pairwise(spans))
