"""Folders that go with the process that made them, also if it is killed: the next one sweeps them up.

Who lives holds a lock on a file in its folder. The system lets go of it when the process ends, however it does, so no
age and no process number has to be guessed from.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path

_LOCK = "lock"


class OwnFolder:
    """A folder for temporary files of this process alone. Those of its kind whose process is no more are removed."""

    def __init__(self, prefix: str) -> None:
        for other in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
            with contextlib.suppress(OSError):
                _sweep(other)
        while True:
            self.path = Path(tempfile.mkdtemp(prefix=prefix))
            self._lock = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            if self._is_ours():
                return
            os.close(self._lock)

    def _is_ours(self) -> bool:
        """Whether the folder is locked and there: somebody who sweeps may have come in between."""
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return os.path.samestat(os.fstat(self._lock), (self.path / _LOCK).stat())
        except (BlockingIOError, FileNotFoundError):
            return False
        except OSError:  # a file system without locks, where nothing can be swept up either
            return True

    def remove(self) -> None:
        """Remove the folder with all that is in it."""
        with contextlib.suppress(OSError):
            _remove(self.path)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def _sweep(folder: Path) -> None:
    """Remove a folder whose process is no more, if it is one of ours: no link, and of the same user."""
    inside = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(inside).st_uid != os.geteuid():
            return
        lock = os.open(_LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=inside)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove(folder)
        finally:
            os.close(lock)
    finally:
        os.close(inside)


def _remove(folder: Path) -> None:
    """Remove a folder, the lock last: if that is cut off, the rest is swept up later."""
    for each in folder.iterdir():
        if each.is_dir() and not each.is_symlink():
            shutil.rmtree(each)
        elif each.name != _LOCK:
            each.unlink()
    shutil.rmtree(folder)
