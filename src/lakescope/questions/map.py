"""How are the tables of a lake linked?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from lakescope.questions.model import NotOn, On, Range, Request, Watch, question

if TYPE_CHECKING:
    from lakescope.lake import Lake
    from lakescope.show.lake_map import LakeMap

#: Pairs of columns that the map is drawn from at most, and values that the smaller one must have.
_PAIRS, _LEAST = 4_000, 12


@question(
    "map",
    page="/map/links",
    gives="record",
    records="edges",
    shown=("child", "child_columns", "parent", "parent_columns", "kind", "inclusion"),
    lane="long",
    group="lake",
    doing="looking for links between tables",
    examples=("lakescope map lake.idx", "lakescope map lake.idx --min 0.95 --format json"),
    example={
        "nodes": [{"table": "shop/orders.csv", "rows": 4000, "links": 3, "x": 512.0, "y": 80.5}],
        "edges": [{"child": "shop/orders.csv", "parent": "shop/customers.csv", "kind": "foreign key"}],
    },
    absent=(NotOn("agents", why="it has places in a picture; foreign_keys and inclusions tell the links"),),
)
@dataclass(frozen=True, kw_only=True, slots=True)
class MapRequest(Request["LakeMap"]):
    """The map of the lake: tables, and how they are linked, with a place in a picture for each.

    Links are references, and columns of which the values are in another.
    """

    minimum: Annotated[
        float,
        "Least share of a column's values that must be in the other.",
        Range(above=0, most=1, hint="0.8 is a good one"),
        On("cli", names=("--min",)),
        On("rest", "web", range=Range(0.05, 1), why="below that nearly all tables are linked"),
    ] = 0.8

    def answer(self, lake: Lake, watch: Watch) -> LakeMap:
        from lakescope.show.lake_map import LakeMap, lake_map

        watch.tell("looking for keys", 0.1)
        foreign = lake.foreign_keys()
        watch.tell("looking for columns that are included in others", 0.5)
        pairs = lake.inclusions(self.minimum, least=_LEAST, limit=_PAIRS)
        watch.tell("drawing", 0.9)
        tables = {record["table"]: record for record in lake.tables().to_pylist()}
        drawn = lake_map(tables, list(foreign), list(pairs))
        return LakeMap(**drawn, notes=(*foreign.notes, *pairs.notes))
