"""Listing the files of a location: what is there, what was passed over and why."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from lakescope.sources.io import files
from lakescope.sources.io.files import Entry
from lakescope.sources.model import Problem, Severity

#: What makes a directory a table of Delta or Iceberg: a log, or metadata files of such names.
LOG, METADATA = "_delta_log", "metadata"
STATE = re.compile(r"v?(\d+)(?:-[^/]*)?(?:\.gz)?\.metadata\.json(?:\.gz)?")


@dataclass(slots=True)
class Listing:
    """The files below a root. ``marked`` are directories that say of themselves that they are one table.

    ``formatted`` are those that are a table of Delta or Iceberg, with the format, also where no file of it was asked
    for.
    """

    label: str
    files: list[Entry] = field(default_factory=list)
    marked: set[str] = field(default_factory=set)
    formatted: dict[str, str] = field(default_factory=dict)
    hidden: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def tell(self, path: str, severity: Severity, code: str, detail: str, count: int = 1) -> None:
        """Note a problem with something below the root, or with the root itself if ``path`` is empty."""
        self.problems.append(Problem(files.readable(path) or self.label, severity, code, detail, count))

    def pass_over(self, folder: str, name: str) -> None:
        """Count a hidden name, and heed what it says about its directory."""
        if name == LOG:
            self.formatted[folder] = "delta"
            return
        self.hidden.append(f"{folder}/{name}" if folder else name)
        if name == "_SUCCESS":
            self.marked.add(folder)


def is_hidden(name: str) -> bool:
    """Whether a name is bookkeeping by convention."""
    return name.startswith((".", "_"))


def matches(path: Sequence[str], pattern: Sequence[str], *, partly: bool = False) -> bool:
    """Whether a path, or a directory above it, matches a glob given by its components; ``**`` is any directories.

    ``partly``: whether something below the path could match.
    """
    if not pattern:
        return True
    if pattern[0] == "**":
        return matches(path, pattern[1:], partly=partly) or (bool(path) and matches(path[1:], pattern, partly=partly))
    if not path:
        return partly
    return fnmatchcase(path[0], pattern[0]) and matches(path[1:], pattern[1:], partly=partly)


def walk_local(root: str, label: str, pattern: Sequence[str]) -> Listing:
    """All regular files below a local directory that match the pattern."""
    listing = Listing(label)
    real_root = Path(root).resolve()
    pending = [""]
    while pending:
        folder = pending.pop()
        try:
            with os.scandir(Path(root, folder)) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            if not folder:
                raise
            listing.tell(folder, "error", "unreadable", f"the directory cannot be listed: {error.strerror}")
            continue
        if _is_index(found):
            listing.tell(folder, "info", "lakescope-index", "an index, not data: passed over")
            continue
        for entry in found:
            path = f"{folder}/{entry.name}" if folder else entry.name
            if is_hidden(entry.name):
                listing.pass_over(folder, entry.name)
            elif _is_directory(entry):
                if entry.name == METADATA and _holds_state(entry.path):
                    listing.formatted.setdefault(folder, "iceberg")
                if matches(path.split("/"), pattern, partly=True):
                    pending.append(path)
            elif matches(path.split("/"), pattern):
                _add_local(listing, entry, path, real_root)
    listing.files.sort(key=lambda entry: entry.path)
    return listing


def _holds_state(folder: str) -> bool:
    """Whether a directory holds metadata of an Iceberg table."""
    try:
        with os.scandir(folder) as entries:
            return any(STATE.fullmatch(entry.name) for entry in entries)
    except OSError:
        return False


def _is_index(entries: list[os.DirEntry[str]]) -> bool:
    """Whether a directory is an index of ours, published or being built: users keep them beside their data."""
    paths = {entry.name: entry.path for entry in entries}
    if not {"manifest.json", "segments"} <= paths.keys() and not {".lock", "staging"} <= paths.keys():
        return False
    marks = ((".lock", b"lakescope"), ("manifest.json", b'{\n "format": '))
    return any(name in paths and _begins(paths[name], mark) for name, mark in marks)


def _begins(path: str, mark: bytes) -> bool:
    try:
        with files.open_local(path) as stream:
            return stream.read(len(mark)) == mark
    except OSError:
        return False


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _add_local(listing: Listing, entry: os.DirEntry[str], path: str, real_root: Path) -> None:
    """Add one directory entry that is not a directory: a file, a link, or something that cannot be read."""
    try:
        info = entry.stat()
        if entry.is_symlink() and not _may_follow(listing, entry, path, real_root, stat.S_ISDIR(info.st_mode)):
            return
    except (OSError, RuntimeError) as error:
        # A link in a circle is an OSError or, from Path.resolve, a RuntimeError.
        reason = getattr(error, "strerror", None) or str(error)
        kind = "a link that leads nowhere" if isinstance(error, FileNotFoundError) else reason
        listing.tell(path, "error", "unreadable", f"it cannot be read: {kind}")
        return
    if stat.S_ISREG(info.st_mode):
        listing.files.append(Entry(entry.path, path, info.st_size, info.st_mtime))
    else:
        listing.tell(path, "warning", "special-file", "not a regular file but a pipe, socket or device: not opened")


def _may_follow(listing: Listing, entry: os.DirEntry[str], path: str, real_root: Path, directory: bool) -> bool:
    """Whether a symbolic link is read. One to a directory inside the root is not: that is found under its own name."""
    target = Path(entry.path).resolve(strict=True)
    if not target.is_relative_to(real_root):
        detail = f"a link that leaves the root, to {files.readable(str(target))}: not followed; name it to index it"
        listing.tell(path, "warning", "symlink-outside", detail)
        return False
    if not directory:
        return True
    if Path(entry.path).parent.resolve().is_relative_to(target):
        listing.tell(path, "warning", "symlink-loop", "a link to a directory above itself: not followed")
    else:
        inside = files.readable(target.relative_to(real_root).as_posix())
        listing.tell(path, "info", "symlink-inside", f"a link to the directory {inside}: indexed there, not twice")
    return False


def walk_remote(root: str, label: str, pattern: Sequence[str]) -> Listing:
    """All files below a remote directory that match the pattern."""
    listing = Listing(label)
    passed_over: set[tuple[str, str]] = set()
    for entry in files.listing(root):
        parts = entry.path.split("/")
        hidden = next((place for place, name in enumerate(parts) if is_hidden(name)), None)
        if hidden is not None:
            passed_over.add(("/".join(parts[:hidden]), parts[hidden]))
            continue
        if len(parts) > 1 and parts[-2] == METADATA and STATE.fullmatch(parts[-1]):
            listing.formatted.setdefault("/".join(parts[:-2]), "iceberg")
        if parts[-1] and matches(parts, pattern):
            listing.files.append(entry)
    for folder, name in sorted(passed_over):
        listing.pass_over(folder, name)
    return listing
