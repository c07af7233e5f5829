"""Old exports whose header is missing, meaningless or not where it should be. Their true names are recorded."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lakescope.demo.builder import LakeBuilder
from lakescope.demo.chance import days_between, decimals, pick, some
from lakescope.demo.facts import Fact, Join, ref
from lakescope.demo.formats import Style
from lakescope.demo.frames import frame
from lakescope.demo.tables.places import cities
from lakescope.demo.tables.shop import CUSTOMERS
from lakescope.demo.words.countries import COUNTRIES
from lakescope.demo.words.trade import CATEGORIES, ORDER_STATES
from lakescope.demo.words.usa import STATES

PEOPLE = "legacy/cust_dump.csv"
GEO = "legacy/geo.tsv"
OLD_ORDERS = "legacy/orders_2019.csv.gz"
HADOOP = "legacy/hadoop_export.parquet"
SHEET = "legacy/sheet_export.csv"
PREAMBLE = "legacy/quarterly_report.csv"
TWO_ROWS = "legacy/city_census.csv"

FACTS: tuple[Fact, ...] = (
    Join(ref(PEOPLE, "customer_id"), ref(CUSTOMERS, "customer_id"), "exact", note="the left file has no header"),
)


def write(lake: LakeBuilder) -> None:
    """Write the old exports."""
    rng = lake.rng(PEOPLE)
    customers: pa.Table = lake.shared("customers")
    kept = np.sort(some(rng, customers.num_rows, 400))
    lake.add(
        PEOPLE,
        customers.take(pa.array(kept)).select(["customer_id", "first_name", "last_name", "city", "state", "zip"]),
        Style(header=False),
    )

    rng = lake.rng(GEO)
    rows = [COUNTRIES[i] for i in some(rng, len(COUNTRIES), 110)]
    lake.add(
        GEO,
        frame(country=[c.name for c in rows], iso3=[c.iso3 for c in rows], continent=[c.continent for c in rows]),
        Style(header=False),
    )

    rng = lake.rng(OLD_ORDERS)
    n = 600
    codes = lake.shared("product_codes")
    lake.add(
        OLD_ORDERS,
        frame(
            order_date=days_between(rng, "2019-01-01", "2019-12-31", n),
            customer_id=customers["customer_id"].to_numpy()[rng.integers(0, 500, n)],
            product_code=codes[rng.integers(0, len(codes), n)],
            quantity=rng.geometric(0.4, n),
            total=decimals(rng.lognormal(3.5, 0.8, n), 2),
        ),
        Style(header=False),
    )

    rng = lake.rng(HADOOP)
    n = 500
    lake.add(
        HADOOP,
        frame(
            category=pick(rng, [c for c, _ in CATEGORIES], n),
            status=pick(rng, ORDER_STATES, n),
            order_date=days_between(rng, "2020-01-01", "2020-12-31", n),
            total=decimals(rng.lognormal(3.5, 0.8, n), 2),
        ),
        Style(shown=("_c0", "_c1", "_c2", "_c3")),
    )

    rng = lake.rng(SHEET)
    lake.add(
        SHEET,
        frame(
            state=[s.name for s in STATES],
            code=[s.code for s in STATES],
            region=[s.region for s in STATES],
            population=rng.lognormal(15, 1, len(STATES)).astype(int),
        ),
        Style(shown=("Unnamed: 0", "Unnamed: 1", "Unnamed: 2", "Unnamed: 3")),
    )

    rng = lake.rng(PREAMBLE)
    lake.add(
        PREAMBLE,
        frame(
            state=[s.name for s in STATES],
            orders=rng.integers(20, 400, len(STATES)),
            revenue=decimals(rng.lognormal(9, 0.7, len(STATES)), 2),
        ),
        Style(above=("Lakeshore Trading - Quarterly report", "Created: 2023-10-02, Currency: USD", "")),
    )

    rng = lake.rng(TWO_ROWS)
    towns = [cities()[i] for i in np.sort(some(rng, len(cities()), 90))]
    lake.add(
        TWO_ROWS,
        frame(
            city=[p.city for p in towns],
            state=[p.state.name for p in towns],
            **{str(year): rng.lognormal(11, 0.9, len(towns)).astype(int) for year in (2000, 2010, 2020)},
        ),
        Style(above=("Place,,Population,,",)),
    )
