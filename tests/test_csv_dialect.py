"""Understanding the head of a CSV: delimiter, quotes, line ends, header, preamble, encoding."""

from __future__ import annotations

import math
import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.effort import lines_run
from lakescope.errors import SourceError
from lakescope.sources.formats import header_rows
from lakescope.sources.formats.csv_dialect import Dialect, detect_dialect
from lakescope.sources.io.encoding import Encoding, detect_encoding
from lakescope.sources.names import MOST_COLUMNS, unique_names
from lakescope.values.canonical import Kind, canonical
from lakescope.values.text import TextColumn


def detect(text: str | bytes, *, tabs: bool = False) -> Dialect:
    raw = text.encode() if isinstance(text, str) else text
    return detect_dialect(np.frombuffer(raw, np.uint8), whole=True, encoding=Encoding(), tabs=tabs)


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        ("a,b\n1,2\n3,4\n", ","),
        ("a;b\n1,5;2,5\n3,5;4,5\n", ";"),
        ("a;b;c\n1,5;2,5;3,5\n3,5;4,5;1,0\n", ";"),
        ("a\tb\nx, y\t2\nz, w\t4\n", "\t"),
        ("a|b|c\n1|2|3\n", "|"),
        ('name,tags\nx,"a|b|c"\ny,"d|e"\n', ","),
        ("id,list\n1,a|b\n2,c|d\n3,e|f\n", ","),
        ("just one column\nof words\nhere\n", ","),
    ],
)
def test_delimiters(text: str, delimiter: str) -> None:
    assert chr(detect(text).delimiter) == delimiter


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("id,name\n1,x\n2,y\n", ["id", "name"]),
        ("1,x\n2,y\n", None),
        ("first,last\nada,byron\nalan,turing\n", ["first", "last"]),
        ("code,English\naa,Afar\nen,English\n", ["code", "English"]),
        ("state,2019,2020\nOhio,1.5,2.5\nIowa,3.5,4.5\n", ["state", "2019", "2020"]),
        ("2019,1.5\n2020,2.5\n", None),
        ("a,b\n", ["a", "b"]),
        ("1,2\n", None),
        ("a,,b,a\n1,2,3,4\n", ["a", "column_2", "b", "a_2"]),
        ("x,y,\n1,2,\n3,4,\n", ["x", "y", "column_3"]),
        ("a,b\nr1,1,2\nr2,3,4\n", ["column_1", "a", "b"]),
        ("Report of 2020\n\nid,name,size\n1,x,3\n2,y,4\n", ["id", "name", "size"]),
        ("# comment\nid,name\n1,x\n", ["id", "name"]),
    ],
)
def test_headers(text: str, names: list[str] | None) -> None:
    found = detect(text)
    assert (found.names if found.header else None) == names


def test_header_less_files_get_numbered_columns() -> None:
    assert detect("1,2,3\n4,5,6\n").names == ["column_1", "column_2", "column_3"]


def test_line_ends_and_quotes() -> None:
    assert detect("a,b\r1,2\r3,4\r").newline == ord("\r")
    assert detect("a,b\r\n1,2\r\n").newline == ord("\n")
    assert detect("a,b\n'x, y','z'\n'v, w','u'\n").quote == ord("'")
    assert detect('a,b\n"it said \\"no\\"",2\n').escape == ord("\\")
    assert detect('a,b\n"it said ""no""",2\n').escape == 0


def test_data_starts_behind_the_header() -> None:
    text = 'id,"two\nlines"\n1,2\n'
    found = detect(text)
    assert found.names == ["id", "two\nlines"]
    assert text[found.data_start :] == "1,2\n"


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("François, Hélène, Müller, naïve, “quoted” – dash", "cp1252"),
        ("Chloë Sevigny, Beyoncé, Zoë Saldaña", "mac_roman"),
        ("Москва, Санкт-Петербург, Казань", "cp1251"),
        ("Kraków, Łódź, Wrocław, Gdańsk", "cp1250"),
        ("東京都千代田区, 大阪府大阪市北区, 京都府京都市中京区, 北海道札幌市", "shift_jis"),
    ],
)
def test_encodings(text: str, encoding: str) -> None:
    raw = ("name\n" + text + "\n").encode(encoding)
    assert raw.decode(detect_encoding(raw).fallback) == raw.decode(encoding)


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be", "utf-8"])
def test_byte_order_marks(codec: str) -> None:
    found = detect_encoding("\ufeffid,name\n1,x\n".encode(codec))
    assert found.transcode == (None if codec == "utf-8" else codec)
    assert found.bom == len("\ufeff".encode(codec))


def test_wide_text_without_a_mark() -> None:
    assert detect_encoding("id,name\n1,x\n".encode("utf-16-le")).transcode == "utf-16-le"
    assert detect_encoding("id,name\n1,x\n".encode("utf-16-be")).transcode == "utf-16-be"


def test_names_are_unique_and_stable() -> None:
    assert unique_names(["a", "a", "", "a_2", "column_3"]) == (["a", "a_3", "column_3_2", "a_2", "column_3"], 2)
    assert unique_names(["x", "y"]) == (["x", "y"], 0)
    assert unique_names(["t", "t", "t~2"], mark="~") == (["t", "t~3", "t~2"], 1)


def test_too_many_columns_are_refused_before_they_cost_anything() -> None:
    wide = b"0,1," * 1_250_000

    def refused() -> None:
        with pytest.raises(SourceError, match=r"wide\.csv has more than") as caught:
            detect_dialect(np.frombuffer(wide, np.uint8), whole=True, encoding=Encoding(), table="wide.csv")
        assert caught.value.code == "too-many-columns"

    refused()  # whatever is compiled or cached at first use
    assert lines_run(refused) < 1_000
    found = detect(",".join(f"c{i}" for i in range(MOST_COLUMNS)))
    assert len(found.names) == MOST_COLUMNS


# --- header, preamble and data, beside a plain reference --------------------------------------------------------------

_CELLS = [
    "",
    "x",
    "Name",
    "unit price",
    "first of all",
    "7",
    "1.5",
    "1999",
    "2021-03-04",
    "00501",
    "a-7",
    "Ωmega",
    "(m)",
]


def _outline(text: str) -> str:
    short = re.sub(r"[0-9]+", "9", re.sub(r"[^\W\d_]+", "w", text[:60]))
    return re.sub(r"w( w)+", "w w", short)


def _bounded(evidence: float, most: float) -> float:
    return max(-most, min(most, evidence))


def _density(text: str, mean: float, deviation: float) -> float:
    return -0.5 * ((math.log(1 + len(text)) - mean) / deviation) ** 2 - math.log(deviation)


def _plainly(row: list[str], below: list[list[str]]) -> tuple[float, float]:
    """What the cells of a row say for a header and for a preamble, by counting; words themselves say nothing here."""
    names = before = 0.0
    for place, text in enumerate(row):
        cell, cells = canonical(text), [(other[place], canonical(other[place])) for other in below]
        count, kind = len(cells), cell.kind
        share = (sum(each.kind is kind for _, each in cells) + (0.6 if kind is Kind.TEXT else 0.08)) / (count + 1.2)
        usual = {Kind.TEXT: 0.9, Kind.NULL: 0.04, Kind.INTEGER: 0.03, Kind.CODE: 0.01, Kind.DATE: 0.01}.get(kind, 0.003)
        years = [each.kind is Kind.INTEGER and 1800 <= each.number <= 2100 for _, each in cells]
        if kind is Kind.INTEGER and 1800 <= cell.number <= 2100:
            said = _bounded(math.log(0.06 / ((sum(years) + 0.3) / (count + 1))), 3.5)
        else:
            said = _bounded(math.log(usual / share), 3.5)
        if kind is not Kind.NULL:
            first = {Kind.TEXT: 0.8, Kind.DATE: 0.07, Kind.INTEGER: 0.06}.get(kind, 0.02)
            preamble = _bounded(math.log(first / share), 2.5)
            values = Counter(each.text for _, each in cells if each.kind is not Kind.NULL)
            if values[cell.text]:
                said -= 1.0 + 1.5 * min(1.0, values[cell.text] / count * 5)
                preamble -= 2.0
            else:
                once, filled = sum(times == 1 for times in values.values()), values.total()
                novelty = (once + 0.5) / (filled + 1) if filled else 1.0
                said += _bounded(-math.log(max(novelty, 1 / (count + 2))), 2.0)
            texts = [other for other, each in cells if each.kind is Kind.TEXT]
            if kind is Kind.TEXT and texts:
                outlines = Counter(map(_outline, texts))
                outline = _outline(text)
                usual = {"w": 0.45, "w w": 0.25}.get(outline, 0.03)
                likely = (outlines[outline] + 0.3) / (len(texts) + 0.3 * (len(outlines) + 3))
                said += _bounded(math.log(usual / likely), 1.5)
                lengths = [math.log(1 + len(other)) for other in texts]
                usual_length = _density(text, float(np.mean(lengths)), max(0.35, float(np.std(lengths))))
                said += _bounded(_density(text, 2.1, 0.6) - usual_length, 1.5)
                preamble += _bounded(_density(text, 3.2, 0.9) - usual_length, 1.0)
            before += preamble
        names += _bounded(said, 4.0)
    return names, before


@settings(deadline=None, max_examples=60)
@given(
    st.integers(1, 4).flatmap(
        lambda width: st.lists(
            st.lists(st.sampled_from(_CELLS), min_size=width, max_size=width), min_size=2, max_size=90
        )
    )
)
def test_rows_are_weighed_as_counted_plainly(rows: list[list[str]]) -> None:
    columns = []
    for place in range(len(rows[0])):
        cells = [row[place].encode() for row in rows]
        ends = np.cumsum([len(cell) for cell in cells]).astype(np.int32)
        data = np.frombuffer(b"".join(cells) + b" ", np.uint8)
        columns.append(TextColumn("", data, (ends - [len(cell) for cell in cells]).astype(np.int32), ends))
    head = header_rows._Head(columns, None, (), "utf-8")
    ahead = min(len(rows), 23)
    header, preamble = head.weights_of_cells(ahead, np.zeros(head.places.shape))
    for row in range(ahead):
        below = rows[row + 1 : row + 61]
        wanted = _plainly(rows[row], below) if below else (0.0, 0.0)
        assert (header[row], preamble[row]) == pytest.approx(wanted, abs=1e-9)


_PEOPLE = [f"{name},{at + 3},{at + 4}.5" for at, name in enumerate(["Ann", "Bo", "Cy", "Di", "Eve", "Flo", "Gus"])]


@pytest.mark.parametrize(
    ("lines", "preamble", "rows", "names"),
    [
        (["Sales of last year,,", "by region,,", *_PEOPLE], 2, 0, None),
        (["Sales of last year,,", "name,size,price", *_PEOPLE], 1, 1, ["name", "size", "price"]),
        ([",Size,,Price,", "name,min,max,min,max", *(f"p{i},{i},{i + 3},{i}.5,{i}.75" for i in range(9))], 0, 2,
         ["name", "Size min", "Size max", "Price min", "Price max"]),
        (["name,size,price", ",(m),(USD)", *_PEOPLE], 0, 2, ["name", "size (m)", "price (USD)"]),
        ([",value", "a7,3.5", "b8,4.25", "c9,5.0"], 0, 1, ["column_1", "value"]),
    ],
)  # fmt: skip
def test_where_the_data_starts(lines: list[str], preamble: int, rows: int, names: list[str] | None) -> None:
    text = "\n".join(lines) + "\n"
    found = detect(text)
    assert (found.preamble, found.header_rows) == (preamble, rows)
    assert text[found.data_start :].splitlines() == lines[preamble + rows :]
    assert names is None or found.names == names


def test_a_blank_line_ends_what_stands_above_the_header() -> None:
    text = "Trading - a report\nCreated: 2023-10-02, Currency: USD\n\nstate,orders,revenue\n"
    data = "".join(
        f"{'ABCDEFGHKL'[i % 10]}land{'aeiou'[i // 10]},{100 + 7 * i},{3272.38 + 91 * i:.2f}\n" for i in range(50)
    )
    found = detect(text + data)
    assert (found.preamble, found.header_rows, found.names) == (2, 1, ["state", "orders", "revenue"])
    assert (text + data)[found.data_start :] == data
