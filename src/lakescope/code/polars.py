"""polars: expressions over its data frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from lakescope.code.frames import FrameWriter
from lakescope.code.reading import Reader, TextLayout
from lakescope.code.sides import Side
from lakescope.code.sql import identifier
from lakescope.code.writer import (
    ALPHABETS,
    CODE,
    MARKERS,
    NO_NUMBER,
    CodeKey,
    Grouped,
    Near,
    definitions,
    free_prefix,
    is_path,
    padded,
    zeros,
)
from lakescope.engines.transforms import steps
from lakescope.engines.transforms.steps import INITIALS, MONTH_FORMS, RUNS, Step

if TYPE_CHECKING:
    from lakescope.engines.transforms.plan import Plan

_LOWER, _UPPER = ".str.replace_many(list(LARGE), list(SMALL))", ".str.replace_many(list(SMALL), list(LARGE))"

#: What code uses of this is printed with it.
_FUNCTIONS = '''
from statistics import NormalDist


def value(text):
    """Cells as numbers, nothing where they are none."""
    return pl.when(~text.str.contains(NO_NUMBER)).then(text).cast(pl.Float64, strict=False)


def number(text):
    """Numbers in one form; what is none stays as it is."""
    numbers = text.cast(pl.Float64, strict=False).cast(pl.String)
    return pl.coalesce(pl.when(~text.str.contains(CODE)).then(numbers), text)


def moment(text):
    """Days and times in one form; what is neither stays as it is."""
    plain = text.str.replace("T", " ", literal=True)
    forms = [plain.str.to_datetime(form, strict=False, time_unit="us") for form in ("%F %T%.f", "%F %R")]
    days = plain.str.to_date("%F", strict=False).cast(pl.Datetime("us"))
    return pl.coalesce([*forms, days]).cast(pl.String).fill_null(text)


def truth(text):
    """True and false in one form."""
    small = text.str.to_lowercase()
    return pl.when(small.is_in(["true", "false"])).then(small).otherwise(text)


def real(text):
    """No key where nothing is there."""
    return pl.when(~text.is_in(MARKERS)).then(text)


def scores(name):
    """Normal scores of ranks."""
    share = (pl.col(name).rank("average") - 0.5) / pl.len()
    return share.map_elements(NormalDist().inv_cdf, return_dtype=pl.Float64)


def some(text):
    return pl.when(text != "").then(text)
'''


class Polars(FrameWriter):
    """Writes polars."""

    name = "polars"
    unpacks = ("gzip", "zstd")
    lacks = frozenset({"escapes", "uneven records"})
    library = "import polars as pl"
    coefficients: ClassVar = {
        "pearson": "pl.corr('mine', 'found')",
        "spearman": "pl.corr(pl.col('mine').rank('average'), pl.col('found').rank('average'))",
        "rin": "pl.corr(scores('mine'), scores('found'))",
        "kendall": "(dx * dy).sum() / (dx.abs().sum() * dy.abs().sum()).sqrt()",
    }
    definitions = definitions({"MARKERS": MARKERS, "CODE": CODE, "NO_NUMBER": NO_NUMBER, **ALPHABETS}, _FUNCTIONS)

    # --- tables

    def frame(self, name: str) -> Reader:
        return Reader(f"pl.DataFrame({name})")

    def arrow(self, code: str) -> str:
        return f"pl.from_arrow({code})"

    def csv(self, path: str, layout: TextLayout) -> Reader:
        options = [] if layout.delimiter == "," else [f"separator={layout.delimiter!r}"]
        options += [] if layout.quote == '"' else [f"quote_char={layout.quote!r}"]
        options += [] if layout.encoding == "utf-8" else [f"encoding={layout.encoding!r}"]
        if layout.plain:
            options += ["infer_schema=False", "truncate_ragged_lines=True"]
        else:
            names = f"dict.fromkeys({list(layout.names)!r}, pl.String)"
            skipped = f"skip_lines={layout.lines}, " if layout.lines else ""
            options += [f"has_header=False, {skipped}schema={names}", "truncate_ragged_lines=True"]
        return Reader(f"pl.read_csv({path!r}, {', '.join(options)})")

    def parquet(self, paths: Sequence[str], *, pattern: bool) -> Reader:
        several = f"{paths!r}, missing_columns='insert'"
        return Reader(f"pl.read_parquet({several if len(paths) > 1 else repr(paths[0])})")

    def json(self, path: str, *, lines: bool) -> Reader:
        return Reader(f"pl.{'read_ndjson' if lines else 'read_json'}({path!r}, infer_schema_length=None)")

    def orc(self, path: str) -> Reader:
        return self.by_pyarrow("orc", path)

    def feather(self, path: str) -> Reader:
        return self.by_pyarrow("feather", path)

    def versioned(self, form: str, path: str) -> Reader:
        return Reader(f"pl.scan_{form}({path!r}).collect()")

    def postgres(self, side: Side) -> Reader:
        query = "SELECT * FROM " + ".".join(map(identifier, side.database_table))
        return Reader(f"pl.read_database_uri({query!r}, {side.path!r}, engine='adbc')")

    # --- joins

    def column(self, frame: str, name: str) -> str:
        return f"pl.col({name!r})"

    def text(self, key: CodeKey, frame: str) -> str:
        composed = ".str.normalize('NFC')" if key.form.text else ""
        return f"{_column(key.fields)}.cast(pl.String){composed}.str.strip_chars()"

    def left_join(self, left: str, right: str, keys: Sequence[tuple[str, str]], suffix: str = "") -> str:
        on = [one[0] if len(one) == 1 else f"[{', '.join(one)}]" for one in zip(*keys, strict=True)]
        suffix = f", suffix={suffix!r}" if suffix else ""
        return f"{left}.join({right}, left_on={on[0]}, right_on={on[1]}, how='left'{suffix})"

    def dropped(self, frame: str, names: Sequence[str]) -> str:
        return f"{frame}.drop({', '.join(map(repr, names))})"

    def grouped(self, each: Grouped, on: Sequence[str], name: str) -> str:
        table, column = each.table, _column(each.fields)
        is_text = each.side.format == "csv" or table.reader.flat
        if each.side.is_doubtful:
            number = f"value({column if is_text else f'{column}.cast(pl.String)'}.str.strip_chars())"
        else:
            number = f"{column}{'.str.strip_chars()' if is_text else ''}.cast(pl.Float64, strict=False)"
        aggregated = f"{number}.{each.aggregate}()"
        if each.aggregate in ("sum", "count"):
            # Where there is no number there is nothing to add up or count, not 0.
            aggregated = f"pl.when({number}.count() > 0).then({aggregated})"
        keys = [f"{self.key(key, table.name)}.alias({alias!r})" for key, alias in zip(each.keys, on, strict=True)]
        return f"{table.name}.group_by({', '.join(keys)}).agg({aggregated}.alias({name!r}))"

    def computed(self, on: Sequence[str], coefficient: str) -> list[str]:
        lines, pairs = [f"joined = mine.join(found, on={[*on]!r}).drop_nulls()"], "joined"
        if coefficient == "kendall":
            lines.append("dx, dy = ((pl.col(name) - pl.col(name + '_right')).sign() for name in ('mine', 'found'))")
            lines.append("pairs = joined.select('mine', 'found')")
            pairs = "pairs.join(pairs, how='cross')"
        lines.append(f"coefficient = {pairs}.select({self.coefficients[coefficient]}).item()")
        return [*lines, "print(coefficient, joined.height)"]

    # --- programs

    def constant(self, text: str) -> str:
        return f"pl.lit({text!r})"

    def cell(self, column: str) -> str:
        return f"pl.col({column!r}).cast(pl.String).str.strip_chars(SPACES)"

    def some(self, text: str) -> str:
        return f"some({text})"

    def concatenated(self, parts: Sequence[str], between: str = "") -> str:
        separator = f", separator={between!r}" if between else ""
        return parts[0] if len(parts) == 1 else f"pl.concat_str([{', '.join(parts)}]{separator})"

    def step(self, step: Step, text: str) -> str:
        match step:
            case steps.SplitPiece(separator, index):
                return f"{text}.str.split({separator!r}).list.get({index}, null_on_oob=True)"
            case steps.Run(kind, index):
                return f"{text}.str.extract_all({RUNS[kind]!r}).list.get({index}, null_on_oob=True)"
            case steps.Slice(start, stop):
                cut = f"{text}.str.tail({-start})" if start < 0 else text
                if start > 0:
                    cut = f"{text}.str.slice({start}{'' if stop is None or stop < 0 else f', {stop - start}'})"
                return f"{cut}.str.head({stop})" if stop is not None and (start <= 0 or stop < 0) else cut
            case steps.Case("capital"):
                return f"pl.concat_str([{text}.str.head(1){_UPPER}, {text}.str.slice(1){_LOWER}])"
            case steps.Case(kind):
                return text + (_LOWER if kind == "lower" else _UPPER)
            case steps.Digits():
                return f"pl.concat_str([pl.lit({zeros(step)!r}), {text}]).str.extract({padded(step)!r}, 1)"
            case steps.Month(form):
                return f"{text}{_LOWER}.replace_strict({MONTH_FORMS[form]!r}, default=None, return_dtype=pl.String)"
            case steps.Initials():
                return f"{text}.str.replace_all({INITIALS!r}, '${{1}}').str.replace_all(' ', '', literal=True)"
            case steps.Drop():
                return f"{text}.str.replace_many(list(PUNCTUATION), [''])"
            case steps.Unaccent():
                return f"{text}.str.replace_many(list(ACCENTED), list(BARE))"

    # --- learned joins

    def join(self, plan: Plan, near: Near) -> str:
        tables = self.tables_of(plan)
        # Cells as a plan shows them: without the space around them, and null where nothing is left.
        trimmed = ".select(some(pl.all().cast(pl.String).str.strip_chars(SPACES)))"
        left, right = (
            f"{table.reader.code}{trimmed if is_path(place) else ''}"
            for table, place in zip(tables, (plan.left, plan.right), strict=True)
        )
        forward = plan.direction == "left->right"
        source, target = (left, right) if forward else (right, left)
        made = "".join(f"    {self.key_of_plan(program.outputs)},\n" for program in plan.programs)
        once = ".filter(pl.len().over('meets') == 1)" if plan.single else ""
        own = free_prefix([*plan.left_names, *plan.right_names])
        from_row, to_row = f"{own}source", f"{own}target"
        sides = [("source", from_row), ("target", to_row)][:: 1 if forward else -1]
        joined = "pairs" + "".join(f".join({name}, on='{row}', suffix='_right')" for name, row in sides)
        listed = _NEAR.format(texts=list(near), keys=list(near.values()), source=from_row, target=to_row)
        program = f"""source = {source}.with_row_index("{from_row}")
target = {target}.with_row_index("{to_row}")
programs = [
{made}]
key = {self.key_of_plan(plan.key_expressions)}
keys = target.select("{to_row}", key.alias("meets")).drop_nulls().filter(pl.len().over("meets") == 1)
waiting, found = source, []
for program in programs:
    met = waiting.select("{from_row}", program.alias("meets")).join(keys, on="meets"){once}
    found.append(met.select("{from_row}", "{to_row}"))
    waiting = waiting.join(met, on="{from_row}", how="anti")
    {f"keys = keys.join(met, on='{to_row}', how='anti')" if plan.single else "pass"}
{listed if near else ""}pairs = pl.concat(found)
joined = {joined}.drop("{from_row}", "{to_row}")
"""
        return self.program_of_plan(program, tables)


def _column(fields: Sequence[str]) -> str:
    first, *inner = fields
    return f"pl.col({first!r})" + "".join(f".struct.field({name!r})" for name in inner)


_NEAR = """near = pl.DataFrame({{"text": {texts!r}, "meets": {keys!r}}})
written = waiting.select("{source}", pl.coalesce(programs).alias("text"))
found.append(written.join(near, on="text").join(keys, on="meets").select("{source}", "{target}"))
"""
