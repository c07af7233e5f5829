"""How commands print joins and correlations: records, code for one of them, or a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeVar

from lakescope.code.dialects import Dialect
from lakescope.engines.joins.answers import Engine
from lakescope.errors import BadRequest, NotFound
from lakescope.faces.cli.output import Format, print_results, say, write
from lakescope.faces.cli.printing import Explained, Gone, Printing
from lakescope.questions.joinable import FOUND
from lakescope.questions.model import On, Range, Request
from lakescope.results import Results
from lakescope.show.text import aligned, cell_text, printable

if TYPE_CHECKING:
    from lakescope.questions.correlated import CorrelatedRequest
    from lakescope.questions.joinable import JoinableRequest
    from lakescope.questions.paths import JoinPathsRequest

Record = TypeVar("Record")


@dataclass(frozen=True, kw_only=True)
class Coded(Printing):
    """Prints an answer, or ready code for one of its records."""

    code: Annotated[Dialect | None, "Print ready code for one of the answer instead: the best, or --hit."] = None
    hit: Annotated[
        int, "Which one of the answer, as they are listed, is meant.", Range(1, hint="the best one is 1")
    ] = 1

    def check(self) -> None:
        if self.hit != 1 and not self.chooses:
            raise BadRequest("--hit does nothing here: it chooses one of the answer", hint=self.choosing)
        if self.code is not None and getattr(self, "explain", False):
            raise BadRequest("--explain does not go with --code", hint="leave one of them out")

    #: What the options are called that a hit is chosen for.
    choosing: ClassVar[str] = "name --code, too"

    @property
    def chooses(self) -> bool:
        """Whether something is done with one record."""
        return self.code is not None

    def chosen(self, found: Sequence[Record], nothing: str) -> Record:
        """The record that was chosen, counted from 1 as they are printed."""
        if not found:
            raise NotFound(nothing, hint="ask without --code to see why")
        if self.hit > len(found):
            raise NotFound(
                f"there is no hit {self.hit}: {len(found)} were found", hint="ask without --code to see them"
            )
        return found[self.hit - 1]


@dataclass(frozen=True, kw_only=True)
class JoinPrinting(Coded, Explained):
    """Prints columns that join, estimates before exact answers if that is wanted, or code for a join."""

    empty = "no column joins"
    gone = (Gone("--paths", "a command: lakescope paths INDEX QUERY --depth 3"),)

    engine: Annotated[
        Literal[Engine, "hybrid"],
        "auto (by what is cheaper), exact, lsh (estimates), or hybrid: estimates at once, then exactly.",
    ] = "auto"

    def check(self) -> None:
        super().check()
        if self.engine == "hybrid" and self.code is not None:
            raise BadRequest("--engine hybrid does not go with --code", hint="leave one of them out")

    def asked(self, values: dict[str, Any]) -> dict[str, Any]:
        found = {**values, "engine": "auto" if self.engine == "hybrid" else self.engine}
        if self.code is not None and values["k"] is None and values["threshold"] is None:
            found["k"] = max(self.hit, FOUND)
        return found

    def show(self, lake: Any, asked: JoinableRequest, form: Format) -> None:
        if self.code is not None:
            picked = self.chosen(asked.ask(lake), "no column joins: there is no code to write")
            write(lake.join_code(asked.query, picked, self.code))
            return
        if self.engine == "hybrid":
            if form is Format.table:
                print_results(replace(asked, engine="lsh").ask(lake), form, empty="nothing found at first sight")
                say("estimated; exactly:")
            asked = replace(asked, engine="exact")
        self.print_answer(asked.ask(lake), asked, form)


@dataclass(frozen=True, kw_only=True)
class PathPrinting(Coded):
    """Prints tables that can be reached, each with its whole path, or code for a path."""

    empty = "no table can be reached"

    k: Annotated[
        int | None,
        "Print at most this many: those that come first.",
        Range(1, hint="ask for 10"),
        On("cli", names=("-k",)),
    ] = None

    def show(self, lake: Any, asked: JoinPathsRequest, form: Format) -> None:
        found = asked.ask(lake)
        if self.code is not None:
            picked = self.chosen(found, "no table can be reached: there is no code to write")
            write(lake.path_code(asked.query, picked, self.code))
            return
        self.print_answer(found[: self.k], asked, form)
        if self.k is not None and len(found) > self.k:
            say(f"({len(found) - self.k:,} more)")

    def print_answer(self, found: Results[Any], asked: Request[Any], form: Format) -> None:
        if form is not Format.table or not found:
            super().print_answer(found, asked, form)
            return
        # A path is the answer: it is printed whole, however long it is.
        rows = [
            [*map(cell_text, (each.table, each.hops, each.containment)), printable(", ".join(each.joins))]
            for each in found
        ]
        write("\n".join(aligned(found.shown, rows)))
        for note in found.notes:
            say(f"note: {note}")


@dataclass(frozen=True, kw_only=True)
class CorrelationPrinting(Coded, Explained):
    """Prints columns that correlate, and draws the sample behind one of them, or prints code for its join."""

    empty = "no column correlates"
    choosing = "name --plot or --code, too"
    gone = (Gone("--weight", "two options: --weight-join 1 --weight-corr 1"),)

    plot: Annotated[str | None, "Draw the sample behind the best one, or --hit, into this SVG file."] = None

    @property
    def chooses(self) -> bool:
        return self.code is not None or self.plot is not None

    def check(self) -> None:
        super().check()
        if self.plot is not None:
            check_drawing(self.plot)
        if self.plot is not None and self.code is not None:
            raise BadRequest("either --plot or --code", hint="ask twice")

    def asked(self, values: dict[str, Any]) -> dict[str, Any]:
        # Too small a number is refused, not raised to that of the hit.
        return {**values, "k": max(values["k"], self.hit) if values["k"] > 0 else values["k"]}

    def show(self, lake: Any, asked: CorrelatedRequest, form: Format) -> None:
        complete = asked.completed(lake)
        found = complete.ask(lake)
        if complete is not asked:
            found = found.with_note(complete.guessed)
        picked = self.chosen(found, "no column correlates: there is nothing to draw") if self.chooses else None
        about = {"query_agg": asked.query_agg}
        if self.code is not None:
            write(lake.correlation_code(asked.query, complete.key, picked, self.code, target=complete.target, **about))
            return
        self.print_answer(found, asked, form)
        if self.plot is not None and picked is not None:
            Path(self.plot).write_text(
                lake.scatter(asked.query, complete.key, complete.target, picked, **about), "utf-8"
            )
            say(f"{self.plot}: {picked.table} {picked.column} against {complete.target}")


def check_drawing(path: str) -> None:
    """Refuse a file that no picture can be written to, before anything is looked for."""
    if Path(path).is_dir() or not Path(path).absolute().parent.is_dir():
        raise BadRequest(f"cannot write {path}", hint="name a file in a directory that is there")
    if Path(path).suffix.lower() != ".svg":
        raise BadRequest(f"cannot write {path}: pictures are SVG", hint="name a file that ends in .svg")
