"""The facade: a lake that has been indexed, with one method per question."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, cast, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakescope.code import writer_of
from lakescope.code.sides import INFINITE, KeyedSide, Side, side_of_query
from lakescope.engines.correlations.answers import Correlated, CorrelationRank, Find, Mean, Measure, Retrieval
from lakescope.engines.correlations.correlated import CorrelationSearch, verify_by_join
from lakescope.engines.joins.answers import Added, Described, Engine, Joinable, JoinPath, JoinRank, SharedColumns
from lakescope.engines.joins.augment import augmented
from lakescope.engines.joins.batch import listed_queries
from lakescope.engines.joins.joinable import JoinSearch
from lakescope.engines.joins.paths import split_join
from lakescope.engines.joins.significance import SIGNIFICANCE
from lakescope.errors import IndexDamaged, NotFound
from lakescope.once import once
from lakescope.results import Results
from lakescope.results import TableProfile as TableProfile
from lakescope.sources.names import meaningless as meaningless
from lakescope.stages import COMMAND, Stage
from lakescope.store.catalog import Catalog
from lakescope.store.index import Index
from lakescope.store.segment import rows_of
from lakescope.tables.keyed import KEY_ITSELF, KeyedQuery, numbers_of_keys, read_keyed, sketched_query
from lakescope.tables.query import QueryColumn, range_of
from lakescope.watch import NOBODY, Watch

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from lakescope.build.progress import Listener
    from lakescope.build.update import Update
    from lakescope.code.dialects import Dialect
    from lakescope.engines.dependencies.answers import LakeDependency, Nulls
    from lakescope.engines.headers.answers import (
        Confirmation,
        Evaluation,
        HeaderDoubt,
        HeaderEngine,
        HeaderMethod,
        HeaderMode,
        Schemata,
        Segmentation,
    )
    from lakescope.engines.headers.suggest import HeaderSearch
    from lakescope.engines.history.answers import Drift, Version
    from lakescope.engines.joins.joined import JoinedRows
    from lakescope.engines.keys.answers import DiagramForm, Estimator, ForeignKey, Inclusion, Method, PrimaryKey
    from lakescope.engines.keys.search import KeySearch
    from lakescope.engines.shards.pool import Pool
    from lakescope.engines.transforms.answers import TransformJoin
    from lakescope.engines.transforms.lake_wide import TransformSearch
    from lakescope.questions.catalog import ProblemOrder, Severity, TableOrder
    from lakescope.questions.find import Occurrence
    from lakescope.show.lake_map import LakeMap
    from lakescope.show.site import Report
    from lakescope.sketches.aggregates import Aggregate
    from lakescope.sources.io.locations import TableLocation
    from lakescope.store.deep_check import Finding
    from lakescope.store.push import Pushed
    from lakescope.store.remote import Traffic

#: Chances of an overlap above this are told as such: chance explains it.
CHANCE = SIGNIFICANCE.level

#: Is told how many steps of how many are done.
Steps = Callable[[int, int], None]
_Record = TypeVar("_Record")
_Method = TypeVar("_Method", bound=Callable[..., Any])


def from_one_generation(method: _Method) -> _Method:
    """A method of a lake that asks it something.

    It is answered from the generation that is there when it begins, whatever is published meanwhile; and not at all if
    a file that it reads is damaged, before or meanwhile.
    """

    @wraps(method)
    def answered(self: Lake, *arguments: Any, **options: Any) -> Any:
        if self._is_view:  # asked by another question, which looks at the files when it ends
            return method(self, *arguments, **options)
        with self._view() as lake:
            return method(lake, *arguments, **options)

    return cast("_Method", answered)


class Lake:
    """An indexed lake. Open one with :func:`lakescope.open` or build one with :func:`lakescope.index`.

    Any number of threads may ask one lake at the same time, also while it is updated: a question is answered from what
    was there when it began.
    """

    def __init__(self, index: Index, pool: Pool | None = None) -> None:
        self._snapshot = _Snapshot(index, pool)
        #: A lake of one generation, for a question: it never opens another one.
        self._is_view = False
        #: Columns as sides of code, of one question: it writes code in several dialects.
        self._sides: dict[tuple[str, str], Side] = {}
        self._opening = threading.Lock()

    @classmethod
    def open(cls, path: str | os.PathLike[str], processes: int | None = None) -> Lake:
        """Open an index; with ``processes``, questions about joins, correlations and inclusions are put to so many."""
        index = Index(path)
        return cls(index, None if processes is None else _pool(index, processes))

    def newer(self) -> Lake | None:
        """The lake as it is published now, opened in the same way; None if this is it, and whole."""
        if self._index.damage is None and self._index.published() == self._index.manifest.generation:
            return None
        return Lake.open(self._index.location, None if self._pool is None else self._pool.size)

    def close(self) -> None:
        """End the processes that search this lake, if there are any; they also end with this one."""
        if self._pool is not None:
            self._pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _view(self) -> Iterator[Lake]:
        """The lake as it is now, for one question: whatever is published meanwhile does not change it.

        A file of the index that is damaged, before or meanwhile, is told instead of an answer.
        """
        if self._is_view:
            yield self
            return
        lake = self._now()
        with lake._index.question():
            yield lake

    def _now(self) -> Lake:
        """The lake as it is at this moment, whatever becomes of this one; opened again if a file of it was damaged."""
        if self._is_view:
            return self
        if self._snapshot.index.damage is not None:
            self._reopen(only=self._snapshot)
        lake = object.__new__(type(self))
        lake.__dict__ |= {**self.__dict__, "_is_view": True, "_sides": {}}
        return lake

    def _reopen(self, only: _Snapshot | None = None) -> None:
        """Answer from what is published now; ``only`` if nobody did so since something was found out about that one."""
        with self._opening:
            if only in (None, self._snapshot):
                size = None if self._pool is None else self._pool.size
                index = Index(self._index.location)
                self._snapshot = _Snapshot(index, None if size is None else _pool(index, size))

    @property
    def _index(self) -> Index:
        return self._snapshot.index

    @property
    def _pool(self) -> Pool | None:
        return self._snapshot.pool

    @property
    def _joins(self) -> JoinSearch:
        return self._snapshot.joins

    @property
    def _correlations(self) -> CorrelationSearch:
        return self._snapshot.correlations

    @property
    def _catalog(self) -> Catalog:
        return self._snapshot.catalog

    @property
    def _keys(self) -> KeySearch:
        return self._snapshot.keys

    @property
    def _headers(self) -> HeaderSearch:
        return self._snapshot.headers

    @property
    def _transforms(self) -> TransformSearch:
        return self._snapshot.transforms

    @property
    def path(self) -> str:
        """Where the index lies."""
        return str(self._index.path)

    @property
    def _published_as(self) -> tuple[str, int]:
        """Where the index lies, and which of its generations this is: what a worker elsewhere opens."""
        return self._index.location, self._index.manifest.generation

    @property
    def generation(self) -> int:
        """Which generation of the index answers: each build, update and compaction publishes the next one."""
        return self._index.manifest.generation

    @property
    def opened_as(self) -> str:
        """Where another process opens the index; a URI may hold credentials, which ``path`` does not."""
        return self._index.location

    @property
    def fetched(self) -> Traffic | None:
        """Requests and bytes it took so far to answer, if the index lies on object storage; None if on this machine."""
        return None if self._index.traffic is None else self._index.traffic.copy()

    @from_one_generation
    def push(self, target: str, *, progress: Callable[[int, int], None] | None = None) -> Pushed:
        """Copy the index to a URI (``s3://bucket/lake.idx``), from where it can be opened.

        What is there already is not sent again. Readers see the old index until the last step, the new one after it.
        """
        from lakescope.store.push import push

        return push(self._index, target, progress)

    @from_one_generation
    def info(self, *, counts: bool = False) -> dict[str, Any]:
        """The lake at a glance: sizes, sources, problems, when and by which version it was indexed.

        With ``counts`` also how many tables there are of each format, folder, type of a column and size, and which
        problems.
        """
        from lakescope.questions.catalog import InfoRequest

        return InfoRequest(counts=counts).ask(self)

    @from_one_generation
    def timings(self) -> Results[Stage]:
        """Where the time of the last build, update or compaction went: seconds of wall clock and CPU by stage."""
        from lakescope.questions.catalog import TimingsRequest

        return TimingsRequest().ask(self)

    @from_one_generation
    def tables(
        self,
        *,
        like: str | None = None,
        format: str | None = None,
        folder: str | None = None,
        type: str | None = None,
        problems: bool = False,
        sort: TableOrder = "name",
    ) -> pa.Table:
        """One row per table: name, location, format, size, rows, columns, number of problems.

        All of them, or those with a text in the name (``like``), of a ``format``, in a ``folder``, with a column of a
        ``type``, with ``problems``. Sorted by name, or the largest first.
        """
        from lakescope.questions.catalog import TablesRequest

        return TablesRequest(like=like, format=format, folder=folder, type=type, problems=problems, sort=sort).ask(self)

    @from_one_generation
    def columns(
        self,
        table: str | None = None,
        *,
        like: str | None = None,
        type: str | None = None,
        fields: Sequence[str] | None = None,
    ) -> pa.Table:
        """One row per column with its whole profile: of every table or of one, of a type, with a text in the name.

        With ``fields`` only these: of a large lake they are read in a fraction of the time.
        """
        from lakescope.questions.catalog import ColumnsRequest

        some = None if fields is None else (fields,) if isinstance(fields, str) else tuple(fields)
        return ColumnsRequest(table=table, like=like, type=type, fields=some).ask(self)

    @from_one_generation
    def problems(self, severity: Severity | None = None, *, sort: ProblemOrder = "table") -> pa.Table:
        """What could not be read (error), was odd (warning) or is worth knowing (info), by table or the worst first."""
        from lakescope.questions.catalog import ProblemsRequest

        return ProblemsRequest(severity=severity, sort=sort).ask(self)

    @from_one_generation
    def profile(self, table: str, *, column: str | None = None, version: int | None = None) -> TableProfile:
        """The profile of one table, or of an earlier ``version`` of it, as :meth:`history` numbers them.

        With ``column`` only that of this column.
        """
        from lakescope.questions.catalog import ProfileRequest

        return ProfileRequest(table=table, column=column, version=version).ask(self)

    @from_one_generation
    def find(self, text: str, k: int = 20) -> Results[Occurrence]:
        """Tables and columns with a text in their name, in any case, and columns that hold it as a value.

        Values match as a whole, also with other capitals. Of each kind the first ``k`` are told.
        """
        from lakescope.questions.find import FindRequest

        return FindRequest(text=text, k=k).ask(self)

    @from_one_generation
    def map(self, minimum: float = 0.8) -> LakeMap:
        """The map of the lake: tables with places in a picture, linked by references and by columns in others.

        Of a column that is in another the other holds at least the share ``minimum`` of its values.
        """
        from lakescope.questions.map import MapRequest

        return MapRequest(minimum=minimum).ask(self)

    def _table(self, name: str) -> dict[str, Any]:
        """The record of a table; of one that could not be read, the reason."""
        try:
            return self._index.table(name)
        except NotFound:
            told = [
                row for row in rows_of(self._index.catalog("problems"), name).to_pylist() if row["severity"] == "error"
            ]
            if not told:
                raise
            raise NotFound(f"{name} could not be read: {told[0]['detail']}", hint="mend it and index again") from None

    @from_one_generation
    def joinable(
        self,
        query: Any,
        on: str | None = None,
        k: int | None = None,
        *,
        threshold: float | None = None,
        verify: bool = False,
        engine: Engine = "auto",
        rank: JoinRank = "overlap",
        own: bool = False,
    ) -> Results[Joinable]:
        """Columns of the lake that join with column ``on`` of the query: the ``k`` with the largest overlap, exactly.

        ``query`` is the name of a table of the lake, the path of another one, or a frame. With a ``threshold`` it is
        all columns that hold at least this share of the query's distinct values (or the ``k`` best of them):
        estimated with an interval where that is cheaper, and ``verify`` reads the columns themselves. Without ``on``
        every plausible column is tried, and the best pair of columns of each table is told. ``rank="significance"``
        puts first what chance explains least. Columns of the query's own table count only if ``own``.
        """
        from lakescope.questions.joinable import JoinableRequest

        return JoinableRequest(
            query=query, on=on, k=k, threshold=threshold, verify=verify, engine=engine, rank=rank, own=own
        ).ask(self)

    @from_one_generation
    def joinable_stages(
        self, query: Any, on: str | None = None, k: int | None = None, **options: Any
    ) -> Iterator[Results[Joinable]]:
        """The answer of :meth:`joinable` twice: at once as far as signatures tell, then exactly.

        For those who wait: a page, a notebook. What the first answer holds is estimated, with intervals.
        """
        engines: tuple[Engine, Engine] = "lsh", "exact"
        return (self.joinable(query, on, k, engine=engine, **options) for engine in engines)

    @from_one_generation
    def joinable_batch(
        self,
        queries: Any = None,
        *,
        spark: SparkSession,
        k: int | None = None,
        threshold: float | None = None,
        verify: bool = False,
        engine: Engine = "auto",
        rank: JoinRank = "overlap",
        own: bool = False,
    ) -> DataFrame:
        """Columns that join with each of many query columns, as a Spark DataFrame with one row a pair.

        ``queries`` are names of tables of the lake or paths of others, or pairs of such and a column, as a list or as
        a frame (Spark's or any other) with columns ``table`` and, if wanted, ``column``; by default every plausible
        column of the lake, which is all pairs. The options are those of :meth:`joinable`. Executors must see the index
        and the paths.
        """
        from lakescope.questions.batches import on_spark
        from lakescope.questions.joinable import JoinableRequest

        request = JoinableRequest(
            query=None, k=k, threshold=threshold, verify=verify, engine=engine, rank=rank, own=own
        )
        listed = queries if queries is None or isinstance(queries, list | tuple) else listed_queries(queries)
        return on_spark(spark, request.batch(self, listed))

    @from_one_generation
    def join_paths(
        self, query: Any, on: str | None = None, *, depth: int = 3, threshold: float = 0.5
    ) -> Results[JoinPath]:
        """Tables that can be reached from the query by up to ``depth`` joins, with the best path to each.

        Every join keeps at least ``threshold`` of the distinct values; what chance explains is not followed.
        """
        from lakescope.questions.paths import JoinPathsRequest

        return JoinPathsRequest(query=query, on=on, depth=depth, threshold=threshold).ask(self)

    @from_one_generation
    def join_code(self, query: Any, found: Joinable, dialect: Dialect = "duckdb") -> str:
        """Ready code for a join that was found."""
        left = self._code_side(query, found.query_column)
        return writer_of(dialect).join_code([(left, self._side(found.table, found.column))])

    @from_one_generation
    def path_code(self, query: Any, found: JoinPath, dialect: Dialect = "duckdb") -> str:
        """Ready code for all joins of a path, one after the other."""
        sides = []
        table = str(query) if self._is_table(query) else "query"
        for number, join in enumerate(found.joins):
            left, right = split_join(join, table, self._has_column)
            mine = self._code_side(query, left) if number == 0 else self._side(table, left)
            table = right[0]
            sides.append((mine, self._side(*right)))
        return writer_of(dialect).join_code(sides)

    @from_one_generation
    def head(self, query: Any, rows: int = 20) -> pa.Table:
        """The first rows of a table of the lake, a path or a frame: cells as they are written."""
        from lakescope.questions.rows import HeadRequest

        return HeadRequest(query=query, rows=rows).ask(self)

    @from_one_generation
    def describe(self, query: Any) -> Results[Described]:
        """The columns of a table as the lake sees them: what it knows of them, which is likely a key.

        A key and a target are guessed that :meth:`correlated` takes; ``info`` tells all ``numbers`` that it takes.
        """
        from lakescope.questions.rows import DescribeRequest

        return DescribeRequest(query=query).ask(self)

    @from_one_generation
    def joined(
        self,
        query: Any,
        on: str,
        table: str,
        column: str,
        *,
        query_rows: int | None = None,
        most: int = 1_000_000,
        out: str | os.PathLike[str] | None = None,
    ) -> JoinedRows:
        """The query joined with a table of the lake: its first ``query_rows`` or all, ``most`` pairs at most.

        The table is written to ``out``, if that is named.
        """
        from lakescope.questions.augment import JoinedRequest

        return JoinedRequest(
            query=query,
            on=on,
            table=table,
            column=column,
            query_rows=query_rows,
            most=most,
            out=None if out is None else os.fspath(out),
        ).ask(self)

    @from_one_generation
    def shared_columns(self, left: Any, right: Any, k: int = 8) -> Results[SharedColumns]:
        """Pairs of columns of two tables that hold mostly the same values as they are, the ``k`` most alike first."""
        from lakescope.questions.rows import SharedColumnsRequest

        return SharedColumnsRequest(left=left, right=right, k=k).ask(self)

    def _place(self, query: Any) -> Any:
        """What is to be read of a query: of a table of the lake where it lies."""
        return self.location(query) if self._is_table(query) else query

    @from_one_generation
    def location(self, table: str) -> TableLocation:
        """Where a table lies: its URI, with ``::name`` for a sheet or a database's table."""
        from lakescope.tables.reading import located

        return located(table, str(self._table(table)["uri"]))

    def _side(self, table: str, column: str) -> Side:
        """A column of the lake as one side of code, with what the index knows of how its values are written."""
        if not self._is_view:
            return self._side_of(table, column)
        if (table, column) not in self._sides:
            self._sides[table, column] = self._side_of(table, column)
        return self._sides[table, column]

    def _side_of(self, table: str, column: str) -> Side:
        names = {self._joins.name_of(number): number for number in self._joins.columns_of(table)}
        fields = ("kinds", "source_type", "patterns", "empty", "markers", "top", "sample", "minimum", "maximum")
        record = self._index.column(names[_known(column, names)], (*fields, "data_class", "distinct", "infinite"))
        shown = [each["value"] for each in record["top"] or []]
        shown += [*(record["sample"] or []), record["minimum"], record["maximum"]]
        # Letters beyond ASCII may be in a text that is not shown; codes, and texts of one pattern, hardly have any.
        unseen = "text" in dict(record["kinds"] or {}) and record["data_class"] != "code"
        unseen = unseen and len(record["patterns"] or []) > 1
        return Side(
            self.location(table),
            str(self._table(table)["format"]),
            column,
            kinds=(
                *(kind for kind, count in dict(record["kinds"] or {}).items() if count),
                *((INFINITE,) if record["infinite"] else ()),
            ),
            source_type=str(record["source_type"]),
            patterns=tuple(each["value"] for each in record["patterns"] or []),
            empty=bool(record["empty"] or record["markers"]),
            wide=any(not str(text).isascii() for text in shown) or (unseen and record["distinct"] > len({*shown})),
            odd=any(
                problem["severity"] != "info" and problem["code"] != "renamed-columns"
                for problem in rows_of(self._index.catalog("problems"), table).to_pylist()
            ),
        )

    def _has_column(self, table: str, column: str) -> bool:
        numbers = self._joins.columns_of(table) if self._is_table(table) else ()
        return any(self._joins.name_of(number) == column for number in numbers)

    def _code_side(self, query: Any, column: str) -> Side:
        """A column of a query as one side of code: of a table of the lake, a path, or a frame."""
        return self._side(query, column) if self._is_table(query) else side_of_query(query, column)

    def _query(self, query: Any, on: str | None, *, plausible: bool = False) -> tuple[list[QueryColumn], str | None]:
        """The columns of a query (those it makes sense to join on, if ``plausible``), or the one that is named.

        And the table it is, if it is one of the lake.
        """
        if self._is_table(query):
            numbers = {self._joins.name_of(number): number for number in self._joins.columns_of(query)}
            if on is not None:
                return [self._joins.lake_column(numbers[_known(on, numbers)])], query
            chosen = self._joins.plausible(numbers.values()) if plausible else numbers.values()
            return [self._joins.lake_column(number) for number in chosen], query
        from lakescope.tables.reading import read_query

        with COMMAND.measure("read the query") as stage:
            columns = {column.name: column for column in read_query(query, self._joins.overlaps, self._joins.inverted)}
            stage.rows = max((column.rows for column in columns.values()), default=0)
        if on is not None:
            return [columns[_known(on, columns)]], None
        return [column for column in columns.values() if column.plausible or not plausible], None

    @from_one_generation
    def autojoin(
        self,
        query: Any,
        k: int = 10,
        *,
        candidates: int = 20,
        budget: float | None = 60.0,
        watch: Watch | None = None,
    ) -> Results[TransformJoin]:
        """Tables of the lake that join with the query once keys are rewritten, with the program for each.

        ``query`` is the name of a table of the lake, the path of another one, or a frame. The index finds tables that
        share rare q-grams with it; for the first ``candidates`` of them programs are learnt, until ``budget`` seconds
        are over. Tables that join as they are (:meth:`joinable`) are only named in a note.
        :func:`lakescope.autojoin` with the ``location`` of one does the join. Whoever watches is told what is done, and
        may end it.
        """
        from lakescope.questions.autojoin import LakeAutojoinRequest

        request = LakeAutojoinRequest(query=query, k=k, candidates=candidates, budget=budget)
        return request.ask(self, watch or NOBODY)

    @from_one_generation
    def autojoin_batch(
        self, *, spark: SparkSession, k: int = 10, candidates: int = 20, budget: float | None = 60.0
    ) -> DataFrame:
        """What :meth:`autojoin` tells of every table of the lake, as a Spark DataFrame: executors read the tables.

        ``budget`` are seconds for a table; a ``note`` says what was left out when they were over, and why a table could
        not be asked about. Executors must see the index and the tables.
        """
        from lakescope.questions.autojoin import LakeAutojoinRequest
        from lakescope.questions.batches import on_spark

        request = LakeAutojoinRequest(query=None, k=k, candidates=candidates, budget=budget)
        return on_spark(spark, request.batch(self))

    @from_one_generation
    def correlated(
        self,
        query: Any,
        key: str | Sequence[str] | None = None,
        target: str | None = None,
        k: int = 10,
        *,
        measure: Measure = "pearson",
        agg: Aggregate = "mean",
        query_agg: Aggregate | None = None,
        rank: CorrelationRank = "lower",
        retrieval: Retrieval = "z",
        weight_join: float = 0.0,
        weight_corr: float = 1.0,
        mean: Mean = "geometric",
        given: str | None = None,
        verify: bool = False,
        own: bool = False,
    ) -> Results[Correlated]:
        """Columns of the lake that correlate with ``target`` when joined with the query on ``key``, best first.

        ``query`` is the name of a table of the lake, the path of another one, or a frame; ``key`` one column or two.
        Without ``key`` or ``target`` the likeliest are taken, and a note says which. Repeated keys are made one by
        ``agg``, those of the query by ``query_agg`` (as by ``agg``, but a mean where rows of the lake are counted).
        Ranked by the end of the interval that is nearer to 0, or by a score of the papers (``rank``). ``weight_join``
        and ``weight_corr`` trade correlation for joinability, by their ``mean``; ``given`` names a column of the query
        whose influence is taken out. ``verify`` does the real joins.
        """
        from lakescope.questions.correlated import CorrelatedRequest

        return CorrelatedRequest(
            query=query,
            key=None if key is None else (key,) if isinstance(key, str) else tuple(key),
            target=target,
            k=k,
            measure=measure,
            agg=agg,
            query_agg=query_agg,
            rank=rank,
            retrieval=retrieval,
            weight_join=weight_join,
            weight_corr=weight_corr,
            mean=mean,
            given=given,
            verify=verify,
            own=own,
        ).ask(self)

    def _verified(
        self, found: Results[Correlated], query: Any, key: list[str], target: str, query_agg: str
    ) -> Results[Correlated]:
        """An answer with the coefficients and the rows of the real joins."""
        mine = read_keyed(self._place(query), key, target, query_agg)
        records = [verify_by_join(mine, self._side(each.table, each.column).location, each) for each in found]
        beside = {"correlation": "verified", "joined_rows": "verified_rows"}
        shown = tuple(name for each in found.shown for name in (each, beside.get(each)) if name)
        return Results(Correlated, records, shown=shown, notes=found.notes, info=found.info)

    @from_one_generation
    def correlated_batch(
        self,
        *,
        spark: SparkSession,
        k: int = 10,
        measure: Measure = "pearson",
        agg: Aggregate = "mean",
        rank: CorrelationRank = "lower",
        retrieval: Retrieval = "z",
        weight_join: float = 0.0,
        weight_corr: float = 1.0,
        mean: Mean = "geometric",
        own: bool = False,
    ) -> DataFrame:
        """What correlates with each numeric column of the lake by each of its keys, as a Spark DataFrame: all pairs.

        The options are those of :meth:`correlated`. Executors must see the index.
        """
        from lakescope.questions.batches import on_spark
        from lakescope.questions.correlated import CorrelatedRequest

        request = CorrelatedRequest(
            query=None,
            k=k,
            measure=measure,
            agg=agg,
            rank=rank,
            retrieval=retrieval,
            weight_join=weight_join,
            weight_corr=weight_corr,
            mean=mean,
            own=own,
        )
        return on_spark(spark, request.batch(self))

    @from_one_generation
    def scatter(
        self,
        query: Any,
        key: str | Sequence[str],
        target: str,
        found: Correlated,
        *,
        query_agg: Aggregate | None = None,
    ) -> str:
        """The sample that a find rests on as a picture (SVG): one point a key."""
        from lakescope.show.charts import scatter_chart

        x, y = (
            column.to_pylist() for column in self.scatter_points(query, key, target, found, query_agg=query_agg).columns
        )
        title = f"{found.coefficient} {found.correlation:.3f}, {found.sample:,} keys ({found.aggregate})"
        points = list(zip(x, y, strict=True))
        return scatter_chart(points, title=title, x=target, y=f"{found.table}: {found.column}")

    @from_one_generation
    def scatter_points(
        self,
        query: Any,
        key: str | Sequence[str],
        target: str,
        found: Correlated,
        *,
        query_agg: Aggregate | None = None,
    ) -> pa.Table:
        """The sample that a find rests on: ``x`` of the query, ``y`` of what was found, one row a key."""
        from lakescope.questions.correlated import aggregate_of_query

        columns = [key] if isinstance(key, str) else list(key)
        keyed = self._keyed(query, columns, target, query_agg or aggregate_of_query(found.aggregate))
        x, y = self._correlations.sample(keyed, found)
        return pa.table({"x": x, "y": y})

    @from_one_generation
    def correlation_code(
        self,
        query: Any,
        key: str | Sequence[str],
        found: Correlated,
        dialect: Dialect = "duckdb",
        *,
        target: str = "",
        query_agg: Aggregate | None = None,
    ) -> str:
        """Ready code for the real join of a find."""
        from lakescope.questions.correlated import aggregate_of_query

        aggregate = query_agg or aggregate_of_query(found.aggregate)
        sides = self._key_sides(query, key, target, aggregate, found)
        mine = KeyedSide(self._code_side(query, target), sides, aggregate)
        return writer_of(dialect).correlation_code(mine, self._found_side(found), found.coefficient)

    @from_one_generation
    def augment_code(
        self,
        query: Any,
        key: str | Sequence[str],
        target: str,
        found: Sequence[Correlated],
        names: Sequence[str],
        dialect: Dialect = "duckdb",
    ) -> str:
        """Ready code for what :meth:`augmented` does: ``names`` are those of the columns that were added."""
        from lakescope.questions.correlated import aggregate_of_query

        sides = [self._key_sides(query, key, target, aggregate_of_query(each.aggregate), each) for each in found]
        return writer_of(dialect).augment_code(sides, [self._found_side(each) for each in found], names)

    def _key_sides(
        self, query: Any, key: str | Sequence[str], target: str, aggregate: str, found: Correlated
    ) -> tuple[Side, ...]:
        """The key of a query as sides of code, in the order in which a find has it."""
        columns = [key] if isinstance(key, str) else list(key)
        if len(columns) > 1:
            columns = list(self._correlations.order_of_key(self._keyed(query, columns, target, aggregate), found))
        return tuple(self._code_side(query, name) for name in columns)

    def _found_side(self, found: Correlated) -> KeyedSide:
        """A find as a side of code."""
        keys = tuple(self._side(found.table, name) for name in found.key_columns)
        return KeyedSide(self._side(found.table, found.column), keys, found.aggregate)

    @from_one_generation
    def augment(
        self,
        query: Any,
        key: str | Sequence[str] | None = None,
        target: str | None = None,
        out: str | os.PathLike[str] | None = None,
        k: int = 5,
        *,
        finds: Sequence[Correlated] | Sequence[Find] | None = None,
        measure: Measure = "pearson",
        agg: Aggregate = "mean",
        query_agg: Aggregate | None = None,
        rank: CorrelationRank = "lower",
        retrieval: Retrieval = "z",
        weight_join: float = 0.0,
        weight_corr: float = 1.0,
        mean: Mean = "geometric",
        given: str | None = None,
        own: bool = False,
    ) -> Results[Added]:
        """Join the ``k`` columns that correlate best into the query's table, write it to ``out``, say what each adds.

        The columns are found as by :meth:`correlated`, whose options are taken; ``finds`` are some of its answers,
        which are joined in instead of the best. Without ``out`` nothing is written.
        """
        from lakescope.questions.augment import AugmentRequest

        return AugmentRequest(
            query=query,
            key=None if key is None else (key,) if isinstance(key, str) else tuple(key),
            target=target,
            out=None if out is None else os.fspath(out),
            k=k,
            finds=finds,  # type: ignore[arg-type]  # whatever names a find becomes one
            measure=measure,
            agg=agg,
            query_agg=query_agg,
            rank=rank,
            retrieval=retrieval,
            weight_join=weight_join,
            weight_corr=weight_corr,
            mean=mean,
            given=given,
            own=own,
        ).ask(self)

    @from_one_generation
    def augmented(
        self, query: Any, key: str | Sequence[str], target: str, found: Sequence[Correlated], *, agg: Aggregate = "mean"
    ) -> tuple[pa.Table, Results[Added]]:
        """The query's table with columns that :meth:`correlated` found joined in, and what each adds."""
        columns = [key] if isinstance(key, str) else list(key)
        sources = [self.location(each.table) for each in found]
        table, added = augmented(self._place(query), columns, target, found, sources, agg)
        return table, Results(Added, added, shown=("name", "table", "correlation", "filled", "explains", "adds"))

    def _keyed(self, query: Any, key: list[str], target: str, agg: str, given: str | None = None) -> KeyedQuery:
        """A query by its key: what the index holds of a table of the lake, else the table itself."""
        more = [given] if given else []
        if self._is_table(query):
            sketched = sketched_query(self._correlations.sketches, query, key, target, agg, more)
            own = self._numbers_of_key(sketched) if len(key) == 1 else None
            return sketched if own is None else replace(sketched, given={**sketched.given, KEY_ITSELF: own})
        return read_keyed(query, key, target, agg, more)

    def _numbers_of_key(self, query: KeyedQuery) -> npt.NDArray[np.float64] | None:
        """What the keys of a table of the lake are as numbers, if they are whole numbers or days."""
        (number,) = [each for each in self._joins.columns_of(query.name) if self._joins.name_of(each) == query.key[0]]
        record = self._index.column(number, ("type", "type_share", "minimum", "maximum"))
        return numbers_of_keys(query.hashes, record["type"], range_of(record, query.size))

    def _table_of(self, query: Any) -> str | None:
        """The table of the lake that a query is: by its name, or by the path of its file."""
        if self._is_table(query):
            return str(query)
        if isinstance(query, str) or hasattr(query, "__fspath__"):
            from lakescope.sources.io.files import local_path
            from lakescope.sources.io.locations import catalogue_uri

            path = local_path(str(query))
            places = {str(query)} if path is None else {catalogue_uri(path), catalogue_uri(os.path.realpath(path))}
            tables = self._index.catalog("tables")
            for name, uri in zip(tables["table"].to_pylist(), tables["uri"].to_pylist(), strict=True):
                if uri in places:
                    return str(name)
        return None

    def _is_table(self, query: Any) -> bool:
        return query in self._index

    @from_one_generation
    def inclusions(
        self,
        minimum: float = 0.9,
        *,
        estimator: Estimator = "hybrid",
        verify: bool = False,
        least: int = 3,
        limit: int | None = None,
        table: str | None = None,
    ) -> Results[Inclusion]:
        """Pairs of columns of which one's values are, to at least a ``minimum`` share, in the other.

        All pairs of the lake are looked at, by their sketches alone; ``verify`` counts common values instead. Columns
        of fewer than ``least`` values are in many others by chance and left out. ``limit`` is how many are told; with a
        ``table`` one of the columns must be of it.
        """
        from lakescope.questions.inclusions import InclusionsRequest

        return InclusionsRequest(
            minimum=minimum, estimator=estimator, verify=verify, least=least, limit=limit, table=table
        ).ask(self)

    @from_one_generation
    def inclusions_batch(
        self,
        minimum: float = 0.9,
        *,
        spark: SparkSession,
        estimator: Estimator = "hybrid",
        verify: bool = False,
        least: int = 3,
    ) -> DataFrame:
        """Pairs of :meth:`inclusions` as a Spark DataFrame, found by executors: for lakes of 100,000 columns and more.

        Pairs that sketches cannot tell are among them, with the evidence ``unknown`` and an interval from 0 to 1,
        unless ``verify`` counts them. Executors must see the index.
        """
        from lakescope.questions.batches import on_spark
        from lakescope.questions.inclusions import InclusionsRequest

        request = InclusionsRequest(minimum=minimum, estimator=estimator, verify=verify, least=least)
        return on_spark(spark, request.batch(self))

    @from_one_generation
    def dependencies(
        self,
        nulls: Nulls = "equal",
        max_lhs: int | None = 3,
        *,
        error: float = 0.0,
        missing: Sequence[str] = (),
        budget: float | None = 20.0,
        limit: int | None = 100,
        out: str | Path | None = None,
        spark: SparkSession | None = None,
        master: str | None = None,
    ) -> Results[LakeDependency]:
        """The most telling functional dependencies of all tables, found on Spark; all of them in Parquet at ``out``.

        ``budget`` are seconds for a table. A session is started at ``master``, or locally, unless one is given. Keys
        and constants are not among the best. Tables that could not be read are named in the notes.
        """
        from lakescope.questions.dependencies import LakeDependenciesRequest

        request = LakeDependenciesRequest(
            nulls=nulls,
            max_lhs=max_lhs,
            error=error,
            missing=tuple(missing),
            budget=budget,
            limit=limit,
            out=None if out is None else str(out),
            master=master,
        )
        return request.ask(self) if spark is None else request.find(self, spark)

    @from_one_generation
    def dependencies_batch(
        self,
        nulls: Nulls = "equal",
        max_lhs: int | None = 3,
        *,
        spark: SparkSession,
        error: float = 0.0,
        missing: Sequence[str] = (),
        budget: float | None = 20.0,
    ) -> DataFrame:
        """Functional dependencies of every table, as a Spark DataFrame: executors read the tables, each once.

        ``budget`` are seconds for a table; the rest is as in :func:`lakescope.dependencies`. A table that cannot be
        read has one row with the flag ``unread``, one too large for a worker ``large``: ask for that one alone, with
        ``lakescope.dependencies(location, spark=spark)``. Executors must see the index and the tables.
        """
        from lakescope.questions.batches import on_spark
        from lakescope.questions.dependencies import LakeDependenciesRequest

        request = LakeDependenciesRequest(
            nulls=nulls, max_lhs=max_lhs, error=error, missing=tuple(missing), budget=budget
        )
        return on_spark(spark, request.batch(self))

    @from_one_generation
    def foreign_keys(
        self,
        *,
        method: Method = "ours",
        estimator: Estimator = "hybrid",
        verify: bool = False,
        minimum: float = 0.95,
        withheld: bool = False,
        table: str | None = None,
    ) -> Results[ForeignKey]:
        """Columns that refer to keys of other tables, with the evidence for each; with a ``table`` those of or to it.

        ``verify`` counts common values, and reads tables to find keys of two columns. ``withheld``: those that were
        refused instead, and why. ``minimum`` is the share of a column's values that must be keys; ``method`` who
        decides: ours, or the papers' by names (``chen``) and by features (``rostin``).
        """
        from lakescope.questions.keys import ForeignKeysRequest

        return ForeignKeysRequest(
            method=method, estimator=estimator, verify=verify, minimum=minimum, withheld=withheld, table=table
        ).ask(self)

    @from_one_generation
    def primary_keys(
        self,
        *,
        method: Method = "ours",
        estimator: Estimator = "hybrid",
        verify: bool = False,
        minimum: float = 0.95,
    ) -> Results[PrimaryKey]:
        """The key of every table that has one: what others refer to, else what looks most like one."""
        from lakescope.questions.keys import PrimaryKeysRequest

        return PrimaryKeysRequest(method=method, estimator=estimator, verify=verify, minimum=minimum).ask(self)

    @from_one_generation
    def key_diagram(
        self,
        form: DiagramForm = "svg",
        *,
        method: Method = "ours",
        estimator: Estimator = "hybrid",
        verify: bool = False,
        minimum: float = 0.95,
    ) -> str:
        """Tables, keys and references as a picture (``svg``), as ``mermaid`` text, or as ``sql`` that declares them."""
        from lakescope.questions.keys import KeyDiagramRequest

        return KeyDiagramRequest(form=form, method=method, estimator=estimator, verify=verify, minimum=minimum).ask(
            self
        )

    @from_one_generation
    def suggest_headers(
        self,
        query: Any,
        *,
        known: Mapping[int | str, str] | Sequence[str] | None = None,
        keep: bool = False,
        mode: HeaderMode = "balanced",
        k: int = 5,
        m: int = 10,
        schemata: str | os.PathLike[str] | None = None,
        threshold: float | None = None,
        method: HeaderMethod = "ours",
        engine: HeaderEngine = "exact",
        weighted: bool = True,
        unfiltered: bool = False,
        segmentation: Segmentation = "suc",
        confirmation: Confirmation = "c",
        watch: Watch = NOBODY,
    ) -> Schemata:
        """Headers for the columns of a table, borrowed from the tables of the lake that have them: the best schemata.

        ``query`` is the name of a table of the lake, which is then left out, the path of another one, or a frame; names
        it has count for nothing, unless they are ``known`` (by position from 0, or by name) or all that mean something
        are to be kept (``keep``). ``mode``: ``reliable`` headers only, ``balanced``, or ``coverage``: better any than
        none; or a ``threshold`` instead. ``.candidates[i]`` are the ``k`` likeliest of a column with their evidence,
        the answer the ``m`` best schemata. ``schemata`` names a file of more schemata to judge coherence by,
        ``segmentation`` and ``confirmation`` say how. ``method="thesis"`` goes by shared values alone: ``engine``,
        ``weighted`` and ``unfiltered`` are its options.
        """
        from lakescope.questions.headers import SuggestHeadersRequest, known_texts

        return SuggestHeadersRequest(
            query=query,
            known=known_texts(known),
            keep=keep,
            mode=mode,
            k=k,
            m=m,
            schemata=None if schemata is None else os.fspath(schemata),
            threshold=threshold,
            method=method,
            engine=engine,
            weighted=weighted,
            unfiltered=unfiltered,
            segmentation=segmentation,
            confirmation=confirmation,
        ).ask(self, watch)

    @from_one_generation
    def suggest_headers_batch(
        self,
        queries: Sequence[str] | None = None,
        *,
        spark: SparkSession,
        mode: HeaderMode = "balanced",
        k: int = 5,
        parts: int | None = None,
        threshold: float | None = None,
        method: HeaderMethod = "ours",
        weighted: bool = True,
        unfiltered: bool = False,
        segmentation: Segmentation = "suc",
        confirmation: Confirmation = "c",
    ) -> DataFrame:
        """The candidates for all columns of many tables as a Spark DataFrame, found by the executors.

        ``queries`` are names of tables of the lake or paths of others; by default all tables of the lake that have a
        column whose name means nothing. The lake is cut into ``parts``, by default one for 25,000 columns, and each
        part is asked about blocks of tables by tasks of their own; answers are those of :meth:`suggest_headers`, whose
        options are taken. Executors must see the index and the paths.
        """
        from lakescope.questions.batches import on_spark
        from lakescope.questions.headers import SuggestHeadersRequest

        request = SuggestHeadersRequest(
            query=None,
            mode=mode,
            k=k,
            threshold=threshold,
            method=method,
            weighted=weighted,
            unfiltered=unfiltered,
            segmentation=segmentation,
            confirmation=confirmation,
        )
        return on_spark(spark, request.batch(self, queries, parts))

    @from_one_generation
    def name_columns(
        self,
        query: Any,
        out: str | os.PathLike[str],
        headers: Sequence[str | None] | None = None,
        *,
        known: Mapping[int | str, str] | Sequence[str] | None = None,
        keep: bool = False,
        mode: HeaderMode = "balanced",
        k: int = 5,
        schemata: str | os.PathLike[str] | None = None,
        threshold: float | None = None,
        method: HeaderMethod = "ours",
        engine: HeaderEngine = "exact",
        weighted: bool = True,
        unfiltered: bool = False,
        segmentation: Segmentation = "suc",
        confirmation: Confirmation = "c",
        watch: Watch = NOBODY,
    ) -> list[str]:
        """Write a table (a path or a frame) under other ``headers``, by default the best that are suggested for it.

        A column for which there is none keeps its name. Returns the names that were written. The other options are
        those of :meth:`suggest_headers`.
        """
        from lakescope.questions.headers import NameColumnsRequest, known_texts

        return NameColumnsRequest(
            query=query,
            out=os.fspath(out),
            headers=None if headers is None else tuple(each or "" for each in headers),
            known=known_texts(known),
            keep=keep,
            mode=mode,
            k=k,
            schemata=None if schemata is None else os.fspath(schemata),
            threshold=threshold,
            method=method,
            engine=engine,
            weighted=weighted,
            unfiltered=unfiltered,
            segmentation=segmentation,
            confirmation=confirmation,
        ).ask(self, watch)

    @from_one_generation
    def check_headers(self, *, watch: Watch = NOBODY) -> Results[HeaderDoubt]:
        """Columns of the lake whose header is missing, means nothing, is a value, or contradicts its values."""
        from lakescope.questions.headers import CheckHeadersRequest

        return CheckHeadersRequest().ask(self, watch)

    @from_one_generation
    def evaluate_headers(
        self, split: float = 0.05, *, seed: int = 0, k: int = 5, m: int = 10, watch: Watch = NOBODY
    ) -> Results[Evaluation]:
        """Hide a share of the tables and rediscover their headers: how well each mode does on this lake."""
        from lakescope.questions.headers import EvaluateHeadersRequest

        return EvaluateHeadersRequest(split=split, seed=seed, k=k, m=m).ask(self, watch)

    @from_one_generation
    def learn_headers(self, *, watch: Watch = NOBODY) -> int:
        """Learn from the tables of the lake what speaks for a header; from how many it was learnt.

        It is done by itself when headers are first suggested, takes seconds, and is kept beside the index.
        """
        from lakescope.questions.headers import LearnHeadersRequest

        return LearnHeadersRequest().ask(self, watch)

    @from_one_generation
    def report(
        self,
        out: str | os.PathLike[str],
        form: str = "html",
        *,
        progress: Callable[[int, int], None] | None = None,
    ) -> Report:
        """The lake as a folder of pages that need nothing else: a page of the lake, one of each table, linked.

        ``form`` is ``html``, ``md`` or ``json``: the same summaries. A folder that holds anything but a former report
        is refused; a former one is replaced when the new one is complete. Told by the index; no table is read.
        """
        from lakescope.show.site import write_report

        return write_report(self, out, form, progress)

    @from_one_generation
    def warm(self) -> None:
        """Load the compiled kernels, so that the first question is answered as fast as all others."""
        self._joins.warm()
        self._correlations.warm()

    # --- the lake changes ---------------------------------------------------------------------------------------------

    def update(
        self,
        *,
        retry: bool = False,
        spark: SparkSession | None = None,
        master: str | None = None,
        progress: Listener | None = None,
    ) -> Update:
        """Bring the index up to date with what it was built from: only what was added or changed is scanned.

        Answers are then those of a fresh build. Frames cannot be read again, and stay as they are. With ``retry``
        tables that could not be read, or not whole, are tried again though their files have not changed.
        """
        return self._updated(retry=retry, spark=spark, master=master, progress=progress)

    def add(
        self,
        *sources: str | os.PathLike[str],
        spark: SparkSession | None = None,
        master: str | None = None,
        progress: Listener | None = None,
    ) -> Update:
        """Index more: directories, files, globs or URIs. The rest of the index is brought up to date, too.

        Tables that were removed and lie there are brought back.
        """
        return self._updated(add=[os.fspath(each) for each in sources], spark=spark, master=master, progress=progress)

    def remove(self, *tables: str) -> Update:
        """Leave tables out of the index from now on, whether their files are there or not; ``add`` brings them back."""
        return self._updated(remove=tables)

    def compact(self, *, keep_history: int = 10, spark: SparkSession | None = None, master: str | None = None) -> None:
        """Make one segment of what updates left, without tables that are gone: questions are faster then.

        The profiles of the newest ``keep_history`` earlier versions of each table are kept.
        """
        from lakescope.build.compact import compact

        compact(self.path, keep_history=keep_history, spark=spark, master=master)
        self._reopen()

    @from_one_generation
    def history(self, table: str) -> Results[Version]:
        """The versions of a table that the index saw, the present one last: when, how large, which columns."""
        from lakescope.questions.history import HistoryRequest

        return HistoryRequest(table=table).ask(self)

    @from_one_generation
    def versions(self, table: str) -> int:
        """How many versions of a table of the lake the index saw: the last number that :meth:`history` has."""
        self._table(table)
        return int(self._index.past("past", table).num_rows) + 1

    @from_one_generation
    def drift(
        self, table: str | None = None, *, since: str | int | None = None, minimum: float = 0.1
    ) -> Results[Drift]:
        """What changed in the columns of a table, or of all, since the version before.

        ``since`` is a time or the number of a version to compare with. Told are types, missing cells, keys, and
        distributions that are at least ``minimum`` apart and further than chance explains; 0 tells of every column.
        """
        from lakescope.questions.history import DriftRequest

        when = None if since is None else str(since)
        return DriftRequest(table=table, since=when, minimum=minimum).ask(self)

    def _updated(self, **options: Any) -> Update:
        from lakescope.build.update import update

        done = update(self.path, **options)
        self._reopen()
        return done

    @overload
    def verify(self, *, deep: Literal[False] = False) -> None: ...
    @overload
    def verify(self, *, deep: Literal[True], progress: Steps | None = None) -> Results[Finding]: ...
    def verify(self, *, deep: bool = False, progress: Steps | None = None) -> Results[Finding] | None:
        """Read every byte of the index and compare checksums.

        Raises :class:`IndexDamaged` naming every damaged file. With ``deep`` every reference between files is followed,
        too, and what is wrong is returned: nothing, if the index is sound.
        """
        if deep:
            return self._contradictions(progress)
        wrong = self._index.verify()
        if wrong:
            raise IndexDamaged("\n".join(wrong), hint="restore the files, or run `lakescope repair`")
        return None

    @from_one_generation
    def _contradictions(self, progress: Steps | None) -> Results[Finding]:
        from lakescope.store.deep_check import deep_check

        return deep_check(self._index, progress)

    def __repr__(self) -> str:
        summary = self._index.manifest.summary
        sizes = ", ".join(f"{summary[name]:,} {name}" for name in ("tables", "columns", "rows"))
        return f"Lake({self.path!r}: {sizes})"

    def _repr_html_(self) -> str:
        from lakescope.show.notebook import lake_html

        return lake_html(self.info())


class _Snapshot:
    """One generation of an index and all that answers from it, for any number of threads at once.

    What is made is made once and only read afterwards; what questions write to is theirs alone while they run.
    """

    def __init__(self, index: Index, pool: Pool | None) -> None:
        self.index, self.pool = index, pool
        if pool is not None:
            # When nobody asks any more: questions that began before an update are still put to these processes.
            weakref.finalize(self, pool.close)

    @once
    def catalog(self) -> Catalog:
        return Catalog(self.index)

    @once
    def joins(self) -> JoinSearch:
        if self.pool is None:
            return JoinSearch(self.index)
        from lakescope.engines.shards.search import ShardedOverlaps

        return JoinSearch(self.index, partial(ShardedOverlaps, pool=self.pool))

    @once
    def correlations(self) -> CorrelationSearch:
        parts = self.index, self.joins.inverted, self.joins.overlaps
        if self.pool is None:
            return CorrelationSearch(*parts)
        from lakescope.engines.shards.search import ShardedCorrelations

        return ShardedCorrelations(*parts, self.pool)

    @once
    def keys(self) -> KeySearch:
        # Sketches are compared by kernels that take a while to load: only for who asks.
        from lakescope.engines.keys.search import KeySearch

        joins = self.joins if self.index.manifest.summary["join"] is not None else None
        if self.pool is None:
            return KeySearch(self.index, joins)
        from lakescope.engines.shards.search import ShardedKeys

        return ShardedKeys(self.index, joins, self.pool)

    @once
    def headers(self) -> HeaderSearch:
        from lakescope.engines.headers.suggest import HeaderSearch

        return HeaderSearch(self.index, self.joins.inverted)

    @once
    def transforms(self) -> TransformSearch:
        from lakescope.engines.transforms.lake_wide import TransformSearch

        return TransformSearch(self.index, self.joins)


def _pool(index: Index, processes: int) -> Pool:
    """Processes that search an index together; they begin to open it at once."""
    from lakescope.engines.shards.pool import Pool

    pool = Pool(index.location, index.manifest.generation, processes)
    pool.start()
    return pool


def _known(name: str, columns: Mapping[str, object]) -> str:
    if name not in columns:
        raise NotFound.among("column", name, list(columns))
    return name
