"""Joinable columns: exact search against its baselines and DuckDB, LSH Ensemble against datasketch, ground truth.

A skewed collection stands for a lake: domains of very different size, copies and subsets of columns, columns of row
numbers, a few values that occur everywhere. Every algorithm answers the same queries, columns of the collection by
size, in another order each time; all answers must be equal. Times are of one thread, warm, looking the values up
apart (it is shown by itself). The index is built by the tasks of a build in this process, without Spark.
``--truth FOLDER`` checks answers against recorded ones (``gt/joins_*.jsonl``); datasketch is left out if it is not
installed.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import numpy.typing as npt

import common
from common import Aim, Json, Spread
from lakescope.pipeline.inverted import build_inverted, local_exchange
from lakescope.pipeline.tokens import RawTokens, TokenBuffer, TokenCut
from lakescope.search.inverted import InvertedIndex
from lakescope.search.josie import Algorithm, OverlapSearch
from lakescope.search.lsh_ensemble import Ensemble, reach
from lakescope.sketches.kernels import mix
from lakescope.sketches.minhash import MinHash
from lakescope.sketches.partitions import Partition, partition
from lakescope.store.index import Index
from lakescope.store.segment import ShardWriter
from lakescope.store.writer import IndexWriter

U64 = npt.NDArray[np.uint64]
SIZES = ((10, 100), (100, 1000), (1000, 10_000), (10_000, 100_000))
ALGORITHMS: list[Algorithm] = ["josie", "mergelist", "probeset", "numpy"]
THRESHOLDS = [round(0.1 * i, 1) for i in range(1, 11)]


@dataclass(slots=True)
class Collection:
    """Sets of tokens one after the other."""

    tokens: U64
    ends: npt.NDArray[np.int64]

    def __getitem__(self, number: int) -> U64:
        return self.tokens[self.ends[number] : self.ends[number + 1]]

    def __len__(self) -> int:
        return self.ends.size - 1

    @property
    def sizes(self) -> npt.NDArray[np.int64]:
        return np.diff(self.ends)


def collection(count: int, seed: int = 1) -> Collection:
    """Skewed sets: see the top of this file."""
    dice = np.random.default_rng(seed)
    domains = max(10, count // 10)
    size_of = np.minimum(300_000, 6 + 12 * (dice.pareto(0.85, domains) + 1)).astype(np.int64)
    base = np.concatenate([[0], np.cumsum(size_of)])
    sets: list[U64] = []
    for _ in range(count):
        chance = dice.random()
        if sets and chance < 0.25:  # a copy of a column, or most of one: another year of the same table
            other = sets[int(dice.integers(len(sets)))]
            sets.append(other if chance < 0.05 else other[dice.random(other.size) < dice.uniform(0.5, 1.0)])
            continue
        if chance < 0.35:  # row numbers, counts
            numbers = np.arange(int(min(20_000, 5 * (dice.pareto(1.0) + 1)))) + (1 << 50)
        else:
            domain = int(dice.zipf(1.2)) % domains
            taken = max(2, int(size_of[domain] * dice.beta(0.6, 1.2)))
            skew = dice.choice([1.0, 1.5, 2.5])
            numbers = base[domain] + (size_of[domain] * dice.random(taken) ** skew).astype(np.int64)
        if dice.random() < 0.3:
            numbers = np.concatenate([numbers, dice.integers(0, 40, int(dice.integers(1, 6))) + (1 << 51)])
        sets.append(np.unique(mix(numbers.astype(np.uint64))))
    kept = [each for each in sets if each.size]
    return Collection(np.concatenate(kept), np.concatenate([[0], np.cumsum([each.size for each in kept])]))


def build(path: Path, sets: Collection) -> tuple[InvertedIndex, Json]:
    """Index the sets, and what it took."""
    cut = TokenCut(6, 8)
    shutil.rmtree(path, ignore_errors=True)
    spent: Json = {}
    began = time.process_time()
    with IndexWriter(path) as writer:
        raw, pairs = _raw(writer.staging, sets, cut)
        sketches = ShardWriter(writer.staging, "sketches")
        signed = time.process_time()
        for number in range(len(sets)):
            signature = MinHash()
            signature.update_hashes(sets[number])
            name = f"{number:08d}"
            row = {"table": name, "column": "c", "position": 0, "distinct": b"", "key": cut.set_key(name, "c")}
            sketches.add({**row, "signature": signature.values.tobytes()})
        file = sketches.close()
        assert file is not None
        spent["signatures"] = time.process_time() - signed
        built = build_inverted(local_exchange, writer.staging, raw, [file], cut, pairs)
        writer.publish([file, *built.files], version="benchmark", sources=[], summary={"join": built.figures})
    spent["cpu_s"] = time.process_time() - began
    spent["figures"] = {name: value for name, value in built.figures.items() if name != "partitions"}
    spent["bytes"] = {part.kind: 0 for part in built.files}
    for part in built.files:
        spent["bytes"][part.kind] += part.size
    return InvertedIndex(Index(path)), spent


def _raw(staging: Path, sets: Collection, cut: TokenCut) -> tuple[list, int]:  # type: ignore[type-arg]
    found: dict[int, list[bytes]] = {}
    buffer = TokenBuffer(cut)
    for number in range(len(sets)):
        buffer.add(cut.set_key(f"{number:08d}", "c"), sets[number])
        if buffer.full or number == len(sets) - 1:
            for bucket, payload in buffer.take():
                found.setdefault(bucket, []).append(payload)
    files, pairs = [], 0
    for target in range(cut.targets):
        out = RawTokens(staging)
        for bucket in sorted(found):
            if cut.target_of(bucket) == target:
                out.add(bucket, iter(found[bucket]))
        closed = out.close()
        if closed:
            files.append(closed[0])
            pairs += closed[1]
    return files, pairs


# --- exact search -----------------------------------------------------------------------------------------------------


def duckdb_of(sets: Collection) -> Callable[[U64, int, int], list[int]]:
    """Overlaps of the best sets by SQL over a table of (token, set), which DuckDB holds in memory."""
    import duckdb
    import pyarrow as pa

    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    owners = np.repeat(np.arange(len(sets), dtype=np.int32), sets.sizes)
    postings = pa.table({"token": sets.tokens, "owner": owners})  # noqa: F841
    connection.execute("CREATE TABLE postings AS SELECT * FROM postings ORDER BY token")

    def run(tokens: U64, k: int, exclude: int) -> list[int]:
        query = pa.table({"token": tokens})  # noqa: F841
        rows = connection.execute(
            "SELECT owner, count(*) AS n FROM postings JOIN query USING (token) WHERE owner <> ? "
            "GROUP BY owner ORDER BY n DESC, owner LIMIT ?",
            [exclude, k],
        ).fetchall()
        return [row[1] for row in rows]

    return run


def race(sets: Collection, index: InvertedIndex, options: argparse.Namespace) -> tuple[str, Json, list[Aim]]:
    search = OverlapSearch(index)
    search.warm()
    dice = np.random.default_rng(7)
    sql = None if options.without_duckdb else duckdb_of(sets)
    lines: list[list[object]] = []
    body: Json = {}
    aims: list[Aim] = []
    every: list[float] = []
    for low, high in SIZES:
        numbers = np.flatnonzero((sets.sizes >= low) & (sets.sizes < high))
        chosen = dice.choice(numbers, min(options.queries, numbers.size), replace=False) if numbers.size else []
        for k in options.k:
            times: dict[str, list[float]] = {name: [] for name in (*ALGORITHMS, "duckdb", "lookup")}
            read = []
            for place, number in enumerate(np.asarray(chosen).tolist()):
                query = _timed(times["lookup"], lambda number=number: search.query(sets[number]))
                answers = {}
                for algorithm in common.alternated(ALGORITHMS, place):
                    if algorithm == "probeset" and place % 10:
                        continue
                    top = _timed(
                        times[algorithm],
                        lambda algorithm=algorithm, query=query, number=number, k=k: search.top(
                            query,
                            k,
                            [number],
                            algorithm,  # type: ignore[arg-type]
                        ),
                    )
                    answers[algorithm] = top.overlaps.tolist()
                    if algorithm == "josie":
                        read.append((top.lists, top.entries, top.sets_read))
                if sql is not None and place % 10 == 0:
                    answers["duckdb"] = _timed(
                        times["duckdb"],
                        lambda number=number, k=k: sql(sets[number], k, number),  # type: ignore[misc]
                    )
                if any(answer != answers["josie"] for answer in answers.values()):
                    raise SystemExit(f"answers differ on query {number}: {answers}")
            if not read:
                continue
            body[f"{low}-{high}, k={k}"] = {name: Spread.of(each) for name, each in times.items() if each}
            lines.append(
                [f"{low:,} to {high:,}", k, *(_shown(times[name]) for name in (*ALGORITHMS, "duckdb", "lookup"))]
            )
            body[f"{low}-{high}, k={k}"]["read"] = np.mean(read, axis=0).tolist()
            every += times["josie"]
            for name in ("mergelist", "probeset", "numpy"):
                ours = statistics.mean(times["josie"])
                aims.append(
                    common.at_most(
                        f"{low:,} to {high:,}, k={k}: JOSIE / {name}", 1.0, ours / statistics.mean(times[name])
                    )
                )
            if times["duckdb"]:
                ratio = statistics.median(times["josie"]) / statistics.median(times["duckdb"])
                aims.append(common.at_most(f"{low:,} to {high:,}, k={k}: JOSIE / DuckDB", 1 / 30, ratio))
    aims.append(common.at_most("JOSIE, median ms", 2.0, statistics.median(every)))
    aims.append(common.at_most("JOSIE, 99th percentile ms", 20.0, float(np.quantile(every, 0.99))))
    headers = ["query values", "k", *(f"{name}: median, 99% (ms)" for name in (*ALGORITHMS, "DuckDB", "lookup"))]
    return "## Exact top k\n\n" + common.table(headers, lines), body, aims


def _timed(times: list[float], run: Callable[[], object]) -> object:  # type: ignore[type-arg]
    began = time.perf_counter()
    answer = run()
    times.append(1e3 * (time.perf_counter() - began))
    return answer


def _shown(times: Sequence[float]) -> str:
    return (
        f"{common.figure(statistics.median(times))}, {common.figure(float(np.quantile(times, 0.99)))}" if times else ""
    )


# --- thresholds -------------------------------------------------------------------------------------------------------


def thresholds(sets: Collection, index: InvertedIndex, options: argparse.Namespace) -> tuple[str, Json, list[Aim]]:
    """Precision and recall by threshold and number of partitions, before verification; and by ratio of sizes."""
    dice = np.random.default_rng(9)
    numbers = np.flatnonzero(sets.sizes >= 10)
    chosen = dice.choice(numbers, min(options.queries, numbers.size), replace=False).tolist()
    search = OverlapSearch(index)
    search.warm()
    truth = {}
    for number in chosen:
        top = search.top(search.query(sets[number]), len(sets), [number], "mergelist")
        truth[number] = dict(zip(top.sets.tolist(), (top.overlaps / sets.sizes[number]).tolist(), strict=True))
    sizes = index.sizes
    lines: list[list[object]] = []
    body: Json = {}
    aims: list[Aim] = []
    means: dict[int, list[float]] = {}
    for count in (1, 8, 16, 32):
        ensemble = Ensemble(index, partition(sizes, count))
        for threshold in THRESHOLDS:
            precision, recall, spent, far = [], [], [], 0
            for number in chosen:
                size = int(sets.sizes[number])
                signature = MinHash()
                signature.update_hashes(sets[number])
                began = time.perf_counter()
                hits = ensemble.search(signature.values, size, threshold)
                spent.append(1e3 * (time.perf_counter() - began))
                found = set(hits.sets.tolist()) - {number}
                relevant = {other for other, t in truth[number].items() if t >= threshold}
                near = {other for other in relevant if sizes[other] / size <= reach()}
                far += len(relevant) - len(near)
                if found:
                    precision.append(len(found & relevant) / len(found))
                if near:
                    recall.append(len(found & near) / len(near))
            row = {
                "precision": statistics.mean(precision) if precision else 1.0,
                "recall": statistics.mean(recall) if recall else 1.0,
                "ms": statistics.median(spent),
                "out_of_reach": far,
            }
            body[f"{count} partitions, {threshold}"] = row
            means.setdefault(count, []).append(row["precision"])
            lines.append([count, threshold, *(common.figure(row[name]) for name in ("precision", "recall", "ms")), far])
            if count == 32:
                aims.append(
                    common.at_most(f"threshold {threshold}: missed of what is within reach", 0.05, 1 - row["recall"])
                )
    for few, more in ((1, 8), (8, 16), (16, 32)):
        ratio = statistics.mean(means[few]) / statistics.mean(means[more])
        aims.append(common.at_most(f"precision with {few} / with {more} partitions", 1.0, ratio))
    headers = ["partitions", "threshold", "precision", "recall within reach", "median ms", "relevant sets out of reach"]
    return "## Containment thresholds by signatures\n\n" + common.table(headers, lines), body, aims


def against_datasketch(
    sets: Collection, index: InvertedIndex, options: argparse.Namespace
) -> tuple[str, Json, list[Aim]]:
    """Build and query of datasketch's MinHashLSHEnsemble, with as many permutations and partitions."""
    try:
        from datasketch import MinHash as Theirs
        from datasketch import MinHashLSHEnsemble
    except ImportError:
        return "## Against datasketch\n\nnot installed", {}, []
    few = np.random.default_rng(3).choice(len(sets), min(options.peer_sets, len(sets)), replace=False)
    some = Collection(
        np.concatenate([sets[number] for number in few.tolist()]),
        np.concatenate([[0], np.cumsum(sets.sizes[few])]),
    )
    began = time.process_time()
    ours, _ = build(options.folder / "peer.idx", some)
    mine = time.process_time() - began
    began = time.process_time()
    signatures = []
    for number in range(len(some)):
        signature = Theirs(num_perm=256)
        signature.update_batch([token.tobytes() for token in some[number]])
        signatures.append(signature)
    theirs = MinHashLSHEnsemble(threshold=0.5, num_perm=256, num_part=32)
    theirs.index((number, signatures[number], int(some.sizes[number])) for number in range(len(some)))
    spent = time.process_time() - began
    ensemble = Ensemble(ours, [Partition(*each) for each in ours._index.manifest.summary["join"]["partitions"]])
    search = OverlapSearch(ours)
    search.warm()
    figures: dict[str, dict[str, list[float]]] = {
        name: {"ms": [], "recall": [], "precision": []} for name in ("ours", "datasketch")
    }
    chosen = np.random.default_rng(4).choice(np.flatnonzero(some.sizes >= 10), options.queries).tolist()
    for number in chosen:
        size = int(some.sizes[number])
        top = search.top(search.query(some[number]), len(some), [], "mergelist")
        relevant = {
            s for s, overlap in zip(top.sets.tolist(), top.overlaps.tolist(), strict=True) if overlap >= 0.5 * size
        }
        signature = MinHash()
        signature.update_hashes(some[number])
        for name, run in (
            ("ours", lambda s=signature, n=size: set(ensemble.search(s.values, n, 0.5).sets.tolist())),
            ("datasketch", lambda n=number, size=size: set(theirs.query(signatures[n], size))),
        ):
            found = _timed(figures[name]["ms"], run)
            assert isinstance(found, set)
            figures[name]["recall"].append(len(found & relevant) / len(relevant))
            figures[name]["precision"].append(len(found & relevant) / max(1, len(found)))
    rows = [
        [
            name,
            common.figure(cpu),
            *(common.figure(statistics.mean(figures[name][what])) for what in ("ms", "recall", "precision")),
        ]
        for name, cpu in (("ours", mine), ("datasketch", spent))
    ]
    mean = {name: {what: statistics.mean(each) for what, each in found.items()} for name, found in figures.items()}
    aims = [
        common.at_most("build, ours / datasketch", 1 / 20, mine / spent),
        common.at_most("query, ours / datasketch", 1 / 3, mean["ours"]["ms"] / mean["datasketch"]["ms"]),
        common.at_most("recall, datasketch / ours", 1.0, mean["datasketch"]["recall"] / mean["ours"]["recall"]),
    ]
    text = f"## Against datasketch: {len(some):,} sets, threshold 0.5, 256 permutations, 32 partitions\n\n"
    text += common.table(["library", "build CPU-s, signatures included", "query ms", "recall", "precision"], rows)
    return text, mean, aims


def main() -> None:
    parser = common.arguments(__doc__)
    parser.add_argument("--sets", type=int, default=200_000, help="sets of the collection")
    parser.add_argument("--queries", type=int, default=100, help="queries of each size")
    parser.add_argument("--k", type=int, nargs="+", default=[10], help="how many to find")
    parser.add_argument("--peer-sets", type=int, default=5_000, help="sets for datasketch, which is slow")
    parser.add_argument("--without-duckdb", action="store_true")
    options = parser.parse_args()
    options.folder = common.data_folder("joins", keep=options.keep)
    common.say("making the collection")
    sets = collection(options.sets)
    common.say(f"{len(sets):,} sets, {sets.tokens.size:,} pairs")
    index, spent = build(options.folder / "sets.idx", sets)
    common.say(f"built: {json.dumps(spent)}")
    sections, aims, body = [], [], {"build": spent}
    figures = spent["figures"]
    size = sum(spent["bytes"].values())
    sections.append(
        f"## The collection\n\n{len(sets):,} sets, {figures['tokens']:,} tokens, {figures['pairs']:,} pairs, of which "
        f"{figures['postings']:,} remain as postings of {figures['groups']:,} groups. Built in "
        f"{spent['cpu_s']:.0f} CPU-s, {common.show_bytes(size)}."
    )
    for name, part in (("race", race), ("thresholds", thresholds), ("datasketch", against_datasketch)):
        common.say(name)
        text, body[name], found = part(sets, index, options)
        sections.append(text)
        aims += found
    versions = {}
    for library in ("lakescope", "duckdb", "datasketch", "numba", "numpy"):
        try:
            versions[library] = version(library)
        except PackageNotFoundError:
            continue
    common.publish("joins", "Joinable columns", body, sections, aims, versions, options.out)


if __name__ == "__main__":
    sys.exit(main())
