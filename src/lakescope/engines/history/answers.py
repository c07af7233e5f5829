"""What is told of earlier versions of tables: the records, light to import."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a table, the oldest that is known first.

    It was ``scanned`` at a time and answered until another (None: it still does). ``added`` and ``removed`` are columns
    compared with the version before.
    """

    table: str
    version: int
    scanned: str
    until: str | None
    modified: str | None
    rows: int
    columns: int
    bytes: int
    added: tuple[str, ...]
    removed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Drift:
    """A column that changed between two versions of its table.

    ``distance`` is between 0 (distributed alike) and 1, ``measure`` says which one; the true one lies between ``low``
    and ``high``. ``chance`` is what two samples of one population of these sizes stay below in 999 of 1000 cases.
    """

    table: str
    column: str
    changes: tuple[str, ...]
    before: str
    after: str
    type_before: str | None
    type_after: str | None
    nulls_before: float | None
    nulls_after: float | None
    distinct_before: int | None
    distinct_after: int | None
    measure: str | None
    distance: float | None
    low: float | None
    high: float | None
    exact: bool | None
    chance: float | None
