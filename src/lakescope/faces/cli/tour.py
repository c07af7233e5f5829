"""The demo: make a lake, index it, and walk through what was found."""

from __future__ import annotations

import os
from pathlib import Path

from lakescope.faces.cli.output import say, write
from lakescope.faces.cli.progress import ProgressLine, duration
from lakescope.show.text import aligned, size_text


def tour(folder: str, *, scale: float, seed: int, master: str | None) -> None:
    """Write the demo lake, index it on Spark, show tables, a profile and the problems."""
    import lakescope
    from lakescope.demo import write_demo_lake

    lake_path, index_path = Path(folder) / "lake", Path(folder) / "lake.idx"
    say(f"writing a demo lake to {lake_path} ...")
    write_demo_lake(lake_path, seed=seed, scale=scale)
    say("starting Spark ...")
    line = ProgressLine()
    try:
        lake = lakescope.index(lake_path, index_path, master=master, progress=line)
    finally:
        line.close()
    info = lake.info()
    write(
        f"\n{info['tables']:,} tables, {info['columns']:,} columns, {info['rows']:,} rows, {size_text(info['bytes'])}, "
        f"indexed in {duration(info['seconds'])}\n"
    )
    records = sorted(lake.tables().to_pylist(), key=lambda record: -record["rows"])[:10]
    rows = [[r["table"], r["format"], f"{r['rows']:,}", f"{r['columns']}"] for r in records]
    write("the largest tables:\n" + "\n".join(aligned(["table", "format", "rows", "columns"], rows)) + "\n")
    write(str(lake.profile(records[0]["table"])) + "\n")
    errors = [problem for problem in lake.problems().to_pylist() if problem["severity"] == "error"]
    write(f"{len(errors)} files could not be read, or not to their end, and nothing else suffered:")
    write("\n".join(aligned(["table", "reason"], [[e["table"], e["detail"][:90]] for e in errors])) + "\n")
    write("now ask for yourself:")
    # ./run says how it is called; installed by pip, the command is on the path.
    program = os.environ.get("LAKESCOPE_COMMAND", "lakescope")
    for command in ("tables", "columns", "problems", "info"):
        write(f"  {program} {command} {index_path}")
    write(f"  {program} profile {index_path} {records[1]['table']}")
