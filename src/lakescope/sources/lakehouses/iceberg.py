"""Iceberg tables: the data files of the current snapshot, with deletes, whatever columns were called before.

The package pyiceberg reads metadata and manifests on the driver; data files are read like other Parquet files, their
columns found by number. Rows deleted by position are left out; what this reader cannot honour (deletes by equality,
data files that are not Parquet) makes a problem, never wrong rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from lakescope.array_types import I64
from lakescope.errors import SourceError
from lakescope.sources.formats import parquet
from lakescope.sources.io import files
from lakescope.sources.lakehouses import table_formats, versioned
from lakescope.sources.lakehouses.delta import INSTALL
from lakescope.sources.lakehouses.table_formats import place_of
from lakescope.sources.lakehouses.versioned import Field, Keys
from lakescope.sources.model import Batch, Report, Unit
from lakescope.values.text import MISSING
from lakescope.values.typed import cells

if TYPE_CHECKING:
    from lakescope.sources.source_table import SourceTable

#: What fields are called in files without numbers: names, number, and the same of the fields inside.
Names = list[tuple[list[str], int | None, "Names"]]


def plan(found: SourceTable, target_bytes: int) -> list[Unit]:
    """Runs of row groups of the data files of one snapshot."""
    table = opened(found.uri)
    fields = [_field(field, found.table) for field in table.schema().fields]
    common: dict[str, Any] = {"fields": fields}
    if (mapping := table.name_mapping()) is not None:
        common["names"] = [_names(each) for each in mapping]
    units: list[Unit] = []
    for task in _tasks(table, found):
        file = task.file
        if file.file_format.value.lower() != "parquet":
            raise _refusal(found.table, f"holds data files of the format {file.file_format.value}")
        options = {**common, "defaults": _defaults(table, file)}
        if task.delete_files:
            deletes = [
                (each.file_format.value.lower(), place_of(each.file_path, found.uri)) for each in task.delete_files
            ]
            options["deletes"] = sorted(deletes)
            options["path"] = file.file_path
        place, size = place_of(file.file_path, found.uri), file.file_size_in_bytes
        units += versioned.units_of(found.table, "iceberg", place, size, target_bytes, options)
    if not units:
        units.append(Unit(found.table, "iceberg", found.uri, 1, options={**common, "empty": True}))
    # Manifests are read side by side: the order of their files is nobody's.
    return sorted(units, key=lambda unit: (unit.uri, unit.options.get("pieces", [])))


def read(unit: Unit, report: Report) -> Iterator[Batch]:
    """Read a data file, without the rows that are deleted since."""
    yield from versioned.read(unit, report, partial(_keys, unit), _deleted(unit))


def opened(uri: str) -> Any:
    """The table in a folder, in its current state.

    Its properties have no say in how it is read: they could name another endpoint, which gets signed requests, or any
    class of Python as the one that opens files.
    """
    try:
        from pyiceberg.catalog.noop import NoopCatalog
        from pyiceberg.table import StaticTable
        from pyiceberg.table.metadata import TableMetadataUtil

        from lakescope.sources.lakehouses.iceberg_files import TableFiles
    except ImportError as error:
        raise SourceError("reading Iceberg tables needs the package pyiceberg", hint=INSTALL) from error
    place = table_formats.state_of(uri, "iceberg").metadata
    return StaticTable(
        identifier=("static-table", place),
        metadata=TableMetadataUtil.parse_raw(table_formats.text_of(place)),
        metadata_location=place,
        io=TableFiles(uri),
        catalog=NoopCatalog("static-table"),
    )


def _tasks(table: Any, found: SourceTable) -> list[Any]:
    """Data files of the current snapshot, each with the files that delete rows of it."""
    snapshot = table.current_snapshot()
    if snapshot is None:
        return []
    _check_manifests([snapshot.manifest_list], table, found)
    try:
        _check_manifests([manifest.manifest_path for manifest in snapshot.manifests(table.io)], table, found)
        tasks = list(table.scan().plan_files())
    except (ValueError, NotImplementedError) as error:
        if "quality delete" in str(error):
            raise _refusal(found.table, "has rows deleted by equality") from error
        raise
    for task in tasks:
        _check_inside([task.file.file_path, *(each.file_path for each in task.delete_files)], table, found)
    return tasks


def _check_manifests(places: list[str], table: Any, found: SourceTable) -> None:
    """Refuse manifests outside the folder of the table, and those that are no regular files.

    The library opens them by itself: it would wait for a pipe.
    """
    _check_inside(places, table, found)
    for place in places:
        try:
            files.check_regular(place_of(place, found.uri))
        except FileNotFoundError:
            raise
        except OSError as error:
            raise _refusal(found.table, f"names a manifest that is {error}") from error


def _check_inside(places: list[str], table: Any, found: SourceTable) -> None:
    """Refuse to follow metadata out of the table's folder, as links out of a lake are not followed.

    Iceberg writes down where its files lie, from the root on: of a table that was moved, all are elsewhere.
    """
    for place in places:
        if not files.is_below(place_of(place, found.uri), found.uri):
            raise SourceError(
                f"{found.table} names files outside of its folder: it says that it lies at "
                f"{files.display(table.location())}",
                hint="index it there, or register it where it lies now",
                code="table-format",
            )


def _refusal(table: str, why: str) -> SourceError:
    return SourceError(
        f"{table} {why}: not read",
        hint="read it through Spark: pass the DataFrame, or spark: and its name",
        code="table-format",
    )


def _field(field: Any, table: str) -> Field:
    """A column by its number."""
    from pyiceberg.io.pyarrow import schema_to_pyarrow
    from pyiceberg.types import StructType

    made: Field = {"name": files.readable(field.name), "key": field.field_id}
    if isinstance(field.field_type, StructType):
        made["fields"] = [_field(each, table) for each in field.field_type.fields]
    elif not field.field_type.is_primitive:
        made["opaque"] = versioned.shape(schema_to_pyarrow(field.field_type))
    if getattr(field, "initial_default", None) is not None:
        raise _refusal(table, f"has a default for older rows in column {field.name!r}")
    return made


def _defaults(table: Any, file: Any) -> list[tuple[int, str | None]]:
    """Values of partition columns by number, which files that came from elsewhere leave out."""
    from pyiceberg.io.pyarrow import schema_to_pyarrow
    from pyiceberg.transforms import IdentityTransform

    found: list[tuple[int, str | None]] = []
    known = table.schema().field_ids
    for place, part in enumerate(table.specs()[file.spec_id].fields):
        # A column may be gone that older files are partitioned by.
        if isinstance(part.transform, IdentityTransform) and part.source_id in known:
            field = table.schema().find_field(part.source_id)
            cell = cells(pa.array([file.partition[place]], schema_to_pyarrow(field.field_type)))
            missing = int(cell.ends[0]) == MISSING
            found.append((part.source_id, None if missing else cell.data.tobytes().decode("utf-8", "replace")))
    return found


def _names(mapped: Any) -> tuple[list[str], int | None, Names]:
    """What a mapping of names says of one field."""
    return list(mapped.names), mapped.field_id, [_names(each) for each in mapped.fields or ()]


def _keys(unit: Unit, schema: Iterable[Any]) -> Keys:
    """How columns are found in a file: by number; in files without numbers by name, as far as the table maps them."""
    fields = list(schema)
    numbers = versioned.by_number(fields)
    if _any_number(numbers):
        return numbers
    if "names" not in unit.options:
        raise _refusal(unit.table, "holds data files whose columns have no numbers")
    return _mapped(fields, unit.options["names"], unit.table)


def _any_number(keys: Keys) -> bool:
    return any(number is not None or _any_number(inside) for number, inside in keys)


def _mapped(fields: list[Any], names: Names, table: str) -> Keys:
    """Numbers of fields by their names, level by level: a name means what the fields above it make of it."""
    known = {name: (number, inside) for called, number, inside in names for name in called}
    chosen = [known.get(field.name, (None, [])) for field in fields]
    numbers = [number for number, _ in chosen if number is not None]
    if len(set(numbers)) < len(numbers):
        raise _refusal(table, "takes two columns of a file for the same one")
    return [
        (number, _mapped(versioned.children(field.type), inside, table))
        for field, (number, inside) in zip(fields, chosen, strict=True)
    ]


def _deleted(unit: Unit) -> I64:
    """Numbers of the rows of a data file that are deleted, in order."""
    rows = [_positions(form, place, unit.options["path"]) for form, place in unit.options.get("deletes", ())]
    return np.unique(np.concatenate([np.empty(0, np.int64), *rows]))


def _positions(form: str, place: str, path: str) -> I64:
    """What one file says is deleted of another: a list of paths and rows, or a bitmap in a Puffin file."""
    if form == "puffin":
        from pyiceberg.table.deletion_vector import deletion_vectors_from_puffin_file
        from pyiceberg.table.puffin import PuffinFile

        with files.open_stream(place) as stream:
            vectors = deletion_vectors_from_puffin_file(PuffinFile(stream.read()))
        found = [np.asarray(each.to_vector(), np.int64) for each in vectors if each.referenced_data_file == path]
        return np.concatenate([np.empty(0, np.int64), *found])
    if form != "parquet":
        raise SourceError(f"rows are deleted by a file of the format {form}: not read", code="table-format")
    found = []
    with files.open_random(place) as source:
        file = parquet.opened(source, files.display(place))
        parquet.check_claims(file.metadata, range(file.num_row_groups), files.display(place), source.size())
        for batch in file.iter_batches(columns=["file_path", "pos"], use_threads=False):
            ours = np.asarray([each == path for each in batch.column("file_path").to_pylist()], np.bool_)
            found.append(np.asarray(batch.column("pos"), np.int64)[ours])
    return np.concatenate([np.empty(0, np.int64), *found])
