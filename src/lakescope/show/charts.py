"""Charts as plain SVG: no script, no font, readable in light and dark, everything escaped."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from lakescope.show.markup import text as html_text

Points = Sequence[tuple[float, float]]


class Svg(str):
    """A picture as text; a notebook shows the picture."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Svg({len(self):,} characters)"

    def _repr_html_(self) -> str:
        width = "" if " width=" in self[:200] else f"width:{_WIDTH}px;"
        return f'<div style="{width}max-width:100%;overflow-x:auto">{self}</div>'


_WIDTH, _HEIGHT = 640, 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 130, 36, 44
_COLOURS = (
    *("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377"),
    *("#777777", "#ee8866", "#44bb99", "#99aa22", "#225555", "#994455"),
)


def line_chart(
    series: Mapping[str, Points], *, title: str, x: str, y: str, log_x: bool = True, log_y: bool = True
) -> Svg:
    """Lines over two axes; on a logarithmic one zeros lie at its foot."""
    points = [point for line in series.values() for point in line]
    if not points:
        return Svg()
    across = _Axis([a for a, _ in points], log=log_x)
    up = _Axis([b for _, b in points], log=log_y)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="{html_text(title)}" font-family="sans-serif" font-size="11" fill="currentColor">',
        f'<text x="{_LEFT}" y="20" font-size="14">{html_text(title)}</text>',
        *_grid(across, up, x, y),
    ]
    ends: list[float] = []
    for number, (name, line) in enumerate(series.items()):
        if line:
            parts += _line(name, sorted(line), across, up, _COLOURS[number % len(_COLOURS)], ends)
    return Svg("".join([*parts, "</svg>"]))


class _Axis:
    """A range of numbers and where they lie between 0 and 1."""

    def __init__(self, values: Sequence[float], *, log: bool) -> None:
        self.log = log
        positive = [value for value in values if value > 0] or [1.0]
        if log:
            self.low: float = math.floor(math.log10(min(positive)) + 1e-9)
            self.high: float = max(self.low + 1, math.ceil(math.log10(max(positive)) - 1e-9))
        else:
            self.low, self.high = 0.0, max(positive) * 1.05

    def place(self, value: float) -> float:
        if self.log:
            value = math.log10(value) if value > 0 else self.low
        return min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))

    def ticks(self) -> list[tuple[float, str]]:
        if self.log:
            step = max(1, round((self.high - self.low) / 8))
            return [(10.0**k, f"1e{k}") for k in range(int(self.low), int(self.high) + 1, step)]
        return [(self.high * i / 5, f"{self.high * i / 5:.3g}") for i in range(6)]


def _x(axis: _Axis, value: float) -> float:
    return _LEFT + axis.place(value) * (_WIDTH - _LEFT - _RIGHT)


def _y(axis: _Axis, value: float) -> float:
    return _HEIGHT - _BOTTOM - axis.place(value) * (_HEIGHT - _TOP - _BOTTOM)


def _grid(across: _Axis, up: _Axis, x: str, y: str) -> list[str]:
    right, foot = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    parts = []
    for value, text in across.ticks():
        at = _x(across, value)
        parts.append(f'<path d="M{at:.1f} {_TOP}V{foot}" stroke="#8884" fill="none"/>')
        parts.append(f'<text x="{at:.1f}" y="{foot + 15}" text-anchor="middle">{text}</text>')
    for value, text in up.ticks():
        at = _y(up, value)
        parts.append(f'<path d="M{_LEFT} {at:.1f}H{right}" stroke="#8884" fill="none"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{text}</text>')
    parts.append(f'<text x="{(_LEFT + right) / 2:.0f}" y="{_HEIGHT - 8}" text-anchor="middle">{html_text(x)}</text>')
    middle = (_TOP + foot) / 2
    parts.append(f'<text transform="translate(14 {middle:.0f}) rotate(-90)" text-anchor="middle">{html_text(y)}</text>')
    return parts


def _line(name: str, line: Points, across: _Axis, up: _Axis, colour: str, ends: list[float]) -> list[str]:
    path = "L".join(f"{_x(across, a):.1f} {_y(up, b):.1f}" for a, b in line)
    # Names stand at the ends of their lines, moved apart where they would overlap.
    at = _y(up, line[-1][1])
    while any(abs(at - other) < 12 for other in ends):
        at += 12
        if at > _HEIGHT - 4:
            at = min(ends) - 12
    ends.append(at)
    return [
        f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="1.8"/>',
        *(f'<circle cx="{_x(across, a):.1f}" cy="{_y(up, b):.1f}" r="2.4" fill="{colour}"/>' for a, b in line),
        f'<text x="{_WIDTH - _RIGHT + 8}" y="{at + 4:.1f}" fill="{colour}">{html_text(name)}</text>',
    ]


def histogram_chart(
    bins: Sequence[Mapping[str, Any]], *, title: str, width: int = 100, height: int = 20, gap: float = 1.0
) -> Svg:
    """Bars of equal width in the colour of the text around them; each says what it counts when pointed at.

    ``bins`` have ``low``, ``high`` and ``count``. Every bin that is not empty can be seen.
    """
    peak = max((each["count"] for each in bins), default=0)
    if not peak:
        return Svg()
    step = width / len(bins)
    bars = []
    for place, each in enumerate(bins):
        tall = max(1.0, height * each["count"] / peak) if each["count"] else 0.0
        span = " to ".join(dict.fromkeys(html_text(_edge(each[end])) for end in ("low", "high")))
        bars.append(
            f'<rect x="{place * step:.2f}" y="{height - tall:.2f}" width="{step - gap:.2f}" height="{tall:.2f}">'
            f"<title>{span}: {each['count']:,}</title></rect>"
        )
    return Svg(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'preserveAspectRatio="none" role="img" aria-label="{html_text(title)}" fill="currentColor">'
        + "".join(bars)
        + "</svg>"
    )


def _edge(value: Any) -> str:
    return f"{value:,.6g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


_MARGIN = 0.04


def scatter_chart(points: Points, *, title: str, x: str, y: str) -> Svg:
    """Points over plain axes that fit them."""
    if not points:
        return Svg()
    spans = [_span([point[axis] for point in points]) for axis in (0, 1)]
    width, height = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM

    def place(value: float, axis: int) -> float:
        low, high = spans[axis]
        share = (value - low) / (high - low)
        return _LEFT + width * share if axis == 0 else _TOP + height * (1 - share)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="{html_text(title)}" font-family="sans-serif" font-size="11" fill="currentColor">',
        f'<text x="{_LEFT}" y="20" font-size="14">{html_text(title)}</text>',
        f'<rect x="{_LEFT}" y="{_TOP}" width="{width}" height="{height}" fill="none" stroke="#8884"/>',
    ]
    for i in range(5):
        across, up = (low + (high - low) * i / 4 for low, high in spans)
        parts += [
            f'<text x="{place(across, 0):.1f}" y="{_HEIGHT - _BOTTOM + 16}" text-anchor="middle">{across:.4g}</text>',
            f'<text x="{_LEFT - 6}" y="{place(up, 1) + 4:.1f}" text-anchor="end">{up:.4g}</text>',
        ]
    parts += [
        f'<text x="{_LEFT + width / 2}" y="{_HEIGHT - 8}" text-anchor="middle">{html_text(x)}</text>',
        f'<text x="{_LEFT}" y="{_TOP - 4}">{html_text(y)}</text>',
    ]
    for a, b in points:
        parts.append(
            f'<circle cx="{place(a, 0):.1f}" cy="{place(b, 1):.1f}" r="2.5" fill="{_COLOURS[0]}" fill-opacity=".6"/>'
        )
    return Svg("".join([*parts, "</svg>"]))


def _span(values: Sequence[float]) -> tuple[float, float]:
    """The range of some values with a margin, never empty."""
    low, high = min(values), max(values)
    margin = (high - low) * _MARGIN or abs(low) * _MARGIN or 1.0
    return low - margin, high + margin
