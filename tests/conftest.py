"""One Spark session for all tests, started when the first test asks for it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lakescope.lake import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(autouse=True)
def environment() -> Iterator[None]:
    """A command that is run in this process sets variables for its children: not for those of other tests."""
    before = dict(os.environ)
    yield
    if dict(os.environ) != before:
        os.environ.clear()
        os.environ.update(before)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from lakescope.build.session import spark_session

    with spark_session(master="local[2]") as session:
        yield session


@pytest.fixture(scope="session")
def demo_lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo lake's files."""
    from lakescope.demo import write_demo_lake

    path = tmp_path_factory.mktemp("demo") / "lake"
    write_demo_lake(path)
    return path


@pytest.fixture(scope="session")
def demo_index(demo_lake: Path, spark: SparkSession) -> Lake:
    """The demo lake, indexed once for all tests that only ask."""
    import lakescope

    return lakescope.index(demo_lake, demo_lake.with_suffix(".idx"), spark=spark)
