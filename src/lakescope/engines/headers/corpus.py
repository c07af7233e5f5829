"""The tables of a lake as a corpus of headed columns: which header each column has, and how often headers have a term.

All of it is made of the catalog when the first question comes, in one pass. Terms are kept beside the index, to be
mapped by the next who asks. Tables may be *hidden*, which is how a lake is asked about tables as if they were not in
it. A corpus can be cut into *parts*, each a run of tables, that are searched apart.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from lakescope.array_types import F64, I32, I64, U64, Bools
from lakescope.engines.headers.evidence import FAMILIES, FIELDS, terms_of
from lakescope.engines.headers.names import as_written, normalised
from lakescope.engines.joins.josie import kernels_are_loaded
from lakescope.once import once
from lakescope.sources.names import meaningless
from lakescope.store.arrays import Arrays
from lakescope.store.index import Index
from lakescope.store.inverted import ranges
from lakescope.values.hashing import hash_text

Record = dict[str, Any]

#: What terms are kept as; another name when terms become others.
_KEPT = "headers-terms-1"
#: Columns whose catalog records are looked at together.
_SLICE = 20_000
#: Columns' worth of evidence that every header starts with: how the average column looks.
SMOOTHING = 2.0


#: Few terms are in many columns: those of a question were mostly hashed before.
_hashed = lru_cache(maxsize=1 << 16)(hash_text)


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of one family: ``items[starts[c]:starts[c + 1]]`` are those of column c.

    A term is known by its place among the hashes of all, so that nothing but arrays has to be kept.
    """

    hashes: U64
    starts: I64
    items: I32

    def __len__(self) -> int:
        return int(self.hashes.size)

    def numbers(self, terms: Sequence[str]) -> I64:
        """The number of each term; -1 of those that no column has."""
        wanted = np.array([_hashed(term) for term in terms], np.uint64)
        if not self.hashes.size:
            return np.full(wanted.size, -1, np.int64)
        at = np.minimum(np.searchsorted(self.hashes, wanted), self.hashes.size - 1)
        return np.where(self.hashes[at] == wanted, at, -1)

    def of(self, columns: I64) -> tuple[I64, I64]:
        """Terms of some columns, and the place among these columns that each belongs to."""
        lengths = self.starts[columns + 1] - self.starts[columns]
        some = self.items[ranges(self.starts[columns], lengths)].astype(np.int64)
        return some, np.repeat(np.arange(columns.size), lengths)


@dataclass(frozen=True, slots=True)
class _Counts:
    """How many columns of each header have a term: ``headers`` and ``counts`` from ``starts[term]`` on.

    ``totals`` are the columns of any header that have it.
    """

    starts: I64
    headers: I64
    counts: F64
    totals: F64


@dataclass(frozen=True, slots=True)
class _Holders:
    """The columns of a part that have a term: ``columns`` from ``starts[term]`` on, counted from its first column.

    ``scale`` is one over the root of how many terms each column has.
    """

    starts: I64
    columns: I32
    scale: F64

    def add_worth(self, numbers: I64, rarity: F64, root: float, found: F64) -> None:
        """Add to every column what it is worth that it has some terms: the rarer each, the more."""
        if kernels_are_loaded():
            from lakescope.engines.headers import kernels

            kernels.add_worth(numbers, self.starts, self.columns, rarity, self.scale, root, found)
            return
        lengths = self.starts[numbers + 1] - self.starts[numbers]
        columns = self.columns[ranges(self.starts[numbers], lengths)]
        np.add.at(found, columns, np.repeat(rarity, lengths) * self.scale[columns] / root)


class HeadedColumns:
    """All columns of a lake with their headers and terms; ``number`` of a column is its row in the catalog."""

    def __init__(self, index: Index) -> None:
        catalog = index.fields("columns", FIELDS)
        names: list[str] = catalog["table"].to_pylist()
        self.tables: list[str] = list(dict.fromkeys(names))
        place = {table: number for number, table in enumerate(self.tables)}
        self.table_of: I64 = np.array([place[name] for name in names], np.int64)
        self.first: I64 = np.searchsorted(self.table_of, np.arange(len(self.tables) + 1)).astype(np.int64)
        self.written: list[str] = catalog["column"].to_pylist()
        self.forms: list[str] = []
        self.header_of: I64 = self._headers()
        self.terms: dict[str, Terms] = self._read_terms(index, catalog)

    def __len__(self) -> int:
        return len(self.written)

    def columns_of(self, table: int) -> range:
        """Numbers of the columns of a table."""
        return range(int(self.first[table]), int(self.first[table + 1]))

    @once
    def number_of_table(self) -> dict[str, int]:
        return {table: number for number, table in enumerate(self.tables)}

    def _headers(self) -> I64:
        """The number of the header of every column; -1 of those whose header means nothing."""
        numbers: dict[str, int] = {}
        forms: list[Counter[str]] = []
        found = np.full(len(self.written), -1, np.int64)
        for table in range(len(self.tables)):
            columns = self.columns_of(table)
            names = as_written(self.written[columns.start : columns.stop])
            for column, name in zip(columns, names, strict=True):
                if meaningless(name):
                    continue
                number = found[column] = numbers.setdefault(normalised(name), len(numbers))
                if number == len(forms):
                    forms.append(Counter())
                forms[number][name] += 1
        self.headers: list[str] = list(numbers)
        self.number_of: dict[str, int] = numbers
        # Of the ways a header is written the commonest is shown.
        self.forms = [min(form, key=lambda name: (-form[name], name)) for form in forms]
        return found

    def _read_terms(self, index: Index, catalog: Any) -> dict[str, Terms]:
        """The terms of all columns: those kept beside the index, else made of the catalog and kept."""
        kept = index.recall_arrays(_KEPT)
        if kept is None or kept.get(f"{FAMILIES[0]}.starts", np.empty(0)).size != len(self) + 1:
            kept = self._made_terms(catalog)
            index.remember_arrays(_KEPT, kept)
        return {
            family: Terms(kept[f"{family}.hashes"], kept[f"{family}.starts"], kept[f"{family}.items"])
            for family in FAMILIES
        }

    def _made_terms(self, catalog: Any) -> Arrays:
        hashes: dict[str, list[U64]] = {family: [np.empty(0, np.uint64)] for family in FAMILIES}
        lengths: dict[str, list[int]] = {family: [] for family in FAMILIES}
        widths = np.diff(self.first)[self.table_of].tolist()
        for begin in range(0, len(self), _SLICE):
            records = catalog.slice(begin, _SLICE).to_pylist()
            some: dict[str, list[int]] = {family: [] for family in FAMILIES}
            for record, width in zip(records, widths[begin : begin + _SLICE], strict=True):
                for family, terms in terms_of(record, width).items():
                    some[family] += map(hash_text, terms)
                    lengths[family].append(len(terms))
            for family in FAMILIES:
                hashes[family].append(np.array(some[family], np.uint64))
        made: Arrays = {}
        for family in FAMILIES:
            known, items = np.unique(np.concatenate(hashes[family]), return_inverse=True)
            made[f"{family}.hashes"], made[f"{family}.items"] = known, items.astype(np.int32)
            made[f"{family}.starts"] = np.concatenate([[0], np.cumsum(lengths[family])]).astype(np.int64)
        return made


class HeaderCorpus:
    """The columns that headers are borrowed from: those of tables that are not hidden, whose header means something.

    What it knows of headers is a summary: how common each is, and how often its columns have a term. What it knows of
    columns is asked of its :class:`CorpusPart`.
    """

    def __init__(self, columns: HeadedColumns, hidden: Collection[int] = ()) -> None:
        self.columns = columns
        hides = np.zeros(len(columns.tables), np.bool_)
        hides[list(hidden)] = True
        self.usable: Bools = (columns.header_of >= 0) & ~hides[columns.table_of]
        self.numbers: I64 = np.flatnonzero(self.usable)
        self.header: I64 = columns.header_of[self.numbers]
        self.table: I64 = columns.table_of[self.numbers]
        self.frequency: F64 = np.bincount(self.header, minlength=len(columns.headers)).astype(np.float64)
        self.tables = int(np.unique(self.table).size)
        self.widths: I64 = np.bincount(self.table, minlength=len(columns.tables))
        # Columns in order of their header, for those who ask by header.
        order = np.argsort(self.header, kind="stable")
        self._by_header = self.numbers[order]
        self._header_starts = np.searchsorted(self.header[order], np.arange(len(columns.headers) + 1))
        self._counts: dict[str, _Counts] = {}
        self._totals: dict[str, F64] = {}

    def __len__(self) -> int:
        return int(self.numbers.size)

    @once
    def whole(self) -> CorpusPart:
        """All of it as one part."""
        return CorpusPart(self, range(len(self.columns.tables)))

    def part(self, number: int, parts: int) -> CorpusPart:
        """One of several parts of about as many columns each: a run of tables."""
        cuts = np.searchsorted(self.columns.first, np.linspace(0, len(self.columns), parts + 1)[1:-1])
        bounds = [0, *cuts.tolist(), len(self.columns.tables)]
        return CorpusPart(self, range(bounds[number], bounds[number + 1]))

    def counts(self, family: str) -> _Counts:
        """The summary of one family, made when it is first needed."""
        if family not in self._counts:
            terms = self.columns.terms[family]
            some, owner = terms.of(self.numbers)
            size = max(1, len(self.columns.headers))
            pairs, counts = np.unique(some * size + self.header[owner], return_counts=True)
            term, header = np.divmod(pairs, size)
            starts = np.searchsorted(term, np.arange(len(terms) + 1)).astype(np.int64)
            self._counts[family] = _Counts(starts, header, counts.astype(np.float64), self.totals(family))
        return self._counts[family]

    def totals(self, family: str) -> F64:
        """How many columns have each term of a family."""
        if family not in self._totals:
            terms = self.columns.terms[family]
            self._totals[family] = np.bincount(terms.of(self.numbers)[0], minlength=len(terms)).astype(np.float64)
        return self._totals[family]

    def bearing(self, headers: I64) -> I64:
        """Numbers of the columns that have one of some headers, in order."""
        starts = self._header_starts[headers]
        return np.sort(self._by_header[ranges(starts, self._header_starts[headers + 1] - starts)])

    def own(self, table: int | None) -> I64:
        """Columns of a table that are part of the corpus: what a question about this table must leave out."""
        if table is None:
            return np.empty(0, np.int64)
        columns = self.columns.columns_of(table)
        some = np.arange(columns.start, columns.stop)
        return some[self.usable[some]]

    def frequency_without(self, own: I64) -> F64:
        """Columns of each header, some columns left out."""
        return self.frequency - np.bincount(self.columns.header_of[own], minlength=self.frequency.size)

    def looks(self, family: str, terms: Sequence[str], frequency: F64, own: I64) -> F64:
        """For every header, how much more likely it makes the terms of a column, as a logarithm summed over them.

        ``log P(term | header) - log P(term)``, where a header starts with ``SMOOTHING`` average columns. The
        columns ``own`` are left out, ``frequency`` counts what remains.
        """
        known, counts = self.columns.terms[family], self.counts(family)
        numbers = known.numbers(terms)
        numbers = numbers[numbers >= 0]
        starts = counts.starts[numbers]
        lengths = counts.starts[numbers + 1] - starts
        flat = ranges(starts, lengths)
        place = np.repeat(np.arange(numbers.size), lengths)
        header, count, totals = counts.headers[flat], counts.counts[flat], counts.totals[numbers]
        if own.size:
            some, owner = known.of(own)
            size = max(1, frequency.size)
            mine, times = np.unique(some * size + self.columns.header_of[own][owner], return_counts=True)
            key = numbers[place] * size + header
            if mine.size and key.size:
                at = np.minimum(np.searchsorted(mine, key), mine.size - 1)
                count = count - np.where(mine[at] == key, times[at], 0)
            totals = totals - np.bincount(some, minlength=counts.totals.size)[numbers]
        return likelihood(header, count, place, totals, len(terms), frequency)


class CorpusPart:
    """The columns of a run of tables of a corpus: what can be searched apart from the rest.

    ``columns`` are their numbers. Only what is rare in the whole corpus is taken from outside the part, so that a
    column is as alike to another whatever the parts.
    """

    def __init__(self, corpus: HeaderCorpus, tables: range) -> None:
        first = corpus.columns.first
        self.corpus = corpus
        self.tables = tables
        self.columns = range(int(first[tables.start]), int(first[tables.stop]))
        self.first: I64 = first[tables.start : tables.stop] - self.columns.start
        self.widths: I64 = np.diff(first[tables.start : tables.stop + 1])
        self.header_of: I64 = corpus.columns.header_of[self.columns.start : self.columns.stop]
        self._usable = np.flatnonzero(corpus.usable[self.columns.start : self.columns.stop])
        self._holders: dict[str, _Holders] = {}

    def _held(self, family: str) -> _Holders:
        if family not in self._holders:
            terms = self.corpus.columns.terms[family]
            some, owner = terms.of(self._usable + self.columns.start)
            order = np.argsort(some, kind="stable")
            starts = np.searchsorted(some[order], np.arange(len(terms) + 1)).astype(np.int64)
            lengths = np.diff(terms.starts[self.columns.start : self.columns.stop + 1])
            scale = 1 / np.sqrt(np.maximum(1, lengths))
            self._holders[family] = _Holders(starts, self._usable[owner[order]].astype(np.int32), scale)
        return self._holders[family]

    def alike(self, terms: Mapping[str, Sequence[str]], own: I64) -> F64:
        """For every column of the part, how much of the looks of a column it has: the rarer what both have, the more.

        1 is as much as the column itself. 0 for columns that are not part of the corpus, and for ``own``.
        """
        found = np.zeros(len(self.columns))
        whole = 0.0
        columns_left = len(self.corpus) - own.size
        for family, some in terms.items():
            known, held, totals = self.corpus.columns.terms[family], self._held(family), self.corpus.totals(family)
            numbers = known.numbers(some)
            unknown = int((numbers < 0).sum())
            numbers = numbers[numbers >= 0]
            mine = np.bincount(known.of(own)[0], minlength=totals.size)[numbers]
            rarity = np.log((columns_left + 1) / (totals[numbers] - mine + 0.5))
            whole += (float(rarity.sum()) + unknown * float(np.log(2 * columns_left + 2))) / len(some)
            held.add_worth(numbers, rarity, math.sqrt(len(some)), found)
        mine = own[(own >= self.columns.start) & (own < self.columns.stop)]
        found[mine - self.columns.start] = 0
        return found / max(whole, 1e-9)


def likelihood(
    header: I64, count: F64, place: I64, totals: F64, terms: int, frequency: F64, weights: F64 | None = None
) -> F64:
    """Log likelihood ratios of headers for ``terms`` terms, of which some columns have those at a ``place``.

    ``count`` columns of a ``header`` have the term, ``totals`` all that have it. A term that no column of a header has
    costs it the same whichever term it is, so only pairs that occur are visited.
    """
    columns = max(1.0, float(frequency.sum()))
    share = np.maximum(totals, 0.5) / columns
    gained = np.log1p(count / (SMOOTHING * share[place]))
    if weights is not None:
        gained = gained * weights[place]
    lost = terms * np.log(SMOOTHING / (frequency + SMOOTHING))
    found: F64 = np.bincount(header, gained, minlength=frequency.size) + lost
    return found
