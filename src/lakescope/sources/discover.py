"""Finding tables: from the locations a user names to the list of tables that are there.

A table is a file, or a directory that is one table: it carries a mark (``_SUCCESS``, ``part-00000``), its name ends
like a data file (``events.parquet/``), it is partitioned (``year=2021/``), or it is a table of Delta or Iceberg.
Whatever is passed over is counted and told.
"""

from __future__ import annotations

import re
import stat
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

import xxhash

from lakescope.sources import file_types as formats
from lakescope.sources.databases import postgres_uri
from lakescope.sources.databases.journals import journals_of
from lakescope.sources.file_types import Judgement, Name
from lakescope.sources.io import files, walk
from lakescope.sources.io.files import Entry
from lakescope.sources.io.locations import is_file_uri
from lakescope.sources.io.walk import Listing, matches
from lakescope.sources.lakehouses import table_formats
from lakescope.sources.model import Problem
from lakescope.sources.source_table import PARTITION, SourceTable

_GLOB = re.compile(r"[*?\[]")
_REMOTE_GLOB = re.compile(r"[*\[]")
_PART = re.compile(r"part-(?:[rm]-)?\d+|part\.\d+(?:\.|$)")
#: Remote files whose heads are read at the same time. Not measured: they wait for the network.
_THREADS = 16


@dataclass(slots=True)
class _Root:
    """What one location holds."""

    label: str
    tables: list[SourceTable] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def discover(locations: Sequence[str]) -> tuple[list[SourceTable], list[Problem]]:
    """Find the tables of all locations: directories, globs, single files, URIs. Order and names are deterministic."""
    roots: list[_Root] = []
    seen: set[str] = set()
    for location in locations:
        root = _look(str(location))
        repeated = [found for found in root.tables if found.uri in seen]
        if repeated:
            detail = f"{len(repeated)} tables were already found under another location, {repeated[0].table!r} for one"
            root.problems.append(Problem(root.label, "info", "found-twice", detail, len(repeated)))
            root.tables = [found for found in root.tables if found.uri not in seen]
        seen.update(found.uri for found in root.tables)
        roots.append(root)
    _make_names_unique(roots)
    tables = sorted((found for root in roots for found in root.tables), key=lambda found: found.table)
    return tables, [problem for root in roots for problem in root.problems]


def is_unlisted(problem: Problem, location: str) -> bool:
    """Whether a problem says that nothing is known of a whole location."""
    return problem.code == "unreadable" and problem.detail.startswith(_unlisted(location))


def _unlisted(location: str) -> str:
    return f"{files.display(_split_glob(location)[0])} cannot be listed: "


def _look(location: str) -> _Root:
    """Everything at one location."""
    if postgres_uri.is_postgres(location):
        from lakescope.sources.databases.postgres_tables import look

        there = look(location)
        return _Root(there.label, there.tables, there.problems)
    base, pattern = _split_glob(location)
    label = _label(base)
    root = _Root(label)
    try:
        entry = files.find(base)
        if entry is None:
            is_local = files.local_path(base) is not None
            listing = (walk.walk_local if is_local else walk.walk_remote)(base, label, pattern)
        else:
            listing = _single(entry, label)
    except FileNotFoundError:
        detail = f"there is nothing at {files.display(location)}"
        root.problems.append(Problem(label, "error", "not-found", detail))
        return root
    except Exception as error:
        # Any file system may answer here, in its own words: no access, no network, no such bucket, a missing package.
        detail = f"{_unlisted(location)}{files.reason_of(error)}"
        root.problems.append(Problem(label, "error", "unreadable", detail))
        return root
    if pattern and not listing.files:
        listing.tell("", "error", "not-found", f"nothing matches {files.display(location)}")
    root.tables = _tables(base, listing, pattern, single=entry is not None)
    _tell_hidden(listing)
    root.problems = listing.problems
    return root


def _split_glob(location: str) -> tuple[str, list[str]]:
    """Absolute location without its glob, and the components of the glob."""
    path = files.local_path(location)
    glob = _GLOB if path is not None else _REMOTE_GLOB
    if path is not None and is_file_uri(location):
        # What is encoded there is no wildcard.
        base, pattern = _cut_at(location, _GLOB)
        names = [unquote(part, errors="surrogateescape") for part in pattern]
        return str(Path(files.local_path(base) or "/").absolute()), names
    if path is not None:
        if path.startswith("~") and not _exists(path):
            with suppress(RuntimeError):  # no such user: the name stays what it is
                path = str(Path(path).expanduser())
        location = str(Path(path).absolute())
        if _exists(location):
            return location, []
    place, mark, query = (location, "", "") if path is not None else location.partition("?")
    base, pattern = _cut_at(place, glob)
    return base + mark + query, pattern


def _cut_at(place: str, glob: re.Pattern[str]) -> tuple[str, list[str]]:
    """What is before the first component with a wildcard, and the components from there on."""
    match = glob.search(place)
    if match is None:
        return place, []
    cut = place.rindex("/", 0, match.start()) + 1
    return place[:cut], [part for part in place[cut:].split("/") if part]


def _exists(path: str) -> bool:
    try:
        return Path(path).exists()
    except (OSError, RuntimeError, ValueError):
        return False


def _label(location: str) -> str:
    """The name of a root."""
    path = files.local_path(location)
    name = PurePosixPath(files.path_of(location)).name
    if path is not None and name in ("", ".", ".."):
        name = Path(path).resolve().name
    return files.readable(name) or "root"


def _single(entry: Entry, label: str) -> Listing:
    """A location that is one file."""
    listing = Listing(label)
    path = files.local_path(entry.uri)
    if path is not None and not stat.S_ISREG(Path(path).stat().st_mode):
        listing.tell("", "warning", "special-file", "not a regular file but a pipe, socket or device: not opened")
    else:
        listing.files.append(entry)
    return listing


def _tables(base: str, listing: Listing, pattern: Sequence[str], *, single: bool) -> list[SourceTable]:
    """Group the files of a listing into tables."""
    groups: dict[str, list[Entry]] = defaultdict(list)
    alone: list[Entry] = []
    marked = listing.marked | {_folder(entry) for entry in listing.files if _PART.match(PurePosixPath(entry.path).name)}
    formatted = {} if single else table_formats.roots(listing)
    inside: dict[str, list[Entry]] = {folder: [] for folder in formatted}
    for entry in listing.files:
        if (root := table_formats.root_of(entry.path, formatted)) is not None:
            inside[root].append(entry)
            continue
        folder = None if single else _table_folder(entry.path, base, marked)
        if folder is None:
            alone.append(entry)
        else:
            groups[folder].append(entry)
    judged = _judge_all(alone, groups)
    documents: list[str] = []
    found = [
        SourceTable(
            *(files.readable(entry.path), entry.uri, judgement.format, judgement.compression),
            *(entry.size, entry.modified, ((entry.uri, entry.size),), _version([entry], judgement.format)),
        )
        for entry in alone
        if (judgement := _accept(listing, entry, judged[entry.uri], documents)) is not None
    ]
    for folder in sorted(groups):
        found += _one_table(base, folder, groups[folder], judged, listing, documents)
    for folder in sorted(formatted):
        own = _files_of_format(folder, inside[folder], listing)
        if own or matches(folder.split("/"), pattern):
            found += _formatted_table(base, folder, formatted[folder], own, listing)
    _tell_documents(listing, documents)
    return found


def _folder(entry: Entry) -> str:
    return entry.path.rpartition("/")[0]


def _table_folder(path: str, base: str, marked: set[str]) -> str | None:
    """The topmost directory (relative to the root) that makes this file part of one table, if any."""
    folders = path.split("/")[:-1]
    names = [PurePosixPath(files.path_of(base)).name, *folders]
    for depth, name in enumerate(names):
        below = folders[depth:]
        here = "/".join(folders[:depth])
        promised = Name.of(name)
        if promised.format in formats.JOINABLE and promised.extension not in formats.VAGUE:
            return here
        if below and all(PARTITION.fullmatch(folder) for folder in below):
            return here
        if not below and here in marked:
            return here
    return None


def _judge_all(alone: Iterable[Entry], groups: dict[str, list[Entry]]) -> dict[str, Judgement | Exception]:
    """What every file is. Remote heads are fetched side by side; of a table with remote parts only one per ending."""
    asked: list[Entry] = list(alone)
    same: dict[str, str] = {}
    for entries in groups.values():
        first: dict[Name, str] = {}
        for entry in entries:
            name = Name.of(PurePosixPath(entry.path).name)
            if files.local_path(entry.uri) is None and name.format and name in first and entry.size:
                same[entry.uri] = first[name]
            else:
                first.setdefault(name, entry.uri)
                asked.append(entry)
    if any(files.local_path(entry.uri) is None for entry in asked[:1]):
        with ThreadPoolExecutor(_THREADS) as pool:
            judged = dict(zip((entry.uri for entry in asked), pool.map(_judge, asked), strict=True))
    else:
        judged = {entry.uri: _judge(entry) for entry in asked}
    return judged | {uri: judged[first_uri] for uri, first_uri in same.items()}


def _judge(entry: Entry) -> Judgement | Exception:
    """What one file is, from its name and its head."""
    name = Name.of(PurePosixPath(entry.path).name)
    if name.document:
        return Judgement("document")
    try:
        head = files.read_head(entry.uri, formats.HEAD_BYTES) if entry.size else b""
        _, compression = formats.sniff(head)
        if not head:
            compression = name.compression
        elif compression is not None and name.format is None:
            head = files.read_head(entry.uri, formats.HEAD_BYTES, compression)
        elif compression is not None:
            head = b""
        judgement = replace(formats.judge(name, head), compression=compression)
        if compression != name.compression:
            packing = f"compressed with {compression}" if compression else "not compressed"
            judgement = replace(judgement, mismatch=judgement.mismatch or packing)
        return _look_into_zip(entry, judgement) if judgement.format == "zip" else judgement
    except Exception as error:  # whatever a remote file system raises: the file is unreadable, the lake is not
        return error


def _look_into_zip(entry: Entry, judgement: Judgement) -> Judgement:
    """A zip file is a workbook, or an archive of something else."""
    name = Name.of(PurePosixPath(entry.path).name)
    if name.format == "excel" or judgement.compression:
        return replace(judgement, kind="table" if name.format == "excel" else "unknown", format="excel", mismatch="")
    try:
        with files.open_random(entry.uri) as source, zipfile.ZipFile(source) as archive:
            names = set(archive.namelist())
    except (zipfile.BadZipFile, ValueError, EOFError):
        return replace(judgement, kind="unknown")
    if names & {"xl/workbook.xml", "xl/workbook.bin"} or {"content.xml", "mimetype"} <= names:
        return replace(judgement, format="excel", mismatch="an Excel workbook" if name.format else "")
    return replace(judgement, kind="unknown")


def _accept(listing: Listing, entry: Entry, judgement: Judgement | Exception, documents: list[str]) -> Judgement | None:
    """Tell what is odd about a file; None if it is not a table."""
    name = Name.of(PurePosixPath(entry.path).name)
    if isinstance(judgement, Exception):
        reason = getattr(judgement, "strerror", None) or files.reason_of(judgement)
        listing.tell(entry.path, "error", "unreadable", f"it cannot be read: {reason}")
    elif judgement.kind == "document":
        documents.append(entry.path)
    elif judgement.kind == "pointer":
        listing.tell(entry.path, "error", "unreadable", "a Git LFS pointer, not the data: run 'git lfs pull' first")
    elif judgement.kind == "unknown":
        listing.tell(entry.path, "warning", "unknown-format", formats.why_unknown(name, judgement))
    else:
        if judgement.mismatch:
            ending = PurePosixPath(entry.path).suffix
            detail = f"the name ends in {files.readable(ending)} but the content is {judgement.mismatch}: read as that"
            listing.tell(entry.path, "warning", "wrong-extension", detail)
        return judgement
    return None


def _one_table(
    base: str,
    folder: str,
    entries: list[Entry],
    judged: dict[str, Judgement | Exception],
    listing: Listing,
    documents: list[str],
) -> list[SourceTable]:
    """A directory that is one table: the files of its commonest format, in the order of their paths."""
    by_format: dict[tuple[str, str | None], list[Entry]] = defaultdict(list)
    strangers: list[SourceTable] = []
    filled = [entry for entry in entries if entry.size] or entries
    for entry in filled:
        judgement = _accept(listing, entry, judged[entry.uri], documents)
        if judgement is not None:
            by_format[judgement.format, judgement.compression].append(entry)
    name = files.readable(folder) or listing.label
    if len(filled) < len(entries):
        empty = len(entries) - len(filled)
        listing.tell(name, "info", "empty-parts", f"{empty} files of the table are empty and were passed over", empty)
    joinable = [key for key in by_format if key[0] in formats.JOINABLE]
    weight = {key: (len(by_format[key]), sum(entry.size for entry in by_format[key]), str(key)) for key in joinable}
    main = max(joinable, key=weight.__getitem__, default=None)
    for key in sorted(by_format, key=str):
        parts = by_format[key]
        if key == main:
            continue
        strangers += [
            SourceTable(
                files.readable(e.path), e.uri, *key, e.size, e.modified, ((e.uri, e.size),), _version([e], key[0])
            )
            for e in parts
        ]
    if main is None:
        return strangers
    if strangers:
        detail = f"{len(strangers)} files differ in format from the other parts: each is a table of its own"
        listing.tell(name, "warning", "mixed-formats", detail, len(strangers))
    parts = by_format[main]
    table = SourceTable(
        *(name, files.child(base, folder), *main),
        *(sum(entry.size for entry in parts), max(entry.modified for entry in parts)),
        tuple((entry.uri, entry.size) for entry in parts),
        _version(parts, main[0]),
    )
    return [table, *strangers]


def _files_of_format(folder: str, entries: list[Entry], listing: Listing) -> list[Entry]:
    """The files of a table of Delta or Iceberg among those in its folder; tells of the others."""
    begin = len(folder) + 1 if folder else 0
    strays = [path for entry in entries if table_formats.is_stray(path := entry.path[begin:])]
    if strays:
        detail = f"files that are neither data nor metadata of the table were passed over, {len(strays)} in all: "
        listing.tell(folder, "warning", "stray-files", detail + _some(strays), len(strays))
    return [entry for entry in entries if not table_formats.is_stray(entry.path[begin:])]


def _formatted_table(base: str, folder: str, form: str, entries: list[Entry], listing: Listing) -> list[SourceTable]:
    """A directory that is a table of Delta or Iceberg; which of its files count is seen when it is planned."""
    name = files.readable(folder) or listing.label
    uri = files.child(base, folder) if folder else base
    try:
        state = table_formats.state_of(uri, form)
    except Exception as error:  # a log that is damaged, or whatever a remote file system raises
        listing.tell(name, "error", "table-format", f"its state cannot be read: {files.reason_of(error)}")
        return []
    size = sum(entry.size for entry in entries if entry.path.endswith(".parquet"))
    return [SourceTable(name, uri, form, None, size, state.modified, ((uri, size),), state.version)]


def _version(entries: Iterable[Entry], form: str) -> str:
    """What tells a later state of files from this one: paths, sizes, times, the format; of SQLite also its logs."""
    digest = xxhash.xxh64(form.encode())
    for entry in entries:
        if form == "sqlite" and files.local_path(entry.uri) is not None:
            for log in journals_of(entry.uri):
                digest.update(f"\0{log.path}\0{log.size}\0{log.modified!r}".encode("utf-8", "surrogatepass"))
        digest.update(f"\0{entry.path}\0{entry.size}\0{entry.modified!r}".encode("utf-8", "surrogatepass"))
    return str(digest.hexdigest())


def _tell_hidden(listing: Listing) -> None:
    if listing.hidden:
        count, names = len(listing.hidden), _some(listing.hidden)
        detail = f"hidden names (starting with '.' or '_') were passed over, {count} in all: {names}"
        listing.tell("", "info", "hidden-files", detail, len(listing.hidden))


def _tell_documents(listing: Listing, documents: list[str]) -> None:
    if documents:
        detail = f"documents, code and pictures are not tables, {len(documents)} in all: {_some(documents)}"
        listing.tell("", "info", "not-a-table", detail, len(documents))


def _some(paths: list[str]) -> str:
    shown = ", ".join(repr(files.readable(path)) for path in paths[:3])
    return shown if len(paths) <= 3 else f"{shown}, ..."


def _make_names_unique(roots: list[_Root]) -> None:
    """Tables of the same name in two roots get the root's name in front; what still collides is numbered."""
    holders = Counter(name for root in roots for name in {found.table for found in root.tables})
    used: set[str] = set()
    for label, root in zip(_numbered([root.label for root in roots]), roots, strict=True):
        renamed: list[tuple[str, str]] = []
        for index, found in enumerate(root.tables):
            wanted = unique = found.table if holders[found.table] == 1 else f"{label}/{found.table}"
            number = 2
            while unique in used or (unique != found.table and holders[unique] == 1):
                unique, number = f"{wanted}~{number}", number + 1
            used.add(unique)
            if unique != found.table:
                renamed.append((found.table, unique))
                root.tables[index] = replace(found, table=unique)
        if renamed:
            old, new = renamed[0]
            detail = f"{len(renamed)} tables share their name with another and were renamed, {old!r} to {new!r} for one"
            root.problems.append(Problem(label, "info", "name-collision", detail, len(renamed)))


def _numbered(labels: list[str]) -> list[str]:
    seen: Counter[str] = Counter()
    result = []
    for label in labels:
        seen[label] += 1
        result.append(label if seen[label] == 1 else f"{label}~{seen[label]}")
    return result
