"""Which tables can be reached from mine, join after join?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from lakescope.engines.joins.answers import JoinPath
from lakescope.questions.model import Column, On, Range, Request, Table, Watch, question
from lakescope.results import Results

if TYPE_CHECKING:
    from lakescope.lake import Lake


@question(
    "join_paths",
    path="paths",
    record=JoinPath,
    records="paths",
    lane="long",
    group="search",
    page="/table/paths",
    column="on",
    paged=True,
    doing="following joins",
    examples=(
        "lakescope paths lake.idx shop/order_lines.parquet",
        "lakescope paths lake.idx my.csv --on zip --depth 2 --code sql",
    ),
    example={
        **{"table": "shop/customers.csv", "hops": 1, "containment": 1.0},
        "joins": ["shop/orders.csv.customer_id = shop/customers.csv.customer_id"],
    },
)
@dataclass(frozen=True, kw_only=True, slots=True)
class JoinPathsRequest(Request[Results[JoinPath]]):
    """Which tables can be reached from mine, join after join, with the best path to each."""

    query: Annotated[
        Table,
        "A table: its path, or the name of one of the lake.",
        On("cli", names=("QUERY",), help="A table: its path, or the name of one of the lake, or TABLE.COLUMN."),
    ]
    on: Annotated[Column | None, "Column that paths begin with; without it all plausible ones are tried."] = None
    depth: Annotated[
        int,
        "Most joins of a path.",
        Range(1, hint="ask for paths of up to 3 joins"),
        On("rest", "web", "agents", range=Range(1, 4), why="with each join there are many times as many"),
    ] = 3
    threshold: Annotated[
        float,
        "Least share of the distinct values that each join keeps.",
        Range(above=0, most=1, hint="0.5 is a good one"),
        On("rest", "web", range=Range(0.05, 1), why="below that nearly all tables are reached"),
    ] = 0.5

    def answer(self, lake: Lake, watch: Watch) -> Results[JoinPath]:
        from lakescope.engines.joins.paths import join_paths

        columns, table = lake._query(self.query, self.on)
        starts = [column for column in columns if column.plausible or self.on is not None]
        if not starts:  # no rows, or nothing that others could hold
            return Results(JoinPath, [], notes=["no column of the query is worth following: name one"])
        return join_paths(lake._joins, table or "query", starts, self.depth, self.threshold)
