"""Numbers by which the parts of an index know a column."""

from __future__ import annotations

import xxhash


def column_id(table: str, *columns: str) -> int:
    """What a column, or a key of several, is known by across the parts of an index."""
    return int(xxhash.xxh64_intdigest("\0".join((table, *columns)).encode("utf-8", "surrogatepass")))
