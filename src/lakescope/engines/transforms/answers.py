"""What is told of joins of keys that are written differently: the records and the choices, light to import."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

#: How thresholds of distances are found: by the share of pairs that is right, or so that no value has two keys.
FuzzyMethod = Literal["expected", "constrained"]
#: The side whose column is a key.
Reference = Literal["left", "right"]


@dataclass(frozen=True, slots=True)
class TransformJoin:
    """A table of the lake that joins with the query after a transformation.

    ``columns`` are rewritten to meet ``keys``: those of the query if the direction is ``query->table``. ``program`` is
    the first of ``programs`` in plain words. ``coverage`` is the share of the query's rows that join, and
    ``table_coverage`` that of the table's, both counted on all rows. The table was found by ``shared`` rare q-grams, of
    which ``expected`` are due to chance. ``location`` is what to give to ``lakescope.autojoin`` to do the join.
    """

    table: str
    direction: str
    columns: tuple[str, ...]
    keys: tuple[str, ...]
    program: str
    programs: int
    coverage: float
    table_coverage: float
    pairs: int
    shared: int
    expected: float
    location: str
