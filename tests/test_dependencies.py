"""Functional dependencies: minimal ones against brute force under every semantics, degrees and scores of the thesis."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lakescope
from helpers.commands import Run, assert_refused, from_json
from lakescope.array_types import I32
from lakescope.engines.dependencies import genuineness
from lakescope.engines.dependencies.budget import Budget
from lakescope.engines.dependencies.compare import compare, degrees, label
from lakescope.engines.dependencies.discover import DependencySearchTuning, Discovery, discover
from lakescope.engines.dependencies.disguised import disguised
from lakescope.engines.dependencies.find import RankingTuning
from lakescope.engines.dependencies.genuineness import GenuinenessScorer, Imputation, hoeffding_worlds
from lakescope.engines.dependencies.scores import Scorer, score_all
from lakescope.engines.dependencies.table import NULLS, CodedTable, read
from lakescope.engines.dependencies.violations import parse, violations
from lakescope.errors import BadRequest, NotFound
from lakescope.studies.pollute import polluted

N = -1
#: Figure 4.2 of the thesis: a relation and three versions of it with more and more missing values.
VERSIONS = {
    "R0": [[0, 0, 1, 1], [1, 1, 1, 0], [1, 1, 1, 1]],
    "R1": [[0, 0, 1, 1], [1, 1, N, 0], [1, 1, 1, 1]],
    "R2": [[0, 0, 1, 1], [1, 1, N, 0], [1, N, 1, 1]],
    "R3": [[0, 0, 1, 1], [1, N, N, 0], [1, N, 1, 1]],
}
PAIRS = list(itertools.permutations(range(3), 2))
DEGREES = {
    ("R0", "equal"): [1, 0, 1, 0, 2, 1],
    ("R0", "distinct"): [1, 0, 1, 0, 2, 1],
    ("R1", "equal"): [1, 0, 0, 0, 2, 2],
    ("R1", "distinct"): [1, 0, 0, 0, 2, 2],
    ("R2", "equal"): [1, 1, 0, 1, 1, 2],
    ("R2", "distinct"): [1, 1, 0, 1, 1, 2],
    ("R3", "equal"): [2, 1, 1, 1, 1, 2],
    ("R3", "distinct"): [2, 1, 0, 0, 1, 2],
}
LIKELIHOODS = {
    "equal": [(0.5, 0.5), (0.75, 0.75), (0.8333, 0.75), (0.8333, 0.75), (0.8333, 0.75), (0.6667, 0.5)],
    "distinct": [(0.5, 0.5), (0.75, 0.75), (1, 1), (1, 1), (0.8333, 0.75), (0.6667, 0.5)],
    "skip": [(1, 1), (1, 1), (1, 1), (1, 1), (0.5, 0.5), (0.5, 0.5)],
}


def table(name: str) -> CodedTable:
    return CodedTable(("A", "B", "C"), np.array(VERSIONS[name], np.int32))


@pytest.mark.parametrize(("version", "nulls"), DEGREES)
def test_degrees_of_the_thesis(version: str, nulls: str) -> None:
    scorer = Scorer(table(version).under(nulls))  # type: ignore[arg-type]
    assert [scorer.score((x,), a).degree for x, a in PAIRS] == DEGREES[version, nulls]


@pytest.mark.parametrize("nulls", NULLS)
def test_likelihoods_of_the_thesis(nulls: str) -> None:
    scorer = Scorer(table("R3").under(nulls))  # type: ignore[arg-type]
    found = [scorer.score((x,), a) for x, a in PAIRS]
    assert [(each.pv, each.pt) for each in found] == [pytest.approx(each, abs=1e-4) for each in LIKELIHOODS[nulls]]


@st.composite
def relations(draw: st.DrawFn) -> CodedTable:
    columns, rows = draw(st.integers(1, 6)), draw(st.integers(0, 25))
    dice = np.random.default_rng(draw(st.integers(0, 2**32)))
    codes = dice.integers(0, draw(st.integers(1, 4)), (columns, rows)).astype(np.int32)
    codes[dice.random(codes.shape) < draw(st.sampled_from([0.0, 0.1, 0.4]))] = N
    return CodedTable(tuple(f"c{i}" for i in range(columns)), codes)


def holds(codes: I32, lhs: tuple[int, ...], rhs: int) -> bool:
    """By comparing all pairs of rows; a missing value that is left (-1) is equal to none."""
    for one, other in itertools.combinations(codes.T.tolist(), 2):
        if all(one[c] == other[c] and one[c] != N for c in lhs) and (one[rhs] != other[rhs] or one[rhs] == N):
            return False
    return True


def brute(codes: I32, most: int) -> list[set[tuple[int, ...]]]:
    """All minimal left sides of every column."""
    columns = codes.shape[0]
    found: list[set[tuple[int, ...]]] = [set() for _ in range(columns)]
    for size in range(min(most, columns - 1) + 1):
        for lhs in itertools.combinations(range(columns), size):
            for rhs in range(columns):
                smaller = any(set(known) <= set(lhs) for known in found[rhs])
                if rhs not in lhs and not smaller and holds(codes, lhs, rhs):
                    found[rhs].add(lhs)
    return found


@settings(deadline=None, max_examples=150)
@given(relations(), st.sampled_from(NULLS), st.integers(0, 6))
def test_minimal_dependencies_equal_brute_force(relation: CodedTable, nulls: str, most: int) -> None:
    codes = relation.under(nulls)  # type: ignore[arg-type]
    found = discover(codes, most)
    assert found.complete
    wanted = brute(codes, most)
    assert [set(sides) for sides in found.left_sides] == wanted
    # As if it were a sample, which every answer is checked against.
    search = Discovery(codes, most, Budget(None))
    search.whole_table = False
    assert [set(sides) for sides in search.run().left_sides] == wanted


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32), st.sampled_from(["equal", "distinct"]))
def test_sampling_finds_what_comparing_all_pairs_does(seed: int, nulls: str) -> None:
    """More rows than are compared at once: failures of what was derived teach the rest."""
    dice = np.random.default_rng(seed)
    codes = dice.integers(0, 9, (6, 900)).astype(np.int32)
    codes[4] = codes[0] * 3 % 7 + codes[1]
    codes[5, 0] = N
    relation = CodedTable(tuple("abcdef"), codes)
    found = discover(relation.under(nulls))  # type: ignore[arg-type]
    wide = relation.under(nulls)  # type: ignore[arg-type]
    scorer = Scorer(wide)
    for rhs, sides in enumerate(found.left_sides):
        for lhs in sides:
            assert scorer.score(lhs, rhs).degree == 0
            for left_out in lhs:
                assert scorer.score(tuple(c for c in lhs if c != left_out), rhs).degree > 0
    assert (0, 1) in found.left_sides[4]


@settings(deadline=None, max_examples=60)
@given(relations(), st.sampled_from(NULLS))
def test_per_tuple_is_the_degree(relation: CodedTable, nulls: str) -> None:
    codes = relation.under(nulls)  # type: ignore[arg-type]
    scorer = Scorer(codes)
    for lhs in itertools.chain.from_iterable(
        itertools.combinations(range(relation.columns), size) for size in (0, 1, 2)
    ):
        for rhs in set(range(relation.columns)) - set(lhs):
            score = scorer.score(lhs, rhs)
            if codes.shape[1]:
                assert score.pt == pytest.approx(1 - score.degree / codes.shape[1])
                assert 0 < score.pv <= 1
                assert (score.degree == 0) == holds(codes, lhs, rhs)
            else:
                assert np.isnan(score.pt)


@pytest.mark.parametrize("spread", [1, 90_000])
def test_large_groups_and_large_domains_are_counted_right(spread: int) -> None:
    """Squares of groups beyond 32 bits, and pairs of groups and values beyond the room for a table."""
    rows = 100_000
    x = np.arange(rows, dtype=np.int32) % spread
    scorer = Scorer(np.array([x, x * 7 % spread, np.zeros(rows, np.int32)], np.int32))
    score = scorer.score((0,), 1)
    assert (score.degree, score.pv, score.pt, score.pdep, score.groups) == (0, 1.0, 1.0, 1.0, spread)
    assert scorer.score((2,), 0).pdep == pytest.approx(((rows // spread) ** 2 * spread) / rows**2, rel=0.4)
    assert scorer.score((0, 1), 2).degree == 0


def test_more_than_sixty_four_columns() -> None:
    dice = np.random.default_rng(1)
    codes = dice.integers(0, 3, (130, 60)).astype(np.int32)
    codes[129] = codes[0] * 3 + codes[70]
    found = discover(codes, 2)
    assert (0, 70) in found.left_sides[129]
    assert (129,) in found.left_sides[0]


def test_a_budget_of_time_ends_it_with_what_holds() -> None:
    codes = np.random.default_rng(1).integers(0, 40, (24, 3_000)).astype(np.int32)
    found = discover(codes, budget=Budget(0.0))
    assert not found.complete
    scorer = Scorer(codes)
    assert all(scorer.score(lhs, rhs).degree == 0 for rhs, sides in enumerate(found.left_sides) for lhs in sides)


def test_a_budget_that_ends_while_validating_says_so() -> None:
    """Nothing has failed yet, but not everything was checked."""
    codes = np.random.default_rng(1).integers(0, 30, (6, 700)).astype(np.int32)
    assert discover(codes, budget=Budget(60.0)).complete
    found = discover(codes, budget=_LateAfter(0))
    assert not found.complete
    assert found.validated == 1


class _LateAfter(Budget):
    """Time that is up once it has been asked for so often."""

    def __init__(self, asked: int) -> None:
        super().__init__(None)
        self._left = asked

    @property
    def late(self) -> bool:
        self._left -= 1
        return self._left < 0


class _LateInRound(Budget):
    """Time that is up in the second round of deriving left sides."""

    def __init__(self) -> None:
        super().__init__(None)
        self._rounds = 0

    def part(self, share: float) -> Budget:
        self._rounds += 1
        return Budget(0.0 if self._rounds > 1 else None)


def test_when_time_is_up_short_left_sides_have_been_found() -> None:
    """Two hundred columns: what is told holds, is minimal, and all of it up to the size that is claimed."""
    codes = np.random.default_rng(1).integers(0, 7, (200, 400)).astype(np.int32)
    codes[7] = codes[3] // 2
    codes[199] = codes[150] * 7 + codes[160]
    found = discover(codes, None, _LateInRound())
    assert not found.complete
    assert found.whole == 2
    told = {(lhs, rhs) for rhs, sides in enumerate(found.left_sides) for lhs in sides}
    assert told >= {((3,), 7), ((199,), 150), ((199,), 160), ((150, 160), 199)}
    scorer = Scorer(codes)
    for lhs, rhs in told:
        assert scorer.score(lhs, rhs).degree == 0
        assert all(scorer.score(less, rhs).degree for less in itertools.combinations(lhs, len(lhs) - 1))


def test_single_columns_of_wide_tables_need_no_sample() -> None:
    """Nothing is derived at all, and what one column determines is there."""
    codes = np.random.default_rng(1).integers(0, 7, (60, 500)).astype(np.int32)
    codes[1:9] = codes[0] // np.arange(1, 9)[:, None]
    codes[59] = 4
    found = discover(codes, 1)
    assert found.complete
    assert {rhs for rhs, sides in enumerate(found.left_sides) if (0,) in sides} == set(range(1, 7))
    assert found.left_sides[7] == found.left_sides[8] == found.left_sides[59] == [()]
    scorer = Scorer(codes)
    assert all(scorer.score(lhs, rhs).degree == 0 for rhs, sides in enumerate(found.left_sides) for lhs in sides)


def test_too_many_to_keep_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakescope.engines.dependencies.discover.SEARCH", DependencySearchTuning(room=10))
    codes = np.random.default_rng(1).integers(0, 4, (12, 40)).astype(np.int32)
    frame = pa.table({f"c{place}": column.tolist() for place, column in enumerate(codes)})
    found = lakescope.dependencies(frame, max_lhs=None)
    assert not found.info["complete"]
    assert any("too many to keep" in note for note in found.notes)


def test_many_are_scored_in_parts_as_each_is_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """On several threads, with columns in two bytes a row and one that needs four, some values missing."""
    monkeypatch.setattr("lakescope.threads._cores", lambda: 3)
    monkeypatch.setattr("lakescope.threads._WORTH_A_THREAD", 1)
    dice = np.random.default_rng(2)
    codes = np.stack([dice.integers(-1, most, 3_000) for most in (2, 3, 40, 9, 40_000)]).astype(np.int32)
    candidates = [
        (lhs, rhs)
        for size in range(5)
        for lhs in itertools.combinations(range(5), size)
        for rhs in range(5)
        if rhs not in lhs
    ]
    alone = [Scorer(codes).score(*each) for each in candidates]
    assert score_all(codes, candidates) == alone
    monkeypatch.setattr("lakescope.engines.dependencies.scores._NARROWED", 0)
    assert {each.dtype for each in Scorer(codes)._columns} == {np.dtype(np.int16), np.dtype(np.int32)}
    assert score_all(codes, candidates) == alone


def test_what_was_found_too_late_to_score_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakescope.engines.dependencies.find.RANKING", RankingTuning(scoring=0.0))
    found = lakescope.dependencies(pa.table({"a": [1, 1, 2, 2], "b": [1, 1, 2, 2], "c": [1, 2, 3, 3]}), budget=60.0)
    assert {(each.lhs, each.rhs, each.score, each.flags) for each in found} >= {(("a",), "b", None, ("unscored",))}
    assert any("without scores" in note for note in found.notes)
    assert len(found.to_arrow()) == len(found)


#: Table 4.2 of the thesis, every candidate by its degree from 0 to 4 and beyond; whether the empty left side counts.
TABLES = {
    "iris": (False, [5, 2, 1, 1, 7, 59]),
    "abalone": (True, [783, 219, 122, 57, 56, 1_067]),
    "computer": (True, [3_046, 193, 199, 168, 92, 1_422]),
    "glass": (False, [8_624, 1_156, 536, 166, 84, 687]),
}


@pytest.mark.parametrize("name", sorted(TABLES))
def test_degree_tables_of_the_thesis(name: str) -> None:
    empty, wanted = TABLES[name]
    found = degrees(read(str(Path(__file__).parent / "tables" / f"{name}.csv")), "equal", empty=empty)
    assert [*(found[degree] for degree in range(5)), sum(found[degree] for degree in found if degree > 4)] == wanted


def test_reading_a_table(tmp_path: object) -> None:
    made = read(pa.table({"a": ["x", "y", None, "x"], "b": ["1", "?", "1.0", ""], "c": [1.5, 1.5, None, 2.0]}), ["?"])
    assert made.names == ("a", "b", "c")
    assert made.codes.tolist() == [[0, 1, N, 0], [0, N, 0, N], [0, 0, N, 1]]
    assert made.missing().tolist() == [1, 2, 1]
    assert made.under("equal").tolist() == [[0, 1, 2, 0], [0, 1, 0, 1], [0, 0, 2, 1]]
    assert made.under("skip").tolist() == [[0], [0], [0]]
    assert made.chosen(["c", "a"]).names == ("c", "a")


def test_an_unknown_semantics_is_refused() -> None:
    from lakescope.engines.dependencies.table import check_nulls

    with pytest.raises(BadRequest, match="no semantics 'maybe'"):
        check_nulls("maybe")


# --- genuineness ------------------------------------------------------------------------------------------------------

#: Table 4.1 of the thesis: the chances of what is missing in R3, and the genuineness of every dependency.
CHANCES = {(1, 1): [0.3, 0.7], (2, 1): [0.4, 0.6], (1, 2): [0.2, 0.8]}
GENUINENESS = [
    *(((0,), 1, 0.14), ((0,), 2, 0.6), ((1,), 0, 0.14), ((1,), 2, 0.6), ((2,), 0, 0.0), ((2,), 1, 0.0)),
    *(((0, 1), 2, 0.72), ((0, 2), 1, 0.164), ((1, 2), 0, 0.164)),
]


@pytest.mark.parametrize(("lhs", "rhs", "wanted"), GENUINENESS)
def test_genuineness_of_the_thesis(lhs: tuple[int, ...], rhs: int, wanted: float) -> None:
    found = GenuinenessScorer(table("R3"), lambda column, row: np.array(CHANCES[column, row])).score(lhs, rhs)
    assert found.exact
    assert found.value == pytest.approx(wanted)


def by_all_worlds(relation: CodedTable, imputation: Imputation, lhs: tuple[int, ...], rhs: int) -> float:
    cells = [(c, r) for c in (*lhs, rhs) for r in range(relation.rows) if relation.codes[c, r] < 0]
    total = 0.0
    for values in itertools.product(*(range(imputation.domain(c)) for c, _ in cells)):
        world, chance = relation.codes.copy(), 1.0
        for (c, r), value in zip(cells, values, strict=True):
            world[c, r] = value
            chance *= imputation.distribution(c, r)[value]
        total += chance * holds(world, lhs, rhs)
    return total


@settings(deadline=None, max_examples=60)
@given(
    st.integers(0, 2**32), st.sampled_from(["uniform", "frequency", "conditional"]), st.sampled_from([(0,), (0, 1), ()])
)
def test_genuineness_is_the_sum_over_all_worlds(seed: int, model: str, lhs: tuple[int, ...]) -> None:
    dice = np.random.default_rng(seed)
    codes = dice.integers(0, 3, (3, int(dice.integers(1, 7)))).astype(np.int32)
    codes.ravel()[dice.choice(codes.size, min(codes.size, int(dice.integers(0, 6))), replace=False)] = N
    relation = CodedTable(("a", "b", "c"), codes)
    scorer = GenuinenessScorer(relation, model)  # type: ignore[arg-type]
    wanted = by_all_worlds(relation, scorer.imputation, lhs, 2)
    assert scorer.score(lhs, 2).value == pytest.approx(wanted)


def test_genuineness_by_drawing_holds_the_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    held = 0
    for seed in range(20):
        dice = np.random.default_rng(seed)
        codes = dice.integers(0, 3, (3, 6)).astype(np.int32)
        codes.ravel()[dice.choice(18, 4, replace=False)] = N
        relation = CodedTable(("a", "b", "c"), codes)
        scorer = GenuinenessScorer(relation, "conditional" if seed % 2 else "uniform", error=0.05)
        wanted = scorer.score((0, 1), 2).value
        monkeypatch.setattr(genuineness, "GENUINENESS", replace(genuineness.GENUINENESS, options=0))
        drawn = scorer.score((0, 1), 2)
        monkeypatch.undo()
        held += drawn.low - 1e-9 <= wanted <= drawn.high + 1e-9
    assert held >= 18


def test_worlds_that_must_be_drawn() -> None:
    """By Hoeffding, whatever the number of rows (spec 4.6)."""
    assert [hoeffding_worlds(error) for error in (0.1, 0.05, 0.01)] == [185, 738, 18_445]


def test_imputations_that_cannot_be() -> None:
    with pytest.raises(BadRequest, match="no imputation 'mean'"):
        Imputation(table("R3"), "mean")  # type: ignore[arg-type]
    with pytest.raises(BadRequest, match="chances that add up to"):
        GenuinenessScorer(table("R3"), lambda column, row: np.array([0.5, 0.0])).score((0,), 1)


def test_columns_without_any_value() -> None:
    empty = CodedTable(("a", "b"), np.array([[0, 1, 1], [N, N, N]], np.int32))
    assert GenuinenessScorer(empty).score((0,), 1).value == 1.0
    assert GenuinenessScorer(empty).score((1,), 0).value == 0.0


# --- beside a clean version -------------------------------------------------------------------------------------------

LABELS = {
    ("R1", "equal"): ["same", "same", "fake", "same", "same", "ghost"],
    ("R2", "equal"): ["same", "ghost", "fake", "ghost", "fake", "ghost"],
    ("R3", "equal"): ["ghost", "ghost", "same", "ghost", "fake", "ghost"],
    ("R3", "distinct"): ["ghost", "ghost", "fake", "same", "fake", "ghost"],
}


@pytest.mark.parametrize(("version", "nulls"), LABELS)
def test_labels_of_the_thesis(version: str, nulls: str) -> None:
    before, after = Scorer(table("R0").under(nulls)), Scorer(table(version).under(nulls))  # type: ignore[arg-type]
    found = [label(before.score((x,), a).degree, after.score((x,), a).degree) for x, a in PAIRS]
    assert found == LABELS[version, nulls]


def arrow(version: str) -> object:
    columns = zip("ABC", VERSIONS[version], strict=True)
    return pa.table({name: [None if code == N else str(code) for code in codes] for name, codes in columns})


def test_comparing_tables() -> None:
    found = compare(arrow("R3"), arrow("R0"), "equal", 1, universe="all")
    assert [each.label for each in found] == sorted(LABELS["R3", "equal"])  # what changed first
    assert {word: found.info[word] for word in ("same", "ghost", "fake", "genuine")} == {
        "same": 1,
        "ghost": 4,
        "fake": 1,
        "genuine": 5,
    }
    assert ["ghost", 1, 2] in found.info["degrees"]
    minimal = compare(arrow("R3"), arrow("R0"), "distinct", 1)
    assert {(each.lhs, each.rhs) for each in minimal} == {((), "C"), (("B",), "A"), (("B",), "C")}
    with pytest.raises(BadRequest, match="3 and 2 columns"):
        compare(arrow("R3"), arrow("R0").drop_columns(["C"]))  # type: ignore[attr-defined]
    with pytest.raises(BadRequest, match="no universe 'most'"):
        compare(arrow("R3"), arrow("R0"), universe="most")  # type: ignore[arg-type]


def test_all_candidates_are_counted_once() -> None:
    assert sum(degrees(table("R0"), "equal").values()) == 3 * (2**2 - 1)
    assert sum(degrees(table("R0"), "equal", empty=True).values()) == 3 * 2**2


@pytest.mark.parametrize("unit", ["cells", "tuples"])
def test_pollution(unit: str) -> None:
    dice = np.random.default_rng(1)
    whole = CodedTable(tuple("abcdefghij"), dice.integers(0, 5, (10, 400)).astype(np.int32))
    wanted = round(0.1 * 400 * (10 if unit == "cells" else 1))
    for pattern, target in (("uniform", ()), ("pareto", ()), ("target", (2, 3))):
        made = polluted(whole, 0.1, pattern, unit=unit, target=target)  # type: ignore[arg-type]
        again = polluted(whole, 0.1, pattern, unit=unit, target=target)  # type: ignore[arg-type]
        assert made.missing().sum() == wanted
        assert np.array_equal(made.codes, again.codes)
        kept = made.codes >= 0
        assert np.array_equal(made.codes[kept], whole.codes[kept])
        if pattern == "target":
            assert np.flatnonzero(made.missing()).tolist() == [2, 3]
        if pattern == "pareto":
            assert np.sort(made.missing())[-2:].sum() == round(0.8 * wanted)


def test_pollution_that_cannot_be() -> None:
    whole = CodedTable(tuple("abcde"), np.zeros((5, 10), np.int32))
    with pytest.raises(BadRequest, match="cannot be missing in 1 columns"):
        polluted(whole, 0.5, "pareto")
    with pytest.raises(BadRequest, match="no column to take values out of"):
        polluted(whole, 0.1, "target")
    with pytest.raises(BadRequest, match="no pattern 'some'"):
        polluted(whole, 0.1, "some")  # type: ignore[arg-type]
    with pytest.raises(BadRequest, match="between 0 and 1"):
        polluted(whole, 2.0)


# --- what a user sees -------------------------------------------------------------------------------------------------


def addresses() -> pa.Table:
    """Zip tells the city but for one row, and lacks a value once; the id is a key, the country constant."""
    zips = ["1", "1", "1", "2", "2", None, "3", "3", "3", "3"]
    cities = ["Rome", "Rome", "Rom", "Oslo", "Oslo", "Oslo", "Bern", "Bern", None, "Bern"]
    return pa.table({"id": [str(i) for i in range(10)], "zip": zips, "city": cities, "country": ["X"] * 10})


def test_dependencies_with_scores_and_doubts() -> None:
    found = lakescope.dependencies(addresses(), error=0.25, max_lhs=1)
    told = {(each.lhs, each.rhs): each for each in found}
    zip_city = told[("zip",), "city"]
    assert (zip_city.degree, zip_city.strength, zip_city.flags) == (2, "none", ())
    assert 0 < zip_city.score < 1
    assert "2 cells are missing" in zip_city.reasons
    assert told[("id",), "city"].flags == ("key",)
    assert told[(), "country"].flags == ("constant",)
    assert [bool(each.flags) for each in found] == sorted(bool(each.flags) for each in found)
    assert any("flagged" in note for note in found.notes)


def test_what_holds_under_which_semantics() -> None:
    table = pa.table({"a": ["1", "1", "2"], "b": ["x", None, "y"]})
    (found,) = [each for each in lakescope.dependencies(table, "skip", 1) if (each.lhs, each.rhs) == (("a",), "b")]
    assert (found.holds, found.strength, found.gs) == (("skip",), "weak", pytest.approx(0.5))
    assert lakescope.dependencies(table, "skip", 1).notes[-1] == "1 of 3 rows lack a value and were left out"


def test_all_dependencies_are_there_whatever_their_flags() -> None:
    dice = np.random.default_rng(4)
    codes = dice.integers(0, 3, (5, 30)).astype(np.int32)
    table = pa.table({f"c{i}": [str(code) for code in column] for i, column in enumerate(codes.tolist())})
    found = lakescope.dependencies(table, max_lhs=None)
    wanted = {(tuple(f"c{c}" for c in lhs), f"c{rhs}") for rhs, sides in enumerate(brute(codes, 5)) for lhs in sides}
    assert {(each.lhs, each.rhs) for each in found} == wanted


@pytest.mark.parametrize(
    ("table", "rows"),
    [
        (pa.table({"a": ["1"], "b": ["2"]}), 1),
        (pa.table({"a": [None, None], "b": [None, None]}, pa.schema([("a", pa.string()), ("b", pa.string())])), 2),
    ],
)
def test_tables_that_say_nothing(table: pa.Table, rows: int) -> None:
    for nulls in NULLS:
        found = lakescope.dependencies(table, nulls)  # type: ignore[arg-type]
        assert all(each.flags for each in found)
        assert found.info["rows"] == rows


def test_bad_requests_for_dependencies() -> None:
    with pytest.raises(BadRequest, match="nulls cannot be"):
        lakescope.dependencies(addresses(), "maybe")  # type: ignore[arg-type]
    with pytest.raises(BadRequest, match="error must be"):
        lakescope.dependencies(addresses(), error=1.5)
    with pytest.raises(BadRequest, match="max_lhs must be"):
        lakescope.dependencies(addresses(), max_lhs=-1)


def test_rows_that_break_a_dependency() -> None:
    found = violations(addresses(), ["zip"], "city")
    assert [(each.lhs, each.values, each.counts, each.rows, each.repair) for each in found] == [
        (("3",), ("Bern", "(missing)"), (3, 1), (6, 7, 8, 9), "Bern"),
        (("1",), ("Rome", "Rom"), (2, 1), (0, 1, 2), "Rome"),
    ]
    cities = addresses()["city"].to_pylist()
    assert [[cities[row] for row in each.doubtful] for each in found] == [[None], ["Rom"]]
    assert found.info["degree"] == 2
    assert [each.lhs for each in violations(addresses(), ["zip"], "city", "skip")] == [("1",)]
    assert not violations(addresses(), ["id"], "city")
    with pytest.raises(NotFound, match="town"):
        violations(addresses(), ["zip"], "town")


def test_rows_to_repair_are_told_however_many_rows_agree() -> None:
    table = pa.table({"zip": ["1"] * 40 + ["2"] * 2, "city": ["Rome"] * 38 + ["Rom", "Roma", "Oslo", "Bern"]})
    first, second = violations(table, ["zip"], "city")
    assert (first.repair, first.doubtful) == ("Rome", (38, 39))
    assert (second.repair, second.doubtful) == (None, (40, 41))


def test_dependencies_as_text() -> None:
    assert parse("zip, state -> city") == (("zip", "state"), "city")
    assert parse("-> country") == ((), "country")
    for text in ("zip", "zip ->", ""):
        with pytest.raises(BadRequest, match="cannot read the dependency"):
            parse(text)


def test_fds_on_the_command_line(run: Run, tmp_path: Path) -> None:
    import pyarrow.csv

    clean, dirty = tmp_path / "clean.csv", tmp_path / "dirty.csv"
    pyarrow.csv.write_csv(addresses(), dirty)
    table = addresses().set_column(2, "city", pa.array(["Rome"] * 3 + ["Oslo"] * 3 + ["Bern"] * 4))
    pyarrow.csv.write_csv(table, clean)
    records = from_json(run("fds", str(clean), "--format", "json").out)
    assert {"lhs", "rhs", "degree", "pv", "pt", "gs", "holds", "flags"} <= set(records[0])
    compared = run("fds", "compare", str(dirty), str(clean), "--format", "json")
    assert {each["label"] for each in from_json(compared.out)} == {"same", "ghost"}
    assert "ghost" in compared.err
    assert "note: degree 2: " in compared.err
    broken = from_json(run("fds", "violations", str(dirty), "zip -> city", "--format", "json").out)
    assert [each["repair"] for each in broken] == ["Bern", "Rome"]
    assert_refused(run("fds", "violations", str(dirty), "zip"), 2, "hint: ")
    assert_refused(run("fds", str(dirty), "--nulls", "maybe"), 2, "hint: ")
    assert_refused(run("fds", str(tmp_path / "none.csv")), 2)
    assert run("fds", str(dirty), "--pattern", "pareto").code == 2
    assert_refused(run("fds", str(dirty), "--study"), 2, "--study is now a command: lakescope fds study TABLE")
    (tmp_path / "lake.idx").mkdir()
    (tmp_path / "lake.idx" / "manifest.json").write_text("{}")
    assert_refused(run("fds", str(tmp_path / "lake.idx")), 2, "lakescope fds lake")
    assert_refused(run("fds", str(dirty), "--compare", str(clean)), 2, "lakescope fds compare TABLE CLEAN")


# --- disguised missing values -----------------------------------------------------------------------------------------


def test_planted_values_that_stand_for_none(demo_lake: Path) -> None:
    import json

    planted = json.loads(demo_lake.with_name("lake.truth.json").read_text())["disguised"]
    assert planted
    for each in planted:
        found = {(one.column, one.value): one.count for one in disguised(demo_lake / each["table"])}
        assert found.get((each["column"], each["marker"])) == each["count"]
    notes = lakescope.dependencies(demo_lake / planted[0]["table"], max_lhs=1).notes
    assert any("may stand for missing values" in note and "'unknown' in smoker" in note for note in notes)


def test_ordinary_values_are_not_suspected() -> None:
    dice = np.random.default_rng(1)
    table = pa.table(
        {
            "age": [str(each) for each in dice.integers(0, 100, 500)],
            "price": [f"{each:.2f}" for each in np.exp(dice.normal(3, 2, 500))],
            "day": [f"2024-01-{each:02d}" for each in dice.integers(1, 29, 500)],
            "word": [str(each) for each in dice.choice(["red", "green", "blue"], 500)],
            "flag": [str(each) for each in dice.choice(["-1", "1"], 500)],
        }
    )
    assert list(disguised(table)) == []
