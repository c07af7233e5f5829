"""Programs: what makes a key out of a row, as steps that people read and machines run (sections 4.3 and 4.10)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lakescope.engines.transforms.steps import STEPS, Run, Slice, SplitPiece, Step
from lakescope.errors import BadRequest
from lakescope.untrusted import parsed

_KINDS = {kind: name for name, kind in STEPS.items()}
Row = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Constant:
    """A text that is the same in every row."""

    text: str

    def apply(self, row: Row) -> str:
        return self.text

    @property
    def cost(self) -> int:
        return 1

    def words(self) -> str:
        return repr(self.text)


@dataclass(frozen=True, slots=True)
class Piece:
    """A cell of the row, and what is done to it step by step: the logical operators over the whole row."""

    column: str
    steps: tuple[Step, ...] = ()

    def apply(self, row: Row) -> str:
        """The piece of a row; empty if it is undefined there."""
        text = row.get(self.column) or ""
        for step in self.steps:
            if not text:
                break
            text = step.apply(text)
        return text

    @property
    def operator(self) -> str:
        """The name of the operator in the thesis."""
        return "Split" * min(2, sum(isinstance(step, SplitPiece | Run) for step in self.steps)) + "Substr"

    @property
    def cost(self) -> int:
        """How involved it is: what breaks ties between pieces that do the same."""
        return 2 * len(self.steps) + sum(_trouble(step) for step in self.steps)

    def words(self) -> str:
        told = self.column
        for number, step in enumerate(self.steps):
            told = step.words(f"({told})" if number else told)
        return told


def _trouble(step: Step) -> int:
    if isinstance(step, SplitPiece):
        return abs(step.index) + len(step.separator)
    if isinstance(step, Run):
        return abs(step.index) + (2 if step.kind != "capitalised" else 4)
    if isinstance(step, Slice):
        return 2
    return 0


Operator = Constant | Piece


@dataclass(frozen=True, slots=True)
class Expression:
    """Operators whose results are written one after the other; undefined if any of them is."""

    operators: tuple[Operator, ...]

    def apply(self, row: Row) -> str:
        """The text of a row; empty if it is undefined there."""
        made = []
        for operator in self.operators:
            text = operator.apply(row)
            if not text:
                return ""
            made.append(text)
        return "".join(made)

    @property
    def pieces(self) -> tuple[Piece, ...]:
        return tuple(each for each in self.operators if isinstance(each, Piece))

    @property
    def constant_text(self) -> str:
        """What it writes of its own: the constants."""
        return "".join(each.text for each in self.operators if isinstance(each, Constant))

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(each.column for each in self.pieces))

    @property
    def rank(self) -> tuple[int, int, int, int]:
        """Of programs that cover as much: fewer letters of its own first, then fewer operators (4.10, 11).

        Fewer constants come third, then less trouble.
        """
        letters = sum(map(str.isalnum, self.constant_text))
        constants = len(self.operators) - len(self.pieces)
        return letters, len(self.operators), constants, sum(each.cost for each in self.operators)

    def words(self) -> str:
        return " + ".join(each.words() for each in self.operators)

    @property
    def identity(self) -> bool:
        return len(self.operators) == 1 and isinstance(self.operators[0], Piece) and not self.operators[0].steps


@dataclass(frozen=True, slots=True)
class Program:
    """What makes the key out of a row: an expression for each column of the key.

    ``keys`` are the columns of the key on the other side, or pieces of them where a column holds several (4.5).
    """

    outputs: tuple[Expression, ...]
    keys: tuple[Piece, ...]

    def apply(self, row: Row) -> tuple[str, ...] | None:
        """The key of a row; None where it is undefined."""
        made = tuple(output.apply(row) for output in self.outputs)
        return made if all(made) else None

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the source that it reads."""
        return tuple(dict.fromkeys(name for output in self.outputs for name in output.columns))

    @property
    def concatenated(self) -> Expression:
        """All that it writes, one after the other."""
        return Expression(tuple(each for output in self.outputs for each in output.operators))

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """The pieces of a row that it puts together."""
        return self.concatenated.pieces

    @property
    def size(self) -> int:
        """The number of operators."""
        return len(self.concatenated.operators)

    @property
    def rank(self) -> tuple[int, ...]:
        ranks = [output.rank for output in self.outputs]
        return tuple(sum(each) for each in zip(*ranks, strict=True))

    @property
    def identity(self) -> bool:
        return all(output.identity for output in self.outputs)

    def words(self) -> str:
        """The program in plain words."""
        return "; ".join(
            f"{key.words()} = {output.words()}" for key, output in zip(self.keys, self.outputs, strict=True)
        )

    def __str__(self) -> str:
        return self.words()

    def to_dict(self) -> dict[str, Any]:
        """Plain data, from which :meth:`from_dict` makes the program again."""
        outputs = [[_operator_data(each) for each in output.operators] for output in self.outputs]
        return {"keys": [_operator_data(key) for key in self.keys], "outputs": outputs}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Program:
        """A program from its plain data."""
        try:
            outputs = tuple(Expression(tuple(map(_operator, each))) for each in data["outputs"])
            keys = tuple(_piece(each) for each in data["keys"])
        except (KeyError, TypeError, ValueError) as error:
            raise BadRequest(f"this is no program: {error!r}", hint="use what to_dict() or save() wrote") from error
        return cls(outputs, keys)

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Program:
        try:
            data = parsed(text)
        except ValueError as error:
            raise BadRequest(f"this is no program: {error}", hint="use what to_json() wrote") from error
        return cls.from_dict(data)


def _operator_data(operator: Operator) -> dict[str, Any]:
    if isinstance(operator, Constant):
        return {"constant": operator.text}
    return {
        "column": operator.column,
        "steps": [{"step": _KINDS[type(each)], **asdict(each)} for each in operator.steps],
    }


def _operator(data: Mapping[str, Any]) -> Operator:
    return Constant(str(data["constant"])) if "constant" in data else _piece(data)


def _piece(data: Mapping[str, Any]) -> Piece:
    return Piece(str(data["column"]), tuple(_step(each) for each in data["steps"]))


def _step(data: Mapping[str, Any]) -> Step:
    fields = {name: value for name, value in data.items() if name != "step"}
    return STEPS[data["step"]](**fields)


def merged(operators: Sequence[Operator]) -> tuple[Operator, ...]:
    """Operators in which constants that stand beside each other have become one."""
    found: list[Operator] = []
    for each in operators:
        if isinstance(each, Constant) and found and isinstance(found[-1], Constant):
            found[-1] = Constant(found[-1].text + each.text)
        else:
            found.append(each)
    return tuple(found)
