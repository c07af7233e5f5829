"""Charts of the pages: Vega-Lite for what one looks into, plain SVG for what stands in a table's cell.

Vega-Lite is described by altair and drawn in the browser, by a script that vl-convert holds: nothing is fetched from
elsewhere. The content security policy allows no code to be made out of text, so the script runs with Vega's interpreter
of expressions (``ast``); plain SVG has attributes instead of styles for the same reason.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from copy import deepcopy
from functools import cache
from html import escape
from typing import Any

from markupsafe import Markup

from lakescope.show.text import shorten_inside

Record = dict[str, Any]
_PREPARING = threading.Lock()
#: How an axis writes numbers: large ones in few signs.
_LABELS = "datum.label && abs(datum.value) >= 1e4 ? replace(format(datum.value, '~s'), 'G', 'B') : datum.label"
#: Largest number by the smallest from which on those of a tail are drawn by magnitude.
_SPREAD = 1_000.0
#: Letters of a title for which there is room along an axis: a chart whose title is longer grows, and is empty there.
_ALONG = {"x": 42, "y": 28}
#: Size of a column's bars.
_WIDTH, _HEIGHT = 96, 28


@cache
def script() -> str:
    """The script that draws charts."""
    import vl_convert

    return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))


@cache
def _described() -> Record:
    """The chart of a sample without its data, as altair describes it."""
    import altair as alt

    def axis(field: str) -> Any:
        return {
            "title": field,
            "scale": alt.Scale(zero=False, nice=True),
            "axis": alt.Axis(tickCount=5, labelExpr=_LABELS),
        }

    points = (
        alt.Chart({"values": []})
        .mark_point(filled=True, size=22, opacity=0.55)
        .encode(
            x=alt.X("x:Q", **axis("x")), y=alt.Y("y:Q", **axis("y")), tooltip=[alt.Tooltip("x:Q"), alt.Tooltip("y:Q")]
        )
        .properties(width="container", height=180)
    )
    spec = dict(points.to_dict())
    spec.pop("datasets", None)  # where altair puts data; ours come with each answer
    return spec


def prepare() -> None:
    """Describe the chart, once.

    altair looks whether pandas is there, and fails where another thread is just importing it, as Arrow does when it is
    first given a list. So it is described before anybody does that.
    """
    with _PREPARING:
        _described()


def scatter(points: Sequence[Sequence[float]], x: str, y: str) -> Record:
    """The sample behind a correlation: one point a key."""
    prepare()
    spec = deepcopy(_described())
    spec["data"] = {"values": [{"x": point[0], "y": point[1]} for point in points]}
    spec["description"] = f"{_label(y)} against {_label(x)}, {len(points)} keys"
    for number, (name, label) in enumerate((("x", x), ("y", y))):
        values = [point[number] for point in points]
        by_magnitude = _has_tail(values)
        if by_magnitude:
            spec["encoding"][name]["scale"] = {"type": "log", "nice": False}
            spec["encoding"][name]["axis"]["values"] = _powers(min(values), max(values))
        how = " (log)" if by_magnitude else ""
        spec["encoding"][name]["title"] = _label(label, _ALONG[name] - len(how)) + how
        spec["encoding"]["tooltip"][number]["title"] = _label(label)
    return spec


def _has_tail(values: Sequence[float]) -> bool:
    """Whether most numbers would lie in a corner: positive ones of many magnitudes, the largest far from the rest."""
    ordered = sorted(values)
    if not ordered or ordered[0] <= 0:
        return False
    return ordered[-1] >= _SPREAD * ordered[0] and ordered[len(ordered) // 2] < ordered[-1] / 10


def _powers(low: float, high: float, most: int = 5) -> list[float]:
    """Powers of ten within a range, evenly thinned."""
    first, last = math.ceil(math.log10(low)), math.floor(math.log10(high))
    return [10.0**power for power in range(first, last + 1, 1 + (last - first) // most)]


def rows_range(each: Record) -> str:
    """How many rows the tables of a bar have."""
    return f"{_short(each['low'])} to {_short(each['high'])}"


def _short(number: int) -> str:
    for size, unit in ((10**9, "B"), (10**6, "M"), (10**3, "k")):
        if number >= size:
            return f"{number // size}{unit}"
    return str(number)


def _label(text: str, most: int = 48) -> str:
    return shorten_inside(text, most)


def histogram(column: Record) -> Markup:
    """A column at a glance: bars of its numbers, or of its most frequent values."""
    if column["histogram"]:
        counts = [each["count"] for each in column["histogram"]]
        names = [f"{_edge(each['low'])} to {_edge(each['high'])}" for each in column["histogram"]]
    elif column["top"] and column["top"][0]["count"] > 1:
        counts = [each["count"] for each in column["top"]]
        names = [escape(each["value"]) for each in column["top"]]
    else:
        return Markup('<span class="nobars">all different</span>' if column["distinct"] > 1 else "")
    scale = _HEIGHT / (max(counts) or 1)
    step = _WIDTH / max(len(counts), 8)
    bars = "".join(
        f'<rect x="{at * step:.1f}" y="{_HEIGHT - high:.1f}" width="{step - 1:.1f}" height="{high:.1f}">'
        f"<title>{name}: {count:,}</title></rect>"
        for at, (count, name) in enumerate(zip(counts, names, strict=True))
        if count and (high := max(1.0, count * scale))
    )
    kind = "distribution" if column["histogram"] else "most frequent values"
    name = escape(f"{kind} of {column['name']}", quote=True)
    return Markup(
        f'<svg class="bars {"numbers" if column["histogram"] else "values"}" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'role="img" aria-label="{name}" preserveAspectRatio="none">{bars}</svg>'
    )


def _edge(value: Any) -> str:
    """An end of a bar: a number, or a moment as text that we wrote."""
    return f"{value:.4g}" if isinstance(value, float) else escape(str(value))


def bar(share: float | None, kind: str = "") -> Markup:
    """A share as a bar; what it says stands beside it."""
    rest, part = (f'<rect class="{name}" width="{wide:.1f}" height="6" rx="1"/>' for name, wide in _halves(share))
    look = f'class="bar {escape(kind, quote=True)}" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true"'
    return Markup(f"<svg {look}>{rest}{part}</svg>")


def _halves(share: float | None) -> tuple[tuple[str, float], tuple[str, float]]:
    return ("rest", 100.0), ("part", 100 * min(1.0, max(0.0, share or 0.0)))
