"""What the bulk writers report back."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Written:
    """Files, data rows (headers not counted) and bytes that were written at ``path``."""

    path: Path
    files: int
    rows: int
    bytes: int
