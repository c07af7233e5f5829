"""The build: plan, scan, merge, publish. One Spark job whatever the number of tables.

``spark.range`` numbers the bins, a scan task per bin reads its units and sketches them, one exchange by table brings
the states of a column together, a merge task per partition writes shard files; the driver sees only their names. Only
if byte ranges of a CSV did not meet (a quote fooled the guess) are those tables scanned once more, whole.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakescope._version import __version__
from lakescope.errors import BadRequest, BuildFailed, LakescopeError
from lakescope.pipeline.plan import UNIT_BYTES, Plan, make_plan, pack, write_plan
from lakescope.pipeline.progress import Listener, ProgressWatch
from lakescope.pipeline.session import spark_session
from lakescope.pipeline.shipping import Shipped, ship_package
from lakescope.pipeline.tasks import RESULT_DDL, STATE_DDL, MergeStates, ScanBins, ScanFrame, parse_result
from lakescope.pipeline.warmup import start_warming
from lakescope.sources.discover import discover
from lakescope.sources.files import display
from lakescope.sources.frames import as_batches
from lakescope.sources.model import Problem, Unit
from lakescope.store.manifest import Manifest, SegmentFile
from lakescope.store.segment import ShardWriter
from lakescope.store.writer import IndexWriter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Location prefix of tables in Spark's own catalog: ``spark:sales.orders`` or ``spark:sales.*``.
CATALOG_PREFIX = "spark:"

#: Rows a Python worker is handed at a time; states are large, rows of them few.
_ROWS_PER_BATCH = "128"


@dataclass(slots=True)
class Sources:
    """What to index, sorted by how it is read."""

    locations: list[str] = field(default_factory=list)
    catalog: list[str] = field(default_factory=list)
    frames: dict[str, Any] = field(default_factory=dict)
    spark_frames: dict[str, DataFrame] = field(default_factory=dict)

    @classmethod
    def of(cls, given: str | Path | Sequence[str | Path] | Mapping[str, Any]) -> Sources:
        """Sort out a path, several paths, or a mapping of table names to frames or paths."""
        result = cls()
        if isinstance(given, Mapping):
            for name, thing in given.items():
                if isinstance(thing, str | Path):
                    result._add_location(str(thing))
                elif _is_spark_frame(thing):
                    result.spark_frames[name] = thing
                else:
                    result.frames[name] = thing
        elif isinstance(given, str | Path):
            result._add_location(str(given))
        else:
            for location in given:
                if not isinstance(location, str | Path):
                    raise BadRequest(
                        f"cannot index a {type(location).__name__} without a name",
                        hint='give frames as a mapping: lakescope.index({"name": frame}, "lake.idx")',
                    )
                result._add_location(str(location))
        if not (result.locations or result.catalog or result.frames or result.spark_frames):
            raise BadRequest("nothing to index", hint="give at least one path, glob, URI or frame")
        return result

    def _add_location(self, location: str) -> None:
        if location.startswith(CATALOG_PREFIX):
            self.catalog.append(location.removeprefix(CATALOG_PREFIX))
        else:
            self.locations.append(location)

    def names(self) -> list[str]:
        """How the sources are listed in the manifest."""
        return [
            *[display(location) for location in self.locations],
            *[CATALOG_PREFIX + name for name in self.catalog],
            *[f"frame:{name}" for name in [*self.frames, *self.spark_frames]],
        ]


def _is_spark_frame(thing: object) -> bool:
    return type(thing).__module__.startswith("pyspark.sql") and hasattr(thing, "mapInArrow")


@dataclass(slots=True)
class _Outcome:
    """What Spark jobs returned so far."""

    files: list[SegmentFile] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    again: list[str] = field(default_factory=list)
    rescanned: int = 0
    jobs: int = 0

    def add(self, results: list[str]) -> None:
        self.again = []
        for text in results:
            files, counts, again = parse_result(text)
            self.files += files
            self.again += again
            for name, count in counts.items():
                self.counts[name] = self.counts.get(name, 0) + count
        self.jobs += 1


def build(
    given: str | Path | Sequence[str | Path] | Mapping[str, Any],
    out: str | Path,
    *,
    spark: SparkSession | None = None,
    master: str | None = None,
    unit_bytes: int = UNIT_BYTES,
    progress: Listener | None = None,
) -> Manifest:
    """Index what was given into ``out`` and publish it; the index that was there before stays until then."""
    sources = Sources.of(given)
    if unit_bytes < 1:
        raise BadRequest(f"unit_bytes must be positive, not {unit_bytes}")
    began = time.monotonic()
    with IndexWriter(out) as writer:
        found, problems = discover(sources.locations) if sources.locations else ([], [])
        missing = [problem.detail for problem in problems if problem.code == "not-found"]
        if missing:
            raise BadRequest("; ".join(missing), hint="check the path; quote globs so that the shell leaves them alone")
        plan = make_plan(found, unit_bytes)
        problems += plan.problems
        _add_frames(plan, sources.frames, writer.staging, unit_bytes)
        warming = start_warming()
        with spark_session(spark, master) as session:
            warming.join()
            ship_package(session)
            frames = _spark_frames(session, sources)
            if not plan.bins and not frames and not problems:
                raise BadRequest(
                    "found nothing to index: " + ", ".join(sources.names()), hint="check the paths and patterns"
                )
            outcome = _run(session, plan, frames, writer.staging, progress)
        files = outcome.files + _write_problems(problems, writer.staging)
        summary = _summary(problems, outcome, time.monotonic() - began)
        return writer.publish(files, version=__version__, sources=sources.names(), summary=summary)


def _add_frames(plan: Plan, frames: dict[str, Any], staging: Path, unit_bytes: int) -> None:
    """Frames in memory become Arrow files in the staging area, which workers read like any other."""
    units = []
    for number, (name, frame) in enumerate(frames.items()):
        path = staging / f"frame-{number}.arrow"
        batches = iter(as_batches(frame))
        first = next(batches, None)
        if first is None:
            plan.problems.append(Problem(name, "error", "empty-file", "the frame holds no column"))
            continue
        with pa.ipc.new_file(str(path), first.schema) as writer:
            writer.write_batch(first)
            for batch in batches:
                writer.write_batch(batch)
        source = {"uri": f"frame:{name}", "format": "frame", "modified": None}
        options = {"source": source}
        units.append(Unit(name, "arrow", str(path.absolute()), path.stat().st_size, options=options))
    plan.bins.extend(pack(units, unit_bytes))


def _spark_frames(session: SparkSession, sources: Sources) -> dict[str, tuple[DataFrame, str]]:
    """Spark DataFrames and catalog tables, by table name, with where they came from."""
    frames = {name: (frame, f"frame:{name}") for name, frame in sources.spark_frames.items()}
    for pattern in sources.catalog:
        for name in _catalog_tables(session, pattern):
            frames[name] = (session.table(name), CATALOG_PREFIX + name)
    return frames


def _catalog_tables(session: SparkSession, pattern: str) -> list[str]:
    if not pattern.endswith("*"):
        if not session.catalog.tableExists(pattern):
            raise BadRequest(
                f"Spark's catalog has no table {pattern!r}", hint="try spark:DATABASE.* for all of a database"
            )
        return [pattern]
    database = pattern.rstrip("*").rstrip(".")
    tables = session.catalog.listTables(database or None)
    return sorted(".".join([*(table.namespace or []), table.name]) for table in tables)


def _run(
    session: SparkSession,
    plan: Plan,
    frames: dict[str, tuple[DataFrame, str]],
    staging: Path,
    progress: Listener | None,
) -> _Outcome:
    outcome = _Outcome()
    outcome.add(_job(session, plan, frames, staging, progress))
    if outcome.again:
        outcome.rescanned = len(outcome.again)
        whole = make_plan([plan.tables[table] for table in outcome.again], unit_bytes=1 << 62)
        outcome.add(_job(session, whole, {}, staging, progress))
    return outcome


def _job(
    session: SparkSession,
    plan: Plan,
    frames: dict[str, tuple[DataFrame, str]],
    staging: Path,
    progress: Listener | None,
) -> list[str]:
    """One Spark job: scan everything, merge by table, write shards."""
    write_plan(plan, staging)
    place = str(staging.absolute())
    states = [
        frame.mapInArrow(Shipped.of(ScanFrame(name, source, tuple(frame.columns))), STATE_DDL)
        for name, (frame, source) in frames.items()
    ]
    if plan.bins:
        bins = session.range(0, len(plan.bins), 1, len(plan.bins))
        states.append(bins.mapInArrow(Shipped.of(ScanBins(place)), STATE_DDL))
    if not states:
        return []
    scanned = states[0]
    for more in states[1:]:
        scanned = scanned.unionAll(more)
    shards = min(64, max(1, len(plan.bins) // 4 + len(frames)))
    merged = (
        scanned.repartition(shards, "table")
        .sortWithinPartitions("table", "part", "name", "ordinal")
        .mapInArrow(Shipped.of(MergeStates(place)), RESULT_DDL)
    )
    units = sum(len(units) for units in plan.bins)
    watch = ProgressWatch(staging, units, plan.bytes, progress) if progress and units else None
    if watch:
        watch.start()
    try:
        with _FewRowsPerBatch(session):
            return [row.result for row in merged.collect()]
    except LakescopeError:
        raise
    except Exception as error:
        raise BuildFailed(
            f"the Spark job failed: {_reason(error)}",
            hint="the index that was there before is untouched; run again with --debug for the whole story",
        ) from error
    finally:
        if watch:
            watch.end()


class _FewRowsPerBatch:
    """Hands Python workers few rows at a time, since each holds a whole state; restores the session's setting."""

    _KEY = "spark.sql.execution.arrow.maxRecordsPerBatch"

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    def __enter__(self) -> None:
        self._before = self._session.conf.get(self._KEY, None)
        self._session.conf.set(self._KEY, _ROWS_PER_BATCH)

    def __exit__(self, *_: object) -> None:
        if self._before is None:
            self._session.conf.unset(self._KEY)
        else:
            self._session.conf.set(self._KEY, self._before)


def _reason(error: Exception) -> str:
    """The line of a Spark error that says what went wrong, not the hundred around it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if "Error:" in line or "Exception:" in line]
    return (telling or lines or [type(error).__name__])[-1][:500]


def _write_problems(problems: list[Problem], staging: Path) -> list[SegmentFile]:
    from dataclasses import asdict

    shard = ShardWriter(staging, "problems")
    for problem in problems:
        shard.add(asdict(problem))
    file = shard.close()
    return [file] if file else []


def _summary(problems: list[Problem], outcome: _Outcome, seconds: float) -> dict[str, Any]:
    counts = outcome.counts
    return {
        "tables": counts.get("tables", 0),
        "columns": counts.get("columns", 0),
        "rows": counts.get("rows", 0),
        "bytes": counts.get("bytes", 0),
        "failed": counts.get("failed", 0) + sum(problem.severity == "error" for problem in problems),
        "rescanned": outcome.rescanned,
        "jobs": outcome.jobs,
        "seconds": round(seconds, 3),
    }
