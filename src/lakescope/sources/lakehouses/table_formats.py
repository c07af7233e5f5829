"""Folders that are tables of Delta or Iceberg: their data files are one table, and not all of them count.

A folder with ``_delta_log/`` is a Delta table, one with ``metadata/*.metadata.json`` an Iceberg table. Which state is
the current one is seen from the last commit in Delta, and from the current metadata file in Iceberg; no package is
needed to find a table, or to see that it has not changed.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lakescope.errors import SourceError
from lakescope.sources.io import files
from lakescope.sources.io.files import Entry
from lakescope.sources.io.limits import check_metadata
from lakescope.sources.io.walk import LOG, METADATA, STATE, Listing
from lakescope.untrusted import parsed

_COMMIT = re.compile(r"(\d{20})\.(?:json|checkpoint(?:\..*)?\.(?:parquet|json))")
#: Ends of names of data files and of what deletes their rows; of metadata files.
_DATA = (".parquet", ".orc", ".avro", ".puffin", ".bin")
_ABOUT = (".json", ".json.gz", ".avro", ".puffin", ".stats", ".text", ".crc")
_HINT = "version-hint.text"
#: The end of names of deletion vectors of Delta.
_VECTOR = ".bin"


@dataclass(frozen=True, slots=True)
class TableState:
    """The current state of a table: what tells it from a later one, when it began, and for Iceberg where it is told."""

    version: str
    modified: float
    metadata: str = ""


def roots(listing: Listing) -> dict[str, str]:
    """Folders that are tables of a format, with the format; a table inside another one is part of it."""
    found = listing.formatted
    return {folder: form for folder, form in found.items() if not folder or root_of(folder, found) is None}


def root_of(path: str, folders: dict[str, str]) -> str | None:
    """The table of a format that a file belongs to, if any."""
    parts = path.split("/")
    return next((above for n in range(len(parts)) if (above := "/".join(parts[:n])) in folders), None)


def is_stray(path: str) -> bool:
    """Whether a file, by its path in a table, is neither data nor metadata of it."""
    if path.startswith(f"{METADATA}/") and path.endswith(_ABOUT):
        return False
    return not path.endswith(_DATA)


def state_of(folder: str, form: str) -> TableState:
    """The current state of the table in a folder."""
    return _delta_state(folder) if form == "delta" else _iceberg_state(folder)


def check_files(folder: str, form: str) -> None:
    """Refuse a table whose log or metadata holds anything but its own files, before a library opens them.

    A pipe would make it wait for ever, and links out of a lake are not followed, here as elsewhere.
    """
    path = files.local_path(folder)
    if path is None:
        return
    root, pending = Path(path).resolve(), [Path(path, LOG if form == "delta" else METADATA)]
    if pending[0].is_symlink():
        raise _foreign(pending[0], path)
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(Path(entry.path))
                elif not _is_own(entry, root):
                    raise _foreign(Path(entry.path), path)
                elif entry.name.endswith(".json"):
                    check_metadata(files.readable(entry.name), entry.stat().st_size)


def check_vectors(folder: str) -> None:
    """Refuse a Delta table whose deletion vectors are none of its own files, before a library opens them."""
    path = files.local_path(folder)
    if path is None:
        return
    root, pending = Path(path).resolve(), [path]
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                elif entry.name.endswith(_VECTOR) and not _is_own(entry, root):
                    raise _foreign(Path(entry.path), path)


def _is_own(entry: os.DirEntry[str], root: Path) -> bool:
    """Whether an entry is a regular file, or leads to one inside of the root."""
    try:
        inside = not entry.is_symlink() or Path(entry.path).resolve().is_relative_to(root)
        return inside and entry.is_file()
    except (OSError, RuntimeError):  # a link in a circle is either
        return False


def _foreign(place: Path, folder: str) -> SourceError:
    name = files.readable(place.relative_to(folder).as_posix())
    return SourceError(
        f"{name} is not a file of the table but a link that leaves it, a pipe, a socket or a device: not opened",
        hint="copy what it leads to into the table, or remove it",
        code="table-format",
    )


def _delta_state(folder: str) -> TableState:
    """The last commit: its number, and size and time, since a table that was written anew counts from 0 again."""
    check_files(folder, "delta")
    there = _entries(files.child(folder, LOG))
    commits = [(int(match[1]), entry) for entry in there if (match := _COMMIT.fullmatch(entry.path))]
    if not commits:
        raise SourceError("the log of a Delta table holds no commit", code="damaged")
    # A checkpoint has the number of its commit: making one is no change, so the commit counts as long as it is there.
    number, entry = max(commits, key=lambda each: (each[0], "checkpoint" not in each[1].path, each[1].path))
    return TableState(f"{number}.{entry.size}.{round(entry.modified * 1e6)}", entry.modified)


def commit_of(version: str) -> int:
    """The number of the commit that a version of a Delta table is of."""
    return int(version.partition(".")[0])


def _iceberg_state(folder: str) -> TableState:
    """The metadata file that a hint names, or the one with the highest number; the newest if several have it."""
    check_files(folder, "iceberg")
    place = files.child(folder, METADATA)
    there = {entry.path: entry for entry in _entries(place)}
    hinted = _hinted(place) if _HINT in there else ()
    wanted = [name for name in hinted if name in there]
    if not wanted:
        numbered = {name: int(match[1]) for name in there if (match := STATE.fullmatch(name))}
        wanted = [name for name, number in numbered.items() if number == max(numbered.values())]
    told = {name: _json(files.child(place, name)) for name in sorted(wanted)}
    name = max(told, key=lambda each: (told[each].get("last-updated-ms", 0), each))
    body = told[name]
    version = f"{body.get('current-snapshot-id') or 'none'}.{body.get('current-schema-id', 0)}"
    return TableState(version, body.get("last-updated-ms", 0) / 1000, files.child(place, name))


def metadata_of(folder: str) -> dict[str, Any]:
    """What the current metadata file of an Iceberg table says."""
    return _json(_iceberg_state(folder).metadata)


def _hinted(place: str) -> tuple[str, ...]:
    text = files.read_head(files.child(place, _HINT), 1000).decode("utf-8", "replace").strip()
    return (text, f"v{text}.metadata.json", f"v{text}.gz.metadata.json", f"{text}.metadata.json")


def _json(uri: str) -> dict[str, Any]:
    body: dict[str, Any] = parsed(text_of(uri))
    return body


def text_of(uri: str) -> str:
    """A metadata file, unpacked if its name says so."""
    with files.open_random(uri) as source:
        check_metadata(files.display(uri), source.size())
    with files.open_stream(uri, "gzip" if ".gz" in uri.rpartition("/")[2] else None) as stream:
        return stream.read().decode("utf-8")


def _entries(folder: str) -> list[Entry]:
    """The files right inside a folder."""
    path = files.local_path(folder)
    if path is None:
        return [entry for entry in files.listing(folder) if "/" not in entry.path]
    return [
        Entry(str(each), each.name, (info := each.stat()).st_size, info.st_mtime)
        for each in sorted(Path(path).iterdir())
        if each.is_file()
    ]


def place_of(location: str, root: str) -> str:
    """A location of Iceberg as one of ours: ``file:/a``, ``file:///a`` and ``/a`` are the same."""
    if location.startswith("file:") and not location.startswith("file://"):
        location = location.replace("file:", "file://", 1)
    path = files.local_path(location)
    return files.same_store(location, root) if path is None else path
