"""The most frequent values of a stream, with their text and a bound on the error of every count.

Misra-Gries counters in the mergeable form of Agarwal et al. (2012): while at most ``limit`` distinct values have been
seen, every count is exact and the number of distinct values with it. Beyond, the smallest counters pay for the
others: a count is then a lower bound, at most ``error`` below the truth. Whether that happened depends on the set of
values alone, not on order or partitioning: more than ``limit`` distinct values saturate any split, fewer saturate
none.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from lakescope.sketches import codec
from lakescope.sketches.kernels import (
    frequent_add,
    frequent_combine,
    frequent_largest,
    frequent_rebuild,
    gather_text,
)
from lakescope.values.text import read_only

#: Bytes of a value's text that are kept.
TEXT_LIMIT = 120
#: Values in the sample.
SAMPLE_SIZE = 12

#: Room that a table of values begins with; it grows.
_FIRST_KEYS = 64


@dataclass(frozen=True, slots=True)
class Texts:
    """Texts of values as slices of two buffers: of ``other`` where ``chosen``, else of ``plain``."""

    plain: npt.NDArray[np.uint8]
    other: npt.NDArray[np.uint8]
    chosen: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int32]
    ends: npt.NDArray[np.int32]

    @classmethod
    def of(cls, data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int32], ends: npt.NDArray[np.int32]) -> Texts:
        """Texts that all lie in one buffer."""
        return cls(read_only(data), data, np.zeros(starts.size, np.uint8), starts, ends)

    def at(self, index: int) -> bytes:
        source = self.other if self.chosen[index] else self.plain
        return source[self.starts[index] : self.ends[index]].tobytes()

    def take(self, indices: npt.NDArray[np.int64]) -> Texts:
        return Texts(self.plain, self.other, self.chosen[indices], self.starts[indices], self.ends[indices])


@dataclass(frozen=True, slots=True)
class Frequent:
    """A frequent value: its true count lies in ``[low, high]``."""

    text: str
    low: int
    high: int


@dataclass(slots=True)
class FrequentValues:
    """Weighted Misra-Gries counters over hashes."""

    limit: int = 8192
    error: int = 0
    saturated: bool = False
    used: int = 0
    filled: int = 0
    keys: npt.NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))
    tallies: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    places: npt.NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    lengths: npt.NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    arena: npt.NDArray[np.uint8] = field(default_factory=lambda: np.empty(0, np.uint8))
    slots: npt.NDArray[np.int32] = field(default_factory=lambda: np.full(1, -1, np.int32))
    smallest: dict[int, bytes] = field(default_factory=dict)

    def update(
        self,
        hashes: npt.NDArray[np.uint64],
        counts: npt.NDArray[np.int64],
        texts: Texts,
    ) -> None:
        """Add values by hash with their counts; ``texts`` says what each value is."""
        keep = self.limit // 2
        given = hashes, texts
        if self.saturated and hashes.size > keep:
            hashes, counts, texts = self._prune_batch(keep, hashes, counts, texts)
        if not self.keys.size:
            self._begin(hashes.size, texts)
        at = 0
        while True:
            at, self.used, self.filled = frequent_add(
                *(at, hashes, counts, texts.plain, texts.other, texts.chosen, texts.starts, texts.ends, TEXT_LIMIT),
                *(self.keys, self.tallies, self.places, self.lengths, self.slots),
                *(self.used, self.arena, self.filled),
            )
            if at >= hashes.size:
                break
            if self.used < self.keys.size:
                self.arena = np.concatenate([self.arena, np.empty(max(self.arena.size, TEXT_LIMIT), np.uint8)])
            elif self.used < self.limit:
                self._grow()
            else:
                self._prune()
        if self.saturated:
            self._sample_batch(*given)

    def _sample_batch(self, hashes: npt.NDArray[np.uint64], texts: Texts) -> None:
        """Keep the values of the smallest hashes, once the table cannot hold all."""
        chosen = np.flatnonzero(hashes <= np.uint64(max(self.smallest)))
        _, first = np.unique(hashes[chosen], return_index=True)
        for index in chosen[first[:SAMPLE_SIZE]].tolist():
            self.smallest[int(hashes[index])] = texts.at(index)[:TEXT_LIMIT]
        self._cut_sample()

    def _cut_sample(self) -> None:
        if len(self.smallest) > SAMPLE_SIZE:
            self.smallest = {key: self.smallest[key] for key in sorted(self.smallest)[:SAMPLE_SIZE]}

    def _prune_batch(
        self,
        keep: int,
        hashes: npt.NDArray[np.uint64],
        counts: npt.NDArray[np.int64],
        texts: Texts,
    ) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64], Texts]:
        """Once saturated, summarise a large batch before adding it: its rare values pay once instead of many times."""
        first, totals = frequent_combine(hashes, counts)
        if first.size > keep:
            price = int(np.partition(totals, first.size - keep - 1)[first.size - keep - 1])
            self.error += price
            kept = np.flatnonzero(totals > price)
            first, totals = first[kept], totals[kept] - price
        return hashes[first], totals, texts.take(first)

    def _begin(self, keys: int, texts: Texts) -> None:
        """Make room for the first batch, whose size says most about what is to come."""
        self._grow(keys)
        self.arena = np.empty(min(int((texts.ends - texts.starts).sum()), self.keys.size * TEXT_LIMIT), np.uint8)

    def _grow(self, wanted: int = 0) -> None:
        """Double the table, or make it fit for as many keys as are wanted, up to the limit."""
        size = min(max(_FIRST_KEYS, 2 * self.keys.size, wanted), self.limit)
        for name in ("keys", "tallies", "places", "lengths"):
            old = getattr(self, name)
            new = np.empty(size, old.dtype)
            new[: self.used] = old[: self.used]
            setattr(self, name, new)
        self.slots = np.empty(1 << (4 * size - 1).bit_length(), np.int32)
        frequent_rebuild(self.slots, self.keys, self.used)

    def _prune(self) -> None:
        """Halve the table: every counter pays the count of the first that has to go."""
        keep = self.limit // 2
        price = int(np.partition(self.tallies[: self.used], self.used - keep - 1)[self.used - keep - 1])
        self.error += price
        if not self.saturated:
            self.smallest = self._smallest_in_table()
            self.saturated = True
        self._keep(np.flatnonzero(self.tallies[: self.used] > price))
        self.tallies[: self.used] -= price

    def _smallest_in_table(self) -> dict[int, bytes]:
        # Of equal counts the smallest keys come first.
        order = frequent_largest(self.keys, np.zeros(self.used, np.int64), self.used, SAMPLE_SIZE)
        return dict(zip(self.keys[order].tolist(), self._texts(order), strict=True))

    def _keep(self, order: npt.NDArray[np.intp]) -> None:
        arena = np.empty(int(self.lengths[order].sum()), np.uint8)
        filled = gather_text(self.arena, self.places, self.lengths, order, arena)
        n = order.size
        lengths = self.lengths[order]
        self.keys[:n], self.tallies[:n], self.lengths[:n] = self.keys[order], self.tallies[order], lengths
        self.places[:n] = np.cumsum(lengths) - lengths
        self.arena, self.filled, self.used = arena, filled, n
        frequent_rebuild(self.slots, self.keys, n)

    def lower(self, limit: int) -> None:
        """Count at most ``limit`` values exactly from now on; the smallest limit that was ever asked for holds."""
        if limit < self.limit:
            self.limit = limit
            while self.used > limit:
                self._prune()

    def merge(self, other: FrequentValues) -> None:
        """Add the counts of ``other``; errors add up."""
        self.lower(other.limit)
        n = other.used
        starts = other.places[:n]
        self.update(other.keys[:n], other.tallies[:n], Texts.of(other.arena, starts, starts + other.lengths[:n]))
        self.error += other.error
        if self.saturated or other.saturated:
            mine = self.smallest if self.saturated else self._smallest_in_table()
            theirs = other.smallest if other.saturated else other._smallest_in_table()
            self.smallest = mine | theirs
            self._cut_sample()
            self.saturated = True

    def top(self, k: int) -> list[Frequent]:
        """The ``k`` values of the largest counts, ties broken by hash."""
        order = frequent_largest(self.keys, self.tallies, self.used, k)
        found = zip(self._texts(order), self.tallies[order].tolist(), strict=True)
        return [Frequent(text.decode("utf-8", "ignore"), tally, tally + self.error) for text, tally in found]

    def sample(self) -> list[str]:
        """A few values: those of the smallest hashes, hence the same for any order of the rows."""
        chosen = self.smallest if self.saturated else self._smallest_in_table()
        return [chosen[key].decode("utf-8", "ignore") for key in sorted(chosen)]

    def _texts(self, order: npt.NDArray[np.intp]) -> list[bytes]:
        """Texts of the values at some positions."""
        arena = memoryview(self.arena)  # type: ignore[arg-type]
        starts = self.places[order]
        return [
            bytes(arena[a:b]) for a, b in zip(starts.tolist(), (starts + self.lengths[order]).tolist(), strict=True)
        ]

    @property
    def distinct(self) -> int | None:
        """Exact number of distinct values, or None once counters were dropped."""
        return None if self.saturated else self.used

    def fields(self) -> codec.Fields:
        order = np.argsort(self.keys[: self.used])
        text = np.empty(int(self.lengths[: self.used].sum()), np.uint8)
        gather_text(self.arena, self.places, self.lengths, order, text)
        return {
            "limit": self.limit,
            "error": self.error,
            "saturated": self.saturated,
            "keys": self.keys[order],
            "tallies": self.tallies[order],
            "lengths": self.lengths[order].astype(np.uint8),
            "text": text,
            "sample": np.array(sorted(self.smallest), np.uint64),
            "sample_text": [self.smallest[key].decode("utf-8", "ignore") for key in sorted(self.smallest)],
        }

    @classmethod
    def from_fields(cls, fields: codec.Fields) -> FrequentValues:
        keys = fields["keys"].copy()
        lengths = fields["lengths"].astype(np.int32)
        places = (np.cumsum(lengths) - lengths).astype(np.int32)
        slots = np.empty(1 << (4 * max(16, keys.size) - 1).bit_length(), np.int32)
        frequent_rebuild(slots, keys, keys.size)
        text = fields["text"].copy()
        return cls(
            *(fields["limit"], fields["error"], fields["saturated"], keys.size, text.size),
            *(keys, fields["tallies"].copy(), places, lengths, text, slots),
            {int(key): word.encode() for key, word in zip(fields["sample"], fields["sample_text"], strict=True)},
        )
