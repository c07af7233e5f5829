"""Building the inverted index on Spark: cost by the number of tokens, and memory where tokens are skewed.

Lakes with a growing number of distinct values are indexed in a warm session, each in a process of its own: the same
mix of columns, one with half of all values, a hundred with a hundredth of the rest each. Cost must grow linearly, the
largest worker must not grow. Then the two worst cases at once: a column of five million values, and a value that every
one of two thousand columns holds. Profiles are made as well, as always.
"""

from __future__ import annotations

import statistics
from pathlib import Path

import numpy as np
import polars as pl

import common
from common import Aim, Json, Spread, show_bytes

TABLES = 100
LINEAR = 1.25
BOUND = 1 << 30


def make_mix(folder: Path, tokens: int) -> Path:
    """A lake with so many distinct values."""
    folder.mkdir(parents=True, exist_ok=True)
    half, each = tokens // 2, tokens // 2 // TABLES
    _write(folder / "large.csv", np.arange(half) * 2654435761 % (1 << 40), "key")
    for number in range(TABLES):
        _write(folder / f"small-{number:03d}.csv", (np.arange(each) + number * each) * 40503 % (1 << 40), "code")
    return folder


def make_skewed(folder: Path, tokens: int, columns: int) -> Path:
    """A lake with one column of many values, and one value in every column of all others."""
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "large.csv", np.arange(tokens) * 2654435761 % (1 << 40), "key")
    width = 20
    for number in range(columns // width):
        frame = {f"c{c}": ["everywhere", *(f"{number}-{c}-{i}" for i in range(20))] for c in range(width)}
        pl.DataFrame(frame).write_csv(folder / f"common-{number:03d}.csv")
    return folder


def _write(path: Path, numbers: np.ndarray, name: str) -> None:  # type: ignore[type-arg]
    """A column of texts with a column of numbers beside it."""
    frame = pl.DataFrame({name: numbers, "x": np.arange(numbers.size) % 97})
    frame.with_columns(pl.format("k{}", pl.col(name)).alias(name)).write_csv(path)


def main() -> None:
    parser = common.arguments(__doc__)
    parser.add_argument("--tokens", type=int, nargs="+", default=[1_000_000, 2_000_000, 4_000_000, 8_000_000])
    parser.add_argument("--skewed", type=int, default=5_000_000, help="values of the largest column of the skewed lake")
    parser.add_argument("--columns", type=int, default=2_000, help="columns that share a value")
    options = parser.parse_args()
    common.prime()
    folder = common.data_folder("joins_build", keep=options.keep)
    lakes = {f"{tokens:,} values": make_mix(folder / str(tokens), tokens) for tokens in sorted(options.tokens)}
    lakes["skewed"] = make_skewed(folder / "skewed", options.skewed, options.columns)
    lines, points, versions = [], {}, {}
    for name, root in lakes.items():
        job = {"root": str(root), "warm_up": common.warm_up_tables()}
        runs = [common.run_system("lakescope-joins", job) for _ in range(options.repeats)]
        versions = runs[0].report["versions"]
        pairs = runs[0].report["join"]["pairs"]
        point: Json = {
            "pairs": pairs,
            "cpu_s": Spread.of([run.report["work"] for run in runs]),
            "cpu_s_per_million": Spread.of([run.report["work"] / pairs * 1e6 for run in runs]),
            "worker": max(max(run.worker_peaks) for run in runs),
            "driver": max(run.peaks.get("python", 0) for run in runs),
            "jvm": max(run.peaks.get("java", 0) for run in runs),
            "index_bytes": runs[0].report["index_bytes"],
        }
        points[name] = point
        common.say(f"{name}: {point['cpu_s']} CPU-s, largest worker {show_bytes(point['worker'])}")
        lines.append(
            [
                *(name, f"{pairs:,}", point["cpu_s"], point["cpu_s_per_million"]),
                *(show_bytes(point[what]) for what in ("worker", "driver", "jvm", "index_bytes")),
            ]
        )
    headers = ["lake", "pairs", "CPU-s", "CPU-s a million pairs", "largest worker", "driver", "JVM", "index"]
    mixes = [point for name, point in points.items() if name != "skewed"]
    fit = statistics.linear_regression([p["pairs"] / 1e6 for p in mixes], [p["cpu_s"].median for p in mixes])
    first, last = mixes[0], mixes[-1]
    marginal = (last["cpu_s"].median - fit.intercept) / last["pairs"] / (fit.slope / 1e6)
    text = "## Cost and memory\n\n" + common.table(headers, lines)
    text += f"\n\nStraight line through the medians: {fit.intercept:.1f} CPU-s + {fit.slope:.2f} CPU-s a million pairs."
    aims = [
        common.at_most(
            "cost a pair, largest / smallest lake",
            LINEAR,
            last["cpu_s_per_million"].median / first["cpu_s_per_million"].median,
        ),
        common.at_most("largest lake / straight line", 1.1, marginal),
        *(
            Aim(f"{name}: largest worker", "< 1 GB", show_bytes(point["worker"]), point["worker"] < BOUND)
            for name, point in points.items()
        ),
    ]
    sections = [text, " ".join((__doc__ or "").split("\n\n", 1)[1].split())]
    body = {"points": points, "fit": {"fixed": fit.intercept, "per_million": fit.slope}}
    common.publish("joins_build", "Building the inverted index", body, sections, aims, versions, options.out)


if __name__ == "__main__":
    main()
