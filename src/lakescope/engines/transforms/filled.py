"""Keys that fill a grid: every month of every year, every size in every colour. Anything made of such parts meets them.

What chance would join says nothing there, and what must be known is whether keys are the same things. A program is
believed that carries all that varies in the source into the key, so that different values stay different, and leaves
hardly a row of one side, if the keys are periods of a calendar, which mean the same in every table; or if the parts of
source values drawn each from a row of its own would leave out more keys.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lakescope.engines.transforms.chance import Met, divergence, share_met
from lakescope.engines.transforms.keys import Key
from lakescope.engines.transforms.literals import with_constants
from lakescope.engines.transforms.program import Constant, Expression, Piece, Program, Row
from lakescope.engines.transforms.steps import Digits, Month
from lakescope.values.alphabet import MONTHS, bare


@dataclass(frozen=True, slots=True)
class GridTuning:
    """When keys that fill a calendar or a grid are joined all the same."""

    #: Share of the rows that must keep all that varies. Not measured: nearly all.
    kept_rows: float = 0.95
    #: Share of the values of one side that must be met. Not measured: nearly all.
    complete: float = 0.9
    #: Keys that must be met. Not measured: fewer say nothing.
    fewest: int = 10
    #: Texts that are drawn. Not measured: enough to know a share of one half to a point or two.
    drawn: int = 2000
    #: Share of the drawn texts that are keys from which on keys fill a grid. Not measured: a half.
    filled: float = 0.5
    #: Chance that as many source values would meet keys if they were drawn, too, below which the meeting is meant. Not
    #: measured: a usual level.
    level: float = 1e-3


GRID = GridTuning()

#: Numbers of a period within a year: days, weeks, months and quarters, hours and minutes.
_WITHIN = 59
_YEARS = range(1000, 3000)
_TOKEN = re.compile(r"[0-9]+|[^\W\d_]+")
_MONTHS = {written.lower() for name in MONTHS for written in (name, name[:3])}
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_OF_CALENDARS = {
    *_MONTHS,
    *_DAYS,
    *(day[:3] for day in _DAYS),
    *("year", "fy", "cy", "y", "half", "h", "quarter", "qtr", "q", "month", "m", "week", "wk", "w", "kw", "day", "d"),
    *("of", "st", "nd", "rd", "th", "t", "z"),
}


def believed(met: Met, key: Key, program: Program, rows: Sequence[Row], share: float) -> bool:
    """Whether a program is right although, or even if, chance fills the keys.

    ``share`` of its different texts meet a key; ``rows`` are some of the source rows.
    """
    of_keys = np.unique(met.targets[met.hits]).size / max(1, key.hashes.size)
    texts = sorted({text for text in met.texts if text})
    hit = sorted({text for text, target in zip(met.texts, met.targets.tolist(), strict=True) if text and target >= 0})
    if len(hit) < GRID.fewest or max(share, of_keys) < GRID.complete:
        return False
    if not carries(program.concatenated, rows) or renames(program, rows):
        return False
    if all(map(_is_period, hit)):
        return True
    # Of the side that joins, how much of it would by chance?
    drawn = grid(texts) if share >= of_keys else grid(hit)
    if not drawn:
        return False
    known = set(texts)
    by_chance = share_met(drawn, key) if share >= of_keys else sum(text in known for text in drawn) / len(drawn)
    joins, number = (share, len(texts)) if share >= of_keys else (of_keys, len(hit))
    return joins >= by_chance and math.exp(-number * divergence(joins, by_chance)) < GRID.level


def carries(output: Expression, rows: Sequence[Row]) -> bool:
    """Whether an expression keeps all that varies in the cells it takes, and adds no digits of its own.

    Numbers may be padded and months written in another way. What all rows have in common may be left out.
    """
    if any(map(str.isdigit, output.constant_text)):
        return False
    pieces = [
        Piece(each.column, tuple(step for step in each.steps if not isinstance(step, Digits | Month)))
        for each in output.pieces
    ]
    made: dict[tuple[str, ...], str] = {}
    lost: Counter[str] = Counter()
    for row in rows:
        text = output.apply(row)
        if not text:
            continue
        cells = tuple(row.get(name, "") for name in output.columns)
        if cells in made:
            continue
        made[cells] = text
        taken, there = (Counter(bare("".join(each))) for each in ((piece.apply(row) for piece in pieces), cells))
        lost["" if taken - there else "".join(sorted((there - taken).elements())) or " "] += 1
    if not made or len(set(made.values())) < len(made):
        return False
    dropped, times = lost.most_common(1)[0]
    return bool(dropped) and not any(map(str.isdigit, dropped)) and times >= GRID.kept_rows * len(made)


def renames(program: Program, rows: Sequence[Row]) -> bool:
    """Whether a program puts letters of its own right before or after a part that varies, as another series has."""
    for output in program.outputs:
        operators = with_constants(output, rows)
        for place, operator in enumerate(operators):
            if not isinstance(operator, Constant):
                continue
            before = place > 0 and operator.text[0].isalnum()
            after = place < len(operators) - 1 and operator.text[-1].isalnum()
            if before != after or (before and not operator.text.isalnum()):
                return True
    return False


def fills(met: Met, key: Key) -> bool:
    """Whether parts of texts, each from another, make keys."""
    return share_met(grid(sorted({text for text in met.texts if text})), key) > GRID.filled


def grid(texts: Sequence[str]) -> list[str]:
    """Texts of which each word and number is drawn from those at its place in others; none if one place varies at most.

    Texts with other signs between their words, or with another number of them, have places of their own.
    """
    shapes: dict[tuple[str, ...], list[list[str]]] = {}
    for text in texts:
        shapes.setdefault(tuple(_TOKEN.split(text)), []).append(_TOKEN.findall(text))
    rng = np.random.default_rng(19)
    made = []
    for between, tokens in shapes.items():
        varying = sum(len(set(each)) > 1 for each in zip(*tokens, strict=True))
        for _ in range(max(1, GRID.drawn * len(tokens) // len(texts)) if varying > 1 else 0):
            drawn = [tokens[int(rng.integers(len(tokens)))][place] for place in range(len(tokens[0]))]
            made.append("".join(map("".join, zip(between, [*drawn, ""], strict=True))))
    return made


def _is_period(text: str) -> bool:
    """Whether a text is a period of a calendar: a year and what is within it, and no other words."""
    tokens = _TOKEN.findall(text.lower())
    numbers = [int(token) for token in tokens if token.isdigit()]
    years = [number for number in numbers if number in _YEARS]
    words = [token for token in tokens if not token.isdigit()]
    within = len(numbers) - 1 + sum(word in _MONTHS for word in words)
    smaller = all(number <= _WITHIN for number in numbers if number not in _YEARS)
    return len(years) == 1 and within > 0 and smaller and all(word in _OF_CALENDARS for word in words)
