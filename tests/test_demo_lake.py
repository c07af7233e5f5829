"""The demo lake: the same every time, and its recorded truth holds for the files as other readers see them."""

from __future__ import annotations

import csv
import datetime as dt
import gzip
import hashlib
import io
import itertools
import json
import sqlite3
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import fastexcel
import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from lakescope.demo import DemoTruth, tally, truth_path, write_big_csv, write_demo_lake, write_many_csvs
from lakescope.demo.__main__ import main
from lakescope.demo.big import COLUMNS
from lakescope.demo.words.countries import COUNTRIES
from lakescope.demo.words.elements import ELEMENTS
from lakescope.demo.words.usa import STATES
from lakescope.errors import BadRequest

Row = tuple[str | None, ...]


@dataclass(frozen=True)
class Demo:
    path: Path
    truth: DemoTruth

    def rows(self, table: str) -> list[Row]:
        return _read(self.path, table, self.truth.tables[table]["header"])[1]

    def names(self, table: str) -> list[str] | None:
        return _read(self.path, table, self.truth.tables[table]["header"])[0]

    def columns(self, table: str, names: Iterable[str]) -> list[Row]:
        """The named columns row by row, by their true names where the file does not show them."""
        known = {h["table"]: h["true"] for h in self.truth.headers}.get(table) or self.names(table)
        assert known is not None
        at = [known.index(name) for name in names]
        return [tuple(row[i] for i in at) for row in self.rows(table)]

    def values(self, table: str, names: Iterable[str]) -> set[Row]:
        return {row for row in self.columns(table, names) if None not in row}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    path = tmp_path_factory.mktemp("demo") / "lake"
    return Demo(path, write_demo_lake(path))


@pytest.fixture(scope="module")
def scaled(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """Six times as large, from another seed."""
    path = tmp_path_factory.mktemp("scaled") / "lake"
    return Demo(path, write_demo_lake(path, seed=7, scale=6))


# ---- reading back, with readers the generator does not use -----------------------------------------------------------


def _text(value: Any) -> str | None:
    if value is None or value in ("", "NA"):
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, dt.datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S")
    return unicodedata.normalize("NFC", str(value))


def _flat(record: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in record.items():
        found |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
    return found


@cache
def _read(root: Path, table: str, header: bool) -> tuple[list[str] | None, list[Row]]:
    file, _, part = table.partition("::")
    path = root / file
    if ".csv" in path.suffixes or ".tsv" in path.suffixes:
        return _read_csv(path, header)
    if path.suffix == ".jsonl":
        records = [_flat(json.loads(line)) for line in path.read_text("utf-8").splitlines()]
        names = list(dict.fromkeys(key for record in records for key in record))
        return names, [tuple(_text(record.get(name)) for name in names) for record in records]
    if path.suffix == ".sqlite":
        db = sqlite3.connect(path)
        cursor = db.execute(f'select * from "{part}"')
        names, rows = [d[0] for d in cursor.description], [tuple(map(_text, row)) for row in cursor]
        db.close()
        return names, rows
    if path.suffix == ".xlsx":
        data = pa.table(fastexcel.read_excel(str(path)).load_sheet(part).to_arrow())
    elif path.is_dir():
        data = pa.concat_tables(pq.read_table(p) for p in sorted(path.glob("part-*.parquet")))
    else:
        read = {".parquet": pq.read_table, ".feather": feather.read_table, ".orc": orc.read_table}[path.suffix]
        data = read(str(path))
    return data.column_names, [
        tuple(map(_text, row)) for row in zip(*(c.to_pylist() for c in data.columns), strict=True)
    ]


def _read_csv(path: Path, header: bool) -> tuple[list[str] | None, list[Row]]:
    raw = path.read_bytes()
    if path.suffix == ".gz":
        raw = gzip.decompress(raw)
    elif path.suffix == ".zst":
        raw = pa.input_stream(str(path), compression="zstd").read()
    content = raw.decode("utf-8-sig")
    above = {"quarterly_report.csv": 3, "city_census.csv": 1}.get(path.name, 0)
    content = content.split("\n", above)[above]
    delimiter = "\t" if ".tsv" in path.suffixes else ";" if content.split("\n", 1)[0].count(";") else ","
    lines = list(csv.reader(io.StringIO(content, newline=""), delimiter=delimiter, strict=True))
    assert len({len(line) for line in lines}) == 1, f"{path.name} is ragged"
    names = lines.pop(0) if header else None
    keep_na = path.name == "countries.csv"  # Namibia
    return names, [tuple(cell if keep_na and cell else _text(cell) for cell in line) for line in lines]


# ---- the lake as a whole ---------------------------------------------------------------------------------------------


def _digests(root: Path) -> dict[str, str]:
    return {
        p.relative_to(root).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest()
        for p in sorted(root.rglob("*"))
        if p.is_file()
    }


def test_same_seed_and_scale_give_the_same_bytes(demo: Demo, tmp_path: Path) -> None:
    again = write_demo_lake(tmp_path / "again")
    assert _digests(tmp_path / "again") == _digests(demo.path)
    assert again.to_dict() == demo.truth.to_dict()
    assert truth_path(tmp_path / "again").read_bytes() == truth_path(demo.path).read_bytes()


def test_another_seed_gives_other_data_with_the_same_plan(demo: Demo, scaled: Demo) -> None:
    assert scaled.truth.tables.keys() == demo.truth.tables.keys()
    assert scaled.truth.broken.keys() == demo.truth.broken.keys()
    assert (scaled.path / "hr/employees.csv").read_bytes() != (demo.path / "hr/employees.csv").read_bytes()
    assert [c["pearson"] for c in scaled.truth.correlations] != [c["pearson"] for c in demo.truth.correlations]
    assert all(edge["parent_unique"] for edge in scaled.truth.foreign_keys)


def test_size_and_spread(demo: Demo) -> None:
    truth = demo.truth
    assert 60 <= len(truth.tables) <= 100
    assert 2_000_000 < sum(truth.files.values()) < 10_000_000
    formats = Counter(entry["format"] for entry in truth.tables.values())
    assert {"csv", "tsv", "csv.gz", "csv.zst", "parquet", "jsonl", "feather", "orc", "sqlite", "xlsx"} <= formats.keys()
    assert formats["csv"] > len(truth.tables) / 2
    assert truth.files.keys() == _digests(demo.path).keys()
    parts = [file for file in truth.files if file.startswith("web/events.parquet/")]
    assert len(parts) == 5
    assert "web/events.parquet/_SUCCESS" in parts


def test_truth_lies_beside_the_lake_and_loads_again(demo: Demo) -> None:
    path = truth_path(demo.path)
    assert path == demo.path.with_name("lake.truth.json")
    assert DemoTruth.load(path).to_dict() == demo.truth.to_dict()


def test_rows_nulls_and_distinct_counts_are_those_of_the_files(demo: Demo) -> None:
    for table, entry in demo.truth.tables.items():
        names, rows = demo.names(table), demo.rows(table)
        assert len(rows) == entry["rows"], table
        if names is not None and not table.endswith(".jsonl"):
            assert names == [column["name"] for column in entry["columns"]], table
        order = range(len(entry["columns"]))
        if table.endswith(".jsonl"):
            assert names is not None
            order = [names.index(column["name"]) for column in entry["columns"]]  # type: ignore[assignment]
        for column, at in zip(entry["columns"], order, strict=True):
            cells = [row[at] for row in rows]
            assert column["nulls"] == cells.count(None), (table, column)
            assert column["distinct"] == len(set(cells) - {None}), (table, column)


def test_a_value_that_looks_missing_is_pointed_out(demo: Demo) -> None:
    odd = {(t, c["name"]) for t, entry in demo.truth.tables.items() for c in entry["columns"] if c.get("looks_null")}
    assert odd == {("world/countries.csv", "iso2"), ("quality/patients.csv", "smoker")}


# ---- joins -----------------------------------------------------------------------------------------------------------


def test_joins_are_as_recorded(demo: Demo) -> None:
    for join in demo.truth.joins:
        left = demo.values(join["left"]["table"], join["left"]["columns"])
        right = demo.values(join["right"]["table"], join["right"]["columns"])
        assert (len(left), len(right), len(left & right)) == (
            join["left_distinct"],
            join["right_distinct"],
            join["overlap"],
        ), join
        assert join["left_in_right"] == len(left & right) / len(left)
        assert join["right_in_left"] == len(left & right) / len(right)
        if join["kind"] == "exact":
            assert left <= right


def test_partial_joins_hit_their_planned_containment_both_ways(demo: Demo) -> None:
    partial = [join for join in demo.truth.joins if join["kind"] == "partial"]
    assert [join["planned"] for join in partial] == [[0.9, 0.3], [0.7, 0.5], [0.5, 0.7], [0.3, 0.9]]
    for join in partial:
        assert [join["left_in_right"], join["right_in_left"]] == pytest.approx(join["planned"], abs=0.005)


def test_one_join_needs_unicode_normalisation(demo: Demo) -> None:
    raw = (demo.path / "world/heritage_sites.csv").read_text("utf-8")
    assert not unicodedata.is_normalized("NFC", raw)


# ---- transformations and look-ups ------------------------------------------------------------------------------------


def _us_date(iso: str) -> str:
    year, month, day = iso.split("-")
    return f"{month}/{day}/{year}"


def _invoice(entry: str) -> str:
    year, serial = entry.split("/")
    return f"INV-{serial}-{year}"


RULES: dict[str, Callable[..., str]] = {
    "name order": lambda name: ", ".join(reversed(name.split(" "))),
    "e-mail from name": lambda name: name.lower().replace(" ", ".") + "@lakeshore.example",
    "user id from name": lambda name: (name[0] + name.split(" ")[1]).lower(),
    "code with another prefix": lambda code: code.replace("businessref_", "businessid_"),
    "phone format": lambda phone: phone[1:4] + phone[5:].replace(" ", "-"),
    "date format": _us_date,
    "two columns as one": lambda city, state: f"{city}, {state}",
    "code in another order": _invoice,
}


@pytest.mark.parametrize("kind", RULES)
def test_transformation_joins_exactly_the_recorded_pairs(demo: Demo, kind: str) -> None:
    (fact,) = [t for t in demo.truth.transforms if t["kind"] == kind]
    left = demo.columns(fact["left"]["table"], fact["left"]["columns"])
    right = [row[0] for row in demo.columns(fact["right"]["table"], fact["right"]["columns"])]
    assert (len(left), len(right)) == (fact["left_rows"], fact["right_rows"])
    assert len(set(right)) == len(right), "the target is a key"
    where = {value: row for row, value in enumerate(right)}
    made = [RULES[kind](*row) for row in left]
    assert [[i, where[m]] for i, m in enumerate(made) if m in where] == fact["pairs"]
    assert fact["matched"] == len(fact["pairs"]) >= 90
    if len(fact["left"]["columns"]) == 1:
        assert not {row[0] for row in left} & set(right), "as written, nothing joins"


def test_every_transformation_is_checked(demo: Demo) -> None:
    assert {fact["kind"] for fact in demo.truth.transforms} == RULES.keys()


def test_lookups_are_knowledge_not_spelling(demo: Demo) -> None:
    known = {
        "country -> capital": {c.name: c.capital for c in COUNTRIES},
        "state -> capital": {s.name: s.capital for s in STATES},
        "element -> symbol": dict(ELEMENTS),
    }
    assert {fact["relation"] for fact in demo.truth.lookups} == known.keys()
    for fact in demo.truth.lookups:
        left = [row[0] for row in demo.columns(fact["left"]["table"], fact["left"]["columns"])]
        right = [row[0] for row in demo.columns(fact["right"]["table"], fact["right"]["columns"])]
        pairs = {left[i]: right[j] for i, j in fact["pairs"]}
        assert pairs == known[fact["relation"]]
        assert fact["equal"] == sum(a == b for a, b in pairs.items()) <= 0.05 * len(pairs)


# ---- correlations ----------------------------------------------------------------------------------------------------


def _means(demo: Demo, side: dict[str, Any]) -> dict[Row, float]:
    grouped: dict[Row, list[float]] = defaultdict(list)
    for *key, value in demo.columns(side["table"], [*side["columns"], side["value"]]):
        if value is not None:
            grouped[tuple(key)].append(float(value))
    return {key: sum(values) / len(values) for key, values in grouped.items()}


def test_correlations_are_those_of_the_joined_files(demo: Demo) -> None:
    for fact in demo.truth.correlations:
        left, right = _means(demo, fact["left"]), _means(demo, fact["right"])
        keys = sorted(left.keys() & right.keys())
        assert len(keys) == fact["joined_keys"] >= 100
        expected = np.corrcoef([left[k] for k in keys], [right[k] for k in keys])[0, 1]
        assert fact["pearson"] == pytest.approx(expected, abs=1e-9), fact
        assert fact["containment"] == len(keys) / len(left)


def test_correlations_have_the_planned_shape(demo: Demo) -> None:
    for fact in demo.truth.correlations:
        r, rho = fact["pearson"], fact["spearman"]
        match fact["shape"]:
            case "linear":
                assert r > 0.8, fact
            case "negative":
                assert r < (-0.2 if fact["note"] == "weak" else -0.7), fact
            case "monotone":
                assert abs(rho) > 0.84, fact
                assert abs(rho) > abs(r) + 0.1, fact
            case "trend":
                assert r > 0.9, fact
                assert abs(fact["detrended"]) < 0.3, fact
            case "weak":
                assert abs(r) < 0.5, fact
            case "none":
                assert abs(r) < 0.1, fact
    shapes = Counter(fact["shape"] for fact in demo.truth.correlations)
    assert shapes.keys() == {"linear", "negative", "monotone", "trend", "weak", "none"}
    assert any(fact["right_repeats"] for fact in demo.truth.correlations if fact["shape"] == "linear")
    assert any(len(fact["left"]["columns"]) == 2 for fact in demo.truth.correlations if fact["shape"] == "linear")


def test_repeated_keys_need_their_aggregate_says_duckdb_too(demo: Demo) -> None:
    (fact,) = [f for f in demo.truth.correlations if f["right"]["table"] == "mobility/bike_trips.csv.gz"]
    with duckdb.connect() as db:
        (r,) = db.execute(
            "with t as (select ride_date, avg(minutes) m from read_csv(?) group by 1)"
            " select corr(m, mean_temp_c) from t join read_parquet(?) w on w.date = ride_date",
            [str(demo.path / fact["right"]["table"]), str(demo.path / fact["left"]["table"])],
        ).fetchall()[0]
    assert fact["pearson"] == pytest.approx(r, abs=1e-9)


# ---- keys ------------------------------------------------------------------------------------------------------------


def test_foreign_keys_and_chance_inclusions_are_as_recorded(demo: Demo) -> None:
    for edge in demo.truth.foreign_keys + demo.truth.chance_inclusions:
        child = demo.values(edge["child_table"], edge["child_columns"])
        parent = demo.columns(edge["parent_table"], edge["parent_columns"])
        assert len(set(parent)) == len(parent), "a parent is unique"
        assert edge["parent_unique"]
        orphans = child - set(parent)
        assert edge["orphans"] == len(orphans)
        assert edge["inclusion"] == 1 - len(orphans) / len(child)
        glued = {"\x1f".join(map(str, orphan)) for orphan in orphans}
        assert edge["orphan_examples"] == sorted(glued)[:5]
        tables = demo.truth.databases[edge["database"]]
        assert {edge["child_table"], edge["parent_table"]} <= set(tables)


def test_keys_of_every_kind_are_there(demo: Demo) -> None:
    edges = demo.truth.foreign_keys
    assert any(len(edge["child_columns"]) == 2 for edge in edges)
    assert any(edge["child_table"] == edge["parent_table"] for edge in edges)
    assert {round(edge["inclusion"], 1) for edge in edges} == {1.0, 0.9}
    assert sum(0.8 < edge["inclusion"] < 0.99 for edge in edges) == 2
    assert sum(edge["child_columns"] != edge["parent_columns"] for edge in edges) > len(edges) / 2
    assert all(edge["inclusion"] == 1.0 for edge in demo.truth.chance_inclusions)
    planned = {(e["child_table"], *e["child_columns"]) for e in edges}
    assert not planned & {(e["child_table"], *e["child_columns"]) for e in demo.truth.chance_inclusions}


def test_composite_key_needs_both_columns_says_duckdb(demo: Demo) -> None:
    with duckdb.connect() as db:
        query = (
            "select count(*), count(distinct (order_no, line)), count(l.order_id) from read_csv(?) s"
            " left join read_parquet(?) l on l.order_id = s.order_no and l.line_no = s.line"
        )
        shipments, lines = (str(demo.path / name) for name in ("shop/shipments.csv", "shop/order_lines.parquet"))
        rows, distinct, matched = db.execute(query, [shipments, lines]).fetchall()[0]
    assert rows == distinct == matched == demo.truth.tables["shop/shipments.csv"]["rows"]


# ---- dependencies ----------------------------------------------------------------------------------------------------


def _degree(rows: list[dict[str, Any]], lhs: list[str], rhs: str) -> int:
    groups: dict[Row, Counter[Any]] = defaultdict(Counter)
    for row in rows:
        groups[tuple(row[name] for name in lhs)][row[rhs]] += 1
    return sum(sum(c.values()) - max(c.values()) for c in groups.values())


def _records(demo: Demo, table: str, nulls: str) -> list[dict[str, Any]]:
    names, fresh = demo.names(table), itertools.count()
    assert names is not None
    rows = [dict(zip(names, row, strict=True)) for row in demo.rows(table)]
    if nulls == "skip":
        return [row for row in rows if None not in row.values()]
    if nulls == "distinct":
        return [{k: next(fresh) if v is None else v for k, v in row.items()} for row in rows]
    return rows


def test_dependencies_hold_when_clean_and_break_when_damaged(demo: Demo) -> None:
    for fact in demo.truth.dependencies:
        readings = {"clean": _records(demo, fact["clean"], "equal")}
        readings |= {how: _records(demo, fact["damaged"], how) for how in ("equal", "distinct", "skip")}
        for planted in fact["planted"]:
            measured = {how: _degree(rows, planted["lhs"], planted["rhs"]) for how, rows in readings.items()}
            assert planted["degree"] == measured, planted
            assert measured["clean"] == measured["skip"] == 0 < measured["equal"]
        names = list(readings["clean"][0])
        for how, rows in readings.items():
            single = {(m["lhs"][0], m["rhs"]) for m in fact["minimal"][how] if len(m["lhs"]) == 1}
            pairs = itertools.permutations(names, 2)
            assert single == {(a, b) for a, b in pairs if _degree(rows, [a], b) == 0}, how
            for found in fact["minimal"][how]:
                assert _degree(rows, found["lhs"], found["rhs"]) == 0
        assert fact["minimal"]["clean"] != fact["minimal"]["equal"], "nulls hide some and fake others"


def test_damaged_tables_differ_from_clean_ones_by_nulls_only(demo: Demo) -> None:
    for fact in demo.truth.dependencies:
        clean, damaged = demo.rows(fact["clean"]), demo.rows(fact["damaged"])
        assert all(b is None or a == b for x, y in zip(clean, damaged, strict=True) for a, b in zip(x, y, strict=True))
        assert sum(fact["nulls"].values()) == sum(row.count(None) for row in damaged) > 0


def test_disguised_missing_values_are_counted(demo: Demo) -> None:
    assert {fact["marker"] for fact in demo.truth.disguised} >= {"999", "unknown", "1900-01-01"}
    for fact in demo.truth.disguised:
        cells = [row[0] for row in demo.columns(fact["table"], [fact["column"]])]
        assert fact["count"] == cells.count(fact["marker"]) > 10


# ---- headers ---------------------------------------------------------------------------------------------------------


def test_headers_are_missing_or_misplaced_as_recorded(demo: Demo) -> None:
    facts = {fact["table"]: fact for fact in demo.truth.headers}
    assert sum(fact["shown"] is None for fact in facts.values()) == 3
    for table, fact in facts.items():
        if table.endswith(".parquet"):
            assert pq.read_schema(demo.path / table).names == fact["shown"] != fact["true"]
            continue
        raw = (demo.path / table).read_bytes()
        lines = (gzip.decompress(raw) if table.endswith(".gz") else raw).decode().split("\n")
        delimiter = "\t" if table.endswith(".tsv") else ","
        first = lines[fact["first_data_line"]].split(delimiter)
        assert len(first) == len(fact["true"])
        assert not set(first) & set(fact["true"])
        if fact["shown"] is not None:
            assert lines[fact["first_data_line"] - 1].split(delimiter) == fact["shown"]
        assert len(lines) - 1 - fact["first_data_line"] == demo.truth.tables[table]["rows"]


def test_true_headers_occur_elsewhere_in_the_lake(demo: Demo) -> None:
    shown = {c["name"] for t, e in demo.truth.tables.items() for c in e["columns"] if not t.startswith("legacy/")}
    for fact in demo.truth.headers:
        if fact["shown"] != fact["true"]:
            assert set(fact["true"]) <= shown


# ---- broken files ----------------------------------------------------------------------------------------------------


def test_broken_files_are_kept_apart_from_the_tables(demo: Demo) -> None:
    assert len(demo.truth.broken) >= 25
    assert not demo.truth.broken.keys() & demo.truth.tables.keys()
    assert {entry["expect"] for entry in demo.truth.broken.values()} == {"table", "error"}
    assert demo.truth.broken.keys() == {f for f in demo.truth.files if f.startswith("broken/")}


READERS: dict[str, Callable[[Path], Any]] = {
    "truncated.parquet": pq.read_table,
    "not_parquet.parquet": pq.read_table,
    "truncated.csv.gz": lambda path: gzip.decompress(path.read_bytes()),
    "not_gzip.csv.gz": lambda path: gzip.decompress(path.read_bytes()),
    "truncated.csv.zst": lambda path: _whole_zstd(path),
    "truncated.feather": feather.read_table,
    "truncated.orc": orc.read_table,
    "damaged.sqlite": lambda path: _sqlite_tables(path),
    "not_a_workbook.xlsx": lambda path: fastexcel.read_excel(str(path)),
    "binary.csv": lambda path: path.read_bytes().decode("utf-8"),
}


def _whole_zstd(path: Path) -> bytes:
    content: bytes = pa.input_stream(str(path), compression="zstd").read()
    if not content.endswith(b"\n") or content.count(b"\n") < 2_001:
        raise EOFError("the stream breaks off")
    return content


def _sqlite_tables(path: Path) -> list[Any]:
    db = sqlite3.connect(path)
    try:
        return db.execute("select * from sqlite_master").fetchall()
    finally:
        db.close()


@pytest.mark.parametrize("name", READERS)
def test_unreadable_files_cannot_be_read(demo: Demo, name: str) -> None:
    assert demo.truth.broken[f"broken/{name}"]["expect"] == "error"
    with pytest.raises(Exception):  # noqa: B017, PT011 - each reader has an error of its own
        READERS[name](demo.path / "broken" / name)


def test_odd_text_files_are_odd_in_the_recorded_way(demo: Demo) -> None:
    def raw(name: str) -> bytes:
        return (demo.path / "broken" / name).read_bytes()

    def widths(name: str) -> Counter[int]:
        return Counter(len(row) for row in csv.reader(io.StringIO(raw(name).decode(), newline="")))

    assert raw("empty.csv") == b""
    assert raw("blank_lines.csv").strip() == b""
    assert raw("header_only.csv").count(b"\n") == 1
    assert widths("ragged_rows.csv").keys() == {2, 4, 6}
    assert sum(widths("ragged_rows.csv").values()) == 121
    assert raw("unclosed_quote.csv").count(b'"') == 1
    assert b"\n" not in raw("bare_cr.csv")
    assert raw("bare_cr.csv").count(b"\r") == 101
    assert 0 < raw("mixed_line_ends.csv").count(b"\r\n") < raw("mixed_line_ends.csv").count(b"\n") == 101
    assert raw("duplicate_headers.csv").startswith(b"id,name,name,amount\n")
    assert raw("blank_headers.csv").startswith(b"id,,place,  \n")
    assert widths("trailing_comma.csv") == {4: 1, 5: 60}
    assert max(len(line) for line in raw("huge_cell.csv").split(b"\n")) > 1_000_000
    assert raw("nul_bytes.csv").count(b"\x00") == 2


def test_encodings_are_what_they_claim(demo: Demo) -> None:
    for name in ("latin1.csv", "utf16.csv", "mixed_encodings.csv"):
        raw, entry = (demo.path / "broken" / name).read_bytes(), demo.truth.broken[f"broken/{name}"]
        with pytest.raises(UnicodeDecodeError):
            raw.decode("utf-8")
        if "encoding" in entry:
            rows = list(csv.reader(io.StringIO(raw.decode(entry["encoding"]))))
            assert len(rows) == entry["rows"] + 1
            assert any(not row[1].isascii() for row in rows)


def test_json_lines_break_where_recorded(demo: Demo) -> None:
    good = bad = 0
    for line in (demo.path / "broken/broken_line.jsonl").read_text().splitlines():
        try:
            json.loads(line)
            good += 1
        except json.JSONDecodeError:
            bad += 1
    assert (good, bad) == (demo.truth.broken["broken/broken_line.jsonl"]["rows"], 1)
    deep = (demo.path / "broken/deep.jsonl").read_text().splitlines()
    assert len(deep) == demo.truth.broken["broken/deep.jsonl"]["rows"]
    assert deep[0].count("{") > 60


# ---- scale -----------------------------------------------------------------------------------------------------------


def test_scale_multiplies_the_growing_tables_only(demo: Demo, scaled: Demo) -> None:
    path, big = scaled.path, scaled
    grown = {t for t, entry in big.truth.tables.items() if entry["rows"] > 5 * demo.truth.tables[t]["rows"]}
    assert grown == {
        "shop/orders.csv",
        "shop/order_lines.parquet",
        "shop/shipments.csv",
        "shop/payments.csv.gz",
        "mobility/bike_trips.csv.gz",
        "weather/sensor_readings.csv.zst",
        "web/events.parquet",
        "web/page_views.jsonl",
    }
    assert big.truth.tables["shop/orders.csv"]["rows"] == 24_000  # more than one chunk
    with duckdb.connect() as db:
        orders, payments = (f"read_csv('{path / name}')" for name in ("shop/orders.csv", "shop/payments.csv.gz"))
        lines = f"read_parquet('{path / 'shop/order_lines.parquet'}')"
        facts = {(e["child_table"], e["parent_table"]): e for e in big.truth.foreign_keys}
        found = db.execute(
            "select count(distinct order_ref), count(distinct order_ref) filter (order_id is null)"
            f" from {payments} left join {orders} on order_ref = order_id"
        ).fetchall()[0]
        edge = facts["shop/payments.csv.gz", "shop/orders.csv"]
        assert found == (edge["child_distinct"], edge["orphans"])
        rows, keys = db.execute(f"select count(*), count(distinct (order_id, line_no)) from {lines}").fetchall()[0]
        assert rows == keys == big.truth.tables["shop/order_lines.parquet"]["rows"]
        distinct = db.execute(
            f"select count(distinct order_id), count(distinct total), count(note) from {orders}"
        ).fetchall()[0]
        columns = {c["name"]: c for c in big.truth.tables["shop/orders.csv"]["columns"]}
        assert distinct == (
            columns["order_id"]["distinct"],
            columns["total"]["distinct"],
            24_000 - columns["note"]["nulls"],
        )
    assert sum(p.name.startswith("part-") for p in (path / "web/events.parquet").iterdir()) == 4


@pytest.mark.parametrize("scale", [0, -1, float("nan")])
def test_a_senseless_scale_is_refused(tmp_path: Path, scale: float) -> None:
    with pytest.raises(BadRequest, match="scale"):
        write_demo_lake(tmp_path / "lake", scale=scale)


def test_counting_stays_exact_or_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tally, "CAP", 1_000)
    table = tally.TableTally((), (), whole=False)
    for first in range(0, 200_000, 20_000):
        ids = np.arange(first, first + 20_000)
        table.add(pa.table({"sorted": ids, "twice": ids // 2, "mixed": ids[::-1], "few": ids % 7}))
    assert {c["name"]: c["distinct"] for c in table.record()} == {
        "sorted": 200_000,
        "twice": 100_000,
        "mixed": None,
        "few": 7,
    }


# ---- where it is written ---------------------------------------------------------------------------------------------


def test_only_a_demo_lake_is_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lake = tmp_path / "lake"
    write_demo_lake(lake, scale=0.1)
    assert main([str(lake), "--scale", "0.1", "--seed", "1"]) == 0
    assert "tables" in capsys.readouterr().out
    assert DemoTruth.load(truth_path(lake)).seed == 1
    (lake / "mine.csv").write_text("a\n1\n")
    with pytest.raises(BadRequest, match=r"mine\.csv"):
        write_demo_lake(lake)
    assert (lake / "mine.csv").exists()
    with pytest.raises(BadRequest, match="is a file"):
        write_demo_lake(lake / "mine.csv")


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "big.csv"), "--big", "100000"]) == 0
    assert main([str(tmp_path / "many"), "--many", "3"]) == 0
    assert capsys.readouterr().out.count("rows") == 2
    assert main([str(tmp_path / "big.csv")]) == 2
    assert "is a file" in capsys.readouterr().err


# ---- bulk files ------------------------------------------------------------------------------------------------------


def test_big_csv_is_valid_and_of_the_wanted_size(tmp_path: Path) -> None:
    written = write_big_csv(tmp_path / "big.csv", bytes=6_000_000)
    assert 6_000_000 - 400 < written.bytes == (tmp_path / "big.csv").stat().st_size <= 6_000_000
    with (tmp_path / "big.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, strict=True))
    assert tuple(rows.pop(0)) == COLUMNS
    assert len(rows) == written.rows > 32_768  # more than one block
    assert {len(row) for row in rows} == {10}
    by_name = dict(zip(COLUMNS, zip(*rows, strict=True), strict=True))
    assert [int(v) for v in by_name["id"]] == list(range(1, len(rows) + 1))
    assert {len(v) for v in by_name["account_code"]} == {7}
    assert any(v.startswith("0") for v in by_name["account_code"])
    assert len(set(by_name["account_code"])) > 0.8 * len(rows)
    assert len(set(by_name["recorded_at"])) > 0.6 * len(rows)
    assert len(set(by_name["region"])) == 8
    assert set(by_name["is_member"]) == {"true", "false"}
    assert 0.04 < by_name["units"].count("") / len(rows) < 0.08
    assert any(not v.isascii() for v in by_name["customer_name"])
    for sign in (",", '"', "\n"):
        assert 0.005 < sum(sign in v for v in by_name["remark"]) / len(rows) < 0.2
    dt.date.fromisoformat(by_name["booked_on"][0])
    dt.datetime.fromisoformat(by_name["recorded_at"][-1])


def test_big_csv_is_the_same_again_and_a_prefix_of_a_bigger_one(tmp_path: Path) -> None:
    for name, size in (("a", 2_000_000), ("b", 2_000_000), ("c", 3_000_000)):
        write_big_csv(tmp_path / name, bytes=size, seed=5)
    a, b, c = ((tmp_path / name).read_bytes() for name in "abc")
    assert a == b == c[: len(a)]


def test_many_csvs_are_small_varied_and_valid(tmp_path: Path) -> None:
    written = write_many_csvs(tmp_path / "many", tables=40)
    files = sorted((tmp_path / "many").rglob("*.csv"))
    assert len(files) == written.files == 40
    assert sum(f.stat().st_size for f in files) == written.bytes
    assert 100_000 < written.bytes / 40 < 270_000
    rows, widths = [], []
    for file in files:
        with file.open(encoding="utf-8", newline="") as stream:
            lines = list(csv.reader(stream, strict=True))
        assert len({len(line) for line in lines}) == 1
        assert len(set(lines[0])) == len(lines[0])
        rows.append(len(lines) - 1)
        widths.append(len(lines[0]))
    assert sum(rows) == written.rows
    assert 20 <= min(rows) < 200
    assert 3_000 < max(rows) <= 5_000
    assert 4 <= min(widths) < max(widths) <= 14
    again = write_many_csvs(tmp_path / "again", tables=5)
    assert again.files == 5
    assert _digests(tmp_path / "again").items() <= _digests(tmp_path / "many").items()
