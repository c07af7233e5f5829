"""Indexes of small lakes, built and updated without Spark."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import lakescope
from helpers import crashes
from lakescope.build.build import _plan, scan_here, write_failures, write_problems
from lakescope.build.inputs import Inputs
from lakescope.build.plan import UNIT_BYTES
from lakescope.build.update import update
from lakescope.lake import Lake
from lakescope.store.writer import IndexWriter

Rows = list[tuple[Any, ...]]

WORDS = [f"w{number}" for number in range(200)]


def write_table(path: Path, dice: random.Random) -> None:
    rows, pool = dice.randrange(5, 60), dice.sample(WORDS, dice.randrange(20, 150))
    columns = [f"c{number}" for number in range(dice.randrange(1, 4))]
    lines = [",".join(["key", *columns, "num", "day"])]
    for row in range(rows):
        cells = [pool[row % len(pool)], *(dice.choice(pool) for _ in columns), str(dice.randrange(100) + row)]
        lines.append(",".join([*cells, f"2021-01-{row % 28 + 1:02d}"]))
    path.write_text("\n".join([*lines, ""]))
    # A second write within the clock's grain must not look like the first.
    times = 1_600_000_000 + dice.random() * 1e6
    os.utime(path, (times, times))


def built_here(folder: Path, out: Path) -> Path:
    """The index of a folder, by the tasks of a build in this process."""
    inputs = Inputs.of(folder)
    with IndexWriter(out) as writer:
        plan = _plan(inputs, writer.staging, UNIT_BYTES)
        outcome = scan_here(plan, writer.staging, joins=True)
        problems = write_problems("problems", plan.problems + outcome.problems, writer.staging)
        files = [*outcome.files, *problems, *write_failures(plan.failed, writer.staging)]
        names = ("tables", "columns", "rows", "bytes")
        summary = {**{name: outcome.counts.get(name, 0) for name in names}, "failed": 0, "jobs": 0, "seconds": 0.0}
        summary["join"] = outcome.inverted
        given = inputs.remembered(UNIT_BYTES, joins=True)
        writer.publish(files, version="test", sources=inputs.names(), summary=summary, given=given)
    return out


def history(folder: Path, seed: int, *, tables: int = 6, steps: int = 3) -> Path:
    """The index of a lake of small tables after some updates: segments, and tables that are gone."""
    dice = random.Random(seed)
    lake = folder / "lake"
    lake.mkdir(parents=True)
    for number in range(tables):
        write_table(lake / f"t{number}.csv", dice)
    index = built_here(lake, folder / "lake.idx")
    for step in range(steps):
        write_table(lake / f"n{step}.csv", dice)
        write_table(lake / f"t{dice.randrange(tables)}.csv", dice)
        if step == 1:
            (lake / "t0.csv").unlink(missing_ok=True)
        update(index)
    return index


def write_rows(path: Path, header: str, rows: Rows, when: int) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows), ""]))
    os.utime(path, (1_600_000_000 + when, 1_600_000_000 + when))


def three_versions(tmp_path: Path) -> Lake:
    """A table of three versions: the second changes everything, the third nothing but a row."""
    path = tmp_path / "lake" / "t.csv"
    write_rows(path, "id,color,size,note", [(i, "red" if i % 2 else "blue", i % 50, f"n{i}") for i in range(1000)], 1)
    write_rows(tmp_path / "lake" / "other.csv", "a", [(i,) for i in range(9)], 1)
    with crashes.without_spark():
        lake = lakescope.index(tmp_path / "lake", tmp_path / "lake.idx")
    rows = [(i % 500, "green" if i % 2 else "", 25 + i % 50, f"x{i % 7}") for i in range(1000)]
    write_rows(path, "id,color,size,extra", rows, 2)
    lake.update()
    write_rows(path, "id,color,size,extra", [*rows, (500, "green", 30, "x1")], 3)
    lake.update()
    return lake
