"""Nothing in a lake stops it: every file ends as a table or as a problem with a reason, and the rest is unaffected.

The corpus of broken files goes through Spark once. What is random (bytes, damage, tables) goes through the same scan
and merge in this process.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import os
import re
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

import lakescope
from helpers import corpus
from helpers.corpus import KINDS, Kind, Refused, Table
from helpers.effort import lines_run
from lakescope import sources
from lakescope.build.plan import make_plan, write_plan
from lakescope.build.scan import TableScan, broken_spans
from lakescope.build.tasks import STATE_SCHEMA, MergeStates, ScanBins, parse_result
from lakescope.build.tokens import TokenCut
from lakescope.errors import SourceError
from lakescope.lake import Lake
from lakescope.sources.discover import discover
from lakescope.sources.formats.csv_dialect import Dialect
from lakescope.sources.model import Batch, Problem, Unit
from lakescope.sources.names import unique_names
from lakescope.sources.source_table import SourceTable
from lakescope.store.segment import read_catalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Record = dict[str, Any]

#: More examples, chosen at random each time: LAKESCOPE_FUZZ=5000 pytest tests/test_bad_input.py
EXAMPLES = int(os.environ.get("LAKESCOPE_FUZZ", "0"))
fuzzed = settings(max_examples=EXAMPLES or 100, deadline=None, database=None, derandomize=not EXAMPLES)


# The corpus -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Indexed:
    """The corpus among good tables, indexed, and the good tables indexed alone."""

    folder: Path
    tables: dict[str, Record]
    columns: dict[str, list[Record]]
    problems: list[Record]
    lake: Lake
    good: list[str]
    alone: Lake

    def problems_of(self, table: str) -> list[Record]:
        return [problem for problem in self.problems if problem["table"] == table]


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Indexed:
    root = tmp_path_factory.mktemp("bad")
    folder = root / "lake"
    folder.mkdir()
    corpus.write_corpus(folder)
    good = corpus.write_good(folder)
    corpus.write_good(root / "alone")
    for name in ("readme.md", ".hidden.csv", "_hidden.csv"):
        (folder / "good" / name).write_bytes(b"a,b\n1,2\n")
    lake = lakescope.index(folder, root / "lake.idx", spark=spark)
    columns: dict[str, list[Record]] = {}
    for record in lake.columns().to_pylist(maps_as_pydicts="strict"):
        columns.setdefault(record["table"], []).append(record)
    tables = {record["table"]: record for record in lake.tables().to_pylist()}
    alone = lakescope.index(root / "alone", root / "alone.idx", spark=spark)
    return Indexed(folder, tables, columns, lake.problems().to_pylist(), lake, good, alone)


def test_the_corpus_is_large() -> None:
    assert len(KINDS) >= 150
    refused = [kind for kind in KINDS.values() if any(isinstance(end, Refused) for end in kind.ends.values())]
    assert 40 <= len(refused) <= len(KINDS) - 40


def test_every_file_ends_as_a_table_or_a_problem(indexed: Indexed) -> None:
    told = set(indexed.tables) | {problem["table"] for problem in indexed.problems}
    containers = {name.rpartition("::")[0] for name in told}
    missing = []
    for path in _files(indexed.folder):
        folders = {path.rsplit("/", depth)[0] for depth in range(1, path.count("/") + 1)}
        if path not in told and path not in containers and not folders & set(indexed.tables):
            missing.append(path)
    # Hidden names and documents are told of together, by their number.
    assert sorted(missing) == ["good/.hidden.csv", "good/_hidden.csv", "good/readme.md"]
    together = {problem["code"]: problem["count"] for problem in indexed.problems_of("lake")}
    assert together == {"hidden-files": 2, "not-a-table": 1}


def _files(folder: Path) -> Iterator[str]:
    """Everything below a folder that is no directory, named as the lake names it."""
    for place, folders, names in os.walk(folder):
        links = [name for name in folders if (Path(place) / name).is_symlink()]
        for name in [*names, *links]:
            path = (Path(place) / name).relative_to(folder)
            yield os.fsencode(path).decode("utf-8", "backslashreplace")


def test_no_table_comes_from_nowhere(indexed: Indexed) -> None:
    expected = {
        kind.table + suffix for kind in KINDS.values() for suffix, end in kind.ends.items() if isinstance(end, Table)
    }
    assert set(indexed.tables) <= expected | set(indexed.good)


def test_every_problem_says_what_is_wrong(indexed: Indexed) -> None:
    for problem in indexed.problems:
        assert problem["severity"] in ("error", "warning", "info"), problem
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", problem["code"]), problem
        assert problem["count"] >= 1, problem
        assert len(problem["detail"]) > 10, problem
        assert "Traceback" not in problem["detail"], problem


def test_a_table_is_complete_or_says_why_not(indexed: Indexed) -> None:
    for name, record in indexed.tables.items():
        failed = [problem for problem in indexed.problems_of(name) if problem["severity"] == "error"]
        assert record["complete"] is not bool(failed), (name, failed)


def test_a_table_knows_how_many_problems_it_has(indexed: Indexed) -> None:
    counted = {name: record["problems"] for name, record in indexed.tables.items()}
    assert counted == {name: len(indexed.problems_of(name)) for name in indexed.tables}


def test_a_file_that_was_refused_is_an_error_only_once(indexed: Indexed) -> None:
    for table in {problem["table"] for problem in indexed.problems} - set(indexed.tables):
        told = [(problem["severity"], problem["code"]) for problem in indexed.problems_of(table)]
        assert len(set(told)) == len(told), (table, told)


def test_the_summary_counts_what_is_there(indexed: Indexed) -> None:
    info = indexed.lake.info()
    severities = [problem["severity"] for problem in indexed.problems]
    assert info["tables"] == len(indexed.tables)
    assert info["columns"] == sum(len(columns) for columns in indexed.columns.values())
    assert info["rows"] == sum(record["rows"] for record in indexed.tables.values())
    assert (info["errors"], info["warnings"]) == (severities.count("error"), severities.count("warning"))
    indexed.lake.verify()


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_kind_ends_as_it_must(kind: Kind, indexed: Indexed) -> None:
    for suffix, end in kind.ends.items():
        name = kind.table + suffix
        if isinstance(end, Refused):
            _check_refused(name, end, indexed)
        else:
            _check_table(name, end, indexed)
    known = {kind.table + suffix for suffix in kind.ends}
    assert {name for name in indexed.tables if name == kind.table or name.startswith(kind.table + "::")} <= known


def _check_refused(name: str, end: Refused, indexed: Indexed) -> None:
    assert name not in indexed.tables
    told = [(problem["severity"], problem["code"]) for problem in indexed.problems_of(name)]
    assert any((end.severity, code) in told for code in end.codes), told


def _check_table(name: str, end: Table, indexed: Indexed) -> None:
    problems = indexed.problems_of(name)
    assert name in indexed.tables, problems
    table, columns = indexed.tables[name], {record["column"]: record for record in indexed.columns[name]}
    # Names may be long: differences are shown by their number first.
    assert len(columns) == len(end.columns), list(columns)[:10]
    assert list(columns) == end.columns
    assert end.rows is None or table["rows"] == end.rows, problems
    codes = {problem["code"] for problem in problems}
    assert end.must <= codes, problems
    assert codes <= end.must | end.may, problems
    assert table["complete"] is end.complete
    for column, value in end.has.items():
        assert value in _shown(columns[column]), column
    for column, distinct in end.distinct.items():
        assert columns[column]["distinct"] == distinct, column
        assert columns[column]["distinct_exact"] or distinct > 8192, column
    for column, nulls in end.nulls.items():
        assert columns[column]["nulls"] == nulls, column


def _shown(column: Record) -> list[str]:
    """Every value that the profile of a column shows."""
    top = [entry["value"] for entry in column["top"]]
    return [*top, *column["sample"], column["minimum"], column["maximum"]]


def test_good_tables_are_unaffected(indexed: Indexed) -> None:
    assert indexed.alone.tables()["table"].to_pylist() == indexed.good
    alone = indexed.alone.columns().to_pylist(maps_as_pydicts="strict")
    assert len(alone) == 4 + 4 + 4 + 4 + 3
    assert [record for name in indexed.good for record in indexed.columns[name]] == alone
    for record in indexed.alone.tables().to_pylist():
        among = indexed.tables[record["table"]]
        for field in set(record) - {"uri", "modified", "version"}:
            assert among[field] == record[field], (record["table"], field)


@pytest.mark.parametrize("kind", ["scripts_in_header_and_cells", "script_in_the_name"])
def test_hostile_text_is_escaped_where_it_is_shown(kind: str, indexed: Indexed) -> None:
    profile = indexed.lake.profile(KINDS[kind].table)
    html = profile._repr_html_()
    assert "<script>" not in html
    assert "<img" not in html
    assert "&lt;script&gt;" in html
    assert all(char.isprintable() for line in str(profile).splitlines() for char in line)


@pytest.mark.parametrize("kind", ["terminal_escapes", "line_end_in_the_name", "control_character_in_the_name"])
def test_nothing_reaches_the_terminal_that_moves_its_cursor(kind: str, indexed: Indexed) -> None:
    text = str(indexed.lake.profile(KINDS[kind].table))
    assert all(char.isprintable() for line in text.split("\n") for char in line)
    assert len(text.split("\n")) == 3 + len(indexed.columns[KINDS[kind].table]), text


# Random damage --------------------------------------------------------------------------------------------------------


def scan(folder: Path) -> tuple[list[Record], list[Record]]:
    """What a build finds below a folder, tables and problems, by the same steps but without Spark."""
    found, discovered = discover([str(folder)])
    with tempfile.TemporaryDirectory() as staging:
        plan = make_plan(found)
        secrets = write_plan(plan.bins, staging)
        states: list[Record] = []
        for number in range(len(plan.bins)):
            batch = pa.RecordBatch.from_pylist([{"id": number}])
            states += [
                row for rows in ScanBins(staging, 1, TokenCut(1, 1), secrets)(iter([batch])) for row in rows.to_pylist()
            ]
        states.sort(key=lambda row: (row["table"], row["target"], row["part"], row["name"], row["ordinal"]))
        merged = MergeStates(staging, 1, TokenCut(1, 1))(iter([pa.RecordBatch.from_pylist(states, STATE_SCHEMA)]))
        files, _, again = parse_result(next(iter(merged)).column(0)[0].as_py())
        assert not again

        def catalog(kind: str) -> list[Record]:
            written = [file for file in files if file.kind == kind]
            tables = [read_catalog(pa.py_buffer((Path(staging) / file.path).read_bytes()), file) for file in written]
            return [record for table in tables for record in table.to_pylist(maps_as_pydicts="strict")]

        problems = [asdict(problem) for problem in [*discovered, *plan.problems]] + catalog("problems")
        tables = catalog("tables")
        assert {column["table"] for column in catalog("columns")} == {table["table"] for table in tables}
        return tables, problems


def ends_somehow(name: str, content: bytes) -> None:
    """Whatever the bytes of a file: it becomes a table or an error, and never an exception."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / name).write_bytes(content)
        tables, problems = scan(Path(folder))
    refused = [problem for problem in problems if problem["severity"] == "error" or problem["code"] == "unknown-format"]
    assert tables or refused, problems
    event("table" if tables else "refused")
    for problem in problems:
        assert problem["detail"], problem


@fuzzed
@given(st.binary(max_size=2000))
def test_any_bytes_called_csv(content: bytes) -> None:
    ends_somehow("x.csv", content)


_AWKWARD = st.sampled_from(
    [*",;|\t\"'\\\n\r \0#a1é", "\r\n", '""', "\xff", "-", "0.5", "\N{PILE OF POO}", "x,y\n", "1,2\n"]
)


@fuzzed
@given(
    st.lists(_AWKWARD, max_size=200).map("".join),
    st.sampled_from(["utf-8", "latin-1", "utf-16", "utf-16-be", "utf-32"]),
)
def test_any_awkward_text_called_csv(text: str, encoding: str) -> None:
    ends_somehow("x.csv", text.encode(encoding, "replace"))


@fuzzed
@given(
    st.lists(st.sampled_from([*'{}[]":,\\ \n01ae.-', "null", "true", "NaN", "1e999", '"a"', '{"a":', "\\ud800", "\0"]))
)
def test_any_awkward_text_called_json(pieces: list[str]) -> None:
    ends_somehow("x.json", "".join(pieces).encode())


_SAMPLES = {
    "x.parquet": corpus.parquet(corpus.typed(300), row_group_size=100),
    "y.parquet": corpus.parquet(corpus.typed(300), compression="none"),
    "x.jsonl": b"".join(b'{"id": %d, "tags": ["a", {"b": "\\u00fc%d"}]}\n' % (i, i) for i in range(30)),
    "x.json": b"[" + b",\n".join(b'{"id": %d, "x": {"y": null}}' % i for i in range(30)) + b"]",
    "x.csv.gz": gzip.compress(corpus.people(100).encode(), mtime=0),
    "x.csv.bz2": bz2.compress(corpus.people(100).encode()),
    "x.csv.zst": bytes(pa.compress(corpus.people(100).encode(), codec="zstd", asbytes=True)),
    "x.xlsx": corpus.xlsx(one=corpus.typed(20), two=corpus.typed(3)),
    "x.sqlite": corpus.sqlite(
        "CREATE TABLE a (x, y)", "INSERT INTO a VALUES (1, 'b'), (2, x'ff')", "CREATE TABLE b (z)"
    ),
    "x.arrow": corpus.arrow(corpus.typed(100)),
    "x.orc": corpus.orc(corpus.typed(100)),
}


@st.composite
def damage(draw: st.DrawFn, content: bytes) -> bytes:
    """Some bits flipped, some bytes replaced, removed or doubled, or the end cut off."""
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, max(0, len(content) - 1)))
        match draw(st.sampled_from(["flip", "replace", "remove", "double", "cut"])):
            case "flip":
                flipped = bytes([content[place] ^ (1 << draw(st.integers(0, 7)))]) if content else b""
                content = content[:place] + flipped + content[place + 1 :]
            case "replace":
                noise = draw(st.binary(max_size=40))
                content = content[:place] + noise + content[place + len(noise) :]
            case "remove":
                content = content[:place] + content[place + draw(st.integers(1, 40)) :]
            case "double":
                content = content[:place] + content[max(0, place - draw(st.integers(1, 40))) :]
            case "cut":
                content = content[:place]
    return content


@pytest.mark.parametrize("name", _SAMPLES)
def test_any_damage(name: str) -> None:
    @settings(fuzzed, max_examples=EXAMPLES or 40)
    @given(damage(_SAMPLES[name]))
    def check(content: bytes) -> None:
        ends_somehow(name, content)

    check()


def test_many_columns_of_one_name_are_told_apart_quickly() -> None:
    names, changed = unique_names(["a"] * 8_000)
    assert len(set(names)) == 8_000
    assert changed == 7_999
    assert lines_run(lambda: unique_names(["a"] * 8_000)) < 20 * 8_000


# Cells come back as they were written ---------------------------------------------------------------------------------

Row = list[str]
#: The cells of a row by column; what is missing is not there.
Cells = dict[str, bytes]


@dataclass(frozen=True)
class Written:
    """Rows as Python's csv module writes them."""

    rows: list[Row]
    content: bytes
    dialect: Dialect


def write(rows: list[Row], delimiter: str, quote: str, escape: bool, quoting: Literal[0, 1], end: str) -> Written:
    out = io.StringIO(newline="")
    writer = csv.writer(
        out,
        delimiter=delimiter,
        quotechar=quote,
        escapechar="\\" if escape else None,
        doublequote=not escape,
        quoting=quoting,
        lineterminator=end,
    )
    writer.writerows(rows)
    newline = 13 if end == "\r" else 10
    marks = (ord(delimiter), ord(quote), 92 if escape else 0, newline)
    names = [f"column_{place + 1}" for place in range(len(rows[0]))]
    return Written(rows, out.getvalue().encode(), Dialect(*marks, names, 0, 0, 0, 0.0, 0, "cp1252"))


_CHARS = st.sampled_from(
    [*"ab1 ,;|\t\"'\n\\", "é", "\N{PILE OF POO}", "\u2028", "\0", '""', "\r\n", "\r"]
) | st.characters(exclude_categories=["Cs"])
_CELL = st.lists(_CHARS, max_size=6).map("".join)


@st.composite
def tables(draw: st.DrawFn) -> Written:
    """Any table, in any dialect of quoting that has quotes."""
    width = draw(st.integers(1, 4))
    rows = draw(st.lists(st.lists(_CELL, min_size=width, max_size=width), min_size=1, max_size=12))
    end = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    escape = draw(st.booleans())
    quoting: Literal[0, 1] = draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
    if escape or any("\r" in cell for row in rows for cell in row):
        # Unquoted, an escape means nothing to us, and a bare carriage return may end a line.
        quoting = csv.QUOTE_ALL
    return write(rows, draw(st.sampled_from(",;|\t")), draw(st.sampled_from("\"'")), escape, quoting, end)


def read_rows(unit: Unit) -> list[Cells]:
    """The cells of a unit, row by row."""
    return [row for batch in sources.read(unit, _ignore) for row in _cells(batch)]


def _ignore(problem: Problem) -> None:
    assert problem.severity != "error"


def _cells(batch: Batch) -> list[Cells]:
    rows: list[Cells] = [{} for _ in range(batch.rows)]
    for column in batch.columns:
        for row, start, end in zip(rows, column.starts, column.ends, strict=True):
            if end >= 0:
                row[column.name] = column.data[start:end].tobytes()
    return rows


def as_cells(names: Row, rows: list[Row]) -> list[Cells]:
    """What was written, as it must be read."""
    return [dict(zip(names, (cell.encode() for cell in row), strict=True)) for row in rows]


def read_ranges(units: list[Unit]) -> list[Cells] | None:
    """The rows of byte ranges one after the other; None if the ranges found out that they did not meet."""
    scans = []
    for unit in units:
        scans.append(TableScan(unit.table, unit.ordinal))
        list(scans[-1].scan(unit))
        assert not scans[-1].part.failed, scans[-1].part.problems
    if broken_spans([scanned.part for scanned in scans]):
        return None
    return [row for unit in units for row in read_rows(unit)]


@fuzzed
@given(tables(), st.lists(st.integers(0, 400), max_size=5))
def test_cells_come_back_whole_and_in_ranges(written: Written, places: list[int]) -> None:
    expected = as_cells(written.dialect.names, written.rows)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.csv"
        path.write_bytes(written.content)
        size = len(written.content)
        cuts = sorted({0, size, *(place for place in places if place < size)})
        units = [
            Unit("t", "csv", str(path), high - low, number, len(cuts) - 1, _range_options(written.dialect, low, high))
            for number, (low, high) in enumerate(pairwise(cuts))
        ]
        assert (
            read_rows(Unit("t", "csv", str(path), size, options=_range_options(written.dialect, 0, size))) == expected
        )
        in_ranges = read_ranges(units)
    event("did not meet" if in_ranges is None else "met")
    assert in_ranges is None or in_ranges == expected


def _range_options(dialect: Dialect, low: int, high: int) -> Record:
    return {"range": [low, high], "begin": 0, "dialect": dialect.to_options(), "compression": None}


def _found(path: Path) -> SourceTable:
    size = path.stat().st_size
    return SourceTable("t", str(path), "csv", None, size, 0.0, ((str(path), size),))


def _ordered(units: list[Unit]) -> list[Unit]:
    assert [unit.ordinal for unit in units] == list(range(len(units)))
    return units


_TAME = st.lists(st.sampled_from([*"abcdeAB 12é-", "\N{PILE OF POO}"]), min_size=1, max_size=8).map("".join)
_WILD = st.lists(st.sampled_from([*"ab1 ,;|\t\"'\n", "é", '""', "\r\n"]), max_size=8).map("".join)


@st.composite
def usual_tables(draw: st.DrawFn, cell: st.SearchStrategy[str]) -> Written:
    """A header of words over numbered rows; what needs quotes is quoted, or everything is."""
    width = draw(st.integers(1, 3))
    rows = [
        [str(number), *cells]
        for number, cells in enumerate(
            draw(st.lists(st.lists(cell, min_size=width, max_size=width), min_size=3, max_size=20))
        )
    ]
    delimiter = draw(st.sampled_from(",;|\t"))
    others = set(",;|\t\"'") - {delimiter}
    quoting: Literal[0, 1] = (
        csv.QUOTE_ALL if any(others & set(text) for row in rows for text in row) else csv.QUOTE_MINIMAL
    )
    head = ["number", "alpha", "beta", "gamma"][: width + 1]
    return write([head, *rows], delimiter, '"', False, quoting, draw(st.sampled_from(["\n", "\r\n"])))


@fuzzed
@given(st.one_of(usual_tables(_TAME), usual_tables(_WILD)), st.integers(20, 200))
def test_dialects_are_recognised(written: Written, target: int) -> None:
    head, *rows = written.rows
    expected = as_cells(head, rows)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.csv"
        path.write_bytes(written.content)
        (whole,) = sources.plan(_found(path), 1 << 40)
        first = next(iter(sources.read(whole, _ignore)))
        assert [column.name for column in first.columns] == head
        assert read_rows(whole) == expected
        in_ranges = read_ranges(_ordered(sources.plan(_found(path), target)))
    event("did not meet" if in_ranges is None else "met")
    assert in_ranges is None or in_ranges == expected


@fuzzed
@given(
    st.lists(st.sampled_from(["a", "b", "\r"]), min_size=1, max_size=30).map("".join), st.sampled_from(["\n", "\r\n"])
)
def test_carriage_returns_inside_quotes_end_no_line(cell: str, end: str) -> None:
    rows = [["number", "text"], *([str(number), cell] for number in range(4))]
    written = write(rows, ",", '"', False, csv.QUOTE_ALL, end)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.csv"
        path.write_bytes(written.content)
        (whole,) = sources.plan(_found(path), 1 << 40)
        assert read_rows(whole) == as_cells(rows[0], rows[1:])


def test_ranges_of_a_usual_table_meet(tmp_path: Path) -> None:
    """Guessing right is what makes one scan enough: on tables as people write them it has to."""
    rows = [[str(i), f"name {i % 11}", f'said "{i}", then\nleft' if i % 3 else "", str(i / 4)] for i in range(3_000)]
    written = write([["id", "name", "note", "x"], *rows], ",", '"', False, csv.QUOTE_MINIMAL, "\n")
    (tmp_path / "x.csv").write_bytes(written.content)
    units = _ordered(sources.plan(_found(tmp_path / "x.csv"), 5_000))
    assert len(units) > 10
    assert read_ranges(units) == as_cells(["id", "name", "note", "x"], rows)


_PIECES = _AWKWARD.map(str.encode) | st.binary(max_size=8) | st.sampled_from([b"\n", b",", b'"'])


@fuzzed
@given(st.lists(_PIECES, min_size=60, max_size=200).map(b"".join), st.integers(5, 50))
def test_ranges_of_anything_are_what_the_whole_is(content: bytes, target: int) -> None:
    """Where a file is cut does not decide what its cells are."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.csv"
        path.write_bytes(content)
        units = _ordered(sources.plan(_found(path), target))
        (whole,) = sources.plan(_found(path), 1 << 40)
        try:
            expected = read_rows(whole)
        except SourceError:
            event("refused")
            return
        in_ranges = read_ranges(units)
    event("did not meet" if in_ranges is None else f"met in {'one' if len(units) == 1 else 'several'}")
    assert in_ranges is None or in_ranges == expected


@pytest.mark.parametrize("kind", ["binary_called_csv", "picture_called_csv", "only_blank_lines_beyond_the_head"])
def test_what_is_refused_whole_is_refused_in_ranges(kind: str, tmp_path: Path) -> None:
    """Where a file is cut does not decide either whether it can be read."""
    path = tmp_path / "x.csv"
    KINDS[kind].make(path)
    scans = []
    for unit in sources.plan(_found(path), 1_000):
        scans.append(TableScan(unit.table, unit.ordinal))
        list(scans[-1].scan(unit))
    refused = any(scanned.part.failed for scanned in scans) or not any(scanned.part.columns for scanned in scans)
    assert refused, (len(scans), sum(scanned.part.rows for scanned in scans))
