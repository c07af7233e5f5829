"""The tools: each asks a lake one question and returns a bounded answer. No protocol here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import fields
from functools import wraps
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, ParamSpec

from lakescope.errors import BadRequest
from lakescope.faces.mcp.bounds import MOST, Answer, bounded, plain, short
from lakescope.faces.mcp.queries import Queries
from lakescope.questions.model import Meaning, Request, options_of

if TYPE_CHECKING:
    from lakescope.engines.headers.answers import Schemata
    from lakescope.faces.mcp.subjects import Subject
    from lakescope.lake import Lake
    from lakescope.results import Results

P = ParamSpec("P")
#: Makes the records that are told of an answer, with the fields that there is room for.
_Telling = Callable[[Any, Sequence[str]], list[Mapping[str, Any]]]

#: Seconds that looking for dependencies or a transformation may take.
MOST_SECONDS = 30.0
#: What is told of a column unless it is asked for alone.
_COLUMN = ("name", "type", "rows", "nulls", "distinct", "distinct_exact", "unique", "minimum", "maximum", "alerts")
_ALONE = (
    *_COLUMN,
    *("data_class", "type_share", "kinds", "empty", "markers", "disguised", "distinct_low", "distinct_high"),
    *("mean", "std", "quartiles", "quantile_error", "outliers", "length_min", "length_max"),
    *("top", "top_error", "patterns", "patterns_error", "sample", "histogram"),
)
_TABLE = ("table", "format", "bytes", "rows", "columns", "problems")
_SAMPLE_ROWS = 5
#: Characters of a program in words.
_PROGRAM = 600


def _in_turn(method: Callable[P, Answer]) -> Callable[P, Answer]:
    """One question at a time: searches share what they have opened."""

    @wraps(method)
    def asked(*args: P.args, **kwargs: P.kwargs) -> Answer:
        with _TURN:
            return method(*args, **kwargs)

    return asked


_TURN = Lock()


class LakeTools:
    """The questions of one lake, for agents."""

    def __init__(self, lake: Lake, allowed: Path | None = None) -> None:
        self._lake = lake
        self._queries = Queries(lake, allowed)

    @_in_turn
    def list_tables(self, like: str | None = None, limit: int = 50, offset: int = 0) -> Answer:
        """Tables of the lake, those whose name holds a text if one is given."""
        wanted = (like or "").lower()
        records = [
            {name: record[name] for name in _TABLE}
            for record in self._lake.tables().to_pylist()
            if wanted in record["table"].lower()
        ]
        info = self._lake.info()
        about = {name: info[name] for name in ("tables", "columns", "rows", "errors", "warnings")}
        return bounded("tables", records, limit=limit, offset=offset, lake=about)

    @_in_turn
    def profile(self, table: str, column: str | None = None, limit: int = 40, offset: int = 0) -> Answer:
        """What is in a table: its columns; everything about one of them if it is named."""
        found = self._lake.profile(table)
        about = {name: found.table[name] for name in ("table", "format", "bytes", "rows", "complete")}
        if column is not None:
            record = found.column(column)
            return bounded("columns", [{name: record[name] for name in _ALONE}], limit=1, **about)
        records = [{name: each[name] for name in _COLUMN} for each in found.columns]
        problems = [f"{each['severity']}: {each['code']}: {each['detail']}" for each in found.problems[:5]]
        return bounded("columns", records, limit=limit, offset=offset, notes=problems, **about)

    @_in_turn
    def ask(self, kind: type[Request[Any]], given: Mapping[str, Any], limit: int = MOST, offset: int = 0) -> Answer:
        """Ask a question with values as an agent gave them."""
        about, values = kind.about, dict(given)
        with ExitStack() as opened:
            for name, option in options_of(kind, "agents").items():
                if option.meaning is Meaning.TABLE:
                    subject = self._subject(values[name], located=not about.indexed)
                    values[name] = opened.enter_context(subject)
            found = kind.of(values, "agents").ask(self._lake)
        told: _Telling = _RECORDS.get(about.name, _briefly)
        records = told(found, about.brief)
        return bounded(about.records, records, limit=limit, offset=offset, notes=found.notes, paged=about.paged)

    @_in_turn
    def autojoin(self, left: Subject, right: Subject, fuzzy: bool = True, seconds: float = 15.0) -> Answer:
        """How two tables join whose keys are written differently: the programs in words, as SQL, and some rows."""
        import lakescope

        with self._subject(left, located=True) as first, self._subject(right, located=True) as second:
            plan = lakescope.autojoin(first, second, fuzzy=fuzzy, budget=_seconds(seconds))
            told: dict[str, Any] = {
                "found": bool(plan),
                "direction": plan.direction,
                "columns": list(plan.columns),
                "keys": list(plan.keys),
                "fuzzy": None if plan.fuzzy is None else plan.fuzzy.words(),
                "coverage": plan.coverage,
                "source_coverage": plan.source_coverage,
                "reason": plan.reason,
            }
            rows = plan.table().slice(0, _SAMPLE_ROWS).to_pylist() if plan else []
            unmatched = {side: plan.unmatched(side, 3).to_pylist() for side in ("left", "right")} if plan else {}
            pairs = plan.pairs().num_rows
        told["unmatched"] = {side: [plain(row) for row in some] for side, some in unmatched.items()}
        answer = bounded("rows", [plain(row) for row in rows], limit=_SAMPLE_ROWS, notes=plan.notes, **told)
        return {**answer, "programs": [short(each.words(), _PROGRAM) for each in plan.programs], "total": pairs}

    def _subject(self, query: Subject, *, located: bool = False) -> Any:
        return self._queries.opened(query.table, query.csv, query.file, located=located)


def _briefly(found: Results[Any], brief: Sequence[str]) -> list[Mapping[str, Any]]:
    """The records of an answer with the fields that there is room for."""
    names = brief or [each.name for each in fields(found.kind)]
    return [{name: getattr(each, name) for name in names} for each in found]


def _by_column(found: Schemata, brief: Sequence[str]) -> list[Mapping[str, Any]]:
    """The columns of a table, each with its candidates and the header that the best schema has."""
    best = found[0].headers if len(found) else (None,) * len(found.columns)
    return [
        {
            "position": place,
            "column": column,
            "suggested": best[place],
            "candidates": [{name: getattr(each, name) for name in brief} for each in found.candidates[place]],
        }
        for place, column in enumerate(found.columns)
    ]


#: Answers whose records are made in a way of their own.
_RECORDS: dict[str, _Telling] = {"suggest_headers": _by_column}


def _seconds(seconds: float) -> float:
    if not 0 < seconds <= MOST_SECONDS:
        raise BadRequest(f"{seconds:g} seconds are too many or too few", hint=f"at most {MOST_SECONDS:g}")
    return seconds
