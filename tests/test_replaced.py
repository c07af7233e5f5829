"""What takes the place of a file while a lake is read is a problem, never a wait; and there is one door to files."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import lakescope
from helpers import corpus, fuzzing, replacing
from lakescope import sources
from lakescope.build import build as build_module
from lakescope.errors import SourceError
from lakescope.sources.discover import discover
from lakescope.sources.io import files, limits

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

deltalake = pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")
duckdb = pytest.importorskip("duckdb")


@pytest.mark.parametrize("when", ["found", "planned", "scanned"])
def test_what_takes_the_place_of_a_file_is_a_problem_of_its_table(when: str, tmp_path: Path) -> None:
    found: dict[str, Any] = json.loads(_ended("from helpers import replacing; replacing.main()", when, tmp_path))
    assert set(found) == {"pipe", "device", "socket", "loop"}
    for kind, told in found.items():
        assert {"delta", "iceberg", "a.csv", "a.orc", "a.duckdb", "a.ods"} <= set(told["errors"])
        assert told["contents"] == []
        if when == "scanned":
            assert told["rows"] > 1000, kind
            # What holds several tables is gone after the first.
            failed = {table for table, codes in told["errors"].items() if codes}
            assert failed == {"a.xlsx", "a.sqlite", "a.duckdb"}
            continue
        assert told["rows"] == 0
        for table, codes in told["errors"].items():
            logs = when == "found" and table in ("delta", "iceberg")
            assert set(codes) == {"table-format" if logs else "special-file"}, (kind, table)


def test_a_library_gets_the_file_that_was_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever comes between the look at a file and its opening."""
    path = tmp_path / "a.arrow"
    path.write_bytes(corpus.arrow(corpus.typed(20)))
    content, look = path.read_bytes(), files._same_file

    def replaced(handle: int) -> str | None:
        found = look(handle)
        path.unlink(missing_ok=True)
        os.mkfifo(path)
        return found

    monkeypatch.setattr(files, "_same_file", replaced)
    for mapped in (False, True):
        path.unlink()
        path.write_bytes(content)
        with files.open_random(str(path), mapped=mapped) as source:
            assert source.read() == content
        assert path.is_fifo()


def test_duckdb_gets_the_file_that_was_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "shop.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t AS SELECT 7 AS a")
        connection.execute("CREATE VIEW v AS SELECT a FROM shop.main.t")
    with files.as_local(str(path), beside=(".wal",)) as given:
        path.unlink()
        os.mkfifo(path)
        with duckdb.connect(given, read_only=True) as connection:
            assert connection.execute("SELECT a FROM v").fetchall() == [(7,)]


def test_errors_name_the_file_and_no_link_to_it(tmp_path: Path) -> None:
    (tmp_path / "a.duckdb").write_bytes(fuzzing.seeds()["a.duckdb"][:5000])
    (found,), _ = discover([str(tmp_path)])
    with pytest.raises(SourceError, match=r"a\.duckdb") as caught:
        sources.plan(found, 1 << 30)
    assert "lakescope-" not in caught.value.message
    assert "/dev/fd" not in caught.value.message


def test_what_lies_beside_a_database_is_a_file(tmp_path: Path) -> None:
    for name, ending in (("a.sqlite", "-wal"), ("a.sqlite", "-journal"), ("a.sqlite", "-shm"), ("a.duckdb", ".wal")):
        place = tmp_path / ending
        place.mkdir()
        (place / name).write_bytes(fuzzing.seeds()[name])
        os.mkfifo(place / f"{name}{ending}")
        (found,) = (each for each in discover([str(place)])[0] if each.table == name)
        with pytest.raises(SourceError, match=f"{name}{ending} beside it is not a regular file") as caught:
            sources.plan(found, 1 << 30)
        assert caught.value.code == "special-file"


def test_a_folder_whose_manifest_is_a_pipe_is_listed(tmp_path: Path) -> None:
    (tmp_path / "segments").mkdir()
    for name in ("manifest.json", ".lock"):
        os.mkfifo(tmp_path / name)
    (tmp_path / "a.csv").write_text("a\n1\n")
    (tmp_path / "staging").mkdir()
    ran = _ended("from lakescope.sources.discover import discover; print(len(discover([sys.argv[1]])[0]))", tmp_path)
    assert ran == "1"


def test_a_log_that_leads_to_a_pipe_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A deletion vector may lie anywhere, and the library that reads it opens it by itself."""
    log = tmp_path / "t" / "_delta_log"
    deltalake.write_deltalake(
        log.parent, pa.table({"a": [1, 2, 3]}), configuration={"delta.enableDeletionVectors": "true"}
    )
    lines = (log / f"{0:020}.json").read_text().splitlines()
    (add,) = (body["add"] for line in lines if "add" in (body := json.loads(line)))
    os.mkfifo(tmp_path / "pipe.bin")
    vector = {"storageType": "p", "pathOrInlineDv": f"file://{tmp_path}/pipe.bin", "offset": 1, "sizeInBytes": 34}
    actions: list[dict[str, Any]] = [{"remove": {"path": add["path"], "dataChange": True, "deletionTimestamp": 1}}]
    actions.append({"add": {**add, "deletionVector": {**vector, "cardinality": 1}}})
    (log / f"{1:020}.json").write_text("".join(json.dumps(action) + "\n" for action in actions))
    (found,), _ = discover([str(log.parent)])
    (unit,) = sources.plan(found, 1 << 30)
    monkeypatch.setattr(limits, "LIBRARY_SECONDS", 0.5)
    with pytest.raises(SourceError, match="given up"):
        list(sources.read(unit, lambda problem: None))
    # Nor is one opened that lies where it should.
    monkeypatch.undo()
    os.mkfifo(log.parent / "deletion_vector_x.bin")
    with pytest.raises(SourceError, match=r"deletion_vector_x.bin is not a file of the table"):
        list(sources.read(unit, lambda problem: None))


def test_logs_and_metadata_of_any_size_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file without blocks may have any size."""
    replacing.write_lake(tmp_path / "lake")
    monkeypatch.setattr(limits, "METADATA", 1 << 20)
    manifest = next((tmp_path / "lake" / "iceberg" / "metadata").glob("snap-*.avro"))
    os.truncate(manifest, 1 << 33)
    found = {each.table: each for each in discover([str(tmp_path / "lake")])[0]}
    with pytest.raises(SourceError, match="bytes, which no honest"):
        sources.plan(found["iceberg"], 1 << 30)
    commit = tmp_path / "lake" / "delta" / "_delta_log" / f"{0:020}.json"
    os.truncate(commit, 1 << 33)
    for place in (tmp_path / "lake" / "iceberg" / "metadata").glob("*.metadata.json"):
        os.truncate(place, 1 << 33)
    told = {each.table: each.detail for each in discover([str(tmp_path / "lake")])[1] if each.code == "table-format"}
    assert set(told) == {"delta", "iceberg"}
    assert all("bytes, which no honest" in detail for detail in told.values())


def test_a_build_goes_on_when_files_are_replaced_in_the_middle(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = tmp_path / "lake"
    lake.mkdir()
    for name in ("pipe", "device", "socket", "loop", "fine"):
        (lake / f"{name}.csv").write_text("a,b\n1,2\n")
    written = build_module.write_plan

    def replaced(*arguments: Any) -> Any:
        monkeypatch.chdir(lake)  # names of sockets are short
        for kind, replacement in replacing.KINDS.items():
            (lake / f"{kind}.csv").unlink()
            replacement(lake / f"{kind}.csv")
        return written(*arguments)

    monkeypatch.setattr(build_module, "write_plan", replaced)
    ends = threading.Timer(120, _open_to_write, [lake / "pipe.csv"])
    ends.start()
    found = lakescope.index(lake, tmp_path / "lake.idx", spark=spark)
    ends.cancel()
    problems = {each["table"]: each["code"] for each in found.problems().to_pylist() if each["severity"] == "error"}
    assert problems == dict.fromkeys(("pipe.csv", "device.csv", "socket.csv", "loop.csv"), "special-file")
    assert found.tables()["table"].to_pylist() == ["fine.csv"]


def _open_to_write(pipe: Path) -> None:
    """Whoever waits for a pipe goes on, and fails the test."""
    os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))


def _ended(program: str, *arguments: object) -> str:
    """What a program prints, in a process that is ended if it waits."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", f"import sys; {program}", *map(str, arguments)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=240, env=environment, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    return ran.stdout.strip()


# The door -------------------------------------------------------------------------------------------------------------

#: Ways to open a file by its path.
_OPENING = {
    *("open", "read_bytes", "read_text", "memory_map", "OSFile", "input_stream", "copyfile", "connect", "from_file"),
    *("ParquetFile", "read_schema", "read_metadata", "read_table", "read_feather", "ORCFile", "ZipFile", "DeltaTable"),
    *("read_excel", "read_csv", "read_parquet", "memmap", "fromfile", "loadtxt", "genfromtxt", "load_file_io"),
}
#: Rooms that open what this package wrote, or what whoever asks has named; never what a lake holds.
_OTHER_ROOMS = {"store", "show", "demo", "faces"}

#: What opens files elsewhere, by why it may.
_ALLOWED = {
    "the door": {
        f"sources/io/files.py: {call}" for call in ("open", "os.open", "copy.open", "pa.memory_map", "pa.OSFile")
    },
    "given what came through the door": {
        *("sources/formats/parquet.py: pq.ParquetFile", "sources/formats/orc.py: ORCFile"),
        "sources/formats/excel.py: zipfile.ZipFile",
        *(
            "sources/formats/excel.py: fastexcel.read_excel",
            "sources/discover.py: zipfile.ZipFile",
            "sources/formats/arrow_ipc.py: read_table",
        ),
        *("sources/databases/sqlite.py: sqlite3.connect", "sources/databases/duckdb_file.py: duckdb.connect"),
        *("search/reading_code.py: pq.read_schema", "sources/lakehouses/iceberg_files.py: self.open"),
    },
    "looked through before, and for a limited time": {"sources/lakehouses/delta.py: DeltaTable"},
    "an index": {"__init__.py: Lake.open", "lake.py: Lake.open"},
    "no file of a lake: the system's, this package's, a build's own, or one that whoever asks has named": {
        *("sources/io/limits.py: open", "sources/databases/postgres.py: connect", "logs.py: open", "logs.py: os.open"),
        *("sketches/hyperloglog.py: files('lakescope.sketches').joinpath('hll_bias.f32').read_bytes",),
        *("build/inverted.py: pa.memory_map", "build/plan.py: pa.memory_map", "build/session.py: os.open"),
        *("build/java.py: (home / 'release').read_text", "build/java.py: path.read_text"),
        *("build/progress.py: path.read_text", "build/progress.py: log.read_text"),
        *("build/session.py: log.read_text", "build/shipping.py: each.read_text"),
        *("build/shipping.py: zipfile.ZipFile", "build/shipping.py: path.read_bytes"),
        *("build/shipping.py: archive.read_bytes", "engines/headers/coherence.py: Path(path).open"),
        *("engines/headers/export.py: self._path.open", "engines/transforms/plan.py: Path(path).read_text"),
    },
}


def test_there_is_one_door_to_the_files_of_a_lake() -> None:
    root = Path(lakescope.__file__).parent
    found = {
        f"{path.relative_to(root).as_posix()}: {called}"
        for path in root.rglob("*.py")
        if path.relative_to(root).parts[0] not in _OTHER_ROOMS
        for called in _openings(ast.parse(path.read_text("utf-8")))
    }
    assert found == set().union(*_ALLOWED.values())


def _openings(tree: ast.Module) -> Iterator[str]:
    """What is called, or handed on, that opens files by their path."""
    own = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("lakescope"):
            own |= {alias.name for alias in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called.rpartition(".")[2] in _OPENING and called not in own:
                yield called
