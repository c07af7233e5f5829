"""Small tables are read without numba, and whatever is read so comes out as kernels have it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from helpers.cells import text_column
from helpers.corpus import KINDS
from helpers.effort import lines_run
from helpers.values import GOLDEN, raw_cells
from lakescope import sources
from lakescope.errors import LakescopeError
from lakescope.lake import Lake
from lakescope.sketches.minhash import MinHash
from lakescope.sources.formats import csv_kernel, header_kernel
from lakescope.sources.formats.csv_dialect import Dialect, detect_dialect
from lakescope.sources.io.encoding import Encoding, detect_encoding
from lakescope.sources.model import Problem
from lakescope.tables.reading import units_of
from lakescope.values import jit
from lakescope.values.cells import Cells, by_kernels, by_reference, understand
from lakescope.values.text import TextColumn

Found = TypeVar("Found")


@contextmanager
def plainly() -> Iterator[None]:
    """As in a process that has not loaded numba, and never does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jit, "loaded", lambda: False)
        patch.setattr(jit, "PATIENCE", 1 << 60)
        yield


def either_way(work: Callable[[], Found]) -> tuple[Found, Found]:
    """What comes out without kernels, and with them."""
    with plainly():
        found = work()
    assert jit.loaded()
    return found, work()


def told(cells: Cells) -> dict[str, Any]:
    """All that somebody can know of cells, wherever their text lies."""
    bounds = list(zip(cells.wstarts.tolist(), cells.wends.tolist(), strict=True))
    counts = ("rows", "missing", "empty", "markers", "undecodable")
    arrays = ("kinds", "hashes", "counts", "lengths", "leading", "digits", "decimals", "places")
    return {
        **{name: getattr(cells, name) for name in counts},
        **{name: getattr(cells, name).tolist() for name in arrays},
        "numbers": [repr(number) for number in cells.numbers.tolist()],
        "written": [cells.written[start:end].tobytes() for start, end in bounds],
        "canonical": [cells.canonical_at(at) for at in range(cells.kinds.size)],
    }


def test_kernels_run_as_they_are_written_until_numba_is_loaded() -> None:
    kernel = jit.Kernel(lambda: None)
    vars(kernel).update(plain=lambda: "plain", compiled=lambda: "compiled")
    assert either_way(kernel) == ("plain", "compiled")
    for made in (csv_kernel.tokenise, csv_kernel.record_widths, header_kernel.outlines, header_kernel.weigh_rows):
        called = [each for each in made.plain.__globals__.values() if callable(each)]
        assert called
        assert not [each for each in called if isinstance(each, jit.Kernel) or hasattr(each, "signatures")]
        assert hasattr(made.compiled, "signatures")


# --- cells ------------------------------------------------------------------------------------------------------------

#: White space of every kind around cells, whole and cut in the middle of a character.
_EDGES = st.sampled_from(
    [b"", b" ", b"\t", b"\x1f", b"\xc2\xa0", b"\xc2\x85", b"\xe2\x80\x83", b"\xe3\x80\x80", b"\xe1\x9a\x80",
     b"\xe2\x81\x9f", b"\xe2\x80\xaf", b"\xe2\x80", b"\xa0", b"\xc2"]
)  # fmt: skip
_CELLS = st.one_of(
    raw_cells,
    st.sampled_from([raw.encode() for raw, _, _ in GOLDEN]),
    st.tuples(_EDGES, _EDGES, st.one_of(raw_cells.filter(bool), st.just(b"")), _EDGES, _EDGES).map(b"".join),
    st.sampled_from(
        ["٣", "１２", "①", "²", "Å", "\u212b", "ﬁ", "e\u0301", "가", "가", "\u0000", "𝟙", "1e400", "-1e-400"]
    ).map(str.encode),
)


@settings(max_examples=600, deadline=None)
@given(st.lists(_CELLS, max_size=30), st.sampled_from(["cp1252", "cp1251", "shift_jis", "utf-8", "no such codec"]))
@example([None, None], "cp1252")
@example([], "cp1252")
@example([b"1", b" 1", b"1.0", b"1"], "cp1252")
def test_the_reference_alone_understands_cells_as_kernels_do(column: list[bytes | None], fallback: str) -> None:
    cells = text_column(column)
    plain, compiled = by_reference(cells, fallback), by_kernels(cells, fallback)
    assert told(plain) == told(compiled)
    for name in Cells.__dataclass_fields__:
        ours, theirs = getattr(plain, name), getattr(compiled, name)
        if isinstance(theirs, np.ndarray):
            # Kernels that take these are compiled for one kind of array.
            assert numba.typeof(ours) == numba.typeof(theirs), name


def test_trimming_is_one_step_however_much_there_is_to_trim() -> None:
    cell = "\u00a0 \u3000".encode() * 20_000
    cells = text_column([cell + b"x" + cell])
    assert lines_run(lambda: by_reference(cells, "cp1252")) < 200
    assert told(by_reference(cells, "cp1252")) == told(by_kernels(cells, "cp1252"))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 2**64 - 1), max_size=1500))
def test_signatures(tokens: list[int]) -> None:
    def signed() -> list[int]:
        signature = MinHash()
        signature.update_hashes(np.array(tokens, np.uint64))
        return signature.values.tolist()

    plain, compiled = either_way(signed)
    assert plain == compiled


# --- CSV --------------------------------------------------------------------------------------------------------------

#: What matters to a tokeniser, and some text.
_MARKS = st.lists(
    st.sampled_from(
        [b",", b";", b"\t", b"|", b'"', b'""', b"'", b"\\", b'\\"', b"\n", b"\r\n", b"\r", b"\n\n", b" ", b"a", b"1,5",
         b"x y", b"id", b"2021-03-04", b"\x00", b"\xe9", "é".encode(), b'"a\nb"', b'"q" r', b"#", b"sep="]
    ),
    max_size=80,
).map(b"".join)  # fmt: skip
_WORDS = st.sampled_from(["id", "name", "unit price", "7", "1.5", "1999", "2021-03-04", "00501", "", "NA", "(m)", "Ωm"])
_TABLES = st.tuples(
    st.integers(1, 5).flatmap(lambda width: st.lists(st.lists(_WORDS, min_size=1, max_size=width), max_size=90)),
    st.sampled_from([",", ";", "\t", "|"]),
    st.sampled_from(["\n", "\r\n", "\r"]),
).map(lambda made: made[2].join(made[1].join(row) for row in made[0]).encode())


def tokenised(text: bytes, columns: int, marks: tuple[int, ...], final: bool, stop: int, patience: int) -> list[Any]:
    """All that the tokeniser tells of a text, call by call, and what it leaves of it."""
    data = np.frombuffer(bytearray(text), np.uint8)
    starts, ends = np.empty((columns + 1, 7), np.int32), np.empty((columns + 1, 7), np.int32)
    counters = np.zeros(csv_kernel.N_COUNTERS, np.int64)
    found: list[Any] = []
    position, starved = 0, False
    while not starved and position < min(stop, data.size):
        rows, position, starved = csv_kernel.tokenise(
            *(data, position, data.size, stop, final, *marks, patience, starts, ends, counters)
        )
        found += [rows, position, starved, starts[:, :rows].tolist(), ends[:, :rows].tolist(), counters.tolist()]
    return [*found, data.tobytes()]


_DIALECTS = st.tuples(*(st.sampled_from(list(marks)) for marks in (b",;\t|", b"\"'\0", b"\0\\", b"\n\r")))


@settings(max_examples=500, deadline=None)
@given(_MARKS, st.integers(1, 4), _DIALECTS, st.booleans(), st.integers(0, 200), st.sampled_from([5, 40, 1 << 20]))
def test_the_tokeniser(
    text: bytes, columns: int, marks: tuple[int, ...], final: bool, stop: int, patience: int
) -> None:
    plain, compiled = either_way(lambda: tokenised(text, columns, marks, final, stop, patience))
    assert plain == compiled


@settings(max_examples=300, deadline=None)
@given(_MARKS, _DIALECTS, st.booleans())
def test_widths_of_records(text: bytes, marks: tuple[int, ...], final: bool) -> None:
    def counted() -> tuple[list[Any], ...]:
        widths, starts = np.empty(50, np.int32), np.empty(50, np.int32)
        data = np.frombuffer(text, np.uint8)
        n, *told = csv_kernel.record_widths(data, data.size, final, *marks, widths, starts)
        return [n, *told], widths[:n].tolist(), starts[:n].tolist()

    plain, compiled = either_way(counted)
    assert plain == compiled


def same_dialect(one: Dialect, other: Dialect) -> bool:
    """Whether two dialects are the same; logarithms of two libraries may differ in the last bit."""
    ours, theirs = one.to_options(), other.to_options()
    return ours.pop("probability") == pytest.approx(theirs.pop("probability"), abs=1e-12) and ours == theirs


@settings(max_examples=400, deadline=None)
@given(st.one_of(_MARKS, _TABLES, st.tuples(_MARKS, _TABLES).map(b"\n".join)), st.booleans())
def test_dialects(text: bytes, whole: bool) -> None:
    encoding = detect_encoding(text)
    encoding = Encoding() if encoding.transcode else encoding
    head = np.frombuffer(text, np.uint8)[encoding.bom :]
    plain, compiled = either_way(lambda: detect_dialect(head, whole=whole, encoding=encoding))
    assert same_dialect(plain, compiled)


# --- whole tables -----------------------------------------------------------------------------------------------------


def read(path: Path) -> tuple[list[Any], list[Problem]]:
    """What becomes of a table: rows, names and cells by batch, the error if there is one, and problems."""
    found: list[Any] = []
    problems: list[Problem] = []
    try:
        for unit in units_of(str(path)):
            for batch in sources.read(unit, problems.append):
                columns = [(column.name, told(understand(column, batch.fallback))) for column in batch.columns]
                found.append((batch.rows, columns, batch.fallback))
    except LakescopeError as error:
        found.append(repr(error))
    return found, problems


#: Kinds that are no file of their own, and those that Python would read for minutes.
_NO_FILES = {
    *("directory_of_parts", "directory_of_parts_with_different_columns", "directory_with_one_damaged_part"),
    *("partitions_in_the_path", "link_that_leads_nowhere", "link_to_itself", "link_to_a_directory_above"),
    *("link_to_a_file_in_the_lake", "named_pipe", "named_socket"),
}
_LARGE = {
    *("utf_16_beyond_the_head", "cell_of_five_megabytes", "quoted_cell_of_five_megabytes_with_line_ends"),
    *("line_of_half_a_million_cells", "two_and_a_half_million_columns", "fifty_megabytes_of_zeros"),
}


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - _NO_FILES - _LARGE))
def test_odd_files(kind: str, tmp_path: Path) -> None:
    path = tmp_path / Path(KINDS[kind].table).name
    KINDS[kind].make(path)
    assert path.is_file()
    plain, compiled = either_way(lambda: read(path))
    assert plain == compiled


def test_files_of_the_demo_lake(demo_lake: Path) -> None:
    paths = [path for path in sorted(demo_lake.rglob("*.csv")) if path.stat().st_size < 30_000]
    assert len(paths) > 20
    for path in paths:
        plain, compiled = either_way(lambda path=path: read(path))  # type: ignore[misc]
        assert plain == compiled, path


# --- when numba is loaded ---------------------------------------------------------------------------------------------

_ASK = """
import sys
from lakescope.faces.cli import main
sys.argv = ["lakescope", *sys.argv[1:]]
main()
loaded = sorted({"numba", "llvmlite", "scipy", "pandas", "pyspark"} & set(sys.modules))
assert not loaded, f"a question about a small file loads {loaded}"
"""


@pytest.mark.parametrize(
    "options",
    [[], ["--on", "country"], ["--on", "country", "--threshold", "0.7"], ["--threshold", "0.7", "--engine", "lsh"]],
)
def test_a_question_about_a_small_file_loads_no_numba(
    options: list[str], demo_lake: Path, demo_index: Lake, tmp_path: Path
) -> None:
    mine = tmp_path / "mine.csv"
    mine.write_bytes((demo_lake / "world" / "gdp_growth.csv").read_bytes())
    asked = [sys.executable, "-c", _ASK, "join", demo_index.path, str(mine), *options, "--format", "json"]
    ran = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    named = dict(zip(options[::2], options[1::2], strict=True))
    threshold = float(named["--threshold"]) if "--threshold" in named else None
    answer = demo_index.joinable(
        str(mine), named.get("--on"), threshold=threshold, engine=named.get("--engine", "auto")
    )
    assert len(answer) > 1
    assert json.loads(ran.stdout) == json.loads(json.dumps(answer.to_dicts()))


_READ = """
import sys
from lakescope.tables.reading import batches_of
from lakescope.values import jit
from lakescope.values.cells import understand
for path in sys.argv[2:]:
    for batch in batches_of(path):
        for column in batch.columns:
            understand(column, batch.fallback)
assert jit.loaded() == (sys.argv[1] == "loaded"), jit._spent
"""


@pytest.mark.parametrize(("rows", "times", "ends"), [(10, 1, "plain"), (80_000, 1, "loaded"), (500, 300, "loaded")])
def test_much_data_is_left_to_kernels_be_it_in_many_files(rows: int, times: int, ends: str, tmp_path: Path) -> None:
    path = tmp_path / "some.csv"
    path.write_text("id,name\n" + "".join(f"{row},n{row % 50}\n" for row in range(rows)))
    ran = subprocess.run([sys.executable, "-c", _READ, ends, *[str(path)] * times], capture_output=True, check=False)
    assert ran.returncode == 0, ran.stderr.decode()


def test_a_big_file_is_not_begun_without_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even its head: what is spent there would be spent in vain."""
    path = tmp_path / "big.csv"
    path.write_text("id,name\n" + "".join(f"{row},n{row % 50}\n" for row in range(80_000)))
    assert path.stat().st_size > jit.PATIENCE
    expected: list[int] = []
    spent: list[int] = []
    monkeypatch.setattr(jit, "expect", expected.append)
    monkeypatch.setattr(jit, "spend", lambda size: spent.append(len(expected)))
    list(sources.read(units_of(str(path))[0], lambda problem: None))
    assert expected[0] > jit.PATIENCE
    assert spent[0] > 0


def test_missing_cells_cost_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    spent: list[int] = []
    monkeypatch.setattr(jit, "loaded", lambda: False)
    monkeypatch.setattr(jit, "spend", spent.append)
    understand(text_column([b"abc", None, b""]))
    missing = np.full(3, -1, np.int32)
    understand(TextColumn("x", np.empty(0, np.uint8), missing + np.int32(900), missing))
    assert spent == [3 + 3, 3]
