"""Which columns are keys, and which refer to them?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from lakescope.engines.keys.answers import DiagramForm, Estimator, ForeignKey, Method, PrimaryKey
from lakescope.questions.model import LakeTable, NotOn, On, Range, Request, Watch, question
from lakescope.results import Results

if TYPE_CHECKING:
    from lakescope.engines.keys.foreign import Schema
    from lakescope.lake import Lake


@dataclass(frozen=True, kw_only=True, slots=True)
class KeyOptions:
    """How keys are found: what all questions about keys have in common."""

    method: Annotated[Method, "Who decides: ours, or the papers' chen (by names) or rostin (by features)."] = "ours"
    estimator: Annotated[
        Estimator,
        "How shares are estimated: hybrid (lists, then registers), mle, bml (the paper's), bottomk, or exact: counted.",
    ] = "hybrid"
    verify: Annotated[
        bool,
        "Count common values instead of estimating them, and read tables to find keys of two columns.",
        NotOn("agents", why="it reads tables for as long as it takes"),
    ] = False
    minimum: Annotated[
        float,
        "Least share of a column's values that must be keys.",
        Range(above=0, most=1, hint="0.95 is a good one"),
        On("cli", names=("--min",)),
    ] = 0.95

    def schema(self, lake: Lake) -> Schema:
        """All keys of a lake."""
        return lake._keys.schema(self.method, self.estimator, verify=self.verify, minimum=self.minimum)


@question(
    "foreign_keys",
    record=ForeignKey,
    records="foreign_keys",
    lane="long",
    group="lake",
    paged=True,
    doing="looking for keys",
    examples=(
        "lakescope keys lake.idx",
        "lakescope keys lake.idx --table shop/orders.csv",
        "lakescope keys lake.idx --verify --withheld",
    ),
    example={
        **{"child_table": "shop/orders.csv", "child_columns": ["customer_id"], "inclusion": 1.0},
        **{"parent_table": "shop/customers.csv", "parent_columns": ["customer_id"], "score": 0.98},
    },
)
@dataclass(frozen=True, kw_only=True, slots=True)
class ForeignKeysRequest(KeyOptions, Request[Results[ForeignKey]]):
    """Which columns refer to keys of other tables, with the evidence for each.

    inclusion is the share of the values that are keys there, coverage the share of the keys that are referred to,
    score the chance that the reference is meant.
    """

    withheld: Annotated[bool, "Inclusions that were refused, and why, instead of references."] = False
    table: Annotated[LakeTable | None, "Only references of this table, or to it."] = None

    def answer(self, lake: Lake, watch: Watch) -> Results[ForeignKey]:
        from lakescope.engines.keys.search import foreign_results

        if self.table is not None:
            lake.location(self.table)  # refuses what is not there
        schema = self.schema(lake)
        records = schema.withheld if self.withheld else schema.foreign
        if self.table is not None:
            records = [each for each in records if self.table in (each.child_table, each.parent_table)]
        info = {"primary": len(schema.primary), "foreign": len(schema.foreign), "withheld": len(schema.withheld)}
        notes = [] if self.withheld or not schema.withheld else [_withheld(len(schema.withheld))]
        return foreign_results(records, [*notes, *schema.notes], info)


def _withheld(count: int) -> str:
    what = "inclusion was" if count == 1 else "inclusions were"
    return f"{count:,} other {what} withheld: no reference, for a reason that is told with each"


@question(
    "primary_keys",
    record=PrimaryKey,
    records="primary_keys",
    lane="long",
    group="lake",
    paged=True,
    doing="looking for keys",
    examples=("lakescope keys primary lake.idx",),
    example={"table": "shop/customers.csv", "columns": ["customer_id"], "references": 3},
)
@dataclass(frozen=True, kw_only=True, slots=True)
class PrimaryKeysRequest(KeyOptions, Request[Results[PrimaryKey]]):
    """Which columns are the key of each table: what others refer to, else what looks most like one."""

    def answer(self, lake: Lake, watch: Watch) -> Results[PrimaryKey]:
        from lakescope.engines.keys.search import primary_results

        return primary_results(self.schema(lake))


@question(
    "key_diagram",
    gives="text",
    records="diagram",
    lane="long",
    group="lake",
    doing="drawing tables and keys",
    examples=(
        "lakescope keys diagram lake.idx --out schema.svg",
        "lakescope keys diagram lake.idx --form mermaid",
        "lakescope keys diagram lake.idx --form sql --verify",
    ),
    absent=(NotOn("agents", why="a picture of a whole lake is more than a reader of text has room for"),),
)
@dataclass(frozen=True, kw_only=True, slots=True)
class KeyDiagramRequest(KeyOptions, Request[str]):
    """What tables, keys and references look like: a picture, text for mermaid, or SQL that declares them."""

    form: Annotated[DiagramForm, "A picture (svg), text for mermaid, or sql that declares the keys."] = "svg"

    def answer(self, lake: Lake, watch: Watch) -> str:
        from lakescope.code.declarations import key_declarations
        from lakescope.show import diagram
        from lakescope.show.charts import Svg

        drawings = {"svg": diagram.svg, "mermaid": diagram.mermaid, "sql": key_declarations}
        drawn = drawings[self.form](*lake._keys.drawn(self.schema(lake)))
        return Svg(drawn) if self.form == "svg" else drawn
