"""The one way an index is written: every change that is made to a disk goes through here.

An error says which file it was, also where the system does not: a disk that is full is met in the middle of a write.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, TypeGuard

#: Bytes that are written at a time.
_BUFFER = 1 << 18
#: Errors of a disk, whatever file they are told of.
_OF_DISKS = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG, errno.EIO}

Place = str | os.PathLike[str]


class _File(io.FileIO):
    """A file whose errors name it."""

    def write(self, data: Any, /) -> int:
        with _named(self.name):
            return super().write(data)


@contextlib.contextmanager
def _named(path: Any) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = os.fspath(path)
        raise


def create(path: Place) -> IO[bytes]:
    """A new file to write, its owner's alone; there must be none yet."""
    return io.BufferedWriter(_File(os.fspath(path), "xb", opener=_for_owner), _BUFFER)


def scratch(path: Place) -> IO[bytes]:
    """A new file to write and to read again, its owner's alone."""
    return io.BufferedRandom(_File(os.fspath(path), "w+b", opener=_for_owner), _BUFFER)


def append(path: Place, data: bytes) -> None:
    """Add a little to the end of a file; it need not last."""
    with io.BufferedWriter(_File(os.fspath(path), "ab", opener=_for_owner)) as stream:
        stream.write(data)


def _for_owner(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def allow(path: Path, rights: int) -> None:
    """Say who may read and write."""
    path.chmod(rights)


def sync(stream: IO[bytes]) -> None:
    """Make what was written durable."""
    stream.flush()
    with _named(getattr(stream, "name", "")):
        os.fsync(stream.fileno())


def sync_folder(folder: Place) -> None:
    """Make renames in a directory durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        with _named(folder):
            os.fsync(handle)
    finally:
        os.close(handle)


def make_folder(folder: Path) -> None:
    """A directory for its owner only, with those above it; it may be there."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def move(source: Path, target: Path) -> None:
    """Rename, replacing what is there: done or not done, nothing between."""
    source.replace(target)


def remove(path: Path) -> None:
    """Remove a file that nobody needs any more; one that stays is removed by the next writer."""
    with contextlib.suppress(OSError):
        path.unlink()


def remove_tree(folder: Path) -> None:
    """Remove a directory with all that is in it; what stays is removed by the next writer."""
    shutil.rmtree(folder, ignore_errors=True)


def remove_empty(folder: Path) -> None:
    """Remove a directory if nothing is in it."""
    with contextlib.suppress(OSError):
        folder.rmdir()


def is_about(error: BaseException | None, folder: Path) -> TypeGuard[OSError]:
    """Whether an error is one of writing below a directory."""
    if not isinstance(error, OSError):
        return False
    named = error.filename if isinstance(error.filename, str) else None
    inside = named is not None and Path(named).absolute().is_relative_to(folder.absolute())
    return inside or (named is None and error.errno in _OF_DISKS)


def remedy(error: OSError) -> str:
    """What to do about an error of writing."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return "free some room"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return "get the right to write there"
    return "look after the disk"
