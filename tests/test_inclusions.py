"""Inclusions from sketches: the paper's numbers, likelihoods, intervals, all pairs against counting, deletions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import lakescope
from lakescope.array_types import U64
from lakescope.engines.keys import kernels
from lakescope.engines.keys.inclusion import InclusionSearch, included, smallest_hashes
from lakescope.engines.keys.joint import joint
from lakescope.engines.keys.sketched import SketchedColumns, registers_of
from lakescope.errors import BadRequest, NotFound
from lakescope.lake import Lake
from lakescope.sketches import DeletableHyperLogLog, HyperLogLog, HyperLogLogPlusPlus
from lakescope.sketches.loglog import fold_registers
from lakescope.studies.bml import bml, bottom_k, error_bound, not_above, solved


def drawn(dice: np.random.Generator, n: int) -> U64:
    return dice.integers(1, 2**64 - 1, n, dtype=np.uint64)


def pair(dice: np.random.Generator, n_x: int, n_y: int, share: float) -> tuple[U64, U64]:
    """Two columns of these sizes of which a share of the first is in the second."""
    x = drawn(dice, n_x)
    common = round(share * n_x)
    return x, np.concatenate([x[:common], drawn(dice, n_y - common)])


def registers(hashes: U64, precision: int) -> npt.NDArray[np.uint8]:
    counter = HyperLogLog(precision)
    counter.update_hashes(hashes)
    return counter.registers


def sketch(hashes: U64, precision: int = 14) -> HyperLogLogPlusPlus:
    made = HyperLogLogPlusPlus(precision)
    made.update_hashes(hashes)
    made.settled()
    return made


# --- the paper --------------------------------------------------------------------------------------------------------

GOLDEN = [
    ("average", (0.58548, 0.78674, 1.0, 0.84836, 0.48635, 0.96534)),
    ("exact", (0.58497, 0.78630, 1.0, 0.84800, 0.48544, 0.96524)),
]


@pytest.mark.parametrize(("load", "wanted"), GOLDEN)
def test_chance_of_not_being_above(load: str, wanted: tuple[float, ...]) -> None:
    asked = [(0.0, 1e4, 1e4), (0.62, 1e4, 1e4), (1.0, 1e4, 1e4), (0.5, 5e3, 1e4), (0.25, 1e4, 5e3), (0.5, 1e3, 1e4)]
    found = [not_above(*each, 7, load) for each in asked]  # type: ignore[arg-type]
    assert found == pytest.approx(wanted, abs=1e-5)


def test_empty_registers_count_in_the_exact_model() -> None:
    assert not_above(0.5, 100, 100, 14) == pytest.approx(0.99697, abs=1e-5)


def test_error_bound_has_the_constant_of_the_inequality() -> None:
    """The paper's table is 8.6 times too small at precision 7 (spec 4.5)."""
    bounds = [error_bound(phi, 1e4, 1e4, 7) for phi in np.linspace(0, 1, 101).tolist()]
    assert (max(bounds), min(bounds)) == pytest.approx((0.50, 0.17), abs=0.01)
    assert error_bound(0.5, 100, 1e6, 7) == 1.0


@settings(deadline=None, max_examples=40)
@given(
    st.floats(0, 1),
    st.integers(1, 10**6),
    st.integers(1, 10**6),
    st.integers(0, 12),
    st.sampled_from(["average", "exact"]),
)
def test_bisection_finds_the_share(phi: float, n_x: int, n_y: int, precision: int, load: str) -> None:
    phi = min(phi, n_y / n_x)
    share = not_above(phi, n_x, n_y, precision, load)  # type: ignore[arg-type]
    found = solved(share, n_x, n_y, precision, load)  # type: ignore[arg-type]
    back = not_above(found, n_x, n_y, precision, load)  # type: ignore[arg-type]
    assert 0 <= found <= min(1.0, n_y / n_x) + 1e-12
    assert back == pytest.approx(share, abs=1e-3)


def test_outside_of_what_is_possible_is_clamped() -> None:
    assert solved(0.0, 1e4, 1e4, 7) == 0.0
    assert solved(1.0, 1e4, 1e4, 7) == 1.0
    assert solved(1.0, 1e4, 2.5e3, 7) == 0.25


@pytest.mark.parametrize("n", [3, 500, 60_000])
def test_folding_equals_building_smaller(n: int) -> None:
    hashes = drawn(np.random.default_rng(n), n)
    for precision in range(4, 14):
        assert np.array_equal(fold_registers(registers(hashes, 14), 14, precision), registers(hashes, precision))


def test_bml_compiled_equals_bml() -> None:
    dice = np.random.default_rng(3)
    columns = [each for n_x, n_y in ((60, 300), (2_000, 2_000), (9_000, 50_000)) for each in pair(dice, n_x, n_y, 0.5)]
    pyramids = np.zeros((len(columns), 2048), np.uint8)
    for place, column in enumerate(columns):
        for precision in range(11):
            pyramids[place, 1 << precision : 2 << precision] = fold_registers(registers(column, 14), 14, precision)
    sizes = np.array([each.size for each in columns], np.float64)
    pairs = np.array([(i, j) for i in range(len(columns)) for j in range(len(columns)) if i != j])
    found = np.empty(len(pairs))
    kernels.bml_pairs(pairs, sizes, pyramids, found)
    for (i, j), value in zip(pairs.tolist(), found.tolist(), strict=True):
        precision = round(float(np.log2(max(sizes[i], sizes[j])) / 2))
        part = slice(1 << precision, 2 << precision)
        share = float(np.mean(pyramids[i, part] <= pyramids[j, part]))
        assert value == pytest.approx(solved(share, sizes[i], sizes[j], precision), abs=1e-4)


def test_bml_is_about_right_where_it_should_be() -> None:
    x, y = pair(np.random.default_rng(5), 100_000, 100_000, 0.75)
    assert bml(registers(x, 14), registers(y, 14)) == pytest.approx(0.75, abs=0.15)


def test_bottom_k() -> None:
    x, y = np.arange(10, dtype=np.uint64), np.arange(5, 25, dtype=np.uint64)
    assert bottom_k(x, y, 100) == 0.5
    assert bottom_k(np.array([99], np.uint64), y, 3) is None
    smallest = np.zeros((2, 20), np.uint64)
    smallest[0, :10], smallest[1, :20] = x, y
    out = np.empty(2)
    kernels.bottom_k_pairs(np.array([[0, 1], [1, 0]]), smallest, np.array([10, 20]), 100, out)
    assert out.tolist() == [0.5, 0.25]


# --- maximum likelihood -----------------------------------------------------------------------------------------------


def counts_of(x: U64, y: U64, precision: int) -> npt.NDArray[np.int64]:
    counts = np.zeros((3, 66), np.int64)
    kernels.compare(registers(x, precision), registers(y, precision), counts)
    return counts


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 3_000), st.integers(1, 3_000), st.floats(0, 1), st.integers(4, 12), st.integers(0, 2**32))
def test_nothing_is_likelier_than_the_likeliest(n_x: int, n_y: int, share: float, precision: int, seed: int) -> None:
    x, y = pair(np.random.default_rng(seed), n_x, n_y, min(share, n_y / n_x))
    counts, m = counts_of(x, y, precision), float(1 << precision)
    best = kernels.most_likely(float(n_x), float(n_y), counts, m)
    assert 0 <= best <= min(n_x, n_y)
    reached = kernels.log_likelihood(best, float(n_x), float(n_y), counts, m)
    for other in np.linspace(0, min(n_x, n_y), 60).tolist():
        assert kernels.log_likelihood(other, float(n_x), float(n_y), counts, m) <= reached + 1e-5


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 400), st.integers(0, 3_000), st.integers(0, 2**32))
def test_few_registers_are_compared_as_all_are(n_x: int, n_y: int, seed: int) -> None:
    dice = np.random.default_rng(seed)
    x, y = registers(drawn(dice, n_x), 10), registers(drawn(dice, n_y), 10)
    places = np.flatnonzero(x).astype(np.int32)
    slow, fast = np.zeros((3, 56), np.int64), np.zeros((3, 56), np.int64)
    kernels.compare(x, y, slow)
    kernels.compare_few(places, x[places], y, np.bincount(y, minlength=56).astype(np.int32), fast)
    assert np.array_equal(slow, fast)


@pytest.mark.parametrize(("n_x", "n_y"), [(300, 300), (5_000, 5_000), (2_000, 50_000)])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.9, 1.0])
def test_intervals_hold_the_truth(n_x: int, n_y: int, share: float) -> None:
    dice, held, errors = np.random.default_rng(7), 0, []
    for _ in range(60):
        x, y = pair(dice, n_x, n_y, share)
        value, low, high = kernels.estimate(float(n_x), float(n_y), counts_of(x, y, 11), 2048.0)
        held += low - 1e-9 <= share <= high + 1e-9
        errors.append(abs(value - share))
    assert held >= 52
    assert np.mean(errors) < 0.33 / np.sqrt(n_x * 2048 / n_y) * 2 + 0.002


def test_equal_columns_are_included() -> None:
    x = drawn(np.random.default_rng(2), 50_000)
    found = included(sketch(x), sketch(x), 50_000, 50_000)
    assert (found.value, found.high, found.evidence) == (1.0, 1.0, "registers")
    assert found.low > 0.99


def test_lists_tell_almost_exactly() -> None:
    x, y = pair(np.random.default_rng(2), 1_000, 2_500, 0.37)
    found = included(sketch(x), sketch(y))
    assert found.evidence == "lists"
    assert found.low <= 0.37 <= found.high
    assert found.high - found.low <= 0.002


def test_small_beside_huge_is_unknown() -> None:
    x, y = pair(np.random.default_rng(2), 20, 400_000, 1.0)
    found = included(sketch(x), sketch(y), 20, 400_000)
    assert (found.low, found.high, found.evidence) == (0.0, 1.0, "unknown")


def test_nothing_is_included_in_nothing() -> None:
    x = sketch(drawn(np.random.default_rng(2), 10))
    assert included(HyperLogLogPlusPlus(), x).evidence == "unknown"
    assert included(x, HyperLogLogPlusPlus()).value == 0.0


def test_sizes_that_are_estimates_make_wider_intervals() -> None:
    dice, held = np.random.default_rng(9), 0
    for _ in range(40):
        x, y = pair(dice, 10_000, 10_000, 0.9)
        known, guessed = included(sketch(x, 11), sketch(y, 11), 1e4, 1e4), included(sketch(x, 11), sketch(y, 11))
        held += guessed.low <= 0.9 <= guessed.high
        assert guessed.high - guessed.low > 0.9 * (known.high - known.low)
    assert held >= 35


def test_joint_likelihood_agrees() -> None:
    x, y = pair(np.random.default_rng(4), 20_000, 60_000, 0.6)
    share, low, high = joint(registers(x, 14), registers(y, 14), 21_000, 58_000)
    assert share == pytest.approx(0.6, abs=0.05)
    assert low < 0.6 < high


def test_other_precisions_are_refused() -> None:
    with pytest.raises(BadRequest, match="precision 11 and 14"):
        included(HyperLogLogPlusPlus(11), HyperLogLogPlusPlus(14))


def test_registers_of_a_list_are_those_of_the_values() -> None:
    hashes = drawn(np.random.default_rng(1), 2_000)
    assert np.array_equal(registers_of(sketch(hashes)), registers(hashes, 14))


# --- all pairs --------------------------------------------------------------------------------------------------------


@st.composite
def collections(draw: st.DrawFn) -> list[U64]:
    """Columns that share values: parts of a few domains, a few of them with registers."""
    dice = np.random.default_rng(draw(st.integers(0, 2**32)))
    domains = [drawn(dice, int(size)) for size in dice.choice([5, 40, 300, 6_000], 3)]
    columns = []
    for _ in range(draw(st.integers(2, 14))):
        domain = domains[int(dice.integers(len(domains)))]
        taken = domain[dice.random(domain.size) < dice.choice([0.1, 0.5, 0.95, 1.0])]
        columns.append(np.concatenate([taken, drawn(dice, int(dice.integers(0, 3)))]))
    return [each for each in columns if each.size]


def columns_of(sets: list[U64], *, exact_sizes: bool = True) -> SketchedColumns:
    sizes = np.array([each.size for each in sets], np.float64)
    nothing, any_kind = np.full(sizes.size, np.nan), np.full(sizes.size, 15, np.uint8)
    sketches = {number: sketch(each) for number, each in enumerate(sets)}
    if not exact_sizes:
        sizes = np.array([sketches[number].estimate() for number in range(len(sets))])
    return SketchedColumns.of(sketches, sizes, any_kind, nothing, nothing, exact_sizes=exact_sizes)


@settings(deadline=None, max_examples=40)
@given(collections(), st.sampled_from([0.5, 0.9, 0.95, 1.0]), st.booleans())
def test_no_pair_is_lost(sets: list[U64], minimum: float, exact_sizes: bool) -> None:
    """Whatever is included is among the candidates, and its estimate is near."""
    if not sets:
        return
    found = InclusionSearch(columns_of(sets, exact_sizes=exact_sizes), None).search(minimum * 0.98)
    shares = dict(
        zip(zip(found.children.tolist(), found.parents.tolist(), strict=True), found.shares.tolist(), strict=True)
    )
    for i, x in enumerate(sets):
        for j, y in enumerate(sets):
            share = float(np.isin(x, y).mean())
            if i != j and share >= minimum:
                assert shares[i, j] == pytest.approx(share, abs=0.05)


def test_ranges_and_types_rule_pairs_out() -> None:
    sets = [
        np.arange(1, 101, dtype=np.uint64) * np.uint64(2**40 + 7),
        np.arange(1, 201, dtype=np.uint64) * np.uint64(2**40 + 7),
    ]
    sketches = {number: sketch(each) for number, each in enumerate(sets)}
    sizes = np.array([100.0, 200.0])

    def found(families: list[int], lows: list[float]) -> int:
        made = SketchedColumns.of(
            sketches, sizes, np.array(families, np.uint8), np.array(lows), np.array([100.0, 200.0]), exact_sizes=True
        )
        return int(InclusionSearch(made, None).search(1.0).shares.size)

    assert found([1, 1], [1.0, 1.0]) == 1
    assert found([1, 4], [1.0, 1.0]) == 0
    assert found([1, 1], [0.0, 1.0]) == 0


def brute(lake: Lake) -> dict[tuple[int, int], float]:
    """All inclusions by counting the groups of sets."""
    inverted = lake._joins.inverted
    count = inverted.count
    found = {}
    for x in range(count):
        query = inverted.query_of_set(x)
        for y in range(count):
            if x != y and query.size:
                found[x, y] = float(query.weights[inverted.holds_groups(query.groups, y)].sum()) / query.size
    return found


def test_inclusions_of_the_demo_lake_equal_counting(demo_index: Lake) -> None:
    names = list(zip(*(demo_index.columns()[name].to_pylist() for name in ("table", "column")), strict=True))
    sizes = demo_index._joins.inverted.sizes
    wanted = {
        (names[x], names[y]): share for (x, y), share in brute(demo_index).items() if share >= 0.9 and sizes[x] >= 3
    }
    found = {
        ((each.child_table, each.child_column), (each.parent_table, each.parent_column)): each
        for each in demo_index.inclusions(0.9, verify=True)
    }
    assert {key: each.inclusion for key, each in found.items()} == pytest.approx(wanted)
    assert all(each.exact and each.low == each.high == each.inclusion for each in found.values())
    guessed = {
        ((each.child_table, each.child_column), (each.parent_table, each.parent_column)): each
        for each in demo_index.inclusions(0.9)
    }
    clear = {key for key, share in wanted.items() if share >= 0.97}
    assert len(clear - set(guessed)) <= 0.01 * len(clear)
    held = [guessed[key].low - 1e-9 <= wanted[key] <= guessed[key].high + 1e-9 for key in clear & set(guessed)]
    assert np.mean(held) > 0.95


@pytest.mark.parametrize("estimator", ["mle", "bml", "bottomk"])
def test_other_estimators_answer(demo_index: Lake, estimator: str) -> None:
    exact = demo_index.inclusions(1.0, estimator="exact")
    found = demo_index.inclusions(0.95, estimator=estimator)  # type: ignore[arg-type]
    pairs = {(each.child_table, each.child_column, each.parent_table, each.parent_column) for each in found}
    missed = [
        each
        for each in exact
        if (each.child_table, each.child_column, each.parent_table, each.parent_column) not in pairs
    ]
    assert len(missed) <= 0.05 * len(exact)


def test_smallest_hashes_are_those_of_the_values(tmp_path: Path, spark: SparkSession) -> None:
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "a.csv").write_text("x,y\n" + "".join(f"k{i},v{i % 7}\n" for i in range(60)))
    lake = lakescope.index(tmp_path / "lake", tmp_path / "i", spark=spark)
    from lakescope.values.hashed import hashes_of

    smallest, filled = smallest_hashes(lake._joins.inverted, 20)
    for number, values in enumerate(([f"k{i}" for i in range(60)], [f"v{i}" for i in range(7)])):
        hashes = np.unique(np.concatenate(list(hashes_of(values))))
        assert smallest[number, : filled[number]].tolist() == hashes[:20].tolist()


def test_all_pairs_on_spark(demo_index: Lake, spark: SparkSession) -> None:
    every = demo_index.inclusions_batch(0.95, spark=spark).collect()
    local = demo_index.inclusions(0.95)
    rows = [row for row in every if row["evidence"] != "unknown"]
    untold = [(row["low"], row["high"]) for row in every if row["evidence"] == "unknown"]
    assert untold == [(0.0, 1.0)] * local.info["unknown"]
    key = ("child_table", "child_column", "parent_table", "parent_column", "inclusion", "low", "high", "evidence")
    assert sorted(tuple(row[name] for name in key) for row in rows) == sorted(
        tuple(getattr(each, name) for name in key) for each in local
    )


def test_an_index_of_profiles_only_estimates_and_cannot_count(tmp_path: Path, spark: SparkSession) -> None:
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "a.csv").write_text("k,x\n" + "".join(f"k{i},{i}\n" for i in range(40)))
    (tmp_path / "lake" / "b.csv").write_text("ref,z\n" + "".join(f"k{i % 20},{i}.5\n" for i in range(50)))
    lake = lakescope.index(tmp_path / "lake", tmp_path / "i", spark=spark, joins=False)
    found = lake.inclusions(0.9)
    assert [(each.child_column, each.parent_column, each.inclusion) for each in found] == [("ref", "k", 1.0)]
    with pytest.raises(BadRequest, match="profiles only"):
        lake.inclusions(0.9, verify=True)


def test_bad_requests(demo_index: Lake) -> None:
    for minimum in (0.0, 1.5, -1.0):
        with pytest.raises(BadRequest, match="minimum must be above 0 and at most 1"):
            demo_index.inclusions(minimum)
    with pytest.raises(BadRequest, match="estimator cannot be"):
        demo_index.inclusions(estimator="best")  # type: ignore[arg-type]


def test_pairs_of_one_table(demo_index: Lake) -> None:
    table = "shop/orders.csv"
    of_table = [each for each in demo_index.inclusions(0.9) if table in (each.child_table, each.parent_table)]
    assert of_table
    assert list(demo_index.inclusions(0.9, table=table)) == of_table
    with pytest.raises(NotFound, match="no table named"):
        demo_index.inclusions(table="shop/order.csv")


def test_what_is_left_out_is_told(demo_index: Lake) -> None:
    found = demo_index.inclusions(0.9, limit=3)
    assert len(found) == 3
    assert any("the first 3 are shown" in note for note in found.notes)
    assert found.info["looked_at"] > found.info["found"] > 3


# --- deletions --------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 30)), max_size=200), st.integers(4, 10))
def test_deleting_equals_never_adding(moves: list[tuple[bool, int]], precision: int) -> None:
    words = drawn(np.random.default_rng(0), 31)
    counter, left = DeletableHyperLogLog(precision), []
    for added, which in moves:
        if added or which not in left:
            counter.update_hashes(words[[which]])
            left.append(which)
        else:
            counter.remove_hashes(words[[which]])
            left.remove(which)
    again = DeletableHyperLogLog(precision)
    again.update_hashes(words[left])
    assert counter.to_bytes() == again.to_bytes()
    assert np.array_equal(counter.registers, registers(words[np.unique(left).astype(int)], precision))
    assert DeletableHyperLogLog.from_bytes(counter.to_bytes()).estimate() == counter.estimate()


def test_deletable_example_of_the_paper() -> None:
    """Runs of 3 and 4 in a register make 4; another of 5 makes it 5, until it is taken out again."""
    counter = DeletableHyperLogLog(4)
    runs = {rho: np.array([1 << (60 - rho)], np.uint64) for rho in (3, 4, 5)}
    for rho in (3, 4):
        counter.update_hashes(runs[rho])
    assert counter.registers[0] == 4
    counter.update_hashes(runs[5])
    assert counter.registers[0] == 5
    counter.remove_hashes(runs[5])
    assert counter.registers[0] == 4


def test_deletable_merges_and_refuses_what_was_never_there() -> None:
    left, right = DeletableHyperLogLog().update(["a", "b"]), DeletableHyperLogLog().update(["b", "c"])
    left.merge(right)
    left.remove(["b"])
    assert round(left.estimate()) == 3
    before = left.to_bytes()
    with pytest.raises(BadRequest, match="never added"):
        left.remove(["a", "z"])
    assert left.to_bytes() == before
