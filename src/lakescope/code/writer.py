"""What writers of code for any system share: tables, keys, columns aggregated by key, rewritten cells."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

from lakescope.code.reading import Reader, TableReading
from lakescope.code.sides import KeyedSide, KeyForm, Side
from lakescope.engines.transforms import steps
from lakescope.engines.transforms.program import BETWEEN, Constant, Expression, Piece
from lakescope.engines.transforms.steps import RUNS, Digits, Step
from lakescope.errors import BadRequest
from lakescope.sketches.aggregates import UNORDERED
from lakescope.values.alphabet import ACCENTED, BARE, LARGE, PUNCTUATION, SMALL, SPACES
from lakescope.values.canonical import NULL_MARKERS

if TYPE_CHECKING:
    from lakescope.engines.correlations.answers import Measure
    from lakescope.engines.transforms.plan import Plan

#: Texts that stand for nothing and join nothing.
MARKERS = sorted(NULL_MARKERS)
#: Codes, which are text however much they look like numbers.
CODE = "^[-+]?0[0-9]"
#: What systems take for a number, and the index does not: codes, and words for nothing.
NO_NUMBER = "^[ ]*[-+]?(?:0[0-9]|[nN][aA][nN]|[iI][nN][fF])"
#: Tables of characters that code of programs uses.
ALPHABETS = {
    **{"SPACES": SPACES, "LARGE": LARGE, "SMALL": SMALL},
    **{"PUNCTUATION": PUNCTUATION, "ACCENTED": ACCENTED, "BARE": BARE},
}

#: Coefficients that come nearest to those that not every system computes.
_NEAREST: dict[str, Measure] = {"rin": "spearman", "qn": "spearman", "pm1": "pearson", "qcr": "spearman"}
_COEFFICIENTS = {
    "pearson": "Pearson's coefficient",
    "spearman": "the coefficient of ranks (Spearman's)",
    "rin": "the coefficient of normal scores (rin)",
    "kendall": "Kendall's tau-b",
}
#: Texts that join by distance, and their keys; how many of them are listed.
Near = Mapping[str, str]
_LISTED = 1000
_NO_CELLS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class CodeTable:
    """A table in code: what it goes by, and how it is read."""

    name: str
    reader: Reader


@dataclass(frozen=True, slots=True)
class CodeKey:
    """A column of a table as a part of its key, in the form in which it meets its partner."""

    table: CodeTable
    side: Side
    form: KeyForm

    @property
    def fields(self) -> tuple[str, ...]:
        return self.table.reader.fields(self.side)


@dataclass(frozen=True, slots=True)
class Grouped:
    """A table whose column of numbers is aggregated by its key."""

    table: CodeTable
    side: Side
    aggregate: str
    keys: tuple[CodeKey, ...]

    @property
    def fields(self) -> tuple[str, ...]:
        """The column of numbers, as a path of fields."""
        return self.table.reader.fields(self.side)


@dataclass(frozen=True, slots=True)
class TableJoin:
    """A table joined to the one before it, by a key that both have."""

    left: tuple[CodeKey, ...]
    right: tuple[CodeKey, ...]


#: A column that is joined in: the join, the table it comes from, and its name.
AddedColumn = tuple[TableJoin, Grouped, str]


def called(step: Step, text: str) -> str:
    """A step as a call of one of the functions that code of Python and of pandas is printed with."""
    match step:
        case steps.SplitPiece(separator, index):
            return f"split({text}, {separator!r}, {index})"
        case steps.Run(kind, index):
            return f"run({text}, {RUNS[kind]!r}, {index})"
        case steps.Case("capital"):
            return f"capital({text})"
        case steps.Case(kind):
            return f"changed({text}, {'LARGE, SMALL' if kind == 'lower' else 'SMALL, LARGE'})"
        case steps.Digits(width):
            return f"digits({text}, {width})"
        case steps.Unaccent():
            return f"changed({text}, ACCENTED, BARE)"
    raise TypeError(f"no function does {step}")


class PlanWriter(TableReading):
    """Writes expressions of programs, and learned joins, as code of one system."""

    #: How a comment begins.
    comment: ClassVar[str] = "#"

    @abstractmethod
    def constant(self, text: str) -> str:
        """A text that is the same in every row."""

    @abstractmethod
    def cell(self, column: str) -> str:
        """A cell as text, without the space around it."""

    @abstractmethod
    def step(self, step: Step, text: str) -> str:
        """What a step makes of a text; nothing, or an empty text, where it is undefined."""

    @abstractmethod
    def some(self, text: str) -> str:
        """A text that is nothing where it is empty."""

    @abstractmethod
    def concatenated(self, parts: Sequence[str], between: str = "") -> str:
        """Texts one after the other, nothing where any is nothing."""

    @abstractmethod
    def join(self, plan: Plan, near: Near) -> str:
        """Code that joins the tables of a plan; texts of ``near`` go to the keys that are named there."""

    def expression(self, expression: Expression, cells: Mapping[str, str] = _NO_CELLS) -> str:
        """An expression of a program; ``cells`` are names that trimmed cells of columns have already."""
        return self.concatenated(
            [
                self.constant(each.text) if isinstance(each, Constant) else self._piece(each, cells)
                for each in expression.operators
            ]
        )

    def _piece(self, piece: Piece, cells: Mapping[str, str]) -> str:
        # No step makes something of nothing, so an empty text in between is as good as none at the end. Wherever it
        # can, a step names its text once: what is named twice in every step is written 2**n times.
        code = cells.get(piece.column) or self.cell(piece.column)
        for step in piece.steps:
            code = self.step(step, code)
        return self.some(code)

    def key_of_plan(self, expressions: Iterable[Expression], cells: Mapping[str, str] = _NO_CELLS) -> str:
        """The columns of a key as one text."""
        return self.concatenated([self.expression(each, cells) for each in expressions], BETWEEN)

    def plan(self, plan: Plan) -> str:
        """A plan as code that joins its tables."""
        if not plan:
            raise BadRequest("an empty plan has no code", hint=plan.reason)
        near, comments = _near(plan)
        return "\n".join([*(f"{self.comment} {line}" for line in comments), self.join(plan, near)])

    def tables_of(self, plan: Plan) -> tuple[CodeTable, CodeTable]:
        """Both tables of a plan: files as they are read, and frames by the name of their side."""
        left, right = (
            CodeTable(name, self.read_as_text(str(place), names) if is_path(place) else self.frame(name))
            for name, place, names in (("left", plan.left, plan.left_names), ("right", plan.right, plan.right_names))
        )
        return left, right


class Writer(PlanWriter):
    """Writes joins, correlations and joined columns, too."""

    #: Whether it composes letters with their accents.
    composes: ClassVar[bool] = True
    #: Coefficients of correlation, each with the expression or statement that computes it.
    coefficients: ClassVar[Mapping[str, str]]

    @abstractmethod
    def joins(self, tables: Sequence[CodeTable], joins: Sequence[TableJoin], comments: Sequence[str]) -> str:
        """Tables joined one after the other, keeping all rows of the first."""

    @abstractmethod
    def correlation(self, mine: Grouped, found: Grouped, coefficient: str, comments: Sequence[str]) -> str:
        """A coefficient over the join of two tables."""

    @abstractmethod
    def additions(self, mine: CodeTable, parts: Sequence[AddedColumn], comments: Sequence[str]) -> str:
        """A table with columns of others joined in, each with its name."""

    def comments_on(self, form: KeyForm) -> list[str]:
        """What is said of how keys are compared."""
        composing = f"{self.called} does not compose letters with their accents (NFC)."
        zones = "Days and times are compared as moments, those with a time zone as this system reads them."
        return [*([composing] if form.text and not self.composes else []), *([zones] if form.zoned else [])]

    def join_code(self, links: Sequence[tuple[Side, Side]]) -> str:
        """Code that joins tables one after the other, each by one column, keeping all rows of the first."""
        names = ["mine", "found"] if len(links) == 1 else ["mine", *(f"found{n + 1}" for n in range(len(links)))]
        # A table is read once, for all its columns that are keys.
        columns = [[links[0][0]], *([one[1], other[0]] for one, other in pairwise(links)), [links[-1][1]]]
        tables = [self._table(name, sides) for name, sides in zip(names, columns, strict=True)]
        joins = [_join(each, [left], [right]) for each, (left, right) in zip(pairwise(tables), links, strict=True)]
        return self.joins(tables, joins, self._comments(tables, joins))

    def correlation_code(self, left: KeyedSide, right: KeyedSide, coefficient: str = "pearson") -> str:
        """Code that aggregates two tables by key, joins them, and computes a coefficient, or the nearest it can."""
        computed = coefficient if coefficient in self.coefficients else _NEAREST.get(coefficient, "pearson")
        tables = [self._table(name, [each.side, *each.keys]) for name, each in (("mine", left), ("found", right))]
        join = _join((tables[0], tables[1]), left.keys, right.keys)
        comments = self._comments(tables, [join])
        if computed != coefficient:
            told = f"This computes {_COEFFICIENTS[computed]}: {coefficient}, which was told, is not offered here."
            comments.insert(0, told)
        return self.correlation(_grouped(left, join.left), _grouped(right, join.right), computed, comments)

    def augment_code(self, keys: Sequence[Sequence[Side]], finds: Sequence[KeyedSide], names: Sequence[str]) -> str:
        """Code that joins columns into a table: each aggregated by its key, and the table keeps all its rows.

        ``keys`` are the columns of the table's key in the order of each find's, ``names`` those of the new columns.
        """
        mine = self._table("mine", [side for key in keys for side in key])
        tables = [
            self._table(f"found{n + 1}" if len(finds) > 1 else "found", [each.side, *each.keys])
            for n, each in enumerate(finds)
        ]
        joins = [_join((mine, table), key, each.keys) for table, key, each in zip(tables, keys, finds, strict=True)]
        grouped = [_grouped(each, join.right) for each, join in zip(finds, joins, strict=True)]
        comments = self._comments([mine, *tables], joins)
        return self.additions(mine, list(zip(joins, grouped, names, strict=True)), comments)

    def _table(self, name: str, sides: Sequence[Side]) -> CodeTable:
        """A table by a reader that knows all these columns."""
        readers = [self.read(side) for side in sides]
        return CodeTable(name, next((each for each in readers if each.flat), readers[0]))

    def _comments(self, tables: Sequence[CodeTable], joins: Sequence[TableJoin]) -> list[str]:
        notes = [table.reader.note for table in tables if table.reader.note]
        forms = [key.form for join in joins for key in join.left]
        return list(dict.fromkeys([*notes, *(line for form in forms for line in self.comments_on(form))]))


def _join(tables: tuple[CodeTable, CodeTable], left: Sequence[Side], right: Sequence[Side]) -> TableJoin:
    forms = [KeyForm.of(*pair) for pair in zip(left, right, strict=True)]
    one, other = (
        tuple(CodeKey(table, side, form) for side, form in zip(sides, forms, strict=True))
        for table, sides in zip(tables, (left, right), strict=True)
    )
    return TableJoin(one, other)


def _grouped(each: KeyedSide, keys: tuple[CodeKey, ...]) -> Grouped:
    if each.aggregate not in UNORDERED:
        hint = "first and last depend on an order of rows that other systems do not keep"
        raise BadRequest(f"no code for the aggregate {each.aggregate!r}", hint=hint)
    return Grouped(keys[0].table, each.side, each.aggregate, keys)


def _near(plan: Plan) -> tuple[Near, list[str]]:
    """Texts that join by distance, with their keys, as far as they are listed in code, and what to say of them."""
    if plan.fuzzy is None:
        return {}, []
    if plan.left is None or plan.right is None:
        return {}, ["Rows that are only nearly equal to a key are not joined by this code: the plan has no tables."]
    near = dict(list(plan.nearly().items())[:_LISTED])
    told = [f"Rows that are only nearly equal to a key are listed, as of when this was written: {len(near):,} texts."]
    if plan.fuzzy.joined > len(near):
        told.append(
            f"{plan.fuzzy.joined:,} rows joined by distance then; those that are not listed are not joined here."
        )
    return near, told


def is_path(place: Any) -> bool:
    """Whether a table of a plan is a file."""
    return isinstance(place, str) or hasattr(place, "__fspath__")


def free_prefix(names: Sequence[str]) -> str:
    """What no column begins with, in any case: names of the code's own."""
    prefix = "_"
    while any(name.lower().startswith(prefix) for name in names):
        prefix += "_"
    return prefix


def zeros(step: Digits) -> str:
    """What is written before a number, so that it has its width even if it has one digit."""
    return "0" * (step.width - 1)


def padded(step: Digits) -> str:
    """The pattern of a number after zeros: its last digits, as many as are not zeros, but at least its width."""
    return rf"\A0*([0-9]{{{step.width},}})\z"


def definitions(constants: Mapping[str, object], module: str) -> dict[str, str]:
    """What code may use, by how its use begins: constants, and imports and functions of the text of a module."""
    imports, *functions = re.split(r"\n+(?=def )", module.strip())
    named = {line.split()[-1] + ("(" if line.startswith("from") else "."): line for line in imports.splitlines()}
    named = {} if imports.startswith("def ") else named
    functions = [imports, *functions] if imports.startswith("def ") else functions
    named |= {name: f"{name} = {value!r}" for name, value in constants.items()}
    return named | {text[4 : text.index("(") + 1]: text for text in functions}


def python_program(
    lines: Sequence[str],
    tables: Sequence[CodeTable],
    comments: Sequence[str] = (),
    imports: Sequence[str] = (),
    defined: Mapping[str, str] = _NO_CELLS,
) -> str:
    """A program of Python: comments, imports, those definitions that it uses, and its lines.

    Each definition goes by how its use begins (``number(``), and may use those before it.
    """
    body, used = "\n".join(lines), list[str]()
    needed = body
    for begin, text in reversed(list(defined.items())):
        if re.search(rf"(?<![\w.]){re.escape(begin)}", needed):
            used.insert(0, text)
            needed += text
    functions = [text for text in used if text.startswith("def ")]
    imported = {text for text in used if text.startswith(("import ", "from "))}
    constants = [text for text in used if text not in imported and text not in functions]
    imported |= {*imports, *(line for table in tables for line in table.reader.imports)}
    head = "\n".join([*(f"# {line}" for line in comments), *sorted(imported)])
    head = "\n\n".join(filter(None, [head, "\n".join(constants)]))
    return "\n\n\n".join([head, *functions, body]) if functions else f"{head}\n\n{body}"
