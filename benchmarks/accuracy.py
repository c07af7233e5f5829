"""Are the numbers right, and are the stated errors true?

Distinct counts: many seeds and set sizes, through the bare HyperLogLog++ and through a whole column's profile; how
often the true count lies in the stated 95% interval. Quantiles: orders of a stream that are hard for sketches, one
stream or many merged; the error of ranks against the stated ``rank_error``. Mean and deviation: numbers far from
zero, in pieces. Profiles: two CSVs indexed on Spark, in many pieces, every number against an exact computation with
polars and numpy: counts, extremes, mean and standard deviation (to 1e-9), lengths, quantiles, histograms, top values
and patterns within what the profile says of its own error.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import common
from common import Aim, Json
from lakescope.array_types import F64

Bytes = npt.NDArray[np.uint8]
Bounds = npt.NDArray[np.int32]

# --- distinct counts -------------------------------------------------------------------------------------------------

SIZES = (10, 100, 1_000, 3_000, 8_192, 8_193, 10_000, 20_000, 50_000, 100_000, 300_000, 1_000_000, 10_000_000)
_WIDTH, _BATCH = 14, 1 << 16


def words(mark: str, seed: int, first: int, count: int) -> tuple[Bytes, Bounds, Bounds]:
    """Texts like ``v0007-00000123`` in one buffer, with their bounds."""
    data = np.empty((count, _WIDTH), np.uint8)
    data[:] = np.frombuffer(f"{mark}{seed:04d}-00000000".encode(), np.uint8)
    numbers = np.arange(first, first + count)
    for digit in range(8):
        data[:, _WIDTH - 1 - digit] = 48 + numbers // 10**digit % 10
    starts = np.arange(0, count * _WIDTH, _WIDTH, dtype=np.int32)
    return data.ravel(), starts, starts + np.int32(_WIDTH)


def batches(seed: int, n: int) -> Iterator[tuple[Bytes, Bounds, Bounds]]:
    """``n`` different texts, others for every seed and ``n``."""
    mark = chr(ord("a") + SIZES.index(n))
    for first in range(0, n, _BATCH):
        yield words(mark, seed, first, min(_BATCH, n - first))


def sketch_interval(seed: int, n: int) -> tuple[float, int, int]:
    """Estimate and interval of the bare sketch, rounded as the profile rounds them."""
    from lakescope.sketches.hyperloglog import HyperLogLogPlusPlus
    from lakescope.values.kernels import xxh64_cells

    sketch = HyperLogLogPlusPlus()
    for data, starts, ends in batches(seed, n):
        sketch.update_hashes(xxh64_cells(data, starts, ends))
    low, high = sketch.interval()
    return sketch.estimate(), math.floor(low), math.ceil(high)


def profile_interval(seed: int, n: int) -> tuple[float, int, int]:
    """The same as a column's profile states it. Each value comes twice, so that rows do not cap the interval."""
    from lakescope.profile.column import ColumnState
    from lakescope.profile.summary import summarise
    from lakescope.sources.model import TextColumn
    from lakescope.values.cells import understand

    state = ColumnState(0)
    for data, starts, ends in batches(seed, n):
        state.update(understand(TextColumn("c", data, np.repeat(starts, 2), np.repeat(ends, 2))))
    record = summarise("t", "c", state, 2 * n)
    return record["distinct"], record["distinct_low"], record["distinct_high"]


def binomial_tail(covered: int, trials: int, share: float = 0.95) -> float:
    """Probability of so few hits or fewer, if each hits with ``share``."""
    log = math.lgamma(trials + 1)
    terms = (
        log - math.lgamma(k + 1) - math.lgamma(trials - k + 1) + k * math.log(share) + (trials - k) * math.log1p(-share)
        for k in range(covered + 1)
    )
    return min(1.0, math.fsum(math.exp(term) for term in terms))


def distinct_counts(seeds: int, largest: int, values: int) -> tuple[str, Json, list[Aim]]:
    """Both routes over set sizes; ``values`` limits the work: large sets get fewer seeds."""
    routes: dict[str, tuple[Callable[[int, int], tuple[float, int, int]], int]] = {
        "HyperLogLog++ alone": (sketch_interval, values),
        "profile of a column": (profile_interval, values // 8),
    }
    rows, body, aims = [], [], []
    for name, (measure, work) in routes.items():
        sizes = [n for n in SIZES if n <= largest and (n == SIZES[0] or work // n >= 4)]
        worst = 1.0
        for n in sizes:
            trials = min(seeds, max(1, work // n))
            found = [measure(seed, n) for seed in range(trials)]
            errors = np.array([estimate / n - 1 for estimate, _, _ in found])
            covered = sum(low <= n <= high for _, low, high in found)
            width = float(np.mean([(high - low) / 2 / n for _, low, high in found]))
            chance = binomial_tail(covered, trials)
            worst = min(worst, chance)
            line = {
                **{"route": name, "distinct": n, "seeds": trials, "bias": float(errors.mean())},
                **{"rms_error": float(np.sqrt((errors**2).mean())), "max_error": float(np.abs(errors).max())},
                **{"half_width": width, "covered": covered, "coverage": covered / trials, "chance": chance},
            }
            body.append(line)
            rows.append(
                [
                    *(name, f"{n:,}", trials, f"{line['bias']:+.3%}", f"{line['rms_error']:.3%}"),
                    *(f"{line['max_error']:.3%}", f"{width:.3%}", f"{line['coverage']:.1%}"),
                    "" if chance > 0.01 else f"too few: chance {chance:.1e}",
                ]
            )
            common.say(f"distinct, {name}: {n:,}")
        # So few hits at the worst size would be chance once in a hundred such benchmarks (Bonferroni).
        told = f"least likely coverage of a size: {worst:.2g}"
        kept = worst > 0.01 / len(sizes)
        aims.append(Aim(f"distinct counts, {name}: 95% intervals cover", ">= 95% but for chance", told, kept))
    headers = ["route", "distinct", "seeds", "bias", "rms error", "largest", "stated half-width", "covered", ""]
    return "## Distinct counts\n\n" + common.table(headers, rows), {"sizes": body}, aims


# --- quantiles -------------------------------------------------------------------------------------------------------

SHARES = [0.001, *[i / 100 for i in range(1, 100)], 0.999]
Stream = Callable[[np.random.Generator, int], F64]


def _zoom_in(_: np.random.Generator, n: int) -> F64:
    """Smallest, largest, second smallest, second largest, ...: all that comes lies between what was seen."""
    out = np.empty(n)
    half = -(-n // 2)
    out[0::2] = np.arange(half)
    out[1::2] = np.arange(n - 1, half - 1, -1)
    return out


def _blocks(rng: np.random.Generator, n: int) -> F64:
    """Sorted runs of a thousand values whose runs come in any order."""
    starts = rng.permutation(-(-n // 1000)) * 1000
    out = (starts[:, None] + np.arange(1000)).ravel().astype(float)
    return out[out < n]


def _sawtooth(_: np.random.Generator, n: int) -> F64:
    """Many interleaved passes over the whole range, each upwards."""
    return np.arange(n).reshape(-1, n // 64 if n % 64 == 0 else n).T.ravel().astype(float)


#: Every stream is some order of 0 .. n-1, so that true ranks are known without sorting.
STREAMS: dict[str, Stream] = {
    "sorted": lambda _, n: np.arange(n, dtype=float),
    "reversed": lambda _, n: np.arange(n - 1, -1, -1, dtype=float),
    "random": lambda rng, n: rng.permutation(n).astype(float),
    "zoom in": _zoom_in,
    "zoom out": lambda rng, n: _zoom_in(rng, n)[::-1].copy(),
    "sorted runs, shuffled": _blocks,
    "sawtooth": _sawtooth,
}


def sketch_of(values: F64, batch: int) -> Any:
    from lakescope.sketches.quantiles import Quantiles

    sketch = Quantiles()
    for first in range(0, values.size, batch):
        sketch.update(values[first : first + batch])
    return sketch


def merged(values: F64, cuts: Sequence[int], batch: int, *, pairwise: bool) -> Any:
    """Sketches of pieces, through their stored form as between Spark tasks, merged in a row or pair by pair."""
    from lakescope.sketches.quantiles import Quantiles

    parts = [Quantiles.from_fields(sketch_of(piece, batch).fields()) for piece in np.split(values, cuts) if piece.size]
    while len(parts) > 1:
        if pairwise:
            for left, right in zip(parts[::2], parts[1::2], strict=False):
                left.merge(right)
            parts = parts[::2]
        else:
            for part in parts[1:]:
                parts[0].merge(part)
            parts = parts[:1]
    return parts[0]


def rank_errors(sketch: Any, n: int) -> F64:
    """Error of the rank at every share, as a share of ``n``: of the quantile there or of the count below it."""
    from lakescope.sketches.quantiles import RankedItems

    ranked = RankedItems.of(sketch)
    shares = np.array(SHARES)
    values = np.array(ranked.quantiles(SHARES))
    below, upto = np.ceil(values) / n, (np.floor(values) + 1) / n
    of_quantile = np.maximum(0.0, np.maximum(below - shares, shares - upto))
    edges = np.round(shares * n)
    of_count = np.abs(np.array(ranked.counts_below(edges.tolist())) - edges) / n
    errors: F64 = np.maximum(of_quantile, of_count)
    return errors


def quantiles(trials: int, n: int) -> tuple[str, Json, list[Aim]]:
    rng = np.random.default_rng(20)
    cases: dict[str, Callable[[int], Any]] = {}

    def one(stream: Stream) -> Callable[[int], Any]:
        return lambda n: sketch_of(stream(rng, n), int(rng.choice([300, 4096, 30_000, _BATCH])))

    def many(stream: Stream, pieces: int, pairwise: bool) -> Callable[[int], Any]:
        def made(n: int) -> Any:
            cuts = np.sort(rng.integers(0, n, pieces - 1)).tolist()
            return merged(stream(rng, n), cuts, _BATCH, pairwise=pairwise)

        return made

    for name, stream in STREAMS.items():
        cases[name] = one(stream)
    for name in ("sorted", "random", "zoom in"):
        cases[f"{name}, 32 pieces merged in a row"] = many(STREAMS[name], 32, False)
        cases[f"{name}, 32 pieces merged in pairs"] = many(STREAMS[name], 32, True)
    cases["random, 300 pieces merged in a row"] = many(STREAMS["random"], 300, False)
    rows: list[list[object]] = []
    body: list[Json] = []
    stated, lost = 0.0, 0
    for name, make in cases.items():
        errors = []
        for _ in range(trials):
            size = int(n * 100 ** -rng.random()) // 64 * 64  # a hundredth of it or more
            sketch = make(size)
            stated = sketch.rank_error
            lost += int(sketch.sorted_items()[1][-1]) != size
            errors.append(rank_errors(sketch, size))
        all_errors = np.array(errors)
        largest = all_errors.max(axis=1)
        line = {
            **{"stream": name, "trials": trials, "p99_single": float(np.quantile(all_errors, 0.99))},
            **{"median_max": float(np.median(largest)), "p99_max": float(np.quantile(largest, 0.99))},
            **{"worst": float(largest.max()), "stated": stated},
        }
        body.append(line)
        shown = ("p99_single", "median_max", "p99_max", "worst", "stated")
        rows.append([name, trials, *(f"{line[key]:.3%}" for key in shown)])
        common.say(f"quantiles: {name}")
    headers = ["stream", "trials", "one rank, p99", "largest of a sketch, median", "p99", "worst", "stated"]
    aims = []
    judged = {"p99_single": "error of one rank, as stated", "p99_max": "largest error of a sketch, more than is stated"}
    for key, what in judged.items():
        worst = max(body, key=operator.itemgetter(key))
        told, kept = f"{worst[key]:.3%} ({worst['stream']})", worst[key] <= stated
        aims.append(Aim(f"quantiles: {what}, p99, any stream", f"<= {stated:.3%}", told, kept))
    aims.append(common.at_most("quantiles: sketches that lost weight", 0, lost))
    return f"## Quantiles, {n // 100:,} to {n:,} values\n\n" + common.table(headers, rows), {"streams": body}, aims


# --- mean and deviation ----------------------------------------------------------------------------------------------


def state_of(values: F64, pieces: int) -> Any:
    """The state of a column of numbers, scanned in pieces that travel as between Spark tasks and are merged."""
    from lakescope.profile.column import ColumnState
    from lakescope.sources.model import TextColumn
    from lakescope.values.cells import understand

    whole = ColumnState(0)
    for piece in np.array_split(values, pieces):
        texts = [repr(x).encode() for x in piece.tolist()]
        ends = np.cumsum([len(text) for text in texts], dtype=np.int32)
        starts = np.concatenate([[0], ends[:-1]]).astype(np.int32)
        part = ColumnState(0)
        part.update(understand(TextColumn("c", np.frombuffer(b"".join(texts), np.uint8), starts, ends)))
        whole.merge(ColumnState.from_bytes(part.to_bytes()))
    return whole


def deviations(trials: int, n: int = 8_000, pieces: int = 16) -> tuple[str, Json, list[Aim]]:
    """Mean and standard deviation of columns far from zero, where sums of squares cancel."""
    from lakescope.profile.summary import summarise

    rng = np.random.default_rng(5)
    rows: list[list[object]] = []
    body: list[Json] = []
    for offset in (0.0, 1e3, 1e6, 1e9, 1e12):
        off_mean, off_std, plain = [], [], []
        for _ in range(trials):
            values = offset + rng.integers(0, 1000, n) / 8  # exact in binary
            record = summarise("t", "c", state_of(values, pieces), n)
            wide = values.astype(np.longdouble)
            mean = wide.sum() / n
            std = np.sqrt(((wide - mean) ** 2).sum() / (n - 1))
            off_mean.append(float(abs(record["mean"] - mean) / mean))
            off_std.append(float(abs(record["std"] - std) / std))
            plain.append(float(abs(values.std(ddof=1) - std) / std))
        line = {"offset": offset, "mean": max(off_mean), "std": max(off_std), "std_numpy": max(plain)}
        body.append({**line, "trials": trials, "pieces": pieces})
        rows.append([f"{offset:g}", trials, *(f"{line[key]:.1e}" for key in ("mean", "std", "std_numpy"))])
    worst = max(max(line["mean"], line["std"]) for line in body)
    text = f"## Mean and deviation of {n:,} values from X to X + 125, in {pieces} pieces: largest relative error\n\n"
    text += common.table(["X", "trials", "mean", "standard deviation", "the same, numpy in one piece"], rows)
    aim = Aim("mean and standard deviation, numbers far from zero", "<= 1e-9", f"{worst:.1e}", worst <= 1e-9)
    return text, {"offsets": body}, [aim]


# --- profiles --------------------------------------------------------------------------------------------------------

BIG_KINDS = {
    **{"id": "number", "account_code": "text", "region": "text", "customer_name": "text", "amount": "number"},
    **{"units": "number", "booked_on": "moment", "recorded_at": "moment", "is_member": "text", "remark": "text"},
}
SYNTHETIC_KINDS = {"day": "moment", "moment": "moment", "zipf_text": "text", "heavy_last": "text", "constant": "text"}

Read = Callable[[str], Any]
READ: dict[str, Read] = {"number": float, "moment": datetime.fromisoformat, "text": str}


@dataclass(slots=True)
class Checks:
    """What was compared, and what did not hold."""

    done: dict[str, int] = field(default_factory=dict)
    worst: dict[str, float] = field(default_factory=dict)
    failed: dict[str, list[str]] = field(default_factory=dict)

    def check(self, what: str, holds: bool, detail: str, worst: float = 0.0) -> None:
        self.done[what] = self.done.get(what, 0) + 1
        self.worst[what] = max(self.worst.get(what, 0.0), worst)
        if not holds:
            self.failed.setdefault(what, []).append(detail)

    def equal(self, what: str, where: str, ours: object, exact: object) -> None:
        self.check(what, ours == exact, f"{where}: {ours!r}, exact {exact!r}")

    def near(self, what: str, where: str, ours: float, exact: float, scale: float | None = None) -> None:
        off = abs(ours - exact) / max(abs(exact) if scale is None else scale, 1e-300)
        self.check(what, off <= 1e-9, f"{where}: {ours!r}, exact {exact!r}, off by {off:.1e}", off)


def synthetic(path: Path, rows: int) -> None:
    """Columns that are hard on one statistic each."""
    import polars as pl

    rng = np.random.default_rng(7)
    n = rows
    heavy = np.array([f"rare {i}" for i in rng.integers(0, n, n)], object)
    heavy[-n // 20 :] = "heavy"
    few = np.concatenate([np.arange(8192), rng.integers(0, 8192, n - 8192)])
    start = np.datetime64("1999-12-31T23:00:00", "s")
    pl.DataFrame(
        {
            "sorted": np.arange(n),
            "reversed": np.arange(n, 0, -1),
            "uniform": rng.integers(-1_000_000, 1_000_000, n),
            "offset": 1e6 + rng.integers(0, 1000, n) / 8,
            "tiny": rng.integers(1, 10_000, n) / 1e7,
            "lognormal": np.round(rng.lognormal(3, 2, n), 2),
            "negative": -np.round(rng.gamma(2, 50, n), 3),
            "at_the_limit": few,
            "above_the_limit": np.concatenate([[99_999], few[1:-1], few[:1]]),
            "zipf_text": [f"word {i}" for i in rng.zipf(1.2, n) % 200_000],
            "heavy_last": heavy.astype(str),
            "constant": ["same"] * n,
            "mostly_null": [i if filled else None for i, filled in zip(few.tolist(), rng.random(n) < 0.3, strict=True)],
            "day": (start + rng.integers(0, 9000, n) * np.timedelta64(86_400, "s")).astype("datetime64[D]"),
            "moment": [str(moment) for moment in start + rng.integers(0, 900_000_000, n)],
        }
    ).write_csv(path)


def check_csv(checks: Checks, name: str, path: Path, records: list[Json], kinds: dict[str, str]) -> None:
    import polars as pl

    table = pl.read_csv(path, infer_schema=False)
    for record in records:
        column = record["column"]
        written = table[column]
        filled = written.drop_nulls()
        where = f"{name}.{column}"
        checks.equal("rows", where, record["rows"], written.len())
        checks.equal("nulls", where, record["nulls"], written.null_count())
        lengths = filled.str.len_chars()
        reach = record["length_min"], record["length_max"]
        checks.equal("shortest and longest", where, reach, (lengths.min(), lengths.max()))
        checks.near("mean length", where, record["length_mean"], int(lengths.cast(pl.Int64).sum()) / lengths.len())
        kind = kinds.get(column, "number")
        values: Any
        if kind == "number":
            values = filled.cast(pl.Float64)
        elif kind == "moment":
            values = filled.str.replace("T", " ").str.to_datetime(strict=False)
            if values.null_count():
                values = filled.str.to_date().cast(pl.Datetime("us"))
        else:
            values = filled
        counts = dict(values.value_counts(name=".count").iter_rows())
        _check_distinct(checks, where, record, len(counts))
        read = READ[kind]
        _check_frequent(checks, "top values", where, record["top"], record["top_error"], counts, read)
        _check_frequent(checks, "patterns", where, record["patterns"], record["patterns_error"], _shapes(filled), str)
        low, high = (min(values), max(values)) if kind == "text" else (values.min(), values.max())
        checks.equal("extremes", where, (read(record["minimum"]), read(record["maximum"])), (low, high))
        if kind != "text":
            numbers = values if kind == "number" else values.dt.epoch("us") / 1e6
            _check_numbers(checks, where, record, np.sort(numbers.to_numpy()))


def _shapes(filled: Any) -> dict[str, int]:
    import polars as pl

    shape = filled
    for letters, sign in ((r"[\p{Ll}\p{Lt}\p{Lm}\p{Lo}]", "a"), (r"\p{Lu}", "A"), (r"\p{Nd}", "9")):
        shape = shape.str.replace_all(letters, sign)
    long = filled.str.len_chars() > 32
    shape = shape.zip_with(~long, pl.Series(["…"]).new_from_index(0, filled.len()))
    return dict(shape.value_counts(name=".count").iter_rows())


def _check_distinct(checks: Checks, where: str, record: Json, exact: int) -> None:
    low, high = record["distinct_low"], record["distinct_high"]
    if record["distinct_exact"]:
        checks.equal("distinct, said to be exact", where, record["distinct"], exact)
    else:
        detail = f"{where}: {low:,} to {high:,}, exact {exact:,}"
        checks.check("distinct, 95% interval", low <= exact <= high, detail, abs(record["distinct"] / exact - 1))


def _check_frequent(
    checks: Checks, what: str, where: str, top: list[Json], error: int, counts: dict[Any, int], read: Read
) -> None:
    found = {read(entry["value"]): entry["count"] for entry in top}
    for value, count in found.items():
        exact = counts.get(value, 0)
        detail = f"{where}: {value!r} {count:,} to {count + error:,}, exact {exact:,}"
        checks.check(f"{what}, counts", count <= exact <= count + error, detail, exact - count)
    least = min(found.values(), default=0)
    missing = [value for value, count in counts.items() if count > least + error and value not in found]
    checks.check(f"{what}, none missing", not missing, f"{where}: lacks {missing[:3]!r}")


def _check_numbers(checks: Checks, where: str, record: Json, ordered: F64) -> None:
    n = ordered.size
    wide = ordered.astype(np.longdouble)
    mean = wide.sum() / n
    std = float(np.sqrt(((wide - mean) ** 2).sum() / (n - 1)))
    checks.near("mean", where, record["mean"], float(mean), max(abs(float(mean)), std))
    checks.near("standard deviation", where, record["std"], std)
    stated = record["quantile_error"]
    given = np.array(record["quantiles"])
    shares = np.linspace(0, 1, given.size)
    below, upto = np.searchsorted(ordered, given, "left") / n, np.searchsorted(ordered, given, "right") / n
    off = float(np.maximum(0.0, np.maximum(below - shares, shares - upto)).max())
    what = "quantiles, exact" if stated == 0 else "quantiles, stated rank error"
    checks.check(what, off <= stated + 1e-12, f"{where}: off by {off:.3%}, stated {stated:.3%}", off)
    bins = record["histogram"]
    checks.equal("histogram adds up", where, sum(bin_["count"] for bin_ in bins), n)
    edges = np.array([bin_["high"] for bin_ in bins[:-1]])
    seen = np.cumsum([bin_["count"] for bin_ in bins[:-1]])
    if edges.size:
        off = float(np.abs(np.searchsorted(ordered, edges, "left") - seen).max()) / n
        detail = f"{where}: off by {off:.3%}, stated {stated:.3%}"
        checks.check("histogram, stated rank error", off <= stated + 1e-12, detail, off)
    if "zeros" in record and record["zeros"] is not None:
        exact = int((ordered == 0).sum()), int((ordered < 0).sum())
        checks.equal("zeros and negatives", where, (record["zeros"], record["negatives"]), exact)


def profiles(size: int, rows: int, keep: bool) -> tuple[str, Json, list[Aim]]:
    from lakescope import open as open_lake
    from lakescope.build.build import build
    from lakescope.build.session import spark_session
    from lakescope.demo import write_big_csv

    folder = common.data_folder("accuracy", keep=keep)
    big, hard = folder / "big.csv", folder / "hard.csv"
    write_big_csv(big, bytes=size)
    synthetic(hard, rows)
    checks = Checks()
    units = 0
    with spark_session() as session:
        for path, kinds in ((big, BIG_KINDS), (hard, SYNTHETIC_KINDS)):
            pieces = max(4, min(32, path.stat().st_size >> 20))
            build(str(path), folder / f"{path.stem}.idx", spark=session, unit_bytes=path.stat().st_size // pieces)
            lake = open_lake(folder / f"{path.stem}.idx")
            units += lake.tables()["units"].to_pylist()[0]
            records = lake.columns().to_pylist(maps_as_pydicts="strict")
            common.say(f"profiles: {path.stem} indexed, {len(records)} columns")
            check_csv(checks, path.stem, path, records, kinds)
    lines = []
    for what, count in checks.done.items():
        failed = checks.failed.get(what, [])
        lines.append([what, count, len(failed), f"{checks.worst[what]:.2g}" if checks.worst[what] else ""])
    text = f"## Profiles of two CSVs, read in {units} pieces, against exact computation\n\n"
    text += common.table(["what", "compared", "outside", "largest difference"], lines)
    told = [f"- {what}: {detail}" for what, details in checks.failed.items() for detail in details[:5]]
    text += "\n\nOutside:\n\n" + "\n".join(told) if told else ""
    # Intervals that hold 95 or 99 times in a hundred may miss now and then; everything else may not.
    ranks = "stated rank error"
    chances = {"distinct, 95% interval": 0.95, f"quantiles, {ranks}": 0.99, f"histogram, {ranks}": 0.99}
    aims = []
    for what, share in chances.items():
        made = checks.done.get(what, 0)
        if made:
            kept = made - len(checks.failed.get(what, []))
            likely = binomial_tail(kept, made, share)
            wanted, measured = f">= {share:.0%} but for chance", f"{kept} of {made}"
            aims.append(Aim(f"profiles: {what}", wanted, measured, likely > 0.01))
    wrong = sum(len(details) for what, details in checks.failed.items() if what not in chances)
    aims.append(common.at_most("profiles: numbers that are not what they are said to be", 0, wrong))
    return text, {"checked": checks.done, "largest": checks.worst, "outside": checks.failed}, aims


def main() -> None:
    parser = common.arguments(__doc__)
    parser.add_argument("--bytes", type=common.parse_bytes, default="200M", help="size of the big CSV")
    parser.add_argument("--rows", type=int, default=400_000, help="rows of the CSV of hard columns")
    parser.add_argument("--seeds", type=int, default=400, help="sets of each size, fewer for large ones")
    parser.add_argument("--values", type=int, default=400_000_000, help="values hashed for a set size at most")
    parser.add_argument("--largest", type=int, default=10_000_000, help="largest set")
    parser.add_argument("--trials", type=int, default=200, help="streams of each order, columns of each offset")
    parser.add_argument("--stream", type=int, default=1_000_000, help="values of a stream at most")
    names = ("profiles", "deviations", "distinct", "quantiles")
    parser.add_argument("--only", nargs="*", choices=names, default=list(names), help="parts to run")
    options = parser.parse_args()
    run: dict[str, Callable[[], tuple[str, Json, list[Aim]]]] = {
        "profiles": lambda: profiles(options.bytes, options.rows, options.keep),
        "deviations": lambda: deviations(options.trials),
        "distinct": lambda: distinct_counts(options.seeds, options.largest, options.values),
        "quantiles": lambda: quantiles(options.trials, options.stream),
    }
    parts = {name: run[name]() for name in names if name in options.only}
    versions = {name: version(name) for name in ("lakescope", "polars", "numpy", "pyspark")}
    body = {name: part[1] for name, part in parts.items()}
    how = " ".join((__doc__ or "").split("\n\n", 1)[1].split())
    sections = [*[part[0] for part in parts.values()], how]
    aims = [aim for part in parts.values() for aim in part[2]]
    common.publish("accuracy", "Are the numbers right?", body, sections, aims, versions, options.out)


if __name__ == "__main__":
    main()
