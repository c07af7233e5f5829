"""Files of a lake that are replaced while it is read, by what is no file; run as a process that may be ended."""

from __future__ import annotations

import io
import json
import os
import socket
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from helpers import fuzzing
from helpers.corpus import typed
from lakescope.build import tasks
from lakescope.build.plan import make_plan, write_plan
from lakescope.build.scan import TablePart
from lakescope.sources.discover import discover

_ODS = "urn:oasis:names:tc:opendocument:xmlns:"
_ODS_CELL = '<table:table-cell office:value-type="string"><text:p>{}</text:p></table:table-cell>'
_ODS_MANIFEST = f'<manifest:manifest xmlns:manifest="{_ODS}manifest:1.0"/>'
_ODS_CONTENT = (
    f'<office:document-content xmlns:office="{_ODS}office:1.0" xmlns:table="{_ODS}table:1.0" '
    f'xmlns:text="{_ODS}text:1.0"><office:body><office:spreadsheet><table:table table:name="s">'
    "{}</table:table></office:spreadsheet></office:body></office:document-content>"
)


def _pipe(place: Path) -> None:
    os.mkfifo(place)


def _device(place: Path) -> None:
    place.symlink_to("/dev/zero")


def _loop(place: Path) -> None:
    place.symlink_to(place.name)


def _socket(place: Path) -> None:
    os.chdir(place.parent)  # names of sockets are short
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(place.name)


KINDS: dict[str, Callable[[Path], None]] = {"pipe": _pipe, "device": _device, "socket": _socket, "loop": _loop}


def write_lake(folder: Path) -> None:
    """A lake of every format that is read from files."""
    import deltalake

    folder.mkdir()
    for name, content in fuzzing.seeds().items():
        (folder / name).write_bytes(content)
    (folder / "a.ods").write_bytes(_ods())
    deltalake.write_deltalake(folder / "delta", typed(20))
    _write_iceberg(folder)


def _ods() -> bytes:
    """An OpenDocument sheet of two columns."""
    rows = "".join(
        "<table:table-row>" + "".join(_ODS_CELL.format(cell) for cell in row) + "</table:table-row>"
        for row in (("a", "b"), ("x", "1"), ("y", "2"))
    )
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("META-INF/manifest.xml", _ODS_MANIFEST)
        archive.writestr("content.xml", _ODS_CONTENT.format(rows))
    return buffer.getvalue()


def _write_iceberg(folder: Path) -> None:
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("c", uri="sqlite://", warehouse=f"file://{folder}")
    catalog.create_namespace("n")
    data = pa.table({"a": [1, 2, 3]})
    catalog.create_table("n.iceberg", data.schema, location=f"file://{folder}/iceberg").append(data)
    catalog.close()


def replace_all(folder: Path, kind: str) -> None:
    """Put something else in the place of every file below a folder."""
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        path.unlink()
        KINDS[kind](path)


def scan(lake: Path, kind: str, when: str) -> dict[str, Any]:
    """Plan and scan as a build does; files are replaced once they are ``found``, ``planned`` or ``scanned``.

    Returns the codes of errors of each table, and the contents that were noted.
    """
    found, problems = discover([str(lake)])
    errors: dict[str, list[str]] = {each.table: [] for each in found}
    if when == "found":
        replace_all(lake, kind)
    plan = make_plan(found)
    with tempfile.TemporaryDirectory() as staging:
        secrets = write_plan(plan.bins, staging)
        if when == "planned":
            replace_all(lake, kind)
        noted = tasks.content_of

        def replaced_first(unit: Any) -> str | None:
            place = Path(unit.uri)
            if place.is_file():
                place.unlink()
                KINDS[kind](place)
            return noted(unit)

        tasks.content_of = replaced_first if when == "scanned" else noted
        try:
            parts = _parts(staging, len(plan.bins), secrets)
        finally:
            tasks.content_of = noted
    for each in [*plan.problems, *(problem for part in parts for problem in part.problems), *problems]:
        if each.severity == "error":
            errors.setdefault(each.table.partition("::")[0], []).append(each.code)
    contents = [part.source["content"] for part in parts if part.source.get("content")]
    return {"errors": errors, "contents": contents, "rows": sum(part.rows for part in parts)}


def _parts(staging: str, bins: int, secrets: Any) -> list[TablePart]:
    rows = tasks.ScanBins(staging, 1, None, secrets)(iter([pa.record_batch([list(range(bins))], names=["id"])]))
    return [
        TablePart.from_json(payload)
        for batch in rows
        for part, payload in zip(batch.column("part").to_pylist(), batch.column("payload").to_pylist(), strict=True)
        if part == 0
    ]


def main() -> None:
    """Scan a lake for each kind of what is no file; the answers as JSON."""
    when, folder = sys.argv[1], Path(sys.argv[2])
    found = {}
    for kind in KINDS:
        write_lake(folder / kind)
        found[kind] = scan(folder / kind, kind, when)
    print(json.dumps(found))
