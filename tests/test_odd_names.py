"""Files of any name that a file system takes are read again by every question, each as itself."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lakescope
from lakescope.demo.xlsx import write_xlsx
from lakescope.errors import BadRequest
from lakescope.lake import Lake
from lakescope.sources.io import files
from lakescope.sources.io.locations import TableLocation, catalogue_uri, file_uri, located, part_name, readings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMES = [
    *(b"caf\xe9.csv", rb"caf\xe9.csv", b"new\nline.csv", b"bell\x07\x1b[31m.csv", b"-dash.csv", b"per%cent%E9.csv"),
    *(b"a::b.csv", b"a[1].csv", b"star*.csv", b"what?.csv", b"hash#.csv", b"caf\xe9 s::d.db", b"plain::s.db"),
    *(
        b"caf\xe9.jsonl",
        b"caf\xe9.parquet",
        b"caf\xe9.xlsx",
        b"f\xe9lder.parquet/part-0\xe9.parquet",
        b"d\xe9/caf\xe9.csv",
    ),
    *(b"book.db", b"book.db::t"),
]


def write(path: str, number: int) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder, "plain")
        write_plain(plain, Path(path).suffix, number)
        shutil.move(plain, path)


def write_plain(path: Path, ending: str, number: int) -> None:
    ids, who = [f"F{number:02}-{row:03}" for row in range(40)], [f"n{row % 7}" for row in range(40)]
    table = pa.table({"id": ids, "who": who})
    if ending == ".parquet":
        pq.write_table(table, path)
    elif ending == ".xlsx":
        write_xlsx(path, {"Sheet": table})
    elif ending == ".jsonl":
        path.write_text("".join(f"{json.dumps(row)}\n" for row in table.to_pylist()))
    elif ending in (".db", ".db::t"):
        with closing(sqlite3.connect(path)) as made:
            for name in ("t", "a::b"):
                made.execute(f'CREATE TABLE "{name}" (id TEXT, who TEXT)')
                made.executemany(f'INSERT INTO "{name}" VALUES (?, ?)', [(each + name, "n") for each in ids])
            made.commit()
    else:
        path.write_text("".join(f"{left},{right}\n" for left, right in [("id", "who"), *zip(ids, who, strict=True)]))


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Lake:
    root = tmp_path_factory.mktemp("odd") / "lake"
    for number, name in enumerate(NAMES):
        write(os.fsdecode(os.fsencode(root) + b"/" + name), number)
    return lakescope.index(root, root.with_suffix(".idx"), spark=spark)


def first_ids(lake: Lake) -> dict[str, str]:
    """The first key of every table, as its file has it now."""
    return {name: lake.head(name, 1)["id"][0].as_py() for name in lake.tables()["table"].to_pylist()}


def test_every_file_is_a_table_of_its_own_and_is_read_again_as_itself(lake: Lake) -> None:
    found = first_ids(lake)
    assert len(set(found.values())) == len(found) == len(NAMES) + 4  # of which four are databases with two tables
    for name, first in found.items():
        profile = lake.profile(name).column("id")
        assert profile["minimum"] == first


def test_questions_that_read_a_table_take_any_name(lake: Lake) -> None:
    for name in lake.tables()["table"].to_pylist():
        assert lake.joined(name, "id", name, "id").matched == 40
        assert lakescope.dependencies(lake.location(name))
        assert lakescope.read(lake.location(name)).num_rows == 40
        assert len(lake.joinable(name, on="who", k=3, verify=True)) == 3
        for dialect in ("duckdb", "polars", "spark", "sql"):
            code = lake.join_code(name, lake.joinable(name, on="who", k=1)[0], dialect)
            code.encode()
            assert all(line.startswith("#") or "\x1b" not in line for line in code.splitlines())


def test_nothing_changed_is_nothing_to_update_and_what_goes_is_removed_alone(
    lake: Lake, tmp_path: Path, spark: SparkSession
) -> None:
    root = tmp_path / "caf\udce9 lake"  # the name of the root, too
    shutil.copytree(Path(lake.tables()["uri"][0].as_py()).parent, root)
    own = lakescope.index(root, tmp_path / "idx", spark=spark)
    assert own.update().nothing
    for gone in ("caf\udce9.csv", "star*.csv"):
        Path(root, gone).unlink()
    write(f"{root}/caf\udce9.jsonl", 77)
    before = first_ids(lake)
    changes = lakescope.open(tmp_path / "idx").update()
    assert sorted(changes.removed) == [
        r"caf\xe9.csv~2" if before[r"caf\xe9.csv"] == "F01-000" else r"caf\xe9.csv",
        "star*.csv",
    ]
    assert (changes.changed, changes.added) == ((r"caf\xe9.jsonl",), ())
    after = first_ids(lakescope.open(tmp_path / "idx"))
    assert (after[r"caf\xe9.jsonl"], len(after)) == ("F77-000", len(before) - 2)


def test_a_table_that_is_gone_is_named_without_its_path(tmp_path: Path, spark: SparkSession) -> None:
    for number, name in enumerate(("a[1].csv", "caf\udce9.csv", "a1.csv")):
        write(f"{tmp_path}/lake/{name}", number)
    lake = lakescope.index(tmp_path / "lake", tmp_path / "idx", spark=spark)
    for name in ("a[1].csv", "caf\udce9.csv"):
        (tmp_path / "lake" / name).unlink()
    for table in ("a[1].csv", r"caf\xe9.csv"):
        # Not the file that the name would mean were it a pattern.
        with pytest.raises(BadRequest, match="is not there any more") as caught:
            lake.head(table)
        assert str(tmp_path) not in str(caught.value)
        assert table in str(caught.value)


@given(st.binary(min_size=1, max_size=40), st.text(max_size=10))
def test_any_path_is_read_back_from_what_is_kept_of_it(name: bytes, part: str) -> None:
    path = os.fsdecode(b"/lake/" + name.replace(b"\0", b"").replace(b"/", b"") + b".db")
    kept = catalogue_uri(path)
    kept.encode()
    assert files.local_path(kept) == path
    assert files.local_path(file_uri(path)) == path
    shown = files.readable(path.removeprefix("/lake/"))
    table = f"{shown}::{part}" if part else shown
    place = located(table, kept)
    assert part_name(table, kept) == part
    assert pickle.loads(pickle.dumps(place)).table == table
    assert path in [files.local_path(file) for file, read in readings(place) if read == part][:1]


def test_two_paths_are_never_kept_alike() -> None:
    paths = ["/l/caf\udce9.csv", r"/l/caf\xe9.csv", "/l/caf%E9.csv", "/l/café.csv", "/l/file:/l/caf%E9.csv"]
    assert len({catalogue_uri(path) for path in paths}) == len(paths)


def test_a_location_is_text() -> None:
    place = TableLocation("/a.csv", "a.csv")
    assert (place, repr(place), type(str(place))) == ("/a.csv", "'/a.csv'", str)
