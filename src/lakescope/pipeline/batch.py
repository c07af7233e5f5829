"""A task over numbers as a Spark DataFrame: how questions are answered by the hundred thousand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from lakescope.pipeline.shipping import Shipped, ship_package

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Tasks, at most: many more than cores, so that none waits long for the slowest.
MOST_TASKS = 256
_TYPES = {
    "string": "string",
    "int64": "bigint",
    "double": "double",
    "bool": "boolean",
    "list<item: string>": "array<string>",
}


def over_numbers(
    session: SparkSession,
    count: int,
    task: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    schema: pa.Schema,
) -> DataFrame:
    """What a task answers about the numbers below ``count``, as a frame."""
    ship_package(session)
    tasks = max(1, min(count, MOST_TASKS))
    ddl = ", ".join(f"`{field.name}` {_TYPES[str(field.type)]}" for field in schema)
    return session.range(0, count, 1, tasks).mapInArrow(Shipped.of(task), ddl)
