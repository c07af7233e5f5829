"""A schema as a picture (SVG) in light and dark, without scripts or fonts; names are hostile until escaped."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

from lakescope.show.diagram.cards import (
    BOLD_CHARACTER,
    CHARACTER,
    HEADER_HEIGHT,
    ROW_HEIGHT,
    SMALL_CHARACTER,
    TableCard,
    counted,
    fitted,
    rows_text,
    table_cards,
)
from lakescope.show.diagram.layout import MARGIN, Layout, Point, Way
from lakescope.show.diagram.schema import Box, Column, Edge, edges_between, type_word
from lakescope.show.text import percent, printable


def svg(boxes: Sequence[Box], edges: Sequence[Edge]) -> str:
    """The schema as a picture that needs nothing else: no script, no font, light or dark as the reader prefers.

    Lines are solid where verified and dashed where inferred; those that do not hold for all values say for how many.
    """
    edges = edges_between(boxes, edges)
    cards = table_cards(boxes, edges)
    drawing = Layout(cards, edges)
    width, height = drawing.arrange()
    return "".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="erd" role="img" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}"><title>{_summary(boxes, edges)}</title>'
            f"<desc>{_description(edges)}</desc><style>{_STYLE}</style>"
            f'<rect class="paper" width="{width:.0f}" height="{height:.0f}"/>',
            *(_legend() if edges else ()),
            *_lines(drawing),
            *_tables(drawing),
            "</svg>",
        ]
    )


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
#: Names and examples in a tooltip, relations in the description.
_MANY = 30


def _text(text: str) -> str:
    """Text for between tags and for attributes, with nothing in it that XML does not allow."""
    return escape(printable(text), quote=True)


def _summary(boxes: Sequence[Box], edges: Sequence[Edge]) -> str:
    return f"Schema of {counted(len(boxes), 'table')} with {counted(len(edges), 'foreign key')}"


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
    x = MARGIN
    for style, word in entries:
        yield f'<path class="legend {style}" d="M{x} 20h32"/><text class="small" x="{x + 38}" y="23.5">{word}</text>'
        x += 96
    yield f'<path class="legend" d="M{x} 20h24M{x + 8} 15.5v9M{x + 14} 20l10 -4.5M{x + 14} 20l10 4.5"/>'
    yield f'<text class="small" x="{x + 30}" y="23.5">one to many</text>'
    yield f'<text class="share" x="{x + 108}" y="23.5">97%</text>'
    yield f'<text class="small" x="{x + 134}" y="23.5">of values found</text>'


def _tables(drawing: Layout) -> Iterable[str]:
    for number, (card, at, width) in enumerate(zip(drawing.cards, drawing.at, drawing.widths, strict=True)):
        yield _table(card, at, width, drawing.colours.get(number))


def _lines(drawing: Layout) -> Iterable[str]:
    for edge, route, (_, parent) in zip(drawing.edges, drawing.routes, drawing.ends, strict=True):
        yield _line(edge, route, drawing.at, drawing.widths, drawing.colours[parent])


def _table(card: TableCard, at: Point, width: float, colour: str | None) -> str:
    (x, y), box = at, card.box
    count = rows_text(box)
    name = fitted(box.table, int((width - 12 - 14 - SMALL_CHARACTER * len(count) - 9) / BOLD_CHARACTER))
    stripe = f'<rect width="4" height="{HEADER_HEIGHT:.0f}" fill="{colour}"/>' if colour else ""
    parts = [
        f'<g class="table" data-table="{_text(box.table)}" transform="translate({x:.1f} {y:.1f})">'
        f"<title>{_text(box.table)}: {counted(box.rows, 'row')}, {counted(len(box.columns), 'column')}</title>"
        f'<rect class="card" width="{width:.0f}" height="{card.height:.0f}"/>'
        f'<rect class="head" x=".5" y=".5" width="{width - 1:.0f}" height="{HEADER_HEIGHT - 1:.0f}"/>{stripe}'
        f'<text class="name" x="12" y="18">{_text(name)}</text>'
        f'<text class="small" x="{width - 8:.0f}" y="17.5" text-anchor="end">{count}</text>'
    ]
    for i, column in enumerate(card.rows):
        parts.append(_row(column, HEADER_HEIGHT + ROW_HEIGHT * i + 13, card.indent, width))
    keyed = sum(column.key for column in card.rows)
    if 0 < keyed < len(card.rows):
        parts.append(f'<path class="rule" d="M0 {HEADER_HEIGHT + ROW_HEIGHT * keyed + 0.5}H{width:.0f}"/>')
    if card.more:
        names = ", ".join(column.name for column in card.more[:_MANY]) + (", …" if len(card.more) > _MANY else "")
        foot = HEADER_HEIGHT + ROW_HEIGHT * len(card.rows) + 13
        parts.append(
            f'<text class="small" x="{card.indent:.0f}" y="{foot:.1f}">+ {len(card.more):,} more'
            f"<title>{_text(names)}</title></text>"
        )
    return "".join([*parts, "</g>"])


def _row(column: Column, y: float, indent: float, width: float) -> str:
    kind = type_word(column)
    name = fitted(column.name, int((width - indent - 12 - SMALL_CHARACTER * len(kind) - 9) / CHARACTER))
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


def _line(edge: Edge, route: Way, at: Sequence[Point], widths: Sequence[float], colour: str) -> str:
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
