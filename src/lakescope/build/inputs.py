"""What a caller gave to index, sorted by how it is read: paths, tables of Spark's catalog, frames."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakescope.build.scan import MANY_UNITS
from lakescope.errors import BadRequest, SourceError
from lakescope.sources.databases.postgres_uri import Address, is_postgres
from lakescope.sources.frames import as_batches
from lakescope.sources.io import files
from lakescope.sources.io.files import display
from lakescope.sources.io.locations import catalogue_pattern
from lakescope.sources.io.redact import scrub
from lakescope.sources.model import Problem, Unit
from lakescope.store import disk

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Location prefix of tables in Spark's own catalog: ``spark:sales.orders`` or ``spark:sales.*``.
CATALOG_PREFIX = "spark:"

Given = str | Path | Mapping[str, Any] | Sequence[str | Path | Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class SparkFrame:
    """A Spark DataFrame that is one table."""

    table: str
    frame: DataFrame
    source: str
    schema: pa.Schema


@dataclass(slots=True)
class Inputs:
    """Everything to index."""

    locations: list[str] = field(default_factory=list)
    catalog: list[str] = field(default_factory=list)
    frames: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Given) -> Inputs:
        """Sort out a path, a mapping of names to frames, or a list of such."""
        inputs = cls()
        several = list(given) if isinstance(given, list | tuple) else [given]
        for one in several:
            if isinstance(one, str | PathLike):
                inputs._add_location(fspath(one))
            elif isinstance(one, Mapping):
                inputs._add_frames(one)
            else:
                raise BadRequest(
                    f"cannot index a {type(one).__name__} without a name",
                    hint='give frames as a mapping: lakescope.index({"name": frame}, "lake.idx")',
                )
        if not (inputs.locations or inputs.catalog or inputs.frames):
            raise BadRequest("nothing to index", hint="give at least one path, glob, URI or frame")
        return inputs

    def _add_location(self, location: str) -> None:
        if not location.strip():
            raise BadRequest("a path is empty", hint="name a directory, a file, a glob or a URI; . is this directory")
        if location.startswith(CATALOG_PREFIX):
            self.catalog.append(location.removeprefix(CATALOG_PREFIX))
        elif is_postgres(location):
            # Its password is remembered, and goes no further.
            Address.of(location)
            self.locations.append(display(location))
        else:
            self.locations.append(location)

    def _add_frames(self, frames: Mapping[str, Any]) -> None:
        for name, frame in frames.items():
            if not str(name).strip() or type(name) is not str:
                raise BadRequest(f"{name!r} is no name of a table", hint="name frames by text that is not blank")
            if isinstance(frame, str | PathLike):
                raise BadRequest(
                    f"{name!r} is the path {str(frame)!r}, but only frames are given by name",
                    hint="tables of a path are named by the path: give paths in a list, frames as a mapping in it",
                )
            if name in self.frames:
                raise BadRequest(f"two frames are called {name!r}", hint="give each its own name")
            self.frames[name] = frame

    def names(self) -> list[str]:
        """How the sources are listed in the manifest."""
        return [
            *[display(location) for location in self.locations],
            *[CATALOG_PREFIX + name for name in self.catalog],
            *[f"frame:{name}" for name in self.frames],
        ]

    def remembered(self, unit_bytes: int, *, joins: bool) -> dict[str, Any]:
        """What an update needs to know; secrets of URIs are left out, and frames, which cannot be read again."""
        local = [files.local_path(location) for location in self.locations]
        places = [
            catalogue_pattern(location if path is None else str(Path(path).expanduser().absolute()))
            for location, path in zip(self.locations, local, strict=True)
        ]
        return {"locations": places, "catalog": self.catalog, "unit_bytes": unit_bytes, "joins": joins}

    def spark_frames(self, session: SparkSession) -> tuple[list[SparkFrame], list[Problem]]:
        """Spark DataFrames and tables of the catalog, and what cannot be read of them."""
        makers: list[tuple[str, str, Callable[[], DataFrame]]] = [
            (name, f"frame:{name}", partial(_itself, frame))
            for name, frame in self.frames.items()
            if _is_spark_frame(frame)
        ]
        names = sorted({name for pattern in self.catalog for name in _catalog_tables(session, pattern)})
        makers += [(name, CATALOG_PREFIX + name, partial(session.table, _quoted(name))) for name in names]
        frames, problems = [], []
        for name, source, make in makers:
            try:
                frame = make()
                frames.append(SparkFrame(name, frame, source, arrow_schema(frame)))
            except Exception as error:  # a view of what is gone, a type that Arrow has not: its own misfortune
                problems.append(Problem(name, "error", "unreadable", f"{source} cannot be read: {first_line(error)}"))
        return frames, problems

    def write_frames(self, staging: Path) -> list[Unit]:
        """Frames in memory become Arrow files in the staging area, which workers read like any other."""
        units: list[Unit] = []
        for name, frame in self.frames.items():
            if _is_spark_frame(frame):
                continue
            path = staging / f"frame-{len(units)}.arrow"
            try:
                _write_frame(path, frame)
            except (BadRequest, SourceError) as error:
                raise BadRequest(f"frame {name!r}: {error.message}", hint=error.hint) from error
            source = {"uri": f"frame:{name}", "format": "frame", "modified": None}
            units.append(Unit(name, "arrow", str(path.absolute()), path.stat().st_size, options={"source": source}))
        return units


def _write_frame(path: Path, frame: Any) -> None:
    batches = iter(as_batches(frame))
    first = next(batches)
    # A stream, not a file: pieces of a categorical column may each have categories of their own.
    with disk.create(path) as stream, pa.ipc.new_stream(stream, first.schema) as writer:
        writer.write_batch(first)
        for batch in batches:
            writer.write_batch(batch)


def declare(frames: list[SparkFrame], staging: Path) -> list[Unit]:
    """A unit without rows for each Spark frame: Spark leaves an empty frame out of its plan, with its columns."""
    units = []
    for number, given in enumerate(frames):
        path = staging / f"columns-{number}.arrow"
        # Written anew when a frame is tried alone.
        with disk.scratch(path) as stream, pa.ipc.new_file(stream, given.schema):
            pass
        options = {"source": {"uri": given.source, "format": "spark", "modified": None}}
        units.append(Unit(given.table, "arrow", str(path.absolute()), 0, ordinal=-1, count=MANY_UNITS, options=options))
    return units


def arrow_schema(frame: DataFrame) -> pa.Schema:
    """The columns of a Spark frame with their types, as a worker will see them."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(frame.schema)


def first_line(error: Exception) -> str:
    """What an error says, without the pages that Spark adds."""
    lines = [line.strip() for line in scrub(str(error)).splitlines() if line.strip()]
    return lines[0][:500] if lines else type(error).__name__


def _itself(frame: DataFrame) -> DataFrame:
    return frame


def _quoted(name: str) -> str:
    """A name of Spark's catalog with every part between backticks, whatever characters it has."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in name.split("."))


def _is_spark_frame(thing: object) -> bool:
    return type(thing).__module__.startswith("pyspark.sql") and hasattr(thing, "mapInArrow")


def _catalog_tables(session: SparkSession, pattern: str) -> list[str]:
    """Names of the catalog's tables that a name or a pattern like ``sales.*`` means.

    Spark lists the session's temporary views with every database; they are no table of the one that is named.
    """
    if "*" not in pattern:
        if not session.catalog.tableExists(_quoted(pattern)):
            raise BadRequest(
                f"Spark's catalog has no table {pattern!r}", hint="try spark:DATABASE.* for all of a database"
            )
        return [pattern]
    database, _, table = pattern.rpartition(".")
    if database and not session.catalog.databaseExists(database):
        raise BadRequest(
            f"Spark's catalog has no database {database!r}", hint="spark:DATABASE.* names all of its tables"
        )
    listed = session.catalog.listTables(database or None)
    found = [entry for entry in listed if fnmatchcase(entry.name, table) and not (database and entry.isTemporary)]
    if not found:
        raise BadRequest(f"no table of Spark's catalog matches {pattern!r}", hint="check the name of the database")
    return [".".join([*(entry.namespace or []), entry.name]) for entry in found]
