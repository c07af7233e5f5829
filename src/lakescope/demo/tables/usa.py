"""States, ZIP codes and census-like tables of the USA."""

from __future__ import annotations

import numpy as np

from lakescope.demo.builder import LakeBuilder
from lakescope.demo.chance import decimals, some
from lakescope.demo.facts import Fact, Join, Lookup, ref
from lakescope.demo.formats import Style
from lakescope.demo.frames import frame, holes
from lakescope.demo.tables.places import cities, places
from lakescope.demo.words.usa import STATES

STATE_TABLE = "usa/states.csv"
CAPITALS = "usa/state_capitals.csv"
ZIP_CODES = "usa/zip_codes.csv"
POPULATION = "usa/population_by_state.csv"
INCOME = "usa/income_by_county.csv"
JOBLESS = "usa/jobless_rate.csv"

FACTS: tuple[Fact, ...] = (
    Lookup(ref(STATE_TABLE, "state"), ref(CAPITALS, "capital"), "state -> capital"),
    Join(ref(ZIP_CODES, "state_code"), ref(STATE_TABLE, "code"), "exact", note="two-letter codes"),
    Join(ref(POPULATION, "state"), ref(STATE_TABLE, "state"), "exact"),
    Join(ref(INCOME, "county"), ref(ZIP_CODES, "county"), "exact"),
)


def write(lake: LakeBuilder) -> None:
    """Write the states, ZIP codes and census-like tables."""
    rng = lake.rng(STATE_TABLE)
    count = len(STATES)
    lake.add(
        STATE_TABLE,
        frame(
            state=[s.name for s in STATES],
            code=[s.code for s in STATES],
            region=[s.region for s in STATES],
            electoral_votes=rng.integers(3, 55, count),
            coast=rng.random(count) < 0.46,
        ),
    )
    lake.entities(STATE_TABLE, np.arange(count))

    rng = lake.rng(CAPITALS)
    order = rng.permutation(count)
    lake.add(
        CAPITALS,
        frame(
            capital=[STATES[i].capital for i in order],
            elevation_ft=rng.integers(3, 7200, count),
            visitors_thousand=decimals(rng.gamma(2, 300, count), 1),
        ),
    )
    lake.entities(CAPITALS, order)

    rng = lake.rng(ZIP_CODES)
    all_places = places()
    lake.add(
        ZIP_CODES,
        frame(
            zip=[p.zip for p in all_places],
            city=[p.city for p in all_places],
            county=[p.county for p in all_places],
            state_code=[p.state.code for p in all_places],
            households=rng.lognormal(8, 0.7, len(all_places)).astype(int),
        ),
    )

    rng = lake.rng(POPULATION)
    year = np.repeat([1990, 2000, 2010, 2020], count)
    lake.add(
        POPULATION,
        frame(
            state=np.tile([s.name for s in STATES], 4),
            census_year=year,
            population=rng.lognormal(15, 1, 4 * count).astype(int),
            median_age=decimals(rng.normal(36, 3, 4 * count), 1),
        ),
        Style(delimiter=";"),
    )

    rng = lake.rng(INCOME)
    counties = sorted({p.county for p in cities()})
    kept = [counties[i] for i in some(rng, len(counties), int(0.95 * len(counties)))]
    lake.add(
        INCOME,
        frame(
            county=kept,
            median_income=holes(rng, rng.normal(58_000, 11_000, len(kept)).astype(int), 0.08),
            poverty_rate=holes(rng, decimals(rng.normal(13, 4, len(kept)), 1), 0.05),
        ),
        Style(null="NA"),
    )

    rng = lake.rng(JOBLESS)
    months = np.arange("2018-01", "2024-01", dtype="datetime64[M]").astype("datetime64[D]")
    lake.add(
        JOBLESS,
        frame(
            state=np.repeat([s.name for s in STATES], len(months)),
            month=np.tile(months, count),
            rate=decimals(rng.gamma(9, 0.55, count * len(months)), 1),
        ),
    )
