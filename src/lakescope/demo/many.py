"""Many small CSVs, for benchmarks: varied in topic, width, length and dirt, and overlapping enough to join."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lakescope.demo import text
from lakescope.demo.chance import Rng, days_between, decimals, pick, stream
from lakescope.demo.frames import frame, holes, joined
from lakescope.demo.tables.places import cities, places
from lakescope.demo.words import trade
from lakescope.demo.words.countries import COUNTRIES
from lakescope.demo.words.people import FIRST, FIRST_INTL, LAST, LAST_INTL
from lakescope.demo.words.usa import STATES
from lakescope.demo.written import Written

#: Tables per folder.
_FOLDER = 200
_ROWS = (20, 5_000)
_WIDTH = (4, 14)
_TOPICS = (
    "sales",
    "visits",
    "stock",
    "survey",
    "budget",
    "permits",
    "sensors",
    "library",
    "transit",
    "schools",
    "health",
    "housing",
    "energy",
    "sports",
    "tickets",
    "inventory",
)

Maker = Callable[[Rng, int], Any]


def _words(words: tuple[str, ...], skew: float = 0.0) -> Maker:
    return lambda rng, n: pick(rng, words, n, skew)


def _ids(rng: Rng, n: int) -> Any:
    return int(rng.integers(1, 50_000)) + np.arange(n) * int(rng.integers(1, 4))


def _codes(rng: Rng, n: int) -> Any:
    return [f"{k:06d}" for k in rng.integers(0, 80_000, n)]


def _moments(rng: Rng, n: int) -> Any:
    return days_between(rng, "2021-01-01", "2023-12-31", n).astype("datetime64[s]") + rng.integers(0, 86_400, n)


def _remarks(rng: Rng, n: int) -> Any:
    return joined(
        pick(rng, trade.PHRASES, n),
        np.where(rng.random(n) < 0.2, ", ", " - ").astype(object),
        pick(rng, trade.PHRASES, n),
    )


def _makers() -> dict[str, Maker]:
    """Column name -> how its values are made."""
    full = (FIRST + FIRST_INTL, LAST + LAST_INTL)
    return {
        "id": _ids,
        "record_no": _ids,
        "code": _codes,
        "country": _words(tuple(c.name for c in COUNTRIES), 0.5),
        "iso3": _words(tuple(c.iso3 for c in COUNTRIES)),
        "state": _words(tuple(s.name for s in STATES)),
        "city": _words(tuple(p.city for p in cities()), 0.4),
        "zip": _words(tuple(p.zip for p in places())),
        "first_name": _words(full[0]),
        "last_name": _words(full[1]),
        "name": lambda rng, n: joined(pick(rng, full[0], n), " ", pick(rng, full[1], n)),
        "company": lambda rng, n: joined(
            pick(rng, trade.ADJECTIVES, n), " ", pick(rng, trade.NOUNS, n), " ", pick(rng, trade.COMPANY_ENDINGS, n)
        ),
        "address": lambda rng, n: joined(
            rng.integers(1, 999, n), " ", pick(rng, trade.STREETS, n), " ", pick(rng, trade.STREET_KINDS, n)
        ),
        "email": lambda rng, n: joined(pick(rng, trade.NOUNS, n), rng.integers(1, 999, n), "@mail.example"),
        "category": _words(tuple(c for c, _ in trade.CATEGORIES), 0.6),
        "status": _words(trade.ORDER_STATES, 0.8),
        "industry": _words(trade.INDUSTRIES),
        "remark": _remarks,
        "date": lambda rng, n: days_between(rng, "2019-01-01", "2023-12-31", n),
        "month": lambda rng, n: (
            days_between(rng, "2019-01-01", "2023-12-31", n).astype("datetime64[M]").astype(str).astype(object)
        ),
        "updated_at": _moments,
        "year": lambda rng, n: rng.integers(1990, 2024, n),
        "amount": lambda rng, n: decimals(rng.lognormal(4, 1, n), 2),
        "price": lambda rng, n: decimals(rng.gamma(2, 20, n), 2),
        "rate": lambda rng, n: decimals(rng.beta(2, 5, n), 4),
        "score": lambda rng, n: decimals(rng.normal(50, 12, n), 1),
        "count": lambda rng, n: rng.negative_binomial(2, 0.02, n),
        "population": lambda rng, n: rng.lognormal(10, 1.5, n).astype(int),
        "latitude": lambda rng, n: decimals(rng.uniform(-60, 70, n), 5),
        "longitude": lambda rng, n: decimals(rng.uniform(-180, 180, n), 5),
        "active": lambda rng, n: rng.random(n) < 0.7,
        "rank": lambda rng, n: rng.permutation(n) + 1,
    }


def write_many_csvs(path: str | Path, *, tables: int, seed: int = 42) -> Written:
    """Write ``tables`` small CSVs below the folder ``path``, ``_FOLDER`` to a folder."""
    root = Path(path)
    makers = _makers()
    rows = size = 0
    for number in range(tables):
        rng = stream(seed, f"many/{number}")
        folder = root / f"{number // _FOLDER:03d}"
        folder.mkdir(parents=True, exist_ok=True)
        table = _table(rng, makers)
        target = folder / f"{_TOPICS[int(rng.integers(0, len(_TOPICS)))]}_{number:05d}.csv"
        head = ",".join(table.column_names) + "\n"
        content = head.encode() + bytes(text.content(text.lines([c.combine_chunks() for c in table.columns])))
        target.write_bytes(content)
        rows, size = rows + table.num_rows, size + len(content)
    return Written(root, tables, rows, size)


def _table(rng: Rng, makers: dict[str, Maker]) -> pa.Table:
    """One table: width and length by chance, length skewed to the short side, a few columns with holes."""
    low, high = _ROWS
    n = low + int((high - low) * rng.beta(0.7, 1.15))
    names = list(makers)
    width = int(rng.integers(_WIDTH[0], _WIDTH[1] + 1))
    chosen = [names[i] for i in np.sort(rng.permutation(len(names))[:width])]
    return frame(
        **{name: holes(rng, makers[name](rng, n), float(rng.choice([0.0, 0.0, 0.02, 0.15]))) for name in chosen}
    )
