"""Ways to make one number of those of a repeated key."""

from __future__ import annotations

from typing import Literal, get_args

#: In the order in which an index has their values: to change it is to change the format.
Aggregate = Literal["mean", "sum", "min", "max", "count", "first", "last"]
AGGREGATES: tuple[Aggregate, ...] = get_args(Aggregate)
#: Those that need no order of rows, which other systems do not keep.
UNORDERED: tuple[Aggregate, ...] = tuple(each for each in AGGREGATES if each not in ("first", "last"))
