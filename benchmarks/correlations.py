"""Correlated columns: how well sketches estimate, rank and find, against the papers' ways; coverage, speed, real data.

Tables are drawn as the papers draw theirs. SBN: pairs of tables with a bivariate normal and a share of common keys.
STC: for each query a hundred candidates with a correlation and four hundred with next to none, joinability from 0.1 to
1, here with six marginal distributions. Haystack: samples of 3 to 256 keys of which few are correlated. Sketches,
index and search are the product's own, built in this process without Spark; hashes of keys are random numbers.

Recall is true recall: of all candidates with such a correlation. Peers in the speed run answer the same question the
way one would write it: DuckDB and polars join every table of the lake with the query and correlate, one thread each,
tables in memory. ``--shared`` is a folder with real tables and recorded correlations (``gt/corr_*.jsonl``).
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path

import numpy as np
import numpy.typing as npt

import common
import lakescope
from common import Aim, Json, Spread
from lakescope.array_types import F64, I64, U64
from lakescope.build.correlations import BuiltSketch, records
from lakescope.build.inverted import build_inverted, local_exchange
from lakescope.build.tokens import TokenBuffer, TokenCut
from lakescope.engines.correlations import estimators
from lakescope.engines.correlations.correlated import CorrelationCriteria, CorrelationSearch, heavy_tailed, scores
from lakescope.engines.correlations.estimators import Samples
from lakescope.engines.joins.inverted import InvertedIndex
from lakescope.engines.joins.overlaps import OverlapSearch
from lakescope.show.charts import line_chart
from lakescope.sketches.correlation import KeySketch
from lakescope.sketches.minhash import MinHash
from lakescope.store.index import Index
from lakescope.store.segment import ShardWriter
from lakescope.store.writer import IndexWriter
from lakescope.studies.intervals import pearson_interval, spearman_interval
from lakescope.tables.keyed import KeyedQuery
from sets import write_raw

Section = tuple[str, Json, list[Aim]]
Draw = Callable[[np.random.Generator, int], F64]
_LAST = np.uint64(2**64 - 1)
SIGNATURE = MinHash().values.tobytes()


@dataclass(slots=True)
class Table:
    """A key by its hashes, and numeric columns; a key has one row unless ``rows`` says otherwise."""

    name: str
    hashes: U64
    columns: dict[str, F64]
    rows: I64 | None = None


def sketch_of(table: Table, limit: int) -> KeySketch:
    places = np.arange(table.hashes.size, dtype=np.int32)
    if table.rows is not None:
        places = np.repeat(places, table.rows)
    sketch = KeySketch(limit)
    sketch.update(places, table.hashes, {name: (places, column) for name, column in table.columns.items()}, 0)
    for states in sketch.values.values():
        states.cells = states.numbers = places.size
    return sketch


def query_of(table: Table, target: str, limit: int) -> KeyedQuery:
    """A table as a query that knows no more than its sketch."""
    sketch = sketch_of(table, limit)
    values = sketch.values[target].aggregate("mean")
    return KeyedQuery(
        *(table.name, ("k",), target, sketch.hashes, sketch.rows, values, sketch.threshold, sketch.distinct),
        *((sketch.hashes,), {}, "text"),
    )


def build(path: Path, tables: Iterable[Table], limit: int) -> tuple[CorrelationSearch, Json]:
    """An index of tables, by the tasks of a build."""
    shutil.rmtree(path, ignore_errors=True)
    cut = TokenCut(6, 8)
    began = time.process_time()
    with IndexWriter(path) as writer:
        shards = {kind: ShardWriter(writer.staging, kind) for kind in ("sketches", "keys", "pairs")}
        found: dict[int, list[bytes]] = {}
        buffer = TokenBuffer(cut)
        pairs = 0
        for table in tables:
            made = records(
                table.name, ("k",), BuiltSketch(sketch_of(table, limit), [True], [(1 << 30, 0)]), _Positions()
            )
            key = cut.set_key(table.name, "k")
            sketch = {"table": table.name, "column": "k", "position": 0, "distinct": b"", "key": key}
            shards["sketches"].add({**sketch, "signature": SIGNATURE})
            # Keys beyond the sketch tell no more about correlations.
            buffer.add(key, np.sort(table.hashes)[:limit])
            if made is not None:
                shards["keys"].add(made[0])
                for pair in made[1]:
                    shards["pairs"].add(pair)
                pairs += len(made[1])
            if buffer.full:
                _take(buffer, found)
        _take(buffer, found)
        raw, count = write_raw(writer.staging, found, cut)
        files = [file for shard in shards.values() if (file := shard.close())]
        sketches = [file for file in files if file.kind == "sketches"]
        inverted = build_inverted(local_exchange, writer.staging, raw, sketches, cut, count)
        writer.publish([*files, *inverted.files], version="benchmark", sources=[], summary={"join": inverted.figures})
    size = sum(file.size for file in files if file.kind in ("keys", "pairs"))
    index = Index(path)
    opened = InvertedIndex(index)
    overlaps = OverlapSearch(opened)
    overlaps.warm()
    search = CorrelationSearch(index, opened, overlaps)
    search.warm()
    return search, {
        "pairs": pairs,
        "cpu_s": time.process_time() - began,
        "bytes_a_pair": size / max(1, pairs),
    }


class _Positions(dict[str, int]):
    def __missing__(self, name: str) -> int:
        return 1


def _take(buffer: TokenBuffer, found: dict[int, list[bytes]]) -> None:
    for bucket, payload in buffer.take():
        found.setdefault(bucket, []).append(payload)


def fresh(dice: np.random.Generator, count: int) -> U64:
    """Hashes of keys that nobody else has."""
    return dice.integers(1, 2**64 - 1, count, dtype=np.uint64)


# --- SBN: accuracy ----------------------------------------------------------------------------------------------------


def sbn(options: argparse.Namespace) -> Section:
    """Estimates against the full join, by sketch size and by the size of the joined sample."""
    dice = np.random.default_rng(1)
    sizes = (64, 256, 512, 1024)
    measures = ("pearson", "spearman", "rin", "qn", "pm1")
    errors: dict[tuple[int, str], list[tuple[int, float]]] = {}
    for _ in range(options.tables):
        rows, r, share = int(dice.integers(3, options.rows)), dice.uniform(-1, 1), dice.random()
        x = dice.normal(size=rows)
        y = r * x + np.sqrt(1 - r * r) * dice.normal(size=rows)
        hashes = fresh(dice, rows)
        chosen = dice.random(rows) < share
        if chosen.sum() < 3:
            continue
        full = Samples.of([(x[chosen][:4000], y[chosen][:4000])])
        truth = {measure: float(np.corrcoef(x[chosen], y[chosen])[0, 1]) for measure in ("pearson", "pm1")}
        for measure in ("spearman", "rin"):
            truth[measure] = float(estimators.estimate(measure, Samples.of([(x[chosen], y[chosen])]))[0])
        truth["qn"] = float(estimators.qn(full.take(np.array([0])))[0]) if chosen.sum() <= 2000 else truth["pearson"]
        for n in sizes:
            sample = _sample(Table("x", hashes, {"v": x}), Table("y", hashes[chosen], {"v": y[chosen]}), n)
            if sample[0].size < 3:
                continue
            samples = Samples.of([sample])
            for measure in measures if n <= 256 else ("pearson", "spearman"):
                error = float(estimators.estimate(measure, samples)[0]) - truth[measure]
                errors.setdefault((n, measure), []).append((int(samples.n[0]), error))
    known = {64: (0.197, None), 256: (0.100, 0.075), 1024: (0.064, 0.044)}
    lines, body, aims = [], {}, []
    for (n, measure), found in sorted(errors.items()):
        every = _rmse([error for _, error in found])
        large = _rmse([error for size, error in found if size >= 20])
        classes = [(3, 10), (10, 20), (20, 50), (50, 100), (100, 200), (200, 1 << 30)]
        by_size = [_rmse([error for size, error in found if low <= size < high]) for low, high in classes]
        reference = known.get(n, ("", "")) if measure == "pearson" else ("", "")
        lines.append([n, measure, *(common.figure(each) for each in (every, large, *by_size)), *reference])
        body[f"n={n}, {measure}"] = {"rmse": every, "at_least_20": large, "by_size": by_size}
        if (n, measure) == (256, "pearson"):
            aims = [
                common.at_most("SBN, n=256: RMSE of Pearson, joined keys >= 3", 0.11, every),
                common.at_most("SBN, n=256: RMSE of Pearson, joined keys >= 20", 0.08, large),
            ]
    headers = ["n", "measure", "RMSE", "with 20 or more", "3-9", "10-19", "20-49", "50-99", "100-199", "200+"]
    headers += ["recorded before", "with 20 or more"]
    return "## SBN: error of the estimate\n\n" + common.table(headers, lines), body, aims


def _rmse(errors: Sequence[float]) -> float:
    kept = [error for error in errors if np.isfinite(error)]
    return float(np.sqrt(np.mean(np.square(kept)))) if kept else float("nan")


def _sample(left: Table, right: Table, n: int) -> tuple[F64, F64]:
    a, b = sketch_of(left, n), sketch_of(right, n)
    _, mine, theirs = np.intersect1d(a.hashes, b.hashes, assume_unique=True, return_indices=True)
    return a.values["v"].aggregate("mean")[mine], b.values["v"].aggregate("mean")[theirs]


# --- STC: finding -----------------------------------------------------------------------------------------------------

MARGINALS: dict[str, Callable[[F64], F64]] = {
    "normal": lambda z: z,
    "lognormal 1": lambda z: np.exp(z),
    "lognormal 2": lambda z: np.exp(2 * z),
    "Pareto 1.2": lambda z: (1 - estimators.normal_cdf(np.clip(z, -8, 8))) ** (-1 / 1.2),
    "t3": lambda z: _t3(z),
    "60% zeros": lambda z: np.where(z < 0.2533, 0.0, z - 0.2533),
}


def _t3(z: F64) -> F64:
    """Normal numbers as numbers of Student's t with three degrees of freedom, by inverting its distribution."""
    grid = np.linspace(-60, 60, 60_001)
    cdf = 0.5 + (np.arctan(grid / np.sqrt(3)) + grid / np.sqrt(3) / (1 + grid**2 / 3)) / np.pi
    return np.interp(estimators.normal_cdf(z), cdf, grid)


#: What the STC section shows of every distribution.
STC_SHOWN = {
    "true_75_at_50": "true recall >.75 @50",
    "true_75_at_100": ">.75 @100",
    "true_25_at_50": ">.25 @50",
    "true_25_at_100": ">.25 @100",
    "pooled_75_at_50": "pooled >.75 @50",
    "ndcg_10_of_100": "nDCG@10",
}
#: QCR, Table II (STC, QCR-C): nDCG@5, @10, @50, pooled recall >.25, >.50, >.75, by n and k.
TABLE_TWO = {
    (256, 50): (0.994, 0.987, 0.847, 0.747, 0.788, 0.822),
    (256, 100): (0.998, 0.996, 0.957, 0.931, 0.941, 0.951),
    (1024, 50): (0.995, 0.991, 0.879, 0.798, 0.832, 0.860),
    (1024, 100): (0.999, 0.999, 0.985, 0.976, 0.981, 0.986),
}
WAYS = {"CSK": "csk", "QCR (paper)": "qcr", "ours (balanced cut, z)": "z"}


def stc(options: argparse.Namespace) -> Section:
    """True and pooled recall of |r| above a bound, and nDCG after re-ranking, by way of finding and marginals."""
    lines, body, aims = [], {}, []
    for n in options.sizes:
        for name, marginal in MARGINALS.items():
            figures = _stc(options, n, marginal)
            for way, found in figures.items():
                body[f"n={n}, {name}, {way}"] = found
                lines.append([n, name, way, *(common.figure(found[what]) for what in STC_SHOWN)])
            ours, paper = figures["ours (balanced cut, z)"], figures["QCR (paper)"]
            if n == options.sizes[0]:
                aims.append(
                    common.at_most(f"STC {name}, n={n}: missed of |r| > .75 at 50", 0.2, 1 - ours["true_75_at_50"])
                )
            for what in ("true_75_at_50", "true_25_at_100", "ndcg_10_of_100"):
                aims.append(common.at_most(f"STC {name}, n={n}: {what}, paper / ours", 1.005, paper[what] / ours[what]))
    text = "## STC: what is found\n\n" + common.table(["n", "marginals", "way", *STC_SHOWN.values()], lines)
    beside, more = _beside_the_paper(options.sizes, body)
    return f"{text}\n\n{beside}", body, [*aims, *more]


def _beside_the_paper(sizes: Sequence[int], body: Json) -> tuple[str, list[Aim]]:
    """Ours beside the paper's Table II: normal numbers, as there; nDCG by the best possible, not the best found."""
    lines, aims = [], []
    for (n, k), printed in TABLE_TWO.items():
        if n not in sizes:
            continue
        cells = [
            *(f"ndcg_{place}_of_{k}" for place in (5, 10, 50)),
            *(f"pooled_{bound}_at_{k}" for bound in (25, 50, 75)),
        ]
        lines.append([n, k, "QCR-C, as printed", *(common.figure(value) for value in printed)])
        for way in ("QCR (paper)", "ours (balanced cut, z)"):
            ours = [body[f"n={n}, normal, {way}"][cell] for cell in cells]
            lines.append([n, k, f"{way}, here", *(common.figure(value) for value in ours)])
        for cell, theirs, mine in zip(cells, printed, ours, strict=True):
            aims.append(common.at_most(f"Table II, n={n}, k={k}: {cell}, printed / ours", 1.0, theirs / mine))
    headers = ["n", "k", "way", "nDCG@5", "nDCG@10", "nDCG@50", "pooled recall >.25", ">.50", ">.75"]
    return "Beside Table II of the QCR paper:\n\n" + common.table(headers, lines), aims


def _stc(options: argparse.Namespace, n: int, marginal: Callable[[F64], F64]) -> dict[str, dict[str, float]]:
    dice = np.random.default_rng(2)
    rows = 5_000
    found: dict[str, dict[str, list[float]]] = {way: {} for way in WAYS}
    tables: list[Table] = []
    queries: list[tuple[Table, dict[str, float]]] = []
    for number in range(options.queries):
        z = dice.normal(size=rows)
        hashes = fresh(dice, rows)
        truth = {}
        for candidate in range(500):
            strong = candidate < 100
            r = dice.uniform(0.25, 1) * dice.choice([-1, 1]) if strong else dice.uniform(-0.25, 0.25)
            common_rows = dice.random(rows) < dice.uniform(0.1, 1)
            values = dice.normal(size=rows)
            values[common_rows] = r * z[common_rows] + np.sqrt(1 - r * r) * values[common_rows]
            keys = np.where(common_rows, hashes, fresh(dice, rows))
            name = f"{number:03d}/{candidate:03d}"
            x, y = marginal(z[common_rows]), marginal(values[common_rows])
            truth[name] = float(np.corrcoef(x, y)[0, 1]) if x.std() and y.std() else 0.0
            tables.append(Table(name, keys, {"v": marginal(values)}))
        queries.append((Table(f"query {number}", hashes, {"v": marginal(z)}), truth))
    search, _ = build(options.folder / "stc.idx", tables, n)
    for table, truth in queries:
        query = query_of(table, "v", n)
        tops = {way: _first(search, query, retrieval, 100) for way, retrieval in WAYS.items()}
        for way in WAYS:
            for what, value in _found(way, tops, truth):
                found[way].setdefault(what, []).append(value)
    return {way: {what: statistics.mean(values) for what, values in each.items()} for way, each in found.items()}


def _found(way: str, tops: dict[str, list[tuple[str, float]]], truth: dict[str, float]) -> Iterable[tuple[str, float]]:
    """Recall, true and of the pool of what any way found, and nDCG after re-ranking, for the best 50 and 100."""
    best = sorted((abs(r) for r in truth.values()), reverse=True)
    for k in (50, 100):
        top = tops[way][:k]
        names = {name for name, _ in top}
        for bound in (0.25, 0.5, 0.75):
            relevant = {name for name, r in truth.items() if abs(r) > bound}
            pool = relevant & {name for some in tops.values() for name, _ in some[:k]}
            yield f"true_{int(100 * bound)}_at_{k}", len(relevant & names) / max(1, len(relevant))
            if pool:
                yield f"pooled_{int(100 * bound)}_at_{k}", len(pool & names) / len(pool)
        gains = [abs(truth[name]) for name, _ in sorted(top, key=lambda item: -abs(item[1]))]
        for place in (5, 10, 50):
            yield f"ndcg_{place}_of_{k}", _dcg(gains[:place]) / _dcg(best[:place])


def _first(search: CorrelationSearch, query: KeyedQuery, retrieval: str, k: int) -> list[tuple[str, float]]:
    """The best of the first stage in its own order: tables, with the estimates that would re-rank them."""
    ((variant, pairs, score),) = search.screen(query, CorrelationCriteria(k=k, retrieval=retrieval))  # type: ignore[arg-type]
    best = pairs[np.argsort(-score, kind="stable")[:k]]
    r = estimators.pearson(search.join(variant, best, "mean").samples)
    names = [search.sketches.tables[int(search.sketches.owners[pair])] for pair in best.tolist()]
    return list(zip(names, np.nan_to_num(r).tolist(), strict=True))


def _dcg(gains: Sequence[float]) -> float:
    return sum(gain / np.log2(place + 2) for place, gain in enumerate(gains)) or 1e-12


# --- haystack: ranking ------------------------------------------------------------------------------------------------


def haystack(options: argparse.Namespace) -> Section:
    """MAP and nDCG of the scores where samples are of very different size."""
    dice = np.random.default_rng(5)
    marginals = [MARGINALS[name] for name in ("normal", "lognormal 1", "t3", "60% zeros", "Pareto 1.2")]
    figures: dict[str, dict[str, list[float]]] = {}
    for _ in range(options.haystacks):
        pairs, truth = [], []
        for candidate in range(300):
            r = dice.uniform(0.3, 1) * dice.choice([-1, 1]) if candidate < 45 else 0.0
            n = int(np.exp(dice.uniform(np.log(3), np.log(256))))
            marginal = marginals[int(dice.integers(len(marginals)))]
            z = dice.normal(size=(2, 4000))
            x, y = marginal(z[0]), marginal(r * z[0] + np.sqrt(1 - r * r) * z[1])
            rows = dice.choice(4000, n, replace=False)
            pairs.append((x[rows] * 10 ** dice.uniform(-3, 3), y[rows] * 10 ** dice.uniform(-3, 3)))
            truth.append(abs(float(np.corrcoef(x, y)[0, 1])))
        samples = Samples.of(pairs)
        relevance = np.array(truth)
        for rank in ("sample size", "s1", "s2", "s3", "s4", "lower"):
            score = samples.n.astype(float) if rank == "sample size" else scores(samples, np.full(300, 4000.0), rank)
            order = np.argsort(-np.nan_to_num(score), kind="stable")
            each = figures.setdefault(rank, {})
            for bound in (0.75, 0.5):
                if (relevance > bound).any():
                    each.setdefault(f"MAP >{bound}", []).append(_average_precision(relevance[order] > bound))
            for k in (5, 10):
                best = np.sort(relevance)[::-1]
                each.setdefault(f"nDCG@{k}", []).append(_dcg(relevance[order][:k].tolist()) / _dcg(best[:k].tolist()))
    means = {rank: {what: statistics.mean(some) for what, some in each.items()} for rank, each in figures.items()}
    lines = [[rank, *(common.figure(value) for value in each.values())] for rank, each in means.items()]
    text = "## Haystack: ranking\n\n" + common.table(["score", *next(iter(means.values()))], lines)
    gain = means["s1"]["MAP >0.75"] / means["lower"]["MAP >0.75"]
    return text, means, [common.at_most("haystack: MAP r>.75, s1 / our default", 0.5, gain)]


def _average_precision(relevant: npt.NDArray[np.bool_]) -> float:
    places = np.flatnonzero(relevant)
    return float(np.mean((np.arange(places.size) + 1) / (places + 1)))


# --- coverage ---------------------------------------------------------------------------------------------------------


def populations(dice: np.random.Generator) -> dict[str, tuple[F64, F64]]:
    """The twelve populations of 20,000 rows."""
    found = {}
    for name, marginal, r in (
        *(("normal r=0", "normal", 0.0), ("normal r=.5", "normal", 0.5), ("normal r=.9", "normal", 0.9)),
        *(("lognormal 1 r=.5", "lognormal 1", 0.5), ("lognormal 1 r=.9", "lognormal 1", 0.9)),
        *(("lognormal 2 r=.9", "lognormal 2", 0.9), ("t3 r=.5", "t3", 0.5), ("t3 r=.9", "t3", 0.9)),
        *(("60% zeros r=.5", "60% zeros", 0.5), ("Pareto 1.2 r=.9", "Pareto 1.2", 0.9)),
    ):
        z = dice.normal(size=(2, 20_000))
        make = MARGINALS[marginal]
        found[name] = make(z[0]), make(r * z[0] + np.sqrt(1 - r * r) * z[1])
    u = dice.random((2, 20_000))
    found["uniform r=.7"] = u[0], u[0] + u[1]
    x = dice.exponential(size=20_000)
    found["exponential, linear"] = x, x + dice.exponential(size=20_000)
    return found


def coverage(options: argparse.Namespace) -> Section:
    """How often the intervals that are shown hold the coefficient they are labelled with."""
    dice = np.random.default_rng(6)
    sizes = (10, 16, 32, 64, 128, 256, 512, 1024)
    lines, body = [], {}
    series: dict[str, list[tuple[float, float]]] = {}
    shown: list[float] = []
    for name, (x, y) in populations(dice).items():
        whole = Samples.of([(x, y)])
        truth = {"pearson": estimators.pearson(whole)[0], "spearman": estimators.spearman(whole)[0]}
        row = []
        for n in sizes:
            chosen = [dice.choice(20_000, n, replace=False) for _ in range(options.trials)]
            samples = Samples.of([(x[rows], y[rows]) for rows in chosen])
            rows = np.full(samples.n.size, 20_000.0)
            r, rank_r = estimators.pearson(samples), estimators.spearman(samples)
            low, high = pearson_interval(samples, r, rows)
            rank_low, rank_high = spearman_interval(samples, rank_r, rows)
            heavy = heavy_tailed(samples)
            held = np.where(
                heavy,
                (rank_low <= truth["spearman"]) & (truth["spearman"] <= rank_high),
                (low <= truth["pearson"]) & (truth["pearson"] <= high),
            )
            row.append(float(held.mean()))
            series.setdefault(name, []).append((float(n), float(held.mean())))
        shown += row
        body[name] = dict(zip(map(str, sizes), row, strict=True))
        lines.append([name, *(common.figure(each) for each in row)])
    (options.out / "correlations-coverage.svg").write_text(
        line_chart(series, title="Coverage of the intervals shown (nominal 95%)", x="sample", y="coverage", log_y=False)
    )
    text = "## Coverage of the intervals that are shown, nominal 95%\n\n"
    text += common.table(["population of 20,000 rows", *(f"n={n}" for n in sizes)], lines)
    text += (
        f"\n\nMean {statistics.mean(shown):.3f}, worst {min(shown):.3f}. The interval is that of Pearson's "
        "coefficient, or of Spearman's where a tail is heavy, as an answer says. [Plot](correlations-coverage.svg)."
    )
    body["mean"], body["worst"] = statistics.mean(shown), min(shown)
    return (
        text,
        body,
        [common.at_most("coverage: nominal misses (0.05) + 0.02, mean", 0.07, 1 - statistics.mean(shown))],
    )


# --- sizes of joins ---------------------------------------------------------------------------------------------------

ROWS_OF_A_KEY: dict[str, Callable[[np.random.Generator, int], I64]] = {
    "one": lambda dice, count: np.ones(count, np.int64),
    "1 to 20": lambda dice, count: dice.integers(1, 21, count),
    "geometric, mean 10": lambda dice, count: dice.geometric(0.1, count),
    "Pareto 1.2": lambda dice, count: (dice.pareto(1.2, count) + 1).astype(np.int64),
}


def _joined_pair(dice: np.random.Generator, name: str, keys: int, share: float, law: str) -> tuple[Table, Table, int]:
    """Two tables of so many keys that share some; and how many rows their join has."""
    both = round(keys * share)
    hashes = fresh(dice, 2 * keys - both)
    rows = [ROWS_OF_A_KEY[law](dice, keys) for _ in range(2)]
    value = dice.normal(size=hashes.size)
    places = [np.arange(keys), np.arange(keys - both, 2 * keys - both)]
    mine, theirs = (
        Table(f"{name} {side}", hashes[at], {"v": np.repeat(value[at], count)}, count)
        for side, at, count in zip("ab", places, rows, strict=True)
    )
    return mine, theirs, int(rows[0][keys - both :] @ rows[1][:both])


def sizes(options: argparse.Namespace) -> Section:
    """How often the limits of a join's rows and of the share of keys in it hold the truth, by rows of a key."""
    dice = np.random.default_rng(10)
    lines, body, held_rows, held_shares = [], {}, [], []
    for law in ROWS_OF_A_KEY:
        for keys, share in ((2_000, 0.1), (2_000, 0.7), (20_000, 0.1), (20_000, 0.7)):
            drawn = [_joined_pair(dice, f"{number:03d}", keys, share, law) for number in range(options.size_trials)]
            search, _ = build(options.folder / "sizes.idx", (theirs for _, theirs, _ in drawn), 512)
            rows, shares, width = [], [], []
            for mine, theirs, truth in drawn:
                found = [
                    each
                    for each in search.search(query_of(mine, "v", 512), CorrelationCriteria(k=10))
                    if each.table == theirs.name
                ]
                for hit in found:
                    rows.append(hit.joined_rows_low <= truth <= hit.joined_rows_high)
                    shares.append(hit.containment_low <= share <= hit.containment_high)
                    width.append((hit.joined_rows_high - hit.joined_rows_low) / truth)
            about: Json = {
                "found": len(rows),
                "rows": statistics.mean(rows),
                "containment": statistics.mean(shares),
                "width": statistics.median(width),
            }
            body[f"{law}, {keys} keys, {share}"] = about
            lines.append([law, f"{keys:,}", common.figure(share), *(common.figure(each) for each in about.values())])
            # Keys of a law without a variance have their rows where nobody looked.
            if law != "Pareto 1.2":
                held_rows.append(about["rows"])
            held_shares.append(about["containment"])
    heads = ["rows of a key", "keys", "share in both", "found", "rows", "containment", "width of rows, of the truth"]
    text = "## Coverage of the sizes of joins, nominal 95%\n\n" + common.table(heads, lines)
    text += (
        f"\n\n{options.size_trials} pairs of tables each, sketches of 512 keys. Where few keys have most of the rows"
    )
    text += " (Pareto with an exponent of 1.2, on both sides) the limits of rows are too narrow, and not counted below."
    body["rows"], body["containment"] = statistics.mean(held_rows), statistics.mean(held_shares)
    return (
        text,
        body,
        [
            common.at_most("rows of joins: nominal misses (0.05) + 0.02, mean", 0.07, 1 - body["rows"]),
            common.at_most("containment: nominal misses (0.05) + 0.02, mean", 0.07, 1 - body["containment"]),
        ],
    )


# --- speed ------------------------------------------------------------------------------------------------------------


def many_tables(count: int, dice: np.random.Generator, least: int = 60) -> Iterable[Table]:
    """Tables as a lake has them: domains of keys of different popularity and size, five numeric columns each."""
    domains = max(1, count // 40)
    sizes = np.minimum(200_000, least * (dice.pareto(0.9, domains) + 1)).astype(int)
    keys = [fresh(dice, size) for size in sizes]
    base = [dice.normal(size=size) for size in sizes]
    for number in range(count):
        domain = int(dice.zipf(1.3)) % domains
        taken = dice.random(sizes[domain]) < dice.uniform(0.2, 1.0)
        if taken.sum() < 10:
            taken[:10] = True
        z, own = base[domain][taken], dice.normal(size=(5, int(taken.sum())))
        strength = dice.uniform(-1, 1, 5) * (dice.random(5) < 0.1)
        columns = {f"v{i}": strength[i] * z + own[i] for i in range(5)}
        yield Table(f"{number:06d}", keys[domain][taken], columns)


def speed(options: argparse.Namespace) -> Section:
    """Mean time of a question to a lake of many sketches; and what it costs to join and correlate everything."""
    dice = np.random.default_rng(8)
    points = []
    build(options.folder / "speed.idx", many_tables(50, np.random.default_rng(8)), 512)
    for count in (options.sketches // 20, options.sketches // 5):
        search, spent = build(options.folder / "speed.idx", many_tables(count, np.random.default_rng(8)), 512)
        points.append(spent)
    sketches = search.sketches
    # Half of the questions come first, for a process that has answered many before; the other half are timed.
    chosen = [int(each) for each in dice.choice(sketches.pairs, 2 * options.speed_queries, replace=False)]
    times, looked = [], []
    for place, pair in enumerate(chosen):
        query = _sketched(search, pair)
        began = time.perf_counter()
        found = search.search(query, CorrelationCriteria(k=100))
        if place >= options.speed_queries:
            times.append(1e3 * (time.perf_counter() - began))
            looked.append(found.info["looked_at"])
    linear = (points[1]["cpu_s"] / points[1]["pairs"]) / (points[0]["cpu_s"] / points[0]["pairs"])
    exact = _exactly(options)
    lines = [
        [f"{spent['pairs']:,}", common.figure(spent["cpu_s"]), f"{spent['bytes_a_pair']:,.0f}"] for spent in points
    ]
    text = "## Speed\n\n" + common.table(["sketches (key and column)", "build CPU-s", "bytes a sketch"], lines)
    text += (
        f"\n\n{sketches.pairs:,} sketches of 512 keys, the best 100, warm: mean {statistics.mean(times):.2f} ms, "
        f"median {statistics.median(times):.2f}, 99% {np.quantile(times, 0.99):.2f}; a question looks at "
        f"{statistics.mean(looked):,.0f} columns that share keys with it. The paper: 19.7 ms on 289,487.\n\n{exact[0]}"
    )
    aims = [
        common.at_most("mean ms of a question, top 100", 5.0, statistics.mean(times)),
        common.at_most("build: cost a sketch, four times as many / as many", 1.25, linear),
        *exact[2],
    ]
    body = {"ms": Spread.of(times), "mean_ms": statistics.mean(times), "build": points, "exact": exact[1]}
    return text, body, aims


def _sketched(search: CorrelationSearch, pair: int) -> KeyedQuery:
    """A column of the lake as a query."""
    owner = int(search.sketches.owners[pair])
    hashes, rows = search.sketches.hashes_of(owner), search.sketches.rows_of(owner)
    about = search.sketches.key(owner)
    return KeyedQuery(
        *(about["table"], ("k",), search.sketches.pair(pair)["column"], hashes, rows),
        *(search.sketches.values_of(pair, "mean"), search.sketches.thresholds[owner], about["distinct"]),
        *((hashes,), {}, "text"),
    )


def _exactly(options: argparse.Namespace) -> Section:
    """The same question the exact way: DuckDB and polars join and correlate every table."""
    import duckdb
    import polars as pl

    tables = list(many_tables(options.exact_tables, np.random.default_rng(8), least=1_000))
    search, _ = build(options.folder / "exact.idx", tables, 512)
    long = pl.concat(
        [
            pl.DataFrame({"k": table.hashes, "t": np.full(table.hashes.size, number, np.int32), **table.columns})
            for number, table in enumerate(tables)
        ]
    )
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.register("arrow_long", long.to_arrow())
    connection.execute("CREATE TABLE lake AS SELECT * FROM arrow_long ORDER BY k")
    columns = [f"v{i}" for i in range(5)]
    spent: dict[str, list[float]] = {"ours": [], "DuckDB": [], "polars": []}
    dice = np.random.default_rng(9)
    for number in dice.choice(len(tables), options.exact_queries, replace=False).tolist():
        table = tables[number]
        mine = pl.DataFrame({"k": table.hashes, "x": table.columns["v0"]})
        keyed = query_of(table, "v0", 512)
        search.search(keyed, CorrelationCriteria(k=100))
        began = time.process_time()
        search.search(keyed, CorrelationCriteria(k=100))
        spent["ours"].append(1e3 * (time.process_time() - began))
        connection.register("mine", mine.to_arrow())
        began = time.process_time()
        sums = ", ".join(f"corr(x, {column})" for column in columns)
        connection.execute(f"SELECT t, {sums}, count(*) FROM lake JOIN mine USING (k) GROUP BY t").fetchall()
        spent["DuckDB"].append(1e3 * (time.process_time() - began))
        began = time.process_time()
        long.join(mine, on="k").group_by("t").agg([pl.corr("x", column).alias(column) for column in columns])
        spent["polars"].append(1e3 * (time.process_time() - began))
    series = 5 * len(tables)
    text = (
        f"Joining and correlating everything, {series:,} series, {long.height:,} rows, CPU-ms a question: "
        + ", ".join(f"{name} {common.figure(statistics.mean(some))}" for name, some in spent.items())
    )
    aims = [
        common.at_most(f"CPU time, ours / {name}", 1.0, statistics.mean(spent["ours"]) / statistics.mean(spent[name]))
        for name in ("DuckDB", "polars")
    ]
    return text, {name: Spread.of(some) for name, some in spent.items()}, aims


# --- real tables ------------------------------------------------------------------------------------------------------


def real(name: str, folder: str, key: list[str], options: argparse.Namespace) -> Section:
    """Estimates, order and recall over real tables against recorded coefficients of real joins."""
    recorded = (options.shared / "gt" / f"corr_{name}.jsonl").read_text()
    queries = [json.loads(line) for line in recorded.splitlines()]
    lake = lakescope.index(options.shared / "lakes" / folder, options.folder / f"{name}.idx")
    lake.warm()
    prefix = f"lakes/{folder}/"
    errors: list[tuple[int, float]] = []
    held, ndcg, recall, times = [], [], [], []
    for query in queries:
        table, column = query["query"].removeprefix(prefix).split("::")
        truth = {each["id"].removeprefix(prefix): each for each in query["results"]}
        began = time.perf_counter()
        found = lake.correlated(table, key, column, k=100, measure="pearson")
        times.append(1e3 * (time.perf_counter() - began))
        known = [
            (each, truth[f"{each.table}::{each.column}"]) for each in found if f"{each.table}::{each.column}" in truth
        ]
        for each, true in known:
            errors.append((each.sample, each.correlation - true[each.coefficient]))
            held.append(each.low - 1e-9 <= true[each.coefficient] <= each.high + 1e-9)
        best = sorted((abs(each["pearson"]) for each in truth.values()), reverse=True)
        gains = [abs(true["pearson"]) for _, true in known]
        ndcg.append(_dcg(gains[:10]) / _dcg(best[:10]))
        strong = {place for place, each in truth.items() if abs(each["pearson"]) >= 0.75}
        if strong:
            names = {f"{each.table}::{each.column}" for each in found[:50]}
            recall.append(len(strong & names) / len(strong))
    classes = [(5, 20), (20, 50), (50, 100), (100, 200), (200, 513)]
    by_size = {f"{low}-{high - 1}": _rmse([e for n, e in errors if low <= n < high]) for low, high in classes}
    text = (
        f"## Real tables: {name}\n\n{len(queries)} queries, {len(errors):,} recorded pairs among the 100 best of each: "
        f"RMSE {_rmse([error for _, error in errors]):.3f}, by sample size "
        + ", ".join(f"{size}: {common.figure(value)}" for size, value in by_size.items())
        + f". Coverage {statistics.mean(held):.3f}, nDCG@10 {statistics.mean(ndcg):.3f}, recall of |r| >= .75 in the "
        f"first 50 {statistics.mean(recall) if recall else float('nan'):.3f} ({len(recall)} queries have such). Median "
        f"{statistics.median(times):.1f} ms a question."
    )
    body = {"rmse": by_size, "coverage": statistics.mean(held), "ndcg_10": statistics.mean(ndcg), "recall": recall}
    aims = [
        common.at_most(f"{name}: missed of |r| >= .75 in the first 50", 0.2, 1 - statistics.mean(recall or [1.0])),
        common.at_most(f"{name}: 1 - nDCG@10", 0.15, 1 - statistics.mean(ndcg)),
    ]
    return text, body, aims


#: Real tables whose correlations are known: their folder and their key.
REAL = {"nyc_311_day": ("nyc_311", ["time"]), "gapminder_geo_time": ("gapminder", ["geo", "time"])}
PARTS: dict[str, Callable[[argparse.Namespace], Section]] = {
    **{"sbn": sbn, "stc": stc, "haystack": haystack, "coverage": coverage, "sizes": sizes, "speed": speed},
    **{name: partial(real, name, *where) for name, where in REAL.items()},
}


def main() -> None:
    parser = common.arguments(__doc__)
    parser.add_argument("--tables", type=int, default=2_000, help="SBN: pairs of tables")
    parser.add_argument("--rows", type=int, default=100_000, help="SBN: rows of a table, at most")
    parser.add_argument("--queries", type=int, default=10, help="STC: queries of each distribution")
    parser.add_argument("--sizes", type=int, nargs="+", default=[256, 512, 1024], help="STC: keys of a sketch")
    parser.add_argument("--haystacks", type=int, default=300)
    parser.add_argument("--trials", type=int, default=400, help="coverage: samples of each size")
    parser.add_argument("--size-trials", type=int, default=200, help="sizes: pairs of tables of each kind")
    parser.add_argument("--sketches", type=int, default=300_000, help="speed: keys with a numeric column")
    parser.add_argument("--speed-queries", type=int, default=200)
    parser.add_argument("--exact-tables", type=int, default=296, help="speed: tables that peers join, five series each")
    parser.add_argument("--exact-queries", type=int, default=20)
    parser.add_argument("--only", nargs="+", choices=list(PARTS), help="parts to run")
    parser.add_argument("--shared", type=Path, default=common.HERE.parent.parent / "shared" / "data")
    options = parser.parse_args()
    options.folder = common.data_folder("correlations", keep=options.keep)
    options.out.mkdir(parents=True, exist_ok=True)
    there = {name: part for name, part in PARTS.items() if _is_there(options.shared, name)}
    sections, body, aims = common.run_parts(there, options, __doc__, "correlations")
    versions = {library: version(library) for library in ("lakescope", "duckdb", "polars", "numba", "numpy")}
    common.publish("correlations", "Correlated columns", body, sections, aims, versions, options.out)


def _is_there(shared: Path, part: str) -> bool:
    """Whether the data of a part are here."""
    return part not in REAL or (shared / "gt" / f"corr_{part}.jsonl").exists()


if __name__ == "__main__":
    sys.exit(main())
