"""What would chance join? Texts like those of a program, made anew, and pieces that are exchanged between rows.

A program is worth believing as far as it meets more keys than such texts do. Keys that fill a calendar, or all years of
all countries, are met by anything that looks like them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from lakescope.array_types import I64, U64
from lakescope.engines.transforms.evaluate import BETWEEN
from lakescope.engines.transforms.keys import Key
from lakescope.engines.transforms.program import Constant, Expression, Piece, Program, Row
from lakescope.engines.transforms.steps import Digits, Month
from lakescope.values.alphabet import WITHOUT_DIGITS, bare
from lakescope.values.hashing import hash_text


@dataclass(frozen=True, slots=True)
class ChanceTuning:
    """How it is measured what chance would join (benchmarks/autojoin.py: look-ups and unrelated tables)."""

    #: Texts that are made anew. Not measured: a share of 10% is known to 1.5 points.
    tries: int = 400
    #: Share of texts made anew that must be new for only those to count. Not measured: below it texts fill all that
    #: looks like them.
    strange: float = 0.2
    #: Ways to combine pieces, as a multiple of the rows, from which on they are taken to be independent. Not measured:
    #: a guess.
    ways: int = 4
    #: Share of rows that only rearrange their cells from which on a program does. Not measured: nearly all.
    rewritten: float = 0.9
    #: Rows that the test of pieces needs. Not measured: fewer say nothing.
    few: int = 10
    #: Share of rows that still meet a key if a piece is taken from another row, from which on the piece does not
    #: matter. Not measured: set when unrelated tables were first tried.
    matters: float = 0.7
    #: Steps to either side of a number whose neighbours are tried. Not measured: a few.
    beside: int = 10
    #: Digits of the longest number. Not measured: beyond, a double does not hold all of them exactly.
    longest_number: int = 15
    #: Chance of meeting as many keys as the source does, by neighbours, below which numbers are evidence. Not measured:
    #: a guess.
    level: float = 1e-6


CHANCE = ChanceTuning()


@dataclass(frozen=True, slots=True)
class Met:
    """What a program makes of some source rows: texts, and the target row that each meets (-1: none)."""

    texts: list[str | None]
    targets: I64

    @property
    def hits(self) -> I64:
        """Source rows that meet a key."""
        return np.flatnonzero(self.targets >= 0)


def chance_of(met: Met, key: Key, program: Program, rows: Sequence[Row], tries: int = CHANCE.tries) -> float:
    """The chance that a text like those of a program meets a key, though no row stands behind it.

    Texts are made anew in three ways, and the one that meets most counts: two of them cut and put together; pieces of
    different rows put together; digits of the pieces drawn by chance.
    """
    known = sorted({text for text in met.texts if text})
    if len(known) < 2:
        return 1.0
    rng = np.random.default_rng(11)
    recombined, shuffled = _recombined(known, rng, tries), _shuffled(program, rows, set(known), rng, tries)
    return max(share_met(made, key) for made in (recombined, shuffled, _redrawn(program, rows, rng)))


def share_met(texts: Sequence[str], key: Key) -> float:
    """The share of texts that are keys."""
    hashes: U64 = np.array([hash_text(text) for text in texts], np.uint64)
    return float((key.look_up(hashes) >= 0).mean()) if texts else 0.0


def _recombined(known: Sequence[str], rng: np.random.Generator, tries: int) -> list[str]:
    """The beginning of one text and the end of another, cut at the same place; not what is a text itself.

    Where nearly all are, texts fill all that looks like them, and each says what chance would.
    """
    pairs = rng.integers(len(known), size=(2 * tries, 2)).tolist()
    made = set()
    for (a, b), share in zip(pairs, rng.random(2 * tries).tolist(), strict=True):
        one, other = known[a], known[b]
        made.add(one[: max(1, round(share * len(one)))] + other[max(1, round(share * len(other))) :])
    strange = made - set(known)
    return sorted(made if len(strange) < CHANCE.strange * len(made) else strange)


def _shuffled(
    program: Program, rows: Sequence[Row], known: set[str], rng: np.random.Generator, tries: int
) -> list[str]:
    """Every piece from a row of its own; not what is a text itself, unless nearly all are."""
    if len(program.pieces) < 2 or len(rows) < 2:
        return []
    made = []
    for _ in range(tries):
        text = _text(program, lambda each: each.apply(rows[int(rng.integers(len(rows)))]))
        if text:
            made.append(text)
    strange = [text for text in made if text not in known]
    combinations = math.prod(len({piece.apply(row) for row in rows}) for piece in program.pieces)
    # Where there are few ways to combine pieces, one of them is the key by itself, and every text is an old one.
    dense = len(strange) < CHANCE.strange * len(made) and combinations > CHANCE.ways * len(rows)
    return made if dense else strange


def _redrawn(program: Program, rows: Sequence[Row], rng: np.random.Generator) -> list[str]:
    """The digits of pieces, but not those of constants, drawn by chance."""
    made = []
    for row in rows[: CHANCE.tries]:
        own = _text(program, lambda each, row=row: each.apply(row))  # type: ignore[misc]
        text = _text(program, lambda each, row=row: _with_other_digits(each.apply(row), rng))  # type: ignore[misc]
        if text and text != own:
            made.append(text)
    return made


def _with_other_digits(text: str, rng: np.random.Generator) -> str:
    return "".join(str(int(rng.integers(10))) if "0" <= char <= "9" else char for char in text)


def _text(program: Program, piece: Callable[[Piece], str]) -> str:
    """The key that a program makes if its pieces are these."""
    made = []
    for output in program.outputs:
        parts = [each.text if isinstance(each, Constant) else piece(each) for each in output.operators]
        if not all(parts):
            return ""
        made.append("".join(parts))
    return BETWEEN.join(made)


def precision_of(share: float, chance: float) -> float:
    """The share of meetings that are meant, if texts without a partner meet a key by chance.

    Of texts, ``share`` meet a key: those that have a partner, and of the rest a share ``chance``.
    """
    if share <= 0 or chance >= 1:
        return float(share >= 1)
    return max(0.0, 1 - (1 - share) * chance / ((1 - chance) * share))


def rewrites(output: Expression, rows: Sequence[Row]) -> bool:
    """Whether an expression only rearranges cells: nothing of them is lost, and no letter or digit is its own.

    Numbers may be padded, and months written in another way.
    """
    if any(map(str.isalnum, output.constant_text)):
        return False
    pieces = [
        Piece(each.column, tuple(step for step in each.steps if not isinstance(step, Digits | Month)))
        for each in output.pieces
    ]
    same = [
        sorted(bare("".join(piece.apply(row) for piece in pieces)))
        == sorted(bare("".join(row.get(name, "") for name in output.columns)))
        for row in rows
        if output.apply(row)
    ]
    return sum(same) >= CHANCE.rewritten * max(1, len(same))


def idle(key: Key, program: Program, rows: Sequence[Row]) -> str | None:
    """A column of the key that rows meet whatever they hold: no piece of what is written there matters.

    A piece matters, or in keys of several columns all that is written into one, if fewer rows meet a key once it is
    taken from another row. Cells that are merely rearranged are believed anyhow.
    """
    if len(program.pieces) < 2:
        return None
    rng = np.random.default_rng(13)
    hashes = np.array([hash_text(_text(program, lambda each, row=row: each.apply(row))) for row in rows], np.uint64)  # type: ignore[misc]
    met = [row for row, target in zip(rows, key.look_up(hashes).tolist(), strict=True) if target >= 0]
    if len(met) < CHANCE.few:
        return None
    if rewrites(program.concatenated, met):
        return None
    for place, output in enumerate(program.outputs):
        if rewrites(output, met):
            continue
        if len(program.outputs) > 1:
            parts = [frozenset(output.pieces)]
        else:
            parts = [frozenset([each]) for each in output.pieces if len({each.apply(row) for row in met}) > 1]
        # One piece that all depends on makes the same texts, whatever the order of rows.
        if len(program.outputs) == 1 and len(parts) < 2:
            continue
        if all(share_met(_exchanged(program, part, met, rng), key) > CHANCE.matters for part in parts):
            return program.keys[place].words()
    return None


def _exchanged(program: Program, part: frozenset[Piece], rows: Sequence[Row], rng: np.random.Generator) -> list[str]:
    """What a program makes of rows if some pieces of each come from another."""
    others = rng.permutation(len(rows)).tolist()
    return [
        _text(program, lambda each, row=row, other=rows[other]: each.apply(other if each in part else row))  # type: ignore[misc]
        for row, other in zip(rows, others, strict=True)
    ]


def beside_meet(met: Met, key: Key, precision: float) -> float | None:
    """The share of numbers beside those of the source that meet keys, if numbers meet no more than these do.

    Whole numbers that fill a range, or a share of it, meet those of any other table that do. Were two columns
    unrelated, numbers a few steps on would meet as many keys: steps are what all differences are multiples of, and
    count within the range that is met. None where texts are no numbers, or meet more than chance explains.
    """
    texts = sorted({text for text in met.texts if text})
    if not texts or any(text.translate(WITHOUT_DIGITS) or len(text) > CHANCE.longest_number for text in texts):
        return None
    numbers, hit = _with_range(texts, key)
    if numbers.size < 2 or not hit.size:
        return None
    step = int(np.gcd.reduce(np.diff(np.sort(numbers))))
    if not step:
        return None
    widths = {len(text) for text in texts}
    width = widths.pop() if len(widths) == 1 else 1
    rng = np.random.default_rng(17)
    drawn = numbers if numbers.size <= CHANCE.tries else np.sort(rng.choice(numbers, CHANCE.tries, replace=False))
    moved = [int(number) + step * by for number in drawn for by in range(-CHANCE.beside, CHANCE.beside + 1) if by]
    inside = [number for number in moved if hit.min() <= number <= hit.max()]
    if not inside:
        return None
    share = hit.size / numbers.size
    beside = share_met([str(number).rjust(width, "0") for number in inside], key)
    few = share <= beside or math.exp(-numbers.size * divergence(share, beside)) > CHANCE.level
    return beside if few or precision_of(share, beside) < precision else None


def _with_range(texts: Sequence[str], key: Key) -> tuple[I64, I64]:
    """The numbers of texts within the range of those that meet keys, and these."""
    numbers = np.array([int(text) for text in texts], np.int64)
    hashes: U64 = np.array([hash_text(text) for text in texts], np.uint64)
    hit = numbers[key.look_up(hashes) >= 0]
    inside = (numbers >= hit.min()) & (numbers <= hit.max()) if hit.size else np.zeros(numbers.size, bool)
    return numbers[inside], hit


def divergence(share: float, chance: float) -> float:
    """How surprising a share is at a chance, by value: the exponent of Chernoff's bound (Kullback and Leibler)."""
    if chance >= 1:
        return 0.0
    if chance <= 0:
        return math.inf if share > 0 else 0.0
    other = 0.0 if share >= 1 else (1 - share) * math.log((1 - share) / (1 - chance))
    return share * math.log(share / chance) + other
