"""What a lake says to many questions, and comparing it."""

from __future__ import annotations

from typing import Any

from lakescope.errors import LakescopeError
from lakescope.lake import Lake

Answers = dict[Any, Any]


def answers(lake: Lake) -> Answers:
    """What a lake says to many questions."""
    found: Answers = {name: getattr(lake, name)().to_pylist() for name in ("tables", "columns", "problems")}
    for column in found["columns"]:
        where = column["table"], column["column"]
        for options in ({"k": 5}, {"threshold": 0.3}, {"threshold": 0.5, "engine": "lsh"}):
            found["joinable", *where, str(options)] = lake.joinable(where[0], on=where[1], **options).to_dicts()
    for table in found["tables"]:
        name = table["table"]
        try:
            found["correlated", name] = lake.correlated(name, key="key", target="num").to_dicts()
        except LakescopeError as error:
            found["correlated", name] = str(error)
        found["headers", name] = lake.suggest_headers(name).to_dicts()
        found["profile", name] = lake.profile(name).to_dict()
    for verify in (False, True):
        pairs = lake.inclusions(minimum=0.5, verify=verify).to_dicts()
        found["inclusions", verify] = sorted(pairs, key=lambda each: [str(value) for value in each.values()])
    found["inclusions", "bottomk"] = lake.inclusions(minimum=0.5, estimator="bottomk").to_dicts()
    found["foreign_keys"] = lake.foreign_keys().to_dicts()
    found["info"] = {name: lake.info()[name] for name in ("tables", "columns", "rows", "bytes", "errors", "warnings")}
    return found


def same(one: Any, other: Any) -> bool:
    """Equal, numbers to 1e-9: the order of sums depends on what lies beside."""
    if isinstance(one, float) and isinstance(other, float):
        return one == other or abs(one - other) <= 1e-9 * max(1, abs(one)) or (one != one and other != other)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def differing(one: Answers, other: Answers) -> list[Any]:
    return [key for key in {**one, **other} if not same(one.get(key), other.get(key))]
