"""The command line: the same records in every format, errors that say what to do, and no Spark to ask a question."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

import lakescope
from helpers.commands import Ran, Run, assert_refused, from_json
from lakescope.faces.cli import columns
from lakescope.faces.cli.app import app
from lakescope.lake import Lake
from lakescope.show.formulas import guarded_text
from lakescope.show.text import visible
from lakescope.store.manifest import FORMAT_VERSION

Record = dict[str, Any]

COMMANDS = sorted(typer.main.get_command(app).list_commands(None))  # type: ignore[attr-defined]


@pytest.fixture
def index(demo_index: Lake) -> str:
    return demo_index.path


@pytest.fixture
def copied(demo_index: Lake, tmp_path: Path) -> Path:
    """A copy of the index, to be damaged."""
    return Path(shutil.copytree(demo_index.path, tmp_path / "copy.idx"))


def spawn(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run the command line as a process of its own."""
    program = [sys.executable, "-c", "from lakescope.faces.cli import main; main()", *arguments]
    return subprocess.run(program, capture_output=True, text=True, timeout=600, check=False, **options)


def from_csv(text: str) -> list[Record]:
    return list(csv.DictReader(io.StringIO(text, newline=""), strict=True))


def assert_same(printed: list[Record], record: list[Record]) -> None:
    """Records read back from CSV are those that were read back from JSON, but for what steers terminals or computes."""
    assert len(printed) == len(record)
    for cells, values in zip(printed, record, strict=True):
        assert set(cells) == set(values)
        for name, value in values.items():
            cell = cells[name]
            if value is None:
                assert cell == "", name
            elif isinstance(value, bool):
                assert cell.lower() == str(value).lower(), name
            elif isinstance(value, int | float):
                assert float(cell) == value, name
            elif isinstance(value, str):
                assert cell == visible(guarded_text(value)), name
            else:
                assert json.loads(cell) == value, name


# Every command, every format ------------------------------------------------------------------------------------------


@pytest.fixture
def table(demo_index: Lake) -> str:
    """A table with columns of many types."""
    types: dict[str, set[str]] = {}
    for record in demo_index.columns().select(["table", "type"]).to_pylist():
        types.setdefault(record["table"], set()).add(record["type"])
    return max(sorted(types), key=lambda name: len(types[name]))


@pytest.mark.parametrize("command", ["info", "tables", "columns", "profile", "problems", "verify"])
def test_formats_print_the_same_records(command: str, run: Run, index: str, table: str) -> None:
    arguments = [command, index] + ([table] if command == "profile" else [])
    as_json, as_csv = run(*arguments, "--format", "json"), run(*arguments, "--format", "csv")
    as_table, plain = run(*arguments, "--format", "table"), run(*arguments)
    assert [as_json.code, as_csv.code, as_table.code] == [0, 0, 0], as_json.err + as_csv.err
    assert as_table.out == plain.out
    assert as_table.out.strip()
    answer = from_json(as_json.out)
    if command == "profile":
        # JSON can hold the whole table; CSV has a row for each column of it.
        assert answer["table"] == table
        answer = answer["columns"]
    assert_same(from_csv(as_csv.out), answer if isinstance(answer, list) else [answer])


def test_info_is_what_the_api_says(run: Run, index: str, demo_index: Lake) -> None:
    assert from_json(run("info", index, "-f", "json").out) == demo_index.info()


def test_tables_are_what_the_api_says(run: Run, index: str, demo_index: Lake) -> None:
    assert from_json(run("tables", index, "-f", "json").out) == demo_index.tables().to_pylist()


def test_columns_are_what_the_api_says(run: Run, index: str, demo_index: Lake) -> None:
    records = demo_index.columns().to_pylist(maps_as_pydicts="strict")
    assert from_json(run("columns", index, "-f", "json").out) == records


def test_profile_is_what_the_api_says(run: Run, index: str, table: str, demo_index: Lake) -> None:
    assert from_json(run("profile", index, table, "-f", "json").out) == demo_index.profile(table).to_dict()


def test_problems_are_what_the_api_says(run: Run, index: str, demo_index: Lake) -> None:
    def ordered(records: list[Record]) -> list[str]:
        return sorted(json.dumps(record, sort_keys=True) for record in records)

    printed = from_json(run("problems", index, "-f", "json").out)
    assert ordered(printed) == ordered(demo_index.problems().to_pylist())
    severities = [record["severity"] for record in printed]
    assert severities == sorted(severities, key=["error", "warning", "info"].index)


def test_columns_of_one_table_are_among_the_columns_of_all(run: Run, index: str, table: str) -> None:
    everything = from_json(run("columns", index, "-f", "json").out)
    of_one = from_json(run("columns", index, "--table", table, "-f", "json").out)
    assert [record["column"] for record in of_one] == [r["column"] for r in everything if r["table"] == table]
    assert of_one == [record for record in everything if record["table"] == table]


def test_one_column(run: Run, index: str, table: str, demo_index: Lake) -> None:
    first = demo_index.profile(table).columns[0]
    assert from_json(run("profile", index, table, "--column", first["name"], "-f", "json").out) == first
    shown = run("profile", index, table, "--column", first["name"])
    assert shown.code == 0
    assert re.search(rf"^name +{re.escape(first['name'])}$", shown.out, re.MULTILINE)


def test_a_table_for_people_has_a_line_for_each_record(run: Run, index: str, demo_index: Lake) -> None:
    for command, count in [
        ("tables", demo_index.tables().num_rows),
        ("columns", demo_index.columns().num_rows),
        ("problems", demo_index.problems().num_rows),
    ]:
        assert len(run(command, index).out.splitlines()) == count + 1, command


# Choosing -------------------------------------------------------------------------------------------------------------


def test_limit_says_how_much_is_left(run: Run, index: str, demo_index: Lake) -> None:
    shown = run("tables", index, "--limit", "2", "-f", "json")
    assert len(from_json(shown.out)) == 2
    assert f"{demo_index.tables().num_rows - 2:,} more" in shown.err
    assert run("tables", index, "--limit", "0", "-f", "json").err == ""


def test_like_chooses_by_part_of_the_name(run: Run, index: str, demo_index: Lake) -> None:
    names = [name for name in demo_index.tables()["table"].to_pylist() if ".parquet" in name.lower()]
    assert names
    shown = from_json(run("tables", index, "--like", ".PARQUET", "-f", "json").out)
    assert [record["table"] for record in shown] == names
    assert run("tables", index, "--like", "no such thing").out.strip() == "no table matches"
    assert from_json(run("tables", index, "--like", "no such thing", "-f", "json").out) == []
    assert from_csv(run("tables", index, "--like", "no such thing", "-f", "csv").out) == []


def test_type_and_severity_choose(run: Run, index: str) -> None:
    dates = from_json(run("columns", index, "--type", "date", "-f", "json").out)
    assert dates
    assert {record["type"] for record in dates} == {"date"}
    errors = from_json(run("problems", index, "--severity", "error", "-f", "json").out)
    assert errors
    assert {record["severity"] for record in errors} == {"error"}


# Bad requests ---------------------------------------------------------------------------------------------------------


def test_unknown_table_names_the_near_ones(run: Run, index: str, table: str) -> None:
    wrong = table[:-1] + "x"
    for arguments in (["profile", index, wrong], ["columns", index, "--table", wrong]):
        assert_refused(run(*arguments), 2, f"no table named {wrong!r}", "did you mean", repr(table))


def test_unknown_column_names_the_near_ones(run: Run, index: str, table: str, demo_index: Lake) -> None:
    known = demo_index.profile(table).columns[0]["name"]
    assert_refused(run("profile", index, table, "--column", known + "x"), 2, "no column named", repr(known))


@pytest.mark.parametrize("command", ["info", "tables", "columns", "profile", "problems", "verify"])
def test_no_index_there(command: str, run: Run, tmp_path: Path) -> None:
    more = ["t"] if command == "profile" else []
    missing, foreign, file = tmp_path / "missing.idx", tmp_path / "foreign", tmp_path / "file"
    foreign.mkdir()
    (foreign / "data.csv").write_text("a\n1\n")
    file.write_text("a\n1\n")
    assert_refused(run(command, str(missing), *more), 2, str(missing), "hint: ")
    assert_refused(run(command, str(foreign), *more), 2, str(foreign), "is not a Lakescope index", "hint: ")
    assert_refused(run(command, str(file), *more), 2, str(file), "hint: ")


@pytest.mark.parametrize(
    "arguments",
    [
        ["tables", "INDEX", "--colour"],
        ["tables", "INDEX", "--format", "xml"],
        ["tables", "INDEX", "--limit", "-1"],
        ["tables", "INDEX", "--limit", "many"],
        ["tables"],
        ["profile", "INDEX"],
        ["tabels", "INDEX"],
        ["problems", "INDEX", "--severity", "fatal"],
        ["index", "somewhere"],
        ["index", "--out", "somewhere.idx"],
        ["--colour"],
    ],
    ids=" ".join,
)
def test_wrong_use_says_so(arguments: list[str], run: Run, index: str) -> None:
    ran = run(*[index if argument == "INDEX" else argument for argument in arguments])
    assert_refused(ran, 2)
    assert len(ran.err.strip()) > 10


def test_index_of_nothing_leaves_no_trace(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "new.idx"
    assert_refused(run("index", str(tmp_path / "nowhere"), "--out", str(out)), 2, str(tmp_path / "nowhere"), "hint: ")
    assert not out.exists()


def test_index_spares_what_is_not_an_index(run: Run, demo_lake: Path, tmp_path: Path) -> None:
    (tmp_path / "keep.txt").write_text("mine")
    assert_refused(run("index", str(demo_lake), "--out", str(tmp_path)), 2, str(tmp_path), "hint: ")
    assert_refused(run("index", str(demo_lake), "--out", str(tmp_path / "keep.txt")), 2, "keep.txt", "hint: ")
    assert [path.name for path in tmp_path.iterdir()] == ["keep.txt"]


def test_debug_shows_the_traceback_and_keeps_the_exit_code(tmp_path: Path) -> None:
    ran = spawn("--debug", "tables", str(tmp_path / "missing.idx"))
    assert "Traceback" in ran.stderr
    assert "missing.idx" in ran.stderr
    assert ran.returncode == 2


# A damaged index ------------------------------------------------------------------------------------------------------


def segment(index: Path, kind: str) -> Path:
    """A file of the index of one kind."""
    return next(iter(sorted((index / "segments").rglob(f"{kind}-*"))))


@pytest.mark.parametrize("kind", ["tables", "columns", "problems", "sketches"])
def test_verify_names_the_file_with_a_flipped_bit(kind: str, run: Run, copied: Path) -> None:
    assert run("verify", str(copied)).code == 0
    path = segment(copied, kind)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert_refused(run("verify", str(copied)), 1, path.name, "hint: ")


@pytest.mark.parametrize("kind", ["tables", "columns", "problems", "sketches"])
@pytest.mark.parametrize("command", ["verify", "info", "tables"])
def test_a_truncated_file_is_refused_by_name(kind: str, command: str, run: Run, copied: Path) -> None:
    path = segment(copied, kind)
    path.write_bytes(path.read_bytes()[:-1])
    assert_refused(run(command, str(copied)), 1, path.name, "hint: ")


def test_every_damaged_file_is_named(run: Run, copied: Path) -> None:
    paths = [segment(copied, kind) for kind in ("tables", "sketches")]
    for path in paths:
        content = bytearray(path.read_bytes())
        content[len(content) // 3] ^= 64
        path.write_bytes(content)
    assert_refused(run("verify", str(copied)), 1, *(path.name for path in paths))


def test_a_missing_file_is_named(run: Run, copied: Path) -> None:
    path = segment(copied, "columns")
    path.unlink()
    for command in ("verify", "tables"):
        assert_refused(run(command, str(copied)), 1, path.name, "hint: ")


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "binary", "list"])
def test_a_damaged_manifest_is_named(damage: str, run: Run, copied: Path) -> None:
    path = copied / "manifest.json"
    content = path.read_bytes()
    flipped = content.replace(b'"tables"', b'"tablez"', 1)
    assert flipped != content
    path.write_bytes({"cut": content[:-20], "flip": flipped, "empty": b"", "binary": b"\xff\0", "list": b"[]"}[damage])
    for command in ("verify", "info"):
        assert_refused(run(command, str(copied)), 1, "manifest.json", "hint: ")


def test_another_format_is_refused_by_its_number(run: Run, copied: Path) -> None:
    path = copied / "manifest.json"
    path.write_text(path.read_text().replace(f'"format": {FORMAT_VERSION}', '"format": 999'))
    assert_refused(run("info", str(copied)), 1, "format 999", "hint: ")


# Help -----------------------------------------------------------------------------------------------------------------


def test_version(run: Run) -> None:
    assert run("--version") == Ran(0, f"lakescope {lakescope.__version__}\n", "")


def test_commands_are_those_of_the_manual() -> None:
    assert {"index", "info", "tables", "columns", "profile", "problems", "verify", "demo"} <= set(COMMANDS)


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_shows_an_example(command: str, run: Run) -> None:
    shown = run(*command.split(), "--help")
    assert shown.code == 0
    assert shown.err == ""
    assert re.search(rf"Examples?: lakescope {command}", " ".join(shown.out.split()))


def test_no_arguments_show_the_help(run: Run) -> None:
    shown = run()
    assert "Usage" in shown.out + shown.err
    assert "profile" in shown.out + shown.err
    assert "Traceback" not in shown.err


# As a process of its own ----------------------------------------------------------------------------------------------

_MODULES = """
import sys
heavy = ("pyspark", "pandas", "numba", "llvmlite", "polars", "py4j", "duckdb")
def check(what):
    found = sorted(name for name in heavy if name in sys.modules)
    assert not found, f"{what} imports {found}"
import lakescope
check("import lakescope")
from lakescope.faces.cli import main
for command in sys.argv[2:]:
    arguments = command.split("|")
    sys.argv = ["lakescope", arguments[0], sys.argv[1] if len(sys.argv[1:]) else "", *arguments[1:]]
    sys.argv[2] = INDEX
    main()
    check(command)
"""


def test_asking_needs_no_heavy_package(index: str, table: str) -> None:
    commands = ["info", "tables", "columns", f"profile|{table}", "problems", "verify", "columns|--table|" + table]
    program = _MODULES.replace("INDEX", repr(index)).replace("sys.argv[2:]", repr(commands))
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=600, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "every file is whole" in ran.stdout


def test_asking_needs_no_java(index: str, tmp_path: Path) -> None:
    environment = {**os.environ, "JAVA_HOME": str(tmp_path / "nowhere"), "PATH": str(tmp_path), "SPARK_HOME": "nowhere"}
    ran = spawn("tables", index, "--format", "json", env=environment)
    assert ran.returncode == 0, ran.stderr
    assert from_json(ran.stdout)
    assert ran.stderr == ""


@pytest.mark.parametrize("arguments", [["columns", "-f", "json"], ["info"]], ids=["much", "little"])
def test_a_reader_that_goes_away_is_no_error(arguments: list[str], index: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        program = [
            sys.executable,
            "-c",
            "from lakescope.faces.cli import main; main()",
            arguments[0],
            index,
            *arguments[1:],
        ]
        ran = subprocess.run(program, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=600, check=False)
    finally:
        os.close(writer)
    assert ran.stderr == ""
    assert ran.returncode == 141


def test_an_answer_leaves_the_signals_of_the_process_alone(run: Run, index: str) -> None:
    """A process that dies of SIGPIPE dies, too, when a server hangs up on it."""
    assert signal.getsignal(signal.SIGPIPE) is signal.SIG_IGN
    assert run("info", index).code == 0
    assert signal.getsignal(signal.SIGPIPE) is signal.SIG_IGN


def test_head_takes_one_line(index: str) -> None:
    program = [sys.executable, "-c", "from lakescope.faces.cli import main; main()", "columns", index, "-f", "csv"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith("table,")
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(120) in (0, 141)


def test_a_terminal_without_unicode_gets_an_answer(index: str, table: str) -> None:
    ran = spawn("profile", index, table, env={**os.environ, "PYTHONIOENCODING": "latin-1"})
    assert ran.returncode == 0, ran.stderr
    assert table in ran.stdout


def test_errors_of_a_process(index: str) -> None:
    assert_refused(spawn("profile", index, "no such table"), 2, "error: no table named", "hint: ")
    assert_refused(spawn("tables", index, "--colour"), 2, "--colour")


def test_index_from_the_command_line(tmp_path: Path) -> None:
    lake, out = tmp_path / "lake", tmp_path / "new" / "lake.idx"
    lake.mkdir()
    (lake / "fine.csv").write_text("id,name\n1,a\n2,b\n")
    (lake / "broken.parquet").write_bytes(b"PAR1 but no more")
    ran = spawn("index", str(lake), "--out", str(out), "--master", "local[1]")
    assert ran.returncode == 0, ran.stderr
    assert "1 tables, 2 columns, 2 rows" in ran.stdout
    assert "1 errors" in ran.stdout
    assert "Traceback" not in ran.stderr
    assert "WARN" not in ran.stderr
    assert Lake.open(out).tables()["table"].to_pylist() == ["fine.csv"]


_COMPILES = """
import time
from lakescope.faces.cli.compiling import tell_of_compiling
tell_of_compiling()
from numba import njit
time.sleep(1)
for wait in WAITS:
    njit(lambda x: x + 1)(1)
    time.sleep(wait)
"""


@pytest.mark.parametrize(("waits", "told"), [((0, 0), 0), ((2, 0, 2, 0), 1)])
def test_a_terminal_is_told_once_that_kernels_are_compiled(waits: tuple[int, ...], told: int) -> None:
    ours, theirs = os.openpty()
    try:
        code = _COMPILES.replace("WAITS", repr(waits))
        subprocess.run([sys.executable, "-c", code], stderr=theirs, check=True, timeout=120)
        os.write(theirs, b"end")
        assert os.read(ours, 10_000).count(b"compiling for this machine, once") == told
        piped = subprocess.run([sys.executable, "-c", code], stderr=subprocess.PIPE, check=True, timeout=120)
        assert piped.stderr == b""
    finally:
        os.close(ours)
        os.close(theirs)


@pytest.mark.parametrize(
    ("query", "split"),
    [
        ("shop/orders.csv.customer", ("shop/orders.csv", "customer")),
        ("shop/orders.csv:customer.id", ("shop/orders.csv", "customer.id")),
        ("shop/orders.csv", ("shop/orders.csv", None)),
        ("a.b", ("a.b", None)),
        ("a.b.c", ("a.b", "c")),
        ("a.c", ("a", "c")),
        ("mine.csv.zip", ("mine.csv", "zip")),
        ("mine.csv", ("mine.csv", None)),
        ("s3://bucket/x.csv:zip", ("s3://bucket/x.csv:zip", None)),
        ("nowhere.csv.zip", ("nowhere.csv.zip", None)),
        ("mine.csv.", ("mine.csv.", None)),
    ],
)
def test_a_table_and_a_column_in_one_word(
    query: str, split: tuple[str, str | None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.csv").touch()
    assert columns.split(query, {"shop/orders.csv", "a", "a.b"}, of_lake=True) == split


def test_a_column_of_what_another_system_holds() -> None:
    assert columns.split("s3://bucket/x.csv:zip", ()) == ("s3://bucket/x.csv", "zip")
    assert columns.split("s3://bucket/x.csv", ()) == ("s3://bucket/x.csv", None)
    assert columns.split("book.xlsx::sheet", ()) == ("book.xlsx::sheet", None)


@pytest.mark.parametrize("command", ["join", "paths", "correlate"])
def test_every_command_takes_a_column_with_its_table(run: Run, demo_index: Lake, command: str) -> None:
    table, column = ("shop/orders.csv", "customer_id")
    if command == "correlate":
        table, column = "mobility/bike_rides_daily.csv", "rides"
    option = "--target" if command == "correlate" else "--on"
    both = [run(command, demo_index.path, *words) for words in ([f"{table}.{column}"], [table, option, column])]
    assert both[0] == both[1]
    assert both[0].code == 0, both[0].err
