"""Minimal exact dependencies: sample what does not hold, derive what could, validate, learn from what fails.

X -> A holds if X shares a column with every set of columns in which two rows differ that differ in A. So the minimal X
are the minimal sets that hit all these *difference sets*. A sample of pairs of rows, neighbours within groups of equal
values, gives most of the small ones; what hits them all is validated against the table, every failure is a pair of rows
whose difference set was missing, and when nothing fails any more the answer is exact and complete: whatever holds hits
all difference sets, hence contains a minimal set that hits the known ones, and that one holds (after FastFDs and HyFD).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lakescope.array_types import I8, I32, U64, Bools
from lakescope.engines.dependencies import kernels
from lakescope.engines.dependencies.budget import Budget

Side = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DependencySearchTuning:
    """How a search for dependencies shares its time between sampling, deriving and checking.

    Measured all together: at most 1.3 times the time of HyFD on eight sets, mostly half of it
    (benchmarks/results/dependencies.md, miners).
    """

    #: Rows up to which all pairs are compared at once. Measured by the small sets of
    #: benchmarks/results/dependencies.md: iris, bridges and hepatitis validate nothing.
    all_pairs: int = 600
    #: Columns of which all sets can be ticked off. Not measured: 4,096 sets fit in a cache.
    few_columns: int = 12
    #: Neighbours that are compared within groups, at most. Not measured: a bound on time.
    windows: int = 12
    #: Share of new agreements that is worth another round of neighbours. Not measured: a guess.
    worth: float = 0.01
    #: Agreements that are sampled, about. Not measured: a bound on time and memory.
    sampled: int = 1 << 17
    #: Words of the difference sets that are taken of them for a column. Not measured: a bound on time.
    edges: int = 1 << 14
    #: Violations of a dependency that are learnt from at once. Not measured: a guess.
    learnt: int = 16
    #: Left sides that are kept of one column. Not measured: a bound on memory.
    room: int = 1 << 18
    #: Left sides that are kept of all columns. Not measured: a bound on memory.
    most_found: int = 1 << 20
    #: Columns from which on a table has many sizes of left sides in ``levels``. Not measured: a guess.
    wide: int = 24
    #: Sizes of left sides after which all smaller ones are complete: when time ends, the short ones have been found.
    #: Each costs time of its own. Not measured: a guess.
    levels: tuple[int, ...] = (1, 2, 3, 4, 6)
    #: What ``levels`` is for tables of few columns. Not measured: a guess.
    few_levels: tuple[int, ...] = (2,)


SEARCH = DependencySearchTuning()


@dataclass(frozen=True, slots=True)
class Discovered:
    """Minimal left sides (as columns) of each column, and whether that is all there are.

    If not, all of at most ``whole`` columns are there (-1: not even that is sure), and ``full`` says if there were too
    many to keep rather than too little time.
    """

    left_sides: list[list[Side]]
    complete: bool
    whole: int
    full: bool
    rounds: int
    validated: int
    exact: bool = True


def discover(codes: I32, most: int | None = None, budget: Budget | None = None) -> Discovered:
    """All minimal dependencies with at most ``most`` columns on the left; fewer when the budget ends."""
    return Discovery(codes, most, budget or Budget(None)).run()


class Discovery:
    """One search: what is known of pairs of rows, and what of left sides."""

    #: Whether its rows are all there are, not a sample.
    whole_table = True

    def __init__(self, codes: I32, most: int | None, budget: Budget) -> None:
        self.codes = np.ascontiguousarray(codes)
        self.columns, self.rows = codes.shape
        self.words = (self.columns + 63) // 64
        self.most = self.columns - 1 if most is None else min(most, self.columns - 1)
        self.budget = budget
        self.full = False
        self.everything = self._mask(range(self.columns))
        # Agreements of pairs of rows: sampled ones, and those that broke what the sampled ones left possible.
        self.agreements = np.zeros((0, self.words), np.uint64)
        self.learnt = np.zeros((0, self.words), np.uint64)
        self.sampled: dict[int, U64] = {}
        size = 16
        while size < 2 * self.rows:
            size *= 2
        self.slots = np.empty(size, np.int32)
        self.confirmed: dict[Side, set[int]] = {}

    def _mask(self, columns: range | tuple[int, ...] | list[int]) -> U64:
        mask = np.zeros(self.words, np.uint64)
        for column in columns:
            mask[column >> 6] |= np.uint64(1 << (column & 63))
        return mask

    @cached_property
    def single(self) -> Bools:
        """Which cells hold a value that occurs once in their column."""
        found = np.empty(self.codes.shape, np.bool_)
        for column, codes in enumerate(self.codes):
            counts = np.bincount(codes[codes >= 0], minlength=1)
            found[column] = counts[np.maximum(codes, 0)] == 1
        return found

    # --- sampling -----------------------------------------------------------------------------------------------------

    def _sample(self) -> None:
        if self.rows <= SEARCH.all_pairs:
            masks = np.empty((self.rows * (self.rows - 1) // 2, self.words), np.uint64)
            masks = masks[: kernels.all_agreements(self.codes, 0, self.rows, masks)]
            self.agreements = _smallest_first(masks, self.columns)[::-1].copy()
        else:
            self.agreements = _smallest_first(self._neighbours())[::-1].copy()

    def _neighbours(self) -> U64:
        """Agreements of rows that lie near each other by some column."""
        found = self.agreements
        orders = []
        for column in range(self.columns):
            # Rows of a group lie beside those that are like them in the next columns.
            keys = [self.codes[(column + step) % self.columns] for step in (2, 1, 0)]
            order = np.lexsort(keys)
            orders.append((order, np.ascontiguousarray(self.codes[column][order])))
        room = np.empty((self.rows, self.words), np.uint64)
        active = set(range(self.columns))
        for distance in range(1, SEARCH.windows + 1):
            for column in sorted(active):
                order, ordered = orders[column]
                count = kernels.neighbours(self.codes, order, ordered, distance, room)
                before = found.shape[0]
                found = _unique(np.concatenate([found, room[:count]]))
                if found.shape[0] - before < SEARCH.worth * count:
                    active.discard(column)
                if found.shape[0] > SEARCH.sampled or self.budget.late:
                    return found
        return found

    # --- induction and validation -------------------------------------------------------------------------------------

    def run(self) -> Discovered:
        if self.whole_table and self.rows <= SEARCH.all_pairs and self.columns <= SEARCH.wide:
            self._sample()
            if self.agreements.shape[0] <= SEARCH.edges // self.words:
                # All pairs of rows are known: what they leave possible holds.
                found = self._nothing()
                complete = self._induce(found, list(range(self.columns)), self.most)
                return Discovered(found, complete, self.most if complete else -1, self.full, 1, 0)
        whole, sure = self._single_columns() if self.columns > SEARCH.wide and self.rows > 1 else (-1, self._nothing())
        if not self.agreements.size:
            self._sample()
        # No pair of rows is known to agree in anything: the empty agreement is always possible.
        if self.rows > 1:
            empty = np.zeros((int(self._some_differ_everywhere()), self.words), np.uint64)
            self.learnt = _unique(np.concatenate([self.learnt, empty]))
        rounds = validated = 0
        found = self._nothing()
        levels = SEARCH.levels if self.columns > SEARCH.wide else SEARCH.few_levels
        for most in (*(level for level in levels if whole < level < self.most), self.most):
            stale = set(range(self.columns))
            while stale:
                rounds += 1
                all_there = self._induce(found, sorted(stale), most)
                stale, checked, all_checked = self._validated(found, stale)
                validated += checked
                if not all_there or not all_checked or (stale and self.budget.late):
                    # What hits all that is known and holds is minimal: a smaller one would miss a pair that breaks it.
                    held = [
                        sorted({*sure[at], *(each for each in sides if self._holds(each, at))}, key=_by_size)
                        for at, sides in enumerate(found)
                    ]
                    return Discovered(held, False, whole, self.full, rounds, validated)
            whole, sure = most, list(found)
        return Discovered(found, True, whole, False, rounds, validated)

    def _nothing(self) -> list[list[Side]]:
        return [[] for _ in range(self.columns)]

    def _single_columns(self) -> tuple[int, list[list[Side]]]:
        """Constants, and what one column determines, without sampling: of many columns that alone takes long.

        Returns how many columns left sides have that are complete, and the left sides.
        """
        found = self._nothing()
        for size in range(min(self.most, 1) + 1):
            sides: list[Side] = [()] if size == 0 else [(column,) for column in range(self.columns)]
            wanted = {
                side: [column for column in range(self.columns) if column not in side and () not in found[column]]
                for side in sides
            }
            for side, columns in wanted.items():
                for column in columns:
                    found[column].append(side)
            _, _, all_checked = self._validated(found, set(range(self.columns)))
            found = [[side for side in each if self._holds(side, at)] for at, each in enumerate(found)]
            if not all_checked:
                return size - 1, found
        return min(self.most, 1), found

    def _induce(self, found: list[list[Side]], columns: list[int], most: int) -> bool:
        """Derive the left sides of columns from what is known; whether all of them."""
        for column in columns:
            found[column] = []
        kept = sum(len(sides) for sides in found)
        # The rest of the time is for validation: what has not been validated is not told.
        with self.budget.part(0.5).flag() as late:
            for column in columns:
                sides, all_there = self._induced(column, most, min(SEARCH.room, SEARCH.most_found - kept), late)
                found[column] = sides
                kept += len(sides)
                if not all_there:
                    self.full = not late[0]
                    return False
        return True

    def _some_differ_everywhere(self) -> bool:
        """Whether some pair of rows agrees in nothing; tried on neighbours only, validation finds the rest."""
        mask = np.empty(self.words, np.uint64)
        for row in range(1, min(self.rows, 50)):
            kernels.agreement(self.codes, 0, row, mask)
            if not mask.any():
                return True
        return False

    def _induced(self, column: int, most: int, room: int, late: I8) -> tuple[list[Side], bool]:
        """Minimal sets of columns that hit all known difference sets of a column."""
        if column not in self.sampled:
            self.sampled[column] = self._differences(self.agreements, column)
        edges = self.sampled[column]
        if self.learnt.size:
            edges = _smallest_first(np.concatenate([edges, self._differences(self.learnt, column)]))
        if edges.shape[0] and not edges[0].any():
            return [], True
        masks, whole = kernels.hitting_sets(edges, self.columns, most, room, late)
        return [_columns_of(mask) for mask in masks], whole

    def _differences(self, agreements: U64, column: int) -> U64:
        """Columns in which pairs of rows differ that differ in one: the smallest sets, none within another.

        Of sampled agreements the largest come first, each once. Only so many are taken, but all that were learnt.
        """
        edges = np.empty_like(agreements)
        edges = edges[: kernels.differences(agreements, column, self.everything, edges)]
        edges = _smallest_first(edges) if agreements is self.learnt else edges[: SEARCH.edges // self.words]
        kept = np.empty_like(edges)
        return kept[: kernels.minimal(edges, kept)]

    def _validated(self, found: list[list[Side]], stale: set[int]) -> tuple[set[int], int, bool]:
        """Check what is new: columns with a failure, of which more is known now; how much was checked, and if all."""
        wanted: dict[Side, list[int]] = {}
        for column in sorted(stale):
            for side in found[column]:
                if not self._holds(side, column):
                    wanted.setdefault(side, []).append(column)
        failed: set[int] = set()
        learnt: list[U64] = []
        checked = 0
        for side, held, masks in self._checked(wanted):
            self.confirmed.setdefault(side, set()).update(held)
            failed.update(column for column in wanted[side] if column not in held)
            learnt.append(masks)
            checked += 1
        if learnt:
            self.learnt = _unique(np.concatenate([self.learnt, *learnt]))
        return failed, checked, checked == len(wanted)

    def _checked(self, wanted: dict[Side, list[int]]) -> Iterator[tuple[Side, list[int], U64]]:
        """Check left sides until the time is up: columns they determine, agreements of pairs of rows that break one."""
        pairs = np.empty((SEARCH.learnt * self.columns, 3), np.int64)
        for side, columns in sorted(wanted.items(), key=lambda item: _by_size(item[0])):
            rhs = np.array(columns, np.int64)
            count = kernels.violations(
                self.codes, self.single, np.array(side, np.int64), rhs, self.slots, SEARCH.learnt, pairs
            )
            broken = set(pairs[:count, 2].tolist())
            masks = np.empty((count, self.words), np.uint64)
            for at in range(count):
                kernels.agreement(self.codes, pairs[at, 0], pairs[at, 1], masks[at])
            yield side, [column for place, column in enumerate(columns) if place not in broken], masks
            if self.budget.late:
                break

    def _holds(self, side: Side, column: int) -> bool:
        return column in self.confirmed.get(side, ())


def _by_size(side: Side) -> tuple[int, tuple[int, ...]]:
    return len(side), side


def _unique(masks: U64, columns: int = 64) -> U64:
    """Sets of so many columns, each once, in order."""
    if columns <= SEARCH.few_columns:
        met = np.zeros(1 << columns, np.bool_)
        met[masks[:, 0].view(np.int64)] = True
        return np.flatnonzero(met).astype(np.uint64)[:, None]
    order = np.lexsort(masks.T) if masks.shape[1] > 1 else np.argsort(masks[:, 0])
    ordered = masks[order]
    # By sorting: numpy's own way hashes, which takes ten times as long for these.
    new = np.ones(ordered.shape[0], np.bool_)
    new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    found: U64 = ordered[new]
    return found


def _smallest_first(masks: U64, columns: int = 64) -> U64:
    """Sets of so many columns, each once, in order of their sizes."""
    found = _unique(masks, columns)
    return found[np.argsort(kernels.sizes(found), kind="stable")]


def _columns_of(mask: U64) -> tuple[int, ...]:
    return tuple(64 * word + bit for word, value in enumerate(mask.tolist()) for bit in range(64) if value >> bit & 1)
