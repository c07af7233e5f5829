"""How commands print headers: candidates, doubts, and how well they are found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from lakescope.faces.cli.output import Format, print_record, print_results, say, write
from lakescope.faces.cli.printing import Printing, Watched
from lakescope.questions.model import On, Request
from lakescope.results import Results


@dataclass(frozen=True, kw_only=True)
class HeaderPrinting(Watched):
    """Prints candidates of every column, the best schemata, or both."""

    empty = "no header of the lake fits"

    shown: Annotated[
        Literal["all", "columns", "schemata"],
        "Print candidates of columns, schemata, or both; of both json and csv have the schemata.",
        On("cli", names=("--show",)),
    ] = "all"

    def print_answer(self, found: Any, asked: Request[Any], form: Format) -> None:
        if self.shown == "schemata" or (self.shown == "all" and form is not Format.table):
            super().print_answer(found, asked, form)
            return
        super().print_answer(found.by_column(), asked, form)
        if self.shown == "all":
            write("")
            print_results(found.without_notes(), form, empty="no schema")


class WritingPrinting(Watched):
    """Says under which headers a table was written."""

    formatted = False

    def print_answer(self, found: Any, asked: Any, form: Format) -> None:
        say(f"{asked.out}: written with the headers {', '.join(found)}")


class HeaderDoubtPrinting(Watched):
    """Prints headers of the lake that are in doubt."""

    empty = "every header means something and fits its values"


class LearningPrinting(Watched):
    """Says from how many tables it was learnt."""

    formatted = False

    def print_answer(self, found: Any, asked: Request[Any], form: Format) -> None:
        say(f"learnt from {found} tables")


class EvaluationPrinting(Watched):
    """Prints how well headers are rediscovered, and how wrong ones relate to the true ones."""

    def print_answer(self, found: Results[Any], asked: Request[Any], form: Format) -> None:
        super().print_answer(found, asked, form)
        if form is Format.table:
            shown = ("method", "exact", "spacing", "word_form", "shorter_form", "granularity", "synonym", "incorrect")
            write("\nOf the headers suggested")
            print_results(Results(found.kind, list(found), shown=shown), form, empty="")


class OpinionPrinting(Printing):
    """Prints what a file begins with."""

    def print_answer(self, found: Results[Any], asked: Any, form: Format) -> None:
        for each in found.to_dicts():
            print_record({"table": asked.query, **each}, form)
