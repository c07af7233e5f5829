"""What the planners of the formats share: options of a part, and cutting a file into runs of its pieces."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from lakescope.sources.model import Unit

if TYPE_CHECKING:
    from lakescope.sources.source_table import SourceTable

#: Answers how heavy the pieces of a file are, in their order.
Weigh = Callable[[str], list[int]]


def options_of(found: SourceTable, uri: str) -> dict[str, Any]:
    """Options of every unit of a part: columns that its path spells, and its compression if it has one."""
    options = found.options(uri)
    return {**options, "compression": found.compression} if found.compression else options


def plan_pieces(found: SourceTable, target_bytes: int, reader: str, weigh: Weigh) -> list[Unit]:
    """Units of a format whose files consist of pieces (row groups, stripes, batches); option ``pieces`` is their range.

    A small or compressed file is one unit and is not opened here: a lake of many small files is planned without a read.
    """
    units: list[Unit] = []
    for uri, size in found.parts:
        options = options_of(found, uri)
        if found.compression or size <= target_bytes:
            units.append(Unit(found.table, reader, uri, size, options=options))
            continue
        for run in runs(weigh(uri), size, target_bytes):
            units.append(
                Unit(found.table, reader, uri, run.bytes, options={**options, "pieces": [run.first, run.last]})
            )
    return units


class PieceRun(NamedTuple):
    """Neighbouring pieces of a file, from ``first`` to before ``last``, and the bytes that they stand for."""

    first: int
    last: int
    bytes: int


def runs(weights: list[int], size: int, target_bytes: int) -> list[PieceRun]:
    """Runs of neighbouring pieces, which share the file's size by weight, near the target."""
    total = sum(weights)
    if not weights or total <= 0:
        return [PieceRun(0, len(weights), size)]
    result: list[PieceRun] = []
    first = used = weight = 0
    for last, piece in enumerate(weights, start=1):
        weight += piece
        share = size * weight // total - used
        if share >= target_bytes or last == len(weights):
            result.append(PieceRun(first, last, share))
            first, used = last, used + share
    return result
