"""Sizes as people write them: 16KB, 2 MB."""

from __future__ import annotations

import re

from lakescope.errors import BadRequest

_UNITS = {"": 1, "b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}


def bytes_of(text: str, option: str) -> float:
    """The bytes of a size such as 16KB."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-zA-Z]*)\s*", text)
    size = float(found[1]) * _UNITS.get(found[2].lower(), 0) if found else 0
    if not size:
        raise BadRequest(f"{option} must be a size, not {text!r}", hint="write 16KB, 2MB or 16384")
    return size
