"""Order and places of tables within their layers, by where their neighbours are (Sugiyama's method)."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

#: Least distances of tables, of a lane and a table, and of lanes.
APART, _PASSING, _LANES = 30.0, 15.0, 9.0
#: Sweeps that order items, and those that place them, with what draws items to the middle so that no gaps remain;
#: items times sweeps from which on there are fewer sweeps; the height of a drawing by that of its tallest layer.
_SWEEPS, _EFFORT = 16, 60_000
_GRAVITY = (0.4, 0.3, 0.2, 0.1, 0.05, 0.0, 0.0, 0.0)
_LOOSE = 1.15


@dataclass(slots=True, eq=False)
class LayerItem:
    """A table in a layer, or the lane of a line that passes it; links say at which height they meet."""

    card: int
    height: float
    y: float = 0.0
    before: list[_Link] = field(default_factory=list)
    after: list[_Link] = field(default_factory=list)

    @property
    def lane(self) -> bool:
        return self.card < 0


@dataclass(frozen=True, slots=True, eq=False)
class _Link:
    """A piece of line to an item of the layer before or after."""

    mine: float
    other: LayerItem
    theirs: float
    weight: float


def link(left: LayerItem, left_at: float, right: LayerItem, right_at: float) -> None:
    """Link two items of neighbouring layers, where a piece of line leads from one to the other."""
    weight = 1.0 + 2 * left.lane + 2 * right.lane
    left.after.append(_Link(left_at, right, right_at, weight))
    right.before.append(_Link(right_at, left, left_at, weight))


def _distance(upper: LayerItem, lower: LayerItem) -> float:
    if upper.lane and lower.lane:
        return _LANES
    return _PASSING if upper.lane or lower.lane else APART


def _room(layer: Sequence[LayerItem]) -> list[float]:
    """The room that those above each item take, and at last that of all."""
    room = [0.0]
    for upper, lower in pairwise(layer):
        room.append(room[-1] + upper.height + _distance(upper, lower))
    return [*room, room[-1] + layer[-1].height]


def _settle(layer: Sequence[LayerItem], wanted: Sequence[float], weights: Sequence[float], bound: float) -> None:
    """Places items as near as possible to where they want to be, in order, apart and in bounds: least squares.

    Less the room that those above take, places must not fall: isotonic regression, solved by pooling neighbours.
    """
    room = _room(layer)
    pools: list[tuple[float, float, int]] = []
    for want, taken, weight in zip(wanted, room, weights, strict=False):
        mean, count = want - taken, 1
        while pools and pools[-1][0] > mean:
            other, other_weight, other_count = pools.pop()
            mean = (mean * weight + other * other_weight) / (weight + other_weight)
            weight, count = weight + other_weight, count + other_count
        pools.append((mean, weight, count))
    places = [min(max(mean, -bound), bound - room[-1]) for mean, _, count in pools for _ in range(count)]
    for item, place, taken in zip(layer, places, room, strict=False):
        item.y = place + taken


def _mean(item: LayerItem, links: Sequence[_Link]) -> float:
    if not links:
        return item.y
    return sum(link.other.y + link.theirs - link.mine for link in links) / len(links)


def _median(item: LayerItem, links: Sequence[_Link]) -> float:
    """Where most of a table's lines are straight: the median of the places that straighten one each."""
    if not links:
        return item.y
    places = sorted((link.other.y + link.theirs - link.mine, link.weight) for link in links)
    half = sum(weight for _, weight in places) / 2
    for place, weight in places:
        half -= weight
        if half <= 1e-9:
            return place
    return places[-1][0]


def arrange(layers: list[list[LayerItem]]) -> None:
    """Orders and places the items of all layers: sweeps back and forth, of which the one with the fewest crossings."""
    size = sum(len(layer) for layer in layers)
    bound = _LOOSE * max(_room(layer)[-1] for layer in layers) / 2
    for layer in layers:
        _settle(layer, [-item.height / 2 for item in layer], [1.0] * len(layer), bound)
    best, least = [list(layer) for layer in layers], _crossings(layers)
    for sweep in range(max(4, min(_SWEEPS, _EFFORT // size))):
        onwards = sweep % 2 == 0
        for layer in layers[1:] if onwards else reversed(layers[:-1]):
            wanted = {item: _drawn(item, _mean(item, item.before if onwards else item.after), 0.1) for item in layer}
            layer.sort(key=lambda item: wanted[item] + item.height / 2)
            _settle(layer, [wanted[item] for item in layer], [1.0] * len(layer), bound)
        found = _crossings(layers)
        if found < least:
            best, least = [list(layer) for layer in layers], found
    layers[:] = best
    for layer in layers:
        _settle(layer, [-item.height / 2 for item in layer], [1.0] * len(layer), bound)
    for sweep, gravity in enumerate(_GRAVITY if size * len(_GRAVITY) < _EFFORT else _GRAVITY[1::2]):
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            sides = [item.before + item.after for item in layer]
            weights = [1 + sum(link.weight for link in links) for links in sides]
            places = zip(layer, sides, strict=True)
            _settle(layer, [_drawn(item, _median(item, links), gravity) for item, links in places], weights, bound)


def _drawn(item: LayerItem, place: float, gravity: float) -> float:
    """A place nearer to the middle of the drawing, where all layers are centred."""
    return place - gravity * (place + item.height / 2)


def _crossings(layers: Sequence[Sequence[LayerItem]]) -> int:
    """How many pairs of lines cross between layers, by their order alone."""
    total = 0
    for layer, following in pairwise(layers):
        order = {item: i for i, item in enumerate(following)}
        ends: list[tuple[int, float]] = []
        for item in layer:
            for link in sorted(item.after, key=lambda link: (link.mine, order[link.other], link.theirs)):
                end = (order[link.other], link.theirs)
                total += len(ends) - bisect_left(ends, end)
                insort(ends, end)
    return total
