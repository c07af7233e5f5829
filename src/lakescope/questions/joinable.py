"""Which columns of the lake join with mine?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from lakescope.engines.joins.answers import Engine, Joinable, JoinRank
from lakescope.questions.model import Column, NotOn, On, Range, Request, Table, Watch, question
from lakescope.results import Results

if TYPE_CHECKING:
    from lakescope.engines.joins.joinable import JoinCriteria
    from lakescope.lake import Lake
    from lakescope.questions.batches import SparkBatch
    from lakescope.tables.query import QueryColumn

#: How many are found unless more are asked for.
FOUND = 10
#: How many a page shows.
SHOWN = 12


@question(
    "joinable",
    record=Joinable,
    records="joins",
    brief=(
        *("query_column", "table", "column", "overlap", "containment", "low", "high", "exact", "reverse", "size"),
        *("cardinality", "quality", "p", "reasons", "matches", "missing"),
    ),
    lane="quick",
    group="search",
    page="/search/joins",
    column="on",
    doing="comparing its values with the lake",
    examples=(
        "lakescope join lake.idx my.csv --on zip -k 10",
        "lakescope join lake.idx my.csv --on zip --threshold 0.7 --verify",
        "lakescope join lake.idx shop/orders.csv --on customer --rank significance --explain",
    ),
    example={"table": "shop/customers.csv", "column": "customer_id", "containment": 1.0},
)
@dataclass(frozen=True, kw_only=True, slots=True)
class JoinableRequest(Request[Results[Joinable]]):
    """Which columns of the lake join with mine: the best ones exactly, or all above a threshold.

    containment is the share of the query's distinct values that are found, reverse the share of theirs; p is the
    chance of such an overlap between unrelated columns.
    """

    query: Annotated[
        Table,
        "A table: its path, or the name of one of the lake.",
        On("cli", names=("QUERY",), help="A table: its path, or the name of one of the lake, or TABLE.COLUMN."),
        NotOn("batch", why="a batch has many"),
    ]
    on: Annotated[
        Column | None,
        "Column to join on; without it all plausible ones are tried.",
        NotOn("batch", why="columns come with the queries"),
    ] = None
    k: Annotated[
        int | None,
        "How many to find (10, or all above the threshold).",
        Range(1, hint="ask for 10"),
        On("cli", names=("-k",)),
        On("rest", "agents", default=FOUND, range=Range(1, 100, hint="ask for 10"), why="an answer is read"),
        On("web", default=SHOWN, range=Range(1, 100, hint="ask for 12"), why="so many fit on a page"),
    ] = None
    threshold: Annotated[
        float | None,
        "Find all columns with at least this share of the query's values, e.g. 0.7.",
        Range(above=0, most=1, hint="0.7 finds columns with at least 70% of the values"),
    ] = None
    verify: Annotated[bool, "Exact shares and no false hits, where signatures would estimate."] = False
    engine: Annotated[Engine, "auto (by what is cheaper), exact, or lsh: estimates."] = "auto"
    rank: Annotated[JoinRank, "What comes first: the largest overlap, or significance: what chance explains least."] = (
        "overlap"
    )
    own: Annotated[bool, "Columns of the query's own table, too."] = False

    @property
    def criteria(self) -> JoinCriteria:
        """What the search must know."""
        from lakescope.engines.joins.joinable import JoinCriteria

        k = FOUND if self.k is None and self.threshold is None else self.k
        return JoinCriteria(k, self.threshold, self.verify, self.engine, self.rank)

    def answer(self, lake: Lake, watch: Watch) -> Results[Joinable]:
        joins = lake._joins
        columns, _ = lake._query(self.query, self.on, plausible=self.on is None)
        table = lake._table_of(self.query)
        of_table = joins.columns_of(table) if table is not None else range(0)

        def excluded(column: QueryColumn) -> Sequence[int]:
            return [each for each in of_table if joins.name_of(each) == column.name] if self.own else of_table

        if self.on is not None:
            return joins.search(columns[0], self.criteria, excluded(columns[0]))
        return joins.search_tables([(column, excluded(column)) for column in columns], self.criteria)

    def batch(self, lake: Lake, queries: Sequence[str | tuple[str, str | None]] | None) -> SparkBatch:
        """One question for each of many columns: those that are named, or all plausible ones of the lake."""
        from lakescope.engines.joins.batch import BatchJoin, SearchColumns, batch_questions
        from lakescope.questions.batches import SparkBatch

        asked = tuple(batch_questions(lake._joins, lake.tables()["table"].to_pylist(), queries))
        return SparkBatch(len(asked), SearchColumns(*lake._published_as, asked, self.criteria, self.own), BatchJoin)
