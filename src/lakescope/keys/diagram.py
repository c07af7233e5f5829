"""A schema drawn three ways: an SVG picture, Mermaid's text, and SQL.

The picture is layered after Sugiyama: cycles are broken, every table stands to the right of the tables it refers to,
the tables of a layer are ordered and placed by where their neighbours are, and lines run in channels between the
layers. A line that passes a layer has a lane of its own there, so that none runs through a table. Lines of the same
kind to the same column share one trunk. All names are hostile until escaped.
"""

from __future__ import annotations

import heapq
import math
import re
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise

from lakescope.report.text import columns_of, percent, printable

_TYPES = frozenset("boolean code date datetime decimal integer mixed null text time timestamp".split())
#: Columns shown beside those of keys.
_OTHERS = 6


@dataclass(frozen=True, slots=True)
class Column:
    """A column: whether it is part of the primary key, and of a foreign key."""

    name: str
    type: str
    key: bool
    foreign: bool


@dataclass(frozen=True, slots=True)
class Box:
    """A table."""

    table: str
    columns: tuple[Column, ...]
    rows: int
    #: Why its key cannot be declared as it is, if it cannot.
    doubt: str = ""


@dataclass(frozen=True, slots=True)
class Edge:
    """A foreign key: the share of the child's values that the parent holds, and examples of those it does not."""

    child_table: str
    child_columns: tuple[str, ...]
    parent_table: str
    parent_columns: tuple[str, ...]
    inclusion: float
    verified: bool
    orphans: tuple[str, ...]


def svg(boxes: Sequence[Box], edges: Sequence[Edge]) -> str:
    """The schema as a picture that needs nothing else: no script, no font, light or dark as the reader prefers.

    Lines are solid where verified and dashed where inferred; those that do not hold for all values say for how many.
    """
    edges = _between(boxes, edges)
    cards = _cards(boxes, edges)
    drawing = _Drawing(cards, edges)
    width, height = drawing.arrange()
    return "".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="erd" role="img" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}"><title>{_summary(boxes, edges)}</title>'
            f"<desc>{_description(edges)}</desc><style>{_STYLE}</style>"
            f'<rect class="paper" width="{width:.0f}" height="{height:.0f}"/>',
            *(_legend() if edges else ()),
            *drawing.lines(),
            *drawing.tables(),
            "</svg>",
        ]
    )


def mermaid(boxes: Sequence[Box], edges: Sequence[Edge]) -> str:
    """The schema as a Mermaid ``erDiagram``, which GitHub and many editors draw."""
    edges = _between(boxes, edges)
    names = dict(zip((box.table for box in boxes), _unique(_entity(box.table) for box in boxes), strict=True))
    lines = ["erDiagram"]
    for card in _cards(boxes, edges):
        lines.append(f'    "{names[card.box.table]}" {{')
        attributes = _unique(_attribute(column.name) for column in card.rows)
        for column, name in zip(card.rows, attributes, strict=True):
            keys = ", ".join(word for word, holds in (("PK", column.key), ("FK", column.foreign)) if holds)
            comment = f'"{_quotable(column.name)}"' if name != column.name else ""
            lines.append(" ".join(filter(None, ["       ", _type(column), name, keys, comment])))
        if card.more:
            lines.append(f'        _ _ "+ {len(card.more)} more"')
        lines.append("    }")
    for edge in edges:
        share = f" ({percent(edge.inclusion)})" if edge.inclusion < 1 else ""
        label = _quotable(", ".join(edge.child_columns)) + share
        line = "||--o{" if edge.verified else "||..o{"
        lines.append(f'    "{names[edge.parent_table]}" {line} "{names[edge.child_table]}" : "{label}"')
    return "\n".join(lines) + "\n"


def _commented(doubt: str, statement: str) -> str:
    """A statement, or a comment of it; a name may hold line ends."""
    return doubt + statement.replace("\n", "\n-- ") if doubt else statement


def sql(boxes: Sequence[Box], edges: Sequence[Edge]) -> str:
    """The schema's keys as SQL; what cannot be declared is a comment, for orphans with a query that lists them."""
    edges = _between(boxes, edges)
    keys = {box.table: tuple(column.name for column in box.columns if column.key) for box in boxes}
    doubts = {box.table: f"-- {box.doubt}: " if box.doubt else "" for box in boxes}
    statements = [
        _commented(doubts[table], f"ALTER TABLE {_identifier(table)} ADD PRIMARY KEY ({_identifiers(key)});")
        for table, key in keys.items()
        if key
    ]
    whole = [edge for edge in edges if edge.inclusion >= 1]
    referred = {(edge.parent_table, edge.parent_columns): None for edge in whole}
    statements += [
        f"ALTER TABLE {_identifier(table)} ADD UNIQUE ({_identifiers(columns)});"
        for table, columns in referred
        if set(columns) != set(keys[table])
    ]
    statements += [_foreign_key(edge) + ("" if edge.verified else "  -- inferred, not verified") for edge in whole]
    statements += [_orphans(edge) for edge in edges if edge.inclusion < 1]
    return "".join(statement + "\n" for statement in statements)


def _between(boxes: Sequence[Box], edges: Sequence[Edge]) -> list[Edge]:
    """The edges whose tables are both there."""
    tables = {box.table for box in boxes}
    return [edge for edge in edges if edge.child_table in tables and edge.parent_table in tables]


def _type(column: Column) -> str:
    return column.type if column.type in _TYPES else "text"


# --- SQL --------------------------------------------------------------------------------------------------------------

#: No SQL text holds a NUL, and no UTF-8 a lone surrogate (which names of files may).
_UNWRITABLE = re.compile("[\0\ud800-\udfff]")


def _identifier(name: str) -> str:
    return '"' + _UNWRITABLE.sub("\N{REPLACEMENT CHARACTER}", name).replace('"', '""') + '"'


def _identifiers(names: Iterable[str]) -> str:
    return ", ".join(_identifier(name) for name in names)


def _foreign_key(edge: Edge) -> str:
    return (
        f"ALTER TABLE {_identifier(edge.child_table)} ADD FOREIGN KEY ({_identifiers(edge.child_columns)}) "
        f"REFERENCES {_identifier(edge.parent_table)} ({_identifiers(edge.parent_columns)});"
    )


def _orphans(edge: Edge) -> str:
    """A foreign key that does not hold, and the query for the values it fails on, both commented out.

    Each line of the comment starts with the dashes, those within a name too: taking them off gives the statement back.
    """
    mine = [f"c.{_identifier(name)}" for name in edge.child_columns]
    theirs = [f"p.{_identifier(name)}" for name in edge.parent_columns]
    on = " AND ".join(f"{one} = {other}" for one, other in zip(mine, theirs, strict=True))
    there = " AND ".join(f"{one} IS NOT NULL" for one in mine)
    text = (
        f"{percent(edge.inclusion)} only: {_foreign_key(edge)}\n"
        f"SELECT DISTINCT {', '.join(mine)} FROM {_identifier(edge.child_table)} AS c "
        f"LEFT JOIN {_identifier(edge.parent_table)} AS p ON {on} WHERE {theirs[0]} IS NULL AND {there};"
    )
    return "".join("-- " + line for line in text.splitlines(keepends=True))


# --- Mermaid ----------------------------------------------------------------------------------------------------------

#: Characters that end a string of Mermaid's, or start a directive, an entity or a tag in one, and their look-alikes.
_LOOKALIKES = str.maketrans('"%\\~#;<>`', "'\uff05\uff3c\u223c\uff03\uff1b\u2039\u203a'")
#: Mermaid takes a line with such words for a command, in quotes or not.
_COMMAND = re.compile(r"(direction)\s+(?=TB|BT|RL|LR)", re.IGNORECASE)
_NOT_ATTRIBUTE = re.compile(r"[^A-Za-z0-9_\u00c0-\uffff]|[^\w]")
#: What cannot start an attribute's name: a digit, or the word for a key.
_NOT_START = re.compile(r"[0-9]|$|(?:pk|fk|uk)(?![A-Za-z0-9_])", re.IGNORECASE)


def _quotable(name: str) -> str:
    """A name for between quotes."""
    return _COMMAND.sub(r"\1_", printable(name).translate(_LOOKALIKES)).strip()


def _entity(name: str) -> str:
    return _quotable(name) or "_"


def _attribute(name: str) -> str:
    word = _NOT_ATTRIBUTE.sub("_", name)
    return "_" + word if _NOT_START.match(word) else word


def _unique(names: Iterable[str]) -> list[str]:
    """Names made different by a number where they are not."""
    taken: set[str] = set()
    counts: dict[str, int] = defaultdict(int)
    found = []
    for name in names:
        unique = name
        while unique in taken:
            counts[name] += 1
            unique = f"{name}_{counts[name] + 1}"
        taken.add(unique)
        found.append(unique)
    return found


# --- what a table shows -----------------------------------------------------------------------------------------------

_HEADER, _ROW = 27.0, 18.0
_NARROWEST, _WIDEST = 140.0, 272.0
#: Widths of a character: of a column's name, of a table's name, of small print.
_CHAR, _BOLD, _SMALL = 6.95, 7.25, 5.6
#: Where names start: right of one mark of keys, or of two.
_INDENTS = (28.0, 42.0)


@dataclass(frozen=True, slots=True)
class _Card:
    """The columns of a table that are drawn, the others, and how wide it must be."""

    box: Box
    rows: tuple[Column, ...]
    more: tuple[Column, ...]
    indent: float
    width: float

    @property
    def height(self) -> float:
        return _HEADER + _ROW * (len(self.rows) + bool(self.more)) + 4

    def row(self, columns: tuple[str, ...]) -> int:
        """The row where a foreign key of these columns meets the table; -1, its header, if there is none."""
        rows = {column.name: i for i, column in enumerate(self.rows)}
        return min((rows[name] for name in columns if name in rows), default=-1)


def _cards(boxes: Sequence[Box], edges: Sequence[Edge]) -> list[_Card]:
    used: dict[str, set[str]] = defaultdict(set)
    for edge in edges:
        used[edge.child_table].update(edge.child_columns)
        used[edge.parent_table].update(edge.parent_columns)
    return [_card(box, used[box.table]) for box in boxes]


def _card(box: Box, used: set[str]) -> _Card:
    """Keys come first, then foreign keys and what is referred to, then some others."""
    keys = [column for column in box.columns if column.key]
    foreign = [column for column in box.columns if not column.key and (column.foreign or column.name in used)]
    others = [column for column in box.columns if not column.key and not column.foreign and column.name not in used]
    # A line that says that there is one more takes the place of that one.
    shown = len(others) if len(others) <= _OTHERS + 1 else _OTHERS
    rows = (*keys, *foreign, *others[:shown])
    indent = _INDENTS[any(column.key and column.foreign for column in rows)]
    widths = [indent + _CHAR * columns_of(column.name) + 12 + _SMALL * len(_type(column)) + 9 for column in rows]
    head = 12 + _BOLD * columns_of(box.table) + 14 + _SMALL * len(_rows_text(box)) + 9
    width = min(_WIDEST, max(_NARROWEST, head, *widths) if widths else max(_NARROWEST, head))
    return _Card(box, rows, tuple(others[shown:]), indent, math.ceil(width))


def _rows_text(box: Box) -> str:
    """A number of rows in few characters."""
    for unit, word in ((1e9, "G"), (1e6, "M")):
        if box.rows >= unit:
            return f"{box.rows / unit:.1f}{word} rows"
    return _counted(box.rows, "row")


def _counted(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def _fit(text: str, cells: int) -> str:
    """Printable text, its middle left out where it is too long: names differ at their ends, most at the last."""
    flat = printable(text)
    if columns_of(flat) <= cells:
        return flat
    head, tail = flat[:cells], flat[-cells:]
    while columns_of(head) + columns_of(tail) >= cells:
        if 3 * columns_of(head) > 2 * columns_of(tail):
            head = head[:-1]
        else:
            tail = tail[1:]
    return f"{head}…{tail}"


# --- layers -----------------------------------------------------------------------------------------------------------

Pairs = Sequence[tuple[int, int]]

#: Width of a drawing by its height, and a height below which no layer is broken up.
_ASPECT, _LEAST_CAP = 1.5, 560.0
#: Least distances of tables, of a lane and a table, and of lanes.
_APART, _PASSING, _LANES = 30.0, 15.0, 9.0
#: Sweeps that order items, and those that place them, with what draws items to the middle so that no gaps remain;
#: items times sweeps from which on there are fewer sweeps; the height of a drawing by that of its tallest layer.
_SWEEPS, _EFFORT = 16, 60_000
_GRAVITY = (0.4, 0.3, 0.2, 0.1, 0.05, 0.0, 0.0, 0.0)
_LOOSE = 1.15


def _acyclic(size: int, pairs: Pairs) -> list[int]:
    """Each node's rank in an order that has few of the pairs the wrong way round.

    Takes nodes nothing is left before; where there is a cycle, the one with the most after and the least before it.
    """
    after: list[list[int]] = [[] for _ in range(size)]
    before = [0] * size
    for one, other in pairs:
        after[one].append(other)
        before[other] += 1

    def urgency(node: int) -> tuple[bool, int, int]:
        return (before[node] > 0, before[node] - len(after[node]) if before[node] else 0, node)

    queue = [urgency(node) for node in range(size)]
    heapq.heapify(queue)
    rank = [-1] * size
    ranks = iter(range(size))
    while queue:
        entry = heapq.heappop(queue)
        node = entry[2]
        if rank[node] >= 0 or entry != urgency(node):
            continue
        rank[node] = next(ranks)
        for other in after[node]:
            before[other] -= 1
            if rank[other] < 0:
                heapq.heappush(queue, urgency(other))
    return rank


def _layers(heights: Sequence[float], pairs: Pairs, cap: float) -> list[int]:
    """The layer of each node: behind those before it, where there is room for it below the cap.

    Those with the longest path behind them choose first, as in Coffman and Graham's algorithm; then those with more
    after than before them move up to them.
    """
    rank = _acyclic(len(heights), pairs)
    before: list[set[int]] = [set() for _ in heights]
    after: list[set[int]] = [set() for _ in heights]
    for one, other in pairs:
        first, second = (one, other) if rank[one] < rank[other] else (other, one)
        after[first].add(second)
        before[second].add(first)
    order = sorted(range(len(heights)), key=rank.__getitem__)
    below = [0] * len(heights)
    for node in reversed(order):
        below[node] = 1 + max((below[other] for other in after[node]), default=0)

    layer = [-1] * len(heights)
    filled: dict[int, float] = defaultdict(float)
    waiting = [len(nodes) for nodes in before]
    queue = [(-below[node], rank[node], node) for node in order if not waiting[node]]
    heapq.heapify(queue)
    while queue:
        node = heapq.heappop(queue)[2]
        at = 1 + max((layer[other] for other in before[node]), default=-1)
        while filled[at] and filled[at] + heights[node] > cap:
            at += 1
        layer[node] = at
        filled[at] += heights[node]
        for other in after[node]:
            waiting[other] -= 1
            if not waiting[other]:
                heapq.heappush(queue, (-below[other], rank[other], other))

    for node in reversed(order):
        if len(after[node]) > len(before[node]):
            nearest = min(layer[other] for other in after[node]) - 1
            room = (at for at in range(nearest, layer[node], -1) if filled[at] + heights[node] <= cap)
            at = next(room, layer[node])
            filled[layer[node]] -= heights[node]
            filled[at] += heights[node]
            layer[node] = at
    used = {at: i for i, at in enumerate(sorted(set(layer)))}
    return [used[at] for at in layer]


# --- places -----------------------------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class _Item:
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
    other: _Item
    theirs: float
    weight: float


def _link(left: _Item, left_at: float, right: _Item, right_at: float) -> None:
    weight = 1.0 + 2 * left.lane + 2 * right.lane
    left.after.append(_Link(left_at, right, right_at, weight))
    right.before.append(_Link(right_at, left, left_at, weight))


def _distance(upper: _Item, lower: _Item) -> float:
    if upper.lane and lower.lane:
        return _LANES
    return _PASSING if upper.lane or lower.lane else _APART


def _room(layer: Sequence[_Item]) -> list[float]:
    """The room that those above each item take, and at last that of all."""
    room = [0.0]
    for upper, lower in pairwise(layer):
        room.append(room[-1] + upper.height + _distance(upper, lower))
    return [*room, room[-1] + layer[-1].height]


def _settle(layer: Sequence[_Item], wanted: Sequence[float], weights: Sequence[float], bound: float) -> None:
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


def _mean(item: _Item, links: Sequence[_Link]) -> float:
    if not links:
        return item.y
    return sum(link.other.y + link.theirs - link.mine for link in links) / len(links)


def _median(item: _Item, links: Sequence[_Link]) -> float:
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


def _arrange(layers: list[list[_Item]]) -> None:
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


def _drawn(item: _Item, place: float, gravity: float) -> float:
    """A place nearer to the middle of the drawing, where all layers are centred."""
    return place - gravity * (place + item.height / 2)


def _crossings(layers: Sequence[Sequence[_Item]]) -> int:
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


# --- channels ---------------------------------------------------------------------------------------------------------

_TRACK = 9.0
#: Lines whose ends differ by less are taken for one height.
_NEAR = 4.0


@dataclass(slots=True, eq=False)
class _Net:
    """What leaves one point at the left of a channel, and the heights of where it goes at its right."""

    left: float
    rights: list[float]
    track: int = 0

    @property
    def low(self) -> float:
        return min(self.left, *self.rights)

    @property
    def high(self) -> float:
        return max(self.left, *self.rights)


def _bends(net: _Net) -> bool:
    return net.high - net.low > 0.05


def _cost(one: _Net, other: _Net) -> float:
    """Crossings, and above all lines on top of each other, if a net's track is left of another's."""
    low, high = other.low, other.high
    return (
        (one.low - 0.1 < other.left < one.high + 0.1)
        + sum(low - 0.1 < right < high + 0.1 for right in one.rights)
        + 20 * sum(abs(other.left - right) < _NEAR for right in one.rights)
    )


def _assign_tracks(nets: Iterable[_Net]) -> int:
    """Gives nets that overlap different tracks, in an order with few crossings; returns how many tracks there are."""
    bent = [net for net in nets if _bends(net)]
    down = [net for net in bent if sum(net.rights) > net.left * len(net.rights)]
    up = [net for net in bent if sum(net.rights) <= net.left * len(net.rights)]
    order = sorted(down, key=lambda net: -net.left) + sorted(up, key=lambda net: net.left)
    rank = _acyclic(len(order), _on_top(order))
    order = [order[i] for i in sorted(range(len(order)), key=rank.__getitem__)]
    for _ in range(12):
        swapped = False
        for i in range(len(order) - 1):
            if _cost(order[i + 1], order[i]) < _cost(order[i], order[i + 1]):
                order[i], order[i + 1] = order[i + 1], order[i]
                swapped = True
        if not swapped:
            break
    tracks: list[list[tuple[float, float]]] = []
    for net in order:
        span = (net.low - 6, net.high + 6)
        at = len(tracks)
        while at and not _overlaps(tracks[at - 1], span):
            at -= 1
        if at == len(tracks):
            tracks.append([])
        insort(tracks[at], span)
        net.track = at
    return len(tracks)


def _on_top(nets: Sequence[_Net]) -> list[tuple[int, int]]:
    """Pairs of nets whose lines lie on top of each other unless the first one's track is left of the second's."""
    lefts = sorted((net.left, i) for i, net in enumerate(nets))
    pairs = []
    for i, net in enumerate(nets):
        for right in net.rights:
            at = bisect_left(lefts, (right - _NEAR, -1))
            while at < len(lefts) and lefts[at][0] < right + _NEAR:
                if lefts[at][1] != i:
                    pairs.append((lefts[at][1], i))
                at += 1
    return pairs


def _overlaps(spans: Sequence[tuple[float, float]], span: tuple[float, float]) -> bool:
    """Whether a span meets any of some that are sorted and apart."""
    at = bisect_left(spans, span)
    return (at < len(spans) and spans[at][0] < span[1]) or (at > 0 and spans[at - 1][1] > span[0])


# --- the drawing ------------------------------------------------------------------------------------------------------

_MARGIN, _TOP = 24.0, 46.0
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
class _Route:
    """An edge's way: its ends, the items it goes through from left to right, the nets it is part of between them.

    One that stays at its table has a reach instead.
    """

    child: _End
    parent: _End
    stops: list[tuple[_Item, float]] = field(default_factory=list)
    nets: list[_Net] = field(default_factory=list)
    reach: float = 0.0
    points: list[Point] = field(default_factory=list)

    @property
    def ends(self) -> tuple[_End, _End]:
        """From left to right."""
        return (self.child, self.parent) if self.child.right else (self.parent, self.child)


class _Drawing:
    """Tables and lines with their places."""

    def __init__(self, cards: Sequence[_Card], edges: Sequence[Edge]) -> None:
        self.cards, self.edges = cards, edges
        self.index = {card.box.table: i for i, card in enumerate(cards)}
        self.ends = [(self.index[edge.child_table], self.index[edge.parent_table]) for edge in edges]
        self.at: list[Point] = [(0.0, 0.0)] * len(cards)
        self.widths = [card.width for card in cards]
        self.routes: list[_Route] = []
        self.colours: dict[int, str] = {}

    def arrange(self) -> tuple[float, float]:
        """Places everything; returns the size of the whole."""
        components, alone = self._components()
        self.routes = [_Route(_End(0, 0, False), _End(0, 0, True)) for _ in self.edges]
        pieces = [_Component(self, nodes, edges) for nodes, edges in components]
        area = sum((piece.width + _BETWEEN) * (piece.height + _BETWEEN) for piece in pieces)
        area += sum((_WIDEST + _GRID) * (self.cards[node].height + _GRID) for node in alone)
        target = max([math.sqrt(area * _ASPECT), *(piece.width for piece in pieces)])
        top = _TOP if self.edges else _MARGIN
        right, bottom = self._shelve(pieces, target, top)
        if alone:
            right, bottom = self._grid(alone, target, right, bottom)
        for number, node in enumerate(sorted({parent for _, parent in self.ends}, key=self.at.__getitem__)):
            self.colours[node] = _COLOURS[number % len(_COLOURS)]
        return max(right, 2 * _MARGIN, _LEGEND_WIDTH if self.edges else 0) + _MARGIN, bottom + _MARGIN

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
        x, y, deepest, widest = _MARGIN, top, top, 0.0
        for piece in sorted(pieces, key=lambda piece: -piece.height):
            fitting = (i for i, (_, width, _) in enumerate(stacks) if piece.width <= width)
            at = next((i for i in fitting if stacks[i][2] + piece.height <= deepest), None)
            if at is None:
                if x > _MARGIN and x + piece.width > _MARGIN + target:
                    x, y, stacks = _MARGIN, deepest + _BETWEEN, []
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
        count = max(1, min(len(alone), int((max(target, right - _MARGIN) + _GRID) // (width + _GRID))))
        depth = [bottom + (_BETWEEN if right else 0.0)] * count
        for node in alone:
            column = min(range(count), key=depth.__getitem__)
            self.at[node] = (_MARGIN + column * (width + _GRID), depth[column])
            self.widths[node] = width
            depth[column] += self.cards[node].height + _GRID
        return max(right, _MARGIN + count * (width + _GRID) - _GRID), max(depth) - _GRID

    def tables(self) -> Iterable[str]:
        for card, at, width, i in zip(self.cards, self.at, self.widths, range(len(self.cards)), strict=True):
            yield _table(card, at, width, self.colours.get(i))

    def lines(self) -> Iterable[str]:
        for edge, route, (_, parent) in zip(self.edges, self.routes, self.ends, strict=True):
            yield _line(edge, route, self.at, self.widths, self.colours[parent])


class _Component:
    """Tables that hang together, laid out by themselves with the upper left corner at the origin."""

    def __init__(self, drawing: _Drawing, nodes: Sequence[int], edges: Sequence[int]) -> None:
        self.drawing, self.nodes, self.edges = drawing, nodes, edges
        self.items = {node: _Item(node, drawing.cards[node].height) for node in nodes}
        self.layer = self._layer()
        self.layers: list[list[_Item]] = [[] for _ in range(max(self.layer.values()) + 1)]
        for node in nodes:
            self.layers[self.layer[node]].append(self.items[node])
        self._attach()
        self._connect()
        _arrange(self.layers)
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
        area = sum((cards[node].height + _APART) * (cards[node].width + 90) for node in self.nodes)
        cap = max(_LEAST_CAP, math.sqrt(area / _ASPECT), *(cards[node].height + _APART for node in self.nodes))
        local = {node: i for i, node in enumerate(self.nodes)}
        ends = [self.drawing.ends[edge] for edge in self.edges]
        pairs = [(local[parent], local[child]) for child, parent in ends if child != parent]
        found = _layers([cards[node].height + _APART for node in self.nodes], pairs, cap)
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
            middle = _HEADER / 2 if row < 0 else _HEADER + _ROW * (row + 0.5)
            step = min(5.0, 13.0 / max(1, len(taken) - 1))
            for i, ends in enumerate(taken.values()):
                for end in ends:
                    end.at = middle + step * (i - (len(taken) - 1) / 2)
                    end.slack = 0.0 if len(ends) > 1 else (_SLACK if len(taken) == 1 else 1.0)
                    end.lower = end.at > middle

    def _connect(self) -> None:
        """Gives edges the lanes they need, one to a trunk and layer, and links what they lead through."""
        lanes: dict[tuple[tuple[int, ...], int], _Item] = {}
        linked = set()
        for number in self.edges:
            route, trunk = self.drawing.routes[number], self._trunk(number)
            if route.child.card == route.parent.card:
                continue
            start, end = route.ends
            route.stops = [(self.items[start.card], start.at)]
            for at in range(self.layer[start.card] + 1, self.layer[end.card]):
                if (trunk, at) not in lanes:
                    lanes[trunk, at] = _Item(-1, 0.0)
                    self.layers[at].append(lanes[trunk, at])
                route.stops.append((lanes[trunk, at], 0.0))
            route.stops.append((self.items[end.card], end.at))
            for one, other in pairwise(route.stops):
                if (one, other) not in linked:
                    linked.add((one, other))
                    _link(*one, *other)

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
        nets: list[dict[tuple[int, ...], _Net]] = [{} for _ in self.layers]
        for number in self.edges:
            route, trunk = drawing.routes[number], self._trunk(number)
            first = self.layer[route.stops[0][0].card] if route.stops else 0
            for channel, ((left, at), (right, there)) in enumerate(pairwise(route.stops), first):
                net = nets[channel].setdefault(trunk, _Net(left.y + at, []))
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
            x += max(0, _assign_tracks(nets[at].values()) - 1) * _TRACK
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

    def _points(self, route: _Route, tracks_at: Sequence[float]) -> None:
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
            x, y = tracks_at[self.layer[first.card] + i] + net.track * _TRACK, item.y + at
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


# --- SVG --------------------------------------------------------------------------------------------------------------

_FONT = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace"
_STYLE = (
    f".erd text{{font:11.5px {_FONT};fill:#1f2733}}"
    ".erd .paper{fill:#fbfcfe}.erd .card{fill:#fff;stroke:#b9c2cf}.erd .head{fill:#e9eef5}"
    ".erd .name{font-size:12px;font-weight:bold}.erd .key{font-weight:bold}"
    ".erd .small,.erd .mark,.erd .share{font:9.5px system-ui,-apple-system,'Segoe UI',Roboto,Arial,sans-serif}"
    ".erd .small{fill:#6a7687}.erd .mark{font-size:8px;font-weight:bold}.erd .pk{fill:#a36a00}.erd .fk{fill:#2f6fb5}"
    ".erd .share{font-weight:bold;fill:#b3261e;stroke:#fbfcfe;stroke-width:3;paint-order:stroke}"
    ".erd path{fill:none;stroke-width:1.4;stroke-linejoin:round}.erd .dashed{stroke-dasharray:5 3.5}"
    ".erd .hit{stroke:transparent;stroke-width:9;pointer-events:stroke}"
    ".erd .relation:hover .edge,.erd .relation:hover .ends{stroke-width:3}.erd .rule{stroke:#b9c2cf;stroke-width:1}"
    ".erd .legend{stroke:#6a7687}"
    "@media(prefers-color-scheme:dark){.erd text{fill:#dbe2ec}.erd .paper{fill:#12161c}"
    ".erd .card{fill:#1b212a;stroke:#465262}.erd .head{fill:#2a3340}.erd .small{fill:#93a0b2}.erd .pk{fill:#e0ad4a}"
    ".erd .fk{fill:#7db4f0}.erd .share{fill:#ff8a80;stroke:#12161c}.erd .rule{stroke:#465262}"
    ".erd .legend{stroke:#93a0b2}}"
)
_LEGEND_WIDTH = 480.0
#: Names and examples in a tooltip, relations in the description.
_MANY = 30


def _text(text: str) -> str:
    """Text for between tags and for attributes, with nothing in it that XML does not allow."""
    return escape(printable(text), quote=True)


def _summary(boxes: Sequence[Box], edges: Sequence[Edge]) -> str:
    return f"Schema of {_counted(len(boxes), 'table')} with {_counted(len(edges), 'foreign key')}"


def _description(edges: Sequence[Edge]) -> str:
    sentences = [f"{_reference(edge)} ({_certainty(edge)})" for edge in edges[:_MANY]]
    if len(edges) > _MANY:
        sentences.append(f"and {len(edges) - _MANY:,} more")
    return _text("; ".join(sentences))


def _reference(edge: Edge) -> str:
    child, parent = ", ".join(edge.child_columns), ", ".join(edge.parent_columns)
    return f"{edge.child_table} ({child}) refers to {edge.parent_table} ({parent})"


def _certainty(edge: Edge) -> str:
    share = f"{percent(edge.inclusion)} of its values, " if edge.inclusion < 1 else ""
    return share + ("verified" if edge.verified else "inferred")


def _legend() -> Iterable[str]:
    entries = (("solid", "verified"), ("dashed", "inferred"))
    x = _MARGIN
    for style, word in entries:
        yield f'<path class="legend {style}" d="M{x} 20h32"/><text class="small" x="{x + 38}" y="23.5">{word}</text>'
        x += 96
    yield f'<path class="legend" d="M{x} 20h24M{x + 8} 15.5v9M{x + 14} 20l10 -4.5M{x + 14} 20l10 4.5"/>'
    yield f'<text class="small" x="{x + 30}" y="23.5">one to many</text>'
    yield f'<text class="share" x="{x + 108}" y="23.5">97%</text>'
    yield f'<text class="small" x="{x + 134}" y="23.5">of values found</text>'


def _table(card: _Card, at: Point, width: float, colour: str | None) -> str:
    (x, y), box = at, card.box
    count = _rows_text(box)
    name = _fit(box.table, int((width - 12 - 14 - _SMALL * len(count) - 9) / _BOLD))
    stripe = f'<rect width="4" height="{_HEADER:.0f}" fill="{colour}"/>' if colour else ""
    parts = [
        f'<g class="table" data-table="{_text(box.table)}" transform="translate({x:.1f} {y:.1f})">'
        f"<title>{_text(box.table)}: {_counted(box.rows, 'row')}, {_counted(len(box.columns), 'column')}</title>"
        f'<rect class="card" width="{width:.0f}" height="{card.height:.0f}"/>'
        f'<rect class="head" x=".5" y=".5" width="{width - 1:.0f}" height="{_HEADER - 1:.0f}"/>{stripe}'
        f'<text class="name" x="12" y="18">{_text(name)}</text>'
        f'<text class="small" x="{width - 8:.0f}" y="17.5" text-anchor="end">{count}</text>'
    ]
    for i, column in enumerate(card.rows):
        parts.append(_row(column, _HEADER + _ROW * i + 13, card.indent, width))
    keyed = sum(column.key for column in card.rows)
    if 0 < keyed < len(card.rows):
        parts.append(f'<path class="rule" d="M0 {_HEADER + _ROW * keyed + 0.5}H{width:.0f}"/>')
    if card.more:
        names = ", ".join(column.name for column in card.more[:_MANY]) + (", …" if len(card.more) > _MANY else "")
        foot = _HEADER + _ROW * len(card.rows) + 13
        parts.append(
            f'<text class="small" x="{card.indent:.0f}" y="{foot:.1f}">+ {len(card.more):,} more'
            f"<title>{_text(names)}</title></text>"
        )
    return "".join([*parts, "</g>"])


def _row(column: Column, y: float, indent: float, width: float) -> str:
    kind = _type(column)
    name = _fit(column.name, int((width - indent - 12 - _SMALL * len(kind) - 9) / _CHAR))
    title = f"<title>{_text(column.name)}</title>" if name != column.name else ""
    words = [word for word, holds in (("PK", column.key), ("FK", column.foreign)) if holds]
    marks = "".join(
        f'<text class="mark {word.lower()}" x="{8 + 15 * i}" y="{y - 0.5:.1f}">{word}</text>'
        for i, word in enumerate(words)
    )
    face = ' class="key"' if column.key else ""
    return (
        f'{marks}<text{face} x="{indent:.0f}" y="{y:.1f}">{_text(name)}{title}</text>'
        f'<text class="small" x="{width - 8:.0f}" y="{y:.1f}" text-anchor="end">{kind}</text>'
    )


def _line(edge: Edge, route: _Route, at: Sequence[Point], widths: Sequence[float], colour: str) -> str:
    """An edge: its line, a crow's foot at the child, a bar at the parent, and its share if it is a part."""
    ends = []
    for end in (route.child, route.parent):
        x, y = at[end.card]
        ends.append((x + (widths[end.card] if end.right else 0.0), y + end.at, 1 if end.right else -1))
    (x, y, out), (px, py, pout) = ends
    foot = f"M{x:.1f} {y - 4.5:.1f}L{x + 10 * out:.1f} {y:.1f}L{x:.1f} {y + 4.5:.1f}"
    bar = f"M{px + 7 * pout:.1f} {py - 4.5:.1f}v9"
    style = "solid" if edge.verified else "dashed"
    path = _rounded(route.points)
    title = f"{_reference(edge)}: {_certainty(edge)}"
    if edge.orphans:
        title += "; not found: " + ", ".join(edge.orphans[:_MANY])
    label = ""
    if edge.inclusion < 1:
        loop = route.child.card == route.parent.card
        lx, ly = (route.points[1][0] + 4, y + 3) if loop else (x + 12 * out, y + (9.5 if route.child.lower else -3))
        anchor = "start" if out > 0 else "end"
        share = _text(percent(edge.inclusion))
        label = f'<text class="share" x="{lx:.1f}" y="{ly:.1f}" text-anchor="{anchor}">{share}</text>'
    return (
        f'<g class="relation" data-child="{_text(edge.child_table)}" data-parent="{_text(edge.parent_table)}" '
        f'stroke="{colour}"><title>{_text(title)}</title><path class="hit" d="{path}"/>'
        f'<path class="edge {style}" d="{path}"/><path class="ends" d="{foot}{bar}"/>{label}</g>'
    )


def _rounded(points: Sequence[Point], radius: float = 6.0) -> str:
    """A line of straight pieces as a path with round corners."""
    parts = [f"M{points[0][0]:.1f} {points[0][1]:.1f}"]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        reach = min(radius, math.dist(before, corner) / 2, math.dist(corner, after) / 2)
        a, b = _towards(corner, before, reach), _towards(corner, after, reach)
        parts.append(f"L{a[0]:.1f} {a[1]:.1f}Q{corner[0]:.1f} {corner[1]:.1f} {b[0]:.1f} {b[1]:.1f}")
    parts.append(f"L{points[-1][0]:.1f} {points[-1][1]:.1f}")
    return "".join(parts)


def _towards(start: Point, end: Point, reach: float) -> Point:
    share = reach / (math.dist(start, end) or 1.0)
    return start[0] + (end[0] - start[0]) * share, start[1] + (end[1] - start[1]) * share
