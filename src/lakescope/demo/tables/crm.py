"""Customer relations in one SQLite file: several tables, keys not declared."""

from __future__ import annotations

import numpy as np

from lakescope.demo.builder import LakeBuilder
from lakescope.demo.chance import days_between, decimals, pick
from lakescope.demo.facts import Fact, Join, PlantedInclusion, ref
from lakescope.demo.frames import blank, frame, joined
from lakescope.demo.tables.world import COUNTRY_TABLE
from lakescope.demo.words import trade
from lakescope.demo.words.countries import COUNTRIES
from lakescope.demo.words.people import FIRST, LAST

_FILE = "crm/crm.sqlite"
ACCOUNTS, CONTACTS, DEALS, ACTIVITIES = (f"{_FILE}::{name}" for name in ("accounts", "contacts", "deals", "activities"))

FACTS: tuple[Fact, ...] = (
    PlantedInclusion(ref(CONTACTS, "company"), ref(ACCOUNTS, "account_no"), "crm", note="names nothing alike"),
    PlantedInclusion(ref(DEALS, "account_no"), ref(ACCOUNTS, "account_no"), "crm", note="same name"),
    PlantedInclusion(ref(ACTIVITIES, "who"), ref(CONTACTS, "contact_id"), "crm", note="names nothing alike"),
    PlantedInclusion(ref(ACTIVITIES, "deal"), ref(DEALS, "deal_id"), "crm", note="nullable"),
    Join(ref(ACCOUNTS, "country"), ref(COUNTRY_TABLE, "country"), "exact"),
)


def write(lake: LakeBuilder) -> None:
    """Write the four tables of the database file."""
    lake.database("crm", (ACCOUNTS, CONTACTS, DEALS, ACTIVITIES))
    rng = lake.rng(ACCOUNTS)
    n = 240
    account = np.array([f"ACC{i}" for i in 3000 + 7 * np.arange(n)], dtype=object)
    lake.add(
        ACCOUNTS,
        frame(
            account_no=account,
            account_name=joined(
                pick(rng, trade.ADJECTIVES, n), " ", pick(rng, trade.NOUNS, n), " ", pick(rng, trade.COMPANY_ENDINGS, n)
            ),
            industry=pick(rng, trade.INDUSTRIES, n),
            country=[COUNTRIES[i].name for i in rng.integers(0, len(COUNTRIES), n)],
            since=days_between(rng, "2010-01-01", "2023-12-31", n),
        ),
    )

    rng = lake.rng(CONTACTS)
    m = 520
    contact = 40_000 + 3 * np.arange(m)
    lake.add(
        CONTACTS,
        frame(
            contact_id=contact,
            company=account[rng.integers(0, n, m)],
            contact_name=joined(pick(rng, FIRST, m), " ", pick(rng, LAST, m)),
            title=pick(rng, trade.ROLES, m),
        ),
    )

    rng = lake.rng(DEALS)
    k = 380
    deal = np.array([f"D-{i:05d}" for i in 1 + np.arange(k)], dtype=object)
    lake.add(
        DEALS,
        frame(
            deal_id=deal,
            account_no=account[rng.integers(0, n, k)],
            stage=pick(rng, ("lead", "offer", "negotiation", "won", "lost"), k),
            amount=decimals(rng.lognormal(9, 1, k), 2),
            closes=days_between(rng, "2023-01-01", "2024-12-31", k),
        ),
    )

    rng = lake.rng(ACTIVITIES)
    a = 1_500
    lake.add(
        ACTIVITIES,
        frame(
            activity_no=np.arange(1, a + 1) * 10,
            who=contact[rng.integers(0, m, a)],
            deal=blank(deal[rng.integers(0, k, a)], rng.random(a) < 0.4),
            kind=pick(rng, ("call", "mail", "visit", "demo"), a),
            happened_on=days_between(rng, "2022-01-01", "2023-12-31", a),
        ),
    )
