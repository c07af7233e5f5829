"""Is a program worth believing? It must cover more than chance would, and make no two rows one (sections 4.9, 4.10).

A join of two tables whose link is knowledge (a country and its capital) is not found by spelling, yet some program
always covers a few rows of it. What is asked of a program here keeps such joins out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lakescope.transforms.evaluate import BETWEEN, U64
from lakescope.transforms.keys import DENSE, Key
from lakescope.transforms.program import Constant, Expression, Piece, Program, Row
from lakescope.transforms.steps import Digits, Initials, Month, Slice
from lakescope.values.alphabet import WITHOUT_DIGITS, bare
from lakescope.values.hashing import hash_text

I64 = npt.NDArray[np.int64]

#: Share of the smaller side that the first program must join, and the least number of keys for each operator.
SHARE = 0.15
_PER_OPERATOR = 3
#: The same share where there are fewer values than this.
_SHARE_OF_FEW = 0.5
_MANY = 30
#: Estimated share of joined pairs that must be right.
PRECISION = 0.9
#: Texts so short that many meet by chance, and the share of them that must meet a key to be believed; codes of three
#: characters that are not cut out of longer texts meet others less often.
_SHORT = 3
_SHORT_SHARE = 0.9
_CODE_SHARE = 0.6
#: Share of keys that may be met by several rows where sources are as many as keys.
COLLISIONS = 0.1
_AS_MANY = 1.5
#: Share of rows that one key may attract.
_ATTRACTED = 0.5
#: Share of rows joined before that another program may send elsewhere.
_CONFLICTS = 0.03
_SURROGATES = 400
#: Share of texts made of pieces of different rows that must be new for only those to count.
_STRANGE = 0.2
#: Ways to combine pieces, as a multiple of the rows, from which on they are told to be independent.
_WAYS = 4
#: Share of rows that only rearrange their cells from which on a program does; rows that the test of pieces needs; share
#: of them that still meet a key if a piece is taken from another row from which on it does not matter.
_REWRITTEN = 0.9
_FEW = 10
_MATTERS = 0.7
#: Chance from which on only cells that are merely rearranged are believed.
_DENSE = 0.5
#: What a program must be that joins a smaller share: keys that it meets, in all and for each operator, their share of
#: all keys, characters of its texts, texts that chance is tried on, and the share of its pairs that must be right.
_STRONG_KEYS, _STRONG_KEYS_PER_OPERATOR = 40, 8
_STRONG_SHARE, _STRONG_LENGTH = 0.01, 8
_STRONG_TRIES = 4000
_STRONG_PRECISION = 0.95


@dataclass(frozen=True, slots=True)
class Met:
    """What a program makes of some source rows: texts, and the target row that each meets (-1: none)."""

    texts: list[str | None]
    targets: I64

    @property
    def hits(self) -> I64:
        """Source rows that meet a key."""
        return np.flatnonzero(self.targets >= 0)


def chance_of(met: Met, key: Key, program: Program, rows: Sequence[Row], tries: int = _SURROGATES) -> float:
    """The chance that a text like those of a program meets a key, though no row stands behind it.

    Texts are made anew in three ways, and the one that meets most counts: two of them cut and put together; pieces of
    different rows put together; digits of the pieces drawn by chance.
    """
    known = sorted({text for text in met.texts if text})
    if len(known) < 2:
        return 1.0
    rng = np.random.default_rng(11)
    recombined, shuffled = _recombined(known, rng, tries), _shuffled(program, rows, set(known), rng, tries)
    return max(_share_met(made, key) for made in (recombined, shuffled, _redrawn(program, rows, rng)))


def _share_met(texts: Sequence[str], key: Key) -> float:
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
    return sorted(made if len(strange) < _STRANGE * len(made) else strange)


def _shuffled(
    program: Program, rows: Sequence[Row], known: set[str], rng: np.random.Generator, tries: int
) -> list[str]:
    """Every piece from a row of its own; not what is a text itself, unless nearly all are."""
    if pieces_of(program) < 2 or len(rows) < 2:
        return []
    made = []
    for _ in range(tries):
        text = _text(program, lambda each: each.apply(rows[int(rng.integers(len(rows)))]))
        if text:
            made.append(text)
    strange = [text for text in made if text not in known]
    pieces = [each for output in program.outputs for each in output.operators if isinstance(each, Piece)]
    combinations = math.prod(len({piece.apply(row) for row in rows}) for piece in pieces)
    # Where there are few ways to combine pieces, one of them is the key by itself, and every text is an old one.
    dense = len(strange) < _STRANGE * len(made) and combinations > _WAYS * len(rows)
    return made if dense else strange


def _redrawn(program: Program, rows: Sequence[Row], rng: np.random.Generator) -> list[str]:
    """The digits of pieces, but not those of constants, drawn by chance."""
    made = []
    for row in rows[:_SURROGATES]:
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


def rewrites(output: Expression, rows: Sequence[Row]) -> bool:
    """Whether an expression only rearranges cells: nothing of them is lost, and no letter or digit is its own.

    Numbers may be padded, and months written in another way.
    """
    if any(map(str.isalnum, _constants(output))):
        return False
    pieces = [
        Piece(each.column, tuple(step for step in each.steps if not isinstance(step, Digits | Month)))
        for each in output.operators
        if isinstance(each, Piece)
    ]
    same = [
        sorted(bare("".join(piece.apply(row) for piece in pieces)))
        == sorted(bare("".join(row.get(name, "") for name in output.columns)))
        for row in rows
        if output.apply(row)
    ]
    return sum(same) >= _REWRITTEN * max(1, len(same))


def idle(key: Key, program: Program, rows: Sequence[Row]) -> str | None:
    """A column of the key that rows meet whatever they hold: no piece of what is written there matters.

    A piece matters, or in keys of several columns all that is written into one, if fewer rows meet a key once it is
    taken from another row. Keys that fill a calendar, or all years
    of all countries, are met by anything that looks like them; cells that are merely rearranged are believed anyhow.
    """
    if pieces_of(program) < 2:
        return None
    rng = np.random.default_rng(13)
    hashes = np.array([hash_text(_text(program, lambda each, row=row: each.apply(row))) for row in rows], np.uint64)  # type: ignore[misc]
    met = [row for row, target in zip(rows, key.look_up(hashes).tolist(), strict=True) if target >= 0]
    if len(met) < _FEW:
        return None
    if rewrites(_together(program), met):
        return None
    for place, output in enumerate(program.outputs):
        if rewrites(output, met):
            continue
        pieces = [each for each in output.operators if isinstance(each, Piece)]
        if len(program.outputs) > 1:
            parts = [frozenset(pieces)]
        else:
            parts = [frozenset([each]) for each in pieces if len({each.apply(row) for row in met}) > 1]
        # One piece that all depends on makes the same texts, whatever the order of rows.
        if len(program.outputs) == 1 and len(parts) < 2:
            continue
        if all(_share_met(_exchanged(program, part, met, rng), key) > _MATTERS for part in parts):
            return program.keys[place].words()
    return None


def _together(program: Program) -> Expression:
    """All that a program writes, one after the other."""
    return Expression(tuple(each for output in program.outputs for each in output.operators))


def _exchanged(program: Program, part: frozenset[Piece], rows: Sequence[Row], rng: np.random.Generator) -> list[str]:
    """What a program makes of rows if some pieces of each come from another."""
    others = rng.permutation(len(rows)).tolist()
    return [
        _text(program, lambda each, row=row, other=rows[other]: each.apply(other if each in part else row))  # type: ignore[misc]
        for row, other in zip(rows, others, strict=True)
    ]


def counts_rows(program: Program, rows: Sequence[Row]) -> bool:
    """Whether all that a program takes from a row is a whole number, and these fill their range."""
    pieces = [each for output in program.outputs for each in output.operators if isinstance(each, Piece)]
    texts = ["".join(piece.apply(row) for piece in pieces) for row in rows]
    numbers = {int(text) for text in texts if text and not text.translate(WITHOUT_DIGITS) and len(text) < 16}
    if len(numbers) < 2 or any(text.translate(WITHOUT_DIGITS) for text in texts):
        return False
    return len(numbers) >= DENSE * (max(numbers) - min(numbers) + 1)


def too_short(texts: Sequence[str], share: float, program: Program) -> bool:
    """Whether a program's texts are so short that a ``share`` of them may be keys by chance."""
    if pieces_of(program) > 1:
        return False
    length = float(np.median([len(text) for text in texts]))
    steps = [
        step
        for output in program.outputs
        for each in output.operators
        if isinstance(each, Piece)
        for step in each.steps
    ]
    cut = any(isinstance(step, Slice | Initials) for step in steps)
    return length <= _SHORT and share < (_SHORT_SHARE if cut or length < _SHORT else _CODE_SHARE)


def pieces_of(program: Program) -> int:
    """How many pieces of a row a program puts together."""
    return sum(isinstance(each, Piece) for output in program.outputs for each in output.operators)


def doubt(met: Met, key: Key, program: Program, rows: Sequence[Row], count: int) -> str | None:
    """Why not to believe the first program of a join; None if there is no reason.

    ``rows`` are some of the source rows, ``count`` is the number of all.
    """
    defined = [text for text in met.texts if text]
    if not defined:
        return "no row makes a key"
    distinct = len(set(defined))
    targets = met.targets[met.hits]
    keys, counts = np.unique(targets, return_counts=True)
    smaller = min(distinct, key.hashes.size)
    many = max(_PER_OPERATOR * program.size, SHARE * smaller)
    wanted = many if smaller >= _MANY else max(2.0, _SHARE_OF_FEW * smaller)
    if keys.size < wanted and not (smaller >= _MANY and _strong(met, key, program, rows, keys.size)):
        return f"it joins {keys.size:,} of {smaller:,} values, as some always do"
    counts_only = (key.running and pieces_of(program) == 1) or counts_rows(program, rows)
    if counts_only and not _same_name(program):
        return "it joins running numbers, which are in every table"
    met_texts = {text for text, target in zip(met.texts, met.targets.tolist(), strict=True) if text and target >= 0}
    share = len(met_texts) / distinct
    if too_short(defined, share, program):
        return f"its texts are short, and only {share:.0%} of them are keys"
    # Columns of one name that hold the same values are meant to, however likely it is.
    named = program.identity and _same_name(program)
    why = None if named else doubt_of_chance(met, key, program, rows, share)
    if why is not None:
        return why
    if count <= _AS_MANY * key.hashes.size and float((counts > 1).mean()) > 2 * COLLISIONS:
        return f"{float((counts > 1).mean()):.0%} of the keys it meets are met by several rows"
    if keys.size > 2 and counts.max() > _ATTRACTED * targets.size:
        return "one key attracts most of the rows"
    return None


def _strong(met: Met, key: Key, program: Program, rows: Sequence[Row], keys: int) -> bool:
    """Whether a program that joins a small share of rows is right on these, as far as trying tells.

    Many texts are made anew, and chance is taken for as large as the number of those that meet a key allows.
    """
    if keys < max(_STRONG_KEYS, _STRONG_KEYS_PER_OPERATOR * program.size) or keys < _STRONG_SHARE * key.hashes.size:
        return False
    texts = {text for text in met.texts if text}
    hit = {text for text, target in zip(met.texts, met.targets.tolist(), strict=True) if text and target >= 0}
    if float(np.median([len(text) for text in hit])) < _STRONG_LENGTH:
        return False
    by_chance = chance_of(met, key, program, rows, _STRONG_TRIES) * _STRONG_TRIES
    most = (by_chance + 2 * math.sqrt(by_chance) + 3) / _STRONG_TRIES
    return precision_of(len(hit) / len(texts), most) >= _STRONG_PRECISION


def doubt_of_chance(met: Met, key: Key, program: Program, rows: Sequence[Row], share: float) -> str | None:
    """Whether chance would make as many texts meet keys as the ``share`` that does."""
    chance = chance_of(met, key, program, rows)
    digits = any(char.isdigit() for output in program.outputs for char in _constants(output))
    if precision_of(share, chance) < PRECISION or (digits and chance > 1 - PRECISION):
        return f"{chance:.0%} of texts made at random from its own would join as well"
    if chance > _DENSE and not rewrites(_together(program), rows):
        return f"{chance:.0%} of texts made at random from its own join, so that all of them do says nothing"
    any_ = idle(key, program, rows)
    return None if any_ is None else f"it meets {any_} whatever its pieces hold"


def _constants(output: Expression) -> str:
    return "".join(each.text for each in output.operators if isinstance(each, Constant))


def precision_of(share: float, chance: float) -> float:
    """The share of meetings that are meant, if texts without a partner meet a key by chance.

    Of texts, ``share`` meet a key: those that have a partner, and of the rest a share ``chance``.
    """
    if share <= 0 or chance >= 1:
        return float(share >= 1)
    return max(0.0, 1 - (1 - share) * chance / ((1 - chance) * share))


def _same_name(program: Program) -> bool:
    """Whether a program leads to columns of the same name as those it takes."""
    names = {piece.column.casefold() for piece in program.keys}
    return names == {name.casefold() for name in program.columns}


def doubt_of_addition(met: Met, key: Key, program: Program, rows: Sequence[Row], joined: I64) -> str | None:
    """Why not to add a program to those that joined rows already (``joined`` are their targets; -1: none)."""
    both = (met.targets >= 0) & (joined >= 0)
    conflicts = int((met.targets[both] != joined[both]).sum())
    if conflicts > _CONFLICTS * int(both.sum()):
        return f"it sends {conflicts:,} of {int(both.sum()):,} rows elsewhere that are joined already"
    fresh = (joined < 0) & np.array([bool(text) for text in met.texts], bool)
    texts = [text for text, new in zip(met.texts, fresh.tolist(), strict=True) if new and text]
    if not texts:
        return "it joins no new row"
    share = float((met.targets[fresh] >= 0).mean())
    if too_short(texts, share, program):
        return f"its texts are short, and only {share:.0%} of them are keys"
    return doubt_of_chance(met, key, program, rows, share)
