"""Hide and rediscover: how well headers are found where they are known (spec-profiling 3.7).

Some tables of the lake are hidden, neither their headers nor their values are used, and their columns are asked for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import mean
from typing import Any, NamedTuple

import numpy as np

from lakescope.engines.headers.answers import MODES, Evaluation
from lakescope.engines.headers.coherence import SchemaStatistics
from lakescope.engines.headers.corpus import HeadedColumns
from lakescope.engines.headers.names import MATCHES, match, normalised
from lakescope.engines.headers.similar import propose
from lakescope.engines.headers.suggest import HeaderCriteria, HeaderSearch
from lakescope.engines.joins.inverted import InvertedIndex
from lakescope.errors import BadRequest
from lakescope.results import Results
from lakescope.store.index import Index

#: A header a column, None for none.
Headers = Sequence[str | None]
RULE = "largest containment"
DEPTHS = (1, 5, 10)
_SHOWN = ("method", "precision", "recall", "f1", "columns_suggested", "tables_suggested", "exact_1", "complete_1")


@dataclass(frozen=True, slots=True)
class Rediscovered:
    """One hidden table: its true headers, and the schemata that were suggested, best first."""

    truth: Headers
    schemata: Sequence[Headers]


class HeaderCounts(NamedTuple):
    """Right headers, suggested headers, and columns that have one; only these count."""

    right: int
    suggested: int
    columns: int


def precision_recall(truth: Headers, found: Headers) -> HeaderCounts:
    """What precision and recall of a table's headers are made of."""
    pairs = [(true, header) for true, header in zip(truth, found, strict=True) if true is not None]
    suggested = [(true, header) for true, header in pairs if header is not None]
    right = sum(normalised(true) == normalised(header) for true, header in suggested)
    return HeaderCounts(right, len(suggested), len(pairs))


def measured(
    method: str, tables: Sequence[Rediscovered], *, corpus_tables: int, ceiling: float, milliseconds: float = 0.0
) -> Evaluation:
    """All metrics over some tables, columns of all of them counted together."""
    right = suggested = columns = 0
    classes = dict.fromkeys(MATCHES, 0)
    depths: dict[tuple[str, int], int] = {}
    with_any = 0
    for each in tables:
        best = each.schemata[0] if each.schemata else [None] * len(each.truth)
        first = precision_recall(each.truth, best)
        right, suggested, columns = right + first.right, suggested + first.suggested, columns + first.columns
        for true, header in zip(each.truth, best, strict=True):
            if true is not None and header is not None:
                classes[match(header, true)] += 1
        with_any += first.suggested > 0
        for depth in DEPTHS if first.suggested else ():
            counts = [precision_recall(each.truth, schema) for schema in each.schemata[:depth]]
            exact = any(one.right == one.suggested > 0 for one in counts)
            complete = any(one.right == one.columns for one in counts)
            for name, holds in (("exact", exact), ("complete", complete)):
                depths[name, depth] = depths.get((name, depth), 0) + holds
    precision, recall = right / max(1, suggested), right / max(1, columns)
    shares: dict[str, Any] = {
        f"{name}_{depth}": depths.get((name, depth), 0) / max(1, with_any)
        for name in ("exact", "complete")
        for depth in DEPTHS
    }
    shares |= {f"all_{depth}": depths.get(("complete", depth), 0) / max(1, len(tables)) for depth in DEPTHS}
    shares |= {name.replace(" ", "_"): count / max(1, suggested) for name, count in classes.items()}
    return Evaluation(
        method=method,
        tables=len(tables),
        columns=columns,
        corpus_tables=corpus_tables,
        ceiling=ceiling,
        precision=precision,
        recall=recall,
        f1=2 * precision * recall / max(1e-12, precision + recall),
        columns_suggested=suggested / max(1, columns),
        tables_suggested=with_any / max(1, len(tables)),
        milliseconds=milliseconds,
        **shares,
    )


class HiddenTables:
    """A lake of which some tables are hidden, to be asked for."""

    def __init__(
        self,
        index: Index,
        inverted: InvertedIndex,
        tables: Sequence[int],
        *,
        headed: HeadedColumns | None = None,
        also_hidden: Iterable[int] = (),
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.tables = list(tables)
        hidden = {*tables, *also_hidden}
        self.search = HeaderSearch(index, inverted, hidden=hidden, headed=headed, progress=progress)
        self.columns = self.search.columns

    def truth(self, table: int) -> list[str | None]:
        """The true headers of a table."""
        headers = self.columns.header_of[list(self.columns.columns_of(table))].tolist()
        return [self.columns.headers[header] if header >= 0 else None for header in headers]

    @property
    def ceiling(self) -> float:
        """Share of the hidden columns whose header some table has that is not hidden."""
        known = [
            bool(self.search.corpus.frequency[self.columns.number_of[header]] > 0)
            for table in self.tables
            for header in self.truth(table)
            if header is not None
        ]
        return mean(known) if known else 0.0

    def rediscovered(
        self, method: str, request: HeaderCriteria | None, statistics: SchemaStatistics | None = None
    ) -> Evaluation:
        """Ask for all hidden tables by one request; None: by the simple rule."""
        if request is not None and request.method == "ours":
            _ = self.search.model
        began = time.perf_counter()
        found = []
        for table in self.tables:
            nameless = self.search.table(table)
            schemata: list[Headers]
            if request is None:
                similar = self.search.values.similar(nameless, self.search.corpus.whole)
                proposed = propose(similar, self.search.corpus, threshold=None, k=1)
                schemata = [[self.columns.headers[some[0].header] if some else None for some in proposed]]
            else:
                answer = self.search.suggest(nameless, request, statistics=statistics)
                schemata = [each.headers for each in answer]
            found.append(Rediscovered(self.truth(table), schemata))
        took = 1e3 * (time.perf_counter() - began) / max(1, len(self.tables))
        return measured(
            method, found, corpus_tables=self.search.corpus.tables, ceiling=self.ceiling, milliseconds=round(took, 2)
        )


def split_tables(headed: HeadedColumns, share: float, seed: int) -> list[int]:
    """Tables to hide: a share of those with a usable header, by chance."""
    if not 0 < share < 1:
        raise BadRequest(f"the split must be between 0 and 1, not {share}", hint="0.05 hides one table in twenty")
    tables = np.unique(headed.table_of[headed.header_of >= 0])
    if tables.size < 2:
        raise BadRequest("fewer than two tables of the lake have headers", hint="index more tables")
    count = min(tables.size - 1, max(1, round(share * tables.size)))
    chosen: list[int] = np.sort(np.random.default_rng(seed).permutation(tables)[:count]).tolist()
    return chosen


def evaluate(
    index: Index,
    inverted: InvertedIndex,
    share: float,
    seed: int,
    request: HeaderCriteria,
    progress: Callable[[int, int], None] | None = None,
) -> Results[Evaluation]:
    """How well each mode rediscovers the headers of some tables, beside the thesis' method and a simple rule."""
    headed = HeadedColumns(index)
    hidden = HiddenTables(index, inverted, split_tables(headed, share, seed), headed=headed, progress=progress)
    records = [hidden.rediscovered(mode, replace(request, mode=mode)) for mode in MODES]
    thesis: Any = replace(request, method="thesis", threshold=None)
    records += [hidden.rediscovered(f"thesis, {mode}", replace(thesis, mode=mode)) for mode in MODES]
    records.append(hidden.rediscovered(RULE, None))
    notes = [
        f"{len(hidden.tables):,} of {len(headed.tables):,} tables were hidden (seed {seed}); "
        f"{hidden.ceiling:.0%} of their headers occur in the others"
    ]
    return Results(Evaluation, records, shown=_SHOWN, notes=notes, info={"seed": seed, "split": share})
