"""The pages of a report as HTML: no inline script or style, nothing from the network, every text escaped.

A page is made of elements (:mod:`lakescope.show.markup`); how they look is in ``assets/report.css``, what little
moves in ``assets/report.js``. Links between tables are made by a function that knows the name of a table's page.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from lakescope.show.charts import column_chart, share_bar
from lakescope.show.markup import Html, el, joined
from lakescope.show.text import cell_text, percent, rows_range, shorten, shorten_inside, size_text

Summary = Mapping[str, Any]
#: The address of a table's page as seen from the page that is written; None for a table without one.
Link = Callable[[str], str | None]

#: Characters of a name, a value and a sentence that are shown.
NAME, VALUE, SENTENCE = 100, 60, 300
_POLICY = "default-src 'none'; style-src 'self' file:; script-src 'self' file:; img-src 'self' file:; base-uri 'none'"
#: Bytes of the rows of one table on the page of a table, and on a page of its own.
_PART_BYTES, _PAGE_BYTES = 120_000, 700_000
_PLACES = (("Tables", "index.html"), ("References", "references.html"), ("Problems", "problems.html"))
#: Colours of alerts: something is wrong, something is odd, something is good to know.
_TONES = {
    **dict.fromkeys(("empty", "mostly missing", "encoding"), "bad"),
    **dict.fromkeys(("disguised missing", "mixed types", "constant", "nearly constant", "outliers"), "odd"),
    **dict.fromkeys(("key", "likely key"), "good"),
}
_SEVERITY_TONES = {"error": "bad", "warning": "odd", "info": "plain"}


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
    troubles = info["errors"] + info["warnings"]
    tiles = [
        ("Tables", f"{info['tables']:,}", "", None),
        ("Columns", f"{info['columns']:,}", "", None),
        ("Rows", f"{info['rows']:,}", "", None),
        ("Data", size_text(info["bytes"]), "", None),
        ("References", f"{len(lake['references']):,}", "between tables", "references.html"),
        ("Problems", f"{troubles:,}", f"{info['errors']:,} errors, {info['warnings']:,} warnings", "problems.html"),
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
    heads = [
        *(("Table", "text"), ("Format", "text"), ("Rows", "number"), ("Columns", "number"), ("Size", "number")),
        *(("Missing", "number"), ("Key", "text"), ("Links", "number"), ("Alerts", "marks")),
    ]
    head = el("tr", *(el("th", name, scope="col", data_sort=kind) for name, kind in heads))
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
    body = el("tbody", *(_line(line, link) for line in lines))
    return joined(
        el("h2", "Tables", id="tables"),
        note,
        controls,
        el(
            "div",
            el("table", el("thead", head), body, id="list", class_="list"),
            class_="scroll",
            tabindex=0,
            role="group",
            aria_label="Tables, scrolls sideways",
        ),
        el("p", "No table matches.", id="none", class_="soft", hidden=True),
    )


def list_page(number: int) -> str:
    """File name of a page of the list of tables."""
    return "index.html" if number == 0 else f"index-{number + 1}.html"


def _line(line: Summary, link: Link) -> Html:
    alarming = [alert for alert in line["alerts"] if _TONES.get(alert) != "good"]
    count = sum(line["alerts"][alert] for alert in alarming)
    said = ", ".join(f"{line['alerts'][alert]} {alert}" for alert in alarming)
    troubles = line["problems"].get("error", 0) + line["problems"].get("warning", 0)
    links = line["refers_to"] + line["referred_by"] + line["joins"]
    marks = [
        _chip(f"{count:,} alerts" if count > 1 else "1 alert", "odd", said) if count else None,
        _chip(f"{troubles:,} problems" if troubles > 1 else "1 problem", "bad", "") if troubles else None,
    ]
    return el(
        "tr",
        el("th", _linked(line["table"], link), scope="row"),
        el("td", line["format"]),
        _number(line["rows"]),
        _number(line["columns"]),
        el("td", size_text(line["bytes"]), class_="number", data_value=line["bytes"]),
        el("td", percent(line["missing"]), class_="number", data_value=f"{line['missing']:.6f}"),
        el("td", shorten(", ".join(line["key"]), 40), class_="code"),
        el("td", f"{links:,}" if links else "", class_="number", data_value=links, title=_links_of(line)),
        el("td", *marks, data_value=count + 1000 * troubles),
    )


def _links_of(line: Summary) -> str:
    return (
        f"refers to {line['refers_to']:,}, referred to by {line['referred_by']:,}, joins with {line['joins']:,} tables"
    )


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
        _references(every, link, most=_PAGE_BYTES)
        if every
        else el("p", "No column refers to the key of another table."),
        _notes(lake["notes"]),
    )


def problems_page(lake: Summary, link: Link) -> Html:
    """What could not be read and what was odd, by kind and by table."""
    kinds = [
        el(
            "tr",
            el("td", _chip(each["severity"], _SEVERITY_TONES[each["severity"]], "")),
            el("th", each["code"], scope="row"),
            _number(each["tables"]),
        )
        for each in lake["codes"]
    ]
    if not kinds:
        return joined(el("h1", "Problems"), el("p", "Every table was read, and nothing was odd."))
    head = ("Severity", "Problem", "Tables")
    return joined(
        el("h1", "Problems"),
        el("p", "One bad table never stops a lake: what could not be read is told here.", class_="soft"),
        _table(head, kinds),
        el("h2", "By table"),
        _problems(lake["problems"], link, most=_PAGE_BYTES // 2),
        _notes(lake["notes"]),
    )


def _problems(problems: Sequence[Summary], link: Link | None, most: int = _PART_BYTES) -> Html:
    rows = [
        el(
            "tr",
            el("td", _chip(each["severity"], _SEVERITY_TONES[each["severity"]], "")),
            el("th", _linked(each["table"], link), scope="row") if link else None,
            el("td", each["code"], class_="code"),
            el("td", shorten(each["detail"], SENTENCE)),
            _number(each["count"]),
        )
        for each in problems
    ]
    return _table(("Severity", *(("Table",) if link else ()), "Problem", "What happened", "Times"), rows, most)


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
                class_=f"alert {_TONES.get(each['alert'], 'plain')}",
            )
        )
    return el("div", *cards, class_="alerts")


#: Columns listed below an alert.
_LISTED = 12


def links_section(table: Summary, link: Link) -> Html:
    """The key of a table, what it refers to, what refers to it, and what joins with it."""
    key = table["key"]
    parts: list[Html | None] = [el("h2", "Keys and joins", id="joins")]
    if key:
        others = f"; {', '.join(key['others'])} would do as well" if key["others"] else ""
        doubts = f" ({'; '.join(key['doubts'])})" if key["doubts"] else ""
        parts.append(
            el("p", "Key: ", el("b", ", ".join(key["columns"]), class_="code"), shorten(doubts + others, SENTENCE))
        )
    if table["refers_to"]:
        parts += [el("h3", "Refers to"), _references(table["refers_to"], link, child=False)]
    if table["referred_by"]:
        parts += [el("h3", "Is referred to by"), _references(table["referred_by"], link, parent=False)]
    if table["joins"]:
        parts += [el("h3", "Tables that join with it"), _joins(table["joins"], link)]
    if len(parts) == 1:
        parts.append(el("p", "No key, no reference and no join was found.", class_="soft"))
    return joined(*parts, _notes(table["notes"]))


def _references(
    references: Sequence[Summary], link: Link, *, child: bool = True, parent: bool = True, most: int = _PART_BYTES
) -> Html:
    head = [
        *(("Table",) if child else ()),
        *("Columns", "refer to"),
        *(("Table",) if parent else ()),
        *("Values found", "Keys used", "Score", "Why"),
    ]
    rows = [
        el(
            "tr",
            el("th", _linked(each["child_table"], link), scope="row") if child else None,
            el("td", shorten(", ".join(each["child_columns"]), NAME), class_="code"),
            el("td", shorten(", ".join(each["parent_columns"]), NAME), class_="code"),
            el("th", _linked(each["parent_table"], link), scope="row") if parent else None,
            el("td", _interval(each["inclusion"], each["low"], each["high"], exact=each["exact"]), class_="number"),
            el("td", percent(each["coverage"]), class_="number"),
            el("td", f"{each['score']:.2f}", class_="number"),
            el("td", shorten(", ".join(each["reasons"]), SENTENCE), class_="soft"),
        )
        for each in references
    ]
    return _table(head, rows, most)


def _joins(joins: Sequence[Summary], link: Link) -> Html:
    rows = [
        el(
            "tr",
            el("td", shorten(each["query_column"], NAME), class_="code"),
            el("th", _linked(each["table"], link), scope="row"),
            el("td", shorten(each["column"], NAME), class_="code"),
            el(
                "td",
                _chip(each["quality"], _QUALITIES.get(each["quality"], "plain"), ""),
                _chip("may be chance", "plain", ", ".join(each["reasons"])) if each["by_chance"] else None,
            ),
            el(
                "td",
                share_bar(each["containment"]),
                _interval(each["containment"], each["low"], each["high"], exact=each["exact"]),
                class_="number",
            ),
            el("td", share_bar(each["reverse"]), percent(each["reverse"]), class_="number"),
            _number(each["overlap"]),
            el("td", each["cardinality"]),
            el("td", shorten(", ".join(each["matches"]), VALUE), class_="soft"),
        )
        for each in joins
    ]
    head = ("Column", "Table", "Its column", "Fit", "Of its values", "Of theirs", "Common", "Rows", "Such as")
    return _table(head, rows)


_QUALITIES = {"high": "good", "good": "good", "moderate": "odd", "poor": "bad"}


def _interval(value: float, low: float, high: float, *, exact: bool) -> str:
    """A share with what it lies between, unless it was counted."""
    return percent(value) if exact or low == high else f"≈ {percent(value)} ({percent(low)} to {percent(high)})"


def problems_section(table: Summary) -> Html | None:
    """What was odd about a table."""
    if not table["problems"]:
        return None
    return joined(el("h2", "Problems", id="problems"), _problems(table["problems"], None))


# --- columns ----------------------------------------------------------------------------------------------------------


def overview_row(column: Summary, address: str) -> Html:
    """A column on one line: type, missing share, distribution, extremes."""
    missing = _missing(column)
    top = column["top"][0] if column["top"] and column["top"][0]["count"] > 1 else None
    return el(
        "tr",
        el("th", el("a", shorten(column["name"], VALUE), href=address), scope="row"),
        el("td", el("span", column["type"], class_="type")),
        el("td", column_chart(column, 120), class_="spark"),
        el(
            "td",
            share_bar(missing, "missing") if missing else None,
            percent(missing),
            class_="number",
            data_value=f"{missing:.6f}",
        ),
        el("td", _distinct(column), class_="number", data_value=column["distinct"]),
        el("td", shorten(column["minimum"] or "", 24)),
        el("td", shorten(column["maximum"] or "", 24)),
        el("td", f"{shorten(top['value'], 24)} ({percent(top['count'] / column['rows'])})" if top else ""),
    )


def overview(rows: Sequence[Html]) -> Html:
    """The columns of a page as a table."""
    kinds = ("text", "text", None, "number", "number", "text", "text", "text")
    names = ("Column", "Type", "Distribution", "Missing", "Distinct", "Least", "Largest", "Most frequent")
    head = el("tr", *(el("th", name, scope="col", data_sort=kind) for name, kind in zip(names, kinds, strict=True)))
    return el(
        "div",
        el("table", el("thead", head), el("tbody", *rows), class_="list"),
        class_="scroll",
        tabindex=0,
        role="group",
        aria_label="Table, scrolls sideways",
    )


def column_card(column: Summary, place: int) -> Html:
    """Everything about a column that a reader may want to see."""
    chips = [_chip(alert, _TONES.get(alert, "plain"), "") for alert in column["alerts"]]
    missing = _missing(column)
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


def _missing(column: Summary) -> float:
    return 0.0 if column["completeness"] is None else 1.0 - float(column["completeness"])


def _filled_words(column: Summary, missing: float) -> str:
    if not column["nulls"]:
        return f"no value is missing in {column['rows']:,} rows"
    return f"{percent(missing)} missing: {column['nulls']:,} of {column['rows']:,} rows"


def _distinct(column: Summary) -> str:
    return ("" if column["distinct_exact"] else "≈ ") + f"{column['distinct']:,}"


def _facts(column: Summary) -> Iterator[Html]:
    """Numbers of a column by name, each exact or with its error."""
    distinct = _distinct(column)
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


#: Heads of columns of numbers.
_NUMBERS = frozenset(("Tables", "Times", "Values found", "Keys used", "Score", "Of its values", "Of theirs", "Common"))


def _table(head: Sequence[str], rows: Sequence[Html], most: int = _PART_BYTES) -> Html:
    """Rows below a head; rows that would make the page too large are counted instead."""
    names = [el("th", name, scope="col", class_="number" if name in _NUMBERS else None) for name in head]
    kept, used = len(rows), 0
    for place, row in enumerate(rows):
        used += len(row.encode("utf-8", "replace"))
        if used > most:
            kept = place
            break
    body = el("table", el("thead", el("tr", *names)), el("tbody", *rows[:kept]), class_="list")
    more = _notes([f"{len(rows) - kept:,} more rows would make this page too large"]) if kept < len(rows) else None
    return joined(
        el("div", body, class_="scroll", tabindex=0, role="group", aria_label="Table, scrolls sideways"), more
    )


def _number(value: int) -> Html:
    return el("td", f"{value:,}", class_="number", data_value=value)


def _chip(word: str, tone: str, title: str) -> Html:
    return el("span", word, class_=f"chip {tone}", title=title or None)


def _linked(table: str, link: Link) -> Html:
    address = link(table)
    name = shorten_inside(table, NAME)
    return el("a", name, href=address) if address else el("span", name)


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
