"""A table of mine with what the lake knows joined in: columns that correlate, or all of another table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, TypeAlias

from lakescope.engines.correlations.answers import Correlated
from lakescope.engines.joins.answers import Added
from lakescope.errors import BadRequest
from lakescope.questions.correlated import CorrelationOptions
from lakescope.questions.model import Column, Finds, LakeTable, NotOn, On, Range, Request, Table, Watch, question
from lakescope.results import Results
from lakescope.tables.writing import check_output, write_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from lakescope.engines.joins.joined import JoinedRows
    from lakescope.lake import Lake

#: Columns that somebody may choose, and finds among which they are looked for again.
_CHOSEN, _LOOKED_FOR = 20, 100
#: Finds that are asked for, for each column that is wanted: one column is found by several keys.
_KEYS = 3
#: Rows that a join may have on a server; for more there is the code.
_SERVED_ROWS = 500_000
#: Where a table that is made is written to.
_Out: TypeAlias = Annotated[
    str | None,
    On("cli", names=("--out", "-o")),
    NotOn("rest", "web", why="the table becomes a file of the visitor's"),
]


@question(
    "augment",
    record=Added,
    records="added",
    lane="long",
    group="search",
    path="augmentations",
    form="/search/augment",
    verbs=("POST",),
    doing="looking for columns to join in",
    examples=(
        "lakescope augment lake.idx my.csv --out augmented.parquet",
        "lakescope augment lake.idx my.csv --key date --target rides --out augmented.parquet",
    ),
    example={"name": "daily_weather.mean_temp_c", "table": "weather/daily_weather.parquet", "correlation": 0.91},
    absent=(NotOn("agents", why="it writes a file; `correlated` tells what would be joined in"),),
)
@dataclass(frozen=True, kw_only=True, slots=True)
class AugmentRequest(CorrelationOptions, Request[Results[Added]]):
    """Join the columns that correlate best into a table, and say what each adds.

    filled is the share of the rows that got a number, explains the share of the target's variance that the columns so
    far explain together in a straight line, adds what this one added to it.
    """

    k: Annotated[
        int,
        "How many columns to add, at most.",
        Range(1, hint="5 are a good many"),
        On("cli", names=("-k",)),
        On("rest", "web", range=Range(1, 100, hint="5 are a good many"), why="an answer is read"),
    ] = 5
    finds: Annotated[
        Finds | None,
        "Columns to add instead of the best ones: finds, each with its table, key and column.",
        NotOn("cli", why="lines of a table have no short name; Python takes them"),
    ] = None
    out: Annotated[
        _Out, "Where to write the table: .parquet, .csv or .arrow; without it only what each column adds is told."
    ] = None

    def check(self) -> None:
        CorrelationOptions.check(self)
        if self.finds is not None and not 1 <= len(self.finds) <= _CHOSEN:
            many = f"{len(self.finds)} columns were chosen" if self.finds else "no column was chosen"
            raise BadRequest(many, hint=f"choose some of the finds, at most {_CHOSEN}")
        if self.out is not None:
            check_output(self.out)

    @property
    def looked_for(self) -> int:
        """How many finds are asked for, to have those that are wanted among them."""
        return max(_KEYS * self.k, _LOOKED_FOR if self.finds else 0)

    def answer(self, lake: Lake, watch: Watch) -> Results[Added]:
        complete = self.completed(lake)
        found = complete.searched(lake, self.looked_for)
        watch.tell("joining")
        table, added = complete.joined_in(lake, self.chosen(found))
        if self.out is not None and added:
            write_table(table, self.out)
        notes = [*found.notes, *([] if complete is self else [complete.guessed])]
        return Results(Added, added, shown=added.shown, notes=notes)

    def chosen(self, found: Sequence[Correlated]) -> list[Correlated]:
        """The columns to add: those that were chosen, else the best ones, each once whatever keys it was found by."""
        if self.finds is None:
            best: dict[tuple[str, str], Correlated] = {}
            for each in found:
                best.setdefault((each.table, each.column), each)
            return list(best.values())[: self.k]
        wanted = {*self.finds}
        chosen = [each for each in found if (each.table, each.key, each.column) in wanted]
        if len(chosen) < len(wanted):
            raise BadRequest("a column that was chosen is not among the finds", hint="search again and choose anew")
        return chosen

    def joined_in(self, lake: Lake, found: Sequence[Correlated]) -> tuple[pa.Table, Results[Added]]:
        """The table with columns that were found joined in, and what each adds."""
        return lake.augmented(self.query, self.key or (), str(self.target), found, agg=self.agg)


@question(
    "joined",
    gives="join",
    records="rows",
    lane="long",
    group="search",
    path="joins",
    form="/search/join",
    verbs=("POST",),
    doing="joining",
    examples=("lakescope joined lake.idx my.csv shop/customers.csv --on customer --column customer_id --out both.csv",),
    example={"upload": "Zk1xkY5r0c0", "rows": 4000},
    absent=(NotOn("agents", why="it makes a table; `joinable` tells what would join"),),
)
@dataclass(frozen=True, kw_only=True, slots=True)
class JoinedRequest(Request["JoinedRows"]):
    """Join a table with one of the lake: all of its rows, each beside every row with the same value."""

    query: Annotated[Table, "A table: its path, or the name of one of the lake.", On("cli", names=("QUERY",))]
    on: Annotated[Column, "Column of it to join on."]
    table: Annotated[LakeTable, "Name of the table of the lake.", On("cli", names=("TABLE",))]
    column: Annotated[str, "Column of that table to join on."]
    query_rows: Annotated[int | None, "Take only so many of its first rows.", Range(1, hint="leave it out: all")] = None
    most: Annotated[
        int,
        "Rows to make at most.",
        Range(1, hint="1000000 as a rule"),
        On("rest", "web", fixed=_SERVED_ROWS, why="a server has room for so many; for more there is the code"),
    ] = 1_000_000
    out: Annotated[_Out, "Where to write the table: .parquet, .csv or .arrow."] = None

    def check(self) -> None:
        if self.out is not None:
            check_output(self.out)

    def answer(self, lake: Lake, watch: Watch) -> JoinedRows:
        from lakescope.engines.joins.joined import joined

        place = lake.location(self.table)
        found = joined(
            *(lake._place(self.query), self.on, place, self.column, self.table),
            query_rows=self.query_rows,
            most=self.most,
        )
        if self.out is not None:
            write_table(found.table, self.out)
        return found
