"""What reading costs: the model by which JOSIE decides between lists and sets (spec-search-and-join 3.5).

A cost belongs to the machine that reads, so it is measured there, when a process gets ready for many questions, and
kept with the index for the next one. Costs decide how fast an answer is found, never what it is.

Where sets overlap alike nothing can be skipped, and no model of one query knows that before it has decided in vain. So
some queries of each size are answered both ways, and where merging was quicker, queries of that size are merged from
then on. So is what can be read before a decision has begun.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from lakescope.array_types import F64, I32
from lakescope.errors import IndexDamaged
from lakescope.store.inverted import PAGE_BITS, PAGE_LEAST

if TYPE_CHECKING:
    from lakescope.engines.joins.josie import Algorithm, SegmentOverlaps
    from lakescope.engines.joins.overlaps import OverlapSearch
    from lakescope.store.index import Index
    from lakescope.store.inverted import InvertedSegment


#: A page of which a set has a bitmap is compared in the time of so many items of a list. Not measured in a record: set
#: when bitmaps came, and part of what ``benchmarks/joins.py`` measures as a whole.
OF_PAGE = 48


@dataclass(frozen=True, slots=True)
class CostSampling:
    """How costs are measured on the machine that reads: what is read for it, how often, and what a fit may tell.

    Only time depends on it. ``benchmarks/joins.py`` measures what comes of it ("ours / josie", "ours / mergelist" in
    ``benchmarks/results/joins.md``); "not measured" means that no record compares other values of that field.
    """

    #: Entries of lists below which nothing is measured: they are read too soon to be timed. Not measured.
    enough_entries: int = 20_000
    #: Sets of the lake that are read, at most. Not measured.
    sets: int = 2_048
    #: Values of these sets in all, at most: a bound of time where sets are large. Not measured.
    values: int = 1 << 25
    #: Of so many of these sets the lists are read. Not measured.
    queries: int = 24
    #: Lists that are read of each, at most. Not measured.
    lists: int = 4_096
    #: Neighbours among these lists that are read together. Not measured: what questions read lies side by side, and the
    #: fit of random lists varied threefold.
    run: int = 256
    #: Groups of the queries that sets are read for: few, some and many. Not measured.
    query_groups: tuple[int, ...] = (16, 128, 1_024)
    #: Where to begin in a set is looked for like so many groups, at least; a fit may tell less (spec 3.5). Not
    #: measured.
    beginning: int = 8
    #: Queries that are marked to time reading beside marks. Not measured.
    marked: int = 12
    #: The fewest sets worth timing beside marks. Not measured.
    few_sets: int = 8
    #: What an item read beside marks costs at least, in nanoseconds: a fit may tell less. Not measured.
    least_item: float = 0.3
    #: What an item read beside marks costs at most, in nanoseconds. Not measured.
    most_item: float = 3.0
    #: Runs of which the shortest counts, since much else may run. Not measured.
    rounds: int = 3
    #: Queries of fewer entries are merged: that takes microseconds, and so does beginning to decide. Not measured.
    at_once: int = 1 << 12
    #: Queries of a size that are answered both ways, at least. Not measured.
    few_tried: int = 3
    #: Queries of a size that are answered both ways, at most. Not measured.
    most_tried: int = 32
    #: Sets that each of these queries wants. Not measured: what a question asks for unless it says otherwise.
    wanted: int = 10
    #: Nanoseconds that trying a size may take, beyond the fewest queries and two rounds: a budget. Not measured.
    trying_one: float = 1e8
    #: Nanoseconds that trying all sizes may take: those not tried by then, the smallest, are left to JOSIE. Not
    #: measured.
    trying: float = 4e9
    #: What anything proportional costs at least, in nanoseconds. Not measured: a fit may come out at 0 or below.
    least: float = 0.05
    #: What a group looked up in a set costs at least, in nanoseconds. Not measured.
    least_group: float = 4.0


SAMPLING = CostSampling()


@dataclass(frozen=True, slots=True)
class Costs:
    """What reading costs, in nanoseconds: a list and an entry of it, a set and a group looked up in it.

    ``per_count`` is what it costs to look at the count of a set, ``per_item`` to read an item of a set beside marks.
    ``merged`` are the sizes of queries that are better merged than decided about (``size_of``).
    """

    per_list: float = 20.0
    per_entry: float = 1.2
    per_set: float = 150.0
    per_group: float = 8.0
    per_count: float = 0.6
    per_item: float = 1.0
    merged: frozenset[int] = frozenset()

    def as_array(self) -> F64:
        return np.array([getattr(self, name) for name in _PRICES])

    def merges(self, lists: int, entries: int, k: int) -> bool:
        """Whether a query with so many lists and entries is better merged: tried where as many sets were wanted."""
        return entries < SAMPLING.at_once or (k >= SAMPLING.wanted and size_of(lists, entries) in self.merged)


_PRICES = [each.name for each in fields(Costs) if each.name != "merged"]


def size_of(lists: int, entries: int) -> int:
    """The size of a query by its lists and their entries: powers of two, as one number."""
    return entries.bit_length() << 8 | lists.bit_length()


def stored_costs(index: Index) -> Costs | None:
    """The costs that were measured on this machine, if any were."""
    kept = index.recall("costs") or {}
    prices = {name: value for name, value in kept.items() if name in _PRICES and isinstance(value, float) and value > 0}
    merged = kept.get("merged")
    if kept.get("machine") != _machine() or len(prices) != len(_PRICES) or not isinstance(merged, list):
        return None
    return Costs(**prices, merged=frozenset(each for each in merged if isinstance(each, int)))


def measure_costs(index: Index, search: OverlapSearch) -> Costs:
    """Measure costs by reading samples of the index, search by them, and keep them with it."""
    costs = measure_and_try(search)
    index.remember("costs", {**asdict(costs), "merged": sorted(costs.merged), "machine": _machine()})
    return costs


def measure_and_try(search: OverlapSearch) -> Costs:
    """Costs measured in the largest segment, and what is better merged there; they are set."""
    search.set_costs(fitted_costs(search.largest))
    search.set_costs(replace(search.costs, merged=better_merged(search.largest)))
    return search.costs


def fitted_costs(search: SegmentOverlaps) -> Costs:
    """Costs fitted to the times of reading; those assumed where there is too little to read.

    What is read is what questions read: lists and sets of sets of the lake, drawn by their size.
    """
    index = search.index
    sets = _draw_sets(index, SAMPLING.sets, 0)
    queries = [_runs(index.query_of_set(number).groups, SAMPLING.lists) for number in sets[: SAMPLING.queries].tolist()]
    read = np.array([[each.size, int(index.frequencies(each).sum(dtype=np.int64))] for each in queries], np.float64)
    if not sets.size or read[:, 1].sum() < SAMPLING.enough_entries:
        return Costs()
    per_list, per_entry = _fit(read, [_timed(partial(search.time_lists, each)) for each in queries])
    of_sets = [index.query_of_set(number).groups for number in sets.tolist()]
    looked_for = [min(of_sets, key=lambda each: abs(len(each) - count)) for count in SAMPLING.query_groups]
    looked = np.array([[sets.size, sets.size * each.size] for each in looked_for], np.float64)
    per_set, per_group = _fit(looked, [_timed(partial(search.time_sets, each, sets)) for each in looked_for])
    per_group = max(per_group, SAMPLING.least_group)
    begun, per_item = _beside_marks(search, sets, of_sets)
    per_set = max(per_set, begun, SAMPLING.beginning * per_group)
    per_count = max(SAMPLING.least, _timed(search.time_counts) / int(index.set_bounds[-1]))
    return Costs(per_list, per_entry, per_set, per_group, per_count, per_item)


def _draw_sets(index: InvertedSegment, by_size: int, evenly: int) -> I32:
    """Sets of the lake in any order: so many drawn by their size at most, and so many that are all as likely."""
    if not index.set_bounds[-1]:
        return np.empty(0, np.int32)
    dice = np.random.default_rng(5)
    reached = np.cumsum(index.sizes)
    drawn = np.searchsorted(reached, dice.integers(0, reached[-1], by_size), "right")
    drawn = np.unique(np.append(drawn, dice.integers(0, index.sizes.size, evenly)))
    sets: I32 = dice.permutation(drawn).astype(np.int32)
    # The first one whatever it holds.
    enough = int(np.searchsorted(np.cumsum(index.sizes[sets]), SAMPLING.values))
    return sets[: enough + 1]


def better_merged(search: SegmentOverlaps) -> frozenset[int]:
    """The sizes of queries for which merging all lists was quicker, tried on sets of the lake."""
    merged, until = set(), time.perf_counter_ns() + SAMPLING.trying
    # Damage is told by the question that meets it.
    with suppress(IndexDamaged):
        for size, numbers in _by_size(search.index).items():
            if time.perf_counter_ns() > until:
                break
            josie, mergelist = _both_ways(search, numbers)
            if mergelist < josie:
                merged.add(size)
    return frozenset(merged)


def _by_size(index: InvertedSegment) -> dict[int, list[int]]:
    """Some sets whose queries are of each size, large ones first; sizes that few have are left out."""
    sizes: dict[int, list[int]] = {}
    # Of long ones there are few: half of them are drawn by their size.
    for number in _draw_sets(index, SAMPLING.sets, SAMPLING.sets).tolist():
        groups = index.groups_of_set(number)
        entries = int(index.frequencies(groups).sum(dtype=np.int64))
        if entries >= SAMPLING.at_once:
            sizes.setdefault(size_of(groups.size, entries), []).append(number)
    return {
        size: sizes[size][: SAMPLING.most_tried]
        for size in sorted(sizes, reverse=True)
        if len(sizes[size]) >= SAMPLING.few_tried
    }


def _both_ways(search: SegmentOverlaps, numbers: list[int]) -> tuple[float, float]:
    """What JOSIE and MergeList take for the queries of some sets, in nanoseconds.

    Of each query the shortest of some rounds, since much else may run; by turns who comes first.
    """
    ways: tuple[Algorithm, Algorithm] = ("josie", "mergelist")
    shortest = np.full((len(numbers), len(ways)), np.inf)
    until = time.perf_counter_ns() + SAMPLING.trying_one
    for round_ in range(SAMPLING.rounds):
        for place, number in enumerate(numbers):
            if (place >= SAMPLING.few_tried or round_ > 1) and time.perf_counter_ns() > until:
                numbers = numbers if round_ > 1 else numbers[:place]
                break
            query = search.index.query_of_set(number)
            for way in (0, 1) if (place + round_) % 2 else (1, 0):
                began = time.perf_counter_ns()
                search.top(query, SAMPLING.wanted, [number], ways[way])
                shortest[place, way] = min(shortest[place, way], time.perf_counter_ns() - began)
    josie, mergelist = shortest[: len(numbers)].sum(axis=0).tolist()
    return josie, mergelist


def _beside_marks(search: SegmentOverlaps, sets: I32, of_sets: list[I32]) -> tuple[float, float]:
    """What it costs to begin a set and to read an item of it beside marks, of sets that share a range with a query."""
    amounts, spent = [], []
    for marked in of_sets[: SAMPLING.marked]:
        items = np.array([_effort(each[(each >= marked[0]) & (each <= marked[-1])]) for each in of_sets])
        order = np.argsort(items, kind="stable")
        order = order[np.searchsorted(items[order], 1) :]
        for part in np.array_split(order, 2):  # short ones and long ones
            if part.size >= SAMPLING.few_sets:
                amounts.append([marked.size, part.size, items[part].sum()])
                spent.append(_timed(partial(search.time_sets, marked, np.sort(sets[part]), marked=True)))
    if sum(amount[2] for amount in amounts) < SAMPLING.enough_entries:
        return Costs().per_set, Costs().per_item
    # The first is what marking takes.
    _, per_set, per_item = _fit(np.array(amounts, np.float64), spent)
    return per_set, min(SAMPLING.most_item, max(SAMPLING.least_item, per_item))


def _effort(groups: I32) -> int:
    """What it takes to read groups of a set, in items: those of a page with a bitmap are compared at once."""
    counts = np.unique(groups >> PAGE_BITS, return_counts=True)[1]
    return int(np.where(counts < PAGE_LEAST, counts, OF_PAGE).sum())


def _runs(groups: I32, most: int) -> I32:
    """Some groups in runs of neighbours: lists that lie side by side are read sooner than lists far apart."""
    if groups.size <= most:
        return groups
    starts = np.linspace(0, groups.size - SAMPLING.run, most // SAMPLING.run).astype(np.int64)
    return groups[np.unique((starts[:, None] + np.arange(SAMPLING.run)).ravel())]


def _timed(run: Callable[[], object]) -> float:
    """The shortest of some runs, in nanoseconds."""
    spent = []
    for _ in range(SAMPLING.rounds):
        began = time.perf_counter_ns()
        run()
        spent.append(time.perf_counter_ns() - began)
    return float(min(spent))


def _fit(amounts: F64, times: list[float]) -> list[float]:
    """Fixed costs and the last, proportional one by least squares; a fit may come out negative, a cost cannot (3.5)."""
    weights = 1 / np.array(times)[:, None]
    found, *_ = np.linalg.lstsq(amounts * weights, np.ones(len(times)), rcond=None)
    return [*(max(1.0, each) for each in found[:-1].tolist()), max(SAMPLING.least, float(found[-1]))]


def _machine() -> str:
    return f"{platform.node()} {platform.machine()}"
