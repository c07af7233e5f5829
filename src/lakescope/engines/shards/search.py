"""The searches of a lake as whoever asks sees them: the same answers, found by several processes.

What grows with the lake is done by all of them: reading lists (top k, thresholds, the keys of correlations), comparing
sides of sketches, all pairs of inclusions. What is bounded stays here: looking a query up, joining the sketches of the
best, judging and telling. A set lies in one part, so the best of all are among the best of each, equal ones by number
as ever; candidates of a correlation are counted over all parts before anything is corrected for their number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from lakescope.array_types import F64, I64, U64
from lakescope.engines.correlations.answers import Retrieval
from lakescope.engines.correlations.correlated import CorrelationSearch
from lakescope.engines.correlations.frames import PairCounts
from lakescope.engines.joins.inverted import InvertedIndex
from lakescope.engines.joins.joinable import JoinSearch
from lakescope.engines.joins.josie import Algorithm, Overlaps
from lakescope.engines.joins.overlaps import OverlapSearch
from lakescope.engines.keys.inclusion import IncludedPairs
from lakescope.engines.keys.search import KeySearch
from lakescope.engines.shards.messages import Arrays, Message
from lakescope.engines.shards.pool import Pool
from lakescope.engines.shards.worker import cut
from lakescope.store.index import Index
from lakescope.store.inverted import QueryGroups


class ShardedOverlaps(OverlapSearch):
    """Exact overlaps, found by all processes of a pool."""

    def __init__(self, index: InvertedIndex, pool: Pool, **options: Any) -> None:
        super().__init__(index, **options)
        self._pool = pool

    def warm(self) -> None:
        """Load the kernels here and there."""
        super().warm()
        self._pool.ask("warm", {}, {})

    def top(
        self, query: QueryGroups, k: int, exclude: Sequence[int] = (), algorithm: Algorithm | None = None
    ) -> Overlaps:
        """The ``k`` sets with the largest overlap, without those to be left out."""
        found = self._found_by_all("top", query, exclude, k=int(k))
        sets, overlaps = found.sets, found.overlaps
        order = np.lexsort((sets, -overlaps))[:k]
        return _of(found, sets[order], overlaps[order])

    def at_least(self, query: QueryGroups, minimum: int, exclude: Sequence[int] = ()) -> Overlaps:
        """All sets with at least this overlap, in order of the sets: every list is read."""
        # Ranges are in order, and so are the sets of each.
        return self._found_by_all("at_least", query, exclude, minimum=int(minimum))

    def _found_by_all(self, question: str, query: QueryGroups, exclude: Sequence[int], **fields: int) -> Overlaps:
        arrays: Arrays = {"groups": query.groups, "weights": query.weights, "exclude": np.array(exclude, np.int64)}
        return _united(self._pool.ask(question, {"size": query.size, **fields}, arrays))


def _united(answers: list[Message]) -> Overlaps:
    sets, overlaps = (np.concatenate([each.arrays[name] for each in answers]) for name in ("sets", "overlaps"))
    read = np.sum([each.fields["read"] for each in answers], axis=0).tolist()
    return Overlaps(sets, overlaps, answers[0].fields["algorithm"], *read)


def _of(found: Overlaps, sets: npt.NDArray[np.int32], overlaps: npt.NDArray[np.int32]) -> Overlaps:
    return Overlaps(
        *(sets, overlaps, found.algorithm, found.lists, found.entries),
        *(found.sets_read, found.decisions),
    )


class ShardedCorrelations(CorrelationSearch):
    """Correlations whose candidates are counted by all processes of a pool."""

    def __init__(self, index: Index, inverted: InvertedIndex, overlaps: OverlapSearch, pool: Pool) -> None:
        super().__init__(index, inverted, overlaps)
        self._pool = pool

    def warm(self) -> None:
        """Make ready what many questions share; frames are the processes' alone."""
        if self.sketches.count:
            _ = self._key_of_set
            self.sketches.name_all()
            self.sketches.touch()

    def _counts_by_frames(self, retrieval: Retrieval) -> bool:
        """Whether pairs are counted by frames: the processes have always loaded their kernels."""
        return retrieval == "z"

    def count_pairs(
        self, hashes: U64, values: F64, keys: I64 | None, retrieval: Retrieval, excluded_table: str | None = None
    ) -> PairCounts:
        """The pairs of some keys that share enough with a query, and how often each goes with it."""
        if not self._counts_by_frames(retrieval):
            return super().count_pairs(hashes, values, keys, retrieval, excluded_table)
        arrays = {"hashes": hashes, "values": values, "keys": np.empty(0, np.int64) if keys is None else keys}
        found = self._pool.ask(
            "count_pairs", {"retrieval": retrieval, "excluded_table": excluded_table, "every": keys is None}, arrays
        )
        return PairCounts(*(np.concatenate([each.arrays[name] for each in found]) for name in PairCounts._fields))

    def quadrants(self, hashes: U64, values: F64, keys: I64, retrieval: Retrieval) -> tuple[I64, I64]:
        """How often every pair of some keys goes with the query and how often against it."""
        parts = cut(self.sketches.sizes, self._pool.size)
        shared = {"hashes": hashes, "values": values}
        arrays = [{**shared, "keys": keys[(keys >= part.start) & (keys < part.stop)]} for part in parts]
        found = self._pool.ask("quadrants", {"retrieval": retrieval}, arrays)
        same, other = (np.concatenate([each.arrays[name] for each in found]) for name in ("same", "other"))
        return same, other


class ShardedKeys(KeySearch):
    """Inclusions whose pairs are looked at by all processes of a pool."""

    def __init__(self, index: Index, joins: JoinSearch | None, pool: Pool) -> None:
        super().__init__(index, joins)
        self._pool = pool

    def all_pairs(self, **options: Any) -> IncludedPairs:
        """All pairs of the lake of which one column may be included in the other."""
        answers = self._pool.ask("inclusions", {"options": options}, {})
        names = ("children", "parents", "shares", "lows", "highs", "evidence")
        arrays = {name: np.concatenate([each.arrays[name] for each in answers]) for name in names}
        return IncludedPairs(**arrays, looked_at=sum(each.fields["looked_at"] for each in answers))
