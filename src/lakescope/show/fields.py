"""What is said of a thing, once for every medium: its fields by name, each a value that knows what it says.

A medium chooses fields and renders them: the text of a terminal (:mod:`~lakescope.show.text`), Markdown, the pages of a
report, a notebook. What one of them says of a column, a join or a problem, all say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from lakescope.show.charts import Svg, column_chart, share_bar
from lakescope.show.text import cell_text, percent, shorten, shorten_inside, size_text, sparkline

Summary = Mapping[str, Any]
#: The address of a table's page as seen from where it is linked; None for a table without one.
Link = Callable[[str], str | None]
Kind = Literal["text", "name", "table", "number", "code", "why", "marks", "picture"]

#: Characters of a name and of a sentence that are shown.
NAME, SENTENCE = 100, 300
#: Colours of alerts: something is wrong, something is odd, something is good to know.
TONES = {
    **dict.fromkeys(("empty", "mostly missing", "encoding"), "bad"),
    **dict.fromkeys(("disguised missing", "mixed types", "constant", "nearly constant", "outliers"), "odd"),
    **dict.fromkeys(("key", "likely key"), "good"),
}
_SEVERITIES = {"error": "bad", "warning": "odd", "info": "plain"}
_QUALITIES = {"high": "good", "good": "good", "moderate": "odd", "poor": "bad"}


@dataclass(frozen=True, slots=True)
class Mark:
    """A word on a ground of its own, with what is behind it."""

    word: str
    tone: str = "plain"
    title: str = ""


@dataclass(frozen=True, slots=True)
class Value:
    """What a field says, and how: its text, cut where it is long, and what is drawn before it or instead of it."""

    text: str = ""
    kind: Kind = "text"
    #: What follows the text and is never cut.
    after: str = ""
    #: Letters that are shown, and in a line of a terminal.
    width: int = 60
    narrow: int = 24
    #: What it is ordered by, if not by its text.
    order: float | None = None
    title: str = ""
    marks: tuple[Mark, ...] = ()
    draw: Callable[[], Svg] | None = None

    def shown(self, *, narrow: bool = False) -> str:
        """Its text as it is shown; names of tables are cut in their middle."""
        cut = shorten_inside if self.kind == "table" else shorten
        return cut(self.text, self.narrow if narrow else self.width) + self.after

    @property
    def drawn(self) -> Svg:
        """What is drawn beside its text, or, for a picture, instead of it."""
        return self.draw() if self.draw else Svg()


Fields = dict[str, Value]


def _table(name: str) -> Value:
    return Value(name, "table", width=NAME)


def _number(value: float, text: str = "", **more: Any) -> Value:
    return Value(text or f"{value:,}", "number", order=value, **more)


def _share(value: float, text: str = "", kind: str = "") -> Value:
    return _number(value, text or percent(value), draw=lambda: share_bar(value, kind))


def _marks(marks: Iterable[Mark], text: str = "", order: float | None = None) -> Value:
    listed = tuple(marks)
    return Value(
        text or ", ".join(mark.word for mark in listed), "marks", width=NAME, narrow=NAME, marks=listed, order=order
    )


def share_within(value: float, low: float, high: float, *, exact: bool) -> str:
    """A share with what it lies between, unless it was counted."""
    return percent(value) if exact or low == high else f"≈ {percent(value)} ({percent(low)} to {percent(high)})"


# --- a column ---------------------------------------------------------------------------------------------------------


def missing_share(column: Summary) -> float:
    """The share of a column's rows that have no value; none of a column without rows."""
    return 0.0 if column["completeness"] is None else 1.0 - float(column["completeness"])


def distinct_text(column: Summary) -> str:
    """How many values are different."""
    return ("" if column["distinct_exact"] else "≈ ") + f"{column['distinct']:,}"


def column_fields(column: Summary) -> Fields:
    """A column on one line."""
    missing, tops = missing_share(column), column["top"] or ()
    top = tops[0] if tops and tops[0]["count"] > 1 else None
    counts = [each["count"] for each in column["histogram"] or ()]
    often = f" ({percent(top['count'] / column['rows'])})" if top else ""
    return {
        "column": Value(column["name"], "name", narrow=28),
        "type": _marks([Mark(column["type"], "type")]),
        "missing": _share(missing, kind="missing") if missing else _number(0.0, "0%"),
        "distinct": _number(column["distinct"], distinct_text(column)),
        "minimum": Value(column["minimum"] or "", width=24, narrow=16),
        "maximum": Value(column["maximum"] or "", width=24, narrow=16),
        "quartiles": Value(", ".join(map(cell_text, column.get("quartiles") or ())), width=NAME),
        "distribution": Value(sparkline(counts), "picture", draw=lambda: column_chart(column)),
        "top": Value(top["value"] if top else "", after=often, width=24, narrow=16),
        "most frequent": Value(", ".join(f"{each['value']} ({each['count']:,})" for each in tops[:3]), width=NAME),
        "note": _marks(Mark(alert, TONES.get(alert, "plain")) for alert in column["alerts"]),
    }


# --- a hit ------------------------------------------------------------------------------------------------------------


def reference_fields(found: Summary) -> Fields:
    """A foreign key."""
    inclusion = share_within(found["inclusion"], found["low"], found["high"], exact=found["exact"])
    return {
        "table": _table(found["child_table"]),
        "columns": Value(", ".join(found["child_columns"]), "code", width=NAME),
        "refers to": _table(found["parent_table"]),
        "key": Value(", ".join(found["parent_columns"]), "code", width=NAME),
        "values found": _number(found["inclusion"], inclusion),
        "keys used": _number(found["coverage"], percent(found["coverage"])),
        "score": _number(found["score"], f"{found['score']:.2f}"),
        "why": Value(", ".join(found["reasons"]), "why", width=SENTENCE),
    }


def join_fields(found: Summary) -> Fields:
    """A column of another table that joins with one of this."""
    fit = [Mark(found["quality"], _QUALITIES.get(found["quality"], "plain"))]
    if found["by_chance"]:
        fit.append(Mark("may be chance", "plain", ", ".join(found["reasons"])))
    containment = share_within(found["containment"], found["low"], found["high"], exact=found["exact"])
    return {
        "column": Value(found["query_column"], "code", width=NAME),
        "table": _table(found["table"]),
        "its column": Value(found["column"], "code", width=NAME),
        "fit": _marks(fit),
        "of its values": _share(found["containment"], containment),
        "of theirs": _share(found["reverse"]),
        "common": _number(found["overlap"]),
        "rows": Value(found["cardinality"]),
        "such as": Value(", ".join(found["matches"]), "why"),
    }


# --- a table ----------------------------------------------------------------------------------------------------------


def table_fields(line: Summary) -> Fields:
    """A table on one line."""
    alerts = ", ".join(f"{count} {alert}" for alert, count in line["alerts"].items())
    alarming = {alert: count for alert, count in line["alerts"].items() if TONES.get(alert) != "good"}
    count, links = sum(alarming.values()), line["refers_to"] + line["referred_by"] + line["joins"]
    troubles = line["problems"].get("error", 0) + line["problems"].get("warning", 0)
    said = ", ".join(f"{some} {alert}" for alert, some in alarming.items())
    marks = [Mark(_counted(count, "alert"), "odd", said)] if count else []
    marks += [Mark(_counted(troubles, "problem"), "bad")] if troubles else []
    return {
        "table": _table(line["table"]),
        "format": Value(line["format"]),
        "rows": _number(line["rows"]),
        "columns": _number(line["columns"]),
        "size": _number(line["bytes"], size_text(line["bytes"])),
        "missing": _number(line["missing"], percent(line["missing"])),
        "key": Value(", ".join(line["key"]), "code", width=40),
        "links": _number(
            links,
            title=f"refers to {line['refers_to']:,}, referred to by {line['referred_by']:,}, "
            f"joins with {line['joins']:,} tables",
        ),
        "alerts": _marks(marks, alerts, count + 1000 * troubles),
    }


def _counted(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def alert_fields(alert: str, found: Summary) -> Fields:
    """An alert of a column, and what is behind it."""
    return {
        "alert": _marks([Mark(alert, TONES.get(alert, "plain"))]),
        "column": Value(found["column"]),
        "detail": Value(found["detail"], width=NAME),
    }


def problem_fields(problem: Summary) -> Fields:
    """What went wrong with a table."""
    return {
        "severity": _marks([Mark(problem["severity"], _SEVERITIES[problem["severity"]])]),
        "table": _table(problem.get("table", "")),
        "problem": Value(problem["code"], "code", width=NAME),
        "what happened": Value(problem["detail"], width=SENTENCE),
        "times": _number(problem["count"]),
    }


def kind_fields(kind: Summary) -> Fields:
    """A kind of problems, and how many tables have it."""
    return {
        "severity": _marks([Mark(kind["severity"], _SEVERITIES[kind["severity"]])]),
        "problem": Value(kind["code"], "name"),
        "tables": _number(kind["tables"]),
    }


# --- a lake -----------------------------------------------------------------------------------------------------------


def lake_facts(info: Summary) -> list[tuple[str, str]]:
    """A lake at a glance: numbers by name."""
    counted = [(name, f"{info[name]:,}") for name in ("tables", "columns", "rows")]
    return [
        *counted,
        ("data", size_text(info["bytes"])),
        *((name, f"{info[name]:,}") for name in ("errors", "warnings")),
    ]


def chosen(fields: Iterable[Fields], names: Sequence[str]) -> list[list[Value]]:
    """Rows of the fields that a medium shows."""
    return [[each[name] for name in names] for each in fields]
