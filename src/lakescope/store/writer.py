"""Writing an index: lock, staging area, atomic publish.

Whatever happens before the rename of the manifest leaves the published index as it was; whatever happens after it
leaves the new one. Segment files are never changed once published.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import time
import uuid
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lakescope.errors import BadRequest, IndexLocked, LakescopeError
from lakescope.sources.files import display
from lakescope.store.manifest import MANIFEST, Manifest, SegmentFile

_LOCK = ".lock"
#: What a lock file begins with: tells a directory of ours from somebody else's.
_MARK = "lakescope"
_STAGING = "staging"
_SEGMENTS = "segments"


class IndexWriter:
    """The single writer of one index directory; use as a context manager."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if "://" in os.fspath(path):
            hint = "write to a directory of this machine, then lakescope push"
            raise BadRequest(f"an index is not written to {display(os.fspath(path))}", hint=hint)
        self.path = Path(path)
        self.build = f"{int(time.time()):x}-{uuid.uuid4().hex[:8]}"
        self.staging = self.path / _STAGING / self.build
        self._lock: int | None = None
        self._made = False

    def __enter__(self) -> IndexWriter:
        _check_target(self.path)
        try:
            self._made = not self.path.exists()
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._take_lock()
            # The lock is ours: whatever else is staged was left by a build that died.
            shutil.rmtree(self.path / _STAGING, ignore_errors=True)
            self.staging.mkdir(mode=0o700, parents=True)
        except OSError as error:
            self._release()
            raise BadRequest(
                f"cannot write an index to {self.path}: {error.strerror or error}",
                hint="choose a directory on a disk of this machine that you may write to",
            ) from error
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.path / _STAGING, ignore_errors=True)
        if not (self.path / MANIFEST).exists():
            # Nothing was ever published here: leave no trace of the attempt.
            with contextlib.suppress(OSError):
                (self.path / _LOCK).unlink()
                if self._made:
                    self.path.rmdir()
        self._release()

    def _release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _take_lock(self) -> None:
        path = self.path / _LOCK
        while self._lock is None:
            lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.read(lock, 200).decode("utf-8", "replace").removeprefix(_MARK).strip(", \n")
                os.close(lock)
                raise IndexLocked(
                    f"another process is writing {self.path}" + (f" ({holder})" if holder else ""),
                    hint="wait for it to end; the lock goes with the process, a stale lock cannot remain",
                ) from None
            except OSError:
                os.close(lock)
                raise
            # The holder before may have removed the file: a lock on what is no longer there locks nobody out.
            if _is_at(lock, path):
                self._lock = lock
            else:
                os.close(lock)
        text = f"{_MARK}, process {os.getpid()} since {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, text.encode(), 0)

    def publish(
        self,
        files: list[SegmentFile],
        *,
        version: str,
        sources: list[str],
        summary: dict[str, Any],
        given: dict[str, Any] | None = None,
        keep: Sequence[SegmentFile] = (),
    ) -> Manifest:
        """Make staged ``files``, named below the staging area, the index, beside published ones to ``keep``."""
        segment = Path(_SEGMENTS) / self.build
        (self.path / segment).mkdir(mode=0o700, parents=True)
        kept = list(keep)
        for file in files:
            name = Path(file.path).name
            (self.staging / file.path).replace(self.path / segment / name)
            kept.append(SegmentFile(str(segment / name), file.kind, file.rows, file.size, file.checksum))
        _sync(self.path / segment)
        _sync(self.path / _SEGMENTS)
        before = _published(self.path)
        created = datetime.now(UTC).isoformat(timespec="seconds")
        generation = before.generation + 1 if before else 1
        manifest = Manifest(generation, created, version, sources, summary, kept, given or {})
        self._replace_manifest(manifest)
        self._drop_old_segments(manifest)
        return manifest

    def _replace_manifest(self, manifest: Manifest) -> None:
        draft = self.path / f"{MANIFEST}.{self.build}"
        with draft.open("x", encoding="utf-8") as stream:
            stream.write(manifest.dump())
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(self.path / MANIFEST)
        _sync(self.path)

    def _drop_old_segments(self, manifest: Manifest) -> None:
        """Remove what no manifest names any more; readers have mapped what they opened and keep it."""
        named = {str(Path(file.path).parent) for file in manifest.files} | {f"{_SEGMENTS}/{self.build}"}
        for folder in self._folders(_SEGMENTS):
            if str(folder.relative_to(self.path)) not in named:
                shutil.rmtree(folder, ignore_errors=True)
        for draft in self.path.glob(f"{MANIFEST}.*"):
            draft.unlink(missing_ok=True)

    def _folders(self, name: str) -> Iterator[Path]:
        return (entry for entry in (self.path / name).iterdir() if entry.is_dir())


def _published(path: Path) -> Manifest | None:
    """The manifest that is there, if it is whole."""
    try:
        return Manifest.load(path)
    except LakescopeError:
        return None


def _check_target(path: Path) -> None:
    """Refuse a place that holds anything but an index: a build removes and replaces what is there."""
    if path.exists() and not path.is_dir():
        raise BadRequest(f"{path} is a file, an index is a directory", hint="choose another --out")
    if path.is_dir() and not is_ours(path) and any(path.iterdir()):
        raise BadRequest(
            f"{path} exists, is not empty and is not an index",
            hint="choose a new directory for --out, or remove it",
        )


def is_ours(path: Path) -> bool:
    """Whether a directory was made by a build: it has our lock file, or a manifest that can be read as ours."""
    try:
        with (path / _LOCK).open("rb") as stream:
            if stream.read(len(_MARK)) == _MARK.encode():
                return True
    except OSError:
        pass
    return _published(path) is not None


def _is_at(handle: int, path: Path) -> bool:
    """Whether an open file is the one that lies at a path."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def _sync(folder: Path) -> None:
    """Make renames in a directory durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
