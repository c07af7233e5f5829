"""Finding tables: names, formats, directories that are one table, and everything that is odd about a lake."""

from __future__ import annotations

import gzip
import os
import socket
import sqlite3
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from lakescope.sources import discover as module
from lakescope.sources.discover import discover
from lakescope.sources.io import files
from lakescope.sources.io.walk import matches
from lakescope.sources.model import Problem, Unit
from lakescope.sources.source_table import SourceTable
from lakescope.store import IndexWriter

CSV = b"a,b\n1,2\n"
TABLE = pa.table({"a": [1, 2], "b": ["x", "y"]})


def _write(root: Path, *names: str, content: bytes = CSV) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _tables(*locations: Path | str) -> list[str]:
    return [found.table for found in discover([str(location) for location in locations])[0]]


def _problems(*locations: Path | str) -> dict[str, Problem]:
    return {problem.code: problem for problem in discover([str(location) for location in locations])[1]}


def _one(location: Path | str) -> SourceTable:
    found, problems = discover([str(location)])
    assert len(found) == 1, (found, problems)
    return found[0]


def test_names_are_paths_below_the_root_with_their_ending(tmp_path: Path) -> None:
    _write(tmp_path, "sales/2021.csv", "sales/2020.csv", "top.tsv", "deep/er/x.ndjson")
    assert _tables(tmp_path) == ["deep/er/x.ndjson", "sales/2020.csv", "sales/2021.csv", "top.tsv"]
    found = _one(tmp_path / "sales" / "2021.csv")
    assert (found.table, found.format, found.compression, found.size) == ("2021.csv", "csv", None, len(CSV))
    assert found.uri == str(tmp_path / "sales" / "2021.csv")
    assert found.parts == ((found.uri, len(CSV)),)
    assert found.modified == pytest.approx((tmp_path / "sales" / "2021.csv").stat().st_mtime)


def test_formats_by_ending(tmp_path: Path) -> None:
    expected = {
        **dict.fromkeys(["a.csv", "a.tsv", "a.tab", "a.txt", "a.psv", "a.dat", "A.CSV"], "csv"),
        **{"a.json": "json", "a.jsonl": "jsonl", "a.ndjson": "jsonl"},
    }
    _write(tmp_path, *expected)
    assert {found.table: found.format for found in discover([str(tmp_path)])[0]} == expected


def test_compressed_names(tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(CSV))
    (tmp_path / "b").write_bytes(gzip.compress(CSV))
    found = {f.table: (f.format, f.compression) for f in discover([str(tmp_path)])[0]}
    assert found == {"a.csv.gz": ("csv", "gzip"), "b": ("csv", "gzip")}


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("data/*.csv", ["a.csv"]),
        ("data/**/*.csv", ["a.csv", "x/b.csv", "x/y/c.csv"]),
        ("data/*/b.*", ["x/b.csv"]),
        ("data/x/[bc].csv", ["b.csv"]),
        ("data/x*", ["x/b.csv", "x/y/c.csv"]),
        ("data/x/**", ["b.csv", "y/c.csv"]),
    ],
)
def test_globs(tmp_path: Path, pattern: str, expected: list[str]) -> None:
    _write(tmp_path, "data/a.csv", "data/x/b.csv", "data/x/y/c.csv", "data/z.json")
    assert _tables(f"{tmp_path}/{pattern}") == expected


def test_a_glob_does_not_look_where_nothing_can_match(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write(tmp_path, "a.csv", "deep/b.csv")
    listed: list[str] = []
    scan = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: listed.append(str(path)) or scan(path))
    assert _tables(tmp_path / "*.csv") == ["a.csv"]
    assert listed == [str(tmp_path)]


def test_a_name_with_glob_characters_is_a_name_if_it_exists(tmp_path: Path) -> None:
    _write(tmp_path, "odd[1].csv", "odd1.csv")
    assert _tables(tmp_path / "odd[1].csv") == ["odd[1].csv"]


def test_matching() -> None:
    assert matches(["a", "b"], ["**", "b"])
    assert matches(["b"], ["**", "b"])
    assert not matches(["a"], ["b"])
    assert matches(["a"], ["a", "b"], partly=True)
    assert not matches(["a"], ["a", "b"])


def test_relative_and_home_locations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write(tmp_path, "lake/a.csv")
    monkeypatch.chdir(tmp_path)
    assert _one("lake").uri == str(tmp_path / "lake" / "a.csv")
    assert _tables(".") == ["lake/a.csv"]
    monkeypatch.setenv("HOME", str(tmp_path))
    assert _tables("~/lake") == ["a.csv"]
    assert _tables((tmp_path / "lake").as_uri()) == ["a.csv"]


@pytest.mark.parametrize(
    "name",
    [
        "nothing",
        "nothing/*.csv",
        "no.csv",
        "missing://x/y",
        "s3://:bad uri",
        "nul\0.csv",
        "self.csv",
        "~nobody-here/x",
        "",
    ],
)
def test_what_is_not_there_is_a_problem(tmp_path: Path, name: str) -> None:
    (tmp_path / "self.csv").symlink_to(tmp_path / "self.csv")
    location = name if "://" in name or name.startswith("~") else f"{tmp_path}/{name or 'x' * 300}"
    found, problems = discover([location])
    assert not found
    assert [problem.severity for problem in problems] == ["error"]
    assert problems[0].code in ("not-found", "unreadable")


def test_names_that_collide_get_the_root_in_front(tmp_path: Path) -> None:
    _write(tmp_path, "one/a.csv", "one/x.csv", "two/a.csv", "other/one/a.csv", "other/one/y.csv")
    roots = [tmp_path / "one", tmp_path / "two", tmp_path / "other" / "one"]
    assert _tables(*roots) == ["one/a.csv", "one~2/a.csv", "two/a.csv", "x.csv", "y.csv"]
    assert _problems(*roots)["name-collision"].severity == "info"
    assert _tables(*roots) == _tables(*roots)


def test_a_prefixed_name_that_is_taken_is_numbered(tmp_path: Path) -> None:
    _write(tmp_path, "one/a.csv", "two/a.csv", "two/one/a.csv")
    assert _tables(tmp_path / "one", tmp_path / "two") == ["one/a.csv", "one/a.csv~2", "two/a.csv"]


def test_overlapping_locations_give_each_table_once(tmp_path: Path) -> None:
    _write(tmp_path, "lake/sub/a.csv", "lake/b.csv")
    assert _tables(tmp_path / "lake", tmp_path / "lake" / "sub") == ["b.csv", "sub/a.csv"]
    assert _problems(tmp_path / "lake", tmp_path / "lake" / "sub")["found-twice"].count == 1


@pytest.mark.parametrize(
    ("names", "table"),
    [
        (["out/_SUCCESS", "out/00.csv", "out/01.csv"], "out"),
        (["out/part-00001.csv", "out/part-00000.csv"], "out"),
        (["out/part-r-00001", "out/part-r-00000"], "out"),
        (["out/part.1.csv", "out/part.0.csv"], "out"),
        (["events.csv/b.csv", "events.csv/more/a.csv"], "events.csv"),
        (["sales/year=2021/a.csv", "sales/year=2020/b.csv"], "sales"),
        (["sales/year=2021/m=1/part-0000.csv", "sales/year=2021/m=2/part-0000.csv"], "sales"),
    ],
)
def test_directories_that_are_one_table(tmp_path: Path, names: list[str], table: str) -> None:
    _write(tmp_path, *names, "other.csv")
    found = {f.table: f for f in discover([str(tmp_path)])[0]}
    assert sorted(found) == sorted(["other.csv", table])
    parts = [uri for uri, _ in found[table].parts]
    assert parts == sorted(parts)
    assert len(parts) == 2
    assert found[table].size == 2 * len(CSV)
    assert found[table].uri == str(tmp_path / table)


def test_the_root_itself_can_be_one_table(tmp_path: Path) -> None:
    _write(tmp_path, "events/_SUCCESS", "events/part-0.csv", "h/y=1/a.csv")
    assert _tables(tmp_path / "events") == ["events"]
    assert _tables(tmp_path / "h") == ["h"]
    assert _one(tmp_path / "h").options(str(tmp_path / "h/y=1/a.csv")) == {"constants": {"y": "1"}}


def test_partition_values_are_constants(tmp_path: Path) -> None:
    _write(tmp_path, "t/day=2021-01-01 10%3A00/kind=__HIVE_DEFAULT_PARTITION__/x.csv", "t/day=~/kind=b=c/x.csv")
    found = _one(tmp_path)
    assert found.table == "t"
    assert [found.options(uri)["constants"] for uri, _ in found.parts] == [
        {"day": "2021-01-01 10:00", "kind": None},
        {"day": "~", "kind": "b=c"},
    ]
    _write(tmp_path, "alone.csv")
    alone = _one(tmp_path / "alone.csv")
    assert alone.options(alone.uri) == {}


def test_a_glob_keeps_the_parts_of_a_table_together(tmp_path: Path) -> None:
    _write(tmp_path, "sales/year=2021/a.csv", "sales/year=2020/b.csv", "sales/year=2020/c.csv")
    found = _one(f"{tmp_path}/**/[ab].csv")
    assert (found.table, len(found.parts)) == ("sales", 2)


def test_strangers_and_empty_files_in_a_table(tmp_path: Path) -> None:
    _write(tmp_path, "t.csv/a.csv", "t.csv/b.csv")
    _write(tmp_path, "t.csv/c.json", content=b"{}")
    _write(tmp_path, "t.csv/d.csv", content=b"")
    found, problems = discover([str(tmp_path)])
    assert [(f.table, len(f.parts)) for f in found] == [("t.csv", 2), ("t.csv/c.json", 1)]
    assert {problem.code for problem in problems} == {"mixed-formats", "empty-parts"}


def test_formats_that_are_equally_common_in_a_table(tmp_path: Path) -> None:
    _write(tmp_path, "t.csv/a.csv")
    _write(tmp_path, "t.csv/b.csv.gz", content=gzip.compress(CSV))
    assert len(_tables(tmp_path)) == 2
    assert _tables(tmp_path) == _tables(tmp_path)


def test_a_delta_table_whose_log_says_nothing_is_told(tmp_path: Path) -> None:
    _write(tmp_path, "d/_delta_log/0.json", "d/part-00000-x.parquet", content=b"PAR1\x15\x04")
    assert _tables(tmp_path) == []
    assert _problems(tmp_path)["table-format"].severity == "error"


def test_hidden_names_are_counted_once_per_root(tmp_path: Path) -> None:
    _write(tmp_path, ".git/x.csv", ".git/y.csv", "_tmp.csv", "a.csv", "sub/.b.csv")
    found, problems = discover([str(tmp_path)])
    assert [f.table for f in found] == ["a.csv"]
    assert [(p.code, p.severity, p.count) for p in problems] == [("hidden-files", "info", 3)]


def test_documents_are_counted_once_per_root(tmp_path: Path) -> None:
    _write(tmp_path, "README.md", "x.pdf", "code.py", "LICENSE", "readme.txt", "a.csv", "x.db-wal", content=b"text")
    found, problems = discover([str(tmp_path)])
    assert [f.table for f in found] == ["a.csv"]
    assert [(p.code, p.severity, p.count) for p in problems] == [("not-a-table", "info", 6)]


@pytest.mark.parametrize(
    "name",
    [
        *("authors.csv", "license_plates.csv", "changes.parquet", "version_history.csv", "install_base.csv.gz"),
        *("requirements.xlsx", "notice_of_violation.csv", "todo.csv", "README.tsv", "license.dat", "version.db"),
    ],
)
def test_a_table_may_be_called_like_a_document(tmp_path: Path, name: str) -> None:
    _write(tmp_path, name)
    assert _tables(tmp_path) == [name]
    assert "not-a-table" not in _problems(tmp_path)


@pytest.mark.parametrize(
    "name", ["authors", "AUTHORS.txt", "requirements-dev.txt", "LICENSE.rst", "license.txt.gz", "a.csv.db-wal"]
)
def test_documents_are_known_by_their_names(tmp_path: Path, name: str) -> None:
    _write(tmp_path, name)
    assert _tables(tmp_path) == []
    assert _problems(tmp_path)["not-a-table"].count == 1


def test_other_data_called_like_a_document_is_told(tmp_path: Path) -> None:
    _write(tmp_path, "authors.avro", "install.zip", content=bytes(range(256)))
    assert [problem.code for problem in discover([str(tmp_path)])[1]] == ["unknown-format"] * 2


def test_links(tmp_path: Path) -> None:
    root = tmp_path / "lake"
    _write(tmp_path, "outside/secret.csv", "lake/real/a.csv")
    (root / "loop").symlink_to(root)
    (root / "twice").symlink_to(root / "real")
    (root / "out").symlink_to(tmp_path / "outside")
    (root / "out.csv").symlink_to(tmp_path / "outside" / "secret.csv")
    (root / "in.csv").symlink_to(root / "real" / "a.csv")
    (root / "nowhere.csv").symlink_to(root / "gone.csv")
    (root / "self.csv").symlink_to(root / "self.csv")
    found, problems = discover([str(root)])
    assert [f.table for f in found] == ["in.csv", "real/a.csv"]
    assert sorted((p.table, p.code) for p in problems) == [
        ("loop", "symlink-loop"),
        ("nowhere.csv", "unreadable"),
        ("out", "symlink-outside"),
        ("out.csv", "symlink-outside"),
        ("self.csv", "unreadable"),
        ("twice", "symlink-inside"),
    ]
    (tmp_path / "link").symlink_to(root)
    assert _tables(tmp_path / "link") == ["in.csv", "real/a.csv"]


def test_pipes_and_sockets_are_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s.csv"))
    found, problems = discover([str(tmp_path)])
    assert not found
    assert [p.code for p in problems] == ["special-file"] * 2
    assert _problems(tmp_path / "pipe.csv")["special-file"].severity == "warning"


def test_unreadable_directories_and_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Permissions do not bind the superuser, so the refusal is made here."""
    _write(tmp_path, "a.csv", "locked.csv", "locked/b.csv")
    scan, head = os.scandir, files.read_head

    def refuse_scan(path: os.PathLike[str]) -> object:
        if os.fspath(path).endswith("locked"):
            raise PermissionError(13, "Permission denied")
        return scan(path)

    def refuse_head(uri: str, *arguments: int) -> bytes:
        if uri.endswith("locked.csv"):
            raise PermissionError(13, "Permission denied")
        return head(uri, *arguments)

    monkeypatch.setattr(os, "scandir", refuse_scan)
    monkeypatch.setattr(module.files, "read_head", refuse_head)
    found, problems = discover([str(tmp_path)])
    assert [f.table for f in found] == ["a.csv"]
    assert sorted((p.table, p.code, p.severity) for p in problems) == [
        ("locked", "unreadable", "error"),
        ("locked.csv", "unreadable", "error"),
    ]
    assert all("Permission denied" in p.detail for p in problems)


@pytest.mark.parametrize(
    "name",
    ["new\nline.csv", "quo\"te'.csv", "tab\t.csv", " .csv", "é中.csv", "x" * 240 + ".csv", "a::b.csv", "%41?#.csv"],
)
def test_hostile_names_survive(tmp_path: Path, name: str) -> None:
    _write(tmp_path, name)
    found = _one(tmp_path)
    assert found.table == name
    assert files.read_head(found.uri, 100) == CSV
    assert Unit.from_json(Unit("t", "csv", found.uri, 1).to_json()).uri == found.uri


def test_names_that_are_not_unicode_become_readable_and_stay_apart(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path)
    for name in (b"caf\xe9.csv", b"caf\xe8.csv"):
        Path(os.fsdecode(folder + b"/" + name)).write_bytes(CSV)
    Path(tmp_path, "caf\\xe9.csv").write_bytes(CSV)
    found, problems = discover([str(tmp_path)])
    assert sorted(f.table for f in found) == ["caf\\xe8.csv", "caf\\xe9.csv", "caf\\xe9.csv~2"]
    assert [p.code for p in problems] == ["name-collision"]
    for f in found:
        f.table.encode()
        assert files.read_head(f.uri, 100) == CSV
        with files.open_random(f.uri) as source:
            assert source.read() == CSV
        with files.as_local(f.uri) as path:
            assert Path(path).read_bytes() == CSV


def test_a_path_too_long_is_a_problem(tmp_path: Path) -> None:
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(30):
        os.mkdir("d" * 200, dir_fd=here)
        below = os.open("d" * 200, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    _write(tmp_path, "a.csv")
    found, problems = discover([str(tmp_path)])
    assert [f.table for f in found] == ["a.csv"]
    assert [p.code for p in problems] == ["unreadable"]


def _parquet(path: Path) -> None:
    pq.write_table(TABLE, path)


def _sqlite(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (a)")
    connection.close()


def _xlsx(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("xl/workbook.xml", "")


def test_formats_by_content_when_the_ending_says_nothing(tmp_path: Path) -> None:
    import duckdb
    from pyarrow import orc

    _parquet(tmp_path / "a")
    pyarrow.feather.write_feather(TABLE, str(tmp_path / "b.bin"))
    orc.write_table(TABLE, str(tmp_path / "c"))
    _sqlite(tmp_path / "d")
    _xlsx(tmp_path / "e")
    duckdb.connect(str(tmp_path / "f.db")).close()
    _write(tmp_path, "g", "h.dat", content=CSV)
    _write(tmp_path, "i", content=b'{"a":1}\n')
    _write(tmp_path, "j", content="a,b\n1,2\n".encode("utf-16"))
    found, problems = discover([str(tmp_path)])
    assert {f.table: f.format for f in found} == {
        **{"a": "parquet", "b.bin": "arrow", "c": "orc", "d": "sqlite", "e": "excel", "f.db": "duckdb"},
        **{"g": "csv", "h.dat": "csv", "i": "json", "j": "csv"},
    }
    assert not problems


def test_a_lying_ending_is_found_out(tmp_path: Path) -> None:
    _parquet(tmp_path / "a.csv")
    _sqlite(tmp_path / "b.parquet")
    _xlsx(tmp_path / "c.csv")
    _write(tmp_path, "d.csv", content=gzip.compress(CSV))
    _write(tmp_path, "e.csv.gz", "f.xls")
    found, problems = discover([str(tmp_path)])
    assert {f.table: (f.format, f.compression) for f in found} == {
        "a.csv": ("parquet", None),
        "b.parquet": ("sqlite", None),
        "c.csv": ("excel", None),
        "d.csv": ("csv", "gzip"),
        "e.csv.gz": ("csv", None),
        "f.xls": ("csv", None),
    }
    assert {(p.code, p.severity) for p in problems} == {("wrong-extension", "warning")}
    assert len(problems) == 6


def test_text_that_starts_like_a_magic_number_is_text(tmp_path: Path) -> None:
    _write(tmp_path, "orcid.csv", content=b"ORCID,name\n1,2\n")
    _write(tmp_path, "par.csv", content=b"PAR1,PAR2\n1,2\n")
    _write(tmp_path, "names.csv", content=b"BZhang,x\n")
    found, problems = discover([str(tmp_path)])
    assert {f.format for f in found} == {"csv"}
    assert not problems


def test_unknown_binaries_archives_and_pointers(tmp_path: Path) -> None:
    _write(tmp_path, "x.bin", "thumbs.db", "y.dat", content=bytes(range(256)))
    _write(tmp_path, "v.avro", content=b"Obj\x01aa")
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:
        archive.writestr("a.csv", CSV)
    _write(tmp_path, "l.parquet", content=b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n")
    _write(tmp_path, "page.xls", content=b"<html><table></table></html>")
    found, problems = discover([str(tmp_path)])
    assert not found
    assert sorted((p.table, p.code, p.severity) for p in problems if p.code != "not-a-table") == [
        ("l.parquet", "unreadable", "error"),
        ("thumbs.db", "unknown-format", "warning"),
        ("v.avro", "unknown-format", "warning"),
        ("x.bin", "unknown-format", "warning"),
        ("y.dat", "unknown-format", "warning"),
        ("z.zip", "unknown-format", "warning"),
    ]
    assert "avro" in next(p.detail for p in problems if p.table == "v.avro")
    assert "unpack" in next(p.detail for p in problems if p.table == "z.zip")


def test_any_fsspec_file_system(tmp_path: Path) -> None:
    import fsspec

    memory = fsspec.filesystem("memory")
    for name in ("lake/a b?#%41.csv", "lake/y=1/part-0.csv", "lake/.hidden/x.csv", "lake/deep/z.csv"):
        memory.pipe(f"/{name}", CSV)
    found, problems = discover(["memory://lake"])
    assert [f.table for f in found] == ["a b?#%41.csv", "deep/z.csv", "lake"]
    assert [p.code for p in problems] == ["hidden-files"]
    assert found[2].options(found[2].parts[0][0]) == {"constants": {"y": "1"}}
    for f in found:
        assert files.read_head(f.parts[0][0], 100) == CSV
    assert _tables("memory://lake/deep/*.csv") == ["z.csv"]
    assert _tables("memory://lake/deep/z.csv") == ["z.csv"]
    memory.rm("/lake", recursive=True)


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("s3://KEY:se/cr+et@bucket/x.csv", "s3://bucket/x.csv"),
        ("s3://bucket/x.csv?access_key=K&secret_key=S", "s3://bucket/x.csv"),
        ("https://user@host/x.csv?token=1#f", "https://host/x.csv"),
        ("s3://bucket/a@b.csv", "s3://bucket/a@b.csv"),
        ("hdfs://host:9000/a@b.csv", "hdfs://host:9000/a@b.csv"),
        ("/local/what?.csv", "/local/what?.csv"),
    ],
)
def test_credentials_are_never_shown(uri: str, shown: str) -> None:
    assert files.display(uri) == shown


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("403 for https://me:pw@host/x.csv?sig=secret\nand more", "403 for https://host/x.csv"),
        ("", "OSError"),
        ("no file caf\udce9.csv", "no file caf\\xe9.csv"),
        ("x" * 1000, "x" * 300),
    ],
)
def test_errors_of_libraries_in_one_line_without_secrets(text: str, reason: str) -> None:
    assert files.reason_of(OSError(text)) == reason


class _Failing:
    """Gives some bytes, a few at a time, and then fails."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    def readinto(self, room: memoryview) -> int:
        if not self.content:
            raise OSError("the disk is gone")
        given, self.content = self.content[: min(3, len(room))], self.content[min(3, len(room)) :]
        room[: len(given)] = given
        return len(given)


def test_a_stream_gives_all_it_has_before_it_fails() -> None:
    stream = files.Stream(_Failing(b"abcdefgh"))
    assert stream.read(5) == b"abcde"
    assert stream.failure is None
    assert stream.read(100) == b"fgh"
    assert isinstance(stream.failure, OSError)
    for _ in range(2):
        with pytest.raises(OSError, match="disk"):
            stream.read(1)
    with pytest.raises(OSError, match="disk"):
        files.Stream(_Failing(b"abc")).read()


def test_problems_do_not_show_credentials() -> None:
    for location in ("s3://KEY:sec/ret@bucket/x?no_option=secret", "nope://KEY:secret@host/x?token=secret"):
        for problem in discover([location])[1]:
            assert "sec" not in problem.detail
            assert "KEY" not in problem.detail
            assert "KEY" not in problem.table


def test_an_index_inside_the_lake_is_not_data(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    with IndexWriter(tmp_path / "old.idx") as writer:
        writer.publish([], version="test", sources=[], summary={})
    (tmp_path / "copied.idx").mkdir()  # without its lock
    (tmp_path / "old.idx" / "manifest.json").rename(tmp_path / "copied.idx" / "manifest.json")
    with IndexWriter(tmp_path / "old.idx") as writer:
        writer.publish([], version="test", sources=[], summary={})
    (tmp_path / "copied.idx" / "segments").mkdir()
    with IndexWriter(tmp_path / "new.idx"):
        found, problems = discover([str(tmp_path)])
    assert [table.table for table in found] == ["a.csv"]
    told = sorted(problem.table for problem in problems if problem.code == "lakescope-index")
    assert told == ["copied.idx", "new.idx", "old.idx"]


def test_what_only_looks_like_an_index_is_data(tmp_path: Path) -> None:
    """Others have manifests, locks, segments and staging areas, too."""
    for file in ("web/manifest.json", "web/segments/a.csv", "work/.lock", "work/staging/b.csv"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("x,y\n1,2\n")
    found, problems = discover([str(tmp_path)])
    assert {"web/segments/a.csv", "work/staging/b.csv"} <= {table.table for table in found}
    assert not [problem for problem in problems if problem.code == "lakescope-index"]
