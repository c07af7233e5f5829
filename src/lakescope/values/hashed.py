"""From values to their hashes and nothing else: the fast door to the sketches.

Cells are hashed where they lie. Only those whose canonical form the kernel is not certain of pass through the
reference, once per distinct cell.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from lakescope.array_types import U64
from lakescope.values import kernels
from lakescope.values.arrays import arrays_of
from lakescope.values.canonical import Kind, canonical, decode
from lakescope.values.characters import character_table
from lakescope.values.hashing import hash_text
from lakescope.values.text import read_only
from lakescope.values.typed import CellSlices, cells, integers


def hashes_of(values: Any) -> Iterator[U64]:
    """Hashes of the values that are not null, repetitions included, in pieces of bounded size."""
    for array in arrays_of(values):
        hashes, valid = hash_array(array)
        yield hashes if valid.all() else hashes[valid]


def hash_each(values: Any) -> tuple[U64, npt.NDArray[np.bool_]]:
    """The hash of every value, and which of them are not null."""
    pairs = [hash_array(array) for array in arrays_of(values)]
    if not pairs:
        return np.empty(0, np.uint64), np.empty(0, np.bool_)
    hashes, valid = zip(*pairs, strict=True)
    return np.concatenate(hashes), np.concatenate(valid)


def hash_array(array: Any) -> tuple[U64, npt.NDArray[np.bool_]]:
    """The hash of every value of an array, and which of them are not null."""
    numbers = integers(array)
    if numbers is None:
        return hash_cells(cells(array))
    return kernels.hash_integers(numbers[0]), numbers[1]


def hash_cells(found: CellSlices, fallback: str = "cp1252") -> tuple[U64, npt.NDArray[np.bool_]]:
    """The hash of every cell, and which of them hold a value."""
    n = found.starts.size
    data = read_only(found.data)
    hashes, kinds = np.empty(n, np.uint64), np.empty(n, np.uint8)
    longest = int((found.ends - found.starts).max(initial=0))
    scratch = np.empty(longest + kernels.GROWTH + 32, np.uint8)
    nulls, slow = kernels.hash_cells(data, found.starts, found.ends, character_table(), scratch, hashes, kinds)
    if not (nulls or slow):
        return hashes, np.ones(n, np.bool_)
    known: dict[bytes, tuple[int, int]] = {}
    for index in np.flatnonzero(kinds == kernels.SLOW).tolist():
        raw = data[found.starts[index] : found.ends[index]].tobytes()
        if raw not in known:
            value = canonical(decode(raw, fallback))
            known[raw] = int(value.kind), hash_text(value.text)
        kinds[index], hashes[index] = known[raw]
    return hashes, kinds != Kind.NULL
