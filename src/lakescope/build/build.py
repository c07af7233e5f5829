"""The build: plan, scan, merge, invert, publish. Three Spark jobs whatever the number of tables.

The first reads the data: ``spark.range`` numbers the bins, a scan task per bin reads its units and sketches them, one
exchange by table brings the states of a column together, a merge task per partition writes shard files; the driver
sees only their names. Only if byte ranges of a CSV did not meet (a quote fooled the guess) are those tables scanned
once more, whole. The other two turn the distinct values it found into the inverted index (see ``inverted``).
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakescope._version import __version__
from lakescope.build.inputs import CATALOG_PREFIX, Given, Inputs, SparkFrame, declare
from lakescope.build.inverted import Exchange, build_inverted, local_exchange, spark_exchange
from lakescope.build.plan import UNIT_BYTES, ScanPlan, make_plan, pack, write_plan
from lakescope.build.progress import Listener, Progress, ProgressWatch, finished_units
from lakescope.build.session import inheriting, spark_session
from lakescope.build.shipping import Shipped, ship_package, spent
from lakescope.build.tasks import (
    RESULT_DDL,
    STATE_DDL,
    STATE_SCHEMA,
    MergeStates,
    ScanBins,
    ScanFrame,
    parse_result,
)
from lakescope.build.tokens import RAW, RAW_GRAMS, TokenCut
from lakescope.build.warmup import start_warming
from lakescope.errors import BadRequest, BuildFailed, LakescopeError
from lakescope.logs import listened, log
from lakescope.sources.databases import snapshots
from lakescope.sources.discover import discover
from lakescope.sources.io.files import display
from lakescope.sources.io.locations import catalogue_uri
from lakescope.sources.io.redact import Secret, scrub
from lakescope.sources.model import Problem
from lakescope.sources.source_table import SourceTable
from lakescope.stages import COMMAND, Stages
from lakescope.store.manifest import Manifest, SegmentFile
from lakescope.store.segment import write_records
from lakescope.store.writer import IndexWriter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Rows a Python worker is handed at a time; states are large, rows of them few.
_ROWS_PER_BATCH = "32"
_BATCH_KEY = "spark.sql.execution.arrow.maxRecordsPerBatch"
#: What a Spark frame, whose size nobody knows, is taken for.
_FRAME_BYTES = 1 << 30

#: Stages of inverting the values of a lake.
INVERTING = ("group values", "write the inverted index")

#: Bytes that are worked on in this process, which takes no longer than to start Spark.
HERE_BYTES = 32 * 1024 * 1024
#: How long an interrupted build waits for its job to be gone.
_CANCEL_SECONDS = 10.0


@dataclass(slots=True)
class Outcome:
    """What Spark jobs returned so far."""

    cut: TokenCut | None
    inverted: dict[str, Any] | None = None
    files: list[SegmentFile] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    again: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    jobs: int = 0

    def add(self, results: list[str]) -> None:
        for text in results:
            merged = parse_result(text)
            self.files += merged.files
            self.again += merged.again
            for name, count in merged.counts.items():
                self.counts[name] = self.counts.get(name, 0) + count
        self.jobs += 1


def build(
    given: Given,
    out: str | Path,
    *,
    spark: SparkSession | None = None,
    master: str | None = None,
    unit_bytes: int = UNIT_BYTES,
    joins: bool = True,
    share: bool = False,
    progress: Listener | None = None,
) -> Manifest:
    """Index what was given into ``out`` and publish it; the index that was there before stays until then.

    Without ``joins`` it holds profiles only: no inverted index. To ``share`` it is to let others read it, as far as
    the umask does.
    """
    inputs = Inputs.of(given)
    if unit_bytes < 1:
        raise BadRequest(f"unit_bytes must be positive, not {unit_bytes}")
    if "://" in str(out):
        raise BadRequest(f"the index must be a local or mounted directory, not {display(str(out))}")
    began = time.monotonic()
    stages = Stages("index")
    with IndexWriter(out, share=share) as writer, snapshots.scope():
        with stages.measure("plan") as stage:
            plan = _plan(inputs, writer.staging, unit_bytes)
            stage.bytes = plan.bytes
        with started(spark, master, stages) as session:
            frames, unreadable = inputs.spark_frames(session)
            plan.problems += unreadable
            _check(plan, frames, inputs)
            outcome = scan(session, plan, frames, writer.staging, joins=joins, progress=progress, stages=stages)
        files = [
            *outcome.files,
            *write_problems("problems", plan.problems + outcome.problems, writer.staging),
            *write_problems("notices", plan.notices, writer.staging),
            *write_failures(plan.failed, writer.staging),
        ]
        problems = plan.notices + plan.problems + outcome.problems
        summary = _summary(problems, outcome, time.monotonic() - began)
        summary["stages"] = stages.records()
        asked = inputs.remembered(unit_bytes, joins=joins)
        manifest = writer.publish(files, version=__version__, sources=inputs.names(), summary=summary, given=asked)
    log_published(stages, manifest, problems)
    return manifest


@contextlib.contextmanager
def started(spark: SparkSession | None, master: str | None, stages: Stages) -> Iterator[SparkSession]:
    """A session whose workers have this package; kernels are compiled while Spark starts."""
    with contextlib.ExitStack() as stack:
        with stages.measure("start Spark"):
            warming = start_warming()
            session = stack.enter_context(spark_session(spark, master))
            warming.join()
            ship_package(session)
        yield session


def log_published(stages: Stages, manifest: Manifest, problems: list[Problem]) -> None:
    """Log what was published, and let the command line know its stages. No details of problems: they quote cells."""
    for problem in problems:
        log("problem", table=problem.table, severity=problem.severity, code=problem.code, count=problem.count)
    figures: dict[str, Any] = {
        name: manifest.summary.get(name) for name in ("tables", "columns", "rows", "bytes", "failed", "seconds")
    }
    log("published", work=stages.what, generation=manifest.generation, files=len(manifest.files), **figures)
    COMMAND.add(stages.done)


#: Runs the scan of a plan and of frames; returns the results of its merge tasks.
Job = Callable[[ScanPlan, "list[SparkFrame]", "TokenCut | None", "Listener | None"], list[str]]


def scan(
    session: SparkSession,
    plan: ScanPlan,
    frames: list[SparkFrame],
    staging: Path,
    *,
    joins: bool,
    progress: Listener | None,
    stages: Stages,
) -> Outcome:
    """Scan what was planned and invert it: all files of a segment, staged."""
    began = time.monotonic()

    def job(plan: ScanPlan, frames: list[SparkFrame], cut: TokenCut | None, progress: Listener | None) -> list[str]:
        return _job(session, plan, frames, staging, cut, progress)

    with few_rows_per_batch(session):
        with stages.measure("scan") as stage:
            outcome = _run(job, plan, frames, progress, joins=joins)
            stage.rows, stage.bytes = outcome.counts.get("rows"), outcome.counts.get("bytes")
            stage.workers = spent(staging)
        _tell_units(staging)
        steps = itertools.count(1)

        def step(frame: DataFrame) -> list[Any]:
            number = next(steps)
            if progress:
                tables, size = outcome.counts.get("tables", 0), outcome.counts.get("bytes", 0)
                progress(Progress(tables, 0, 0, size, size, time.monotonic() - began, step=number))
            with stages.measure(INVERTING[number - 1]) as stage:
                stage.rows = outcome.counts.get("pairs")
                rows = collect(session, frame, f"{INVERTING[number - 1]} (step {number} of 2)")
                stage.workers = spent(staging)
            return rows

        _invert(spark_exchange(session, step), outcome, staging)
    return outcome


def scan_here(plan: ScanPlan, staging: Path, *, joins: bool, progress: Listener | None = None) -> Outcome:
    """Scan what was planned and invert it in this process: for what is scanned before Spark would have started.

    Everything is held in memory.
    """

    def job(plan: ScanPlan, frames: list[SparkFrame], cut: TokenCut | None, progress: Listener | None) -> list[str]:
        secrets = write_plan(plan.bins, staging)
        place = str(staging.absolute())
        # A bin at a time, as on Spark: records that travel together are in order of their tables.
        numbers = [pa.record_batch([pa.array([number])], ["id"]) for number in range(len(plan.bins))]
        with _watched(plan, staging, progress):
            scanned = [batch for each in numbers for batch in ScanBins(place, 1, cut, secrets)(iter([each]))]
        states = pa.Table.from_batches(scanned, STATE_SCHEMA)
        order = [(name, "ascending") for name in ("table", "target", "part", "name", "ordinal")]
        merged = MergeStates(place, 1, cut)(iter(states.sort_by(order).to_batches()))
        return [result for batch in merged for result in batch.column(0).to_pylist()]

    outcome = _run(job, plan, [], progress, joins=joins)
    _tell_units(staging)
    _invert(local_exchange, outcome, staging)
    outcome.jobs = 0
    return outcome


def _tell_units(staging: Path) -> None:
    if listened():
        for unit in finished_units(staging):
            log("unit", **unit)


def _plan(inputs: Inputs, staging: Path, unit_bytes: int) -> ScanPlan:
    """Find the tables, cut them into units, add the frames."""
    found, problems = discover(inputs.locations) if inputs.locations else ([], [])
    missing = [problem.detail for problem in problems if problem.code == "not-found"]
    if missing:
        raise BadRequest("; ".join(missing), hint="check the path; quote globs so that the shell leaves them alone")
    plan = make_plan(found, unit_bytes)
    plan.notices = problems
    plan.bins += pack(inputs.write_frames(staging), unit_bytes)
    return plan


def _check(plan: ScanPlan, frames: list[SparkFrame], inputs: Inputs) -> None:
    """Refuse to build an index of nothing, or one in which two tables have one name."""
    if not plan.bins and not frames:
        why = "; ".join(problem.detail for problem in [*plan.notices, *plan.problems][:3])
        hint = "check the paths and patterns; the index that was there before is untouched"
        raise BadRequest(f"found no table in {', '.join(inputs.names())}" + (f": {why}" if why else ""), hint=hint)
    catalog = [frame.table for frame in frames if frame.source.startswith(CATALOG_PREFIX)]
    names = Counter([*plan.tables, *inputs.frames, *catalog])
    doubled = [name for name, count in names.items() if count > 1]
    if doubled:
        raise BadRequest(f"two tables are called {doubled[0]!r}", hint="give the frame another name")


def _run(job: Job, plan: ScanPlan, frames: list[SparkFrame], progress: Listener | None, *, joins: bool) -> Outcome:
    """The job that scans; one more if ranges of a file did not meet, one for each frame if a frame broke the first."""
    cut = TokenCut.for_bytes(max(plan.bytes, _FRAME_BYTES * len(frames))) if joins else None
    outcome = Outcome(cut)
    try:
        outcome.add(job(plan, frames, cut, progress))
    except BuildFailed:
        if not frames:
            raise
        # One bad table never stops a lake: a frame that Spark cannot read takes only itself down.
        outcome.add(job(plan, [], cut, progress))
        for frame in frames:
            try:
                outcome.add(job(ScanPlan({}, []), [frame], cut, None))
            except BuildFailed as error:
                outcome.problems.append(Problem(frame.table, "error", "unreadable", error.message))
        if not outcome.counts.get("tables"):
            raise
    if outcome.again:
        again, outcome.again = outcome.again, []
        detail = "quotes misled the cutting of the file into ranges; it was scanned again whole"
        outcome.problems += [Problem(table, "info", "rescanned", detail) for table in again]
        whole = make_plan([plan.tables[table] for table in again], unit_bytes=1 << 62)
        outcome.add(job(whole, [], replace(cut, attempt=1) if cut else None, progress))
    return outcome


def _invert(exchange: Exchange, outcome: Outcome, staging: Path) -> None:
    """Replace the raw tokens by the inverted index."""
    if outcome.cut is None:
        return
    raw, grams, sketches = (
        [file for file in outcome.files if file.kind == kind] for kind in (RAW, RAW_GRAMS, "sketches")
    )
    built = build_inverted(exchange, staging, raw, sketches, outcome.cut, outcome.counts.get("pairs", 0), grams)
    outcome.files = [file for file in outcome.files if file.kind not in (RAW, RAW_GRAMS)] + built.files
    outcome.inverted = built.figures
    outcome.jobs += 2


def _job(
    session: SparkSession,
    plan: ScanPlan,
    frames: list[SparkFrame],
    staging: Path,
    cut: TokenCut | None,
    progress: Listener | None,
) -> list[str]:
    """One Spark job: scan everything, merge by table, write shards."""
    bins = plan.bins + pack(declare(frames, staging))
    if not bins:
        return []
    secrets = write_plan(bins, staging)
    with _watched(plan, staging, progress) as tables:
        merged = _dataflow(session, len(bins), frames, str(staging.absolute()), cut, secrets)
        return [row.result for row in collect(session, merged, f"scan {tables + len(frames)} tables")]


@contextlib.contextmanager
def _watched(plan: ScanPlan, staging: Path, progress: Listener | None) -> Iterator[int]:
    """Tell a listener how far the units of a plan are, of so many tables."""
    units = [unit for units in plan.bins for unit in units]
    tables = len({unit.table for unit in units})
    if not progress or not units:
        yield tables
        return
    watch = ProgressWatch(staging, tables, len(units), plan.bytes, progress)
    watch.start()
    try:
        yield tables
    finally:
        watch.end()


def _dataflow(
    session: SparkSession,
    bins: int,
    frames: list[SparkFrame],
    staging: str,
    cut: TokenCut | None,
    secrets: tuple[Secret, ...],
) -> DataFrame:
    """Scan bins and frames, bring together what belongs together, merge it."""
    shards = min(64, max(1, bins // 4 + len(frames)))
    task = ScanBins(staging, shards, cut, secrets)
    scanned = session.range(0, bins, 1, bins).mapInArrow(Shipped.of(task), STATE_DDL)
    for frame in frames:
        scanned = scanned.unionAll(_scan_frame(frame, shards, cut))
    return (
        scanned.repartition(shards + (cut.targets if cut else 0), "target")
        .sortWithinPartitions("table", "target", "part", "name", "ordinal")
        .mapInArrow(Shipped.of(MergeStates(staging, shards, cut)), RESULT_DDL)
    )


def _scan_frame(given: SparkFrame, shards: int, cut: TokenCut | None) -> DataFrame:
    """The states of a frame's partitions. Columns travel under plain names: theirs may hold dots or be repeated."""
    names = tuple(given.frame.columns)
    plain = given.frame.toDF(*(f"c{number}" for number in range(len(names))))
    return plain.mapInArrow(Shipped.of(ScanFrame(given.table, given.source, names, shards, cut)), STATE_DDL)


def collect(session: SparkSession, frame: DataFrame, what: str) -> list[Any]:
    """Collect in a thread of its own: Ctrl-C then finds this thread waiting, and the job is cancelled.

    Else PySpark's handler of the signal would talk to Spark on a connection that is still waiting for an answer.
    What fails in Spark fails as a build that failed, in one line. ``what`` is what Spark's pages and its history call
    the job: a tag, since descriptions are set through the Spark context, which Spark Connect has not.
    """
    rows: Future[list[Any]] = Future()
    tag = f"lakescope-{uuid.uuid4().hex}"

    def work() -> None:
        try:
            session.addTag(tag)
            session.addTag(f"lakescope: {what}".replace(",", ""))
            rows.set_result(frame.collect())
        except BaseException as error:
            rows.set_exception(error)

    threading.Thread(target=inheriting(session, work), name="lakescope-job", daemon=True).start()
    try:
        return rows.result()
    except LakescopeError:
        raise
    except BaseException as error:
        if not rows.done():
            with contextlib.suppress(Exception):
                session.interruptTag(tag)
            wait([rows], _CANCEL_SECONDS)
        if not isinstance(error, Exception):
            raise
        raise BuildFailed(
            f"the Spark job failed: {_reason(error)}",
            hint="the index that was there before is untouched; run again with --debug for the whole story",
        ) from error


@contextlib.contextmanager
def few_rows_per_batch(session: SparkSession) -> Iterator[None]:
    """Hand Python workers few rows at a time, since each holds a whole state; restores the session's setting."""
    before = session.conf.get(_BATCH_KEY, None)
    session.conf.set(_BATCH_KEY, _ROWS_PER_BATCH)
    try:
        yield
    finally:
        if before is None:
            session.conf.unset(_BATCH_KEY)
        else:
            session.conf.set(_BATCH_KEY, before)


def _reason(error: Exception) -> str:
    """The line of a Spark error that says what went wrong, not the hundred around it."""
    lines = [line.strip() for line in scrub(str(error)).splitlines() if line.strip()]
    telling = [line for line in lines if "Error:" in line or "Exception:" in line]
    return (telling or lines or [type(error).__name__])[-1][:500]


def write_problems(kind: str, problems: list[Problem], staging: Path) -> list[SegmentFile]:
    """A file of problems: those of tables, or (``notices``) those met while looking for tables."""
    return write_records(staging, kind, map(asdict, problems))


def write_failures(failed: list[SourceTable], staging: Path) -> list[SegmentFile]:
    """A file of what could not be planned, and in which state it was: it is not tried again before it changes."""
    records = (
        {"table": found.table, "uri": catalogue_uri(found.uri), "version": found.version, "content": None}
        for found in failed
    )
    return write_records(staging, "failures", records)


def _summary(problems: list[Problem], outcome: Outcome, seconds: float) -> dict[str, Any]:
    counts = outcome.counts
    return {
        "tables": counts.get("tables", 0),
        "columns": counts.get("columns", 0),
        "rows": counts.get("rows", 0),
        "bytes": counts.get("bytes", 0),
        "failed": counts.get("failed", 0) + sum(problem.severity == "error" for problem in problems),
        "jobs": outcome.jobs,
        "join": outcome.inverted,
        "seconds": round(seconds, 3),
    }
