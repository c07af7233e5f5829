"""Delta and Iceberg tables: one table each, in its current state, against what their own libraries read."""

from __future__ import annotations

import base64
import datetime
import json
import os
import shutil
import stat
import struct
import sys
import zlib
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakescope
from lakescope import sources
from lakescope.build.update import update
from lakescope.errors import SourceError
from lakescope.sources.discover import discover
from lakescope.sources.frames import as_batches
from lakescope.sources.model import Unit
from lakescope.sources.source_table import SourceTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

deltalake = pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")


def one(place: Path) -> SourceTable:
    (found,), problems = discover([str(place)])
    assert problems == []
    return found


def rows(units: list[Unit]) -> list[tuple[tuple[str, str | None], ...]]:
    """Rows as text, in an order of their own."""
    made = []
    for unit in units:
        for batch in sources.read(Unit.from_json(unit.to_json()), lambda problem: None):
            made += _rows(batch)
    return sorted(made, key=str)


def _rows(batch: Any) -> list[tuple[tuple[str, str | None], ...]]:
    columns = {
        column.name: [
            None if end < 0 else column.data[start:end].tobytes().decode()
            for start, end in zip(column.starts.tolist(), column.ends.tolist(), strict=True)
        ]
        for column in batch.columns
    }
    return [tuple(sorted((name, cells[row]) for name, cells in columns.items())) for row in range(batch.rows)]


def expected(table: Any) -> list[tuple[tuple[str, str | None], ...]]:
    """The same of a table in memory, read by somebody else."""
    from lakescope.sources.formats.arrow_batches import text_batches

    batches = list(as_batches(table))
    made = text_batches(batches, batches[0].schema, "", lambda problem: None)
    return sorted((row for batch in made for row in _rows(batch)), key=str)


# --- Delta ------------------------------------------------------------------------------------------------------------


def commit(place: Path, version: int, *actions: dict[str, Any]) -> None:
    """Write a commit by hand."""
    text = "\n".join(json.dumps(action) for action in actions)
    (place / "_delta_log" / f"{version:020}.json").write_text(text)


def actions_of(place: Path, version: int) -> dict[str, Any]:
    lines = (place / "_delta_log" / f"{version:020}.json").read_text().splitlines()
    return {name: body for line in lines for name, body in json.loads(line).items()}


def test_a_delta_table_is_one_table_in_its_current_state(tmp_path: Path) -> None:
    place = tmp_path / "lake" / "sales"
    day = pa.array([datetime.date(2021, 3, 4)] * 4)
    first = pa.table({"a": [1, 2, 3, 4], "k": ["a b/ü%", "x=1", "+", None], "day": day})
    deltalake.write_deltalake(place, first, partition_by=["k", "day"])
    second = first.append_column("price", pa.array([Decimal("1.50")] * 4)).slice(0, 2)
    deltalake.write_deltalake(place, second, mode="append", schema_mode="merge")
    deltalake.DeltaTable(place).delete("a = 3")
    (tmp_path / "lake" / "other.csv").write_text("x\n1\n")
    found, problems = discover([str(tmp_path / "lake")])
    assert [(each.table, each.format) for each in found] == [("other.csv", "csv"), ("sales", "delta")]
    assert problems == []
    got = rows(sources.plan(found[1], 1 << 30))
    assert len(got) == 5
    assert got == expected(deltalake.DeltaTable(place).to_pyarrow_table())
    assert (("a", "1"), ("day", "2021-03-04"), ("k", "a b/ü%"), ("price", "1.50")) in got


def test_the_version_of_a_delta_table_is_that_of_its_log(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path, pa.table({"a": [1]}))
    before = one(tmp_path)
    assert one(tmp_path) == before
    deltalake.write_deltalake(tmp_path, pa.table({"a": [2]}), mode="overwrite")
    after = one(tmp_path)
    assert [each.version.partition(".")[0] for each in (before, after)] == ["0", "1"]
    # What was found is what is read, also when the table has gone on.
    assert rows(sources.plan(before, 1 << 30)) == [(("a", "1"),)]
    assert rows(sources.plan(after, 1 << 30)) == [(("a", "2"),)]
    deltalake.DeltaTable(tmp_path).create_checkpoint()
    assert one(tmp_path).version == after.version


def test_a_delta_table_that_was_written_anew_is_another_one(tmp_path: Path) -> None:
    versions = set()
    for number in (1, 2):
        shutil.rmtree(tmp_path / "t", ignore_errors=True)
        deltalake.write_deltalake(tmp_path / "t", pa.table({"a": [number]}))
        found = one(tmp_path)
        versions.add(found.version)
        assert rows(sources.plan(found, 1 << 30)) == [(("a", str(number)),)]
    assert len(versions) == 2


def test_a_delta_table_without_rows_shows_its_columns(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path, pa.table({"a": [1], "p": ["x"]}), partition_by=["p"])
    deltalake.DeltaTable(tmp_path).delete()
    (unit,) = sources.plan(one(tmp_path), 1 << 30)
    (batch,) = sources.read(unit, lambda problem: None)
    assert (batch.rows, [column.name for column in batch.columns]) == (0, ["a", "p"])


def z85(data: bytes) -> str:
    """Base 85 in the alphabet of ZeroMQ, as Delta writes vectors into its log."""
    ours = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
    theirs = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
    padded = data + bytes(-len(data) % 4)
    return base64.b85encode(padded).translate(bytes.maketrans(ours, theirs)).decode()


@pytest.mark.parametrize("partition", [None, "a b/ü%"])
def test_deletion_vectors_of_delta_are_honoured(tmp_path: Path, partition: str | None) -> None:
    roaring = pytest.importorskip("pyroaring")
    table = pa.table({"a": pa.array(range(10_000), pa.int64()), "p": [partition] * 10_000})
    properties = deltalake.WriterProperties(max_row_group_size=1000)
    deltalake.write_deltalake(
        tmp_path,
        table if partition else table.drop_columns("p"),
        partition_by=["p"] if partition else None,
        configuration={"delta.enableDeletionVectors": "true"},
        writer_properties=properties,
    )
    add = actions_of(tmp_path, 0)["add"]
    gone = [0, 999, 1000, 5555, *range(7000, 8500), 9999]
    bitmap = roaring.BitMap(gone).serialize()
    data = struct.pack("<iqi", 1681511377, 1, 0) + bitmap
    vector = {"storageType": "i", "pathOrInlineDv": z85(data), "sizeInBytes": len(data), "cardinality": len(gone)}
    remove = {"path": add["path"], "dataChange": True, "deletionTimestamp": 1}
    commit(tmp_path, 1, {"remove": remove}, {"add": {**add, "deletionVector": vector}})
    found = one(tmp_path)
    left = sorted(str(number) for number in set(range(10_000)) - set(gone))
    for size in (1 << 30, 1):
        units = sources.plan(found, size)
        assert len(units) == (1 if size > 1 else 10)
        assert sorted(cell for row in rows(units) for name, cell in row if name == "a" and cell is not None) == left


@pytest.mark.parametrize("path", ["../other/x.parquet", "file://{}/other/x.parquet", "link.parquet"])
def test_data_files_outside_of_a_table_are_not_read(tmp_path: Path, path: str) -> None:
    place = tmp_path / "t"
    deltalake.write_deltalake(place, pa.table({"a": [1]}))
    (tmp_path / "other").mkdir()
    pq.write_table(pa.table({"a": [2]}), tmp_path / "other" / "x.parquet")
    (place / "link.parquet").symlink_to(tmp_path / "other" / "x.parquet")
    add = actions_of(place, 0)["add"]
    commit(place, 1, {"add": {**add, "path": path.format(tmp_path)}})
    (found,), _ = discover([str(place)])
    with pytest.raises(SourceError, match="outside of its folder") as caught:
        sources.plan(found, 1 << 30)
    assert caught.value.code == "table-format"


@pytest.mark.parametrize("what", ["pipe", "link", "folder link", "log"])
@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_logs_and_metadata_are_files_of_the_table(tmp_path: Path, what: str, form: str) -> None:
    place, name = tmp_path / "lake" / "t", "_delta_log" if form == "delta" else "metadata"
    log, elsewhere = place / name, tmp_path / "elsewhere"
    if form == "delta":
        deltalake.write_deltalake(place, pa.table({"a": [1]}))
        last, later = "_last_checkpoint", f"{1:020}.json"
    else:
        log.mkdir(parents=True)
        (log / "v1.metadata.json").write_text('{"current-snapshot-id": 1}')
        last, later = "v3.metadata.json", "v2.metadata.json"
    shutil.copytree(log, elsewhere)
    if what == "pipe":
        os.mkfifo(log / last)
    elif what == "link":
        (elsewhere / "x.json").write_text("{}")
        (log / later).symlink_to(elsewhere / "x.json")
    elif what == "folder link":
        (log / "_sidecars").symlink_to(elsewhere)
    elif form == "delta":
        shutil.rmtree(log)
        log.symlink_to(elsewhere)
    else:
        (log / "below").mkdir()
        os.mkfifo(log / "below" / "pipe")
    found, problems = discover([str(tmp_path / "lake")])
    assert found == []
    (problem,) = (each for each in problems if each.code == "table-format")
    assert problem.severity == "error"
    assert "not a file of the table" in problem.detail


def test_links_within_a_table_are_followed(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path, pa.table({"a": [1]}))
    commit_file = tmp_path / "_delta_log" / f"{0:020}.json"
    commit_file.rename(tmp_path / "_delta_log" / "first")
    commit_file.symlink_to("first")
    assert rows(sources.plan(one(tmp_path), 1 << 30)) == [(("a", "1"),)]


def test_columns_of_delta_under_other_names(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path, pa.table({"c1": [1], "c2": ["x"]}))
    body = actions_of(tmp_path, 0)["metaData"]
    fields = json.loads(body["schemaString"])["fields"]
    for number, (field, name) in enumerate(zip(fields, ("id", "né w"), strict=True), start=1):
        names = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": field["name"]}
        field.update(name=name, metadata=names)
    body["schemaString"] = json.dumps({"type": "struct", "fields": fields})
    body["configuration"] = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "2"}
    commit(tmp_path, 1, {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}}, {"metaData": body})
    assert rows(sources.plan(one(tmp_path), 1 << 30)) == [(("id", "1"), ("né w", "x"))]


def test_columns_of_delta_by_number(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path, pa.table({"c1": [1], "c2": ["x"]}))
    actions = actions_of(tmp_path, 0)
    body, path = actions["metaData"], tmp_path / actions["add"]["path"]
    fields = json.loads(body["schemaString"])["fields"]
    for number, field in enumerate(fields, start=1):
        names = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": field["name"]}
        field.update(metadata=names)
    body["schemaString"] = json.dumps({"type": "struct", "fields": fields})
    body["configuration"] = {"delta.columnMapping.mode": "id", "delta.columnMapping.maxColumnId": "2"}
    commit(tmp_path, 1, {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}}, {"metaData": body})
    # What a column is called in a file does not matter.
    numbered = [("other", pa.string(), b"2"), ("c2", pa.int64(), b"1")]
    schema = pa.schema([pa.field(name, kind, metadata={b"PARQUET:field_id": n}) for name, kind, n in numbered])
    pq.write_table(pa.table([["y"], [7]], schema=schema), path)
    assert rows(sources.plan(one(tmp_path), 1 << 30)) == [(("c1", "7"), ("c2", "y"))]
    pq.write_table(pa.table({"c1": [1], "c2": ["x"]}), path)
    with pytest.raises(SourceError, match="have no numbers") as caught:
        rows(sources.plan(one(tmp_path), 1 << 30))
    assert caught.value.code == "table-format"


def test_a_field_may_be_called_like_a_type(tmp_path: Path) -> None:
    deltalake.write_deltalake(
        tmp_path, pa.table({"s": pa.array([{"variant": "x"}]), "l": pa.array([[{"variant": 1}]])})
    )
    assert rows(sources.plan(one(tmp_path), 1 << 30)) == [(("l", '[{"variant":1}]'), ("s.variant", "x"))]


@pytest.mark.parametrize(
    "kind",
    [
        "variant",
        {"type": "array", "elementType": "variant", "containsNull": True},
        {"type": "map", "keyType": "string", "valueType": "variant", "valueContainsNull": True},
        {"type": "struct", "fields": [{"name": "x", "type": "variant", "nullable": True, "metadata": {}}]},
    ],
)
def test_columns_of_type_variant_are_not_read(kind: Any) -> None:
    from lakescope.sources.lakehouses.delta import _holds_variants

    assert _holds_variants(kind)
    assert _holds_variants({"type": "array", "elementType": kind, "containsNull": True})


@pytest.mark.parametrize(
    ("feature", "said"), [("collations", "collations"), ("catalogManaged", "cannot be read: .*atalog")]
)
def test_what_a_delta_table_needs_and_is_not_known_makes_a_problem(tmp_path: Path, feature: str, said: str) -> None:
    deltalake.write_deltalake(tmp_path, pa.table({"a": [1]}))
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": [feature], "writerFeatures": [feature]}
    commit(tmp_path, 1, {"protocol": protocol})
    with pytest.raises(SourceError, match=said):
        sources.plan(one(tmp_path), 1 << 30)


def test_a_log_that_is_damaged_makes_a_problem(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path / "d", pa.table({"a": [1]}))
    (tmp_path / "d" / "_delta_log" / f"{0:020}.json").write_text('{"add": ')
    with pytest.raises(SourceError, match="d cannot be read"):
        sources.plan(one(tmp_path), 1 << 30)
    shutil.rmtree(tmp_path / "d" / "_delta_log")
    (tmp_path / "d" / "_delta_log").mkdir()
    found, (problem,) = discover([str(tmp_path)])
    assert (found, problem.code, problem.severity) == ([], "table-format", "error")


# --- Iceberg ----------------------------------------------------------------------------------------------------------


def catalog(place: Path) -> Any:
    from pyiceberg.catalog.sql import SqlCatalog

    made = SqlCatalog("lake", uri=f"sqlite:///{place}/catalog.sqlite", warehouse=f"file://{place}/lake")
    made.create_namespace("n")
    return made


@pytest.fixture
def warehouse(tmp_path: Path) -> Any:
    pytest.importorskip("sqlalchemy")
    (tmp_path / "lake").mkdir()
    made = catalog(tmp_path)
    yield made
    made.close()


def at(table: Any) -> Path:
    return Path(table.location().removeprefix("file://"))


def test_an_iceberg_table_is_one_table_in_its_current_state(warehouse: Any) -> None:
    from pyiceberg.types import DoubleType, LongType

    data = pa.table(
        {
            "id": pa.array([1, 2, 3], pa.int32()),
            "old": ["a", "b", "c"],
            "gone": ["x", "y", "z"],
            "when": pa.array([datetime.datetime(2021, 3, 4, 5, 6)] * 3, pa.timestamp("us", "UTC")),
            "place": pa.array([{"town": "Ulm", "zip": 1}, None, {"town": "Bonn", "zip": 2}]),
            "list": [[1, 2], [], None],
        }
    )
    table = warehouse.create_table("n.t", schema=data.schema)
    table.append(data)
    with table.update_schema() as update:
        update.rename_column("old", "new").delete_column("gone").update_column("id", LongType())
        update.rename_column("place.town", "city").delete_column("place.zip").add_column("more", DoubleType())
    later = table.schema().as_arrow()
    table.append(pa.Table.from_pylist([{"id": 2**40, "new": "d", "more": 0.5}], schema=later))
    table.delete("id = 2")
    found = one(at(table).parent)
    assert (found.table, found.format) == ("t", "iceberg")
    got = rows(sources.plan(found, 1 << 30))
    assert len(got) == 3
    assert got == expected(table.scan().to_arrow())
    assert dict(got[0])["place.city"] == "Ulm"


def test_the_version_of_an_iceberg_table_is_its_snapshot(warehouse: Any) -> None:
    table = warehouse.create_table("n.t", schema=pa.schema([("a", pa.int64())]))
    nothing = one(at(table))
    (unit,) = sources.plan(nothing, 1 << 30)
    (batch,) = sources.read(unit, lambda problem: None)
    assert (batch.rows, [column.name for column in batch.columns]) == (0, ["a"])
    table.append(pa.table({"a": [1]}))
    before = one(at(table))
    with table.transaction() as change:
        change.set_properties({"owner": "somebody"})
    # A new metadata file, and nothing to scan.
    assert one(at(table)).version == before.version
    with table.update_schema() as update:
        update.rename_column("a", "b")
    assert one(at(table)).version != before.version
    table.append(pa.table({"b": [2]}))
    assert len({each.version for each in (nothing, before, one(at(table)))}) == 3


def test_partitions_of_iceberg_that_files_leave_out(warehouse: Any) -> None:
    table = warehouse.create_table("n.t", schema=pa.schema([("a", pa.int64()), ("day", pa.date32())]))
    with table.update_spec() as update:
        update.add_identity("day")
    table.append(pa.table({"a": [1, 2], "day": pa.array([18_690, 18_691], pa.date32())}))
    for path in at(table).rglob("*.parquet"):
        # As a table that was taken over from Hive: what the path spells is not in the file.
        pq.write_table(pq.read_table(path, partitioning=None).drop_columns("day"), path)
    assert rows(sources.plan(one(at(table)), 1 << 30)) == [
        (("a", "1"), ("day", "2021-03-04")),
        (("a", "2"), ("day", "2021-03-05")),
    ]


PLACE = pa.array([{"town": "Ulm", "at": {"x": 1}}, None])
PLACED = [
    (("a", "1"), ("place.at.x", None), ("place.town", None)),
    (("a", "2"), ("place.at.x", "1"), ("place.town", "Ulm")),
    (("a", "3"), ("place.at.x", None), ("place.town", None)),
]


def test_a_struct_that_came_later_to_iceberg_has_the_same_columns_in_older_files(warehouse: Any) -> None:
    table = warehouse.create_table("n.t", schema=pa.schema([("a", pa.int64())]))
    with table.update_schema() as update:
        update.union_by_name(pa.schema([("a", pa.int64()), ("place", PLACE.type)]))
    (unit,) = sources.plan(one(at(table)), 1 << 30)
    (batch,) = sources.read(unit, lambda problem: None)
    assert sorted(column.name for column in batch.columns) == ["a", "place.at.x", "place.town"]
    with table.update_schema() as update:
        update.delete_column("place")
    table.append(pa.table({"a": [1]}))
    with table.update_schema() as update:
        update.union_by_name(pa.schema([("a", pa.int64()), ("place", PLACE.type)]))
    table.append(pa.table({"a": [2, 3], "place": PLACE}))
    assert rows(sources.plan(one(at(table)), 1 << 30)) == PLACED


def test_a_struct_that_came_later_to_delta_has_the_same_columns_in_older_files(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path, pa.table({"a": [1]}))
    later = pa.table({"a": [2, 3], "place": PLACE})
    deltalake.write_deltalake(tmp_path, later, mode="append", schema_mode="merge")
    assert rows(sources.plan(one(tmp_path), 1 << 30)) == PLACED
    deltalake.DeltaTable(tmp_path).delete()
    (unit,) = sources.plan(one(tmp_path), 1 << 30)
    (batch,) = sources.read(unit, lambda problem: None)
    assert sorted(column.name for column in batch.columns) == ["a", "place.at.x", "place.town"]


def test_files_of_iceberg_without_numbers_are_read_as_the_mapping_of_names_says(warehouse: Any) -> None:
    place = pa.struct([("town", pa.string()), ("zip", pa.int64())])
    schema = pa.schema([("a", pa.int64()), ("b", pa.int64()), ("place", place), ("c", pa.int64())])
    table = warehouse.create_table("n.t", schema=schema)
    row = {"a": 1, "b": 2, "place": {"town": "Ulm", "zip": 3}, "c": 4}
    path = at(table) / "data" / "old.parquet"
    path.parent.mkdir()
    pq.write_table(pa.Table.from_pylist([row], schema=schema), path)
    # Adding a file without numbers writes down what its names mean.
    table.add_files([f"file://{path}"])
    with table.update_schema() as update:
        update.rename_column("a", "x").rename_column("place.town", "city")
        update.delete_column("place.zip").delete_column("c")
    got = rows(sources.plan(one(at(table)), 1 << 30))
    assert got == [(("b", "2"), ("place.city", "Ulm"), ("x", "1"))]
    assert got == expected(table.scan().to_arrow())
    with table.update_schema() as update:
        update.rename_column("b", "a")
    # The name goes over to the other column, and the file has both.
    with pytest.raises(SourceError, match="two columns of a file") as caught:
        rows(sources.plan(one(at(table)), 1 << 30))
    assert caught.value.code == "table-format"
    edited(table, properties={})
    with pytest.raises(SourceError, match="have no numbers"):
        rows(sources.plan(one(at(table)), 1 << 30))


def test_a_partition_of_iceberg_by_a_column_that_is_gone(warehouse: Any) -> None:
    table = warehouse.create_table("n.t", schema=pa.schema([("a", pa.int64()), ("day", pa.date32())]))
    with table.update_spec() as update:
        update.add_identity("day")
    table.append(pa.table({"a": [1], "day": pa.array([18_690], pa.date32())}))
    with table.update_spec() as update:
        update.remove_field("day")
    with table.update_schema() as update:
        update.delete_column("day")
    assert rows(sources.plan(one(at(table)), 1 << 30)) == [(("a", "1"),)]


def test_a_partition_of_iceberg_by_a_field_of_a_struct(warehouse: Any) -> None:
    place = pa.struct([("town", pa.string()), ("zip", pa.int64())])
    schema = pa.schema([("place", place), ("town", pa.string())])
    table = warehouse.create_table("n.t", schema=schema)
    with table.update_spec() as update:
        update.add_identity("place.town")
    path = at(table) / "data" / "x.parquet"
    path.parent.mkdir()
    row = {"place": {"town": "Ulm", "zip": 1}, "town": "Bonn"}
    pq.write_table(pa.Table.from_pylist([row], schema=schema), path)
    table.add_files([f"file://{path}"])
    assert rows(sources.plan(one(at(table)), 1 << 30)) == [
        (("place.town", "Ulm"), ("place.zip", "1"), ("town", "Bonn"))
    ]
    # As a file that leaves both out: what the table knows is of the field inside. The library does not know it, though.
    number = table.schema().find_field("place.town").field_id
    for left, zip_code in (({"place": {"zip": 1}}, "1"), ({"other": 1}, None)):
        pq.write_table(pa.Table.from_pylist([left]), path)
        (unit,) = sources.plan(one(at(table)), 1 << 30)
        assert unit.options["defaults"] == [(number, None)]
        unit.options["defaults"] = [(number, "Ulm")]
        assert rows([unit]) == [(("place.town", "Ulm"), ("place.zip", zip_code), ("town", None))]


def add_deletes(table: Any, path: Path, content: Any, form: Any = None, **fields: Any) -> None:
    """Commit a delete file, which the library reads and does not write."""
    from pyiceberg.manifest import (
        DataFile,
        FileFormat,
        ManifestContent,
        ManifestEntry,
        ManifestEntryStatus,
        ManifestWriterV2,
        write_manifest_list,
    )
    from pyiceberg.table.metadata import TableMetadataV2
    from pyiceberg.typedef import Record

    class Writer(ManifestWriterV2):
        def content(self) -> ManifestContent:
            return ManifestContent.DELETES

        @property
        def _meta(self) -> dict[str, str]:
            return {**super()._meta, "content": "deletes"}

    old = table.current_snapshot()
    io, folder = table.io, at(table) / "metadata"
    body = json.loads(Path(table.metadata_location.removeprefix("file://")).read_text())
    new = old.snapshot_id + 1
    file = DataFile.from_args(
        content=content,
        file_path=f"file://{path}",
        file_format=form or FileFormat.PARQUET,
        partition=Record(),
        record_count=1,
        file_size_in_bytes=path.stat().st_size,
        spec_id=0,
        **fields,
    )
    output = io.new_output(f"file://{folder}/deletes.avro")
    with Writer(table.spec(), table.schema(), output, new, "null") as writer:
        entry = ManifestEntry.from_args(status=ManifestEntryStatus.ADDED, snapshot_id=new, data_file=file)
        writer.add_entry(entry)
    manifest = writer.to_manifest_file()
    lists = io.new_output(f"file://{folder}/snap.avro")
    with write_manifest_list(2, lists, new, old.snapshot_id, body["last-sequence-number"] + 1, "null") as written:
        written.add_manifests([*old.manifests(io), manifest])
    snapshot = {
        **json.loads(old.model_dump_json(by_alias=True)),
        **{"snapshot-id": new, "parent-snapshot-id": old.snapshot_id, "manifest-list": f"file://{folder}/snap.avro"},
        **{"sequence-number": body["last-sequence-number"] + 1, "summary": {"operation": "delete"}},
    }
    body["snapshots"].append(snapshot)
    body["last-sequence-number"] += 1
    body["current-snapshot-id"] = new
    body["refs"]["main"]["snapshot-id"] = new
    body["last-updated-ms"] += 1
    TableMetadataV2.model_validate(body)
    (folder / "00099-by-hand.metadata.json").write_text(json.dumps(body))


def puffin(blobs: list[tuple[str, list[int], bytes, str | None, dict[str, str]]]) -> bytes:
    """A Puffin file: blobs with type, columns, content, compression and properties, then what tells where they are."""
    body, told = b"PFA1", []
    for kind, fields, content, codec, properties in blobs:
        place = {"type": kind, "fields": fields, "snapshot-id": 1, "sequence-number": 1, "properties": properties}
        place |= {"offset": len(body), "length": len(content), **({"compression-codec": codec} if codec else {})}
        told.append(place)
        body += content
    footer = json.dumps({"blobs": told, "properties": {}}).encode()
    return body + b"PFA1" + footer + struct.pack("<i", len(footer)) + bytes(4) + b"PFA1"


def filled(warehouse: Any) -> Any:
    properties = {"write.parquet.row-group-limit": "1000"}
    table = warehouse.create_table("n.t", schema=pa.schema([("a", pa.int64())]), properties=properties)
    table.append(pa.table({"a": pa.array(range(5000), pa.int64())}))
    return table


def test_rows_of_iceberg_deleted_by_position_are_left_out(warehouse: Any) -> None:
    from pyiceberg.manifest import DataFileContent

    table = filled(warehouse)
    (task,) = table.scan().plan_files()
    gone = [0, 999, 1000, 2500, 4999]
    deletes = pa.table(
        {"file_path": [task.file.file_path] * 5 + ["file:///elsewhere"], "pos": pa.array([*gone, 7], pa.int64())}
    )
    path = at(table) / "data" / "deletes.parquet"
    pq.write_table(deletes, path)
    add_deletes(table, path, DataFileContent.POSITION_DELETES)
    left = sorted(str(number) for number in set(range(5000)) - set(gone))
    for size in (1 << 30, 1):
        units = sources.plan(one(at(table)), size)
        assert len(units) == (1 if size > 1 else 5)
        assert sorted(cell for row in rows(units) for _, cell in row if cell is not None) == left


def test_deletion_vectors_of_iceberg_are_honoured(warehouse: Any) -> None:
    from pyiceberg.manifest import DataFileContent, FileFormat
    from pyroaring import BitMap

    table = filled(warehouse)
    (task,) = table.scan().plan_files()
    gone = [0, 999, 1000, 2500, 4999]
    vector = b"\xd1\xd3\x39\x64" + struct.pack("<qi", 1, 0) + BitMap(gone).serialize()
    path = at(table) / "data" / "deletes.puffin"
    blob = struct.pack(">i", len(vector)) + vector + struct.pack(">I", zlib.crc32(vector))
    about = {"referenced-data-file": task.file.file_path, "cardinality": str(len(gone))}
    path.write_bytes(puffin([("deletion-vector-v1", [], blob, None, about)]))
    add_deletes(table, path, DataFileContent.POSITION_DELETES, FileFormat.PUFFIN)
    left = sorted(str(number) for number in set(range(5000)) - set(gone))
    units = sources.plan(one(at(table)), 1)
    assert len(units) == 5
    assert sorted(cell for row in rows(units) for _, cell in row if cell is not None) == left


def test_rows_of_iceberg_deleted_by_equality_make_a_problem(warehouse: Any) -> None:
    from pyiceberg.manifest import DataFileContent

    table = filled(warehouse)
    path = at(table) / "data" / "deletes.parquet"
    pq.write_table(pa.table({"a": [5]}), path)
    add_deletes(table, path, DataFileContent.EQUALITY_DELETES, equality_ids=[1])
    with pytest.raises(SourceError, match="deleted by equality") as caught:
        sources.plan(one(at(table)), 1 << 30)
    assert caught.value.code == "table-format"


def test_an_iceberg_table_that_was_moved_says_so(warehouse: Any, tmp_path: Path) -> None:
    table = filled(warehouse)
    at(table).rename(tmp_path / "moved")
    with pytest.raises(SourceError, match="it says that it lies at"):
        sources.plan(one(tmp_path / "moved"), 1 << 30)


def test_manifests_of_iceberg_are_files(warehouse: Any) -> None:
    table = filled(warehouse)
    snapshot = json.loads(table.current_snapshot().model_dump_json(by_alias=True))
    place = at(table) / "data" / "snap.avro"
    edited(table, snapshots=[{**snapshot, "manifest-list": f"file://{place}"}])
    # Not a pipe: that would make a reader wait that does not look.
    os.mknod(place, stat.S_IFSOCK | 0o600)
    (found,), _ = discover([str(at(table))])
    with pytest.raises(SourceError, match="not a regular file") as caught:
        sources.plan(found, 1 << 30)
    assert caught.value.code == "table-format"


@pytest.mark.parametrize("form", ["delta", "iceberg"])
@pytest.mark.parametrize(
    ("limit", "ratio", "code"),
    [("FREE_ROWS", "ROWS_PER_BYTE", "too-many-rows"), ("FREE_TEXT", "TEXT_RATIO", "archive-bomb")],
)
def test_data_files_of_tables_have_the_limits_of_other_files(
    warehouse: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, limit: str, ratio: str, code: str
) -> None:
    from lakescope.sources.io import limits

    place = at(filled(warehouse)) if form == "iceberg" else tmp_path / "d"
    if form == "delta":
        deltalake.write_deltalake(place, pa.table({"a": range(5000)}))
    units = sources.plan(one(place), 1 << 30)
    monkeypatch.setattr(limits, limit, 100)
    monkeypatch.setattr(limits, ratio, 0)
    with pytest.raises(SourceError) as caught:
        rows(units)
    assert caught.value.code == code


def edited(table: Any, **changes: Any) -> None:
    """Write the metadata of a table anew, by hand."""
    path = Path(table.metadata_location.removeprefix("file://"))
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_properties_of_an_iceberg_table_do_not_choose_how_it_is_read(
    warehouse: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table = filled(warehouse)
    # What a property names would be called with all properties: a command that makes files of their names.
    mark = tmp_path / "made"
    edited(table, properties={"/bin/touch": "", str(mark): "", "py-io-impl": "subprocess.Popen"})
    assert len(rows(sources.plan(one(at(table)), 1 << 30))) == 5000
    assert not mark.exists()


def test_properties_of_an_iceberg_table_do_not_choose_where_it_is_read(warehouse: Any) -> None:
    from lakescope.sources.lakehouses import iceberg

    table = filled(warehouse)
    edited(table, properties={"s3.endpoint": "http://127.0.0.1:9", "s3.access-key-id": "theirs"})
    assert iceberg.opened(str(at(table))).io.properties == {}


@pytest.mark.parametrize("pattern", ["**/*.parquet", "n/*/data/*.parquet", "n/t*", "*/t/**"])
@pytest.mark.parametrize("scheme", ["", "memory://"])
def test_a_glob_of_data_files_finds_the_table(warehouse: Any, tmp_path: Path, pattern: str, scheme: str) -> None:
    fsspec = pytest.importorskip("fsspec")
    table = filled(warehouse)
    table.delete("a < 4000")
    deltalake.write_deltalake(tmp_path / "lake" / "d", pa.table({"a": [1]}))
    store = fsspec.filesystem("memory")
    base = str(tmp_path / "lake")
    if scheme:
        store.put(base, "/globbed", recursive=True)
        base = "memory://globbed"
    try:
        found, problems = discover([f"{base}/{pattern}"])
    finally:
        if scheme:
            store.rm("/globbed", recursive=True)
    there = [(each.table, each.format) for each in found]
    name = "t" if pattern.startswith("n/") else "n/t"
    assert there == [*([("d", "delta")] if pattern.startswith("**") else []), (name, "iceberg")]
    assert problems == []


def test_a_glob_of_other_files_finds_no_table(warehouse: Any, tmp_path: Path) -> None:
    filled(warehouse)
    deltalake.write_deltalake(tmp_path / "lake" / "d", pa.table({"a": [1]}))
    (tmp_path / "lake" / "x.csv").write_text("a\n1\n")
    found, problems = discover([str(tmp_path / "lake" / "**" / "*.csv")])
    assert ([each.table for each in found], problems) == (["x.csv"], [])


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_files_in_a_table_that_are_not_of_it_are_told(warehouse: Any, tmp_path: Path, form: str) -> None:
    if form == "iceberg":
        place = at(filled(warehouse))
    else:
        place = tmp_path / "lake" / "d"
        deltalake.write_deltalake(place, pa.table({"a": [1]}))
        (place / "deletion_vector_1.bin").write_bytes(b"")
    for name in ("notes.csv", "README.md", "below/more.json", "metadata/x.csv"):
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text("a\n1\n")
    (found,), (problem,) = discover([str(place)])
    assert found.format == form
    assert (problem.table, problem.severity, problem.code) == (found.table, "warning", "stray-files")
    assert problem.count == 4
    assert "'README.md', 'below/more.json', 'metadata/x.csv', ..." in problem.detail


@pytest.mark.slow
def test_an_update_scans_a_table_whose_version_changed(warehouse: Any, tmp_path: Path, spark: SparkSession) -> None:
    table = warehouse.create_table("n.t", schema=pa.schema([("a", pa.int64())]))
    table.append(pa.table({"a": [1, 2]}))
    deltalake.write_deltalake(tmp_path / "lake" / "d", pa.table({"a": [1, 2, 3]}))
    lakescope.index(tmp_path / "lake", tmp_path / "lake.idx", spark=spark)

    def counted() -> dict[str, int]:
        there = lakescope.open(tmp_path / "lake.idx").tables()
        return dict(zip(there["table"].to_pylist(), there["rows"].to_pylist(), strict=True))

    assert counted() == {"d": 3, "n/t": 2}
    assert update(tmp_path / "lake.idx").nothing
    table.delete("a = 1")
    assert update(tmp_path / "lake.idx").changed == ("n/t",)
    deltalake.DeltaTable(tmp_path / "lake" / "d").delete("a < 3")
    assert update(tmp_path / "lake.idx").changed == ("d",)
    assert counted() == {"d": 1, "n/t": 1}


@pytest.mark.parametrize(("form", "package"), [("delta", "deltalake"), ("iceberg", "pyiceberg.table")])
def test_without_the_package_a_table_is_a_problem_that_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, package: str
) -> None:
    (tmp_path / "t" / "_delta_log").mkdir(parents=True)
    if form == "delta":
        (tmp_path / "t" / "_delta_log" / f"{0:020}.json").write_text("{}")
    else:
        (tmp_path / "t" / "_delta_log").rmdir()
        (tmp_path / "t" / "metadata").mkdir()
        (tmp_path / "t" / "metadata" / "v1.metadata.json").write_text('{"current-snapshot-id": 1}')
    pq.write_table(pa.table({"a": [1]}), tmp_path / "t" / "part-00000.parquet")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SourceError, match=f"needs the package {package.partition('.')[0]}") as caught:
        sources.plan(one(tmp_path), 1 << 30)
    assert caught.value.hint == "pip install 'lakescope[tables]'"
