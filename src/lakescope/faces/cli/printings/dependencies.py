"""How commands print functional dependencies, and what follows from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from lakescope.faces.cli.output import Format, say
from lakescope.faces.cli.printing import Gone, Printing, Reported, Watched
from lakescope.questions.model import On, Range, Request
from lakescope.results import Results

if TYPE_CHECKING:
    from lakescope.questions.dependencies import LakeDependenciesRequest


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


class ReferenceSetPrinting(Listed):
    """Prints what holds after imputations."""

    empty = "no dependency was found"


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


class ViolationPrinting(Listed):
    """Prints rows that break a dependency."""

    empty = "no row breaks it"


class SplitPrinting(Listed):
    """Prints what to split off a table."""

    empty = "nothing to split off"


class StudyPrinting(Reported):
    """Prints what a study of missing values found, and writes its report."""

    def print_answer(self, found: Results[Any], asked: Request[Any], form: Format) -> None:
        super().print_answer(found, asked, form)
        if self.out is not None:
            from lakescope.studies.missing_values import write_report

            say(f"report: {write_report(self.out, found)}")


class LakeDependencyPrinting(Watched):
    """Prints the best dependencies of all tables."""

    empty = "no dependency was found"

    def show(self, lake: Any, asked: LakeDependenciesRequest, form: Format) -> None:
        if not self.quiet:
            say("starting Spark ...")
        self.print_answer(asked.ask(lake), asked, form)
        if asked.out is not None:
            say(f"all of them: {asked.out}")
