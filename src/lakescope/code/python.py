"""Python without libraries: learned joins over lists of dictionaries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lakescope.code.reading import Reader, TextLayout
from lakescope.code.writer import ALPHABETS, Near, PlanWriter, called, definitions, python_program
from lakescope.engines.transforms import steps
from lakescope.engines.transforms.program import BETWEEN
from lakescope.engines.transforms.steps import INITIALS, MONTH_FORMS, Step

if TYPE_CHECKING:
    from lakescope.engines.transforms.plan import Plan

#: What code uses of this is printed with it.
_FUNCTIONS = """
import csv
import gzip
import re
from collections import Counter


def rows_of(path, names=None, skip=0, encoding="utf-8-sig", opened=open, **dialect):
    csv.field_size_limit(2**31 - 1)
    with opened(path, "rt", encoding=encoding, newline="") as file:
        for _ in range(skip):
            file.readline()
        rows = csv.reader(file, **dialect)
        names = names or next(rows)
        return [{name: text.strip(SPACES) or None for name, text in zip(names, row)} for row in rows if row]


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


class Python(PlanWriter):
    """Writes Python that needs no library."""

    name = "python"
    definitions = definitions(ALPHABETS, _FUNCTIONS)

    # --- tables

    def frame(self, name: str) -> Reader:
        return Reader(f"{name}  # a list of dictionaries")

    def arrow(self, code: str) -> str:
        return f"{code}.to_pylist()"

    def csv(self, path: str, layout: TextLayout) -> Reader:
        options = [] if layout.plain else [f"names={list(layout.names)!r}", f"skip={layout.lines}"]
        options += [] if layout.delimiter == "," else [f"delimiter={layout.delimiter!r}"]
        options += [] if layout.quote == '"' else [f"quotechar={layout.quote!r}"]
        options += [f"escapechar={layout.escape!r}, doublequote=False"] if layout.escape else []
        options += [] if layout.encoding == "utf-8" else [f"encoding={layout.encoding!r}"]
        options += ["opened=gzip.open"] if layout.compression else []
        return Reader(f"rows_of({', '.join([repr(path), *options])})")

    # --- programs

    def constant(self, text: str) -> str:
        return repr(text)

    def cell(self, column: str) -> str:
        return f"cell(row, {column!r})"

    def some(self, text: str) -> str:
        return text

    def concatenated(self, parts: Sequence[str], between: str = "") -> str:
        if between:
            return f"({', '.join(parts)},)"
        return parts[0] if len(parts) == 1 else f"written({', '.join(parts)})"

    def step(self, step: Step, text: str) -> str:
        match step:
            case steps.Slice(start, stop):
                return f"({text})[{start or ''}:{'' if stop is None else stop}]"
            case steps.Month(form):
                return f"{MONTH_FORMS[form]!r}.get(changed({text}, LARGE, SMALL), '')"
            case steps.Initials():
                return f"re.sub({INITIALS!r}, r'\\1', {text}).replace(' ', '')"
            case steps.Drop():
                return f"{text}.translate(str.maketrans('', '', PUNCTUATION))"
            case _:
                return called(step, text)

    # --- learned joins

    def join(self, plan: Plan, near: Near) -> str:
        tables = self.tables_of(plan)
        forward = plan.direction == "left->right"
        made = [f"    lambda row: {self.key_of_plan(program.outputs)}," for program in plan.programs]
        apart = {tuple(text.split(BETWEEN)): tuple(key.split(BETWEEN)) for text, key in near.items()}
        pair = "left[mine], right[other]" if forward else "left[other], right[mine]"
        lines = [f"{table.name} = {table.reader.code}" for table in tables]
        lines.append(f"""source, target = {"left, right" if forward else "right, left"}
programs = [
{chr(10).join(made)}
]
met = [{self.key_of_plan(plan.key_expressions)} for row in target]
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
{_NEAR.format(near=apart) if near else ""}joined = [({pair}) for mine, other in sorted(pairs.items())]
""")
        comments = [table.reader.note for table in tables if table.reader.note]
        return python_program(lines, tables, comments, (), self.definitions)


_NEAR = """near = {near!r}
for number in waiting:
    texts = [text for program in programs if all(text := program(source[number]))]
    if texts and near.get(texts[0]) in keys:
        pairs[number] = keys[near[texts[0]]]
"""
