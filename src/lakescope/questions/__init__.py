"""What a lake can be asked: one declaration a question, from which all faces follow.

This module knows the questions by name without importing them: a command line that shows a list of commands needs no
more than a line about each.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from lakescope.questions.model import Request


@dataclass(frozen=True, slots=True)
class Place:
    """Where a question is declared, the command that asks it, and one line about it."""

    module: str
    name: str
    command: str
    summary: str


_PLACES = {
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
}
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
