"""Files that are small, or small to describe, and want all of a machine; and a child process that reads them.

``MAKERS`` writes each to a path, larger or smaller by ``scale`` (1: hundreds of megabytes to petabytes once read).
"""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

MB = 1 << 20
Maker = Callable[[Path, float], None]
MAKERS: dict[str, Maker] = {}


def bomb(name: str) -> Callable[[Maker], Maker]:
    def keep(maker: Maker) -> Maker:
        MAKERS[name] = maker
        return maker

    return keep


def _pieces(size: float, piece: bytes = b"x" * MB) -> Iterator[bytes]:
    for _ in range(max(1, int(size) // len(piece))):
        yield piece


def _write(path: Path, head: bytes, size: float, piece: bytes, tail: bytes, *, packed: bool = False) -> None:
    with gzip.open(path, "wb", compresslevel=6) if packed else path.open("wb") as out:
        out.write(head)
        for each in _pieces(size, piece):
            out.write(each)
        out.write(tail)


@bomb("rows.csv.gz")
def rows_without_end(path: Path, scale: float) -> None:
    _write(path, b"a,b,c\n", 2048 * MB * scale, b"0,0,0\n" * 100_000, b"", packed=True)


@bomb("line.csv.gz")
def line_without_end(path: Path, scale: float) -> None:
    _write(path, b"a,b\n1,", 2560 * MB * scale, b"x" * MB, b"\n2,3\n", packed=True)


@bomb("cell.csv")
def giant_cell(path: Path, scale: float) -> None:
    _write(path, b"a,b\n1,", 400 * MB * scale, b"x" * MB, b"\n2,3\n")


@bomb("quoted.csv")
def giant_quoted_cell(path: Path, scale: float) -> None:
    _write(path, b'a,b\n1,"', 400 * MB * scale, b'x\n""' * (MB // 4), b'"\n2,3\n')


@bomb("header.csv")
def giant_header(path: Path, scale: float) -> None:
    _write(path, b"a,", 400 * MB * scale, b"x" * MB, b"\n2,3\n")


@bomb("columns.csv")
def columns_without_end(path: Path, scale: float) -> None:
    _write(path, b"a", 400 * MB * scale, b",a" * (MB // 2), b"\n2,3\n")


@bomb("wide.csv.gz")
def giant_in_utf16(path: Path, scale: float) -> None:
    _write(path, "\ufeffa,b\n1,".encode("utf-16-le"), 800 * MB * scale, b"x\0" * (MB // 2), b"", packed=True)


@bomb("line.jsonl")
def giant_json_line(path: Path, scale: float) -> None:
    _write(path, b'{"a": 1}\n{"a": "', 400 * MB * scale, b"x" * MB, b'"}\n{"a": 2}\n')


@bomb("text.json")
def giant_json_text(path: Path, scale: float) -> None:
    _write(path, b'[{"a": 1}, {"a": "', 400 * MB * scale, b"x" * MB, b'"}]')


@bomb("deep.json")
def deep_json(path: Path, scale: float) -> None:
    _write(path, b"[", 50 * MB * scale, b"[" * MB, b"")


@bomb("deep.jsonl")
def deep_json_lines(path: Path, scale: float) -> None:
    _write(path, b'{"a": 1}\n', 50 * MB * scale, b'{"a":' * (MB // 5), b"\n")


@bomb("empties.json")
def giant_json_of_nothing(path: Path, scale: float) -> None:
    _write(path, b'[{"a": 1}, {"a": [', 60 * MB * scale, b"[]," * (MB // 3), b"1]}]")


@bomb("keys.json.gz")
def keys_without_end(path: Path, scale: float) -> None:
    with gzip.open(path, "wt", compresslevel=6) as out:
        out.write('{"k": 1')
        for number in range(int(3_000_000 * scale)):
            out.write(f', "key{number}": 1')
        out.write("}\n")


@bomb("dictionary.parquet")
def parquet_of_one_value(path: Path, scale: float) -> None:
    cell = pa.array(["x" * int(64 * MB * scale)])
    rows = pa.DictionaryArray.from_arrays(pa.array([0] * 1_000_000, pa.int32()), cell)
    pq.write_table(pa.table({"a": rows}), path, compression="zstd")


@bomb("page.parquet")
def parquet_of_one_page(path: Path, scale: float) -> None:
    values = pa.array(["x" * int(1024 * MB * scale)])
    pq.write_table(pa.table({"a": values}), path, compression="zstd", use_dictionary=False, write_statistics=False)


@bomb("nulls.parquet")
def parquet_of_nothing(path: Path, scale: float) -> None:
    schema = pa.schema([("a", pa.int32())])
    batch = pa.table([pa.nulls(int(4_000_000 * scale), pa.int32())], schema=schema)
    with pq.ParquetWriter(path, schema, max_rows_per_page=1 << 30) as writer:
        for _ in range(100):
            writer.write_table(batch, row_group_size=batch.num_rows)


@bomb("nulls.arrow")
def arrow_of_nothing(path: Path, scale: float) -> None:
    batch = pa.RecordBatch.from_arrays([pa.Array.from_buffers(pa.null(), (1 << 31) - 1, [None])], ["a"])
    with pa.ipc.new_file(str(path), batch.schema) as writer:
        for _ in range(max(10, int(1000 * scale))):
            writer.write_batch(batch)


@bomb("runs.arrow")
def arrow_of_one_run(path: Path, scale: float) -> None:
    rows = (1 << 31) - 1
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([rows], pa.int64()), pa.array(["x" * 1000]))
    with pa.ipc.new_stream(str(path), pa.schema([("a", runs.type)])) as writer:
        for _ in range(max(10, int(1000 * scale))):
            writer.write_batch(pa.RecordBatch.from_arrays([runs], ["a"]))


@bomb("dictionary.arrow")
def arrow_of_one_value(path: Path, scale: float) -> None:
    cell = pa.array(["x" * int(64 * MB * scale)])
    rows = pa.DictionaryArray.from_arrays(pa.array([0] * 200_000, pa.int8()), cell)
    with pa.ipc.new_file(str(path), pa.schema([("a", rows.type)])) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays([rows], ["a"]))


@bomb("lists.parquet")
def parquet_of_one_list(path: Path, scale: float) -> None:
    length = int(100 * MB * scale)
    values = pa.ListArray.from_arrays(pa.array([0, length], pa.int32()), pa.nulls(length))
    pq.write_table(pa.table({"a": values.cast(pa.list_(pa.int32()))}), path, compression="zstd")


_TYPES = """<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>
<Override PartName="/xl/workbook.xml"
 ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/>
<Override PartName="/xl/worksheets/sheet1.xml"
 ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/></Types>"""
_RELATIONS = """<?xml version="1.0"?><Relationships
 xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1"
 Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/{kind}"
 Target="{target}"/></Relationships>"""
_WORKBOOK = """<?xml version="1.0"?><workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"
 xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets><sheet name="one" sheetId="1"
 r:id="rId1"/></sheets></workbook>"""
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_SHEET = f'<?xml version="1.0"?><worksheet xmlns="{_MAIN}"><sheetData>'


def _workbook(path: Path, rows: Iterator[str]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        archive.writestr("[Content_Types].xml", _TYPES)
        archive.writestr("_rels/.rels", _RELATIONS.format(kind="officeDocument", target="xl/workbook.xml"))
        archive.writestr("xl/workbook.xml", _WORKBOOK)
        target = _RELATIONS.format(kind="worksheet", target="worksheets/sheet1.xml")
        archive.writestr("xl/_rels/workbook.xml.rels", target)
        with archive.open("xl/worksheets/sheet1.xml", "w", force_zip64=True) as out:
            out.write(_SHEET.encode())
            for row in rows:
                out.write(row.encode())
            out.write(b"</sheetData></worksheet>")


@bomb("corners.xlsx")
def two_cells_far_apart(path: Path, scale: float) -> None:
    far = int(1_048_576 * scale)
    rows = [f'<row r="{row}"><c r="{column}{row}"><v>1</v></c></row>' for column, row in (("A", 1), ("XFD", far))]
    _workbook(path, iter(rows))


@bomb("packed.xlsx")
def workbook_that_unpacks(path: Path, scale: float) -> None:
    text = "x" * MB
    cells = (f'<c r="A1" t="str"><v>{text}</v></c>' for _ in range(int(3000 * scale)))
    _workbook(path, (f'<row r="{number}">{cell}</row>' for number, cell in enumerate(cells, 1)))


@bomb("lying.xlsx")
def workbook_that_unpacks_and_lies(path: Path, scale: float) -> None:
    workbook_that_unpacks(path, scale)
    content = bytearray(path.read_bytes())
    place = content.rindex(b"PK\x01\x02")
    while content[place + 46 : place + 66] != b"xl/worksheets/sheet1":
        place = content.rindex(b"PK\x01\x02", 0, place)
    content[place + 24 : place + 28] = (1000).to_bytes(4, "little")
    path.write_bytes(content)


@bomb("view.sqlite")
def view_of_giant_cells(path: Path, scale: float) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (a)")
        connection.execute("INSERT INTO t VALUES (1)")
        size = int(900_000_000 * scale)
        connection.execute(f"CREATE VIEW v AS SELECT zeroblob({size}) AS a FROM t")
        connection.commit()


@bomb("cell.sqlite.gz")
def giant_cell_of_a_database(path: Path, scale: float) -> None:
    plain = path.with_suffix("")
    with closing(sqlite3.connect(plain)) as connection:
        connection.execute("CREATE TABLE t (a)")
        connection.execute("INSERT INTO t VALUES (1), (zeroblob(?))", [int(400_000_000 * scale)])
        connection.commit()
    with gzip.open(path, "wb", compresslevel=6) as out, plain.open("rb") as source:
        while piece := source.read(MB):
            out.write(piece)
    plain.unlink()


# Reading them ---------------------------------------------------------------------------------------------------------

_CHILD = """
import json, sys, time
from lakescope.build.plan import make_plan
from lakescope.build.scan import TableScan
from lakescope.sources.discover import discover
from lakescope.sources.io.limits import bounded_memory


def peak():
    # Not ru_maxrss, which a child inherits from its parent.
    return int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) * 1024


def read(path):
    found, problems = discover([path])
    plan = make_plan(found)
    problems, rows = problems + plan.problems, 0
    for unit in [unit for units in plan.bins for unit in units]:
        scan = TableScan(unit.table, 0)
        with bounded_memory():
            for _ in scan.scan(unit):
                if scan.full:
                    list(scan.take_tokens())
        problems += scan.part.problems
        rows += scan.part.rows
    return {"rows": rows, "problems": [[each.severity, each.code, each.detail] for each in problems]}


read(sys.argv[1])
before = peak()
for path in sys.argv[2:]:
    began = time.process_time()
    told = read(path)
    print(json.dumps({**told, "grown": peak() - before, "seconds": time.process_time() - began}), flush=True)
"""


@dataclass(frozen=True)
class Read:
    """What became of a file; ``grown`` is the memory that it, and those before it, took on top of an ordinary one."""

    grown: int
    seconds: float
    rows: int
    problems: list[list[str]]

    @property
    def codes(self) -> set[str]:
        return {code for _, code, _ in self.problems}


def read(paths: list[Path], folder: Path, *, timeout: float = 300, **environment: str) -> list[Read]:
    """Plan and scan files, one after the other, in a child process; fails if that does not survive one."""
    ordinary = folder / "ordinary.csv"
    ordinary.write_text("a,b\n1,2\n")
    ran = subprocess.run(
        [sys.executable, "-c", _CHILD, str(ordinary), *map(str, paths)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **environment},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    told: list[dict[str, Any]] = [json.loads(line) for line in ran.stdout.splitlines()]
    assert ran.returncode == 0, (paths[len(told)], ran.returncode, ran.stderr[-2000:])
    return [Read(**each) for each in told]


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(exist_ok=True, parents=True)
    for name in sys.argv[3:] or MAKERS:
        MAKERS[name](folder / name, float(sys.argv[2]))
        try:
            (result,) = read([folder / name], folder)
            problems = "; ".join(f"{code}: {detail[:110]}" for _, code, detail in result.problems)
            print(f"{name:20} {result.grown / MB:8.0f} MB {result.seconds:7.1f} s {problems}", flush=True)
        except (subprocess.TimeoutExpired, AssertionError) as error:
            print(f"{name:20} {error}", flush=True)
        finally:
            (folder / name).unlink()
