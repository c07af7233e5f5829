"""The `augment` command: parse, call, print."""

from __future__ import annotations

from typing import Any

from lakescope.errors import BadRequest
from lakescope.faces.cli.output import Format, print_results, say
from lakescope.lake import Lake


def parse_key(text: str) -> list[str]:
    """``country,year`` as columns."""
    return [part.strip() for part in text.split(",") if part.strip()]


def print_augmented(
    lake: Lake, query: str, key: str, target: str, out: str, options: dict[str, Any], form: Format
) -> None:
    """Join the best columns into a table, write it, print what each adds."""
    results = lake.augment(query, _columns(lake, query, key), target, out, **options)
    print_results(results, form, empty="no column correlates: nothing was added")
    if results:
        say(f"{out}: {len(results)} columns added")


def _columns(lake: Lake, query: str, key: str) -> list[str]:
    """A key as it was typed: one column if there is one of that name, else several."""
    parts = parse_key(key)
    if not parts:
        raise BadRequest("no key was named", hint="name a column: --key date")
    return [key] if len(parts) == 1 else parts
