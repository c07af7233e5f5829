"""Opening the index that a command names."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lakescope.lake import Lake


def open_lake(path: str, processes: int | None = None) -> Lake:
    """The lake of an index; how long it took is measured."""
    from lakescope.stages import COMMAND

    with COMMAND.measure("open"):
        from lakescope.lake import Lake

        return Lake.open(path, processes)
