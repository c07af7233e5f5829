"""What a report says, as plain dictionaries: one of each table, one of the lake. How it looks is decided elsewhere.

Tables come one at a time, so that a report of any number of tables takes the memory of one, and a line of each. All of
it is told by the index; no table is read.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from lakescope._version import __version__
from lakescope.errors import BadRequest

if TYPE_CHECKING:
    from lakescope.lake import Lake

Summary = dict[str, Any]

#: Tables that join with one, references and problems of one, and references of the lake that are told.
JOINS = 10
REFERENCES = 100
PROBLEMS = 100
LAKE_REFERENCES = 1_000
LAKE_PROBLEMS = 1_000
#: Overlaps that are likelier than this among unrelated columns may be chance.
_LEVEL = 0.05
#: Alerts in the order in which a reader should see them.
ALERTS = (
    *("empty", "mostly missing", "disguised missing", "mixed types", "constant", "nearly constant"),
    *("encoding", "outliers", "key", "likely key"),
)
SEVERITIES = ("error", "warning", "info")


@dataclass
class References:
    """Keys and references of a lake, by table."""

    keys: dict[str, Summary] = field(default_factory=dict)
    out: dict[str, list[Summary]] = field(default_factory=lambda: defaultdict(list))
    into: dict[str, list[Summary]] = field(default_factory=lambda: defaultdict(list))
    every: list[Summary] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def references_of(lake: Lake) -> References:
    """What refers to what, asked once for the whole lake."""
    found = lake.foreign_keys()
    told = References(notes=[f"references: {note}" for note in found.notes])
    for key in lake.primary_keys().to_dicts():
        told.keys[key["table"]] = key
    told.every = found.to_dicts()
    for each in told.every:
        told.out[each["child_table"]].append(each)
        told.into[each["parent_table"]].append(each)
    return told


def table_summaries(lake: Lake, references: References) -> Iterator[Summary]:
    """The summary of every table, in order of their names."""
    lake.columns()  # the whole catalog at once, instead of a piece for each table
    for name in lake.tables()["table"].to_pylist():
        yield table_summary(lake, name, references)


def table_summary(lake: Lake, name: str, references: References) -> Summary:
    """One table: its record and columns, what to look at first, its keys, what refers to what, what joins."""
    profile = lake.profile(name).to_dict()
    joins, notes = _joins(lake, name)
    out, into = references.out.get(name, []), references.into.get(name, [])
    for told, what in ((out, "it refers to"), (into, "refer to it")):
        if len(told) > REFERENCES:
            notes.append(f"the first {REFERENCES} of {len(told):,} references that {what} are told")
    if len(profile["problems"]) > PROBLEMS:
        notes.append(f"the first {PROBLEMS} of {len(profile['problems']):,} problems are told")
    return {
        **profile,
        "modified": None if profile["modified"] is None else str(profile["modified"]),
        "problems": sorted(profile["problems"], key=_severity)[:PROBLEMS],
        "alerts": alerts_of(profile["columns"]),
        "key": references.keys.get(name),
        "refers_to": out[:REFERENCES],
        "referred_by": into[:REFERENCES],
        "joins": joins,
        "notes": notes,
    }


def _severity(problem: Mapping[str, Any]) -> int:
    return SEVERITIES.index(problem["severity"])


def _joins(lake: Lake, name: str) -> tuple[list[Summary], list[str]]:
    """The best join with each of the tables that join best, what chance explains last."""
    try:
        found = lake.joinable(name, k=JOINS)
    except BadRequest as error:
        return [], [error.message]
    told = [{**record, "by_chance": record["p"] > _LEVEL} for record in found.to_dicts() if record["quality"] != "none"]
    told.sort(key=lambda record: record["by_chance"])
    refused = len(found) - len(told)
    return told, [f"{refused} joins of few values are left out"] if refused else []


def alerts_of(columns: Sequence[Mapping[str, Any]]) -> list[Summary]:
    """Every alert with the columns that have it, and what is behind it in each."""
    found: dict[str, list[Summary]] = {alert: [] for alert in ALERTS}
    for place, column in enumerate(columns):
        for alert in column["alerts"]:
            found.setdefault(alert, []).append(
                {"column": column["name"], "position": place, "detail": _detail(alert, column)}
            )
    return [{"alert": alert, "columns": some} for alert, some in found.items() if some]


def _detail(alert: str, column: Mapping[str, Any]) -> str:
    """What is behind an alert, in a few words."""
    rows, top = column["rows"], column["top"] or []
    if alert in ("mostly missing", "empty"):
        return f"{column['nulls']:,} of {rows:,} rows"
    if alert in ("constant", "nearly constant") and top:
        return f"{top[0]['value']} in {top[0]['count']:,} of {rows:,} rows"
    if alert == "disguised missing":
        return ", ".join(column["disguised"])
    if alert == "mixed types":
        others = {kind: n for kind, n in column["kinds"].items() if n and kind != column["type"]}
        return ", ".join(f"{n:,} {kind}" for kind, n in sorted(others.items(), key=lambda item: -item[1]))
    if alert == "outliers":
        return f"{column['outliers']:,} beyond the fences"
    return f"{column['undecodable']:,} cells are not UTF-8" if alert == "encoding" else ""


def line_of(table: Mapping[str, Any]) -> Summary:
    """What the page of the lake says of a table."""
    columns = table["columns"]
    cells = sum(column["rows"] for column in columns)
    return {
        **{name: table[name] for name in ("table", "format", "bytes", "rows")},
        "columns": len(columns),
        "missing": sum(column["nulls"] for column in columns) / cells if cells else 0.0,
        "alerts": {each["alert"]: len(each["columns"]) for each in table["alerts"]},
        "types": dict(Counter(column["type"] for column in columns)),
        "problems": dict(Counter(problem["severity"] for problem in table["problems"])),
        "key": list(table["key"]["columns"]) if table["key"] else [],
        "refers_to": len(table["refers_to"]),
        "referred_by": len(table["referred_by"]),
        "joins": len(table["joins"]),
    }


def lake_summary(lake: Lake, lines: Sequence[Summary], references: References) -> Summary:
    """The lake at a glance, with a line for each table."""
    info = lake.info()
    problems = sorted(lake.problems().to_pylist(), key=lambda each: (_severity(each), each["code"], each["table"]))
    codes: dict[tuple[str, str], set[str]] = defaultdict(set)
    for each in problems:
        codes[each["severity"], each["code"]].add(each["table"])
    types: Counter[str] = Counter()
    for line in lines:
        types.update(line["types"])
    notes = list(references.notes)
    for told, most, what in (
        (references.every, LAKE_REFERENCES, "references"),
        (problems, LAKE_PROBLEMS, "problems"),
    ):
        if len(told) > most:
            notes.append(f"the first {most:,} of {len(told):,} {what} are told here, all of them at their tables")
    return {
        "lake": PurePath(info["path"]).name,
        "lakescope": __version__,
        "info": {name: info[name] for name in info if name != "seconds"},
        "formats": dict(Counter(line["format"] for line in lines).most_common()),
        "types": dict(types.most_common()),
        "sizes": sizes_of([line["rows"] for line in lines]),
        "codes": [
            {"severity": severity, "code": code, "tables": len(names)} for (severity, code), names in codes.items()
        ],
        "problems": problems[:LAKE_PROBLEMS],
        "references": references.every[:LAKE_REFERENCES],
        "tables": list(lines),
        "notes": notes,
    }


def sizes_of(rows: Sequence[int]) -> list[Summary]:
    """How many tables have how many rows, in powers of ten; the first bin is that of tables without rows."""
    counts = Counter(len(str(count)) if count else 0 for count in rows)
    edges = [(0, 0), *((10**power, 10 ** (power + 1) - 1) for power in range(max(counts, default=0)))]
    bins = [{"low": low, "high": high, "count": counts[place]} for place, (low, high) in enumerate(edges)]
    return bins if counts[0] else bins[1:]
