"""Reading a data file of a Delta or Iceberg table: its columns are those of the table now, without deleted rows.

What a column was called when a file was written does not matter: Iceberg knows columns by number, Delta may know them
by another name. A column that came later is missing in older files, one that is gone is passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from lakescope.array_types import I64
from lakescope.errors import SourceError
from lakescope.sources import planning
from lakescope.sources.formats import arrow_batches, parquet
from lakescope.sources.io import files
from lakescope.sources.model import Batch, Report, Unit

#: A column of a table: ``name``, the ``key`` that finds it in a file, of a struct its ``fields``, ``opaque`` if what is
#: inside a list or map must be written in the file as it is called now.
Field = dict[str, Any]
#: Keys of the fields of a file, in their order, each with those of the fields inside it; None is a field of no table.
Keys = list[tuple[Any, "Keys"]]
#: Finds the keys of a file.
KeysOf = Callable[[Iterable[Any]], Keys]
_FIELD_ID = b"PARQUET:field_id"


def by_name(fields: Iterable[Any]) -> Keys:
    """Files name their columns."""
    return [(field.name, by_name(children(field.type))) for field in fields]


def by_number(fields: Iterable[Any]) -> Keys:
    """Files number their columns."""
    return [(_number(field), by_number(children(field.type))) for field in fields]


def _number(field: Any) -> int | None:
    number = (field.metadata or {}).get(_FIELD_ID)
    return None if number is None else int(number)


def children(kind: Any) -> list[Any]:
    """The fields of a struct; none of other types."""
    return list(kind) if pa.types.is_struct(kind) else []


def units_of(table: str, reader: str, uri: str, size: int, target_bytes: int, options: dict[str, Any]) -> list[Unit]:
    """Units of one data file: runs of its row groups."""
    if size <= target_bytes:
        return [Unit(table, reader, uri, size, options=options)]
    return [
        Unit(table, reader, uri, run.bytes, options={**options, "pieces": [run.first, run.last]})
        for run in planning.runs(parquet.weigh(uri), size, target_bytes)
    ]


def read(unit: Unit, report: Report, keys_of: KeysOf, deleted: I64) -> Iterator[Batch]:
    """Read row groups of a data file; ``deleted`` are numbers of rows in the file, in order.

    Option ``defaults`` has keys and texts of columns that a file may leave out because all its rows have the same value
    there.
    """
    fields: list[Field] = unit.options["fields"]
    if unit.options.get("empty"):
        nothing = pa.schema([(field["name"], _unknown(field)) for field in fields])
        yield from arrow_batches.text_batches([], nothing, unit.table, report)
        return
    with files.open_random(unit.uri) as source:
        file = parquet.opened(source, unit.table)
        groups = range(*unit.options.get("pieces", (0, file.num_row_groups)))
        parquet.check_claims(file.metadata, groups, unit.table, source.size())
        before = sum(file.metadata.row_group(group).num_rows for group in range(groups.start))
        pieces = file.iter_batches(parquet.rows_at_a_time(file), row_groups=list(groups), use_threads=False)
        whole = arrow_batches.empty_batch(file.schema_arrow)
        defaults = dict(unit.options.get("defaults", ()))
        projection = _Projection(unit.table, fields, keys_of(file.schema_arrow), defaults)
        kept = map(projection.of, _without(pieces, deleted, before))
        # The size of a unit is what metadata says of the file.
        size = min(unit.size, source.size())
        yield from arrow_batches.text_batches(kept, projection.of(whole).schema, unit.table, report, size)


def _without(batches: Iterator[Any], deleted: I64, position: int) -> Iterator[Any]:
    """Batches of neighbouring rows, the first of which has a number, without those that are deleted."""
    for batch in batches:
        rows = batch.num_rows
        start, end = np.searchsorted(deleted, [position, position + rows])
        if end > start:
            left = np.delete(np.arange(rows), deleted[start:end] - position)
            batch = batch.take(pa.array(left))
        position += rows
        yield batch


@dataclass(frozen=True, slots=True)
class _Projection:
    """How batches of a file become batches of its table; ``defaults`` are texts of columns that a file may leave out.

    Columns are found by their keys, in the order of the table and under its names.
    """

    table: str
    fields: list[Field]
    keys: Keys
    defaults: dict[Any, str | None]

    def of(self, batch: Any) -> Any:
        """A batch with the columns of the table."""
        arrays = self._chosen(batch.columns, batch.num_rows, self.fields, self.keys)
        return pa.RecordBatch.from_arrays(arrays, names=[field["name"] for field in self.fields])

    def _chosen(self, arrays: list[Any], rows: int, fields: list[Field], keys: Keys) -> list[Any]:
        """The fields of the table, or of a struct in it, among those that a file has."""
        places = {key: place for place, (key, _) in enumerate(keys) if key is not None}
        made = []
        for field in fields:
            place = places.get(field["key"])
            made.append(
                self._absent(field, rows) if place is None else self._shaped(arrays[place], field, keys[place][1])
            )
        return made

    def _absent(self, field: Field, rows: int) -> Any:
        """A column that a file does not have: the same value in all rows, or none."""
        inside = [self._absent(each, rows) for each in field.get("fields", ())]
        if inside and any(array.null_count < rows for array in inside):
            return pa.StructArray.from_arrays(inside, names=[each["name"] for each in field["fields"]])
        text = self.defaults.get(field["key"])
        if text is None:
            return pa.nulls(rows, _unknown(field))
        return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([text]))

    def _shaped(self, array: Any, field: Field, keys: Keys) -> Any:
        """A column as the table has it now: of a struct the fields that it has now."""
        if field.get("fields") and pa.types.is_struct(array.type):
            made = self._chosen(array.flatten(), len(array), field["fields"], keys)
            names = [each["name"] for each in field["fields"]]
            return pa.StructArray.from_arrays(made, names=names, mask=array.is_null())
        if "opaque" in field and field["opaque"] != shape(array.type):
            raise SourceError(
                f"{self.table} holds a column {field['name']!r} of nested values whose fields changed since: not read",
                hint="rewrite the older files of the table (compaction does)",
                code="table-format",
            )
        return array


def _unknown(field: Field) -> Any:
    """The type of a column of which a file knows nothing: a struct shows its fields all the same."""
    inside = field.get("fields")
    return pa.struct([(each["name"], _unknown(each)) for each in inside]) if inside else pa.null()


def shape(kind: Any) -> str:
    """Names of all fields inside a type, which is what its values show when they are written as JSON."""
    if pa.types.is_struct(kind):
        return "{" + ",".join(f"{field.name}:{shape(field.type)}" for field in kind) + "}"
    if pa.types.is_map(kind):
        return f"<{shape(kind.item_type)}>"
    return f"[{shape(kind.value_type)}]" if pa.types.is_nested(kind) else ""
