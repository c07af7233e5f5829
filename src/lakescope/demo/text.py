"""Arrow columns as text cells and CSV bytes.

Cells are rendered the way the canonical form of a value reads (``3`` for 3.0, ISO dates), so counting distinct texts
counts distinct values. A block of CSV lines is one Arrow string array whose data buffer *is* the file's next bytes:
no Python object per cell, which is what lets the generator write gigabytes.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc


def cells(column: pa.Array) -> pa.Array:
    """The column as strings, nulls kept."""
    if pa.types.is_string(column.type):
        return column
    if pa.types.is_dictionary(column.type):
        return cells(column.dictionary_decode())
    return pc.cast(column, pa.string())


def quoted(column: pa.Array, delimiter: str = ",") -> pa.Array:
    """String cells with quotes put around those that need them, and only those."""
    needs = pc.match_substring_regex(column, f'[{delimiter}"\r\n]')
    if not pc.any(needs).as_py():
        return column
    doubled = pc.replace_substring(column, '"', '""')
    wrapped = pc.binary_join_element_wise('"', doubled, '"', "")
    return pc.if_else(pc.fill_null(needs, False), wrapped, column)


def lines(columns: Sequence[pa.Array], delimiter: str = ",", null: str = "", newline: str = "\n") -> pa.Array:
    """One string per row: its cells quoted where needed and joined, line end included."""
    texts = [pc.fill_null(quoted(cells(c), delimiter), null) for c in columns]
    joined = pc.binary_join_element_wise(*texts, delimiter)
    return pc.binary_join_element_wise(joined, newline, "")


def content(strings: pa.Array) -> memoryview:
    """All bytes of a null-free string array, without a copy."""
    if len(strings) == 0:
        return memoryview(b"")
    _, offsets, data = strings.buffers()
    ends = memoryview(offsets).cast("B").cast("i")
    first, last = ends[strings.offset], ends[strings.offset + len(strings)]
    return memoryview(data).cast("B")[first:last]
