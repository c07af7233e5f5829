r"""Where a table lies, as text that Arrow and JSON take and from which the very file can be opened again.

A name of a file is bytes, and need not be UTF-8. One that is not is shown with escapes (``caf\xe9.csv``), but another
file may really be called that; what is kept of it is therefore a ``file://`` URI (``caf%E9.csv``).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from urllib.parse import quote

from lakescope.sources.databases.postgres_uri import is_postgres
from lakescope.sources.io import files

#: What is between a file and a part of it: a sheet, or a table of a database.
MARK = "::"
#: What means more than itself in a location.
_MEANINGFUL = re.compile(r"::|[*?\[]")
_WILDCARDS = "*?[]"
_NUMBER = re.compile(r"~\d+$")


class TableLocation(str):
    """The location of a table of a lake, which knows the name of the table.

    It is what errors should name: where a lake lies is no business of who only asks.
    """

    __slots__ = ("table",)
    table: str

    def __new__(cls, location: str, table: str) -> TableLocation:
        self = super().__new__(cls, location)
        self.table = table
        return self

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        return str(self), self.table


def catalogue_uri(location: str) -> str:
    """A location without secrets as the catalogue keeps it: two files never get the same."""
    path = files.local_path(location)
    if path is None:
        return files.display(location)
    return path if files.is_unicode(path) else file_uri(path)


def catalogue_pattern(location: str) -> str:
    """A location that may hold wildcards, as the manifest keeps it."""
    path = files.local_path(location)
    return catalogue_uri(location) if path is None or files.is_unicode(path) else file_uri(path, _WILDCARDS)


def file_uri(path: str, safe: str = "") -> str:
    """The ``file://`` URI of a local path; characters of it that are ``safe`` keep their meaning."""
    return f"file://{quote(os.fsencode(path), safe=f'/{safe}')}"


def is_file_uri(location: str) -> bool:
    """Whether a location is a URI of a local path."""
    return location[:7].lower() == "file://"


def located(table: str, uri: str) -> TableLocation:
    """Where a table of the catalogue lies: its file, and within that the sheet or the database's table.

    Names that mean more in a location than themselves (``a::b.csv``, ``a[1].csv``) are percent-encoded in a URI.
    """
    part = "" if is_postgres(uri) else part_name(table, uri)
    path = files.local_path(uri)
    if path is not None and path.startswith("/"):
        misread = _MEANINGFUL.search(path) or (part and os.path.lexists(f"{path}{MARK}{part}"))
        uri = file_uri(path) if misread else uri
    return TableLocation(f"{uri}{MARK}{part}" if part else uri, table)


def part_name(table: str, uri: str) -> str:
    """What follows the name of the file in the name of a table: a sheet, or a table of a database.

    Both may hold the mark between them themselves.
    """
    path = f"/{files.readable(files.path_of(uri))}"
    if MARK not in table or _ends_in(path, table):
        return ""
    return next((table[mark.end() :] for mark in re.finditer(MARK, table) if _ends_in(path, table[: mark.start()])), "")


def _ends_in(path: str, name: str) -> bool:
    """Whether a table that is a file was named after its path: maybe below the name of its root, maybe numbered."""
    return any(
        bool(each) and path.endswith(f"/{each}")
        for bare in (name, _NUMBER.sub("", name))
        for each in (bare, bare.partition("/")[2])
    )


def readings(location: str) -> Iterator[tuple[str, str]]:
    """Ways to read a location, likelier ones first: as a file, or as a part of one.

    In a ``file://`` URI the first mark is the one before the part, for names of files can be written without.
    """
    marks = [] if is_postgres(location) else [mark.start() for mark in re.finditer(MARK, location)]
    parts = [(location[:place], location[place + len(MARK) :]) for place in marks]
    yield from (*parts, (location, "")) if is_file_uri(location) else ((location, ""), *reversed(parts))
