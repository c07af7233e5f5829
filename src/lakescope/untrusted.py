"""JSON that somebody else may have written: every way in which it is no JSON is the same error."""

from __future__ import annotations

import json
from typing import Any


def parsed(text: str | bytes) -> Any:
    """What a text says; ``ValueError`` where it is no JSON, also if it is nested deeper than Python can follow."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
