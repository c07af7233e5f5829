"""Schools: keys that are integers in one file and floats in another, and scores that follow class size."""

from __future__ import annotations

import numpy as np

from lakescope.demo.builder import LakeBuilder
from lakescope.demo.chance import decimals, pick, some
from lakescope.demo.facts import Correlation, Fact, Join, ref
from lakescope.demo.formats import Style
from lakescope.demo.frames import frame, holes, joined
from lakescope.demo.tables.places import places
from lakescope.demo.tables.usa import ZIP_CODES
from lakescope.demo.words.trade import ADJECTIVES, NOUNS, SCHOOL_KINDS, SUBJECTS

SCHOOLS = "schools/schools.csv"
SCORES = "schools/test_scores.parquet"
STAFFING = "schools/staffing.csv"
LUNCH = "schools/lunch_menu_votes.jsonl"

FACTS: tuple[Fact, ...] = (
    Join(
        ref(SCORES, "school_id"), ref(SCHOOLS, "school_id"), "exact", note="floats on the left, integers on the right"
    ),
    Join(ref(SCHOOLS, "zip"), ref(ZIP_CODES, "zip"), "exact", note="codes with leading zeros"),
    Correlation(
        ref(STAFFING, "school"),
        "pupils_per_teacher",
        ref(SCORES, "school_id"),
        "mean_score",
        "negative",
        note="many scores a school: needs an aggregate per school",
    ),
    Correlation(ref(STAFFING, "school"), "pupils_per_teacher", ref(LUNCH, "school"), "votes", "none"),
)


def write(lake: LakeBuilder) -> None:
    """Write the schools, their staff and their scores."""
    rng = lake.rng(SCHOOLS)
    n = 320
    ids = 20_000 + np.sort(some(rng, 9_000, n))
    where = [places()[i] for i in rng.integers(0, len(places()), n)]
    lake.add(
        SCHOOLS,
        frame(
            school_id=ids,
            school_name=joined(pick(rng, ADJECTIVES, n), " ", pick(rng, NOUNS, n), " ", pick(rng, SCHOOL_KINDS, n)),
            zip=[p.zip for p in where],
            opened=rng.integers(1880, 2020, n),
            pupils=rng.integers(90, 2400, n),
        ),
        Style(bom=True),
    )

    rng = lake.rng(STAFFING)
    ratio = rng.normal(17, 3, n)
    lake.add(STAFFING, frame(school=ids, pupils_per_teacher=decimals(ratio, 1), counsellors=rng.poisson(2, n)))

    rng = lake.rng(SCORES)
    school, year, subject = (
        a.ravel() for a in np.meshgrid(np.arange(n), np.arange(2019, 2024), np.arange(len(SUBJECTS)), indexing="ij")
    )
    score = 560 - 6 * ratio[school] + rng.normal(0, 9, n)[school] + rng.normal(0, 14, len(school))
    lake.add(
        SCORES,
        frame(
            school_id=ids[school].astype(float),
            year=year.astype(np.int32),
            subject=np.array(SUBJECTS, dtype=object)[subject],
            mean_score=holes(rng, decimals(score, 1), 0.03),
        ),
    )

    rng = lake.rng(LUNCH)
    lake.add(LUNCH, frame(school=ids, dish=pick(rng, ("pasta", "curry", "soup", "salad"), n), votes=rng.poisson(60, n)))
