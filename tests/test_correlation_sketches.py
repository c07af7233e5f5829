"""Correlation sketches: golden values of the paper, merge laws, aggregates, and what counts as a key."""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.cells import text_column
from lakescope.build.correlations import BuiltSketch, TableSketches
from lakescope.build.scan import TableScan
from lakescope.engines.correlations.estimators import Samples, estimate
from lakescope.sketches.aggregates import AGGREGATES
from lakescope.sketches.correlation import KeySketch
from lakescope.sketches.correlation_kernels import pair_hash
from lakescope.sketches.quadrants import ABOVE, OVER, PRESENT, UNDER, balanced_cut, sides
from lakescope.sources.model import Batch
from lakescope.values.cells import understand
from lakescope.values.hashing import hash_text

Rows = list[tuple[str | None, float | None]]


def murmur3_32(data: bytes, seed: int = 0) -> int:
    """MurmurHash3, x86, 32 bit, by its published definition: the papers' hash, here for their golden values only."""
    mask = 0xFFFFFFFF

    def rotated(x: int, by: int) -> int:
        return (x << by | x >> (32 - by)) & mask

    def mixed(k: int) -> int:
        return rotated(k * 0xCC9E2D51 & mask, 15) * 0x1B873593 & mask

    h = seed
    whole = len(data) // 4 * 4
    for at in range(0, whole, 4):
        h = (rotated(h ^ mixed(int.from_bytes(data[at : at + 4], "little")), 13) * 5 + 0xE6546B64) & mask
    if data[whole:]:
        h ^= mixed(int.from_bytes(data[whole:], "little"))
    h ^= len(data)
    h = (h ^ h >> 16) * 0x85EBCA6B & mask
    h = (h ^ h >> 13) * 0xC2B2AE35 & mask
    return h ^ h >> 16


def sketch_of(rows: Rows, limit: int, cuts: Sequence[int] = (), ordinals: Sequence[int] | None = None) -> KeySketch:
    """The sketch of some rows, read in pieces that are merged in the order of ``ordinals``."""
    bounds = [0, *sorted(cuts), len(rows)]
    parts = []
    for begin, end in itertools.pairwise(bounds):
        piece = rows[begin:end]
        keys = understand(text_column([key for key, _ in piece]))
        numbers = understand(text_column([None if x is None else repr(x) for _, x in piece]))
        sketch = KeySketch(limit)
        hashes = np.maximum(keys.hashes, np.uint64(1))
        sketch.update(keys.places, hashes, {"x": (numbers.places, numbers.numbers)}, begin)
        parts.append(sketch)
    order = ordinals or range(len(parts))
    whole = parts[order[0]]
    for number in order[1:]:
        whole.merge(KeySketch.from_bytes(parts[number].to_bytes()))
    return whole


def by_hand(rows: Rows, limit: int) -> tuple[list[int], dict[int, list[float]]]:
    """The smallest hashes, and the numbers of each key in order."""
    numbers: dict[int, list[float]] = defaultdict(list)
    for key, x in rows:
        if key is not None:
            numbers[hash_text(key)] += [x] if x is not None else []
    kept = sorted(numbers)[:limit]
    return kept, {h: numbers[h] for h in kept}


KEYS = st.sampled_from([None, *(f"key {i}" for i in range(12))])
ROWS = st.lists(st.tuples(KEYS, st.none() | st.integers(-1000, 1000).map(float)), max_size=40)


# --- the paper --------------------------------------------------------------------------------------------------------


MONTHS = [f"2021-{month:02d}" for month in range(1, 8)]
HASHES = [0x4DA33CF5, 0xBD5A7C1F, 0x16DAB449, 0x26F79756, 0xB74DE490, 0x4E311300, 0xBAC52E98]
PLACES = [0.3369, 0.8937, 0.3380, 0.4708, 0.7396, 0.5529, 0.4764]
TABLE_X: Rows = list(zip(MONTHS, [6.0, 4.0, 2.0, 3.0, 0.5, 4.0, 2.0], strict=True))
TABLE_Y: Rows = [
    *(("2021-01", 5.5), ("2021-01", 4.5), ("2021-02", 3.9), ("2021-02", 2.0)),
    *(("2021-03", 4.0), ("2021-03", 1.0), ("2021-04", 4.0)),
]


def papers_place(key: str) -> float:
    """Where the paper orders a key: Fibonacci hashing of its 32-bit hash."""
    h = murmur3_32(key.encode())
    signed = h - 2**32 if h >= 2**31 else h
    return (signed + 1) * 1.6180339887498949 % 1


def test_the_hashes_of_figure_2() -> None:
    assert [murmur3_32(month.encode()) for month in MONTHS] == HASHES
    assert [papers_place(month) for month in MONTHS] == pytest.approx(PLACES, abs=5e-5)


def papers_sketch(rows: Rows, limit: int) -> dict[str, float]:
    """A sketch by the paper's hashes, the numbers being means."""
    numbers: dict[str, list[float]] = defaultdict(list)
    for key, x in rows:
        assert key is not None
        assert x is not None
        numbers[key].append(x)
    kept = sorted(numbers, key=papers_place)[:limit]
    return {key: sum(numbers[key]) / len(numbers[key]) for key in kept}


def test_the_sketches_of_figure_2() -> None:
    x, y = papers_sketch(TABLE_X, 4), papers_sketch(TABLE_Y, 4)
    assert set(x) == {"2021-01", "2021-03", "2021-04", "2021-07"}
    assert y == pytest.approx({"2021-01": 5.0, "2021-02": 2.95, "2021-03": 2.5, "2021-04": 4.0})
    joined = sorted((x[key], y[key]) for key in x.keys() & y.keys())
    assert joined == [(2.0, 2.5), (3.0, 4.0), (6.0, 5.0)]
    assert [*estimates(joined)] == pytest.approx([0.9226, 1.0, 1.0, 0.9231], abs=5e-5)
    full_x, full_y = papers_sketch(TABLE_X, 9), papers_sketch(TABLE_Y, 9)
    full = [(full_x[key], full_y[key]) for key in full_x.keys() & full_y.keys()]
    assert [*estimates(full)] == pytest.approx([0.8050, 0.8, 0.8575, 0.8386], abs=5e-5)


def estimates(pairs: Sequence[tuple[float, float]]) -> Iterator[float]:
    x, y = np.array(pairs).T
    for measure in ("pearson", "spearman", "rin", "qn"):
        yield float(estimate(measure, Samples.of([(x, y)]))[0])


def test_our_sketches_of_the_same_tables_join_the_same_way() -> None:
    """With room for all keys the hash does not matter: the same join, the same coefficient."""
    x, y = sketch_of(TABLE_X, 16), sketch_of(TABLE_Y, 16)
    common, mine, theirs = np.intersect1d(x.hashes, y.hashes, return_indices=True)
    assert common.size == 4
    values = x.values["x"].aggregate("mean")[mine], y.values["x"].aggregate("mean")[theirs]
    assert estimate("pearson", Samples.of([values]))[0] == pytest.approx(0.8050, abs=5e-5)


def test_joined_keys_are_a_uniform_sample() -> None:
    """Theorem 1: every common key is as likely to be in the joined sketch as any other."""
    seen: dict[int, int] = defaultdict(int)
    rounds, common = 300, 40
    for shift in range(rounds):
        left = [f"{shift}-{i}" for i in range(common + 60)]
        right = [f"{shift}-{i}" for i in range(common)] + [f"{shift}+{i}" for i in range(80)]
        a, b = (set(sorted(map(hash_text, keys))[:30]) for keys in (left, right))
        for i in range(common):
            seen[i] += hash_text(f"{shift}-{i}") in a & b
    counts = np.array([seen[i] for i in range(common)])
    expected = counts.mean()
    # Chi-squared with 39 degrees of freedom is above 73 once in a thousand.
    assert ((counts - expected) ** 2 / (expected * (1 - expected / rounds))).sum() < 73


# --- the sketch -------------------------------------------------------------------------------------------------------


@given(ROWS, st.integers(1, 15))
def test_a_sketch_holds_the_smallest_keys_with_all_their_numbers(rows: Rows, limit: int) -> None:
    sketch = sketch_of(rows, limit)
    kept, numbers = by_hand(rows, limit)
    assert sketch.hashes.tolist() == kept
    assert sketch.filled == sum(key is not None for key, _ in rows)
    assert sketch.saturated == (len({key for key, _ in rows} - {None}) > limit)
    counted = defaultdict(int)
    for key, _ in rows:
        counted[hash_text(key) if key else 0] += 1
    assert sketch.rows.tolist() == [counted[h] for h in kept]
    if not kept:
        return
    states = sketch.values["x"]
    wanted = {
        "sum": [sum(numbers[h]) for h in kept],
        "min": [min(numbers[h], default=0) for h in kept],
        "max": [max(numbers[h], default=0) for h in kept],
        "count": [len(numbers[h]) for h in kept],
        "first": [next(iter(numbers[h]), 0) for h in kept],
        "last": [next(reversed(numbers[h]), 0) for h in kept],
        "mean": [sum(numbers[h]) / max(1, len(numbers[h])) for h in kept],
    }
    for name in AGGREGATES:
        found = states.aggregate(name)
        for h, x, y in zip(kept, found.tolist(), wanted[name], strict=True):
            assert (np.isnan(x) and not numbers[h]) or x == pytest.approx(y)


@given(ROWS, st.integers(1, 15), st.data())
def test_pieces_add_up_in_any_order(rows: Rows, limit: int, data: st.DataObject) -> None:
    cuts = data.draw(st.lists(st.integers(0, len(rows)), max_size=4))
    ordinals = data.draw(st.permutations(range(len(cuts) + 1)))
    whole, pieces = sketch_of(rows, limit), sketch_of(rows, limit, cuts, ordinals)
    assert pieces.hashes.tolist() == whole.hashes.tolist()
    assert pieces.rows.tolist() == whole.rows.tolist()
    assert (pieces.filled, pieces.saturated) == (whole.filled, whole.saturated)
    if whole.size:
        for name in AGGREGATES:
            assert np.array_equal(pieces.values["x"].aggregate(name), whole.values["x"].aggregate(name), equal_nan=True)


def test_sums_do_not_depend_on_the_cut() -> None:
    dice = random.Random(1)
    rows: Rows = [(f"k{i % 3}", dice.uniform(-1, 1) * 10.0 ** dice.randint(-8, 12)) for i in range(3000)]
    whole = sketch_of(rows, 10).values["x"].aggregate("sum")
    cut = sketch_of(rows, 10, [100, 1700, 2900], [2, 0, 3, 1]).values["x"].aggregate("sum")
    assert cut == pytest.approx(whole, rel=1e-12)


def test_distinct_keys_are_estimated_from_a_full_sketch() -> None:
    rows: Rows = [(f"key {i}", 1.0) for i in range(20_000)]
    sketch = sketch_of(rows, 512)
    assert sketch.saturated
    assert sketch.distinct == pytest.approx(20_000, rel=0.15)
    assert sketch_of(rows[:300], 512).distinct == 300


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_what_is_not_finite_is_left_out(bad: float) -> None:
    sketch = KeySketch(10)
    places = np.arange(3, dtype=np.int32)
    sketch.update(places, np.array([5, 6, 7], np.uint64), {"x": (places, np.array([1.0, bad, 2.0]))}, 0)
    assert np.isnan(sketch.values["x"].aggregate("mean")).tolist() == [False, True, False]


def test_pairs_of_values_are_told_apart_by_their_order() -> None:
    a, b = np.uint64(hash_text("a")), np.uint64(hash_text("b"))
    assert pair_hash(a, b) != pair_hash(b, a)
    dice = np.random.default_rng(1)
    many = dice.integers(1, 2**63, (2000, 2)).astype(np.uint64)
    hashes = np.array([pair_hash(x, y) for x, y in many])
    assert np.unique(hashes).size == 2000
    assert abs((hashes / 2.0**64).mean() - 0.5) < 0.03


# --- what is a key ----------------------------------------------------------------------------------------------------


def keyed(columns: dict[str, Sequence[str | None]], cuts: Sequence[int] = ()) -> dict[tuple[str, ...], BuiltSketch]:
    """The sketches of a table that came in pieces, those worth keeping."""
    rows = len(next(iter(columns.values())))
    bounds = [0, *cuts, rows]
    found: dict[tuple[str, ...], BuiltSketch] = {}
    for begin, end in itertools.pairwise(bounds):
        table = TableSketches()
        table.add([(name, understand(text_column(cells[begin:end]))) for name, cells in columns.items()], begin)
        for key, each in table.finish(whole=not cuts).items():
            if key in found:
                found[key].merge(BuiltSketch.from_bytes(each.to_bytes()))
            else:
                found[key] = each
    return {key: each for key, each in found.items() if each.worth_keeping}


def table(n: int = 240) -> dict[str, Sequence[str | None]]:
    dice = random.Random(3)
    return {
        "country": [f"country {i % 12}" for i in range(n)],
        "year": [str(1990 + i // 12) for i in range(n)],
        "row": [str(i) for i in range(n)],
        "people": [str(dice.randint(1, 10**7)) for _ in range(n)],
        "zip": [str(dice.randint(10_000, 99_999)) for _ in range(n)],
        "share": [f"{dice.random():.4f}" for _ in range(n)],
        "note": [dice.choice(["x", "y"]) for _ in range(n)],
    }


def test_keys_are_names_codes_and_leading_numbers() -> None:
    found = keyed(table())
    single = {key[0] for key in found if len(key) == 1}
    # Not the population, which has any number of digits; not a share; not a column of two values.
    assert single == {"country", "year", "row", "zip"}
    assert ("country", "year") in found
    # The number of a row is a key by itself.
    assert not any("row" in key for key in found if len(key) == 2)


@pytest.mark.parametrize("cuts", [[100], [1, 2, 239], [60, 120, 180]])
def test_keys_do_not_depend_on_the_cut(cuts: list[int]) -> None:
    whole, pieces = keyed(table()), keyed(table(), cuts)
    assert set(whole) == set(pieces)
    for key, each in whole.items():
        assert each.sketch.hashes.tolist() == pieces[key].sketch.hashes.tolist()
        for name, states in each.sketch.values.items():
            mine, theirs = states, pieces[key].sketch.values[name]
            assert (mine.cells, mine.numbers) == (theirs.cells, theirs.numbers)
            assert np.array_equal(mine.aggregate("sum"), theirs.aggregate("sum"), equal_nan=True)


def test_wide_tables_have_few_keys_and_say_so() -> None:
    columns = {f"c{i}": [f"v{j}" for j in range(30)] for i in range(80)}
    columns["c79"] = [f"{j}.5" for j in range(30)]
    found = keyed(columns)
    assert {key[0] for key in found if len(key) == 1} == {f"c{i}" for i in range(16)}
    assert all(each.sketch.limit == 128 for each in found.values())
    scan = TableScan("wide", 0)
    scan.add(Batch(30, [replace(text_column(cells), name=name) for name, cells in columns.items()]))
    assert [problem.code for problem in scan.part.problems] == ["wide-table"]


def test_the_order_of_json_keys_says_nothing() -> None:
    table = TableSketches()
    columns = {"a": [str(i) for i in range(50)], "b": [f"k{i}" for i in range(50)], "x": [f"{i}.5" for i in range(50)]}
    table.add([(name, understand(text_column(cells))) for name, cells in columns.items()], 0, positioned=False)
    found = {key for key, each in table.finish(whole=True).items() if each.worth_keeping}
    # No pairs, and numbers of different length are no keys wherever they stand.
    assert found == {("b",)}


def test_a_decimal_anywhere_is_no_key() -> None:
    columns = {"a": [*(str(i) for i in range(50)), "2.5"], "x": [f"{i}.5" for i in range(51)]}
    assert not keyed(columns)
    assert not keyed(columns, [40])


# --- sides ------------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(-5, 5).map(float), min_size=1, max_size=60))
def test_the_balanced_cut_halves_as_well_as_any(values: list[float]) -> None:
    array = np.array(values)
    cut = balanced_cut(array)
    best = min(abs((array <= c).mean() - 0.5) for c in set(values))
    assert abs((array <= cut).mean() - 0.5) == pytest.approx(best)


@settings(max_examples=50)
@given(st.lists(st.none() | st.floats(-1e300, 1e300), min_size=1, max_size=150))
def test_sides_are_bits_of_values(values: list[float | None]) -> None:
    array: npt.NDArray[np.float64] = np.array([np.nan if x is None else x for x in values])
    words = sides(array)
    bits = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")[:, : array.size] > 0
    present = ~np.isnan(array)
    assert bits[PRESENT].tolist() == present.tolist()
    assert not (bits[OVER] & bits[UNDER]).any()
    if present.any():
        assert bits[ABOVE].tolist() == [
            bool(p and x > balanced_cut(array[present])) for x, p in zip(array, present, strict=True)
        ]
