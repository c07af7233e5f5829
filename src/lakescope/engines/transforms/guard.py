"""Is a program worth believing? It must cover more than chance would, and make no two rows one (sections 4.9, 4.10).

A join of two tables whose link is knowledge (a country and its capital) is not found by spelling, yet some program
always covers a few rows of it. What is asked of a program here keeps such joins out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lakescope.array_types import I64
from lakescope.engines.transforms.chance import Met, beside_meet, chance_of, idle, precision_of, rewrites
from lakescope.engines.transforms.filled import believed, fills, renames
from lakescope.engines.transforms.keys import KEYS, Key
from lakescope.engines.transforms.literals import with_constants
from lakescope.engines.transforms.program import Constant, Expression, Piece, Program, Row
from lakescope.engines.transforms.steps import Initials, Slice
from lakescope.tables.key_names import same_key
from lakescope.values.alphabet import WITHOUT_DIGITS


@dataclass(frozen=True, slots=True)
class GuardTuning:
    """What a program must be to be believed, so that tables whose link is knowledge are left alone.

    Measured all together (benchmarks/results/autojoin.md): 51 of 51 look-ups are left alone, no pair of 150 unrelated
    tables is joined wrongly by a longer program, and 12 of 12 real pairs join.
    """

    #: Share of the smaller side that the first program must join. Not measured: a guess.
    share: float = 0.15
    #: The least number of keys that must be met, for each operator. Not measured: three examples are what a program is
    #: learnt from.
    keys_per_operator: int = 3
    #: What ``share`` is for programs that pick one word out of several. Set by countries and their capitals, of which
    #: 12 of 38 met by a word.
    share_of_words: float = 0.5
    #: Share of texts that must be one word for a program to pick words. Not measured: nearly all.
    words: float = 0.9
    #: What ``share`` is where there are fewer values than ``many``. Not measured: a half.
    share_of_few: float = 0.5
    #: Values of the smaller side from which on shares say something. Not measured: a rule of thumb of statistics.
    many: int = 30
    #: Estimated share of joined pairs that must be right. Not measured by itself: 0.999 of the joins of 12 real pairs
    #: are right (benchmarks/results/autojoin.md).
    precision: float = 0.9
    #: Characters of texts so short that many meet by chance. From the thesis, 4.2: a q-gram of three is the shortest
    #: that says anything.
    short: int = 3
    #: Share of short texts that must meet a key to be believed. Not measured: nearly all.
    short_share: float = 0.9
    #: What ``short_share`` is for codes of three characters that are not cut out of longer texts: they meet others less
    #: often. Not measured: a guess.
    code_share: float = 0.6
    #: Share of keys that may be met by several rows where sources are as many as keys. Not measured: what dirt may do.
    collisions: float = 0.1
    #: How many times the number of keys sources may be to count as as many. Not measured: a guess between one and two.
    as_many: float = 1.5
    #: Share of rows that one key may attract. From the thesis, 4.10 (8).
    attracted: float = 0.5
    #: Share of rows joined before that another program may send elsewhere. Not measured: what dirt may do.
    conflicts: float = 0.03
    #: Chance from which on only cells that are merely rearranged are believed. Not measured: a half.
    dense: float = 0.5
    #: What a program must be that joins a smaller share: keys that it must meet in all. Not measured: a guess.
    strong_keys: int = 40
    #: Keys that such a program must meet for each operator. Not measured: nearly three times the usual.
    strong_keys_per_operator: int = 8
    #: Share of all keys that such a program must meet. Not measured: one in a hundred is the lowest share that samples
    #: are made for.
    strong_share: float = 0.01
    #: Characters of the texts of such a program, in the median. Not measured: longer than years, codes and most words.
    strong_length: int = 8
    #: Texts that chance is tried on for such a program. Not measured: ten times as many as usual, for a smaller chance.
    strong_tries: int = 4000
    #: Share of the pairs of such a program that must be right. Not measured: higher than ``precision``, since the
    #: program joins few.
    strong_precision: float = 0.95


GUARD = GuardTuning()

_WORD = re.compile(r"[^\W_]+")


def counts_rows(program: Program, rows: Sequence[Row]) -> bool:
    """Whether all that a program takes from a row and that varies is a whole number, and these fill their range."""
    made = [[piece.apply(row) for row in rows] for piece in program.pieces]
    varying = [texts for texts in made if len(set(texts)) > 1]
    texts = ["".join(each) for each in zip(*varying, strict=True)]
    numbers = {int(text) for text in texts if text and not text.translate(WITHOUT_DIGITS) and len(text) < 16}
    if len(numbers) < 2 or any(text.translate(WITHOUT_DIGITS) for text in texts):
        return False
    return len(numbers) >= KEYS.dense * (max(numbers) - min(numbers) + 1)


def picks_a_word(program: Program, rows: Sequence[Row]) -> bool:
    """Whether all that varies of a program is one word without digits, out of cells or in keys that hold more.

    Names share words: capitals are called after their country, and plants after their colour. A word that is also a key
    says less than several do, or a number.
    """
    operators = with_constants(program.concatenated, rows)
    places = [place for place, each in enumerate(operators) if isinstance(each, Piece)]
    varying = operators[places[0] : places[-1] + 1] if places else ()
    columns = {each.column for each in varying if isinstance(each, Piece)}
    if len(columns) != 1 or any(isinstance(each, Constant) for each in varying):
        return False
    (column,) = columns
    texts = [Expression(varying).apply(row) for row in rows]
    pairs = [(text, row.get(column, "")) for text, row in zip(texts, rows, strict=True) if text]
    words = sum(len(_WORD.findall(text)) == 1 and not any(map(str.isdigit, text)) for text, _ in pairs)
    whole = sum(len(_WORD.findall(cell)) == 1 for _, cell in pairs)
    more = whole < len(pairs) or any(map(str.isalnum, program.concatenated.constant_text)) or _split(program)
    return words >= GUARD.words * len(pairs) > 0 and more


def _split(program: Program) -> bool:
    """Whether the key is a part of a column."""
    return any(piece.steps for piece in program.keys)


def too_short(texts: Sequence[str], share: float, program: Program) -> bool:
    """Whether a program's texts are so short that a ``share`` of them may be keys by chance."""
    if len(program.pieces) > 1:
        return False
    length = float(np.median([len(text) for text in texts]))
    cut = any(isinstance(step, Slice | Initials) for piece in program.pieces for step in piece.steps)
    return length <= GUARD.short and share < (GUARD.short_share if cut or length < GUARD.short else GUARD.code_share)


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
    word = picks_a_word(program, rows)
    if word and _split(program) and any(piece.steps for piece in program.pieces):
        return "one word of several is all it takes on either side: names share words"
    many = max(GUARD.keys_per_operator * program.size, (GUARD.share_of_words if word else GUARD.share) * smaller)
    wanted = many if smaller >= GUARD.many else max(program.size + 1.0, GUARD.share_of_few * smaller)
    if keys.size < wanted and not (smaller >= GUARD.many and _strong(met, key, program, rows, keys.size)):
        if word and keys.size >= GUARD.share * smaller:
            return f"one word is all it takes, and only {keys.size:,} of {smaller:,} are keys: names share words"
        return f"that is {keys.size:,} of {smaller:,} values, and some always do"
    met_texts = {text for text, target in zip(met.texts, met.targets.tolist(), strict=True) if text and target >= 0}
    share = len(met_texts) / distinct
    filled = believed(met, key, program, rows, share)
    # Names may say what numbers cannot: that both are keys of the same thing.
    names = [(piece.column, column) for piece, column in zip(program.keys, program.columns, strict=False)]
    meant = len(program.columns) == len(program.keys) and all(same_key(*pair) for pair in names)
    counts_only = (key.running and len(program.pieces) == 1) or counts_rows(program, rows)
    named = program.identity and _same_name(program)
    if counts_only and not (filled or meant or named):
        return "any table with running numbers would: they are no evidence"
    beside = beside_meet(met, key, GUARD.precision) if len(program.pieces) == 1 and not meant else None
    if beside is not None:
        return (
            f"running numbers are no evidence ({beside:.0%} of the numbers beside its own join as well):"
            " join by them as they are if they are meant"
        )
    if too_short(defined, share, program):
        return f"its texts are short, and only {share:.0%} of them are keys"
    # Columns of one name that hold the same values are meant to, however likely it is.
    why = None if named or filled else doubt_of_chance(met, key, program, rows, share)
    if why is not None:
        return why
    if count <= GUARD.as_many * key.hashes.size and float((counts > 1).mean()) > 2 * GUARD.collisions:
        return f"{float((counts > 1).mean()):.0%} of the keys it meets are met by several rows"
    if keys.size > 2 and counts.max() > GUARD.attracted * targets.size:
        return "one key attracts most of the rows"
    return None


def _strong(met: Met, key: Key, program: Program, rows: Sequence[Row], keys: int) -> bool:
    """Whether a program that joins a small share of rows is right on these, as far as trying tells.

    Many texts are made anew, and chance is taken for as large as the number of those that meet a key allows.
    """
    if (
        keys < max(GUARD.strong_keys, GUARD.strong_keys_per_operator * program.size)
        or keys < GUARD.strong_share * key.hashes.size
    ):
        return False
    texts = {text for text in met.texts if text}
    hit = {text for text, target in zip(met.texts, met.targets.tolist(), strict=True) if text and target >= 0}
    if float(np.median([len(text) for text in hit])) < GUARD.strong_length:
        return False
    by_chance = chance_of(met, key, program, rows, GUARD.strong_tries) * GUARD.strong_tries
    most = (by_chance + 2 * math.sqrt(by_chance) + 3) / GUARD.strong_tries
    return precision_of(len(hit) / len(texts), most) >= GUARD.strong_precision


def doubt_of_chance(met: Met, key: Key, program: Program, rows: Sequence[Row], share: float) -> str | None:
    """Whether chance would make as many texts meet keys as the ``share`` that does."""
    chance = chance_of(met, key, program, rows)
    digits = any(map(str.isdigit, program.concatenated.constant_text))
    if precision_of(share, chance) < GUARD.precision or (digits and chance > 1 - GUARD.precision):
        return f"{chance:.0%} of texts made at random from its own would, too"
    if chance > GUARD.dense and not rewrites(program.concatenated, rows):
        return f"so would {chance:.0%} of texts made at random from its own: its keys are met by anything like them"
    if renames(program, rows) and fills(met, key):
        return "it meets keys that fill a grid, by letters of its own that may tell of another series"
    any_ = idle(key, program, rows)
    return None if any_ is None else f"it meets {any_} whatever its pieces hold"


def _same_name(program: Program) -> bool:
    """Whether a program leads to columns of the same name as those it takes."""
    names = {piece.column.casefold() for piece in program.keys}
    return names == {name.casefold() for name in program.columns}


def doubt_of_addition(met: Met, key: Key, program: Program, rows: Sequence[Row], joined: I64) -> str | None:
    """Why not to add a program to those that joined rows already (``joined`` are their targets; -1: none)."""
    both = (met.targets >= 0) & (joined >= 0)
    conflicts = int((met.targets[both] != joined[both]).sum())
    if conflicts > GUARD.conflicts * int(both.sum()):
        return f"it sends {conflicts:,} of {int(both.sum()):,} rows elsewhere that are joined already"
    fresh = (joined < 0) & np.array([bool(text) for text in met.texts], bool)
    texts = [text for text, new in zip(met.texts, fresh.tolist(), strict=True) if new and text]
    if not texts:
        return "it joins no new row"
    share = float((met.targets[fresh] >= 0).mean())
    if len(program.pieces) == 1 and beside_meet(met, key, GUARD.precision) is not None:
        return "running numbers are no evidence"
    if too_short(texts, share, program):
        return f"its texts are short, and only {share:.0%} of them are keys"
    return doubt_of_chance(met, key, program, rows, share)
