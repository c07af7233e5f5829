"""Several small segments searched at once: the same sets as one by one, for the preparation of one."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest

from helpers.histories import history
from lakescope.engines.joins import inverted, kernels, small_segments
from lakescope.engines.joins.dictionary import DictionaryTuning
from lakescope.engines.joins.inverted import InvertedIndex, Part
from lakescope.engines.joins.josie import Overlaps, SegmentOverlaps
from lakescope.engines.joins.overlaps import OverlapSearch
from lakescope.errors import IndexDamaged
from lakescope.store.index import Index
from lakescope.store.inverted import QueryGroups


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> InvertedIndex:
    """Six segments, with tables that are gone or were replaced."""
    found = InvertedIndex(Index(history(tmp_path_factory.mktemp("together"), seed=4, tables=8, steps=5)))
    assert len(found.parts) == 6
    assert any(part.gone.size for part in found.parts)
    return found


def queries(index: InvertedIndex) -> Iterator[tuple[QueryGroups, int, list[int]]]:
    dice = random.Random(5)
    for number in range(index.count):
        yield index.query_of_set(number), dice.choice([1, 3, 100]), dice.sample(range(index.count), dice.choice([0, 4]))
    yield index.query(np.arange(5, dtype=np.uint64)), 3, []


def brute_force(search: OverlapSearch, query: QueryGroups, k: int, exclude: list[int]) -> list[tuple[int, int]]:
    every = search.at_least(query, 1, exclude)
    ranked = sorted(
        zip(every.sets.tolist(), every.overlaps.tolist(), strict=True), key=lambda each: (-each[1], each[0])
    )
    return ranked[:k]


@pytest.mark.parametrize("prepared", [small_segments.SMALL_SEGMENTS.prepared, 0, 1])
def test_the_best_sets_are_found_whichever_way(
    index: InvertedIndex, prepared: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(small_segments, "SMALL_SEGMENTS", small_segments.SmallSegmentsTuning(prepared))
    asked: list[SegmentOverlaps] = []
    alone = SegmentOverlaps.top

    def counted(self: SegmentOverlaps, *given: object, **named: object) -> Overlaps:
        asked.append(self)
        return alone(self, *given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(SegmentOverlaps, "top", counted)
    search = OverlapSearch(index)
    search.load()
    count = 0
    for query, k, exclude in queries(index):
        top = search.top(query, k, exclude)
        found = list(zip(top.sets.tolist(), top.overlaps.tolist(), strict=True))
        assert found == brute_force(search, query, k, exclude)
        count += 1
    if prepared > 1:
        assert len(asked) == count, "only the largest segment is searched by itself"
    else:
        assert len(asked) > count


def test_a_query_is_the_same_with_a_dictionary_in_common(index: InvertedIndex) -> None:
    at_once = InvertedIndex(index._index)
    at_once.prepare()
    assert at_once._dictionary is not None
    dice = np.random.default_rng(3)
    for number in range(index.count):
        part, local = index.place_of(number)
        tokens = part.tokens_of_set(local)
        unknown = dice.integers(0, 2**64, 5, np.uint64)
        for asked in (
            tokens,
            tokens[::2],
            np.sort(np.concatenate([tokens, unknown])),
            unknown[:0],
            np.array([0], np.uint64),
        ):
            one_by_one, found = index.query(asked), at_once.query(asked)
            assert found.groups.dtype == one_by_one.groups.dtype
            assert found.groups.tolist() == one_by_one.groups.tolist()
            assert found.weights.tolist() == one_by_one.weights.tolist()
            for one, other in zip(index.popularity(one_by_one), at_once.popularity(found), strict=True):
                assert one.tolist() == other.tolist()


def test_tokens_are_looked_up_twice_at_most(index: InvertedIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, find = list[Part](), Part.find
    monkeypatch.setattr(Part, "find", lambda part, tokens: asked.append(part) or find(part, tokens))
    at_once = InvertedIndex(index._index)
    at_once.prepare()
    at_once.query_of_set(0)
    assert len(asked) == 1
    index.query_of_set(0)
    assert len(asked) == 1 + len(index.parts)


def test_too_many_tokens_have_no_dictionary(index: InvertedIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inverted, "DICTIONARY", DictionaryTuning(most_entries=10))
    large = InvertedIndex(index._index)
    large.prepare()
    assert large._dictionary is None


def test_a_dictionary_of_a_damaged_file_is_refused(index: InvertedIndex) -> None:
    damaged = InvertedIndex(index._index)
    at = 1 if damaged._largest == 0 else 0
    (file, *_) = damaged.parts[at].segment.tokens
    damaged.parts[at].segment.__dict__["tokens"] = [{**file, "groups": file["groups"] + np.int32(1_000_000)}]
    with pytest.raises(IndexDamaged):
        damaged.prepare()


def test_numbers_that_are_no_sets_are_damage(index: InvertedIndex) -> None:
    groups, weights = np.array([3], np.int32), np.array([1], np.int32)
    starts, lists = np.array([0, 2], np.int64), np.array([0, 9], np.int32)
    numbers, counts = np.array([0, 1], np.int32), np.zeros(2, np.int32)
    bounds = np.array([[3, 4]], np.int64)

    def merged(entries: int, groups: np.ndarray = groups) -> int:
        files = [[starts.ctypes.data, lists.ctypes.data, entries, numbers.ctypes.data, numbers.size]]
        given = (groups, weights, bounds, np.array(files, np.uint64), 100, counts, np.empty(2, np.int32))
        return int(kernels.merge_files(*given, np.zeros(4, np.int64)))

    assert merged(2) == kernels.DAMAGED, "set 9 of 2"
    assert merged(1) == kernels.DAMAGED, "a list beyond the end"
    assert merged(2, np.array([4], np.int32)) == kernels.DAMAGED, "a group of no file"
    lists[1] = 1
    counts[:] = 0
    assert merged(2) == 2
    assert counts.tolist() == [1, 1]
