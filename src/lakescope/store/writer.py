"""Writing an index: lock, staging area, atomic publish.

Whatever happens before the rename of the manifest leaves the published index as it was; whatever happens after it
leaves the new one. Segment files are never changed once published.

An index holds values of the tables it is of. It is for its owner alone, whatever the umask, unless it is to be shared;
whoever may read its directory may read its files, and later builds keep it so.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import time
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lakescope.errors import BadRequest, IndexLocked, LakescopeError, WriteFailed
from lakescope.sources.io.files import display
from lakescope.store import disk
from lakescope.store.manifest import MANIFEST, Manifest, SegmentFile

_LOCK = ".lock"
#: What a lock file begins with: tells a directory of ours from somebody else's.
_MARK = "lakescope"
_STAGING = "staging"
_SEGMENTS = "segments"
#: Rights: the owner's, those of an index that is shared (before the umask), what of them a file may have.
_OWNER, _SHARED, _FILE = 0o700, 0o755, 0o644


class IndexWriter:
    """The single writer of one index directory; use as a context manager."""

    def __init__(self, path: str | os.PathLike[str], *, share: bool = False) -> None:
        if "://" in os.fspath(path):
            hint = "write to a directory of this machine, then lakescope push"
            raise BadRequest(f"an index is not written to {display(os.fspath(path))}", hint=hint)
        self.path = Path(path)
        self._share = share
        self.build = f"{int(time.time()):x}-{uuid.uuid4().hex[:8]}"
        self.staging = self.path / _STAGING / self.build
        self._lock: int | None = None
        self._made_folder = False
        self._published = False

    def __enter__(self) -> IndexWriter:
        _check_target(self.path)
        try:
            self._made_folder = not self.path.exists()
            fresh = self._made_folder or not is_ours(self.path)
            disk.make_folder(self.path)
            self._take_lock()
            if self._share:
                disk.allow(self.path, _SHARED & ~_umask())
            elif fresh:
                disk.allow(self.path, _OWNER)
            # The lock is ours: whatever else is staged was left by a writer that died.
            disk.remove_tree(self.path / _STAGING)
            self._sweep()
            for folder in (self.path / _STAGING, self.staging):
                disk.make_folder(folder)
        except OSError as error:
            self._leave()
            raise BadRequest(
                f"cannot write an index to {self.path}: {error.strerror or error}",
                hint="choose a directory on a disk of this machine that you may write to",
            ) from error
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._leave()
        if disk.is_about(error, self.path):
            raise self._failed(error) from error

    def _failed(self, error: OSError) -> WriteFailed:
        """What to tell of a disk that did not take what was written."""
        told = "the index that was there before is untouched"
        if self._published:
            told = "the new index answers already, but may not survive a loss of power"
        message = f"cannot write {error.filename or self.path}: {error.strerror or error}"
        return WriteFailed(message, hint=f"{told}; {disk.remedy(error)}, then try again")

    def _leave(self) -> None:
        """Remove what was not published, and let others write."""
        if self._lock is None:
            if self._made_folder:
                disk.remove_empty(self.path)
            return
        disk.remove_tree(self.path / _STAGING)
        if not self._published:
            disk.remove_tree(self.path / _SEGMENTS / self.build)
            disk.remove(self._draft)
        if not (self.path / MANIFEST).exists():
            # Nothing was ever published here: leave no trace of the attempt.
            disk.remove_empty(self.path / _SEGMENTS)
            disk.remove(self.path / _LOCK)
            if self._made_folder:
                disk.remove_empty(self.path)
        os.close(self._lock)
        self._lock = None

    @property
    def _draft(self) -> Path:
        return self.path / f"{MANIFEST}.{self.build}"

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
        # In this order: a lock file that is empty was just made, and lies alone.
        os.pwrite(self._lock, text.encode(), 0)
        os.ftruncate(self._lock, len(text))

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
        for folder in (self.path / _SEGMENTS, self.path / segment):
            disk.make_folder(folder)
            disk.allow(folder, self._rights)
        kept = list(keep)
        for file in files:
            name = Path(file.path).name
            disk.allow(self.staging / file.path, self._rights & _FILE)
            disk.move(self.staging / file.path, self.path / segment / name)
            kept.append(SegmentFile(str(segment / name), file.kind, file.rows, file.size, file.checksum))
        before = _published(self.path)
        created = datetime.now(UTC).isoformat(timespec="seconds")
        generation = before.generation + 1 if before else 1
        manifest = Manifest(generation, created, version, sources, summary, kept, given or {})
        self._publish(manifest, segment)
        return manifest

    def restore(self, manifest: Manifest) -> None:
        """Put a manifest that was lost back in its place."""
        self._replace_manifest(manifest.dump().encode())

    def _publish(self, manifest: Manifest, segment: Path) -> None:
        """Put a manifest in place of the one before, once all it names is durable."""
        text = manifest.dump().encode()
        # A copy stays with the segment: should the manifest be lost, `repair` finds it there.
        self._write(self.path / segment / MANIFEST, text)
        for folder in (segment, Path(_SEGMENTS), Path()):
            disk.sync_folder(self.path / folder)
        self._replace_manifest(text)
        self._sweep()

    def _replace_manifest(self, text: bytes) -> None:
        self._write(self._draft, text)
        disk.move(self._draft, self.path / MANIFEST)
        self._published = True
        disk.sync_folder(self.path)

    @property
    def _rights(self) -> int:
        """Who may read the index, which those of its directory tell."""
        return stat.S_IMODE(self.path.stat().st_mode) & _SHARED | _OWNER

    def _write(self, path: Path, data: bytes) -> None:
        """A small file, durable."""
        with disk.create(path) as stream:
            stream.write(data)
            disk.sync(stream)
        disk.allow(path, self._rights & _FILE)

    def _sweep(self) -> None:
        """Remove what the manifest does not name; readers have mapped what they opened and keep it.

        Where no manifest can be read nothing is removed: what is there may be all that is left.
        """
        manifest = _published(self.path)
        if manifest is not None:
            for left in [*self.path.glob(f"{MANIFEST}.*"), *unnamed_segments(self.path, manifest)]:
                (disk.remove_tree if left.is_dir() else disk.remove)(left)


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
            mark = stream.read(len(_MARK))
        if mark == _MARK.encode() or (not mark and len(list(path.iterdir())) == 1):
            return True
    except OSError:
        pass
    return any(_published(each) is not None for each in (path, *segment_folders(path)))


def _umask() -> int:
    """The umask of this process, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def is_written(path: Path) -> bool:
    """Whether somebody writes an index at the moment."""
    try:
        with (path / _LOCK).open("rb") as stream:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _is_at(handle: int, path: Path) -> bool:
    """Whether an open file is the one that lies at a path."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def staged(path: Path) -> Path:
    """Where a writer puts what it has not published."""
    return path / _STAGING


def segment_folders(path: Path) -> list[Path]:
    """All folders of segments, named by a manifest or not."""
    with contextlib.suppress(FileNotFoundError):
        return sorted(entry for entry in (path / _SEGMENTS).iterdir() if entry.is_dir())
    return []


def unnamed_segments(path: Path, manifest: Manifest) -> list[Path]:
    """Segments that a manifest does not name; one without a file of its own still keeps the copy of the manifest."""
    named = set(manifest.segments)
    folders = [folder for folder in segment_folders(path) if str(folder.relative_to(path)) not in named]
    return [folder for folder in folders if _published(folder) != manifest]
