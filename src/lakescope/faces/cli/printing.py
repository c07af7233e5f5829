"""What every printing of an answer has in common, light to import: a command loads its own printing alone."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar

from lakescope.faces.cli.output import Format, print_results
from lakescope.questions.model import Request


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

    def print_answer(self, found: Any, asked: Request[Any], form: Format) -> None:
        """Print an answer and its notes."""
        values = {each.name: getattr(asked, each.name) for each in fields(asked)}  # type: ignore[arg-type]
        print_results(found, form, empty=self.empty.format(**values))
