"""How commands print tables that they make: columns joined in, rows of two tables, plans of joins."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

from lakescope.code.dialects import PlanDialect
from lakescope.errors import BadRequest, NotFound
from lakescope.faces.cli.output import Format, print_record, print_records, say, write
from lakescope.faces.cli.printing import Explained, Gone, Printing, Watched
from lakescope.questions.model import On, Request, options_of
from lakescope.results import Results
from lakescope.show.text import aligned, shorten
from lakescope.tables.writing import check_folder, check_output, write_table

if TYPE_CHECKING:
    from lakescope.questions.augment import JoinedRequest
    from lakescope.questions.autojoin import AutojoinRequest, FuzzyJoinRequest, LakeAutojoinRequest

#: Rows of the joined table, of evidence and of what is left that are shown, and characters of their cells.
_SHOWN, _CELL = 5, 28


class AugmentPrinting(Printing):
    """Prints what each column adds that was joined in."""

    empty = "no column correlates: nothing was added"

    def print_answer(self, found: Results[Any], asked: Any, form: Format) -> None:
        super().print_answer(found, asked, form)
        if found and asked.out is not None:
            say(f"{asked.out}: {len(found)} columns added")


class JoinedPrinting(Printing):
    """Prints the first rows of a join."""

    def show(self, lake: Any, asked: JoinedRequest, form: Format) -> None:
        found = asked.ask(lake)
        rows = found.table.slice(0, _SHOWN)
        print_records(rows.to_pylist(), rows.column_names, form, empty="the table has no rows")
        say(f"{found.matched:,} of {found.query_rows:,} rows found a partner")
        if found.cut:
            say(f"note: the join has more rows: the first {asked.most:,} were made; --most makes more")
        if asked.out is not None:
            say(f"wrote {found.table.num_rows:,} rows to {asked.out}")


@dataclass(frozen=True, kw_only=True)
class MadePrinting(Watched):
    """Prints how two tables are joined, and writes the joined table."""

    out: Annotated[
        str | None, "Write the joined table: .parquet, .csv or .arrow.", On("cli", names=("--out", "-o"))
    ] = None

    def check(self) -> None:
        if self.out is not None:
            check_output(self.out)

    def write_joined(self, found: Any) -> None:
        """Write what joins; where nothing does, whoever waits for the file is told that there is none."""
        if self.out is None:
            return
        if not found:
            raise NotFound(f"nothing joins: {self.out} was not written", hint="ask without --out to see why")
        write_table(found.table(), self.out)
        say(f"wrote {found.pairs().num_rows:,} rows to {self.out}")


@dataclass(frozen=True, kw_only=True)
class AutojoinPrinting(MadePrinting):
    """Finds a plan, or takes a saved one; prints it, its code or its parts."""

    gone = (
        Gone("-k", "an option of lakescope autojoin lake INDEX QUERY"),
        Gone("--candidates", "an option of lakescope autojoin lake INDEX QUERY"),
    )

    code: Annotated[PlanDialect | None, "Print the join as code instead."] = None
    save: Annotated[str | None, "Write the plan to this JSON file."] = None
    plan: Annotated[str | None, "Use a plan that was saved instead of looking for one."] = None
    explain: Annotated[bool, "Show what it was learnt from."] = False

    def check(self) -> None:
        super().check()
        if self.save is not None:
            check_folder(self.save)

    def show(self, lake: Any, asked: AutojoinRequest, form: Format) -> None:
        plan = self._plan(asked)
        if self.code is not None:
            if not plan:
                raise NotFound(plan.words(), hint="ask without --code and with --explain to see what was tried")
            write(plan.code(self.code))
        elif form is Format.json:
            print_record({**plan.to_dict(), "pairs": plan.pairs().num_rows, "info": plan.info}, form)
        elif form is Format.csv:
            fields = ["order", "direction", "columns", "key", "program", "rows"]
            print_records(_programs(plan), fields, form, empty="")
        else:
            _print_plan(plan, explain=self.explain)
        if self.save is not None:
            if not plan:
                raise NotFound(f"nothing joins: {self.save} was not written", hint="ask without --save to see why")
            plan.save(self.save)
        self.write_joined(plan)

    def _plan(self, asked: AutojoinRequest) -> Any:
        if self.plan is None:
            from lakescope.faces.cli.progress import watching

            with watching("learning", quiet=self.quiet, stoppable=True) as watch:
                return asked.ask(None, watch)
        if asked.budget != options_of(type(asked), "cli")["budget"].default:
            raise BadRequest("--budget does nothing here", hint="a saved plan is used as it is: nothing is learnt")
        from lakescope.engines.transforms.plan import Plan

        plan = Plan.load(self.plan)
        return (plan if asked.fuzzy else replace(plan, fuzzy=None)).apply(asked.left, asked.right)


def _programs(plan: Any) -> list[dict[str, Any]]:
    """The programs of a plan as records, in the order in which they are tried."""
    rows = plan.info.get("rows", [])
    return [
        {
            "order": number,
            "direction": plan.direction,
            "columns": list(program.columns),
            "key": [piece.words() for piece in program.keys],
            "program": program.words(),
            "rows": rows[number] if rows else None,
        }
        for number, program in enumerate(plan.programs)
    ]


def _print_plan(plan: Any, *, explain: bool) -> None:
    write(plan.words())
    if plan:
        _print_sample("joined", plan.table().slice(0, _SHOWN))
        for side in ("left", "right"):
            _print_sample(f"{side} rows that do not join", plan.unmatched(side, _SHOWN))
    if explain:
        _print_evidence(plan)


def _print_sample(title: str, table: Any) -> None:
    if table.num_rows:
        cells = [[shorten(str(cell), _CELL) for cell in row.values()] for row in table.to_pylist()]
        write("\n".join(["", f"{title}:", *aligned([shorten(name, _CELL) for name in table.column_names], cells)]))


def _print_evidence(plan: Any) -> None:
    if plan.evidence:
        rows = [[shorten(" | ".join(e.row.values()), 60), shorten(e.key, 40), e.shared] for e in plan.evidence]
        write("\n".join(["", "learnt from, among others:", *aligned(["row", "key", "shared"], rows)]))
    known = {name: value for name, value in plan.info.items() if value is not None}
    if known:
        say("; ".join(f"{name}: {_short(value)}" for name, value in known.items()))


def _short(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True, kw_only=True)
class LakeAutojoinPrinting(Explained, Watched):
    """Prints tables of a lake that join after a transformation, and why others do not."""

    empty = "no table of the index would join after a transformation"

    def show(self, lake: Any, asked: LakeAutojoinRequest, form: Format) -> None:
        from lakescope.faces.cli.progress import watching

        with watching("learning", quiet=self.quiet, stoppable=True) as watch:
            found = asked.ask(lake, watch)
        self.print_answer(found, asked, form)

    def print_answer(self, found: Results[Any], asked: Request[Any], form: Format) -> None:
        Printing.print_answer(self, found, asked, form)
        if self.explain:
            for table, why in found.info.get("refused", {}).items():
                say(f"{table}: {why}")


class FuzzyJoinPrinting(MadePrinting):
    """Joins two columns that are nearly equal, and prints how."""

    def show(self, lake: Any, asked: FuzzyJoinRequest, form: Format) -> None:
        from lakescope.faces.cli.progress import watching

        with watching("joining", quiet=self.quiet, stoppable=True) as watch:
            joined = asked.ask(None, watch)
        if form is Format.table:
            write(joined.words())
            _print_sample("joined", joined.table().slice(0, _SHOWN))
        else:
            print_record(joined.to_dict(), form)
        self.write_joined(joined)
