"""Quantiles of a stream in bounded memory: the KLL sketch (Karnin, Lang, Liberty 2016).

Exact up to ``EXACT`` values; beyond, ranks are right to within ``rank_error`` of the number of values. Which half of a
compacted level survives is drawn from a counter-based generator, so the same stream gives the same sketch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from lakescope.array_types import F64
from lakescope.sketches import codec

#: Values held exactly before the first compaction.
EXACT = 4096
#: How much smaller each level below the top is, and the smallest one (Karnin, Lang and Liberty). A part of the state.
_DECAY = 2 / 3
_SMALLEST_LEVEL = 8


@dataclass(slots=True)
class Quantiles:
    """Mergeable quantile sketch over finite floats."""

    k: int = 1024
    n: int = 0
    levels: list[list[F64]] = field(default_factory=lambda: [[]])
    sizes: list[int] = field(default_factory=lambda: [0])
    compactions: int = 0

    @property
    def exact(self) -> bool:
        return self.compactions == 0

    @property
    def rank_error(self) -> float:
        """Half-width of the 99% interval of a normalised rank, measured in ``benchmarks``; 0 while exact."""
        return 0.0 if self.exact else 4.5 / self.k

    def update(self, values: F64) -> None:
        """Add finite values."""
        if not values.size:
            return
        self.levels[0].append(values)
        self.sizes[0] += values.size
        self.n += values.size
        self._compress()

    def _capacity(self, level: int) -> int:
        if len(self.levels) == 1:
            return EXACT
        depth = len(self.levels) - 1 - level
        return max(_SMALLEST_LEVEL, int(self.k * _DECAY**depth))

    def _compress(self) -> None:
        level = 0
        while level < len(self.levels):
            if self.sizes[level] > self._capacity(level):
                self._compact(level)
            level += 1

    def _compact(self, level: int) -> None:
        """Sort a level and promote every other value to the next, at double weight."""
        items = np.sort(np.concatenate(self.levels[level]))
        if level + 1 == len(self.levels):
            self.levels.append([])
            self.sizes.append(0)
        self.compactions += 1
        kept = items[items.size - items.size % 2 :]
        promoted = items[self._coin() : items.size - items.size % 2 : 2]
        self.levels[level], self.sizes[level] = [kept], kept.size
        self.levels[level + 1].append(promoted)
        self.sizes[level + 1] += promoted.size

    def _coin(self) -> int:
        x = (self.compactions * 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
        return (x >> 63) & 1

    def merge(self, other: Quantiles) -> None:
        """Add everything ``other`` has seen."""
        while len(self.levels) < len(other.levels):
            self.levels.append([])
            self.sizes.append(0)
        for level, arrays in enumerate(other.levels):
            self.levels[level].extend(arrays)
            self.sizes[level] += other.sizes[level]
        self.n += other.n
        self.compactions += other.compactions
        self._compress()

    def sorted_items(self) -> tuple[F64, npt.NDArray[np.int64]]:
        """All kept values in order, and the cumulative weight up to and including each."""
        parts = [np.concatenate(arrays) if arrays else np.empty(0) for arrays in self.levels]
        if len(parts) == 1:
            return np.sort(parts[0]), np.arange(1, self.n + 1)
        items = np.concatenate(parts)
        weights = np.concatenate([np.full(part.size, 1 << level, np.int64) for level, part in enumerate(parts)])
        order = np.argsort(items, kind="stable")
        return items[order], np.cumsum(weights[order])

    def fields(self) -> codec.Fields:
        parts = [np.sort(np.concatenate(arrays)) if arrays else np.empty(0) for arrays in self.levels]
        sizes = [part.size for part in parts]
        return {
            "k": self.k,
            "n": self.n,
            "compactions": self.compactions,
            "sizes": sizes,
            "items": np.concatenate(parts),
        }

    @classmethod
    def from_fields(cls, fields: codec.Fields) -> Quantiles:
        cuts = np.cumsum(fields["sizes"])[:-1]
        levels = [[part] for part in np.split(fields["items"], cuts)]
        return cls(fields["k"], fields["n"], levels, list(fields["sizes"]), fields["compactions"])


@dataclass(slots=True)
class RankedItems:
    """A sorted view that answers ranks and quantiles."""

    items: F64
    cumulative: npt.NDArray[np.int64]

    @classmethod
    def of(cls, sketch: Quantiles) -> RankedItems:
        return cls(*sketch.sorted_items())

    def quantiles(self, shares: Sequence[float]) -> list[float]:
        """For each share the value with that share of the values at or below it, midway where it falls between two."""
        targets = np.asarray(shares) * float(self.cumulative[-1])
        at = np.minimum(self.cumulative.searchsorted(targets), self.items.size - 1)
        low = self.items[at]
        high = self.items[np.minimum(at + 1, self.items.size - 1)]
        return np.where(self.cumulative[at] == targets, low / 2 + high / 2, low).tolist()  # type: ignore[no-any-return]

    def counts_below(self, edges: Sequence[float], *, inclusive: bool = False) -> list[int]:
        """For each edge the estimated number of values below it (or at it, too)."""
        at = self.items.searchsorted(edges, side="right" if inclusive else "left")
        return np.where(at > 0, self.cumulative[at - 1], 0).tolist()  # type: ignore[no-any-return]
