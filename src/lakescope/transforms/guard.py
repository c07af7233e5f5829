"""Is a program worth believing? It must cover more than chance would, and make no two rows one (sections 4.9, 4.10).

A join of two tables whose link is knowledge (a country and its capital) is not found by spelling, yet some program
always covers a few rows of it. What is asked of a program here keeps such joins out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lakescope.transforms.evaluate import U64
from lakescope.transforms.keys import Key
from lakescope.transforms.program import Piece, Program
from lakescope.transforms.steps import Initials, Slice
from lakescope.values.hashing import hash_text

I64 = npt.NDArray[np.int64]

#: Share of the smaller side that the first program must join, and the least number of pairs.
SHARE = 0.1
_FEWEST = 3
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


@dataclass(frozen=True, slots=True)
class Met:
    """What a program makes of some source rows: texts, and the target row that each meets (-1: none)."""

    texts: list[str | None]
    targets: I64

    @property
    def hits(self) -> I64:
        """Source rows that meet a key."""
        return np.flatnonzero(self.targets >= 0)


def chance_of(met: Met, key: Key) -> float:
    """The chance that a text made of two of the program's texts, cut in two and put together, meets a key."""
    texts = sorted({text for text in met.texts if text})
    known = set(texts)
    if len(texts) < 2:
        return 1.0
    rng = np.random.default_rng(11)
    made: set[str] = set()
    for a, b, share in zip(
        rng.integers(len(texts), size=2 * _SURROGATES).tolist(),
        rng.integers(len(texts), size=2 * _SURROGATES).tolist(),
        rng.random(2 * _SURROGATES).tolist(),
        strict=True,
    ):
        one, other = texts[a], texts[b]
        text = one[: max(1, round(share * len(one)))] + other[max(1, round(share * len(other))) :]
        if text not in known:
            made.add(text)
    hashes: U64 = np.array([hash_text(text) for text in made], np.uint64)
    return float((key.look_up(hashes) >= 0).mean()) if made else 0.0


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


def doubt(met: Met, key: Key, program: Program, *, rows: int) -> str | None:
    """Why not to believe the first program of a join; None if there is no reason."""
    defined = [text for text in met.texts if text]
    if not defined:
        return "no row makes a key"
    distinct = len(set(defined))
    targets = met.targets[met.hits]
    keys, counts = np.unique(targets, return_counts=True)
    smaller = min(distinct, key.hashes.size)
    wanted = max(min(_FEWEST, smaller), SHARE * smaller) if smaller >= 10 else max(2.0, 0.5 * smaller)
    if keys.size < wanted:
        return f"it joins {keys.size:,} of {smaller:,} values, as some always do"
    if key.running and not (_same_name(program) or pieces_of(program) > 1):
        return "it joins running numbers, which are in every table"
    met_texts = {text for text, target in zip(met.texts, met.targets.tolist(), strict=True) if text and target >= 0}
    share = len(met_texts) / distinct
    if too_short(defined, share, program):
        return f"its texts are short, and only {share:.0%} of them are keys"
    chance = chance_of(met, key)
    if chance > 0.5 or precision_of(share, chance) < PRECISION:
        return f"{chance:.0%} of texts made at random from its own would join as well"
    if rows <= _AS_MANY * key.hashes.size and float((counts > 1).mean()) > 2 * COLLISIONS:
        return f"{float((counts > 1).mean()):.0%} of the keys it meets are met by several rows"
    if keys.size > 2 and counts.max() > _ATTRACTED * targets.size:
        return "one key attracts most of the rows"
    return None


def precision_of(share: float, chance: float) -> float:
    """The share of meetings that are meant, if texts without a partner meet a key by chance.

    Of texts, ``share`` meet a key: those that have a partner, and of the rest a share ``chance``.
    """
    if share <= 0 or chance >= 1:
        return 0.0
    return max(0.0, 1 - (1 - share) * chance / ((1 - chance) * share))


def _same_name(program: Program) -> bool:
    """Whether a program takes columns as they are, to columns of the same name."""
    names = {piece.column.casefold() for piece in program.keys}
    return program.identity and names == {name.casefold() for name in program.columns}


def doubt_of_addition(met: Met, key: Key, program: Program, joined: I64) -> str | None:
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
    chance = chance_of(met, key)
    if chance > 0.5 or precision_of(share, chance) < PRECISION:
        return f"{chance:.0%} of texts made at random from its own would join as well"
    return None
