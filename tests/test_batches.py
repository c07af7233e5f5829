"""Every question about all pairs on Spark: over segments and tables that are gone, what one-by-one questions answer."""

from __future__ import annotations

import random
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import lakescope
from helpers.answers import same
from helpers.histories import history

if TYPE_CHECKING:
    from lakescope.build.batch import Task
    from lakescope.lake import Lake


@pytest.fixture(scope="module")
def updated(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    folder = tmp_path_factory.mktemp("batches")
    dice = random.Random(1)
    index = history(folder, seed=21)
    names = [(dice.choice(["Ann", "Bob", "Cai", "Dee", "Eve"]), f"Mc{dice.getrandbits(30):x}") for _ in range(60)]
    (folder / "lake/first.csv").write_text("\n".join(["name,x", *(f"{a} {b},{len(b)}" for a, b in names), ""]))
    (folder / "lake/last.csv").write_text("\n".join(["person,y", *(f"{b}; {a},1" for a, b in names), ""]).lower())
    lake = lakescope.open(index)
    lake.update()
    assert len(lake._index.manifest.segments) > 3
    assert lake._index.manifest.of_kind("tombstones")
    return lake


class Rows:
    """What a job returns, when its tasks are run in this process, one after the other."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def collect(self) -> list[Any]:
        return [SimpleNamespace(asDict=lambda row=row: row) for row in self.table.to_pylist()]


def over_numbers(_: object, count: int, task: Task, schema: pa.Schema) -> Rows:
    numbers = (pa.record_batch([pa.array([number])], ["id"]) for number in range(count))
    return Rows(pa.Table.from_batches(list(task(numbers)), schema))


def over_parts(asked: Rows, parts: int, search: Task, found: pa.Schema, merge: Task, schema: pa.Schema) -> Rows:
    rows = [{**row, "part": part} for part in range(parts) for row in asked.table.to_pylist()]
    said = pa.Table.from_batches(list(search(iter(pa.Table.from_pylist(rows).to_batches()))), found)
    merged = merge(iter(said.sort_by([("query", "ascending"), ("part", "ascending")]).to_batches()))
    return Rows(pa.Table.from_batches(list(merged), schema))


@pytest.fixture(params=["here", pytest.param("spark", marks=pytest.mark.slow)])
def session(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A Spark session; or none, and jobs are done by their tasks alone."""
    if request.param == "spark":
        return request.getfixturevalue("spark")
    monkeypatch.setattr("lakescope.build.batch.over_numbers", over_numbers)
    monkeypatch.setattr("lakescope.build.batch.over_parts", over_parts)
    return None


def told(frame: Any, *key: str) -> dict[Any, list[dict[str, Any]]]:
    """Rows of a batch by what was asked."""
    found: dict[Any, list[dict[str, Any]]] = {}
    for row in frame.collect():
        record = row.asDict()
        found.setdefault(tuple(record[name] for name in key), []).append(record)
    return found


def check(rows: list[dict[str, Any]], records: list[dict[str, Any]]) -> None:
    """Rows say what records say, in the same order; a batch has some of their fields."""
    assert len(rows) == len(records)
    for row, record in zip(rows, records, strict=True):
        shared = {name: row[name] for name in row if name in record}
        assert same(shared, {name: record[name] for name in shared}), (row, record)


def test_joins(updated: Lake, session: Any) -> None:
    for options in ({"k": 3}, {"threshold": 0.4}):
        batch = told(updated.joinable_batch(spark=session, **options), "query_table", "query_column")
        assert len(batch) > 5
        for (table, column), rows in batch.items():
            check(rows, updated.joinable(table, on=column, **options).to_dicts())


def test_correlations(updated: Lake, session: Any) -> None:
    batch = told(updated.correlated_batch(spark=session, k=3), "query_table", "query_key", "query_column")
    assert len(batch) > 3
    for (table, key, column), rows in batch.items():
        check(rows, updated.correlated(table, key=key.split(", "), target=column, k=3).to_dicts())


def test_inclusions(updated: Lake, session: Any) -> None:
    for verify in (False, True):
        rows = [row.asDict() for row in updated.inclusions_batch(0.5, spark=session, verify=verify).collect()]
        local = updated.inclusions(0.5, verify=verify)
        names = ("child_table", "child_column", "parent_table", "parent_column")
        assert sum(row["evidence"] == "unknown" for row in rows) == local.info["unknown"]
        pairs = sorted((row for row in rows if row["evidence"] != "unknown"), key=lambda row: [row[n] for n in names])
        check(pairs, sorted(local.to_dicts(), key=lambda row: [row[n] for n in names]))


def test_headers(updated: Lake, session: Any) -> None:
    tables = ["t1.csv", "n0.csv"]
    batch = told(updated.suggest_headers_batch(tables, spark=session, parts=2), "query_table", "position")
    for table in tables:
        found = updated.suggest_headers(table)
        for position, candidates in enumerate(found.candidates):
            rows = sorted(batch.get((table, position), []), key=lambda row: row["rank"])
            assert [row["header"] for row in rows] == [each.header for each in candidates]


def test_dependencies_and_transformations(updated: Lake, session: Any) -> None:
    found = told(updated.dependencies_batch(max_lhs=2, budget=None, spark=session), "table")
    there = {name for (name,) in found}
    assert there <= set(updated.tables()["table"].to_pylist())
    assert "t0.csv" not in there, "it is gone"
    for table in sorted(there)[:3]:
        one = lakescope.dependencies(updated.location(table), max_lhs=2, budget=None)
        wanted = {(tuple(each.lhs), each.rhs) for each in one}
        assert {(tuple(row["lhs"]), row["rhs"]) for row in found[(table,)]} == wanted
    batch = told(updated.autojoin_batch(spark=session, budget=None), "query_table")
    assert any(rows[0]["table"] for rows in batch.values())
    for (table,), rows in batch.items():
        records = updated.autojoin(table, budget=None).to_dicts()
        check(rows, [{**each, "columns": list(each["columns"]), "keys": list(each["keys"])} for each in records])


def test_a_batch_of_transformations_says_what_it_leaves_out(updated: Lake) -> None:
    """The task as an executor runs it, without Spark: a table that cannot be read has a record that says so."""
    from lakescope.engines.transforms.discover import TransformCriteria
    from lakescope.engines.transforms.lake_wide import SearchTransforms

    names = updated.tables()["table"].to_pylist()
    task = SearchTransforms(updated.opened_as, updated.info()["generation"], TransformCriteria(), None)

    def ask(table: str) -> list[dict[str, Any]]:
        numbers = pa.record_batch([pa.array([names.index(table)])], ["id"])
        return [row for batch in task(iter([numbers])) for row in batch.to_pylist()]

    assert [row["table"] for row in ask("first.csv")] == ["last.csv"]
    place = Path(updated.location("last.csv"))
    hidden = place.rename(place.with_suffix(".gone"))
    (row,) = ask("last.csv")
    hidden.rename(place)
    assert row["table"] == ""
    assert "last.csv" in row["note"]
