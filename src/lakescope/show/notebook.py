"""Notebook faces: small, self-contained HTML with everything escaped, no script and no style sheet.

Colours are those of the text around, or half-transparent, so that they are readable on white and on black.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from lakescope.show.charts import share_bar
from lakescope.show.fields import Value, chosen, column_fields, lake_facts
from lakescope.show.markup import Html, el, joined
from lakescope.show.profile_text import PROFILE
from lakescope.show.text import percent, shorten

_FRAME = "font-size:13px;line-height:1.45;max-width:100%;overflow-x:auto"
_HEAD = "padding:3px 14px 3px 0;text-align:left;font-weight:600;border-bottom:1px solid #8886;white-space:nowrap"
_PLAIN = "padding:3px 14px 3px 0;text-align:left;vertical-align:middle;border-bottom:1px solid #8883"
#: Long names break, so that a table does not run off the page.
_CELL = _PLAIN + ";min-width:5em;max-width:26em;overflow-wrap:break-word"
#: Ems that a column of long texts has at least: in fewer, a sentence would stand on ten lines.
_WIDEST = 12
_NUMBER = _PLAIN.replace("left", "right") + ";white-space:nowrap;font-variant-numeric:tabular-nums"
_SOFT = "opacity:.7"
_TITLE = "font-size:15px;font-weight:600;margin-bottom:4px"
_TABLE = "border-collapse:collapse;margin:6px 0"
_BAR = "#5b8fc9"
_BREAK = Html("<wbr>")


def frame(title: object, *parts: object) -> Html:
    """A title and what stands below it."""
    return el("div", el("div", title, style=_TITLE), *parts, style=_FRAME)


def table_html(
    head: Sequence[str], rows: Sequence[Sequence[object]], numbers: Sequence[int] = (), letters: Sequence[int] = ()
) -> Html:
    """Rows below a head; columns of numbers are flush right, others have room for the ``letters`` of their cells."""
    wide = [min(_WIDEST, each // 3) for each in letters] or [0] * len(head)
    texts = [_CELL.replace("min-width:5em", f"min-width:{max(5, each)}em") for each in wide]
    styles = [_NUMBER if place in numbers else text for place, text in enumerate(texts)]
    names = [
        el("th", name, style=_HEAD.replace("left", "right") if place in numbers else _HEAD)
        for place, name in enumerate(head)
    ]
    body = [el("tr", *(el("td", cell, style=style) for cell, style in zip(row, styles, strict=True))) for row in rows]
    return el("table", el("thead", el("tr", *names)), el("tbody", *body), style=_TABLE)


def notes_html(notes: Sequence[str]) -> Html:
    """What the records cannot say."""
    return joined(*(el("div", note, style=_SOFT) for note in notes))


def lake_html(info: Mapping[str, Any]) -> str:
    """A lake at a glance."""
    tile = "display:inline-block;padding:6px 14px 6px 0;margin-right:10px;border-top:2px solid " + _BAR
    tiles = [
        el("span", el("span", name, style=_SOFT), el("br"), el("b", value, style="font-size:16px"), style=tile)
        for name, value in lake_facts(info)
    ]
    return frame(
        joined("Lake ", el("code", info["path"])),
        el("div", *tiles),
        el("div", f"indexed {info['created']} by lakescope {info['version']}", style=_SOFT),
    )


def profile_html(profile: Mapping[str, Any]) -> str:
    """A table's profile: one row per column, a small histogram and the missing share in each."""
    rows = [[_cell(value) for value in row] for row in chosen(map(column_fields, profile["columns"]), PROFILE)]
    problems = [
        el("li", f"{each['severity']}: {each['code']} (×{each['count']:,}): {shorten(each['detail'], 300)}")
        for each in profile["problems"]
    ]
    return frame(
        joined(shorten(profile["table"], 100), el("span", _size_words(profile), style=_SOFT + ";font-weight:400")),
        table_html(PROFILE, rows, (2, 3)),
        el("ul", *problems) if problems else None,
    )


def _size_words(profile: Mapping[str, Any]) -> str:
    return f" {profile['rows']:,} rows, {len(profile['columns']):,} columns"


def _cell(value: Value) -> object:
    """A field with what is drawn before it, or instead of it."""
    if value.kind == "picture":
        drawn = value.drawn
        return el("span", drawn, style=f"color:{_BAR}") if drawn else ""
    shown = joined(value.drawn, " ", value.shown()) if value.draw else value.shown()
    return el("b", shown) if value.kind == "name" else shown


def results_html(
    names: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str], numbers: Sequence[int] = ()
) -> str:
    """An answer: its records as a table, its notes below."""
    if not rows:
        return el("div", "nothing found", notes_html(notes), style=_FRAME)
    cells = [[_breaking(cell) for cell in row] for row in rows]
    letters = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return el("div", table_html(names, cells, numbers, letters), notes_html(notes), style=_FRAME)


def _breaking(text: str) -> Html:
    """A text that may break within long names: after a folder or a word, before an ending."""
    pieces = re.split(r"(?<=[/_-])(?=[^/_-])|(?=\.)", text) if re.search(r"\S{13}", text) else [text]
    return joined(pieces[0], *(part for piece in pieces[1:] for part in (_BREAK, piece)))


def record_html(kind: str, fields: Sequence[tuple[str, str]]) -> str:
    """One record of an answer: its fields below each other, those that say nothing left out."""
    rows = [
        el("tr", el("th", name, style=_CELL + ";font-weight:600"), el("td", value, style=_CELL))
        for name, value in fields
        if value != ""
    ]
    return frame(kind, el("table", el("tbody", *rows), style=_TABLE))


def plan_html(plan: Mapping[str, Any], heading: str, fuzzy: str | None) -> str:
    """A plan to join two tables: what is done to which, by which programs, what they join and were learnt from."""
    if plan["direction"] is None:
        return frame("No transformation found", el("div", plan["reason"]), notes_html(plan["notes"]))
    source, target = ("left", "right") if plan["direction"] == "left->right" else ("right", "left")
    programs = [el("li", each["words"], style="margin:2px 0") for each in plan["programs"]]
    if fuzzy is not None:
        programs.append(el("li", fuzzy, style="margin:2px 0"))
    shares = ((f"{target} rows joined", plan["coverage"]), (f"{source} rows joined", plan["source_coverage"]))
    learnt = [
        [shorten(" | ".join(each["row"].values()), 60), shorten(each["key"], 40), each["shared"]]
        for each in [pair for pair in plan["evidence"] if pair["borne_out"]][:4]
    ]
    return frame(
        heading[:1].upper() + heading[1:],
        el("ol", *programs, style="margin:4px 0;padding-left:22px"),
        *(el("div", share_bar(share, width=120), f" {percent(share)} of the {what}") for what, share in shares),
        joined(el("div", "learnt from, among others:", style=_SOFT), table_html(("row", "key", "shared"), learnt))
        if learnt
        else None,
        notes_html(plan["notes"]),
    )


def words_html(words: str) -> str:
    """Lines of plain words."""
    return el("div", *(el("div", line, style="white-space:pre-wrap") for line in words.splitlines()), style=_FRAME)
