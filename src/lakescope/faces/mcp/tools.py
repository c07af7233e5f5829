"""The tools: each asks a lake one question and returns a bounded answer. No protocol here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import fields
from functools import wraps
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, ParamSpec

from lakescope.faces.mcp.bounds import MOST, Answer, bounded, cut
from lakescope.faces.mcp.plans import TOLD
from lakescope.faces.mcp.queries import Queries
from lakescope.questions.model import Gives, Meaning, Request, options_of
from lakescope.store.records import Rows

if TYPE_CHECKING:
    import pyarrow as pa

    from lakescope.engines.headers.answers import Schemata
    from lakescope.faces.mcp.subjects import Subject
    from lakescope.lake import Lake
    from lakescope.questions.catalog import ProfileRequest
    from lakescope.results import Results, TableProfile

P = ParamSpec("P")

#: What is told of a column unless it is asked for alone.
_COLUMN = ("name", "type", "rows", "nulls", "distinct", "distinct_exact", "unique", "minimum", "maximum", "alerts")
_ALONE = (
    *_COLUMN,
    *("data_class", "type_share", "kinds", "empty", "markers", "disguised", "distinct_low", "distinct_high"),
    *("mean", "std", "quartiles", "quantile_error", "outliers", "length_min", "length_max"),
    *("top", "top_error", "patterns", "patterns_error", "sample", "histogram"),
)


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
    def ask(self, kind: type[Request[Any]], given: Mapping[str, Any], limit: int = MOST, offset: int = 0) -> Answer:
        """Ask a question with values as an agent gave them."""
        about, values = kind.about, dict(given)
        with ExitStack() as opened:
            for name, option in options_of(kind, "agents").items():
                if option.meaning is Meaning.TABLE:
                    subject = self._subject(values[name], located=not about.indexed)
                    values[name] = opened.enter_context(subject)
            request = kind.of(values, "agents")
            found = request.ask(self._lake)
            # Before files that were given are gone: a join reads their rows.
            answer = _ANSWERS.get(about.name, _FORMS[about.gives])
            return answer(self._lake, request, found, limit, offset)

    def _subject(self, query: Subject, *, located: bool = False) -> Any:
        return self._queries.opened(query.table, query.csv, query.file, located=located)


# --- answers ----------------------------------------------------------------------------------------------------------


def _of_records(lake: Lake, request: Request[Any], found: Results[Any], limit: int, offset: int) -> Answer:
    about = request.about
    names = about.brief or [each.name for each in fields(found.kind)]
    records: list[Mapping[str, Any]] = [{name: getattr(each, name) for name in names} for each in found]
    return bounded(about.records, records, notes=found.notes, paged=about.paged, limit=limit, offset=offset)


def _of_rows(lake: Lake, request: Request[Any], found: pa.Table, limit: int, offset: int) -> Answer:
    about = request.about
    names = about.brief or [name for name in found.column_names if name not in about.private]
    return bounded(about.records, Rows(found.select(names)), limit=limit, offset=offset)


def _of_record(lake: Lake, request: Request[Any], found: Mapping[str, Any], limit: int, offset: int) -> Answer:
    return cut(request.about.public(found))


def _of_text(lake: Lake, request: Request[Any], found: str, limit: int, offset: int) -> Answer:
    return {request.about.records: found}


def _of_join(lake: Lake, request: Request[Any], found: Any, limit: int, offset: int) -> Answer:
    return TOLD[request.about.name](found)


def _suggested(lake: Lake, request: Request[Any], found: Schemata, limit: int, offset: int) -> Answer:
    """The columns of a table, each with its candidates and the header that the best schema has."""
    best = found[0].headers if len(found) else (None,) * len(found.columns)
    about = request.about
    records = [
        {
            "position": place,
            "column": column,
            "suggested": best[place],
            "candidates": [{name: getattr(each, name) for name in about.brief} for each in found.candidates[place]],
        }
        for place, column in enumerate(found.columns)
    ]
    return bounded(about.records, records, notes=found.notes, paged=about.paged, limit=limit, offset=offset)


def _tables(lake: Lake, request: Request[Any], found: pa.Table, limit: int, offset: int) -> Answer:
    """Tables, and how large the lake is."""
    info = lake.info()
    about = {name: info[name] for name in ("tables", "columns", "rows", "errors", "warnings")}
    return {**_of_rows(lake, request, found, limit, offset), "lake": about}


def _profile(lake: Lake, request: ProfileRequest, found: TableProfile, limit: int, offset: int) -> Answer:
    """The columns of a table; everything about one of them if it is named."""
    about = {name: found.table[name] for name in ("table", "format", "bytes", "rows", "complete")}
    names = _COLUMN if request.column is None else _ALONE
    records = [{name: each[name] for name in names} for each in found.columns]
    problems = [f"{each['severity']}: {each['code']}: {each['detail']}" for each in found.problems[:5]]
    return bounded(
        "columns", records, notes=problems if request.column is None else (), limit=limit, offset=offset, **about
    )


#: What an agent is told, by what an answer is, and of questions whose answers are told in their own way.
_FORMS: dict[Gives, Callable[..., Answer]] = {
    **{"records": _of_records, "rows": _of_rows, "record": _of_record, "text": _of_text, "join": _of_join}
}
_ANSWERS: dict[str, Callable[..., Answer]] = {"tables": _tables, "profile": _profile, "suggest_headers": _suggested}
