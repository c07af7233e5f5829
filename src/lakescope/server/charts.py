"""Charts of the pages: Vega-Lite for what one looks into, plain SVG for what stands in a table's cell.

Vega-Lite is described by altair and drawn in the browser, by a script that vl-convert holds: nothing is fetched from
elsewhere. The content security policy allows no code to be made out of text, so the script runs with Vega's interpreter
of expressions (``ast``); plain SVG has attributes instead of styles for the same reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from html import escape
from typing import Any

from markupsafe import Markup

Record = dict[str, Any]
#: What a chart says where it has no size of its own.
_WIDTH, _HEIGHT = 96, 28


@cache
def script() -> str:
    """The script that draws charts."""
    import vl_convert

    return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))


def scatter(points: Sequence[Sequence[float]], x: str, y: str) -> Record:
    """The sample behind a correlation: one point a key."""
    import altair as alt

    values = [{"x": point[0], "y": point[1]} for point in points]
    chart = (
        alt.Chart({"values": values})
        .mark_point(filled=True, size=22, opacity=0.55)
        .encode(
            x=alt.X("x:Q", title=_label(x), scale=alt.Scale(zero=False, nice=True)),
            y=alt.Y("y:Q", title=_label(y), scale=alt.Scale(zero=False, nice=True)),
            tooltip=[alt.Tooltip("x:Q", title=_label(x)), alt.Tooltip("y:Q", title=_label(y))],
        )
        .properties(width="container", height=180, description=f"{_label(y)} against {_label(x)}, {len(values)} keys")
    )
    return dict(chart.to_dict(validate=False))


def sizes(distribution: Sequence[Record]) -> Record:
    """How many tables have how many rows."""
    import altair as alt

    values = [{"rows": _range(each), "tables": each["tables"], "order": at} for at, each in enumerate(distribution)]
    chart = (
        alt.Chart({"values": values})
        .mark_bar(cornerRadiusEnd=3)
        .encode(
            x=alt.X("rows:N", title="rows", sort=alt.EncodingSortField("order"), axis=alt.Axis(labelAngle=0)),
            y=alt.Y("tables:Q", title="tables", axis=alt.Axis(tickMinStep=1, tickCount=4), scale=alt.Scale(nice=4)),
            tooltip=[alt.Tooltip("rows:N"), alt.Tooltip("tables:Q")],
        )
        .properties(width="container", height=120, description="How many tables have how many rows")
    )
    return dict(chart.to_dict(validate=False))


def _range(each: Record) -> str:
    return f"{_short(each['low'])}–{_short(each['high'])}"


def _short(number: int) -> str:
    for size, unit in ((10**9, "B"), (10**6, "M"), (10**3, "k")):
        if number >= size:
            return f"{number // size}{unit}"
    return str(number)


def _label(text: str) -> str:
    return text if len(text) <= 48 else text[:47] + "…"


def histogram(column: Record) -> Markup:
    """A column at a glance: bars of its numbers, or of its most frequent values."""
    if column["histogram"]:
        counts = [each["count"] for each in column["histogram"]]
        titles = [f"{_edge(each['low'])} to {_edge(each['high'])}: {each['count']:,}" for each in column["histogram"]]
    elif column["top"] and column["top"][0]["count"] > 1:
        counts = [each["count"] for each in column["top"]]
        titles = [f"{each['value']}: {each['count']:,}" for each in column["top"]]
    else:
        return Markup('<span class="nobars">all different</span>' if column["distinct"] > 1 else "")
    peak = max(counts) or 1
    step = _WIDTH / max(len(counts), 8)
    bars = "".join(
        f'<rect x="{at * step:.1f}" y="{_HEIGHT - max(1.0, _HEIGHT * count / peak):.1f}" width="{step - 1:.1f}" '
        f'height="{max(1.0, _HEIGHT * count / peak):.1f}"><title>{escape(title)}</title></rect>'
        for at, (count, title) in enumerate(zip(counts, titles, strict=True))
        if count
    )
    kind = "distribution" if column["histogram"] else "most frequent values"
    name = escape(f"{kind} of {column['name']}", quote=True)
    return Markup(
        f'<svg class="bars {"numbers" if column["histogram"] else "values"}" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'role="img" aria-label="{name}" preserveAspectRatio="none">{bars}</svg>'
    )


def _edge(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def bar(share: float | None, kind: str = "") -> Markup:
    """A share as a bar; what it says stands beside it."""
    rest, part = (f'<rect class="{name}" width="{wide:.1f}" height="6" rx="1"/>' for name, wide in _halves(share))
    look = f'class="bar {escape(kind, quote=True)}" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true"'
    return Markup(f"<svg {look}>{rest}{part}</svg>")


def _halves(share: float | None) -> tuple[tuple[str, float], tuple[str, float]]:
    return ("rest", 100.0), ("part", 100 * min(1.0, max(0.0, share or 0.0)))
