"""Files of flat arrays that queries map into memory: a short header, then one array after the other.

Layout: magic ``LKA1``, crc32 and length of the header, header (JSON: name, type and number of items of each array),
then the arrays, each at a multiple of 64 bytes, in little-endian order. Written in bounded memory: arrays grow in
files of their own and are put together at the end.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
import uuid
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from lakescope.array_types import I64
from lakescope.errors import IndexDamaged
from lakescope.store import disk
from lakescope.store.manifest import SegmentFile, file_checksum

_MAGIC = b"LKA1"
_HEAD = struct.Struct("<4sII")
#: Bytes that an array begins at a multiple of, a line of a cache. A part of the format.
_ALIGNMENT = 64
_COPY_BYTES = 1 << 22

Array = npt.NDArray[Any]
Arrays = dict[str, Array]
#: Bytes of a file that hold its head, whatever arrays it has.
HEAD_BYTES = 4096


class ArrayFile:
    """Writes one file of arrays, each of which may be appended to until it is closed."""

    def __init__(self, staging: str | os.PathLike[str], kind: str, fields: Mapping[str, Any]) -> None:
        self.kind = kind
        self.name = f"{kind}-{uuid.uuid4().hex[:12]}.bin"
        self._path = Path(staging) / self.name
        self._types = {name: np.dtype(each).newbyteorder("<") for name, each in fields.items()}
        self._counts = dict.fromkeys(self._types, 0)
        self._drafts: dict[str, IO[bytes]] = {}

    def append(self, **arrays: Array) -> None:
        """Append items to some of the arrays."""
        for name, array in arrays.items():
            draft = self._drafts.get(name)
            if draft is None:
                draft = self._drafts[name] = disk.scratch(self._draft(name))
            draft.write(np.ascontiguousarray(array, self._types[name]).data)
            self._counts[name] += array.size

    def count(self, name: str) -> int:
        """Number of items of an array so far."""
        return self._counts[name]

    def _draft(self, name: str) -> Path:
        return self._path.with_suffix(f".{name}")

    def close(self) -> SegmentFile:
        """Put the arrays together and make the file durable."""
        header = json.dumps([[name, kind.str, self._counts[name]] for name, kind in self._types.items()]).encode()
        with disk.create(self._path) as out:
            out.write(_HEAD.pack(_MAGIC, zlib.crc32(header), len(header)) + header)
            for name in self._types:
                out.write(bytes(-out.tell() % _ALIGNMENT))
                draft = self._drafts.get(name)
                if draft is not None:
                    draft.seek(0)
                    while piece := draft.read(_COPY_BYTES):
                        out.write(piece)
            disk.sync(out)
        self.discard()
        rows = next(iter(self._counts.values()))
        return SegmentFile(self.name, self.kind, rows, self._path.stat().st_size, file_checksum(self._path))

    def discard(self) -> None:
        """Remove what is not put together."""
        for name, draft in self._drafts.items():
            with contextlib.suppress(OSError):  # what a full disk does not take is not wanted any more
                draft.close()
            disk.remove(self._draft(name))
        self._drafts = {}


class PartArrays(Arrays):
    """The arrays of a file of which only parts are here: one that is asked for by name is fetched whole.

    ``need`` fetches ranges of bytes of the file.
    """

    def __init__(self, arrays: dict[str, tuple[int, Array]], need: Callable[[I64, I64], None]) -> None:
        super().__init__({name: array for name, (_, array) in arrays.items()})
        self._begins = {name: begin for name, (begin, _) in arrays.items()}
        self._need = need

    def __getitem__(self, name: str) -> Array:
        array = super().__getitem__(name)
        self.need(name, np.zeros(1, np.int64), np.array([array.size]))
        return array

    def need(self, name: str, begins: I64, ends: I64) -> None:
        """Have some ranges of the items of an array here."""
        size = super().__getitem__(name).itemsize
        self._need(self._begins[name] + begins * size, self._begins[name] + ends * size)


def lazily(arrays: Arrays, name: str) -> Array:
    """An array of which only what was needed before may be looked at."""
    return dict.__getitem__(arrays, name)


def need(arrays: Arrays, name: str, begins: I64, ends: I64) -> None:
    """Have ranges of an array at hand before they are looked at; those of local files always are."""
    if isinstance(arrays, PartArrays):
        arrays.need(name, begins, ends)


def read_arrays(mapped: Any, name: str) -> Arrays:
    """The arrays of a file that lies in memory; ``name`` is what errors call it. Nothing is copied."""
    return {field: array for field, (_, array) in located_arrays(mapped, name).items()}


def located_arrays(mapped: Any, name: str) -> dict[str, tuple[int, Array]]:
    """The arrays of a file that lies in memory, each with its place within the file; nothing is copied."""
    view = memoryview(mapped)
    hint = "run `lakescope verify`, then `lakescope repair`"
    if len(view) < _HEAD.size:
        raise IndexDamaged(f"{name} is damaged: {len(view)} bytes", hint=hint)
    magic, crc, length = _HEAD.unpack_from(view)
    header = bytes(view[_HEAD.size : _HEAD.size + length])
    if magic != _MAGIC or zlib.crc32(header) != crc:
        raise IndexDamaged(f"{name} is damaged: its header does not match its checksum", hint=hint)
    arrays: dict[str, tuple[int, Array]] = {}
    at = _HEAD.size + length
    for field, kind, count in json.loads(header):
        at += -at % _ALIGNMENT
        size = np.dtype(kind).itemsize * count
        if at + size > len(view):
            raise IndexDamaged(f"{name} is damaged: it ends within {field}", hint=hint)
        arrays[field] = at, np.frombuffer(view[at : at + size], kind)
        at += size
    return arrays
