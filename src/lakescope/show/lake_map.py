"""The lake's map: which tables refer to which, and where each is drawn.

Places come from forces: tables that are linked draw each other near, all tables push each other away (Fruchterman and
Reingold 1991), beginning from places that follow from the names alone. Parts without a link between them are packed
side by side; then tables that lie on one another, or on another's name, are moved apart. The same lake is drawn the
same.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lakescope.array_types import F64, I64

Record = dict[str, Any]

#: Tables that are drawn at most: the ones with the most links.
MOST_TABLES = 250
_ROUNDS = 300
#: Links by shared values that a table has at most.
_SHARED_EACH = 4
#: How strongly everything is drawn to the middle, so that parts without a link stay near.
_GRAVITY = 0.1
#: Room between parts, in the distance of two tables.
_GAP = 0.9
#: Size of the picture, the margin within it, and room between circles.
WIDTH, HEIGHT = 1200.0, 800.0
_MARGIN = 34.0
_BETWEEN = 5.0
#: What a letter of a name takes, letters that are shown, and the height of a name.
_LETTER, LETTERS, _LINE = 6.3, 24, 15.0
#: Share of the picture that tables and their names may take; of more, names get less room.
_FULL = 0.5
#: Tables that keep room for their whole name: the ones with the most links, if they have as many as this.
_CHIEF, _CHIEF_LINKS = 12, 5
#: Tables of a folder, and share of them, that must begin (or end) alike for that to be left out of their names, and
#: letters that this must spare.
_ALIKE, _ALIKE_SHARE, _SPARED = 4, 0.2, 6
#: Times that tables are pushed apart at most, and the share of the way that they go at a time.
_ROUNDS_APART, _STEP = 400, 0.35


@dataclass(frozen=True, slots=True)
class LakeMap:
    """The map of a lake: tables with places in a picture of a ``size``, and the links between them.

    ``alone`` counts the tables without a link, ``left_out`` those that have too few links to be drawn.
    """

    size: list[float]
    nodes: list[Record]
    edges: list[Record]
    alone: int
    left_out: int
    notes: tuple[str, ...] = ()

    def to_dict(self) -> Record:
        """Everything but the notes, as plain data."""
        names = ("size", "nodes", "edges", "alone", "left_out")
        return {name: getattr(self, name) for name in names}

    def __repr__(self) -> str:
        return f"LakeMap({len(self.nodes):,} tables, {len(self.edges):,} links, {self.alone:,} tables alone)"


def lake_map(tables: Mapping[str, Record], foreign: Sequence[Any], pairs: Sequence[Any]) -> Record:
    """Nodes with places in a picture of a ``size``, edges, and how many tables have no link or were left out."""
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
    radii = np.array([min(17.0, 4.0 + 1.8 * np.log10(1 + tables[name]["rows"])) for name in chosen], np.float64)
    names = short_names(chosen)
    counts = np.bincount(ends.ravel(), minlength=len(chosen))
    places = _places(names, ends, weights, radii, _chief(counts))
    nodes = [
        {
            "table": name,
            "name": short,
            "folder": name.rpartition("/")[0],
            "rows": tables[name]["rows"],
            "columns": tables[name]["columns"],
            "links": int(count),
            "x": round(float(x), 1),
            "y": round(float(y), 1),
            "radius": round(float(radius), 1),
        }
        for name, short, count, (x, y), radius in zip(chosen, names, counts, places, radii, strict=True)
    ]
    return {
        "size": [WIDTH, HEIGHT],
        "nodes": nodes,
        "edges": kept,
        "alone": len(tables) - len(links),
        "left_out": len(ranked) - len(chosen),
    }


def short_names(tables: Sequence[str]) -> list[str]:
    """Names of tables as they are drawn: without their folder, and without what many in it begin or end with.

    Who exports a hundred tables calls them all alike: what tells them apart is what is worth the room.
    """
    folders: dict[str, list[str]] = {}
    for table in tables:
        folder, _, name = table.rpartition("/")
        folders.setdefault(folder, []).append(name)
    short = {
        (folder, name): each
        for folder, names in folders.items()
        for name, each in zip(names, _bare(names), strict=True)
    }
    return [short[folder, name] for folder, _, name in (table.rpartition("/") for table in tables)]


def _bare(names: Sequence[str]) -> list[str]:
    """Names of one folder without what many begin or end with."""
    least = max(_ALIKE, _ALIKE_SHARE * len(names))
    words = [re.split(r"(?<=[-_ .])(?=[^-_ .])", name) for name in names]
    begins = Counter(part for each in words for part in _growing(each))
    ends = Counter(part for each in words for part in _growing([word[::-1] for word in each[::-1]]))
    bare = []
    for name in names:
        begin = max((part for part in _prefixes(name, begins) if begins[part] >= least), key=len, default="")
        end = max((part for part in _prefixes(name[::-1], ends) if ends[part] >= least), key=len, default="")
        middle = name[len(begin) : len(name) - len(end)].strip("-_ .")
        bare.append(middle if middle and len(name) - len(middle) >= _SPARED else name)
    counted = Counter(bare)
    return [each if counted[each] == 1 else name for each, name in zip(bare, names, strict=True)]


def _growing(words: Sequence[str]) -> Iterator[str]:
    """The first word, the first two, and so on; never all."""
    for count in range(1, len(words)):
        yield "".join(words[:count])


def _prefixes(name: str, known: Counter[str]) -> Iterator[str]:
    return (name[:size] for size in range(1, len(name)) if name[:size] in known)


def _chief(links: I64) -> I64:
    """Tables that are looked at first: the ones with the most links."""
    order = np.argsort(-links, kind="stable")[:_CHIEF]
    return order[links[order] >= _CHIEF_LINKS]


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


def _places(names: Sequence[str], ends: I64, weights: F64, radii: F64, chief: I64) -> F64:
    """A place for each name in the picture: parts without a link between them side by side, nothing on another."""
    places = np.zeros((len(names), 2))
    parts = _parts(len(names), ends)
    shape = (WIDTH - 2 * _MARGIN) / (HEIGHT - 2 * _MARGIN)
    boxes = [(shape * float(np.sqrt(part.size)) + _GAP, float(np.sqrt(part.size)) + _GAP) for part in parts]
    for part, box, corner in zip(parts, boxes, _corners(boxes, shape), strict=True):
        inside = np.isin(ends[:, 0], part)
        local = np.searchsorted(part, ends[inside])
        drawn = _drawn([names[at] for at in part], local, weights[inside])
        places[part] = np.array(corner) + _GAP / 2 + (np.array(box) - _GAP) * drawn
    low, high = places.min(0, initial=np.inf), places.max(0, initial=-np.inf)
    room = np.array([WIDTH, HEIGHT]) - 2 * _MARGIN
    flat = high - low < 1e-9
    unit = np.where(flat, 0.5, (places - low) / np.where(flat, 1.0, high - low))
    return _apart(_MARGIN + unit * room, names, radii, chief)


def _corners(boxes: Sequence[tuple[float, float]], shape: float) -> list[tuple[float, float]]:
    """Corners of boxes on shelves, the largest first, in the width that makes the whole most like the picture."""
    if not boxes:
        return []
    widest, area = max(wide for wide, _ in boxes), sum(wide * high for wide, high in boxes)
    tries = [_shelved(boxes, max(widest, share * float(np.sqrt(area * shape)))) for share in np.arange(0.9, 2.0, 0.05)]
    return min(tries, key=lambda each: max(each[0] / shape, each[1]))[2]


def _shelved(boxes: Sequence[tuple[float, float]], width: float) -> tuple[float, float, list[tuple[float, float]]]:
    """Boxes on shelves of a width, later ones above one another where a shelf is high enough: size, and corners."""
    corners, right, bottom = [], 0.0, 0.0
    x = y = shelf = 0.0
    column, used = 0.0, 0.0  # width of the column that is being filled, and how much of the shelf's height it has
    for wide, high in boxes:
        if shelf and used + high <= shelf + 1e-9 and x + max(wide, column) <= width + 1e-9:
            corner = (x, y + used)
        elif shelf and x + column + wide <= width + 1e-9:
            x, column, used = x + column, 0.0, 0.0
            corner = (x, y)
        else:
            x, y, shelf, column, used = 0.0, y + shelf, high, 0.0, 0.0
            corner = (x, y)
        corners.append(corner)
        column, used = max(column, wide), used + high
        right, bottom = max(right, corner[0] + wide), max(bottom, corner[1] + high)
    return right, bottom, corners


def _apart(at: F64, names: Sequence[str], radii: F64, chief: I64) -> F64:
    """Places at which no circle lies on another, and, as far as there is room, none on another's name.

    A table is a box, its circle above its name. Boxes that overlap are moved apart by half of the way each, along the
    side where that is shorter; at last circles alone, which always find room.
    """
    letters = np.array([min(LETTERS, len(name)) for name in names], np.float64)
    wide, high = np.maximum(radii, _LETTER * letters / 2) + 2, radii + _LINE / 2 + 2
    whole = wide[chief]
    taken = float((4 * wide * high).sum()) / (WIDTH * HEIGHT)
    wide = np.maximum(radii + 2, wide * min(1.0, _FULL / max(taken, 1e-9)))
    # Above or below its circle a name has room if nothing comes nearer than its line.
    wide[chief], high[chief] = whole, radii[chief] + _LINE + 2
    sides = np.minimum(wide, WIDTH / 2)
    low = np.column_stack([sides, radii + _BETWEEN])
    end = np.array([WIDTH, HEIGHT]) - np.column_stack([sides, radii + _LINE + _BETWEEN])
    for half_width, half_height in ((wide, high), (radii + _BETWEEN / 2, radii + _BETWEEN / 2)):
        room = np.add.outer(half_width, half_width), np.add.outer(half_height, half_height)
        for each in room:
            np.fill_diagonal(each, -np.inf)
        for _ in range(_ROUNDS_APART):
            push = _push(at, *room)
            if push is None:
                break
            at = np.clip(at + _STEP * push, low, end)
    return at


def _push(at: F64, wide: F64, high: F64) -> F64 | None:
    """Where to boxes are pushed by those they lie on, which are nearer than so much; None if there are none."""
    across, down = np.subtract.outer(at[:, 0], at[:, 0]), np.subtract.outer(at[:, 1], at[:, 1])
    lap_x, lap_y = wide - np.abs(across), high - np.abs(down)
    lapping = np.minimum(lap_x, lap_y) > 1e-3
    if not lapping.any():
        return None
    sideways = lapping & (lap_x <= lap_y)
    x = np.where(sideways, lap_x, 0.0) * _signs(across)
    y = np.where(lapping & ~sideways, lap_y, 0.0) * _signs(down)
    return np.column_stack([x.sum(1), y.sum(1)])


def _signs(apart: F64) -> F64:
    """Which way to go; of two in the very same place the first goes left or up."""
    first = np.tri(len(apart), k=-1) * 2 - 1
    return np.where(apart == 0, first, np.sign(apart))


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
