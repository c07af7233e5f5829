"""Programs and plans as code for other systems: SQL for DuckDB and Spark, polars, and Python without libraries.

Every form gives the same values as the program itself, to the letter: they use no function whose meaning differs
between systems, and no function of our own. A join is one statement over sets of keys; it needs no row numbers, so
it runs the same on one machine and on a hundred.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from lakescope.engines.transforms.evaluate import BETWEEN
from lakescope.engines.transforms.program import Constant, Expression, Operator, Piece
from lakescope.engines.transforms.steps import (
    INITIALS,
    MONTH_FORMS,
    RUNS,
    Case,
    Digits,
    Drop,
    Initials,
    Month,
    Run,
    Slice,
    SplitPiece,
    Step,
)
from lakescope.errors import BadRequest
from lakescope.search.code import as_sql
from lakescope.search.reading_code import Reader, text_reader
from lakescope.show.text import STEERING
from lakescope.values.alphabet import ACCENTED, BARE, LARGE, PUNCTUATION, SMALL, SPACES

if TYPE_CHECKING:
    from lakescope.engines.transforms.plan import Plan

DIALECTS = ("python", "spark", "sql", "duckdb", "polars")
#: A pattern of at most so many last characters.
_LAST = r"(?s).{1,%d}\z"
#: Texts that join by distance, and their keys; how many of them are listed.
Near = Mapping[str, str]
_NO_CELLS: Mapping[str, str] = {}
_LISTED = 1000


def expression_code(expression: Expression, dialect: str) -> str:
    """An expression of a program as an expression of a dialect."""
    return _written(expression.operators, checked_dialect(dialect))


def join_code(plan: Plan, dialect: str) -> str:
    """A plan as code that joins its tables."""
    checked_dialect(dialect)
    if not plan:
        raise BadRequest("an empty plan has no code", hint=plan.reason)
    near, told = _near(plan)
    writers: dict[str, Callable[[Plan, Near], str]] = {
        "python": _python_join,
        "polars": _polars_join,
        "spark": _spark_join,
    }
    code = writers[dialect](plan, near) if dialect in writers else _sql_join(plan, near, dialect)
    mark = "--" if dialect in ("sql", "duckdb") else "#"
    return "\n".join([*(f"{mark} {line}" for line in told), code])


def _near(plan: Plan) -> tuple[Near, list[str]]:
    """Texts that join by distance, with their keys, as far as they are listed in code, and what to say of them."""
    if plan.fuzzy is None:
        return {}, []
    if plan.left is None or plan.right is None:
        return {}, ["Rows that are only nearly equal to a key are not joined by this code: the plan has no tables."]
    near = plan.nearly()
    listed = dict(list(near.items())[:_LISTED])
    told = [f"Rows that are only nearly equal to a key are listed, as of when this was written: {len(listed):,} texts."]
    if plan.fuzzy.joined > len(listed):
        told.append(
            f"{plan.fuzzy.joined:,} rows joined by distance then; those that are not listed are not joined here."
        )
    return listed, told


def checked_dialect(dialect: str) -> str:
    """A dialect that code can be written in; refused if there is no such one."""
    if dialect not in DIALECTS:
        raise BadRequest(f"no dialect {dialect!r}", hint=f"use {', '.join(DIALECTS)}")
    return dialect


def _written(operators: Sequence[Operator], dialect: str, cells: Mapping[str, str] = _NO_CELLS) -> str:
    parts = [_operator(each, dialect, cells) for each in operators]
    if dialect == "polars":
        return parts[0] if len(parts) == 1 else f"pl.concat_str([{', '.join(parts)}])"
    if dialect == "python":
        return parts[0] if len(parts) == 1 else f"written({', '.join(parts)})"
    return " || ".join(parts)


def _operator(operator: Operator, dialect: str, cells: Mapping[str, str]) -> str:
    if isinstance(operator, Constant):
        text = operator.text
        return {"polars": f"pl.lit({text!r})", "python": repr(text)}.get(dialect) or _literal(text, dialect)
    return _piece(operator, dialect, cells)


def _piece(piece: Piece, dialect: str, cells: Mapping[str, str] = _NO_CELLS) -> str:
    """A piece of a row; ``cells`` are names that trimmed cells of columns have already."""
    code = cells.get(piece.column) or _CELLS[dialect](piece.column)
    # No step makes something of nothing, so an empty text in between is as good as none at the end. Wherever it can, a
    # step names its text once: what is named twice in every step is written 2**n times.
    for step in piece.steps:
        if dialect == "polars":
            code = _polars_step(step, code)
        elif dialect == "python":
            code = _python_step(step, code)
        else:
            code = _sql_step(step, code, dialect)
    return {"polars": f"some({code})", "python": code}.get(dialect) or f"NULLIF({code}, '')"


# --- SQL --------------------------------------------------------------------------------------------------------------


def _identifier(name: str, dialect: str) -> str:
    return "`" + name.replace("`", "``") + "`" if dialect == "spark" else '"' + name.replace('"', '""') + '"'


def _literal(text: str, dialect: str) -> str:
    """A text in SQL; characters that no terminal shows are written by their numbers, so that code can be printed."""
    if dialect == "spark":
        text = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
        return "'" + STEERING.sub(lambda found: f"\\u{ord(found[0]):04X}", text) + "'"
    shown, hidden = STEERING.split(text), STEERING.findall(text)
    parts = [
        part for pair in zip_longest(map(_quoted, shown), (f"CHR({ord(each)})" for each in hidden)) for part in pair
    ]
    written = [part for part in parts if part and (part != "''" or not hidden)]
    return written[0] if len(written) == 1 else f"({' || '.join(written)})"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _sql_cell(column: str, dialect: str) -> str:
    name, spaces = _identifier(column, dialect), _literal(SPACES, dialect)
    if dialect == "spark":
        return f"TRIM(BOTH {spaces} FROM CAST({name} AS STRING))"
    return f"TRIM(CAST({name} AS VARCHAR), {spaces})"


def _sql_step(step: Step, text: str, dialect: str) -> str:
    def translated(of: str, from_: str, to: str) -> str:
        return f"TRANSLATE({of}, {_literal(from_, dialect)}, {_literal(to, dialect)})"

    if isinstance(step, SplitPiece):
        index = step.index + 1 if step.index >= 0 else step.index
        return f"SPLIT_PART({text}, {_literal(step.separator, dialect)}, {index})"
    if isinstance(step, Run):
        index = step.index + 1 if step.index >= 0 else step.index
        pattern = _literal(RUNS[step.kind], dialect)
        if dialect == "spark":
            return f"TRY_ELEMENT_AT(REGEXP_EXTRACT_ALL({text}, {pattern}, 0), {index})"
        return f"(REGEXP_EXTRACT_ALL({text}, {pattern}))[{index}]"
    if isinstance(step, Slice):
        return _sql_slice(step, text, dialect)
    if isinstance(step, Case):
        if step.kind == "lower":
            return translated(text, LARGE, SMALL)
        if step.kind == "upper":
            return translated(text, SMALL, LARGE)
        first, rest = f"SUBSTRING({text}, 1, 1)", f"SUBSTRING({text}, 2)"
        return f"{translated(first, SMALL, LARGE)} || {translated(rest, LARGE, SMALL)}"
    if isinstance(step, Digits):
        return f"REGEXP_EXTRACT('{_zeros(step)}' || {text}, {_literal(_padded(step), dialect)}, 1)"
    if isinstance(step, Month):
        written, made = (", ".join(map(repr, each)) for each in zip(*MONTH_FORMS[step.form].items(), strict=True))
        small = translated(text, LARGE, SMALL)
        if dialect == "spark":
            return f"TRY_ELEMENT_AT(MAP_FROM_ARRAYS(ARRAY({written}), ARRAY({made})), {small})"
        return f"([{made}])[LIST_POSITION([{written}], {small})]"
    if isinstance(step, Initials):
        pattern = _literal(INITIALS, dialect)
        replaced = (
            f"REGEXP_REPLACE({text}, {pattern}, '$1')"
            if dialect == "spark"
            else (f"REGEXP_REPLACE({text}, {pattern}, '\\1', 'g')")
        )
        return f"REPLACE({replaced}, ' ', '')"
    return translated(text, *((PUNCTUATION, "") if isinstance(step, Drop) else (ACCENTED, BARE)))


def _sql_slice(step: Slice, text: str, dialect: str) -> str:
    start, stop = step.start, step.stop
    if start < 0:
        text = f"RIGHT({text}, {-start})"
    if stop is not None and stop < 0:
        text = f"REGEXP_REPLACE({text}, {_literal(_LAST % -stop, dialect)}, '')"
    if start < 0 or (start == 0 and (stop is None or stop < 0)):
        return text
    length = f", {stop - start}" if stop is not None and stop >= 0 else ""
    return f"SUBSTRING({text}, {start + 1}{length})"


def _zeros(step: Digits) -> str:
    """What is written before a number, so that it has its width even if it has one digit."""
    return "0" * (step.width - 1)


def _padded(step: Digits) -> str:
    """The pattern of a number after zeros: its last digits, as many as are not zeros, but at least its width."""
    return rf"\A0*([0-9]{{{step.width},}})\z"


def _key_code(pieces: Sequence[Piece], dialect: str) -> str:
    between = f" || {_literal(BETWEEN, dialect)} || "
    return between.join(_piece(piece, dialect) for piece in pieces)


def _outputs_code(outputs: Sequence[Expression], dialect: str, cells: Mapping[str, str]) -> str:
    between = f" || {_literal(BETWEEN, dialect)} || "
    return between.join(_written(output.operators, dialect, cells) for output in outputs)


def _sql_join(plan: Plan, near: Near, dialect: str) -> str:
    readers = _readers(plan, dialect)
    left, right = (
        _cells_sql(reader.code if reader.sql else f"{name}_table", place, names, dialect)
        for reader, name, place, names in zip(
            readers, ("left", "right"), (plan.left, plan.right), (plan.left_names, plan.right_names), strict=True
        )
    )
    told = [reader.note for reader in readers if reader.note]
    return as_sql(f"{_statement(plan, near, dialect, left, right)};", ("left", "right"), readers, told, "joined")


def _cells_sql(source: str, place: Any, names: Sequence[str], dialect: str) -> str:
    """A file with its cells as a plan shows them: without the space around them, and null where nothing is left."""
    if not _is_path(place):
        return source
    spaces = _literal(SPACES, dialect)
    if dialect == "duckdb":
        return f"(SELECT NULLIF(TRIM(CAST(COLUMNS(*) AS VARCHAR), {spaces}), '') FROM {source})"
    cells = (f"NULLIF({_sql_cell(name, dialect)}, '') AS {_identifier(name, dialect)}" for name in names)
    return f"(SELECT {', '.join(cells)} FROM {source})"


def _statement(plan: Plan, near: Near, dialect: str, left: str, right: str) -> str:
    """One statement: keys that occur once, rows that are open, and keys that are met, program by program."""

    def named(alias: str, name: str) -> str:
        return f"{alias}.{_identifier(name, dialect)}"

    own = _free_prefix([*plan.left_names, *plan.right_names])
    meets, met_key = f"{own}meets", f"{own}met"
    forward = plan.direction == "left->right"
    source, target = (left, right) if forward else (right, left)
    cells = {name: f"{own}c{number}" for number, name in enumerate(plan.columns)}
    trimmed = ", ".join(f"{_sql_cell(name, dialect)} AS {cell}" for name, cell in cells.items())
    made = [
        f"{_outputs_code(each.outputs, dialect, cells)} AS {own}k{number}" for number, each in enumerate(plan.programs)
    ]
    key = _key_code(plan.programs[0].keys, dialect)
    parts = [
        f"target AS (SELECT *, {key} AS {meets} FROM {target})",
        f"keys0 AS (SELECT {meets} FROM target WHERE {meets} IS NOT NULL GROUP BY {meets} HAVING COUNT(*) = 1)",
        f"cells AS (SELECT *, {trimmed} FROM {source})",
        f"open0 AS (SELECT *, {', '.join(made)} FROM cells)",
    ]
    once = " HAVING COUNT(*) = 1" if plan.single else ""
    for number in range(len(plan.programs)):
        hit = f"SELECT {meets} FROM open{number} JOIN keys{number} ON {own}k{number} = {meets} GROUP BY {meets}{once}"
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
        rows = ", ".join(f"({_literal(text, dialect)}, {_literal(key, dialect)})" for text, key in near.items())
        parts.append(f"near({own}text, {own}key) AS (VALUES {rows})")
        last, text = len(made), f"COALESCE({', '.join(f'{own}k{n}' for n in range(len(made)))}, '')"
        free = f"{own}key IN (SELECT {meets} FROM keys{last})"
        each.append(
            f"SELECT open{last}.*, {own}key AS {met_key} FROM open{last} JOIN near ON {text} = {own}text WHERE {free}"
        )
    parts.append("joined AS (" + "\n  UNION ALL ".join(each) + ")")
    mine, other = ("joined", "target") if forward else ("target", "joined")
    shown = [named(mine, name) for name in plan.left_names]
    shown += [f"{named(other, name)} AS {_identifier(free, dialect)}" for name, free in plan.right_names_free()]
    body = ",\n".join(parts)
    return f"WITH {body}\nSELECT {', '.join(shown)}\nFROM joined JOIN target ON {met_key} = {meets}"


def _free_prefix(names: Sequence[str]) -> str:
    """What no column begins with, in any case: names of the statement's own."""
    prefix = "_"
    while any(name.lower().startswith(prefix) for name in names):
        prefix += "_"
    return prefix


def _is_path(place: Any) -> bool:
    return isinstance(place, str) or hasattr(place, "__fspath__")


def _readers(plan: Plan, dialect: str) -> tuple[Reader, Reader]:
    """How the dialect reads both tables; a frame goes by the name of its side."""

    def reader(place: Any, name: str, names: Sequence[str]) -> Reader:
        if _is_path(place):
            return text_reader(str(place), names, dialect)
        forms = {"polars": f"pl.DataFrame({name})", "python": f"{name}  # a list of dictionaries", "spark": name}
        return Reader(forms.get(dialect) or _identifier(name, dialect), sql=dialect in ("sql", "duckdb"))

    return reader(plan.left, "left", plan.left_names), reader(plan.right, "right", plan.right_names)


def _head(readers: Sequence[Reader]) -> str:
    """What is said of how tables are read, and the imports that takes."""
    notes = [f"# {reader.note}" for reader in readers if reader.note]
    imports = sorted({line for reader in readers for line in reader.imports})
    return "".join(f"{line}\n" for line in [*notes, *imports])


_SPARK_CELLS = """
def cells(frame):
    names = ["`" + name.replace("`", "``") + "`" for name in frame.columns]
    return frame.selectExpr(*(f"NULLIF(TRIM(BOTH '{SPACES}' FROM CAST({n} AS STRING)), '') AS {n}" for n in names))
"""


def _spark_join(plan: Plan, near: Near) -> str:
    readers = _readers(plan, "spark")
    statement = _statement(plan, near, "spark", "`left`", "`right`")
    spaces, lines = _literal(SPACES, "spark"), []
    if _is_path(plan.left) or _is_path(plan.right):
        lines.append(f"SPACES = {spaces[1:-1]!r}\n\n{_SPARK_CELLS}\n")
    for name, place, reader in zip(("left", "right"), (plan.left, plan.right), readers, strict=True):
        if _is_path(place):
            lines.append(f"{name} = cells({reader.code})")
        lines.append(f"{name}.createOrReplaceTempView({name!r})")
    body = "\n".join(lines)
    return f"{_head(readers)}{body}\njoined = spark.sql({statement!r})"


# --- polars -----------------------------------------------------------------------------------------------------------


def _polars_cell(column: str) -> str:
    return f"pl.col({column!r}).cast(pl.String).str.strip_chars(SPACES)"


def _polars_step(step: Step, text: str) -> str:
    if isinstance(step, Month):
        forms = MONTH_FORMS[step.form]
        small = f"{text}.str.replace_many(list(LARGE), list(SMALL))"
        return f"{small}.replace_strict({forms!r}, default=None, return_dtype=pl.String)"
    if isinstance(step, Digits):
        return f"pl.concat_str([pl.lit({_zeros(step)!r}), {text}]).str.extract({_padded(step)!r}, 1)"
    if isinstance(step, SplitPiece):
        return f"{text}.str.split({step.separator!r}).list.get({step.index}, null_on_oob=True)"
    if isinstance(step, Run):
        return f"{text}.str.extract_all({RUNS[step.kind]!r}).list.get({step.index}, null_on_oob=True)"
    if isinstance(step, Slice):
        cut = f"{text}.str.tail({-step.start})" if step.start < 0 else text
        if step.start > 0:
            length = None if step.stop is None or step.stop < 0 else step.stop - step.start
            cut = f"{text}.str.slice({step.start}{'' if length is None else f', {length}'})"
        ends = step.stop is not None and (step.start <= 0 or step.stop < 0)
        return f"{cut}.str.head({step.stop})" if ends else cut
    if isinstance(step, Case):
        lower, upper = (f".str.replace_many(list({a}), list({b}))" for a, b in (("LARGE", "SMALL"), ("SMALL", "LARGE")))
        if step.kind != "capital":
            return text + (lower if step.kind == "lower" else upper)
        return f"pl.concat_str([{text}.str.head(1){upper}, {text}.str.slice(1){lower}])"
    if isinstance(step, Initials):
        return f"{text}.str.replace_all({INITIALS!r}, '${{1}}').str.replace_all(' ', '', literal=True)"
    if isinstance(step, Drop):
        return f"{text}.str.replace_many(list(PUNCTUATION), [''])"
    return f"{text}.str.replace_many(list(ACCENTED), list(BARE))"


_POLARS_HELPERS = """import polars as pl

{alphabet}


def some(text: pl.Expr) -> pl.Expr:
    return pl.when(text != "").then(text)
"""


#: Cells as a plan shows them: without the space around them, and null where nothing is left.
_POLARS_CELLS = ".select(some(pl.all().cast(pl.String).str.strip_chars(SPACES)))"


def _polars_join(plan: Plan, near: Near) -> str:
    readers = _readers(plan, "polars")
    left, right = (
        f"{reader.code}.select(some(pl.all().cast(pl.String).str.strip_chars(SPACES)))"
        if _is_path(place)
        else reader.code
        for reader, place in zip(readers, (plan.left, plan.right), strict=True)
    )
    forward = plan.direction == "left->right"
    source, target = (left, right) if forward else (right, left)
    made = [_polars_key([_written(each.operators, "polars") for each in program.outputs]) for program in plan.programs]
    key = _polars_key([_piece(piece, "polars") for piece in plan.programs[0].keys])
    names = f"programs = [\n    {f',{chr(10)}    '.join(made)},\n]\n"
    once = ".filter(pl.len().over('meets') == 1)" if plan.single else ""
    own = _free_prefix([*plan.left_names, *plan.right_names])
    from_row, to_row = f"{own}source", f"{own}target"
    sides = [("source", from_row), ("target", to_row)][:: 1 if forward else -1]
    joined = "pairs" + "".join(f".join({name}, on='{row}', suffix='_right')" for name, row in sides)
    head = _polars_helpers([*made, key, left, right])
    listed = _POLARS_NEAR.format(texts=list(near), keys=list(near.values()), source=from_row, target=to_row)
    return f"""{_head(readers)}{head}

source = {source}.with_row_index("{from_row}")
target = {target}.with_row_index("{to_row}")
{names}keys = target.select("{to_row}", ({key}).alias("meets")).drop_nulls().filter(pl.len().over("meets") == 1)
waiting, found = source, []
for program in programs:
    met = waiting.select("{from_row}", program.alias("meets")).join(keys, on="meets"){once}
    found.append(met.select("{from_row}", "{to_row}"))
    waiting = waiting.join(met, on="{from_row}", how="anti")
    {f"keys = keys.join(met, on='{to_row}', how='anti')" if plan.single else "pass"}
{listed if near else ""}pairs = pl.concat(found)
joined = {joined}.drop("{from_row}", "{to_row}")
"""


_POLARS_NEAR = """near = pl.DataFrame({{"text": {texts!r}, "meets": {keys!r}}})
written = waiting.select("{source}", pl.coalesce(programs).alias("text"))
found.append(written.join(near, on="text").join(keys, on="meets").select("{source}", "{target}"))
"""


def _polars_key(outputs: Sequence[str]) -> str:
    return outputs[0] if len(outputs) == 1 else f"pl.concat_str([{', '.join(outputs)}], separator={BETWEEN!r})"


def _polars_helpers(code: Sequence[str]) -> str:
    return _POLARS_HELPERS.format(alphabet=_alphabet("\n".join(code)))


def _alphabet(code: str) -> str:
    """The tables of characters that some code uses."""
    tables = {"SPACES": SPACES, "LARGE": LARGE, "SMALL": SMALL, "PUNCTUATION": PUNCTUATION}
    tables |= {"ACCENTED": ACCENTED, "BARE": BARE}
    return "\n".join(f"{name} = {table!r}" for name, table in tables.items() if name in code)


# --- Python -----------------------------------------------------------------------------------------------------------


def _python_cell(column: str) -> str:
    return f"cell(row, {column!r})"


def _python_step(step: Step, text: str) -> str:
    if isinstance(step, SplitPiece):
        return f"split({text}, {step.separator!r}, {step.index})"
    if isinstance(step, Run):
        return f"run({text}, {RUNS[step.kind]!r}, {step.index})"
    if isinstance(step, Slice):
        return f"({text})[{step.start or ''}:{'' if step.stop is None else step.stop}]"
    if isinstance(step, Case):
        if step.kind == "capital":
            return f"capital({text})"
        return f"changed({text}, {'LARGE, SMALL' if step.kind == 'lower' else 'SMALL, LARGE'})"
    if isinstance(step, Digits):
        return f"digits({text}, {step.width})"
    if isinstance(step, Month):
        return f"{MONTH_FORMS[step.form]!r}.get(changed({text}, LARGE, SMALL), '')"
    if isinstance(step, Initials):
        return f"re.sub({INITIALS!r}, r'\\1', {text}).replace(' ', '')"
    if isinstance(step, Drop):
        return f"{text}.translate(str.maketrans('', '', PUNCTUATION))"
    return f"changed({text}, ACCENTED, BARE)"


_PYTHON_HELPERS = """import csv
import re
from collections import Counter

{alphabet}


def rows_of(path, names=None, skip=0, encoding="utf-8-sig", opened=open, **dialect):
    csv.field_size_limit(2**31 - 1)
    with opened(path, "rt", encoding=encoding, newline="") as file:
        for _ in range(skip):
            file.readline()
        rows = csv.reader(file, **dialect)
        names = names or next(rows)
        return [{{name: text.strip(SPACES) or None for name, text in zip(names, row)}} for row in rows if row]


def cell(row, name):
    return str(row.get(name) or "").strip(SPACES)


def split(text, separator, index):
    pieces = text.split(separator)
    return pieces[index] if -len(pieces) <= index < len(pieces) else ""


def run(text, pattern, index):
    runs = re.findall(pattern, text)
    return runs[index] if -len(runs) <= index < len(runs) else ""


def changed(text, before, after):
    return text.translate(str.maketrans(before, after))


def capital(text):
    return changed(text[:1], SMALL, LARGE) + changed(text[1:], LARGE, SMALL)


def digits(text, width):
    return text.lstrip("0").rjust(width, "0") if re.fullmatch("[0-9]+", text) else ""


def written(*parts):
    return "".join(parts) if all(parts) else ""
"""


def python_functions(code: Sequence[str]) -> str:
    """Functions and tables that Python code of programs uses."""
    return _PYTHON_HELPERS.format(alphabet=_alphabet("\n".join([*code, "SPACES LARGE SMALL"])))


def _python_join(plan: Plan, near: Near) -> str:
    readers = _readers(plan, "python")
    left, right = (reader.code for reader in readers)
    forward = plan.direction == "left->right"
    made = [
        f"({', '.join(_written(each.operators, 'python') for each in program.outputs)},)" for program in plan.programs
    ]
    key = f"({', '.join(_piece(piece, 'python') for piece in plan.programs[0].keys)},)"
    names = f"programs = [\n    {f',{chr(10)}    '.join(f'lambda row: {each}' for each in made)},\n]"
    apart = {tuple(text.split(BETWEEN)): tuple(key.split(BETWEEN)) for text, key in near.items()}
    listed = _PYTHON_NEAR.format(near=apart) if near else ""
    pair = "left[mine], right[other]" if forward else "left[other], right[mine]"
    return f"""{_head(readers)}{python_functions([*made, key])}

left = {left}
right = {right}
source, target = {"left, right" if forward else "right, left"}
{names}
met = [{key} for row in target]
times = Counter(met)
keys = {{key: number for number, key in enumerate(met) if all(key) and times[key] == 1}}
pairs, waiting = {{}}, range(len(source))
for program in programs:
    made = {{number: program(source[number]) for number in waiting}}
    claims = Counter(made.values())
    hits = {{n: key for n, key in made.items() if key in keys{" and claims[key] == 1" if plan.single else ""}}}
    pairs |= {{number: keys[key] for number, key in hits.items()}}
    waiting = [number for number in waiting if number not in hits]
    {"keys = {key: n for key, n in keys.items() if key not in set(hits.values())}" if plan.single else "pass"}
{listed}joined = [({pair}) for mine, other in sorted(pairs.items())]
"""


_PYTHON_NEAR = """near = {near!r}
for number in waiting:
    texts = [text for program in programs if all(text := program(source[number]))]
    if texts and near.get(texts[0]) in keys:
        pairs[number] = keys[near[texts[0]]]
"""


_CELLS: dict[str, Callable[[str], str]] = {
    "python": _python_cell,
    "polars": _polars_cell,
    **{dialect: functools.partial(_sql_cell, dialect=dialect) for dialect in ("spark", "sql", "duckdb")},
}
