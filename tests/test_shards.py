"""Several processes that search one lake: the answers of one."""

from __future__ import annotations

import os
import random
import signal
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import lakescope
from helpers.answers import answers, differing
from helpers.histories import history, write_table
from helpers.inverted import index_of_sets, token
from lakescope.engines.joins import josie
from lakescope.engines.joins.overlaps import OverlapSearch
from lakescope.engines.shards.pool import Pool
from lakescope.engines.shards.worker import cut
from lakescope.errors import BadRequest, LakescopeError
from lakescope.lake import Lake


@pytest.mark.parametrize("compiled", [True, False])
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    sets=st.lists(st.lists(st.integers(0, 40), unique=True, max_size=25), min_size=1, max_size=25),
    query=st.lists(st.integers(0, 50), unique=True, max_size=30),
    parts=st.integers(1, 6),
    k=st.sampled_from([1, 3, 100]),
)
def test_ranges_of_sets_together_find_what_all_sets_do(
    compiled: bool, monkeypatch: pytest.MonkeyPatch, sets: list[list[int]], query: list[int], parts: int, k: int
) -> None:
    monkeypatch.setattr(josie, "kernels_are_loaded", lambda: compiled)
    with tempfile.TemporaryDirectory() as folder:
        index = index_of_sets(Path(folder) / "i", [[token(x) for x in each] for each in sets])
        whole = OverlapSearch(index)
        asked = whole.query(np.array(sorted(token(x) for x in query), np.uint64))
        ranges = cut(index.sizes, parts)
        assert [number for each in ranges for number in each] == list(range(len(sets)))
        searches = [OverlapSearch(index, within=each) for each in ranges]
        tops = [search.top(asked, k) for search in searches]
        together = [pair for top in tops for pair in zip(top.sets.tolist(), top.overlaps.tolist(), strict=True)]
        best = whole.top(asked, k)
        wanted = list(zip(best.sets.tolist(), best.overlaps.tolist(), strict=True))
        assert sorted(together, key=lambda each: (-each[1], each[0]))[:k] == wanted
        every = np.concatenate([search.at_least(asked, 1).sets for search in searches])
        assert every.tolist() == whole.at_least(asked, 1).sets.tolist()


@pytest.fixture(scope="module")
def updated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return history(tmp_path_factory.mktemp("shards"), seed=5)


def test_any_history_is_answered_as_by_one_process(updated: Path) -> None:
    """Every kind of question, over segments and tables that are gone; and what an update brings."""
    one = lakescope.open(updated)
    with lakescope.open(updated, processes=2) as many:
        assert len(one._index.manifest.segments) > 2
        one.warm()
        many.warm()
        assert not differing(answers(many), answers(one))
        assert many.joinable("n0.csv", on="key", rank="significance").to_dicts()
        for retrieval in ("z", "qcr", "csk"):
            asked = {"key": "key", "target": "num", "retrieval": retrieval}
            found = many.correlated("n0.csv", **asked).to_dicts()
            assert found == one.correlated("n0.csv", **asked).to_dicts()
    with pytest.raises(LakescopeError, match="were ended"):
        many.joinable("n0.csv", on="key")


def test_a_process_that_dies_fails_its_question_and_no_other(updated: Path) -> None:
    lake = lakescope.open(updated, processes=1)
    wanted = lake.joinable("n1.csv", on="key").to_dicts()
    assert lake._pool is not None
    first = lake._pool.processes()
    os.kill(first[0], signal.SIGKILL)
    with pytest.raises(LakescopeError, match=r"search process.* died"):
        lake.joinable("n1.csv", on="key")
    assert lake.joinable("n1.csv", on="key").to_dicts() == wanted
    assert not set(lake._pool.processes()) & set(first)
    lake.close()


def test_what_is_asked_of_an_index_that_was_replaced(tmp_path: Path) -> None:
    """Processes that are started later cannot see the generation that was opened: they say so."""
    index = history(tmp_path, seed=6, tables=3, steps=1)
    lake = lakescope.open(index, processes=1)
    assert lake._pool is not None
    lake._pool._end()
    write_table(tmp_path / "lake/z.csv", random.Random(1))
    Lake.open(index).update()
    with pytest.raises(LakescopeError, match="was replaced since it was opened"):
        lake.joinable("t1.csv", on="key")
    lake.update()  # opens it again
    assert "z.csv" in lake.tables()["table"].to_pylist()
    lake.close()


def test_how_many_processes() -> None:
    with pytest.raises(BadRequest, match="processes must be 1 to 256"):
        Pool("nowhere", 1, 0)
    from lakescope.faces.cli.app import app

    assert CliRunner().invoke(app, ["serve", "nowhere", "--processes", "0"]).exit_code == 2


def test_a_warm_lake_of_several_segments_compiles_nothing_more(updated: Path) -> None:
    from lakescope.engines.joins import kernels

    lake = lakescope.open(updated)
    assert len(lake._index.manifest.segments) > 1
    lake.warm()
    before = {name: len(getattr(kernels, name).signatures) for name in ("josie", "locate", "look_up")}
    table = lake.columns().to_pylist()[0]
    lake.joinable(table["table"], on=table["column"], k=10)
    lake.joinable({"value": ["w1", "w2"]}, on="value", k=10)
    assert {name: len(getattr(kernels, name).signatures) for name in before} == before
