"""Stop an operation on a small index at every one of its writes, or let the disk refuse from there on.

Run as a program, one operation and one fault at a time, so that nothing else lives in its process; it prints what it
saw as JSON. What a process that is killed leaves on disk is what lies there at that moment: buffers of its own are
lost, and nothing of its cleaning up happens. Hence one run is enough for all its moments: at each of them the index is
copied, and each copy is then opened, asked, mended by the next writer and compared.
"""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import random
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lakescope
from lakescope.build import build as build_module
from lakescope.build.build import scan_here
from lakescope.errors import LakescopeError
from lakescope.store import IndexWriter, disk

WORDS = [f"word {number}" for number in range(60)]
#: Events of Python that change a directory, and those that need room on the disk.
CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.chmod", "os.link", "os.symlink")
ROOM = ("create", "write", "sync", "os.mkdir", "os.truncate")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


# --- a lake, and what is done to its index ----------------------------------------------------------------------------


def write_table(path: Path, seed: int) -> None:
    dice = random.Random(seed)
    pool = dice.sample(WORDS, 30)
    rows = [f"{pool[row % 30]},{dice.choice(pool)},{dice.randrange(100) + row}" for row in range(20 + seed)]
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(["key,other,number", *rows, ""]))
    os.utime(path, (1_600_000_000 + seed, 1_600_000_000 + seed))


@contextlib.contextmanager
def without_spark() -> Iterator[None]:
    """Builds that scan in this process; all else of them is as it is."""
    real = build_module.scan, build_module.spark_session, build_module.ship_package

    def scan(_: Any, plan: Any, __: Any, staging: Path, *, joins: bool, **more: Any) -> Any:
        return scan_here(plan, staging, joins=joins)

    build_module.scan = scan
    build_module.spark_session = lambda *_: contextlib.nullcontext()  # type: ignore[assignment]
    build_module.ship_package = lambda _: None
    try:
        yield
    finally:
        build_module.scan, build_module.spark_session, build_module.ship_package = real


class Scene:
    """A lake that has changed since it was indexed, its index before, and what is done to it."""

    def __init__(self, folder: Path, operation: str) -> None:
        self.folder = folder
        self.lake, self.more, self.index = folder / "lake", folder / "more", folder / "before.idx"
        self.operation = operation
        for number in range(3):
            write_table(self.lake / f"t{number}.csv", number)
        build_module.build(self.lake, self.index)
        if operation in ("update", "build", "compact"):
            write_table(self.lake / "t1.csv", 11)
            write_table(self.lake / "t3.csv", 3)
            (self.lake / "t0.csv").unlink()
        if operation == "compact":
            lakescope.open(self.index).update()
        write_table(self.more / "m.csv", 5)
        if operation == "first":
            shutil.rmtree(self.index)

    def run(self, index: Path) -> None:
        """The operation."""
        if self.operation in ("build", "first"):
            build_module.build(self.lake, index)
            return
        lake = lakescope.open(index)
        if self.operation == "update":
            lake.update()
        elif self.operation == "add":
            lake.add(self.more)
        elif self.operation == "remove":
            lake.remove("t1.csv")
        else:
            lake.compact()

    def copy(self, name: str) -> Path:
        """The index before the operation, at a place of its own."""
        target = self.folder / name
        if self.index.exists():
            shutil.copytree(self.index, target)
        return target


def answers(index: Path) -> Any:
    """What an index says: everything of it is read. None if there is none."""
    if not (index / "manifest.json").exists():
        return None
    lake = lakescope.open(index)
    lake.verify()
    segments = len(lake._index.manifest.segments)
    joins = lake.joinable("t2.csv", on="key", own=True).to_dicts()
    return segments, lake.tables().to_pylist(), lake.columns().to_pylist(), lake.problems().to_pylist(), joins


def leftovers(index: Path) -> list[str]:
    """Files below an index that do not belong to it."""
    if not (index / "manifest.json").exists():
        return [str(path) for path in index.rglob("*")]
    manifest = lakescope.open(index)._index.manifest
    named = {file.path for file in manifest.files} | {"manifest.json", ".lock", "segments"}
    named |= {name for segment in manifest.segments for name in (segment, f"{segment}/manifest.json")}
    return sorted({str(path.relative_to(index)) for path in index.rglob("*")} - named)


# --- every write ------------------------------------------------------------------------------------------------------


def _opened(handle: int) -> str:
    return str(Path(f"/proc/self/fd/{handle}").readlink())


class Writes:
    """Tells of every write below a directory just before it is made; of a write of bytes also when half are written."""

    def __init__(self) -> None:
        self.index: str | None = None
        self.step: Callable[[str, str], None] = lambda what, where: None
        self._busy = False
        self._unsynced: set[str] = set()
        #: What was named by a manifest before it was durable, and files that are not written the one way there is.
        self.early: list[str] = []
        self.around: list[str] = []
        self._through = ""
        sys.addaudithook(self._hook)
        self._pwrite = os.pwrite
        os.fsync = self._counted_sync
        os.pwrite = self._counted_pwrite
        plain = disk._File.write
        told = self._told

        def write(stream: io.FileIO, data: Any) -> int:
            path, given = str(stream.name), memoryview(data).cast("B")
            self._unsynced.add(path)
            told("write", path)
            written = plain(stream, given[: len(given) // 2])
            told("torn", path)
            return written + plain(stream, given[written:])

        begin = disk._File.__init__

        def made(stream: io.FileIO, path: str, mode: str, **more: Any) -> None:
            self._through = path
            begin(stream, path, mode, **more)

        disk._File.write = write  # type: ignore[assignment, method-assign]
        disk._File.__init__ = made  # type: ignore[assignment, method-assign]

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.index is None or self._busy:
            return
        if event == "open":
            if isinstance(arguments[2], int) and arguments[2] & WRITING and not isinstance(arguments[0], int):
                place = os.fspath(arguments[0])
                self._told("create", place)
                self._unsynced.add(str(Path(place).parent))
                if place.startswith(self.index) and place != self._through and not place.endswith("/.lock"):
                    self.around.append(place)
        elif event in CHANGES:
            place = self._place(event, arguments)
            self._told(event, place)
            if event == "os.rename":
                self._renamed(place, os.fspath(arguments[1]))
            elif event == "os.mkdir":
                self._unsynced.add(str(Path(place).parent))

    def _renamed(self, source: str, target: str) -> None:
        """Before a manifest is put in place, all it names must be durable: files, and the folders that name them."""
        if target == f"{self.index}/manifest.json":
            inside = {path for path in self._unsynced if path.startswith(str(self.index))}
            kept = {path for path in inside if "/staging" not in path and not path.endswith(".lock")}
            # Its own folder is synced once it is there; what was renamed away is not there any more.
            self.early += sorted(path for path in kept - {str(self.index)} if Path(path).exists())
        elif source in self._unsynced:
            self._unsynced.add(target)
        self._unsynced.discard(source)
        self._unsynced.add(str(Path(target).parent))

    @staticmethod
    def _place(event: str, arguments: tuple[Any, ...]) -> str:
        """Where an event takes place: a handle, or a name below one, says so only to the system."""
        path, handle = arguments[0], -1
        if event in ("os.remove", "os.rmdir", "os.mkdir"):
            handle = arguments[-1]
        if isinstance(path, int):
            return _opened(path)
        return str(Path(_opened(handle), path)) if handle != -1 else os.fspath(path)

    def _counted_sync(self, handle: int) -> None:
        # Not done: a process that is killed leaves what the system has, on the disk or not yet.
        self._told("sync", _opened(handle))
        self._unsynced.discard(_opened(handle))

    def _counted_pwrite(self, handle: int, data: Any, offset: int) -> int:
        self._told("write", _opened(handle))
        return self._pwrite(handle, data, offset)

    def _told(self, what: str, where: str) -> None:
        if self.index is None or self._busy or not str(Path(where).absolute()).startswith(self.index):
            return
        self._busy = True
        try:
            self.step(what, where)
        finally:
            self._busy = False

    @contextlib.contextmanager
    def below(self, index: Path, step: Callable[[str, str], None]) -> Iterator[None]:
        self.index, self.step = str(index), step
        try:
            yield
        finally:
            self.index = None


# --- killed -----------------------------------------------------------------------------------------------------------


@dataclass
class Report:
    """What was seen: how many writes of which kind, what the index was after each, what was wrong."""

    points: int = 0
    different: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    states: Counter[str] = field(default_factory=Counter)
    messages: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def killed(scene: Scene, writes: Writes, report: Report, *, thorough: bool) -> None:
    """Copies of the index at every write are the old index or the new one, and the next writer makes all good.

    Nobody reads the staging area, and the next writer removes it before anything else: unless this is to be
    ``thorough``, moments that differ in there alone are one. Then the next writer does nothing, which must leave the
    very files of the old index or the new one; the operation is done again at the first moment and at the last.
    """
    old, index = answers(scene.index), scene.copy("run.idx")
    told: list[tuple[str, str, Path]] = []
    seen: set[Any] = set()

    def step(what: str, where: str) -> None:
        report.points += 1
        report.kinds[what] += 1
        state = _outside_staging(index)
        if not thorough and state in seen:
            return
        seen.add(state)
        case = scene.folder / f"case-{len(told)}"
        if index.exists():
            shutil.copytree(index, case)
        told.append((what, os.path.relpath(where, index), case))

    with writes.below(index, step):
        scene.run(index)
    new = answers(index)
    report.different = len(told)
    report.wrong += [f"named by a manifest before it was durable: {path}" for path in writes.early]
    report.wrong += [f"written past the one way there is: {path}" for path in writes.around]
    if old == new or leftovers(index):
        report.wrong.append(f"the operation did nothing, or left {leftovers(index)}")
    published = False
    files = {"old": _bytes_of(scene.index), "new": _bytes_of(index)}
    for number, (what, where, case) in enumerate(told):
        again = thorough or scene.operation == "first" or number in (0, len(told) - 1)
        wrong = _after_kill(scene, case, old, new, report, None if again else files)
        published = published or wrong == "new"
        if wrong == "old" and published:
            report.wrong.append(f"write {number} ({what} {where}): what was published is gone")
        elif wrong not in ("old", "new"):
            report.wrong.append(f"write {number} ({what} {where}): {wrong}")
        shutil.rmtree(case, ignore_errors=True)


def _outside_staging(index: Path) -> Any:
    """Files and folders of an index, without what is staged."""
    found = []
    for folder, folders, names in os.walk(index):
        if folder == str(index) and "staging" in folders:
            folders.remove("staging")
            found.append("staging")
        found += [str(Path(folder, name)) for name in folders]
        for name in names:
            told = Path(folder, name).stat()
            found.append(f"{folder} {name} {told.st_ino} {told.st_size} {told.st_mtime_ns}")
    return tuple(sorted(found))


def _bytes_of(index: Path) -> dict[str, bytes]:
    """All files of an index, but for the lock, which says who had it last."""
    files = [path for path in index.rglob("*") if path.is_file() and path.name != ".lock"]
    return {str(path.relative_to(index)): path.read_bytes() for path in files}


def _after_kill(
    scene: Scene, case: Path, old: Any, new: Any, report: Report, files: dict[str, dict[str, bytes]] | None
) -> str:
    """The state of a copy, once the next writer has been there; else what is wrong with it."""
    try:
        found = answers(case)
        if found not in (old, new):
            return "neither the old index nor the new one"
        state = "old" if found == old else "new"
        report.states[state] += 1
        if files is not None:
            with IndexWriter(case):
                pass
            left = _bytes_of(case)
            return (
                state if left == files[state] else f"the next writer left {sorted(left.keys() ^ files[state].keys())}"
            )
        if state == "old" or scene.operation == "build":
            scene.run(case)
        else:
            lakescope.open(case).update()
        if answers(case) != new:
            return "the next writer did not make it new"
        left = leftovers(case)
        return f"the next writer left {left}" if left else state
    except Exception as error:
        return f"{type(error).__name__}: {error}"


# --- refused ----------------------------------------------------------------------------------------------------------


def refused(scene: Scene, writes: Writes, report: Report, number: int) -> None:
    """From its first write on, its second, ..., the disk refuses; the index stays whole, and it is said why."""
    old, new = answers(scene.index), None
    reason = os.strerror(number)
    kinds = ROOM if number == errno.ENOSPC else (*ROOM, *CHANGES)
    while True:
        index = scene.copy(f"run-{number}-{report.points}.idx")
        seen: list[tuple[str, str]] = []

        def step(what: str, where: str, seen: list[tuple[str, str]] = seen) -> None:
            # Half a write is no place where a disk that is not full any more begins to refuse.
            if what in kinds:
                seen.append((what, where))
                if len(seen) > report.points:
                    raise OSError(number, reason, where)

        message = None
        try:
            with writes.below(index, step):
                scene.run(index)
        except LakescopeError as error:
            message = str(error)
        except Exception as error:
            message = None
            report.wrong.append(f"write {report.points} {seen[report.points :][:1]}: {type(error).__name__}: {error}")
        found = answers(index)
        if len(seen) <= report.points:
            shutil.rmtree(index)
            break
        what, where = seen[report.points]
        report.points += 1
        report.kinds[what] += 1
        new = found if message is None else new
        state = "old" if found == old else "new"
        report.states[state] += 1
        if message is not None:
            report.messages[message.replace(str(index), "INDEX").split("\n")[0].split("/")[0]] += 1
            if reason not in message or str(index) not in message or "hint:" not in message:
                report.wrong.append(f"write {report.points} ({what} {where}): does not say what and where: {message}")
        left = leftovers(index)
        if number == errno.ENOSPC and left and state == "old":
            report.wrong.append(f"write {report.points} ({what} {where}): left {left}")
        if not (state == "new" and scene.operation != "build"):
            scene.run(index)
        after = answers(index)
        new = after if new is None else new
        if after != new or found not in (old, new):
            report.wrong.append(f"write {report.points} ({what} {where}): neither the old index nor the new one")
        shutil.rmtree(index, ignore_errors=True)


FAULTS = {"full": errno.ENOSPC, "forbidden": errno.EACCES, "broken": errno.EIO}
OPERATIONS = ("first", "build", "update", "add", "remove", "compact")


def main(folder: str, fault: str, *operations: str) -> None:
    told = {}
    with without_spark():
        writes = Writes()
        for operation in operations:
            place = Path(folder) / operation
            place.mkdir(parents=True)
            scene = Scene(place, operation)
            for name in fault.split(","):
                report = Report()
                if name in FAULTS:
                    refused(scene, writes, report, FAULTS[name])
                else:
                    killed(scene, writes, report, thorough=name == "killed-thoroughly")
                told[f"{operation}, {name}"] = vars(report)
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
