"""Coefficients and intervals: against scipy, by their laws, by what they promise to cover."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from lakescope.array_types import F64
from lakescope.engines.correlations import estimators, intervals
from lakescope.engines.correlations.answers import MEASURES
from lakescope.engines.correlations.estimators import Samples
from lakescope.studies.intervals import fisher_interval, hoeffding_interval, pearson_interval, spearman_interval


def one(x: F64, y: F64) -> Samples:
    return Samples.of([(x, y)])


def drawn(n: int, r: float, seed: int = 1) -> tuple[F64, F64]:
    dice = np.random.default_rng(seed)
    x = dice.normal(size=n)
    return x, r * x + math.sqrt(1 - r * r) * dice.normal(size=n)


NUMBERS = st.lists(st.integers(-20, 20).map(float), min_size=3, max_size=40)


@settings(max_examples=60)
@given(st.data())
def test_coefficients_are_those_of_scipy(data: st.DataObject) -> None:
    x = np.array(data.draw(NUMBERS))
    y = np.array(data.draw(st.lists(st.integers(-20, 20).map(float), min_size=x.size, max_size=x.size)))
    samples = one(x, y)
    if x.min() == x.max() or y.min() == y.max():
        for measure in ("pearson", "spearman", "rin", "kendall", "qcr"):
            assert np.isnan(estimators.estimate(measure, samples)[0])
        return
    assert estimators.pearson(samples)[0] == pytest.approx(scipy.stats.pearsonr(x, y)[0], abs=1e-9)
    assert estimators.spearman(samples)[0] == pytest.approx(scipy.stats.spearmanr(x, y)[0], abs=1e-9)
    assert estimators.kendall(samples)[0] == pytest.approx(scipy.stats.kendalltau(x, y)[0], abs=1e-9)
    scores = [scipy.stats.norm.ppf((scipy.stats.rankdata(each) - 0.5) / each.size) for each in (x, y)]
    assert estimators.rin(samples)[0] == pytest.approx(scipy.stats.pearsonr(*scores)[0], abs=1e-9)


def awkward(dice: np.random.Generator, n: int) -> F64:
    """Numbers with ties, numbers next to each other, both zeros, huge and tiny ones."""
    near = np.full(n, 1e9)
    for _ in range(3):
        near = np.where(dice.random(n) < 0.5, np.nextafter(near, 2e9), near)
    kinds = [dice.normal(size=n), dice.integers(-3, 3, n).astype(np.float64), near]
    kinds += [np.where(dice.random(n) < 0.5, -0.0, 0.0), 10.0 ** dice.integers(-300, 300, n), -near]
    return np.choose(dice.integers(0, 6, n), kinds) if dice.random() < 0.5 else kinds[int(dice.integers(6))]


@pytest.mark.parametrize("seed", range(6))
def test_compiled_and_plain_ranks_and_moments_agree(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranks to the last bit, counted or sorted or by codes; moments to rounding; with numpy and with kernels."""
    from lakescope.engines.joins import kernels

    assert kernels
    dice = np.random.default_rng(seed)
    sizes = [0, 1, 2, 5, 47, 48, 49, 50, 64, 65, 130, 512]
    pairs = [(awkward(dice, n), awkward(dice, n)) for n in sizes]
    plain = Samples.of(pairs)
    numbers, codes = np.unique(plain.x, return_inverse=True)
    places = np.searchsorted(numbers, plain.x).astype(np.int32)
    coded = Samples(plain.x, plain.y, plain.n, places, np.arange(numbers.size, dtype=np.int32))
    assert np.array_equal(codes.reshape(places.shape), places)
    some = np.array([3, 9, 11])
    fast = [each.ranked for each in (plain, coded, plain.take(some), coded.take(some))]
    moments = [np.array(getattr(plain.moments, name)) for name in ("r", "influence", "fourth", "most")]
    monkeypatch.setattr(estimators, "kernels_are_loaded", lambda: False)
    again = Samples.of(pairs)
    slow = [each.ranked for each in (again, again, again.take(some), again.take(some))]
    for one_way, other in zip(fast, slow, strict=True):
        assert np.array_equal(one_way.x, other.x)
        assert np.array_equal(one_way.y, other.y)
    for found, name in zip(moments, ("r", "influence", "fourth", "most"), strict=True):
        assert found == pytest.approx(getattr(again.moments, name), rel=1e-9, abs=1e-12, nan_ok=True)


def test_compiled_and_plain_sizes_of_joins_agree() -> None:
    from lakescope.engines.correlations import sample_kernels

    dice = np.random.default_rng(2)
    counted = dice.integers(1, 600, 500)
    common = dice.integers(0, counted + 1)
    seen = np.where(dice.random(500) < 0.2, 1.0, dice.random(500))
    most = np.where(common > 0, dice.integers(1, 90, 500), 0)
    total = most + np.maximum(common - 1, 0)
    squares = most.astype(np.float64) ** 2 + np.maximum(common - 1, 0)
    few, many = intervals.total_limits(total, squares, most, seen)
    least, largest = intervals.share_limits(common, counted, seen)
    plain = [np.round(total / seen), np.floor(few), np.ceil(many), common / counted, least, largest]
    found = sample_kernels.join_sizes(total, squares, most, common, counted, seen, intervals.Z)
    for one_way, other in zip(found, plain, strict=True):
        assert one_way == pytest.approx(other, rel=1e-12)


def test_samples_do_not_disturb_each_other() -> None:
    pairs = [drawn(n, 0.4, n) for n in (3, 17, 64, 200)]
    together = Samples.of(pairs)
    for measure in MEASURES:
        alone = [estimators.estimate(measure, one(*pair))[0] for pair in pairs]
        assert estimators.estimate(measure, together) == pytest.approx(alone, abs=1e-12)


@pytest.mark.parametrize("scale", [1e-200, 1e-9, 1.0, 1e9, 1e200])
@pytest.mark.parametrize("measure", ["pearson", "spearman", "rin", "qn", "pm1", "kendall", "qcr"])
def test_scale_and_place_do_not_matter(measure: str, scale: float) -> None:
    x, y = drawn(60, 0.7)
    plain = estimators.estimate(measure, one(x, y))[0]
    assert estimators.estimate(measure, one(x * scale, -y * scale + 3 * scale))[0] == pytest.approx(-plain, abs=1e-6)


def test_missing_numbers_are_left_out_by_pairs() -> None:
    x, y = drawn(50, 0.5)
    with_holes = x.copy()
    with_holes[::7] = np.nan
    kept = ~np.isnan(with_holes)
    samples = one(with_holes, y)
    assert samples.n.tolist() == [int(kept.sum())]
    assert estimators.pearson(samples)[0] == pytest.approx(scipy.stats.pearsonr(x[kept], y[kept])[0])


@given(st.floats(1e-12, 1 - 1e-12))
def test_normal_quantiles(share: float) -> None:
    found = estimators.normal_quantile(np.array([share]))[0]
    assert found == pytest.approx(scipy.stats.norm.ppf(share), abs=1e-8)


def test_partial_correlation_takes_a_third_column_out() -> None:
    dice = np.random.default_rng(2)
    z = dice.normal(size=400)
    x, y = z + 0.3 * dice.normal(size=400), z + 0.3 * dice.normal(size=400)
    samples = one(x, y)
    assert estimators.pearson(samples)[0] > 0.8
    assert abs(estimators.partial(samples, z[None, :])[0]) < 0.15
    assert estimators.partial(samples, dice.normal(size=(1, 400)))[0] > 0.8
    assert np.isnan(estimators.partial(samples, np.full((1, 400), np.nan))[0])


# --- intervals --------------------------------------------------------------------------------------------------------


def test_golden_intervals() -> None:
    low, high = fisher_interval(np.array([0.5]), np.array([100]), np.array([np.inf]))
    assert (low[0], high[0]) == pytest.approx((0.3366, 0.6341), abs=5e-5)
    sizes = np.array([10, 30, 100, 256, 1024, 10000])
    t = np.sqrt(math.log(10 / 0.05) / (2 * sizes))
    assert t == pytest.approx([0.5147, 0.2972, 0.1628, 0.1017, 0.0509, 0.0163], abs=5e-5)


def test_a_join_seen_whole_is_exact() -> None:
    samples = one(*drawn(80, 0.6))
    r = estimators.pearson(samples)
    low, high = pearson_interval(samples, r, np.array([80.0]))
    assert low[0] == pytest.approx(r[0])
    assert high[0] == pytest.approx(r[0])


@pytest.mark.parametrize("n", [1, 2, 3])
def test_too_few_rows_tell_nothing(n: int) -> None:
    samples = one(*drawn(n, 0.5))
    low, high = pearson_interval(samples, np.nan_to_num(estimators.pearson(samples)), np.array([1e9]))
    assert (low[0], high[0]) == (-1, 1)


@pytest.mark.parametrize(("hits", "n"), [(0, 10), (10, 10), (3, 10), (50, 200), (511, 512)])
def test_clopper_pearson_is_that_of_scipy(hits: int, n: int) -> None:
    wanted = scipy.stats.binomtest(hits, n).proportion_ci(method="exact")
    low, high = intervals.clopper_pearson(np.array([hits]), np.array([n]))
    assert (low[0], high[0]) == pytest.approx((wanted.low, wanted.high), abs=1e-6)


def test_hoeffding_holds_and_is_vacuous_for_small_samples() -> None:
    samples = one(*drawn(256, 0.5))
    edges = np.array([-5.0]), np.array([5.0])
    low, high = hoeffding_interval(samples, *edges)
    assert (low[0], high[0]) == (-1, 1)
    dice = np.random.default_rng(1)
    many = one(dice.random(400_000), dice.random(400_000))
    low, high = hoeffding_interval(many, np.array([0.0]), np.array([1.0]))
    assert -0.5 < low[0] < estimators.pearson(many)[0] < high[0] < 0.5
    assert intervals.hfd_length(many, np.array([0.0]), np.array([1.0]))[0] < 0.2


def test_q_values_are_those_of_benjamini_and_hochberg() -> None:
    p = np.array([0.04, 0.001, 0.2, 0.03])
    assert intervals.q_values(p, 4) == pytest.approx(scipy.stats.false_discovery_control(p))
    # Everything that was looked at counts, shown or not.
    assert intervals.q_values(p, 400)[1] == pytest.approx(0.4)


POPULATIONS = {
    "normal": lambda dice, n: dice.normal(size=n),
    "uniform": lambda dice, n: dice.random(n),
    "lognormal": lambda dice, n: dice.lognormal(0, 1, n),
    "heavy": lambda dice, n: dice.standard_t(3, n),
    "zeros": lambda dice, n: np.where(dice.random(n) < 0.6, 0.0, dice.exponential(size=n)),
}


@pytest.mark.parametrize("n", [16, 64, 256])
def test_intervals_of_ranks_cover_what_they_promise(n: int) -> None:
    """95% intervals of Spearman's coefficient of populations of 4,000 rows."""
    dice = np.random.default_rng(7)
    covered = []
    for draw in POPULATIONS.values():
        for weight in (0.0, 1.0, 3.0):
            x = draw(dice, 4000)
            y = weight * x + draw(dice, 4000)
            truth = estimators.spearman(one(x, y))[0]
            chosen = [dice.choice(4000, n, replace=False) for _ in range(200)]
            samples = Samples.of([(x[rows], y[rows]) for rows in chosen])
            low, high = spearman_interval(samples, estimators.spearman(samples), np.full(200, 4000.0))
            covered.append(((low <= truth) & (truth <= high)).mean())
    assert np.mean(covered) >= 0.93
    assert min(covered) >= 0.8


@pytest.mark.parametrize("n", [16, 64, 256])
def test_the_default_interval_covers_pearson_of_light_tails(n: int) -> None:
    dice = np.random.default_rng(8)
    for shape in ("normal", "uniform"):
        x = POPULATIONS[shape](dice, 5000)
        y = x + POPULATIONS[shape](dice, 5000)
        truth = estimators.pearson(one(x, y))[0]
        chosen = [dice.choice(5000, n, replace=False) for _ in range(300)]
        samples = Samples.of([(x[rows], y[rows]) for rows in chosen])
        low, high = pearson_interval(samples, estimators.pearson(samples), np.full(300, 5000.0))
        assert ((low <= truth) & (truth <= high)).mean() >= 0.92


@pytest.mark.parametrize("rows", [1, 20, "geometric"])
@pytest.mark.parametrize("seen", [0.02, 0.2, 0.7])
def test_intervals_of_a_join_cover_what_they_promise(rows: int | str, seen: float) -> None:
    """Of the rows of a join, and of the share of keys in it: keys are seen with a chance, each with its rows."""
    dice = np.random.default_rng(7)
    keys, common, trials = 1_000, 400, 2_000
    of_key = dice.geometric(0.1, common) if rows == "geometric" else dice.integers(1, int(rows) + 1, common)
    drawn = dice.random((trials, keys)) < seen
    met = np.where(drawn[:, :common], of_key, 0)
    chance = np.full(trials, seen)
    low, high = intervals.total_limits(met.sum(1), (met.astype(float) ** 2).sum(1), met.max(1), chance)
    assert np.mean((low <= of_key.sum()) & (of_key.sum() <= high)) >= 0.93
    low, high = intervals.share_limits(drawn[:, :common].sum(1), drawn.sum(1), chance)
    assert np.mean((low <= common / keys) & (common / keys <= high)) >= 0.93


def test_a_join_that_was_seen_whole_is_certain() -> None:
    whole = np.ones(2)
    low, high = intervals.total_limits(np.array([12, 0]), np.array([50.0, 0.0]), np.array([6, 0]), whole)
    assert low.tolist() == high.tolist() == [12, 0]
    low, high = intervals.share_limits(np.array([3, 0]), np.array([4, 4]), whole)
    assert low.tolist() == high.tolist() == [0.75, 0]
