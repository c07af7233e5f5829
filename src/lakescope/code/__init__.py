"""An answer as code to take away: one class a system, which reads tables, joins, aggregates and rewrites texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakescope.code.dialects import DIALECTS, PLAN_DIALECTS
from lakescope.errors import BadRequest

if TYPE_CHECKING:
    from lakescope.code.writer import PlanWriter, Writer


def writer_of(dialect: str) -> Writer:
    """Who writes code of joins and correlations in a dialect; loaded when it is asked for."""
    from lakescope.code.writers import WRITERS

    if dialect not in WRITERS:
        raise BadRequest(f"no dialect {dialect!r}", hint=f"use {', '.join(DIALECTS)}")
    return WRITERS[dialect]


def plan_writer_of(dialect: str) -> PlanWriter:
    """Who writes code of learned joins in a dialect; loaded when it is asked for."""
    from lakescope.code.writers import PLAN_WRITERS

    if dialect not in PLAN_WRITERS:
        raise BadRequest(f"no dialect {dialect!r}", hint=f"use {', '.join(PLAN_DIALECTS)}")
    return PLAN_WRITERS[dialect]
