"""Charts as plain SVG: no script, no font, readable in light and dark, everything escaped.

Each has a label for whoever cannot see it, and says its values when it is pointed at. Its colours are attributes, so
that it can stand alone; the style sheet of a page may give it others by its classes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lakescope.show.markup import Html
from lakescope.show.markup import text as html_text
from lakescope.show.text import shorten, shorten_inside

Line = Sequence[tuple[float, float]]
Bins = Sequence[Mapping[str, Any]]

_COLOURS = (
    *("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377"),
    *("#777777", "#ee8866", "#44bb99", "#99aa22", "#225555", "#994455"),
)
#: Colours of the filled part of a bar, by what it is the share of; everything else has the first.
_FILLED = {"": "#5b8fc9", "missing": "#cc6655"}
_GRID = "#8884"
#: Powers of ten that large numbers are counted in.
_UNITS = ((9, "B"), (6, "M"), (3, "k"))
#: Pixels that a letter takes.
_LETTER = 6.2
#: Share of the range of its numbers that a plot of points leaves free on each side.
_MARGIN = 0.04
#: Steps of an axis below a plot and of one beside it, where more numbers have room, at most.
_ACROSS, _UP = 5, 7
#: Largest number by the smallest from which on those of a tail are drawn by magnitude.
_SPREAD = 1_000.0
#: Numbers further from zero than this are drawn at the edge: what is computed with them would be infinite.
_FARTHEST = 1e300
#: Bars for which there is room at least: two bars alone are no walls.
_BARS = 8


class Svg(Html):
    """A picture as text; a notebook shows the picture."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Svg({len(self):,} characters)"

    def _repr_html_(self) -> str:
        width = "" if " width=" in self[:200] else "width:640px;"
        return f'<div style="{width}max-width:100%;overflow-x:auto">{self}</div>'


def _svg(width: float, height: float, title: str, attributes: str, parts: Sequence[str]) -> Svg:
    return Svg(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img" '
        f'aria-label="{html_text(title)}" fill="currentColor" {attributes}>{"".join(parts)}</svg>'
    )


# --- bars -------------------------------------------------------------------------------------------------------------


def histogram_chart(
    bins: Bins, *, title: str, width: int = 100, height: int = 20, kind: str = "numbers", gap: float = 1.0
) -> Svg:
    """Bars of equal width in the colour of the text around them; each says what it counts when pointed at.

    ``bins`` have ``low``, ``high`` and ``count``. Every bin that is not empty can be seen.
    """
    peak = max((each["count"] for each in bins), default=0)
    if not peak:
        return Svg()
    step = width / max(len(bins), _BARS)
    bars = []
    for place, each in enumerate(bins):
        tall = max(1.0, height * each["count"] / peak) if each["count"] else 0.0
        span = " to ".join(dict.fromkeys(html_text(_edge(each[end])) for end in ("low", "high")))
        bars.append(
            f'<rect x="{place * step:.2f}" y="{height - tall:.2f}" width="{step - gap:.2f}" height="{tall:.2f}">'
            f"<title>{span}: {each['count']:,}</title></rect>"
        )
    size = f'class="bars {kind}" width="{width}" height="{height}" preserveAspectRatio="none"'
    return _svg(width, height, title, size, bars)


def _edge(value: Any) -> str:
    return f"{value:,.6g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def column_chart(column: Mapping[str, Any], width: int = 96, height: int = 28) -> Svg:
    """A column at a glance: how its numbers or times are distributed, of anything else the most frequent values.

    Empty where every value is there once.
    """
    top = column["top"] or ()
    if column["histogram"]:
        bins, title, kind = column["histogram"], "Distribution", "numbers"
    elif top and top[0]["count"] > 1:
        values = [shorten(each["value"], 40) for each in top]
        bins = [{"low": value, "high": value, **each} for value, each in zip(values, top, strict=True)]
        title, kind = "Most frequent values", "values"
    else:
        return Svg()
    return histogram_chart(bins, title=f"{title} of {column['name']}", width=width, height=height, kind=kind)


def share_bar(share: float | None, kind: str = "", width: int = 100) -> Svg:
    """A share as a bar; what it says stands beside it, so that it is not read out."""
    filled = min(1.0, max(0.0, share or 0.0)) * width
    return Svg(
        f'<svg class="bar {html_text(kind)}" viewBox="0 0 {width} 6" width="{width}" height="6" '
        'preserveAspectRatio="none" aria-hidden="true">'
        f'<rect width="{width}" class="rest" height="6" rx="1" fill="#8883"/>'
        f'<rect width="{filled:.1f}" class="part" height="6" rx="1" fill="{_FILLED.get(kind, _FILLED[""])}"/></svg>'
    )


# --- axes -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Axis:
    """A range of numbers, or of their magnitudes, and where numbers lie in it between 0 and 1."""

    low: float
    high: float
    log: bool

    @classmethod
    def around(cls, values: Sequence[float]) -> _Axis:
        """A little more than the numbers need; by magnitude if most would lie in a corner."""
        log = _has_tail(values)
        ends = [min(_FARTHEST, max(-_FARTHEST, value)) for value in (min(values), max(values))]
        low, high = map(math.log10, ends) if log else ends
        margin = (high - low) * _MARGIN or abs(low) * _MARGIN or 1.0
        return cls(low - margin, high + margin, log)

    @classmethod
    def from_below(cls, values: Sequence[float], *, log: bool) -> _Axis:
        """From zero, or from the power of ten below the least; zeros lie at its foot."""
        positive = [value for value in values if value > 0] or [1.0]
        if not log:
            return cls(0.0, max(positive) * 1.05, log)
        low = math.floor(math.log10(min(positive)) + 1e-9)
        return cls(low, max(low + 1, math.ceil(math.log10(max(positive)) - 1e-9)), log)

    def place(self, value: float) -> float:
        if self.log:
            value = math.log10(value) if value > 0 else self.low
        return min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))

    def ticks(self, most: int) -> list[tuple[float, str]]:
        """Round numbers in about so many steps, and how they are written."""
        if self.log:
            first, last = math.ceil(self.low), math.floor(self.high)
            powers = range(first, last + 1, 1 + (last - first) // most)
            return [(10.0**power, _tick_text(10.0**power, -power)) for power in powers]
        step = _step((self.high - self.low) / most)
        numbers = range(math.ceil(self.low / step), math.floor(self.high / step) + 1)
        return [(number * step, _tick_text(number * step, -math.floor(math.log10(step)))) for number in numbers]


def _has_tail(values: Sequence[float]) -> bool:
    """Whether most numbers would lie in a corner: positive ones of many magnitudes, the largest far from the rest."""
    ordered = sorted(values)
    if not ordered or ordered[0] <= 0:
        return False
    return ordered[-1] >= _SPREAD * ordered[0] and ordered[len(ordered) // 2] < ordered[-1] / 10


def _step(least: float) -> float:
    """The round number from this on."""
    unit = 10.0 ** math.floor(math.log10(least))
    return next(unit * each for each in (1, 2, 5, 10, 20) if unit * each >= least * (1 - 1e-9))


def _tick_text(value: float, digits: int) -> str:
    """A number at an axis in few signs, so many digits after the point if it has no unit."""
    power, unit = next((each for each in _UNITS if abs(value) >= max(10.0 ** each[0], 1e4)), (0, ""))
    if digits > 4 or abs(value) >= 1e15:
        text = f"{value:.4g}"
    else:
        text = f"{value / 10.0**power:,.{max(0, digits + power)}f}{unit}"
    return text.replace("-", "\N{MINUS SIGN}")


@dataclass(frozen=True, slots=True)
class _Frame:
    """The room of a plot within a picture, with an axis below it and one at its left."""

    width: float
    height: float
    left: float
    right: float
    top: float
    bottom: float
    across: _Axis
    up: _Axis

    def x(self, value: float) -> float:
        return self.left + self.across.place(value) * (self.width - self.left - self.right)

    def y(self, value: float) -> float:
        return self.height - self.bottom - self.up.place(value) * (self.height - self.top - self.bottom)

    def grid(self, x: str, y: str) -> list[str]:
        """Lines at round numbers, the numbers, and what they are of."""
        end, foot = self.width - self.right, self.height - self.bottom
        parts = []
        for value, text in self.across.ticks(_ACROSS):
            at = f"{self.x(value):.1f}"
            parts += [
                f'<path d="M{at} {self.top}V{foot}" stroke="{_GRID}"/>',
                f'<text x="{at}" y="{foot + 15}" text-anchor="middle">{text}</text>',
            ]
        for value, text in self.up.ticks(_UP):
            at = f"{self.y(value):.1f}"
            parts += [
                f'<path d="M{self.left} {at}H{end}" stroke="{_GRID}"/>',
                f'<text x="{self.left - 6}" y="{at}" dy=".33em" text-anchor="end">{text}</text>',
            ]
        below, beside = self._title(x, self.across, end - self.left), self._title(y, self.up, foot - self.top)
        middle, centre = (self.left + end) / 2, (self.top + foot) / 2
        return [
            f'<g class="ticks">{"".join(parts)}</g><g class="titles">'
            f'<text x="{middle:.0f}" y="{self.height - 6}" text-anchor="middle">{below}</text>'
            f'<text transform="translate(11 {centre:.0f}) rotate(-90)" text-anchor="middle">{beside}</text></g>'
        ]

    @staticmethod
    def _title(words: str, axis: _Axis, room: float) -> str:
        """A title no longer than its axis."""
        how = " (log)" if axis.log and not words.endswith("(log)") else ""
        return html_text(shorten_inside(words, int(room / _LETTER) - len(how)) + how)


# --- points and lines -------------------------------------------------------------------------------------------------


def scatter_chart(
    points: Sequence[Sequence[float]], *, title: str, x: str, y: str, heading: bool = True, small: bool = False
) -> Svg:
    """Points over axes that fit them, logarithmic where most would lie in a corner; each says its numbers.

    With a ``heading`` its title stands above it. A ``small`` one is for a card.
    """
    if not points:
        return Svg()
    across, up = (_Axis.around([point[axis] for point in points]) for axis in (0, 1))
    width, height = (330, 236) if small else (640, 360)
    left = 30 + _LETTER * max((len(text) for _, text in up.ticks(_UP)), default=0)
    frame = _Frame(width, height, round(left), 14, 36 if heading else 10, 40, across, up)
    dots = [
        f'<path d="M{frame.x(a):.1f} {frame.y(b):.1f}h0"><title>{a:,.6g}; {b:,.6g}</title></path>' for a, b in points
    ]
    parts = [
        _heading(title, frame.left) if heading else "",
        *frame.grid(x, y),
        f'<g class="points" stroke="{_COLOURS[0]}" stroke-width="5" stroke-linecap="round" stroke-opacity=".6">',
        *dots,
        "</g>",
    ]
    return _plot(frame, title, parts)


def _heading(title: str, left: float) -> str:
    return f'<text x="{left}" y="20" font-size="14">{html_text(title)}</text>'


def _plot(frame: _Frame, title: str, parts: Sequence[str]) -> Svg:
    return _svg(frame.width, frame.height, title, 'class="plot" font-family="sans-serif" font-size="11"', parts)


def line_chart(
    series: Mapping[str, Line], *, title: str, x: str, y: str, log_x: bool = True, log_y: bool = True
) -> Svg:
    """Lines over two axes, each named at its end; on a logarithmic axis zeros lie at its foot."""
    points = [point for line in series.values() for point in line]
    if not points:
        return Svg()
    across = _Axis.from_below([point[0] for point in points], log=log_x)
    up = _Axis.from_below([point[1] for point in points], log=log_y)
    frame = _Frame(640, 360, 70, 130, 36, 44, across, up)
    parts = [_heading(title, frame.left), *frame.grid(x, y)]
    ends: list[float] = []
    for number, (name, line) in enumerate(series.items()):
        if line:
            parts.append(_line(name, sorted(line), frame, _COLOURS[number % len(_COLOURS)], ends))
    return _plot(frame, title, parts)


def _line(name: str, line: Line, frame: _Frame, colour: str, ends: list[float]) -> str:
    places = [(f"{frame.x(a):.1f} {frame.y(b):.1f}", f"{a:,.6g}; {b:,.6g}") for a, b in line]
    # Names stand at the ends of their lines, moved apart where they would overlap.
    at = frame.y(line[-1][1])
    while any(abs(at - other) < 12 for other in ends):
        at += 12
        if at > frame.height - 4:
            at = min(ends) - 12
    ends.append(at)
    dots = "".join(
        f'<path d="M{place}h0" stroke-width="5"><title>{html_text(name)}: {said}</title></path>'
        for place, said in places
    )
    return (
        f'<g stroke="{colour}" stroke-width="1.8" stroke-linecap="round">'
        f'<path d="M{"L".join(place for place, _ in places)}" fill="none"/>{dots}</g>'
        f'<text x="{frame.width - frame.right + 8}" y="{at + 4:.1f}" fill="{colour}">{html_text(name)}</text>'
    )
