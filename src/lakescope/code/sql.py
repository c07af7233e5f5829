"""Statements of SQL: what its systems share, and SQL of none in particular, which names tables and reads no files."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from lakescope.code.reading import Reader
from lakescope.code.sides import FRAME, KeyForm, Side, side_of
from lakescope.code.writer import (
    MARKERS,
    AddedColumn,
    CodeKey,
    CodeTable,
    Grouped,
    Near,
    TableJoin,
    Writer,
    free_prefix,
    is_path,
    padded,
    python_program,
    zeros,
)
from lakescope.engines.transforms import steps
from lakescope.engines.transforms.steps import INITIALS, MONTH_FORMS, RUNS, Step
from lakescope.show.text import STEERING
from lakescope.values.alphabet import ACCENTED, BARE, LARGE, PUNCTUATION, SMALL, SPACES

if TYPE_CHECKING:
    from lakescope.engines.transforms.plan import Plan

#: A pattern of at most so many last characters.
_LAST = r"(?s).{1,%d}\z"


def identifier(name: str) -> str:
    """A name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text in SQL; characters that no terminal shows are written by their numbers, so that code can be printed."""
    shown, hidden = STEERING.split(text), STEERING.findall(text)
    quoted = ["'" + each.replace("'", "''") + "'" for each in shown]
    parts = [part for pair in zip_longest(quoted, (f"CHR({ord(each)})" for each in hidden)) for part in pair]
    written = [part for part in parts if part and (part != "''" or not hidden)]
    return written[0] if len(written) == 1 else f"({' || '.join(written)})"


def _ranked(over: str) -> str:
    """Ranks in SQL, equal values sharing the middle of theirs."""
    return f"RANK() OVER (ORDER BY {over}) + (COUNT(*) OVER (PARTITION BY {over}) - 1) / 2.0"


#: Statements over pairs, by coefficient.
COEFFICIENTS = {
    "pearson": "SELECT CORR(x, y), COUNT(*)\nFROM pairs;",
    "spearman": (
        "SELECT CORR(x, y), COUNT(*)\n"
        f"FROM (SELECT {_ranked('x')} AS x,\n             {_ranked('y')} AS y FROM pairs) AS ranks;"
    ),
    "kendall": (
        "SELECT SUM(SIGN(a.x - b.x) * SIGN(a.y - b.y)) /\n"
        "  SQRT(SUM(ABS(SIGN(a.x - b.x))) * 1.0 * SUM(ABS(SIGN(a.y - b.y)))),\n"
        "  (SELECT COUNT(*) FROM pairs)\n"
        "FROM pairs AS a CROSS JOIN pairs AS b;"
    ),
}


class SqlWriter(Writer):
    """Writes statements of SQL."""

    comment = "--"
    coefficients = COEFFICIENTS

    # --- tables and columns

    def frame(self, name: str) -> Reader:
        return Reader(self.identifier(name), sql=True)

    def arrow(self, code: str) -> str:
        return code

    def identifier(self, name: str) -> str:
        """A name."""
        return identifier(name)

    def literal(self, text: str) -> str:
        """A text."""
        return literal(text)

    def field(self, alias: str, fields: Sequence[str]) -> str:
        """A column of a table, which may lie within another column."""
        return ".".join([*([alias] if alias else []), *map(self.identifier, fields)])

    def source(self, table: CodeTable) -> str:
        """A table in a statement: what reads it, or the name that Python gave it."""
        return table.reader.code if table.reader.sql else f"{table.name}_table"

    def statement(self, sql: str, tables: Sequence[CodeTable], comments: Sequence[str], result: str) -> str:
        """A statement, within Python if Python has to read one of its tables."""
        loaded = [f"{each.name}_table = {each.reader.code}" for each in tables if not each.reader.sql]
        if not loaded:
            return "\n".join([*(f"{self.comment} {line}" for line in comments), sql])
        quoted = repr(sql) if '"""' in sql or "\\" in sql else f'"""\n{sql}\n"""'
        lines = [*loaded, f"{result} = duckdb.sql({quoted})"]
        comments = ["Python: SQL alone cannot read these tables.", *comments]
        return python_program(lines, tables, comments, ["import duckdb"])

    # --- keys and numbers

    def text(self, name: str, form: KeyForm) -> str:
        """A column as trimmed text."""
        return f"TRIM(CAST({name} AS VARCHAR))"

    def truth(self, text: str, form: KeyForm) -> str:
        """A text, with true and false in one form."""
        return (
            f"CASE WHEN LOWER({text}) IN ('true', 'false') THEN LOWER({text}) ELSE {text} END" if form.boolean else text
        )

    @abstractmethod
    def key(self, name: str, key: CodeKey) -> str:
        """A column in the form in which it meets its partner."""

    def real(self, name: str, form: KeyForm) -> list[str]:
        """A condition that a key is none of the texts that stand for nothing."""
        return [f"{self.text(name, form)} NOT IN ({', '.join(map(literal, MARKERS))})"] if form.empty else []

    def number(self, name: str, side: Side) -> str:
        """A cell as a number, null if it is none."""
        return f"TRY_CAST({name} AS DOUBLE)"

    def aggregated(self, aggregate: str, number: str, *, exactly: bool) -> str:
        """Numbers of a key as one; null where there are none."""
        if aggregate == "count":
            return f"NULLIF(COUNT({number}), 0)"
        return f"{'AVG' if aggregate == 'mean' else aggregate.upper()}({number})"

    def grouped(self, each: Grouped, *, exactly: bool = False) -> str:
        """A table aggregated by its key: ``k0``, ``k1`` ..., and ``v``."""
        names = [(self.field("", key.fields), key) for key in each.keys]
        shown = ", ".join(f"{self.key(name, key)} AS k{i}" for i, (name, key) in enumerate(names))
        value = self.aggregated(each.aggregate, self.number(self.field("", each.fields), each.side), exactly=exactly)
        real = [condition for name, key in names for condition in self.real(name, key.form)]
        where = f" WHERE {' AND '.join(real)}" if real else ""
        places = ", ".join(str(i + 1) for i in range(len(names)))
        return f"(SELECT {shown}, {value} AS v FROM {self.source(each.table)}{where} GROUP BY {places})"

    # --- statements

    def joins(self, tables: Sequence[CodeTable], joins: Sequence[TableJoin], comments: Sequence[str]) -> str:
        lines = [f"SELECT {', '.join(f'{each.name}.*' for each in tables)}"]
        lines.append(f"FROM {self.source(tables[0])} AS {tables[0].name}")
        for join, table in zip(joins, tables[1:], strict=True):
            lines.append(f"LEFT JOIN {self.source(table)} AS {table.name}")
            conditions = []
            for left, right in zip(join.left, join.right, strict=True):
                one, other = (self.field(key.table.name, key.fields) for key in (left, right))
                conditions += [f"{self.key(one, left)} = {self.key(other, right)}", *self.real(one, left.form)]
            lines.append("  ON " + "\n  AND ".join(conditions))
        return self.statement("\n".join(lines) + ";", tables, comments, "joined")

    def correlation(self, mine: Grouped, found: Grouped, coefficient: str, comments: Sequence[str]) -> str:
        # Where only the order counts, means that differ by their last digit are no tie.
        one, other = (self.grouped(each, exactly=coefficient != "pearson") for each in (mine, found))
        on = " AND ".join(f"mine.k{i} = found.k{i}" for i in range(len(mine.keys)))
        joined = f"  FROM {one} AS mine\n  JOIN {other} AS found\n    ON {on}"
        real = "  WHERE mine.v IS NOT NULL AND found.v IS NOT NULL)"
        sql = f"WITH pairs AS (\n  SELECT mine.v AS x, found.v AS y\n{joined}\n{real}\n{self.coefficients[coefficient]}"
        return self.statement(sql, [mine.table, found.table], comments, "found")

    def additions(self, mine: CodeTable, parts: Sequence[AddedColumn], comments: Sequence[str]) -> str:
        tables = [grouped.table for _, grouped, _ in parts]
        added = [f"{table.name}.v AS {identifier(name)}" for table, (_, _, name) in zip(tables, parts, strict=True)]
        lines = [f"SELECT {', '.join(['mine.*', *added])}", f"FROM {self.source(mine)} AS mine"]
        for table, (join, grouped, _) in zip(tables, parts, strict=True):
            keys = [self.key(self.field("mine", key.fields), key) for key in join.left]
            on = "\n  AND ".join(f"{key} = {table.name}.k{i}" for i, key in enumerate(keys))
            lines.append(f"LEFT JOIN {self.grouped(grouped)} AS {table.name}\n  ON {on}")
        return self.statement("\n".join(lines) + ";", [mine, *tables], comments, "joined")

    # --- programs

    def constant(self, text: str) -> str:
        return self.literal(text)

    def cell(self, column: str) -> str:
        return f"TRIM(CAST({self.identifier(column)} AS VARCHAR), {self.literal(SPACES)})"

    def some(self, text: str) -> str:
        return f"NULLIF({text}, '')"

    def concatenated(self, parts: Sequence[str], between: str = "") -> str:
        return (f" || {self.literal(between)} || " if between else " || ").join(parts)

    def step(self, step: Step, text: str) -> str:
        match step:
            case steps.SplitPiece(separator, index):
                return f"SPLIT_PART({text}, {self.literal(separator)}, {index + (index >= 0)})"
            case steps.Run(kind, index):
                return self.run(text, self.literal(RUNS[kind]), index + (index >= 0))
            case steps.Slice(start, stop):
                return self._sliced(text, start, stop)
            case steps.Case("capital"):
                first, rest = f"SUBSTRING({text}, 1, 1)", f"SUBSTRING({text}, 2)"
                return f"{self._translated(first, SMALL, LARGE)} || {self._translated(rest, LARGE, SMALL)}"
            case steps.Case(kind):
                return self._translated(text, *((LARGE, SMALL) if kind == "lower" else (SMALL, LARGE)))
            case steps.Digits():
                return f"REGEXP_EXTRACT('{zeros(step)}' || {text}, {self.literal(padded(step))}, 1)"
            case steps.Month(form):
                return self.month(self._translated(text, LARGE, SMALL), MONTH_FORMS[form])
            case steps.Initials():
                return f"REPLACE({self.initials(text, self.literal(INITIALS))}, ' ', '')"
            case steps.Drop():
                return self._translated(text, PUNCTUATION, "")
            case steps.Unaccent():
                return self._translated(text, ACCENTED, BARE)

    def run(self, text: str, pattern: str, index: int) -> str:
        """One of the runs of a text that fit a pattern, from 1, or from the back."""
        return f"(REGEXP_EXTRACT_ALL({text}, {pattern}))[{index}]"

    def month(self, text: str, forms: Mapping[str, str]) -> str:
        """What one of some texts becomes; null for others."""
        written, made = (", ".join(map(repr, each)) for each in zip(*forms.items(), strict=True))
        return f"([{made}])[LIST_POSITION([{written}], {text})]"

    def initials(self, text: str, pattern: str) -> str:
        """A text without what a pattern finds, but for its first group."""
        return f"REGEXP_REPLACE({text}, {pattern}, '\\1', 'g')"

    def _translated(self, text: str, before: str, after: str) -> str:
        return f"TRANSLATE({text}, {self.literal(before)}, {self.literal(after)})"

    def _sliced(self, text: str, start: int, stop: int | None) -> str:
        if start < 0:
            text = f"RIGHT({text}, {-start})"
        if stop is not None and stop < 0:
            text = f"REGEXP_REPLACE({text}, {self.literal(_LAST % -stop)}, '')"
        if start < 0 or (start == 0 and (stop is None or stop < 0)):
            return text
        length = f", {stop - start}" if stop is not None and stop >= 0 else ""
        return f"SUBSTRING({text}, {start + 1}{length})"

    # --- learned joins

    def join(self, plan: Plan, near: Near) -> str:
        tables = self.tables_of(plan)
        left, right = (
            self.cells(self.source(table), place, names)
            for table, place, names in zip(
                tables, (plan.left, plan.right), (plan.left_names, plan.right_names), strict=True
            )
        )
        comments = [table.reader.note for table in tables if table.reader.note]
        return self.statement(f"{self.joined(plan, near, left, right)};", tables, comments, "joined")

    def cells(self, source: str, place: Any, names: Sequence[str]) -> str:
        """A file with its cells as a plan shows them: without the space around them, and null where nothing is left."""
        if not is_path(place):
            return source
        cells = (f"{self.some(self.cell(name))} AS {self.identifier(name)}" for name in names)
        return f"(SELECT {', '.join(cells)} FROM {source})"

    def joined(self, plan: Plan, near: Near, left: str, right: str) -> str:
        """One statement: keys that occur once, rows that are open, and keys that are met, program by program."""

        def named(alias: str, name: str) -> str:
            return f"{alias}.{self.identifier(name)}"

        own = free_prefix([*plan.left_names, *plan.right_names])
        meets, met_key = f"{own}meets", f"{own}met"
        forward = plan.direction == "left->right"
        source, target = (left, right) if forward else (right, left)
        cells = {name: f"{own}c{number}" for number, name in enumerate(plan.columns)}
        trimmed = ", ".join(f"{self.cell(name)} AS {cell}" for name, cell in cells.items())
        made = [f"{self.key_of_plan(each.outputs, cells)} AS {own}k{n}" for n, each in enumerate(plan.programs)]
        key = self.key_of_plan(plan.key_expressions)
        parts = [
            f"target AS (SELECT *, {key} AS {meets} FROM {target})",
            f"keys0 AS (SELECT {meets} FROM target WHERE {meets} IS NOT NULL GROUP BY {meets} HAVING COUNT(*) = 1)",
            f"cells AS (SELECT *, {trimmed} FROM {source})",
            f"open0 AS (SELECT *, {', '.join(made)} FROM cells)",
        ]
        once = " HAVING COUNT(*) = 1" if plan.single else ""
        for number in range(len(plan.programs)):
            hit = (
                f"SELECT {meets} FROM open{number} JOIN keys{number} ON {own}k{number} = {meets} GROUP BY {meets}{once}"
            )
            parts.append(f"hit{number} AS ({hit})")
            if near or number + 1 < len(plan.programs):
                met = f"SELECT 1 FROM hit{number} WHERE {meets} = {own}k{number}"
                parts.append(f"open{number + 1} AS (SELECT * FROM open{number} WHERE NOT EXISTS ({met}))")
                met = f"SELECT 1 FROM hit{number} WHERE hit{number}.{meets} = keys{number}.{meets}"
                left_over = f" WHERE NOT EXISTS ({met})" if plan.single else ""
                parts.append(f"keys{number + 1} AS (SELECT {meets} FROM keys{number}{left_over})")
        each = [
            f"SELECT *, {own}k{n} AS {met_key} FROM open{n} WHERE {own}k{n} IN (SELECT {meets} FROM hit{n})"
            for n in range(len(made))
        ]
        if near:
            rows = ", ".join(f"({self.literal(text)}, {self.literal(key)})" for text, key in near.items())
            parts.append(f"near({own}text, {own}key) AS (VALUES {rows})")
            last, text = len(made), f"COALESCE({', '.join(f'{own}k{n}' for n in range(len(made)))}, '')"
            nearly = f"SELECT open{last}.*, {own}key AS {met_key} FROM open{last} JOIN near ON {text} = {own}text"
            each.append(f"{nearly} WHERE {own}key IN (SELECT {meets} FROM keys{last})")
        parts.append("joined AS (" + "\n  UNION ALL ".join(each) + ")")
        mine, other = ("joined", "target") if forward else ("target", "joined")
        shown = [named(mine, name) for name in plan.left_names]
        shown += [f"{named(other, name)} AS {self.identifier(free)}" for name, free in plan.right_names_free()]
        body = ",\n".join(parts)
        return f"WITH {body}\nSELECT {', '.join(shown)}\nFROM joined JOIN target ON {met_key} = {meets}"


class Sql(SqlWriter):
    """Writes SQL of no system in particular."""

    name = "sql"
    composes = False

    def read(self, side: Side) -> Reader:
        return self.frame(side.part or PurePosixPath(side.path).name.split(".")[0] or FRAME)

    def read_as_text(self, path: str, names: Sequence[str]) -> Reader:
        return self.read(side_of(path, ""))

    def comments_on(self, form: KeyForm) -> list[str]:
        return [*(["Keys are compared as numbers."] if form.number else []), *super().comments_on(form)]

    def key(self, name: str, key: CodeKey) -> str:
        form = key.form
        if (form.number or form.moment) and not form.words:
            cast = "TRY_CAST" if key.side.empty else "CAST"
            return f"{cast}({name} AS {'DOUBLE PRECISION' if form.number else 'TIMESTAMP'})"
        return self.truth(self.text(name, form), form)
