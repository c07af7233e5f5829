"""An index that lies elsewhere: on object storage or a web server, read by ranges, kept in blocks on this disk.

Every file of an index becomes a sparse local file of the same size, which is mapped like any other. Blocks of it are
fetched before they are looked at: whoever knows which parts of a file a question needs says so, everything else gets
the whole file. Files of an index never change, so a block that is here is right for ever; a file of hashes beside each
says which are. A block is compared with its hash when a process first uses it, so that one that was damaged, or half
written by a process that died, is fetched again. Processes share the blocks: two that fetch the same one write the
same bytes.
"""

from __future__ import annotations

import mmap
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import xxhash

from lakescope.array_types import I64
from lakescope.errors import BadRequest, IndexDamaged, LakescopeError
from lakescope.once import once
from lakescope.sources.io import files
from lakescope.store.cache import blocks_bytes, blocks_folder, trim
from lakescope.store.manifest import MANIFEST, Manifest, SegmentFile
from lakescope.store.mapped import MappedFile, MappedFiles, recalled

#: Bytes of a block: what is fetched at least. A look-up of a value reads few bytes, a request takes as long as many.
BLOCK = 1 << 15


@dataclass(frozen=True, slots=True)
class RemoteTuning:
    """How files of a remote index are fetched."""

    #: Blocks that nobody asked for, between two that are wanted, that are fetched along instead of asking twice. Not
    #: measured: a request takes as long as some blocks.
    gap: int = 3
    #: Blocks of a request, at most. Not measured: 8 MB.
    run: int = 256
    #: Requests on their way at the same time. Not measured: what stores of objects bear easily.
    at_once: int = 16
    #: Bytes fetched after which old blocks of others are looked for to be removed. Not measured: a fortieth of the
    #: cache.
    trim_every: int = 256 << 20


REMOTE = RemoteTuning()


class Uri:
    """Where an index lies, as it is shown: without what a URI may hold of credentials."""

    def __init__(self, location: str) -> None:
        self.location = location

    def __str__(self) -> str:
        return files.display(self.location)

    def __truediv__(self, path: str) -> Uri:
        return Uri(files.child(self.location, path))


@dataclass(slots=True)
class Traffic:
    """What was fetched so far: requests and bytes."""

    requests: int = 0
    bytes: int = 0

    def since(self, before: Traffic) -> Traffic:
        """What was fetched since then."""
        return Traffic(self.requests - before.requests, self.bytes - before.bytes)

    def copy(self) -> Traffic:
        return Traffic(self.requests, self.bytes)


class CachedFile:
    """One file of a remote index as far as it was fetched."""

    def __init__(
        self, uri: Uri, folder: Path, file: SegmentFile, count: Callable[[int], None], mapped: MappedFiles
    ) -> None:
        self.uri, self.file = uri, file
        self._count = count
        self._lock = threading.Lock()
        self._data = folder / f"{file.checksum}-{file.size}.data"
        blocks = -(-file.size // BLOCK)
        self._present = np.zeros(blocks, np.bool_)
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._handle = os.open(self._data, os.O_RDWR | os.O_CREAT, 0o600)
            os.ftruncate(self._handle, file.size)
            # Shared: what is fetched later must be seen.
            shared = mmap.mmap(self._handle, file.size, access=mmap.ACCESS_READ)
            self.buffer = mapped.use(MappedFile(self._data, pa.py_buffer(shared)))
            self._hashes = self._opened_hashes(blocks)
        except OSError as error:
            raise _unwritable(folder, error) from error

    def __del__(self) -> None:
        for name in ("_handle", "_hashes"):
            if hasattr(self, name):
                os.close(getattr(self, name))

    def _opened_hashes(self, blocks: int) -> int:
        """The file with the hash of every block that is here, 0 of the others; what is written other processes see.

        Read and written, not mapped: whoever cuts it off has blocks fetched again, and does no harm.
        """
        handle = os.open(self._data.with_suffix(".blocks"), os.O_RDWR | os.O_CREAT, 0o600)
        os.ftruncate(handle, 8 * blocks)
        os.utime(handle)
        return handle

    @property
    def name(self) -> str:
        """What the file is known by in the cache."""
        return self._data.stem

    def whole(self) -> pa.Buffer:
        """All of the file."""
        if not self._present.all():
            self.need(np.zeros(1, np.int64), np.array([self.file.size]))
        return self.buffer

    def need(self, begins: I64, ends: I64) -> None:
        """Have some ranges of bytes here."""
        wanted = _blocks(begins, ends)
        wanted = wanted[~self._present[wanted]]
        if not wanted.size:
            return
        with self._lock:
            missing = [number for number in wanted.tolist() if not self._is_here(number)]
            if missing:
                self._fetch(missing)
            self._present[wanted] = True

    def forget(self) -> None:
        """Fetch all of it again when it is next needed."""
        os.ftruncate(self._hashes, 0)
        self._present[:] = False

    def _bytes(self, number: int) -> memoryview:
        return memoryview(self.buffer)[number * BLOCK : (number + 1) * BLOCK]

    def _is_here(self, number: int) -> bool:
        known = os.pread(self._hashes, 8, 8 * number)
        return any(known) and _hash(self._bytes(number)).to_bytes(8, sys.byteorder) == known

    def _fetch(self, missing: list[int]) -> None:
        runs = list(_runs(missing))
        try:
            if len(runs) == 1:
                self._fetch_run(runs[0])
            else:
                with ThreadPoolExecutor(REMOTE.at_once) as threads:
                    list(threads.map(self._fetch_run, runs))
        except LakescopeError:
            raise
        except FileNotFoundError as error:
            hint = "it was replaced meanwhile: open it again; else push the index again"
            raise IndexDamaged(f"{self.uri} is missing", hint=hint) from error
        except OSError as error:
            raise _unread(self.uri, error) from error

    def _fetch_run(self, run: range) -> None:
        begin, end = run.start * BLOCK, min(run.stop * BLOCK, self.file.size)
        content = memoryview(self._source.read_at(end - begin, begin))
        if len(content) != end - begin:
            hint = "push the index again"
            raise IndexDamaged(f"{self.uri} is damaged: it ends before {end:,} bytes", hint=hint)
        self._count(len(content))
        hashes = (_hash(content[at : at + BLOCK]) for at in range(0, len(content), BLOCK))
        try:
            # The bytes first, then the word that they are there.
            os.pwrite(self._handle, content, begin)
            os.pwrite(self._hashes, b"".join(each.to_bytes(8, sys.byteorder) for each in hashes), 8 * run.start)
        except OSError as error:
            raise _unwritable(self._data.parent, error) from error

    @once
    def _source(self) -> Any:
        self._count(0)
        return files.open_random(self.uri.location)

    def opened(self) -> pa.PythonFile:
        """The file for readers that seek in it: each range is fetched when it is read."""
        return pa.PythonFile(_Reader(self), mode="r")


class _Reader:
    """A file as Arrow reads it."""

    closed = False

    def __init__(self, cached: CachedFile) -> None:
        self._cached = cached
        self._at = 0

    def read(self, size: int = -1) -> memoryview:
        begin = self._at
        end = self._cached.file.size if size < 0 else min(self._cached.file.size, begin + size)
        self._cached.need(np.array([begin]), np.array([end]))
        self._at = end
        return memoryview(self._cached.buffer)[begin:end]

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset + (0, self._at, self._cached.file.size)[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        self.closed = True


class RemoteFiles(Mapping[str, pa.Buffer]):
    """The files of a remote index by their path: asked for as such, they are fetched whole."""

    def __init__(self, path: Uri) -> None:
        self._path = path
        self._folder = blocks_folder() / f"{_hash(str(path).encode()):016x}"
        self._files: dict[str, SegmentFile] = {}
        self._opened: dict[str, CachedFile] = {}
        self._lock = threading.Lock()
        self._trimmed = 0
        self.traffic = Traffic()
        self.mapped = MappedFiles()

    def manifest(self) -> Manifest:
        """The manifest as it is published now."""
        place = self._path / MANIFEST
        try:
            with files.open_stream(place.location) as stream:
                content = stream.read()
        except FileNotFoundError as error:
            hint = "give what `lakescope push` wrote to"
            raise BadRequest(f"there is no index at {self._path}", hint=hint) from error
        except (OSError, ValueError, ImportError) as error:
            raise _unread(place, error) from error
        self._count(len(content))
        found = Manifest.parse(str(place), content.decode("utf-8", "replace"))
        self._files = {file.path: file for file in found.files}
        trim(self._folder.parent, blocks_bytes(), {f"{file.checksum}-{file.size}" for file in found.files})
        return found

    def file(self, path: str) -> CachedFile:
        """A file, as far as it was fetched."""
        with self._lock:
            if path not in self._opened:
                file = self._files[path]
                self._opened[path] = CachedFile(self._path / path, self._folder, file, self._count, self.mapped)
            return self._opened[path]

    @property
    def folder(self) -> Path:
        """Where what is found out about the index may be kept."""
        return self._folder

    def recalled(self, path: Path) -> pa.Buffer:
        """A file that is kept beside the blocks."""
        return recalled(path, self.mapped)

    def _count(self, size: int) -> None:
        with self._lock:
            self.traffic.requests += 1
            self.traffic.bytes += size
            due = self.traffic.bytes - self._trimmed > REMOTE.trim_every
            if due:
                self._trimmed = self.traffic.bytes
            names = {each.name for each in self._opened.values()} if due else set[str]()
        if due:
            trim(self._folder.parent, blocks_bytes(), names)

    def __getitem__(self, path: str) -> pa.Buffer:
        return self.file(path).whole()

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)


def _hash(content: bytes | memoryview) -> int:
    return xxhash.xxh64_intdigest(content) or 1


def _blocks(begins: I64, ends: I64) -> I64:
    """The numbers of the blocks that ranges of bytes lie in, in order."""
    filled = ends > begins
    first, last = begins[filled] // BLOCK, (ends[filled] - 1) // BLOCK
    if first.size == 1:
        return np.arange(first[0], last[0] + 1)
    lengths = last - first + 1
    reached = np.cumsum(lengths)
    every = np.arange(int(reached[-1]) if reached.size else 0) + np.repeat(first - (reached - lengths), lengths)
    return np.unique(every)


def _runs(numbers: list[int]) -> Iterator[range]:
    """Blocks as ranges to ask for at once: neighbours, and what is nearly so."""
    begin = last = numbers[0]
    for number in numbers[1:]:
        if number - last > REMOTE.gap + 1 or number - begin >= REMOTE.run:
            yield range(begin, last + 1)
            begin = number
        last = number
    yield range(begin, last + 1)


def _unread(place: Uri, error: Exception) -> LakescopeError:
    hint = "check the address, the network and your credentials; what was fetched before is kept"
    return LakescopeError(f"cannot read {place}: {files.reason_of(error)}", hint=hint)


def _unwritable(folder: Path, error: OSError) -> BadRequest:
    hint = "point LAKESCOPE_CACHE at a folder of this machine with room"
    return BadRequest(f"cannot keep blocks in {folder}: {error.strerror or error}", hint=hint)
