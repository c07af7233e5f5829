"""Hostile lakes and careless surroundings: secrets stay out of what is kept, other people out of the index."""

from __future__ import annotations

import ast
import gzip
import logging
import os
import re
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lakescope
from helpers import bombs
from lakescope import logs, sources
from lakescope.errors import BadRequest, SourceError
from lakescope.sources.discover import discover
from lakescope.sources.formats import csv_file
from lakescope.sources.io import files, limits
from lakescope.sources.io.isolated import Helper
from lakescope.sources.io.redact import parted, scrub, whole, without_secrets
from lakescope.sources.model import Problem, Unit
from lakescope.store import disk
from lakescope.store.index import Index
from lakescope.store.segment import ShardWriter
from lakescope.store.writer import IndexWriter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Secrets --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("uri", "bare"),
    [
        ("s3://KEY:se/cr+et@bucket/x.csv", "s3://bucket/x.csv"),
        ("s3://bucket/a b.csv?secret_key=S and more", "s3://bucket/a b.csv"),
        ("https://account.blob.host/c/x.csv?sv=2024&sig=abc%3D", "https://account.blob.host/c/x.csv"),
        ("https://b.s3.host/x?X-Amz-Credential=A&X-Amz-Signature=0f", "https://b.s3.host/x"),
        ("https://ghp_token@host/x.csv", "https://host/x.csv"),
        ("postgresql://me:p?w@host:5432/db?sslmode=require&password=p", "postgresql://host:5432/db"),
        ("postgresql://me:p:w@host/db", "postgresql://host/db"),
        ("jdbc:postgresql://host/db?user=me&password=p", "jdbc:postgresql://host/db"),
        ("sc://host:15002/;token=abc;user_id=me", "sc://host:15002/"),
        ("s3://bucket/token=abc/part;password=x.csv", "s3://bucket/token=abc/part;password=x.csv"),
        ("https://host:8080?sig=a@b", "https://host:8080"),
        ("abfss://box@a.dfs.host/x.csv?sig=S", "abfss://box@a.dfs.host/x.csv"),
        ("WASBS://box@a.blob.host/x", "WASBS://box@a.blob.host/x"),
        ("abfss://box:S@a.dfs.host/x", "abfss://a.dfs.host/x"),
        ("/local/token=abc/what?.csv", "/local/token=abc/what?.csv"),
        ("spark:db.table", "spark:db.table"),
    ],
)
def test_a_uri_without_secrets(uri: str, bare: str) -> None:
    assert without_secrets(uri) == bare
    assert without_secrets(bare) == bare


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("cannot open 's3://K:S@b/x?y=1' now", "cannot open 's3://b/x' now"),
        ("403 for https://h/x?sig=S (https://u:S@h/y)", "403 for https://h/x (https://h/y)"),
        ("connection host=h password=S dbname=d failed", "connection host=h password=*** dbname=d failed"),
        ("AccountName=a;AccountKey=S==;x=1", "AccountName=a;AccountKey=***;x=1"),
        ("{'aws_secret_access_key': 'S', 'region': 'r'}", "{'aws_secret_access_key': ***, 'region': 'r'}"),
        ("fs.s3a.secret.key=S given", "fs.s3a.secret.key=*** given"),
        ("refused: Authorization: Bearer SSSSSSSSSSSS", "refused: Authorization: Bearer ***"),
        ("no index at s3:/K:S/x@bucket/x.idx", "no index at s3:/bucket/x.idx"),
        ("no abfss://box@a.dfs.host/x?sig=S here", "no abfss://box@a.dfs.host/x here"),
        ("unexpected token: '<' in x.json", "unexpected token: '<' in x.json"),
        ("Couldn't read column 'secret' of the table", "Couldn't read column 'secret' of the table"),
    ],
)
def test_a_text_without_secrets(text: str, shown: str) -> None:
    assert scrub(text) == shown


@pytest.mark.parametrize(
    "text", ["://" * 100_000, "a." * 150_000, "password" * 40_000, "x=" * 100_000, "s3://a:" * 40_000]
)
def test_hostile_texts_are_scrubbed_in_linear_time(text: str) -> None:
    """In quadratic time this would not end today."""
    assert isinstance(scrub(text), str)


@pytest.mark.parametrize(
    ("location", "root", "inside"),
    [
        ("abfss://box@a.dfs.host/t/x", "abfss://box@a.dfs.host/t", True),
        ("abfss://other@a.dfs.host/t/x", "abfss://box@a.dfs.host/t", False),
        ("abfss://box@b.dfs.host/t/x", "abfss://box@a.dfs.host/t", False),
        ("wasb://other@a.blob.host/t/x", "wasb://box@a.blob.host/t?k=v", False),
        ("s3://K:S@bucket/t/x", "s3://bucket/t", True),
        ("s3://bucket/t/x", "s3://K:S@bucket/t?region=r", True),
        ("s3://bucket/tx", "s3://bucket/t", False),
    ],
)
def test_what_is_before_the_host_is_a_container_of_azure_and_elsewhere_a_secret(
    location: str, root: str, inside: bool
) -> None:
    assert files.is_below(location, root) is inside
    assert whole(*parted(location)) == location
    bare = files.display(location)
    assert ("other@" in bare, "K:S" in bare) == ("other@" in location, False)


_WORD = st.text("abcXYZ019_-.~", min_size=1, max_size=8)


@settings(deadline=None)
@given(
    scheme=st.sampled_from(["s3", "https", "postgresql", "gs", "abfss"]),
    user=_WORD,
    secret=st.text("abcXYZ+/?:;=%&#", min_size=1, max_size=12).map(lambda text: f"SEKRET{text}"),
    path=st.lists(_WORD, max_size=3),
)
def test_whatever_a_secret_is_made_of_it_goes(scheme: str, user: str, secret: str, path: list[str]) -> None:
    place = "/".join(["host", *path])
    for uri in (f"{scheme}://{user}:{secret}@{place}", f"{scheme}://{place}?{user}={secret}"):
        assert without_secrets(uri) == f"{scheme}://{place}"
        assert "SEKRET" not in scrub(f"cannot read {uri}: no such host")


def test_a_build_with_a_secret_leaves_no_trace_of_it(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    boto3 = pytest.importorskip("boto3")
    moto = pytest.importorskip("moto.server")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    given = {"region_name": "us-east-1", "endpoint_url": f"http://{host}:{port}"}
    client = boto3.client("s3", aws_access_key_id="KEYID", aws_secret_access_key="SEKRET", **given)
    client.create_bucket(Bucket="lake")
    client.put_object(Bucket="lake", Key="data/a.csv", Body=b"id,name\n1,x\n2,y\n")
    client.put_object(Bucket="lake", Key="data/b.parquet", Body=b"PAR1 and no more")
    client.close()
    location = f"s3://KEYID:SEKRET@lake/data?endpoint_override={host}:{port}&scheme=http"
    removed: list[Path] = []
    # The staging area as it is when a build is killed, which removes nothing.
    monkeypatch.setattr(disk.shutil, "rmtree", lambda path, **_: removed.append(Path(path)))
    handler = logs.write_to(str(tmp_path / "log.jsonl"))
    try:
        lake = lakescope.index(location, tmp_path / "x.idx", spark=spark)
    finally:
        monkeypatch.undo()
        logging.getLogger("lakescope").removeHandler(handler)
        handler.close()
        server.stop()
    assert lake.tables()["rows"].to_pylist() == [2]
    assert lake.problems()["table"].to_pylist() == ["b.parquet"]
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.name == "plan.arrow" for path in written)
    assert [path for path in written if b"SEKRET" in path.read_bytes() or b"KEYID" in path.read_bytes()] == []
    assert lake.info()["sources"] == ["s3://lake/data"]


# Whose index it is ----------------------------------------------------------------------------------------------------


def _published(path: Path, *, share: bool = False) -> None:
    with IndexWriter(path, share=share) as index:
        shard = ShardWriter(index.staging, "problems")
        shard.add(asdict(Problem("t", "info", "nested", "as good as any")))
        file = shard.close()
        assert file is not None
        index.publish([file], version="test", sources=[], summary={})


def _rights(path: Path) -> set[int]:
    return {stat.S_IMODE(each.stat().st_mode) for each in [path, *path.rglob("*")] if each.name != ".lock"}


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_an_index_is_its_owners_alone_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        (tmp_path / "there.idx").mkdir()
        for name in ("new.idx", "there.idx"):
            for _ in range(2):
                _published(tmp_path / name)
                assert _rights(tmp_path / name) == {0o700, 0o600}
                index = Index(tmp_path / name)
                index.remember("found", {})
                index.remember_arrays("more", {"a": np.zeros(3)})
                assert _rights(tmp_path / name) == {0o700, 0o600}
        with IndexWriter(tmp_path / "new.idx") as opened:
            assert _rights(opened.staging.parent) == {0o700}
    finally:
        os.umask(before)


def test_an_index_that_is_shared_stays_so(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        _published(tmp_path / "x.idx", share=True)
        assert _rights(tmp_path / "x.idx") == {0o750, 0o640}
        os.umask(0o077)
        _published(tmp_path / "x.idx")
        assert _rights(tmp_path / "x.idx") == {0o750, 0o640}
        (tmp_path / "x.idx").chmod(0o700)
        _published(tmp_path / "x.idx")
        assert _rights(tmp_path / "x.idx") == {0o700, 0o600}
    finally:
        os.umask(before)


# Bombs ----------------------------------------------------------------------------------------------------------------

#: What each bomb is told as, if it is one that cannot be read to its end.
TOLD = {
    "rows.csv.gz": "archive-bomb",
    "line.csv.gz": "archive-bomb",
    "cell.csv": "giant-cell",
    "quoted.csv": "unclosed-quote",
    "header.csv": "giant-cell",
    "columns.csv": "giant-cell",
    "wide.csv.gz": "giant-cell",
    "lists.parquet": "too-large",
    "line.jsonl": "broken-json",
    "text.json": "broken-json",
    "deep.json": "broken-json",
    "deep.jsonl": "broken-json",
    "empties.json": "broken-json",
    "keys.json.gz": "broken-json",
    "dictionary.parquet": "archive-bomb",
    "page.parquet": "too-large",
    "nulls.parquet": "too-many-rows",
    "nulls.arrow": "too-many-rows",
    "runs.arrow": "too-many-rows",
    "dictionary.arrow": "archive-bomb",
    "corners.xlsx": "damaged",
    "packed.xlsx": "archive-bomb",
    "view.sqlite": "giant-cell",
    "cell.sqlite.gz": "giant-cell",
}
#: Those that are made and refused in no time.
QUICK = ["corners.xlsx", "view.sqlite", "deep.json", "nulls.arrow", "runs.arrow"]


def test_bombs_are_problems_and_take_little_memory(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in [*QUICK, "rows.csv.gz", "cell.sqlite.gz"]]
    for path in paths:
        bombs.MAKERS[path.name](path, 0.02 if path.suffix == ".gz" else 1.0)
    limits = {"LAKESCOPE_FREE_UNPACKED": "4M", "LAKESCOPE_MEMORY": "2G"}
    for path, told in zip(paths, bombs.read(paths, tmp_path, **limits), strict=True):
        expected = TOLD[path.name] if path.name != "cell.sqlite.gz" else "archive-bomb"
        assert expected in told.codes, (path.name, told.problems)
        assert told.grown < 600 * bombs.MB, path.name


@pytest.mark.slow
@pytest.mark.parametrize("name", bombs.MAKERS)
def test_every_bomb_at_its_full_size(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    bombs.MAKERS[name](path, 1.0)
    (told,) = bombs.read([path], tmp_path, timeout=600, LAKESCOPE_MEMORY="1G")
    assert TOLD.get(name) in {*told.codes, None}, told.problems
    assert told.grown < 1200 * bombs.MB
    assert told.batches < 3_000


def test_honest_files_that_pack_well_are_read(tmp_path: Path) -> None:
    """A thousand to one, but no more than any file may have."""
    (tmp_path / "zeros.csv.gz").write_bytes(gzip.compress(b"a,b\n" + b"0,0\n" * 2_000_000))
    found, _ = discover([str(tmp_path)])
    (unit,) = sources.plan(found[0], 1 << 30)
    assert sum(batch.rows for batch in sources.read(unit, lambda problem: None)) == 2_000_000


@pytest.mark.parametrize(
    ("text", "size"), [("", 7), ("100", 100), ("1.5K", 1536), ("2g", 2 << 30), ("1TB", 1 << 40), ("0", 0)]
)
def test_limits_are_set_in_the_environment(monkeypatch: pytest.MonkeyPatch, text: str, size: int) -> None:
    monkeypatch.setenv("LAKESCOPE_ANY", text)
    assert limits.setting("ANY", 7) == size


@pytest.mark.parametrize("text", ["much", "-1", "1X", "1e999"])
def test_limits_that_are_no_sizes(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("LAKESCOPE_ANY", text)
    with pytest.raises(BadRequest, match="is no size"):
        limits.setting("ANY", 7)


def test_a_compressed_file_may_give_so_much_and_no_more() -> None:
    unpacking = limits.Unpacking(100)
    unpacking.add(100)
    with pytest.raises(limits.Unbelievable):
        unpacking.add(1)
    assert limits.Unpacking.of(10).most == limits.FREE_UNPACKED
    assert limits.Unpacking.of(1 << 30).most == limits.MOST_RATIO << 30
    assert limits.Unpacking.of(1 << 40).most == limits.MOST_UNPACKED
    assert limits.Unpacking.of(1 << 40, on_disk=True).most == limits.MOST_UNPACKED_ON_DISK


def test_a_record_that_is_too_long_is_left_out_wherever_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a file is cut into ranges: the others are all there, each once."""
    monkeypatch.setattr(csv_file, "LONGEST_RECORD", 3000)
    monkeypatch.setattr(csv_file, "CHUNK", 1000)
    rows = [f"{number},{'x' * (20_000 if number in (0, 40, 99) else 30)}" for number in range(100)]
    (tmp_path / "t.csv").write_text("id,text\n" + "\n".join(rows) + "\n")
    found, _ = discover([str(tmp_path)])
    problems: list[Problem] = []
    for target in (1 << 30, 30_000):
        problems.clear()
        cells: list[str] = []
        for unit in sources.plan(found[0], target):
            for batch in sources.read(unit, problems.append):
                for column in batch.columns[:1]:
                    ends = zip(column.starts, column.ends, strict=True)
                    cells += [column.data[start:end].tobytes().decode() for start, end in ends]
        assert cells == [str(number) for number in range(100) if number not in (0, 40, 99)]
        told = [(each.code, each.count) for each in problems if each.code == "giant-cell"]
        assert sum(count for _, count in told) == 3


# What is no file ------------------------------------------------------------------------------------------------------


@pytest.fixture
def odd_files(tmp_path: Path) -> Iterator[Path]:
    """A lake of what is no file, with a secret beside it; whoever blocks is interrupted."""
    folder = tmp_path / "lake"
    folder.mkdir()
    (tmp_path / "secret.csv").write_text("key,value\n1,2\n")
    os.mkfifo(folder / "pipe.csv")
    (folder / "zero.csv").symlink_to("/dev/zero")
    (folder / "out.csv").symlink_to("../secret.csv")
    (folder / "dots.csv").symlink_to(f"../lake/../{folder.name}/../secret.csv")
    (folder / "loop").symlink_to("loop")
    (folder / "..csv").write_text("hidden\n1\n")
    (folder / "a..csv").write_text("x,y\n1,2\n")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / "socket.csv"))
        signal.alarm(20)
        yield folder
        signal.alarm(0)


def test_nothing_but_files_inside_the_lake_is_read(odd_files: Path) -> None:
    found, problems = discover([str(odd_files)])
    assert [each.table for each in found] == ["a..csv"]
    told = {each.table: each.code for each in problems}
    assert told == {
        **{"pipe.csv": "special-file", "socket.csv": "special-file", "zero.csv": "symlink-outside"},
        **{"out.csv": "symlink-outside", "dots.csv": "symlink-outside", "loop": "unreadable", "lake": "hidden-files"},
    }


def test_what_took_the_place_of_a_file_is_not_opened(odd_files: Path) -> None:
    for name in ("pipe.csv", "zero.csv", "socket.csv"):
        place = str(odd_files / name)
        for opening in (files.open_stream, files.open_random, partial(files.open_random, mapped=True)):
            with pytest.raises(OSError, match=r"not a regular file|No such device"):
                opening(place)
        with pytest.raises(OSError, match="not a regular file"), files.as_local(place):
            pass
        for reader in ("csv", "json", "parquet", "arrow", "orc", "excel", "sqlite"):
            unit = Unit("t", reader, place, 1, options={"name": "t", "view": False, "sheet": 0})
            with pytest.raises(SourceError):
                list(sources.read(unit, lambda problem: None))


# Pickles --------------------------------------------------------------------------------------------------------------

_AUDITED = """
import pickle, sys
from collections import OrderedDict
from pathlib import Path

seen = []

def hook(event, arguments):
    if event == "pickle.find_class":
        frame, files = sys._getframe(1), []
        while frame is not None:
            files.append(frame.f_code.co_filename)
            frame = frame.f_back
        # numba keeps what it compiled in pickles of its own, beside the source.
        if not any("numba" in Path(file).parts for file in files):
            seen.append(arguments)

sys.addaudithook(hook)
pickle.loads(pickle.dumps(OrderedDict()))
assert len(seen) == 1, seen
seen.clear()
from helpers import fuzzing
print(fuzzing._ask(fuzzing.build_index(Path(sys.argv[1]))))
assert not seen, seen
"""


def test_building_and_asking_loads_no_pickle(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    program = [sys.executable, "-c", _AUDITED, str(tmp_path)]
    ran = subprocess.run(program, capture_output=True, text=True, env=environment, timeout=170, check=False)
    assert ran.stdout.split() == ["answered"], ran.stderr[-2000:]


def test_no_module_unpickles_but_the_one_that_ships_tasks() -> None:
    """A task comes from this very build; no file is ever unpickled."""
    root = Path(sources.__file__).parent.parent
    found = []
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            module, _, name = called.rpartition(".")
            dangerous = module in ("pickle", "marshal", "shelve", "cloudpickle", "dill", "joblib") and "load" in name
            lenient = isinstance(node, ast.keyword) and node.arg in ("allow_pickle", "unsafe_allow_object")
            if dangerous or lenient or called in ("eval", "exec", "np.load", "numpy.load"):
                found.append(f"{path.relative_to(root)}: {ast.unparse(node)}")
    assert found == ["build/shipping.py: pickle.loads(self.pickled)"]


_BURNING = """
from lakescope.sources.io import limits
from lakescope.sources.io.isolated import serve

limits.FREE_SECONDS = 1


def answer_questions():
    def answer(question):
        while question["uri"].endswith("slow"):
            pass
        return {"fine": True}, b""

    serve(answer, hint="look at it")
"""


def test_a_file_that_keeps_its_reader_busy_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the time of the processor, so that a busy machine gives up no sooner; the next question is answered."""
    (tmp_path / "burning.py").write_text(_BURNING)
    for name in ("slow", "quick"):
        (tmp_path / name).write_bytes(b"x")
    monkeypatch.syspath_prepend(tmp_path)
    helper = Helper("burning", "answer_questions")
    for _ in range(2):
        assert helper.ask("t", {"uri": str(tmp_path / "quick")})[0]["fine"]
        with pytest.raises(SourceError, match="more memory or time than a file may"):
            helper.ask("t", {"uri": str(tmp_path / "slow")})
    helper.close()


#: Bombs of Parquet that metadata gives away, with what says so.
CLAIMS = {
    "page.parquet": r"cells of [\d,]+ bytes in column 'a': one may have 67,108,864",
    "lists.parquet": r"cells of [\d,]+ bytes in column 'a.list.element': one may have",
    "nulls.parquet": r"claims [\d,]+ rows in",
}


@pytest.mark.parametrize("name", CLAIMS)
def test_bombs_of_parquet_are_refused_before_anything_is_decoded(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / name
    bombs.MAKERS[name](path, {"page.parquet": 0.07, "lists.parquet": 0.4, "nulls.parquet": 1.0}[name])
    assert re.search(rf"{CLAIMS[name]}.* {TOLD[name]}$", _refused_unread(path, monkeypatch))


def _refused_unread(path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Why a file of Parquet is refused, and under which code; no batch of it is read."""
    decoded = []
    monkeypatch.setattr("pyarrow.parquet.ParquetFile.iter_batches", lambda *_, **__: iter(decoded.append(1) or ()))
    (found,), _ = discover([str(path)])
    (unit,) = sources.plan(found, 1 << 30)
    with pytest.raises(SourceError) as caught:
        list(sources.read(unit, lambda problem: None))
    assert decoded == []
    return f"{caught.value.message} {caught.value.code}"


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (pa.table({f"c{number}": pa.nulls(50_000, pa.int8()) for number in range(2_000)}), "claims 100,000,000 cells"),
        (pa.table({"a": pa.array([[0] * 50] * 20_000)}), "claims 1,000,000 values in lists"),
    ],
)
def test_columns_and_lists_that_take_no_bytes_are_counted(
    table: pa.Table, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(table, tmp_path / "a.parquet", compression="zstd", row_group_size=table.num_rows)
    monkeypatch.setattr(limits, "FREE_CELLS", 1 << 20)
    monkeypatch.setattr(limits, "CELLS_PER_BYTE", 1)
    monkeypatch.setattr(limits, "FREE_VALUES", 1 << 16)
    monkeypatch.setattr(limits, "VALUES_PER_BYTE", 10)
    assert said in _refused_unread(tmp_path / "a.parquet", monkeypatch)


def test_lists_of_honest_files_are_read(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": pa.array([[0] * 100_000] * 10), "b": ["x" * 1_000_000] * 10}), tmp_path / "a.parquet")
    (found,), _ = discover([str(tmp_path / "a.parquet")])
    (unit,) = sources.plan(found, 1 << 30)
    assert sum(batch.rows for batch in sources.read(unit, lambda problem: None)) == 10
