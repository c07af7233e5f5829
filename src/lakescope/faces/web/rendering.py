"""How pages are written: the environment of their templates, how it shows numbers and names, and pages of errors."""

from __future__ import annotations

import hashlib
import math
import re
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup, escape

from lakescope._version import __version__
from lakescope.code.dialects import CALLED
from lakescope.errors import LakescopeError
from lakescope.faces.rest.api import PREFIX
from lakescope.faces.serving.refusals import FromElsewhere, status_of, told
from lakescope.faces.serving.service import keys_of
from lakescope.faces.web.trust import cautions, doubtful_last, strength, telling_joins
from lakescope.lake import CHANCE, meaningless
from lakescope.show.charts import Svg, column_chart, scatter_chart, share_bar
from lakescope.show.text import percent, printable, rows_range, shorten, shorten_inside, size_text
from lakescope.sketches.aggregates import AGGREGATES

STATIC = Path(__file__).parent / "static"


@cache
def environment() -> Environment:
    """What templates are written with."""
    made = Environment(
        loader=PackageLoader("lakescope.faces.web"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "number": lambda value: "" if value is None else f"{value:,}",
        "compact": _compact,
        "percent": lambda share: "" if share is None else percent(share),
        "size": size_text,
        "short": lambda text, width=60: shorten(str(text), width),
        "parts": lambda name, width=100: parts(shorten_inside(str(name), width)),
        "sides": sides,
        "signed": signed,
        "shown": lambda text: printable(str(text)),
        "figure": _figure,
        "histogram": _histogram,
        "rows_range": rows_range,
        "bar": share_bar,
        "scatter": _scatter,
        "day": lambda text: str(text)[:10],
    }
    made.tests["nameless"] = lambda name: meaningless(name)
    made.tests["of_numbers"] = lambda joins, are: any(are(each) for each in joins)
    made.globals |= {
        "version": __version__,
        "link": link,
        "static": static,
        "api": PREFIX,
        "aggregates": AGGREGATES,
        "dialects": CALLED,
        "chance": CHANCE,
        **{each.__name__: each for each in (cautions, doubtful_last, keys_of, strength, telling_joins)},
    }
    return made


def link(path: str, **parameters: Any) -> str:
    """An address with its parameters; those that are empty are left out."""
    pairs = [(name, value) for name, value in parameters.items() if value not in (None, "", False, [])]
    return f"{path}?{urlencode(pairs, doseq=True)}" if pairs else path


@cache
def static(name: str) -> str:
    """The address of a file of ours, which changes when the file does."""
    return f"/static/{name}?v={hashlib.sha256((STATIC / name).read_bytes()).hexdigest()[:10]}"


def _compact(value: float) -> str:
    """A large number in few signs."""
    for size, unit in ((1e9, "B"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1e3 if unit == 'k' else size):.3g} {unit}"
    return f"{value:,.0f}"


def _figure(value: Any) -> str:
    """A number as a person reads it; texts as they are."""
    if isinstance(value, bool) or value is None:
        return "" if value is None else "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:.4g}"
    return printable(str(value))


def _histogram(column: dict[str, Any]) -> Markup:
    """A column at a glance, or why there is nothing to see."""
    if drawn := column_chart(column):
        return Markup(drawn)
    return Markup('<span class="nobars">all different</span>' if column["distinct"] > 1 else "")


def _scatter(found: dict[str, Any], target: str) -> Svg:
    """The sample behind a correlation, as small as a card: one point a key."""
    title = f"{found['column']} against {target}, {len(found['points'])} keys"
    return scatter_chart(found["points"], title=title, x=target, y=found["column"], heading=False, small=True)


def signed(number: float, *others: float | None) -> str:
    """A coefficient with its sign; digits enough to tell it from 1, and from others beside it."""
    near = [other for other in (*others, math.copysign(1.0, number)) if other is not None and other != number]
    digits = next((each for each in range(2, 6) if all(f"{number:.{each}f}" != f"{it:.{each}f}" for it in near)), 5)
    return f"{number:+.{digits}f}".replace("-", "\N{MINUS SIGN}")


def parts(name: str) -> Markup:
    """A name that breaks where a person would break it: after a folder or a word, before an ending."""
    pieces = re.split(r"(?<=[/_-])(?=[^/_-])|(?=\.)", name)
    return Markup("<wbr>").join(escape(piece) for piece in pieces)


def sides(join: str, width: int = 78) -> Markup:
    """A join of a path, each side cut for itself: cut as a whole, long names would swallow what stands between them."""
    left, between, right = join.partition(" = ")
    return parts(shorten_inside(left, width)) + between + parts(shorten_inside(right, width))


def render(request: Request, template: str, status: int = 200, **context: Any) -> HTMLResponse:
    """A page."""
    shown = {"path": request.url.path, "q": "", "json": "", **context}
    return HTMLResponse(environment().get_template(template).render(**shown), status)


def refusal(error: LakescopeError, scope: Any) -> HTMLResponse:
    """An error as a page, or as a piece of one; where a link of another site led, a page that asks."""
    if isinstance(error, FromElsewhere):
        address = quote("/" + scope["path"].lstrip("/\\")) + "?" + scope["query_string"].decode("latin-1")
        text = environment().get_template("elsewhere.html")
        return HTMLResponse(text.render(path=scope["path"], q="", json="", address=address))
    piece = any(name == b"x-part" for name, _ in scope["headers"])
    text = environment().get_template("part_error.html" if piece else "error.html")
    status = int(status_of(error))
    shown = {"error": told(error), "status": status, "path": scope["path"], "q": "", "json": "", **_asking(scope)}
    return HTMLResponse(text.render(**shown), status)


def _asking(scope: Any) -> dict[str, Any]:
    """Where the page goes on that asks for the token: to what was asked for."""
    if scope["method"] != "GET":
        return {"rest": [], "onwards": "/"}
    pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    return {"rest": [pair for pair in pairs if pair[0] != "token"], "onwards": quote("/" + scope["path"].lstrip("/\\"))}
