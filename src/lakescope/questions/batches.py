"""Questions that are asked many times, on Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakescope.results import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class Parts:
    """How a batch is put to parts of a lake: a task for each part and block of questions, and one that merges.

    ``asked`` is the schema of the rows that the batch's own task makes, ``found`` that of what parts say.
    """

    count: int
    search: Any
    asked: Any
    merge: Any
    found: Any


@dataclass(frozen=True, slots=True)
class SparkBatch:
    """A question asked many times on Spark: a task over the numbers below ``count``, and the kind of its records.

    With ``parts`` the task only reads what is asked about, and each part of the lake is asked by itself.
    """

    count: int
    task: Any
    record: type
    parts: Parts | None = None


def on_spark(spark: SparkSession, batch: SparkBatch) -> DataFrame:
    """The records of a batch as a frame."""
    from lakescope.build.batch import over_numbers, over_parts

    schema, parts = arrow_schema(batch.record), batch.parts
    if parts is None:
        return over_numbers(spark, batch.count, batch.task, schema)
    read = over_numbers(spark, batch.count, batch.task, parts.asked)
    return over_parts(read, parts.count, parts.search, parts.found, parts.merge, schema)
