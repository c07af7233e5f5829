"""How commands print counts of different values."""

from __future__ import annotations

from typing import Any

from lakescope.faces.cli.output import Format, print_results, say, write
from lakescope.faces.cli.printing import Gone, Printing, Reported, Watched
from lakescope.questions.model import Request
from lakescope.results import Results

#: Options that `count` had for one of its modes alone, with the command that has them now.
_OF_ADVICE, _OF_COUNTER_STUDY = ("--sets", "--membership", "--deletions", "--fast"), ("--max", "--seeds", "--out", "-o")


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


class StoredCountPrinting(Printing):
    """Prints what the writers of tables have counted."""

    empty = "no counts are stored"


class AdvicePrinting(Printing):
    """Prints which counter suits."""


class CounterStudyPrinting(Reported):
    """Prints how counters compare, and writes a report."""

    def print_answer(self, found: Results[Any], asked: Request[Any], form: Format) -> None:
        own = found.info.get("own")
        super().print_answer(found, asked, form)
        if own is not None and self.out is None:
            write("")
            print_results(own, form, empty="no column")
        if self.out is not None:
            from lakescope.studies.counters import write_report

            say(f"report: {write_report(self.out, found, own)}")
