"""How a command prints an answer: what all commands have in common, and options that several of them add."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar

from lakescope.faces.cli.output import Format, print_results, say
from lakescope.questions.model import On, Request
from lakescope.results import Results


@dataclass(frozen=True, slots=True)
class Gone:
    """An option that a command had, and what takes its place."""

    name: str
    instead: str
    flag: bool = False

    @property
    def parameter(self) -> str:
        """Its name among the arguments of a function."""
        return "gone_" + self.name.strip("-").replace("-", "_")

    @property
    def kind(self) -> Any:
        """The type that it had."""
        return bool if self.flag else str | None


@dataclass(frozen=True, kw_only=True)
class Printing:
    """How a command prints an answer; below it, commands declare options of their own."""

    #: What is said where there is no record; options of the question may be named: ``{minimum:.0%}``.
    empty: ClassVar[str] = "nothing found"
    #: Whether records are printed, in a format that is chosen.
    formatted: ClassVar[bool] = True
    #: Options that a command had, each with what takes its place.
    gone: ClassVar[tuple[Gone, ...]] = ()

    def check(self) -> None:
        """Refuse options that do not go together, before an index is opened."""

    def asked(self, values: dict[str, Any]) -> dict[str, Any]:
        """The values of the question, with those that the command has otherwise."""
        return values

    def show(self, lake: Any, asked: Any, form: Format) -> None:
        """Ask, and print the answer."""
        self.print_answer(asked.ask(lake), asked, form)

    def print_answer(self, found: Results[Any], asked: Request[Any], form: Format) -> None:
        """Print an answer and its notes."""
        values = {each.name: getattr(asked, each.name) for each in fields(asked)}  # type: ignore[arg-type]
        print_results(found, form, empty=self.empty.format(**values))


@dataclass(frozen=True, kw_only=True)
class Explained(Printing):
    """Prints an answer, and how it was found."""

    explain: Annotated[bool, "Say how the answer was found: what was looked at and read."] = False

    def print_answer(self, found: Results[Any], asked: Request[Any], form: Format) -> None:
        super().print_answer(found, asked, form)
        if not self.explain:
            return
        parts = found.info.get("columns", [found.info])
        if "columns" in found.info and "fetched_bytes" in found.info:
            parts = [*parts, {"fetched_bytes": found.info["fetched_bytes"]}]
        for each in parts:
            say("; ".join(f"{name}: {_text(value)}" for name, value in each.items()))


def _text(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


@dataclass(frozen=True, kw_only=True)
class Watched(Printing):
    """Prints an answer that takes a while, with progress until it is there."""

    quiet: Annotated[bool, "No progress.", On("cli", names=("--quiet", "-q"))] = False

    def show(self, lake: Any, asked: Any, form: Format) -> None:
        from lakescope.faces.cli.progress import watching

        with watching(asked.about.doing, quiet=self.quiet) as watch:
            found = asked.ask(lake, watch)
        self.print_answer(found, asked, form)


@dataclass(frozen=True, kw_only=True)
class Reported(Watched):
    """Prints what a study found, and writes its report."""

    out: Annotated[str | None, "Folder for the report.", On("cli", names=("--out", "-o"))] = None
