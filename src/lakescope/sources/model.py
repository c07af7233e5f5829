"""What a source hands to the scan: tables cut into work units, units read as bounded batches of text cells.

A :class:`Unit` is small, JSON-friendly and self-contained: the driver lists units, a worker opens its unit by itself.
A :class:`Batch` is a bounded piece of a unit. Whatever the source, every cell is a slice of a byte buffer: a CSV cell
points into the file's own bytes, a typed Arrow cell into its canonical text. One kernel then serves all sources.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from lakescope.values.text import MISSING, TextColumn

__all__ = ["MISSING", "Batch", "Problem", "Report", "Severity", "TextColumn", "Unit"]

Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True, slots=True)
class Problem:
    """Something about a table worth telling: it could not be read (error), or it was odd (warning, info).

    ``code`` is a stable word (``short-rows``); ``detail`` says what, and what was done about it. ``count`` adds up when
    units of one table report the same code and detail, so a detail holds nothing that depends on where a file was cut:
    no numbers of rows, no places in a unit.
    """

    table: str
    severity: Severity
    code: str
    detail: str
    count: int = 1


Report = Callable[[Problem], None]


@dataclass(frozen=True, slots=True)
class Unit:
    """A piece of one table that one worker reads on its own."""

    table: str
    reader: str
    uri: str
    size: int
    ordinal: int = 0
    count: int = 1
    options: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Unit:
        return cls(**json.loads(text))


@dataclass(slots=True)
class Batch:
    """Some rows of a unit. Columns a row lacks (a JSON key never seen here) are simply absent: they count as missing.

    A batch is valid until the next one is asked for: readers reuse their buffers. ``fallback`` is the encoding of
    cells that are not UTF-8. ``span`` is set by readers of byte ranges: where in the file the batch's first record
    starts and where the next record after the batch starts, which is how ranges prove that they met.
    """

    rows: int
    columns: list[TextColumn]
    fallback: str = "cp1252"
    span: tuple[int, int] | None = None
