"""How many cells of a column hold values of each kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lakescope.array_types import I64
from lakescope.values.canonical import Kind

if TYPE_CHECKING:
    from lakescope.values.cells import Cells


def kind_counts(cells: Cells) -> I64:
    """How many rows of a column hold values of each kind."""
    return np.bincount(cells.kinds, cells.counts, len(Kind)).astype(np.int64)
