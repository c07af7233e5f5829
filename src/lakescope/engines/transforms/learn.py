"""Learning a program from a few pairs of rows and keys: TryLearn (sections 4.3 and 4.4).

From example rows and the key each should become, the operator that explains the most characters of the keys comes
first; what is left of it and right of it is learnt in the same way, and the next operator is tried where that fails.
Progress is weighed by the other pairs that were found: an operator that also fits most of these comes before one that
explains as much of the examples alone. Constants win all other ties.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from lakescope.engines.transforms.clock import Clock
from lakescope.engines.transforms.program import Constant, Expression, Operator, Piece, Row, merged
from lakescope.engines.transforms.steps import (
    MONTH_FORMS,
    Case,
    Digits,
    Drop,
    Initials,
    Month,
    Run,
    Slice,
    SplitPiece,
    Step,
    Unaccent,
)
from lakescope.values.alphabet import TO_BARE, TO_SMALL


@dataclass(frozen=True, slots=True)
class LearnerTuning:
    """How far a learner of programs looks."""

    #: Operators of a program, at most. From the thesis, 4.4: 16; 10 did for all its real cases.
    operators: int = 16
    #: Characters of the longest separator. From the specification of section 4.4 of the thesis.
    separator: int = 3
    #: Operators tried at each node. Not measured: the specification of section 4.4 of the thesis proposes 64.
    tried: int = 24
    #: Nodes of one attempt. Not measured: a bound on time.
    nodes: int = 40
    #: Pieces of a split that are looked at from the front. Not measured: a bound on time.
    front: int = 8
    #: Pieces of a split that are looked at from the back. Not measured: a bound on time.
    back: int = 4
    #: Pieces of one attempt that are looked for in keys. Not measured: a bound on time.
    bases: int = 800
    #: Pieces of one attempt that slices are cut from. Not measured: a bound on time.
    sliced: int = 80
    #: Characters of the longest piece that slices are cut from. Not measured: a bound on time.
    sliced_length: int = 64
    #: Characters of the longest piece of one format that slices are cut out of the middle of. Not measured: a bound on
    #: time.
    formatted: int = 24
    #: Separators of a cell. Not measured: a bound on time.
    separators: int = 16
    #: Separators of a piece that is split once more. Not measured: a bound on time.
    second: int = 4
    #: Ways to make one text that are kept for the programs of several rows. Not measured: a bound on time.
    alternatives: int = 6
    #: Characters of a cell that pieces are cut from. From the specification of section 4.10 (6) of the thesis.
    longest: int = 512


LEARNER = LearnerTuning()

_WORDS = re.compile(r"\w{2,}")
_WORDS_OR_NUMBERS = re.compile(r"[0-9]+|[^\W\d_]+")
#: Texts that a piece is on each example.
Vector = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Example:
    """A row and the key that it should become."""

    row: Row
    key: str


class Learner:
    """Learns programs for one group of pairs; ``pool`` are all pairs of the group, of which some may be wrong."""

    def __init__(self, columns: Sequence[str], pool: Sequence[Example], clock: Clock | None = None) -> None:
        self.columns = columns
        self.pool = pool[:48]
        self.clock = clock or Clock()
        self._supports: dict[Piece, int] = {}

    def learn(self, examples: Sequence[Example]) -> Expression | None:
        """A program that is right on all examples, or None."""
        if _lacking(examples):
            return None
        attempt = _Attempt(self, examples)
        found = attempt.learn(tuple(each.key for each in examples), LEARNER.operators)
        return None if found is None else Expression(merged(found))

    def constant_support(self, constant: Constant) -> int:
        """Pairs of the pool whose key holds this text."""
        return sum(constant.text in each.key for each in self.pool)

    def support(self, piece: Piece) -> int:
        """Pairs of the pool whose key holds this piece of the row."""
        if piece not in self._supports:
            made = ((piece.apply(each.row), each.key) for each in self.pool)
            self._supports[piece] = sum(bool(text) and text in key for text, key in made)
        return self._supports[piece]


class _Attempt:
    def __init__(self, learner: Learner, examples: Sequence[Example]) -> None:
        self.learner = learner
        self.keys = tuple(each.key for each in examples)
        self.nodes = 0
        self.failed: dict[Vector, int] = {}
        self.bases = _bases(learner.columns, [each.row for each in examples])
        self.whole, self.sliced = self._candidates()

    def _candidates(self) -> tuple[dict[Vector, list[Piece]], dict[Vector, list[Piece]]]:
        """Pieces that are in the keys as they are, and pieces that parts may be cut from."""
        whole: dict[Vector, list[Piece]] = {}
        sliced: dict[Vector, list[Piece]] = {}
        for vector, pieces in self.bases.items():
            for made, steps in _rewritten(vector):
                if all(text in key for text, key in zip(made, self.keys, strict=True)):
                    _add(whole, made, pieces, steps)
            if len(sliced) < LEARNER.sliced and max(map(len, vector)) <= LEARNER.sliced_length:
                for made, steps in _cased(vector):
                    if all(text[0] in key or text[-1] in key for text, key in zip(made, self.keys, strict=True)):
                        _add(sliced, made, pieces, steps)
        return whole, sliced

    def learn(self, keys: Vector, budget: int) -> list[Operator] | None:
        if not any(keys):
            return []
        if budget <= 0 or not all(keys) or self.failed.get(keys, 0) >= budget or self._spent():
            return None
        for operator, made in self._operators(keys):
            for cut in (str.find, str.rfind):
                found = self._around(operator, made, keys, cut, budget)
                if found is not None:
                    return found
        self.failed[keys] = budget
        return None

    def _around(
        self, operator: Operator, made: Vector, keys: Vector, cut: Callable[[str, str], int], budget: int
    ) -> list[Operator] | None:
        """The operator with what is left and right of it, at the first or last place that it occurs at."""
        places = [cut(key, text) for key, text in zip(keys, made, strict=True)]
        left = tuple(key[:at] for key, at in zip(keys, places, strict=True))
        right = tuple(key[at + len(text) :] for key, at, text in zip(keys, places, made, strict=True))
        before = self.learn(left, budget - 1)
        if before is None:
            return None
        after = self.learn(right, budget - 1 - len(before))
        return None if after is None else [*before, operator, *after]

    def _spent(self) -> bool:
        self.nodes += 1
        return self.nodes > LEARNER.nodes or self.learner.clock.late

    def _operators(self, keys: Vector) -> list[tuple[Operator, Vector]]:
        """Operators that fit all keys, those that explain most first; each with what it makes of the examples."""
        found: dict[Vector, list[Piece]] = {}
        for vector, pieces in self.whole.items():
            if all(text in key for text, key in zip(vector, keys, strict=True)):
                _add(found, vector, pieces, ())
        for vector, pieces in self.sliced.items():
            for cut in _slices(vector, keys):
                _add(found, tuple(cut.apply(text) for text in vector), pieces[:2], (cut,))
        constants = {(text,) * len(keys): Constant(text) for text in _constants(keys)}
        ranked = sorted({*found, *constants}, key=lambda made: (-sum(map(len, made)), made))[: LEARNER.tried]
        chosen: list[tuple[float, Operator, Vector]] = []
        for made in ranked:
            progress = sum(map(len, made))
            if made in constants:
                operator = constants[made]
                weight = len(keys) * _weight(operator.text)
                chosen.append((weight * (1 + self.learner.constant_support(operator)), operator, made))
            if made in found:
                piece = self._best(found[made])
                chosen.append((progress * (1 + self.learner.support(piece)), piece, made))
        chosen.sort(key=lambda each: -each[0])  # a constant stays before a piece that is as good
        return [(operator, made) for _, operator, made in chosen]

    def _best(self, pieces: list[Piece]) -> Piece:
        """Of pieces that are the same on the examples, the one that fits most other pairs, then the simplest."""
        if len(pieces) == 1:
            return pieces[0]
        return min(pieces, key=lambda each: (-self.learner.support(each), each.cost))


def _add(into: dict[Vector, list[Piece]], made: Vector, pieces: Iterable[Piece], steps: tuple[Step, ...]) -> None:
    held = into.setdefault(made, [])
    for piece in pieces:
        if len(held) < LEARNER.alternatives:
            held.append(Piece(piece.column, (*piece.steps, *steps)))


def _weight(constant: str) -> float:
    """The progress that a constant makes: letters and digits count half, since they may come from the row."""
    return sum(0.5 if char.isalnum() else 1.0 for char in constant)


def _lacking(examples: Sequence[Example]) -> bool:
    """Whether a key has a character that no operator could make: not in its row, and not in all keys."""
    keys = [set(_folded(each.key)) for each in examples]
    everywhere = set.intersection(*keys)
    for each, key in zip(examples, keys, strict=True):
        text = _folded(" ".join(each.row.values()))
        missing = key - everywhere - set(text) - {"0"}
        if missing and not any(run.lower() in MONTH_FORMS["name"] for run in _WORDS_OR_NUMBERS.findall(text)):
            return True
    return False


def _folded(text: str) -> str:
    return text.translate(TO_BARE).translate(TO_SMALL)


# --- pieces of rows ---------------------------------------------------------------------------------------------------


def _bases(columns: Sequence[str], rows: Sequence[Row]) -> dict[Vector, list[Piece]]:
    """Cells, their split pieces and runs, split once more: what they are on the rows, and how to get them.

    Simple ones come first: where there are too many, the most involved are left out.
    """
    levels: list[list[tuple[Vector, Piece]]] = [[], [], []]
    for column in columns:
        values = tuple(row.get(column, "")[: LEARNER.longest] for row in rows)
        if not all(values):
            continue
        levels[0].append((values, Piece(column)))
        for vector, step in _parts(values, LEARNER.separators, LEARNER.front, LEARNER.back):
            levels[1].append((vector, Piece(column, (step,))))
            if isinstance(step, SplitPiece):
                for inner, second in _parts(vector, LEARNER.second, 3, 2):
                    levels[2].append((inner, Piece(column, (step, second))))
        levels[1] += [(vector, Piece(column, (run,))) for vector, run in _runs(values)]
    bases: dict[Vector, list[Piece]] = {}
    for vector, piece in (each for level in levels for each in level):
        if vector in bases or len(bases) < LEARNER.bases:
            _add(bases, vector, [piece], ())
    return bases


def _parts(values: Vector, separators: int, front: int, back: int) -> Iterator[tuple[Vector, SplitPiece]]:
    for separator in _separators(values)[:separators]:
        pieces = [value.split(separator) for value in values]
        fewest = min(map(len, pieces))
        for index in [*range(min(fewest, front)), *range(-1, -min(fewest, back) - 1, -1)]:
            vector = tuple(each[index] for each in pieces)
            if all(vector):
                yield vector, SplitPiece(separator, index)


def _runs(values: Vector) -> Iterator[tuple[Vector, Run]]:
    for kind in ("digits", "word", "capitalised"):
        for index in [*range(LEARNER.front), *range(-1, -LEARNER.back - 1, -1)]:
            run = Run(kind, index)
            vector = tuple(run.apply(value) for value in values)
            if all(vector):
                yield vector, run


def _separators(values: Vector) -> list[str]:
    """Texts that occur in all values and look like separators: punctuation and spaces, or whole words."""
    found: dict[str, None] = {}
    first = values[0]
    others = values[1:]
    for length in range(1, LEARNER.separator + 1):
        for start in range(len(first) - length + 1):
            text = first[start : start + length]
            if text not in found and not any(map(str.isalnum, text)) and all(text in other for other in others):
                found[text] = None
    for word in dict.fromkeys(_WORDS.findall(first)):
        if len(values) > 1 and all(word in other for other in others):
            for text in (f" {word} ", f" {word}", f"{word} ", word):
                if all(text in value for value in values):
                    found[text] = None
                    break
    return list(found)


_CASES: tuple[tuple[Step, ...], ...] = ((), (Case("lower"),), (Case("upper"),), (Case("capital"),))


def _cased(vector: Vector) -> Iterator[tuple[Vector, tuple[Step, ...]]]:
    seen = set()
    for steps in _CASES:
        made = tuple(_stepped(text, steps) for text in vector)
        if made not in seen:
            seen.add(made)
            yield made, steps


def _rewritten(vector: Vector) -> Iterator[tuple[Vector, tuple[Step, ...]]]:
    """A piece in other letters, without accents or punctuation, as initials, as a number or a month."""
    seen = {vector}
    yield vector, ()
    ways: list[tuple[Step, ...]] = [*_CASES[1:]]
    changes: list[tuple[Step, ...]] = []
    if any(text.translate(TO_BARE) != text for text in vector):
        changes.append((Unaccent(),))
    if any(not text.isalnum() for text in vector):
        changes += [(*each, Drop()) for each in [(), *changes]]
    if all(" " in text for text in vector):
        changes.append((Initials(),))
    if all(text.isdecimal() and text.isascii() for text in vector):
        changes += [(Digits(width),) for width in (1, 2, 3, 4, 5, 6, 8)]
    ways += [(*change, *case) for change in changes for case in _CASES]
    if all(text.translate(TO_SMALL) in MONTH_FORMS["name"] for text in vector):
        ways += [(Month(form),) for form in ("number", "two digits", "name", "short")]
        ways += [(Month("name"), Case("upper")), (Month("short"), Case("upper"))]
    for steps in ways:
        made = tuple(_stepped(text, steps) for text in vector)
        if all(made) and made not in seen:
            seen.add(made)
            yield made, steps


def _stepped(text: str, steps: tuple[Step, ...]) -> str:
    for step in steps:
        text = step.apply(text)
    return text


# --- parts of pieces --------------------------------------------------------------------------------------------------


def _slices(vector: Vector, keys: Vector) -> list[Slice]:
    """The longest slices of a piece that are in all keys: from the front, from the back, and at fixed places."""
    pairs = list(zip(vector, keys, strict=True))
    shortest, longest = min(map(len, vector)), max(map(len, vector))
    found = []
    if all(text[0] in key for text, key in pairs):
        kept = [_longest_prefix(text, key) for text, key in pairs]
        if min(kept) < longest:
            found += [Slice(0, size) for size in {1, min(kept)} if size < longest]
        lost = max(len(text) - size for text, size in zip(vector, kept, strict=True))
        if 0 < lost < shortest:
            found.append(Slice(0, -lost))
    if all(text[-1] in key for text, key in pairs):
        kept = [_longest_prefix(text[::-1], key[::-1]) for text, key in pairs]
        if min(kept) < longest:
            found.append(Slice(-min(kept), None))
        lost = max(len(text) - size for text, size in zip(vector, kept, strict=True))
        if 0 < lost < shortest:
            found.append(Slice(lost, None))
    if shortest == longest <= LEARNER.formatted:
        found += _windows(vector, keys, shortest)
    return found


def _windows(vector: Vector, keys: Vector, width: int) -> Iterator[Slice]:
    """Slices at fixed places in the middle that cannot be made longer."""
    reached = 0
    for start in range(1, width - 1):
        length = min(_longest_prefix(text[start:], key) for text, key in zip(vector, keys, strict=True))
        if length > 0 and start + length > reached and start + length < width:
            yield Slice(start, start + length)
        reached = max(reached, start + length)


def _longest_prefix(text: str, key: str) -> int:
    """The length of the longest beginning of a text that the key holds."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if text[:middle] in key:
            low = middle
        else:
            high = middle - 1
    return low


def _constants(keys: Vector) -> list[str]:
    """Texts that all keys hold: the longest one, and what they begin and end with."""
    if len(set(keys)) == 1:
        return [keys[0]]
    shortest = min(keys, key=len)
    found = {_common_prefix(keys), _common_prefix(tuple(key[::-1] for key in keys))[::-1]}
    for length in range(len(shortest), 0, -1):
        common = [
            text
            for text in {shortest[start : start + length] for start in range(len(shortest) - length + 1)}
            if all(text in key for key in keys)
        ]
        if common:
            found.update(sorted(common)[:3])
            break
    return sorted(text for text in found if text)


def _common_prefix(keys: Vector) -> str:
    first, last = min(keys), max(keys)
    length = 0
    while length < len(first) and length < len(last) and first[length] == last[length]:
        length += 1
    return first[:length]
