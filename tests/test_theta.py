"""Theta sketches of others, judged by the library that writes them, and the statistics of Iceberg that hold them."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakescope.engines.counting.stored import stored_counts
from lakescope.errors import BadRequest, SourceError
from lakescope.sketches.theta import CompactTheta

datasketches = pytest.importorskip("datasketches")


def sketch(values: int, lg_k: int = 12, first: int = 0) -> Any:
    made = datasketches.update_theta_sketch(lg_k)
    for value in range(first, first + values):
        made.update(value)
    return made.compact()


@given(values=st.integers(0, 30_000), lg_k=st.integers(5, 13), compress=st.booleans())
@settings(deadline=None, max_examples=60)
def test_estimates_are_those_of_the_library(values: int, lg_k: int, compress: bool) -> None:
    theirs = sketch(values, lg_k)
    ours = CompactTheta.of(theirs.serialize(compress))
    assert ours.retained == theirs.num_retained
    assert ours.estimate == pytest.approx(theirs.get_estimate(), rel=1e-12)
    assert ours.exact == (not theirs.is_estimation_mode())
    low, high = ours.interval
    if ours.exact:
        assert (low, high) == (values, values)
        return
    # Theirs are of two standard errors, and made for few hashes, too: ours are a little narrower.
    assert low <= ours.estimate <= high
    width = theirs.get_upper_bound(2) - theirs.get_lower_bound(2)
    assert high - low == pytest.approx(0.98 * width, rel=0.12)
    assert low == pytest.approx(theirs.get_lower_bound(2), abs=0.12 * width)
    assert high == pytest.approx(theirs.get_upper_bound(2), abs=0.12 * width)


def test_intervals_hold_the_truth() -> None:
    held = 0
    for number in range(400):
        low, high = CompactTheta.of(sketch(3000, 7, first=number * 10_000).serialize()).interval
        held += low <= 3000 <= high
    assert 0.92 * 400 <= held <= 0.985 * 400


@pytest.mark.parametrize(
    "data",
    [b"", b"\x03\x03\x03", b"\x02\x03\x03\0\0\x1a\xcc\x93", b"\x03\x03\x02" + bytes(30), b"\x02\x09\x03" + bytes(30)],
)
def test_what_is_no_sketch_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="Theta"):
        CompactTheta.of(data)


# --- statistics of Iceberg --------------------------------------------------------------------------------------------


def puffin(blobs: list[tuple[int, bytes, str | None]], *, packed: bool = False) -> bytes:
    """A Puffin file with one sketch for each column."""
    body, told = b"PFA1", []
    for field, content, codec in blobs:
        data = content if codec is None else compressed(content, codec)
        place = {"type": "apache-datasketches-theta-v1", "fields": [field], "snapshot-id": 7, "sequence-number": 1}
        place |= {"offset": len(body), "length": len(data), "properties": {"ndv": "12"}}
        told.append(place | ({"compression-codec": codec} if codec else {}))
        body += data
    footer = json.dumps({"blobs": told, "properties": {"created-by": "Somebody 1.0"}}).encode()
    footer = compressed(footer, "lz4") if packed else footer
    return body + b"PFA1" + footer + struct.pack("<i", len(footer)) + bytes([packed, 0, 0, 0]) + b"PFA1"


def compressed(data: bytes, codec: str) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        stream.write(data)
    return bytes(sink.getvalue())


def table(folder: Path, file: bytes, *, snapshot: int = 7) -> Path:
    """The metadata of an Iceberg table whose statistics are of snapshot 7. It has no data at all."""
    (folder / "metadata").mkdir(parents=True)
    (folder / "metadata" / "stats.puffin").write_bytes(file)
    place = {"type": "struct", "fields": [{"id": 3, "name": "town", "required": False, "type": "string"}]}
    fields = [
        {"id": 1, "name": "customer", "required": False, "type": "long"},
        {"id": 2, "name": "address", "required": False, "type": place},
    ]
    statistics = {"snapshot-id": 7, "statistics-path": f"file://{folder}/metadata/stats.puffin", "blob-metadata": []}
    body = {
        **{"format-version": 2, "current-snapshot-id": snapshot, "current-schema-id": 0},
        "schemas": [{"schema-id": 0, "type": "struct", "fields": fields}],
        "snapshots": [{"snapshot-id": 7, "timestamp-ms": 1}, {"snapshot-id": 8, "timestamp-ms": 2}],
        "statistics": [statistics],
    }
    (folder / "metadata" / "v1.metadata.json").write_text(json.dumps(body))
    return folder


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("codec", [None, "zstd", "lz4"])
def test_counts_of_iceberg_are_read_without_a_scan(tmp_path: Path, codec: str | None, packed: bool) -> None:
    blobs = [(1, sketch(12).serialize(), codec), (3, sketch(50_000).serialize(), codec), (99, b"gone", codec)]
    place = table(tmp_path / "sales", puffin(blobs, packed=packed))
    customer, town = stored_counts(str(place))
    assert (customer.table, customer.column, customer.estimate, customer.exact) == ("sales", "customer", 12, True)
    assert (customer.ndv, customer.snapshot, customer.current, customer.writer) == (12, 7, True, "Somebody 1.0")
    assert (town.column, town.exact) == ("address.town", False)
    assert town.low < 50_000 < town.high
    assert town.high - town.low < 0.1 * 50_000
    assert [each.column for each in stored_counts(str(place), ["customer"])] == ["customer"]


def test_counts_of_an_older_snapshot_say_so(tmp_path: Path) -> None:
    found = stored_counts(str(table(tmp_path / "t", puffin([(1, sketch(5).serialize(), None)]), snapshot=8)))
    assert not found[0].current
    assert found.notes == ("t has changed since its statistics were made",)


@pytest.mark.parametrize("damage", [slice(0, 20), slice(4, None), slice(0, -4)])
def test_a_damaged_puffin_file_is_refused(tmp_path: Path, damage: slice) -> None:
    whole = puffin([(1, sketch(5).serialize(), None)])
    with pytest.raises(SourceError, match="Puffin"):
        stored_counts(str(table(tmp_path / "t", whole[damage])))


def test_a_puffin_file_that_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    place = table(tmp_path / "t", puffin([(1, bytes(65 << 20), "zstd")]))
    with pytest.raises(SourceError, match="unpacks to more than"):
        stored_counts(str(place))


def test_blobs_that_nobody_asks_for_are_not_read(tmp_path: Path) -> None:
    # What would be refused if it was unpacked: a column that is gone, and one that is not wanted.
    blobs = [(99, b"x", "gzip"), (3, b"x", "gzip"), (1, sketch(5).serialize(), None)]
    place = table(tmp_path / "t", puffin(blobs))
    assert [each.column for each in stored_counts(str(place), ["customer"])] == ["customer"]


def test_one_table_whose_statistics_are_damaged_is_a_note(tmp_path: Path) -> None:
    whole = puffin([(1, sketch(5).serialize(), None)])
    table(tmp_path / "a", whole[:20])
    table(tmp_path / "b", whole)
    table(tmp_path / "c", whole.replace(b'"ndv": "12"', b'"ndv":  12 '))
    table(tmp_path / "d", whole.replace(b'"offset"', b'"office"'))
    found = stored_counts(str(tmp_path))
    assert [(each.table, each.column, each.ndv) for each in found] == [("b", "customer", 12), ("c", "customer", None)]
    assert [note.partition(":")[0] for note in found.notes] == ["a", "d"]
    assert all("cannot be read" in note for note in found.notes)


def test_a_table_without_statistics_and_no_table_at_all(tmp_path: Path) -> None:
    found = stored_counts(str(table(tmp_path / "t", puffin([]))))
    assert (list(found), found.notes) == ([], ("t holds no statistics of its columns: its writer made none (ANALYZE)",))
    (tmp_path / "a.csv").write_text("a\n1\n")
    with pytest.raises(BadRequest, match="no Iceberg table"):
        stored_counts(str(tmp_path / "a.csv"))
