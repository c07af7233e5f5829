"""Many small CSVs: CPU time of our whole scan against DuckDB, polars, Spark per table and ydata-profiling.

Each round runs every system once, in a process of its own and in another order. Start-up apart: a system first reads
sixteen other tables, then its time counts. Ours makes profiles only, as the others do, and is shown three ways:
everything (JVM, session, imports, scan, index), in a warm session (everything but start-up; the aims are judged by
it), and marginal (the difference to a smaller lake, per table). A fourth row shows what it takes with the inverted
index for joins, which nobody else makes. Files are in the page cache for all. DuckDB and polars get one thread, which
costs them the least CPU time.
"""

from __future__ import annotations

import csv
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import common
from common import Aim, Json, Run, Spread

OURS, COLD = "lakescope", "lakescope-cold"
ALL_FILES = ("polars", "duckdb")
SUBSET = ("spark", "ydata")
TITLES = {
    OURS: "lakescope, warm session",
    COLD: "lakescope, everything",
    "polars": "polars, bare statistics",
    "duckdb": "DuckDB SUMMARIZE",
    "spark": "spark.read.csv + approx_count_distinct",
    "ydata": "ydata-profiling minimal",
}


@dataclass(slots=True)
class Lake:
    """A folder of CSVs, a smaller folder of some of them, and a subset for the slow systems."""

    name: str
    root: Path
    files: list[str]
    fewer: Path
    fewer_files: int
    subset: list[str]
    runs: dict[str, list[Run]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def cost(self, system: str) -> list[float]:
        """CPU-milliseconds a table, start-up apart, per round; everything for ``COLD``."""
        tables = len(self.subset if system in SUBSET else self.files)
        return [1000 * (run.cpu if system == COLD else run.report["work"]) / tables for run in self.runs[system]]

    def marginal(self) -> list[float]:
        more = len(self.files) - self.fewer_files
        return [1000 * (run.report["work"] - run.report["fewer"]) / more for run in self.runs[OURS]]


def spaced(files: Sequence[str], count: int) -> list[str]:
    """So many files, evenly spaced by size: their mean size is about that of all."""
    by_size = sorted(files, key=lambda file: (Path(file).stat().st_size, file))
    count = min(count, len(by_size))
    return [by_size[(2 * i + 1) * len(by_size) // (2 * count)] for i in range(count)]


def prepare(name: str, root: Path, fewer: int, subset: int) -> Lake:
    files = sorted(str(path) for path in root.rglob("*.csv") if path.is_file())
    folder = common.data_folder(f"{name}-fewer")
    chosen = spaced(files, min(fewer, len(files) // 2))
    for file in chosen:
        target = folder / Path(file).relative_to(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)
    for file in files:
        Path(file).read_bytes()  # into the page cache
    return Lake(name, root, files, folder, len(chosen), spaced(files, subset))


def run_rounds(lake: Lake, systems: Sequence[str], repeats: int, ydata: str | None) -> None:
    warm_up = common.warm_up_tables()
    for round_ in range(repeats):
        for system in common.alternated(systems, round_):
            files = lake.subset if system in SUBSET else lake.files
            job: Json = {"warm_up": warm_up, "files": files, "joins": system == OURS}
            if system in (OURS, COLD):
                job |= {"root": str(lake.root.resolve()), "fewer": str(lake.fewer)}
            python = ydata if system == "ydata" and ydata else sys.executable
            run = common.run_system(system, job, python=python)
            lake.runs.setdefault(system, []).append(run)
            common.say(f"{lake.name}, round {round_ + 1}: {system}, {run.cpu:.1f} CPU-s, {run.wall:.0f} s")


def unread(lake: Lake, system: str) -> dict[str, str]:
    """Files a system gave no rows for, with its reason, by name below the lake."""
    report = lake.runs[system][0].report
    files = lake.subset if system in SUBSET else lake.files
    missing = [file for file in files if file not in report["rows"]]
    names = {file: str(Path(file).relative_to(lake.root)) for file in files}
    reasons = report["failures"]
    found = {}
    for file in missing:
        reason = str(reasons.get(file) or reasons.get(names[file]) or "no table in the index")
        found[names[file]] = reason.replace(str(lake.root.resolve()), lake.name).replace(str(lake.root), lake.name)
    return found


def holds_nothing(file: Path) -> bool:
    return not file.read_bytes().strip()


def row_differences(lake: Lake, system: str) -> list[str]:
    """Files whose number of rows a system sees differently from us; neither need be wrong."""
    mine, theirs = (lake.runs[name][0].report["rows"] for name in (OURS, system))
    lines = []
    for file in theirs:
        if file in mine and theirs[file] != mine[file]:
            name = Path(file).relative_to(lake.root)
            lines.append(f"{name}: {theirs[file]}, ours {mine[file]}, Python's csv {csv_rows(file)}")
    return lines


def csv_rows(file: str) -> int:
    """Records below the first line, blank lines apart, as Python's csv module sees them."""
    with Path(file).open(newline="", encoding="utf-8", errors="replace") as lines:
        return sum(1 for record in csv.reader(lines) if record) - 1


def describe(lake: Lake, systems: Sequence[str]) -> tuple[str, Json, list[Aim]]:
    ours = lake.cost(OURS)
    rows: list[list[object]] = []
    size = sum(Path(file).stat().st_size for file in lake.files)
    body: Json = {"tables": len(lake.files), "bytes": size, "systems": {}}
    found: dict[str, Spread] = {}
    for system in [COLD, OURS, *[name for name in systems if name not in (OURS, COLD)]]:
        cost, runs = lake.cost(system), lake.runs[system]
        files = lake.subset if system in SUBSET else lake.files
        failed = unread(lake, system)
        against = None if system in (OURS, COLD) else common.ratios(ours, cost)
        if against:
            found[system] = against
        marginal_against = common.ratios(lake.marginal(), cost) if against else None
        start = Spread.of([run.report["start"] for run in runs])
        different = row_differences(lake, system) if system not in (OURS, COLD) else []
        body["systems"][system] = {
            "tables": len(files),
            "bytes": sum(Path(file).stat().st_size for file in files),
            "cpu_ms_per_table": Spread.of(cost),
            "start_cpu_s": start,
            "everything_cpu_s": Spread.of([run.cpu for run in runs]),
            "wall_s": Spread.of([run.wall for run in runs]),
            "ours_over_it": against,
            "ours_marginal_over_it": marginal_against,
            "unread": failed,
            "rows_differ": different,
        }
        rows.append(
            [
                *(TITLES[system], len(files), Spread.of(cost), "in it" if system == COLD else start),
                *(against or "", marginal_against or "", len(failed), len(different) if against else ""),
            ]
        )
        if system == OURS:
            marginal = Spread.of(lake.marginal())
            body["systems"][OURS]["marginal_cpu_ms_per_table"] = marginal
            title = f"lakescope, marginal (against {lake.fewer_files} tables)"
            rows.append([title, len(lake.files), marginal, *[""] * 5])
            joins = Spread.of([1e3 * run.report["joins"] / len(lake.files) for run in runs])
            body["systems"][OURS]["with_joins_cpu_ms_per_table"] = joins
            rows.append(["lakescope, warm session, with the inverted index", len(lake.files), joins, *[""] * 5])
    headers = ["system", "tables", "CPU-ms a table", "start-up CPU-s", "ours warm / it", "ours marginal / it"]
    text = f"## {lake.name}: {len(lake.files)} tables, {common.show_bytes(body['bytes'])}\n\n"
    text += common.table([*headers, "unread", "rows differ"], rows)
    for system in systems:
        failed = unread(lake, system)
        if failed and system != COLD:
            shown = "\n".join(f"- {name}: {reason}" for name, reason in list(failed.items())[:20])
            share = len(failed) / body["systems"][system]["tables"]
            text += f"\n\nNot read by {system}: {len(failed)} ({share:.1%})\n\n{shown}"
        different = body["systems"][system]["rows_differ"]
        if different:
            shown = "\n".join(f"- {line}" for line in different[:10])
            text += f"\n\nRows counted differently by {system}: {len(different)}\n\n{shown}"
    return text, body, aims_of(lake, found)


def aims_of(lake: Lake, found: dict[str, Spread]) -> list[Aim]:
    """The promises, by what was measured in a warm session."""
    bad = [name for name in unread(lake, OURS) if not holds_nothing(lake.root / name)]
    return [
        common.at_most(f"{lake.name}: CPU time, ours / DuckDB", 0.5, found.get("duckdb")),
        common.at_most(f"{lake.name}: CPU time, ours / polars", 4.0, found.get("polars")),
        common.at_most(f"{lake.name}: CPU time, ours / Spark per table", 1 / 50, found.get("spark")),
        common.at_most(f"{lake.name}: CPU time, ours / ydata-profiling", 1 / 10, found.get("ydata")),
        common.at_most(f"{lake.name}: files we cannot read, empty ones apart", 0, len(bad)),
    ]


def main() -> None:
    parser = common.arguments(__doc__)
    parser.add_argument("--tables", type=int, default=1000, help="generated small tables; 0: only --lake")
    parser.add_argument("--fewer", type=int, default=200, help="tables of the smaller lake for the marginal cost")
    parser.add_argument("--subset", type=int, default=40, help="tables for Spark and ydata-profiling")
    parser.add_argument("--lake", type=Path, help="also a folder of real CSVs")
    parser.add_argument("--without", nargs="*", default=[], choices=[*ALL_FILES, *SUBSET], help="peers to leave out")
    options = parser.parse_args()
    from lakescope.demo import write_many_csvs

    notes: list[str] = []
    systems = [OURS, COLD, *[name for name in [*ALL_FILES, *SUBSET] if name not in options.without]]
    ydata: str | None = None
    if "ydata" in systems:
        ydata, why = common.ydata_python()
        if ydata is None:
            notes.append(why)
            systems.remove("ydata")
    common.prime()
    lakes = []
    if options.tables:
        root = common.data_folder("many", keep=options.keep)
        write_many_csvs(root, tables=options.tables)
        lakes.append(prepare("generated", root, options.fewer, options.subset))
    if options.lake and options.lake.is_dir():
        lakes.append(prepare(options.lake.name, options.lake.resolve(), options.fewer, options.subset))
    elif options.lake:
        notes.append(f"the lake {options.lake.name} is not here and was left out")
    body: Json = {"repeats": options.repeats, "notes": notes, "lakes": {}}
    sections: list[str] = []
    aims: list[Aim] = []
    versions: Json = {}
    for lake in lakes:
        run_rounds(lake, systems, options.repeats, ydata)
        text, body["lakes"][lake.name], more = describe(lake, systems)
        sections.append(text)
        aims += more
        for runs in lake.runs.values():
            versions |= runs[0].report["versions"]
    how = f"Medians of {options.repeats} rounds (smallest-largest); ratios are taken within a round. " + " ".join(
        " ".join(line.split()) for line in (__doc__ or "").split("\n\n", 1)[1:]
    )
    sections += [how, *(f"Note: {note}" for note in notes)]
    common.publish("scan_many", "Many small tables", body, sections, aims, versions, options.out)


if __name__ == "__main__":
    main()
