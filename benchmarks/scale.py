"""What would a lake of a million tables need? Unit costs, measured at growing sizes, and what follows from them.

*Building.* Lakes of small tables (those of ``scan_many.py``) are indexed in a warm session, each in a process of its
own, once without and once with the inverted index; the difference is what values cost. Bytes of a shuffle are those in
Spark's event log. *Asking.* Collections of sets like open data (those of ``joins.py``) are indexed without Spark, and
sets of the lake are asked about. Slopes are straight lines through the sizes; the ratio of the largest size to that
line says how straight it is. *The large lake* has tables like those measured, but so many distinct values. Its numbers
are multiplications, and no more than that: nothing of that size was run.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import common
from common import Json, Section, figure, say, show_bytes
from lakescope.demo import write_many_csvs
from lakescope.engines.joins.costs import fitted_costs
from lakescope.engines.joins.inverted import InvertedIndex
from lakescope.engines.joins.overlaps import OverlapSearch
from lakescope.store.index import Index
from sets import build as build_sets
from sets import lake_like

#: The lake that is worked out, and what works on it.
TABLES, VALUES = 1_000_000, 10_000_000_000
MACHINES, CORES = 20, 16
#: A request to object storage: seconds, and how many are on their way at once. Assumed, not measured.
REQUEST, AT_ONCE = 0.03, 16
QUERY = 1_000


def line(x: Sequence[float], y: Sequence[float]) -> Json:
    """A straight line through points, and how far the last is off it."""
    fit = statistics.linear_regression(x, y)
    return {"fixed": fit.intercept, "slope": fit.slope, "last": y[-1] / max(1e-12, fit.intercept + fit.slope * x[-1])}


# --- building ---------------------------------------------------------------------------------------------------------


def shuffled(log: Path, began: float, ended: float) -> int:
    """Bytes that tasks wrote for others within a time, by Spark's event log."""
    total = 0
    for path in sorted(each for each in log.rglob("*") if each.is_file() and not each.name.endswith(".crc")):
        for text in path.read_text("utf-8", "replace").splitlines():
            event: Json = json.loads(text) if '"SparkListenerTaskEnd"' in text else {}
            if event and began <= event["Task Info"]["Finish Time"] <= ended:
                total += event.get("Task Metrics", {}).get("Shuffle Write Metrics", {}).get("Shuffle Bytes Written", 0)
    return total


def run_build(root: Path) -> Json:
    """One lake, in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="lakescope-events-") as folder:
        log = Path(folder, "log")
        log.mkdir()
        settings = {"enabled": "true", "compress": "false", "dir": log.as_uri()}
        lines = [f"spark.eventLog.{name} {value}" for name, value in settings.items()]
        Path(folder, "spark-defaults.conf").write_text("\n".join([*lines, ""]))
        job = {"root": str(root), "warm_up": common.warm_up_tables()}
        run = common.run_system("lakescope-scale", job, env={"SPARK_CONF_DIR": folder})
        report = run.report
        shuffle = {name: shuffled(log, report["began"][name], report["ended"][name]) for name in report["cpu"]}
    peaks = {"driver": run.peaks.get("python", 0), "jvm": run.peaks.get("java", 0), "worker": max(run.worker_peaks)}
    return {**report, "shuffle": shuffle, "peaks": peaks}


def run_here(root: Path) -> Json:
    """The same by the tasks of a build in this process: no session, so no shuffle and no driver to measure."""
    from lakescope.build.build import scan_here
    from lakescope.build.plan import UNIT_BYTES, make_plan
    from lakescope.sources.discover import discover
    from lakescope.store.writer import IndexWriter

    report: Json = {"cpu": {}, "shuffle": None, "peaks": None}
    for name, joins in (("profiles", False), ("joins", True)):
        with tempfile.TemporaryDirectory() as folder, IndexWriter(Path(folder, "i")) as writer:
            before = time.process_time()
            plan = make_plan(discover([str(root)])[0], UNIT_BYTES)
            outcome = scan_here(plan, writer.staging, joins=joins)
            report["cpu"][name] = time.process_time() - before
    sizes: Json = {}
    for file in outcome.files:
        sizes[file.kind] = sizes.get(file.kind, 0) + file.size
    assert outcome.inverted is not None
    figures = {name: outcome.inverted[name] for name in ("tokens", "pairs", "groups", "postings")}
    counts = {name: outcome.counts[name] for name in ("tables", "columns", "rows", "bytes")}
    return {**report, **counts, **figures, "sizes": sizes}


def told_bytes(size: float | None) -> str:
    return "not measured" if size is None else show_bytes(size)


def building(options: argparse.Namespace) -> Section:
    folder = common.data_folder("scale", keep=options.keep)
    points, rows = [], []
    if options.here:
        write_many_csvs(folder / "first", tables=8)
        run_here(folder / "first")  # kernels are loaded
    for tables in sorted(options.tables):
        root = folder / str(tables)
        write_many_csvs(root, tables=tables)
        point = run_here(root) if options.here else run_build(root)
        points.append(point)
        cpu, shuffle, peaks = point["cpu"], point["shuffle"] or {}, point["peaks"] or {}
        say(f"{tables:,} tables: {cpu['profiles']:.1f} and {cpu['joins']:.1f} CPU-s")
        rows.append(
            [
                *(f"{tables:,}", f"{point['columns']:,}", show_bytes(point["bytes"]), f"{point['pairs']:,}"),
                *(figure(cpu["profiles"]), figure(cpu["joins"])),
                *(told_bytes(shuffle.get(name)) for name in ("profiles", "joins")),
                *(told_bytes(peaks.get(name)) for name in ("driver", "worker")),
            ]
        )
    units = build_units(points)
    heads = ["tables", "columns", "raw", "pairs", "CPU-s, profiles", "with joins", "shuffle, profiles", "with joins"]
    text = "## Building\n\n" + common.table([*heads, "driver", "largest worker"], rows)
    text += "\n\n" + common.table(["unit", "cost", "largest / line"], units.pop("told"))
    return text, {"points": points, "units": units}, []


def build_units(points: list[Json]) -> Json:
    """Unit costs of a build."""
    gigabytes = [point["bytes"] / 1e9 for point in points]
    millions = [point["pairs"] / 1e6 for point in points]
    columns = [float(point["columns"]) for point in points]
    scan = line(gigabytes, [point["cpu"]["profiles"] for point in points])
    values = line(millions, [point["cpu"]["joins"] - point["cpu"]["profiles"] for point in points])
    last = points[-1]
    moves = [point["shuffle"] or {} for point in points]
    known = last["shuffle"] is not None
    shuffle = line(gigabytes, [float(each["profiles"]) for each in moves]) if known else None
    moved = line(millions, [float(each["joins"] - each["profiles"]) for each in moves]) if known else None
    driver = line(columns, [float(point["peaks"]["driver"]) for point in points]) if known else None
    sizes, count = last["sizes"], last["columns"]
    each = {
        "token": sizes["tokens"] / last["tokens"],
        "posting": (sizes["postings"] + sizes["sets"]) / last["postings"],
        "profile": (sizes["columns"] + sizes["tables"]) / count,
        "sketch": sizes["sketches"] / count,
        "forest": sizes["forest"] / count,
        "grams": sizes.get("grams", 0) / count,
        "correlation": (sizes.get("keys", 0) + sizes.get("pairs", 0)) / count,
    }
    told = [
        ["CPU-s a GB scanned", figure(scan["slope"]), figure(scan["last"])],
        ["CPU-s a million pairs of value and column", figure(values["slope"]), figure(values["last"])],
        *(
            [what, figure(max(0.0, fit["slope"] / unit)), figure(fit["last"])]
            for what, fit, unit in (
                ("shuffle, profiles: bytes a raw byte", shuffle, 1e9),
                ("shuffle, joins: bytes a pair", moved, 1e6),
                ("driver: bytes a column", driver, 1.0),
            )
            if fit is not None
        ),
        *([f"index: bytes a {name}", figure(size), ""] for name, size in list(each.items())[:2]),
        *([f"index: bytes a column, {name}", figure(size), ""] for name, size in list(each.items())[2:]),
    ]
    return {
        "scan": scan, "values": values, "shuffle": shuffle, "moved": moved, "driver": driver, "bytes": each,
        "shape": {
            "columns_per_table": count / last["tables"], "pairs_per_token": last["pairs"] / last["tokens"],
            "raw_bytes_per_pair": last["bytes"] / last["pairs"], "groups_per_token": last["groups"] / last["tokens"],
            "postings_per_token": last["postings"] / last["tokens"],
        },
        "told": told,
    }  # fmt: skip


# --- asking -----------------------------------------------------------------------------------------------------------


def asking(options: argparse.Namespace) -> Section:
    folder = common.data_folder("scale-sets", keep=options.keep)
    points, rows = [], []
    for count in sorted(options.sets):
        sets = lake_like(count)
        index, spent = build_sets(folder / str(count), sets)
        point = asked(index, options.questions) | {"sets": count, "pairs": spent["figures"]["pairs"]}
        point |= {"build_cpu_s": spent["cpu_s"], "costs": per_read(folder / str(count))}
        points.append(point)
        say(f"{count:,} sets: {point['ms']['median']:.3g} ms")
        rows.append(
            [
                *(f"{count:,}", f"{point['pairs']:,}", figure(point["build_cpu_s"] / point["pairs"] * 1e6)),
                *(figure(point["ms"][name]) for name in ("median", "p95", "p99")),
                *(figure(point["entries"]), figure(point["costs"]["per_entry"]), figure(point["costs"]["per_list"])),
            ]
        )
    first, last = points[0], points[-1]
    grows = {
        name: math.log(max(1e-9, last["ms"][name]) / max(1e-9, first["ms"][name]))
        / math.log(last["pairs"] / first["pairs"])
        for name in ("median", "p95")
    }  # fmt: skip
    heads = ["sets", "pairs", "CPU-s a million pairs", "median ms", "95%", "99%", "entries read, mean"]
    text = "## Asking\n\nThe ten sets with the largest overlap with a set of the lake, warm, CPU-ms.\n\n"
    text += common.table([*heads, "ns an entry", "ns a list"], rows)
    text += f"\n\nThe median grows with the power {grows['median']:.2f} of the pairs, the 95% with {grows['p95']:.2f}."
    return text, {"points": points, "grows": grows}, []


def asked(index: InvertedIndex, questions: int) -> Json:
    """Times of questions, and what was read for them."""
    search = OverlapSearch(index)
    search.warm()
    dice = np.random.default_rng(3)
    numbers = dice.choice(index.count, min(questions, index.count), replace=False).tolist()
    times, entries = [], []
    for number in numbers:
        query = index.query_of_set(number)
        began = time.process_time_ns()
        found = search.top(query, 10, [number])
        times.append((time.process_time_ns() - began) / 1e6)
        entries.append(found.entries)
    ordered = sorted(times)
    quantiles = {name: ordered[int(share * (len(ordered) - 1))] for name, share in (("p95", 0.95), ("p99", 0.99))}
    return {"ms": {"median": statistics.median(times), **quantiles}, "entries": statistics.fmean(entries)}


def per_read(path: Path) -> Json:
    costs = fitted_costs(OverlapSearch(InvertedIndex(Index(path))).largest)
    return {"per_entry": costs.per_entry, "per_list": costs.per_list, "per_set": costs.per_set}


# --- the large lake ---------------------------------------------------------------------------------------------------


def large(body: Json) -> tuple[str, Json]:
    """What a million tables with ten billion values need."""
    units, ask = body["building"]["units"], body["asking"]
    shape, each = units["shape"], units["bytes"]
    columns = TABLES * shape["columns_per_table"]
    pairs, postings = VALUES * shape["pairs_per_token"], VALUES * shape["postings_per_token"]
    raw = pairs * shape["raw_bytes_per_pair"]
    cpu = {"scan": raw / 1e9 * units["scan"]["slope"], "values": pairs / 1e6 * units["values"]["slope"]}
    sizes = {
        "tokens": VALUES * each["token"],
        "postings and sets": postings * each["posting"],
        "profiles": columns * each["profile"],
        "sketches": columns * each["sketch"],
        "forest": columns * each["forest"],
        "grams": columns * each["grams"],
        "correlation sketches": columns * each["correlation"],
    }
    shuffle = driver = None
    if units["shuffle"] is not None:
        shuffle = raw / 1e9 * units["shuffle"]["slope"] + pairs / 1e6 * units["moved"]["slope"]
        driver = columns * max(0.0, units["driver"]["slope"])
    last = ask["points"][-1]
    latency = {
        name: last["ms"][name] * (pairs / last["pairs"]) ** max(0.0, ask["grows"][name]) for name in ask["grows"]
    }
    groups = VALUES * shape["groups_per_token"]
    hours = sum(cpu.values()) / 3600 / (MACHINES * CORES)
    found: Json = {
        "columns": columns, "pairs": pairs, "raw_bytes": raw, "cpu_hours": {k: v / 3600 for k, v in cpu.items()},
        "hours": hours, "index_bytes": sizes, "index": sum(sizes.values()), "shuffle": shuffle, "latency_ms": latency,
        "driver_bytes": driver, "groups": groups,
        "groups_of_limit": groups / (2**31 - 1), "counts_bytes": 8 * columns,
        "remote_seconds": 3 * QUERY * REQUEST / AT_ONCE, "listing_minutes": TABLES * REQUEST / AT_ONCE / 60,
    }  # fmt: skip
    rows = [
        ["columns", figure(columns)],
        ["pairs of value and column", figure(pairs)],
        ["raw data", show_bytes(raw)],
        ["CPU-hours: scan, values", " + ".join(figure(hour) for hour in found["cpu_hours"].values())],
        [f"hours on {MACHINES} machines of {CORES} cores, if all are busy", figure(hours)],
        ["shuffle", told_bytes(shuffle)],
        ["index", show_bytes(found["index"])],
        *([f"index: {name}", show_bytes(size)] for name, size in sizes.items()),
        ["driver of the build", told_bytes(driver)],
        [
            "groups of values, and share of what an index can number",
            f"{figure(groups)}, {found['groups_of_limit']:.0%}",
        ],
        ["a search: counts of all columns in memory", show_bytes(found["counts_bytes"])],
        ["a question: CPU-ms, median and 95%, extrapolated", " and ".join(figure(ms) for ms in latency.values())],
        [f"first question of {QUERY:,} values on object storage, s, at most", figure(found["remote_seconds"])],
        ["looking at the heads of all files on object storage, minutes", figure(found["listing_minutes"])],
    ]
    text = f"## {TABLES:,} tables, {VALUES:,} distinct values\n\n" + common.table(["what", "how much"], rows)
    text += f"\n\nObject storage: {REQUEST * 1e3:.0f} ms a request and {AT_ONCE} at once are assumed."
    return text, found


def main() -> None:
    parser = common.arguments(__doc__)
    parser.add_argument("--only", nargs="+", choices=["building", "asking"], help="parts to run; else all")
    parser.add_argument("--tables", type=int, nargs="+", default=[500, 1_000, 2_000])
    parser.add_argument("--sets", type=int, nargs="+", default=[10_000, 40_000, 160_000])
    parser.add_argument("--questions", type=int, default=400)
    parser.add_argument("--here", action="store_true", help="build in this process, without Spark: for small sizes")
    options = parser.parse_args()
    if not options.here:
        common.prime()
    parts = {"building": building, "asking": asking}
    sections, body, aims = common.run_parts(parts, options, __doc__, "scale")
    about: Any = sections.pop()
    if parts.keys() <= body["parts"].keys():
        text, body["large"] = large({part: each["figures"] for part, each in body["parts"].items()})
        sections.append(text)
    from systems import _version

    versions = _version("lakescope", "pyspark", "numba", "numpy", "pyarrow")
    common.publish("scale", "At scale", body, [*sections, about], aims, versions, options.out)


if __name__ == "__main__":
    main()
