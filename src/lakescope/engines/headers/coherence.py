"""Phase 2: which headers go together, and the schemata that go together best (spec-profiling 3.6).

Coherence after Roeder et al.: a schema is cut into pairs of headers (*segmentation*), each pair is judged by how
often its headers share a schema of the corpus (*confirmation*), and the mean is told. The best schemata are found among
all combinations of candidates: exactly by branch and bound as long as that is feasible, by a beam beyond.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lakescope.array_types import F64, I64
from lakescope.engines.headers.answers import CONFIRMATIONS, SEGMENTATIONS, Confirmation, Segmentation
from lakescope.engines.headers.corpus import HeaderCorpus
from lakescope.engines.headers.names import schema_form
from lakescope.errors import BadRequest
from lakescope.untrusted import parsed

#: Smoothing of probabilities.
EPSILON = 1e-12
#: Partial schemata that are kept before the search turns into a beam, and how wide the beam is.
MOST_PARTIAL = 200_000
BEAM = 1_000
#: Partial schemata times pairs that may be added up for one column: wide tables get a narrower beam.
_WORK = 20_000_000
#: Schemata that are looked at together.
_BLOCK = 16_384
_NEVER = -1e12


class SchemaStatistics:
    """How often headers occur, and how often together, among weighted schemata.

    Headers are looked up in the form of schemata: without punctuation, lower case.
    """

    def __init__(self, schemata: Iterable[tuple[Sequence[str], float]]) -> None:
        self._numbers: dict[str, int] = {}
        merged: dict[tuple[int, ...], float] = {}
        for schema, weight in schemata:
            forms = {schema_form(header) for header in schema} - {""}
            key = tuple(sorted(self._numbers.setdefault(form, len(self._numbers)) for form in forms))
            if key:
                merged[key] = merged.get(key, 0.0) + weight
        self.weights: F64 = np.array(list(merged.values()), np.float64)
        lengths = np.array([len(schema) for schema in merged], np.int64)
        headers = np.array([number for schema in merged for number in schema], np.int64)
        order = np.argsort(headers, kind="stable")
        self._schemata: I64 = np.repeat(np.arange(lengths.size), lengths)[order]
        self._starts: I64 = np.searchsorted(headers[order], np.arange(len(self._numbers) + 1)).astype(np.int64)
        self.total = float(self.weights.sum())
        self._less: frozenset[int] = frozenset()
        occurring = np.bincount(headers, np.repeat(self.weights, lengths), minlength=len(self._numbers))
        self.frequency: F64 = occurring.astype(np.float64)

    @classmethod
    def of_corpus(cls, corpus: HeaderCorpus, left_out: int | None = None) -> SchemaStatistics:
        """The schemata of the tables of a lake, each as often as it occurs."""
        names = corpus.columns.headers
        schemata: dict[int, list[str]] = {}
        for table, header in zip(corpus.table.tolist(), corpus.header.tolist(), strict=True):
            if table != left_out:
                schemata.setdefault(table, []).append(names[header])
        return cls((schema, 1.0) for schema in schemata.values())

    @classmethod
    def of_file(cls, path: str | os.PathLike[str]) -> SchemaStatistics:
        """Schemata of a file of JSON lines: ``{"header": ["year", "title"], "count": 17}``; a count is 1 by default."""
        try:
            with Path(path).open(encoding="utf-8") as lines:
                return cls(_schemata(lines, str(path)))
        except OSError as error:
            raise BadRequest(f"cannot read {path}: {error.strerror}", hint="name a file of JSON lines") from error

    def without(self, schema: Iterable[str]) -> SchemaStatistics:
        """These counts with one schema of weight 1 less: what is left when the table in question is one of them."""
        found = copy(self)
        found._less = frozenset(self.number(header) for header in schema) - {-1}
        found.total = self.total - bool(found._less)
        return found

    def __len__(self) -> int:
        return int(self.weights.size)

    def number(self, header: str) -> int:
        """The number of a header; -1 of one that no schema has."""
        return self._numbers.get(schema_form(header), -1)

    def occurrences(self, headers: Sequence[str]) -> F64:
        """Weight of the schemata that hold each header."""
        numbers = np.array([self.number(header) for header in headers], np.int64)
        if not self.frequency.size:
            return np.zeros(numbers.size)
        return np.where(numbers >= 0, self.frequency[numbers] - self._mine(numbers), 0.0)

    def _mine(self, numbers: I64) -> F64:
        """1 for the headers of the schema that is left out."""
        return np.array([number in self._less for number in numbers.tolist()], np.float64)

    def together(self, headers: Sequence[str]) -> F64:
        """Weight of the schemata that hold both, for every pair of some headers."""
        numbers = [self.number(header) for header in headers]
        some = list(dict.fromkeys(number for number in numbers if number >= 0))
        lists = [self._schemata[self._starts[number] : self._starts[number + 1]] for number in some]
        owner = np.repeat(np.arange(len(some)), [each.size for each in lists])
        schemata, at = np.unique(np.concatenate([np.empty(0, np.int64), *lists]), return_inverse=True)
        counts = np.zeros((len(some), len(some)))
        for begin in range(0, schemata.size, _BLOCK):
            block = schemata[begin : begin + _BLOCK]
            inside = (at >= begin) & (at < begin + block.size)
            held = np.zeros((len(some), block.size))
            held[owner[inside], at[inside] - begin] = 1
            counts += (held * self.weights[block]) @ held.T
        place = np.array([some.index(number) if number >= 0 else -1 for number in numbers], np.int64)
        if not some:
            return np.zeros((len(numbers), len(numbers)))
        known = (place >= 0)[:, None] & (place >= 0)[None, :]
        mine = self._mine(np.array(numbers, np.int64))
        return np.where(known, counts[np.ix_(place, place)] - np.outer(mine, mine), 0.0)


def _schemata(lines: Iterable[str], path: str) -> Iterable[tuple[list[str], float]]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            record = parsed(line)
            yield [str(header) for header in record["header"]], float(record.get("count", 1))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            hint = 'one schema a line: {"header": ["year", "title"], "count": 17}'
            raise BadRequest(f"{path}, line {number} is no schema", hint=hint) from error


def confirm(measure: Confirmation, first: F64, second: F64, both: F64) -> F64:
    """How much the second header confirms the first: P(h), P(h') and P(h, h') to m(h, h').

    A second header that no schema has confirms nothing: smoothing alone would call it perfect (3.6).
    """
    seen = second > 0
    given = np.where(seen, (both + EPSILON) / (second + EPSILON), 0.0)
    if measure == "c":
        return given
    if measure == "d":
        return np.where(seen, given - first, 0.0)
    if measure == "f":
        without = np.clip((first - both) / np.maximum(1 - second, EPSILON), 0.0, None)
        # Of a first header that no schema has both are nothing but smoothing.
        return np.where(seen & (first > 0), (given - without) / np.maximum(given + without, EPSILON), 0.0)
    ratio: F64 = np.log((both + EPSILON) / (np.maximum(first, EPSILON) * np.maximum(second, EPSILON)))
    if measure == "lr":
        return ratio
    normalised: F64 = ratio / -np.log(np.minimum(both + EPSILON, 1 - EPSILON))
    return normalised


def pair_scores(
    statistics: SchemaStatistics, headers: Sequence[str], segmentation: Segmentation, measure: Confirmation
) -> F64:
    """What a pair adds to the coherence of a schema, by the header that stands before and the one that stands behind.

    Two equal headers confirm each other perfectly and say nothing: they count 0.
    """
    total = max(statistics.total, EPSILON)
    alone = statistics.occurrences(headers) / total
    both = statistics.together(headers) / total
    # (h, h') by rows and columns: Sg_suc has the earlier header first, Sg_pre the later, Sg_one both.
    forward = confirm(measure, alone[:, None], alone[None, :], both)
    scores = {"suc": forward, "pre": forward.T, "one": (forward + forward.T) / 2}[segmentation]
    forms = [schema_form(header) for header in headers]
    equal = np.array([[a == b for b in forms] for a in forms], np.bool_).reshape(len(forms), len(forms))
    return np.where(equal, 0.0, scores)


def coherence(
    statistics: SchemaStatistics,
    schema: Sequence[str | None],
    segmentation: Segmentation = "suc",
    measure: Confirmation = "c",
) -> float | None:
    """C(S): the mean over the pairs of a schema; None where there is no pair."""
    check_measures(segmentation, measure)
    headers = [header for header in schema if header is not None]
    if len(headers) < 2:
        return None
    scores = pair_scores(statistics, headers, segmentation, measure)
    return float(scores[np.triu_indices(len(headers), 1)].mean())


def check_measures(segmentation: str, measure: str) -> None:
    """Refuse what there is not."""
    if segmentation not in SEGMENTATIONS:
        raise BadRequest(f"no segmentation {segmentation!r}", hint=f"use {', '.join(SEGMENTATIONS)}")
    if measure not in CONFIRMATIONS:
        raise BadRequest(f"no confirmation measure {measure!r}", hint=f"use {', '.join(CONFIRMATIONS)}")


@dataclass(frozen=True, slots=True)
class Choice:
    """A combination: which candidate of each column, and the sum of its terms."""

    places: tuple[int, ...]
    total: float


@dataclass(frozen=True, slots=True)
class Combinations:
    """The best combinations, and whether they are that for certain."""

    choices: list[Choice]
    exact: bool


def best_combinations(
    single: Sequence[F64], pairs: Mapping[tuple[int, int], F64], m: int, most: int = MOST_PARTIAL
) -> Combinations:
    """The ``m`` combinations of one candidate a column with the largest sums; minus infinity is never chosen.

    ``single[i][a]`` is what candidate a of column i adds, ``pairs[i, j][a, b]`` what two add together, i before j.
    Columns are added one after the other to all partial combinations at once; one whose sum cannot reach the ``m``-th
    best of a first, narrow search, whatever follows, is dropped. If more than ``most`` remain, the best are kept and
    the answer is not ``exact``.
    """
    most = max(BEAM, min(most, _WORK // (len(pairs) + 1)))
    first = _grown(single, pairs, m, BEAM, -np.inf)
    if first.exact:
        return first
    floor = first.choices[-1].total if len(first.choices) == m else -np.inf
    return _grown(single, pairs, m, most, floor)


def _grown(
    single: Sequence[F64], pairs: Mapping[tuple[int, int], F64], m: int, most: int, floor: float
) -> Combinations:
    n = len(single)
    after: list[list[int]] = [[] for _ in range(n)]
    before: list[list[int]] = [[] for _ in range(n)]
    for i, j in pairs:
        after[i].append(j)
        before[j].append(i)
    # A candidate that no candidate of another column goes with is not worth less than nothing can be.
    most_of = {pair: np.maximum(block.max(axis=1), _NEVER) for pair, block in pairs.items()}
    # By candidate of a column, the most that it adds with all columns behind it.
    ahead = [sum((most_of[i, j] for j in after[i]), np.zeros(single[i].size)) for i in range(n)]
    # The most that the columns from i on add among themselves.
    rest = np.zeros(n + 1)
    for i in range(n - 1, -1, -1):
        rest[i] = rest[i + 1] + float((single[i] + ahead[i]).max())
    chosen, sums, hopes = np.zeros((1, 0), np.int64), np.zeros(1), np.zeros(1)
    exact = True
    for i in range(n):
        added = sums[:, None] + single[i]
        for j in before[i]:
            added += pairs[j, i][chosen[:, j]]
            hopes = hopes - most_of[j, i][chosen[:, j]]
        at, candidate = np.nonzero(added > -np.inf)
        sums = added[at, candidate]
        chosen = np.column_stack([chosen[at], candidate])
        hopes = hopes[at] + ahead[i][candidate]
        reach = sums + hopes + rest[i + 1]
        # A sum is compared with one that was added up in another order.
        kept = np.flatnonzero(reach >= floor - 1e-9)
        if kept.size > most:
            exact = False
            kept = kept[np.lexsort((kept, -reach[kept]))[:most]]
        chosen, sums, hopes = chosen[kept], sums[kept], hopes[kept]
    order = np.lexsort((*chosen.T[::-1], -np.round(sums, 12)))[:m]
    choices = [Choice(tuple(chosen[at].tolist()), float(sums[at])) for at in order.tolist()]
    return Combinations(choices if n else [], exact)
