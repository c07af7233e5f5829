"""People of the company: one list of names in several spellings, so that joining takes a learnt transformation."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lakescope.demo.builder import LakeBuilder
from lakescope.demo.chance import Rng, days_between, decimals, pick, some
from lakescope.demo.facts import Fact, Join, PlantedInclusion, Transform, ref
from lakescope.demo.frames import frame, holes
from lakescope.demo.words.people import FIRST, LAST
from lakescope.demo.words.trade import DEPARTMENTS, ROLES

EMPLOYEES = "hr/employees.csv"
DEPARTMENT_TABLE = "hr/departments.csv"
PAYROLL = "hr/payroll.csv"
MAIL = "hr/mail_directory.tsv"
LOGINS = "hr/it_accounts.csv"
_BOOK = "hr/people.xlsx"
TRAINING, TRAVEL = f"{_BOOK}::Training", f"{_BOOK}::Travel"

FACTS: tuple[Fact, ...] = (
    PlantedInclusion(ref(EMPLOYEES, "dept"), ref(DEPARTMENT_TABLE, "department_code"), "hr", note="abbreviated name"),
    PlantedInclusion(ref(TRAINING, "employee_id"), ref(EMPLOYEES, "employee_id"), "hr", note="sheet of a workbook"),
    PlantedInclusion(
        ref(TRAVEL, "traveller"), ref(EMPLOYEES, "employee_id"), "hr", note="sheet of a workbook, other name"
    ),
    Join(ref(TRAINING, "employee_id"), ref(EMPLOYEES, "employee_id"), "exact"),
    Transform(ref(EMPLOYEES, "full_name"), ref(PAYROLL, "payee"), "name order", "'First Last' -> 'Last, First'"),
    Transform(
        ref(EMPLOYEES, "full_name"),
        ref(MAIL, "email"),
        "e-mail from name",
        "'First Last' -> 'first.last@lakeshore.example'",
    ),
    Transform(
        ref(EMPLOYEES, "full_name"),
        ref(LOGINS, "login"),
        "user id from name",
        "'First Last' -> first letter of First and Last, lower case",
    ),
)


def write(lake: LakeBuilder) -> None:
    """Write the employees in all their spellings."""
    lake.database("hr", (EMPLOYEES, DEPARTMENT_TABLE, TRAINING, TRAVEL))
    rng = lake.rng(EMPLOYEES)
    names = _names(rng, 360)
    n = len(names)
    ids = np.array([f"E{i:05d}" for i in 100 + 3 * np.arange(n)], dtype=object)
    lake.add(
        DEPARTMENT_TABLE,
        frame(
            department_code=[c for c, _ in DEPARTMENTS],
            department=[d for _, d in DEPARTMENTS],
            floor=rng.integers(1, 9, len(DEPARTMENTS)),
        ),
    )
    lake.add(
        EMPLOYEES,
        frame(
            employee_id=ids,
            full_name=[f"{a} {b}" for a, b in names],
            dept=pick(rng, [c for c, _ in DEPARTMENTS], n),
            job=pick(rng, ROLES, n),
            hired=days_between(rng, "2005-01-01", "2023-12-01", n),
        ),
    )
    lake.entities(EMPLOYEES, np.arange(n))

    rng = lake.rng(PAYROLL)
    paid = some(rng, n, 320)
    lake.add(
        PAYROLL,
        frame(
            payee=[f"{names[i][1]}, {names[i][0]}" for i in paid],
            gross=decimals(rng.normal(5200, 900, len(paid)), 2),
            tax_class=rng.integers(1, 6, len(paid)),
        ),
    )
    lake.entities(PAYROLL, paid)

    rng = lake.rng(MAIL)
    mailed = some(rng, n, 300)
    lake.add(
        MAIL,
        frame(
            email=[f"{a.lower()}.{b.lower()}@lakeshore.example" for a, b in (names[i] for i in mailed)],
            desk=rng.integers(100, 999, len(mailed)),
            quota_gb=rng.choice([5, 10, 50], len(mailed)),
        ),
    )
    lake.entities(MAIL, mailed)

    rng = lake.rng(LOGINS)
    known = some(rng, n, 280)
    lake.add(
        LOGINS,
        frame(
            login=[(a[0] + b).lower() for a, b in (names[i] for i in known)],
            last_seen=days_between(rng, "2023-10-01", "2023-12-31", len(known)),
            admin=rng.random(len(known)) < 0.06,
        ),
    )
    lake.entities(LOGINS, known)
    _workbook(lake, ids)


def _names(rng: Rng, count: int) -> list[tuple[str, str]]:
    """Names whose user ids differ, so that every spelling is a key."""
    found: dict[str, tuple[str, str]] = {}
    for f, s in zip(rng.integers(0, len(FIRST), 20 * count), rng.integers(0, len(LAST), 20 * count), strict=True):
        found.setdefault((FIRST[f][0] + LAST[s]).lower(), (FIRST[f], LAST[s]))
    return list(found.values())[:count]


def _workbook(lake: LakeBuilder, ids: npt.NDArray[np.object_]) -> None:
    rng = lake.rng(_BOOK)
    n, m = 260, 140
    lake.add_workbook(
        _BOOK,
        {
            "Training": frame(
                employee_id=ids[rng.integers(0, len(ids), n)],
                course=pick(rng, ("First aid", "Safety", "Spark", "Sales talk"), n),
                held_on=days_between(rng, "2022-01-01", "2023-12-31", n),
                score=holes(rng, rng.integers(40, 101, n), 0.1),
            ),
            "Travel": frame(
                traveller=ids[rng.integers(0, len(ids), m)],
                destination=pick(rng, ("Oslo", "Lyon", "Kraków", "Porto"), m),
                nights=rng.integers(1, 6, m),
                cost=decimals(rng.gamma(3, 180, m), 2),
            ),
        },
    )
