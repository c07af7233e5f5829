"""A visitor's table as a file to keep: Parquet as it is, CSV with cells that no spreadsheet takes for formulas."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from lakescope.show.formulas import FORMULA, NUMBER

_ROWS = 16_384


def guarded(texts: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Texts with an apostrophe before what would be a formula."""
    risky = pc.and_(pc.match_substring_regex(texts, FORMULA), pc.invert(pc.match_substring_regex(texts, NUMBER)))
    return pc.if_else(risky, pc.binary_join_element_wise("'", texts, ""), texts)


def _guarded_column(column: pa.Array) -> pa.Array | pa.ChunkedArray:
    """A column whose texts, however Arrow keeps them, are guarded."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not any(is_text(kind) for is_text in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)):
        return column
    return guarded(column.cast(pa.string()))


def plain_name(name: str) -> str:
    """What a download of a file is called: no more than letters, digits and signs that mean nothing anywhere."""
    stem = name.rpartition(".")[0] or name
    return re.sub(r"[^A-Za-z0-9_-]+", "-", stem).strip("-")[:80] or "joined"


def csv_pieces(path: Path) -> Iterator[bytes]:
    """A Parquet file as CSV, a piece at a time."""
    with pq.ParquetFile(path, pre_buffer=False) as source:
        names = guarded(pa.array(source.schema_arrow.names, pa.string())).to_pylist()
        yield _csv(pa.table({str(place): pa.array([name]) for place, name in enumerate(names)}))
        for batch in source.iter_batches(_ROWS, use_threads=False):
            columns = [_guarded_column(each) for each in batch.columns]
            yield _csv(pa.Table.from_arrays(columns, names=[str(place) for place in range(len(columns))]))


def _csv(table: pa.Table) -> bytes:
    out = io.BytesIO()
    pyarrow.csv.write_csv(table, out, pyarrow.csv.WriteOptions(include_header=False))
    return out.getvalue()
