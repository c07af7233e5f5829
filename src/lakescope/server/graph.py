"""The lake's map: which tables refer to which, and where each is drawn.

Places come from forces: tables that are linked draw each other near, all tables push each other away (Fruchterman and
Reingold 1991), beginning from places that follow from the names alone. The same lake is drawn the same.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
Record = dict[str, Any]

#: Tables that are drawn at most: the ones with the most links.
MOST_TABLES = 250
_ROUNDS = 300
#: Links by shared values that a table has at most.
_SHARED_EACH = 4
#: How strongly everything is drawn to the middle, so that parts without a link stay near.
_GRAVITY = 0.1
#: Room between parts, in the distance of two tables.
_GAP = 0.6


def lake_map(tables: Mapping[str, Record], foreign: Sequence[Any], pairs: Sequence[Any]) -> Record:
    """Nodes with places between 0 and 1, edges, and how many tables have no link or were left out."""
    edges = _edges(foreign, pairs)
    links: dict[str, int] = {}
    for edge in edges:
        for side in (edge["child"], edge["parent"]):
            links[side] = links.get(side, 0) + (3 if edge["kind"] == "foreign key" else 1)
    ranked = sorted(links, key=lambda name: (-links[name], name))
    chosen = sorted(ranked[:MOST_TABLES])
    number = {name: place for place, name in enumerate(chosen)}
    kept = [edge for edge in edges if edge["child"] in number and edge["parent"] in number]
    ends = np.array([(number[edge["child"]], number[edge["parent"]]) for edge in kept], np.int64).reshape(-1, 2)
    weights = np.array([1.0 if edge["kind"] == "foreign key" else 0.35 * edge["strength"] for edge in kept], np.float64)
    places = _places(chosen, ends, weights)
    nodes = [
        {
            "table": name,
            "folder": name.rpartition("/")[0],
            "rows": tables[name]["rows"],
            "columns": tables[name]["columns"],
            "links": sum(name in (edge["child"], edge["parent"]) for edge in kept),
            "x": round(float(x), 4),
            "y": round(float(y), 4),
        }
        for name, (x, y) in zip(chosen, places, strict=True)
    ]
    return {
        "nodes": nodes,
        "edges": kept,
        "alone": len(tables) - len(links),
        "left_out": len(ranked) - len(chosen),
    }


def _edges(foreign: Sequence[Any], pairs: Sequence[Any]) -> list[Record]:
    """One edge for each reference, and one for each further pair of tables of which a column is in the other."""
    edges = [
        {
            "kind": "foreign key",
            "child": each.child_table,
            "parent": each.parent_table,
            "child_columns": list(each.child_columns),
            "parent_columns": list(each.parent_columns),
            "strength": round(each.score, 4),
            "inclusion": round(each.inclusion, 4),
            "exact": each.exact,
            "reasons": list(each.reasons),
        }
        for each in foreign
    ]
    linked = {frozenset((edge["child"], edge["parent"])) for edge in edges}
    best: dict[frozenset[str], Any] = {}
    for each in pairs:
        both = frozenset((each.child_table, each.parent_table))
        if len(both) == 2 and both not in linked:
            held = best.get(both)
            if held is None or (each.inclusion, each.child_size) > (held.inclusion, held.child_size):
                best[both] = each
    # A calendar, or a list of countries, is in many tables: of these the best few are enough to see it.
    drawn: dict[str, int] = {}
    for each in sorted(
        best.values(), key=lambda one: (-one.inclusion, -one.child_size, one.child_table, one.parent_table)
    ):
        if max(drawn.get(each.child_table, 0), drawn.get(each.parent_table, 0)) >= _SHARED_EACH:
            continue
        for side in (each.child_table, each.parent_table):
            drawn[side] = drawn.get(side, 0) + 1
        edges.append(
            {
                "kind": "joinable",
                "child": each.child_table,
                "parent": each.parent_table,
                "child_columns": [each.child_column],
                "parent_columns": [each.parent_column],
                "strength": round(each.inclusion, 4),
                "inclusion": round(each.inclusion, 4),
                "exact": each.exact,
                "reasons": [f"{each.child_size:,} values in {each.parent_size:,}"],
            }
        )
    return edges


def _places(names: Sequence[str], ends: I64, weights: F64) -> F64:
    """A place for each name in the unit square: parts without a link between them side by side."""
    places = np.zeros((len(names), 2))
    parts = _parts(len(names), ends)
    sides = [float(np.sqrt(part.size)) + _GAP for part in parts]
    for part, side, corner in zip(parts, sides, _corners(sides), strict=True):
        inside = np.isin(ends[:, 0], part)
        local = np.searchsorted(part, ends[inside])
        drawn = _drawn([names[at] for at in part], local, weights[inside])
        places[part] = np.array(corner) + _GAP / 2 + (side - _GAP) * drawn
    low, high = places.min(0, initial=0.0), places.max(0, initial=1.0)
    unit: F64 = (places - low) / np.maximum(high - low, 1e-9)
    return unit


def _corners(sides: Sequence[float]) -> list[tuple[float, float]]:
    """Corners of squares, the first and largest by itself, the others on shelves beside it, about as high."""
    if not sides:
        return []
    first, others = sides[0], sides[1:]
    width = max([1.4 * sum(side**2 for side in others) / first, *others]) if others else 0.0
    corners, x, y, shelf = [(0.0, 0.0)], 0.0, 0.0, 0.0
    for side in others:
        if x and x + side > width:
            x, y, shelf = 0.0, y + shelf, 0.0
        corners.append((first + x, y))
        x, shelf = x + side, max(shelf, side)
    return corners


def _parts(count: int, ends: I64) -> list[I64]:
    """The parts of a graph, the largest first."""
    part = np.arange(count)
    while True:
        least = part.copy()
        np.minimum.at(least, ends[:, 0], part[ends[:, 1]])
        np.minimum.at(least, ends[:, 1], part[ends[:, 0]])
        if (least == part).all():
            break
        part = least
    found = [np.flatnonzero(part == number) for number in np.unique(part)]
    return sorted(found, key=lambda each: (-each.size, int(each[0])))


def _drawn(names: Sequence[str], ends: I64, weights: F64) -> F64:
    """A place for each name of one part, in the unit square."""
    count = len(names)
    if count == 1:
        return np.full((1, 2), 0.5)
    seeds = np.array([zlib.crc32(name.encode()) for name in names], np.float64) / 2**32
    angle, radius = 2 * np.pi * np.arange(count) / count, 0.5 + 0.5 * seeds
    at = np.column_stack([np.cos(angle), np.sin(angle)]) * radius[:, None]
    ideal = 1.3 / np.sqrt(count)
    degree = np.maximum(1.0, np.bincount(ends.ravel(), minlength=count))
    # Those with many links would be drawn into one spot.
    pulls = weights / np.sqrt(np.maximum(degree[ends[:, 0]], degree[ends[:, 1]]))
    for step in range(_ROUNDS):
        apart = at[:, None, :] - at[None, :, :]
        distance = np.maximum(np.sqrt((apart**2).sum(-1)), 1e-3)
        push = (apart * (ideal**2 / distance**2)[:, :, None]).sum(1)
        along = at[ends[:, 0]] - at[ends[:, 1]]
        force = along * (pulls * np.sqrt((along**2).sum(-1)) / ideal)[:, None]
        pull = np.zeros_like(at)
        np.add.at(pull, ends[:, 0], -force)
        np.add.at(pull, ends[:, 1], force)
        move = push + pull - _GRAVITY * at
        length = np.maximum(np.sqrt((move**2).sum(-1)), 1e-9)
        heat = 0.15 * (1 - step / _ROUNDS) + 0.002
        at += move * (np.minimum(length, heat) / length)[:, None]
    low, high = at.min(0), at.max(0)
    unit: F64 = (at - low) / np.maximum(high - low, 1e-9)
    return unit
