"""Puffin files, in which Iceberg keeps statistics of a table: distinct values of columns, without a scan.

A snapshot may name a statistics file whose blobs are Theta sketches (``apache-datasketches-theta-v1``), one of a column
each (https://iceberg.apache.org/puffin-spec/). Metadata is plain JSON: no package is needed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lakescope.errors import SourceError
from lakescope.sources.io import files
from lakescope.sources.io.limits import LONGEST, Unpacking
from lakescope.sources.lakehouses import table_formats
from lakescope.sources.lakehouses.table_formats import place_of
from lakescope.untrusted import parsed

THETA = "apache-datasketches-theta-v1"
_MAGIC = b"PFA1"
#: Size of the footer's payload, flags, and the magic that ends a file.
_TAIL = 12
_CODECS = {None: None, "lz4": "lz4", "zstd": "zstd"}


@dataclass(frozen=True, slots=True)
class StoredSketch:
    """A sketch of a column that the writer of a table has left, and of which snapshot it is."""

    column: str
    data: bytes
    ndv: int | None
    snapshot: int
    current: bool
    writer: str | None


def stored_sketches(uri: str, columns: Collection[str] | None = None) -> Iterator[StoredSketch]:
    """The Theta sketches of an Iceberg table: those of its current snapshot, or of the last one that has some.

    ``columns`` are those that are wanted; of others nothing is read.
    """
    body = table_formats.metadata_of(uri)
    names = {number: name for number, name in _names(body).items() if columns is None or name in columns}
    current = body.get("current-snapshot-id")
    when = {each["snapshot-id"]: each.get("timestamp-ms", 0) for each in body.get("snapshots", [])}
    known = [each for each in body.get("statistics", []) if each["snapshot-id"] in when]
    if not known:
        return
    chosen = max(known, key=lambda each: (each["snapshot-id"] == current, when[each["snapshot-id"]]))
    snapshot = int(chosen["snapshot-id"])
    place = place_of(chosen["statistics-path"], uri)
    if not files.is_below(place, uri):
        raise SourceError(f"the statistics of {files.display(uri)} lie outside of it: not read", code="table-format")
    with files.open_random(place) as source:
        footer = _footer(source, place)
        writer = footer.get("properties", {}).get("created-by")
        for blob in footer.get("blobs", []):
            fields = blob.get("fields", [])
            if blob["type"] == THETA and len(fields) == 1 and fields[0] in names:
                data, count = _content(source, blob, place), _count(blob.get("properties") or {})
                yield StoredSketch(names[fields[0]], data, count, snapshot, snapshot == current, writer)


def _count(properties: dict[str, Any]) -> int | None:
    """How many distinct values a writer has noted, if that is a number at all."""
    noted = properties.get("ndv")
    return int(noted) if isinstance(noted, str) and noted.isdecimal() and len(noted) < 20 else None


def _names(body: dict[str, Any]) -> dict[int, str]:
    """Columns of the current schema by number, fields of structs as ``parent.child``."""
    schemas = {each["schema-id"]: each for each in body.get("schemas", [])}
    schema = schemas.get(body.get("current-schema-id")) or body.get("schema") or {"fields": []}
    found: dict[int, str] = {}

    def add(fields: list[dict[str, Any]], above: str) -> None:
        for field in fields:
            found[field["id"]] = above + field["name"]
            if isinstance(field["type"], dict) and field["type"].get("type") == "struct":
                add(field["type"]["fields"], f"{above}{field['name']}.")

    add(schema["fields"], "")
    return found


def _footer(source: Any, uri: str) -> dict[str, Any]:
    """What a Puffin file says of itself: who wrote it, and where its blobs are."""
    size = source.size()
    tail = source.read_at(_TAIL, max(0, size - _TAIL))
    if size < 2 * len(_MAGIC) + _TAIL or source.read_at(4, 0) != _MAGIC or tail[-4:] != _MAGIC:
        raise SourceError(f"{files.display(uri)} is not a Puffin file or cut off", code="truncated")
    length = int.from_bytes(tail[:4], "little")
    if not 0 < length <= size - _TAIL - len(_MAGIC):
        raise SourceError(f"{files.display(uri)} is damaged: its footer is longer than the file", code="damaged")
    footer: dict[str, Any] = parsed(
        _unpacked(source, size - _TAIL - length, length, "lz4" if tail[4] & 1 else None, uri)
    )
    return footer


def _content(source: Any, blob: dict[str, Any], uri: str) -> bytes:
    """What a blob holds."""
    offset, length = int(blob["offset"]), int(blob["length"])
    if offset < 0 or length < 0 or offset + length > source.size():
        raise SourceError(f"{files.display(uri)} is damaged: a blob lies outside of it", code="damaged")
    return _unpacked(source, offset, length, blob.get("compression-codec"), uri)


def _unpacked(source: Any, offset: int, length: int, codec: str | None, uri: str) -> bytes:
    """Bytes of a file, unpacked; never more than one value may have."""
    if codec not in _CODECS:
        raise SourceError(f"{files.display(uri)} uses an unknown compression: {codec}", code="unknown-format")
    unpacking = Unpacking(LONGEST)
    if codec is None:
        unpacking.add(length)
        return bytes(source.read_at(length, offset))
    packed = pa.BufferReader(source.read_at(min(length, LONGEST), offset))
    return files.Stream(pa.CompressedInputStream(packed, _CODECS[codec]), unpacking=unpacking).read()
