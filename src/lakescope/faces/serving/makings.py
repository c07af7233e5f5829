"""Questions that make a table, which becomes a file of the visitor's: what it is called, and what it holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lakescope.faces.serving.held import Held
from lakescope.questions.augment import AugmentRequest, JoinedRequest

if TYPE_CHECKING:
    from lakescope.faces.serving.service import Query

Record = dict[str, Any]
#: What is asked, the tables that it is about, the answer: what to say of them.
_Words = Callable[[Any, Mapping[str, "Query"], Record], str]
_Holds = Callable[[Any, Mapping[str, "Query"], Record], tuple[Held, ...]]


@dataclass(frozen=True, slots=True)
class Making:
    """What is to say of a table that was made: how, and which columns of the lake are in it already."""

    words: _Words
    holds: _Holds


def _joined_in(query: Query, table: str, answer: Record) -> tuple[Held, ...]:
    """What a query holds once all columns of a table are joined in, each of them by its name there."""
    return (*query.holds, *(Held(table, column, by=(called,)) for column, called in answer["names"]))


def _words_of_join(asked: JoinedRequest, queries: Mapping[str, Query], answer: Record) -> str:
    return f"{queries['query'].name} joined with {asked.table} on {asked.on} = {asked.column}"


def _holds_of_join(asked: JoinedRequest, queries: Mapping[str, Query], answer: Record) -> tuple[Held, ...]:
    return _joined_in(queries["query"], asked.table, answer)


def _words_of_augment(asked: AugmentRequest, queries: Mapping[str, Query], answer: Record) -> str:
    return f"{queries['query'].name} with {', '.join(each['column'] for each in answer['added'])}"


def _holds_of_augment(asked: AugmentRequest, queries: Mapping[str, Query], answer: Record) -> tuple[Held, ...]:
    by = tuple(answer["asked"]["key"])
    added = (Held(each["table"], each["key"], each["column"], by) for each in answer["added"])
    return (*queries["query"].holds, *added)


def _words_of_pair(asked: Any, queries: Mapping[str, Query], answer: Record) -> str:
    return f"{queries['left'].name} joined with {queries['right'].name}"


def _holds_of_pair(asked: Any, queries: Mapping[str, Query], answer: Record) -> tuple[Held, ...]:
    left, right = queries["left"], queries["right"]
    if right.in_lake:
        return _joined_in(left, right.name, answer)
    called = dict(answer["names"])
    theirs = (replace(each, by=tuple(called.get(name, name) for name in each.by)) for each in right.holds)
    return (*left.holds, *theirs)


MAKINGS: dict[str, Making] = {
    "augment": Making(_words_of_augment, _holds_of_augment),
    "joined": Making(_words_of_join, _holds_of_join),
    "autojoin": Making(_words_of_pair, _holds_of_pair),
    "fuzzyjoin": Making(_words_of_pair, _holds_of_pair),
}
