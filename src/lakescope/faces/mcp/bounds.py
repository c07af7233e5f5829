"""Answers that fit: few records, short cells, and a note for everything that was cut.

What a tool returns is read by a model whose context is small and dear. A limit is told, never silent.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from lakescope.show.text import printable

Answer = dict[str, Any]

#: Most records of an answer, characters of a cell and of a name, items of a list, and characters of a whole answer.
MOST = 200
CELL = 160
NAME = 500
ITEMS = 12
CHARACTERS = 30_000
_NAMES = frozenset(
    ("table", "name", "column", "query_column", "child_table", "child_column", "parent_table", "parent_column")
)


def bounded(
    name: str,
    records: Sequence[Mapping[str, Any]],
    *,
    limit: int,
    offset: int = 0,
    notes: Sequence[str] = (),
    paged: bool = True,
    **more: Any,
) -> Answer:
    """Some of the records under a name, with what was cut: ``total``, ``shown`` and ``notes``."""
    first, size = max(0, offset), max(1, min(limit, MOST))
    told = [cut(record) for record in records[first : first + size]]
    said = [short(note) for note in notes]
    if limit > MOST:
        said.append(f"at most {MOST} are told at once")
    room = CHARACTERS - len(json.dumps([cut(more), said], default=str))
    fitting = _fitting(told, room)
    if fitting < len(told):
        said.append(
            f"{len(told) - fitting} were left out since the answer would be too long; ask for fewer fields or rows"
        )
        told = told[:fitting]
    left = len(records) - first - len(told)
    if left > 0:
        said.append(f"{left:,} more" + (f"; the next begin at offset {first + len(told)}" if paged else ""))
    return {**cut(more), name: told, "total": len(records), "shown": len(told), "notes": said}


def _fitting(records: Sequence[Answer], room: int) -> int:
    """How many records fit."""
    used = 0
    for place, record in enumerate(records):
        used += len(json.dumps(record, default=str)) + 2
        if used > room:
            return place
    return len(records)


def cut(record: Mapping[str, Any]) -> Answer:
    """A record with short cells, as plain data; names may be longer, since they are what to ask with next."""
    return {
        str(name): short(value, NAME) if name in _NAMES and isinstance(value, str) else plain(value)
        for name, value in record.items()
    }


def plain(value: Any) -> Any:
    """A value as JSON holds it: texts, lists and mappings cut, and said so."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        # Six digits are what a reader needs; JSON knows no infinity.
        return float(f"{value:.6g}") if math.isfinite(value) else None
    if isinstance(value, Mapping):
        items = list(value.items())
        kept = {short(str(name)): plain(item) for name, item in items[:ITEMS]}
        return {**kept, "…": f"{len(items) - ITEMS} more"} if len(items) > ITEMS else kept
    if isinstance(value, list | tuple):
        kept_items = [plain(item) for item in value[:ITEMS]]
        return [*kept_items, f"… {len(value) - ITEMS} more"] if len(value) > ITEMS else kept_items
    return short(str(value))


def short(text: str, width: int = CELL) -> str:
    """Text that stays on its line, cut where it is long."""
    flat = printable(text[: width + 1])
    return flat if len(flat) <= width else flat[: width - 1] + "…"
