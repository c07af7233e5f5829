"""Bytes of a state: a short self-describing header, then flat arrays. No pickles, nothing executed on reading.

Layout: magic ``LKS1``, crc32 of the rest, length of the header, header (JSON: name, version, one entry per field),
then the arrays one after the other in little-endian order.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from lakescope.errors import IndexDamaged

_MAGIC = b"LKS1"
_HEAD = struct.Struct("<4sII")

Fields = dict[str, Any]


def pack(name: str, version: int, fields: Mapping[str, Any]) -> bytes:
    """Encode numpy arrays, bytes, numbers, strings and None under their names."""
    header: list[list[Any]] = []
    blocks: list[bytes] = []
    for key, value in fields.items():
        if isinstance(value, np.ndarray):
            block = np.ascontiguousarray(value).tobytes()
            header.append([key, value.dtype.str, len(block)])
            blocks.append(block)
        elif isinstance(value, bytes):
            header.append([key, "bytes", len(value)])
            blocks.append(value)
        else:
            header.append([key, "json", value])
    encoded = json.dumps([name, version, header], separators=(",", ":")).encode()
    body = b"".join([encoded, *blocks])
    return _HEAD.pack(_MAGIC, zlib.crc32(body), len(encoded)) + body


def unpack(data: bytes | memoryview, name: str, version: int) -> Fields:
    """Decode what :func:`pack` wrote, refusing other names, other versions and damaged bytes by name."""
    view = memoryview(data)
    if len(view) < _HEAD.size:
        raise IndexDamaged(f"{name} state is cut off: {len(view)} bytes")
    magic, crc, length = _HEAD.unpack_from(view)
    body = view[_HEAD.size :]
    if magic != _MAGIC or zlib.crc32(body) != crc:
        raise IndexDamaged(f"{name} state is damaged: its checksum does not match")
    found, found_version, header = json.loads(bytes(body[:length]))
    if found != name or found_version != version:
        raise IndexDamaged(f"expected a {name} state of version {version}, found {found} version {found_version}")
    fields: Fields = {}
    at = length
    for key, kind, value in header:
        if kind == "json":
            fields[key] = value
            continue
        block = body[at : at + value]
        at += value
        fields[key] = bytes(block) if kind == "bytes" else np.frombuffer(block, dtype=kind)
    return fields
