"""Programs give the same values everywhere: row by row, in Arrow, DuckDB, polars, Python and Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakescope.engines.transforms.evaluate import expression_of
from lakescope.engines.transforms.program import Constant, Expression, Piece, Program
from lakescope.engines.transforms.steps import (
    Case,
    Digits,
    Drop,
    Initials,
    Month,
    Run,
    Slice,
    SplitPiece,
    Step,
    Unaccent,
)
from lakescope.engines.transforms.texts import TextTable
from lakescope.errors import BadRequest
from lakescope.transforms.code import _polars_helpers, expression_code, python_functions
from lakescope.values.alphabet import SPACES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Cells that steps have something to do with, and characters that systems disagree about.
_PARTS = [
    "Ada",
    "lovelace",
    "ÉCOLE",
    "ß",
    "İ",
    "ŉ",
    "Σας",
    "Жук",
    "007",
    "0",
    "12",
    "٣",
    "1975",
    "May",
    "dec",
    "😀",
    "e\u0301",
]
_PARTS += [
    "-",
    ", ",
    " ",
    "  ",
    "(",
    ")",
    "/",
    ".",
    "'",
    '"',
    "\\",
    "$1",
    "%",
    "\n",
    "\t",
    "\u00a0",
    "\u2003",
    "’",
    "\\1",
]
CELLS = st.one_of(
    st.lists(st.sampled_from(_PARTS), min_size=2, max_size=9).map("".join),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=12),
)
_SEPARATORS = st.sampled_from([" ", "-", ", ", "(", ".", "'", "\\", "ad", "$1", "|", "é", "😀"])
_INDEX = st.integers(-3, 3)
STEPS: st.SearchStrategy[Step] = st.one_of(
    st.builds(SplitPiece, _SEPARATORS, _INDEX),
    st.builds(Run, st.sampled_from(["digits", "word", "capitalised"]), _INDEX),
    st.builds(lambda start, size: Slice(start, start + size), st.integers(0, 3), st.integers(1, 4)),
    st.builds(Slice, st.integers(0, 3), st.sampled_from([None, -1, -2, -3])),
    st.builds(Slice, st.integers(-4, -1), st.none()),
    st.builds(lambda stop, size: Slice(stop - size, stop), st.integers(-3, -1), st.integers(1, 3)),
    st.builds(Case, st.sampled_from(["lower", "upper", "capital"])),
    st.builds(Digits, st.integers(1, 5)),
    st.builds(Month, st.sampled_from(["number", "two digits", "name", "short"])),
    st.just(Initials()),
    st.just(Drop()),
    st.just(Unaccent()),
)
PIECES = st.builds(Piece, st.sampled_from(["a", "b"]), st.lists(STEPS, max_size=3).map(tuple))
OPERATORS = st.one_of(PIECES, PIECES, st.builds(Constant, st.text(st.sampled_from("x' \\$-é"), min_size=1, max_size=3)))
EXPRESSIONS = st.builds(Expression, st.lists(OPERATORS, min_size=1, max_size=3).map(tuple))
#: Every step by itself, with all its parameters, and cells that each of them does something to.
GRID: list[Step] = [
    *[
        SplitPiece(separator, index)
        for separator in (" ", "-", ", ", "(", "'", "\\", "$1", "é", "😀")
        for index in range(-2, 3)
    ],
    *[Run(kind, index) for kind in ("digits", "word", "capitalised") for index in range(-2, 3)],  # type: ignore[arg-type]
    *[Slice(start, stop) for start in range(4) for stop in (None, -3, -2, -1, start + 1, start + 3)],
    *[Slice(start, stop) for start in range(-4, 0) for stop in (None, *range(start + 1, 0))],
    *[Case(kind) for kind in ("lower", "upper", "capital")],  # type: ignore[arg-type]
    *[Digits(width) for width in range(1, 6)],
    *[Month(form) for form in ("number", "two digits", "name", "short")],  # type: ignore[arg-type]
    *[Initials(), Drop(), Unaccent()],
]
GRID_EXPRESSIONS = [Expression((Piece("a", (step,)),)) for step in GRID]
GRID_ROWS: list[tuple[str, str | None]] = [
    (cell, None)
    for cell in [
        *[
            "a",
            "ab",
            "abc",
            "Ada Lovelace",
            " Ada  King-Noel ",
            "ÉCOLE normale",
            "Σίσυφος ΣΑΣ",
            "Жук жук",
            "İstanbul ıI ß",
        ],
        *["007", "0", "000", "12345678", "1975-05-13", "a1b22c333", "٣ 3", "May", "dec", "09", "12", "(202) 224-5842"],
        *[
            "O'Neil, Tip's, x",
            "f(x(y(z",
            "back\\slash\\es",
            "x$1 and $1y",
            "née été é fin",
            "née éé",
            "x😀y😀z",
            "RepJasonCrow AOC",
            "J. R. R. Tolkien",
        ],
        *[
            "-a--b-",
            "Łódź Ångström Øre",
            "e\u0301 combining",
            "line\nbreak two",
            "tab\tbed",
            "\u00a0nbsp inside\u00a0x",
            "",
        ],
    ]
]
ROWS = st.lists(st.tuples(CELLS, st.one_of(CELLS, CELLS, st.none())), min_size=3, max_size=8)


def trimmed(rows: list[tuple[str, str | None]]) -> list[dict[str, str]]:
    return [{"a": a.strip(SPACES), "b": (b or "").strip(SPACES)} for a, b in rows]


def wanted(expression: Expression, rows: list[tuple[str, str | None]]) -> list[str | None]:
    return [expression.apply(row) or None for row in trimmed(rows)]


def test_the_grid_makes_something() -> None:
    """Otherwise equal values would prove nothing."""
    for expression in GRID_EXPRESSIONS:
        assert any(wanted(expression, GRID_ROWS)), expression.words()


def test_every_step_is_the_same_in_arrow() -> None:
    columns = {"a": pa.chunked_array([[row["a"] or None for row in trimmed(GRID_ROWS)]], pa.large_string())}
    for expression in GRID_EXPRESSIONS:
        made = expression_of(expression, TextTable(columns, len(GRID_ROWS))).to_pylist()
        assert made == wanted(expression, GRID_ROWS), expression.words()


def test_every_step_is_the_same_in_duckdb() -> None:
    with duckdb.connect() as connection:
        connection.register("t", pa.table({"n": range(len(GRID_ROWS)), "a": [a for a, _ in GRID_ROWS]}))
        for expression in GRID_EXPRESSIONS:
            found = connection.execute(f"SELECT {expression_code(expression, 'duckdb')} FROM t ORDER BY n").fetchall()
            assert [made for (made,) in found] == wanted(expression, GRID_ROWS), expression.words()


def test_every_step_is_the_same_in_polars_and_python() -> None:
    frame = pl.DataFrame({"a": [a for a, _ in GRID_ROWS]})
    for expression in GRID_EXPRESSIONS:
        names: dict[str, Any] = {}
        code = expression_code(expression, "polars")
        exec(_polars_helpers([code]), names)
        assert frame.select(eval(code, names).alias("made"))["made"].to_list() == wanted(expression, GRID_ROWS), code
        code = expression_code(expression, "python")
        exec(python_functions([code]), names)
        made = [eval(code, {**names, "row": {"a": a}}) or None for a, _ in GRID_ROWS]
        assert made == wanted(expression, GRID_ROWS), code


@settings(deadline=None, max_examples=300)
@given(EXPRESSIONS, ROWS)
def test_arrow_gives_the_same(expression: Expression, rows: list[tuple[str, str | None]]) -> None:
    columns = {
        name: pa.chunked_array([[row[name] or None for row in trimmed(rows)]], pa.large_string()) for name in "ab"
    }
    assert expression_of(expression, TextTable(columns, len(rows))).to_pylist() == wanted(expression, rows)


@settings(deadline=None, max_examples=150)
@given(EXPRESSIONS, ROWS)
@pytest.mark.parametrize("dialect", ["duckdb", "sql"])
def test_duckdb_gives_the_same(dialect: str, expression: Expression, rows: list[tuple[str, str | None]]) -> None:
    table = pa.table(
        {"n": range(len(rows)), "a": [a for a, _ in rows], "b": pa.array([b for _, b in rows], pa.string())}
    )
    with duckdb.connect() as connection:
        connection.register("t", table)
        found = connection.execute(f"SELECT {expression_code(expression, dialect)} FROM t ORDER BY n").fetchall()
    assert [made for (made,) in found] == wanted(expression, rows)


@settings(deadline=None, max_examples=60)
@given(EXPRESSIONS, ROWS)
def test_polars_gives_the_same(expression: Expression, rows: list[tuple[str, str | None]]) -> None:
    frame = pl.DataFrame(
        {"a": [a for a, _ in rows], "b": [b for _, b in rows]}, schema={"a": pl.String, "b": pl.String}
    )
    code = expression_code(expression, "polars")
    names: dict[str, Any] = {}
    exec(_polars_helpers([code]), names)
    made = (
        frame.select(eval(code, names).alias("made"))
        if any(isinstance(x, Piece) for x in expression.operators)
        else None
    )
    if made is not None:
        assert made["made"].to_list() == wanted(expression, rows)


@settings(deadline=None, max_examples=60)
@given(EXPRESSIONS, ROWS)
def test_python_gives_the_same(expression: Expression, rows: list[tuple[str, str | None]]) -> None:
    code = expression_code(expression, "python")
    names: dict[str, Any] = {}
    exec(python_functions([code]), names)
    made = [eval(code, {**names, "row": {"a": a, "b": b}}) or None for a, b in rows]
    assert made == wanted(expression, rows)


def test_spark_gives_the_same(spark: SparkSession) -> None:
    """Many random programs over many random cells in one job: a job for each would take hours."""
    expressions = [*GRID_EXPRESSIONS, *_drawn(EXPRESSIONS, 60)]
    rows = [*GRID_ROWS, *[row for some in _drawn(ROWS, 40) for row in some]]
    frame = spark.createDataFrame([(n, a, b) for n, (a, b) in enumerate(rows)], "n long, a string, b string")
    made = [f"{expression_code(each, 'spark')} AS m{n}" for n, each in enumerate(expressions)]
    found = frame.selectExpr("n", *made).orderBy("n").toArrow()
    for number, expression in enumerate(expressions):
        assert found[f"m{number}"].to_pylist() == wanted(expression, rows), expression_code(expression, "spark")


def _drawn(strategy: st.SearchStrategy[Any], count: int) -> list[Any]:
    drawn: list[Any] = []

    @settings(deadline=None, max_examples=count, database=None, derandomize=True)
    @given(strategy)
    def draw(each: Any) -> None:
        drawn.append(each)

    draw()
    return drawn[:count]


@settings(deadline=None)
@given(
    st.builds(
        Program, st.lists(EXPRESSIONS, min_size=1, max_size=2).map(tuple), st.lists(PIECES, min_size=1).map(tuple)
    )
)
def test_programs_survive_json(program: Program) -> None:
    assert Program.from_json(program.to_json()) == program


def test_what_is_no_program_is_refused() -> None:
    with pytest.raises(BadRequest, match="no program"):
        Program.from_dict({"keys": [], "outputs": [[{"column": "a", "steps": [{"step": "fly"}]}]]})


@pytest.mark.parametrize(("start", "stop"), [(2, 1), (2, 2), (-1, 3), (-2, -3)])
def test_slices_that_are_none_are_refused(start: int, stop: int) -> None:
    with pytest.raises(ValueError, match="slice"):
        Slice(start, stop)


def test_words() -> None:
    piece = Piece("name", (SplitPiece(", ", -1), Slice(0, 1), Case("lower")))
    expression = Expression((Constant("id-"), piece, Piece("n", (Digits(3),))))
    assert expression.words() == (
        "'id-' + (the first character of (name after the last ', ')) in lower case + n with zeros to 3 digits"
    )
    assert expression.apply({"name": "Lovelace, Ada", "n": "7"}) == "id-a007"
    assert expression.apply({"name": "Lovelace, Ada", "n": "seven"}) == ""
