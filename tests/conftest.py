"""What all tests have: one Spark session a process, the demo lake and its index, and their order over processes."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lakescope.lake import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# An assertion that fails in there says what it compared.
pytest.register_assert_rewrite("helpers")
#: Fixtures that any test may ask for: ``run`` runs a command.
pytest_plugins = ["helpers.commands"]

from helpers.order import GroupScheduling, in_order  # noqa: E402 - after what concerns its import


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long groups first, and a group's tests together; pytest-randomly has shuffled them."""
    in_order(items)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> GroupScheduling:
    """Processes take whole groups."""
    return GroupScheduling(config, log)


@pytest.fixture(autouse=True)
def environment() -> Iterator[None]:
    """A command that is run in this process sets variables for its children: not for those of other tests."""
    before = dict(os.environ)
    yield
    if dict(os.environ) != before:
        os.environ.clear()
        os.environ.update(before)


@pytest.fixture(scope="session")
def common_folder(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
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
def spark(common_folder: Path) -> Iterator[SparkSession]:
    """A local session, once the kernels of a build are compiled, which one process does for all."""
    from lakescope.build.session import spark_session
    from lakescope.build.warmup import warm

    with spark_session(master="local[2]") as session:
        made_once(common_folder / "kernels", warm)
        yield session


@pytest.fixture(scope="session")
def demo_lake(common_folder: Path) -> Path:
    """The demo lake's files: to be read."""
    from lakescope.demo import write_demo_lake

    (common_folder / "demo").mkdir(exist_ok=True)
    return made_once(common_folder / "demo" / "lake", lambda: write_demo_lake(common_folder / "demo" / "lake"))


@pytest.fixture(scope="session")
def demo_index(demo_lake: Path, request: pytest.FixtureRequest) -> Lake:
    """The demo lake, indexed once for all tests that only ask."""
    import lakescope

    def build() -> None:
        # Warm: the kernels of questions are compiled by one process, too.
        lakescope.index(demo_lake, path, spark=request.getfixturevalue("spark")).warm()

    path = demo_lake.with_suffix(".idx")
    return lakescope.open(made_once(path, build))
