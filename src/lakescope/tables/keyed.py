"""A query by key: the numbers of a table, one for each value of its key, ready to be joined with sketches.

A table of the user's is aggregated whole; of one of the lake the index holds a sketch, which is a part of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from lakescope.array_types import F64, I64, U64
from lakescope.errors import BadRequest, NotFound
from lakescope.tables.typed import kind_counts
from lakescope.tables.value_range import ValueRange
from lakescope.values.canonical import Kind
from lakescope.values.hashing import LAST_HASH, hash_text

if TYPE_CHECKING:
    from lakescope.engines.correlations.keysketches import KeySketches

#: A sketch of so many keys holds all of a table's.
_ALL_KEYS = 2**31 - 1
_NUMERIC = (Kind.INTEGER, Kind.DECIMAL)


@dataclass(frozen=True, slots=True)
class KeyedTuning:
    """What may be a target, and which keys are told from their hashes."""

    #: Share of the cells of a column that must be numbers for it to be a target. Not measured.
    mostly: float = 0.9
    #: Longest range of whole numbers or days that is hashed to learn which of them a sketch holds: 137 years. Not
    #: measured: a bound of time.
    longest_range: int = 50_000


KEYED = KeyedTuning()


#: What a key's own values are called where they are numbers or days.
KEY_ITSELF = ""


@dataclass(frozen=True, slots=True)
class KeyedQuery:
    """Values of a key in order of their hashes, the rows of each, and the target's number for each.

    Keys up to ``threshold`` are all there. ``parts`` are the hashes of the values of each column of the key. ``given``
    are numbers of other columns by which correlations may be corrected, among them the key's own (``KEY_ITSELF``).
    ``swapped`` is the same query with the columns of its key in the other order.
    """

    name: str
    key: tuple[str, ...]
    target: str
    hashes: U64
    rows: I64
    values: F64
    threshold: np.uint64
    distinct: float
    parts: tuple[U64, ...]
    given: dict[str, F64]
    kind: str
    swapped: KeyedQuery | None = None

    @property
    def size(self) -> int:
        return int(self.hashes.size)


def query_of_pair(sketches: KeySketches, pair: int, aggregate: str) -> KeyedQuery:
    """A key and a numeric column of the lake as a query, by their number."""
    number = int(sketches.owners[pair])
    # Copies: kernels are compiled for arrays that may be written to, as those of other queries are.
    hashes, key = sketches.hashes_of(number).copy(), sketches.columns[number]
    return KeyedQuery(
        *(sketches.tables[number], key, sketches.column_of(pair), hashes, sketches.rows_of(number).copy()),
        *(
            sketches.values_of(pair, aggregate).copy(),
            sketches.thresholds[number],
            float(sketches.key(number)["distinct"]),
        ),
        *((hashes,) if len(key) == 1 else (), {}, "text"),
    )


def sketched_query(
    sketches: KeySketches, table: str, key: Sequence[str], target: str, aggregate: str, given: Sequence[str]
) -> KeyedQuery:
    """A table of the lake as a query: what its sketch holds."""
    _check_apart(key, target, given)
    of_table = sketches.keys_of_table.get(table, [])
    number = next((each for each in of_table if set(sketches.columns[each]) == set(key)), None)
    if number is None:
        keys = [" and ".join(sketches.columns[each]) for each in of_table]
        near = NotFound.among("key", " and ".join(key), keys)
        known = (near.hint or "").rstrip("?")
        raise NotFound(near.message, hint=f"{known}; or give the path of the file, which goes by any column")
    pairs = range(int(sketches.pair_starts[number]), int(sketches.pair_starts[number + 1]))
    names = {sketches.pair(pair)["column"]: pair for pair in pairs}
    for name in (target, *given):
        if name not in names:
            raise _not_numeric(name, list(names), list(names))
    others = {name: sketches.values_of(names[name], "mean") for name in given}
    return replace(query_of_pair(sketches, names[target], aggregate), given=others)


def numbers_of_keys(hashes: U64, kind: str, span: ValueRange | None) -> F64 | None:
    """The whole numbers or days that a sketch knows by their hashes: those between the extremes of its column, tried.

    None if there are others, or too many to try.
    """
    if kind not in ("integer", "date") or span is None or span.high - span.low > KEYED.longest_range:
        return None
    known, numbers = _hashed_range(kind, int(span.low), int(span.high))
    at = np.minimum(np.searchsorted(known, hashes), known.size - 1)
    return numbers[at] if (known[at] == hashes).all() else None


@lru_cache(maxsize=32)
def _hashed_range(kind: str, low: int, high: int) -> tuple[U64, F64]:
    """Hashes of all whole numbers or days of a range in their order, and the numbers that they are of."""
    numbers = np.arange(low, high + 1)
    texts = (numbers.astype("datetime64[D]") if kind == "date" else numbers).astype(str).tolist()
    hashes = np.array([max(1, hash_text(text)) for text in texts], np.uint64)
    order = np.argsort(hashes)
    return hashes[order], numbers[order].astype(np.float64)


def read_keyed(
    query: Any, key: Sequence[str], target: str, aggregate: str, given: Sequence[str] = (), name: str = "query"
) -> KeyedQuery:
    """A table that is not in the lake as a query: a path or URI, or a frame."""
    from lakescope.sketches.correlation import KeySketch, key_rows
    from lakescope.tables.reading import batches_of
    from lakescope.values.cells import understand

    # A pair of columns is sketched in both orders: the lake may have them in either.
    sketches = [KeySketch(_ALL_KEYS) for _ in range(len(key))]
    parts: list[list[U64]] = [[] for _ in key]
    seen: dict[str, npt.NDArray[np.int64]] = {}
    order = 0
    for batch in batches_of(query):
        columns = {column.name: understand(column, batch.fallback) for column in batch.columns}
        for column, cells in columns.items():
            seen[column] = seen.get(column, 0) + kind_counts(cells)
        missing = [column for column in (*key, target, *given) if column not in columns]
        if missing:
            raise NotFound.among("column", missing[0], list(columns))
        numbers = {column: (columns[column].places, _numbers(columns[column])) for column in (target, *given)}
        keyed = [columns[column] for column in key]
        if len(key) == 1:
            numbers[KEY_ITSELF] = keyed[0].places, np.where(_ordered(keyed[0].kinds), keyed[0].numbers, np.nan)
        for sketch, cells_of_key in zip(sketches, (keyed, keyed[::-1]), strict=False):
            hashes = [np.maximum(each.hashes, np.uint64(1)) for each in cells_of_key]
            sketch.update(*key_rows([each.places for each in cells_of_key], hashes), numbers, order)
        for part, cells in zip(parts, keyed, strict=True):
            part.append(np.maximum(cells.hashes, np.uint64(1)))
        order += batch.rows
    if not seen:
        raise BadRequest("the query has no rows", hint="give a table with a header and rows")
    check_columns(key, target, given, seen)
    kind = Kind(int(np.argmax(seen[key[0]]))).name.lower()
    united = tuple(np.unique(np.concatenate(part)) for part in parts)
    made = None
    for sketch, order_of_key, order_of_parts in reversed(
        list(zip(sketches, (tuple(key), tuple(key)[::-1]), (united, united[::-1]), strict=False))
    ):
        others = {each: states.aggregate("mean") for each, states in sketch.values.items() if each != target}
        if KEY_ITSELF not in others or np.isnan(others[KEY_ITSELF]).any():
            # Keys that are no numbers or days: what their rows are in order of, if anything.
            others[KEY_ITSELF] = sketch.values[target].orders[0].astype(np.float64)
        made = KeyedQuery(
            *(name, order_of_key, target, sketch.hashes, sketch.rows, sketch.values[target].aggregate(aggregate)),
            *(LAST_HASH, float(sketch.size), order_of_parts, others, kind, made),
        )
    assert made is not None
    return made


def _numbers(cells: Any) -> F64:
    return np.where(np.isin(cells.kinds, _NUMERIC), cells.numbers, np.nan)


def _ordered(kinds: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    return np.isin(kinds, (Kind.INTEGER, Kind.DATE, Kind.TIMESTAMP))


def check_columns(
    key: Sequence[str], target: str, given: Sequence[str], seen: dict[str, npt.NDArray[np.int64]]
) -> None:
    """Refuse targets that are no numbers and keys that are no keys."""
    numeric = [
        name for name, kinds in seen.items() if kinds[list(_NUMERIC)].sum() >= KEYED.mostly * max(1, kinds.sum())
    ]
    _check_apart(key, target, given)
    for name in (target, *given):
        if name not in numeric or not seen[name].sum():
            raise _not_numeric(name, [each for each in numeric if each not in key], list(seen))
    for name in key:
        if seen[name][Kind.DECIMAL] > seen[name].sum() / 2:
            hint = "a key is a column of names, codes, days or ids"
            raise BadRequest(f"{name!r} holds decimals: measurements are no key", hint=hint)


def _check_apart(key: Sequence[str], target: str, given: Sequence[str]) -> None:
    """Refuse a column that is named for two things."""
    for name in key:
        if name in (target, *given):
            raise BadRequest(f"{name!r} cannot be both key and target", hint="name another column as the key")
    if target in given:
        raise BadRequest(f"{target!r} explains all of itself", hint="name another column to take out")


def _not_numeric(name: str, numeric: Sequence[str], every: Sequence[str]) -> BadRequest | NotFound:
    if name not in every:
        return NotFound.among("numeric column", name, list(numeric))
    listed = ", ".join(numeric[:8]) or "none"
    return BadRequest(f"{name!r} is not a column of numbers", hint=f"numeric columns: {listed}")
