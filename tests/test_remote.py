"""An index on object storage: range reads, blocks on this disk, the answers of a local one."""

from __future__ import annotations

import os
import random
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import lakescope
from helpers.answers import answers, differing
from helpers.buckets import BUCKET
from helpers.histories import built_here, history, write_table
from lakescope.engines.joins import josie
from lakescope.errors import BadRequest, IndexDamaged, LakescopeError
from lakescope.lake import Lake
from lakescope.store import remote
from lakescope.store.cache import trim
from lakescope.store.index import Index
from lakescope.store.manifest import SegmentFile
from lakescope.store.mapped import MappedFiles

pytest_plugins = ["helpers.buckets"]

PLACE = f"s3://{BUCKET}/lakes/lake.idx"


@pytest.fixture(autouse=True)
def blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of each test's own."""
    monkeypatch.setenv("LAKESCOPE_CACHE", str(tmp_path / "blocks"))
    monkeypatch.delenv("LAKESCOPE_CACHE_SIZE", raising=False)
    return tmp_path / "blocks"


@pytest.fixture(scope="module")
def updated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of some segments, with tables that are gone."""
    return history(tmp_path_factory.mktemp("remote"), seed=11)


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index that is large beside what a question needs of it."""
    folder = tmp_path_factory.mktemp("wide")
    (folder / "lake").mkdir()
    dice = random.Random(3)
    for number in range(6):
        rows = [f"{dice.getrandbits(48):x},{dice.getrandbits(40):x},{dice.random():.6f}" for _ in range(12_000)]
        (folder / f"lake/big{number}.csv").write_text("\n".join(["a,b,c", *rows, ""]))
    words = [f"w{dice.getrandbits(40)}" for _ in range(30)]
    for number in range(4):
        rows = [f"{word},{dice.random():.4f}" for word in dice.sample(words, 20)]
        (folder / f"lake/small{number}.csv").write_text("\n".join(["word,x", *rows, ""]))
    return built_here(folder / "lake", folder / "lake.idx")


def fetched(lake: Lake) -> int:
    assert lake.fetched is not None
    return lake.fetched.bytes


@pytest.mark.usefixtures("bucket")
@pytest.mark.parametrize("compiled", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_every_question_is_answered_as_on_this_machine(
    updated: Path, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Joins exactly and above thresholds, correlations, profiles, headers, inclusions, keys; over segments."""
    # Blocks so small that nothing is here by chance.
    monkeypatch.setattr(remote, "BLOCK", 128)
    monkeypatch.setattr("lakescope.store.index.HEAD_BYTES", 384)
    monkeypatch.setattr(remote, "REMOTE", replace(remote.REMOTE, gap=0))
    here = lakescope.open(updated)
    here.push(PLACE)
    there = lakescope.open(PLACE)
    if compiled:
        here.warm()
        there.warm()
    else:
        monkeypatch.setattr(josie, "kernels_are_loaded", lambda: False)
        monkeypatch.setattr("lakescope.engines.correlations.correlated.kernels_are_loaded", lambda: False)
    assert not differing(answers(there), answers(here))
    there.verify()


@pytest.mark.usefixtures("bucket")
def test_a_question_fetches_little_and_the_next_one_nothing(wide: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # An index of 4 MB is to a block of 4 KB what one of 32 MB is to one of 32 KB.
    monkeypatch.setattr(remote, "BLOCK", 4096)
    monkeypatch.setattr(remote, "REMOTE", replace(remote.REMOTE, gap=0))
    lakescope.open(wide).push(PLACE)
    lake = lakescope.open(PLACE)
    size = lake.info()["index_bytes"]
    found = lake.joinable("small0.csv", on="word", k=3)
    assert {each.table for each in found} == {"small1.csv", "small2.csv", "small3.csv"}
    assert found.to_dicts() == lakescope.open(wide).joinable("small0.csv", on="word", k=3).to_dicts()
    assert found.info["fetched_bytes"] < fetched(lake) < 0.1 * size
    before = lake.fetched
    again = lake.joinable("small0.csv", on="word", k=3)
    assert again.to_dicts() == found.to_dicts()
    assert lake.fetched == before
    assert (again.info["requests"], again.info["fetched_bytes"]) == (0, 0)
    # The same through the web.
    address = os.environ["AWS_ENDPOINT_URL"]
    web = lakescope.open(f"{address}/{BUCKET}/lakes/lake.idx")
    assert web.joinable("small0.csv", on="word", k=3).to_dicts() == found.to_dicts()
    assert fetched(web) < 0.1 * size
    # Another process, which has nothing in memory, fetches the manifest alone.
    other = lakescope.open(PLACE)
    assert other.joinable("small0.csv", on="word", k=3).to_dicts() == found.to_dicts()
    assert fetched(other) == len(other._index.manifest.dump())
    assert lake.profile("small1.csv").to_dict() == lakescope.open(wide).profile("small1.csv").to_dict()
    assert fetched(lake) < 0.2 * size


@pytest.mark.usefixtures("bucket")
def test_blocks_that_were_damaged_or_half_written_are_fetched_again(wide: Path, blocks: Path) -> None:
    lakescope.open(wide).push(PLACE)
    wanted = lakescope.open(PLACE).joinable("small0.csv", on="word", k=3).to_dicts()
    for path in blocks.glob("*/*.data"):
        content = bytearray(path.read_bytes())
        content[:: remote.BLOCK // 2] = bytes(255 - byte for byte in content[:: remote.BLOCK // 2])
        path.write_bytes(content)
    lake = lakescope.open(PLACE)
    assert lake.joinable("small0.csv", on="word", k=3).to_dicts() == wanted
    assert fetched(lake) > 2 * len(lake._index.manifest.dump())
    # A block that is said to be there and is not.
    for path in blocks.glob("*/*.blocks"):
        path.write_bytes(np.full(path.stat().st_size // 8, 77, np.uint64).tobytes())
    assert lakescope.open(PLACE).joinable("small0.csv", on="word", k=3).to_dicts() == wanted


@pytest.mark.usefixtures("bucket")
def test_blocks_that_are_cut_off_meanwhile_are_told_and_fetched_again(wide: Path, blocks: Path) -> None:
    lakescope.open(wide).push(PLACE)
    lake = lakescope.open(PLACE)
    wanted = lake.joinable("small0.csv", on="word", k=3).to_dicts()
    for name in ("*/*.data", "*/*.blocks"):
        for path in blocks.glob(name):
            os.truncate(path, path.stat().st_size - 1)
    with pytest.raises(IndexDamaged, match=r"\.data is damaged"):
        lake.joinable("small0.csv", on="word", k=3)
    assert lake.joinable("small0.csv", on="word", k=3).to_dicts() == wanted


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="maps are read in /proc")
def test_nothing_is_written_as_memory(tmp_path: Path) -> None:
    """What is read may be a hole; a hole that is written to where the disk is full would end the process."""
    file = SegmentFile(path="x", kind="sets", rows=0, size=1 << 30, checksum="0" * 16)
    cached = remote.CachedFile(remote.Uri(PLACE), tmp_path, file, lambda size: None, MappedFiles())
    maps = [line.split() for line in Path("/proc/self/maps").read_text().splitlines() if str(tmp_path) in line]
    assert [each[1] for each in maps] == ["r--s"]
    assert maps[0][-1].endswith(".data")
    (data,) = tmp_path.glob("*.data")
    assert 512 * data.stat().st_blocks < data.stat().st_size == cached.buffer.size


@pytest.mark.usefixtures("bucket")
def test_many_readers_share_the_blocks(wide: Path, blocks: Path) -> None:
    """Each opens files of its own on the same blocks, as processes do, and all begin with none."""
    lakescope.open(wide).push(PLACE)

    def ask(_: int) -> list[dict[str, Any]]:
        return lakescope.open(PLACE).joinable("small0.csv", on="word", k=3).to_dicts()

    wanted = lakescope.open(wide).joinable("small0.csv", on="word", k=3).to_dicts()
    with ThreadPoolExecutor(6) as threads:
        assert all(found == wanted for found in threads.map(ask, range(12)))
    assert len(list(blocks.glob("*/*.data"))) == len(list(blocks.glob("*/*.blocks")))


@pytest.mark.usefixtures("bucket")
def test_the_cache_is_bounded(wide: Path, updated: Path, blocks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lakescope.open(wide).push(PLACE)
    lakescope.open(updated).push(f"{PLACE}2")
    lakescope.open(PLACE).inclusions()
    monkeypatch.setenv("LAKESCOPE_CACHE_SIZE", "100KB")
    lake = lakescope.open(f"{PLACE}2")
    assert sum(512 * path.stat().st_blocks for path in blocks.glob("*/*.data")) <= 100_000
    assert lake.joinable("n0.csv", on="key").to_dicts()
    monkeypatch.setenv("LAKESCOPE_CACHE_SIZE", "much")
    with pytest.raises(BadRequest, match="LAKESCOPE_CACHE_SIZE is no size"):
        lakescope.open(PLACE)
    assert trim(blocks, 0, set()) > 0
    assert not list(blocks.glob("*/*.data"))


def test_readers_see_the_old_index_or_the_new_one(bucket: Any, tmp_path: Path) -> None:
    index = history(tmp_path, seed=4, tables=3, steps=0)
    lake = lakescope.open(index)
    sent = lake.push(PLACE)
    assert sent.kept == 0
    assert lake.push(PLACE).files == 0
    reader = lakescope.open(PLACE)
    before = answers(lakescope.open(index))
    write_table(tmp_path / "lake/z.csv", random.Random(1))
    lake.update()
    again = lake.push(PLACE)
    assert again.kept > 0
    assert not differing(answers(reader), before), "what the reader had not fetched is still there"
    assert "z.csv" in lakescope.open(PLACE).tables()["table"].to_pylist()
    # A push that stops before its end leaves what was published.
    write_table(tmp_path / "lake/y.csv", random.Random(2))
    lake.update()

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lake.push(PLACE, progress=stop)
    assert "y.csv" not in lakescope.open(PLACE).tables()["table"].to_pylist()
    lake.push(PLACE)
    assert "y.csv" in lakescope.open(PLACE).tables()["table"].to_pylist()
    names = [item["Key"] for item in bucket.list_objects_v2(Bucket=BUCKET)["Contents"]]
    named = {file.path for file in Index(index).manifest.files}
    assert named <= {name.removeprefix("lakes/lake.idx/") for name in names}


def test_what_cannot_be(bucket: Any, updated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadRequest, match=f"there is no index at s3://{BUCKET}/nowhere"):
        lakescope.open(f"s3://{BUCKET}/nowhere")
    lake = lakescope.open(updated)
    with pytest.raises(BadRequest, match="is a local path"):
        lake.push(str(tmp_path / "copy"))
    bucket.put_object(Bucket=BUCKET, Key="data/a.csv", Body=b"a\n1\n")
    with pytest.raises(BadRequest, match="holds other things than an index"):
        lake.push(f"s3://{BUCKET}")
    lake.push(PLACE)
    there = lakescope.open(PLACE)
    for change in (there.update, there.compact, lambda: there.remove("t1.csv")):
        with pytest.raises(BadRequest, match="an index is not written to s3"):
            change()
    assert not Path("s3:").exists()
    with pytest.raises(BadRequest, match="lies elsewhere already"):
        there.push(f"{PLACE}2")
    gone = next(file for file in there._index.manifest.files if file.kind == "postings")
    bucket.delete_object(Bucket=BUCKET, Key=f"lakes/lake.idx/{gone.path}")
    monkeypatch.setenv("LAKESCOPE_CACHE", str(tmp_path / "other"))
    with pytest.raises(IndexDamaged, match="is missing"):
        lakescope.open(PLACE).joinable("t1.csv", on="key")
    bucket.put_object(Bucket=BUCKET, Key=f"lakes/lake.idx/{gone.path}", Body=bytes(gone.size))
    with pytest.raises(LakescopeError, match=r"postings-.* is damaged"):
        lakescope.open(PLACE).verify()
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LAKESCOPE_CACHE", str(tmp_path / "file"))
    with pytest.raises(BadRequest, match="cannot keep blocks"):
        lakescope.open(PLACE).tables()


@pytest.mark.usefixtures("bucket")
def test_on_the_command_line(updated: Path, tmp_path: Path) -> None:
    from lakescope.faces.cli.app import app

    def run(*arguments: str) -> Any:
        result = CliRunner().invoke(app, list(arguments))
        assert result.exit_code == 0, result.output
        return result

    assert f"{PLACE}: generation 4" in run("push", str(updated), PLACE).stdout
    assert '"kept": ' in run("push", str(updated), PLACE, "--format", "json").stdout
    told = run("join", PLACE, "n0.csv", "--on", "key", "--explain")
    assert "fetched_bytes: " in told.stderr
    assert run("profile", PLACE, "n0.csv").stdout == run("profile", str(updated), "n0.csv").stdout
    shutil.rmtree(tmp_path / "blocks")
    assert "n0.csv" in run("tables", PLACE).stdout
