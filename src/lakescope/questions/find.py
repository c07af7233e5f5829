"""Where is a word or a value in the lake?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from lakescope.errors import BadRequest
from lakescope.questions.model import On, Range, Request, Watch, question
from lakescope.results import Results

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from lakescope.lake import Lake

FindKind = Literal["table", "column", "value"]


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A place where a text was found: the name of a table or of a column, or a value that a column holds.

    ``matched`` is the name, or the value as it is written there. ``rows`` are those of a table, ``type`` is that of a
    column found by its name, ``distinct`` counts the different values of a column.
    """

    kind: FindKind
    table: str
    column: str | None
    matched: str
    rows: int | None
    type: str | None
    distinct: int | None


@question(
    "find",
    record=Occurrence,
    records="finds",
    lane="quick",
    group="lake",
    doing="looking for names and values",
    examples=("lakescope find lake.idx Berlin", "lakescope find lake.idx customer_id -k 100"),
    example={"kind": "value", "table": "world/capital_cities.csv", "column": "city", "matched": "Berlin"},
)
@dataclass(frozen=True, kw_only=True, slots=True)
class FindRequest(Request[Results[Occurrence]]):
    """Find a text in the names of tables and columns, and columns that hold it as a value.

    Names match by any part of them, in any case. Values match as a whole: as they are given, and with other capitals.
    """

    text: Annotated[str, "A part of a name, or a whole value.", On("cli", names=("TEXT",))]
    k: Annotated[
        int,
        "How many tables, columns, and columns for each spelling of a value to tell at most.",
        Range(1, hint="ask for 20"),
        On("cli", names=("-k",)),
        On("rest", "web", "agents", range=Range(1, 200), why="a list of all columns has a question of its own"),
    ] = 20

    def check(self) -> None:
        if not self.text.strip():
            raise BadRequest("nothing to look for", hint="type a part of a name, or a value")

    def answer(self, lake: Lake, watch: Watch) -> Results[Occurrence]:
        text = self.text.strip()
        tables = lake._catalog.tables(like=text)
        columns = lake._catalog.columns(like=text, fields=("table", "column", "type", "distinct"))
        finds = [*_tables(tables.slice(0, self.k)), *_columns(columns.slice(0, self.k))]
        notes = [
            f"{found.num_rows:,} {kind} are called that, the first {self.k:,} are told"
            for kind, found in (("tables", tables), ("columns", columns))
            if found.num_rows > self.k
        ]
        info: dict[str, Any] = {"tables": tables.num_rows, "columns": columns.num_rows}
        try:
            by_spelling = [_holding(lake, spelling, self.k) for spelling in spellings(text)]
        except BadRequest as error:  # an index of profiles only
            notes.insert(0, error.message)
            return Results(Occurrence, finds, shown=_SHOWN, notes=notes, info={**info, "values": None})
        if any(len(some) == self.k for some in by_spelling):
            notes.append("there may be more columns that hold the value")
        values = [find for some in by_spelling for find in some]
        return Results(Occurrence, [*finds, *values], shown=_SHOWN, notes=notes, info={**info, "values": len(values)})


_SHOWN = ("kind", "table", "column", "matched", "rows", "type", "distinct")


def _tables(found: pa.Table) -> Iterator[Occurrence]:
    for name, rows in zip(found["table"].to_pylist(), found["rows"].to_pylist(), strict=True):
        yield Occurrence("table", name, None, name, rows, None, None)


def _columns(found: pa.Table) -> Iterator[Occurrence]:
    for record in found.to_pylist():
        name = record["column"]
        yield Occurrence("column", record["table"], name, name, None, record["type"], record["distinct"])


def _holding(lake: Lake, value: str, most: int) -> list[Occurrence]:
    """Columns that hold a value as it is written."""
    found = lake.joinable({"value": [value]}, on="value", k=most)
    return [Occurrence("value", each.table, each.column, value, None, None, each.size) for each in found]


def spellings(text: str) -> list[str]:
    """A text as it is, and as it may be written elsewhere: with capitals, without, in capitals alone."""
    return list(dict.fromkeys((text, text[:1].upper() + text[1:], text.title(), text.lower(), text.upper())))
