"""The `count` command: counts, advice and study, the same records in every format, and what it refuses."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

import lakescope
from helpers.commands import Run, assert_refused, from_json
from lakescope.engines.counting.answers import COUNTERS, counters_of
from lakescope.errors import BadRequest
from lakescope.faces.cli.sizes import bytes_of
from lakescope.sketches.design import BY_NAME, TWELVE


@pytest.fixture
def sales(tmp_path: Path) -> Path:
    """A table with 30 cities and 300 identifiers."""
    path = tmp_path / "sales.csv"
    path.write_text("id,city\n" + "".join(f"{number},city {number % 30}\n" for number in range(300)))
    return path


def test_it_prints_what_the_api_says(run: Run, sales: Path) -> None:
    printed = from_json(run("count", f"{sales}:city", "--with", "hll++,akmv", "--exact", "-f", "json").out)
    known = lakescope.count(sales, ["city"], counters=["hll++", "akmv"], exact=True).to_dicts()
    for record in (*printed, *known):
        del record["seconds"]
    assert printed == known
    assert {record["truth"] for record in printed} == {30}


def test_every_format_holds_the_same_records(run: Run, sales: Path) -> None:
    records = from_json(run("count", str(sales), "-f", "json").out)
    rows = list(csv.DictReader(io.StringIO(run("count", str(sales), "-f", "csv").out)))
    lines = run("count", str(sales)).out.splitlines()
    assert [row["column"] for row in rows] == [record["column"] for record in records] == ["id", "city"]
    assert [float(row["estimate"]) for row in rows] == [record["estimate"] for record in records]
    assert len(lines) == len(records) + 1


def test_all_means_every_sketch(run: Run, sales: Path) -> None:
    records = from_json(run("count", f"{sales}:id", "--with", "all", "--error", "0.1", "-f", "json").out)
    assert [record["counter"] for record in records] == [name for name in BY_NAME if name not in ("exact", "gee")]


def test_a_file_whose_name_holds_a_colon_is_a_file(run: Run, sales: Path) -> None:
    odd = sales.rename(sales.with_name("a:b.csv"))
    assert {record["column"] for record in from_json(run("count", str(odd), "-f", "json").out)} == {"id", "city"}
    (only,) = from_json(run("count", f"{odd}:city", "-f", "json").out)
    assert (only["column"], round(only["estimate"])) == ("city", 30)


def test_advice_puts_first_what_fits(run: Run) -> None:
    advice = from_json(run("count", "advise", "--memory", "16KB", "--rows", "1e9", "-f", "json").out)
    assert advice[0]["fits"]
    assert advice[0]["bytes"] <= 16_000
    assert advice[0]["reasons"]
    assert [each["fits"] for each in advice] == sorted((each["fits"] for each in advice), reverse=True)
    sets = from_json(run("count", "advise", "--sets", "--rows", "1e9", "-f", "json").out)
    assert sets[0]["counter"] in ("akmv", "hll++")
    members = from_json(run("count", "advise", "--membership", "--rows", "1e5", "-f", "json").out)
    assert {each["counter"] for each in members if each["fits"]} == {"bf", "exact"}


def test_the_study_writes_its_report(run: Run, sales: Path, tmp_path: Path) -> None:
    out = tmp_path / "report"
    ran = run(
        *("count", "study", str(sales), "--max", "100", "--seeds", "2", "--with", "hll++,bjkst"),
        *("--out", str(out), "-f", "json"),
    )
    assert ran.code == 0, ran.err
    assert {(trial["counter"], trial["values"]) for trial in from_json(ran.out)} == {
        (name, size) for name in ("hll++", "bjkst") for size in (10, 100)
    }
    page = (out / "study.html").read_text()
    assert "<svg" in page
    assert "city" in page, "the report tells of the user's own table"
    assert json.loads((out / "study.json").read_text()) == from_json(ran.out)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["FILE:town"], ["no column named 'town'", "'city'"]),
        (["FILE", "--with", "hyperlog"], ["hyperlog", "did you mean"]),
        (["FILE", "--with", ","], ["--with"]),
        (["FILE", "--error", "0"], ["error"]),
        (["FILE", "--error", "2"], ["error"]),
        (["FILE", "--memory", "lots"], ["--memory", "16KB"]),
        (["FILE", "--rows", "-5"], ["--rows", "1e6"]),
        (["study", "--max", "none"], ["--max"]),
        (["study", "--max", "-1"], ["--max", "1e6"]),
        (["study", "--max", "3"], ["at least 10 values"]),
        (["nowhere.csv"], ["nowhere.csv"]),
        ([], ["TABLE", "--help"]),
        (["--advise", "--memory", "16KB"], ["lakescope count advise"]),
        (["--study", "--max", "100"], ["lakescope count study"]),
        (["FILE", "--stored"], ["lakescope count stored"]),
        (["FILE", "--seeds", "2"], ["lakescope count study"]),
    ],
)
def test_bad_requests_say_what_is_wrong(run: Run, sales: Path, arguments: list[str], words: list[str]) -> None:
    given = [argument.replace("FILE", str(sales)) for argument in arguments]
    assert_refused(run("count", *given), 2, *words)


def test_the_names_of_counters_are_those_there_are() -> None:
    assert set(COUNTERS) == set(BY_NAME)
    assert counters_of(["all"]) == [kind.name for kind in TWELVE]


@pytest.mark.parametrize(("text", "size"), [("16KB", 16e3), ("2 MiB", 2 << 20), ("16384", 16384), (".5gb", 5e8)])
def test_sizes_are_read_as_people_write_them(text: str, size: float) -> None:
    assert bytes_of(text, "--memory") == size


@pytest.mark.parametrize("text", ["", "lots", "KB", "1.2.3MB", "-5KB", "5TB5", "0"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(BadRequest, match="--memory must be a size"):
        bytes_of(text, "--memory")
