"""Lakescope looks into a data lake: a pile of tables nobody described.

>>> import lakescope
>>> lake = lakescope.index("path/to/data", "lake.idx")  # one scan on Spark
>>> lake = lakescope.open("lake.idx")  # later, without Spark
>>> lake.tables()
>>> lake.columns()
>>> lake.problems()
>>> lake.profile("sales/2021.csv")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakescope._version import __version__
from lakescope.errors import (
    BadRequest,
    BuildFailed,
    IndexDamaged,
    IndexLocked,
    LakescopeError,
    NotFound,
    SourceError,
    WriteFailed,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from lakescope.build.inputs import Given
    from lakescope.build.progress import Listener
    from lakescope.engines.counting.answers import Count, CounterChoice
    from lakescope.engines.dependencies.answers import Dependency, Model, Nulls, Order
    from lakescope.engines.dependencies.genuineness import Custom
    from lakescope.engines.transforms.clock import Clock
    from lakescope.engines.transforms.fuzzy import Method
    from lakescope.engines.transforms.fuzzyjoin import FuzzyJoin, Reference
    from lakescope.engines.transforms.plan import Plan
    from lakescope.lake import Lake, TableProfile
    from lakescope.results import Results
    from lakescope.store.repair import Repair

__all__ = [
    "BadRequest",
    "BuildFailed",
    "IndexDamaged",
    "IndexLocked",
    "Lake",
    "LakescopeError",
    "NotFound",
    "SourceError",
    "TableProfile",
    "WriteFailed",
    "__version__",
    "autojoin",
    "count",
    "dependencies",
    "fuzzyjoin",
    "index",
    "open",
    "read",
    "repair",
]


def index(
    source: Given,
    out: str | Path,
    *,
    spark: SparkSession | None = None,
    master: str | None = None,
    joins: bool = True,
    share: bool = False,
    progress: Listener | None = None,
) -> Lake:
    """Scan tables once on Spark, write the index to ``out`` and open it.

    ``source`` is a directory, file, glob or URI (also ``postgresql://``), a list of them, ``spark:database.table`` for
    tables of Spark's catalog, or a mapping of table names to frames (pandas, polars, pyarrow, DuckDB, Spark). ``spark``
    is a session to use (also a Spark Connect one), ``master`` a cluster to start one at (``spark://host:7077``,
    ``sc://host``); by default a local session with all cores is started and stopped. An index that is already at
    ``out`` answers until the new one replaces it. Without ``joins`` it holds profiles only, which takes less time and
    space. Only its owner may read an index, unless it is made to ``share``: then whoever the umask allows.
    """
    from lakescope.build.build import build
    from lakescope.lake import Lake

    build(source, out, spark=spark, master=master, joins=joins, share=share, progress=progress)
    return Lake.open(out)


def open(path: str | Path, *, processes: int | None = None) -> Lake:
    """Open an index. No Spark, no Java; milliseconds.

    With ``processes``, so many search it together: the same answers, sooner where a lake is large.
    """
    from lakescope.lake import Lake

    return Lake.open(path, processes)


def read(table: Any) -> pa.Table:
    """A whole table (a path, a URI, ``path::sheet``) as an index reads it: columns flat, cells as text.

    White space around cells is removed, and empty cells are null. Printed code uses it for files that other systems
    have no reader for, or read otherwise.
    """
    from lakescope.engines.transforms.plan import rows_of
    from lakescope.engines.transforms.texts import read_kept

    return rows_of(None, read_kept(table))


def repair(path: str | Path, *, dry_run: bool = False) -> Results[Repair]:
    """Make a damaged index answer again, as far as what is left of it allows; what was done, or would be.

    What a writer that died left is removed, a lost manifest is taken from its copy, and segments with a damaged file
    are moved aside: the next update scans their tables again.
    """
    from lakescope.store.repair import repair

    return repair(path, dry_run=dry_run)


def count(
    query: Any,
    columns: Sequence[str] | None = None,
    *,
    counters: Sequence[CounterChoice] = ("hll++",),
    error: float = 0.01,
    memory: float | None = None,
    n_max: float | None = None,
    exact: bool = False,
) -> Results[Count]:
    """Count the distinct values of columns that are not indexed, with any of the counters, in one pass.

    ``query`` is a path, glob or URI, a frame, or a Spark DataFrame, which is counted where it lies. Counters are sized
    for a relative ``error`` or for ``memory`` bytes, and for ``n_max`` values where they must know that beforehand (by
    default what a frame's rows or a file's size allow). ``exact`` adds the exact count and every estimate's error.
    """
    from lakescope.questions.counting import CountRequest

    return CountRequest(
        query=query,
        columns=None if columns is None else tuple(columns),
        counters=tuple(counters),
        error=error,
        memory=memory,
        n_max=n_max,
        exact=exact,
    ).ask()


def dependencies(
    query: Any,
    nulls: Nulls = "equal",
    max_lhs: int | None = 3,
    *,
    error: float = 0.0,
    missing: Sequence[str] = (),
    model: Model | Custom = "frequency",
    scored: int = 200,
    budget: float | None = 60.0,
    by: Order = "score",
    spark: SparkSession | None = None,
    master: str | None = None,
) -> Results[Dependency]:
    """Minimal functional dependencies of a table (a path, a URI or a frame), the most telling first.

    ``nulls`` says what a missing value equals: every other (``equal``), none (``distinct``), or that rows with one do
    not count (``skip``). ``max_lhs`` bounds the left side (None: any). ``error`` is the share of rows that may break a
    dependency. ``missing`` are texts that stand for no value. ``model`` says how missing values are filled in
    (``uniform``, ``frequency``, ``conditional``, or a function) for the genuineness of the first ``scored`` answers.
    After ``budget`` seconds what was found so far is told. Answers are in order of ``by``: ``score``, ``pv``, ``pt`` or
    ``gs``. With ``spark``, or a session started at ``master``, or if a file is larger than memory, candidates come from
    a sample, and are validated and scored by the executors; ``gs`` is not worked out then.
    """
    from lakescope.questions.dependencies import DependenciesRequest

    request = DependenciesRequest(
        query=query,
        nulls=nulls,
        max_lhs=max_lhs,
        error=error,
        missing=(missing,) if isinstance(missing, str) else tuple(missing),
        model="frequency" if callable(model) else model,
        scored=scored,
        budget=budget,
        by=by,
        master=master,
    )
    if spark is None and not callable(model):
        return request.ask()
    return request.find(spark, model, spark=spark is not None or master is not None)


def autojoin(
    left: Any,
    right: Any,
    *,
    fuzzy: bool = True,
    budget: float | Clock | None = 30.0,
) -> Plan:
    """Join two tables whose keys are written differently: learn the programs that rewrite one into the other.

    ``left`` and ``right`` are paths, URIs or frames. ``fuzzy`` also joins what programs leave where it is nearly equal
    to one key. ``budget`` seconds after both are read, what was found so far is told; a
    :class:`lakescope.engines.transforms.clock.Clock` instead also tells what is done, and may be stopped. The plan is
    empty (false) if no program is believed; it says why.
    """
    from lakescope.engines.transforms.autojoin import autojoin
    from lakescope.engines.transforms.clock import Clock

    return autojoin(left, right, Clock.of(budget), fuzzy=fuzzy)


def fuzzyjoin(
    left: Any,
    right: Any,
    on: str | tuple[str, str],
    *,
    precision: float = 0.9,
    method: Method = "expected",
    one_to_one: bool = False,
    reference: Reference | None = None,
    budget: float | Clock | None = None,
) -> FuzzyJoin:
    """Join two tables on columns that are nearly equal; distances and thresholds are found from the columns alone.

    ``on`` is the name of the column, or its names on either side. ``precision`` is the estimated share of pairs that
    must be right; ``method="constrained"`` takes the largest threshold at which no value has two keys instead.
    ``reference`` is the side whose column is a key; by default the one with fewer repeated values, then the larger.
    After ``budget`` seconds, what was found so far is told.
    """
    from lakescope.engines.transforms.fuzzyjoin import fuzzyjoin

    options: dict[str, Any] = {"precision": precision, "method": method, "one_to_one": one_to_one}
    return fuzzyjoin(left, right, on, **options, reference=reference, budget=budget)


def __getattr__(name: str) -> Any:
    # Importing lakescope stays fast: the heavier names are loaded when first asked for.
    if name in ("Lake", "TableProfile"):
        from lakescope import lake

        return getattr(lake, name)
    if name == "sketches":
        from importlib import import_module

        return import_module("lakescope.sketches")
    raise AttributeError(f"module 'lakescope' has no attribute {name!r}")
