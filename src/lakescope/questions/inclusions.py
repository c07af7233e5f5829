"""Which columns are included in which?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from lakescope.engines.keys.answers import Estimator, Inclusion
from lakescope.questions.model import LakeTable, NotOn, On, Range, Request, Watch, question
from lakescope.results import Results

if TYPE_CHECKING:
    from lakescope.lake import Lake
    from lakescope.questions.batches import SparkBatch

#: Pairs that are kept for faces which hand them out in pages.
MOST_PAIRS = 5_000


@question(
    "inclusions",
    record=Inclusion,
    records="inclusions",
    lane="long",
    group="lake",
    page="/map/inclusions",
    paged=True,
    doing="looking for columns that are included in others",
    examples=(
        "lakescope inclusions lake.idx --min 0.9",
        "lakescope inclusions lake.idx --min 1 --verify",
        "lakescope inclusions lake.idx --table shop/orders.csv",
        "lakescope inclusions lake.idx --estimator bml --format csv",
    ),
    example={
        "child_table": "shop/orders.csv",
        "child_column": "customer_id",
        "parent_table": "shop/customers.csv",
        "parent_column": "customer_id",
        "inclusion": 1.0,
    },
)
@dataclass(frozen=True, kw_only=True, slots=True)
class InclusionsRequest(Request[Results[Inclusion]]):
    """Which columns are included in which: all pairs of the lake, from their sketches.

    Pairs of columns of which the child's values are, to at least a share, values of the parent.
    """

    minimum: Annotated[
        float,
        "Least share of the child's values that the parent holds.",
        Range(above=0, most=1, hint="0.95 is a good one"),
        On("cli", names=("--min",)),
        On("rest", "web", range=Range(0.05, 1), why="below that nearly all pairs would have to be paged through"),
    ] = 0.9
    estimator: Annotated[
        Estimator,
        "How shares are estimated: hybrid (lists, then registers), mle, bml (the paper's), bottomk, or exact: counted.",
    ] = "hybrid"
    verify: Annotated[bool, "Count common values instead of estimating them."] = False
    least: Annotated[
        int,
        "Fewest different values of a column to look at: few values are in many columns by chance.",
        Range(1, hint="3 leaves out columns of yes and no"),
    ] = 3
    limit: Annotated[
        int | None,
        "How many pairs to tell at most.",
        Range(0, hint="leave it out for all"),
        On(
            "cli",
            names=("--limit", "-n"),
            default=50,
            help="Print at most this many (0: all).",
            why="more do not fit on a screen",
        ),
        On("rest", "agents", "web", fixed=MOST_PAIRS, why="the answer comes in pages"),
        NotOn("batch", why="a frame has all pairs"),
    ] = None
    table: Annotated[
        LakeTable | None,
        "Only pairs with a column of this table.",
        NotOn("batch", why="the frame can be filtered"),
    ] = None

    def answer(self, lake: Lake, watch: Watch) -> Results[Inclusion]:
        if self.table is not None:
            lake.location(self.table)  # refuses what is not there
        return lake._keys.inclusions(
            self.minimum,
            self.estimator,
            verify=self.verify,
            least=self.least,
            limit=self.limit,
            table=self.table,
        )

    def batch(self, lake: Lake) -> SparkBatch:
        """All pairs of the lake: a task for every part of its columns."""
        from lakescope.build.batch import MOST_TASKS
        from lakescope.engines.keys.batch import SearchInclusions
        from lakescope.questions.batches import SparkBatch

        summary = lake._index.manifest.summary
        parts = max(1, min(MOST_TASKS, int(summary["columns"])))
        path, generation = lake._published_as
        task = SearchInclusions(path, generation, parts, self.minimum, self.estimator, self.verify, self.least)
        return SparkBatch(parts, task, Inclusion)
