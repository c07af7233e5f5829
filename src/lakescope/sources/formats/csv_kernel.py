"""The CSV tokeniser: bytes in, cell boundaries out, nothing copied and nothing lost.

Written by hand because no library keeps what real lakes hold: rows of uneven width, quotes that never close, bare
carriage returns, NUL bytes and undecodable text make other readers stop or drop rows. Cells stay slices of the file's
own bytes; only a cell with escaped quotes is unescaped, in place, once its record is complete.
"""

from __future__ import annotations

import numpy as np

from lakescope.values.jit import kernel, pointer

#: How a field ended.
DELIMITER, RECORD, OPEN = 0, 1, 2

#: Where a byte may lie: inside quotes, in the middle of a field without quotes, at the beginning of a field.
INSIDE, MIDDLE, BEGINNING = 0, 1, 2

#: Indices of the counters that :func:`tokenise` adds to; the last one is where the last blank line ended.
SHORT, LONG, BLANK, STRAY, UNCLOSED, NUL, GIANT, BLANK_END = range(8)
N_COUNTERS = 8

_LF, _CR, _SPACE, _BACKSLASH = 10, 13, 32, 92


@kernel(inline="always")
def _field(data, i, n, delimiter, quote, escape, newline):
    """Read one field: (start, end, next, how it ended, escaped quotes inside?, text after the closing quote?).

    ``quote`` 0 means quoting is off; ``newline`` is the byte that ends a record. OPEN means the data ran out inside
    quotes.
    """
    start = i
    j = i
    while j < n and data[j] == _SPACE and delimiter != _SPACE:
        j += 1
    if quote != 0 and j < n and data[j] == quote:
        start = j + 1
        escaped = False
        lines = False
        i = start
        while i < n:
            c = data[i]
            if c == newline:
                lines = True
            if c == quote:
                if i + 1 < n and data[i + 1] == quote:
                    escaped = True
                    i += 2
                    continue
                break
            if c == escape and escape != 0:
                escaped = True
                i += 2
                continue
            i += 1
        if i >= n:
            return start, n, n, OPEN, False, False
        end = i
        i += 1
        while i < n and (data[i] == _SPACE or data[i] == _CR) and data[i] != delimiter and data[i] != newline:
            i += 1
        if i >= n:
            return start, end, n, RECORD, escaped, False
        if data[i] == delimiter:
            return start, end, i + 1, DELIMITER, escaped, False
        if data[i] == newline:
            return start, end, i + 1, RECORD, escaped, False
        # Text after the closing quote: keep the field as written, quotes and all. If the quotes held a line end, they
        # were no pair but two strays, and the record ends where its line does.
        start = j
        if lines:
            i = start
        while i < n and data[i] != delimiter and data[i] != newline:
            i += 1
        end = i
        if i < n and data[i] == delimiter:
            return start, end, i + 1, DELIMITER, False, True
        if end > start and newline == _LF and data[end - 1] == _CR:
            end -= 1
        return start, end, min(i + 1, n), RECORD, False, True
    while i < n:
        c = data[i]
        if c == delimiter:
            return start, i, i + 1, DELIMITER, False, False
        if c == newline:
            break
        i += 1
    end = i
    if end > start and newline == _LF and data[end - 1] == _CR:
        end -= 1
    return start, end, min(i + 1, n), RECORD, False, False


@kernel()
def _unescape(data, start, end, quote, escape):
    """Collapse escaped quotes of a field in place; returns its new end."""
    write = start
    i = start
    while i < end:
        c = data[i]
        if i + 1 < end and ((c == quote and data[i + 1] == quote) or (c == escape and escape != 0)):
            i += 1
            c = data[i]
        data[write] = c
        write += 1
        i += 1
    return write


@kernel()
def _record_end(data, after, newline):
    """Where the text of a record ends, if the next one starts at ``after``: before its line end, if it has one."""
    end = after
    if data[end - 1] == newline:
        end -= 1
    if newline == _LF and end > 0 and data[end - 1] == _CR:
        end -= 1
    return end


@kernel()
def tokenise(buffer, begin, n, stop, final, delimiter, quote, escape, newline, patience, starts, ends, counters):
    """Cut ``buffer[begin:n]`` into records, up to the first that starts at or after ``stop``.

    ``starts`` and ``ends`` are (columns + 1, rows): the extra column holds what a long row has beyond the header, one
    field like any other, several as they are written, with their delimiters and quotes. A record without its end is
    left for the next call unless ``final``. Of no record more than ``patience`` bytes are looked at, so that it does
    not matter how many there are: a quote still open after them (or at the end of the file) is taken literally, a
    record still without its end is left out, up to the end of that line. Returns (rows, position of the next record,
    starved?).
    """
    data = pointer(buffer)
    columns = starts.shape[0] - 1
    capacity = starts.shape[1]
    escaped_fields = np.empty(columns + 1, np.int32)
    row = 0
    i = begin
    while i < n and row < capacity and i < stop:
        record = i
        c = 0
        n_escaped = 0
        quoting = quote
        stray = 0
        surplus = 0
        blank = False
        giant = False
        seen = min(n, record + patience)
        while True:
            s, e, after, how, escaped, odd = _field(data, i, seen, delimiter, quoting, escape, newline)
            if how == OPEN:
                if not final and n - record < patience:
                    return row, record, True
                counters[UNCLOSED] += 1
                quoting = 0
                i = record
                c = 0
                n_escaped = 0
                stray = 0
                continue
            if how == RECORD and after == seen and data[seen - 1] != newline:
                if seen == record + patience and seen < n:
                    giant = True
                    break
                if not final:
                    return row, record, True
            stray += odd
            if c <= columns:
                starts[c, row] = s
                ends[c, row] = e
                if escaped:
                    escaped_fields[n_escaped] = c
                    n_escaped += 1
                surplus = i
            if how == RECORD:
                blank = c == 0 and s == e and s == record
                i = after
                break
            c += 1
            i = after
        if giant:
            i = seen
            while i < n and data[i] != newline:
                i += 1
            if i >= n and not final:
                return row, record, True
            i = min(n, i + 1)
            counters[GIANT] += 1
            continue
        if blank:
            counters[BLANK] += 1
            counters[BLANK_END] = i
            continue
        if c > columns:
            starts[columns, row] = surplus
            ends[columns, row] = _record_end(data, i, newline)
            if n_escaped > 0 and escaped_fields[n_escaped - 1] == columns:
                n_escaped -= 1
        for k in range(n_escaped):
            f = int(escaped_fields[k])
            ends[f, row] = _unescape(data, int(starts[f, row]), int(ends[f, row]), quote, escape)
        if c + 1 < columns:
            counters[SHORT] += 1
        for k in range(c + 1, columns + 1):
            starts[k, row] = 0
            ends[k, row] = -1
        if ends[columns, row] > starts[columns, row]:
            counters[LONG] += 1
        else:
            starts[columns, row] = 0
            ends[columns, row] = -1
        counters[STRAY] += stray
        row += 1
    return row, i, False


@kernel()
def record_widths(buffer, n, final, delimiter, quote, escape, newline, widths, record_starts):
    """Field counts and start positions of the first complete records; blank lines are passed over.

    Returns (records, text after closing quotes, fields that hold another common delimiter).
    """
    data = pointer(buffer)
    i = 0
    records = 0
    stray = 0
    unclean = 0
    while i < n and records < widths.size:
        start = i
        fields = 0
        open_end = False
        dirt = 0
        while True:
            s, e, after, how, _, odd = _field(data, i, n, delimiter, quote, escape, newline)
            if how == OPEN or (how == RECORD and after >= n and not final):
                open_end = True
                break
            stray += odd
            fields += 1
            if s == i or data[s - 1] != quote:
                dirt += _holds_other_delimiter(data, s, e, delimiter)
            i = after
            if how == RECORD:
                break
        if open_end:
            break
        if fields == 1 and e - s == 0:
            continue
        widths[records] = fields
        record_starts[records] = start
        unclean += dirt
        records += 1
    return records, stray, unclean


@kernel()
def _holds_other_delimiter(data, s, e, delimiter):
    for i in range(s, e):
        c = data[i]
        if c != delimiter and (c == 59 or c == 9 or c == 124):
            return True
        if c == 44 and delimiter != 44:
            decimal_comma = s < i < e - 1 and 48 <= data[i - 1] <= 57 and 48 <= data[i + 1] <= 57
            if not decimal_comma:
                return True
    return False


@kernel()
def resync(buffer, n, place, delimiter, quote, escape, newline, columns, records):
    """Find the next record start when reading begins at an arbitrary byte, supposing where that is.

    Speculative parsing: the caller tries the suppositions and keeps the likeliest; whether it was right is proven
    later, when the end of one byte range must meet the start of the next. Returns (start, or -1; records that have the
    expected width; records seen; text found after closing quotes).
    """
    data = pointer(buffer)
    i = 0
    if place == INSIDE:
        while i < n and not (data[i] == quote and not (i + 1 < n and data[i + 1] == quote)):
            i += 2 if data[i] == quote or (data[i] == escape and escape != 0) else 1
        i += 1
    how = DELIMITER
    first = True
    while how == DELIMITER:
        if i >= n:
            return -1, 0, 0, 0
        if first and place == MIDDLE:
            # Mid-field: a quote here opens nothing.
            _, _, i, how, _, _ = _field(data, i, n, delimiter, 0, escape, newline)
        else:
            _, _, i, how, _, _ = _field(data, i, n, delimiter, quote, escape, newline)
        first = False
    if how == OPEN or (i >= n and data[n - 1] != newline):
        return -1, 0, 0, 0
    start = i
    fitting = 0
    seen = 0
    stray = 0
    while i < n and seen < records:
        fields = 0
        while True:
            _, _, i, how, _, odd = _field(data, i, n, delimiter, quote, escape, newline)
            stray += odd
            fields += 1
            if how != DELIMITER:
                break
        if how == OPEN or i >= n:
            break
        seen += 1
        fitting += fields == columns
    return start, fitting, seen, stray
