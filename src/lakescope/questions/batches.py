"""Questions that are asked many times, on Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakescope.questions.model import Batch
from lakescope.results import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def on_spark(spark: SparkSession, batch: Batch) -> DataFrame:
    """The records of a batch as a frame."""
    from lakescope.build.batch import over_numbers, over_parts

    schema, parts = arrow_schema(batch.record), batch.parts
    if parts is None:
        return over_numbers(spark, batch.count, batch.task, schema)
    read = over_numbers(spark, batch.count, batch.task, parts.asked)
    return over_parts(read, parts.count, parts.search, parts.found, parts.merge, schema)
