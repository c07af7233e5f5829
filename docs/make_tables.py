"""Write the tables of options in docs/ anew from the declarations of questions: `python docs/make_tables.py`.

A table stands between `<!-- table: KIND NAME -->` and `<!-- end of table -->`; the tests compare it with what is
declared. KIND is `command` (options of a command), `method` (of a method of `Lake`), `tool` (of a tool for agents),
or `differences` (what faces have otherwise, and why).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from lakescope.faces.cli.asking import flags
from lakescope.faces.cli.printings import printing_of
from lakescope.questions import COMMANDS, QUESTIONS, declared
from lakescope.questions.model import FACES, UNSET, Face, Meaning, Option, options_of

DOCS = Path(__file__).parent
TABLE = re.compile(r"<!-- table: (\w+) ?([\w -]*?) -->\n.*?<!-- end of table -->", re.DOTALL)
FACE_WORDS: dict[Face, str] = {
    **{"python": "Python", "cli": "command line", "rest": "REST"},
    **{"web": "web app", "agents": "agents", "batch": "Spark batch"},
}


def written(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of Markdown."""
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in (heads, *rows)]
    return "".join([lines[0], "|" + "---|" * len(heads) + "\n", *lines[1:]])


def meaning(option: Option) -> str:
    """What an option is for, what it may be, and what it is unless it is given."""
    said = option.help if option.help.endswith(".") else option.help + "."
    if option.choices and not all(choice in said for choice in option.choices):
        said += f" One of {', '.join(f'`{choice}`' for choice in option.choices)}."
    if option.range is not None and str(option.range):
        said += f" {str(option.range).capitalize()}."
    default = plainly(option.default) if option.default not in (UNSET, None, "", ()) else None
    if option.meaning is Meaning.SECONDS and default is not None:
        default = f"{option.default:g}s" if "30s" in said else f"{option.default:g}"
    if default is not None and option.type is not bool:
        said += f" Default: `{default}`."
    return said


def plainly(default: Any) -> str:
    """A default as one writes it."""
    return ",".join(default) if isinstance(default, tuple) else str(default)


def command_table(name: str) -> str:
    """Arguments and options of a command."""
    options = {**options_of(declared(COMMANDS[name]), "cli"), **options_of(printing_of(name), "cli")}
    rows = [["`INDEX`", "Directory of the index."]] if declared(COMMANDS[name]).about.indexed else []
    arguments = [each for each in options.values() if each.names and each.names[0].isupper()]
    for option in (*arguments, *(each for each in options.values() if each not in arguments and each.offered)):
        names = option.names or flags(option)
        spellings = [each for name in names for each in name.split("/")]
        rows.append([", ".join(f"`{each}`" for each in spellings), meaning(option)])
    if printing_of(name).formatted:
        rows.append(["`--format`, `-f`", "`table`, `json` or `csv`. Default: `table`."])
    return written(["argument, option", "meaning"], rows)


def method_table(name: str, face: Face = "python") -> str:
    """Options of a question as a method or a tool has them."""
    rows = [
        [f"`{option.name}`", kind_of(option, face), meaning(option)]
        for option in options_of(declared(name), face).values()
        if option.offered
    ]
    return written(["option", "is", "meaning"], rows) if rows else "It has no options.\n"


def kind_of(option: Option, face: Face) -> str:
    """What a value of an option is, in a word."""
    if option.meaning is Meaning.TABLE:
        return "table" if face == "python" else "table, csv or file"
    if option.meaning is Meaning.FINDS:
        return "finds"
    words = {str: "text", int: "whole number", float: "number", bool: "true or false", tuple: "text or several"}
    return words.get(option.type, "value")


def difference_table() -> str:
    """What faces have otherwise than Python, with the reasons."""
    return written(["question", "option", "where", "what", "why"], [*_differences()])


def _differences() -> Iterator[list[str]]:
    for name in QUESTIONS:
        kind = declared(name)
        for absent in kind.about.absent:
            faces = ", ".join(FACE_WORDS[face] for face in absent.faces)
            yield [f"`{name}`", "", faces, "not asked", absent.why]
        for each in fields(kind):  # type: ignore[arg-type]
            by_face = {face: _difference(options_of(kind, face)[each.name]) for face in FACES if _is_on(kind, face)}
            for what, why in dict.fromkeys(found for found in by_face.values() if found):
                faces = ", ".join(FACE_WORDS[face] for face, found in by_face.items() if found == (what, why))
                yield [f"`{name}`", f"`{each.name}`", faces, what, why]


def _is_on(kind: Any, face: Face) -> bool:
    return hasattr(kind, "batch") if face == "batch" else bool(kind.about.is_on(face))


def _plain(value: Any) -> Any:
    return ",".join(value) if isinstance(value, tuple) else value


def _difference(option: Option) -> tuple[str, str] | None:
    if not option.why:
        return None
    if option.absent:
        return "not offered", option.why
    if option.fixed is not UNSET:
        return f"always `{plainly(option.fixed)}`", option.why
    parts = [f"{option.range}" if option.range is not None else "", f"default `{plainly(option.default)}`"]
    return ", ".join(part for part in parts if part), option.why


def table(kind: str, name: str) -> str:
    """The table that a mark asks for."""
    if kind == "command":
        return command_table(name)
    if kind == "differences":
        return difference_table()
    return method_table(name, "python" if kind == "method" else "agents")


def renewed(text: str) -> str:
    """A page with its tables as they are declared now."""

    def replace(found: re.Match[str]) -> str:
        kind, name = found.groups()
        mark = f"<!-- table: {kind}{' ' + name if name else ''} -->"
        return f"{mark}\n{table(kind, name)}<!-- end of table -->"

    return TABLE.sub(replace, text)


if __name__ == "__main__":
    for page in sorted(DOCS.glob("*.md")):
        old = page.read_text("utf-8")
        if (new := renewed(old)) != old:
            page.write_text(new, "utf-8")
            print(f"{page.name}: written anew")
