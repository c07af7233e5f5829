"""Does a program write of its own what varies among the keys? Then it knows one value by heart, and says nothing.

``first name + ' Rodriguez'`` meets the keys of all Rodriguez, whatever the name: where keys have as many last names as
this place has values, the constant is one of these values, and a program for each would be a list of the keys.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from lakescope.engines.transforms.program import Constant, Expression, Operator, Program, Row, merged


@dataclass(frozen=True, slots=True)
class LiteralTuning:
    """When a constant of a program is one of many values that keys have in its place (names and `` Rodriguez``)."""

    #: Share of rows in which a piece must be the same text to count as a constant. Not measured: nearly all.
    same: float = 0.9
    #: Share of the keys that a constant must have at its place. Not measured: a half.
    usual: float = 0.5
    #: Values that the place may have else: the number of values that were as uncertain if all came as often. Not
    #: measured: a guess.
    values: float = 4.0
    #: How many times as often as those the constant may come instead. Not measured: a guess.
    outstanding: float = 5.0
    #: Keys that must have the place at all. Not measured: fewer say nothing.
    fewest: int = 8


LITERALS = LiteralTuning()

_RUN = re.compile(r"[^\W_]+")
_ANY_RUN, _START, _END = r"([^\W_]+)", "^", "$"


def memorised(program: Program, rows: Sequence[Row], keys: Sequence[Sequence[str | None]]) -> str | None:
    """A constant of a program that stands for what varies among the keys; None if there is none.

    ``keys`` are the texts of each column of the key. Pieces that are the same in nearly all rows are constants, too.
    """
    for output, texts in zip(program.outputs, keys, strict=True):
        told = [text for text in texts if text]
        operators = with_constants(output, rows)
        made = [parts for row in rows if all(parts := [each.apply(row) for each in operators])]
        for place, operator in enumerate(operators):
            if isinstance(operator, Constant):
                own = [(len("".join(parts[:place])), "".join(parts)) for parts in made]
                value = _one_of_many(operator.text, place == 0, place == len(operators) - 1, own, told)
                if value is not None:
                    return value
    return None


def with_constants(output: Expression, rows: Sequence[Row]) -> tuple[Operator, ...]:
    """The operators of an expression, with constants in place of pieces that are the same in nearly all rows."""
    found: list[Operator] = []
    for operator in output.operators:
        usual = None if isinstance(operator, Constant) else _usual([operator.apply(row) for row in rows])
        found.append(operator if usual is None else Constant(usual))
    return merged(found)


def _usual(texts: Sequence[str]) -> str | None:
    counts = Counter(text for text in texts if text)
    if not counts:
        return None
    text, times = counts.most_common(1)[0]
    return text if times >= LITERALS.same * counts.total() else None


def _one_of_many(
    constant: str, first: bool, last: bool, own: Sequence[tuple[int, str]], texts: Sequence[str]
) -> str | None:
    """A word of a constant at whose place keys have many others; ``first`` and ``last``: nothing is before or after.

    ``own`` are texts that the program makes, and where the constant begins in each.
    """
    runs = list(_RUN.finditer(constant))
    parts, at = [_START if first else ""], 0
    for run in runs:
        parts.append(re.escape(constant[at : run.start()]))
        # Next to a piece only the length tells where the place ends.
        glued = (run.start() == 0 and not first) or (run.end() == len(constant) and not last)
        parts.append(rf"([^\W_]{{{len(run.group())}}})" if glued else _ANY_RUN)
        at = run.end()
    parts += [re.escape(constant[at:]), _END if last else ""]
    if not first and not last and not _RUN.sub("", constant):
        return None  # between two pieces and without punctuation: there is no telling where it begins
    pattern = re.compile(f"(?={''.join(parts)})")
    which = _which(pattern, own)
    places = [list(pattern.finditer(text)) for text in texts]
    found = [each[which].groups() for each in places if -len(each) <= which < len(each)]
    if len(found) < LITERALS.fewest:
        return None
    for run, values in zip(runs, zip(*found, strict=True), strict=True):
        counts = Counter(values)
        as_many = _perplexity(counts)
        usual = min(LITERALS.usual, LITERALS.outstanding / as_many)
        if counts[run.group()] < usual * len(found) and as_many >= LITERALS.values:
            return run.group()
    return None


def _which(pattern: re.Pattern[str], own: Sequence[tuple[int, str]]) -> int:
    """Which of the places that look like its own a constant has: in ``A Train of Thoughts`` "of" is the second.

    It is counted from the start or (below 0) from the end, whichever tells it in more texts.
    """
    from_start, from_end = Counter[int](), Counter[int]()
    for begins, text in own:
        places = [match.start() for match in pattern.finditer(text)]
        if begins in places:
            from_start[places.index(begins)] += 1
            from_end[places.index(begins) - len(places)] += 1
    usual = [counts.most_common(1)[0] for counts in (from_start, from_end) if counts]
    return max(usual, key=lambda each: each[1])[0] if usual else 0


def _perplexity(counts: Counter[str]) -> float:
    total = counts.total()
    return math.exp(-sum(times / total * math.log(times / total) for times in counts.values()))
