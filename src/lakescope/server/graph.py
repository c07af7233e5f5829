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
Record = dict[str, Any]

#: Tables that are drawn at most: the ones with the most links.
MOST_TABLES = 250
_ROUNDS = 300
#: How strongly everything is drawn to the middle, so that parts without a link stay near.
_GRAVITY = 0.06


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
    for each in best.values():
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


def _places(names: Sequence[str], ends: npt.NDArray[np.int64], weights: F64) -> F64:
    """A place for each name, in the unit square."""
    count = len(names)
    if not count:
        return np.empty((0, 2))
    seeds = np.array([zlib.crc32(name.encode()) for name in names], np.float64) / 2**32
    angle, radius = 2 * np.pi * np.arange(count) / count, 0.5 + 0.5 * seeds
    at = np.column_stack([np.cos(angle), np.sin(angle)]) * radius[:, None]
    ideal = 1.3 / np.sqrt(count)
    for step in range(_ROUNDS):
        apart = at[:, None, :] - at[None, :, :]
        distance = np.maximum(np.sqrt((apart**2).sum(-1)), 1e-3)
        push = (apart * (ideal**2 / distance**2)[:, :, None]).sum(1)
        pull = np.zeros_like(at)
        if ends.size:
            along = at[ends[:, 0]] - at[ends[:, 1]]
            reach = np.maximum(np.sqrt((along**2).sum(-1)), 1e-3)
            force = along * (weights * reach / ideal)[:, None]
            np.add.at(pull, ends[:, 0], -force)
            np.add.at(pull, ends[:, 1], force)
        move = push + pull - _GRAVITY * at
        length = np.maximum(np.sqrt((move**2).sum(-1)), 1e-9)
        heat = 0.15 * (1 - step / _ROUNDS) + 0.002
        at += move * (np.minimum(length, heat) / length)[:, None]
    low, high = at.min(0), at.max(0)
    unit: F64 = (at - low) / np.maximum(high - low, 1e-9)
    return unit if count > 1 else np.full((1, 2), 0.5)
