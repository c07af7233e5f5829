"""The study of the estimators: error, coverage, time and memory over synthetic columns and tables of one's own.

As in the thesis (spec 2.8): all values distinct, powers of ten from 10 on, several seeds each, every estimator sized
for a 1% error. Values are real ones, turned into text and hashed like those of any table.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from lakescope.array_types import U64
from lakescope.engines.counting.answers import Count, Trial
from lakescope.errors import BadRequest
from lakescope.results import Results
from lakescope.show.charts import line_chart
from lakescope.show.study import html_table, write_study
from lakescope.sketches.design import BASELINES, BY_NAME, TWELVE, counter_kind, design
from lakescope.sketches.gee import GEE
from lakescope.sketches.kernels import mix
from lakescope.values.hashed import hashes_of

Listener = Callable[[int, int], None]

#: The smallest column of a study.
SMALLEST = 10
_SHOWN = ("counter", "values", "error", "bias", "coverage", "nanoseconds", "bytes", "note")


@dataclass(frozen=True, slots=True)
class CounterStudyTuning:
    """What a study of counters leaves out."""

    #: Seconds for one column beyond which an estimator is left out. Not measured: the published study did so after two
    #: hours.
    patience: float = 60.0
    #: Seconds that a value takes for each hash function of FM. Measured when counters were first compared
    #: (benchmarks/results/counters.md).
    function_seconds: float = 0.7e-9
    #: Columns of so many values are not for what would keep them whole. Not measured: a bound on memory.
    large: int = 100_000_000


STUDY = CounterStudyTuning()

_RATES = (0.2, 0.4, 0.6, 0.8, 1.0)


def study(
    largest: float = 1e7,
    *,
    counters: Sequence[str] | None = None,
    error: float = 0.01,
    seeds: int = 10,
    progress: Listener | None = None,
) -> Results[Trial]:
    """Characterise estimators on columns of 10, 100, ... up to ``largest`` distinct values."""
    names = list(counters) if counters else [kind.name for kind in (*TWELVE, *BASELINES)]
    for name in names:
        counter_kind(name)
    if largest < SMALLEST or seeds < 1:
        raise BadRequest(f"the study needs at least {SMALLEST} values and one seed")
    sizes = [10**k for k in range(1, 12) if 10**k <= largest]
    trials: list[Trial] = []
    total = seeds * sum(sizes)
    done = 0
    for size in sizes:
        runs = [_Run(name, size, error) for name in names]
        for seed in range(seeds):
            hashes = column(size, seed)
            for run in runs:
                run.count(hashes, seed)
            done += size
            if progress is not None:
                progress(done, total)
        trials += [run.trial() for run in runs]
    return Results(Trial, trials, shown=_SHOWN)


def column(size: int, seed: int) -> U64:
    """Hashes of a synthetic column: so many different integers, as text."""
    start = int(mix(np.array([seed + 1], np.uint64))[0])
    parts = []
    for first in range(0, size, 1 << 20):
        numbers = np.arange(first, min(size, first + (1 << 20)), dtype=np.uint64) + np.uint64(start)
        parts += list(hashes_of(pa.array(mix(numbers).view(np.int64))))
    return np.concatenate(parts)


class _Run:
    """One estimator on columns of one size."""

    def __init__(self, name: str, size: int, error: float) -> None:
        self._name, self._size = name, size
        self._design = design(name, error=error, n_max=size)
        self._errors: list[float] = []
        self._covered = 0
        self._seconds = 0.0
        self._bytes = self._design.bytes
        self._note = self._left_out()
        self._most = 3 if name == "fm" and size >= 100_000 else 1 << 30

    def _left_out(self) -> str:
        """Why the estimator is not tried at this size, if so."""
        functions = self._design.parameters.get("functions", 0)
        if self._name == "fm" and self._size * functions * STUDY.function_seconds > STUDY.patience:
            return f"left out: every value meets {functions:,} hash functions"
        if self._name in ("exact", "gee") and self._size >= STUDY.large:
            return "left out: keeps every value"
        return ""

    def count(self, hashes: U64, seed: int) -> None:
        """Count a column."""
        if self._note.startswith("left out") or seed >= self._most:
            return
        counter = self._design.make()
        began = time.process_time()
        for start in range(0, self._size, 1 << 16):
            counter.update_hashes(hashes[start : start + (1 << 16)])
        estimate = counter.estimate()
        self._seconds += time.process_time() - began
        low, high = counter.interval()
        self._covered += low <= self._size <= high
        self._errors.append(estimate / self._size - 1)
        used = -(-counter.memory_bits // 8)
        self._bytes = max(self._bytes, used) if len(self._errors) > 1 else used
        self._note = counter.warning() or ""

    def trial(self) -> Trial:
        """What was found."""
        parameters = ", ".join(f"{key}={value}" for key, value in self._design.parameters.items())
        n = len(self._errors)
        if not n:
            return Trial(self._name, self._size, 0, None, None, None, None, None, self._bytes, parameters, self._note)
        errors = np.array(self._errors)
        return Trial(
            *(self._name, self._size, n, float(np.abs(errors).mean()), float(np.abs(errors).max())),
            *(float(errors.mean()), self._covered / n, 1e9 * self._seconds / n / self._size),
            *(self._bytes, parameters, self._note),
        )


class SamplingError(NamedTuple):
    """Sampling rate, mean relative error of GEE on distinct values, and what the formula gives: 1 - sqrt(rate)."""

    rate: float
    error: float
    expected: float


def gee_errors(size: int = 100_000, seeds: int = 10) -> list[SamplingError]:
    """Errors of GEE on columns of distinct values, by sampling rate."""
    rows = []
    for rate in _RATES:
        errors = []
        for seed in range(seeds):
            counter = GEE(rate, seed)
            counter.update_hashes(column(size, seed))
            errors.append(abs(counter.estimate() / size - 1))
        rows.append(SamplingError(rate, float(np.mean(errors)), 1 - rate**0.5))
    return rows


def write_report(folder: str | Path, trials: Results[Trial], own: Results[Count] | None = None) -> Path:
    """Write ``study.html`` with charts, and the numbers as CSV and JSON; returns the page."""
    sampled = ((f"{each.rate:.0%}", round(each.error, 3), round(each.expected, 3)) for each in gee_errors())
    sections = {
        "Sampling (GEE), 100,000 distinct values": html_table(("rate", "mean error", "1 - sqrt(rate)"), sampled)
    }
    if own is not None:
        sections["Own tables"] = html_table(own.shown, ([getattr(each, name) for name in own.shown] for each in own))
    return write_study(
        folder,
        trials.to_dicts(),
        title="Counting distinct values",
        about="every estimator sized for the same error, on columns of distinct values; means over seeds.",
        charts=_charts(trials),
        shown=trials.shown,
        sections=sections,
    )


def _charts(trials: Results[Trial]) -> Iterator[str]:
    measured = [trial for trial in trials if trial.error is not None]

    def lines(names: Sequence[str], value: Callable[[Trial], float | None]) -> dict[str, list[tuple[float, float]]]:
        found: dict[str, list[tuple[float, float]]] = {}
        for trial in measured:
            y = value(trial)
            if trial.counter in names and y is not None:
                found.setdefault(trial.counter, []).append((trial.values, y))
        return found

    sketched = [kind.name for kind in TWELVE]
    x = "distinct values"
    yield line_chart(
        lines(sketched, lambda trial: trial.error), title="Mean relative error", x=x, y="relative error (log)"
    )
    for family in dict.fromkeys(kind.traits.family for kind in TWELVE):
        names = [kind.name for kind in TWELVE if kind.traits.family == family]
        title = f"Mean relative error: {family}"
        yield line_chart(lines(names, lambda trial: trial.error), title=title, x=x, y="relative error (log)")
    spent = lines(list(BY_NAME), lambda trial: trial.nanoseconds)
    yield line_chart(spent, title="CPU time a value, hashing apart", x=x, y="nanoseconds (log)")
    yield line_chart(
        lines(list(BY_NAME), lambda trial: float(trial.bytes)), title="Memory of the synopsis", x=x, y="bytes (log)"
    )
