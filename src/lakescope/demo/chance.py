"""Seeded chance: one random stream per name, so that a table does not change when another one does."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Rng = np.random.Generator


def stream(seed: int, name: str) -> Rng:
    """The random stream called ``name`` under ``seed``; independent of every other name and of the order of calls."""
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest[:16], "little")))


def pick(rng: Rng, words: Sequence[str], count: int, skew: float = 0.0) -> npt.NDArray[np.object_]:
    """``count`` words with repetition; ``skew`` above 0 makes the first words more frequent (Zipf-like)."""
    if skew <= 0.0:
        index = rng.integers(0, len(words), count)
    else:
        weights = 1.0 / np.arange(1, len(words) + 1) ** skew
        index = rng.choice(len(words), size=count, p=weights / weights.sum())
    return np.array(words, dtype=object)[index]


def some(rng: Rng, size: int, count: int) -> npt.NDArray[np.int64]:
    """``count`` different positions below ``size``, in random order."""
    return rng.choice(size, count, replace=False).astype(np.int64)


def decimals(values: npt.ArrayLike, digits: int) -> npt.NDArray[np.float64]:
    """Values rounded to ``digits`` decimals, without negative zero (two spellings of one number)."""
    return (np.round(np.asarray(values, dtype=np.float64), digits) + 0.0).astype(np.float64)


def days(first: str, count: int) -> npt.NDArray[np.datetime64]:
    """``count`` days in a row from the ISO date ``first``."""
    return np.datetime64(first, "D") + np.arange(count)


def days_between(rng: Rng, first: str, last: str, count: int) -> npt.NDArray[np.datetime64]:
    """``count`` random days from ``first`` to ``last`` inclusive."""
    start, end = np.datetime64(first, "D"), np.datetime64(last, "D")
    return start + rng.integers(0, int((end - start).astype(int)) + 1, count)
