"""What SQLite keeps beside a database: rows that are committed and not in it yet, or in it and not committed.

A log (``-wal``) holds transactions that the file lacks, a journal (``-journal``) what the file was like before one that
has not ended. Both lie beside the file itself, not beside a link to it.
"""

from __future__ import annotations

import stat
from contextlib import suppress
from pathlib import Path

from lakescope.sources.io import files
from lakescope.sources.io.files import Entry

_ENDINGS = ("-wal", "-journal")


def journals_of(uri: str) -> list[Entry]:
    """Logs and journals of the database at a location, without those that are empty."""
    found = []
    path = files.local_path(uri)
    for ending in _ENDINGS:
        with suppress(FileNotFoundError):
            entry = files.find(files.beside(uri, ending)) if path is None else _local(path, ending)
            if entry is not None and entry.size:
                found.append(entry)
    return found


def _local(path: str, ending: str) -> Entry | None:
    """What lies beside a file; nothing can where the name would be too long."""
    try:
        place = Path(f"{Path(path).resolve()}{ending}")
        info = place.stat()
    except OSError:
        return None
    return Entry(str(place), ending, info.st_size, info.st_mtime) if stat.S_ISREG(info.st_mode) else None
