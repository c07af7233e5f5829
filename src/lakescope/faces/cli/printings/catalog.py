"""How commands print what is in a lake: the catalog, where a text is, links between tables, rows of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from lakescope.faces.cli.output import Format, Record, print_record, print_records, say, write
from lakescope.faces.cli.printing import Gone, Printing
from lakescope.questions.model import On, Range, Request


class RecordPrinting(Printing):
    """Prints one record: its fields under one another."""

    def print_answer(self, found: Any, asked: Request[Any], form: Format) -> None:
        print_record(found, form)


class InfoPrinting(RecordPrinting):
    """Prints the lake at a glance."""

    gone = (Gone("--timings", "a command: lakescope timings INDEX", flag=True),)


class TimingPrinting(Printing):
    """Prints the stages of a build."""

    empty = "it was not measured"


@dataclass(frozen=True, kw_only=True)
class RowPrinting(Printing):
    """Prints rows of the catalog: all, or those that come first."""

    limit: Annotated[
        int, "Print at most this many (0: all).", Range(0, hint="0: all"), On("cli", names=("--limit", "-n"))
    ] = 0

    def fields(self, asked: Any) -> Sequence[str]:
        """Fields that a table for people has."""
        return list(asked.about.shown)

    def readable(self, record: Record) -> Record:
        """A record as people read it."""
        return record

    def print_answer(self, found: Any, asked: Request[Any], form: Format) -> None:
        records = (found.slice(0, self.limit) if self.limit else found).to_pylist(maps_as_pydicts="strict")
        if form is Format.table:
            records = [self.readable(record) for record in records]
        print_records(records, self.fields(asked), form, empty=self.empty)
        if left_out := found.num_rows - len(records):
            say(f"({left_out:,} more; --limit 0 shows all)")


class TablePrinting(RowPrinting):
    """Prints tables."""

    empty = "no table matches"


class ColumnPrinting(RowPrinting):
    """Prints columns: estimated counts with a mark."""

    empty = "no column matches"

    def fields(self, asked: Any) -> Sequence[str]:
        return list(asked.fields or asked.about.shown)

    def readable(self, record: Record) -> Record:
        if "distinct_exact" not in record or "distinct" not in record:
            return record
        return {**record, "distinct": ("" if record["distinct_exact"] else "~") + f"{record['distinct']:,}"}

    def show(self, lake: Any, asked: Any, form: Format) -> None:
        if form is Format.table and asked.fields is None:  # no more is read than is shown
            few = replace(asked, fields=(*asked.about.shown, "distinct_exact"))
            self.print_answer(few.ask(lake), asked, form)
            return
        super().show(lake, asked, form)


class ProblemPrinting(RowPrinting):
    """Prints problems."""

    empty = "no problems"


class FindPrinting(Printing):
    """Prints where a text was found."""

    empty = "nothing is called that, and no column holds it"


class ProfilePrinting(Printing):
    """Prints the profile of a table, or of one of its columns."""

    def print_answer(self, found: Any, asked: Any, form: Format) -> None:
        if asked.column is not None:
            print_record(found.columns[0], form)
        elif form is Format.table:
            write(str(found))
        elif form is Format.json:
            print_record(found.to_dict(), form)
        else:
            print_records(found.columns, [], form, empty="")


class MapPrinting(Printing):
    """Prints the links between tables; as JSON the whole map."""

    empty = "no table is linked with another"

    def print_answer(self, found: Any, asked: Request[Any], form: Format) -> None:
        if form is Format.json:
            print_record(found.to_dict(), form)
        else:
            print_records(found.edges, asked.about.shown, form, empty=self.empty)
        for note in found.notes:
            say(f"note: {note}")


class HeadPrinting(Printing):
    """Prints the first rows of a table."""

    empty = "it has no rows"

    def print_answer(self, found: Any, asked: Request[Any], form: Format) -> None:
        print_records(found.to_pylist(), found.column_names, form, empty=self.empty)


class DescribePrinting(Printing):
    """Prints the columns of a table as the lake sees them."""

    empty = "it has no columns"


class SharedPrinting(Printing):
    """Prints columns of two tables with the same values."""

    empty = "no columns hold mostly the same values"
