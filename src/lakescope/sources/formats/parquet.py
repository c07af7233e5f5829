"""Parquet files: units are runs of row groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakescope.errors import SourceError
from lakescope.sources import planning
from lakescope.sources.formats import arrow_batches
from lakescope.sources.io import files
from lakescope.sources.io.limits import check_cell, check_cells, check_rows, check_values
from lakescope.sources.model import Batch, Report, Unit

if TYPE_CHECKING:
    from lakescope.sources.source_table import SourceTable

#: Columns are streamed through buffers of this size, so that a huge row group does not have to fit into memory.
_BUFFER_BYTES = 1 << 20


def plan(found: SourceTable, target_bytes: int) -> list[Unit]:
    """Units of about ``target_bytes`` that begin and end with a row group."""
    return planning.plan_pieces(found, target_bytes, "parquet", weigh)


def read(unit: Unit, report: Report) -> Iterator[Batch]:
    """Read row groups in bounded batches."""
    with files.open_random(unit.uri, unit.options.get("compression")) as source:
        file = opened(source, unit.table)
        groups = range(*unit.options.get("pieces", (0, file.num_row_groups)))
        check_claims(file.metadata, groups, unit.table, source.size())
        batches = file.iter_batches(rows_at_a_time(file), row_groups=list(groups), use_threads=False)
        yield from arrow_batches.text_batches(batches, file.schema_arrow, unit.table, report, unit.size)


def weigh(uri: str) -> list[int]:
    """Bytes of the row groups of a file."""
    with files.open_random(uri) as source:
        metadata = opened(source, files.display(uri)).metadata
        return [metadata.row_group(index).total_byte_size for index in range(metadata.num_row_groups)]


def opened(source: Any, name: str) -> Any:
    """A Parquet file to read from; refuses what is none."""
    if source.size() == 0:
        raise SourceError(f"{name} is empty: it holds no table", code="empty-file")
    try:
        return pq.ParquetFile(source, buffer_size=_BUFFER_BYTES, pre_buffer=False)
    except pa.ArrowInvalid as error:
        if "magic bytes not found" in str(error) or "smaller than" in str(error):
            raise SourceError(
                f"{name} is not a Parquet file or cut off: footer missing",
                hint="write or copy the file again",
                code="truncated",
            ) from error
        raise


def check_claims(metadata: Any, groups: Iterable[int], table: str, size: int) -> None:
    """Refuse row groups of a file of ``size`` bytes that claim more than it can hold, before they are decoded.

    A cell takes no less than the average of its column in a row group, and a value in a list two characters of JSON.
    """
    check_rows(table, metadata.num_rows, size)
    check_cells(table, metadata.num_rows * metadata.num_columns, size)
    leaves = [metadata.schema.column(place) for place in range(metadata.num_columns)]
    values = 0
    for group in map(metadata.row_group, groups):
        for place, leaf in enumerate(leaves):
            column = group.column(place)
            listed = column.num_values if leaf.max_repetition_level else 0
            check_cell(table, leaf.path, max(column.total_uncompressed_size, 2 * listed) // max(1, group.num_rows))
            values += listed
    check_values(table, values, size)


def rows_at_a_time(file: Any) -> int:
    """Rows to decode at once: bounded in number, and in bytes as far as the metadata tells."""
    metadata = file.metadata
    groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
    widest = max((group.total_byte_size / group.num_rows for group in groups if group.num_rows), default=1.0)
    by_bytes = int(arrow_batches.MAX_BYTES / max(widest, 1.0))
    return max(64, min(arrow_batches.rows_per_batch(metadata.num_columns), by_bytes))
