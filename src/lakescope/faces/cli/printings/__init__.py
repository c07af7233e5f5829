"""How commands print the answers of questions, with the options that each adds for it.

This module knows the classes by name without importing them: a command loads its own and no other.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from lakescope.faces.cli.printing import Gone

if TYPE_CHECKING:
    from lakescope.faces.cli.printing import Printing

#: The module and the class that print for a command, by its name.
_PLACES = {
    "info": ("catalog", "InfoPrinting"),
    "timings": ("catalog", "TimingPrinting"),
    "tables": ("catalog", "TablePrinting"),
    "columns": ("catalog", "ColumnPrinting"),
    "profile": ("catalog", "ProfilePrinting"),
    "problems": ("catalog", "ProblemPrinting"),
    "find": ("catalog", "FindPrinting"),
    "map": ("catalog", "MapPrinting"),
    "head": ("catalog", "HeadPrinting"),
    "describe": ("catalog", "DescribePrinting"),
    "shared": ("catalog", "SharedPrinting"),
    "join": ("joins", "JoinPrinting"),
    "paths": ("joins", "PathPrinting"),
    "correlate": ("joins", "CorrelationPrinting"),
    "augment": ("makings", "AugmentPrinting"),
    "joined": ("makings", "JoinedPrinting"),
    "autojoin": ("makings", "AutojoinPrinting"),
    "autojoin lake": ("makings", "LakeAutojoinPrinting"),
    "fuzzyjoin": ("makings", "FuzzyJoinPrinting"),
    "inclusions": ("keys", "InclusionPrinting"),
    "keys": ("keys", "ReferencePrinting"),
    "keys primary": ("keys", "PrimaryKeyPrinting"),
    "keys diagram": ("keys", "DiagramPrinting"),
    "history": ("history", "VersionPrinting"),
    "drift": ("history", "DriftPrinting"),
    "fds": ("dependencies", "DependencyPrinting"),
    "fds compare": ("dependencies", "ComparisonPrinting"),
    "fds violations": ("dependencies", "ViolationPrinting"),
    "fds split": ("dependencies", "SplitPrinting"),
    "fds reference": ("dependencies", "ReferenceSetPrinting"),
    "fds study": ("dependencies", "StudyPrinting"),
    "fds lake": ("dependencies", "LakeDependencyPrinting"),
    "count": ("counting", "CountPrinting"),
    "count stored": ("counting", "StoredCountPrinting"),
    "count advise": ("counting", "AdvicePrinting"),
    "count study": ("counting", "CounterStudyPrinting"),
    "headers suggest": ("headers", "HeaderPrinting"),
    "headers write": ("headers", "WritingPrinting"),
    "headers check": ("headers", "HeaderDoubtPrinting"),
    "headers learn": ("headers", "LearningPrinting"),
    "headers evaluate": ("headers", "EvaluationPrinting"),
    "headers detect": ("headers", "OpinionPrinting"),
}

#: Options that commands had which are groups now, each with the command that takes its place.
GONE_OF_GROUPS: dict[str, tuple[Gone, ...]] = {
    "headers": (
        Gone("--write", "a command: lakescope headers write INDEX QUERY --out named.csv"),
        Gone("--from", "a command: lakescope headers suggest INDEX QUERY"),
        Gone("--check", "a command: lakescope headers check INDEX"),
        Gone("--evaluate", "a command: lakescope headers evaluate INDEX"),
    )
}


def printing_of(command: str) -> type[Printing]:
    """How a command prints its answer."""
    module, name = _PLACES[command]
    kind: type[Printing] = getattr(import_module(f"lakescope.faces.cli.printings.{module}"), name)
    return kind


def gone_of(command: str) -> tuple[Gone, ...]:
    """Options that a command had, or a word before commands."""
    return GONE_OF_GROUPS[command] if command in GONE_OF_GROUPS else printing_of(command).gone
