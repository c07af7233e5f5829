"""The inverted index and exact search over it: every answer against brute force, every part against plain sets."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from helpers.inverted import Sets, index_of_sets, skewed, token
from lakescope.build import inverted as build
from lakescope.build import lists as pipeline_lists
from lakescope.engines.joins import costs as costs_module
from lakescope.engines.joins import kernels
from lakescope.engines.joins.costs import Costs, better_merged, size_of
from lakescope.engines.joins.inverted import InvertedIndex
from lakescope.engines.joins.josie import Algorithm, Overlaps, SegmentOverlaps
from lakescope.engines.joins.overlaps import OverlapSearch
from lakescope.errors import IndexDamaged
from lakescope.lake import Lake
from lakescope.sketches.minhash import MinHash
from lakescope.store import index as store_index
from lakescope.store.arrays import ArrayFile, read_arrays
from lakescope.store.index import Index
from lakescope.store.inverted import PAGE_BITS, PAGE_LEAST, PAGE_WORDS, InvertedSegment, QueryGroups

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


#: Whatever reading costs, the answer is the same: cheap sets, cheap lists, decisions at every list.
COSTS = [Costs(), Costs(per_set=0, per_group=0, per_count=0), Costs(per_entry=1e-6, per_list=0), Costs(per_count=0)]
ALGORITHMS: list[Algorithm] = ["josie", "mergelist", "probeset", "numpy"]


@pytest.fixture
def place() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp())
    yield folder
    shutil.rmtree(folder)


def brute_force(sets: Sets, query: Sequence[int], k: int, exclude: Sequence[int] = ()) -> list[tuple[int, int]]:
    """(set, overlap) of the best, equal ones by number."""
    wanted = set(query)
    found = [(number, len(wanted & set(each))) for number, each in enumerate(sets) if number not in exclude]
    return sorted((each for each in found if each[1]), key=lambda each: (-each[1], each[0]))[:k]


def answers(search: OverlapSearch, query: Sequence[int], k: int, exclude: Sequence[int] = ()) -> dict[str, object]:
    groups = search.query(np.array(sorted(set(query)), np.uint64))
    found: dict[str, object] = {}
    for algorithm in ALGORITHMS:
        top = search.top(groups, k, exclude, algorithm)
        found[algorithm] = list(zip(top.sets.tolist(), top.overlaps.tolist(), strict=True))
    return found


def check(index: InvertedIndex, sets: Sets, queries: Sequence[Sequence[int]], ks: Sequence[int] = (1, 3, 100)) -> None:
    """Every algorithm under every cost model, against brute force."""
    searches = [OverlapSearch(index, costs) for costs in COSTS]
    for query in queries:
        for k in ks:
            truth = brute_force(sets, query, k)
            for search in searches:
                assert answers(search, query, k) == dict.fromkeys(ALGORITHMS, truth)


# --- golden -----------------------------------------------------------------------------------------------------------


def test_the_golden_trace(place: Path) -> None:
    """Examples 3.2.3 to 3.3.2 of the thesis: X1 = {x1, x100, x200}, X2 = {x2, x5}, X3 = {x2}, X4 = {x2..x101}."""
    sets = [[1, 100, 200], [2, 5], [2], list(range(2, 102))]
    tokens = [[token(x) for x in each] for each in sets]
    index = index_of_sets(place / "i", tokens)
    query = [token(x) for x in (1, 2, 100, 200)]
    assert brute_force(tokens, query, 2) == [(0, 3), (3, 2)]
    check(index, tokens, [query], ks=[2])


def test_containment_is_not_the_number_of_joined_rows(place: Path) -> None:
    """Tables 2.1 and 2.2 of the thesis: B holds 9 of 10 partners, C 5, A only one, however often."""
    partners = [token(x) for x in range(10)]
    sets = [partners[:1], partners[:9], partners[3:8]]
    search = OverlapSearch(index_of_sets(place / "i", sets))
    top = search.top(search.query(np.array(sorted(partners), np.uint64)), 3)
    assert (top.sets.tolist(), top.overlaps.tolist()) == ([1, 2, 0], [9, 5, 1])


# --- against brute force ----------------------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    sets=st.lists(st.lists(st.integers(0, 40), unique=True, max_size=25), min_size=1, max_size=25),
    queries=st.lists(st.lists(st.integers(0, 50), max_size=30), min_size=1, max_size=4),
    bits=st.integers(1, 4),
    pieces=st.integers(1, 3),
)
def test_top_k_is_that_of_brute_force(sets: Sets, queries: Sets, bits: int, pieces: int) -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        tokens = [[token(x) for x in each] for each in sets]
        index = index_of_sets(folder / "i", tokens, bits=bits, pieces=pieces)
        check(index, tokens, [[token(x) for x in query] for query in queries])
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize("seed", range(4))
def test_thousands_of_queries_on_skewed_sets(place: Path, seed: int) -> None:
    dice = random.Random(seed)
    sets = skewed(dice, 300, 400)
    index = index_of_sets(place / "i", sets, bits=3)
    search = OverlapSearch(index)
    read = dict.fromkeys(("sets", "decisions"), 0)
    for _ in range(250):
        query = list(dice.choice(sets)) if dice.random() < 0.6 else dice.sample([token(x) for x in range(450)], 60)
        exclude = dice.sample(range(300), dice.choice([0, 1, 5]))
        k = dice.choice([1, 2, 10, 50, 1000])
        assert answers(search, query, k, exclude) == dict.fromkeys(ALGORITHMS, brute_force(sets, query, k, exclude))
        eager = OverlapSearch(index, Costs(per_set=0, per_group=0, per_count=0))
        top = eager.top(eager.query(np.array(sorted(query), np.uint64)), k, exclude, "josie")
        read["sets"] += top.sets_read
        read["decisions"] += top.decisions
        assert list(zip(top.sets.tolist(), top.overlaps.tolist(), strict=True)) == brute_force(sets, query, k, exclude)
    assert read["sets"] > 100
    assert read["decisions"] > 100, "JOSIE never had to decide: this test says nothing"


def test_josie_skips_the_lists_of_popular_tokens(place: Path) -> None:
    """A query whose rare tokens tell the answer: the lists of its popular ones stay unread."""
    popular = [token(10_000 + x) for x in range(8)]
    sets = [[token(x) for x in range(number * 7, number * 7 + 60)] + popular for number in range(500)]
    for number, each in enumerate(popular):  # else they had one list in common
        sets[number].remove(each)
    search = OverlapSearch(index_of_sets(place / "i", sets), Costs(per_count=0, per_group=0.1, per_set=1))
    query = search.query(np.array(sorted(sets[250]), np.uint64))
    josie, merged = search.top(query, 5), search.top(query, 5, algorithm="mergelist")
    assert josie.sets.tolist() == merged.sets.tolist()
    assert josie.entries < merged.entries / 2
    assert 0 < josie.sets_read < 50


def samples_of_one_domain(dice: random.Random, count: int) -> Sets:
    """Sets that all overlap alike, the later, popular tokens more than the first ones tell: nothing can be skipped."""
    return [
        [token(int(2_000 * dice.random() ** 2)) for _ in range(dice.choice([200, 500, 1_500]))] for _ in range(count)
    ]


def test_queries_of_sizes_that_are_better_merged_are_merged(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dice = random.Random(5)
    sets = [dice.sample(range(300), dice.choice([5, 50, 100])) for _ in range(60)]
    index = index_of_sets(place / "i", sets)
    by_default, merging = OverlapSearch(index), OverlapSearch(index)
    query = index.query_of_set(0)
    lists, entries = query.groups.size, int(index.parts[0].segment.frequencies(query.groups).sum())
    by_default.load()
    assert merging.top(query, 3).algorithm == "mergelist", "what takes microseconds is not worth deciding"
    monkeypatch.setattr(costs_module, "SAMPLING", replace(costs_module.SAMPLING, at_once=entries))
    for size in {size_of(lists * one // 2, entries * other // 2) for one in range(1, 5) for other in range(1, 5)}:
        merging.set_costs(Costs(merged=frozenset([size])))
        found = merging.top(query, 10)
        assert found.algorithm == ("mergelist" if size == size_of(lists, entries) else "josie")
        assert found.sets.tolist() == by_default.top(query, 10).sets.tolist()
        assert merging.top(query, 3).algorithm == "josie", "what was tried were ten sets"
    assert by_default.top(query, 10).algorithm == "josie"


@pytest.mark.parametrize("quicker", ["josie", "mergelist"])
def test_what_is_better_merged_is_found_by_trying(
    place: Path, monkeypatch: pytest.MonkeyPatch, quicker: Algorithm
) -> None:
    """By a clock that runs slower for one of both."""
    dice = random.Random(6)
    sets = [dice.sample(range(300), 50) for _ in range(60)] + [[1000 + number] for number in range(2)]
    search = OverlapSearch(index_of_sets(place / "i", sets)).largest
    asked: list[Algorithm | None] = []
    top = SegmentOverlaps.top

    def counted(self: SegmentOverlaps, query: QueryGroups, k: int, exclude: Any, algorithm: Algorithm) -> Overlaps:
        asked.append(algorithm)
        return top(self, query, k, exclude, algorithm)

    monkeypatch.setattr(SegmentOverlaps, "top", counted)
    clock = SimpleNamespace(perf_counter_ns=lambda: sum(1 if it == quicker else 2 for it in asked))
    monkeypatch.setattr(costs_module, "time", clock)
    assert not better_merged(search)
    assert not asked, "what takes microseconds is not worth trying"
    monkeypatch.setattr(costs_module, "SAMPLING", replace(costs_module.SAMPLING, at_once=1))
    queries = [search.index.query_of_set(number).groups for number in range(60)]
    sizes = Counter(size_of(each.size, int(search.index.frequencies(each).sum())) for each in queries)
    tried = {size: min(count, 32) for size, count in sizes.items() if count >= 3}
    merged = better_merged(search)
    assert len(asked) == 2 * 3 * sum(tried.values()), "three times both ways"
    assert merged == (set(tried) if quicker == "mergelist" else set()), "of sizes that few sets have nothing is known"
    asked.clear()
    monkeypatch.setattr(costs_module, "SAMPLING", replace(costs_module.SAMPLING, trying_one=0))
    better_merged(search)
    assert len(asked) == 2 * 2 * 3 * len(tried), "the fewest, twice both ways"
    monkeypatch.setattr(costs_module, "SAMPLING", replace(costs_module.SAMPLING, trying=-1))
    assert not better_merged(search), "what there is no time to try is left to JOSIE"


def test_where_nothing_can_be_skipped_deciding_costs_little(place: Path) -> None:
    sets = [sorted(set(each)) for each in samples_of_one_domain(random.Random(3), 1_500)]
    index = index_of_sets(place / "i", sets)
    search = OverlapSearch(index, Costs(per_list=1, per_entry=1, per_set=150, per_group=1, per_count=0, per_item=1))
    dear, decisions = [], 0
    for number in range(0, 1_500, 50):
        query = search.query(np.array(sets[number], np.uint64))
        josie, merged = search.top(query, 10), search.top(query, 10, algorithm="mergelist")
        assert (josie.sets.tolist(), josie.overlaps.tolist()) == (merged.sets.tolist(), merged.overlaps.tolist())
        dear.append((josie.entries + 150 * josie.sets_read) / merged.entries)
        decisions += josie.decisions
    assert decisions > 30
    assert max(dear) < 1.1


@given(st.lists(st.tuples(st.integers(0, 400), st.integers(1, 60)), unique_by=lambda each: each[0]), st.booleans())
def test_sets_are_put_in_order_of_their_counts(found: list[tuple[int, int]], ascending: bool) -> None:
    counts = np.zeros(401, np.int32)
    for number, count in found:
        counts[number] = count
    numbers = [number for number, _ in found]
    candidates = np.array(sorted(numbers) if ascending else numbers, np.int32)
    wanted = sorted(numbers, key=lambda number: (-counts[number], number))
    assert kernels._by_count(candidates, counts).tolist() == wanted
    for least in (0, 1, 30, 61):
        ordered = np.array(wanted, np.int32)
        assert kernels._rivals(ordered, counts, 0, least) == sum(counts[number] >= least for number in wanted)


def versions(dice: random.Random, count: int) -> Sets:
    """Versions of one large column, and some small ones: pages of groups of which sets have bitmaps.

    Every fifth value of the first half has a twin that is in the same versions, so that groups there weigh two.
    """
    sets: list[list[int]] = []
    for _ in range(count):
        share, extra = dice.uniform(0.3, 1.0), dice.choice([0, 0, 40])
        kept = (
            [x for x in range(7000) if dice.random() < share] if dice.random() < 0.8 else dice.sample(range(7000), 90)
        )
        twins = [100_000 + x for x in kept if x % 5 == 0 and x < 3500]
        sets.append([token(x) for x in (*kept, *twins, *dice.sample(range(200_000, 200_200), extra))])
    return sets


@pytest.fixture(scope="module")
def paged() -> Iterator[tuple[Sets, InvertedIndex]]:
    with tempfile.TemporaryDirectory() as folder:
        sets = versions(random.Random(11), 40)
        yield sets, index_of_sets(Path(folder) / "i", sets)


def test_bitmaps_say_what_the_sets_say(paged: tuple[Sets, InvertedIndex]) -> None:
    index = segment_of(paged[1])
    found = 0
    for file in index.sets:
        pages, bits = file["pages"].reshape(-1, 3), file["bits"].reshape(-1, PAGE_WORDS)
        for local in range(file["page_starts"].size - 1):
            groups = file["groups"][file["starts"][local] : file["starts"][local + 1]]
            mine = range(file["page_starts"][local], file["page_starts"][local + 1])
            held, counts = np.unique(groups >> PAGE_BITS, return_counts=True)
            assert pages[mine, 0].tolist() == held[counts >= PAGE_LEAST].tolist()
            for at in mine:
                number, begin, end = pages[at].tolist()
                here = np.flatnonzero(np.unpackbits(bits[at].view(np.uint8), bitorder="little"))
                assert (here + (number << PAGE_BITS)).tolist() == groups[begin:end].tolist()
                found += 1
    assert found > 40


@pytest.mark.parametrize(
    "costs", [Costs(), Costs(per_list=1e3), Costs(per_set=0, per_group=0, per_count=0, per_item=0)]
)
def test_sets_with_bitmaps_are_found_as_by_brute_force(paged: tuple[Sets, InvertedIndex], costs: Costs) -> None:
    sets, index = paged
    search, dice, read = OverlapSearch(index, costs), random.Random(12), 0
    for _ in range(30):
        share = dice.choice([0.2, 0.7, 1.0])
        query = [t for t in dice.choice(sets) if dice.random() < share] + [token(x) for x in range(300_000, 300_050)]
        k, exclude = dice.choice([1, 4, 10]), dice.sample(range(40), 2)
        groups = search.query(np.array(sorted(query), np.uint64))
        truth = dict(brute_force(sets, query, 40))
        overlaps = search.overlaps_of(groups, np.arange(40, dtype=np.int32))
        assert overlaps.tolist() == [truth.get(number, 0) for number in range(40)]
        assert answers(search, query, k, exclude) == dict.fromkeys(ALGORITHMS, brute_force(sets, query, k, exclude))
        read += search.top(groups, k, exclude).sets_read
    assert read > 100 or costs == Costs(), "no sets were read: this test says nothing"


def test_bitmaps_are_used_and_not_needed(paged: tuple[Sets, InvertedIndex]) -> None:
    """Nothing but bitmaps tells kernels what a page holds; an index of before has none, and answers the same."""
    sets, index = paged
    segment = segment_of(index)
    everyone = np.arange(40, dtype=np.int32)
    query = segment.query_of_set(max(everyone.tolist(), key=lambda number: len(sets[number])))
    found = OverlapSearch(index).overlaps_of(query, everyone).tolist()
    whole, segment.sets = segment.sets, [dict(file) for file in segment.sets]
    try:
        for file in segment.sets:
            file["bits"] = np.zeros_like(file["bits"])
        assert OverlapSearch(index).overlaps_of(query, everyone).tolist() != found
        for file in segment.sets:
            del file["bits"]
        assert OverlapSearch(index).overlaps_of(query, everyone).tolist() == found
    finally:
        segment.sets = whole


def test_sets_that_hold_a_whole_query_are_found_without_reading_lists(place: Path) -> None:
    """Row numbers: most sets hold the first few, and the first ``k`` of them by number are the answer."""
    dice = random.Random(5)
    sets = [[token(x) for x in range(int(300 * dice.random() ** 2))] for _ in range(1500)]
    for each in sets[::7]:
        if each:
            each.remove(dice.choice(each))
    search = OverlapSearch(index_of_sets(place / "i", sets), Costs(per_list=1e4))
    for size in (3, 8, 9, 60, 130):
        query = [token(x) for x in range(size)]
        exclude = dice.sample(range(1500), 40)
        known = search.query(np.array(sorted(query), np.uint64))
        josie = search.top(known, 10, exclude, "josie")
        found = list(zip(josie.sets.tolist(), josie.overlaps.tolist(), strict=True))
        assert found == brute_force(sets, query, 10, exclude)
        assert josie.entries < search.top(known, 10, exclude, "mergelist").entries / 5
        assert not josie.decisions


def test_a_query_of_a_damaged_set_whose_groups_are_in_no_order_is_not_marked(place: Path) -> None:
    search = OverlapSearch(index_of_sets(place / "i", skewed(random.Random(6), 100, 200)))
    disordered = np.array([50, 3, 20, 7], np.int32)
    assert not kernels._close(disordered, 0, kernels.room_for_marks(1000))
    everyone = np.arange(100, dtype=np.int32)
    search.overlaps_of(QueryGroups(disordered, np.ones(4, np.int32), 4), everyone)


def test_marks_of_a_query_in_no_order_are_all_taken_back() -> None:
    """A set of a damaged file as a query: whatever it holds, the next query finds nothing marked."""
    room = kernels.room_for_marks(50_000)
    for groups in ([3, 40_000, 20, 700], [5, 9, 49_000, 4_097, 6], [8, 9, 10, 30_000]):
        query, weights = np.array(groups, np.int32), np.full(len(groups), 2, np.int32)
        many = np.concatenate([query[:1], np.repeat(query[1:-1], 400), query[-1:]])
        assert kernels._mark(many, np.resize(weights, many.size), 0, room, 100)
        kernels._unmark(many, 0, room)
        assert not any(part.any() for part in room[:3])


def test_no_rival_of_what_was_found_elsewhere(paged: tuple[Sets, InvertedIndex]) -> None:
    """Another segment holds more than any set here: nothing of this one is wanted, and nothing goes wrong."""
    sets, index = paged
    (search,) = OverlapSearch(index, Costs(per_list=1e3, per_set=0, per_group=0, per_item=0))._searches
    query = segment_of(index).query_of_set(max(range(40), key=lambda number: len(sets[number])))
    for least in (query.size // 4, query.size // 2, query.size - 1, query.size, query.size + 1, 10 * query.size):
        found = search.top(query, 3, algorithm="josie", least=least)
        truth = [each for each in search.top(query, 3, algorithm="mergelist").overlaps.tolist() if each >= least]
        assert [each for each in found.overlaps.tolist() if each >= least] == truth


def segment_of(index: InvertedIndex) -> InvertedSegment:
    assert index.alone is not None
    return index.alone


# --- parts ------------------------------------------------------------------------------------------------------------


def test_every_part_says_what_the_sets_say(place: Path) -> None:
    sets = skewed(random.Random(9), 120, 200)
    index = segment_of(index_of_sets(place / "i", sets, bits=3, pieces=3))
    assert index.sizes.tolist() == [len(each) for each in sets]
    holders: dict[int, list[int]] = {}
    for number, each in enumerate(sets):
        for t in each:
            holders.setdefault(t, []).append(number)
    tokens = np.array(sorted(holders), np.uint64)
    groups = index.groups_of_tokens(tokens)
    lists = {t: tuple(holders[t]) for t in tokens.tolist()}
    by_group: dict[int, set[tuple[int, ...]]] = {}
    for t, group in zip(tokens.tolist(), groups.tolist(), strict=True):
        by_group.setdefault(group, set()).add(lists[t])
    assert all(len(each) == 1 for each in by_group.values()), "a group of tokens with different lists"
    assert len(by_group) == len(set(lists.values())) == index.group_bounds[-1], "equal lists in different groups"
    order = sorted(by_group)
    assert order == list(range(len(order)))
    lengths = [len(next(iter(by_group[group]))) for group in order]
    assert lengths == sorted(lengths), "groups are not in order of frequency"
    assert index.frequencies(np.array(order, np.int32)).tolist() == lengths
    for number, each in enumerate(sets):
        found = index.groups_of_set(number)
        assert found.tolist() == sorted({*index.groups_of_tokens(np.array(sorted(each), np.uint64)).tolist()})
        assert index.query_of_set(number).weights.sum() == len(each)


def test_unknown_tokens_have_no_group(place: Path) -> None:
    index = index_of_sets(place / "i", [[5, 9]])
    search = OverlapSearch(index)
    strangers = np.array([1, 6, 2**64 - 1], np.uint64)
    assert segment_of(index).groups_of_tokens(strangers).tolist() == [-1, -1, -1]
    assert search.query(strangers).groups.size == 0
    assert search.query(strangers).size == 3
    assert search.top(search.query(strangers), 5).sets.size == 0


def test_the_hash_zero_is_a_token_like_any_other(place: Path) -> None:
    search = OverlapSearch(index_of_sets(place / "i", [[1, 2**64 - 1], [7]]))
    assert search.top(search.query(np.array([0], np.uint64)), 1).sets.tolist() == [0]


@pytest.mark.parametrize("sets", [[[]], [[], [3]], [[3]], [[3], [3]]])
def test_empty_sets_and_lonely_ones(place: Path, sets: Sets) -> None:
    index = index_of_sets(place / "i", sets)
    check(index, sets, [[3], [4], []])
    assert index.sizes.tolist() == [len(each) for each in sets]


def test_lists_whose_hashes_collide_are_told_apart(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal hashes only mean that contents are compared."""
    monkeypatch.setattr(pipeline_lists, "hash_lists", lambda starts, items: np.zeros(starts.size - 1, np.uint64))
    sets = skewed(random.Random(3), 60, 80)
    index = index_of_sets(place / "i", sets)
    check(index, sets, sets[:20], ks=[5])
    honest = len({tuple(n for n, each in enumerate(sets) if t in each) for t in {t for each in sets for t in each}})
    assert index.group_count == honest


def test_the_index_does_not_depend_on_how_it_is_cut(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Buckets, shards, files: the same tokens, groups, lists and sets."""
    sets = skewed(random.Random(4), 150, 300)

    def parts(index: InvertedSegment) -> list[object]:
        tokens = np.array(sorted({t for each in sets for t in each}), np.uint64)
        groups = np.arange(index.group_bounds[-1], dtype=np.int32)
        return [
            index.groups_of_tokens(tokens).tolist(),
            [each.tolist() for each in index.lists(groups)],
            index.widths(groups).tolist(),
            [index.groups_of_set(number).tolist() for number in range(len(sets))],
        ]

    one = parts(segment_of(index_of_sets(place / "one", sets, bits=1, pieces=1)))
    monkeypatch.setattr(build, "INVERTED", replace(build.INVERTED, pairs_per_shard=200, items_per_file=100))
    whole = index_of_sets(place / "cut", sets, bits=4, pieces=3)
    cut = segment_of(whole)
    assert min(len(cut.postings), len(cut.sets), len(cut.tokens), len(cut.forest)) > 2
    assert parts(cut) == one
    check(whole, sets, sets[:30], ks=[1, 7])


def test_signatures_of_the_forest(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every position lists all sets in order of their minimum there."""
    monkeypatch.setattr(build, "INVERTED", replace(build.INVERTED, items_per_file=700))
    sets = skewed(random.Random(5), 20, 50)
    index = segment_of(index_of_sets(place / "i", sets))
    assert len(index.forest) > 2
    values = np.concatenate([file["values"] for file in index.forest]).reshape(-1, len(sets))
    numbers = np.concatenate([file["sets"] for file in index.forest]).reshape(-1, len(sets))
    for number, each in enumerate(sets):
        signature = MinHash()
        signature.update_hashes(np.array(sorted(each), np.uint64))
        assert values[numbers == number].tolist() == signature.values.tolist()
    assert (np.diff(values.astype(np.int64), axis=1) >= 0).all()


# --- on Spark ---------------------------------------------------------------------------------------------------------


def test_the_demo_lake_answers_like_brute_force(demo_index: Lake) -> None:
    """All columns of the demo lake, read back from the index itself, as queries."""
    index = InvertedIndex(demo_index._index)
    search = OverlapSearch(index)
    groups = [index.groups_of_set(number) for number in range(index.sizes.size)]
    widths = index.widths(np.arange(index.group_count, dtype=np.int32))
    for number in range(0, index.sizes.size, 7):
        query = index.query_of_set(number)
        overlaps = [int(widths[np.intersect1d(query.groups, each)].sum()) for each in groups]
        overlaps[number] = 0
        best = sorted((n for n, overlap in enumerate(overlaps) if overlap), key=lambda n: (-overlaps[n], n))[:10]
        for algorithm in ALGORITHMS:
            top = search.top(query, 10, [number], algorithm)
            assert top.sets.tolist() == best
            assert top.overlaps.tolist() == [overlaps[n] for n in best]


def test_sizes_are_the_distinct_counts_of_the_catalog(demo_index: Lake) -> None:
    columns = demo_index.columns()
    sizes = InvertedIndex(demo_index._index).sizes.tolist()
    exact = columns["distinct_exact"].to_pylist()
    assert len(sizes) == len(exact)
    for size, distinct, sure in zip(sizes, columns["distinct"].to_pylist(), exact, strict=True):
        assert size == distinct if sure else abs(size - distinct) < 0.05 * size


# --- damage -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", ["postings", "sets", "tokens", "forest"])
def test_a_damaged_file_is_refused_by_name(place: Path, part: str) -> None:
    index = index_of_sets(place / "i", skewed(random.Random(6), 100, 200))
    (path,) = [place / "i" / file.path for file in index._index.manifest.of_kind(part)]
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(IndexDamaged, match=path.name):
        _ = segment_of(InvertedIndex(Index(place / "i"))).forest


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("part", ["postings", "sets", "tokens", "bitmaps"])
def test_nothing_is_read_beyond_a_damaged_file(
    place: Path, part: str, algorithm: Algorithm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a file too large to be checked: whatever its bytes, a search ends with an answer or the name of the file."""
    monkeypatch.setattr(store_index, "CHECKED_BYTES", 0)
    sets = versions(random.Random(6), 25) if part == "bitmaps" else skewed(random.Random(6), 100, 200)
    part = "sets" if part == "bitmaps" else part
    index = index_of_sets(place / "i", sets)
    (path,) = [place / "i" / file.path for file in index._index.manifest.of_kind(part)]
    whole = path.read_bytes()
    outcomes = set()
    for seed in range(24):
        dice = random.Random(seed)
        damaged = bytearray(whole)
        for at in range(256 + seed % 7, len(damaged), dice.choice([7, 61, 977])):
            damaged[at] = dice.randrange(256)
        path.write_bytes(damaged)
        try:
            search = OverlapSearch(InvertedIndex(Index(place / "i")))
            for query in sets[:20]:
                search.top(search.query(np.array(sorted(query), np.uint64)), 5, algorithm=algorithm)
            outcomes.add("answer")
        except IndexDamaged as error:
            outcomes.add(path.name if path.name in str(error) else str(error))
    assert outcomes <= {"answer", path.name}


def test_a_file_of_arrays_that_is_cut_off_or_not_one(tmp_path: Path) -> None:
    out = ArrayFile(tmp_path, "things", {"a": np.int32, "b": np.uint64})
    out.append(a=np.arange(5), b=np.arange(3))
    out.append(a=np.arange(2))
    file = out.close()
    assert [path.name for path in tmp_path.iterdir()] == [file.path], "drafts are left behind"
    data = (tmp_path / file.path).read_bytes()
    arrays = read_arrays(data, "it")
    assert (arrays["a"].tolist(), arrays["b"].tolist()) == ([0, 1, 2, 3, 4, 0, 1], [0, 1, 2])
    for broken in (b"", data[:8], b"PAR1" + data[4:], data[:20] + b"?" + data[21:], data[:-1]):
        with pytest.raises(IndexDamaged, match="it is damaged"):
            read_arrays(broken, "it")


# --- MinHash ----------------------------------------------------------------------------------------------------------


def test_minhash_estimates_jaccard_as_well_as_it_should() -> None:
    """Unbiased, with the spread of a binomial: over many pairs of sets of different sizes and similarities."""
    dice = np.random.default_rng(2)
    for shared, own in ((10, 10), (50, 200), (500, 500), (3, 0), (1000, 50)):
        truth = shared / (shared + 2 * own)
        errors = []
        for _ in range(60):
            every = dice.integers(1, 2**64, shared + 2 * own, dtype=np.uint64)
            one, other = MinHash(), MinHash()
            one.update_hashes(every[: shared + own])
            other.update_hashes(np.concatenate([every[:shared], every[shared + own :]]))
            errors.append(one.jaccard(other) - truth)
        spread = one.standard_error(truth)
        assert abs(np.mean(errors)) <= 4 * spread / 60**0.5 + 1e-9
        assert np.std(errors) <= 1.35 * spread + 1e-9


@given(st.lists(st.integers(0, 2**64 - 1)), st.lists(st.integers(0, 2**64 - 1)))
def test_minhash_merges_to_the_signature_of_the_union(left: list[int], right: list[int]) -> None:
    one, other, both = MinHash(), MinHash(), MinHash()
    one.update_hashes(np.array(left, np.uint64))
    other.update_hashes(np.array(right, np.uint64))
    both.update_hashes(np.array(right + left, np.uint64))
    one.merge(MinHash.from_bytes(other.to_bytes()))
    assert one.values.tolist() == both.values.tolist()


def test_kernels_do_not_leave_counts_behind(place: Path, spark: SparkSession) -> None:
    """A search that excludes sets, or finds nothing, leaves the workspace as it found it."""
    sets = skewed(random.Random(8), 80, 100)
    search = OverlapSearch(index_of_sets(place / "i", sets))
    for algorithm in ALGORITHMS:
        search.top(search.query(np.array(sorted(sets[3]), np.uint64)), 4, [1, 2, 3], algorithm)
        assert len(search.largest._scratch._idle) == 1, "it was given back"
        with search.largest._scratch.borrow() as mine:
            assert not mine.counts.any()
    assert kernels.EXCLUDED < 0
