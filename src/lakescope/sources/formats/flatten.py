"""Columns of record batches as text cells: structs flattened by path, what has no plain text kept as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from lakescope.sources.model import Problem, Report, TextColumn
from lakescope.values.typed import cells

#: Structs are flattened by path down to this depth; what lies deeper is kept as JSON text.
MAX_DEPTH = 8


def text_columns(batch: Any, table: str = "", report: Report | None = None) -> list[TextColumn]:
    """The columns of a record batch as text cells, structs flattened to ``parent.child``.

    Names are passed on as they are, also when they are blank or repeat. ``report`` hears, for ``table``, of columns
    whose values are lists, maps or other things that have no plain text and were kept as JSON.
    """
    columns: list[TextColumn] = []
    for field, array in zip(batch.schema, batch.columns, strict=True):
        for name, leaf in _flatten(field.name, array, 1):
            kind = _decoded_type(leaf.type)
            if report is not None and _has_no_plain_text(kind):
                detail = f"column {name!r} holds values of type {kind}: kept as JSON text"
                report(Problem(table, "info", "nested", detail))
            columns.append(TextColumn(name, *cells(leaf), str(kind)))
    return columns


def width(schema: Any) -> int:
    """How many columns record batches of a schema have once they are flattened."""
    return sum(_leaves(field.type, 1) for field in schema)


def _leaves(kind: Any, depth: int) -> int:
    return sum(_leaves(field.type, depth + 1) for field in kind) if _opens(kind, depth) else 1


def _opens(kind: Any, depth: int) -> bool:
    """Whether a column of this type becomes one column for each of its fields."""
    return bool(pt.is_struct(kind)) and kind.num_fields > 0 and depth < MAX_DEPTH


def _flatten(name: str, array: Any, depth: int) -> Iterator[tuple[str, Any]]:
    """Leaves of a column with their paths. A null struct makes its children missing."""
    if _opens(array.type, depth):
        for field, child in zip(array.type, array.flatten(), strict=True):
            yield from _flatten(f"{name}.{field.name}", child, depth + 1)
    else:
        yield name, array


def _decoded_type(kind: Any) -> Any:
    """The type of the values, however they are encoded."""
    while pt.is_dictionary(kind) or pt.is_run_end_encoded(kind):
        kind = kind.value_type
    return kind


def _has_no_plain_text(kind: Any) -> bool:
    if isinstance(kind, pa.BaseExtensionType):
        known = kind.extension_name in ("arrow.uuid", "arrow.bool8", "arrow.json")
        return not known and bool(pt.is_nested(kind.storage_type))
    return bool(pt.is_nested(kind))
