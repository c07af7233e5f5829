"""Which tests run in one process, and which of these groups come first."""

from __future__ import annotations

import pytest

#: Groups of tests that take long, longest first: begun last, one process would work on them alone in the end. Nothing
#: breaks where a name is missing here.
LONG_FIRST = (
    *("test_web", "cluster", "test_faults", "test_dependencies_at_scale", "test_code", "test_working_directory"),
    *("test_facade", "test_same_everywhere", "test_truncation", "test_inverted", "test_bad_input", "test_notebooks"),
    *("test_hostile_requests", "test_updates", "test_readers", "test_jit", "test_shards", "test_correlated"),
    *("test_docs", "test_joinable", "test_threads", "test_autojoin", "test_headers", "test_cli"),
    *("test_fair_turns", "test_files_of_visitors", "test_safety", "test_inclusions", "test_dependencies", "test_fuzz"),
    *("test_rest_description", "test_rest"),
)


def group_of(item: pytest.Item) -> str:
    """Tests of one group run in one process: a file's, and all those that share a cluster or a Connect server."""
    return "cluster" if item.get_closest_marker("cluster") else item.path.stem
