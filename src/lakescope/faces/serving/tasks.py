"""Questions that read tables, or look at the whole lake: answered by a worker, as plain data of bounded size."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from lakescope.code.dialects import DIALECTS, PLAN_DIALECTS
from lakescope.code.writers import renamed
from lakescope.errors import BadRequest, LakescopeError
from lakescope.faces.serving.held import Held, Told, others
from lakescope.faces.serving.plain import plain, rows_of
from lakescope.faces.serving.worker import Answerer, Progress
from lakescope.lake import Lake
from lakescope.questions import QUESTIONS, declared
from lakescope.questions.augment import AugmentRequest, JoinedRequest
from lakescope.questions.autojoin import AutojoinRequest, FuzzyJoinRequest
from lakescope.questions.correlated import CorrelatedRequest
from lakescope.questions.headers import SuggestHeadersRequest
from lakescope.questions.joinable import JoinableRequest
from lakescope.questions.model import Request, Watch, options_of
from lakescope.questions.rows import DescribeRequest, HeadRequest
from lakescope.results import Results
from lakescope.store.records import Rows

if TYPE_CHECKING:
    from lakescope.engines.joins.answers import Joinable
    from lakescope.engines.transforms.fuzzyjoin import FuzzyJoin
    from lakescope.engines.transforms.plan import Plan

#: Rows and cells of a table that are shown.
SHOWN_ROWS, _CELL = 25, 200
#: Largest table that is read whole to look for values that stand for missing ones.
_LOOKED_THROUGH = 64_000_000
#: Points of a scatter plot, and finds that have one.
_POINTS, _DRAWN = 400, 12
#: Records of an answer of which a page is shown at a time.
_MANY = 5_000

Answer = dict[str, Any]
#: Asks a question and adds to its answer: the lake, the request, who waits, what a server knows besides.
Adding = Callable[[Lake, Any, Watch, "Context"], Answer]


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


@dataclass(frozen=True, slots=True)
class Context:
    """What a server knows about a question besides its options.

    ``names`` are what the owner calls the files that options name. What a file ``held`` already is left out. ``out``
    is where a table that is made is to be written, and ``search`` what its owner searched with.
    """

    names: Mapping[str, str]
    held: Sequence[Held]
    out: str
    search: Answer | None

    def named(self, code: str, **places: Any) -> str:
        """Code that calls files what their owner calls them: where they lie here is nobody's business."""
        for option, place in places.items():
            if option in self.names:
                code = renamed(code, place, self.names[option])
        return code

    def write(self, table: pa.Table) -> None:
        """Write a table that was made, if it is wanted."""
        if self.out:
            import pyarrow.parquet as pq

            pq.write_table(table, self.out)


def ask(
    lake: Lake,
    progress: Progress,
    question: str,
    asked: Answer,
    names: Mapping[str, str] | None = None,
    held: Told = (),
    out: str = "",
    search: Answer | None = None,
) -> Answer:
    """A question that is declared, from its plain parameters, with what pages add to each record."""
    request = declared(question).of(asked)
    add: Adding = _ADDING.get(question, _plainly)
    return add(lake, request, _Watch(progress), Context(names or {}, Held.of(held), out, search))


def _plainly(lake: Lake, request: Request[Any], watch: Watch, context: Context) -> Answer:
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


def _joinable(lake: Lake, request: JoinableRequest, watch: Watch, context: Context) -> Answer:
    """Columns that join, with code for each."""
    held = context.held
    found = others(lambda most: replace(request, k=most).ask(lake, watch), request.k, held, Held.has_join)
    added = [{"code": _join_code(lake, request.query, record, context)} for record in found]
    return answered(found, added)


def _join_code(lake: Lake, query: Any, record: Any, context: Context) -> dict[str, str]:
    return {each: context.named(lake.join_code(query, record, each), query=query) for each in DIALECTS}


def _correlated(lake: Lake, request: CorrelatedRequest, watch: Watch, context: Context) -> Answer:
    """Columns that correlate, the sample behind each, and code for the real join."""
    complete = request.completed(lake)
    query, key, target = complete.query, list(complete.key or ()), str(complete.target)
    found = others(
        *(lambda most: replace(complete, k=most).ask(lake, watch), request.k, context.held),
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
        added.append({"points": points, "code": _correlation_code(lake, complete, record, context)})
    return {**answered(found, added), "key": key, "target": target}


def _head(lake: Lake, request: HeadRequest, watch: Watch, context: Context) -> Answer:
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


def _describe(lake: Lake, request: DescribeRequest, watch: Watch, context: Context) -> Answer:
    """The columns of a table as the lake sees them, and its first rows."""
    watch.tell("reading the file")
    rows = rows_of(lake.head(request.query, SHOWN_ROWS), _CELL)
    return {**answered(request.ask(lake, watch)), "head": {"columns": rows["columns"], "rows": rows["records"]}}


def _suggested_headers(lake: Lake, request: SuggestHeadersRequest, watch: Watch, context: Context) -> Answer:
    """Candidates of the columns of a table, and those that the best schema has."""
    found = request.ask(lake, watch)
    best = found[0].headers if len(found) else [None] * len(found.columns)
    named = [{"column": column, "header": header} for column, header in zip(found.columns, best, strict=True)]
    return {**_some(found.by_column()), "schema": named}


def _correlation_code(
    lake: Lake, request: CorrelatedRequest | AugmentRequest, record: Any, context: Context
) -> dict[str, str]:
    query, key, target = request.query, list(request.key or ()), str(request.target)
    try:
        return {
            each: context.named(
                lake.correlation_code(query, key, record, each, target=target, query_agg=request.query_agg), query=query
            )
            for each in DIALECTS
        }
    except BadRequest:  # aggregates that other systems have no word for
        return {}


def _joined(lake: Lake, request: JoinedRequest, watch: Watch, context: Context) -> Answer:
    """A query joined with a table of the lake.

    What was searched with is told again if its columns are still there, to go on with.
    """
    made = request.ask(lake, watch)
    context.write(made.table)
    notes = [f"{made.matched:,} of {made.query_rows:,} rows found a partner"]
    if made.cut:
        notes.append(f"the join has more rows: the first {request.most:,} were made")
    of = cast("Joinable", SimpleNamespace(query_column=request.on, table=request.table, column=request.column))
    answer: Answer = {
        **rows_of(made.table, _CELL, SHOWN_ROWS),
        **{"rows": made.table.num_rows, "notes": notes, "code": _join_code(lake, request.query, of, context)},
        "names": [(request.column, request.on), *made.names],
    }
    if context.search and columns_of_search(context.search) <= {*made.table.column_names}:
        answer["asked"] = context.search
    return answer


def _augment(lake: Lake, request: AugmentRequest, watch: Watch, context: Context) -> Answer:
    """A query with columns that correlate joined in, and what each adds."""
    watch.tell(request.about.doing)
    complete = request.completed(lake)
    key = list(complete.key or ())
    found = others(
        *(lambda most: complete.searched(lake, most or complete.looked_for), complete.looked_for, context.held),
        lambda some, each: some.has_number(each, key),
    )
    watch.tell("joining")
    chosen = complete.chosen(found)
    table, added = complete.joined_in(lake, chosen)
    if chosen:
        context.write(table)
    codes = [_correlation_code(lake, complete, each, context) for each in chosen]
    notes = [] if complete is request else [complete.guessed]
    return {
        **rows_of(table, _CELL, SHOWN_ROWS),
        **{"rows": table.num_rows, "added": added.to_dicts(), "asked": search_of(complete), "notes": notes},
        "code": {each: "\n\n".join(some[each] for some in codes) for each in DIALECTS if codes and all(codes)},
        "join_code": _augment_code(lake, complete, chosen, [each.name for each in added], context),
    }


def _augment_code(
    lake: Lake, request: AugmentRequest, chosen: list[Any], names: list[str], context: Context
) -> dict[str, str]:
    query, key, target = request.query, list(request.key or ()), str(request.target)
    try:
        return {
            each: context.named(lake.augment_code(query, key, target, chosen, names, each), query=query)
            for each in DIALECTS
        }
    except BadRequest:  # aggregates that other systems have no word for
        return {}


def search_of(asked: CorrelatedRequest | AugmentRequest) -> Answer:
    """What was searched with, to search in the same way with another table: all but the table, and how many."""
    known = options_of(CorrelatedRequest, "web")
    given = asked.parameters()
    search = {name: given[name] for name in known if name in given and name not in ("query", "k", "verify")}
    return {"key": search.pop("key", []), "target": search.pop("target", None), "agg": asked.agg, **search}


def columns_of_search(search: Answer) -> set[str]:
    """The columns of a query that a search names."""
    return {*(search.get("key") or ()), *filter(None, (search.get("target"), search.get("given")))}


def _autojoin(lake: Lake, request: AutojoinRequest, watch: Watch, context: Context) -> Answer:
    """How two tables join whose keys are written differently, and the joined rows.

    Where neither has a key that the other refers to, the columns that hold the same values.
    """
    plan = request.ask(lake, watch)
    data = {key: value for key, value in plan.to_dict().items() if key != "version"}
    data |= {"found": bool(plan), "words": plan.words(), "as_they_are": plan.as_they_are}
    data["evidence"] = _borne_out(data["evidence"])
    if not plan:
        watch.tell("looking for values in common")
        return {"plan": data, "shared": _shared(lake, request, context), **_no_rows()}
    watch.tell("joining")
    unmatched = {side: rows_of(plan.unmatched(side), _CELL) for side in ("left", "right")}
    left, right = lake._place(request.left), lake._place(request.right)
    code = {each: context.named(plan.code(each), left=left, right=right) for each in PLAN_DIALECTS}
    about = {"plan": data, "shared": [], "unmatched": unmatched, "code": code}
    return {**_joined_rows(plan, context), **about, "names": _names(plan)}


def _fuzzyjoin(lake: Lake, request: FuzzyJoinRequest, watch: Watch, context: Context) -> Answer:
    """How two columns join that are nearly equal, and the joined rows."""
    found = request.ask(lake, watch)
    data = {**found.to_dict(), "found": bool(found), "words": found.words()}
    if not found:
        return {"join": data, **_no_rows()}
    watch.tell("joining")
    return {"join": data, **_joined_rows(found, context), "names": found.right_names_free()}


def _joined_rows(found: Plan | FuzzyJoin, context: Context) -> Answer:
    """The first of the rows that two tables have together, all of which are written if they are wanted."""
    table = found.table()
    context.write(table)
    return {**rows_of(table, _CELL, SHOWN_ROWS), "rows": table.num_rows, "notes": [], "upload": None}


def _no_rows() -> Answer:
    return {"rows": 0, "columns": [], "records": [], "unmatched": {}, "code": {}, "notes": [], "upload": None}


def _shared(lake: Lake, request: AutojoinRequest, context: Context) -> list[Answer]:
    """Columns of two tables that hold the same values, and what the lake thinks of them."""
    places = [lake._place(each) for each in (request.left, request.right)]
    tables = [None if side in context.names else getattr(request, side) for side in ("left", "right")]
    shared = lake.shared_columns(*places).to_dicts()
    return [{**each, **_judged(lake, places, tables, each)} for each in shared]


def _borne_out(evidence: list[Answer]) -> list[Answer]:
    """The pairs of rows that programs bear out, as they were looked at."""
    told = ("row", "key", "shared")
    return [{name: each[name] for name in told} for each in evidence if each["borne_out"]]


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


#: What is added to the answers of some questions.
_ADDING: dict[str, Adding] = {
    "joinable": _joinable,
    "correlated": _correlated,
    "joined": _joined,
    "augment": _augment,
    "autojoin": _autojoin,
    "fuzzyjoin": _fuzzyjoin,
    "head": _head,
    "describe": _describe,
    "suggest_headers": _suggested_headers,
}


# --- questions of this face alone -------------------------------------------------------------------------------------


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
    **{"keys": keys, "warm": warm},
}
