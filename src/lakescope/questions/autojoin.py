"""How do tables join whose keys are written differently, or are only nearly equal?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, TypeAlias

from lakescope.engines.transforms.answers import FuzzyMethod, Reference, TransformJoin
from lakescope.errors import BadRequest
from lakescope.questions.model import NotOn, On, Range, Request, Seconds, Sides, Table, Watch, located, question
from lakescope.results import Results

if TYPE_CHECKING:
    from lakescope.engines.transforms.discover import TransformCriteria
    from lakescope.engines.transforms.fuzzyjoin import FuzzyJoin
    from lakescope.engines.transforms.plan import Plan
    from lakescope.lake import Lake
    from lakescope.questions.batches import SparkBatch

_HINT = "30 is a good one; in Python, None is no limit"
_SERVED, _AGENTS = Range(above=0, most=120, hint=_HINT), Range(above=0, most=30, hint=_HINT)

# Options that these questions have in common.
_Left: TypeAlias = Annotated[Table, "A table: its path or URI.", On("cli", names=("LEFT",))]
_Right: TypeAlias = Annotated[Table, "The other table.", On("cli", names=("RIGHT",))]
_Budget: TypeAlias = Annotated[
    Seconds | None,
    "Time after which what was found so far is told, in seconds.",
    Range(above=0, hint=_HINT),
    On("cli", help="Time after which what was found so far is told: 30s, 2m (0: no limit)."),
    On("rest", "web", default=30.0, range=_SERVED, why="somebody waits"),
    On("agents", default=15.0, range=_AGENTS, why="an agent waits"),
]


@question(
    "autojoin",
    gives="join",
    records="plan",
    lane="long",
    group="search",
    indexed=False,
    path="autojoins",
    page="/pair/plan",
    form="/pair/join",
    verbs=("GET", "POST"),
    doing="learning how one is rewritten into the other",
    examples=(
        "lakescope autojoin a.csv b.csv",
        "lakescope autojoin a.csv b.csv --out joined.parquet",
        "lakescope autojoin a.csv b.csv --code spark",
        "lakescope autojoin new.csv b.csv --plan plan.json",
    ),
    example={"plan": {"words": "..."}, "rows": 100},
)
@dataclass(frozen=True, kw_only=True, slots=True)
class AutojoinRequest(Request["Plan"]):
    """Join two tables whose keys are written differently: learn the programs that rewrite one into the other.

    Programs are told in plain words, with what they cover, some joined rows, and some that do not join. Both tables are
    read.
    """

    left: _Left
    right: _Right
    fuzzy: Annotated[
        bool,
        "Also join what programs leave where it is nearly equal to one key.",
        On("cli", names=("--fuzzy/--no-fuzzy",)),
    ] = True
    budget: _Budget = 30.0

    def answer(self, lake: Lake | None, watch: Watch) -> Plan:
        from lakescope.engines.transforms.autojoin import autojoin
        from lakescope.engines.transforms.clock import Clock

        sides = located(lake, self.left), located(lake, self.right)
        return autojoin(*sides, Clock(self.budget, watch), fuzzy=self.fuzzy)


@question(
    "lake_autojoin",
    method="autojoin",
    record=TransformJoin,
    records="joins",
    lane="long",
    group="search",
    path="autojoinable",
    paged=True,
    doing="looking for tables whose keys are written differently",
    examples=("lakescope autojoin lake lake.idx my.csv", "lakescope autojoin lake lake.idx my.csv -k 3 --budget 2m"),
    example={"table": "people/authors.csv", "columns": ["name"], "keys": ["author"], "coverage": 0.97},
)
@dataclass(frozen=True, kw_only=True, slots=True)
class LakeAutojoinRequest(Request[Results[TransformJoin]]):
    """Which tables of the lake join with mine once keys are rewritten, with the program for each.

    The index finds tables that share rare pieces of text; the best of them are read, and programs are learnt for them.
    coverage is the share of the rows of the query that join.
    """

    query: Annotated[
        Table,
        "A table: its path, or the name of one of the lake.",
        On("cli", names=("QUERY",)),
        NotOn("batch", why="it asks about all tables of the lake"),
    ]
    k: Annotated[
        int,
        "How many tables to find.",
        Range(1, hint="10 is a good one"),
        On("cli", names=("-k",)),
        On("rest", "agents", range=Range(1, 100, hint="10 is a good one"), why="an answer is read"),
    ] = 10
    candidates: Annotated[
        int,
        "Tables that programs are learnt for, at most.",
        Range(1, hint="20 is a good one"),
        On("rest", "agents", range=Range(1, 100, hint="20 is a good one"), why="tables are read"),
    ] = 20
    budget: Annotated[_Budget, On("rest", default=60.0, range=_SERVED, why="somebody waits")] = 60.0

    @property
    def criteria(self) -> TransformCriteria:
        """What the search must know."""
        from lakescope.engines.transforms.discover import TransformCriteria

        return TransformCriteria(self.k, self.candidates)

    def answer(self, lake: Lake, watch: Watch) -> Results[TransformJoin]:
        from lakescope.engines.transforms.clock import Clock
        from lakescope.engines.transforms.plan import rereadable

        place = lake.location(self.query) if lake._is_table(self.query) else rereadable(self.query)
        return lake._transforms.search(place, lake._table_of(self.query), self.criteria, Clock(self.budget, watch))

    def batch(self, lake: Lake) -> SparkBatch:
        """Every table by itself: executors read them, and their candidates."""
        from lakescope.engines.transforms.lake_wide import BatchTransform, SearchTransforms
        from lakescope.questions.batches import SparkBatch

        task = SearchTransforms(*lake._published_as, self.criteria, self.budget)
        return SparkBatch(int(lake._index.manifest.summary["tables"]), task, BatchTransform)


@question(
    "fuzzyjoin",
    gives="join",
    records="join",
    lane="long",
    group="search",
    indexed=False,
    path="fuzzyjoins",
    verbs=("GET", "POST"),
    doing="joining what is nearly equal",
    examples=(
        "lakescope fuzzyjoin a.csv b.csv --on name",
        "lakescope fuzzyjoin a.csv b.csv --on title=name --precision 0.95 --out joined.csv",
    ),
    example={"join": {"coverage": 0.93, "pairs": 100}, "rows": 100},
)
@dataclass(frozen=True, kw_only=True, slots=True)
class FuzzyJoinRequest(Request["FuzzyJoin"]):
    """Join two tables on columns that are nearly equal; distances and thresholds are found from the columns alone."""

    left: _Left
    right: _Right
    on: Annotated[
        Sides,
        "Column to join on; two, where it is called otherwise in the other table.",
        On("cli", help="Column to join on; title=name where names differ."),
    ]
    precision: Annotated[
        float, "Estimated share of pairs that must be right.", Range(above=0, most=1, hint="0.9 is a good one")
    ] = 0.9
    method: Annotated[FuzzyMethod, "expected: by that share; constrained: no value has two keys."] = "expected"
    one_to_one: Annotated[bool, "A key joins one value, too."] = False
    reference: Annotated[
        Reference | None, "Side whose column is a key; as a rule the one with fewer repeated values, then the larger."
    ] = None
    budget: _Budget = None

    def check(self) -> None:
        if not 1 <= len(self.on) <= 2:
            raise BadRequest(f"on is one column or one of each table, not {len(self.on)}", hint="title=name")

    def answer(self, lake: Lake | None, watch: Watch) -> FuzzyJoin:
        from lakescope.engines.transforms.clock import Clock
        from lakescope.engines.transforms.fuzzyjoin import fuzzyjoin

        return fuzzyjoin(
            *(located(lake, self.left), located(lake, self.right), self.on, Clock(self.budget, watch)),
            precision=self.precision,
            method=self.method,
            one_to_one=self.one_to_one,
            reference=self.reference,
        )
