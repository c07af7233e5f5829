"""Opening the index that a command names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lakescope.lake import Lake


def open_lake(path: str, processes: int | None = None) -> Lake:
    """The lake of an index; how long it took is measured."""
    from lakescope.stages import COMMAND

    with COMMAND.measure("open"):
        from lakescope.lake import Lake

        return Lake.open(path, processes)


def is_index(path: str) -> bool:
    """Whether a path is that of an index, and not of a table."""
    return Path(path, "manifest.json").exists()
