"""Understanding the head of a CSV: delimiter, quotes, line ends, header, preamble, encoding."""

from __future__ import annotations

import time

import numpy as np
import pytest

from lakescope.errors import SourceError
from lakescope.sources.csv_dialect import Dialect, detect_dialect
from lakescope.sources.encoding import Encoding, detect_encoding
from lakescope.sources.names import MOST_COLUMNS, unique_names


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
    began = time.process_time()
    with pytest.raises(SourceError, match=r"wide\.csv has more than") as caught:
        detect_dialect(np.frombuffer(wide, np.uint8), whole=True, encoding=Encoding(), table="wide.csv")
    assert caught.value.code == "too-many-columns"
    assert time.process_time() - began < 5
    found = detect(",".join(f"c{i}" for i in range(MOST_COLUMNS)))
    assert len(found.names) == MOST_COLUMNS
