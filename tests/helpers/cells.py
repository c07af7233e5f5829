"""Making columns of cells by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lakescope.sources.model import MISSING, TextColumn


def text_column(cells: Sequence[bytes | str | None], name: str = "x") -> TextColumn:
    """A column whose cells lie one after the other in a buffer; None is a missing cell."""
    encoded = [cell.encode() if isinstance(cell, str) else cell for cell in cells]
    data = np.frombuffer(b"".join(cell for cell in encoded if cell is not None), np.uint8)
    starts, ends = np.zeros(len(cells), np.int32), np.full(len(cells), MISSING, np.int32)
    at = 0
    for row, cell in enumerate(encoded):
        if cell is not None:
            starts[row], ends[row] = at, at + len(cell)
            at += len(cell)
    return TextColumn(name, data, starts, ends)
