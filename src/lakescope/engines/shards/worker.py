"""A process that searches its part of the lake.

That is a range of sets for joins, of keys for correlations, and some of the columns for inclusions.
Ranges are cut so that each process reads about as much as any other. Lists are in order of their sets, so that the part
of a list within a range is found by bisection.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from lakescope.engines.correlations.correlated import CorrelationSearch
from lakescope.engines.correlations.keysketches import KeySketches
from lakescope.engines.joins.joinable import JoinSearch
from lakescope.engines.joins.overlaps import OverlapSearch
from lakescope.engines.keys.search import KeySearch
from lakescope.engines.shards import messages
from lakescope.engines.shards.messages import Arrays, Message
from lakescope.errors import IndexDamaged, LakescopeError
from lakescope.store.index import Index
from lakescope.store.inverted import QueryGroups

Answer = tuple[dict[str, Any], Arrays]


def cut(weights: npt.NDArray[Any], parts: int) -> list[range]:
    """Ranges of about the same weight."""
    reached = np.cumsum(weights, dtype=np.float64)
    total = float(reached[-1]) if reached.size else 0.0
    edges = np.searchsorted(reached, [total * part / parts for part in range(1, parts)]).tolist()
    bounds = [0, *edges, int(weights.size)]
    return [range(begin, max(begin, end)) for begin, end in itertools.pairwise(bounds)]


class Shard:
    """The part of the lake that one process searches; each search is opened when a question needs it first."""

    def __init__(self, location: str, generation: int, shard: int, shards: int) -> None:
        self.index = Index(location)
        self.number, self.count = shard, shards
        if self.index.manifest.generation != generation:
            hint = "open it again: lakescope.open"
            raise IndexDamaged(f"{self.index.path} was replaced since it was opened", hint=hint)

    @cached_property
    def joins(self) -> JoinSearch:
        return JoinSearch(self.index)

    @cached_property
    def overlaps(self) -> OverlapSearch:
        """The search of this process' sets."""
        within = cut(self.joins.inverted.sizes, self.count)[self.number]
        found = OverlapSearch(self.joins.inverted, self.joins.overlaps.costs, within)
        found.load()
        return found

    @cached_property
    def correlations(self) -> CorrelationSearch:
        sketches = KeySketches(self.index)
        sketches.within = cut(sketches.sizes, self.count)[self.number]
        return CorrelationSearch(self.index, self.joins.inverted, self.overlaps, sketches)

    @cached_property
    def keys(self) -> KeySearch:
        return KeySearch(self.index, self.joins if self.index.manifest.summary["join"] is not None else None)

    # --- questions ----------------------------------------------------------------------------------------------------

    def top(self, asked: Message) -> Answer:
        """The sets with the largest overlap."""
        found = self.overlaps.top(_query(asked), asked.fields["k"], asked.arrays["exclude"].tolist())
        read = [found.lists, found.entries, found.sets_read, found.decisions]
        return {"algorithm": found.algorithm, "read": read}, {"sets": found.sets, "overlaps": found.overlaps}

    def at_least(self, asked: Message) -> Answer:
        """All sets with some overlap."""
        found = self.overlaps.at_least(_query(asked), asked.fields["minimum"], asked.arrays["exclude"].tolist())
        read = [found.lists, found.entries, found.sets_read, found.decisions]
        return {"algorithm": found.algorithm, "read": read}, {"sets": found.sets, "overlaps": found.overlaps}

    def count_pairs(self, asked: Message) -> Answer:
        """Columns that share enough keys with a query, how often each goes with it, how often against."""
        given, about = asked.arrays, asked.fields
        keys = None if about["every"] else given["keys"]
        counts = self.correlations.count_pairs(
            given["hashes"], given["values"], keys, about["retrieval"], about["excluded_table"]
        )
        return {}, counts._asdict()

    def quadrants(self, asked: Message) -> Answer:
        """How often columns go with a query, and against it."""
        given = asked.arrays
        same, other = self.correlations.quadrants(
            given["hashes"], given["values"], given["keys"], asked.fields["retrieval"]
        )
        return {}, {"same": same, "other": other}

    def inclusions(self, asked: Message) -> Answer:
        """Children of every so manyth column."""
        pairs = self.keys.pairs
        parents = pairs.columns.numbers[self.number :: self.count].tolist()
        found = pairs.search(**asked.fields["options"], parents=parents)
        arrays = {name: getattr(found, name) for name in ("children", "parents", "shares", "lows", "highs", "evidence")}
        return {"looked_at": found.looked_at}, arrays

    def warm(self, asked: Message) -> Answer:
        """Get ready: compiled kernels are loaded."""
        self.overlaps.warm()
        self.correlations.warm()
        return {}, {}


def _query(asked: Message) -> QueryGroups:
    return QueryGroups(asked.arrays["groups"], asked.arrays["weights"], asked.fields["size"])


def main() -> None:
    """Answer questions until nobody is left to ask."""
    with os.fdopen(os.dup(1), "wb") as out:
        os.dup2(2, 1)  # what a library prints must not get between the answers
        given = messages.read(sys.stdin.buffer)
        shard: Shard | None = None
        if given is not None:
            # At once, before a newer index takes its place; what is wrong is told whoever asks.
            with contextlib.suppress(Exception):
                shard = Shard(**given.fields)
        while (asked := messages.read(sys.stdin.buffer)) is not None:
            try:
                shard = shard or Shard(**given.fields)  # type: ignore[union-attr]
                answer: Callable[[Message], Answer] = getattr(shard, asked.fields["question"])
                with shard.index.question():
                    fields, arrays = answer(asked)
            except Exception as error:
                known = isinstance(error, LakescopeError)
                fields = {
                    "error": type(error).__name__,
                    "message": error.message if known else f"a search process failed: {type(error).__name__}: {error}",  # type: ignore[attr-defined]
                    "hint": error.hint if known else "ask again; if it fails again, report it",  # type: ignore[attr-defined]
                }
                arrays = {}
            messages.write(out, fields, arrays)
