"""Arrow IPC files (also called Feather 2), Arrow streams, and the old Feather 1: units are runs of record batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.ipc as ipc

from lakescope.errors import SourceError
from lakescope.sources import planning
from lakescope.sources.formats import arrow_batches
from lakescope.sources.io import files
from lakescope.sources.io.limits import check_rows
from lakescope.sources.model import Batch, Report, Unit

if TYPE_CHECKING:
    from lakescope.sources.source_table import SourceTable

_FILE, _FEATHER_1 = b"ARROW1", b"FEA1"


def plan(found: SourceTable, target_bytes: int) -> list[Unit]:
    """Units of about ``target_bytes`` that begin and end with a record batch; a stream is one unit."""
    return planning.plan_pieces(found, target_bytes, "arrow", _weigh)


def read(unit: Unit, report: Report) -> Iterator[Batch]:
    """Read record batches one after the other, out of a mapped file where it is local."""
    with files.open_random(unit.uri, unit.options.get("compression"), mapped=True) as source:
        magic = source.read(len(_FILE))
        source.seek(0)
        if not magic:
            raise SourceError(f"{unit.table} is empty: it holds no table", code="empty-file")
        if magic == _FILE:
            file = _open(source, unit.table)
            first, last = unit.options.get("pieces", (0, file.num_record_batches))
            schema, batches = file.schema, (file.get_batch(index) for index in range(first, last))
        elif magic.startswith(_FEATHER_1):
            from pyarrow.feather import read_table

            whole = read_table(source)
            schema, batches = whole.schema, iter(whole.to_batches())
        else:
            stream = ipc.open_stream(source)
            schema, batches = stream.schema, iter(stream)
        yield from arrow_batches.text_batches(
            _checked(batches, unit.table, source.size()), schema, unit.table, report, unit.size
        )


def _checked(batches: Iterator[Any], table: str, size: int) -> Iterator[Any]:
    """Arrow trusts the offsets in a file and reads by them, so damage must be found before anything looks inside."""
    rows = 0
    for batch in batches:
        rows += batch.num_rows
        check_rows(table, rows, size)
        step = arrow_batches.rows_per_batch(batch.num_columns)
        for start in range(0, batch.num_rows, step):
            piece = batch.slice(start, step)
            arrow_batches.check(piece)
            yield piece


def _weigh(uri: str) -> list[int]:
    """Record batches count as equal: asking for their sizes would read them."""
    with files.open_random(uri) as source:
        if source.read(len(_FILE)) != _FILE:
            return [1]
        source.seek(0)
        return [1] * int(_open(source, files.display(uri)).num_record_batches)


def _open(source: Any, name: str) -> Any:
    try:
        return ipc.open_file(source)
    except (pa.ArrowInvalid, OSError) as error:
        raise SourceError(
            f"{name} is not an Arrow file or cut off: {files.reason_of(error)}",
            hint="write or copy the file again",
            code="truncated",
        ) from error
