"""The shop: a database spread over files, with every kind of key a detector has to get right.

Keys of the same name and of names nothing alike, a self-reference, a composite key, keys with orphans; and small
sequential ids that are included in each other by chance only.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakescope.demo.builder import LakeBuilder, OpenTable
from lakescope.demo.chance import Rng, days_between, decimals, pick, some
from lakescope.demo.facts import Fact, Join, PlantedInclusion, ref
from lakescope.demo.formats import Style
from lakescope.demo.frames import blank, chunks, frame, holes, joined
from lakescope.demo.tables.places import places
from lakescope.demo.tables.usa import ZIP_CODES
from lakescope.demo.tables.world import COUNTRY_TABLE
from lakescope.demo.words import trade
from lakescope.demo.words.countries import COUNTRIES
from lakescope.demo.words.people import FIRST, FIRST_INTL, LAST, LAST_INTL

CUSTOMERS = "shop/customers.csv"
CATEGORIES = "shop/categories.csv"
SUPPLIERS = "shop/suppliers.csv"
PRODUCTS = "shop/products.csv"
WAREHOUSES = "shop/warehouses.csv"
STOCK = "shop/stock.tsv"
STAFF = "shop/staff.csv"
PROMOTIONS = "shop/promotions.csv"
ORDERS = "shop/orders.csv"
LINES = "shop/order_lines.parquet"
SHIPMENTS = "shop/shipments.csv"
PAYMENTS = "shop/payments.csv.gz"
RETURNS = "shop/returns.jsonl"

TABLES = (
    CUSTOMERS,
    CATEGORIES,
    SUPPLIERS,
    PRODUCTS,
    WAREHOUSES,
    STOCK,
    STAFF,
    PROMOTIONS,
    ORDERS,
    LINES,
    SHIPMENTS,
    PAYMENTS,
    RETURNS,
)

_N_CUSTOMERS, _N_PRODUCTS, _N_SUPPLIERS, _N_WAREHOUSES, _N_STAFF, _N_PROMOTIONS = 1200, 400, 60, 12, 45, 20
#: Order numbers start here; older ones were archived, which is where orphans come from.
_FIRST_ORDER = 500_001


def _key(child: tuple[str, ...], parent: tuple[str, ...], note: str = "", implied: bool = False) -> PlantedInclusion:
    return PlantedInclusion(ref(*child), ref(*parent), "shop", implied=implied, note=note)


def _chance(child: tuple[str, ...], parent: tuple[str, ...]) -> PlantedInclusion:
    return PlantedInclusion(
        ref(*child), ref(*parent), "shop", genuine=False, note="sequential ids that coincide by chance"
    )


FACTS: tuple[Fact, ...] = (
    _key((PRODUCTS, "category_id"), (CATEGORIES, "category_id"), "same name"),
    _key((PRODUCTS, "made_by"), (SUPPLIERS, "vendor_no"), "names nothing alike"),
    _key((STOCK, "wh"), (WAREHOUSES, "id"), "abbreviated name, small domain"),
    _key((STOCK, "item"), (PRODUCTS, "product_id"), "names nothing alike"),
    _key((STAFF, "reports_to"), (STAFF, "badge"), "self-reference with nulls"),
    _key((ORDERS, "customer_id"), (CUSTOMERS, "customer_id"), "same name"),
    _key((ORDERS, "taken_by"), (STAFF, "badge"), "names nothing alike"),
    _key((LINES, "order_id"), (ORDERS, "order_id"), "same name"),
    _key((LINES, "product_id"), (PRODUCTS, "product_id"), "same name"),
    _key((SHIPMENTS, "order_no", "line"), (LINES, "order_id", "line_no"), "composite key"),
    _key((SHIPMENTS, "order_no"), (ORDERS, "order_id"), "follows from the composite key", implied=True),
    _key((SHIPMENTS, "shipped_from"), (WAREHOUSES, "id"), "names nothing alike, small domain"),
    _key((PAYMENTS, "order_ref"), (ORDERS, "order_id"), "about 3% orphans: orders since archived"),
    _key((RETURNS, "client"), (CUSTOMERS, "customer_id"), "names nothing alike, about 12% orphans: closed accounts"),
    _key((RETURNS, "sku"), (PRODUCTS, "product_code"), "text codes"),
    _chance((WAREHOUSES, "id"), (CATEGORIES, "category_id")),
    _chance((CATEGORIES, "category_id"), (PROMOTIONS, "promo_id")),
    _chance((PROMOTIONS, "promo_id"), (PRODUCTS, "product_id")),
    _chance((WAREHOUSES, "id"), (PRODUCTS, "product_id")),
    _chance((PRODUCTS, "product_id"), (PAYMENTS, "payment_id")),
    Join(ref(CUSTOMERS, "zip"), ref(ZIP_CODES, "zip"), "exact", note="codes with leading zeros"),
    Join(ref(SUPPLIERS, "country"), ref(COUNTRY_TABLE, "country"), "exact"),
)


def write(lake: LakeBuilder) -> None:
    """Write the whole shop; leave customers, product codes and prices for others."""
    lake.database("shop", TABLES)
    _parties(lake)
    _goods(lake)
    _sales(lake)
    _returns(lake)


def _parties(lake: LakeBuilder) -> None:
    rng = lake.rng(CUSTOMERS)
    n = _N_CUSTOMERS
    where = [places()[i] for i in rng.integers(0, len(places()), n)]
    first, last = pick(rng, FIRST + FIRST_INTL, n), pick(rng, LAST + LAST_INTL, n)
    ids = 10_001 + np.arange(n)
    customers = frame(
        customer_id=ids,
        first_name=first,
        last_name=last,
        city=[p.city for p in where],
        state=[p.state.code for p in where],
        zip=[p.zip for p in where],
        phone=holes(rng, joined("(", rng.integers(201, 989, n), ") 555-", rng.integers(1000, 9999, n)), 0.07),
        signed_up=days_between(rng, "2015-01-01", "2023-12-31", n),
        newsletter=rng.random(n) < 0.4,
    )
    lake.add(CUSTOMERS, customers)
    lake.share("customers", customers)

    rng = lake.rng(SUPPLIERS)
    n = _N_SUPPLIERS
    names = joined(
        pick(rng, trade.ADJECTIVES, n), " ", pick(rng, trade.NOUNS, n), " ", pick(rng, trade.COMPANY_ENDINGS, n)
    )
    lake.add(
        SUPPLIERS,
        frame(
            vendor_no=[f"V-{i:04d}" for i in range(1, n + 1)],
            company=names,
            country=[COUNTRIES[i].name for i in rng.integers(0, len(COUNTRIES), n)],
            rating=decimals(rng.uniform(1, 5, n), 1),
        ),
        Style(delimiter=";"),
    )

    rng = lake.rng(STAFF)
    n = _N_STAFF
    badge = 7_000 + np.sort(some(rng, 900, n))
    boss = np.array([badge[0 if i < 6 else rng.integers(0, 6)] for i in range(n)])
    lake.add(
        STAFF,
        frame(
            badge=badge,
            staff_name=joined(pick(rng, FIRST, n), " ", pick(rng, LAST, n)),
            role=pick(rng, trade.ROLES, n),
            reports_to=blank(boss, np.arange(n) == 0),
        ),
    )
    lake.share("badges", badge)


def _goods(lake: LakeBuilder) -> None:
    rng = lake.rng(CATEGORIES)
    n = len(trade.CATEGORIES)
    lake.add(
        CATEGORIES,
        frame(
            category_id=np.arange(1, n + 1),
            category=[c for c, _ in trade.CATEGORIES],
            department=[d for _, d in trade.CATEGORIES],
        ),
    )

    rng = lake.rng(PRODUCTS)
    n = _N_PRODUCTS
    kinds = np.array([category for category, _ in trade.CATEGORIES], dtype=object)
    group = rng.integers(0, len(trade.CATEGORIES), n)
    codes = np.array(
        [
            f"{trade.CATEGORIES[g][0][:3].upper()}-{k:05d}"
            for g, k in zip(group, some(rng, 90_000, n) + 10, strict=True)
        ],
        dtype=object,
    )
    price = decimals(rng.lognormal(3.2, 0.9, n), 2)
    lake.add(
        PRODUCTS,
        frame(
            product_id=np.arange(1, n + 1),
            product_code=codes,
            product_name=[
                f"{a} {kind.removesuffix('s')} '{b}'" if kind in ("Coffee", "Tea", "Chairs") else f"{a} {b}, {kind}"
                for a, b, kind in zip(
                    pick(rng, trade.ADJECTIVES, n), pick(rng, trade.NOUNS, n), kinds[group], strict=True
                )
            ],
            category_id=group + 1,
            made_by=[f"V-{i:04d}" for i in rng.integers(1, _N_SUPPLIERS + 1, n)],
            list_price=price,
            weight_kg=holes(rng, decimals(rng.gamma(2, 0.8, n), 3), 0.1),
            introduced=days_between(rng, "2012-01-01", "2023-06-30", n),
        ),
    )
    lake.share("product_codes", codes)
    lake.share("prices", price)

    rng = lake.rng(WAREHOUSES)
    n = _N_WAREHOUSES
    lake.add(
        WAREHOUSES,
        frame(
            id=np.arange(1, n + 1),
            city=[places()[i].city for i in some(rng, len(places()), n)],
            opened=days_between(rng, "1990-01-01", "2020-12-31", n),
            square_metres=rng.integers(800, 12_000, n),
        ),
    )

    rng = lake.rng(STOCK)
    cells = np.sort(some(rng, _N_WAREHOUSES * _N_PRODUCTS, 2_000))
    lake.add(
        STOCK,
        frame(
            wh=cells // _N_PRODUCTS + 1,
            item=cells % _N_PRODUCTS + 1,
            on_hand=rng.negative_binomial(2, 0.04, len(cells)),
            reorder_at=holes(rng, rng.integers(5, 60, len(cells)), 0.2),
        ),
    )

    rng = lake.rng(PROMOTIONS)
    n = _N_PROMOTIONS
    starts = days_between(rng, "2021-01-01", "2023-11-30", n)
    lake.add(
        PROMOTIONS,
        frame(
            promo_id=np.arange(1, n + 1),
            title=joined(pick(rng, trade.ADJECTIVES, n), " ", pick(rng, ("week", "deals", "sale"), n)),
            starts=starts,
            ends=starts + rng.integers(3, 21, n),
            percent_off=rng.choice([5, 10, 15, 20, 25, 30], n),
        ),
    )


def _sales(lake: LakeBuilder) -> None:
    """Orders with their lines, shipments and payments, chunk by chunk so that any scale fits in memory."""
    rng = lake.rng(ORDERS)
    customers = lake.shared("customers")["customer_id"].to_numpy()
    badges, prices = lake.shared("badges"), lake.shared("prices")
    next_order, next_payment = _FIRST_ORDER, 1
    with (
        lake.open(ORDERS) as orders,
        lake.open(LINES) as lines,
        lake.open(SHIPMENTS) as shipments,
        lake.open(PAYMENTS) as payments,
    ):
        for _, count in chunks(lake.scaled(4_000), 20_000):
            order_id = next_order + np.cumsum(rng.integers(1, 4, count)) - 1
            next_order = int(order_id[-1]) + 1
            day = np.sort(days_between(rng, "2021-01-01", "2023-12-31", count))
            per_order = rng.choice(np.arange(1, 6), count, p=[0.35, 0.3, 0.2, 0.1, 0.05])
            total = _write_lines(rng, lines, shipments, order_id, per_order, day, prices)
            orders.write(
                frame(
                    order_id=order_id,
                    customer_id=customers[rng.integers(0, len(customers), count)],
                    taken_by=badges[rng.integers(0, len(badges), count)],
                    order_date=day,
                    status=pick(rng, trade.ORDER_STATES, count, 0.8),
                    total=decimals(total, 2),
                    note=holes(rng, pick(rng, trade.PHRASES, count), 0.7),
                )
            )
            next_payment = _write_payments(rng, payments, order_id, total, day, next_payment)


def _write_lines(
    rng: Rng,
    lines: OpenTable,
    shipments: OpenTable,
    order_id: npt.NDArray[np.int64],
    per_order: npt.NDArray[np.int64],
    day: npt.NDArray[np.datetime64],
    prices: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:
    """The lines of these orders, and shipments of four lines in five; returns the total of each order."""
    owner = np.repeat(np.arange(len(order_id)), per_order)
    line_no = np.arange(len(owner)) - np.repeat(np.cumsum(per_order) - per_order, per_order) + 1
    product = rng.integers(1, len(prices) + 1, len(owner))
    quantity = rng.geometric(0.45, len(owner))
    discount = rng.choice([0.0, 0.05, 0.1], len(owner), p=[0.8, 0.12, 0.08])
    unit_price = prices[product - 1]
    lines.write(
        frame(
            order_id=order_id[owner],
            line_no=line_no.astype(np.int32),
            product_id=product,
            quantity=quantity.astype(np.int32),
            unit_price=unit_price,
            discount=blank(discount, rng.random(len(owner)) < 0.03),
        )
    )
    sent = np.flatnonzero(rng.random(len(owner)) < 0.8)
    shipments.write(
        frame(
            order_no=order_id[owner[sent]],
            line=line_no[sent],
            shipped_from=rng.integers(1, _N_WAREHOUSES + 1, len(sent)),
            shipped_on=day[owner[sent]] + rng.integers(0, 9, len(sent)),
            carrier=holes(rng, pick(rng, trade.CARRIERS, len(sent), 0.5), 0.05),
        )
    )
    return np.bincount(owner, quantity * unit_price * (1 - discount), minlength=len(order_id)).astype(np.float64)


def _write_payments(
    rng: Rng,
    payments: OpenTable,
    order_id: npt.NDArray[np.int64],
    total: npt.NDArray[np.float64],
    day: npt.NDArray[np.datetime64],
    first: int,
) -> int:
    """One payment for most orders, and some for orders that are no longer there."""
    paid = np.flatnonzero(rng.random(len(order_id)) < 0.88)
    lost = rng.random(len(paid)) < 0.03
    reference = np.where(lost, rng.integers(100_000, _FIRST_ORDER - 1, len(paid)), order_id[paid])
    moment = day[paid].astype("datetime64[s]") + rng.integers(0, 86_400, len(paid))
    payments.write(
        frame(
            payment_id=np.arange(first, first + len(paid)),
            order_ref=reference,
            method=pick(rng, trade.PAYMENT_METHODS, len(paid), 0.9),
            amount=decimals(total[paid], 2),
            paid_at=moment,
        )
    )
    return first + len(paid)


def _returns(lake: LakeBuilder) -> None:
    rng = lake.rng(RETURNS)
    customers: pa.Table = lake.shared("customers")
    known = customers["customer_id"].to_numpy()
    codes = lake.shared("product_codes")
    n = 700
    closed = rng.random(n) < 0.12
    client = np.where(closed, rng.integers(2_000, 9_999, n), known[rng.integers(0, len(known), n)])
    lake.add(
        RETURNS,
        frame(
            return_no=[f"R{i:06d}" for i in 1000 + np.arange(n) * 3],
            client=client,
            sku=codes[rng.integers(0, len(codes), n)],
            reason=holes(rng, pick(rng, trade.RETURN_REASONS, n), 0.06),
            returned_on=days_between(rng, "2021-02-01", "2023-12-31", n),
            refund=decimals(rng.lognormal(3, 0.8, n), 2),
        ),
    )
