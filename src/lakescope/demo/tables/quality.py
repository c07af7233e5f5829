"""Tables with functional dependencies, clean and damaged by nulls, and one whose missing values wear a disguise."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lakescope.demo.builder import LakeBuilder
from lakescope.demo.chance import days_between, decimals, pick
from lakescope.demo.facts import Fact, PlantedDependency, PlantedDisguise, ref
from lakescope.demo.frames import blank, frame
from lakescope.demo.tables.places import cities, places
from lakescope.demo.words.trade import AIRCRAFT, AIRLINES, STREET_KINDS, STREETS

ADDRESSES, ADDRESSES_CLEAN = "quality/addresses.csv", "quality/addresses_clean.csv"
FLIGHTS, FLIGHTS_CLEAN = "quality/flights.csv", "quality/flights_clean.csv"
PATIENTS = "quality/patients.csv"

FACTS: tuple[Fact, ...] = (
    PlantedDependency(
        ADDRESSES_CLEAN,
        ADDRESSES,
        (
            (("zip",), "city"),
            (("city",), "county"),
            (("county",), "state"),
            (("city",), "state"),
            (("zip",), "state"),
            (("state",), "state_name"),
            (("state",), "region"),
        ),
        "each cell of the right sides missing with 8%",
    ),
    PlantedDependency(
        FLIGHTS_CLEAN,
        FLIGHTS,
        (
            (("airline_code",), "airline"),
            (("airline",), "airline_code"),
            (("flight_no",), "airline_code"),
            (("flight_no",), "origin"),
            (("flight_no",), "destination"),
            (("aircraft",), "seats"),
            (("flight_no", "day"), "aircraft"),
        ),
        "few rows hold most of the nulls (Pareto)",
    ),
    PlantedDisguise(ref(PATIENTS, "age"), "999", "no age given"),
    PlantedDisguise(ref(PATIENTS, "smoker"), "unknown", "not asked"),
    PlantedDisguise(ref(PATIENTS, "born"), "1900-01-01", "date filled in by the form"),
    PlantedDisguise(ref(PATIENTS, "weight_kg"), "-1", "scale was out of order"),
)


def write(lake: LakeBuilder) -> None:
    """Write the clean, the damaged and the disguised tables."""
    _addresses(lake)
    _flights(lake)
    _patients(lake)


def _addresses(lake: LakeBuilder) -> None:
    rng = lake.rng(ADDRESSES_CLEAN)
    n = 1_100
    where = [places()[i] for i in rng.integers(0, 360, n)]
    clean = frame(
        street=[
            f"{h} {s} {k}"
            for h, s, k in zip(rng.integers(1, 400, n), pick(rng, STREETS, n), pick(rng, STREET_KINDS, n), strict=True)
        ],
        zip=[p.zip for p in where],
        city=[p.city for p in where],
        county=[p.county for p in where],
        state=[p.state.code for p in where],
        state_name=[p.state.name for p in where],
        region=[p.state.region for p in where],
        residents=rng.integers(1, 7, n),
    )
    lake.add(ADDRESSES_CLEAN, clean)
    rng = lake.rng(ADDRESSES)
    hit = {"city", "county", "state", "state_name", "region"}
    lake.add(
        ADDRESSES,
        pa.table(
            {
                name: blank(clean[name].combine_chunks(), rng.random(n) < 0.08) if name in hit else clean[name]
                for name in clean.column_names
            }
        ),
    )


def _flights(lake: LakeBuilder) -> None:
    rng = lake.rng(FLIGHTS_CLEAN)
    routes, n = 70, 900
    line = rng.integers(0, len(AIRLINES), routes)
    towns = [p.city for p in cities()[:40]]
    ends = np.array([rng.permutation(len(towns))[:2] for _ in range(routes)])
    slots = np.sort(rng.permutation(routes * 60)[:n])
    route, day = slots % routes, np.datetime64("2023-03-01", "D") + slots // routes
    plane = rng.integers(0, len(AIRCRAFT), n)
    clean = frame(
        flight_no=[f"{AIRLINES[line[r]][0]}{100 + r}" for r in route],
        day=day,
        airline_code=[AIRLINES[line[r]][0] for r in route],
        airline=[AIRLINES[line[r]][1] for r in route],
        origin=[towns[ends[r][0]] for r in route],
        destination=[towns[ends[r][1]] for r in route],
        aircraft=[AIRCRAFT[p][0] for p in plane],
        seats=[AIRCRAFT[p][1] for p in plane],
        minutes_late=rng.poisson(12, n),
    )
    lake.add(FLIGHTS_CLEAN, clean)
    rng = lake.rng(FLIGHTS)
    share = np.minimum(rng.pareto(1.2, n) * 0.03, 0.9)
    keep = {"day", "minutes_late"}
    lake.add(
        FLIGHTS,
        pa.table(
            {
                name: clean[name] if name in keep else blank(clean[name].combine_chunks(), rng.random(n) < share)
                for name in clean.column_names
            }
        ),
    )


def _patients(lake: LakeBuilder) -> None:
    rng = lake.rng(PATIENTS)
    n = 800
    born = np.where(rng.random(n) < 0.05, np.datetime64("1900-01-01"), days_between(rng, "1935-01-01", "2005-12-31", n))
    lake.add(
        PATIENTS,
        frame(
            patient=np.arange(n) + 60_001,
            born=born,
            age=np.where(rng.random(n) < 0.07, 999, rng.integers(18, 89, n)),
            smoker=np.where(rng.random(n) < 0.12, "unknown", pick(rng, ("yes", "no"), n)).astype(object),
            weight_kg=np.where(rng.random(n) < 0.04, -1.0, decimals(rng.normal(76, 13, n), 1)),
            visits=rng.poisson(3, n),
        ),
    )
