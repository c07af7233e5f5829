"""Rows compared with the rows below them, cell by cell: the compiled heart of ``header_rows``.

A window of rows moves up from the bottom of the head of a file; what it holds of each column is kept up to date while
rows come in above and leave below, so that the work is one step a cell.
"""

from __future__ import annotations

import math

import numpy as np

from lakescope.values.canonical import Kind
from lakescope.values.jit import kernel, pointer

#: Outlines that headers mostly have: one word, several words.
ONE_WORD, WORDS = 1, 2

_NULL, _INTEGER, _DATE, _CODE, _TEXT = (
    int(kind) for kind in (Kind.NULL, Kind.INTEGER, Kind.DATE, Kind.CODE, Kind.TEXT)
)
_KINDS = len(Kind)
_SPACE, _DIGIT, _WORD = 32, 57, 119
_OUTLINED = 60
#: FNV-1a, 32 bits: within 64 bits nothing wraps around.
_BASIS, _PRIME, _BITS = 2166136261, 16777619, 0xFFFFFFFF


def _by_kind(rest: float, **shares: float) -> tuple[float, ...]:
    return tuple(shares.get(kind.name.lower(), rest) for kind in Kind)


#: How likely a cell of a header, and of a line before it, is of a kind; years are counted apart.
_HEADER_KINDS = _by_kind(0.003, text=0.9, null=0.04, integer=0.03, code=0.01, date=0.01)
_PREAMBLE_KINDS = _by_kind(0.02, text=0.8, date=0.07, integer=0.06)
_HEADER_YEAR = 0.06
#: Log length of words of headers and of lines of preambles: mean and deviation.
_HEADER_LENGTH, _PREAMBLE_LENGTH = (2.1, 0.6), (3.2, 0.9)
_LEAST_DEVIATION = 0.35
#: How much one cell may say at most, so that none decides alone.
_MOST = 4.0


@kernel(inline="always")
def _bounded(evidence, most):
    return max(-most, min(most, evidence))


@kernel(inline="always")
def _density(length, mean, deviation):
    """Log density of the logarithm of a length."""
    away = (length - mean) / deviation
    return -0.5 * away * away - math.log(deviation)


@kernel(inline="always")
def _hashed(state, symbol):
    return ((state ^ symbol) * _PRIME) & _BITS


@kernel()
def outlines(buffer, starts, ends, found):
    """Cells with words and numbers as one letter each, as hashes; three words and more are as two."""
    data = pointer(buffer)
    for cell in range(starts.size):
        state = _BASIS
        symbols = 0
        words = 0
        spaced = False
        at = int(starts[cell])
        end = min(int(ends[cell]), at + _OUTLINED)
        while at < end:
            symbol = int(data[at])
            at += 1
            if symbol >= 128 or 65 <= symbol <= 90 or 97 <= symbol <= 122:
                while at < end and (data[at] >= 128 or 65 <= data[at] <= 90 or 97 <= data[at] <= 122):
                    at += 1
                words = words + 1 if spaced else 1
                if words == 2:
                    state = _hashed(_hashed(state, _SPACE), _WORD)
                    symbols += 2
                elif words == 1:
                    state = _hashed(state, _WORD)
                    symbols += 1
                spaced = False
                continue
            if symbol == _SPACE and words > 0 and not spaced:
                spaced = True
                continue
            if 48 <= symbol <= 57:
                while at < end and 48 <= data[at] <= 57:
                    at += 1
                symbol = _DIGIT
            if spaced:
                state = _hashed(state, _SPACE)
                symbols += 1
            state = _hashed(state, symbol)
            symbols += 1
            words = 0
            spaced = False
        found[cell] = state
        if words == 1 and symbols == 1:
            found[cell] = ONE_WORD
        elif words >= 2 and symbols == 3:
            found[cell] = WORDS


@kernel()
def _numbered(column, rows, codes):
    """Numbers for the equal ones among some items, by order of appearance; few items, so they are compared."""
    known = 0
    for row in range(rows):
        codes[row] = known
        for before in range(row):
            if column[before] == column[row]:
                codes[row] = codes[before]
                break
        if codes[row] == known:
            known += 1


@kernel()
def weigh_rows(kinds, hashes, shapes, lengths, years, lexical, body, ahead, header, preamble):
    """How much more likely cells are of a header, or of a line before it, than one more of those below, as logarithms.

    ``kinds``, ``hashes``, ``shapes``, ``lengths`` and ``years`` have a row a column. ``header[row]`` becomes the sum
    over cells of the first ``ahead`` rows, ``preamble[row]`` that over filled cells; ``lexical`` is what the words
    themselves say. At most ``body`` rows below are compared with.
    """
    columns, rows = kinds.shape
    values, forms = np.empty(rows, np.int32), np.empty(rows, np.int32)
    for c in range(columns):
        kind_of, length_of, is_year = pointer(kinds[c]), pointer(lengths[c]), pointer(years[c])
        shape_of, speaks = pointer(shapes[c]), pointer(lexical[c])
        _numbered(pointer(hashes[c]), rows, values)
        _numbered(shape_of, rows, forms)
        kind_counts = np.zeros(_KINDS, np.int32)
        value_counts, form_counts = np.zeros(rows, np.int32), np.zeros(rows, np.int32)
        count = filled = texts = year = once = distinct_forms = 0
        total = squares = 0.0
        for row in range(rows - 1, -1, -1):
            if row < ahead and count > 0:
                kind = kind_of[row]
                share = (kind_counts[kind] + (0.6 if kind == _TEXT else 0.08)) / (count + 1.2)
                if is_year[row]:
                    said = _bounded(math.log(_HEADER_YEAR / ((year + 0.3) / (count + 1))), 3.5)
                else:
                    said = _bounded(math.log(_HEADER_KINDS[kind] / share), 3.5)
                if kind != _NULL:
                    before = _bounded(math.log(_PREAMBLE_KINDS[kind] / share), 2.5)
                    times = int(value_counts[values[row]])
                    said += speaks[row]
                    if times > 0:
                        said -= 1.0 + 1.5 * min(1.0, times / count * 5)
                        before -= 2.0
                    else:
                        # Good and Turing: how likely the next value is a new one.
                        novelty = (once + 0.5) / (filled + 1) if filled else 1.0
                        said += _bounded(-math.log(max(novelty, 1 / (count + 2))), 2.0)
                    if kind == _TEXT and texts > 0:
                        form = shape_of[row]
                        usual = 0.45 if form == ONE_WORD else 0.25 if form == WORDS else 0.03
                        likely = (form_counts[forms[row]] + 0.3) / (texts + 0.3 * (distinct_forms + 3))
                        said += _bounded(math.log(usual / likely), 1.5)
                        length = math.log(1 + length_of[row])
                        mean = total / texts
                        deviation = max(_LEAST_DEVIATION, math.sqrt(max(0.0, squares / texts - mean * mean)))
                        below = _density(length, mean, deviation)
                        said += _bounded(_density(length, _HEADER_LENGTH[0], _HEADER_LENGTH[1]) - below, 1.5)
                        before += _bounded(_density(length, _PREAMBLE_LENGTH[0], _PREAMBLE_LENGTH[1]) - below, 1.0)
                    preamble[row] += before
                header[row] += _bounded(said, _MOST)
            for gone in range(2):
                # The row itself comes in, the one that is too far below leaves.
                at = row + gone * body
                if at >= rows:
                    continue
                step = 1 - 2 * gone
                kind = kind_of[at]
                count += step
                kind_counts[kind] += step
                year += step * is_year[at]
                if kind == _NULL:
                    continue
                filled += step
                times = int(value_counts[values[at]])
                once += (times + step == 1) - (times == 1)
                value_counts[values[at]] = times + step
                if kind == _TEXT:
                    texts += step
                    length = math.log(1 + length_of[at])
                    total += step * length
                    squares += step * length * length
                    held = int(form_counts[forms[at]])
                    distinct_forms += (held + step > 0) - (held > 0)
                    form_counts[forms[at]] = held + step
