"""Columns of raw cells: what sources hand over and kernels read, before anything is understood."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

#: Cell end that marks a missing cell: a typed null, or a short row.
MISSING = -1


Item = TypeVar("Item", bound=np.generic)


def read_only(data: npt.NDArray[Item]) -> npt.NDArray[Item]:
    """A view of an array that cannot be written to.

    Buffers of Arrow are read-only, those of files are not; kernels would be compiled once for either.
    """
    view = data.view()
    view.flags.writeable = False
    return view


@dataclass(slots=True)
class TextColumn:
    """The cells of one column in one batch, as slices ``data[starts[i]:ends[i]]`` of UTF-8 (or undecodable) bytes.

    ``ends[i] == MISSING`` means there is no cell (typed null, short row), which is not the same as an empty cell.
    """

    name: str
    data: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int32]
    ends: npt.NDArray[np.int32]
    source_type: str = "text"
