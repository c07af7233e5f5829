"""Answers as plain data that JSON has: no NaN, no infinity, no tuples, no lone surrogates."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa

from lakescope.store.records import Rows


def plain(value: Any) -> Any:
    """A value as dictionaries, lists, texts, finite numbers, truth values and None."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | Rows):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if value is None or isinstance(value, bool | int):
        return value
    if hasattr(value, "item"):  # numpy's numbers
        return plain(value.item())
    return str(value)


def rows_of(table: pa.Table, width: int, most: int | None = None) -> dict[str, Any]:
    """The first rows of a table: names of its columns, and its cells as texts that are not too long."""
    shown = table if most is None else table.slice(0, most)
    cells = [[_text(value, width) for value in column.to_pylist()] for column in shown.columns]
    rows = [list(row) for row in zip(*cells, strict=True)]
    return {"columns": table.column_names, "records": rows}


def _text(value: Any, width: int) -> str | None:
    if value is None:
        return None
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= width else text[: width - 1] + "…"
