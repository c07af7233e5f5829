"""What is printed, logged and reported: nothing in a lake steers a terminal, nothing becomes a formula."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import logging
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import lakescope
from lakescope.faces.cli.app import app
from lakescope.faces.cli.output import Format, print_record, print_records, print_results, say
from lakescope.faces.cli.progress import watching
from lakescope.faces.serving.downloads import csv_pieces, guarded
from lakescope.logs import JsonLines
from lakescope.results import Results
from lakescope.show.formulas import guarded_text
from lakescope.show.markdown import plain
from lakescope.show.markup import text as html_text
from lakescope.show.notebook import results_html
from lakescope.show.profile_text import profile_text
from lakescope.show.text import cell_text, json_text, printable, visible

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Controls but line break and tab, and what sets the direction of text.
STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
ODD = st.text(
    st.sampled_from(
        "\x1b\x07\x00\r\n\t\x7f\x85\x9b\u061c\u200e\u200f\u202a\u202e\u2066\u2069\u2028\ufeff\u200b=＝a\"',\\"
    )
    | st.characters(),
    max_size=30,
)


@dataclass(frozen=True)
class Cell:
    """A record as answers have them."""

    table: str
    values: tuple[str, ...]
    share: float


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=ODD)
def test_no_face_lets_anything_through_that_steers_a_terminal(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    results = Results(Cell, [Cell(text, (text,), 0.5)], notes=[text])
    records = [{"name": text, "list": [text], "inner": {text: text}}]
    for form in Format:
        print_records(records, ["name", "list"], form, empty=text)
        print_records([], ["name"], form, empty=text)
        print_record(records[0], form)
        print_results(results, form, empty=text)
    say(text)
    shown = capsys.readouterr()
    profile: dict[str, Any] = {
        "table": text,
        "rows": 1,
        "columns": [],
        "problems": [{"severity": "error", "code": "c", "count": 1, "detail": text}],
    }
    record = logging.LogRecord("lakescope", logging.INFO, "", 0, text, (), None)
    faces = [
        shown.out,
        shown.err,
        repr(results),
        repr(Results(Cell, [], notes=[text])),
        results_html([text], [[text]], [text], []),
    ]
    faces += [
        profile_text(profile),
        JsonLines().format(record),
        plain(text),
        str(html_text(text)),
        cell_text(text),
        printable(text),
    ]
    for face in faces:
        assert not STEERING.search(face), face


@settings(deadline=None)
@given(st.recursive(ODD | st.integers() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(ODD, inner)))
def test_json_that_is_printed_says_all(value: Any) -> None:
    assert json.loads(json_text(value)) == value
    assert visible(json_text(value)) == json_text(value)


@settings(deadline=None)
@given(ODD)
def test_csv_that_is_printed_keeps_its_cells(text: str) -> None:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        print_record({"a": text, "b": 1}, Format.csv)
    _, row = csv.reader(io.StringIO(out.getvalue(), newline=""))
    assert row == [visible(guarded_text(text)), "1"]


FORMULAS = [
    *("=1+1", "+cmd|x", "-2+3", "@SUM(A1)", "|x", "%x", "＝1+1", "＋1+1", "－1+1", "＠SUM(A1)", "−1+1", "﹦1"),
    *(
        "\t=1",
        "\r=1",
        "\n=1",
        "\x00=1",
        "\ufeff=1",
        "\u00a0=1",
        "\u200b=1",
        "\u200e＝1",
        "\u3000@x",
        " \u2060 -x",
        "\x1b=1",
    ),
    *("\tx", "\rx", "\nx", "\x00x", "-5\n"),
]
NO_FORMULAS = [
    "",
    "x",
    "-5",
    "+1.5",
    "-1,000.5",
    "1e-5",
    " -7 ",
    "5%",
    "a=b",
    "x@y.z",
    "−5",
    "'=1",
    "\u200bx",
    "Ä",
    "日本",
]


@pytest.mark.parametrize("text", FORMULAS)
def test_what_a_spreadsheet_takes_for_a_formula_gets_an_apostrophe(text: str) -> None:
    assert guarded_text(text) == f"'{text}"


@pytest.mark.parametrize("text", NO_FORMULAS)
def test_what_is_no_formula_stays(text: str) -> None:
    assert guarded_text(text) == text


@settings(deadline=None)
@given(st.lists(ODD))
def test_arrow_and_python_guard_alike(texts: list[str]) -> None:
    assert guarded(pa.array(texts, pa.string())).to_pylist() == [guarded_text(text) for text in texts]


def test_downloads_are_guarded_however_text_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    for kind in (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())):
        pq.write_table(pa.table({"＝x": pa.array(FORMULAS).cast(kind)}), path)
        read = list(csv.reader(io.StringIO(b"".join(csv_pieces(path)).decode(), newline="")))
        assert [row[0] for row in read] == [f"'{text}" for text in ["＝x", *FORMULAS]]


def test_commands_print_names_and_cells_of_a_hostile_lake_as_escapes(tmp_path: Path, spark: SparkSession) -> None:
    (tmp_path / "lake").mkdir()
    rows = "".join(f"K{number % 9}\x1b]0;owned\x07,\u202evalue{number}\x9b2J,=1+{number}\n" for number in range(30))
    for name in ("a\x1b[31m.csv", "b\u202e.csv"):
        (tmp_path / "lake" / name).write_text(f"id\x1b[2J,x\u2066y,f\n{rows}")
    (tmp_path / "lake" / "bad\x1b[1m\x07.csv").write_bytes(b"\x00\x01\x02" * 99)
    index = str(tmp_path / "idx")
    lake = lakescope.index(tmp_path / "lake", index, spark=spark)
    run = CliRunner()
    for form in ("table", "json", "csv"):
        for command in (
            *(["tables"], ["columns"], ["problems"], ["info"], ["profile", "a\x1b[31m.csv"], ["keys"], ["inclusions"]),
            *(["join", "a\x1b[31m.csv"], ["history", "a\x1b[31m.csv"], ["profile", "none\x1b.csv"]),
        ):
            said = run.invoke(app, [command[0], index, *command[1:], "--format", form])
            assert not STEERING.search(said.output), (command, form)
    for face in (
        repr(lake.profile("a\x1b[31m.csv")),
        lake.profile("a\x1b[31m.csv")._repr_html_(),
        repr(lake.joinable("b\u202e.csv")),
    ):
        assert not STEERING.search(face)
    for form in ("html", "md", "json"):
        lake.report(tmp_path / form, form=form)
        for page in (tmp_path / form).rglob(f"*.{form}"):
            assert not STEERING.search(page.read_text("utf-8").replace("\r\n", "\n")), page


def test_a_living_line_shows_names_on_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with watching("learning", quiet=False) as watch:
        watch.tell("x\x1b[2J\ny")
    assert "\x1b" not in (said := capsys.readouterr().err)
    assert "\n" not in said
