"""The one seam to file systems: a local path, ``s3://``, ``gs://``, ``hdfs://`` or anything fsspec knows.

Local paths never touch more than the standard library and pyarrow. Remote addresses are URIs: their path is
percent-encoded, their query carries options (``?endpoint_override=host:9000&scheme=http``), and both travel inside a
work unit, so a worker needs nothing else to open its piece. A URI may therefore hold credentials: whatever is shown to
a person goes through :func:`display` or :func:`reason_of`, which ask :mod:`lakescope.sources.io.redact`.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, cast
from urllib.parse import parse_qsl, quote, unquote, unquote_to_bytes, urlencode, urlsplit

import pyarrow as pa

from lakescope.errors import SourceError
from lakescope.sources.databases import postgres_uri
from lakescope.sources.io.limits import Unbelievable, Unpacking
from lakescope.sources.io.redact import USER, scrub, without_secrets

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]+)://")
_ALIASES = {"s3a": "s3", "s3n": "s3", "gcs": "gs"}
_WEB = ("http", "https")
_COPY_BYTES = 1 << 20
_WRITTEN = 8 << 20
#: Object stores: what looks like a folder there is none, and need not be made.
_FLAT = ("s3", "gs", "abfs", "abfss", "az")
#: Bytes asked of a compressed stream at a time: what a file that was cut off loses at most.
_PIECE = 4 * 1024
_REASON_CHARACTERS = 300
#: Paths that :func:`as_local` gives for files, with the name of the file; and those of files that are open.
_STAND_IN = re.compile(r"/[^\s'\"]*/lakescope-[a-z0-9_]{8}/([^\s'\"]+)|/dev/fd/\d+")
_NOT_REGULAR = "not a regular file but a directory, pipe, socket or device"
#: What the system says of a socket, and of a link that leads to itself.
_NO_FILE = {errno.ENXIO: _NOT_REGULAR, errno.ELOOP: "not a file but a link that leads to itself"}


@dataclass(frozen=True, slots=True)
class Entry:
    """A file as a listing shows it; ``path`` is relative to what was listed, with ``/`` between its parts."""

    uri: str
    path: str
    size: int
    modified: float


@dataclass(frozen=True, slots=True)
class _Address:
    """A remote URI taken apart; ``path`` is decoded and has no slash at its ends."""

    scheme: str
    netloc: str
    path: str
    query: str

    def below(self, path: str) -> str:
        """URI of a path (decoded) below this one, with the same options."""
        whole = "/".join(part for part in (self.path, path) if part)
        query = f"?{self.query}" if self.query else ""
        return f"{self.scheme}://{self.netloc}/{quote(whole, errors='surrogateescape')}{query}"


class NotRegular(OSError):
    """What should be a file is a directory, a pipe, a socket, a device or a link to itself."""


class Stream:
    """A file read from its start. It gives as many bytes as it is asked for, fewer only where the file ends.

    Damage is told late: all that could be read is given first, the error is raised when there is nothing else to give.
    ``source`` is anything with ``readinto``, asked for ``piece`` bytes at a time if that is given, since whatever is in
    the piece that fails is lost. ``unpacking`` knows how much is believed.
    """

    def __init__(self, source: Any, piece: int | None = None, unpacking: Unpacking | None = None) -> None:
        self._source = source
        self._piece = piece
        self._unpacking = unpacking
        self.failure: Exception | None = None

    def readinto(self, room: memoryview) -> int:
        """Fill the room as far as there is something to fill it with; returns how many bytes were filled."""
        filled = 0
        while filled < len(room) and self.failure is None:
            end = len(room) if self._piece is None else filled + self._piece
            try:
                got = self._source.readinto(room[filled:end])
                if self._unpacking is not None:
                    self._unpacking.add(got)
            except (OSError, EOFError) as error:
                self.failure = error
                break
            if not got:
                break
            filled += got
        if not filled and self.failure is not None:
            raise self.failure
        return filled

    def read(self, size: int = -1, /) -> bytes:
        """The next bytes, or all that are left."""
        if size < 0:
            return b"".join(iter(lambda: self.read(_COPY_BYTES), b""))
        room = bytearray(size)
        filled = self.readinto(memoryview(room))
        return bytes(memoryview(room)[:filled])

    def seek(self, offset: int) -> None:
        """Go to a place; a compressed file cannot."""
        self._source.seek(offset)

    def close(self) -> None:
        self._source.close()

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def local_path(location: str) -> str | None:
    """The local path a location means, or None when it is remote."""
    match = _SCHEME.match(location)
    if match is None:
        return location
    if match[1].lower() != "file":
        return None
    # Not urlsplit: '?' and '#' are ordinary characters in the name of a file, and its bytes need not be UTF-8.
    rest = location[match.end() :]
    return os.fsdecode(unquote_to_bytes(os.fsencode(rest[max(0, rest.find("/")) :])))


def readable(text: str) -> str:
    r"""Text that can be printed and stored: undecodable bytes of a file name become escapes (``caf\xe9``)."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def reason_of(error: BaseException) -> str:
    """What an error of a library says, in one line and without the credentials it may name.

    Nor the link or copy that stood for a file, which is called otherwise every time.
    """
    lines = _STAND_IN.sub(lambda match: match[1] or "the file", scrub(str(error))).strip().splitlines()
    return readable(lines[0][:_REASON_CHARACTERS]) if lines else type(error).__name__


def cut_off(table: str, error: BaseException, rows: int) -> SourceError:
    """The error for a table that cannot be read to its end, of which ``rows`` were read."""
    beyond, hint = "", "the file may be cut off or not be compressed as its name says"
    if rows:
        beyond, hint = f" beyond row {rows}", "the rows before are kept"
    code = "archive-bomb" if isinstance(error, Unbelievable) else "truncated"
    return SourceError(f"{table} cannot be read{beyond}: {reason_of(error)}", hint=hint, code=code)


def display(location: str) -> str:
    """How a location may be shown to a person."""
    if postgres_uri.is_postgres(location):
        return readable(postgres_uri.shown(location))
    return readable(location if local_path(location) is not None else without_secrets(location))


def path_of(location: str) -> str:
    """Decoded path of a location, to take names from; the host or bucket when there is no path."""
    path = local_path(location)
    if path is not None:
        return path
    address = _split(without_secrets(location))
    return address.path or address.netloc.partition("@")[0]


def relative(uri: str, root: str) -> str:
    """Decoded path of a file below a directory that :func:`listing` or a local walk found it in."""
    path = local_path(root)
    if path is not None:
        return Path(uri).relative_to(path).as_posix()
    return _split(uri).path[len(_split(root).path) :].lstrip("/")


def is_below(location: str, root: str) -> bool:
    """Whether a location lies inside a directory, wherever links in it and ``..`` lead."""
    path, folder = local_path(location), local_path(root)
    if path is not None and folder is not None:
        return Path(path).resolve().is_relative_to(Path(folder).resolve())
    if path is not None or folder is not None:
        return False
    there, here = _split(without_secrets(location)), _split(without_secrets(root))
    same = (there.scheme, there.netloc) == (here.scheme, here.netloc)
    return same and ".." not in there.path.split("/") and f"{there.path}/".startswith(f"{here.path}/".lstrip("/"))


def child(location: str, path: str) -> str:
    """Location of ``path`` (decoded) below a location."""
    local = local_path(location)
    if local is not None:
        return str(Path(local, path))
    return _split(location).below(path)


def beside(location: str, ending: str) -> str:
    """Location of a file beside another one, whose name has an ending more."""
    local = local_path(location)
    if local is not None:
        return local + ending
    address = _split(location)
    return replace(address, path=address.path + ending).below("")


def find(location: str) -> Entry | None:
    """The file at a location, or None when it is a directory. Raises FileNotFoundError when there is nothing."""
    path = local_path(location)
    if path is not None:
        info = Path(path).stat()
        return None if stat.S_ISDIR(info.st_mode) else Entry(path, Path(path).name, info.st_size, info.st_mtime)
    filesystem, place = _open_filesystem(location)
    found = filesystem.get_file_info(place)
    kind = found.type.name
    if kind == "NotFound":
        raise FileNotFoundError(f"there is nothing at {display(location)}")
    if kind == "Directory":
        return None
    address = _split(location)
    return Entry(address.below(""), address.path.rpartition("/")[2], found.size or 0, _mtime(found))


def listing(location: str) -> list[Entry]:
    """All files below a remote directory, in the order of their paths."""
    from pyarrow.fs import FileSelector, FileType

    filesystem, place = _open_filesystem(location)
    address = _split(location)
    above = len(place.rstrip("/")) + 1 if place.strip("/") else len(place)
    entries = []
    for found in filesystem.get_file_info(FileSelector(place, recursive=True)):
        if found.type == FileType.File:
            path = found.path[above:]
            entries.append(Entry(address.below(path), path, found.size or 0, _mtime(found)))
    return sorted(entries, key=lambda entry: entry.path)


def listing_if_any(location: str) -> list[Entry]:
    """All files below a directory, wherever it lies; nothing if there is no such directory."""
    try:
        return listing(location)
    except FileNotFoundError:
        return []


def write(location: str, content: bytes | memoryview) -> None:
    """Write a remote file; on object storage it is there whole or not at all."""
    filesystem, place = _open_filesystem(location)
    if _split(location).scheme not in _FLAT:
        filesystem.create_dir(place.rpartition("/")[0], recursive=True)
    with filesystem.open_output_stream(place) as stream:
        view = memoryview(content)
        for begin in range(0, len(view), _WRITTEN):
            stream.write(view[begin : begin + _WRITTEN])


def remove(location: str) -> None:
    """Remove a remote file."""
    filesystem, place = _open_filesystem(location)
    filesystem.delete_file(place)


def open_stream(location: str, compression: str | None = None, *, on_disk: bool = False) -> Stream:
    """Open for reading from the start; seekable unless compressed. ``compression``: ``gzip``, ``bz2`` or ``zstd``.

    ``on_disk``: what is unpacked will lie on a disk, which has less room than a stream.
    """
    path = local_path(location)
    if compression is not None:
        packed = open_random(location)
        unpacking = Unpacking.of(packed.size(), on_disk=on_disk)
        return Stream(pa.CompressedInputStream(packed, compression), _PIECE, unpacking)
    return Stream(open_random(location) if path is None else open_local(path, buffering=0))


def open_local(path: str, buffering: int = -1) -> BinaryIO:
    """Open a local file to read; refuses whatever is no regular file, as it is opened.

    Every file of a lake is opened here, in :func:`open_random` or in :func:`as_local`: it may have been replaced since
    it was found, by a pipe that nobody writes to or a device that never ends.
    """
    return open(path, "rb", buffering=buffering, opener=_regular)


def open_random(location: str, compression: str | None = None, *, mapped: bool = False) -> Any:
    """Open as a pyarrow file with random access; a compressed one is unpacked to a nameless temporary file first.

    ``mapped`` maps a local file into memory: for formats that are used in place, where one piece may exceed memory.
    """
    if compression is not None:
        return _unpacked(location, compression)
    path = local_path(location)
    if path is None:
        filesystem, place = _open_filesystem(location)
        return filesystem.open_input_file(place)
    with open_local(path, buffering=0) as file:
        same = _same_file(file.fileno())
        if same is None and not is_unicode(path):
            return pa.PythonFile(open_local(path), mode="r")
        size = os.fstat(file.fileno()).st_size
        return pa.memory_map(same or path) if mapped and size else pa.OSFile(same or path)


@contextmanager
def as_local(location: str, compression: str | None = None, *, beside: Sequence[str] = ()) -> Iterator[str]:
    """A local path for a library that opens files by itself: it leads to the file, or to a temporary copy.

    ``beside`` are endings of other files that the library opens where they lie beside this one. Without any it gets a
    link to what was opened here, whatever takes the place of the file; a library that follows links to their end by
    itself, or finds such files, comes a moment after this look at them.
    """
    path = local_path(location)
    if path is None or compression is not None:
        with _scratch() as folder:
            copy = folder / "copy"
            with open_stream(location, compression, on_disk=True) as source, copy.open("wb") as target:
                shutil.copyfileobj(source, target, _COPY_BYTES)
            yield str(copy)
        return
    handle = _regular(path, os.O_RDONLY)
    try:
        with _scratch() as folder:
            yield _leading_to(path, handle, folder, beside)
    finally:
        os.close(handle)


def _leading_to(path: str, handle: int, folder: Path, beside: Sequence[str]) -> str:
    """A path for a file that is open: a link to that, or its own if others lie beside it that are to be found."""
    others = [other for ending in beside if (other := Path(f"{Path(path).resolve()}{ending}")).exists()]
    for other in others:
        _check_regular(other.stat(), f"{other.name} beside it is ")
    same = _same_file(handle)
    if (same is None or others) and is_unicode(path):
        return path
    # Databases are called like their files, in views for one.
    link = folder / (Path(path).name if is_unicode(path) else "copy")
    link.symlink_to(same or Path(path).absolute())
    return str(link)


@contextmanager
def _scratch() -> Iterator[Path]:
    """A temporary folder. Unlike that of tempfile it may be let go of by whoever stops in the middle of a table."""
    folder = tempfile.mkdtemp(prefix="lakescope-")
    try:
        yield Path(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def read_head(location: str, size: int, compression: str | None = None) -> bytes:
    """The first bytes of a file, fewer only where it ends."""
    with open_stream(location, compression) as stream:
        return stream.read(size)


def _regular(path: str, flags: int) -> int:
    """Open a file, not what may have taken its place since it was found: a pipe would block, a device never end."""
    try:
        handle = os.open(path, flags | os.O_NONBLOCK)
    except OSError as error:
        if error.errno in _NO_FILE:
            raise NotRegular(_NO_FILE[error.errno]) from error
        raise
    try:
        _check_regular(os.fstat(handle))
    except OSError:
        os.close(handle)
        raise
    return handle


def check_regular(location: str) -> None:
    """Refuse a local place that is no regular file."""
    path = local_path(location)
    if path is not None:
        _check_regular(Path(path).stat())


def _check_regular(found: os.stat_result, what: str = "") -> None:
    if not stat.S_ISREG(found.st_mode):
        raise NotRegular(what + _NOT_REGULAR)


def _same_file(handle: int) -> str | None:
    """A path that leads to a file that is open, also when another one has taken its place; None where there is none."""
    path = f"/dev/fd/{handle}"
    return path if Path(path).exists() else None


def is_unicode(path: str) -> bool:
    """Whether a path is valid Unicode; libraries written in C++ refuse the others."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _unpacked(location: str, compression: str) -> Any:
    target = tempfile.TemporaryFile(prefix="lakescope-")  # noqa: SIM115 - closed with the file returned
    with open_stream(location, compression, on_disk=True) as source:
        shutil.copyfileobj(source, target, _COPY_BYTES)
    target.seek(0)
    return pa.PythonFile(target, mode="r")


def _split(uri: str) -> _Address:
    match = _SCHEME.match(uri)
    if match is None:
        raise ValueError(f"not a URI: {display(uri)}")
    scheme = match[1].lower()
    # Not urlsplit: a '#' is an ordinary character in the name of an object.
    user = USER.match(uri, match.end() - 3)
    rest, _, query = uri[user.end() if user else match.end() :].partition("?")
    netloc, _, path = rest.partition("/")
    if user:
        netloc = f"{user[2]}{quote(user[3] or '', safe=':%')}@{netloc}"
    path = unquote(path, errors="surrogateescape").rstrip("/")
    return _Address(_ALIASES.get(scheme, scheme), netloc, path, query)


def _open_filesystem(location: str) -> tuple[Any, str]:
    """File system of a URI and the path of the URI on it."""
    address = _split(location)
    # A connection must not be shared with a forked child, hence the process id in the key.
    found = _arrow_filesystem(os.getpid(), address.scheme, address.netloc, _with_environment(address))
    if found is None:
        return _fsspec_filesystem(address)
    filesystem, base = found
    return filesystem, "/".join(part for part in (base.rstrip("/"), address.path) if part) or base


@lru_cache(maxsize=64)
def _arrow_filesystem(process: int, scheme: str, netloc: str, query: str) -> tuple[Any, str] | None:
    """The file system pyarrow has for a scheme, or None."""
    from pyarrow.fs import FileSystem

    if scheme in _WEB:
        return None
    try:
        return cast("tuple[Any, str]", FileSystem.from_uri(f"{scheme}://{netloc}/{'?' if query else ''}{query}"))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        if "nrecognized filesystem" in str(error) or isinstance(error, pa.ArrowNotImplementedError):
            return None
        raise


def _with_environment(address: _Address) -> str:
    """Query of an S3 URI, completed by the usual environment variables for endpoint and region."""
    if address.scheme != "s3":
        return address.query
    options = dict(parse_qsl(address.query, keep_blank_values=True))
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    if endpoint and "endpoint_override" not in options:
        parsed = urlsplit(endpoint if "://" in endpoint else f"https://{endpoint}")
        options.update(endpoint_override=parsed.netloc, scheme=parsed.scheme)
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if "region" not in options and (region or "endpoint_override" in options):
        options["region"] = region or "us-east-1"
    return urlencode(options)


def store_options(location: str) -> dict[str, str]:
    """Endpoint and region of an S3 URI, for libraries that open it by themselves; credentials they find as we do."""
    options = dict(parse_qsl(_with_environment(_split(location))))
    found = {}
    if "endpoint_override" in options:
        found["endpoint"] = f"{options.get('scheme', 'https')}://{options['endpoint_override']}"
    if "region" in options:
        found["region"] = options["region"]
    return found


def same_store(location: str, root: str) -> str:
    """A remote location with the options of another one, if it has none itself."""
    if local_path(location) is not None or local_path(root) is not None:
        return location
    there, here = _split(location), _split(root)
    return location if there.query or there.scheme != here.scheme else replace(there, query=here.query).below("")


def _fsspec_filesystem(address: _Address) -> tuple[Any, str]:
    from pyarrow.fs import FSSpecHandler, PyFileSystem

    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise ImportError(f"reading {address.scheme}:// needs the package fsspec") from error
    query = f"?{address.query}" if address.query else ""
    path = quote(address.path) + query if address.scheme in _WEB else address.path
    filesystem, place = url_to_fs(f"{address.scheme}://{address.netloc}/{path}")
    return PyFileSystem(FSSpecHandler(filesystem)), place


def _mtime(found: Any) -> float:
    nanoseconds = found.mtime_ns
    return nanoseconds / 1e9 if nanoseconds is not None else 0.0
