"""What a file holds, in a few characters: tells a file that was touched from one that was changed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import xxhash

from lakescope.sources.databases.journals import journals_of
from lakescope.sources.file_types import sniff
from lakescope.sources.io import files

if TYPE_CHECKING:
    from lakescope.sources.model import Unit

#: Larger files are known by their time alone: to read them twice would cost as much as to scan them.
MOST_BYTES = 64 * 1024 * 1024
_PIECE = 1 << 20


def content_of(unit: Unit) -> str | None:
    """The content of the file that a unit has just read whole; None if it is not local, large, or changed meanwhile."""
    modified = unit.options.get("source", {}).get("modified")
    return None if modified is None else content_at(unit.uri, modified)


def content_at(uri: str, modified: float) -> str | None:
    """Size and XXH64 of a local file, as long as it was changed last at a known time.

    None of a database that has a log or a journal beside it: what the file holds does not tell what it holds.
    """
    path = files.local_path(uri)
    if path is None:
        return None
    try:
        with files.open_local(path) as stream:
            size = os.fstat(stream.fileno()).st_size
            if size > MOST_BYTES:
                return None
            digest, left = xxhash.xxh64(), size
            piece = stream.read(_PIECE)
            if sniff(piece)[0] == "sqlite" and journals_of(uri):
                return None
            # Not to its end, which whoever appends to it moves on.
            while piece and left >= 0:
                digest.update(piece)
                left -= len(piece)
                piece = stream.read(_PIECE)
            after = os.fstat(stream.fileno())
    except OSError:
        return None
    return f"{size}-{digest.hexdigest()}" if after.st_mtime == modified and not left else None
