"""From a column of raw cells to its distinct values, understood: the one door between sources and states."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import xxhash

from lakescope.values import kernels
from lakescope.values.canonical import canonical, decode
from lakescope.values.characters import character_table
from lakescope.values.hashing import HASH_SEED
from lakescope.values.text import TextColumn, read_only

U8 = npt.NDArray[np.uint8]
I32 = npt.NDArray[np.int32]
U64 = npt.NDArray[np.uint64]
F64 = npt.NDArray[np.float64]


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
    """The same cells without the null ones, which are only counted."""
    arrays = [getattr(cells, name) for name in _PER_CELL]
    kept, cells.empty, cells.markers = kernels.drop_nulls(*[*arrays, cells.places])
    if kept < cells.kinds.size:
        for name, array in zip(_PER_CELL, arrays, strict=True):
            setattr(cells, name, array[:kept])
    return cells
