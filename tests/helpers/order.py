"""Which tests run in one process, and which of these groups come first."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest
from xdist.scheduler import LoadScopeScheduling

#: Files whose tests share a standalone cluster and a Spark Connect server: one process starts them, once.
ON_A_CLUSTER = ("test_same_everywhere", "test_faults", "test_working_directory")
#: Groups of tests that take long, longest first: begun last, one process would work on them alone in the end. Nothing
#: breaks where a name is missing here.
LONG_FIRST = (
    *("cluster", "test_web", "test_dependencies_at_scale", "test_code"),
    *("test_facade", "test_truncation", "test_inverted", "test_bad_input", "test_notebooks"),
    *("test_hostile_requests", "test_updates", "test_readers", "test_jit", "test_shards", "test_correlated"),
    *("test_docs", "test_joinable", "test_threads", "test_autojoin", "test_headers", "test_cli"),
    *("test_fair_turns", "test_files_of_visitors", "test_safety", "test_inclusions", "test_dependencies", "test_fuzz"),
    *("test_rest_description", "test_rest"),
)


def group_of(nodeid: str) -> str:
    """Tests of one group run in one process: those of a file, or of the files that share a cluster."""
    name = PurePosixPath(nodeid.partition("::")[0]).stem
    return "cluster" if name in ON_A_CLUSTER else name


def in_order(items: list[pytest.Item]) -> None:
    """Sort tests: long groups first, and those of a group together."""
    places = {name: place for place, name in enumerate(LONG_FIRST)}
    items.sort(key=lambda item: (places.get(group := group_of(item.nodeid), len(places)), group))


class GroupScheduling(LoadScopeScheduling):
    """Gives whole groups to processes, in the order in which tests were collected."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)
