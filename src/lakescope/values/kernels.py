"""Compiled twins of ``values.canonical`` that run over whole columns of cells lying in a byte buffer.

Two steps. :func:`unique_cells` trims and hashes every cell of a batch and finds the distinct ones, so that everything
dearer runs once per distinct value. :func:`analyse` understands the distinct cells: kind, canonical text, hash, number.
A cell the kernel is not certain about (unusual Unicode, exponents, month names, time zones, invalid UTF-8) is marked
``SLOW`` and goes through the reference; being unsure is always right, being wrong never.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

NULL, INTEGER, DECIMAL, BOOLEAN, DATE, TIME, TIMESTAMP, CODE, TEXT = range(9)
#: Not a kind: "ask the reference".
SLOW = 255

_P1 = np.uint64(0x9E3779B185EBCA87)
_P2 = np.uint64(0xC2B2AE3D27D4EB4F)
_P3 = np.uint64(0x165667B19E3779F9)
_P4 = np.uint64(0x85EBCA77C2B2AE63)
_P5 = np.uint64(0x27D4EB2F165667C5)
_SEED = np.uint64(42)

_POWERS = np.array([10.0**i for i in range(23)])

#: Bit 0 is the letter a: a d f i j m n o s t.
_WORD_STARTS = 0xC7329

#: Bytes a canonical text may be longer than its cell on the fast path (``.5`` and ``2021-03-04 05:06``).
GROWTH = 4


@njit(inline="always", cache=True)
def _rotate(x, r):
    return (x << np.uint64(r)) | (x >> np.uint64(64 - r))


@intrinsic
def _pointer(typing_context, array):
    """Where the items of an array lie. Functions below take this instead of the array.

    An array that is passed on is counted as referenced and released again, atomically, at every call: for cells of a
    few bytes that is most of the work.
    """

    def codegen(context, builder, signature, arguments):
        return context.make_array(signature.args[0])(context, builder, arguments[0]).data

    return types.CPointer(array.dtype)(array), codegen  # type: ignore[no-untyped-call]


pointer: Any = _pointer


def _unaligned_load(width: int) -> Any:
    """An intrinsic that reads a little-endian word of ``width`` bits at any byte, in one instruction."""

    @intrinsic
    def load(typing_context, data, index):
        def codegen(context, builder, signature, arguments):
            place = builder.gep(arguments[0], [arguments[1]])
            word = builder.load(builder.bitcast(place, ir.IntType(width).as_pointer()))
            word.align = 1
            return word if width == 64 else builder.zext(word, ir.IntType(64))

        return types.uint64(data, types.intp), codegen

    return load


_load64 = _unaligned_load(64)
_load32 = _unaligned_load(32)


@njit(inline="always", cache=True)
def _round(acc, lane):
    return _rotate(acc + lane * _P2, 31) * _P1


@njit(inline="always", cache=True)
def _eight(h, word):
    return _rotate(h ^ _round(np.uint64(0), word), 27) * _P1 + _P4


@njit(inline="always", cache=True)
def _one(h, byte):
    return _rotate(h ^ (np.uint64(byte) * _P5), 11) * _P1


@njit(inline="always", cache=True)
def _tail(h, data, i, n):
    """The last ``n`` bytes, fewer than 32, and the final mixing; loops would keep the next cell from starting."""
    if n >= 8:
        h = _eight(h, _load64(data, i))
        i += 8
        if n >= 16:
            h = _eight(h, _load64(data, i))
            i += 8
            if n >= 24:
                h = _eight(h, _load64(data, i))
                i += 8
    if n & 4:
        h = _rotate(h ^ (_load32(data, i) * _P1), 23) * _P2 + _P3
        i += 4
    if n & 2:
        h = _one(_one(h, data[i]), data[i + 1])
        i += 2
    if n & 1:
        h = _one(h, data[i])
    h = (h ^ (h >> np.uint64(33))) * _P2
    h = (h ^ (h >> np.uint64(29))) * _P3
    return h ^ (h >> np.uint64(32))


@njit(cache=True)
def _xxh64_long(data, start, end):
    """XXH64 of 32 bytes or more."""
    i = start
    a = _SEED + _P1 + _P2
    b = _SEED + _P2
    c = _SEED
    d = _SEED - _P1
    while i <= end - 32:
        a = _round(a, _load64(data, i))
        b = _round(b, _load64(data, i + 8))
        c = _round(c, _load64(data, i + 16))
        d = _round(d, _load64(data, i + 24))
        i += 32
    h = _rotate(a, 1) + _rotate(b, 7) + _rotate(c, 12) + _rotate(d, 18)
    for lane in (a, b, c, d):
        h = (h ^ _round(np.uint64(0), lane)) * _P1 + _P4
    return _tail(h + np.uint64(end - start), data, i, end - i)


@njit(inline="always", cache=True)
def xxh64(data, start, end):
    """XXH64, seed 42, of ``data[start:end]``."""
    n = end - start
    return _tail(_SEED + _P5 + np.uint64(n), data, start, n) if n < 32 else _xxh64_long(data, start, end)


@njit(cache=True)
def xxh64_cells(data, starts, ends):
    """XXH64 of every slice."""
    out = np.empty(starts.size, np.uint64)
    text = pointer(data)
    for i in range(starts.size):
        out[i] = xxh64(text, starts[i], ends[i])
    return out


@njit(inline="always", cache=True)
def _is_space(byte):
    return byte == 32 or (9 <= byte <= 13) or (28 <= byte <= 31)


@njit(cache=True)
def _wide_space_before(data, start, end):
    """Length of the non-ASCII white space that ends at ``end``, 0 if none (what ``str.strip`` strips)."""
    if end - start >= 2 and data[end - 2] == 0xC2 and (data[end - 1] == 0x85 or data[end - 1] == 0xA0):
        return 2
    if end - start >= 3 and _wide_space_at(data, end - 3, end) == 3:
        return 3
    return 0


@njit(cache=True)
def _wide_space_at(data, start, end):
    """Length of the non-ASCII white space that starts at ``start``, 0 if none."""
    n = end - start
    if n >= 2 and data[start] == 0xC2 and (data[start + 1] == 0x85 or data[start + 1] == 0xA0):
        return 2
    if n < 3:
        return 0
    a, b, c = data[start], data[start + 1], data[start + 2]
    if a == 0xE2 and b == 0x80 and (0x80 <= c <= 0x8A or c == 0xA8 or c == 0xA9 or c == 0xAF):
        return 3
    if (a == 0xE1 and b == 0x9A and c == 0x80) or (a == 0xE2 and b == 0x81 and c == 0x9F):
        return 3
    if a == 0xE3 and b == 0x80 and c == 0x80:
        return 3
    return 0


@njit(inline="always", cache=True)
def trim(data, start, end):
    """Bounds of the cell without surrounding white space."""
    while start < end:
        if _is_space(data[start]):
            start += 1
        elif data[start] >= 0xC2:
            step = _wide_space_at(data, start, end)
            if step == 0:
                break
            start += step
        else:
            break
    while start < end:
        if _is_space(data[end - 1]):
            end -= 1
        elif data[end - 1] >= 0x80:
            step = _wide_space_before(data, start, end)
            if step == 0:
                break
            end -= step
        else:
            break
    return start, end


@njit(cache=True)
def unique_cells(data, starts, ends, counts, hashes, ustarts, uends, places):
    """Distinct trimmed cells of a batch: for each its count, hash and trimmed bounds; ``places`` says which a row has.

    Fills the output arrays (as long as the batch) and returns (number of distinct cells, missing cells).
    """
    n = starts.size
    size = 64
    while size < 2 * n:
        size *= 2
    mask = np.uint64(size - 1)
    slots = np.full(size, -1, np.int32)
    found = 0
    missing = 0
    text = pointer(data)
    for row in range(n):
        if ends[row] < 0:
            missing += 1
            places[row] = -1
            continue
        s, e = trim(text, starts[row], ends[row])
        h = xxh64(text, s, e)
        slot = h & mask
        while True:
            at = slots[slot]
            if at < 0:
                slots[slot] = found
                places[row] = found
                counts[found] = 1
                hashes[found] = h
                ustarts[found] = s
                uends[found] = e
                found += 1
                break
            if hashes[at] == h:
                counts[at] += 1
                places[row] = at
                break
            slot = (slot + np.uint64(1)) & mask
    return found, missing


@njit(cache=True)
def _is_marker(data, s, e):
    """Whether a cell of at most eight bytes is one of ``canonical.NULL_MARKERS``, compared as a number."""
    word = np.uint64(0)
    for i in range(s, e):
        word = (word << np.uint64(8)) | np.uint64(data[i])
    return (
        word == 0x2D  # -
        or word == 0x2D2D  # --
        or word == 0x4E41  # NA
        or word == 0x5C4E  # \N
        or word == 0x234E41  # #NA
        or word == 0x4E2F41  # N/A
        or word == 0x4E614E  # NaN
        or word == 0x6E2F61  # n/a
        or word == 0x6E616E  # nan
        or word == 0x234E2F41  # #N/A
        or word == 0x2D4E614E  # -NaN
        or word == 0x2D6E616E  # -nan
        or word == 0x3C4E413E  # <NA>
        or word == 0x4E554C4C  # NULL
        or word == 0x4E6F6E65  # None
        or word == 0x6E756C6C  # null
        or word == 0x312E23494E44  # 1.#IND
        or word == 0x2D312E23494E44  # -1.#IND
        or word == 0x312E23514E414E  # 1.#QNAN
        or word == 0x234E2F41204E2F41  # #N/A N/A
        or word == 0x2D312E23514E414E  # -1.#QNAN
    )


@njit(inline="always", cache=True)
def _is_null(data, s, e):
    n = e - s
    if n == 0 or n > 8:
        return n == 0
    c = data[s]
    if c == 49:  # 1.#
        return n > 5 and data[s + 2] == 35 and _is_marker(data, s, e)
    if c == 45:  # -
        return (n == 1 or not _digit(data[s + 1]) or (n > 6 and data[s + 3] == 35)) and _is_marker(data, s, e)
    return (c == 78 or c == 110 or c == 35 or c == 60 or c == 92) and _is_marker(data, s, e)  # N n # < backslash


@njit(inline="always", cache=True)
def _digit(byte):
    return 48 <= byte <= 57


@njit(inline="always", cache=True)
def _quotient(mantissa, scale):
    """The double nearest to ``mantissa / 10**scale``.

    Beyond 2**53 the mantissa is no double and dividing would round twice: the division goes on with what its first
    result leaves over, exact by Dekker's product.
    """
    high = np.float64(mantissa)
    power = _POWERS[scale]
    if scale == 0 or mantissa <= np.uint64(9007199254740992):
        return high / power
    low = np.float64(np.int64(mantissa - np.uint64(high)))
    quotient = high / power
    a, b = quotient * 134217729.0, power * 134217729.0
    a_high, b_high = a - (a - quotient), b - (b - power)
    a_low, b_low = quotient - a_high, power - b_high
    product = quotient * power
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return quotient + (((high - product) - error) + low) / power


@njit(inline="always", cache=True)
def _number(data, s, e, out, at):
    """Plain numbers without exponent: (kind, canonical end, number, digits, decimals); TEXT if not a number."""
    i = s
    negative = False
    if data[i] == 45 or data[i] == 43:
        negative = data[i] == 45
        i += 1
    whole = i
    mantissa = np.uint64(0)
    taken = np.int64(0)
    while i < e and _digit(data[i]):
        mantissa = mantissa * np.uint64(10) + np.uint64(data[i] - 48)
        taken += mantissa > 0
        i += 1
    whole_end = i
    fraction = i
    scale = 0
    if i < e and data[i] == 46:
        i += 1
        fraction = i
        while i < e and _digit(data[i]):
            mantissa = mantissa * np.uint64(10) + np.uint64(data[i] - 48)
            scale += 1
            taken += mantissa > 0
            i += 1
        if i == fraction:
            return TEXT, at, np.nan, 0, 0
    if whole_end == whole and i == fraction:
        return TEXT, at, np.nan, 0, 0
    if i < e:
        return (SLOW if data[i] == 69 or data[i] == 101 else TEXT), at, np.nan, 0, 0
    whole_digits = whole_end - whole
    decimals = (i - fraction) if fraction > whole_end else 0
    if taken > 19 or scale > 22:
        return SLOW, at, np.nan, 0, 0
    digits = whole_digits + decimals
    number = _quotient(mantissa, scale)
    if negative:
        number = -number
    if whole_digits > 1 and data[whole] == 48:
        for j in range(s, e):
            out[at + j - s] = data[j]
        return CODE, at + e - s, number, digits, decimals
    kept = e
    while kept > fraction and decimals > 0 and data[kept - 1] == 48:
        kept -= 1
    zero_whole = whole_digits == 0 or (whole_digits == 1 and data[whole] == 48)
    if zero_whole and (decimals == 0 or kept == fraction):
        out[at] = 48
        return (INTEGER if decimals == 0 else DECIMAL), at + 1, number, digits, decimals
    if zero_whole:
        leading = 0
        while data[fraction + leading] == 48:
            leading += 1
        if leading >= 6:
            return SLOW, at, np.nan, 0, 0
    o = at
    if negative:
        out[o] = 45
        o += 1
    if whole_digits == 0:
        out[o] = 48
        o += 1
    for j in range(whole, whole_end):
        out[o] = data[j]
        o += 1
    if decimals > 0 and kept > fraction:
        out[o] = 46
        o += 1
        for j in range(fraction, kept):
            out[o] = data[j]
            o += 1
    return (INTEGER if decimals == 0 else DECIMAL), o, number, digits, decimals


@njit(inline="always", cache=True)
def _two(data, i):
    return (data[i] - 48) * 10 + (data[i + 1] - 48)


@njit(cache=True)
def _month_length(year, month):
    if month == 2:
        return 29 if (year % 4 == 0 and year % 100 != 0) or year % 400 == 0 else 28
    return 30 if month == 4 or month == 6 or month == 9 or month == 11 else 31


@njit(cache=True)
def _days_from_civil(year, month, day):
    y = year - (1 if month <= 2 else 0)
    era = y // 400
    yoe = y - era * 400
    doy = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    doe = yoe * 365 + yoe // 4 - yoe // 100 + doy
    return era * 146097 + doe - 719468


@njit(inline="always", cache=True)
def _iso(data, s, e, out, at):
    """``YYYY-MM-DD`` with an optional clock and Z: (kind, canonical end, epoch seconds); SLOW if anything else."""
    n = e - s
    for k in range(10):
        if k == 4 or k == 7:
            if data[s + k] != 45:
                return SLOW, at, np.nan
        elif not _digit(data[s + k]):
            return SLOW, at, np.nan
    year = _two(data, s) * 100 + _two(data, s + 2)
    month = _two(data, s + 5)
    day = _two(data, s + 8)
    if year < 1 or month < 1 or month > 12 or day < 1 or day > _month_length(year, month):
        return SLOW, at, np.nan
    seconds = _days_from_civil(year, month, day) * 86400.0
    for k in range(10):
        out[at + k] = data[s + k]
    if n == 10:
        return DATE, at + 10, seconds
    if n < 16 or (data[s + 10] != 84 and data[s + 10] != 32):
        return SLOW, at, np.nan
    if not (_digit(data[s + 11]) and _digit(data[s + 12]) and data[s + 13] == 58):
        return SLOW, at, np.nan
    if not (_digit(data[s + 14]) and _digit(data[s + 15])):
        return SLOW, at, np.nan
    hour = _two(data, s + 11)
    minute = _two(data, s + 14)
    second = 0
    i = s + 16
    if i + 3 <= e and data[i] == 58:
        if not (_digit(data[i + 1]) and _digit(data[i + 2])):
            return SLOW, at, np.nan
        second = _two(data, i + 1)
        i += 3
    fraction = i
    fraction_end = i
    part = 0.0
    if i < e and data[i] == 46 and i > s + 16:
        i += 1
        fraction = i
        weight = 1.0
        value = 0.0
        while i < e and _digit(data[i]):
            value = value * 10.0 + (data[i] - 48)
            weight *= 10.0
            i += 1
        if i == fraction or i - fraction > 9:
            return SLOW, at, np.nan
        part = value / weight
        fraction_end = i
        while fraction_end > fraction and data[fraction_end - 1] == 48:
            fraction_end -= 1
    zulu = i + 1 == e and data[i] == 90
    if (i < e and not zulu) or hour > 23 or minute > 59 or second > 59:
        return SLOW, at, np.nan
    clock = hour * 3600 + minute * 60 + second
    number = seconds + clock + part
    if clock == 0 and fraction_end == fraction and not zulu:
        return TIMESTAMP, at + 10, number
    o = at + 10
    out[o] = 84
    for k in range(11, 16):
        out[o + k - 10] = data[s + k]
    o += 6
    out[o] = 58
    out[o + 1] = 48 + second // 10
    out[o + 2] = 48 + second % 10
    o += 3
    if fraction_end > fraction:
        out[o] = 46
        o += 1
        for k in range(fraction, fraction_end):
            out[o] = data[k]
            o += 1
    if zulu:
        out[o] = 90
        o += 1
    return TIMESTAMP, o, number


@njit(cache=True)
def _year_last(data, s, e):
    """Whether the cell is ``d/m/yyyy``, ``m/d/yyyy`` (also with . or -) or ``d/m/yy``."""
    i = s
    first = 0
    while i < e and _digit(data[i]) and i - s < 3:
        first = first * 10 + data[i] - 48
        i += 1
    if i == s or i - s > 2 or i >= e:
        return False
    mark = data[i]
    if mark != 47 and mark != 46 and mark != 45:
        return False
    i += 1
    begin = i
    second = 0
    while i < e and _digit(data[i]) and i - begin < 3:
        second = second * 10 + data[i] - 48
        i += 1
    if i == begin or i - begin > 2 or i >= e or data[i] != mark:
        return False
    i += 1
    begin = i
    while i < e and _digit(data[i]):
        i += 1
    if i < e or not (i - begin == 4 or (i - begin == 2 and mark == 47)):
        return False
    low = min(first, second)
    return 1 <= low <= 12 and max(first, second) <= 31


@njit(inline="always", cache=True)
def _numeric_start(data, s, e, out, at):
    """A cell that starts like a number or a date."""
    kind, end, number, digits, decimals = _number(data, s, e, out, at)
    if kind != TEXT:
        return kind, end, number, digits, decimals
    n = e - s
    if n > 48:
        return TEXT, at, np.nan, 0, 0
    if n >= 10 and data[s + 4] == 45 and data[s + 7] == 45 and _digit(data[s]):
        kind, end, number = _iso(data, s, e, out, at)
        return kind, end, number, 0, 0
    if not _digit(data[s]):
        return TEXT, at, np.nan, 0, 0
    if n <= 10 and _year_last(data, s, e):
        for j in range(n):
            out[at + j] = data[s + j]
        return DATE, at + n, np.nan, 0, 0
    # Could it be a clock, a year-first date, a day and a month by name? Only the reference says.
    j = s
    while j < e and _digit(data[j]):
        j += 1
    lead = j - s
    mark = data[j]
    if lead == 4 and (mark == 45 or mark == 47 or mark == 46):
        return SLOW, at, np.nan, 0, 0
    if lead <= 2 and (mark == 32 or mark == 45) and j + 3 < e and _is_month(data, j + 1):
        return SLOW, at, np.nan, 0, 0
    if lead <= 2 and (mark == 58 or mark == 47 or mark == 46 or mark == 45):
        for k in range(j, e):
            if data[k] == 58:
                return SLOW, at, np.nan, 0, 0
    return TEXT, at, np.nan, 0, 0


@njit(cache=True)
def _is_month(data, i):
    """Whether the three letters at ``i`` begin the English name of a month."""
    key = (_lower(data[i]) << 16) | (_lower(data[i + 1]) << 8) | _lower(data[i + 2])
    return (
        key == 0x6A616E  # jan
        or key == 0x666562
        or key == 0x6D6172
        or key == 0x617072
        or key == 0x6D6179
        or key == 0x6A756E
        or key == 0x6A756C
        or key == 0x617567
        or key == 0x736570
        or key == 0x6F6374
        or key == 0x6E6F76
        or key == 0x646563
    )


@njit(inline="always", cache=True)
def _lower(byte):
    return byte | 32 if 65 <= byte <= 90 else byte


@njit(inline="always", cache=True)
def _word_kind(data, s, e):
    """Kind of a cell that starts with a letter: BOOLEAN, SLOW (month or infinity) or TEXT."""
    n = e - s
    a = data[s] | 32
    # Months, infinities and booleans begin with one of these letters.
    if n < 3 or (_WORD_STARTS >> (a - 97)) & 1 == 0:
        return TEXT
    b = _lower(data[s + 1])
    c = _lower(data[s + 2])
    if a == 116 and n == 4 and b == 114 and c == 117 and _lower(data[s + 3]) == 101:
        return BOOLEAN
    if a == 102 and n == 5 and b == 97 and c == 108 and _lower(data[s + 3]) == 115 and _lower(data[s + 4]) == 101:
        return BOOLEAN
    if a == 105 and b == 110 and c == 102 and (n == 3 or n == 8):
        return SLOW
    if n > 48 or (not _digit(data[e - 1]) and _lower(data[e - 1]) != 109):
        return TEXT
    return SLOW if _is_month(data, s) else TEXT


@njit(inline="always", cache=True)
def _plain_unicode(data, s, e, table):
    """Whether the cell is valid UTF-8 made only of code points that NFC never touches: -1 invalid, 0 unsure, 1 yes."""
    i = s
    sure = 1
    while i < e:
        c = data[i]
        if c < 0x80:
            i += 1
        elif 0xC2 <= c < 0xE0:
            if i + 1 >= e or (data[i + 1] & 0xC0) != 0x80:
                return -1
            point = ((c & 0x1F) << 6) | (data[i + 1] & 0x3F)
            if table[point] & 4 == 0:
                sure = 0
            i += 2
        elif 0xE0 <= c < 0xF0:
            if i + 2 >= e or (data[i + 1] & 0xC0) != 0x80 or (data[i + 2] & 0xC0) != 0x80:
                return -1
            point = ((c & 0x0F) << 12) | ((data[i + 1] & 0x3F) << 6) | (data[i + 2] & 0x3F)
            if point < 0x800 or 0xD800 <= point <= 0xDFFF:
                return -1
            if table[point] & 4 == 0:
                sure = 0
            i += 3
        elif 0xF0 <= c < 0xF5:
            if i + 3 >= e:
                return -1
            for k in range(1, 4):
                if (data[i + k] & 0xC0) != 0x80:
                    return -1
            point = (
                ((c & 0x07) << 18) | ((data[i + 1] & 0x3F) << 12) | ((data[i + 2] & 0x3F) << 6) | (data[i + 3] & 0x3F)
            )
            if point < 0x10000 or point > 0x10FFFF:
                return -1
            sure = 0
            i += 4
        else:
            return -1
    return sure


_HIGH_BITS = np.uint64(0x8080808080808080)


@njit(inline="always", cache=True)
def _all_ascii(data, s, e):
    i = s
    seen = np.uint64(0)
    if e - s >= 8:
        while i < e - 8:
            seen |= _load64(data, i)
            i += 8
        seen |= _load64(data, e - 8)
    else:
        while i < e:
            seen |= np.uint64(data[i])
            i += 1
    return seen & _HIGH_BITS == 0


@njit(cache=True)
def _count_characters(data, start, end):
    n = 0
    for i in range(start, end):
        n += (data[i] & 0xC0) != 0x80
    return n


@njit(inline="always", cache=True)
def _leading_digit(data, s, e):
    """First digit that is not zero, 0 if there is none."""
    for i in range(s, e):
        if 49 <= data[i] <= 57:
            return data[i] - 48
    return 0


@njit(inline="always", cache=True)
def _form(data, s, e, table, out, at):
    """Kind of a trimmed cell, and where the canonical text of a kind that is rewritten ends in ``out``, from ``at`` on.

    Returns (kind, end, number, digits, decimals).
    """
    c = data[s] if s < e else 0
    if _is_null(data, s, e):
        return NULL, at, np.nan, 0, 0
    if _digit(c) or c == 45 or c == 43 or c == 46:
        kind, end, number, ndigits, ndecimals = _numeric_start(data, s, e, out, at)
        if kind == TEXT:
            if not _all_ascii(data, s, e):
                kind = TEXT if _plain_unicode(data, s, e, table) == 1 else SLOW
            elif (c == 45 or c == 43) and e - s > 1 and (data[s + 1] == 105 or data[s + 1] == 73):
                kind = SLOW
        return kind, end, number, ndigits, ndecimals
    if not _all_ascii(data, s, e):
        return (TEXT if _plain_unicode(data, s, e, table) == 1 else SLOW), at, np.nan, 0, 0
    if (65 <= c <= 90) or (97 <= c <= 122):
        kind = _word_kind(data, s, e)
        if kind == BOOLEAN:
            for j in range(s, e):
                out[at + j - s] = _lower(data[j])
            return BOOLEAN, at + e - s, np.nan, 0, 0
        return kind, at, np.nan, 0, 0
    return TEXT, at, np.nan, 0, 0


@njit(inline="always", cache=True)
def _is_plain(data, s, e):
    """Whether a cell is its own canonical text, told by its ends: most text of some length is."""
    if e - s <= 8:  # a shorter one may be a null marker, a boolean, an infinity
        return False
    letter = (data[s] | 32) - 97
    last = data[e - 1]
    if not 0 <= letter < 26 or not 32 < last < 127:
        return False
    if (_WORD_STARTS >> letter) & 1 and (_digit(last) or last | 32 == 109):  # a date may begin with its month
        return False
    return _all_ascii(data, s, e)


@njit(inline="always", cache=True)
def _same(data, s, e, out, begin, end):
    """Whether two slices hold the same bytes."""
    if end - begin != e - s:
        return False
    for j in range(e - s):
        if out[begin + j] != data[s + j]:
            return False
    return True


@njit(cache=True)
def hash_cells(data, starts, ends, table, scratch, hashes, kinds):
    """Hash of the canonical text of every cell.

    ``kinds`` says NULL where there is none and SLOW where only the reference can tell; returns how many of each there
    are. ``scratch`` holds ``GROWTH`` bytes more than the longest cell.
    """
    text, properties, room = pointer(data), pointer(table), pointer(scratch)
    nulls = slow = 0
    for i in range(starts.size):
        if ends[i] < 0:
            kinds[i] = NULL
            hashes[i] = 0
            nulls += 1
            continue
        s, e = starts[i], ends[i]
        if _is_plain(text, s, e):
            kinds[i] = TEXT
            hashes[i] = xxh64(text, s, e)
            continue
        s, e = trim(text, s, e)
        kind, end, _, _, _ = _form(text, s, e, properties, room, 0)
        kinds[i] = kind
        if kind == TEXT:
            hashes[i] = xxh64(text, s, e)
        elif kind != NULL and kind != SLOW:
            hashes[i] = xxh64(room, 0, end)
        else:
            hashes[i] = 0
            nulls += kind == NULL
            slow += kind == SLOW
    return nulls, slow


@njit(cache=True)
def hash_integers(numbers):
    """Hash of the canonical text of every integer: its digits, written and hashed on the spot."""
    out = np.empty(numbers.size, np.uint64)
    digits = np.empty(20, np.uint8)
    text = pointer(digits)
    for i in range(numbers.size):
        rest = np.uint64(numbers[i])
        if numbers[i] < 0:
            rest = np.uint64(0) - rest
        at = 20
        while True:
            at -= 1
            text[at] = np.uint8(48 + rest % np.uint64(10))
            rest //= np.uint64(10)
            if rest == 0:
                break
        if numbers[i] < 0:
            at -= 1
            text[at] = np.uint8(45)
        out[i] = xxh64(text, at, 20)
    return out


@njit(cache=True)
def analyse(
    data,
    starts,
    ends,
    raw_hashes,
    table,
    out,
    kinds,
    hashes,
    numbers,
    lengths,
    leading,
    digits,
    decimals,
    altered,
    cstarts,
    cends,
):
    """Understand distinct trimmed cells.

    Where a cell is its own canonical text, ``altered`` is 0 and ``cstarts``/``cends`` are its bounds in ``data``;
    else its canonical text lies in ``out``, which must hold ``sum(length + GROWTH)`` bytes. ``table`` is
    ``values.characters.character_table()``. ``lengths`` are in characters, ``leading`` is the first digit of a number
    that is not zero. Returns the bytes used. Cells marked SLOW are left for the reference.
    """
    text, properties, room = pointer(data), pointer(table), pointer(out)
    at = 0
    for i in range(starts.size):
        s = starts[i]
        e = ends[i]
        kind, end, number, ndigits, ndecimals = _form(text, s, e, properties, room, at)
        length = e - s if _all_ascii(text, s, e) else _count_characters(text, s, e)
        same = kind in (NULL, SLOW, TEXT) or _same(text, s, e, room, at, end)
        if same:
            cstarts[i] = s
            cends[i] = e
            hashes[i] = raw_hashes[i]
        else:
            cstarts[i] = at
            cends[i] = end
            hashes[i] = xxh64(room, at, end)
            at = end
        altered[i] = not same
        kinds[i] = kind
        numbers[i] = number
        lengths[i] = length
        leading[i] = _leading_digit(text, s, e) if INTEGER <= kind <= DECIMAL else 0
        digits[i] = ndigits
        decimals[i] = ndecimals
    return at


@njit(cache=True)
def drop_nulls(
    kinds,
    hashes,
    numbers,
    counts,
    lengths,
    leading,
    digits,
    decimals,
    wstarts,
    wends,
    altered,
    cstarts,
    cends,
    places,
):
    """Move the cells that are not null to the front, in order; rows with a null have the place -1.

    Returns (how many they are, empty cells, cells that hold a null marker).
    """
    kept = 0
    empty = 0
    markers = 0
    moved = np.full(kinds.size, -1, np.int32)
    for i in range(kinds.size):
        if kinds[i] == NULL:
            if wends[i] == wstarts[i]:
                empty += counts[i]
            else:
                markers += counts[i]
            continue
        moved[i] = kept
        if kept < i:
            kinds[kept] = kinds[i]
            hashes[kept] = hashes[i]
            numbers[kept] = numbers[i]
            counts[kept] = counts[i]
            lengths[kept] = lengths[i]
            leading[kept] = leading[i]
            digits[kept] = digits[i]
            decimals[kept] = decimals[i]
            wstarts[kept] = wstarts[i]
            wends[kept] = wends[i]
            altered[kept] = altered[i]
            cstarts[kept] = cstarts[i]
            cends[kept] = cends[i]
        kept += 1
    if kept < kinds.size:
        for row in range(places.size):
            if places[row] >= 0:
                places[row] = moved[places[row]]
    return kept, empty, markers
