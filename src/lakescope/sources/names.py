"""Names of columns: none blank, no two alike."""

from __future__ import annotations


def unique_names(names: list[str]) -> tuple[list[str], int]:
    """Give blank columns a name and duplicate names a number; also how many were changed."""
    taken: set[str] = set()
    numbers: dict[str, int] = {}
    given = {name for name in names if name}
    result: list[str] = []
    changed = 0
    for position, name in enumerate(names, start=1):
        wanted = name or f"column_{position}"
        unique = wanted
        while unique in taken or (unique != name and unique in given):
            numbers[wanted] = numbers.get(wanted, 1) + 1
            unique = f"{wanted}_{numbers[wanted]}"
        changed += unique != name
        taken.add(unique)
        result.append(unique)
    return result, changed
