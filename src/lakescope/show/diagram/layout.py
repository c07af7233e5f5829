"""Layout of a diagram: places of tables and ways of lines.

A line that passes a layer has a lane of its own there, so that none runs through a table. Lines of one kind to one
column share a trunk.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from lakescope.show.diagram.cards import HEADER_HEIGHT, ROW_HEIGHT, WIDEST, TableCard
from lakescope.show.diagram.channels import TRACK, Trunk, assign_tracks
from lakescope.show.diagram.layers import layers_of
from lakescope.show.diagram.places import APART, LayerItem, arrange, link
from lakescope.show.diagram.schema import Edge

#: Width of a drawing by its height, and a height below which no layer is broken up.
_ASPECT, _LEAST_CAP = 1.5, 560.0
MARGIN, _TOP = 24.0, 46.0
#: Room at a table's side for the marks at a line's end, and for a share beside them.
_END, _LABEL = 20.0, 40.0
#: Between loops at the side of a table.
_LOOP = 11.0
#: Between components, and between tables that stand alone.
_BETWEEN = 48.0
#: How far an end that has a row to itself may be from the row's middle, for a line without a bend.
_SLACK = 5.0
_GRID = 24.0
#: Of middling lightness: to be seen on white and on black.
_COLOURS = (
    *("#3b7dd8", "#d9622b", "#2a9d62", "#b0559e", "#a8801c"),
    *("#1f9aa8", "#cc4b5c", "#7a68d4", "#6d8f1f", "#8d7566"),
)
Point = tuple[float, float]


@dataclass(slots=True)
class _End:
    """One end of an edge: table, row, side, the height within the table and how much it may change.

    Lower is one of several at a row that is below its middle.
    """

    card: int
    row: int
    right: bool
    at: float = 0.0
    slack: float = 0.0
    lower: bool = False


@dataclass(slots=True)
class Way:
    """An edge's way: its ends, the items it goes through from left to right, the nets it is part of between them.

    One that stays at its table has a reach instead.
    """

    child: _End
    parent: _End
    stops: list[tuple[LayerItem, float]] = field(default_factory=list)
    nets: list[Trunk] = field(default_factory=list)
    reach: float = 0.0
    points: list[Point] = field(default_factory=list)

    @property
    def ends(self) -> tuple[_End, _End]:
        """From left to right."""
        return (self.child, self.parent) if self.child.right else (self.parent, self.child)


class Layout:
    """Tables and lines with their places."""

    def __init__(self, cards: Sequence[TableCard], edges: Sequence[Edge]) -> None:
        self.cards, self.edges = cards, edges
        self.index = {card.box.table: i for i, card in enumerate(cards)}
        self.ends = [(self.index[edge.child_table], self.index[edge.parent_table]) for edge in edges]
        self.at: list[Point] = [(0.0, 0.0)] * len(cards)
        self.widths = [card.width for card in cards]
        self.routes: list[Way] = []
        self.colours: dict[int, str] = {}

    def arrange(self) -> tuple[float, float]:
        """Places everything; returns the size of the whole."""
        components, alone = self._components()
        self.routes = [Way(_End(0, 0, False), _End(0, 0, True)) for _ in self.edges]
        pieces = [_Component(self, nodes, edges) for nodes, edges in components]
        area = sum((piece.width + _BETWEEN) * (piece.height + _BETWEEN) for piece in pieces)
        area += sum((WIDEST + _GRID) * (self.cards[node].height + _GRID) for node in alone)
        target = max([math.sqrt(area * _ASPECT), *(piece.width for piece in pieces)])
        top = _TOP if self.edges else MARGIN
        right, bottom = self._shelve(pieces, target, top)
        if alone:
            right, bottom = self._grid(alone, target, right, bottom)
        for number, node in enumerate(sorted({parent for _, parent in self.ends}, key=self.at.__getitem__)):
            self.colours[node] = _COLOURS[number % len(_COLOURS)]
        return max(right, 2 * MARGIN, _LEGEND_WIDTH if self.edges else 0) + MARGIN, bottom + MARGIN

    def _components(self) -> tuple[list[tuple[list[int], list[int]]], list[int]]:
        """Tables and edges that hang together, and the tables without any edge."""
        neighbours: dict[int, list[int]] = defaultdict(list)
        for one, other in self.ends:
            neighbours[one].append(other)
            neighbours[other].append(one)
        component: dict[int, int] = {}
        nodes: list[list[int]] = []
        for start in range(len(self.cards)):
            if start in component or start not in neighbours:
                continue
            reached = [start]
            component[start] = len(nodes)
            for node in reached:
                for other in neighbours[node]:
                    if other not in component:
                        component[other] = len(nodes)
                        reached.append(other)
            nodes.append(sorted(reached))
        edges: list[list[int]] = [[] for _ in nodes]
        for number, (one, _) in enumerate(self.ends):
            edges[component[one]].append(number)
        return list(zip(nodes, edges, strict=True)), [i for i in range(len(self.cards)) if i not in component]

    def _shelve(self, pieces: Sequence[_Component], target: float, top: float) -> tuple[float, float]:
        """Puts components side by side on shelves, the tallest first; lower ones below each other where they fit."""
        stacks: list[tuple[float, float, float]] = []
        x, y, deepest, widest = MARGIN, top, top, 0.0
        for piece in sorted(pieces, key=lambda piece: -piece.height):
            fitting = (i for i, (_, width, _) in enumerate(stacks) if piece.width <= width)
            at = next((i for i in fitting if stacks[i][2] + piece.height <= deepest), None)
            if at is None:
                if x > MARGIN and x + piece.width > MARGIN + target:
                    x, y, stacks = MARGIN, deepest + _BETWEEN, []
                at = len(stacks)
                stacks.append((x, piece.width, y))
                x += piece.width + _BETWEEN
            left, width, depth = stacks[at]
            piece.move(left, depth)
            stacks[at] = (left, width, depth + piece.height + _BETWEEN)
            deepest, widest = max(deepest, depth + piece.height), max(widest, left + piece.width)
        return widest, deepest

    def _grid(self, alone: Sequence[int], target: float, right: float, bottom: float) -> tuple[float, float]:
        """Puts tables that stand alone into columns of even width, each into the shortest."""
        width = max(self.cards[node].width for node in alone)
        count = max(1, min(len(alone), int((max(target, right - MARGIN) + _GRID) // (width + _GRID))))
        depth = [bottom + (_BETWEEN if right else 0.0)] * count
        for node in alone:
            column = min(range(count), key=depth.__getitem__)
            self.at[node] = (MARGIN + column * (width + _GRID), depth[column])
            self.widths[node] = width
            depth[column] += self.cards[node].height + _GRID
        return max(right, MARGIN + count * (width + _GRID) - _GRID), max(depth) - _GRID


class _Component:
    """Tables that hang together, laid out by themselves with the upper left corner at the origin."""

    def __init__(self, drawing: Layout, nodes: Sequence[int], edges: Sequence[int]) -> None:
        self.drawing, self.nodes, self.edges = drawing, nodes, edges
        self.items = {node: LayerItem(node, drawing.cards[node].height) for node in nodes}
        self.layer = self._layer()
        self.layers: list[list[LayerItem]] = [[] for _ in range(max(self.layer.values()) + 1)]
        for node in nodes:
            self.layers[self.layer[node]].append(self.items[node])
        self._attach()
        self._connect()
        arrange(self.layers)
        placed = [item for layer in self.layers for item in layer]
        top = min(item.y for item in placed)
        for item in placed:
            item.y = round(item.y - top)
        self.height = max(item.y + item.height for item in placed)
        self._slide()
        self._loop()
        self.width = self._route()

    def _layer(self) -> dict[int, int]:
        cards = self.drawing.cards
        area = sum((cards[node].height + APART) * (cards[node].width + 90) for node in self.nodes)
        cap = max(_LEAST_CAP, math.sqrt(area / _ASPECT), *(cards[node].height + APART for node in self.nodes))
        local = {node: i for i, node in enumerate(self.nodes)}
        ends = [self.drawing.ends[edge] for edge in self.edges]
        pairs = [(local[parent], local[child]) for child, parent in ends if child != parent]
        found = layers_of([cards[node].height + APART for node in self.nodes], pairs, cap)
        return dict(zip(self.nodes, found, strict=True))

    def _trunk(self, edge: int) -> tuple[int, ...]:
        """Edges with the same trunk leave the same point: those to the same column that are as sure."""
        child, parent = self.drawing.ends[edge]
        if self.layer[parent] < self.layer[child]:
            return (parent, self.drawing.routes[edge].parent.row, self.drawing.edges[edge].verified)
        return (-1, edge)

    def _attach(self) -> None:
        """Finds where the ends of edges meet their tables; those that meet the same row do so side by side."""
        drawing = self.drawing
        seats: dict[tuple[int, int, bool], dict[tuple[int, ...], list[_End]]] = defaultdict(dict)
        for number in self.edges:
            edge, route, (child, parent) = drawing.edges[number], drawing.routes[number], drawing.ends[number]
            backwards = self.layer[child] <= self.layer[parent]
            route.child = _End(child, drawing.cards[child].row(edge.child_columns), backwards)
            onwards = self.layer[parent] <= self.layer[child]
            route.parent = _End(parent, drawing.cards[parent].row(edge.parent_columns), onwards)
            for end, seat in ((route.parent, self._trunk(number)), (route.child, (-2, number))):
                seats[end.card, end.row, end.right].setdefault(seat, []).append(end)
        for (_, row, _), taken in seats.items():
            middle = HEADER_HEIGHT / 2 if row < 0 else HEADER_HEIGHT + ROW_HEIGHT * (row + 0.5)
            step = min(5.0, 13.0 / max(1, len(taken) - 1))
            for i, ends in enumerate(taken.values()):
                for end in ends:
                    end.at = middle + step * (i - (len(taken) - 1) / 2)
                    end.slack = 0.0 if len(ends) > 1 else (_SLACK if len(taken) == 1 else 1.0)
                    end.lower = end.at > middle

    def _connect(self) -> None:
        """Gives edges the lanes they need, one to a trunk and layer, and links what they lead through."""
        lanes: dict[tuple[tuple[int, ...], int], LayerItem] = {}
        linked = set()
        for number in self.edges:
            route, trunk = self.drawing.routes[number], self._trunk(number)
            if route.child.card == route.parent.card:
                continue
            start, end = route.ends
            route.stops = [(self.items[start.card], start.at)]
            for at in range(self.layer[start.card] + 1, self.layer[end.card]):
                if (trunk, at) not in lanes:
                    lanes[trunk, at] = LayerItem(-1, 0.0)
                    self.layers[at].append(lanes[trunk, at])
                route.stops.append((lanes[trunk, at], 0.0))
            route.stops.append((self.items[end.card], end.at))
            for one, other in pairwise(route.stops):
                if (one, other) not in linked:
                    linked.add((one, other))
                    link(*one, *other)

    def _slide(self) -> None:
        """Moves ends a little within their rows where that makes a line straight."""
        for number in self.edges:
            route = self.drawing.routes[number]
            for end, i, neighbour in zip(route.ends, (0, -1), (1, -2), strict=True):
                if route.stops and end.slack:
                    (item, at), (other, there) = route.stops[i], route.stops[neighbour]
                    shift = other.y + there - item.y - at
                    if abs(shift) <= end.slack:
                        end.at += shift
                        route.stops[i] = (item, end.at)

    def _route(self) -> float:
        """Gives lines their tracks, and everything its place across; returns the width."""
        drawing = self.drawing
        nets: list[dict[tuple[int, ...], Trunk]] = [{} for _ in self.layers]
        for number in self.edges:
            route, trunk = drawing.routes[number], self._trunk(number)
            first = self.layer[route.stops[0][0].card] if route.stops else 0
            for channel, ((left, at), (right, there)) in enumerate(pairwise(route.stops), first):
                net = nets[channel].setdefault(trunk, Trunk(left.y + at, []))
                net.rights.append(right.y + there)
                route.nets.append(net)
        x, tracks_at = 0.0, []
        before, after = self._margins()
        for at, layer in enumerate(self.layers):
            x += before[at] if at else 0.0
            width = max(drawing.cards[item.card].width for item in layer if not item.lane)
            for item in layer:
                if not item.lane:
                    drawing.at[item.card] = (x, item.y)
                    drawing.widths[item.card] = width
            x += width + after[at]
            tracks_at.append(x)
            x += max(0, assign_tracks(nets[at].values()) - 1) * TRACK
        for number in self.edges:
            self._points(drawing.routes[number], tracks_at)
        return x - (_END if after[-1] == _END else 0.0)

    def _loop(self) -> None:
        """Gives edges from a table to itself their ends and their reach, those of one table side by side."""
        loops: dict[int, int] = defaultdict(int)
        for number in self.edges:
            route = self.drawing.routes[number]
            if route.child.card == route.parent.card:
                route.reach = _END + _LOOP * loops[route.child.card]
                loops[route.child.card] += 1
                if abs(route.child.at - route.parent.at) < _SLACK:
                    route.child.at, route.parent.at = route.child.at + _SLACK, route.child.at - _SLACK

    def _margins(self) -> tuple[list[float], list[float]]:
        """Room at the left and at the right of the tables of each layer, for ends, shares, and loops."""
        before, after = [_END] * len(self.layers), [_END] * len(self.layers)
        for number in self.edges:
            route = self.drawing.routes[number]
            room = (_LABEL if self.drawing.edges[number].inclusion < 1 else 0.0) + _END
            side, at = after if route.child.right else before, self.layer[route.child.card]
            side[at] = max(side[at], room + route.reach)
        return before, after

    def _points(self, route: Way, tracks_at: Sequence[float]) -> None:
        drawing = self.drawing

        def side(end: _End) -> float:
            return drawing.at[end.card][0] + (drawing.widths[end.card] if end.right else 0.0)

        if not route.stops:
            x, y = side(route.child), drawing.at[route.child.card][1]
            start, end = y + route.child.at, y + route.parent.at
            route.points = [(x, start), (x + route.reach, start), (x + route.reach, end), (x, end)]
            return
        first, last = route.ends
        points = [(side(first), route.stops[0][0].y + route.stops[0][1])]
        for i, (net, (item, at)) in enumerate(zip(route.nets, route.stops[1:], strict=True)):
            x, y = tracks_at[self.layer[first.card] + i] + net.track * TRACK, item.y + at
            if abs(y - points[-1][1]) > 0.05:
                points += [(x, points[-1][1]), (x, y)]
        route.points = [*points, (side(last), route.stops[-1][0].y + route.stops[-1][1])]

    def move(self, x: float, y: float) -> None:
        """Moves the component from the origin to its place."""
        for node in self.nodes:
            self.drawing.at[node] = (self.drawing.at[node][0] + x, self.drawing.at[node][1] + y)
        for number in self.edges:
            route = self.drawing.routes[number]
            route.points = [(a + x, b + y) for a, b in route.points]


_LEGEND_WIDTH = 480.0
