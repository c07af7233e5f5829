"""Puffin files, in which Iceberg keeps statistics of a table: distinct values of columns, without a scan.

A snapshot may name a statistics file whose blobs are Theta sketches (``apache-datasketches-theta-v1``), one of a column
each (https://iceberg.apache.org/puffin-spec/). Metadata is plain JSON: no package is needed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lakescope.errors import SourceError
from lakescope.sources import files, table_formats
from lakescope.sources.iceberg import place_of

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


def stored_sketches(uri: str) -> Iterator[StoredSketch]:
    """The Theta sketches of an Iceberg table: those of its current snapshot, or of the last one that has some."""
    body = table_formats.metadata_of(uri)
    names = _names(body)
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
    writer, blobs = _read(place)
    for kind, fields, properties, data in blobs:
        if kind == THETA and len(fields) == 1 and fields[0] in names:
            ndv = properties.get("ndv")
            count = int(ndv) if ndv is not None and ndv.isdigit() else None
            yield StoredSketch(names[fields[0]], data, count, snapshot, snapshot == current, writer)


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


def _read(uri: str) -> tuple[str | None, list[tuple[str, list[int], dict[str, str], bytes]]]:
    """Who wrote a Puffin file, and its blobs: type, columns, properties, content."""
    with files.open_random(uri) as source:
        size = source.size()
        tail = source.read_at(_TAIL, max(0, size - _TAIL))
        if size < 2 * len(_MAGIC) + _TAIL or source.read_at(4, 0) != _MAGIC or tail[-4:] != _MAGIC:
            raise SourceError(f"{files.display(uri)} is not a Puffin file or cut off", code="truncated")
        length = int.from_bytes(tail[:4], "little")
        if not 0 < length <= size - _TAIL - len(_MAGIC):
            raise SourceError(f"{files.display(uri)} is damaged: its footer is longer than the file", code="damaged")
        payload = source.read_at(length, size - _TAIL - length)
        footer = json.loads(_unpacked(payload, "lz4" if tail[4] & 1 else None, uri))
        blobs = []
        for blob in footer.get("blobs", []):
            if blob["offset"] < 0 or blob["length"] < 0 or blob["offset"] + blob["length"] > size:
                raise SourceError(f"{files.display(uri)} is damaged: a blob lies outside of it", code="damaged")
            raw = source.read_at(blob["length"], blob["offset"])
            content = _unpacked(raw, blob.get("compression-codec"), uri)
            blobs.append((blob["type"], blob.get("fields", []), blob.get("properties") or {}, content))
        return footer.get("properties", {}).get("created-by"), blobs


def _unpacked(data: bytes, codec: str | None, uri: str) -> bytes:
    if codec not in _CODECS:
        raise SourceError(f"{files.display(uri)} uses an unknown compression: {codec}", code="unknown-format")
    if codec is None:
        return bytes(data)
    return bytes(pa.CompressedInputStream(pa.BufferReader(data), _CODECS[codec]).read())
