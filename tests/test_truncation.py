"""Files of an index that are cut off under a reader: told by name, and whoever reads lives to answer again."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lakescope
from helpers import crashes, truncation
from lakescope.errors import IndexDamaged
from lakescope.store import faults, mapped
from lakescope.store.manifest import Manifest

PROGRAM = Path(truncation.__file__)
#: Kinds of files that questions read where they are mapped.
READ = {"columns", "tokens", "postings", "sets", "forest", "sketches", "keys", "pairs", "grams"}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of two segments, with a table that was replaced, one that was removed and one that cannot be read."""
    folder = tmp_path_factory.mktemp("truncation")
    for number in range(4):
        crashes.write_table(folder / "lake" / f"t{number}.csv", number)
    (folder / "lake" / "broken.parquet").write_bytes(b"PAR1 no")
    with crashes.without_spark():
        lakescope.index(folder / "lake", folder / "lake.idx")
    crashes.write_table(folder / "lake" / "t1.csv", 11)
    (folder / "lake" / "t3.csv").unlink()
    lakescope.open(folder / "lake.idx").update()
    lake = lakescope.open(folder / "lake.idx")
    lake.warm()
    return folder / "lake.idx"


def read_by(index: Path, moment: str, small: int) -> dict[str, Any]:
    """What a reader in a process of its own said of each kind of file."""
    command = [sys.executable, str(PROGRAM), str(index), moment, str(small)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, f"ended by {done.returncode}: {done.stderr[-2000:]}"
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("moment", ["first", "between", "middle"])
def test_a_mapped_file_that_is_cut_off_is_told_by_name(index: Path, moment: str) -> None:
    """Before the first question, between two, and while one reads; then the file is put back, and answers are right."""
    found = read_by(index, moment, 0)
    assert {kind: of["wrong"] for kind, of in found.items() if of["wrong"]} == {}
    assert {kind for kind, of in found.items() if of["damaged"]} >= READ


def test_a_file_that_was_read_whole_answers_whatever_becomes_of_it(index: Path) -> None:
    found = read_by(index, "between", 1 << 20)
    assert {kind: of for kind, of in found.items() if of["wrong"] or of["damaged"]} == {}


def test_what_is_cut_off_is_not_compacted(index: Path) -> None:
    """Zeros in place of what is gone would be copied, and have a checksum: nothing is published instead."""
    segments = len(Manifest.load(index).segments)
    assert set(read_by(index, "compacted", 0).values()) == {segments}


def test_a_server_outlives_files_that_are_cut_off(index: Path) -> None:
    """Its main process, those that search with it, its workers: each tells the file, and answers when it is back."""
    found = read_by(index, "served", 0)
    assert {kind: of["wrong"] for kind, of in found.items() if of["wrong"]} == {}
    assert found["postings"]["damaged"] == ["correlated", "file", "joinable"]
    assert all(of["damaged"] for of in found.values())


def test_a_lake_whose_index_was_repaired_answers_from_what_is_left(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mapped, "SMALL", 0)
    copy = Path(shutil.copytree(index, tmp_path / "copy.idx"))
    lake = lakescope.open(copy)
    lake.joinable("t2.csv", on="key")
    newest = [file for file in Manifest.load(copy).files if file.kind == "sets"][-1]
    os.truncate(copy / newest.path, newest.size - 1)
    for _ in range(2):
        with pytest.raises(IndexDamaged, match=newest.path):
            lake.joinable("t2.csv", on="key")
    before = lake.generation
    lakescope.repair(copy)
    assert lake.joinable("t2.csv", on="key") is not None
    assert lake.generation > before
    assert lake.newer() is None


def test_what_is_kept_beside_an_index_may_be_cut_off(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for small in (1 << 20, 0):
        monkeypatch.setattr(mapped, "SMALL", small)
        opened = lakescope.open(index)._index
        opened.remember_arrays("cut", {"numbers": np.arange(5_000)})
        found = opened.recall_arrays("cut")
        assert found is not None
        assert found["numbers"].sum() == np.arange(5_000).sum()
        (path,) = index.rglob("cut-*.bin")
        os.truncate(path, 4096)
        assert opened.recall_arrays("cut") is None


_ALONE = """
import faulthandler, os, sys
import numpy as np
from pathlib import Path
from lakescope.store.mapped import MappedFile, MappedFiles
if "before" in sys.argv: faulthandler.enable()
files, path = MappedFiles(), Path(sys.argv[1])
def read():
    found = MappedFile(path)
    content = np.frombuffer(files.use(found), np.uint8)
    os.truncate(path, 0)
    total = int(content.sum())
    path.write_bytes(bytes(8192))
    return total
path.write_bytes(bytes(8192))
owner = files._owner
owner.begin(); read(); owner.end()
if "after" in sys.argv:
    faulthandler.enable()
    owner.begin(); read(); owner.end()
print("alive", owner.faults, flush=True)
read()
"""


@pytest.mark.skipif(not faults.is_supported(), reason="faults are not handled on this system")
@pytest.mark.parametrize(("enabled", "met"), [("never", 1), ("before", 1), ("after", 2)])
def test_faults_of_those_who_look_at_no_note_end_the_process_as_ever(tmp_path: Path, enabled: str, met: int) -> None:
    """What nobody would refuse must not be taken for zeros; whoever handled faults before is told of them."""
    command = [sys.executable, "-c", _ALONE, str(tmp_path / "file"), enabled]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout == f"alive {met}\n", done.stderr
    assert done.returncode == -signal.SIGBUS
    assert ("Bus error" in done.stderr) == (enabled != "never")


@pytest.mark.skipif(not faults.is_supported(), reason="faults are not handled on this system")
def test_ranges_are_forgotten_with_their_memory(tmp_path: Path) -> None:
    """Or memory that somebody else gets at the same place would be taken for the file's."""
    path = tmp_path / "file"
    path.write_bytes(bytes(8192))
    files = mapped.MappedFiles()
    arrays = [np.frombuffer(files.use(mapped.MappedFile(path)), np.uint8)[10:] for _ in range(600)]
    files._used.clear()
    places = [int(array.__array_interface__["data"][0]) - 10 for array in arrays]
    assert set(places) <= set(faults._handler._owners)
    del arrays
    assert not set(places) & set(faults._handler._owners)
