"""Programs give the same values everywhere: row by row, in Arrow, DuckDB, polars, Python and Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakescope.errors import BadRequest
from lakescope.transforms.alphabet import SPACES
from lakescope.transforms.code import _polars_helpers, expression_code, python_functions
from lakescope.transforms.evaluate import expression_of
from lakescope.transforms.program import Constant, Expression, Piece, Program
from lakescope.transforms.steps import Case, Digits, Drop, Initials, Month, Run, Slice, Split, Step, Unaccent
from lakescope.transforms.texts import Texts

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
    st.lists(st.sampled_from(_PARTS), max_size=7).map("".join),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=12),
)
_SEPARATORS = st.sampled_from([" ", "-", ", ", "(", ".", "'", "\\", "ad", "$1", "|", "é", "😀"])
_INDEX = st.integers(-3, 3)
STEPS: st.SearchStrategy[Step] = st.one_of(
    st.builds(Split, _SEPARATORS, _INDEX),
    st.builds(Run, st.sampled_from(["digits", "word", "capitalised"]), _INDEX),
    st.builds(Slice, st.integers(0, 3), st.one_of(st.none(), st.integers(-3, 5))),
    st.builds(Slice, st.integers(-4, -1), st.one_of(st.none(), st.integers(-3, -1))),
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
ROWS = st.lists(st.tuples(CELLS, st.one_of(st.none(), CELLS)), min_size=1, max_size=8)


def trimmed(rows: list[tuple[str, str | None]]) -> list[dict[str, str]]:
    return [{"a": a.strip(SPACES), "b": (b or "").strip(SPACES)} for a, b in rows]


def wanted(expression: Expression, rows: list[tuple[str, str | None]]) -> list[str | None]:
    return [expression.apply(row) or None for row in trimmed(rows)]


@settings(deadline=None, max_examples=300)
@given(EXPRESSIONS, ROWS)
def test_arrow_gives_the_same(expression: Expression, rows: list[tuple[str, str | None]]) -> None:
    columns = {
        name: pa.chunked_array([[row[name] or None for row in trimmed(rows)]], pa.large_string()) for name in "ab"
    }
    assert expression_of(expression, Texts(columns, len(rows))).to_pylist() == wanted(expression, rows)


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


@settings(deadline=None, max_examples=150)
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


@settings(deadline=None, max_examples=150)
@given(EXPRESSIONS, ROWS)
def test_python_gives_the_same(expression: Expression, rows: list[tuple[str, str | None]]) -> None:
    code = expression_code(expression, "python")
    names: dict[str, Any] = {}
    exec(python_functions([code]), names)
    made = [eval(code, {**names, "row": {"a": a, "b": b}}) or None for a, b in rows]
    assert made == wanted(expression, rows)


def test_spark_gives_the_same(spark: SparkSession) -> None:
    """Many random programs over many random cells in one job: a job for each would take hours."""
    expressions = _drawn(EXPRESSIONS, 150)
    rows = [row for some in _drawn(ROWS, 40) for row in some]
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


def test_words() -> None:
    piece = Piece("name", (Split(", ", -1), Slice(0, 1), Case("lower")))
    expression = Expression((Constant("id-"), piece, Piece("n", (Digits(3),))))
    assert expression.words() == (
        "'id-' + (the first character of (name after the last ', ')) in lower case + n with zeros to 3 digits"
    )
    assert expression.apply({"name": "Lovelace, Ada", "n": "7"}) == "id-a007"
    assert expression.apply({"name": "Lovelace, Ada", "n": "seven"}) == ""
