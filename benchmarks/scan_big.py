"""One big CSV: CPU time of our whole scan against DuckDB, polars and Spark; memory of our workers; cost by file size.

Each round runs every system once on the same file, in a process of its own and in another order. Start-up apart: a
system first reads sixteen small tables, then its time counts. Then we alone scan files of growing size, each in a
fresh session: the largest resident set of any Python worker (VmHWM, as the kernel keeps it) must not grow, the cost
must grow linearly. DuckDB and polars get one thread, which costs them the least CPU time; Spark gets its default JVM
options.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from pathlib import Path

import common
from common import Aim, Json, Run, Spread, show_bytes

OURS = "lakescope"
PEERS = ("polars", "duckdb", "spark")
TITLES = {
    OURS: "lakescope",
    "polars": "polars, bare statistics",
    "duckdb": "DuckDB SUMMARIZE",
    "spark": "spark.read.csv + approx_count_distinct",
}
_SPARE = 2 << 30
#: Cost per byte and memory at the largest size over those at the smallest: what counts as linear, and as constant.
LINEAR, CONSTANT = 1.15, 1.15


def make_file(size: int) -> tuple[Path, int]:
    """The CSV of that size, and its rows."""
    from lakescope.demo import write_big_csv

    path = common.DATA / f"big-{size}.csv"
    common.say(f"writing {show_bytes(size)}")
    written = write_big_csv(path, bytes=size)
    return path, written.rows


def fits(size: int) -> bool:
    return common.free_bytes() > size * 1.05 + _SPARE


def job_of(file: Path, polars: str) -> Json:
    return {"warm_up": common.warm_up_tables(), "files": [str(file)], "polars": polars, "jvm": "stock"}


def polars_mode(wanted: str, size: int) -> str:
    """Eager reading is the cheaper one, while the table fits: text takes up to four times the file."""
    if wanted != "auto":
        return wanted
    available = re.search(r"MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text())
    return "eager" if available and 4 * size < int(available[1]) * 1024 else "streaming"


def run(system: str, file: Path, polars: str) -> Run:
    job = job_of(file, polars)
    if system == OURS:
        job["jvm"] = "ours"
    result = common.run_system(system, job)
    common.say(f"{show_bytes(file.stat().st_size)}: {system}, {result.report['work']:.1f} CPU-s, {result.wall:.0f} s")
    return result


Runs = dict[str, list[Run]]


def compare(file: Path, rows: int, systems: Sequence[str], repeats: int, polars: str) -> tuple[str, Json, Runs]:
    runs: Runs = {}
    for round_ in range(repeats):
        for system in common.alternated(systems, round_):
            runs.setdefault(system, []).append(run(system, file, polars))
    size = file.stat().st_size
    ours = [one.report["work"] for one in runs[OURS]]
    body: Json = {"bytes": size, "rows": rows, "polars": polars, "systems": {}}
    lines = []
    for system in systems:
        work = [one.report["work"] for one in runs[system]]
        seen = next(iter(runs[system][0].report["rows"].values()), None)
        failures = list(runs[system][0].report["failures"].values())
        against = common.ratios(ours, work) if system != OURS else None
        peaks = [one.peak for one in runs[system]]
        body["systems"][system] = {
            "cpu_s": Spread.of(work),
            "everything_cpu_s": Spread.of([one.cpu for one in runs[system]]),
            "wall_s": Spread.of([one.report["wall"] for one in runs[system]]),
            "ours_over_it": against,
            "peak_bytes": Spread.of(peaks),
            "rows": seen,
            "failures": failures,
        }
        told = failures[0] if failures else f"{seen:,}" + ("" if seen == rows else f" (there are {rows:,})")
        start = Spread.of([one.report["start"] for one in runs[system]])
        title = TITLES[system] + (f" ({polars})" if system == "polars" else "")
        lines.append([title, Spread.of(work), start, against or "", show_bytes(statistics.median(peaks)), told])
    headers = ["system", "CPU-s", "start-up CPU-s", "ours / it", "largest process", "rows"]
    return f"## {show_bytes(size)}, {rows:,} rows\n\n" + common.table(headers, lines), body, runs


def grow(sizes: Sequence[int], repeats: int, keep: bool, notes: list[str]) -> tuple[str, Json]:
    """We alone, by file size."""
    points: list[Json] = []
    for size in sorted(sizes):
        if not fits(size):
            notes.append(f"{show_bytes(size)} left out: not enough free disk")
            continue
        file, rows = make_file(size)
        try:
            runs = [run(OURS, file, "") for _ in range(repeats)]
        finally:
            if not keep:
                file.unlink()
        per_gb = [one.report["work"] / (size / (1 << 30)) for one in runs]
        points.append(
            {
                "bytes": size,
                "rows": rows,
                "cpu_s": Spread.of([one.report["work"] for one in runs]),
                "cpu_s_per_gb": Spread.of(per_gb),
                "worker_peak_bytes": Spread.of([max(one.worker_peaks) for one in runs]),
                "workers": len(runs[0].worker_peaks),
                "driver_peak_bytes": Spread.of([one.peaks.get("python", 0) for one in runs]),
                "jvm_peak_bytes": Spread.of([one.peaks.get("java", 0) for one in runs]),
            }
        )
    if not points:
        return "", {}
    lines = [
        [
            *(show_bytes(point["bytes"]), f"{point['rows']:,}", point["cpu_s"], point["cpu_s_per_gb"]),
            *(show_bytes(point[name].high) for name in ("worker_peak_bytes", "driver_peak_bytes", "jvm_peak_bytes")),
        ]
        for point in points
    ]
    headers = ["file", "rows", "CPU-s", "CPU-s per GB", "largest worker", "driver", "JVM"]
    first, last = points[0], points[-1]
    body: Json = {
        "points": points,
        "cost_per_gb_largest_over_smallest": last["cpu_s_per_gb"].median / first["cpu_s_per_gb"].median,
        "worker_peak_largest_over_smallest": last["worker_peak_bytes"].high / first["worker_peak_bytes"].high,
    }
    text = f"## Growing, {repeats} runs each\n\n" + common.table(headers, lines)
    if len(points) > 1:
        gb = [point["bytes"] / (1 << 30) for point in points]
        fit = statistics.linear_regression(gb, [point["cpu_s"].median for point in points])
        body["fit"] = {"cpu_s_per_gb": fit.slope, "cpu_s_fixed": fit.intercept}
        cost, memory = body["cost_per_gb_largest_over_smallest"], body["worker_peak_largest_over_smallest"]
        text += (
            f"\n\nStraight line through the medians: {fit.intercept:.1f} CPU-s + {fit.slope:.1f} CPU-s per GB. "
            f"{show_bytes(last['bytes'])} against {show_bytes(first['bytes'])}: cost per GB x{cost:.2f}, "
            f"largest worker x{memory:.2f}."
        )
    return text, body


def main() -> None:
    parser = common.arguments(__doc__)
    parser.add_argument("--bytes", type=common.parse_bytes, default="2G", help="size of the file all systems scan")
    parser.add_argument(
        "--sizes", default="256M,512M,1G,2G,4G,8G", help="sizes we scan alone, as far as the disk allows"
    )
    parser.add_argument("--size-repeats", type=int, default=2, help="runs at each of these sizes")
    parser.add_argument("--polars", choices=["auto", "eager", "streaming"], default="auto")
    parser.add_argument("--without", nargs="*", default=[], choices=PEERS, help="peers to leave out")
    options = parser.parse_args()
    if not fits(options.bytes):
        parser.error(f"not enough free disk for {show_bytes(options.bytes)} and {show_bytes(_SPARE)} to spare")
    common.prime()
    notes: list[str] = []
    systems = [OURS, *[name for name in PEERS if name not in options.without]]
    file, rows = make_file(options.bytes)
    try:
        text, compared, runs = compare(file, rows, systems, options.repeats, polars_mode(options.polars, options.bytes))
    finally:
        if not options.keep:
            file.unlink()
    sizes = [common.parse_bytes(size) for size in options.sizes.split(",") if size]
    growth_text, growth = grow(sizes, options.size_repeats, options.keep, notes)
    peak = max(max(one.worker_peaks) for one in runs[OURS])
    duckdb = compared["systems"].get("duckdb", {}).get("ours_over_it")
    aims = [
        common.at_most(f"{show_bytes(options.bytes)}: CPU time, ours / DuckDB", 2.0, duckdb),
        Aim(f"{show_bytes(options.bytes)}: largest worker", "< 1 GB", show_bytes(peak), peak < 1 << 30),
    ]
    if len(growth.get("points", [])) > 1:
        cost, memory = growth["cost_per_gb_largest_over_smallest"], growth["worker_peak_largest_over_smallest"]
        aims += [
            common.at_most("cost per GB, largest / smallest file", LINEAR, cost),
            common.at_most("largest worker, largest / smallest file", CONSTANT, memory),
        ]
    versions: Json = {}
    for some in runs.values():
        versions |= some[0].report["versions"]
    how = f"Medians of {options.repeats} rounds (smallest-largest); ratios are taken within a round. " + " ".join(
        " ".join(line.split()) for line in (__doc__ or "").split("\n\n", 1)[1:]
    )
    body: Json = {"repeats": options.repeats, "notes": notes, "compared": compared, "growth": growth}
    sections = [text, *([growth_text] if growth_text else []), how, *(f"Note: {note}" for note in notes)]
    common.publish("scan_big", "One big table", body, sections, aims, versions, options.out)


if __name__ == "__main__":
    main()
