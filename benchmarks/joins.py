"""Joinable columns: exact search against its baselines and DuckDB, LSH Ensemble against datasketch, recorded answers.

Three collections of sets stand for lakes. One is like open data: numbers of which the small ones are everywhere, ranges
of days, and text in versions of the same column. The others are the hardest there are for any search that wants to
skip: thousands of random samples of the same few domains, which all overlap alike. In the one most sets are of domains
of any size (dense), in the other of large ones (crowded). Every algorithm answers the same queries, sets of the
collection by size, five times in another order each, and what takes less than a millisecond to merge 25 times; the
median counts. All answers must be equal. "Ours" is what a server does: JOSIE, or MergeList for sizes of queries for
which that was quicker when both were tried beforehand, on sets drawn from the collection. Times are of one thread, warm
(all lists were read just before), without looking the values up, which is shown by itself. The indexes are built by the
tasks of a build in this process, without Spark.

MinHashLSH is the ensemble with one partition, Asymmetric MinHash pads all signatures to the largest set. ``--shared``
is a folder with tables and recorded answers (``gt/joins_*.jsonl``), left out if it is not there; so is datasketch.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, get_args

import numpy as np
import numpy.typing as npt
import xxhash

import common
import lakescope
from common import Aim, Json, Spread
from lakescope.engines.joins.costs import measure_and_try
from lakescope.engines.joins.inverted import InvertedIndex
from lakescope.engines.joins.joinable import JoinSearch
from lakescope.engines.joins.josie import Algorithm
from lakescope.engines.joins.lsh_ensemble import Ensemble, bands_and_rows, reach, step_of
from lakescope.engines.joins.overlaps import OverlapSearch
from lakescope.sketches.minhash import PERMUTATIONS, MinHash
from lakescope.sketches.partitions import Partition, partition
from lakescope.values.canonical import NULL_MARKERS
from serve_load import write_index
from sets import U64, Collection, build, crowded, dense, lake_like, together

Section = tuple[str, Json, list[Aim]]
SIZES = ((10, 100), (100, 1000), (1000, 10_000), (10_000, 100_000))
#: What a server does, and what it chooses from or is measured against.
ALGORITHMS: dict[str, Algorithm | None] = {
    "ours": None,
    **{name: name for name in get_args(Algorithm)},
}
THRESHOLDS = [round(0.1 * i, 1) for i in range(1, 11)]
#: Times that every query is answered, and one that is merged in less than a millisecond: a time is the median of its
#: rounds, and of microseconds few rounds are no measurement.
ROUNDS, MANY_ROUNDS = 5, 25
#: Slow algorithms answer one query in so many.
SELDOM = 10
SLOW = ("probeset", "numpy", "duckdb")
RATIOS = (1, 4, 16, 64, 256)
COLLECTIONS: dict[str, Callable[..., Collection]] = {"lake-like": lake_like, "dense": dense, "crowded": crowded}


# --- exact search -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Made:
    """A collection, its index, and what making that took."""

    sets: Collection
    path: Path
    index: InvertedIndex
    spent: Json


_MADE: dict[str, Made] = {}


def made(name: str, options: argparse.Namespace) -> Made:
    """A collection, made when it is first asked for."""
    if name not in _MADE:
        sets = COLLECTIONS[name](options.sets, seed=options.seed)
        path = options.folder / f"{name}.idx"
        _MADE[name] = Made(sets, path, *build(path, sets))
    return _MADE[name]


def collection(name: str, options: argparse.Namespace) -> Section:
    """A collection, and the race over it."""
    it = made(name, options)
    text, figures, aims = race(name, it.sets, it.index, options)
    return f"{_described(name, it)}\n\n{text}", {"collection": it.spent, **figures}, aims


def _described(name: str, it: Made) -> str:
    figures = it.spent["figures"]
    size = sum(it.spent["bytes"].values())
    return (
        f"## The {name} collection\n\n{len(it.sets):,} sets, {figures['tokens']:,} tokens, {figures['pairs']:,} pairs, "
        f"{figures['pairs'] / figures['tokens']:.1f} sets a token; {figures['postings']:,} postings remain of "
        f"{figures['groups']:,} groups. Built in {it.spent['cpu_s']:.0f} CPU-s, {common.show_bytes(size)}."
    )


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


def race(name: str, sets: Collection, index: InvertedIndex, options: argparse.Namespace) -> Section:
    """All algorithms on the same queries."""
    search = ready(index)
    sql = None if options.without_duckdb else duckdb_of(sets)
    dice = np.random.default_rng(7)
    lines: list[list[object]] = []
    body: Json = {"costs": str(search.costs)}
    aims: list[Aim] = []
    every: dict[str, list[float]] = {}
    for low, high in SIZES:
        numbers = np.flatnonzero((sets.sizes >= low) & (sets.sizes < high))
        chosen = dice.choice(numbers, min(options.queries, numbers.size), replace=False).tolist()
        for k in options.k:
            times, read = _answers(search, sets, chosen, k, sql)
            if not read:
                continue
            for each, some in times.items():
                every.setdefault(each, []).extend(some)
            shown = [_shown(times.get(each, [])) for each in (*ALGORITHMS, "duckdb", "lookup")]
            lines.append([f"{low:,} to {high:,}", k, *shown])
            body[f"{low}-{high}, k={k}"] = {each: Spread.of(some) for each, some in times.items() if some}
            body[f"{low}-{high}, k={k}"]["lists, entries, sets read"] = np.mean(read, axis=0).tolist()
            aims += _judged(f"{name}, {low:,} to {high:,} values, k={k}", times)
    told = {each: _ratio(every, each) for each in (*list(ALGORITHMS)[1:], "duckdb") if each in every}
    body["all"] = {"mean ms of ours / mean ms of": told}
    if name == "lake-like":
        baselines = ("mergelist", "probeset")
        aims += [common.at_most(f"{name}, all queries: ours / {each}", 0.5, told[each]) for each in baselines]
        aims.append(common.at_most("median ms", 2.0, statistics.median(every["ours"])))
        aims.append(common.at_most("99th percentile ms", 20.0, float(np.quantile(every["ours"], 0.99))))
    headers = ["query values", "k", *(f"{each}: median, 99% (ms)" for each in (*ALGORITHMS, "DuckDB", "lookup"))]
    text = f"## Exact top k: the {name} collection\n\n" + common.table(headers, lines)
    text += "\n\nMean time of ours over all queries, divided by that of: " + ", ".join(
        f"{each} {common.figure(ratio)}" for each, ratio in told.items()
    )
    text += ". The same queries each; ProbeSet, numpy and DuckDB answer one in ten."
    body["merged"] = sorted(search.costs.merged)
    return text + f" Trying told to merge queries of {len(search.costs.merged)} sizes.", body, aims


def _answers(
    search: OverlapSearch, sets: Collection, chosen: list[int], k: int, sql: Callable[..., list[int]] | None
) -> tuple[dict[str, list[float]], list[tuple[int, int, int]]]:
    """Times of every algorithm, and what JOSIE read. ``paired`` are ours for queries that a slow one answered."""
    for number in chosen[:3]:
        for algorithm in ALGORITHMS.values():
            search.top(search.query(sets[number]), k, [number], algorithm)
    times: dict[str, list[float]] = {}
    read = []
    for place, number in enumerate(chosen):
        query = _timed(times, "lookup", partial(search.query, sets[number]))
        # Warm for all: whoever came first would find the lists anywhere but in the processor's caches.
        _timed(warming := {}, "mergelist", partial(search.top, query, k, [number], "mergelist"))
        answers, rounds = {}, dict[str, list[float]]()
        for round_ in range(MANY_ROUNDS if warming["mergelist"][0] < 1 else ROUNDS):
            for name in common.alternated(list(ALGORITHMS), place + round_):
                if name in SLOW and (place % SELDOM or round_ >= ROUNDS):
                    continue
                top = _timed(rounds, name, partial(search.top, query, k, [number], ALGORITHMS[name]))
                answers[name] = top.overlaps.tolist()
                if name == "josie" and round_ == 0:
                    read.append((top.lists, top.entries, top.sets_read))
        for name, spent in rounds.items():
            times.setdefault(name, []).append(statistics.median(spent))
        if place % SELDOM == 0:
            times.setdefault("paired", []).append(times["ours"][-1])
            if sql is not None:
                answers["duckdb"] = _timed(times, "duckdb", partial(sql, sets[number], k, number))
        if any(answer != answers["ours"] for answer in answers.values()):
            raise SystemExit(f"answers differ on query {number}: {answers}")
    return times, read


def _ratio(times: dict[str, list[float]], name: str) -> float:
    ours = times["paired" if name in SLOW else "ours"]
    return statistics.mean(ours) / statistics.mean(times[name])


def _judged(what: str, times: dict[str, list[float]]) -> Iterator[Aim]:
    for each in list(ALGORITHMS)[1:]:
        # Level within what a repeated measurement differs by.
        yield common.at_most(f"{what}: ours / {each}", 1.1, _ratio(times, each))
    if times.get("duckdb"):
        yield common.at_most(f"{what}: ours / DuckDB", 1 / 30, _ratio(times, "duckdb"))


def ready(index: InvertedIndex) -> OverlapSearch:
    """A search as a server has it."""
    search = OverlapSearch(index)
    search.warm()
    measure_and_try(search)
    return search


def _timed(times: dict[str, list[float]], name: str, run: Callable[[], Any]) -> Any:
    began = time.perf_counter()
    answer = run()
    times.setdefault(name, []).append(1e3 * (time.perf_counter() - began))
    return answer


def _shown(times: Sequence[float]) -> str:
    if not times:
        return ""
    return f"{common.figure(statistics.median(times))}, {common.figure(float(np.quantile(times, 0.99)))}"


# --- thresholds -------------------------------------------------------------------------------------------------------


def thresholds(options: argparse.Namespace) -> Section:
    """Precision and recall by threshold and number of partitions, before verification; and by ratio of sizes."""
    it = made("lake-like", options)
    sets, index = it.sets, it.index
    chosen = (
        np.random.default_rng(9).choice(np.flatnonzero(sets.sizes >= 10), options.queries // 4, replace=False).tolist()
    )
    search = ready(index)
    truth = {number: _contained(search, sets[number], [number]) for number in chosen}
    lines: list[list[object]] = []
    body: Json = {}
    aims: list[Aim] = []
    precision: dict[int, list[float]] = {}
    for count in (1, 8, 16, 32):
        ensemble = Ensemble(index, partition(index.sizes, count))
        for threshold in THRESHOLDS:
            row = _quality(ensemble, sets, truth, threshold)
            body[f"{count} partitions, {threshold}"] = row
            precision.setdefault(count, []).append(row["precision"])
            lines.append([count, threshold, *(common.figure(row[name]) for name in ("precision", "recall", "ms"))])
            lines[-1] += [common.figure(row["passed"]), row["out_of_reach"]]
            if count == 32:
                aims.append(common.at_most(f"threshold {threshold}: missed within reach", 0.05, 1 - row["recall"]))
    for few, more in ((1, 8), (8, 16), (16, 32)):
        ratio = statistics.mean(precision[few]) / statistics.mean(precision[more])
        aims.append(common.at_most(f"precision with {few} / with {more} partitions", 1.0, ratio))
    headers = ["partitions", "threshold", "precision of the bands", "recall within reach", "median ms"]
    headers += ["precision of what is told", "relevant sets out of reach"]
    text = "## Containment thresholds by signatures\n\n" + common.table(headers, lines)
    ratios = body["32 partitions, 0.5"]["by_ratio"]
    text += "\n\nRecall at threshold 0.5 by how much larger the set is than the query: " + ", ".join(
        f"up to {limit}: {share:.3f}" for limit, share in ratios.items()
    )
    return text + ". What lies out of reach is read, not estimated.", body, aims


@dataclass(frozen=True, slots=True)
class Truth:
    """The sets that share a value with a query, in order, and how much of it each contains."""

    sets: npt.NDArray[np.int32]
    shares: npt.NDArray[np.float64]

    def at_least(self, threshold: float) -> npt.NDArray[np.int32]:
        return self.sets[self.shares >= threshold]


def _contained(search: OverlapSearch, tokens: U64, exclude: list[int]) -> Truth:
    top = search.at_least(search.query(tokens), 1, exclude)
    return Truth(top.sets, top.overlaps / tokens.size)


def _signature(tokens: U64) -> npt.NDArray[np.uint32]:
    made = MinHash()
    made.update_hashes(tokens)
    return made.values


def _quality(ensemble: Ensemble, sets: Collection, truth: dict[int, Truth], threshold: float) -> Json:
    precision, passed, recall, spent, far = [], [], [], [], 0
    found_by_ratio: dict[float, list[float]] = {limit: [] for limit in RATIOS}
    for number, contained in truth.items():
        size = int(sets.sizes[number])
        signature = _signature(sets[number])
        began = time.perf_counter()
        hits = np.setdiff1d(ensemble.search(signature, size, threshold).sets, [number])
        spent.append(1e3 * (time.perf_counter() - began))
        bands = np.setdiff1d(ensemble.search(signature, size, threshold, screen=False).sets, [number])
        relevant = contained.at_least(threshold)
        ratios = sets.sizes[relevant] / size
        near, ratios = relevant[ratios <= reach(threshold)], ratios[ratios <= reach(threshold)]
        far += relevant.size - near.size
        for found, into in ((bands, precision), (hits, passed)):
            if found.size:
                into.append(float(np.isin(found, relevant).mean()))
        if near.size:
            there = np.isin(near, hits)
            recall.append(float(there.mean()))
            for limit, some in zip(RATIOS, np.split(there[np.argsort(ratios)], _cuts(ratios)), strict=True):
                found_by_ratio[limit] += some.tolist()
    return {
        "precision": statistics.mean(precision or [1.0]),
        "passed": statistics.mean(passed or [1.0]),
        "recall": statistics.mean(recall or [1.0]),
        "ms": statistics.median(spent),
        "out_of_reach": far,
        "by_ratio": {f"{limit:.0f}": statistics.mean(some) for limit, some in found_by_ratio.items() if some},
    }


def _cuts(ratios: npt.NDArray[np.float64]) -> list[int]:
    """Where in order of ratio each class of ratios ends."""
    return [int(at) for at in np.searchsorted(np.sort(ratios), RATIOS[:-1], "right")]


# --- peers of the ensemble --------------------------------------------------------------------------------------------


def against_datasketch(options: argparse.Namespace) -> Section:
    """Build and query of datasketch's MinHashLSHEnsemble, with as many permutations and partitions; and baselines."""
    some = _some(made("lake-like", options).sets, options.peer_sets)
    began = time.process_time()
    index, spent = build(options.folder / "peer.idx", some)
    cpu = {"ours": time.process_time() - began}
    summary = index._index.manifest.summary["join"]
    ensemble = Ensemble(index, [Partition(*each) for each in summary["partitions"]])
    systems: dict[str, Callable[[int], set[int]]] = {
        "ours": lambda n: set(ensemble.search(_signature(some[n]), int(some.sizes[n]), 0.5).sets.tolist()),
        "MinHashLSH (one partition)": _one_partition(index, some),
        "Asymmetric MinHash": _asymmetric(some),
    }
    memory = {"ours": spent["bytes"]["forest"]}
    theirs = _datasketch(some, cpu, memory)
    if theirs is not None:
        systems["datasketch"] = theirs
    search = ready(index)
    figures: dict[str, dict[str, list[float]]] = {name: {"recall": [], "precision": []} for name in systems}
    times: dict[str, list[float]] = {}
    answered = dict.fromkeys(systems, 0)
    chosen = np.random.default_rng(4).choice(np.flatnonzero(some.sizes >= 10), options.queries).tolist()
    for place, number in enumerate(chosen):
        relevant = set(_contained(search, some[number], []).at_least(0.5).tolist())
        for name in common.alternated(list(systems), place):
            found = _timed(times, name, partial(systems[name], number))
            answered[name] += bool(found)
            figures[name]["recall"].append(len(found & relevant) / len(relevant))
            if found:
                figures[name]["precision"].append(len(found & relevant) / len(found))
    mean = {
        name: {what: statistics.mean(each or [1.0]) for what, each in found.items()} for name, found in figures.items()
    }
    rows = [
        [
            *(name, common.figure(cpu[name]) if name in cpu else "", common.figure(statistics.median(times[name]))),
            *(common.figure(mean[name][what]) for what in ("recall", "precision")),
            f"{answered[name] / len(chosen):.0%}",
            common.show_bytes(memory[name]) if name in memory else "",
        ]
        for name in systems
    ]
    aims = []
    if theirs is not None:
        query = statistics.median(times["ours"]) / statistics.median(times["datasketch"])
        missed = mean["datasketch"]["recall"] / mean["ours"]["recall"]
        aims = [
            common.at_most("build, ours / datasketch", 1 / 20, cpu["ours"] / cpu["datasketch"]),
            common.at_most("query, ours / datasketch", 1 / 3, query),
            common.at_most("recall, datasketch / ours", 1.0, missed),
        ]
    text = f"## Against datasketch: {len(some):,} sets, threshold 0.5, 256 permutations, 32 partitions\n\n"
    headers = ["library", "build CPU-s", "query median ms", "recall", "precision", "queries with an answer", "memory"]
    text += common.table(headers, rows)
    text += (
        "\n\nThe build makes signatures from the values and indexes them; ours makes everything exact search needs as "
        "well. Queries make the signature, too, but datasketch's, which are given theirs. Memory: our mapped file, "
        "what the process of datasketch grew by."
    )
    return text, {"mean": mean, "cpu_s": cpu, "ms": {name: Spread.of(some) for name, some in times.items()}}, aims


def _some(sets: Collection, count: int) -> Collection:
    few = np.random.default_rng(3).choice(len(sets), min(count, len(sets)), replace=False)
    ends = np.concatenate([[0], np.cumsum(sets.sizes[few])])
    return Collection(np.concatenate([sets[number] for number in few.tolist()]), ends)


def _one_partition(index: InvertedIndex, some: Collection) -> Callable[[int], set[int]]:
    """All sets translated by the size of the largest, bands and rows as the paper's objective has them."""
    single = Ensemble(index, partition(index.sizes, 1))
    return lambda n: set(
        single.search(_signature(some[n]), int(some.sizes[n]), 0.5, "paper", screen=False).sets.tolist()
    )


def _asymmetric(some: Collection) -> Callable[[int], set[int]]:
    """Sets padded to the largest with values of no query, then Jaccard search (spec 2.8, 2.10)."""
    dice = np.random.default_rng(11)
    largest = int(some.sizes.max())
    signatures = np.array([_signature(some[number]) for number in range(len(some))])
    # The smallest of n random numbers is distributed as 1 - u**(1/n).
    padded = np.maximum(1, largest - some.sizes)[:, None].astype(np.float64)
    least = -np.expm1(np.log(dice.random(signatures.shape)) / padded) * 2**32
    signatures = np.where((some.sizes == largest)[:, None], signatures, np.minimum(signatures, least.astype(np.uint32)))

    def run(number: int) -> set[int]:
        bands, rows = bands_and_rows(step_of(largest / int(some.sizes[number])), 0.5, objective="paper")
        agree = signatures[:, : bands * rows] == _signature(some[number])[: bands * rows]
        return set(np.flatnonzero(agree.reshape(len(some), bands, rows).all(axis=2).any(axis=1)).tolist())

    return run


def _datasketch(some: Collection, cpu: Json, memory: Json) -> Callable[[int], set[int]] | None:
    try:
        from datasketch import MinHash as Theirs
        from datasketch import MinHashLSHEnsemble
    except ImportError:
        return None
    before, began = _resident(), time.process_time()
    signatures = []
    for number in range(len(some)):
        signature = Theirs(num_perm=PERMUTATIONS)
        signature.update_batch([token.tobytes() for token in some[number]])
        signatures.append(signature)
    ensemble = MinHashLSHEnsemble(threshold=0.5, num_perm=PERMUTATIONS, num_part=32)
    ensemble.index((number, signatures[number], int(some.sizes[number])) for number in range(len(some)))
    cpu["datasketch"], memory["datasketch"] = time.process_time() - began, _resident() - before
    return lambda n: set(ensemble.query(signatures[n], int(some.sizes[n])))


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


# --- recorded answers -------------------------------------------------------------------------------------------------


def _texts(shared: Path, columns: list[Json]) -> Collection:
    """The recorded columns by the rules of the record: cells as they are written, without spaces around them."""
    read: dict[str, list[list[str]]] = {}
    sets = []
    for column in columns:
        if column["table"] not in read:
            raw = (shared / column["table"]).read_bytes()
            try:
                text = raw.decode("utf-8-sig")
            except UnicodeDecodeError:
                text = raw.decode("latin-1")
            read = {column["table"]: list(csv.reader(io.StringIO(text, newline="")))[1:]}
        place = column["column_index"]
        texts = {row[place].strip() for row in read[column["table"]] if place < len(row)} - NULL_MARKERS
        if len(texts) != column["size"]:
            raise SystemExit(f"{column['table']} {column['column']}: {len(texts)} values, {column['size']} recorded")
        sets.append(np.unique(np.array([xxhash.xxh64_intdigest(text.encode(), 42) for text in texts], np.uint64)))
    return together(sets)


def by_their_rules(shared: Path, columns: list[Json], queries: list[Json], scratch: Path) -> int:
    """Queries whose answers are those recorded, if values are counted as the record counts them."""
    sets = _texts(shared, columns)
    index, _ = build(scratch, sets)
    search = ready(index)
    places = {(column["table"], column["column_index"]): number for number, column in enumerate(columns)}
    tables = [column["table"] for column in columns]
    right = 0
    for query in queries:
        number = places[query["table"], query["column_index"]]
        own = [i for i, table in enumerate(tables) if table == query["table"]]
        groups = search.query(sets[number])
        top = search.top(groups, 20, own).overlaps.tolist()
        half = search.at_least(groups, -(-groups.size // 2), own).sets.tolist()
        wanted = {places[each["table"], each["column_index"]] for each in query["containment_ge_0_5"]}
        right += top == [each["overlap"] for each in query["top20"]] and set(half) == wanted
    return right


def recorded(name: str, folder: str, options: argparse.Namespace) -> Section:
    """Answers over real tables against those recorded: the 20 largest overlaps, all containments of at least 0.5."""
    shared, scratch = options.shared, options.folder
    columns = json.loads((shared / "gt" / f"columns_{name}.json").read_text())
    queries = [json.loads(line) for line in (shared / "gt" / f"joins_{name}.jsonl").read_text().splitlines()]
    lake = lakescope.index(shared / folder, scratch / f"{name}.idx")
    joins = JoinSearch(lake._index)
    joins.warm()
    catalog = lake.columns()
    tables = [f"{folder}/{table}" for table in catalog["table"].to_pylist()]
    numbers = {place: i for i, place in enumerate(zip(tables, catalog["position"].to_pylist(), strict=True))}
    known = {numbers.get((column["table"], column["column_index"])) for column in columns}
    # Recorded answers leave numbers and the query's own table out.
    outside = {i for i in range(len(tables)) if i not in known}
    tops = containments = 0
    differing = []
    missed: dict[float, list[float]] = {threshold: [] for threshold in THRESHOLDS}
    for query in queries:
        number = numbers[query["table"], query["column_index"]]
        column = joins.lake_column(number)
        left_out = sorted(outside | {i for i, table in enumerate(tables) if table == tables[number]})
        overlaps = joins.overlaps.top(column.groups, 20, left_out).overlaps.tolist()
        tops += overlaps == [each["overlap"] for each in query["top20"]]
        every = joins.overlaps.at_least(column.groups, 1, left_out)
        shares = dict(zip(every.sets.tolist(), (every.overlaps / max(1, column.size)).tolist(), strict=True))
        found = {numbers_of for numbers_of, share in shares.items() if share >= 0.5}
        wanted = {numbers.get((each["table"], each["column_index"])) for each in query["containment_ge_0_5"]}
        containments += found == wanted
        if overlaps != [each["overlap"] for each in query["top20"]]:
            differing.append({"table": query["table"], "column": query["column"], "ours": overlaps})
        for threshold in THRESHOLDS:
            relevant = {other for other, share in shares.items() if share >= threshold}
            if relevant:
                answer = joins.search(column, threshold=threshold, engine="lsh", exclude=left_out)
                names = {(each.table, each.column) for each in answer}
                got = sum((catalog["table"][i].as_py(), catalog["column"][i].as_py()) in names for i in relevant)
                missed[threshold].append(1 - got / len(relevant))
    exactly = by_their_rules(shared, columns, queries, scratch / f"{name}-texts.idx")
    recall = {threshold: 1 - statistics.mean(some or [0.0]) for threshold, some in missed.items()}
    text = (
        f"## Recorded answers: {name}\n\n{len(columns):,} columns, {len(queries):,} queries. Values counted as the "
        f"record counts them, as they are written: the 20 largest overlaps and all containments of at least 0.5 equal "
        f"in {exactly:,}. By our rules, where `5` is `5.0` and letters may be composed or not: overlaps equal in "
        f"{tops:,}, containments in {containments:,}. Mean recall of the search by "
        "signatures, what is out of their reach read: "
        + ", ".join(f"{threshold}: {share:.3f}" for threshold, share in recall.items())
    )
    aims = [
        Aim(f"{name}: answers as recorded", str(len(queries)), str(exactly), exactly == len(queries)),
        common.at_most(f"{name}: missed at any threshold", 0.05, 1 - min(recall.values())),
    ]
    return (
        text,
        {"queries": len(queries), "as recorded": exactly, "tops": tops, "differing": differing, "recall": recall},
        aims,
    )


# --- processes --------------------------------------------------------------------------------------------------------

_ASK = """
import sys
from pathlib import Path
from lakescope.engines.joins.inverted import InvertedIndex
from lakescope.engines.joins.overlaps import OverlapSearch
from lakescope.store.index import Index
search = OverlapSearch(InvertedIndex(Index(Path(sys.argv[1]))))
search.warm()
for number in range(0, int(search.index.count), 101):
    search.top(search.index.query_of_set(number), 10)
print("ready", flush=True)
sys.stdin.readline()
lines = dict(line.split(":", 1) for line in Path("/proc/self/smaps_rollup").read_text().splitlines()[1:])
print(*(int(lines[name].split()[0]) for name in ("Rss", "Pss", "Shared_Clean", "Private_Dirty")))
"""


def processes(options: argparse.Namespace) -> Section:
    """Four processes with the same index open, each asking many questions: what they hold together."""
    index = made("lake-like", options).path
    held: dict[int, list[int]] = {}
    for count in (1, 4):
        running = [
            subprocess.Popen(
                [sys.executable, "-c", _ASK, str(index)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            for _ in range(count)
        ]
        for each in running:
            assert each.stdout is not None
            each.stdout.readline()
        told = []
        for each in running:
            assert each.stdin is not None
            assert each.stdout is not None
            each.stdin.write("\n")
            each.stdin.flush()
            told.append([int(figure) for figure in each.stdout.readline().split()])
            if len(told) < count:
                continue
        for each in running:
            each.communicate()
        held[count] = [sum(column) * 1024 for column in zip(*told, strict=True)]
    one, four = held[1], held[4]
    rows = [
        [f"{count} processes", *(common.show_bytes(figure) for figure in figures)] for count, figures in held.items()
    ]
    headers = ["", "resident", "proportional share", "shared, clean", "their own"]
    text = "## Memory of processes with the same index\n\n" + common.table(headers, rows)
    # What is not their own is the index, and the libraries.
    shared = (four[1] - four[3]) / one[2]
    aims = [common.at_most("four processes: shared memory / what one of them maps", 1.1, shared)]
    return text, {str(count): figures for count, figures in held.items()}, aims


#: scipy is here for the tests, and numba imports it where it is: users need not have it.
_AS_INSTALLED = "import sys; sys.modules['scipy'] = None; from lakescope.faces.cli import main; main()"


def cold(options: argparse.Namespace) -> Section:
    """Questions on the command line, start-up included, at the demo lake and at a large one."""
    folder, tool = options.folder / "demo", [sys.executable, "-c", _AS_INSTALLED]
    subprocess.run([*tool, "demo", str(folder)], check=True, capture_output=True)
    index = folder / "lake.idx"
    query = sorted((folder / "lake").rglob("*.csv"))[0]
    opened = lakescope.open(index)
    table = opened.tables()["table"][0].as_py()
    # Modules are compiled once, as wherever Python is not told otherwise; the first of the runs does not count.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    large = options.folder / "large.idx"
    write_index(large, tables=10_000, columns=30)
    one = lakescope.open(large).columns(fields=["table", "column"]).slice(0, 1).to_pylist()[0]
    asked = {
        "a table of the lake": [str(index), table],
        "a file": [str(index), str(query)],
        "a file, threshold 0.7": [str(index), str(query), "--threshold", "0.7"],
        "a column of a lake of 300,000": [str(large), one["table"], "--on", one["column"]],
    }
    times = {}
    for name, what in asked.items():
        spent = []
        for _ in range(6):
            began = time.perf_counter()
            subprocess.run([*tool, "join", *what], check=True, capture_output=True, env=environment)
            spent.append(time.perf_counter() - began)
        times[name] = Spread.of(spent[1:])
    rows = [[name, spread] for name, spread in times.items()]
    text = "## Questions on the command line\n\n" + common.table(["query", "seconds, start-up included"], rows)
    aims = [common.at_most(f"cold question: {name}, seconds", 1.5, spread.median) for name, spread in times.items()]
    return text, dict(times), aims


# --- all --------------------------------------------------------------------------------------------------------------


#: Real tables whose joins are known, and their folder.
RECORDED = {"lakes": "lakes", "wtq_train": "headers/wtq_train"}
PARTS: dict[str, Callable[[argparse.Namespace], Section]] = {
    **{name: partial(collection, name) for name in COLLECTIONS},
    **{"thresholds": thresholds, "datasketch": against_datasketch, "processes": processes, "cold": cold},
    **{name: partial(recorded, name, folder) for name, folder in RECORDED.items()},
}


def main() -> None:
    parser = common.arguments(__doc__)
    parser.add_argument("--sets", type=int, default=200_000, help="sets of the collections")
    parser.add_argument(
        "--seed",
        type=int,
        default=8,
        help="of the collections; searches were tuned on those of 1, 3 and 4, constants with 2, 5, 6 and 7 in view",
    )
    parser.add_argument("--queries", type=int, default=200, help="queries of each size")
    parser.add_argument("--k", type=int, nargs="+", default=[10], help="how many to find")
    parser.add_argument("--peer-sets", type=int, default=5_000, help="sets for datasketch, which is slow")
    parser.add_argument("--without-duckdb", action="store_true")
    parser.add_argument("--shared", type=Path, default=common.HERE.parent.parent / "shared" / "data")
    parser.add_argument("--only", nargs="+", choices=list(PARTS), help="parts to run")
    options = parser.parse_args()
    options.folder = common.data_folder("joins", keep=options.keep)
    there = {name: part for name, part in PARTS.items() if _is_there(options.shared, name)}
    sections, body, aims = common.run_parts(there, options, __doc__, "joins")
    versions = {}
    for library in ("lakescope", "duckdb", "datasketch", "numba", "numpy"):
        with suppress(PackageNotFoundError):
            versions[library] = version(library)
    common.publish("joins", "Joinable columns", body, sections, aims, versions, options.out)


def _is_there(shared: Path, part: str) -> bool:
    """Whether the data of a part are here."""
    return part not in RECORDED or (shared / "gt" / f"joins_{part}.jsonl").exists()


if __name__ == "__main__":
    sys.exit(main())
