"""Writing an index: lock, staging area, atomic publish.

Whatever happens before the rename of the manifest leaves the published index as it was; whatever happens after it
leaves the new one. Segment files are never changed once published.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lakescope.errors import BadRequest, IndexLocked
from lakescope.store.manifest import MANIFEST, Manifest, SegmentFile

_LOCK = ".lock"
_STAGING = "staging"
_SEGMENTS = "segments"


class IndexWriter:
    """The single writer of one index directory; use as a context manager."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.build = f"{int(time.time()):x}-{uuid.uuid4().hex[:8]}"
        self.staging = self.path / _STAGING / self.build
        self._lock: int | None = None

    def __enter__(self) -> IndexWriter:
        _check_target(self.path)
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._take_lock()
        # The lock is ours: whatever else is staged was left by a build that died.
        shutil.rmtree(self.path / _STAGING, ignore_errors=True)
        self.staging.mkdir(mode=0o700, parents=True)
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.path / _STAGING, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
        if not (self.path / MANIFEST).exists():
            # Nothing was ever published here: leave no trace of the attempt.
            with contextlib.suppress(OSError):
                (self.path / _LOCK).unlink()
                self.path.rmdir()

    def _take_lock(self) -> None:
        lock = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.read(lock, 200).decode("utf-8", "replace").strip()
            os.close(lock)
            raise IndexLocked(
                f"another process is writing {self.path}" + (f" ({holder})" if holder else ""),
                hint="wait for it to end; the lock goes with the process, a stale lock cannot remain",
            ) from None
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"process {os.getpid()} since {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC".encode(), 0)
        self._lock = lock

    def publish(
        self, files: list[SegmentFile], *, version: str, sources: list[str], summary: dict[str, Any]
    ) -> Manifest:
        """Make staged files the index. ``files`` name paths below the staging area."""
        segment = Path(_SEGMENTS) / self.build
        (self.path / segment).mkdir(mode=0o700, parents=True)
        kept = []
        for file in files:
            name = Path(file.path).name
            (self.staging / file.path).replace(self.path / segment / name)
            kept.append(SegmentFile(str(segment / name), file.kind, file.rows, file.size, file.checksum))
        _sync(self.path / segment)
        _sync(self.path / _SEGMENTS)
        before = self._generation()
        created = datetime.now(UTC).isoformat(timespec="seconds")
        manifest = Manifest(before + 1, created, version, sources, summary, kept)
        self._replace_manifest(manifest)
        self._drop_old_segments(manifest)
        return manifest

    def _generation(self) -> int:
        try:
            return int(json.loads((self.path / MANIFEST).read_text("utf-8"))["generation"])
        except (OSError, ValueError, KeyError, TypeError):
            return 0

    def _replace_manifest(self, manifest: Manifest) -> None:
        draft = self.path / f"{MANIFEST}.{self.build}"
        with draft.open("x", encoding="utf-8") as stream:
            stream.write(manifest.dump())
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(self.path / MANIFEST)
        _sync(self.path)

    def _drop_old_segments(self, manifest: Manifest) -> None:
        """Remove what no manifest names any more; readers that have it mapped keep it until they close."""
        named = {str(Path(file.path).parent) for file in manifest.files} | {f"{_SEGMENTS}/{self.build}"}
        for folder in self._folders(_SEGMENTS):
            if str(folder.relative_to(self.path)) not in named:
                shutil.rmtree(folder, ignore_errors=True)
        for draft in self.path.glob(f"{MANIFEST}.*"):
            draft.unlink(missing_ok=True)

    def _folders(self, name: str) -> Iterator[Path]:
        return (entry for entry in (self.path / name).iterdir() if entry.is_dir())


def _check_target(path: Path) -> None:
    if path.exists() and not path.is_dir():
        raise BadRequest(f"{path} is a file, an index is a directory", hint="choose another --out")
    if path.is_dir() and not (path / MANIFEST).exists():
        foreign = [entry.name for entry in path.iterdir() if entry.name not in (_LOCK, _STAGING, _SEGMENTS)]
        if any(not name.startswith(MANIFEST) for name in foreign):
            raise BadRequest(
                f"{path} exists, is not empty and is not an index",
                hint="choose a new directory for --out, or remove it",
            )


def _sync(folder: Path) -> None:
    """Make renames in a directory durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
