"""The format promise: canonical text, kinds, nulls and the one hash (docs/values.md)."""

from __future__ import annotations

import math
import random
import unicodedata
from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.cells import text_column
from helpers.values import GOLDEN, cells, raw_cells
from lakescope.values import characters
from lakescope.values.canonical import NULL_MARKERS, Kind, canonical, decode
from lakescope.values.cells import understand
from lakescope.values.hashing import HASH_SEED, hash_text
from lakescope.values.kernels import xxh64_cells

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(("raw", "kind", "text"), GOLDEN)
def test_golden(raw: str, kind: Kind, text: str) -> None:
    value = canonical(raw)
    assert (value.kind, value.text) == (kind, text)


@pytest.mark.parametrize("marker", [*sorted(NULL_MARKERS), "  ", "\t", "\u00a0NA "])
def test_null_markers(marker: str) -> None:
    assert canonical(marker).kind is Kind.NULL


def test_canonical_is_idempotent_on_golden_values() -> None:
    for raw, kind, text in GOLDEN:
        again = canonical(text)
        assert again.text == text
        assert again.kind is not Kind.NULL, (raw, kind)


def test_numbers_meet_whatever_their_notation() -> None:
    assert len({canonical(text).text for text in ["100", "100.0", "1e2", "+100", "1.00E+2", "100.000"]}) == 1


def test_moments_are_epoch_seconds() -> None:
    assert canonical("1970-01-02").number == 86400
    assert canonical("1969-12-31T23:59:59.5Z").number == -0.5
    assert canonical("5:06 PM").number == 17 * 3600 + 360
    assert math.isnan(canonical("3/4/2021").number)


@settings(max_examples=400, deadline=None)
@given(st.lists(raw_cells, max_size=40))
def test_kernel_equals_reference(column: list[bytes | None]) -> None:
    """The compiled path and the reference agree on every cell: kind, canonical text, hash, number, digits, length."""
    found = understand(text_column(column))
    present = [cell for cell in column if cell is not None]
    expected: Counter[tuple[int, str]] = Counter()
    for cell in present:
        value = canonical(decode(cell))
        expected[int(value.kind), value.text] += 1
    nulls = expected.pop((0, ""), 0)
    assert found.missing == len(column) - len(present)
    assert found.empty + found.markers == nulls
    got: Counter[tuple[int, str]] = Counter()
    for i in range(found.kinds.size):
        text = found.canonical_at(i).decode()
        got[int(found.kinds[i]), text] += int(found.counts[i])
        assert int(found.hashes[i]) == hash_text(text)
        written = found.written[found.wstarts[i] : found.wends[i]].tobytes().decode()
        value = canonical(written)
        assert found.lengths[i] == len(written)
        assert (found.digits[i], found.decimals[i], found.leading[i]) == (value.digits, value.decimals, value.leading)
        if value.kind is not Kind.CODE:
            assert found.numbers[i] == pytest.approx(value.number, rel=4e-16, abs=0, nan_ok=True)
    assert got == expected


@settings(max_examples=300, deadline=None)
@given(cells)
def test_canonical_is_idempotent_and_normalised(cell: bytes) -> None:
    value = canonical(cell.decode())
    if value.kind is Kind.NULL:
        return
    assert unicodedata.is_normalized("NFC", value.text)
    again = canonical(value.text)
    assert again.text == value.text


@settings(max_examples=200, deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_survive_as_text(x: float) -> None:
    """Plain and scientific notation of a float meet, and the canonical text reads back as the same number."""
    assert float(canonical(repr(x)).text) == x
    assert canonical(f"{Decimal(repr(x)):f}").text == canonical(repr(x)).text == canonical(f"{Decimal(repr(x)):e}").text


SAMPLES = [
    "",
    "a",
    "abc",
    "0123456789",
    "ünïcödé",
    "漢字",
    "\U0001f600",
    "x" * 31,
    "y" * 32,
    "z" * 33,
    "long " * 1000,
    "\x00",
]


def test_the_one_hash_equals_the_library() -> None:
    column = text_column(SAMPLES)
    expected = [xxhash.xxh64_intdigest(sample.encode(), HASH_SEED) for sample in SAMPLES]
    assert xxh64_cells(column.data, column.starts, column.ends).tolist() == expected


@settings(max_examples=200, deadline=None)
@given(st.lists(st.binary(max_size=200), min_size=1, max_size=20))
def test_the_one_hash_equals_the_library_on_any_bytes(values: list[bytes]) -> None:
    column = text_column(values)
    expected = [xxhash.xxh64_intdigest(value, HASH_SEED) for value in values]
    assert xxh64_cells(column.data, column.starts, column.ends).tolist() == expected


def test_numbers_are_the_nearest_double() -> None:
    """Also where the digits make an integer beyond 2**53, which plain division would round twice."""
    chance = random.Random(7)
    texts = [repr(chance.random() * 10.0 ** chance.randint(-3, 6)) for _ in range(20_000)]
    texts += [str(chance.randint(2**52, 10**19 - 1)) for _ in range(5_000)]
    texts += [f"{chance.randint(0, 10**8)}.{chance.randint(0, 10**11 - 1):011d}" for _ in range(5_000)]
    texts += [
        "9007199254740993",
        "9007199254740992.5",
        "12345678901234567890",
        "0.30000000000000004",
        "18446744073709551615",
    ]
    texts = [text for text in dict.fromkeys(texts) if "e" not in text]
    found = understand(text_column(texts))
    read = {
        found.written[start:end].tobytes().decode(): number
        for start, end, number in zip(found.wstarts, found.wends, found.numbers, strict=True)
    }
    assert {text: read[text] for text in texts if read[text] != float(text)} == {}


def test_the_one_hash_equals_spark(spark: SparkSession) -> None:
    """Spark's xxhash64 of a string column is our hash; a null hashes to the seed there and has no hash here."""
    from pyspark.sql import functions as f

    frame = spark.createDataFrame([(sample,) for sample in [*SAMPLES, None]], "value string")
    rows = frame.select("value", f.xxhash64("value").alias("hash")).collect()
    for row in rows:
        if row.value is None:
            assert row.hash == HASH_SEED
        else:
            assert row.hash % 2**64 == hash_text(row.value)


def test_undecodable_cells_use_the_fallback() -> None:
    found = understand(text_column([b"caf\xe9", "café", b"\x81"]), "cp1252")
    assert found.undecodable == 2
    texts = Counter(found.canonical_at(i).decode() for i in range(found.kinds.size))
    assert texts == Counter({"café": 2, "\x81": 1})


def test_spaces_and_missing_cells_are_told_apart() -> None:
    found = understand(text_column(["", "  ", "NA", None, "x"]))
    assert (found.missing, found.empty, found.markers, found.kinds.size) == (1, 2, 1, 1)


def test_empty_column() -> None:
    found = understand(text_column([]))
    assert found.rows == 0
    assert found.kinds.size == 0
    assert np.isfinite(found.numbers).sum() == 0


def test_characters_that_fuse_are_sought_where_they_are() -> None:
    """Leaving ideographs and private characters out finds the same as looking at every code point there is."""
    fusing = set(characters._HANGUL_VOWELS_AND_TAILS)
    for point in range(0x110000):
        parts = unicodedata.decomposition(chr(point)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            fusing.add(int(parts[1], 16))
    assert characters._second_halves() == {point for point in fusing if point < 0x10000}


def test_every_character_is_classed_as_python_does() -> None:
    seconds = characters._second_halves()
    for point, entry in enumerate(characters.character_table().tolist()):
        char = chr(point)
        letter = characters.UPPER if char.isupper() else characters.LOWER
        kind = letter if char.isalpha() else characters.DIGIT if char.isdigit() else characters.OTHER
        alone = point not in seconds and unicodedata.is_normalized("NFC", char) and not unicodedata.combining(char)
        expected = 0 if 0xD800 <= point < 0xE000 else kind + characters.STABLE * alone
        assert entry == expected, hex(point)
