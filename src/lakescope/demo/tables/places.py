"""Places in the USA shared by many tables: ZIP code, city, county and state, with true dependencies between them."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from lakescope.demo.words.trade import NOUNS
from lakescope.demo.words.usa import STATES, UsState

#: ZIP codes per city.
ZIPS = 6


class ZipPlace(NamedTuple):
    """One ZIP code. ``zip -> city -> county -> state`` holds over all places."""

    zip: str
    city: str
    county: str
    state: UsState


@cache
def places() -> tuple[ZipPlace, ...]:
    """All ZIP codes: six for each of four cities of a state; the capital and the first city share a county."""
    found: list[ZipPlace] = []
    for s, state in enumerate(STATES):
        for c, city in enumerate((state.capital, *state.cities)):
            county = f"{NOUNS[(7 * s + max(c - 1, 0)) % len(NOUNS)]} County {state.code}"
            for z in range(ZIPS):
                found.append(ZipPlace(f"{state.zip3}{(c * ZIPS + z) * 4 + 1:02d}", city, county, state))
    return tuple(found)


@cache
def cities() -> tuple[ZipPlace, ...]:
    """One place per city, its first ZIP code."""
    return places()[::ZIPS]
