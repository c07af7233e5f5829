"""Sketches by frames: whatever keys share, quadrants are counted as one by one, and few frames serve many keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from lakescope.array_types import F64, U64
from lakescope.engines.correlations.frames import Frames
from lakescope.engines.correlations.keysketches import NumberedHashes
from lakescope.sketches.quadrants import ABOVE, PRESENT, sides


@dataclass
class Sketches:
    """What frames need to know of sketches, from hashes and columns of numbers of every key."""

    hashes: list[U64]
    columns: list[list[F64]]

    def __post_init__(self) -> None:
        self.count = len(self.hashes)
        self.sizes = np.array([each.size for each in self.hashes], np.int64)
        self.pair_starts = np.cumsum([0, *(len(each) for each in self.columns)])
        self.pairs = int(self.pair_starts[-1])
        self.rows = [sides(column) for columns in self.columns for column in columns]
        self.sides = np.array([each.__array_interface__["data"][0] for each in self.rows], np.uint64)
        self.numbered = NumberedHashes(
            np.array([each.__array_interface__["data"][0] for each in self.hashes], np.uint64), self.sizes
        )

    @property
    def frames(self) -> Frames:
        return Frames(self, self.numbered)  # type: ignore[arg-type]


def counted_plainly(
    sketches: Sketches, hashes: U64, signs: npt.NDArray[np.uint8], allowed: npt.NDArray[np.uint8], least: int
) -> list[tuple[int, int, int]]:
    """The same one by one."""
    found = []
    pair = 0
    for key, (theirs, columns) in enumerate(zip(sketches.hashes, sketches.columns, strict=True)):
        _, mine, at = np.intersect1d(hashes, theirs, return_indices=True)
        for _ in columns:
            bits = np.unpackbits(sketches.rows[pair].view(np.uint8), axis=1, bitorder="little")[:, at] > 0
            up, down = bits[ABOVE], bits[PRESENT] & ~bits[ABOVE]
            same = int((up & (signs[mine] == 1)).sum() + (down & (signs[mine] == 2)).sum())
            other = int((down & (signs[mine] == 1)).sum() + (up & (signs[mine] == 2)).sum())
            if same + other >= least and allowed[key]:
                found.append((pair, same, other))
            pair += 1
    return found


def draw(seed: int, keys: int = 120) -> Sketches:
    """Keys of few domains, of which each takes a part of some size; some of their own, some empty; numbers missing."""
    dice = np.random.default_rng(seed)
    domains = [np.sort(dice.integers(1, 2**64 - 1, size, dtype=np.uint64)) for size in (40, 700, 3000, 9000)]
    hashes, columns = [], []
    for number in range(keys):
        domain = domains[int(dice.integers(len(domains)))]
        if number % 10 == 0:
            domain = np.sort(dice.integers(1, 2**64 - 1, 300, dtype=np.uint64))
        taken = domain[dice.random(domain.size) < dice.choice([0.02, 0.3, 0.9])]
        if number % 17 == 0:
            taken = np.union1d(taken, domains[1][: int(dice.integers(50))])
        if number % 31 == 0:
            taken = taken[:0]
        hashes.append(taken[:512])
        columns.append([dice.normal(size=hashes[-1].size) for _ in range(int(dice.integers(4)))])
        for column in columns[-1]:
            if dice.random() < 0.3:
                column[dice.random(column.size) < 0.2] = np.nan
    return Sketches(hashes, columns)


@pytest.mark.parametrize("seed", range(5))
def test_quadrants_by_frames_are_those_one_by_one(seed: int) -> None:
    sketches = draw(seed)
    frames = sketches.frames
    dice = np.random.default_rng(100 + seed)
    met = 0
    for key in range(0, sketches.count, 3):
        hashes = sketches.hashes[key]
        signs = dice.integers(0, 3, hashes.size).astype(np.uint8)
        allowed = (dice.random(sketches.count) < 0.9).astype(np.uint8)
        for least in (5, 1):
            counts = frames.count_pairs(hashes, signs, allowed, least)
            found = list(zip(*(each.tolist() for each in counts), strict=True))
            assert sorted(found) == counted_plainly(sketches, hashes, signs, allowed, least)
            met += len(found)
    assert met > 500


def test_parts_of_the_work_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    sketches = draw(9)
    frames, allowed = sketches.frames, np.ones(sketches.count, np.uint8)
    whole = [frames.count_pairs(hashes, np.full(hashes.size, 2, np.uint8), allowed, 2) for hashes in sketches.hashes]
    monkeypatch.setattr("lakescope.threads._WORTH_A_THREAD", 1)
    monkeypatch.setattr("lakescope.threads._cores", lambda: 4)
    assert sum(each[0].size for each in whole) > 1000
    for hashes, wanted in zip(sketches.hashes, whole, strict=True):
        found = frames.count_pairs(hashes, np.full(hashes.size, 2, np.uint8), allowed, 2)
        assert [each.tolist() for each in found] == [each.tolist() for each in wanted]


def test_keys_of_one_domain_share_a_frame() -> None:
    """Parts of one domain are on one frame, parts of disjoint ones are not; words stay few beside the hashes."""
    dice = np.random.default_rng(3)
    domains = [np.sort(dice.integers(1, 2**64 - 1, 2000, dtype=np.uint64)) for _ in range(7)]
    hashes = [domains[number % 7][dice.random(2000) < dice.uniform(0.3, 1)][:512] for number in range(700)]
    sketches = Sketches(hashes, [[dice.normal(size=each.size) for _ in range(5)] for each in hashes])
    frames = sketches.frames
    assert frames.count == 7
    assert frames.nbytes < 1.2 * sketches.numbered.numbers.nbytes


def test_no_sketch_is_much_longer_on_its_frame_than_it_is() -> None:
    """Few keys of a large domain, all over it, do not become as long as the domain."""
    dice = np.random.default_rng(4)
    domain = np.sort(dice.integers(1, 2**64 - 1, 50_000, dtype=np.uint64))
    hashes = [domain[np.sort(dice.choice(50_000, 500, replace=False))] for _ in range(200)]
    shared = domain[:16]
    hashes = [np.union1d(shared, each) for each in hashes]
    sketches = Sketches(hashes, [[dice.normal(size=each.size)] for each in hashes])
    frames: Any = sketches.frames
    blocks = frames._blocks
    sizes = sketches.sizes[blocks.keys]
    shortest = np.minimum.reduceat(sizes, blocks.firsts) if sizes.size else sizes
    assert (64 * blocks.widths <= 4 * shortest + 1024).all()
    signs = np.ones(hashes[0].size, np.uint8)
    allowed = np.ones(sketches.count, np.uint8)
    found = list(zip(*(each.tolist() for each in frames.count_pairs(hashes[0], signs, allowed, 5)), strict=True))
    assert sorted(found) == counted_plainly(sketches, hashes[0], signs, allowed, 5)


def test_no_sketches_at_all() -> None:
    frames = Sketches([], []).frames
    none = np.empty(0, np.uint8)
    for hashes in (np.empty(0, np.uint64), np.arange(1, 9, dtype=np.uint64)):
        found = frames.count_pairs(hashes, np.ones(hashes.size, np.uint8), none, 5)
        assert [each.size for each in found] == [0, 0, 0]
