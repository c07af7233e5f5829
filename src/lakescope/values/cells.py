"""From a column of raw cells to its distinct values, understood: the one door between sources and states.

Kernels do it, and hand what they are not certain about to the reference. Few cells in a process that has not loaded
kernels all go through the reference.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import xxhash

from lakescope.array_types import F64, I32, U8, U64
from lakescope.values import jit
from lakescope.values.alphabet import SPACES
from lakescope.values.canonical import Kind, Value, canonical, decode
from lakescope.values.characters import character_table
from lakescope.values.hashing import HASH_SEED
from lakescope.values.text import TextColumn, read_only


@dataclass(slots=True)
class Cells:
    """The distinct non-null cells of one column in one batch, with how often each occurs.

    ``written[wstarts:wends]`` is the trimmed cell as the source has it. Its canonical form is ``text[cstarts:cends]``
    where ``altered``, else ``written[cstarts:cends]``, the same bytes. Two written forms of one value (``1`` and
    ``1.0``) stay apart here and meet in whatever is keyed by ``hashes``. ``lengths`` are characters as written,
    ``leading`` the first digit of a number that is not zero. ``places`` has an entry a row: which of the cells it has,
    -1 if none.
    """

    rows: int
    missing: int
    empty: int
    markers: int
    undecodable: int
    kinds: U8
    hashes: U64
    numbers: F64
    counts: npt.NDArray[np.int64]
    lengths: I32
    leading: U8
    digits: I32
    decimals: I32
    written: U8
    wstarts: I32
    wends: I32
    text: U8
    altered: U8
    cstarts: I32
    cends: I32
    places: I32

    def canonical_at(self, index: int) -> bytes:
        """Canonical text of one distinct cell."""
        source = self.text if self.altered[index] else self.written
        return source[self.cstarts[index] : self.cends[index]].tobytes()


#: Fields of :class:`Cells` with one entry a cell.
_PER_CELL = (
    *("kinds", "hashes", "numbers", "counts", "lengths", "leading", "digits"),
    *("decimals", "wstarts", "wends", "altered", "cstarts", "cends"),
)


def understand(column: TextColumn, fallback: str = "cp1252") -> Cells:
    """Distinct cells of a batch, each with kind, canonical text, hash and number."""
    if not jit.loaded():
        # Every cell and what parts it from the next.
        jit.spend(int(np.maximum(column.ends - column.starts, 0).sum(dtype=np.int64)) + column.ends.size)
    return by_kernels(column, fallback) if jit.loaded() else by_reference(column, fallback)


def by_kernels(column: TextColumn, fallback: str) -> Cells:
    """Cells understood by kernels, and by the reference where these are not certain."""
    from lakescope.values import kernels

    n = column.starts.size
    data = read_only(column.data)
    counts, raw = np.empty(n, np.int64), np.empty(n, np.uint64)
    wstarts, wends = np.empty(n, np.int32), np.empty(n, np.int32)
    places = np.empty(n, np.int32)
    found, missing = kernels.unique_cells(data, column.starts, column.ends, counts, raw, wstarts, wends, places)
    counts, raw, wstarts, wends = counts[:found], raw[:found], wstarts[:found], wends[:found]
    kinds = np.empty(found, np.uint8)
    hashes, numbers = np.empty(found, np.uint64), np.empty(found, np.float64)
    lengths, digits, decimals = np.empty(found, np.int32), np.empty(found, np.int32), np.empty(found, np.int32)
    altered, leading = np.empty(found, np.uint8), np.empty(found, np.uint8)
    cstarts, cends = np.empty(found, np.int32), np.empty(found, np.int32)
    room = int((wends - wstarts).sum(dtype=np.int64)) + kernels.GROWTH * found + 32
    text = np.empty(room, np.uint8)
    used = kernels.analyse(
        *(data, wstarts, wends, raw, character_table(), text),
        *(kinds, hashes, numbers, lengths, leading, digits, decimals, altered, cstarts, cends),
    )
    cells = Cells(
        *(n, missing, 0, 0, 0, kinds, hashes, numbers, counts, lengths, leading, digits, decimals),
        *(data, wstarts, wends, text[:used], altered, cstarts, cends, places),
    )
    slow = np.flatnonzero(kinds == kernels.SLOW)
    if slow.size:
        _ask_reference(cells, slow, fallback)
    return _without_nulls(cells)


def _ask_reference(cells: Cells, slow: npt.NDArray[np.intp], fallback: str) -> None:
    """Fill in the cells the kernel was not certain about."""
    texts: list[bytes] = []
    rewritten: list[bytes] = []
    text_at, written_at = cells.text.size, cells.written.size
    for index in slow:
        raw = cells.written[cells.wstarts[index] : cells.wends[index]].tobytes()
        try:
            cell = raw.decode("utf-8")
        except UnicodeDecodeError:
            cell = decode(raw, fallback)
            encoded = cell.strip().encode("utf-8", "replace")
            rewritten.append(encoded)
            cells.lengths[index] = len(encoded.decode("utf-8"))
            cells.wstarts[index], cells.wends[index] = written_at, written_at + len(encoded)
            written_at += len(encoded)
            cells.undecodable += int(cells.counts[index])
        value = canonical(cell)
        form = value.text.encode("utf-8", "replace")
        texts.append(form)
        cells.kinds[index] = value.kind
        cells.hashes[index] = xxhash.xxh64_intdigest(form, HASH_SEED)
        cells.numbers[index] = value.number
        cells.leading[index] = value.leading
        cells.digits[index], cells.decimals[index] = value.digits, value.decimals
        cells.altered[index] = 1
        cells.cstarts[index], cells.cends[index] = text_at, text_at + len(form)
        text_at += len(form)
    cells.text = np.concatenate([cells.text, np.frombuffer(b"".join(texts), np.uint8)])
    if rewritten:
        cells.written = read_only(np.concatenate([cells.written, np.frombuffer(b"".join(rewritten), np.uint8)]))


def _without_nulls(cells: Cells) -> Cells:
    """Cells without the null ones, which are only counted."""
    from lakescope.values import kernels

    arrays = [getattr(cells, name) for name in _PER_CELL]
    kept, cells.empty, cells.markers = kernels.drop_nulls(*[*arrays, cells.places])
    if kept < cells.kinds.size:
        for name, array in zip(_PER_CELL, arrays, strict=True):
            setattr(cells, name, array[:kept])
    return cells


_ASCII_SPACES = "".join(filter(str.isascii, SPACES)).encode()
#: White space before a cell, and after it as it is met from behind.
_BEFORE, _AFTER = (
    re.compile(b"(?:%b)*+" % b"|".join(re.escape(space.encode()[::step]) for space in SPACES)) for step in (1, -1)
)


def by_reference(column: TextColumn, fallback: str) -> Cells:
    """Cells understood by the reference alone: slower by far, but there is nothing to load."""
    distinct, places = _distinct_cells(column)
    missing, *times = np.bincount(places + 1, minlength=len(distinct) + 1).tolist()
    empty = markers = undecodable = 0
    texts: list[str] = []
    values: list[Value] = []
    counts: list[int] = []
    # The last one is for rows without a cell, whose place is -1.
    kept = np.full(len(distinct) + 1, -1, np.int32)
    for place, (cell, count) in enumerate(zip(distinct, times, strict=True)):
        text, is_utf8 = _decoded(cell, fallback)
        value = canonical(text)
        undecodable += 0 if is_utf8 else count
        if value.kind is not Kind.NULL:
            kept[place] = len(values)
            texts.append(text)
            values.append(value)
            counts.append(count)
        elif text:
            markers += count
        else:
            empty += count
    kinds, forms, numbers, digits, decimals, leading = zip(*values, strict=True) if values else ((),) * 6
    written, canonicals = [[text.encode("utf-8", "replace") for text in each] for each in (texts, forms)]
    altered = np.array([form != cell for form, cell in zip(canonicals, written, strict=True)], np.uint8)
    buffer, wstarts, wends = _joined(written)
    rewritten, cstarts, cends = _joined([form if new else b"" for form, new in zip(canonicals, altered, strict=True)])
    return Cells(
        rows=places.size,
        missing=missing,
        empty=empty,
        markers=markers,
        undecodable=undecodable,
        kinds=np.array(kinds, np.uint8),
        hashes=np.array([xxhash.xxh64_intdigest(form, HASH_SEED) for form in canonicals], np.uint64),
        numbers=np.array(numbers, np.float64),
        counts=np.array(counts, np.int64),
        lengths=np.array([len(text) for text in texts], np.int32),
        leading=np.array(leading, np.uint8),
        digits=np.array(digits, np.int32),
        decimals=np.array(decimals, np.int32),
        written=read_only(buffer),
        wstarts=wstarts,
        wends=wends,
        text=rewritten,
        altered=altered,
        cstarts=np.where(altered, cstarts, wstarts),
        cends=np.where(altered, cends, wends),
        places=kept[places],
    )


def _distinct_cells(column: TextColumn) -> tuple[list[bytes], I32]:
    """Distinct trimmed cells in order of appearance, and which of them every row has, -1 if none."""
    data = column.data[: column.ends.max(initial=0)].tobytes()
    written: dict[bytes, int] = {}
    rows = [
        written.setdefault(data[start:end], len(written)) if end >= 0 else -1
        for start, end in zip(column.starts.tolist(), column.ends.tolist(), strict=True)
    ]
    distinct: dict[bytes, int] = {}
    places = [distinct.setdefault(_trimmed(cell), len(distinct)) for cell in written]
    return list(distinct), np.array([*places, -1], np.int32)[rows]


def _trimmed(cell: bytes) -> bytes:
    """A cell without surrounding white space, be the rest of it UTF-8 or not."""
    cell = cell.strip(_ASCII_SPACES)
    if cell.isascii():
        return cell
    cell = _BEFORE.sub(b"", cell, 1)
    return _AFTER.sub(b"", cell[::-1], 1)[::-1]


def _decoded(cell: bytes, fallback: str) -> tuple[str, bool]:
    """A trimmed cell as text, and whether it is UTF-8."""
    try:
        return cell.decode("utf-8"), True
    except UnicodeDecodeError:
        return decode(cell, fallback).strip(), False


def _joined(pieces: list[bytes]) -> tuple[U8, I32, I32]:
    """Texts one after the other: (buffer, starts, ends)."""
    lengths = np.array([len(piece) for piece in pieces], np.int32)
    ends = np.cumsum(lengths, dtype=np.int32)
    return np.frombuffer(bytearray().join(pieces), np.uint8), ends - lengths, ends
