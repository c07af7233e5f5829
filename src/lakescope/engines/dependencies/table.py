"""A table as dependency discovery sees it: every value a number, missing ones told apart from the rest.

Values are equal if their canonical forms are (:mod:`lakescope.values`): 1.0 and 1 are, "a " and "a" are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lakescope.array_types import I32
from lakescope.engines.dependencies.answers import NULLS, Nulls
from lakescope.errors import BadRequest

#: Cells of a table that is held in memory: twelve bytes each under the three semantics.
MOST_CELLS = 200_000_000


@dataclass(frozen=True)
class CodedTable:
    """Columns by name, and the code of every cell: from 0 by order of appearance, -1 where it is missing.

    ``texts`` are the canonical texts of the codes of each column, if they were asked for; ``unmet`` texts that were to
    stand for no value, and do not occur.
    """

    names: tuple[str, ...]
    codes: I32
    texts: tuple[list[str], ...] = ()
    unmet: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        return int(self.codes.shape[1])

    @property
    def columns(self) -> int:
        return int(self.codes.shape[0])

    def missing(self) -> npt.NDArray[np.int64]:
        """Missing cells of each column."""
        found: npt.NDArray[np.int64] = (self.codes < 0).sum(axis=1)
        return found

    def under(self, nulls: Nulls) -> I32:
        """The codes under a semantics of missing values: one value, each a value of its own, or without such rows."""
        if nulls == "equal":
            largest = self.codes.max(axis=1, initial=-1)
            return np.where(self.codes < 0, largest[:, None] + 1, self.codes).astype(np.int32)
        if nulls == "skip":
            whole: I32 = np.ascontiguousarray(self.codes[:, (self.codes >= 0).all(axis=0)])
            return whole
        return self.codes

    def chosen(self, columns: Sequence[str]) -> CodedTable:
        """Some of the columns."""
        places = [self.names.index(name) for name in columns]
        return CodedTable(tuple(columns), np.ascontiguousarray(self.codes[places]))


def check_nulls(nulls: str) -> None:
    """Refuse a semantics that is not known."""
    if nulls not in NULLS:
        raise BadRequest(f"no semantics {nulls!r} of missing values", hint="use equal, distinct or skip")


class TooLarge(BadRequest):
    """A table of more cells than are held in memory."""


def read(
    query: Any, missing: Sequence[str] | str = (), *, texts: bool = False, most_cells: int = MOST_CELLS
) -> CodedTable:
    """A table by its path or URI, or a frame; ``missing`` are texts that stand for no value in this one."""
    from lakescope.tables.reading import batches_of
    from lakescope.values.cells import understand

    markers = marked(missing)
    met: set[int] = set()
    told: dict[str, list[str]] = {}
    numbers: dict[str, dict[int, int]] = {}
    parts: dict[str, list[I32]] = {}
    rows = 0
    for batch in batches_of(query):
        for column in batch.columns:
            cells = understand(column, batch.fallback)
            codes_of = numbers.setdefault(column.name, {})
            hashes = cells.hashes.tolist()
            met.update(markers.keys() & hashes)
            codes = np.array(
                [-1 if each in markers else codes_of.setdefault(each, len(codes_of)) for each in hashes], np.int32
            )
            if texts:
                _remember(told.setdefault(column.name, []), cells, codes)
            held = parts.setdefault(column.name, [np.full(rows, -1, np.int32)] if rows else [])
            held.append(np.where(cells.places >= 0, np.append(codes, -1)[cells.places], -1).astype(np.int32))
        rows += batch.rows
        if rows * len(parts) > most_cells:
            raise TooLarge(
                f"the table has more than {most_cells:,} cells, which are not held in memory",
                hint="give its path, or a Spark DataFrame with spark=",
            )
        for held in parts.values():
            lacking = rows - sum(part.size for part in held)
            if lacking:
                held.append(np.full(lacking, -1, np.int32))
    if not parts:
        raise BadRequest("the table has no columns", hint="give a table with a header and rows")
    codes = np.array([np.concatenate(held) for held in parts.values()], np.int32)
    known = tuple(told[name] for name in parts) if texts else ()
    return CodedTable(tuple(parts), codes, known, tuple(text for each, text in markers.items() if each not in met))


def marked(missing: Sequence[str] | str) -> dict[int, str]:
    """Texts that stand for no value by their hashes: 999 and 999.0 are the same, as they are in a table."""
    import pyarrow as pa

    from lakescope.values.hashed import hash_each

    texts = [missing] if isinstance(missing, str) else list(missing)
    if not texts:
        return {}
    hashes, valid = hash_each(pa.array(texts, pa.string()))
    return {each: text for each, text, there in zip(hashes.tolist(), texts, valid.tolist(), strict=True) if there}


def _remember(told: list[str], cells: Any, codes: I32) -> None:
    """Add the texts of codes that are new; codes are given in order."""
    for place, code in enumerate(codes.tolist()):
        if code == len(told):
            told.append(cells.canonical_at(place).decode("utf-8", "replace"))
