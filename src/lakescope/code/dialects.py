"""Systems that code is written for: light to import, for every face that lists them."""

from __future__ import annotations

from typing import Literal, get_args

#: Systems that code of joins and correlations is written for.
Dialect = Literal["duckdb", "pandas", "polars", "spark", "sql"]
#: Systems that code of learned joins is written for: Python without libraries, too.
PlanDialect = Literal[Dialect, "python"]

DIALECTS: tuple[Dialect, ...] = get_args(Dialect)
PLAN_DIALECTS: tuple[PlanDialect, ...] = get_args(PlanDialect)
#: What they are called.
CALLED: dict[PlanDialect, str] = {
    **{"duckdb": "DuckDB", "pandas": "pandas", "polars": "polars", "spark": "Spark", "sql": "SQL", "python": "Python"},
}
