"""Functional dependencies: beside the miners of Desbordante, by rows and columns, and how well scores tell true ones.

Miners: the sets of ``--shared``/fd/metanome, where all minimal dependencies are known for null = null and null != null.
HyFD and TANE of Desbordante (if it is installed: it is no dependency of ours) run on one thread, each in a process of
its own; CPU time is without reading the file, memory the peak of the process. Scores: values
taken out of four UCI tables and two real ones (spec 4.10). Rules: where published cleaning rules rank among what is
found on the dirty tables. Sensors: 2.3 million generated rows with the pattern of missing values of the Intel lab.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import common
import lakescope
from common import Aim, Json, Section, Spread
from lakescope.array_types import I32
from lakescope.engines.dependencies.compare import candidates_of, degrees
from lakescope.engines.dependencies.discover import discover
from lakescope.engines.dependencies.genuineness import GenuinenessScorer
from lakescope.engines.dependencies.scores import Scorer, beyond_chance, score_all
from lakescope.engines.dependencies.table import CodedTable, read
from lakescope.studies.missing_values import Experiment, auc, precision
from lakescope.studies.pollute import polluted

SETS = "iris bridges hepatitis breast-cancer-wisconsin abalone chess nursery letter".split()
SEMANTICS = {"null_equals_null": "equal", "null_not_equal": "distinct"}
UCI = common.HERE.parent / "tests" / "tables"
#: Tables 4.2 of the thesis and 4.10 of the spec: AUC and precision of the best tenth by PV and PT, null = null.
DEGREES = {
    "iris": (False, [5, 2, 1, 1, 7, 59]),
    "abalone": (True, [783, 219, 122, 57, 56, 1_067]),
    "computer": (True, [3_046, 193, 199, 168, 92, 1_422]),
    "glass": (False, [8_624, 1_156, 536, 166, 84, 687]),
}
BASELINES = {
    ("computer", 0.1): (0.82, 0.97, 0.81, 0.97),
    ("computer", 0.4): (0.83, 0.89, 0.81, 0.89),
    ("glass", 0.1): (0.78, 0.98, 0.78, 0.98),
    ("glass", 0.4): (0.78, 0.93, 0.76, 0.93),
    ("abalone", 0.1): (0.85, 0.80, 0.85, 0.80),
    ("abalone", 0.4): (0.96, 0.99, 0.95, 0.99),
    ("iris", 0.2): (0.85, 0.67, 0.88, 0.83),
}
#: Table 4.3 of the thesis: precision of the best tenth by genuineness on Glass, the best of four numbers of worlds.
WORLDS = {0.05: 0.866, 0.1: 0.657, 0.2: 0.580}
_LIMIT = 300.0
#: A miner that is done sooner than this is asked again, so often at most.
_STEADY, _ROUNDS = 0.1, 50
#: Seconds beyond which a miner is timed once.
_PATIENCE = 60.0


# --- miners -----------------------------------------------------------------------------------------------------------


def mine(system: str, path: str, missing: str, nulls: str, most: int) -> Json:
    """One miner on one file, as a process of its own does it."""
    once = (_ours if system == "lakescope" else _theirs)(system, path, missing, nulls == "equal", most)
    spent, found = once()
    times = [spent]
    # What is done at once is done again: of the first time, half is what a process does anything for the first time.
    while sum(times) < _STEADY and len(times) < _ROUNDS:
        times.append(once()[0])
    seconds = statistics.median(times[len(times) > 1 :])
    return {"seconds": seconds, "found": found, "megabytes": common.peak_memory(os.getpid()) / 2**20}


def _ours(_: str, path: str, missing: str, equal: bool, most: int) -> Callable[[], tuple[float, int]]:
    discover(np.zeros((2, 700), np.int32))  # compiled kernels are loaded
    discover(np.zeros((2, 20), np.int32))
    codes = read(path, (missing,)).under("equal" if equal else "distinct")

    def once() -> tuple[float, int]:
        began = time.process_time()
        found = sum(len(sides) for sides in discover(codes, most or None).left_sides)
        return time.process_time() - began, found

    return once


def _theirs(system: str, path: str, missing: str, equal: bool, most: int) -> Callable[[], tuple[float, int]]:
    import desbordante
    import pandas as pd

    frame = pd.read_csv(path, dtype=str, keep_default_na=False, na_values=[missing])
    limit = {"max_lhs": most} if most else {}
    options = {"threads": 1} if system == "HyFD" else {"error": 0.0}

    def once() -> tuple[float, int]:
        algorithm = desbordante.fd.algorithms.HyFD() if system == "HyFD" else desbordante.afd.algorithms.Tane()
        algorithm.load_data(table=frame, is_null_equal_null=equal)
        began = time.process_time()
        algorithm.execute(**options, **limit)
        found = len(algorithm.get_fds())
        return time.process_time() - began, found

    return once


def mined(system: str, path: Path, missing: str, nulls: str, most: int = 0) -> Json | None:
    """The same in a process; None if it takes too long or cannot."""
    arguments = [system, str(path), missing, nulls, str(most)]
    try:
        done = subprocess.run(
            [sys.executable, __file__, "--mine", *arguments], capture_output=True, text=True, timeout=_LIMIT, check=True
        )
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
        return None
    found: Json = json.loads(done.stdout.splitlines()[-1])
    return found


def peers() -> list[str]:
    return ["HyFD", "TANE"] if find_spec("desbordante") and find_spec("pandas") else []


def miners(options: argparse.Namespace) -> Section:
    """All sets, both semantics: the same dependencies, and what it took."""
    rows, times = [], {}
    exact = []
    hyfd, tane, memory = [], [], []
    for name in SETS:
        path = options.shared / "fd" / "metanome" / f"{name}.csv"
        truth = json.loads((options.shared / "fd" / "metanome_gt" / f"{name}.fds.json").read_text())
        table = read(str(path), ("?",))
        for key, nulls in SEMANTICS.items():
            wanted = {(tuple(sorted(lhs)), rhs) for lhs, rhs in truth[key]}
            found = discover(table.under(nulls)).left_sides  # type: ignore[arg-type]
            mine_ = {
                (tuple(sorted(table.names[each] for each in lhs)), table.names[rhs])
                for rhs, sides in enumerate(found)
                for lhs in sides
            }
            exact.append(mine_ == wanted)
        runs: dict[str, list[Json]] = {}
        for round_ in range(options.repeats):
            for system in common.alternated(["lakescope", *peers()], round_):
                before = runs.get(system, [])
                if round_ and (not before or before[0]["seconds"] > _PATIENCE):
                    continue  # once is enough of what takes minutes
                made = mined(system, path, "?", "equal")
                if made is not None:
                    runs.setdefault(system, []).append(made)
        ours = [each["seconds"] for each in runs["lakescope"]]
        memory.append(max(each["megabytes"] for each in runs["lakescope"]))
        shown: list[object] = [name, table.rows, table.columns, len(truth["null_equals_null"]), Spread.of(ours)]
        for system, ratios_ in (("HyFD", hyfd), ("TANE", tane)):
            theirs = [each["seconds"] for each in runs.get(system, [])]
            if theirs:
                ratio = statistics.median(ours) / statistics.median(theirs)
                ratios_.append((name, ratio))
                shown += [Spread.of(theirs), common.figure(ratio)]
            else:
                shown += ["-", "-"]
        shown += [
            f"{max(each['megabytes'] for each in runs[s]):.0f}" if runs.get(s) else "-"
            for s in ("lakescope", *["HyFD", "TANE"])
        ]
        rows.append(shown)
        times[name] = runs
        common.say(f"  {name} {shown[4:]}")
    text = (
        "## Miners\n\nAll minimal dependencies, null = null; CPU seconds, and the ratio of ours to theirs. Who is done "
        "in less than a tenth of a second does it again: the median without the first time.\n\n"
    )
    heads = [
        "set",
        "rows",
        "columns",
        "found",
        "ours",
        "HyFD",
        "ours/HyFD",
        "TANE",
        "ours/TANE",
        "MB",
        "HyFD MB",
        "TANE MB",
    ]
    aims = [
        Aim("minimal dependencies as known, sets x semantics", "16 of 16", f"{sum(exact)} of {len(exact)}", all(exact)),
        common.at_most(
            "CPU time over HyFD, largest of all sets",
            3,
            max((r for _, r in hyfd), default=None),
            "x",
        ),
        common.at_most(
            "CPU time over TANE, largest of all sets",
            1,
            max((r for _, r in tane), default=None),
            "x",
        ),
        common.at_most("peak memory of the process, largest of all sets", 400, max(memory), " MB"),
    ]
    return text + common.table(heads, rows), {"times": times}, aims


def made_table(folder: Path, rows: int, columns: int, seed: int = 1) -> Path:
    """Columns of which some follow from others: as tables in the field have them."""
    path = folder / f"{rows}x{columns}.csv"
    if not path.exists():
        dice = np.random.default_rng(seed)
        made: list[npt.NDArray[np.int64]] = []
        for column in range(columns):
            if column % 4 == 3:
                made.append((made[column - 1] * 7 + made[column - 2]) % (20 + column))
            else:
                made.append(dice.integers(0, 4 + 3 * column, rows))
        with path.open("w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow([f"c{column}" for column in range(columns)])
            writer.writerows(np.stack(made, axis=1).tolist())
    return path


def scaling(options: argparse.Namespace) -> Section:
    """Time and memory by rows and by columns, left sides of at most three columns."""
    rows, body = [], []
    shapes = [(count, 10) for count in options.rows] + [(1_000, count) for count in options.columns]
    systems = ["lakescope", *(["HyFD"] if peers() else [])]
    for count, columns in shapes:
        path = made_table(options.folder, count, columns)
        found = {system: mined(system, path, "?", "equal", 3) for system in systems}
        shown: list[object] = [f"{count:,}", columns]
        for system in ("lakescope", "HyFD"):
            made = found.get(system)
            shown += [f"{made['seconds']:.2f}", f"{made['megabytes']:.0f}", made["found"]] if made else ["-", "-", "-"]
        rows.append(shown)
        body.append({"rows": count, "columns": columns, **found})
        common.say(f"  {shown}")
    heads = ["rows", "columns", "ours, s", "MB", "found", "HyFD, s", "MB", "found"]
    text = "## Rows and columns\n\nGenerated; left sides of at most three columns; CPU seconds without reading.\n\n"
    return text + common.table(heads, rows), {"shapes": body}, []


# --- scores -----------------------------------------------------------------------------------------------------------


def scores(options: argparse.Namespace) -> Section:
    """AUC and precision of PV and PT on what holds among complete rows, beside the baselines of the spec."""
    rows, body, reached = [], {}, []
    same = []
    for name, (empty, wanted) in DEGREES.items():
        found = degrees(read(str(UCI / f"{name}.csv")), "equal", empty=empty)
        same.append([*(found[at] for at in range(5)), sum(found[at] for at in found if at > 4)] == wanted)
    for (name, share), base in BASELINES.items():
        table = read(str(UCI / f"{name}.csv"))
        experiment = Experiment(table, list(candidates_of(table.columns, table.columns - 1)))
        each: dict[str, list[float]] = {}
        for seed in range(options.seeds):
            dirty = polluted(table, share, seed=1 + seed)
            if (dirty.codes >= 0).all(axis=0).sum() > 1:
                for field, value in _measured(experiment, dirty).items():
                    each.setdefault(field, []).append(value)
        means = {field: statistics.fmean(values) for field, values in each.items()}
        spread = {field: statistics.stdev(values) if len(values) > 1 else 0.0 for field, values in each.items()}
        body[f"{name} {share}"] = {"means": means, "deviations": spread}
        shown = [name, f"{share:.0%}", f"{means['base']:.2f}", f"{means['ties']:.0%}"]
        for nulls in ("equal", "distinct"):
            for score in ("pv", "pt"):
                fields = (f"{score} {nulls} {what}" for what in ("auc", "top", "as met"))
                shown.append(" / ".join(f"{means[field]:.2f}" for field in fields))
        shown.append(" ".join(f"{value:.2f}" for value in base))
        names = ("pv equal auc", "pv equal as met", "pt equal auc", "pt equal as met")
        for field, known in zip(names, base, strict=True):
            # Three seeds of theirs, printed with two digits: what is within two deviations of such a mean is chance.
            slack = 0.005 + 2 * spread[field] / math.sqrt(3)
            reached.append((f"{name} {share:.0%} {field}", means[field], known, slack))
        rows.append(shown)
        common.say(f"  {shown}")
    below = [f"{what} {mean:.2f} < {known:.2f}" for what, mean, known, slack in reached if mean < known - slack]
    text = (
        "## Scores\n\nWhat holds among complete rows, every candidate; label: held before. AUC / precision of the best "
        "tenth, ties by their share / the same, ties in the order in which candidates are met, shorter ones first, "
        f"as the spec's baseline was measured; means of {options.seeds} seeds. Where most candidates tie for "
        "the first place, the last of these says nothing about the score: it depends on which column comes first.\n\n"
    )
    heads = [
        "table",
        "missing",
        "base",
        "first by PV",
        "PV, equal",
        "PT, equal",
        "PV, distinct",
        "PT, distinct",
        "spec: PV, PT equal",
    ]
    aims = [
        Aim("degree tables of Iris, Abalone, Computer, Glass", "4 of 4 exact", f"{sum(same)} of 4", all(same)),
        Aim(
            "AUC and precision of PV and PT against the spec's (within the chance of three seeds)",
            f"{len(reached)} of {len(reached)}",
            f"{len(reached) - len(below)} of {len(reached)}" + (f": {'; '.join(below)}" if below else ""),
            not below,
        ),
    ]
    return text + common.table(heads, rows), body, aims


def _measured(experiment: Experiment, dirty: CodedTable) -> Json:
    """AUC, and precision of the best tenth: ties by their share, and as they were met (shorter left sides first)."""
    holding = experiment.scored(dirty, "skip").degrees == 0
    labels = (experiment.clean["equal"].degrees == 0)[holding]
    order = sorted(range(len(experiment.candidates)), key=lambda at: (len(experiment.candidates[at][0]), at))
    met = np.argsort(np.array(order))[holding] / len(order)
    found: Json = {"base": float(labels.mean())}
    for nulls in ("equal", "distinct"):
        scored = experiment.scored(dirty, nulls)  # type: ignore[arg-type]
        for score, values in (("pv", scored.pv[holding]), ("pt", scored.pt[holding])):
            found[f"{score} {nulls} auc"] = auc(values, labels)
            found[f"{score} {nulls} top"] = precision(values, labels, 0.1)
            found[f"{score} {nulls} as met"] = precision(values - 1e-9 * met, labels, 0.1)
            found["ties"] = (
                float((values == values.max()).mean()) if (score, nulls) == ("pv", "equal") else found["ties"]
            )
    return found


def telling(options: argparse.Namespace) -> Section:
    """The same for what a user is shown: minimal, no keys, no constants; with tables that have rules."""
    tables = {name: str(UCI / f"{name}.csv") for name in DEGREES}
    for name in ("hospital", "beers"):
        tables[name] = str(options.shared / "fd" / "cleaning" / name / "clean.csv")
    rows, body = [], {}
    for name, path in tables.items():
        table = read(path)
        clean = Scorer(table.under("equal"))
        for share in (0.02, 0.05, 0.1):
            found: dict[str, list[float]] = {}
            sizes = []
            for seed in range(options.seeds):
                dirty = polluted(table, share, seed=seed)
                values, labels = _judged(dirty, clean)
                if labels.any() and not labels.all():
                    sizes.append((labels.size, int(labels.sum())))
                    for score, each in values.items():
                        found.setdefault(score, []).append(auc(each, labels))
                        found.setdefault(f"{score} top", []).append(precision(each, labels, 0.1))
            if not sizes:
                continue
            means = {score: statistics.fmean(each) for score, each in found.items()}
            body[f"{name} {share}"] = {**means, "tables": len(sizes)}
            told = [f"{means[score]:.2f} / {means[f'{score} top']:.2f}" for score in ("pv", "pt", "mu", "score")]
            many = statistics.fmean(size for size, _ in sizes)
            rows.append([name, f"{share:.0%}", f"{statistics.fmean(k for _, k in sizes):.0f} of {many:.0f}", *told])
    text = (
        "## What a user is shown\n\nMinimal dependencies of complete rows with at most three columns on the left, "
        "without keys and constants; label and figures as above. On tables of measurements, where what holds does so "
        "by chance, PV and PT are better; where there are rules, the default score.\n\n"
    )
    return text + common.table(["table", "missing", "held", "PV", "PT", "mu", "score"], rows), body, []


def _judged(dirty: CodedTable, clean: Scorer) -> tuple[dict[str, npt.NDArray[np.float64]], npt.NDArray[np.bool_]]:
    whole = dirty.under("skip")
    equal = Scorer(dirty.under("equal"))
    values: dict[str, list[float]] = {score: [] for score in ("pv", "pt", "mu", "score")}
    labels = []
    scorer = Scorer(whole)
    if whole.shape[1] > 1:
        for rhs, sides in enumerate(discover(whole, 3).left_sides):
            for lhs in sides:
                among = scorer.score(lhs, rhs)
                alone = equal.score((), rhs)
                if among.groups >= whole.shape[1] or scorer.score((), rhs).pt == 1:
                    continue
                score = equal.score(lhs, rhs)
                told = beyond_chance(score, alone, equal.rows)
                values["pv"].append(score.pv)
                values["pt"].append(score.pt)
                values["score"].append(told)
                values["mu"].append(told / (1 - score.groups / equal.rows) if score.groups < equal.rows else 0.0)
                labels.append(clean.score(lhs, rhs).degree == 0)
    return {name: np.array(each, np.float64) for name, each in values.items()}, np.array(labels, np.bool_)


# --- rules ------------------------------------------------------------------------------------------------------------


def rules(options: argparse.Namespace) -> Section:
    """Where published rules rank among what is found on dirty tables, by our default score and by PV."""
    rows, body, aims = [], {}, []
    for name, error in (("hospital", 0.05), ("beers", 0.05), ("flights", 0.05), ("flights", 0.5)):
        folder = options.shared / "fd" / "cleaning" / name
        with (folder / "clean.csv").open() as stream:
            names = next(csv.reader(stream))
        with (folder / "dirty.csv").open() as stream:
            cells = list(csv.reader(stream))[1:]
        frame = pa.table({each: [row[place] for row in cells] for place, each in enumerate(names)})
        gold = {(tuple(each["lhs"]), each["rhs"]) for each in json.loads((folder / "fd_gold.json").read_text())["fds"]}
        shown: list[object] = [name, error, len(gold)]
        for by in ("score", "pv"):
            options_: Json = {"error": error, "missing": ("empty", "N/A", ""), "scored": 0, "budget": None, "by": by}
            found = lakescope.dependencies(frame, **options_)
            ranks = [place for place, each in enumerate(found) if (each.lhs, each.rhs) in gold]
            top = sum(rank < 0.2 * len(found) for rank in ranks)
            unflagged = sum(not each.flags for each in found)
            if by == "score":
                shown += [len(found), unflagged, len(ranks), f"{top / len(gold):.0%}"]
                body[f"{name} {error}"] = {"ranks": ranks, "found": len(found), "unflagged": unflagged}
                if name == "hospital":
                    wanted = "at least 80%"
                    share = top / len(gold)
                    aims.append(Aim("hospital: rules in the best fifth by score", wanted, f"{share:.0%}", share >= 0.8))
            else:
                shown.append(f"{top / len(gold):.0%}")
        rows.append(shown)
    text = (
        "## Rules\n\nPublished cleaning rules among what is found on the dirty table, left sides of at most three "
        "columns; the share of all rules that lie in the best fifth of what is found. A rule whose right side is "
        "(nearly) constant in the dirty table is not minimal there, and not found; the rules of flights are broken by "
        "29% to 66% of the rows.\n\n"
    )
    heads = ["table", "error", "rules", "found", "no key, not constant", "rules found", "best fifth, score", "by PV"]
    return text + common.table(heads, rows), body, aims


# --- genuineness ------------------------------------------------------------------------------------------------------


def genuineness(options: argparse.Namespace) -> Section:
    """Table 4.3: GS on Glass, uniform imputation, what holds minimally among complete rows; exact, not sampled."""
    table = read(str(UCI / "glass.csv"))
    clean = discover(table.under("equal")).left_sides
    held = {(lhs, rhs) for rhs, sides in enumerate(clean) for lhs in sides}
    rows, body, aims = [], {}, []
    for share, thesis in WORLDS.items():
        found: list[tuple[float, float, float, float]] = []
        for seed in range(options.seeds):
            dirty = polluted(table, share, seed=seed, unit="tuples")
            scorer = GenuinenessScorer(dirty, "uniform")
            began = time.process_time()
            candidates = [
                (lhs, rhs) for rhs, sides in enumerate(discover(dirty.under("skip")).left_sides) for lhs in sides
            ]
            values = [scorer.score(lhs, rhs) for lhs, rhs in candidates]
            spent = time.process_time() - began
            # Held before: it, or with a shorter left side.
            labels = np.array([_implied(lhs, rhs, held) for lhs, rhs in candidates])
            gs = np.array([each.value for each in values])
            exact = statistics.fmean(each.exact for each in values)
            found.append((precision(gs, labels, 0.1), auc(gs, labels), exact, spent))
        means = [statistics.fmean(each[at] for each in found if not math.isnan(each[at])) for at in range(4)]
        body[str(share)] = {"precision": means[0], "auc": means[1], "exact": means[2], "seconds": means[3]}
        rows.append([f"{share:.0%}", *(f"{each:.3f}" for each in means[:3]), f"{means[3]:.2f}", thesis])
        aims.append(
            Aim(
                f"precision of the best tenth by GS, Glass, {share:.0%}",
                f">= {thesis}",
                f"{means[0]:.3f}",
                means[0] >= thesis,
            )
        )
    text = (
        "## Genuineness\n\nGlass, as many values missing as a share of its rows, uniform imputation; CPU seconds "
        "for all of a version.\n\n"
    )
    heads = ["missing", "precision of the best tenth", "AUC", "worked out exactly", "seconds", "thesis, best of 4 runs"]
    return text + common.table(heads, rows), body, aims


def _implied(lhs: tuple[int, ...], rhs: int, held: set[tuple[tuple[int, ...], int]]) -> bool:
    return any(column == rhs and set(side) <= set(lhs) for side, column in held)


# --- sensors ----------------------------------------------------------------------------------------------------------


def sensors_table(rows: int, bins: int) -> CodedTable:
    """A table like the Intel lab's: eight attributes, five of them binned, with its pattern of missing values."""
    dice = np.random.default_rng(11)
    sensor = dice.integers(0, 54, rows)
    epoch = np.sort(dice.integers(0, 65_000, rows))
    day, hour = epoch // 1_720, epoch // 72 % 24
    warm = 20 + 5 * np.sin(hour / 24 * 6.28) + sensor % 7 + dice.normal(0, 0.4, rows)
    damp = 70 - 1.4 * warm + dice.normal(0, 0.6, rows)
    light = np.maximum(0, 300 * np.sin((hour - 6) / 12 * 3.14)) + sensor + dice.normal(0, 5, rows)
    volt = 2.7 - epoch / 3e5 + dice.normal(0, 0.01, rows)
    made = [day, hour, epoch, sensor]
    for each in (volt, warm, damp, light):
        low, high = float(each.min()), float(each.max())
        made.append(np.minimum((each - low) / (high - low) * bins, bins - 1).astype(np.int64))
    codes = np.stack(made).astype(np.int32)
    share = rows / 2_313_681
    place = dice.permutation(rows)
    at = 0
    for count, columns in ((1, [5]), (92_975, [7]), (1, [5, 7]), (3, [6, 7]), (373, [5, 6, 7]), (526, [3, 4, 5, 6, 7])):
        chosen = place[at : at + max(1, round(count * share))]
        codes[np.ix_(columns, chosen)] = -1
        at += chosen.size
    names = ("date", "hour", "epoch", "sensor", "voltage", "temperature", "humidity", "light")
    return CodedTable(names, np.array([_dense(each) for each in codes], np.int32))


def _dense(codes: I32) -> I32:
    values, places = np.unique(codes, return_inverse=True)
    found: I32 = (places - int(values[0] < 0)).astype(np.int32)
    return found


def sensors(options: argparse.Namespace) -> Section:
    """PV and PT of every candidate, and GS of what holds among complete rows."""
    rows, body, aims = [], {}, []
    for bins in (10, 100, 1_000):
        table = sensors_table(options.sensor_rows, bins)
        empty: list[tuple[tuple[int, ...], int]] = [((), rhs) for rhs in range(table.columns)]
        candidates = [*empty, *candidates_of(table.columns, table.columns - 1)]
        codes = table.under("equal")
        began, clock = time.process_time(), time.perf_counter()
        score_all(codes, candidates)
        likelihood, waited = time.process_time() - began, time.perf_counter() - clock
        began = time.process_time()
        found = [(lhs, rhs) for rhs, sides in enumerate(discover(table.under("skip")).left_sides) for lhs in sides]
        mining = time.process_time() - began
        began = time.process_time()
        scored = [GenuinenessScorer(table, "uniform").score(lhs, rhs) for lhs, rhs in found]
        spent = time.process_time() - began
        exact = sum(each.exact for each in scored)
        shown = [
            bins,
            len(candidates),
            f"{waited:.1f}",
            f"{likelihood:.1f}",
            len(found),
            f"{mining:.1f}",
            f"{spent:.1f}",
            f"{exact} of {len(found)}",
        ]
        rows.append(shown)
        body[str(bins)] = {
            "likelihoods": likelihood,
            "waited": waited,
            "mining": mining,
            "genuineness": spent,
            "found": len(found),
        }
        aims.append(common.at_most(f"PV and PT of all {len(candidates):,} candidates, {bins} bins", 10, waited, " s"))
        common.say(f"  {shown}")
    text = (
        f"## Sensors\n\n{options.sensor_rows:,} generated rows of eight attributes; CPU seconds. The thesis took "
        "20 to 21 s for PV and PT, and for GS by sampling 12 minutes (10 bins) and three and a half "
        "hours (100 and 1,000).\n\n"
    )
    heads = [
        "bins",
        "candidates",
        "PV and PT, s on all cores",
        "CPU",
        "minimal, complete rows",
        "mining, s",
        "GS of these, s",
        "of them exact",
    ]
    return text + common.table(heads, rows), body, aims


def main() -> None:
    parser = common.arguments(__doc__)
    parser.add_argument("--mine", nargs=5, help=argparse.SUPPRESS)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--columns", type=int, nargs="+", default=[10, 20, 40])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--sensor-rows", type=int, default=2_313_681)
    parser.add_argument("--only", nargs="*", help="parts: miners scaling scores telling rules genuineness sensors")
    parser.add_argument("--shared", type=Path, default=common.HERE.parent.parent / "shared" / "data")
    options = parser.parse_args()
    if options.mine:
        system, path, missing, nulls, most = options.mine
        print(json.dumps(mine(system, path, missing, nulls, int(most))))
        return
    options.folder = common.data_folder("dependencies", keep=options.keep)
    parts = {part.__name__: part for part in (miners, scaling, scores, telling, rules, genuineness, sensors)}
    sections, body, aims = common.run_parts(parts, options, __doc__, "dependencies")
    versions = {name: version(name) for name in ("lakescope", "numpy", "numba")}
    if peers():
        versions["desbordante"] = version("desbordante")
    common.publish("dependencies", "Functional dependencies", body, sections, aims, versions, options.out)


if __name__ == "__main__":
    main()
