"""Minimal exact dependencies: sample what does not hold, derive what could, validate, learn from what fails.

X -> A holds if X shares a column with every set of columns in which two rows differ that differ in A. So the minimal X
are the minimal sets that hit all these *difference sets*. A sample of pairs of rows, neighbours within groups of equal
values, gives most of the small ones; what hits them all is validated against the table, every failure is a pair of rows
whose difference set was missing, and when nothing fails any more the answer is exact and complete: whatever holds hits
all difference sets, hence contains a minimal set that hits the known ones, and that one holds (after FastFDs and HyFD).
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lakescope.fds import kernels

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]
Bits = npt.NDArray[np.bool_]

#: Rows up to which all pairs are compared at once.
_ALL_PAIRS = 600
#: Neighbours that are compared within groups, at most, and the share of new agreements that is worth another round.
_WINDOWS = 12
_WORTH = 0.01
#: Violations of a dependency that are learnt from at once.
_LEARNT = 16
#: Sets that are kept room for.
_ROOM = 1 << 22


@dataclass(frozen=True, slots=True)
class Discovered:
    """Minimal left sides (as columns) of each column, and whether that is all there are."""

    found: list[list[tuple[int, ...]]]
    complete: bool
    rounds: int
    validated: int


def discover(codes: I32, most: int | None = None, budget: float | None = None) -> Discovered:
    """All minimal dependencies with at most ``most`` columns on the left; fewer when the ``budget`` of seconds ends."""
    return _Discovery(codes, most, budget).run()


class _Discovery:
    def __init__(self, codes: I32, most: int | None, budget: float | None) -> None:
        self.codes = np.ascontiguousarray(codes)
        self.columns, self.rows = codes.shape
        self.words = (self.columns + 63) // 64
        self.most = self.columns if most is None else most
        self.ends = None if budget is None else time.monotonic() + budget
        self.everything = self._mask(range(self.columns))
        self.agreements = np.zeros((0, self.words), np.uint64)
        size = 16
        while size < 2 * self.rows:
            size *= 2
        self.slots = np.empty(size, np.int32)
        self.single = self._single()
        self.known: dict[bytes, set[int]] = {}

    def _mask(self, columns: range | tuple[int, ...] | list[int]) -> U64:
        mask = np.zeros(self.words, np.uint64)
        for column in columns:
            mask[column >> 6] |= np.uint64(1 << (column & 63))
        return mask

    def _single(self) -> Bits:
        """Which cells hold a value that occurs once in their column."""
        found = np.empty(self.codes.shape, np.bool_)
        for column, codes in enumerate(self.codes):
            counts = np.bincount(codes[codes >= 0], minlength=1)
            found[column] = counts[np.maximum(codes, 0)] == 1
        return found

    # --- sampling -----------------------------------------------------------------------------------------------------

    def _sample(self) -> None:
        if self.rows <= _ALL_PAIRS:
            masks = np.empty((self.rows * (self.rows - 1) // 2, self.words), np.uint64)
            self._learn(masks[: kernels.all_agreements(self.codes, 0, self.rows, masks)])
            return
        orders = []
        for column in range(self.columns):
            # Rows of a group lie beside those that are like them in the next columns.
            keys = [self.codes[(column + step) % self.columns] for step in (2, 1, 0)]
            order = np.lexsort(keys)
            orders.append((order, np.ascontiguousarray(self.codes[column][order])))
        room = np.empty((self.rows, self.words), np.uint64)
        active = set(range(self.columns))
        for distance in range(1, _WINDOWS + 1):
            for column in sorted(active):
                order, ordered = orders[column]
                count = kernels.neighbours(self.codes, order, ordered, distance, room)
                before = self.agreements.shape[0]
                self._learn(room[:count])
                if self.agreements.shape[0] - before < _WORTH * count:
                    active.discard(column)
            if not active or self._late():
                break

    def _learn(self, masks: U64) -> None:
        """Add agreements, each once."""
        both = np.concatenate([self.agreements, masks])
        self.agreements = _unique(both)

    # --- induction and validation -------------------------------------------------------------------------------------

    def run(self) -> Discovered:
        self._sample()
        # No pair of rows is known to agree in anything: the empty agreement is always possible.
        if self.rows > 1:
            self._learn(np.zeros((1, self.words), np.uint64)[: int(self._some_differ_everywhere())])
        found: list[list[tuple[int, ...]]] = [[] for _ in range(self.columns)]
        stale = set(range(self.columns))
        rounds = validated = 0
        complete = True
        while stale:
            rounds += 1
            whole = True
            for column in sorted(stale):
                sides, all_there = self._induced(column)
                whole = whole and all_there
                found[column] = sides
            complete = complete and whole
            stale, checked, all_checked = self._validated(found, stale)
            validated += checked
            if not all_checked or (stale and self._late()):
                complete = False
                found = [
                    [side for side in sides if self._known_to_hold(side, column)] for column, sides in enumerate(found)
                ]
                break
        return Discovered(found, complete, rounds, validated)

    def _some_differ_everywhere(self) -> bool:
        """Whether some pair of rows agrees in nothing; tried on neighbours only, validation finds the rest."""
        mask = np.empty(self.words, np.uint64)
        for row in range(1, min(self.rows, 50)):
            kernels.agreement(self.codes, 0, row, mask)
            if not mask.any():
                return True
        return False

    def _induced(self, column: int) -> tuple[list[tuple[int, ...]], bool]:
        """Minimal sets of columns that hit all known difference sets of a column."""
        room = np.empty_like(self.agreements)
        count = kernels.differences(self.agreements, column, self.everything, room)
        edges = _unique(room[:count])
        edges = edges[np.argsort(kernels.sizes(edges), kind="stable")]
        if edges.shape[0] and not edges[0].any():
            return [], True
        kept = np.empty_like(edges)
        edges = np.ascontiguousarray(kept[: kernels.minimal(edges, kept)])
        masks, whole = kernels.hitting_sets(edges, self.columns, self.most, _ROOM)
        return [_columns_of(mask) for mask in masks], whole

    def _validated(self, found: list[list[tuple[int, ...]]], stale: set[int]) -> tuple[set[int], int, bool]:
        """Check what is new: columns with a failure, of which more is known now; how much was checked, and if all."""
        wanted: dict[tuple[int, ...], list[int]] = {}
        for column in sorted(stale):
            for side in found[column]:
                if not self._known_to_hold(side, column):
                    wanted.setdefault(side, []).append(column)
        failed: set[int] = set()
        learnt: list[U64] = []
        pairs = np.empty((_LEARNT * self.columns, 3), np.int64)
        checked = 0
        for side, columns in sorted(wanted.items(), key=lambda item: (len(item[0]), item[0])):
            rhs = np.array(columns, np.int64)
            count = kernels.violations(
                self.codes, self.single, np.array(side, np.int64), rhs, self.slots, _LEARNT, pairs
            )
            broken = set(pairs[:count, 2].tolist())
            failed |= {columns[place] for place in broken}
            self.known.setdefault(repr(side).encode(), set()).update(
                column for place, column in enumerate(columns) if place not in broken
            )
            if count:
                masks = np.empty((count, self.words), np.uint64)
                for at in range(count):
                    kernels.agreement(self.codes, pairs[at, 0], pairs[at, 1], masks[at])
                learnt.append(masks)
            checked += 1
            if self._late():
                break
        if learnt:
            self._learn(np.concatenate(learnt))
        return failed, checked, checked == len(wanted)

    def _known_to_hold(self, side: tuple[int, ...], column: int) -> bool:
        return column in self.known.get(repr(side).encode(), ())

    def _late(self) -> bool:
        return self.ends is not None and time.monotonic() > self.ends


def _unique(masks: U64) -> U64:
    """Sets, each once, in order."""
    order = np.lexsort(masks.T) if masks.shape[1] > 1 else np.argsort(masks[:, 0])
    ordered = masks[order]
    # By sorting: numpy's own way hashes, which takes ten times as long for these.
    new = np.ones(ordered.shape[0], np.bool_)
    new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    found: U64 = ordered[new]
    return found


def _columns_of(mask: U64) -> tuple[int, ...]:
    return tuple(64 * word + bit for word, value in enumerate(mask.tolist()) for bit in range(64) if value >> bit & 1)
