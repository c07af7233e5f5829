"""Readers of all formats: what goes in comes out, in any cut, and damage is told."""

from __future__ import annotations

import bz2
import contextlib
import datetime as dt
import gzip
import io
import json
import random
import shutil
import sqlite3
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pyarrow as pa
import pyarrow.dataset
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from lakescope import sources
from lakescope.build.scan import TablePart, TableScan
from lakescope.errors import BadRequest, SourceError
from lakescope.sources import names
from lakescope.sources.databases import database, duckdb_file
from lakescope.sources.databases.journals import journals_of
from lakescope.sources.discover import discover
from lakescope.sources.formats import arrow_batches, arrow_ipc, json_lines
from lakescope.sources.formats import orc as orc_reader
from lakescope.sources.frames import as_batches
from lakescope.sources.io import files
from lakescope.sources.io.content import content_at
from lakescope.sources.model import Batch, Problem, Unit
from lakescope.sources.source_table import SourceTable

Rows = list[dict[str, str | None]]
_ROWS = 5000


def _cells(batch: Batch) -> Rows:
    rows: Rows = [{} for _ in range(batch.rows)]
    for column in batch.columns:
        for row, start, end in zip(rows, column.starts.tolist(), column.ends.tolist(), strict=True):
            row[column.name] = None if end < 0 else column.data[start:end].tobytes().decode()
    return rows


def _read(units: list[Unit]) -> tuple[Rows, list[Problem]]:
    told: list[Problem] = []
    rows: Rows = []
    for unit in units:
        travelled = Unit.from_json(unit.to_json())
        for batch in sources.read(travelled, told.append):
            assert batch.rows <= 65536
            rows += _cells(batch)
    return rows, told


def _found(path: Path) -> SourceTable:
    found, problems = discover([str(path)])
    assert len(found) == 1, problems
    return found[0]


def _load(path: Path, target: int = 1 << 26) -> tuple[Rows, list[Problem]]:
    return _read(sources.plan(_found(path), target))


def _table(rows: int = _ROWS) -> pa.Table:
    chance = random.Random(1)
    return pa.table(
        {
            "id": range(rows),
            "name": [None if i % 7 == 0 else f"näme {chance.random()}" for i in range(rows)],
            "price": pa.array([Decimal(i) / 100 for i in range(rows)], pa.decimal128(12, 2)),
            "day": [dt.date(2020, 1, 1) + dt.timedelta(days=i % 400) for i in range(rows)],
            "kind": pa.array([("a", "b", None)[i % 3] for i in range(rows)]).dictionary_encode(),
            "tags": [[i, None] if i % 5 else None for i in range(rows)],
            "where": [{"x": i, "deep": {"y": str(i)}} for i in range(rows)],
        }
    )


def _expected(table: pa.Table) -> Rows:
    return [
        {
            "id": str(row["id"]),
            "name": row["name"],
            "price": format(row["price"], ".2f"),
            "day": row["day"].isoformat(),
            "kind": row["kind"],
            "tags": None if row["tags"] is None else json.dumps(row["tags"], separators=(",", ":")),
            "where.x": str(row["where"]["x"]),
            "where.deep.y": row["where"]["deep"]["y"],
        }
        for row in table.to_pylist()
    ]


def _write_parquet(table: pa.Table, path: Path) -> None:
    pq.write_table(table, path, row_group_size=700)


def _write_arrow(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=700)


def _write_stream(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_stream(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=700)


def _write_orc(table: pa.Table, path: Path) -> None:
    place = table.schema.get_field_index("kind")
    table = table.set_column(place, "kind", table["kind"].cast(pa.string()))
    orc.write_table(table, str(path), stripe_size=16 * 1024, batch_size=128)


def _write_json(table: pa.Table, path: Path) -> None:
    rows = [{**row, "price": format(row["price"], ".2f"), "day": str(row["day"])} for row in table.to_pylist()]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


_WRITERS: dict[str, Callable[[pa.Table, Path], None]] = {
    "t.parquet": _write_parquet,
    "t.arrow": _write_arrow,
    "t.ipc": _write_stream,
    "t.orc": _write_orc,
    "t.jsonl": _write_json,
    "t.json": _write_json,
}


@pytest.mark.parametrize("name", _WRITERS)
@pytest.mark.parametrize("target", [1 << 26, 30_000, 999])
def test_units_together_are_the_whole_file(tmp_path: Path, name: str, target: int) -> None:
    table = _table()
    path = tmp_path / name
    _WRITERS[name](table, path)
    units = sources.plan(_found(path), target)
    assert [unit.ordinal for unit in units] == list(range(len(units)))
    assert {unit.count for unit in units} == {len(units)}
    assert sum(unit.size for unit in units) == path.stat().st_size
    assert (len(units) > 1) == (target < path.stat().st_size and name != "t.ipc")
    rows, told = _read(units)
    assert rows == _expected(table)
    assert {problem.code for problem in told} == {"nested"}
    assert {problem.table for problem in told} == {name}


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow", "t.ipc", "t.orc"])
def test_a_table_without_rows_shows_its_columns(tmp_path: Path, name: str) -> None:
    _WRITERS[name](_table().slice(0, 0), tmp_path / name)
    (unit,) = sources.plan(_found(tmp_path / name), 1 << 20)
    batches = list(sources.read(unit, lambda problem: None))
    assert [batch.rows for batch in batches] == [0]
    assert [column.name for column in batches[0].columns][:3] == ["id", "name", "price"]


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow", "t.ipc", "t.orc", "t.jsonl"])
@pytest.mark.parametrize("ending", ["gz", "bz2"])
def test_compressed_files_of_any_format(tmp_path: Path, name: str, ending: str) -> None:
    table = _table(50)
    _WRITERS[name](table, tmp_path / name)
    packed = (gzip if ending == "gz" else bz2).compress((tmp_path / name).read_bytes())
    (tmp_path / f"{name}.{ending}").write_bytes(packed)
    assert _load(tmp_path / f"{name}.{ending}", 10)[0] == _expected(table)


@pytest.mark.filterwarnings("ignore:Feather V1:DeprecationWarning")
def test_feather_1(tmp_path: Path) -> None:
    table = pa.table({"a": [1, 2], "b": ["x", None]})
    try:
        pyarrow.feather.write_feather(table, str(tmp_path / "old.feather"), version=1)
    except (ValueError, TypeError, NotImplementedError):
        pytest.skip("this pyarrow does not write Feather 1")
    assert _load(tmp_path / "old.feather")[0] == [{"a": "1", "b": "x"}, {"a": "2", "b": None}]


def test_parts_of_a_table_are_matched_by_name(tmp_path: Path) -> None:
    folder = tmp_path / "events"
    for year, table in ((2020, pa.table({"a": [1], "b": ["x"]})), (2021, pa.table({"b": ["y"], "c": [2.5]}))):
        (folder / f"year={year}").mkdir(parents=True)
        pq.write_table(table, folder / f"year={year}" / "part-0.parquet")
    units = sources.plan(_found(tmp_path), 1 << 20)
    assert [(unit.table, unit.ordinal, unit.count) for unit in units] == [("events", 0, 2), ("events", 1, 2)]
    assert [unit.options["constants"] for unit in units] == [{"year": "2020"}, {"year": "2021"}]
    assert _read(units)[0] == [{"a": "1", "b": "x", "year": "2020"}, {"b": "y", "c": "2.5", "year": "2021"}]


def test_a_huge_row_group_is_read_in_bounded_batches(tmp_path: Path) -> None:
    texts = pa.array(["x" * 2000] * 20_000)
    pq.write_table(pa.table({"t": texts}), tmp_path / "big.parquet", use_dictionary=False)
    (unit,) = sources.plan(_found(tmp_path / "big.parquet"), 1 << 30)
    sizes = [int(batch.columns[0].data.size) for batch in sources.read(unit, lambda problem: None)]
    assert sum(sizes) == 40_000_000
    assert max(sizes) <= 9 * 1024 * 1024


def _told(path: Path, target: int = 1 << 26) -> dict[tuple[str, str, str], int]:
    """Problems of a table, merged over its units as a build does."""
    whole = TablePart("t", 0)
    for unit in sources.plan(_found(path), target):
        scan = TableScan(unit.table, unit.ordinal)
        list(scan.scan(unit))
        for problem in scan.part.problems:
            whole.report(problem)
    return {(problem.severity, problem.code, problem.detail): problem.count for problem in whole.problems}


# ---------------------------------------------------------------------------------------------------------------------
# Tables that are too wide


def _write_wide(path: Path, columns: int) -> None:
    header = [f"c{i}" for i in range(columns)]
    table = pa.table({name: [1, 2] for name in header})
    match path.suffix:
        case ".csv":
            path.write_text("".join(",".join(row) + "\n" for row in (header, *[["1"] * columns] * 2)))
        case ".jsonl":
            path.write_text("".join(json.dumps({name: 1}) + "\n" for name in header))
        case ".xlsx":
            path.write_bytes(_workbook({"S": [header, [1] * columns, [2] * columns]}))
        case ".sqlite":
            with _database(path) as connection:
                connection.execute(f"CREATE TABLE t ({', '.join(header)})")
        case ".duckdb":
            with pytest.importorskip("duckdb").connect(str(path)) as connection:
                connection.execute(f"CREATE TABLE t ({', '.join(f'{name} INTEGER' for name in header)})")
        case ".parquet":
            pq.write_table(pa.table({"s": table.to_struct_array().combine_chunks()}), path)
        case ".arrow":
            _write_arrow(table, path)
        case ".orc":
            orc.write_table(table, str(path))


@pytest.mark.parametrize("ending", ["csv", "jsonl", "xlsx", "sqlite", "duckdb", "parquet", "arrow", "orc"])
def test_a_table_may_not_be_wider_than_a_worker_can_bear(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    monkeypatch.setattr(names, "MOST_COLUMNS", 20)
    path = tmp_path / f"t.{ending}"
    for columns in (20, 21):
        _write_wide(path, columns)
        for target in (1 << 26, 10):
            if columns == 20:
                assert {len(row) for row in _load(path, target)[0]} <= {20} | ({1} if ending == "jsonl" else set())
            elif ending != "jsonl" or target > 10:
                assert _fails(path, target).code == "too-many-columns"
        path.unlink()


def test_a_frame_that_is_too_wide_is_refused_whatever_its_schema_promises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "MOST_COLUMNS", 20)
    wide = pa.table({f"c{i}": [1] for i in range(21)})
    with pytest.raises(SourceError, match="more than 20 columns"):
        list(arrow_batches.text_batches(wide.to_batches(), pa.schema([]), "t", print))


def test_batches_of_a_wide_table_are_short(tmp_path: Path) -> None:
    columns = 10_000
    rows = [",".join(f"c{i}" for i in range(columns)), *[",".join("1" * columns)] * 150]
    (tmp_path / "t.csv").write_text("\n".join(rows))
    (unit,) = sources.plan(_found(tmp_path / "t.csv"), 1 << 30)
    batches = [(batch.rows, len(batch.columns)) for batch in sources.read(unit, lambda problem: None)]
    assert sum(count for count, _ in batches) == 150
    assert max(count * width for count, width in batches) <= arrow_batches.MAX_CELLS


# ---------------------------------------------------------------------------------------------------------------------
# CSV


def _csv(tmp_path: Path, text: str | bytes, name: str = "t.csv", target: int = 1 << 26) -> tuple[Rows, list[Problem]]:
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return _load(path, target)


@pytest.mark.parametrize(
    ("line", "surplus"),
    [
        ("1,2,x", "x"),
        ('1,2,"x"', "x"),
        ('1,2,"a ""q"" b"', 'a "q" b'),
        ('1,2, "x, y" ', "x, y"),
        ('"a ""b""",2,"c ""d"""', 'c "d"'),
        ("1,2,z,y", "z,y"),
        ('1,2,z,"a ""q"" b"', 'z,"a ""q"" b"'),
        ('1,2,"z","y"', '"z","y"'),
        ('1,2,"a ""q""",y', '"a ""q""",y'),
        ('1,2,"z\nz",y', '"z\nz",y'),
        ('1,2,"z"x,y', '"z"x,y'),
        ("1,2,,", ","),
        ("1,2,", None),
        ('1,2,""', None),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", ""])
def test_what_a_row_has_beyond_the_header(tmp_path: Path, line: str, surplus: str | None, end: str) -> None:
    """One cell is a cell like any other; several are kept as they are written, every quote included."""
    end = "\n" if end == "\r" and "\n" in line else end
    text = (end or "\n").join(["a,b", *["3,4"] * 5, line]) + end
    rows, told = _csv(tmp_path, text)
    assert len(rows) == 6
    assert rows[-1].get("_surplus") == surplus
    assert [(problem.code, problem.count) for problem in told if problem.code == "long-rows"] == (
        [] if surplus is None else [("long-rows", 1)]
    )


@pytest.mark.parametrize("name", ["t.tsv", "T.TSV", "t.Tab", "t.tsv.gz", "T.TSV.GZIP", "t.tab.zstd"])
@pytest.mark.parametrize("target", [1 << 26, 100])
def test_the_name_tells_tabs_however_the_file_is_read(tmp_path: Path, name: str, target: int) -> None:
    content: bytes = b"one,two\tthree\n" + b"v,w\tx\n" * 100
    if name.lower().endswith(("gz", "gzip")):
        content = gzip.compress(content)
    elif name.endswith("zstd"):
        content = bytes(pa.compress(content, codec="zstd", asbytes=True))
    rows, _ = _csv(tmp_path, content, name, target)
    assert rows == [{"one,two": "v,w", "three": "x"}] * 100


@pytest.mark.parametrize(
    ("text", "blank"),
    [
        ("a,b\n1,2\n3,4\n5,6\n", 0),
        ("a,b\n1,2\n3,4\n5,6\n\n", 0),
        ("a,b\n1,2\n3,4\n5,6\n\n\n", 1),
        ("a,b\n1,2\n\n3,4\n5,6\n", 1),
        ("a,b\r\n1,2\r\n\r\n3,4\r\n5,6\r\n\r\n", 1),
        ("a,b\n1,2\n\n\n3,4\n\n5,6\n\n\n\n", 5),
    ],
)
@pytest.mark.parametrize("target", [1 << 26, *range(3, 12)])
def test_blank_lines_are_counted_alike_in_any_cut(tmp_path: Path, text: str, blank: int, target: int) -> None:
    (tmp_path / "t.csv").write_bytes(text.encode())
    assert _told(tmp_path / "t.csv", target) == (
        {("info", "blank-lines", "blank lines were passed over"): blank} if blank else {}
    )


def test_ranges_meet_over_blank_lines(tmp_path: Path) -> None:
    from lakescope.build.scan import broken_spans

    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "1,2\n" * 20 + "\n" * 200 + "3,4\n" * 20)
    scans = []
    for unit in sources.plan(_found(path), 30):
        scans.append(TableScan(unit.table, unit.ordinal))
        list(scans[-1].scan(unit))
    assert sum(scan.part.rows for scan in scans) == 40
    assert not broken_spans([scan.part for scan in scans])


# ---------------------------------------------------------------------------------------------------------------------
# Damage


def _fails(path: Path, target: int = 1 << 26) -> SourceError:
    with pytest.raises(SourceError) as caught:
        _load(path, target)
    return caught.value


def _until_it_fails(unit: Unit, pause: float = 0.0) -> tuple[Rows, SourceError]:
    """The rows a unit gives before it fails, and how it fails."""
    rows: Rows = []
    try:
        for batch in sources.read(unit, lambda problem: None):
            rows += _cells(batch)
            time.sleep(pause)
    except SourceError as error:
        return rows, error
    raise AssertionError(f"{unit.table} was read to its end")


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow", "t.orc"])
@pytest.mark.parametrize("target", [1 << 26, 100])
def test_files_that_are_cut_off(tmp_path: Path, name: str, target: int) -> None:
    path = tmp_path / name
    _WRITERS[name](_table(2000), path)
    path.write_bytes(path.read_bytes()[:-100])
    error = _fails(path, target)
    assert error.code == "truncated"
    assert error.hint
    if name == "t.parquet":
        assert "not a Parquet file or cut off: footer missing" in error.message


def test_a_stream_that_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "t.ipc"
    _write_stream(_table(2000), path)
    path.write_bytes(path.read_bytes()[:-9000])
    assert "t.ipc cannot be read" in _fails(path).message


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow", "t.orc", "t.xlsx", "t.json", "t.sqlite"])
def test_empty_files(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"")
    assert _fails(tmp_path / name).code == "empty-file"


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow", "t.orc", "t.xlsx", "t.duckdb", "t.feather"])
def test_files_of_noise(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"\x00\x01" + random.Random(2).randbytes(5000))
    assert _fails(tmp_path / name).message.startswith("t.") or name == "t.duckdb"


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow", "t.ipc", "t.orc"])
def test_flipped_bytes_never_crash(tmp_path: Path, name: str) -> None:
    """A damaged piece gives an error or other values, never a crash, whatever byte is hit."""
    table = _table(600).select(["id", "name", "kind"])
    path = tmp_path / name
    _WRITERS[name](table, path)
    whole = path.read_bytes()
    chance = random.Random(3)
    found = _found(path)
    for _ in range(60):
        damaged = bytearray(whole)
        for _ in range(3):
            damaged[chance.randrange(8, len(whole))] ^= 1 << chance.randrange(8)
        path.write_bytes(damaged)
        with contextlib.suppress(SourceError, UnicodeDecodeError):
            _read(sources.plan(found, 1 << 20))


def test_a_reader_that_crashes_takes_only_its_file_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lakescope.sources.io import isolated

    table = _table(50)
    _write_orc(table, tmp_path / "t.orc")
    helper = isolated.Helper("lakescope.sources.formats.orc", "answer_questions")
    monkeypatch.setattr(orc_reader, "_HELPER", helper)
    (tmp_path / "modules").mkdir()
    crash = "import os, sys\ndef answer_questions():\n    sys.stdin.readline()\n    os.abort()\n"
    (tmp_path / "modules" / "crashing.py").write_text(crash)
    monkeypatch.syspath_prepend(tmp_path / "modules")
    good, helper._module = helper._module, "crashing"
    error = _fails(tmp_path / "t.orc")
    assert error.code == "damaged"
    assert "crash" in error.message
    helper._module = good
    assert _load(tmp_path / "t.orc")[0] == _expected(table)
    _write_orc(table.slice(0, 7), tmp_path / "t.orc")
    assert len(_load(tmp_path / "t.orc")[0]) == 7
    helper.close()


def test_errors_of_libraries_name_the_file_and_hide_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lakescope.sources.formats import parquet

    def broken(unit: Unit, report: Any) -> Iterator[Batch]:
        raise RuntimeError("cannot open s3://K:S@bucket/x.parquet?secret_key=S")
        yield

    monkeypatch.setattr(parquet, "read", broken)
    unit = Unit("x.parquet", "parquet", "s3://K:S@bucket/x.parquet?secret_key=S", 1)
    with pytest.raises(SourceError) as caught:
        list(sources.read(unit, lambda problem: None))
    text = str(caught.value)
    assert "x.parquet cannot be read: cannot open s3://bucket/x.parquet (file s3://bucket/x.parquet)" in text
    assert "hint:" in text
    assert "S@" not in text
    assert "secret" not in text


@pytest.mark.parametrize(
    ("table", "file", "told"),
    [
        ("a/x.db::t", "a/x.db", "a/x.db::t cannot be read: no a/x.db"),
        ("a", "a/year=1/x.db", "a cannot be read: no a/year=1/x.db (file a/year=1/x.db)"),
        ("a (2).db", "a/x.db", "a (2).db cannot be read: no x.db (file x.db)"),
    ],
)
@pytest.mark.parametrize("ours", [False, True])
def test_errors_name_a_file_by_its_place_in_the_lake(
    table: str, file: str, told: str, ours: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lakescope.sources.databases import sqlite

    def broken(unit: Unit, report: Any) -> Iterator[Batch]:
        text = f"no {unit.uri}"
        raise SourceError(f"{table} cannot be read: {text}", code="odd") if ours else RuntimeError(text)
        yield

    monkeypatch.setattr(sqlite, "read", broken)
    with pytest.raises(SourceError) as caught:
        list(sources.read(Unit(table, "sqlite", str(tmp_path / "lake" / file), 1), lambda problem: None))
    assert caught.value.message == (told.partition(" (file")[0] if ours else told)


class _Leaking:
    """Gives some bytes and then fails with an error that names a URL with its secrets."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    def readinto(self, room: memoryview) -> int:
        if not self.content:
            raise OSError("cannot reach https://me:secret@host/x?token=secret")
        given, self.content = self.content[: len(room)], self.content[len(room) :]
        room[: len(given)] = given
        return len(given)

    def close(self) -> None:
        pass


@pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n", b"a,b\n" + b"1,2\n" * 30_000])
def test_secrets_are_hidden_wherever_reading_a_csv_file_fails(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr(files, "open_stream", lambda *_: files.Stream(_Leaking(content)))
    _assert_hidden(Unit("t.csv", "csv", "/x/t.csv", 1, options={"compression": "gzip"}), content.count(b"1"))


@pytest.mark.parametrize("content", [b"", b'{"a":1}\n', b'{"a":1}\n' * 30_000, b'[{"a":1},{"a"'])
def test_secrets_are_hidden_wherever_reading_json_fails(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr(files, "open_stream", lambda *_: files.Stream(_Leaking(content)))
    _assert_hidden(Unit("t.json", "json", "/x/t.json", 1), content.count(b"1"))


def _assert_hidden(unit: Unit, rows: int) -> None:
    """The rows before are kept, the error says what is wrong, and no secret."""
    kept, error = _until_it_fails(unit)
    assert len(kept) == rows
    assert error.code == "truncated"
    assert "cannot reach https://host/x" in error.message
    assert "secret" not in str(error)
    assert ("beyond row" in error.message) == (rows > 0)


def test_secrets_are_hidden_where_a_file_cannot_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def leak(source: Any) -> None:
        raise OSError("cannot reach https://me:secret@host/x?token=secret")

    _write_arrow(_table(5), tmp_path / "t.arrow")
    _write_orc(_table(5), tmp_path / "t.orc")
    monkeypatch.setattr(arrow_ipc.ipc, "open_file", leak)
    monkeypatch.setattr(orc, "ORCFile", leak)
    errors = [_fails(tmp_path / "t.arrow")]
    with pytest.raises(SourceError) as caught:
        orc_reader._Opened().file(str(tmp_path / "t.orc"), None, fresh=True)
    for error in (*errors, caught.value):
        assert error.code == "truncated"
        assert "https://host/x" in error.message
        assert "secret" not in str(error)


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt])
def test_what_is_not_the_files_fault_passes(monkeypatch: pytest.MonkeyPatch, kind: type[BaseException]) -> None:
    from lakescope.sources.formats import parquet

    def broken(found: SourceTable, target: int) -> list[Unit]:
        raise kind

    monkeypatch.setattr(parquet, "plan", broken)
    with pytest.raises(kind):
        sources.plan(SourceTable("t", "t", "parquet", None, 0, 0.0, ()), 1)


def test_a_file_that_went_away(tmp_path: Path) -> None:
    unit = Unit("gone.parquet", "parquet", str(tmp_path / "gone.parquet"), 1)
    with pytest.raises(SourceError) as caught:
        list(sources.read(unit, lambda problem: None))
    assert caught.value.code == "unreadable"
    assert "index again" in str(caught.value.hint)


# ---------------------------------------------------------------------------------------------------------------------
# JSON


def _json(
    tmp_path: Path, content: str | bytes, name: str = "t.jsonl", target: int = 1 << 26
) -> tuple[Rows, list[Problem]]:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return _load(path, target)


def test_json_numbers_keep_their_text(tmp_path: Path) -> None:
    line = '{"a":1.50,"b":12345678901234567890123,"c":1E5,"d":-0,"e":true,"f":null,"g":"007","h":NaN}\n'
    rows, _ = _json(tmp_path, line)
    assert rows == [
        {
            "a": "1.50",
            "b": "12345678901234567890123",
            "c": "1E5",
            "d": "-0",
            "e": "true",
            "f": None,
            "g": "007",
            "h": "NaN",
        }
    ]


def test_json_nesting(tmp_path: Path) -> None:
    deep: Any = 1.50
    for _ in range(10):
        deep = {"x": deep}
    rows, told = _json(tmp_path, json.dumps({"a": {"b": 1, "c": {"d": "e"}}, "l": [1, {"k": "ü"}], "o": {}, "p": deep}))
    assert rows == [
        {"a.b": "1", "a.c.d": "e", "l": '[1,{"k":"ü"}]', "o": "{}", "p.x.x.x.x.x.x.x": '{"x":{"x":{"x":1.5}}}'}
    ]
    assert [problem.code for problem in told] == ["nested"] * 3
    rows, told = _json(tmp_path, '{"l":[1.50]}\n{"l":[2]}\n')
    assert [row["l"] for row in rows] == ["[1.50]", "[2]"]
    assert len(told) == 1


def test_json_lines_that_are_no_objects(tmp_path: Path) -> None:
    rows, _ = _json(tmp_path, '1\n"x"\n[1,2]\nnull\n{"a":2}\n')
    assert rows == [
        {"value": "1", "a": None},
        {"value": "x", "a": None},
        {"value": "[1,2]", "a": None},
        {"value": None, "a": None},
        {"value": None, "a": "2"},
    ]


def test_broken_json_lines_are_told_with_reason_and_count(tmp_path: Path) -> None:
    rows, told = _json(tmp_path, '{"a":1}\n\n{"a":\n{"a":2}\r\n{"a":3} x\n{"a":5} y\n' + "[" * 100_000 + '\n{"a":4}')
    assert [row["a"] for row in rows] == ["1", "2", "4"]
    assert {(problem.code, problem.detail): problem.count for problem in told} == {
        ("broken-json", "values were left out: expecting value"): 1,
        ("broken-json", "values were left out: extra data"): 2,
        ("broken-json", "values were left out: nested too deeply"): 1,
    }


@pytest.mark.parametrize("target", [40, 100, 333, 1000])
def test_problems_of_json_do_not_depend_on_the_cut(tmp_path: Path, target: int) -> None:
    lines = ['{"a":1}', '{"a":', '{"a":1,"a":2}', '{"a":3} x', '{"a":[1]}', "", '{"a":{"b":[2]}}', '{"a":0,"c":7}']
    (tmp_path / "t.jsonl").write_text("\n".join(lines * 20))
    whole = _told(tmp_path / "t.jsonl")
    assert _told(tmp_path / "t.jsonl", target) == whole
    assert whole == {
        ("warning", "broken-json", "values were left out: expecting value"): 20,
        ("warning", "broken-json", "values were left out: extra data"): 20,
        ("warning", "duplicate-keys", "keys that stand twice in their object; the last one counts"): 20,
        ("info", "nested", "column 'a' holds lists or deep objects: kept as JSON text"): 1,
        ("info", "nested", "column 'a.b' holds lists or deep objects: kept as JSON text"): 1,
    }


@pytest.mark.parametrize("limit", [1, 2, 3, 8192])
@pytest.mark.parametrize("target", [20, 60, 1 << 20])
def test_rows_of_json_take_from_the_path_what_they_lack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int, target: int
) -> None:
    """Row by row: neither the cut of the file nor the size of a batch decides."""
    monkeypatch.setattr(json_lines, "_ROWS", limit)
    folder = tmp_path / "t" / "year=2021" / "kind=x"
    folder.mkdir(parents=True)
    lines = ['{"a":1}', '{"a":2,"year":1999}', '{"a":3,"year":null}', '{"a":4}', '{"a":5,"kind":"own"}', '{"b":6}']
    (folder / "t.jsonl").write_text("\n".join(lines))
    units = sources.plan(_found(tmp_path), target)
    rows = [
        (row.get("a"), row.get("b"), row["year"], row["kind"])
        for unit in units
        for batch in sources.read(unit, lambda problem: None)
        for row in _cells(batch)
    ]
    assert rows == [
        ("1", None, "2021", "x"),
        ("2", None, "1999", "x"),
        ("3", None, None, "x"),
        ("4", None, "2021", "x"),
        ("5", None, "2021", "own"),
        (None, "6", "2021", "x"),
    ]
    kinds = {
        column.source_type
        for unit in units
        for batch in sources.read(unit, lambda problem: None)
        for column in batch.columns
    }
    assert kinds == {"json"}
    assert _told(tmp_path, target) == {
        ("info", "partition-column", f"column {name!r} is also spelt by the path; the values in the file count"): 1
        for name in ("year", "kind")
    }


def test_columns_of_a_file_count_more_than_its_path(tmp_path: Path) -> None:
    folder = tmp_path / "t" / "a=9" / "c=8"
    folder.mkdir(parents=True)
    (folder / "t.csv").write_text("a,b\n1,x\n2,y\n")
    rows, told = _load(tmp_path)
    assert rows == [{"a": "1", "b": "x", "c": "8"}, {"a": "2", "b": "y", "c": "8"}]
    assert [(problem.code, problem.count) for problem in told] == [("partition-column", 1)]
    assert "'a'" in told[0].detail


def test_duplicate_keys_are_told_and_the_last_counts(tmp_path: Path) -> None:
    rows, told = _json(tmp_path, '{"a":1,"a":2}\n{"b.c":1,"b":{"c":2}}\n')
    assert rows[0]["a"] == "2"
    assert rows[1]["b.c"] == "2"
    assert [(problem.code, problem.count) for problem in told] == [("duplicate-keys", 2)]


def test_json_text_that_is_not_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"a":"caf\xe9","\xe9":1,"b":"\\ud800"}\n')
    (unit,) = sources.plan(_found(path), 1 << 20)
    (batch,) = sources.read(unit, lambda problem: None)
    assert {column.name: column.data.tobytes() for column in batch.columns} == {
        "a": b"caf\xe9",
        "é": b"1",
        "b": b"\xed\xa0\x80",
    }


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("indent", [None, 2])
def test_json_documents(tmp_path: Path, encoding: str, indent: int | None) -> None:
    values = [{"a": i, "t": "ü" * (i % 50), "o": {"n": [1.5]}} for i in range(3000)]
    rows, _ = _json(tmp_path, json.dumps(values, indent=indent, ensure_ascii=False).encode(encoding), "t.json", 1000)
    assert rows == [{"a": str(v["a"]), "t": v["t"], "o.n": "[1.5]"} for v in values]


@pytest.mark.parametrize("chunk", [1, 7, 64])
def test_json_documents_do_not_depend_on_how_they_arrive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    monkeypatch.setattr(json_lines, "_CHUNK", chunk)
    monkeypatch.setattr(json_lines, "_HEAD", 3)
    text = '[{"a":12345,"b":"x\\"y","b":"ü"},  {"a":-1.5e3,"b":null}, 123456, "s", [1], true]'
    rows, told = _json(tmp_path, text, "t.json")
    assert [row["a"] for row in rows] == ["12345", "-1.5e3", None, None, None, None]
    assert [row.get("value") for row in rows] == [None, None, "123456", "s", "[1]", "true"]
    assert rows[0]["b"] == "ü"
    assert ("duplicate-keys", 1) in [(problem.code, problem.count) for problem in told]


@pytest.mark.parametrize(
    "text", ['{\n "a": 1,\n "b": 2\n}', '{"a": 1, "b": 2}', '[{"a": 1,\n"b": 2}]', '[\n{"a": 1, "b": 2}\n]']
)
def test_small_json_documents(tmp_path: Path, text: str) -> None:
    assert _json(tmp_path, text, "t.json")[0] == [{"a": "1", "b": "2"}]


@pytest.mark.parametrize("rows", [1, 2, 3, 50])
@pytest.mark.parametrize("form", ["{},\n{}", "{}\n,{}"])
def test_a_document_that_holds_rows_on_lines_of_their_own(tmp_path: Path, rows: int, form: str) -> None:
    """As CouchDB writes them: a line that is a whole object does not make a file of lines."""
    listed = '{"id":0}'
    for number in range(1, rows):
        listed = form.format(listed, json.dumps({"id": number}, separators=(",", ":")))
    text = f'{{"total_rows":{rows},"rows":[\n{listed}\n]}}'
    found, told = _json(tmp_path, text, "t.json", 20)
    assert [(row["total_rows"], json.loads(str(row["rows"]))) for row in found] == [
        (str(rows), [{"id": number} for number in range(rows)])
    ]
    assert [problem.code for problem in told] == ["nested"]


def test_values_on_one_line_and_on_several(tmp_path: Path) -> None:
    text = '{"a":1}\n{\n "a": 2\n}\n{\n "a": 3\n}\n'
    assert _json(tmp_path, text, "t.json") == ([{"a": "1"}, {"a": "2"}, {"a": "3"}], [])


def test_lines_in_a_json_file_survive_a_broken_first_line(tmp_path: Path) -> None:
    rows, told = _json(tmp_path, '{"a":1\n{"a":2}\n', "t.json")
    assert [row["a"] for row in rows] == ["2"]
    assert [problem.code for problem in told] == ["broken-json"]


@pytest.mark.parametrize(
    ("text", "kept", "reason"),
    [
        ('[{"a":1},{"a":2}', 2, "cut off"),
        ('[{"a":1},{"a":2', 1, "stopped"),
        ('[{"a":1},{a:2},{"a":3}]', 1, "stopped"),
        ('[{"a":1},' + "[" * 100_000, 1, "stopped"),
    ],
)
def test_damaged_json_documents_keep_what_came_before(tmp_path: Path, text: str, kept: int, reason: str) -> None:
    rows, told = _json(tmp_path, text, "t.json")
    assert len(rows) == kept
    assert [problem.code for problem in told] == ["broken-json"]
    assert reason in told[0].detail


@pytest.mark.parametrize("name", ["t.json", "t.jsonl"])
def test_what_is_no_json_at_all(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("{this is\nnot JSON\n")
    assert _fails(tmp_path / name).code == "broken-json"


def test_a_json_value_longer_than_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_lines, "_LONGEST", 1000)
    monkeypatch.setattr(json_lines, "_CHUNK", 100)
    monkeypatch.setattr(json_lines, "_HEAD", 50)
    long = json.dumps({"a": "x" * 5000})
    rows, told = _json(tmp_path, f'{{"a":1}}\n{long}\n{{"a":2}}\n')
    assert [row["a"] for row in rows] == ["1", "2"]
    assert [(problem.code, problem.count) for problem in told] == [("broken-json", 1)]
    rows, told = _json(tmp_path, f'[{{"a":1}},\n{long},{{"a":2}}]', "t.json")
    assert [row["a"] for row in rows] == ["1"]
    assert [problem.code for problem in told] == ["broken-json"]


def test_a_document_of_one_value_longer_than_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_lines, "_LONGEST", 1 << 20)
    monkeypatch.setattr(json_lines, "_CHUNK", 100_000)
    feature = '{"type": "Feature", "properties": {"name": "x"}}'
    text = '{"type": "FeatureCollection",\n"features": [\n' + ",\n".join([feature] * 30_000) + "\n]}"
    (tmp_path / "t.geojson").write_text(text)
    error = _fails(tmp_path / "t.geojson")
    assert error.code == "broken-json"
    assert "a value longer than 1 MB" in error.message
    rows, told = _json(tmp_path, '{"a":1}\n' + text + '\n{"a":2}', "t.json")
    assert [row["a"] for row in rows] == ["1"]
    assert "a value longer than 1 MB, reading stopped near character 8" in told[0].detail


_PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": lambda content: bz2.compress(content, 1),
    "zst": lambda content: bytes(pa.compress(content, codec="zstd", asbytes=True)),
}


@pytest.mark.parametrize("ending", _PACKERS)
@pytest.mark.parametrize("name", ["t.jsonl", "t.json"])
def test_compressed_json_that_is_cut_off_keeps_the_rows_before(tmp_path: Path, name: str, ending: str) -> None:
    chance = random.Random(4)
    lines = [json.dumps({"id": number, "x": chance.random()}) for number in range(60_000)]
    text = "\n".join(lines) if name == "t.jsonl" else f"[{', '.join(lines)}]"
    packed = _PACKERS[ending](text.encode())
    (tmp_path / f"{name}.{ending}").write_bytes(packed[: len(packed) * 9 // 10])
    (unit,) = sources.plan(_found(tmp_path / f"{name}.{ending}"), 1 << 26)
    kept, error = _until_it_fails(unit)
    assert error.code == "truncated"
    assert f"cannot be read beyond row {len(kept)}" in error.message
    assert [row["id"] for row in kept] == [str(number) for number in range(len(kept))]
    # What cannot be unpacked is a tenth, and for block-wise formats the block that was cut.
    assert len(kept) > 0.75 * len(lines)


def test_a_cut_loses_no_more_than_what_cannot_be_unpacked(tmp_path: Path) -> None:
    chance = random.Random(5)
    content = b"".join(b'{"x":%d}\n' % chance.getrandbits(60) for _ in range(20_000))
    packed = gzip.compress(content)[:-20_000]
    (tmp_path / "t.jsonl.gz").write_bytes(packed)
    possible = zlib.decompressobj(31).decompress(packed).count(b"\n")
    rows, _ = _until_it_fails(sources.plan(_found(tmp_path / "t.jsonl.gz"), 1)[0])
    assert possible - 4096 // 10 < len(rows) <= possible


@pytest.mark.parametrize("target", range(1, 40))
def test_every_cut_of_json_lines(tmp_path: Path, target: int) -> None:
    content = '{"a":1}\n{"a":"ü"}\n\n{"a":3}\r\n{"b":[4]}\n{"a":5}'
    rows, _ = _json(tmp_path, content, target=target)
    present = [{key: value for key, value in row.items() if value is not None} for row in rows]
    assert present == [{"a": "1"}, {"a": "ü"}, {"a": "3"}, {"b": "[4]"}, {"a": "5"}]


# ---------------------------------------------------------------------------------------------------------------------
# Excel


def _cell(place: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return f'<c r="{place}" t="b"><v>{int(value)}</v></c>'
    if isinstance(value, dt.datetime):
        days = (value - dt.datetime(1899, 12, 30)) / dt.timedelta(days=1)
        return f'<c r="{place}" s="1"><v>{days}</v></c>'
    if isinstance(value, str) and value.startswith("#"):
        return f'<c r="{place}" t="e"><v>{value}</v></c>'
    if isinstance(value, str):
        return f'<c r="{place}" t="inlineStr"><is><t>{escape(value)}</t></is></c>'
    return f'<c r="{place}"><v>{value}</v></c>'


def _sheet(rows: list[list[Any]]) -> str:
    lines = [
        f'<row r="{r}">' + "".join(_cell(f"{chr(65 + c)}{r}", value) for c, value in enumerate(row)) + "</row>"
        for r, row in enumerate(rows, start=1)
    ]
    return f"<worksheet xmlns='{_MAIN}'><sheetData>{''.join(lines)}</sheetData></worksheet>"


_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_REL = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"


def _workbook(sheets: dict[str, list[list[Any]]]) -> bytes:
    numbers = range(1, len(sheets) + 1)
    listed = "".join(
        f"<sheet name='{name}' sheetId='{i}' r:id='s{i}'/>" for i, name in zip(numbers, sheets, strict=True)
    )
    links = "".join(f"<Relationship Id='s{i}' Type='{_REL}/worksheet' Target='worksheets/s{i}.xml'/>" for i in numbers)
    styles = f"<Relationship Id='st' Type='{_REL}/styles' Target='styles.xml'/>"
    parts = {
        "[Content_Types].xml": f"<Types xmlns='{_PACKAGE}/content-types'>"
        "<Default Extension='xml' ContentType='application/xml'/></Types>",
        "_rels/.rels": f"<Relationships xmlns='{_PACKAGE}/relationships'>"
        f"<Relationship Id='r' Type='{_REL}/officeDocument' Target='xl/workbook.xml'/></Relationships>",
        "xl/workbook.xml": f"<workbook xmlns='{_MAIN}' xmlns:r='{_REL}'><sheets>{listed}</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": f"<Relationships xmlns='{_PACKAGE}/relationships'>{links}{styles}"
        "</Relationships>",
        "xl/styles.xml": f"<styleSheet xmlns='{_MAIN}'><cellXfs><xf numFmtId='0'/><xf numFmtId='22'/></cellXfs>"
        "</styleSheet>",
        **{f"xl/worksheets/s{i}.xml": _sheet(rows) for i, rows in zip(numbers, sheets.values(), strict=True)},
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return buffer.getvalue()


def test_every_sheet_is_a_table(tmp_path: Path) -> None:
    day, moment = dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 1, 12)
    sheets = {
        "People": [["id", "name", "when", "x"], [1, "a", day, 0.1], [2, None, moment, True], [3, "00501", None, 1e12]],
        "No head": [[1, 2], [3, 4]],
        "Empty": [],
    }
    (tmp_path / "b.xlsx").write_bytes(_workbook(sheets))
    units = sources.plan(_found(tmp_path / "b.xlsx"), 1 << 20)
    assert [unit.table for unit in units] == ["b.xlsx::People", "b.xlsx::No head", "b.xlsx::Empty"]
    assert [(unit.ordinal, unit.count) for unit in units] == [(0, 1)] * 3
    assert _read(units[:1]) == (
        [
            {"id": "1", "name": "a", "when": "2020-01-01", "x": "0.1"},
            {"id": "2", "name": None, "when": "2020-01-01 12:00:00", "x": "true"},
            {"id": "3", "name": "00501", "when": None, "x": "1000000000000"},
        ],
        [],
    )
    rows, told = _read(units[1:2])
    assert rows == [{"column_1": "1", "column_2": "2"}, {"column_1": "3", "column_2": "4"}]
    assert [problem.code for problem in told] == ["no-header"]
    rows, told = _read(units[2:])
    assert not rows
    assert [problem.code for problem in told] == ["empty-sheet"]


def test_sheets_made_for_people(tmp_path: Path) -> None:
    rows: list[list[Any]] = [
        [None, "Sales of the year"],
        [],
        [None, "city", "amount", "amount", None],
        [None, "Bonn", 1, 2, 3],
        [],
        [None, "Kiel", "#DIV/0!", 5, 6],
        [None, "Ulm", 7, 8, 9],
        [],
    ]
    (tmp_path / "b.xlsx").write_bytes(_workbook({"S": rows}))
    found, told = _load(tmp_path / "b.xlsx")
    assert found == [
        {"city": "Bonn", "amount": "1", "amount_2": "2", "column_4": "3"},
        {"city": "Kiel", "amount": None, "amount_2": "5", "column_4": "6"},
        {"city": "Ulm", "amount": "7", "amount_2": "8", "column_4": "9"},
    ]
    assert {problem.code: problem.count for problem in told} == {
        **{"cell-errors": 1, "blank-lines": 2, "preamble": 1, "renamed-columns": 2},
    }


def test_a_damaged_workbook(tmp_path: Path) -> None:
    whole = _workbook({"S": [["a"], [1]]})
    (tmp_path / "b.xlsx").write_bytes(whole[: len(whole) // 2])
    assert "b.xlsx cannot be read" in _fails(tmp_path / "b.xlsx").message


# ---------------------------------------------------------------------------------------------------------------------
# SQLite and DuckDB


@contextlib.contextmanager
def _database(path: Path) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        yield connection
        connection.commit()


def test_sqlite_tables_and_views(tmp_path: Path) -> None:
    path = tmp_path / "d.sqlite"
    with _database(path) as connection:
        connection.execute("CREATE TABLE any (i INTEGER, v, t VARCHAR(9))")
        connection.executemany(
            "INSERT INTO any VALUES (?, ?, ?)",
            [(1, 1.5, "ü"), (None, b"\xff", "x"), (2**62, b"text", None), ("word", 1e300, "")],
        )
        connection.execute("INSERT INTO any VALUES (5, 6, CAST(x'ff41' AS TEXT))")
        connection.execute('CREATE TABLE "odd ""name""" (a PRIMARY KEY) WITHOUT ROWID')
        connection.execute("CREATE VIEW twice AS SELECT i + 1 AS j FROM any WHERE i = 1")
    before = sorted(tmp_path.iterdir())
    units = {unit.table: unit for unit in sources.plan(_found(path), 1 << 20)}
    assert sorted(units) == ["d.sqlite::any", 'd.sqlite::odd "name"', "d.sqlite::twice"]
    (batch,) = sources.read(units["d.sqlite::any"], lambda problem: None)
    assert [column.source_type for column in batch.columns] == ["integer", "any", "varchar(9)"]
    texts = batch.columns[2]
    assert texts.data[texts.starts[4] : texts.ends[4]].tobytes() == b"\xffA"
    texts.ends[4] = -1
    assert _cells(batch) == [
        {"i": "1", "v": "1.5", "t": "ü"},
        {"i": None, "v": "0xff", "t": "x"},
        {"i": str(2**62), "v": "text", "t": None},
        {"i": "word", "v": "1e+300", "t": ""},
        {"i": "5", "v": "6", "t": None},
    ]
    assert _read([units["d.sqlite::twice"]])[0] == [{"j": "2"}]
    (empty,) = sources.read(units['d.sqlite::odd "name"'], lambda problem: None)
    assert (empty.rows, [column.name for column in empty.columns]) == (0, ["a"])
    assert sorted(tmp_path.iterdir()) == before


def test_a_big_sqlite_table_is_cut_by_row_id(tmp_path: Path) -> None:
    path = tmp_path / "d.db"
    with _database(path) as connection:
        connection.execute("CREATE TABLE big (i INTEGER)")
        connection.executemany("INSERT INTO big (rowid, i) VALUES (?, ?)", ((i * 3 - 9, i) for i in range(100_000)))
        connection.execute("CREATE TABLE small (rowid, oid, _rowid_)")
        connection.execute("INSERT INTO small VALUES (1, 2, 3)")
    units = sources.plan(_found(path), 100_000)
    big = [unit for unit in units if unit.table == "d.db::big"]
    assert len(big) > 3
    assert [unit.ordinal for unit in big] == list(range(len(big)))
    assert sum(unit.size for unit in units) <= path.stat().st_size + len(units)
    assert [row["i"] for row in _read(big)[0]] == [str(i) for i in range(100_000)]
    (small,) = (unit for unit in units if unit.table == "d.db::small")
    assert _read([small])[0] == [{"rowid": "1", "oid": "2", "_rowid_": "3"}]


def test_a_database_in_use_and_a_damaged_one(tmp_path: Path) -> None:
    path = tmp_path / "d.db"
    with _database(path) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE t (a)")
        connection.execute("INSERT INTO t VALUES (1)")
        connection.commit()
        assert _load(path)[0] == [{"a": "1"}]
    path.write_bytes(path.read_bytes()[:3000])
    assert "d.db cannot be read" in _fails(path).message


def test_rows_that_are_not_committed_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lakescope.sources.databases import sqlite

    monkeypatch.setattr(sqlite, "_LOCK_SECONDS", 0.1, raising=False)
    path = tmp_path / "d.db"
    with _database(path) as connection:
        connection.execute("CREATE TABLE t (a)")
        connection.execute("INSERT INTO t VALUES (1)")
        connection.commit()
        units = sources.plan(_found(path), 1 << 20)
        connection.execute("PRAGMA cache_size=1")
        connection.executemany("INSERT INTO t VALUES (?)", (("x" * 1000,) for _ in range(1000)))
        # Pages of the transaction lie in the file already: whoever ignores the lock reads them.
        with pytest.raises(SourceError, match="being written") as caught:
            _read(units)
        shutil.copy(f"{path}-journal", tmp_path / "kept")
        shutil.copy(path, tmp_path / "crashed.db")
        connection.rollback()
    assert (caught.value.code, _read(units)[0]) == ("unreadable", [{"a": "1"}])
    # A writer that died leaves its journal, which only a writer may roll back.
    (tmp_path / "kept").rename(tmp_path / "crashed.db-journal")
    assert "was interrupted" in _fails(tmp_path / "crashed.db").message


def test_what_is_committed_to_a_log_is_read_through_a_link(tmp_path: Path) -> None:
    path = tmp_path / "inner" / "d.db"
    path.parent.mkdir()
    (tmp_path / "link.db").symlink_to(path)
    with _database(path) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE t (a)")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("INSERT INTO t VALUES (1)")
        connection.commit()
        assert _load(tmp_path / "link.db")[0] == [{"a": "1"}]


def test_a_log_is_part_of_the_version_of_a_database(tmp_path: Path) -> None:
    path = tmp_path / "d.db"
    with _database(path) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE t (a)")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        before, stat = _found(path), path.stat()
        assert content_at(str(path), stat.st_mtime) is not None
        connection.execute("INSERT INTO t VALUES (1)")
        connection.commit()
        after = _found(path)
        assert (path.stat().st_size, path.stat().st_mtime) == (stat.st_size, stat.st_mtime)
        assert before.version != after.version
        # What the file holds alone does not tell what the database holds.
        assert content_at(str(path), stat.st_mtime) is None


def test_a_remote_database_with_a_log_is_refused(tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    path = tmp_path / "d.db"
    with _database(path) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE t (a)")
        store = fsspec.filesystem("memory")
        store.pipe({"/log/d.db": path.read_bytes(), "/log/d.db-wal": Path(f"{path}-wal").read_bytes()})
    try:
        found, _ = discover(["memory://log/d.db"])
        with pytest.raises(SourceError, match="a log beside it"):
            sources.plan(found[0], 1 << 20)
    finally:
        store.rm("/log", recursive=True)


def test_a_type_that_is_not_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "d.sqlite"
    with _database(path) as connection:
        connection.execute("CREATE TABLE t (a Gr__e, b)")
        connection.execute("INSERT INTO t VALUES (1, 2)")
    path.write_bytes(path.read_bytes().replace(b"Gr__e", "Größe".encode("latin-1")))
    (batch,) = sources.read(sources.plan(_found(path), 1 << 20)[0], lambda problem: None)
    kinds = [column.source_type for column in batch.columns]
    assert kinds == ["gr\\xf6\\xdfe", "any"]
    assert pa.array(kinds).to_pylist() == kinds
    assert _cells(batch) == [{"a": "1", "b": "2"}]


_ENDLESS = {
    "recursive": "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c",
    "product": "SELECT a.i AS x, b.i AS y, c.i AS z FROM n AS a, n AS b, n AS c, n AS d",
    "silent": "SELECT count(*) AS x FROM n AS a, n AS b, n AS c, n AS d WHERE (a.i * b.i + c.i * d.i) % 999983 = 5",
}


def _give_up(path: Path, view: str, pause: float = 0.0) -> tuple[int, SourceError]:
    """How many rows a view gave until it was given up."""
    units = {unit.table.partition("::")[2]: unit for unit in sources.plan(_found(path), 1 << 20)}
    began = time.monotonic()
    rows, error = _until_it_fails(units[view], pause)
    assert time.monotonic() - began < 120, "waited too long"
    return len(rows), error


@pytest.mark.parametrize("name", ["d.sqlite", "d.duckdb"])
@pytest.mark.parametrize(("view", "pause"), [("recursive", 0.0), ("product", 0.0), ("product", 0.2), ("silent", 0.0)])
def test_a_view_that_does_not_end_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, view: str, pause: float
) -> None:
    monkeypatch.setattr(database, "VIEW_SECONDS", 1)
    path = tmp_path / name
    connect = sqlite3.connect if name == "d.sqlite" else pytest.importorskip("duckdb").connect
    with contextlib.closing(connect(str(path))) as connection:
        connection.execute("CREATE TABLE n (i INTEGER)")
        connection.execute(f"INSERT INTO n VALUES {', '.join(f'({i})' for i in range(2000))}")
        connection.execute(f"CREATE VIEW v AS {_ENDLESS[view]}")
        connection.execute("CREATE VIEW fine AS SELECT i + 1 AS j FROM n")
        connection.commit()
    rows, error = _give_up(path, "v", pause)
    assert error.code == "costly-view"
    assert error.message == f"{name}::v was given up: it is a view that takes more than 1 seconds"
    assert error.hint
    assert rows == 0 if view == "silent" else rows > 0 or (name, view) == ("d.duckdb", "recursive")
    fine = [unit for unit in sources.plan(_found(path), 1 << 20) if unit.table.endswith("::fine")]
    assert [row["j"] for row in _read(fine)[0]] == [str(i) for i in range(1, 2001)]


def test_a_view_that_takes_too_much_memory_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    duckdb = pytest.importorskip("duckdb")
    monkeypatch.setattr(duckdb_file, "MEMORY", "50MB")
    with duckdb.connect(str(tmp_path / "d.duckdb")) as connection:
        connection.execute("CREATE VIEW v AS SELECT range AS i, hash(range) AS h FROM range(50000000) ORDER BY h")
    before = sorted(tmp_path.iterdir())
    rows, error = _give_up(tmp_path / "d.duckdb", "v")
    assert rows == 0
    assert (error.code, "50MB of memory" in error.message) == ("costly-view", True)
    assert sorted(tmp_path.iterdir()) == before


def test_a_view_may_not_call_what_is_unsafe(tmp_path: Path) -> None:
    path = tmp_path / "d.sqlite"
    with _database(path) as connection:
        connection.execute("CREATE TABLE t (a, b GENERATED ALWAYS AS (json_extract(a, '$.x')))")
        connection.execute("INSERT INTO t VALUES ('{\"x\":7}')")
        connection.execute("CREATE VIEW spy AS SELECT file FROM pragma_database_list")
        connection.execute("CREATE VIEW fine AS SELECT upper(a) AS a, json_extract(a, '$.x') AS x FROM t")
    units = {unit.table: unit for unit in sources.plan(_found(path), 1 << 20)}
    with pytest.raises(SourceError, match="unsafe use of virtual table"):
        _read([units["d.sqlite::spy"]])
    assert _read([units["d.sqlite::t"]])[0] == [{"a": '{"x":7}', "b": "7"}]
    assert _read([units["d.sqlite::fine"]])[0] == [{"a": '{"X":7}', "x": "7"}]


def test_rows_before_the_damage_of_a_database_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "d.sqlite"
    with _database(path) as connection:
        connection.execute("CREATE TABLE t (i INTEGER, x TEXT)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", ((i, "x" * 100) for i in range(3000)))
    content = bytearray(path.read_bytes())
    content[-4096:] = random.Random(6).randbytes(4096)
    path.write_bytes(content)
    rows, error = _until_it_fails(sources.plan(_found(path), 1 << 30)[0])
    assert error.code == "damaged"
    assert 2800 < len(rows) < 3000
    assert [row["i"] for row in rows] == [str(i) for i in range(len(rows))]


def test_blobs_are_counted_before_they_are_many(tmp_path: Path) -> None:
    path = tmp_path / "d.sqlite"
    with _database(path) as connection:
        connection.execute("CREATE TABLE t (b BLOB)")
        connection.execute(
            "CREATE VIEW v AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 40)"
            " SELECT zeroblob(1000000) AS b FROM c"
        )
    units = {unit.table: unit for unit in sources.plan(_found(path), 1 << 20)}
    sizes = [batch.columns[0].data.size for batch in sources.read(units["d.sqlite::v"], lambda problem: None)]
    assert sum(sizes) == 40_000_000
    assert max(sizes) <= arrow_batches.MAX_BYTES + 1_000_000


def test_duckdb_tables_and_views(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "d.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            """CREATE TABLE t AS SELECT 1 AS i, 170141183460469231731687303715884105727::HUGEINT AS h, 'ü' AS s,
            '101'::BIT AS b, [1, 2] AS l, {'a': 1} AS o, 'x'::ENUM('x', 'y') AS e, TIMETZ '10:00:00+01' AS z,
            TIMESTAMPTZ '2020-01-01 00:00:00+01' AS w, 1.50::DECIMAL(9, 2) AS d, NULL AS n, 2.5::FLOAT AS f"""
        )
        connection.execute("CREATE SCHEMA other; CREATE TABLE other.t (x INTEGER)")
        connection.execute("CREATE VIEW v AS SELECT i + 1 AS j FROM t")
        connection.execute("CREATE VIEW spy AS SELECT * FROM read_text('/etc/hostname')")
        connection.execute("CREATE TABLE big AS SELECT range AS i FROM range(200000)")
    units = {unit.table.removeprefix("d.duckdb::"): unit for unit in sources.plan(_found(path), 1 << 20)}
    assert sorted(units) == ["big", "other.t", "spy", "t", "v"]
    assert _read([units["t"]])[0] == [
        {
            **{
                "i": "1",
                "h": "170141183460469231731687303715884105727",
                "s": "ü",
                "b": "101",
                "l": "[1,2]",
                "o.a": "1",
            },
            **{"e": "x", "z": "10:00:00+01", "w": "2019-12-31 23:00:00Z", "d": "1.50", "n": None, "f": "2.5"},
        }
    ]
    assert _read([units["v"]])[0] == [{"j": "2"}]
    assert [row["i"] for row in _read([units["big"]])[0]] == [str(i) for i in range(200_000)]
    assert _read([units["other.t"]])[0] == []
    with pytest.raises(SourceError, match="spy"):
        _read([units["spy"]])


def test_reading_can_stop_at_any_time(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "d.duckdb")) as connection:
        connection.execute("CREATE TABLE big AS SELECT range AS i FROM range(200000)")
    (unit,) = sources.plan(_found(tmp_path / "d.duckdb"), 1 << 20)
    batches = sources.read(unit, lambda problem: None)
    next(batches)
    batches.close()  # type: ignore[attr-defined]


# ---------------------------------------------------------------------------------------------------------------------
# Frames in memory


def _frames() -> dict[str, Callable[[], Any]]:
    table = pa.table({"a": [1, 2], "b": ["x", None]})

    def pandas() -> Any:
        return pytest.importorskip("pandas").DataFrame({"a": [1, 2], "b": ["x", None]})

    def polars() -> Any:
        return pytest.importorskip("polars").DataFrame({"a": [1, 2], "b": ["x", None]})

    def relation() -> Any:
        return pytest.importorskip("duckdb").sql("SELECT * FROM (VALUES (1, 'x'), (2, NULL)) AS t(a, b)")

    class Foreign:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return table.__arrow_c_stream__(requested_schema)

    class ForeignArray:
        def __arrow_c_array__(self, requested_schema: object = None) -> object:
            return table.to_batches()[0].__arrow_c_array__(requested_schema)

    return {
        "table": lambda: table,
        "batch": lambda: table.to_batches()[0],
        "reader": table.to_reader,
        "dataset": lambda: pyarrow.dataset.dataset(table),
        "scanner": lambda: pyarrow.dataset.dataset(table).scanner(),
        "pandas": pandas,
        "polars": polars,
        "lazy": lambda: polars().lazy(),
        "duckdb": relation,
        "stream": Foreign,
        "array": ForeignArray,
        "rows": lambda: [{"a": 1, "b": "x"}, {"a": 2}],
        "columns": lambda: {"a": [1, 2], "b": ["x", None]},
    }


@pytest.mark.parametrize("kind", _frames())
def test_frames_in_memory(kind: str) -> None:
    batches = list(as_batches(_frames()[kind]()))
    assert pa.Table.from_batches(batches).to_pylist() == [{"a": 1, "b": "x"}, {"a": 2, "b": None}]


def test_frames_without_rows_show_their_columns() -> None:
    for empty in (pa.table({"a": pa.array([], pa.int64())}), {"a": []}):
        assert [batch.schema.names for batch in as_batches(empty)] == [["a"]]


def test_mixed_values_become_text() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"m": [1, "x", None, 2.5], "n": [1, 2, 3, 4]})
    (batch,) = as_batches(frame)
    assert batch.to_pydict() == {"m": ["1", "x", None, "2.5"], "n": [1, 2, 3, 4]}
    (batch,) = as_batches([{"m": 1}, {"m": "x", "k": True}])
    assert batch.to_pydict() == {"m": ["1", "x"], "k": [None, True]}


def test_pandas_names_that_are_no_text() -> None:
    pandas = pytest.importorskip("pandas")
    (batch,) = as_batches(pandas.DataFrame([[1, 2]], columns=[0, 1]))
    assert batch.schema.names == ["0", "1"]


def test_a_series_is_one_column() -> None:
    polars = pytest.importorskip("polars")
    (batch,) = as_batches(polars.Series("s", [1, 2]))
    assert batch.to_pydict() == {"s": [1, 2]}


@pytest.mark.parametrize(
    "thing", [1, "path.csv", Path("path.csv"), b"x", [1, 2], {"a": 1}, {"a": [1], "b": []}, None, object()]
)
def test_what_is_no_frame_is_refused(thing: Any) -> None:
    with pytest.raises(BadRequest) as caught:
        list(as_batches(thing))
    assert caught.value.hint


def test_what_lies_beside_a_file_of_the_longest_name(tmp_path: Path) -> None:
    """Its name with an ending is no name: that is no reason to fail."""
    path = tmp_path / ("n" * 251 + ".csv")
    path.write_text("a,b\n1,2\n")
    assert journals_of(str(path)) == []
    assert content_at(str(path), path.stat().st_mtime) is not None
