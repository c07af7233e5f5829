"""How many different values are there, and which counter should tell?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, TypeAlias

from lakescope.engines.counting.answers import Count, CounterAdvice, CounterChoice, StoredCount, Trial, counters_of
from lakescope.questions.model import NotOn, On, Range, Request, Size, Table, Watch, located, progress_of, question
from lakescope.results import Results

if TYPE_CHECKING:
    from lakescope.lake import Lake

_ASKED_DIRECTLY = "the module that it is in is asked directly"
_NO_PAGE = NotOn("web", why="the page of a table shows how many different values its columns hold")
_MANY_HINT = "1000000, or 1e6"
_Values: TypeAlias = Annotated[
    float | None,
    "Largest number of values, for counters that must know it, e.g. 1e9.",
    Range(above=0, most=1e15, hint=_MANY_HINT),
    On("cli", names=("--rows",)),
]
_Error: TypeAlias = Annotated[
    float, "Relative error that counters are made for.", Range(0.0001, 0.999, hint="0.01: one per cent")
]
_Columns: TypeAlias = Annotated[
    tuple[str, ...] | None,
    "Columns; without it all.",
]
_BOUNDED = "other counters take as much memory as a table has values"


#: Declares a question about one table, which need not be in a lake.
_of_a_table = partial(question, group="table", indexed=False)


@_of_a_table(
    "count",
    record=Count,
    records="counts",
    lane="long",
    column="columns",
    paged=True,
    doing="counting",
    examples=(
        "lakescope count data/sales.csv:customer --exact",
        "lakescope count data/ --with hll++,bjkst,akmv --error 0.01",
    ),
    example={"table": "sales.csv", "column": "customer", "counter": "hll++", "estimate": 1234.0},
    absent=(_NO_PAGE, NotOn("agents", why="it reads a whole table; profile tells the counts of one of the lake")),
)
@dataclass(frozen=True, kw_only=True, slots=True)
class CountRequest(Request[Results[Count]]):
    """How many different values the columns of a table hold, by any of twelve estimators, in one pass.

    low and high hold the truth with 95% confidence.
    """

    query: Annotated[
        Table,
        "A table: its path or URI; a directory or a glob is all tables below it.",
        On("cli", names=("TABLE",), help="File, directory, glob or URI; TABLE:COLUMN is one column."),
    ]
    columns: _Columns = None
    counters: Annotated[
        tuple[CounterChoice, ...],
        "Counters, or all: the twelve.",
        On("cli", names=("--with",), help="Counters, separated by commas, or `all`: the twelve."),
        On("rest", fixed=("hll++",), why=_BOUNDED),
    ] = ("hll++",)
    error: _Error = 0.01
    memory: Annotated[
        Size | None,
        "Bytes that a counter may take, instead of an error.",
        Range(above=0, hint="16384"),
        On("cli", help="What a counter may take, e.g. 16KB, instead of an error."),
    ] = None
    n_max: Annotated[_Values, NotOn("rest", why="no counter that it is for is offered")] = None
    exact: Annotated[
        bool, "Count exactly, too, and show the errors.", NotOn("rest", why="it keeps all values in memory")
    ] = False

    def answer(self, lake: Lake | None, watch: Watch) -> Results[Count]:
        from lakescope.engines.counting.count import count

        return count(
            located(lake, self.query),
            self.columns,
            counters=counters_of(self.counters),
            error=self.error,
            memory=self.memory,
            n_max=self.n_max,
            exact=self.exact,
            progress=progress_of(watch, "counting"),
        )


@_of_a_table(
    "stored_counts",
    path="count/stored",
    record=StoredCount,
    records="counts",
    lane="long",
    column="columns",
    paged=True,
    doing="reading statistics",
    examples=("lakescope count stored warehouse/sales",),
    example={"table": "sales", "column": "customer", "estimate": 1234.0, "exact": False, "current": True},
    absent=(_NO_PAGE, NotOn("python", why=_ASKED_DIRECTLY)),
)
@dataclass(frozen=True, kw_only=True, slots=True)
class StoredCountsRequest(Request[Results[StoredCount]]):
    """How many different values the writer of an Iceberg table counted; no data file is opened."""

    query: Annotated[
        Table,
        "An Iceberg table: its path or URI.",
        On("cli", names=("TABLE",), help="An Iceberg table: its path or URI; TABLE:COLUMN is one column."),
    ]
    columns: _Columns = None

    def answer(self, lake: Lake | None, watch: Watch) -> Results[StoredCount]:
        from lakescope.engines.counting.stored import stored_counts

        columns = None if self.columns is None else list(self.columns)
        return stored_counts(str(located(lake, self.query)), columns)


@_of_a_table(
    "counter_advice",
    path="count/advise",
    record=CounterAdvice,
    records="counters",
    lane="quick",
    doing="comparing counters",
    examples=("lakescope count advise --memory 16KB --rows 1e9",),
    example={"counter": "hll++", "fits": True, "error": 0.008, "bytes": 12288},
    absent=(_NO_PAGE, NotOn("python", why=_ASKED_DIRECTLY)),
)
@dataclass(frozen=True, kw_only=True, slots=True)
class CounterAdviceRequest(Request[Results[CounterAdvice]]):
    """Which counter of distinct values suits, the best first, with what speaks for and against each."""

    error: _Error = 0.01
    memory: Annotated[
        Size | None,
        "Bytes that a counter may take at most.",
        Range(above=0, hint="16384"),
        On("cli", help="What a counter may take at most, e.g. 16KB."),
    ] = None
    n_max: _Values = None
    small: Annotated[bool, "Small counts must be right, too."] = False
    set_operations: Annotated[bool, "Intersections and differences are wanted.", On("cli", names=("--sets",))] = False
    membership: Annotated[bool, "It must tell whether a value is in it."] = False
    deletions: Annotated[bool, "Values are taken out again."] = False
    fast: Annotated[bool, "Time is short."] = False

    def answer(self, lake: Lake | None, watch: Watch) -> Results[CounterAdvice]:
        from lakescope.sketches.design import Needs, advise

        needs = Needs(
            *(self.error, self.memory, self.n_max, self.small),
            *(self.set_operations, self.membership, self.deletions, self.fast),
        )
        records = [
            CounterAdvice(
                *(each.design.name, each.fits, each.design.error, each.design.bytes),
                ", ".join(f"{name}={value}" for name, value in each.design.parameters.items()),
                "; ".join(each.reasons),
            )
            for each in advise(needs)
        ]
        return Results(CounterAdvice, records)


@_of_a_table(
    "counter_study",
    record=Trial,
    records="trials",
    lane="long",
    doing="studying counters",
    examples=("lakescope count study --max 1e6 --out report/",),
    absent=(
        NotOn("rest", "web", "agents", why="it is for studying counters, and takes as long as it takes"),
        NotOn("python", why=_ASKED_DIRECTLY),
    ),
)
@dataclass(frozen=True, kw_only=True, slots=True)
class CounterStudyRequest(Request[Results[Trial]]):
    """How counters compare on columns of growing size, and on tables of one's own."""

    query: Annotated[
        Table | None, "A table of one's own that is counted, too: its path or URI.", On("cli", names=("TABLE",))
    ] = None
    largest: Annotated[
        float, "Distinct values of the largest column.", Range(above=0, hint=_MANY_HINT), On("cli", names=("--max",))
    ] = 1e6
    counters: Annotated[
        tuple[CounterChoice, ...] | None,
        "Counters; without it the twelve and what they are compared with.",
        On("cli", names=("--with",)),
    ] = None
    error: _Error = 0.01
    seeds: Annotated[int, "Columns of each size.", Range(1, hint="10 give a mean")] = 10

    def answer(self, lake: Lake | None, watch: Watch) -> Results[Trial]:
        from lakescope.engines.counting.count import count
        from lakescope.sketches.design import BY_NAME
        from lakescope.studies.counters import study

        names = list(BY_NAME) if self.counters is None else counters_of(self.counters)
        progress = progress_of(watch, "studying")
        trials = study(self.largest, counters=names, error=self.error, seeds=self.seeds, progress=progress)
        if self.query is not None:
            sketches = [name for name in names if name != "exact"]
            progress = progress_of(watch, "counting")
            trials.info["own"] = count(self.query, counters=sketches, error=self.error, exact=True, progress=progress)
        return trials
