"""Keep an index true: look what was added, changed or removed since, scan that alone, publish a new segment.

What is unchanged stays where it is. Tables that were replaced or removed stay in their segments, too, until these are
compacted: a small file says that they are gone. Whatever the history of an index, its answers are those of a fresh
build of what is there.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakescope._version import __version__
from lakescope.build.build import (
    HERE_BYTES,
    Outcome,
    log_published,
    scan,
    scan_here,
    started,
    write_failures,
    write_problems,
)
from lakescope.build.inputs import Inputs
from lakescope.build.plan import ScanPlan, make_plan, without
from lakescope.build.progress import Listener
from lakescope.errors import BadRequest, NotFound
from lakescope.sources.databases import snapshots
from lakescope.sources.discover import discover, is_unlisted
from lakescope.sources.io import files
from lakescope.sources.io.content import content_at
from lakescope.sources.io.locations import catalogue_uri
from lakescope.sources.model import Problem
from lakescope.sources.source_table import SourceTable
from lakescope.stages import Stages
from lakescope.store.index import Index
from lakescope.store.manifest import Manifest, SegmentFile
from lakescope.store.segment import PAST, ROWS_PER_WRITE, SCHEMAS, ShardWriter, write_tombstones
from lakescope.store.writer import IndexWriter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class AdviceTuning:
    """When an index is better compacted."""

    #: More segments than are good for questions. Not measured: each is asked by itself (docs/updates.md).
    many_segments: int = 8
    #: A larger share of tables that are gone than is good for questions. Not measured: a fifth.
    many_gone: float = 0.2


ADVICE = AdviceTuning()


@dataclass(frozen=True, slots=True)
class Update:
    """What an update did: tables by what became of them, and how many segments the index has since.

    ``advice`` says what to do next, if anything.
    """

    generation: int
    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    segments: int
    gone: int
    seconds: float
    advice: str | None

    @property
    def nothing(self) -> bool:
        """Whether the index was up to date."""
        return not (self.added or self.changed or self.removed)


@dataclass(slots=True)
class Changes:
    """What became of the tables of an index since it was written.

    ``listed`` is all that lies there, ``to_scan`` the files to scan, ``gone`` the tables that are no longer what the
    index says; ``emptied`` files hold nothing but tables to be left out; ``problems`` were met while looking.
    """

    listed: list[SourceTable] = field(default_factory=list)
    to_scan: list[SourceTable] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)
    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    emptied: set[str] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.to_scan or self.gone)

    def remove(self, records: Iterable[dict[str, Any]]) -> None:
        """Tables are there no longer, or are wanted no longer."""
        new = [record["table"] for record in records if record["table"] not in self.gone]
        self.gone.update(new)
        self.removed += new


def update(
    path: str | Path,
    *,
    add: Sequence[str] = (),
    remove: Sequence[str] = (),
    retry: bool = False,
    spark: SparkSession | None = None,
    master: str | None = None,
    progress: Listener | None = None,
) -> Update:
    """Bring an index up to date; ``add`` more locations, ``remove`` tables, ``retry`` what could not be read."""
    began = time.monotonic()
    stages = Stages("update")
    with IndexWriter(path) as writer, snapshots.scope():
        with stages.measure("compare"):
            index = Index(path)
            with index.question():
                given = _inputs_of(index, add, remove)
                seen, problems = _looked(index, given)
                again = _wanted_again(given, seen, add)
                given = _leaving_out(given, {*given.get("left_out", ())} - again)
                changes = _compare(index, given, Changes(listed=seen, problems=problems), again, retry=retry)
        if not changes and given == index.manifest.given:
            return _update_of(index, changes, began)
        with stages.measure("plan") as stage:
            with index.question():
                plan = _planned(index, changes, given)
            given = _leaving_out(given, {*given.get("left_out", ()), *changes.emptied})
            stage.bytes = plan.bytes
        outcome = Outcome(None)
        if plan.bins and spark is None and master is None and plan.bytes <= HERE_BYTES:
            with stages.measure("scan here") as stage:
                outcome = scan_here(plan, writer.staging, joins=given["joins"], progress=progress)
                stage.rows, stage.bytes = outcome.counts.get("rows"), outcome.counts.get("bytes")
        elif plan.bins:
            with started(spark, master, stages) as session:
                asked = {"joins": given["joins"], "progress": progress, "stages": stages}
                outcome = scan(session, plan, [], writer.staging, **asked)
        named = Inputs.of(list(add)).names() if add else []
        sources = list(dict.fromkeys([*index.manifest.sources, *named]))
        manifest = _publish(writer, index, changes, plan, outcome, given, sources, stages, time.monotonic() - began)
    log_published(stages, manifest, changes.problems + plan.problems + outcome.problems)
    return _update_of(Index(path), changes, began)


def _update_of(index: Index, changes: Changes, began: float) -> Update:
    segments = index.manifest.segments
    gone = sum(len(index.dead_in(segment)) for segment in segments)
    there = int(index.manifest.summary["tables"])
    advice = None
    if len(segments) > ADVICE.many_segments:
        advice = f"the index has {len(segments)} segments: lakescope compact makes questions faster"
    elif gone > ADVICE.many_gone * max(1, there):
        advice = f"{gone:,} tables that are gone still take room: lakescope compact frees it"
    return Update(
        generation=index.manifest.generation,
        added=tuple(sorted(changes.added)),
        changed=tuple(sorted(changes.changed)),
        removed=tuple(sorted(changes.removed)),
        segments=len(segments),
        gone=gone,
        seconds=round(time.monotonic() - began, 3),
        advice=advice,
    )


def _inputs_of(index: Index, add: Sequence[str], remove: Sequence[str]) -> dict[str, Any]:
    """What is to be indexed from now on."""
    given = index.manifest.given
    if not given:
        hint = "build it again: lakescope index"
        raise BadRequest(f"{index.path} does not say what it was built from", hint=hint)
    more = Inputs.of(list(add)).remembered(given["unit_bytes"], joins=given["joins"]) if add else {"locations": []}
    known = set(index.catalog("tables")["table"].to_pylist())
    for table in remove:
        if table not in known:
            raise NotFound.among("table", table, sorted(known))
    new = [location for location in more["locations"] if location not in given["locations"]]
    return _leaving_out({**given, "locations": [*given["locations"], *new]}, {*given.get("left_out", ()), *remove})


def _leaving_out(given: dict[str, Any], tables: Iterable[str]) -> dict[str, Any]:
    """What is given, but for some tables."""
    rest = {name: value for name, value in given.items() if name != "left_out"}
    return {**rest, **({"left_out": sorted(tables)} if tables else {})}


def _looked(index: Index, given: dict[str, Any]) -> tuple[list[SourceTable], list[Problem]]:
    """All that lies where the index was built from, and what was met on the way."""
    locations = given["locations"]
    found, problems = discover(locations) if locations else ([], [])
    if missing := _missing(index, locations, problems):
        new = [location for location in locations if location not in index.manifest.given["locations"]]
        if new and _missing(index, new, discover(new)[1]):
            hint = "nothing was added; check the path; quote globs so that the shell leaves them alone"
        else:
            hint = "the index is untouched; bring it back, or build the index again without it"
        raise BadRequest("; ".join(missing), hint=hint)
    return found, problems


def _missing(index: Index, locations: Sequence[str], problems: Sequence[Problem]) -> list[str]:
    """Why nothing is known of some locations, so that their tables must not be taken for removed."""
    had = [record["uri"] for record in index.states("tables")]
    emptied = [each for each in locations if _is_empty(each) and any(_is_in(uri, each) for uri in had)]
    before = [Problem(**record) for record in index.catalog("problems").to_pylist()]
    # What could not be listed when the index was written has no tables in it.
    new = [each for each in locations if not any(is_unlisted(problem, each) for problem in before)]
    unlisted = [
        problem.detail
        for problem in problems
        if problem.code == "not-found" or any(is_unlisted(problem, location) for location in new)
    ]
    return unlisted + [f"{files.display(each)} is empty now" for each in emptied]


def _is_in(uri: str, location: str) -> bool:
    """Whether a file of the catalogue lies in a local directory that was given."""
    path, folder = files.local_path(uri), files.local_path(location)
    return path is not None and folder is not None and path.startswith(f"{folder.rstrip('/')}/")


def _is_empty(location: str) -> bool:
    """Whether a location is a directory without anything in it: nothing may be mounted there."""
    with suppress(OSError), os.scandir(files.local_path(location) or "") as entries:
        return next(entries, None) is None
    return False


def _wanted_again(given: dict[str, Any], seen: Sequence[SourceTable], add: Sequence[str]) -> set[str]:
    """Tables that were removed, and lie in a location that is added."""
    tables = given.get("left_out", ())
    added = {each.uri for each in discover(list(add))[0]} if tables and add else set[str]()
    wanted = [each.table for each in seen if each.uri in added]
    return {table for table in tables if any(_is_of(table, name) for name in wanted)}


def _is_of(table: str, file: str) -> bool:
    """Whether a table has the name of a file, or that of one of several in it."""
    return table == file or table.startswith((f"{file}::", f"{file}~"))


def _compare(index: Index, given: dict[str, Any], changes: Changes, again: set[str], *, retry: bool) -> Changes:
    """Tell what is there from what the index knows; files of tables that are wanted ``again`` are scanned."""
    records = [*index.states("tables"), *index.states("failures")]
    left_out = set(given.get("left_out", ()))
    changes.remove(record for record in records if record["table"] in left_out)
    known = _by_location(records)
    for each in changes.listed:
        before = known.pop(catalogue_uri(each.uri), [])
        left = [record for record in before if record["table"] not in left_out]
        if each.table in left_out:
            changes.remove(left)
        elif before and not left:
            changes.emptied.add(each.table)
        elif not left or any(_is_of(table, each.table) for table in again) or not _is_known(left, each, retry=retry):
            changes.to_scan.append(each)
            changes.gone.update(record["table"] for record in left)
            (changes.changed if left else changes.added).append(each.table)
    for left in known.values():
        changes.remove(left)
    return changes


def _by_location(records: Iterable[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Tables that were read from files, or could not be, by where these lie."""
    known: dict[str, list[dict[str, Any]]] = {}
    for record in records:
        if record["version"] is not None:
            known.setdefault(record["uri"], []).append(record)
    return known


def _is_known(records: list[dict[str, Any]], found: SourceTable, *, retry: bool) -> bool:
    """Whether tables of the index are what lies there now, under the names they would get now.

    With ``retry`` those that could not be read, or not whole, are not. A file with another time is read, if it has the
    size it had: what it holds may be the same.
    """
    if retry and not all(record.get("complete", False) for record in records):
        return False
    for record in records:
        if not _is_of(record["table"], found.table):
            return False
    changed = [record for record in records if record["version"] != found.version]
    return not changed or _holds_the_same(changed, found)


def _holds_the_same(records: list[dict[str, Any]], found: SourceTable) -> bool:
    """Whether the file of some tables was touched, and not changed."""
    known = {record["content"] for record in records}
    (content,) = known if len(known) == 1 else (None,)
    if content is None or len(found.parts) != 1:
        return False
    uri, size = found.parts[0]
    return bool(content.startswith(f"{size}-") and content == content_at(uri, found.modified))


def _planned(index: Index, changes: Changes, given: dict[str, Any]) -> ScanPlan:
    """Cut what changed into units. A name that an unchanged table has, too, makes both of them new."""
    plan = _cut(changes, given)
    tables = index.catalog("tables")
    names = tables["table"].to_pylist()
    doubled = {name for name in names if name in plan.tables and name not in changes.gone}
    if not doubled:
        return plan
    places = dict(zip(names, tables["uri"].to_pylist(), strict=True))
    again = {places[name] for name in doubled}
    changes.to_scan = [each for each in changes.listed if each in changes.to_scan or catalogue_uri(each.uri) in again]
    changes.gone.update(name for name in names if places[name] in again)
    return _cut(changes, given)


def _cut(changes: Changes, given: dict[str, Any]) -> ScanPlan:
    """Units of what is to be scanned, without those of tables that are left out."""
    every = make_plan(changes.to_scan, given["unit_bytes"])
    plan = without(every, given.get("left_out", ()))
    left = {found.uri for found in plan.tables.values()}
    changes.emptied.update(found.table for name, found in every.tables.items() if found.uri not in left)
    return plan


def _publish(
    writer: IndexWriter,
    index: Index,
    changes: Changes,
    plan: ScanPlan,
    outcome: Outcome,
    given: dict[str, Any],
    sources: list[str],
    stages: Stages,
    seconds: float,
) -> Manifest:
    """One segment more, what is gone from the others, and what was met while looking."""
    # A table that could not be read before has problems only.
    gone = changes.gone | set(plan.tables) | {found.table for found in plan.failed}
    dead = _dead(index, gone)
    whole = [segment for segment in index.manifest.segments if index.names_in(segment) <= dead.get(segment, set())]
    keep = [
        file
        for file in index.manifest.files
        if file.segment not in whole and file.kind not in ("tombstones", "notices")
    ]
    made = [
        *outcome.files,
        *write_problems("problems", plan.problems + outcome.problems, writer.staging),
        *write_problems("notices", changes.problems, writer.staging),
        *write_failures(plan.failed, writer.staging),
        *write_tombstones({name: tables for name, tables in dead.items() if name not in whole}, writer.staging),
        *_past(index, gone, whole, writer.staging),
    ]
    errors = sum(each.severity == "error" for each in [*changes.problems, *plan.problems, *outcome.problems])
    summary = {**_summary(index, changes, outcome, errors, seconds), "stages": stages.records()}
    return writer.publish(made, version=__version__, sources=sources, summary=summary, given=given, keep=keep)


def _dead(index: Index, gone: Iterable[str]) -> dict[str, set[str]]:
    """Tables of each segment that are gone."""
    lost = set(gone)
    found = {}
    for segment in index.manifest.segments:
        tables = {*index.dead_in(segment), *(index.names_in(segment) & lost)}
        if tables:
            found[segment] = tables
    return found


def _past(index: Index, gone: set[str], whole: list[str], staging: Path) -> list[SegmentFile]:
    """The profiles of tables that are replaced or removed, and those of earlier ones whose segment goes."""
    until = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    generation = index.manifest.generation
    made = []
    for kind, present in PAST.items():
        shard = ShardWriter(staging, kind)
        for file in index.manifest.of_kind(present):
            lost = index.rows_of_tables(file, gone - index.dead_in(file.segment))
            for batch in lost.to_batches(ROWS_PER_WRITE):
                times = pa.array([until] * batch.num_rows), pa.array([generation] * batch.num_rows)
                shard.add_batch(pa.record_batch([*batch.columns, *times], schema=SCHEMAS[kind]))
        for file in index.manifest.of_kind(kind):
            if file.segment in whole:
                for batch in index.rows_of_tables(file).to_batches(ROWS_PER_WRITE):
                    shard.add_batch(batch)
        made.append(shard.close())
    return [file for file in made if file]


def _summary(index: Index, changes: Changes, outcome: Outcome, errors: int, seconds: float) -> dict[str, Any]:
    """Figures of what is there now."""
    kept = [record for record in index.catalog("tables").to_pylist() if record["table"] not in changes.gone]
    failed = [name for name in index.catalog("failures")["table"].to_pylist() if name not in changes.gone]
    counts = outcome.counts
    before = index.manifest.summary
    return {
        "tables": len(kept) + counts.get("tables", 0),
        **{name: sum(each[name] for each in kept) + counts.get(name, 0) for name in ("columns", "rows", "bytes")},
        "failed": len(failed) + counts.get("failed", 0) + errors,
        "jobs": outcome.jobs,
        "join": before["join"],
        "seconds": round(seconds, 3),
    }
