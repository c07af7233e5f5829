"""What missing values do to the dependencies of a table: the experiment of the thesis on any table (spec 4.8, 4.10).

Values are taken out of a copy again and again; of every candidate it is known what it was before. So one sees how many
degrees stay, rise (*ghosts*) or fall (*fakes*) under each semantics, and how well the scores, which see the damaged
copy only, tell what held from what only seems to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lakescope.array_types import F64, I64, Bools
from lakescope.engines.dependencies.answers import NULLS, Effect, Nulls, Pattern, Unit
from lakescope.engines.dependencies.compare import candidates_of
from lakescope.engines.dependencies.scores import beyond_chance, score_all
from lakescope.engines.dependencies.table import CodedTable, read
from lakescope.errors import BadRequest, NotFound
from lakescope.results import Results
from lakescope.show.charts import line_chart
from lakescope.show.study import write_study
from lakescope.studies.pollute import polluted

Listener = Callable[[int, int], None]

#: Candidates that are told apart, at most: beyond, left sides are bounded.
_MOST_CANDIDATES = 20_000
#: Rows that are taken of a larger table.
ROWS = 20_000
_TOP = 0.1
_SHOWN = (
    "missing",
    "nulls",
    "rows",
    "same",
    "ghost",
    "fake",
    "jaccard",
    "base",
    "pv_auc",
    "pt_auc",
    "score_auc",
    "pv_top",
)


@dataclass(frozen=True, slots=True)
class Scored:
    """Of every candidate: degree, PV, PT and what it tells beyond chance."""

    degrees: I64
    pv: F64
    pt: F64
    score: F64


def study(
    query: Any,
    shares: Sequence[float] = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4),
    pattern: Pattern = "uniform",
    *,
    versions: int = 10,
    unit: Unit | None = None,
    target: Sequence[str] = (),
    max_lhs: int | None = None,
    missing: Sequence[str] = (),
    rows: int = ROWS,
    seed: int = 1,
    progress: Listener | None = None,
) -> Results[Effect]:
    """Take so many values out of a table, several times, and see what becomes of its dependencies.

    ``pattern``: evenly, four fifths in a fifth of the columns, or in ``target`` columns (names, ``most-distinct``, the
    default, or ``least-distinct``). Shares are of all cells where values are taken out evenly, else of rows
    (``tuples``), for few columns do not hold more. Every left side of at most ``max_lhs`` columns is a candidate, or of
    fewer where there would be too many of them. Of more than ``rows`` rows so many are drawn.
    """
    if versions < 1:
        raise BadRequest("the study needs at least one version", hint="versions=10")
    table = read(query, missing)
    notes = []
    if table.rows > rows:
        chosen = np.sort(np.random.default_rng(seed).choice(table.rows, rows, replace=False))
        notes.append(f"on {rows:,} of {table.rows:,} rows, drawn by chance")
        table = CodedTable(table.names, np.ascontiguousarray(table.codes[:, chosen]))
    unit = unit or ("cells" if pattern == "uniform" else "tuples")
    columns = [_place(table, name) for name in target or ("most-distinct",)] if pattern == "target" else []
    where = f", in {', '.join(table.names[each] for each in columns)}" if columns else ""
    notes.append(f"shares of missing values are of all {unit}{where}")
    most = min(_bounded(table.columns), table.columns if max_lhs is None else max_lhs)
    if most < table.columns - 1:
        notes.append(f"left sides of at most {most} of {table.columns} columns")
    candidates = list(candidates_of(table.columns, most))
    if not candidates:
        raise BadRequest("there is no dependency to study in one column", hint="give a table of several columns")
    return Experiment(table, candidates).run(shares, pattern, unit, columns, versions, seed, progress, notes)


def _place(table: CodedTable, name: str) -> int:
    if name in ("most-distinct", "least-distinct") and name not in table.names:
        sizes = table.codes.max(axis=1)
        return int(sizes.argmax() if name == "most-distinct" else sizes.argmin())
    if name not in table.names:
        raise NotFound.among("column", name, list(table.names))
    return table.names.index(name)


def _bounded(columns: int) -> int:
    """The largest left side that leaves few enough candidates."""
    total = 0
    for size in range(1, columns):
        total += math.comb(columns, size) * (columns - size)
        if total > _MOST_CANDIDATES:
            return max(1, size - 1)
    return columns - 1


class Experiment:
    """A table, its candidates, and what is known of them before values go missing."""

    def __init__(self, table: CodedTable, candidates: list[tuple[tuple[int, ...], int]]) -> None:
        self.table = table
        self.candidates = candidates
        self.clean = {each: self.scored(table, each) for each in NULLS}

    def scored(self, table: CodedTable, nulls: Nulls) -> Scored:
        """Degrees and scores of all candidates in a version of the table."""
        codes = table.under(nulls)
        found = score_all(codes, self.candidates)
        alone = score_all(codes, [((), rhs) for rhs in range(table.columns)])
        beyond = [
            beyond_chance(each, alone[rhs], codes.shape[1])
            for each, (_, rhs) in zip(found, self.candidates, strict=True)
        ]
        pv, pt = (np.array([getattr(each, name) for each in found], np.float64) for name in ("pv", "pt"))
        return Scored(np.array([each.degree for each in found], np.int64), pv, pt, np.array(beyond, np.float64))

    def run(
        self,
        shares: Sequence[float],
        pattern: Pattern,
        unit: Unit,
        target: Sequence[int],
        versions: int,
        seed: int,
        progress: Listener | None,
        notes: list[str],
    ) -> Results[Effect]:
        records: list[Effect] = []
        for number, share in enumerate(shares):
            found: dict[str, list[dict[str, float]]] = {each: [] for each in NULLS}
            for version in range(versions):
                damaged = polluted(
                    self.table, share, pattern, unit=unit, target=target, seed=seed + version + versions * number
                )
                for nulls, measured in self._measured(damaged).items():
                    found[nulls].append(measured)
                if progress is not None:
                    progress(number * versions + version + 1, len(shares) * versions)
            records += [_effect(share, nulls, each) for nulls, each in found.items()]
        if any(each.exact is None for each in records):
            notes.append("fewer than two complete rows were left in some: nothing is told of them")
        info = {"rows": self.table.rows, "columns": self.table.columns, "candidates": len(self.candidates)}
        return Results(Effect, records, shown=_SHOWN, notes=notes, info=info)

    def _measured(self, damaged: CodedTable) -> dict[str, dict[str, float]]:
        scored = {each: self.scored(damaged, each) for each in NULLS}
        # What holds among complete rows; two of them at least, or everything would.
        whole = int((damaged.codes >= 0).all(axis=0).sum())
        holding = (scored["skip"].degrees == 0) & (whole > 1)
        return {
            nulls: {
                "rows": float(whole if nulls == "skip" else damaged.rows),
                **_changes(self.clean[nulls].degrees, scores.degrees, able=whole > 1 or nulls != "skip"),
                **_quality(scores, holding, self.clean[nulls].degrees == 0, known=nulls != "skip"),
            }
            for nulls, scores in scored.items()
        }


def _changes(before: I64, after: I64, *, able: bool) -> dict[str, float]:
    """What became of degrees; nothing is known of fewer than two rows, of which everything holds."""
    if not able:
        return dict.fromkeys(("exact", "same", "ghost", "fake", "jaccard"), math.nan)
    held, holds = before == 0, after == 0
    union = int((held | holds).sum())
    return {
        "exact": float(holds.sum()),
        "same": float((before == after).mean()),
        "ghost": float((after > before).mean()),
        "fake": float((after < before).mean()),
        "jaccard": float((held & holds).sum() / union) if union else 1.0,
    }


def _quality(scores: Scored, holding: Bools, held: Bools, *, known: bool) -> dict[str, float]:
    """How well scores tell what held among what holds now; nothing is known of rows that were left out."""
    labels = held[holding]
    found = {"base": float(labels.mean()) if labels.size else math.nan}
    for name, values in (("pv", scores.pv), ("pt", scores.pt), ("score", scores.score)):
        able = known and bool(labels.size)
        found[f"{name}_auc"] = auc(values[holding], labels) if able else math.nan
        found[f"{name}_top"] = precision(values[holding], labels, _TOP) if able else math.nan
    return found


def auc(values: F64, labels: Bools) -> float:
    """The chance that one with the label has the larger value than one without; ties count half. NaN without both."""
    positive = int(labels.sum())
    negative = labels.size - positive
    if not positive or not negative:
        return math.nan
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[place]
    return float((ranks[labels].sum() - positive * (positive + 1) / 2) / (positive * negative))


def precision(values: F64, labels: Bools, share: float) -> float:
    """The share of labelled ones among the largest values; those that tie for the last places count by their share."""
    count = max(1, round(share * labels.size))
    least = np.sort(values)[-count]
    above, level = values > least, values == least
    places = count - int(above.sum())
    return float((labels[above].sum() + places * labels[level].mean()) / count)


def _effect(share: float, nulls: str, versions: list[dict[str, float]]) -> Effect:
    means: dict[str, Any] = {}
    for name in versions[0]:
        known = [each[name] for each in versions if not math.isnan(each[name])]
        means[name] = sum(known) / len(known) if known else None
    return Effect(missing=share, nulls=nulls, versions=len(versions), **means)


def write_report(folder: str | Path, effects: Results[Effect]) -> Path:
    """Write ``study.html`` with charts, and the numbers as CSV and JSON; returns the page."""
    return write_study(
        folder,
        effects.to_dicts(),
        title="Dependencies and missing values",
        about=f"{effects.info['candidates']:,} candidates of {effects.info['columns']} columns and "
        f"{effects.info['rows']:,} rows; means over versions of the table with values taken out by chance.",
        charts=_charts(effects),
        shown=effects.shown,
    )


def _charts(effects: Results[Effect]) -> Iterator[str]:
    def lines(names: dict[str, str], only: Sequence[str] = NULLS) -> dict[str, list[tuple[float, float]]]:
        found: dict[str, list[tuple[float, float]]] = {}
        for each in effects:
            for name, title in names.items():
                value = getattr(each, name)
                if value is not None and each.nulls in only:
                    found.setdefault(f"{title}{each.nulls}", []).append((100 * each.missing, value))
        return found

    across = {"x": "missing values, %", "log_x": False, "log_y": False}
    for name, title in (
        ("jaccard", "What holds beside what held (Jaccard)"),
        ("same", "Candidates with the same degree"),
        ("ghost", "Ghosts: degrees that rose"),
        ("fake", "Fakes: degrees that fell"),
    ):
        yield line_chart(lines({name: ""}), title=title, y="share", **across)  # type: ignore[arg-type]
    scores = {"pv": "PV, ", "pt": "PT, ", "score": "score, "}
    known = ("equal", "distinct")
    for end, title, y in (("auc", "Telling what held from what seems to", "AUC"), ("top", "The best tenth", "held")):
        named = {f"{name}_{end}": text for name, text in scores.items()}
        yield line_chart(lines(named, known), title=title, y=y, **across)  # type: ignore[arg-type]
