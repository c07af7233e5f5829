"""A task over numbers as a Spark DataFrame: how questions are answered by the hundred thousand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from lakescope.build.shipping import Shipped, ship_package

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Tasks, at most: many more than cores, so that none waits long for the slowest.
MOST_TASKS = 256
_TYPES = {
    "string": "string",
    "int64": "bigint",
    "double": "double",
    "bool": "boolean",
    "binary": "binary",
    "list<item: string>": "array<string>",
}
Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def over_numbers(session: SparkSession, count: int, task: Task, schema: pa.Schema) -> DataFrame:
    """What a task answers about the numbers below ``count``, as a frame."""
    ship_package(session)
    tasks = max(1, min(count, MOST_TASKS))
    return session.range(0, count, 1, tasks).mapInArrow(Shipped.of(task), _ddl(schema))


def over_parts(
    asked: DataFrame, parts: int, search: Task, found: pa.Schema, merge: Task, schema: pa.Schema
) -> DataFrame:
    """Questions asked of every part of something, and what the parts say of a question brought together.

    ``asked`` has a ``query`` number and a ``payload``. ``search`` gets these and the number of a ``part``, for each
    block of questions and each part apart, and answers rows of ``found``: query, part, payload. ``merge`` gets them by
    query, in the order of parts.
    """
    blocks = max(1, MOST_TASKS // parts)
    searched = (
        asked.selectExpr("query", "payload", f"explode(sequence(0L, {parts - 1}L)) AS part")
        .selectExpr("*", f"query % {blocks} AS block")
        .repartition(blocks * parts, "part", "block")
        .sortWithinPartitions("part", "query")
        .drop("block")
        .mapInArrow(Shipped.of(search), _ddl(found))
    )
    return (
        searched.repartition("query").sortWithinPartitions("query", "part").mapInArrow(Shipped.of(merge), _ddl(schema))
    )


def _ddl(schema: pa.Schema) -> str:
    return ", ".join(f"`{field.name}` {_TYPES[str(field.type)]}" for field in schema)
