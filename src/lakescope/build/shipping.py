"""Getting this package to the executors of a cluster.

Executors need a Python of the driver's version (``PYSPARK_PYTHON``, ``spark.pyspark.python``) with the dependencies
(numpy, pyarrow, numba, xxhash, ...), which a cluster's image or ``spark.archives`` provides. The package itself
travels with the build, as one zip through ``addArtifacts``, so that workers always run the very code that planned the
build. Local sessions share the interpreter and need nothing; a Spark Connect server never shares it, wherever it
runs.

A worker does not run from the zip: numba keeps compiled kernels beside their source, and a zip that lies elsewhere
with every application would mean compiling them for every build. So a worker unpacks
the zip once into the user's cache directory (``XDG_CACHE_HOME`` or ``~/.cache``), under a name that follows from its
content, and points the package there; what it compiles then serves later builds, too. Where there is no such
directory (no home, not writable, not the user's own), the executor's working directory, which goes with the
application, takes its place.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import hashlib
import itertools
import os
import pickle
import shutil
import sys
import tempfile
import time
import uuid
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipimport import zipimporter

from lakescope.build.session import is_connect
from lakescope.errors import BuildFailed
from lakescope.sources.io.redact import scrub
from lakescope.store.cache import cache_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PACKAGE = "lakescope"
#: Caches of the interpreter and of numba: no source.
_CACHES = (".pyc", ".nbi", ".nbc")

Task = Callable[[Iterator[Any]], Iterator[Any]]


@dataclass(frozen=True, slots=True)
class Shipped:
    """A task as it travels.

    Pickled once more, so that a worker settles the package before it imports what the task needs. Passwords travel in
    here, and nowhere else.
    """

    pickled: bytes
    name: str
    passwords: dict[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, task: Task) -> Shipped:
        from lakescope.sources.databases import secrets

        return cls(pickle.dumps(task), type(task).__name__, secrets.passwords())

    @property
    def __name__(self) -> str:
        """What Spark's pages call the step: the task, not the parcel it travels in."""
        return self.name

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        settle()
        from lakescope.sources.databases import secrets

        secrets.learn(self.passwords)
        began = time.process_time()
        task: Task = pickle.loads(self.pickled)
        yield from task(batches)
        _tell_cpu(task, time.process_time() - began)
        _spare_modules()


#: Folder of the staging area in which tasks note the CPU seconds they took.
_CPU = "cpu"


def _tell_cpu(task: Task, seconds: float) -> None:
    """Note what a task took, if it has a staging area; a task that was tried twice was paid for twice."""
    staging = getattr(task, "staging", None)
    if staging is not None:
        folder = Path(staging) / _CPU
        with contextlib.suppress(OSError):  # a figure less
            folder.mkdir(exist_ok=True)
            (folder / uuid.uuid4().hex).write_text(repr(seconds), "ascii")


def spent(staging: Path) -> float | None:
    """CPU seconds of the Python workers since the last time this was asked; None if no task told."""
    told = list((staging / _CPU).glob("*"))
    seconds = [float(each.read_text("ascii") or 0) for each in told]
    for each in told:
        each.unlink(missing_ok=True)
    return round(sum(seconds), 4) if told else None


_FIRST_TASKS = 3
_tasks = itertools.count()


def _spare_modules() -> None:
    """Take what a worker has loaded out of the reach of the garbage collector.

    A worker of Spark collects garbage after every task, and looking at all of numba and pyarrow takes it longer
    (50 ms) than most of our tasks. What the first tasks leave behind is modules and compiled kernels, which stay.
    """
    if next(_tasks) < _FIRST_TASKS:
        gc.collect()
        gc.freeze()


def ship_package(session: SparkSession) -> None:
    """Make the package importable in the workers of a session that is not local."""
    if _shares_interpreter(session) or isinstance(_loader(), zipimporter):  # run from a zip: it came with --py-files
        return
    try:
        session.addArtifacts(str(package_archive()), pyfile=True)
    except Exception as error:
        raise BuildFailed(
            f"could not send the package to the executors: {scrub(str(error))}",
            hint="install lakescope on the cluster's Python, or pass it with --py-files",
        ) from error


def _shares_interpreter(session: SparkSession) -> bool:
    if is_connect(session):
        return False
    master = session.conf.get("spark.master", "") or ""
    return master == "local" or master.startswith("local[")


@functools.cache
def package_archive() -> Path:
    """The package's own code as an importable zip, named by its content; the same bytes wherever the same code lies.

    It stays as long as this process: executors that join a session after the build still ask the driver for it.
    """
    folder = Path(tempfile.mkdtemp(prefix="lakescope-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    root = Path(__file__).parents[1]
    draft = folder / "draft.zip"
    with zipfile.ZipFile(draft, "w") as target:
        for path in sorted(root.rglob("*")):
            if path.is_file() and path.suffix not in _CACHES:
                name = (Path(_PACKAGE) / path.relative_to(root)).as_posix()
                target.writestr(zipfile.ZipInfo(name), path.read_bytes(), zipfile.ZIP_DEFLATED)
    return draft.rename(folder / f"{_PACKAGE}-{_digest(draft)}.zip")


@functools.cache
def settle() -> None:
    """In a worker that imported the package from a zip: unpack it, and import the rest of the package from there."""
    loader = _loader()
    if not isinstance(loader, zipimporter):
        return
    folder = _unpacked(Path(loader.archive), loader.prefix) / loader.prefix
    for name, module in list(sys.modules.items()):
        if (name == _PACKAGE or name.startswith(_PACKAGE + ".")) and hasattr(module, "__path__"):
            module.__path__ = [str(folder.joinpath(*name.split(".")))]


def _loader() -> object:
    return getattr(sys.modules[_PACKAGE].__spec__, "loader", None)


def _unpacked(archive: Path, prefix: str) -> Path:
    """The folder that holds the unpacked zip.

    Workers that unpack at the same time rename the same content into place.
    """
    name = _digest(archive)
    refused: OSError | RuntimeError | None = None
    for place in (_code_folder, Path.cwd):
        try:
            parent = place()
            parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if parent.stat().st_uid != os.getuid():
                raise PermissionError(f"{parent} belongs to another user")
            return _unpack(archive, prefix, parent / name)
        except (OSError, RuntimeError) as error:  # RuntimeError: this user has no home directory
            refused = error
    raise BuildFailed(
        f"a worker found no place to unpack {archive.name}: {refused}",
        hint="point XDG_CACHE_HOME of the executors at a directory they can write to",
    )


def _unpack(archive: Path, prefix: str, folder: Path) -> Path:
    if folder.is_dir():
        return folder
    draft = Path(tempfile.mkdtemp(prefix=".new-", dir=folder.parent))
    try:
        with zipfile.ZipFile(archive) as source:
            source.extractall(draft, [name for name in source.namelist() if name.startswith(f"{prefix}{_PACKAGE}/")])
        draft.rename(folder)
    except OSError:
        if not folder.is_dir():  # else another worker was first
            raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return folder


def _code_folder() -> Path:
    return cache_folder() / "code"


def _digest(archive: Path) -> str:
    return hashlib.sha256(archive.read_bytes()).hexdigest()[:16]
