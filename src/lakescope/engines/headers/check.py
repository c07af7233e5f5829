"""Columns of the lake whose headers are missing, mean nothing, are values, or contradict what stands below them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from lakescope.engines.headers.answers import HeaderDoubt
from lakescope.engines.headers.model import FIRST, Judged
from lakescope.engines.headers.names import as_written, match, normalised
from lakescope.engines.headers.suggest import LEAST, HeaderSearch
from lakescope.results import Results
from lakescope.sources.names import meaningless
from lakescope.store.index import Index
from lakescope.values.canonical import Kind, canonical
from lakescope.values.hashing import hash_text

#: How likely another header must be, and how unlikely its own, for a column to contradict its header.
_OTHER, _OWN = 0.9, 0.01
#: A header that fewer columns of other tables have is not known well enough to be contradicted.
_KNOWN = 3
#: How much more its values must speak for another header, as a logarithm.
_APART = 2.0
_VALUES = (Kind.INTEGER, Kind.DECIMAL, Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.BOOLEAN)
_SHOWN = ("table", "position", "column", "doubt", "suggestion", "weight", "detail")


def check_headers(
    index: Index, search: HeaderSearch, progress: Callable[[int, int], None] | None = None
) -> Results[HeaderDoubt]:
    """Every doubtful header of the lake, by table."""
    nameless = {problem["table"] for problem in index.catalog("problems").to_pylist() if problem["code"] == "no-header"}
    records: list[HeaderDoubt] = []
    count = len(search.columns.tables)
    for number in range(count):
        records += _doubts(search, number, missing=search.columns.tables[number] in nameless)
        if progress is not None:
            progress(number, count)
    tables = len({record.table for record in records})
    notes = [f"{tables:,} of {count:,} tables have headers in doubt"] if records else []
    return Results(HeaderDoubt, records, shown=_SHOWN, notes=notes, info={"tables": count, "in_doubt": tables})


def _doubts(search: HeaderSearch, number: int, *, missing: bool) -> Iterator[HeaderDoubt]:
    columns = search.columns.columns_of(number)
    written = search.columns.written[columns.start : columns.stop]
    table = search.table(number)
    judged, _ = search.judge.judged(table, search.model, {})
    for place, name in enumerate(as_written(written)):
        found = _doubt(search, table.columns[place].record, judged[place], name, columns[place], missing=missing)
        if found is None:
            continue
        doubt, detail = found
        best = _likeliest(search, judged[place])
        header, weight = best if best is not None and best[1] >= LEAST["balanced"] else (None, None)
        yield HeaderDoubt(search.columns.tables[number], place, written[place], doubt, header, weight, detail)


def _doubt(
    search: HeaderSearch, record: dict[str, Any], judged: Judged, name: str, column: int, *, missing: bool
) -> tuple[str, str] | None:
    if meaningless(name):
        if missing or name == f"column_{record['position'] + 1}":
            return "missing", "no header was found"
        return "meaningless", f"{name!r} says nothing about the column"
    value = canonical(name)
    token = np.array([max(1, hash_text(value.text))], np.uint64)
    inverted = search.values.inverted
    if inverted.holds_tokens(inverted.token_lookup(token), column).any():
        if value.kind is Kind.TEXT:
            return "repeated", f"{name!r} is also one of its values: a header among the rows?"
        return "value", f"{name!r} is also one of its values"
    year = value.kind is Kind.INTEGER and 1800 <= value.number <= 2100
    if value.kind in _VALUES and not year and value.kind.name.lower() == record["type"]:
        return "value", f"{name!r} is a {record['type']} like its values"
    return _contradiction(search, judged, name)


def _contradiction(search: HeaderSearch, judged: Judged, name: str) -> tuple[str, str] | None:
    header = search.columns.number_of.get(normalised(name), -1)
    best = _likeliest(search, judged)
    if header < 0 or best is None or best[1] < _OTHER or search.corpus.frequency[header] <= _KNOWN:
        return None
    own = judged.probabilities[judged.headers == header]
    likely = float(own[0]) if own.size else 0.0
    if likely >= _OWN or match(best[0], name) != "incorrect" or not _unlike(search, judged, header):
        return None
    return "contradicts", f"its values look like {best[0]!r} ({best[1]:.0%}), not like {name!r} ({likely:.1%})"


def _unlike(search: HeaderSearch, judged: Judged, header: int) -> bool:
    """Whether the values themselves, not the headers beside, speak for the likeliest header and against its own."""
    weights = search.model.first[:-1].copy()
    weights[list(FIRST).index("common")] = 0.0
    speaks = judged.features[:, : weights.size] @ weights
    own = speaks[judged.headers == header]
    return not own.size or bool(own[0] < min(0.0, speaks[judged.ranked[0]] - _APART))


def _likeliest(search: HeaderSearch, judged: Judged) -> tuple[str, float] | None:
    if not judged.headers.size:
        return None
    at = judged.ranked[0]
    return search.columns.forms[int(judged.headers[at])], float(judged.probabilities[at])
