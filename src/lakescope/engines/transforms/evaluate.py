"""Programs over whole tables: column by column in Arrow, the same values as row by row."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakescope.array_types import U64
from lakescope.engines.transforms.program import Constant, Expression, Operator, Piece
from lakescope.engines.transforms.steps import Case, Digits, Drop, Slice, SplitPiece, Step
from lakescope.engines.transforms.texts import TextTable
from lakescope.values.hashing import HASH_SEED

#: Between the columns of a key that has several; in no cell, since it is no text.
BETWEEN = "\x1f"


def derived(outputs: Sequence[Expression], table: TextTable) -> pa.ChunkedArray:
    """The keys that expressions make of every row, as one text each; null where they are undefined."""
    pieces = [_written([expression_of(each, piece) for each in outputs], BETWEEN) for piece in table.pieces()]
    return pa.chunked_array(pieces, pa.large_string())


def expression_of(expression: Expression, table: TextTable) -> pa.Array:
    """What an expression makes of every row; null where it is undefined."""
    return _written([_operator(each, table) for each in expression.operators], "")


def _written(parts: Sequence[pa.Array], between: str) -> pa.Array:
    """Texts one after the other; null where any is."""
    if len(parts) == 1:
        return parts[0]
    return pc.binary_join_element_wise(*parts, pa.scalar(between, pa.large_string()))


def _operator(operator: Operator, table: TextTable) -> pa.Array:
    if isinstance(operator, Constant):
        return pa.repeat(pa.scalar(operator.text, pa.large_string()), table.rows)
    return piece_of(operator, table)


def piece_of(piece: Piece, table: TextTable) -> pa.Array:
    """What a piece is in every row; null where it is undefined."""
    texts = table.column(piece.column)
    texts = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    texts = _without_empty(texts)
    for step in piece.steps:
        texts = _without_empty(_stepped(step, texts))
    return texts


def _without_empty(texts: pa.Array) -> pa.Array:
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, texts.type), texts)


def _stepped(step: Step, texts: pa.Array) -> pa.Array:
    if isinstance(step, SplitPiece):
        return _split(step, texts)
    if isinstance(step, Slice):
        return pc.utf8_slice_codeunits(texts, step.start, step.stop)
    if isinstance(step, Digits):
        return _digits(step, texts)
    if isinstance(step, Case | Drop) and pc.all(pc.string_is_ascii(texts), min_count=0).as_py():
        return _ASCII[step](texts)
    return pa.array([None if text is None else step.apply(text) for text in texts.to_pylist()], pa.large_string())


def _split(step: SplitPiece, texts: pa.Array) -> pa.Array:
    parts = pc.split_pattern(texts, step.separator)
    counts = pc.fill_null(pc.list_value_length(parts), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    ends = np.cumsum(counts)
    at = ends - counts + step.index if step.index >= 0 else ends + step.index
    there = counts > (step.index if step.index >= 0 else -step.index - 1)
    return pc.list_flatten(parts).take(pa.array(at, mask=~there)).cast(pa.large_string())


def _digits(step: Digits, texts: pa.Array) -> pa.Array:
    number = pc.match_substring_regex(texts, "^[0-9]+$")
    bare = pc.utf8_lpad(pc.ascii_ltrim(texts, "0"), step.width, "0")
    return pc.if_else(number, bare, pa.scalar(None, texts.type))


def _capital(texts: pa.Array) -> pa.Array:
    first, rest = pc.utf8_slice_codeunits(texts, 0, 1), pc.utf8_slice_codeunits(texts, 1, None)
    return _written([pc.ascii_upper(first), pc.ascii_lower(rest)], "")


_ASCII: dict[Step, Callable[[pa.Array], pa.Array]] = {
    Case("lower"): pc.ascii_lower,
    Case("upper"): pc.ascii_upper,
    Case("capital"): _capital,
    Drop(): lambda texts: pc.replace_substring_regex(texts, r"[ -/:-@\[-`{-~]+", ""),
}


def hashes_of(texts: pa.ChunkedArray) -> U64:
    """The one hash of every text; 0 where there is none."""
    import xxhash

    found = np.zeros(len(texts), np.uint64)
    place = 0
    for chunk in texts.chunks:
        hashed = [
            0 if raw is None else xxhash.xxh64_intdigest(raw, HASH_SEED) or 1
            for raw in chunk.cast(pa.large_binary()).to_pylist()
        ]
        found[place : place + len(hashed)] = np.array(hashed, np.uint64)
        place += len(hashed)
    return found
