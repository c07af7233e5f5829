"""What is in a lake: its tables, their columns, their problems, the lake as a whole?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from lakescope.questions.model import LakeTable, NotOn, On, Request, Watch, question
from lakescope.results import Results, TableProfile
from lakescope.stages import Stage

if TYPE_CHECKING:
    import pyarrow as pa

    from lakescope.lake import Lake

TableOrder = Literal["name", "rows", "bytes", "columns", "problems"]
Severity = Literal["error", "warning", "info"]
ProblemOrder = Literal["table", "severity"]

#: Fields of a column that say what it is.
FEW_FIELDS: Final = ("table", "column", "type", "rows", "nulls", "distinct", "distinct_exact")
#: Fields of tables and profiles that say where a table lies, or how it was scanned.
_PRIVATE: Final = ("uri", "id", "units")


@question(
    "tables",
    page="/",
    tool="list_tables",
    gives="rows",
    records="tables",
    shown=("table", "format", "bytes", "rows", "columns", "problems"),
    brief=("table", "format", "bytes", "rows", "columns", "problems"),
    private=_PRIVATE,
    lane="catalog",
    group="lake",
    paged=True,
    doing="listing tables",
    examples=(
        "lakescope tables lake.idx",
        "lakescope tables lake.idx --like sales --format csv",
        "lakescope tables lake.idx --file-format parquet --sort rows --limit 10",
    ),
    example={"table": "shop/orders.csv", "format": "csv", "rows": 4000, "columns": 7, "problems": 0},
)
@dataclass(frozen=True, kw_only=True, slots=True)
class TablesRequest(Request["pa.Table"]):
    """List the tables: name, format, bytes, rows, columns, number of problems."""

    like: Annotated[str | None, "Only tables whose name contains this, in any case."] = None
    format: Annotated[
        str | None, "Only tables of this format, e.g. csv or parquet.", On("cli", names=("--file-format",))
    ] = None
    folder: Annotated[str | None, "Only tables whose path begins with this folder; . for those in none."] = None
    type: Annotated[str | None, "Only tables with a column of this type, e.g. integer, date or code."] = None
    problems: Annotated[bool, "Only tables about which something was odd."] = False
    sort: Annotated[
        TableOrder,
        "What they are sorted by: name, or the largest first by rows, bytes, columns or problems.",
        On("web", default="rows", why="the largest tables are what a person looks for first"),
    ] = "name"

    def answer(self, lake: Lake, watch: Watch) -> pa.Table:
        return lake._catalog.tables(
            like=self.like,
            format=self.format,
            folder=self.folder,
            type=self.type,
            problems=self.problems,
            sort=self.sort,
        )


@question(
    "columns",
    gives="rows",
    records="columns",
    shown=("table", "column", "type", "rows", "nulls", "distinct", "key", "minimum", "maximum"),
    lane="catalog",
    group="lake",
    paged=True,
    doing="listing columns",
    examples=(
        "lakescope columns lake.idx --table sales/2021.csv",
        "lakescope columns lake.idx --type date --like day",
        "lakescope columns lake.idx --fields table,column,mean --format csv",
    ),
    example={"table": "shop/orders.csv", "column": "order_id", "type": "integer", "distinct": 4000},
)
@dataclass(frozen=True, kw_only=True, slots=True)
class ColumnsRequest(Request["pa.Table"]):
    """List the columns of all tables, or of one."""

    table: Annotated[LakeTable | None, "Only columns of this table."] = None
    like: Annotated[str | None, "Only columns whose name contains this, in any case."] = None
    type: Annotated[str | None, "Only columns of this type, e.g. integer, date or code."] = None
    fields: Annotated[
        tuple[str, ...] | None,
        "Which fields of each column to tell; without it its whole profile.",
        On(
            *("rest", "web", "agents"),
            default=FEW_FIELDS,
            help="Which fields of each column to tell.",
            why="whole profiles of many columns are megabytes",
        ),
    ] = None

    def answer(self, lake: Lake, watch: Watch) -> pa.Table:
        if self.table is not None:
            lake._table(self.table)  # refuses what is not there
        return lake._catalog.columns(self.table, like=self.like, type=self.type, fields=self.fields)


@question(
    "problems",
    page="/problems",
    gives="rows",
    records="problems",
    shown=("severity", "table", "code", "count", "detail"),
    lane="catalog",
    group="lake",
    paged=True,
    doing="listing problems",
    examples=("lakescope problems lake.idx --severity error",),
    example={"table": "broken/empty.csv", "severity": "error", "code": "empty-file", "count": 1},
)
@dataclass(frozen=True, kw_only=True, slots=True)
class ProblemsRequest(Request["pa.Table"]):
    """What could not be read (error), was odd (warning) or is worth knowing (info)."""

    severity: Annotated[Severity | None, "Only those that are an error, a warning or an info."] = None
    sort: Annotated[
        ProblemOrder,
        "What they are sorted by: table, or severity: the worst first.",
        On("cli", "rest", "web", "agents", default="severity", why="who reads a list sees its beginning"),
    ] = "table"

    def answer(self, lake: Lake, watch: Watch) -> pa.Table:
        return lake._catalog.problems(self.severity, sort=self.sort)


@question(
    "info",
    path="lake",
    gives="record",
    records="lake",
    private=("path", "sources"),
    lane="catalog",
    group="lake",
    doing="looking at the lake",
    examples=("lakescope info lake.idx --format json",),
    example={"tables": 103, "columns": 438, "rows": 119_769, "ready": True},
)
@dataclass(frozen=True, kw_only=True, slots=True)
class InfoRequest(Request[dict[str, Any]]):
    """The lake at a glance: sizes, problems, when and by which version it was indexed."""

    counts: Annotated[
        bool,
        "Also how many tables there are of each format, folder, type of a column and size, and which problems.",
        On("rest", "web", default=True, why="a page of a lake begins with them"),
    ] = False

    def answer(self, lake: Lake, watch: Watch) -> dict[str, Any]:
        manifest = lake._index.manifest
        found = lake._catalog.severities
        return {
            "path": lake.path,
            **{name: manifest.summary[name] for name in ("tables", "columns", "rows", "bytes")},
            **{"errors": found["error"], "warnings": found["warning"], "notes": found["info"]},
            "sources": manifest.sources,
            "created": manifest.created,
            "generation": manifest.generation,
            "version": manifest.version,
            "seconds": manifest.summary["seconds"],
            "index_bytes": sum(file.size for file in manifest.files),
            **(lake._catalog.counts if self.counts else {}),
        }


@question(
    "timings",
    record=Stage,
    records="stages",
    lane="catalog",
    group="lake",
    paged=True,
    doing="looking at the last build",
    examples=("lakescope timings lake.idx",),
    example={"stage": "scan", "wall": 12.5, "cpu": 0.4, "workers": 44.1},
    absent=(NotOn("agents", why="how the index was built says nothing about the data"),),
)
@dataclass(frozen=True, kw_only=True, slots=True)
class TimingsRequest(Request[Results[Stage]]):
    """Where the time of the last build, update or compaction went: seconds of wall clock and CPU by stage."""

    def answer(self, lake: Lake, watch: Watch) -> Results[Stage]:
        return Results(Stage, [Stage(**each) for each in lake._index.manifest.summary.get("stages", [])])


@question(
    "profile",
    gives="record",
    records="columns",
    private=_PRIVATE,
    lane="catalog",
    group="table",
    paged=True,
    doing="looking at a table",
    examples=(
        "lakescope profile lake.idx sales/2021.csv",
        "lakescope profile lake.idx sales/2021.csv --column price",
        "lakescope profile lake.idx sales/2021.csv --at 1",
    ),
    example={"table": "shop/orders.csv", "rows": 4000, "columns": [{"name": "order_id", "type": "integer"}]},
)
@dataclass(frozen=True, kw_only=True, slots=True)
class ProfileRequest(Request[TableProfile]):
    """What is in a table: types, missing values, distinct counts, distributions, top values, patterns.

    Without a column agents are told the type, missing and distinct values, extremes and alerts of each.
    """

    table: Annotated[
        LakeTable, "Name of the table.", On("cli", names=("TABLE",), help="Name of the table, as tables lists it.")
    ]
    column: Annotated[str | None, "Only this column: everything about it."] = None
    version: Annotated[int | None, "An earlier version, as history numbers them.", On("cli", names=("--at",))] = None

    def answer(self, lake: Lake, watch: Watch) -> TableProfile:
        from lakescope.profile.view import column_view
        from lakescope.store.records import records_of
        from lakescope.store.segment import rows_of

        if self.version is not None:
            from lakescope.engines.history.versions import profile_at

            found = TableProfile(*profile_at(lake._index, self.table, self.version), [])
        else:
            record = lake._table(self.table)
            columns = [column_view(column) for column in records_of(lake._index.columns_of(self.table))]
            problems = rows_of(lake._index.catalog("problems"), self.table).to_pylist()
            found = TableProfile(record, columns, problems)
        return found if self.column is None else found.of(self.column)
