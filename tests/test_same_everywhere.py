"""Law 1: the same index from any place, any order of rows, any partitioning, any cut of a file.

What comes from hashes is compared byte for byte, sums to 1e-9, quantiles and frequent values exactly where they say
that they are exact, and otherwise against the data, within the error they state.
"""

from __future__ import annotations

import csv
import io
import json
import math
import random
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakescope
from lakescope.build.build import build
from lakescope.engines.joins.inverted import InvertedIndex
from lakescope.lake import Lake
from lakescope.profile.column import values_limit
from lakescope.sources.formats.csv_dialect import detect_dialect
from lakescope.sources.formats.csv_file import _sync
from lakescope.sources.io.encoding import Encoding
from lakescope.values.canonical import Kind, canonical

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from helpers.cluster import Driver, Place

pytest_plugins = ["helpers.cluster"]

#: Fields that follow from hashes or whole numbers: equal, whatever the way.
EXACT = {
    *{"column", "source_type", "type", "data_class", "rows", "nulls", "empty", "markers", "undecodable", "kinds"},
    *{"distinct", "distinct_low", "distinct_high", "distinct_exact", "key", "minimum", "maximum", "sample"},
    *{"zeros", "negatives", "infinite", "quantile_error", "benford", "length_min", "length_max", "length_median"},
    *{"digits_max", "decimals_max"},
}
#: Sums, and shares of them.
FLOATS = {"type_share", "uniqueness", "mean", "std", "first_digits", "benford_deviation", "length_mean"}
#: Equal if quantiles are exact.
QUANTILES = {"quartiles", "quantiles", "histogram", "outliers", "fence_low", "fence_high"}
#: Equal if frequent values, and if patterns are exact.
TOP, PATTERNS = {"top", "constancy"}, {"patterns"}
OWN = {"table", "position", "top_error", "patterns_error"}

Row = dict[str, str]


# --- comparing --------------------------------------------------------------------------------------------------------


def columns_of(lake: Lake, table: str) -> dict[str, dict[str, Any]]:
    return {record["column"]: record for record in lake.columns(table).to_pylist(maps_as_pydicts="strict")}


def differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """Where two records of one column, scanned in different ways, differ more than they may."""
    assert set(one) == EXACT | FLOATS | QUANTILES | TOP | PATTERNS | OWN, "a new field: say how it may differ"
    wanted = {*EXACT, *(QUANTILES if not one["quantile_error"] else ())}
    wanted |= {*(TOP if one["top_error"] == 0 else ()), *(PATTERNS if one["patterns_error"] == 0 else ())}
    wrong = [field for field in wanted if one[field] != other[field]]
    for field in FLOATS:
        if one[field] != (None if other[field] is None else pytest.approx(other[field], rel=1e-9)):
            wrong.append(field)
    wrong += [field for field in ("top_error", "patterns_error") if (one[field] == 0) != (other[field] == 0)]
    return [f"{one['column']}.{field}: {one[field]!r} != {other[field]!r}" for field in sorted(wrong)]


def assert_same_table(one: Lake, table: str, other: Lake, its_name: str) -> None:
    """Two scans of one table: records, sketches and kinds of problems."""
    mine, theirs = columns_of(one, table), columns_of(other, its_name)
    assert sorted(mine) == sorted(theirs)
    assert [line for column in mine for line in differences(mine[column], theirs[column])] == []
    for column in mine:
        assert sketches_of(one, table, column) == sketches_of(other, its_name, column), column
    assert one._index.table(table)["rows"] == other._index.table(its_name)["rows"]
    assert set(problems_of(one, table)) == set(problems_of(other, its_name))


def sketches_of(lake: Lake, table: str, column: str) -> dict[str, Any]:
    """What hashes left behind of a column."""
    found = lake._index.sketch(table, column)
    numbers = list(zip(*(lake.columns()[name].to_pylist() for name in ("table", "column")), strict=True))
    number = numbers.index((table, column))
    size = int(InvertedIndex(lake._index).sizes[number])
    return {"distinct": found["distinct"], "signature": found["signature"], "size": size}


def problems_of(lake: Lake, table: str) -> dict[tuple[str, str, str], int]:
    """How often what was told of a table; but not that its file was read twice because of how it was cut."""
    found = [problem for problem in lake.problems().to_pylist() if problem["table"] == table]
    return {(p["severity"], p["code"], p["detail"]): p["count"] for p in found if p["code"] != "rescanned"}


def rescanned(lake: Lake) -> list[str]:
    """Tables whose byte ranges did not meet, so that they were read again, whole."""
    return [problem["table"] for problem in lake.problems().to_pylist() if problem["code"] == "rescanned"]


def assert_same_lake(one: Lake, other: Lake) -> None:
    """Two indexes of the same files: every record, every sketch, every problem."""
    from helpers.cluster import contents

    mine, theirs = contents(one), contents(other)
    for part in mine:
        assert mine[part] == theirs[part], part


# --- comparing with the data ------------------------------------------------------------------------------------------


def assert_true(record: dict[str, Any], cells: Sequence[str | None]) -> None:
    """A record against the cells of its column."""
    values = [value for cell in cells if cell is not None and (value := canonical(cell)).kind is not Kind.NULL]
    assert record["rows"] == len(cells)
    assert record["nulls"] == len(cells) - len(values)
    counts = Counter(value.text for value in values)
    assert record["distinct_low"] <= len(counts) <= record["distinct_high"]
    if record["distinct_exact"]:
        assert record["distinct"] == len(counts)
    assert_true_top(record["top"], record["top_error"], counts)
    if record["quantiles"] is not None:
        numeric = record["type"] in ("integer", "decimal")
        kinds = (Kind.INTEGER, Kind.DECIMAL) if numeric else (Kind.DATE, Kind.TIME, Kind.TIMESTAMP)
        assert_true_distribution(record, sorted(value.number for value in values if value.kind in kinds))


def assert_true_top(top: list[dict[str, Any]], error: int, counts: Counter[str]) -> None:
    shown = {entry["value"]: entry["count"] for entry in top}
    for value, count in shown.items():
        assert count <= counts[value] <= count + error, value
    least = min(shown.values(), default=0)
    for value, count in counts.items():
        assert value in shown or count <= least + error or len(shown) < len(top), value


def assert_true_distribution(record: dict[str, Any], numbers: list[float]) -> None:
    n, error = len(numbers), record["quantile_error"]
    assert record["mean"] == pytest.approx(math.fsum(numbers) / n, rel=1e-9)
    slack = error * n + 1
    for i, quantile in enumerate(record["quantiles"]):
        low, high = bisect_left(numbers, quantile), bisect_right(numbers, quantile)
        wanted = n * i / (len(record["quantiles"]) - 1)
        assert low - slack <= wanted <= high + slack, (record["column"], i)
    for edge, bin_ in enumerate(record["histogram"]):
        last = edge == len(record["histogram"]) - 1
        inside = (bisect_right if last else bisect_left)(numbers, bin_["high"]) - bisect_left(numbers, bin_["low"])
        assert abs(inside - bin_["count"]) <= 2 * error * n, (record["column"], edge)
    outside = bisect_left(numbers, record["fence_low"]) + n - bisect_right(numbers, record["fence_high"])
    assert abs(outside - record["outliers"]) <= 2 * error * n, record["column"]


# --- tables -----------------------------------------------------------------------------------------------------------


def make_rows(count: int) -> list[Row]:
    """A table that takes every state beyond what it holds exactly, if it is long, and has every kind of value."""
    dice = random.Random(42)
    cities = [
        "Zürich",
        "Zu\u0308rich",
        " Oslo ",
        "Reykjavík",
        "São Paulo",
        "東京",
        'Saint "Petersburg"',
        "Paris, Texas",
    ]
    rows = []
    for i in range(count):
        start = datetime(2020, 1, 1, tzinfo=UTC)
        rows.append(
            {
                "id": str(i),
                "city": dice.choice(cities),
                "amount": f"{1e6 + dice.gauss(0, 250):.2f}",
                "share": f"{dice.random() * 2 - 1:.12g}",
                "day": (date(2020, 1, 1) + timedelta(days=dice.randrange(700))).isoformat(),
                "moment": (start + timedelta(seconds=dice.randrange(10**8))).strftime("%Y-%m-%d %H:%M:%S"),
                "postcode": f"{dice.randrange(2000):05d}",
                "flag": dice.choice(["true", "false", "yes", "NA", "", "-"]),
                # A few frequent values above a long tail.
                "skewed": f"v{dice.randrange(9) if dice.random() < 0.1 else dice.randrange(count * 9)}",
                "note": f'line {dice.randrange(count)}\nsecond, "quoted" line {dice.randrange(9)}',
                "sparse": str(dice.randrange(10**6)) if dice.random() < 0.05 else "",
            }
        )
    return rows


def csv_text(rows: Sequence[Row]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def write_csv(path: Path, rows: Sequence[Row]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(csv_text(rows), "utf-8")


def arrow_table(rows: Sequence[Row]) -> pa.Table:
    """The same rows, typed."""

    def column(name: str, kind: pa.DataType) -> pa.Array:
        cells = [row[name] if canonical(row[name]).kind is not Kind.NULL else None for row in rows]
        return pa.array(cells, pa.string()).cast(kind)

    return pa.table(
        {
            "id": column("id", pa.int64()),
            "city": column("city", pa.string()),
            "amount": column("amount", pa.decimal128(12, 2)),
            "share": column("share", pa.float64()),
            "day": column("day", pa.date32()),
            "moment": column("moment", pa.timestamp("us")),
            "postcode": column("postcode", pa.string()),
            "skewed": column("skewed", pa.string()),
            "sparse": column("sparse", pa.int32()),
            "tags": pa.array([[row["city"].strip(), row["postcode"]] for row in rows]),
        }
    )


def write_parts(folder: Path, rows: Sequence[Row], parts: int) -> None:
    """One table as a directory of part files, of uneven sizes."""
    cuts = [round(len(rows) * (i / parts) ** 1.5) for i in range(parts + 1)]
    for number, (low, high) in enumerate(pairwise(cuts)):
        write_csv(folder / f"part-{number:05d}.csv", rows[low:high])


def write_trap(path: Path, *, records: int = 40, lines: int = 1500) -> list[Row]:
    """A CSV whose quoted cells hold whole pages of lines that look exactly like records of the table."""
    dice = random.Random(7)

    def record() -> Row:
        return {"id": str(dice.randrange(10**6)), "name": f"n{dice.randrange(50)}", "note": f"w{dice.randrange(99)}"}

    rows = []
    for _ in range(records):
        page = [",".join(record().values()) for _ in range(lines)]
        rows.append(record() | {"note": "\n".join(["see:", *page, "end"])})
        rows += [record() for _ in range(20)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(csv_text(rows), "utf-8")
    return rows


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return make_rows(12_000)


@pytest.fixture(scope="module")
def few_rows() -> list[Row]:
    return make_rows(2_000)


# --- one file, shuffled, split, cut -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cut_lake(
    tmp_path_factory: pytest.TempPathFactory, spark: SparkSession, rows: list[Row], few_rows: list[Row]
) -> dict[str, Lake]:
    """Tables in many guises, in two indexes: files whole, and files cut in pieces of 128 KB."""
    folder = tmp_path_factory.mktemp("guises")
    lake = folder / "lake"
    dice = random.Random(1)
    for name, table in (("long", rows), ("short", few_rows)):
        shuffled = dice.sample(table, len(table))
        by_value = sorted(table, key=lambda row: (row["skewed"], row["city"], row["id"]))
        write_csv(lake / f"{name}.csv", table)
        write_csv(lake / f"{name}-shuffled.csv", shuffled)
        write_csv(lake / f"{name}-sorted.csv", by_value)
        write_parts(lake / f"{name}-parts", shuffled, 10)
        pq.write_table(arrow_table(table), lake / f"{name}.parquet")
        pq.write_table(arrow_table(shuffled), lake / f"{name}-shuffled.parquet", row_group_size=701)
        pq.write_table(arrow_table(by_value), lake / f"{name}-sorted.parquet", row_group_size=len(table) // 3)
    write_corners(lake)
    built = {}
    for name, unit_bytes in (("whole", 1 << 30), ("cut", 1 << 17)):
        build(lake, folder / f"{name}.idx", spark=spark, unit_bytes=unit_bytes)
        built[name] = lakescope.open(folder / f"{name}.idx")
    return built


def write_corners(lake: Path) -> None:
    """Tables in which it would be easy to depend on the order of rows or on where a file is cut."""
    dice = random.Random(3)
    # Many ways of writing a value: they meet in one hash, and take more than one place before they do.
    for name, numbers in (("few", 300), ("many", 20_000)):
        written = [{"written": form.format(n)} for n in range(numbers) for form in ("{}", "{}.0", "+{}")]
        write_csv(lake / f"{name}-forms.csv", dice.sample(written, len(written)))
        write_parts(lake / f"{name}-forms-parts", written, 10)
    # One value twice among more values than are counted one by one: early, or late.
    unique = [{"id": f"k{number}"} for number in range(20_000)]
    for name, parts in (("early", [unique[:1] * 2, unique[1:]]), ("late", [unique[1:], unique[:1] * 2])):
        for number, part in enumerate(parts):
            write_csv(lake / f"nearly-key-{name}" / f"part-{number}.csv", part)
    # One value more than are counted one by one, most of them twice: far apart, or side by side.
    limit = values_limit(0)
    values = [{"id": f"k{number}"} for number in range(limit + 1)]
    repeated = values[: limit - 1]
    for number, part in enumerate([values, repeated[:4_000], repeated[4_000:8_000], repeated[8_000:]]):
        write_csv(lake / "over-limit-apart" / f"part-{number}.csv", part)
    write_csv(lake / "over-limit-beside.csv", sorted([*values, *repeated], key=lambda row: row["id"]))
    # Keys that show up early, or after a hundred others.
    events = [{f"key{number % 100}": number, f"key{(number * 7) % 100}": "x"} for number in range(200)]
    events += [{"serial": number, f"key{number % 100}": number % 5} for number in range(3_000)]
    for name, order in (("late", events), ("early", events[::-1])):
        (lake / f"wide-{name}.jsonl").write_text("".join(json.dumps(event) + "\n" for event in order))
    # Something to tell about every few rows.
    lines = [f"{number},name {number},{number * 3 % 97}.5" for number in range(12_000)]
    for number in range(5, len(lines), 40):
        lines[number] += ",more"
        lines[number + 1] = f"{number},short"
        lines[number + 2] = ""
        lines[number + 3] = f"{number},caf\xe9,8"
    (lake / "messy.csv").write_bytes("\n".join(["id,name,size", *lines, ""]).encode("latin-1"))


@pytest.mark.parametrize("guise", ["{}-shuffled.csv", "{}-sorted.csv", "{}-parts"])
@pytest.mark.parametrize("name", ["long", "short"])
@pytest.mark.parametrize("way", ["whole", "cut"])
def test_a_csv_table_gives_the_same_profile_in_any_order_and_any_cut(
    cut_lake: dict[str, Lake], name: str, guise: str, way: str
) -> None:
    assert_same_table(cut_lake["whole"], f"{name}.csv", cut_lake[way], guise.format(name))


@pytest.mark.parametrize("name", ["long", "short"])
def test_one_csv_file_gives_the_same_profile_whole_and_cut(cut_lake: dict[str, Lake], name: str) -> None:
    table = f"{name}.csv"
    assert cut_lake["whole"]._index.table(table)["units"] == 1
    assert cut_lake["cut"]._index.table(table)["units"] > 1
    assert_same_table(cut_lake["whole"], table, cut_lake["cut"], table)


@pytest.mark.parametrize("guise", ["{}.parquet", "{}-shuffled.parquet", "{}-sorted.parquet"])
@pytest.mark.parametrize("name", ["long", "short"])
@pytest.mark.parametrize("way", ["whole", "cut"])
def test_a_parquet_table_gives_the_same_profile_in_any_order_and_any_cut(
    cut_lake: dict[str, Lake], name: str, guise: str, way: str
) -> None:
    assert_same_table(cut_lake["whole"], f"{name}.parquet", cut_lake[way], guise.format(name))


@pytest.mark.parametrize("way", ["whole", "cut"])
@pytest.mark.parametrize("guise", ["{}.csv", "{}-shuffled.csv", "{}-sorted.csv", "{}-parts"])
def test_profiles_are_true_or_within_their_stated_error(
    cut_lake: dict[str, Lake], rows: list[Row], few_rows: list[Row], guise: str, way: str
) -> None:
    for name, table in (("long", rows), ("short", few_rows)):
        records = columns_of(cut_lake[way], guise.format(name))
        assert list(records) == list(table[0])
        for column, record in records.items():
            assert_true(record, [row[column] for row in table])


def test_the_long_table_goes_beyond_every_exact_state_and_the_short_one_does_not(cut_lake: dict[str, Lake]) -> None:
    long, short = columns_of(cut_lake["cut"], "long.csv"), columns_of(cut_lake["cut"], "short.csv")
    assert long["amount"]["quantile_error"] > 0
    assert long["moment"]["quantile_error"] > 0
    assert not long["id"]["distinct_exact"]
    assert long["skewed"]["top_error"] > 0
    assert all(not record["quantile_error"] and record["top_error"] == 0 for record in short.values())


def test_a_value_has_one_hash_whether_it_is_text_or_typed(cut_lake: dict[str, Lake]) -> None:
    lake = cut_lake["whole"]
    for column in ("id", "city", "amount", "share", "day", "moment", "postcode", "skewed", "sparse"):
        assert sketches_of(lake, "long.csv", column) == sketches_of(lake, "long.parquet", column), column


@pytest.mark.parametrize("name", ["few", "many"])
@pytest.mark.parametrize("way", ["whole", "cut"])
def test_a_sample_does_not_depend_on_how_its_values_are_written(cut_lake: dict[str, Lake], name: str, way: str) -> None:
    assert len(columns_of(cut_lake[way], f"{name}-forms.csv")["written"]["sample"]) == 12
    assert_same_table(cut_lake["whole"], f"{name}-forms.csv", cut_lake[way], f"{name}-forms-parts")


@pytest.mark.parametrize("way", ["whole", "cut"])
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("nearly-key-early", "nearly-key-late"),
        ("over-limit-apart", "over-limit-beside.csv"),
        ("wide-early.jsonl", "wide-late.jsonl"),
    ],
)
def test_the_order_of_rows_does_not_show(cut_lake: dict[str, Lake], one: str, other: str, way: str) -> None:
    assert_same_table(cut_lake["whole"], one, cut_lake[way], other)


@pytest.mark.parametrize("table", ["messy.csv", "long-shuffled.parquet"])
def test_problems_are_counted_alike_whole_and_cut(cut_lake: dict[str, Lake], table: str) -> None:
    found = problems_of(cut_lake["whole"], table)
    assert cut_lake["cut"]._index.table(table)["units"] > 1
    assert found
    assert problems_of(cut_lake["cut"], table) == found


def merge_empty_and_full() -> int | None:
    import numpy as np

    from lakescope.profile.column import ColumnState
    from lakescope.values.cells import understand
    from lakescope.values.text import TextColumn

    full = ColumnState(0)
    starts, ends = np.array([0, 2, 4], np.int32), np.array([1, 3, 5], np.int32)
    full.update(understand(TextColumn("x", np.frombuffer(b"a,b,c", np.uint8), starts, ends)))
    state = ColumnState.from_bytes(ColumnState(0).to_bytes())
    state.merge(ColumnState.from_bytes(full.to_bytes()))
    return state.values.distinct


def test_a_column_that_is_empty_in_its_first_piece_takes_the_values_of_the_next() -> None:
    """In a process of its own: it went on forever once."""
    from helpers.cluster import run_driver

    assert run_driver(merge_empty_and_full, seconds=90) == 3


# --- byte ranges ------------------------------------------------------------------------------------------------------


def test_a_csv_whose_quotes_fool_the_guess_is_scanned_again_and_right(tmp_path: Path, spark: SparkSession) -> None:
    rows = write_trap(tmp_path / "lake" / "trap.csv")
    write_csv(tmp_path / "lake" / "plain.csv", make_rows(300))
    whole = build(tmp_path / "lake", tmp_path / "whole.idx", spark=spark, unit_bytes=1 << 30)
    cut = build(tmp_path / "lake", tmp_path / "cut.idx", spark=spark, unit_bytes=50_000)
    assert whole.summary["jobs"] == 3
    assert cut.summary["jobs"] == 4, "no range was fooled: the trap is none"
    one, other = lakescope.open(tmp_path / "whole.idx"), lakescope.open(tmp_path / "cut.idx")
    assert (rescanned(one), rescanned(other)) == ([], ["trap.csv"])
    for table in ("trap.csv", "plain.csv"):
        assert_same_table(one, table, other, table)
    for column, record in columns_of(other, "trap.csv").items():
        assert_true(record, [row[column] for row in rows])


def test_a_cut_anywhere_in_an_ordinary_file_finds_the_next_record() -> None:
    """Or else the file is read twice: right, but slow."""
    text = csv_text(make_rows(200)).encode()
    data = np.frombuffer(text, np.uint8)
    dialect = detect_dialect(data, whole=True, encoding=Encoding())
    starts = [0]
    for row in csv.reader(io.StringIO(text.decode())):
        line = io.StringIO()
        csv.writer(line, lineterminator="\n").writerow(row)
        starts.append(starts[-1] + len(line.getvalue().encode()))
    assert starts[-1] == len(text), "the writer writes as it reads"
    wrong = []
    for cut in range(starts[1], starts[-70]):
        found = _sync(io.BytesIO(text), cut, dialect)
        if found != starts[bisect_left(starts, cut)]:
            wrong.append((cut, text[cut - 10 : cut], text[cut : cut + 10]))
    assert wrong == []


# --- places -----------------------------------------------------------------------------------------------------------

UNIT_BYTES = 1 << 17


@pytest.fixture(scope="module")
def places_lake(tmp_path_factory: pytest.TempPathFactory, rows: list[Row], few_rows: list[Row]) -> Path:
    """A small lake with big and small tables of several formats, a broken one, and one whose quotes fool the guess."""
    lake = tmp_path_factory.mktemp("places") / "lake"
    write_csv(lake / "long.csv", rows[:10_000])
    write_parts(lake / "parts", few_rows, 10)
    write_trap(lake / "trap.csv", records=12)
    pq.write_table(arrow_table(few_rows), lake / "typed.parquet", row_group_size=500)
    with (lake / "events.jsonl").open("w") as stream:
        for row in few_rows:
            stream.write(json.dumps({"id": int(row["id"]), "at": {"city": row["city"], "day": row["day"]}}) + "\n")
    (lake / "broken.parquet").write_bytes(b"PAR1 this is not Parquet PAR1")
    (lake / "ragged.csv").write_bytes(b"a,b,c\n1,2\n\n1,2,3,4\n\xe9t\xe9,5,6\n" * 50)
    for number in range(30):
        write_csv(lake / "small" / f"{number}.csv", few_rows[number * 10 : number * 10 + 10])
    return lake


def build_at(lake: str, out: str, master: str, unit_bytes: int) -> dict[str, Any]:
    from lakescope.build.build import build

    return build(lake, out, master=master, unit_bytes=unit_bytes).summary


def build_with(spark: SparkSession, lake: str, out: str, unit_bytes: int) -> dict[str, Any]:
    from lakescope.build.build import build

    return build(lake, out, spark=spark, unit_bytes=unit_bytes).summary


def frame_with(spark: SparkSession, parquet: str, out: str) -> dict[str, Any]:
    from lakescope.build.build import build

    return build({"frame": spark.read.parquet(parquet).repartition(3)}, out, spark=spark).summary


def frame_at(parquet: str, out: str, master: str) -> dict[str, Any]:
    from lakescope.build.build import build
    from lakescope.build.session import spark_session

    with spark_session(master=master) as spark:
        return build({"frame": spark.read.parquet(parquet).repartition(3)}, out, spark=spark).summary


def compiled(place: Place) -> set[str]:
    """Kernels that executors compiled and kept."""
    return {str(path.relative_to(place.cache)) for path in place.cache.rglob("*.nb?")}


@pytest.fixture(scope="module")
def local_two(places_lake: Path, spark: SparkSession) -> Lake:
    """The index every other place is compared with."""
    out = places_lake.with_name("local-2.idx")
    build_with(spark, str(places_lake), str(out), UNIT_BYTES)
    return lakescope.open(out)


@pytest.fixture(scope="module")
def standalone(places_lake: Path, cluster_driver: Driver) -> Lake:
    out = places_lake.with_name("standalone.idx")
    cluster_driver.call(build_with, places_lake, out, UNIT_BYTES)
    return lakescope.open(out)


def test_one_core_gives_the_index_of_two(places_lake: Path, local_two: Lake) -> None:
    from helpers.cluster import run_driver

    out = places_lake.with_name("local-1.idx")
    run_driver(build_at, places_lake, out, "local[1]", UNIT_BYTES)
    assert_same_lake(local_two, lakescope.open(out))


@pytest.mark.cluster
def test_a_standalone_cluster_gives_the_index_of_one_machine(local_two: Lake, standalone: Lake, cluster: Place) -> None:
    assert len(cluster.executors()) == 2
    assert_same_lake(local_two, standalone)


@pytest.mark.cluster
def test_spark_connect_gives_the_index_of_one_machine_and_finds_kernels_compiled(
    places_lake: Path, local_two: Lake, standalone: Lake, connect: Place
) -> None:
    from helpers.cluster import run_driver

    before = compiled(connect)
    out = places_lake.with_name("connect.idx")
    run_driver(build_at, places_lake, out, connect.master, UNIT_BYTES, environment=connect.environment)
    assert_same_lake(local_two, lakescope.open(out))
    assert standalone.path != str(out)
    assert before, "the cluster's executors kept no kernel"
    assert compiled(connect) == before, "the server's workers compiled again what the cluster's had compiled"


@pytest.mark.cluster
def test_a_spark_frame_gives_the_profile_of_its_file_on_a_cluster(
    places_lake: Path, local_two: Lake, cluster_driver: Driver
) -> None:
    out = places_lake.with_name("frame-standalone.idx")
    cluster_driver.call(frame_with, places_lake / "typed.parquet", out)
    assert_same_table(local_two, "typed.parquet", lakescope.open(out), "frame")


@pytest.mark.cluster
def test_a_spark_frame_gives_the_profile_of_its_file_on_spark_connect(
    places_lake: Path, local_two: Lake, connect: Place
) -> None:
    from helpers.cluster import run_driver

    out = places_lake.with_name("frame-connect.idx")
    run_driver(frame_at, places_lake / "typed.parquet", out, connect.master, environment=connect.environment)
    assert_same_table(local_two, "typed.parquet", lakescope.open(out), "frame")


# --- counting ---------------------------------------------------------------------------------------------------------


def count_with(spark: SparkSession, parquet: str) -> list[list[Any]]:
    import lakescope

    frame = spark.read.parquet(parquet).repartition(3)
    counters = ["hll++", "bjkst", "akmv", "mincount", "pcsa"]
    found = lakescope.count(frame, counters=counters, n_max=1e6, exact=True)
    return [[each.column, each.counter, each.estimate, each.low, each.high, each.truth] for each in found]


@pytest.mark.cluster
def test_counters_read_the_same_on_a_cluster_and_on_spark_connect(
    places_lake: Path, spark: SparkSession, cluster_driver: Driver, connect: Place
) -> None:
    from helpers.cluster import Driver

    parquet = places_lake / "typed.parquet"
    here = count_with(spark, str(parquet))
    assert here
    assert cluster_driver.call(count_with, parquet) == here
    there = Driver(connect)
    try:
        assert there.call(count_with, parquet) == here
    finally:
        there.close()


def batches_with(spark: SparkSession, path: str) -> dict[str, list[str]]:
    """What each question about all pairs answers on Spark, as sorted lines."""
    import json

    import lakescope

    lake = lakescope.open(path)
    frames = {
        "joins": lake.joinable_batch(spark=spark, k=3),
        "correlations": lake.correlated_batch(spark=spark, k=3),
        "inclusions": lake.inclusions_batch(0.9, spark=spark),
        "dependencies": lake.dependencies_batch(max_lhs=2, budget=None, spark=spark),
    }
    return {name: sorted(json.dumps(row.asDict()) for row in frame.collect()) for name, frame in frames.items()}


@pytest.mark.slow  # executors that never answered a question compile the kernels of search first
@pytest.mark.cluster
def test_all_pairs_are_the_same_on_a_cluster_and_on_spark_connect(
    local_two: Lake, spark: SparkSession, cluster_driver: Driver, connect: Place
) -> None:
    from helpers.cluster import Driver

    here = batches_with(spark, local_two.path)
    assert all(len(lines) > 3 for lines in here.values()), {name: len(lines) for name, lines in here.items()}
    assert cluster_driver.call(batches_with, local_two.path) == here
    there = Driver(connect)
    try:
        assert there.call(batches_with, local_two.path) == here
    finally:
        there.close()
