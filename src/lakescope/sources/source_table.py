"""A table of a source: its name in the lake, where it lies, and of which files it consists."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from lakescope.sources.io import files

#: How the folders of a partitioned table spell a column: ``year=2021``.
PARTITION = re.compile(r"([^=]+)=(.*)", re.DOTALL)
#: What Hive writes for a column without a value.
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, slots=True)
class SourceTable:
    """A table that was found: its name in the lake, where it is and of what files it consists."""

    table: str
    uri: str
    format: str
    compression: str | None
    size: int
    modified: float
    parts: tuple[tuple[str, int], ...]
    version: str = ""

    def options(self, uri: str) -> dict[str, Any]:
        """Options every unit of a part needs: ``constants`` holds the columns its path spells (``year=2021/``)."""
        if uri == self.uri:
            return {}
        constants: dict[str, str | None] = {}
        for folder in files.relative(uri, self.uri).split("/")[:-1]:
            if match := PARTITION.fullmatch(folder):
                value = unquote(match[2])
                constants[files.readable(unquote(match[1]))] = None if value == _NO_VALUE else files.readable(value)
        return {"constants": constants} if constants else {}
