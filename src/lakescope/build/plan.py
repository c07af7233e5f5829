"""The plan of a build: tables into work units, units into bins of about equal work.

Thousands of tiny files and one huge file use the same path: small units are packed together up to a bin's worth of
work, a big table is cut into units of that size. The plan is a file in the staging area, one record batch per bin,
which workers map and read their own batch of: nothing of the lake's length travels inside a Spark plan.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakescope import sources
from lakescope.errors import SourceError
from lakescope.sources.io.locations import catalogue_uri
from lakescope.sources.io.redact import Secret, parted, whole
from lakescope.sources.model import Problem, Unit
from lakescope.sources.names import unique_names
from lakescope.sources.source_table import SourceTable
from lakescope.store import disk

#: Bytes of a unit, and of a bin of small units.
UNIT_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class PlanTuning:
    """How files are packed into bins of about equal work."""

    #: Work of opening a file, in bytes. Not measured: a guess; benchmarks/results/scan_many.md has what many small
    #: files cost in all.
    file_cost: int = 128 * 1024
    #: How much larger compressed bytes are once read. Not measured: what gzip makes of most tables.
    inflation: int = 4
    #: Bins, at least, if there is work for so many. Not measured: some for each core of a small machine.
    least_bins: int = 8
    #: Bins, at most. Not measured: a bound on what the driver of Spark keeps in mind.
    most_bins: int = 8192


PLANNING = PlanTuning()

_PLAN_FILE = "plan.arrow"
#: Options of units that are locations, or lists with some: of tables of Delta and Iceberg.
_LOCATIONS = ("table", "path", "deletes")


@dataclass(slots=True)
class ScanPlan:
    """Bins of units, the tables they make up, and what could not be planned.

    ``failed`` are files that gave no table, ``problems`` say why; ``notices`` were met while looking for files.
    """

    tables: dict[str, SourceTable]
    bins: list[list[Unit]]
    problems: list[Problem] = field(default_factory=list)
    failed: list[SourceTable] = field(default_factory=list)
    notices: list[Problem] = field(default_factory=list)

    @property
    def bytes(self) -> int:
        return sum(unit.size for units in self.bins for unit in units)


def make_plan(tables: list[SourceTable], unit_bytes: int = UNIT_BYTES) -> ScanPlan:
    """Cut tables into units and pack them.

    Heads of big files are read by a few threads, small ones are left to workers.
    """

    def units_of(found: SourceTable) -> list[Unit] | Problem:
        try:
            return sources.plan(found, unit_bytes)
        except SourceError as error:
            return Problem(found.table, "error", error.code, error.message)

    with ThreadPoolExecutor(8) as pool:
        planned = list(pool.map(units_of, tables))
    units: list[tuple[SourceTable, Unit]] = []
    plan = ScanPlan({}, [])
    for found, result in zip(tables, planned, strict=True):
        if isinstance(result, Problem):
            plan.problems.append(result)
            plan.failed.append(found)
            continue
        source = {
            "uri": catalogue_uri(found.uri),
            "format": found.format,
            "modified": found.modified,
            "version": found.version,
        }
        units += [(found, replace(unit, options={**unit.options, "source": source})) for unit in result]
    plan.bins = pack(_told_apart(units, plan), unit_bytes)
    return plan


def _told_apart(units: list[tuple[SourceTable, Unit]], plan: ScanPlan) -> list[Unit]:
    """Number tables that share their name with another: two sheets, or a file called like a sheet (``a.xlsx::b``)."""
    parts = {(found.uri, sources.part_of(unit)): (found, unit.table) for found, unit in units}
    names, _ = unique_names([wanted for _, wanted in parts.values()], mark="~")
    given = dict(zip(parts, names, strict=True))
    for (found, wanted), name in zip(parts.values(), names, strict=True):
        # A table that is a file of its own may be planned again, by its name.
        plan.tables[name] = replace(found, table=name) if wanted == found.table else found
        if name != wanted:
            detail = f"another table is called {wanted!r}, too: this one is called {name!r}"
            plan.problems.append(Problem(name, "info", "name-collision", detail))
    return [replace(unit, table=given[found.uri, sources.part_of(unit)]) for found, unit in units]


def without(plan: ScanPlan, tables: Iterable[str]) -> ScanPlan:
    """A plan that leaves some tables out."""
    names = set(tables)
    bins = [[unit for unit in units if unit.table not in names] for units in plan.bins]
    return replace(
        plan,
        tables={name: found for name, found in plan.tables.items() if name not in names},
        bins=[units for units in bins if units],
        problems=[problem for problem in plan.problems if problem.table not in names],
    )


def work(unit: Unit) -> int:
    """Estimated work of a unit, in bytes of plain CSV."""
    return unit.size * (PLANNING.inflation if unit.options.get("compression") else 1) + PLANNING.file_cost


def pack(units: list[Unit], unit_bytes: int = UNIT_BYTES) -> list[list[Unit]]:
    """Fill bins in order, so that neighbouring units of a table share a bin and are merged there; giants go first."""
    total = sum(work(unit) for unit in units)
    bins_wanted = min(PLANNING.most_bins, max(PLANNING.least_bins, -(-total // unit_bytes)))
    room = max(1, -(-total // bins_wanted))
    giants = [unit for unit in units if work(unit) > 2 * room and unit.count == 1]
    giants.sort(key=work, reverse=True)
    bins = [[unit] for unit in giants]
    alone = {id(unit) for unit in giants}
    current: list[Unit] = []
    filled = 0
    for unit in units:
        if id(unit) in alone:
            continue
        if current and filled + work(unit) > room:
            bins.append(current)
            current, filled = [], 0
        current.append(unit)
        filled += work(unit)
    return [*bins, current] if current else bins


def write_plan(bins: list[list[Unit]], staging: str | os.PathLike[str]) -> tuple[Secret, ...]:
    """Write the bins where workers find them; returns the secrets of their URIs, which no file may hold.

    There are as many as locations that were given with one: they travel with the task.
    """
    schema = pa.schema([("unit", pa.string()), ("secrets", pa.list_(pa.int32()))])
    secrets: dict[Secret, int] = {}
    with disk.scratch(Path(staging) / _PLAN_FILE) as stream, pa.ipc.new_file(stream, schema) as writer:
        for units in bins:
            bare = [_bared(unit, secrets) for unit in units]
            texts, numbers = [unit.to_json() for unit, _ in bare], [taken for _, taken in bare]
            writer.write_batch(pa.record_batch([texts, pa.array(numbers, schema.field(1).type)], schema=schema))
    return tuple(secrets)


def _bared(unit: Unit, secrets: dict[Secret, int]) -> tuple[Unit, list[int]]:
    """A unit without the secrets of its locations, and the numbers of these, in the order of the locations."""
    taken: list[int] = []

    def bare(location: str) -> str:
        text, secret = parted(location)
        taken.append(secrets.setdefault(secret, len(secrets)))
        return text

    return _relocated(unit, bare), taken


def _relocated(unit: Unit, change: Callable[[str], str]) -> Unit:
    """A unit with all its locations changed: its own, and those among its options."""
    uri = change(unit.uri)
    options = {name: _changed(unit.options[name], change) for name in _LOCATIONS if name in unit.options}
    return replace(unit, uri=uri, options={**unit.options, **options})


def _changed(value: Any, change: Callable[[str], str]) -> Any:
    return change(value) if isinstance(value, str) else [_changed(each, change) for each in value]


def read_bin(staging: str, number: int, secrets: Sequence[Secret]) -> list[Unit]:
    """The units of one bin."""
    with pa.memory_map(str(Path(staging) / _PLAN_FILE)) as source:
        batch = pa.ipc.open_file(source).get_batch(number)
        units = [Unit.from_json(text) for text in batch.column(0).to_pylist()]
        numbers = batch.column(1).to_pylist()
    return [_completed(unit, [secrets[number] for number in taken]) for unit, taken in zip(units, numbers, strict=True)]


def _completed(unit: Unit, secrets: list[Secret]) -> Unit:
    """The unit whose locations had these secrets."""
    left = iter(secrets)
    return _relocated(unit, lambda location: whole(location, next(left)))
