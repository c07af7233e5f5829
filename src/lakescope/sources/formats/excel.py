"""Excel and OpenDocument workbooks: every sheet is a table.

Cells are read as the text Excel would show without formatting: a whole number has no point, a date is an ISO date. A
sheet is laid out for people, so titles above the header and blank rows are recognised, passed over and told.

A sheet is read whole, and two cells in its corners make seventeen billion of it: the library runs in a helper process
of bounded memory, which hands over one sheet at a time.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc as ipc

from lakescope.errors import SourceError
from lakescope.sources import planning
from lakescope.sources.formats import arrow_batches
from lakescope.sources.formats.flatten import text_columns
from lakescope.sources.io import files
from lakescope.sources.io.isolated import Helper, serve
from lakescope.sources.io.limits import Unpacking
from lakescope.sources.model import MISSING, Batch, Problem, Report, Severity, TextColumn, Unit
from lakescope.sources.names import check_width, unique_names

if TYPE_CHECKING:
    from lakescope.sources.source_table import SourceTable

_MIDNIGHT = r"^(\d{4}-\d\d-\d\d) 00:00:00$"
#: Rows that decide about titles and header.
_SAMPLE = 100
_MOST_TITLES = 20

_HELPER = Helper("lakescope.sources.formats.excel", "answer_questions")

#: Reports severity, code, detail and count for the sheet at hand.
Tell = Callable[[Severity, str, str, int], None]


def plan(found: SourceTable, target_bytes: int) -> list[Unit]:
    """One unit per sheet; a workbook cannot be read in pieces."""
    units: list[Unit] = []
    for uri, size in found.parts:
        sheets = _HELPER.ask(found.table, {"uri": uri, "compression": found.compression})[0]["sheets"]
        if not sheets:
            raise SourceError(f"{found.table} holds no sheet", code="empty-file")
        for index, sheet in enumerate(sheets):
            options = {**planning.options_of(found, uri), "sheet": index}
            units.append(Unit(f"{found.table}::{sheet}", "excel", uri, max(1, size // len(sheets)), options=options))
    return units


def read(unit: Unit, report: Report) -> Iterator[Batch]:
    """Read one sheet."""

    def tell(severity: Severity, code: str, detail: str, count: int) -> None:
        report(Problem(unit.table, severity, code, detail, count))

    question = {"uri": unit.uri, "compression": unit.options.get("compression"), "sheet": unit.options["sheet"]}
    answer, payload = _HELPER.ask(unit.table, question)
    table = ipc.open_stream(payload).read_next_batch()
    if answer["errors"]:
        row, column = answer["first"]
        detail = f"cells hold an error instead of a value, the first in row {row + 1}, column {column + 1}"
        tell("warning", "cell-errors", f"{detail}; they count as missing", answer["errors"])
    check_width(unit.table, table.num_columns)
    filled = np.flatnonzero(_filled(table))
    if not filled.size:
        tell("info", "empty-sheet", "the sheet holds no cell", 1)
        yield Batch(0, [])
        return
    blank = int(filled[-1] - filled[0] + 1 - filled.size)
    if blank:
        tell("info", "blank-lines", "blank rows were passed over", blank)
        indices = pa.py_buffer(filled.astype(np.int64))
        table = table.take(pa.Array.from_buffers(pa.int64(), filled.size, [None, indices]))
    else:
        table = table.slice(int(filled[0]), filled.size)
    yield from _rows(table, tell)


def answer_questions() -> None:
    """What the helper process runs: tell the sheets of a workbook, or hand over one of them."""

    def answer(question: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        workbook = _workbook(question["uri"], question["compression"])
        if "sheet" not in question:
            return {"sheets": workbook.sheet_names}, b""
        table, errors = workbook.load_sheet(question["sheet"], header_row=None, dtypes="string").to_arrow_with_errors()
        found = errors.errors if errors is not None else []
        sink = pa.BufferOutputStream()
        with ipc.new_stream(sink, table.schema) as writer:
            writer.write_batch(table)
        first = list(found[0].position) if found else None
        return {"errors": len(found), "first": first}, sink.getvalue().to_pybytes()

    serve(answer, hint="open it with the program that wrote it to see whether it is damaged")


def _workbook(uri: str, compression: str | None) -> Any:
    import fastexcel

    with files.open_stream(uri, compression) as stream:
        content = stream.read()
    if not content:
        raise SourceError("is empty: it holds no sheet", code="empty-file")
    if content.startswith(b"PK"):
        # What Python cannot unpack the library may; if that is a bomb, it meets the limit of memory.
        with (
            suppress(zipfile.BadZipFile, ValueError, NotImplementedError),
            zipfile.ZipFile(io.BytesIO(content)) as archive,
        ):
            Unpacking.of(len(content)).add(sum(member.file_size for member in archive.infolist()))
    return fastexcel.read_excel(content)


def _filled(table: Any) -> npt.NDArray[np.bool_]:
    """Which rows have a cell."""
    filled = np.zeros(table.num_rows, np.bool_)
    for column in text_columns(table):
        filled |= column.ends > column.starts
    return filled


def _rows(table: Any, tell: Tell) -> Iterator[Batch]:
    """Find the header, name the columns, hand out the rows below."""
    from lakescope.sources.formats.header_rows import find_header

    titles = _titles(table)
    found = find_header(text_columns(table.slice(titles, _SAMPLE)), fallback="utf-8")
    titles += found.preamble
    if titles:
        tell("info", "preamble", "rows above the header were passed over", titles)
    names = _names(text_columns(table.slice(titles, _SAMPLE)), found.header, tell)
    below = table.slice(titles + found.header)
    body = pa.RecordBatch.from_arrays([_dates(column) for column in below.columns], names=names)
    for piece in arrow_batches.bounded(body):
        yield Batch(piece.num_rows, text_columns(piece))
    if body.num_rows == 0:
        yield Batch(0, text_columns(body))


def _titles(table: Any) -> int:
    """How many rows at the top are titles: they have far fewer cells than the rows that follow."""
    sample = text_columns(table.slice(0, _SAMPLE))
    widths = np.sum([column.ends > column.starts for column in sample], axis=0)
    usual = int(np.median(widths))
    titles = 0
    while titles < min(_MOST_TITLES, widths.size - 1) and usual >= 2 and widths[titles] * 2 <= usual:
        titles += 1
    return titles


def _names(sample: Sequence[TextColumn], rows: int, tell: Tell) -> list[str]:
    """Column names from so many rows."""
    from lakescope.sources.formats.header_rows import joined_names

    if not rows:
        tell("info", "no-header", f"no header found; columns are called column_1 to column_{len(sample)}", 1)
        return unique_names([""] * len(sample))[0]
    names, changed = unique_names(joined_names([[_cell(column, row) for column in sample] for row in range(rows)]))
    if changed:
        detail = "blank or repeated column names were replaced or numbered"
        tell("warning", "renamed-columns", detail, changed)
    return names


def _cell(column: TextColumn, row: int) -> str:
    end = int(column.ends[row])
    return "" if end == MISSING else column.data[column.starts[row] : end].tobytes().decode().strip()


def _dates(column: Any) -> Any:
    """A date is stored as midnight of the day; nobody means the hour."""
    return pc.replace_substring_regex(column, pattern=_MIDNIGHT, replacement=r"\1")
