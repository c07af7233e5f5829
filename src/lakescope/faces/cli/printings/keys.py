"""How commands print inclusions, keys and references, and draw them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from lakescope.errors import BadRequest
from lakescope.faces.cli.output import Format, say, write
from lakescope.faces.cli.printing import Explained, Gone, Printing
from lakescope.questions.model import On
from lakescope.results import Results

if TYPE_CHECKING:
    from lakescope.questions.keys import KeyDiagramRequest


class InclusionPrinting(Explained):
    """Prints pairs of columns of which one is included in the other."""

    empty = "no column is included in another to {minimum:.0%}"


class ReferencePrinting(Explained):
    """Prints references."""

    empty = "no column refers to the key of another table"
    gone = (
        Gone("--diagram", "a command: lakescope keys diagram INDEX --out schema.svg"),
        Gone("--sql", "a command: lakescope keys diagram INDEX --form sql", flag=True),
        Gone("--show", "a command: lakescope keys primary INDEX, or an option: lakescope keys INDEX --withheld"),
    )

    def print_answer(self, found: Results[Any], asked: Any, form: Format) -> None:
        if form is Format.table and not found and asked.withheld:
            write("nothing was withheld")
            return
        super().print_answer(found, asked, form)


class PrimaryKeyPrinting(Printing):
    """Prints the keys of tables."""

    empty = "no table has a column that tells its rows apart"


@dataclass(frozen=True, kw_only=True)
class DiagramPrinting(Printing):
    """Writes a picture of tables and keys, or prints them as text."""

    formatted = False

    out: Annotated[str | None, "File to write to; without it text is printed.", On("cli", names=("--out", "-o"))] = None

    def check(self) -> None:
        if self.out is not None and (Path(self.out).is_dir() or not Path(self.out).absolute().parent.is_dir()):
            raise BadRequest(f"cannot write {self.out}", hint="name a file in a directory that is there")

    def show(self, lake: Any, asked: KeyDiagramRequest, form: Format) -> None:
        if self.out is None:
            write(asked.ask(lake))
            return
        if asked.form == "svg" and Path(self.out).suffix.lower() != ".svg":
            raise BadRequest(f"cannot draw into {self.out}", hint="name a file that ends in .svg, or another --form")
        Path(self.out).write_text(asked.ask(lake), "utf-8")
        say(f"{self.out}: drawn")
