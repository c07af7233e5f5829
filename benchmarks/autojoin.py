"""Joins of keys that are written differently: precision and recall beside other ways to join, abstention, and scale.

Row pairs are compared with the truth: precision, recall and F1 of each case, then averaged; a case without an answer
counts as 0 in recall and F1 and not in precision. Ours is given two tables and nothing else, with one set of defaults;
"programs" leaves out the fuzzy step. The others: equality and the best match of rapidfuzz (WRatio), both on the columns
that the truth names, the latter from 90 up and from the threshold that is best for the case, which nobody knows;
DQ-P, the pairs of values that share a q-gram no other has; FJ-C, the constrained fuzzy join of section 4.7 on the known
columns. Synthetic cases are rebuilt from their description (Warren and Tompa): UserID, Time, NameConcat, Citeseer.
Look-ups are pairs of columns whose link is knowledge: right is to find nothing. Unrelated pairs are tables of public
lakes drawn by chance: every join is shown, since some of them turn out to be right; programs that take columns as they
are, or in other letters, are counted apart. Lake: all real tables among those of the public lakes, and keys of these
lakes' tables rewritten in five ways (with a prefix and in capitals, words in reverse order, without punctuation, as
mail addresses, cut to eight characters), a part of the rows each; how often is the table that belongs to them among the
first candidates, where tables that hold the same keys compete; and what is told in the end. Spark: the generated code
on a local session of two cores, rows compared with those of the plan. Scale: authors, title and year against
the three written one after the other, with one row in ten left out on either side; learning is the time until programs
are known, joining the time for all rows; CPU seconds of the process, memory at its peak
(with the tables themselves and the truth), beside the thesis' seconds.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rapidfuzz import fuzz, process, utils

import common
import lakescope
from common import Aim, Json
from lakescope.demo.words.countries import COUNTRIES
from lakescope.demo.words.elements import ELEMENTS
from lakescope.demo.words.usa import STATES
from lakescope.engines.joins.grams import cut_query
from lakescope.engines.transforms import steps
from lakescope.engines.transforms.fuzzy import optimise
from lakescope.engines.transforms.pairs import GramColumn, gram_pairs
from lakescope.engines.transforms.program import Expression, Piece
from lakescope.engines.transforms.texts import read

Pairs = set[tuple[int, int]]
Score = tuple[float, float, float]
Section = common.Section
SHARED = common.HERE.parent.parent / "shared" / "data" / "autojoin"
LAKES = SHARED.parent / "lakes"
THESIS = {100: 2.5, 1_000_000: 6.4}
SYLLABLES = "ka mo ri te lan dor bel sa ni vic tor ham ster wil son er ma re phi lo gra bu che zan quo lim pas".split()


def score(found: Pairs, truth: Pairs) -> Score:
    right = len(found & truth)
    precision = right / len(found) if found else float("nan")
    recall = right / len(truth)
    return precision, recall, 2 * right / (len(found) + len(truth))


def mean(scores: Sequence[Score]) -> Score:
    table = np.array(scores, np.float64)
    return float(np.nanmean(table[:, 0])), float(table[:, 1].mean()), float(table[:, 2].mean())


def shown(each: Score) -> str:
    return " / ".join("-" if np.isnan(x) else f"{x:.3f}" for x in each)


def pairs_of(plan: lakescope.engines.transforms.plan.Plan) -> Pairs:
    return set(zip(*(column.to_pylist() for column in plan.pairs().columns), strict=True))


def cpu() -> float:
    return time.process_time()


# --- real cases -------------------------------------------------------------------------------------------------------


class Case:
    """Two tables, the columns that link them, and the pairs of rows that are meant."""

    def __init__(self, folder: Path) -> None:
        self.name = folder.name
        self.left, self.right = (list(csv.reader((folder / name).open(encoding="utf-8"))) for name in FILES)
        head = [f"source-{n}" for n in self.left[0]] + [f"target-{n}" for n in self.right[0]]
        self.truth: Pairs = set()
        lefts, rights = ({tuple(row): n for n, row in enumerate(table[1:])} for table in (self.left, self.right))
        for row in csv.DictReader((folder / "ground truth.csv").open(encoding="utf-8")):
            cells = [row[name] for name in head]
            width = len(self.left[0])
            self.truth.add((lefts[tuple(cells[:width])], rights[tuple(cells[width:])]))
        one, other = (folder / "rows.txt").read_text("utf-8").splitlines()[0].split(":")
        self.mine, self.theirs = self.column(self.left, one), self.column(self.right, other)

    @staticmethod
    def column(table: list[list[str]], name: str) -> list[str]:
        places = [table[0].index(part) for part in name.split("+")]
        return [" ".join(row[place].strip() for place in places) for row in table[1:]]

    def tables(self) -> tuple[pa.Table, pa.Table]:
        return as_table(self.left), as_table(self.right)


FILES = ("source.csv", "target.csv")


def as_table(rows: list[list[str]]) -> pa.Table:
    return pa.table({name: [row[n] for row in rows[1:]] for n, name in enumerate(rows[0])})


def equal(case: Case) -> Pairs:
    places: dict[str, list[int]] = {}
    for place, text in enumerate(case.theirs):
        places.setdefault(text, []).append(place)
    return {(row, place) for row, text in enumerate(case.mine) for place in places.get(text, [])}


def best_matches(mine: Sequence[str], theirs: Sequence[str]) -> list[tuple[float, int, int]]:
    matrix = process.cdist(mine, theirs, scorer=fuzz.WRatio, processor=utils.default_process, dtype=np.float32)
    best = matrix.argmax(axis=1)
    return [(float(matrix[row, place]), row, int(place)) for row, place in enumerate(best.tolist())]


def best_threshold(matches: list[tuple[float, int, int]], truth: Pairs) -> Pairs:
    thresholds = sorted({away for away, _, _ in matches})
    sets = ({(row, place) for away, row, place in matches if away >= least} for least in thresholds)
    return max(sets, key=lambda found: score(found, truth)[2])


def rare_grams(case: Case) -> Pairs:
    """DQ-P: pairs that share a q-gram no other value has, of the pair of columns with most of them."""
    best: Pairs = set()
    sources = {name: GramColumn([row[n] for row in case.left[1:]]) for n, name in enumerate(case.left[0])}
    targets = [GramColumn([row[n] for row in case.right[1:]]) for n in range(len(case.right[0]))]
    for groups in gram_pairs(sources, targets):
        for group in groups:
            found = {(pair.source, pair.target) for pair in group.pairs if pair.score == 1.0}
            best = max(best, found, key=len)
    return best


def constrained(mine: Sequence[str], theirs: Sequence[str]) -> Pairs:
    _, places = optimise([[text] for text in mine], theirs, method="constrained")
    return {(row, int(place)) for row, place in enumerate(places) if place >= 0}


def real(options: argparse.Namespace) -> Section:
    cases = [Case(folder) for folder in sorted((options.shared / "congress_dev").iterdir())]
    systems: dict[str, Callable[[Case], Pairs]] = {
        "ours": lambda case: pairs_of(lakescope.autojoin(*case.tables())),
        "ours, programs": lambda case: pairs_of(lakescope.autojoin(*case.tables(), fuzzy=False)),
        "equal": equal,
        "rapidfuzz 90": lambda case: {(r, p) for away, r, p in best_matches(case.mine, case.theirs) if away >= 90},
        "rapidfuzz best": lambda case: best_threshold(best_matches(case.mine, case.theirs), case.truth),
        "DQ-P": rare_grams,
        "FJ-C": lambda case: constrained(case.mine, case.theirs),
    }
    rows, scores, times = [], {name: [] for name in systems}, []
    for case in cases:
        told = []
        for name, system in systems.items():
            began = cpu()
            scores[name].append(score(system(case), case.truth))
            if name == "ours":
                times.append(cpu() - began)
            told.append(shown(scores[name][-1]))
        rows.append([case.name, *told, f"{times[-1]:.2f}"])
        common.say(f"{case.name}: {told[0]}")
    means = {name: mean(each) for name, each in scores.items()}
    rows.append(["mean", *[shown(means[name]) for name in systems], f"{np.mean(times):.2f}"])
    table = common.table(["case", *systems, "CPU s"], rows)
    ours, best = means["ours"], max(means[name][2] for name in systems if not name.startswith("ours"))
    aims = [
        Aim("precision on real pairs", ">= 0.97", f"{ours[0]:.4f}", ours[0] >= 0.97),
        Aim("recall on real pairs", ">= 0.85", f"{ours[1]:.4f}", ours[1] >= 0.85),
        Aim("F1 above all others", f"> {best:.3f}", f"{ours[2]:.3f}", ours[2] > best),
    ]
    text = "## Real pairs: members of a parliament in twelve ways\n\nPrecision / recall / F1.\n\n" + table
    each_case = {case.name: {n: s[k] for n, s in scores.items()} for k, case in enumerate(cases)}
    return text, {"means": means, "cases": each_case}, aims


# --- fuzzy ------------------------------------------------------------------------------------------------------------


def fuzzy(options: argparse.Namespace) -> Section:
    rows: list[list[str]] = []
    scores: dict[str, list[Score]] = {"ours": [], "FJ-C": [], "rapidfuzz 90": [], "rapidfuzz best": []}
    estimates = []
    for folder in sorted((options.shared / "autofj10").iterdir()):
        left, right, truth = (
            list(csv.DictReader((folder / f"{name}.csv").open(encoding="utf-8"))) for name in ("left", "right", "gt")
        )
        ids = [{row["id"]: n for n, row in enumerate(table)} for table in (left, right)]
        wanted = {(ids[0][row["id_l"]], ids[1][row["id_r"]]) for row in truth}
        titles = [[row["title"] for row in table] for table in (left, right)]
        began = cpu()
        joined = lakescope.fuzzyjoin({"title": titles[0]}, {"title": titles[1]}, "title", reference="left")
        spent = cpu() - began
        estimates.append(joined.fuzzy.precision if joined.fuzzy else float("nan"))
        matches = best_matches(titles[1], titles[0])
        turned = {(b, a) for a, b in wanted}
        found = {
            "ours": set(zip(*(column.to_pylist() for column in joined.pairs().columns), strict=True)),
            "FJ-C": {(b, a) for a, b in constrained(titles[1], titles[0])},
            "rapidfuzz 90": {(place, row) for away, row, place in matches if away >= 90},
            "rapidfuzz best": {(b, a) for a, b in best_threshold(matches, turned)},
        }
        for name, pairs in found.items():
            scores[name].append(score(pairs, wanted))
        rows.append([folder.name, *[shown(scores[name][-1]) for name in scores], f"{spent:.2f}"])
        common.say(f"{folder.name}: {rows[-1][1]}")
    means = {name: mean(each) for name, each in scores.items()}
    rows.append(["mean", *[shown(means[name]) for name in scores], ""])
    table = common.table(["case", *scores, "CPU s"], rows)
    told = f"Precision asked for: 0.9; estimated {np.nanmean(estimates):.3f}, measured {means['ours'][0]:.3f}."
    aims = [
        Aim("fuzzy joins: precision that was asked for", ">= 0.9", f"{means['ours'][0]:.3f}", means["ours"][0] >= 0.9)
    ]
    return f"## Fuzzy joins: titles of an encyclopaedia over time\n\n{told}\n\n{table}", means, aims


# --- generated cases --------------------------------------------------------------------------------------------------


def name(dice: random.Random, syllables: int) -> str:
    return "".join(dice.choices(SYLLABLES, k=syllables)).capitalize()


def user_ids(dice: random.Random, count: int) -> tuple[dict[str, list[str]], list[str]]:
    made: dict[str, tuple[str, str, str]] = {}
    while len(made) < count:
        first, middle, last = name(dice, dice.randint(2, 3)), name(dice, 2), name(dice, dice.randint(2, 4))
        made.setdefault(f"{first[0]}{middle[0]}{last[:6]}".lower(), (first, middle, last))
    rows = list(made.values())
    return dict(zip(("first", "middle", "last"), map(list, zip(*rows, strict=True)), strict=True)), list(made)


def times(dice: random.Random, count: int) -> tuple[dict[str, list[str]], list[str]]:
    rows = [(f"{s // 3600:02}", f"{s // 60 % 60:02}", f"{s % 60:02}") for s in dice.sample(range(86_400), count)]
    return dict(zip(("hour", "minute", "second"), map(list, zip(*rows, strict=True)), strict=True)), [
        "".join(r) for r in rows
    ]


def names(dice: random.Random, count: int) -> tuple[dict[str, list[str]], list[str]]:
    made: dict[str, tuple[str, str]] = {}
    while len(made) < count:
        first, last = name(dice, dice.randint(2, 3)), name(dice, dice.randint(2, 4))
        made.setdefault(first + last, (first, last))
    return dict(zip(("first", "last"), map(list, zip(*made.values(), strict=True)), strict=True)), list(made)


def papers(dice: random.Random, count: int) -> tuple[dict[str, list[str]], list[str]]:
    words = [name(dice, dice.randint(2, 4)).lower() for _ in range(2000)]
    people = [f"{name(dice, 2)} {name(dice, 3)}" for _ in range(max(500, count // 4))]
    authors = [", ".join(dice.choices(people, k=dice.randint(1, 4))) for _ in range(count)]
    titles = [" ".join(dice.choices(words, k=dice.randint(4, 9))).capitalize() for _ in range(count)]
    years = [str(dice.randint(1985, 2019)) for _ in range(count)]
    whole = [f"{a}. {t}. {y}." for a, t, y in zip(authors, titles, years, strict=True)]
    return {"authors": authors, "title": titles, "year": years}, whole


def apart(
    dice: random.Random, columns: dict[str, list[str]], keys: list[str], left_out: float
) -> tuple[pa.Table, pa.Table, Pairs]:
    """Both tables in an order of their own, a share of the rows of either left out."""
    count = len(keys)
    orders = [dice.sample(range(count), round(count * (1 - left_out))) for _ in range(2)]
    places = {row: place for place, row in enumerate(orders[1])}
    left = pa.table({column: [cells[row] for row in orders[0]] for column, cells in columns.items()})
    truth = {(n, places[row]) for n, row in enumerate(orders[0]) if row in places}
    return left, pa.table({"key": [keys[row] for row in orders[1]]}), truth


SYNTHETIC = {"UserID": user_ids, "Time": times, "NameConcat": names, "Citeseer": papers}
PUBLISHED = {"UserID": 0.7572, "Time": 0.0392, "NameConcat": 0.1264, "Citeseer": 0.9826}


def synthetic(options: argparse.Namespace) -> Section:
    rows, all_f1 = [], {}
    for title, make in SYNTHETIC.items():
        f1 = []
        for seed in range(options.repeats):
            dice = random.Random(seed)
            left, right, truth = apart(dice, *make(dice, options.rows), left_out=0.0)
            plan = lakescope.autojoin(left, right)
            f1.append(score(pairs_of(plan), truth)[2])
        all_f1[title] = f1
        rows.append([title, f"{min(f1):.4f}", PUBLISHED[title], f"`{plan.program}`"])
        common.say(f"{title}: {f1}")
    table = common.table(["case", "F1, worst seed", "thesis: DQ-P", "program (last seed)"], rows)
    worst = min(min(each) for each in all_f1.values())
    aims = [Aim("F1 on the synthetic cases", "1.0", f"{worst:.4f}", worst == 1.0)]
    return f"## Synthetic cases, {options.rows:,} rows\n\n{table}", all_f1, aims


def look_ups() -> Iterable[tuple[str, list[tuple[str, str]]]]:
    groups: list[tuple[str, Sequence[object], tuple[str, ...]]] = [
        ("country", COUNTRIES, ("name", "iso2", "iso3", "capital", "calling")),
        ("state", STATES, ("name", "code", "capital", "zip3")),
    ]
    for what, records, fields in groups:
        for a, b in itertools.combinations(fields, 2):
            yield f"{what}: {a}, {b}", [(str(getattr(each, a)), str(getattr(each, b))) for each in records]
    yield "element: name, symbol", list(ELEMENTS)


def abstention(options: argparse.Namespace) -> Section:
    """Look-ups as they are, and drawn anew: eight in ten rows of either side."""
    joined, tried = [], 0
    for what, rows in look_ups():
        for seed in range(max(3, options.repeats)):
            dice = random.Random(seed)
            sides = [list(dict.fromkeys(row[n] for row in dice.sample(rows, round(0.8 * len(rows))))) for n in (0, 1)]
            plan = lakescope.autojoin(pa.table({"a": sides[0]}), pa.table({"b": sides[1]}))
            tried += 1
            if plan:
                joined.append(f"{what} (seed {seed}): {plan.program}")
    share = 1 - len(joined) / tried
    told = "\n".join(f"- joined: {each}" for each in joined) or "None of them was joined."
    aims = [Aim("look-ups that are left alone", ">= 95%", f"{share:.1%}", share >= 0.95)]
    return (
        f"## Look-ups\n\nLeft alone: {tried - len(joined)} of {tried}.\n\n{told}",
        {"tried": tried, "joined": joined},
        aims,
    )


# --- tables of public lakes -------------------------------------------------------------------------------------------


#: Pairs drawn by chance that belong together after all, as reading the cells that met tells.
_BELONG = {
    ("nfl-fandom__NFL_fandom_data-surveymonkey.csv", "murder_2016__murder_2015_final.csv"),  # teams, and their cities
    # The same days, 2014-07-01 and 2014-7-1:
    ("311_category_maintenance_added_zeros.csv", "us-weather-history__KPHL.csv"),
    ("us-weather-history__KSEA.csv", "weather_temperature_mean.csv"),
}


def unrelated(options: argparse.Namespace) -> Section:
    """Tables drawn by chance."""
    dice = random.Random(options.seed)
    files = [path for path in sorted(options.lakes.rglob("*.csv")) if path.stat().st_size < 3_000_000]
    plain, wrong, joined, seconds = 0, 0, [], []
    for number in range(options.pairs):
        if number % 20 == 0:
            common.say(f"{number} of {options.pairs} unrelated pairs")
        left, right = dice.sample(files, 2)
        began = cpu()
        plan = lakescope.autojoin(left, right, fuzzy=False, budget=20)
        seconds.append(cpu() - began)
        if not plan:
            continue
        outputs = [output for each in plan.programs for output in each.outputs]
        kinds = {type(step) for output in outputs for step in steps_of(output)}
        if kinds <= {steps.Case} and all(len(output.operators) == 1 for output in outputs):
            plain += 1
        else:
            words = "; ".join(str(each) for each in plan.programs)
            right_after_all = (left.name, right.name) in _BELONG
            wrong += not right_after_all
            joined.append(f"{left.name} and {right.name}: {words} ({plan.pairs().num_rows:,} rows)")
            joined[-1] += "; right: they belong together" if right_after_all else ""
            common.say(joined[-1])
    share = wrong / options.pairs
    told = (
        f"{options.pairs} pairs, {np.mean(seconds):.1f} CPU s each (at most {max(seconds):.1f}). {plain} join by"
        f" columns as they are or in other letters; {len(joined)} by a longer program:\n\n"
    )
    told += "\n".join(f"- {each}" for each in joined) or "none"
    aims = [Aim("unrelated tables wrongly joined by a longer program", "<= 1%", f"{share:.1%}", share <= 0.01)]
    return (
        f"## Unrelated tables\n\n{told}",
        {"pairs": options.pairs, "plain": plain, "joined": joined, "wrong": wrong},
        aims,
    )


def steps_of(expression: Expression) -> Iterable[steps.Step]:
    return (step for each in expression.operators if isinstance(each, Piece) for step in each.steps)


WAYS: dict[str, Callable[[str], str]] = {
    "prefix and capitals": lambda text: f"ID-{text.upper()}",
    "words in reverse order": lambda text: ", ".join(reversed(text.split())),
    "without punctuation": lambda text: "".join(filter(str.isalnum, text)).lower(),
    "mail addresses": lambda text: f"{text[0]}{text.split()[-1]}@example.org".lower(),
    "cut to eight": lambda text: text[:8].upper(),
}
TOLD = (1, 5, 10, 20)


def rewritten(lake: lakescope.Lake, dice: random.Random, wanted: int) -> Iterable[tuple[str, str, pa.Table]]:
    """Keys of tables of a lake: the way they are rewritten in, the table, and a part of them, rewritten."""
    columns = lake.columns().select(["table", "column", "type", "distinct", "length_mean"]).to_pylist()
    texts = [c for c in columns if c["type"] == "text" and c["distinct"] >= 40 and 5 < c["length_mean"] < 60]
    tables = dice.sample(sorted({c["table"] for c in texts}), wanted)
    for number, table in enumerate(tables):
        column = next(c["column"] for c in texts if c["table"] == table)
        cells = [cell for cell in read(lake.location(table)).column(column).unique().to_pylist() if cell]
        way = list(WAYS)[number % len(WAYS)]
        part = dice.sample(cells, max(20, round(dice.uniform(0.2, 0.9) * len(cells))))[:2000]
        yield way, table, pa.table({"key": [WAYS[way](cell) for cell in part]})


def candidates(lake: lakescope.Lake, query: object, own: str | None) -> tuple[list[str], float]:
    """Tables in the order in which they would be looked at, and the CPU seconds that took."""
    began = cpu()
    hits = lake._transforms.grams.search(cut_query(query), lake._joins.columns_of(own) if own else range(0))
    names = dict.fromkeys(lake._joins.table_of(hit.number) for hit in hits)
    return list(names), cpu() - began


def in_a_lake(options: argparse.Namespace) -> Section:
    folder = common.data_folder("autojoin-lake", keep=options.keep)
    real = folder / "lake" / "real"
    real.mkdir(parents=True)
    for case in sorted((options.shared / "congress_dev").iterdir()):
        for side in FILES:
            shutil.copyfile(case / side, real / f"{case.name} {side}")
    shutil.copytree(options.lakes, folder / "lake", dirs_exist_ok=True)
    lake = lakescope.index(folder / "lake", folder / "lake.idx", master="local[2]")
    ranks: dict[str, list[int]] = {}
    spent = []

    def add(kind: str, query: object, own: str | None, partner: str) -> None:
        names, took = candidates(lake, query, own)
        spent.append(took)
        ranks.setdefault(kind, []).append(names.index(partner) + 1 if partner in names else 10**6)

    reals = {name: _partner(name) for name in lake.tables()["table"].to_pylist() if name.startswith("real/")}
    candidates(lake, lake.location(next(iter(reals))), None)  # kernels
    for name, partner in reals.items():
        add("real pairs", lake.location(name), name, partner)
    for way, table, query in rewritten(lake, random.Random(options.seed), 60):
        add(way, query, None, table)
    rows = [
        [kind, len(each), *[f"{np.mean([rank <= k for rank in each]):.2f}" for k in TOLD]]
        for kind, each in ranks.items()
    ]
    every = [rank for each in ranks.values() for rank in each]
    rows.append(["all", len(every), *[f"{np.mean([rank <= k for rank in every]):.2f}" for k in TOLD]])
    found, seconds = [], []
    for name in [name for name in reals if name.endswith("source.csv")][: options.asked]:
        began = cpu()
        told = lake.autojoin(name, k=20, candidates=10, budget=60)
        seconds.append(cpu() - began)
        found.append(reals[name] in [each.table for each in told] or reals[name] in " ".join(told.notes[:1]))
        common.say(f"{name}: {len(told)} tables told, {'found' if found[-1] else 'not found'}, {seconds[-1]:.1f} s")
    size = sum(file.size for file in lake._index.manifest.files if file.kind == "grams")
    summary = lake.info()
    text = (
        f"{summary['tables']:,} tables, {summary['columns']:,} columns; the q-grams take"
        f" {size / summary['columns']:,.0f} bytes a column ({size / summary['index_bytes']:.1%} of the index)."
        f" Reading a query and finding its candidates takes {1000 * np.median(spent):.1f} ms of CPU"
        f" (median; at most {1000 * max(spent):.0f}). Share of queries whose table is among the first candidates:\n\n"
        + common.table(["keys", "queries", *[f"first {k}" for k in TOLD]], rows)
        + f"\n\nIn the end, with 10 candidates: {sum(found)} of {len(found)} partners of real tables are told,"
        f" {np.mean(seconds):.1f} CPU s a query."
    )
    best = float(np.mean([rank <= 20 for rank in every]))
    aims = [Aim("the right table among 20 candidates", ">= 85%", f"{best:.1%}", best >= 0.85)]
    data = {"ranks": ranks, "cpu_s": spent, "bytes": size, "told": sum(found), "asked": len(found)}
    return f"## Tables of a lake\n\n{text}", data, aims


def _partner(name: str) -> str:
    case, _, side = name.rpartition(" ")
    return f"{case} {FILES[1 - FILES.index(side)]}"


# --- Spark ------------------------------------------------------------------------------------------------------------


def on_spark(options: argparse.Namespace) -> Section:
    """The generated code over files of a million rows, and the same rows from the plan."""
    from lakescope.build.session import spark_session

    folder = common.data_folder("autojoin-spark", keep=options.keep)
    dice = random.Random(1)
    left, right, _ = apart(dice, *papers(dice, options.spark), left_out=0.1)
    for name, table in (("left", left), ("right", right)):
        pq.write_table(table, folder / f"{name}.parquet", row_group_size=100_000)
    plan = lakescope.autojoin(folder / "left.parquet", folder / "right.parquet", budget=None)
    pq.write_table(plan.table(), folder / "ours.parquet")
    with spark_session(master="local[2]") as spark:
        scope = {"spark": spark}
        began = time.monotonic()
        exec(plan.to_spark(), scope)
        scope["joined"].write.parquet(str(folder / "spark"))
        seconds = time.monotonic() - began
        explained = scope["joined"]._jdf.queryExecution().toString()
    ours, theirs = f"'{folder}/ours.parquet'", f"'{folder}/spark/*.parquet'"
    rows = duckdb.sql(f"SELECT count(*) FROM {theirs}").fetchall()[0][0]
    apart_ = [
        duckdb.sql(f"SELECT count(*) FROM (FROM {a} EXCEPT ALL FROM {b})").fetchall()[0][0]
        for a, b in ((ours, theirs), (theirs, ours))
    ]
    python = "Python" in explained or "BatchEval" in explained
    text = (
        f"{left.num_rows:,} and {right.num_rows:,} rows, `{plan.program}`: {rows:,} rows in {seconds:.0f} s on"
        f" `local[2]` ({plan.pairs().num_rows:,} by the plan itself), {sum(apart_)} of them different;"
        f" {'Python functions in the plan' if python else 'no Python function in the plan'}."
    )
    same = sum(apart_) == 0 and rows == plan.pairs().num_rows and not python
    aims = [Aim("the same rows on Spark", "all", "all" if same else f"{sum(apart_):,} differ", same)]
    return f"## Spark\n\n{text}", {"rows": rows, "seconds": seconds, "different": apart_}, aims


# --- scale ------------------------------------------------------------------------------------------------------------


def measure(count: int) -> None:
    """One run in a process of its own: prints what it took."""
    dice = random.Random(1)
    left, right, truth = apart(dice, *papers(dice, count), left_out=0.1)
    lakescope.autojoin(left.slice(0, 50), right.slice(0, 50))  # imports
    before = common.peak_memory(os.getpid())
    began, wall = cpu(), time.monotonic()
    plan = lakescope.autojoin(left, right, budget=None)
    spent, wall = cpu() - began, time.monotonic() - wall
    precision, recall, f1 = score(pairs_of(plan), truth)
    peak = common.peak_memory(os.getpid())
    told = {"rows": count, "cpu": spent, "wall": wall, "learning": plan.info["learning_cpu"]}
    told |= {"precision": precision, "recall": recall, "f1": f1, "program": str(plan.program)}
    print(json.dumps({**told, "before_mb": before / 2**20, "peak_mb": peak / 2**20}))


def scale(options: argparse.Namespace) -> Section:
    runs: dict[int, list[Json]] = {}
    for count in options.sizes:
        for _ in range(options.repeats):
            command = [sys.executable, __file__, "--measure", str(count)]
            out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            runs.setdefault(count, []).append(json.loads(out.splitlines()[-1]))
        common.say(f"{count:,} rows: {runs[count][-1]}")
    rows = []
    for count, each in runs.items():
        learning, spent = (common.Spread.of([run[what] for run in each]) for what in ("learning", "cpu"))
        memory = max(run["peak_mb"] for run in each)
        more = max(run["peak_mb"] - run["before_mb"] for run in each)
        rows.append(
            [
                f"{count:,}",
                str(learning),
                str(spent),
                f"{memory:,.0f} ({more:,.0f})",
                f"{each[-1]['f1']:.4f}",
                THESIS.get(count, ""),
            ]
        )
    heads = ["rows", "learning, CPU s", "in all, CPU s", "peak MB (more than before)", "F1", "thesis: learning, s"]
    aims = []
    for count, limit in ((100, 2.0), (1_000_000, 6.0)):
        if count in runs:
            learning = common.Spread.of([run["learning"] for run in runs[count]])
            aims.append(common.at_most(f"learning at {count:,} rows", limit, learning, " s"))
    return (
        f"## Scale\n\n{common.table(heads, rows)}",
        {str(count): each for count, each in runs.items()},
        aims,
    )


def main() -> None:
    parser = common.arguments(__doc__)
    parser.add_argument("--shared", type=Path, default=SHARED, help="folder with congress_dev and autofj10")
    parser.add_argument("--lakes", type=Path, default=LAKES, help="folder with tables of public lakes")
    parser.add_argument("--rows", type=int, default=2000, help="rows of the synthetic cases")
    parser.add_argument("--pairs", type=int, default=150, help="pairs of unrelated tables")
    parser.add_argument("--asked", type=int, default=12, help="real tables that are asked about in the lake to the end")
    parser.add_argument("--spark", type=int, default=1_000_000, help="rows of the tables that are joined on Spark")
    parser.add_argument("--seed", type=int, default=1, help="seed of what is drawn by chance")
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 1000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--only", nargs="+", help="parts to run: " + ", ".join(PARTS))
    parser.add_argument("--measure", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options.measure)
        return
    needed = {"real": options.shared, "fuzzy": options.shared, "unrelated": options.lakes, "lake": options.lakes}
    missing = [name for name, folder in needed.items() if not folder.is_dir()]
    parts = {name: part for name, part in PARTS.items() if name not in missing}
    sections, body, aims = common.run_parts(parts, options, __doc__, "autojoin")
    if missing:
        sections.insert(0, f"Left out, since their tables are not there: {', '.join(missing)}.")
    versions = {each: version(each) for each in ("lakescope", "numpy", "pyarrow", "pyspark", "rapidfuzz")}
    common.publish(
        "autojoin", "Joins of keys that are written differently", body, sections, aims, versions, options.out
    )


PARTS: dict[str, Callable[[argparse.Namespace], Section]] = {
    "real": real,
    "fuzzy": fuzzy,
    "synthetic": synthetic,
    "look-ups": abstention,
    "unrelated": unrelated,
    "lake": in_a_lake,
    "spark": on_spark,
    "scale": scale,
}

if __name__ == "__main__":
    main()
