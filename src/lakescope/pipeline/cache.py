"""Where this user keeps what may be made again: unpacked code, start scripts."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """The package's folder in the user's cache; RuntimeError if this user has no home."""
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (named if named.is_absolute() else Path.home() / ".cache") / "lakescope"
