"""The pages of a report as HTML: no inline script or style, nothing from the network, every text escaped.

A page is made of elements (:mod:`lakescope.show.markup`); how they look is in ``assets/report.css``, what little
moves in ``assets/report.js``. Links between tables are made by a function that knows the name of a table's page.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence

from lakescope.show.charts import column_chart, share_bar
from lakescope.show.fields import (
    NAME,
    SENTENCE,
    TONES,
    Fields,
    Kind,
    Link,
    Summary,
    Value,
    column_fields,
    distinct_text,
    join_fields,
    kind_fields,
    lake_facts,
    missing_share,
    problem_fields,
    reference_fields,
    table_fields,
)
from lakescope.show.markup import Html, el, joined
from lakescope.show.text import cell_text, percent, rows_range, shorten, shorten_inside, size_text

#: Characters of a value that are shown.
VALUE = 60
_POLICY = "default-src 'none'; style-src 'self' file:; script-src 'self' file:; img-src 'self' file:; base-uri 'none'"
#: Bytes of the rows of one table on the page of a table, and on a page of its own.
_PART_BYTES, _PAGE_BYTES = 120_000, 700_000
_PLACES = (("Tables", "index.html"), ("References", "references.html"), ("Problems", "problems.html"))


def page(title: str, body: Html, *, up: str, lake: str, here: str = "") -> str:
    """A whole page; ``up`` leads from its folder to that of the report."""
    links = [
        el("a", label, href=up + address, aria_current="page" if label == here else None)
        for label, address in (
            ("Tables", "index.html"),
            ("References", "references.html"),
            ("Problems", "problems.html"),
        )
    ]
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("title", title),
        el("link", rel="stylesheet", href=up + "assets/report.css"),
        el("script", src=up + "assets/report.js", defer=True),
    )
    bar = el(
        "header",
        el("a", "Skip to content", class_="skip", href="#main"),
        el(
            "div",
            el("a", _mark(), el("span", shorten(lake, 40)), class_="home", href=up + "index.html"),
            el("nav", *links, aria_label="Report"),
            class_="bar",
        ),
    )
    return "<!doctype html>\n" + el("html", head, el("body", bar, el("main", body, id="main")), lang="en") + "\n"


def _mark() -> Html:
    """Three waves."""
    waves = "".join(
        f"<path d='M2 {y}c3-3 5-3 8 0s5 3 8 0' fill='none' stroke='currentColor' stroke-width='2'/>"
        for y in (5, 10, 15)
    )
    return Html(f"<svg viewBox='0 0 20 20' width='22' height='22' aria-hidden='true'>{waves}</svg>")


# --- the lake ---------------------------------------------------------------------------------------------------------


def lake_page(lake: Summary, lines: Sequence[Summary], link: Link, *, part: int = 0, parts: int = 1) -> Html:
    """The lake at a glance, and the tables (of one part, if there are several)."""
    info = lake["info"]
    return joined(
        el("h1", shorten(lake["lake"], NAME)),
        el(
            "p",
            "Indexed ",
            _day(info["created"]),
            f" by lakescope {info['version']}{_from(info['sources'])}",
            class_="soft",
        ),
        _tiles(lake) if part == 0 else None,
        _figures(lake) if part == 0 else None,
        _listing(lines, link, len(lake["tables"]), part, parts),
    )


def _from(sources: Sequence[str]) -> str:
    plain = [source if "://" in source else os.path.normpath(source) for source in map(str, sources)]
    return f" from {shorten(', '.join(plain), NAME)}" if plain else ""


def _tiles(lake: Summary) -> Html:
    info = lake["info"]
    tiles: list[tuple[str, str, str, str | None]] = [
        (name.capitalize(), value, "", None) for name, value in lake_facts(info)[:4]
    ]
    tiles += [
        ("References", f"{len(lake['references']):,}", "between tables", "references.html"),
        (
            "Problems",
            f"{info['errors'] + info['warnings']:,}",
            f"{info['errors']:,} errors, {info['warnings']:,} warnings",
            "problems.html",
        ),
    ]
    return el(
        "div",
        *(
            el(
                "a" if address else "div",
                el("span", name, class_="name"),
                el("strong", value),
                el("span", more, class_="soft"),
                class_="tile" + (" bad" if name == "Problems" and info["errors"] else ""),
                href=address,
            )
            for name, value, more, address in tiles
        ),
        class_="tiles",
    )


def _figures(lake: Summary) -> Html:
    sizes = [
        (rows_range(each["low"], each["high"] + 1) if each["high"] else "none", each["count"]) for each in lake["sizes"]
    ]
    return el(
        "div",
        _counted("Rows per table", sizes),
        _counted("Formats", list(lake["formats"].items())),
        _counted("Column types", list(lake["types"].items())),
        class_="figures",
    )


def _counted(title: str, counts: Sequence[tuple[str, int]], most: int = 9) -> Html:
    """Horizontal bars; what does not fit is one of them."""
    shown = list(counts[:most])
    if len(counts) > most:
        shown[-1] = (f"{len(counts) - most + 1} others", sum(count for _, count in counts[most - 1 :]))
    peak = max((count for _, count in shown), default=0) or 1
    rows = [el("tr", el("th", name, scope="row"), el("td", share_bar(n / peak)), _number(n)) for name, n in shown]
    return el("figure", el("figcaption", title), el("table", el("tbody", *rows), class_="bars"))


def _listing(lines: Sequence[Summary], link: Link, total: int, part: int, parts: int) -> Html:
    formats = sorted({line["format"] for line in lines})
    controls = el(
        "form",
        el("label", "Search", for_="search", class_="hidden-label"),
        el("input", id="search", type="search", placeholder="Search tables", autocomplete="off"),
        el("label", "Format", for_="format", class_="hidden-label"),
        el(
            "select",
            el("option", "All formats", value=""),
            *(el("option", name, value=name) for name in formats),
            id="format",
        ),
        el("output", f"{len(lines):,} tables", id="shown", aria_live="polite"),
        class_="controls",
        hidden=True,
        role="search",
    )
    note = None
    if parts > 1:
        pages = [
            el("a", number + 1, href=list_page(number), aria_current="page" if number == part else None)
            for number in range(parts)
        ]
        note = el(
            "p",
            f"{total:,} tables on {parts:,} pages; search and order are those of this page: ",
            el("span", *pages, class_="pages"),
        )
    return joined(
        el("h2", "Tables", id="tables"),
        note,
        controls,
        table_of(_TABLE, [row_of(_TABLE, table_fields(line), link) for line in lines], id="list"),
        el("p", "No table matches.", id="none", class_="soft", hidden=True),
    )


def list_page(number: int) -> str:
    """File name of a page of the list of tables."""
    return "index.html" if number == 0 else f"index-{number + 1}.html"


def references_page(lake: Summary, link: Link, *, picture: str | None) -> Html:
    """All references of the lake, with a picture if there is one."""
    every = lake["references"]
    return joined(
        el("h1", "References"),
        el("p", "Columns whose values are keys of other tables, though nobody declared them.", class_="soft"),
        el(
            "div",
            el("img", src=picture, alt="Tables and their references", class_="schema", loading="lazy"),
            class_="scroll framed",
            tabindex=0,
            role="group",
            aria_label="Picture of the references",
        )
        if picture
        else None,
        _grid(_REFERENCE, map(reference_fields, every), link, _PAGE_BYTES)
        if every
        else el("p", "No column refers to the key of another table."),
        _notes(lake["notes"]),
    )


def problems_page(lake: Summary, link: Link) -> Html:
    """What could not be read and what was odd, by kind and by table."""
    if not lake["codes"]:
        return joined(el("h1", "Problems"), el("p", "Every table was read, and nothing was odd."))
    return joined(
        el("h1", "Problems"),
        el("p", "One bad table never stops a lake: what could not be read is told here.", class_="soft"),
        _grid(_KIND, map(kind_fields, lake["codes"]), link),
        el("h2", "By table"),
        _grid(_PROBLEM, map(problem_fields, lake["problems"]), link, _PAGE_BYTES // 2),
        _notes(lake["notes"]),
    )


# --- a table ----------------------------------------------------------------------------------------------------------


def table_head(table: Summary, link: Link) -> Html:
    """What comes first on the page of a table: facts, alerts, keys, joins, problems."""
    facts = [
        f"{table['rows']:,} rows",
        f"{len(table['columns']):,} columns",
        table["format"],
        size_text(table["bytes"]),
        *([f"changed {table['modified'][:16].replace('T', ' ')}"] if table["modified"] else []),
    ]
    return joined(
        el("h1", shorten_inside(table["table"], NAME)),
        el("p", " · ".join(facts), class_="soft"),
        el("p", shorten(table["uri"], SENTENCE), class_="soft code"),
        None if table["complete"] else el("p", "Only part of this table could be read.", class_="notice bad"),
    )


def alerts_section(table: Summary, anchor: Callable[[int], str]) -> Html:
    """Alerts first: what is wrong, odd or good to know, with links to the columns."""
    if not table["alerts"]:
        return el("p", "Nothing to be alarmed about: no constant, mostly missing or mixed column.", class_="notice")
    cards = []
    for each in table["alerts"]:
        columns = [
            el(
                "li",
                el("a", shorten(some["column"], 40), href=anchor(some["position"])),
                el("span", shorten(some["detail"], VALUE), class_="soft") if some["detail"] else None,
            )
            for some in each["columns"][:_LISTED]
        ]
        more = len(each["columns"]) - _LISTED
        cards.append(
            el(
                "section",
                el("h3", each["alert"].capitalize(), el("span", len(each["columns"]), class_="count")),
                el("ul", *columns, el("li", f"and {more:,} more", class_="soft") if more > 0 else None),
                class_=f"alert {TONES.get(each['alert'], 'plain')}",
            )
        )
    return el("div", *cards, class_="alerts")


#: Columns listed below an alert.
_LISTED = 12


def links_section(table: Summary, link: Link) -> Html:
    """The key of a table, what it refers to, what refers to it, and what joins with it."""
    key, out, into = table["key"], *(map(reference_fields, table[name]) for name in ("refers_to", "referred_by"))
    parts: list[Html | None] = [el("h2", "Keys and joins", id="joins")]
    if key:
        others = f"; {', '.join(key['others'])} would do as well" if key["others"] else ""
        doubts = f" ({'; '.join(key['doubts'])})" if key["doubts"] else ""
        parts.append(
            el("p", "Key: ", el("b", ", ".join(key["columns"]), class_="code"), shorten(doubts + others, SENTENCE))
        )
    if table["refers_to"]:
        parts += [
            el("h3", "Refers to"),
            _grid(_REFERENCE[1:], out, link),
        ]
    if table["referred_by"]:
        parts += [
            el("h3", "Is referred to by"),
            _grid(_WITHOUT_PARENT, into, link),
        ]
    if table["joins"]:
        parts += [el("h3", "Tables that join with it"), _grid(_JOIN, map(join_fields, table["joins"]), link)]
    if len(parts) == 1:
        parts.append(el("p", "No key, no reference and no join was found.", class_="soft"))
    return joined(*parts, _notes(table["notes"]))


def problems_section(table: Summary, link: Link) -> Html | None:
    """What was odd about a table."""
    if not table["problems"]:
        return None
    problems = _grid(_OF_ONE, map(problem_fields, table["problems"]), link)
    return joined(el("h2", "Problems", id="problems"), problems)


# --- columns ----------------------------------------------------------------------------------------------------------


def overview_row(column: Summary, address: str, link: Link) -> Row:
    """A column on one line; its name leads to all that is known of it."""
    return row_of(COLUMN, column_fields(column), link, address)


def column_card(column: Summary, place: int) -> Html:
    """Everything about a column that a reader may want to see."""
    chips = [_chip(alert, TONES.get(alert, "plain"), "") for alert in column["alerts"]]
    missing = missing_share(column)
    drawn = column_chart(column, 320, 80)
    if column["histogram"]:
        said = [shorten(column[end] or "", 30) for end in ("minimum", "maximum")]
    else:
        said = [f"the {len(column['top'] or ()):,} most frequent values, from the left"]
    ends = el("div", *(el("span", each) for each in said), class_="ends")
    return el(
        "article",
        el("h3", el("span", shorten(column["name"], NAME)), el("span", column["type"], class_="type"), *chips),
        el(
            "div",
            el(
                "div",
                joined(el("div", drawn, class_="histogram"), ends) if drawn else None,
                el("div", share_bar(1 - missing), class_="filled") if column["nulls"] else None,
                el("p", _filled_words(column, missing), class_="soft"),
                el("dl", *_facts(column)),
            ),
            el("div", *_frequent(column)),
            class_="halves",
        ),
        class_="column",
        id=f"c{place + 1}",
    )


def _filled_words(column: Summary, missing: float) -> str:
    if not column["nulls"]:
        return f"no value is missing in {column['rows']:,} rows"
    return f"{percent(missing)} missing: {column['nulls']:,} of {column['rows']:,} rows"


def _facts(column: Summary) -> Iterator[Html]:
    """Numbers of a column by name, each exact or with its error."""
    distinct = distinct_text(column)
    if not column["distinct_exact"]:
        distinct += f" ({column['distinct_low']:,} to {column['distinct_high']:,})"
    facts: list[tuple[str, object]] = [("Distinct", distinct)]
    if column["quartiles"]:
        error = column["quantile_error"]
        facts += zip(("First quartile", "Median", "Third quartile"), map(cell_text, column["quartiles"]), strict=True)
        facts.append(("Mean", cell_text(column["mean"])))
        if column["std"] is not None:
            unit = " s" if isinstance(column["mean"], str) else ""
            facts.append(("Standard deviation", cell_text(column["std"]) + unit))
        if error:
            facts.append(("Quartiles are", f"right to within {percent(error)} of the ranks (99%)"))
    if column["outliers"]:
        facts.append(("Beyond the fences", f"{column['outliers']:,}"))
    if column["zeros"]:
        facts.append(("Zeros", f"{column['zeros']:,}"))
    if column["negatives"]:
        facts.append(("Below zero", f"{column['negatives']:,}"))
    if column["length_max"] is not None and column["type"] in ("text", "code"):
        facts.append(("Length", f"{column['length_min']:,} to {column['length_max']:,} characters"))
    if column["empty"] or column["markers"]:
        facts.append(("Missing as", f"{column['empty']:,} empty, {column['markers']:,} markers such as NA"))
    if column["disguised"]:
        facts.append(("May stand for missing", shorten(", ".join(column["disguised"]), VALUE)))
    if column["type_share"] < 1 and column["type"] != "text":
        facts.append(("Of this type", percent(column["type_share"])))
    for name, value in facts:
        yield el("div", el("dt", name), el("dd", value))


def _frequent(column: Summary) -> Iterator[Html]:
    """Frequent values and patterns, or some values if none repeats."""
    top = column["top"] or []
    if top and top[0]["count"] > 1:
        yield _counts("Most frequent values", top, column, column["top_error"])
    elif column["sample"]:
        values = [el("li", shorten(value, VALUE)) for value in column["sample"][:_SAMPLED]]
        yield joined(el("h4", "Some of its values"), el("ul", *values, class_="values"))
    if column["patterns"]:
        yield _counts("Patterns", column["patterns"], column, column["patterns_error"])


#: Values, and most frequent values and patterns, that are shown.
_SAMPLED, _COUNTED = 8, 6


def _counts(title: str, entries: Sequence[Summary], column: Summary, error: int) -> Html:
    peak = entries[0]["count"] or 1
    rows = [
        el(
            "tr",
            el("th", shorten(each["value"], 40), scope="row"),
            el("td", share_bar(each["count"] / peak)),
            el("td", ("≥ " if error else "") + f"{each['count']:,}", class_="number"),
            el("td", percent(each["count"] / column["rows"]) if column["rows"] else "", class_="number soft"),
        )
        for each in entries[:_COUNTED]
    ]
    said = el("p", f"counts are at most {error:,} below the truth", class_="soft") if error else None
    return joined(el("h4", title), el("table", el("tbody", *rows), class_="bars"), said)


# --- pieces -----------------------------------------------------------------------------------------------------------


#: What is said of a column, a table on one line, a reference, a join, a problem and a kind of problems.
COLUMN = ("column", "type", "distribution", "missing", "distinct", "minimum", "maximum", "top")
_TABLE = ("table", "format", "rows", "columns", "size", "missing", "key", "links", "alerts")
_REFERENCE = ("table", "columns", "refers to", "key", "values found", "keys used", "score", "why")
_JOIN = ("column", "table", "its column", "fit", "of its values", "of theirs", "common", "rows", "such as")
_PROBLEM = ("severity", "table", "problem", "what happened", "times")
_KIND = ("severity", "problem", "tables")
_WITHOUT_PARENT = tuple(name for name in _REFERENCE if name != "refers to")
_OF_ONE = tuple(name for name in _PROBLEM if name != "table")
#: Classes of cells.
_CLASSES: dict[Kind, str] = {"number": "number", "code": "code", "why": "soft", "picture": "spark"}


def _grid(names: Sequence[str], things: Iterable[Fields], link: Link, most: int = _PART_BYTES) -> Html:
    """Things below each other; those that would make the page too large are counted instead."""
    rows = [row_of(names, fields, link) for fields in things]
    kept, used = len(rows), 0
    for place, (row, _) in enumerate(rows):
        used += len(row.encode("utf-8", "replace"))
        if used > most:
            kept = place
            break
    more = _notes([f"{len(rows) - kept:,} more rows would make this page too large"]) if kept < len(rows) else None
    return joined(table_of(names, rows[:kept]), more)


#: A line of a table, and by what its cells are ordered: "text", "number", "marks", or nothing.
Row = tuple[Html, tuple[str | None, ...]]


def row_of(names: Sequence[str], fields: Fields, link: Link, address: str | None = None) -> Row:
    """A thing on one line."""
    values = [fields[name] for name in names]
    return el("tr", *(_cell(value, link, address) for value in values)), tuple(map(_order, values))


def _order(value: Value) -> str | None:
    if value.kind == "picture":
        return None
    return "text" if value.order is None else value.kind


def _cell(value: Value, link: Link, address: str | None) -> Html:
    if value.kind in ("name", "table"):
        leads_to = link(value.text) if value.kind == "table" else address
        return el("th", el("a" if leads_to else "span", value.shown(), href=leads_to), scope="row")
    marks = (el("span", mark.word, class_=f"chip {mark.tone}", title=mark.title or None) for mark in value.marks)
    text = "" if value.kind in ("marks", "picture") else value.shown()
    order = None if value.order is None else f"{value.order:.15g}"
    return el(
        "td",
        value.drawn,
        *marks,
        text,
        class_=_CLASSES.get(value.kind),
        data_value=order,
        title=value.title or None,
    )


def table_of(names: Sequence[str], rows: Sequence[Row], **attributes: object) -> Html:
    """Lines below a head; a script of the page puts them in order."""
    orders = rows[0][1] if rows else [None] * len(names)
    head = [
        el("th", name.capitalize(), scope="col", data_sort=order) for name, order in zip(names, orders, strict=True)
    ]
    table = el(
        "table",
        el("thead", el("tr", *head)),
        el("tbody", *(row for row, _ in rows)),
        class_="list",
        **attributes,
    )
    label = f"{names[0].capitalize()}s, scrolls sideways"
    return el("div", table, class_="scroll", tabindex=0, role="group", aria_label=label)


def _number(value: int) -> Html:
    return el("td", f"{value:,}", class_="number")


def _chip(word: str, tone: str, title: str) -> Html:
    return el("span", word, class_=f"chip {tone}", title=title or None)


def _notes(notes: Sequence[str]) -> Html | None:
    return el("ul", *(el("li", shorten(note, SENTENCE)) for note in notes), class_="notes soft") if notes else None


def _day(created: str) -> Html:
    return el("time", created[:16].replace("T", " "), datetime=created)


def pages_nav(addresses: Sequence[str], here: int, columns: Sequence[tuple[int, int]]) -> Html | None:
    """Links between the pages of a wide table."""
    if len(addresses) == 1:
        return None
    links = [
        el("a", f"{first + 1:,} to {last:,}", href=address, aria_current="page" if number == here else None)
        for number, (address, (first, last)) in enumerate(zip(addresses, columns, strict=True))
    ]
    return el("p", f"{columns[-1][1]:,} columns on {len(addresses):,} pages: ", el("span", *links, class_="pages"))
