"""What was a table before, and what changed in it?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from lakescope.engines.history.answers import Drift, Version
from lakescope.questions.model import LakeTable, Lane, On, Range, Request, Watch, question
from lakescope.results import Results

if TYPE_CHECKING:
    from lakescope.lake import Lake


@question(
    "history",
    record=Version,
    records="versions",
    lane="quick",
    group="table",
    page="/table/history",
    paged=True,
    doing="looking at earlier versions",
    examples=("lakescope history lake.idx sales/2021.csv",),
    example={"version": 1, "scanned": "2026-03-01T08:00:00+00:00", "rows": 4000},
)
@dataclass(frozen=True, kw_only=True, slots=True)
class HistoryRequest(Request[Results[Version]]):
    """What the versions of a table were that the index saw: when, how large, columns added and removed."""

    table: Annotated[LakeTable, "Name of the table, also of one that is gone.", On("cli", names=("TABLE",))]

    def answer(self, lake: Lake, watch: Watch) -> Results[Version]:
        from lakescope.engines.history.versions import history

        return history(lake._index, self.table)


@question(
    "drift",
    record=Drift,
    records="changes",
    lane="long",
    group="lake",
    page="/table/history",
    paged=True,
    doing="comparing versions",
    examples=(
        "lakescope drift lake.idx",
        "lakescope drift lake.idx sales/2021.csv --since 2026-03-01",
        "lakescope drift lake.idx sales/2021.csv --since 1 --minimum 0",
    ),
    example={"table": "shop/orders.csv", "column": "total", "changes": ["distribution by 0.31"], "distance": 0.31},
)
@dataclass(frozen=True, kw_only=True, slots=True)
class DriftRequest(Request[Results[Drift]]):
    """What changed in the columns of tables since the version before: types, missing cells, keys, distributions."""

    table: Annotated[
        LakeTable | None, "Name of a table; without it all that were changed.", On("cli", names=("TABLE",))
    ] = None
    since: Annotated[
        str | None, "Compare with the version that answered at a time (2026-03-01, in UTC), or with one by its number."
    ] = None
    minimum: Annotated[
        float,
        "Least distance of distributions; 0 tells of every column.",
        Range(0, 1, hint="0 tells of every column"),
    ] = 0.1

    @property
    def lane(self) -> Lane:
        return "long" if self.table is None else "quick"

    def answer(self, lake: Lake, watch: Watch) -> Results[Drift]:
        from lakescope.engines.history.drift import drift

        return drift(lake._index, self.table, since=self.since, minimum=self.minimum)
