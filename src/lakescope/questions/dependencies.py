"""Which functional dependencies hold, and which of them do missing values only feign?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from lakescope.engines.dependencies.answers import (
    Compared,
    Dependency,
    Effect,
    Imputed,
    LakeDependency,
    Model,
    Nulls,
    Order,
    Pattern,
    Split,
    Unit,
    Violation,
)
from lakescope.errors import BadRequest
from lakescope.questions.model import NotOn, On, Range, Request, Table, Watch, located, progress_of, question
from lakescope.results import Results

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakescope.engines.dependencies.genuineness import Custom
    from lakescope.lake import Lake
    from lakescope.questions.batches import SparkBatch

_OF_A_FILE = (
    NotOn("rest", "web", "agents", why="it is for studying a table, and takes as long as it takes"),
    NotOn("python", why="the module that is named after it is asked directly"),
)
#: Declares a question that only who has the table asks.
_of_a_file = partial(question, lane="long", group="table", indexed=False, absent=_OF_A_FILE)
_SERVED_SECONDS, _AGENTS_SECONDS = 20.0, 15.0

# Options that several of these questions have.
_File: TypeAlias = Annotated[Table, "A table: its path or URI.", On("cli", names=("TABLE",))]
_Nulls: TypeAlias = Annotated[
    Nulls, "What a missing value equals: equal (all others), distinct (none), or skip such rows."
]
_MaxLhs: TypeAlias = Annotated[
    int | None,
    "Columns of a left side at most.",
    Range(0, hint="3 is a good one; None, or 0 on the command line: any number"),
    On("cli", help="Columns of a left side at most (0: any number)."),
    On("rest", "web", "agents", default=2, range=Range(1, 4), why="somebody waits"),
]
_Missing: TypeAlias = Annotated[tuple[str, ...], "Texts that stand for no value."]
_Error: TypeAlias = Annotated[
    float, "Share of rows that may break a dependency.", Range(0, 0.999, hint="0.01: one row in a hundred")
]
_Budget: TypeAlias = Annotated[
    float | None,
    "Seconds after which what was found so far is told; of many tables, for each.",
    Range(0, hint="60; None: as long as it takes"),
    On("rest", "web", default=_SERVED_SECONDS, range=Range(1, 120), why="somebody waits"),
    On("agents", default=_AGENTS_SECONDS, range=Range(1, 30), why="an agent waits"),
]
_Seed: TypeAlias = Annotated[int, "Seed of what is drawn by chance: another seed, another draw."]


@dataclass(frozen=True, kw_only=True, slots=True)
class DependencyOptions:
    """How dependencies are found: what most questions about those of a table have in common."""

    query: _File
    nulls: _Nulls = "equal"
    max_lhs: _MaxLhs = 3
    missing: _Missing = ()
    budget: _Budget = 60.0


@question(
    "dependencies",
    record=Dependency,
    records="dependencies",
    brief=("lhs", "rhs", "degree", "pv", "pt", "gs", "holds", "flags", "score"),
    lane="long",
    group="table",
    page="/table/dependencies",
    indexed=False,
    paged=True,
    doing="looking for dependencies",
    examples=(
        "lakescope fds table.csv --missing '?'",
        "lakescope fds table.csv --error 0.01 --by pv",
    ),
    example={"lhs": ["zip"], "rhs": "city", "score": 0.9},
)
@dataclass(frozen=True, kw_only=True, slots=True)
class DependenciesRequest(DependencyOptions, Request[Results[Dependency]]):
    """Which functional dependencies hold in a table (lhs determines rhs), the most telling first. Reads the table."""

    error: _Error = 0.0
    model: Annotated[
        Model,
        "How missing values are filled in to work out how genuine an answer is.",
        On("cli", help="How missing values are filled in to work out genuineness."),
    ] = "frequency"
    scored: Annotated[int, "For how many of the first answers genuineness is worked out.", Range(0)] = 200
    by: Annotated[Order, "What the answers are in order of."] = "score"
    master: Annotated[
        str | None,
        "Ask on Spark: local[*], spark://host:7077 or sc://host.",
        NotOn("rest", "web", "agents", why="no Spark is started for a visitor"),
    ] = None

    def answer(self, lake: Lake | None, watch: Watch) -> Results[Dependency]:
        placed = replace(self, query=located(lake, self.query))
        # Whoever asks through a lake is a visitor or an agent: no Spark is started for them.
        return placed.find(None, self.model, spark=self.master is not None, spill=lake is None)

    def find(
        self, session: SparkSession | None, model: Model | Custom, *, spark: bool, spill: bool = True
    ) -> Results[Dependency]:
        """Find them in memory, or on Spark if that is wanted; of a file that no memory holds on Spark if it may spill.

        ``model`` may be a function that fills in missing values.
        """
        from lakescope.engines.dependencies.find import dependencies
        from lakescope.engines.dependencies.table import TooLarge

        found = (self.query, self.nulls, self.max_lhs)
        shared: dict[str, Any] = {"error": self.error, "missing": self.missing, "budget": self.budget, "by": self.by}
        if not spark:
            try:
                return dependencies(*found, model=model, scored=self.scored, **shared)
            except TooLarge:
                if not spill or (not isinstance(self.query, str) and not hasattr(self.query, "__fspath__")):
                    raise
        from lakescope.build.session import spark_session
        from lakescope.engines.dependencies.distributed import dependencies_on

        with spark_session(session, self.master) as opened:
            return dependencies_on(opened, *found, **shared)


@_of_a_file(
    "compared_dependencies",
    record=Compared,
    records="dependencies",
    doing="comparing dependencies",
    examples=("lakescope fds compare dirty.csv clean.csv",),
)
@dataclass(frozen=True, kw_only=True, slots=True)
class ComparedRequest(DependencyOptions, Request[Results[Compared]]):
    """What became of dependencies beside a clean version of the table: same, ghost or fake."""

    clean: Annotated[Table, "The clean version of the table, with the same columns.", On("cli", names=("CLEAN",))]

    def answer(self, lake: Lake | None, watch: Watch) -> Results[Compared]:
        from lakescope.engines.dependencies.compare import EVERY, compare

        most = EVERY if self.max_lhs is None else self.max_lhs
        return compare(self.query, self.clean, self.nulls, most, missing=self.missing, budget=self.budget)


@_of_a_file(
    "violations",
    record=Violation,
    records="violations",
    doing="looking for rows that break it",
    examples=("lakescope fds violations table.csv 'zip, state -> city'",),
)
@dataclass(frozen=True, kw_only=True, slots=True)
class ViolationsRequest(Request[Results[Violation]]):
    """Which rows break a dependency, and what they might be meant to be."""

    query: _File
    dependency: Annotated[str, "The dependency: 'zip, state -> city'.", On("cli", names=("DEPENDENCY",))]
    nulls: _Nulls = "equal"
    missing: _Missing = ()

    def answer(self, lake: Lake | None, watch: Watch) -> Results[Violation]:
        from lakescope.engines.dependencies.violations import parse, violations

        return violations(self.query, *parse(self.dependency), self.nulls, self.missing)


@_of_a_file(
    "splits",
    record=Split,
    records="splits",
    doing="looking for what to split off",
    examples=("lakescope fds split table.csv",),
)
@dataclass(frozen=True, kw_only=True, slots=True)
class SplitsRequest(DependencyOptions, Request[Results[Split]]):
    """Which columns to split off into other tables, with the SQL that does it."""

    error: _Error = 0.0

    def answer(self, lake: Lake | None, watch: Watch) -> Results[Split]:
        from lakescope.engines.dependencies.split import splits

        name = Path(self.query.partition("::")[0]).stem if isinstance(self.query, str) else ""
        options = {"error": self.error, "missing": self.missing, "budget": self.budget}
        return splits(self.query, self.nulls, self.max_lhs, **options, name=name or "this_table")  # type: ignore[arg-type]


@_of_a_file(
    "reference_dependencies",
    record=Imputed,
    records="dependencies",
    doing="filling in missing values",
    examples=("lakescope fds reference table.csv --bins 10",),
)
@dataclass(frozen=True, kw_only=True, slots=True)
class ReferenceRequest(Request[Results[Imputed]]):
    """What holds however missing values are filled in: by PMM, RI and QUAD."""

    query: _File
    max_lhs: _MaxLhs = 3
    missing: _Missing = ()
    budget: _Budget = 60.0
    bins: Annotated[int, "Intervals to cut numbers into (0: none).", Range(0)] = 0
    seed: _Seed = 1

    def answer(self, lake: Lake | None, watch: Watch) -> Results[Imputed]:
        from lakescope.studies.reference import reference

        options = {"missing": self.missing, "budget": self.budget, "bins": self.bins, "seed": self.seed}
        return reference(self.query, max_lhs=self.max_lhs, **options)  # type: ignore[arg-type]


@_of_a_file(
    "missing_value_study",
    record=Effect,
    records="effects",
    doing="taking values out",
    examples=("lakescope fds study table.csv --shares 0.05,0.1,0.2,0.4 --pattern pareto --out report/",),
)
@dataclass(frozen=True, kw_only=True, slots=True)
class StudyRequest(Request[Results[Effect]]):
    """What missing values do to the dependencies of a table: values are taken out, and what was true is known."""

    query: _File
    shares: Annotated[tuple[str, ...], "Shares of values to take out, one after the other."] = (
        *("0.05", "0.1", "0.15", "0.2", "0.3", "0.4"),
    )
    pattern: Annotated[Pattern, "Where: evenly, mostly in few columns (pareto), or in target columns."] = "uniform"
    unit: Annotated[Unit | None, "What shares are of: cells (as a rule if evenly) or tuples (as a rule else)."] = None
    target: Annotated[tuple[str, ...], "Target columns: names, most-distinct (as a rule) or least-distinct."] = ()
    versions: Annotated[int, "Versions of the table for each share.", Range(1)] = 10
    max_lhs: Annotated[
        int | None, "Columns of a left side at most (0: as many as leave 20,000 candidates).", Range(0)
    ] = None
    missing: Annotated[tuple[str, ...], "Texts that stand for no value already."] = ()
    seed: _Seed = 1

    def answer(self, lake: Lake | None, watch: Watch) -> Results[Effect]:
        from lakescope.studies.missing_values import study

        try:
            shares = [float(each) for each in self.shares]
        except ValueError:
            raise BadRequest(f"shares must be numbers, not {', '.join(self.shares)}", hint="0.05,0.1,0.2") from None
        options: dict[str, Any] = {"unit": self.unit, "target": self.target, "versions": self.versions}
        options |= {"max_lhs": self.max_lhs or None, "missing": self.missing, "seed": self.seed}
        progress = progress_of(watch, "taking values out")
        return study(self.query, shares, self.pattern, **options, progress=progress)


@question(
    "lake_dependencies",
    method="dependencies",
    record=LakeDependency,
    records="dependencies",
    lane="long",
    group="lake",
    doing="looking for dependencies of all tables",
    examples=("lakescope fds lake lake.idx --max-lhs 2 --out dependencies.parquet",),
    absent=(NotOn("rest", "web", "agents", why="it reads every table of the lake, by a job on Spark"),),
)
@dataclass(frozen=True, kw_only=True, slots=True)
class LakeDependenciesRequest(Request[Results[LakeDependency]]):
    """Which functional dependencies of all tables tell most, found by one job on Spark."""

    nulls: _Nulls = "equal"
    max_lhs: _MaxLhs = 3
    error: _Error = 0.0
    missing: _Missing = ()
    budget: Annotated[_Budget, On("cli", default=60.0, why="who asks about all tables by hand expects to wait")] = 20.0
    limit: Annotated[
        int | None,
        "How many are told at most; all of them are in the file.",
        Range(0, hint="None: all"),
        On("cli", names=("--limit", "-n"), default=50, why="more do not fit on a screen"),
        NotOn("batch", why="a frame has all of them"),
    ] = 100
    out: Annotated[
        str | None,
        "Parquet to write all of them to.",
        On("cli", names=("--out", "-o")),
        NotOn("batch", why="a frame can be written"),
    ] = None
    master: Annotated[
        str | None,
        "Spark master (spark://host:7077) or Connect server (sc://host).",
        NotOn("batch", why="a session is given"),
    ] = None

    def answer(self, lake: Lake, watch: Watch) -> Results[LakeDependency]:
        return self.find(lake, None)

    def find(self, lake: Lake, spark: SparkSession | None) -> Results[LakeDependency]:
        """Find them with a session, or with one that is started."""
        from lakescope.engines.dependencies.lake_wide import lake_dependencies
        from lakescope.questions.batches import on_spark

        options: dict[str, Any] = {"nulls": self.nulls, "max_lhs": self.max_lhs, "error": self.error}
        return lake_dependencies(
            lambda session: on_spark(session, self.batch(lake)),
            lake.location,
            {**options, "missing": self.missing},
            *(self.budget, self.limit, self.out, spark, self.master),
        )

    def batch(self, lake: Lake) -> SparkBatch:
        """Every table by itself: executors read them, each once."""
        from lakescope.engines.dependencies.batch import FindDependencies
        from lakescope.questions.batches import SparkBatch

        options = {"nulls": self.nulls, "max_lhs": self.max_lhs, "error": self.error, "budget": self.budget}
        task = FindDependencies(*lake._published_as, options, self.missing)
        return SparkBatch(int(lake._index.manifest.summary["tables"]), task, LakeDependency)
