"""The index on disk: atomic publish, one writer, checksums, refusal of damage by name."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakescope.errors import BadRequest, IndexDamaged, IndexLocked, LakescopeError, NotFound
from lakescope.lake import Lake
from lakescope.store import Index, IndexWriter
from lakescope.store import index as index_module
from lakescope.store.manifest import MANIFEST, Manifest
from lakescope.store.records import records_of
from lakescope.store.segment import SCHEMAS, ShardWriter, read_parts, record_batch, rows_of
from lakescope.store.table_cache import TableCache

SUMMARY = {"tables": 1, "columns": 0, "rows": 0, "bytes": 0, "seconds": 0.0}


def problem(table: str, code: str = "odd") -> dict[str, Any]:
    return {"table": table, "severity": "warning", "code": code, "detail": "text", "count": 1}


def publish(path: Path, *tables: str) -> Manifest:
    """An index that holds only problems, which are enough to tell generations apart."""
    with IndexWriter(path) as writer:
        shard = ShardWriter(writer.staging, "problems")
        for table in tables:
            shard.add(problem(table))
        file = shard.close()
        return writer.publish([file] if file else [], version="test", sources=["somewhere"], summary=SUMMARY)


def names(index: Index) -> list[str]:
    return [str(name) for name in index.catalog("problems")["table"].to_pylist()]


def test_publish_replaces_the_generation_before(tmp_path: Path) -> None:
    path = tmp_path / "x.idx"
    assert publish(path, "a").generation == 1
    before = Index(path)
    assert publish(path, "b", "c").generation == 2
    assert names(Index(path)) == ["b", "c"]
    assert before.manifest.generation == 1
    assert names(before) == ["a"], "who opened the generation before has it mapped"
    assert len(list((path / "segments").iterdir())) == 1
    assert not (path / "staging").exists()
    assert not list(path.glob(f"{MANIFEST}.*"))


def test_an_open_reader_keeps_what_it_has_read(tmp_path: Path) -> None:
    path = tmp_path / "x.idx"
    publish(path, "a")
    reader = Index(path)
    assert names(reader) == ["a"]
    publish(path, "b")
    assert names(reader) == ["a"]


def test_a_failed_build_leaves_the_old_index(tmp_path: Path) -> None:
    path = tmp_path / "x.idx"
    publish(path, "a")

    def fail() -> None:
        with IndexWriter(path) as writer:
            shard = ShardWriter(writer.staging, "problems")
            shard.add(problem("b"))
            shard.close()
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fail()
    assert names(Index(path)) == ["a"]
    assert not (path / "staging").exists()


def test_a_directory_of_the_user_outlives_a_failed_first_build(tmp_path: Path) -> None:
    path = tmp_path / "mine"
    path.mkdir()
    with pytest.raises(RuntimeError, match="stop"), IndexWriter(path):
        raise RuntimeError("stop")
    assert list(path.iterdir()) == []


@pytest.mark.parametrize(
    "foreign",
    ["manifest.json", "staging/notes.txt", "segments/a.csv", ".lock", "manifest.json.bak", "anything"],
)
def test_what_is_not_an_index_is_never_written_to(tmp_path: Path, foreign: str) -> None:
    path = tmp_path / "theirs"
    (path / foreign).parent.mkdir(parents=True)
    (path / foreign).write_text('{"name": "a web page", "files": []}')
    with pytest.raises(BadRequest, match="is not an index"), IndexWriter(path):
        pass
    assert [str(file.relative_to(path)) for file in path.rglob("*") if file.is_file()] == [foreign]


def test_a_damaged_index_can_be_built_again(tmp_path: Path) -> None:
    path = tmp_path / "x.idx"
    publish(path, "a")
    (path / MANIFEST).write_text("gone")
    assert publish(path, "b").generation == 1
    assert len(list((path / "segments").iterdir())) == 1


def test_a_lock_that_was_removed_meanwhile_is_taken_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The writer before removes its lock file when nothing was published; who waited on it must not go on with it."""
    path = tmp_path / "x.idx"
    path.mkdir()
    opened: list[int] = []
    plain = os.open

    def open_and_lose(name: Any, *arguments: Any) -> int:
        handle = plain(name, *arguments)
        if str(name).endswith(".lock"):
            opened.append(handle)
            if len(opened) == 1:
                Path(name).unlink()
        return handle

    monkeypatch.setattr(os, "open", open_and_lose)
    with IndexWriter(path):
        assert len(opened) == 2
        with pytest.raises(IndexLocked), IndexWriter(path):
            pass


def test_a_place_that_cannot_be_written_to_is_a_bad_request(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadRequest, match="cannot write an index to"), IndexWriter(tmp_path / "file" / "x.idx"):
        pass


def test_a_failed_first_build_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x.idx"
    with pytest.raises(RuntimeError, match="stop"), IndexWriter(path):
        raise RuntimeError("stop")
    assert not path.exists()


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "x.idx"
    publish(path, "a")
    with IndexWriter(path), pytest.raises(IndexLocked, match=f"process {os.getpid()}"), IndexWriter(path):
        pass
    assert publish(path, "b").generation == 2


def test_the_lock_dies_with_its_process(tmp_path: Path) -> None:
    path = tmp_path / "x.idx"
    publish(path, "a")
    code = (
        "import os, sys\n"
        "from lakescope.store import IndexWriter\n"
        "IndexWriter(sys.argv[1]).__enter__()\n"
        "os.kill(os.getpid(), 9)\n"
    )
    killed = subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    assert killed.returncode == -9
    assert list((path / "staging").iterdir())
    assert publish(path, "b").generation == 2
    assert not (path / "staging").exists()


@pytest.mark.parametrize("damage", ["truncated", "flipped", "missing"])
def test_damage_is_refused_by_name(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "x.idx"
    file = path / publish(path, *(f"table {i}" for i in range(100))).files[0].path
    data = bytearray(file.read_bytes())
    if damage == "truncated":
        file.write_bytes(data[:-10])
    elif damage == "missing":
        file.unlink()
    else:
        data[len(data) // 4] ^= 0xFF
        file.write_bytes(data)
    if damage == "flipped":
        index = Index(path)
        assert index.verify() == [f"{file} is damaged: its checksum does not match"]
        with pytest.raises(IndexDamaged, match=file.name):
            index.catalog("problems")
    else:
        with pytest.raises(IndexDamaged, match=file.name):
            Index(path)


_FEW_FILES = """
import os, resource, sys
from lakescope.store import Index
least = len(os.listdir("/proc/self/fd")) + 8
resource.setrlimit(resource.RLIMIT_NOFILE, (least, least))
index = Index(sys.argv[1])
print(len(index.manifest.files), index.catalog("problems").num_rows)
"""


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are counted in /proc")
def test_an_index_may_have_more_files_than_may_be_open(tmp_path: Path) -> None:
    """A file of an index takes no handle while it is mapped."""
    with IndexWriter(tmp_path / "i") as writer:
        files = []
        for number in range(20):
            shard = ShardWriter(writer.staging, "problems")
            shard.add(problem(f"t{number}"))
            file = shard.close()
            assert file is not None
            files.append(file)
        writer.publish(files, version="test", sources=["somewhere"], summary=SUMMARY)
    command = [sys.executable, "-c", _FEW_FILES, str(tmp_path / "i")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["20", "20"], done.stdout + done.stderr


def test_every_flipped_byte_of_the_manifest_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "x.idx"
    publish(path, "a")
    manifest = path / MANIFEST
    whole = manifest.read_bytes()
    for position in range(0, len(whole), 7):
        damaged = bytearray(whole)
        damaged[position] ^= 0x01
        manifest.write_bytes(damaged)
        try:
            found = Manifest.load(path)
        except (IndexDamaged, BadRequest):
            continue
        # Only white space may change without consequence.
        assert chr(whole[position]).isspace() or found.dump().encode() == whole
    manifest.write_bytes(whole)
    assert Manifest.load(path).generation == 1


def test_other_formats_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.idx"
    publish(path, "a")
    body = json.loads((path / MANIFEST).read_text())
    body["format"] = 99
    (path / MANIFEST).write_text(json.dumps(body))
    with pytest.raises(IndexDamaged, match="format 99"):
        Index(path)


def test_what_is_no_index(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="there is no index"):
        Index(tmp_path / "nothing")
    with pytest.raises(BadRequest, match="not a Lakescope index"):
        Index(tmp_path)
    (tmp_path / "file").write_text("x")
    with pytest.raises(BadRequest, match="is a file"), IndexWriter(tmp_path / "file"):
        pass
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.doc").write_text("x")
    with pytest.raises(BadRequest, match="not empty"), IndexWriter(tmp_path / "full"):
        pass
    assert (tmp_path / "full" / "thesis.doc").exists()


def test_only_the_owner_may_read(tmp_path: Path) -> None:
    path = tmp_path / "x.idx"
    publish(path, "a")
    assert path.stat().st_mode & 0o077 == 0


def test_shards_are_bounded_row_groups_and_rows_are_found(tmp_path: Path) -> None:
    shard = ShardWriter(tmp_path, "problems")
    for i in range(1500):
        shard.add(problem(f"t{i // 3:04d}"))
    file = shard.close()
    assert file is not None
    assert file.rows == 1500
    source = pq.ParquetFile(tmp_path / file.path)
    assert source.num_row_groups == 3
    catalog = source.read()
    assert rows_of(catalog, "t0123").num_rows == 3
    assert rows_of(catalog, "nowhere").num_rows == 0
    assert rows_of(catalog, "").num_rows == 0


def test_small_batches_share_a_row_group_in_order(tmp_path: Path) -> None:
    shard = ShardWriter(tmp_path, "problems")
    for i in range(300):
        shard.add_batch(record_batch([problem(f"t{(37 * i) % 300:03d}")] * 4, SCHEMAS["problems"]))
    shard.add(problem("last"))
    file = shard.close()
    assert file is not None
    source = pq.ParquetFile(tmp_path / file.path)
    groups = [source.metadata.row_group(number).num_rows for number in range(source.num_row_groups)]
    assert groups == [512, 512, 177]
    for number in range(300):
        found = read_parts(tmp_path / file.path, table=f"t{number:03d}")
        assert found["table"].to_pylist() == [f"t{number:03d}"] * 4


def test_records_become_arrow_as_pyarrow_would_make_them() -> None:
    schema = SCHEMAS["columns"]
    full = {
        **{"table": "t", "column": "c", "position": 0, "distinct": 2, "distinct_exact": True, "mean": 1.5},
        **{"top": [{"value": "a", "count": 2}, {"value": None, "count": 1}], "quartiles": [1.0, 2.0, 3.0]},
        **{"histogram": [{"low": 0.0, "high": 1.0, "count": 3}], "sample": [], "kinds": {"text": 2, "date": 1}},
    }
    for records in ([full], [full, {"table": "u"}, full], [{"table": "u"}], []):
        made = record_batch(records, schema)
        made.validate(full=True)
        assert made.to_pylist() == pa.RecordBatch.from_pylist(records, schema).to_pylist()


def test_a_lake_without_a_problem_is_read_without_pandas(tmp_path: Path) -> None:
    publish(tmp_path / "x.idx", "a")
    asked = "lake.tables(), lake.columns(), lake._index.past('past'), lake._index.numbers"
    program = f"import sys; from lakescope.lake import Lake; lake = Lake.open({str(tmp_path / 'x.idx')!r}); {asked}"
    program += "; sys.exit('pandas' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_an_empty_shard_is_no_file(tmp_path: Path) -> None:
    assert ShardWriter(tmp_path, "columns").close() is None
    assert list(tmp_path.iterdir()) == []


def test_records_are_those_of_arrow(demo_index: Lake) -> None:
    """Every kind of value of the catalog, in slices that begin anywhere."""
    for catalog in (demo_index.columns(), demo_index.tables(), demo_index.problems()):
        assert records_of(catalog) == catalog.to_pylist(maps_as_pydicts="strict")
        for start in range(0, catalog.num_rows, 37):
            some = catalog.slice(start, 5)
            assert records_of(some) == some.to_pylist(maps_as_pydicts="strict")
    assert records_of(demo_index.columns().slice(0, 0)) == []


def test_some_fields_are_those_of_the_whole_catalog(demo_index: Lake) -> None:
    whole = Lake.open(demo_index.path).columns()
    for fields in (["table", "column"], ["top", "rows"], ["distinct"]):
        lake = Lake.open(demo_index.path)
        assert lake.columns(fields=fields).equals(whole.select(fields))
        assert lake.columns(fields=fields, type="date").equals(demo_index.columns(type="date").select(fields))
        assert "columns" not in lake._index._cache
    table = whole["table"][0].as_py()
    assert demo_index.columns(table, fields=["mean"]).equals(demo_index.columns(table).select(["mean"]))
    with pytest.raises(NotFound, match="no field named 'colum'"):
        demo_index.columns(fields=["colum"])


def test_a_column_is_read_with_its_row_group_or_with_all(demo_index: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Index(demo_index.path).catalog("columns")
    read, read_group = list[int](), index_module.read_group

    def counted(*arguments: Any) -> pa.Table:
        read.append(arguments[2])
        return read_group(*arguments)

    monkeypatch.setattr(index_module, "read_group", counted)
    for singly in (1_000, 1, 0):
        monkeypatch.setattr(index_module, "CATALOG", replace(index_module.CATALOG, singly=singly))
        index = Index(demo_index.path)
        files = range(len(index.manifest.of_kind("columns")))
        groups = sum(index._groups(place)[0].num_row_groups for place in files)
        for names in (("table", "column", "type"), ("top", "sample")):
            read.clear()
            for number in range(whole.num_rows):
                assert index.column(number, names) == whole.select(names).slice(number, 1).to_pylist()[0]
            assert len(read) == min(singly, groups)
    monkeypatch.setattr(index_module, "CATALOG", replace(index_module.CATALOG, singly=1, most_bytes=0))
    index = Index(demo_index.path)
    for number in range(whole.num_rows):
        index.column(number, ("top",))
    assert index._in_memory("columns", ("top",)) is None, "what is too large is not read of all"


def test_many_threads_read_fields_once(demo_index: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    index, read = Index(demo_index.path), list[str]()
    at_once, reading = threading.Barrier(8), Index._read

    def slowly(self: Index, kind: str, *more: Any, **fields: Any) -> pa.Table:
        read.append(kind)
        time.sleep(0.05)
        return reading(self, kind, *more, **fields)

    def ask(_: int) -> pa.Table:
        at_once.wait()
        return index.fields("columns", ("top", "sample"))

    monkeypatch.setattr(Index, "_read", slowly)
    with ThreadPoolExecutor(8) as threads:
        first, *others = threads.map(ask, range(8))
    assert read == ["columns"]
    assert all(each == first for each in others)


def test_a_join_reads_no_more_of_the_catalog_than_it_needs(demo_index: Lake) -> None:
    lake = Lake.open(demo_index.path)
    first = lake.columns(fields=["table", "column"]).slice(0, 1).to_pylist()[0]
    lake.joinable(first["table"], on=first["column"], k=5)
    assert "columns" not in lake._index._cache


def test_records_of_values_that_are_missing() -> None:
    table = pa.table(
        {
            "n": pa.array([1, None, 3], pa.int64()),
            "lists": pa.array([[1.5], None, []], pa.list_(pa.float64())),
            "structs": pa.array([{"a": 1}, None, {"a": None}], pa.struct([("a", pa.int64())])),
            "maps": pa.array([[("x", 1)], None, []], pa.map_(pa.string(), pa.int64())),
            "nested": pa.array([[{"a": "x"}], None, [{"a": None}, None]], pa.list_(pa.struct([("a", pa.string())]))),
        }
    )
    for some in (table, table.slice(1), pa.concat_tables([table, table.slice(2)])):
        assert records_of(some) == some.to_pylist(maps_as_pydicts="strict")


def test_an_index_is_not_damaged_because_no_file_may_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.idx"
    publish(path, "a")

    def refuse(_: str) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr("lakescope.store.mapped.pa.memory_map", refuse)
    with pytest.raises(LakescopeError, match="no more files may be open") as told:
        Index(path)
    assert not isinstance(told.value, IndexDamaged)


def test_what_was_read_lately_is_kept_up_to_so_many_bytes() -> None:
    sizes = {"a": 40, "b": 40, "c": 40, "d": 500}
    tables = {name: pa.table({"n": pa.array([0] * size, pa.int8())}) for name, size in sizes.items()}
    read: list[str] = []

    def get(name: str) -> pa.Table:
        return kept.get(name, lambda: read.append(name) or tables[name])  # type: ignore[func-returns-value]

    kept = TableCache(100)
    for name in "abab":
        assert get(name) is tables[name]
    assert read == ["a", "b"]
    get("c")
    get("b")
    assert read == ["a", "b", "c"]
    get("a")
    assert read == ["a", "b", "c", "a"], "what was asked for longest ago went"
    assert get("d") is tables["d"], "what is too large is given and not kept"
    read.clear()
    get("d")
    assert read == ["d"]
