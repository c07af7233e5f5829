"""Partners: price lists that overlap ours by known shares, and tables whose keys are spelled another way."""

from __future__ import annotations

import numpy as np

from lakescope.demo.builder import LakeBuilder
from lakescope.demo.chance import days, days_between, decimals, pick, some
from lakescope.demo.facts import Fact, Join, Transform, ref
from lakescope.demo.frames import frame, holes, joined
from lakescope.demo.tables.places import cities
from lakescope.demo.tables.shop import PRODUCTS
from lakescope.demo.words.trade import ADJECTIVES, CATEGORIES, NOUNS, PHRASES

#: (table, share of our product codes it holds, share of its codes that are ours)
PRICE_LISTS = (
    ("partners/price_list_aurora.csv", 0.9, 0.3),
    ("partners/price_list_borealis.csv", 0.7, 0.5),
    ("partners/price_list_cascade.parquet", 0.5, 0.7),
    ("partners/price_list_delta.csv.gz", 0.3, 0.9),
)
BUSINESSES, REVIEWS = "partners/businesses.csv", "partners/business_reviews.csv"
CALLS, TICKETS = "sales/call_list.csv", "support/tickets.csv"
RATES, FUEL = "finance/exchange_rates.csv", "finance/fuel_prices.csv"
LISTINGS, CITY_INDEX = "realestate/listings.csv", "realestate/city_index.csv"
INVOICES, LEDGER = "finance/invoices.csv", "finance/ledger.csv"

FACTS: tuple[Fact, ...] = (
    *(
        Join(ref(PRODUCTS, "product_code"), ref(table, "item_code"), "partial", planned=(ours, theirs))
        for table, ours, theirs in PRICE_LISTS
    ),
    Transform(
        ref(REVIEWS, "business_ref"),
        ref(BUSINESSES, "business_id"),
        "code with another prefix",
        "'businessref_42' -> 'businessid_42'",
    ),
    Transform(ref(CALLS, "phone"), ref(TICKETS, "caller"), "phone format", "'(212) 555-0142' -> '212-555-0142'"),
    Transform(ref(RATES, "date"), ref(FUEL, "week_of"), "date format", "'2023-04-17' -> '04/17/2023'"),
    Transform(
        ref(CITY_INDEX, "city", "state"),
        ref(LISTINGS, "location"),
        "two columns as one",
        "'Austin', 'TX' -> 'Austin, TX'",
    ),
    Transform(
        ref(LEDGER, "entry"), ref(INVOICES, "invoice_no"), "code in another order", "'2023/00042' -> 'INV-00042-2023'"
    ),
)


def write(lake: LakeBuilder) -> None:
    """Write the price lists and the pairs of tables that need a transformation."""
    _price_lists(lake)
    _businesses(lake)
    _phones(lake)
    _dates(lake)
    _locations(lake)
    _invoices(lake)


def _price_lists(lake: LakeBuilder) -> None:
    codes = lake.shared("product_codes")
    for table, ours, theirs in PRICE_LISTS:
        rng = lake.rng(table)
        taken = [codes[i] for i in some(rng, len(codes), round(ours * len(codes)))]
        others = round(len(taken) / theirs) - len(taken)
        own = [
            f"{CATEGORIES[i % len(CATEGORIES)][0][:3].upper()}-X{k:04d}" for i, k in enumerate(some(rng, 9_999, others))
        ]
        every = np.array(taken + own, dtype=object)[rng.permutation(len(taken) + others)]
        n = len(every)
        lake.add(
            table,
            frame(
                item_code=every,
                price=decimals(rng.lognormal(3, 0.8, n), 2),
                currency=pick(rng, ("USD", "EUR", "GBP"), n, 1.0),
                min_order=rng.choice([1, 5, 10, 50], n),
            ),
        )


def _businesses(lake: LakeBuilder) -> None:
    rng = lake.rng(BUSINESSES)
    n = 300
    number = some(rng, 5_000, n)
    lake.add(
        BUSINESSES,
        frame(
            business_id=joined("businessid_", number),
            business_name=joined(pick(rng, ADJECTIVES, n), " ", pick(rng, NOUNS, n)),
            stars=rng.integers(2, 11, n) / 2,
            open_late=rng.random(n) < 0.3,
        ),
    )
    lake.entities(BUSINESSES, number)
    rng = lake.rng(REVIEWS)
    m = 650
    about = np.where(rng.random(m) < 0.95, number[rng.integers(0, n, m)], 5_000 + rng.integers(0, 400, m))
    lake.add(
        REVIEWS,
        frame(
            business_ref=joined("businessref_", about),
            rating=rng.integers(1, 6, m),
            said=[", ".join(p) for p in zip(pick(rng, PHRASES, m), pick(rng, PHRASES, m), strict=True)],
            written=days_between(rng, "2020-01-01", "2023-12-31", m),
        ),
    )
    lake.entities(REVIEWS, about)


def _phones(lake: LakeBuilder) -> None:
    rng = lake.rng(CALLS)
    n = 420
    number = some(rng, 780 * 10_000, n)
    area, line = 201 + number // 10_000, number % 10_000
    lake.add(
        CALLS,
        frame(
            phone=[f"({a}) 555-{x:04d}" for a, x in zip(area, line, strict=True)],
            agent=pick(rng, NOUNS[:12], n),
            best_hour=rng.integers(8, 20, n),
        ),
    )
    lake.entities(CALLS, number)
    rng = lake.rng(TICKETS)
    kept = some(rng, n, 350)
    lake.add(
        TICKETS,
        frame(
            caller=[f"{area[i]}-555-{line[i]:04d}" for i in kept],
            ticket=np.arange(len(kept)) * 2 + 90_001,
            minutes_on_hold=decimals(rng.gamma(2, 3, len(kept)), 1),
            solved=rng.random(len(kept)) < 0.8,
        ),
    )
    lake.entities(TICKETS, number[kept])


def _dates(lake: LakeBuilder) -> None:
    rng = lake.rng(RATES)
    every = days("2022-01-03", 700)
    lake.add(
        RATES,
        frame(
            date=every,
            eur_usd=decimals(1.08 + np.cumsum(rng.normal(0, 0.003, len(every))), 4),
            gbp_usd=decimals(1.25 + np.cumsum(rng.normal(0, 0.003, len(every))), 4),
        ),
    )
    lake.entities(RATES, np.arange(len(every)))
    rng = lake.rng(FUEL)
    weekly = np.arange(0, len(every), 7)
    shown = [f"{d.month:02d}/{d.day:02d}/{d.year}" for d in every[weekly].tolist()]
    lake.add(
        FUEL,
        frame(
            week_of=shown,
            regular=decimals(rng.normal(3.6, 0.3, len(weekly)), 3),
            diesel=holes(rng, decimals(rng.normal(4.2, 0.3, len(weekly)), 3), 0.04),
        ),
    )
    lake.entities(FUEL, weekly)


def _locations(lake: LakeBuilder) -> None:
    rng = lake.rng(LISTINGS)
    towns = cities()
    n = 170
    listed = some(rng, len(towns), n)
    lake.add(
        LISTINGS,
        frame(
            location=[f"{towns[i].city}, {towns[i].state.code}" for i in listed],
            asking_price=rng.lognormal(12.7, 0.4, n).astype(int),
            bedrooms=rng.integers(1, 6, n),
        ),
    )
    lake.entities(LISTINGS, listed)
    rng = lake.rng(CITY_INDEX)
    order = some(rng, len(towns), 190)
    lake.add(
        CITY_INDEX,
        frame(
            city=[towns[i].city for i in order],
            state=[towns[i].state.code for i in order],
            price_index=decimals(rng.normal(100, 18, len(order)), 1),
        ),
    )
    lake.entities(CITY_INDEX, order)


def _invoices(lake: LakeBuilder) -> None:
    rng = lake.rng(INVOICES)
    n = 380
    number = some(rng, 3 * 20_000, n)
    year, serial = 2021 + number // 20_000, number % 20_000
    lake.add(
        INVOICES,
        frame(
            invoice_no=[f"INV-{s:05d}-{y}" for s, y in zip(serial, year, strict=True)],
            net=decimals(rng.lognormal(6, 1, n), 2),
            due_days=rng.choice([14, 30, 60], n),
        ),
    )
    lake.entities(INVOICES, number)
    rng = lake.rng(LEDGER)
    kept = some(rng, n, 330)
    lake.add(
        LEDGER,
        frame(
            entry=[f"{year[i]}/{serial[i]:05d}" for i in kept],
            booked=decimals(rng.lognormal(6, 1, len(kept)), 2),
            account=rng.choice([4000, 4100, 4300], len(kept)),
        ),
    )
    lake.entities(LEDGER, number[kept])
