"""Broken files of every kind. Each is recorded with what is wrong and how a good reader should end.

``expect`` is ``table`` where the rows can be had (perhaps with a warning), ``error`` where a table made from the file
would be a lie: half a Parquet file, a cut compressed stream, bytes that are no text.
"""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq

from lakescope.demo.builder import LakeBuilder
from lakescope.demo.chance import Rng, pick
from lakescope.demo.frames import frame
from lakescope.demo.words.people import FIRST, LAST, LAST_INTL
from lakescope.demo.words.trade import NOUNS

FOLDER = "broken"
#: Bytes of the huge cell.
HUGE = 1 << 20
#: Levels of the deep JSON objects.
DEPTH = 60


class Broken(NamedTuple):
    """One broken file; ``rows`` is what a good reader finds where that is beyond doubt."""

    name: str
    content: bytes
    kind: str
    wrong: str
    expect: str
    rows: int | None = None
    encoding: str | None = None


def write(lake: LakeBuilder) -> None:
    """Write every broken file and record what is wrong with it."""
    rng = lake.rng(FOLDER)
    for b in (*_text(rng), *_encodings(rng), *_json(rng), *_binary(rng)):
        more = {name: value for name, value in (("rows", b.rows), ("encoding", b.encoding)) if value is not None}
        lake.add_broken(f"{FOLDER}/{b.name}", b.content, kind=b.kind, wrong=b.wrong, expect=b.expect, **more)


def _people(rng: Rng, count: int, last: tuple[str, ...] = LAST) -> list[list[str]]:
    """Plain rows to break: id, name, place, amount."""
    first, family, place = pick(rng, FIRST, count), pick(rng, last, count), pick(rng, NOUNS, count)
    amount = rng.integers(100, 99_999, count)
    return [[str(i + 1), f"{first[i]} {family[i]}", str(place[i]), f"{amount[i] / 100:.2f}"] for i in range(count)]


_HEAD = "id,name,place,amount"


def _csv(rows: list[list[str]], end: str = "\n", head: str = _HEAD) -> str:
    return end.join([head, *(",".join(row) for row in rows)]) + end


def _text(rng: Rng) -> Iterator[Broken]:
    yield Broken("empty.csv", b"", "empty file", "no bytes at all", "error")
    yield Broken("blank_lines.csv", b"\n" * 40, "only blank lines", "nothing but line ends", "error")
    yield Broken("header_only.csv", f"{_HEAD}\n".encode(), "header only", "a header and no rows", "table", 0)

    rows = _people(rng, 120)
    for i in range(10, 120, 15):
        rows[i] = rows[i][:2] if i % 2 else [*rows[i], "extra", "cells"]
    yield Broken(
        "ragged_rows.csv", _csv(rows).encode(), "ragged rows", "8 rows are too short or too long", "table", 120
    )

    rows = _people(rng, 90)
    rows[40][1] = '"' + rows[40][1]
    yield Broken(
        "unclosed_quote.csv",
        _csv(rows).encode(),
        "unclosed quote",
        "a quote opened in row 41 is never closed and swallows the rest",
        "table",
    )
    yield Broken(
        "bare_cr.csv",
        _csv(_people(rng, 100), "\r").encode(),
        "bare CR",
        "lines end with a carriage return only",
        "table",
        100,
    )
    yield Broken(
        "mixed_line_ends.csv",
        (_csv(_people(rng, 50), "\r\n") + _csv(_people(rng, 50)).partition("\n")[2]).encode(),
        "mixed line ends",
        "the first half ends lines with CR LF, the second with LF",
        "table",
        100,
    )
    yield Broken(
        "duplicate_headers.csv",
        _csv(_people(rng, 60), head="id,name,name,amount").encode(),
        "duplicate headers",
        "two columns have the same name",
        "table",
        60,
    )
    yield Broken(
        "blank_headers.csv",
        _csv(_people(rng, 60), head="id,,place,  ").encode(),
        "blank headers",
        "two columns have no name",
        "table",
        60,
    )
    yield Broken(
        "trailing_comma.csv",
        _csv([[*row, ""] for row in _people(rng, 60)]).encode(),
        "trailing delimiter",
        "every row, but not the header, ends with a comma",
        "table",
        60,
    )

    rows = _people(rng, 60)
    rows[30][1] = '"' + "long text, " * (HUGE // 11) + '"'
    yield Broken("huge_cell.csv", _csv(rows).encode(), "huge cell", "one cell holds a megabyte", "table", 60)

    rows = _people(rng, 80)
    rows[20][2], rows[60][2] = "a\x00b", "\x00"
    yield Broken("nul_bytes.csv", _csv(rows).encode(), "NUL bytes", "two cells hold NUL bytes", "table", 80)


def _encodings(rng: Rng) -> Iterator[Broken]:
    western = tuple(name for name in LAST_INTL if name.encode("latin-1", "ignore").decode("latin-1") == name)
    rows = _people(rng, 150, western)
    yield Broken(
        "latin1.csv", _csv(rows).encode("latin-1"), "Latin-1", "text in Latin-1, not UTF-8", "table", 150, "latin-1"
    )
    rows = _people(rng, 150, LAST_INTL)
    yield Broken(
        "utf16.csv",
        b"\xff\xfe" + _csv(rows).encode("utf-16-le"),
        "UTF-16",
        "UTF-16 with a byte order mark",
        "table",
        150,
        "utf-16",
    )
    first, second = _csv(_people(rng, 75, LAST_INTL)), _csv(_people(rng, 75, western)).partition("\n")[2]
    yield Broken(
        "mixed_encodings.csv",
        first.encode() + second.encode("latin-1"),
        "mixed encodings",
        "the first half is UTF-8, the second Latin-1",
        "table",
        150,
    )


def _json(rng: Rng) -> Iterator[Broken]:
    records = [{"id": i, "place": str(p)} for i, p in enumerate(pick(rng, NOUNS, 80))]
    lines = [json.dumps(record) for record in records]
    lines[40] = '{"id": 40, "place": "Ri'
    yield Broken(
        "broken_line.jsonl",
        ("\n".join(lines) + "\n").encode(),
        "broken JSON line",
        "line 41 of 80 breaks off in the middle",
        "table",
        79,
    )
    deep = []
    for i in range(20):
        value: object = i
        for level in range(DEPTH, 0, -1):
            value = {f"level{level}": value}
        deep.append(json.dumps({"id": i, "nested": value, "list": [{"a": [i, [i]]}, {"b": None}]}))
    yield Broken(
        "deep.jsonl",
        ("\n".join(deep) + "\n").encode(),
        "deeply nested JSON",
        f"objects nested {DEPTH} levels deep",
        "table",
        20,
    )


def _binary(rng: Rng) -> Iterator[Broken]:
    rows = _people(rng, 2_000)
    table = frame(id=[int(r[0]) for r in rows], name=[r[1] for r in rows], amount=[float(r[3]) for r in rows])
    plain = _csv(rows).encode()

    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    whole = buffer.getvalue()
    yield Broken(
        "truncated.parquet",
        whole[: len(whole) * 2 // 3],
        "truncated Parquet",
        "the last third is missing, footer included",
        "error",
    )
    yield Broken("not_parquet.parquet", plain[:4_000], "wrong format", "a CSV file called .parquet", "error")
    packed = gzip.compress(plain, mtime=0)
    yield Broken(
        "truncated.csv.gz", packed[: len(packed) // 2], "truncated gzip", "the compressed stream breaks off", "error"
    )
    zstd = pa.compress(plain, codec="zstd", asbytes=True)
    yield Broken(
        "truncated.csv.zst", zstd[: len(zstd) // 2], "truncated zstd", "the compressed stream breaks off", "error"
    )
    yield Broken("not_gzip.csv.gz", plain[:4_000], "wrong format", "plain text called .gz", "error")

    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    arrow = sink.getvalue().to_pybytes()
    yield Broken(
        "truncated.feather", arrow[: len(arrow) // 2], "truncated Arrow file", "the second half is missing", "error"
    )
    buffer = io.BytesIO()
    orc.write_table(table, buffer)
    yield Broken("truncated.orc", buffer.getvalue()[:2_000], "truncated ORC", "cut after 2,000 bytes", "error")
    yield Broken(
        "damaged.sqlite",
        b"SQLite format 3\x00" + rng.bytes(8_176),
        "damaged SQLite",
        "random bytes after the header",
        "error",
    )
    yield Broken(
        "binary.csv",
        b"\x89\x00\xff\xfe\x00" + rng.bytes(20_000),
        "binary called .csv",
        "random bytes, no text",
        "error",
    )
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(zipfile.ZipInfo("notes.txt", (1980, 1, 1, 0, 0, 0)), "no workbook in here")
    yield Broken(
        "not_a_workbook.xlsx", buffer.getvalue(), "no workbook", "a zip archive without a workbook in it", "error"
    )
