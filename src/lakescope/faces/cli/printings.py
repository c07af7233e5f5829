"""How commands print the answers of questions, with the options that each adds for it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from lakescope.engines.joins.answers import Engine
from lakescope.errors import BadRequest
from lakescope.faces.cli.catalog_printings import CATALOG_PRINTINGS
from lakescope.faces.cli.making import (
    AugmentPrinting,
    AutojoinPrinting,
    FuzzyJoinPrinting,
    JoinedPrinting,
    LakeAutojoinPrinting,
)
from lakescope.faces.cli.output import Format, print_record, print_results, say, write
from lakescope.faces.cli.printing import Coded, Explained, Gone, Printing, Watched
from lakescope.faces.cli.progress import watching
from lakescope.questions.correlated import CorrelatedRequest
from lakescope.questions.dependencies import LakeDependenciesRequest
from lakescope.questions.headers import NameColumnsRequest
from lakescope.questions.joinable import FOUND, JoinableRequest
from lakescope.questions.keys import ForeignKeysRequest, KeyDiagramRequest
from lakescope.questions.model import On, Range, Request
from lakescope.questions.paths import JoinPathsRequest
from lakescope.results import Results
from lakescope.show.text import aligned, cell_text, printable


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


@dataclass(frozen=True, kw_only=True)
class InclusionPrinting(Explained):
    """Prints pairs of columns of which one is included in the other."""

    empty = "no column is included in another to {minimum:.0%}"


@dataclass(frozen=True, kw_only=True)
class ReferencePrinting(Explained):
    """Prints references."""

    empty = "no column refers to the key of another table"
    gone = (
        Gone("--diagram", "a command: lakescope keys diagram INDEX --out schema.svg"),
        Gone("--sql", "a command: lakescope keys diagram INDEX --form sql", flag=True),
        Gone("--show", "a command: lakescope keys primary INDEX, or an option: lakescope keys INDEX --withheld"),
    )

    def print_answer(self, found: Results[Any], asked: Request[Any], form: Format) -> None:
        if form is Format.table and not found and isinstance(asked, ForeignKeysRequest) and asked.withheld:
            write("nothing was withheld")
            return
        super().print_answer(found, asked, form)


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
class DriftPrinting(Printing):
    """Prints columns that changed."""

    empty = "nothing drifted"


@dataclass(frozen=True, kw_only=True)
class Listed(Printing):
    """Prints so many records, those that come first."""

    limit: Annotated[
        int, "Print at most this many (0: all).", Range(0, hint="0: all"), On("cli", names=("--limit", "-n"))
    ] = 50

    def print_answer(self, found: Results[Any], asked: Request[Any], form: Format) -> None:
        super().print_answer(found[: self.limit] if self.limit else found, asked, form)
        if self.limit and len(found) > self.limit:
            say(f"({len(found) - self.limit:,} more; --limit 0 shows all)")


#: Options that `fds` had for its study alone.
_OF_A_STUDY = ("--pattern", "--target", "--unit", "--versions", "--seed", "--out")


@dataclass(frozen=True, kw_only=True)
class DependencyPrinting(Listed):
    """Prints dependencies of a table."""

    empty = "no dependency was found"
    gone = (
        Gone("--compare", "a command: lakescope fds compare TABLE CLEAN"),
        Gone("--violations", "a command: lakescope fds violations TABLE 'zip, state -> city'"),
        Gone("--split", "a command: lakescope fds split TABLE", flag=True),
        Gone("--all", "a command: lakescope fds lake INDEX", flag=True),
        Gone("--study", "a command: lakescope fds study TABLE --shares 0.05,0.1", flag=True),
        Gone("--reference", "a command: lakescope fds reference TABLE", flag=True),
        *(Gone(name, "an option of lakescope fds study TABLE") for name in _OF_A_STUDY),
        Gone("--bins", "an option of lakescope fds reference TABLE"),
    )


@dataclass(frozen=True, kw_only=True)
class ReferenceSetPrinting(Listed):
    """Prints what holds after imputations."""

    empty = "no dependency was found"


@dataclass(frozen=True, kw_only=True)
class ComparisonPrinting(Listed):
    """Prints what became of dependencies, and how many of each kind there are."""

    empty = "no dependency holds in either"

    def show(self, lake: Any, asked: Request[Any], form: Format) -> None:
        found = asked.ask(lake)
        counts = ", ".join(f"{found.info[word]:,} {word}" for word in ("same", "ghost", "fake", "genuine"))
        for line in (counts, *_by_degree(found.info["degrees"])):
            found = found.with_note(line)
        self.print_answer(found, asked, form)


#: Degrees from which on they are counted together, as in the thesis.
_MANY = 5


def _by_degree(counts: list[tuple[str, int, int]]) -> list[str]:
    """How many of each label there are of each degree, those of five and more together."""
    found: dict[int, dict[str, int]] = {}
    for label, degree, count in counts:
        beside = found.setdefault(min(degree, _MANY), {})
        beside[label] = beside.get(label, 0) + count
    return [
        f"degree {degree}{' and more' if degree == _MANY else ''}: "
        + ", ".join(f"{each[label]:,} {label}" for label in ("same", "ghost", "fake") if label in each)
        for degree, each in sorted(found.items())
    ]


@dataclass(frozen=True, kw_only=True)
class ViolationPrinting(Listed):
    """Prints rows that break a dependency."""

    empty = "no row breaks it"


@dataclass(frozen=True, kw_only=True)
class SplitPrinting(Listed):
    """Prints what to split off a table."""

    empty = "nothing to split off"


@dataclass(frozen=True, kw_only=True)
class StudyPrinting(Printing):
    """Prints what a study found, and writes its report."""

    out: Annotated[str | None, "Folder for the report.", On("cli", names=("--out", "-o"))] = None
    quiet: Annotated[bool, "No progress.", On("cli", names=("--quiet", "-q"))] = False

    def show(self, lake: Any, asked: Request[Any], form: Format) -> None:
        with watching("studying", quiet=self.quiet) as watch:
            found = asked.ask(lake, watch)
        self.print_answer(found, asked, form)
        if self.out is not None:
            from lakescope.studies.missing_values import write_report

            say(f"report: {write_report(self.out, found)}")


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


@dataclass(frozen=True, kw_only=True)
class WritingPrinting(Watched):
    """Says under which headers a table was written."""

    formatted = False

    def print_answer(self, found: Any, asked: Request[Any], form: Format) -> None:
        assert isinstance(asked, NameColumnsRequest)
        say(f"{asked.out}: written with the headers {', '.join(found)}")


@dataclass(frozen=True, kw_only=True)
class HeaderDoubtPrinting(Watched):
    """Prints headers of the lake that are in doubt."""

    empty = "every header means something and fits its values"


@dataclass(frozen=True, kw_only=True)
class LearningPrinting(Watched):
    """Says from how many tables it was learnt."""

    formatted = False

    def print_answer(self, found: Any, asked: Request[Any], form: Format) -> None:
        say(f"learnt from {found} tables")


@dataclass(frozen=True, kw_only=True)
class EvaluationPrinting(Watched):
    """Prints how well headers are rediscovered, and how wrong ones relate to the true ones."""

    def print_answer(self, found: Results[Any], asked: Request[Any], form: Format) -> None:
        super().print_answer(found, asked, form)
        if form is Format.table:
            shown = ("method", "exact", "spacing", "word_form", "shorter_form", "granularity", "synonym", "incorrect")
            write("\nOf the headers suggested")
            print_results(Results(found.kind, list(found), shown=shown), form, empty="")


@dataclass(frozen=True, kw_only=True)
class OpinionPrinting(Printing):
    """Prints what a file begins with."""

    def print_answer(self, found: Results[Any], asked: Any, form: Format) -> None:
        for each in found.to_dicts():
            print_record({"table": asked.query, **each}, form)


#: Options that `count` had for one of its modes alone, with the command that has them now.
_OF_ADVICE, _OF_COUNTER_STUDY = ("--sets", "--membership", "--deletions", "--fast"), ("--max", "--seeds", "--out", "-o")


@dataclass(frozen=True, kw_only=True)
class CountPrinting(Watched):
    """Prints counts of columns."""

    empty = "no column"
    gone = (
        Gone("--stored", "a command: lakescope count stored TABLE", flag=True),
        Gone("--advise", "a command: lakescope count advise --memory 16KB", flag=True),
        Gone("--study", "a command: lakescope count study --max 1e6", flag=True),
        *(Gone(name, "an option of lakescope count advise", flag=True) for name in _OF_ADVICE),
        *(Gone(name, "an option of lakescope count study") for name in _OF_COUNTER_STUDY),
    )


@dataclass(frozen=True, kw_only=True)
class StoredCountPrinting(Printing):
    """Prints what the writers of tables have counted."""

    empty = "no counts are stored"


@dataclass(frozen=True, kw_only=True)
class CounterStudyPrinting(Watched):
    """Prints how counters compare, and writes a report."""

    out: Annotated[str | None, "Folder for the report.", On("cli", names=("--out", "-o"))] = None

    def print_answer(self, found: Results[Any], asked: Request[Any], form: Format) -> None:
        own = found.info.get("own")
        super().print_answer(found, asked, form)
        if own is not None and self.out is None:
            write("")
            print_results(own, form, empty="no column")
        if self.out is not None:
            from lakescope.studies.counters import write_report

            say(f"report: {write_report(self.out, found, own)}")


@dataclass(frozen=True, kw_only=True)
class LakeDependencyPrinting(Printing):
    """Prints the best dependencies of all tables."""

    empty = "no dependency was found"

    quiet: Annotated[bool, "No progress.", On("cli", names=("--quiet", "-q"))] = False

    def show(self, lake: Any, asked: LakeDependenciesRequest, form: Format) -> None:
        if not self.quiet:
            say("starting Spark ...")
        self.print_answer(asked.ask(lake), asked, form)
        if asked.out is not None:
            say(f"all of them: {asked.out}")


#: How each command prints, by its name.
PRINTINGS: dict[str, type[Printing]] = {
    **CATALOG_PRINTINGS,
    "join": JoinPrinting,
    "paths": PathPrinting,
    "correlate": CorrelationPrinting,
    "augment": AugmentPrinting,
    "joined": JoinedPrinting,
    "autojoin": AutojoinPrinting,
    "autojoin lake": LakeAutojoinPrinting,
    "fuzzyjoin": FuzzyJoinPrinting,
    "inclusions": InclusionPrinting,
    "keys": ReferencePrinting,
    "keys primary": PrimaryKeyPrinting,
    "keys diagram": DiagramPrinting,
    "history": Printing,
    "fds": DependencyPrinting,
    "fds compare": ComparisonPrinting,
    "fds violations": ViolationPrinting,
    "fds split": SplitPrinting,
    "fds reference": ReferenceSetPrinting,
    "fds study": StudyPrinting,
    "fds lake": LakeDependencyPrinting,
    "drift": DriftPrinting,
    "count": CountPrinting,
    "count stored": StoredCountPrinting,
    "count advise": Printing,
    "count study": CounterStudyPrinting,
    "headers suggest": HeaderPrinting,
    "headers write": WritingPrinting,
    "headers check": HeaderDoubtPrinting,
    "headers learn": LearningPrinting,
    "headers evaluate": EvaluationPrinting,
    "headers detect": OpinionPrinting,
}

#: Options that commands had which are groups now, each with the command that takes its place.
GONE_OF_GROUPS: dict[str, tuple[Gone, ...]] = {
    "headers": (
        Gone("--write", "a command: lakescope headers write INDEX QUERY --out named.csv"),
        Gone("--from", "a command: lakescope headers suggest INDEX QUERY"),
        Gone("--check", "a command: lakescope headers check INDEX"),
        Gone("--evaluate", "a command: lakescope headers evaluate INDEX"),
    )
}
