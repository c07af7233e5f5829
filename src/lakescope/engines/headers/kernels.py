"""Compiled loops of the search for headers; each has a plain twin beside its use."""

from __future__ import annotations

from numba import njit


@njit(nogil=True, cache=True)
def add_worth(numbers, starts, holders, rarity, scale, root, found):
    """Add to every column what it is worth that it has some terms: the rarer each, the more (``CorpusPart.alike``)."""
    for i in range(numbers.size):
        for j in range(starts[numbers[i]], starts[numbers[i] + 1]):
            column = holders[j]
            found[column] += rarity[i] * scale[column] / root
