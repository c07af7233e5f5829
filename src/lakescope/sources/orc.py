"""ORC files: units are runs of stripes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow.orc import ORCFile

from lakescope.errors import SourceError
from lakescope.sources import arrow_batches, files, planning
from lakescope.sources.model import Batch, Report, Unit

if TYPE_CHECKING:
    from lakescope.sources.discover import Found


def plan(found: Found, target_bytes: int) -> list[Unit]:
    """Units of about ``target_bytes`` that begin and end with a stripe."""
    return planning.plan_pieces(found, target_bytes, "orc", _weigh)


def read(unit: Unit, report: Report) -> Iterator[Batch]:
    """Read stripes one after the other."""
    with files.open_random(unit.uri, unit.options.get("compression")) as source:
        file = _open(source, unit.table)
        first, last = unit.options.get("pieces", (0, file.nstripes))
        stripes = (file.read_stripe(index) for index in range(first, last))
        yield from arrow_batches.text_batches(stripes, file.schema, unit.table, report)


def _weigh(uri: str) -> list[int]:
    """Stripes count as equal: pyarrow does not tell their sizes."""
    with files.open_random(uri) as source:
        return [1] * int(_open(source, files.display(uri)).nstripes)


def _open(source: Any, name: str) -> Any:
    if source.size() == 0:
        raise SourceError(f"{name} is empty: it holds no table", code="empty-file")
    try:
        return ORCFile(source)
    except (pa.ArrowInvalid, OSError) as error:
        raise SourceError(
            f"{name} is not an ORC file or cut off: {error}", hint="write or copy the file again", code="truncated"
        ) from error
