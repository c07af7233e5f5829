"""Make an index answer again after its files were damaged, as far as what is left of it allows.

A manifest that is lost is taken from the copy that lies with each segment. A segment with a damaged file is taken out,
and its tables with it: the next update scans them again. What is damaged is moved aside, never removed.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from lakescope._version import __version__
from lakescope.errors import BadRequest, IndexDamaged, IndexLocked, LakescopeError
from lakescope.results import Results
from lakescope.store import disk
from lakescope.store.manifest import MANIFEST, Manifest, OtherFormat, SegmentFile, file_checksum
from lakescope.store.segment import write_tombstones
from lakescope.store.writer import IndexWriter, is_ours, is_written, segment_folders, staged, unnamed_segments

#: Where damaged files are put.
DAMAGED = "damaged"
#: Kinds without which the rest of a segment still answers right.
_ALONE = ("problems", "notices", "failures", "tombstones", "past", "past-columns")
#: Kinds that tell of the whole index, whatever segment they lie in.
_OF_ALL = ("notices", "tombstones", "past", "past-columns")
_DEAD = "left by a writer that died"
_REMEDY = "the next update scans it again"


@dataclass(frozen=True, slots=True)
class Repair:
    """Something that was done to an index, or would be.

    ``what`` is ``removed`` (left by a writer that died), ``restored`` (the manifest), ``set aside`` (a damaged file, or
    one that is no use without it), ``dropped`` (a table) or ``rewritten``.
    """

    what: str
    where: str
    detail: str


def repair(path: str | os.PathLike[str], *, dry_run: bool = False) -> Results[Repair]:
    """Mend an index, or say what would be done."""
    place = Path(path)
    _check(place)
    if dry_run:
        if is_written(place):
            raise IndexLocked(
                f"another process is writing {place}", hint="wait for it to end: what it staged is its own"
            )
        found = _Diagnosis(place)
        return _results(found.repairs, ["nothing was changed"])
    before = [Repair("removed", str(left.relative_to(place)), _DEAD) for left in _debris(place)]
    with IndexWriter(place) as writer:
        found = _Diagnosis(place)
        notes = _mend(found, writer)
    return _results([*before, *(each for each in found.repairs if each.what != "removed")], notes)


def _results(repairs: list[Repair], notes: list[str]) -> Results[Repair]:
    dropped = sum(each.what == "dropped" for each in repairs)
    if dropped:
        notes = [*notes, f"{dropped:,} tables are not in the index until `lakescope update` has scanned them again"]
    return Results(Repair, repairs, notes=notes if repairs else [])


def _check(place: Path) -> None:
    if not place.is_dir() or not is_ours(place):
        hint = "give the directory that `lakescope index ... --out` wrote"
        raise BadRequest(f"{place} is not a Lakescope index", hint=hint)


def _debris(place: Path) -> list[Path]:
    """What no reader looks at: staging areas and drafts of writers that died, segments that were never published."""
    left = [staged(place)] if staged(place).exists() else []
    try:
        manifest = Manifest.load(place)
    except LakescopeError:
        return left
    return [*left, *place.glob(f"{MANIFEST}.*"), *unnamed_segments(place, manifest)]


@dataclass(slots=True)
class _Remaining:
    """What remains of an index."""

    files: list[SegmentFile] = field(default_factory=list)
    lost: list[SegmentFile] = field(default_factory=list)


class _Diagnosis:
    """What is wrong with an index, and what can be done about it."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.repairs = [Repair("removed", str(left.relative_to(place)), _DEAD) for left in _debris(place)]
        self.manifest, self.is_lost = self._manifest()
        self.wrong = {file.path: told for file in self.manifest.files if (told := _problem(place, file))}
        self._tell()

    def _manifest(self) -> tuple[Manifest, bool]:
        """The manifest, or the newest copy of it whose files are there, and whether it is the copy."""
        try:
            return Manifest.load(self.place), False
        except OtherFormat:
            raise
        except LakescopeError as error:
            copies = sorted(self._copies(), key=lambda copy: -copy.generation)
            if not copies:
                hint = "no copy of the manifest is left: build the index again"
                raise IndexDamaged(error.message, hint=hint) from error
            whole = (copy for copy in copies if not any(_problem(self.place, file) for file in copy.files))
            chosen = next(whole, copies[0])
            detail = f"{error.message}; taken from the copy of generation {chosen.generation} of {chosen.created}"
            self.repairs.append(Repair("restored", MANIFEST, detail))
            return chosen, True

    def _copies(self) -> Iterator[Manifest]:
        for folder in segment_folders(self.place):
            try:
                yield Manifest.load(folder)
            except LakescopeError:
                continue

    @cached_property
    def remaining(self) -> _Remaining:
        """Files that stay, and those that go: a segment with a damaged file goes whole, unless it can do without."""
        broken = {file.segment for file in self.manifest.files if file.path in self.wrong and file.kind not in _ALONE}
        kept = _Remaining()
        for file in self.manifest.files:
            # What was met while looking, and which tables are gone, is told of the whole index.
            stays = file.path not in self.wrong and (file.segment not in broken or file.kind in _OF_ALL)
            (kept.files if stays else kept.lost).append(file)
        return kept

    @property
    def broken(self) -> list[str]:
        """Segments that are taken out."""
        there = {file.segment for file in self.remaining.files if file.kind not in _ALONE}
        return [name for name in self.manifest.segments if name not in there and self._had_tables(name)]

    def _had_tables(self, segment: str) -> bool:
        return any(file.segment == segment and file.kind not in _ALONE for file in self.manifest.files)

    def _tell(self) -> None:
        for file in self.remaining.lost:
            why = self.wrong.get(file.path, "is no use without the damaged files of its segment")
            self.repairs.append(Repair("set aside", file.path, why))
        if any(file.kind == "tombstones" for file in self.remaining.lost):
            detail = "of tables that are in several segments the newest counts; run `lakescope update`"
            self.repairs.append(Repair("rewritten", "tombstones", detail))
        for table, uri in sorted(self._lost_tables().items()):
            again = (
                _REMEDY if uri is None or not uri.startswith(("frame:", "spark:")) else "build the index again for it"
            )
            self.repairs.append(Repair("dropped", table, again))

    def _lost_tables(self) -> dict[str, str | None]:
        """Tables of the segments that are taken out, and where they lay, as far as a file that is whole tells."""
        lost: dict[str, str | None] = {}
        dead = _dead(self.place, [file for file in self.remaining.files if file.kind == "tombstones"])
        for file in self.manifest.files:
            if file.segment in self.broken and file.path not in self.wrong and file.kind in ("tables", "columns"):
                for row in _rows(self.place, file):
                    if row["table"] not in dead.get(file.segment, ()):
                        lost[row["table"]] = row.get("uri") or lost.get(row["table"])
        return lost


def _problem(place: Path, file: SegmentFile) -> str | None:
    """What is wrong with a file."""
    path = place / file.path
    try:
        size = path.stat().st_size
        if size != file.size:
            return f"is damaged: {size} bytes instead of {file.size}"
        return None if file_checksum(path) == file.checksum else "is damaged: its checksum does not match"
    except FileNotFoundError:
        return "is missing"
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"


def _rows(place: Path, file: SegmentFile) -> list[dict[str, Any]]:
    """Names of tables in a file of the catalog, and where they lie, if it tells."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(place / file.path, pre_buffer=False) as source:
        fields = [name for name in ("table", "uri", "segment") if name in source.schema_arrow.names]
        rows: list[dict[str, Any]] = source.read(fields, use_threads=False).to_pylist()
        return rows


def _dead(place: Path, files: list[SegmentFile]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for file in files:
        for row in _rows(place, file):
            found.setdefault(row["segment"], set()).add(row["table"])
    return found


# --- mending ----------------------------------------------------------------------------------------------------------


def _mend(found: _Diagnosis, writer: IndexWriter) -> list[str]:
    """Put things right; returns what else is worth saying."""
    place = found.place
    aside = place / DAMAGED / f"{int(time.time()):x}-{found.manifest.generation}"
    notes = []
    if found.is_lost:
        if (place / MANIFEST).exists():
            _set_aside(place, aside, MANIFEST)
            notes.append(f"what was damaged lies in {aside}")
        writer.restore(found.manifest)
    if not found.remaining.lost:
        return notes
    for file in found.remaining.lost:
        if (place / file.path).exists():
            _set_aside(place, aside, file.path)
    keep = [file for file in found.remaining.files if file.kind != "tombstones"]
    made = _tombstones(found, keep, writer.staging)
    before = found.manifest
    summary = {**before.summary, **_figures(place, keep, made, writer.staging)}
    writer.publish(made, version=__version__, sources=before.sources, summary=summary, given=before.given, keep=keep)
    for file in found.remaining.lost:
        disk.remove(place / file.path)
    return [f"what was damaged lies in {aside}"]


def _set_aside(place: Path, aside: Path, name: str) -> None:
    """A second name for a file, outside the index; where there is no such thing, a copy."""
    target = aside / name
    disk.make_folder(target.parent)
    try:
        os.link(place / name, target)
    except OSError:
        shutil.copyfile(place / name, target)


def _tombstones(found: _Diagnosis, keep: list[SegmentFile], staging: Path) -> list[SegmentFile]:
    """Which tables are gone from the segments that stay; if that was lost, all but the newest of each."""
    # Of a segment that is taken out, what is told of the whole index may stay: none of its tables do.
    segments = list(dict.fromkeys(file.segment for file in keep if file.kind not in _OF_ALL))
    whole = [file for file in found.remaining.files if file.kind == "tombstones"]
    dead = {name: tables for name, tables in _dead(found.place, whole).items() if name in segments}
    if any(file.kind == "tombstones" for file in found.remaining.lost):
        later: set[str] = set(found.manifest.given.get("left_out", ()))
        for segment in reversed(segments):
            names = {
                row["table"]
                for file in keep
                if file.segment == segment and file.kind in ("tables", "problems", "failures")
                for row in _rows(found.place, file)
            }
            dead[segment] = names & later
            later |= names
    return write_tombstones(dead, staging)


def _figures(place: Path, keep: list[SegmentFile], made: list[SegmentFile], staging: Path) -> dict[str, int]:
    """Sums over the tables that are left."""
    import pyarrow.parquet as pq

    dead = _dead(staging, made)
    sums = dict.fromkeys(("tables", "columns", "rows", "bytes"), 0)
    for file in keep:
        if file.kind == "tables":
            with pq.ParquetFile(place / file.path, pre_buffer=False) as source:
                rows = source.read(["table", "columns", "rows", "bytes"], use_threads=False).to_pylist()
            for row in rows:
                if row["table"] not in dead.get(file.segment, ()):
                    sums["tables"] += 1
                    for name in ("columns", "rows", "bytes"):
                        sums[name] += row[name]
    return sums
