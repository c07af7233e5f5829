"""The versions of a table that the index saw: what an update replaces is forgotten by questions, not by the index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from lakescope.engines.history.answers import Version
from lakescope.errors import BadRequest, NotFound
from lakescope.profile.view import column_view
from lakescope.results import Results
from lakescope.store.index import Index

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class VersionState:
    """A version with all that is known of its columns, by name."""

    record: Record
    columns: dict[str, Record]


def history(index: Index, table: str) -> Results[Version]:
    """All versions of a table."""
    states = states_of(index, table)
    found = []
    before: set[str] = set()
    for number, state in enumerate(states, 1):
        names = set(state.columns)
        record = state.record
        found.append(
            Version(
                table=table,
                version=number,
                scanned=record["scanned"],
                until=record.get("until"),
                **{name: record[name] for name in ("modified", "rows", "columns", "bytes")},
                added=tuple(name for name in state.columns if name not in before) if number > 1 else (),
                removed=tuple(sorted(before - names)),
            )
        )
        before = names
    notes = [] if states[-1].record.get("until") is None else [f"{table} is not in the lake any more"]
    shown = ("version", "scanned", "until", "rows", "columns", "bytes", "added", "removed")
    return Results(Version, found, shown=shown, notes=notes)


def states_of(index: Index, table: str) -> list[VersionState]:
    """The versions of a table, the present one last, if it is there."""
    columns: dict[int, dict[str, Record]] = {}
    for row in index.past("past-columns", table).to_pylist(maps_as_pydicts="strict"):
        columns.setdefault(row["generation"], {})[row["column"]] = row
    states = [VersionState(row, columns.get(row["generation"], {})) for row in index.past("past", table).to_pylist()]
    present = index.state(table)
    if present is not None:
        rows = index.columns_of(table).to_pylist(maps_as_pydicts="strict")
        states.append(VersionState(present, {row["column"]: row for row in rows}))
    if not states:
        known = {*index.catalog("tables")["table"].to_pylist(), *past_names(index)}
        raise NotFound.among("table", table, sorted(known))
    return states


def past_names(index: Index) -> set[str]:
    """Tables of which there is a version that is no more."""
    files = index.manifest.of_kind("past")
    return {name for file in files for name in index.rows_of_file(file, ["table"])["table"].to_pylist()}


def profile_at(index: Index, table: str, version: int) -> tuple[Record, list[Record]]:
    """The record of a version and the profiles of its columns."""
    states = states_of(index, table)
    if not 1 <= version <= len(states):
        raise BadRequest(f"{table} has no version {version}", hint=f"there are versions 1 to {len(states)}")
    state = states[version - 1]
    dropped = ("until", "generation")
    record = {name: value for name, value in state.record.items() if name not in (*dropped, "content")}
    views = [column_view({k: v for k, v in row.items() if k not in dropped}) for row in state.columns.values()]
    return record, views


def version_since(states: Sequence[VersionState], since: str | int | None) -> VersionState:
    """The version to compare with: the one before the last, one by its number, or the one that answered at a time."""
    if since is None:
        return states[-2]
    number = number_of(since)
    if number is not None:
        if not 1 <= number < len(states):
            raise BadRequest(f"there is no earlier version {number}", hint=f"there are versions 1 to {len(states) - 1}")
        return states[number - 1]
    wanted = _moment(str(since))
    after = [state for state in states[:-1] if _moment(state.record["until"]) > wanted]
    return after[0] if after else states[-1]


def check_since(since: str | int | None) -> None:
    """Refuse what is neither the number of a version nor a time, whatever versions there are."""
    number = number_of(since)
    if number is None and since is not None:
        _moment(str(since))
    elif number is not None and number < 1:
        raise BadRequest(f"there is no earlier version {number}", hint="versions are counted from 1")


def number_of(since: str | int | None) -> int | None:
    """The number of a version, if it is one."""
    return int(since) if isinstance(since, int) or (since is not None and since.isdecimal()) else None


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        hint = "give a time such as 2026-03-01 or 2026-03-01T12:00, in UTC, or the number of a version"
        raise BadRequest(f"{text!r} is no time", hint=hint) from None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
