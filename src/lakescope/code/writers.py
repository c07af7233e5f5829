"""All writers of code, by the name of their dialect, and what is done to code that they wrote."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from lakescope.code.duckdb import DuckDB
from lakescope.code.pandas import Pandas
from lakescope.code.polars import Polars
from lakescope.code.python import Python
from lakescope.code.spark import Spark
from lakescope.code.sql import Sql, identifier, literal
from lakescope.code.writer import PlanWriter, Writer

WRITERS: dict[str, Writer] = {
    "duckdb": DuckDB(),
    "pandas": Pandas(),
    "polars": Polars(),
    "spark": Spark(),
    "sql": Sql(),
}
PLAN_WRITERS: dict[str, PlanWriter] = {"python": Python(), **WRITERS}

#: What stands before a table in SQL.
_BEFORE = ("FROM ", "JOIN ")


def renamed(code: str, path: str, name: str) -> str:
    """Code that calls a file by another name, in every way a dialect writes it."""
    one, other = PurePosixPath(path), PurePosixPath(name)
    pairs = [
        (repr(path), repr(name)),
        (path, name),
        *((word + identifier(one.name.split(".")[0]), word + identifier(other.name.split(".")[0])) for word in _BEFORE),
        (f"{one.name} is read by", f"{other.name} is read by"),
    ]
    # What a reader of SQL is given is a text of SQL, whatever Python stands around it.
    in_sql = re.compile(rf"((?:FROM|JOIN) \w+\(){re.escape(literal(path))}")
    code = in_sql.sub(lambda found: found[1] + literal(name), code)
    for old, new in pairs:
        code = code.replace(old, new)
    return code
