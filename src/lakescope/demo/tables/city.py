"""Weather, bikes, energy and sales by day: what correlates after a join on the date, and what only seems to."""

from __future__ import annotations

import numpy as np

from lakescope.demo.builder import LakeBuilder
from lakescope.demo.chance import days, decimals, pick
from lakescope.demo.facts import Correlation, Fact, Join, ref
from lakescope.demo.frames import chunks, frame, holes
from lakescope.demo.words.trade import ADJECTIVES, NOUNS

WEATHER = "weather/daily_weather.parquet"
SENSORS = "weather/sensors.csv"
READINGS = "weather/sensor_readings.csv.zst"
RIDES = "mobility/bike_rides_daily.csv"
STATIONS = "mobility/bike_stations.csv"
TRIPS = "mobility/bike_trips.csv.gz"
TRANSIT = "mobility/transit_delays.csv"
PARKING = "mobility/parking_daily.feather"
GAS = "energy/gas_demand.csv"
SOLAR = "energy/solar_output.orc"
ICE_CREAM = "retail/ice_cream_sales.csv"
LOTTERY = "misc/lottery_draws.tsv"
STREAMING = "economy/streaming_subscribers.csv"
CHEESE = "economy/cheese_imports.csv"

_RIDES_KEY = ref(RIDES, "date")

FACTS: tuple[Fact, ...] = (
    Join(_RIDES_KEY, ref(WEATHER, "date"), "exact", note="ISO text on the left, typed dates on the right"),
    Join(ref(TRIPS, "from_station"), ref(STATIONS, "station"), "exact"),
    Join(ref(READINGS, "sensor"), ref(SENSORS, "sensor_id"), "exact"),
    Correlation(_RIDES_KEY, "rides", ref(WEATHER, "date"), "mean_temp_c", "linear"),
    Correlation(_RIDES_KEY, "rides", ref(WEATHER, "date"), "rain_mm", "negative", note="weak"),
    Correlation(_RIDES_KEY, "rides", ref(TRANSIT, "day"), "delay_minutes", "negative", note="both follow the weather"),
    Correlation(_RIDES_KEY, "rides", ref(LOTTERY, "draw_date"), "number", "none"),
    Correlation(ref(WEATHER, "date"), "mean_temp_c", ref(ICE_CREAM, "sold_on"), "scoops", "monotone"),
    Correlation(
        ref(WEATHER, "date"),
        "mean_temp_c",
        ref(GAS, "date"),
        "gas_mwh",
        "monotone",
        note="falling: the colder, the steeper",
    ),
    Correlation(ref(WEATHER, "date"), "sunshine_hours", ref(SOLAR, "date"), "output_kwh", "linear"),
    Correlation(
        ref(WEATHER, "date"),
        "mean_temp_c",
        ref(TRIPS, "ride_date"),
        "minutes",
        "linear",
        note="many trips a day: needs an aggregate per date",
    ),
    Correlation(ref(WEATHER, "date"), "mean_temp_c", ref(PARKING, "date"), "occupancy", "none"),
    Correlation(
        ref(STREAMING, "month"),
        "subscribers_thousand",
        ref(CHEESE, "month"),
        "tonnes",
        "trend",
        note="both only grow with time",
    ),
)


def write(lake: LakeBuilder) -> None:
    """Write the daily and monthly series, the trips and the readings."""
    _by_day(lake)
    _trips(lake)
    _readings(lake)
    _by_month(lake)


def _by_day(lake: LakeBuilder) -> None:
    rng = lake.rng(WEATHER)
    date = days("2021-01-01", 1095)
    n = len(date)
    temp = 11 - 9.5 * np.cos(2 * np.pi * (np.arange(n) - 18) / 365.25) + rng.normal(0, 3.2, n)
    rain = np.where(rng.random(n) < 0.45, rng.gamma(0.8, 6.0, n), 0.0)
    sun = np.clip(6.5 + 0.28 * (temp - 11) - 0.25 * rain + rng.normal(0, 1.6, n), 0, 15)
    lake.add(
        WEATHER,
        frame(
            date=date,
            mean_temp_c=decimals(temp, 1),
            rain_mm=decimals(rain, 1),
            sunshine_hours=decimals(sun, 1),
            wind_kmh=holes(rng, decimals(rng.gamma(4, 4, n), 1), 0.03),
        ),
    )
    lake.share("temperature", temp)

    rng = lake.rng(RIDES)
    late = slice(365, None)
    rides = np.clip(2600 + 150 * temp - 55 * rain + rng.normal(0, 420, n), 40, None).astype(int)
    members = (rides * rng.uniform(0.5, 0.8, n)).astype(int)
    lake.add(RIDES, frame(date=date[late], rides=rides[late], member_rides=members[late]))

    rng = lake.rng(TRANSIT)
    delay = np.clip(70 - 2.1 * temp + 0.8 * rain + rng.normal(0, 7, n), 0, None)
    lake.add(TRANSIT, frame(day=date[200:], delay_minutes=decimals(delay[200:], 1), cancelled=rng.poisson(3, n - 200)))

    rng = lake.rng(PARKING)
    lake.add(PARKING, frame(date=date, occupancy=decimals(rng.beta(5, 3, n), 3), garage=pick(rng, NOUNS[:9], n)))

    rng = lake.rng(GAS)
    gas = 60 + 420 * np.exp(-temp / 7) * rng.lognormal(0, 0.06, n)
    lake.add(GAS, frame(date=date[:900], gas_mwh=decimals(gas[:900], 1)))

    rng = lake.rng(SOLAR)
    kept = np.sort(rng.permutation(n)[:1000])
    output = np.clip(38 * sun + rng.normal(0, 25, n), 0, None)
    lake.add(
        SOLAR, frame(date=date[kept], output_kwh=decimals(output[kept], 1), panels=rng.integers(80, 96, len(kept)))
    )

    rng = lake.rng(ICE_CREAM)
    scoops = (40 * np.exp(temp / 5) * rng.lognormal(0, 0.12, n)).astype(int) + 5
    lake.add(ICE_CREAM, frame(sold_on=date[180:], scoops=scoops[180:], kiosk=pick(rng, NOUNS[20:30], n - 180)))

    rng = lake.rng(LOTTERY)
    lake.add(LOTTERY, frame(draw_date=date, number=rng.integers(1, 50, n), jackpot=rng.integers(10, 400, n) * 10_000))


def _trips(lake: LakeBuilder) -> None:
    rng = lake.rng(STATIONS)
    names = [f"{a} & {b}" for a, b in zip(ADJECTIVES[:60], NOUNS[5:65], strict=True)]
    lake.add(
        STATIONS,
        frame(
            station=names,
            docks=rng.integers(8, 40, len(names)),
            latitude=decimals(rng.normal(45.5, 0.04, len(names)), 5),
            longitude=decimals(rng.normal(-122.6, 0.05, len(names)), 5),
        ),
    )
    temp = lake.shared("temperature")[365:]
    first = np.datetime64("2022-01-01", "D")
    rng = lake.rng(TRIPS)
    with lake.open(TRIPS) as table:
        for start, count in chunks(lake.scaled(9_000)):
            day = rng.integers(0, len(temp), count)
            minutes = np.clip(9 + 0.5 * temp[day] + rng.gamma(2, 2.5, count), 1, None)
            begun = (first + day).astype("datetime64[s]") + rng.integers(5 * 3600, 23 * 3600, count)
            table.write(
                frame(
                    trip_id=np.arange(start, start + count) + 7_000_001,
                    started_at=begun,
                    ride_date=first + day,
                    from_station=pick(rng, names, count, 0.7),
                    to_station=holes(rng, pick(rng, names, count, 0.7), 0.02),
                    minutes=decimals(minutes, 1),
                    member=rng.random(count) < 0.62,
                )
            )


def _readings(lake: LakeBuilder) -> None:
    rng = lake.rng(SENSORS)
    ids = [f"S-{i:03d}" for i in range(1, 41)]
    lake.add(
        SENSORS,
        frame(
            sensor_id=ids,
            model=pick(rng, ("TH-20", "TH-21", "AQ-7"), len(ids)),
            installed=days("2019-03-01", 1200)[rng.integers(0, 1200, len(ids))],
            height_m=decimals(rng.gamma(3, 2, len(ids)), 1),
        ),
    )
    temp = lake.shared("temperature")
    first = np.datetime64("2021-01-01", "s")
    total = lake.scaled(14_000)
    rng = lake.rng(READINGS)
    with lake.open(READINGS) as table:
        for start, count in chunks(total):
            second = (np.arange(start, start + count) * (1095 * 86_400 / total)).astype(np.int64)
            day = np.minimum(second // 86_400, len(temp) - 1)
            table.write(
                frame(
                    sensor=pick(rng, ids, count),
                    read_at=first + second,
                    temperature=decimals(temp[day] + rng.normal(0, 2, count), 2),
                    humidity=holes(rng, decimals(np.clip(rng.normal(65, 14, count), 5, 100), 1), 0.04),
                    battery=decimals(rng.uniform(2.7, 3.3, count), 2),
                )
            )


def _by_month(lake: LakeBuilder) -> None:
    month = [str(m) for m in np.arange("2014-01", "2024-01", dtype="datetime64[M]")]
    n = len(month)
    for table, name, start, slope, noise in (
        (STREAMING, "subscribers_thousand", 400.0, 55.0, 300.0),
        (CHEESE, "tonnes", 2100.0, 14.0, 90.0),
    ):
        rng = lake.rng(table)
        values = start + slope * np.arange(n) + rng.normal(0, noise, n)
        lake.add(table, frame(**{"month": month, name: decimals(values, 1)}))
