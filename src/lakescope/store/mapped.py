"""Files of an index as they lie in memory: read whole if they are small, else mapped and looked after.

What was read cannot change any more. What is mapped is as long as the file is at this moment: if somebody cuts that
off, a question that is reading it is told so (:mod:`lakescope.store.faults`), and no other one is begun.
"""

from __future__ import annotations

import errno
import os
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from lakescope.errors import BadRequest, IndexDamaged, LakescopeError
from lakescope.store import faults
from lakescope.store.manifest import SegmentFile

#: Bytes of files that are read whole, of each and of all together: every process that has an index open holds so much
#: of it for itself. A question about a lake of some thousand columns then needs no handler for faults.
SMALL, SMALL_TOGETHER = 4 << 20, 64 << 20
MEND = "restore the file, or run `lakescope repair`"


class _Memory(np.ndarray):
    """Bytes of a mapped file: whoever uses any of them holds this object, at whose end the file is unmapped."""


class MappedFile:
    """A file that is mapped. It stays open to nobody: an index of many files takes no handle for each.

    What is mapped stays readable when the file is removed, or another one takes its place.
    """

    def __init__(self, path: Path, mapped: pa.Buffer | None = None) -> None:
        self.path, self._place = path, os.fspath(path)
        if mapped is None:
            with pa.memory_map(str(path)) as source:
                mapped = source.read_buffer()
        self._memory = np.frombuffer(mapped, np.uint8).view(_Memory)
        self.buffer = pa.py_buffer(self._memory)
        self.size = self.buffer.size
        self._identity = _identity(path.stat())

    @property
    def damage(self) -> str | None:
        """What is wrong with the length of the file, if that is the one that was mapped."""
        try:
            found = os.stat(self._place)  # noqa: PTH116 - asked of every file after every question
        except OSError:  # removed: what is mapped stays
            return None
        if found.st_size == self.size or _identity(found) != self._identity:
            return None
        return f"{self.path} is damaged: {found.st_size} bytes instead of {self.size}"

    def read(self) -> pa.Buffer | None:
        """All bytes in memory that nobody else can change; None if the file is not there any more."""
        try:
            with self.path.open("rb", buffering=0) as stream:
                if _identity(os.fstat(stream.fileno())) != self._identity:
                    return None
                content = stream.read(self.size + 1)
        except OSError:
            return None
        if len(content) != self.size:
            raise IndexDamaged(self.damage or f"{self.path} is damaged: it changes while it is read", hint=MEND)
        return pa.py_buffer(content)

    def watch(self, owner: faults.FaultCounter) -> None:
        """Have faults handled while the owner is reading; before the memory is somebody else's, it is forgotten."""
        if self.size:
            faults.watch(self.buffer.address, self.size, owner)
            weakref.finalize(self._memory, faults.forget, self.buffer.address).atexit = False

    @property
    def is_cut(self) -> bool:
        """Whether a question met a fault in it."""
        return bool(self.size) and faults.is_met(self.buffer.address)


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


class MappedFiles:
    """The files that questions of one index read where they are mapped: a context for any number of questions.

    A question is refused if a file that it may have read is damaged when it ends. One look is enough: a file that was
    cut off before still is, or whoever read it met a fault.
    """

    def __init__(self) -> None:
        self._owner = faults.FaultCounter()
        self._used: list[MappedFile] = []
        self._lock = threading.Lock()
        #: What is wrong for good: whatever was made of it may be wrong, too, so that the index must be opened anew.
        self.damage: str | None = None

    def use(self, file: MappedFile) -> pa.Buffer:
        """The bytes of a file, which is looked after from now on."""
        with self._lock:
            if file not in self._used:
                if file.damage:
                    raise IndexDamaged(file.damage, hint=MEND)
                file.watch(self._owner)
                self._used.append(file)
        return file.buffer

    def __enter__(self) -> None:
        if self.damage is not None:
            self.check()
        self._owner.begin()

    def __exit__(self, *_: object) -> None:
        self._owner.end()
        self.check()

    def check(self) -> None:
        """Refuse to go on if a file was cut off."""
        if self.damage is None:
            faulty = self._owner.faults > 0
            self.damage = next((told for file in tuple(self._used) if (told := _damage_of(file, faulty))), None)
        if self.damage is not None:
            raise IndexDamaged(self.damage, hint=MEND)


def _damage_of(file: MappedFile, faulty: bool) -> str | None:
    """What is wrong with a file; one that met a fault may be whole again."""
    cut = f"{file.path} is damaged: it was cut off while it was read" if faulty and file.is_cut else None
    return file.damage or cut


class LocalFiles(Mapping[str, pa.Buffer]):
    """The files of an index on this machine, by their path below it.

    All are mapped when the index is opened, so that they stay when a later build removes them. Small ones are read
    whole when they are first used.
    """

    def __init__(self, index: Path, files: Sequence[SegmentFile]) -> None:
        self.mapped = MappedFiles()
        self._files: dict[str, pa.Buffer | MappedFile] = {
            file.path: _opened(index / file.path, file.size) for file in files
        }
        self._room = SMALL_TOGETHER
        self._reading = threading.Lock()

    def __getitem__(self, path: str) -> pa.Buffer:
        with self._reading:
            found = self._files[path]
            if isinstance(found, MappedFile) and found.size <= min(SMALL, self._room):
                content = found.read()
                if content is not None:
                    self._room -= content.size
                    self._files[path] = found = content
        return self.mapped.use(found) if isinstance(found, MappedFile) else found

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    def recalled(self, path: Path) -> pa.Buffer:
        """A file that is kept beside the index."""
        return recalled(path, self.mapped)


def recalled(path: Path, mapped: MappedFiles) -> pa.Buffer:
    """A file that was kept beside an index."""
    found = MappedFile(path)
    content = found.read() if found.size <= SMALL else None
    return mapped.use(found) if content is None else content


def _opened(path: Path, size: int) -> MappedFile:
    """A file of an index; whatever is wrong with it is told."""
    try:
        found = MappedFile(path)
    except FileNotFoundError:
        raise IndexDamaged(f"{path} is missing", hint=MEND) from None
    except PermissionError as error:
        raise BadRequest(f"cannot read {path}: {error.strerror}", hint="ask for the right to read it") from error
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
            hint = "close some, or allow more (ulimit -n)"
            raise LakescopeError(f"cannot open {path}: no more files may be open", hint=hint) from error
        raise IndexDamaged(f"cannot read {path}: {error}", hint=MEND) from error
    if found.size != size:
        raise IndexDamaged(f"{path} is damaged: {found.size} bytes instead of {size}", hint=MEND)
    return found
