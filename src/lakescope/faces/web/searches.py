"""Searches as pages pass them on: what was searched with goes along as one text, to search on with the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, urlencode

from lakescope.errors import LakescopeError
from lakescope.faces.web.forms import address, chosen, searched
from lakescope.questions.correlated import CorrelatedRequest
from lakescope.questions.joinable import JoinableRequest
from lakescope.questions.model import options_of


def guessed(asked: CorrelatedRequest, columns: list[dict[str, Any]]) -> CorrelatedRequest:
    """What is asked unless a key is named: by the likeliest one, about the likeliest number."""
    roles = {each["role"]: each["name"] for each in columns if each["role"]}
    return replace(asked, key=(roles["key"],) if "key" in roles else None, target=asked.target or roles.get("target"))


def search_address(query: str, text: str = "") -> str:
    """The address of the page that searches with a table."""
    asked = search_from(query, text)
    return address("/search", {"query": query} if asked is None else chosen(asked))


def joins_address(asked: CorrelatedRequest, *, is_named: bool) -> str:
    """The part that tells of joins on a key; with it goes what was searched with, if it was chosen or can be."""
    assert asked.key is not None
    values: dict[str, Any] = {"query": asked.query, "on": asked.key[0]}
    if is_named or asked.target:
        # All but the table, as the address of a search has them.
        search = {name: each for name, each in chosen(asked).items() if name != "query"}
        values["search"] = urlencode(search, doseq=True)
    return address(JoinableRequest.about.page, values)


def search_from(query: str, text: str) -> CorrelatedRequest | None:
    """What was searched with, from the text that pages pass on; None if there is none, or it is no search."""
    given: dict[str, Any] = {}
    known = options_of(CorrelatedRequest, "web")
    for name, value in parse_qsl(text):
        if name in known:
            given[name] = [*given.get(name, []), value] if known[name].type is tuple else value
    try:
        return searched(CorrelatedRequest, {"query": query, **given}) if given else None
    except (LakescopeError, ValueError):
        return None
