"""Headers: hide and rediscover on Wikipedia tables, by corpus size, beside the thesis and a simple rule; detection.

Rediscovery: tables of WikiTableQuestions (``--shared``), of which a share is hidden in each of five fixed splits;
neither their headers nor their values are used, and what is learnt is learnt from the others in each split anew. The
weights that learning starts from are round ones set by hand with an eye on samples of the same tables, and which
evidence counts was decided by looking at these splits. So the same is done for tables that none of them hides, and for
a lake of open data: nothing was decided by these. The thesis' numbers are from its own corpus
of 1.6 million tables, a thousand times as large, and stand beside ours for what they are worth. The simple rule takes
the header of the column that holds most of the values, the commoner one where two hold as many. Time by size: lakes of
tables whose rows are drawn from the same tables, with other digits. Detection: real files with their header, without it
(its row taken away), under a preamble, under a group row or over a row of units; the head of each file (64 KB) is
given to all. The numbers of the detector were set by hand while looking at the first files; the second are others,
drawn in the same way.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import itertools
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

import common
import lakescope
from common import Aim, Json
from lakescope.engines.headers.answers import CONFIRMATIONS, MODES, SEGMENTATIONS
from lakescope.engines.headers.corpus import HeadedColumns
from lakescope.engines.headers.detect import opinion_of
from lakescope.engines.headers.model import Model
from lakescope.engines.headers.similar import propose
from lakescope.engines.headers.suggest import HeaderCriteria
from lakescope.lake import Lake
from lakescope.show.charts import line_chart
from lakescope.studies.headers import (
    RULE,
    Evaluation,
    HiddenTables,
    Rediscovered,
    measured,
    precision_recall,
    split_tables,
)

Section = tuple[str, Json, list[Aim]]
SEEDS = (0, 1, 2, 3, 4)
#: Thesis, table 3.4: threshold, precision, recall, F1, tables with a suggestion.
THESIS = {0.0: (0.36, 0.36, 0.36, 0.99), 0.1: (0.52, 0.38, 0.44, 0.84), 0.2: (0.62, 0.30, 0.41, 0.61)} | {
    0.3: (0.71, 0.22, 0.33, 0.38),
    0.4: (0.78, 0.14, 0.24, 0.22),
}
#: Thesis, table 3.1: per cent of columns with the right header among ten candidates, with others only, with none.
THESIS_SEARCH = {None: (62.73, 36.16, 1.10), 0.0: (74.00, 24.10, 1.10), 0.1: (61.66, 13.49, 24.85)} | {
    0.2: (42.90, 7.92, 49.18),
    0.3: (27.25, 4.02, 68.73),
    0.4: (16.77, 1.98, 81.25),
}
#: Thesis, table 3.2: per cent of tables whose schema is precise to 30, 50, 70, 100%.
THESIS_COHERENCE = {
    ("c", "suc"): (66.1, 54.8, 31.7, 22.2),
    ("c", "pre"): (61.4, 48.5, 26.7, 19.2),
    ("c", "one"): (64.1, 51.3, 30.2, 20.7),
    ("f", "suc"): (61.9, 49.5, 27.4, 18.5),
    ("f", "pre"): (65.4, 53.6, 32.2, 21.9),
    ("f", "one"): (64.2, 52.2, 30.2, 20.8),
    ("d", "suc"): (65.5, 53.3, 31.2, 20.9),
    ("d", "pre"): (59.3, 47.4, 26.1, 17.8),
    ("d", "one"): (63.2, 50.8, 28.9, 18.9),
    ("lr", "suc"): (65.9, 52.4, 30.4, 20.3),
    ("lr", "pre"): (65.2, 52.0, 30.1, 20.2),
    ("lr", "one"): (65.5, 51.9, 29.9, 19.8),
    ("nlr", "suc"): (65.9, 53.9, 31.2, 20.6),
    ("nlr", "pre"): (66.1, 53.9, 30.7, 20.4),
    ("nlr", "one"): (66.3, 53.8, 31.4, 20.7),
}
LIKELY = (0.02, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)


def lake_of(options: argparse.Namespace) -> Lake:
    """The index of the tables, made on first use, and ready for many questions."""
    target = options.index or options.folder / "wtq.idx"
    if not target.exists():
        lakescope.index(options.shared / "headers" / "wtq_train" / "tables", target)
    lake = lakescope.open(target)
    lake.warm()
    return lake


def hidden_of(lake: Lake, headed: HeadedColumns, seed: int, share: float, also: Iterable[int] = ()) -> HiddenTables:
    tables = split_tables(headed, share, seed)
    return HiddenTables(lake._index, lake._joins.inverted, tables, headed=headed, also_hidden=also)


def splits_of(options: argparse.Namespace) -> tuple[HeadedColumns, list[HiddenTables]]:
    """The five splits, each with what it has learnt."""
    if options.splits is None:
        lake = lake_of(options)
        headed = HeadedColumns(lake._index)
        splits = [hidden_of(lake, headed, seed, options.split) for seed in SEEDS]
        for seed, hidden in zip(SEEDS, splits, strict=True):
            common.say(f"split {seed}: learnt from {hidden.search.model.tables} tables")
        options.splits = headed, splits
    found: tuple[HeadedColumns, list[HiddenTables]] = options.splits
    return found


# --- rediscovery ------------------------------------------------------------------------------------------------------


def pooled(method: str, parts: Sequence[tuple[HiddenTables, list[Rediscovered]]]) -> Evaluation:
    """The metrics over the columns of all splits together."""
    tables = [each for _, some in parts for each in some]
    columns = [sum(header is not None for each in some for header in each.truth) for _, some in parts]
    ceiling = sum(hidden.ceiling * count for (hidden, _), count in zip(parts, columns, strict=True)) / sum(columns)
    corpus = round(statistics.mean(hidden.search.corpus.tables for hidden, _ in parts))
    return measured(method, tables, corpus_tables=corpus, ceiling=ceiling)


def asked(hidden: HiddenTables, request: HeaderCriteria) -> list[Rediscovered]:
    """All hidden tables by one request."""
    found = []
    for table in hidden.tables:
        answer = hidden.search.suggest(hidden.search.table(table), request)
        found.append(Rediscovered(hidden.truth(table), [each.headers for each in answer]))
    return found


def by_rule(hidden: HiddenTables) -> list[Rediscovered]:
    found = []
    for table in hidden.tables:
        similar = hidden.search.values.similar(hidden.search.table(table), hidden.search.corpus.whole)
        best = propose(similar, hidden.search.corpus, threshold=None, k=1)
        names = [hidden.columns.headers[some[0].header] if some else None for some in best]
        found.append(Rediscovered(hidden.truth(table), [names]))
    return found


def line(each: Evaluation, *more: object) -> list[object]:
    shares = (each.precision, each.recall, each.f1, each.columns_suggested, each.tables_suggested)
    depths = (each.exact_1, each.exact_5, each.exact_10, each.complete_1, each.all_1)
    return [each.method, *(f"{share:.3f}" for share in shares), *(f"{share:.2f}" for share in depths), *more]


def rediscover(options: argparse.Namespace) -> Section:
    """Five splits: our modes, the curve by how likely headers must be, the thesis' settings, the rule."""
    headed, splits = splits_of(options)
    requests: dict[str, HeaderCriteria] = {mode: HeaderCriteria(mode=mode) for mode in MODES}
    requests |= {f"likely to {least}": HeaderCriteria(threshold=least, m=1) for least in LIKELY}
    thesis = HeaderCriteria(method="thesis")
    requests |= {f"thesis' method, {theta}": replace(thesis, threshold=theta) for theta in THESIS}
    requests["thesis' method, 0.4, no table weight"] = replace(thesis, threshold=0.4, weighted=False)
    requests["thesis' method, no filtering"] = replace(thesis, unfiltered=True)
    found: dict[str, Evaluation] = {}
    parts: dict[str, list[tuple[HiddenTables, list[Rediscovered]]]] = {}
    for name, request in requests.items():
        parts[name] = [(hidden, asked(hidden, request)) for hidden in splits]
        found[name] = pooled(name, parts[name])
        common.say(f"{name}: F1 {found[name].f1:.3f}")
    rules = [(hidden, by_rule(hidden)) for hidden in splits]
    found[RULE] = pooled(RULE, rules)
    spread = {
        "balanced": [pooled("", [part]).f1 for part in parts["balanced"]],
        RULE: [pooled("", [part]).f1 for part in rules],
        "reliable": [pooled("", [part]).precision for part in parts["reliable"]],
    }
    headers = ["method", "P", "R", "F1", "columns", "tables", "exact@1", "@5", "@10", "complete@1", "of all"]
    rows = [line(found[name]) for name in (*MODES, RULE, *(name for name in requests if name.startswith("thesis")))]
    ours = found["balanced"]
    text = (
        f"## Rediscovered headers\n\n{len(SEEDS)} splits (seeds 0 to 4) of {len(headed.tables):,} tables: "
        f"{ours.tables} hidden tables, {ours.columns:,} columns, corpus of {ours.corpus_tables:,} tables each; "
        f"**ceiling {ours.ceiling:.3f}** (columns whose header the corpus has at all). Columns and tables: shares with "
        "a suggestion. exact@m: of tables with a suggestion, one of the first m schemata has no wrong header; "
        "complete: nor a missing one; the last column as a share of all tables.\n\n"
        + common.table(headers, rows)
        + f"\n\nF1 of balanced by split {common.Spread.of(spread['balanced'])}, of the rule "
        f"{common.Spread.of(spread[RULE])}; precision of reliable {common.Spread.of(spread['reliable'])}."
    )
    curve = [found["coverage"], *(found[f"likely to {least}"] for least in LIKELY)]
    better, told = _against_thesis(curve)
    text += "\n\n### At equal suggestion rate\n\n" + told
    calibration, gaps = _calibration(splits)
    text += "\n\n### Are probabilities right?\n\n" + calibration
    classes = ("exact", "spacing", "word_form", "shorter_form", "granularity", "synonym", "incorrect")
    text += "\n\n### How suggested headers relate to the true ones\n\n" + common.table(
        ["mode", *(name.replace("_", " ") for name in classes)],
        [[mode, *(f"{getattr(found[mode], name):.3f}" for name in classes)] for mode in MODES],
    )
    aims = [
        Aim("F1, balanced / simple rule", ">= 2", f"{ours.f1 / found[RULE].f1:.2f}", ours.f1 >= 2 * found[RULE].f1),
        Aim("more precise than the thesis' curve", "at each rate", f"{better} of {len(THESIS)}", better == len(THESIS)),
        Aim(
            "precision of reliable",
            ">= 0.80",
            f"{found['reliable'].precision:.3f} ({found['reliable'].columns_suggested:.0%} of columns)",
            found["reliable"].precision >= 0.80,
        ),
    ]
    body: Json = {name: asdict(each) for name, each in found.items()}
    body |= {"spread": spread, "calibration": gaps}
    return text, body, aims


def _against_thesis(curve: Sequence[Evaluation]) -> tuple[int, str]:
    """Our precision, interpolated, where the thesis suggests headers for as many columns."""
    rates = [each.columns_suggested for each in curve][::-1]
    precisions = [each.precision for each in curve][::-1]
    rows, better = [], 0
    for theta, (precision, recall, _, _) in THESIS.items():
        rate = recall / precision
        mine = float(np.interp(rate, rates, precisions))
        better += mine > precision
        rows.append([theta, f"{rate:.2f}", f"{precision:.2f}", f"{mine:.3f}"])
    head = ["thesis: threshold", "columns with a suggestion", "precision, thesis", "precision, ours"]
    return better, common.table(head, rows)


def _calibration(splits: Sequence[HiddenTables]) -> tuple[str, Json]:
    """How often the likeliest header is right, by how likely it was said to be."""
    said, right = [], []
    for hidden in splits:
        for table in hidden.tables:
            judged, _ = hidden.search.judge.judged(hidden.search.table(table), hidden.search.model, {})
            for each, true in zip(judged, hidden.truth(table), strict=True):
                if true is not None and each.headers.size:
                    at = each.ranked[0]
                    said.append(float(each.probabilities[at]))
                    right.append(hidden.columns.headers[int(each.headers[at])] == true)
    p, ok = np.array(said), np.array(right)
    rows = []
    error = 0.0
    for low in np.arange(0, 1, 0.1):
        inside = (p >= low) & (p < low + 0.1 + (low > 0.85) * 1e-9)
        if inside.any():
            rows.append([f"{low:.1f}", int(inside.sum()), f"{p[inside].mean():.3f}", f"{ok[inside].mean():.3f}"])
            error += inside.mean() * abs(p[inside].mean() - ok[inside].mean())
    text = common.table(["said to be from", "columns", "said, mean", "right"], rows)
    return f"{text}\n\nExpected calibration error {error:.3f}.", {"error": error, "bins": rows}


def fresh(options: argparse.Namespace) -> Section:
    """The same for tables that the splits do not hide, and for a lake of another kind."""
    lake = lake_of(options)
    headed, splits = splits_of(options)
    used = {table for hidden in splits for table in hidden.tables}
    rest = np.setdiff1d(np.unique(headed.table_of[headed.header_of >= 0]), list(used))
    order = np.random.default_rng(2024).permutation(rest)
    size = len(splits[0].tables)
    groups = [np.sort(order[at * size : (at + 1) * size]).tolist() for at in range(len(SEEDS))]
    others = [HiddenTables(lake._index, lake._joins.inverted, group, headed=headed) for group in groups]
    open_data = open_data_of(options)
    known = HeadedColumns(open_data._index)
    lakes = {"Wikipedia": others, "open data": [hidden_of(open_data, known, seed, 0.1) for seed in SEEDS]}
    requests = {mode: HeaderCriteria(mode=mode, m=1) for mode in MODES}
    rows, body, told = [], {}, []
    for name, hidden in lakes.items():
        found = {
            mode: pooled(mode, [(each, asked(each, request)) for each in hidden]) for mode, request in requests.items()
        }
        found[RULE] = pooled(RULE, [(each, by_rule(each)) for each in hidden])
        body[name] = {method: asdict(each) for method, each in found.items()}
        for method, each in found.items():
            shares = (each.precision, each.recall, each.f1, each.columns_suggested)
            rows.append([name, method, *(f"{share:.3f}" for share in shares)])
        calibration, gaps = _calibration(hidden)
        body[name]["calibration"] = gaps
        one = found["balanced"]
        told.append(
            f"{name}: {one.tables} hidden tables, {one.columns:,} columns, corpus of {one.corpus_tables:,} tables, "
            f"ceiling {one.ceiling:.3f}; F1 {one.f1 / found[RULE].f1:.2f} times that of the rule; expected "
            f"calibration error {gaps['error']:.3f}."
        )
        if name == "Wikipedia":
            bins = calibration
        common.say(told[-1])
    text = (
        "## Other tables than those it was made with\n\nFive groups of the Wikipedia tables "
        "that none of the splits above hides; "
        "and five splits (a tenth each) of a lake of open data: other tables, other headers.\n\n"
        + common.table(["lake", "method", "P", "R", "F1", "columns"], rows)
        + "\n\n"
        + "\n".join(f"- {each}" for each in told)
        + "\n\nProbabilities on these Wikipedia tables:\n\n"
        + bins
    )
    wikipedia = body["Wikipedia"]
    ratio = wikipedia["balanced"]["f1"] / wikipedia[RULE]["f1"]
    precision = wikipedia["reliable"]["precision"]
    aims = [
        Aim("other tables: F1, balanced / simple rule", ">= 2", f"{ratio:.2f}", ratio >= 2),
        Aim("other tables: precision of reliable", ">= 0.80", f"{precision:.3f}", precision >= 0.80),
    ]
    return text, body, aims


def open_data_of(options: argparse.Namespace) -> Lake:
    """The index of the lakes of open data whose tables are not all of one schema."""
    target = options.folder / "open.idx"
    if not target.exists():
        lakescope.index([options.shared / "lakes" / name for name in ("core", "fivethirtyeight")], target)
    return lakescope.open(target)


# --- the tables of the thesis -----------------------------------------------------------------------------------------


def search(options: argparse.Namespace) -> Section:
    """Similarity search alone: the right header among ten candidates; and the engines compared."""
    headed, splits = splits_of(options)
    counts: dict[float | None, list[int]] = {theta: [0, 0, 0] for theta in THESIS_SEARCH}
    first: dict[float | None, list[int]] = {theta: [0, 0] for theta in THESIS_SEARCH}
    for hidden in splits:
        for table in hidden.tables:
            similar = hidden.search.values.similar(hidden.search.table(table), hidden.search.corpus.whole)
            truth = hidden.truth(table)
            for theta in counts:
                proposed = propose(similar, hidden.search.corpus, threshold=theta, k=10)
                for some, true in zip(proposed, truth, strict=True):
                    if true is not None:
                        names = [headed.headers[one.header] for one in some]
                        counts[theta][0 if true in names else 1 if names else 2] += 1
                        first[theta][0] += true in names
                        first[theta][1] += names[:1] == [true]
    rows = []
    for theta, (exact, differing, none) in counts.items():
        total = exact + differing + none
        told = " / ".join(f"{share:.1f}" for share in THESIS_SEARCH[theta])
        name = "no filtering" if theta is None else theta
        shares = " / ".join(f"{100 * count / total:.1f}" for count in (exact, differing, none))
        rows.append([name, shares, told, f"{first[theta][1] / max(1, first[theta][0]):.2f}"])
    text = (
        "## Similarity search alone\n\nPer cent of columns whose header is among ten candidates / that get others "
        f"only / that get none. Corpus: {splits[0].search.corpus.tables:,} tables here, 1,627,997 in the thesis. Last "
        "column: of the headers found, those at rank 1.\n\n"
        + common.table(["threshold", "here", "thesis", "rank 1"], rows)
    )
    agreement, told_engines = _engines(splits[0], options.sketched)
    return text + "\n\n" + told_engines, {"search": rows, "engines": agreement}, agreement.pop("aims")


def _engines(hidden: HiddenTables, count: int) -> tuple[Json, str]:
    """Sketches as in the thesis beside lists: are similarities equal, and what does each cost?"""
    search, corpus = hidden.search, hidden.search.corpus
    tables = hidden.tables[:count]
    request = HeaderCriteria(method="thesis", engine="hll", threshold=0.0)
    began = time.process_time()
    _ = search.sketches
    built = time.process_time() - began
    equal = pairs = worst = 0
    expected = 0.0
    spent = {"lists": 0.0, "sketches": 0.0}
    for table in tables:
        nameless = search.table(table)
        began = time.process_time()
        exact = search.values.similar(nameless, corpus.whole)
        spent["lists"] += time.process_time() - began
        began = time.process_time()
        estimated = search.similar(nameless, request)
        spent["sketches"] += time.process_time() - began
        known = np.unique(corpus.table)
        equal += int((np.abs(exact.tables[known] - estimated.tables[known]) < 1e-12).sum())
        pairs += known.size
        # Two of n values share one of 2^25 entries.
        sizes = search.sketches.table_sizes[known] + nameless.groups.size
        expected += float(sum(size * (size - 1) / 2**26 for size in sizes.tolist()))
        for one, other in zip(exact.sharing, estimated.sharing, strict=True):
            mine = dict(zip(one.numbers.tolist(), one.overlaps.tolist(), strict=True))
            theirs = dict(zip(other.numbers.tolist(), other.overlaps.tolist(), strict=True))
            away = [abs(mine.get(number, 0) - theirs.get(number, 0)) for number in mine.keys() | theirs.keys()]
            equal += away.count(0)
            pairs += len(away)
            worst = max([worst, *away])
    per = {name: 1e3 * seconds / max(1, len(tables)) for name, seconds in spent.items()}
    text = (
        f"Similarities from HyperLogLog++ equal those counted in {equal:,} of {pairs:,} pairs of tables and of columns "
        f"({len(tables)} hidden tables); the others are off by {worst}: a sketch has 2^25 entries, and two values that "
        f"fall on one count once. Of so many pairs of tables of these sizes that is to be expected in up to "
        f"{expected:.1f}; one such value of a hidden table shows in every pair it is part of. Lists are exact. A table "
        f"takes {per['lists']:.1f} CPU-ms by lists, {per['sketches']:,.0f} by "
        f"sketches, {per['sketches'] / per['lists']:,.0f} times as much ({built:.1f} CPU-s to load them)."
    )
    share = equal / max(1, pairs)
    aims = [
        Aim("similarities from sketches equal counted ones", ">= 0.999", f"{share:.5f}", share >= 0.999 and worst <= 1)
    ]
    return {"equal": equal, "pairs": pairs, **per, "aims": aims}, text


def coherences(options: argparse.Namespace) -> Section:
    """Three segmentations and five confirmation measures, by the precision that tables reach."""
    _, splits = splits_of(options)

    def reached(request: HeaderCriteria) -> list[float]:
        precisions = []
        for hidden in splits:
            for each in asked(hidden, request):
                right, suggested, _ = precision_recall(
                    each.truth, each.schemata[0] if each.schemata else [None] * len(each.truth)
                )
                precisions.append(right / suggested if suggested else 0.0)
        return [100 * statistics.mean(p >= least - 1e-9 for p in precisions) for least in (0.3, 0.5, 0.7, 1.0)]

    rows, body = [], {}
    for measure in CONFIRMATIONS:
        for segmentation in SEGMENTATIONS:
            request = HeaderCriteria(
                method="thesis", threshold=0.1, m=1, segmentation=segmentation, confirmation=measure
            )
            mine = reached(request)
            told = THESIS_COHERENCE[measure, segmentation]
            rows.append(
                [f"m_{measure}", f"Sg_{segmentation}", *(f"{a:.1f} ({b:.1f})" for a, b in zip(mine, told, strict=True))]
            )
            body[f"{measure}/{segmentation}"] = mine
    ours = reached(HeaderCriteria(m=1))
    rows.append(["ours", "balanced", *(f"{share:.1f}" for share in ours)])
    text = (
        "## Coherence measures\n\nPer cent of hidden tables whose best schema is precise to at least so much, at a "
        "threshold of 0.1; in brackets the thesis' on its own tables. The last line is ours.\n\n"
        + common.table(["measure", "segmentation", ">= 30%", ">= 50%", ">= 70%", "100%"], rows)
    )
    return text, body | {"ours": ours}, []


# --- growth and time --------------------------------------------------------------------------------------------------


def growth(options: argparse.Namespace) -> Section:
    """Quality and time by the size of the corpus."""
    lake = lake_of(options)
    headed = HeadedColumns(lake._index)
    series: dict[str, list[tuple[float, float]]] = {
        "ours, F1": [],
        "rule, F1": [],
        "reliable, columns": [],
        "ceiling": [],
    }
    rows, body = [], {}
    sizes = [*options.corpora, 0]
    for size in sizes:
        parts: dict[str, list[tuple[HiddenTables, list[Rediscovered]]]] = {"balanced": [], "reliable": [], RULE: []}
        milliseconds = []
        for seed in SEEDS[: options.growth_splits]:
            tables = set(split_tables(headed, options.split, seed))
            others = np.setdiff1d(np.arange(len(headed.tables)), list(tables))
            order = np.random.default_rng(100 + seed).permutation(others)
            hidden = hidden_of(lake, headed, seed, options.split, order[size:].tolist() if size else ())
            _ = hidden.search.model
            asked(hidden, HeaderCriteria())
            began = time.process_time()
            parts["balanced"].append((hidden, asked(hidden, HeaderCriteria())))
            milliseconds.append(1e3 * (time.process_time() - began) / len(hidden.tables))
            parts["reliable"].append((hidden, asked(hidden, HeaderCriteria(mode="reliable"))))
            parts[RULE].append((hidden, by_rule(hidden)))
        found = {name: pooled(name, some) for name, some in parts.items()}
        count = found["balanced"].corpus_tables
        reliable = found["reliable"]
        for name, value in zip(
            series,
            (found["balanced"].f1, found[RULE].f1, reliable.columns_suggested, reliable.ceiling),
            strict=True,
        ):
            series[name].append((float(count), value))
        spread = common.Spread.of(milliseconds)
        rows.append(
            [
                *(f"{count:,}", f"{reliable.ceiling:.2f}", f"{found['balanced'].f1:.3f}", f"{found[RULE].f1:.3f}"),
                *(f"{reliable.precision:.3f}", f"{reliable.columns_suggested:.3f}", str(spread)),
            ]
        )
        body[str(count)] = {name: asdict(each) for name, each in found.items()} | {"milliseconds": milliseconds}
        common.say(f"corpus of {count:,} tables: F1 {found['balanced'].f1:.3f}, {spread} ms")
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "headers-growth.svg").write_text(
        line_chart(series, title="Headers rediscovered by size of the corpus", x="tables", y="share", log_y=False)
    )
    head = ["corpus tables", "ceiling", "F1, ours", "F1, rule", "reliable: P", "columns", "CPU-ms a table, warm"]
    largest, time_per_table = rows[-1], statistics.median(body[rows[-1][0].replace(",", "")]["milliseconds"])
    text = (
        f"## By size of the corpus\n\n{options.growth_splits} splits. [Plot](headers-growth.svg). The thesis: 11.1 s a "
        f"table (wall time, on a server, 1.6 million tables).\n\n{common.table(head, rows)}"
    )
    first, last = rows[0][0].replace(",", ""), largest[0].replace(",", "")
    grown = time_per_table / statistics.median(body[first]["milliseconds"])
    factor = int(last) / int(first)
    aims = [
        common.at_most("time of a table, warm", 50, time_per_table, " CPU-ms"),
        common.at_most(f"time, corpus {factor:.0f} times as large", factor, grown, " times"),
    ]
    return text, body, aims


def resampled(options: argparse.Namespace, columns: int) -> Path:
    """A lake of about so many columns: rows of the Wikipedia tables drawn anew, some digits changed."""
    root: Path = options.folder / f"resampled-{columns}"
    dice = np.random.default_rng(1)
    tables = [rows for path in wikipedia_files(options) if len(rows := list(_rows(path.read_text("utf-8")))) > 3]
    made = number = 0
    while made < columns:
        header, *body = tables[number % len(tables)]
        kept = np.sort(dice.permutation(len(body))[: max(2, min(30, len(body) // 2))])
        lines = [[_other_digits(cell, dice) for cell in body[at]] for at in kept.tolist()]
        path = root / f"{number // 1000:02}" / f"t{number:05}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(written([header, *lines]), "utf-8")
        made += len(header)
        number += 1
    return root


def _other_digits(cell: str, dice: np.random.Generator) -> str:
    return "".join(str(dice.integers(10)) if c.isdigit() and dice.random() < 0.3 else c for c in cell)


def scale(options: argparse.Namespace) -> Section:
    """Time to open and to ask, by the number of columns of the lake."""
    rows, body = [], {}
    for columns in options.scale:
        target = options.folder / f"resampled-{columns}.idx"
        lakescope.index(resampled(options, columns), target)
        spent = []
        for _ in range(2):
            lake = lakescope.open(target)
            began = time.process_time()
            search = lake._headers
            _ = search.judge.corpus.whole
            spent.append(time.process_time() - began)
        search.model = Model.beginning()
        some = np.random.default_rng(3).permutation(len(search.columns.tables))[:20].tolist()
        took = []
        for times in range(4):
            began = time.process_time()
            for number in some:
                search.suggest(search.table(number), HeaderCriteria())
            if times:
                took.append(1e3 * (time.process_time() - began) / len(some))
        spread = common.Spread.of(took)
        count = len(search.columns)
        rows.append([f"{len(search.columns.tables):,}", f"{count:,}", f"{spent[0]:.2f}", f"{spent[1]:.2f}", spread])
        body[str(count)] = {"first": spent[0], "again": spent[1], "milliseconds": took}
        common.say(f"{count:,} columns: opened in {spent[0]:.2f}, then {spent[1]:.2f} CPU-s; {spread} CPU-ms a table")
    text = (
        "## Time by the number of columns\n\nOpening for the first time makes the terms of all columns and keeps them "
        "beside the index; later ones map them.\n\n"
        + common.table(["tables", "columns", "first opening, CPU-s", "later, CPU-s", "CPU-ms a table, warm"], rows)
    )
    first, last = min(body, key=int), max(body, key=int)
    factor = int(last) / int(first)
    grown = statistics.median(body[last]["milliseconds"]) / statistics.median(body[first]["milliseconds"])
    aims = [common.at_most(f"time of a table, {factor:.0f} times the columns", factor, grown, " times")]
    return text, body, aims


# --- detection --------------------------------------------------------------------------------------------------------

PREAMBLES = (
    ["Quarterly report"],
    ["Source: open data portal", "Created 2021-03-04 by the statistics office"],
    ["# exported by a tool", "# do not edit"],
    ["Table 1: results by region and year", "", "All figures are provisional"],
)


def wikipedia_files(options: argparse.Namespace) -> list[Path]:
    return sorted((options.shared / "headers" / "wtq_train" / "tables").glob("*.csv"))


def _rows(text: str) -> Iterator[list[str]]:
    with contextlib.suppress(csv.Error):
        yield from csv.reader(io.StringIO(text, newline=""))


def real_files(options: argparse.Namespace, skip: int = 0) -> list[tuple[str, list[list[str]]]]:
    """The heads of real files, each with a header of one row: Wikipedia tables, and a lake of open data."""
    dice = np.random.default_rng(5)
    lakes = sorted((options.shared / "lakes").rglob("*.csv"))
    found = []
    for kind, paths in (("wikipedia", wikipedia_files(options)), ("open data", lakes)):
        for at in dice.permutation(len(paths))[skip : skip + options.files].tolist():
            try:
                text = paths[at].read_bytes()[:65_536].decode("utf-8")
            except UnicodeDecodeError:
                continue
            head = list(itertools.islice(_rows(text), 200))[:-1]
            rows = [row for row in head if any(cell.strip() for cell in row)]
            if len(rows) > 4 and len(rows[0]) > 1 and len({len(row) for row in rows}) == 1:
                found.append((kind, rows))
    return found


def written(rows: Iterable[Sequence[str]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def variants(number: int, rows: list[list[str]]) -> dict[str, tuple[str, int, int]]:
    """Texts of one file by what was done to it, each with lines of preamble and rows of header."""
    width = len(rows[0])
    lines = PREAMBLES[number % len(PREAMBLES)]
    padded = written([[line, *[""] * (width - 1)] for line in lines])
    made = {
        "header": (written(rows), 0, 1),
        "none": (written(rows[1:]), 0, 0),
        "preamble": ("".join(f"{line}\n" for line in lines) + written(rows), len(lines), 1),
        "preamble, padded": (padded + written(rows), len(lines), 1),
        "preamble, none": ("".join(f"{line}\n" for line in lines) + written(rows[1:]), len(lines), 0),
        "padded, none": (padded + written(rows[1:]), len(lines), 0),
    }
    if width >= 4:
        group = ["", "Group A", *[""] * (width - 3), "Group B"]
        made["group row"] = (written([group, *rows]), 0, 2)
        units = ["", *(["(m)", "(kg)", "(%)", "(USD)"][place % 4] for place in range(width - 1))]
        made["row of units"] = (written([rows[0], units, *rows[1:]]), 0, 2)
    return made


Told = tuple[bool | None, int | None]


def detectors() -> dict[str, Callable[[Path], Told]]:
    """What each says of a file: whether it has a header, and how many lines come before the data."""
    import duckdb
    import polars as pl

    connection = duckdb.connect()
    connection.execute("SET threads = 1")

    def ours(path: Path) -> Told:
        found = opinion_of(str(path))
        return (None, None) if found is None else (found.header, found.data_line)

    def duck(path: Path) -> Told:
        query = "SELECT HasHeader, SkipRows FROM sniff_csv(?)"
        header, skipped = connection.execute(query, [str(path)]).fetchone() or (None, 0)
        return header, int(skipped) + bool(header)

    def sniffer(path: Path) -> Told:
        header = csv.Sniffer().has_header(path.read_text("utf-8"))
        return header, int(header)

    def polars_default(path: Path) -> Told:
        pl.read_csv(path, n_rows=5, ignore_errors=True, truncate_ragged_lines=True)
        return True, 1

    found = {"ours": ours, "DuckDB": duck, "csv.Sniffer": sniffer, "polars": polars_default}
    try:
        import clevercsv

        def clever(path: Path) -> Told:
            header = clevercsv.Sniffer().has_header(path.read_text("utf-8"))
            return header, int(header)

        found["clevercsv"] = clever
    except ImportError:
        common.say("clevercsv is not installed: left out")
    return found


def detection(options: argparse.Namespace) -> Section:
    """Header or none, and where the data starts, of real files: those the numbers were set by, and others."""
    text, seen = _detected(options, real_files(options))
    more, unseen = _detected(options, real_files(options, options.files))
    text = "## Has it a header?\n\n" + text + "\n\nOther files than those its numbers were set by: " + more
    ours, best = unseen["ours"], max(each["balanced"] for name, each in unseen.items() if name != "ours")
    preambles = statistics.mean(share for variant, share in ours["starts"].items() if variant.startswith("p"))
    told = f"{ours['balanced']:.3f} (best peer {best:.3f})"
    aims = [
        Aim("balanced accuracy, other files", ">= 0.95", told, ours["balanced"] >= max(0.95, best)),
        Aim("preambles found, other files", "most", f"{preambles:.2f}", preambles > 0.5),
    ]
    return text, {"first": seen, "others": unseen}, aims


VARIANTS = ("preamble", "preamble, padded", "preamble, none", "padded, none", "group row", "row of units")


def _detected(options: argparse.Namespace, files: Sequence[tuple[str, list[list[str]]]]) -> tuple[str, Json]:
    tools = detectors()
    path = options.folder / "x.csv"
    right: dict[tuple[str, str, str], list[bool]] = {}
    starts: dict[tuple[str, str], list[bool]] = {}
    # What a tool loads or compiles when it is first used is not counted.
    path.write_text("a,b\n1,2\n3,4\n", "utf-8")
    for tool in tools.values():
        with contextlib.suppress(Exception):
            tool(path)
    spent = dict.fromkeys(tools, 0.0)
    failed = dict.fromkeys(tools, 0)
    count = 0
    for number, (kind, rows) in enumerate(files):
        for variant, (text, preamble, header_rows) in variants(number, rows).items():
            path.write_text(text, "utf-8")
            count += 1
            for name, tool in tools.items():
                began = time.process_time()
                try:
                    header, start = tool(path)
                except Exception:
                    header, start = None, None
                    failed[name] += 1
                spent[name] += time.process_time() - began
                right.setdefault((name, kind, variant), []).append(header == (header_rows > 0))
                whole = header == (header_rows > 0) and start == preamble + header_rows
                starts.setdefault((name, variant), []).append(whole)
    rows_out, body = [], {}
    for name in tools:
        plain = {
            kind: statistics.mean(statistics.mean(right[name, kind, variant]) for variant in ("header", "none"))
            for kind in ("wikipedia", "open data")
        }
        every = {
            variant: statistics.mean([*right[name, "wikipedia", variant], *right[name, "open data", variant]])
            for variant in ("header", "none")
        }
        balanced = statistics.mean(every.values())
        shares = {variant: statistics.mean(starts[name, variant]) for variant in dict.fromkeys(v for _, v in starts)}
        body[name] = {"balanced": balanced, **plain, **every, "starts": shares, "failed": failed[name]}
        rows_out.append(
            [name, f"{balanced:.3f}", f"{plain['wikipedia']:.3f}", f"{plain['open data']:.3f}"]
            + [f"{shares[variant]:.2f}" for variant in VARIANTS]
            + [failed[name], f"{1e3 * spent[name] / count:.1f}"]
        )
    text = (
        f"{len(files)} real files ({sum(kind == 'wikipedia' for kind, _ in files)} of "
        f"Wikipedia, {sum(kind == 'open data' for kind, _ in files)} of open data), as they are and without their "
        "header: balanced accuracy. Then the share of files of which header or none and the start of the data were "
        "both told right: under a preamble of one to three lines (also padded with delimiters, and each without a "
        "header), with a second header row. polars takes the first line for a header, whatever it is; it and the "
        "sniffers know no preamble.\n\n"
        + common.table(["", "balanced", "Wikipedia", "open data", *VARIANTS, "failed", "CPU-ms"], rows_out)
    )
    return text, body


def main() -> None:
    parser = common.arguments(__doc__)
    parser.add_argument("--split", type=float, default=0.05, help="share of the tables that is hidden")
    parser.add_argument("--corpora", type=int, nargs="*", default=[100, 200, 400, 800], help="growth: tables")
    parser.add_argument("--growth-splits", type=int, default=2)
    parser.add_argument("--sketched", type=int, default=20, help="tables that are also asked for by sketches")
    parser.add_argument("--scale", type=int, nargs="*", default=[1_000, 10_000, 100_000], help="columns of lakes")
    parser.add_argument("--files", type=int, default=200, help="detection: files of each kind")
    parser.add_argument("--index", type=Path, help="an index of the tables that is there already")
    parser.add_argument(
        "--only", nargs="*", help="parts to run: rediscover fresh search coherences growth scale detection"
    )
    parser.add_argument("--shared", type=Path, default=common.HERE.parent.parent / "shared" / "data")
    options = parser.parse_args()
    options.splits = None
    options.folder = common.data_folder("headers", keep=options.keep)
    parts = {
        **{"rediscover": rediscover, "fresh": fresh, "search": search, "coherences": coherences},
        **{"growth": growth, "scale": scale, "detection": detection},
    }
    there = (options.shared / "headers" / "wtq_train" / "tables").is_dir()
    sections, body, aims = common.run_parts(parts if there else {}, options, __doc__, "headers")
    if not there:
        sections.insert(0, f"Not measured: no tables at {options.shared.name}, see `--shared`.")
    versions = {}
    for name in ("lakescope", "numpy", "duckdb", "polars", "clevercsv"):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "not installed"
    common.publish("headers", "Headers", body, sections, aims, versions, options.out)


if __name__ == "__main__":
    main()
