"""A table's profile as the text of a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakescope.show.fields import chosen, column_fields
from lakescope.show.text import aligned, printable, visible

#: What is said of a column on one line.
PROFILE = ("column", "type", "missing", "distinct", "minimum", "maximum", "distribution", "top", "note")


def profile_text(profile: Mapping[str, Any]) -> str:
    """A table's profile, as ``TableProfile.to_dict`` gives it, as aligned text."""
    head = f"{printable(profile['table'])}: {profile['rows']:,} rows, {len(profile['columns'])} columns"
    rows = chosen(map(column_fields, profile["columns"]), PROFILE)
    lines = [head, "", *aligned(PROFILE, [[value.shown(narrow=True) for value in row] for row in rows])]
    for problem in profile["problems"]:
        lines.append(f"{problem['severity']}: {problem['code']} (x{problem['count']}): {printable(problem['detail'])}")
    return visible("\n".join(lines))
