"""Inclusions and foreign keys: error of estimators at equal memory, coverage, keys of real databases, time a pair.

Grid: columns of 100 to a million values with a known share in common, sketches of 1.5 and of 12 KB. BML and Bottom-k as
published, with the memory of one sketch; ours are the index' own sketches (a list while it fits, then registers) with
the number of values known, as an index knows it. Keys: databases with declared foreign keys (``--shared``, and TPC-H if
``tpchgen-cli`` is installed), by our detector with exact and estimated inclusions, by the papers' detectors, and by the
rules a practitioner would try. Ours was trained on generated databases only (``train_keys.py``).
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import time
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

import numpy as np

import common
import lakescope
from common import Aim, Section, Spread
from lakescope.array_types import F64, U64
from lakescope.engines.keys import kernels
from lakescope.engines.keys.evidence import KeyCandidate, name_score
from lakescope.engines.keys.inclusion import InclusionSearch, included
from lakescope.engines.keys.sketched import SketchedColumns, registers_of
from lakescope.lake import Lake
from lakescope.sketches.hyperloglog import HyperLogLogPlusPlus
from lakescope.sketches.loglog import fold_registers
from lakescope.studies.bml import bml, bottom_k
from lakescope.tables.key_names import similarity, telling
from sets import lake_like

SHARES = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0)
MEMORY = {11: "1.5 KB", 14: "12 KB"}
TPCH = """nation.n_regionkey region.r_regionkey supplier.s_nationkey nation.n_nationkey customer.c_nationkey
nation.n_nationkey partsupp.ps_partkey part.p_partkey partsupp.ps_suppkey supplier.s_suppkey orders.o_custkey
customer.c_custkey lineitem.l_orderkey orders.o_orderkey lineitem.l_partkey part.p_partkey lineitem.l_suppkey
supplier.s_suppkey""".split()


def drawn(dice: np.random.Generator, n: int) -> U64:
    return dice.integers(1, 2**64 - 1, n, dtype=np.uint64)


def sketch_of(hashes: U64, precision: int) -> HyperLogLogPlusPlus:
    sketch = HyperLogLogPlusPlus(precision)
    sketch.update_hashes(hashes)
    sketch.settled()
    return sketch


# --- the grid ---------------------------------------------------------------------------------------------------------


def grid(options: argparse.Namespace) -> Section:
    """Mean absolute error of each estimator over all cells, and coverage of our intervals."""
    dice = np.random.default_rng(3)
    errors: dict[tuple[int, str], list[float]] = {}
    cells: dict[tuple[int, int, int], dict[str, list[float]]] = {}
    held: dict[int, list[float]] = {precision: [] for precision in MEMORY}
    for n_x in options.sizes:
        for n_y in options.sizes:
            for share in SHARES:
                if share * n_x > n_y:
                    continue
                found: dict[tuple[int, str], list[float]] = {}
                covered: dict[int, list[bool]] = {precision: [] for precision in MEMORY}
                for _ in range(options.trials if max(n_x, n_y) < 1_000_000 else max(3, options.trials // 4)):
                    x = drawn(dice, n_x)
                    common_values = round(share * n_x)
                    y = np.concatenate([x[:common_values], drawn(dice, n_y - common_values)])
                    for precision in MEMORY:
                        told, inside = _estimates(x, y, precision, share)
                        covered[precision].append(inside)
                        for name, value in told.items():
                            found.setdefault((precision, name), []).append(abs(value - share))
                for key, values in found.items():
                    errors.setdefault(key, []).append(statistics.mean(values))
                    cells.setdefault((key[0], n_x, n_y), {}).setdefault(key[1], []).append(statistics.mean(values))
                for precision, inside_of in covered.items():
                    held[precision].append(statistics.mean(inside_of))
        common.say(f"grid: columns of {n_x:,} values done")
    names = list(dict.fromkeys(name for _, name in errors))
    lines = [
        [
            f"{n_x:,}",
            f"{n_y:,}",
            *(common.figure(statistics.mean(cells[p, n_x, n_y][name])) for p in MEMORY for name in names),
        ]
        for n_x in options.sizes
        for n_y in options.sizes
    ]
    mean = {(p, name): statistics.mean(errors[p, name]) for p in MEMORY for name in names}
    lines.append(["all", "cells", *(common.figure(mean[p, name]) for p in MEMORY for name in names)])
    headers = ["|X|", "|Y|", *(f"{name}, {memory}" for memory in MEMORY.values() for name in names)]
    coverage = {MEMORY[p]: statistics.mean(values) for p, values in held.items()}
    worst = {MEMORY[p]: min(values) for p, values in held.items()}
    text = "## Error of the share of X in Y\n\nMean absolute error over shares of 0, .25, .5, .75, .9 and 1.\n\n"
    text += (
        common.table(headers, lines)
        + "\n\nIntervals of ours hold the truth in "
        + ", ".join(f"{coverage[m]:.3f} ({m}; worst cell {worst[m]:.2f})" for m in MEMORY.values())
    )
    aims = [
        common.at_most("1.5 KB: error, ours / BML", 0.5, mean[11, "ours"] / mean[11, "BML"]),
        common.at_most("12 KB: error, ours / BML", 0.25, mean[14, "ours"] / mean[14, "BML"]),
        common.at_most("12 KB: error of ours", 0.036, mean[14, "ours"]),
        common.at_most("1.5 KB: error of ours", 0.085, mean[11, "ours"]),
        Aim("BML as in the record", "0.166 +- 0.01", f"{mean[14, 'BML']:.3f}", abs(mean[14, "BML"] - 0.166) <= 0.01),
        *(Aim(f"{m}: coverage of intervals", ">= 0.93", f"{coverage[m]:.3f}", coverage[m] >= 0.93) for m in coverage),
    ]
    body = {"errors": {f"{MEMORY[p]}, {name}": value for (p, name), value in mean.items()}, "coverage": coverage}
    return text, body, aims


def _estimates(x: U64, y: U64, precision: int, share: float) -> tuple[dict[str, float], bool]:
    """Every estimator's answer, and whether our interval holds the truth."""
    a, b = sketch_of(x, precision), sketch_of(y, precision)
    mine = included(a, b, float(x.size), float(y.size))
    # The paper keeps sketches of every size up to one below: they take as much room as one of this size.
    folded = [fold_registers(registers_of(each, precision), precision, precision - 1) for each in (a, b)]
    k = 6 * (1 << precision) // 64
    guess = bottom_k(np.sort(x)[:k], np.sort(y)[:k], k)
    told = {"BML": bml(*folded), "Bottom-k": guess or 0.0, "ours": mine.value}
    return told, mine.low - 1e-9 <= share <= mine.high + 1e-9


# --- foreign keys -----------------------------------------------------------------------------------------------------


def databases(options: argparse.Namespace) -> dict[str, tuple[Lake, dict[tuple[str, str], tuple[str, str]]]]:
    """Indexed databases with their declared foreign keys."""
    found = {}
    for folder in sorted((options.shared / "fk").iterdir()) if (options.shared / "fk").is_dir() else []:
        declared = json.loads((folder / "foreign_keys.json").read_text())["foreign_keys"]
        truth = {
            (f"{each['child']}.csv", each["child_columns"][0]): (f"{each['parent']}.csv", each["parent_columns"][0])
            for each in declared
        }
        found[folder.name] = lakescope.index(folder / "tables", options.folder / f"{folder.name}.idx"), truth
    generator = shutil.which("tpchgen-cli")
    if generator is not None:
        place = options.folder / "tpch"
        subprocess.run([generator, "csv", "-s", str(options.scale), f"--output-dir={place}"], check=True)
        truth = {}
        for child, parent in zip(TPCH[::2], TPCH[1::2], strict=True):
            (c, x), (p, y) = child.split("."), parent.split(".")
            truth[f"{c}.csv", x] = f"{p}.csv", y
        found[f"TPC-H {options.scale:g}"] = lakescope.index(place, options.folder / "tpch.idx"), truth
    return found


def _scores(
    found: Iterable[tuple[tuple[str, str], tuple[str, str]]], truth: dict[tuple[str, str], tuple[str, str]]
) -> F64:
    """Precision, recall and F1."""
    pairs = set(found)
    right = len(pairs & set(truth.items()))
    precision, recall = right / max(1, len(pairs)), right / max(1, len(truth))
    return np.array([precision, recall, 2 * precision * recall / max(1e-9, precision + recall)])


def _pair(each: KeyCandidate) -> tuple[tuple[str, str], tuple[str, str]]:
    return (each.child.table, each.child.column), (each.parent.table, each.parent.column)


def _rules(candidates: list[KeyCandidate]) -> dict[str, list[tuple[tuple[str, str], tuple[str, str]]]]:
    """What a practitioner would try: inclusion in a unique column, and names beside it."""
    included_ones = [each for each in candidates if each.inclusion >= 1 and each.child.number != each.parent.number]

    def same_column(each: KeyCandidate) -> bool:
        return similarity(telling(each.child.column) or ("?",), telling(each.parent.column)) >= 0.8 or (
            each.child.column.lower() == each.parent.column.lower()
        )

    return {
        "rule: inclusion, unique parent": [_pair(each) for each in included_ones],
        "rule: + similar column name": [_pair(each) for each in included_ones if same_column(each)],
        "rule: + name of table and column": [
            _pair(each) for each in included_ones if name_score(each.child, each.parent) >= 0.65
        ],
    }


def keys(options: argparse.Namespace) -> Section:
    """Precision, recall and F1 of foreign keys, of every way on every database."""
    ways = {
        "ours, exact inclusions": {"estimator": "exact"},
        "ours (default: sketches)": {},
        "ours, BML": {"estimator": "bml"},
        "ours, Bottom-k": {"estimator": "bottomk"},
        "Chen": {"method": "chen"},
        "Rostin": {"method": "rostin"},
    }
    scores: dict[str, dict[str, F64]] = {}
    for name, (lake, truth) in databases(options).items():
        for way, arguments in ways.items():
            found = lake.foreign_keys(**arguments)  # type: ignore[arg-type]
            pairs = [
                ((f.child_table, f.child_columns[0]), (f.parent_table, f.parent_columns[0]))
                for f in found
                if len(f.child_columns) == 1
            ]
            scores.setdefault(way, {})[name] = _scores(pairs, truth)
        candidates, _ = lake._keys.candidates("exact", verify=True, minimum=1.0)
        for way, pairs in _rules(candidates).items():
            scores.setdefault(way, {})[name] = _scores(pairs, truth)
        common.say(f"keys of {name} done")
    names = list(next(iter(scores.values()))) if scores else []
    means = {way: float(np.mean([each[2] for each in found.values()])) for way, found in scores.items()}
    lines = [
        [way, *(" / ".join(f"{value:.2f}" for value in scores[way][name]) for name in names), f"{means[way]:.3f}"]
        for way in scores
    ]
    text = "## Foreign keys: precision / recall / F1\n\n" + common.table(["way", *names, "mean F1"], lines)
    if not scores:
        return "## Foreign keys\n\nno database", {}, []
    ours, exactly = means["ours (default: sketches)"], means["ours, exact inclusions"]
    best = max(value for way, value in means.items() if not way.startswith("ours"))
    aims = [
        Aim("mean F1 of the default", ">= 0.9", f"{ours:.3f}", ours >= 0.9),
        Aim("default no worse than with exact inclusions", f">= {exactly:.3f}", f"{ours:.3f}", ours >= exactly - 1e-9),
        common.at_most("mean F1, best other way / ours", 1.0, best / ours),
    ]
    return text, {way: {name: each.tolist() for name, each in found.items()} for way, found in scores.items()}, aims


# --- speed ------------------------------------------------------------------------------------------------------------


def speed(options: argparse.Namespace) -> Section:
    """Time a pair of each estimator, all pairs of many columns, and what more columns would take."""
    sets = lake_like(options.columns)
    began = time.process_time()
    sketches = {number: sketch_of(sets[number], 14) for number in range(len(sets))}
    built = time.process_time() - began
    sizes = np.asarray(sets.sizes, np.float64)
    nothing = np.full(sizes.size, np.nan)
    columns = SketchedColumns.of(sketches, sizes, np.full(sizes.size, 15, np.uint8), nothing, nothing, exact_sizes=True)
    search = InclusionSearch(columns, None)
    search.search(0.999, parents=[0, 1, 2])
    times = []
    for _ in range(options.repeats):
        began, clock = time.perf_counter(), time.process_time()
        found = search.search(0.9, least=3)
        times.append((time.perf_counter() - began, time.process_time() - clock))
    pairs, looked_at = search._candidates(0.9, 3, None)
    some = pairs[np.random.default_rng(1).permutation(pairs.shape[0])[: options.pairs]]
    some = some[np.argsort(some[:, 1], kind="stable")]
    dense = some[(columns.dense_rows[some[:, 0]] >= 0) & (columns.dense_rows[some[:, 1]] >= 0)]
    per_pair = {}
    for name, chosen in (("of all that are left", some), ("both with registers", dense)):
        for way in ("hybrid", "bml"):
            search._estimated(chosen[:10], 0.9, way)  # type: ignore[arg-type]
            began = time.process_time()
            search._estimated(chosen, 0.9, way)  # type: ignore[arg-type]
            per_pair[f"{way}, {name}"] = 1e6 * (time.process_time() - began) / max(1, chosen.shape[0])
    wall = Spread.of([each[0] for each in times])
    more = wall.median * (100_000 / options.columns) ** 2
    text = (
        f"## Speed\n\n{columns.count:,} columns ({int((columns.dense_rows >= 0).sum()):,} with registers, the others "
        f"with lists), {looked_at:,} pairs that sizes allow, {pairs.shape[0]:,} left by a look at registers, "
        f"{found.shares.size:,} found: "
        f"{wall} s, {statistics.mean(each[1] for each in times):.1f} CPU-s. Sketches took {built:.1f} CPU-s.\n\n"
        + common.table(
            ["estimator", "CPU-µs a pair"], [[name, common.figure(value)] for name, value in per_pair.items()]
        )
        + "\n\nThe paper: 30 µs a pair. Pairs grow with the square of the columns: 100,000 columns would take "
        f"{more / 60:.0f} minutes here, or {more / 60 * 2 / 64:.1f} on 64 cores, by `inclusions_batch`."
    )
    aims = [
        common.at_most(f"all pairs of {options.columns:,} columns, seconds", 60.0, wall.median),
        common.at_most("BML, µs a pair", 2.0, per_pair["bml, of all that are left"]),
        common.at_most("default, µs a pair", 20.0, per_pair["hybrid, of all that are left"]),
    ]
    return text, {"seconds": wall, "per_pair": per_pair, "pairs": int(pairs.shape[0]), "looked_at": looked_at}, aims


def exactly(options: argparse.Namespace) -> Section:
    """All pairs of a database by anti-joins in DuckDB, against sketches and against counting in the index."""
    import duckdb

    found = {name: each for name, each in databases(options).items() if options.exact in name.lower()}
    if not found:
        return "## Against anti-joins\n\nno such database", {}, []
    ((name, (lake, _)),) = list(found.items())[:1]
    search = lake._keys.pairs
    pairs, _ = search._candidates(1e-9, 3, None)
    numbers = search.columns.numbers[pairs]
    sizes = search.columns.sizes
    wanted = np.flatnonzero(sizes[pairs[:, 0]] * 0.9 <= sizes[pairs[:, 1]])
    records = lake._keys.records
    places = {each["table"]: each["uri"] for each in lake.tables().to_pylist()}
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    for number, (_, place) in enumerate(sorted(places.items())):
        connection.execute(f"CREATE TABLE t{number} AS SELECT * FROM read_csv('{place}', all_varchar = true)")
    tables = {table: f"t{number}" for number, table in enumerate(sorted(places))}
    began = time.process_time()
    truth = []
    for place in wanted.tolist():
        child, parent = (records[int(each)] for each in numbers[place])
        x, y = (f'"{each["column"]}"' for each in (child, parent))
        sql = (
            f"SELECT count(*), count(*) FILTER (hit) FROM (SELECT DISTINCT {x} AS v, {x} IN (SELECT {y} FROM "
            f"{tables[parent['table']]}) AS hit FROM {tables[child['table']]} WHERE {x} IS NOT NULL)"
        )
        every, hits = connection.execute(sql).fetchone() or (0, 0)
        truth.append(hits / max(1, every))
    duck = time.process_time() - began
    began = time.process_time()
    shares, evidence = search._estimated(pairs[wanted], 1e-9, "hybrid")
    ours = time.process_time() - began
    known = evidence != kernels.UNKNOWN
    error = np.abs(shares[known, 0] - np.array(truth)[known])
    text = (
        f"## Against anti-joins\n\n{name}: {wanted.size:,} ordered pairs. DuckDB (one thread, tables in memory): "
        f"{duck:.1f} CPU-s. Sketches: {ours:.3f} CPU-s, {duck / ours:,.0f} times less; mean error {error.mean():.4f}, "
        f"95% of errors below {np.quantile(error, 0.95):.4f}; {int((~known).sum())} unknown."
    )
    aims = [
        common.at_most("time, sketches / DuckDB", 0.1, ours / duck),
        common.at_most("mean error", 0.02, float(error.mean())),
    ]
    return text, {"duckdb_s": duck, "ours_s": ours, "error": float(error.mean())}, aims


def main() -> None:
    parser = common.arguments(__doc__)
    parser.add_argument(
        "--sizes", type=lambda text: int(float(text)), nargs="+", default=[100, 1_000, 10_000, 100_000, 1_000_000]
    )
    parser.add_argument("--trials", type=int, default=40, help="grid: trials of each cell")
    parser.add_argument("--columns", type=int, default=10_000, help="speed: columns of the lake")
    parser.add_argument("--pairs", type=int, default=200_000, help="speed: pairs that are timed")
    parser.add_argument("--scale", type=float, default=1.0, help="scale of TPC-H")
    parser.add_argument("--exact", default="sakila", help="database of which all pairs are joined by DuckDB")
    parser.add_argument("--only", nargs="*", help="parts to run: grid keys speed exactly")
    parser.add_argument("--shared", type=Path, default=common.HERE.parent.parent / "shared" / "data")
    options = parser.parse_args()
    options.folder = common.data_folder("inclusions", keep=options.keep)
    parts = {"grid": grid, "keys": keys, "speed": speed, "exactly": exactly}
    sections, body, aims = common.run_parts(parts, options, __doc__, "inclusions")
    versions = {name: version(name) for name in ("lakescope", "numpy", "numba", "duckdb")}
    common.publish("inclusions", "Inclusions and foreign keys", body, sections, aims, versions, options.out)


if __name__ == "__main__":
    main()
