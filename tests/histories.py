"""Indexes of small lakes, built and updated without Spark."""

from __future__ import annotations

import random
from pathlib import Path

from lakescope.build.build import _plan, scan_here, write_failures, write_problems
from lakescope.build.inputs import Inputs
from lakescope.build.plan import UNIT_BYTES
from lakescope.build.update import update
from lakescope.store.writer import IndexWriter
from test_updates import write_table


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
