"""Chemical elements: names on one side, symbols on the other, and nothing but knowledge between them."""

from __future__ import annotations

import numpy as np

from lakescope.demo.builder import LakeBuilder
from lakescope.demo.chance import decimals
from lakescope.demo.facts import Fact, Lookup, ref
from lakescope.demo.frames import frame, holes
from lakescope.demo.words.elements import ELEMENTS

NAMES = "science/elements.csv"
SYMBOLS = "science/element_symbols.csv"

FACTS: tuple[Fact, ...] = (Lookup(ref(NAMES, "element"), ref(SYMBOLS, "symbol"), "element -> symbol"),)


def write(lake: LakeBuilder) -> None:
    """Write both sides of the elements."""
    count = len(ELEMENTS)
    rng = lake.rng(NAMES)
    lake.add(
        NAMES,
        frame(
            element=[name for name, _ in ELEMENTS],
            melting_point_k=holes(rng, decimals(rng.gamma(4, 300, count), 2), 0.15),
            density=decimals(rng.gamma(2, 4, count), 3),
            discovered=rng.integers(1669, 2010, count),
        ),
    )
    lake.entities(NAMES, np.arange(count))
    rng = lake.rng(SYMBOLS)
    order = rng.permutation(count)
    lake.add(
        SYMBOLS,
        frame(
            symbol=[ELEMENTS[i][1] for i in order],
            price_per_kg=decimals(rng.lognormal(4, 2, count), 2),
            radioactive=rng.random(count) < 0.3,
        ),
    )
    lake.entities(SYMBOLS, order)
