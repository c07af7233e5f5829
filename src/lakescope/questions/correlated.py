"""Which tables hold a column that correlates with mine after the join?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Self

from lakescope.engines.correlations.answers import Correlated, CorrelationRank, Mean, Measure, Retrieval
from lakescope.errors import BadRequest
from lakescope.questions.model import Column, Columns, Lane, NotOn, On, Range, Request, Table, Watch, question
from lakescope.results import Results
from lakescope.sketches.aggregates import Aggregate

if TYPE_CHECKING:
    from lakescope.engines.correlations.correlated import CorrelationCriteria
    from lakescope.lake import Lake
    from lakescope.questions.batches import SparkBatch

#: Columns that a key may have.
_MOST_COLUMNS = 2
_KEY_HINT = "name a column, or two that make a key"


def aggregate_of_query(aggregate: Aggregate) -> Aggregate:
    """How repeated keys of a query are made one unless it is said: a mean where rows of the lake are counted."""
    return "mean" if aggregate == "count" else aggregate


def check_key(key: tuple[str, ...]) -> None:
    """Refuse what is no key."""
    if not 1 <= len(key) <= _MOST_COLUMNS:
        raise BadRequest(f"a key is one column or two, not {len(key)}", hint=_KEY_HINT)
    if len(set(key)) != len(key):
        raise BadRequest(f"a key is not {key[0]!r} twice", hint=_KEY_HINT)


@dataclass(frozen=True, kw_only=True, slots=True)
class CorrelationOptions:
    """What is looked for, and how: what all questions about correlations have in common."""

    query: Annotated[
        Table,
        "A table: its path, or the name of one of the lake.",
        On(
            "cli",
            names=("QUERY",),
            help="A table: its path, or the name of one of the lake, or TABLE.COLUMN: the target.",
        ),
        NotOn("batch", why="it asks about all tables of the lake"),
    ]
    key: Annotated[
        Columns | None,
        "Column to join on, or two; without it the likeliest key is taken.",
        On("cli", help="Column to join on, or two: country,year; without it the likeliest key is taken."),
        NotOn("batch", why="it asks about all keys of the lake"),
    ] = None
    target: Annotated[
        Column | None,
        "Column of numbers to find correlations with; without it the likeliest is taken.",
        NotOn("batch", why="it asks about all columns of numbers"),
    ] = None
    measure: Annotated[Measure, "Coefficient of correlation."] = "pearson"
    agg: Annotated[Aggregate, "How numbers of a repeated key are made one."] = "mean"
    query_agg: Annotated[
        Aggregate | None,
        "How numbers of a repeated key of the query are made one, if not in the same way.",
        NotOn("batch", why="every column is a query and is found"),
    ] = None
    rank: Annotated[
        CorrelationRank,
        "What comes first: lower (the end of the interval nearer to 0), or the papers' s1, s2, s3 or s4.",
    ] = "lower"
    retrieval: Annotated[Retrieval, "First stage: z, or the papers' qcr or csk."] = "z"
    weight_join: Annotated[
        float, "Weight of joinability in the order: trades correlation for it.", Range(0, hint="0 leaves it out")
    ] = 0.0
    weight_corr: Annotated[float, "Weight of correlation in the order.", Range(0, hint="1 is as it comes")] = 1.0
    mean: Annotated[Mean, "Mean of the weights."] = "geometric"
    given: Annotated[
        Column | None,
        "Column of the query whose influence is taken out.",
        NotOn("batch", why="each query has other columns"),
    ] = None
    own: Annotated[bool, "Columns of the query's own table, too."] = False

    def check(self) -> None:
        if self.key is not None:
            check_key(self.key)
        if not 0 < self.weight_join + self.weight_corr < float("inf"):
            raise BadRequest("one of the weights must be positive", hint="weight_join=1 and weight_corr=1 are alike")

    def criteria(self, k: int) -> CorrelationCriteria:
        """What the search must know to find so many."""
        from lakescope.engines.correlations.correlated import CorrelationCriteria

        weights = self.weight_join, self.weight_corr
        return CorrelationCriteria(
            *(k, self.measure, self.agg, self.rank, self.retrieval, *weights, self.mean, self.given)
        )

    @property
    def aggregate_of_query(self) -> Aggregate:
        """How repeated keys of the query are made one."""
        return self.query_agg or aggregate_of_query(self.agg)

    @property
    def guessed(self) -> str:
        """What was asked about, where it was not named."""
        key = ", ".join(self.key or ())
        return f"asked about {self.target!r} by the key {key!r}: name others if these are not meant"

    def completed(self, lake: Lake) -> Self:
        """The request with the likeliest key and target where none is named."""
        if self.key is not None and self.target is not None:
            return self
        roles = {each.role: each.name for each in lake.describe(self.query) if each.role}
        for option, role in (("key", "key"), ("target", "target")):
            if getattr(self, option) is None and role not in roles:
                raise BadRequest(f"no column looks like a {role}: name one", hint=f"{option} is a column of the query")
        return replace(self, key=self.key or (roles["key"],), target=self.target or roles["target"])

    def searched(self, lake: Lake, k: int) -> Results[Correlated]:
        """The best columns, so many, by the key and the target that are named."""
        assert self.key is not None
        assert self.target is not None
        table = None if self.own else lake._table_of(self.query)
        keyed = lake._keyed(self.query, list(self.key), self.target, self.aggregate_of_query, self.given)
        return lake._correlations.search(keyed, self.criteria(k), table)


@question(
    "correlated",
    record=Correlated,
    records="correlations",
    brief=(
        *("table", "key", "column", "correlation", "low", "high", "p", "q", "sample"),
        *("joined_rows", "joined_rows_low", "joined_rows_high"),
        *("containment", "containment_low", "containment_high"),
        *("coefficient", "aggregate", "exact", "partial", "verified", "verified_rows", "reasons"),
    ),
    lane="quick",
    group="search",
    page="/search/correlated",
    column="target",
    doing="looking for columns that correlate",
    examples=(
        "lakescope correlate lake.idx my.csv",
        "lakescope correlate lake.idx my.csv --key date --target rides -k 10",
        "lakescope correlate lake.idx my.csv --key country,year --target gdp --verify",
        "lakescope correlate lake.idx my.csv --key date --target rides --plot best.svg",
    ),
    example={"table": "weather/daily_weather.parquet", "correlation": 0.91, "low": 0.9, "high": 0.93},
)
@dataclass(frozen=True, kw_only=True, slots=True)
class CorrelatedRequest(CorrelationOptions, Request[Results[Correlated]]):
    """Which tables hold a column that correlates with mine after the join.

    Estimated from samples: the coefficient lies between low and high; q is the share of false finds to expect.
    Correlation is not cause, and reasons say why a find may be spurious.
    """

    k: Annotated[
        int,
        "How many to find.",
        Range(1, hint="ask for 10"),
        On("cli", names=("-k",)),
        On("rest", "agents", range=Range(1, 100, hint="ask for 10"), why="an answer is read"),
        On("web", default=12, range=Range(1, 100, hint="ask for 12"), why="so many fit on a page"),
    ] = 10
    verify: Annotated[
        bool,
        "Do the real joins, and show the true values.",
        NotOn("batch", why="it would read all tables once for each column"),
        NotOn("agents", why="it reads tables for as long as it takes"),
    ] = False

    @property
    def lane(self) -> Lane:
        return "long" if self.verify else "quick"

    def answer(self, lake: Lake, watch: Watch) -> Results[Correlated]:
        complete = self.completed(lake)
        found = complete._found(lake, watch)
        return found if complete is self else found.with_note(complete.guessed)

    def _found(self, lake: Lake, watch: Watch) -> Results[Correlated]:
        found = self.searched(lake, self.k)
        if not self.verify:
            return found
        watch.tell("joining to find the true values")
        key, target = list(self.key or ()), str(self.target)
        return lake._verified(found, self.query, key, target, self.aggregate_of_query)

    def batch(self, lake: Lake) -> SparkBatch:
        """One question for each column of numbers of the lake by each of its keys."""
        from lakescope.engines.correlations.batch import BatchCorrelation, SearchCorrelations
        from lakescope.questions.batches import SparkBatch

        task = SearchCorrelations(*lake._published_as, self.criteria(self.k), self.own)
        return SparkBatch(lake._correlations.sketches.pairs, task, BatchCorrelation)
