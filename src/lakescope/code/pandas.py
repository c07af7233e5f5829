"""pandas: functions over columns of its data frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from lakescope.code.frames import FrameWriter
from lakescope.code.reading import Reader, TextLayout
from lakescope.code.sides import Side
from lakescope.code.sql import identifier
from lakescope.code.writer import ALPHABETS, MARKERS, CodeKey, Grouped, Near, called, definitions, is_path
from lakescope.engines.transforms import steps
from lakescope.engines.transforms.steps import INITIALS, MONTH_FORMS, Step

if TYPE_CHECKING:
    from lakescope.engines.transforms.plan import Plan

#: Numbers as the index knows them: no codes, no words.
_NUMBER = r"[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
_MOMENT = r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?(Z|[-+][0-9]{2}(:?[0-9]{2})?)?)?"

#: What code uses of this is printed with it.
_FUNCTIONS = r'''
import json
import numpy as np
from glob import glob
from pathlib import Path
from statistics import NormalDist


def frame_of(table):
    """A frame of what another library holds, of a dictionary or of records."""
    frame = table.to_pandas() if hasattr(table, "to_pandas") else pd.DataFrame(table)
    return frame.convert_dtypes().reset_index(drop=True)


def flat(record, before=""):
    """A record whose fields within others are fields of its own."""
    found = {}
    for name, each in record.items():
        found |= flat(each, f"{before}{name}.") if isinstance(each, dict) else {before + name: each}
    return found


def records(path, lines):
    """Records of JSON, one a line or in one array."""
    text = Path(path).read_text("utf-8-sig")
    found = map(json.loads, filter(str.strip, text.split("\n"))) if lines else json.loads(text)
    return pd.DataFrame([flat(each) for each in found], dtype=object)


def value(column):
    """Cells as numbers, nothing where they are none."""
    text = column.astype("string").str.strip()
    return text.where(text.str.fullmatch(NUMBER, na=False)).astype("float64")


def number(text):
    """Numbers in one form; what is none stays as it is."""
    numbers = text.where(text.str.fullmatch(f"{NUMBER}|[-+]?(?:inf|Inf|Infinity)", na=False))
    return numbers.astype("float64").astype("string").fillna(text)


def moment(text):
    """Days and times in one form; what is neither stays as it is."""
    written = text.where(text.str.fullmatch(MOMENT, na=False))
    moments = pd.to_datetime(written, format="ISO8601", utc=True, errors="coerce")
    return moments.dt.strftime("%Y-%m-%d %H:%M:%S.%f").astype("string").fillna(text)


def truth(text):
    """True and false in one form."""
    small = text.str.lower()
    return text.where(~small.isin(["true", "false"]), small)


def real(text):
    """No key where nothing is there."""
    return text.where(~text.isin(MARKERS))


def left_join(left, right, left_keys, right_keys, suffix="_right"):
    """All rows of a frame with those of another that have its keys; nothing is no key."""
    names = [f"key {n} of the join" for n in range(len(left_keys))]
    left = left.assign(**dict(zip(names, left_keys)))
    right = right.assign(**dict(zip(names, right_keys))).dropna(subset=names)
    return left.merge(right, "left", names, suffixes=("", suffix)).drop(columns=names)


def by_key(keys, numbers, aggregate, names):
    """Numbers aggregated by key; where there are none there is nothing to add up or count."""
    groups = numbers.groupby([key.rename(name) for key, name in zip(keys, names)])
    return groups.agg(aggregate).where(groups.count() > 0).rename(names[-1]).reset_index()


def scores(numbers):
    """Normal scores of ranks."""
    return ((numbers.rank() - 0.5) / len(numbers)).map(NormalDist().inv_cdf)


def kendall(x, y):
    """Kendall's tau-b."""
    dx, dy = (np.sign(np.subtract.outer(each.to_numpy(), each.to_numpy())) for each in (x, y))
    return (dx * dy).sum() / np.sqrt(abs(dx).sum() * abs(dy).sum())


def some(text):
    return text.where(text != "")


def cell(frame, name):
    return frame[name].astype("string").str.strip(SPACES)


def cells(frame):
    return pd.DataFrame({name: some(cell(frame, name)) for name in frame})


def split(text, separator, index):
    return text.str.split(separator, regex=False).str[index].astype("string")


def run(text, pattern, index):
    return text.str.findall(pattern).str[index].astype("string")


def changed(text, before, after):
    return text.str.translate(str.maketrans(before, after))


def capital(text):
    return changed(text.str[:1], SMALL, LARGE) + changed(text.str[1:], LARGE, SMALL)


def digits(text, width):
    return text.where(text.str.fullmatch("[0-9]+", na=False)).str.lstrip("0").str.rjust(width, "0")
'''


class Pandas(FrameWriter):
    """Writes pandas."""

    name = "pandas"
    unpacks = ("gzip", "bz2")
    lacks = frozenset({"mixed ends", "uneven header"})
    library = "import pandas as pd"
    coefficients: ClassVar = {
        "pearson": "joined['mine'].corr(joined['found'])",
        "spearman": "joined['mine'].rank().corr(joined['found'].rank())",
        "rin": "scores(joined['mine']).corr(scores(joined['found']))",
        "kendall": "kendall(joined['mine'], joined['found'])",
    }
    definitions = definitions({"MARKERS": MARKERS, "NUMBER": _NUMBER, "MOMENT": _MOMENT, **ALPHABETS}, _FUNCTIONS)

    # --- tables

    def frame(self, name: str) -> Reader:
        return Reader(f"frame_of({name})")

    def arrow(self, code: str) -> str:
        return f"{code}.to_pandas()"

    def csv(self, path: str, layout: TextLayout) -> Reader:
        options = [] if layout.delimiter == "," else [f"sep={layout.delimiter!r}"]
        options += [] if layout.quote == '"' else [f"quotechar={layout.quote!r}"]
        options += [f"escapechar={layout.escape!r}, doublequote=False"] if layout.escape else []
        options += [] if layout.encoding == "utf-8" else [f"encoding={layout.encoding!r}"]
        options += [f"compression={layout.compression!r}"] if layout.compression else []
        options += [] if layout.plain else [f"header=None, skiprows={layout.lines}, names={list(layout.names)!r}"]
        options.append("dtype='string', keep_default_na=False, na_values=['']")
        return Reader(f"pd.read_csv({path!r}, {', '.join(options)})")

    def parquet(self, paths: Sequence[str], *, pattern: bool) -> Reader:
        read = "pd.read_parquet({}, dtype_backend='numpy_nullable')"
        if len(paths) == 1 and not pattern:
            return Reader(read.format(repr(paths[0])))
        each = f"sorted(glob({paths[0]!r}))" if pattern else repr(paths)
        return Reader(f"pd.concat([{read.format('path')} for path in {each}], ignore_index=True)")

    def json(self, path: str, *, lines: bool) -> Reader:
        return Reader(f"records({path!r}, lines={lines})", flat=True)

    def orc(self, path: str) -> Reader:
        return Reader(f"pd.read_orc({path!r}, dtype_backend='numpy_nullable')")

    def feather(self, path: str) -> Reader:
        return Reader(f"pd.read_feather({path!r}, dtype_backend='numpy_nullable')")

    def postgres(self, side: Side) -> Reader:
        query = "SELECT * FROM " + ".".join(map(identifier, side.database_table))
        read = f"pd.read_sql({query!r}, dbapi.connect({side.path!r}), dtype_backend='numpy_nullable')"
        return Reader(read, ("from adbc_driver_postgresql import dbapi",))

    # --- joins

    def column(self, frame: str, name: str) -> str:
        return f"{frame}[{name!r}]"

    def text(self, key: CodeKey, frame: str) -> str:
        composed = ".str.normalize('NFC')" if key.form.text else ""
        return f"{frame}[{key.fields[0]!r}].astype('string'){composed}.str.strip()"

    def left_join(self, left: str, right: str, keys: Sequence[tuple[str, str]], suffix: str = "") -> str:
        ours, theirs = (f"[{', '.join(each)}]" for each in zip(*keys, strict=True))
        return f"left_join({left}, {right}, {ours}, {theirs}{f', {suffix!r}' if suffix else ''})"

    def dropped(self, frame: str, names: Sequence[str]) -> str:
        return f"{frame}.drop(columns={[*names]!r})"

    def grouped(self, each: Grouped, on: Sequence[str], name: str) -> str:
        frame = each.table.name
        keys = ", ".join(self.key(key, frame) for key in each.keys)
        return f"by_key([{keys}], value({frame}[{each.fields[0]!r}]), {each.aggregate!r}, {[*on, name]!r})"

    def computed(self, on: Sequence[str], coefficient: str) -> list[str]:
        joined = f"joined = mine.merge(found, on={[*on]!r}).dropna()"
        return [joined, f"coefficient = {self.coefficients[coefficient]}", "print(coefficient, len(joined))"]

    # --- programs

    def constant(self, text: str) -> str:
        return repr(text)

    def cell(self, column: str) -> str:
        return f"cell(frame, {column!r})"

    def some(self, text: str) -> str:
        return f"some({text})"

    def concatenated(self, parts: Sequence[str], between: str = "") -> str:
        return (f" + {between!r} + " if between else " + ").join(parts)

    def step(self, step: Step, text: str) -> str:
        match step:
            case steps.Slice(start, stop):
                return f"{text}.str[{start or ''}:{'' if stop is None else stop}]"
            case steps.Month(form):
                return f"changed({text}, LARGE, SMALL).map({MONTH_FORMS[form]!r}).astype('string')"
            case steps.Initials():
                return f"{text}.str.replace({INITIALS!r}, r'\\1', regex=True).str.replace(' ', '', regex=False)"
            case steps.Drop():
                return f"{text}.str.translate(str.maketrans('', '', PUNCTUATION))"
            case _:
                return called(step, text)

    # --- learned joins

    def join(self, plan: Plan, near: Near) -> str:
        tables = self.tables_of(plan)
        left, right = (
            f"cells({table.reader.code})" if is_path(place) else table.reader.code
            for table, place in zip(tables, (plan.left, plan.right), strict=True)
        )
        forward = plan.direction == "left->right"
        made = "".join(f"    lambda frame: {self.key_of_plan(program.outputs)},\n" for program in plan.programs)
        renamed = {name: free for name, free in plan.right_names_free() if name != free}
        renaming = f".rename(columns={renamed!r})" if renamed else ""
        rows = ("pairs.index", "pairs") if forward else ("pairs", "pairs.index")
        program = f"""left = {left}
right = {right}
source, target = {"left, right" if forward else "right, left"}
programs = [
{made}]
key = lambda frame: {self.key_of_plan(plan.key_expressions)}
keys = key(target).dropna().drop_duplicates(keep=False)
keys = pd.Series(keys.index, keys)
waiting, found = source, []
for program in programs:
    met = program(waiting).map(keys).dropna().astype(int){".drop_duplicates(keep=False)" if plan.single else ""}
    found.append(met)
    waiting = waiting.drop(met.index)
    {"keys = keys[~keys.isin(met)]" if plan.single else "pass"}
{_NEAR.format(near=dict(near)) if near else ""}pairs = pd.concat(found)
rows = [left.loc[{rows[0]}], right.loc[{rows[1]}]{renaming}]
joined = pd.concat([each.reset_index(drop=True) for each in rows], axis=1)
"""
        return self.program_of_plan(program, tables)


_NEAR = """near = {near!r}
written = pd.concat([program(waiting) for program in programs], axis=1).bfill(axis=1).iloc[:, 0]
found.append(written.map(near).map(keys).dropna().astype(int))
"""
