"""What all tests have: one Spark session a process, the demo lake and its index, and their order over processes."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lakescope.lake import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# An assertion that fails in there says what it compared.
pytest.register_assert_rewrite("helpers")
#: Fixtures that any test may ask for: ``run`` runs a command.
pytest_plugins = ["helpers.commands"]

#: Groups of tests that take long, longest first: begun last, one process would work on them alone in the end.
LONG_FIRST = (
    *("cluster", "test_web", "test_same_everywhere", "test_dependencies_at_scale", "test_working_directory"),
    *("test_facade", "test_faults", "test_code", "test_inverted", "test_fair_turns", "test_bad_input", "test_cli"),
    *("test_dependencies", "test_correlated", "test_autojoin", "test_readers", "test_truncation", "test_shards"),
    *("test_headers", "test_joinable", "test_docs", "test_security", "test_notebooks", "test_damage", "test_crashes"),
)


def group_of(item: pytest.Item) -> str:
    """Tests of one group run in one process: a file's, and all those that share a cluster or a Connect server."""
    return "cluster" if item.get_closest_marker("cluster") else item.path.stem


def pytest_itemcollected(item: pytest.Item) -> None:
    item.add_marker(pytest.mark.xdist_group(group_of(item)))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long groups first, and a group's tests together; pytest-randomly has shuffled them."""
    items.sort(key=lambda item: LONG_FIRST.index(group) if (group := group_of(item)) in LONG_FIRST else len(LONG_FIRST))


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
def shared(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """A folder for what is made once and only read, by whichever process of the test run needs it first."""
    own = tmp_path_factory.getbasetemp()
    folder = (own if worker_id == "master" else own.parent) / "shared"
    folder.mkdir(exist_ok=True)
    return folder


def made_once(path: Path, make: Callable[[], object]) -> Path:
    """What ``make`` makes at a path; other processes wait for it and take it as it is."""
    with path.with_name(f"{path.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = path.with_name(f"{path.name}.done")
        if not done.exists():
            make()
            done.touch()
    return path


@pytest.fixture(scope="session")
def demo_lake(shared: Path) -> Path:
    """The demo lake's files: to be read."""
    from lakescope.demo import write_demo_lake

    (shared / "demo").mkdir(exist_ok=True)
    return made_once(shared / "demo" / "lake", lambda: write_demo_lake(shared / "demo" / "lake"))


@pytest.fixture(scope="session")
def demo_index(demo_lake: Path, request: pytest.FixtureRequest) -> Lake:
    """The demo lake, indexed once for all tests that only ask."""
    import lakescope

    def build() -> None:
        lakescope.index(demo_lake, path, spark=request.getfixturevalue("spark"))

    path = demo_lake.with_suffix(".idx")
    return lakescope.open(made_once(path, build))
