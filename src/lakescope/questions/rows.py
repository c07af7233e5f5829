"""What is in a table that somebody brings: its first rows, its columns as the lake sees them?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from lakescope.engines.joins.answers import Described, SharedColumns
from lakescope.questions.model import On, Range, Request, Table, Watch, question
from lakescope.results import Results

if TYPE_CHECKING:
    import pyarrow as pa

    from lakescope.lake import Lake

_TABLE_HELP = "A table: its path, or the name of one of the lake."


@question(
    "head",
    gives="rows",
    records="rows",
    lane="quick",
    reads=True,
    group="table",
    doing="reading the first rows",
    examples=("lakescope head lake.idx shop/orders.csv", "lakescope head lake.idx my.csv --rows 5"),
    example={"columns": ["order_id"], "records": [["500001"]], "disguised": []},
)
@dataclass(frozen=True, kw_only=True, slots=True)
class HeadRequest(Request["pa.Table"]):
    """The first rows of a table as they are written.

    Pages and REST also tell values that may stand for missing ones, unless the table is too large to look for them.
    """

    query: Annotated[Table, _TABLE_HELP, On("cli", names=("QUERY",))]
    rows: Annotated[
        int,
        "How many rows.",
        Range(0, hint="20 are enough to see what it is"),
        On("rest", "web", "agents", default=25, range=Range(1, 200), why="a page has room for so many"),
    ] = 20

    def answer(self, lake: Lake, watch: Watch) -> pa.Table:
        from lakescope.engines.joins.joined import head

        return head(lake._place(self.query), self.rows)


@question(
    "describe",
    record=Described,
    records="columns",
    lane="quick",
    reads=True,
    group="search",
    doing="comparing its values with the lake",
    examples=("lakescope describe lake.idx my.csv",),
    example={"name": "date", "type": "date", "known": 1.0, "role": "key"},
)
@dataclass(frozen=True, kw_only=True, slots=True)
class DescribeRequest(Request[Results[Described]]):
    """The columns of a table as the lake sees them: which of their values it knows, which is likely a key.

    A key and a target are guessed that correlated takes. known is the share of the values that the lake holds.
    """

    query: Annotated[Table, _TABLE_HELP, On("cli", names=("QUERY",))]

    def answer(self, lake: Lake, watch: Watch) -> Results[Described]:
        from lakescope.engines.correlations.guesses import guessed, taken_of_file, taken_of_table

        columns, table = lake._query(self.query, None)
        sketches = lake._correlations.sketches
        taken = taken_of_file(self.query) if table is None else taken_of_table(sketches, table)
        numbers = {number for column in columns for number in taken(column.name) or ()}
        return Results(Described, guessed(columns, taken), info={"numbers": sorted(numbers)})


@question(
    "shared_columns",
    record=SharedColumns,
    records="pairs",
    lane="quick",
    reads=True,
    group="search",
    doing="looking for values in common",
    examples=("lakescope shared lake.idx my.csv shop/orders.csv",),
    example={"left": "customer", "right": "customer_id", "shared": 1160, "of_left": 1.0, "of_right": 0.97},
)
@dataclass(frozen=True, kw_only=True, slots=True)
class SharedColumnsRequest(Request[Results[SharedColumns]]):
    """Which columns of two tables hold mostly the same values as they are written. Reads both tables."""

    left: Annotated[Table, _TABLE_HELP, On("cli", names=("LEFT",))]
    right: Annotated[Table, "The other table.", On("cli", names=("RIGHT",))]
    k: Annotated[
        int,
        "How many pairs to tell at most, the most alike first.",
        Range(1, hint="ask for 8"),
        On("cli", names=("-k",)),
        On("rest", "web", "agents", range=Range(1, 100), why="the first pairs are those that say something"),
    ] = 8

    def answer(self, lake: Lake, watch: Watch) -> Results[SharedColumns]:
        from lakescope.engines.joins.shared import shared_columns

        found = shared_columns(lake._place(self.left), lake._place(self.right))
        notes = [f"{len(found):,} pairs were found, the first {self.k:,} are told"] if len(found) > self.k else []
        return Results(SharedColumns, found[: self.k], notes=notes)
