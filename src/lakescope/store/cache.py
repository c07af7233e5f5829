"""Where this user keeps what may be made again: unpacked code, start scripts, blocks of indexes that lie elsewhere."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

from lakescope.errors import BadRequest

#: Bytes of blocks that are kept unless ``LAKESCOPE_CACHE_SIZE`` says otherwise.
_BYTES = 10 << 30
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def cache_folder() -> Path:
    """The package's folder in the user's cache; RuntimeError if this user has no home."""
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (named if named.is_absolute() else Path.home() / ".cache") / "lakescope"


def blocks_folder() -> Path:
    """Where blocks are kept: ``LAKESCOPE_CACHE``, or a folder in the user's cache."""
    named = os.environ.get("LAKESCOPE_CACHE")
    return Path(named) if named else cache_folder() / "blocks"


def blocks_bytes() -> int:
    """How many bytes of blocks are kept: ``LAKESCOPE_CACHE_SIZE``, e.g. ``20GB``."""
    given = os.environ.get("LAKESCOPE_CACHE_SIZE", "")
    if not given:
        return _BYTES
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?", given.strip(), re.IGNORECASE)
    if not found:
        raise BadRequest(f"LAKESCOPE_CACHE_SIZE is no size: {given!r}", hint="20GB, for example")
    return int(float(found[1]) * _UNITS[found[2].upper()])


def trim(folder: Path, most: int, keep: set[str]) -> int:
    """Remove the files that were used longest ago until no more than ``most`` bytes are left; returns those freed.

    Files of the names to ``keep`` are in use here. A process that has another one open goes on with what it has mapped.
    """
    used: dict[Path, float] = {}
    sizes: dict[Path, int] = {}
    for path in folder.glob("*/*"):
        with contextlib.suppress(OSError):
            info, what = path.stat(), path.with_suffix("")
            sizes[what] = sizes.get(what, 0) + 512 * info.st_blocks
            used[what] = max(used.get(what, 0.0), info.st_mtime)
    total, freed = sum(sizes.values()), 0
    for what in sorted(sizes, key=lambda each: (used[each], each)):
        if total - freed <= most:
            break
        if what.name not in keep:
            # What says which blocks are there goes first: a file without it has none.
            for path in sorted(what.parent.glob(f"{what.name}.*")):
                with contextlib.suppress(OSError):
                    path.unlink()
            freed += sizes[what]
    return freed
