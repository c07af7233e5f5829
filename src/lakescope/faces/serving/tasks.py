"""Questions that read tables, or look at the whole lake: answered by a worker, as plain data of bounded size."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

import lakescope
from lakescope.engines.joins.answers import DIALECTS
from lakescope.errors import BadRequest, LakescopeError
from lakescope.faces.serving.held import Held, Told, others
from lakescope.faces.serving.plain import plain, rows_of
from lakescope.faces.serving.worker import Answerer, Progress
from lakescope.lake import Lake, renamed
from lakescope.questions import QUESTIONS, declared
from lakescope.questions.correlated import CorrelatedRequest
from lakescope.questions.headers import SuggestHeadersRequest
from lakescope.questions.joinable import JoinableRequest
from lakescope.questions.model import Request, Watch
from lakescope.questions.rows import DescribeRequest, HeadRequest
from lakescope.results import Results
from lakescope.store.records import Rows

if TYPE_CHECKING:
    from lakescope.engines.joins.answers import Joinable
    from lakescope.engines.transforms.plan import Plan
    from lakescope.sketches.aggregates import Aggregate

#: Rows and cells of a table that are shown.
SHOWN_ROWS, _CELL = 25, 200
#: Largest table that is read whole to look for values that stand for missing ones.
_LOOKED_THROUGH = 64_000_000
#: Points of a scatter plot, and finds that have one.
_POINTS, _DRAWN = 400, 12
#: Records of an answer of which a page is shown at a time.
_MANY = 5_000
_PLAN_DIALECTS = ("python", "duckdb", "polars", "spark", "sql")

Answer = dict[str, Any]
#: Asks a question and adds to its answer: the lake, the request, who waits, what a file is called, what it holds.
Adding = Callable[[Lake, Any, Watch, str, Sequence[Held]], Answer]


def answerer(index: str) -> Answerer:
    """Answers questions about one index, which is opened once; that it is damaged is an answer, too."""
    opened = cache(partial(Lake.open, index))

    def answer(question: str, parameters: dict[str, Any], progress: Progress) -> Answer:
        answered: Answer = plain(_TASKS[question](opened(), progress, **parameters))
        return answered

    return answer


def answered(found: Results[Any], added: Sequence[Answer] = ()) -> Answer:
    """An answer of the lake as plain data, with what is added to each record."""
    records = found.to_dicts()
    for record, more in zip(records, added, strict=False):
        record |= more
    return {"records": records, "notes": list(found.notes), "info": found.info}


# --- questions that are declared --------------------------------------------------------------------------------------


class _Watch:
    """Whoever waits for a worker: is told by lines of progress, and ends the worker to stop it."""

    stopped = False

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def tell(self, doing: str, share: float | None = None) -> None:
        self._progress(doing, share)


def ask(lake: Lake, progress: Progress, question: str, asked: Answer, name: str = "", held: Told = ()) -> Answer:
    """A question that is declared, from its plain parameters, with what pages add to each record.

    ``name`` is what the owner of a file calls it; what a file ``held`` already is left out.
    """
    request = declared(question).of(asked)
    add: Adding = _ADDING.get(question, _plainly)
    return add(lake, request, _Watch(progress), name, Held.of(held))


def _plainly(lake: Lake, request: Request[Any], watch: Watch, name: str, held: Sequence[Held]) -> Answer:
    """An answer as it is: of records with what is known of them, else as the ``data`` of an envelope."""
    found, about = request.ask(lake, watch), request.about
    if about.gives == "records":
        return _some(found)
    if about.gives == "rows":
        there = [name for name in about.private if name in found.column_names]
        return {"data": Rows(found.drop_columns(there) if there else found), "notes": []}
    if about.gives == "record":
        record = found if isinstance(found, Mapping) else found.to_dict()
        return {"data": about.public(record), "notes": list(getattr(found, "notes", ()))}
    return {about.records: found, "notes": []}


def _joinable(lake: Lake, request: JoinableRequest, watch: Watch, name: str, held: Sequence[Held]) -> Answer:
    """Columns that join, with code for each."""
    found = others(lambda most: replace(request, k=most).ask(lake, watch), request.k, held, Held.has_join)
    query = request.query
    added = [
        {"code": {each: _named(lake.join_code(query, record, each), query, name) for each in DIALECTS}}
        for record in found
    ]
    return answered(found, added)


def _correlated(lake: Lake, request: CorrelatedRequest, watch: Watch, name: str, held: Sequence[Held]) -> Answer:
    """Columns that correlate, the sample behind each, and code for the real join."""
    complete = request.completed(lake)
    query, key, target = complete.query, list(complete.key or ()), str(complete.target)
    found = others(
        *(lambda most: replace(complete, k=most).ask(lake, watch), request.k, held),
        lambda some, each: some.has_number(each, key),
    )
    if complete is not request:
        found = found.with_note(complete.guessed)
    about = {"query_agg": request.query_agg}
    added = []
    for place, record in enumerate(found):
        watch.tell("drawing samples", place / len(found))
        points = []
        if place < _DRAWN:
            sample = lake.scatter_points(query, key, target, record, **about).slice(0, _POINTS)
            points = list(zip(*(column.to_numpy().tolist() for column in sample.columns), strict=True))
        code = _correlation_code(lake, query, key, record, target, name, request.query_agg)
        added.append({"points": points, "code": code})
    return {**answered(found, added), "key": key, "target": target}


def _head(lake: Lake, request: HeadRequest, watch: Watch, name: str, held: Sequence[Held]) -> Answer:
    """The first rows of a table, and values that may stand for missing ones if it is not too large to look for them."""
    shown = {**rows_of(request.ask(lake, watch), _CELL), "disguised": [], "notes": []}
    query = request.query
    if not lake._is_table(query):
        return shown
    if lake._index.table(query)["bytes"] > _LOOKED_THROUGH:
        return {**shown, "notes": ["too large to look for values that stand for missing ones"]}
    from lakescope.engines.dependencies.disguised import disguised

    watch.tell("looking for values that stand for missing ones")
    try:
        return {**shown, "disguised": disguised(lake.location(query)).to_dicts()}
    except LakescopeError as error:
        return {**shown, "notes": [f"values that stand for missing ones: {error.message}"]}


def _describe(lake: Lake, request: DescribeRequest, watch: Watch, name: str, held: Sequence[Held]) -> Answer:
    """The columns of a table as the lake sees them, and its first rows."""
    watch.tell("reading the file")
    rows = rows_of(lake.head(request.query, SHOWN_ROWS), _CELL)
    return {**answered(request.ask(lake, watch)), "head": {"columns": rows["columns"], "rows": rows["records"]}}


def _suggested_headers(
    lake: Lake, request: SuggestHeadersRequest, watch: Watch, name: str, held: Sequence[Held]
) -> Answer:
    """Candidates of the columns of a table, and those that the best schema has."""
    found = request.ask(lake, watch)
    best = found[0].headers if len(found) else [None] * len(found.columns)
    named = [{"column": column, "header": header} for column, header in zip(found.columns, best, strict=True)]
    return {**_some(found.by_column()), "schema": named}


#: What is added to the answers of some questions.
_ADDING: dict[str, Adding] = {
    "joinable": _joinable,
    "correlated": _correlated,
    "head": _head,
    "describe": _describe,
    "suggest_headers": _suggested_headers,
}


def _correlation_code(
    lake: Lake, query: str, key: list[str], record: Any, target: str, name: str, query_agg: Aggregate | None = None
) -> dict[str, str]:
    try:
        return {
            each: _named(
                lake.correlation_code(query, key, record, each, target=target, query_agg=query_agg), query, name
            )
            for each in DIALECTS
        }
    except BadRequest:  # aggregates that other systems have no word for
        return {}


def _named(code: str, query: str, name: str) -> str:
    """Code that calls an upload what its owner calls it: where it lies here is nobody's business."""
    return renamed(code, query, name) if name else code


# --- questions of this face alone -------------------------------------------------------------------------------------


def join(
    lake: Lake,
    progress: Progress,
    query: str,
    on: str,
    table: str,
    column: str,
    name: str,
    out: str,
    most: int,
    asked: Answer | None,
) -> Answer:
    """A query joined with a table of the lake, written to a file of the visitor's.

    What was asked for is told again if its columns are still there, to go on with.
    """
    progress("joining", None)
    made = lake.joined(query, on, table, column, most=most)
    _write(made.table, out)
    notes = [f"the join has more rows: the first {most:,} were made"] if made.cut else []
    told = f"{made.matched:,} of {made.query_rows:,} rows found a partner"
    of = cast("Joinable", SimpleNamespace(query_column=on, table=table, column=column))
    code = {each: _named(lake.join_code(query, of, each), query, name) for each in DIALECTS}
    told_all = {"rows": made.table.num_rows, "code": code, "notes": [told, *notes]}
    told_all["names"] = [(column, on), *made.names]
    if asked and {*asked["key"], *filter(None, [asked["target"]])} <= {*made.table.column_names}:
        told_all["asked"] = asked
    return {**rows_of(made.table, _CELL, SHOWN_ROWS), **told_all}


def augment(
    lake: Lake,
    progress: Progress,
    query: str,
    key: list[str],
    target: str,
    finds: list[list[str]],
    name: str,
    out: str,
    agg: Aggregate,
    k: int,
    held: Told = (),
) -> Answer:
    """A query with chosen columns joined in, written to a file of the visitor's, and what each adds."""
    progress("looking for the columns again", None)
    request = CorrelatedRequest(query=query, key=tuple(key), target=target, agg=agg)
    found = others(
        *(lambda most: replace(request, k=most).ask(lake), k, Held.of(held)),
        lambda some, each: some.has_number(each, key),
    )
    wanted = {tuple(each) for each in finds}
    chosen = [each for each in found if (each.table, each.key, each.column) in wanted]
    if len(chosen) < len(wanted):
        raise BadRequest("a column that was chosen is not among the finds", hint="search again and choose anew")
    progress("joining", None)
    table, added = lake.augmented(query, key, target, chosen, agg=agg)
    _write(table, out)
    codes = [_correlation_code(lake, query, key, each, target, name) for each in chosen]
    code = {each: "\n\n".join(some[each] for some in codes) for each in DIALECTS if all(codes)}
    asked = {"key": key, "target": target, "agg": agg}
    told = {"rows": table.num_rows, "added": added.to_dicts(), "asked": asked, "code": code, "notes": []}
    told["join_code"] = _augment_code(lake, query, key, target, chosen, [each.name for each in added], name)
    return {**rows_of(table, _CELL, SHOWN_ROWS), **told}


def _augment_code(
    lake: Lake, query: str, key: list[str], target: str, chosen: list[Any], names: list[str], name: str
) -> dict[str, str]:
    try:
        return {
            each: _named(lake.augment_code(query, key, target, chosen, names, each), query, name) for each in DIALECTS
        }
    except BadRequest:  # aggregates that other systems have no word for
        return {}


def _write(table: pa.Table, out: str) -> None:
    import pyarrow.parquet as pq

    pq.write_table(table, out)


def _borne_out(evidence: list[Answer]) -> list[Answer]:
    """The pairs of rows that programs bear out, as they were looked at."""
    told = ("row", "key", "shared")
    return [{name: each[name] for name in told} for each in evidence if each["borne_out"]]


def autojoin(
    lake: Lake, progress: Progress, left: str, right: str, names: list[str], out: str, budget: float
) -> Answer:
    """How two tables join whose keys are written differently, and the joined rows, written to a file if there is one.

    Where neither has a key that the other refers to, the columns that hold the same values.
    """
    progress("learning how one is rewritten into the other", None)
    places = [
        lake.location(each) if in_lake else each for each, in_lake in ((left, not names[0]), (right, not names[1]))
    ]
    plan = lakescope.autojoin(*places, budget=budget)
    data = {key: value for key, value in plan.to_dict().items() if key != "version"}
    data |= {"found": bool(plan), "words": plan.words(), "as_they_are": plan.as_they_are}
    data["evidence"] = _borne_out(data["evidence"])
    if not plan:
        progress("looking for values in common", None)
        nothing: Answer = {"rows": 0, "columns": [], "records": [], "unmatched": {}, "code": {}}
        shared = lake.shared_columns(places[0], places[1]).to_dicts()
        in_lake = [each if not name else None for each, name in zip((left, right), names, strict=True)]
        return {
            **nothing,
            "plan": data,
            "shared": [{**each, **_judged(lake, places, in_lake, each)} for each in shared],
        }
    progress("joining", None)
    table = plan.table()
    if out:
        _write(table, out)
    unmatched = {side: rows_of(plan.unmatched(side), _CELL) for side in ("left", "right")}
    code = {}
    for dialect in _PLAN_DIALECTS:
        written = plan.code(dialect)
        for place, name in zip(places, names, strict=True):
            written = _named(written, place, name)
        code[dialect] = written
    return {
        **rows_of(table, _CELL, SHOWN_ROWS),
        "plan": data,
        "shared": [],
        "rows": table.num_rows,
        "unmatched": unmatched,
        "code": code,
        "names": _names(plan),
    }


def _names(plan: Plan) -> list[tuple[str, str]]:
    """Columns of the right table, each with what it is called once joined, and with the column that it equals."""
    names = plan.right_names_free()
    if not plan.as_they_are or len(plan.programs) > 1:
        return names
    (program,) = plan.programs
    equal = [(key.column, output.columns[0]) for key, output in zip(program.keys, program.outputs, strict=True)]
    return [*names, *(pair if plan.direction == "left->right" else pair[::-1] for pair in equal)]


def _judged(lake: Lake, places: Sequence[str], tables: Sequence[str | None], shared: Answer) -> Answer:
    """What the lake thinks of two columns that hold the same values: the chance of that, and reasons to be careful.

    Nothing if neither table is one of the lake.
    """
    for mine, other in (("left", "right"), ("right", "left")):
        sides = dict(zip(("left", "right"), zip(places, tables, strict=True), strict=True))
        (place, table), (_, wanted) = sides[mine], sides[other]
        if wanted is None or wanted == table:
            continue
        least = max(0.01, 0.99 * shared[f"of_{mine}"])
        found = lake.joinable(table or place, shared[mine], threshold=least, engine="exact")
        for each in found:
            if (each.table, each.column) == (wanted, shared[other]):
                return {"p": each.p, "quality": each.quality, "reasons": list(each.reasons)}
    return {"p": None, "quality": None, "reasons": []}


def keys(lake: Lake, progress: Progress) -> Answer:
    """Primary and foreign keys of the whole lake."""
    progress("looking for keys", None)
    foreign = lake.foreign_keys()
    return {**answered(foreign), "primary": lake.primary_keys().to_dicts()}


def _some(found: Results[Any]) -> Answer:
    """An answer as plain data: so many of its records as somebody reads, and what was left out."""
    if len(found) <= _MANY:
        return answered(found)
    return answered(found[:_MANY].with_note(f"{len(found):,} were found, the first {_MANY:,} are told"))


def warm(lake: Lake, progress: Progress) -> Answer:
    """Load compiled kernels, so that the first question is as fast as all others."""
    lake.warm()
    lake.describe({"a": ["x", "y", "1"]})
    return {}


_TASKS: dict[str, Callable[..., Answer]] = {
    **{name: partial(ask, question=name) for name in QUESTIONS},
    **{each.__name__: each for each in (join, augment, autojoin, keys, warm)},
}
