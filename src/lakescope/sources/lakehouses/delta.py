"""Delta tables: the data files of the current version, with what its log says of them.

The package deltalake reads the log on the driver and the deletion vectors in workers; data files are read like other
Parquet files. What a version needs and this reader does not know makes a problem, never wrong rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from lakescope.array_types import I64
from lakescope.errors import SourceError
from lakescope.sources.io import files, limits
from lakescope.sources.io.limits import Given
from lakescope.sources.lakehouses import table_formats, versioned
from lakescope.sources.lakehouses.versioned import Field, Keys
from lakescope.sources.model import Batch, Report, Unit
from lakescope.values.text import MISSING
from lakescope.values.typed import cells

if TYPE_CHECKING:
    from lakescope.sources.source_table import SourceTable

INSTALL = "pip install 'lakescope[tables]'"
#: What a reader must know of a table, and this one does.
_KNOWN = frozenset(
    "columnMapping deletionVectors timestampNtz typeWidening typeWidening-preview v2Checkpoint vacuumProtocolCheck "
    "variantType variantType-preview".split()
)
_MODE, _NUMBER = "delta.columnMapping.mode", "delta.columnMapping.id"
_PHYSICAL = "delta.columnMapping.physicalName"


def plan(found: SourceTable, target_bytes: int) -> list[Unit]:
    """Runs of row groups of the data files of one version."""
    table = _opened(found.uri, found.version)
    protocol = table.protocol()
    needed = set(protocol.reader_features or ())
    if needed - _KNOWN:
        listed = ", ".join(sorted(needed - _KNOWN))
        raise SourceError(
            f"{found.table} needs features of Delta that are not known here: {listed}", code="table-format"
        )
    partitions = list(table.metadata().partition_columns)
    columns = json.loads(table.schema().to_json())["fields"]
    if any(_holds_variants(column["type"]) for column in columns):
        raise SourceError(f"{found.table} holds columns of type variant: not read", code="table-format")
    numbered = table.metadata().configuration.get(_MODE) == "id"
    fields = [_field(column, found.table, numbered) for column in columns if column["name"] not in partitions]
    common: dict[str, Any] = {"fields": fields, "table": found.uri, "version": found.version}
    if numbered:
        common["numbered"] = True
    if "deletionVectors" in needed:
        common["vectors"] = True
    physical = {column["name"]: column["metadata"].get(_PHYSICAL, column["name"]) for column in columns}
    adds = pa.table(table.get_add_actions(flatten=True))
    constants = {name: _texts(adds, name, physical[name]) for name in partitions}
    units: list[Unit] = []
    for row, (uri, size) in enumerate(zip(_places(adds, found.uri), adds["size_bytes"].to_pylist(), strict=True)):
        if not files.is_below(uri, found.uri):
            raise SourceError(
                f"{found.table} names data files outside of its folder (a shallow clone): not read",
                hint="index the table it was cloned from, or read it through Spark",
                code="table-format",
            )
        options = {**common, "constants": {files.readable(name): texts[row] for name, texts in constants.items()}}
        units += versioned.units_of(found.table, "delta", uri, size, target_bytes, options)
    if not units:
        nothing = [*fields, *({"name": name, "key": name} for name in partitions)]
        units.append(Unit(found.table, "delta", found.uri, 1, options={"fields": nothing, "empty": True}))
    return units


def read(unit: Unit, report: Report) -> Iterator[Batch]:
    """Read a data file, without the rows that are deleted since."""
    deleted = _deleted(unit) if unit.options.get("vectors") else np.empty(0, np.int64)
    keys_of = partial(_numbers, unit.table) if unit.options.get("numbered") else versioned.by_name
    yield from versioned.read(unit, report, keys_of, deleted)


def _numbers(table: str, fields: Iterable[Any]) -> Keys:
    """Columns of a file by number, in a table that says so."""
    keys = versioned.by_number(fields)
    if all(number is None for number, _ in keys):
        raise SourceError(
            f"{table} holds data files whose columns have no numbers: not read",
            hint="read it through Spark: pass the DataFrame, or spark: and its name",
            code="table-format",
        )
    return keys


def _places(adds: Any, root: str) -> list[str]:
    """Where the data files lie that a log names; it writes them percent-encoded."""
    return [
        files.same_store(path, root) if "://" in path else files.child(root, unquote(path))
        for path in adds["path"].to_pylist()
    ]


def _holds_variants(kind: Any) -> bool:
    """Whether a type is a variant, or has one inside."""
    if not isinstance(kind, dict):
        return bool(kind == "variant")
    parts = [kind.get(part) for part in ("elementType", "keyType", "valueType")]
    return any(map(_holds_variants, [*parts, *(field["type"] for field in kind.get("fields", ()))]))


def _field(column: dict[str, Any], table: str, numbered: bool) -> Field:
    """A column by the name that files know it by, or by its number."""
    physical = column["metadata"].get(_PHYSICAL)
    if physical is not None and isinstance(column["type"], dict):
        raise SourceError(
            f"{table} holds nested columns under other names (column mapping): not read",
            hint="read it through Spark: pass the DataFrame, or spark: and its name",
            code="table-format",
        )
    key = column["metadata"][_NUMBER] if numbered else physical or column["name"]
    made: Field = {"name": files.readable(column["name"]), "key": key}
    if isinstance(column["type"], dict) and column["type"].get("type") == "struct":
        made["fields"] = [_field(each, table, numbered) for each in column["type"]["fields"]]
    return made


def _texts(adds: Any, name: str, physical: str) -> list[str | None]:
    """What the log says that a partition column is in each file."""
    known = f"partition.{name}" if f"partition.{name}" in adds.column_names else f"partition.{physical}"
    array = adds[known].combine_chunks()
    found = cells(array.chunk(0) if isinstance(array, pa.ChunkedArray) else array)
    raw = found.data.tobytes()
    bounds = zip(found.starts.tolist(), found.ends.tolist(), strict=True)
    return [None if end == MISSING else raw[start:end].decode("utf-8", "replace") for start, end in bounds]


def _deleted(unit: Unit) -> I64:
    """Numbers of the rows of a data file that are deleted, in order."""
    vectors = _vectors(unit.options["table"], unit.options["version"])
    keep = vectors.get(_plain(unit.uri))
    return np.empty(0, np.int64) if keep is None else np.flatnonzero(~keep)


@lru_cache(maxsize=1)
def _vectors(uri: str, version: str) -> dict[str, Any]:
    """Which rows are kept of each data file that lacks some, as a worker knows it of the table it reads."""
    table = _opened(uri, version)
    table_formats.check_vectors(uri)
    found = {}
    for batch in _limited(uri, lambda: list(pa.RecordBatchReader.from_stream(table.deletion_vectors()))):
        for path, vector in zip(batch.column(0).to_pylist(), batch.column(1), strict=True):
            found[_plain(path)] = np.asarray(vector.values, dtype=np.bool_)
    known = {_plain(place) for place in _places(pa.table(table.get_add_actions(flatten=True)), uri)} if found else set()
    if found.keys() - known:
        # A vector that meets no file would bring deleted rows back.
        raise SourceError(
            f"{files.display(uri)} has deletion vectors of files that it does not name", code="table-format"
        )
    return found


def _limited(uri: str, work: Callable[[], Given]) -> Given:
    """What the package gives that reads files by itself; a log may send it to any file of this machine, or a pipe."""
    try:
        return limits.within(limits.LIBRARY_SECONDS, work)
    except TimeoutError as error:
        raise SourceError(
            f"{files.display(uri)} was given up: it takes more than {limits.LIBRARY_SECONDS:g} seconds to read its log",
            hint="look for files of the table that are none, such as pipes",
            code="table-format",
        ) from error


def _plain(location: str) -> str:
    """One way to write the place of a file."""
    return str(Path(path).resolve()) if (path := files.local_path(location)) is not None else files.path_of(location)


def _opened(uri: str, version: str) -> Any:
    """The table in a folder, as of a version that was found."""
    try:
        from deltalake import DeltaTable
    except ImportError as error:
        raise SourceError("reading Delta tables needs the package deltalake", hint=INSTALL) from error
    path, number = files.local_path(uri), table_formats.commit_of(version)
    if path is not None:
        table_formats.check_files(uri, "delta")
        return _limited(uri, lambda: DeltaTable(path, version=number))
    store = files.store_options(uri)
    options = {f"aws_{'endpoint_url' if name == 'endpoint' else name}": value for name, value in store.items()}
    if store.get("endpoint", "").startswith("http:"):
        options["aws_allow_http"] = "true"
    return DeltaTable(files.display(uri), version=number, storage_options=options)
