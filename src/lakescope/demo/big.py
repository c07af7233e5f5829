"""One big CSV of a wanted size, for benchmarks: ten columns of the usual mix, written as fast as the disk takes it.

Most of a row comes from a few blocks that are rendered once and used again; id, code and timestamp are made anew each
time, so that the distinct counts of a real file of that size are kept where they matter. Memory is one block.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakescope.demo import text
from lakescope.demo.chance import Rng, days_between, decimals, pick, stream
from lakescope.demo.frames import holes, joined
from lakescope.demo.words.people import FIRST, FIRST_INTL, LAST, LAST_INTL
from lakescope.demo.words.trade import PHRASES
from lakescope.demo.written import Written

COLUMNS = (
    "id",
    "account_code",
    "region",
    "customer_name",
    "amount",
    "units",
    "booked_on",
    "recorded_at",
    "is_member",
    "remark",
)
#: Rows of a block, and how many blocks are rendered.
ROWS, BLOCKS = 1 << 15, 12
#: Different account codes; they have leading zeros.
_CODES = 2_000_000
_REGIONS = ("North", "South", "East", "West", "Central", "Overseas", "Île-de-France", "Zürich")


def write_big_csv(path: str | Path, *, bytes: int, seed: int = 42) -> Written:
    """Write one CSV of ``bytes`` bytes, short by less than a row; returns the rows and bytes written."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    rng = stream(seed, "big")
    blocks: list[tuple[pa.Array, pa.Array]] = []
    header = (",".join(COLUMNS) + "\n").encode()
    rows, size = 0, len(header)
    second = np.datetime64("2020-01-01T00:00:00", "s")
    with target.open("wb") as file:
        file.write(header)
        while size < bytes:
            if len(blocks) < BLOCKS:
                blocks.append(_block(rng))
            middle, tail = blocks[int(rng.integers(0, len(blocks)))] if len(blocks) == BLOCKS else blocks[-1]
            moments = second + np.cumsum(rng.integers(0, 7, ROWS))
            second = moments[-1]
            lines = pc.binary_join_element_wise(
                text.cells(pa.array(np.arange(rows + 1, rows + ROWS + 1))),
                _codes(rng),
                middle,
                text.cells(pa.array(moments)),
                tail,
                ",",
            )
            count = _fitting(lines, bytes - size)
            if count == 0:
                break
            data = text.content(lines.slice(0, count))
            file.write(data)
            rows, size = rows + count, size + len(data)
    return Written(target, 1, rows, size)


def _codes(rng: Rng) -> pa.Array:
    """Account codes for a block, seven digits with leading zeros."""
    return pc.utf8_lpad(text.cells(pa.array(rng.integers(0, _CODES, ROWS) * 4 + 3)), 7, "0")


def _block(rng: Rng) -> tuple[pa.Array, pa.Array]:
    """The parts of the rows that are used again: region to date, and member flag with remark and line end."""
    n = ROWS
    names = joined(pick(rng, FIRST + FIRST_INTL, n), " ", pick(rng, LAST + LAST_INTL, n))
    middle = text.lines(
        [
            pa.array(pick(rng, _REGIONS, n, 0.7).tolist()),
            pa.array(names.tolist()),
            pa.array(decimals(rng.lognormal(4, 1.2, n), 2)),
            holes(rng, rng.negative_binomial(3, 0.1, n), 0.06),
            pa.array(days_between(rng, "2018-01-01", "2023-12-31", n)),
        ],
        newline="",
    )
    tail = text.lines([pa.array(rng.random(n) < 0.35), pa.array(_remarks(rng, n))])
    return middle, tail


def _remarks(rng: Rng, count: int) -> list[str]:
    """Free text: mostly plain, now and then with commas, quotes or a line break, which the writer puts in quotes."""
    kinds = rng.choice(4, count, p=[0.85, 0.08, 0.05, 0.02])
    patterns = ("{a} {n}", "{a}, {b} ({n})", '{a}: "{b}" {n}', "{a}\n{b} {n}")
    first, second, number = pick(rng, PHRASES, count), pick(rng, PHRASES, count), rng.integers(1, 100_000, count)
    return [patterns[k].format(a=a, b=b, n=n) for k, a, b, n in zip(kinds, first, second, number, strict=True)]


def _fitting(lines: pa.Array, space: int) -> int:
    """How many of the lines fit into ``space`` bytes."""
    ends = np.cumsum(pc.binary_length(lines).to_numpy(zero_copy_only=False))
    return int(np.searchsorted(ends, space, side="right"))
