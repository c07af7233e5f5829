"""Counters of distinct values: error, coverage, speed and memory of the twelve, and against other libraries.

Accuracy: the study of ``lakescope count --study`` with more seeds, held against the acceptance targets. Estimators of
HyperLogLog++: the published one by bias tables against Ertl's two, on the same registers. Speed: strings a CPU-second
from an Arrow array to an estimate, hashing included, every library once a round in another order and with one thread;
error: mean over sets of 100,000 values at each library's memory. Peers that are not installed are left out (``pip
install datasketches datasketch``).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version

import numpy as np
import pyarrow as pa

import common
from common import Aim, Json, Spread

#: Counter, sizes from, largest mean error (spec 2.8).
TARGETS = [
    ("fm", 10, 0.011),
    ("pcsa", 100_000, 0.011),
    ("bjkst", 10, 0.003),
    ("loglog", 100_000, 0.013),
    ("superloglog", 100_000, 0.014),
    ("hll", 10, 0.010),
    ("hll++", 10, 0.008),
    ("mincount", 10, 0.012),
    ("akmv", 10, 0.012),
    ("lc", 10, 0.010),
    ("bf", 1000, 0.0135),
]


def accuracy(largest: float, seeds: int) -> tuple[str, Json, list[Aim]]:
    from lakescope.studies.counters import gee_errors, study

    trials = study(largest, seeds=seeds, progress=lambda done, total: None)
    rows = [
        [
            *(trial.counter, f"{trial.values:.0e}", trial.seeds),
            *("" if x is None else common.figure(x) for x in (trial.error, trial.bias, trial.coverage)),
            *("" if trial.nanoseconds is None else common.figure(trial.nanoseconds), f"{trial.bytes:,}", trial.note),
        ]
        for trial in trials
    ]
    aims = []
    for name, least, bound in TARGETS:
        found = [
            trial.error
            for trial in trials
            if trial.counter == name and trial.values >= least and trial.error is not None
        ]
        aims.append(
            common.at_most(f"{name}: largest mean error from {least:,} values", bound, max(found, default=None))
        )
    gee = gee_errors()
    aims.append(common.at_most("gee: deviation from 1 - sqrt(rate)", 0.001, max(abs(a - b) for _, a, b in gee)))
    headers = ["counter", "values", "seeds", "mean error", "bias", "coverage of 95%", "ns a value", "bytes", "note"]
    text = "## The study\n\n" + common.table(headers, rows)
    return text, {"trials": trials.to_dicts(), "gee": gee}, aims


def estimators(seeds: int) -> tuple[str, Json, list[Aim]]:
    """Bias and mean error of three estimates from the same registers, at sizes around all their switches."""
    from lakescope.sketches.hyperloglog import HyperLogLogPlusPlus

    sizes = [3_500, 8_000, 11_000, 12_000, 20_000, 30_000, 41_000, 50_000, 65_000, 82_000, 90_000, 150_000, 1_000_000]
    names = ("bias", "improved", "ml")
    errors: dict[str, dict[int, list[float]]] = {name: {} for name in names}
    for size in sizes:
        for seed in range(seeds):
            counter = HyperLogLogPlusPlus()
            counter.update_hashes(np.random.default_rng([size, seed]).integers(0, 2**64, size, dtype=np.uint64))
            for name in names:
                counter.estimator = name  # type: ignore[assignment]
                errors[name].setdefault(size, []).append(counter.estimate() / size - 1)
    rows = []
    for size in sizes:
        cells: list[object] = [f"{size:,}"]
        for name in names:
            found = np.array(errors[name][size])
            cells += [common.figure(float(np.abs(found).mean())), f"{found.mean():+.4f}"]
        rows.append(cells)
    means = {name: float(np.mean([np.abs(errors[name][size]).mean() for size in sizes])) for name in names}
    worst = {name: float(max(abs(np.mean(errors[name][size])) for size in sizes)) for name in names}
    headers = ["values", *(f"{name}: {what}" for name in names for what in ("mean error", "bias"))]
    text = f"## Estimators of HyperLogLog++ (precision 14, {seeds} sets)\n\n" + common.table(headers, rows)
    text += "\n\n" + common.table(
        ["estimator", "mean error over sizes", "largest bias"],
        [[name, common.figure(means[name]), common.figure(worst[name])] for name in names],
    )
    aim = common.at_most("improved: mean error / that by bias tables", 1.01, means["improved"] / means["bias"])
    return text, {"mean_error": means, "largest_bias": worst}, [aim]


# --- other libraries -------------------------------------------------------------------------------------------------

Counting = Callable[[pa.Array], float]


def ours(array: pa.Array) -> float:
    from lakescope.sketches import HyperLogLogPlusPlus

    return HyperLogLogPlusPlus().update(array).estimate()


def polars(array: pa.Array) -> float:
    import polars as pl

    return float(pl.Series(array).approx_n_unique())


def duckdb_of(connection: object) -> Counting:
    def run(array: pa.Array) -> float:
        data = pa.table({"x": array})  # noqa: F841
        return float(connection.execute("SELECT approx_count_distinct(x) FROM data").fetchone()[0])  # type: ignore[attr-defined]

    return run


def datasketches_of(kind: str) -> Counting:
    import datasketches as ds

    def run(array: pa.Array) -> float:
        made = {
            "HLL": lambda: ds.hll_sketch(14),
            "Theta": lambda: ds.update_theta_sketch(12),
            "CPC": lambda: ds.cpc_sketch(11),
        }
        sketch = made[kind]()
        update = sketch.update
        for value in array.to_pylist():
            update(value)
        return float(sketch.get_estimate())

    return run


def datasketch_hll(array: pa.Array) -> float:
    from datasketch import HyperLogLogPlusPlus

    sketch = HyperLogLogPlusPlus(p=14)
    for value in array.to_pylist():
        sketch.update(value.encode())
    return float(sketch.count())


def peers() -> dict[str, tuple[Counting, int, str]]:
    """Name to (how to count, at most so many values in the race, memory)."""
    found: dict[str, tuple[Counting, int, str]] = {"lakescope HLL++": (ours, 1 << 40, "12 KB")}
    try:
        found["polars approx_n_unique"] = (polars, 1 << 40, "fixed, 16 KB")
        version("polars")
        import duckdb

        connection = duckdb.connect()
        connection.execute("SET threads = 1")
        found["DuckDB approx_count_distinct"] = (duckdb_of(connection), 1 << 40, "fixed, 64 B to 4 KB")
    except (ImportError, PackageNotFoundError):
        pass
    try:
        for kind, memory in (("HLL", "8 KB, 4 bits a register"), ("Theta", "32 KB"), ("CPC", "1.5 KB")):
            found[f"DataSketches {kind}"] = (datasketches_of(kind), 1_000_000, memory)
    except ImportError:
        common.say("datasketches is not installed: left out")
    try:
        version("datasketch")
        found["datasketch HyperLogLog++"] = (datasketch_hll, 200_000, "16 KB")
    except PackageNotFoundError:
        common.say("datasketch is not installed: left out")
    return found


def spark_rates(array: pa.Array, repeats: int) -> dict[str, list[float]]:
    """Strings a CPU-second of Spark's two, over a cached frame in a session of its own (CPU of the whole tree)."""
    import tempfile
    from pathlib import Path

    import pyarrow.parquet as pq

    from lakescope.build.session import spark_session

    rates: dict[str, list[float]] = {"Spark approx_count_distinct": [], "Spark hll_sketch_agg": []}
    with tempfile.TemporaryDirectory() as folder, spark_session(master="local[1]") as session:
        from pyspark.sql import functions as f

        pq.write_table(pa.table({"x": array}), Path(folder) / "x.parquet")
        frame = session.read.parquet(folder).cache()
        frame.count()
        asks = {
            "Spark approx_count_distinct": f.approx_count_distinct("x", 0.01),
            "Spark hll_sketch_agg": f.hll_sketch_estimate(f.hll_sketch_agg("x", f.lit(14))),
        }
        for name, ask in asks.items():
            frame.agg(ask).collect()
            for _ in range(repeats):
                before = common.tree_cpu()
                frame.agg(ask).collect()
                rates[name].append(len(array) / max(0.01, common.tree_cpu() - before) / 1e6)
    return rates


def speed(size: int, repeats: int, seeds: int, *, spark: bool) -> tuple[str, Json, list[Aim]]:
    chance = np.random.default_rng(1)
    columns = {
        "distinct": pa.array([f"user_{x:012d}" for x in chance.integers(0, 10**12, size)]),
        "repeated": pa.array([f"Customer Name {x}" for x in chance.integers(0, 1000, size)]),
    }
    systems = peers()
    rates: dict[str, dict[str, list[float]]] = {kind: {name: [] for name in systems} for kind in columns}
    for name, (run, _, _) in systems.items():
        run(columns["distinct"].slice(0, 10_000))
        common.say(f"warm: {name}")
    for kind, column in columns.items():
        for round_ in range(repeats):
            for name in common.alternated(list(systems), round_):
                run, most, _ = systems[name]
                piece = column.slice(0, min(most, size))
                began = time.process_time()
                run(piece)
                rates[kind][name].append(len(piece) / (time.process_time() - began) / 1e6)
        if spark:
            rates[kind] |= spark_rates(column, repeats)
    found: dict[str, list[float]] = {name: [] for name in systems}
    for seed in range(10 * seeds):
        values = pa.array([f"{seed}:{i}" for i in range(100_000)])
        for name, (run, most, _) in systems.items():
            if most > 1_000_000 or seed < max(4, seeds // 4):
                found[name].append(abs(run(values) / 100_000 - 1))
    errors = {name: float(np.mean(each)) for name, each in found.items()}
    mine = {kind: rates[kind]["lakescope HLL++"] for kind in columns}
    rows = []
    body: Json = {"values": size, "rates": {}, "errors": errors}
    for name in rates["distinct"]:
        each = {kind: Spread.of(rates[kind][name]) for kind in columns}
        ratio = {kind: common.ratios(mine[kind], rates[kind][name]) for kind in columns}
        memory = systems[name][2] if name in systems else ""
        error = f"{errors[name]:.2%}" if name in errors else ""
        rows.append([name, each["distinct"], each["repeated"], ratio["distinct"], ratio["repeated"], error, memory])
        body["rates"][name] = {**{f"{kind}": each[kind] for kind in columns}, "ours_over_it": ratio}
    headers = ["library", "distinct, M/CPU-s", "repeated, M/CPU-s", "ours / it, distinct", "ours / it, repeated"]
    text = f"## Against other libraries: {size:,} strings\n\n" + common.table([*headers, "mean error", "memory"], rows)
    return text, body, aims_of_speed(rates, errors)


def aims_of_speed(rates: dict[str, dict[str, list[float]]], errors: dict[str, float]) -> list[Aim]:
    def over(name: str) -> Spread | None:
        mine = rates["distinct"]["lakescope HLL++"]
        return common.ratios(rates["distinct"][name], mine) if name in rates["distinct"] else None

    aims = [
        common.at_most("polars' speed / ours", 1.0, over("polars approx_n_unique")),
        common.at_most("DuckDB's speed / ours", 1.0, over("DuckDB approx_count_distinct")),
        common.at_most("DataSketches HLL's speed / ours", 0.1, over("DataSketches HLL")),
    ]
    for name in ("polars approx_n_unique", "DuckDB approx_count_distinct"):
        if name in errors:
            aims.append(
                common.at_most(f"our error / {name.split()[0]}'s", 1.0, errors["lakescope HLL++"] / errors[name])
            )
    return aims


def main() -> None:
    parser = common.arguments(__doc__)
    parser.add_argument("--max", type=float, default=1e8, help="largest column of the study")
    parser.add_argument("--seeds", type=int, default=20, help="columns of each size")
    parser.add_argument("--size", type=int, default=4_000_000, help="strings in the race")
    parser.add_argument("--without-spark", action="store_true")
    options = parser.parse_args()
    sections: list[str] = []
    body: Json = {}
    aims: list[Aim] = []
    parts = {
        "speed": lambda: speed(options.size, options.repeats, options.seeds, spark=not options.without_spark),
        "estimators": lambda: estimators(10 * options.seeds),
        "study": lambda: accuracy(options.max, options.seeds),
    }
    for name, run in parts.items():
        common.say(name)
        text, body[name], found = run()
        sections.append(text)
        aims += found
    versions = {}
    for library in ("lakescope", "polars", "duckdb", "datasketches", "datasketch", "pyspark", "numba"):
        try:
            versions[library] = version(library)
        except PackageNotFoundError:
            continue
    common.publish("counters", "Counters of distinct values", body, sections, aims, versions, options.out)


if __name__ == "__main__":
    main()
