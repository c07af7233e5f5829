"""Ready code for joins and correlations that were found, in the dialect of one's choice.

Values meet in the index in canonical form. The code brings keys to one form only where their columns need it: numbers,
days and times where they are written in several ways, letters beyond ASCII. How tables are read is written by
:mod:`lakescope.search.reading_code`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from lakescope.engines.joins.answers import DIALECTS
from lakescope.errors import BadRequest, LakescopeError
from lakescope.search.reading_code import (
    FRAME,
    Reader,
    Side,
    identifier,
    literal,
    path_of,
    reader_of,
    side_of,
)
from lakescope.values.canonical import Kind
from lakescope.values.cells import Cells, understand

__all__ = [
    "FRAME",
    "INFINITE",
    "Keyed",
    "Side",
    "augment_code",
    "correlation_code",
    "join_code",
    "path_code",
    "renamed",
    "side_of",
]

#: Told among the kinds of a column that has infinite numbers, which take part in no coefficient.
INFINITE = "infinite"
#: Cells of a query that are looked at to see how its values are written.
_LOOKED_AT = 1000
#: White space around a text, of Unicode too, in Java.
_PADDED = r"(?U)^\s+|\s+$"
#: What SQL strips only if told to: tabulators and no-break spaces.
_BLANKS = "\t\u00a0"
#: What is no value in the index.
_MARKERS = tuple(r"|-|--|\N|NA|N/A|n/a|#NA|#N/A|#N/A N/A|<NA>|NULL|null|None|NaN|nan|-NaN|-nan".split("|"))
_CODE = "^[-+]?0[0-9]"
#: What systems take for a number, and the index does not: codes, and words for nothing.
_NO_NUMBER = "^[ ]*[-+]?(?:0[0-9]|[nN][aA][nN]|[iI][nN][fF])"
#: How Arrow, Parquet and databases call columns of floating-point numbers.
_FLOATS = ("double", "float", "real", "halffloat", "decimal", "numeric")


# --- how keys are compared --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Form:
    """What two columns need to meet: keys as numbers, as moments, as text in one form; codes stay as they are.

    ``empty`` says that both have cells that stand for nothing, which are no keys.
    """

    number: bool = False
    moment: bool = False
    text: bool = False
    codes: bool = False
    empty: bool = False
    boolean: bool = False
    zoned: bool = False

    @classmethod
    def of(cls, left: Side, right: Side) -> Form:
        both = {*left.kinds, *right.kinds}
        numbers = all({"integer", "decimal"} & {*side.kinds} for side in (left, right))
        floats = any(side.source_type.lower().startswith(_FLOATS) for side in (left, right))
        moments = all({"date", "time", "timestamp"} & {*side.kinds} for side in (left, right))
        written = {side.patterns for side in (left, right)}
        plain = len(written) == 1 and all(len(patterns) == 1 for patterns in written)
        return cls(
            number=numbers and (floats or "decimal" in both or _signed(left) or _signed(right)),
            moment=moments and not (plain and left.source_type == right.source_type == "text"),
            text=left.wide or right.wide,
            codes="code" in both,
            empty=left.empty and right.empty,
            zoned=moments and "timestamp" in left.kinds and "timestamp" in right.kinds,
            boolean="boolean" in left.kinds and "boolean" in right.kinds,
        )

    def told(self, dialect: str) -> list[str]:
        """What is said of keys in comments."""
        said = []
        if self.number and dialect == "sql":
            said.append("Keys are compared as numbers.")
        if self.text and dialect in ("spark", "sql"):
            said.append(
                f"{'Spark' if dialect == 'spark' else 'SQL'} does not compose letters with their accents (NFC)."
            )
        if self.zoned:
            said.append("Days and times are compared as moments, those with a time zone as this system reads them.")
        return said


def _signed(side: Side) -> bool:
    return any(pattern.startswith("+") for pattern in side.patterns)


def known(query: Any, side: Side) -> Side:
    """The side of a query from outside the lake, with what its first cells tell of how its values are written."""
    from lakescope.tables.reading import opened

    with suppress(LakescopeError), opened(query) as batches:
        for batch in islice(batches, 1):
            for column in batch.columns:
                if column.name == side.column:
                    return _looked_at(side, understand(column, batch.fallback), _type_of(query, side))
    return side


def _type_of(query: Any, side: Side) -> str:
    if side.format in ("csv", "json", "jsonl"):
        return "text"
    return "text" if isinstance(query, str) and side.format == "excel" else "typed"


def _looked_at(side: Side, cells: Cells, source_type: str) -> Side:
    texts = [
        cells.written[start:end].tobytes().decode("utf-8", "replace")
        for start, end in islice(zip(cells.wstarts.tolist(), cells.wends.tolist(), strict=True), _LOOKED_AT)
    ]
    kinds = tuple(Kind(int(kind)).name.lower() for kind in np.unique(cells.kinds))
    if any(text.lstrip("+-").lower().startswith("inf") for text in texts):
        kinds = (*kinds, INFINITE)
    patterns = tuple(sorted({"".join("9" if c.isdigit() else "A" if c.isalpha() else c for c in t) for t in texts}))
    if source_type == "typed" and "decimal" not in kinds:
        # Floating-point numbers that are whole are written without a point here, with one elsewhere.
        source_type = "double" if "integer" in kinds else "typed"
    return replace(
        side,
        kinds=kinds,
        source_type=source_type,
        patterns=patterns[:2],
        empty=bool(cells.empty or cells.markers),
        wide=any(not text.isascii() for text in texts),
    )


def _sql_key(name: str, side: Side, form: Form) -> str:
    """A key in DuckDB's SQL."""
    text = _sql_text(name, form)
    if form.number or form.moment:
        as_type = "DOUBLE" if form.number else "TIMESTAMP"
        value = f"CAST(TRY_CAST({text} AS {as_type}) AS VARCHAR)"
        if form.number and form.codes:
            value = f"CASE WHEN NOT REGEXP_MATCHES({text}, {literal(_CODE)}) THEN {value} END"
        text = f"COALESCE({value}, {text})"
    elif form.boolean:
        text = f"CASE WHEN LOWER({text}) IN ('true', 'false') THEN LOWER({text}) ELSE {text} END"
    return text


def _sql_text(name: str, form: Form) -> str:
    text = f"CAST({name} AS VARCHAR)"
    if not form.text:
        return f"TRIM({text})"
    blanks = " || ".join(f"CHR({ord(each)})" for each in _BLANKS)
    return f"TRIM(NFC_NORMALIZE({text}), ' ' || {blanks})"


def _plain_key(name: str, side: Side, form: Form) -> str:
    """A key in SQL of no system in particular."""
    if form.number and "text" not in side.kinds:
        return f"CAST({name} AS DOUBLE PRECISION)"
    if form.moment and "text" not in side.kinds:
        return f"CAST({name} AS TIMESTAMP)"
    return f"TRIM(CAST({name} AS VARCHAR))"


def _polars_key(side: Side, form: Form) -> str:
    first, *inner = path_of(side)
    text = f"pl.col({first!r})" + "".join(f".struct.field({name!r})" for name in inner) + ".cast(pl.String)"
    text += ".str.normalize('NFC')" if form.text else ""
    text += ".str.strip_chars()"
    for needed, name in ((form.number, "number"), (form.moment, "moment"), (form.boolean, "truth")):
        if needed:
            return f"{name}({text})"
    return text


_POLARS_FORMS = {
    "number": '''def number(text):
    """Numbers in one form; what is none stays as it is."""
    return pl.coalesce({guarded}text.cast(pl.Float64, strict=False).cast(pl.String){closed}, text)
''',
    "moment": '''def moment(text):
    """Days and times in one form; what is neither stays as it is."""
    plain = text.str.replace("T", " ", literal=True)
    forms = [plain.str.to_datetime(form, strict=False, time_unit="us") for form in ("%F %T%.f", "%F %R")]
    days = plain.str.to_date("%F", strict=False).cast(pl.Datetime("us"))
    return pl.coalesce([*forms, days]).cast(pl.String).fill_null(text)
''',
    "truth": '''def truth(text):
    """True and false in one form."""
    small = text.str.to_lowercase()
    return pl.when(small.is_in(["true", "false"])).then(small).otherwise(text)
''',
}


def _polars_forms(forms: Sequence[Form]) -> str:
    """Functions that bring keys to one form, those that are needed."""
    needed = {
        "number": any(form.number for form in forms),
        "moment": any(form.moment and not form.number for form in forms),
        "truth": any(form.boolean and not (form.number or form.moment) for form in forms),
    }
    codes = any(form.codes for form in forms)
    guarded = f"pl.when(~text.str.contains({_CODE!r})).then(" if codes else ""
    texts = [_POLARS_FORMS[name] for name, wanted in needed.items() if wanted]
    filled = [text.replace("{guarded}", guarded).replace("{closed}", ")" if codes else "") for text in texts]
    return "".join(f"\n\n{text}" for text in filled) + ("\n" if filled else "")


def _spark_name(names: Sequence[str]) -> str:
    return ".".join("`" + name.replace("`", "``") + "`" for name in names)


def _spark_key(table: str, side: Side, form: Form) -> str:
    name = _spark_name(path_of(side))
    column = f"{table}[{name!r}]" if table else f"F.col({name!r})"
    text = f"F.trim({column}.cast('string'))"
    if form.text:
        text = f"F.regexp_replace({column}.cast('string'), {_PADDED!r}, '')"
    if form.number or form.moment:
        value = f"{text}.try_cast('{'double' if form.number else 'timestamp_ntz'}').cast('string')"
        value = f"F.when(~{text}.rlike({_CODE!r}), {value})" if form.number and form.codes else value
        return f"F.coalesce({value}, {text})"
    if form.boolean:
        return f"F.when(F.lower({text}).isin('true', 'false'), F.lower({text})).otherwise({text})"
    return text


# --- joins ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Link:
    """One join of a path: a column of a table, and that of the next."""

    left: Side
    right: Side

    @property
    def form(self) -> Form:
        return Form.of(self.left, self.right)


def join_code(left: Side, right: Side, dialect: str) -> str:
    """Code that joins two tables, keeping all rows of the left one."""
    return path_code([(left, right)], dialect)


def path_code(joins: Sequence[tuple[Side, Side]], dialect: str) -> str:
    """Code that joins tables one after the other, keeping all rows of the first."""
    _check(dialect)
    links = [Link(left, right) for left, right in joins]
    names = ["mine", "found"] if len(links) == 1 else ["mine", *(f"found{n + 1}" for n in range(len(links)))]
    # A table is read once, for all its columns that are keys.
    columns = [[links[0].left], *([a.right, b.left] for a, b in pairwise(links)), [links[-1].right]]
    readers = [_reader(each, dialect) for each in columns]
    told = _told(readers, [link.form for link in links], dialect)
    if dialect in ("sql", "duckdb"):
        return _join_sql(links, names, readers, told, dialect)
    return (_join_polars if dialect == "polars" else _join_spark)(links, names, readers, told)


def _check(dialect: str) -> None:
    if dialect not in DIALECTS:
        raise BadRequest(f"no dialect {dialect!r}", hint=f"use {', '.join(DIALECTS)}")


def _reader(sides: Sequence[Side], dialect: str) -> Reader:
    """A reader that knows all these columns of a table."""
    readers = [reader_of(side, dialect) for side in sides]
    return next((each for each in readers if "lakescope" in each.code.split(".")[0]), readers[0])


def _told(readers: Sequence[Reader], forms: Sequence[Form], dialect: str) -> list[str]:
    notes = [reader.note for reader in readers if reader.note]
    return list(dict.fromkeys([*notes, *(line for form in forms for line in form.told(dialect))]))


def _imports(readers: Sequence[Reader], *more: str) -> str:
    return "\n".join(sorted({line for reader in readers for line in reader.imports} | set(more)))


def _field(alias: str, side: Side, reader: Reader) -> str:
    """A column in SQL; a field of another one where the reader keeps these nested."""
    names = path_of(side) if reader.sql and not reader.imports else (side.column,)
    return ".".join([*([alias] if alias else []), *map(identifier, names)])


def _flat(side: Side, reader: Reader) -> Side:
    """A side whose columns lakescope has laid flat."""
    return replace(side, format="read") if "import lakescope" in reader.imports else side


def _join_sql(
    links: Sequence[Link], names: Sequence[str], readers: Sequence[Reader], told: list[str], dialect: str
) -> str:
    key = _plain_key if dialect == "sql" else _sql_key
    tables = [reader.code if reader.sql else f"{name}_table" for name, reader in zip(names, readers, strict=True)]
    lines = [f"SELECT {', '.join(f'{name}.*' for name in names)}", f"FROM {tables[0]} AS {names[0]}"]
    for n, link in enumerate(links):
        mine, other = (_field(names[n + at], side, readers[n + at]) for at, side in enumerate((link.left, link.right)))
        left, right = key(mine, link.left, link.form), key(other, link.right, link.form)
        lines.append(f"LEFT JOIN {tables[n + 1]} AS {names[n + 1]}")
        lines.append(f"  ON {left} = {right}{_real_sql(left, link.form)}")
    return as_sql("\n".join(lines) + ";", names, readers, told, "joined")


def _real_sql(key: str, form: Form) -> str:
    """A condition that a key is none of the texts that stand for nothing."""
    return f"\n  AND {key} NOT IN ({', '.join(map(literal, _MARKERS))})" if form.empty else ""


def as_sql(sql: str, names: Sequence[str], readers: Sequence[Reader], told: Sequence[str], result: str) -> str:
    """A statement, within Python if Python has to read one of its tables."""
    loaded = [(name, reader) for name, reader in zip(names, readers, strict=True) if not reader.sql]
    if not loaded:
        return "\n".join([*(f"-- {line}" for line in told), sql])
    quoted = repr(sql) if '"""' in sql or "\\" in sql else f'"""\n{sql}\n"""'
    tables = "\n".join(f"{name}_table = {reader.code}" for name, reader in loaded)
    imports = _imports(readers, "import duckdb")
    lines = [f"# {line}" for line in ("Python: SQL alone cannot read these tables.", *told)]
    return "\n".join(lines) + f"\n{imports}\n\n{tables}\n{result} = duckdb.sql({quoted})"


def _join_polars(links: Sequence[Link], names: Sequence[str], readers: Sequence[Reader], told: list[str]) -> str:
    lines = [f"{name} = {reader.code}" for name, reader in zip(names, readers, strict=True)]
    joined = names[-1]
    for n, link in reversed(list(enumerate(links))):
        left, right = (
            _polars_key(_flat(side, readers[n + at]), link.form) for at, side in enumerate((link.left, link.right))
        )
        if link.form.empty:
            left = f"real({left})"
        suffix = "" if len(links) == 1 else f", suffix='_{n + 1}'"
        lines.append(f"joined = {names[n]}.join({joined}, left_on={left}, right_on={right}, how='left'{suffix})")
        joined = "joined"
    return _python(lines, links, readers, told, "import polars as pl", _polars_head([link.form for link in links]))


def _polars_head(forms: Sequence[Form]) -> str:
    real = f'''

def real(text):
    """No key where nothing is there."""
    return pl.when(~text.is_in({list(_MARKERS)!r})).then(text)

'''
    return (real if any(form.empty for form in forms) else "") + _polars_forms(forms)


def _join_spark(links: Sequence[Link], names: Sequence[str], readers: Sequence[Reader], told: list[str]) -> str:
    lines = [f"{name} = {reader.code}" for name, reader in zip(names, readers, strict=True)]
    joined = names[0]
    for n, link in enumerate(links):
        left, right = (
            _spark_key(names[n + at], _flat(side, readers[n + at]), link.form)
            for at, side in enumerate((link.left, link.right))
        )
        real = f" & ~{left}.isin({', '.join(map(repr, _MARKERS))})" if link.form.empty else ""
        on = f"({left} == {right}){real}" if real else f"{left} == {right}"
        lines.append(f"joined = {joined}.join({names[n + 1]}, {on}, 'left')")
        joined = "joined"
    return _python(lines, links, readers, told, "from pyspark.sql import functions as F", "")


def _python(
    lines: Sequence[str], links: Sequence[Link], readers: Sequence[Reader], told: Sequence[str], own: str, head: str
) -> str:
    said = [f"# {line}" for line in told]
    return "\n".join([*said, _imports(readers, own)]) + (head or "\n") + "\n" + "\n".join(lines)


#: What stands before a table in SQL.
_BEFORE = ("FROM ", "JOIN ")


def renamed(code: str, path: str, name: str) -> str:
    """Code that calls a file by another name, in every way a dialect writes it."""
    one, other = PurePosixPath(path), PurePosixPath(name)
    pairs = [
        (repr(path), repr(name)),
        (path, name),
        *((word + identifier(one.name.split(".")[0]), word + identifier(other.name.split(".")[0])) for word in _BEFORE),
        (f"{one.name} is read by", f"{other.name} is read by"),
    ]
    # What a reader of SQL is given is a text of SQL, whatever Python stands around it.
    in_sql = re.compile(rf"((?:FROM|JOIN) \w+\(){re.escape(literal(path))}")
    code = in_sql.sub(lambda found: found[1] + literal(name), code)
    for old, new in pairs:
        code = code.replace(old, new)
    return code


# --- joins by key, for correlations -----------------------------------------------------------------------------------

_SQL_AGGREGATES = {"mean": "AVG", "sum": "SUM", "min": "MIN", "max": "MAX", "count": "COUNT"}
#: Those that DuckDB computes to the last digits: means that should be equal tie.
_EXACT_AGGREGATES = {**_SQL_AGGREGATES, "mean": "FAVG", "sum": "FSUM"}
_FRAME_AGGREGATES = {"mean": "mean", "sum": "sum", "min": "min", "max": "max", "count": "count"}
#: Coefficients that code computes; of others, the nearest that it does.
_COMPUTED = {
    "polars": ("pearson", "spearman", "rin", "kendall"),
    "spark": ("pearson", "spearman", "kendall"),
    "duckdb": ("pearson", "spearman", "kendall"),
    "sql": ("pearson", "spearman", "kendall"),
}
_NEAREST = {"rin": "spearman", "qn": "spearman", "pm1": "pearson", "qcr": "spearman"}
_CALLED = {
    "pearson": "Pearson's coefficient",
    "spearman": "the coefficient of ranks (Spearman's)",
    "rin": "the coefficient of normal scores (rin)",
    "kendall": "Kendall's tau-b",
}


@dataclass(frozen=True, slots=True)
class Keyed:
    """One side of a join by key: a table, the columns of its key, and how its column of numbers is aggregated.

    ``keys`` is the key as sides, with what is known of how their values are written.
    """

    side: Side
    key: tuple[str, ...]
    aggregate: str
    keys: tuple[Side, ...] = ()

    @property
    def column(self) -> str:
        return self.side.column

    @property
    def key_sides(self) -> tuple[Side, ...]:
        return self.keys or tuple(replace(self.side, column=name, kinds=(), patterns=()) for name in self.key)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What code of a correlation has to do: both sides, their readers, the forms of keys, the coefficient."""

    sides: tuple[Keyed, Keyed]
    readers: tuple[Reader, Reader]
    forms: tuple[Form, ...]
    coefficient: str
    told: tuple[str, ...]


def correlation_code(left: Keyed, right: Keyed, dialect: str, coefficient: str = "pearson") -> str:
    """Code that aggregates two tables by key, joins them, and computes a coefficient, or the nearest it can."""
    _check(dialect)
    _check_aggregates((left, right))
    computed = coefficient if coefficient in _COMPUTED[dialect] else _NEAREST.get(coefficient, "pearson")
    forms = tuple(Form.of(mine, other) for mine, other in zip(left.key_sides, right.key_sides, strict=True))
    readers = tuple(_reader([each.side, *each.key_sides], dialect) for each in (left, right))
    told = _told(readers, forms, dialect)
    if computed != coefficient:
        told.insert(0, f"This computes {_CALLED[computed]}: {coefficient}, which was told, is not offered here.")
    asked = _Asked((left, right), (readers[0], readers[1]), forms, computed, tuple(told))
    if dialect in ("sql", "duckdb"):
        return _correlation_sql(asked, dialect)
    return (_correlation_polars if dialect == "polars" else _correlation_spark)(asked)


def _check_aggregates(sides: Sequence[Keyed]) -> None:
    for each in sides:
        if each.aggregate not in _SQL_AGGREGATES:
            hint = "first and last depend on an order of rows that other systems do not keep"
            raise BadRequest(f"no code for the aggregate {each.aggregate!r}", hint=hint)


def _ranked(over: str) -> str:
    """Ranks in SQL, equal values sharing the middle of theirs."""
    return f"RANK() OVER (ORDER BY {over}) + (COUNT(*) OVER (PARTITION BY {over}) - 1) / 2.0"


#: Statements over pairs, by coefficient.
_SQL_COEFFICIENTS = {
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


def _correlation_sql(asked: _Asked, dialect: str) -> str:
    names = ("mine", "found")
    # Where only the order counts, means that differ by their last digit are no tie.
    exactly = dialect == "duckdb" and asked.coefficient != "pearson"
    aggregates = _EXACT_AGGREGATES if exactly else _SQL_AGGREGATES

    def grouped(at: int) -> str:
        each, reader = asked.sides[at], asked.readers[at]
        source = reader.code if reader.sql else f"{names[at]}_table"
        return _grouped_sql(each, reader, source, asked.forms, dialect, aggregates, only_real=at == 0)

    on = " AND ".join(f"mine.k{i} = found.k{i}" for i in range(len(asked.forms)))
    real = "mine.v IS NOT NULL AND found.v IS NOT NULL"
    joined = f"  FROM {grouped(0)} AS mine\n  JOIN {grouped(1)} AS found\n    ON {on}\n  WHERE {real}"
    pairs = f"WITH pairs AS (\n  SELECT mine.v AS x, found.v AS y\n{joined})"
    sql = f"{pairs}\n{_SQL_COEFFICIENTS[asked.coefficient]}"
    return as_sql(sql, names, asked.readers, asked.told, "found")


def _grouped_sql(
    each: Keyed,
    reader: Reader,
    source: str,
    forms: Sequence[Form],
    dialect: str,
    aggregates: Mapping[str, str],
    *,
    only_real: bool = False,
) -> str:
    """One side aggregated by key: ``k0``, ``k1``, and ``v``."""
    key_of = _plain_key if dialect == "sql" else _sql_key
    keys = [key_of(_field("", side, reader), side, form) for side, form in zip(each.key_sides, forms, strict=True)]
    shown = ", ".join(f"{key} AS k{i}" for i, key in enumerate(keys))
    number = f"{aggregates[each.aggregate]}({_sql_number(_field('', each.side, reader), each.side, dialect)})"
    number = f"{f'NULLIF({number}, 0)' if each.aggregate == 'count' else number} AS v"
    real = [
        f"{key} NOT IN ({', '.join(map(literal, _MARKERS))})"
        for key, form in zip(keys, forms, strict=True)
        if form.empty and only_real
    ]
    where = f" WHERE {' AND '.join(real)}" if real else ""
    places = ", ".join(str(i + 1) for i in range(len(keys)))
    return f"(SELECT {shown}, {number} FROM {source}{where} GROUP BY {places})"


def _is_doubtful(side: Side) -> bool:
    """Whether a column of numbers has texts that other systems would take for numbers, too."""
    return side.empty or "code" in side.kinds or INFINITE in side.kinds


def _sql_number(column: str, side: Side, dialect: str) -> str:
    """A cell as a number, null if it is none."""
    if dialect == "duckdb" and _is_doubtful(side):
        text = f"CAST({column} AS VARCHAR)"
        return f"TRY_CAST(CASE WHEN NOT REGEXP_MATCHES({text}, {literal(_NO_NUMBER)}) THEN {text} END AS DOUBLE)"
    return f"TRY_CAST({column} AS DOUBLE)"


_POLARS_COEFFICIENTS = {
    "pearson": ("pl.corr('mine', 'found')", ""),
    "spearman": ("pl.corr(pl.col('mine').rank('average'), pl.col('found').rank('average'))", ""),
    "rin": (
        "pl.corr(scores('mine'), scores('found'))",
        '''

def scores(name):
    """Normal scores of ranks."""
    share = (pl.col(name).rank("average") - 0.5) / pl.len()
    return share.map_elements(NormalDist().inv_cdf, return_dtype=pl.Float64)

''',
    ),
    "kendall": ("(dx * dy).sum() / (dx.abs().sum() * dy.abs().sum()).sqrt()", ""),
}


def _grouped_polars(
    name: str, each: Keyed, reader: Reader, forms: Sequence[Form], on: Sequence[str], called: str
) -> str:
    """One side aggregated by key, which goes by the names of ``on``."""
    keys = [_polars_key(_flat(side, reader), form) for side, form in zip(each.key_sides, forms, strict=True)]
    keys = [f"real({key})" if form.empty else key for key, form in zip(keys, forms, strict=True)]
    first, *inner = path_of(_flat(each.side, reader))
    column = f"pl.col({first!r})" + "".join(f".struct.field({part!r})" for part in inner)
    is_text = each.side.format == "csv" or reader.imports == ("import lakescope",)
    column += ".str.strip_chars()" if is_text else ""
    if _is_doubtful(each.side):
        text = column if is_text else f"{column}.cast(pl.String)"
        column = f"pl.when(~{text}.str.contains({_NO_NUMBER!r})).then({text}).otherwise(None)"
    number = f"{column}.cast(pl.Float64, strict=False)"
    aggregated = f"{number}.{_FRAME_AGGREGATES[each.aggregate]}()"
    if each.aggregate in ("sum", "count"):
        # Where there is no number there is nothing to add up or count, not 0.
        aggregated = f"pl.when({number}.count() > 0).then({aggregated})"
    shown = ", ".join(f"{key}.alias({alias!r})" for key, alias in zip(keys, on, strict=True))
    return f"{name} = {reader.code}.group_by({shown}).agg({aggregated}.alias({called!r}))"


def _correlation_polars(asked: _Asked) -> str:
    on = [f"k{i}" for i in range(len(asked.forms))]
    expression, helper = _POLARS_COEFFICIENTS[asked.coefficient]
    sides = zip(("mine", "found"), asked.sides, asked.readers, strict=True)
    lines = [_grouped_polars(name, each, reader, asked.forms, on, name) for name, each, reader in sides]
    lines.append(f"joined = mine.join(found, on={on!r}).drop_nulls()")
    if asked.coefficient == "kendall":
        lines.append("dx, dy = ((pl.col(name) - pl.col(name + '_right')).sign() for name in ('mine', 'found'))")
        lines.append("pairs = joined.select('mine', 'found')")
        lines.append(f"coefficient = pairs.join(pairs, how='cross').select({expression}).item()")
    else:
        lines.append(f"coefficient = joined.select({expression}).item()")
    lines.append("print(coefficient, joined.height)")
    more = ("from statistics import NormalDist",) if helper else ()
    head = _polars_head(asked.forms) + helper
    text = "\n".join([*(f"# {line}" for line in asked.told), _imports(asked.readers, "import polars as pl", *more)])
    return text + (head or "\n") + "\n" + "\n".join(lines)


def _grouped_spark(
    name: str, each: Keyed, reader: Reader, forms: Sequence[Form], on: Sequence[str], called: str
) -> str:
    """One side aggregated by key, which goes by the names of ``on``."""
    keys = [_spark_key("", _flat(side, reader), form) for side, form in zip(each.key_sides, forms, strict=True)]
    shown = ", ".join(f"{key}.alias({alias!r})" for key, alias in zip(keys, on, strict=True))
    column = _spark_name(path_of(_flat(each.side, reader)))
    cell = f"CASE WHEN NOT {column} RLIKE '{_NO_NUMBER}' THEN {column} END" if _is_doubtful(each.side) else column
    number = f"F.{_FRAME_AGGREGATES[each.aggregate]}(F.expr({f'TRY_CAST({cell} AS DOUBLE)'!r}))"
    number = f"F.nullif({number}, F.lit(0))" if each.aggregate == "count" else number
    return f"{name} = {reader.code}.groupBy({shown}).agg({number}.alias({called!r}))"


def _correlation_spark(asked: _Asked) -> str:
    on = [f"k{i}" for i in range(len(asked.forms))]
    imports = _imports(asked.readers, "from pyspark.sql import functions as F")
    filled = [
        f".where(~F.col({alias!r}).isin({', '.join(map(repr, _MARKERS))}))"
        for alias, form in zip(on, asked.forms, strict=True)
        if form.empty
    ]
    sides = zip(("mine", "found"), asked.sides, asked.readers, strict=True)
    lines = [_grouped_spark(name, each, reader, asked.forms, on, name) for name, each, reader in sides]
    lines[0] += "".join(filled)
    lines.append(
        f"pairs = mine.join(found, {on!r}).select(F.col('mine').alias('x'), F.col('found').alias('y')).dropna()"
    )
    if asked.coefficient == "pearson":
        lines.append("found = pairs.select(F.corr('x', 'y'), F.count('*'))")
    else:
        statement = _SQL_COEFFICIENTS[asked.coefficient].rstrip(";").replace("FROM pairs", "FROM {pairs}")
        statement = statement.replace("CROSS JOIN pairs", "CROSS JOIN {pairs}")
        lines.append(f'found = spark.sql("""\n{statement}""", pairs=pairs)')
    lines.append("found.show()")
    return "\n".join([*(f"# {line}" for line in asked.told), imports, "", *lines])


# --- columns joined in ------------------------------------------------------------------------------------------------


def augment_code(keys: Sequence[Sequence[Side]], founds: Sequence[Keyed], called: Sequence[str], dialect: str) -> str:
    """Code that joins columns into a table: each aggregated by its key, and the table keeps all its rows.

    ``keys`` are the columns of the table's key in the order of each find's, ``called`` the names of the new columns.
    """
    _check(dialect)
    _check_aggregates(founds)
    forms = [
        [Form.of(*pair) for pair in zip(key, each.key_sides, strict=True)]
        for key, each in zip(keys, founds, strict=True)
    ]
    mine = _reader([side for key in keys for side in key], dialect)
    readers = [_reader([each.side, *each.key_sides], dialect) for each in founds]
    told = _told([mine, *readers], [form for some in forms for form in some], dialect)
    names = [f"found{n + 1}" for n in range(len(founds))] if len(founds) > 1 else ["found"]
    tables = _Tables(mine, tuple(readers), tuple(zip(names, keys, founds, readers, forms, called, strict=True)), told)
    if dialect in ("sql", "duckdb"):
        return _augment_sql(tables, dialect)
    return _augment_frames(tables, dialect)


@dataclass(frozen=True, slots=True)
class _Tables:
    """A table and what is joined into it: of each find its name, the key here, itself, its reader, forms, and title."""

    mine: Reader
    readers: tuple[Reader, ...]
    parts: tuple[tuple[str, Sequence[Side], Keyed, Reader, list[Form], str], ...]
    told: list[str]


def _augment_sql(tables: _Tables, dialect: str) -> str:
    key_of = _plain_key if dialect == "sql" else _sql_key
    mine = tables.mine
    shown = ["mine.*", *(f"{name}.v AS {identifier(called)}" for name, *_, called in tables.parts)]
    lines = [f"SELECT {', '.join(shown)}", f"FROM {mine.code if mine.sql else 'mine_table'} AS mine"]
    for name, key, each, reader, forms, _ in tables.parts:
        source = reader.code if reader.sql else f"{name}_table"
        lines.append(f"LEFT JOIN {_grouped_sql(each, reader, source, forms, dialect, _SQL_AGGREGATES)} AS {name}")
        texts = [key_of(_field("mine", side, mine), side, form) for side, form in zip(key, forms, strict=True)]
        on = [f"{text} = {name}.k{i}{_real_sql(text, forms[i])}" for i, text in enumerate(texts)]
        lines.append("  ON " + "\n  AND ".join(on))
    names = ["mine", *(name for name, *_ in tables.parts)]
    return as_sql("\n".join(lines) + ";", names, [mine, *tables.readers], tables.told, "joined")


def _augment_frames(tables: _Tables, dialect: str) -> str:
    is_polars = dialect == "polars"
    grouped = _grouped_polars if is_polars else _grouped_spark
    lines, joined = [f"mine = {tables.mine.code}"], "mine"
    extra: list[str] = []
    for name, key, each, reader, forms, called in tables.parts:
        on = [f"k{i} of {name}" for i in range(len(key))]
        lines.append(grouped(name, each, reader, forms, on, called))
        sides = [_flat(side, tables.mine) for side in key]
        if is_polars:
            texts = [_polars_key(side, form) for side, form in zip(sides, forms, strict=True)]
            texts = [f"real({text})" if form.empty else text for text, form in zip(texts, forms, strict=True)]
            how = f"left_on=[{', '.join(texts)}], right_on={on!r}, how='left'"
        else:
            texts = [_spark_key("mine", side, form) for side, form in zip(sides, forms, strict=True)]
            equal = [f"({text} == {name}[{alias!r}])" for text, alias in zip(texts, on, strict=True)]
            markers = ", ".join(map(repr, _MARKERS))
            real = [f"~{text}.isin({markers})" for text, form in zip(texts, forms, strict=True) if form.empty]
            how = f"{' & '.join([*equal, *real])}, 'left'"
        lines.append(f"joined = {joined}.join({name}, {how})")
        joined, extra = "joined", [*extra, *on]
    lines.append(f"joined = joined.drop({', '.join(map(repr, extra))})")
    own = "import polars as pl" if is_polars else "from pyspark.sql import functions as F"
    head = _polars_head([form for _, _, _, _, forms, _ in tables.parts for form in forms]) if is_polars else ""
    return _python(lines, (), [tables.mine, *tables.readers], tables.told, own, head)
