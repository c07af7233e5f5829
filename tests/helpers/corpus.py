"""Broken and odd files, each with how it must end: as a table with these rows and columns, or as a problem.

A kind is a small function that returns the bytes of its file, or that builds something itself (a directory, a link, a
pipe). What it must come to is written beside it, as somebody who relies on the index would put it: no cell may be lost
or invented without a word.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import json
import os
import socket
import sqlite3
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq

from lakescope.demo.xlsx import write_xlsx


@dataclass(frozen=True)
class Table:
    """It can be read. ``has`` names values that a column must show, ``distinct`` how many different ones it has.

    ``must`` are the problem codes that have to be told, ``may`` others that are fine to tell; any other code is wrong.
    ``complete`` is False where rows are known to be missing; only there may ``rows`` be None, for any number.
    """

    rows: int | None
    columns: list[str]
    has: Mapping[str, str] = field(default_factory=dict)
    distinct: Mapping[str, int] = field(default_factory=dict)
    nulls: Mapping[str, int] = field(default_factory=dict)
    must: frozenset[str] = frozenset()
    may: frozenset[str] = frozenset()
    complete: bool = True


@dataclass(frozen=True)
class Refused:
    """It cannot be read, and a problem says why under this code (or one of these, where two are right)."""

    codes: tuple[str, ...]
    severity: str = "error"

    def __init__(self, *codes: str, severity: str = "error") -> None:
        object.__setattr__(self, "codes", codes)
        object.__setattr__(self, "severity", severity)


Ending = Table | Refused


@dataclass(frozen=True)
class Kind:
    """One kind of bad input: where it lies, what makes it, and how each table in it (by name suffix) must end."""

    name: str
    path: bytes
    make: Callable[[Path], None]
    ends: Mapping[str, Ending]

    @property
    def table(self) -> str:
        """The name of the table in the lake; bytes that are no UTF-8 are shown as escapes."""
        return self.path.decode("utf-8", "backslashreplace")


KINDS: dict[str, Kind] = {}
Content = Callable[[], bytes]


def kind(path: str | bytes, ends: Ending | Mapping[str, Ending]) -> Callable[[Content], Content]:
    """Register a function that returns the bytes of a file."""

    def register(make: Content) -> Content:
        built(path, ends)(lambda target: _write(target, make()), make.__name__)
        return make

    return register


def built(path: str | bytes, ends: Ending | Mapping[str, Ending]) -> Callable[..., Callable[[Path], None]]:
    """Register a function that builds whatever lies at the path it is given."""

    def register(make: Callable[[Path], None], name: str = "") -> Callable[[Path], None]:
        where = path.encode() if isinstance(path, str) else path
        known = Kind(name or make.__name__, where, make, ends if isinstance(ends, Mapping) else {"": ends})
        assert known.name not in KINDS, known.name
        assert where not in {other.path for other in KINDS.values()}, where
        KINDS[known.name] = known
        return make

    return register


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def write_corpus(folder: Path) -> None:
    """Write every kind below a folder."""
    for known in KINDS.values():
        path = folder / os.fsdecode(known.path)
        path.parent.mkdir(parents=True, exist_ok=True)
        known.make(path)


def write_good(folder: Path) -> list[str]:
    """Five healthy tables, whose profiles nothing around them may change; returns their names."""
    _write(folder / "good/people.csv", people(200).encode())
    _write(folder / "good/people.tsv", people(120, delimiter="\t").encode())
    pq.write_table(typed(500), folder / "good/typed.parquet", row_group_size=100)
    lines = [json.dumps({"id": i, "tags": {"a": i % 3, "b": f"x{i % 7}"}}) for i in range(150)]
    _write(folder / "good/lines.jsonl", "\n".join(lines).encode())
    _write(folder / "good/packed.csv.gz", gzip.compress(people(300).encode(), mtime=0))
    return ["good/lines.jsonl", "good/packed.csv.gz", "good/people.csv", "good/people.tsv", "good/typed.parquet"]


# What the kinds are made of -------------------------------------------------------------------------------------------

HEAD = ["id", "name", "city", "amount"]
NAMES = ["Ada", "Grace", "Alan", "Edsger", "Barbara", "Donald", "Tony"]
CITIES = ["London", "Paris", "Berlin", "Madrid", "Rome"]
ACCENTED = ["Zürich", "Málaga", "Besançon", "Århus", "Montréal"]
RUSSIAN = ["Москва", "Казань", "Самара", "Тверь", "Омск"]


def cells(count: int, cities: list[str] | None = None) -> list[list[str]]:
    """Plain rows: number, name, city, amount with two decimals."""
    places = cities or CITIES
    return [[str(i), NAMES[i % 7], places[i % len(places)], f"{i * 1.25 + 0.1:.2f}"] for i in range(1, count + 1)]


def text(rows: list[list[str]], head: list[str] | None = None, delimiter: str = ",", end: str = "\n") -> str:
    """Rows as text, joined without any quoting."""
    return end.join(delimiter.join(row) for row in [head or HEAD, *rows]) + end


def people(count: int, cities: list[str] | None = None, delimiter: str = ",", end: str = "\n") -> str:
    """The plain table as text."""
    return text(cells(count, cities), delimiter=delimiter, end=end)


def typed(count: int) -> pa.Table:
    """A typed table."""
    return pa.table(
        {
            "id": list(range(count)),
            "name": [NAMES[i % 7] for i in range(count)],
            "amount": [i / 8 for i in range(count)],
            "flag": [None if i % 5 == 0 else i % 2 == 0 for i in range(count)],
        }
    )


def parquet(table: pa.Table, row_group_size: int | None = None, compression: str = "snappy") -> bytes:
    """A table as the bytes of a Parquet file."""
    buffer = io.BytesIO()
    pq.write_table(table, buffer, row_group_size=row_group_size, compression=compression)
    return buffer.getvalue()


def arrow(table: pa.Table) -> bytes:
    """A table as the bytes of an Arrow file."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def orc(table: pa.Table) -> bytes:
    """A table as the bytes of an ORC file."""
    buffer = io.BytesIO()
    pyarrow.orc.write_table(table, buffer)
    return buffer.getvalue()


def xlsx(**sheets: pa.Table) -> bytes:
    """Sheets as the bytes of a workbook."""
    with tempfile.TemporaryDirectory() as folder:
        write_xlsx(Path(folder) / "book.xlsx", sheets)
        return (Path(folder) / "book.xlsx").read_bytes()


def sqlite(*statements: str) -> bytes:
    """The bytes of a database after some statements."""
    with tempfile.TemporaryDirectory() as folder:
        with contextlib.closing(sqlite3.connect(Path(folder) / "x.db")) as connection:
            for statement in statements:
                connection.execute(statement)
            connection.commit()
        return (Path(folder) / "x.db").read_bytes()


def noise(size: int) -> bytes:
    """Bytes that look random and are always the same."""
    state, out = 12345, bytearray()
    for _ in range(size):
        state = (state * 1103515245 + 12345) % (1 << 31)
        out.append(state >> 16 & 255)
    return bytes(out)


def _codes(*codes: str) -> frozenset[str]:
    return frozenset(codes)


ENCODING = _codes("encoding")
RENAMED = _codes("renamed-columns")

# Encodings ------------------------------------------------------------------------------------------------------------


@kind("encodings/latin1.csv", Table(60, HEAD, {"city": "Zürich"}, {"city": 5, "id": 60}, must=ENCODING))
def latin_1() -> bytes:
    return people(60, ACCENTED).encode("latin-1")


@kind("encodings/cp1251.csv", Table(60, HEAD, {"city": "Казань"}, {"city": 5}, must=ENCODING))
def cp1251() -> bytes:
    return people(60, RUSSIAN).encode("cp1251")


@kind("encodings/mac_roman.csv", Table(60, HEAD, {"city": "Montréal"}, {"city": 5}, must=ENCODING))
def mac_roman() -> bytes:
    return people(60, ACCENTED).encode("mac_roman")


@kind("encodings/shift_jis.csv", Table(60, HEAD, {"city": "大阪市"}, {"city": 5}, must=ENCODING))
def shift_jis() -> bytes:
    return people(60, ["東京都", "大阪市", "京都市", "札幌市", "福岡市"]).encode("shift_jis")


@kind("encodings/latin1_header.csv", Table(30, ["numéro", "ville"], {"ville": "Rome"}, {"ville": 5}, may=ENCODING))
def latin_1_in_the_header_only() -> bytes:
    return text([[str(i), CITIES[i % 5]] for i in range(30)], ["numéro", "ville"]).encode("latin-1")


@kind("encodings/utf16le.csv", Table(60, HEAD, {"city": "Århus"}, {"city": 5}, must=ENCODING))
def utf_16_le_with_mark() -> bytes:
    return b"\xff\xfe" + people(60, ACCENTED).encode("utf-16-le")


@kind("encodings/utf16be.csv", Table(60, HEAD, {"city": "Århus"}, {"city": 5}, must=ENCODING))
def utf_16_be_with_mark() -> bytes:
    return b"\xfe\xff" + people(60, ACCENTED).encode("utf-16-be")


@kind("encodings/utf16le_bare.csv", Table(60, HEAD, {"city": "Århus"}, {"city": 5}, must=ENCODING))
def utf_16_le_without_mark() -> bytes:
    return people(60, ACCENTED).encode("utf-16-le")


@kind("encodings/utf16be_bare.csv", Table(60, HEAD, {"city": "Århus"}, {"city": 5}, must=ENCODING))
def utf_16_be_without_mark() -> bytes:
    return people(60, ACCENTED).encode("utf-16-be")


@kind("encodings/excel.csv", Table(60, HEAD, {"city": "Århus"}, {"city": 5, "id": 60}, must=ENCODING))
def utf_16_with_tabs_as_excel_saves_it() -> bytes:
    return b"\xff\xfe" + people(60, ACCENTED, delimiter="\t", end="\r\n").encode("utf-16-le")


@kind("encodings/cp1252.csv", Table(60, HEAD, {"city": "“Rome” – 5 €"}, {"city": 5}, must=ENCODING))
def cp1252_punctuation() -> bytes:
    return people(60).replace("Rome", "“Rome” – 5 €").encode("cp1252")


@kind(
    "encodings/utf16_odd.csv", Table(60, HEAD, {"city": "Århus"}, {"id": 60}, must=ENCODING, may=_codes("short-rows"))
)
def utf_16_cut_in_the_middle_of_a_character() -> bytes:
    return b"\xff\xfe" + people(60, ACCENTED).rstrip("\n").encode("utf-16-le") + b"\x31"


@kind("encodings/utf16_large.csv", Table(20_000, HEAD, {"city": "Århus"}, {"city": 5, "name": 7}, must=ENCODING))
def utf_16_beyond_the_head() -> bytes:
    return b"\xff\xfe" + people(20_000, ACCENTED).encode("utf-16-le")


@kind("encodings/utf32le.csv", Table(60, HEAD, {"city": "Århus"}, {"city": 5}, must=ENCODING))
def utf_32_le_with_mark() -> bytes:
    return b"\xff\xfe\0\0" + people(60, ACCENTED).encode("utf-32-le")


@kind("encodings/utf32be.csv", Table(60, HEAD, {"city": "Århus"}, {"city": 5}, must=ENCODING))
def utf_32_be_with_mark() -> bytes:
    return b"\0\0\xfe\xff" + people(60, ACCENTED).encode("utf-32-be")


@kind("encodings/utf32_bare.csv", Refused("unknown-format"))
def utf_32_without_mark() -> bytes:
    return people(60, ACCENTED).encode("utf-32-le")


@kind("encodings/utf8_mark.csv", Table(60, HEAD, {"city": "Zürich"}, {"city": 5, "id": 60}))
def utf_8_with_mark() -> bytes:
    return b"\xef\xbb\xbf" + people(60, ACCENTED).encode()


@kind("encodings/mark_and_quotes.csv", Table(10, HEAD, {"name": "Ada"}, {"id": 10}))
def utf_8_mark_before_a_quoted_header() -> bytes:
    return b'\xef\xbb\xbf"id","name","city","amount"\n' + people(10).partition("\n")[2].encode()


@kind("encodings/mixed.csv", Table(120, HEAD, {"city": "Zürich"}, {"city": 5, "id": 120}, must=ENCODING))
def utf_8_first_then_latin_1() -> bytes:
    rows = cells(120, ACCENTED)
    return text(rows[:60]).encode() + text(rows[60:]).partition("\n")[2].encode("latin-1")


@kind("encodings/late.csv", Table(10_000, HEAD, {"city": "Zürich"}, {"city": 6, "id": 10_000}, must=ENCODING))
def latin_1_far_behind_the_head() -> bytes:
    rows = cells(10_000)
    rows[7_777][2] = "Zürich"
    return text(rows).encode("latin-1")


@kind("encodings/rubbish_late.csv", Table(10_000, HEAD, {"name": "Ada"}, {"id": 10_000}, must=ENCODING))
def invalid_bytes_in_the_middle() -> bytes:
    content = people(10_000).encode()
    place = content.index(b"London", 150_000)
    return content[:place] + b"\xff\xfe\x81\x8d\xc0\x80" + content[place + 6 :]


@kind("encodings/straddling.csv", Table(6_000, ["id", "city"], {"city": "Zürich"}, {"city": 2}))
def character_across_the_end_of_the_head() -> bytes:
    content = b"id,city\n" + b"".join(f"{i},aaaaaa\n".encode() for i in range(100_000, 105_999))
    assert len(content) > 65_536
    cut = content.rindex(b"\n", 0, 65_520) + 1
    padded = content[:cut] + b"9" * (65_535 - cut - 2) + b",Z\xc3\xbcrich\n" + content[cut:]
    assert padded[65_534:65_537] == "Zü".encode()
    return padded


# Shapes of rows -------------------------------------------------------------------------------------------------------


@kind("rows/short.csv", Table(60, HEAD, {"name": "Ada"}, {"id": 60}, {"amount": 6}, must=_codes("short-rows")))
def short_rows() -> bytes:
    return text([row[:3] if int(row[0]) % 10 == 0 else row for row in cells(60)]).encode()


@kind(
    "rows/long.csv",
    Table(60, [*HEAD, "_surplus"], {"_surplus": "more,cells"}, {"id": 60}, {"_surplus": 54}, must=_codes("long-rows")),
)
def long_rows() -> bytes:
    return text([[*row, "more", "cells"] if int(row[0]) % 10 == 0 else row for row in cells(60)]).encode()


@kind(
    "rows/uneven.csv",
    Table(
        60,
        [*HEAD, "_surplus"],
        {"_surplus": "extra"},
        {"id": 60},
        {"_surplus": 54, "city": 6, "amount": 6},
        must=_codes("long-rows", "short-rows"),
    ),
)
def short_and_long_rows() -> bytes:
    rows = [[*row, "extra"] if int(row[0]) % 10 == 0 else row for row in cells(60)]
    return text([row[:2] if int(row[0]) % 10 == 5 else row for row in rows]).encode()


@kind(
    "rows/surplus_taken.csv", Table(20, ["id", "_surplus", "_surplus_2"], {"_surplus_2": "c"}, must=_codes("long-rows"))
)
def long_rows_where_the_name_of_the_surplus_is_taken() -> bytes:
    return text([[str(i), "b", "c"] if i == 9 else [str(i), "b"] for i in range(20)], ["id", "_surplus"]).encode()


@kind(
    "rows/surplus_quoted.csv",
    Table(20, ["id", "b", "_surplus"], {"_surplus": 'c,"d, ""e"""'}, {"_surplus": 2}, must=_codes("long-rows")),
)
def long_rows_with_quotes() -> bytes:
    surplus = {7: ["c", '"d, ""e"""'], 9: ['"c"']}
    return text([[str(i), "b", *surplus.get(i, [])] for i in range(20)], ["id", "b"]).encode()


@kind("rows/bare_cr.csv", Table(60, HEAD, {"city": "Rome"}, {"city": 5, "amount": 60}))
def bare_carriage_returns() -> bytes:
    return people(60, end="\r").encode()


@kind("rows/crlf.csv", Table(60, HEAD, {"amount": "1.35"}, {"amount": 60}))
def windows_line_ends() -> bytes:
    return people(60, end="\r\n").encode()


@kind("rows/mixed_ends.csv", Table(60, HEAD, {"amount": "1.35"}, {"amount": 60, "city": 5}))
def both_line_ends() -> bytes:
    rows = cells(60)
    return (text(rows[:30], end="\r\n") + text(rows[30:]).partition("\n")[2]).encode()


@kind("rows/unended.csv", Table(60, HEAD, {"amount": "75.1"}, {"amount": 60}))
def no_final_line_end() -> bytes:
    return people(60).rstrip("\n").encode()


@kind("rows/gaps.csv", Table(60, HEAD, {"name": "Ada"}, {"id": 60}, must=_codes("blank-lines")))
def blank_lines_between_rows() -> bytes:
    return people(60).replace("\n", "\n\n").encode()


@kind("rows/gap.csv", Table(60, HEAD, {"name": "Ada"}, {"id": 60}, must=_codes("blank-lines")))
def one_blank_line() -> bytes:
    return people(60).replace("\n30,", "\n\n30,").encode()


@kind("rows/gap_at_the_end.csv", Table(60, HEAD, {"name": "Ada"}, {"id": 60}))
def blank_line_at_the_end() -> bytes:
    return people(60).encode() + b"\n"


@kind("rows/trailing.csv", Table(60, [*HEAD, "column_5"], {}, {"id": 60}, {"column_5": 60}, must=RENAMED))
def delimiters_after_the_last_cell() -> bytes:
    return "".join(line + ",\n" for line in people(60).splitlines()).encode()


@kind("rows/trailing_rows.csv", Table(60, [*HEAD, "column_5"], {"name": "Ada"}, {"id": 60}, must=RENAMED))
def delimiters_after_the_last_cell_of_the_rows_only() -> bytes:
    first, *rest = people(60).splitlines()
    return (first + "\n" + "".join(line + ",\n" for line in rest)).encode()


@kind("rows/nul.csv", Table(60, HEAD, {"name": "A\0da"}, {"id": 60}, must=_codes("nul-bytes")))
def nul_bytes() -> bytes:
    return people(60).replace("Ada", "A\0da").encode()


@kind("rows/huge_cell.csv", Table(21, ["id", "text"], {"id": "20"}, {"id": 21, "text": 2}))
def cell_of_five_megabytes() -> bytes:
    return text([[str(i), "x" * 5_000_000 if i == 10 else "short"] for i in range(21)], ["id", "text"]).encode()


@kind("rows/huge_quoted.csv", Table(21, ["id", "text"], {"id": "20"}, {"id": 21, "text": 2}))
def quoted_cell_of_five_megabytes_with_line_ends() -> bytes:
    long = '"' + "line, and\n" * 500_000 + '"'
    return text([[str(i), long if i == 10 else "short"] for i in range(21)], ["id", "text"]).encode()


@kind(
    "rows/long_line.csv",
    Table(21, ["id", "text", "_surplus"], {"text": "y"}, {"id": 21}, {"_surplus": 20}, must=_codes("long-rows")),
)
def line_of_half_a_million_cells() -> bytes:
    return text([[str(i), *(["y"] * 500_000 if i == 10 else ["y"])] for i in range(21)], ["id", "text"]).encode()


@kind(
    "rows/wide.csv",
    Table(
        3,
        [f"c{i}" for i in range(5000)],
        {"c4999": "4999"},
        {"c1": 3, "c4999": 3},
        must=_codes("wide-table"),
    ),
)
def five_thousand_columns() -> bytes:
    head = [f"c{i}" for i in range(5000)]
    return text([[str(i + 10_000 * row) for i in range(5000)] for row in range(3)], head).encode()


@kind("rows/widest.csv", Refused("too-many-columns"))
def two_and_a_half_million_columns() -> bytes:
    return b"0,1," * 1_250_000


_WIDE = [f"a_rather_long_name_of_column_{i}" for i in range(3000)]


@kind("rows/wide_header.csv", Table(3, _WIDE, {_WIDE[-1]: "2999"}, {_WIDE[-1]: 3}, must=_codes("wide-table")))
def header_longer_than_the_head() -> bytes:
    return text([[str(i + 10_000 * row) for i in range(3000)] for row in range(3)], _WIDE).encode()


# Quotes and delimiters ------------------------------------------------------------------------------------------------


@kind("quotes/newlines.csv", Table(40, ["id", "note"], {"note": "two\nlines, really"}, {"id": 40, "note": 2}))
def line_ends_inside_quotes() -> bytes:
    return text([[str(i), '"two\nlines, really"' if i % 2 else "one"] for i in range(40)], ["id", "note"]).encode()


@kind("quotes/doubled.csv", Table(40, ["id", "note"], {"note": 'he said "no", twice'}, {"note": 2}))
def doubled_quotes() -> bytes:
    return text([[str(i), '"he said ""no"", twice"' if i % 2 else "-x-"] for i in range(40)], ["id", "note"]).encode()


@kind("quotes/unclosed_early.csv", Table(60, HEAD, {"name": '"Grace'}, {"id": 60}, must=_codes("unclosed-quote")))
def quote_opened_in_the_first_row() -> bytes:
    return people(60).replace("Grace", '"Grace', 1).encode()


@kind("quotes/unclosed_late.csv", Table(60, HEAD, {"city": '"Rome'}, {"id": 60}, must=_codes("unclosed-quote")))
def quote_opened_in_the_last_row() -> bytes:
    rows = cells(60)
    rows[-1][2] = '"Rome'
    return text(rows).encode()


_SWALLOWED = _codes("unclosed-quote", "stray-quotes")


@kind("quotes/unclosed_twice.csv", Table(60, HEAD, {"name": '"Ada'}, {"id": 60, "city": 5}, may=_SWALLOWED))
def quotes_opened_in_two_rows_far_apart() -> bytes:
    rows = cells(60)
    rows[7][1] = rows[42][1] = '"Ada'
    return text(rows).encode()


@kind("quotes/stray.csv", Table(60, HEAD, {"name": '"Ada"x'}, {"id": 60, "city": 5}, must=_codes("stray-quotes")))
def text_after_a_closing_quote() -> bytes:
    return people(60).replace("Ada", '"Ada"x').encode()


@kind("quotes/inches.csv", Table(60, HEAD, {"city": '5" pipe'}, {"id": 60, "city": 5}))
def quotes_inside_plain_cells() -> bytes:
    return people(60).replace("Rome", '5" pipe').encode()


@kind("quotes/spaced.csv", Table(40, ["id", "name", "n"], {"name": "Ada, Lady"}, {"name": 1, "id": 40}))
def spaces_around_quotes() -> bytes:
    return "".join(["id, name, n\n", *(f'{i}, "Ada, Lady" , 1\n' for i in range(40))]).encode()


@kind("quotes/single.csv", Table(40, ["id", "name", "n"], {"name": "Ada, Lady"}, {"name": 1, "id": 40}))
def single_quotes() -> bytes:
    return "".join(["id,name,n\n", *(f"{i},'Ada, Lady',1\n" for i in range(40))]).encode()


@kind("quotes/apostrophes.csv", Table(40, ["id", "name", "n"], {"name": "O'Hara"}, {"name": 2, "id": 40}))
def apostrophes_in_names() -> bytes:
    return "".join(["id,name,n\n", *(f"{i},{'O' if i % 2 else 'Dell'}'Hara,1\n" for i in range(40))]).encode()


@kind("quotes/backslash.csv", Table(40, ["id", "name", "n"], {"name": 'the "Ada", a\\b'}, {"name": 1, "id": 40}))
def backslash_escapes() -> bytes:
    return "".join(["id,name,n\n", *(f'{i},"the \\"Ada\\", a\\\\b",1\n' for i in range(40))]).encode()


@kind("quotes/dangling.csv", Table(40, ["id", "path", "n"], {"path": "C:\\data\\"}, {"path": 1, "id": 40}))
def backslash_before_the_closing_quote() -> bytes:
    return "".join(["id,path,n\n", *(f'{i},"C:\\data\\",1\n' for i in range(40))]).encode()


@kind("quotes/only.csv", Table(40, ["id", "name"], {"id": "39"}, {"id": 40, "name": 0}, {"name": 40}))
def every_cell_quoted_and_some_empty() -> bytes:
    return "".join(['"id","name"\n', *(f'"{i}",""\n' for i in range(40))]).encode()


@kind("delimiters/semicolon.csv", Table(60, HEAD, {"amount": "1,35"}, {"amount": 60, "city": 5}))
def semicolons_with_decimal_commas() -> bytes:
    return people(60, delimiter=";").replace(".", ",").encode()


@kind("delimiters/pipe.csv", Table(60, HEAD, {"city": "Rome"}, {"city": 5}))
def pipes() -> bytes:
    return people(60, delimiter="|").encode()


@kind("delimiters/tabs.csv", Table(60, HEAD, {"city": "Rome"}, {"city": 5}))
def tabs_called_csv() -> bytes:
    return people(60, delimiter="\t").encode()


@kind("delimiters/commas.tsv", Table(60, HEAD, {"city": "Rome"}, {"city": 5}))
def commas_called_tsv() -> bytes:
    return people(60).encode()


@kind("delimiters/prose.tsv", Table(40, ["id", "note"], {"note": "well, yes, no"}, {"note": 1, "id": 40}))
def commas_inside_tab_separated_cells() -> bytes:
    return "".join(["id\tnote\n", *(f"{i}\twell, yes, no\n" for i in range(40))]).encode()


# Headers, and nearly nothing ------------------------------------------------------------------------------------------


@kind("headers/empty.csv", Refused("empty-file"))
def empty_file() -> bytes:
    return b""


@kind("headers/blank.csv", Refused("empty-file"))
def only_blank_lines() -> bytes:
    return b"\n\r\n   \n" * 30


@kind("headers/blank_large.csv", Refused("empty-file"))
def only_blank_lines_beyond_the_head() -> bytes:
    return b"\n" * 200_000


@kind("headers/mark.csv", Refused("empty-file"))
def only_a_byte_order_mark() -> bytes:
    return b"\xef\xbb\xbf"


@kind("headers/mark16.csv", Refused("empty-file"))
def only_a_wide_byte_order_mark() -> bytes:
    return b"\xff\xfe"


@kind("headers/only.csv", Table(0, HEAD, {}, {"id": 0}))
def header_without_rows() -> bytes:
    return (",".join(HEAD) + "\n").encode()


@kind("headers/only_unended.csv", Table(0, HEAD, {}, {"id": 0}))
def header_without_rows_or_line_end() -> bytes:
    return ",".join(HEAD).encode()


@kind(
    "headers/none.csv",
    Table(60, ["column_1", "column_2"], {"column_1": "1"}, {"column_1": 60}, must=_codes("no-header")),
)
def numbers_without_header() -> bytes:
    return text([[str(i), str(i / 2)] for i in range(2, 61)], ["1", "0.5"]).encode()


@kind("headers/twice.csv", Table(60, ["id", "name", "name_2", "amount"], {"name_2": "Rome"}, must=RENAMED))
def duplicate_headers() -> bytes:
    return text(cells(60), ["id", "name", "name", "amount"]).encode()


@kind("headers/gaps.csv", Table(60, ["id", "column_2", "city", "column_4"], {"column_2": "Ada"}, must=RENAMED))
def blank_headers() -> bytes:
    return text(cells(60), ["id", "", "city", "  "]).encode()


@kind("headers/r.csv", Table(60, ["column_1", *HEAD], {"name": "Ada", "column_1": "r1"}, must=RENAMED))
def header_without_the_row_names() -> bytes:
    return text([["r" + row[0], *row] for row in cells(60)]).encode()


@kind(
    "headers/long.csv",
    Table(60, [*HEAD, "more"], {"name": "Ada"}, {"more": 0}, {"more": 60}, must=_codes("short-rows")),
)
def header_longer_than_the_rows() -> bytes:
    return text(cells(60), [*HEAD, "more"]).encode()


@kind("headers/preamble.csv", Table(60, HEAD, {"name": "Ada"}, {"id": 60}, must=_codes("preamble")))
def titles_above_the_header() -> bytes:
    return b"Annual report\nprinted by somebody\n\n" + people(60).encode()


@kind("headers/comments.csv", Table(60, HEAD, {"name": "Ada"}, {"id": 60}, must=_codes("preamble")))
def comments_above_the_header() -> bytes:
    return b"# source: a survey\n# licence: free, but, with, commas, in, it\n" + people(60).encode()


@kind("headers/sep.csv", Table(60, HEAD, {"name": "Ada"}, {"id": 60}, must=_codes("preamble")))
def delimiter_told_to_excel() -> bytes:
    return b"sep=;\r\n" + people(60, delimiter=";", end="\r\n").encode()


@kind("headers/one_column.csv", Table(60, ["city"], {"city": "Rome"}, {"city": 5}))
def one_column() -> bytes:
    return text([[CITIES[i % 5]] for i in range(60)], ["city"]).encode()


@kind("headers/one_cell.csv", Table(0, ["lonely"], {}, {"lonely": 0}))
def one_cell() -> bytes:
    return b"lonely"


@kind("headers/one_number.csv", Table(1, ["column_1"], {"column_1": "42"}, {"column_1": 1}, must=_codes("no-header")))
def one_number() -> bytes:
    return b"42\n"


@kind("headers/newline.csv", Table(30, ["the\nid", "name"], {"name": "Ada"}, {"the\nid": 30}))
def line_end_inside_a_header() -> bytes:
    return ('"the\nid",name\n' + "".join(f"{i},{NAMES[i % 7]}\n" for i in range(30))).encode()


# Text that is dangerous where it is shown -----------------------------------------------------------------------------

FORMULA = "=cmd|' /C calc'!A0"
SCRIPT = "<script>alert(1)</script>"
IMAGE = "<img src=x onerror=alert(1)>"


@kind("hostile/formula.csv", Table(30, ["id", "note"], {"note": FORMULA}, {"note": 2, "id": 30}))
def spreadsheet_formulas() -> bytes:
    return text([[str(i), FORMULA if i % 2 else "@SUM(A1)"] for i in range(30)], ["id", "note"]).encode()


@kind("hostile/script.csv", Table(30, ["id", SCRIPT], {SCRIPT: IMAGE}, {SCRIPT: 1, "id": 30}))
def scripts_in_header_and_cells() -> bytes:
    return text([[str(i), IMAGE] for i in range(30)], ["id", SCRIPT]).encode()


@kind("hostile/terminal.csv", Table(30, ["id", "note"], {"note": "\x1b[31mred\x1b[0m"}, {"note": 1, "id": 30}))
def terminal_escapes() -> bytes:
    return text([[str(i), "\x1b[31mred\x1b[0m"] for i in range(30)], ["id", "note"]).encode()


# Names ----------------------------------------------------------------------------------------------------------------

_PLAIN = Table(20, HEAD, {"name": "Ada"}, {"id": 20, "city": 5})


def _named(path: str | bytes, name: str) -> None:
    built(path, _PLAIN)(lambda target: _write(target, people(20).encode()), name)


_named("names/new\nline.csv", "line_end_in_the_name")
_named("names/quo\"te's.csv", "quotes_in_the_name")
_named("names/ spaces  and\ttabs .csv", "spaces_in_the_name")
_named("names/-rf.csv", "dash_before_the_name")
_named("names/\N{PILE OF POO}.csv", "emoji_in_the_name")
_named("names/" + "n" * 246 + ".csv", "name_of_250_bytes")
_named(b"names/caf\xe9.csv", "name_that_is_not_utf_8")
_named("names/<script>alert(1)<.csv", "script_in_the_name")
_named("names/50%20percent%.csv", "percents_in_the_name")
_named("names/what#?.csv", "hash_and_question_mark_in_the_name")
_named("names/[a-z]*.csv", "glob_in_the_name")
_named("names/a::b.csv", "colons_in_the_name")
_named("names/back\\slash.csv", "backslash_in_the_name")
_named("names/caf\u00e9 composed.csv", "composed_accent_in_the_name")
_named("names/cafe\u0301 composed.csv", "the_same_name_with_a_separate_accent")
_named("names/bell\x07.csv", "control_character_in_the_name")
_named("names/authors.csv", "name_of_a_document")
_named("names/license_plates.csv", "name_that_begins_like_a_document")


# Compressed -----------------------------------------------------------------------------------------------------------

_CUT = people(20_000).encode()


def _zstd(content: bytes) -> bytes:
    return bytes(pa.compress(content, codec="zstd", asbytes=True))


@kind("packed/cut.csv.gz", Refused("truncated"))
def gzip_cut_at_once() -> bytes:
    return gzip.compress(_CUT, mtime=0)[:40]


@kind("packed/cut.csv.zst", Refused("truncated"))
def zstd_cut_at_once() -> bytes:
    return _zstd(_CUT)[:40]


@kind("packed/cut.csv.bz2", Refused("truncated"))
def bzip2_cut_at_once() -> bytes:
    return bz2.compress(_CUT)[:40]


_HALF = Table(
    None, HEAD, {"name": "Ada"}, must=_codes("truncated", "incomplete"), may=_codes("short-rows"), complete=False
)


@kind("packed/late.csv.gz", _HALF)
def gzip_cut_near_its_end() -> bytes:
    return gzip.compress(_CUT, mtime=0)[:-400]


@kind("packed/late.csv.zst", _HALF)
def zstd_cut_near_its_end() -> bytes:
    return _zstd(_CUT)[:-400]


@kind("packed/late.csv.bz2", _HALF)
def bzip2_cut_near_its_end() -> bytes:
    return bz2.compress(_CUT, 1)[:-400]


@kind("packed/text.csv.gz", Table(60, HEAD, {"city": "Rome"}, {"id": 60}, must=_codes("wrong-extension")))
def text_called_gz() -> bytes:
    return people(60).encode()


@kind("packed/gzip.csv", Table(60, HEAD, {"city": "Rome"}, {"id": 60}, must=_codes("wrong-extension")))
def gzip_called_csv() -> bytes:
    return gzip.compress(people(60).encode(), mtime=0)


@kind("packed/members.csv.gz", Table(60, HEAD, {"city": "Rome"}, {"id": 60, "amount": 60}))
def two_gzip_members() -> bytes:
    content = people(60).encode()
    return gzip.compress(content[:700], mtime=0) + gzip.compress(content[700:], mtime=0)


@kind("packed/streams.csv.bz2", Table(60, HEAD, {"city": "Rome"}, {"id": 60, "amount": 60}))
def two_bzip2_streams() -> bytes:
    content = people(60).encode()
    return bz2.compress(content[:700]) + bz2.compress(content[700:])


@kind("packed/frames.csv.zst", Table(60, HEAD, {"city": "Rome"}, {"id": 60, "amount": 60}))
def two_zstd_frames() -> bytes:
    content = people(60).encode()
    return _zstd(content[:700]) + _zstd(content[700:])


@kind("packed/empty.csv.gz", Refused("empty-file"))
def gzip_of_nothing() -> bytes:
    return gzip.compress(b"", mtime=0)


@kind("packed/bomb.csv.gz", Table(8_333_333, ["a", "b", "c"], {"a": "0"}, {"a": 1, "b": 1, "c": 1}))
def fifty_megabytes_of_zeros() -> bytes:
    return gzip.compress(b"a,b,c\n" + b"0,0,0\n" * 8_333_333, compresslevel=6, mtime=0)


@kind("packed/nul_bomb.csv.gz", Refused("empty-file", "unknown-format"))
def fifty_megabytes_of_nul_bytes() -> bytes:
    return gzip.compress(bytes(50_000_000), compresslevel=6, mtime=0)


# Binary formats -------------------------------------------------------------------------------------------------------

_TYPED = ["id", "name", "amount", "flag"]


@kind("binary/noise.csv", Refused("unknown-format"))
def binary_called_csv() -> bytes:
    return b"\x89\x00\xff\x01\x00" + noise(20_000)


@kind("binary/picture.csv", Refused("unknown-format"))
def picture_called_csv() -> bytes:
    return b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x10\0\0\0\x10\x08\x06\0\0\0" + noise(3_000)


@kind("binary/parquet.csv", Table(500, _TYPED, {"name": "Ada"}, {"id": 500, "name": 7}, must=_codes("wrong-extension")))
def parquet_called_csv() -> bytes:
    return parquet(typed(500))


@kind("binary/csv.parquet", Refused("truncated"))
def csv_called_parquet() -> bytes:
    return people(60).encode()


@kind("binary/cut.parquet", Refused("truncated"))
def parquet_cut_off() -> bytes:
    return parquet(typed(5_000))[:-200]


@kind("binary/empty.parquet", Refused("empty-file"))
def parquet_of_no_bytes() -> bytes:
    return b""


@kind("binary/no_rows.parquet", Table(0, _TYPED, {}, {"id": 0, "name": 0}))
def parquet_without_rows() -> bytes:
    return parquet(typed(0))


@kind("binary/no_columns.parquet", Refused("empty-file"))
def parquet_without_columns() -> bytes:
    return parquet(pa.table({}))


@kind("binary/garbage.parquet", Refused("damaged"))
def parquet_with_garbage_in_the_middle() -> bytes:
    content = bytearray(parquet(typed(5_000)))
    content[100 : len(content) // 2] = noise(len(content) // 2 - 100)
    return bytes(content)


@kind("binary/half.parquet", Refused("damaged"))
def parquet_with_one_good_row_group() -> bytes:
    table = typed(2_000)
    content = bytearray(parquet(table, row_group_size=1_000))
    start = pq.read_metadata(io.BytesIO(content)).row_group(1).column(0).dictionary_page_offset
    content[start : start + 3_000] = noise(3_000)
    return bytes(content)


@kind("binary/footer.parquet", Refused("damaged"))
def parquet_with_a_damaged_footer() -> bytes:
    content = bytearray(parquet(typed(5_000)))
    content[-300:-20] = noise(280)
    return bytes(content)


@kind(
    "binary/nested.parquet",
    Table(3, ["id", "at.x", "at.y", "tags"], {"at.x": "1", "tags": '["a","b"]'}, {"at.y": 3}, must=_codes("nested")),
)
def parquet_with_nested_values() -> bytes:
    rows = [{"id": i, "at": {"x": i, "y": -i}, "tags": ["a", "b"]} for i in range(3)]
    return parquet(pa.Table.from_pylist(rows))


@kind("binary/cut.arrow", Refused("truncated"))
def arrow_file_cut_off() -> bytes:
    content = arrow(typed(5_000))
    return content[: len(content) // 2]


@kind("binary/cut.orc", Refused("truncated"))
def orc_file_cut_off() -> bytes:
    content = orc(typed(5_000))
    return content[: len(content) // 2]


@kind("binary/twice.arrow", Table(2, ["a", "a_2", "column_3"], {"a_2": "y"}, {"a": 1}, must=RENAMED))
def arrow_file_with_repeated_and_blank_names() -> bytes:
    columns = [pa.array(["x", "x"]), pa.array(["y", "y"]), pa.array([1, 2])]
    return arrow(pa.Table.from_arrays(columns, names=["a", "a", ""]))


# Workbooks and databases ----------------------------------------------------------------------------------------------


@kind("books/text.xlsx", Table(60, HEAD, {"city": "Rome"}, {"id": 60}, must=_codes("wrong-extension")))
def text_called_xlsx() -> bytes:
    return people(60).encode()


@kind("books/noise.xlsx", Refused("damaged"))
def noise_called_xlsx() -> bytes:
    return b"\x01\x02" + noise(5_000)


@kind("books/zip.xlsx", Refused("damaged"))
def zip_without_a_workbook() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("notes.txt", "no workbook in here")
    return buffer.getvalue()


@kind("books/cut.xlsx", Refused("damaged"))
def workbook_cut_off() -> bytes:
    content = xlsx(one=typed(200))
    return content[: len(content) // 2]


@kind(
    "books/sheets.xlsx",
    {
        "::full": Table(20, ["id", "name", "amount", "flag"], {"name": "Ada"}, {"id": 20}),
        "::empty": Refused("empty-sheet", severity="info"),
    },
)
def workbook_with_an_empty_sheet() -> bytes:
    return xlsx(full=typed(20), empty=pa.table({}))


@kind("books/archive.zip", Refused("unknown-format", severity="warning"))
def archive_of_tables() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a.csv", people(20))
    return buffer.getvalue()


@kind("databases/damaged.sqlite", Refused("damaged"))
def damaged_database() -> bytes:
    return b"SQLite format 3\0" + noise(8_176)


@kind("databases/empty.sqlite", Refused("empty-file"))
def database_of_no_bytes() -> bytes:
    return b""


@kind("databases/no_table.sqlite", Refused("empty-file"))
def database_without_tables() -> bytes:
    return sqlite("CREATE TABLE x (a)", "DROP TABLE x")


def _filled(name: str, rows: int) -> list[str]:
    values = ", ".join(f"({i}, 'v{i}')" for i in range(rows))
    return [f"CREATE TABLE {name} (id INTEGER, name TEXT)", f"INSERT INTO {name} VALUES {values}"]


_ODD = Table(3, ["id", "name"], {"name": "v1"}, {"id": 3})


@kind(
    "databases/odd.sqlite",
    {
        "::select": _ODD,
        "::two words": _ODD,
        '::quo"te': _ODD,
        "::semi;colon--": _ODD,
        "::größe": _ODD,
        "::": _ODD,
        "::per%cent": _ODD,
        "::broken view": Refused("damaged"),
        "::no rows": Table(0, ["id"], {}, {"id": 0}),
    },
)
def database_with_odd_names() -> bytes:
    names = ['"select"', '"two words"', '"quo""te"', '"semi;colon--"', '"größe"', '""', '"per%cent"']
    statements = [statement for name in names for statement in _filled(name, 3)]
    gone = ["CREATE TABLE gone (a)", 'CREATE VIEW "broken view" AS SELECT a FROM gone', "DROP TABLE gone"]
    return sqlite(*statements, *gone, 'CREATE TABLE "no rows" (id INTEGER)')


@kind(
    "databases/half.sqlite",
    {"::first": Table(3, ["id", "name"], {"name": "v1"}, {"id": 3}), "::second": Refused("damaged")},
)
def database_with_one_damaged_table() -> bytes:
    content = bytearray(sqlite(*_filled("first", 3), *_filled("second", 20)))
    place = content.rindex(b"v19") // 4096 * 4096
    content[place : place + 4096] = noise(4096)
    return bytes(content)


@kind(
    "databases/typeless.sqlite",
    {"::t": Table(5, ["a", "b"], {"a": "0xff00"}, {"a": 4}, {"a": 1, "b": 5})},
)
def database_that_mixes_types_in_a_column() -> bytes:
    return sqlite("CREATE TABLE t (a, b)", "INSERT INTO t (a) VALUES (1), ('x'), (2.5), (x'ff00'), (NULL)")


@kind("databases/type.sqlite", {"::t": Table(1, ["a"], {"a": "1"}, {"a": 1})})
def database_with_a_type_in_latin_1() -> bytes:
    content = sqlite("CREATE TABLE t (a Gr__e)", "INSERT INTO t VALUES (1)")
    return content.replace(b"Gr__e", "Größe".encode("latin-1"))


@kind("databases/damaged.duckdb", Refused("damaged"))
def damaged_duckdb() -> bytes:
    return noise(8) + b"DUCK" + noise(12_276)


# JSON -----------------------------------------------------------------------------------------------------------------


def _lines(*values: str) -> bytes:
    return ("\n".join(values) + "\n").encode("utf-8", "surrogatepass")


_BROKEN = _codes("broken-json")


@kind("json/broken.jsonl", Table(39, ["id", "x"], {"x": "v7"}, {"id": 39}, must=_BROKEN))
def broken_line() -> bytes:
    lines = [json.dumps({"id": i, "x": f"v{i}"}) for i in range(40)]
    lines[20] = lines[20][:8]
    return _lines(*lines)


@kind("json/scalars.jsonl", Table(5, ["value"], {"value": "x"}, {"value": 4}, {"value": 1}))
def lines_of_scalars() -> bytes:
    return _lines("1", '"x"', "null", "true", "2.5")


@kind("json/arrays.jsonl", Table(3, ["value"], {"value": '[1,"a"]'}, {"value": 3}, must=_codes("nested")))
def lines_of_arrays() -> bytes:
    return _lines('[1, "a"]', "[]", "[[2]]")


@kind("json/mixed.jsonl", Table(4, ["a", "a.b", "value"], {"a.b": "2", "value": "5"}, {"a": 1}, may=_codes("nested")))
def lines_of_everything() -> bytes:
    return _lines('{"a": 1}', '{"a": {"b": 2}}', "5", "{}")


@kind("json/empty_objects.jsonl", Refused("empty-file"))
def lines_of_empty_objects() -> bytes:
    return _lines("{}", "{}", "{}")


@kind("json/deep.jsonl", Table(2, ["a"], {"a": "1"}, {"a": 2}, must=_BROKEN))
def ten_thousand_levels() -> bytes:
    return _lines('{"a": 1}', '{"a":' * 10_000 + "1" + "}" * 10_000, "[" * 10_000 + "]" * 10_000, '{"a": 2}')


@kind("json/deepest.json", Refused("broken-json"))
def document_of_ten_thousand_levels() -> bytes:
    return b"[" * 10_000 + b"]" * 10_000


@kind("json/sixty.jsonl", Table(5, ["id", ".".join("abcdefgh")], {"id": "3"}, {"id": 5}, must=_codes("nested")))
def sixty_levels() -> bytes:
    keys = "abcdefgh" + "i" * 52
    inner = '":{"'.join(keys)
    return _lines(*(f'{{"id":{i},"{inner}":{i}' + "}" * 60 for i in range(5)))


@kind("json/twice.jsonl", Table(3, ["a", "b"], {"a": "2"}, {"a": 1, "b": 1}, must=_codes("duplicate-keys")))
def duplicate_keys() -> bytes:
    return _lines(*['{"a": 1, "a": 2, "b": 3}'] * 3)


@kind("json/dots.jsonl", Table(2, ["a.b"], {}, {"a.b": 1}, must=_codes("duplicate-keys")))
def key_with_a_dot_beside_a_path() -> bytes:
    return _lines(*['{"a.b": 1, "a": {"b": 2}}'] * 2)


@kind("json/surrogates.jsonl", Table(3, ["a"], {"a": "fine"}, {"a": 3}, may=ENCODING))
def lone_surrogates() -> bytes:
    return _lines('{"a": "\\ud800"}', '{"a": "x\\udfffy"}', '{"a": "fine"}')


@kind("json/surrogate_key.jsonl", Table(2, ["a", "í\xa0€"], {"a": "2"}, {"a": 2}, may=ENCODING))
def lone_surrogate_in_a_key() -> bytes:
    return _lines('{"a": 1, "\\ud800": 1}', '{"a": 2}')


@kind("json/nested_surrogates.jsonl", Table(2, ["a"], {}, {"a": 2}, must=_codes("nested"), may=ENCODING))
def lone_surrogates_in_a_list() -> bytes:
    return _lines('{"a": ["\\ud800"]}', '{"a": [{"\\udc00": 1}]}')


@kind("json/astral.jsonl", Table(1, ["a"], {"a": "\N{PILE OF POO}"}, {"a": 1}))
def surrogate_pairs() -> bytes:
    return _lines('{"a": "\\ud83d\\udca9"}')


@kind("json/latin1.jsonl", Table(40, ["id", "city"], {"city": "Zürich"}, {"city": 1}, must=ENCODING))
def json_in_latin_1() -> bytes:
    return b"".join(f'{{"id": {i}, "city": "Zürich"}}\n'.encode("latin-1") for i in range(40))


@kind("json/utf16.json", Table(3, ["a"], {"a": "ü2"}, {"a": 3}, may=ENCODING))
def json_in_utf_16() -> bytes:
    return b"\xff\xfe" + json.dumps([{"a": f"ü{i}"} for i in range(3)], ensure_ascii=False).encode("utf-16-le")


@kind("json/huge.jsonl", Table(3, ["a"], {"a": "12345678901234567890123"}, {"a": 3}))
def huge_integers() -> bytes:
    return _lines('{"a": 12345678901234567890123}', '{"a": ' + "9" * 5_000 + "}", '{"a": 1e400}')


@kind("json/nan.jsonl", Table(4, ["a"], {"a": "1"}, {"a": 3}, {"a": 1}))
def not_a_number() -> bytes:
    return _lines('{"a": NaN}', '{"a": Infinity}', '{"a": -Infinity}', '{"a": 1}')


@kind("json/array.json", Table(40, ["id", "x"], {"x": "v7"}, {"id": 40}))
def array_document() -> bytes:
    return json.dumps([{"id": i, "x": f"v{i}"} for i in range(40)], indent=2).encode()


@kind("json/cut.json", Table(39, ["id", "x"], {"x": "v7"}, {"id": 39}, must=_BROKEN))
def array_document_cut_off() -> bytes:
    return json.dumps([{"id": i, "x": f"v{i}"} for i in range(40)]).encode()[:-8]


@kind("json/object.json", Table(1, ["name", "size.x"], {"size.x": "3"}, {"name": 1}))
def document_of_one_object() -> bytes:
    return json.dumps({"name": "one", "size": {"x": 3}}, indent=2).encode()


@kind("json/rows.json", Table(1, ["total_rows", "rows"], {"rows": '[{"id":"a"},{"id":"b"}]'}, must=_codes("nested")))
def document_with_rows_on_their_own_lines() -> bytes:
    return b'{"total_rows":2,"rows":[\n{"id":"a"},\n{"id":"b"}\n]}'


@kind("json/csv.json", Refused("broken-json"))
def csv_called_json() -> bytes:
    return people(60).encode()


@kind("json/empty.jsonl", Refused("empty-file"))
def empty_json() -> bytes:
    return b""


@kind("json/blank.jsonl", Refused("empty-file"))
def blank_json() -> bytes:
    return b"\n \n\n"


@kind("json/keys.jsonl", Refused("too-many-columns"))
def keys_that_are_data() -> bytes:
    return _lines(*(json.dumps({f"k{i * 5_000 + j}": 1 for j in range(5_000)}) for i in range(5)))


@kind("json/cut.jsonl.gz", Refused("truncated"))
def gzip_of_json_cut_off() -> bytes:
    lines = _lines(*(json.dumps({"id": i, "x": f"v{i}"}) for i in range(5_000)))
    return gzip.compress(lines, mtime=0)[:40]


@kind(
    "json/late.jsonl.gz", Table(None, ["id", "x"], {"x": "v7"}, must=_codes("truncated", "incomplete"), complete=False)
)
def gzip_of_json_cut_near_its_end() -> bytes:
    lines = _lines(*(json.dumps({"id": i, "x": f"v{i % 100}"}) for i in range(5_000)))
    return gzip.compress(lines, mtime=0)[:-400]


# Directories, links and things that cannot be opened ------------------------------------------------------------------


@built("folders/parts.csv", Table(90, HEAD, {"name": "Ada"}, {"id": 90}))
def directory_of_parts(path: Path) -> None:
    rows = cells(90)
    for number in range(3):
        _write(path / f"part-0000{number}.csv", text(rows[30 * number : 30 * number + 30]).encode())


@built("folders/uneven_parts.csv", Table(60, [*HEAD, "more"], {"more": "x"}, {"id": 60}, {"more": 30}))
def directory_of_parts_with_different_columns(path: Path) -> None:
    rows = cells(60)
    _write(path / "part-00000.csv", text(rows[:30]).encode())
    _write(path / "part-00001.csv", text([[*row, "x"] for row in rows[30:]], [*HEAD, "more"]).encode())


@built(
    "folders/one_bad_part.parquet",
    Table(100, _TYPED, {"name": "Ada"}, {"id": 100}, must=_codes("truncated", "incomplete"), complete=False),
)
def directory_with_one_damaged_part(path: Path) -> None:
    _write(path / "part-00000.parquet", parquet(typed(100)))
    _write(path / "part-00001.parquet", parquet(typed(100))[:-50])


@built("folders/sales", Table(60, [*HEAD, "year", "kind"], {"year": "2021", "kind": "a b"}, {"year": 2, "kind": 2}))
def partitions_in_the_path(path: Path) -> None:
    rows = cells(60)
    _write(path / "year=2020/kind=a%20b/x.csv", text(rows[:30]).encode())
    _write(path / "year=2021/kind=c/y.csv", text(rows[30:]).encode())


@built("links/dangling.csv", Refused("unreadable"))
def link_that_leads_nowhere(path: Path) -> None:
    path.symlink_to("nothing-there.csv")


@built("links/circle.csv", Refused("unreadable"))
def link_to_itself(path: Path) -> None:
    path.symlink_to(path.name)


@built("links/above", Refused("symlink-loop", severity="warning"))
def link_to_a_directory_above(path: Path) -> None:
    path.symlink_to("..", target_is_directory=True)


@built("links/outside.csv", Refused("symlink-outside", severity="warning"))
def link_that_leaves_the_lake(path: Path) -> None:
    path.symlink_to(os.path.abspath(__file__))  # noqa: PTH100 - resolve() would follow links on the way


@built("links/copy.csv", Table(60, HEAD, {"name": "Ada"}, {"id": 60}))
def link_to_a_file_in_the_lake(path: Path) -> None:
    path.symlink_to("../rows/crlf.csv")


@built("links/pipe.csv", Refused("special-file", severity="warning"))
def named_pipe(path: Path) -> None:
    os.mkfifo(path)


@built("links/socket.csv", Refused("special-file", severity="warning"))
def named_socket(path: Path) -> None:
    # The address of a socket must be short, the path may not be.
    with contextlib.chdir(path.parent), socket.socket(socket.AF_UNIX) as bound:
        bound.bind(path.name)
