"""What a lake can be asked: one declaration a question, from which all faces follow.

This module knows the questions by name without importing them: a command line that shows a list of commands needs no
more than a line about each.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from lakescope.questions.model import Request


class Place(NamedTuple):
    """Where a question is declared, the command that asks it, and one line about it."""

    module: str
    name: str
    command: str
    summary: str


_PLACES = {
    "info": Place(
        "catalog",
        "InfoRequest",
        "info",
        "The lake at a glance: sizes, problems, when and by which version it was indexed.",
    ),
    "timings": Place(
        "catalog",
        "TimingsRequest",
        "timings",
        "Where the time of the last build, update or compaction went: seconds of wall clock and CPU by stage.",
    ),
    "tables": Place(
        "catalog",
        "TablesRequest",
        "tables",
        "List the tables: name, format, bytes, rows, columns, number of problems.",
    ),
    "columns": Place("catalog", "ColumnsRequest", "columns", "List the columns of all tables, or of one."),
    "profile": Place(
        "catalog",
        "ProfileRequest",
        "profile",
        "What is in a table: types, missing values, distinct counts, distributions, top values, patterns.",
    ),
    "problems": Place(
        "catalog",
        "ProblemsRequest",
        "problems",
        "What could not be read (error), was odd (warning) or is worth knowing (info).",
    ),
    "find": Place(
        "find",
        "FindRequest",
        "find",
        "Find a text in the names of tables and columns, and columns that hold it as a value.",
    ),
    "head": Place("rows", "HeadRequest", "head", "The first rows of a table as they are written."),
    "describe": Place(
        "rows",
        "DescribeRequest",
        "describe",
        "The columns of a table as the lake sees them: which of their values it knows, which is likely a key.",
    ),
    "shared_columns": Place(
        "rows",
        "SharedColumnsRequest",
        "shared",
        "Which columns of two tables hold mostly the same values as they are written. Reads both tables.",
    ),
    "joinable": Place(
        "joinable",
        "JoinableRequest",
        "join",
        "Which columns of the lake join with mine: the best ones exactly, or all above a threshold.",
    ),
    "join_paths": Place(
        "paths",
        "JoinPathsRequest",
        "paths",
        "Which tables can be reached from mine, join after join, with the best path to each.",
    ),
    "correlated": Place(
        "correlated",
        "CorrelatedRequest",
        "correlate",
        "Which tables hold a column that correlates with mine after the join.",
    ),
    "augment": Place(
        "augment",
        "AugmentRequest",
        "augment",
        "Join the columns that correlate best into a table, and say what each adds.",
    ),
    "joined": Place(
        "augment",
        "JoinedRequest",
        "joined",
        "Join a table with one of the lake: all of its rows, each beside every row with the same value.",
    ),
    "inclusions": Place(
        "inclusions",
        "InclusionsRequest",
        "inclusions",
        "Which columns are included in which: all pairs of the lake, from their sketches.",
    ),
    "foreign_keys": Place(
        "keys",
        "ForeignKeysRequest",
        "keys",
        "Which columns refer to keys of other tables, with the evidence for each.",
    ),
    "primary_keys": Place(
        "keys",
        "PrimaryKeysRequest",
        "keys primary",
        "Which columns are the key of each table: what others refer to, else what looks most like one.",
    ),
    "key_diagram": Place(
        "keys",
        "KeyDiagramRequest",
        "keys diagram",
        "What tables, keys and references look like: a picture, text for mermaid, or SQL that declares them.",
    ),
    "autojoin": Place(
        "autojoin",
        "AutojoinRequest",
        "autojoin",
        "Join two tables whose keys are written differently: learn the programs that rewrite one into the other.",
    ),
    "lake_autojoin": Place(
        "autojoin",
        "LakeAutojoinRequest",
        "autojoin lake",
        "Which tables of the lake join with mine once keys are rewritten, with the program for each.",
    ),
    "fuzzyjoin": Place(
        "autojoin",
        "FuzzyJoinRequest",
        "fuzzyjoin",
        "Join two tables on columns that are nearly equal; distances and thresholds are found from the columns alone.",
    ),
    "map": Place(
        "map",
        "MapRequest",
        "map",
        "The map of the lake: tables, and how they are linked, with a place in a picture for each.",
    ),
    "history": Place(
        "history",
        "HistoryRequest",
        "history",
        "What the versions of a table were that the index saw: when, how large, columns added and removed.",
    ),
    "drift": Place(
        "history",
        "DriftRequest",
        "drift",
        "What changed in the columns of tables since the version before: types, missing cells, keys, distributions.",
    ),
    "suggest_headers": Place(
        "headers",
        "SuggestHeadersRequest",
        "headers suggest",
        "What the columns of a table may be called: headers borrowed from the tables of the lake that have them.",
    ),
    "name_columns": Place(
        "headers",
        "NameColumnsRequest",
        "headers write",
        "Write a table under other headers: those that are given, or the best that are suggested for it.",
    ),
    "check_headers": Place(
        "headers",
        "CheckHeadersRequest",
        "headers check",
        "Which headers of the lake are in doubt: missing, meaning nothing, a value, or contradicted by their values.",
    ),
    "learn_headers": Place(
        "headers",
        "LearnHeadersRequest",
        "headers learn",
        "Learn from the tables of the lake what speaks for a header, before anybody asks; kept beside the index.",
    ),
    "evaluate_headers": Place(
        "headers",
        "EvaluateHeadersRequest",
        "headers evaluate",
        "How well headers of this lake are found: some tables are hidden, and their headers are asked for.",
    ),
    "detect_header": Place(
        "headers",
        "DetectHeaderRequest",
        "headers detect",
        "Has a text file a header, where is it, and where does the data start.",
    ),
    "count": Place(
        "counting",
        "CountRequest",
        "count",
        "How many different values the columns of a table hold, by any of twelve estimators, in one pass.",
    ),
    "stored_counts": Place(
        "counting",
        "StoredCountsRequest",
        "count stored",
        "How many different values the writer of an Iceberg table counted; no data file is opened.",
    ),
    "counter_advice": Place(
        "counting",
        "CounterAdviceRequest",
        "count advise",
        "Which counter of distinct values suits, the best first, with what speaks for and against each.",
    ),
    "counter_study": Place(
        "counting",
        "CounterStudyRequest",
        "count study",
        "How counters compare on columns of growing size, and on tables of one's own.",
    ),
    "dependencies": Place(
        "dependencies",
        "DependenciesRequest",
        "fds",
        "Which functional dependencies hold in a table (lhs determines rhs), the most telling first. Reads the table.",
    ),
    "compared_dependencies": Place(
        "dependencies",
        "ComparedRequest",
        "fds compare",
        "What became of dependencies beside a clean version of the table: same, ghost or fake.",
    ),
    "violations": Place(
        "dependencies",
        "ViolationsRequest",
        "fds violations",
        "Which rows break a dependency, and what they might be meant to be.",
    ),
    "splits": Place(
        "dependencies",
        "SplitsRequest",
        "fds split",
        "Which columns to split off into other tables, with the SQL that does it.",
    ),
    "reference_dependencies": Place(
        "dependencies",
        "ReferenceRequest",
        "fds reference",
        "What holds however missing values are filled in: by PMM, RI and QUAD.",
    ),
    "missing_value_study": Place(
        "dependencies",
        "StudyRequest",
        "fds study",
        "What missing values do to the dependencies of a table: values are taken out, and what was true is known.",
    ),
    "lake_dependencies": Place(
        "dependencies",
        "LakeDependenciesRequest",
        "fds lake",
        "Which functional dependencies of all tables tell most, found by one job on Spark.",
    ),
}
#: Commands that ask nothing themselves, with others below them.
GROUPS = {"headers": "What columns without a name may be called, which headers are in doubt, whether a file has any."}
QUESTIONS = tuple(_PLACES)
COMMANDS = {place.command: name for name, place in _PLACES.items()}


def declared(name: str) -> type[Request[Any]]:
    """The declaration of a question."""
    place = _PLACES[name]
    kind: type[Request[Any]] = getattr(import_module(f"lakescope.questions.{place.module}"), place.name)
    return kind


def summary(name: str) -> str:
    """One line about a question."""
    return _PLACES[name].summary
