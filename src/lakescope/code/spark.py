"""Spark: columns of PySpark for joins, one statement of SQL for learned joins; no Python function runs there."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lakescope.code.frames import FrameWriter
from lakescope.code.reading import Reader, TextLayout
from lakescope.code.sides import Side
from lakescope.code.sql import COEFFICIENTS, SqlWriter, identifier
from lakescope.code.writer import (
    CODE,
    MARKERS,
    NO_NUMBER,
    CodeKey,
    Grouped,
    Near,
    definitions,
    is_path,
    python_program,
)
from lakescope.engines.transforms.steps import Step
from lakescope.show.text import STEERING
from lakescope.sources.databases.postgres_uri import Address
from lakescope.values.alphabet import SPACES

if TYPE_CHECKING:
    from lakescope.engines.transforms.plan import Plan

#: White space around a text, of Unicode too, in Java.
_PADDED = r"(?U)^\s+|\s+$"


def _name(fields: Sequence[str]) -> str:
    return ".".join("`" + name.replace("`", "``") + "`" for name in fields)


#: What code uses of this is printed with it.
_FUNCTIONS = '''
def value(column):
    """A cell as a number, nothing where it is none."""
    return F.when(~column.cast("string").rlike(NO_NUMBER), column).try_cast("double")


def number(text):
    """Numbers in one form; what is none stays as it is."""
    return F.coalesce(F.when(~text.rlike(CODE), text.try_cast("double").cast("string")), text)


def moment(text):
    """Days and times in one form; what is neither stays as it is."""
    return F.coalesce(text.try_cast("timestamp_ntz").cast("string"), text)


def truth(text):
    """True and false in one form."""
    return F.when(F.lower(text).isin("true", "false"), F.lower(text)).otherwise(text)


def real(text):
    """No key where nothing is there."""
    return F.when(~text.isin(MARKERS), text)


def cells(frame):
    names = ["`" + name.replace("`", "``") + "`" for name in frame.columns]
    return frame.selectExpr(*(f"NULLIF(TRIM(BOTH '{SPACES}' FROM CAST({n} AS STRING)), '') AS {n}" for n in names))
'''


class Spark(FrameWriter):
    """Writes PySpark."""

    name = "spark"
    composes = False
    unpacks = ("gzip", "bz2")
    lacks = frozenset({"encodings", "mixed ends", "uneven header", "case", "skipping"})
    library = "from pyspark.sql import functions as F"
    coefficients = COEFFICIENTS
    definitions = definitions({"MARKERS": MARKERS, "CODE": CODE, "NO_NUMBER": NO_NUMBER}, _FUNCTIONS)

    # --- tables

    def frame(self, name: str) -> Reader:
        return Reader(self.arrow(name))

    def arrow(self, code: str) -> str:
        return f"spark.createDataFrame({code})"

    def csv(self, path: str, layout: TextLayout) -> Reader:
        options = [] if layout.delimiter == "," else [f"sep={layout.delimiter!r}"]
        options += [] if layout.quote == '"' else [f"quote={layout.quote!r}"]
        options += [f"escape={layout.escape or layout.quote!r}", "multiLine=True"]
        # One line before the rows is a header, if not of these very names.
        read = f"spark.read.csv({path!r}, header={layout.lines > 0}, {', '.join(options)})"
        return Reader(read if layout.plain else f"{read}.toDF({', '.join(map(repr, layout.names))})")

    def parquet(self, paths: Sequence[str], *, pattern: bool) -> Reader:
        return Reader(f"spark.read.parquet({', '.join(map(repr, paths))})")

    def json(self, path: str, *, lines: bool) -> Reader:
        return Reader(f"spark.read.json({path!r}{'' if lines else ', multiLine=True'})")

    def orc(self, path: str) -> Reader:
        return Reader(f"spark.read.orc({path!r})")

    def feather(self, path: str) -> Reader:
        return self.by_pyarrow("feather", path, "Spark has no reader of Arrow files: pyarrow reads it.")

    def versioned(self, form: str, path: str) -> Reader:
        return Reader(f"spark.read.format({form!r}).load({path!r})")

    def postgres(self, side: Side) -> Reader:
        address = Address.of(side.location)
        url, place = (
            f"jdbc:postgresql://{address.hosts}/{address.database}",
            ".".join(map(identifier, side.database_table)),
        )
        return Reader(f"spark.read.jdbc({url!r}, {place!r}, properties={{'user': {address.user!r}}})")

    # --- joins

    def column(self, frame: str, name: str) -> str:
        return f"{frame}[{_name([name])!r}]"

    def text(self, key: CodeKey, frame: str) -> str:
        # A column is that of the table that was read, however often it was joined since.
        text = f"{key.table.name}[{_name(key.fields)!r}].cast('string')"
        return f"F.regexp_replace({text}, {_PADDED!r}, '')" if key.form.text else f"F.trim({text})"

    def left_join(self, left: str, right: str, keys: Sequence[tuple[str, str]], suffix: str = "") -> str:
        equal = [f"{one} == {other}" for one, other in keys]
        on = equal[0] if len(equal) == 1 else " & ".join(f"({each})" for each in equal)
        return f"{left}.join({right}, {on}, 'left')"

    def dropped(self, frame: str, names: Sequence[str]) -> str:
        return f"{frame}.drop({', '.join(map(repr, names))})"

    def grouped(self, each: Grouped, on: Sequence[str], name: str) -> str:
        table = each.table.name
        shown = ", ".join(f"{self.key(key, table)}.alias({alias!r})" for key, alias in zip(each.keys, on, strict=True))
        column = f"{table}[{_name(each.fields)!r}]"
        column = f"value({column})" if each.side.is_doubtful else f"{column}.try_cast('double')"
        number = f"F.{each.aggregate}({column})"
        number = f"F.nullif({number}, F.lit(0))" if each.aggregate == "count" else number
        return f"{table}.groupBy({shown}).agg({number}.alias({name!r}))"

    def computed(self, on: Sequence[str], coefficient: str) -> list[str]:
        pairs = f"mine.join(found, {[*on]!r}).select(F.col('mine').alias('x'), F.col('found').alias('y')).dropna()"
        found = "pairs.select(F.corr('x', 'y'), F.count('*'))"
        if coefficient != "pearson":
            statement = re.sub(r"(FROM|JOIN) pairs", r"\1 {pairs}", self.coefficients[coefficient].rstrip(";"))
            found = f'spark.sql("""\n{statement}""", pairs=pairs)'
        return [f"pairs = {pairs}", f"found = {found}", "found.show()"]

    # --- programs: one statement does them

    def constant(self, text: str) -> str:
        return _SQL.constant(text)

    def cell(self, column: str) -> str:
        return _SQL.cell(column)

    def some(self, text: str) -> str:
        return _SQL.some(text)

    def concatenated(self, parts: Sequence[str], between: str = "") -> str:
        return _SQL.concatenated(parts, between)

    def step(self, step: Step, text: str) -> str:
        return _SQL.step(step, text)

    def join(self, plan: Plan, near: Near) -> str:
        tables = self.tables_of(plan)
        lines: list[str] = []
        for table, place in zip(tables, (plan.left, plan.right), strict=True):
            lines += [f"{table.name} = cells({table.reader.code})"] if is_path(place) else []
            lines.append(f"{table.name}.createOrReplaceTempView({table.name!r})")
        lines += ["", f"joined = spark.sql({_SQL.joined(plan, near, '`left`', '`right`')!r})"]
        defined = {"SPACES": f"SPACES = {_SQL.literal(SPACES)[1:-1]!r}", **self.definitions}
        comments = [table.reader.note for table in tables if table.reader.note]
        return python_program(lines, tables, comments, (), defined)


class SparkSql(SqlWriter):
    """Writes expressions and statements of Spark's SQL, which a program of PySpark runs."""

    name = "spark"

    def identifier(self, name: str) -> str:
        return _name([name])

    def literal(self, text: str) -> str:
        text = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
        return "'" + STEERING.sub(lambda found: f"\\u{ord(found[0]):04X}", text) + "'"

    def key(self, name: str, key: CodeKey) -> str:
        return self.text(name, key.form)

    def cell(self, column: str) -> str:
        return f"TRIM(BOTH {self.literal(SPACES)} FROM CAST({self.identifier(column)} AS STRING))"

    def run(self, text: str, pattern: str, index: int) -> str:
        return f"TRY_ELEMENT_AT(REGEXP_EXTRACT_ALL({text}, {pattern}, 0), {index})"

    def month(self, text: str, forms: Mapping[str, str]) -> str:
        written, made = (", ".join(map(repr, each)) for each in zip(*forms.items(), strict=True))
        return f"TRY_ELEMENT_AT(MAP_FROM_ARRAYS(ARRAY({written}), ARRAY({made})), {text})"

    def initials(self, text: str, pattern: str) -> str:
        return f"REGEXP_REPLACE({text}, {pattern}, '$1')"


_SQL = SparkSql()
