"""Countries and country-by-year statistics: exact joins, look-ups, and correlations that need a composite key."""

from __future__ import annotations

import unicodedata

import numpy as np

from lakescope.demo.builder import LakeBuilder
from lakescope.demo.chance import decimals, some
from lakescope.demo.facts import Correlation, Fact, Join, Lookup, ref
from lakescope.demo.frames import frame, holes
from lakescope.demo.words.countries import COUNTRIES

COUNTRY_TABLE = "world/countries.csv"
CAPITALS = "world/capital_cities.csv"
HERITAGE = "world/heritage_sites.csv"
GROWTH = "world/gdp_growth.csv"
POWER = "world/electricity_growth.parquet"
UNEMPLOYMENT = "world/unemployment_change.tsv"
VEHICLES = "world/vehicle_sales_index.csv"
RAIN = "world/rain_anomaly.csv"

_GROWTH_KEY = ref(GROWTH, "country", "year")

FACTS: tuple[Fact, ...] = (
    Join(ref(GROWTH, "country"), ref(COUNTRY_TABLE, "country"), "exact"),
    Join(
        ref(HERITAGE, "country"),
        ref(COUNTRY_TABLE, "country"),
        "exact",
        note="the left side is written in decomposed Unicode (NFD)",
    ),
    Join(ref(VEHICLES, "nation", "yr"), _GROWTH_KEY, "exact", note="composite key, other column names"),
    Lookup(ref(COUNTRY_TABLE, "country"), ref(CAPITALS, "city"), "country -> capital"),
    Correlation(_GROWTH_KEY, "gdp_growth_pct", ref(POWER, "country", "year"), "electricity_growth_pct", "linear"),
    Correlation(_GROWTH_KEY, "gdp_growth_pct", ref(UNEMPLOYMENT, "country", "year"), "unemployment_change", "negative"),
    Correlation(_GROWTH_KEY, "gdp_growth_pct", ref(VEHICLES, "nation", "yr"), "sales_index", "monotone"),
    Correlation(_GROWTH_KEY, "gdp_growth_pct", ref(RAIN, "country", "year"), "rain_anomaly_mm", "none"),
    Correlation(
        ref(GROWTH, "country"),
        "gdp_growth_pct",
        ref(POWER, "country"),
        "electricity_growth_pct",
        "weak",
        note="the same columns on one key only: the correlation needs country and year",
    ),
)


def write(lake: LakeBuilder) -> None:
    """Write the countries and their statistics."""
    names = np.array([c.name for c in COUNTRIES], dtype=object)
    _reference(lake, names)
    _statistics(lake, names)


def _reference(lake: LakeBuilder, names: np.ndarray) -> None:
    count = len(COUNTRIES)
    rng = lake.rng(COUNTRY_TABLE)
    lake.add(
        COUNTRY_TABLE,
        frame(
            country=names,
            iso2=[c.iso2 for c in COUNTRIES],
            iso3=[c.iso3 for c in COUNTRIES],
            continent=[c.continent for c in COUNTRIES],
            calling_code=[int(c.calling) for c in COUNTRIES],
            area_km2=rng.lognormal(11.5, 1.6, count).astype(int),
            population=rng.lognormal(15.8, 1.5, count).astype(int),
            landlocked=rng.random(count) < 0.25,
        ),
    )
    lake.entities(COUNTRY_TABLE, np.arange(count))

    rng = lake.rng(CAPITALS)
    order = rng.permutation(count)
    lake.add(
        CAPITALS,
        frame(
            city=[COUNTRIES[i].capital for i in order],
            metres_above_sea=rng.integers(0, 3600, count),
            metro_population=holes(rng, rng.lognormal(14, 1, count).astype(int), 0.06),
            founded=rng.integers(-600, 1990, count),
        ),
    )
    lake.entities(CAPITALS, order)

    rng = lake.rng(HERITAGE)
    chosen = some(rng, count, 120)
    lake.add(
        HERITAGE,
        frame(
            country=[unicodedata.normalize("NFD", COUNTRIES[i].name) for i in chosen],
            sites=rng.poisson(6, len(chosen)) + 1,
            first_listed=rng.integers(1978, 2021, len(chosen)),
        ),
    )


def _statistics(lake: LakeBuilder, names: np.ndarray) -> None:
    """One hidden factor per country and year, with effects of country and year alone that hide it on either key."""
    years = np.arange(2000, 2023)
    country = np.repeat(names, len(years))
    year = np.tile(years, len(names))
    size = len(country)
    rng = lake.rng("world/factor")
    factor = rng.normal(0, 1, size)

    def effects(rng: np.random.Generator) -> np.ndarray:
        by_country, by_year = rng.normal(0, 0.3, len(names)), rng.normal(0, 0.2, len(years))
        return np.repeat(by_country, len(years)) + np.tile(by_year, len(names))

    def save(table: str, key: tuple[str, str], name: str, values: np.ndarray, share: float) -> None:
        rng = lake.rng(table + "/rows")
        kept = np.sort(some(rng, size, int(size * share)))
        lake.add(table, frame(**{key[0]: country[kept], key[1]: year[kept], name: values[kept]}))

    key = ("country", "year")
    rng = lake.rng(GROWTH)
    save(GROWTH, key, "gdp_growth_pct", decimals(2.4 + 2.2 * (factor + effects(rng)), 2), 1.0)
    rng = lake.rng(POWER)
    noise = rng.normal(0, 0.25, size)
    save(POWER, key, "electricity_growth_pct", decimals(1.8 + 1.9 * (factor + effects(rng) + noise), 2), 0.9)
    rng = lake.rng(UNEMPLOYMENT)
    noise = rng.normal(0, 0.3, size)
    save(UNEMPLOYMENT, key, "unemployment_change", decimals(-0.7 * (factor + effects(rng) + noise), 3), 0.85)
    rng = lake.rng(VEHICLES)
    noise = rng.normal(0, 0.2, size)
    save(VEHICLES, ("nation", "yr"), "sales_index", decimals(20 * np.exp(1.3 * (factor + noise)), 1), 0.95)
    rng = lake.rng(RAIN)
    save(RAIN, key, "rain_anomaly_mm", decimals(rng.normal(0, 60, size), 1), 0.9)
