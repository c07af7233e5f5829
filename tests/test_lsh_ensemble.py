"""LSH Ensemble: partitions, bands and rows by the formulas, candidates by the definition, recall where it matters."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.inverted import index_of_sets, skewed
from lakescope.engines.joins import lsh_ensemble as lsh
from lakescope.engines.joins.lsh_ensemble import Ensemble, bands_and_rows, ratio_of, reach, step_of
from lakescope.sketches.minhash import PERMUTATIONS, MinHash
from lakescope.sketches.partitions import Partition, partition


def cost(sizes: list[int], parts: list[Partition]) -> float:
    """Expected false positives of a partitioning: each set's distance to the upper bound of its part (2.4)."""
    total = 0.0
    for part in parts:
        mine = np.array([size for size in sizes if part.lower <= size <= part.upper])
        distinct, counts = np.unique(mine, return_counts=True)
        assert counts.sum() == part.sets
        total += float((counts * (1 - distinct / distinct[-1])).sum())
    return total


# --- partitions -------------------------------------------------------------------------------------------------------


def test_the_example_of_the_thesis() -> None:
    """Example 2.4.1: one partition costs 7.75, the best two 1.03."""
    sizes = [3] * 4 + [4] * 4 + [99] * 3 + [100] * 3
    one, two = partition(np.array(sizes), 1), partition(np.array(sizes), 2)
    assert cost(sizes, one) == pytest.approx(7.75, abs=0.01)
    assert cost(sizes, two) == pytest.approx(1.03, abs=0.01)
    assert [(part.lower, part.upper) for part in two] == [(3, 4), (99, 100)]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(1, 60), min_size=1, max_size=40), st.integers(1, 5))
def test_no_partitioning_is_better(sizes: list[int], wanted: int) -> None:
    parts = partition(np.array(sizes), wanted)
    distinct = sorted(set(sizes))
    n = min(wanted, len(distinct))
    assert len(parts) == n
    assert sum(part.sets for part in parts) == len(sizes)
    best = min(
        cost(
            sizes,
            [
                Partition(low := distinct[a], high := distinct[b - 1], sum(low <= size <= high for size in sizes))
                for a, b in itertools.pairwise([0, *cuts, len(distinct)])
            ],
        )
        for cuts in itertools.combinations(range(1, len(distinct)), n - 1)
    )
    assert cost(sizes, parts) == pytest.approx(best, abs=1e-9)


def test_empty_sets_belong_to_no_partition() -> None:
    assert partition(np.array([0, 0])) == []
    assert partition(np.array([0, 5, 7]), 8) == [Partition(5, 5, 1), Partition(7, 7, 1)]


# --- bands and rows ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("threshold", "ratio", "wanted"),
    [(0.5, 1, (64, 4)), (0.7, 2, (64, 4)), (0.9, 2, (42, 6)), (0.9, 1, (3, 8)), (1.0, 2, (1, 8))],
)
def test_the_printed_objective(threshold: float, ratio: float, wanted: tuple[int, int]) -> None:
    """The table of spec 2.6: what minimising the plain sum of errors chooses."""
    assert bands_and_rows(step_of(ratio), threshold, objective="paper") == wanted


def recall_at(threshold: float, ratio: float, bands: int, rows: int) -> float:
    similarity = float(lsh.jaccard_of(min(threshold, ratio), ratio))
    return 1 - (1 - similarity**rows) ** bands


@pytest.mark.parametrize("threshold", [0.1, 0.3, 0.5, 0.7, 0.9, 1.0])
def test_recall_is_kept_within_reach(threshold: float) -> None:
    for step in range(step_of(threshold), step_of(20) + 1):
        bands, rows = bands_and_rows(step, threshold)
        assert bands * rows <= PERMUTATIONS
        best = recall_at(threshold, ratio_of(step), PERMUTATIONS, 1)
        assert recall_at(threshold, ratio_of(step), bands, rows) >= min(lsh.ENSEMBLE.recall, best) - 1e-9
        assert (best >= lsh.ENSEMBLE.recall) == (ratio_of(step) <= reach(threshold))


def test_reach() -> None:
    """Up to the limit the most permissive bands find what just reaches the threshold, beyond it hardly (2.6)."""
    for threshold in (0.1, 0.5, 1.0):
        assert recall_at(threshold, reach(threshold), PERMUTATIONS, 1) == pytest.approx(lsh.ENSEMBLE.recall)
    assert recall_at(1.0, 1000, PERMUTATIONS, 1) == pytest.approx(0.23, abs=0.01)
    assert pytest.approx(0.9, abs=0.005) == 1 - (1 - 1 / (PERMUTATIONS / 2.3)) ** PERMUTATIONS


@given(st.floats(0.001, 1.0), st.floats(0.01, 100.0))
def test_containment_and_jaccard_translate_both_ways(containment: float, ratio: float) -> None:
    containment = min(containment, ratio, 1.0)
    jaccard = lsh.jaccard_of(containment, ratio)
    back = lsh.containment_of(np.array([jaccard]), np.array([ratio]))[0]
    assert back == pytest.approx(containment, rel=1e-9)


# --- search -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[list[int]], Ensemble]:
    sets = [list(each) for each in skewed(random.Random(21), 600, 3000)]
    index = index_of_sets(tmp_path_factory.mktemp("lsh") / "i", sets, bits=2, pieces=1)
    parts = [Partition(*each) for each in index._index.manifest.summary["join"]["partitions"]]
    assert sum(part.sets for part in parts) == sum(bool(each) for each in sets)
    return sets, Ensemble(index, parts)


def signature_of(tokens: list[int]) -> MinHash:
    signature = MinHash()
    signature.update_hashes(np.array(sorted(tokens), np.uint64))
    return signature


def test_candidates_share_a_band_and_no_other_set_does(lake: tuple[list[list[int]], Ensemble]) -> None:
    sets, ensemble = lake
    signatures = [signature_of(each).values for each in sets]
    uppers = [part.upper for part in ensemble.partitions]
    for number in range(0, 600, 37):
        query, size = signatures[number], len(sets[number])
        if not size:
            continue
        for threshold in (0.3, 0.8, 1.0):
            chosen = ensemble.plan(size, threshold)
            wanted = []
            for other, signature in enumerate(signatures):
                if not sets[other]:
                    continue
                bands, rows = chosen[int(np.searchsorted(uppers, len(sets[other])))]
                same = (signature == query)[: bands * rows].reshape(bands, rows) if bands else np.zeros((0, 1))
                if same.all(axis=1).any():
                    wanted.append(other)
            hits = ensemble.search(query, size, threshold, screen=False)
            assert hits.sets.tolist() == wanted
            screened = ensemble.search(query, size, threshold)
            assert set(screened.sets.tolist()) <= set(wanted)
            assert (screened.highs <= 1).all()
            plain = ensemble._forests[0]._agreements_plainly(query)
            compiled = ensemble._agreements(query)
            assert sorted(plain[0].tolist()) == sorted(compiled[0].tolist())
            assert {n: m.tolist() for n, m in zip(*plain, strict=True)} == {
                n: m.tolist() for n, m in zip(*compiled, strict=True)
            }


@pytest.mark.parametrize("threshold", [0.2, 0.5, 0.8, 1.0])
def test_recall_and_intervals_on_skewed_sets(lake: tuple[list[list[int]], Ensemble], threshold: float) -> None:
    sets, ensemble = lake
    held = total = found = relevant = 0
    for number in range(0, 600, 3):
        query = set(sets[number])
        if len(query) < 10:
            continue
        truth = [len(query & set(each)) / len(query) for each in sets]
        hits = ensemble.search(signature_of(sets[number]).values, len(query), threshold)
        near = {
            other
            for other, t in enumerate(truth)
            if t >= threshold and len(sets[other]) / len(query) <= reach(threshold)
        }
        relevant += len(near)
        found += len(near & set(hits.sets.tolist()))
        for other, low, high in zip(hits.sets.tolist(), hits.lows, hits.highs, strict=True):
            total += 1
            held += low - 1e-9 <= truth[other] <= high + 1e-9
    assert relevant > 200
    assert found / relevant >= 0.95
    assert held / total >= 0.9


def test_partitions_whose_sets_are_too_small_are_skipped_and_too_large_ones_told(
    lake: tuple[list[list[int]], Ensemble],
) -> None:
    _, ensemble = lake
    plan = ensemble.plan(1000, 0.9)
    for part, (bands, _) in zip(ensemble.partitions, plan, strict=True):
        assert (bands == 0) == (part.upper < 900)
    assert ensemble.out_of_reach(5, 1.0)
    assert not ensemble.out_of_reach(1000, 1.0)
    assert ensemble.out_of_reach(1000, 0.01)
