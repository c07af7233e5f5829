"""Web traffic: a directory of part files that is one table, and JSON lines with nested objects."""

from __future__ import annotations

import numpy as np

from lakescope.demo.builder import LakeBuilder
from lakescope.demo.chance import pick
from lakescope.demo.facts import Fact, Join, ref
from lakescope.demo.formats import Style
from lakescope.demo.frames import chunks, frame, holes, joined
from lakescope.demo.tables.shop import CUSTOMERS
from lakescope.demo.words.countries import COUNTRIES
from lakescope.demo.words.trade import EVENT_KINDS, PAGES

EVENTS = "web/events.parquet"
VIEWS = "web/page_views.jsonl"

FACTS: tuple[Fact, ...] = (
    Join(ref(EVENTS, "customer_id"), ref(CUSTOMERS, "customer_id"), "exact", note="nullable: visitors who log in"),
)


def write(lake: LakeBuilder) -> None:
    """Write events and page views."""
    customers = lake.shared("customers")["customer_id"].to_numpy()
    rng = lake.rng(EVENTS)
    total = lake.scaled(8_000)
    first = np.datetime64("2023-01-01", "s")
    with lake.open(EVENTS, Style(rows_per_part=min(max(total // 4, 1), 250_000))) as table:
        for start, count in chunks(total):
            second = (np.arange(start, start + count) * (365 * 86_400 / total)).astype(np.int64)
            table.write(
                frame(
                    event_id=np.arange(start, start + count) + 1_000_000_000,
                    happened_at=first + second,
                    visitor=joined("v", rng.integers(16**6, 16**7, count)),
                    customer_id=holes(rng, customers[rng.integers(0, len(customers), count)], 0.6),
                    kind=pick(rng, EVENT_KINDS, count, 0.9),
                    page=pick(rng, PAGES, count, 0.8),
                    milliseconds=rng.gamma(2, 90, count).astype(np.int32),
                )
            )

    rng = lake.rng(VIEWS)
    codes = [c.iso2 for c in COUNTRIES if c.iso2 != "NA"]
    with lake.open(VIEWS) as table:
        for start, count in chunks(lake.scaled(2_500)):
            moment = np.datetime64("2023-06-01", "s") + np.sort(rng.integers(0, 30 * 86_400, count))
            table.write(
                frame(
                    **{
                        "view": np.arange(start, start + count) + 1,
                        "at": moment,
                        "page": pick(rng, PAGES, count, 0.8),
                        "user.id": holes(rng, customers[rng.integers(0, len(customers), count)], 0.3),
                        "user.country": pick(rng, codes, count, 0.6),
                        "device.kind": pick(rng, ("phone", "laptop", "tablet"), count),
                        "device.width": rng.choice([360, 390, 768, 1280, 1440, 1920], count),
                    }
                )
            )
