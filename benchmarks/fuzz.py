"""Hostile bytes: seeds of every format are damaged and read until time is up; nobody may crash, hang or let errors out.

Seeds are small whole files of every format that is read, and the files of an index. An input is one of them with bits
flipped, numbers replaced by extreme ones, pieces removed, doubled or taken from another seed, tokens of the format
strewn in, most often near an end, where formats keep their structure; packed files are also damaged inside and packed
again, and Parquet and Arrow files also made anew, of random types and options. Each goes through finding, planning,
scanning and merging as in a build, in a child process that may allocate 3 GB; files of an index are opened and asked
every kind of question. A table or a problem is a good end, for an index an answer or a refusal. A crash is the end of
the child, a hang its silence for 60 seconds, an escape any exception that is not one of ours. Only time spent on inputs
counts. The same seed gives the same inputs; ``--merge`` adds a run to those that were published before.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from typing import Any

import common
from common import Aim

sys.path.insert(0, str(common.HERE.parent / "tests"))

from helpers import fuzzing

_BAD = ("crash", "hang", "escaped")


def _run(minutes: float, seed: int, keep: Path | None) -> dict[str, Any]:
    tally = fuzzing.fuzz(60 * minutes, seed, keep, common.say)
    outcomes = [[kind, end, count] for (kind, end), count in sorted(tally.outcomes.items())]
    return {"seed": seed, "seconds": round(tally.seconds, 1), "outcomes": outcomes, "defects": tally.defects}


def _tables(runs: list[dict[str, Any]]) -> list[str]:
    counts: Counter[tuple[str, str]] = Counter()
    for run in runs:
        for kind, end, count in run["outcomes"]:
            counts[kind, end] += count
    ends = sorted({end for _, end in counts}, key=lambda end: (end in _BAD, end))
    kinds = sorted({kind for kind, _ in counts})
    rows = [[kind, sum(counts[kind, end] for end in ends), *(counts[kind, end] for end in ends)] for kind in kinds]
    every = [sum(counts[kind, end] for kind in kinds) for end in ends]
    rows.append(["all", sum(every), *every])
    shown = [[row[0], *(f"{cell:,}" for cell in row[1:])] for row in rows]
    told = [
        [
            f"{run['seed']}",
            f"{run['seconds'] / 60:.1f}",
            f"{sum(count for *_, count in run['outcomes']):,}",
            len(run["defects"]),
        ]
        for run in runs
    ]
    sections = [
        "## What became of the inputs\n\n" + common.table(["format", "inputs", *ends], shown),
        "## Runs\n\n" + common.table(["seed", "minutes", "inputs", "defects"], told),
    ]
    defects = [defect for run in runs for defect in run["defects"]]
    if defects:
        listed = [f"- seed {each['seed']}, input {each['number']} ({each['name']}): {each['what']}" for each in defects]
        sections.append("## Defects\n\n" + "\n".join(line[:300] for line in listed))
    return sections


def main() -> None:
    parser = common.arguments(__doc__)
    parser.add_argument("--minutes", type=float, default=20.0, help="how long inputs are read")
    parser.add_argument("--seed", type=int, default=1, help="of the inputs")
    parser.add_argument("--merge", action="store_true", help="add to the runs that were published before")
    parser.add_argument("--save", type=Path, help="folder for inputs that do harm")
    options = parser.parse_args()
    published = options.out / "fuzz.json"
    runs = json.loads(published.read_text())["runs"] if options.merge and published.exists() else []
    runs = [run for run in runs if run["seed"] != options.seed]
    runs.append(_run(options.minutes, options.seed, options.save))
    ends = Counter(dict.fromkeys(_BAD, 0))
    for run in runs:
        for _, end, count in run["outcomes"]:
            ends[end] += count
    minutes = sum(run["seconds"] for run in runs) / 60
    aims = [
        Aim("minutes of reading", ">= 20", f"{minutes:.1f}", minutes >= 20),
        *(Aim(f"inputs that ended in: {end}", "0", str(ends[end]), ends[end] == 0) for end in _BAD),
    ]
    about = " ".join((__doc__ or "").split("\n\n", 1)[1].split())
    libraries = ("lakescope", "numpy", "numba", "pyarrow", "fastexcel", "duckdb")
    versions = {name: version(name) for name in libraries}
    common.publish("fuzz", "Hostile bytes", {"runs": runs}, [*_tables(runs), about], aims, versions, options.out)


if __name__ == "__main__":
    main()
